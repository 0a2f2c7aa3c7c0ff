/* tilec debug: names and values at a statement. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lang/scalar/scalar.h"
#include "tools/debug.h"

/* ---- names ---- */

static TileDebugName make_name(const TileExecutor *executor, const TileStatementName *name,
                               TileValue *const *operands) {
    const TileType *type = operands[0]->type;
    TileDebugName made = {.text = name->text, .operands = operands, .type = type};
    if (name->is_range) {
        made.kind = TILE_DEBUG_RANGE;
    } else if (type->kind == TILE_TYPE_TENSOR) {
        made.kind = TILE_DEBUG_TENSOR;
        tile_executor_extents(executor, operands[0], made.extent);
    } else if (tile_type_is_tile(type)) {
        made.kind = TILE_DEBUG_TILE;
        memcpy(made.extent, type->extent, type->rank * sizeof *made.extent);
    }
    return made;
}

void tile_debug_names(const TileExecutor *executor, const TileOp *statement, TileArena *arena, TileDebugNames *names) {
    TileValue **operands = TILE_NEW_ARRAY(arena, TileValue *, statement->operand_count + 1);
    TileStatementName name = {0};
    for (uint32_t i = 0; i < statement->operand_count; i++) operands[i] = tile_op_operand(statement, i);
    while ((name = tile_statement_next(statement, &name)).text)
        tile_list_push(arena, names, make_name(executor, &name, operands + name.operand));
}

/* ---- what of a value is asked for ---- */

typedef struct Selection {
    int64_t from[TILE_DEBUG_MOST_RANK], to[TILE_DEBUG_MOST_RANK];
    bool single[TILE_DEBUG_MOST_RANK]; /* the axis is no axis of what is read */
} Selection;

static const char *skip_blanks(const char *at) {
    while (isspace((unsigned char)*at)) at++;
    return at;
}

/* Changes nothing where there is none. */
static bool read_number(const char **at, int64_t *number) {
    char *end;
    const char *begin = skip_blanks(*at);
    int64_t read = strtoll(begin, &end, 10);
    if (end == begin) return false;
    *number = read;
    *at = skip_blanks(end);
    return true;
}

/* `3`, `0:4`, `2:`, `:4` or `:` */
static bool read_axis(const char **at, int64_t extent, int64_t *from, int64_t *to, bool *single) {
    *from = 0;
    *to = extent;
    bool given = read_number(at, from);
    *at = skip_blanks(*at);
    *single = **at != ':';
    if (*single) *to = *from + 1;
    if (*single) return given && *from >= 0 && *from < extent;
    ++*at;
    read_number(at, to);
    *at = skip_blanks(*at);
    if (*to > extent) *to = extent;
    return *from >= 0 && *from <= *to;
}

/* `at` is behind the name. */
static bool read_selection(const char *at, const TileDebugName *name, Selection *selection, TileText *error) {
    unsigned rank = name->kind == TILE_DEBUG_TILE || name->kind == TILE_DEBUG_TENSOR ? name->type->rank : 0;
    for (unsigned d = 0; d < rank; d++) selection->to[d] = name->extent[d];
    if (!*at) return true;
    for (unsigned d = 0; d < rank; d++) {
        if (*at != (d ? ',' : '[')) break;
        at++;
        if (!read_axis(&at, name->extent[d], &selection->from[d], &selection->to[d], &selection->single[d])) break;
        if (d + 1 == rank && strcmp(at, "]") == 0) return true;
    }
    tile_text_format(error, "%s has %u %s", name->text, rank, rank == 1 ? "axis" : "axes");
    for (unsigned d = 0; d < rank; d++) tile_text_format(error, d ? ", %lld" : ", of %lld", (long long)name->extent[d]);
    if (rank) tile_text_add(error, " elements; an index for each is an integer or from:to, as in [0, :4]");
    return false;
}

/* ---- reading ---- */

static void make_room(TileArena *arena, TileDebugValue *value, uint64_t count) {
    value->count = count;
    value->bits = TILE_NEW_ARRAY(arena, uint64_t, count + 1);
    value->defined = TILE_NEW_ARRAY(arena, bool, count + 1);
}

static void read_lane(const TileExecutor *executor, const TileValue *from, size_t lane, TileDebugValue *value,
                      uint64_t at) {
    const uint8_t *poison;
    const uint64_t *lanes = tile_executor_lanes(executor, from, &poison);
    value->bits[at] = lanes[lane];
    value->defined[at] = !poison[lane];
}

static void read_element(const TileExecutor *executor, const TileDebugName *name, const int64_t *index,
                         TileDebugValue *value, uint64_t at) {
    const TileValue *from = name->operands[0];
    size_t lane = 0;
    if (name->kind == TILE_DEBUG_TENSOR) {
        value->defined[at] = tile_executor_element(executor, from, index, &value->bits[at]);
        return;
    }
    for (unsigned d = 0; d < name->type->rank; d++) lane = lane * (size_t)name->extent[d] + (size_t)index[d];
    read_lane(executor, from, lane, value, at);
}

/* In row-major order. */
static void read_elements(const TileExecutor *executor, const TileDebugName *name, const Selection *selection,
                          TileDebugValue *value) {
    int64_t index[TILE_DEBUG_MOST_RANK];
    memcpy(index, selection->from, sizeof index);
    for (uint64_t i = 0; i < value->count; i++) {
        read_element(executor, name, index, value, i);
        for (unsigned d = name->type->rank; d-- > 0;) {
            if (++index[d] < selection->to[d]) break;
            index[d] = selection->from[d];
        }
    }
}

