/* Reductions: over the registers of a thread, then the lanes of a warp by exchanges, then warps through shared
 * memory. The layout alone determines the order, so results are deterministic. */
#include "lang/ir/eval.h"
#include "ptx/lowering/machine.h"
#include "ptx/grid/scans.h"

enum { VECTOR_BYTES = 16 };

/* A value, or a value and its index, which are reduced together. */
typedef struct Pair {
    TileValue *value, *index; /* index NULL: a plain reduction */
} Pair;

typedef struct Reduction {
    Gpu *gpu;
    const TileOp *op;
    TileName kind;
    unsigned axis;
    TileLayout layout, result; /* of the operand; of the result, without copies in registers */
    uint32_t registers;        /* of the result */
    Pair *parts;               /* the partial result of each */
} Reduction;

/* ---- combining ---- */

/* Is b better than a? NaN wins over all numbers, then the greater (or lesser) value, then the lower index. */
static TileValue *is_better(Gpu *gpu, TileName kind, Pair a, Pair b) {
    TileOpId compare = kind == TILE_KIND_MAX ? TILE_OP_GT : TILE_OP_LT;
    TileValue *better = gpu_binary(gpu, compare, b.value, a.value),
              *equal = gpu_binary(gpu, TILE_OP_EQ, b.value, a.value);
    if (tile_scalar_is_float(a.value->type->scalar)) {
        TileValue *nan_a = tile_build_unary(&gpu->b, TILE_OP_ISNAN, a.value),
                  *nan_b = tile_build_unary(&gpu->b, TILE_OP_ISNAN, b.value);
        TileValue *only_b = gpu_and(gpu, nan_b, tile_build_unary(&gpu->b, TILE_OP_NOT, nan_a));
        better = gpu_binary(gpu, TILE_OP_OR, better, only_b);
        equal = gpu_binary(gpu, TILE_OP_OR, equal, gpu_and(gpu, nan_a, nan_b));
    }
    TileValue *lower = gpu_binary(gpu, TILE_OP_LT, b.index, a.index);
    return gpu_binary(gpu, TILE_OP_OR, better, gpu_and(gpu, equal, lower));
}

static Pair combine(const Reduction *r, Pair a, Pair b) {
    Gpu *gpu = r->gpu;
    if (!a.index) return (Pair){gpu_binary(gpu, tile_eval_combiner(r->kind), a.value, b.value), NULL};
    TileValue *better = is_better(gpu, r->kind, a, b);
    return (Pair){tile_build_ternary(&gpu->b, TILE_OP_SELECT, better, b.value, a.value),
                  tile_build_ternary(&gpu->b, TILE_OP_SELECT, better, b.index, a.index)};
}

/* ---- registers ---- */

/* Padding, where the extent was rounded up, gets the identity element. */
static Pair without_padding(const Reduction *r, Pair pair) {
    Gpu *gpu = r->gpu;
    int64_t extent = tile_op_operand(r->op, 0)->type->extent[r->axis];
    if (tile_layout_extent(&r->layout, r->axis) == extent) return pair;
    TileValue *index = gpu_indices(gpu, &r->layout, r->axis);
    TileValue *inside = gpu_binary(gpu, TILE_OP_LT, index, tile_build_integer(&gpu->b, index->type, extent));
    const TileType *type = pair.value->type;
    TileValue *identity = tile_build_bits(&gpu->b, type, tile_eval_identity(r->kind, type->scalar));
    pair.value = tile_build_ternary(&gpu->b, TILE_OP_SELECT, inside, pair.value, identity);
    if (pair.index) {
        TileValue *last = tile_build_integer(&gpu->b, pair.index->type, INT64_MAX);
        pair.index = tile_build_ternary(&gpu->b, TILE_OP_SELECT, inside, pair.index, last);
    }
    return pair;
}

/* Is the operand's register reduced into the result's: have they the same index on every other axis? */
static bool contributes(const Reduction *r, uint32_t from, uint32_t to) {
    for (unsigned a = 0, left = 0; a < r->layout.rank; a++) {
        if (a == r->axis) continue;
        if (gpu_register_index(&r->layout, a, from) != gpu_register_index(&r->result, left, to)) return false;
        left++;
    }
    return true;
}

