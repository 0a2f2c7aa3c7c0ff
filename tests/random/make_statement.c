/* Statements, loops and grids. */
#include "make.h"

static void make_block(Maker *m, Block *block, int depth);

static bool is_range(const Expr *entry) { return entry->kind >= E_RANGE && entry->kind <= E_COLON; }

static Statement *new_statement(Block *block, StatementKind kind) {
    Statement *statement = NEW(Statement);
    statement->kind = kind;
    statement->op = -1;
    block_add(block, statement);
    return statement;
}

static Name *bound_name(Maker *m, NameKind kind, const Expr *value) {
    Name *name = new_name(m, kind, kind == NAME_VAR ? "v" : "t");
    name->shape = value->shape;
    name->valid = value->valid;
    name->tainted = value->tainted;
    return name;
}

/* ---- names ---- */

static void make_let(Maker *m, Block *block) {
    Shape shape = some_shape(m, some_type(m), MAX_AXES);
    bool clean = m->clean;
    m->clean = chance(m, 25);
    Expr *value = make_expr(m, &shape, 3);
    m->clean = clean;
    if (value->kind == E_LITERAL) value->bare = false;
    Statement *statement = new_statement(block, S_LET);
    statement->names[statement->count++] = bound_name(m, NAME_LET, value);
    statement->value = value;
    enter(m, statement->names[0]);
}

static void make_parts_let(Maker *m, Block *block) {
    Shape shape = some_shape(m, some_number(m), 3);
    Expr *value = make_parts(m, &shape, 2);
    if (!value) return;
    Statement *statement = new_statement(block, S_LET);
    statement->value = value;
    for (int i = 0; i < value->parts; i++) {
        Name *name = bound_name(m, NAME_LET, value);
        name->shape = value->part[i];
        statement->names[statement->count++] = name;
        enter(m, name);
    }
}

static void make_range_let(Maker *m, Block *block) {
    const Extent *size = some_extent(m, m->most_lanes);
    Expr *value = make_range(m, size, 1);
    if (value->kind == E_RANGE) return;
    Statement *statement = new_statement(block, S_LET);
    Name *name = new_name(m, NAME_RANGE, "r");
    name->size = size;
    name->valid = value->valid;
    for (int i = 0; i < name->valid.count && i < MAX_SOURCES; i++) name->valid.items[i].plain = false;
    statement->names[statement->count++] = name;
    statement->value = value;
    enter(m, name);
}

/* ---- variables ---- */

/* A value that may be assigned to it: at least as exact, and at least as valid. */
static Expr *assignable(Maker *m, Name *name, int depth) {
    bool clean = m->clean;
    m->clean = m->clean || !name->tainted;
    Expr *value = chance(m, 75) ? make_expr(m, &name->shape, depth) : make_loose(m, &name->shape, depth);
    if (!shape_same(&value->shape, &name->shape)) value = make_expr(m, &name->shape, depth);
    m->clean = clean;
    return covered(m, value, &name->valid);
}

static Op changing_op(Maker *m, Type type) {
    static const Op ints[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_REM, OP_AND, OP_OR, OP_XOR, OP_SHL, OP_SHR};
    static const Op floats[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV};
    static const Op bools[] = {OP_AND, OP_OR, OP_XOR};
    if (type == TYPE_BOOL) return bools[below(m, 3)];
    return type_is_float(type) ? floats[below(m, 4)] : ints[below(m, 10)];
}

/* `y += a * b`: these tests do not specify whether that is fused. */
static bool is_product(const Expr *expr) {
    while (expr->kind == E_UNARY && expr->op == OP_NEG) expr = expr->operand[0];
    return expr->kind == E_BINARY && expr->op == OP_MUL;
}

static Name *other_variable(Maker *m, const Name *name) {
    Name *found = NULL;
    int count = 0;
    for (int i = 0; i < m->scope_count; i++) {
        Name *other = m->scope[i];
        if (other->kind != NAME_VAR || other == name || other->counts) continue;
        if (below(m, (unsigned)++count) == 0) found = other;
    }
    return found;
}

