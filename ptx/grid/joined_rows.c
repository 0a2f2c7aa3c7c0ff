/* Neighbouring programs as rows: every value that differs from one to the next gets an axis more, in front, and so do the tiles that are computed of it.
 * What is the same for all of them is computed once. An index of a load that differs becomes a tile of indices, whatever it is computed by; the
 * rows that are stored follow one another. */
#include "base/temp.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/grid/joined.h"

enum { MOST_OPERANDS = 3 + 4 * TILE_MAX_TENSOR_RANK };

typedef struct Rows {
    TileJoin *join;
    TileMap made;     /* values that differ, to the tile of all of them, or to themselves before they are made */
    int64_t count;
    TileValue *first, *left; /* the number of the first row; how many programs there are from there on */
    TileBuilder b;
} Rows;

static bool refuse(const Rows *rows, const TileOp *place, const char *why) {
    if (!rows->join->why) {
        rows->join->why = why;
        rows->join->place = place;
    }
    return false;
}

static bool differs(const Rows *rows, const TileValue *value) { return tile_map_get(&rows->made, value) != NULL; }

static bool any_differs(const Rows *rows, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (differs(rows, tile_op_operand(op, i))) return true;
    return false;
}

/* ---- can they be? ---- */

/* What is the same for all rows, of a number that is the program's and that; NULL: it is the program's itself. */
static bool is_place(const Rows *rows, const TileValue *value, TileValue **more) {
    *more = NULL;
    if (value == rows->join->number) return true;
    const TileOp *sum = tile_value_def(value, TILE_OP_ADD);
    for (unsigned i = 0; sum && i < 2; i++)
        if (tile_op_operand(sum, i) == rows->join->number && !differs(rows, tile_op_operand(sum, 1 - i))) {
            *more = tile_op_operand(sum, 1 - i);
            return true;
        }
    return false;
}

static bool is_not_negative(const TileValue *value) {
    int64_t number;
    if (tile_value_integer(value, &number)) return number >= 0;
    const TileOp *most = tile_value_def(value, TILE_OP_MAX);
    return most && (is_not_negative(tile_op_operand(most, 0)) || is_not_negative(tile_op_operand(most, 1)));
}

/* Of lanes lo..hi: a test that differs from row to row, without which there is none of them, as where the row's index is outside; the bound is `*hi` where
 * it holds, the same for all. NULL: there is no such test. */
static TileValue *test_of_row(const Rows *rows, const TileValue *lo, TileValue **hi) {
    const TileOp *choice = tile_value_def(*hi, TILE_OP_SELECT);
    if (!choice || !tile_value_is_integer(tile_op_named(choice, TILE_OPERAND_Y), 0)) return NULL;
    TileValue *test = tile_op_named(choice, TILE_OPERAND_CONDITION), *with = tile_op_named(choice, TILE_OPERAND_X);
    if (!differs(rows, test) || differs(rows, with) || differs(rows, lo) || !is_not_negative(lo)) return NULL;
    *hi = with;
    return test;
}

/* Are ranges behind the dimension in front of which the rows' axis stands, and the same for all, or those of a load empty where a row's test says so? */
static bool check_ranges(const Rows *rows, const TileOp *op, const TileAccessIndex *indices, unsigned rank, unsigned first) {
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind != TILE_ACCESS_RANGE) continue;
        TileValue *hi = indices[d].hi;
        if (d < first) return refuse(rows, op, "a range is in front of the index that differs");
        if (op->id == TILE_OP_LOAD_TILE) test_of_row(rows, indices[d].lo, &hi);
        if (differs(rows, indices[d].first) || differs(rows, indices[d].step) || differs(rows, indices[d].lo) || differs(rows, hi))
            return refuse(rows, op, "bounds of a range differ from one to the next");
    }
    return true;
}

static bool has_attributes(const TileOp *op) {
    for (unsigned i = 0; i < op->attribute_count; i++)
        if (op->attributes[i].key != TILE_ATTRIBUTE_ACCESS && op->attributes[i].key != TILE_ATTRIBUTE_PARTS) return true;
    return false;
}

