/* Products of warpgroups, as inline asm, since LLVM's intrinsics for them have one immediate descriptor format and no
 * tied registers: sums are scalars that go in and out in the same registers, so that none is copied while it is
 * pending.
 */
#include "mlir_bridge/export.h"

#include <stdio.h>

enum { WORD_BITS = 32, FRAGMENT_WORDS = 4, ADDRESS_BITS = 0x3ffff, LOG_UNIT = 4 };

/* ---- descriptors ---- */

static MlirValue constant(Exporter *exporter, int64_t value) {
    return export_constant(exporter, scalar_of(exporter, TILE_I64), export_integer(exporter, TILE_I64, value));
}

static MlirValue binary(Exporter *exporter, const char *name, MlirValue x, int64_t y) {
    return export_build(exporter, name, scalar_of(exporter, TILE_I64), VALUES(x, constant(exporter, y)), NO_ATTRIBUTES);
}

static int64_t described(const TileOp *op, TileAttributeKey key, unsigned shift) {
    return tile_op_integer(op, key, 0) >> LOG_UNIT << shift;
}

void export_wgmma_descriptor(Exporter *exporter, const TileOp *op) {
    enum { LEADING_SHIFT = 16, STRIDE_SHIFT = 32, MODE_SHIFT = 62 };
    MlirValue address = export_build(exporter, "llvm.ptrtoint", scalar_of(exporter, TILE_I64),
                                     VALUES(operand_of(exporter, op, 0)), NO_ATTRIBUTES);
    int64_t swizzle = tile_op_integer(op, TILE_ATTRIBUTE_SWIZZLE, 0);
    uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    int64_t rest = described(op, TILE_ATTRIBUTE_LEADING, LEADING_SHIFT) |
                   described(op, TILE_ATTRIBUTE_STRIDE, STRIDE_SHIFT) | (int64_t)(mode << MODE_SHIFT);
    MlirValue units = binary(exporter, "llvm.lshr", binary(exporter, "llvm.and", address, ADDRESS_BITS), LOG_UNIT);
    set_result(exporter, op, 0, binary(exporter, "llvm.or", units, rest));
}

/* ---- sums, lane by lane ---- */

/* A vector of 128 lanes that is taken apart and put together for each product would cost LLVM much time. */

enum { FIRST_CARRIED = 3 }; /* operand of a `for` */

static bool is_product_sum(const TileUse *use) {
    return use->user->id == TILE_OP_WGMMA_WAIT || (use->user->id == TILE_OP_WGMMA && use->index == 2);
}

/* Does the use take the lanes? */
static bool takes_lanes(const TileUse *use) {
    const TileOp *user = use->user, *around = user->block->op;
    if (user->id == TILE_OP_FOR) return use->index >= FIRST_CARRIED && export_splits(user, use->index - FIRST_CARRIED);
    if (user->id == TILE_OP_YIELD) return around && around->id == TILE_OP_FOR && export_splits(around, use->index);
    return is_product_sum(use);
}

bool export_splits(const TileOp *loop, unsigned i) {
    const TileValue *argument = loop->regions[0].arguments[i + 1];
    if (argument->type->kind != TILE_TYPE_VECTOR || argument->type->scalable) return false;
    for (const TileUse *use = argument->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_FOR ? takes_lanes(use) : is_product_sum(use)) return true;
    return false;
}

void export_define_lanes(Exporter *exporter, const TileValue *value, MlirValue *lanes) {
    bool apart = true;
    exporter->lanes[value->number] = lanes;
    for (const TileUse *use = value->first_use; use; use = use->next) apart &= takes_lanes(use);
    if (apart) return;
    MlirType type = export_type(exporter, value->type);
    MlirValue vector = export_empty_vector(exporter, type);
    for (int64_t i = 0; i < tile_type_lanes(value->type); i++)
        vector = export_insert_lane(exporter, vector, type, lanes[i], i);
    exporter->values[value->number] = vector;
}

const MlirValue *export_lanes(Exporter *exporter, const TileValue *value) {
    if (exporter->lanes[value->number]) return exporter->lanes[value->number];
    int64_t count = tile_type_lanes(value->type);
    MlirValue *lanes = TILE_NEW_ARRAY(exporter->bridge->arena, MlirValue, count);
    MlirType type = scalar_of(exporter, value->type->scalar);
    for (int64_t i = 0; i < count; i++) lanes[i] = export_lane(exporter, value_of(exporter, value), type, i);
    return lanes;
}

