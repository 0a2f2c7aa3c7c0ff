/* Lowering of atomic_tile. Of the threads that hold an element one updates it. Where nobody asks for the old values, and
 * the target has an instruction that gives none (`atomic_update`), neighbouring floats of a thread are updated as
 * vectors: if all lanes are valid and the elements contiguous, which one test decides for the whole block, as for
 * stores; otherwise each element has a predicate. */
#include "lang/ir/operands.h"
#include "ptx/lowering/access.h"

/* ---- updates that give the old values ---- */

static TileValue *update_element(Gpu *gpu, const GpuAccess *access, TileValue *const *parts, unsigned count,
                                 TileValue *address, TileValue *mask) {
    int64_t part = TILE_PARTS_MASK;
    TileAttribute attributes[] = {*tile_op_get(access->op, TILE_ATTRIBUTE_UPDATE),
                                  {.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &part}};
    TileValue *operands[4] = {address};
    unsigned operand_count = 1;
    for (unsigned i = 0; i < count; i++) operands[operand_count++] = parts[i];
    if (mask) operands[operand_count++] = mask;
    const TileType *type = tile_type_scalar(gpu->module->context, access->type->scalar);
    return tile_op_result(
        tile_build_op(&gpu->b, TILE_OP_ATOMIC, operands, operand_count, attributes, mask ? 2 : 1, &type, 1), 0);
}

/* One of the threads that hold an element updates it, and passes the old value to the others. */
static TileValue *update_tile(Gpu *gpu, const GpuAccess *access, TileValue *const *parts, unsigned count) {
    const TileLayout *layout = &access->layout;
    TileValue *first = gpu_holds_first_copy(gpu, layout);
    uint32_t registers = tile_layout_registers(layout);
    TileValue **old = TILE_NEW_ARRAY(gpu->arena, TileValue *, registers);
    for (uint32_t r = 0; r < registers; r++) {
        TileValue *own[2];
        for (unsigned i = 0; i < count; i++) own[i] = gpu_register(gpu, parts[i], r);
        TileValue *mask = gpu_and(gpu, first, gpu_access_mask(gpu, access, r));
        old[r] = update_element(gpu, access, own, count, gpu_access_address(gpu, access, r), mask);
    }
    TileValue *value = gpu_join(gpu, old, registers);
    if (!first || !access->op->results[0].first_use) return value;
    TileLayoutShape shape = tile_layout_shape(access->type);
    GpuStrides strides = gpu_row_major(&shape, tile_scalar_bytes(access->type->scalar));
    return gpu_move_through_shared(gpu, value, access->type->scalar, layout, &strides, layout, &strides,
                                   tile_type_lanes(access->type));
}

/* ---- updates that give nothing ---- */

typedef struct Update {
    TileName name; /* TILE_UPDATE_* */
    unsigned most; /* elements of one instruction; 0: there is none */
    bool flushes;
    TileValue *value, *first;
} Update;

static Update choose_update(const Gpu *gpu, const TileOp *op) {
    Update update = {.name = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD)};
    const TilePtxTarget *target = tile_ptx_target_of(gpu->context->target);
    TileScalar scalar = op->results[0].type->scalar;
    unsigned bytes = tile_scalar_bytes(scalar);
    if (op->results[0].first_use || update.name == TILE_UPDATE_CAS) return update;
    if (!tile_scalar_is_float(scalar)) {
        update.most = bytes >= sizeof(uint32_t);
    } else if (update.name == TILE_UPDATE_ADD && (target->target.atomic_adds >> scalar & 1)) {
        bool pairs = scalar != TILE_F64 && target->update_bytes > bytes;
        update.most = pairs ? target->update_bytes / bytes : 1;
        update.flushes = scalar == TILE_F32 && target->target.atomic_adds_flush;
    }
    return update;
}

static void build_update(Gpu *gpu, const Update *update, TileValue *value, TileValue *address, TileValue *mask) {
    int64_t part = TILE_PARTS_MASK;
    TileAttribute attributes[4] = {{.key = TILE_ATTRIBUTE_UPDATE, .integer = update->name}};
    TileValue *operands[] = {address, value, mask};
    unsigned count = 1;
    const TileType *type = value->type;
    if (type->kind == TILE_TYPE_VECTOR)
        attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_ALIGN,
                                              .integer = type->extent[0] * tile_scalar_bytes(type->scalar)};
    if (update->flushes) attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_FLUSH, .integer = 1};
    if (mask) attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &part};
    tile_build_op(&gpu->b, TILE_OP_ATOMIC_UPDATE, operands, mask ? 3 : 2, attributes, count, NULL, 0);
}

typedef TileValue *(*MaskOf)(Gpu *gpu, const GpuAccess *access, uint32_t reg);