static bool check_load(const Rows *rows, const TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices), first = rank;
    bool any = false;
    for (unsigned d = rank; d-- > 0;) {
        bool differ = indices[d].kind != TILE_ACCESS_RANGE && differs(rows, indices[d].first);
        any |= differ;
        if (differ || indices[d].kind == TILE_ACCESS_GATHER) first = d;
    }
    if (!any) return refuse(rows, op, "what is loaded differs by a mask alone");
    if (has_attributes(op)) return refuse(rows, op, "an access with attributes");
    return check_ranges(rows, op, indices, rank, first);
}

static bool check_store(const Rows *rows, const TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices), first = rank;
    TileValue *more;
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind == TILE_ACCESS_GATHER) return refuse(rows, op, "it scatters");
        if (indices[d].kind == TILE_ACCESS_RANGE || !differs(rows, indices[d].first)) continue;
        if (first < rank || !is_place(rows, indices[d].first, &more)) return refuse(rows, op, "the rows that are stored do not follow one another");
        first = d;
    }
    if (first == rank) return refuse(rows, op, "several store the same elements");
    if (has_attributes(op)) return refuse(rows, op, "an access with attributes");
    return check_ranges(rows, op, indices, rank, first);
}

static bool check_fill(const Rows *rows, const TileOp *op) {
    unsigned count = tile_op_get(op, TILE_ATTRIBUTE_AXES)->count;
    for (unsigned i = 0; i < count; i++) {
        TileValue *lo = tile_fill_lo(op, i), *hi = tile_fill_hi(op, i);
        test_of_row(rows, lo, &hi);
        if (differs(rows, lo) || differs(rows, hi)) return refuse(rows, op, "a bound of a fill");
    }
    return !differs(rows, tile_op_named(op, TILE_OPERAND_FILLING)) || refuse(rows, op, "what is filled in");
}