/* A tree, so that dependence chains are short. */
static void reduce_registers(Reduction *r, Pair all) {
    Gpu *gpu = r->gpu;
    uint32_t count = tile_layout_registers(&r->layout), found;
    Pair *mine = TILE_NEW_ARRAY(gpu->arena, Pair, count);
    for (uint32_t to = 0; to < r->registers; to++) {
        found = 0;
        for (uint32_t from = 0; from < count; from++)
            if (contributes(r, from, to))
                mine[found++] =
                    (Pair){gpu_register(gpu, all.value, from), all.index ? gpu_register(gpu, all.index, from) : NULL};
        for (uint32_t width = found; width > 1; width = (width + 1) / 2)
            for (uint32_t i = 0; i + (width + 1) / 2 < width; i++)
                mine[i] = combine(r, mine[i], mine[i + (width + 1) / 2]);
        r->parts[to] = mine[0];
    }
}

/* ---- lanes and warps ---- */

static void reduce_lanes(Reduction *r) {
    uint32_t bits = gpu_axis_bits(&r->layout, TILE_LAYOUT_LANE, r->axis);
    for (unsigned i = 0; i < TILE_LANE_BITS; i++) {
        if (!(bits >> i & 1)) continue;
        for (uint32_t to = 0; to < r->registers; to++) {
            Pair mine = r->parts[to], other = {gpu_exchange(r->gpu, mine.value, 1u << i), NULL};
            if (mine.index) other.index = gpu_exchange(r->gpu, mine.index, 1u << i);
            r->parts[to] = combine(r, mine, other);
        }
    }
}

TileValue *gpu_warp_rank(Gpu *gpu, uint32_t bits) {
    TileValue *rank = NULL;
    for (unsigned i = 0, at = 0; bits >> i; i++) {
        if (!(bits >> i & 1)) continue;
        TileValue *bit = gpu_binary(gpu, TILE_OP_SHR, gpu->thread, gpu_i64(gpu, TILE_LANE_BITS + i));
        bit = gpu_binary(gpu, TILE_OP_AND, bit, gpu_i64(gpu, 1));
        if (at) bit = gpu_binary(gpu, TILE_OP_SHL, bit, gpu_i64(gpu, at));
        rank = rank ? gpu_binary(gpu, TILE_OP_OR, rank, bit) : bit;
        at++;
    }
    return rank;
}

static int64_t elements_of(const TileLayout *layout) {
    int64_t count = 1;
    for (unsigned a = 0; a < layout->rank; a++) count *= tile_layout_extent(layout, a);
    return count;
}

/* One of the lanes that share a line writes for its warp; of the warps that hold the same lines, the first one. */
static TileValue *writes_line(const GpuLines *lines) {
    Gpu *gpu = lines->gpu;
    const TileLayout *layout = &lines->layout;
    uint32_t lanes =
        tile_layout_free_bits(layout, TILE_LAYOUT_LANE) | gpu_axis_bits(layout, TILE_LAYOUT_LANE, lines->axis);
    uint32_t warps =
        tile_layout_free_bits(layout, TILE_LAYOUT_WARP) & ~gpu_axis_bits(layout, TILE_LAYOUT_WARP, lines->axis);
    uint32_t bits = lanes | warps << TILE_LANE_BITS;
    if (!bits) return NULL;
    TileValue *low = gpu_binary(gpu, TILE_OP_AND, gpu->thread, gpu_i64(gpu, bits));
    return gpu_binary(gpu, TILE_OP_EQ, low, gpu_i64(gpu, 0));
}

uint32_t gpu_line_warps(const GpuLines *lines) {
    return 1u << __builtin_popcount(gpu_axis_bits(&lines->layout, TILE_LAYOUT_WARP, lines->axis));
}

/* If there are fewer lines than lanes, the values of all warps for a line are stored contiguously, and every thread
 * loads them in vectors. Otherwise there is one array for each warp, so that lanes have no bank conflicts. */
static bool are_interleaved(const TileLayout *result, TileScalar scalar) {
    return elements_of(result) < 1 << TILE_LANE_BITS && scalar != TILE_BOOL;
}

