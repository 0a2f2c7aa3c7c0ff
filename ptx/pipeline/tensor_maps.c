/* Purpose: decide which loads a tensor map can carry out, so that one thread has a tile copied to shared memory
 * (`tensor_map`). A map describes a whole tensor, whose address and strides must be such as a map takes, and what lies
 * outside of the tensor is read as 0. Where a load's range may end before its tensor does, lanes that the load does not
 * reach would get what is there: they have to be cleared before products add them up (`clears`).
 *
 * Run: --passes=gpu-tensor-maps --target=sm_90a
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {role = data, argument = 0, map}, %c: tensor<f32, 2, out> {role = data,
 *                          argument = 1, noalias}, %begin: i64 {role = begin}, %end: i64 {role = end}) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %rows = dim %a {axis = 0} : i64
 *       %left = sub %rows, %begin : i64
 *       %hi = min %left, %n : i64
 *       %x = load_tile %a, %begin, %one, %zero, %hi, %zero, %one, %zero, %n {access = [range, range]} : f16[64, 64]
 *       %y = load_tile %a, %begin, %one, %zero, %end, %zero, %one, %zero, %n {access = [range, range]} : f16[64, 64]
 *       %s = dot %x, %y, %acc {instruction = mma} : f32[64, 64]
 *       store_tile %c, %s, %begin, %one, %zero, %hi, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {role = data, argument = 0, map, asked_map}, %c: tensor<f32, 2, out>
 *                              {role = data, argument = 1, noalias}, %begin: i64 {role = begin}, %end: i64 {role =
 *                              end}) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %rows = dim %a {axis = 0} : i64
 *       %left = sub %rows, %begin : i64
 *       %hi = min %left, %n : i64
 *       %x = load_tile %a, %begin, %one, %zero, %hi, %zero, %one, %zero, %n {access = [range, range], tensor_map = 1}
 *           : f16[64, 64]
 *       %y = load_tile %a, %begin, %one, %zero, %end, %zero, %one, %zero, %n {access = [range, range], tensor_map = 1,
 *           clears = [0], clears_behind = [0]} : f16[64, 64]
 *       %s = dot %x, %y, %acc {instruction = mma} : f32[64, 64]
 *       store_tile %c, %s, %begin, %one, %zero, %hi, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: `dim` of tensors, and `check_dim` of the kernel, by which extents of several tensors are one. Keeps: tile form.
 * Cost: linear. */
#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/map.h"

typedef struct Maps {
    TilePassContext *context;
    TileFunc *func;
    TileIndexView view;
    bool changed;
} Maps;

/* ---- extents ---- */

/* An extent of one of the kernel's arguments, or a multiple of one: of elements that are several in a byte. */
typedef struct Extent {
    uint32_t argument, axis;
    int64_t factor;
} Extent;

static bool is_extent(const TileOp *op, Extent *extent) {
    const TileValue *tensor = op && op->id == TILE_OP_DIM ? tile_op_operand(op, 0) : NULL;
    if (!tensor || tensor->op || tensor->block != &tile_op_func(op)->body) return false;
    const TileFunc *func = tile_op_func(op);
    const TileParameter *parameter = &func->parameters[tensor->index];
    bool phase = func->kind == TILE_FUNC_PHASE && parameter->role == TILE_ROLE_DATA;
    *extent = (Extent){phase ? parameter->argument : tensor->index, (uint32_t)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), 1};
    return true;
}

/* The same, or a constant times an extent. */
static bool is_multiple(const TileOp *op, Extent *extent) {
    int64_t factor = 1;
    bool times = op && op->id == TILE_OP_MUL && tile_value_integer(tile_op_operand(op, 1), &factor);
    if (!is_extent(times ? tile_op_operand(op, 0)->op : op, extent)) return false;
    extent->factor = factor;
    return true;
}

/* What makes the temporary that an argument of phases stands for; NULL: it is a parameter of the kernel. */
static const TileOp *find_temp(const TileFunc *kernel, uint32_t argument) {
    uint32_t number = kernel->body.argument_count;
    for (const TileOp *op = argument < number ? NULL : kernel->body.first; op; op = op->next)
        if (op->id == TILE_OP_TEMP && number++ == argument) return op;
    return NULL;
}

/* The extent of a temporary that has an element, 0, in place of none (gpu-pack): what is loaded there is 0 all the same. */
static const TileValue *made_from(const TileValue *extent) {
    const TileOp *most = tile_value_def(extent, TILE_OP_MAX);
    for (unsigned i = 0; most && i < 2; i++)
        if (tile_value_is_integer(tile_op_operand(most, i), 1)) return tile_op_operand(most, 1 - i);
    return extent;
}

