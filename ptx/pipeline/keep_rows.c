/* Purpose: keep rows in registers that several loops of a program go over, as a norm's statistics and its results do, where a row is so few tiles that a thread has
 * registers for it. Rows with just that many tiles, which a test asks for, have copies of the loops' bodies in place of the loops: what the copies load
 * alike is loaded once (cse). Other rows have the loops. The second time a row comes from the L2 cache, if that still has it: not where the rows of all
 * programs that are there together are more than it keeps.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {stride1 = 4, most = 1024, noalias, readonly}, %y: tensor<f32, 2, out> {noalias}, %begin: i64, %end: i64) threads = 128 {
 *       %N = dim %x {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %512 = const {value = 512} : i64
 *       %none = const {value = 0.0} : f32[512]
 *       %t = for %zero, %N, %512, %none : f32[512] (%n: i64, %before: f32[512]) {
 *         %left = sub %N, %n : i64
 *         %hi = min %left, %512 : i64
 *         %v = load_tile %x, %begin, %n, %one, %zero, %hi {access = [index, range]} : f32[512]
 *         %0 = const {value = 0.0} : f32
 *         %f = fill %v, %0, %zero, %hi {axes = [0]} : f32[512]
 *         %w = add %before, %f : f32[512]
 *         yield %w
 *       }
 *       %s = reduce %t {axis = 0, kind = sum} : f32
 *       %all = splat %s : f32[512]
 *       for %zero, %N, %512 (%n: i64) {
 *         %left = sub %N, %n : i64
 *         %hi = min %left, %512 : i64
 *         %v = load_tile %x, %begin, %n, %one, %zero, %hi {access = [index, range]} : f32[512]
 *         %w = div %v, %all : f32[512]
 *         store_tile %y, %w, %begin, %n, %one, %zero, %hi {access = [index, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {stride1 = 4, most = 1024, used_most = 1024, asked_most = 1024, noalias, readonly}, %y: tensor<f32, 2, out> {noalias}, %begin: i64, %end: i64) threads = 128 {
 *       %N = dim %x {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 512} : i64
 *       %none = const {value = 0.0} : f32[512]
 *       %1 = lt %0, %N : bool
 *       %2 = const {value = 1024} : i64
 *       %3 = le %N, %2 : bool
 *       %4 = and %1, %3 : bool
 *       if %4 {kept = 1} {
 *         %v = load_tile %x, %begin, %zero, %one, %zero, %0 {access = [index, range]} : f32[512]
 *         %w = add %v, %none : f32[512]
 *         %5 = const {value = -512} : i64
 *         %left = add %N, %5 : i64
 *         %hi = min %left, %0 : i64
 *         %v.1 = load_tile %x, %begin, %0, %one, %zero, %hi {access = [index, range]} : f32[512]
 *         %6 = const {value = 0.0} : f32
 *         %f = fill %v.1, %6, %zero, %hi {axes = [0]} : f32[512]
 *         %w.1 = add %w, %f : f32[512]
 *         %s = reduce %w.1 {axis = 0, kind = sum} : f32
 *         %all = splat %s : f32[512]
 *         %w.2 = div %v, %all : f32[512]
 *         store_tile %y, %w.2, %begin, %zero, %one, %zero, %0 {access = [index, range]}
 *         %w.3 = div %v.1, %all : f32[512]
 *         store_tile %y, %w.3, %begin, %0, %one, %zero, %hi {access = [index, range]}
 *         yield
 *       } {
 *         %t = for %zero, %N, %0, %none : f32[512] (%n: i64, %before: f32[512]) {
 *           %left.1 = sub %N, %n : i64
 *           %hi.1 = min %left.1, %0 : i64
 *           %v.2 = load_tile %x, %begin, %n, %one, %zero, %hi.1 {access = [index, range]} : f32[512]
 *           %7 = const {value = 0.0} : f32
 *           %f.1 = fill %v.2, %7, %zero, %hi.1 {axes = [0]} : f32[512]
 *           %w.4 = add %before, %f.1 : f32[512]
 *           yield %w.4
 *         }
 *         %s.1 = reduce %t {axis = 0, kind = sum} : f32
 *         %all.1 = splat %s.1 : f32[512]
 *         for %zero, %N, %0 (%n.1: i64) {
 *           %left.2 = sub %N, %n.1 : i64
 *           %hi.2 = min %left.2, %0 : i64
 *           %v.3 = load_tile %x, %begin, %n.1, %one, %zero, %hi.2 {access = [index, range]} : f32[512]
 *           %w.5 = div %v.3, %all.1 : f32[512]
 *           store_tile %y, %w.5, %begin, %n.1, %one, %zero, %hi.2 {access = [index, range]}
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-keep-rows,canonicalise,cse,dce
 * Needs: gpu-threads; behind gpu-late-sums, whose sums the copies keep. Keeps: tile form, and the order of all sums and effects. Cost: linear in the ops that it makes,
 * MOST_OPS for a program. */
