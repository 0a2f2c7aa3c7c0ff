/* Accesses of global memory as inline assembly: NVPTX has no predicates of vectors, nor policies of the L2 cache. A policy is a
 * register, which the function makes once, where it begins: the assembler makes it again wherever the text does, by six instructions that
 * wait for one another, and takes branches for the accesses between them. */
#include "mlir_bridge/export.h"

enum { WORD_BITS = 32, MOST_WORDS = 4 };

/* ---- words ---- */

MlirType export_words_type(Exporter *exporter, unsigned count) {
    MlirType types[MOST_WORDS];
    for (unsigned i = 0; i < count; i++) types[i] = scalar_of(exporter, TILE_I32);
    return count > 1 ? mlirLLVMStructTypeLiteralGet(exporter->mlir, count, types, false) : types[0];
}

MlirValue export_join_words(Exporter *exporter, MlirValue loaded, unsigned count) {
    MlirType i32 = scalar_of(exporter, TILE_I32), words = export_vector_of(exporter, TILE_I32, count);
    if (count == 1) return loaded;
    MlirValue result = export_empty_vector(exporter, words);
    for (unsigned i = 0; i < count; i++)
        result = export_insert_lane(exporter, result, words, export_field(exporter, loaded, i32, i), i);
    return result;
}

/* The number of words of an access; 0: it is not a number of words that an instruction has. */
static unsigned words_of(const Exporter *exporter, const TileType *type) {
    unsigned bits = (unsigned)tile_type_lanes(type) * tile_scalar_bits(type->scalar), count = bits / WORD_BITS;
    bool whole = bits == count * WORD_BITS && count <= MOST_WORDS && (count & (count - 1)) == 0;
    return exporter->family->predicated_words && whole && type->scalar != TILE_BOOL ? count : 0;
}

static MlirType type_of_words(Exporter *exporter, unsigned count) {
    return count > 1 ? export_vector_of(exporter, TILE_I32, count) : scalar_of(exporter, TILE_I32);
}

/* ---- policies ---- */

static MlirValue create_policy(Exporter *exporter, const char *name) {
    const char *text = tile_arena_format(exporter->bridge->arena, "createpolicy.fractional.L2::%s.b64 $0, 1.0;", name);
    MlirType type = scalar_of(exporter, TILE_I64);
    MlirNamedAttribute attributes[] = {named(exporter, NAME_ASM, mlirStringAttrGet(exporter->mlir, text_ref(text))),
                                       named(exporter, NAME_CONSTRAINTS, mlirStringAttrGet(exporter->mlir, text_ref("=l")))};
    MlirOperationState state = mlirOperationStateGet(text_ref("llvm.inline_asm"), exporter->bridge->unknown);
    mlirOperationStateAddResults(&state, 1, &type);
    mlirOperationStateAddAttributes(&state, 2, attributes);
    MlirOperation op = mlirOperationCreate(&state);
    mlirBlockInsertOwnedOperation(exporter->entry, 0, op);
    return mlirOperationGetResult(op, 0);
}

MlirValue export_cache_policy(Exporter *exporter, const TileOp *op) {
    TileName cache = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT);
    if (cache == TILE_CACHE_DEFAULT) return (MlirValue){NULL};
    MlirValue *policy = cache == TILE_CACHE_STREAM ? &exporter->evict_first : &exporter->evict_last;
    if (!policy->ptr) *policy = create_policy(exporter, cache == TILE_CACHE_STREAM ? "evict_first" : "evict_last");
    return *policy;
}

/* ---- accesses ---- */

enum { MOST_OPERANDS = 2 + MOST_WORDS + 1 };

/* Builds `access`, in which the instruction's name and its operands each have a place for what a policy adds. Constraints are those of the
 * results and operands. */
static MlirValue build_access(Exporter *exporter, const TileOp *op, const char *access, const char *constraints, unsigned results,
                              unsigned operand_count, const MlirValue *operands) {
    TileArena *arena = exporter->bridge->arena;
    MlirValue policy = export_cache_policy(exporter, op), all[MOST_OPERANDS];
    memcpy(all, operands, operand_count * sizeof *all);
    const char *last = policy.ptr ? tile_arena_format(arena, ", $%u", results + operand_count) : "";
    if (policy.ptr) all[operand_count++] = policy;
    const char *text = tile_arena_format(arena, access, policy.ptr ? ".L2::cache_hint" : "", last),
               *registers = tile_arena_format(arena, "%s%s%s", constraints, policy.ptr ? ",l" : "", results ? "" : ",~{memory}");
    return export_asm(exporter, text, registers, results ? export_words_type(exporter, results) : no_type(), operand_count, all);
}

static bool has_policy(const TileOp *op) {
    return tile_op_integer(op, TILE_ATTRIBUTE_CACHE, TILE_CACHE_DEFAULT) != TILE_CACHE_DEFAULT;
}

