/* Purpose: interleave copies with products. Copies in a branch that is marked `spread` are distributed evenly among the
 * products that follow it, each with a mask; other parts of the branch (loops of chunks, copies element by element)
 * stay in a branch, which is rarely taken. The commit of the copies follows the last of them. If no product follows,
 * the branch does not change.
 *
 * Before:
 *     func phase machine @k.0(%from: ptr<global>, %c: ptr<global>, %some: bool, %whole: bool, %shared: ptr<shared>)
 *                             threads = 32 {
 *       %chunk = const {value = 16} : i32
 *       %first = const {value = 0.0} : vec<4 x f32>
 *       %bytes = const {value = 512} : i64
 *       %a = load_matrix %shared : vec<8 x f16>
 *       %b = load_matrix %shared : vec<4 x f16>
 *       if %some {spread = 1} {
 *         %to = ptr_add %shared, %bytes : ptr<shared>
 *         if %whole {
 *           copy_async %to, %from, %chunk {bytes = 16}
 *           yield
 *         } {
 *           %zero = const {value = 0} : i64
 *           %four = const {value = 4} : i64
 *           %n = const {value = 16} : i64
 *           %word = const {value = 4} : i32
 *           for %zero, %n, %four (%i: i64) {
 *             %next = ptr_add %to, %i : ptr<shared>
 *             %place = ptr_add %from, %i : ptr<global>
 *             copy_async %next, %place, %word {bytes = 4}
 *             yield
 *           }
 *           yield
 *         }
 *         yield
 *       } {
 *         yield
 *       }
 *       copy_commit
 *       %s = mma %a, %b, %first : vec<4 x f32>
 *       %t = mma %a, %b, %s : vec<4 x f32>
 *       store %t, %c
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%from: ptr<global>, %c: ptr<global>, %some: bool, %whole: bool, %shared: ptr<shared>)
 *                             threads = 32 {
 *       %chunk = const {value = 16} : i32
 *       %first = const {value = 0.0} : vec<4 x f32>
 *       %bytes = const {value = 512} : i64
 *       %a = load_matrix %shared : vec<8 x f16>
 *       %b = load_matrix %shared : vec<4 x f16>
 *       %0 = not %whole : bool
 *       %1 = and %some, %0 : bool
 *       if %1 {
 *         if %1 {
 *           %zero = const {value = 0} : i64
 *           %four = const {value = 4} : i64
 *           %n = const {value = 16} : i64
 *           %word = const {value = 4} : i32
 *           %to = ptr_add %shared, %bytes : ptr<shared>
 *           for %zero, %n, %four (%i: i64) {
 *             %next = ptr_add %to, %i : ptr<shared>
 *             %place = ptr_add %from, %i : ptr<global>
 *             copy_async %next, %place, %word {bytes = 4}
 *             yield
 *           }
 *           yield
 *         } {
 *           yield
 *         }
 *         yield
 *       } {
 *         yield
 *       }
 *       %s = mma %a, %b, %first : vec<4 x f32>
 *       %2 = and %some, %whole : bool
 *       %to.1 = ptr_add %shared, %bytes : ptr<shared>
 *       copy_async %to.1, %from, %chunk, %2 {parts = [mask], bytes = 16}
 *       copy_commit
 *       %t = mma %a, %b, %s : vec<4 x f32>
 *       store %t, %c
 *       return
 *     }
 * Needs: gpu-expand. Copies do not alias accesses between the branch and its commit. Keeps: machine form. Cost: linear
 * in the ops of the branch. */
#include "lowering/each.h"
#include "ptx/pipeline/loop.h"
#include "ptx/passes.h"

/* One arm of an `if` inside of the branch: it runs if the condition selects it and the `if` itself runs. */
typedef struct Choice {
    struct Choice *parent; /* NULL: the marked branch itself */
    TileValue *condition;
    bool otherwise;  /* the second region */
    TileValue *mask; /* NULL: not yet built */
} Choice;

/* A copy, or a region that stays a region. */
typedef struct Piece {
    const TileOp *copy;
    TileBlock *region;
    Choice *choice;
} Piece;

typedef TILE_LIST(Piece) Pieces;

typedef struct Spread {
    TilePassContext *context;
    GpuCopies made; /* clones of ops of the branch's regions */
    Pieces copies, regions;
    TileBuilder b;
} Spread;

/* ---- analysis of the branch ---- */

static bool is_bare_if(const TileOp *op) { return op->id == TILE_OP_IF && op->result_count == 0; }

static bool has_copies(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_COPY_ASYNC) return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (has_copies(&op->regions[i])) return true;
    }
    return false;
}

/* Has the block only copies, pure ops, and branches without results, whose regions are analysed on their own? */
static bool comes_apart(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        bool plain = tile_op_is_pure(op) && !op->region_count;
        bool copy = op->id == TILE_OP_COPY_ASYNC && !tile_op_get(op, TILE_ATTRIBUTE_PARTS);
        if (!plain && !copy && !is_bare_if(op) && op->id != TILE_OP_YIELD) return false;
    }
    return has_copies(block);
}

static bool does_nothing(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id != TILE_OP_YIELD && (!tile_op_is_pure(op) || op->region_count)) return false;
    return true;
}

static void take_apart(Spread *spread, TileBlock *block, Choice *choice) {
    TileArena *arena = spread->context->scratch;
    if (does_nothing(block)) return;
    if (!comes_apart(block)) {
        tile_list_push(arena, &spread->regions, ((Piece){.region = block, .choice = choice}));
        return;
    }
    for (TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_COPY_ASYNC)
            tile_list_push(arena, &spread->copies, ((Piece){.copy = op, .choice = choice}));
        for (unsigned i = 0; i < op->region_count; i++) {
            Choice *inner = TILE_NEW(arena, Choice);
            *inner = (Choice){choice, tile_op_operand(op, 0), i == 1, NULL};
            take_apart(spread, &op->regions[i], inner);
        }
    }
}