#include "base/limits.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"

/* Registers of a thread for what is kept, each element having one, since it is converted but once as well. Of shorter tiles nothing was measured. */
enum { MOST_TILES = 8, MOST_KEPT = 64, MOST_OPS = 512, MOST_LOOPS = 8, MOST_RESULTS = 16, LEAST_STEP = 512 };

/* Neighbouring loops of one block over one row. */
typedef struct Rows {
    TilePassContext *context;
    TileFunc *func;
    TileOp *loops[MOST_LOOPS];
    unsigned count;
    TileParameter *parameter; /* whose last extent the rows' length is */
    TileValue *length;
    TileValue *first; /* of the part that a block of a cluster has; NULL: all of the row */
    int64_t step, tiles, kept; /* kept: elements of a thread that an iteration loads and a later loop loads again */
    unsigned ops;
    bool asked; /* something new */
    bool any;   /* rows of no class */
} Rows;

/* ---- which loops ---- */

/* The tensor without gaps in its rows whose last extent the value is; NULL: there is none. */
static TileParameter *parameter_of_rows(TileFunc *func, const TileValue *extent) {
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileValue *tensor = func->body.arguments[i];
        int64_t last = (int64_t)tensor->type->rank - 1;
        if (tensor->type->kind != TILE_TYPE_TENSOR || last < 0) continue;
        if (func->parameters[i].facts.stride[last] != (int64_t)tile_scalar_bytes(tensor->type->scalar)) continue;
        for (const TileUse *use = tensor->first_use; use; use = use->next) {
            const TileOp *op = use->user;
            if (tile_op_integer(op, TILE_ATTRIBUTE_AXIS, -1) != last) continue;
            bool is = op->id == TILE_OP_DIM ? &op->results[0] == extent : op->id == TILE_OP_CHECK_DIM && tile_op_operand(op, 1) == extent;
            if (is) return &func->parameters[i];
        }
    }
    return NULL;
}

/* The length of the row of which a block of a cluster has a part, as the loop names it. NULL: it names none. */
static TileValue *length_of_shared(const TileFunc *func, const TileOp *loop) {
    const TileAttribute *row = tile_op_get(loop, TILE_ATTRIBUTE_ROW);
    if (!row) return NULL;
    for (const TileUse *use = func->body.arguments[row->integers[0]]->first_use; use; use = use->next) {
        TileOp *op = use->user;
        if (op->id == TILE_OP_DIM && op->block == &func->body && tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) == row->integers[1]) return &op->results[0];
    }
    return NULL;
}

/* The length of the row that the loop goes over, or a block of a cluster with others; NULL: it is no such loop. */
static TileValue *length_of_row(const TileFunc *func, const TileOp *loop) {
    TileValue *hi = tile_op_named(loop, TILE_OPERAND_HI);
    if (tile_op_get(loop, TILE_ATTRIBUTE_PART)) return length_of_shared(func, loop);
    return tile_value_is_integer(tile_op_named(loop, TILE_OPERAND_LO), 0) && tile_value_block(hi) == &func->body ? hi : NULL;
}

/* Does the loop go over all of a row in tiles, or over a block's part of it, with nothing in it but ops of its own? */
static bool is_over_row(const TileFunc *func, const TileOp *loop, int64_t *step) {
    if (loop->id != TILE_OP_FOR || tile_loop_is_of_programs(loop) || !length_of_row(func, loop)) return false;
    if (!tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), step) || *step < LEAST_STEP || (*step & (*step - 1))) return false;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next)
        if (op->region_count || op->id == TILE_OP_DOT) return false;
    return true;
}

