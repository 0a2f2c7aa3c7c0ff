/* Every row of lowering/rewrites.def is bitwise correct for special and random values of every type that it applies to,
 * and is found if ops match its pattern. */
#include <math.h>

#include <criterion/criterion.h>

#include "lang/ir/eval.h"
#include "lang/scalar/scalar.h"
#include "lowering/rewrite.h"
#include "random_program.h"

enum { TRIALS = 3000, VARIABLES = TILE_REWRITE_ZERO - TILE_REWRITE_X };

typedef struct Trial {
    const TileRewrite *row;
    const uint8_t *at;
    TileScalar scalar; /* of values; of conditions bool */
    bool is_variable_drawn[VARIABLES], defined;
    uint64_t variables[VARIABLES], random;
} Trial;

static bool is_comparison(unsigned code) { return code >= TILE_OP_EQ && code <= TILE_OP_GE; }

static bool compares_bools(const TileRewrite *row) {
    return row->types == TILE_REWRITE_BOOL && is_comparison(row->pattern[0]);
}

static uint64_t evaluate(Trial *trial, TileScalar scalar, bool is_root) {
    unsigned code = *trial->at++;
    if (code >= TILE_REWRITE_ZERO) return tile_rewrite_constant(code, scalar);
    if (code >= TILE_REWRITE_X) {
        unsigned variable = code - TILE_REWRITE_X;
        if (!trial->is_variable_drawn[variable]) trial->variables[variable] = random_bits(scalar, &trial->random);
        trial->is_variable_drawn[variable] = true;
        return trial->variables[variable];
    }
    bool gives_bool = is_comparison(code) || code == TILE_OP_ISNAN || code == TILE_OP_ISINF;
    TileScalar operand = scalar;
    if (gives_bool) operand = is_root && compares_bools(trial->row) ? TILE_BOOL : trial->scalar;
    uint64_t operands[3], result = 0;
    int count = tile_op_info((TileOpId)code)->operands;
    for (int i = 0; i < count; i++)
        operands[i] = evaluate(trial, code == TILE_OP_SELECT && i == 0 ? TILE_BOOL : operand, false);
    trial->defined &= tile_eval((TileOpId)code, operand, gives_bool ? TILE_BOOL : scalar, operands, &result);
    return result;
}

static bool is_nan(TileScalar scalar, uint64_t bits) {
    return tile_scalar_is_float(scalar) && isnan(tile_scalar_to_double(scalar, bits));
}

static TileScalar root_type(const TileRewrite *row, TileScalar scalar) {
    unsigned root = row->pattern[0];
    if (is_comparison(root) || root == TILE_OP_ISNAN || root == TILE_OP_ISINF || root == TILE_OP_NOT)
        return root == TILE_OP_NOT && row->types != TILE_REWRITE_BOOL ? scalar : TILE_BOOL;
    return scalar;
}

static void try_row(const TileRewrite *row, TileScalar scalar, uint64_t *random) {
    TileScalar root = root_type(row, scalar);
    for (int i = 0; i < TRIALS; i++) {
        Trial trial = {.row = row, .scalar = scalar, .defined = true, .random = random_next(random)};
        trial.at = row->pattern;
        uint64_t before = evaluate(&trial, root, true);
        trial.at = row->replacement;
        uint64_t after = evaluate(&trial, root, true);
        if (!trial.defined) return;
        bool equal = before == after || (is_nan(root, before) && is_nan(root, after));
        cr_assert(equal, "%s on %s: %llx became %llx (X %llx, Y %llx, Z %llx)", row->name, tile_scalar_name(scalar),
                  (unsigned long long)before, (unsigned long long)after, (unsigned long long)trial.variables[0],
                  (unsigned long long)trial.variables[1], (unsigned long long)trial.variables[2]);
    }
}

Test(rewrites, hold_on_random_and_special_values) {
    uint64_t random = 88172645463325252u;
    size_t count;
    const TileRewrite *rows = tile_rewrites(&count);
    for (size_t i = 0; i < count; i++)
        for (int scalar = 0; scalar < TILE_SCALAR_COUNT; scalar++)
            if (rows[i].types == TILE_REWRITE_BOOL || tile_rewrite_takes(&rows[i], (TileScalar)scalar))
                try_row(&rows[i], (TileScalar)scalar, &random);
}

/* ---- the pattern as ops ---- */

typedef struct Shape {
    TileBuilder builder;
    const TileRewrite *row;
    const uint8_t *at;
    TileFunc *func;
    TileScalar scalar;
    TileValue *variables[VARIABLES];
} Shape;

static TileValue *build_shape(Shape *shape, TileScalar scalar, bool is_root) {
    unsigned code = *shape->at++;
    TileContext *context = shape->func->module->context;
    const TileType *type = tile_type_scalar(context, scalar);
    if (code >= TILE_REWRITE_ZERO) return tile_build_bits(&shape->builder, type, tile_rewrite_constant(code, scalar));
    if (code >= TILE_REWRITE_X) {
        TileValue **variable = &shape->variables[code - TILE_REWRITE_X];
        bool is_constant = code == TILE_REWRITE_C || code == TILE_REWRITE_D;
        if (!*variable)
            *variable = is_constant ? tile_build_integer(&shape->builder, type, 3)
                                    : tile_func_add_parameter(shape->func, "v", type);
        return *variable;
    }
    bool gives_bool = is_comparison(code) || code == TILE_OP_ISNAN || code == TILE_OP_ISINF;
    TileScalar operand = scalar;
    if (gives_bool) operand = is_root && compares_bools(shape->row) ? TILE_BOOL : shape->scalar;
    TileValue *operands[3];
    unsigned count = (unsigned)tile_op_info((TileOpId)code)->operands;
    for (unsigned i = 0; i < count; i++)
        operands[i] = build_shape(shape, code == TILE_OP_SELECT && i == 0 ? TILE_BOOL : operand, false);
    return tile_build_op(&shape->builder, (TileOpId)code, operands, count, NULL, 0, NULL, 1)->results;
}

static TileScalar sample_type(const TileRewrite *row) {
    if (row->types & TILE_REWRITE_FLOAT) return TILE_F32;
    return TILE_I32;
}

Test(rewrites, are_found) {
    size_t count;
    const TileRewrite *rows = tile_rewrites(&count);
    TileContext *context = tile_ir_context_create();
    TileModule *module = tile_module_create(context);
    for (size_t i = 0; i < count; i++) {
        TileFunc *func = tile_func_create(module, rows[i].name, TILE_FUNC_DEVICE, TILE_FORM_TILE);
        TileScalar scalar = sample_type(&rows[i]);
        Shape shape = {tile_builder_at_end(module, &func->body), &rows[i], rows[i].pattern, func, scalar, {NULL}};
        TileValue *root = build_shape(&shape, root_type(&rows[i], scalar), true);
        cr_assert_null(shape.builder.error, "%s: %s", rows[i].name, shape.builder.error);
        cr_expect_not_null(tile_rewrite_op(&shape.builder, root->op), "%s is not found", rows[i].name);
        cr_assert_null(shape.builder.error, "%s: %s", rows[i].name, shape.builder.error);
    }
    tile_module_destroy(module);
    tile_ir_context_destroy(context);
}
