/* Ranges: an interval for an integer's lanes, and a number that divides them. They follow from constants, loop bounds,
 * program ids, comparisons of a value with its own bound, and the facts of a specialised variant about its parameters.
 * Each op is evaluated once; requires the ranges of its operands, which are computed first. */
#include "lang/index/internal.h"

#include "base/words.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

/* ---- one op each ---- */

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static TileIndexRange product(const TileType *type, TileIndexRange a, TileIndexRange b) {
    Wide corners[] = {(Wide)a.lo * b.lo, (Wide)a.lo * b.hi, (Wide)a.hi * b.lo, (Wide)a.hi * b.hi};
    Wide lo = corners[0], hi = corners[0];
    for (int i = 1; i < 4; i++) {
        if (corners[i] < lo) lo = corners[i];
        if (corners[i] > hi) hi = corners[i];
    }
    Wide multiple = (Wide)a.multiple * b.multiple;
    return tile_index_in_type(type, lo, hi, multiple > INT64_MAX ? 1 : (int64_t)multiple, a.because | b.because);
}

static TileIndexRange quotient(const TileType *type, TileIndexRange a, TileIndexRange b) {
    if (b.lo <= 0) { /* |quotient| <= |dividend| for either sign of the divisor; by 0 it is 0 */
        Wide size = -(Wide)a.lo > a.hi ? -(Wide)a.lo : a.hi;
        return tile_index_in_type(type, -size, size, 1, a.because);
    }
    int64_t lo = least(floor_div(a.lo, b.lo), floor_div(a.lo, b.hi));
    int64_t hi = most(floor_div(a.hi, b.lo), floor_div(a.hi, b.hi));
    bool exact = tile_index_is_constant(b) && a.multiple % b.lo == 0;
    return tile_index_in_type(type, lo, hi, exact ? a.multiple / b.lo : 1, a.because | b.because);
}

static TileIndexRange remainder_of(const TileType *type, TileIndexRange a, TileIndexRange b) {
    if (b.lo <= 0) return tile_index_range_of_type(type);
    uint64_t because = a.because | b.because;
    int64_t divisor = tile_index_common_divisor(a.multiple, b.multiple);
    if (tile_index_is_constant(b) && divisor == b.lo) return tile_index_in_type(type, 0, 0, 0, because);
    if (a.lo >= 0 && a.hi < b.lo) return tile_index_in_type(type, a.lo, a.hi, a.multiple, because);
    return tile_index_in_type(type, 0, a.lo >= 0 ? least(a.hi, b.hi - 1) : b.hi - 1, divisor, because);
}

static TileIndexRange either(const TileType *type, TileIndexRange a, TileIndexRange b) {
    return tile_index_in_type(type, least(a.lo, b.lo), most(a.hi, b.hi),
                              tile_index_common_divisor(a.multiple, b.multiple), a.because | b.because);
}

static TileIndexRange shifted(const TileType *type, const TileOp *op, TileIndexRange a, TileIndexRange b) {
    if (!tile_index_is_constant(b) || b.lo < 0 || b.lo > 62) return tile_index_range_of_type(type);
    TileIndexRange power = {INT64_C(1) << b.lo, INT64_C(1) << b.lo, INT64_C(1) << b.lo, b.because};
    return op->id == TILE_OP_SHL ? product(type, a, power) : quotient(type, a, power);
}

static TileIndexRange common_bits(const TileType *type, TileIndexRange a, TileIndexRange b) {
    if (a.lo < 0 && b.lo < 0) return tile_index_range_of_type(type);
    int64_t hi = a.lo < 0 ? b.hi : b.lo < 0 ? a.hi : least(a.hi, b.hi);
    return tile_index_in_type(type, 0, hi, 1, a.because | b.because);
}

static TileIndexRange converted(const TileOp *op, const TileType *type, TileIndexRange x) {
    const TileType *from = tile_op_operand(op, 0)->type;
    if (tile_scalar_is_float(from->scalar) || from->scalar == TILE_U64) return tile_index_range_of_type(type);
    if (type->scalar != TILE_BOOL) return tile_index_in_type(type, x.lo, x.hi, x.multiple, x.because);
    return x.lo > 0 || x.hi < 0 ? tile_index_in_type(type, 1, 1, 1, x.because) : tile_index_range_of_type(type);
}

