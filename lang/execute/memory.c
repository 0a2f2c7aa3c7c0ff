/* Memory objects, and the accesses of machine form: addresses are checked against the object that they were derived
 * from. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

/* ---- objects ---- */

bool tile_exec_add_object(TileExecutor *e, const ExecObject *object, uint32_t *number) {
    ExecObject *objects = tile_exec_grow(e->objects, e->object_count, &e->object_capacity, sizeof *objects);
    if (!objects) return tile_exec_out_of_memory(e);
    e->objects = objects;
    *number = (uint32_t)e->object_count;
    objects[e->object_count++] = *object;
    return true;
}

bool tile_exec_add_tensor(TileExecutor *e, const ExecTensor *tensor, uint32_t *number) {
    ExecTensor *tensors = tile_exec_grow(e->tensors, e->tensor_count, &e->tensor_capacity, sizeof *tensors);
    if (!tensors) return tile_exec_out_of_memory(e);
    e->tensors = tensors;
    *number = (uint32_t)e->tensor_count;
    tensors[e->tensor_count++] = *tensor;
    return true;
}

/* The bytes and their poison are one allocation; uninitialised bytes are all ones. */
bool tile_exec_allocate(TileExecutor *e, uint64_t size, uint64_t align, bool keeps_poison, uint32_t *number) {
    if (align < 64) align = 64;
    uint64_t padded = (size + align - 1) / align * align + align;
    if (size > SIZE_MAX / 4 || align > SIZE_MAX / 4) return tile_exec_out_of_memory(e);
    if (!tile_exec_count_bytes(e, padded + align + size)) return false;
    unsigned char *block = malloc(padded + align + size);
    if (!block) return tile_exec_out_of_memory(e);
    unsigned char *base = block + (align - (uintptr_t)block % align) % align;
    memset(base, 0xff, size);
    uint8_t *poison = base + padded;
    memset(poison, 1, size);
    ExecObject object = {.base = base,
                         .size = (int64_t)size,
                         .poison = e->options.no_poison ? NULL : poison,
                         .writable = true,
                         .keeps_poison = keeps_poison,
                         .owned = block,
                         .owned_bytes = padded + align + size};
    if (tile_exec_add_object(e, &object, number)) return true;
    free(block);
    return false;
}

/* The numbers of freed objects are not reused, so that dangling pointers are detected. */
void tile_exec_release(TileExecutor *e, size_t first_object) {
    for (size_t i = first_object; i < e->object_count; i++) {
        free(e->objects[i].owned);
        e->bytes -= e->objects[i].owned_bytes;
        e->objects[i] = (ExecObject){.dead = true};
    }
}

/* ---- elements ---- */

ExecObject *tile_exec_reach(TileExecutor *e, const ExecInstruction *in, uint64_t number, int64_t offset, int64_t size,
                            bool write) {
    ExecObject *object = number < e->object_count ? &e->objects[number] : NULL;
    if (!object || object->dead) {
        tile_exec_fault(e, in, "accesses memory that is no more");
        return NULL;
    }
    if (offset < 0 || size > object->size || offset > object->size - size) {
        tile_exec_fault(e, in, "accesses bytes %lld .. %lld of a memory object of %lld bytes", (long long)offset,
                        (long long)offset + (long long)size, (long long)object->size);
        return NULL;
    }
    if (write && !object->writable) {
        tile_exec_fault(e, in, "writes to memory that is only read");
        return NULL;
    }
    return object;
}

/* The bit for this load from the temporary. */
static uint8_t undefined_bit(TileExecutor *e, const ExecInstruction *in, const ExecObject *object, int64_t offset) {
    ExecUndefined *undefined = e->undefined;
    unsigned slot = 0;
    while (slot < undefined->count && undefined->loads[slot].load != in->op) slot++;
    if (slot == EXEC_MOST_UNDEFINED) slot--;
    if (slot == undefined->count) {
        undefined->loads[slot].load = in->op;
        undefined->loads[slot].temp = object->temp;
        undefined->loads[slot].extent = object->extent;
        undefined->loads[slot].element = offset / tile_scalar_bytes(object->temp->results[0].type->scalar);
        undefined->count++;
    }
    return (uint8_t)(EXEC_FIRST_UNDEFINED << slot);
}

