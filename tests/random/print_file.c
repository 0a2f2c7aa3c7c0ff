/* Statements and the file. */
#include <inttypes.h>
#include <string.h>

#include "contents.h"
#include "print.h"

static void line(Printer *p) { put(p, "\n%*s", 4 * p->indent, ""); }

/* ---- statements ---- */

static void print_block(Printer *p, const Block *block);

static void print_body(Printer *p, const Block *block) {
    put(p, " {");
    p->indent++;
    print_block(p, block);
    p->indent--;
    line(p);
    put(p, "}");
}

/* The range of a grid or loop, for its name number i. */
static void print_over(Printer *p, const Statement *statement, int i) {
    bool tiles = statement->names[i]->kind == NAME_RANGE, from = statement->lo[i] || statement->kind == S_FOR;
    put(p, "%s", tiles ? "tiles(" : "");
    if (from && statement->lo[i]) print_above(p, statement->lo[i], 1);
    if (from && !statement->lo[i]) put(p, "0");
    if (from) put(p, "..");
    print_above(p, statement->hi[i], 1);
    if (!tiles) return;
    put(p, ", ");
    print_extent(p, statement->names[i]->size);
    put(p, ")");
}

static void print_names(Printer *p, const Statement *statement) {
    if (statement->count > 1) put(p, "(");
    for (int i = 0; i < statement->count; i++) put(p, "%s%s", i ? ", " : "", statement->names[i]->text);
    if (statement->count > 1) put(p, ")");
}

static void print_loop(Printer *p, const Statement *statement) {
    put(p, "%sfor %s in ",
        statement->unrolled  ? "static "
        : statement->ordered ? "ordered "
                             : "",
        statement->names[0]->text);
    print_over(p, statement, 0);
    if (statement->step) {
        put(p, " step ");
        print_expr(p, statement->step);
    }
    print_body(p, statement->body);
}

static void print_grid(Printer *p, const Statement *statement) {
    put(p, "grid ");
    print_names(p, statement);
    put(p, statement->count > 1 ? " in (" : " in ");
    for (int i = 0; i < statement->count; i++) {
        if (i) put(p, ", ");
        print_over(p, statement, i);
    }
    if (statement->count > 1) put(p, ")");
    print_body(p, statement->body);
}

static void print_change(Printer *p, const Statement *statement) {
    if (statement->second) {
        put(p, "(%s, %s) = (", statement->names[0]->text, statement->names[1]->text);
        print_expr(p, statement->value);
        put(p, ", ");
        print_expr(p, statement->second);
        put(p, ")");
        return;
    }
    if (statement->target)
        print_expr(p, statement->target);
    else
        put(p, "%s", statement->names[0]->text);
    put(p, " %s= ", statement->op >= 0 ? op_word((Op)statement->op) : "");
    if (statement->skip)
        print_above(p, statement->value, 1);
    else
        print_expr(p, statement->value);
    if (statement->skip) put(p, " else skip");
}

static void print_scatter(Printer *p, const Statement *statement) {
    put(p, "scatter(%s, ", statement->target->tensor->text);
    print_expr(p, statement->value);
    put(p, ", ");
    print_list(p, statement->target->operand, statement->target->count);
    put(p, ")");
}

static void print_temp(Printer *p, const Tensor *tensor) {
    put(p, "temp %s: %s", tensor->text, tensor_word(tensor));
    print_extents(p, tensor->dim, tensor->rank, "[", "]");
}

static void print_statement(Printer *p, const Statement *statement) {
    line(p);
    switch (statement->kind) {
    case S_LET:
    case S_VAR:
        put(p, statement->kind == S_LET ? "let " : "var ");
        print_names(p, statement);
        put(p, " = ");
        print_expr(p, statement->value);
        break;
    case S_ASSIGN:
    case S_STORE: print_change(p, statement); break;
    case S_SCATTER: print_scatter(p, statement); break;
    case S_TEMP: print_temp(p, statement->target->tensor); break;
    case S_UPDATE: print_expr(p, statement->value); break;
    case S_FOR_TILES:
    case S_FOR: print_loop(p, statement); break;
    case S_WHILE:
        put(p, "while ");
        print_expr(p, statement->value);
        print_body(p, statement->body);
        break;
    case S_IF:
        put(p, statement->fixed ? "static if " : "if ");
        print_expr(p, statement->value);
        print_body(p, statement->body);
        if (!statement->otherwise) break;
        put(p, " else");
        print_body(p, statement->otherwise);
        break;
    case S_BREAK: put(p, "break"); break;
    case S_CONTINUE: put(p, "continue"); break;
    case S_RETURN: put(p, "return"); break;
    case S_ASSERT:
        put(p, "assert(");
        print_expr(p, statement->value);
        put(p, ")");
        break;
    case S_GRID: print_grid(p, statement); break;
    }
}

