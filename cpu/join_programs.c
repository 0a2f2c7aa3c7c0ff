/* Purpose: compute neighbouring programs together whose products are small, and neighbouring iterations that have few k. A micro-kernel reads each
 * vector of b's panel for all rows of a block, and each panel is packed for all rows of a program: with 32 x 32 sums a program packs as
 * long as it multiplies. So programs along ranges become one until its products have as many rows and columns as fill the caches, and iterations until two of
 * them fill a panel. Programs whose products take what is made of other products, as those of attention, stay as they are: what lies
 * between grows with both.
 *
 * Before:
 *     func kernel tile @k(%a: tensor<f32, 2, in>, %b: tensor<f32, 2, in>, %c: tensor<f32, 2, out> {noalias}) {
 *       %M = dim %a {axis = 0} : i64
 *       %H = dim %a {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %48 = const {value = 48} : i64
 *       %128 = const {value = 128} : i64
 *       %256 = const {value = 256} : i64
 *       %acc = const {value = 0.0} : f32[48, 256]
 *       %up = const {value = 47} : i64
 *       %all = add %M, %up : i64
 *       %programs = div %all, %48 : i64
 *       grid %programs (%m: i64) {
 *         %i = mul %m, %48 : i64
 *         %rest = sub %M, %i : i64
 *         %rows = min %rest, %48 : i64
 *         %s = for %zero, %H, %128, %acc : f32[48, 256] (%k: i64, %t: f32[48, 256]) {
 *           %left = sub %H, %k : i64
 *           %hi = min %left, %128 : i64
 *           %x = load_tile %a, %i, %one, %zero, %rows, %k, %one, %zero, %hi {access = [range, range]} : f32[48, 128]
 *           %y = load_tile %b, %k, %one, %zero, %hi, %zero, %one, %zero, %256 {access = [range, range]} : f32[128, 256]
 *           %u = dot %x, %y, %t : f32[48, 256]
 *           yield %u
 *         }
 *         store_tile %c, %s, %i, %one, %zero, %rows, %zero, %one, %zero, %256 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%a: tensor<f32, 2, in>, %b: tensor<f32, 2, in>, %c: tensor<f32, 2, out> {noalias}) {
 *       %M = dim %a {axis = 0} : i64
 *       %H = dim %a {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 48} : i64
 *       %1 = const {value = 256} : i64
 *       %up = const {value = 47} : i64
 *       %all = add %M, %up : i64
 *       %programs = div %all, %0 : i64
 *       %2 = add %programs, %one : i64
 *       %3 = const {value = 2} : i64
 *       %4 = div %2, %3 : i64
 *       grid %4 (%m: i64) {
 *         %5 = const {value = 96} : i64
 *         %i = mul %m, %5 : i64
 *         %rest = sub %M, %i : i64
 *         %rows = min %rest, %5 : i64
 *         %6 = const {value = 0.0} : f32[96, 256]
 *         %s = for %zero, %H, %1, %6 : f32[96, 256] (%k: i64, %t: f32[96, 256]) {
 *           %left = sub %H, %k : i64
 *           %hi = min %left, %1 : i64
 *           %x = load_tile %a, %i, %one, %zero, %rows, %k, %one, %zero, %hi {access = [range, range]} : f32[96, 256]
 *           %y = load_tile %b, %k, %one, %zero, %hi, %zero, %one, %zero, %1 {access = [range, range]} : f32[256, 256]
 *           %u = dot %x, %y, %t : f32[96, 256]
 *           yield %u
 *         }
 *         store_tile %c, %s, %i, %one, %zero, %rows, %zero, %one, %zero, %1 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=cpu-join-programs,cse,dce --target=avx512
 * Needs: inline, cse; bounds in the form that facts gives them. Keeps: tile form; each element of a result has the same products in the
 * same order. Cost: linear for each axis of a grid and each loop. */
#include "base/map.h"
#include "cpu/panel.h"
#include "cpu/passes.h"
#include "cpu/target.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lowering/joined.h"

enum {
    ROWS = 96,      /* of a program's products: a panel of b is packed as fast as 10 rows are multiplied with it by vectors, 100 by AMX */
    COLUMNS = 256,  /* at most: of b's panels at full depth half of L2 */
    DEPTH = CPU_PANEL_DEPTH_BYTES / 2 / 4 /* k of an iteration: products of two go into one panel of f32 */
};

/* ---- products of products ---- */

typedef struct Users {
    TileMap seen;
    bool chained;
} Users;

/* Does a product take what is made of the value? */
static void follow(Users *users, const TileValue *value) {
    if (users->chained || tile_map_find(&users->seen, value)) return;
    tile_map_set(&users->seen, value, users);
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *op = use->user, *owner = op->block->op;
        if (op->id == TILE_OP_DOT && use->index < 2) users->chained = true;
        for (unsigned i = 0; i < op->result_count; i++) follow(users, &op->results[i]);
        users->chained |= op->id == TILE_OP_CONDITION; /* what a loop without a trip count makes of it */
        if (op->id != TILE_OP_YIELD || !owner) continue;
        if (use->index < owner->result_count) follow(users, &owner->results[use->index]);
        TileBlock *body = &owner->regions[0];
        if (owner->id == TILE_OP_FOR && use->index + 1 < body->argument_count) follow(users, body->arguments[use->index + 1]);
    }
}

