/* Vectorisation of a loop's body: each scalar becomes a vector of its values in neighbouring iterations, unless it is
 * uniform or, like an address, affine; then only lane 0's value is computed. */
#include "cpu/vectorise.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"

enum { FEWEST_BELOW = 8 /* lanes of a word of bits */, MOST_TERMS = 16 /* of an offset */ };

void tile_lanes_init(TileLanes *lanes, TilePassContext *context, TileStrides *strides, TileBuilder builder,
                     int64_t width, TileValue *base, TileValue *mask, TileValue *count) {
    *lanes = (TileLanes){
        .context = context, .strides = strides, .builder = builder, .width = width, .mask = mask, .count = count};
    tile_map_init(&lanes->scalars, context->scratch);
    tile_map_init(&lanes->vectors, context->scratch);
    tile_map_init(&lanes->groups, context->scratch);
    tile_map_set(&lanes->scalars, strides->loop->regions[0].arguments[0], base);
}

static const TileType *vector_type(TileLanes *lanes, TileScalar scalar) {
    return tile_type_vector(lanes->context->module->context, scalar, lanes->width, lanes->scalable);
}

/* The value in lane 0. */
static TileValue *scalar_of(TileLanes *lanes, TileValue *value) {
    TileValue *found = tile_map_get(&lanes->scalars, value);
    return found ? found : value;
}

/* The offset of every lane: 0, s, 2 s, .., where s = step * factor. */
static TileValue *lane_offsets(TileLanes *lanes, TileSlope stride) {
    TileBuilder *b = &lanes->builder;
    const TileType *type = vector_type(lanes, TILE_I64);
    TileValue *step = tile_build_i64(b, stride.step);
    if (stride.factor) step = tile_build_binary(b, TILE_OP_MUL, scalar_of(lanes, stride.factor), step);
    return tile_build_binary(b, TILE_OP_MUL, tile_build_iota(b, type, 0), tile_build_splat(b, step, type));
}

TileValue *tile_lanes_vector(TileLanes *lanes, TileValue *value) {
    TileValue *found = tile_map_get(&lanes->vectors, value);
    if (found) return found;
    TileSlope stride = tile_stride_of(lanes->strides, value);
    const TileType *type = vector_type(lanes, value->type->scalar);
    found = tile_build_splat(&lanes->builder, scalar_of(lanes, value), type);
    if (stride.kind == TILE_SLOPE_AFFINE)
        found = tile_build_binary(&lanes->builder, TILE_OP_ADD, found, lane_offsets(lanes, stride));
    tile_map_set(&lanes->vectors, value, found);
    return found;
}

/* ---- memory ---- */

/* The active lanes: the chunk's, and the op's own mask. They are combined by a select, since the op's mask is poison
 * in inactive lanes. */
static TileValue *access_mask(TileLanes *lanes, const TileOp *op, unsigned index) {
    if (!tile_op_has_part(op, TILE_PARTS_MASK)) return lanes->mask;
    TileValue *own = tile_lanes_vector(lanes, tile_op_operand(op, index));
    if (!lanes->mask) return own;
    TileValue *none = tile_build_integer(&lanes->builder, own->type, 0);
    return tile_build_ternary(&lanes->builder, TILE_OP_SELECT, lanes->mask, own, none);
}

typedef struct Address {
    TileValue *pointer; /* of lane 0 */
    TileSlope stride;
    TileValue *offsets; /* vector of bytes; NULL: the address is affine */
} Address;

/* A varying address is a chain of additions to one that is uniform or affine. */
static Address address_of(TileLanes *lanes, TileValue *pointer) {
    Address address = {.stride = tile_stride_of(lanes->strides, pointer)};
    while (tile_stride_of(lanes->strides, pointer).kind == TILE_SLOPE_VARYING) {
        TileOp *add = pointer->op;
        TileValue *offset = tile_lanes_vector(lanes, tile_op_operand(add, 1));
        address.offsets =
            address.offsets ? tile_build_binary(&lanes->builder, TILE_OP_ADD, address.offsets, offset) : offset;
        pointer = tile_op_operand(add, 0);
    }
    TileSlope base = tile_stride_of(lanes->strides, pointer);
    if (address.offsets && base.kind == TILE_SLOPE_AFFINE)
        address.offsets = tile_build_binary(&lanes->builder, TILE_OP_ADD, address.offsets, lane_offsets(lanes, base));
    address.pointer = scalar_of(lanes, pointer);
    return address;
}

static bool is_contiguous(const Address *address, TileScalar scalar) {
    return !address->offsets && address->stride.kind == TILE_SLOPE_AFFINE && !address->stride.factor &&
           address->stride.step == (int64_t)tile_scalar_bytes(scalar);
}

