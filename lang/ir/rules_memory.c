/* Type rules of tensors, memory and vectors. */
#include "lang/ir/rules.h"

#include "base/print_line.h"
#include "base/temp.h"
#include "lang/ir/operands.h"
#include "lang/ir/statement.h"

static unsigned part_count(const TileOp *op) {
    const TileAttribute *parts = tile_op_get(op, TILE_ATTRIBUTE_PARTS);
    return parts ? parts->count : 0;
}

/* The optional operands come last: mask, then fill. */
static const char *check_parts(const TileRule *r, unsigned expected, const TileType *value) {
    unsigned count = part_count(r->op);
    if (r->op->operand_count != expected + count) return "the number of operands does not fit the attributes";
    unsigned next = expected;
    if (tile_op_has_part(r->op, TILE_PARTS_MASK)) {
        const TileType *mask = tile_rule_operand(r, next++);
        if (mask->scalar != TILE_BOOL || !tile_type_same_shape(mask, value))
            return "the mask is not bool of the value's shape";
    }
    if (tile_op_has_part(r->op, TILE_PARTS_FILL)) {
        const TileType *fill = tile_rule_operand(r, next++);
        bool scalar = fill->kind == TILE_TYPE_SCALAR && fill->scalar == value->scalar;
        if (fill != value && !scalar) return "the fill is neither of the value's type nor a scalar of its element type";
    }
    return next == r->op->operand_count ? NULL : "parts are named twice or out of order";
}

/* Checks the indices of an access from operand `next` on; collects the known extents of the kept axes. */
typedef struct Access {
    unsigned next, rank;
    int64_t extent[TILE_MAX_TENSOR_RANK]; /* -1: a range, whose length is the lane count of the value */
} Access;

static const char *walk_access(const TileRule *r, const TileType *tensor, Access *access) {
    const TileAttribute *kinds = tile_op_get(r->op, TILE_ATTRIBUTE_ACCESS);
    if (kinds->count != tensor->rank) return "access has not one entry for each dimension";
    bool gathered = false, positions = false;
    for (unsigned d = 0; d < kinds->count; d++) {
        unsigned operands = tile_access_operands(kinds->integers[d]);
        bool position = kinds->integers[d] == TILE_ACCESS_POSITION;
        if ((position && gathered) || (kinds->integers[d] == TILE_ACCESS_GATHER && positions)) return "positions stand beside a gather";
        if (access->next + operands > r->op->operand_count) return "too few operands for the access";
        const TileType *type = tile_rule_operand(r, access->next);
        if (kinds->integers[d] == TILE_ACCESS_GATHER) {
            if (type->kind != TILE_TYPE_TILE || type->rank != 1 || type->scalar != TILE_I64)
                return "a gather index is no i64[n]";
            if (!gathered) access->extent[access->rank++] = type->extent[0];
            gathered = true;
        } else {
            for (unsigned i = 0; i < operands; i++)
                if (!tile_rule_is_i64(tile_rule_operand(r, access->next + i))) return "an index operand is not i64";
            if (kinds->integers[d] == TILE_ACCESS_RANGE || (position && !positions)) access->extent[access->rank++] = -1;
            positions |= position;
        }
        access->next += operands;
    }
    return NULL;
}

static bool is_zero(const TileValue *value) {
    const TileAttribute *constant = value->op && value->op->id == TILE_OP_CONST ? tile_op_get(value->op, TILE_ATTRIBUTE_VALUE) : NULL;
    return constant && constant->bits == 0;
}

/* `flat`: indices of 0 from that dimension on, but for the last one, which is no tile of indices. */
static const char *check_flat(const TileRule *r, const TileType *tensor, unsigned first) {
    const TileAttribute *flat = tile_op_get(r->op, TILE_ATTRIBUTE_FLAT), *kinds = tile_op_get(r->op, TILE_ATTRIBUTE_ACCESS);
    unsigned operand = first, last = tensor->rank - 1u;
    if (!flat) return NULL;
    if (flat->integer < 0 || flat->integer >= (int64_t)last) return "flat is no dimension in front of the last";
    for (unsigned d = 0; d < last; d++) {
        bool zero = kinds->integers[d] == TILE_ACCESS_INDEX && is_zero(tile_op_operand(r->op, operand));
        if ((int64_t)d >= flat->integer && !zero) return "an index that flat makes none is not 0";
        operand += tile_access_operands(kinds->integers[d]);
    }
    return kinds->integers[last] == TILE_ACCESS_GATHER ? "a flat access has no gather as its last index" : NULL;
}