static void make_change(Maker *m, Block *block, Name *name, int depth) {
    Expr *value = assignable(m, name, depth);
    Statement *statement = new_statement(block, S_ASSIGN);
    statement->names[statement->count++] = name;
    statement->value = value;
    Name *other = chance(m, 20) ? other_variable(m, name) : NULL;
    if (other) { /* all is computed before the first is assigned */
        statement->names[statement->count++] = other;
        statement->second = assignable(m, other, depth - 1);
        if (value->kind == E_LITERAL) value->bare = false;
        if (statement->second->kind == E_LITERAL) statement->second->bare = false;
        return;
    }
    bool operates = chance(m, 35) && !is_product(value);
    if (operates) statement->op = (int)changing_op(m, name->shape.scalar);
}

static Name *make_var(Maker *m, Block *block) {
    Shape shape = some_shape(m, some_type(m), 4);
    bool clean = m->clean;
    m->clean = chance(m, 40);
    Expr *value = make_expr(m, &shape, 2);
    Sources plain = plain_sources(&value->valid);
    value = covered(m, value, chance(m, 60) ? &plain : NULL);
    if (value->kind == E_LITERAL) value->bare = false;
    Statement *statement = new_statement(block, S_VAR);
    Name *name = bound_name(m, NAME_VAR, value);
    name->tainted = !m->clean;
    m->clean = clean;
    statement->names[statement->count++] = name;
    statement->value = value;
    enter(m, name);
    return name;
}

/* ---- loops ---- */

static void make_leave(Maker *m, Block *body) {
    Statement *leave = new_statement(body, S_IF);
    leave->value = make_decision(m, TYPE_BOOL, 2);
    leave->body = NEW(Block);
    new_statement(leave->body, chance(m, 50) ? S_BREAK : S_CONTINUE);
}

static void fill_body(Maker *m, Block *body, Name *variable, int depth) {
    if (chance(m, 40)) make_block(m, body, depth - 1);
    if (chance(m, 12)) make_leave(m, body);
    make_change(m, body, variable, 3);
    if (chance(m, 20)) make_change(m, body, variable, 2);
}

static void make_tiles_loop(Maker *m, Block *block, Name *variable, int depth) {
    Statement *loop = new_statement(block, S_FOR_TILES);
    Name *range = new_name(m, NAME_RANGE, "k");
    range->size = some_extent(m, m->most_lanes);
    const Extent *dim = m->dims[below(m, (unsigned)m->dim_count)];
    loop->hi[0] = chance(m, 85) ? extent_expr(dim) : make_decision(m, TYPE_I64, 1);
    if (loop->hi[0]->kind != E_EXTENT)
        loop->hi[0] = finished(binary_expr(E_CALL, shape_scalar(TYPE_I64), OP_MIN, loop->hi[0], integer_expr(40)));
    else
        range->limit = loop->hi[0]->extent;
    if (chance(m, 20)) loop->lo[0] = integer_expr((int64_t)below(m, 4));
    sources_add(&range->valid, (Source){(uint32_t)(m->serial++ * 104729 + 5), 1, true});
    loop->names[loop->count++] = range;
    loop->ordered = chance(m, 15);
    loop->body = NEW(Block);
    enter(m, range);
    fill_body(m, loop->body, variable, depth);
}

static void make_counted_loop(Maker *m, Block *block, Name *variable, int depth) {
    Statement *loop = new_statement(block, S_FOR);
    Name *index = new_name(m, NAME_INTEGER, "q");
    index->shape = shape_scalar(TYPE_I64);
    loop->names[loop->count++] = index;
    loop->ordered = chance(m, 15);
    if (chance(m, 30)) {
        loop->unrolled = index->literal = true;
        loop->lo[0] = integer_expr((int64_t)below(m, 3));
        loop->hi[0] = integer_expr((int64_t)below(m, 5));
    } else if (chance(m, 50)) {
        loop->hi[0] = integer_expr((int64_t)below(m, 5));
        if (chance(m, 30)) loop->lo[0] = integer_expr((int64_t)below(m, 4));
    } else {
        const Extent *dim = m->dims[below(m, (unsigned)m->dim_count)];
        loop->hi[0] = extent_expr(dim);
        if (extent_value(dim) > 12)
            loop->hi[0] =
                finished(binary_expr(E_CALL, shape_scalar(TYPE_I64), OP_MIN, extent_expr(dim), integer_expr(7)));
        else
            index->below = dim;
    }
    if (chance(m, 25)) loop->step = integer_expr(1 + (int64_t)below(m, 3));
    loop->body = NEW(Block);
    enter(m, index);
    fill_body(m, loop->body, variable, depth);
}

