/* Purpose: decide that the products of a function are computed by wgmma, whose operands lie in shared memory where
 * tensor maps copy them, and which a warpgroup of 4 warps executes for 64 rows. Then warps of their own have the tiles
 * copied, and all others multiply: either all products of a function for tensor cores are computed so, or none.
 *
 * Run: --passes=gpu-warpgroups --target=sm_90a
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                          {noalias}, %begin: i64, %end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %sum = for %begin, %end, %n, %acc : f32[64, 64] (%k: i64, %acc.1: f32[64, 64]) {
 *         %x = load_tile %a, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], tensor_map = 1} :
 *             f16[64, 64]
 *         %y = load_tile %b, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], tensor_map = 1} :
 *             f16[64, 64]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[64, 64]
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                              {noalias}, %begin: i64, %end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %sum = for %begin, %end, %n, %acc : f32[64, 64] (%k: i64, %acc.1: f32[64, 64]) {
 *         %x = load_tile %a, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], tensor_map = 1} :
 *             f16[64, 64]
 *         %y = load_tile %b, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], tensor_map = 1} :
 *             f16[64, 64]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = wgmma} : f32[64, 64]
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: gpu-tensor-maps, gpu-threads. Keeps: tile form. Cost: for each load, the ops that its address is computed from. */
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/pipeline/turns.h"
#include "ptx/pipeline/warpgroups.h"
#include "ptx/target/map.h"

enum { GROUP_WARPS = 4, GROUP_ROWS = 64, K_BYTES = 32, MOST_GROUPS = 4, THREE = 3 };
/* Steps of k of 8-bit floats whose sum may have 14 bits; registers for the numbers of positions. */
enum { MOST_UNPROMOTED = 128, OF_PLACES = 32 };

typedef struct Warpgroups {
    TilePassContext *context;
    TileFunc *func;
    const TileOp *dot;      /* the first product, or the first that cannot be computed so */
    const char *why;        /* it cannot; NULL: all can */
    int64_t rows;           /* of all products: the greatest common divisor */
    int64_t sums;           /* elements of sums that are live together */
    int64_t promoted;       /* registers of a thread for sums that are added to those */
    int64_t taken;          /* bytes of what products take in registers */
    int64_t loaded, stored; /* bytes of tiles in shared memory: of one slot of each load in a loop, of all stores */
    int64_t loaded_once;    /* of loads that have one slot: those outside of loops, but for the next */
    int64_t added;          /* of those whose tiles are computed with sums behind a loop */
    int64_t slots;          /* for what loops load, so that products do not wait for copies; 0: no loop has products */
    int64_t stored_in_turn; /* of all stores of all programs that are to take turns */
    int64_t put;            /* bytes of second operands that are computed on their way */
    int64_t copies, places; /* loads by maps; registers for the numbers of positions that a map stores */
    int64_t computed;       /* bytes of such loads that threads read to compute what products take */
    /* Of what is loaded beside products, in no iteration of theirs: values for each column, for each row, for each sum. */
    int64_t column_values, row_values, sum_values;
    int64_t beside;         /* registers of the largest tile that threads hold beside sums and what products take */
    unsigned count;         /* products */
    TileMap seen;           /* values that a copying warp can compute */
    bool across_rows;       /* rows of a product pass between warps, or are not those of its sums */
    bool transposed;        /* products have been transposed, and need not be */
    bool changed;
} Warpgroups;

static bool is_written(const TileFunc *func, const TileValue *tensor) {
    for (const TileOp *op = func->body.first; op; op = op->next)
        if (tile_memory_is_written(op, tensor)) return true;
    return false;
}

/* ---- what copying warps can compute ---- */

static bool is_available(Warpgroups *w, const TileValue *value);

static bool are_available(Warpgroups *w, const TileOp *op, unsigned first, unsigned end) {
    for (unsigned i = first; i < end; i++)
        if (!is_available(w, tile_op_operand(op, i))) return false;
    return true;
}

/* The value carried by a loop in this place. */
static bool is_carried_available(Warpgroups *w, const TileOp *loop, unsigned slot) {
    return is_available(w, tile_loop_carried(loop, slot)) &&
           is_available(w, tile_op_operand(loop->regions[0].last, slot));
}

/* The value that a branch yields in this place, in both its regions. */
static bool is_yielded_available(Warpgroups *w, const TileOp *branch, unsigned slot) {
    for (unsigned i = 0; i < branch->region_count; i++)
        if (!is_available(w, tile_op_operand(branch->regions[i].last, slot))) return false;
    return true;
}

