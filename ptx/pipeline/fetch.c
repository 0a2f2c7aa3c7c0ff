/* Purpose: load what an iteration of a loop takes while the iteration before computes, where lanes or warps exchange what
 * they compute: so much of an iteration passes without a load under way that threads would wait for memory first and for
 * each other then. What is loaded becomes loop-carried; the first iteration's is loaded in front of the loop, and nothing
 * is loaded for an iteration past the last. Loops of two iterations at most stay as they are, beside the other. So do all of a function
 * that is `busy`: while its threads wait, those of other programs compute, and there are the fewer of them the more registers each has.
 * Lines and numbers that a loop computes with the sums of its products by are loaded so in any function, behind what begins a product.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       layout 0 = [128] register 1 lane 2 4 8 16 32 warp 64 block
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 128} : i64
 *       %m = dim %x {axis = 0} : i64
 *       for %zero, %m, %one (%i: i64) {
 *         %v = load_tile %x, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[128] layout 0
 *         %sum = reduce %v {kind = sum, axis = 0} : f32
 *         store_tile %y, %sum, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       layout 0 = [128] register 1 lane 2 4 8 16 32 warp 64 block
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 128} : i64
 *       %m = dim %x {axis = 0} : i64
 *       %0 = sub %m, %zero : i64
 *       %1 = bitcast %0 : u64
 *       %2 = const {value = 2} : u64
 *       %3 = gt %1, %2 : bool
 *       %4 = lt %zero, %m : bool
 *       %5 = and %4, %3 : bool
 *       %6 = select %5, %m, %zero : i64
 *       %7 = const {value = 1} : i64
 *       %8 = lt %zero, %6 : bool
 *       %9 = if %8 : f32[128] layout 0 {
 *         %v = load_tile %x, %zero, %zero, %one, %zero, %n {access = [index, range]} : f32[128] layout 0
 *         yield %v
 *       } {
 *         %10 = const {value = 0.0} : f32[128] layout 0
 *         yield %10
 *       }
 *       %11 = for %zero, %6, %7, %9 : f32[128] layout 0 (%12: i64, %v.1: f32[128] layout 0) {
 *         %13 = add %12, %7 : i64
 *         %14 = lt %13, %6 : bool
 *         %15 = if %14 : f32[128] layout 0 {
 *           %v.2 = load_tile %x, %13, %zero, %one, %zero, %n {access = [index, range]} : f32[128] layout 0
 *           yield %v.2
 *         } {
 *           yield %v.1
 *         }
 *         %sum = reduce %v.1 {axis = 0, kind = sum} : f32
 *         store_tile %y, %sum, %12 {access = [index], apart = 1}
 *         yield %15
 *       }
 *       for %6, %m, %one (%i: i64) {
 *         %v.3 = load_tile %x, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[128] layout 0
 *         %sum.1 = reduce %v.3 {axis = 0, kind = sum} : f32
 *         store_tile %y, %sum.1, %i {access = [index], apart = 1}
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-propagate, and that one step past a loop's last iteration does not overflow, so exact-loops. Keeps: tile form,
 * and layouts. Cost: linear in the loops' bodies. */
#include "lang/ir/build.h"
#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "lowering/memory.h"
#include "ptx/passes.h"
#include "ptx/pipeline/loop.h"
#include "ptx/pipeline/unrolled.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"
#include "ptx/target/shuffles.h"

/* Registers of a thread that hold what is loaded for the next iteration: they are taken from the programs that a multiprocessor
 * could have beside. */
enum { MOST_LOADS = 16, MOST_REGISTERS = 24, MOST_BESIDE_PRODUCTS = 8, REGISTER_BYTES = 4, MOST_TOGETHER = 4, MOST_COMPUTED = 320, FEW_ITERATIONS = 2, LARGEST_STEP = 1 << 20 };

typedef struct Fetch {
    TilePassContext *context;
    TileOp *loop;
    TileOp *loads[MOST_LOADS];
    unsigned count;
    int64_t registers;
    const TileType *types[MOST_LOADS];
    bool says;   /* what it decides */
    bool beside; /* products, which run while it is loaded */
    const char *error;
} Fetch;

