/* Looking at IR and changing it, for include/tile/pass.h. */
#include <string.h>

#include "driver/compile/ir.h"
#include "lang/scalar/scalar.h"
#include "tile/pass.h"

const char *tile_ir_function_name(const TileIr *ir) { return ir && ir->func ? ir->func->name : ""; }
bool tile_ir_is_machine(const TileIr *ir) { return ir && ir->func && ir->func->form == TILE_FORM_MACHINE; }

/* ---- looking ---- */

typedef struct Walk {
    TileIr *ir;
    void (*visit)(TileIr *ir, TileIrOp *op, void *state);
    void *state;
} Walk;

static void visit_op(TileOp *op, void *state) {
    const Walk *walk = state;
    if (walk->ir->status == TILE_OK) walk->visit(walk->ir, op, walk->state);
}

void tile_ir_walk(TileIr *ir, void (*visit)(TileIr *ir, TileIrOp *op, void *state), void *state) {
    Walk walk = {ir, visit, state};
    if (ir && visit && ir->func && ir->status == TILE_OK) tile_block_walk(&ir->func->body, visit_op, &walk);
}

const char *tile_ir_op_name(const TileIrOp *op) { return op ? tile_op_info((TileOpId)op->id)->mnemonic : ""; }
unsigned tile_ir_operand_count(const TileIrOp *op) { return op ? op->operand_count : 0; }

TileIrValue *tile_ir_operand(const TileIrOp *op, unsigned index) {
    return op && index < op->operand_count ? tile_op_operand(op, index) : NULL;
}

unsigned tile_ir_result_count(const TileIrOp *op) { return op ? op->result_count : 0; }
TileIrOp *tile_ir_definition(const TileIrValue *value) { return value ? value->op : NULL; }

unsigned tile_ir_use_count(const TileIrValue *value) {
    unsigned count = 0;
    for (const TileUse *use = value ? value->first_use : NULL; use; use = use->next) count++;
    return count;
}

bool tile_ir_constant(const TileIrValue *value, double *number) {
    uint64_t bits;
    int64_t integer;
    if (!value || !number || !value->op || !tile_value_bits(value, &bits)) return false;
    if (tile_value_integer(value, &integer))
        *number = value->type->scalar == TILE_U64 ? (double)(uint64_t)integer : (double)integer;
    else
        *number = tile_scalar_to_double(value->type->scalar, bits);
    return true;
}

bool tile_ir_attribute(const TileIrOp *op, const char *name, int64_t *integer) {
    TileAttributeKey key = name ? tile_attribute_find(name, strlen(name)) : TILE_ATTRIBUTE_COUNT;
    if (!op || !integer || key == TILE_ATTRIBUTE_COUNT || tile_attribute_storage(key) != TILE_STORAGE_INT) return false;
    const TileAttribute *attribute = tile_op_get(op, key);
    if (attribute) *integer = attribute->integer;
    return attribute != NULL;
}

/* ---- changing ---- */

typedef struct Change {
    enum { CHANGE_BEFORE, CHANGE_REPLACE, CHANGE_ERASE, CHANGE_REFUSE } kind;
    TileOp *op;
    TileValue *value;
    const char *why;
} Change;

static void refuse_change(TileIr *ir, const Change *change, const char *why) {
    static const char *const calls[] = {"tile_ir_before", "tile_ir_replace", "tile_ir_erase", "tile_ir_refuse"};
    const char *name = change->op ? tile_op_info((TileOpId)change->op->id)->mnemonic : "NULL";
    tile_ir_fail(ir, "%s of %s: %s", calls[change->kind], name, why);
}

static void replace(TileIr *ir, const Change *change) {
    TileOp *op = change->op;
    if (op->result_count == 0)
        refuse_change(ir, change, "it has no result");
    else if (change->value && !tile_ir_owns_value(ir, change->value))
        refuse_change(ir, change, "the value is one of another TileIr");
    else if (!change->value || change->value->type != tile_op_result(op, 0)->type)
        refuse_change(ir, change, "the value has another type");
    else if (change->value != tile_op_result(op, 0))
        tile_value_replace(tile_op_result(op, 0), change->value);
}

static void erase(TileIr *ir, const Change *change) {
    for (unsigned i = 0; i < change->op->result_count; i++)
        if (tile_value_has_uses(tile_op_result(change->op, i))) refuse_change(ir, change, "its results are used");
    if (ir->status != TILE_OK) return;
    if (ir->at.before == change->op) ir->at.before = change->op->next;
    tile_op_erase(change->op);
}

static void apply(TileIr *ir, const Change *change) {
    if (change->kind == CHANGE_REFUSE) {
        const char *at = change->op ? tile_op_info((TileOpId)change->op->id)->mnemonic : "";
        tile_ir_fail(ir, "%s%s%s", at, change->op ? ": " : "", change->why ? change->why : "refused");
    } else if (!change->op || !change->op->block || tile_op_func(change->op) != ir->func) {
        refuse_change(ir, change, "no operation of the function");
    } else if (change->kind == CHANGE_BEFORE) {
        ir->at.block = change->op->block;
        ir->at.before = change->op;
        ir->at.location = change->op->location;
    } else if (change->kind == CHANGE_REPLACE) {
        replace(ir, change);
    } else {
        erase(ir, change);
    }
}

static void change(TileIr *ir, Change wanted) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return;
    }
    apply(ir, &wanted);
    tile_ir_leave(ir);
}

void tile_ir_before(TileIr *ir, TileIrOp *op) { change(ir, (Change){.kind = CHANGE_BEFORE, .op = op}); }

void tile_ir_replace(TileIr *ir, TileIrOp *op, TileIrValue *value) {
    change(ir, (Change){.kind = CHANGE_REPLACE, .op = op, .value = value});
}

void tile_ir_erase(TileIr *ir, TileIrOp *op) { change(ir, (Change){.kind = CHANGE_ERASE, .op = op}); }

void tile_ir_refuse(TileIr *ir, const TileIrOp *op, const char *why) {
    change(ir, (Change){.kind = CHANGE_REFUSE, .op = (TileOp *)op, .why = why});
}
