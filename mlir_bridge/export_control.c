/* Structured control flow, one to one to scf. */
#include "mlir_bridge/export.h"
#include "lang/ir/operands.h"

/* Values that a loop passes on may be split into their lanes: lists of MLIR's values and types. */
typedef struct Passed {
    Exporter *exporter;
    TILE_LIST(MlirValue) values;
    TILE_LIST(MlirType) types;
} Passed;

static bool is_split(const TileOp *loop, int carried) {
    return loop && loop->id == TILE_OP_FOR && carried >= 0 && export_splits(loop, (unsigned)carried);
}

static void add_value(Passed *passed, const TileValue *value, bool split) {
    TileArena *arena = passed->exporter->bridge->arena;
    const MlirValue *lanes = split ? export_lanes(passed->exporter, value) : NULL;
    if (!split) tile_list_push(arena, &passed->values, value_of(passed->exporter, value));
    for (int64_t i = 0; split && i < tile_type_lanes(value->type); i++)
        tile_list_push(arena, &passed->values, lanes[i]);
}

static void add_type(Passed *passed, const TileType *type, bool split) {
    TileArena *arena = passed->exporter->bridge->arena;
    MlirType lane = split ? scalar_of(passed->exporter, type->scalar) : export_type(passed->exporter, type);
    for (int64_t i = 0; i < (split ? tile_type_lanes(type) : 1); i++) tile_list_push(arena, &passed->types, lane);
}

/* Defines a value by the next ones of MLIR, and returns how many these are. */
static unsigned define(Exporter *exporter, const TileValue *value, bool split, MlirValue (*get)(const void *, intptr_t),
                       const void *from, unsigned first) {
    if (!split) {
        exporter->values[value->number] = get(from, first);
        return 1;
    }
    unsigned count = (unsigned)tile_type_lanes(value->type);
    MlirValue *lanes = TILE_NEW_ARRAY(exporter->bridge->arena, MlirValue, count);
    for (unsigned i = 0; i < count; i++) lanes[i] = get(from, first + i);
    export_define_lanes(exporter, value, lanes);
    return count;
}

static MlirValue get_argument(const void *block, intptr_t index) {
    return mlirBlockGetArgument(*(const MlirBlock *)block, index);
}

static MlirValue get_result(const void *op, intptr_t index) {
    return mlirOperationGetResult(*(const MlirOperation *)op, index);
}

/* Exports the ops of a region into a block with the same arguments. */
static MlirRegion export_region(Exporter *exporter, const TileBlock *block) {
    Passed passed = {.exporter = exporter};
    unsigned count = block->argument_count;
    for (unsigned i = 0; i < count; i++) add_type(&passed, block->arguments[i]->type, is_split(block->op, (int)i - 1));
    MlirLocation *locations = TILE_NEW_ARRAY(exporter->bridge->arena, MlirLocation, passed.types.count);
    for (size_t i = 0; i < passed.types.count; i++) locations[i] = exporter->location;
    MlirBlock made = mlirBlockCreate((intptr_t)passed.types.count, passed.types.items, locations),
              outer = exporter->block;
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, made);
    exporter->block = made;
    for (unsigned i = 0, next = 0; i < count; i++)
        next += define(exporter, block->arguments[i], is_split(block->op, (int)i - 1), get_argument, &made, next);
    MlirLocation location = exporter->location;
    for (unsigned i = 0; i < count; i++) export_variable(exporter, block->arguments[i]);
    export_block(exporter, block);
    exporter->location = location;
    exporter->block = outer;
    return region;
}

/* The loop-carried value that operand i is; -1: none. */
static int carried_by(const TileOp *op, unsigned i) {
    unsigned count, first = tile_op_operands(op, TILE_OPERAND_CARRIED, &count);
    if (op->id == TILE_OP_YIELD) return (int)i;
    return op->id == TILE_OP_FOR && i >= first ? (int)(i - first) : -1;
}

