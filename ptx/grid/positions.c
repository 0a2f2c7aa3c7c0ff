/* Purpose: load what products take of consecutive positions of a batch of images as such (access `position`), so that a tensor map in mode im2col
 * can copy it. A text says it by index tiles: the image, the row and the column of each lane are quotients and remainders of consecutive numbers,
 * a place in a window is added, and what lies outside is 0. What is stored along such positions is stored so, too: no lane then
 * divides, and nothing is asked but where positions end.
 *
 * Run: --passes=gpu-positions,dce --target=sm_90a
 * Before:
 *     func kernel tile @k(%x: tensor<f16, 3, in> {map}, %w: tensor<f16, 2, in> {map}, %y: tensor<f32, 2, out> {noalias}, %n: tensor<f32, 1, in>) {
 *       %B = dim %x {axis = 0} : i64
 *       %Q = dim %n {axis = 0} : i64
 *       %W = dim %x {axis = 1} : i64
 *       %C = dim %x {axis = 2} : i64
 *       %all = mul %B, %Q : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %three = const {value = 3} : i64
 *       %64 = const {value = 64} : i64
 *       %none = const {value = -1} : i64
 *       %nothing = const {value = 0.0} : f16[64, 64]
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       grid %one (%m: i64) {
 *         %first = mul %m, %64 : i64
 *         %left = sub %all, %first : i64
 *         %hi = min %left, %64 : i64
 *         %i = iota {axis = 0} : i64[64]
 *         %f = splat %first : i64[64]
 *         %at = add %i, %f : i64[64]
 *         %q = splat %Q : i64[64]
 *         %b = div %at, %q : i64[64]
 *         %p = rem %at, %q : i64[64]
 *         %bs = fill %b, %none, %zero, %hi {axes = [0]} : i64[64]
 *         %b0 = splat %zero : i64[64]
 *         %b1 = splat %B : i64[64]
 *         %c0 = ge %bs, %b0 : bool[64]
 *         %c1 = lt %bs, %b1 : bool[64]
 *         %c2 = and %c0, %c1 : bool[64]
 *         %s = for %zero, %three, %one, %acc : f32[64, 64] (%j: i64, %t: f32[64, 64]) {
 *           %js = splat %j : i64[64]
 *           %w0 = add %p, %js : i64[64]
 *           %ws = fill %w0, %none, %zero, %hi {axes = [0]} : i64[64]
 *           %w1 = splat %W : i64[64]
 *           %c3 = ge %ws, %b0 : bool[64]
 *           %c4 = lt %ws, %w1 : bool[64]
 *           %c5 = and %c3, %c4 : bool[64]
 *           %c6 = and %c2, %c5 : bool[64]
 *           %c7 = reshape %c6 : bool[64, 1]
 *           %mask = broadcast %c7 : bool[64, 64]
 *           %v = load_tile %x, %bs, %ws, %zero, %one, %zero, %64, %mask {access = [gather, gather, range], parts = [mask]} : f16[64, 64]
 *           %a = select %mask, %v, %nothing : f16[64, 64]
 *           %u = load_tile %w, %zero, %one, %zero, %64, %zero, %one, %zero, %64 {access = [range, range]} : f16[64, 64]
 *           %r = dot %a, %u, %t : f32[64, 64]
 *           yield %r
 *         }
 *         store_tile %y, %s, %first, %one, %zero, %hi, %zero, %one, %zero, %64 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f16, 3, in> {map, asked_map}, %w: tensor<f16, 2, in> {map}, %y: tensor<f32, 2, out> {noalias}, %n:
 *         tensor<f32, 1, in>) {
 *       %B = dim %x {axis = 0} : i64
 *       %Q = dim %n {axis = 0} : i64
 *       %all = mul %B, %Q : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %three = const {value = 3} : i64
 *       %0 = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       grid %one (%m: i64) {
 *         %first = mul %m, %0 : i64
 *         %1 = rem %first, %Q : i64
 *         %2 = div %first, %Q : i64
 *         %left = sub %all, %first : i64
 *         %hi = min %left, %0 : i64
 *         %s = for %zero, %three, %one, %acc : f32[64, 64] (%j: i64, %t: f32[64, 64]) {
 *           %3 = const {value = 1} : i64
 *           %4 = const {value = 0} : i64
 *           %5 = dim %x {axis = 0} : i64
 *           %6 = const {value = 1} : i64
 *           %v = load_tile %x, %2, %3, %4, %5, %1, %6, %j, %Q, %zero, %one, %zero, %0 {access = [position, position, range]} : f16[64,
 *               64]
 *           %u = load_tile %w, %zero, %one, %zero, %0, %zero, %one, %zero, %0 {access = [range, range]} : f16[64, 64]
 *           %r = dot %v, %u, %t : f32[64, 64]
 *           yield %r
 *         }
 *         store_tile %y, %s, %first, %one, %zero, %hi, %zero, %one, %zero, %0 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-pack, which copies what no map describes. Keeps: tile form. Cost: linear in the ops. */