static TileValue *offsets_of(TileLanes *lanes, const Address *address) {
    return address->offsets ? address->offsets : lane_offsets(lanes, address->stride);
}

static void copy_facts(TileLanes *lanes, TileOp *to, const TileOp *from) {
    const TileAttribute *cache = tile_op_get(from, TILE_ATTRIBUTE_CACHE), *alone = tile_op_get(from, TILE_ATTRIBUTE_ALONE);
    if (cache && (to->id == TILE_OP_LOAD || to->id == TILE_OP_STORE)) tile_op_set(lanes->context->module, to, *cache);
    if (alone) tile_op_set(lanes->context->module, to, *alone);
}

/* Machines without predicates have masked accesses of 32 and 64 bits only; a remainder of narrower elements is copied
 * through a staging buffer, element by element. */
static bool needs_staging(const TileLanes *lanes, const TileOp *op, TileScalar scalar) {
    return lanes->mask && lanes->count && !tile_op_has_part(op, TILE_PARTS_MASK) &&
           !lanes->context->target->has_masks && tile_scalar_bytes(scalar) < 4;
}

static TileValue *staging_buffer(TileLanes *lanes, TileScalar scalar) {
    TileFunc *func = lanes->builder.block->func;
    TileBuilder start = tile_builder_before(lanes->context->module, func->body.first);
    return tile_build_buffer(&start, lanes->width * (int64_t)tile_scalar_bytes(scalar), 64);
}

/* `like`: the access that they are for. */
static void copy_elements(TileLanes *lanes, TileValue *to, TileValue *from, TileScalar scalar, const TileOp *like) {
    TileModule *module = lanes->context->module;
    TileBuilder *b = &lanes->builder;
    TileOp *loop = tile_build_for(b, tile_build_i64(b, 0), lanes->count, tile_build_i64(b, 1), NULL, 0);
    TileBuilder inner = tile_builder_at_end(module, &loop->regions[0]);
    inner.location = b->location;
    TileValue *size = tile_build_i64(&inner, tile_scalar_bytes(scalar));
    TileValue *offset = tile_build_binary(&inner, TILE_OP_MUL, loop->regions[0].arguments[0], size);
    const TileType *type = tile_type_scalar(module->context, scalar);
    TileValue *element = tile_build_load(&inner, type, tile_build_ptr_add(&inner, from, offset), NULL, NULL, 0);
    copy_facts(lanes, element->op, like);
    copy_facts(lanes, tile_build_store(&inner, element, tile_build_ptr_add(&inner, to, offset), NULL, 0), like);
    tile_build_end(&inner, TILE_OP_YIELD, NULL, 0);
}

static TileValue *staged_load(TileLanes *lanes, const TileType *type, TileValue *pointer, const TileOp *like) {
    TileValue *buffer = staging_buffer(lanes, type->scalar);
    copy_elements(lanes, buffer, pointer, type->scalar, like);
    return tile_build_load(&lanes->builder, type, buffer, NULL, NULL, 0);
}

static void staged_store(TileLanes *lanes, TileValue *value, TileValue *pointer, const TileOp *like) {
    TileValue *buffer = staging_buffer(lanes, value->type->scalar);
    tile_build_store(&lanes->builder, value, buffer, NULL, 0);
    copy_elements(lanes, pointer, buffer, value->type->scalar, like);
}

/* The tensor's parameter that the pointer is derived from, and its value; NULL: it points into a buffer. */
static TileParameter *parameter_of(TileValue *pointer, TileValue **root) {
    for (const TileOp *add; (add = tile_value_def(pointer, TILE_OP_PTR_ADD));) pointer = tile_op_operand(add, 0);
    *root = pointer;
    bool argument = !pointer->op && !pointer->block->op && pointer->type->space == TILE_SPACE_GLOBAL;
    return argument ? &pointer->block->func->parameters[pointer->index] : NULL;
}

/* Adds the bytes that were added to the pointer, which are uniform, to all offsets. */
static TileValue *add_common(TileLanes *lanes, TileValue *pointer, TileValue *offsets) {
    TileBuilder *b = &lanes->builder;
    TileValue *bytes = NULL;
    for (const TileOp *add; (add = tile_value_def(pointer, TILE_OP_PTR_ADD)); pointer = tile_op_operand(add, 0)) {
        TileValue *more = tile_op_operand(add, 1);
        bytes = bytes ? tile_build_binary(b, TILE_OP_ADD, bytes, more) : more;
    }
    if (!bytes) return offsets;
    TileValue *common = tile_build_splat(b, tile_build_convert(b, bytes, TILE_I32), offsets->type);
    return tile_build_binary(b, TILE_OP_ADD, offsets, common);
}

