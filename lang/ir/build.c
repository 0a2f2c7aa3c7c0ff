#include "lang/ir/build.h"

#include <string.h>

#include "lang/ir/rules.h"
#include "lang/scalar/scalar.h"

static const char *check_counts(const TileOp *op) {
    const TileOpInfo *info = tile_op_info(op->id);
    if (info->operands != TILE_ANY_COUNT && (unsigned)info->operands != op->operand_count)
        return "wrong number of operands";
    if (info->results != TILE_ANY_COUNT && (unsigned)info->results != op->result_count)
        return "wrong number of results";
    for (unsigned i = 0; i < op->attribute_count; i++)
        if (!tile_op_allows(op->id, op->attributes[i].key)) return "an attribute that this op does not have";
    TileAttributeSet required = info->required;
    for (int key = 0; required; key++, required >>= 1)
        if ((required & 1) && !tile_op_get(op, (TileAttributeKey)key)) return "a required attribute is missing";
    return NULL;
}

/* The names of an enumeration are valid only for the attribute that it belongs to. */
static const char *check_words(const TileOp *op) {
    for (unsigned i = 0; i < op->attribute_count; i++) {
        const TileAttribute *attribute = &op->attributes[i];
        TileAttributeStorage storage = tile_attribute_storage(attribute->key);
        bool known = storage != TILE_STORAGE_NAME || tile_name_text(attribute->key, attribute->integer);
        for (unsigned j = 0; storage == TILE_STORAGE_NAMES && j < attribute->count; j++)
            known = known && tile_name_text(attribute->key, attribute->integers[j]);
        if (!known) return "an attribute holds a word of another one";
    }
    return NULL;
}

const char *tile_op_check(TileModule *module, const TileOp *op, const TileType **result_types) {
    TileRule rule = {.module = module, .op = op, .result = result_types};
    const char *error = check_counts(op);
    if (!error) error = check_words(op);
    if (error) return error;
    switch ((TileOpId)op->id) {
#define OP(id, mnemonic, class, operands, results, regions, forms, traits, rule_, attributes, doc)                     \
    case TILE_OP_##id:                                                                                                 \
        return tile_rule_##rule_(&rule);
#include "lang/ir/ops.def"
#undef OP
    case TILE_OP_COUNT: break;
    }
    return "no such op";
}

void tile_builder_insert(TileBuilder *builder, TileOp *op) {
    if (builder->before)
        tile_op_insert_before(op, builder->before);
    else
        tile_op_append(op, builder->block);
}

TileValue *tile_build_again(TileBuilder *builder, TileMap *map, TileValue *value, const TileOp *outermost) {
    TileValue *known = tile_map_get(map, value);
    if (known || tile_value_outside(value, outermost) || !value->op) return known ? known : value;
    for (unsigned i = 0; i < value->op->operand_count; i++) tile_build_again(builder, map, tile_op_operand(value->op, i), outermost);
    tile_builder_insert(builder, tile_op_clone(builder->module, value->op, map));
    return tile_map_get(map, value);
}

TileOp *tile_build_op(TileBuilder *builder, TileOpId id, TileValue *const *operands, unsigned operand_count,
                      const TileAttribute *attributes, unsigned attribute_count, const TileType *const *result_types,
                      unsigned result_count) {
    const TileType *single[2] = {NULL, NULL};
    const TileType **types =
        result_count < 2 ? single : TILE_NEW_ARRAY(builder->module->arena, const TileType *, result_count);
    for (unsigned i = 0; i < result_count; i++) types[i] = result_types ? result_types[i] : NULL;
    TileOp *op = tile_op_create(builder->module, id, builder->location, operands, operand_count, types, result_count);
    for (unsigned i = 0; i < attribute_count; i++) tile_op_set(builder->module, op, attributes[i]);
    const char *error = tile_op_check(builder->module, op, types);
    if (error && !builder->error)
        builder->error = tile_arena_format(builder->module->arena, "%s: %s", tile_op_info(id)->mnemonic, error);
    for (unsigned i = 0; i < result_count; i++)
        op->results[i].type = types[i] ? types[i] : tile_type_scalar(builder->module->context, TILE_I64);
    tile_builder_insert(builder, op);
    return op;
}

static TileValue *build_one(TileBuilder *builder, TileOpId id, TileValue *const *operands, unsigned count,
                            const TileAttribute *attributes, unsigned attribute_count, const TileType *type) {
    const TileType *types[1] = {type};
    return &tile_build_op(builder, id, operands, count, attributes, attribute_count, types, 1)->results[0];
}

