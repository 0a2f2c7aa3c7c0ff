/* Remarks on the order of additions, for `tilec explain`: each pass that chooses an order reports it. */
#include "lang/ir/build.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lowering/pass.h"

void tile_remark_order(TilePassContext *context, const TileFunc *func, const TileOp *op, const char *name,
                       const char *way) {
    if (!context->remarks) return;
    TileRemark remark = {.kind = TILE_REMARK_ORDER, .place = op->location, .func = func, .name = name, .way = way};
    tile_list_push(context->scratch, context->remarks, remark);
}

/* "sum along axis 1"; NULL if the order makes no difference, as for integers and bools. */
const char *tile_reduction_words(TilePassContext *context, const TileOp *op) {
    const TileType *type = tile_op_operand(op, 0)->type;
    long long axis = (long long)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    if (op->id == TILE_OP_FOLD || op->id == TILE_OP_SCAN)
        return tile_arena_format(context->scratch, "%s along axis %lld",
                                 op->id == TILE_OP_SCAN ? "scan" : "reduce with a function", axis);
    int64_t kind = tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM);
    if (op->id != TILE_OP_REDUCE || !tile_reduction_is_ordered(tile_eval_reduction(kind), type->scalar)) return NULL;
    return tile_arena_format(context->scratch, "%s along axis %lld", tile_name_text(TILE_ATTRIBUTE_KIND, kind), axis);
}

const TileOp *tile_loop_accumulation(const TileOp *loop, unsigned carried) {
    const TileBlock *body = &loop->regions[0];
    const TileValue *argument = body->arguments[1 + carried];
    const TileOp *op = tile_op_operand(body->last, carried)->op;
    if (!op) return NULL;
    switch (op->id) {
    case TILE_OP_ADD:
    case TILE_OP_MUL:
    case TILE_OP_MIN:
    case TILE_OP_MAX: return tile_op_operand(op, 0) == argument || tile_op_operand(op, 1) == argument ? op : NULL;
    case TILE_OP_FMA:
    case TILE_OP_DOT: return tile_op_named(op, TILE_OPERAND_SUM) == argument ? op : NULL;
    default: return NULL;
    }
}

void tile_remark_loop(TilePassContext *context, const TileFunc *func, const TileOp *loop) {
    bool ordered = tile_op_integer(loop, TILE_ATTRIBUTE_ORDERED, 0) != 0;
    for (unsigned i = 0; context->remarks && i < loop->result_count; i++) {
        const TileOp *sum = tile_loop_accumulation(loop, i);
        const TileValue *argument = loop->regions[0].arguments[1 + i];
        if (!sum || !tile_scalar_is_float(argument->type->scalar)) continue;
        const char *name =
            tile_arena_format(context->scratch, "%s over the loop's iterations", tile_op_info((TileOpId)sum->id)->mnemonic);
        tile_remark_order(context, func, loop, name,
                          ordered ? "one after the other, as `ordered` says" : "one after the other");
    }
}
