/* Purpose: code for the value of an integer parameter. Where a parameter decides strides, bounds or steps, its value is
 * asked for; where it is known, it takes the parameter's place in the grids.
 *
 * A parameter flows through integer arithmetic. It decides a stride where it is the step of a range, or where a product
 * of it with a value that is no constant, or what it divides, is an index; it decides bounds and steps where it comes
 * to those of a loop or to the extents of a grid. One that is only added to indices decides none: other code would not
 * be faster. What is computed outside of the grids stays, with its parameters: the launcher computes it, and its
 * messages show what from. What a grid needs of that is computed in the grid again.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 1, inout>, %s: i64 {value = 2}, %d: i64) {
 *       %one = const {value = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %eight = const {value = 8} : i64
 *       %some = ge %s, %one : bool
 *       require %some {text = "s >= 1"}
 *       grid %eight (%p: i64) {
 *         %at = mul %p, %s : i64
 *         %from = add %at, %d : i64
 *         %v = load_tile %x, %from, %s, %zero, %eight {access = [range]} : f32[8]
 *         store_tile %x, %v, %p, %one, %zero, %eight {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 1, inout>, %s: i64 {value = 2, used_value, asked_value}, %d: i64) {
 *       %one = const {value = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %eight = const {value = 8} : i64
 *       %some = ge %s, %one : bool
 *       require %some {text = "s >= 1"}
 *       grid %eight (%p: i64) {
 *         %0 = const {value = 2} : i64
 *         %at = mul %p, %0 : i64
 *         %from = add %at, %d : i64
 *         %v = load_tile %x, %from, %0, %zero, %eight {access = [range]} : f32[8]
 *         store_tile %x, %v, %p, %one, %zero, %eight {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: inlined functions; runs before ops are hoisted out of grids. Keeps: every value; records in the parameters
 * what was asked and used. A reduction in a loop whose bounds become constants is marked `piecewise`: with its loop
 * gone or not, it adds in one order. Cost: linear in the uses of integer parameters. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/pass.h"

/* How a value comes from the parameter. */
typedef enum Way {
    WAY_NONE,
    WAY_SUM,   /* by sums and the like: an index moves with it, no stride does */
    WAY_FACTOR /* multiplied by what varies, or a divisor of it */
} Way;

typedef struct Flow {
    TileArena *arena;
    TileMap ways; /* value to Way */
    TILE_LIST(TileValue *) worklist;
    TILE_LIST(TileOp *) loops; /* whose bounds or steps come from it */
    bool decides;
} Flow;

static void reach(Flow *flow, TileValue *value, Way way) {
    Way before = (Way)(uintptr_t)tile_map_get(&flow->ways, value);
    if (before >= way) return;
    tile_map_set(&flow->ways, value, (void *)(uintptr_t)way);
    tile_list_push(flow->arena, &flow->worklist, value);
}

/* In the access of an op: as a step, or in an index that it is a factor of. */
static bool decides_access(const TileOp *op, unsigned operand, Way way) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    if (operand < tile_access_first(op) || operand >= tile_access_end(op)) return false;
    unsigned rank = tile_access_read(op, indices);
    for (unsigned i = 0; i < rank; i++) {
        if (operand == indices[i].operand) return way == WAY_FACTOR;
        if (indices[i].kind == TILE_ACCESS_RANGE && operand == indices[i].operand + 1) return true;
    }
    return false; /* the bounds of a range: they follow from its first index */
}

static bool is_integer(const TileValue *value) {
    const TileType *type = value->type;
    return (type->kind == TILE_TYPE_SCALAR || type->kind == TILE_TYPE_TILE) && !tile_scalar_is_float(type->scalar) &&
           type->scalar != TILE_BOOL;
}

static Way way_through(const TileOp *op, unsigned operand, Way way) {
    int64_t constant;
    if (op->id == TILE_OP_DIV || op->id == TILE_OP_REM) return operand == 1 ? WAY_FACTOR : way;
    if (op->id != TILE_OP_MUL) return way;
    return tile_value_integer(tile_op_operand(op, 1 - operand), &constant) ? way : WAY_FACTOR;
}

static void follow_use(Flow *flow, const TileUse *use, Way way) {
    TileOp *op = use->user;
    unsigned operand = (unsigned)(use - op->operands);
    TileOpClass class = tile_op_info((TileOpId)op->id)->class;
    if (op->id == TILE_OP_GRID) {
        flow->decides = true;
    } else if (op->id == TILE_OP_FOR) {
        unsigned count, carried = tile_op_operands(op, TILE_OPERAND_CARRIED, &count);
        if (count && operand >= carried) return;
        flow->decides = true;
        tile_list_push(flow->arena, &flow->loops, op);
    } else if (tile_op_get(op, TILE_ATTRIBUTE_ACCESS)) {
        flow->decides |= decides_access(op, operand, way);
    } else if ((class == TILE_CLASS_ELEMENTWISE || class == TILE_CLASS_SHAPE) && op->result_count == 1 &&
               is_integer(&op->results[0])) {
        reach(flow, &op->results[0], way_through(op, operand, way));
    }
}

