/* Guards: indices of two dimensions that are one number's quotient and remainder, or an element's row and column, inside by what a condition
 * says: of all elements, of those that are kept, or of the one that a function is about. */
#include "make.h"

#include <string.h>

/* Two dimensions of a new tensor, and the flat number of elements. */
typedef struct Grid {
    const Extent *dim[MAX_DIMENSIONS];
    const Extent *all;
} Grid;

static Grid some_dimensions(Maker *m, bool plain) {
    Grid grid = {{NULL}, NULL};
    for (int d = 0; d < 2; d++) {
        int tries = 0;
        do grid.dim[d] = m->dims[below(m, (unsigned)m->dim_count)];
        while (plain && grid.dim[d]->kind != EXTENT_NAME && ++tries < 8);
        if (plain && grid.dim[d]->kind != EXTENT_NAME) return grid;
    }
    grid.all = extent_product(grid.dim[0], grid.dim[1]);
    return grid;
}

static Expr *compared(Shape shape, Op op, Expr *a, Expr *b) {
    return finished(binary_expr(E_BINARY, shape_with(shape, TYPE_BOOL), op, a, b));
}

/* index >= 0 && index < dim, in several ways; or that it is not so. */
static Expr *is_inside(Maker *m, Expr *index, Expr *same, Expr *dim, bool inside) {
    Shape truth = shape_with(index->shape, TYPE_BOOL);
    Expr *low = inside ? chance(m, 50) ? compared(truth, OP_GE, index, integer_expr(0)) : compared(truth, OP_LE, integer_expr(0), index)
                       : compared(truth, OP_LT, index, integer_expr(0));
    Expr *high = compared(truth, inside ? OP_LT : OP_GE, same, dim);
    bool swapped = chance(m, 30);
    return finished(binary_expr(E_BINARY, truth, inside ? OP_BOTH : OP_EITHER, swapped ? high : low, swapped ? low : high));
}

/* Quotient and remainder by the second dimension, as the entries of an access. */
static void add_flat_entries(Maker *m, Expr *access, Expr *index, const Grid *grid) {
    Shape shape = index->shape;
    Expr *quotient = finished(binary_expr(E_BINARY, shape, OP_DIV, index, extent_expr(grid->dim[1]))), *rest;
    if (chance(m, 70)) {
        rest = binary_expr(E_BINARY, shape, OP_REM, index, extent_expr(grid->dim[1]));
    } else {
        Expr *rows = finished(binary_expr(E_BINARY, shape, OP_MUL, quotient, extent_expr(grid->dim[1])));
        rest = binary_expr(E_BINARY, shape, OP_SUB, index, rows);
    }
    add_operand(access, quotient);
    add_operand(access, finished(rest));
    for (int d = 0; d < 2; d++) {
        access->operand[d]->bounded = true;
        access->operand[d]->extent = grid->dim[d];
    }
}

/* tensor[index / B, index % B] or gather(tensor, ..), of an index that is inside where it is valid. */
static Expr *flat_access(Maker *m, const Shape *shape, Expr *index, const Grid *grid) {
    bool gathers = shape->rank != 1 || chance(m, 25);
    Expr *access = new_expr(gathers ? E_GATHER : E_LOAD, *shape);
    add_flat_entries(m, access, index, grid);
    access->tensor = new_tensor(m, shape->scalar, 2, grid->dim, TENSOR_IN);
    if (!access->tensor) return NULL;
    access->tainted = access->tensor->tainted;
    access->valid = index->valid;
    return m->clean && access->tainted ? NULL : access;
}

/* An i64 that is a value, of numbers near the dimension; NULL if there is none. */
static Expr *near(Maker *m, const Shape *shape, const Extent *all, int depth) {
    Shape wide = shape_with(*shape, TYPE_I64);
    bool clean = m->clean;
    m->clean = true;
    m->indexing++;
    Expr *index = make_expr(m, &wide, depth - 1);
    m->indexing--;
    m->clean = clean;
    if (index->kind == E_LITERAL || index->valid.count > MAX_SOURCES - 2) return NULL;
    if (chance(m, 70)) index = finished(binary_expr(E_BINARY, wide, OP_REM, index, integer_expr(extent_value(all) + 1)));
    return index;
}

/* A load by one number for two dimensions, which is forced inside or kept where it is. */
Expr *make_flat_load(Maker *m, const Shape *shape, int depth) {
    Grid grid = some_dimensions(m, false);
    Shape wide = shape_with(*shape, TYPE_I64);
    if (shape->rank == 0 || extent_value(grid.all) < 1) return NULL;
    Expr *index = NULL;
    for (int i = m->scope_count - 1; i >= 0 && !index; i--) {
        const Name *name = m->scope[i];
        bool value = name->kind == NAME_LET || name->kind == NAME_VAR;
        if (value && shape_same(&name->shape, &wide) && name->shape.scalar == TYPE_I64 && !name->tainted) index = name_expr(m->scope[i]);
    }
    if (index && index->valid.count < MAX_SOURCES && chance(m, 60)) {
        Expr *same = name_expr(index->name), *kept = finished(binary_expr(
            E_KEEP, wide, 0, index, is_inside(m, same, name_expr(index->name), extent_expr(grid.all), true)));
        unsigned axes = (1u << wide.rank) - 1;
        sources_add(&kept->valid, (Source){(uint32_t)(m->serial++ * 7919 + 17), (uint8_t)axes, false});
        return flat_access(m, shape, kept, &grid);
    }
    if (!index) index = near(m, shape, grid.all, depth);
    if (!index) return NULL;
    index = finished(binary_expr(E_BINARY, wide, OP_REM, index, extent_expr(grid.all)));
    return flat_access(m, shape, index, &grid);
}

