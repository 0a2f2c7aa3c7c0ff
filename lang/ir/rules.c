/* Type rules of elementwise ops, shapes, reductions and control. Memory and vectors: rules_memory.c. */
#include "lang/ir/rules.h"

#include "lang/layout/layout.h"

#include <string.h>

/* Names of the traits that rules consult. */
static bool has_trait(const TileRule *r, unsigned trait) { return (tile_op_info(r->op->id)->traits & trait) != 0; }

const char *tile_rule_complain(const TileRule *r, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = tile_arena_format_list(r->module->arena, format, arguments);
    va_end(arguments);
    return text;
}

static const char *type_text(const TileRule *r, const TileType *type) {
    TileText text = {.arena = r->module->arena};
    tile_type_print(&text, type);
    if (type->layout) {
        tile_text_add(&text, " as ");
        tile_layout_print(&text, type->layout);
    }
    return tile_text_get(&text);
}

const char *tile_rule_result(const TileRule *r, unsigned index, const TileType *type) {
    const TileType *has = r->result[index];
    if (!has) has = r->result[index] = type;
    if (has == type) return NULL;
    /* For rules that are about shapes only: compares shapes only. */
    if (tile_type_is_tile(has) && !type->layout) has = tile_type_with_layout(r->module->context, has, NULL);
    if (has == type) return NULL;
    return tile_rule_complain(r, "result %u has type %s where the rule gives %s", index, type_text(r, r->result[index]),
                              type_text(r, type));
}

bool tile_rule_is_i64(const TileType *type) { return tile_type_is_scalar(type) && type->scalar == TILE_I64; }
bool tile_rule_is_bool(const TileType *type) { return tile_type_is_scalar(type) && type->scalar == TILE_BOOL; }

static bool is_value_shape(const TileType *type) {
    return type->kind == TILE_TYPE_SCALAR || type->kind == TILE_TYPE_TILE || type->kind == TILE_TYPE_VECTOR;
}

static const char *check_elements(const TileRule *r, const TileType *type) {
    if (!is_value_shape(type))
        return tile_rule_complain(r, "needs a scalar, tile or vector, not %s", type_text(r, type));
    bool is_float = tile_scalar_is_float(type->scalar);
    if (has_trait(r, TILE_TRAIT_FLOAT_ONLY) && !is_float) return "needs a floating-point element type";
    if (has_trait(r, TILE_TRAIT_INT_ONLY) && is_float) return "needs an integer or bool element type";
    return NULL;
}

static const char *check_equal_operands(const TileRule *r, unsigned first) {
    for (unsigned i = first + 1; i < r->op->operand_count; i++)
        if (tile_rule_operand(r, i) != tile_rule_operand(r, first))
            return tile_rule_complain(r, "operand %u is %s, but operand %u is %s", i,
                                      type_text(r, tile_rule_operand(r, i)), first,
                                      type_text(r, tile_rule_operand(r, first)));
    return NULL;
}

const char *tile_rule_same(const TileRule *r) {
    const char *error = check_elements(r, tile_rule_operand(r, 0));
    if (!error) error = check_equal_operands(r, 0);
    return error ? error : tile_rule_result(r, 0, tile_rule_operand(r, 0));
}

static const char *bool_result(const TileRule *r, const TileType *shape) {
    return tile_rule_result(r, 0, tile_type_with_scalar(r->module->context, shape, TILE_BOOL));
}

const char *tile_rule_compare(const TileRule *r) {
    const TileType *type = tile_rule_operand(r, 0);
    if (!is_value_shape(type)) return "needs scalars, tiles or vectors";
    const char *error = check_equal_operands(r, 0);
    return error ? error : bool_result(r, type);
}

const char *tile_rule_predicate(const TileRule *r) {
    const char *error = check_elements(r, tile_rule_operand(r, 0));
    return error ? error : bool_result(r, tile_rule_operand(r, 0));
}