static void make_while(Maker *m, Block *block, Name *variable, int depth) {
    Statement *start = new_statement(block, S_VAR);
    Name *counter = new_name(m, NAME_VAR, "j");
    counter->counts = true;
    Shape i64 = shape_scalar(TYPE_I64), truth = shape_scalar(TYPE_BOOL);
    counter->shape = i64;
    start->names[start->count++] = counter;
    start->value = integer_expr(0);
    Statement *loop = new_statement(block, S_WHILE);
    const Extent *dim = m->dims[below(m, (unsigned)m->dim_count)];
    bool indexes = extent_value(dim) <= 12 && chance(m, 60); /* in the body, which counts first */
    Expr *limit = integer_expr(1 + (int64_t)below(m, 5));
    if (indexes) limit = finished(binary_expr(E_BINARY, i64, OP_SUB, extent_expr(dim), integer_expr(1)));
    Expr *more = binary_expr(E_BINARY, truth, OP_LT, name_expr(counter), limit);
    loop->value =
        chance(m, 50) ? more : finished(binary_expr(E_BINARY, truth, OP_BOTH, more, make_decision(m, TYPE_BOOL, 2)));
    loop->body = NEW(Block);
    Statement *next = new_statement(loop->body, S_ASSIGN);
    next->names[next->count++] = counter;
    next->op = OP_ADD;
    next->value = integer_expr(1);
    enter(m, counter);
    counter->below = indexes ? dim : NULL;
    fill_body(m, loop->body, variable, depth);
    counter->below = NULL;
}

/* Sums of products in a loop over tiles. */
static void make_product_loop(Maker *m, Block *block) {
    Shape shape = some_shape(m, chance(m, 70) ? TYPE_F32 : chance(m, 50) ? TYPE_I32 : TYPE_F64, 2);
    if (shape.rank != 2) return;
    Statement *start = new_statement(block, S_VAR), *loop = new_statement(block, S_FOR_TILES);
    start->value = new_expr(E_ZEROS, shape);
    Name *sum = bound_name(m, NAME_VAR, start->value), *range = new_name(m, NAME_RANGE, "k");
    sum->tainted = true;
    loop->ordered = chance(m, 15);
    for (int i = 0; i < m->scope_count; i++)
        for (int axis = 0; axis < 2; axis++)
            if (m->scope[i]->kind == NAME_RANGE && m->scope[i]->limit &&
                extent_same(m->scope[i]->size, shape.extent[axis]) && m->scope[i]->valid.count == 1)
                sources_add(&sum->valid, (Source){m->scope[i]->valid.items[0].id, (uint8_t)(1u << axis), true});
    start->names[start->count++] = sum;
    int64_t widest = extent_value(shape.extent[0]);
    if (extent_value(shape.extent[1]) > widest) widest = extent_value(shape.extent[1]);
    range->size = some_extent(m, 2 * m->most_lanes / (widest ? widest : 1) < 64 ? 2 * m->most_lanes / widest : 64);
    range->limit = m->dims[below(m, (unsigned)m->dim_count)];
    sources_add(&range->valid, (Source){(uint32_t)(m->serial++ * 104729 + 5), 1, true});
    loop->hi[0] = extent_expr(range->limit);
    loop->names[loop->count++] = range;
    loop->body = NEW(Block);
    int scope = m->scope_count;
    enter(m, range);
    enter(m, sum);
    Expr *dot = NULL;
    for (int tries = 0; tries < 4 && !dot; tries++) {
        dot = make_dot(m, &shape, 2);
        if (dot && dot->count == 2) {
            dot->operand[2] = name_expr(sum);
            dot->count = 3;
            dot->tainted = true;
        }
    }
    Statement *change = new_statement(loop->body, S_ASSIGN);
    change->names[change->count++] = sum;
    change->value = dot ? covered(m, dot, &sum->valid) : name_expr(sum);
    m->scope_count = scope;
    enter(m, sum);
}

