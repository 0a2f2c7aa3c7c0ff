/* Purpose: divide programs among the blocks of a cluster, where the kernel asks for clusters and programs multiply nothing: each block has some of the iterations of each loop, or of a
 * loop in it that all it carries goes through, and what loops reduce all blocks combine through each other's shared memory, so that each has the result. So a launch of few programs, each with a long row, keeps the machine busy
 * with one grid; and the rows that are there at a time are fewer, so that loops which go over them again find them in the L2 cache, or in registers.
 * What is stored outside of loops the first block stores.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) cluster = 4 {
 *       %m = dim %x {axis = 0} : i64
 *       %n = dim %x {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       grid %n (%i: i64) {
 *         %sum = const {value = 0.0} : f32
 *         %sum.1 = for %zero, %m, %one, %sum : f32 (%k: i64, %sum.2: f32) {
 *           %v = load_tile %x, %k, %i {access = [index, index]} : f32
 *           %sum.3 = add %sum.2, %v : f32
 *           yield %sum.3
 *         }
 *         store_tile %y, %sum.1, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) cluster = 4 {
 *       %m = dim %x {axis = 0} : i64
 *       %n = dim %x {axis = 1} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 4} : i64
 *       %1 = const {value = 0} : i64
 *       %2 = max %m, %1 : i64
 *       %3 = const {value = 3} : i64
 *       %4 = add %2, %3 : i64
 *       %5 = div %4, %0 : i64
 *       grid %n, %0 {multicast = 4} (%i: i64, %6: i64) {
 *         %7 = mul %6, %5 : i64
 *         %8 = add %7, %5 : i64
 *         %9 = min %m, %8 : i64
 *         %10 = const {value = 0.0} : f32
 *         %sum.1 = for %7, %9, %one, %10 {part = 4, row = [0, 0]} : f32 (%k: i64, %sum.2: f32) {
 *           %v = load_tile %x, %k, %i {access = [index, index]} : f32
 *           %sum.3 = add %sum.2, %v : f32
 *           yield %sum.3
 *         }
 *         %11 = cluster_reduce %sum.1 {offset = 0, kind = sum} : f32
 *         %12 = eq %6, %1 : bool
 *         if %12 {
 *           store_tile %y, %11, %i {access = [index]}
 *           yield
 *         } {
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-share-rows,canonicalise,cse,dce --target=sm_90a
 * Of a nest the blocks share the outermost loop whose bounds are known outside of the grid, and where it has fewer iterations than there are blocks, the one in it as well:
 * channels of a group begin where the program says, but their pixels do not. All blocks go through the iterations of loops around that.
 *
 * Needs: inline; loops whose bounds are known outside of the grid, so licm. Keeps: tile form. Cost: linear. */
#include "lang/ir/access.h"
#include "lang/ir/build.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/grid/grid_parts.h"
#include "ptx/passes.h"
#include "ptx/target/target.h"

enum { MOST_LOOPS = 8, GRAIN = 16, LEAST_BITS = 32 };

/* Bounds of loops that have been narrowed: others with the same ones share what they became. */
typedef struct Narrowed {
    TileValue *lo, *hi, *step, *first, *end;
} Narrowed;

/* Loops whose iterations blocks share, one in the other. */
typedef struct Nest {
    TileOp *loops[GPU_MOST_NESTED];
    unsigned depth;
} Nest;

typedef struct Shared {
    TilePassContext *context;
    TileFunc *kernel;
    TileOp *grid;
    TileOp *loops[MOST_LOOPS]; /* in the grid's block */
    Nest nests[MOST_LOOPS];    /* of each */
    GpuMerge merges[MOST_LOOPS]; /* of those that carry something */
    unsigned count, sums;
    Narrowed narrowed[MOST_LOOPS];
    unsigned narrowed_count;
    int64_t offset;    /* of shared memory that exchanges have */
    TileValue *part;   /* number of the block in its cluster */
    const TileOp *why; /* the place of an obstacle */
} Shared;