/* To tensors, or to scratch memory: both are what a program of a CPU has all to itself or shares with all. */
static bool is_address(const TileType *type) {
    return type->kind == TILE_TYPE_POINTER && (type->space == TILE_SPACE_GLOBAL || type->space == TILE_SPACE_SCRATCH);
}

/* With a scalar condition, `select` chooses between two values of any one type; also between an address in a tensor and one in scratch memory. */
const char *tile_rule_select(const TileRule *r) {
    const TileType *condition = tile_rule_operand(r, 0), *type = tile_rule_operand(r, 1);
    if (!is_value_shape(condition) || condition->scalar != TILE_BOOL) return "the condition is not bool";
    if (!tile_type_is_scalar(condition) && !tile_type_same_shape(condition, type))
        return "the condition has another shape than the values";
    bool addresses = is_address(type) && is_address(tile_rule_operand(r, 2));
    const char *error = addresses ? NULL : check_equal_operands(r, 1);
    return error ? error : tile_rule_result(r, 0, type);
}

const char *tile_rule_rand(const TileRule *r) {
    const TileType *type = tile_rule_operand(r, 0);
    if (!is_value_shape(type) || type->scalar != TILE_I64) return "the seed is not i64";
    const char *error = check_equal_operands(r, 0);
    bool words = r->result[0] && is_value_shape(r->result[0]) && r->result[0]->scalar == TILE_U32;
    TileScalar scalar = words ? TILE_U32 : TILE_F32;
    return error ? error : tile_rule_result(r, 0, tile_type_with_scalar(r->module->context, type, scalar));
}

const char *tile_rule_convert(const TileRule *r) {
    const TileType *from = tile_rule_operand(r, 0), *to = r->result[0];
    if (!to) return "the result type has to be given";
    if (!is_value_shape(from) || !tile_type_same_shape(from, to))
        return "the result has another shape than the operand";
    return NULL;
}

const char *tile_rule_bitcast(const TileRule *r) {
    const char *error = tile_rule_convert(r);
    if (error) return error;
    if (tile_scalar_bits(tile_rule_operand(r, 0)->scalar) != tile_scalar_bits(r->result[0]->scalar))
        return "the element types differ in width";
    return NULL;
}

const char *tile_rule_constant(const TileRule *r) {
    if (!r->result[0]) return "the result type has to be given";
    return is_value_shape(r->result[0]) ? NULL : "a constant is a scalar, tile or vector";
}

const char *tile_rule_splat(const TileRule *r) {
    const TileType *from = tile_rule_operand(r, 0), *to = r->result[0];
    if (!to) return "the result type has to be given";
    if (!tile_type_is_scalar(from)) return "the operand is not a scalar";
    if (to->kind != TILE_TYPE_TILE && to->kind != TILE_TYPE_VECTOR) return "the result is neither tile nor vector";
    return to->scalar == from->scalar ? NULL : "the element types differ";
}

static int64_t axis_of(const TileRule *r) { return tile_op_integer(r->op, TILE_ATTRIBUTE_AXIS, 0); }

const char *tile_rule_iota(const TileRule *r) {
    const TileType *to = r->result[0];
    if (!to) return "the result type has to be given";
    if ((to->kind != TILE_TYPE_TILE && to->kind != TILE_TYPE_VECTOR) || !tile_scalar_is_int(to->scalar))
        return "the result is no integer tile or vector";
    return axis_of(r) >= 0 && axis_of(r) < to->rank ? NULL : "no such axis";
}

const char *tile_rule_broadcast(const TileRule *r) {
    const TileType *from = tile_rule_operand(r, 0), *to = r->result[0];
    if (!to) return "the result type has to be given";
    if (!tile_type_is_tile(from) || !tile_type_is_tile(to) || from->rank != to->rank || from->scalar != to->scalar)
        return "operand and result differ in rank or element type";
    for (int i = 0; i < from->rank; i++)
        if (from->extent[i] != to->extent[i] && from->extent[i] != 1)
            return tile_rule_complain(r, "axis %d stretches from %lld", i, (long long)from->extent[i]);
    return NULL;
}

