/* From the tree to one kernel of the IR. A program of its grid takes one row of the space: for each dimension but the
 * last it has one index, and it goes along the last in blocks. Inputs are loaded once for each block, whatever uses
 * them; what a statement computes stays in registers, and only results are stored. */
#include <stdio.h>
#include <string.h>

#include "expression.h"

enum { BLOCK = 256 };

typedef struct Compiler {
    TileIr *ir;
    const Program *program;
    TileIrValue *parameters[MOST_VARIABLES]; /* inputs and results */
    TileIrValue *values[MOST_VARIABLES];     /* in the block at hand */
    TileIrValue *rows[MOST_DIMENSIONS];      /* the indices of the row */
    TileIrValue *column;                     /* where the block begins */
    const TileIrType *block;                 /* its type */
} Compiler;

static bool is_stretched(const char *dimension) { return strcmp(dimension, "1") == 0; }

static void add_parameter(Compiler *c, int number) {
    const Variable *variable = &c->program->variables[number];
    const char *dimensions[MOST_DIMENSIONS];
    for (unsigned i = 0; i < variable->rank; i++) dimensions[i] = variable->dimensions[i];
    TileParameterAccess access = variable->value ? TILE_PARAMETER_OUT : TILE_PARAMETER_IN;
    c->parameters[number] = tile_ir_tensor(c->ir, variable->name, access, "f32", dimensions, variable->rank);
}

/* Which part of a tensor belongs to the block. */
static void find_part(const Compiler *c, const Variable *variable, TileIrIndex *indices) {
    unsigned rank = c->program->rank;
    for (unsigned i = 0; i < variable->rank; i++) {
        unsigned dimension = rank - variable->rank + i;
        if (variable->reduction != REDUCTION_NONE) dimension = i; /* it lacks the last one */
        bool last = dimension + 1 == rank;
        if (is_stretched(variable->dimensions[i]))
            indices[i] = (TileIrIndex){tile_ir_integer(c->ir, "i64", 0), 0};
        else
            indices[i] = last ? (TileIrIndex){c->column, BLOCK} : (TileIrIndex){c->rows[dimension], 0};
    }
}

static TileIrValue *load(Compiler *c, int number) {
    const Variable *variable = &c->program->variables[number];
    TileIrIndex indices[MOST_DIMENSIONS];
    find_part(c, variable, indices);
    TileIrValue *loaded = tile_ir_load(c->ir, c->parameters[number], indices, variable->rank, NULL);
    return tile_ir_broadcast(c->ir, loaded, c->block);
}

static TileIrValue *compile_node(Compiler *c, const Node *node) {
    static const char *const ops[] = {
#define FUNCTION_OP(id, name, arguments, op, value) op,
        FUNCTION_LIST(FUNCTION_OP)
#undef FUNCTION_OP
    };
    TileIrValue *operands[2];
    unsigned count = 0;
    switch (node->kind) {
    case NODE_NUMBER: return tile_ir_broadcast(c->ir, tile_ir_number(c->ir, "f32", node->number), c->block);
    case NODE_VARIABLE:
        if (!c->values[node->variable]) c->values[node->variable] = load(c, node->variable);
        return c->values[node->variable];
    case NODE_FUNCTION: break;
    }
    for (; count < 2 && node->arguments[count]; count++) operands[count] = compile_node(c, node->arguments[count]);
    return tile_ir_op(c->ir, ops[node->function], operands, count, NULL, NULL);
}

/* ---- reductions ---- */

static bool is_reduced(const Variable *variable) { return variable->reduction != REDUCTION_NONE; }

static TileIrValue *neutral(Compiler *c, Reduction reduction) {
    double infinity = 1e308 * 10;
    double value = reduction == REDUCTION_MAX ? -infinity : reduction == REDUCTION_MIN ? infinity : 0;
    return tile_ir_number(c->ir, "f32", value);
}

/* The block's lanes past the end are not the tensor's: they become neutral, then the block is reduced and joined. */
static TileIrValue *reduce(Compiler *c, Reduction reduction, TileIrValue *value, TileIrValue *carried) {
    const char *kind = reduction == REDUCTION_MAX ? "max" : reduction == REDUCTION_MIN ? "min" : "sum";
    TileIrValue *lanes = tile_ir_integer(c->ir, "i64", BLOCK), *zero = tile_ir_integer(c->ir, "i64", 0);
    TileIrValue *extent = tile_ir_dimension(c->ir, c->program->dimensions[c->program->rank - 1]);
    TileIrValue *valid = tile_ir_binary(c->ir, "min", tile_ir_binary(c->ir, "sub", extent, c->column), lanes);
    TileIrValue *operands[] = {value, neutral(c, reduction), zero, valid};
    TileIrValue *filled = tile_ir_op(c->ir, "fill", operands, 4, "axes = [0]", NULL);
    TileIrValue *part = tile_ir_reduce(c->ir, kind, filled, 0);
    return tile_ir_binary(c->ir, reduction == REDUCTION_MAX || reduction == REDUCTION_MIN ? kind : "add", carried,
                          part);
}