/* Loads the values of `warps` warps for one line, `distance` bytes apart. */
static void read_line(Gpu *gpu, TileValue *address, TileScalar scalar, uint32_t warps, int64_t distance,
                      TileValue **values, uint32_t step) {
    uint32_t size = tile_scalar_bytes(scalar), width = distance > size ? 1 : VECTOR_BYTES / size;
    if (width > warps) width = warps;
    const TileType *type = width > 1 ? tile_type_vector(gpu->module->context, scalar, width, false)
                                     : tile_type_scalar(gpu->module->context, scalar);
    for (uint32_t w = 0; w < warps; w += width) {
        TileValue *from = tile_build_ptr_add(&gpu->b, address, gpu_i64(gpu, w * distance));
        TileValue *loaded = tile_build_load(&gpu->b, type, from, NULL, NULL, width * size);
        for (uint32_t i = 0; i < width; i++) values[(w + i) * step] = width > 1 ? gpu_register(gpu, loaded, i) : loaded;
    }
}

/* Where the values of all warps that share a line lie in shared memory. */
typedef struct Stored {
    GpuStrides strides; /* of the lines of one warp */
    int64_t distance;   /* of warps */
    TileValue *base;    /* that of the thread's first line and the first warp */
    TileValue *rank;    /* of the thread's warp among those that share a line */
    TileValue *writes;  /* does the thread store? NULL: yes */
} Stored;

static GpuStrides line_strides(const TileLayout *result, int64_t bytes) {
    TileLayoutShape shape = {.rank = result->rank};
    for (unsigned a = 0; a < shape.rank; a++) shape.extent[a] = tile_layout_extent(result, a);
    return gpu_row_major(&shape, (unsigned)bytes);
}

static TileValue *address_of(const GpuLines *lines, const GpuStrides *strides, TileValue *base, uint32_t reg) {
    Gpu *gpu = lines->gpu;
    return tile_build_ptr_add(&gpu->b, base, gpu_i64(gpu, gpu_shared_register_offset(&lines->result, strides, reg)));
}

static Stored store_lines(const GpuLines *lines, TileValue *const *values) {
    Gpu *gpu = lines->gpu;
    const TileLayout *result = &lines->result;
    TileScalar scalar = values[0]->type->scalar;
    uint32_t warps = gpu_line_warps(lines), size = tile_scalar_bytes(scalar);
    bool interleaved = are_interleaved(result, scalar);
    Stored stored = {.strides = line_strides(result, interleaved ? size * warps : size),
                     .distance = interleaved ? size : elements_of(result) * size};
    gpu_open_shared(gpu, (uint64_t)elements_of(result) * size * warps, GPU_VECTOR_ALIGN);
    stored.rank = gpu_warp_rank(gpu, gpu_axis_bits(&lines->layout, TILE_LAYOUT_WARP, lines->axis));
    stored.writes = writes_line(lines);
    stored.base = gpu_shared_address(gpu, result, &stored.strides);
    TileValue *far = gpu_binary(gpu, TILE_OP_MUL, stored.rank, gpu_i64(gpu, stored.distance));
    TileValue *own = tile_build_ptr_add(&gpu->b, stored.base, far);
    for (uint32_t to = 0; to < tile_layout_registers(result); to++)
        tile_build_store(&gpu->b, values[to], address_of(lines, &stored.strides, own, to), stored.writes, 0);
    return stored;
}

void gpu_gather_lines(const GpuLines *lines, TileValue **const *values, unsigned count, TileValue ***gathered) {
    Gpu *gpu = lines->gpu;
    uint32_t warps = gpu_line_warps(lines), registers = tile_layout_registers(&lines->result);
    Stored stored[GPU_MOST_GATHERED];
    for (unsigned k = 0; k < count; k++) stored[k] = store_lines(lines, values[k]);
    for (unsigned k = 0; k < count; k++) {
        gathered[k] = TILE_NEW_ARRAY(gpu->arena, TileValue *, (size_t)warps * registers);
        for (uint32_t to = 0; to < registers; to++)
            read_line(gpu, address_of(lines, &stored[k].strides, stored[k].base, to), values[k][0]->type->scalar, warps,
                      stored[k].distance, gathered[k] + to, registers);
    }
}

/* The values of all warps, and their indices if there are any. */
static void gather_parts(const Reduction *r, TileValue **gathered[2]) {
    GpuLines lines = {r->gpu, r->layout, r->result, r->axis};
    TileValue **own[2];
    for (unsigned k = 0; k < 2; k++) own[k] = TILE_NEW_ARRAY(r->gpu->arena, TileValue *, r->registers);
    for (uint32_t i = 0; i < r->registers; i++) {
        own[0][i] = r->parts[i].value;
        own[1][i] = r->parts[i].index;
    }
    gpu_gather_lines(&lines, own, r->parts[0].index ? 2 : 1, gathered);
}

