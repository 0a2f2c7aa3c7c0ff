/* Type rules of ops for the threads of a block. */
#include "lang/ir/rules.h"
#include "lang/ir/tensor_map.h"

const char *tile_rule_thread(const TileRule *r) {
    return tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_I32));
}

const char *tile_rule_block(const TileRule *r) {
    return tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_I64));
}

const char *tile_rule_records(const TileRule *r) {
    return tile_rule_result(r, 0, tile_type_pointer(r->module->context, TILE_SPACE_GLOBAL));
}

const char *tile_rule_record(const TileRule *r) {
    return tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_I64));
}

const char *tile_rule_exchange(const TileRule *r) {
    const TileType *value = tile_rule_operand(r, 0), *lane = tile_rule_operand(r, 1);
    if (!tile_type_is_scalar(value) || tile_scalar_bits(value->scalar) != 32)
        return "the value is no scalar of 32 bits";
    if (!tile_type_is_scalar(lane) || lane->scalar != TILE_I32) return "the lane is not i32";
    return tile_rule_result(r, 0, value);
}

const char *tile_rule_exchange_halves(const TileRule *r) {
    const TileType *x = tile_rule_operand(r, 0), *upper = tile_rule_operand(r, 2), *lane = tile_rule_operand(r, 3);
    if (x->kind != TILE_TYPE_VECTOR || x->extent[0] * tile_scalar_bits(x->scalar) != 32) return "x is no vector of 32 bits";
    if (tile_rule_operand(r, 1) != x) return "x and y differ in type";
    if (!tile_type_is_scalar(upper) || upper->scalar != TILE_BOOL) return "upper is not bool";
    if (!tile_type_is_scalar(lane) || lane->scalar != TILE_I32) return "the lane is not i32";
    const char *error = tile_rule_result(r, 0, x);
    return error ? error : tile_rule_result(r, 1, x);
}

const char *tile_rule_uniform(const TileRule *r) {
    const TileType *x = tile_rule_operand(r, 0);
    return tile_type_is_scalar(x) && x->scalar == TILE_I32 ? tile_rule_result(r, 0, x) : "x is not i32";
}

const char *tile_rule_elect(const TileRule *r) {
    return tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_BOOL));
}

const char *tile_rule_here(const TileRule *r) {
    const TileType *x = tile_rule_operand(r, 0);
    return tile_rule_is_i64(x) ? tile_rule_result(r, 0, x) : "x is not i64";
}

const char *tile_rule_defined_where(const TileRule *r) {
    const TileType *x = tile_rule_operand(r, 0), *condition = tile_rule_operand(r, 1);
    if (!tile_type_is_scalar(x)) return "x is no scalar";
    if (!tile_type_is_scalar(condition) || condition->scalar != TILE_BOOL) return "the condition is no bool";
    return tile_rule_result(r, 0, x);
}

/* ---- copies ---- */

static bool points_to(const TileType *type, TileSpace space) {
    return type->kind == TILE_TYPE_POINTER && type->space == space;
}

const char *tile_rule_copy_async(const TileRule *r) {
    unsigned masks = tile_op_has_part(r->op, TILE_PARTS_MASK), parts = masks;
    if (tile_op_get(r->op, TILE_ATTRIBUTE_PARTS)) parts = tile_op_get(r->op, TILE_ATTRIBUTE_PARTS)->count;
    if (r->op->operand_count != 3 + masks || parts != masks)
        return "takes two addresses, a number of bytes, and perhaps a mask";
    if (masks && (!tile_type_is_scalar(tile_rule_operand(r, 3)) || tile_rule_operand(r, 3)->scalar != TILE_BOOL))
        return "the mask is not bool";
    int64_t bytes = tile_op_integer(r->op, TILE_ATTRIBUTE_BYTES, 0);
    if (bytes != 4 && bytes != 8 && bytes != 16) return "bytes is not 4, 8 or 16";
    if (!points_to(tile_rule_operand(r, 0), TILE_SPACE_SHARED) ||
        !points_to(tile_rule_operand(r, 1), TILE_SPACE_GLOBAL))
        return "copies from global to shared memory";
    const TileType *count = tile_rule_operand(r, 2);
    return tile_type_is_scalar(count) && count->scalar == TILE_I32 ? NULL : "the number of bytes is not i32";
}