static void make_loop(Maker *m, Block *block, int depth) {
    if (m->loops >= 2) return;
    Name *variable = make_var(m, block);
    int scope = m->scope_count;
    m->loops++;
    switch (below(m, 3)) {
    case 0: make_tiles_loop(m, block, variable, depth); break;
    case 1: make_counted_loop(m, block, variable, depth); break;
    default: make_while(m, block, variable, depth);
    }
    m->loops--;
    m->scope_count = scope;
}

static Expr *compared(Op op, Expr *a, Expr *b) {
    return finished(binary_expr(E_BINARY, shape_scalar(TYPE_BOOL), op, a, b));
}

/* Says of an integer what holds of it. */
static void make_assertion(Maker *m, Block *block) {
    for (int i = m->scope_count - 1; i >= 0; i--) {
        Name *name = m->scope[i];
        bool known = name->below && (name->kind == NAME_INTEGER || name->kind == NAME_PARAMETER);
        if (!known || name->shape.scalar != TYPE_I64 || chance(m, 40)) continue;
        Expr *condition = binary_expr(E_BINARY, shape_scalar(TYPE_BOOL), OP_LT, name_expr(name), extent_expr(name->below));
        new_statement(block, S_ASSERT)->value = finished(condition);
        return;
    }
}

/* An integer that a condition bounds: on one side of the branch it is an index of the dimension. */
static void make_guarded(Maker *m, Block *block, int depth) {
    Name *variable = make_var(m, block);
    Shape i64 = shape_scalar(TYPE_I64), truth = shape_scalar(TYPE_BOOL);
    const Extent *dim = m->dims[below(m, (unsigned)m->dim_count)];
    Expr *value = make_decision(m, chance(m, 60) ? TYPE_I64 : some_int(m), 2);
    if (value->kind == E_LITERAL || value->kind == E_EXTENT) return;
    if (value->shape.scalar == TYPE_I64 && chance(m, 50))
        value = finished(binary_expr(E_BINARY, i64, OP_REM, value, integer_expr(2 * extent_value(dim) + 3)));
    Statement *let = new_statement(block, S_LET);
    Name *name = bound_name(m, NAME_LET, value);
    let->names[let->count++] = name;
    let->value = value;
    Expr *index = name_expr(name), *same = name_expr(name);
    if (name->shape.scalar != TYPE_I64) {
        index = finished(unary_expr(E_CONVERT, i64, 0, index));
        same = finished(unary_expr(E_CONVERT, i64, 0, same));
    }
    bool inside = chance(m, 60);
    Expr *zero = integer_expr(0),
         *last = finished(binary_expr(E_BINARY, i64, OP_SUB, extent_expr(dim), integer_expr(1)));
    Expr *low = inside ? chance(m, 50) ? compared(OP_GE, index, zero) : compared(OP_LE, zero, index)
                       : compared(OP_LT, index, zero);
    Expr *high = inside ? chance(m, 50) ? compared(OP_LT, same, extent_expr(dim)) : compared(OP_LE, same, last)
                        : compared(OP_GE, same, extent_expr(dim));
    Statement *branch = new_statement(block, S_IF);
    bool swapped = chance(m, 30);
    branch->value = finished(
        binary_expr(E_BINARY, truth, inside ? OP_BOTH : OP_EITHER, swapped ? high : low, swapped ? low : high));
    branch->body = NEW(Block);
    branch->otherwise = NEW(Block);
    int scope = m->scope_count;
    enter(m, name);
    Block *bounded = inside ? branch->body : branch->otherwise, *other = inside ? branch->otherwise : branch->body;
    name->below = dim;
    if (chance(m, 40)) make_block(m, bounded, depth - 1);
    make_change(m, bounded, variable, 4);
    bool clean = m->clean;
    m->clean = m->clean || !variable->tainted;
    Expr *load = make_indexed(m, &variable->shape, name, dim);
    m->clean = clean;
    if (load) {
        Statement *change = new_statement(bounded, S_ASSIGN);
        change->names[change->count++] = variable;
        change->value = covered(m, load, &variable->valid);
    }
    name->below = NULL;
    m->scope_count = scope;
    make_change(m, other, variable, 2);
    m->scope_count = scope;
}

