/* Purpose: begin each trip of a loop of products at the end of the trip before it. The head of a trip waits for its
 * copies, begins those of a later trip and loads the first fragments; where it stands at the start of the body, tensor
 * cores have nothing to do meanwhile. Here it runs between the last fragments' loads and their products, and the first
 * fragments are carried into the next trip. Copies that are nothing but copies come one by one between these products,
 * each under a mask; what else the head does for a later trip (chunks in a loop, element by element) stays behind one
 * branch, which is rarely taken.
 *
 * Before:
 *     func phase machine @k.0(%from: ptr<global>, %c: ptr<global>, %n: i64, %shared: ptr<shared>) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %bytes = const {value = 1024} : i64
 *       %chunk = const {value = 16} : i32
 *       %first = const {value = 0.0} : vec<4 x f32>
 *       %sums, %end = for %zero, %n, %one, %first, %zero : vec<4 x f32>, i64 (%k: i64, %acc: vec<4 x f32>,
 *           %slot: i64) {
 *         %next = sub %one, %slot : i64
 *         copy_wait {pending = 0}
 *         barrier
 *         %later = add %k, %one : i64
 *         %some = lt %later, %n : bool
 *         if %some {
 *           %0 = mul %next, %bytes : i64
 *           %to = ptr_add %shared, %0 : ptr<shared>
 *           %1 = mul %later, %bytes : i64
 *           %place = ptr_add %from, %1 : ptr<global>
 *           copy_async %to, %place, %chunk {bytes = 16}
 *           yield
 *         } {
 *           yield
 *         }
 *         copy_commit
 *         %2 = mul %slot, %bytes : i64
 *         %p = ptr_add %shared, %2 : ptr<shared>
 *         %a = load_matrix %p : vec<8 x f16>
 *         %b = load_matrix %p : vec<4 x f16>
 *         %s = mma %a, %b, %acc : vec<4 x f32>
 *         %b.1 = load_matrix %p {transposed = 1} : vec<4 x f16>
 *         %t = mma %a, %b.1, %s : vec<4 x f32>
 *         yield %t, %next
 *       }
 *       store %sums, %c
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%from: ptr<global>, %c: ptr<global>, %n: i64, %shared: ptr<shared>) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %bytes = const {value = 1024} : i64
 *       %chunk = const {value = 16} : i32
 *       %first = const {value = 0.0} : vec<4 x f32>
 *       copy_wait {pending = 0}
 *       barrier
 *       %0 = mul %zero, %bytes : i64
 *       %p = ptr_add %shared, %0 : ptr<shared>
 *       %a = load_matrix %p : vec<8 x f16>
 *       %b = load_matrix %p : vec<4 x f16>
 *       %later = add %zero, %one : i64
 *       %some = lt %later, %n : bool
 *       %next = sub %one, %zero : i64
 *       %1 = lt %zero, %n : bool
 *       %2 = and %1, %some : bool
 *       if %2 {
 *         %3 = mul %next, %bytes : i64
 *         %to = ptr_add %shared, %3 : ptr<shared>
 *         %4 = mul %later, %bytes : i64
 *         %place = ptr_add %from, %4 : ptr<global>
 *         copy_async %to, %place, %chunk {bytes = 16}
 *         yield
 *       } {
 *         yield
 *       }
 *       copy_commit
 *       %sums, %end, %5, %6 = for %zero, %n, %one, %first, %zero, %a, %b : vec<4 x f32>, i64, vec<8 x f16>, vec<4 x
 *           f16> (%k: i64, %acc: vec<4 x f32>, %slot: i64, %a.1: vec<8 x f16>, %b.1: vec<4 x f16>) {
 *         %next.1 = sub %one, %slot : i64
 *         %later.1 = add %k, %one : i64
 *         %some.1 = lt %later.1, %n : bool
 *         %7 = mul %slot, %bytes : i64
 *         %p.1 = ptr_add %shared, %7 : ptr<shared>
 *         %s = mma %a.1, %b.1, %acc : vec<4 x f32>
 *         %b.1.1 = load_matrix %p.1 {transposed = 1} : vec<4 x f16>
 *         %8 = add %k, %one : i64
 *         copy_wait {pending = 0}
 *         barrier
 *         %9 = mul %next.1, %bytes : i64
 *         %p.2 = ptr_add %shared, %9 : ptr<shared>
 *         %a.2 = load_matrix %p.2 : vec<8 x f16>
 *         %b.2 = load_matrix %p.2 : vec<4 x f16>
 *         %10 = lt %8, %n : bool
 *         %later.2 = add %8, %one : i64
 *         %some.2 = lt %later.2, %n : bool
 *         %11 = and %10, %some.2 : bool
 *         %next.2 = sub %one, %next.1 : i64
 *         %12 = mul %next.2, %bytes : i64
 *         %to.1 = ptr_add %shared, %12 : ptr<shared>
 *         %13 = mul %later.2, %bytes : i64
 *         %place.1 = ptr_add %from, %13 : ptr<global>
 *         copy_async %to.1, %place.1, %chunk, %11 {parts = [mask], bytes = 16}
 *         copy_commit
 *         %t = mma %a.1, %b.1.1, %s : vec<4 x f32>
 *         yield %t, %next.1, %a.2, %b.2
 *       }
 *       store %sums, %c
 *       return
 *     }
 * The order of all accesses to memory stays what it was, but for loads of fragments against copies of other slots, and
 * for copies against what stands beside them behind a branch, which fills other places.
 * After the last trip a head runs for a trip that is none: it copies nothing, and nobody uses what it loads. Where the
 * body has another barrier, which stood between these loads and all that follows the loop, there is one behind it now.
 *
 * Needs: gpu-machine. Keeps: machine form. Cost: linear in the body, which does not grow; code in front of the loop
 * does by the head. */
