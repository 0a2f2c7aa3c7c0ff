/* What is computed of a product's sums, block by block.
 *
 * Where a loop over rows behind the product computes something of its sums (a bias, gelu), they would pass through memory: a program's
 * block of c is more than L1, so that it is written to L2 and read again, and stores to the tensor wait for memory while nothing is multiplied.
 * Each element is computed of the sum at its place, so the loop's rows and columns may be gone through in any order: some columns of a block of
 * the micro-kernel's rows as soon as they have their last products, while they are in L1, and while the processor goes on to multiply:
 *     for k { block += a * b }                         for k { for i, j { sums of a block; if last { part = sums; for its rows and columns { tensor = f(part) } } } }
 *     for rows { for columns { tensor = f(block) } }   rows that have no products
 * The columns are those of so many blocks that each of the loop's vectors is in them, or not. */
#include "cpu/buffers.h"
#include "cpu/dot.h"
#include "lang/ir/operands.h"

enum {
    SPAN = 64, /* columns at least: what is computed for a row alone is computed for each so many columns */
    WIDEST_SPAN = 512,
    ALIGN = 64
};

/* ---- what the loop is like ---- */

/* The same number, where it is positive. */
bool dot_is_count(const TileValue *count, const TileValue *value) {
    const TileValue *values[] = {count, value};
    for (unsigned i = 0; i < 2; i++) {
        const TileOp *most = tile_value_def(values[i], TILE_OP_MAX);
        bool clamped = most && tile_value_is_integer(tile_op_operand(most, 1), 0) && tile_value_is_same(tile_op_operand(most, 0), values[1 - i]);
        if (clamped) return true;
    }
    return tile_value_is_same(count, value);
}

bool dot_is_same_index(const TileValue *x, const TileValue *y) {
    return tile_value_is_same(x, y) || (tile_value_is_integer(x, 0) && tile_value_is_integer(y, 0));
}

bool dot_is_range(const TileValue *count, const TileValue *first, const TileValue *end) {
    if (tile_value_is_integer(first, 0)) return dot_is_count(count, end);
    const TileOp *most = tile_value_def(count, TILE_OP_MAX);
    if (most && tile_value_is_integer(tile_op_operand(most, 1), 0)) count = tile_op_operand(most, 0);
    const TileOp *less = tile_value_def(count, TILE_OP_SUB);
    return less && tile_op_operand(less, 0) == end && tile_op_operand(less, 1) == first;
}

bool dot_place_in(const Dot *dot, const TileValue *from, TileValue **row, TileValue **column) {
    TileValue *pointer = dot->c.pointer;
    *row = *column = NULL;
    for (TileOp *add; pointer != from && (add = tile_value_def(pointer, TILE_OP_PTR_ADD)); pointer = tile_op_operand(add, 0)) {
        const TileOp *times = tile_value_def(tile_op_operand(add, 1), TILE_OP_MUL);
        bool across = times && tile_value_is_integer(tile_op_operand(times, 1), dot->bytes), down = times && tile_value_is_same(tile_op_operand(times, 1), dot->c.row);
        TileValue **index = across ? column : row;
        if ((!across && !down) || *index) return false;
        *index = tile_op_operand(times, 0);
    }
    if (!*row) *row = tile_emit_i64(dot->emitter, 0);
    if (!*column) *column = tile_emit_i64(dot->emitter, 0);
    return pointer == from;
}

/* base + index * bytes: the same base and bytes in all accesses. */
bool dot_is_step(const TileValue *pointer, const TileValue *index, const TileValue **base, const TileValue **bytes) {
    const TileOp *add = tile_value_def(pointer, TILE_OP_PTR_ADD), *times = add ? tile_value_def(tile_op_operand(add, 1), TILE_OP_MUL) : NULL;
    if (!times || tile_op_operand(times, 0) != index) return false;
    const TileValue *at = tile_op_operand(add, 0), *by = tile_op_operand(times, 1);
    if ((*base && *base != at) || (*bytes && !tile_value_is_same(*bytes, by))) return false;
    *base = at;
    *bytes = by;
    return true;
}

