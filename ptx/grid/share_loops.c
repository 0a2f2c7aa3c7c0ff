/* Purpose: compute once what the loops of several programs compute alike. A program may have a loop whose results do not depend on its place
 * along each axis of the grid: the norm of the rows that it multiplies, or a product of low rank. Each program along
 * the other axes computes the same again. A grid of its own computes it for each place along the axes that it depends on, and stores it
 * to a temporary, from which the programs load it. So do iterations of a loop that all programs go through, as over all centres to which
 * points may belong, whose norms each program computes again: they are one more axis. In grids with products, where `packs` of the kernel
 * says that this pays: the model has compared both.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in>, %w: tensor<f32, 2, in>, %c: tensor<f32, 2, out> {noalias}, %m: i64,
 *         %n: i64) packs = 1 {
 *       %K = dim %x {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %8 = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32[8]
 *       %acc = const {value = 0.0} : f32[8, 8]
 *       grid %m, %n (%i: i64, %j: i64) {
 *         %r = mul %i, %8 : i64
 *         %s = for %zero, %K, %8, %none : f32[8] (%k: i64, %t: f32[8]) {
 *           %v = load_tile %x, %r, %one, %zero, %8, %k, %one, %zero, %8 {access = [range, range]} : f32[8, 8]
 *           %u = reduce %v {axis = 1, kind = sum} : f32[8]
 *           %p = add %t, %u : f32[8]
 *           yield %p
 *         }
 *         %c0 = mul %j, %8 : i64
 *         %y = load_tile %w, %r, %one, %zero, %8, %c0, %one, %zero, %8 {access = [range, range]} : f32[8, 8]
 *         %z = load_tile %w, %c0, %one, %zero, %8, %c0, %one, %zero, %8 {access = [range, range]} : f32[8, 8]
 *         %d = dot %y, %z, %acc : f32[8, 8]
 *         %column = reshape %s : f32[8, 1]
 *         %e = broadcast %column : f32[8, 8]
 *         %f = mul %d, %e : f32[8, 8]
 *         store_tile %c, %f, %r, %one, %zero, %8, %c0, %one, %zero, %8 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in>, %w: tensor<f32, 2, in>, %c: tensor<f32, 2, out> {noalias}, %m: i64, %n: i64) packs = 1 {
 *       %K = dim %x {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32[8]
 *       %acc = const {value = 0.0} : f32[8, 8]
 *       %1 = max %m, %one : i64
 *       %2 = temp %1, %one, %0 : tensor<f32, 3, temp>
 *       grid %m (%3: i64) {
 *         %r = mul %3, %0 : i64
 *         %s = for %zero, %K, %0, %none : f32[8] (%k: i64, %t: f32[8]) {
 *           %v = load_tile %x, %r, %one, %zero, %0, %k, %one, %zero, %0 {access = [range, range]} : f32[8, 8]
 *           %u = reduce %v {axis = 1, kind = sum} : f32[8]
 *           %p = add %t, %u : f32[8]
 *           yield %p
 *         }
 *         store_tile %2, %s, %3, %zero, %zero, %one, %zero, %0 {access = [index, index, range]}
 *         yield
 *       }
 *       grid %m, %n (%i: i64, %j: i64) {
 *         %r.1 = mul %i, %0 : i64
 *         %s.1 = load_tile %2, %i, %zero, %zero, %one, %zero, %0 {access = [index, index, range]} : f32[8]
 *         %c0 = mul %j, %0 : i64
 *         %y = load_tile %w, %r.1, %one, %zero, %0, %c0, %one, %zero, %0 {access = [range, range]} : f32[8, 8]
 *         %z = load_tile %w, %c0, %one, %zero, %0, %c0, %one, %zero, %0 {access = [range, range]} : f32[8, 8]
 *         %d = dot %y, %z, %acc : f32[8, 8]
 *         %column = reshape %s.1 : f32[8, 1]
 *         %e = broadcast %column : f32[8, 8]
 *         %f = mul %d, %e : f32[8, 8]
 *         store_tile %c, %f, %r.1, %one, %zero, %0, %c0, %one, %zero, %0 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-share-loops,canonicalise,cse,dce
 * Needs: inline; licm, so that what no index of the grid decides stands in front of it. Keeps: tile form; each result's iterations
 * and their order. Cost: linear in the ops of a grid with such loops, for each round of what loops carry. */
