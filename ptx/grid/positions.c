/* Purpose: load what products take of consecutive positions of a batch of images as such (access `position`), so that a tensor map in mode im2col
 * can copy it. A text says it by index tiles: the image, the row and the column of each lane are quotients and remainders of consecutive numbers,
 * a place in a window is added, and what lies outside is 0. A map has its corners in few bits: the launch compares, and a grid of its own has
 * the programs where a map can do it; the one that was there has them where it cannot.
 *
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
 * Needs: gpu-pack, which copies what no map describes. Keeps: tile form; each program runs in one of both grids. Cost: linear in the ops, and
 * the grid once more. */
#include "base/tensor_map.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/grid/position_form.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"

enum { MOST_POSITIONS = 256, SAFE = 1 << 20 };

/* What the launch computes in front of the grid: whether maps have corners and offsets for all that its programs load. */
typedef struct Guard {
    TileBuilder b;
    const TileOp *grid;
    TileValue *holds; /* NULL: nothing has been asked yet */
} Guard;

typedef struct Bounds {
    TileValue *lo, *hi; /* inclusive; NULL: not known */
} Bounds;

static TileValue *binary(Guard *guard, TileOpId id, TileValue *x, TileValue *y) { return tile_build_binary(&guard->b, id, x, y); }

static TileValue *plus(Guard *guard, TileValue *x, int64_t number) {
    return number ? binary(guard, TILE_OP_ADD, x, tile_build_i64(&guard->b, number)) : x;
}

static void ask(Guard *guard, TileValue *condition) { guard->holds = guard->holds ? binary(guard, TILE_OP_AND, guard->holds, condition) : condition; }

static void ask_between(Guard *guard, int64_t lo, Bounds bounds, int64_t hi) {
    ask(guard, binary(guard, TILE_OP_GE, bounds.lo, tile_build_i64(&guard->b, lo)));
    ask(guard, binary(guard, TILE_OP_LE, bounds.hi, tile_build_i64(&guard->b, hi)));
}

/* ---- how far numbers go ---- */

static Bounds bounds_of(Guard *guard, TileValue *value, unsigned products);

/* What is multiplied is near 0, or the launch says that it is not: products do not wrap. */
static Bounds product_bounds(Guard *guard, const TileOp *op, unsigned products) {
    enum { MOST_PRODUCTS = 2 };
    Bounds x = {0}, y = {0};
    if (products < MOST_PRODUCTS) x = bounds_of(guard, tile_op_operand(op, 0), products + 1), y = bounds_of(guard, tile_op_operand(op, 1), products + 1);
    if (!x.lo || !y.lo || (x.lo != x.hi && y.lo != y.hi)) return (Bounds){0};
    TileValue *a = binary(guard, TILE_OP_MUL, x.lo, y.lo), *c = binary(guard, TILE_OP_MUL, x.hi, y.hi);
    if (x.lo == x.hi && y.lo == y.hi) return (Bounds){a, a};
    return (Bounds){binary(guard, TILE_OP_MIN, a, c), binary(guard, TILE_OP_MAX, a, c)};
}

static Bounds quotient_bounds(Guard *guard, const TileOp *op, unsigned products) {
    int64_t number;
    Bounds x = bounds_of(guard, tile_op_operand(op, 0), products);
    if (!x.lo || !tile_value_integer(tile_op_operand(op, 1), &number) || number < 1) return (Bounds){0};
    TileValue *by = tile_build_i64(&guard->b, number);
    return (Bounds){binary(guard, TILE_OP_DIV, x.lo, by), binary(guard, TILE_OP_DIV, x.hi, by)};
}

/* Of an index of the grid, or of a loop in it that goes up. */
static Bounds index_bounds(Guard *guard, const TileValue *value) {
    const TileOp *of = value->block->op;
    int64_t step;
    if (of == guard->grid) return (Bounds){tile_build_i64(&guard->b, 0), plus(guard, tile_op_operand(of, value->index), -1)};
    if (of->id != TILE_OP_FOR || value->index || !tile_value_integer(tile_op_named(of, TILE_OPERAND_STEP), &step) || step < 1) return (Bounds){0};
    Bounds lo = bounds_of(guard, tile_op_named(of, TILE_OPERAND_LO), 0), hi = bounds_of(guard, tile_op_named(of, TILE_OPERAND_HI), 0);
    return lo.lo && hi.hi ? (Bounds){lo.lo, plus(guard, hi.hi, -1)} : (Bounds){0};
}

