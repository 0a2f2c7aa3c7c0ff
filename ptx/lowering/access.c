/* Lowering of load_tile and store_tile. If all lanes of a tile are valid and its elements are
 * contiguous, which one test decides for the whole block, a thread accesses vectors of up to 16 bytes without
 * predicates. If not all are valid, but the bounds fall between vectors of up to 8 bytes, each of these has a predicate;
 * otherwise each element has. */
#include "ptx/lowering/access.h"
#include "ptx/grid/masks.h"
#include "lang/ir/operands.h"

/* ---- reading the op ---- */

/* An optional operand; NULL where it is absent. */
static TileValue *part(Gpu *gpu, const TileOp *op, TileOperand name) {
    TileValue *value = tile_op_named(op, name);
    return value ? gpu_value(gpu, value) : NULL;
}

/* The index tile has the slice of the tile's layout along its axis. Returns its values in the order of the tile's
 * registers. */
static TileValue *expand_gather(Gpu *gpu, const GpuAccess *access, const TileValue *index, unsigned axis) {
    const TileLayout *slice = index->type->layout;
    TileValue *value = gpu_value(gpu, index);
    uint32_t count = tile_layout_registers(&access->layout), distinct = tile_layout_registers(slice);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t source = 0;
        for (uint32_t s = 0; s < distinct; s++)
            if (gpu_register_index(slice, 0, s) == gpu_register_index(&access->layout, axis, r)) source = s;
        registers[r] = gpu_register(gpu, value, source);
    }
    return gpu_join(gpu, registers, count);
}

static void read_range(Gpu *gpu, GpuAccess *access, GpuDimension *dimension, const TileAccessIndex *index) {
    dimension->first = gpu_value(gpu, index->first);
    dimension->step = gpu_value(gpu, index->step);
    dimension->lo = gpu_value(gpu, index->lo);
    dimension->hi = gpu_value(gpu, index->hi);
    dimension->per_lane = gpu_binary(gpu, TILE_OP_MUL, dimension->step, dimension->stride);
    TileValue *lane = gpu_thread_index(gpu, &access->layout, (unsigned)dimension->axis);
    dimension->thread = gpu_binary(gpu, TILE_OP_MUL, lane, dimension->per_lane);
}

/* In tile form, indices and gathers of valid lanes are within bounds, so they are not checked again. */
static void read_dimension(Gpu *gpu, GpuAccess *access, unsigned d, const TileAccessIndex *index) {
    GpuDimension *dimension = &access->dimensions[d];
    *dimension = (GpuDimension){.kind = index->kind, .axis = index->axis, .stride = access->tensor->stride[d]};
    if (access->flat && d + 1 == access->rank) /* the tensor's own may be any, where the dimension has one element */
        dimension->stride = gpu_i64(gpu, tile_scalar_bytes(access->type->scalar));
    if (index->kind == TILE_ACCESS_RANGE) {
        read_range(gpu, access, dimension, index);
    } else if (index->kind == TILE_ACCESS_GATHER) {
        dimension->gather = expand_gather(gpu, access, index->first, (unsigned)index->axis);
        access->gathers = true;
    } else {
        dimension->first = gpu_value(gpu, index->first);
    }
}

void gpu_read_access(Gpu *gpu, const TileOp *op, const TileType *type, const TileLayout *layout,
                     GpuAccess *access) {
    *access = (GpuAccess){.op = op, .type = type, .tensor = tile_map_get(&gpu->tensors, tile_op_operand(op, 0))};
    const TileType *tensor = tile_op_operand(op, 0)->type;
    if (tile_type_is_tile(type)) access->layout = layout ? *layout : *type->layout;
    access->rank = tensor->rank;
    access->flat = tile_op_get(op, TILE_ATTRIBUTE_FLAT) != NULL;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    tile_access_read(op, indices);
    for (unsigned d = 0; d < tensor->rank; d++) read_dimension(gpu, access, d, &indices[d]);
    access->mask = part(gpu, op, TILE_OPERAND_MASK);
    access->fill = part(gpu, op, TILE_OPERAND_FILLING);
    TileValue *offset = NULL;
    for (unsigned d = 0; d < tensor->rank; d++) {
        const GpuDimension *dimension = &access->dimensions[d];
        if (!dimension->first) continue;
        TileValue *bytes = gpu_binary(gpu, TILE_OP_MUL, dimension->first, dimension->stride);
        offset = offset ? gpu_binary(gpu, TILE_OP_ADD, offset, bytes) : bytes;
    }
    access->origin = offset ? tile_build_ptr_add(&gpu->b, access->tensor->pointer, offset) : access->tensor->pointer;
    access->base = access->origin;
    for (unsigned d = 0; d < tensor->rank; d++)
        if (access->dimensions[d].thread)
            access->base = tile_build_ptr_add(&gpu->b, access->base, access->dimensions[d].thread);
}

