/* The program by plain loops, one element at a time in double precision: what the kernel is compared with. */
#include <math.h>
#include <string.h>

#include "expression.h"

int64_t extent_of(const Program *program, const int64_t *extents, const char *dimension) {
    for (unsigned i = 0; i < program->rank; i++)
        if (strcmp(program->dimensions[i], dimension) == 0) return strcmp(dimension, "1") == 0 ? 1 : extents[i];
    return 1;
}

/* Where the element of the space lies in a variable, whose dimensions are the space's last ones, or, where it is
 * reduced, its first ones. */
static int64_t offset_of(const Program *program, const int64_t *extents, const Variable *variable, const int64_t *at) {
    unsigned shift = variable->reduction == REDUCTION_NONE ? program->rank - variable->rank : 0;
    int64_t offset = 0;
    for (unsigned i = 0; i < variable->rank; i++) {
        bool stretched = strcmp(variable->dimensions[i], "1") == 0;
        offset = offset * extent_of(program, extents, variable->dimensions[i]) + (stretched ? 0 : at[shift + i]);
    }
    return offset;
}

static double apply(Function function, double a, double b) {
    switch (function) {
#define FUNCTION_VALUE(id, name, arguments, op, value)                                                                 \
    case FUNCTION_##id: (void)b; return value;
        FUNCTION_LIST(FUNCTION_VALUE)
#undef FUNCTION_VALUE
    case FUNCTION_COUNT: break;
    }
    return NAN;
}

/* values: of the statements before, at this element. */
static double evaluate_node(const Node *node, const double *values) {
    if (node->kind == NODE_NUMBER) return node->number;
    if (node->kind == NODE_VARIABLE) return values[node->variable];
    double a = evaluate_node(node->arguments[0], values);
    return apply(node->function, a, node->arguments[1] ? evaluate_node(node->arguments[1], values) : 0);
}

static double join(Reduction reduction, double total, double value) {
    if (reduction == REDUCTION_MAX) return fmax(total, value);
    return reduction == REDUCTION_MIN ? fmin(total, value) : total + value;
}

/* The row that `at` is in; totals of the reductions. */
static void evaluate_row(const Program *program, const int64_t *extents, float *const *data, int64_t *at) {
    double values[MOST_VARIABLES], totals[MOST_VARIABLES];
    int64_t count = extents[program->rank - 1];
    int64_t *column = &at[program->rank - 1];
    for (int i = 0; i < program->variable_count; i++) {
        Reduction reduction = program->variables[i].reduction;
        totals[i] = reduction == REDUCTION_MAX ? -INFINITY : reduction == REDUCTION_MIN ? INFINITY : 0;
    }
    for (*column = 0; *column < count; ++*column)
        for (int i = 0; i < program->variable_count; i++) {
            const Variable *variable = &program->variables[i];
            float *own = data[i] ? data[i] + offset_of(program, extents, variable, at) : NULL;
            values[i] = variable->value ? evaluate_node(variable->value, values) : (double)*own;
            if (variable->reduction != REDUCTION_NONE)
                totals[i] = join(variable->reduction, totals[i], values[i]);
            else if (is_result(variable))
                *own = (float)values[i];
        }
    for (int i = 0; i < program->variable_count; i++) {
        const Variable *variable = &program->variables[i];
        if (variable->reduction == REDUCTION_NONE) continue;
        double total = variable->reduction == REDUCTION_MEAN ? totals[i] / (double)count : totals[i];
        data[i][offset_of(program, extents, variable, at)] = (float)total;
    }
}

void evaluate(const Program *program, const int64_t *extents, float *const *data) {
    int64_t at[MOST_DIMENSIONS] = {0}, rows = 1;
    for (unsigned i = 0; i + 1 < program->rank; i++) rows *= extents[i];
    for (int64_t row = 0; row < rows; row++) {
        int64_t rest = row;
        for (unsigned i = program->rank - 1; i-- > 0; rest /= extents[i]) at[i] = rest % extents[i];
        evaluate_row(program, extents, data, at);
    }
}