/* ---- which grids ---- */

static bool may_read(const TileOp *op, const TileValue *written) {
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (may_read(inner, written)) return true;
    return !op->region_count && tile_op_reads(op) && tile_memory_overlaps(written, tile_memory_tensor(op));
}

typedef struct Stores {
    const TileOp *loop; /* around it, in the grid's block; NULL: none */
    const TileOp *op;   /* is another store than this of the same tensor */
    bool found;
} Stores;

static void look_for_store(TileOp *op, void *data) {
    Stores *stores = data;
    if (op == stores->op || op->id != TILE_OP_STORE_TILE) return;
    const TileOp *around = op;
    while (around->block->op->id != TILE_OP_GRID) around = around->block->op;
    stores->found |= around != stores->loop && tile_memory_overlaps(tile_memory_tensor(op), tile_memory_tensor(stores->op));
}

static bool is_in(const TileOp *op, const TileOp *loop) {
    while (op != loop && op->block->op) op = op->block->op;
    return op == loop;
}

/* Does each block write other elements: those of its own iterations? */
static bool is_of_block(const Shared *s, const TileOp *store, const TileOp *loop) {
    for (unsigned i = 0; i < s->count; i++) {
        const Nest *nest = &s->nests[i];
        if (s->loops[i] != loop) continue;
        for (unsigned k = 0; k < nest->depth; k++)
            if (!is_in(store, nest->loops[k]) || !tile_access_is_apart(store, nest->loops[k])) return false;
        return true;
    }
    return false;
}

/* Programs do not read what they write, and elements are written by the block that has the loop's iteration, or by the first one. */
static const char *obstacle_of_store(Shared *s, const TileOp *store, const TileOp *loop) {
    Stores stores = {.loop = loop, .op = store};
    if (store->id != TILE_OP_STORE_TILE) return "it writes to memory by another op than a store";
    if (loop && !is_of_block(s, store, loop)) return "iterations may write the same elements";
    for (const TileOp *op = s->grid->regions[0].first; op; op = op->next)
        if (may_read(op, tile_memory_tensor(store))) return "the grid may read what it writes";
    tile_block_walk(&s->grid->regions[0], look_for_store, &stores);
    return stores.found ? "the grid writes the same tensor elsewhere" : NULL;
}

static bool combines_words(const TileOp *loop) {
    for (unsigned i = 0; i < loop->result_count; i++) {
        const TileType *type = loop->results[i].type;
        bool value = type->kind == TILE_TYPE_SCALAR || tile_type_is_tile(type);
        if (!value || tile_scalar_bits(type->scalar) < LEAST_BITS) return false;
    }
    return true;
}

static const char *obstacle_of_writes(Shared *s, const TileBlock *block, const TileOp *loop) {
    for (const TileOp *op = block->first; op; op = op->next) {
        const char *why = NULL;
        s->why = op;
        for (unsigned r = 0; r < op->region_count && !why; r++) why = obstacle_of_writes(s, &op->regions[r], loop ? loop : op);
        if (!why && !op->region_count && tile_op_writes(op)) why = obstacle_of_store(s, op, loop);
        if (why) return why;
    }
    return NULL;
}

/* The loop in it that all it carries goes through, beside which nothing is written, and no other one; NULL: there is none. */
static TileOp *only_loop_in(const TileOp *loop) {
    TileOp *inner = NULL;
    for (TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->id == TILE_OP_FOR && !inner)
            inner = op;
        else if (op->region_count || tile_op_writes(op))
            return NULL;
    }
    return inner && (loop->result_count ? gpu_split_inner_loop(loop) == inner : !inner->result_count) ? inner : NULL;
}

/* The outermost loop whose bounds are the same for all programs, and those like it in that one. False: there is none. */
static bool find_nest(const Shared *s, TileOp *loop, Nest *nest) {
    GpuSplit split = {.kernel = s->kernel};
    nest->depth = 0;
    while (loop && !gpu_split_is_counted(&split, loop)) loop = only_loop_in(loop);
    for (; loop && nest->depth < GPU_MOST_NESTED && gpu_split_is_counted(&split, loop); loop = only_loop_in(loop)) nest->loops[nest->depth++] = loop;
    return nest->depth > 0;
}