/* ---- one register ---- */

TileValue *gpu_access_address(Gpu *gpu, const GpuAccess *access, uint32_t reg) {
    TileValue *address = access->base;
    for (unsigned d = 0; d < access->rank; d++) {
        const GpuDimension *dimension = &access->dimensions[d];
        TileValue *bytes = NULL;
        if (dimension->kind == TILE_ACCESS_RANGE) {
            int64_t lane = gpu_register_index(&access->layout, (unsigned)dimension->axis, reg);
            if (lane) bytes = gpu_binary(gpu, TILE_OP_MUL, dimension->per_lane, gpu_i64(gpu, lane));
        } else if (dimension->kind == TILE_ACCESS_GATHER) {
            TileValue *index = gpu_register(gpu, dimension->gather, reg);
            if (gpu_is_narrow(access->tensor)) index = gpu_narrow(gpu, index);
            bytes = gpu_binary(gpu, TILE_OP_MUL, index, dimension->stride);
        }
        if (bytes) address = tile_build_ptr_add(&gpu->b, address, bytes);
    }
    return address;
}

/* Are the address differences of registers constants, or given by a gather? */
static bool has_known_distances(const GpuAccess *access) {
    bool known = access->gathers;
    for (unsigned d = 0; d < access->rank; d++)
        known |= access->dimensions[d].kind == TILE_ACCESS_RANGE &&
                 tile_value_def(access->dimensions[d].per_lane, TILE_OP_CONST) != NULL;
    return known;
}

/* For accesses element by element: pins the strides (`here`), so that addresses are computed at their use. Otherwise
 * LLVM hoists them all, as values that are live throughout the loops around. */
static GpuAccess with_distances_here(Gpu *gpu, const GpuAccess *access) {
    GpuAccess here = *access;
    if (has_known_distances(access)) return here;
    for (unsigned d = 0; d < access->rank; d++) {
        TileValue **per_lane = &here.dimensions[d].per_lane;
        if (access->dimensions[d].kind != TILE_ACCESS_RANGE) continue;
        *per_lane = tile_op_result(tile_build_op(&gpu->b, TILE_OP_HERE, per_lane, 1, NULL, 0, NULL, 1), 0);
    }
    return here;
}

/* The address of a register, from that of the register before it. */
static TileValue *next_address(Gpu *gpu, const GpuAccess *access, uint32_t reg, TileValue *address) {
    if (has_known_distances(access)) return gpu_access_address(gpu, access, reg);
    for (unsigned d = 0; d < access->rank; d++) {
        const GpuDimension *dimension = &access->dimensions[d];
        if (dimension->kind != TILE_ACCESS_RANGE) continue;
        int64_t lanes = gpu_register_index(&access->layout, (unsigned)dimension->axis, reg) -
                        gpu_register_index(&access->layout, (unsigned)dimension->axis, reg - 1);
        TileValue *bytes = lanes == 1 ? dimension->per_lane : NULL;
        if (lanes && !bytes) bytes = gpu_binary(gpu, TILE_OP_MUL, dimension->per_lane, gpu_i64(gpu, lanes));
        if (bytes) address = tile_build_ptr_add(&gpu->b, address, bytes);
    }
    return address;
}

TileValue *gpu_picked_mask(Gpu *gpu, const GpuAccess *access, uint32_t reg) {
    TileValue *mask = NULL;
    /* Padding lanes of a gathered axis are excluded by no range. */
    for (unsigned a = 0; access->gathers && a < access->type->rank; a++) {
        mask = gpu_and(
            gpu, mask,
            gpu_lies_between(gpu, &access->layout, a, reg, gpu_i64(gpu, 0), gpu_i64(gpu, access->type->extent[a])));
    }
    if (access->mask) mask = gpu_both(gpu, mask, gpu_register(gpu, access->mask, reg));
    return mask;
}

/* Lanes of a range are valid where lo <= lane < hi; lanes past the tile are past hi. */
TileValue *gpu_access_mask(Gpu *gpu, const GpuAccess *access, uint32_t reg) {
    TileValue *mask = NULL;
    for (unsigned d = 0; d < access->rank; d++) {
        const GpuDimension *dimension = &access->dimensions[d];
        if (dimension->kind != TILE_ACCESS_RANGE) continue;
        mask = gpu_and(
            gpu, mask,
            gpu_lies_between(gpu, &access->layout, (unsigned)dimension->axis, reg, dimension->lo, dimension->hi));
    }
    TileValue *picked = gpu_picked_mask(gpu, access, reg);
    return picked ? gpu_both(gpu, mask, picked) : mask;
}