/* Of numbers, which all are computed before one is chosen. */
static bool check_branch(Rows *rows, TileOp *op) {
    bool any = any_differs(rows, op);
    for (unsigned i = 0; i < op->result_count; i++)
        if (tile_type_is_tile(op->results[i].type)) return refuse(rows, op, "a branch");
    for (unsigned r = 0; r < op->region_count; r++)
        for (TileOp *inner = op->regions[r].first; inner; inner = inner->next) {
            bool ends = tile_op_info(inner->id)->traits & TILE_TRAIT_TERMINATOR;
            if (!ends && (tile_op_info(inner->id)->class != TILE_CLASS_ELEMENTWISE && inner->id != TILE_OP_CONST)) return refuse(rows, op, "a branch");
            any |= any_differs(rows, inner);
        }
    for (unsigned i = 0; any && i < op->result_count; i++) tile_map_set(&rows->made, &op->results[i], &op->results[i]);
    for (unsigned r = 0; any && r < op->region_count; r++) /* they are computed in front of it */
        for (TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            for (unsigned i = 0; i < inner->result_count; i++) tile_map_set(&rows->made, &inner->results[i], &inner->results[i]);
    return true;
}

static bool check_shape(const Rows *rows, const TileOp *op) {
    bool shape = op->id == TILE_OP_SPLAT || op->id == TILE_OP_BROADCAST || op->id == TILE_OP_RESHAPE || op->id == TILE_OP_PERMUTE ||
                 op->id == TILE_OP_SLICE || op->id == TILE_OP_CAT || op->id == TILE_OP_REDUCE;
    if (op->id == TILE_OP_REDUCE && op->attribute_count > 2) return refuse(rows, op, "a reduction with attributes");
    return shape || tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE || refuse(rows, op, "an op whose lanes depend on one another");
}

static bool check_op(Rows *rows, TileOp *op) {
    if (op->id == TILE_OP_STORE_TILE) return check_store(rows, op);
    if (op->id == TILE_OP_IF) return check_branch(rows, op);
    if (op->id != TILE_OP_LOAD_TILE && !tile_op_is_pure(op)) return refuse(rows, op, "an op with an effect of its own");
    if (!any_differs(rows, op)) return true;
    bool can = op->id == TILE_OP_LOAD_TILE ? check_load(rows, op) : op->id == TILE_OP_FILL ? check_fill(rows, op) : check_shape(rows, op);
    for (unsigned i = 0; i < op->result_count; i++) {
        if (op->results[i].type->rank + 1 >= TILE_MAX_TILE_RANK) return refuse(rows, op, "a tile of as many axes as there may be");
        tile_map_set(&rows->made, &op->results[i], &op->results[i]);
    }
    return can;
}

/* ---- the rows ---- */

static const TileType *type_of_rows(const Rows *rows, const TileType *type) {
    int64_t extents[TILE_MAX_TILE_RANK] = {rows->count};
    for (unsigned i = 0; i < type->rank; i++) extents[i + 1] = type->extent[i];
    return tile_type_tile(rows->join->context->module->context, type->scalar, type->rank + 1u, extents);
}

/* The value for each row, in the shape of `like`, of which a scalar is the same everywhere. */
static TileValue *in_rows(Rows *rows, TileValue *value, const TileType *like) {
    TileValue *made = tile_map_get(&rows->made, value);
    const TileType *all = type_of_rows(rows, like);
    bool tile = tile_type_is_tile(value->type);
    int64_t extents[TILE_MAX_TILE_RANK];
    if (made && (tile || !like->rank)) return made;
    for (unsigned i = 0; i < all->rank; i++) extents[i] = made ? 1 : all->extent[i];
    extents[0] = made ? rows->count : 1;
    if (!made && !tile) return tile_build_splat(&rows->b, value, tile_type_tile(rows->join->context->module->context, value->type->scalar, all->rank, all->extent));
    TileValue *flat = tile_build_reshape(&rows->b, made ? made : value, all->rank, extents);
    return tile_build_broadcast(&rows->b, flat, all->extent);
}

static TileValue *in_shape(Rows *rows, TileValue *tile, const TileType *like) { return tile_build_reshape(&rows->b, tile, like->rank, like->extent); }

/* The `and` of tests of rows, in the shape of a tile. */
typedef struct RowTests {
    TileValue *all, *last; /* NULL: there are none */
} RowTests;

static void add_test(Rows *rows, RowTests *tests, TileValue *test, const TileType *like) {
    if (!test || test == tests->last) return;
    TileValue *made = in_rows(rows, test, like);
    tests->all = tests->all ? tile_build_binary(&rows->b, TILE_OP_AND, tests->all, made) : made;
    tests->last = test;
}

/* The type of what a load gives: lanes that it gathers follow one another row by row. */
static const TileType *type_of_loaded(const Rows *rows, const TileType *type, bool gathers) {
    int64_t extents[TILE_MAX_TILE_RANK] = {rows->count * (gathers ? type->extent[0] : 1)};
    for (unsigned i = gathers; i < type->rank; i++) extents[i + !gathers] = type->extent[i];
    return tile_type_tile(rows->join->context->module->context, type->scalar, type->rank + !gathers, extents);
}

/* Which rows are loaded: those whose tests hold, without which their ranges would be empty, and that the mask lets through. Ranges get the bounds that they
 * have where it is so. */
static RowTests tests_of_load(Rows *rows, TileOp *op, const TileAccessIndex *indices, unsigned rank, TileValue **operands) {
    RowTests tests = {NULL, NULL};
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind != TILE_ACCESS_RANGE) continue;
        TileValue *hi = indices[d].hi, *test = test_of_row(rows, indices[d].lo, &hi);
        operands[indices[d].operand + 3] = hi;
        add_test(rows, &tests, test, op->results[0].type);
    }
    if (tile_op_has_part(op, TILE_PARTS_MASK)) add_test(rows, &tests, tile_op_named(op, TILE_OPERAND_MASK), op->results[0].type);
    return tests;
}