TileValue *tile_build_unary(TileBuilder *builder, TileOpId id, TileValue *x) {
    return build_one(builder, id, &x, 1, NULL, 0, NULL);
}

TileValue *tile_build_binary(TileBuilder *builder, TileOpId id, TileValue *x, TileValue *y) {
    TileValue *operands[] = {x, y};
    return build_one(builder, id, operands, 2, NULL, 0, NULL);
}

TileValue *tile_build_ternary(TileBuilder *builder, TileOpId id, TileValue *x, TileValue *y, TileValue *z) {
    TileValue *operands[] = {x, y, z};
    return build_one(builder, id, operands, 3, NULL, 0, NULL);
}

static TileValue *build_cast(TileBuilder *builder, TileOpId id, TileValue *x, TileScalar to) {
    if (x->type->scalar == to) return x;
    return build_one(builder, id, &x, 1, NULL, 0, tile_type_with_scalar(builder->module->context, x->type, to));
}

TileValue *tile_build_convert(TileBuilder *builder, TileValue *x, TileScalar to) {
    return build_cast(builder, TILE_OP_CONVERT, x, to);
}

TileValue *tile_build_bitcast(TileBuilder *builder, TileValue *x, TileScalar to) {
    return build_cast(builder, TILE_OP_BITCAST, x, to);
}

/* ---- constants ---- */

uint64_t tile_scalar_from_integer(TileScalar scalar, int64_t value) { return tile_scalar_from_signed(scalar, value); }

TileValue *tile_build_bits(TileBuilder *builder, const TileType *type, uint64_t bits) {
    TileAttribute value = {.key = TILE_ATTRIBUTE_VALUE, .bits = bits};
    return build_one(builder, TILE_OP_CONST, NULL, 0, &value, 1, type);
}

TileValue *tile_build_integer(TileBuilder *builder, const TileType *type, int64_t value) {
    return tile_build_bits(builder, type, tile_scalar_from_integer(type->scalar, value));
}

TileValue *tile_build_number(TileBuilder *builder, const TileType *type, double value) {
    return tile_build_bits(builder, type, tile_scalar_from_double(type->scalar, value));
}

TileValue *tile_build_i64(TileBuilder *builder, int64_t value) {
    return tile_build_integer(builder, tile_type_scalar(builder->module->context, TILE_I64), value);
}

TileValue *tile_build_bool(TileBuilder *builder, bool value) {
    return tile_build_integer(builder, tile_type_scalar(builder->module->context, TILE_BOOL), value);
}

bool tile_value_bits(const TileValue *value, uint64_t *bits) {
    const TileOp *op = tile_value_def(value, TILE_OP_CONST);
    if (!op) return false;
    *bits = tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits;
    return true;
}

bool tile_value_integer(const TileValue *value, int64_t *integer) {
    uint64_t bits;
    if (tile_scalar_is_float(value->type->scalar) || !tile_value_bits(value, &bits)) return false;
    unsigned unused = 64 - tile_scalar_bits(value->type->scalar);
    bool is_signed = tile_scalar_class(value->type->scalar) == TILE_CLASS_SIGNED;
    *integer = is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)(bits << unused >> unused);
    return true;
}

bool tile_value_is_integer(const TileValue *value, int64_t integer) {
    int64_t found;
    return tile_value_integer(value, &found) && found == integer;
}

bool tile_value_is_same(const TileValue *x, const TileValue *y) {
    uint64_t a, b;
    return x == y || (x->type == y->type && tile_value_bits(x, &a) && tile_value_bits(y, &b) && a == b);
}


bool tile_attribute_is_same(const TileAttribute *a, const TileAttribute *b) {
    if (a->key != b->key || a->count != b->count) return false;
    switch (tile_attribute_storage(a->key)) {
    case TILE_STORAGE_BITS: return a->bits == b->bits;
    case TILE_STORAGE_INT:
    case TILE_STORAGE_NAME: return a->integer == b->integer;
    case TILE_STORAGE_TEXT: return a->text == b->text;
    case TILE_STORAGE_TEXTS: return memcmp(a->texts, b->texts, a->count * sizeof *a->texts) == 0;
    case TILE_STORAGE_INTS:
    case TILE_STORAGE_NAMES: return memcmp(a->integers, b->integers, a->count * sizeof *a->integers) == 0;
    case TILE_STORAGE_TYPES: return memcmp(a->types, b->types, a->count * sizeof(void *)) == 0;
    }
    return false;
}

