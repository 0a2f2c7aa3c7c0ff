#include "launch/host.h"

#include <stdio.h>
#include <string.h>

#include "lang/scalar/eval_i64.h"
#include "lang/scalar/scalar.h"

static const struct {
    const char *name;
    uint8_t code, bits, class;
} types[TILE_HOST_TYPE_COUNT] = {
#define TYPE_ROW(id, name, code, bits, class) {name, code, bits, TILE_HOST_CLASS_##class},
    TILE_HOST_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};

const char *tile_host_type_name(TileHostType type) { return types[type].name; }
TileHostClass tile_host_type_class(TileHostType type) { return (TileHostClass)types[type].class; }
DLDataType tile_host_type_dtype(TileHostType type) { return (DLDataType){types[type].code, types[type].bits, 1}; }

/* Index of a type's size: 8, 16, 32 or 64 bits give 0 to 3. */
#define SIZE_INDEX(bits) ((bits) == 8 ? 0 : (bits) == 16 ? 1 : (bits) == 32 ? 2 : 3)

TileHostType tile_host_type_find(DLDataType dtype) {
    enum { CODES = kDLFloat8_e5m2 + 1 };
    static const uint8_t found[CODES][4] = {/* the type + 1 */
#define TYPE_ENTRY(id, name, code, bits, class) [code][SIZE_INDEX(bits)] = TILE_HOST_##id + 1,
                                            TILE_HOST_TYPE_LIST(TYPE_ENTRY)
#undef TYPE_ENTRY
    };
    if (dtype.code >= CODES || dtype.lanes != 1) return TILE_HOST_TYPE_COUNT;
    unsigned type = found[dtype.code][SIZE_INDEX(dtype.bits)];
    return type && types[type - 1].bits == dtype.bits ? (TileHostType)(type - 1) : TILE_HOST_TYPE_COUNT;
}

/* ---- values ---- */