/* A sum of 64 bits modulo 2**32, of words where these were extended. */
static TileValue *in_words(TileBuilder *b, TileValue *value, unsigned depth) {
    const TileOp *op = value->op;
    if (depth && op && op->id == TILE_OP_ADD) {
        TileValue *x = in_words(b, tile_op_operand(op, 0), depth - 1), *y = in_words(b, tile_op_operand(op, 1), depth - 1);
        return tile_build_binary(b, TILE_OP_ADD, x, y);
    }
    if (op && op->id == TILE_OP_CONVERT && tile_op_operand(op, 0)->type->scalar == TILE_I32) return tile_op_operand(op, 0);
    return tile_build_convert(b, value, TILE_I32);
}

/* If all offsets from the tensor's first element fit into 31 bits, lanes of 32 bits have offsets of 32 bits: one
 * instruction accesses twice as many lanes. Intermediate sums and products may wrap. Machines without predicates
 * access lanes one by one, by address. */
static void narrow_offsets(TileLanes *lanes, TileScalar scalar, TileValue **pointer, TileValue **offsets) {
    TileValue *root;
    if (!lanes->context->target->has_masks || tile_scalar_bytes(scalar) != 4) return;
    TileParameter *parameter = parameter_of(*pointer, &root);
    if (!parameter) return;
    parameter->asked_narrow = true;
    if (!parameter->facts.narrow) return;
    parameter->used_narrow = true;
    TileValue *narrow = add_common(lanes, *pointer, in_words(&lanes->builder, *offsets, MOST_TERMS));
    *offsets = tile_build_convert(&lanes->builder, narrow, TILE_I64);
    *pointer = root;
}

static TileValue *emit_gather(TileLanes *lanes, const TileType *type, const Address *address, TileValue *mask,
                              TileValue *fill) {
    TileValue *operands[4] = {address->pointer, offsets_of(lanes, address)};
    narrow_offsets(lanes, type->scalar, &operands[0], &operands[1]);
    int64_t parts[2];
    unsigned count = 2, part_count = 0;
    if (mask) {
        operands[count++] = mask;
        parts[part_count++] = TILE_PARTS_MASK;
    }
    if (fill) {
        operands[count++] = fill;
        parts[part_count++] = TILE_PARTS_FILL;
    }
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_PARTS, .count = part_count, .integers = parts};
    return &tile_build_op(&lanes->builder, TILE_OP_GATHER, operands, count, &attribute, part_count ? 1 : 0, &type, 1)
                ->results[0];
}

/* ---- groups ---- */

/* The accesses of a group, for the lanes that are emitted. Shuffles of 16-bit elements take several times as long as
 * those of 32 bits, so pairs of them are moved as one unit where masks do not part them. */
typedef struct Grouped {
    const TileGroup *group;
    const TileOp *member; /* one whose address and mask are there already */
    int64_t at;           /* its number */
    TileScalar scalar, unit;
    unsigned each;         /* elements of a unit */
    unsigned count, parts; /* those of the group, in units */
} Grouped;

static Grouped grouped(const TileGroup *group, const TileOp *member) {
    bool load = member->id == TILE_OP_LOAD;
    TileScalar scalar = load ? member->results[0].type->scalar : tile_op_operand(member, 0)->type->scalar;
    bool pairs = tile_scalar_bytes(scalar) == 2 && group->count % 2 == 0 && group->parts > (group->rows ? 2 : 1) &&
                 !tile_op_has_part(member, TILE_PARTS_MASK);
    Grouped g = {
        .group = group, .member = member, .scalar = scalar, .unit = pairs ? TILE_U32 : scalar, .each = 1u + pairs};
    g.count = group->count / g.each;
    g.parts = group->parts / g.each;
    while (group->members[g.at] != member) g.at++;
    return g;
}

/* Some lanes or elements of a vector need a mask: machines without predicates have it for 32 and 64 bits. */
static bool can_group(const TileLanes *lanes, const Grouped *g) {
    bool odd = g->group->rows && g->count != g->parts;
    bool masked = lanes->mask || odd || tile_op_has_part(g->member, TILE_PARTS_MASK);
    if (lanes->scalable || (lanes->mask && !lanes->count)) return false;
    return !masked || lanes->context->target->has_masks || tile_scalar_bytes(g->unit) >= 4;
}

static TileValue *mask_below(TileLanes *lanes, TileValue *base, TileValue *limit, int64_t width) {
    const TileType *type = tile_type_vector(lanes->context->module->context, TILE_BOOL, width, false);
    TileValue *operands[] = {base, limit};
    return &tile_build_op(&lanes->builder, TILE_OP_MASK_LT, operands, 2, NULL, 0, &type, 1)->results[0];
}

