/* Instructions of NVIDIA GPUs. */
#include "mlir_bridge/export.h"

#include <inttypes.h>
#include <stdio.h>

#include "lang/ir/build.h"
#include "lang/ir/operands.h"

/* ---- threads ---- */

static MlirValue special_register(Exporter *exporter, const char *name) {
    return export_intrinsic(exporter, name, scalar_of(exporter, TILE_I32), NO_VALUES);
}

static MlirValue wide_register(Exporter *exporter, const char *name) {
    return export_build(exporter, "llvm.zext", scalar_of(exporter, TILE_I64), VALUES(special_register(exporter, name)),
                        NO_ATTRIBUTES);
}

void export_thread(Exporter *exporter, const TileOp *op) {
    set_result(exporter, op, 0, special_register(exporter, "llvm.nvvm.read.ptx.sreg.tid.x"));
}

MlirValue export_block_index(Exporter *exporter) { return wide_register(exporter, "llvm.nvvm.read.ptx.sreg.ctaid.x"); }

void export_block_number(Exporter *exporter, const TileOp *op) {
    set_result(exporter, op, 0, export_block_index(exporter));
}

void export_block_count(Exporter *exporter, const TileOp *op) {
    set_result(exporter, op, 0, wide_register(exporter, "llvm.nvvm.read.ptx.sreg.nctaid.x"));
}

static MlirValue word(Exporter *exporter, int64_t value) {
    return export_build(exporter, "llvm.mlir.constant", scalar_of(exporter, TILE_I32), NO_VALUES,
                        ATTRIBUTES(named(exporter, NAME_VALUE, export_integer(exporter, TILE_I32, value))));
}

/* The value of lane 0, of which ptxas knows that all lanes have it. */
static MlirValue value_of_lane_0(Exporter *exporter, MlirValue value) {
    enum { ALL_LANES = -1, CLAMP = 31 };
    return export_intrinsic(exporter, "llvm.nvvm.shfl.sync.idx.i32", scalar_of(exporter, TILE_I32),
                            VALUES(word(exporter, ALL_LANES), value, word(exporter, 0), word(exporter, CLAMP)));
}

/* Is the warp one of the threads before `end`? The warp asks together, so that ptxas keeps what it computes in the
 * branch for all lanes in uniform registers. */
MlirValue export_is_warp_below(Exporter *exporter, int64_t end) {
    MlirValue first = value_of_lane_0(exporter, special_register(exporter, "llvm.nvvm.read.ptx.sreg.tid.x"));
    return export_compare(exporter, false, ICMP_ULT, scalar_of(exporter, TILE_BOOL), first, word(exporter, end));
}

MlirValue export_is_first_thread(Exporter *exporter) {
    return export_compare(exporter, false, ICMP_EQ, scalar_of(exporter, TILE_BOOL),
                          special_register(exporter, "llvm.nvvm.read.ptx.sreg.tid.x"), word(exporter, 0));
}

/* The first parts of a block's threads have barriers of their own, of this number and those behind it. */
static MlirValue number_of_part(Exporter *exporter, MlirValue first, MlirValue threads) {
    MlirType i32 = scalar_of(exporter, TILE_I32);
    MlirValue thread = special_register(exporter, "llvm.nvvm.read.ptx.sreg.tid.x");
    MlirValue part = export_build(exporter, "llvm.udiv", i32, VALUES(value_of_lane_0(exporter, thread), threads), NO_ATTRIBUTES);
    return export_build(exporter, "llvm.add", i32, VALUES(first, part), NO_ATTRIBUTES);
}

void export_barrier(Exporter *exporter, const TileOp *op) {
    MlirValue number = word(exporter, tile_op_integer(op, TILE_ATTRIBUTE_NUMBER, 0));
    if (!tile_op_get(op, TILE_ATTRIBUTE_THREADS)) {
        export_intrinsic(exporter, "llvm.nvvm.barrier.cta.sync.aligned.all", no_type(), VALUES(number));
        return;
    }
    int64_t count = tile_op_integer(op, TILE_ATTRIBUTE_THREADS, 0), turns = tile_op_integer(op, TILE_ATTRIBUTE_TURNS, 1);
    MlirValue threads = word(exporter, count);
    if (turns > 1) number = number_of_part(exporter, number, threads);
    export_intrinsic(exporter, "llvm.nvvm.barrier.cta.sync.aligned.count", no_type(), VALUES(number, threads));
}