static void make_load(Rows *rows, TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileValue *operands[MOST_OPERANDS], *value = &op->results[0];
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices);
    const TileType *index = tile_type_scalar(rows->join->context->module->context, TILE_I64);
    bool gathers = false;
    for (unsigned d = 0; d < rank; d++) gathers |= indices[d].kind == TILE_ACCESS_GATHER;
    if (gathers) index = tile_type_tile(rows->join->context->module->context, TILE_I64, 1, value->type->extent);
    const TileType *loaded = type_of_loaded(rows, value->type, gathers), *places = type_of_loaded(rows, index, gathers);
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = tile_op_operand(op, i);
    for (unsigned d = 0; d < rank; d++) {
        bool tiled = indices[d].kind == TILE_ACCESS_GATHER || (indices[d].kind == TILE_ACCESS_INDEX && differs(rows, indices[d].first));
        kinds[d] = tiled ? TILE_ACCESS_GATHER : (int64_t)indices[d].kind;
        if (tiled) operands[indices[d].operand] = in_shape(rows, in_rows(rows, indices[d].first, index), places);
    }
    RowTests tests = tests_of_load(rows, op, indices, rank, operands);
    unsigned count = tile_access_end(op), part_count = 0;
    int64_t parts[2];
    if (tests.all) {
        operands[count++] = in_shape(rows, tests.all, loaded);
        parts[part_count++] = TILE_PARTS_MASK;
    }
    if (tile_op_has_part(op, TILE_PARTS_FILL)) {
        operands[count++] = in_shape(rows, in_rows(rows, tile_op_named(op, TILE_OPERAND_FILLING), value->type), loaded);
        parts[part_count++] = TILE_PARTS_FILL;
    }
    TileAttribute attributes[2] = {{.key = TILE_ATTRIBUTE_ACCESS, .count = rank, .integers = kinds},
                                   {.key = TILE_ATTRIBUTE_PARTS, .count = part_count, .integers = parts}};
    TileOp *made = tile_build_op(&rows->b, TILE_OP_LOAD_TILE, operands, count, attributes, part_count ? 2 : 1, &loaded, 1);
    tile_map_set(&rows->made, value, in_shape(rows, &made->results[0], type_of_rows(rows, value->type)));
}

static void make_store(Rows *rows, TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    TileValue *operands[MOST_OPERANDS], *value = tile_op_named(op, TILE_OPERAND_VALUE), *more;
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices), count = tile_access_first(op);
    TileBuilder *b = &rows->b;
    operands[0] = tile_op_operand(op, 0);
    operands[1] = in_rows(rows, value, value->type);
    for (unsigned d = 0; d < rank; d++) {
        bool row = indices[d].kind == TILE_ACCESS_INDEX && differs(rows, indices[d].first);
        kinds[d] = row ? TILE_ACCESS_RANGE : (int64_t)indices[d].kind;
        if (row) {
            is_place(rows, indices[d].first, &more);
            operands[count++] = more ? tile_build_binary(b, TILE_OP_ADD, rows->first, more) : rows->first;
            operands[count++] = tile_build_i64(b, 1);
            operands[count++] = tile_build_i64(b, 0);
            operands[count++] = tile_build_binary(b, TILE_OP_MIN, rows->left, tile_build_i64(b, rows->count));
            continue;
        }
        for (unsigned i = 0; i < tile_access_operands(indices[d].kind); i++) operands[count++] = tile_op_operand(op, indices[d].operand + i);
    }
    for (unsigned i = tile_access_end(op); i < op->operand_count; i++) operands[count++] = in_rows(rows, tile_op_operand(op, i), value->type);
    TileAttribute attributes[2] = {{.key = TILE_ATTRIBUTE_ACCESS, .count = rank, .integers = kinds}};
    const TileAttribute *parts = tile_op_get(op, TILE_ATTRIBUTE_PARTS);
    if (parts) attributes[1] = *parts;
    tile_build_op(b, TILE_OP_STORE_TILE, operands, count, attributes, parts ? 2 : 1, NULL, 0);
}

static TileValue *make_fill(Rows *rows, TileOp *op) {
    const TileAttribute *given = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    int64_t axes[TILE_MAX_TILE_RANK];
    TileValue *bounds[2 * TILE_MAX_TILE_RANK];
    RowTests tests = {NULL, NULL};
    TileValue *filling = tile_op_named(op, TILE_OPERAND_FILLING);
    const TileType *type = op->results[0].type;
    for (unsigned i = 0; i < given->count; i++) {
        axes[i] = given->integers[i] + 1;
        bounds[2 * i] = tile_fill_lo(op, i);
        bounds[2 * i + 1] = tile_fill_hi(op, i);
        add_test(rows, &tests, test_of_row(rows, bounds[2 * i], &bounds[2 * i + 1]), type);
    }
    TileValue *filled = tile_build_fill(&rows->b, in_rows(rows, tile_op_operand(op, 0), type), filling, axes, bounds, given->count);
    return tests.all ? tile_build_ternary(&rows->b, TILE_OP_SELECT, tests.all, filled, in_rows(rows, filling, type)) : filled;
}

