/* Expressions as text of the language. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "contents.h"
#include "print.h"

enum { MAX_FREE = 12 };

void put(Printer *p, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int written = p->length < p->size ? vsnprintf(p->text + p->length, p->size - p->length, format, list) : 0;
    va_end(list);
    if (written > 0) p->length += (size_t)written;
}

/* ---- types ---- */

void print_extent(Printer *p, const Extent *extent) {
    switch (extent->kind) {
    case EXTENT_LITERAL: put(p, "%" PRId64, extent->literal); break;
    case EXTENT_NAME: put(p, "%s", extent->name->text); break;
    case EXTENT_PRODUCT:
        put(p, "(");
        print_extent(p, extent->a);
        put(p, " * ");
        print_extent(p, extent->b);
        put(p, ")");
        break;
    case EXTENT_SUM:
        put(p, "(");
        print_extent(p, extent->a);
        put(p, " + ");
        print_extent(p, extent->b);
        put(p, ")");
        break;
    }
}

void print_extents(Printer *p, const Extent *const *extents, int count, const char *open, const char *close) {
    put(p, "%s", open);
    for (int i = 0; i < count; i++) {
        if (i) put(p, ", ");
        print_extent(p, extents[i]);
    }
    put(p, "%s", close);
}

static void print_type(Printer *p, const Shape *shape) {
    put(p, "%s", type_name(shape->scalar));
    if (shape->rank) print_extents(p, shape->extent, shape->rank, "[", "]");
}

/* ---- literals ---- */

static void print_float(Printer *p, Type type, uint64_t bits) {
    double value = number_value(type, bits);
    char words[64];
    if (isnan(value)) {
        put(p, "nan");
        return;
    }
    if (isinf(value)) {
        put(p, value < 0 ? "-inf" : "inf");
        return;
    }
    snprintf(words, sizeof words, "%.17g", value);
    put(p, "%s%s", words, strpbrk(words, ".en") ? "" : ".0");
}

static void print_integer(Printer *p, Type type, uint64_t bits) {
    Wide value = number_integer(type, bits);
    if (value == INT64_MIN)
        put(p, "(-9223372036854775807 - 1)");
    else if (type_is_signed(type))
        put(p, "%" PRId64, (int64_t)value);
    else
        put(p, "%" PRIu64, (uint64_t)value);
}

static void print_literal(Printer *p, const Expr *expr) {
    Type type = expr->shape.scalar;
    if (type == TYPE_BOOL) {
        put(p, expr->bits ? "true" : "false");
        return;
    }
    bool typed = !expr->bare && !(type == TYPE_I64 && (int64_t)expr->bits >= 0);
    if (typed) put(p, "%s(", type_name(type));
    if (type_is_float(type))
        print_float(p, type, expr->bits);
    else
        print_integer(p, type, expr->bits);
    if (typed) put(p, ")");
}

/* ---- operators ---- */

static int own_precedence(const Expr *expr) {
    if (expr->kind == E_LITERAL && expr->bare && type_is_float(expr->shape.scalar))
        return signbit(number_value(expr->shape.scalar, expr->bits)) ? 10 : 20;
    if (expr->kind == E_UNARY) return 10;
    if (expr->kind == E_ELSE || expr->kind == E_IF) return 0;
    if (expr->kind == E_SHIFT) return expr->op == OP_MUL ? 9 : 8;
    if (expr->kind != E_BINARY) return 20;
    static const int levels[] = {
        [OP_ADD] = 8, [OP_SUB] = 8, [OP_MUL] = 9, [OP_DIV] = 9, [OP_REM] = 9,  [OP_AND] = 6,
        [OP_OR] = 4,  [OP_XOR] = 5, [OP_SHL] = 7, [OP_SHR] = 7, [OP_EQ] = 3,   [OP_NE] = 3,
        [OP_LT] = 3,  [OP_LE] = 3,  [OP_GT] = 3,  [OP_GE] = 3,  [OP_BOTH] = 2, [OP_EITHER] = 1};
    return levels[expr->op];
}