void export_warp_barrier(Exporter *exporter, const TileOp *op) {
    enum { ALL_LANES = -1 };
    (void)op;
    export_intrinsic(exporter, "llvm.nvvm.bar.warp.sync", no_type(), VALUES(word(exporter, ALL_LANES)));
}

void export_exchange(Exporter *exporter, const TileOp *op) {
    enum { ALL_LANES = -1, CLAMP = 31 };
    bool is_float = tile_op_result(op, 0)->type->scalar == TILE_F32;
    const char *name = is_float ? "llvm.nvvm.shfl.sync.bfly.f32" : "llvm.nvvm.shfl.sync.bfly.i32";
    set_result(exporter, op, 0,
               export_intrinsic(exporter, name, export_type(exporter, tile_op_result(op, 0)->type),
                                VALUES(word(exporter, ALL_LANES), operand_of(exporter, op, 0),
                                       operand_of(exporter, op, 1), word(exporter, CLAMP))));
}

/* Bytes of two words: of the lower one 0 to 3, of the upper one 4 to 7. */
static MlirValue permute_bytes(Exporter *exporter, MlirValue lower, MlirValue upper, MlirValue which) {
    return export_intrinsic(exporter, "llvm.nvvm.prmt", scalar_of(exporter, TILE_I32), VALUES(lower, upper, which));
}

static MlirValue choose_word(Exporter *exporter, MlirValue condition, int64_t x, int64_t y) {
    return export_build(exporter, "llvm.select", scalar_of(exporter, TILE_I32), VALUES(condition, word(exporter, x), word(exporter, y)),
                        NO_ATTRIBUTES);
}

void export_exchange_halves(Exporter *exporter, const TileOp *op) {
    enum { ALL_LANES = -1, CLAMP = 31, LOWER_HALVES = 0x5410, UPPER_HALVES = 0x7632, BEHIND_X = 0x5410, BEFORE_X = 0x3254, BEHIND_Y = 0x7610, BEFORE_Y = 0x3276 };
    MlirType i32 = scalar_of(exporter, TILE_I32);
    MlirValue x = export_same_bits(exporter, named_of(exporter, op, TILE_OPERAND_X), i32), y = export_same_bits(exporter, named_of(exporter, op, TILE_OPERAND_Y), i32),
              upper = named_of(exporter, op, TILE_OPERAND_UPPER);
    MlirValue sent = permute_bytes(exporter, x, y, choose_word(exporter, upper, LOWER_HALVES, UPPER_HALVES));
    MlirValue got = export_intrinsic(exporter, "llvm.nvvm.shfl.sync.bfly.i32", i32,
                                     VALUES(word(exporter, ALL_LANES), sent, named_of(exporter, op, TILE_OPERAND_LANE), word(exporter, CLAMP)));
    MlirType type = export_type(exporter, tile_op_result(op, 0)->type);
    x = permute_bytes(exporter, x, got, choose_word(exporter, upper, BEFORE_X, BEHIND_X));
    y = permute_bytes(exporter, y, got, choose_word(exporter, upper, BEFORE_Y, BEHIND_Y));
    set_result(exporter, op, 0, export_same_bits(exporter, x, type));
    set_result(exporter, op, 1, export_same_bits(exporter, y, type));
}

void export_uniform(Exporter *exporter, const TileOp *op) {
    set_result(exporter, op, 0, value_of_lane_0(exporter, operand_of(exporter, op, 0)));
}

void export_elect(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "choice of a lane")) return;
    static const char text[] = "{ .reg .pred elected; elect.sync _|elected, -1; selp.b32 $0, 1, 0, elected; }";
    MlirValue word_of = export_asm(exporter, text, "=r", scalar_of(exporter, TILE_I32), NO_VALUES);
    set_result(exporter, op, 0, export_compare(exporter, false, ICMP_NE, scalar_of(exporter, TILE_BOOL), word_of, word(exporter, 0)));
}

/* ---- grids ---- */