static void print_block(Printer *p, const Block *block) {
    for (int i = 0; i < block->count; i++) print_statement(p, block->items[i]);
}

/* ---- the file ---- */

static void print_function(Printer *p, const Function *function) {
    put(p, "fn %s(", function->text);
    if (function->tensor) {
        put(p, "%s: in %s", function->tensor->text, tensor_word(function->tensor));
        print_extents(p, function->tensor->dim, function->tensor->rank, "[", "], ");
    }
    for (int i = 0; i < function->count; i++)
        put(p, "%s%s: %s", i ? ", " : "", function->names[i]->text, type_name(function->names[i]->shape.scalar));
    put(p, ") -> %s {\n", type_name(function->result));
    if (function->iterations) {
        put(p, "    var %s = %s\n    var turn = 0\n    while turn < %d && (", function->variable->text,
            function->names[0]->text, function->iterations);
        print_expr(p, function->condition);
        put(p, ") {\n        %s = ", function->variable->text);
        print_expr(p, function->body);
        put(p, "\n        turn += 1\n    }\n    return %s\n}\n", function->variable->text);
        return;
    }
    if (function->condition) {
        put(p, "    if ");
        print_expr(p, function->condition);
        put(p, " { return ");
        print_expr(p, function->first);
        put(p, " }\n");
    }
    put(p, "    return ");
    print_expr(p, function->body);
    put(p, "\n}\n");
}

static void print_parameters(Printer *p, const Program *program) {
    static const char *const roles[] = {"in", "out", "inout"};
    bool comma = false;
    for (int i = 0; i < program->tensor_count; i++) {
        const Tensor *tensor = program->tensors[i];
        if (tensor->role == TENSOR_TEMP || !tensor->used) continue;
        put(p, "%s%s: %s %s", comma ? ", " : "", tensor->text, roles[tensor->role], tensor_word(tensor));
        print_extents(p, tensor->dim, tensor->rank, "[", "]");
        comma = true;
    }
    for (int i = 0; i < program->name_count; i++) {
        const Name *name = program->names[i];
        if (name->kind != NAME_PARAMETER || !name->used) continue;
        put(p, "%s%s: %s%s", comma ? ", " : "", name->text, name->constant ? "const " : "",
            type_name(name->shape.scalar));
        comma = true;
    }
}

static void print_generics(Printer *p, const Program *program) {
    bool any = false;
    for (int i = 0; i < program->name_count; i++) {
        const Name *name = program->names[i];
        if (name->kind != NAME_GENERIC || !name->used) continue;
        put(p, "%s%s: const = %" PRId64, any ? ", " : "[", name->text, name->value);
        any = true;
    }
    if (any) put(p, "]");
}

static void print_clauses(Printer *p, const Program *program) {
    bool any = false;
    for (int i = 0; i < program->name_count; i++) {
        const Name *name = program->names[i];
        if (name->kind != NAME_PARAMETER || !name->used || !name->below) continue;
        put(p, "%s%s >= 0 && %s < ", any ? ", " : "\n    require ", name->text, name->text);
        print_extent(p, name->below);
        any = true;
    }
    any = false;
    for (int i = 0; i < program->name_count; i++)
        if (program->names[i]->kind == NAME_STATIC && program->names[i]->used) {
            put(p, "%s%s", any ? ", " : "\n    static ", program->names[i]->text);
            any = true;
        }
    any = false;
    for (int i = 0; i < program->name_count; i++)
        if (program->names[i]->kind == NAME_TUNE && program->names[i]->used) {
            put(p, "%s%s in {%" PRId64 "}", any ? ", " : "\n    tune ", program->names[i]->text,
                program->names[i]->value);
            any = true;
        }
    if (program->warps >= 0) put(p, "%swarps in {%" PRId64 "}", any ? ", " : "\n    tune ", program->warps);
    any = any || program->warps >= 0;
    if (program->stages >= 0) put(p, "%sstages in {%" PRId64 "}", any ? ", " : "\n    tune ", program->stages);
    any = any || program->stages >= 0;
    if (program->packs >= 0) put(p, "%spacks in {%" PRId64 "}", any ? ", " : "\n    tune ", program->packs);
}

