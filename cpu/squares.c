/* Purpose: turn squares of elements in registers. Where a loop over rows has an inner loop whose lanes are apart in memory, as
 * where a tile is stored as its transpose, each vector would be gathered element by element, from lines that the next row
 * needs again, and that may be gone by then. So several rows are computed together by the inner loop: what they read
 * in each of its iterations are neighbours, a group, which is read by full vectors (vector_group.c). Stores likewise.
 *
 * Run: --passes=cpu-squares,canonicalise,cse,dce --target=avx2
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>) {
 *       %zero = const {value = 0} : i64
 *       %eight = const {value = 8} : i64
 *       %row = const {value = 64} : i64
 *       loop %zero, %eight {loop = parallel, extent = 8} (%i: i64) {
 *         %a = mul %i, %eight : i64
 *         %b = mul %i, %row : i64
 *         loop %zero, %eight {loop = parallel, extent = 8} (%j: i64) {
 *           %c = mul %j, %row : i64
 *           %d = ptr_add %x, %a : ptr<global>
 *           %p = ptr_add %d, %c : ptr<global>
 *           %v = load %p : f64
 *           %e = mul %j, %eight : i64
 *           %f = ptr_add %y, %b : ptr<global>
 *           %q = ptr_add %f, %e : ptr<global>
 *           store %v, %q
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>) {
 *       %zero = const {value = 0} : i64
 *       %eight = const {value = 8} : i64
 *       %row = const {value = 64} : i64
 *       %0 = const {value = 4} : i64
 *       %1 = const {value = 2} : i64
 *       loop %zero, %1 {loop = parallel, extent = 2} (%2: i64) {
 *         %3 = mul %2, %0 : i64
 *         %4 = const {value = 1} : i64
 *         %5 = add %3, %4 : i64
 *         %6 = add %3, %1 : i64
 *         %7 = const {value = 3} : i64
 *         %8 = add %3, %7 : i64
 *         %9 = const {value = 32} : i64
 *         %10 = mul %2, %9 : i64
 *         %11 = mul %5, %eight : i64
 *         %12 = mul %6, %eight : i64
 *         %13 = mul %8, %eight : i64
 *         %14 = const {value = 256} : i64
 *         %15 = mul %2, %14 : i64
 *         %16 = mul %5, %row : i64
 *         %17 = mul %6, %row : i64
 *         %18 = mul %8, %row : i64
 *         loop %zero, %eight {loop = parallel, extent = 8} (%19: i64) {
 *           %20 = mul %19, %row : i64
 *           %21 = ptr_add %x, %10 : ptr<global>
 *           %22 = ptr_add %x, %11 : ptr<global>
 *           %23 = ptr_add %x, %12 : ptr<global>
 *           %24 = ptr_add %x, %13 : ptr<global>
 *           %25 = ptr_add %21, %20 : ptr<global>
 *           %26 = ptr_add %22, %20 : ptr<global>
 *           %27 = ptr_add %23, %20 : ptr<global>
 *           %28 = ptr_add %24, %20 : ptr<global>
 *           %29 = load %25 : f64
 *           %30 = load %26 : f64
 *           %31 = load %27 : f64
 *           %32 = load %28 : f64
 *           %33 = mul %19, %eight : i64
 *           %34 = ptr_add %y, %15 : ptr<global>
 *           %35 = ptr_add %y, %16 : ptr<global>
 *           %36 = ptr_add %y, %17 : ptr<global>
 *           %37 = ptr_add %y, %18 : ptr<global>
 *           %38 = ptr_add %34, %33 : ptr<global>
 *           %39 = ptr_add %35, %33 : ptr<global>
 *           %40 = ptr_add %36, %33 : ptr<global>
 *           %41 = ptr_add %37, %33 : ptr<global>
 *           store %29, %38
 *           store %30, %39
 *           store %31, %40
 *           store %32, %41
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Loops over fewer rows than are computed together stay, as does what is left over of others; and masked accesses, which are no
 * groups.
 * Needs: nothing. Keeps: the results, since the iterations of both loops may run in any order.
 * Cost: linear in the copied ops, of which there are MOST_OPS at most for each pair of loops. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum {
    WORD_BYTES = 4,  /* narrower elements are moved by words */
    MOST_OPS = 512,  /* of an inner loop: compiling takes time */
    MOST_TURNED = 4, /* accesses whose elements are in registers at a time */
};

typedef struct Squares {
    TilePassContext *context;
    TileModule *module;
    TileOp *rows, *lanes; /* the outer loop, and the inner one */
    int64_t together;     /* how many rows */
    unsigned masked;      /* accesses that would be turned, but for their masks */
    TileMap by_row;       /* values that differ from row to row */
    TileMap shared;       /* old values to new ones, of all rows */
    TileMap *own;         /* of each row */
    bool changed;
} Squares;