/* One block: all statements, the stores of results, and what the reductions are afterwards. */
static void compile_block(Compiler *c) {
    const Program *program = c->program;
    TileIrValue *carried[MOST_VARIABLES];
    unsigned count = 0;
    for (int i = 0; i < program->variable_count; i++) {
        const Variable *variable = &program->variables[i];
        TileIrIndex indices[MOST_DIMENSIONS];
        if (!variable->value) continue;
        TileIrValue *value = compile_node(c, variable->value);
        if (is_reduced(variable)) {
            carried[count] = reduce(c, variable->reduction, value, tile_ir_argument(c->ir, 1 + count));
            count++;
            continue;
        }
        c->values[i] = value;
        if (!is_result(variable)) continue;
        find_part(c, variable, indices);
        tile_ir_store(c->ir, c->parameters[i], value, indices, variable->rank);
    }
    tile_ir_yield(c->ir, carried, count);
}

static void store_reduced(Compiler *c, const TileIrOp *loop, TileIrValue *extent) {
    unsigned count = 0;
    for (int i = 0; i < c->program->variable_count; i++) {
        const Variable *variable = &c->program->variables[i];
        TileIrIndex indices[MOST_DIMENSIONS];
        if (!is_reduced(variable)) continue;
        TileIrValue *value = tile_ir_result(c->ir, loop, count++);
        if (variable->reduction == REDUCTION_MEAN)
            value = tile_ir_binary(c->ir, "div", value, tile_ir_convert(c->ir, extent, "f32"));
        find_part(c, variable, indices);
        tile_ir_store(c->ir, c->parameters[i], value, indices, variable->rank);
    }
}

/* ---- the kernel ---- */

/* A row: for column in 0, BLOCK, .. up to the extent, with the reductions carried along. */
static void compile_row(Compiler *c, TileIrValue *extent) {
    char type[32];
    TileIrValue *zero = tile_ir_integer(c->ir, "i64", 0);
    TileIrValue *operands[3 + MOST_VARIABLES] = {zero, extent, tile_ir_integer(c->ir, "i64", BLOCK)};
    unsigned count = 3;
    for (int i = 0; i < c->program->variable_count; i++)
        if (is_reduced(&c->program->variables[i])) operands[count++] = neutral(c, c->program->variables[i].reduction);
    TileIrOp *loop = tile_ir_begin(c->ir, "for", operands, count, NULL, NULL, 0);
    snprintf(type, sizeof type, "f32[%d]", BLOCK);
    c->block = tile_ir_type(c->ir, type);
    c->column = tile_ir_argument(c->ir, 0);
    compile_block(c);
    tile_ir_end(c->ir);
    store_reduced(c, loop, extent);
}

void build_kernel(TileIr *ir, const Program *program) {
    Compiler c = {.ir = ir, .program = program};
    TileIrValue *extents[MOST_DIMENSIONS];
    unsigned last = program->rank - 1;
    tile_ir_kernel(ir, "fused");
    for (int i = 0; i < program->variable_count; i++)
        if (!program->variables[i].value) add_parameter(&c, i);
    for (int i = 0; i < program->variable_count; i++)
        if (is_result(&program->variables[i])) add_parameter(&c, i);
    for (unsigned i = 0; i < last; i++)
        extents[i] = is_stretched(program->dimensions[i]) ? tile_ir_integer(ir, "i64", 1)
                                                          : tile_ir_dimension(ir, program->dimensions[i]);
    extents[last] = tile_ir_integer(ir, "i64", 1); /* a grid has an extent also where there is but one dimension */
    TileIrValue *extent = tile_ir_dimension(ir, program->dimensions[last]);
    tile_ir_begin(ir, "grid", extents, program->rank, NULL, NULL, 0);
    for (unsigned i = 0; i < last; i++) c.rows[i] = tile_ir_argument(ir, i);
    compile_row(&c, extent);
    tile_ir_end(ir);
    tile_ir_kernel_end(ir);
}