const TileValue *dot_tensor_of(const TileValue *pointer) {
    for (const TileOp *add; (add = tile_value_def(pointer, TILE_OP_PTR_ADD));) pointer = tile_op_operand(add, 0);
    bool parameter = !pointer->op && !pointer->block->op && pointer->type->space == TILE_SPACE_GLOBAL;
    return parameter && pointer->block->func->parameters[pointer->index].noalias ? pointer : NULL;
}

bool dot_is_accessed(const TileValue *pointer, const TileOp *loop) {
    for (const TileUse *use = pointer->first_use; use; use = use->next) {
        bool moves = use->user->id == TILE_OP_PTR_ADD;
        if (moves ? dot_is_accessed(&use->user->results[0], loop) : tile_op_inside(use->user, loop)) return true;
    }
    return false;
}

/* Is something else done in the loop with the memory than to load from it? */
static bool is_changed(const TileValue *pointer, const TileOp *loop) {
    for (const TileUse *use = pointer->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        bool loads = user->id == TILE_OP_LOAD || user->id == TILE_OP_PREFETCH;
        if (user->id == TILE_OP_PTR_ADD ? is_changed(&user->results[0], loop) : !loads && tile_op_inside(user, loop)) return true;
    }
    return false;
}

static bool is_loaded(const TileValue *pointer, const TileOp *loop) {
    for (const TileUse *use = pointer->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        if (user->id == TILE_OP_PTR_ADD ? is_loaded(&user->results[0], loop) : user->id == TILE_OP_LOAD && tile_op_inside(user, loop)) return true;
    }
    return false;
}

typedef struct Search {
    Dot *dot;
    DotFinish *finish;
    const TileOp *product; /* the outermost loop around it */
    const TileValue *buffer, *from; /* c's memory, and its element (0, 0) as the rows see it */
    bool stores;
    bool at_once; /* a part has all columns */
} Search;

/* The columns that an op is executed for: `lanes` from the index on, a multiple of `lanes` behind the first. */
typedef struct Columns {
    TileValue *index;
    int64_t lanes;
} Columns;

/* The first column and the one behind the last are those of the product. */
static bool is_end(const Search *s, const TileValue *end) { return dot_is_range(s->dot->n, s->finish->first, end); }

/* Is the column so many behind the first that these are a multiple of the lanes, and not behind the last? */
static bool is_behind_lanes(const Search *s, const TileValue *column, int64_t lanes) {
    const TileValue *first = s->finish->first;
    int64_t number, columns;
    bool zero = tile_value_is_integer(first, 0);
    if (column == first || (zero && tile_value_is_integer(column, 0))) return true;
    if (zero && tile_value_integer(column, &number) && tile_value_integer(s->dot->n, &columns)) return number % lanes == 0 && number <= columns;
    const TileOp *add = zero ? NULL : tile_value_def(column, TILE_OP_ADD);
    if (!zero && (!add || tile_op_operand(add, 0) != first)) return false;
    const TileOp *whole = tile_value_def(zero ? column : tile_op_operand(add, 1), TILE_OP_AND);
    if (!whole || !tile_value_integer(tile_op_operand(whole, 1), &number) || number >= 0 || (number & (number - 1)) != number * 2) return false;
    return dot_is_count(s->dot->n, tile_op_operand(whole, 0)) && -number % lanes == 0;
}

static bool widen_span(Search *s, int64_t lanes) {
    int64_t span = s->finish->span, width = span;
    while (lanes > 0 && span % lanes && span <= WIDEST_SPAN) span += width;
    s->finish->span = span;
    return lanes > 0 && span <= WIDEST_SPAN;
}

static bool visit_block(Search *s, TileBlock *block, const Columns *columns);