/* ---- asm of many registers ---- */

/* The operands, results and constraints of an asm. */
typedef struct Asm {
    Exporter *exporter;
    TileText constraints;
    TILE_LIST(MlirValue) operands;
    TILE_LIST(MlirType) results;
} Asm;

static Asm begin_asm(Exporter *exporter) {
    return (Asm){.exporter = exporter, .constraints = {.arena = exporter->bridge->arena}};
}

static void add_constraint(Asm *a, const char *constraint) {
    if (a->constraints.length) tile_text_add(&a->constraints, ",");
    tile_text_add(&a->constraints, constraint);
}

static void add_result(Asm *a, TileScalar scalar) {
    add_constraint(a, scalar == TILE_F32 ? "=f" : "=r");
    tile_list_push(a->exporter->bridge->arena, &a->results, scalar_of(a->exporter, scalar));
}

static void add_operand(Asm *a, const char *constraint, MlirValue value) {
    add_constraint(a, constraint);
    tile_list_push(a->exporter->bridge->arena, &a->operands, value);
}

/* The lanes of the sums, in the registers of results `first` and those behind it. */
static void tie_operands(Asm *a, const TileValue *sums, unsigned first) {
    const MlirValue *lanes = export_lanes(a->exporter, sums);
    char tied[16];
    for (int64_t i = 0; i < tile_type_lanes(sums->type); i++) {
        snprintf(tied, sizeof tied, "%d", (int)(first + (unsigned)i));
        add_operand(a, tied, lanes[i]);
    }
}

/* A structure, or the only result. */
static MlirValue end_asm(Asm *a, const char *text) {
    MlirType result = no_type();
    if (a->results.count == 1) result = a->results.items[0];
    if (a->results.count > 1)
        result = mlirLLVMStructTypeLiteralGet(a->exporter->mlir, (intptr_t)a->results.count, a->results.items, false);
    add_constraint(a, "~{memory}");
    return export_asm(a->exporter, text, tile_text_get(&a->constraints), result, (unsigned)a->operands.count,
                      a->operands.items);
}

/* The structure's fields from `first` on. */
static void set_sums(Exporter *exporter, const TileValue *sums, MlirValue structure, unsigned first) {
    MlirType type = scalar_of(exporter, sums->type->scalar);
    unsigned count = (unsigned)tile_type_lanes(sums->type);
    MlirValue *lanes = TILE_NEW_ARRAY(exporter->bridge->arena, MlirValue, count);
    for (unsigned i = 0; i < count; i++) lanes[i] = export_field(exporter, structure, type, first + i);
    export_define_lanes(exporter, sums, lanes);
}

/* ---- products ---- */

static const char *element_name(TileScalar scalar) {
    switch (scalar) {
    case TILE_F16: return "f16";
    case TILE_BF16: return "bf16";
    case TILE_F32: return "tf32";
    case TILE_F8E4M3: return "e4m3";
    case TILE_F8E5M2: return "e5m2";
    case TILE_U8: return "u8";
    default: return "s8"; /* the type rule lets no other through */
    }
}

static void add_registers(TileText *text, unsigned first, unsigned count) {
    for (unsigned i = 0; i < count; i++) tile_text_format(text, "%s$%u", i ? "," : "{", first + i);
    tile_text_add(text, "}");
}

/* The words of `a`, if it lies in registers. */
static void add_fragment(Asm *a, const TileOp *op) {
    Exporter *exporter = a->exporter;
    MlirValue words =
        export_same_bits(exporter, operand_of(exporter, op, 0), export_vector_of(exporter, TILE_I32, FRAGMENT_WORDS));
    for (unsigned i = 0; i < FRAGMENT_WORDS; i++)
        add_operand(a, "r", export_lane(exporter, words, scalar_of(exporter, TILE_I32), i));
}

/* What stands behind the operands: whether to add to the sums, signs, and which matrices are transposed. */
static void add_immediates(TileText *text, const TileOp *op, TileScalar element, bool registers) {
    const TileAttribute *transposed = tile_op_get(op, TILE_ATTRIBUTE_TRANSPOSED_AB);
    int a = transposed ? (int)transposed->integers[0] : 0, b = transposed ? (int)transposed->integers[1] : 0;
    tile_text_add(text, tile_op_has_part(op, TILE_PARTS_INIT) ? ", 1" : ", add");
    if (tile_scalar_is_float(element)) tile_text_add(text, ", 1, 1");
    if (tile_scalar_bits(element) == 16 && !registers) tile_text_format(text, ", %d", a);
    if (tile_scalar_bits(element) == 16) tile_text_format(text, ", %d", b);
}

