/* Failures of passes: the message, and the limit that a program exceeds. */
#include "lowering/pass.h"

TileResult tile_pass_fail(TilePassContext *context, tile_status status, const TileOp *at, const char *format, ...) {
    context->failure = status;
    if (at && at->location.line) {
        const TileContext *ir = context->module->context;
        tile_text_format(&context->message, "%s:%u:%u: ", ir->files.items[at->location.file], at->location.line,
                         at->location.column);
    }
    va_list arguments;
    va_start(arguments, format);
    tile_text_add(&context->message, tile_arena_format_list(context->scratch, format, arguments));
    va_end(arguments);
    return TILE_RESULT_FAILED;
}

TileResult tile_pass_exceed(TilePassContext *context, TileLimitId limit, TileDiagnosticCode code, TileLocation place,
                            const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *words = tile_arena_format_list(context->scratch, format, arguments);
    va_end(arguments);
    context->excess = (TilePassExcess){true, limit, code, place, words};
    const TileOp at = {.location = place};
    return tile_pass_fail(context, TILE_UNSUPPORTED, &at, "%s", words);
}