/* The address of a unit of lane 0, counted from the first member's. */
static TileValue *unit_address(TileLanes *lanes, const Grouped *g, int64_t unit) {
    TileValue *pointer = scalar_of(lanes, tile_op_named(g->member, TILE_OPERAND_ADDRESS));
    int64_t element = unit * g->each - g->at;
    TileValue *bytes = tile_build_i64(&lanes->builder, element * (int64_t)tile_scalar_bytes(g->scalar));
    return element ? tile_build_ptr_add(&lanes->builder, pointer, bytes) : pointer;
}

/* The mask of vector i of a range: elements that the members' own masks exclude, or that belong to inactive lanes. */
static TileValue *range_mask(TileLanes *lanes, const Grouped *g, int64_t i) {
    TileBuilder *b = &lanes->builder;
    TileValue *index, *limit, *mask = NULL, *first = tile_build_i64(b, i * lanes->width);
    tile_group_mask(lanes->strides, g->member, &index, &limit);
    if (index) {
        TileValue *ahead = tile_build_i64(b, i * lanes->width - g->at);
        mask = mask_below(lanes, tile_build_binary(b, TILE_OP_ADD, scalar_of(lanes, index), ahead),
                          scalar_of(lanes, limit), lanes->width);
    }
    if (!lanes->mask) return mask;
    TileValue *units = tile_build_binary(b, TILE_OP_MUL, lanes->count, tile_build_i64(b, g->count));
    TileValue *active = mask_below(lanes, first, units, lanes->width);
    return mask ? tile_build_binary(b, TILE_OP_AND, mask, active) : active;
}

static TileValue *row_address(TileLanes *lanes, const Grouped *g, TileValue *first, int64_t lane) {
    TileSlope slope = tile_stride_of(lanes->strides, tile_op_named(g->member, TILE_OPERAND_ADDRESS));
    TileValue *bytes = tile_build_i64(&lanes->builder, slope.step * lane);
    if (!lane) return first;
    if (slope.factor) bytes = tile_build_binary(&lanes->builder, TILE_OP_MUL, scalar_of(lanes, slope.factor), bytes);
    return tile_build_ptr_add(&lanes->builder, first, bytes);
}

/* The mask of a lane's row: a row may be shorter than its vector, and inactive lanes have none. */
static TileValue *row_mask(TileLanes *lanes, const Grouped *g, int64_t lane) {
    TileBuilder *b = &lanes->builder;
    TileValue *limit = tile_build_i64(b, g->count);
    if (!lanes->mask && g->count == g->parts) return NULL;
    if (lanes->mask) {
        TileValue *left = tile_build_binary(b, TILE_OP_SUB, lanes->count, tile_build_i64(b, lane));
        limit = tile_build_binary(b, TILE_OP_MIN, tile_build_binary(b, TILE_OP_MUL, left, limit), limit);
    }
    return mask_below(lanes, tile_build_i64(b, 0), limit, g->parts);
}

static TileValue *load_units(TileLanes *lanes, const Grouped *g, int64_t count, TileValue *address, TileValue *mask,
                             TileValue *fill) {
    const TileType *type = tile_type_vector(lanes->context->module->context, g->unit, count, false);
    int64_t align = g->each > 1 ? tile_scalar_bytes(g->scalar) : 0;
    TileValue *value = tile_build_load(&lanes->builder, type, address, mask, fill, align);
    copy_facts(lanes, value->op, g->member);
    return value;
}

static void load_rows(TileLanes *lanes, const Grouped *g, TileValue **vectors) {
    TileValue *rows[TILE_STRIPES], *first = unit_address(lanes, g, 0);
    for (int64_t l = 0; l < lanes->width; l++)
        rows[l] = load_units(lanes, g, g->parts, row_address(lanes, g, first, l), row_mask(lanes, g, l), NULL);
    tile_group_from_rows(&lanes->builder, rows, g->parts, lanes->width, vectors);
}

static void load_range(TileLanes *lanes, const Grouped *g, TileValue **vectors) {
    TileValue *filling = tile_op_named(g->member, TILE_OPERAND_FILLING);
    TileValue *fill = filling ? tile_lanes_vector(lanes, filling) : NULL;
    for (unsigned i = 0; i < g->count; i++)
        vectors[i] =
            load_units(lanes, g, lanes->width, unit_address(lanes, g, i * lanes->width), range_mask(lanes, g, i), fill);
}

/* The element of a pair. */
static TileValue *half_of(TileLanes *lanes, const Grouped *g, TileValue *pair, bool second) {
    TileBuilder *b = &lanes->builder;
    if (second) pair = tile_build_binary(b, TILE_OP_SHR, pair, tile_build_integer(b, pair->type, 16));
    return tile_build_bitcast(b, tile_build_convert(b, pair, TILE_U16), g->scalar);
}