uint8_t tile_exec_read_poison(TileExecutor *e, const ExecInstruction *in, const ExecObject *object, int64_t offset,
                              int64_t size) {
    uint8_t poison = 0;
    for (int64_t i = 0; object->poison && i < size; i++) {
        if (!object->poison[offset + i]) continue;
        if (object->temp) return undefined_bit(e, in, object, offset + i);
        poison |= object->poison[offset + i];
    }
    return poison;
}

static uint64_t read_bits(const unsigned char *address, TileScalar scalar) {
    uint64_t bits = 0;
    switch (tile_scalar_bytes(scalar)) {
    case 1: bits = *address; break;
    case 2: memcpy(&bits, address, 2); break;
    case 4: memcpy(&bits, address, 4); break;
    default: memcpy(&bits, address, 8); break;
    }
    return scalar == TILE_BOOL ? bits != 0 : bits;
}

static void write_bits(unsigned char *address, TileScalar scalar, uint64_t bits) {
    switch (tile_scalar_bytes(scalar)) {
    case 1: *address = (unsigned char)bits; break;
    case 2: memcpy(address, &bits, 2); break;
    case 4: memcpy(address, &bits, 4); break;
    default: memcpy(address, &bits, 8); break;
    }
}

bool tile_exec_load_element(TileExecutor *e, const ExecInstruction *in, uint64_t number, int64_t offset,
                            TileScalar scalar, uint64_t *bits, uint8_t *poison) {
    int64_t size = tile_scalar_bytes(scalar);
    const ExecObject *object = tile_exec_reach(e, in, number, offset, size, false);
    if (!object || (object->shadow && !tile_exec_share(e, in, number, offset, size, false))) return false;
    *bits = read_bits(object->base + offset, scalar);
    *poison = tile_exec_read_poison(e, in, object, offset, size);
    return true;
}

bool tile_exec_store_element(TileExecutor *e, const ExecInstruction *in, uint64_t number, int64_t offset,
                             TileScalar scalar, uint64_t bits, uint8_t poison) {
    int64_t size = tile_scalar_bytes(scalar);
    ExecObject *object = tile_exec_reach(e, in, number, offset, size, true);
    if (!object) return false;
    if (poison && !object->keeps_poison)
        return tile_exec_poison(e, in, poison, "stores", "stores a lane that is poison");
    if (object->shadow && !tile_exec_share(e, in, number, offset, size, true)) return false;
    write_bits(object->base + offset, scalar, bits);
    if (object->poison) memset(object->poison + offset, poison, (size_t)size);
    return true;
}

/* An f32, 0 of the same sign where it is subnormal. */
static uint64_t flushed(uint64_t bits) {
    enum { EXPONENT = 0x7f800000 };
    return bits & EXPONENT ? bits : bits & UINT64_C(0x80000000);
}

static void set_old(TileExecutor *e, ExecValue result, uint32_t lane, uint64_t old, uint8_t poison) {
    result.lanes[lane] = old;
    if (poison)
        tile_exec_set_poison(e, result, lane, poison);
    else if (*result.any)
        result.poison[lane] = 0;
}

/* The scheduler switches threads and programs only between ops, so this is atomic. */
bool tile_exec_update_element(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset,
                              TileScalar scalar, uint32_t lane, unsigned first) {
    int64_t update = tile_op_integer(in->op, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD);
    uint64_t old, operands[2] = {0};
    uint8_t poison;
    if (!tile_exec_load_element(e, in, object, offset, scalar, &old, &poison)) return false;
    unsigned count = update == TILE_UPDATE_READ ? 0 : update == TILE_UPDATE_CAS ? 2 : 1;
    for (unsigned i = 0; i < count; i++) {
        ExecValue operand = tile_exec_operand(e, in, first + i);
        operands[i] = operand.lanes[lane];
        poison |= tile_exec_poisoned(operand, lane);
    }
    if (poison && count) return tile_exec_poison(e, in, poison, "stores", "updates with a lane that is poison");
    if (in->op->result_count) set_old(e, tile_exec_result(e, in), lane, old, poison);
    bool flush = tile_op_get(in->op, TILE_ATTRIBUTE_FLUSH) != NULL;
    if (flush) operands[0] = flushed(operands[0]);
    uint64_t next = tile_eval_update(update, scalar, flush ? flushed(old) : old, operands[0], operands[1]);
    if (flush) next = flushed(next);
    return !count || tile_exec_store_element(e, in, object, offset, scalar, next, false);
}