static const char *add_loop(Shared *s, TileOp *loop) {
    GpuMerge *merge = &s->merges[s->count];
    s->why = loop;
    if (s->count == MOST_LOOPS) return "it has too many loops";
    if (tile_op_integer(loop, TILE_ATTRIBUTE_ORDERED, 0)) return "a loop's iterations are ordered";
    if (!find_nest(s, loop, &s->nests[s->count])) return "a loop's bounds differ from program to program";
    if (loop->result_count && tile_op_writes(loop)) return "a loop stores and carries values";
    if (loop->result_count > TILE_MAX_FOLD || !combines_words(loop)) return "a loop carries too much, or what is no number of 32 or 64 bits";
    const char *why = loop->result_count ? gpu_merge_find(merge, loop, s->context->scratch) : NULL;
    if (why) return why;
    if (loop->result_count && (!merge->simple || merge->inductions || merge->tiles)) return "values that a loop carries depend on one another";
    s->sums += loop->result_count > 0;
    s->loops[s->count++] = loop;
    return NULL;
}

static void look_for_product(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_DOT; }

/* NULL: its programs can be divided. */
static const char *obstacle(Shared *s) {
    bool multiplies = false;
    s->why = s->grid;
    tile_block_walk(&s->grid->regions[0], look_for_product, &multiplies);
    if (multiplies) return "they multiply";
    if (s->grid->operand_count >= TILE_MAX_GRID_RANK || tile_op_get(s->grid, TILE_ATTRIBUTE_LEAST_PROGRAMS)) return "the grid's programs are counted otherwise";
    for (TileOp *op = s->grid->regions[0].first; op; op = op->next) {
        const char *why = NULL;
        s->why = op;
        if (op->id == TILE_OP_WHILE || (op->id == TILE_OP_IF && tile_op_writes(op))) return "they branch"; /* what only computes all blocks compute */
        if (op->id == TILE_OP_FOR) why = add_loop(s, op);
        if (why) return why;
    }
    s->why = s->grid;
    return s->sums ? obstacle_of_writes(s, &s->grid->regions[0], NULL) : "no loop of theirs reduces";
}

/* ---- their loops ---- */

/* So far from a block's first iteration to the next one's: whole steps. */
static TileValue *width_of_part(Shared *s, const TileOp *loop) {
    TileBuilder host = tile_builder_before(s->context->module, s->grid);
    TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI), *step = tile_op_named(loop, TILE_OPERAND_STEP),
              *one = tile_build_i64(&host, 1);
    TileValue *range = tile_build_binary(&host, TILE_OP_MAX, tile_build_binary(&host, TILE_OP_SUB, hi, lo), tile_build_i64(&host, 0));
    TileValue *trips = tile_build_binary(&host, TILE_OP_ADD, range, tile_build_binary(&host, TILE_OP_SUB, step, one));
    trips = tile_build_binary(&host, TILE_OP_DIV, trips, step);
    trips = tile_build_binary(&host, TILE_OP_ADD, trips, tile_build_i64(&host, s->kernel->cluster - 1));
    trips = tile_build_binary(&host, TILE_OP_DIV, trips, tile_build_i64(&host, s->kernel->cluster));
    return tile_build_binary(&host, TILE_OP_MUL, trips, step);
}

static const Narrowed *find_narrowed(const Shared *s, const Narrowed *like) {
    for (unsigned i = 0; i < s->narrowed_count; i++) {
        const Narrowed *n = &s->narrowed[i];
        if (tile_value_is_same(n->lo, like->lo) && tile_value_is_same(n->hi, like->hi) && tile_value_is_same(n->step, like->step)) return n;
    }
    return NULL;
}