/* From which column on something is loaded; NULL: it is not known. Where a part has all columns, any will do: nothing is left out of what a row does. */
static TileValue *find_column(const Search *s, const TileValue *address, const Columns *columns) {
    const TileOp *add = s->at_once && !columns ? tile_value_def(address, TILE_OP_PTR_ADD) : NULL;
    const TileOp *times = add ? tile_value_def(tile_op_operand(add, 1), TILE_OP_MUL) : NULL;
    int64_t bytes;
    if (!add) return columns ? columns->index : NULL;
    if (times) return tile_op_operand(times, 0);
    bool fixed = tile_value_integer(tile_op_operand(add, 1), &bytes) && bytes % s->dot->bytes == 0;
    return fixed ? tile_emit_i64(s->dot->emitter, bytes / s->dot->bytes) : NULL;
}

static bool visit_load(Search *s, TileOp *load, const Columns *columns) {
    const TileValue *address = tile_op_named(load, TILE_OPERAND_ADDRESS), *buffer = tile_buffer_of(address), *row = NULL, *size = NULL, *row_bytes = NULL;
    if (buffer != s->buffer) {
        const TileValue *tensor = buffer ? buffer : dot_tensor_of(address);
        return tensor && !is_changed(tensor, s->product);
    }
    TileValue *index = find_column(s, address, columns);
    int64_t bytes, number;
    if (!index || s->finish->load_count == DOT_FINISHED) return false;
    if (!columns && tile_value_integer(index, &number))
        row = tile_op_operand(address->op, 0);
    else if (!dot_is_step(address, index, &row, &size) || !tile_value_integer(size, &bytes) || bytes != s->dot->bytes)
        return false;
    bool one = dot_is_step(row, s->finish->rows->regions[0].arguments[0], &s->from, &row_bytes) && tile_value_is_same(row_bytes, s->dot->c.row);
    if (!one || tile_type_lanes(load->results[0].type) > (columns ? columns->lanes : s->finish->span)) return false;
    s->finish->loads[s->finish->load_count] = load;
    s->finish->indices[s->finish->load_count++] = index;
    return true;
}

/* What is stored is not loaded from. */
static bool visit_store(Search *s, TileOp *store, const Columns *columns) {
    const TileValue *tensor = dot_tensor_of(tile_op_named(store, TILE_OPERAND_ADDRESS));
    s->stores = true;
    return (columns || s->at_once) && tensor && !dot_is_accessed(tensor, s->product) && !is_loaded(tensor, s->finish->rows);
}

static bool visit_columns(Search *s, TileOp *loop) {
    int64_t lanes;
    TileValue *lo = tile_op_operand(loop, 0), *hi = tile_op_operand(loop, 1);
    if (loop->result_count || !tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &lanes) || !widen_span(s, lanes)) return false;
    if (!is_behind_lanes(s, lo, lanes) || (!is_end(s, hi) && !is_behind_lanes(s, hi, lanes)) || s->finish->loop_count == DOT_FINISHED) return false;
    s->finish->loops[s->finish->loop_count++] = loop;
    return visit_block(s, &loop->regions[0], &(Columns){loop->regions[0].arguments[0], lanes});
}

/* The columns behind the last whole vector, if there are any: as `if column < end`. NULL: it asks for something else. */
static TileValue *find_rest(const Search *s, const TileOp *branch) {
    const TileOp *less = tile_value_def(tile_op_operand(branch, 0), TILE_OP_LT);
    bool rest = less && is_end(s, tile_op_operand(less, 1)) && is_behind_lanes(s, tile_op_operand(less, 0), 1);
    return rest && branch->regions[1].first == branch->regions[1].last ? tile_op_operand(less, 0) : NULL;
}

/* The lanes of the vectors in the block. */
static int64_t lanes_of(const TileBlock *block) {
    int64_t lanes = 1;
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id == TILE_OP_LOAD && tile_type_lanes(op->results[0].type) > lanes) lanes = tile_type_lanes(op->results[0].type);
    return lanes;
}

static bool visit_branch(Search *s, TileOp *branch, const Columns *columns) {
    TileValue *rest = columns || s->at_once ? NULL : find_rest(s, branch);
    if (branch->result_count) return false;
    if (!rest) return visit_block(s, &branch->regions[0], columns) && visit_block(s, &branch->regions[1], columns);
    int64_t lanes = lanes_of(&branch->regions[0]);
    if (!widen_span(s, lanes) || !is_behind_lanes(s, rest, lanes) || s->finish->rest_count == DOT_FINISHED) return false;
    s->finish->rests[s->finish->rest_count] = branch;
    s->finish->rest_columns[s->finish->rest_count++] = rest;
    unsigned loads = s->finish->load_count;
    return visit_block(s, &branch->regions[0], &(Columns){rest, lanes}) && s->finish->load_count > loads;
}