static bool is_result_available(Warpgroups *w, const TileOp *op, unsigned result) {
    if (tile_op_is_pure(op) && !op->region_count) return are_available(w, op, 0, op->operand_count);
    if (op->id == TILE_OP_LOAD_TILE)
        return !is_written(w->func, tile_op_operand(op, 0)) && are_available(w, op, 1, op->operand_count);
    if (op->id == TILE_OP_FOR) return are_available(w, op, 0, 3) && is_carried_available(w, op, result);
    if (op->id == TILE_OP_IF) return are_available(w, op, 0, 1) && is_yielded_available(w, op, result);
    return false;
}

/* Scalars alone: a tile lies in the registers of the threads that multiply. */
static bool is_available(Warpgroups *w, const TileValue *value) {
    if (value->type->kind == TILE_TYPE_TENSOR || tile_map_get(&w->seen, value)) return true;
    if (!tile_type_is_scalar(value->type)) return false;
    tile_map_set(&w->seen, value, w);
    if (value->op) return is_result_available(w, value->op, value->index);
    const TileOp *loop = value->block->op;
    return !loop || value->index == 0 || (loop->id == TILE_OP_FOR && is_carried_available(w, loop, value->index - 1));
}

/* ---- operands ---- */

/* The load whose tile the value is, as it lies in memory or transposed, without lanes that it does not reach. */
static const TileOp *load_of(const TileValue *value) {
    const TileOp *op = value->op;
    while (op && (op->id == TILE_OP_FILL || op->id == TILE_OP_PERMUTE || op->id == TILE_OP_RESHAPE)) op = tile_op_operand(op, 0)->op;
    return op && op->id == TILE_OP_LOAD_TILE ? op : NULL;
}

static bool is_copied(const TileOp *dot, unsigned number) {
    const TileOp *load = load_of(tile_op_operand(dot, number));
    return load && gpu_by_map(load) && !gpu_operand_is_computed(dot, number);
}

/* NULL: warps of their own can have the tile copied, while others multiply. */
static const char *why_not_copied(Warpgroups *w, const TileOp *load) {
    if (is_written(w->func, tile_op_operand(load, 0))) return "the function writes to the memory of an operand";
    if (!are_available(w, load, 1, load->operand_count))
        return "an operand's address depends on what is computed of tiles";
    for (const TileOp *outer = load->block->op; outer; outer = outer->block->op) {
        if (outer->id != TILE_OP_FOR && outer->id != TILE_OP_IF)
            return "an operand is loaded in a loop without a trip count";
        if (outer->id == TILE_OP_FOR && !are_available(w, outer, 0, 3))
            return "a loop's trip count depends on what is computed of tiles";
        if (outer->id == TILE_OP_IF && !are_available(w, outer, 0, 1))
            return "a branch's condition depends on what is computed of tiles";
    }
    return NULL;
}

/* Are the rows of the tile as it is loaded those of k, in place of the operand's own axis? */
static bool lies_across_k(const TileValue *operand, unsigned number) {
    bool transposed = false;
    for (const TileOp *op = operand->op; op && op->id != TILE_OP_LOAD_TILE; op = tile_op_operand(op, 0)->op)
        transposed ^= op->id == TILE_OP_PERMUTE && tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[0] != 0;
    return transposed == (number == 0);
}

/* What an operand is computed of, in the product's block. */
typedef struct Sources {
    Warpgroups *w;
    const TileOp *dot;
    TileMap seen;
    bool copied, others; /* tiles that maps copy; others, and sums of products */
} Sources;

static void find_sources(Sources *s, const TileValue *value) {
    const TileOp *op = value->op;
    if (!tile_type_is_tile(value->type) || tile_map_get(&s->seen, value)) return;
    tile_map_set(&s->seen, value, s);
    if (op && op->block != s->dot->block && !tile_block_inside(op->block, s->dot->block)) return;
    bool load = op && op->id == TILE_OP_LOAD_TILE, map = load && gpu_by_map(op) && gpu_load_is_computed(op) && !why_not_copied(s->w, op);
    s->copied |= map;
    s->others |= !op || (load ? op->results[0].type->rank > 1 && !map : !tile_op_is_pure(op) || op->id == TILE_OP_DOT);
    for (unsigned i = 0; op && !load && i < op->operand_count; i++) find_sources(s, tile_op_operand(op, i));
}

