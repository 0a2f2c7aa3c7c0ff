/* Boxes of tensors that tensor maps describe (base/tensor_map.h): where their elements are. */
#include <string.h>

#include "lang/execute/state.h"
#include "lang/ir/tensor_map.h"
#include "lang/scalar/scalar.h"

/* How many positions there are along each axis of the images, and from where on. */
static bool read_images(TileExecutor *e, const ExecInstruction *in, const TileValue *value, ExecBox *box) {
    uint32_t counts[TILE_MAP_MOST_IMAGE_AXES], first = e->root->program->body.first_argument;
    const TileFunc *func = e->root->program->func;
    const TileTensorMap *map = &func->parameters[value->index].map;
    if (!tile_func_map_counts(func, value->index, counts)) return tile_exec_fault(e, in, "the map is of positions of nothing");
    box->image_axes = tile_map_image_axes(map);
    box->rows = map->positions;
    for (uint32_t d = 0; d < box->image_axes; d++) {
        box->count[d] = (int64_t)tile_exec_register(e->root, first + counts[d]).lanes[0];
        box->corner[d] = map->corner[d];
        int64_t far = tile_map_far_corner(map->corner[d], (uint64_t)box->count[d], tile_map_step(map, 1 + d), (uint64_t)box->extent[1 + d]);
        if (!tile_map_corner_fits(map->rank, far))
            return tile_exec_fault(e, in, "no corner of a map says that there are %lld positions along axis %u", (long long)box->count[d], 1 + d);
    }
    return true;
}

/* The tensor's address, extents and strides are parameters of the phase, behind one another. */
static bool read_tensor(TileExecutor *e, const ExecInstruction *in, const TileValue *map, ExecBox *box) {
    uint32_t data, first = e->root->program->body.first_argument;
    const TileFunc *func = e->root->program->func;
    const TileParameter *parameter = &func->parameters[map->index];
    const TileType *tensor = tile_func_argument_type(func, parameter->argument);
    if (!tensor || !tile_func_map_tensor(func, map->index, &data))
        return tile_exec_fault(e, in, "the map is of no tensor");
    ExecValue address = tile_exec_register(e->root, first + data);
    *box = (ExecBox){.rank = parameter->map.rank,
                     .rows = 1,
                     .swizzle = parameter->map.swizzle,
                     .element_bytes = (int64_t)tile_scalar_bytes(tensor->scalar),
                     .object = address.lanes[0],
                     .offset = (int64_t)address.lanes[1]};
    for (uint32_t d = 0; d < box->rank; d++) {
        box->step[d] = tile_map_step(&parameter->map, d);
        box->extent[d] = (int64_t)tile_exec_register(e->root, first + data + 1 + d).lanes[0];
        box->stride[d] = (int64_t)tile_exec_register(e->root, first + data + 1 + box->rank + d).lanes[0];
        box->size[d] = parameter->map.box[d];
        if (parameter->map.cut >> d & 1) box->size[d] = tile_map_cut(box->size[d], (uint64_t)box->extent[d]);
        if (d + 1 < box->rank) box->rows *= box->size[d];
    }
    box->row_bytes = box->size[box->rank - 1] * (uint32_t)box->element_bytes;
    return !parameter->map.positions || read_images(e, in, map, box);
}

/* The first position is one of those that the map has, and offsets are as large as words of the hardware. */
static bool read_position(TileExecutor *e, const ExecInstruction *in, unsigned first, ExecBox *box) {
    for (uint32_t d = 0; d < box->image_axes; d++) {
        int64_t from = box->at[1 + d] - box->corner[d], step = box->step[1 + d];
        if (from < 0 || from % step || from / step >= box->count[d])
            return tile_exec_fault(e, in, "the first position, %lld along axis %u, is none of the map's", (long long)box->at[1 + d], 1 + d);
        box->number[d] = from / step;
        if (in->op->id == TILE_OP_STORE_TENSOR) continue; /* without a window */
        if (!tile_exec_integer(e, in, first + d, "an offset", &box->added[d])) return false;
        box->added[d] = (int32_t)box->added[d];
        if (!tile_map_offset_fits(box->rank, box->added[d]))
            return tile_exec_fault(e, in, "the offset %lld along axis %u is not less than %u", (long long)box->added[d], 1 + d, 1u << tile_map_corner_bits(box->rank));
    }
    return true;
}

bool tile_exec_box_read(TileExecutor *e, const ExecInstruction *in, unsigned map, unsigned first, ExecBox *box) {
    if (!read_tensor(e, in, tile_op_operand(in->op, map), box)) return false;
    for (uint32_t d = 0; d < box->rank; d++) {
        if (!tile_exec_integer(e, in, first + d, "a coordinate", &box->at[d])) return false;
        box->at[d] = (int32_t)box->at[d];
    }
    if (!read_position(e, in, first + box->rank, box)) return false;
    int64_t begin = box->at[box->rank - 1] * box->element_bytes;
    return begin % TILE_MAP_GRAIN == 0 ||
           tile_exec_fault(e, in, "the box begins at byte %lld along the last axis, not a multiple of %d",
                           (long long)begin, TILE_MAP_GRAIN);
}