#include "base/tensor_map.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/grid/position_form.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"

enum { MOST_POSITIONS = 256 };

/* ---- the loads ---- */

/* Does a product take the tile, with zeros in place of lanes that are not there? */
static bool is_operand(const TileValue *tile, const TilePtxTarget *target, unsigned depth) {
    enum { MOST_DEPTH = 6 };
    bool found = false;
    for (const TileUse *use = tile->first_use; use && !found && depth < MOST_DEPTH; use = use->next) {
        const TileOp *user = use->user;
        bool passes = user->id == TILE_OP_PERMUTE || (user->id == TILE_OP_FILL && use->index == 0) || (user->id == TILE_OP_SELECT && use->index == 1);
        found = user->id == TILE_OP_DOT ? use->index < 2 && gpu_dot_takes_maps(target, user) : passes && is_operand(&user->results[0], target, depth + 1);
    }
    return found;
}

static const char *why_no_map(TileFunc *func, const TileOp *load, bool *changed) {
    const TileValue *tensor = tile_op_operand(load, 0);
    const TileType *tile = load->results[0].type;
    if (tensor->op || tensor->block != &func->body) return "it is of a temporary";
    if (tile->rank != 2 || tile->extent[0] > MOST_POSITIONS) return "it has more than 256 positions";
    if (tile->extent[1] * (int64_t)tile_scalar_bytes(tile->scalar) % GPU_PANEL_BYTES) return "its rows are no multiple of 128 bytes";
    const char *misfit = gpu_map_fits_tile(tile);
    TileParameter *parameter = &func->parameters[tensor->index];
    *changed |= !misfit && !parameter->asked_map;
    return misfit ? misfit : gpu_map_fits_tensor(parameter, tensor->type);
}

/* No bit is set: what a map copies of outside. */
static bool is_zero(const TileValue *value) {
    uint64_t bits;
    const TileOp *splat = tile_value_def(value, TILE_OP_SPLAT);
    return tile_value_bits(splat ? tile_op_operand(splat, 0) : value, &bits) && !bits;
}

/* Zeros that the mask puts in place of lanes that are outside are there already. */
static void drop_selects(TileValue *tile, const TileValue *mask) {
    for (TileUse *use = tile->first_use, *next; use; use = next) {
        next = use->next;
        TileOp *user = use->user;
        if (user->id == TILE_OP_FILL && use->index == 0) drop_selects(&user->results[0], mask);
        if (user->id != TILE_OP_SELECT || use->index != 1 || tile_op_operand(user, 0) != mask || !is_zero(tile_op_named(user, TILE_OPERAND_Y))) continue;
        drop_selects(&user->results[0], mask);
        tile_value_replace(&user->results[0], tile);
        tile_op_erase(user);
        next = tile->first_use; /* the list has changed */
    }
}

/* Divided where the program begins, not beside the sums of products, which have nearly all registers. */
static TileValue *first_number(TileBuilder *access, const GpuPositions *positions, unsigned d) {
    TileValue *number = positions->first;
    bool divides = number && number->op && tile_value_block(number) == tile_value_block(positions->numbers);
    TileBuilder begin = divides ? tile_builder_before(access->module, number->op->next) : *access, *b = divides ? &begin : access;
    b->location = access->location;
    if (!number) number = tile_build_i64(b, 0);
    for (unsigned i = positions->dimensions - 2; i > d; i--) number = tile_build_binary(b, TILE_OP_DIV, number, positions->axes[i].count);
    return d ? tile_build_binary(b, TILE_OP_REM, number, positions->axes[d].count) : number;
}

static TileValue *sum_of_added(TileBuilder *b, const GpuPositionAxis *axis) {
    TileValue *sum = NULL;
    for (unsigned i = axis->added_count; i-- > 0;) {
        if (!sum && axis->minus[i]) sum = tile_build_i64(b, 0);
        sum = sum ? tile_build_binary(b, axis->minus[i] ? TILE_OP_SUB : TILE_OP_ADD, sum, axis->added[i]) : axis->added[i];
    }
    if (!sum) return tile_build_i64(b, axis->constant);
    return axis->constant ? tile_build_binary(b, TILE_OP_ADD, sum, tile_build_i64(b, axis->constant)) : sum;
}