#include "base/map.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/grid/part_values.h"
#include "ptx/passes.h"
#include "ptx/target/target.h"

enum { MOST_AXES = 31 };

typedef struct Sharing {
    TilePassContext *context;
    TileFunc *kernel;
    TileOp *grid;
    TileOp *outer; /* a loop of the program, whose iterations are the last axis; NULL: those of the grid are all */
    TileMap axes; /* of values in the grid: a bit for each of the axes that it depends on */
    bool changed; /* in a round of the search: a loop carries what depends on more */
} Sharing;

static unsigned count_axes(const Sharing *s) { return s->grid->operand_count + (s->outer != NULL); }

static uintptr_t all_axes(const Sharing *s) { return ((uintptr_t)1 << count_axes(s)) - 1; }

/* ---- what depends on which axes of the grid ---- */

static uintptr_t axes_of(const Sharing *s, const TileValue *value) { return (uintptr_t)tile_map_get(&s->axes, value); }

static void add_axes(Sharing *s, const TileValue *value, uintptr_t axes) {
    uintptr_t before = axes_of(s, value);
    if ((before | axes) == before) return;
    tile_map_set(&s->axes, value, (void *)(before | axes));
    s->changed = true;
}

static void visit_block(Sharing *s, const TileBlock *block);

static uintptr_t axes_of_operands(const Sharing *s, const TileOp *op, unsigned count) {
    uintptr_t axes = 0;
    for (unsigned i = 0; i < count; i++) axes |= axes_of(s, tile_op_operand(op, i));
    return axes;
}

/* Each value that a loop carries has axes of its own. */
static void visit_for(Sharing *s, TileOp *loop) {
    TileBlock *body = &loop->regions[0];
    unsigned count, bounds = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
    uintptr_t trips = axes_of_operands(s, loop, bounds);
    add_axes(s, body->arguments[0], trips);
    visit_block(s, body);
    for (unsigned i = 0; i < loop->result_count; i++) {
        uintptr_t axes = trips | axes_of(s, tile_loop_carried(loop, i)) | axes_of(s, tile_op_operand(body->last, i));
        add_axes(s, &loop->results[i], axes);
        add_axes(s, body->arguments[1 + i], axes);
    }
}

/* Of other ops with regions, each value depends on all that goes in. */
static void visit_regions(Sharing *s, TileOp *op) {
    uintptr_t axes = axes_of_operands(s, op, op->operand_count);
    for (unsigned r = 0; r < op->region_count; r++) {
        for (unsigned i = 0; i < op->regions[r].argument_count; i++) add_axes(s, op->regions[r].arguments[i], axes);
        visit_block(s, &op->regions[r]);
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next) {
            axes |= axes_of_operands(s, inner, inner->operand_count);
            for (unsigned i = 0; i < inner->result_count; i++) axes |= axes_of(s, &inner->results[i]);
        }
    }
    for (unsigned i = 0; i < op->result_count; i++) add_axes(s, &op->results[i], axes);
}

static void visit_block(Sharing *s, const TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_FOR) {
            visit_for(s, op);
        } else if (op->region_count) {
            visit_regions(s, op);
        } else {
            uintptr_t axes = axes_of_operands(s, op, op->operand_count);
            for (unsigned i = 0; i < op->result_count; i++) add_axes(s, &op->results[i], axes);
        }
    }
}

static void find_axes(Sharing *s) {
    TileBlock *body = &s->grid->regions[0];
    tile_map_init(&s->axes, s->context->scratch);
    for (unsigned i = 0; i < body->argument_count; i++) tile_map_set(&s->axes, body->arguments[i], (void *)((uintptr_t)1 << i));
    if (s->outer) { /* what its iterations leave to one another is nobody else's */
        const TileBlock *inner = &s->outer->regions[0];
        tile_map_set(&s->axes, inner->arguments[0], (void *)((uintptr_t)1 << body->argument_count));
        for (unsigned i = 1; i < inner->argument_count; i++) tile_map_set(&s->axes, inner->arguments[i], (void *)all_axes(s));
    }
    do {
        s->changed = false;
        visit_block(s, body);
    } while (s->changed);
}