/* ---- warps that share the work ---- */

/* Do many warps have many lines in common, a power of two of them? Then each of them combines a part of the lines, and
 * reads the others: of W warps with R lines a thread each loads 2 R values behind two barriers, instead of W R behind
 * one. */
static bool share_work(const Reduction *r, uint32_t warps) {
    enum { FEW_LOADS = 64 };
    return !r->parts[0].index && !are_interleaved(&r->result, r->parts[0].value->type->scalar) && r->registers > 1 &&
           (r->registers & (r->registers - 1)) == 0 && warps * r->registers >= FEW_LOADS;
}

/* The address of the first line that the thread's warp combines: bits of its rank are bits of the register. */
static TileValue *address_of_share(const GpuLines *lines, const Stored *stored, const GpuStrides *strides,
                                   TileValue *base, uint32_t own) {
    Gpu *gpu = lines->gpu;
    uint32_t count = tile_layout_registers(&lines->result);
    for (uint32_t bit = 0; own << bit < count; bit++) {
        TileValue *set = bit ? gpu_binary(gpu, TILE_OP_SHR, stored->rank, gpu_i64(gpu, bit)) : stored->rank;
        set = gpu_binary(gpu, TILE_OP_AND, set, gpu_i64(gpu, 1));
        int64_t offset = gpu_shared_register_offset(&lines->result, strides, own << bit) - strides->offset;
        base = tile_build_ptr_add(&gpu->b, base, gpu_binary(gpu, TILE_OP_MUL, set, gpu_i64(gpu, offset)));
    }
    return base;
}

static TileValue *combine_line(const Reduction *r, const Stored *stored, TileValue *address, uint32_t warps) {
    TileValue **values = TILE_NEW_ARRAY(r->gpu->arena, TileValue *, warps);
    read_line(r->gpu, address, r->parts[0].value->type->scalar, warps, stored->distance, values, 1);
    Pair sum = {values[0], NULL};
    for (uint32_t w = 1; w < warps; w++) sum = combine(r, sum, (Pair){values[w], NULL});
    return sum.value;
}

/* The order of the warps is that of reduce_warps. */
static void reduce_in_shares(Reduction *r, uint32_t warps) {
    Gpu *gpu = r->gpu;
    GpuLines lines = {gpu, r->layout, r->result, r->axis};
    TileValue **values = TILE_NEW_ARRAY(gpu->arena, TileValue *, r->registers);
    for (uint32_t i = 0; i < r->registers; i++) values[i] = r->parts[i].value;
    const TileType *type = values[0]->type;
    Stored stored = store_lines(&lines, values);
    uint32_t shares = warps < r->registers ? warps : r->registers, own = r->registers / shares;
    TileValue *from = address_of_share(&lines, &stored, &stored.strides, stored.base, own);
    for (uint32_t i = 0; i < own; i++)
        values[i] = combine_line(r, &stored, address_of(&lines, &stored.strides, from, i), warps);
    int64_t size = tile_scalar_bytes(type->scalar);
    GpuStrides strides = line_strides(&r->result, size);
    gpu_open_shared(gpu, (uint64_t)(elements_of(&r->result) * size), GPU_VECTOR_ALIGN);
    TileValue *base = gpu_shared_address(gpu, &r->result, &strides), *writes = stored.writes;
    if (shares < warps) writes = gpu_and(gpu, writes, gpu_binary(gpu, TILE_OP_LT, stored.rank, gpu_i64(gpu, shares)));
    TileValue *to = address_of_share(&lines, &stored, &strides, base, own);
    for (uint32_t i = 0; i < own; i++)
        tile_build_store(&gpu->b, values[i], address_of(&lines, &strides, to, i), writes, 0);
    for (uint32_t i = 0; i < r->registers; i++)
        r->parts[i].value = tile_build_load(&gpu->b, type, address_of(&lines, &strides, base, i), NULL, NULL, 0);
}