void export_wgmma(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_wgmma, "products of warpgroups")) return;
    const TileAttribute *types = tile_op_get(op, TILE_ATTRIBUTE_TYPES);
    TileScalar element = types->types[0]->scalar, sum = op->results[0].type->scalar;
    unsigned count = (unsigned)tile_type_lanes(op->results[0].type);
    bool adds = tile_op_has_part(op, TILE_PARTS_INIT),
         registers = tile_op_operand(op, 0)->type->kind == TILE_TYPE_VECTOR;
    Asm a = begin_asm(exporter);
    TileText text = {.arena = exporter->bridge->arena};
    for (unsigned i = 0; i < count; i++) add_result(&a, sum);
    if (adds) tie_operands(&a, tile_op_named(op, TILE_OPERAND_INIT), 0);
    unsigned next = adds ? 2 * count : count;
    tile_text_format(&text, "%swgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s ",
                     adds ? "" : "{ .reg .pred add; setp.ne.b32 add, 0, 0; ", 2 * count,
                     256 / tile_scalar_bits(element), sum == TILE_F32 ? "f32" : "s32", element_name(element),
                     element_name(types->types[1]->scalar));
    add_registers(&text, 0, count);
    tile_text_add(&text, ", ");
    if (registers)
        add_fragment(&a, op), add_registers(&text, next, FRAGMENT_WORDS);
    else
        add_operand(&a, "l", operand_of(exporter, op, 0)), tile_text_format(&text, "$%u", next);
    next += registers ? FRAGMENT_WORDS : 1;
    add_operand(&a, "l", operand_of(exporter, op, 1));
    tile_text_format(&text, ", $%u", next);
    add_immediates(&text, op, element, registers);
    tile_text_add(&text, adds ? ";" : "; }");
    set_sums(exporter, &op->results[0], end_asm(&a, tile_text_get(&text)), 0);
}

/* ---- order ---- */

static void control(Exporter *exporter, const TileOp *op, const char *text) {
    if (export_need(exporter, op, exporter->target->has_wgmma, "products of warpgroups"))
        export_asm(exporter, text, "~{memory}", no_type(), NO_VALUES);
}

void export_wgmma_fence(Exporter *exporter, const TileOp *op) { control(exporter, op, "wgmma.fence.sync.aligned;"); }

void export_wgmma_commit(Exporter *exporter, const TileOp *op) {
    control(exporter, op, "wgmma.commit_group.sync.aligned;");
}

void export_wgmma_wait(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_wgmma, "products of warpgroups")) return;
    Asm a = begin_asm(exporter);
    char text[64];
    snprintf(text, sizeof text, "wgmma.wait_group.sync.aligned %d;",
             (int)tile_op_integer(op, TILE_ATTRIBUTE_PENDING, 0));
    for (unsigned i = 0; i < op->operand_count; i++)
        for (int64_t lane = 0; lane < tile_type_lanes(op->results[i].type); lane++)
            add_result(&a, op->results[i].type->scalar);
    unsigned first = 0;
    for (unsigned i = 0; i < op->operand_count; i++) {
        tie_operands(&a, tile_op_operand(op, i), first);
        first += (unsigned)tile_type_lanes(op->results[i].type);
    }
    MlirValue structure = end_asm(&a, text);
    first = 0;
    for (unsigned i = 0; i < op->operand_count; i++) {
        set_sums(exporter, &op->results[i], structure, first);
        first += (unsigned)tile_type_lanes(op->results[i].type);
    }
}

void export_set_registers(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_wgmma, "registers that warpgroups pass to one another"))
        return;
    char text[64];
    snprintf(text, sizeof text, "setmaxnreg.%s.sync.aligned.u32 %d;",
             tile_op_integer(op, TILE_ATTRIBUTE_RELEASE, 0) ? "dec" : "inc",
             (int)tile_op_integer(op, TILE_ATTRIBUTE_REGISTERS, 0));
    export_asm(exporter, text, "~{memory}", no_type(), NO_VALUES);
}
