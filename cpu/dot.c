/* Purpose: expand dot_block into loops that pack both operands and run a register-blocked micro-kernel.
 *
 * Run: --passes=cpu-dot,canonicalise,cse,dce --target=avx2
 * Before:
 *     func phase machine @k.0(%a: ptr<global>, %b: ptr<global>, %c: ptr<scratch>) {
 *       %0 = const {value = 0} : i64
 *       %1 = const {value = 1} : i64
 *       %4 = const {value = 4} : i64
 *       %8 = const {value = 8} : i64
 *       %32 = const {value = 32} : i64
 *       dot_block %a, %32, %4, %b, %32, %4, %c, %32, %1, %8, %8, %0, %0, %0 {types = [f32, f32, f32], extents = [1, 8, 8]}
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%a: ptr<global>, %b: ptr<global>, %c: ptr<scratch>) {
 *       %0 = const {value = 4} : i64
 *       %1 = buffer {bytes = 96, align = 64} : ptr<scratch>
 *       %2 = const {value = 0} : i64
 *       %3 = const {value = 1} : i64
 *       %4 = const {value = 32} : i64
 *       %5 = const {value = 8} : i64
 *       %6 = load %a : vec<8 x f32>
 *       store %6, %1
 *       %7 = load %c : vec<8 x f32>
 *       %8 = for %2, %5, %3, %7 : vec<8 x f32> (%9: i64, %10: vec<8 x f32>) {
 *         %11 = mul %9, %4 : i64
 *         %12 = ptr_add %b, %11 : ptr<global>
 *         %13 = ptr_add %12, %4 : ptr<global>
 *         prefetch %13 {cache = l1}
 *         %14 = load %12 : vec<8 x f32>
 *         %15 = mul %9, %0 : i64
 *         %16 = ptr_add %1, %15 : ptr<scratch>
 *         %17 = load %16 : f32
 *         %18 = splat %17 : vec<8 x f32>
 *         %19 = fma %18, %14, %10 : vec<8 x f32>
 *         yield %19
 *       }
 *       store %8, %c
 *       return
 *     }
 * In general, with a block of 14 rows by 2 vectors on AVX-512:
 *     for k0 in 0 .. %k by 512 {
 *       for j in 0 .. %n by 32   pack 512 x 32 of b, zero past %n
 *       for i in 0 .. %m by 14 {
 *         pack 14 x 512 of a, row by row
 *         for j in 0 .. %n by 32 {
 *           14 x 2 accumulators from c; for k: accumulator = fma(a's element, b's vector, accumulator); to c
 *         }
 *       }
 *     }
 * The number of rows of a block divides the tile's if possible; the last block of columns may be narrower, with its own
 * micro-kernel. So interior tiles have no partial blocks; other partial blocks are computed in a copy of c. Operands of
 * narrower types are widened when they are packed. If all rows fit into one block, b is read in place where possible, and by the same micro-kernel where
 * there are few at run time, or b's rows lie near to one another (dot_unpacked.c).
 * b's panels stay in L2, a's in L1.
 *
 * With instruction = amx, panels keep the operands' types, and blocks of up to 32 x 32 are in tile registers, for which one
 * configuration does in the whole function (dot_amx.c). Panels of b that later programs may need stay in memory.
 * With instruction = vnni, panels are the same but for the order of words, and the micro-kernel is that of vectors, which takes a
 * word of both operands, two bf16 or four bytes, in place of one k (dot_words.c).
 *
 * Needs: a target; c in scratch. Keeps: every result, bit for bit: k runs in order for each element, with one fma. By AMX the order
 * of k; its instruction rounds once for a group of k, and a group may have those of several joined products.
 * Cost: linear, about 400 ops for each dot_block, 1,200 by AMX. */
#include "cpu/dot.h"
#include "cpu/panel.h"
#include "cpu/passes.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lowering/each.h"

enum {
    SINGLE_ROW_DEPTH = 32,    /* rows of b read at a time from memory: few enough pages and streams */
    PANEL_WIDTH = 1024,       /* columns of b: 2 MiB at full depth */
    ALIGN = 64,
    COLUMNS_SHARE = 4,        /* of L2 for all of a's rows that lie side by side: b's panels take the most of it */
    MOST_SCALE = 16 /* SVE's vectors have 2,048 bits at most */
};

/* ---- sizes ---- */

static int64_t at_most(int64_t x, int64_t limit) { return x < limit ? x : limit; }
static int64_t blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