/* An operation that cannot be written as a call is put in parentheses. */
static int precedence(const Expr *expr) { return expr->outlined ? 0 : own_precedence(expr); }

void print_above(Printer *p, const Expr *expr, int level) {
    bool close = precedence(expr) < level;
    if (close) put(p, "(");
    print_expr(p, expr);
    if (close) put(p, ")");
}

/* An i64 of literals that are written without a type: arithmetic on two of these is exact and does not wrap. */
static bool is_untyped(const Expr *expr) {
    bool choice = expr->kind == E_WHERE || expr->kind == E_IF;
    bool pure = choice || expr->kind == E_UNARY || expr->kind == E_CALL || expr->kind == E_CLAMP;
    if (expr->kind == E_NAME) return expr->name->literal;
    if (expr->kind == E_LITERAL) return expr->bare || (expr->shape.scalar == TYPE_I64 && (int64_t)expr->bits >= 0);
    for (int i = choice; pure && i < MAX_OPERANDS && expr->operand[i]; i++) pure = is_untyped(expr->operand[i]);
    return pure;
}

/* The result of an i64 operation wraps: where both operands are untyped, the left one gets its type. */
static void print_binary(Printer *p, const Expr *expr) {
    int level = own_precedence(expr), left = expr->reverse && expr->kind == E_SHIFT ? 1 : 0;
    bool typed =
        expr->operand[0]->shape.scalar == TYPE_I64 && is_untyped(expr->operand[0]) && is_untyped(expr->operand[1]);
    if (typed) put(p, "i64(");
    print_above(p, expr->operand[left], typed ? 0 : level == 3 ? 4 : level);
    if (typed) put(p, ")");
    put(p, " %s ", op_word((Op)expr->op));
    print_above(p, expr->operand[1 - left], level + 1);
}

void print_list(Printer *p, Expr *const *exprs, int count) {
    for (int i = 0; i < count; i++) {
        if (i) put(p, ", ");
        print_expr(p, exprs[i]);
    }
}

static void print_call(Printer *p, const char *name, const Expr *expr) {
    put(p, "%s(", name);
    if (expr->function && expr->function->tensor) put(p, "%s, ", expr->function->tensor->text);
    print_list(p, expr->operand, expr->count);
    put(p, ")");
}

/* ---- folds ---- */

static const char *const fold_names[FOLD_COUNT] = {"sums",  "products", "largest", "least", "xors",  "ors",
                                                   "first", "last",     "divisor", "affine",  "best",  "edges", "matrix"};

static void need_fold(Printer *p, FoldKind kind, Type type) {
    for (int i = 0; i < p->fold_count; i++)
        if (p->folds[i].kind == kind && p->folds[i].type == type) return;
    if (p->fold_count == MAX_FOLDS) return;
    p->folds[p->fold_count].kind = kind;
    p->folds[p->fold_count++].type = type;
}