/* Is what the operand is computed of in its loop there in time: is it tiles that maps copy, and vectors beside them? */
static bool is_computed_of_copies(Warpgroups *w, const TileOp *dot, unsigned operand) {
    Sources sources = {.w = w, .dot = dot};
    tile_map_init(&sources.seen, w->context->scratch);
    find_sources(&sources, tile_op_operand(dot, operand));
    return sources.copied && !sources.others;
}

/* NULL: threads can compute the second operand of what maps copy, and put it where products read it, beside the products of the
 * iteration before. */
static const char *why_not_put(Warpgroups *w, const TileOp *dot) {
    enum { OPERAND = 1 };
    const TileOp *loop = dot->block->op;
    bool permuted;
    if (!is_computed_of_copies(w, dot, OPERAND)) return "its second operand is not copied by a tensor map";
    if (!tile_op_is(loop, TILE_OP_FOR) || tile_loop_is_of_programs(loop)) return "its second operand is computed on its way, and not in a loop";
    if (gpu_loops_use_sums(&w->func->body))
        return "its second operand is computed on its way, in a loop that computes with the sums of products";
    const TileType *put = gpu_put_source(dot, &permuted)->type;
    if (tile_scalar_bits(put->scalar) != 16 && !permuted)
        return "its second operand is computed across k, as only those of 16 bits may be";
    w->put += gpu_put_slots(dot) * gpu_shared_bytes(gpu_panel_type(w->context->module->context, put));
    return gpu_map_fits_tile(put);
}

static const char *why_not_operand(Warpgroups *w, const TileOp *dot, unsigned number) {
    const TileValue *operand = tile_op_operand(dot, number);
    const TileOp *load = load_of(operand);
    if (!is_copied(dot, number)) {
        if (number) return why_not_put(w, dot);
        /* What is computed of tiles comes from registers. */
        bool waits = w->transposed && !is_computed_of_copies(w, dot, 0);
        return waits || (load && gpu_load_is_copied(load)) ? "its first operand is not copied by a tensor map" : NULL;
    }
    if (tile_scalar_bits(operand->type->scalar) != 16 && lies_across_k(operand, number))
        return "an operand is not contiguous along k in memory, as all but those of 16 bits have to be";
    return why_not_copied(w, load);
}

static const char *why_not(Warpgroups *w, const TileOp *dot) {
    const TileType *a = tile_op_operand(dot, 0)->type, *sums = dot->results[0].type;
    int64_t k_bytes = a->extent[1] * tile_scalar_bytes(a->scalar);
    if (!gpu_dot_takes_maps(tile_ptx_target_of(w->context->target), dot)) return "wgmma does not multiply f64";
    if (sums->rank != 2 || sums->extent[0] % GROUP_ROWS) return "its rows are not a multiple of 64";
    if (!gpu_wgmma_columns(dot) || k_bytes % K_BYTES) return "its columns or its depth do not fit the instruction";
    TileLayoutShape held = gpu_dot_shape(sums);
    if (held.extent[0] != sums->extent[0] || held.extent[1] != sums->extent[1])
        return "its sums would take registers that no instruction has";
    if (gpu_dot_promotes(dot) && k_bytes > MOST_UNPROMOTED)
        return "it adds up more than 128 products of 8-bit floats at once";
    for (const TileOp *outer = dot->block->op; outer; outer = outer->block->op)
        if (outer->id != TILE_OP_FOR && outer->id != TILE_OP_IF) return "it stands in a loop without a trip count";
    const char *why = why_not_operand(w, dot, 0);
    return why ? why : why_not_operand(w, dot, 1);
}

static int64_t greatest_divisor(int64_t a, int64_t b) { return b ? greatest_divisor(b, a % b) : a; }

static void look_at_dot(TileOp *dot, void *state) {
    Warpgroups *w = state;
    if (dot->id != TILE_OP_DOT || !gpu_dot_is_mma(dot) || w->why) return;
    const TileType *sums = dot->results[0].type;
    w->why = why_not(w, dot);
    if (w->why || !w->dot) w->dot = dot;
    w->rows = greatest_divisor(sums->extent[0], w->rows);
    w->sums += gpu_dot_sums(dot);
    w->promoted += gpu_dot_promoted(dot);
    const TileType *a = tile_op_operand(dot, 0)->type;
    if (!is_copied(dot, 0)) w->taken += tile_type_lanes(a) * tile_scalar_bytes(a->scalar);
    w->count++;
}

static bool multiplies(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id == TILE_OP_DOT) return true;
    return false;
}