/* The number of rows, between half of the greatest possible and that, with the fewest rows in a partial block: mostly
 * none, so that interior tiles have no partial blocks. */
static int64_t choose_rows(const Dot *dot, int64_t most) {
    int64_t best = at_most(dot->m_max, most);
    for (int64_t r = best; 2 * r >= most; r--)
        if (blocks(dot->m_max, r) * r < blocks(dot->m_max, best) * best) best = r;
    return best;
}

/* All registers hold accumulators but those for b's vectors and a's element: 14 x 2 of 32, 6 x 2 of 16. SVE
 * broadcasts an element of a in its load, into another register: 10 x 2. With few rows a block has more vectors. The
 * blocks of a row have about equal widths, all but the last the same; scalable ones do for any vector length only if
 * their number of vectors is a power of two. */
static void choose_block(Dot *dot, const TileTarget *target) {
    int64_t accumulators = target->scalable ? 20 : target->vector_registers >= 32 ? 28 : 12;
    int64_t vectors = blocks(dot->n_max, dot->lanes);
    dot->block_rows = choose_rows(dot, accumulators / 2);
    int64_t widest = at_most(8, accumulators / dot->block_rows);
    while (dot->scale && widest & (widest - 1)) widest &= widest - 1;
    dot->block_vectors = blocks(vectors, blocks(vectors, widest));
    if (!dot->scale && dot->n_max % dot->lanes == 0) dot->narrow_vectors = vectors % dot->block_vectors;
    dot->block_columns = dot_lanes(dot, dot->block_vectors);
}

/* Do all rows fit into one block? */
static bool has_single_row(const Dot *dot) { return dot->m_max <= dot->block_rows; }

static int64_t round_up(int64_t x, int64_t unit) { return blocks(x, unit) * unit; }

/* All columns at once, or whole blocks of them. The longer scalable vectors are, the fewer blocks. */
static void choose_width(Dot *dot) {
    int64_t block = dot->block_vectors * dot->lanes, count = blocks(at_most(dot->n_max, PANEL_WIDTH), block);
    dot->wide = !has_single_row(dot) && dot->n_max > (dot->scale ? PANEL_WIDTH : count * block);
    if (!dot->wide) return;
    TileValue *whole = dot_i64(dot, count);
    if (dot->scale) {
        whole = dot_binary(dot, TILE_OP_DIV, dot_i64(dot, PANEL_WIDTH / block), dot->scale);
        whole = tile_emit_with_bits(dot->emitter, TILE_OP_MAX, whole, 1);
    }
    dot->width = dot_multiply(dot, dot->block_columns, whole);
}

static void choose_panel_row(Dot *dot) {
    dot->panel_row = round_up(dot->depth, dot->lanes * dot->most_scale) + CPU_PANEL_PAD_BYTES / dot->bytes;
}

/* Of a's rows that lie side by side; a vector of the last k reaches over them. */
static int64_t columns_block(const Dot *dot) {
    return round_up((dot->depth * dot->block_rows + dot->lanes) * dot->bytes, ALIGN);
}

static void build_a_panel(Dot *dot, int64_t rows) {
    choose_panel_row(dot);
    dot->a_columns = dot_has_columns(dot);
    if (dot->a_columns) {
        int64_t block = columns_block(dot), all = blocks(dot->m_max, rows);
        bool fits = all > 1 && all * block <= (int64_t)dot->context->target->l2_bytes / COLUMNS_SHARE;
        dot->a_block = fits ? block : 0;
        dot->a_panel = tile_build_buffer(&dot->emitter->front, fits ? all * block : block, ALIGN);
        return;
    }
    int64_t spare = dot_spare_rows(dot) * dot->panel_row * dot->bytes;
    dot->a_panel = tile_build_buffer(&dot->emitter->front, rows * dot->panel_row * dot->bytes + 2 * spare, ALIGN);
    dot->a_panel = dot_offset(dot, dot->a_panel, dot_i64(dot, spare));
}

static void measure_b_panel(Dot *dot, int64_t width) {
    dot->slot_bytes = width * dot_column_bytes(dot);
    int64_t spill = dot->block_rows * dot->block_vectors * dot->lanes * dot->most_scale * dot->bytes;
    if (!dot->context->target->has_masks) dot->spill = tile_build_buffer(&dot->emitter->front, spill, ALIGN);
}