/* An asm, since LLVM's intrinsics are marked as not accessing memory. */
static void control_grid(Exporter *exporter, const TileOp *op, const char *text) {
    if (!export_need(exporter, op, exporter->target->has_dependent_grids, "grids that wait for one another")) return;
    export_asm(exporter, text, "~{memory}", no_type(), NO_VALUES);
}

void export_grid_launch(Exporter *exporter, const TileOp *op) {
    control_grid(exporter, op, "griddepcontrol.launch_dependents;");
}

void export_grid_wait(Exporter *exporter, const TileOp *op) { control_grid(exporter, op, "griddepcontrol.wait;"); }

/* ---- copies ---- */

/* Copies of 16 bytes bypass L1: other blocks read the same data from L2. */
static const char *copy_kind(int64_t bytes) { return bytes == 16 ? "cg" : "ca"; }

/* With a predicate instead of a branch. */
static void build_masked_copy(Exporter *exporter, const TileOp *op, int64_t bytes, bool whole) {
    ExportAddress to = export_address(exporter, op);
    char text[96];
    snprintf(text, sizeof text, "@$2 cp.async.%s.shared.global [$0+%" PRId64 "], [$1], %d%s;", copy_kind(bytes),
             to.offset, (int)bytes, whole ? "" : ", $3");
    MlirValue operands[] = {to.address, named_of(exporter, op, TILE_OPERAND_SOURCE), named_of(exporter, op, TILE_OPERAND_MASK),
                            named_of(exporter, op, TILE_OPERAND_BYTES)};
    export_asm(exporter, text, whole ? "l,l,b,~{memory}" : "l,l,b,r,~{memory}", no_type(), whole ? 3 : 4, operands);
}

void export_copy_async(Exporter *exporter, const TileOp *op) {
    int64_t bytes = tile_op_integer(op, TILE_ATTRIBUTE_BYTES, 0);
    bool whole = tile_value_is_integer(tile_op_named(op, TILE_OPERAND_BYTES), bytes);
    if (tile_op_has_part(op, TILE_PARTS_MASK)) {
        build_masked_copy(exporter, op, bytes, whole);
        return;
    }
    char name[64];
    snprintf(name, sizeof name, "llvm.nvvm.cp.async.%s.shared.global.%d%s", copy_kind(bytes), (int)bytes,
             whole ? "" : ".s");
    MlirValue to = operand_of(exporter, op, 0), from = operand_of(exporter, op, 1);
    if (whole)
        export_intrinsic(exporter, name, no_type(), VALUES(to, from));
    else
        export_intrinsic(exporter, name, no_type(), VALUES(to, from, named_of(exporter, op, TILE_OPERAND_BYTES)));
}

/* Operand and result are the same register, but opaque to the optimiser. One that may access memory is not moved out of a loop. */
void export_here(Exporter *exporter, const TileOp *op) {
    MlirValue x = operand_of(exporter, op, 0);
    const char *constraints = tile_op_get(op, TILE_ATTRIBUTE_EACH) ? "=l,0,~{memory}" : "=l,0";
    set_result(exporter, op, 0, export_asm(exporter, "", constraints, scalar_of(exporter, TILE_I64), 1, &x));
}

void export_defined_where(Exporter *exporter, const TileOp *op) {
    set_result(exporter, op, 0, operand_of(exporter, op, 0));
}

void export_copy_commit(Exporter *exporter, const TileOp *op) {
    (void)op;
    export_intrinsic(exporter, "llvm.nvvm.cp.async.commit.group", no_type(), NO_VALUES);
}

void export_copy_wait(Exporter *exporter, const TileOp *op) {
    MlirValue pending = word(exporter, tile_op_integer(op, TILE_ATTRIBUTE_PENDING, 0));
    export_intrinsic(exporter, "llvm.nvvm.cp.async.wait.group", no_type(), VALUES(pending));
}

/* ---- mbarriers ---- */

void export_mbarrier_init(Exporter *exporter, const TileOp *op) {
    ExportAddress place = export_address(exporter, op);
    char text[80];
    snprintf(text, sizeof text, "mbarrier.init.shared.b64 [$0+%" PRId64 "], %d;", place.offset,
             (int)tile_op_integer(op, TILE_ATTRIBUTE_ARRIVALS, 1));
    export_asm(exporter, text, "l,~{memory}", no_type(), 1, &place.address);
}