static TileValue *pair_of(TileLanes *lanes, TileValue *first, TileValue *second) {
    TileBuilder *b = &lanes->builder;
    TileValue *low = tile_build_convert(b, tile_build_bitcast(b, first, TILE_U16), TILE_U32);
    TileValue *high = tile_build_convert(b, tile_build_bitcast(b, second, TILE_U16), TILE_U32);
    high = tile_build_binary(b, TILE_OP_SHL, high, tile_build_integer(b, high->type, 16));
    return tile_build_binary(b, TILE_OP_OR, low, high);
}

/* A range of units that is no power of two. */
static bool is_odd(const Grouped *g) { return !g->group->rows && g->count != g->parts; }

/* Emits all loads of the group that begins with this one; false: there is none. */
static bool emit_load_group(TileLanes *lanes, TileOp *op) {
    TileGroup group;
    TileValue *vectors[TILE_GROUP_MEMBERS];
    if (!tile_group_find(lanes->strides, op, &group)) return false;
    Grouped g = grouped(&group, op);
    if (!can_group(lanes, &g)) return false;
    if (group.rows)
        load_rows(lanes, &g, vectors);
    else
        load_range(lanes, &g, vectors);
    if (is_odd(&g))
        tile_group_split_odd(&lanes->builder, vectors, g.count);
    else
        tile_group_split(&lanes->builder, vectors, g.parts, g.parts);
    for (unsigned i = 0; i < group.count; i++) {
        TileValue *unit = vectors[i / g.each], *value = g.each == 1 ? unit : half_of(lanes, &g, unit, i % 2);
        tile_map_set(&lanes->vectors, &group.members[i]->results[0], value);
    }
    return true;
}

/* The units that the group stores; of those that rows do not have, any. */
static void gather_units(TileLanes *lanes, const Grouped *g, TileValue **vectors) {
    TileValue *values[TILE_GROUP_MEMBERS];
    for (unsigned i = 0; i < g->group->count; i++)
        values[i] = tile_lanes_vector(lanes, tile_op_operand(g->group->members[i], 0));
    for (unsigned i = 0; i < g->parts; i++) {
        TileValue **own = values + i * g->each;
        vectors[i] = i >= g->count ? vectors[0] : g->each == 1 ? own[0] : pair_of(lanes, own[0], own[1]);
    }
}

static void store_group(TileLanes *lanes, const TileGroup *group) {
    TileValue *vectors[TILE_GROUP_MEMBERS], *rows[TILE_STRIPES];
    Grouped g = grouped(group, group->members[0]);
    gather_units(lanes, &g, vectors);
    if (is_odd(&g))
        tile_group_merge_odd(&lanes->builder, vectors, g.count);
    else
        tile_group_merge(&lanes->builder, vectors, g.parts, g.parts);
    if (group->rows) tile_group_to_rows(&lanes->builder, vectors, g.parts, lanes->width, rows);
    TileValue *first = unit_address(lanes, &g, 0);
    for (int64_t i = 0; i < (group->rows ? lanes->width : (int64_t)g.count); i++) {
        TileValue *address = group->rows ? row_address(lanes, &g, first, i) : unit_address(lanes, &g, i * lanes->width);
        TileValue *mask = group->rows ? row_mask(lanes, &g, i) : range_mask(lanes, &g, i);
        int64_t align = g.each > 1 ? tile_scalar_bytes(g.scalar) : 0;
        copy_facts(lanes, tile_build_store(&lanes->builder, group->rows ? rows[i] : vectors[i], address, mask, align),
                   g.member);
    }
}

/* A member of a group of stores: the last one emits them; false: it is none. */
static bool emit_store_group(TileLanes *lanes, TileOp *op) {
    TileGroup *group = tile_map_get(&lanes->groups, op);
    if (!group) {
        group = TILE_NEW(lanes->context->scratch, TileGroup);
        if (!tile_group_find(lanes->strides, op, group)) return false;
        Grouped g = grouped(group, op);
        if (!can_group(lanes, &g)) return false;
        for (unsigned i = 0; i < group->count; i++) tile_map_set(&lanes->groups, group->members[i], group);
    }
    for (const TileOp *later = op->next; later; later = later->next)
        if (tile_map_get(&lanes->groups, later) == group) return true;
    store_group(lanes, group);
    return true;
}

