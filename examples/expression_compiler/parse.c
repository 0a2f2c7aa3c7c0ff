/* From text to a tree:
 *
 *     in x[M, N], scale[N], m[M, 1]
 *     t = x * scale - m
 *     y = gelu(t)
 *     s = sum(exp(t))
 *
 * `in` names the tensors that are given, with their dimensions; shapes are aligned at the end and stretched as NumPy
 * does. A statement may use what earlier ones compute. What no other statement uses is a result. sum, mean, max and min
 * of one argument reduce along the last dimension, and stand at the front of a statement. # begins a comment. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expression.h"

typedef struct Parser {
    Program *program;
    const char *text, *at;
    char *error;
    size_t error_bytes;
    bool failed;
    int depth;
} Parser;

static const struct {
    const char *name;
    int arguments;
} functions[] = {
#define FUNCTION_ROW(id, name, arguments, op, value) {name, arguments},
    FUNCTION_LIST(FUNCTION_ROW)
#undef FUNCTION_ROW
};

static const char *const reductions[] = {[REDUCTION_NONE] = "",
                                         [REDUCTION_SUM] = "sum",
                                         [REDUCTION_MEAN] = "mean",
                                         [REDUCTION_MAX] = "max",
                                         [REDUCTION_MIN] = "min"};

/* The first mistake; what follows reads the end of the text. */
static void fail(Parser *p, const char *format, ...) {
    if (p->failed) return;
    int line = 1, column = 1;
    for (const char *at = p->text; at < p->at; at++) {
        column = *at == '\n' ? 1 : column + 1;
        line += *at == '\n';
    }
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(p->error, p->error_bytes, "%d:%d: ", line, column);
    vsnprintf(p->error + length, p->error_bytes - (size_t)length, format, arguments);
    va_end(arguments);
    p->failed = true;
    p->at += strlen(p->at);
}

static void skip_blanks(Parser *p, bool lines) {
    for (;;) {
        if (*p->at == '#') p->at += strcspn(p->at, "\n");
        if (*p->at != ' ' && *p->at != '\t' && (!lines || *p->at != '\n')) return;
        p->at++;
    }
}

static bool accept(Parser *p, char mark) {
    skip_blanks(p, false);
    if (*p->at != mark) return false;
    p->at++;
    return true;
}

static void expect(Parser *p, char mark) {
    if (!accept(p, mark)) fail(p, "expected '%c'", mark);
}

static void read_name(Parser *p, char *name) {
    size_t length = 0;
    skip_blanks(p, false);
    while (isalnum((unsigned char)p->at[length]) || p->at[length] == '_') length++;
    if (length == 0 || length >= NAME_BYTES) {
        fail(p, "expected a name of at most %d letters and digits", NAME_BYTES - 1);
        length = 0;
    }
    memcpy(name, p->at, length);
    name[length] = 0;
    p->at += length;
}

/* ---- nodes ---- */

static const Node *add_node(Parser *p, Node node) {
    static const Node none = {.kind = NODE_NUMBER};
    if (p->program->node_count == MOST_NODES) fail(p, "the program is too long");
    if (p->failed) return &none;
    p->program->nodes[p->program->node_count] = node;
    return &p->program->nodes[p->program->node_count++];
}

static const Node *number(Parser *p, double value) { return add_node(p, (Node){.kind = NODE_NUMBER, .number = value}); }

static const Node *call(Parser *p, Function function, const Node *a, const Node *b) {
    return add_node(p, (Node){.kind = NODE_FUNCTION, .function = function, .arguments = {a, b}});
}

static int find_variable(const Program *program, const char *name) {
    for (int i = 0; i < program->variable_count; i++)
        if (strcmp(program->variables[i].name, name) == 0) return i;
    return -1;
}

static const Node *read_sum(Parser *p);

/* gelu(x) = x (1 + erf(x / sqrt 2)) / 2; relu(x) = max(x, 0). False where it is another name. */
static bool read_composed(Parser *p, const char *name, const Node *x, const Node **node) {
    if (strcmp(name, "relu") == 0) {
        *node = call(p, FUNCTION_MAX, x, number(p, 0));
    } else if (strcmp(name, "gelu") == 0) {
        const Node *erf = call(p, FUNCTION_ERF, call(p, FUNCTION_MUL, x, number(p, 0.70710678118654752)), NULL);
        const Node *half = call(p, FUNCTION_MUL, x, number(p, 0.5));
        *node = call(p, FUNCTION_MUL, half, call(p, FUNCTION_ADD, number(p, 1), erf));
    } else {
        return false;
    }
    return true;
}

/* Behind the name and its parenthesis. */
static const Node *read_call(Parser *p, const char *name) {
    const Node *arguments[2] = {read_sum(p), NULL}, *node;
    int count = 1;
    if (accept(p, ',')) arguments[count++] = read_sum(p);
    expect(p, ')');
    if (count == 1 && read_composed(p, name, arguments[0], &node)) return node;
    for (int i = FUNCTION_NEG; i < FUNCTION_COUNT; i++)
        if (strcmp(functions[i].name, name) == 0 && functions[i].arguments == count)
            return call(p, (Function)i, arguments[0], arguments[1]);
    fail(p, "there is no function %s of %d arguments here", name, count);
    return arguments[0];
}

static const Node *read_variable(Parser *p, const char *name) {
    int found = find_variable(p->program, name);
    if (found < 0 || p->program->variables[found].reduction != REDUCTION_NONE) {
        fail(p, found < 0 ? "nothing is called %s" : "%s is reduced, and a result only", name);
        return number(p, 0);
    }
    p->program->variables[found].used = true;
    return add_node(p, (Node){.kind = NODE_VARIABLE, .variable = found});
}

