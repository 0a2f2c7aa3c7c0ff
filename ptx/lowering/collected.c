/* Atomic updates that a block combines in shared memory (gpu-collect): those of all its programs, with a buffer in front of
 * the loop over programs, the updates in it, and those of the tensor behind it; or those of one tile. */
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "ptx/lowering/access.h"
#include "ptx/pipeline/copies.h"

typedef struct GpuCollected {
    TileValue *buffer, *limit; /* of elements; 0: the block does not collect */
} GpuCollected;

static void find_updates(const TileBlock *block, TileArena *arena, GpuUpdates *updates) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_ATOMIC_TILE && tile_op_get(op, TILE_ATTRIBUTE_COLLECTED)) tile_list_push(arena, updates, op);
        for (unsigned i = 0; i < op->region_count; i++) find_updates(&op->regions[i], arena, updates);
    }
}

static const TileType *element_type(Gpu *gpu, const TileOp *update) {
    return tile_type_scalar(gpu->module->context, update->results[0].type->scalar);
}

/* What changes no element, by its bits: of sums of floats that is -0, for 0 + -0 is 0. */
static uint64_t identity_of(const TileOp *update) {
    TileName name = (TileName)tile_op_integer(update, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD);
    if (update->results[0].type->scalar == TILE_F32) return 0x80000000;
    TileName kind = name == TILE_UPDATE_MIN ? TILE_KIND_MIN : name == TILE_UPDATE_MAX ? TILE_KIND_MAX : TILE_KIND_SUM;
    return tile_eval_identity(kind, update->results[0].type->scalar);
}

/* So many elements has the tensor, where that is at most the room; a greater number where it is not, and where the product of its
 * extents wraps. */
static TileValue *count_elements(Gpu *gpu, const GpuTensor *tensor, unsigned rank, int64_t room) {
    TileValue *beyond = gpu_i64(gpu, room + 1), *elements = tensor->extent[0];
    for (unsigned d = 1; d < rank; d++) {
        TileValue *extent = gpu_binary(gpu, TILE_OP_MIN, tensor->extent[d], beyond);
        elements = gpu_binary(gpu, TILE_OP_MUL, gpu_binary(gpu, TILE_OP_MIN, elements, beyond), extent);
    }
    return elements;
}

/* The elements, if there is room for them and the block's programs have twice as many updates; else 0. */
static TileValue *choose_limit(Gpu *gpu, const TileOp *loop, const TileOp *update) {
    const GpuTensor *tensor = tile_map_get(&gpu->tensors, tile_op_operand(update, 0));
    int64_t room = tile_op_integer(update, TILE_ATTRIBUTE_COLLECTED, 0), lanes = tile_type_lanes(update->results[0].type);
    TileValue *lo = gpu_value(gpu, tile_op_named(loop, TILE_OPERAND_LO)),
              *hi = gpu_value(gpu, tile_op_named(loop, TILE_OPERAND_HI)),
              *step = gpu_value(gpu, tile_op_named(loop, TILE_OPERAND_STEP)),
              *elements = count_elements(gpu, tensor, tile_op_operand(update, 0)->type->rank, room);
    TileValue *fits = gpu_binary(gpu, TILE_OP_LE, elements, gpu_i64(gpu, room));
    TileValue *updates = gpu_binary(gpu, TILE_OP_MUL, gpu_binary(gpu, TILE_OP_SUB, hi, lo), gpu_i64(gpu, lanes));
    TileValue *least = gpu_binary(gpu, TILE_OP_MUL, gpu_binary(gpu, TILE_OP_MUL, step, elements), gpu_i64(gpu, 2));
    TileValue *pays = gpu_and(gpu, fits, gpu_binary(gpu, TILE_OP_GE, updates, least));
    return tile_build_ternary(&gpu->b, TILE_OP_SELECT, pays, elements, gpu_i64(gpu, 0));
}

/* A loop in which each thread has every so manyth element below the limit; goes on building in it. */
static TileValue *enter_elements(Gpu *gpu, TileValue *limit) {
    TileOp *loop = tile_build_for(&gpu->b, gpu->thread, limit, gpu_i64(gpu, gpu->func->threads), NULL, 0);
    tile_op_set_integer(gpu->module, loop, TILE_ATTRIBUTE_DIVERGENT, 1);
    gpu_enter(gpu, &loop->regions[0]);
    return loop->regions[0].arguments[0];
}

