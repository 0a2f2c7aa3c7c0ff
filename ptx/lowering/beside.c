/* Loads of a window whose positions follow one another along a row: a thread's elements of one are, but for a few at an end, those of the next. What all of them have
 * together is loaded once, in vectors from aligned addresses as far as rows are known to consist of such, or there is one row and all lanes exist, else element by element; and each
 * position takes its own. */
#include "ptx/lowering/access.h"
#include "lang/ir/operands.h"
#include "ptx/layouts/beside.h"

/* Of so many loads, the farthest so many elements apart: 32 and a vector are in registers together. */
enum { MOST_BESIDE = 32, FARTHEST = 24, MOST_RUN = 16, MOST_STEP = 4, MOST_TOGETHER = MOST_STEP * MOST_RUN + 2 * FARTHEST + 2 * GPU_ACCESS_BYTES };

typedef struct Beside {
    GpuAccess access; /* of the first load */
    bool whole;       /* all lanes of all of them exist */
    bool dense;       /* neighbours along the row are neighbours in memory, for certain */
    bool ends;        /* the tensor's only row may end within a vector */
    TileValue *any;   /* else: has one of them a lane? */
    TileOp *ops[MOST_BESIDE];
    int64_t distance[MOST_BESIDE]; /* of elements, behind the first load */
    unsigned count;
    int64_t least, most;
    unsigned run; /* elements of a thread that follow one another, */
    int64_t step; /* so far apart */
} Beside;

/* Do all lanes exist, for certain? */
static bool is_whole(const TileOp *load, const TileAccessIndex *indices, unsigned rank) {
    const TileLayout *layout = load->results[0].type->layout;
    for (unsigned d = 0; d < rank; d++) {
        int64_t lo, hi;
        if (indices[d].kind != TILE_ACCESS_RANGE) continue;
        if (!tile_value_integer(indices[d].lo, &lo) || !tile_value_integer(indices[d].hi, &hi)) return false;
        if (lo > 0 || hi < tile_layout_extent(layout, (unsigned)indices[d].axis)) return false;
    }
    return true;
}

/* A load of all lanes of a tile, from memory that nothing writes, along whose last axis the tensor's last dimension lies. */
static bool is_plain(const Gpu *gpu, const TileOp *load, TileAccessIndex *indices, unsigned *rank) {
    int64_t step;
    const TileType *type = load->id == TILE_OP_LOAD_TILE ? load->results[0].type : NULL;
    if (!type || !tile_type_is_tile(type) || type->scalar == TILE_BOOL) return false;
    unsigned plain = 1u + (tile_op_get(load, TILE_ATTRIBUTE_PARTS) != NULL) + (tile_op_get(load, TILE_ATTRIBUTE_CACHE) != NULL);
    if (load->attribute_count != plain || tile_op_named(load, TILE_OPERAND_MASK)) return false; /* no copy by a map, nor one ahead */
    const TileValue *tensor = tile_op_operand(load, 0);
    const GpuTensor *known = tile_map_get(&gpu->tensors, tensor);
    if (!known || !known->parameter->readonly || !known->parameter->noalias) return false;
    *rank = tile_access_read(load, indices);
    for (unsigned d = 0; d < *rank; d++)
        if (indices[d].kind == TILE_ACCESS_GATHER) return false;
    const TileAccessIndex *last = &indices[*rank - 1];
    return last->kind == TILE_ACCESS_RANGE && last->axis + 1 == type->rank && tile_value_integer(last->step, &step) && step > 0 && step <= MOST_STEP;
}

/* Are its indices along the row known where the first load stands? Which lanes exist is asked there. */
static bool is_known(const Gpu *gpu, const TileOp *load, const TileAccessIndex *last) {
    const TileValue *fill = tile_op_named(load, TILE_OPERAND_FILLING);
    return tile_map_get(&gpu->values, last->first) && tile_map_get(&gpu->values, last->lo) && tile_map_get(&gpu->values, last->hi) && (!fill || tile_map_get(&gpu->values, fill));
}

