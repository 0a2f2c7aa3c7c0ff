/* Purpose: split a loop that reduces over the programs of a grid, where a grid has fewer programs than `least_programs`
 * of its kernel, or the grid's own. Each program becomes several, its parts: a grid before it computes each part's result of the loop into
 * a temporary, and the grid itself combines them, in order of the parts. How many parts there are is computed at the
 * launch, from the number of programs and of iterations. Loops behind it are split in turn; iterations of a last loop that
 * stores become programs of the grid itself. Where that loop stores what it carries (a running sum), the grid before it computes
 * what each part adds, without the stores, and a program of the grid itself begins with what the parts before its own have added.
 * Parts of a program follow one another; those of products do so only where no two programs load the same of a large tensor, which the launch
 * knows: else programs of one part do (grid_parts.c).
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) least_programs = 132 {
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
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) least_programs = 132 {
 *       %m = dim %x {axis = 0} : i64
 *       %n = dim %x {axis = 1} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 0} : i64
 *       %1 = max %n, %0 : i64
 *       %2 = max %n, %one : i64
 *       %3 = const {value = 132} : i64
 *       %4 = div %3, %2 : i64
 *       %5 = max %m, %0 : i64
 *       %6 = const {value = 4} : i64
 *       %7 = div %5, %6 : i64
 *       %8 = min %4, %7 : i64
 *       %9 = max %8, %one : i64
 *       %10 = const {value = -1} : i64
 *       %11 = add %9, %10 : i64
 *       %12 = add %5, %11 : i64
 *       %13 = div %12, %9 : i64
 *       %14 = max %13, %one : i64
 *       %15 = add %14, %10 : i64
 *       %16 = add %5, %15 : i64
 *       %17 = div %16, %14 : i64
 *       %18 = max %17, %one : i64
 *       %19 = temp %1, %18 : tensor<f32, 2, temp>
 *       grid %n, %18 (%i: i64, %20: i64) {
 *         %21 = const {value = 0.0} : f32
 *         %22 = mul %20, %14 : i64
 *         %23 = add %22, %14 : i64
 *         %24 = min %m, %23 : i64
 *         %sum.1 = for %22, %24, %one, %21 {part = 2} : f32 (%k: i64, %sum.2: f32) {
 *           %v = load_tile %x, %k, %i {access = [index, index]} : f32
 *           %sum.3 = add %sum.2, %v : f32
 *           yield %sum.3
 *         }
 *         store_tile %19, %sum.1, %i, %20 {access = [index, index]}
 *         yield
 *       }
 *       grid %n (%i.1: i64) {
 *         %sum = const {value = 0.0} : f32
 *         %25 = const {value = 16} : i64
 *         %sum.1.1 = for %0, %18, %25, %sum {part = 3} : f32 (%26: i64, %sum.4: f32) {
 *           %27 = sub %18, %26 : i64
 *           %28 = min %27, %25 : i64
 *           %29 = load_tile %19, %i.1, %26, %one, %0, %28 {access = [index, range]} : f32[16]
 *           %30 = fill %29, %sum, %0, %28 {axes = [0]} : f32[16]
 *           %31 = reduce %30 {axis = 0, kind = sum} : f32
 *           %32 = add %sum.4, %31 : f32
 *           yield %32
 *         }
 *         store_tile %y, %sum.1.1, %i.1 {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-split-grids,canonicalise,cse,dce
 * Needs: inline; loops whose bounds are known outside of the grid, so licm; ranges of indices. Keeps: tile form. Cost: linear. */
#include "lang/ir/access.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/grid/choices.h"
#include "ptx/grid/cluster_parts.h"
#include "ptx/grid/grid_parts.h"
#include "ptx/grid/slices.h"
#include "ptx/passes.h"
#include "ptx/target/target.h"

/* Parts that are loaded at once, where it is not known how many programs combine them. */
enum { TOGETHER = 16 };

/* ---- which loops ---- */

/* May the op read what a store to the tensor writes? */
static bool may_read(const TileOp *op, const TileValue *written) {
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (may_read(inner, written)) return true;
    return !op->region_count && tile_op_reads(op) && tile_memory_overlaps(written, tile_memory_tensor(op));
}

static bool is_read_in_grid(const GpuSplit *split, const TileOp *store) {
    for (const TileOp *op = split->grid->regions[0].first; op; op = op->next)
        if (may_read(op, tile_memory_tensor(store))) return true;
    return false;
}

/* A store whose tensor the program does not read: parts leave it to the grid itself. */
static bool is_left_out(const GpuSplit *split, const TileOp *op) {
    return op->id == TILE_OP_STORE_TILE && !is_read_in_grid(split, op);
}

