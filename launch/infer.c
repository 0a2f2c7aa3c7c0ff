/* Infers types and shapes of missing arguments from the others. */
#include <errno.h>
#include <string.h>

#include "launch/guard.h"
#include "launch/host.h"
#include "launch/report.h"
#include "launch/variants.h"

enum { MAX_VALUES = 4096 };

/* A dimension is known if a known argument has one of the same name. */
static bool find_by_text(const TileImageSignature *signature, const TileView *views, const char *text,
                         int64_t *extent) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        for (unsigned k = 0; views[i].tensor && views[i].known && k < views[i].rank; k++) {
            if (strcmp(signature->parameters[i].dimensions[k], text)) continue;
            *extent = views[i].extent[k];
            return true;
        }
    }
    return false;
}

/* Fills the extents of unknown tensors by names; bit k of known[i]: dimension k is known. Unknown extents become 2:
 * more than one element, so that strides matter. */
static void fill_extents(const TileImageSignature *signature, TileView *views, uint32_t *known) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        TileView *view = &views[i];
        known[i] = (1u << view->rank) - 1;
        for (unsigned k = 0; !view->known && view->tensor && k < view->rank; k++) {
            if (find_by_text(signature, views, signature->parameters[i].dimensions[k], &view->extent[k])) continue;
            view->extent[k] = 2;
            known[i] &= ~(1u << k);
        }
    }
}

/* Unknown tensors are taken to be contiguous and well aligned. */
static void fill_layouts(const TileImageSignature *signature, TileView *views) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        TileView *view = &views[i];
        if (view->known || !view->tensor) continue;
        view->data = NULL;
        view->low = view->high = 0;
        int64_t next = tile_host_type_bytes((TileHostType)view->type);
        for (int k = view->rank - 1; k >= 0; k--) {
            view->stride[k] = next;
            if (__builtin_mul_overflow(next, view->extent[k] ? view->extent[k] : 1, &next)) next = 0;
        }
        tile_guard_read(view);
    }
}

static bool statics_known(const TileImageSignature *signature, const TileView *views, const uint32_t *known) {
    for (uint32_t i = 0; i < signature->static_count; i++) {
        const TileImageStatic *at = &signature->statics[i];
        if (at->axis < 0 ? !views[at->parameter].known : !(known[at->parameter] >> at->axis & 1)) return false;
    }
    return true;
}

/* Which values of the host program depend on known arguments only? */
static void mark_known(const TileImageCode *code, const TileView *views, const uint32_t *known, bool *value_known) {
    for (uint32_t i = 0; i < code->host_count; i++) {
        const TileHostInstruction *at = &code->host[i];
        switch ((TileHostOp)at->op) {
        case TILE_HOST_CONST: value_known[i] = true; break;
        case TILE_HOST_DIM: value_known[i] = known[at->a] >> at->b & 1; break;
        case TILE_HOST_SCALAR: value_known[i] = views[at->a].known; break;
        default: value_known[i] = value_known[at->a] && value_known[at->b] && value_known[at->c];
        }
    }
}

/* The expected value of an argument's dimension, as a function of an unknown dimension. */
typedef struct Unknown {
    const TileImageCode *code;
    TileView *views;
    const TileImageDimension *check;
    int64_t *extent;
} Unknown;

static int64_t expected_at(const Unknown *unknown, int64_t extent) {
    uint64_t values[MAX_VALUES];
    *unknown->extent = extent;
    tile_host_run(unknown->code->host, unknown->code->host_count, unknown->views, values);
    return (int64_t)values[unknown->check->expected];
}

/* Linear expressions, such as 2 * N, have at most one solution, which is then verified. */
static bool solve(const Unknown *unknown, int64_t wanted) {
    int64_t at[3], slope, distance;
    for (int i = 0; i < 3; i++) at[i] = expected_at(unknown, i);
    bool linear = !__builtin_sub_overflow(at[1], at[0], &slope) && slope != 0 && at[2] - at[1] == slope &&
                  !__builtin_sub_overflow(wanted, at[0], &distance) && distance % slope == 0 && distance / slope >= 0;
    return linear && expected_at(unknown, distance / slope) == wanted;
}