/* What happens in an iteration. */
typedef struct Survey {
    bool lanes, warps; /* of which exchange something */
    bool loops;        /* or products, in which what there is to be waited for is waited for */
    int64_t registers; /* of all that is computed: about so many instructions */
} Survey;

/* ---- which loops ---- */

static int64_t registers_of(const TileType *type) {
    int64_t elements = type->layout ? tile_layout_registers(type->layout) : 1;
    return (elements * tile_scalar_bytes(type->scalar) + REGISTER_BYTES - 1) / REGISTER_BYTES;
}

/* Do lanes, or warps, have different elements along the axis? */
static bool is_divided(const TileLayout *layout, unsigned axis, TileLayoutDim dim) {
    if (layout->rank == 1) return tile_layout_free_bits(layout, dim) != (1u << layout->bits[dim]) - 1;
    TileLayout rest = tile_layout_slice(layout, axis);
    return tile_layout_free_bits(&rest, dim) != tile_layout_free_bits(layout, dim);
}

/* Adds up what the op and those in its regions do. */
static void survey(const TileOp *op, Survey *found) {
    const TileLayout *layout = op->operand_count ? tile_op_operand(op, 0)->type->layout : NULL;
    unsigned axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    for (unsigned i = 0; i < op->result_count; i++) found->registers += registers_of(op->results[i].type);
    switch ((TileOpId)op->id) {
    case TILE_OP_FOR:
    case TILE_OP_WHILE:
    case TILE_OP_DOT: found->loops = true; break;
    case TILE_OP_REDUCE:
    case TILE_OP_ARG_REDUCE:
    case TILE_OP_FOLD:
    case TILE_OP_SCAN:
        found->lanes |= layout && is_divided(layout, axis, TILE_LAYOUT_LANE);
        found->warps |= layout && is_divided(layout, axis, TILE_LAYOUT_WARP);
        return; /* regions are combiners */
    case TILE_OP_CONVERT_LAYOUT:
        if (gpu_converts_in_warp(layout, op->results[0].type->layout, tile_scalar_bits(op->results[0].type->scalar)))
            found->lanes = true;
        else
            found->warps = true;
        break;
    default: break;
    }
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next) survey(inner, found);
}

/* NULL: the load can come an iteration earlier. */
static const char *why_not_before(const TileOp *load, const TileOp *loop) {
    const TileValue *tensor = tile_op_operand(load, 0);
    if (!tile_memory_is_constant(tensor) && tile_memory_is_written(loop, tensor)) return "the loop may write to the memory that is loaded";
    for (unsigned i = 1; i < load->operand_count; i++)
        if (!gpu_follows_index(tile_op_operand(load, i), loop, true)) return "its address depends on more than the loop's induction variable";
    return NULL;
}

/* Scalars that only addresses take are loaded where the addresses are computed. */
static void find_loads(Fetch *f) {
    for (TileOp *op = f->loop->regions[0].first; op; op = op->next) {
        if (op->id != TILE_OP_LOAD_TILE || gpu_by_map(op) || tile_op_get(op, TILE_ATTRIBUTE_LATENCY)) continue;
        const char *why = why_not_before(op, f->loop);
        int64_t registers = registers_of(op->results[0].type), most = f->beside ? MOST_BESIDE_PRODUCTS : MOST_REGISTERS;
        if (!why && (f->count == MOST_LOADS || f->registers + registers > most)) why = "a thread has no registers for it";
        if (why) {
            if (f->says) tile_pass_remark(f->context, op, TILE_DECISION_NOT_LOADED_BEFORE, tile_op_operand(op, 0)->name, "%s", why);
            continue;
        }
        if (f->says)
            tile_pass_remark(f->context, op, TILE_DECISION_LOADED_BEFORE, tile_op_operand(op, 0)->name, "%lld register%s of a thread",
                             (long long)registers, registers == 1 ? "" : "s");
        f->registers += registers;
        f->types[f->count] = op->results[0].type;
        f->loads[f->count++] = op;
    }
}

/* ---- the loop ---- */

