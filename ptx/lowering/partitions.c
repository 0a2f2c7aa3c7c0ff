/* Partitions of the block's warps: those that multiply and those that copy, each with registers of its own number. */
#include "lang/ir/operands.h"
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"

/* Beside sums. PLENTY, MORE: for each copy, where so many are left. */
enum { OTHER_REGISTERS = GPU_BESIDE_SUMS, FEW_OTHERS = 48, MORE = 12, PLENTY = 24 };

/* Of a thread of the block: when it begins, then of those that multiply, and of those that copy. 0: as it comes. */
typedef struct Registers {
    uint32_t entry, multiplying, copying;
} Registers;

/* What warps that copy have copied. One of positions has a place, a number and a bound along each axis of the images: as much as three others. */
enum { OF_POSITIONS = 3 };
typedef struct Copies {
    int64_t tiles, vectors, positions;
} Copies;

static void count_copy(TileOp *op, void *state) {
    Copies *copies = state;
    if (op->id != TILE_OP_COPY_TILE) return;
    bool vector = tile_op_get(op, TILE_ATTRIBUTE_TYPES)->types[0]->rank == 1;
    bool positions = tile_op_get(op, TILE_ATTRIBUTE_ACCESS)->integers[0] == TILE_ACCESS_POSITION;
    *(vector ? &copies->vectors : &copies->tiles) += positions ? OF_POSITIONS : 1;
    copies->positions += positions;
}

/* Bytes of the tiles that threads read from slots, to compute what products take. */
static void add_read(TileOp *op, void *bytes) {
    bool read = op->id == TILE_OP_SHARED_TILE && !gpu_stays_shared(op) &&
                tile_op_operand(op, 0)->type->swizzle == TILE_SWIZZLE_PANELS;
    if (read) *(int64_t *)bytes += tile_type_lanes(op->results[0].type) * tile_scalar_bytes(op->results[0].type->scalar);
}

static bool is_used_inside(const TileValue *value, const TileBlock *block) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (use->user->block != block || (use->user->id == TILE_OP_DOT_WAIT && is_used_inside(&use->user->results[0], block))) return true;
    return false;
}

/* Registers that a product holds: its sums, and what it takes in registers. */
static int64_t held_by(const TileOp *dot) {
    bool transposed;
    const TileType *taken = tile_op_operand(dot, 0)->type;
    int64_t words = tile_type_lanes(taken) * tile_scalar_bytes(taken->scalar) / (int64_t)sizeof(uint32_t);
    return gpu_dot_sums(dot) + (gpu_find_shared(tile_op_operand(dot, 0), &transposed) ? 0 : words);
}

/* Sums that are live together: those of a block's own products, or those of what its ops contain, and what they compute with of the
 * block's own. Products that stand in a loop, in front of it and behind it (gpu-peel) have the same registers. */
static int64_t live_sums(const TileBlock *block) {
    int64_t own = 0, used = 0, inside = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) inside += live_sums(&op->regions[i]);
        if (op->id != TILE_OP_DOT || !gpu_dot_is_wgmma(op)) continue;
        own += held_by(op);
        if (is_used_inside(&op->results[0], block)) used += gpu_dot_sums(op);
    }
    return own > used + inside ? own : used + inside;
}

/* Of a thread, for tiles that a loop carries beside sums and what products take: the most of any loop. */
typedef struct Carried {
    TileBlock *block;
    const TileType *tile; /* that is looked for */
    bool is_of_product;
    int64_t most;
} Carried;

/* Has a product so many sums? Loops around carry them, too, and weights that were scores. */
static void compare_sums(TileOp *op, void *state) {
    Carried *carried = state;
    carried->is_of_product |= op->id == TILE_OP_DOT && tile_type_lanes(op->results[0].type) == tile_type_lanes(carried->tile);
}

/* Statistics of a thread's rows are among the others. */
static void find_carried(TileOp *op, void *state) {
    enum { OF_ROWS = 8 };
    Carried *carried = state;
    int64_t registers = 0;
    for (uint32_t i = 1; op->id == TILE_OP_FOR && i < op->regions[0].argument_count; i++) {
        const TileType *type = op->regions[0].arguments[i]->type;
        int64_t words = type->layout ? (int64_t)tile_layout_registers(type->layout) * tile_scalar_bytes(type->scalar) / (int64_t)sizeof(uint32_t) : 0;
        if (words <= OF_ROWS) continue;
        carried->tile = type;
        carried->is_of_product = false;
        tile_block_walk(carried->block, compare_sums, carried);
        if (!carried->is_of_product) registers += words;
    }
    if (registers > carried->most) carried->most = registers;
}