void print_fold_function(Printer *p, FoldKind kind, Type type) {
    static const char *const bodies[FOLD_COUNT] = {"return a + b",     "return a * b", "return max(a, b)",
                                                   "return min(a, b)", "return a ^ b", "return a | b",
                                                   "return a",         "return b"};
    const char *t = type_name(type), *name = fold_names[kind];
    switch (kind) {
    case FOLD_AFFINE:
        put(p, "fn %s_%s(a: %s, h: %s, b: %s, g: %s) -> (%s, %s) { return (a * b, h * b + g) }\n", name, t, t, t, t, t,
            t, t);
        break;
    case FOLD_BEST:
        put(p,
            "fn %s_%s(a: %s, i: i64, b: %s, j: i64) -> (%s, i64) {\n    if b >= a { return (b, j) }\n    return (a, "
            "i)\n}\n",
            name, t, t, t, t);
        break;
    case FOLD_EDGES:
        put(p,
            "fn %s_%s(a: %s, b: %s, c: %s, d: %s, e: %s, f: %s) -> (%s, %s, %s) {\n    return (min(a, d), max(b, e), c "
            "+ f)\n}\n",
            name, t, t, t, t, t, t, t, t, t, t);
        break;
    case FOLD_MATRIX:
        put(p,
            "fn %s_%s(a: %s, b: %s, c: %s, d: %s, e: %s, f: %s) -> (%s, %s, %s) {\n    return (a * d, a * e + b * f, c "
            "* f)\n}\n",
            name, t, t, t, t, t, t, t, t, t, t);
        break;
    case FOLD_DIVISOR: /* one that is unrolled, of 8 bits: at most 12 iterations; and one that is not */
        put(p, "fn %s_%s(a: %s, b: %s) -> %s {\n    var (u, v) = (a, b)\n    %s {\n", name, t, t, t, t,
            type == TYPE_U8 ? "for i in 0..13" : "while v != 0");
        put(p, "%s        (u, v) = (v, u %% v)\n    }\n    return u\n}\n",
            type == TYPE_U8 ? "        if v == 0 { break }\n" : "");
        break;
    default: put(p, "fn %s_%s(a: %s, b: %s) -> %s { %s }\n", name, t, t, t, t, bodies[kind]);
    }
}

/* The number of an axis, counted from the front or from the end. */
static int axis_of(const Expr *expr, int i) {
    int rank = expr->kind == E_FOLD ? expr->shape.rank + !expr->scan : expr->operand[0]->shape.rank;
    return expr->from_end ? expr->axis[i] - rank : expr->axis[i];
}

static void print_values(Printer *p, Expr *const *exprs, int count) {
    if (count > 1) put(p, "(");
    print_list(p, exprs, count);
    if (count > 1) put(p, ")");
}

static void print_fold(Printer *p, const Expr *expr) {
    Type type = expr->operand[0]->shape.scalar;
    put(p, expr->scan ? "scan(" : "reduce(");
    print_values(p, expr->operand, expr->parts);
    put(p, ", %d, ", axis_of(expr, 0));
    if (expr->bare && (expr->op == FOLD_LARGEST || expr->op == FOLD_LEAST)) {
        put(p, expr->op == FOLD_LARGEST ? "max" : "min");
    } else {
        need_fold(p, (FoldKind)expr->op, type);
        put(p, "%s_%s", fold_names[expr->op], type_name(type));
    }
    if (expr->keep) {
        put(p, ", init = ");
        print_values(p, expr->operand + expr->parts, expr->parts);
    }
    put(p, "%s%s)", expr->reverse ? ", reverse = true" : "", expr->exclusive ? ", exclusive = true" : "");
}

/* ---- other calls ---- */

static void print_reduction(Printer *p, const Expr *expr) {
    static const char *const names[] = {"sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax"};
    put(p, "%s(", names[expr->op]);
    print_expr(p, expr->operand[0]);
    bool all = expr->axes == expr->operand[0]->shape.rank && expr->bare;
    if (!all && expr->axes == 1) put(p, ", axis = %d", axis_of(expr, 0));
    if (!all && expr->axes > 1) {
        put(p, ", axis = (");
        for (int i = 0; i < expr->axes; i++) put(p, "%s%d", i ? ", " : "", axis_of(expr, i));
        put(p, ")");
    }
    put(p, "%s)", expr->keep ? ", keep = true" : "");
}

static void print_running(Printer *p, const Expr *expr) {
    put(p, expr->op == REDUCE_PROD ? "cumprod(" : "cumsum(");
    print_expr(p, expr->operand[0]);
    put(p, ", axis = %d%s%s)", axis_of(expr, 0), expr->reverse ? ", reverse = true" : "",
        expr->exclusive ? ", exclusive = true" : "");
}