/* Loops in front of it are those over parts that have been computed. */
static const char *obstacle_before(const GpuSplit *split) {
    for (const TileOp *op = split->grid->regions[0].first; op != split->loop; op = op->next) {
        if (op->id == TILE_OP_WHILE) return "the grid has another loop before it";
        if (tile_op_writes(op) && !is_left_out(split, op)) return "the grid writes before it";
    }
    return NULL;
}

static bool is_ordered(const TileOp *loop) { return tile_op_integer(loop, TILE_ATTRIBUTE_ORDERED, 0) != 0; }

/* Why the loop cannot be split; NULL: it can. */
static const char *obstacle(GpuSplit *split) {
    TileOp *loop = split->loop;
    if (is_ordered(loop)) return "its iterations are ordered";
    if (loop->result_count > TILE_MAX_FOLD) return "it carries too many values";
    const char *why = obstacle_before(split);
    if (why) return why;
    if (tile_op_writes(loop)) return "it writes to memory";
    for (unsigned i = 0; i < loop->result_count; i++) {
        const TileType *type = loop->results[i].type;
        if (type->kind != TILE_TYPE_SCALAR && !tile_type_is_tile(type)) return "what it carries is no number";
    }
    return gpu_merge_find(&split->merge, loop, split->context->scratch);
}

static TileOp *next_loop(TileOp *op) {
    while (op && op->id != TILE_OP_FOR) op = op->next;
    return op;
}

static TileOp *first_loop(const TileOp *grid) { return next_loop(grid->regions[0].first); }

/* ---- loops that store ---- */

static const char *obstacle_of_stores(GpuSplit *split) {
    const TileOp *loop = split->loop;
    const char *why = is_ordered(loop)                     ? "its iterations are ordered"
                      : !gpu_split_is_counted(split, loop) ? "its bounds differ from program to program"
                                                           : NULL;
    for (const TileOp *op = loop->regions[0].first; op && !why; op = op->next) {
        if (!tile_op_writes(op)) continue;
        if (op->id != TILE_OP_STORE_TILE || !tile_access_is_apart(op, loop)) why = "its iterations may write the same elements";
        else if (is_read_in_grid(split, op)) why = "the grid may read what it writes";
    }
    for (const TileOp *op = split->grid->regions[0].first; op && !why; op = op->next) {
        if (op == loop) continue;
        if (tile_op_writes(op) && !is_left_out(split, op)) why = "the grid writes outside of it";
        for (const TileOp *inner = loop->regions[0].first; inner && tile_op_writes(op) && !why; inner = inner->next)
            if (inner->id == TILE_OP_STORE_TILE && tile_memory_overlaps(tile_memory_tensor(op), tile_memory_tensor(inner)))
                why = "the grid writes the same tensor outside of it";
    }
    return why ? why : next_loop(loop->next) ? "the grid has another loop behind it" : NULL;
}

/* The last part alone stores what is stored outside of the loop: it has what the loop's last iteration leaves. */
static void store_once(GpuSplit *split, TileOp *loop, TileValue *part) {
    TileModule *module = split->context->module;
    TileBuilder before = tile_builder_before(module, loop->block->first);
    TileValue *last = tile_build_binary(&before, TILE_OP_SUB, split->parts, tile_build_i64(&before, 1));
    for (TileOp *op = loop->block->first, *next; op; op = next) {
        next = op->next;
        if (op->id != TILE_OP_STORE_TILE) continue;
        TileBuilder b = tile_builder_before(module, op);
        TileOp *branch = tile_build_if(&b, tile_build_binary(&b, TILE_OP_EQ, part, last), NULL, 0);
        tile_op_detach(op);
        tile_op_append(op, &branch->regions[0]);
        for (unsigned r = 0; r < 2; r++) {
            TileBuilder end = tile_builder_at_end(module, &branch->regions[r]);
            tile_build_end(&end, TILE_OP_YIELD, NULL, 0);
        }
    }
}

/* The grid itself has a program for each part of a loop that stores. */
static TileValue *spread_stores(GpuSplit *split, TileOp *loop) {
    TileValue *part = gpu_split_widen_grid(split, split->grid);
    TileBuilder before = tile_builder_before(split->context->module, loop);
    gpu_split_narrow(&before, loop, part, split->trips[0]);
    store_once(split, loop, part);
    return part;
}

static void split_stores(GpuSplit *split) {
    TileBuilder host = tile_builder_before(split->context->module, split->grid);
    split->nest[0] = split->loop;
    split->depth = 1;
    gpu_split_compute_parts(split, &host, 1);
    spread_stores(split, split->loop);
}

/* ---- loops that store what they carry ---- */

static void erase_unused(TileBlock *block) {
    for (TileOp *op = block->last, *previous; op; op = previous) {
        bool used = !tile_op_is_pure(op) && op->id != TILE_OP_LOAD_TILE;
        previous = op->previous;
        for (unsigned i = 0; i < op->result_count; i++) used |= tile_value_has_uses(&op->results[i]);
        if (!used && op != block->last) tile_op_erase(op);
    }
}