static const char *check_access(const TileRule *r, const TileType *tensor, unsigned first, const TileType *value) {
    if (tensor->kind != TILE_TYPE_TENSOR) return "the first operand is no tensor";
    Access access = {.next = first};
    const char *error = walk_access(r, tensor, &access);
    if (!error) error = check_flat(r, tensor, first);
    if (error) return error;
    if (value->kind != TILE_TYPE_SCALAR && value->kind != TILE_TYPE_TILE) return "the value is neither scalar nor tile";
    if (value->scalar != tensor->scalar) return "the value's element type is not the tensor's";
    if (value->rank != access.rank) return "the value's rank is not the number of kept axes";
    for (unsigned i = 0; i < access.rank; i++)
        if (access.extent[i] >= 0 && access.extent[i] != value->extent[i])
            return "the value's extent is not the index tile's";
    return check_parts(r, access.next, value);
}

const char *tile_rule_load_tile(const TileRule *r) {
    if (!r->result[0]) return "the result type has to be given";
    if (r->op->operand_count < 1) return "needs a tensor";
    return check_access(r, tile_rule_operand(r, 0), 1, r->result[0]);
}

const char *tile_rule_store_tile(const TileRule *r) {
    if (r->op->operand_count < 2) return "needs a tensor and a value";
    if (tile_op_has_part(r->op, TILE_PARTS_FILL)) return "a store has no fill";
    return check_access(r, tile_rule_operand(r, 0), 2, tile_rule_operand(r, 1));
}

static const char *check_expected(const TileRule *r, unsigned value, const char *none) {
    bool compares = tile_op_integer(r->op, TILE_ATTRIBUTE_UPDATE, 0) == TILE_UPDATE_CAS;
    if (compares && r->op->operand_count < value + 2) return none;
    if (compares && tile_rule_operand(r, value) != tile_rule_operand(r, value + 1))
        return "the expected value is not of the value's type";
    return NULL;
}

const char *tile_rule_print(const TileRule *r) {
    bool words = r->op->id == TILE_OP_PRINT;
    unsigned first = words ? 0 : 1;
    for (unsigned i = 0; i < r->op->operand_count; i++) {
        const TileType *type = tile_rule_operand(r, i);
        bool value = tile_type_is_scalar(type) || tile_type_is_tile(type);
        if (!words && type->kind != TILE_TYPE_POINTER) return "an operand is no pointer";
        if (words && (!value || tile_scalar_bits(type->scalar) != 64)) return "a value is not of 64 bits";
    }
    bool fits = r->op->operand_count == first + tile_print_count(tile_op_get(r->op, TILE_ATTRIBUTE_TEXT)->text);
    return fits ? NULL : "the text has another number of places";
}

const char *tile_rule_statement(const TileRule *r) {
    const TileAttribute *ranges = tile_op_get(r->op, TILE_ATTRIBUTE_RANGES);
    uint32_t names = tile_op_get(r->op, TILE_ATTRIBUTE_NAMES)->count;
    for (uint32_t i = 0; ranges && i < ranges->count; i++) {
        int64_t least = i ? ranges->integers[i - 1] + 1 : 0;
        if (ranges->integers[i] < least || ranges->integers[i] >= names) return "ranges are not numbers of names in order";
    }
    TileStatementName name = {0};
    while ((name = tile_statement_next(r->op, &name)).text)
        for (uint32_t i = name.operand; i < name.operand + name.operands && i < r->op->operand_count; i++)
            if (name.is_range && !tile_type_is_scalar(tile_rule_operand(r, i))) return "a range is not five scalars";
    return name.operand == r->op->operand_count ? NULL : "there is another number of operands than the names stand for";
}

/* No value has the tile's type, so it is an attribute. */
/* A pointer into shared memory, and the tile that is copied to or read from there: all its axes but the last make up the
 * place's rows. */