static int64_t count_carried(TileBlock *block) {
    Carried carried = {.block = block};
    tile_block_walk(block, find_carried, &carried);
    return carried.most;
}

/* Of a thread, for the largest tile of several rows that threads load themselves, which they compute with beside sums. */
static void find_loaded(TileOp *op, void *most) {
    if (op->id != TILE_OP_LOAD_TILE || op->results[0].type->rank < 2 || !op->results[0].type->layout) return;
    const TileType *type = op->results[0].type;
    int64_t words = (int64_t)tile_layout_registers(type->layout) * tile_scalar_bytes(type->scalar) / (int64_t)sizeof(uint32_t);
    if (words > *(int64_t *)most) *(int64_t *)most = words;
}

static bool have_enough(const Gpu *gpu, int64_t multiplying, int64_t each, int64_t others) {
    int64_t read = gpu->read_bytes / (int64_t)sizeof(uint32_t);
    return (gpu->sums + read) * gpu->turns / multiplying + gpu->promoted + gpu->carried + others <= each;
}

/* How many blocks of so many threads have room on a multiprocessor beside one another, as far as their channels' slots
 * and registers go that are the same for all threads. */
static int64_t count_blocks(const Gpu *gpu, int64_t multiplying, int64_t copying) {
    const TilePtxTarget *target = tile_ptx_target_of(gpu->context->target);
    int64_t bytes = gpu_channels_bytes(gpu) + target->shared_reserved_bytes, threads = multiplying + copying;
    int64_t blocks = target->shared_core_bytes / bytes, most = target->threads_core / threads;
    if (blocks > most) blocks = most;
    while (blocks > 1 && !have_enough(gpu, multiplying, gpu_first_registers(target, blocks * threads), OTHER_REGISTERS)) blocks--;
    return blocks > 1 ? blocks : 1;
}

/* How the registers of the multiprocessor are shared out among blocks, or among the warps of one block's partitions. */
static Registers share_registers(const Gpu *gpu, const TileOp *partitions) {
    const TilePtxTarget *target = tile_ptx_target_of(gpu->context->target);
    const int64_t *warps = tile_op_get(partitions, TILE_ATTRIBUTE_WARPS)->integers;
    int64_t multiplying = warps[0] * TILE_WARP_THREADS, copying = warps[1] * TILE_WARP_THREADS;
    Copies copies = {0};
    int64_t loaded = 0;
    tile_block_walk((TileBlock *)&partitions->regions[0], find_loaded, &loaded);
    int64_t blocks = count_blocks(gpu, multiplying, copying);
    int64_t each = gpu_first_registers(target, blocks * (multiplying + copying));
    if (each > target->registers_thread) return (Registers){0};
    if (blocks > 1) return (Registers){.entry = (uint32_t)each};
    if (have_enough(gpu, multiplying, each, OTHER_REGISTERS + loaded)) return (Registers){0};
    tile_block_walk((TileBlock *)&partitions->regions[1], count_copy, &copies);
    static const int64_t WANTED[][2] = {{PLENTY, OTHER_REGISTERS}, {MORE, FEW_OTHERS}};
    int64_t least = gpu_copying_registers(copies.tiles, multiplying), kept = 0;
    for (unsigned i = 0; i < 2 && !kept; i++) {
        kept = (WANTED[i][0] * (copies.tiles + copies.vectors) + 7) & ~INT64_C(7);
        int64_t most = gpu_multiplying_registers(target, multiplying, copying, kept);
        if (kept < least || kept >= each || !have_enough(gpu, multiplying, most, WANTED[i][1])) kept = 0;
    }
    if (!kept) kept = least;
    int64_t more = gpu_multiplying_registers(target, multiplying, copying, kept), left = each - (more - each) * multiplying / copying;
    if (copies.positions && left > kept) kept = left & ~INT64_C(7); /* those that warps that multiply cannot have */
    return (Registers){(uint32_t)each, (uint32_t)more, (uint32_t)kept};
}

static void set_registers(Gpu *gpu, uint32_t registers, bool release) {
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_REGISTERS, .integer = registers},
                                  {.key = TILE_ATTRIBUTE_RELEASE, .integer = 1}};
    if (registers) tile_build_op(&gpu->b, TILE_OP_SET_REGISTERS, NULL, 0, attributes, release ? 2 : 1, NULL, 0);
}

static TileBlock *begin_region(Gpu *gpu, TileOp *partitions, unsigned region) {
    gpu->b.block = &partitions->regions[region];
    gpu->b.before = NULL;
    return gpu->b.block;
}