/* Names the extent that the loop goes over from 0 on, if it is a tensor's: gpu-keep-rows asks. */
static void name_row(Shared *s, TileOp *loop) {
    const TileOp *extent = tile_value_def(tile_op_named(loop, TILE_OPERAND_HI), TILE_OP_DIM);
    if (!extent || !tile_value_is_integer(tile_op_named(loop, TILE_OPERAND_LO), 0) || tile_op_operand(extent, 0)->block != &s->kernel->body) return;
    int64_t row[] = {tile_op_operand(extent, 0)->index, tile_op_integer(extent, TILE_ATTRIBUTE_AXIS, 0)};
    tile_op_set_integers(s->context->module, loop, TILE_ATTRIBUTE_ROW, row, 2);
}

/* Leaves the loop the block's iterations. */
static void narrow(Shared *s, TileOp *loop) {
    unsigned count, lo = tile_op_operands(loop, TILE_OPERAND_LO, &count), hi = tile_op_operands(loop, TILE_OPERAND_HI, &count);
    Narrowed mine = {.lo = tile_op_named(loop, TILE_OPERAND_LO), .hi = tile_op_named(loop, TILE_OPERAND_HI), .step = tile_op_named(loop, TILE_OPERAND_STEP)};
    const Narrowed *same = find_narrowed(s, &mine);
    if (!same) {
        TileValue *width = width_of_part(s, loop);
        TileBuilder b = tile_builder_before(s->context->module, s->grid->regions[0].first);
        mine.first = tile_build_binary(&b, TILE_OP_ADD, mine.lo, tile_build_binary(&b, TILE_OP_MUL, s->part, width));
        mine.end = tile_build_binary(&b, TILE_OP_MIN, mine.hi, tile_build_binary(&b, TILE_OP_ADD, mine.first, width));
        s->narrowed[s->narrowed_count++] = mine;
        same = &mine;
    }
    tile_op_set_operand(loop, lo, same->first);
    tile_op_set_operand(loop, hi, same->end);
}

/* Leaves the loops of a nest the block's iterations, which it has of the outermost one first. */
static void narrow_nest(Shared *s, const Nest *nest) {
    TileBuilder host = tile_builder_before(s->context->module, s->grid), b = tile_builder_before(s->context->module, s->grid->regions[0].first);
    GpuSplit split = {.context = s->context, .kernel = s->kernel, .grid = s->grid, .depth = nest->depth};
    TileValue *part = s->part;
    for (unsigned k = 0; k < nest->depth; k++) split.nest[k] = nest->loops[k];
    gpu_split_share_nest(&split, &host, s->kernel->cluster);
    for (unsigned k = nest->depth; --k;) {
        gpu_split_narrow(&b, nest->loops[k], tile_build_binary(&b, TILE_OP_REM, part, split.shares[k]), split.trips[k]);
        part = tile_build_binary(&b, TILE_OP_DIV, part, split.shares[k]);
    }
    gpu_split_narrow(&b, nest->loops[0], part, split.trips[0]);
}

/* So many bytes, each axis rounded up to a power of two, as layouts have it. */
static int64_t bytes_of(const TileType *type) {
    int64_t bytes = tile_scalar_bytes(type->scalar);
    for (unsigned a = 0; tile_type_is_tile(type) && a < type->rank; a++) {
        int64_t extent = 1;
        while (extent < type->extent[a]) extent *= 2;
        bytes *= extent;
    }
    return (bytes + GRAIN - 1) / GRAIN * GRAIN;
}

static void replace_behind(TileValue *value, const TileOp *made, TileValue *by) {
    for (TileUse *use = value->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user != made) tile_op_set_operand(use->user, use->index, by);
    }
}