static const char *check_shared(const TileType *pointer, const TileType *tile) {
    int64_t rows = 1;
    if (pointer->kind != TILE_TYPE_POINTER || pointer->space != TILE_SPACE_SHARED || pointer->rank != 2)
        return "needs a place in shared memory that says how a tile lies there";
    if (tile->rank < 1) return "the tile has no axis";
    for (unsigned a = 0; a + 1 < tile->rank; a++) rows *= tile->extent[a];
    bool fits = pointer->extent[0] >= rows && pointer->extent[1] >= tile->extent[tile->rank - 1];
    return fits && pointer->scalar == tile->scalar ? NULL : "the place is one of another tile";
}

const char *tile_rule_copy_tile(const TileRule *r) {
    const TileAttribute *types = tile_op_get(r->op, TILE_ATTRIBUTE_TYPES);
    if (types->count != 1 || !tile_type_is_tile(types->types[0])) return "types names the tile's type";
    if (r->op->operand_count < 2) return "needs a tensor and a place in shared memory";
    const char *error = check_shared(tile_rule_operand(r, 1), types->types[0]);
    if (error) return error;
    if (tile_op_has_part(r->op, TILE_PARTS_MASK) || tile_op_has_part(r->op, TILE_PARTS_FILL))
        return "a copy has neither mask nor fill";
    return check_access(r, tile_rule_operand(r, 0), 2, types->types[0]);
}

/* Are the place's rows those of all axes of the tile but the last one? */
static bool are_rows_of(const TileType *place, const TileType *tile) {
    int64_t rows = 1;
    if (!tile_type_is_tile(tile) || tile->rank < 2) return false;
    for (unsigned a = 0; a + 1 < tile->rank; a++) rows *= tile->extent[a];
    return tile->scalar == place->scalar && rows == place->extent[0] && tile->extent[tile->rank - 1] == place->extent[1];
}

const char *tile_rule_clear_tile(const TileRule *r) {
    const TileAttribute *axes = tile_op_get(r->op, TILE_ATTRIBUTE_AXES);
    if (r->op->operand_count != 1 + 2 * axes->count) return "needs a place, and two bounds for each axis";
    const TileType *place = tile_rule_operand(r, 0);
    if (place->kind != TILE_TYPE_POINTER || place->space != TILE_SPACE_SHARED || place->rank != 2)
        return "needs a place in shared memory that says how a tile lies there";
    const TileAttribute *types = tile_op_get(r->op, TILE_ATTRIBUTE_TYPES);
    if (types && (types->count != 1 || !are_rows_of(place, types->types[0]))) return "the place does not have the rows of the tile";
    int64_t rank = types ? types->types[0]->rank : place->rank;
    for (unsigned i = 0; i < axes->count; i++)
        if (axes->integers[i] < 0 || axes->integers[i] >= rank) return "no such axis";
    for (unsigned i = 1; i < r->op->operand_count; i++)
        if (!tile_rule_is_i64(tile_rule_operand(r, i))) return "a bound is not i64";
    return NULL;
}

const char *tile_rule_put_tile(const TileRule *r) {
    const TileType *tile = tile_rule_operand(r, 1);
    return tile_type_is_tile(tile) && tile->rank == 2 ? check_shared(tile_rule_operand(r, 0), tile) : "what is stored is no tile of two axes";
}

const char *tile_rule_shared_tile(const TileRule *r) {
    const TileType *type = r->result[0];
    if (!type) return "the result type has to be given";
    return tile_type_is_tile(type) && type->rank == 2 ? check_shared(tile_rule_operand(r, 0), type)
                                                      : "the result is no tile of two axes";
}

static bool is_number(TileScalar scalar) { return scalar != TILE_BOOL; }

const char *tile_rule_atomic_tile(const TileRule *r) {
    if (r->op->operand_count < 2) return "needs a tensor and a value";
    const TileType *value = tile_rule_operand(r, 1);
    const char *error = check_expected(r, 1, "needs a tensor and two values");
    if (error) return error;
    if (tile_op_integer(r->op, TILE_ATTRIBUTE_UPDATE, 0) == TILE_UPDATE_READ) return "a read is a load_tile";
    if (tile_op_has_part(r->op, TILE_PARTS_FILL)) return "an update has no fill";
    error = check_access(r, tile_rule_operand(r, 0), tile_access_first(r->op), value);
    if (!error && !is_number(value->scalar)) error = "a bool is not updated";
    return error ? error : tile_rule_result(r, 0, value);
}

