/* Stores by which programs of a grid overwrite one another's values: what is stored depends on the number of the program
 * along an axis of the grid, and where and whether it is stored does not. So y[m] = sum(x[m, n]) in a grid over m and n,
 * where each program has the sum of a part of the row, and one of them stays. An update, y[m] += v, depends on what is
 * there, so that its place alone counts.
 *
 * Each value of the grid has the set of axes on whose program numbers it depends: those of its operands, and for what a
 * branch or loop gives, those of the condition and bounds, until nothing is added. What surrounds a store belongs to its
 * place, since it decides whether a program comes there. */
#include "parser/check/overwrite.h"

#include "lang/ir/build.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/warn.h"

typedef uint32_t Axes; /* a bit for each axis of the grid */

typedef struct Search {
    Axes *axes; /* by the numbers of the values */
    Axes all;
    bool changed;
} Search;

static Axes axes_of(const Search *s, const TileValue *value) { return s->axes[value->number]; }
static void add(Search *s, const TileValue *value, Axes axes) { s->axes[value->number] |= axes; }

static Axes axes_of_operands(const Search *s, const TileOp *op, unsigned from) {
    Axes axes = 0;
    for (unsigned i = from; i < op->operand_count; i++) axes |= axes_of(s, tile_op_operand(op, i));
    return axes;
}

/* What the region's end gives is what the op's results, from the first, may become. */
static void add_ends(Search *s, const TileOp *op, const TileBlock *region, Axes around) {
    const TileOp *end = region->last;
    for (unsigned i = 0; end && i < end->operand_count && i < op->result_count; i++)
        add(s, tile_op_result(op, i), axes_of(s, tile_op_operand(end, i)) | around);
}

/* What the end of a loop's body gives is an argument of the next iteration: only this leads back to what was visited. */
static void note_return(Search *s, const TileOp *op, const TileBlock *region, unsigned first) {
    for (unsigned i = 0; i < op->result_count; i++)
        if (axes_of(s, tile_op_result(op, i)) & ~axes_of(s, region->arguments[first + i])) s->changed = true;
}

/* Arguments from `first` on carry operands from `from` on, and what the results may become: the next iteration's. */
static void add_carried(Search *s, const TileOp *op, const TileBlock *region, unsigned first, unsigned from) {
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileValue *argument = region->arguments[first + i], *result = tile_op_result(op, i);
        add(s, argument, axes_of(s, tile_op_operand(op, from + i)) | axes_of(s, result));
        add(s, result, axes_of(s, argument));
    }
}

static void visit_block(Search *s, TileMap *around_of, const TileBlock *block, Axes around);

static void visit(Search *s, TileMap *around_of, const TileOp *op, Axes around) {
    enum { FOR_CARRIED = 3 };
    Axes operands = axes_of_operands(s, op, 0);
    switch (op->region_count ? (TileOpId)op->id : TILE_OP_COUNT) {
    case TILE_OP_IF:
        operands = axes_of(s, tile_op_operand(op, 0));
        for (unsigned i = 0; i < op->region_count; i++) {
            visit_block(s, around_of, &op->regions[i], around | operands);
            add_ends(s, op, &op->regions[i], operands);
        }
        return;
    case TILE_OP_FOR:
        operands = 0;
        for (unsigned i = 0; i < FOR_CARRIED; i++) operands |= axes_of(s, tile_op_operand(op, i));
        add(s, op->regions[0].arguments[0], operands);
        add_carried(s, op, &op->regions[0], 1, FOR_CARRIED);
        visit_block(s, around_of, &op->regions[0], around | operands);
        add_ends(s, op, &op->regions[0], operands);
        note_return(s, op, &op->regions[0], 1);
        return;
    case TILE_OP_WHILE:
        for (unsigned i = 0; i < op->region_count; i++) add_carried(s, op, &op->regions[i], 0, 0);
        visit_block(s, around_of, &op->regions[0], around);
        operands = axes_of_operands(s, op->regions[0].last, 0);
        visit_block(s, around_of, &op->regions[1], around | operands);
        add_ends(s, op, &op->regions[1], operands);
        note_return(s, op, &op->regions[0], 0);
        return;
    case TILE_OP_COUNT: break; /* no region */
    default: /* a function that folds: of its operands alone */
        for (unsigned i = 0; i < op->region_count; i++) {
            for (uint32_t k = 0; k < op->regions[i].argument_count; k++) add(s, op->regions[i].arguments[k], operands);
            visit_block(s, around_of, &op->regions[i], around);
        }
        break;
    }
    if (op->id == TILE_OP_ATOMIC_TILE) operands = s->all; /* each program finds what others have left */
    for (unsigned i = 0; i < op->result_count; i++) add(s, tile_op_result(op, i), operands);
    if (op->id == TILE_OP_STORE_TILE) tile_map_set(around_of, op, (void *)(uintptr_t)around);
}

static void visit_block(Search *s, TileMap *around_of, const TileBlock *block, Axes around) {
    for (const TileOp *op = block->first; op; op = op->next) visit(s, around_of, op, around);
}

/* ---- the warning ---- */

/* Axes that may have more than one program. */
static Axes axes_with_programs(const TileOp *grid) {
    Axes axes = 0;
    for (unsigned i = 0; i < grid->operand_count; i++) {
        uint64_t programs;
        if (!tile_value_bits(tile_op_operand(grid, i), &programs) || programs > 1) axes |= 1u << i;
    }
    return axes;
}