static void emit_load(TileLanes *lanes, TileOp *op) {
    if (tile_map_get(&lanes->vectors, &op->results[0]) || emit_load_group(lanes, op)) return;
    const TileType *type = vector_type(lanes, op->results[0].type->scalar);
    Address address = address_of(lanes, tile_op_operand(op, 0));
    TileValue *filling = tile_op_named(op, TILE_OPERAND_FILLING), *fill = filling ? tile_lanes_vector(lanes, filling) : NULL;
    TileValue *mask = access_mask(lanes, op, 1), *result = NULL;
    if (!address.offsets && tile_stride_is_short(lanes->context->target, address.stride, type->scalar))
        result = tile_lanes_load_short(lanes, type, address.pointer, address.stride.step < 0, mask, fill);
    if (result) {
        tile_map_set(&lanes->vectors, &op->results[0], result);
        return;
    }
    if (is_contiguous(&address, type->scalar)) {
        if (needs_staging(lanes, op, type->scalar)) {
            result = staged_load(lanes, type, address.pointer, op);
        } else {
            result = tile_build_load(&lanes->builder, type, address.pointer, mask, fill,
                                     tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, 0));
            copy_facts(lanes, result->op, op);
        }
    } else {
        result = emit_gather(lanes, type, &address, mask, fill);
        copy_facts(lanes, result->op, op);
    }
    tile_map_set(&lanes->vectors, &op->results[0], result);
}

static TileOp *emit_scatter(TileLanes *lanes, TileValue *value, const Address *address, TileValue *mask) {
    TileValue *operands[4] = {value, address->pointer, offsets_of(lanes, address), mask};
    narrow_offsets(lanes, value->type->scalar, &operands[1], &operands[2]);
    int64_t part = TILE_PARTS_MASK;
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &part};
    return tile_build_op(&lanes->builder, TILE_OP_SCATTER, operands, mask ? 4 : 3, &attribute, mask ? 1 : 0, NULL, 0);
}

static void emit_store(TileLanes *lanes, TileOp *op) {
    if (emit_store_group(lanes, op)) return;
    TileValue *value = tile_lanes_vector(lanes, tile_op_operand(op, 0));
    Address address = address_of(lanes, tile_op_operand(op, 1));
    TileValue *mask = access_mask(lanes, op, 2);
    if (!is_contiguous(&address, value->type->scalar)) {
        copy_facts(lanes, emit_scatter(lanes, value, &address, mask), op);
    } else if (needs_staging(lanes, op, value->type->scalar)) {
        staged_store(lanes, value, address.pointer, op);
    } else {
        TileOp *store = tile_build_store(&lanes->builder, value, address.pointer, mask,
                                         tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, 0));
        copy_facts(lanes, store, op);
    }
}

/* ---- ops ---- */

/* Computes lane 0's value by the same op on lane 0's operands. */
static void emit_scalar(TileLanes *lanes, const TileOp *op) {
    TileOp *copy = tile_op_clone(lanes->context->module, op, &lanes->scalars);
    tile_builder_insert(&lanes->builder, copy);
}

/* Are these neighbouring numbers, from lane 0's on, that do not wrap? */
static bool are_neighbours(TileLanes *lanes, const TileValue *value) {
    TileSlope slope = tile_stride_of(lanes->strides, (TileValue *)value);
    if (value->type->scalar != TILE_I64 || slope.kind != TILE_SLOPE_AFFINE || slope.factor || slope.step != 1) return false;
    TileIndexRange range = tile_index_range(tile_pass_indices(lanes->context, tile_op_func(lanes->strides->loop)), value);
    return !range.because && range.hi < INT64_MAX;
}

/* Neighbouring numbers compared with one number: the lanes below it are the first ones. Machines with predicates make these from the number of
 * lanes, without the numbers. */
static bool emit_below(TileLanes *lanes, const TileOp *op) {
    if ((op->id != TILE_OP_LT && op->id != TILE_OP_GE) || !lanes->context->target->has_masks || lanes->width < FEWEST_BELOW) return false;
    TileValue *x = tile_op_operand(op, 0), *limit = tile_op_operand(op, 1);
    if (tile_stride_of(lanes->strides, limit).kind != TILE_SLOPE_UNIFORM || !are_neighbours(lanes, x)) return false;
    TileValue *operands[] = {scalar_of(lanes, x), scalar_of(lanes, limit)};
    const TileType *type = vector_type(lanes, TILE_BOOL);
    TileValue *below = &tile_build_op(&lanes->builder, TILE_OP_MASK_LT, operands, 2, NULL, 0, &type, 1)->results[0];
    if (op->id == TILE_OP_GE) below = tile_build_unary(&lanes->builder, TILE_OP_NOT, below);
    tile_map_set(&lanes->vectors, &op->results[0], below);
    return true;
}

static void emit_elementwise(TileLanes *lanes, const TileOp *op) {
    if (emit_below(lanes, op)) return;
    TileValue *operands[3];
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = tile_lanes_vector(lanes, tile_op_operand(op, i));
    const TileType *type = vector_type(lanes, op->results[0].type->scalar);
    TileOp *made = tile_build_op(&lanes->builder, (TileOpId)op->id, operands, op->operand_count, op->attributes,
                                 op->attribute_count, &type, 1);
    tile_map_set(&lanes->vectors, &op->results[0], &made->results[0]);
}