static TileValue *element_address(Gpu *gpu, const TileOp *update, const GpuCollected *collected, TileValue *index) {
    int64_t bytes = tile_scalar_bytes(update->results[0].type->scalar);
    return tile_build_ptr_add(&gpu->b, collected->buffer, gpu_binary(gpu, TILE_OP_MUL, index, gpu_i64(gpu, bytes)));
}

/* A buffer of so many elements, of which those below the limit change nothing yet. */
static GpuCollected begin(Gpu *gpu, const TileOp *update, int64_t elements, TileValue *limit) {
    GpuCollected own = {.limit = limit}, *collected = &own;
    int64_t bytes = elements * tile_scalar_bytes(update->results[0].type->scalar);
    collected->buffer = gpu_build_buffer(&gpu->b, tile_type_pointer(gpu->module->context, TILE_SPACE_SHARED), bytes,
                                         GPU_VECTOR_ALIGN, 1);
    TileValue *none = tile_build_bits(&gpu->b, element_type(gpu, update), identity_of(update));
    TileBuilder outer = gpu->b;
    TileValue *index = enter_elements(gpu, collected->limit);
    tile_build_store(&gpu->b, none, element_address(gpu, update, collected, index), NULL, 0);
    gpu_end_region(gpu, NULL);
    gpu->b = outer;
    return own;
}

/* Shared memory adds subnormals of f32, what it is written back to may not. */
static void build_update(Gpu *gpu, const TileOp *update, TileValue *address, TileValue *value, TileValue *mask) {
    int64_t part = TILE_PARTS_MASK;
    TileAttribute attributes[3] = {*tile_op_get(update, TILE_ATTRIBUTE_UPDATE)};
    TileValue *operands[] = {address, value, mask};
    unsigned count = 1;
    bool flushes = value->type->scalar == TILE_F32 && address->type->space != TILE_SPACE_SHARED &&
                   tile_ptx_target_of(gpu->context->target)->target.atomic_adds_flush;
    if (flushes) attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_FLUSH, .integer = 1};
    if (mask) attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &part};
    tile_build_op(&gpu->b, TILE_OP_ATOMIC_UPDATE, operands, mask ? 3 : 2, attributes, count, NULL, 0);
}

static TileValue *bits_of(Gpu *gpu, TileValue *value) {
    return value->type->scalar == TILE_F32 ? tile_build_bitcast(&gpu->b, value, TILE_U32) : value;
}

/* The dimensions whose elements are collected, the last one varying fastest, and the address of the first element. */
typedef struct Places {
    TileValue *first, *const *extents, *const *strides;
    unsigned rank;
} Places;

/* The address of the element with this number: its remainder by an extent is its index in that dimension. */
static TileValue *place_of(Gpu *gpu, const Places *places, TileValue *number) {
    TileValue *place = places->first;
    for (unsigned d = places->rank; d-- > 0;) {
        TileValue *index = d ? gpu_binary(gpu, TILE_OP_REM, number, places->extents[d]) : number;
        place = tile_build_ptr_add(&gpu->b, place, gpu_binary(gpu, TILE_OP_MUL, index, places->strides[d]));
        if (d) number = gpu_binary(gpu, TILE_OP_DIV, number, places->extents[d]);
    }
    return place;
}

/* Updates the tensor. */
static void end(Gpu *gpu, const TileOp *update, const GpuCollected *collected, const Places *places) {
    TileValue *none = tile_build_bits(&gpu->b, element_type(gpu, update), identity_of(update));
    TileBuilder outer = gpu->b;
    TileValue *index = enter_elements(gpu, collected->limit);
    TileValue *value = tile_build_load(&gpu->b, element_type(gpu, update),
                                       element_address(gpu, update, collected, index), NULL, NULL, 0);
    TileValue *place = place_of(gpu, places, index);
    build_update(gpu, update, place, value, gpu_binary(gpu, TILE_OP_NE, bits_of(gpu, value), bits_of(gpu, none)));
    gpu_end_region(gpu, NULL);
    gpu->b = outer;
}