/* Some of the axes that the value depends on: those that few operations lie between. */
static Axes near_axes(const TileChecker *c, const TileValue *value, unsigned *steps) {
    enum { MOST_STEPS = 64 };
    const TileOp *op = value->op;
    Axes axes = 0;
    if (!op) return value->block == &c->grid->regions[0] ? 1u << value->index : 0;
    for (unsigned i = 0; !op->region_count && i < op->operand_count && ++*steps < MOST_STEPS; i++)
        axes |= near_axes(c, tile_op_operand(op, i), steps);
    return axes;
}

/* Has a part of the code been checked once more, and the first result been dropped? */
static bool is_dropped(const TileOp *store) { return !tile_op_operand(store, 1); }

/* Is each place, as most are, one of its own for the programs along all these axes? Then nothing has to be searched. */
static bool have_places_of_their_own(const TileChecker *c, Axes several) {
    for (size_t i = 0; i < c->stored.count; i++) {
        const TileOp *op = c->stored.items[i].op;
        Axes axes = is_dropped(op) ? several : 0;
        for (unsigned k = 2, steps = 0; k < op->operand_count && several & ~axes; k++)
            axes |= near_axes(c, tile_op_operand(op, k), &steps);
        if (several & ~axes) return false;
    }
    return true;
}

static const char *names_of(TileChecker *c, Axes axes) {
    const char *names = "";
    for (unsigned i = 0; i < c->grid->operand_count; i++)
        if (axes >> i & 1u)
            names = tile_arena_format(c->arena, "%s%s`%s`", names, *names ? ", " : "", c->grid->regions[0].arguments[i]->name);
    return names;
}

static void warn_of_update(TileChecker *c, const TileStored *stored, Axes axes, bool every) {
    const TileStatement *update = stored->update;
    const char *who = every ? "every program of the grid updates this element"
                            : tile_arena_format(c->arena, "programs with different %s update the same elements", names_of(c, axes));
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_PROGRAMS_MEET, stored->span,
                                      tile_arena_format(c->arena, "%s, and none waits for the others", who));
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "updates at the same time are lost; `atomic_add`, `atomic_max` and `atomic_min` lose none");
    bool skips = update && update->value->kind == TILE_EXPR_BINARY && update->value->op == TILE_TOKEN_ELSE;
    if (update && update->op == TILE_TOKEN_PLUS_ASSIGN && !skips)
        tile_diagnostic_edit(c->diagnostics, d, stored->span, "atomic_add(%s, %s)",
                             tile_span_text(c, update->target->span), tile_bare_text(c, update->value->span));
    tile_report(c, d);
}

static void warn_of_store(TileChecker *c, const TileStored *stored, Axes axes) {
    const char *names = names_of(c, axes);
    TileDiagnostic *d = tile_diagnose(
        c->diagnostics, TILE_DIAGNOSTIC_PROGRAMS_MEET, stored->span,
        tile_arena_format(c->arena, "programs with different %s store to the same elements, and one of them stays", names));
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "a loop inside of the program goes through all of %s; `atomic_add`, `atomic_max` and "
                         "`atomic_min` combine what programs have",
                         names);
    tile_report(c, d);
}

void tile_overwrite_note(TileChecker *c, TileOp *op, const TileAccessed *access) {
    if (!c->grid || access->tensor->own) return;
    TileStored stored = {op, access->span, NULL, c->update != NULL};
    if (c->update && !c->frame->parent) {
        stored.update = c->update;
        stored.span = c->update->span;
    }
    for (const TileFrame *frame = c->frame; frame->parent; frame = frame->parent) stored.span = frame->call;
    tile_list_push(c->arena, &c->stored, stored);
}

void tile_overwrite_warn(TileChecker *c) {
    TileMap around_of;
    Axes several = axes_with_programs(c->grid);
    if (!c->stored.count || !several || !tile_warns(c, TILE_WARN_PROGRAMS_MEET)) return;
    if (have_places_of_their_own(c, several)) return;
    tile_map_init(&around_of, c->arena);
    Search s = {TILE_NEW_ARRAY(c->arena, Axes, tile_func_number(c->func)), (1u << c->grid->operand_count) - 1, true};
    for (unsigned i = 0; i < c->grid->operand_count; i++) add(&s, c->grid->regions[0].arguments[i], 1u << i);
    for (s.changed = true; s.changed;) {
        s.changed = false;
        visit_block(&s, &around_of, &c->grid->regions[0], 0);
    }
    TileSpan last = {0};
    for (size_t i = 0; i < c->stored.count; i++) {
        const TileStored *stored = &c->stored.items[i];
        const TileOp *op = stored->op;
        if (is_dropped(op)) continue;
        Axes place = axes_of_operands(&s, op, 2) | (Axes)(uintptr_t)tile_map_get(&around_of, op);
        Axes value = stored->updates ? s.all : axes_of(&s, tile_op_operand(op, 1));
        Axes lost = value & ~place & several;
        bool same = last.file == stored->span.file && last.begin == stored->span.begin && last.end == stored->span.end;
        if (!lost || same) continue;
        if (stored->updates)
            warn_of_update(c, stored, lost, lost == several);
        else
            warn_of_store(c, stored, lost);
        last = stored->span;
    }
}
