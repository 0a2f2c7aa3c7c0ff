/* Conversions between layouts: within a thread's registers, by exchanges between lanes, or through shared memory. */
#include "ptx/lowering/machine.h"
#include "ptx/lowering/swizzle.h"

/* ---- through shared memory in vectors, without bank conflicts ---- */

/* The store or the load of such a conversion. An address is the exclusive or of the thread's offset and the
 * register's. Bits of the latter that no thread's offset has are added instead. */
typedef struct Swizzled {
    Gpu *gpu;
    const TileLayout *layout;
    TileLinear offsets, registers; /* (register, lane, warp) to offset; element of a vector to register */
    unsigned vector, log_bytes;    /* elements; of one element */
    uint32_t own_bits;             /* bits that a thread's byte offset may have */
    TileValue *own;                /* NULL: 0 */
    struct {
        uint32_t swizzle;
        TileValue *address;
    } found[TILE_LANES]; /* addresses built so far */
    unsigned found_count;
} Swizzled;

/* The thread's offset. Bits that are shifted by the same distance are shifted together. */
static TileValue *thread_offset(const Swizzled *side) {
    Gpu *gpu = side->gpu;
    uint32_t moved[2 * TILE_LINEAR_BITS] = {0};
    unsigned first = tile_layout_first_bit(side->layout, TILE_LAYOUT_LANE);
    for (unsigned i = first; i < side->offsets.inputs; i++)
        for (unsigned bit = 0; bit < side->offsets.outputs; bit++)
            if (side->offsets.column[i] >> bit & 1)
                moved[TILE_LINEAR_BITS + bit + side->log_bytes - (i - first)] |= UINT32_C(1) << (i - first);
    TileValue *offset = NULL;
    for (unsigned shift = 0; shift < 2 * TILE_LINEAR_BITS; shift++) {
        if (!moved[shift]) continue;
        TileValue *bits = gpu_binary(gpu, TILE_OP_AND, gpu->thread, gpu_i64(gpu, moved[shift]));
        if (shift > TILE_LINEAR_BITS) bits = gpu_binary(gpu, TILE_OP_SHL, bits, gpu_i64(gpu, shift - TILE_LINEAR_BITS));
        if (shift < TILE_LINEAR_BITS) bits = gpu_binary(gpu, TILE_OP_SHR, bits, gpu_i64(gpu, TILE_LINEAR_BITS - shift));
        offset = offset ? gpu_binary(gpu, TILE_OP_XOR, offset, bits) : bits;
    }
    return offset;
}

static Swizzled swizzled_side(Gpu *gpu, const TileSharedLayout *shared, const TileLayout *layout, bool vectors) {
    Swizzled side = {.gpu = gpu, .layout = layout, .offsets = tile_shared_offsets(shared, layout), .vector = 1};
    if (vectors) side.vector = tile_shared_vector(shared, layout, &side.registers);
    side.log_bytes = (unsigned)__builtin_ctz(shared->scalar_bytes);
    for (unsigned i = tile_layout_first_bit(layout, TILE_LAYOUT_LANE); i < side.offsets.inputs; i++)
        side.own_bits |= side.offsets.column[i] << side.log_bytes;
    /* A thread's offset must have no bits below the size of a vector. */
    while (side.vector > 1 && side.own_bits & ((side.vector << side.log_bytes) - 1)) side.vector /= 2;
    side.own = thread_offset(&side);
    return side;
}

static TileValue *swizzled_address(Swizzled *side, uint32_t offset) {
    Gpu *gpu = side->gpu;
    uint32_t bytes = offset << side->log_bytes, swizzle = bytes & side->own_bits, more = bytes ^ swizzle;
    TileValue *address = NULL;
    for (unsigned i = 0; i < side->found_count; i++)
        if (side->found[i].swizzle == swizzle) address = side->found[i].address;
    if (!address) {
        TileValue *own = side->own;
        if (swizzle) own = gpu_binary(gpu, TILE_OP_XOR, own, gpu_i64(gpu, swizzle));
        address = own ? tile_build_ptr_add(&gpu->b, gpu->shared, own) : gpu->shared;
        if (side->found_count < TILE_LANES) {
            side->found[side->found_count].swizzle = swizzle;
            side->found[side->found_count++].address = address;
        }
    }
    return more ? tile_build_ptr_add(&gpu->b, address, gpu_i64(gpu, more)) : address;
}