const char *tile_rule_reshape(const TileRule *r) {
    const TileType *from = tile_rule_operand(r, 0), *to = r->result[0];
    if (!to) return "the result type has to be given";
    bool shapes =
        (tile_type_is_tile(from) || tile_type_is_scalar(from)) && (tile_type_is_tile(to) || tile_type_is_scalar(to));
    if (!shapes || from->scalar != to->scalar) return "operand and result differ in element type, or are no tiles";
    return tile_type_lanes(from) == tile_type_lanes(to) ? NULL : "the number of elements changes";
}

const char *tile_rule_permute(const TileRule *r) {
    const TileType *from = tile_rule_operand(r, 0);
    const TileAttribute *axes = tile_op_get(r->op, TILE_ATTRIBUTE_AXES);
    if (!tile_type_is_tile(from) || axes->count != from->rank) return "needs one axis for each axis of a tile";
    TileType to = *from;
    to.layout = NULL;
    unsigned seen = 0;
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t axis = axes->integers[i];
        if (axis < 0 || axis >= from->rank || (seen >> axis & 1)) return "axes is no permutation";
        seen |= 1u << axis;
        to.extent[i] = from->extent[axis];
    }
    return tile_rule_result(r, 0, tile_type_intern(r->module->context->types, &to));
}

const char *tile_rule_convert_layout(const TileRule *r) {
    const TileType *from = tile_rule_operand(r, 0), *to = r->result[0];
    if (!to) return "the result type has to be given";
    bool same = tile_type_is_tile(from) && from->scalar == to->scalar && tile_type_same_shape(from, to);
    return same ? NULL : "operand and result differ in more than their layouts, or are no tiles";
}

const char *tile_rule_fill(const TileRule *r) {
    const TileAttribute *axes = tile_op_get(r->op, TILE_ATTRIBUTE_AXES);
    if (r->op->operand_count != 2 + 2 * axes->count) return "needs a tile, a value, and two bounds for each axis";
    const TileType *type = tile_rule_operand(r, 0), *value = tile_rule_operand(r, 1);
    if (!tile_type_is_tile(type)) return "the first operand is no tile";
    if (!tile_type_is_scalar(value) || value->scalar != type->scalar)
        return "the value is no scalar of the element type";
    for (unsigned i = 0; i < axes->count; i++)
        if (axes->integers[i] < 0 || axes->integers[i] >= type->rank) return "no such axis";
    for (unsigned i = 2; i < r->op->operand_count; i++)
        if (!tile_rule_is_i64(tile_rule_operand(r, i))) return "a bound is not i64";
    return tile_rule_result(r, 0, type);
}

static const char *check_axis(const TileRule *r) {
    const TileType *type = tile_rule_operand(r, 0);
    if (!tile_type_is_tile(type)) return "the operand is no tile";
    return axis_of(r) >= 0 && axis_of(r) < type->rank ? NULL : "no such axis";
}

const char *tile_rule_slice(const TileRule *r) {
    const char *error = check_axis(r);
    const TileType *from = tile_rule_operand(r, 0), *to = r->result[0];
    if (error) return error;
    if (!to) return "the result type has to be given";
    if (!tile_type_is_tile(to) || to->rank != from->rank || to->scalar != from->scalar)
        return "operand and result differ in rank or element type";
    int64_t offset = tile_op_integer(r->op, TILE_ATTRIBUTE_OFFSET, 0);
    for (int i = 0; i < from->rank; i++)
        if (i != axis_of(r) && to->extent[i] != from->extent[i]) return "an axis that is not cut changes";
    bool inside = offset >= 0 && offset <= from->extent[axis_of(r)] - to->extent[axis_of(r)];
    return inside ? NULL : "the lanes are not all in the operand";
}