static Extent times(Extent extent, int64_t factor) {
    extent.factor *= factor;
    return extent;
}

/* The extent that the kernel's launch compares this one with, or that a temporary is made with; itself: there is none. */
static Extent compared_extent(const Maps *maps, Extent extent) {
    const TileFunc *kernel = maps->func->kernel;
    const TileOp *temp = kernel ? find_temp(kernel, extent.argument) : NULL;
    Extent other;
    if (temp && !is_multiple(made_from(tile_op_operand(temp, extent.axis))->op, &other)) return extent;
    if (temp) extent = times(other, extent.factor);
    for (const TileOp *op = kernel ? kernel->body.first : NULL; op; op = op->next) {
        const TileValue *tensor = op->id == TILE_OP_CHECK_DIM ? tile_op_operand(op, 0) : NULL;
        if (!tensor || tensor->op || tensor->index != extent.argument ||
            tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) != extent.axis)
            continue;
        if (is_multiple(tile_op_operand(op, 1)->op, &other)) return times(other, extent.factor);
    }
    return extent;
}

/* Is the sum the extent of the load's dimension, and nothing else? */
static bool is_own_extent(const Maps *maps, const TileOp *load, uint32_t axis, const TileSum *sum) {
    if (sum->count != 1 || sum->constant || sum->products[0].degree != 1) return false;
    const TileValue *value = sum->products[0].symbols[0]->value;
    Extent extent, own = {maps->func->parameters[tile_op_operand(load, 0)->index].argument, axis, 1};
    if (!value || !is_extent(value->op, &extent)) return false;
    Extent a = compared_extent(maps, times(extent, sum->products[0].factor)), b = compared_extent(maps, own);
    return a.argument == b.argument && a.axis == b.axis && a.factor == b.factor;
}

/* Where the first of the lanes from the number on lies that is not in front of something: of lanes side by side the first lane's
 * place and the number, of others, whose number is (end - first + step - 1) / step, the end. NULL: it is not of that form. */
static const TileSum *end_of_lanes(Maps *maps, const TileAccessIndex *index, const TileValue *number) {
    TileSumTable *table = tile_index_table(maps->view.indices);
    const TileSum *first = tile_index_sum(&maps->view, index->first);
    int64_t step = gpu_step_of_index(index);
    const TileOp *quotient = step > 1 ? tile_value_def(number, TILE_OP_DIV) : NULL;
    if (step == 1) return tile_sum_add(table, tile_index_sum(&maps->view, number), first);
    if (!quotient || !tile_value_is_integer(tile_op_operand(quotient, 1), step)) return NULL;
    const TileSum *sum = tile_sum_add(table, tile_index_sum(&maps->view, tile_op_operand(quotient, 0)), first);
    return tile_sum_add(table, sum, tile_sum_integer(table, 1 - step));
}

/* The same of a number that is a share of the lesser of what is left and of the places of all lanes: (min(left, all) + step - 1) / step. */
static const TileSum *end_of_places(Maps *maps, const TileAccessIndex *index, const TileValue *number, int64_t lanes) {
    int64_t step = gpu_step_of_index(index), all;
    const TileOp *quotient = step > 1 ? tile_value_def(number, TILE_OP_DIV) : NULL;
    const TileOp *sum = quotient ? tile_value_def(tile_op_operand(quotient, 0), TILE_OP_ADD) : NULL;
    if (!sum || !tile_value_is_integer(tile_op_operand(quotient, 1), step)) return step == 1 ? end_of_lanes(maps, index, number) : NULL;
    const TileOp *least = NULL;
    for (unsigned i = 0; i < 2; i++)
        if (tile_value_is_integer(tile_op_operand(sum, i), step - 1)) least = tile_value_def(tile_op_operand(sum, 1 - i), TILE_OP_MIN);
    for (unsigned i = 0; least && i < 2; i++)
        if (tile_value_integer(tile_op_operand(least, i), &all) && all >= tile_map_reach((uint32_t)lanes, (uint32_t)step))
            return tile_sum_add(tile_index_table(maps->view.indices), tile_index_sum(&maps->view, tile_op_operand(least, 1 - i)),
                                tile_index_sum(&maps->view, index->first));
    return end_of_lanes(maps, index, number);
}