/* One side of it is left out by a constant. */
static void make_static_branch(Maker *m, Block *block) {
    Name *variable = make_var(m, block);
    const Extent *constant = NULL;
    for (int i = 0; i < m->program->name_count; i++) {
        Name *name = m->program->names[i];
        bool known = name->kind == NAME_TUNE || name->kind == NAME_STATIC || name->kind == NAME_GENERIC;
        if (known && (!constant || chance(m, 50))) constant = extent_name(name);
    }
    Expr *value = constant ? extent_expr(constant) : integer_expr((int64_t)below(m, 4));
    Statement *branch = new_statement(block, S_IF);
    branch->fixed = true;
    branch->value = compared(OP_LT, value, integer_expr(1 + (int64_t)below(m, 9)));
    branch->body = NEW(Block);
    branch->otherwise = NEW(Block);
    int scope = m->scope_count;
    make_change(m, branch->body, variable, 3);
    m->scope_count = scope;
    make_change(m, branch->otherwise, variable, 3);
    m->scope_count = scope;
}

static void make_branch(Maker *m, Block *block, int depth) {
    Name *variable = make_var(m, block);
    Statement *branch = new_statement(block, S_IF);
    branch->value = make_decision(m, TYPE_BOOL, 2);
    int scope = m->scope_count;
    branch->body = NEW(Block);
    if (chance(m, 30)) make_block(m, branch->body, depth - 1);
    make_change(m, branch->body, variable, 3);
    m->scope_count = scope;
    if (chance(m, 50)) return;
    branch->otherwise = NEW(Block);
    make_change(m, branch->otherwise, variable, 2);
    m->scope_count = scope;
}

/* ---- stores ---- */

static void make_store(Maker *m, Block *block, Expr *target, bool scatter, int depth) {
    Statement *store = new_statement(block, scatter ? S_SCATTER : S_STORE);
    Tensor *tensor = target->tensor;
    bool operates = !scatter && tensor->role == TENSOR_INOUT && chance(m, 40) && !type_is_f8(tensor->type);
    /* If several lanes access one element, only one of them is active. */
    for (int i = 0; i < target->count; i++)
        operates = operates && (is_range(target->operand[i]) || target->operand[i]->shape.rank == 0);
    Expr *value = chance(m, 85) ? make_expr(m, &target->shape, depth) : make_loose(m, &target->shape, depth);
    Sources given = sources_stretch(&value->valid, 0);
    store->target = target;
    bool whole = tensor->role == TENSOR_TEMP || tensor->whole;
    if (!scatter && !whole && given.count && chance(m, 30))
        store->skip = true;
    else
        value = covered(m, value, chance(m, 80) ? &target->valid : NULL);
    store->value = value;
    if (operates && !is_product(value)) store->op = (int)changing_op(m, tensor->type);
    if (value->shape.rank != target->shape.rank && value->kind == E_LITERAL) value->bare = false;
    tensor->tainted = tensor->tainted || value->tainted || scatter || (operates && type_is_float(tensor->type));
    tensor->written = m->grid;
}

static void make_update(Maker *m, Statement *grid, Block *block) {
    const Extent *dims[MAX_DIMENSIONS];
    int rank = (int)below(m, 3);
    Type type = some_int(m);
    Expr *target = new_expr(E_LOAD, shape_scalar(type));
    (void)grid;
    m->indexing++;
    m->clean = true;
    int64_t lanes = m->most_lanes;
    for (int i = 0; i < rank; i++) {
        dims[i] = m->dims[below(m, (unsigned)m->dim_count)];
        const Extent *axis = some_extent(m, lanes > 0 ? lanes : 1);
        Shape indices = {some_int(m), 1, {axis}}, i64 = shape_scalar(TYPE_I64);
        bool gathered = i == 0 && chance(m, 60);
        Expr *entry = gathered        ? make_expr(m, &indices, 2)
                      : chance(m, 50) ? make_range(m, axis, 1)
                                      : covered(m, make_expr(m, &i64, 1), NULL);
        if (entry->shape.rank == 0 && entry->kind == E_LITERAL) entry = integer_expr(0);
        if (gathered) entry = covered(m, entry, NULL);
        add_operand(target, entry);
        lanes /= entry->shape.rank ? extent_value(axis) : 1;
    }
    target->tensor = new_tensor(m, type, rank, dims, TENSOR_INOUT);
    if (target->tensor) {
        target->tensor->written = m->grid;
        finish_access(m, target);
        static const Update updates[] = {UPDATE_ADD, UPDATE_ADD, UPDATE_MAX, UPDATE_MIN};
        Expr *value = chance(m, 80) ? make_expr(m, &target->shape, 2) : make_loose(m, &target->shape, 2);
        value = covered(m, value, &target->valid);
        if (value->kind == E_LITERAL) value->bare = false;
        Statement *statement = new_statement(block, S_UPDATE);
        statement->value = binary_expr(E_ATOMIC, target->shape, (int)updates[below(m, 4)], target, value);
        target->tensor->written = m->grid;
        target->tensor->tainted = value->tainted;
    }
    m->clean = false;
    m->indexing--;
}