/* Fills one branch with the loads of iteration `number`, and ends it. */
static void load_in(Fetch *f, TileBlock *block, TileValue *number) {
    TileMap map;
    TileBuilder b = tile_builder_at_end(f->context->module, block);
    GpuCopies copies = {f->context, f->loop, &map, false};
    TileValue *loaded[MOST_LOADS];
    tile_map_init(&map, f->context->scratch);
    tile_map_set(&map, f->loop->regions[0].arguments[0], number);
    for (unsigned i = 0; i < f->count; i++) {
        TileOp *load = f->loads[i];
        b.location = load->location;
        for (unsigned k = 0; k < load->operand_count; k++) gpu_follow(&copies, &b, tile_op_operand(load, k));
        TileOp *clone = tile_op_clone(f->context->module, load, &map);
        tile_builder_insert(&b, clone);
        loaded[i] = tile_op_result(clone, 0);
    }
    tile_build_end(&b, TILE_OP_YIELD, loaded, f->count);
    if (copies.failed) f->error = "an address takes what is not known in the iteration before";
    if (b.error) f->error = b.error;
}

static void yield_in(Fetch *f, TileBlock *block, TileValue *const *values) {
    TileBuilder b = tile_builder_at_end(f->context->module, block);
    TileValue *zeros[MOST_LOADS];
    for (unsigned i = 0; i < f->count && !values; i++) zeros[i] = tile_build_bits(&b, f->types[i], 0);
    tile_build_end(&b, TILE_OP_YIELD, values ? values : zeros, f->count);
    if (b.error) f->error = b.error;
}

/* What the loads of iteration `number` give, if there is one; else `values`, or zeros. */
static TileOp *build_loads(Fetch *f, TileBuilder *b, TileValue *number, TileValue *const *values) {
    TileValue *exists = tile_build_binary(b, TILE_OP_LT, number, tile_op_named(f->loop, TILE_OPERAND_HI));
    TileOp *branch = tile_build_if(b, exists, f->types, f->count);
    load_in(f, &branch->regions[0], number);
    yield_in(f, &branch->regions[1], values);
    if (b->error) f->error = b->error;
    return branch;
}

/* Is `op` in front of `place`, an op of the loop's body, or in another block? NULL, of an argument: it is. */
static bool is_before(const TileOp *op, const TileOp *place) {
    if (!op || op->block != place->block) return true;
    const TileOp *other = place->previous;
    while (other && other != op) other = other->previous;
    return other != NULL;
}

static bool takes(const TileOp *op, const TileMap *values) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_map_get(values, tile_op_operand(op, i))) return true;
    return false;
}

static bool is_known_before(const TileOp *op, const TileOp *place) {
    bool known = tile_op_is_pure(op) && !op->region_count && op->result_count == 1 && registers_of(op->results[0].type) <= MOST_BESIDE_PRODUCTS;
    for (unsigned i = 0; i < op->operand_count && known; i++) known = is_before(tile_op_operand(op, i)->op, place);
    return known;
}

/* What ops behind `place` take of it stays in front: the back end would move it to them. */
static void hold_before(Fetch *f, TileOp *place, TileValue *value) {
    TileBuilder b = tile_builder_before(f->context->module, place);
    b.location = value->op->location;
    TileValue *held = tile_build_unary(&b, TILE_OP_OPAQUE, value);
    tile_op_set_integer(f->context->module, held->op, TILE_ATTRIBUTE_EACH, 1);
    for (TileUse *use = value->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user != held->op && !is_before(use->user, place)) tile_op_set_operand(use->user, use->index, held);
    }
    if (!tile_value_has_uses(held)) tile_op_erase(held->op);
    if (b.error) f->error = b.error;
}

/* What is computed of the values alone, in few registers, is computed in front of `place`, where what is loaded for the next iteration can have their
 * registers: else it has others, and the loop ends by waiting for it, to move it. */
static void compute_before(Fetch *f, TileOp *place, TileValue *const *values) {
    TileMap made;
    tile_map_init(&made, f->context->scratch);
    for (unsigned i = 0; i < f->count; i++) tile_map_set(&made, values[i], f);
    for (TileOp *op = place->next, *next; op; op = next) {
        next = op->next;
        if (!takes(op, &made) || !is_known_before(op, place)) continue;
        tile_op_detach(op);
        tile_op_insert_before(op, place);
        tile_map_set(&made, &op->results[0], f);
    }
    for (size_t i = f->count; i < made.count; i++) hold_before(f, place, (TileValue *)(uintptr_t)made.entries[i].key);
}