const char *tile_rule_copy_wait(const TileRule *r) {
    return tile_op_integer(r->op, TILE_ATTRIBUTE_PENDING, -1) >= 0 ? NULL : "pending is negative";
}

/* ---- channels ---- */

const char *tile_rule_channel(const TileRule *r) {
    int64_t slots = tile_op_integer(r->op, TILE_ATTRIBUTE_SLOTS, 0);
    if (slots < 1 || slots > TILE_MAX_STAGES) return tile_rule_complain(r, "has 1 to %d slots", TILE_MAX_STAGES);
    if (!r->result[0]) return "the result type has to be given";
    return r->result[0]->kind == TILE_TYPE_CHANNEL ? NULL : "the result is no channel";
}

const char *tile_rule_channel_take(const TileRule *r) {
    unsigned count = r->op->operand_count;
    if (count < 1 || count > 2 || tile_rule_operand(r, 0)->kind != TILE_TYPE_CHANNEL)
        return "needs a channel, and perhaps the number of a slot";
    if (count == 2 && !tile_rule_is_i64(tile_rule_operand(r, 1))) return "the number of the slot is not i64";
    if (tile_op_integer(r->op, TILE_ATTRIBUTE_PENDING, 0) < 0) return "pending is negative";
    return tile_rule_result(r, 0, tile_type_slot(r->module->context, tile_rule_operand(r, 0)));
}

/* The verifier checks which channel the slot belongs to (verify_channels.c). */
const char *tile_rule_channel_end(const TileRule *r) {
    return points_to(tile_rule_operand(r, 0), TILE_SPACE_SHARED) ? NULL : "needs a slot of a channel";
}

const char *tile_rule_turn(const TileRule *r) {
    if (!tile_rule_is_i64(tile_rule_operand(r, 0))) return "the place of a program is i64";
    return r->op->id == TILE_OP_TURN ? tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_BOOL)) : NULL;
}

/* ---- mbarriers ---- */

/* The greatest count of an mbarrier, for arrivals and for bytes. */
enum { MOST_COUNTED = (1 << 20) - 1 };

const char *tile_rule_cluster_rank(const TileRule *r) {
    return tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_I32));
}

static bool has_word_or_two(TileScalar scalar) { return tile_scalar_bits(scalar) == 32 || tile_scalar_bits(scalar) == 64; }

/* The verifier knows how many blocks there are. */
static const char *why_no_part(const TileRule *r, const TileType *whole) {
    const TileType *part = r->result[0];
    int64_t axis = tile_op_integer(r->op, TILE_ATTRIBUTE_AXIS, 0);
    if (!tile_type_is_tile(whole) || axis < 0 || axis >= whole->rank) return "the tile has no such axis";
    bool same = tile_type_is_tile(part) && part->scalar == whole->scalar && part->rank == whole->rank;
    for (unsigned a = 0; a < whole->rank && same; a++)
        same = a == axis ? whole->extent[a] % part->extent[a] == 0 : whole->extent[a] == part->extent[a];
    return same ? NULL : "the result is no part of the tile along its axis";
}

const char *tile_rule_cluster_reduce(const TileRule *r) {
    enum { GRAIN = 16 };
    const TileType *type = tile_rule_operand(r, 0);
    int64_t offset = tile_op_integer(r->op, TILE_ATTRIBUTE_OFFSET, -1);
    if (!tile_type_is_scalar(type) && !tile_type_is_tile(type)) return "needs a scalar or a tile";
    if (!has_word_or_two(type->scalar)) return "elements have 32 or 64 bits";
    if (offset < 0 || offset % GRAIN) return "the offset is no multiple of 16";
    return tile_op_get(r->op, TILE_ATTRIBUTE_AXIS) && r->result[0] ? why_no_part(r, type) : tile_rule_result(r, 0, type);
}