/* The only unknown dimension that a known argument's dimension depends on. */
static bool solve_dimension(const TileImageCode *code, TileView *views, size_t parameter, unsigned axis,
                            uint32_t *known) {
    bool before[MAX_VALUES], after[MAX_VALUES];
    mark_known(code, views, known, before);
    known[parameter] |= 1u << axis;
    mark_known(code, views, known, after);
    for (uint32_t i = 0; i < code->dimension_count; i++) {
        const TileImageDimension *check = &code->dimensions[i];
        Unknown unknown = {code, views, check, &views[parameter].extent[axis]};
        bool says = views[check->parameter].known && after[check->expected] && !before[check->expected];
        if (says && solve(&unknown, views[check->parameter].extent[check->axis])) return true;
    }
    known[parameter] &= ~(1u << axis);
    views[parameter].extent[axis] = 2; /* what fill_extents sets for unknown extents */
    return false;
}

static void use_expectations(const TileImageCode *code, TileView *views, size_t parameter, uint32_t *known) {
    uint64_t values[MAX_VALUES];
    bool value_known[MAX_VALUES];
    for (unsigned k = 0; k < views[parameter].rank; k++)
        if (!(known[parameter] >> k & 1u)) solve_dimension(code, views, parameter, k, known);
    tile_host_run(code->host, code->host_count, views, values);
    mark_known(code, views, known, value_known);
    for (uint32_t i = 0; i < code->dimension_count; i++) {
        const TileImageDimension *check = &code->dimensions[i];
        if (check->parameter != parameter || !value_known[check->expected]) continue;
        views[parameter].extent[check->axis] = (int64_t)values[check->expected];
        known[parameter] |= 1u << check->axis;
    }
}

/* Infers the dimensions that are expressions, from the checks of the kernel's code. */
static tile_status infer_from_code(TileKernel *kernel, TileView *views, TileImageRequest *request, size_t parameter,
                                   uint32_t *known, const TileLaunchOptions *options) {
    TileVariant *variant;
    TILE_TRY(tile_variant_get(kernel, views, request, &variant, options->error, options->report));
    if (variant->code->host_count <= MAX_VALUES) use_expectations(variant->code, views, parameter, known);
    tile_variant_give(variant, false);
    return TILE_OK;
}

static tile_status infer(TileKernel *kernel, const TileArg *arguments, size_t count, size_t parameter,
                         DLDataType *dtype, int64_t *shape, uint32_t *known, const TileLaunchOptions *options) {
    const TileImageSignature *signature = kernel->signature;
    TileView views[TILE_MAX_PARAMETERS];
    TileImageRequest request;
    uint32_t all_known[TILE_MAX_PARAMETERS];
    if (parameter >= signature->parameter_count || signature->parameters[parameter].kind != TILE_PARAMETER_TENSOR)
        return tile_error_set(options->error, TILE_INVALID_ARGUMENT, "%s: parameter %zu is no tensor", signature->name,
                              parameter);
    TILE_TRY(tile_arguments_read(signature, arguments, count, true, views, &request, options->error));
    TileView *view = &views[parameter];
    bool typed = true;
    for (uint32_t i = 0; i < signature->generic_count; i++) typed &= request.generics[i] < TILE_HOST_TYPE_COUNT;
    *dtype = (DLDataType){0, 0, 0};
    if (view->type < TILE_HOST_TYPE_COUNT) *dtype = tile_host_type_dtype((TileHostType)view->type);
    fill_extents(signature, views, all_known);
    bool complete = all_known[parameter] == (1u << view->rank) - 1;
    if (!complete && typed && statics_known(signature, views, all_known)) {
        fill_layouts(signature, views);
        TILE_TRY(infer_from_code(kernel, views, &request, parameter, all_known, options));
    }
    *known = all_known[parameter];
    for (unsigned i = 0; i < TILE_MAX_RANK; i++) shape[i] = i < view->rank && (*known >> i & 1) ? view->extent[i] : -1;
    return TILE_OK;
}

tile_status tile_kernel_infer(TileKernel *kernel, const TileArg *arguments, size_t argument_count, size_t parameter,
                              DLDataType *dtype, int64_t *shape, uint32_t *known, const TileLaunchOptions *given) {
    TileCall call;
    int saved = errno;
    if (!kernel || !dtype || !shape || !known || !tile_call_begin(&call, given)) return TILE_INVALID_ARGUMENT;
    tile_status status = infer(kernel, arguments, argument_count, parameter, dtype, shape, known, &call.options);
    status = tile_call_end(&call, status);
    errno = saved;
    return status;
}