/* The state that the arrival returns is not used. */
void export_mbarrier_arrive(Exporter *exporter, const TileOp *op) {
    int64_t bytes = tile_op_integer(op, TILE_ATTRIBUTE_BYTES, 0);
    if (tile_op_get(op, TILE_ATTRIBUTE_MULTICAST)) {
        export_cluster_arrive(exporter, op);
        return;
    }
    if (bytes && !export_need(exporter, op, exporter->target->has_tma, "arrivals that speak of bytes")) return;
    ExportAddress place = export_address(exporter, op);
    char text[128];
    if (bytes)
        snprintf(text, sizeof text,
                 "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [$0+%" PRId64 "], %d; }", place.offset,
                 (int)bytes);
    else
        snprintf(text, sizeof text, "{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [$0+%" PRId64 "]; }",
                 place.offset);
    export_asm(exporter, text, "l,~{memory}", no_type(), 1, &place.address);
}

void export_mbarrier_expect(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "arrivals that speak of bytes")) return;
    ExportAddress place = export_address(exporter, op);
    char text[96];
    snprintf(text, sizeof text, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0+%" PRId64 "], $1;", place.offset);
    MlirValue operands[] = {place.address, operand_of(exporter, op, 1)};
    export_asm(exporter, text, "l,r,~{memory}", no_type(), 2, operands);
}

/* try_wait, which may suspend the thread, came with the bulk copies. */
void export_mbarrier_wait(Exporter *exporter, const TileOp *op) {
    ExportAddress place = export_address(exporter, op);
    char text[160];
    snprintf(text, sizeof text,
             "{ .reg .pred done; again: mbarrier.%s_wait.parity.shared.b64 done, [$0+%" PRId64
             "], $1; @!done bra again; }",
             exporter->target->has_tma ? "try" : "test", place.offset);
    MlirValue operands[] = {place.address, operand_of(exporter, op, 1)};
    export_asm(exporter, text, "l,r,~{memory}", no_type(), 2, operands);
}

/* Without `shared::cta` it would wait for what the thread has written to global memory as well. */
void export_fence_async(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "asynchronous ops that need a fence")) return;
    export_asm(exporter, "fence.proxy.async.shared::cta;", "~{memory}", no_type(), NO_VALUES);
}

void export_copy_bulk(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "bulk copies")) return;
    ExportAddress to = export_address(exporter, op);
    char text[192];
    snprintf(text, sizeof text,
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0+%" PRId64
             "], [$1], $2, [$3];",
             to.offset);
    MlirValue operands[] = {to.address, named_of(exporter, op, TILE_OPERAND_SOURCE), named_of(exporter, op, TILE_OPERAND_BYTES),
                            named_of(exporter, op, TILE_OPERAND_MBARRIER)};
    export_asm(exporter, text, "l,l,r,l,~{memory}", no_type(), 4, operands);
}

/* ---- matrices ---- */

enum { WORD_BITS = 32, MOST_WORDS = 4 };

void export_load_matrix(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    unsigned count = (unsigned)tile_type_lanes(type) * tile_scalar_bits(type->scalar) / WORD_BITS;
    bool transposed = tile_op_integer(op, TILE_ATTRIBUTE_TRANSPOSED, 0) != 0;
    char name[80];
    snprintf(name, sizeof name, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%u%s.b16.p3", count, transposed ? ".trans" : "");
    MlirValue loaded =
        export_intrinsic(exporter, name, export_words_type(exporter, count), VALUES(operand_of(exporter, op, 0)));
    set_result(exporter, op, 0, export_same_bits(exporter, export_join_words(exporter, loaded, count), export_type(exporter, type)));
}

void export_store_matrix(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_stmatrix, "matrices that a warp stores")) return;
    const TileType *type = tile_op_operand(op, 0)->type;
    unsigned count = (unsigned)tile_type_lanes(type) * tile_scalar_bits(type->scalar) / WORD_BITS;
    bool transposed = tile_op_integer(op, TILE_ATTRIBUTE_TRANSPOSED, 0) != 0;
    MlirType i32 = scalar_of(exporter, TILE_I32), words = count > 1 ? export_vector_of(exporter, TILE_I32, count) : i32;
    MlirValue value = export_same_bits(exporter, operand_of(exporter, op, 0), words);
    MlirValue operands[1 + MOST_WORDS] = {operand_of(exporter, op, 1)};
    for (unsigned i = 0; i < count; i++) operands[1 + i] = count > 1 ? export_lane(exporter, value, i32, i) : value;
    char name[80];
    snprintf(name, sizeof name, "llvm.nvvm.stmatrix.sync.aligned.m8n8.x%u%s.b16.p3", count, transposed ? ".trans" : "");
    export_intrinsic(exporter, name, no_type(), 1 + count, operands);
}