static bool is_chained(TilePassContext *context, const TileProducts *products) {
    Users users = {.chained = false};
    tile_map_init(&users.seen, context->scratch);
    for (unsigned i = 0; i < products->count; i++) follow(&users, &products->dots[i]->results[0]);
    return users.chained;
}

/* Sums over windows, or over the positions of images, are those of convolutions: their channels are often as few as one program has. */
static bool has_nest(const TileProducts *products, const TileOp *grid) {
    for (unsigned i = 0; i < products->count; i++) {
        unsigned loops = 0;
        for (const TileOp *op = products->dots[i]->block->op; op != grid; op = op->block->op) loops += op->id == TILE_OP_FOR;
        if (loops > 1) return true;
    }
    return false;
}

/* ---- axes ---- */

static int64_t columns_wanted(const TilePassContext *context, const TileProducts *products) {
    int64_t fit = (int64_t)context->target->l2_bytes / 2 / CPU_PANEL_DEPTH_BYTES;
    return (fit < COLUMNS ? fit : COLUMNS) / products->count;
}

static const char *try_axis(TilePassContext *context, const TileProducts *products, TileOp *grid, unsigned axis, bool *changed) {
    TileValue *number = grid->regions[0].arguments[axis];
    TileJoin join = {.context = context, .around = grid, .number = number, .size = tile_range_size(number)};
    if (!join.size) return NULL;
    if (!tile_can_join(&join)) return join.why;
    if (!tile_joined_is_bounded(&join)) return "its loads have lanes that it does not store";
    int64_t factor = tile_neighbours_wanted(&join, products, ROWS, columns_wanted(context, products), true);
    if (factor < 2) return NULL;
    tile_pass_remark(context, grid, TILE_DECISION_PROGRAMS_JOINED, "the grid", "%lld along its axis %u", (long long)factor, axis);
    tile_join_neighbours(&join, factor, tile_op_operand(grid, axis));
    *changed = true;
    return NULL;
}

/* Is the operand what a tensor has, in any order, and nothing behind its end? What is computed for a product lies in its panel, where that has space for two
 * iterations. */
static bool is_loaded(const TileValue *operand) {
    while (tile_value_def(operand, TILE_OP_PERMUTE) || tile_value_def(operand, TILE_OP_FILL)) operand = tile_op_operand(operand->op, 0);
    return tile_value_def(operand, TILE_OP_LOAD_TILE) != NULL;
}

/* Do vectors multiply bytes, by words, in panels of bytes? */
static bool takes_bytes(const TileTarget *target, const TileOp *dot) {
    TileScalar a = tile_op_operand(dot, 0)->type->scalar, b = tile_op_operand(dot, 1)->type->scalar, sum = dot->results[0].type->scalar;
    bool amx = target->has_amx && tile_cpu_amx_multiplies(a, b, sum);
    return tile_scalar_bytes(a) == 1 && tile_cpu_vnni_multiplies(target, a, b, sum) && !amx;
}

/* A block of c is loaded and stored for each iteration, and rows of a that the micro-kernel fetches ahead are those of the iteration: of bytes, which are
 * multiplied four times as fast, an iteration fills a panel. */
static int64_t wanted_k(const TilePassContext *context, const TileOp *dot) {
    bool whole = context->target && takes_bytes(context->target, dot) && is_loaded(tile_op_operand(dot, 0)) && is_loaded(tile_op_operand(dot, 1));
    return whole ? CPU_PANEL_DEPTH_BYTES : DEPTH;
}

/* Why the grid's programs are computed one by one, whatever its axes are; NULL: they need not be. */
static const char *obstacle(TilePassContext *context, const TileProducts *products, bool nested) {
    if (!products->all) return "its products have more than two axes, or are many";
    if (is_chained(context, products)) return "a product takes what is made of another one";
    return nested ? "more than one loop adds up its products: their rows and columns may be few" : NULL;
}

static bool visit_grid(TilePassContext *context, TileOp *grid) {
    TileProducts products = tile_find_products(&grid->regions[0]);
    const TileJoinedDepth depth = {.wanted = wanted_k, .bounded = true, .in_order = true};
    bool changed = false, nested = has_nest(&products, grid);
    if (!products.count) return false;
    const char *all = obstacle(context, &products, nested), *why = all;
    for (unsigned axis = grid->operand_count; !all && axis-- > 0;) {
        const char *other = try_axis(context, &products, grid, axis, &changed);
        why = other ? other : why;
    }
    if (why && !changed) tile_pass_remark(context, grid, TILE_DECISION_NOT_JOINED, "the grid", "%s", why);
    /* In a nest the most k that a product can have says when panels are multiplied, however few it has. */
    return (!nested && tile_join_iterations(context, &grid->regions[0], &depth)) || changed;
}

TileResult tile_pass_cpu_join_programs(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_GRID) changed |= visit_grid(context, op);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