/* Is this the register of a vector's first element? The other registers follow by exclusive or with `registers`. */
static bool begins_vector(const Swizzled *side, uint32_t reg, uint32_t *offset) {
    *offset = tile_linear_apply(&side->offsets, reg);
    return (*offset & (side->vector - 1)) == 0;
}

static void store_vectors(Swizzled *side, TileValue *value) {
    Gpu *gpu = side->gpu;
    TileValue *elements[TILE_LANES];
    uint32_t count = tile_layout_registers(side->layout), offset;
    for (uint32_t r = 0; r < count; r++) {
        if (!begins_vector(side, r, &offset)) continue;
        for (uint32_t e = 0; e < side->vector; e++)
            elements[e] = gpu_register(gpu, value, r ^ tile_linear_apply(&side->registers, e));
        tile_build_store(&gpu->b, gpu_join(gpu, elements, side->vector), swizzled_address(side, offset), NULL,
                         (int64_t)side->vector << side->log_bytes);
    }
}

/* One of the threads that hold an element stores it. */
static void store_swizzled(Swizzled *side, TileValue *value) {
    Gpu *gpu = side->gpu;
    TileValue *first = gpu_holds_first_copy(gpu, side->layout);
    if (!first) {
        store_vectors(side, value);
        return;
    }
    TileBuilder outer = gpu->b;
    TileOp *choice = tile_build_if(&outer, first, NULL, 0);
    tile_op_set_integer(gpu->module, choice, TILE_ATTRIBUTE_DIVERGENT, 1);
    for (unsigned i = 0; i < 2; i++) {
        gpu->b.block = &choice->regions[i];
        gpu->b.before = NULL;
        if (i == 0) store_vectors(side, value);
        tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    }
    gpu->b = outer;
}

static TileValue *load_swizzled(Swizzled *side, TileScalar scalar) {
    Gpu *gpu = side->gpu;
    uint32_t count = tile_layout_registers(side->layout), offset;
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    const TileType *type = side->vector > 1 ? tile_type_vector(gpu->module->context, scalar, side->vector, false)
                                            : tile_type_scalar(gpu->module->context, scalar);
    for (uint32_t r = 0; r < count; r++) {
        if (!begins_vector(side, r, &offset)) continue;
        TileValue *loaded = tile_build_load(&gpu->b, type, swizzled_address(side, offset), NULL, NULL,
                                            (int64_t)side->vector << side->log_bytes);
        for (uint32_t e = 0; e < side->vector; e++)
            registers[r ^ tile_linear_apply(&side->registers, e)] = gpu_register(gpu, loaded, e);
    }
    return gpu_join(gpu, registers, count);
}

/* ---- by matrices ---- */

/* The lanes' addresses of an access by matrices. */
static TileValue *matrix_address(Swizzled *side, const TileSharedMatrices *matrices, uint32_t access) {
    unsigned columns = matrices->shared.log_vector;
    return swizzled_address(side, tile_linear_apply(&side->offsets, access << columns));
}

static uint32_t count_accesses(const TileSharedMatrices *matrices) {
    return 1u << (matrices->rows.bits[TILE_LAYOUT_REGISTER] - matrices->shared.log_vector);
}

