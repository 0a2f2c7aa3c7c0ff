#include "launch/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "launch/guard.h"
#include "launch/host.h"
#include "launch/report.h"
#include "launch/values.h"

/* ---- words ---- */

static void TILE_PRINTF(2, 3) say(TileExplanation *text, const char *format, ...) {
    size_t room = sizeof text->text - text->length;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->text + text->length, room, format, arguments);
    va_end(arguments);
    if (length > 0) text->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void separate(TileExplanation *text, size_t begin, const char *by) {
    if (text->length > begin) say(text, "%s", by);
}

static unsigned alignment(uint64_t word) { return (unsigned)(word & TILE_GUARD_ALIGN) + 1; }

static void say_static(TileExplanation *text, const TileImageSignature *signature, uint32_t index, int64_t value) {
    const TileImageStatic *fixed = &signature->statics[index];
    TileHostType type = fixed->axis < 0 ? (TileHostType)signature->parameters[fixed->parameter].type : TILE_HOST_I64;
    char digits[40];
    tile_host_print(digits, sizeof digits, type, tile_host_bits(type, (uint64_t)value));
    say(text, "%s = %s", fixed->name, digits);
}

void tile_explain_instance(TileExplanation *text, const TileImageSignature *signature,
                           const TileImageRequest *request) {
    size_t begin = text->length;
    for (uint32_t i = 0; i < signature->generic_count; i++) {
        separate(text, begin, ", ");
        say(text, "%s = %s", signature->generics[i].name, tile_host_type_name((TileHostType)request->generics[i]));
    }
    for (uint32_t i = 0; i < signature->static_count; i++) {
        separate(text, begin, ", ");
        say_static(text, signature, i, request->statics[i]);
    }
}

/* The greatest divisor of an extent that the bits state, or 0. */
static unsigned multiple_in(const TileImageParameter *parameter, unsigned axis, uint64_t bits) {
    unsigned multiple = TILE_GUARD_MOST_MULTIPLE;
    while (multiple > 1 && !(bits & tile_guard_multiple(parameter->rank, axis, multiple))) multiple /= 2;
    return multiple > 1 ? multiple : 0;
}

/* The least bound of the last extent that the bits state, or 0. */
static unsigned most_in(uint64_t bits) {
    unsigned most = TILE_LEAST_SHORT_ROW;
    while (most <= TILE_GREATEST_SHORT_ROW && !(bits & tile_guard_row(most))) most *= 2;
    return most <= TILE_GREATEST_SHORT_ROW ? most : 0;
}

static void say_facts(TileExplanation *text, const TileImageParameter *parameter, uint64_t bits) {
    size_t begin = text->length;
    uint64_t align = bits & TILE_GUARD_ALIGN;
    if (align) say(text, "aligned to %u bytes", 2u << (63 - __builtin_clzll(align)));
    if (bits & TILE_GUARD_NARROW) {
        separate(text, begin, ", ");
        say(text, "offsets below 2**31");
    }
    if (bits & TILE_GUARD_DISJOINT) {
        separate(text, begin, ", ");
        say(text, "memory of its own");
    }
    if (most_in(bits)) {
        separate(text, begin, ", ");
        say(text, "rows of 1 to %u elements", most_in(bits));
    }
    if (bits & TILE_GUARD_MAP) {
        separate(text, begin, ", ");
        say(text, "described by a tensor map");
    }
    for (unsigned k = 0; k < parameter->rank; k++) {
        bool unit = bits & tile_guard_dimension(k, TILE_GUARD_STRIDE_UNIT);
        bool zero = bits & tile_guard_dimension(k, TILE_GUARD_STRIDE_ZERO);
        if (!unit && !zero) continue;
        separate(text, begin, ", ");
        say(text, "dimension %u %s", k, unit ? "contiguous" : "of stride 0");
    }
    for (unsigned k = 0; k < parameter->rank; k++) {
        if (!(bits & tile_guard_dimension(k, TILE_GUARD_DENSE))) continue;
        separate(text, begin, ", ");
        if (k)
            say(text, "no gaps from dimension %u on", k);
        else
            say(text, "no gaps");
        break; /* nor behind it */
    }
    for (unsigned k = 0; k < parameter->rank; k++) {
        unsigned multiple = multiple_in(parameter, k, bits);
        if (!multiple) continue;
        separate(text, begin, ", ");
        say(text, "dimension %u a multiple of %u", k, multiple);
    }
}

static void say_value(TileExplanation *text, const TileImageParameter *parameter, int64_t value) {
    char digits[40];
    TileHostType type = (TileHostType)parameter->type;
    tile_host_print(digits, sizeof digits, type, tile_host_bits(type, (uint64_t)value));
    say(text, "its value %s", digits);
}

void tile_explain_facts(TileExplanation *text, const TileImageSignature *signature, const uint64_t *bits,
                        const int64_t *values) {
    size_t begin = text->length;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        if (!bits[i]) continue;
        separate(text, begin, "; ");
        say(text, "%s: ", signature->parameters[i].name);
        if (bits[i] & TILE_GUARD_VALUE)
            say_value(text, &signature->parameters[i], values[i]);
        else
            say_facts(text, &signature->parameters[i], bits[i]);
    }
    if (text->length == begin) say(text, "nothing");
}

