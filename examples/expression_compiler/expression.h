/* A program of pointwise statements over named tensors, as a tree. */
#ifndef EXPRESSION_H
#define EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tile/ir.h>

enum { MOST_DIMENSIONS = 4, MOST_VARIABLES = 32, MOST_NODES = 512, NAME_BYTES = 32 };

/* X(ID, name, arguments, operation of the IR, value): what a node computes of a and b. */
#define FUNCTION_LIST(X)                                                                                               \
    X(ADD, "+", 2, "add", a + b)                                                                                       \
    X(SUB, "-", 2, "sub", a - b)                                                                                       \
    X(MUL, "*", 2, "mul", a *b)                                                                                        \
    X(DIV, "/", 2, "div", a / b)                                                                                       \
    X(NEG, "neg", 1, "neg", -a)                                                                                        \
    X(EXP, "exp", 1, "exp", exp(a))                                                                                    \
    X(LOG, "log", 1, "log", log(a))                                                                                    \
    X(SQRT, "sqrt", 1, "sqrt", sqrt(a))                                                                                \
    X(TANH, "tanh", 1, "tanh", tanh(a))                                                                                \
    X(ERF, "erf", 1, "erf", erf(a))                                                                                    \
    X(SIGMOID, "sigmoid", 1, "sigmoid", 1 / (1 + exp(-a)))                                                             \
    X(ABS, "abs", 1, "abs", fabs(a))                                                                                   \
    X(MAX, "max", 2, "max", fmax(a, b))                                                                                \
    X(MIN, "min", 2, "min", fmin(a, b))

typedef enum Function {
#define FUNCTION_ENUM(id, name, arguments, op, value) FUNCTION_##id,
    FUNCTION_LIST(FUNCTION_ENUM)
#undef FUNCTION_ENUM
        FUNCTION_COUNT
} Function;

typedef struct Node {
    enum { NODE_NUMBER, NODE_VARIABLE, NODE_FUNCTION } kind;
    double number;
    int variable;
    Function function;
    const struct Node *arguments[2];
} Node;

typedef enum Reduction { REDUCTION_NONE, REDUCTION_SUM, REDUCTION_MEAN, REDUCTION_MAX, REDUCTION_MIN } Reduction;

/* A tensor that is given, or what a statement computes. */
typedef struct Variable {
    char name[NAME_BYTES];
    unsigned rank;
    char dimensions[MOST_DIMENSIONS][NAME_BYTES]; /* "1" is stretched */
    const Node *value;                            /* NULL: given */
    Reduction reduction;                          /* of the value, along the last dimension */
    bool used;                                    /* by a later statement; what is not used is a result */
} Variable;

typedef struct Program {
    Variable variables[MOST_VARIABLES]; /* in order */
    int variable_count;
    unsigned rank; /* of the space that all statements run over */
    char dimensions[MOST_DIMENSIONS][NAME_BYTES];
    Node nodes[MOST_NODES];
    int node_count;
} Program;

/* parse.c. False: `error` says where and why. */
bool parse_program(Program *program, const char *text, char *error, size_t error_bytes);

static inline bool is_result(const Variable *variable) { return variable->value && !variable->used; }

/* compile.c: one kernel of all statements, "fused", with the given tensors and then the results as its parameters. */
void build_kernel(TileIr *ir, const Program *program);

/* evaluate.c: the same by plain loops in double precision. data[i]: of variable i, without gaps; extents: of the
 * program's dimensions. */
void evaluate(const Program *program, const int64_t *extents, float *const *data);
/* The extent of a dimension of a variable. */
int64_t extent_of(const Program *program, const int64_t *extents, const char *dimension);

#endif