bool export_hinted_load(Exporter *exporter, const TileOp *op) {
    static const char *const accesses[MOST_WORDS + 1] = {NULL, "ld.global.nc%s.b32 $0, [$1]%s;", "ld.global.nc%s.v2.b32 {$0, $1}, [$2]%s;",
                                                         NULL, "ld.global.nc%s.v4.b32 {$0, $1, $2, $3}, [$4]%s;"};
    static const char *const constraints[MOST_WORDS + 1] = {NULL, "=r,l", "=r,=r,l", NULL, "=r,=r,=r,=r,l"};
    const TileType *type = tile_op_result(op, 0)->type;
    unsigned count = has_policy(op) ? words_of(exporter, type) : 0;
    if (!count) return false;
    MlirValue place = operand_of(exporter, op, 0), loaded = build_access(exporter, op, accesses[count], constraints[count], count, 1, &place);
    set_result(exporter, op, 0, export_same_bits(exporter, export_join_words(exporter, loaded, count), export_type(exporter, type)));
    return true;
}

/* NVPTX makes branches of masked loads, one for each element. */
bool export_predicated_load(Exporter *exporter, const TileOp *op) {
    static const char *const accesses[MOST_WORDS + 1] = {
        NULL, "mov.b32 $0, $3; @$2 ld.global.nc%s.b32 $0, [$1]%s;",
        "mov.b32 $0, $4; mov.b32 $1, $5; @$3 ld.global.nc%s.v2.b32 {$0, $1}, [$2]%s;", NULL,
        "mov.b32 $0, $6; mov.b32 $1, $7; mov.b32 $2, $8; mov.b32 $3, $9; @$5 ld.global.nc%s.v4.b32 {$0, $1, $2, $3}, [$4]%s;"};
    static const char *const constraints[MOST_WORDS + 1] = {NULL, "=r,l,b,r", "=r,=r,l,b,r,r", NULL, "=r,=r,=r,=r,l,b,r,r,r,r"};
    const TileType *type = tile_op_result(op, 0)->type;
    const TileOp *lanes = tile_value_def(tile_op_named(op, TILE_OPERAND_MASK), TILE_OP_SPLAT);
    const TileValue *fill = tile_op_named(op, TILE_OPERAND_FILLING);
    unsigned count = words_of(exporter, type);
    if (!count || !lanes || !fill || fill->type->kind != TILE_TYPE_VECTOR || tile_op_operand(op, 0)->type->space != TILE_SPACE_GLOBAL)
        return false;
    MlirValue other = export_same_bits(exporter, named_of(exporter, op, TILE_OPERAND_FILLING), type_of_words(exporter, count)),
              operands[2 + MOST_WORDS] = {operand_of(exporter, op, 0), operand_of(exporter, lanes, 0), other};
    for (unsigned i = 0; i < count && count > 1; i++) operands[2 + i] = export_lane(exporter, other, scalar_of(exporter, TILE_I32), i);
    MlirValue loaded = build_access(exporter, op, accesses[count], constraints[count], count, 2 + count, operands);
    set_result(exporter, op, 0, export_same_bits(exporter, export_join_words(exporter, loaded, count), export_type(exporter, type)));
    return true;
}

/* The stored value's words, behind the `first` operands. */
static void add_words(Exporter *exporter, const TileOp *op, unsigned count, MlirValue *operands, unsigned first) {
    MlirValue value = export_same_bits(exporter, operand_of(exporter, op, 0), type_of_words(exporter, count));
    operands[first] = value;
    for (unsigned i = 0; i < count && count > 1; i++) operands[first + i] = export_lane(exporter, value, scalar_of(exporter, TILE_I32), i);
}

bool export_hinted_store(Exporter *exporter, const TileOp *op) {
    static const char *const accesses[MOST_WORDS + 1] = {NULL, "st.global%s.b32 [$0], $1%s;", "st.global%s.v2.b32 [$0], {$1, $2}%s;", NULL,
                                                         "st.global%s.v4.b32 [$0], {$1, $2, $3, $4}%s;"};
    static const char *const constraints[MOST_WORDS + 1] = {NULL, "l,r", "l,r,r", NULL, "l,r,r,r,r"};
    unsigned count = has_policy(op) ? words_of(exporter, tile_op_operand(op, 0)->type) : 0;
    if (!count) return false;
    MlirValue operands[MOST_WORDS + 1] = {operand_of(exporter, op, 1)};
    add_words(exporter, op, count, operands, 1);
    build_access(exporter, op, accesses[count], constraints[count], 0, 1 + count, operands);
    return true;
}

bool export_predicated_store(Exporter *exporter, const TileOp *op) {
    static const char *const accesses[MOST_WORDS + 1] = {
        NULL, "@$1 st.global%s.b32 [$0], $2%s;", "@$1 st.global%s.v2.b32 [$0], {$2, $3}%s;", NULL,
        "@$1 st.global%s.v4.b32 [$0], {$2, $3, $4, $5}%s;"};
    static const char *const constraints[MOST_WORDS + 1] = {NULL, "l,b,r", "l,b,r,r", NULL, "l,b,r,r,r,r"};
    const TileOp *lanes = tile_value_def(tile_op_named(op, TILE_OPERAND_MASK), TILE_OP_SPLAT);
    unsigned count = words_of(exporter, tile_op_operand(op, 0)->type);
    if (!count || !lanes || tile_op_operand(op, 1)->type->space != TILE_SPACE_GLOBAL) return false;
    MlirValue operands[MOST_WORDS + 2] = {operand_of(exporter, op, 1), operand_of(exporter, lanes, 0)};
    add_words(exporter, op, count, operands, 2);
    build_access(exporter, op, accesses[count], constraints[count], 0, 2 + count, operands);
    return true;
}