/* ---- machine form ---- */

bool tile_exec_ptr_add(TileExecutor *e, const ExecInstruction *in) {
    ExecValue pointer = tile_exec_operand(e, in, 0), bytes = tile_exec_operand(e, in, 1);
    ExecValue result = tile_exec_result(e, in);
    result.lanes[0] = pointer.lanes[0];
    result.lanes[1] = pointer.lanes[1] + bytes.lanes[0];
    *result.any = 0;
    uint8_t poison = tile_exec_poisoned(pointer, 0) | tile_exec_poisoned(bytes, 0);
    if (poison) tile_exec_set_poison(e, result, 0, poison);
    return true;
}

bool tile_exec_is_aligned(TileExecutor *e, const ExecInstruction *in) {
    ExecValue pointer = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    bool known = !tile_exec_poisoned(pointer, 0) && pointer.lanes[0] < e->object_count;
    uintptr_t base = known ? (uintptr_t)e->objects[pointer.lanes[0]].base : 0;
    result.lanes[0] = (base + (uintptr_t)pointer.lanes[1]) % (uintptr_t)in->align == 0;
    *result.any = 0;
    if (!known) tile_exec_set_poison(e, result, 0, *pointer.any ? tile_exec_poisoned(pointer, 0) : EXEC_POISON);
    return true;
}

bool tile_exec_own_object(TileExecutor *e, const ExecInstruction *in, int64_t bytes, int64_t align, uint64_t *number) {
    ExecValue own = tile_exec_value(e, in->hidden);
    if (own.lanes[0] == 0) {
        uint32_t made;
        if (!tile_exec_allocate(e, (uint64_t)bytes, (uint64_t)align, true, &made)) return false;
        own.lanes[0] = made + 1u;
    }
    *number = own.lanes[0] - 1;
    const ExecObject *object = &e->objects[*number];
    if (object->poison) memset(object->poison, 1, (size_t)object->size);
    return true;
}

bool tile_exec_buffer(TileExecutor *e, const ExecInstruction *in) {
    ExecValue result = tile_exec_result(e, in);
    if (e->thread_count && in->op->results[0].type->space == TILE_SPACE_SHARED)
        return tile_exec_fault(e, in, "shared memory has no place before gpu-shared");
    int64_t bytes = tile_op_integer(in->op, TILE_ATTRIBUTE_BYTES, 0);
    if (!tile_exec_own_object(e, in, bytes, in->align, &result.lanes[0])) return false;
    result.lanes[1] = 0;
    *result.any = 0;
    return true;
}

/* The addresses of the lanes of a load, gather, store or scatter. */
typedef struct Lanes {
    ExecValue pointer, offsets, mask, fill;
    bool has_offsets, has_mask, has_fill;
    int64_t bytes; /* of an element */
    TileScalar scalar;
} Lanes;

static Lanes lanes_of(TileExecutor *e, const ExecInstruction *in, unsigned pointer, const TileType *type) {
    Lanes lanes = {.pointer = tile_exec_operand(e, in, pointer), .scalar = type->scalar};
    lanes.bytes = tile_scalar_bytes(type->scalar);
    lanes.has_offsets = in->op->id == TILE_OP_GATHER || in->op->id == TILE_OP_SCATTER;
    lanes.has_mask = in->mask >= 0;
    lanes.has_fill = in->fill >= 0;
    if (lanes.has_mask) tile_exec_count_mask(e, in);
    if (lanes.has_offsets) lanes.offsets = tile_exec_operand(e, in, pointer + 1);
    if (lanes.has_mask) lanes.mask = tile_exec_operand(e, in, (unsigned)in->mask);
    if (lanes.has_fill) lanes.fill = tile_exec_operand(e, in, (unsigned)in->fill);
    return lanes;
}