/* ---- loads ---- */

static TileValue *load_elements(Gpu *gpu, const GpuAccess *elements, bool masked) {
    const GpuAccess here = with_distances_here(gpu, elements), *access = &here;
    uint32_t count = tile_layout_registers(&access->layout);
    const TileType *type = tile_type_scalar(gpu->module->context, access->type->scalar);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count), *zero = tile_build_bits(&gpu->b, type, 0);
    TileValue *address = gpu_access_address(gpu, access, 0);
    for (uint32_t r = 0; r < count; r++) {
        if (r) address = next_address(gpu, access, r, address);
        TileValue *mask = masked ? gpu_access_mask(gpu, access, r) : NULL,
                  *fill = access->fill ? gpu_register(gpu, access->fill, r) : zero;
        registers[r] = tile_build_load(&gpu->b, type, address, mask, mask ? fill : NULL, 0);
    }
    return gpu_join(gpu, registers, count);
}

/* The L2 cache policy of vector accesses, as decided by gpu-cache. */
static TileName cache_of(Gpu *gpu, const GpuAccess *access) {
    TileName cache = (TileName)tile_op_integer(access->op, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT);
    gpu_remark_access(gpu, access->op, access->tensor->parameter, cache);
    return cache;
}

GpuAccess gpu_as_dense(Gpu *gpu, const GpuAccess *access) {
    GpuAccess dense = *access;
    dense.dimensions[dense.rank - 1].per_lane = gpu_i64(gpu, tile_scalar_bytes(access->type->scalar));
    return dense;
}

void gpu_enter(Gpu *gpu, TileBlock *block) {
    gpu->b.block = block;
    gpu->b.before = NULL;
}

void gpu_end_region(Gpu *gpu, TileValue *value) { tile_build_end(&gpu->b, TILE_OP_YIELD, &value, value ? 1 : 0); }

static TileValue *load_vector(Gpu *gpu, const TileType *type, TileValue *address, TileName cache) {
    int64_t align = tile_type_lanes(type) * tile_scalar_bytes(type->scalar);
    TileValue *loaded = tile_build_load(&gpu->b, type, address, NULL, NULL, align);
    if (cache != TILE_CACHE_DEFAULT) tile_op_set_integer(gpu->module, loaded->op, TILE_ATTRIBUTE_CACHE, cache);
    return loaded;
}

/* What stands in for the vector of register `reg` where that lane is not valid. */
static TileValue *fill_of(Gpu *gpu, const GpuAccess *access, uint32_t reg, const TileType *type) {
    TileValue *fill[GPU_ACCESS_BYTES];
    unsigned width = (unsigned)tile_type_lanes(type);
    if (!access->fill) return tile_build_bits(&gpu->b, type, 0);
    for (unsigned i = 0; i < width; i++) fill[i] = gpu_register(gpu, access->fill, reg + i);
    return gpu_join(gpu, fill, width);
}

static bool is_of_words(const TileType *type) {
    int64_t bytes = tile_type_lanes(type) * tile_scalar_bytes(type->scalar);
    return type->kind == TILE_TYPE_VECTOR && type->scalar != TILE_BOOL && bytes % (int64_t)sizeof(uint32_t) == 0;
}

/* One bool for all lanes of a vector. */
static TileValue *splat_mask(Gpu *gpu, TileValue *mask, const TileType *type) {
    return tile_build_splat(&gpu->b, mask, tile_type_vector(gpu->module->context, TILE_BOOL, (unsigned)tile_type_lanes(type), false));
}

/* Is the access in the version of gpu-unswitch whose tiles are not whole? */
static bool is_at_borders(const GpuAccess *access) {
    const TileBlock *block = access->op->block;
    while (block->op && !tile_op_get(block->op, TILE_ATTRIBUTE_MASKED)) block = block->op->block;
    return block->op && block == &block->op->regions[1];
}

/* There a vector that is a number of words is loaded by an instruction with a predicate, if the memory is constant while the grid runs. In a
 * branch ptxas moves nothing past the load: what several load would be in registers together. */
static bool can_have_predicate(const GpuAccess *access, const TileType *type) {
    const TileParameter *parameter = access->tensor->parameter;
    return parameter->readonly && parameter->noalias && is_of_words(type) && is_at_borders(access);
}