/* Are the loads of two loops the same in iterations of the same number, as far as their first indices say? */
static bool are_alike(const TileOp *load, const TileOp *other, const TileOp *loop, const TileOp *other_loop) {
    TileAccessIndex mine[TILE_MAX_TENSOR_RANK], its[TILE_MAX_TENSOR_RANK];
    bool goes = false;
    if (other->id != TILE_OP_LOAD_TILE || tile_op_operand(load, 0) != tile_op_operand(other, 0) || !tile_type_same_shape(load->results[0].type, other->results[0].type)) return false;
    unsigned rank = tile_access_read(load, mine);
    tile_access_read(other, its);
    for (unsigned d = 0; d < rank; d++) {
        bool both = mine[d].first == loop->regions[0].arguments[0] && its[d].first == other_loop->regions[0].arguments[0];
        if (mine[d].kind != its[d].kind || (!both && !tile_value_is_same(mine[d].first, its[d].first))) return false;
        goes |= both && mine[d].kind == TILE_ACCESS_RANGE;
    }
    return goes;
}

static bool is_loaded_in(const TileOp *load, const TileOp *loop, const TileOp *other_loop) {
    for (const TileOp *op = other_loop->regions[0].first; op; op = op->next)
        if (are_alike(load, op, loop, other_loop)) return true;
    return false;
}

/* Counts what the last loop of the group loads again. */
static int64_t count_again(const Rows *rows) {
    const TileOp *last = rows->loops[rows->count - 1];
    int64_t kept = 0;
    for (const TileOp *op = last->regions[0].first; op; op = op->next) {
        if (op->id != TILE_OP_LOAD_TILE || !tile_type_is_tile(op->results[0].type)) continue;
        const TileParameter *parameter = tile_op_operand(op, 0)->block == &rows->func->body ? &rows->func->parameters[tile_op_operand(op, 0)->index] : NULL;
        bool again = false;
        for (unsigned i = 0; i + 1 < rows->count; i++) again |= is_loaded_in(op, last, rows->loops[i]);
        if (!again || !parameter || !parameter->readonly || !parameter->noalias) continue;
        kept += (tile_type_lanes(op->results[0].type) + rows->func->threads - 1) / rows->func->threads;
    }
    return kept;
}

static unsigned count_ops(const TileOp *loop) {
    unsigned count = 0;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) count++;
    return count;
}

/* From the loop on, those that go over the same row, with nothing between them that has regions. */
static void collect(Rows *rows, TileOp *loop) {
    int64_t step, kept = 0;
    TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI);
    rows->length = length_of_row(rows->func, loop);
    rows->first = tile_op_get(loop, TILE_ATTRIBUTE_PART) ? lo : NULL;
    for (TileOp *op = loop; op && rows->count < MOST_LOOPS; op = op->next) {
        if (!op->region_count) continue;
        if (!is_over_row(rows->func, op, &step) || tile_op_named(op, TILE_OPERAND_HI) != hi || !tile_value_is_same(tile_op_named(op, TILE_OPERAND_LO), lo)) return;
        if (rows->count && step != rows->step) return;
        rows->step = step;
        rows->loops[rows->count++] = op;
        int64_t again = count_again(rows);
        if (rows->count > 1 && !again) {
            rows->count--;
            return;
        }
        if (again > kept) kept = again;
        rows->kept = kept;
        rows->ops += count_ops(op);
    }
}

/* ---- how many tiles ---- */

/* So many as the class of rows has, which is a hint alone: the test asks. Rows of no class are longer. */
static int64_t tiles_of(Rows *rows) {
    TileParameter *parameter = rows->parameter;
    for (int64_t most = 2 * rows->step; most <= TILE_GREATEST_SHORT_ROW; most *= 2) {
        rows->asked |= !(parameter->asked_most & most);
        parameter->asked_most |= (uint32_t)most;
        if (!parameter->facts.most || parameter->facts.most > most) continue;
        parameter->used_most |= (uint32_t)most;
        return most / rows->step;
    }
    rows->any = true;
    return 2 * TILE_GREATEST_SHORT_ROW / rows->step;
}

/* Of a block's part so many as a thread has registers for. */
static int64_t tiles_of_part(const Rows *rows) {
    int64_t tiles = 1;
    while (2 * tiles <= MOST_TILES && 2 * tiles * rows->kept <= MOST_KEPT && 2 * tiles * rows->ops <= MOST_OPS) tiles *= 2;
    return tiles;
}

