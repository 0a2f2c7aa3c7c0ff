/* Transfers of values between threads: by exchanges between the lanes of a warp, or through shared memory; and branches of
 * some threads. */
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"

/* ---- branches of some threads ---- */

TileOp *gpu_begin_branch(Gpu *gpu, TileValue *condition, TileBuilder *outer) {
    TileOp *branch = tile_build_if(&gpu->b, condition, NULL, 0);
    *outer = gpu->b;
    gpu->b.block = &branch->regions[0];
    gpu->b.before = NULL;
    tile_op_set_integer(gpu->module, branch, TILE_ATTRIBUTE_DIVERGENT, 1);
    return branch;
}

/* `elect` tells the back end that one thread executes the branch: without it each copy by a tensor map is a loop over the lanes that have
 * other operands, which are kept in registers of the lanes. */
TileOp *gpu_begin_thread(Gpu *gpu, int64_t first, TileBuilder *outer) {
    TileValue *warp = gpu_binary(gpu, TILE_OP_SHR, gpu->thread, gpu_i64(gpu, TILE_LANE_BITS));
    TileValue *mine = gpu_binary(gpu, TILE_OP_EQ, warp, gpu_i64(gpu, first / TILE_WARP_THREADS));
    TileValue *elected = tile_op_result(tile_build_op(&gpu->b, TILE_OP_ELECT, NULL, 0, NULL, 0, (const TileType *[]){mine->type}, 1), 0);
    return gpu_begin_branch(gpu, gpu_and(gpu, mine, elected), outer);
}

void gpu_end_branch(Gpu *gpu, TileOp *branch, const TileBuilder *outer) {
    for (unsigned i = 0; i < 2; i++) {
        gpu->b.block = &branch->regions[i];
        gpu->b.before = NULL;
        tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    }
    const char *error = gpu->b.error;
    gpu->b = *outer;
    if (error) gpu->b.error = error;
}

/* ---- lanes ---- */

static TileValue *exchange_word(Gpu *gpu, TileValue *word, TileValue *lanes) {
    TileValue *operands[] = {word, lanes};
    return tile_op_result(tile_build_op(&gpu->b, TILE_OP_EXCHANGE, operands, 2, NULL, 0, NULL, 1), 0);
}

static TileScalar bits_type(unsigned bits) { return bits <= 8 ? TILE_U8 : bits == 16 ? TILE_U16 : TILE_U64; }

/* Words of 32 bits are exchanged; smaller values are widened, larger ones split into two. */
TileValue *gpu_exchange_with(Gpu *gpu, TileValue *value, TileValue *lanes) {
    TileScalar scalar = value->type->scalar;
    unsigned bits = tile_scalar_bits(scalar);
    TileBuilder *b = &gpu->b;
    if (bits == 32) return exchange_word(gpu, value, lanes);
    if (scalar == TILE_BOOL) {
        TileValue *word = exchange_word(gpu, tile_build_convert(b, value, TILE_U32), lanes);
        return tile_build_convert(b, word, TILE_BOOL);
    }
    TileScalar plain = bits_type(bits);
    TileValue *raw = scalar == plain ? value : tile_build_bitcast(b, value, plain);
    if (bits < 32) {
        raw = tile_build_convert(b, exchange_word(gpu, tile_build_convert(b, raw, TILE_U32), lanes), plain);
    } else {
        TileValue *half = tile_build_integer(b, raw->type, 32);
        TileValue *low = exchange_word(gpu, tile_build_convert(b, raw, TILE_U32), lanes),
                  *high = exchange_word(
                      gpu, tile_build_convert(b, tile_build_binary(b, TILE_OP_SHR, raw, half), TILE_U32), lanes);
        low = tile_build_convert(b, low, TILE_U64);
        high = tile_build_binary(b, TILE_OP_SHL, tile_build_convert(b, high, TILE_U64), half);
        raw = tile_build_binary(b, TILE_OP_OR, low, high);
    }
    return scalar == plain ? raw : tile_build_bitcast(b, raw, scalar);
}