/* The columns of the widest blocks that there can be. */
static int64_t panel_columns(const Dot *dot, int64_t columns) {
    return round_up(columns, dot->block_vectors * dot->lanes * dot->most_scale);
}

static void choose_panels(Dot *dot) {
    int64_t deepest = has_single_row(dot) ? SINGLE_ROW_DEPTH : CPU_PANEL_DEPTH_BYTES / dot->bytes;
    dot->depth = at_most(round_up(dot->k_max, dot->lanes), deepest);
    choose_width(dot);
    build_a_panel(dot, dot->block_rows);
    measure_b_panel(dot, panel_columns(dot, has_single_row(dot) ? 1 : at_most(dot->n_max, PANEL_WIDTH)));
    dot->slots = 1;
    if (!has_single_row(dot)) dot_amx_choose_slots(dot, dot->slot_bytes);
    dot->b_panel = dot->b_slots = tile_build_buffer(&dot->emitter->front, dot->slots * dot->slot_bytes, ALIGN);
    if (!has_single_row(dot)) {
        dot_unpacked_choose(dot);
        dot_unpacked_choose_a(dot);
    }
}

static bool stays_apart(Dot *dot, const char *why) {
    if (tile_op_is(dot->op->block->op, TILE_OP_FOR))
        tile_pass_remark(dot->context, dot->op, TILE_DECISION_PRODUCTS_APART, "the product", "%s", why);
    return false;
}

/* Are the products of iterations multiplied together? */
static bool join(Dot *dot, TileOp *op) {
    TileOp *loops[DOT_JOINED];
    unsigned count = dot->n_max <= PANEL_WIDTH ? dot_joined_loops(dot, op, loops) : 0;
    int64_t deepest = dot->words ? dot_amx_deepest(dot) : CPU_PANEL_DEPTH_BYTES / dot->bytes;
    if (dot->n_max > PANEL_WIDTH) return stays_apart(dot, "it has more columns than are packed at a time");
    if (!count) return stays_apart(dot, "the loop around it does more with its sums than to add to them, or its bounds vary");
    if (!dot_join_choose(dot, deepest)) return stays_apart(dot, "panels hold fewer k than two products have");
    if (dot->words) {
        dot_amx_choose_joined(dot);
        dot_join_reads_in_place(dot, op, loops, count);
    } else {
        if (!dot_join_reads_in_place(dot, op, loops, count)) {
            choose_panel_row(dot);
            dot->a_columns = dot_has_columns(dot);
            if (dot->a_columns) dot->a_block = columns_block(dot);
        }
        measure_b_panel(dot, panel_columns(dot, dot->n_max));
        dot_join_reads_b_in_place(dot, op, loops, count);
    }
    dot_join(dot, op, loops, count);
    return true;
}

/* ---- loops ---- */

static DotPanel packed_panel(Dot *dot, TileValue *pointer) {
    return (DotPanel){pointer, dot_vector_bytes(dot, dot->block_vectors), false, NULL};
}

/* b in place, from (k0, j) on. */
static DotPanel direct_panel(Dot *dot, TileValue *k0, TileValue *j) {
    TileValue *pointer = dot_offset(dot, dot->b.pointer, dot_multiply(dot, k0, dot->b.row));
    return (DotPanel){dot_offset(dot, pointer, dot_scale(dot, j, dot->bytes)), dot->b.row, true, NULL};
}

/* All rows fit into one block, so each element of b is used once: whole blocks of contiguous columns are read in
 * place, others are packed one at a time. */
static void emit_single_row(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    TileValue *zero = dot_i64(dot, 0);
    TileValue *i = dot_for(dot, zero, dot->m, dot_i64(dot, dot->block_rows)); /* trip count 0 or 1 */
    dot_pack_a(dot, i, k0, kc);
    TileValue *j = dot_add(dot, j0, dot_for(dot, zero, columns, dot->block_columns));
    bool in_place = dot->b.scalar == dot->scalar && dot->precision != TILE_PRECISION_TF32;
    if (in_place) {
        TileValue *adjacent = dot_binary(dot, TILE_OP_EQ, dot->b.column, dot_i64(dot, dot->bytes));
        TileValue *left = dot_binary(dot, TILE_OP_SUB, dot->n, j);
        TileValue *whole = dot_binary(dot, TILE_OP_LE, dot->block_columns, left);
        if (dot->narrow_vectors) whole = dot_binary(dot, TILE_OP_OR, whole, dot_is_narrow(dot, left));
        dot_if(dot, dot_binary(dot, TILE_OP_AND, adjacent, whole));
        DotPanel direct = direct_panel(dot, k0, j);
        dot_block(dot, &direct, i, j, kc);
        dot_else(dot);
    }
    TileValue *own = dot_binary(dot, TILE_OP_SUB, dot->n, j);
    dot_pack_b(dot, j, dot_minimum(dot, own, dot->block_columns), k0, kc);
    DotPanel packed = packed_panel(dot, dot->b_panel);
    dot_block(dot, &packed, i, j, kc);
    if (in_place) dot_end(dot);
    dot_end(dot);
    dot_end(dot);
}