/* The old values of an update of elements that no other program accesses. */
static void make_exchange(Maker *m, Block *block) {
    Expr *target = m->own[below(m, (unsigned)m->own_count)];
    Tensor *tensor = target->tensor;
    Type type = tensor->type;
    if (tensor->packing || type == TYPE_BOOL || type_is_f8(type) || (type_is_float(type) && tensor->tainted)) return;
    Update update = (Update)below(m, 4);
    bool clean = m->clean;
    m->clean = true;
    Expr *value = binary_expr(E_ATOMIC, target->shape, (int)update, target,
                              covered(m, make_expr(m, &target->shape, 2), &target->valid));
    if (update == UPDATE_CAS) add_operand(value, covered(m, make_expr(m, &target->shape, 2), &target->valid));
    m->clean = clean;
    for (int i = 1; i < value->count; i++)
        if (value->operand[i]->kind == E_LITERAL) value->operand[i]->bare = false;
    value->valid = target->valid;
    value->tainted = tensor->tainted = tensor->tainted || type_is_float(type);
    Statement *statement = new_statement(block, S_LET);
    statement->names[statement->count++] = bound_name(m, NAME_LET, value);
    statement->value = value;
    enter(m, statement->names[0]);
}

/* A temporary of each program: stored whole, and some of it by places that are data. Loads of the program follow. */
static void make_own_temp(Maker *m, Block *block) {
    Shape shape = some_shape(m, some_type(m), 3);
    if (shape.rank == 0) return;
    Expr *target = new_expr(E_LOAD, shape);
    for (int i = 0; i < shape.rank; i++) {
        Expr *colon = new_expr(E_COLON, (Shape){TYPE_I64, 1, {shape.extent[i]}});
        colon->extent = shape.extent[i];
        add_operand(target, colon);
    }
    target->tensor = new_tensor(m, shape.scalar, shape.rank, shape.extent, TENSOR_TEMP);
    if (!target->tensor) return;
    target->tensor->own = true;
    finish_access(m, target);
    Statement *temp = new_statement(block, S_TEMP);
    temp->target = target;
    target->tensor->tainted = false;
    make_store(m, block, target, false, 3);
    if (shape.rank > 1 || chance(m, 50)) return;
    Shape indices = {some_int(m), 1, {some_extent(m, m->most_lanes)}};
    m->clean = true;
    m->indexing++;
    Expr *places = new_expr(E_LOAD, shape), *index = make_expr(m, &indices, 2);
    m->indexing--;
    m->clean = false;
    if (index->shape.rank == 0 || index->valid.count > MAX_SOURCES) return;
    add_operand(places, index);
    places->tensor = target->tensor;
    make_store(m, block, finish_access(m, places), false, 2);
    target->tensor->tainted = true;
}

/* ---- blocks and grids ---- */