TileValue *gpu_exchange(Gpu *gpu, TileValue *value, uint32_t lanes) {
    return gpu_exchange_with(gpu, value, tile_build_integer(&gpu->b, tile_type_scalar(gpu->module->context, TILE_I32), lanes));
}

/* ---- shared memory ---- */

TileValue *gpu_build_own_buffer(Gpu *gpu, int64_t bytes, int64_t align) {
    const TileType *shared = tile_type_pointer(gpu->module->context, TILE_SPACE_SHARED);
    TileValue *buffer = gpu_build_buffer(&gpu->b, shared, bytes, align, 1);
    if (gpu->turns > 1) tile_op_set_integer(gpu->module, buffer->op, TILE_ATTRIBUTE_TURNS, gpu->turns);
    return buffer;
}

void gpu_open_shared(Gpu *gpu, uint64_t bytes, unsigned align) {
    gpu->shared = gpu_build_own_buffer(gpu, (int64_t)bytes, align);
}

GpuStrides gpu_row_major(const TileLayoutShape *shape, unsigned scalar_bytes) {
    GpuStrides strides = {{0}, {0}, 0};
    int64_t bytes = scalar_bytes;
    for (unsigned a = shape->rank; a-- > 0;) {
        strides.bytes[a] = bytes;
        strides.extent[a] = shape->extent[a];
        bytes *= shape->extent[a];
    }
    return strides;
}

TileValue *gpu_shared_address(Gpu *gpu, const TileLayout *layout, const GpuStrides *strides) {
    TileValue *offset = NULL;
    for (unsigned a = 0; a < layout->rank; a++) {
        if (!strides->bytes[a] || tile_layout_extent(layout, a) == 1) continue;
        TileValue *part =
            gpu_binary(gpu, TILE_OP_MUL, gpu_thread_index(gpu, layout, a), gpu_i64(gpu, strides->bytes[a]));
        offset = offset ? gpu_binary(gpu, TILE_OP_ADD, offset, part) : part;
    }
    return offset ? tile_build_ptr_add(&gpu->b, gpu->shared, offset) : gpu->shared;
}

int64_t gpu_shared_register_offset(const TileLayout *layout, const GpuStrides *strides, uint32_t reg) {
    int64_t offset = strides->offset;
    for (unsigned a = 0; a < layout->rank; a++) offset += gpu_register_index(layout, a, reg) * strides->bytes[a];
    return offset;
}

static TileValue *register_address(Gpu *gpu, TileValue *base, int64_t offset) {
    return offset ? tile_build_ptr_add(&gpu->b, base, gpu_i64(gpu, offset)) : base;
}

/* Elements of padding, where an extent was rounded up, are not stored; loads of them are masked. NULL: the register
 * has no padding. */
static TileValue *is_inside(Gpu *gpu, const TileLayout *layout, const GpuStrides *strides, uint32_t reg) {
    TileValue *inside = NULL;
    for (unsigned a = 0; a < layout->rank; a++) {
        if (tile_layout_extent(layout, a) <= strides->extent[a]) continue;
        TileValue *index = gpu_binary(gpu, TILE_OP_ADD, gpu_thread_index(gpu, layout, a),
                                      gpu_i64(gpu, gpu_register_index(layout, a, reg)));
        inside = gpu_and(gpu, inside, gpu_binary(gpu, TILE_OP_LT, index, gpu_i64(gpu, strides->extent[a])));
    }
    return inside;
}