/* Do both differ in where their rows begin alone, and in which lanes of these exist? */
static bool is_beside(Gpu *gpu, const TileOp *load, const TileAccessIndex *a, unsigned rank, const TileOp *other, int64_t *distance) {
    TileAccessIndex b[TILE_MAX_TENSOR_RANK];
    unsigned same;
    if (!gpu_lies_beside(tile_pass_indices(gpu->context, gpu->func), load, other, distance) || !is_plain(gpu, other, b, &same)) return false;
    if (tile_op_integer(load, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT) != tile_op_integer(other, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT)) return false;
    for (unsigned d = 0; d + 1 < rank; d++)
        if (a[d].kind == TILE_ACCESS_RANGE && (a[d].lo != b[d].lo || a[d].hi != b[d].hi)) return false;
    bool whole = is_whole(load, a, rank);
    return whole == is_whole(other, b, rank) && (whole || is_known(gpu, other, &b[rank - 1]));
}

/* The loads of the block that lie beside this one, which is the first of them. */
static bool find(Gpu *gpu, TileOp *op, Beside *beside) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank;
    if (!is_plain(gpu, op, indices, &rank)) return false;
    *beside = (Beside){.ops = {op}, .count = 1};
    tile_value_integer(indices[rank - 1].step, &beside->step);
    beside->run = tile_layout_vector(op->results[0].type->layout, op->results[0].type->rank - 1u, MOST_RUN);
    beside->whole = is_whole(op, indices, rank);
    if (beside->run == 1 || (!beside->whole && !is_known(gpu, op, &indices[rank - 1]))) return false;
    for (TileOp *other = op->next; other && beside->count < MOST_BESIDE; other = other->next) {
        int64_t distance;
        if (other->id != TILE_OP_LOAD_TILE || tile_map_get(&gpu->beside, &other->results[0])) continue;
        if (!is_beside(gpu, op, indices, rank, other, &distance) || distance < -FARTHEST || distance > FARTHEST) continue;
        beside->ops[beside->count] = other;
        beside->distance[beside->count++] = distance;
        if (distance < beside->least) beside->least = distance;
        if (distance > beside->most) beside->most = distance;
    }
    if (beside->count == 1) return false;
    for (unsigned i = 0; i < beside->count; i++) tile_map_set(&gpu->beside, &beside->ops[i]->results[0], &op->results[0]);
    return true;
}

/* A bound along the last axis, less the thread's own index and limited to what differs, as i32. */
static TileValue *bound_of_thread(Gpu *gpu, const Beside *beside, TileValue *bound) {
    enum { BEHIND = 2 * FARTHEST + 2 * GPU_ACCESS_BYTES };
    const GpuAccess *access = &beside->access;
    unsigned axis = access->type->rank - 1u;
    int64_t extent = tile_layout_extent(&access->layout, axis) * beside->step;
    bound = gpu_binary(gpu, TILE_OP_MAX, gpu_binary(gpu, TILE_OP_MIN, bound, gpu_i64(gpu, extent + BEHIND)), gpu_i64(gpu, -BEHIND));
    TileValue *lane = gpu_binary(gpu, TILE_OP_MUL, gpu_thread_index(gpu, &access->layout, axis), gpu_i64(gpu, beside->step));
    TileValue *own = tile_build_convert(&gpu->b, lane, TILE_I32);
    return gpu_binary(gpu, TILE_OP_SUB, tile_build_convert(&gpu->b, bound, TILE_I32), own);
}

/* Is the element at this index of the last axis, less the thread's own, one of the tensor, and its row one that a load has? Where vectors are in rows as a whole, that
 * of their first element. */
static TileValue *is_there(Gpu *gpu, const Beside *beside, uint32_t reg, int64_t index) {
    const GpuAccess *access = &beside->access;
    const GpuDimension *unit = &access->dimensions[access->rank - 1];
    TileValue *begin = gpu_binary(gpu, TILE_OP_SUB, gpu_i64(gpu, 0), unit->first),
              *end = gpu_binary(gpu, TILE_OP_SUB, access->tensor->extent[access->rank - 1], unit->first), *there = beside->any;
    for (unsigned d = 0; d + 1 < access->rank; d++) {
        const GpuDimension *dimension = &access->dimensions[d];
        if (dimension->kind != TILE_ACCESS_RANGE) continue;
        there = gpu_and(gpu, there, gpu_lies_between(gpu, &access->layout, (unsigned)dimension->axis, reg, dimension->lo, dimension->hi));
    }
    TileValue *place = tile_build_integer(&gpu->b, tile_type_scalar(gpu->module->context, TILE_I32), index);
    there = gpu_and(gpu, there, gpu_binary(gpu, TILE_OP_GE, place, bound_of_thread(gpu, beside, begin)));
    return gpu_and(gpu, there, gpu_binary(gpu, TILE_OP_LT, place, bound_of_thread(gpu, beside, end)));
}