/* What is not loaded for products in their loop. */
static bool is_loaded_beside(const TileOp *op) {
    return op && op->id == TILE_OP_LOAD_TILE && tile_type_is_tile(op->results[0].type) && !gpu_by_map(op) &&
           !multiplies(op->block);
}

static void look_beside(TileOp *op, void *state) {
    Warpgroups *w = state;
    if (is_loaded_beside(op) && op->results[0].type->rank == 2) w->sum_values += tile_type_lanes(op->results[0].type);
    if (op->id != TILE_OP_BROADCAST) return;
    const TileType *type = tile_op_operand(op, 0)->type;
    const TileOp *load = tile_op_operand(op, 0)->op;
    while (load && load->id == TILE_OP_RESHAPE) load = tile_op_operand(load, 0)->op;
    if (!is_loaded_beside(load) || type->rank != 2) return;
    if (type->extent[0] == 1) w->column_values += type->extent[1];
    else w->row_values += type->extent[0];
}

/* ---- the decision ---- */

/* Have the threads of so many warpgroups, of each of the programs that take turns, registers for the sums and for `computed` bytes of
 * tiles, beside those for all else: addresses, and between products what is made of one's sums for another? */
static bool have_registers(const Warpgroups *w, int64_t groups, int64_t turns, int64_t computed) {
    enum { ADDRESSES = 24, BETWEEN = 16 };
    const TilePtxTarget *target = tile_ptx_target_of(w->context->target);
    int64_t group = GROUP_WARPS * TILE_WARP_THREADS;
    int64_t each = gpu_multiplying_registers(target, turns * groups * group, group, gpu_copying_registers(w->copies, turns * groups * group));
    int64_t others = w->promoted + w->places + ADDRESSES + (w->count > 1 ? BETWEEN : 0);
    return w->sums + computed / (int64_t)sizeof(uint32_t) <= groups * group * (each - others);
}

/* Have they registers as well for what an epilogue loads? A lane has two of eight columns and two of sixteen rows; what is loaded
 * for each sum has an address besides. What is computed of them takes a few registers: one sum is computed after the other. */
static bool have_registers_beside(const Warpgroups *w, int64_t groups, int64_t turns) {
    enum { COMPUTED = 8, COLUMNS_OF_LANES = 4, ROWS_OF_LANES = 8, SUM_REGISTERS = 2 };
    const TilePtxTarget *target = tile_ptx_target_of(w->context->target);
    int64_t group = GROUP_WARPS * TILE_WARP_THREADS, threads = groups * group;
    int64_t each = gpu_multiplying_registers(target, turns * threads, group, gpu_copying_registers(w->copies, turns * threads));
    int64_t loaded = w->column_values / COLUMNS_OF_LANES + w->row_values / (groups * GROUP_WARPS * ROWS_OF_LANES) +
                     SUM_REGISTERS * w->sum_values / threads;
    return !loaded || w->sums / threads + loaded + COMPUTED <= each;
}

/* Tiles that no thread holds are what maps copy for products, and what is made of it on the way without computing. One that is no larger than the
 * sums is computed of these, or takes their place. */
static void look_for_large(TileOp *op, void *state) {
    Warpgroups *w = state;
    if (op->id == TILE_OP_DOT) return;
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileType *type = op->results[i].type;
        if (!tile_type_is_tile(type)) continue;
        const TileOp *load = load_of(&op->results[i]);
        bool copied = load && gpu_by_map(load) && gpu_load_is_copied(load);
        if (copied || tile_type_lanes(type) <= w->sums) continue;
        if (gpu_tile_registers(type) > w->beside) w->beside = gpu_tile_registers(type);
    }
}

/* Have they registers for the largest tile that is no product's? Beside its elements are addresses alone: elements are computed one
 * after the other. */
static bool hold_tiles(const Warpgroups *w, int64_t groups) {
    enum { ADDRESSES = 24 };
    int64_t group = GROUP_WARPS * TILE_WARP_THREADS;
    int64_t each = gpu_multiplying_registers(tile_ptx_target_of(w->context->target), groups * group, group, gpu_copying_registers(w->copies, groups * group));
    return w->beside <= groups * group * (each - ADDRESSES);
}