/* Builds an op with the operands and results of `op`, and these regions. */
static MlirOperation build_structured(Exporter *exporter, const TileOp *op, const char *name, unsigned region_count,
                                      const MlirRegion *regions) {
    Passed passed = {.exporter = exporter};
    const TileOp *loop = op->id == TILE_OP_YIELD ? op->block->op : op;
    for (unsigned i = 0; i < op->operand_count; i++)
        add_value(&passed, tile_op_operand(op, i), is_split(loop, carried_by(op, i)));
    for (unsigned i = 0; i < op->result_count; i++)
        add_type(&passed, tile_op_result(op, i)->type, is_split(op, (int)i));
    MlirOperationState state = mlirOperationStateGet(text_ref(name), exporter->location);
    mlirOperationStateAddOperands(&state, (intptr_t)passed.values.count, passed.values.items);
    mlirOperationStateAddResults(&state, (intptr_t)passed.types.count, passed.types.items);
    mlirOperationStateAddOwnedRegions(&state, region_count, regions);
    MlirOperation made = mlirOperationCreate(&state);
    mlirBlockAppendOwnedOperation(exporter->block, made);
    for (unsigned i = 0, next = 0; i < op->result_count; i++)
        next += define(exporter, tile_op_result(op, i), is_split(op, (int)i), get_result, &made, next);
    return made;
}

/* MLIR propagates this attribute to the branch that the loop becomes; pipeline.c makes it a hint for LLVM. */
static void hint_unrolling(Exporter *exporter, MlirOperation loop, int64_t count) {
    const char *text = tile_arena_format(exporter->bridge->arena,
                                         "#llvm.loop_annotation<unroll = <count = %lld : i32>>", (long long)count);
    MlirAttribute hint = mlirAttributeParseGet(exporter->mlir, text_ref(text));
    mlirOperationSetDiscardableAttributeByName(loop, mlirIdentifierStr(exporter->bridge->names[NAME_LOOP_HINT]), hint);
    exporter->bridge->unrolls = true;
}

void export_for(Exporter *exporter, const TileOp *op) {
    MlirRegion body = export_region(exporter, &op->regions[0]);
    MlirOperation loop = build_structured(exporter, op, "scf.for", 1, &body);
    int64_t count = tile_op_integer(op, TILE_ATTRIBUTE_UNROLL, 1);
    if (count > 1) hint_unrolling(exporter, loop, count);
}

void export_while(Exporter *exporter, const TileOp *op) {
    MlirRegion before = export_region(exporter, &op->regions[0]);
    MlirRegion regions[2] = {before, export_region(exporter, &op->regions[1])};
    build_structured(exporter, op, "scf.while", 2, regions);
}

void export_if(Exporter *exporter, const TileOp *op) {
    MlirRegion then = export_region(exporter, &op->regions[0]);
    MlirRegion regions[2] = {then, export_region(exporter, &op->regions[1])};
    build_structured(exporter, op, "scf.if", 2, regions);
}

void export_partitions(Exporter *exporter, const TileOp *op) {
    int64_t end = tile_op_get(op, TILE_ATTRIBUTE_WARPS)->integers[0] * TILE_WARP_THREADS;
    MlirValue is_first = export_is_warp_below(exporter, end);
    MlirRegion first = export_region(exporter, &op->regions[0]);
    export_scf_if(exporter, is_first, no_type(), first, export_region(exporter, &op->regions[1]));
}

void export_yield(Exporter *exporter, const TileOp *op) { build_structured(exporter, op, "scf.yield", 0, NULL); }

void export_condition(Exporter *exporter, const TileOp *op) {
    build_structured(exporter, op, "scf.condition", 0, NULL);
}

void export_return(Exporter *exporter, const TileOp *op) { build_structured(exporter, op, "llvm.return", 0, NULL); }

/* Stores the number in the first word of the scratch, unless there is one: the first assertion that fails is
 * reported. */