static void begin_in_front(Gpu *gpu, const TileOp *loop, const TileOp *update) {
    GpuCollected *collected = TILE_NEW(gpu->arena, GpuCollected);
    int64_t room = tile_op_integer(update, TILE_ATTRIBUTE_COLLECTED, 0);
    *collected = begin(gpu, update, room, choose_limit(gpu, loop, update));
    tile_map_set(&gpu->collected, update, collected);
}

static void end_behind(Gpu *gpu, const TileOp *update) {
    const GpuTensor *tensor = tile_map_get(&gpu->tensors, tile_op_operand(update, 0));
    Places places = {tensor->pointer, tensor->extent, tensor->stride, tile_op_operand(update, 0)->type->rank};
    end(gpu, update, tile_map_get(&gpu->collected, update), &places);
}

GpuUpdates gpu_begin_collecting(Gpu *gpu, const TileOp *loop) {
    GpuUpdates updates = {0};
    if (loop->id != TILE_OP_FOR || !tile_op_get(loop, TILE_ATTRIBUTE_RESIDENT)) return updates;
    find_updates(&loop->regions[0], gpu->arena, &updates);
    for (size_t i = 0; i < updates.count; i++) begin_in_front(gpu, loop, updates.items[i]);
    if (updates.count) gpu_build_plain(&gpu->b, TILE_OP_BARRIER);
    return updates;
}

void gpu_end_collecting(Gpu *gpu, const GpuUpdates *updates) {
    if (updates->count) gpu_build_plain(&gpu->b, TILE_OP_BARRIER);
    for (size_t i = 0; i < updates->count; i++) end_behind(gpu, updates->items[i]);
}

TileValue *gpu_is_collected(Gpu *gpu, const TileOp *update) {
    const GpuCollected *collected = tile_map_get(&gpu->collected, update);
    return collected ? gpu_binary(gpu, TILE_OP_GT, collected->limit, gpu_i64(gpu, 0)) : NULL;
}

/* The number of a register's element among those of the dimensions that index tiles choose in. */
static TileValue *number_of(Gpu *gpu, const GpuAccess *access, uint32_t reg) {
    TileValue *number = NULL;
    for (unsigned d = 0; d < access->rank; d++) {
        if (!access->dimensions[d].gather) continue;
        TileValue *index = gpu_register(gpu, access->dimensions[d].gather, reg);
        number = number ? gpu_binary(gpu, TILE_OP_ADD, gpu_binary(gpu, TILE_OP_MUL, number, access->tensor->extent[d]), index) : index;
    }
    return number;
}

static void update_elements(Gpu *gpu, const GpuAccess *access, const GpuCollected *collected, TileValue *value,
                            TileValue *first) {
    for (uint32_t r = 0; r < tile_layout_registers(&access->layout); r++) {
        TileValue *index = number_of(gpu, access, r);
        TileValue *mask = gpu_and(gpu, first, gpu_access_mask(gpu, access, r));
        build_update(gpu, access->op, element_address(gpu, access->op, collected, index), gpu_register(gpu, value, r), mask);
    }
}

void gpu_update_collected(Gpu *gpu, const GpuAccess *access, TileValue *value, TileValue *first) {
    update_elements(gpu, access, tile_map_get(&gpu->collected, access->op), value, first);
}

/* A thread clears and adds up the same elements, so that the next tile of updates needs no barrier in front of it. */
void gpu_update_in_shared(Gpu *gpu, const GpuAccess *access, TileValue *value, TileValue *first) {
    int64_t elements = tile_op_integer(access->op, TILE_ATTRIBUTE_IN_SHARED, 0);
    GpuCollected collected = begin(gpu, access->op, elements, gpu_i64(gpu, elements));
    gpu_build_plain(&gpu->b, TILE_OP_BARRIER);
    update_elements(gpu, access, &collected, value, first);
    gpu_build_plain(&gpu->b, TILE_OP_BARRIER);
    TileValue *stride = access->dimensions[access->rank - 1].stride;
    Places places = {access->base, NULL, &stride, 1};
    end(gpu, access->op, &collected, &places);
}