static void store_matrices(Gpu *gpu, const TileSharedMatrices *matrices, TileValue *value) {
    Swizzled side = swizzled_side(gpu, &matrices->shared, &matrices->rows, true);
    TileAttribute transposed = {.key = TILE_ATTRIBUTE_TRANSPOSED, .integer = 1};
    TileValue *elements[TILE_LANES];
    uint32_t count = (uint32_t)matrices->packed << matrices->log_count;
    for (uint32_t access = 0; access < count_accesses(matrices); access++) {
        for (uint32_t i = 0; i < count; i++)
            elements[i] = gpu_register(gpu, value, tile_shared_matrices_register(matrices, access, i));
        TileValue *operands[] = {gpu_join(gpu, elements, count), matrix_address(&side, matrices, access)};
        tile_build_op(&gpu->b, TILE_OP_STORE_MATRIX, operands, 2, &transposed, matrices->transposed, NULL, 0);
    }
}

static TileValue *load_matrices(Gpu *gpu, const TileSharedMatrices *matrices, TileScalar scalar,
                                const TileLayout *layout) {
    Swizzled side = swizzled_side(gpu, &matrices->shared, &matrices->rows, true);
    TileAttribute transposed = {.key = TILE_ATTRIBUTE_TRANSPOSED, .integer = 1};
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, tile_layout_registers(layout));
    uint32_t count = (uint32_t)matrices->packed << matrices->log_count;
    const TileType *type = count > 1 ? tile_type_vector(gpu->module->context, scalar, count, false)
                                     : tile_type_scalar(gpu->module->context, scalar);
    for (uint32_t access = 0; access < count_accesses(matrices); access++) {
        TileValue *address = matrix_address(&side, matrices, access);
        TileValue *loaded = tile_op_result(
            tile_build_op(&gpu->b, TILE_OP_LOAD_MATRIX, &address, 1, &transposed, matrices->transposed, &type, 1), 0);
        for (uint32_t i = 0; i < count; i++)
            registers[tile_shared_matrices_register(matrices, access, i)] = gpu_register(gpu, loaded, i);
    }
    return gpu_join(gpu, registers, tile_layout_registers(layout));
}

/* ---- conversions ---- */

/* Do both have the same pieces of powers of two? Then each piece is converted by itself. */
static bool have_same_pieces(const TileLayout *from, const TileLayout *to) {
    bool same = true;
    for (unsigned a = 0; a < from->rank; a++)
        same &= from->pieces[a] == to->pieces[a] && from->log_extent[a] == to->log_extent[a];
    return same;
}

static uint32_t count_pieces(const TileLayout *layout) {
    uint32_t count = 1;
    for (unsigned a = 0; a < layout->rank; a++) count *= layout->pieces[a];
    return count;
}

static TileLayout piece_of(const TileLayout *layout) {
    TileLayout piece = *layout;
    for (unsigned a = 0; a < piece.rank; a++) piece.pieces[a] = 1;
    return piece;
}

/* How a tile is converted through shared memory. */
typedef struct Route {
    TileSharedLayout shared;
    TileSharedMatrices matrices;
    bool stores_matrices, loads_matrices; /* one of them at most */
} Route;

/* By matrices (stmatrix, ldmatrix) if possible: as few instructions as vectors of 16 bytes on both sides, whichever
 * registers the two layouts share. */
static Route choose_route(const Gpu *gpu, TileScalar scalar, const TileLayout *from, const TileLayout *to) {
    unsigned bytes = tile_scalar_bytes(scalar);
    Route route = {.shared = tile_shared_swizzle(from, to, bytes)};
    if (scalar == TILE_BOOL) return route;
    bool has_copies = from->map.inputs != from->map.outputs;
    if (gpu->context->target && gpu->context->target->has_stmatrix && !has_copies)
        route.stores_matrices = tile_shared_matrices(from, to, bytes, &route.matrices);
    if (!route.stores_matrices) route.loads_matrices = tile_shared_matrices(to, from, bytes, &route.matrices);
    if (route.stores_matrices || route.loads_matrices) route.shared = route.matrices.shared;
    return route;
}

/* Do matrices carry each piece of both layouts through shared memory? */
static bool is_by_matrices(const Gpu *gpu, TileScalar scalar, const TileLayout *from, const TileLayout *to) {
    if (!have_same_pieces(from, to)) return false;
    TileLayout one = piece_of(from), other = piece_of(to);
    Route route = choose_route(gpu, scalar, &one, &other);
    return route.stores_matrices || route.loads_matrices;
}