static TileIndexRange compare(TileIndices *indices, const TileOp *op, const TileType *type) {
    const TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    if (tile_scalar_is_float(x->type->scalar) || x->type->scalar == TILE_U64) return tile_index_range_of_type(type);
    TileIndexRange d = tile_index_difference(indices, x, y);
    bool is_true, is_false;
    switch (op->id) {
    case TILE_OP_EQ: is_true = d.lo == 0 && d.hi == 0, is_false = d.lo > 0 || d.hi < 0; break;
    case TILE_OP_NE: is_true = d.lo > 0 || d.hi < 0, is_false = d.lo == 0 && d.hi == 0; break;
    case TILE_OP_LT: is_true = d.hi < 0, is_false = d.lo >= 0; break;
    case TILE_OP_LE: is_true = d.hi <= 0, is_false = d.lo > 0; break;
    case TILE_OP_GT: is_true = d.lo > 0, is_false = d.hi <= 0; break;
    default: is_true = d.lo >= 0, is_false = d.hi < 0; break;
    }
    return is_true || is_false ? tile_index_in_type(type, is_true, is_true, 1, d.because)
                               : tile_index_range_of_type(type);
}

static TileIndexRange extent_of(TileIndices *indices, const TileOp *dim) {
    const TileValue *tensor = tile_op_operand(dim, 0);
    uint32_t dimension = (uint32_t)tile_op_integer(dim, TILE_ATTRIBUTE_AXIS, 0);
    TileIndexRange range = {0, TILE_MAX_EXTENT, 1, 0};
    if (!tensor->block || tensor->block != &indices->func->body) return range;
    if (indices->unconditional || indices->assumption_count == TILE_MAX_ASSUMPTIONS) return range;
    TileParameter *parameter = &indices->func->parameters[tensor->index];
    int64_t extent = parameter->facts.extent[dimension];
    if (extent == TILE_UNKNOWN && indices->words) {
        parameter->asked_narrow = true;
        if (!parameter->facts.narrow) return range;
        indices->assumptions[indices->assumption_count] = (TileAssumption){tensor->index, TILE_ANY_DIMENSION};
        return (TileIndexRange){0, TILE_GREATEST_NARROW_EXTENT, 1, UINT64_C(1) << indices->assumption_count++};
    }
    if (extent == TILE_UNKNOWN) return range;
    indices->assumptions[indices->assumption_count] = (TileAssumption){tensor->index, dimension};
    return (TileIndexRange){extent, extent, extent, UINT64_C(1) << indices->assumption_count++};
}

/* The bounds of an induction variable or of a program id. */
static TileIndexRange index_of(TileIndices *indices, const TileValue *index) {
    const TileOp *op = index->block->op;
    const TileIndexRange zero = {0, 0, 0, 0}, one = {1, 1, 1, 0};
    TileIndexRange lo = zero, hi, step = one;
    if (op->id == TILE_OP_GRID) {
        hi = tile_index_range(indices, tile_op_operand(op, index->index));
    } else {
        lo = tile_index_range(indices, tile_op_operand(op, 0));
        hi = tile_index_range(indices, tile_op_operand(op, 1));
        if (op->id == TILE_OP_FOR) step = tile_index_range(indices, tile_op_named(op, TILE_OPERAND_STEP));
    }
    uint64_t because = lo.because | hi.because | step.because;
    int64_t multiple = tile_index_common_divisor(lo.multiple, step.multiple);
    return (TileIndexRange){lo.lo, most(lo.lo, hi.hi == INT64_MIN ? hi.hi : hi.hi - 1), multiple ? multiple : 1,
                            because};
}

/* An extent in machine form. */
static TileIndexRange supposed_extent(TileIndices *indices, const TileValue *value) {
    bool extent = indices->func->parameters[value->index].role == TILE_ROLE_EXTENT;
    if (!extent || indices->assumption_count == TILE_MAX_ASSUMPTIONS) return tile_index_range_of_type(value->type);
    indices->assumptions[indices->assumption_count] = (TileAssumption){value->index, 0};
    return (TileIndexRange){0, TILE_MAX_EXTENT, indices->divisor, UINT64_C(1) << indices->assumption_count++};
}

static TileIndexRange argument_range(TileIndices *indices, const TileValue *value) {
    const TileOp *op = value->block->op;
    if (!op && indices->divisor && value->block == &indices->func->body) return supposed_extent(indices, value);
    bool is_index =
        op && (op->id == TILE_OP_GRID || ((op->id == TILE_OP_FOR || op->id == TILE_OP_LOOP) && value->index == 0));
    return is_index ? index_of(indices, value) : tile_index_range_of_type(value->type);
}

static TileIndexRange yielded_range(TileIndices *indices, const TileOp *op, const TileValue *value) {
    return either(value->type, tile_index_range(indices, tile_op_operand(op->regions[0].last, value->index)),
                  tile_index_range(indices, tile_op_operand(op->regions[1].last, value->index)));
}