/* A loop in front of it that carries the same and stores nothing. */
static TileOp *build_sums(GpuSplit *split) {
    TileModule *module = split->context->module;
    TileMap map;
    tile_map_init(&map, split->context->scratch);
    TileOp *sums = tile_op_clone(module, split->loop, &map);
    TileBuilder b = tile_builder_before(module, split->loop);
    tile_builder_insert(&b, sums);
    TileBlock *body = &sums->regions[0];
    for (TileOp *op = body->first, *next; op; op = next) {
        next = op->next;
        if (op->id == TILE_OP_STORE_TILE) tile_op_erase(op);
    }
    erase_unused(body);
    return sums;
}

/* A scan: each part computes what it adds to what is carried, by a grid of its own. In the grid itself it then begins with what those
 * before it have added, and stores. Returns why that cannot be; NULL: it was done. */
static const char *split_scan(GpuSplit *split) {
    TileModule *module = split->context->module;
    TileOp *scan = split->loop;
    split->loop = build_sums(split);
    const char *why = obstacle(split);
    if (why) {
        tile_op_erase(split->loop);
        split->loop = scan;
        return why;
    }
    tile_op_set_integer(module, split->loop, TILE_ATTRIBUTE_PART, TILE_PART_OF_SCAN);
    tile_op_set_integer(module, scan, TILE_ATTRIBUTE_PART, TILE_PART_OF_SCAN);
    unsigned count, carried = tile_op_operands(scan, TILE_OPERAND_CARRIED, &count);
    for (unsigned i = 0; i < count; i++) tile_op_set_operand(scan, carried + i, &split->loop->results[i]);
    TileBuilder host = tile_builder_before(module, split->grid);
    split->nest[0] = split->loop;
    split->depth = 1;
    gpu_split_compute_parts(split, &host, gpu_split_least_trips(split));
    gpu_split_build_temps(split, &host);
    gpu_split_build_parts(split, &host);
    split->together = TOGETHER;
    gpu_split_combine(split, spread_stores(split, scan));
    return NULL;
}

/* ---- the pass ---- */

/* The bytes and elements that each of the loop's programs leaves to be combined, the tile that has the most. */
static int64_t bytes_of_part(const GpuSplit *split, int64_t *elements) {
    int64_t bytes = 0;
    *elements = 1;
    for (unsigned i = 0; i < split->loop->result_count; i++) {
        const TileType *type = split->loop->results[i].type;
        int64_t lanes = tile_type_is_tile(type) ? tile_type_lanes(type) : 1;
        bytes += lanes * (int64_t)tile_scalar_bytes(type->scalar);
        if (lanes > *elements) *elements = lanes;
    }
    return bytes;
}

/* Programs that combine parts have nothing to wait for but these, each element by itself. So they are divided, along the first axis of what they store. Where it is
 * known how many there are, so many parts are loaded together that the multiprocessors have enough bytes in flight. Where elements are enough for all threads, a thread loads
 * several parts of its own elements, and exchanges nothing; a program has a tile of a few vectors for each thread, or less, so that there is one for each multiprocessor
 * or two. Else they are taken to be few, with many parts. */
static void plan_combination(GpuSplit *split) {
    enum { MOST_TOGETHER = 64, LEAST_ELEMENTS = 512, LANES = 2048, FLIGHT_BYTES = 1 << 15, BLOCKS_CORE = 2, LEAST_ROW = 64, BESIDE_LANES = 1024 };
    GpuSlices slices;
    const TileTarget *target = split->context->target;
    int64_t programs = target && split->splits < TILE_MOST_SPLITS ? split->kernel->split_programs[split->splits] : 0, cores = target ? tile_ptx_target_of(target)->cores : 0, elements,
            bytes = programs * bytes_of_part(split, &elements), lanes = LANES, least = LEAST_ELEMENTS;
    split->alone = split->merge.simple && !next_loop(split->loop->next);
    split->together = TOGETHER;
    if (programs && split->alone) {
        int64_t together = 1;
        split->beside = programs * elements >= BESIDE_LANES * cores;
        while (together < (split->beside ? GPU_MOST_BESIDE : MOST_TOGETHER) && together < split->wanted / programs && (split->beside || together * bytes < FLIGHT_BYTES * cores)) together *= 2;
        int64_t loaded = split->beside ? 1 : together;
        while (lanes > LEAST_ELEMENTS && programs * elements * loaded < BLOCKS_CORE * cores * lanes) lanes /= 2;
        split->together = together;
        least = lanes / loaded > LEAST_ROW ? lanes / loaded : LEAST_ROW;
    }
    split->slices = split->alone ? gpu_slices_find(&slices, split->context, split->grid, split->loop, least) : 1;
}