/* Sets `active` and, for active lanes, `offset` in the pointer's object. */
static inline bool locate(TileExecutor *e, const ExecInstruction *in, const Lanes *lanes, uint32_t lane, bool *active,
                          int64_t *offset) {
    *active = !lanes->has_mask || lanes->mask.lanes[lane];
    uint8_t poison = lanes->has_mask ? tile_exec_poisoned(lanes->mask, lane) : 0;
    if (poison) return tile_exec_poison(e, in, poison, "depends on", "the mask is poison in lane %u", lane);
    if (!*active) return true;
    poison = tile_exec_poisoned(lanes->pointer, 0);
    if (poison) return tile_exec_poison(e, in, poison, "has as an index", "the address is poison");
    poison = lanes->has_offsets ? tile_exec_poisoned(lanes->offsets, lane) : 0;
    if (poison) return tile_exec_poison(e, in, poison, "has as an index", "the address of lane %u is poison", lane);
    *offset = (int64_t)(lanes->pointer.lanes[1] +
                        (lanes->has_offsets ? lanes->offsets.lanes[lane] : (uint64_t)(lane * lanes->bytes)));
    return true;
}

/* Checks the promised alignment for the first lane, or for each lane of a gather. */
static bool check_alignment(TileExecutor *e, const ExecInstruction *in, const Lanes *lanes, uint32_t lane,
                            int64_t offset) {
    if (in->align <= 1 || (lane && !lanes->has_offsets) || lanes->pointer.lanes[0] >= e->object_count) return true;
    uintptr_t address = (uintptr_t)e->objects[lanes->pointer.lanes[0]].base + (uintptr_t)offset;
    if (address % (uintptr_t)in->align == 0) return true;
    return tile_exec_fault(e, in, "the address is not aligned to %lld bytes", (long long)in->align);
}

/* Contiguous lanes, all of them active: one bounds check for all. NULL if they are not, or if it fails, which the check
 * for each lane then reports. */
static ExecObject *reach_all(TileExecutor *e, const ExecInstruction *in, const Lanes *lanes, uint32_t count,
                             bool write) {
    if (lanes->has_mask || lanes->has_offsets || tile_exec_poisoned(lanes->pointer, 0)) return NULL;
    uint64_t number = lanes->pointer.lanes[0];
    int64_t offset = (int64_t)lanes->pointer.lanes[1], size = count * lanes->bytes;
    ExecObject *object = number < e->object_count ? &e->objects[number] : NULL;
    bool inside = object && !object->dead && offset >= 0 && size <= object->size && offset <= object->size - size;
    bool aligned = inside && ((uintptr_t)object->base + (uintptr_t)offset) % (uintptr_t)in->align == 0;
    return aligned && (!write || object->writable) ? object : NULL;
}

static bool load_all(TileExecutor *e, const ExecInstruction *in, const Lanes *lanes, ExecValue result) {
    int64_t offset = (int64_t)lanes->pointer.lanes[1], size = result.count * lanes->bytes;
    const ExecObject *object = reach_all(e, in, lanes, result.count, false);
    if (!object || tile_exec_read_poison(e, in, object, offset, size)) return false;
    if (object->shadow && !tile_exec_share(e, in, lanes->pointer.lanes[0], offset, size, false)) return false;
    for (uint32_t i = 0; i < result.count; i++)
        result.lanes[i] = read_bits(object->base + offset + i * lanes->bytes, lanes->scalar);
    return true;
}