/* Does each warp keep to its own rows of the tile? A reduction does so along them. */
static bool keeps_rows(const TileOp *op) {
    static const TileOpId ids[] = {TILE_OP_DOT, TILE_OP_FOR, TILE_OP_IF, TILE_OP_YIELD, TILE_OP_FILL, TILE_OP_SPLAT, TILE_OP_BROADCAST, TILE_OP_RESHAPE, TILE_OP_PERMUTE};
    if (op->id == TILE_OP_REDUCE) return tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 == tile_op_operand(op, 0)->type->rank;
    if (op->id == TILE_OP_LOAD_TILE) return gpu_by_map(op) || op->results[0].type->rank < 2;
    if (op->id == TILE_OP_STORE_TILE) return true;
    for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++)
        if (op->id == ids[i]) return true;
    return tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE;
}

/* Does the op compute a function of a tile's elements by more than an instruction for it (gpu-math) and one for its argument? */
static bool computes_much(const TileOp *op) {
    bool one = tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0) && (op->id == TILE_OP_EXP || op->id == TILE_OP_EXP2);
    return (tile_op_info(op->id)->traits & TILE_TRAIT_COSTLY) && op->results[0].type->rank > 1 && !one;
}

static void look_across_rows(TileOp *op, void *state) {
    Warpgroups *w = state;
    bool tiles = false;
    for (unsigned i = 0; i < op->operand_count; i++) tiles |= tile_type_is_tile(tile_op_operand(op, i)->type);
    for (unsigned i = 0; i < op->result_count; i++) tiles |= tile_type_is_tile(op->results[i].type);
    w->across_rows |= tiles && op->operand_count && (!keeps_rows(op) || computes_much(op));
}

/* Have the threads of three warpgroups registers for the sums, what products take of them and addresses, and do warps keep to rows of
 * their own? */
static bool three_share_rows(Warpgroups *w) {
    enum { OTHERS = 32 };
    int64_t group = GROUP_WARPS * TILE_WARP_THREADS, threads = THREE * group;
    int64_t each = gpu_multiplying_registers(tile_ptx_target_of(w->context->target), threads, group, gpu_copying_registers(w->copies, threads));
    tile_block_walk(&w->func->body, look_across_rows, w);
    if (w->across_rows || !hold_tiles(w, THREE)) return false;
    return w->sums + (w->taken + w->computed) / (int64_t)sizeof(uint32_t) <= threads * (each - w->promoted - OTHERS);
}

/* The number of warpgroups that multiply, a power of two that divides the blocks of rows, or three; 0, and why: their registers do not
 * suffice. Two keep the tensor cores busy: while one waits for its products, or adds their sums to others, the other's
 * are under way. */
static int64_t choose_groups(Warpgroups *w) {
    int64_t blocks = w->rows / GROUP_ROWS, most = blocks & -blocks, groups = w->func->warps / GROUP_WARPS;
    if (blocks == THREE && three_share_rows(w)) return THREE;
    if (most > MOST_GROUPS) most = MOST_GROUPS;
    if (!groups || (w->promoted && groups < 2)) groups = 2;
    if (groups > most) groups = most;
    while (groups < most && !(have_registers(w, groups, 1, w->computed) && hold_tiles(w, groups))) groups *= 2;
    if (!have_registers(w, groups, 1, 0)) w->why = "its sums take more registers than there are";
    else if (!hold_tiles(w, groups)) w->why = "a tile beside it takes more registers than its warpgroups have";
    return w->why ? 0 : groups;
}

/* Has what is stored the layout of a product's sums? */
static bool is_sum(const Warpgroups *w, const TileOp *store) {
    const TileType *rows = gpu_rows_type(w->context->module->context, tile_op_named(store, TILE_OPERAND_VALUE)->type);
    for (const TileOp *op = w->func->body.first; op && rows; op = op->next)
        if (gpu_gives_sums(op, rows)) return true;
    return false;
}

/* Eight neighbours of a row, which four lanes have, are less than a sector of memory. */
static bool is_narrow_sum(const Warpgroups *w, const TileOp *op) {
    enum { NEIGHBOURS = 8, SECTOR_BYTES = 32 };
    if (op->id != TILE_OP_STORE_TILE || gpu_by_map(op)) return false;
    const TileType *tile = tile_op_named(op, TILE_OPERAND_VALUE)->type;
    return tile_type_is_tile(tile) && NEIGHBOURS * tile_scalar_bytes(tile->scalar) < SECTOR_BYTES && gpu_has_rows(tile) &&
           is_sum(w, op);
}

static bool is_in_loop(const TileOp *op) {
    for (const TileOp *outer = op->block->op; outer; outer = outer->block->op)
        if (outer->id == TILE_OP_FOR && !tile_loop_is_of_programs(outer)) return true;
    return false;
}