static void print_arranged(Printer *p, const Expr *expr) {
    const char *name = expr->kind == E_MOVED ? "shift" : expr->kind == E_FIRST ? "topk" : expr->scan ? "argsort" : "sort";
    put(p, "%s(", name);
    print_expr(p, expr->operand[0]);
    if (expr->kind == E_FIRST) {
        put(p, ", ");
        print_extent(p, expr->shape.extent[expr->axis[0]]);
    }
    if (expr->kind == E_MOVED)
        put(p, ", %d, %d)", axis_of(expr, 0), expr->op);
    else
        put(p, ", axis = %d%s)", axis_of(expr, 0), expr->kind == E_SORT && expr->reverse ? ", descending = true" : "");
}

/* Counts, and a value in every element. */
static void print_counted(Printer *p, const Expr *expr) {
    const Extent *const *extent = expr->shape.extent;
    if (expr->kind == E_PLACED) {
        put(p, "searchsorted(");
        print_list(p, expr->operand, 2);
        put(p, "%s)", expr->reverse ? ", right = true" : "");
        return;
    }
    put(p, expr->kind == E_STRETCH ? "broadcast(" : "histogram(");
    print_expr(p, expr->operand[0]);
    if (expr->kind == E_STRETCH)
        print_extents(p, extent, expr->shape.rank, ", (", expr->shape.rank == 1 ? ",))" : "))");
    else
        print_extents(p, extent, 1, ", ", ")");
}

static void print_atomic(Printer *p, const Expr *expr) {
    static const char *const names[] = {"atomic_add", "atomic_max", "atomic_min", "atomic_cas"};
    put(p, "%s(", names[expr->op]);
    print_list(p, expr->operand, expr->count);
    put(p, "%s)", expr->keep ? " else skip" : "");
}

/* A transposed operand has its letters in the other order. */
static const Expr *lettered(const Expr *operand, char *letters, const char *batch, char row, char column) {
    bool turned = operand->kind == E_PERMUTE && operand->shape.rank == 2 && operand->axis[0] == 1 && !operand->outlined;
    snprintf(letters, 8, "%s%c%c", batch, turned ? column : row, turned ? row : column);
    return turned ? operand->operand[0] : operand;
}

static void print_by_letters(Printer *p, const Expr *expr) {
    static const char *const batches[] = {"", "a", "ab"};
    const char *batch = batches[expr->shape.rank - 2];
    char letters[2][8];
    const Expr *a = lettered(expr->operand[0], letters[0], batch, 'i', 'k');
    const Expr *b = lettered(expr->operand[1], letters[1], batch, 'k', 'j');
    put(p, "einsum(\"%s,%s->%sij\", ", letters[0], letters[1], batch);
    print_expr(p, a);
    put(p, ", ");
    print_expr(p, b);
    put(p, ")");
}

static void print_dot(Printer *p, const Expr *expr) {
    static const char *const names[] = {"dot", "dot[tf32]", "dot[tf32x3]", "dot[ordered]"};
    if (expr->bare && expr->count == 2 && expr->op == PRECISION_FULL) {
        put(p, "(");
        print_above(p, expr->operand[0], 10);
        put(p, " @ ");
        print_above(p, expr->operand[1], 10);
        put(p, ")");
        return;
    }
    bool matrices = expr->operand[0]->shape.rank > 1 && expr->operand[1]->shape.rank > 1;
    if (expr->reverse && matrices && expr->count == 2 && expr->op == PRECISION_FULL && expr->shape.rank <= 4) {
        print_by_letters(p, expr);
        return;
    }
    print_call(p, names[expr->op], expr);
}

static void print_moved(Printer *p, const Expr *expr) {
    const Expr *v = expr->operand[0];
    if (expr->kind == E_PERMUTE && expr->shape.rank == 2 && expr->bare && expr->axis[0] == 1) {
        print_above(p, v, 11);
        put(p, ".T");
        return;
    }
    if (expr->kind == E_PERMUTE) {
        put(p, "permute(");
        print_expr(p, v);
        put(p, ", (");
        for (int i = 0; i < expr->shape.rank; i++) put(p, "%s%d", i ? ", " : "", expr->axis[i]);
        put(p, "))");
        return;
    }
    /* `x[:, _]` would be an access if x is a tensor. */
    print_above(p, v, 11);
    put(p, "[");
    for (int i = 0; i < expr->shape.rank; i++) put(p, "%s%s", i ? ", " : "", expr->axis[i] ? "_" : ":");
    put(p, "]");
}