/* What the loop carries begins with what changes nothing, and all blocks' results are combined with what it began with. */
static void combine(Shared *s, unsigned number) {
    TileOp *loop = s->loops[number];
    TileModule *module = s->context->module;
    TileBuilder before = tile_builder_before(module, loop), b = tile_builder_before(module, loop->next);
    unsigned count, carried = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
    TileOp *all[TILE_MAX_FOLD];
    b.location = loop->location;
    for (unsigned i = 0; i < count; i++) {
        TileValue *result = &loop->results[i];
        TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_KIND, .integer = s->merges[number].values[i].kind}, {.key = TILE_ATTRIBUTE_OFFSET, .integer = s->offset}};
        all[i] = tile_build_op(&b, TILE_OP_CLUSTER_REDUCE, &result, 1, attributes, 2, NULL, 1);
        s->offset += bytes_of(result->type);
    }
    for (unsigned i = 0; i < count; i++) {
        TileValue *result = &loop->results[i], *begin = tile_loop_carried(loop, i);
        TileName kind = s->merges[number].values[i].kind;
        uint64_t none = tile_eval_identity(kind, result->type->scalar), bits;
        bool nothing = tile_value_bits(begin, &bits) && bits == none;
        TileValue *sum = &all[i]->results[0];
        tile_op_set_operand(loop, carried + i, tile_build_bits(&before, result->type, none));
        if (!nothing) sum = tile_build_binary(&b, tile_eval_combiner(kind), begin, sum);
        replace_behind(result, all[i], sum);
    }
}

/* ---- what is stored outside of loops ---- */

static void store_once(Shared *s) {
    TileModule *module = s->context->module;
    for (TileOp *op = s->grid->regions[0].first, *next; op; op = next) {
        next = op->next;
        if (op->id != TILE_OP_STORE_TILE) continue;
        TileBuilder b = tile_builder_before(module, op);
        TileOp *branch = tile_build_if(&b, tile_build_binary(&b, TILE_OP_EQ, s->part, tile_build_i64(&b, 0)), NULL, 0);
        tile_op_detach(op);
        tile_op_append(op, &branch->regions[0]);
        for (unsigned r = 0; r < 2; r++) {
            TileBuilder end = tile_builder_at_end(module, &branch->regions[r]);
            tile_build_end(&end, TILE_OP_YIELD, NULL, 0);
        }
    }
}

/* ---- the pass ---- */

static bool share(TilePassContext *context, TileFunc *kernel, TileOp *grid) {
    Shared *s = TILE_NEW(context->scratch, Shared);
    *s = (Shared){.context = context, .kernel = kernel, .grid = grid};
    const char *why = obstacle(s);
    if (why) {
        tile_pass_remark(context, s->why, TILE_DECISION_NO_CLUSTERS, "programs", "%s", why);
        return false;
    }
    TileBuilder host = tile_builder_before(context->module, grid);
    GpuSplit split = {.context = context, .kernel = kernel, .grid = grid, .parts = tile_build_i64(&host, kernel->cluster)};
    s->part = gpu_split_widen_grid(&split, grid);
    store_once(s);
    for (unsigned i = 0; i < s->count; i++) {
        const Nest *nest = &s->nests[i];
        if (nest->depth == 1 && nest->loops[0] == s->loops[i]) name_row(s, s->loops[i]);
        if (nest->depth == 1)
            narrow(s, nest->loops[0]);
        else
            narrow_nest(s, nest);
        for (unsigned k = 0; k < nest->depth; k++) tile_op_set_integer(context->module, nest->loops[k], TILE_ATTRIBUTE_PART, TILE_PART_OF_CLUSTER);
        if (s->loops[i]->result_count) combine(s, i);
    }
    tile_op_set_integer(context->module, grid, TILE_ATTRIBUTE_MULTICAST, kernel->cluster);
    tile_pass_remark(context, s->loops[0], TILE_DECISION_CLUSTERS, "programs", "%u blocks each, which share the loops' iterations", kernel->cluster);
    return true;
}

TileResult tile_pass_gpu_share_rows(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (func->kind != TILE_FUNC_KERNEL || func->cluster < 2 || !tile_ptx_target_of(context->target)->has_clusters) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_GRID) changed |= share(context, func, op);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