/* All rows, for `width` columns and `depth` of k. */
static void emit_panels(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    TileValue *zero = dot_i64(dot, 0), *a_panel = dot->a_panel;
    dot_unpacked_panels(dot, j0, columns, k0, kc);
    dot_unpacked_all_columns(dot, k0, kc);
    dot_split_rows(dot);
    TileValue *i = dot_begin_rows(dot, dot_for(dot, zero, dot->m, dot_i64(dot, dot->block_rows)));
    dot_unpacked_columns(dot, a_panel, i, k0, kc);
    TileValue *j = dot_for(dot, zero, columns, dot->block_columns);
    DotPanel panel = dot_unpacked_block(dot, j0, j, columns, k0);
    dot_fetch_rows(dot, i, j, k0);
    dot_block(dot, &panel, i, dot_add(dot, j0, j), kc);
    dot->fetched_count = 0;
    dot_end(dot);
    dot_end(dot);
    dot->a_panel = a_panel;
    dot->a_step = dot->rows_end = NULL;
}

/* Sums that begin or end in a product do so in the first or in the last of its parts. */
static void in_part(Dot *dot, TileValue *k0, TileValue *left, TileValue *depth) {
    TileValue *first = dot_binary(dot, TILE_OP_EQ, k0, dot_i64(dot, 0)), *last = dot_binary(dot, TILE_OP_LE, left, depth);
    if (dot->begins) dot->first = first;
    if (dot->first && !dot->begins) dot->first = dot_binary(dot, TILE_OP_AND, dot->first, first);
    if (dot->last) dot->last = dot_binary(dot, TILE_OP_AND, dot->last, last);
}

/* Emits only loops that the extents require. */
static void emit_loops(Dot *dot) {
    bool wide = dot->wide, deep = dot->k_max > dot->depth || dot_unpacked_has_parts(dot);
    TileValue *j0 = dot_i64(dot, 0), *k0 = j0, *columns = dot->n, *kc = dot->k;
    if (wide) {
        j0 = dot_for(dot, j0, dot->n, dot->width);
        columns = dot_binary(dot, TILE_OP_SUB, dot->n, j0);
        columns = dot_minimum(dot, columns, dot->width);
    }
    dot_unpacked_begin(dot, j0, columns);
    if (deep) {
        TileValue *depth = dot_unpacked_has_parts(dot) ? dot_unpacked_depth(dot) : dot_i64(dot, dot->depth);
        k0 = dot_for(dot, k0, dot->k, depth);
        kc = dot_binary(dot, TILE_OP_SUB, dot->k, k0);
        if (dot_unpacked_has_parts(dot)) in_part(dot, k0, kc, depth);
        kc = dot_minimum(dot, kc, depth);
    }
    if (dot->words)
        dot_amx_panels(dot, j0, columns, k0, kc);
    else if (has_single_row(dot))
        emit_single_row(dot, j0, columns, k0, kc);
    else
        emit_panels(dot, j0, columns, k0, kc);
    if (deep) dot_end(dot);
    if (wide) dot_end(dot);
}

/* ---- the pass ---- */

static TileValue *moved(Dot *dot, TileValue *pointer, TileValue *lanes, TileValue *stride) {
    return dot_offset(dot, pointer, dot_multiply(dot, lanes, stride));
}