/* Vectors defined inside of the op do not dominate the ops after it. */
static void forget_inside(TileLanes *lanes, const TileOp *op) {
    for (size_t i = 0; i < lanes->vectors.count; i++) {
        TileMapEntry *entry = &lanes->vectors.entries[i];
        if (entry->value && !tile_value_outside(entry->value, op)) entry->value = NULL;
    }
}

/* A branch that all lanes take together. */
static void emit_branch(TileLanes *lanes, const TileOp *op) {
    TileBuilder *b = &lanes->builder, outer = *b;
    const TileType **types = TILE_NEW_ARRAY(lanes->context->scratch, const TileType *, op->result_count + 1);
    TileValue **yields = TILE_NEW_ARRAY(lanes->context->scratch, TileValue *, op->result_count + 1);
    for (unsigned i = 0; i < op->result_count; i++) types[i] = vector_type(lanes, op->results[i].type->scalar);
    TileOp *made = tile_build_if(b, scalar_of(lanes, tile_op_operand(op, 0)), types, op->result_count);
    for (unsigned r = 0; r < 2; r++) {
        *b = tile_builder_at_end(lanes->context->module, &made->regions[r]);
        b->location = op->location;
        tile_lanes_block(lanes, &op->regions[r]);
        for (unsigned i = 0; i < op->result_count; i++)
            yields[i] = tile_lanes_vector(lanes, tile_op_operand(op->regions[r].last, i));
        tile_build_end(b, TILE_OP_YIELD, yields, op->result_count);
        forget_inside(lanes, made);
    }
    *b = outer;
    for (unsigned i = 0; i < op->result_count; i++) tile_map_set(&lanes->vectors, &op->results[i], &made->results[i]);
}

/* An inner loop runs for all lanes together; its loop-carried values become vectors. Its reductions are serial. */
static void emit_loop(TileLanes *lanes, const TileOp *op) {
    TileBuilder *b = &lanes->builder, outer = *b;
    TileBlock *body = &op->regions[0];
    unsigned carried = op->result_count;
    TileValue **values = TILE_NEW_ARRAY(lanes->context->scratch, TileValue *, carried + 2);
    TileValue **yields = TILE_NEW_ARRAY(lanes->context->scratch, TileValue *, carried + 2);
    for (unsigned i = 0; i < carried; i++) values[i] = tile_lanes_vector(lanes, tile_loop_carried(op, i));
    TileOp *loop = tile_build_for(b, scalar_of(lanes, tile_op_operand(op, 0)), scalar_of(lanes, tile_op_operand(op, 1)),
                                  tile_build_i64(b, 1), values, carried);
    tile_map_set(&lanes->scalars, body->arguments[0], loop->regions[0].arguments[0]);
    for (unsigned i = 0; i < carried; i++) {
        tile_map_set(&lanes->vectors, body->arguments[1 + i], loop->regions[0].arguments[1 + i]);
        values[i] = loop->regions[0].arguments[1 + i];
    }
    *b = tile_builder_at_end(lanes->context->module, &loop->regions[0]);
    b->location = op->location;
    tile_lanes_block(lanes, body);
    for (unsigned i = 0; i < carried; i++) yields[i] = tile_lanes_vector(lanes, tile_op_operand(body->last, i));
    const TileAttribute *combine = tile_op_get(op, TILE_ATTRIBUTE_COMBINE);
    for (unsigned i = 0; combine && i < carried;)
        i += tile_combine(b, (TileName)combine->integers[i], values + i, yields + i);
    tile_build_end(b, TILE_OP_YIELD, combine ? values : yields, carried);
    *b = outer;
    forget_inside(lanes, loop);
    for (unsigned i = 0; i < carried; i++) tile_map_set(&lanes->vectors, &op->results[i], &loop->results[i]);
}

void tile_lanes_block(TileLanes *lanes, TileBlock *block) {
    for (TileOp *op = block->first; op != block->last; op = op->next) {
        lanes->builder.location = op->location;
        bool uniform =
            op->result_count == 1 && tile_stride_of(lanes->strides, &op->results[0]).kind != TILE_SLOPE_VARYING;
        if (uniform)
            emit_scalar(lanes, op);
        else if (op->id == TILE_OP_LOAD)
            emit_load(lanes, op);
        else if (op->id == TILE_OP_STORE)
            emit_store(lanes, op);
        else if (op->id == TILE_OP_LOOP)
            emit_loop(lanes, op);
        else if (op->id == TILE_OP_IF)
            emit_branch(lanes, op);
        else if (op->id != TILE_OP_PTR_ADD)
            emit_elementwise(lanes, op); /* pointer additions: see address_of */
    }
}