/* ---- differences ---- */

static void explain_types(TileExplanation *text, size_t begin, const TileImageSignature *signature,
                          const TileImageRequest *of, const TileImageRequest *given) {
    for (uint32_t i = 0; i < signature->generic_count; i++) {
        if (of->generics[i] == given->generics[i]) continue;
        separate(text, begin, "; ");
        say(text, "%s is %s, and the code is for %s", signature->generics[i].name,
            tile_host_type_name((TileHostType)given->generics[i]), tile_host_type_name((TileHostType)of->generics[i]));
    }
    for (uint32_t i = 0; i < signature->static_count; i++) {
        if (of->statics[i] == given->statics[i]) continue;
        separate(text, begin, "; ");
        say_static(text, signature, i, given->statics[i]);
        say(text, ", and the code is for ");
        say_static(text, signature, i, of->statics[i]);
    }
}

/* Where elements of the last dimension are apart, that has been said. */
static void explain_gaps(TileExplanation *text, size_t begin, const TileImageParameter *parameter, uint64_t broken) {
    for (unsigned k = 0; k + 1 < parameter->rank; k++) {
        if (broken & tile_guard_dimension(parameter->rank - 1u, TILE_GUARD_STRIDE_UNIT)) return;
        if (!(broken & tile_guard_dimension(k, TILE_GUARD_DENSE))) continue;
        separate(text, begin, "; ");
        say(text, "%s: there are gaps behind dimension %u, and the code relies on none", parameter->name, k);
        return;
    }
}

static void explain_tensor(TileExplanation *text, size_t begin, const TileImageParameter *parameter,
                           const TileView *view, uint64_t broken, uint64_t missed) {
    if (broken & TILE_GUARD_ALIGN) {
        separate(text, begin, "; ");
        say(text, "%s: the address is a multiple of %u bytes, and the code relies on %u", parameter->name,
            alignment(view->word), 2u << (63 - __builtin_clzll(broken & TILE_GUARD_ALIGN)));
    }
    if (broken & TILE_GUARD_NARROW) {
        uint64_t first = (uint64_t)(uintptr_t)view->data;
        separate(text, begin, "; ");
        if (view->low < first)
            say(text, "%s: elements lie before the first one, and the code relies on offsets below 2**31",
                parameter->name);
        else if (view->high - first <= UINT64_C(1) << 31)
            say(text, "%s: an extent is near 2**31 or above, and the code relies on less", parameter->name);
        else
            say(text, "%s: offsets reach %" PRIu64 " bytes, and the code relies on less than 2**31", parameter->name,
                view->high - first);
    }
    for (unsigned k = 0; k < parameter->rank; k++) {
        bool unit = broken & tile_guard_dimension(k, TILE_GUARD_STRIDE_UNIT);
        bool zero = broken & tile_guard_dimension(k, TILE_GUARD_STRIDE_ZERO);
        if (!unit && !zero) continue;
        separate(text, begin, "; ");
        say(text, "%s: dimension %u has a stride of %" PRId64 " bytes, and the code relies on %s", parameter->name, k,
            view->stride[k], unit ? "one element" : "0");
    }
    explain_gaps(text, begin, parameter, broken);
    if (most_in(broken)) {
        separate(text, begin, "; ");
        say(text, "%s: rows have %" PRId64 " elements, and the code relies on 1 to %u", parameter->name,
            view->extent[parameter->rank - 1u], most_in(broken));
    }
    for (unsigned k = 0; k < parameter->rank; k++) {
        unsigned multiple = multiple_in(parameter, k, broken);
        if (!multiple) continue;
        separate(text, begin, "; ");
        say(text, "%s: dimension %u is %" PRId64 ", and the code relies on a multiple of %u", parameter->name, k,
            view->extent[k], multiple);
    }
    if (broken & TILE_GUARD_DISJOINT) {
        separate(text, begin, "; ");
        say(text, "%s: shares memory with another argument, and the code relies on its own", parameter->name);
    }
    if (broken & TILE_GUARD_MAP) {
        separate(text, begin, "; ");
        say(text,
            "%s: no tensor map describes it, and the code relies on one: a contiguous last dimension, and other "
            "strides "
            "that are multiples of 16 bytes",
            parameter->name);
    }
    if (!missed) return;
    separate(text, begin, "; ");
    say(text, "%s: ", parameter->name);
    say_facts(text, parameter, missed);
    say(text, ", of which the code would make use");
}

static void explain_values(TileExplanation *text, size_t begin, const TileImageSignature *signature,
                           const TileVariant *variant, const TileView *views) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        if (!(variant->code->need[i] & TILE_GUARD_VALUE) || (int64_t)views[i].scalar == variant->request.values[i])
            continue;
        separate(text, begin, "; ");
        say(text, "%s: ", signature->parameters[i].name);
        say_value(text, &signature->parameters[i], (int64_t)views[i].scalar);
        say(text, ", and the code relies on ");
        say_value(text, &signature->parameters[i], variant->request.values[i]);
    }
}