/* Where the parameter comes to. */
static Flow follow(TilePassContext *context, TileValue *parameter) {
    Flow flow = {.arena = context->scratch};
    tile_map_init(&flow.ways, context->scratch);
    reach(&flow, parameter, WAY_SUM);
    while (flow.worklist.count) {
        TileValue *value = flow.worklist.items[--flow.worklist.count];
        Way way = (Way)(uintptr_t)tile_map_get(&flow.ways, value);
        for (const TileUse *use = value->first_use; use; use = use->next) follow_use(&flow, use, way);
    }
    return flow;
}

static void mark_reduction(TileOp *op, void *state) {
    if (op->id == TILE_OP_REDUCE) tile_op_set_integer(state, op, TILE_ATTRIBUTE_PIECEWISE, 1);
}

/* Asks for the parameter's value where it decides anything. Is it known, and of use? */
static bool ask(TilePassContext *context, TileValue *value, TileParameter *parameter) {
    if (value->type->kind != TILE_TYPE_SCALAR || !is_integer(value)) return false;
    Flow flow = follow(context, value);
    parameter->asked_value |= flow.decides;
    if (!flow.decides || parameter->facts.value == TILE_UNKNOWN) return false;
    parameter->used_value = true;
    for (size_t i = 0; i < flow.loops.count; i++)
        tile_block_walk(&flow.loops.items[i]->regions[0], mark_reduction, context->module);
    return true;
}

/* ---- values in their places ---- */

typedef struct Placing {
    TilePassContext *context;
    TileFunc *func;
    TileMap depends;     /* values of the host that come from a known parameter; to themselves */
    TileMap copies;      /* these, and known parameters, to what stands for them in the grid */
    TileBuilder builder; /* at the head of the grid */
} Placing;

static bool is_known(const Placing *p, const TileValue *value) {
    return !value->op && value->block == &p->func->body && p->func->parameters[value->index].used_value;
}

/* Ops of the host are in order of definition. */
static void find_dependent(Placing *p) {
    for (TileOp *op = p->func->body.first; op; op = op->next) {
        bool depends = false;
        if (tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE || op->result_count != 1) continue;
        for (unsigned i = 0; i < op->operand_count; i++) {
            TileValue *operand = tile_op_operand(op, i);
            depends |= is_known(p, operand) || tile_map_get(&p->depends, operand);
        }
        if (depends) tile_map_set(&p->depends, &op->results[0], &op->results[0]);
    }
}

/* What takes the value's place in the grid; NULL: it stays. */
static TileValue *placed(Placing *p, TileValue *value) {
    TileValue *copy = tile_map_get(&p->copies, value);
    if (copy) return copy;
    if (is_known(p, value)) {
        copy = tile_build_integer(&p->builder, value->type, p->func->parameters[value->index].facts.value);
    } else if (tile_map_get(&p->depends, value)) {
        for (unsigned i = 0; i < value->op->operand_count; i++) placed(p, tile_op_operand(value->op, i));
        TileOp *op = tile_op_clone(p->context->module, value->op, &p->copies);
        tile_builder_insert(&p->builder, op);
        copy = &op->results[0];
    }
    if (copy) tile_map_set(&p->copies, value, copy);
    return copy;
}

static void place_in(TileOp *op, void *state) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = placed(state, tile_op_operand(op, i));
        if (value) tile_op_set_operand(op, i, value);
    }
}

static void place_in_grid(Placing *p, TileOp *grid) {
    TileOp *first = grid->regions[0].first;
    p->builder = tile_builder_before(p->context->module, first);
    tile_map_init(&p->copies, p->context->scratch);
    for (TileOp *op = first, *next; op; op = next) {
        next = op->next;
        place_in(op, p);
        for (unsigned i = 0; i < op->region_count; i++) tile_block_walk(&op->regions[i], place_in, p);
    }
}

TileResult tile_pass_specialise(TilePassContext *context, TileFunc *func) {
    bool asked = false, known = false;
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        TileParameter *parameter = &func->parameters[i];
        bool before = parameter->asked_value;
        known |= ask(context, func->body.arguments[i], parameter);
        asked |= parameter->asked_value && !before;
    }
    if (!known) return asked ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
    Placing placing = {.context = context, .func = func};
    tile_map_init(&placing.depends, context->scratch);
    find_dependent(&placing);
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_GRID) place_in_grid(&placing, op);
    return TILE_RESULT_CHANGED;
}