static void fetch(Fetch *f) {
    TileModule *module = f->context->module;
    TileValue *values[MOST_LOADS];
    TileBuilder b = tile_builder_before(module, f->loop);
    TileOp *first = build_loads(f, &b, tile_op_named(f->loop, TILE_OPERAND_LO), NULL);
    for (unsigned i = 0; i < f->count; i++) values[i] = &first->results[i];
    unsigned carried = f->loop->regions[0].argument_count;
    f->loop = gpu_loop_carry(f->context, f->loop, values, f->count);
    TileBlock *body = &f->loop->regions[0];
    b = tile_builder_before(module, f->beside ? f->loads[0] : body->first);
    for (unsigned i = 0; i < f->count; i++) values[i] = body->arguments[carried + i];
    TileValue *next = tile_build_binary(&b, TILE_OP_ADD, body->arguments[0], tile_op_named(f->loop, TILE_OPERAND_STEP));
    TileOp *loads = build_loads(f, &b, next, values);
    for (unsigned i = 0; i < f->count; i++) {
        values[i]->name = f->loads[i]->results[0].name;
        tile_value_replace(&f->loads[i]->results[0], values[i]);
        tile_op_erase(f->loads[i]);
        tile_op_add_operand(module, body->last, &loads->results[i]);
    }
    if (f->beside) compute_before(f, loads, values);
}

/* ---- several iterations together ---- */

static bool depends_on(const TileOp *op, const TileMap *late, const TileBlock *body) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileValue *value = tile_op_operand(op, i);
        if (!value->op && tile_value_block(value) == body && value->index) return true;
        if (value->op && tile_map_get(late, value->op)) return true;
    }
    return false;
}

/* NULL: iterations can be computed together. Sorts ops: those that stay with their iteration, and those that come last. */
static const char *why_apart(const TileOp *loop, TileMap *late, TileMap *last) {
    const TileBlock *body = &loop->regions[0];
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        bool store = op->id == TILE_OP_STORE_TILE;
        if (tile_op_writes(op) && !(store && gpu_store_is_apart(loop, op))) return "what it writes may be accessed by other iterations or ops";
        bool pure = tile_op_is_pure(op) || op->id == TILE_OP_LOAD_TILE;
        if (store) tile_map_set(last, op, op);
        if (store || !pure || op->region_count || depends_on(op, late, body)) tile_map_set(late, op, op);
    }
    return NULL;
}

/* Warps that wait for each other would in each of the copies; lanes exchange what one iteration has while others compute. */
static unsigned iterations_together(const Fetch *f, const Survey *found) {
    unsigned together = 1;
    if (found->warps || f->loop->result_count > GPU_MOST_CARRIED) return 1;
    while (together < MOST_TOGETHER && f->registers * together * 2 <= MOST_REGISTERS && found->registers * together * 2 <= MOST_COMPUTED)
        together *= 2;
    return together;
}

static void mark_apart(const Fetch *f, const TileMap *stores) {
    for (size_t i = 0; i < stores->count; i++)
        tile_op_set_integer(f->context->module, (TileOp *)stores->entries[i].value, TILE_ATTRIBUTE_APART, 1);
}

/* In front of the loop another that has its iterations if there are more than FEW_ITERATIONS: of those that have less the first waits for
 * memory as before, and they took up to 1.1 times as long with what loading ahead takes beside. NULL: the loop is too large to be there
 * twice, or its stores would be ordered with those of the other by barriers. */