const char *tile_rule_cat(const TileRule *r) {
    const char *error = check_axis(r);
    const TileType *x = tile_rule_operand(r, 0), *y = tile_rule_operand(r, 1);
    if (error) return error;
    if (!tile_type_is_tile(y) || y->rank != x->rank || y->scalar != x->scalar)
        return "the operands differ in rank or element type";
    TileType to = *x;
    to.layout = NULL;
    for (int i = 0; i < x->rank; i++)
        if (i != axis_of(r) && x->extent[i] != y->extent[i]) return "the operands differ in another axis";
    to.extent[axis_of(r)] += y->extent[axis_of(r)];
    return tile_rule_result(r, 0, tile_type_intern(r->module->context->types, &to));
}

const char *tile_rule_flip(const TileRule *r) {
    const char *error = check_axis(r);
    if (error) return error;
    int64_t extent = tile_rule_operand(r, 0)->extent[axis_of(r)];
    if (extent & (extent - 1)) return "the extent along the axis is no power of two";
    return tile_rule_result(r, 0, tile_rule_operand(r, 0));
}

static const TileType *without_axis(const TileRule *r, TileScalar scalar) {
    const TileType *type = tile_rule_operand(r, 0);
    int64_t extent[TILE_MAX_TILE_RANK];
    unsigned rank = 0;
    for (int i = 0; i < type->rank; i++)
        if (i != axis_of(r)) extent[rank++] = type->extent[i];
    return tile_type_tile(r->module->context, scalar, rank, extent);
}

const char *tile_rule_reduce(const TileRule *r) {
    const char *error = check_axis(r);
    if (error) return error;
    TileScalar scalar = tile_rule_operand(r, 0)->scalar;
    int64_t kind = tile_op_integer(r->op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM);
    bool logical = kind == TILE_KIND_ANY || kind == TILE_KIND_ALL;
    if (logical != (scalar == TILE_BOOL)) return "any and all reduce bool, and nothing else does";
    return tile_rule_result(r, 0, without_axis(r, scalar));
}

const char *tile_rule_arg_reduce(const TileRule *r) {
    const char *error = check_axis(r);
    if (error) return error;
    int64_t kind = tile_op_integer(r->op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM);
    if (kind != TILE_KIND_MIN && kind != TILE_KIND_MAX) return "kind is neither min nor max";
    const TileType *index = tile_rule_operand(r, 1);
    if (index->scalar != TILE_I64 || !tile_type_same_shape(index, tile_rule_operand(r, 0)))
        return "the index is no i64 tile of the value's shape";
    return tile_rule_result(r, 0, without_axis(r, TILE_I64));
}

/* Operands: n tiles, a mask. */
const char *tile_rule_sort(const TileRule *r) {
    unsigned count = r->op->result_count, mask = tile_op_has_part(r->op, TILE_PARTS_MASK);
    if (!count || count > TILE_MAX_FOLD) return tile_rule_complain(r, "sorts 1 to %d tiles", TILE_MAX_FOLD);
    if (r->op->operand_count != count + mask) return "the number of operands is not what parts says";
    const char *error = check_axis(r);
    if (error) return error;
    const TileType *keys = tile_rule_operand(r, 0);
    int64_t extent = tile_op_integer(r->op, TILE_ATTRIBUTE_EXTENT, keys->extent[axis_of(r)]);
    if (extent < 1 || extent > keys->extent[axis_of(r)]) return "has more lanes than are sorted, or none";
    for (unsigned i = 0; i < r->op->operand_count && !error; i++) {
        const TileType *type = tile_rule_operand(r, i);
        if (!tile_type_same_shape(type, keys)) return "the tiles differ in shape";
        if (i == count) return type->scalar == TILE_BOOL ? NULL : "the mask is no bool tile";
        TileType to = *type;
        to.layout = NULL;
        to.extent[axis_of(r)] = extent;
        error = tile_rule_result(r, i, tile_type_intern(r->module->context->types, &to));
    }
    return error;
}