static TileValue *move_swizzled(Gpu *gpu, TileValue *value, TileScalar scalar, const TileLayout *from,
                                const TileLayout *to) {
    Route route = choose_route(gpu, scalar, from, to);
    const TileSharedLayout *shared = &route.shared;
    const TileSharedMatrices *matrices = &route.matrices;
    uint64_t bytes = (UINT64_C(1) << from->map.outputs) * tile_scalar_bytes(scalar);
    GpuMove move = {.scalar = scalar, .from = from, .to = to, .way = "shared memory", .bytes = bytes};
    if (route.stores_matrices) move.way = "shared memory, stored by stmatrix";
    if (route.loads_matrices) move.way = "shared memory, loaded by ldmatrix";
    move.store_conflicts = tile_shared_conflicts(shared, route.stores_matrices ? &matrices->rows : from);
    move.load_conflicts = tile_shared_conflicts(shared, route.loads_matrices ? &matrices->rows : to);
    gpu_remark_move(gpu, &move);
    gpu_open_shared(gpu, bytes, GPU_VECTOR_ALIGN);
    if (route.stores_matrices) {
        store_matrices(gpu, matrices, value);
    } else {
        Swizzled write = swizzled_side(gpu, shared, from, scalar != TILE_BOOL);
        store_swizzled(&write, value);
    }
    if (route.loads_matrices) return load_matrices(gpu, matrices, scalar, to);
    Swizzled read = swizzled_side(gpu, shared, to, scalar != TILE_BOOL);
    return load_swizzled(&read, scalar);
}

/* Piece by piece, each through shared memory of its own. */
static TileValue *move_pieces(Gpu *gpu, TileValue *value, TileScalar scalar, const TileLayout *from,
                              const TileLayout *to) {
    uint32_t pieces = count_pieces(from);
    if (pieces == 1) return move_swizzled(gpu, value, scalar, from, to);
    TileLayout one = piece_of(from), other = piece_of(to);
    uint32_t count = tile_layout_registers(&one), moved = tile_layout_registers(&other);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, (size_t)pieces * (count > moved ? count : moved)),
              **own = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t i = 0; i < pieces; i++) {
        for (uint32_t r = 0; r < count; r++) own[r] = gpu_register(gpu, value, i * count + r);
        TileValue *piece = move_swizzled(gpu, gpu_join(gpu, own, count), scalar, &one, &other);
        for (uint32_t r = 0; r < moved; r++) registers[i * moved + r] = gpu_register(gpu, piece, r);
    }
    return gpu_join(gpu, registers, pieces * moved);
}

/* Do elements come from registers of the same thread, or from lanes of the same warp at one exclusive or for all
 * lanes? `source` maps lanes to an exclusive or of the lane's own number. */
static bool is_exchange(const TileLayout *from, const TileLayout *to, const TileLinear *source) {
    unsigned a = tile_layout_first_bit(from, TILE_LAYOUT_LANE), b = tile_layout_first_bit(to, TILE_LAYOUT_LANE);
    for (unsigned i = b; i < to->map.inputs; i++)
        if (source->column[i] != UINT32_C(1) << (i - b + a)) return false;
    return true;
}

static uint32_t piece_registers(const TileLayout *layout) { return 1u << layout->bits[TILE_LAYOUT_REGISTER]; }

static TileValue *pick_registers(Gpu *gpu, TileValue *value, const TileLayout *from, const TileLayout *to,
                                 const TileLinear *source) {
    uint32_t count = tile_layout_registers(to), mask = piece_registers(from) - 1;
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t piece = r / piece_registers(to), at = tile_linear_apply(source, r % piece_registers(to));
        registers[r] = gpu_register(gpu, value, piece * piece_registers(from) + (at & mask));
        uint32_t lanes = at >> from->bits[TILE_LAYOUT_REGISTER];
        if (lanes) registers[r] = gpu_exchange(gpu, registers[r], lanes);
    }
    return gpu_join(gpu, registers, count);
}