/* ---- insertion ---- */

static TileValue *mask_of(Spread *spread, TileBuilder *b, Choice *choice) {
    if (choice->mask) return choice->mask;
    TileValue *condition = gpu_follow(&spread->made, b, choice->condition);
    if (choice->otherwise) condition = tile_build_unary(b, TILE_OP_NOT, condition);
    if (choice->parent) condition = tile_build_binary(b, TILE_OP_AND, mask_of(spread, b, choice->parent), condition);
    return choice->mask = condition;
}

static TileBuilder open_branch(Spread *spread, TileBuilder *b, TileValue *condition) {
    TileOp *branch = tile_build_if(b, condition, NULL, 0);
    TileBuilder inside = tile_builder_at_end(spread->context->module, &branch->regions[1]);
    tile_build_end(&inside, TILE_OP_YIELD, NULL, 0);
    return tile_builder_at_end(spread->context->module, &branch->regions[0]);
}

/* Builds the remaining regions inside of one branch, which is rarely taken. */
static void build_branches(Spread *spread) {
    TileBuilder *b = &spread->b;
    TileValue *some = NULL;
    for (size_t i = 0; i < spread->regions.count; i++) {
        TileValue *mask = mask_of(spread, b, spread->regions.items[i].choice);
        some = some ? tile_build_binary(b, TILE_OP_OR, some, mask) : mask;
    }
    if (!some) return;
    TileBuilder outer = open_branch(spread, b, some);
    for (size_t i = 0; i < spread->regions.count; i++) {
        const Piece *piece = &spread->regions.items[i];
        TileBuilder inner = open_branch(spread, &outer, piece->choice->mask);
        gpu_copy_region(&spread->made, piece->region, inner.block);
    }
    tile_build_end(&outer, TILE_OP_YIELD, NULL, 0);
    if (!b->error) b->error = outer.error;
}

static void build_copy(Spread *spread, const Piece *piece) {
    TileModule *module = spread->context->module;
    TileValue *mask = mask_of(spread, &spread->b, piece->choice);
    for (unsigned i = 0; i < piece->copy->operand_count; i++)
        gpu_follow(&spread->made, &spread->b, tile_op_operand(piece->copy, i));
    TileOp *copy = tile_op_clone(module, piece->copy, spread->made.map);
    int64_t parts = TILE_PARTS_MASK;
    tile_op_add_operand(module, copy, mask);
    tile_op_set(module, copy, (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &parts});
    tile_builder_insert(&spread->b, copy);
}

/* Must copies that were issued before the op not be issued behind it? It waits for them, or others do behind a barrier; a
 * loop or a branch may. */
static bool needs_copies(const TileOp *op) {
    return op->region_count || op->id == TILE_OP_COPY_WAIT || op->id == TILE_OP_BARRIER;
}

/* The product from the op on, up to which copies can be moved; NULL: there is none. */
static TileOp *next_product(TileOp *op) {
    while (op && op->id != TILE_OP_MMA && !needs_copies(op)) op = op->next;
    return tile_op_is(op, TILE_OP_MMA) ? op : NULL;
}

/* The commit of the branch's copies, if no other op with effects is before it. */
static TileOp *find_commit(const TileOp *branch) {
    TileOp *op = branch->next;
    while (op && tile_op_is_pure(op)) op = op->next;
    return tile_op_is(op, TILE_OP_COPY_COMMIT) ? op : NULL;
}

static void spread_branch(Spread *spread, TileOp *branch, TileOp *commit, TileOp *first) {
    unsigned products = 0, done = 0, copies = 0;
    for (unsigned i = 0; i < branch->region_count; i++) {
        Choice *choice = TILE_NEW(spread->context->scratch, Choice);
        *choice = (Choice){NULL, tile_op_operand(branch, 0), i == 1, NULL};
        take_apart(spread, &branch->regions[i], choice);
    }
    spread->b = tile_builder_before(spread->context->module, first);
    build_branches(spread);
    copies = (unsigned)spread->copies.count;
    for (TileOp *op = first; op; op = next_product(op->next)) products++;
    TileOp *at = first;
    for (unsigned passed = 0; done < copies; done++) {
        for (; passed < (done + 1) * products / (copies + 1); passed++) at = next_product(at->next);
        spread->b.before = at;
        build_copy(spread, &spread->copies.items[done]);
    }
    tile_op_detach(commit);
    tile_builder_insert(&spread->b, commit);
    tile_op_erase(branch);
}

static bool try_branch(TilePassContext *context, TileOp *branch, const char **error) {
    if (!tile_op_integer(branch, TILE_ATTRIBUTE_SPREAD, 0)) return false;
    TileOp *commit = find_commit(branch), *first = commit ? next_product(commit->next) : NULL;
    tile_op_clear(branch, TILE_ATTRIBUTE_SPREAD);
    if (!first || branch->result_count) return true;
    TileMap map;
    tile_map_init(&map, context->scratch);
    Spread spread = {.context = context, .made = {context, branch, &map, false}};
    spread_branch(&spread, branch, commit, first);
    if (spread.made.failed) *error = "a copy takes what its branch does not compute";
    if (spread.b.error) *error = spread.b.error;
    return true;
}

TileResult tile_pass_gpu_spread(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_IF, try_branch, "gpu-spread");
}