static void print_made(Printer *p, const Expr *expr) {
    static const char *const names[] = {"full", "zeros", "iota"};
    put(p, "%s[", names[expr->kind - E_FULL]);
    for (int i = 0; i < expr->shape.rank; i++) {
        if (i) put(p, ", ");
        print_extent_written(p, expr->shape.extent[i], i);
    }
    put(p, "]");
    if (expr->kind == E_IOTA) return;
    put(p, "(");
    if (expr->kind == E_ZEROS)
        put(p, "%s", type_name(expr->shape.scalar));
    else
        print_expr(p, expr->operand[0]);
    put(p, ")");
}

static void print_span(Printer *p, const Expr *expr) {
    put(p, "span(");
    print_above(p, expr->operand[0], 1);
    if (expr->kind == E_SPAN_TO) {
        put(p, "..");
        print_above(p, expr->operand[1], 1);
    }
    put(p, ", ");
    print_extent(p, expr->extent);
    put(p, ")");
}

static void print_gather(Printer *p, const Expr *expr) {
    put(p, "gather(%s, ", expr->tensor->text);
    print_list(p, expr->operand, expr->count);
    put(p, ")");
}

static void print_if(Printer *p, const Expr *expr) {
    put(p, "if ");
    print_expr(p, expr->operand[0]);
    put(p, " { ");
    print_expr(p, expr->operand[1]);
    put(p, " } else { ");
    print_expr(p, expr->operand[2]);
    put(p, " }");
}

/* ---- functions for parts of an expression ---- */

typedef struct Free {
    const Name *names[MAX_FREE];
    const Tensor *tensors[MAX_FREE];
    int name_count, tensor_count;
    const Name *needed[MAX_FREE], *bound[MAX_FREE * 4];
    int needed_count, bound_count;
    bool possible;
} Free;

static void need_extent(Free *f, const Extent *extent) {
    if (extent->kind == EXTENT_PRODUCT || extent->kind == EXTENT_SUM) {
        need_extent(f, extent->a);
        need_extent(f, extent->b);
    }
    if (extent->kind != EXTENT_NAME || extent->name->kind == NAME_CONSTANT) return;
    for (int i = 0; i < f->needed_count; i++)
        if (f->needed[i] == extent->name) return;
    if (f->needed_count == MAX_FREE)
        f->possible = false;
    else
        f->needed[f->needed_count++] = extent->name;
}

static void bind_extent(Free *f, const Extent *extent) {
    if (extent->kind == EXTENT_NAME && f->bound_count < MAX_FREE * 4) f->bound[f->bound_count++] = extent->name;
    need_extent(f, extent);
}

static void need_name(Free *f, const Name *name) {
    if (name->kind == NAME_CONSTANT) return;
    if (name->kind == NAME_TUNE || name->kind == NAME_GENERIC || name->kind == NAME_DIMENSION ||
        name->kind == NAME_STATIC) {
        f->possible = false;
        return;
    }
    for (int i = 0; i < f->name_count; i++)
        if (f->names[i] == name) return;
    if (f->name_count == MAX_FREE || name->constant) {
        f->possible = false;
        return;
    }
    f->names[f->name_count++] = name;
    if (name->kind == NAME_RANGE) bind_extent(f, name->size);
    for (int i = 0; name->kind != NAME_RANGE && i < name->shape.rank; i++) bind_extent(f, name->shape.extent[i]);
}

static void need_tensor(Free *f, const Tensor *tensor) {
    for (int i = 0; i < f->tensor_count; i++)
        if (f->tensors[i] == tensor) return;
    if (f->tensor_count == MAX_FREE || tensor->role != TENSOR_IN) {
        f->possible = false;
        return;
    }
    f->tensors[f->tensor_count++] = tensor;
    for (int i = 0; i < tensor->rank; i++)
        f->possible = f->possible && (tensor->dim[i]->kind == EXTENT_NAME || tensor->dim[i]->kind == EXTENT_LITERAL);
}