static void read_name(const TileExecutor *executor, const TileDebugName *name, const Selection *selection,
                      TileArena *arena, TileDebugValue *value) {
    uint64_t count = 1;
    *value = (TileDebugValue){.kind = name->kind, .scalar = name->type->scalar};
    if (name->kind == TILE_DEBUG_RANGE) {
        make_room(arena, value, TILE_STATEMENT_RANGE_COUNT);
        for (uint64_t i = 0; i < value->count; i++) read_lane(executor, name->operands[i], 0, value, i);
        return;
    }
    unsigned rank = name->kind == TILE_DEBUG_SCALAR ? 0 : name->type->rank;
    for (unsigned d = 0; d < rank; d++) {
        int64_t extent = selection->to[d] - selection->from[d];
        count *= (uint64_t)extent;
        if (!selection->single[d]) value->extent[value->rank++] = extent;
    }
    make_room(arena, value, count);
    if (name->kind == TILE_DEBUG_SCALAR)
        read_lane(executor, name->operands[0], 0, value, 0);
    else
        read_elements(executor, name, selection, value);
}

bool tile_debug_read(const TileExecutor *executor, const TileOp *statement, const char *expression, TileArena *arena,
                     TileDebugValue *value, TileText *error) {
    TileDebugNames names = {0};
    size_t length = strcspn(expression, " \t[");
    tile_debug_names(executor, statement, arena, &names);
    for (size_t i = 0; i < names.count; i++) {
        const TileDebugName *name = &names.items[i];
        if (strlen(name->text) != length || strncmp(name->text, expression, length) != 0) continue;
        Selection selection = {0};
        if (!read_selection(skip_blanks(expression + length), name, &selection, error)) return false;
        read_name(executor, name, &selection, arena, value);
        return true;
    }
    tile_text_format(error, "nothing is called '%.*s' here; `locals` lists what is", (int)length, expression);
    return false;
}

bool tile_debug_differ(const TileDebugValue *a, const TileDebugValue *b) {
    if (a->count != b->count || a->rank != b->rank) return true;
    for (uint64_t i = 0; i < a->count; i++)
        if (a->defined[i] != b->defined[i] || (a->defined[i] && a->bits[i] != b->bits[i])) return true;
    return false;
}

/* ---- printing ---- */

enum { SHOWN = 8 };

static void add_element(TileText *text, const TileDebugValue *value, uint64_t i) {
    if (value->defined[i])
        tile_scalar_print(text, value->scalar, value->bits[i]);
    else
        tile_text_add_char(text, '-');
}

/* The last axis from element `first` on. */
static void add_row(TileText *text, const TileDebugValue *value, uint64_t first, bool all) {
    int64_t extent = value->extent[value->rank - 1];
    for (int64_t i = 0; i < extent && (all || i < SHOWN); i++) {
        if (i) tile_text_add_char(text, ' ');
        add_element(text, value, first + (uint64_t)i);
    }
    if (!all && extent > SHOWN) tile_text_add(text, " ..");
}

static void add_rows(TileText *text, const TileDebugValue *value, bool all) {
    uint64_t width = (uint64_t)value->extent[value->rank - 1], rows = width ? value->count / width : 0;
    for (uint64_t row = 0; row < rows && (all || row < SHOWN); row++) {
        int64_t index[TILE_DEBUG_MOST_RANK];
        uint64_t rest = row;
        for (unsigned d = value->rank - 1; d-- > 0;) {
            index[d] = (int64_t)(rest % (uint64_t)value->extent[d]);
            rest /= (uint64_t)value->extent[d];
        }
        tile_text_add(text, "\n  ");
        for (unsigned d = 0; d + 1 < value->rank; d++)
            tile_text_format(text, "%s%lld", d ? ", " : "[", (long long)index[d]);
        tile_text_add(text, "] ");
        add_row(text, value, row * width, all);
    }
    if (!all && rows > SHOWN) tile_text_format(text, "\n  .. (%llu rows)", (unsigned long long)rows);
}

static void print_range(TileText *text, const TileDebugValue *value) {
    const uint64_t *at = value->bits;
    int64_t lanes = (int64_t)at[TILE_STATEMENT_LANES], from = (int64_t)at[TILE_STATEMENT_FROM];
    int64_t to = (int64_t)at[TILE_STATEMENT_TO], step = (int64_t)at[TILE_STATEMENT_STEP];
    if (from < 0) from = 0;
    if (to > lanes) to = lanes;
    if (from >= to) {
        tile_text_format(text, "none of %lld", (long long)lanes);
        return;
    }
    uint64_t first = at[TILE_STATEMENT_FIRST] + (uint64_t)from * (uint64_t)step;
    uint64_t last = at[TILE_STATEMENT_FIRST] + (uint64_t)(to - 1) * (uint64_t)step;
    tile_text_format(text, "%lld .. %lld", (long long)first, (long long)last);
    if (step != 1) tile_text_format(text, " by %lld", (long long)step);
    tile_text_format(text, ", %lld of %lld", (long long)(to - from), (long long)lanes);
}

void tile_debug_print(TileText *text, const char *expression, const TileDebugValue *value, bool all) {
    if (value->kind == TILE_DEBUG_RANGE) {
        tile_text_format(text, "%s: range = ", expression);
        print_range(text, value);
        return;
    }
    tile_text_format(text, "%s: %s", expression, tile_scalar_name(value->scalar));
    for (unsigned d = 0; d < value->rank; d++)
        tile_text_format(text, "%s%lld", d ? ", " : "[", (long long)value->extent[d]);
    if (value->rank) tile_text_add_char(text, ']');
    tile_text_add(text, value->rank > 1 ? " =" : " = ");
    if (value->rank > 1)
        add_rows(text, value, all);
    else if (value->rank)
        add_row(text, value, 0, all);
    else
        add_element(text, value, 0);
}