static Bounds bounds_of(Guard *guard, TileValue *value, unsigned products) {
    int64_t number;
    TileOp *op = value->op;
    if (tile_value_integer(value, &number) && number > -SAFE && number < SAFE) {
        TileValue *constant = tile_build_i64(&guard->b, number);
        return (Bounds){constant, constant};
    }
    if (tile_value_outside(value, guard->grid)) {
        ask_between(guard, -SAFE, (Bounds){value, value}, SAFE);
        return (Bounds){value, value};
    }
    if (!op) return index_bounds(guard, value);
    if (op->id == TILE_OP_MUL) return product_bounds(guard, op, products);
    if (op->id == TILE_OP_DIV) return quotient_bounds(guard, op, products);
    if (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB) return (Bounds){0};
    Bounds x = bounds_of(guard, tile_op_operand(op, 0), products), y = bounds_of(guard, tile_op_operand(op, 1), products);
    bool minus = op->id == TILE_OP_SUB, exact = x.lo == x.hi && y.lo == y.hi;
    if (!x.lo || !y.lo) return (Bounds){0};
    TileValue *lo = binary(guard, (TileOpId)op->id, x.lo, minus ? y.hi : y.lo);
    return (Bounds){lo, exact ? lo : binary(guard, (TileOpId)op->id, x.hi, minus ? y.lo : y.hi)};
}

/* ---- the condition ---- */

/* The far corner is one that a map has, and what is added to positions is an offset from the near one. */
static bool ask_for_axis(Guard *guard, const GpuPositions *positions, unsigned d) {
    const GpuPositionAxis *axis = &positions->axes[d];
    unsigned rank = positions->dimensions;
    int64_t corner = tile_map_usual_corner(rank), most = INT64_C(1) << tile_map_corner_bits(rank);
    TileValue *extent = tile_build_dim(&guard->b, tile_op_operand(positions->load, 0), d), *sum = tile_build_i64(&guard->b, 0);
    Bounds added = {sum, sum}, count = {axis->count, axis->count};
    if (!tile_value_outside(axis->count, guard->grid)) return false;
    for (unsigned i = 0; i < axis->added_count; i++) {
        Bounds more = bounds_of(guard, axis->added[i], 0);
        if (!more.lo) return false;
        TileOpId id = axis->minus[i] ? TILE_OP_SUB : TILE_OP_ADD;
        added = (Bounds){binary(guard, id, added.lo, axis->minus[i] ? more.hi : more.lo), binary(guard, id, added.hi, axis->minus[i] ? more.lo : more.hi)};
    }
    ask_between(guard, corner, added, corner + most - 1);
    ask(guard, binary(guard, TILE_OP_GE, count.lo, tile_build_i64(&guard->b, 1)));
    TileValue *far = binary(guard, TILE_OP_SUB, binary(guard, TILE_OP_MUL, plus(guard, axis->count, -1), tile_build_i64(&guard->b, axis->step)), extent);
    far = plus(guard, far, corner + 1);
    ask_between(guard, -most / 2, (Bounds){far, far}, most / 2 - 1);
    return true;
}

static const char *ask_for_load(Guard *guard, const GpuPositions *positions) {
    for (unsigned d = 1; d + 1 < positions->dimensions; d++)
        if (!ask_for_axis(guard, positions, d)) return "nothing says how far what is added to its positions goes";
    return NULL;
}

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