static void read_operands(Dot *dot, const TileOp *op) {
    TileValue *m0 = tile_op_named(op, TILE_OPERAND_M0), *n0 = tile_op_named(op, TILE_OPERAND_N0);
    TileValue *k0 = tile_op_named(op, TILE_OPERAND_K0);
    TileValue *a_row = tile_op_named(op, TILE_OPERAND_A_ROW), *a_column = tile_op_named(op, TILE_OPERAND_A_COLUMN);
    TileValue *b_row = tile_op_named(op, TILE_OPERAND_B_ROW), *b_column = tile_op_named(op, TILE_OPERAND_B_COLUMN);
    TileValue *c_row = tile_op_named(op, TILE_OPERAND_C_ROW);
    const TileType *const *types = tile_op_get(op, TILE_ATTRIBUTE_TYPES)->types;
    const int64_t *extents = tile_op_get(op, TILE_ATTRIBUTE_EXTENTS)->integers;
    dot->scalar = types[2]->scalar;
    dot->bytes = tile_scalar_bytes(dot->scalar);
    TileValue *a = moved(dot, moved(dot, tile_op_named(op, TILE_OPERAND_A), m0, a_row), k0, a_column);
    dot->a = (DotOperand){a, a_row, a_column, types[0]->scalar};
    TileValue *b = moved(dot, moved(dot, tile_op_named(op, TILE_OPERAND_B), k0, b_row), n0, b_column);
    dot->b = (DotOperand){b, b_row, b_column, types[1]->scalar};
    TileValue *size = dot_i64(dot, dot->bytes);
    TileValue *c = moved(dot, moved(dot, tile_op_named(op, TILE_OPERAND_C), m0, c_row), n0, size);
    dot->c = (DotOperand){c, c_row, size, dot->scalar};
    dot->precision = TILE_PRECISION_IEEE;
    if (dot->scalar == TILE_F32)
        dot->precision = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_PRECISION, TILE_PRECISION_IEEE);
    dot->m = tile_op_named(op, TILE_OPERAND_M);
    dot->n = tile_op_named(op, TILE_OPERAND_N);
    dot->k = tile_op_named(op, TILE_OPERAND_K);
    dot->m_max = extents[0];
    dot->n_max = extents[1];
    dot->k_max = extents[2];
}

static bool is_by(const TileOp *op, TileName instruction) {
    return tile_op_integer(op, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA) == instruction;
}

static void expand(TilePassContext *context, TileEmitter *emitter, TileOp *op) {
    const TileTarget *target = context->target;
    Dot dot = {.context = context, .op = op, .emitter = emitter, .builder = &emitter->builder};
    tile_emit_before(emitter, op);
    read_operands(&dot, op);
    dot.lanes = target->vector_bytes / dot.bytes;
    dot.most_scale = target->scalable ? MOST_SCALE : 1;
    if (target->scalable)
        dot.scale = tile_op_result(tile_build_op(dot.builder, TILE_OP_VSCALE, NULL, 0, NULL, 0, NULL, 1), 0);
    dot.amx = is_by(op, TILE_INSTRUCTION_AMX);
    dot.words = dot.amx || is_by(op, TILE_INSTRUCTION_VNNI);
    if (dot.amx)
        dot_amx_choose_block(&dot);
    else if (dot.words)
        dot_words_choose_block(&dot);
    else
        choose_block(&dot, target);
    if (!join(&dot, op)) {
        if (dot.words)
            dot_amx_choose_panels(&dot);
        else
            choose_panels(&dot);
        TileOp *loop = op->block->op;
        bool direct = dot.k_max <= dot.depth && dot_direct_find(&dot, op, &loop, 1);
        if (direct && !dot.begins) dot.first = dot_binary(&dot, TILE_OP_EQ, loop->regions[0].arguments[0], tile_op_operand(loop, 0));
        if (direct && dot.out) dot.last = dot_is_last(&dot, &loop, 1);
        emit_loops(&dot);
        if (direct) dot_direct_finish(&dot, &loop, 1);
    }
    tile_op_erase(op);
    emitter->changed = true;
}

TileResult tile_pass_cpu_dot(TilePassContext *context, TileFunc *func) {
    TileOps found = tile_find_each(&func->body, TILE_OP_DOT_BLOCK, context->scratch);
    if (!found.count) return TILE_RESULT_UNCHANGED;
    if (!context->target) return tile_pass_fail(context, TILE_INVALID_ARGUMENT, NULL, "cpu-dot needs a target");
    TileEmitter emitter = tile_emitter_create(context, func);
    bool amx = false;
    for (size_t i = 0; i < found.count; i++) {
        amx |= is_by(found.items[i], TILE_INSTRUCTION_AMX);
        expand(context, &emitter, found.items[i]);
    }
    if (amx) dot_amx_configure(&emitter, func);
    return tile_emit_finish(&emitter, context);
}
