#include "shorten.h"

#include <string.h>

enum { MOST_TRIALS = 700, MAX_PLACES = 4096 };

typedef struct Shortener {
    Trial *trial;
    const Target *target;
    Verdict *shared, *verdict;
    int trials;
    bool changed;
} Shortener;

/* Does it still fail, with the same verdict? */
static bool still_fails(Shortener *s) {
    if (s->trials++ >= MOST_TRIALS) return false;
    trial_run(s->trial, s->target, s->shared);
    if (s->verdict->outcome == OUTCOME_DISAGREED && s->shared->outcome == OUTCOME_REFUSED) {
        Verdict here = *s->shared;
        bool same = strcmp(here.code, s->verdict->code) == 0;
        if (!same) return false;
        trial_run(s->trial, target_at(0), s->shared);
        if (s->shared->outcome != OUTCOME_SAME) return false;
        *s->shared = here;
        s->shared->outcome = OUTCOME_DISAGREED;
    }
    if (s->shared->outcome != s->verdict->outcome) return false;
    *s->verdict = *s->shared;
    s->changed = true;
    return true;
}

/* ---- statements ---- */

static bool drop_statement(Shortener *s, Block *block, int index) {
    Statement *gone = block->items[index];
    memmove(block->items + index, block->items + index + 1, (size_t)(block->count - index - 1) * sizeof *block->items);
    block->count--;
    if (still_fails(s)) return true;
    memmove(block->items + index + 1, block->items + index, (size_t)(block->count - index) * sizeof *block->items);
    block->count++;
    block->items[index] = gone;
    return false;
}

/* Replaces a loop or branch by its body. */
static void unwrap(Shortener *s, Block *block, int index) {
    Statement *outer = block->items[index];
    if ((outer->kind != S_IF && outer->kind != S_WHILE) || !outer->body || outer->body->count != 1) return;
    block->items[index] = outer->body->items[0];
    if (!still_fails(s)) block->items[index] = outer;
}

/* The first statement of a `while` body counts iterations. */
static void shorten_block(Shortener *s, Block *block, bool counted) {
    for (int i = block->count - 1; i >= (counted ? 1 : 0); i--) {
        if (drop_statement(s, block, i)) continue;
        unwrap(s, block, i);
        Statement *statement = block->items[i];
        if (statement->otherwise) {
            Block *otherwise = statement->otherwise;
            statement->otherwise = NULL;
            if (!still_fails(s)) statement->otherwise = otherwise;
        }
        if (statement->body) shorten_block(s, statement->body, statement->kind == S_WHILE);
        if (statement->otherwise) shorten_block(s, statement->otherwise, false);
    }
}

/* ---- expressions ---- */

typedef struct Places {
    Expr **items[MAX_PLACES];
    int count;
} Places;

static void take_place(void *state, Expr **place) {
    Places *places = state;
    if (places->count < MAX_PLACES) places->items[places->count++] = place;
}

static void take_condition(void *state, Block *block, int index) {
    Places *places = state;
    if (block->items[index]->kind == S_WHILE && places->count < MAX_PLACES)
        places->items[places->count++] = &block->items[index]->value;
}

static bool is_entry(const Expr *expr) { return expr->kind >= E_RANGE && expr->kind <= E_COLON; }

static bool replace(Shortener *s, Expr **place, Expr *by) {
    Expr *old = *place;
    *place = by;
    if (still_fails(s)) return true;
    *place = old;
    return false;
}

/* Replaces it by a subexpression of the same type, at any depth. */
static bool replace_by_part(Shortener *s, Expr **place, const Expr *within, int depth) {
    for (int i = 0; i < within->count && depth > 0; i++) {
        Expr *part = within->operand[i];
        bool fits = is_entry(part) == is_entry(*place) && part->shape.scalar == (*place)->shape.scalar &&
                    shape_same(&part->shape, &(*place)->shape) && !(*place)->several;
        if (fits && replace(s, place, part)) return true;
        if (replace_by_part(s, place, part, depth - 1)) return true;
    }
    return false;
}

static Expr *simplest(const Expr *expr, uint64_t bits) {
    Expr *made = NEW(Expr);
    made->kind = E_LITERAL;
    made->shape = shape_scalar(expr->shape.scalar);
    made->bits = bits;
    if (expr->shape.rank == 0) return made;
    Expr *full = NEW(Expr);
    full->kind = bits ? E_FULL : E_ZEROS;
    full->shape = expr->shape;
    full->operand[0] = made;
    full->count = bits ? 1 : 0;
    return full;
}