/* The vector of register `reg`, or where that lane is not valid what stands in for it. */
static TileValue *load_predicated(Gpu *gpu, const GpuAccess *access, uint32_t reg, const TileType *type,
                                  TileName cache) {
    TileValue *mask = gpu_access_mask(gpu, access, reg), *address = gpu_access_address(gpu, access, reg);
    if (!mask) return load_vector(gpu, type, address, cache);
    if (can_have_predicate(access, type)) {
        TileValue *loaded = tile_build_load(&gpu->b, type, address, splat_mask(gpu, mask, type), fill_of(gpu, access, reg, type),
                                            tile_type_lanes(type) * tile_scalar_bytes(type->scalar));
        if (cache != TILE_CACHE_DEFAULT) tile_op_set_integer(gpu->module, loaded->op, TILE_ATTRIBUTE_CACHE, cache);
        return loaded;
    }
    TileBuilder outer = gpu->b;
    TileOp *choice = tile_build_if(&outer, mask, &type, 1);
    tile_op_set_integer(gpu->module, choice, TILE_ATTRIBUTE_DIVERGENT, 1);
    gpu_enter(gpu, &choice->regions[0]);
    gpu_end_region(gpu, load_vector(gpu, type, address, cache));
    gpu_enter(gpu, &choice->regions[1]);
    gpu_end_region(gpu, fill_of(gpu, access, reg, type));
    gpu->b = outer;
    return tile_op_result(choice, 0);
}

static TileValue *load_vectors(Gpu *gpu, const GpuAccess *whole, unsigned width, bool masked) {
    const GpuAccess dense = gpu_as_dense(gpu, whole), *access = &dense;
    uint32_t count = tile_layout_registers(&access->layout);
    TileName cache = cache_of(gpu, access);
    const TileType *type = tile_type_vector(gpu->module->context, access->type->scalar, width, false);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r += width) {
        TileValue *loaded = masked ? load_predicated(gpu, access, r, type, cache)
                                   : load_vector(gpu, type, gpu_access_address(gpu, access, r), cache);
        if (count == width) return loaded;
        for (uint32_t i = 0; i < width; i++) registers[r + i] = gpu_register(gpu, loaded, i);
    }
    return gpu_join(gpu, registers, count);
}

/* Vectors of this width where each is valid as a whole or not at all, else elements. */
static TileValue *load_in_pieces(Gpu *gpu, const GpuAccess *access, unsigned width) {
    TileValue *whole = gpu_is_whole_in_vectors(gpu, access, width);
    if (!whole) return load_vectors(gpu, access, width, true);
    TileBuilder outer = gpu->b;
    const TileType *type = gpu_type(gpu, &access->layout, access->type->scalar);
    TileOp *choice = tile_build_if(&outer, whole, &type, 1);
    gpu_enter(gpu, &choice->regions[0]);
    gpu_end_region(gpu, load_vectors(gpu, access, width, true));
    gpu_enter(gpu, &choice->regions[1]);
    gpu_end_region(gpu, load_elements(gpu, access, true));
    gpu->b = outer;
    return tile_op_result(choice, 0);
}

/* A tile of which lanes may be invalid. */
static TileValue *load_some(Gpu *gpu, const GpuAccess *access, unsigned width, bool scattered) {
    unsigned narrow = gpu_predicated_width(gpu, access, width);
    return scattered || narrow == 1 ? load_elements(gpu, access, true) : load_in_pieces(gpu, access, narrow);
}

/* Does nothing but ranges decide which lanes are valid? Lanes of padding along a gathered axis are excluded by no range. */
static bool is_bounded_by_ranges(const GpuAccess *access) {
    for (unsigned a = 0; access->gathers && a < access->type->rank; a++)
        if (tile_layout_extent(&access->layout, a) != access->type->extent[a]) return false;
    return !access->mask;
}

static TileValue *load_some_picked(Gpu *gpu, const GpuAccess *access, unsigned width) {
    return width == 1 ? load_elements(gpu, access, true) : load_in_pieces(gpu, access, width);
}

/* The access of a tile that is inside of all its ranges. */
static GpuAccess as_inside(Gpu *gpu, const GpuAccess *access) {
    GpuAccess inside = *access;
    for (unsigned d = 0; d < inside.rank; d++) {
        GpuDimension *dimension = &inside.dimensions[d];
        if (dimension->kind != TILE_ACCESS_RANGE) continue;
        dimension->lo = gpu_i64(gpu, 0);
        dimension->hi = gpu_i64(gpu, tile_layout_extent(&inside.layout, (unsigned)dimension->axis));
    }
    return inside;
}