static const Node *read_primary(Parser *p) {
    char name[NAME_BYTES], *end;
    skip_blanks(p, false);
    if (p->depth > 100) fail(p, "nested too deeply");
    if (isdigit((unsigned char)*p->at) || *p->at == '.') {
        double value = strtod(p->at, &end);
        p->at = end;
        return number(p, value);
    }
    p->depth++;
    const Node *node;
    if (accept(p, '-')) {
        node = call(p, FUNCTION_NEG, read_primary(p), NULL);
    } else if (accept(p, '(')) {
        node = read_sum(p);
        expect(p, ')');
    } else {
        read_name(p, name);
        node = accept(p, '(') ? read_call(p, name) : read_variable(p, name);
    }
    p->depth--;
    return node;
}

static const Node *read_product(Parser *p) {
    const Node *node = read_primary(p);
    for (;;) {
        if (accept(p, '*'))
            node = call(p, FUNCTION_MUL, node, read_primary(p));
        else if (accept(p, '/'))
            node = call(p, FUNCTION_DIV, node, read_primary(p));
        else
            return node;
    }
}

static const Node *read_sum(Parser *p) {
    const Node *node = read_product(p);
    for (;;) {
        if (accept(p, '+'))
            node = call(p, FUNCTION_ADD, node, read_product(p));
        else if (accept(p, '-'))
            node = call(p, FUNCTION_SUB, node, read_product(p));
        else
            return node;
    }
}

/* ---- statements ---- */

static Variable *add_variable(Parser *p, const char *name) {
    static Variable none;
    if (find_variable(p->program, name) >= 0) fail(p, "%s is there already", name);
    if (p->program->variable_count == MOST_VARIABLES) fail(p, "too many tensors");
    if (p->failed) return &none;
    Variable *variable = &p->program->variables[p->program->variable_count++];
    *variable = (Variable){.rank = 0};
    strcpy(variable->name, name);
    return variable;
}

/* A dimension that is not stretched is one of the program's, at the same distance from the end. */
static void join_shape(Parser *p, const Variable *variable) {
    Program *program = p->program;
    unsigned old = program->rank, missing = variable->rank > old ? variable->rank - old : 0;
    memmove(program->dimensions[missing], program->dimensions[0], (MOST_DIMENSIONS - missing) * NAME_BYTES);
    for (unsigned i = 0; i < missing; i++) strcpy(program->dimensions[i], "1");
    program->rank += missing;
    for (unsigned i = 0; i < variable->rank; i++) {
        char *mine = program->dimensions[program->rank - variable->rank + i];
        const char *theirs = variable->dimensions[i];
        if (strcmp(theirs, "1") == 0 || strcmp(mine, theirs) == 0) continue;
        if (strcmp(mine, "1") != 0) fail(p, "%s does not fit: %s is not %s", variable->name, theirs, mine);
        strcpy(mine, theirs);
    }
}

static void read_inputs(Parser *p) {
    char name[NAME_BYTES];
    do {
        read_name(p, name);
        Variable *variable = add_variable(p, name);
        expect(p, '[');
        do {
            if (variable->rank == MOST_DIMENSIONS) fail(p, "a tensor has at most %d dimensions", MOST_DIMENSIONS);
            if (!p->failed) read_name(p, variable->dimensions[variable->rank++]);
        } while (accept(p, ','));
        expect(p, ']');
        if (!p->failed) join_shape(p, variable);
    } while (accept(p, ','));
}

/* `sum(` in front of all else; max and min have two arguments where they are functions. */
static Reduction read_reduction(Parser *p, const Node **value) {
    const char *begin = p->at;
    for (int i = REDUCTION_SUM; i <= REDUCTION_MIN; i++) {
        size_t length = strlen(reductions[i]);
        if (strncmp(p->at, reductions[i], length) != 0 || p->at[length] != '(') continue;
        int nodes = p->program->node_count;
        p->at += length + 1;
        *value = read_sum(p);
        if (accept(p, ')')) return (Reduction)i;
        p->program->node_count = nodes;
        p->at = p->failed ? p->at : begin;
    }
    return REDUCTION_NONE;
}

static void read_statement(Parser *p, const char *name) {
    const Node *value = NULL;
    expect(p, '=');
    skip_blanks(p, false);
    Reduction reduction = read_reduction(p, &value);
    if (reduction == REDUCTION_NONE) value = read_sum(p);
    Variable *variable = add_variable(p, name);
    variable->value = value;
    variable->reduction = reduction;
}

/* All statements run over the whole space; what is reduced lacks its last dimension. */
static void finish(Parser *p) {
    Program *program = p->program;
    bool results = false;
    for (int i = 0; i < program->variable_count && !p->failed; i++) {
        Variable *variable = &program->variables[i];
        if (!variable->value) continue;
        variable->rank = program->rank - (variable->reduction != REDUCTION_NONE);
        memcpy(variable->dimensions, program->dimensions, sizeof program->dimensions);
        results |= is_result(variable);
    }
    if (!results) fail(p, "the program computes nothing");
    if (program->rank == 0 || strcmp(program->dimensions[program->rank - 1], "1") == 0)
        fail(p, "no tensor has a last dimension");
}

bool parse_program(Program *program, const char *text, char *error, size_t error_bytes) {
    Parser p = {.program = program, .text = text, .at = text, .error = error, .error_bytes = error_bytes};
    char name[NAME_BYTES];
    *program = (Program){.rank = 0};
    for (skip_blanks(&p, true); *p.at; skip_blanks(&p, true)) {
        read_name(&p, name);
        if (strcmp(name, "in") == 0)
            read_inputs(&p);
        else
            read_statement(&p, name);
        skip_blanks(&p, false);
        if (*p.at && *p.at != '\n') fail(&p, "expected the end of the line");
    }
    finish(&p);
    return !p.failed;
}