/* A map comes from memory before the first box does. The thread that begins with it copies, and makes no mbarriers meanwhile. */
static void prefetch_maps(Gpu *gpu, TileOp *before, int64_t thread) {
    TileBuilder here = gpu->b, outer;
    gpu->b.block = before->block;
    gpu->b.before = before;
    TileOp *branch = gpu_begin_branch(gpu, gpu_binary(gpu, TILE_OP_EQ, gpu->thread, gpu_i64(gpu, thread)), &outer);
    for (uint32_t i = 0; i < gpu->func->body.argument_count; i++)
        if (gpu->func->parameters[i].role == TILE_ROLE_MAP) tile_build_op(&gpu->b, TILE_OP_PREFETCH_TENSOR, &gpu->func->body.arguments[i], 1, NULL, 0, NULL, 0);
    gpu_end_branch(gpu, branch, &outer);
    gpu->b.block = here.block;
    gpu->b.before = here.before;
}

/* Threads that copy come to as many barriers of the cluster as those that multiply have on their way through a program, if the block has one. */
static void meet_with_cluster(Gpu *gpu, const TileOp *partitions, TileBlock *multiplying) {
    unsigned meetings = 0;
    const TileOp *programs = partitions->regions[0].first;
    tile_block_walk(multiplying, gpu_count_meetings, &meetings);
    while (programs && !tile_loop_is_of_programs(programs)) programs = programs->next;
    if (!meetings || !programs) return;
    TileValue *has = gpu_binary(gpu, TILE_OP_LT, gpu_value(gpu, tile_op_operand(programs, 0)), gpu_value(gpu, tile_op_operand(programs, 1)));
    TileOp *branch = tile_build_if(&gpu->b, has, NULL, 0);
    TileBuilder outer = gpu->b;
    for (unsigned r = 0; r < 2; r++) {
        gpu->b.block = &branch->regions[r];
        gpu->b.before = NULL;
        for (unsigned i = 0; i < meetings && !r; i++) gpu_build_plain(&gpu->b, TILE_OP_CLUSTER_BARRIER);
        tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    }
    gpu->b = outer;
}

void gpu_lower_partitions(Gpu *gpu, const TileOp *op) {
    const TileAttribute *warps = tile_op_get(op, TILE_ATTRIBUTE_WARPS);
    TileValue *thread = gpu->thread;
    gpu->turns = tile_op_integer(op, TILE_ATTRIBUTE_TURNS, 1);
    tile_block_walk((TileBlock *)&op->regions[0], add_read, &gpu->read_bytes);
    gpu->sums = live_sums(&op->regions[0]);
    gpu->carried = count_carried((TileBlock *)&op->regions[0]);
    Registers registers = share_registers(gpu, op);
    gpu_open_turns(gpu, op);
    TileOp *last = gpu->b.block->last;
    gpu_build_mbarriers(gpu, warps->integers[0] / gpu->turns);
    tile_block_walk((TileBlock *)&op->regions[0], gpu_find_stored, gpu);
    TileOp *made = tile_build_op(&gpu->b, TILE_OP_PARTITIONS, NULL, 0, op->attributes, op->attribute_count, NULL, 0);
    TileBuilder outer = gpu->b, inner;
    begin_region(gpu, made, 0);
    set_registers(gpu, registers.multiplying, false);
    gpu_number_turns(gpu);
    gpu_lower_block_here(gpu, &op->regions[0]);
    gpu_close_turns(gpu);
    TileOp *end = made->regions[0].last;
    tile_op_detach(end);
    gpu_end_stores(gpu);
    tile_builder_insert(&gpu->b, end);
    gpu->thread = thread;
    gpu->turns = 1;
    gpu->groups_in_turn = 0;
    begin_region(gpu, made, 1);
    set_registers(gpu, registers.copying, true);
    TileOp *branch = gpu_begin_thread(gpu, warps->integers[0] * TILE_WARP_THREADS, &inner);
    gpu_lower_block_here(gpu, &op->regions[1]);
    if (branch->regions[0].last) tile_op_erase(branch->regions[0].last); /* none: an op was refused */
    gpu_end_branch(gpu, branch, &inner);
    meet_with_cluster(gpu, op, &made->regions[0]);
    tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    const char *error = gpu->b.error;
    gpu->b = outer;
    if (error) gpu->b.error = error;
    prefetch_maps(gpu, last->next, warps->integers[0] * TILE_WARP_THREADS);
    if (gpu->func->cluster > 1) tile_build_op(&gpu->b, TILE_OP_CLUSTER_BARRIER, NULL, 0, NULL, 0, NULL, 0); /* before anybody's shared memory goes */
    gpu->func->registers = registers.entry;
    gpu->block_threads = (uint32_t)(warps->integers[0] + warps->integers[1]) * TILE_WARP_THREADS;
}