static void add_bytes(TileOp *op, void *state) {
    Warpgroups *w = state;
    if (!gpu_by_map(op) && !is_narrow_sum(w, op)) return;
    bool store = op->id == TILE_OP_STORE_TILE;
    const TileType *tile = store ? tile_op_named(op, TILE_OPERAND_VALUE)->type : op->results[0].type;
    if (!store && gpu_load_is_added(op)) return;
    w->copies += !store && tile->rank > 1; /* a vector begins where a tile does */
    if (store && tile_op_get(op, TILE_ATTRIBUTE_ACCESS)->integers[0] == TILE_ACCESS_POSITION) w->places = OF_PLACES;
    if (!store && gpu_load_is_computed(op)) w->computed += tile_type_lanes(tile) * tile_scalar_bytes(tile->scalar);
    int64_t *loaded = is_in_loop(op) ? &w->loaded : &w->loaded_once;
    if (!store) *loaded += gpu_shared_bytes(gpu_slot_type(w->context->module->context, op));
    if (!store) return;
    int64_t turns = gpu_turns(w->func);
    w->stored += gpu_stored_bytes(tile);
    w->stored_in_turn += gpu_by_map(op) ? gpu_map_stored_bytes(turns, tile) : turns * gpu_stored_bytes(tile);
}

static void look_for_slots(TileOp *loop, void *state) {
    Warpgroups *w = state;
    if (loop->id != TILE_OP_FOR || tile_loop_is_of_programs(loop)) return;
    int64_t slots = gpu_slots_of_products(tile_ptx_target_of(w->context->target), &loop->regions[0]);
    if (slots > w->slots) w->slots = slots;
}

/* Is there room for so many slots of what loops load, one of what else is, and results of so many bytes? */
static bool fit(const Warpgroups *w, int64_t slots, int64_t stored) {
    enum { MBARRIERS = 1024 };
    int64_t bytes = slots * w->loaded + w->loaded_once + w->added + w->put + stored;
    return bytes + MBARRIERS <= tile_ptx_target_of(w->context->target)->shared_block_bytes;
}

/* Iterations that compute with the sums of their products take long enough that two slots will do, and so do those of long products. */
static bool has_room(const Warpgroups *w, int64_t stored) {
    enum { SLOTS = 3, FEW = 2 };
    return fit(w, gpu_loops_use_sums(&w->func->body) || (w->slots && w->slots <= FEW) ? FEW : SLOTS, stored);
}

static void clear_map(Warpgroups *w, TileOp *op) {
    tile_op_clear(op, TILE_ATTRIBUTE_TENSOR_MAP);
    tile_op_clear(op, TILE_ATTRIBUTE_CLEARS);
    tile_op_clear(op, TILE_ATTRIBUTE_CLEARS_BEHIND);
    w->changed = true;
}

static bool is_added(const TileOp *load) { return load->id == TILE_OP_LOAD_TILE && gpu_by_map(load) && gpu_load_is_added(load); }

static void count_added(TileOp *load, void *state) {
    Warpgroups *w = state;
    if (!is_added(load)) return;
    w->added += gpu_shared_bytes(gpu_slot_type(w->context->module->context, load));
    w->copies++;
}

/* What is computed with the sums of a loop has slots where the loop's operands, and all results, have theirs beside these: threads load it otherwise. */
static void drop_added(TileOp *load, void *state) {
    Warpgroups *w = state;
    if (!is_added(load)) return;
    tile_pass_remark(w->context, load, TILE_DECISION_NO_TENSOR_MAP, tile_op_operand(load, 0)->name,
                     "shared memory has no room for it beside three slots of what loops load, and results");
    clear_map(w, load);
    w->copies--;
}

/* What is not copied by a map does not say so any more. */
static void drop_map(TileOp *load, void *state) {
    Warpgroups *w = state;
    if (!gpu_by_map(load)) return;
    bool stores = load->id == TILE_OP_STORE_TILE, room = !stores || has_room(w, w->stored);
    bool taken = stores ? is_sum(w, load) && room : gpu_load_is_moved(load) && !why_not_copied(w, load);
    if (!w->why && w->count && taken) return;
    if (!w->why && w->count && !room)
        tile_pass_remark(w->context, load, TILE_DECISION_NO_TENSOR_MAP, tile_op_operand(load, 0)->name,
                         "shared memory has no room for the results beside what loops load");
    clear_map(w, load);
}