/* A tile of rows that are gathered, or that a mask chooses. Outside of loops what its ranges ask is asked once, too. */
static TileValue *load_picked(Gpu *gpu, GpuAccess *access) {
    unsigned width = gpu_picked_width(access);
    bool bounded = is_bounded_by_ranges(access), repeated = tile_op_is_repeated(access->op);
    bool many = repeated && tile_layout_registers(&access->layout) > GPU_MOST_BRANCHED;
    if (many || (!bounded && (repeated || width > 1))) return load_some_picked(gpu, access, width);
    TileValue *whole = gpu_is_inside(gpu, access);
    if (width > 1) whole = gpu_and(gpu, whole, gpu_is_in_vectors(gpu, access, width));
    if (!whole) return width == 1 ? load_elements(gpu, access, !bounded) : load_vectors(gpu, access, width, false);
    TileBuilder outer = gpu->b;
    const TileType *type = gpu_type(gpu, &access->layout, access->type->scalar);
    TileOp *choice = tile_build_if(&outer, whole, &type, 1);
    gpu_enter(gpu, &choice->regions[0]);
    GpuAccess inside = as_inside(gpu, access);
    gpu_end_region(gpu, width == 1 ? load_elements(gpu, &inside, !bounded) : load_vectors(gpu, access, width, false));
    gpu_enter(gpu, &choice->regions[1]);
    gpu_end_region(gpu, load_some_picked(gpu, access, width));
    gpu->b = outer;
    return tile_op_result(choice, 0);
}

/* Vectors that lie across aligned ones: both of these are loaded, in place of element by element, and parts of them chosen. Each has an element
 * that is valid where all of the tile are, and so is within a row that consists of vectors. The choice stands behind the branch, which
 * waits for nothing. */
static TileValue *load_across(Gpu *gpu, const GpuAccess *access, unsigned width, unsigned shift) {
    GpuAccess back = gpu_as_dense(gpu, access);
    GpuDimension *unit = &back.dimensions[back.rank - 1];
    uint32_t count = tile_layout_registers(&access->layout);
    TileValue **parts = TILE_NEW_ARRAY(gpu->arena, TileValue *, 2 * (size_t)count), **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    const TileType *scalar = tile_type_scalar(gpu->module->context, access->type->scalar),
                   *type = tile_type_vector(gpu->module->context, access->type->scalar, width, false),
                   *both = tile_type_vector(gpu->module->context, access->type->scalar, 2 * count, false);
    int64_t bytes = tile_scalar_bytes(access->type->scalar);
    TileValue *dense = gpu_binary(gpu, TILE_OP_EQ, access->dimensions[back.rank - 1].per_lane, gpu_i64(gpu, bytes));
    TileValue *odd = gpu_binary(gpu, TILE_OP_AND, access->tensor->extent[back.rank - 1], gpu_i64(gpu, width - 1));
    unit->first = gpu_i64(gpu, 0); /* less the shift it is a multiple of `width` (gpu_shift) */
    back.base = tile_build_ptr_add(&gpu->b, back.base, gpu_i64(gpu, -(int64_t)shift * bytes));
    TileValue *whole = gpu_and(gpu, gpu_is_inside(gpu, access), gpu_and(gpu, dense, gpu_is_in_vectors(gpu, &back, width)));
    whole = gpu_and(gpu, whole, gpu_binary(gpu, TILE_OP_EQ, odd, gpu_i64(gpu, 0)));
    TileBuilder outer = gpu->b;
    TileOp *choice = tile_build_if(&outer, whole, &both, 1);
    gpu_enter(gpu, &choice->regions[0]);
    for (uint32_t r = 0; r < 2 * count; r += width) {
        TileValue *address = gpu_access_address(gpu, &back, r / (2 * width) * width);
        if (r / width % 2) address = tile_build_ptr_add(&gpu->b, address, gpu_i64(gpu, width * bytes));
        TileValue *loaded = load_vector(gpu, type, address, cache_of(gpu, access));
        for (uint32_t i = 0; i < width; i++) parts[r + i] = gpu_register(gpu, loaded, i);
    }
    gpu_end_region(gpu, gpu_join(gpu, parts, 2 * count));
    gpu_enter(gpu, &choice->regions[1]);
    TileValue *elements = load_elements(gpu, access, true), *zero = tile_build_bits(&gpu->b, scalar, 0);
    for (uint32_t r = 0; r < 2 * count; r++) parts[r] = zero;
    for (uint32_t r = 0; r < count; r++) parts[r / width * 2 * width + shift + r % width] = gpu_register(gpu, elements, r);
    gpu_end_region(gpu, gpu_join(gpu, parts, 2 * count));
    gpu->b = outer;
    for (uint32_t r = 0; r < count; r++)
        registers[r] = gpu_register(gpu, tile_op_result(choice, 0), r / width * 2 * width + shift + r % width);
    return gpu_join(gpu, registers, count);
}