bool tile_exec_box_place(TileExecutor *e, const ExecInstruction *in, const ExecBox *box, uint64_t object,
                         int64_t offset) {
    uint32_t align = box->rows > 1 ? tile_map_place_align(box->swizzle) : TILE_MAP_PLACE;
    uint64_t address = (uintptr_t)e->objects[object].base + (uint64_t)offset;
    return address % align == 0 || tile_exec_fault(e, in, "the place is not aligned to %u bytes", align);
}

/* ---- rows ---- */

/* The row's index along all axes but the last. */
static void find_indices(const ExecBox *box, uint32_t row, int64_t index[TILE_MAP_MOST_RANK]) {
    int64_t rest = row;
    for (uint32_t d = box->rank - 1; d-- > 0;) {
        if (!box->image_axes) {
            index[d] = box->at[d] + rest % box->size[d] * box->step[d];
            rest /= box->size[d];
        } else if (d) {
            int64_t number = box->number[d - 1] + rest;
            index[d] = box->corner[d - 1] + number % box->count[d - 1] * box->step[d] + box->added[d - 1];
            rest = number / box->count[d - 1];
        } else {
            index[d] = box->at[d] + rest;
        }
    }
}

bool tile_exec_box_part(const ExecBox *box, uint32_t row, ExecBoxPart *part) {
    uint32_t last = box->rank - 1;
    int64_t from = box->offset, indices[TILE_MAP_MOST_RANK];
    find_indices(box, row, indices);
    for (uint32_t d = last; d-- > 0;) {
        int64_t index = indices[d];
        if (index < 0 || index >= box->extent[d]) return false;
        from += box->extent[d] > 1 ? index * box->stride[d] : 0;
    }
    int64_t begin = box->at[last], end = begin + box->size[last];
    if (end > box->extent[last]) end = box->extent[last];
    int64_t skipped = begin < 0 ? -begin : 0;
    if (begin + skipped >= end) return false;
    *part = (ExecBoxPart){.from = from + (begin + skipped) * box->element_bytes,
                          .first = (int64_t)row * box->row_bytes + skipped * box->element_bytes,
                          .bytes = (end - begin - skipped) * box->element_bytes};
    return true;
}

void tile_exec_box_load(TileExecutor *e, const ExecInstruction *in, const ExecBox *box, uint64_t object,
                        int64_t offset) {
    ExecBoxPart part;
    ExecObject *to = &e->objects[object];
    const ExecObject *from = &e->objects[box->object];
    uint64_t origin = (uintptr_t)to->base;
    memset(to->base + offset, 0, (size_t)tile_exec_box_bytes(box));
    if (to->poison) memset(to->poison + offset, 0, (size_t)tile_exec_box_bytes(box));
    for (uint32_t row = 0; row < box->rows; row++) {
        if (!tile_exec_box_part(box, row, &part)) continue;
        for (int64_t i = 0; i < part.bytes; i++) {
            int64_t place = (int64_t)(tile_map_swizzle(origin + (uint64_t)(offset + part.first + i), box->swizzle) - origin);
            to->base[place] = from->base[part.from + i];
            if (to->poison) to->poison[place] = tile_exec_read_poison(e, in, from, part.from + i, 1);
        }
    }
}

bool tile_exec_box_share(TileExecutor *e, const ExecInstruction *in, const ExecBox *box, bool write) {
    ExecBoxPart part;
    for (uint32_t row = 0; row < box->rows; row++) {
        if (!tile_exec_box_part(box, row, &part)) continue;
        if (!tile_exec_reach(e, in, box->object, part.from, part.bytes, write)) return false;
        if (e->objects[box->object].shadow && !tile_exec_share(e, in, box->object, part.from, part.bytes, write))
            return false;
    }
    return true;
}

bool tile_exec_box_store(TileExecutor *e, const ExecInstruction *in, const ExecBox *box, uint64_t object,
                         int64_t offset) {
    ExecBoxPart part;
    const ExecObject *from = &e->objects[object];
    ExecObject *to = &e->objects[box->object];
    uint64_t origin = (uintptr_t)from->base;
    for (uint32_t row = 0; row < box->rows; row++) {
        if (!tile_exec_box_part(box, row, &part)) continue;
        for (int64_t i = 0; i < part.bytes; i++) {
            int64_t place = (int64_t)(tile_map_swizzle(origin + (uint64_t)(offset + part.first + i), box->swizzle) - origin);
            uint8_t poison = tile_exec_read_poison(e, in, from, place, 1);
            if (poison && !to->keeps_poison)
                return tile_exec_poison(e, in, poison, "stores", "byte %lld of the box is poison",
                                        (long long)(part.first + i));
            to->base[part.from + i] = from->base[place];
            if (to->poison) to->poison[part.from + i] = poison;
        }
    }
    return true;
}