#include "ptx/copies.h"
#include "ptx/each.h"
#include "ptx/loop.h"
#include "ptx/passes.h"
#include "ptx/schedule.h"

enum { MOST_LOADS = 64 };

typedef struct Rotation {
    TilePassContext *context;
    TileOp *loop;
    TileBlock *body;
    TileOp *wait, *barrier, *copies, *commit; /* the head's ops, in this order; `copies` may be NULL */
    TileOp *first, *last;                     /* products: the first one, and the first of the last step */
    TileOp *loads[MOST_LOADS];                /* of the first step's fragments */
    unsigned count;
    TileBuilder b;
} Rotation;

/* ---- what the body is made of ---- */

static bool is_effect(const TileOp *op) { return !tile_op_is_pure(op); }

static bool is_bare_if(const TileOp *op) { return op->id == TILE_OP_IF && op->result_count == 0; }

/* copy_wait, barrier, perhaps copies under a condition, copy_commit: the first ops of the body that do anything. */
static bool find_head(Rotation *r) {
    for (TileOp *op = r->body->first; op && !r->commit; op = op->next) {
        if (!is_effect(op)) continue;
        if (!r->wait && op->id == TILE_OP_COPY_WAIT)
            r->wait = op;
        else if (r->wait && !r->barrier && op->id == TILE_OP_BARRIER)
            r->barrier = op;
        else if (r->barrier && !r->copies && is_bare_if(op))
            r->copies = op;
        else if (r->barrier && op->id == TILE_OP_COPY_COMMIT)
            r->commit = op;
        else
            return false;
    }
    return r->commit != NULL;
}

static bool is_added_to(const Rotation *r, const TileOp *mma) {
    for (const TileUse *use = mma->results[0].first_use; use; use = use->next)
        if (use->user->id == TILE_OP_MMA && use->user->block == r->body && use->index == 2) return true;
    return false;
}

/* The last step's products are the last ones that no other adds to, with nothing but pure ops between and behind. */
static bool find_products(Rotation *r) {
    for (TileOp *op = r->commit; op && !r->first; op = op->next)
        if (op->id == TILE_OP_MMA) r->first = op;
    for (TileOp *op = r->body->last; op && op != r->first->previous; op = op->previous) {
        if (op->id == TILE_OP_YIELD) continue;
        if (op->id != TILE_OP_MMA && is_effect(op)) break;
        if (op->id == TILE_OP_MMA && is_added_to(r, op)) break;
        if (op->id == TILE_OP_MMA) r->last = op;
        if (op == r->first) break;
    }
    return r->first && r->last;
}

/* Bytes are better loaded late: one by one they would take four times the registers that they fill. */
static bool is_fragment_load(const TileOp *op) {
    if (op->id == TILE_OP_LOAD_MATRIX) return true;
    return op->id == TILE_OP_LOAD && op->operand_count == 1 &&
           tile_op_operand(op, 0)->type->space == TILE_SPACE_SHARED &&
           tile_scalar_bytes(op->results[0].type->scalar) >= 4;
}

/* Is the value made by pure ops of the body from what is known in front of it, and from its arguments? The loop's
 * number counts among them only where `numbered`. */