static const char *obstacle(const Rows *rows) {
    if (rows->any && !rows->func->keeps) return "it has no class, and the code is for rows of any length";
    if (rows->tiles < 2) return "it is one tile";
    if (rows->tiles > MOST_TILES) return "it is too many tiles";
    if (rows->kept * rows->tiles > MOST_KEPT) return "a thread has too few registers for it";
    return rows->ops * rows->tiles > MOST_OPS ? "its loops have too many ops" : NULL;
}

/* ---- copies ---- */

/* Is it the number of lanes of a tile that the row has, min(length - n, step)? */
static bool is_left(const Rows *rows, const TileOp *op, const TileOp *loop) {
    if (op->id != TILE_OP_MIN) return false;
    for (unsigned i = 0; i < 2; i++) {
        const TileOp *left = tile_value_def(tile_op_operand(op, i), TILE_OP_SUB);
        if (left && tile_value_is_same(tile_op_operand(left, 0), rows->length) && tile_op_operand(left, 1) == loop->regions[0].arguments[0] &&
            tile_value_is_integer(tile_op_operand(op, 1 - i), rows->step))
            return true;
    }
    return false;
}

static TileValue *mapped(const TileMap *map, TileValue *value) {
    TileValue *copy = tile_map_get(map, value);
    return copy ? copy : value;
}

static void copy_loop(const Rows *rows, TileBuilder *b, const TileOp *loop, TileMap *map) {
    const TileBlock *body = &loop->regions[0];
    TileValue **values = TILE_NEW_ARRAY(rows->context->scratch, TileValue *, loop->result_count + 1);
    for (unsigned i = 0; i < loop->result_count; i++) values[i] = mapped(map, tile_loop_carried(loop, i));
    for (int64_t k = 0; k < rows->tiles; k++) {
        TileValue *offset = tile_build_i64(b, k * rows->step);
        tile_map_set(map, body->arguments[0], rows->first ? tile_build_binary(b, TILE_OP_ADD, rows->first, offset) : offset);
        for (unsigned i = 0; i < loop->result_count; i++) tile_map_set(map, body->arguments[1 + i], values[i]);
        for (const TileOp *op = body->first; op != body->last; op = op->next) {
            bool whole = (rows->first || k + 1 < rows->tiles) && is_left(rows, op, loop);
            if (whole)
                tile_map_set(map, &op->results[0], tile_build_i64(b, rows->step));
            else
                tile_builder_insert(b, tile_op_clone(rows->context->module, op, map));
        }
        for (unsigned i = 0; i < loop->result_count; i++) values[i] = mapped(map, tile_op_named_at(body->last, TILE_OPERAND_VALUES, i));
    }
    for (unsigned i = 0; i < loop->result_count; i++) tile_map_set(map, &loop->results[i], values[i]);
}

static bool is_loop_of(const Rows *rows, const TileOp *op) {
    for (unsigned i = 0; i < rows->count; i++)
        if (rows->loops[i] == op) return true;
    return false;
}

/* Is the user, or an op around it, behind `last` in its block? */
static bool is_behind(const TileOp *user, const TileOp *last) {
    while (user->block != last->block) user = user->block->op;
    for (const TileOp *op = last->next; op; op = op->next)
        if (op == user) return true;
    return false;
}

static TileUse *use_behind(TileValue *value, const TileOp *last) {
    for (TileUse *use = value->first_use; use; use = use->next)
        if (is_behind(use->user, last)) return use;
    return NULL;
}

typedef struct Results {
    TileValue *values[MOST_RESULTS];
    const TileType *types[MOST_RESULTS];
    unsigned count;
} Results;

/* What ops behind the loops take of them and of what stands between; false: too much. */
static bool find_results(const Rows *rows, Results *results) {
    const TileOp *last = rows->loops[rows->count - 1];
    results->count = 0;
    for (TileOp *op = rows->loops[0]; op != last->next; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++) {
            if (!use_behind(&op->results[i], last)) continue;
            if (results->count == MOST_RESULTS) return false;
            results->types[results->count] = op->results[i].type;
            results->values[results->count++] = &op->results[i];
        }
    return true;
}