/* An operand's registers in the types of the instruction: f64, pairs of f16, or words. */
static unsigned add_fragment(Exporter *exporter, const TileOp *op, unsigned operand, MlirValue *registers) {
    const TileType *type = tile_op_operand(op, operand)->type;
    unsigned lanes = (unsigned)tile_type_lanes(type), count = lanes * tile_scalar_bits(type->scalar) / WORD_BITS;
    MlirType i32 = scalar_of(exporter, TILE_I32);
    MlirValue value = operand_of(exporter, op, operand);
    if (type->scalar == TILE_F64) {
        for (unsigned i = 0; i < lanes; i++)
            registers[i] = type->kind == TILE_TYPE_SCALAR ? value : export_lane(exporter, value, scalar_of(exporter, TILE_F64), i);
        return lanes;
    }
    value = export_same_bits(exporter, value, export_vector_of(exporter, TILE_I32, count));
    for (unsigned i = 0; i < count; i++) {
        registers[i] = export_lane(exporter, value, i32, i);
        if (type->scalar == TILE_F16) registers[i] = export_same_bits(exporter, registers[i], export_vector_of(exporter, TILE_F16, 2));
    }
    return count;
}

static const char *byte_types(const TileOp *op) {
    bool a = tile_op_operand(op, 0)->type->scalar == TILE_I8, b = tile_op_operand(op, 1)->type->scalar == TILE_I8;
    return a && b ? "s8" : a ? "s8.u8" : b ? "u8.s8" : "u8";
}

static void mma_name(const TileOp *op, char *name, size_t size) {
    static const char prefix[] = "llvm.nvvm.mma.m16n8k";
    switch (tile_op_operand(op, 0)->type->scalar) {
    case TILE_F16: snprintf(name, size, "%s16.row.col.f32.f32", prefix); break;
    case TILE_BF16: snprintf(name, size, "%s16.row.col.bf16", prefix); break;
    case TILE_F32: snprintf(name, size, "%s8.row.col.tf32", prefix); break;
    case TILE_F64: snprintf(name, size, "%s4.row.col.f64", prefix); break;
    case TILE_F8E4M3: snprintf(name, size, "%s32.row.col.f32.e4m3.e4m3.f32", prefix); break;
    case TILE_F8E5M2: snprintf(name, size, "%s32.row.col.f32.e5m2.e5m2.f32", prefix); break;
    default: snprintf(name, size, "%s32.row.col.%s", prefix, byte_types(op)); break;
    }
}

/* Of f64, where an instruction has 8 rows: one for each half of a and of the sums. */
static void export_mma_of_halves(Exporter *exporter, const TileOp *op) {
    enum { HALVES = 2 };
    MlirValue a[HALVES], b, sums = named_of(exporter, op, TILE_OPERAND_SUM);
    MlirType f64 = scalar_of(exporter, TILE_F64), pair[] = {f64, f64}, vector = export_type(exporter, tile_op_result(op, 0)->type);
    MlirType result = mlirLLVMStructTypeLiteralGet(exporter->mlir, HALVES, pair, false);
    MlirValue value = export_empty_vector(exporter, vector);
    add_fragment(exporter, op, 0, a);
    add_fragment(exporter, op, 1, &b);
    for (unsigned half = 0; half < HALVES; half++) {
        MlirValue low = export_lane(exporter, sums, f64, 2 * half), high = export_lane(exporter, sums, f64, 2 * half + 1);
        MlirValue both = export_intrinsic(exporter, "llvm.nvvm.mma.m8n8k4.row.col.f64", result, VALUES(a[half], b, low, high));
        for (unsigned i = 0; i < HALVES; i++)
            value = export_insert_lane(exporter, value, vector, export_field(exporter, both, f64, i), 2 * half + i);
    }
    set_result(exporter, op, 0, value);
}