/* Are the vectors of an access at borders each valid or not? They have predicates, and nothing is asked for all of them. */
static bool is_of_borders(Gpu *gpu, const GpuAccess *access, unsigned width) {
    return is_at_borders(access) && width > 1 && gpu_predicated_width(gpu, access, width) == width &&
           !gpu_is_whole_in_vectors(gpu, access, width);
}

static TileValue *load_lines(Gpu *gpu, GpuAccess *access) {
    unsigned width = gpu_aligned_width(access, gpu_vector_width(access));
    bool scattered = gpu_is_scattered(access);
    unsigned shift = scattered ? 0 : gpu_shift(gpu, access, width);
    if (shift) return load_across(gpu, access, width, shift);
    scattered = scattered || gpu_misses_vectors(gpu, access, width); /* one by one, without masks inside of the tensor */
    TileValue *whole = gpu_is_inside(gpu, access);
    if (!scattered) whole = gpu_and(gpu, whole, gpu_is_in_vectors(gpu, access, width));
    if (!whole) return scattered ? load_elements(gpu, access, false) : load_vectors(gpu, access, width, false);
    if (!scattered && is_of_borders(gpu, access, width)) return load_vectors(gpu, access, width, true);
    TileBuilder outer = gpu->b;
    const TileType *type = gpu_type(gpu, &access->layout, access->type->scalar);
    TileOp *choice = tile_build_if(&outer, whole, &type, 1);
    gpu_enter(gpu, &choice->regions[0]);
    gpu_end_region(gpu, scattered ? load_elements(gpu, access, false) : load_vectors(gpu, access, width, false));
    gpu_enter(gpu, &choice->regions[1]);
    gpu_end_region(gpu, load_some(gpu, access, width, scattered));
    gpu->b = outer;
    return tile_op_result(choice, 0);
}

/* Where rows are odd by what is known of their length, they may still begin at aligned addresses: a part of a wider tensor. */
static TileValue *lower_tile_load(Gpu *gpu, GpuAccess *access) {
    GpuTurned turned;
    if (access->gathers || access->mask) return load_picked(gpu, access);
    if (!gpu_is_turned(access, &turned))
        return gpu_is_of_odd_rows(access) ? load_elements(gpu, access, true) : load_lines(gpu, access);
    unsigned width = gpu_aligned_width(access, gpu_vector_width(access));
    TileValue *whole = gpu_and(gpu, gpu_is_inside(gpu, access), gpu_is_in_vectors(gpu, access, width));
    if (!whole) return load_vectors(gpu, access, width, false);
    TileBuilder outer = gpu->b;
    const TileType *type = gpu_type(gpu, &access->layout, access->type->scalar);
    TileOp *choice = tile_build_if(&outer, whole, &type, 1);
    gpu_enter(gpu, &choice->regions[0]);
    gpu_end_region(gpu, load_vectors(gpu, access, width, false));
    gpu_enter(gpu, &choice->regions[1]);
    gpu_read_access(gpu, access->op, access->type, &turned.layout, access);
    gpu_end_region(gpu, gpu_turn(gpu, load_lines(gpu, access), &turned));
    gpu->b = outer;
    return tile_op_result(choice, 0);
}

void gpu_lower_load(Gpu *gpu, TileOp *op) {
    GpuAccess access;
    gpu_read_access(gpu, op, op->results[0].type, NULL, &access);
    TileValue *value;
    if (tile_type_is_tile(access.type)) {
        value = lower_tile_load(gpu, &access);
    } else {
        TileValue *mask = access.mask, *fill = access.fill;
        if (mask && !fill) fill = tile_build_bits(&gpu->b, access.type, 0);
        value = tile_build_load(&gpu->b, access.type, access.base, mask, mask ? fill : NULL, 0);
    }
    tile_map_set(&gpu->values, &op->results[0], value);
}

/* ---- stores ---- */

/* Can two lanes store the same element? If gathers or strides of 0 are possible, only run time decides. */
static bool lanes_may_alias(const GpuAccess *access) {
    bool alias = access->gathers;
    for (unsigned d = 0; d < access->rank; d++) {
        int64_t step;
        const GpuDimension *dimension = &access->dimensions[d];
        bool range = dimension->kind == TILE_ACCESS_RANGE;
        alias |= range && (!tile_value_integer(dimension->step, &step) || !step);
    }
    return alias;
}