bool tile_combiner_is_same(const TileBlock *a, const TileBlock *b, TileArena *scratch) {
    if (!a || !b) return a == b;
    if (a->argument_count != b->argument_count) return false;
    TileMap twins; /* maps values of the one to those of the other */
    tile_map_init(&twins, scratch);
    for (unsigned i = 0; i < a->argument_count; i++) {
        if (a->arguments[i]->type != b->arguments[i]->type) return false;
        tile_map_set(&twins, a->arguments[i], b->arguments[i]);
    }
    const TileOp *x = a->first, *y = b->first;
    for (; x && y; x = x->next, y = y->next) {
        if (x->id != y->id || x->operand_count != y->operand_count || x->attribute_count != y->attribute_count ||
            x->result_count != y->result_count)
            return false;
        for (unsigned i = 0; i < x->operand_count; i++)
            if (tile_map_get(&twins, tile_op_operand(x, i)) != tile_op_operand(y, i)) return false;
        for (unsigned i = 0; i < x->attribute_count; i++)
            if (!tile_attribute_is_same(&x->attributes[i], &y->attributes[i])) return false;
        for (unsigned i = 0; i < x->result_count; i++) {
            if (x->results[i].type != y->results[i].type) return false;
            tile_map_set(&twins, &x->results[i], &y->results[i]);
        }
    }
    return x == y;
}

/* ---- shapes and reductions ---- */

TileValue *tile_build_splat(TileBuilder *builder, TileValue *scalar, const TileType *type) {
    if (scalar->type == type) return scalar;
    return build_one(builder, TILE_OP_SPLAT, &scalar, 1, NULL, 0, type);
}

TileValue *tile_build_iota(TileBuilder *builder, const TileType *type, int64_t axis) {
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXIS, .integer = axis};
    return build_one(builder, TILE_OP_IOTA, NULL, 0, &attribute, 1, type);
}

TileValue *tile_build_broadcast(TileBuilder *builder, TileValue *x, const int64_t *extent) {
    const TileType *type = tile_type_tile(builder->module->context, x->type->scalar, x->type->rank, extent);
    return type == x->type ? x : build_one(builder, TILE_OP_BROADCAST, &x, 1, NULL, 0, type);
}

TileValue *tile_build_reshape(TileBuilder *builder, TileValue *x, unsigned rank, const int64_t *extent) {
    const TileType *type = tile_type_tile(builder->module->context, x->type->scalar, rank, extent);
    return type == x->type ? x : build_one(builder, TILE_OP_RESHAPE, &x, 1, NULL, 0, type);
}

TileValue *tile_build_permute(TileBuilder *builder, TileValue *x, const int64_t *axes) {
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXES, .count = x->type->rank, .integers = axes};
    return build_one(builder, TILE_OP_PERMUTE, &x, 1, &attribute, 1, NULL);
}

TileValue *tile_build_slice(TileBuilder *builder, TileValue *x, int64_t axis, int64_t offset, int64_t extent) {
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_AXIS, .integer = axis},
                                  {.key = TILE_ATTRIBUTE_OFFSET, .integer = offset}};
    TileType type = *x->type;
    type.extent[axis] = extent;
    return build_one(builder, TILE_OP_SLICE, &x, 1, attributes, 2,
                     tile_type_intern(builder->module->context->types, &type));
}

TileValue *tile_build_flip(TileBuilder *builder, TileValue *x, int64_t axis) {
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXIS, .integer = axis};
    return build_one(builder, TILE_OP_FLIP, &x, 1, &attribute, 1, NULL);
}

TileValue *tile_build_cat(TileBuilder *builder, TileValue *x, TileValue *y, int64_t axis) {
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXIS, .integer = axis};
    TileValue *operands[] = {x, y};
    return build_one(builder, TILE_OP_CAT, operands, 2, &attribute, 1, NULL);
}

TileValue *tile_build_fill(TileBuilder *builder, TileValue *x, TileValue *value, const int64_t *axes,
                           TileValue *const *bounds, unsigned axis_count) {
    TileValue *operands[2 + 2 * TILE_MAX_TILE_RANK] = {x, value};
    if (axis_count > TILE_MAX_TILE_RANK) axis_count = TILE_MAX_TILE_RANK;
    for (unsigned i = 0; i < 2 * axis_count; i++) operands[2 + i] = bounds[i];
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXES, .count = axis_count, .integers = axes};
    return build_one(builder, TILE_OP_FILL, operands, 2 + 2 * axis_count, &attribute, 1, NULL);
}