/* Ops that only change a shape: that of each row. */
static TileValue *make_shape(Rows *rows, TileOp *op) {
    TileBuilder *b = &rows->b;
    TileValue *x = tile_op_operand(op, 0), *all = in_rows(rows, x, x->type);
    const TileType *type = type_of_rows(rows, op->results[0].type);
    const TileAttribute *given = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1, axes[TILE_MAX_TILE_RANK] = {0};
    for (unsigned i = 0; given && i < given->count; i++) axes[i + 1] = given->integers[i] + 1;
    if (op->id == TILE_OP_PERMUTE) return tile_build_permute(b, all, axes);
    if (op->id == TILE_OP_RESHAPE) return tile_build_reshape(b, all, type->rank, type->extent);
    if (op->id == TILE_OP_SLICE) return tile_build_slice(b, all, axis, tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0), type->extent[axis]);
    if (op->id == TILE_OP_REDUCE) return tile_build_reduce(b, all, (TileName)tile_op_integer(op, TILE_ATTRIBUTE_KIND, 0), axis);
    if (op->id == TILE_OP_CAT) return tile_build_cat(b, all, in_rows(rows, tile_op_operand(op, 1), tile_op_operand(op, 1)->type), axis);
    if (op->id == TILE_OP_SPLAT) return in_rows(rows, x, op->results[0].type);
    return tile_build_broadcast(b, all, type->extent);
}

static TileValue *make_elementwise(Rows *rows, TileOp *op) {
    TileValue *operands[3];
    const TileType *result = op->results[0].type, *type = type_of_rows(rows, result);
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = in_rows(rows, tile_op_operand(op, i), result);
    return tile_op_result(tile_build_op(&rows->b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count, &type, 1), 0);
}

static void make_op(Rows *rows, TileOp *op);

static void make_branch(Rows *rows, TileOp *op) {
    TileValue *test = tile_op_operand(op, 0);
    for (unsigned r = 0; r < op->region_count; r++)
        for (TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (!(tile_op_info(inner->id)->traits & TILE_TRAIT_TERMINATOR)) make_op(rows, inner);
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileType *type = op->results[i].type;
        TileValue *x = tile_op_named_at(op->regions[0].last, TILE_OPERAND_VALUES, i), *y = tile_op_named_at(op->regions[1].last, TILE_OPERAND_VALUES, i);
        TileValue *chosen = tile_build_ternary(&rows->b, TILE_OP_SELECT, in_rows(rows, test, type), in_rows(rows, x, type), in_rows(rows, y, type));
        tile_map_set(&rows->made, &op->results[i], chosen);
    }
}

static void make_op(Rows *rows, TileOp *op) {
    rows->b.location = op->location;
    if (op->id == TILE_OP_STORE_TILE)
        make_store(rows, op);
    else if (op->id == TILE_OP_LOAD_TILE)
        make_load(rows, op);
    else if (op->id == TILE_OP_IF)
        make_branch(rows, op);
    else if (op->id == TILE_OP_FILL)
        tile_map_set(&rows->made, &op->results[0], make_fill(rows, op));
    else if (op->id == TILE_OP_CONST)
        tile_map_set(&rows->made, &op->results[0], tile_build_bits(&rows->b, type_of_rows(rows, op->results[0].type), tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits));
    else if (tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE)
        tile_map_set(&rows->made, &op->results[0], make_elementwise(rows, op));
    else
        tile_map_set(&rows->made, &op->results[0], make_shape(rows, op));
}

/* ---- all ---- */

static bool is_of_rows(const Rows *rows, const TileOp *op) {
    if (op->id == TILE_OP_STORE_TILE) return true;
    for (unsigned i = 0; i < op->result_count; i++)
        if (differs(rows, &op->results[i])) return true;
    return false;
}