static bool is_computed(const Rotation *r, const TileValue *value, bool numbered) {
    if (tile_value_outside(value, r->loop)) return true;
    if (!value->op) return value->block == r->body && (numbered || value->index > 0);
    if (value->op->block != r->body || value->op->region_count || is_effect(value->op)) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!is_computed(r, tile_op_operand(value->op, i), numbered)) return false;
    return true;
}

/* Loads of fragments in front of the first product and of all else that does anything. */
static bool find_loads(Rotation *r) {
    for (TileOp *op = r->commit->next; op != r->first; op = op->next) {
        if (!is_effect(op)) continue;
        if (!is_fragment_load(op)) break;
        if (r->count == MOST_LOADS || !is_computed(r, tile_op_operand(op, 0), false)) return false;
        r->loads[r->count++] = op;
    }
    return r->count > 0;
}

/* ---- copies of the head ---- */

static TileValue *follow(Rotation *r, TileMap *map, TileValue *value) {
    return gpu_follow(r->context, &r->b, r->loop, map, value);
}

/* Values of the body that ops of the copies' regions take. */
typedef struct Taken {
    Rotation *rotation;
    TileMap *map; /* NULL: only ask whether they can be followed */
    bool fits;
} Taken;

static void follow_operands(TileOp *op, void *state) {
    Taken *taken = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        if (tile_value_block(value) != taken->rotation->body) continue;
        if (taken->map)
            follow(taken->rotation, taken->map, value);
        else
            taken->fits &= is_computed(taken->rotation, value, true);
    }
}

static bool can_follow(Rotation *r) {
    Taken taken = {r, NULL, true};
    if (!r->copies) return true;
    if (!is_computed(r, tile_op_operand(r->copies, 0), true)) return false;
    for (unsigned i = 0; i < r->copies->region_count; i++)
        tile_block_walk(&r->copies->regions[i], follow_operands, &taken);
    return taken.fits;
}

/* The wait and the first fragments of the trip that the map speaks of. */
static void build_arrival(Rotation *r, TileMap *map, TileValue **fragments) {
    TileModule *module = r->context->module;
    tile_builder_insert(&r->b, tile_op_clone(module, r->wait, map));
    tile_builder_insert(&r->b, tile_op_clone(module, r->barrier, map));
    for (unsigned i = 0; i < r->count; i++) {
        follow(r, map, tile_op_operand(r->loads[i], 0));
        TileOp *load = tile_op_clone(module, r->loads[i], map);
        tile_builder_insert(&r->b, load);
        fragments[i] = tile_op_result(load, 0);
    }
}

/* That trip is one only if its number is below the loop's end. */
static TileValue *build_exists(Rotation *r, TileValue *number) {
    return tile_build_binary(&r->b, TILE_OP_LT, number, tile_op_operand(r->loop, 1));
}

static void build_commit(Rotation *r, TileMap *map) {
    tile_builder_insert(&r->b, tile_op_clone(r->context->module, r->commit, map));
}

/* In front of the loop the copies come as they are. */
static void build_copies(Rotation *r, TileMap *map, TileValue *number) {
    Taken taken = {r, map, true};
    follow(r, map, tile_op_operand(r->copies, 0));
    for (unsigned i = 0; i < r->copies->region_count; i++)
        tile_block_walk(&r->copies->regions[i], follow_operands, &taken);
    TileOp *copies = tile_op_clone(r->context->module, r->copies, map);
    tile_op_set_operand(copies, 0,
                        tile_build_binary(&r->b, TILE_OP_AND, build_exists(r, number), tile_op_operand(copies, 0)));
    tile_builder_insert(&r->b, copies);
}

static TileOp *next_product(TileOp *op) {
    while (op && op->id != TILE_OP_MMA) op = op->next;
    return op;
}

/* In the loop they come one by one between the last products, evenly. */
static void spread_copies(Rotation *r, TileMap *map, TileValue *number) {
    GpuSpread *spread = gpu_spread_begin(r->context, r->loop, r->copies, build_exists(r, number), map);
    gpu_spread_branches(spread, &r->b);
    unsigned products = 0, copies = gpu_spread_count(spread), done = 0;
    for (TileOp *op = next_product(r->last); op; op = next_product(op->next)) products++;
    TileOp *at = r->last;
    for (unsigned passed = 0; done < copies; done++) {
        for (; passed < (done + 1) * products / (copies + 1); passed++) at = next_product(at->next);
        r->b.before = at;
        gpu_spread_copy(spread, &r->b);
    }
}