static bool visit_block(Search *s, TileBlock *block, const Columns *columns) {
    for (TileOp *op = block->first; op != block->last; op = op->next) {
        bool pure = (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !op->region_count;
        bool fine = pure || (op->id == TILE_OP_LOAD && visit_load(s, op, columns)) || (op->id == TILE_OP_STORE && visit_store(s, op, columns)) ||
                    (op->id == TILE_OP_FOR && !columns && visit_columns(s, op)) || (op->id == TILE_OP_IF && visit_branch(s, op, columns));
        if (!fine) return false;
    }
    return true;
}

bool dot_finish_find(Dot *dot, const TileOp *product, TileOp *rows) {
    int64_t width;
    DotFinish finish = {.rows = rows, .span = dot->block_vectors * dot->lanes};
    const TileValue *buffer = tile_buffer_of(dot->c.pointer);
    Search s = {.dot = dot, .finish = &finish, .product = product, .buffer = buffer, .from = buffer};
    if (!buffer || !dot_place_in(dot, buffer, &finish.first_row, &finish.first) || rows->result_count || dot->scale || dot->spill) return false;
    if (!dot_is_same_index(tile_op_operand(rows, 0), finish.first_row) || !tile_value_is_integer(tile_op_named(rows, TILE_OPERAND_STEP), 1)) return false;
    bool wide = widen_span(&s, SPAN);
    /* Of words a part with all columns was measured in convolutions alone, which took from 0.96 to 1.05 of their time. */
    s.at_once = !dot->words && tile_value_is_integer(finish.first, 0) && dot->n_max <= finish.span;
    if (!wide || !visit_block(&s, &rows->regions[0], NULL) || !s.stores || !finish.load_count) return false;
    if (dot->wide && (!tile_value_integer(dot->width, &width) || width % finish.span)) return false;
    finish.all_rows = dot_is_range(dot->m, finish.first_row, tile_op_operand(rows, 1));
    finish.part = tile_build_buffer(&dot->emitter->front, dot->block_rows * finish.span * dot->bytes, ALIGN);
    dot->finish = finish;
    return true;
}

/* ---- a block ---- */

/* The first of the columns that are computed together with column j, both counted from c's first one. */
static TileValue *span_of(Dot *dot, TileValue *j) {
    TileValue *span = dot_i64(dot, dot->finish.span);
    return dot_multiply(dot, dot_binary(dot, TILE_OP_DIV, j, span), span);
}

TileValue *dot_finish_part(Dot *dot, TileValue *j) {
    return dot_offset(dot, dot->finish.part, dot_scale(dot, dot_binary(dot, TILE_OP_SUB, j, span_of(dot, j)), dot->bytes));
}

TileValue *dot_finish_row(Dot *dot) { return dot_i64(dot, dot->finish.span * dot->bytes); }

static TileValue *mapped(TileMap *map, TileValue *value) {
    TileValue *found = tile_map_get(map, value);
    return found ? found : value;
}

typedef struct Window {
    TileMap map;
    TileValue *row, *column, *end; /* its first row, its first column, and the one behind its last */
} Window;

static TileValue *limit(TileBuilder *b, TileOpId id, TileValue *x, TileValue *y) { return tile_build_binary(b, id, x, y); }

/* The sum's place in the part. */
static void redirect_load(Dot *dot, Window *w, unsigned i) {
    TileValue *result = &dot->finish.loads[i]->results[0];
    TileOp *load = mapped(&w->map, result)->op;
    TileBuilder b = tile_builder_before(dot->builder->module, load);
    TileValue *row = mapped(&w->map, dot->finish.rows->regions[0].arguments[0]), *index = mapped(&w->map, dot->finish.indices[i]);
    TileValue *row_bytes = tile_build_i64(&b, dot->finish.span * dot->bytes), *size = tile_build_i64(&b, dot->bytes);
    TileValue *down = limit(&b, TILE_OP_MUL, limit(&b, TILE_OP_SUB, row, w->row), row_bytes);
    TileValue *right = limit(&b, TILE_OP_MUL, limit(&b, TILE_OP_SUB, index, w->column), size);
    TileValue *address = tile_build_ptr_add(&b, tile_build_ptr_add(&b, dot->finish.part, down), right);
    for (unsigned o = 0; o < load->operand_count; o++)
        if (tile_op_operand(load, o)->type->kind == TILE_TYPE_POINTER) tile_op_set_operand(load, o, address);
}

static void limit_columns(Dot *dot, Window *w, const TileOp *loop) {
    TileOp *own = mapped(&w->map, loop->regions[0].arguments[0])->block->op;
    TileBuilder b = tile_builder_before(dot->builder->module, own);
    tile_op_set_operand(own, 0, limit(&b, TILE_OP_MAX, tile_op_operand(own, 0), w->column));
    tile_op_set_operand(own, 1, limit(&b, TILE_OP_MIN, tile_op_operand(own, 1), w->end));
}

/* The branch whose region has a load of which the copy is known. */
static TileOp *copy_of_branch(Dot *dot, Window *w, const TileOp *branch) {
    for (unsigned i = 0; i < dot->finish.load_count; i++) {
        const TileOp *load = dot->finish.loads[i];
        TileOp *copy = mapped(&w->map, &dot->finish.loads[i]->results[0])->op;
        for (; load->block->op != dot->finish.rows; load = load->block->op, copy = copy->block->op)
            if (load->block->op == branch) return copy->block->op;
    }
    return NULL;
}

static void limit_rest(Dot *dot, Window *w, unsigned i) {
    TileOp *own = copy_of_branch(dot, w, dot->finish.rests[i]);
    TileBuilder b = tile_builder_before(dot->builder->module, own);
    TileValue *column = mapped(&w->map, dot->finish.rest_columns[i]);
    TileValue *inside = limit(&b, TILE_OP_AND, limit(&b, TILE_OP_LE, w->column, column), limit(&b, TILE_OP_LT, column, w->end));
    tile_op_set_operand(own, 0, limit(&b, TILE_OP_AND, tile_op_operand(own, 0), inside));
}

void dot_finish_block(Dot *dot, TileValue *i, TileValue *j) {
    TileValue *from = span_of(dot, j), *next = dot_add(dot, j, dot->block_columns), *end = dot_add(dot, from, dot_i64(dot, dot->finish.span));
    TileValue *all = dot_binary(dot, TILE_OP_OR, dot_binary(dot, TILE_OP_LE, end, next), dot_binary(dot, TILE_OP_LE, dot->n, next));
    dot_if(dot, dot_binary(dot, TILE_OP_AND, dot->last, all));
    Window w = {.row = dot_add(dot, dot->finish.first_row, i), .column = dot_add(dot, dot->finish.first, from), .end = dot_add(dot, dot->finish.first, end)};
    TileValue *behind = dot_add(dot, dot->finish.first_row, dot_minimum(dot, dot_add(dot, i, dot_i64(dot, dot->block_rows)), dot->rows_end ? dot->rows_end : dot->m));
    tile_map_init(&w.map, dot->context->scratch);
    TileOp *rows = tile_op_clone(dot->builder->module, dot->finish.rows, &w.map);
    behind = dot_minimum(dot, behind, tile_op_operand(rows, 1));
    tile_builder_insert(dot->builder, rows);
    tile_op_set_operand(rows, 0, w.row);
    tile_op_set_operand(rows, 1, behind);
    for (unsigned l = 0; l < dot->finish.load_count; l++) redirect_load(dot, &w, l);
    for (unsigned l = 0; l < dot->finish.loop_count; l++) limit_columns(dot, &w, dot->finish.loops[l]);
    for (unsigned l = 0; l < dot->finish.rest_count; l++) limit_rest(dot, &w, l);
    dot_end(dot);
}
