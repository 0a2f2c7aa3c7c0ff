/* Statements, loops and grids. */
#include <string.h>

#include "evaluate.h"

enum { MAX_ITERATIONS = 100000 };

static Flow run(Evaluator *e, const Block *block);

static void bind(Evaluator *e, const Statement *statement) {
    Value *parts[MAX_PARTS];
    if (statement->names[0]->kind == NAME_RANGE) {
        RangeValue *range = NEW(RangeValue);
        *range = evaluate_range(e, statement->value);
        statement->names[0]->now = range;
        return;
    }
    if (statement->count == 1) {
        statement->names[0]->now = statement->names[0]->first = evaluate(e, statement->value);
        return;
    }
    evaluate_parts(e, statement->value, parts);
    for (int i = 0; i < statement->count; i++) statement->names[i]->now = parts[i];
}

static void assign(Evaluator *e, const Statement *statement, int part, Value *value) {
    Name *name = statement->names[part];
    if (statement->op >= 0) {
        const Value *old = name->now;
        Value *result = value_make(old->scalar, old->rank, old->extent);
        for (int64_t i = 0; i < result->count; i++)
            result->at[i] = number_binary((Op)statement->op, old->scalar, old->at[i], value->at[i]);
        value_add_masks(result, old);
        value_add_masks(result, value);
        value = result;
    }
    /* A variable keeps the validity of its declaration. */
    Value *result = value_make(value->scalar, value->rank, value->extent);
    memcpy(result->at, value->at, (size_t)value->count * sizeof *value->at);
    value_add_masks(result, value);
    value_add_masks(result, name->first);
    name->now = result;
}

static void assign_all(Evaluator *e, const Statement *statement) {
    const Expr *const given[] = {statement->value, statement->second};
    int count = statement->second ? 2 : 1;
    Value *values[2];
    for (int i = 0; i < count; i++)
        values[i] = value_stretch(evaluate(e, given[i]), &given[i]->shape, &statement->names[i]->shape);
    for (int i = 0; i < count; i++) assign(e, statement, i, values[i]);
}

static RangeValue tile_at(Wide start, int64_t size, int64_t hi) {
    Wide left = (Wide)hi - start;
    return (RangeValue){(int64_t)start, 1, size, left > size ? size : (int64_t)left};
}

/* True while the loop continues. */
static bool run_iteration(Evaluator *e, const Block *body, Flow *flow) {
    *flow = run(e, body);
    bool on = *flow == FLOW_NEXT || *flow == FLOW_CONTINUE;
    if (*flow == FLOW_BREAK) *flow = FLOW_NEXT;
    return on && !e->undecided;
}

static Flow loop(Evaluator *e, const Statement *statement) {
    Flow flow = FLOW_NEXT;
    Name *name = statement->names[0];
    bool tiles = statement->kind == S_FOR_TILES;
    int64_t lo = statement->lo[0] ? evaluate_i64(e, statement->lo[0]) : 0, hi = evaluate_i64(e, statement->hi[0]);
    int64_t step = tiles ? extent_value(name->size) : statement->step ? evaluate_i64(e, statement->step) : 1;
    if (step <= 0) e->undecided = true;
    for (Wide at = lo; at < hi && !e->undecided; at += step) {
        if (tiles) {
            name->now = NEW(RangeValue);
            *(RangeValue *)name->now = tile_at(at, step, hi);
        } else {
            name->now = value_scalar(TYPE_I64, (Number){(uint64_t)(int64_t)at, 0});
        }
        if (!run_iteration(e, statement->body, &flow)) break;
    }
    return flow == FLOW_CONTINUE ? FLOW_NEXT : flow;
}

static Flow repeat(Evaluator *e, const Statement *statement) {
    Flow flow = FLOW_NEXT;
    for (int iterations = 0; evaluate_truth(e, statement->value); iterations++) {
        if (iterations == MAX_ITERATIONS) e->undecided = true;
        if (!run_iteration(e, statement->body, &flow)) break;
    }
    return flow == FLOW_CONTINUE ? FLOW_NEXT : flow;
}

/* What another program left there is nothing that this one may count on. */
static void forget(Contents *contents) {
    for (int64_t i = 0; i < contents->count; i++) contents->at[i] = number_unknown();
}

static Flow run_statement(Evaluator *e, const Statement *statement) {
    switch (statement->kind) {
    case S_LET:
    case S_VAR: bind(e, statement); break;
    case S_ASSIGN: assign_all(e, statement); break;
    case S_STORE: evaluate_store(e, statement->target, statement->value, statement->op, statement->skip); break;
    case S_SCATTER: evaluate_scatter(e, statement->target, statement->value); break;
    case S_TEMP: forget(statement->target->tensor->now); break;
    case S_UPDATE: evaluate(e, statement->value); break;
    case S_FOR_TILES:
    case S_FOR: return loop(e, statement);
    case S_WHILE: return repeat(e, statement);
    case S_IF: {
        const Block *block = evaluate_truth(e, statement->value) ? statement->body : statement->otherwise;
        return block && !e->undecided ? run(e, block) : FLOW_NEXT;
    }
    case S_BREAK: return FLOW_BREAK;
    case S_CONTINUE: return FLOW_CONTINUE;
    case S_RETURN: return FLOW_RETURN;
    case S_ASSERT: break;
    case S_GRID: break; /* only at the top level */
    }
    return FLOW_NEXT;
}

static Flow run(Evaluator *e, const Block *block) {
    for (int i = 0; i < block->count && !e->undecided; i++) {
        Flow flow = run_statement(e, block->items[i]);
        if (flow != FLOW_NEXT) return flow;
    }
    return FLOW_NEXT;
}

static void run_grid(Evaluator *e, const Statement *grid) {
    int64_t lo[MAX_DIMENSIONS], hi[MAX_DIMENSIONS], size[MAX_DIMENSIONS], count[MAX_DIMENSIONS], all = 1;
    for (int i = 0; i < grid->count; i++) {
        bool tiles = grid->names[i]->kind == NAME_RANGE;
        lo[i] = grid->lo[i] ? evaluate_i64(e, grid->lo[i]) : 0;
        hi[i] = evaluate_i64(e, grid->hi[i]);
        size[i] = tiles ? extent_value(grid->names[i]->size) : 1;
        count[i] = hi[i] > lo[i] ? (hi[i] - lo[i] + size[i] - 1) / size[i] : 0;
        all *= count[i];
    }
    for (int64_t program = 0; program < all && !e->undecided; program++) {
        int64_t at[MAX_DIMENSIONS];
        index_of(count, grid->count, program, at);
        for (int i = 0; i < grid->count; i++) {
            int64_t first = lo[i] + at[i] * size[i];
            if (grid->names[i]->kind == NAME_RANGE) {
                grid->names[i]->now = NEW(RangeValue);
                *(RangeValue *)grid->names[i]->now = tile_at(first, size[i], hi[i]);
            } else {
                grid->names[i]->now = value_scalar(TYPE_I64, (Number){(uint64_t)first, 0});
            }
        }
        run(e, grid->body);
    }
}

void evaluate_program(Evaluator *e, Program *program) {
    for (int i = 0; i < program->name_count; i++) {
        Name *name = program->names[i];
        uint64_t bits = (uint64_t)name->value;
        name->now = value_scalar(name->kind == NAME_PARAMETER ? name->shape.scalar : TYPE_I64, (Number){bits, 0});
    }
    for (int i = 0; i < program->grids->count && !e->undecided; i++) {
        Statement *statement = program->grids->items[i];
        if (statement->kind == S_GRID)
            run_grid(e, statement);
        else
            run_statement(e, statement);
    }
}