static void use_extent(const Extent *extent) {
    if (extent->kind == EXTENT_NAME) extent->name->used = true;
    if (extent->kind != EXTENT_PRODUCT && extent->kind != EXTENT_SUM) return;
    use_extent(extent->a);
    use_extent(extent->b);
}

static void use_shape(const Shape *shape) {
    for (int i = 0; i < shape->rank; i++) use_extent(shape->extent[i]);
}

static void use_expr(void *state, Expr **place) {
    (void)state;
    Expr *expr = *place;
    use_shape(&expr->shape);
    if (expr->extent) use_extent(expr->extent);
    if (expr->name) expr->name->used = true;
    if (expr->name && expr->name->kind == NAME_PARAMETER && expr->name->below) use_extent(expr->name->below);
    if (expr->function) expr->function->used = true;
    if (expr->tensor) expr->tensor->used = true;
}

static void use_statement(void *state, Block *block, int index) {
    (void)state;
    const Statement *statement = block->items[index];
    for (int i = 0; i < statement->count; i++)
        if (statement->names[i]->size) use_extent(statement->names[i]->size);
}

/* Unused names are omitted. A dimension has to be bound by a tensor that has the name as extent, or the name and a number. */
static void mark_used(Program *program) {
    for (int i = 0; i < program->name_count; i++) program->names[i]->used = false;
    for (int i = 0; i < program->tensor_count; i++) program->tensors[i]->used = false;
    for (int i = 0; i < program->function_count; i++) program->functions[i]->used = false;
    program_visit(program, &(Visitor){use_expr, use_statement, NULL});
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < program->tensor_count; i++) {
            Tensor *tensor = program->tensors[i];
            for (int d = 0; d < tensor->rank; d++) {
                const Extent *dim = tensor->dim[d];
                if (tensor->used) use_extent(dim);
            }
        }
        for (int n = 0; n < program->name_count; n++) {
            Name *name = program->names[n];
            if (!name->used || (name->kind != NAME_DIMENSION && name->kind != NAME_STATIC)) continue;
            Tensor *binder = NULL;
            bool bound = false;
            for (int i = 0; i < program->tensor_count; i++) {
                if (!program_binds(program, program->tensors[i], name)) continue;
                binder = program->tensors[i];
                bound = bound || binder->used;
            }
            if (!bound && binder) more = binder->used = true;
        }
    }
}

bool program_print(Program *program, char *text, size_t size) {
    char *body = program_allocate(size), *helpers = program_allocate(MAX_HELPERS);
    mark_used(program);
    Printer p = {.text = body, .size = size, .helpers = helpers, .indent = 1};
    print_block(&p, program->grids);
    if (p.length >= size) return false;
    Printer head = {.text = text, .size = size};
    for (int i = 0; i < program->name_count; i++)
        if (program->names[i]->kind == NAME_CONSTANT && program->names[i]->used)
            put(&head, "const %s = %" PRId64 "\n", program->names[i]->text, program->names[i]->value);
    if (strstr(body, "least_power(") || strstr(helpers, "least_power("))
        put(&head, "fn least_power(n: i64) -> i64 {\n    var p = 1\n    while p < n { p *= 2 }\n    return p\n}\n");
    for (int i = 0; i < p.fold_count; i++) print_fold_function(&head, p.folds[i].kind, p.folds[i].type);
    for (int i = 0; i < program->function_count; i++)
        if (program->functions[i]->used) print_function(&head, program->functions[i]);
    put(&head, "%s\nkernel k", helpers);
    print_generics(&head, program);
    put(&head, "(");
    print_parameters(&head, program);
    put(&head, ")");
    print_clauses(&head, program);
    put(&head, "\n{");
    for (int i = 0; i < program->tensor_count; i++) {
        const Tensor *tensor = program->tensors[i];
        if (tensor->role != TENSOR_TEMP || tensor->own || !tensor->used) continue;
        put(&head, "\n    ");
        print_temp(&head, tensor);
    }
    put(&head, "%s\n}\n", body);
    return head.length < size;
}