static void record_assertion(Exporter *exporter, int64_t number) {
    const TileBlock *body = &exporter->func->body;
    MlirValue word = value_of(exporter, body->arguments[body->argument_count - 1]);
    MlirType i64 = scalar_of(exporter, TILE_I64), truth = scalar_of(exporter, TILE_BOOL);
    MlirNamedAttribute align = named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, 8));
    MlirValue mine = export_constant(exporter, i64, export_integer(exporter, TILE_I64, number));
    MlirValue before = export_build(exporter, "llvm.load", i64, VALUES(word), ATTRIBUTES(align));
    MlirValue first = export_compare(exporter, false, ICMP_EQ, truth, before, export_lane_number(exporter, 0));
    MlirValue after = export_build(exporter, "llvm.select", i64, VALUES(first, mine, before), NO_ATTRIBUTES);
    export_build(exporter, "llvm.store", no_type(), VALUES(after, word), ATTRIBUTES(align));
}

/* A library must not end the host's process: the program records the failure and continues, and the launch fails. */
void export_assert(Exporter *exporter, const TileOp *op) { exporter->family->assertion(exporter, op); }

void export_scratch_assert(Exporter *exporter, const TileOp *op) {
    if (exporter->func->scratch_bytes < sizeof(int64_t)) {
        export_fail(exporter, TILE_INTERNAL, op, "the pass cpu-scratch had to reserve scratch for its number");
        return;
    }
    MlirBlock outer = exporter->block, then = mlirBlockCreate(0, NULL, NULL),
              otherwise = mlirBlockCreate(0, NULL, NULL);
    exporter->block = otherwise;
    record_assertion(exporter, (int64_t)(uintptr_t)tile_map_get(&exporter->assertions, op));
    exporter->block = outer;
    MlirValue none = {NULL};
    MlirRegion passes = export_simple_region(exporter, then, none);
    export_scf_if(exporter, operand_of(exporter, op, 0), no_type(), passes,
                  export_simple_region(exporter, otherwise, none));
}

/* Offsets in the scratch of the function to call and of its first argument, which the launcher stores
 * (launch/image.h). */
enum { PRINT_FUNCTION = 8, PRINT_CONTEXT = 16 };

static MlirValue offset_by(Exporter *exporter, MlirValue pointer, int32_t bytes) {
    return export_build(
        exporter, "llvm.getelementptr", exporter->bridge->pointer, VALUES(pointer),
        ATTRIBUTES(named(exporter, NAME_CONSTANT_INDICES, mlirDenseI32ArrayGet(exporter->mlir, 1, &bytes)),
                   named(exporter, NAME_ELEMENT_TYPE, mlirTypeAttrGet(scalar_of(exporter, TILE_I8))),
                   named(exporter, NAME_NO_WRAP, export_integer(exporter, TILE_I32, 0))));
}

/* The launcher prints: loaded code cannot refer to symbols of the process. */
void export_print_items(Exporter *exporter, const TileOp *op) {
    const TileBlock *body = &exporter->func->body;
    MlirValue scratch = value_of(exporter, body->arguments[body->argument_count - 1]);
    MlirValue items = operand_of(exporter, op, 0);
    MlirType pointer = exporter->bridge->pointer;
    MlirNamedAttribute align = named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, 8));
    for (unsigned i = 1; i < op->operand_count; i++)
        export_build(exporter, "llvm.store", no_type(),
                     VALUES(operand_of(exporter, op, i), offset_by(exporter, items, 8 * (int32_t)(i - 1))),
                     ATTRIBUTES(align));
    MlirValue function = export_build(exporter, "llvm.load", pointer,
                                      VALUES(offset_by(exporter, scratch, PRINT_FUNCTION)), ATTRIBUTES(align));
    MlirValue context = export_build(exporter, "llvm.load", pointer,
                                     VALUES(offset_by(exporter, scratch, PRINT_CONTEXT)), ATTRIBUTES(align));
    int64_t number = (int64_t)(uintptr_t)tile_map_get(&exporter->assertions, op);
    MlirValue which =
        export_constant(exporter, scalar_of(exporter, TILE_I64), export_integer(exporter, TILE_I64, number));
    int32_t segments[2] = {4, 0};
    export_build(exporter, "llvm.call", no_type(), VALUES(function, context, which, items),
                 ATTRIBUTES(named(exporter, NAME_SEGMENTS, mlirDenseI32ArrayGet(exporter->mlir, 2, segments)),
                            named(exporter, NAME_BUNDLES, mlirDenseI32ArrayGet(exporter->mlir, 0, NULL))));
}