/* Each thread combines the values of its own lines, in the order of the warps. */
static void reduce_warps(Reduction *r) {
    uint32_t warps = 1u << __builtin_popcount(gpu_axis_bits(&r->layout, TILE_LAYOUT_WARP, r->axis));
    if (warps == 1) return;
    if (share_work(r, warps)) {
        reduce_in_shares(r, warps);
        return;
    }
    TileValue **gathered[2] = {NULL};
    gather_parts(r, gathered);
    for (uint32_t to = 0; to < r->registers; to++) {
        for (uint32_t w = 0; w < warps; w++) {
            uint32_t at = w * r->registers + to;
            Pair next = {gathered[0][at], gathered[1] ? gathered[1][at] : NULL};
            r->parts[to] = w ? combine(r, r->parts[to], next) : next;
        }
    }
}

/* ---- the op ---- */

static TileValue **reduce_all(Reduction *r, Pair all, bool wants_index) {
    r->parts = TILE_NEW_ARRAY(r->gpu->arena, Pair, r->registers);
    reduce_registers(r, without_padding(r, all));
    reduce_lanes(r);
    reduce_warps(r);
    TileValue **registers = TILE_NEW_ARRAY(r->gpu->arena, TileValue *, r->registers);
    for (uint32_t i = 0; i < r->registers; i++) registers[i] = wants_index ? r->parts[i].index : r->parts[i].value;
    return registers;
}

/* Is no element of the tile -0? Not of powers and magnitudes, nor of their sums. */
static bool is_never_minus_zero(const TileValue *value) {
    const TileOp *op = value->op;
    if (!op) return false;
    if (op->id == TILE_OP_EXP || op->id == TILE_OP_EXP2 || op->id == TILE_OP_ABS) return true;
    if (op->id == TILE_OP_REDUCE && tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM) == TILE_KIND_SUM) return true;
    if (op->id == TILE_OP_FILL) {
        const TileOp *fill = tile_value_def(tile_op_operand(op, 1), TILE_OP_CONST);
        return fill && !tile_op_get(fill, TILE_ATTRIBUTE_VALUE)->bits && is_never_minus_zero(tile_op_operand(op, 0));
    }
    return (op->id == TILE_OP_RESHAPE || op->id == TILE_OP_CONVERT_LAYOUT) && is_never_minus_zero(tile_op_operand(op, 0));
}

/* A sum is never -0, since it begins with +0; a tree of the elements alone may be, if one of them is. */
static void add_zero(const Reduction *r, TileValue **sums) {
    if (r->kind != TILE_KIND_SUM || !tile_scalar_is_float(sums[0]->type->scalar) || is_never_minus_zero(tile_op_operand(r->op, 0))) return;
    TileValue *zero = tile_build_bits(&r->gpu->b, sums[0]->type, 0);
    for (uint32_t i = 0; i < r->registers; i++) sums[i] = gpu_binary(r->gpu, TILE_OP_ADD, sums[i], zero);
}

/* The totals of the last scan, if a reduction by `id` is over the same elements; NULL otherwise. */
static TileValue **scanned_totals(const Gpu *gpu, const TileOp *reduce, TileOpId id) {
    const TileOp *scan = gpu->scanned.scan;
    return scan && gpu->scanned.totals && gpu_scan_matches_reduce(scan, reduce, id) ? gpu->scanned.totals : NULL;
}

static void reduce(Gpu *gpu, TileOp *op, Pair all, bool wants_index) {
    const TileType *from = tile_op_operand(op, 0)->type;
    Reduction r = {.gpu = gpu,
                   .op = op,
                   .kind = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM),
                   .axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0),
                   .layout = *from->layout};
    TileLayout slice = tile_layout_slice(&r.layout, r.axis);
    r.result = tile_layout_without_copies(&slice);
    r.registers = tile_layout_registers(&r.result);
    TileValue **registers = wants_index ? NULL : scanned_totals(gpu, op, tile_eval_combiner(r.kind));
    if (!registers) gpu_remark_reduction(gpu, op, &r.layout, r.axis);
    if (!registers) registers = reduce_all(&r, all, wants_index);
    if (!wants_index) add_zero(&r, registers);
    TileValue *value = gpu_join(gpu, registers, r.registers);
    tile_map_set(&gpu->values, &op->results[0], value);
}

void gpu_lower_reduce(Gpu *gpu, TileOp *op) {
    reduce(gpu, op, (Pair){gpu_value(gpu, tile_op_operand(op, 0)), NULL}, false);
}

void gpu_lower_arg_reduce(Gpu *gpu, TileOp *op) {
    Pair all = {gpu_value(gpu, tile_op_operand(op, 0)), gpu_value(gpu, tile_op_operand(op, 1))};
    reduce(gpu, op, all, true);
}