static TileIndexRange chosen_range(const TileType *type, TileIndexRange condition, TileIndexRange x, TileIndexRange y) {
    if (!tile_index_is_constant(condition)) return either(type, x, y);
    TileIndexRange chosen = condition.lo ? x : y;
    chosen.because |= condition.because;
    return chosen;
}

/* x * (n / d) <= n if 0 <= x <= d: the start of group x of d. */
static bool product_of_groups(TileIndices *indices, const TileValue *x, const TileValue *groups,
                              TileIndexRange *range) {
    const TileOp *div = tile_value_def(groups, TILE_OP_DIV);
    if (!div || tile_index_range(indices, x).lo < 0) return false;
    TileIndexRange n = tile_index_range(indices, tile_op_operand(div, 0));
    TileIndexRange rest = tile_index_difference(indices, tile_op_operand(div, 1), x);
    *range = (TileIndexRange){0, n.hi, 1, n.because | rest.because};
    return n.lo >= 0 && rest.lo >= 0;
}

static TileIndexRange multiplied(TileIndices *indices, const TileOp *op, const TileType *type, TileIndexRange a,
                                 TileIndexRange b) {
    TileIndexRange range = product(type, a, b), groups;
    for (unsigned i = 0; i < 2 && range.hi == INT64_MAX; i++) {
        if (!product_of_groups(indices, tile_op_operand(op, i), tile_op_operand(op, 1 - i), &groups)) continue;
        groups.because |= range.because;
        groups.multiple = range.multiple;
        return groups;
    }
    return range;
}

static TileIndexRange binary_range(TileIndices *indices, const TileOp *op, const TileType *type) {
    TileIndexRange a = tile_index_range(indices, tile_op_operand(op, 0)),
                   b = tile_index_range(indices, tile_op_operand(op, 1));
    uint64_t because = a.because | b.because;
    int64_t divisor = tile_index_common_divisor(a.multiple, b.multiple);
    switch (op->id) {
    case TILE_OP_ADD: return tile_index_in_type(type, (Wide)a.lo + b.lo, (Wide)a.hi + b.hi, divisor, because);
    case TILE_OP_MUL: return multiplied(indices, op, type, a, b);
    case TILE_OP_DIV: return quotient(type, a, b);
    case TILE_OP_REM: return remainder_of(type, a, b);
    case TILE_OP_MIN: return tile_index_in_type(type, least(a.lo, b.lo), least(a.hi, b.hi), divisor, because);
    case TILE_OP_MAX: return tile_index_in_type(type, most(a.lo, b.lo), most(a.hi, b.hi), divisor, because);
    case TILE_OP_SHL:
    case TILE_OP_SHR: return shifted(type, op, a, b);
    case TILE_OP_AND: return common_bits(type, a, b);
    case TILE_OP_OR:
        if (type->scalar == TILE_BOOL) return tile_index_in_type(type, a.lo | b.lo, a.hi | b.hi, 1, because);
        return tile_index_range_of_type(type);
    default: return tile_index_range_of_type(type);
    }
}

/* A program has a number below the grid's extent along each axis. */
static TileIndexRange program_range(TileIndices *indices, const TileOp *op, const TileValue *value) {
    TileIndexRange extent = tile_index_range(indices, tile_op_named_at(op, TILE_OPERAND_EXTENTS, value->index));
    return (TileIndexRange){0, most(0, extent.hi - 1), 1, extent.because};
}

/* What has some lanes of one value, and others of another: of two tiles that are joined, or of a number that stands in for lanes outside of a range. */
static TileIndexRange joined_range(TileIndices *indices, const TileOp *op, const TileType *type) {
    return either(type, tile_index_range(indices, tile_op_operand(op, 0)), tile_index_range(indices, tile_op_operand(op, 1)));
}

