/* Type rules of ops on the tile registers of AMX. */
#include "lang/ir/rules.h"

enum { REGISTERS = 8 };

static const char *check_registers(const TileRule *r, unsigned count) {
    const TileAttribute *numbers = tile_op_get(r->op, TILE_ATTRIBUTE_TILE_REGISTERS);
    if (numbers->count != count) return tile_rule_complain(r, "tile_registers is not %u numbers", count);
    for (unsigned i = 0; i < count; i++)
        if (numbers->integers[i] < 0 || numbers->integers[i] >= REGISTERS) return "a tile register is not 0 .. 7";
    return NULL;
}

/* To memory of the thread or of a tensor. */
static bool is_pointer(const TileType *type) {
    return type->kind == TILE_TYPE_POINTER && type->space != TILE_SPACE_MAP;
}

const char *tile_rule_amx_configure(const TileRule *r) {
    return is_pointer(tile_rule_operand(r, 0)) ? NULL : "needs a pointer";
}

const char *tile_rule_amx_register(const TileRule *r) { return check_registers(r, 1); }

const char *tile_rule_amx_memory(const TileRule *r) {
    if (!is_pointer(tile_rule_operand(r, 0)) || !tile_rule_is_i64(tile_rule_operand(r, 1)))
        return "needs a pointer and i64 bytes";
    return check_registers(r, 1);
}

const char *tile_rule_amx_dot(const TileRule *r) {
    const TileAttribute *types = tile_op_get(r->op, TILE_ATTRIBUTE_TYPES),
                        *numbers = tile_op_get(r->op, TILE_ATTRIBUTE_TILE_REGISTERS);
    const char *error = check_registers(r, 3);
    if (error) return error;
    if (types->count != 2) return "types names the element types of a and b";
    TileScalar a = types->types[0]->scalar, b = types->types[1]->scalar;
    bool bytes = tile_scalar_is_int(a) && tile_scalar_is_int(b) && tile_scalar_bits(a) == 8 && tile_scalar_bits(b) == 8;
    if (!bytes && (a != TILE_BF16 || b != TILE_BF16)) return "multiplies bf16, or 8-bit integers";
    const int64_t *n = numbers->integers;
    return n[0] != n[1] && n[0] != n[2] && n[1] != n[2] ? NULL : "the three tile registers differ";
}