/* Blocks of a cluster meet between their loops, so all take the same half of the branch: where each of them has so many tiles, and these are whole. */
static TileValue *build_test(const Rows *rows, TileBuilder *b) {
    if (rows->first) return tile_build_binary(b, TILE_OP_EQ, rows->length, tile_build_i64(b, rows->func->cluster * rows->tiles * rows->step));
    TileValue *more = tile_build_binary(b, TILE_OP_LT, tile_build_i64(b, (rows->tiles - 1) * rows->step), rows->length),
              *most = tile_build_binary(b, TILE_OP_LE, rows->length, tile_build_i64(b, rows->tiles * rows->step));
    return tile_build_binary(b, TILE_OP_AND, more, most);
}

/* Copies for rows of so many tiles in one half of a branch, all that there was in the other. */
static bool keep(const Rows *rows) {
    TileOp *first = rows->loops[0], *end = rows->loops[rows->count - 1]->next;
    TileModule *module = rows->context->module;
    TileValue *kept[MOST_RESULTS];
    Results results;
    if (!find_results(rows, &results)) return false;
    TileBuilder b = tile_builder_before(module, first);
    TileOp *choice = tile_build_if(&b, build_test(rows, &b), results.types, results.count);
    tile_op_set_integer(module, choice, TILE_ATTRIBUTE_KEPT, rows->any ? TILE_KEPT_OF_ANY : TILE_KEPT_OF_CLASS);
    TileBuilder copies = tile_builder_at_end(module, &choice->regions[0]), others = tile_builder_at_end(module, &choice->regions[1]);
    TileMap map;
    tile_map_init(&map, rows->context->scratch);
    for (TileOp *op = first; op != end; op = op->next) {
        copies.location = op->location;
        if (is_loop_of(rows, op))
            copy_loop(rows, &copies, op, &map);
        else
            tile_builder_insert(&copies, tile_op_clone(module, op, &map));
    }
    for (unsigned i = 0; i < results.count; i++) kept[i] = mapped(&map, results.values[i]);
    tile_build_end(&copies, TILE_OP_YIELD, kept, results.count);
    for (unsigned i = 0; i < results.count; i++)
        for (TileUse *use; (use = use_behind(results.values[i], rows->loops[rows->count - 1]));) tile_op_set_operand(use->user, use->index, &choice->results[i]);
    for (TileOp *op = first, *next; op != end; op = next) {
        next = op->next;
        tile_op_detach(op);
        tile_op_append(op, &choice->regions[1]);
    }
    tile_build_end(&others, TILE_OP_YIELD, results.values, results.count);
    return true;
}

/* ---- the pass ---- */

/* Returns the op behind which the search goes on. */
static TileOp *try_loop(TilePassContext *context, TileFunc *func, TileOp *loop, bool *changed) {
    Rows rows = {.context = context, .func = func};
    int64_t step;
    if (!is_over_row(func, loop, &step)) return loop;
    collect(&rows, loop);
    if (rows.count < 2 || !rows.kept) return loop;
    TileOp *last = rows.loops[rows.count - 1], *behind = last->next;
    rows.parameter = rows.first ? NULL : parameter_of_rows(func, rows.length);
    if (!rows.parameter && !rows.first) return last;
    rows.tiles = rows.first ? tiles_of_part(&rows) : tiles_of(&rows);
    *changed |= rows.asked;
    const char *why = obstacle(&rows);
    if (why || !keep(&rows)) {
        tile_pass_remark(context, loop, TILE_DECISION_ROWS_NOT_KEPT, "the row", "%s", why ? why : "too much of its loops is used behind them");
        return last;
    }
    tile_pass_remark(context, loop, TILE_DECISION_ROWS_KEPT, "the row", "if it is %lld tiles", (long long)rows.tiles);
    *changed = true;
    return behind->previous;
}

static bool visit(TilePassContext *context, TileFunc *func, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_FOR && !tile_loop_is_of_programs(op)) {
            op = try_loop(context, func, op, &changed);
            continue;
        }
        for (unsigned r = 0; r < op->region_count; r++) changed |= visit(context, func, &op->regions[r]);
    }
    return changed;
}

/* Nobody asks behind this pass, and machine form has other parameters. */
static void forget_row(TileOp *op, void *changed) {
    if (!tile_op_get(op, TILE_ATTRIBUTE_ROW)) return;
    tile_op_clear(op, TILE_ATTRIBUTE_ROW);
    *(bool *)changed = true;
}

TileResult tile_pass_gpu_keep_rows(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    bool changed = !func->reloads && !gpu_find_dots(func, &func->body).count && visit(context, func, &func->body);
    tile_block_walk(&func->body, forget_row, &changed);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