TileValue *tile_build_reduce(TileBuilder *builder, TileValue *x, TileName kind, int64_t axis) {
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_KIND, .integer = kind},
                                  {.key = TILE_ATTRIBUTE_AXIS, .integer = axis}};
    return build_one(builder, TILE_OP_REDUCE, &x, 1, attributes, 2, NULL);
}

TileValue *tile_build_dot(TileBuilder *builder, TileValue *a, TileValue *b, TileValue *acc) {
    return tile_build_ternary(builder, TILE_OP_DOT, a, b, acc);
}

TileValue *tile_build_dim(TileBuilder *builder, TileValue *tensor, int64_t axis) {
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXIS, .integer = axis};
    return build_one(builder, TILE_OP_DIM, &tensor, 1, &attribute, 1, NULL);
}

/* ---- control ---- */

static void add_carried(TileBuilder *builder, TileBlock *block, TileValue *const *carried, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        tile_block_add_argument(builder->module, block, carried[i]->type, carried[i]->name);
}

static TileOp *build_counted(TileBuilder *builder, TileOpId id, TileValue *const *leading, unsigned leading_count,
                             TileValue *const *carried, unsigned count, const TileAttribute *attributes,
                             unsigned attribute_count) {
    TileValue **operands = TILE_NEW_ARRAY(builder->module->arena, TileValue *, leading_count + count);
    memcpy(operands, leading, leading_count * sizeof *operands);
    if (count) memcpy(operands + leading_count, carried, count * sizeof *operands);
    TileOp *op = tile_build_op(builder, id, operands, leading_count + count, attributes, attribute_count, NULL, count);
    tile_block_add_argument(builder->module, &op->regions[0], tile_type_scalar(builder->module->context, TILE_I64),
                            NULL);
    add_carried(builder, &op->regions[0], carried, count);
    return op;
}

TileOp *tile_build_for(TileBuilder *builder, TileValue *lo, TileValue *hi, TileValue *step, TileValue *const *carried,
                       unsigned carried_count) {
    TileValue *leading[] = {lo, hi, step};
    return build_counted(builder, TILE_OP_FOR, leading, 3, carried, carried_count, NULL, 0);
}

TileOp *tile_build_loop(TileBuilder *builder, TileName kind, TileValue *lo, TileValue *hi, int64_t extent,
                        TileValue *const *carried, unsigned carried_count) {
    TileValue *leading[] = {lo, hi};
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_LOOP_KIND, .integer = kind},
                                  {.key = TILE_ATTRIBUTE_EXTENT, .integer = extent},
                                  {.key = TILE_ATTRIBUTE_COMBINE, .count = carried_count}};
    int64_t *sums = TILE_NEW_ARRAY(builder->module->arena, int64_t, carried_count);
    for (unsigned i = 0; i < carried_count; i++) sums[i] = TILE_COMBINE_SUM;
    attributes[2].integers = sums;
    return build_counted(builder, TILE_OP_LOOP, leading, 2, carried, carried_count, attributes,
                         kind == TILE_LOOP_KIND_REDUCE ? 3 : 2);
}

TileOp *tile_build_if(TileBuilder *builder, TileValue *condition, const TileType *const *result_types,
                      unsigned result_count) {
    return tile_build_op(builder, TILE_OP_IF, &condition, 1, NULL, 0, result_types, result_count);
}

TileOp *tile_build_while(TileBuilder *builder, TileValue *const *carried, unsigned carried_count) {
    TileOp *op = tile_build_op(builder, TILE_OP_WHILE, carried, carried_count, NULL, 0, NULL, carried_count);
    for (unsigned region = 0; region < 2; region++) add_carried(builder, &op->regions[region], carried, carried_count);
    return op;
}

TileOp *tile_build_grid(TileBuilder *builder, TileValue *const *extents, unsigned count) {
    TileOp *op = tile_build_op(builder, TILE_OP_GRID, extents, count, NULL, 0, NULL, 0);
    const TileType *i64 = tile_type_scalar(builder->module->context, TILE_I64);
    for (unsigned i = 0; i < count; i++) tile_block_add_argument(builder->module, &op->regions[0], i64, NULL);
    return op;
}

TileOp *tile_build_end(TileBuilder *builder, TileOpId id, TileValue *const *values, unsigned count) {
    return tile_build_op(builder, id, values, count, NULL, 0, NULL, 0);
}