/* Has no thread an element in the register that exists? The register's part of an index is what all threads have at least. */
static bool never_exists(const GpuAccess *access, uint32_t reg) {
    int64_t end;
    for (unsigned d = 0; d < access->rank; d++) {
        const GpuDimension *dimension = &access->dimensions[d];
        if (dimension->kind == TILE_ACCESS_RANGE && tile_value_integer(dimension->hi, &end) &&
            gpu_register_index(&access->layout, (unsigned)dimension->axis, reg) >= end)
            return true;
    }
    return false;
}

static void store_elements(Gpu *gpu, const GpuAccess *elements, TileValue *value, TileValue *first, bool masked) {
    const GpuAccess here = with_distances_here(gpu, elements), *access = &here;
    TileValue *address = gpu_access_address(gpu, access, 0);
    for (uint32_t r = 0; r < tile_layout_registers(&access->layout); r++) {
        if (r) address = next_address(gpu, access, r, address);
        if (masked && never_exists(access, r)) continue;
        TileValue *mask = masked ? gpu_and(gpu, first, gpu_access_mask(gpu, access, r)) : first;
        TileOp *store = tile_build_store(&gpu->b, gpu_register(gpu, value, r), address, mask, 0);
        if (lanes_may_alias(access))
            tile_op_set_integer(gpu->module, store, TILE_ATTRIBUTE_MEETS, gpu->aliasing_stores);
    }
}

/* Begins a branch of those threads for which the condition holds. */
static TileOp *begin_if(Gpu *gpu, TileBuilder *outer, TileValue *condition) {
    TileOp *choice = tile_build_if(outer, condition, NULL, 0);
    tile_op_set_integer(gpu->module, choice, TILE_ATTRIBUTE_DIVERGENT, 1);
    gpu_enter(gpu, &choice->regions[0]);
    return choice;
}

static void end_if(Gpu *gpu, TileOp *choice, const TileBuilder *outer) {
    gpu_end_region(gpu, NULL);
    gpu_enter(gpu, &choice->regions[1]);
    gpu_end_region(gpu, NULL);
    gpu->b = *outer;
}

static void store_vector(Gpu *gpu, const GpuAccess *access, TileValue *value, uint32_t reg, unsigned width,
                         TileName cache, TileValue *mask) {
    TileValue *registers[GPU_ACCESS_BYTES], *whole = value;
    uint32_t count = tile_layout_registers(&access->layout);
    for (uint32_t i = 0; i < width && count != width; i++) registers[i] = gpu_register(gpu, value, reg + i);
    if (count != width) whole = gpu_join(gpu, registers, width);
    if (mask) mask = splat_mask(gpu, mask, whole->type);
    TileOp *store = tile_build_store(&gpu->b, whole, gpu_access_address(gpu, access, reg), mask,
                                     (int64_t)width * tile_scalar_bytes(access->type->scalar));
    if (cache != TILE_CACHE_DEFAULT) tile_op_set_integer(gpu->module, store, TILE_ATTRIBUTE_CACHE, cache);
    if (lanes_may_alias(access)) tile_op_set_integer(gpu->module, store, TILE_ATTRIBUTE_MEETS, gpu->aliasing_stores);
}

static void store_vectors(Gpu *gpu, const GpuAccess *whole_access, TileValue *value, TileValue *first, unsigned width,
                          bool masked) {
    const GpuAccess dense = gpu_as_dense(gpu, whole_access), *access = &dense;
    TileName cache = cache_of(gpu, access);
    TileBuilder outer = gpu->b;
    TileOp *choice = first ? begin_if(gpu, &outer, first) : NULL;
    for (uint32_t r = 0; r < tile_layout_registers(&access->layout); r += width) {
        TileValue *mask = masked ? gpu_access_mask(gpu, access, r) : NULL;
        TileBuilder inner = gpu->b;
        bool words = width * tile_scalar_bytes(access->type->scalar) % sizeof(uint32_t) == 0 && access->type->scalar != TILE_BOOL;
        TileOp *some = mask && !(words && is_at_borders(access)) ? begin_if(gpu, &inner, mask) : NULL;
        store_vector(gpu, access, value, r, width, cache, some ? NULL : mask);
        if (some) end_if(gpu, some, &inner);
    }
    if (choice) end_if(gpu, choice, &outer);
}

/* In vectors, each under one predicate, where no limit lies inside of one, else element by element. */
static void store_predicated(Gpu *gpu, const GpuAccess *access, TileValue *value, TileValue *first, unsigned width) {
    TileValue *whole = gpu_is_whole_in_vectors(gpu, access, width);
    if (!whole) {
        store_vectors(gpu, access, value, first, width, true);
        return;
    }
    TileBuilder outer = gpu->b;
    TileOp *choice = tile_build_if(&outer, whole, NULL, 0);
    gpu_enter(gpu, &choice->regions[0]);
    store_vectors(gpu, access, value, first, width, true);
    gpu_end_region(gpu, NULL);
    gpu_enter(gpu, &choice->regions[1]);
    store_elements(gpu, access, value, first, true);
    gpu_end_region(gpu, NULL);
    gpu->b = outer;
}