/* ---- which loops ---- */

/* Is there a product, and nothing that a grid in front of it could not leave to it? */
typedef struct Contents {
    const TileOp *grid;
    const char *why; /* NULL: nothing */
    bool products;
} Contents;

static void visit_contents(TileOp *op, void *state) {
    Contents *contents = state;
    contents->products |= op->id == TILE_OP_DOT;
    if (op->region_count || op->id == TILE_OP_STORE_TILE || tile_op_is_pure(op)) {
        if (op->id == TILE_OP_WHILE) contents->why = "a loop may not end";
    } else if (op->id != TILE_OP_LOAD_TILE && !(tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_TERMINATOR)) {
        contents->why = "the grid has other effects than stores";
    } else if (op->id == TILE_OP_LOAD_TILE && tile_memory_is_written(contents->grid, tile_op_operand(op, 0))) {
        contents->why = "the grid may read what it writes";
    }
}

/* What of the loop's results depends on some of the grid's axes, but not on all; 0: nothing that is used. */
static uintptr_t shared_axes(const Sharing *s, const TileOp *loop, bool *shared) {
    uintptr_t all = all_axes(s), axes = 0;
    for (unsigned i = 0; i < loop->result_count; i++) {
        uintptr_t own = axes_of(s, &loop->results[i]);
        const TileType *type = loop->results[i].type;
        bool number = type->kind == TILE_TYPE_SCALAR || (tile_type_is_tile(type) && type->rank + 2 <= TILE_MAX_TENSOR_RANK);
        shared[i] = number && own && own != all && tile_value_has_uses(&loop->results[i]) && (axes | own) != all;
        if (shared[i]) axes |= own;
    }
    return axes;
}

/* Do all programs go through the loop's iterations, which can be counted in front of the grid? */
static bool is_axis(const Sharing *s, const TileOp *loop) {
    int64_t step;
    if (loop->id != TILE_OP_FOR || s->grid->operand_count == MOST_AXES || !tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step)) return false;
    const TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI);
    return step > 0 && tile_value_block(lo) == &s->kernel->body && tile_value_block(hi) == &s->kernel->body;
}

/* ---- the grid that computes them ---- */

/* How many programs, or iterations, there are along the axis, in front of the grid. */
static TileValue *extent_of(const Sharing *s, TileBuilder *host, unsigned axis) {
    if (axis < s->grid->operand_count) return tile_op_operand(s->grid, axis);
    TileValue *step = tile_op_named(s->outer, TILE_OPERAND_STEP), *one = tile_build_i64(host, 1);
    TileValue *range = tile_build_binary(host, TILE_OP_SUB, tile_op_named(s->outer, TILE_OPERAND_HI), tile_op_named(s->outer, TILE_OPERAND_LO));
    range = tile_build_binary(host, TILE_OP_MAX, range, tile_build_i64(host, 0));
    return tile_build_binary(host, TILE_OP_DIV, tile_build_binary(host, TILE_OP_ADD, range, tile_build_binary(host, TILE_OP_SUB, step, one)), step);
}

/* The number of the program among those that differ in the axes, of a grid with these arguments. */
static TileValue *number_of(TileBuilder *b, unsigned count, uintptr_t axes, TileValue *const *extents, TileValue *const *arguments) {
    TileValue *number = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (!(axes >> i & 1)) continue;
        number = !number ? arguments[i] : tile_build_binary(b, TILE_OP_MUL, number, extents[i]);
        if (number != arguments[i]) number = tile_build_binary(b, TILE_OP_ADD, number, arguments[i]);
    }
    return number;
}