/* ---- folds ---- */

TileOp *tile_build_fold(TileBuilder *builder, TileOpId id, const TileFoldParts *parts) {
    TileModule *module = builder->module;
    TileValue *operands[2 * TILE_MAX_FOLD + 1];
    TileAttribute attributes[4] = {{.key = TILE_ATTRIBUTE_AXIS, .integer = parts->axis}};
    int64_t names[2];
    unsigned count = 0, name_count = 0, attribute_count = 1;
    for (unsigned i = 0; i < parts->count; i++) operands[count++] = parts->values[i];
    if (parts->mask) operands[count++] = parts->mask;
    if (parts->mask) names[name_count++] = TILE_PARTS_MASK;
    for (unsigned i = 0; parts->init && i < parts->count; i++) operands[count++] = parts->init[i];
    if (parts->init) names[name_count++] = TILE_PARTS_INIT;
    if (name_count)
        attributes[attribute_count++] =
            (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .count = name_count, .integers = names};
    if (parts->reverse) attributes[attribute_count++] = (TileAttribute){.key = TILE_ATTRIBUTE_REVERSE, .integer = 1};
    if (parts->exclusive)
        attributes[attribute_count++] = (TileAttribute){.key = TILE_ATTRIBUTE_EXCLUSIVE, .integer = 1};
    TileOp *op = tile_build_op(builder, id, operands, count, attributes, attribute_count, NULL, parts->count);
    for (unsigned i = 0; i < 2 * parts->count; i++) {
        TileScalar scalar = parts->values[i % parts->count]->type->scalar;
        tile_block_add_argument(module, &op->regions[0], tile_type_scalar(module->context, scalar), NULL);
    }
    return op;
}

static void clone_block(TileModule *module, TileBlock *to, const TileBlock *from) {
    TileMap map;
    tile_map_init(&map, module->arena);
    for (unsigned i = 0; i < from->argument_count; i++)
        tile_map_set(&map, from->arguments[i],
                     tile_block_add_argument(module, to, from->arguments[i]->type, from->arguments[i]->name));
    for (const TileOp *op = from->first; op; op = op->next) tile_op_append(tile_op_clone(module, op, &map), to);
}

TileOp *tile_build_fold_loop(TileBuilder *builder, TileValue *lo, TileValue *hi, int64_t extent, TileValue *const *init,
                             const TileOp *fold) {
    TileModule *module = builder->module;
    const TileType *i64 = tile_type_scalar(module->context, TILE_I64), *types[TILE_MAX_FOLD];
    unsigned count = fold->result_count, operand_count = 2;
    bool scan = fold->id == TILE_OP_SCAN;
    TileValue *operands[2 + TILE_MAX_FOLD] = {lo, hi};
    int64_t part = TILE_PARTS_INIT;
    for (unsigned i = 0; init && i < count; i++) operands[operand_count++] = init[i];
    for (unsigned i = 0; i < count; i++) types[i] = fold->regions[0].arguments[i]->type;
    TileAttribute attributes[] = {
        {.key = TILE_ATTRIBUTE_EXTENT, .integer = extent},
        {.key = TILE_ATTRIBUTE_ORDER, .integer = scan ? TILE_ORDER_PREFIX : TILE_ORDER_NEIGHBOURS},
        {.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &part}};
    TileOp *op = tile_build_op(builder, TILE_OP_FOLD_LOOP, operands, operand_count, attributes, init ? 3 : 2, types,
                               scan ? 0 : count);
    static const TileAttributeKey flags[] = {TILE_ATTRIBUTE_REVERSE, TILE_ATTRIBUTE_EXCLUSIVE};
    for (unsigned i = 0; i < 2; i++)
        if (tile_op_integer(fold, flags[i], 0)) tile_op_set_integer(module, op, flags[i], 1);
    tile_block_add_argument(module, &op->regions[0], i64, NULL);
    clone_block(module, &op->regions[1], &fold->regions[0]);
    if (scan) tile_block_add_argument(module, &op->regions[2], i64, NULL);
    for (unsigned i = 0; scan && i < count; i++) tile_block_add_argument(module, &op->regions[2], types[i], NULL);
    return op;
}