/* A function with a tensor: its element at a flat number, or at a row and a column, where there is one, else what the last argument says. */
static Function *guarding_function(Maker *m, Type result) {
    Grid grid = some_dimensions(m, true);
    if (!grid.all || m->program->function_count == MAX_FUNCTIONS) return NULL;
    Tensor *tensor = new_tensor(m, result, 2, grid.dim, TENSOR_IN);
    if (!tensor) return NULL;
    Function *function = NEW(Function);
    Name *name = new_name(m, NAME_LOCAL, "fn");
    memcpy(function->text, name->text, sizeof function->text);
    bool flat = chance(m, 50), inside = chance(m, 40);
    Shape i64 = shape_scalar(TYPE_I64);
    function->tensor = tensor;
    function->result = result;
    function->count = flat ? 2 : 3;
    for (int i = 0; i < function->count; i++) {
        function->names[i] = new_name(m, NAME_LOCAL, "a");
        function->names[i]->shape = i + 1 < function->count ? i64 : shape_scalar(result);
    }
    Name **names = function->names;
    Expr *load = new_expr(E_LOAD, shape_scalar(result)), *other = name_expr(names[function->count - 1]);
    load->tensor = tensor;
    if (flat) {
        function->condition = is_inside(m, name_expr(names[0]), name_expr(names[0]), extent_expr(grid.all), inside);
        add_flat_entries(m, load, name_expr(names[0]), &grid);
    } else {
        Expr *row = is_inside(m, name_expr(names[0]), name_expr(names[0]), extent_expr(grid.dim[0]), inside);
        Expr *column = is_inside(m, name_expr(names[1]), name_expr(names[1]), extent_expr(grid.dim[1]), inside);
        function->condition = finished(binary_expr(E_BINARY, shape_scalar(TYPE_BOOL), inside ? OP_BOTH : OP_EITHER, row, column));
        for (int i = 0; i < 2; i++) add_operand(load, name_expr(names[i]));
    }
    function->first = inside ? load : other;
    function->body = inside ? other : load;
    m->program->functions[m->program->function_count++] = function;
    return function;
}

Expr *make_guarded_call(Maker *m, const Shape *shape, int depth) {
    if (m->in_function || shape->scalar == TYPE_BOOL || type_is_f8(shape->scalar)) return NULL;
    Function *function = NULL;
    for (int i = 0; i < m->program->function_count; i++) {
        Function *one = m->program->functions[i];
        if (one->tensor && one->result == shape->scalar && may_read(m, one->tensor) && chance(m, 70)) function = one;
    }
    if (!function) function = guarding_function(m, shape->scalar);
    if (!function) return NULL;
    Expr *expr = new_expr(E_FUNCTION, *shape);
    expr->function = function;
    expr->tensor = function->tensor;
    int exact = (int)below(m, (unsigned)function->count);
    for (int i = 0; i < function->count; i++) {
        Shape argument = shape_with(*shape, function->names[i]->shape.scalar);
        bool index = i + 1 < function->count, clean = m->clean;
        if (i != exact && chance(m, 25)) argument.rank = 0;
        const Extent *dim = function->count == 2 ? extent_product(function->tensor->dim[0], function->tensor->dim[1]) : function->tensor->dim[i];
        Expr *value = index ? near(m, &argument, dim, depth) : NULL;
        m->clean = clean || index;
        if (!value) value = make_expr(m, &argument, depth - 1);
        m->clean = clean;
        if (value->kind == E_LITERAL) value->bare = false;
        if (shape->rank == 0 || argument.rank == 0) value = covered(m, value, NULL);
        add_operand(expr, value);
    }
    return finished(expr);
}

/* if all(i >= 0 && i < A * B) { v = x[i / B, i % B] }, or behind any(..) that is false. */
void make_guarded_tile(Maker *m, Block *block, Name *variable) {
    Grid grid = some_dimensions(m, false);
    Expr *value = variable->shape.rank ? near(m, &variable->shape, grid.all, 2) : NULL;
    if (!value) return;
    for (int i = 0; i < value->valid.count && i < MAX_SOURCES; i++)
        if (!value->valid.items[i].axes) return; /* the condition would be invalid, as a whole */
    if (chance(m, 60)) /* mostly so that it holds */
        value = finished(binary_expr(E_BINARY, value->shape, OP_REM, value, integer_expr(extent_value(grid.all) + (chance(m, 30) ? 1 : 0))));
    Name *name = new_name(m, NAME_LET, "t");
    name->shape = value->shape;
    name->valid = value->valid;
    Expr *access = flat_access(m, &variable->shape, name_expr(name), &grid);
    if (!access || (!variable->tainted && access->tainted)) return;
    Statement *let = NEW(Statement), *branch = NEW(Statement), *change = NEW(Statement);
    *let = (Statement){.kind = S_LET, .count = 1, .names = {name}, .value = value, .op = -1};
    block_add(block, let);
    bool all = chance(m, 60);
    Expr *truth = is_inside(m, name_expr(name), name_expr(name), extent_expr(grid.all), all);
    Expr *test = unary_expr(E_REDUCE, shape_scalar(TYPE_BOOL), all ? REDUCE_ALL : REDUCE_ANY, truth);
    test->axes = value->shape.rank;
    for (int i = 0; i < test->axes; i++) test->axis[i] = i;
    test->bare = true;
    *branch = (Statement){.kind = S_IF, .value = test, .op = -1, .body = NEW(Block), .otherwise = NEW(Block)};
    block_add(block, branch);
    *change = (Statement){.kind = S_ASSIGN, .count = 1, .names = {variable}, .value = covered(m, access, &variable->valid), .op = -1};
    block_add(all ? branch->body : branch->otherwise, change);
}