/* Is the sum known not to be negative, since none of what it adds up is? */
static bool is_not_negative(const Maps *maps, const TileSum *sum) {
    if (sum->constant < 0) return false;
    for (unsigned i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        const TileValue *value = product->degree == 1 ? product->symbols[0]->value : NULL;
        if (!value || product->factor < 0 || tile_index_range(maps->view.indices, value).lo < 0) return false;
    }
    return true;
}

/* Is the first number at least the second: n / step - k, of which the second is (n - step * k - a number) / step? So many programs there are along an
 * axis of which each takes every second place. */
static bool is_no_less(Maps *maps, const TileValue *number, const TileValue *share) {
    TileSumTable *table = tile_index_table(maps->view.indices);
    const TileSum *sum = tile_index_sum(&maps->view, number);
    const TileOp *lesser = tile_value_def(share, TILE_OP_DIV);
    int64_t step;
    if (!lesser || !tile_value_integer(tile_op_operand(lesser, 1), &step) || step < 1) return false;
    for (unsigned i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        const TileValue *value = product->degree == 1 && product->factor == 1 ? product->symbols[0]->value : NULL;
        const TileOp *quotient = value ? tile_value_def(value, TILE_OP_DIV) : NULL;
        if (!quotient || !tile_value_is_integer(tile_op_operand(quotient, 1), step)) continue;
        const TileSum *rest = tile_sum_subtract(table, sum, tile_sum_term(table, product));
        const TileSum *all = tile_sum_add(table, tile_index_sum(&maps->view, tile_op_operand(quotient, 0)),
                                          tile_sum_multiply(table, tile_sum_integer(table, step), rest));
        return is_not_negative(maps, tile_sum_subtract(table, all, tile_index_sum(&maps->view, tile_op_operand(lesser, 0))));
    }
    return false;
}

/* Of two bounds that are both the lesser of a number and of all lanes the one that is not the greater in any case; NULL: it is not known. */
static const TileValue *lesser_of(Maps *maps, const TileOp *least, int64_t lanes) {
    const TileValue *number[2] = {NULL, NULL};
    int64_t all;
    for (unsigned i = 0; i < 2; i++) {
        const TileOp *own = tile_value_def(tile_op_operand(least, i), TILE_OP_MIN);
        for (unsigned k = 0; own && k < 2; k++)
            if (tile_value_integer(tile_op_operand(own, k), &all) && all >= lanes) number[i] = tile_op_operand(own, 1 - k);
    }
    if (!number[0] || !number[1]) return NULL;
    return is_no_less(maps, number[0], number[1]) ? number[1] : is_no_less(maps, number[1], number[0]) ? number[0] : NULL;
}

/* Do all lanes from `hi` on lie beyond the end of the tensor? `hi` is the number of lanes, or the lesser of that and of
 * what is left of the extent. */
static bool ends_with_tensor(Maps *maps, const TileOp *load, uint32_t axis, const TileAccessIndex *index, int64_t lanes) {
    int64_t constant;
    const TileValue *hi = load->id == TILE_OP_LOAD_TILE ? gpu_bound_of_map(load, index->hi) : index->hi;
    if (tile_value_integer(hi, &constant)) return constant == lanes;
    const TileOp *least = tile_value_def(hi, TILE_OP_MIN);
    const TileValue *left = hi;
    for (unsigned i = 0; least && i < 2; i++)
        if (tile_value_integer(tile_op_operand(least, i), &constant) && constant >= lanes)
            left = tile_op_operand(least, 1 - i);
    const TileValue *lesser = least && left == hi ? lesser_of(maps, least, lanes) : NULL;
    if (lesser) left = lesser;
    const TileSum *end = least ? end_of_lanes(maps, index, left) : end_of_places(maps, index, hi, lanes);
    return end && is_own_extent(maps, load, axis, end);
}

/* ---- loads ---- */

static const char *why_no_dimension(const TileAccessIndex *index, const TileType *tile) {
    if (index->kind == TILE_ACCESS_INDEX) return NULL;
    if (index->kind == TILE_ACCESS_GATHER) return "it gathers";
    if (index->kind == TILE_ACCESS_POSITION) return NULL; /* gpu-positions has asked */
    int64_t step = gpu_step_of_index(index);
    bool last = index->axis + 1 == (int)tile->rank;
    if (step < 1 || step > TILE_MAP_MOST_STEP) return "its range has a step that is not known, or more than 8";
    if (step > 1 && last) return "its rows have a step";
    bool far = step > 1 && tile_map_reach((uint32_t)tile->extent[index->axis], (uint32_t)step) > TILE_MAP_MOST_EXTENT;
    return far ? "its range reaches over more than 256 elements" : NULL;
}