/* Of a tile of which lanes may be invalid. */
static void store_some(Gpu *gpu, const GpuAccess *access, TileValue *value, TileValue *first, unsigned width,
                       bool scattered) {
    unsigned narrow = gpu_predicated_width(gpu, access, width);
    if (scattered || narrow == 1)
        store_elements(gpu, access, value, first, true);
    else
        store_predicated(gpu, access, value, first, narrow);
}

static void store_lines(Gpu *gpu, GpuAccess *access, TileValue *value) {
    TileValue *first = gpu_holds_first_copy(gpu, &access->layout);
    bool scattered = gpu_is_scattered(access) || access->gathers, predicated = !is_bounded_by_ranges(access);
    unsigned picked = access->gathers || access->mask ? gpu_picked_width(access) : 1;
    if (picked > 1) { /* rows that go to where an index says, or that a mask chooses: each vector is under the predicate of its row */
        store_predicated(gpu, access, value, first, picked);
        return;
    }
    unsigned width = predicated ? 1 : gpu_aligned_width(access, gpu_vector_width(access));
    TileValue *whole = predicated ? NULL : gpu_is_inside(gpu, access);
    if (!predicated && !scattered) whole = gpu_and(gpu, whole, gpu_is_in_vectors(gpu, access, width));
    if (predicated || (!whole && scattered)) {
        store_elements(gpu, access, value, first, predicated);
        return;
    }
    bool borders = whole && !scattered && is_of_borders(gpu, access, width);
    if (!whole || borders) {
        store_vectors(gpu, access, value, first, width, borders);
        return;
    }
    TileBuilder outer = gpu->b;
    TileOp *choice = tile_build_if(&outer, whole, NULL, 0);
    gpu_enter(gpu, &choice->regions[0]);
    if (scattered)
        store_elements(gpu, access, value, first, false);
    else
        store_vectors(gpu, access, value, first, width, false);
    gpu_end_region(gpu, NULL);
    gpu_enter(gpu, &choice->regions[1]);
    store_some(gpu, access, value, first, width, scattered);
    gpu_end_region(gpu, NULL);
    gpu->b = outer;
}

static void lower_tile_store(Gpu *gpu, GpuAccess *access, TileValue *value) {
    GpuTurned turned;
    if (!gpu_is_turned(access, &turned)) {
        if (gpu_is_of_odd_rows(access))
            store_elements(gpu, access, value, gpu_holds_first_copy(gpu, &access->layout), true);
        else
            store_lines(gpu, access, value);
        return;
    }
    unsigned width = gpu_aligned_width(access, gpu_vector_width(access));
    TileValue *whole = gpu_and(gpu, gpu_is_inside(gpu, access), gpu_is_in_vectors(gpu, access, width));
    if (!whole) {
        store_vectors(gpu, access, value, gpu_holds_first_copy(gpu, &access->layout), width, false);
        return;
    }
    TileBuilder outer = gpu->b;
    TileOp *choice = tile_build_if(&outer, whole, NULL, 0);
    gpu_enter(gpu, &choice->regions[0]);
    store_vectors(gpu, access, value, gpu_holds_first_copy(gpu, &access->layout), width, false);
    gpu_end_region(gpu, NULL);
    gpu_enter(gpu, &choice->regions[1]);
    gpu_read_access(gpu, access->op, access->type, &turned.layout, access);
    store_lines(gpu, access, gpu_turn(gpu, value, &turned));
    gpu_end_region(gpu, NULL);
    gpu->b = outer;
}

/* A scalar is stored by one thread. A barrier makes it visible to later loads of the block. */
void gpu_lower_store(Gpu *gpu, TileOp *op) {
    GpuAccess access;
    gpu_read_access(gpu, op, tile_op_operand(op, 1)->type, NULL, &access);
    TileValue *value = gpu_value(gpu, tile_op_operand(op, 1));
    gpu->aliasing_stores++;
    if (tile_type_is_tile(access.type)) {
        lower_tile_store(gpu, &access, gpu_settle_sums(gpu, value, tile_op_operand(op, 1)));
        return;
    }
    TileValue *first = gpu_binary(gpu, TILE_OP_EQ, gpu->thread, gpu_i64(gpu, 0));
    TileValue *mask = gpu_and(gpu, first, access.mask);
    tile_build_store(&gpu->b, value, access.base, mask, 0);
}