/* Where an element is loaded from: the address of the run's first one, and how many it lies behind the beginning of the tile's row, less the thread's own. */
typedef struct Place {
    TileValue *address;
    uint32_t reg;
    int64_t index;
} Place;

/* Loads elements `from` up to `to`. */
static void load_some(Gpu *gpu, const Beside *beside, const Place *place, int64_t from, int64_t to, TileValue **elements) {
    TileScalar scalar = beside->access.type->scalar;
    int64_t bytes = tile_scalar_bytes(scalar), count = to - from;
    const TileType *type = tile_type_scalar(gpu->module->context, scalar);
    TileValue *there = beside->whole ? NULL : is_there(gpu, beside, place->reg, place->index + from);
    if (count > 1) type = tile_type_vector(gpu->module->context, scalar, (unsigned)count, false);
    TileValue *stride = beside->dense ? gpu_i64(gpu, bytes) : beside->access.dimensions[beside->access.rank - 1].stride;
    TileValue *address = from ? tile_build_ptr_add(&gpu->b, place->address, gpu_binary(gpu, TILE_OP_MUL, stride, gpu_i64(gpu, from))) : place->address;
    TileValue *nothing = there ? tile_build_bits(&gpu->b, type, 0) : NULL;
    if (there && count > 1) there = tile_build_splat(&gpu->b, there, tile_type_vector(gpu->module->context, TILE_BOOL, (unsigned)count, false));
    TileValue *loaded = tile_build_load(&gpu->b, type, address, there, nothing, count > 1 ? count * bytes : 0);
    TileName cache = (TileName)tile_op_integer(beside->access.op, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT);
    if (count > 1 && cache != TILE_CACHE_DEFAULT) tile_op_set_integer(gpu->module, loaded->op, TILE_ATTRIBUTE_CACHE, cache);
    for (int64_t i = 0; i < count; i++) elements[i] = count > 1 ? gpu_register(gpu, loaded, (uint32_t)i) : loaded;
}

/* The least aligned part of a vector that has these elements. */
static void widen(int64_t *from, int64_t *to) {
    int64_t width = 1;
    while (*from / width != (*to - 1) / width) width *= 2;
    *from = *from / width * width;
    *to = *from + width;
}

/* Elements `from` up to `to` behind an aligned address, and no others: in aligned parts of vectors. */
static void load_exactly(Gpu *gpu, const Beside *beside, const Place *place, int64_t from, int64_t to, int64_t width, TileValue **elements) {
    for (int64_t at = from, part; at < to; at += part) {
        for (part = width; at % part || at + part > to;) part /= 2;
        load_some(gpu, beside, place, at, at + part, elements + (at - from));
    }
}

/* Elements `from` up to `to` behind an aligned address: vectors, of the first and last one the least part. */
static void load_row(Gpu *gpu, const Beside *beside, const Place *place, int64_t from, int64_t to, int64_t width, TileValue **elements) {
    for (int64_t at = from; at < to;) {
        int64_t begin = at - (((at % width) + width) % width), first = at - begin, end = to - begin < width ? to - begin : width;
        TileValue *part[GPU_ACCESS_BYTES];
        int64_t lo = first, hi = end;
        widen(&lo, &hi);
        load_some(gpu, beside, place, begin + lo, begin + hi, part);
        for (int64_t i = first; i < end; i++) elements[begin + i - from] = part[i - lo];
        at = begin + end;
    }
}