/* ---- folds ---- */

/* n left and n right scalars; the verifier checks what is yielded. */
static const char *check_combiner(const TileRule *r, unsigned region, unsigned count) {
    const TileBlock *block = &r->op->regions[region];
    if (!block->argument_count && !block->first) return NULL; /* under construction */
    if (block->argument_count != 2 * count) return "the combiner takes two scalars for each value";
    for (unsigned i = 0; i < count; i++)
        if (!tile_type_is_scalar(block->arguments[i]->type) ||
            block->arguments[i]->type != block->arguments[count + i]->type)
            return "the combiner takes equal scalars left and right";
    return NULL;
}

static const char *check_folded(const TileRule *r, unsigned i, const TileType *result) {
    const TileType *type = tile_rule_operand(r, i);
    const TileBlock *block = &r->op->regions[0];
    if (!tile_type_same_shape(type, tile_rule_operand(r, 0))) return "the tiles differ in shape";
    if (block->argument_count && block->arguments[i]->type->scalar != type->scalar)
        return "the combiner takes other scalars than the elements";
    return tile_rule_result(r, i, result);
}

static bool is_of_shape(const TileRule *r, const TileType *type, const TileType *shape) {
    return type == shape || (tile_type_is_tile(type) && tile_type_with_layout(r->module->context, type, NULL) == shape);
}

/* Operands: n tiles, a mask, n init. */
static const char *check_fold(const TileRule *r, bool scan) {
    unsigned count = r->op->result_count, mask = tile_op_has_part(r->op, TILE_PARTS_MASK),
             init = tile_op_has_part(r->op, TILE_PARTS_INIT);
    if (!count || count > TILE_MAX_FOLD) return tile_rule_complain(r, "folds 1 to %d values", TILE_MAX_FOLD);
    if (r->op->operand_count != count * (1 + init) + mask) return "the number of operands is not what parts says";
    const char *error = check_axis(r);
    if (!error) error = check_combiner(r, 0, count);
    for (unsigned i = 0; i < count && !error; i++) {
        const TileType *type = tile_rule_operand(r, i), *line = without_axis(r, type->scalar);
        error = check_folded(r, i, scan ? type : line);
        if (!error && init && !is_of_shape(r, tile_rule_operand(r, count + mask + i), line))
            error = "an init has the wrong type";
    }
    const TileType *valid = mask ? tile_rule_operand(r, count) : NULL;
    if (!error && mask && (valid->scalar != TILE_BOOL || !tile_type_same_shape(valid, tile_rule_operand(r, 0))))
        error = "the mask is no bool tile of the elements' shape";
    return error;
}

const char *tile_rule_fold(const TileRule *r) { return check_fold(r, false); }
const char *tile_rule_scan(const TileRule *r) { return check_fold(r, true); }

TileScalar tile_dot_accumulator(TileScalar scalar) {
    if (scalar == TILE_F64) return TILE_F64;
    return tile_scalar_is_float(scalar) ? TILE_F32 : TILE_I32;
}

/* How the warps of a block divide a product for tensor cores. */
static const char *check_plan(const TileRule *r) {
    const TileAttribute *warps = tile_op_get(r->op, TILE_ATTRIBUTE_WARPS), *pairs = tile_op_get(r->op, TILE_ATTRIBUTE_PAIRS);
    if (warps && warps->count != 2) return "warps has a number for rows and one for columns";
    for (unsigned i = 0; warps && i < 2; i++) {
        int64_t count = warps->integers[i];
        if (count < 1 || count > TILE_MAX_THREADS / TILE_WARP_THREADS || (count & (count - 1)))
            return "a number of warps is no power of two up to 32";
    }
    bool decided = warps || tile_op_integer(r->op, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA) == TILE_INSTRUCTION_WGMMA;
    if (pairs && (!decided || pairs->count != 2)) return "pairs has a word for rows and one for columns, beside warps or wgmma";
    return NULL;
}