void export_mma(Exporter *exporter, const TileOp *op) {
    enum { SUMS = 4 };
    if (tile_op_operand(op, 0)->type->scalar == TILE_F64 && !exporter->target->has_tall_doubles) {
        export_mma_of_halves(exporter, op);
        return;
    }
    char name[64];
    MlirValue registers[MOST_WORDS + 2 + SUMS];
    MlirType sum = scalar_of(exporter, tile_op_result(op, 0)->type->scalar), types[SUMS] = {sum, sum, sum, sum};
    unsigned count = add_fragment(exporter, op, 0, registers);
    count += add_fragment(exporter, op, 1, registers + count);
    MlirValue sums = named_of(exporter, op, TILE_OPERAND_SUM);
    for (unsigned i = 0; i < SUMS; i++) registers[count++] = export_lane(exporter, sums, sum, i);
    mma_name(op, name, sizeof name);
    MlirType result = mlirLLVMStructTypeLiteralGet(exporter->mlir, SUMS, types, false);
    sums = export_intrinsic(exporter, name, result, count, registers);
    MlirType vector = export_type(exporter, tile_op_result(op, 0)->type);
    MlirValue value = export_empty_vector(exporter, vector);
    for (unsigned i = 0; i < SUMS; i++)
        value = export_insert_lane(exporter, value, vector, export_field(exporter, sums, sum, i), i);
    set_result(exporter, op, 0, value);
}

/* ---- arithmetic ---- */

/* The first `count` lanes of `x`, in a vector of `lanes` lanes, the rest of which are arbitrary. */
static MlirValue first_lanes(Exporter *exporter, MlirType to, MlirValue x, int64_t count, int64_t lanes) {
    int32_t *kept = TILE_NEW_ARRAY(exporter->bridge->arena, int32_t, lanes);
    for (int64_t i = 0; i < lanes; i++) kept[i] = (int32_t)(i < count ? i : 0);
    return export_build(exporter, "llvm.shufflevector", to, VALUES(x, x),
                        ATTRIBUTES(named(exporter, NAME_MASK, mlirDenseI32ArrayGet(exporter->mlir, lanes, kept))));
}

/* A value of the type from words that are pairs of its lanes; of an odd number, half of the last word is unused. */
static MlirValue split_pairs(Exporter *exporter, const TileType *type, MlirValue words) {
    int64_t lanes = tile_type_lanes(type);
    MlirValue all = export_same_bits(exporter, words, export_vector_of(exporter, type->scalar, (lanes + 1) / 2 * 2));
    if (type->kind == TILE_TYPE_SCALAR) return export_lane(exporter, all, scalar_of(exporter, type->scalar), 0);
    return lanes % 2 ? first_lanes(exporter, export_type(exporter, type), all, lanes, lanes) : all;
}

/* Two lanes at a time; an odd last one is paired with itself. */
static void export_to_bf16(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    int64_t lanes = tile_type_lanes(type), words = (lanes + 1) / 2, two = 2;
    MlirValue x = operand_of(exporter, op, 0), result;
    MlirType f32 = scalar_of(exporter, TILE_F32), i32 = scalar_of(exporter, TILE_I32),
             vector = export_vector_of(exporter, TILE_I32, words),
             pair = mlirVectorTypeGet(1, &two, mlirBF16TypeGet(exporter->mlir));
    result = export_empty_vector(exporter, vector);
    for (int64_t i = 0; i < lanes; i += 2) {
        bool scalar = type->kind == TILE_TYPE_SCALAR;
        MlirValue low = scalar ? x : export_lane(exporter, x, f32, i),
                  high = i + 1 < lanes ? export_lane(exporter, x, f32, i + 1) : low;
        MlirValue both = export_intrinsic(exporter, "llvm.nvvm.ff2bf16x2.rn", pair, VALUES(high, low));
        result = export_insert_lane(exporter, result, vector, export_same_bits(exporter, both, i32), i / 2);
    }
    set_result(exporter, op, 0, split_pairs(exporter, type, result));
}