void tile_build_combined(TileBuilder *builder, const TileBlock *combiner, TileValue *const *left,
                         TileValue *const *right, TileValue **result) {
    unsigned count = combiner->argument_count / 2;
    TileContext *context = builder->module->context;
    const TileType *shape = left[0]->type;
    TileMap map;
    tile_map_init(&map, builder->module->arena);
    for (unsigned i = 0; i < count; i++) {
        tile_map_set(&map, combiner->arguments[i], left[i]);
        tile_map_set(&map, combiner->arguments[count + i], right[i]);
    }
    for (const TileOp *op = combiner->first; op != combiner->last; op = op->next) {
        TileValue *operands[3];
        for (unsigned i = 0; i < op->operand_count; i++) operands[i] = tile_map_get(&map, tile_op_operand(op, i));
        const TileType *type = tile_type_with_scalar(context, shape, op->results[0].type->scalar);
        TileOp *made = tile_build_op(builder, (TileOpId)op->id, operands, op->operand_count, op->attributes,
                                     op->attribute_count, &type, 1);
        tile_map_set(&map, &op->results[0], &made->results[0]);
    }
    for (unsigned i = 0; i < count; i++) result[i] = tile_map_get(&map, tile_op_operand(combiner->last, i));
}

/* ---- machine form ---- */

TileValue *tile_build_ptr_add(TileBuilder *builder, TileValue *pointer, TileValue *bytes) {
    return tile_build_binary(builder, TILE_OP_PTR_ADD, pointer, bytes);
}

TileValue *tile_build_is_aligned(TileBuilder *builder, TileValue *pointer, int64_t align) {
    const TileAttribute attribute = {.key = TILE_ATTRIBUTE_ALIGN, .integer = align};
    return build_one(builder, TILE_OP_IS_ALIGNED, &pointer, 1, &attribute, 1, NULL);
}

TileValue *tile_build_buffer(TileBuilder *builder, int64_t bytes, int64_t align) {
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_BYTES, .integer = bytes},
                                  {.key = TILE_ATTRIBUTE_ALIGN, .integer = align}};
    return build_one(builder, TILE_OP_BUFFER, NULL, 0, attributes, 2, NULL);
}

static unsigned memory_attributes(TileAttribute *attributes, int64_t *parts, const TileValue *mask,
                                  const TileValue *fill, int64_t align) {
    unsigned count = 0, part_count = 0;
    if (mask) parts[part_count++] = TILE_PARTS_MASK;
    if (fill) parts[part_count++] = TILE_PARTS_FILL;
    if (part_count)
        attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .count = part_count, .integers = parts};
    if (align) attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_ALIGN, .integer = align};
    return count;
}

TileValue *tile_build_load(TileBuilder *builder, const TileType *type, TileValue *pointer, TileValue *mask,
                           TileValue *fill, int64_t align) {
    TileValue *operands[3] = {pointer};
    unsigned count = 1;
    if (mask) operands[count++] = mask;
    if (fill) operands[count++] = fill;
    TileAttribute attributes[2];
    int64_t parts[2];
    unsigned attribute_count = memory_attributes(attributes, parts, mask, fill, align);
    return build_one(builder, TILE_OP_LOAD, operands, count, attributes, attribute_count, type);
}

TileOp *tile_build_store(TileBuilder *builder, TileValue *value, TileValue *pointer, TileValue *mask, int64_t align) {
    TileValue *operands[3] = {value, pointer, mask};
    TileAttribute attributes[2];
    int64_t parts[2];
    unsigned attribute_count = memory_attributes(attributes, parts, mask, NULL, align);
    return tile_build_op(builder, TILE_OP_STORE, operands, mask ? 3 : 2, attributes, attribute_count, NULL, 0);
}

TileValue *tile_build_extract(TileBuilder *builder, TileValue *vector, int64_t lane) {
    if (vector->type->kind == TILE_TYPE_SCALAR) return vector;
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXIS, .integer = lane};
    return build_one(builder, TILE_OP_EXTRACT, &vector, 1, &attribute, 1, NULL);
}

TileValue *tile_build_insert(TileBuilder *builder, TileValue *vector, TileValue *scalar, int64_t lane) {
    TileValue *operands[] = {vector, scalar};
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXIS, .integer = lane};
    return build_one(builder, TILE_OP_INSERT, operands, 2, &attribute, 1, NULL);
}

TileValue *tile_build_shuffle(TileBuilder *builder, TileValue *a, TileValue *b, const int64_t *lanes, unsigned count) {
    TileValue *operands[] = {a, b};
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_AXES, .count = count, .integers = lanes};
    return build_one(builder, TILE_OP_SHUFFLE, operands, 2, &attribute, 1, NULL);
}