/* The access with positions in place of index tiles. */
static TileOp *build_access(TileBuilder *b, const GpuPositions *positions) {
    const TileOp *access = positions->access;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileValue *operands[2 + 4 * TILE_MAX_TENSOR_RANK] = {tile_op_operand(access, 0), tile_op_operand(access, 1)};
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    unsigned count = tile_access_first(access), rank = tile_access_read(access, indices);
    for (unsigned d = 0; d + 1 < rank; d++) {
        const GpuPositionAxis *axis = &positions->axes[d];
        kinds[d] = TILE_ACCESS_POSITION;
        operands[count++] = first_number(b, positions, d);
        operands[count++] = tile_build_i64(b, axis->step);
        operands[count++] = sum_of_added(b, axis);
        operands[count++] = axis->count ? axis->count : tile_build_dim(b, operands[0], d);
    }
    kinds[rank - 1] = TILE_ACCESS_RANGE;
    for (unsigned i = 0; i < 4; i++) operands[count++] = tile_op_operand(access, indices[rank - 1].operand + i);
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_ACCESS, .count = rank, .integers = kinds};
    const TileType *type = access->result_count ? access->results[0].type : NULL;
    return tile_build_op(b, (TileOpId)access->id, operands, count, &attribute, 1, &type, access->result_count);
}

static void replace_load(TilePassContext *context, const GpuPositions *positions) {
    TileOp *load = positions->access;
    TileBuilder b = tile_builder_before(context->module, load);
    b.location = load->location;
    TileValue *made = tile_op_result(build_access(&b, positions), 0);
    made->name = load->results[0].name;
    const TileValue *mask = tile_op_has_part(load, TILE_PARTS_MASK) ? tile_op_named(load, TILE_OPERAND_MASK) : NULL;
    tile_value_replace(&load->results[0], made);
    if (mask) drop_selects(made, mask);
    tile_op_erase(load);
}

/* ---- the kernel ---- */

typedef struct Found {
    TilePassContext *context;
    TileFunc *func;
    TileIndexView view;
    TILE_LIST(GpuPositions) accesses;
    bool changed;
} Found;

static void look_at_load(Found *found, TileOp *load) {
    GpuPositions positions;
    if (!tile_op_is(load->block->op, TILE_OP_FOR) || !is_operand(&load->results[0], tile_ptx_target_of(found->context->target), 0)) return;
    const char *why = gpu_position_form(&found->view, load, &positions);
    if (!why) why = why_no_map(found->func, load, &found->changed);
    tile_pass_remark(found->context, load, why ? TILE_DECISION_NOT_BY_POSITIONS : TILE_DECISION_BY_POSITIONS, tile_op_operand(load, 0)->name, "%s",
                     why ? why : "its map is in mode im2col");
    if (!why) tile_list_push(found->context->scratch, &found->accesses, positions);
}

/* Sums of products along the same numbers. */
static void look_at_store(Found *found, TileOp *store) {
    GpuPositions positions;
    if (!tile_value_def(tile_op_named(store, TILE_OPERAND_VALUE), TILE_OP_CONST) && !gpu_position_form(&found->view, store, &positions))
        tile_list_push(found->context->scratch, &found->accesses, positions);
}

static void look(TileOp *op, void *state) {
    const TileAttribute *kinds = tile_op_get(op, TILE_ATTRIBUTE_ACCESS);
    if (!kinds || kinds->count < 2 || kinds->integers[0] != TILE_ACCESS_GATHER) return;
    if (op->id == TILE_OP_LOAD_TILE) look_at_load(state, op);
    if (op->id == TILE_OP_STORE_TILE) look_at_store(state, op);
}

/* Stores go with the loads of their grid. */
static void replace_accesses(Found *found) {
    bool loads = false;
    for (size_t i = 0; i < found->accesses.count; i++) loads |= found->accesses.items[i].access->id == TILE_OP_LOAD_TILE;
    for (size_t i = 0; i < found->accesses.count && loads; i++) {
        const GpuPositions *positions = &found->accesses.items[i];
        TileBuilder b = tile_builder_before(found->context->module, positions->access);
        b.location = positions->access->location;
        if (positions->access->id == TILE_OP_LOAD_TILE) {
            replace_load(found->context, positions);
        } else {
            build_access(&b, positions);
            tile_op_erase(positions->access);
        }
    }
    found->changed |= loads;
    found->accesses.count = 0;
}

TileResult tile_pass_gpu_positions(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_KERNEL || !gpu_copies_by_maps(context->target)) return TILE_RESULT_UNCHANGED;
    Found found = {.context = context, .func = func};
    tile_index_view_init(&found.view, tile_pass_indices(context, func), NULL, false);
    for (TileOp *op = func->body.first; op; op = op->next) {
        if (op->id != TILE_OP_GRID) continue;
        tile_block_walk(&op->regions[0], look, &found);
        replace_accesses(&found);
    }
    return found.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