static void collect(Free *f, const Expr *expr) {
    if (expr->name) need_name(f, expr->name);
    if (expr->tensor) need_tensor(f, expr->tensor);
    if (expr->extent) need_extent(f, expr->extent);
    if (expr->kind == E_FULL || expr->kind == E_ZEROS || expr->kind == E_IOTA || expr->kind == E_RESHAPE ||
        expr->kind == E_SHUFFLED)
        for (int i = 0; i < expr->shape.rank; i++) need_extent(f, expr->shape.extent[i]);
    if (expr->kind == E_COLON || expr->kind == E_ATOMIC || expr->several) f->possible = false;
    for (int i = 0; i < expr->count; i++) collect(f, expr->operand[i]);
}

static bool all_bound(const Free *f) {
    for (int i = 0; i < f->needed_count; i++) {
        bool bound = false;
        for (int k = 0; k < f->bound_count && !bound; k++) bound = f->bound[k] == f->needed[i];
        if (!bound) return false;
    }
    return true;
}

static void print_outlined_function(Printer *p, const Free *f, const Expr *expr, int number) {
    put(p, "fn part%d(", number);
    bool comma = false;
    for (int i = 0; i < f->tensor_count; i++, comma = true) {
        put(p, "%s%s: in %s[", comma ? ", " : "", f->tensors[i]->text, tensor_word(f->tensors[i]));
        print_extents(p, f->tensors[i]->dim, f->tensors[i]->rank, "", "]");
    }
    for (int i = 0; i < f->name_count; i++, comma = true) {
        put(p, "%s%s: ", comma ? ", " : "", f->names[i]->text);
        if (f->names[i]->kind == NAME_RANGE)
            print_extents(p, &f->names[i]->size, 1, "range[", "]");
        else
            print_type(p, &f->names[i]->shape);
    }
    put(p, ") -> ");
    print_type(p, &expr->shape);
    put(p, " { return ");
    Expr plain = *expr;
    plain.outlined = false;
    print_expr(p, &plain);
    put(p, " }\n");
}

/* False if its names cannot be arguments of a function. */
static bool print_outlined(Printer *p, const Expr *expr) {
    Free f = {.possible = true};
    collect(&f, expr);
    for (int i = 0; i < expr->shape.rank; i++) need_extent(&f, expr->shape.extent[i]);
    if (!f.possible || !all_bound(&f) || f.name_count + f.tensor_count == 0 || !p->helpers) return false;
    int number = p->outlined++;
    Printer inner = *p;
    char *room = program_allocate(MAX_HELPERS);
    inner.text = room;
    inner.size = MAX_HELPERS;
    inner.length = 0;
    print_outlined_function(&inner, &f, expr, number);
    p->outlined = inner.outlined;
    p->fold_count = inner.fold_count;
    memcpy(p->folds, inner.folds, sizeof p->folds);
    size_t used = strlen(p->helpers);
    snprintf(p->helpers + used, MAX_HELPERS - used, "%s", room);
    put(p, "part%d(", number);
    bool comma = false;
    for (int i = 0; i < f.tensor_count; i++, comma = true) put(p, "%s%s", comma ? ", " : "", f.tensors[i]->text);
    for (int i = 0; i < f.name_count; i++, comma = true) put(p, "%s%s", comma ? ", " : "", f.names[i]->text);
    put(p, ")");
    return true;
}

/* ---- all expressions ---- */

static void print_range(Printer *p, const Expr *expr) {
    static const char *const fields[] = {"start", "size", "end", "idx"};
    if (expr->kind == E_SPAN || expr->kind == E_SPAN_TO) print_span(p, expr);
    if (expr->kind == E_COLON) put(p, ":");
    if (expr->kind < E_START) return;
    print_above(p, expr->operand[0], 11);
    put(p, ".%s", fields[expr->kind - E_START]);
}

