/* Remarks on decisions of passes, for `tilec explain`. */
#include <stdarg.h>

#include "lowering/pass.h"

static const TileDecisionInfo decisions[] = {
#define REMARK(id, code, done, words) {code, words, done},
#include "lowering/remarks.def"
#undef REMARK
};

const TileDecisionInfo *tile_decision_info(TileDecision decision) { return &decisions[decision]; }

/* Loops and branches that passes build may have no location; ops inside of them have one. */
static TileLocation place_of(const TileOp *op) {
    TileLocation place = op->location;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner && !place.line; inner = inner->next)
            place = place_of(inner);
    return place;
}

void tile_pass_remark(TilePassContext *context, const TileOp *op, TileDecision decision, const char *subject,
                      const char *format, ...) {
    if (!context->remarks) return;
    va_list values;
    va_start(values, format);
    const char *way = tile_arena_format_list(context->scratch, format, values);
    va_end(values);
    TileRemark remark = {.kind = TILE_REMARK_DECISION,
                         .place = place_of(op),
                         .func = context->func,
                         .name = subject ? subject : "a value",
                         .way = way,
                         .pass = context->info->name,
                         .decision = decision};
    tile_list_push(context->scratch, context->remarks, remark);
}

void tile_remark_print(TileText *text, const TileRemark *remark) {
    tile_text_format(text, "%s: %s %s", remark->pass, remark->name, decisions[remark->decision].words);
    if (*remark->way) tile_text_format(text, ": %s", remark->way);
}