const char *tile_rule_dot(const TileRule *r) {
    const char *error = check_plan(r);
    if (error) return error;
    const TileType *a = tile_rule_operand(r, 0), *b = tile_rule_operand(r, 1), *acc = tile_rule_operand(r, 2);
    unsigned rank = a->rank;
    if (!tile_type_is_tile(a) || !tile_type_is_tile(b) || !tile_type_is_tile(acc) || rank < 2 || b->rank != rank ||
        acc->rank != rank)
        return "needs three tiles of one rank, at least 2";
    for (unsigned i = 0; i + 2 < rank; i++)
        if (a->extent[i] != b->extent[i] || a->extent[i] != acc->extent[i]) return "the batch axes differ";
    int64_t parts = tile_op_integer(r->op, TILE_ATTRIBUTE_K_PARTS, 1);
    if (parts < 1 || a->extent[rank - 1] % parts || (parts > 1 && rank > 2)) return "k_parts does not divide the depth of two axes";
    if (a->extent[rank - 1] != b->extent[rank - 2] || acc->extent[rank - 2] != parts * a->extent[rank - 2] ||
        acc->extent[rank - 1] != b->extent[rank - 1])
        return "the extents do not fit [M, K] [K, N] [M, N]";
    bool mixed_bytes = tile_scalar_is_int(a->scalar) && tile_scalar_is_int(b->scalar) &&
                       tile_scalar_bits(a->scalar) == 8 && tile_scalar_bits(b->scalar) == 8;
    if (a->scalar != b->scalar && !mixed_bytes) return "the element types of a and b differ";
    if (tile_scalar_is_int(a->scalar) ? tile_scalar_bits(a->scalar) != 8 : !tile_scalar_is_float(a->scalar))
        return "multiplies floats or 8-bit integers";
    if (acc->scalar != tile_dot_accumulator(a->scalar)) return "the accumulator has the wrong element type";
    return tile_rule_result(r, 0, acc);
}

const char *tile_rule_dot_wait(const TileRule *r) {
    if (tile_op_integer(r->op, TILE_ATTRIBUTE_PENDING, -1) < 0) return "pending is negative";
    if (!tile_type_is_tile(tile_rule_operand(r, 0))) return "needs a tile";
    return tile_rule_result(r, 0, tile_rule_operand(r, 0));
}

/* ---- control ---- */

const char *tile_rule_partitions(const TileRule *r) {
    const TileAttribute *warps = tile_op_get(r->op, TILE_ATTRIBUTE_WARPS);
    enum { MOST_WARPS = TILE_MAX_THREADS / TILE_WARP_THREADS };
    if (warps->count != 2) return "has two partitions";
    for (unsigned i = 0; i < 2; i++)
        if (warps->integers[i] < 1 || warps->integers[i] > MOST_WARPS) return "a partition has 1 to 32 warps";
    int64_t turns = tile_op_integer(r->op, TILE_ATTRIBUTE_TURNS, 1);
    if (turns < 1 || warps->integers[0] % turns) return "turns does not divide the warps of the first partition";
    return NULL;
}

const char *tile_rule_none(const TileRule *r) {
    (void)r;
    return NULL;
}

static const char *check_region(const TileRule *r, unsigned region, unsigned leading, unsigned first_operand) {
    const TileBlock *block = &r->op->regions[region];
    unsigned carried = r->op->operand_count - first_operand;
    if (!block->argument_count && !block->first) return NULL; /* under construction */
    if (block->argument_count != leading + carried) return "a region has the wrong number of arguments";
    for (unsigned i = 0; i < leading; i++)
        if (!tile_rule_is_i64(block->arguments[i]->type)) return "a region's index argument is not i64";
    for (unsigned i = 0; i < carried; i++)
        if (block->arguments[leading + i]->type != tile_rule_operand(r, first_operand + i))
            return "a region argument differs in type from the carried operand";
    return NULL;
}