static void make_block(Maker *m, Block *block, int depth) {
    for (unsigned count = below(m, depth > 1 ? 4 : 2); count; count--) {
        if (m->scope_count > MAX_SCOPE - 12) return;
        switch (below(m, 12)) {
        case 0:
        case 1:
        case 2:
        case 3: make_let(m, block); break;
        case 4: make_parts_let(m, block); break;
        case 5: make_range_let(m, block); break;
        case 6:
        case 7:
            if (depth > 0) make_loop(m, block, depth);
            break;
        case 8:
            if (depth > 0 && chance(m, 50))
                make_branch(m, block, depth);
            else if (depth > 0 && chance(m, 80))
                make_guarded(m, block, depth);
            else if (depth > 0)
                make_static_branch(m, block);
            break;
        case 9:
            if (m->loops == 0) make_product_loop(m, block);
            break;
        case 10:
            if (depth > 0 && chance(m, 60))
                make_guarded(m, block, depth);
            else if (depth > 0)
                make_guarded_tile(m, block, make_var(m, block));
            break;
        case 11:
            if (chance(m, 60))
                make_assertion(m, block);
            else
                make_let(m, block);
            break;
        default: make_let(m, block);
        }
    }
}

static int64_t programs_of(const Name *name, const Expr *hi, const Expr *lo) {
    int64_t end = hi->kind == E_EXTENT ? extent_value(hi->extent) : (int64_t)hi->bits;
    if (lo) end -= (int64_t)lo->bits;
    int64_t size = name->kind == NAME_RANGE ? extent_value(name->size) : 1;
    return (end + size - 1) / size;
}

static void add_entry(Maker *m, Statement *grid, int64_t *programs) {
    bool tiles = chance(m, 75);
    const Extent *dim = m->dims[below(m, (unsigned)m->dim_count)];
    Name *name = new_name(m, tiles ? NAME_RANGE : NAME_INTEGER, tiles ? "n" : "p");
    int at = grid->count;
    name->shape = shape_scalar(TYPE_I64);
    if (tiles) {
        name->size = some_extent(m, m->most_lanes / m->lanes);
        name->limit = dim;
        sources_add(&name->valid, (Source){(uint32_t)(m->serial++ * 104729 + 5), 1, true});
    } else {
        name->below = dim;
    }
    grid->hi[at] = extent_expr(dim);
    if (tiles && chance(m, 10)) grid->lo[at] = integer_expr(1 + (int64_t)below(m, 3));
    int64_t count = programs_of(name, grid->hi[at], grid->lo[at]);
    if (*programs * count > 40) return;
    if (tiles) m->lanes *= extent_value(name->size);
    *programs *= count > 0 ? count : 1;
    grid->names[grid->count++] = name;
    enter(m, name);
}

/* A grid of one program. */
static void add_single(Maker *m, Statement *grid) {
    Name *name = new_name(m, NAME_INTEGER, "p");
    name->shape = shape_scalar(TYPE_I64);
    name->below = extent_literal(1);
    grid->hi[0] = integer_expr(1);
    grid->names[grid->count++] = name;
    m->alone = true;
}

void make_grid(Maker *m) {
    int scope = m->scope_count;
    Statement *grid = new_statement(m->program->grids, S_GRID);
    grid->body = NEW(Block);
    int entries = (int)below(m, 4);
    int64_t programs = 1;
    m->alone = m->leaves = false;
    m->lanes = 1;
    m->own_count = 0;
    for (int i = 0; i < entries; i++) add_entry(m, grid, &programs);
    Statement plain = *grid;
    if (grid->count == 0) add_single(m, grid);
    if (chance(m, 15)) make_own_temp(m, grid->body);
    if (chance(m, 70)) make_block(m, grid->body, 2);
    if (chance(m, 7)) {
        Statement *leave = new_statement(grid->body, S_IF);
        leave->value = make_decision(m, TYPE_BOOL, 2);
        leave->body = NEW(Block);
        new_statement(leave->body, S_RETURN);
        m->leaves = true;
    }
    int stores = 1 + (int)below(m, 3);
    for (int i = 0; i < stores; i++) {
        bool scatter;
        if (chance(m, 10)) {
            make_update(m, grid, grid->body);
            continue;
        }
        Expr *target = make_target(m, &plain, &scatter);
        if (!target) continue;
        if (m->own_count && chance(m, 20)) make_exchange(m, grid->body);
        make_store(m, grid->body, target, scatter, 4);
        if (!scatter && chance(m, 12)) make_store(m, grid->body, target, false, 2);
    }
    m->scope_count = scope;
}