static TileOp *copy_for_many(const Fetch *f, const Survey *found) {
    TileMap late, stores;
    GpuUnrolled u = {.context = f->context, .loop = f->loop, .late = &late, .together = 1};
    TileValue *lo = tile_op_named(f->loop, TILE_OPERAND_LO), *hi = tile_op_named(f->loop, TILE_OPERAND_HI);
    if (found->registers > MOST_COMPUTED || f->loop->result_count > GPU_MOST_CARRIED) return NULL;
    if (!tile_value_integer(tile_op_named(f->loop, TILE_OPERAND_STEP), &u.step) || u.step <= 0 || u.step > LARGEST_STEP) return NULL;
    tile_map_init(&late, f->context->scratch);
    tile_map_init(&stores, f->context->scratch);
    if (why_apart(f->loop, &late, &stores)) return NULL;
    mark_apart(f, &stores);
    for (TileOp *op = f->loop->regions[0].first; op; op = op->next) tile_map_set(&late, op, op);
    TileBuilder b = tile_builder_before(f->context->module, f->loop);
    TileValue *left = tile_build_bitcast(&b, tile_build_binary(&b, TILE_OP_SUB, hi, lo), TILE_U64);
    TileValue *few = tile_build_integer(&b, left->type, FEW_ITERATIONS * u.step);
    TileValue *many = tile_build_binary(&b, TILE_OP_AND, tile_build_binary(&b, TILE_OP_LT, lo, hi), tile_build_binary(&b, TILE_OP_GT, left, few));
    u.rest = tile_build_ternary(&b, TILE_OP_SELECT, many, hi, lo);
    return gpu_unroll(&u);
}

/* Returns the loop of several iterations together, in front of the loop that stays for the last ones; NULL: there is none. */
static TileOp *unroll(const Fetch *f, const Survey *found) {
    TileMap late, last;
    GpuUnrolled u = {.context = f->context, .loop = f->loop, .late = &late, .last = &last, .together = iterations_together(f, found)};
    tile_map_init(&late, f->context->scratch);
    tile_map_init(&last, f->context->scratch);
    if (u.together < 2 || !tile_value_integer(tile_op_named(f->loop, TILE_OPERAND_STEP), &u.step) || u.step <= 0 || u.step > LARGEST_STEP) return NULL;
    const char *why = why_apart(f->loop, &late, &last);
    if (why) {
        tile_pass_remark(f->context, f->loop, TILE_DECISION_NOT_LOADED_TOGETHER, "the loop", "%s", why);
        return NULL;
    }
    mark_apart(f, &last);
    tile_pass_remark(f->context, f->loop, TILE_DECISION_LOADED_TOGETHER, "the loop", "%u iterations", u.together);
    return gpu_unroll(&u);
}

/* Does an iteration compute with the sums of its products, while it has no others under way? */
static bool computes_with_sums(const TileOp *loop) {
    bool computes = false;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) return false;
        for (const TileUse *use = op->id == TILE_OP_DOT_WAIT ? op->results[0].first_use : NULL; use; use = use->next)
            computes |= use->user->id != TILE_OP_YIELD && use->user->id != TILE_OP_DOT;
    }
    return computes;
}

/* What an iteration takes beside its products is there when they are, though it comes from memory in the time of two. */
static bool try_products(TilePassContext *context, TileOp *loop, const char **error) {
    Fetch f = {.context = context, .loop = loop, .says = true, .beside = true};
    if (tile_loop_is_of_programs(loop) || !computes_with_sums(loop)) return false;
    find_loads(&f);
    if (!f.count) return false;
    fetch(&f);
    *error = f.error;
    return true;
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    Fetch f = {.context = context, .loop = loop};
    Survey found = {0};
    if (tile_loop_is_of_programs(loop)) return false;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) survey(op, &found);
    if (found.loops || !(found.lanes || found.warps)) return false;
    find_loads(&f);
    if (f.count && tile_op_func(loop)->busy) {
        tile_pass_remark(context, f.loads[0], TILE_DECISION_NOT_LOADED_BEFORE, tile_op_operand(f.loads[0], 0)->name,
                         "while a program waits, others compute or the memory is busy, and registers would leave room for fewer");
        return false;
    }
    TileOp *first = f.count ? unroll(&f, &found) : NULL;
    if (f.count && !first) first = copy_for_many(&f, &found);
    f = (Fetch){.context = context, .loop = first ? first : loop, .says = true};
    find_loads(&f);
    if (!f.count) return false;
    fetch(&f);
    *error = f.error;
    return true;
}

TileResult tile_pass_gpu_fetch(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    bool multiplies = gpu_find_dots(func, &func->body).count;
    return tile_try_each(context, func, TILE_OP_FOR, multiplies ? try_products : try_loop, "gpu-fetch");
}
