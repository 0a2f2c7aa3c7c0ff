/* Type rules of ops of a warpgroup, and of barriers of a part of a block. */
#include "lang/ir/rules.h"

enum { DESCRIPTOR_BYTES = 16, MOST_DESCRIBED = 0x3fff * DESCRIPTOR_BYTES, FRAGMENT_BITS = 128, MOST_COLUMNS = 256 };

const char *tile_rule_barrier(const TileRule *r) {
    bool number = tile_op_get(r->op, TILE_ATTRIBUTE_NUMBER), threads = tile_op_get(r->op, TILE_ATTRIBUTE_THREADS);
    int64_t count = tile_op_integer(r->op, TILE_ATTRIBUTE_THREADS, TILE_WARP_THREADS);
    if (number != threads) return "a named barrier has a number, and threads";
    int64_t name = tile_op_integer(r->op, TILE_ATTRIBUTE_NUMBER, 1);
    if (name < 1 || name >= TILE_NAMED_BARRIERS) return "number is not 1 .. 15";
    int64_t turns = tile_op_integer(r->op, TILE_ATTRIBUTE_TURNS, 1);
    if (turns < 1 || name + turns > TILE_NAMED_BARRIERS || (turns > 1 && !number)) return "turns are not those of 15 named barriers";
    bool warps = count > 0 && count % TILE_WARP_THREADS == 0 && count <= TILE_MAX_THREADS;
    return warps ? NULL : "threads is no multiple of 32 up to 1024";
}

const char *tile_rule_set_registers(const TileRule *r) {
    int64_t count = tile_op_integer(r->op, TILE_ATTRIBUTE_REGISTERS, 0);
    bool good = count >= TILE_MIN_REGISTERS && count <= TILE_MAX_REGISTERS && count % 8 == 0;
    return good ? NULL : "registers is no multiple of 8 from 24 to 256";
}

/* ---- products ---- */

static bool is_described(int64_t bytes) {
    return bytes >= 0 && bytes <= MOST_DESCRIBED && bytes % DESCRIPTOR_BYTES == 0;
}

const char *tile_rule_wgmma_descriptor(const TileRule *r) {
    const TileType *place = tile_rule_operand(r, 0);
    int64_t swizzle = tile_op_integer(r->op, TILE_ATTRIBUTE_SWIZZLE, -1);
    if (place->kind != TILE_TYPE_POINTER || place->space != TILE_SPACE_SHARED)
        return "the matrix lies in shared memory";
    if (swizzle && swizzle != 32 && swizzle != 64 && swizzle != 128) return "swizzle is not 0, 32, 64 or 128";
    if (!is_described(tile_op_integer(r->op, TILE_ATTRIBUTE_STRIDE, -1)) ||
        !is_described(tile_op_integer(r->op, TILE_ATTRIBUTE_LEADING, -1)))
        return "stride or leading is no multiple of 16 up to 262128";
    return tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_I64));
}

static const char *check_elements(TileScalar a, TileScalar b) {
    bool floats = tile_scalar_is_float(a) && tile_scalar_is_float(b),
         integers = tile_scalar_is_int(a) && tile_scalar_is_int(b);
    if (tile_scalar_bits(a) == 8 && tile_scalar_bits(b) == 8 && (floats || integers)) return NULL;
    return a == b && (a == TILE_F16 || a == TILE_BF16 || a == TILE_F32)
               ? NULL
               : "multiplies f16, bf16 or f32 with its like, 8-bit floats, or 8-bit integers";
}

static const char *check_transposed(const TileRule *r, TileScalar scalar, bool described) {
    const TileAttribute *transposed = tile_op_get(r->op, TILE_ATTRIBUTE_TRANSPOSED_AB);
    if (!transposed) return NULL;
    if (transposed->count != 2) return "transposed_ab is not one number for a and one for b";
    for (unsigned i = 0; i < 2; i++)
        if (transposed->integers[i] != 0 && transposed->integers[i] != 1) return "transposed_ab is not 0 or 1";
    if (transposed->integers[0] && !described) return "registers are not transposed";
    bool any = transposed->integers[0] || transposed->integers[1];
    return any && tile_scalar_bits(scalar) != 16 ? "only elements of 16 bits are transposed" : NULL;
}

static const char *check_sums(const TileRule *r, const TileType *sums, TileScalar element) {
    TileScalar scalar = tile_dot_accumulator(element);
    if (!sums) return "the result type has to be given";
    if (sums->kind != TILE_TYPE_VECTOR || sums->scalable || sums->scalar != scalar)
        return tile_rule_complain(r, "the result is no vector of %s", tile_scalar_name(scalar));
    int64_t columns = 2 * sums->extent[0], step = tile_scalar_is_int(element) && columns > 32 ? 16 : 8;
    if (columns < 8 || columns > MOST_COLUMNS || columns % step)
        return tile_rule_complain(r, "%lld columns are no multiple of %lld from 8 to 256", (long long)columns,
                                  (long long)step);
    return NULL;
}

static const char *check_a(const TileType *a, TileScalar scalar) {
    if (tile_rule_is_i64(a)) return NULL;
    bool fragment = a->kind == TILE_TYPE_VECTOR && !a->scalable && a->scalar == scalar &&
                    a->extent[0] * (int64_t)tile_scalar_bits(scalar) == FRAGMENT_BITS;
    return fragment ? NULL : "a is neither a descriptor nor 4 registers of the elements' type";
}

const char *tile_rule_wgmma(const TileRule *r) {
    const TileAttribute *types = tile_op_get(r->op, TILE_ATTRIBUTE_TYPES),
                        *parts = tile_op_get(r->op, TILE_ATTRIBUTE_PARTS);
    if (types->count != 2 || !tile_type_is_scalar(types->types[0]) || !tile_type_is_scalar(types->types[1]))
        return "types names the element types of a and b";
    bool adds = tile_op_has_part(r->op, TILE_PARTS_INIT);
    if ((parts ? parts->count : 0) != (uint32_t)adds || r->op->operand_count != 2u + adds)
        return "takes a and b, and perhaps sums, which parts = [init] says";
    TileScalar a = types->types[0]->scalar;
    const char *error = check_elements(a, types->types[1]->scalar);
    if (!error) error = check_a(tile_rule_operand(r, 0), a);
    if (!error && !tile_rule_is_i64(tile_rule_operand(r, 1))) error = "b is no descriptor";
    if (!error) error = check_transposed(r, a, tile_rule_is_i64(tile_rule_operand(r, 0)));
    if (!error && adds) error = tile_rule_result(r, 0, tile_rule_operand(r, 2));
    return error ? error : check_sums(r, r->result[0], a);
}

const char *tile_rule_wgmma_wait(const TileRule *r) {
    if (tile_op_integer(r->op, TILE_ATTRIBUTE_PENDING, -1) < 0 || tile_op_integer(r->op, TILE_ATTRIBUTE_PENDING, 0) > 7)
        return "pending is not 0 .. 7";
    if (r->op->result_count != r->op->operand_count) return "has not one result for each operand";
    const char *error = NULL;
    for (unsigned i = 0; i < r->op->operand_count && !error; i++) {
        const TileType *type = tile_rule_operand(r, i);
        bool sums =
            type->kind == TILE_TYPE_VECTOR && !type->scalable && (type->scalar == TILE_F32 || type->scalar == TILE_I32);
        error = sums ? tile_rule_result(r, i, type) : "an operand is no vector of sums";
    }
    return error;
}