/* ---- the loop ---- */

/* What the next trip begins with has to be there before the last step. */
static bool is_known_early(const Rotation *r, const TileValue *value) {
    if (tile_value_outside(value, r->loop) || !value->op) return true;
    for (const TileOp *op = r->last; op; op = op->next)
        if (op == value->op) return false;
    return value->op->block == r->body;
}

/* Arguments that the head does not use may come as late as they like: the map has none for them. */
static bool uses_only_known(Rotation *r, const TileValue *value) {
    if (tile_value_outside(value, r->loop)) return true;
    if (!value->op) return value->index == 0 || is_known_early(r, tile_op_operand(r->body->last, value->index - 1));
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!uses_only_known(r, tile_op_operand(value->op, i))) return false;
    return true;
}

static void check_known(TileOp *op, void *state) {
    Taken *taken = state;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_value_block(tile_op_operand(op, i)) == taken->rotation->body)
            taken->fits &= uses_only_known(taken->rotation, tile_op_operand(op, i));
}

static bool is_known(Rotation *r) {
    Taken taken = {r, NULL, true};
    for (unsigned i = 0; i < r->count; i++) check_known(r->loads[i], &taken);
    if (!r->copies) return taken.fits;
    check_known(r->copies, &taken);
    for (unsigned i = 0; i < r->copies->region_count; i++) tile_block_walk(&r->copies->regions[i], check_known, &taken);
    return taken.fits;
}

static void count_barrier(TileOp *op, void *count) { *(unsigned *)count += op->id == TILE_OP_BARRIER; }

/* What comes next may write where the last head has read. */
static void build_last_barrier(Rotation *r) {
    unsigned barriers = 0;
    tile_block_walk(r->body, count_barrier, &barriers);
    if (barriers == 1) return;
    TileBuilder b = tile_builder_before(r->context->module, r->loop->next);
    b.location = r->loop->location;
    gpu_build_plain(&b, TILE_OP_BARRIER);
    if (b.error) r->b.error = b.error;
}

static void erase_head(Rotation *r) {
    tile_op_erase(r->wait);
    tile_op_erase(r->barrier);
    if (r->copies) tile_op_erase(r->copies);
    tile_op_erase(r->commit);
    for (unsigned i = 0; i < r->count; i++) tile_op_erase(r->loads[i]);
}

static void rotate(Rotation *r) {
    TileValue *fragments[MOST_LOADS];
    TileMap map;
    tile_map_init(&map, r->context->scratch);
    for (unsigned i = 0; i < r->body->argument_count; i++)
        tile_map_set(&map, r->body->arguments[i], tile_op_operand(r->loop, i ? 2 + i : 0));
    r->b = tile_builder_before(r->context->module, r->loop);
    build_arrival(r, &map, fragments);
    if (r->copies) build_copies(r, &map, tile_op_operand(r->loop, 0));
    build_commit(r, &map);
    unsigned carried = r->body->argument_count;
    r->loop = gpu_loop_carry(r->context, r->loop, fragments, r->count);
    r->body = &r->loop->regions[0];
    build_last_barrier(r);
    const char *error = r->b.error;
    r->b = tile_builder_before(r->context->module, r->last);
    r->b.error = error;
    tile_map_init(&map, r->context->scratch);
    TileValue *number = tile_build_binary(&r->b, TILE_OP_ADD, r->body->arguments[0], tile_op_operand(r->loop, 2));
    tile_map_set(&map, r->body->arguments[0], number);
    for (unsigned i = 1; i < carried; i++)
        tile_map_set(&map, r->body->arguments[i], tile_op_operand(r->body->last, i - 1));
    build_arrival(r, &map, fragments);
    if (r->copies) spread_copies(r, &map, number);
    build_commit(r, &map);
    for (unsigned i = 0; i < r->count; i++) {
        r->body->arguments[carried + i]->name = r->loads[i]->results[0].name;
        tile_value_replace(&r->loads[i]->results[0], r->body->arguments[carried + i]);
        tile_op_add_operand(r->context->module, r->body->last, fragments[i]);
    }
    erase_head(r);
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    Rotation r = {.context = context, .loop = loop, .body = &loop->regions[0]};
    if (!find_head(&r) || !find_products(&r) || !find_loads(&r) || !can_follow(&r) || !is_known(&r)) return false;
    rotate(&r);
    if (r.b.error) *error = r.b.error;
    return true;
}

TileResult tile_pass_gpu_schedule(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    return gpu_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-schedule");
}