static const char *check_dimension(const TileRule *r) {
    const TileType *tensor = tile_rule_operand(r, 0);
    int64_t axis = tile_op_integer(r->op, TILE_ATTRIBUTE_AXIS, 0);
    if (tensor->kind != TILE_TYPE_TENSOR) return "the operand is no tensor";
    return axis >= 0 && axis < tensor->rank ? NULL : "no such dimension";
}

const char *tile_rule_dim(const TileRule *r) {
    const char *error = check_dimension(r);
    return error ? error : tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_I64));
}

const char *tile_rule_check_dim(const TileRule *r) {
    const char *error = check_dimension(r);
    if (error) return error;
    return tile_rule_is_i64(tile_rule_operand(r, 1)) ? NULL : "the expected extent is not i64";
}

const char *tile_rule_temp(const TileRule *r) {
    const TileType *type = r->result[0];
    if (!type || type->kind != TILE_TYPE_TENSOR || type->access != TILE_ACCESS_TEMP)
        return "the result is no temp tensor";
    if (type->rank != r->op->operand_count) return "needs one extent for each dimension";
    for (unsigned i = 0; i < r->op->operand_count; i++)
        if (!tile_rule_is_i64(tile_rule_operand(r, i))) return "an extent is not i64";
    int64_t align = tile_op_integer(r->op, TILE_ATTRIBUTE_ALIGN, tile_scalar_bytes(type->scalar));
    bool power = align > 0 && (align & (align - 1)) == 0;
    if (!power || align < tile_scalar_bytes(type->scalar) || align > TILE_MOST_TEMP_ALIGN)
        return "rows are aligned to a power of two, an element at least, 128 bytes at most";
    return NULL;
}

/* ---- machine form ---- */

/* To memory that ops access by addresses. */
static bool is_pointer(const TileType *type) {
    return type->kind == TILE_TYPE_POINTER && type->space != TILE_SPACE_MAP;
}

const char *tile_rule_ptr_add(const TileRule *r) {
    if (!is_pointer(tile_rule_operand(r, 0)) || !tile_rule_is_i64(tile_rule_operand(r, 1)))
        return "needs a pointer and i64 bytes";
    return tile_rule_result(r, 0, tile_rule_operand(r, 0));
}

const char *tile_rule_is_aligned(const TileRule *r) {
    int64_t align = tile_op_integer(r->op, TILE_ATTRIBUTE_ALIGN, 0);
    if (align <= 0 || (align & (align - 1))) return "align is no power of two";
    if (!is_pointer(tile_rule_operand(r, 0))) return "needs a pointer";
    return tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_BOOL));
}

const char *tile_rule_buffer(const TileRule *r) {
    int64_t align = tile_op_integer(r->op, TILE_ATTRIBUTE_ALIGN, 0);
    if (tile_op_integer(r->op, TILE_ATTRIBUTE_BYTES, 0) <= 0) return "bytes is not positive";
    if (align <= 0 || (align & (align - 1))) return "align is no power of two";
    const TileType *type = r->result[0];
    if (type && is_pointer(type) && type->space == TILE_SPACE_SHARED) {
        int64_t row = type->rank ? type->extent[1] * (int64_t)tile_scalar_bytes(type->scalar) : 0;
        bool holds = !type->rank || tile_op_integer(r->op, TILE_ATTRIBUTE_BYTES, 0) / row >= type->extent[0];
        return holds ? NULL : "bytes do not hold what lies there";
    }
    return tile_rule_result(r, 0, tile_type_pointer(r->module->context, TILE_SPACE_SCRATCH));
}

static const char *check_machine_value(const TileType *type) {
    return type->kind == TILE_TYPE_SCALAR || type->kind == TILE_TYPE_VECTOR ? NULL
                                                                            : "the value is neither scalar nor vector";
}

static const char *check_offsets(const TileType *offsets, const TileType *value) {
    bool fits =
        offsets->kind == TILE_TYPE_VECTOR && offsets->scalar == TILE_I64 && tile_type_same_shape(offsets, value);
    return fits ? NULL : "the offsets are no i64 vector of the value's lanes";
}