/* ---- which loops ---- */

static bool is_simple(const TileOp *op) {
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_CONST || op->id == TILE_OP_PTR_ADD;
}

static bool is_access(const TileOp *op) { return op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE; }

static bool is_plain_loop(const TileOp *op) {
    return op->id == TILE_OP_LOOP && !op->result_count && tile_loop_kind(op) == TILE_LOOP_KIND_PARALLEL;
}

/* The loop in the loop over rows, if there is nothing beside it but what is computed or loaded for it. */
static TileOp *inner_loop(const TileOp *rows) {
    TileOp *found = NULL;
    for (TileOp *op = rows->regions[0].first; op != rows->regions[0].last; op = op->next) {
        if (is_plain_loop(op) && !found)
            found = op;
        else if (!is_simple(op) && op->id != TILE_OP_LOAD)
            return NULL;
    }
    for (unsigned i = 0; found && i < 2; i++)
        if (!tile_value_outside(tile_op_operand(found, i), rows)) return NULL;
    return found;
}

/* Is it stored elsewhere by each row? A row of scratch memory may be that of all. */
static bool is_by_row(TileStrides *of_rows, const TileOp *store) {
    return tile_stride_of(of_rows, tile_op_named(store, TILE_OPERAND_ADDRESS)).kind == TILE_SLOPE_AFFINE;
}

/* How many accesses of the inner loop are turned; 0: none, or it cannot be copied. Of strides that are not known the likely ones
 * decide: they matter for the time alone. */
static unsigned count_turned(Squares *x, unsigned *ops) {
    TileStrides of_rows, of_lanes;
    unsigned turned = 0;
    tile_strides_init(&of_rows, x->context, x->rows);
    tile_strides_init(&of_lanes, x->context, x->lanes);
    of_rows.assumes = of_lanes.assumes = true;
    *ops = x->masked = 0;
    for (const TileOp *op = x->lanes->regions[0].first; op != x->lanes->regions[0].last; op = op->next, ++*ops) {
        if (!is_access(op) && !is_simple(op)) return 0;
        if (op->id == TILE_OP_STORE && !is_by_row(&of_rows, op)) return 0;
        if (!is_access(op) || !tile_access_is_turned(op, &of_rows, &of_lanes)) continue;
        if (tile_op_has_part(op, TILE_PARTS_MASK))
            x->masked++;
        else
            turned++;
    }
    return turned;
}

static unsigned widest(const TileOp *loop) {
    unsigned bytes = WORD_BYTES;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next)
        if (is_access(op) && tile_scalar_bytes(tile_access_scalar(op)) > bytes) bytes = tile_scalar_bytes(tile_access_scalar(op));
    return bytes;
}

/* What keeps rows from being computed together; NULL: nothing does. */
static const char *obstacle(const Squares *x, unsigned ops, unsigned turned, int64_t lanes) {
    if (!turned) return "its accesses have masks";
    if (turned > MOST_TURNED || x->together < 4) return "more of its accesses are apart in memory than registers have squares for";
    if (tile_loop_extent(x->rows) < x->together || tile_loop_extent(x->lanes) < lanes) return "a tile has less than one square of elements";
    return ops * (unsigned)x->together > MOST_OPS ? "copies of its body for each row of a square would be too long" : NULL;
}

/* As many rows as a vector has lanes, or fewer where more than one element of each is turned. */
static bool decide(Squares *x, TileOp *op) {
    const TileTarget *target = x->context->target;
    unsigned ops;
    x->rows = op;
    if (!is_plain_loop(op) || !(x->lanes = inner_loop(op))) return false;
    unsigned turned = count_turned(x, &ops);
    if (!turned && !x->masked) return false;
    int64_t lanes = (int64_t)(target->vector_bytes / widest(x->lanes));
    x->together = lanes;
    for (unsigned left = turned; left > 1; left = (left + 1) / 2) x->together /= 2;
    const char *reason = obstacle(x, ops, turned, lanes);
    if (reason)
        tile_pass_remark(x->context, x->lanes, TILE_DECISION_NOT_TURNED, "the loop", "%s", reason);
    else
        tile_pass_remark(x->context, x->lanes, TILE_DECISION_TURNED, "the loop", "%lld rows together", (long long)x->together);
    return !reason;
}

/* ---- copies ---- */

static bool differs(Squares *x, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_map_get(&x->by_row, tile_op_operand(op, i))) return true;
    return false;
}

static TileValue *new_value(Squares *x, TileValue *value, int64_t row) {
    TileValue *found = tile_map_get(tile_map_get(&x->by_row, value) ? &x->own[row] : &x->shared, value);
    return found ? found : value;
}