static void set_instruction(TileOp *dot, void *state) {
    const Warpgroups *w = state;
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_INSTRUCTION, .integer = TILE_INSTRUCTION_WGMMA};
    if (dot->id == TILE_OP_DOT && gpu_dot_is_mma(dot)) tile_op_set(w->context->module, dot, attribute);
}

/* Stores without a map go through shared memory as well, where there is room. */
static void set_rows(TileOp *store, void *state) {
    const Warpgroups *w = state;
    if (is_narrow_sum(w, store) && has_room(w, w->stored)) tile_op_set_integer(w->context->module, store, TILE_ATTRIBUTE_BY_ROWS, 1);
}

/* Blocks stay, and take several programs, where that lets one program's stores go on beside the next one's copies and products: by maps, or as threads have
 * them, but not where these wait for one another to store rows; and parts of a loop, so that copies for the next one do. */
typedef struct Stores {
    const Warpgroups *w;
    bool by_map, by_rows, of_parts, combined;
} Stores;

static void look_for_store(TileOp *op, void *state) {
    Stores *stores = state;
    stores->by_map |= op->id == TILE_OP_STORE_TILE && gpu_by_map(op);
    stores->of_parts |= op->id == TILE_OP_FOR && tile_op_integer(op, TILE_ATTRIBUTE_PART, 0) == TILE_PART_OF_SUMS;
    stores->by_rows |= is_narrow_sum(stores->w, op);
    stores->combined |= op->id == TILE_OP_CLUSTER_REDUCE;
}

/* Do all programs take equally long, as far as loops and branches around products say? */
typedef struct Lengths {
    TileMap seen; /* scalars that are the same in all programs */
    bool differ;
} Lengths;

static bool is_of_all_programs(Lengths *lengths, const TileValue *value) {
    const TileOp *op = value->op;
    if (!op) return value->block->op == NULL;
    if (tile_map_get(&lengths->seen, value)) return true;
    if (!tile_op_is_pure(op) || op->region_count || op->id == TILE_OP_PROGRAM_ID) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!is_of_all_programs(lengths, tile_op_operand(op, i))) return false;
    tile_map_set(&lengths->seen, value, lengths);
    return true;
}

static void look_around(TileOp *dot, void *state) {
    Lengths *lengths = state;
    if (dot->id != TILE_OP_DOT) return;
    for (const TileOp *outer = dot->block->op; outer; outer = outer->block->op) {
        if (tile_loop_is_of_programs(outer)) continue;
        unsigned count = outer->id == TILE_OP_FOR ? 3 : outer->id == TILE_OP_IF ? 1 : 0;
        lengths->differ |= !count;
        for (unsigned i = 0; i < count && !lengths->differ; i++) lengths->differ = !is_of_all_programs(lengths, tile_op_operand(outer, i));
    }
}

/* Programs that take equally long can be shared out among blocks before they begin; others are worth that only where stores go on by
 * themselves. */
static void stay(TileOp *loop, void *state) {
    const Warpgroups *w = state;
    Stores stores = {.w = w};
    Lengths lengths = {.differ = false};
    if (!tile_op_integer(loop, TILE_ATTRIBUTE_ONE_PROGRAM, 0) ) return;
    tile_map_init(&lengths.seen, w->context->scratch);
    tile_block_walk(&loop->regions[0], look_for_store, &stores);
    tile_block_walk(&loop->regions[0], look_around, &lengths);
    if (stores.combined) return; /* in shared memory that copies for the next program would need */
    if (!stores.by_map && !stores.of_parts && (stores.by_rows || lengths.differ)) return;
    tile_op_clear(loop, TILE_ATTRIBUTE_ONE_PROGRAM);
    tile_op_set_integer(w->context->module, loop, TILE_ATTRIBUTE_RESIDENT, 1);
    w->func->resident = true;
}

/* ---- turns ---- */

static void look_for_others(TileOp *op, void *found) {
    *(bool *)found |= op->id == TILE_OP_ATOMIC_TILE || op->id == TILE_OP_PRINT || op->id == TILE_OP_ASSERT;
}

static const TileOp *find_resident(const TileFunc *func) {
    for (const TileOp *op = func->body.first; op; op = op->next)
        if (tile_op_integer(op, TILE_ATTRIBUTE_RESIDENT, 0)) return op;
    return NULL;
}