/* What launches that are equal will get. */
static void explain_specialised(TileExplanation *text, const TileImageSignature *signature,
                                const TileVariant *variant) {
    size_t begin = text->length;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        if (!tile_values_wanted(signature, variant, i)) continue;
        separate(text, begin, ", ");
        say(text, "%s", signature->parameters[i].name);
    }
}

void tile_explain_difference(TileExplanation *text, const TileImageSignature *signature, const TileVariant *variant,
                             const TileImageRequest *request, const TileView *views) {
    size_t begin = text->length;
    const TileImageCode *code = variant->code;
    explain_types(text, begin, signature, &variant->request, request);
    explain_values(text, begin, signature, variant, views);
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        explain_tensor(text, begin, &signature->parameters[i], &views[i], code->need[i] & ~views[i].word,
                       code->asked[i] & request->facts[i] & ~variant->request.facts[i]);
}

void tile_explain_miss(TileExplanation *text, const TileKernel *kernel, const TileImageRequest *request,
                       const TileView *views) {
    TileExplanation nearest = {.length = 0};
    bool any = false;
    for (const TileVariant *v = atomic_load(&kernel->variants); v; v = v->next) {
        TileExplanation own = {.length = 0};
        if (atomic_load(&v->state) != TILE_VARIANT_READY) continue;
        tile_explain_difference(&own, kernel->signature, v, request, views);
        if (!any || own.length < nearest.length) nearest = own;
        any = true;
    }
    say(text, "%s", any ? nearest.text : "there is no code yet");
}

/* ---- the API ---- */

static void print_line(TilePrint print, void *host, const TileExplanation *line) {
    char text[sizeof line->text + 1];
    memcpy(text, line->text, line->length);
    text[line->length] = '\n';
    print(host, text, line->length + 1);
}

static void print_variant(const TileKernel *kernel, const TileVariant *variant, const TileImageRequest *request,
                          const TileView *views, TilePrint print, void *host) {
    const TileImageSignature *signature = kernel->signature;
    TileExplanation line = {.length = 0}, why = {.length = 0}, scalars = {.length = 0};
    say(&line, "  ");
    tile_explain_instance(&line, signature, &variant->request);
    say(&line, "%s%" PRIu64 " launches, compiled in %.1f ms, relies on: ", line.length > 2 ? ": " : "",
        atomic_load(&variant->uses) / TILE_VARIANT_LAUNCH, (double)variant->compile_ns * 1e-6);
    tile_explain_facts(&line, signature, variant->code->need, variant->request.values);
    print_line(print, host, &line);
    explain_specialised(&scalars, signature, variant);
    if (scalars.length) {
        line.length = 0;
        say(&line, "    a second launch with the same %s has code compiled for that", scalars.text);
        print_line(print, host, &line);
    }
    say(&why, "    ");
    tile_explain_difference(&why, signature, variant, request, views);
    if (why.length == 4) say(&why, "serves these arguments");
    print_line(print, host, &why);
}

static void print_kernel(TileKernel *kernel, const TileImageRequest *request, const TileView *views, TilePrint print,
                         void *host) {
    TileKernelStats stats;
    TileExplanation line = {.length = 0};
    tile_kernel_stats(kernel, &stats);
    say(&line,
        "%s: %" PRIu64 " launches, %" PRIu64 " hits, %" PRIu64 " misses, %" PRIu64 " variants compiled in %.1f ms",
        kernel->signature->name, stats.launches, stats.hits, stats.misses, stats.variants,
        (double)stats.compile_ns * 1e-6);
    if (stats.guard_ns) say(&line, ", guards take %.0f ns a hit", (double)stats.guard_ns / (double)stats.hits);
    print_line(print, host, &line);
    for (TileVariant *v = atomic_load_explicit(&kernel->variants, memory_order_acquire); v; v = v->next) {
        if (!tile_variant_take(v)) continue;
        print_variant(kernel, v, request, views, print, host);
        tile_variant_give(v, false);
    }
}

tile_status tile_explain(TileKernel *kernel, const TileArg *arguments, size_t argument_count, TilePrint print,
                         void *print_host, const TileLaunchOptions *options) {
    TileCall call;
    TileView views[TILE_MAX_PARAMETERS];
    TileImageRequest request;
    int saved = errno;
    if (!kernel || !print || !tile_call_begin(&call, options)) return TILE_INVALID_ARGUMENT;
    tile_status status =
        tile_arguments_read(kernel->signature, arguments, argument_count, false, views, &request, call.options.error);
    if (status == TILE_OK) {
        tile_variant_request(kernel, views, &request);
        pthread_mutex_lock(&kernel->mutex); /* meanwhile records keep their variants */
        print_kernel(kernel, &request, views, print, print_host);
        pthread_mutex_unlock(&kernel->mutex);
    }
    status = tile_call_end(&call, status);
    errno = saved;
    return status;
}
