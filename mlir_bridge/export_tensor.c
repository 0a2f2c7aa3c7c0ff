/* Copies of boxes of tensors by tensor maps, as inline assembly: MLIR's llvm dialect has no ops for them. */
#include "lang/ir/tensor_map.h"
#include "mlir_bridge/export.h"

enum { MOST_OPERANDS = 4 + TILE_MAP_MOST_RANK + TILE_MAP_MOST_IMAGE_AXES };

/* An instruction in the making: its operands so far. */
typedef struct Instruction {
    TileText text, constraints;
    MlirValue operands[MOST_OPERANDS];
    unsigned count;
} Instruction;

static Instruction begin(Exporter *exporter) {
    TileArena *arena = exporter->bridge->arena;
    return (Instruction){.text = {.arena = arena}, .constraints = {.arena = arena}};
}

/* Adds `before`, and the operand behind it: l an address, r a word, h half of one. */
static void add_operand(Instruction *made, const char *before, char constraint, MlirValue value) {
    tile_text_format(&made->text, "%s$%u", before, made->count);
    tile_text_format(&made->constraints, "%c,", constraint);
    made->operands[made->count++] = value;
}

/* `[map, {innermost, .. outermost}]`: PTX numbers axes from the contiguous one. */
static void add_box(Exporter *exporter, const TileOp *op, Instruction *made) {
    unsigned count, first = tile_op_operands(op, TILE_OPERAND_COORDINATES, &count);
    add_operand(made, "[", 'l', named_of(exporter, op, TILE_OPERAND_MAP));
    for (unsigned i = count; i-- > 0;)
        add_operand(made, i + 1 == count ? ", {" : ", ", 'r', operand_of(exporter, op, first + i));
    tile_text_add(&made->text, "}]");
}

/* `, {innermost, .. outermost}` behind what else a copy of positions takes: offsets are halves of words. */
static void add_offsets(Exporter *exporter, const TileOp *op, Instruction *made) {
    unsigned count, first = tile_op_operands(op, TILE_OPERAND_WINDOW, &count);
    for (unsigned i = count; i-- > 0;) {
        MlirValue word = operand_of(exporter, op, first + i);
        add_operand(made, i + 1 == count ? ", {" : ", ", 'h', export_build(exporter, "llvm.trunc", scalar_of(exporter, TILE_I16), VALUES(word), NO_ATTRIBUTES));
    }
    if (count) tile_text_add(&made->text, "}");
}

/* The mode: the map's. */
static const char *mode_of(const TileOp *op) {
    const TileTensorMap *map = tile_value_map(tile_op_named(op, TILE_OPERAND_MAP));
    return map && map->positions ? "im2col" : "tile";
}

static void finish(Exporter *exporter, Instruction *made) {
    tile_text_add(&made->constraints, "~{memory}");
    export_asm(exporter, tile_text_get(&made->text), tile_text_get(&made->constraints), no_type(), made->count,
               made->operands);
}

/* Begins an instruction, with a cache policy if the op has a hint: its name, dimensions, and the rest of the name. */
static Instruction begin_boxes(Exporter *exporter, const TileOp *op, const char *qualifiers) {
    unsigned rank;
    tile_op_operands(op, TILE_OPERAND_COORDINATES, &rank);
    Instruction made = begin(exporter);
    tile_text_format(&made.text, "cp.async.bulk.%stensor.%ud.%s%s ", op->id == TILE_OP_PREFETCH_TENSOR ? "prefetch." : "", rank, qualifiers, export_cache_policy(exporter, op).ptr ? ".L2::cache_hint" : "");
    return made;
}

/* A bit for each block of the cluster. */
static MlirValue all_blocks(Exporter *exporter, int64_t blocks) {
    return export_build(exporter, "llvm.mlir.constant", scalar_of(exporter, TILE_I16), NO_VALUES,
                        ATTRIBUTES(named(exporter, NAME_VALUE, export_integer(exporter, TILE_I16, (1 << blocks) - 1))));
}

/* The place behind the box, the cluster's blocks if there are several, and the policy. */
static void finish_boxes(Exporter *exporter, const TileOp *op, Instruction *made) {
    MlirValue policy = export_cache_policy(exporter, op);
    int64_t blocks = tile_op_integer(op, TILE_ATTRIBUTE_MULTICAST, 1);
    tile_text_add(&made->text, "]");
    add_offsets(exporter, op, made);
    if (blocks > 1) add_operand(made, ", ", 'h', all_blocks(exporter, blocks));
    if (policy.ptr) add_operand(made, ", ", 'l', policy);
    tile_text_add(&made->text, ";");
    finish(exporter, made);
}

void export_copy_tensor(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "copies by tensor maps")) return;
    int64_t blocks = tile_op_integer(op, TILE_ATTRIBUTE_MULTICAST, 1);
    const char *shared = tile_arena_format(exporter->bridge->arena, "shared::cluster.global.%s.mbarrier::complete_tx::bytes%s", mode_of(op),
                                           blocks > 1 ? ".multicast::cluster" : "");
    Instruction made = begin_boxes(exporter, op, shared);
    add_operand(&made, "[", 'l', named_of(exporter, op, TILE_OPERAND_PLACE));
    tile_text_add(&made.text, "], ");
    add_box(exporter, op, &made);
    add_operand(&made, ", [", 'l', named_of(exporter, op, TILE_OPERAND_MBARRIER));
    finish_boxes(exporter, op, &made);
}

void export_store_tensor(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "stores by tensor maps")) return;
    const TileTensorMap *map = tile_value_map(tile_op_named(op, TILE_OPERAND_MAP));
    Instruction made = begin_boxes(exporter, op, map && map->positions ? "global.shared::cta.im2col_no_offs.bulk_group" : "global.shared::cta.tile.bulk_group");
    add_box(exporter, op, &made);
    add_operand(&made, ", [", 'l', named_of(exporter, op, TILE_OPERAND_PLACE));
    finish_boxes(exporter, op, &made);
}

void export_prefetch_tensor(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "tensor maps")) return;
    const char *cache = tile_arena_format(exporter->bridge->arena, "L2.global.%s", mode_of(op));
    Instruction made = op->operand_count > 1 ? begin_boxes(exporter, op, cache) : begin(exporter);
    if (op->operand_count > 1) {
        add_box(exporter, op, &made);
        add_offsets(exporter, op, &made);
    } else {
        tile_text_add(&made.text, "prefetch.tensormap ");
        add_operand(&made, "[", 'l', named_of(exporter, op, TILE_OPERAND_MAP));
        tile_text_add(&made.text, "]");
    }
    tile_text_add(&made.text, ";");
    finish(exporter, &made);
}

void export_store_commit(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "groups of stores")) return;
    export_asm(exporter, "cp.async.bulk.commit_group;", "~{memory}", no_type(), NO_VALUES);
}

void export_store_wait(Exporter *exporter, const TileOp *op) {
    if (!export_need(exporter, op, exporter->target->has_tma, "groups of stores")) return;
    bool read = tile_op_integer(op, TILE_ATTRIBUTE_READ, 0) != 0;
    const char *text = tile_arena_format(exporter->bridge->arena, "cp.async.bulk.wait_group%s %d;", read ? ".read" : "",
                                         (int)tile_op_integer(op, TILE_ATTRIBUTE_PENDING, 0));
    export_asm(exporter, text, "~{memory}", no_type(), NO_VALUES);
}