/* Vectors of `width` elements, whose lanes have one mask. */
static void update_registers(Gpu *gpu, const Update *update, const GpuAccess *access, unsigned width, MaskOf mask_of) {
    for (uint32_t r = 0; r < tile_layout_registers(&access->layout); r += width) {
        TileValue *elements[sizeof(uint64_t)];
        for (unsigned i = 0; i < width; i++) elements[i] = gpu_register(gpu, update->value, r + i);
        TileValue *mask = gpu_and(gpu, update->first, mask_of(gpu, access, r));
        build_update(gpu, update, gpu_join(gpu, elements, width), gpu_access_address(gpu, access, r), mask);
    }
}

/* So many neighbours of a thread are valid together, and updated by one instruction where they are contiguous. */
static unsigned choose_width(const Update *update, GpuAccess *access) {
    if (!gpu_is_picked_by_lines(access)) return 1;
    unsigned width = tile_layout_vector(&access->layout, access->type->rank - 1u, update->most);
    return gpu_aligned_width(access, width);
}

static void update_unasked(Gpu *gpu, const Update *update, GpuAccess *access) {
    unsigned width = choose_width(update, access);
    bool scattered = gpu_is_scattered(access);
    TileValue *whole = gpu_is_inside(gpu, access);
    if (!scattered) whole = gpu_and(gpu, whole, gpu_is_in_vectors(gpu, access, width));
    const GpuAccess plain = scattered ? *access : gpu_as_dense(gpu, access);
    if (!whole) {
        update_registers(gpu, update, &plain, scattered ? 1 : width, gpu_picked_mask);
        return;
    }
    TileBuilder outer = gpu->b;
    TileOp *choice = tile_build_if(&outer, whole, NULL, 0);
    gpu_enter(gpu, &choice->regions[0]);
    update_registers(gpu, update, &plain, width, gpu_picked_mask);
    gpu_end_region(gpu, NULL);
    gpu_enter(gpu, &choice->regions[1]);
    update_registers(gpu, update, access, 1, gpu_access_mask);
    gpu_end_region(gpu, NULL);
    gpu->b = outer;
}

/* By the block first, if it collects them. */
static void update_somewhere(Gpu *gpu, const Update *update, GpuAccess *access) {
    if (tile_op_get(access->op, TILE_ATTRIBUTE_IN_SHARED)) {
        gpu_update_in_shared(gpu, access, update->value, update->first);
        return;
    }
    TileValue *collects = gpu_is_collected(gpu, access->op);
    if (!collects) {
        update_unasked(gpu, update, access);
        return;
    }
    TileBuilder outer = gpu->b;
    TileOp *choice = tile_build_if(&outer, collects, NULL, 0);
    gpu_enter(gpu, &choice->regions[0]);
    gpu_update_collected(gpu, access, update->value, update->first);
    gpu_end_region(gpu, NULL);
    gpu_enter(gpu, &choice->regions[1]);
    update_unasked(gpu, update, access);
    gpu_end_region(gpu, NULL);
    gpu->b = outer;
}

/* ---- both ---- */

static void lower_scalar(Gpu *gpu, const Update *update, const GpuAccess *access, TileValue *const *parts,
                         unsigned count) {
    const TileValue *result = &access->op->results[0];
    TileValue *first = gpu_binary(gpu, TILE_OP_EQ, gpu->thread, gpu_i64(gpu, 0));
    TileValue *mask = gpu_and(gpu, first, access->mask);
    if (update->most) {
        build_update(gpu, update, parts[0], access->base, mask);
        return;
    }
    TileValue *value = update_element(gpu, access, parts, count, access->base, mask);
    if (result->first_use) value = gpu_share_scalar(gpu, value, first);
    tile_map_set(&gpu->values, result, value);
}

void gpu_lower_atomic(Gpu *gpu, TileOp *op) {
    GpuAccess access;
    unsigned count = tile_access_first(op) - 1; /* the value, and for cas the expected one */
    gpu_read_access(gpu, op, op->results[0].type, NULL, &access);
    TileValue *parts[2];
    for (unsigned i = 0; i < count; i++) parts[i] = gpu_value(gpu, tile_op_operand(op, i + 1));
    Update update = choose_update(gpu, op);
    if (!tile_type_is_tile(access.type)) {
        lower_scalar(gpu, &update, &access, parts, count);
    } else if (update.most) {
        update.value = parts[0];
        update.first = gpu_holds_first_copy(gpu, &access.layout);
        update_somewhere(gpu, &update, &access);
    } else {
        tile_map_set(&gpu->values, &op->results[0], update_tile(gpu, &access, parts, count));
    }
}