bool gpu_stays_in_warp(const TileLayout *from, const TileLayout *to, TileLinear *source) {
    switch (tile_layout_conversion(from, to, source)) {
    case TILE_CONVERSION_NONE: return true;
    case TILE_CONVERSION_REGISTERS:
    case TILE_CONVERSION_SHUFFLES: return is_exchange(from, to, source);
    case TILE_CONVERSION_SHARED: break;
    }
    return false;
}

TileValue *gpu_flip_in_warp(Gpu *gpu, TileValue *value, const TileType *type, unsigned axis) {
    const TileLayout *layout = type->layout;
    if (layout->pieces[axis] != 1 || tile_layout_extent(layout, axis) != type->extent[axis]) return NULL;
    TileLinear flipped = tile_linear_zero(1, layout->map.outputs), place;
    flipped.column[0] = ((1u << layout->log_extent[axis]) - 1) << tile_layout_axis_bit(layout, axis);
    if (!tile_linear_divide(&layout->map, &flipped, &place)) return NULL;
    uint32_t mask = place.column[0], own = mask & (piece_registers(layout) - 1), threads = mask >> layout->bits[TILE_LAYOUT_REGISTER];
    if (threads >= TILE_LANES) return NULL;
    uint32_t count = tile_layout_registers(layout);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++) {
        registers[r] = gpu_register(gpu, value, r ^ own);
        if (threads) registers[r] = gpu_exchange(gpu, registers[r], threads);
    }
    return gpu_join(gpu, registers, count);
}

TileValue *gpu_move(Gpu *gpu, TileValue *value, const TileType *type, const TileLayout *from, const TileLayout *to) {
    TileScalar scalar = type->scalar;
    TileLinear source;
    if (tile_layout_equal(from, to)) return value;
    if (gpu_stays_in_warp(from, to, &source)) {
        bool lanes = tile_layout_conversion(from, to, &source) == TILE_CONVERSION_SHUFFLES;
        const char *way = lanes ? "exchanges between lanes" : "other registers";
        gpu_remark_move(gpu, &(GpuMove){.scalar = scalar, .from = from, .to = to, .way = way});
        return pick_registers(gpu, value, from, to, &source);
    }
    TileValue *shuffled = gpu_shuffle(gpu, value, from, to);
    if (shuffled) {
        gpu_remark_move(gpu, &(GpuMove){.scalar = scalar, .from = from, .to = to, .way = "exchanges between lanes"});
        return shuffled;
    }
    TileValue *exchanged = is_by_matrices(gpu, scalar, from, to) ? NULL : gpu_exchange_words(gpu, value, from, to);
    if (!exchanged) exchanged = gpu_swap_words(gpu, value, from, to);
    if (exchanged) {
        gpu_remark_move(gpu, &(GpuMove){.scalar = scalar, .from = from, .to = to, .way = "exchanges of words between lanes"});
        return exchanged;
    }
    if (have_same_pieces(from, to)) return move_pieces(gpu, value, scalar, from, to);
    /* Only the tile's own elements are converted: the padding of one layout is not that of another. */
    TileLayoutShape shape = tile_layout_shape(type);
    GpuStrides strides = gpu_row_major(&shape, tile_scalar_bytes(scalar));
    TileSharedLayout row_major = tile_shared_linear(from, tile_scalar_bytes(scalar));
    GpuMove move = {.scalar = scalar, .from = from, .to = to, .way = "shared memory"};
    move.bytes = (uint64_t)tile_type_lanes(type) * tile_scalar_bytes(scalar);
    move.store_conflicts = tile_shared_conflicts(&row_major, from);
    move.load_conflicts = tile_shared_conflicts(&row_major, to);
    gpu_remark_move(gpu, &move);
    return gpu_move_through_shared(gpu, value, scalar, from, &strides, to, &strides, tile_type_lanes(type));
}