const char *tile_rule_load_peer(const TileRule *r) {
    int64_t rank = tile_op_integer(r->op, TILE_ATTRIBUTE_RANK, -1);
    if (!points_to(tile_rule_operand(r, 0), TILE_SPACE_SHARED)) return "loads from shared memory";
    if (rank < 0 || rank >= TILE_MAX_CLUSTER) return "a cluster has 1 to 8 blocks";
    if (!r->result[0]) return "the result type has to be given";
    const TileType *type = r->result[0];
    bool scalar = tile_type_is_scalar(type) && has_word_or_two(type->scalar),
         words = type->kind == TILE_TYPE_VECTOR && tile_scalar_bits(type->scalar) == 32 && (tile_type_lanes(type) == 2 || tile_type_lanes(type) == 4);
    return scalar || words ? NULL : "the result is no scalar of 32 or 64 bits, nor two or four of 32";
}

const char *tile_rule_mbarrier(const TileRule *r) {
    int64_t count = tile_op_integer(r->op, TILE_ATTRIBUTE_ARRIVALS, 1),
            bytes = tile_op_integer(r->op, TILE_ATTRIBUTE_BYTES, 0);
    if (!points_to(tile_rule_operand(r, 0), TILE_SPACE_SHARED)) return "an mbarrier lies in shared memory";
    if (count < 1 || count > MOST_COUNTED) return "count is not 1 .. 1048575";
    if (bytes < 0 || bytes > MOST_COUNTED) return "bytes is not 0 .. 1048575";
    return bytes && tile_op_get(r->op, TILE_ATTRIBUTE_MULTICAST) ? "bytes are expected in one block only" : NULL;
}

static bool is_word(const TileType *type) { return tile_type_is_scalar(type) && type->scalar == TILE_I32; }

const char *tile_rule_mbarrier_expect(const TileRule *r) {
    if (!points_to(tile_rule_operand(r, 0), TILE_SPACE_SHARED)) return "an mbarrier lies in shared memory";
    return is_word(tile_rule_operand(r, 1)) ? NULL : "the number of bytes is not i32";
}

const char *tile_rule_mbarrier_wait(const TileRule *r) {
    if (!points_to(tile_rule_operand(r, 0), TILE_SPACE_SHARED)) return "an mbarrier lies in shared memory";
    return is_word(tile_rule_operand(r, 1)) ? NULL : "the parity is not i32";
}

const char *tile_rule_copy_bulk(const TileRule *r) {
    if (!points_to(tile_rule_operand(r, 0), TILE_SPACE_SHARED) ||
        !points_to(tile_rule_operand(r, 1), TILE_SPACE_GLOBAL))
        return "copies from global to shared memory";
    if (!is_word(tile_rule_operand(r, 2))) return "the number of bytes is not i32";
    return points_to(tile_rule_operand(r, 3), TILE_SPACE_SHARED) ? NULL : "an mbarrier lies in shared memory";
}

/* Coordinates, from operand `first` on: as many as the map's tensor has axes; of positions that are loaded also an offset for each axis of
 * the images. */
static const char *check_coordinates(const TileRule *r, unsigned map, unsigned first, bool loads) {
    const TileTensorMap *found = tile_value_map(r->op->operands[map].value);
    if (!found) return "the map is no parameter with this role";
    uint32_t offsets = loads ? tile_map_image_axes(found) : 0;
    if (!offsets && r->op->operand_count != first + found->rank)
        return tile_rule_complain(r, "needs %u coordinates, one for each axis of the map's tensor", found->rank);
    if (r->op->operand_count != first + found->rank + offsets)
        return tile_rule_complain(r, "needs %u coordinates, and %u offsets of positions", found->rank, offsets);
    for (unsigned i = first; i < r->op->operand_count; i++)
        if (!is_word(tile_rule_operand(r, i))) return "a coordinate is not i32";
    return NULL;
}

