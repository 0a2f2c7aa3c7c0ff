/* Ops `statement`, for those who observe an execution (lang/execute/execute.h). Each has all names of its function that
 * are in scope, so that nobody has to know what a variable is where, and which name hides which. */
#include "parser/check/observed.h"

#include "parser/check/emit.h"
#include "parser/check/scope.h"

typedef struct Observed {
    TILE_LIST(const char *) names;
    TILE_LIST(int64_t) ranges; /* which of the names are */
    TILE_LIST(TileValue *) values;
} Observed;

static void add_value(TileChecker *c, Observed *o, const char *name, TileValue *value) {
    tile_list_push(c->arena, &o->names, name);
    tile_list_push(c->arena, &o->values, value);
}

/* In the order of TileStatementRange. */
static void add_range(TileChecker *c, Observed *o, const char *name, const TileRange *range) {
    const TileAtom *lanes = range->lanes;
    const TileSum *sums[] = {range->first, range->step, lanes && lanes->lo ? lanes->lo : tile_sum_integer(&c->sums, 0),
                             lanes && lanes->hi ? lanes->hi : range->size, range->size};
    tile_list_push(c->arena, &o->ranges, (int64_t)o->names.count);
    tile_list_push(c->arena, &o->names, name);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        tile_list_push(c->arena, &o->values, tile_emit_sum(c, sums[i]));
}

static void add_meaning(TileChecker *c, Observed *o, const char *name, const TileMeaning *m) {
    switch ((TileMeaningKind)m->kind) {
    case TILE_MEANING_INTEGER:
        if (m->integer < INT64_MIN || m->integer > INT64_MAX) return;
        add_value(c, o, name, tile_build_i64(tile_emitter(c), (int64_t)m->integer));
        return;
    case TILE_MEANING_NUMBER:
        add_value(c, o, name, tile_build_number(tile_emitter(c), tile_type_scalar(c->context, TILE_F64), m->number));
        return;
    case TILE_MEANING_VALUE: add_value(c, o, name, tile_emit_value(c, m)); return;
    case TILE_MEANING_RANGE: add_range(c, o, name, m->range); return;
    case TILE_MEANING_TENSOR: add_value(c, o, name, m->tensor->value); return;
    case TILE_MEANING_ERROR: /* the others are nothing that has a value when the program runs */
    case TILE_MEANING_NOTHING:
    case TILE_MEANING_CHOICE:
    case TILE_MEANING_TUPLE:
    case TILE_MEANING_TYPE:
    case TILE_MEANING_FUNCTION:
    case TILE_MEANING_BUILTIN:
    case TILE_MEANING_MODULE:
    case TILE_MEANING_TEXT:
    case TILE_MEANING_DOTS:
    case TILE_MEANING_SPREAD: return;
    }
}

void tile_observe_statement(TileChecker *c, TileSpan span) {
    if (!c->options || !c->options->statements || !c->in_grid || c->in_combiner || c->untaken) return;
    tile_emit_at(c, span);
    Observed o = {0};
    for (size_t i = c->frame->scope_base; i < c->bounds.count; i++) {
        const TileBound *bound = c->bounds.items[i];
        if (bound == tile_scope_find(c, bound->name))
            add_meaning(c, &o, bound->name, bound->var ? &bound->var->now : &bound->meaning);
    }
    TileAttribute attributes[] = {
        {.key = TILE_ATTRIBUTE_TEXT, .text = c->frame->item->name},
        {.key = TILE_ATTRIBUTE_NAMES, .count = (uint32_t)o.names.count, .texts = o.names.items},
        {.key = TILE_ATTRIBUTE_DEPTH, .integer = c->depth},
        {.key = TILE_ATTRIBUTE_RANGES, .count = (uint32_t)o.ranges.count, .integers = o.ranges.items}};
    tile_build_op(tile_emitter(c), TILE_OP_STATEMENT, o.values.items, (unsigned)o.values.count, attributes,
                  o.ranges.count ? 4 : 3, NULL, 0);
}