static void copy_op(Squares *x, TileBuilder *b, const TileOp *op, int64_t row) {
    TileValue *operands[4];
    const TileType *type = op->result_count ? op->results[0].type : NULL;
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = new_value(x, tile_op_operand(op, i), row);
    b->location = op->location;
    TileOp *copy = tile_build_op(b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count,
                                 op->result_count ? &type : NULL, op->result_count);
    if (!op->result_count) return;
    bool by_row = tile_map_get(&x->by_row, &op->results[0]) != NULL;
    tile_map_set(by_row ? &x->own[row] : &x->shared, &op->results[0], tile_op_result(copy, 0));
}

/* Each op for all rows, one after the other, so that their accesses are a group. */
static void copy_block(Squares *x, TileBuilder *b, const TileBlock *block) {
    for (const TileOp *op = block->first; op != block->last; op = op->next) {
        if (op == x->lanes) continue;
        bool by_row = differs(x, op) || op->id == TILE_OP_STORE;
        if (by_row && op->result_count) tile_map_set(&x->by_row, &op->results[0], (void *)op);
        for (int64_t row = 0; row < (by_row ? x->together : 1); row++) copy_op(x, b, op, row);
    }
}

static void copy_lanes(Squares *x, TileBuilder *b) {
    const TileOp *old = x->lanes;
    b->location = old->location;
    TileOp *loop = tile_build_loop(b, TILE_LOOP_KIND_PARALLEL, new_value(x, tile_op_operand(old, 0), 0),
                                   new_value(x, tile_op_operand(old, 1), 0), tile_loop_extent(old), NULL, 0);
    TileBuilder inner = tile_builder_at_end(x->module, &loop->regions[0]);
    tile_map_set(&x->shared, old->regions[0].arguments[0], loop->regions[0].arguments[0]);
    copy_block(x, &inner, &old->regions[0]);
    tile_build_end(&inner, TILE_OP_YIELD, NULL, 0);
}

/* The loop over squares, in front of that over rows, which is left with the others. */
static void make_squares(Squares *x) {
    TileOp *rows = x->rows;
    TileBuilder b = tile_builder_before(x->module, rows);
    TileValue *lo = tile_op_operand(rows, 0), *hi = tile_op_operand(rows, 1), *each = tile_build_i64(&b, x->together);
    TileValue *count = tile_build_binary(&b, TILE_OP_SUB, hi, lo), *none = tile_build_i64(&b, 0);
    count = tile_build_binary(&b, TILE_OP_DIV, tile_build_binary(&b, TILE_OP_MAX, count, none), each);
    TileOp *loop = tile_build_loop(&b, TILE_LOOP_KIND_PARALLEL, none, count, tile_loop_extent(rows) / x->together, NULL, 0);
    TileBuilder inner = tile_builder_at_end(x->module, &loop->regions[0]);
    TileValue *index = rows->regions[0].arguments[0], *number = loop->regions[0].arguments[0];
    TileValue *first = tile_build_binary(&inner, TILE_OP_ADD, lo, tile_build_binary(&inner, TILE_OP_MUL, number, each));
    tile_map_init(&x->by_row, x->context->scratch);
    tile_map_init(&x->shared, x->context->scratch);
    x->own = TILE_NEW_ARRAY(x->context->scratch, TileMap, x->together);
    tile_map_set(&x->by_row, index, rows);
    for (int64_t row = 0; row < x->together; row++) {
        tile_map_init(&x->own[row], x->context->scratch);
        tile_map_set(&x->own[row], index, row ? tile_build_binary(&inner, TILE_OP_ADD, first, tile_build_i64(&inner, row)) : first);
    }
    copy_block(x, &inner, &rows->regions[0]);
    copy_lanes(x, &inner);
    tile_build_end(&inner, TILE_OP_YIELD, NULL, 0);
    int64_t begin, end;
    if (tile_value_integer(lo, &begin) && tile_value_integer(hi, &end) && (end - begin) % x->together == 0) {
        tile_op_erase(rows);
        return;
    }
    TileValue *done = tile_build_binary(&b, TILE_OP_ADD, lo, tile_build_binary(&b, TILE_OP_MUL, count, each));
    tile_op_set_operand(rows, 0, done);
    tile_op_set_integer(x->module, rows, TILE_ATTRIBUTE_EXTENT, x->together - 1);
}

static void visit_block(Squares *x, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (decide(x, op)) {
            make_squares(x);
            x->changed = true;
            continue;
        }
        for (unsigned i = 0; i < op->region_count; i++) visit_block(x, &op->regions[i]);
    }
}

TileResult tile_pass_cpu_squares(TilePassContext *context, TileFunc *func) {
    Squares x = {.context = context, .module = context->module};
    if (!context->target || context->target->scalable) return TILE_RESULT_UNCHANGED;
    visit_block(&x, &func->body);
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