/* NULL: so many programs of a block can take turns, each with so many warpgroups. */
static const char *why_no_turns(const Warpgroups *w, int64_t turns, int64_t groups) {
    const TileOp *programs = find_resident(w->func);
    bool others = false;
    tile_block_walk(&w->func->body, look_for_others, &others);
    if (!programs) return "blocks do not stay for several programs, which differ in length and whose results no tensor map stores";
    if (others) return "the function updates, prints or asserts";
    if (gpu_loops_use_sums(&w->func->body))
        return "a loop computes with the sums of its products, and other programs would wait for that";
    if (w->put) return "what products take is computed by all warps together";
    if (!have_registers(w, groups, turns, w->computed)) return "the sums of a program take more registers than its warpgroups have";
    if (!have_registers_beside(w, groups, turns))
        return "the sums of a program and what is loaded beside them take more registers than its warpgroups have";
    if (!has_room(w, w->stored_in_turn)) return "shared memory has no room for the results of two programs";
    return gpu_why_not_counted(programs);
}

/* The number of warpgroups of a program. Of programs that take turns it is one where the author does not ask for more
 * warps: the operands of one product then come to the tensor cores from fewer warpgroups. */
static int64_t decide_turns(Warpgroups *w, int64_t groups) {
    if (w->func->turns < 2) return groups;
    bool more = w->func->warps > GROUP_WARPS && groups * w->func->turns <= MOST_GROUPS;
    bool suffice = have_registers(w, groups, w->func->turns, w->computed) && have_registers_beside(w, groups, w->func->turns);
    int64_t own = more && suffice ? groups : 1;
    const char *why = why_no_turns(w, w->func->turns, own);
    if (why) {
        tile_pass_remark(w->context, w->dot, TILE_DECISION_NOT_BY_TURNS, "products", "%s", why);
        w->func->turns = 0;
        return groups;
    }
    tile_pass_remark(w->context, w->dot, TILE_DECISION_BY_TURNS, "products",
                     "%u programs of a block, with %d warpgroups each", w->func->turns, (int)own);
    return own;
}

/* What the kernel's author asked for, or the model tries, is decided here. */
static bool forget_turns(TileFunc *func) {
    bool asked = func->turns != 0;
    func->turns = 0;
    return asked;
}

/* Looks at the function; `why` is NULL and `count` not 0 where all its products can be computed by wgmma. */
static void look_at_func(Warpgroups *w) {
    TileBlock *body = &w->func->body;
    tile_map_init(&w->seen, w->context->scratch);
    tile_block_walk(body, look_at_dot, w);
    tile_block_walk(body, add_bytes, w);
    tile_block_walk(body, look_for_slots, w);
    tile_block_walk(body, count_added, w);
    if (!has_room(w, w->stored)) tile_block_walk(body, drop_added, w), w->added = 0;
    tile_block_walk(body, look_beside, w);
    tile_block_walk(body, look_for_large, w);
    if (!w->why && !fit(w, 1, 0)) w->why = "shared memory has no room for what it and others are to read";
}

const char *gpu_why_not_transposed(TilePassContext *context, TileFunc *func) {
    Warpgroups w = {.context = context, .func = func, .transposed = true};
    look_at_func(&w);
    if (!w.why && w.count) choose_groups(&w);
    return w.why;
}

TileResult tile_pass_gpu_warpgroups(TilePassContext *context, TileFunc *func) {
    Warpgroups w = {.context = context, .func = func};
    const char *error = NULL;
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    if (!context->target || !context->target->has_wgmma) return forget_turns(func) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
    look_at_func(&w);
    int64_t groups = w.why || !w.count ? 0 : choose_groups(&w), shared = 1;
    if (groups == 1 && w.rows == GROUP_ROWS && func->turns < 2) shared = gpu_share_depth(context, func, &error);
    if (error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-warpgroups: %s", error);
    tile_block_walk(&func->body, drop_map, &w);
    if (w.why) tile_pass_remark(context, w.dot, TILE_DECISION_NOT_BY_WGMMA, "a product", "%s", w.why);
    if (!groups) return forget_turns(func) || w.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, set_instruction, &w);
    tile_block_walk(&func->body, set_rows, &w);
    tile_block_walk(&func->body, stay, &w);
    groups = decide_turns(&w, groups) * shared;
    func->threads = (uint32_t)(groups * GROUP_WARPS * TILE_WARP_THREADS);
    tile_pass_remark(context, func->body.first, TILE_DECISION_BY_WGMMA, "products", "%d warpgroups multiply",
                     (int)groups);
    if (shared > 1) tile_pass_remark(context, w.dot, TILE_DECISION_SHARES_DEPTH, "a product", "each of %d warpgroups has a part of k", (int)shared);
    return TILE_RESULT_CHANGED;
}