static bool store_all(TileExecutor *e, const ExecInstruction *in, const Lanes *lanes, ExecValue value) {
    int64_t offset = (int64_t)lanes->pointer.lanes[1], size = value.count * lanes->bytes;
    ExecObject *object = *value.any ? NULL : reach_all(e, in, lanes, value.count, true);
    if (!object || (object->shadow && !tile_exec_share(e, in, lanes->pointer.lanes[0], offset, size, true)))
        return false;
    for (uint32_t i = 0; i < value.count; i++)
        write_bits(object->base + offset + i * lanes->bytes, lanes->scalar, value.lanes[i]);
    if (object->poison) memset(object->poison + offset, 0, (size_t)size);
    return true;
}

bool tile_exec_load(TileExecutor *e, const ExecInstruction *in) {
    Lanes lanes = lanes_of(e, in, 0, in->op->results[0].type);
    ExecValue result = tile_exec_result(e, in);
    *result.any = 0;
    if (load_all(e, in, &lanes, result)) return true;
    for (uint32_t i = 0; i < result.count; i++) {
        bool active;
        uint8_t poison = 0;
        int64_t offset = 0;
        if (!locate(e, in, &lanes, i, &active, &offset)) return false;
        if (active) {
            if (!check_alignment(e, in, &lanes, i, offset) ||
                !tile_exec_load_element(e, in, lanes.pointer.lanes[0], offset, lanes.scalar, &result.lanes[i], &poison))
                return false;
        } else if (lanes.has_fill) {
            uint32_t from = lanes.fill.count > 1 ? i : 0;
            result.lanes[i] = lanes.fill.lanes[from];
            poison = tile_exec_poisoned(lanes.fill, from);
        } else {
            result.lanes[i] = tile_scalar_mask(lanes.scalar);
            poison = EXEC_POISON;
        }
        if (poison)
            tile_exec_set_poison(e, result, i, poison);
        else if (*result.any)
            result.poison[i] = 0;
    }
    return true;
}

bool tile_exec_store(TileExecutor *e, const ExecInstruction *in) {
    Lanes lanes = lanes_of(e, in, 1, in->op->operands[0].value->type);
    ExecValue value = tile_exec_operand(e, in, 0);
    if (store_all(e, in, &lanes, value)) return true;
    for (uint32_t i = 0; i < value.count; i++) {
        bool active;
        int64_t offset = 0;
        if (!locate(e, in, &lanes, i, &active, &offset)) return false;
        if (active && (!check_alignment(e, in, &lanes, i, offset) ||
                       !tile_exec_store_element(e, in, lanes.pointer.lanes[0], offset, lanes.scalar, value.lanes[i],
                                                tile_exec_poisoned(value, i))))
            return false;
    }
    return true;
}

bool tile_exec_atomic(TileExecutor *e, const ExecInstruction *in) {
    Lanes lanes = lanes_of(e, in, 0, in->op->results[0].type);
    ExecValue result = tile_exec_result(e, in);
    bool active;
    int64_t offset = 0;
    *result.any = 0;
    if (!locate(e, in, &lanes, 0, &active, &offset)) return false;
    if (active) return tile_exec_update_element(e, in, lanes.pointer.lanes[0], offset, lanes.scalar, 0, 1);
    result.lanes[0] = tile_scalar_mask(lanes.scalar);
    tile_exec_set_poison(e, result, 0, EXEC_POISON);
    return true;
}

bool tile_exec_atomic_update(TileExecutor *e, const ExecInstruction *in) {
    const TileType *type = in->op->operands[1].value->type;
    Lanes lanes = lanes_of(e, in, 0, type);
    uint32_t count = (uint32_t)tile_type_lanes(type);
    bool active;
    int64_t first = 0;
    if (!locate(e, in, &lanes, 0, &active, &first)) return false; /* one mask for all lanes */
    if (!active) return true;
    if (!check_alignment(e, in, &lanes, 0, first)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!tile_exec_update_element(e, in, lanes.pointer.lanes[0], first + i * lanes.bytes, lanes.scalar, i, 1))
            return false;
    return true;
}

/* A hint: any address is allowed. */
bool tile_exec_prefetch(TileExecutor *e, const ExecInstruction *in) {
    (void)e, (void)in;
    return true;
}