/* Accesses, shapes, reductions and ranges. */
static void print_access(Printer *p, const Expr *expr) {
    switch (expr->kind) {
    case E_RAND: print_call(p, "rand", expr); break;
    case E_LOAD:
        put(p, "%s[", expr->tensor->text);
        print_list(p, expr->operand, expr->count);
        put(p, "]");
        break;
    case E_GATHER: print_gather(p, expr); break;
    case E_FULL:
    case E_ZEROS:
    case E_IOTA: print_made(p, expr); break;
    case E_RESHAPE:
        put(p, "reshape(");
        print_expr(p, expr->operand[0]);
        print_extents(p, expr->shape.extent, expr->shape.rank, ", (", expr->shape.rank == 1 ? ",))" : "))");
        break;
    case E_PERMUTE:
    case E_AXES: print_moved(p, expr); break;
    case E_JOIN:
    case E_SPLIT: print_call(p, expr->kind == E_JOIN ? "join" : "split", expr); break;
    case E_CAT:
        put(p, "cat(");
        print_list(p, expr->operand, expr->count);
        put(p, ", axis = %d)", axis_of(expr, 0));
        break;
    case E_REDUCE: print_reduction(p, expr); break;
    case E_RUNNING: print_running(p, expr); break;
    case E_SORT:
    case E_FIRST:
    case E_MOVED: print_arranged(p, expr); break;
    case E_VALID: print_call(p, "valid", expr); break;
    case E_STRETCH:
    case E_COUNTED:
    case E_PLACED: print_counted(p, expr); break;
    case E_FOLD: print_fold(p, expr); break;
    case E_DOT: print_dot(p, expr); break;
    case E_NORMAL:
    case E_DRAWN:
    case E_SHUFFLED:
    case E_LDEXP:
    case E_FREXP:
    case E_PACK:
    case E_UNPACK:
    case E_SCALED: print_packed(p, expr); break;
    case E_IF: print_if(p, expr); break;
    case E_FUNCTION: print_call(p, expr->function->text, expr); break;
    case E_ATOMIC: print_atomic(p, expr); break;
    default: print_range(p, expr);
    }
}

void print_expr(Printer *p, const Expr *expr) {
    if (expr->outlined && print_outlined(p, expr)) return;
    ((Expr *)(uintptr_t)expr)->outlined = false; /* as in the text: in place it may be fused, for example */
    char name[32];
    switch (expr->kind) {
    case E_LITERAL: print_literal(p, expr); break;
    case E_NAME:
    case E_RANGE: put(p, "%s", expr->name->text); break;
    case E_EXTENT: print_extent(p, expr->extent); break;
    case E_UNARY:
        put(p, "%s", op_word((Op)expr->op));
        print_above(p, expr->operand[0], 10);
        break;
    case E_BINARY:
    case E_SHIFT: print_binary(p, expr); break;
    case E_CALL: print_call(p, op_word((Op)expr->op), expr); break;
    case E_APPROXIMATE:
        snprintf(name, sizeof name, "approx.%s", op_word((Op)expr->op));
        print_call(p, name, expr);
        break;
    case E_WHERE: print_call(p, "where", expr); break;
    case E_CLAMP: print_call(p, "clamp", expr); break;
    case E_CONVERT: print_call(p, type_name(expr->shape.scalar), expr); break;
    case E_BITCAST:
        snprintf(name, sizeof name, "bitcast[%s]", type_name(expr->shape.scalar));
        print_call(p, name, expr);
        break;
    case E_KEEP: print_call(p, "keep", expr); break;
    case E_ELSE:
        put(p, "(");
        print_above(p, expr->operand[0], 1);
        put(p, " else ");
        if (expr->operand[1]->kind == E_LITERAL && expr->shape.scalar == TYPE_BOOL && expr->from_end)
            put(p, expr->operand[1]->bits ? "1" : "0"); /* a literal fits a bool, too */
        else
            print_above(p, expr->operand[1], 11);
        put(p, ")");
        break;
    default: print_access(p, expr);
    }
}