/* A loop that only carries: parts of it are combined. Returns the next loop. */
static TileOp *split_sums(GpuSplit *split) {
    TileBuilder host = tile_builder_before(split->context->module, split->grid);
    gpu_split_find_nest(split);
    for (unsigned k = 0; k < split->depth; k++)
        tile_op_set_integer(split->context->module, split->nest[k], TILE_ATTRIBUTE_PART, TILE_PART_OF_SUMS);
    gpu_split_compute_parts(split, &host, gpu_split_least_trips(split));
    gpu_split_build_temps(split, &host);
    gpu_split_build_parts(split, &host);
    plan_combination(split);
    TileOp *combined = gpu_split_combine(split, NULL), *next = next_loop(combined->next);
    if (split->alone) tile_op_set_integer(split->context->module, combined, TILE_ATTRIBUTE_PART, TILE_PART_OVER_SUMS);
    GpuSlices slices;
    if (split->slices > 1) gpu_slices_divide(&slices, split->context, split->grid, split->slices);
    return next;
}

/* Do the blocks of a cluster have the loop's parts? */
static bool has_cluster(GpuSplit *split) {
    if (!gpu_split_wants_cluster(split)) return false;
    const char *why = gpu_split_why_not_in_cluster(split);
    if (why) tile_pass_remark(split->context, split->loop, TILE_DECISION_NO_CLUSTERS, "parts", "%s", why);
    return !why;
}

/* Splits the loop; returns the next one to look at, NULL if it was the last or cannot be split. */
static TileOp *try_loop(GpuSplit *split, bool *changed) {
    TileOp *loop = split->loop;
    bool stores = !loop->result_count || tile_op_writes(loop), scans = stores && loop->result_count;
    if (!stores && !is_ordered(loop)) split->loop = gpu_choices_carry_keys(split->context->module, loop);
    *changed |= split->loop != loop;
    loop = split->loop;
    const char *why = split->axes >= TILE_MAX_GRID_RANK ? "the grid has as many dimensions as a grid may have"
                      : stores                          ? obstacle_of_stores(split)
                                                        : obstacle(split);
    bool clusters = !stores && !why && has_cluster(split);
    TileOp *joined = stores || why ? NULL : gpu_split_join_nest(split);
    if (joined) {
        split->loop = loop = joined;
        why = obstacle(split);
    }
    if (scans && !why) why = split_scan(split);
    if (why) {
        tile_pass_remark(split->context, loop, TILE_DECISION_NOT_IN_PARTS, "the loop", "%s", why);
        return NULL;
    }
    *changed = true;
    if (clusters) {
        tile_pass_remark(split->context, loop, TILE_DECISION_IN_PARTS, "the loop", "for the %u blocks of a cluster, which combine them", split->kernel->cluster);
        gpu_split_in_cluster(split);
        return NULL;
    }
    tile_pass_remark(split->context, loop, TILE_DECISION_IN_PARTS, "the loop", "for %lld programs", (long long)split->wanted);
    if (stores && !scans) split_stores(split);
    return stores ? NULL : split_sums(split);
}

static int64_t wanted_programs(const TileFunc *kernel, const TileOp *grid) {
    int64_t own = tile_op_integer(grid, TILE_ATTRIBUTE_LEAST_PROGRAMS, 0);
    return own > kernel->least_programs ? own : kernel->least_programs;
}

static void find_slices(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_CLUSTER_REDUCE && tile_op_get(op, TILE_ATTRIBUTE_AXIS); }

/* Have the blocks of a cluster parts of the grid's loop, each a slice of what it stores? Then nothing is left to divide. */
static bool is_in_parts(TileOp *grid) {
    bool found = false;
    tile_block_walk(&grid->regions[0], find_slices, &found);
    return found;
}

static bool try_grid(TilePassContext *context, TileFunc *kernel, TileOp *grid, unsigned *splits) {
    bool changed = false;
    int64_t wanted = wanted_programs(kernel, grid);
    if (!wanted || is_in_parts(grid)) return false;
    unsigned axes = grid->operand_count;
    for (TileOp *loop = axes ? first_loop(grid) : NULL; loop;) {
        GpuSplit split = {.context = context, .kernel = kernel, .grid = grid, .loop = loop, .axes = axes, .wanted = wanted, .splits = *splits, .slices = 1};
        loop = try_loop(&split, &changed);
        *splits += split.alone;
    }
    return changed;
}

TileResult tile_pass_gpu_split_grids(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    unsigned splits = 0;
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first, *next; op; op = next) {
        next = op->next;
        if (op->id == TILE_OP_GRID) changed |= try_grid(context, func, op, &splits);
    }
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