static bool can_emit_branch(TileStrides *strides, const TileOp *op) {
    return op->id == TILE_OP_IF && tile_stride_of(strides, tile_op_operand(op, 0)).kind == TILE_SLOPE_UNIFORM &&
           tile_lanes_can(strides, &op->regions[0]) && tile_lanes_can(strides, &op->regions[1]);
}

static bool can_emit_loop(TileStrides *strides, const TileOp *op) {
    for (unsigned i = 0; i < 2; i++)
        if (tile_stride_of(strides, tile_op_operand(op, i)).kind != TILE_SLOPE_UNIFORM) return false;
    bool reduce = tile_op_integer(op, TILE_ATTRIBUTE_LOOP_KIND, 0) == TILE_LOOP_KIND_REDUCE;
    if (reduce && tile_op_integer(op, TILE_ATTRIBUTE_ORDER, TILE_ORDER_SERIAL) == TILE_ORDER_STRIPES) return false;
    return tile_lanes_can(strides, &op->regions[0]);
}

/* Does a store have the same address in all iterations, such as a row of scratch? Then lanes cannot run together. A
 * reduction in stripes must be vectorised in any case: it does not load what it stores to a tensor, and as with
 * iterations, the last lane's value remains. */
static bool is_uniform_store(TileStrides *strides, const TileOp *op) {
    if (op->id != TILE_OP_STORE) return false;
    TileValue *address = tile_op_operand(op, 1), *root;
    if (tile_stride_of(strides, address).kind != TILE_SLOPE_UNIFORM) return false;
    bool stripes = tile_op_integer(strides->loop, TILE_ATTRIBUTE_ORDER, TILE_ORDER_SERIAL) == TILE_ORDER_STRIPES;
    return !stripes || !parameter_of(address, &root);
}

bool tile_lanes_can(TileStrides *strides, const TileBlock *block) {
    for (const TileOp *op = block->first; op != block->last; op = op->next) {
        TileOpClass class = (TileOpClass)tile_op_info((TileOpId)op->id)->class;
        bool simple = class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_CONST || op->id == TILE_OP_PTR_ADD ||
                      op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE;
        if (is_uniform_store(strides, op)) return false;
        if (!simple && (op->id != TILE_OP_LOOP || !can_emit_loop(strides, op)) && !can_emit_branch(strides, op)) return false;
    }
    return true;
}

/* ---- combining ---- */

/* Is (x, i) better than (acc, at)? NaN wins over all numbers, then the greater (or smaller) value, then the lower
 * index. */
static TileValue *comes_first(TileBuilder *b, TileOpId beyond, TileValue *const *acc, TileValue *const *x) {
    TileValue *better = tile_build_binary(b, beyond, x[0], acc[0]),
              *tie = tile_build_binary(b, TILE_OP_EQ, x[0], acc[0]);
    if (tile_scalar_is_float(x[0]->type->scalar)) {
        TileValue *x_nan = tile_build_unary(b, TILE_OP_ISNAN, x[0]),
                  *acc_nan = tile_build_unary(b, TILE_OP_ISNAN, acc[0]);
        TileValue *only_x = tile_build_binary(b, TILE_OP_AND, x_nan, tile_build_unary(b, TILE_OP_NOT, acc_nan));
        better = tile_build_binary(b, TILE_OP_OR, better, only_x);
        tie = tile_build_binary(b, TILE_OP_OR, tie, tile_build_binary(b, TILE_OP_AND, x_nan, acc_nan));
    }
    TileValue *lower = tile_build_binary(b, TILE_OP_LT, x[1], acc[1]);
    return tile_build_binary(b, TILE_OP_OR, better, tile_build_binary(b, TILE_OP_AND, tie, lower));
}

static unsigned combine_arg(TileBuilder *b, TileOpId beyond, TileValue **acc, TileValue *const *x) {
    TileValue *first = comes_first(b, beyond, acc, x);
    acc[0] = tile_build_ternary(b, TILE_OP_SELECT, first, x[0], acc[0]);
    acc[1] = tile_build_ternary(b, TILE_OP_SELECT, first, x[1], acc[1]);
    return 2;
}

unsigned tile_combine(TileBuilder *builder, TileName how, TileValue **acc, TileValue *const *x) {
    if (how == TILE_COMBINE_ARG_MAX) return combine_arg(builder, TILE_OP_GT, acc, x);
    if (how == TILE_COMBINE_ARG_MIN) return combine_arg(builder, TILE_OP_LT, acc, x);
    if (how != TILE_COMBINE_WITH) acc[0] = tile_build_binary(builder, tile_eval_combiner(how), acc[0], x[0]);
    return 1;
}