/* Do rows consist of vectors that begin at aligned addresses, as far as is known of the tensor? Its only row may end anywhere: where all lanes exist, those of a vector do. `shift`: by so many elements the first load begins behind one. */
static bool is_of_vectors(Gpu *gpu, Beside *beside, unsigned width, unsigned shift) {
    GpuAccess back = gpu_as_dense(gpu, &beside->access);
    TileParameter *parameter = back.tensor->parameter;
    unsigned last = back.rank - 1;
    back.dimensions[last].first = gpu_i64(gpu, 0); /* less the shift it is a multiple of `width` */
    back.base = tile_build_ptr_add(&gpu->b, back.base, gpu_i64(gpu, -(int64_t)shift * tile_scalar_bytes(back.type->scalar)));
    if (gpu_is_in_vectors(gpu, &back, width)) return false;
    for (unsigned wanted = width; wanted > 1; wanted /= 2) parameter->asked_multiple |= wanted;
    int64_t multiple = parameter->facts.multiple[last];
    beside->ends = multiple == TILE_UNKNOWN || multiple % width;
    if (!beside->ends) parameter->used_multiple |= width;
    return !beside->ends || back.rank == 1;
}

/* All of a run's elements that any of the loads has. */
static void load_run(Gpu *gpu, const Beside *beside, uint32_t reg, unsigned width, unsigned shift, TileValue **elements) {
    const GpuAccess *access = &beside->access;
    if (beside->ends && !beside->whole) width = 1, shift = 0;
    Place place = {gpu_access_address(gpu, access, reg), reg, beside->step * gpu_register_index(&access->layout, access->type->rank - 1u, reg) - shift};
    int64_t least = beside->least, count = beside->most - least + beside->step * (beside->run - 1) + 1;
    if (shift) place.address = tile_build_ptr_add(&gpu->b, place.address, gpu_i64(gpu, -(int64_t)shift * tile_scalar_bytes(access->type->scalar)));
    if (width > 1 && beside->ends)
        load_exactly(gpu, beside, &place, least + shift, least + shift + count, width, elements);
    else if (width > 1)
        load_row(gpu, beside, &place, least + shift, least + shift + count, width, elements);
    else
        for (int64_t i = 0; i < count; i++) load_some(gpu, beside, &place, least + i, least + i + 1, &elements[i]);
}

/* Where lanes do not exist, what the load says stands there, or anything. */
static void fill_lanes(Gpu *gpu, TileOp *load, TileValue **registers, uint32_t count) {
    GpuAccess access;
    if (!tile_op_named(load, TILE_OPERAND_FILLING)) return;
    gpu_read_access(gpu, load, load->results[0].type, NULL, &access);
    for (uint32_t r = 0; r < count; r++) {
        TileValue *mask = gpu_access_mask(gpu, &access, r);
        if (mask) registers[r] = tile_build_ternary(&gpu->b, TILE_OP_SELECT, mask, registers[r], gpu_register(gpu, access.fill, r));
    }
}

/* Has one of the loads a lane, as far as the last axis says? Else nothing is known of its indices. */
static TileValue *has_lanes(Gpu *gpu, const Beside *beside) {
    TileValue *any = NULL;
    for (unsigned i = 0; i < beside->count; i++) {
        TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
        const TileAccessIndex *last = &indices[tile_access_read(beside->ops[i], indices) - 1];
        TileValue *some = gpu_binary(gpu, TILE_OP_LT, gpu_value(gpu, last->lo), gpu_value(gpu, last->hi));
        any = any ? gpu_binary(gpu, TILE_OP_OR, any, some) : some;
    }
    return any;
}

/* The registers of all loads, one behind the other. */
static void load_all(Gpu *gpu, const Beside *beside, unsigned width, unsigned shift, TileValue **registers) {
    uint32_t count = tile_layout_registers(&beside->access.layout);
    TileValue *elements[MOST_TOGETHER];
    for (uint32_t r = 0; r < count; r += beside->run) {
        load_run(gpu, beside, r, width, shift, elements);
        for (unsigned i = 0; i < beside->count; i++)
            for (unsigned k = 0; k < beside->run; k++) registers[i * count + r + k] = elements[beside->distance[i] - beside->least + beside->step * k];
    }
    for (unsigned i = 0; i < beside->count && !beside->whole; i++) fill_lanes(gpu, beside->ops[i], registers + (size_t)i * count, count);
}

static void end_region(Gpu *gpu, const Beside *beside, TileValue *const *registers) {
    uint32_t count = tile_layout_registers(&beside->access.layout);
    TileValue *values[MOST_BESIDE];
    for (unsigned i = 0; i < beside->count; i++) values[i] = gpu_join(gpu, registers + (size_t)i * count, count);
    tile_build_end(&gpu->b, TILE_OP_YIELD, values, beside->count);
}