const char *tile_rule_load(const TileRule *r) {
    if (!r->result[0]) return "the result type has to be given";
    if (!r->op->operand_count || !is_pointer(tile_rule_operand(r, 0))) return "needs a pointer";
    const char *error = check_machine_value(r->result[0]);
    return error ? error : check_parts(r, 1, r->result[0]);
}

const char *tile_rule_store(const TileRule *r) {
    if (r->op->operand_count < 2 || !is_pointer(tile_rule_operand(r, 1))) return "needs a value and a pointer";
    const char *error = check_machine_value(tile_rule_operand(r, 0));
    return error ? error : check_parts(r, 2, tile_rule_operand(r, 0));
}

const char *tile_rule_gather(const TileRule *r) {
    if (!r->result[0]) return "the result type has to be given";
    if (r->op->operand_count < 2 || !is_pointer(tile_rule_operand(r, 0))) return "needs a pointer and offsets";
    const char *error = check_offsets(tile_rule_operand(r, 1), r->result[0]);
    return error ? error : check_parts(r, 2, r->result[0]);
}

const char *tile_rule_scatter(const TileRule *r) {
    if (r->op->operand_count < 3 || !is_pointer(tile_rule_operand(r, 1))) return "needs a value, a pointer and offsets";
    const char *error = check_offsets(tile_rule_operand(r, 2), tile_rule_operand(r, 0));
    return error ? error : check_parts(r, 3, tile_rule_operand(r, 0));
}

const char *tile_rule_atomic(const TileRule *r) {
    bool reads = tile_op_integer(r->op, TILE_ATTRIBUTE_UPDATE, 0) == TILE_UPDATE_READ;
    bool compares = tile_op_integer(r->op, TILE_ATTRIBUTE_UPDATE, 0) == TILE_UPDATE_CAS;
    unsigned count = reads ? 1 : compares ? 3 : 2;
    if (r->op->operand_count < count || !is_pointer(tile_rule_operand(r, 0))) return "needs a pointer and values";
    if (!reads && !r->result[0]) r->result[0] = tile_rule_operand(r, 1);
    const TileType *type = r->result[0];
    if (!type) return "the result type has to be given";
    if (!tile_type_is_scalar(type) || !is_number(type->scalar)) return "the value is no scalar number";
    if (!reads && tile_rule_operand(r, 1) != type) return "the value is not of the result's type";
    const char *error = check_expected(r, 1, "needs a pointer and two values");
    if (!error && tile_op_has_part(r->op, TILE_PARTS_FILL)) error = "an update has no fill";
    return error ? error : check_parts(r, count, type);
}

const char *tile_rule_atomic_update(const TileRule *r) {
    int64_t update = tile_op_integer(r->op, TILE_ATTRIBUTE_UPDATE, 0);
    if (update == TILE_UPDATE_READ || update == TILE_UPDATE_CAS) return "a read and a swap give the old value";
    if (r->op->operand_count < 2 || !is_pointer(tile_rule_operand(r, 0))) return "needs a pointer and a value";
    const TileType *value = tile_rule_operand(r, 1);
    const char *error = check_machine_value(value);
    if (error) return error;
    if (value->scalable || !is_number(value->scalar)) return "the value is no number or fixed vector of numbers";
    if (tile_op_get(r->op, TILE_ATTRIBUTE_FLUSH) && value->scalar != TILE_F32) return "only additions of f32 are flushed";
    if (tile_op_has_part(r->op, TILE_PARTS_FILL)) return "an update has no fill";
    return check_parts(r, 2, tile_type_scalar(r->module->context, value->scalar));
}

const char *tile_rule_prefetch(const TileRule *r) {
    return is_pointer(tile_rule_operand(r, 0)) ? NULL : "needs a pointer";
}

/* a, a_row, a_col, b, b_row, b_col, c, c_row, m, n, k, m0, n0, k0 */
const char *tile_rule_dot_block(const TileRule *r) {
    static const char is_pointer_operand[14] = {1, 0, 0, 1, 0, 0, 1};
    const TileAttribute *types = tile_op_get(r->op, TILE_ATTRIBUTE_TYPES);
    for (unsigned i = 0; i < 14; i++)
        if (is_pointer_operand[i] ? !is_pointer(tile_rule_operand(r, i)) : !tile_rule_is_i64(tile_rule_operand(r, i)))
            return tile_rule_complain(r, "operand %u is of the wrong type", i);
    if (types->count != 3) return "types names the element types of a, b and c";
    int64_t instruction = tile_op_integer(r->op, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA);
    if (instruction != TILE_INSTRUCTION_FMA && instruction != TILE_INSTRUCTION_AMX && instruction != TILE_INSTRUCTION_VNNI)
        return "a block product is computed by fma, amx or vnni";
    if (tile_op_get(r->op, TILE_ATTRIBUTE_EXTENTS)->count != 3) return "extents names the greatest m, n and k";
    return NULL;
}