static TileValue *build_temp(const Sharing *s, TileBuilder *host, uintptr_t axes, TileValue *const *counts, const TileType *type) {
    TileValue *extents[2 + TILE_MAX_TILE_RANK], *programs = NULL, *one = tile_build_i64(host, 1);
    unsigned rank = 2, own = tile_type_is_tile(type) ? type->rank : 0;
    for (unsigned i = 0; i < count_axes(s); i++)
        if (axes >> i & 1) programs = programs ? tile_build_binary(host, TILE_OP_MUL, programs, counts[i]) : counts[i];
    extents[0] = tile_build_binary(host, TILE_OP_MAX, programs, one);
    extents[1] = one;
    for (unsigned i = 0; i < own; i++) extents[rank++] = tile_build_i64(host, type->extent[i]);
    const TileType *tensor = tile_type_tensor(s->context->module->context, type->scalar, rank, TILE_ACCESS_TEMP);
    return tile_op_result(tile_build_op(host, TILE_OP_TEMP, extents, rank, NULL, 0, &tensor, 1), 0);
}

static void erase_store(TileOp *op, void *state) {
    (void)state;
    if (op->id == TILE_OP_STORE_TILE) tile_op_erase(op);
}

/* Copies of the block's ops in front of one. */
static void copy_until(TileBuilder *b, TileMap *map, const TileBlock *block, const TileOp *last) {
    for (const TileOp *op = block->first; op != last; op = op->next) tile_builder_insert(b, tile_op_clone(b->module, op, map));
}

/* The iteration of this number, which begins with what the first one does. */
static void begin_iteration(TileBuilder *b, TileMap *map, const TileOp *loop, TileValue *number) {
    const TileBlock *body = &loop->regions[0];
    TileValue *far = tile_build_binary(b, TILE_OP_MUL, number, tile_op_named(loop, TILE_OPERAND_STEP));
    tile_map_set(map, body->arguments[0], tile_build_binary(b, TILE_OP_ADD, tile_op_named(loop, TILE_OPERAND_LO), far));
    for (unsigned i = 0; i < loop->result_count; i++) {
        TileValue *first = tile_loop_carried(loop, i), *copy = tile_map_get(map, first);
        tile_map_set(map, body->arguments[1 + i], copy ? copy : first);
    }
}

/* A copy of the program up to the loop, without stores; what the results do not need has no use there. Returns the copy of the loop. */
static TileOp *copy_program(Sharing *s, TileBuilder *host, uintptr_t axes, TileValue *const *counts, const TileOp *loop, TileValue **arguments) {
    TileModule *module = s->context->module;
    TileBlock *from = &s->grid->regions[0];
    TileValue *extents[MOST_AXES];
    unsigned count = 0, next = 0, all = count_axes(s);
    TileMap map;
    tile_map_init(&map, s->context->scratch);
    for (unsigned i = 0; i < all; i++)
        if (axes >> i & 1) extents[count++] = counts[i];
    TileOp *grid = tile_build_grid(host, extents, count);
    TileBlock *body = &grid->regions[0];
    TileBuilder b = tile_builder_at_end(module, body);
    b.location = loop->location;
    for (unsigned i = 0; i < all; i++) {
        arguments[i] = axes >> i & 1 ? body->arguments[next++] : tile_build_i64(&b, 0);
        if (i < from->argument_count) tile_map_set(&map, from->arguments[i], arguments[i]);
    }
    copy_until(&b, &map, from, s->outer ? s->outer : loop);
    if (s->outer) {
        begin_iteration(&b, &map, s->outer, arguments[all - 1]);
        copy_until(&b, &map, &s->outer->regions[0], loop);
    }
    TileOp *copy = tile_op_clone(module, loop, &map);
    tile_builder_insert(&b, copy);
    tile_block_walk(body, erase_store, NULL);
    return copy;
}

/* Few programs compute what many would have: their loops are split for as many as a device executes at a time. */
static void want_programs(const Sharing *s, TileOp *grid) {
    if (!s->context->target) return;
    tile_op_set_integer(s->context->module, grid, TILE_ATTRIBUTE_LEAST_PROGRAMS, tile_ptx_target_of(s->context->target)->cores);
}