/* Are all lanes before `lo` in front of the tensor's beginning? `lo` is 0, or the greater of that and the distance of the
 * first lane from there. */
static bool begins_with_tensor(Maps *maps, const TileAccessIndex *index) {
    int64_t number;
    const TileOp *most = tile_value_def(index->lo, TILE_OP_MAX);
    if (tile_value_integer(index->lo, &number)) return number == 0;
    const TileValue *before = NULL;
    for (unsigned i = 0; most && i < 2; i++)
        if (tile_value_integer(tile_op_operand(most, i), &number) && number == 0) before = tile_op_operand(most, 1 - i);
    const TileSum *sum = before ? end_of_lanes(maps, index, before) : NULL;
    return sum && sum->count == 0 && sum->constant == 0;
}

/* Are all lanes outside of the range outside of the tensor? */
static bool is_exact(Maps *maps, const TileOp *op, uint32_t d, const TileType *tile, const TileAccessIndex *index) {
    if (index->kind != TILE_ACCESS_RANGE) return true;
    if (!begins_with_tensor(maps, index)) return false;
    return ends_with_tensor(maps, op, d, index, tile->extent[index->axis]);
}

static void set_clears(Maps *maps, TileOp *load) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    int64_t axes[TILE_MAX_TENSOR_RANK];
    int64_t behind[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(load, indices), count = 0, count_behind = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (is_exact(maps, load, d, load->results[0].type, &indices[d])) continue;
        axes[count++] = indices[d].axis;
        if (begins_with_tensor(maps, &indices[d])) behind[count_behind++] = indices[d].axis;
    }
    if (count) tile_op_set_integers(maps->context->module, load, TILE_ATTRIBUTE_CLEARS, axes, count);
    if (count_behind) tile_op_set_integers(maps->context->module, load, TILE_ATTRIBUTE_CLEARS_BEHIND, behind, count_behind);
}

/* Does the box begin at a multiple of 16 bytes along the last axis? */
static bool begins_aligned(Maps *maps, const TileAccessIndex *last, const TileType *tile) {
    int64_t multiple = tile_index_range(maps->view.indices, last->first).multiple;
    return multiple * (int64_t)tile_scalar_bytes(tile->scalar) % TILE_CHUNK_BYTES == 0;
}

/* NULL: a map can carry out the load. */
static const char *why_not(Maps *maps, const TileOp *load) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tensor = tile_op_operand(load, 0);
    unsigned rank = tile_access_read(load, indices);
    if (tensor->op || tensor->block != &maps->func->body) return "it is of a temporary";
    if (tile_op_has_part(load, TILE_PARTS_MASK)) return "it has a mask";
    const TileType *tile = load->results[0].type;
    const char *misfit = tile->rank == 1 ? gpu_map_fits_vector(tile) : gpu_map_fits_tile(tile);
    if (misfit) return misfit;
    for (uint32_t d = 0; d < rank; d++) {
        const char *why = why_no_dimension(&indices[d], tile);
        if (why) return why;
    }
    if (indices[rank - 1].axis + 1 != (int)load->results[0].type->rank)
        return "its rows do not lie along the tensor's last axis";
    if (!begins_aligned(maps, &indices[rank - 1], load->results[0].type))
        return "its rows may not begin at a multiple of 16 bytes";
    return gpu_map_fits_tensor(&maps->func->parameters[tensor->index], tensor->type);
}

/* Stores write whole chunks of 16 bytes, beyond the end of rows too. */
static bool has_whole_rows(Maps *maps, const TileValue *tensor) {
    TileParameter *parameter = &maps->func->parameters[tensor->index];
    uint32_t divisor = TILE_CHUNK_BYTES / tile_scalar_bytes(tensor->type->scalar);
    int64_t known = parameter->facts.multiple[tensor->type->rank - 1];
    maps->changed |= !(parameter->asked_multiple & divisor);
    parameter->asked_multiple |= divisor;
    return known != TILE_UNKNOWN && known % divisor == 0;
}

/* NULL: each element along the dimension is a position; as many as there are are the map's, whose corners are the tensor's own. */
static const char *why_not_all_positions(Maps *maps, const TileOp *store, uint32_t d, const TileAccessIndex *index) {
    enum { MOST = 256 };
    if (tile_op_named(store, TILE_OPERAND_VALUE)->type->extent[0] > MOST) return "it has more than 256 positions";
    if (!tile_value_is_integer(index->step, 1) || !tile_value_is_integer(index->lo, 0)) return "its positions are not all elements of an image";
    bool all = tile_value_def(index->hi, TILE_OP_DIM) && is_own_extent(maps, store, d, tile_index_sum(&maps->view, index->hi));
    return all ? NULL : "its positions are not all elements of an image";
}