const char *tile_rule_copy_tensor(const TileRule *r) {
    if (r->op->operand_count < 4 || !points_to(tile_rule_operand(r, 0), TILE_SPACE_SHARED) ||
        !points_to(tile_rule_operand(r, 1), TILE_SPACE_MAP))
        return "copies by a tensor map to shared memory";
    if (!points_to(tile_rule_operand(r, 2), TILE_SPACE_SHARED)) return "an mbarrier lies in shared memory";
    return check_coordinates(r, 1, 3, true);
}

const char *tile_rule_store_tensor(const TileRule *r) {
    if (r->op->operand_count < 3 || !points_to(tile_rule_operand(r, 0), TILE_SPACE_MAP) ||
        !points_to(tile_rule_operand(r, 1), TILE_SPACE_SHARED))
        return "stores by a tensor map from shared memory";
    return check_coordinates(r, 0, 2, false);
}

const char *tile_rule_prefetch_tensor(const TileRule *r) {
    if (!r->op->operand_count || !points_to(tile_rule_operand(r, 0), TILE_SPACE_MAP)) return "asks for boxes of a tensor map";
    return r->op->operand_count > 1 ? check_coordinates(r, 0, 1, true) : NULL;
}

/* ---- matrices ---- */

/* Bits of a fragment in one lane. */
static int64_t fragment_bits(const TileType *type) {
    if (type->kind == TILE_TYPE_SCALAR) return (int64_t)tile_scalar_bits(type->scalar);
    bool whole = type->kind == TILE_TYPE_VECTOR && !type->scalable;
    return whole ? type->extent[0] * (int64_t)tile_scalar_bits(type->scalar) : 0;
}

static const char *check_matrices(const TileRule *r, const TileType *type, const TileType *place) {
    if (!points_to(place, TILE_SPACE_SHARED)) return "needs a place in shared memory";
    int64_t bits = fragment_bits(type);
    if (type->scalar == TILE_BOOL || (bits != 32 && bits != 64 && bits != 128))
        return "the matrices are not 1, 2 or 4 registers of 32 bits";
    bool transposed = tile_op_integer(r->op, TILE_ATTRIBUTE_TRANSPOSED, 0) != 0;
    if (transposed && tile_scalar_bits(type->scalar) > 16) return "only elements of 8 and 16 bits are transposed";
    return NULL;
}

const char *tile_rule_load_matrix(const TileRule *r) {
    const TileType *type = r->result[0];
    return type ? check_matrices(r, type, tile_rule_operand(r, 0)) : "the result type has to be given";
}

const char *tile_rule_store_matrix(const TileRule *r) {
    return check_matrices(r, tile_rule_operand(r, 0), tile_rule_operand(r, 1));
}

const char *tile_rule_mma(const TileRule *r) {
    const TileType *a = tile_rule_operand(r, 0), *b = tile_rule_operand(r, 1), *c = tile_rule_operand(r, 2);
    bool tf32 = tile_op_integer(r->op, TILE_ATTRIBUTE_PRECISION, TILE_PRECISION_IEEE) == TILE_PRECISION_TF32;
    bool narrow = tile_scalar_is_float(a->scalar) && tile_scalar_bits(a->scalar) <= 16,
         byte = tile_scalar_is_int(a->scalar) && tile_scalar_is_int(b->scalar) && tile_scalar_bits(a->scalar) == 8;
    if (!narrow && !byte && a->scalar != TILE_F64 && (a->scalar != TILE_F32 || !tf32))
        return "multiplies floats of 8, 16 and 64 bits, 8-bit integers, or f32 as tf32";
    if (tf32 && a->scalar != TILE_F32) return "only f32 is rounded to tf32";
    if (byte ? tile_scalar_bits(b->scalar) != 8 : a->scalar != b->scalar) return "the element types of a and b differ";
    if (fragment_bits(a) != 128 || fragment_bits(b) != 64) return "a is not 4 registers of 32 bits, or b not 2";
    if (c->kind != TILE_TYPE_VECTOR || c->extent[0] != 4 || c->scalar != tile_dot_accumulator(a->scalar))
        return "c is not a vector of 4 sums";
    return tile_rule_result(r, 0, c);
}