/* The program's own place along each axis. */
static void find_places(const Sharing *s, TileBuilder *b, TileValue **places) {
    unsigned count = s->grid->operand_count;
    for (unsigned i = 0; i < count; i++) places[i] = s->grid->regions[0].arguments[i];
    if (!s->outer) return;
    TileValue *far = tile_build_binary(b, TILE_OP_SUB, s->outer->regions[0].arguments[0], tile_op_named(s->outer, TILE_OPERAND_LO));
    places[count] = tile_build_binary(b, TILE_OP_DIV, far, tile_op_named(s->outer, TILE_OPERAND_STEP));
}

static void share(Sharing *s, TileOp *loop, uintptr_t axes, const bool *shared) {
    TileModule *module = s->context->module;
    TileValue *arguments[MOST_AXES], *places[MOST_AXES], *counts[MOST_AXES];
    TileBuilder host = tile_builder_before(module, s->grid), behind = tile_builder_before(module, loop->next);
    host.location = behind.location = loop->location;
    unsigned all = count_axes(s);
    for (unsigned i = 0; i < all; i++) counts[i] = extent_of(s, &host, i);
    TileOp *copy = copy_program(s, &host, axes, counts, loop, arguments);
    TileBuilder b = tile_builder_at_end(module, copy->block), temps = tile_builder_before(module, copy->block->op);
    b.location = temps.location = loop->location;
    find_places(s, &behind, places);
    TileValue *number = number_of(&behind, all, axes, counts, places), *part = tile_build_i64(&behind, 0),
              *copied_number = number_of(&b, all, axes, counts, arguments), *copied_part = tile_build_i64(&b, 0);
    for (unsigned i = 0; i < loop->result_count; i++) {
        if (!shared[i]) continue;
        TileValue *temp = build_temp(s, &temps, axes, counts, loop->results[i].type);
        gpu_part_store(&b, temp, &copy->results[i], copied_number, copied_part);
        TileValue *loaded = gpu_part_load(&behind, temp, loop->results[i].type, number, part);
        tile_value_replace(&loop->results[i], loaded);
    }
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    want_programs(s, copy->block->op);
}

/* A grid for each set of axes that results of the loop depend on. */
static bool share_loop(Sharing *s, TileOp *loop, const char *why) {
    bool *shared = TILE_NEW_ARRAY(s->context->scratch, bool, loop->result_count), done = false;
    for (uintptr_t axes; (axes = shared_axes(s, loop, shared)); done = true) {
        tile_pass_remark(s->context, loop, why ? TILE_DECISION_NOT_SHARED : TILE_DECISION_SHARED, "the loop", "%s",
                         why ? why : "programs load what it computes");
        if (why) return false;
        share(s, loop, axes, shared);
    }
    return done;
}

/* Results of loops in the block, the grid's own or the outer loop's, one loop after the other: a later one may need what an earlier one has computed. */
static bool look_at_block(Sharing *s, TileBlock *body, const char *why) {
    bool done = false;
    find_axes(s);
    for (TileOp *loop = body->first; loop; loop = loop->next) {
        if (loop->id != TILE_OP_FOR || !loop->result_count || !share_loop(s, loop, why)) continue;
        find_axes(s);
        done = true;
    }
    return done;
}

static bool look_at_grid(Sharing *s) {
    TileBlock *body = &s->grid->regions[0];
    Contents contents = {.grid = s->grid};
    tile_block_walk(body, visit_contents, &contents);
    if (!contents.products) return false;
    bool done = s->grid->operand_count > 1 && look_at_block(s, body, contents.why);
    for (TileOp *loop = body->first; loop; loop = loop->next) {
        if (!is_axis(s, loop)) continue;
        s->outer = loop;
        done |= look_at_block(s, &loop->regions[0], contents.why);
        s->outer = NULL;
    }
    return done;
}

TileResult tile_pass_gpu_share_loops(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (func->kind != TILE_FUNC_KERNEL || !func->packs) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first, *next; op; op = next) {
        Sharing s = {.context = context, .kernel = func, .grid = op};
        next = op->next;
        if (op->id == TILE_OP_GRID && op->operand_count <= MOST_AXES) changed |= look_at_grid(&s);
    }
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