static void shorten_expr(Shortener *s, Expr **place) {
    Expr *expr = *place;
    if (is_entry(expr)) {
        replace_by_part(s, place, expr, 3);
        return;
    }
    if (expr->several || expr->kind == E_LITERAL || expr->kind == E_ZEROS || expr->kind == E_ATOMIC) return;
    if (expr->kind == E_FULL && expr->operand[0]->kind == E_LITERAL) return;
    Type type = expr->shape.scalar;
    if (replace(s, place, simplest(expr, 0))) return;
    uint64_t one = type_is_float(type) ? number_from(type, 1) : 1;
    if (expr->count && replace(s, place, simplest(expr, one))) return;
    if (replace_by_part(s, place, expr, 3)) return;
    if (!expr->outlined) return;
    expr->outlined = false;
    if (!still_fails(s)) expr->outlined = true;
}

static void shorten_exprs(Shortener *s) {
    Places *places = NEW(Places);
    program_visit(s->trial->program, &(Visitor){take_place, NULL, places});
    Places *conditions = NEW(Places);
    program_visit(s->trial->program, &(Visitor){NULL, take_condition, conditions});
    for (int i = 0; i < places->count; i++) {
        bool ends_loop = false;
        for (int k = 0; k < conditions->count; k++) ends_loop = ends_loop || conditions->items[k] == places->items[i];
        if (ends_loop && (*places->items[i])->op != OP_BOTH) continue;
        /* If an outer expression was replaced, its subexpressions are no longer in the program. */
        Places *now = NEW(Places);
        program_visit(s->trial->program, &(Visitor){take_place, NULL, now});
        bool there = false;
        for (int k = 0; k < now->count && !there; k++) there = now->items[k] == places->items[i];
        if (there && *places->items[i]) shorten_expr(s, places->items[i]);
        if (s->trials >= MOST_TRIALS) return;
    }
}

/* ---- sizes and data ---- */

static void shorten_number(Shortener *s, int64_t *number, int64_t to) {
    int64_t old = *number;
    if (old == to) return;
    *number = to;
    if (!still_fails(s)) *number = old;
}

static void shorten_sizes(Shortener *s) {
    static const int64_t few[] = {1, 2, 3, 4, 5, 8};
    Program *program = s->trial->program;
    if (s->trial->schedule) {
        uint64_t schedule = s->trial->schedule;
        s->trial->schedule = 0;
        if (!still_fails(s)) s->trial->schedule = schedule;
    }
    shorten_number(s, &program->warps, -1);
    shorten_number(s, &program->stages, -1);
    shorten_number(s, &program->packs, -1);
    for (int i = 0; i < program->name_count; i++) {
        Name *name = program->names[i];
        if (!name->used) continue;
        for (int k = 0; k < 6; k++)
            if (name->value > few[k] && name->kind != NAME_PARAMETER) {
                int64_t old = name->value;
                shorten_number(s, &name->value, few[k]);
                if (name->value != old) break;
            }
        if (name->value > 16 && name->kind != NAME_PARAMETER) shorten_number(s, &name->value, name->value / 2);
        if (name->kind == NAME_PARAMETER) shorten_number(s, &name->value, 0);
    }
    for (int i = 0; i < program->tensor_count; i++) {
        Tensor *tensor = program->tensors[i];
        TensorView view = tensor->view;
        TensorData data = tensor->data;
        if (!tensor->used) continue;
        tensor->view = LIE_CONTIGUOUS;
        if (view != LIE_CONTIGUOUS && !still_fails(s)) tensor->view = view;
        tensor->data = DATA_SMALL;
        if (data != DATA_SMALL && !still_fails(s)) tensor->data = data;
    }
}

void shorten(Trial *trial, const Target *target, Verdict *shared, Verdict *verdict) {
    Shortener s = {.trial = trial, .target = target, .shared = shared, .verdict = verdict, .changed = true};
    unsigned seconds = trial->seconds;
    if (verdict->outcome == OUTCOME_HUNG) trial->seconds = seconds / 3 + 1;
    while (s.changed && s.trials < MOST_TRIALS) {
        s.changed = false;
        shorten_block(&s, trial->program->grids, false);
        shorten_exprs(&s);
        shorten_sizes(&s);
    }
    trial->seconds = seconds;
}