static const char *carried_results(const TileRule *r, unsigned first_operand) {
    if (r->op->result_count != r->op->operand_count - first_operand) return "needs one result for each carried operand";
    for (unsigned i = 0; i < r->op->result_count; i++) {
        const char *error = tile_rule_result(r, i, tile_rule_operand(r, first_operand + i));
        if (error) return error;
    }
    return NULL;
}

static const char *check_i64_operands(const TileRule *r, unsigned count) {
    if (r->op->operand_count < count) return "too few operands";
    for (unsigned i = 0; i < count; i++)
        if (!tile_rule_is_i64(tile_rule_operand(r, i))) return tile_rule_complain(r, "operand %u is not i64", i);
    return NULL;
}

const char *tile_rule_for(const TileRule *r) {
    const char *error = check_i64_operands(r, 3);
    if (!error) error = check_region(r, 0, 1, 3);
    return error ? error : carried_results(r, 3);
}

const char *tile_rule_while(const TileRule *r) {
    const char *error = check_region(r, 0, 0, 0);
    if (!error) error = check_region(r, 1, 0, 0);
    return error ? error : carried_results(r, 0);
}

const char *tile_rule_if(const TileRule *r) {
    if (!tile_rule_is_bool(tile_rule_operand(r, 0))) return "the condition is not a bool scalar";
    for (unsigned i = 0; i < r->op->result_count; i++)
        if (!r->result[i]) return "the result types have to be given";
    return r->op->regions[0].argument_count || r->op->regions[1].argument_count ? "regions of if take no arguments"
                                                                                : NULL;
}

const char *tile_rule_condition(const TileRule *r) {
    if (!r->op->operand_count || !tile_rule_is_bool(tile_rule_operand(r, 0)))
        return "the condition is not a bool scalar";
    return NULL;
}

const char *tile_rule_grid(const TileRule *r) {
    const char *error = check_i64_operands(r, r->op->operand_count);
    if (error) return error;
    const TileBlock *block = &r->op->regions[0];
    if (!block->argument_count && !block->first) return NULL;
    if (block->argument_count != r->op->operand_count) return "needs one region argument for each extent";
    for (unsigned i = 0; i < block->argument_count; i++)
        if (!tile_rule_is_i64(block->arguments[i]->type)) return "a program number is not i64";
    return NULL;
}

/* The program, an extent for each result, and the range if there is an explicit order; then the number of blocks, perhaps. */
const char *tile_rule_program_id(const TileRule *r) {
    const char *error = check_i64_operands(r, r->op->operand_count);
    bool order = tile_op_get(r->op, TILE_ATTRIBUTE_PROGRAMS) != NULL;
    int64_t together = tile_op_integer(r->op, TILE_ATTRIBUTE_TOGETHER, 0);
    unsigned range = order ? 2 : 0, axes = r->op->result_count, others = r->op->operand_count - range;
    if (error) return error;
    if (!axes || (others != 1 + axes && (!together || others != 2 + axes))) return "needs an extent for each result";
    if (range && axes < 2) return "has an order of its own on a grid of one axis";
    if (tile_op_get(r->op, TILE_ATTRIBUTE_TOGETHER) && (together < 1 || !order)) return "numbers no rows together";
    for (unsigned i = 0; i < axes && !error; i++)
        error = tile_rule_result(r, i, tile_type_scalar(r->module->context, TILE_I64));
    return error;
}

const char *tile_rule_require(const TileRule *r) {
    return tile_rule_is_bool(tile_rule_operand(r, 0)) ? NULL : "the condition is not a bool scalar";
}

/* The verifier compares with the callee if it exists; the builder of a call that precedes its callee gives the
 * types. */