#define SAME_TYPE(id, name, code, bits, class)                                                                         \
    _Static_assert((int)TILE_HOST_##id == (int)TILE_##id, "types of the launcher are those of the language");
TILE_HOST_TYPE_LIST(SAME_TYPE)
#undef SAME_TYPE
_Static_assert((int)TILE_HOST_TYPE_COUNT == (int)TILE_SCALAR_COUNT, "all of them");

typedef union Word {
    uint64_t bits;
    double number;
} Word;

double tile_host_round(TileHostType type, double number) {
    TileScalar scalar = (TileScalar)type;
    return type == TILE_HOST_F64 ? number : tile_scalar_to_double(scalar, tile_scalar_from_double(scalar, number));
}

uint64_t tile_host_bits(TileHostType type, uint64_t argument) {
    TileScalar scalar = (TileScalar)type;
    if (types[type].class != TILE_HOST_CLASS_FLOAT) return argument & tile_scalar_mask(scalar);
    return tile_scalar_from_double(scalar, (Word){.bits = argument}.number);
}

/* ---- running ---- */

static TileEvalOp eval_op(const TileHostInstruction *at) { return (TileEvalOp)(at->op - TILE_HOST_FIRST_EVAL); }

static uint64_t evaluate(const TileHostInstruction *at, const uint64_t *values) {
    TileScalar from = (TileScalar)at->from, to = (TileScalar)at->type;
    TileEvalLoop loop = tile_eval_op_loop(eval_op(at), from, to, at->approx != 0);
    const uint64_t *const in[TILE_EVAL_MOST_OPERANDS] = {&values[at->a], &values[at->b], &values[at->c]};
    uint64_t result = 0;
    if (loop) loop(from, to, in, &result, 1);
    return result;
}

void tile_host_run(const TileHostInstruction *program, uint32_t count, const TileView *views, uint64_t *values) {
    for (uint32_t i = 0; i < count; i++) {
        const TileHostInstruction *at = &program[i];
        switch (at->op) {
        case TILE_HOST_CONST: values[i] = at->bits; break;
        case TILE_HOST_DIM: values[i] = (uint64_t)views[at->a].extent[at->b]; break;
        case TILE_HOST_SCALAR: values[i] = tile_host_bits((TileHostType)at->type, views[at->a].scalar); break;
        case TILE_HOST_SELECT: values[i] = values[at->a] ? values[at->b] : values[at->c]; break;
        default:
            if (at->from != TILE_HOST_I64 || !tile_eval_op_i64(eval_op(at), values[at->a], values[at->b], &values[i]))
                values[i] = evaluate(at, values);
        }
    }
}

/* ---- operations ---- */

static const char *const own_names[TILE_HOST_FIRST_EVAL] = {"CONST", "DIM", "SCALAR"};

const char *tile_host_op_name(TileHostOp op) {
    int eval = (int)op - TILE_HOST_FIRST_EVAL;
    return eval < 0 ? own_names[op] : tile_eval_op_name((TileEvalOp)eval);
}

TileHostOp tile_host_op_find(const char *name) {
    for (int op = 0; op < TILE_HOST_FIRST_EVAL; op++)
        if (strcmp(own_names[op], name) == 0) return (TileHostOp)op;
    return (TileHostOp)(TILE_HOST_FIRST_EVAL + (int)tile_eval_op_find(name));
}

/* ---- soundness ---- */

static bool takes(const TileHostInstruction *program, uint32_t number, uint32_t value, TileHostType type) {
    return value < number && program[value].type == type;
}

/* Extents and scalars are read without further checks. */
static bool is_argument_sound(const TileHostInstruction *at, const TileImageSignature *signature) {
    if (at->a >= signature->parameter_count) return false;
    const TileImageParameter *parameter = &signature->parameters[at->a];
    bool tensor = parameter->kind == TILE_PARAMETER_TENSOR;
    if (at->op == TILE_HOST_DIM) return tensor && at->type == TILE_HOST_I64 && at->b < parameter->rank;
    return !tensor && (parameter->generic >= 0 || at->type == parameter->type);
}

static bool is_eval_sound(const TileHostInstruction *program, uint32_t number) {
    const TileHostInstruction *at = &program[number];
    TileHostType from = (TileHostType)at->from;
    if (from >= TILE_HOST_TYPE_COUNT) return false;
    unsigned operands = tile_eval_op_operands(eval_op(at));
    return tile_eval_op_allows(eval_op(at), (TileScalar)from, (TileScalar)at->type) &&
           takes(program, number, at->a, at->op == TILE_HOST_SELECT ? TILE_HOST_BOOL : from) &&
           (operands > 1 ? takes(program, number, at->b, from) : at->b == at->a) &&
           (operands > 2 ? takes(program, number, at->c, from) : at->c == at->a);
}

bool tile_host_is_sound(const TileHostInstruction *program, uint32_t count, const TileImageSignature *signature) {
    for (uint32_t i = 0; i < count; i++) {
        const TileHostInstruction *at = &program[i];
        if (at->op >= TILE_HOST_OP_COUNT || at->type >= TILE_HOST_TYPE_COUNT) return false;
        if (at->op == TILE_HOST_DIM || at->op == TILE_HOST_SCALAR) {
            if (!is_argument_sound(at, signature)) return false;
        } else if (at->op == TILE_HOST_CONST) {
            if (at->bits & ~tile_scalar_mask((TileScalar)at->type)) return false;
        } else if (!is_eval_sound(program, i)) {
            return false;
        }
    }
    return true;
}

/* ---- text ---- */

void tile_host_print(char *buffer, size_t size, TileHostType type, uint64_t bits) {
    if (type == TILE_HOST_BOOL) {
        snprintf(buffer, size, "%s", bits ? "true" : "false");
    } else if (types[type].class == TILE_HOST_CLASS_FLOAT) {
        /* The shortest decimal that round-trips; a locale's decimal comma becomes a point. */
        double number = tile_scalar_to_double((TileScalar)type, bits);
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(buffer, size, "%.*g", digits, number);
            double back = 0;
            if (sscanf(buffer, "%lf", &back) == 1 && tile_host_round(type, back) == number) break;
        }
        for (char *c = buffer; *c; c++)
            if (*c == ',') *c = '.';
    } else if (types[type].class == TILE_HOST_CLASS_SIGNED) {
        snprintf(buffer, size, "%lld", (long long)tile_scalar_to_integer((TileScalar)type, bits));
    } else {
        snprintf(buffer, size, "%llu", (unsigned long long)bits);
    }
}