/* Two lanes at a time, as above. f8 values are integers. */
static void export_to_f8(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    const char *name = type->scalar == TILE_F8E4M3 ? "llvm.nvvm.ff.to.e4m3x2.rn" : "llvm.nvvm.ff.to.e5m2x2.rn";
    int64_t lanes = tile_type_lanes(type), words = (lanes + 1) / 2;
    MlirValue x = operand_of(exporter, op, 0);
    MlirType f32 = scalar_of(exporter, TILE_F32), i16 = scalar_of(exporter, TILE_I16),
             vector = export_vector_of(exporter, TILE_I16, words);
    MlirValue result = export_empty_vector(exporter, vector);
    for (int64_t i = 0; i < lanes; i += 2) {
        bool scalar = type->kind == TILE_TYPE_SCALAR;
        MlirValue low = scalar ? x : export_lane(exporter, x, f32, i),
                  high = i + 1 < lanes ? export_lane(exporter, x, f32, i + 1) : low;
        MlirValue both = export_intrinsic(exporter, name, i16, VALUES(high, low));
        result = export_insert_lane(exporter, result, vector, both, i / 2);
    }
    set_result(exporter, op, 0, split_pairs(exporter, type, result));
}

/* Also two lanes at a time. */
static void export_from_f8(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type, *from = tile_op_operand(op, 0)->type;
    const char *name = from->scalar == TILE_F8E4M3 ? "llvm.nvvm.e4m3x2.to.f16x2.rn" : "llvm.nvvm.e5m2x2.to.f16x2.rn";
    int64_t words = (tile_type_lanes(type) + 1) / 2, two = 2;
    MlirType i32 = scalar_of(exporter, TILE_I32), i16 = scalar_of(exporter, TILE_I16),
             vector = export_vector_of(exporter, TILE_I32, words), bytes = export_vector_of(exporter, from->scalar, 2 * words),
             pair = mlirVectorTypeGet(1, &two, scalar_of(exporter, TILE_F16));
    MlirValue x = operand_of(exporter, op, 0), result = export_empty_vector(exporter, vector);
    if (type->kind == TILE_TYPE_SCALAR) x = export_insert_lane(exporter, export_empty_vector(exporter, bytes), bytes, x, 0);
    if (tile_type_lanes(type) % 2) x = first_lanes(exporter, bytes, x, tile_type_lanes(type), 2 * words);
    x = export_same_bits(exporter, x, export_vector_of(exporter, TILE_I16, words));
    for (int64_t i = 0; i < words; i++) {
        MlirValue both = export_intrinsic(exporter, name, pair, VALUES(export_lane(exporter, x, i16, i)));
        result = export_insert_lane(exporter, result, vector, export_same_bits(exporter, both, i32), i);
    }
    set_result(exporter, op, 0, split_pairs(exporter, type, result));
}

/* One instruction a lane. */
void export_approx(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    const char *name = op->id == TILE_OP_EX2_APPROX ? "llvm.nvvm.ex2.approx.ftz.f" : "llvm.nvvm.rcp.approx.ftz.f";
    MlirType f32 = scalar_of(exporter, TILE_F32), vector = export_type(exporter, type);
    MlirValue x = operand_of(exporter, op, 0), result = x;
    if (exporter->target->kind != TILE_TARGET_GPU || type->scalar != TILE_F32) {
        export_fail(exporter, TILE_INTERNAL, op, "it is an instruction of GPUs, for f32");
        return;
    }
    for (int64_t i = 0; i < tile_type_lanes(type) && type->kind == TILE_TYPE_VECTOR; i++) {
        MlirValue lane = export_intrinsic(exporter, name, f32, VALUES(export_lane(exporter, x, f32, i)));
        result = export_insert_lane(exporter, result, vector, lane, i);
    }
    if (type->kind == TILE_TYPE_SCALAR) result = export_intrinsic(exporter, name, f32, VALUES(x));
    set_result(exporter, op, 0, result);
}

