/* Every elementwise op in mapping.def, at each type and width, compared with lang/scalar on random and special inputs:
 * the functions of one width are compiled together, and a function is one op between loads and a store. */
#include <stdio.h>
#include <string.h>

#include "lang/ir/eval.h"
#include "lang/scalar/scalar.h"
#include "support.h"

enum { MAX_LANES = 64, MAX_FUNCTIONS = 1024, ROUNDS = 24 };

typedef struct Case {
    TileOpId id;
    TileScalar from, to;
    unsigned operands;
} Case;

static const TileScalar all_types[] = {TILE_BOOL, TILE_I8,  TILE_I16, TILE_I32, TILE_I64, TILE_U8,
                                       TILE_U16,  TILE_U32, TILE_U64, TILE_F16, TILE_F32, TILE_F64};
enum { TYPE_COUNT = sizeof all_types / sizeof all_types[0] };

/* Is the op mapped directly at this type? From the table under test: other ops are expanded by earlier passes. */
static bool maps_at(TileOpId id, TileScalar scalar) {
    TileScalarClass class = tile_scalar_class(scalar);
    const bool is_float = class == TILE_CLASS_FLOAT, is_bool = class == TILE_CLASS_BOOL;
    switch (id) {
#define DIRECT(id, float_name, signed_name, unsigned_name, bool_name)                                                  \
    case TILE_OP_##id:                                                                                                 \
        return (const char *[]){[TILE_CLASS_FLOAT] = float_name,                                                       \
                                [TILE_CLASS_SIGNED] = signed_name,                                                     \
                                [TILE_CLASS_UNSIGNED] = unsigned_name,                                                 \
                                [TILE_CLASS_BOOL] = bool_name}[class] != NULL;
#define COMPARE(id, float_predicate, signed_predicate, unsigned_predicate)                                             \
    case TILE_OP_##id:                                                                                                 \
        return true;
#define CUSTOM(id, function)
#define GONE(id, pass)
#include "mlir_bridge/mapping.def"
#undef DIRECT
#undef COMPARE
#undef CUSTOM
#undef GONE
    case TILE_OP_NEG:
    case TILE_OP_ABS: return !is_bool;
    case TILE_OP_NOT: return !is_float;
    case TILE_OP_FMA: return scalar == TILE_F32 || scalar == TILE_F64;
    case TILE_OP_ISNAN:
    case TILE_OP_ISINF: return is_float;
    default: return false;
    }
}

static bool is_comparison(TileOpId id) {
    switch (id) {
#define DIRECT(id, float_name, signed_name, unsigned_name, bool_name)
#define COMPARE(id, float_predicate, signed_predicate, unsigned_predicate)                                             \
    case TILE_OP_##id:                                                                                                 \
        return true;
#define CUSTOM(id, function)
#define GONE(id, pass)
#include "mlir_bridge/mapping.def"
#undef DIRECT
#undef COMPARE
#undef CUSTOM
#undef GONE
    case TILE_OP_ISNAN:
    case TILE_OP_ISINF: return true;
    default: return false;
    }
}

static unsigned collect_cases(Case *cases) {
    unsigned count = 0;
    for (int id = 0; id < TILE_OP_COUNT; id++)
        for (unsigned t = 0; t < TYPE_COUNT; t++)
            if (tile_op_info((TileOpId)id)->class == TILE_CLASS_ELEMENTWISE && maps_at((TileOpId)id, all_types[t]))
                cases[count++] =
                    (Case){(TileOpId)id, all_types[t], is_comparison((TileOpId)id) ? TILE_BOOL : all_types[t],
                           (unsigned)tile_op_info((TileOpId)id)->operands};
    for (unsigned from = 0; from < TYPE_COUNT; from++)
        for (unsigned to = 0; to < TYPE_COUNT; to++) {
            TileScalar a = all_types[from], b = all_types[to];
            if (a == TILE_F64 && b == TILE_F16) continue; /* no instruction: expanded by an earlier pass */
            cases[count++] = (Case){TILE_OP_CONVERT, a, b, 1};
            if (a != b && tile_scalar_bits(a) == tile_scalar_bits(b)) cases[count++] = (Case){TILE_OP_BITCAST, a, b, 1};
        }
    cr_assert(count <= MAX_FUNCTIONS);
    return count;
}

/* ---- the functions ---- */

static void print_type(TileText *text, TileScalar scalar, unsigned lanes) {
    if (lanes == 1)
        tile_text_add(text, tile_scalar_name(scalar));
    else
        tile_text_format(text, "vec<%u x %s>", lanes, tile_scalar_name(scalar));
}

static TileScalar operand_scalar(const Case *c, unsigned operand) {
    return c->id == TILE_OP_SELECT && operand == 0 ? TILE_BOOL : c->from;
}