/* ---- vectors ---- */

static bool is_vector(const TileType *type) { return type->kind == TILE_TYPE_VECTOR; }

static const char *check_lane(const TileRule *r, const TileType *vector) {
    int64_t lane = tile_op_integer(r->op, TILE_ATTRIBUTE_AXIS, 0);
    if (!is_vector(vector)) return "the operand is no vector";
    return lane >= 0 && lane < vector->extent[0] ? NULL : "no such lane";
}

const char *tile_rule_extract(const TileRule *r) {
    const TileType *vector = tile_rule_operand(r, 0);
    const char *error = check_lane(r, vector);
    return error ? error : tile_rule_result(r, 0, tile_type_scalar(r->module->context, vector->scalar));
}

const char *tile_rule_insert(const TileRule *r) {
    const TileType *vector = tile_rule_operand(r, 0), *scalar = tile_rule_operand(r, 1);
    const char *error = check_lane(r, vector);
    if (error) return error;
    if (!tile_type_is_scalar(scalar) || scalar->scalar != vector->scalar)
        return "the scalar is not of the element type";
    return tile_rule_result(r, 0, vector);
}

const char *tile_rule_shuffle(const TileRule *r) {
    const TileType *type = tile_rule_operand(r, 0);
    const TileAttribute *lanes = tile_op_get(r->op, TILE_ATTRIBUTE_AXES);
    if (!is_vector(type) || type->scalable || tile_rule_operand(r, 1) != type)
        return "needs two fixed vectors of one type";
    for (unsigned i = 0; i < lanes->count; i++)
        if (lanes->integers[i] < 0 || lanes->integers[i] >= 2 * type->extent[0]) return "no such lane";
    if (lanes->count < 1) return "needs at least one lane";
    return tile_rule_result(r, 0, tile_type_vector(r->module->context, type->scalar, lanes->count, false));
}

const char *tile_rule_dot_words(const TileRule *r) {
    const TileType *words = tile_rule_operand(r, 0), *sum = tile_rule_operand(r, 2);
    const TileAttribute *types = tile_op_get(r->op, TILE_ATTRIBUTE_TYPES);
    if (!is_vector(words) || words->scalable || words->scalar != TILE_U32 || tile_rule_operand(r, 1) != words)
        return "needs two fixed vectors of u32";
    if (types->count != 2) return "types names the element types of a and b";
    TileScalar a = types->types[0]->scalar, b = types->types[1]->scalar;
    if (!(a == TILE_BF16 && b == TILE_BF16) && !(a == TILE_U8 && b == TILE_I8)) return "multiplies bf16, or u8 by i8";
    if (sum != tile_type_with_scalar(r->module->context, words, a == TILE_BF16 ? TILE_F32 : TILE_I32))
        return "the sums are f32 of bf16, i32 of bytes";
    return tile_rule_result(r, 0, sum);
}

const char *tile_rule_mask_lt(const TileRule *r) {
    const TileType *type = r->result[0];
    if (!type || !is_vector(type) || type->scalar != TILE_BOOL) return "the result is no vector of bool";
    if (!tile_rule_is_i64(tile_rule_operand(r, 0)) || !tile_rule_is_i64(tile_rule_operand(r, 1)))
        return "base and limit are i64";
    return NULL;
}

const char *tile_rule_vscale(const TileRule *r) {
    return tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_I64));
}

const char *tile_rule_any_lane(const TileRule *r) {
    const TileType *type = tile_rule_operand(r, 0);
    if (type->kind == TILE_TYPE_POINTER || type->scalar != TILE_BOOL) return "the operand is no bool";
    return tile_rule_result(r, 0, tile_type_scalar(r->module->context, TILE_BOOL));
}