/* Does it stand where a test has failed that all windows lie inside of the tensor (gpu-inside)? */
static bool is_at_borders(const TileOp *load) {
    const TileOp *choice = load->block->op;
    if (!choice || choice->id != TILE_OP_IF || load->block != &choice->regions[1]) return false;
    for (const TileOp *op = choice->regions[0].first; op; op = op->next)
        if (op->id == TILE_OP_LOAD_TILE && tile_op_operand(op, 0) == tile_op_operand(load, 0) && op->results[0].type == load->results[0].type) return true;
    return false;
}

/* One test for the block whether all lanes of all of them exist. */
static TileValue *are_inside(Gpu *gpu, const Beside *beside) {
    TileValue *inside = NULL;
    for (unsigned i = 0; i < beside->count; i++) {
        GpuAccess access;
        gpu_read_access(gpu, beside->ops[i], beside->access.type, NULL, &access);
        inside = gpu_and(gpu, inside, gpu_is_inside(gpu, &access));
    }
    return inside;
}

/* Both versions behind that test, but at borders. */
static void load_by_test(Gpu *gpu, Beside *beside, unsigned width, unsigned shift) {
    uint32_t count = tile_layout_registers(&beside->access.layout);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, (size_t)count * beside->count);
    TileValue *inside = beside->whole || is_at_borders(beside->ops[0]) ? NULL : are_inside(gpu, beside);
    if (!inside) {
        if (!beside->whole) beside->any = has_lanes(gpu, beside);
        load_all(gpu, beside, width, shift, registers);
        for (unsigned i = 0; i < beside->count; i++)
            tile_map_set(&gpu->values, &beside->ops[i]->results[0], gpu_join(gpu, registers + (size_t)i * count, count));
        return;
    }
    const TileType *types[MOST_BESIDE];
    for (unsigned i = 0; i < beside->count; i++) types[i] = gpu_type(gpu, &beside->access.layout, beside->access.type->scalar);
    TileBuilder outer = gpu->b;
    TileOp *choice = tile_build_if(&outer, inside, types, beside->count);
    Beside all = *beside;
    all.whole = true;
    gpu_enter(gpu, &choice->regions[0]);
    load_all(gpu, &all, width, shift, registers);
    end_region(gpu, beside, registers);
    gpu_enter(gpu, &choice->regions[1]);
    beside->any = has_lanes(gpu, beside);
    load_all(gpu, beside, width, shift, registers);
    end_region(gpu, beside, registers);
    gpu->b = outer;
    for (unsigned i = 0; i < beside->count; i++) tile_map_set(&gpu->values, &beside->ops[i]->results[0], tile_op_result(choice, i));
}

/* Loads it with the others of its row, if it is the first of several; true as well if it has been loaded with that one. */
bool gpu_load_beside(Gpu *gpu, TileOp *op) {
    const TileValue *leader = tile_map_get(&gpu->beside, &op->results[0]);
    Beside beside;
    if (leader && leader != &op->results[0]) return true;
    if (!find(gpu, op, &beside)) return false;
    gpu_read_access(gpu, op, op->results[0].type, NULL, &beside.access);
    GpuDimension *unit = &beside.access.dimensions[beside.access.rank - 1];
    int64_t bytes = tile_scalar_bytes(op->results[0].type->scalar), distance;
    unsigned width = GPU_ACCESS_BYTES / (unsigned)bytes, shift = 0;
    while (beside.run * beside.step % width) width /= 2; /* all threads begin alike */
    width = gpu_aligned_width(&beside.access, width);
    beside.dense = tile_value_integer(unit->stride, &distance) && distance == bytes;
    bool aligned = false;
    for (; beside.dense && width > 1 && !aligned; width = aligned ? width : width / 2) /* narrower ones where rows are multiples of such */
        aligned = gpu_row_begins_behind(gpu, &beside.access, width, &shift) && is_of_vectors(gpu, &beside, width, shift);
    if (aligned)
        gpu_remark_access(gpu, op, beside.access.tensor->parameter, (TileName)tile_op_integer(op, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT));
    else
        width = 1, shift = 0;
    load_by_test(gpu, &beside, width, shift);
    return true;
}