static void print_function(TileText *text, const Case *c, unsigned number, unsigned lanes) {
    tile_text_format(text, "func phase machine @f%u(%%p0: ptr<global>, %%p1: ptr<global>, %%p2: ptr<global>, ", number);
    tile_text_add(text, "%r: ptr<global>, " PARAMETERS ") {\n");
    for (unsigned i = 0; i < c->operands; i++) {
        tile_text_format(text, "  %%x%u = load %%p%u : ", i, i);
        print_type(text, operand_scalar(c, i), lanes);
        tile_text_add_char(text, '\n');
    }
    tile_text_format(text, "  %%y = %s ", tile_op_info(c->id)->mnemonic);
    for (unsigned i = 0; i < c->operands; i++) tile_text_format(text, i ? ", %%x%u" : "%%x%u", i);
    tile_text_add(text, " : ");
    print_type(text, c->to, lanes);
    tile_text_add(text, "\n  store %y, %r\n  return\n}\n");
}

/* ---- inputs ---- */

static uint64_t random_bits(TileScalar scalar, uint64_t *state) {
    static const double special[] = {0.0,     -0.0,    1.0,     -1.0,         0.5,           -0.5,
                                     1.5,     2.5,     127.0,   128.0,        255.5,         -129.0,
                                     32767.5, 65504.0, 65520.0, 2147483648.0, -2147483649.0, 4294967296.0,
                                     9.3e18,  1.9e19,  1e-40,   1e-8,         1e30,          -1e30};
    enum { SPECIAL = sizeof special / sizeof special[0] };
    uint64_t mask = tile_scalar_mask(scalar), bits = next_random(state);
    unsigned choice = (unsigned)(next_random(state) % 8);
    if (!tile_scalar_is_float(scalar)) {
        const uint64_t edges[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1};
        return choice < 5 ? bits & mask : edges[bits % 5];
    }
    if (choice == 0) return tile_scalar_from_double(scalar, special[bits % SPECIAL]);
    if (choice == 1) return bits & 1 ? tile_scalar_greatest(scalar) : tile_scalar_least(scalar);
    if (choice == 2) return tile_scalar_from_double(scalar, __builtin_nan(""));
    if (choice < 6) return tile_scalar_from_double(scalar, ((double)(int64_t)bits) * 0x1p-56);
    return bits & mask;
}

/* Inputs for which the op itself, without legalise's expansions, is defined: small shifts, no division by zero. */
static uint64_t operand_bits(const Case *c, unsigned operand, uint64_t *state) {
    uint64_t bits = random_bits(operand_scalar(c, operand), state);
    bool shift = c->id == TILE_OP_SHL || c->id == TILE_OP_SHR;
    if (operand == 1 && shift) return bits % tile_scalar_bits(c->from);
    if (operand == 1 && (c->id == TILE_OP_DIV || c->id == TILE_OP_REM) && !tile_scalar_is_float(c->from) && !bits)
        return 3;
    return bits;
}

static void check_case(const Case *c, Entry entry, unsigned lanes, const char *target, uint64_t *state) {
    _Alignas(64) unsigned char memory[4][MAX_LANES * 8] = {{0}};
    uint64_t inputs[3][MAX_LANES];
    const uint64_t slots[4] = {SLOT(memory[0]), SLOT(memory[1]), SLOT(memory[2]), SLOT(memory[3])};
    for (unsigned i = 0; i < c->operands; i++) {
        unsigned bytes = tile_scalar_bytes(operand_scalar(c, i));
        for (unsigned lane = 0; lane < lanes; lane++) {
            inputs[i][lane] = operand_bits(c, i, state);
            memcpy(memory[i] + lane * bytes, &inputs[i][lane], bytes);
        }
    }
    entry(slots, 0, 1, NULL);
    for (unsigned lane = 0; lane < lanes; lane++) {
        uint64_t operands[3] = {inputs[0][lane], c->operands > 1 ? inputs[1][lane] : 0,
                                c->operands > 2 ? inputs[2][lane] : 0};
        uint64_t expected = 0, got = 0;
        cr_assert(tile_eval(c->id, c->from, c->to, operands, &expected));
        memcpy(&got, memory[3] + lane * tile_scalar_bytes(c->to), tile_scalar_bytes(c->to));
        cr_assert(tile_scalar_same(c->to, got, expected),
                  "%s, %u lanes: %s %s -> %s of %#lx, %#lx, %#lx is %#lx and not %#lx", target, lanes,
                  tile_op_info(c->id)->mnemonic, tile_scalar_name(c->from), tile_scalar_name(c->to), operands[0],
                  operands[1], operands[2], expected, got);
    }
}

static void check_width(unsigned lanes) {
    static Case cases[MAX_FUNCTIONS];
    unsigned count = collect_cases(cases);
    TileArena *arena = tile_arena_create(NULL);
    TileText text = {.arena = arena};
    for (unsigned i = 0; i < count; i++) print_function(&text, &cases[i], i, lanes);
    for (const TileTarget *const *target = usable_targets(); *target; target++) {
        Compiled compiled = compile_text(tile_text_get(&text), *target);
        uint64_t state = lanes;
        for (unsigned i = 0; i < count; i++) {
            char name[16];
            snprintf(name, sizeof name, "f%u", i);
            Entry entry = find_entry(&compiled, name);
            for (int round = 0; round < ROUNDS; round++) check_case(&cases[i], entry, lanes, (*target)->name, &state);
        }
        release_compiled(&compiled);
    }
    tile_arena_destroy(arena);
}

Test(ops, scalars) { check_width(1); }
Test(ops, lanes_8) { check_width(8); }
Test(ops, lanes_16) { check_width(16); }
Test(ops, lanes_64) { check_width(64); }