/* NULL: a map can carry out the store. It leaves out what is outside of the tensor, and nothing else. */
static const char *why_not_stored(Maps *maps, const TileOp *store) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tensor = tile_op_operand(store, 0);
    const TileType *tile = tile_op_named(store, TILE_OPERAND_VALUE)->type;
    unsigned rank = tile_access_read(store, indices);
    if (tile_op_has_part(store, TILE_PARTS_MASK)) return "it has a mask";
    const char *misfit = gpu_map_fits_tile(tile);
    if (misfit) return misfit;
    for (uint32_t d = 0; d < rank; d++) {
        const char *why = why_no_dimension(&indices[d], tile);
        if (!why && indices[d].kind == TILE_ACCESS_POSITION) why = why_not_all_positions(maps, store, d, &indices[d]);
        if (why) return why;
        if (!is_exact(maps, store, d, tile, &indices[d])) return "its range may end before the tensor does";
        if (indices[d].kind == TILE_ACCESS_RANGE && !tile_value_integer(indices[d].lo, &(int64_t){0}))
            return "its range may begin before the tensor does";
    }
    if (indices[rank - 1].axis + 1 != (int)tile->rank) return "its rows do not lie along the tensor's last axis";
    if (!begins_aligned(maps, &indices[rank - 1], tile)) return "its rows may not begin at a multiple of 16 bytes";
    if (!has_whole_rows(maps, tensor)) return "the tensor's rows may not be a multiple of 16 bytes";
    for (const TileUse *use = tensor->first_use; use; use = use->next)
        if (use->user != store && tile_accessed_tile(use->user)) return "the kernel accesses the tensor elsewhere, too";
    return gpu_map_fits_tensor(&maps->func->parameters[tensor->index], tensor->type);
}

/* Sums of products that are narrower than a fragment's sector of memory are worth the way through shared memory. */
static void decide_store(Maps *maps, TileOp *store) {
    enum { BYTES = 2 };
    const TileType *tile = tile_op_named(store, TILE_OPERAND_VALUE)->type;
    if (!gpu_has_rows(tile) || tile_scalar_bytes(tile->scalar) != BYTES) return;
    TileParameter *parameter = &maps->func->parameters[tile_op_operand(store, 0)->index];
    bool asked = parameter->asked_map;
    const char *why = why_not_stored(maps, store);
    maps->changed |= parameter->asked_map != asked || !why;
    if (why)
        tile_pass_remark(maps->context, store, TILE_DECISION_NO_TENSOR_MAP, tile_op_operand(store, 0)->name, "%s", why);
    else
        tile_op_set_integer(maps->context->module, store, TILE_ATTRIBUTE_TENSOR_MAP, 1);
}

/* Products read tiles from where a map copies them, and threads what products take that is computed on its way, and vectors
 * that are computed with between products. */
static void decide(TileOp *load, void *state) {
    Maps *maps = state;
    if (load->id == TILE_OP_STORE_TILE) decide_store(maps, load);
    if (load->id != TILE_OP_LOAD_TILE) return;
    if (!gpu_load_is_moved(load)) return;
    TileParameter *parameter = &maps->func->parameters[tile_op_operand(load, 0)->index];
    bool asked = parameter->asked_map;
    const char *why = why_not(maps, load);
    maps->changed |= parameter->asked_map != asked;
    if (why) {
        tile_pass_remark(maps->context, load, TILE_DECISION_NO_TENSOR_MAP, tile_op_operand(load, 0)->name, "%s", why);
        return;
    }
    tile_op_set_integer(maps->context->module, load, TILE_ATTRIBUTE_TENSOR_MAP, 1);
    if (!gpu_load_is_vector(load)) set_clears(maps, load);
    maps->changed = true;
}

TileResult tile_pass_gpu_tensor_maps(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !gpu_copies_by_maps(context->target)) return TILE_RESULT_UNCHANGED;
    GpuDots dots = gpu_find_dots(func, &func->body);
    if (!dots.count || dots.multiplied.count) return TILE_RESULT_UNCHANGED; /* no tensor cores */
    Maps maps = {.context = context, .func = func};
    tile_index_view_init(&maps.view, tile_pass_indices(context, func), NULL, false);
    tile_block_walk(&func->body, decide, &maps);
    return maps.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