static TileIndexRange op_range(TileIndices *indices, const TileOp *op, const TileValue *value) {
    const TileType *type = value->type;
    int64_t constant;
    switch (op->id) {
    case TILE_OP_CONST:
        return tile_value_integer(value, &constant) ? tile_index_in_type(type, constant, constant, 1, 0)
                                                    : tile_index_range_of_type(type);
    case TILE_OP_DIM: return extent_of(indices, op);
    case TILE_OP_PROGRAM_ID: return program_range(indices, op, value);
    case TILE_OP_IOTA:
        if (type->scalable) return tile_index_range_of_type(type);
        return tile_index_in_type(type, 0, type->extent[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)] - 1, 1, 0);
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE:
    case TILE_OP_SLICE:
    case TILE_OP_FLIP:
    case TILE_OP_PERMUTE: return tile_index_range(indices, tile_op_operand(op, 0));
    case TILE_OP_CAT:
    case TILE_OP_FILL: return joined_range(indices, op, type);
    case TILE_OP_IF: return yielded_range(indices, op, value);
    case TILE_OP_SUB: return tile_index_subtraction(indices, op, type);
    case TILE_OP_EQ:
    case TILE_OP_NE:
    case TILE_OP_LT:
    case TILE_OP_LE:
    case TILE_OP_GT:
    case TILE_OP_GE: return compare(indices, op, type);
    case TILE_OP_CONVERT: return converted(op, type, tile_index_range(indices, tile_op_operand(op, 0)));
    default: break;
    }
    if (tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE) return tile_index_range_of_type(type);
    TileIndexRange x = tile_index_range(indices, tile_op_operand(op, 0));
    switch (op->id) {
    case TILE_OP_NEG: return tile_index_in_type(type, -(Wide)x.hi, -(Wide)x.lo, x.multiple, x.because);
    case TILE_OP_ABS: /* the least integer has no positive counterpart */
        if (x.lo >= 0) return x;
        return tile_index_in_type(type, 0, -(Wide)x.lo > x.hi ? -(Wide)x.lo : x.hi, x.multiple, x.because);
    case TILE_OP_NOT:
        return type->scalar == TILE_BOOL ? tile_index_in_type(type, 1 - x.hi, 1 - x.lo, 1, x.because)
                                         : tile_index_range_of_type(type);
    case TILE_OP_SELECT:
        return chosen_range(type, x, tile_index_range(indices, tile_op_named(op, TILE_OPERAND_X)),
                            tile_index_range(indices, tile_op_named(op, TILE_OPERAND_Y)));
    default: return op->operand_count == 2 ? binary_range(indices, op, type) : tile_index_range_of_type(type);
    }
}

/* The extent of a temporary, which a launch checks before any grid; phases have no temporaries of their own. */
static bool is_extent(const TileIndices *indices, const TileValue *value) {
    if (indices->func->kind == TILE_FUNC_PHASE) return false;
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_TEMP) return true;
    return false;
}

/* Floats, pointers and tensors have no range. */
static bool is_described(const TileType *type) {
    return type->kind != TILE_TYPE_POINTER && type->kind != TILE_TYPE_TENSOR && !tile_scalar_is_float(type->scalar);
}

static bool is_known(void *state, const TileValue *value) {
    const TileIndices *indices = state;
    return !is_described(value->type) || tile_map_get(&indices->ranges, value);
}

/* The k-th value whose range op_range or argument_range requires. */
static const TileValue *needed(void *state, const TileValue *value, unsigned k) {
    const TileOp *op = value->op ? value->op : value->block->op;
    if (!op) return NULL;
    if (op->id == TILE_OP_IF) return k < 2 ? tile_op_operand(op->regions[k].last, value->index) : NULL;
    TileOpClass class = tile_op_info((TileOpId)op->id)->class;
    bool computed =
        class == TILE_CLASS_ELEMENTWISE || class == TILE_CLASS_SHAPE || op->id == TILE_OP_PROGRAM_ID;
    if (value->op && !computed) return NULL;
    unsigned count = computed ? op->operand_count : op->id == TILE_OP_GRID ? op->operand_count : 3;
    return k < count && k < op->operand_count ? tile_op_operand(op, k) : NULL;
}

static void compute(void *state, const TileValue *value) {
    TileIndices *indices = state;
    TileIndexRange range = value->op ? op_range(indices, value->op, value) : argument_range(indices, value);
    if ((range.lo < 0 || range.hi > TILE_MAX_EXTENT) && is_extent(indices, value)) {
        if (range.lo < 0) range.lo = 0;
        if (range.hi > TILE_MAX_EXTENT) range.hi = TILE_MAX_EXTENT;
    }
    tile_map_set(&indices->ranges, value, tile_arena_copy(indices->arena, &range, sizeof range));
}

TileIndexRange tile_index_range(TileIndices *indices, const TileValue *value) {
    if (!is_described(value->type)) return tile_index_range_of_type(value->type);
    const TileIndexRange *known = tile_map_get(&indices->ranges, value);
    if (!known) {
        tile_index_in_order(indices, &(TileIndexOrder){is_known, needed, compute, indices}, value);
        known = tile_map_get(&indices->ranges, value);
    }
    return *known;
}