static const char *why_no_map(TilePassContext *context, TileFunc *func, const TileOp *load, bool *changed) {
    (void)context;
    const TileValue *tensor = tile_op_operand(load, 0);
    const TileType *tile = load->results[0].type;
    if (tensor->op || tensor->block != &func->body) return "it is of a temporary";
    if (tile->rank != 2 || tile->extent[0] > MOST_POSITIONS) return "it has more than 256 positions";
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

static TileValue *first_number(TileBuilder *b, const GpuPositions *positions, unsigned d) {
    TileValue *number = positions->first ? positions->first : tile_build_i64(b, 0);
    for (unsigned i = positions->dimensions - 2; i > d; i--) number = tile_build_binary(b, TILE_OP_DIV, number, positions->axes[i].count);
    return d ? tile_build_binary(b, TILE_OP_REM, number, positions->axes[d].count) : number;
}

static TileValue *sum_of_added(TileBuilder *b, const GpuPositionAxis *axis) {
    TileValue *sum = tile_build_i64(b, 0);
    for (unsigned i = 0; i < axis->added_count; i++) sum = tile_build_binary(b, axis->minus[i] ? TILE_OP_SUB : TILE_OP_ADD, sum, axis->added[i]);
    return sum;
}

static void replace(TilePassContext *context, const GpuPositions *positions) {
    TileOp *load = positions->load;
    TileBuilder b = tile_builder_before(context->module, load);
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileValue *operands[1 + 4 * TILE_MAX_TENSOR_RANK] = {tile_op_operand(load, 0)};
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    unsigned count = 1, rank = tile_access_read(load, indices);
    b.location = load->location;
    for (unsigned d = 0; d + 1 < rank; d++) {
        const GpuPositionAxis *axis = &positions->axes[d];
        kinds[d] = TILE_ACCESS_POSITION;
        operands[count++] = first_number(&b, positions, d);
        operands[count++] = tile_build_i64(&b, axis->step);
        operands[count++] = sum_of_added(&b, axis);
        operands[count++] = axis->count ? axis->count : tile_build_dim(&b, operands[0], d);
    }
    kinds[rank - 1] = TILE_ACCESS_RANGE;
    for (unsigned i = 0; i < 4; i++) operands[count++] = tile_op_operand(load, indices[rank - 1].operand + i);
    TileAttribute access = {.key = TILE_ATTRIBUTE_ACCESS, .count = rank, .integers = kinds};
    const TileType *type = load->results[0].type;
    TileValue *made = tile_op_result(tile_build_op(&b, TILE_OP_LOAD_TILE, operands, count, &access, 1, &type, 1), 0);
    made->name = load->results[0].name;
    const TileValue *mask = tile_op_has_part(load, TILE_PARTS_MASK) ? tile_op_named(load, TILE_OPERAND_MASK) : NULL;
    tile_value_replace(&load->results[0], made);
    if (mask) drop_selects(made, mask);
    tile_op_erase(load);
}

/* ---- grids ---- */

typedef struct Found {
    TilePassContext *context;
    TileFunc *func;
    TileIndexView *view;
    TILE_LIST(GpuPositions) loads;
    bool changed;
} Found;

static void look(TileOp *op, void *state) {
    Found *found = state;
    if (op->id != TILE_OP_LOAD_TILE || !tile_op_is(op->block->op, TILE_OP_FOR)) return;
    const TileAttribute *kinds = tile_op_get(op, TILE_ATTRIBUTE_ACCESS);
    if (kinds->count < 2 || kinds->integers[0] != TILE_ACCESS_GATHER || !is_operand(&op->results[0], tile_ptx_target_of(found->context->target), 0)) return;
    GpuPositions positions;
    const char *why = gpu_position_form(found->view, op, &positions);
    if (!why) why = why_no_map(found->context, found->func, op, &found->changed);
    if (why)
        tile_pass_remark(found->context, op, TILE_DECISION_NOT_BY_POSITIONS, tile_op_operand(op, 0)->name, "%s", why);
    else
        tile_list_push(found->context->scratch, &found->loads, positions);
}

/* The grid's programs where the condition holds, none elsewhere; or the other way round. */
static void choose_programs(TileOp *grid, TileValue *condition, bool where) {
    TileBuilder b = tile_builder_before(tile_op_func(grid)->module, grid);
    TileValue *all = tile_op_operand(grid, 0), *none = tile_build_i64(&b, 0);
    tile_op_set_operand(grid, 0, tile_build_ternary(&b, TILE_OP_SELECT, condition, where ? all : none, where ? none : all));
}

/* In a copy of the grid loads are of positions. */
static void change_copy(Found *found, TileOp *copy) {
    TileIndexView view;
    Found again = {.context = found->context, .func = found->func, .view = &view};
    tile_index_view_init(&view, tile_pass_indices(found->context, found->func), NULL, false);
    tile_block_walk(&copy->regions[0], look, &again);
    for (size_t i = 0; i < again.loads.count; i++) {
        tile_pass_remark(found->context, again.loads.items[i].load, TILE_DECISION_BY_POSITIONS, tile_op_operand(again.loads.items[i].load, 0)->name, "%s", "where a map has corners for them");
        replace(found->context, &again.loads.items[i]);
    }
}

static void try_grid(TilePassContext *context, TileFunc *func, TileOp *grid, bool *changed) {
    TileIndexView view;
    Found found = {.context = context, .func = func, .view = &view};
    Guard guard = {.b = tile_builder_before(context->module, grid), .grid = grid};
    tile_index_view_init(&view, tile_pass_indices(context, func), NULL, false);
    tile_block_walk(&grid->regions[0], look, &found);
    *changed |= found.changed || found.loads.count;
    for (size_t i = 0; i < found.loads.count; i++) {
        const char *why = ask_for_load(&guard, &found.loads.items[i]);
        if (!why) continue;
        tile_pass_remark(context, found.loads.items[i].load, TILE_DECISION_NOT_BY_POSITIONS, tile_op_operand(found.loads.items[i].load, 0)->name, "%s", why);
        return;
    }
    if (!guard.holds) return;
    TileMap map;
    tile_map_init(&map, context->scratch);
    TileOp *copy = tile_op_clone(context->module, grid, &map);
    tile_op_insert_before(copy, grid);
    change_copy(&found, copy);
    choose_programs(copy, guard.holds, true);
    choose_programs(grid, guard.holds, false);
}

TileResult tile_pass_gpu_positions(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_KERNEL || !gpu_copies_by_maps(context->target)) return TILE_RESULT_UNCHANGED;
    bool changed = false;
    for (TileOp *op = func->body.first, *next; op; op = next) {
        next = op->next;
        if (op->id == TILE_OP_GRID) try_grid(context, func, op, &changed);
    }
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