/* One instruction a lane; its result is a word. */
void export_round_tf32(Exporter *exporter, const TileOp *op) {
    const TileType *type = tile_op_result(op, 0)->type;
    bool even = op->id == TILE_OP_ROUND_TF32;
    const char *name = even ? "llvm.nvvm.f2tf32.rn" : "llvm.nvvm.f2tf32.rna";
    int64_t lanes = tile_type_lanes(type);
    MlirType f32 = scalar_of(exporter, TILE_F32), i32 = scalar_of(exporter, TILE_I32),
             words = export_vector_of(exporter, TILE_I32, lanes);
    MlirValue x = operand_of(exporter, op, 0), result = x;
    if (exporter->target->kind != TILE_TARGET_GPU || type->scalar != TILE_F32) {
        export_fail(exporter, TILE_INTERNAL, op, "it is an instruction of GPUs, for f32");
        return;
    }
    if (even && !export_need(exporter, op, exporter->target->has_tf32_even, "rounding to tf32 with halves to even")) return;
    if (type->kind == TILE_TYPE_SCALAR)
        result = export_intrinsic(exporter, name, i32, VALUES(x));
    else
        result = export_empty_vector(exporter, words);
    for (int64_t i = 0; i < lanes && type->kind == TILE_TYPE_VECTOR; i++) {
        MlirValue word = export_intrinsic(exporter, name, i32, VALUES(export_lane(exporter, x, f32, i)));
        result = export_insert_lane(exporter, result, words, word, i);
    }
    set_result(exporter, op, 0, export_same_bits(exporter, result, export_type(exporter, type)));
}

/* cvt.rzi truncates to 32 bits, saturates and makes 0 of NaN, as the language does. Narrower integers are clamped as integers: LLVM would
 * clamp the float, and ask for NaN. */
static MlirValue to_integer(Exporter *exporter, MlirValue x, TileScalar to) {
    bool is_signed = tile_scalar_class(to) == TILE_CLASS_SIGNED;
    unsigned bits = tile_scalar_bits(to);
    const char *name = is_signed || bits < WORD_BITS ? "llvm.nvvm.f2i.rz" : "llvm.nvvm.f2ui.rz";
    MlirType i32 = scalar_of(exporter, TILE_I32);
    MlirValue number = export_intrinsic(exporter, name, i32, VALUES(x));
    if (bits == WORD_BITS) return number;
    int32_t greatest = (INT32_C(1) << (bits - is_signed)) - 1, least = is_signed ? -greatest - 1 : 0;
    number = export_build(exporter, "llvm.intr.smin", i32, VALUES(number, word(exporter, greatest)), NO_ATTRIBUTES);
    number = export_build(exporter, "llvm.intr.smax", i32, VALUES(number, word(exporter, least)), NO_ATTRIBUTES);
    return export_build(exporter, "llvm.trunc", scalar_of(exporter, to), VALUES(number), NO_ATTRIBUTES);
}

static void export_to_integer(Exporter *exporter, const TileOp *op) {
    const TileType *type = op->results[0].type;
    MlirValue x = operand_of(exporter, op, 0);
    if (type->kind == TILE_TYPE_SCALAR) {
        set_result(exporter, op, 0, to_integer(exporter, x, type->scalar));
        return;
    }
    MlirType vector = export_type(exporter, type), f32 = scalar_of(exporter, TILE_F32);
    MlirValue result = export_empty_vector(exporter, vector);
    for (int64_t i = 0; i < tile_type_lanes(type); i++)
        result = export_insert_lane(exporter, result, vector, to_integer(exporter, export_lane(exporter, x, f32, i), type->scalar), i);
    set_result(exporter, op, 0, result);
}

bool export_instruction(Exporter *exporter, const TileOp *op) {
    TileScalar from = op->operand_count ? tile_op_operand(op, 0)->type->scalar : TILE_BOOL;
    bool f8 = tile_scalar_is_float(from) && tile_scalar_bits(from) == 8;
    if (f8 && op->id == TILE_OP_CONVERT && op->results[0].type->scalar == TILE_F16) {
        export_from_f8(exporter, op);
        return true;
    }
    if (export_bytes_to_floats(exporter, op)) return true;
    if (from != TILE_F32 || op->id != TILE_OP_CONVERT) return false;
    switch (op->results[0].type->scalar) {
    case TILE_BF16: export_to_bf16(exporter, op); return true;
    case TILE_F8E4M3:
    case TILE_F8E5M2: export_to_f8(exporter, op); return true;
    case TILE_I8:
    case TILE_U8:
    case TILE_I16:
    case TILE_U16:
    case TILE_I32:
    case TILE_U32: export_to_integer(exporter, op); return true;
    default: return false;
    }
}