/* The numbers of those that are computed together, behind the first one, of which so many are left. One that there is not computes what the last one does, and
 * stores nothing. */
static void number(Rows *rows) {
    TileJoin *join = rows->join;
    const TileType *type = type_of_rows(rows, join->number->type);
    TileValue *last = tile_build_binary(&rows->b, TILE_OP_SUB, rows->left, tile_build_i64(&rows->b, 1)), *none = tile_build_i64(&rows->b, 0);
    TileValue *lanes = tile_build_binary(&rows->b, TILE_OP_MIN, tile_build_iota(&rows->b, type, 0), tile_build_splat(&rows->b, last, type));
    lanes = tile_build_binary(&rows->b, TILE_OP_MAX, lanes, tile_build_splat(&rows->b, none, type)); /* a small number, as is to be known */
    TileValue *numbers = tile_build_binary(&rows->b, TILE_OP_ADD, lanes, tile_build_splat(&rows->b, rows->first, type));
    tile_map_set(&rows->made, join->number, numbers);
}

static void begin(Rows *rows, TileValue *programs) {
    TileJoin *join = rows->join;
    TileOp *grid = join->around;
    TileBuilder host = tile_builder_before(join->context->module, grid);
    TileValue *rounded = tile_build_binary(&host, TILE_OP_ADD, programs, tile_build_i64(&host, rows->count - 1));
    for (unsigned i = 0; i < grid->operand_count; i++)
        if (grid->regions[0].arguments[i] == join->number)
            tile_op_set_operand(grid, i, tile_build_binary(&host, TILE_OP_DIV, rounded, tile_build_i64(&host, rows->count)));
    rows->b = tile_builder_before(join->context->module, grid->regions[0].first);
    rows->first = tile_build_binary(&rows->b, TILE_OP_MUL, join->number, tile_build_i64(&rows->b, rows->count));
    rows->left = tile_build_binary(&rows->b, TILE_OP_SUB, programs, rows->first);
    number(rows);
}

/* The same of a loop of step 1, which then takes so many steps at a time. */
static void begin_loop(Rows *rows) {
    TileOp *loop = rows->join->around;
    unsigned count, step = tile_op_operands(loop, TILE_OPERAND_STEP, &count);
    TileBuilder before = tile_builder_before(rows->join->context->module, loop);
    tile_op_set_operand(loop, step, tile_build_i64(&before, rows->count));
    rows->b = tile_builder_before(rows->join->context->module, loop->regions[0].first);
    rows->first = tile_build_binary(&rows->b, TILE_OP_ADD, rows->join->number, tile_build_i64(&rows->b, 0)); /* a value that does not differ */
    rows->left = tile_build_binary(&rows->b, TILE_OP_SUB, tile_op_named(loop, TILE_OPERAND_HI), rows->first);
    number(rows);
}

bool gpu_join_as_rows(TileJoin *join, int64_t count, TileValue *programs) {
    TileBlock *body = &join->around->regions[0];
    Rows rows = {.join = join, .count = count};
    TileOp *old = body->first;
    tile_map_init(&rows.made, join->context->scratch);
    tile_map_set(&rows.made, join->number, join->number);
    for (TileOp *op = old; op; op = op->next)
        if (!(tile_op_info(op->id)->traits & TILE_TRAIT_TERMINATOR) && !check_op(&rows, op)) return false;
    if (programs) begin(&rows, programs);
    else begin_loop(&rows);
    for (TileOp *op = old; op; op = op->next) {
        if (!is_of_rows(&rows, op)) continue;
        rows.b = tile_builder_before(join->context->module, op);
        make_op(&rows, op);
    }
    for (TileOp *op = body->last, *before; op; op = before) {
        before = op->previous;
        bool was = op == old;
        bool of_rows = op->id == TILE_OP_STORE_TILE ? any_differs(&rows, op) : is_of_rows(&rows, op);
        if (of_rows && !(tile_op_info(op->id)->traits & TILE_TRAIT_TERMINATOR)) tile_op_erase(op);
        if (was) break;
    }
    return true;
}