const char *tile_rule_call(const TileRule *r) {
    const TileFunc *callee = tile_func_find(r->module, tile_op_get(r->op, TILE_ATTRIBUTE_CALLEE)->text);
    if (!callee) return "no function of this name";
    if (callee->body.argument_count != r->op->operand_count)
        return "the number of arguments differs from the function's";
    for (unsigned i = 0; i < r->op->operand_count; i++)
        if (callee->body.arguments[i]->type != tile_rule_operand(r, i))
            return tile_rule_complain(r, "argument %u differs in type from the function's parameter", i);
    if (callee->result_count != r->op->result_count) return "the number of results differs from the function's";
    for (unsigned i = 0; i < callee->result_count; i++) {
        const char *error = tile_rule_result(r, i, callee->result_types[i]);
        if (error) return error;
    }
    return NULL;
}

static const char *check_combine(const TileRule *r, unsigned carried) {
    bool reduces = tile_op_integer(r->op, TILE_ATTRIBUTE_LOOP_KIND, 0) == TILE_LOOP_KIND_REDUCE;
    const TileAttribute *combine = tile_op_get(r->op, TILE_ATTRIBUTE_COMBINE);
    if (!reduces) return combine ? "combine belongs to reduce loops" : NULL;
    if (!combine || combine->count != carried) return "a reduce loop combines each carried value in one way";
    for (unsigned i = 0; i < carried; i++)
        if (combine->integers[i] == TILE_COMBINE_WITH && (!i || (combine->integers[i - 1] != TILE_COMBINE_ARG_MAX &&
                                                                 combine->integers[i - 1] != TILE_COMBINE_ARG_MIN)))
            return "`with` follows arg_max or arg_min";
    return NULL;
}

const char *tile_rule_loop(const TileRule *r) {
    const char *error = check_i64_operands(r, 2);
    if (!error) error = check_region(r, 0, 1, 2);
    if (!error) error = check_combine(r, r->op->operand_count - 2);
    if (!error && tile_op_integer(r->op, TILE_ATTRIBUTE_LOOP_KIND, 0) == TILE_LOOP_KIND_PARALLEL &&
        r->op->operand_count > 2)
        error = "a parallel loop carries nothing";
    return error ? error : carried_results(r, 2);
}

const char *tile_rule_fold_loop(const TileRule *r) {
    const TileOp *op = r->op;
    const TileBlock *body = &op->regions[0], *combiner = &op->regions[1], *after = &op->regions[2];
    unsigned count = combiner->argument_count / 2, init = tile_op_has_part(op, TILE_PARTS_INIT) ? count : 0;
    bool prefix = tile_op_integer(op, TILE_ATTRIBUTE_ORDER, 0) == TILE_ORDER_PREFIX;
    const char *error = check_i64_operands(r, 2);
    if (error || (!combiner->argument_count && !combiner->first)) return error;
    if (tile_op_integer(op, TILE_ATTRIBUTE_EXTENT, 0) <= 0) return "the extent has to be known";
    if (!count || count > TILE_MAX_FOLD) return tile_rule_complain(r, "folds 1 to %d values", TILE_MAX_FOLD);
    if (op->operand_count != 2 + init) return "needs two bounds, and one init for each value where parts says so";
    if (op->result_count != (prefix ? 0 : count)) return "a fold has one result for each value, a scan none";
    error = check_combiner(r, 1, count);
    if (!error && (body->argument_count != 1 || !tile_rule_is_i64(body->arguments[0]->type)))
        error = "the first region takes the index";
    if (!error && after->argument_count != (prefix ? 1 + count : 0)) error = "the last region takes index and results";
    if (!error && prefix && !tile_rule_is_i64(after->arguments[0]->type)) error = "the last region takes the index";
    for (unsigned i = 0; i < count && !error; i++) {
        const TileType *type = combiner->arguments[i]->type;
        if (init && tile_rule_operand(r, 2 + i) != type) error = "an init has the wrong type";
        if (prefix && after->arguments[1 + i]->type != type) error = "a result has the wrong type";
        if (!error && !prefix) error = tile_rule_result(r, i, type);
    }
    return error;
}