/* Registers that follow one another from the first on and are neighbours in shared memory, aligned to their number, all of them inside or none. */
static unsigned vector_of(const TileLayout *layout, const GpuStrides *strides, TileScalar scalar, bool masked) {
    unsigned last = layout->rank - 1u, bytes = tile_scalar_bytes(scalar), vector = 1;
    if (scalar == TILE_BOOL || strides->bytes[last] != bytes) return 1;
    for (unsigned a = 0; a < layout->rank; a++) masked |= tile_layout_extent(layout, a) > strides->extent[a];
    int64_t multiple = strides->offset | (masked ? GPU_VECTOR_ALIGN / 2 : GPU_VECTOR_ALIGN); /* the widest with a predicate, and without */
    for (unsigned a = 0; a < last; a++) multiple |= strides->bytes[a];
    if (tile_layout_extent(layout, last) > strides->extent[last]) multiple |= strides->extent[last] * bytes;
    while (vector * 2 * bytes <= GPU_VECTOR_ALIGN && multiple % (vector * 2 * bytes) == 0) vector *= 2;
    return tile_layout_vector(layout, last, vector);
}

/* One mask for all lanes of a vector. */
static TileValue *for_lanes(Gpu *gpu, TileValue *mask, unsigned lanes) {
    if (!mask || lanes == 1) return mask;
    return tile_build_splat(&gpu->b, mask, tile_type_vector(gpu->module->context, TILE_BOOL, lanes, false));
}

void gpu_write_shared(Gpu *gpu, TileValue *value, const TileLayout *layout, const GpuStrides *strides) {
    TileValue *base = gpu_shared_address(gpu, layout, strides), *first = gpu_holds_first_copy(gpu, layout), *elements[GPU_VECTOR_ALIGN];
    TileScalar scalar = value->type->scalar;
    unsigned vector = vector_of(layout, strides, scalar, first != NULL);
    for (uint32_t r = 0; r < tile_layout_registers(layout); r += vector) {
        TileValue *mask = for_lanes(gpu, gpu_and(gpu, first, is_inside(gpu, layout, strides, r)), vector);
        TileValue *address = register_address(gpu, base, gpu_shared_register_offset(layout, strides, r));
        for (uint32_t i = 0; i < vector; i++) elements[i] = gpu_register(gpu, value, r + i);
        tile_build_store(&gpu->b, gpu_join(gpu, elements, vector), address, mask, vector > 1 ? vector * tile_scalar_bytes(scalar) : 0);
    }
}

TileValue *gpu_read_shared(Gpu *gpu, TileScalar scalar, const TileLayout *layout, const GpuStrides *strides) {
    uint32_t count = tile_layout_registers(layout);
    unsigned vector = vector_of(layout, strides, scalar, false);
    const TileType *type = vector > 1 ? tile_type_vector(gpu->module->context, scalar, vector, false) : tile_type_scalar(gpu->module->context, scalar);
    TileValue *base = gpu_shared_address(gpu, layout, strides), *zero = tile_build_bits(&gpu->b, type, 0);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r += vector) {
        TileValue *mask = for_lanes(gpu, is_inside(gpu, layout, strides, r), vector);
        TileValue *address = register_address(gpu, base, gpu_shared_register_offset(layout, strides, r));
        TileValue *loaded = tile_build_load(&gpu->b, type, address, mask, mask ? zero : NULL, vector > 1 ? vector * tile_scalar_bytes(scalar) : 0);
        for (uint32_t i = 0; i < vector; i++) registers[r + i] = vector > 1 ? gpu_register(gpu, loaded, i) : loaded;
    }
    return gpu_join(gpu, registers, count);
}

TileValue *gpu_move_through_shared(Gpu *gpu, TileValue *value, TileScalar scalar, const TileLayout *from,
                                   const GpuStrides *write, const TileLayout *to, const GpuStrides *read,
                                   int64_t elements) {
    gpu_open_shared(gpu, (uint64_t)elements * tile_scalar_bytes(scalar), GPU_VECTOR_ALIGN);
    gpu_write_shared(gpu, value, from, write);
    return gpu_read_shared(gpu, scalar, to, read);
}

TileValue *gpu_share_scalar(Gpu *gpu, TileValue *scalar, TileValue *has) {
    gpu_open_shared(gpu, tile_scalar_bytes(scalar->type->scalar), GPU_VECTOR_ALIGN);
    tile_build_store(&gpu->b, scalar, gpu->shared, has, 0);
    return tile_build_load(&gpu->b, scalar->type, gpu->shared, NULL, NULL, 0);
}
