/* Building kernels for include/tile/ir.h: operations and their regions. */
#include <string.h>

#include "driver/compile/ir.h"
#include "lang/scalar/scalar.h"
#include "lang/ir/text.h"

enum { MOST_OPERANDS = 4096 };

/* A requested operation. */
typedef struct Request {
    const char *name;
    TileIrValue *const *operands;
    unsigned operand_count;
    const char *attributes; /* or NULL */
    const TileType *const *types;
    unsigned type_count;
    bool regions; /* is it to have any? */
    bool constant;
    uint64_t bits; /* of the constant */
} Request;

/* An error in the current operation. */
static void refuse(TileIr *ir, const Request *request, const char *why) {
    tile_ir_fail(ir, "op %u (%s): %s", ir->op_count + 1, request->name, why);
}

/* ---- requests ---- */

static void refuse_name(TileIr *ir, const Request *request) {
    unsigned best = 4;
    const char *nearest = NULL;
    for (int id = 0; id < TILE_OP_COUNT; id++) {
        const TileOpInfo *info = tile_op_info((TileOpId)id);
        unsigned distance = info->forms & TILE_FORM_TILE ? tile_edit_distance(request->name, info->mnemonic) : best;
        if (distance >= best) continue;
        best = distance;
        nearest = info->mnemonic;
    }
    const char *guess = nearest ? tile_arena_format(ir->arena, "; did you mean %s?", nearest) : "";
    refuse(ir, request, tile_arena_format(ir->arena, "there is no such operation%s", guess));
}

static bool check_place(TileIr *ir, const Request *request) {
    if (!ir->func) {
        refuse(ir, request, "stands outside of a kernel");
        return false;
    }
    const TileOp *last = ir->at.before ? NULL : ir->at.block->last;
    if (!last || !(tile_op_info((TileOpId)last->id)->traits & TILE_TRAIT_TERMINATOR)) return true;
    refuse(ir, request, "stands behind the end of its region");
    return false;
}

static bool check_operand(TileIr *ir, const Request *request, unsigned index) {
    const TileValue *value = request->operands[index];
    if (!value) {
        refuse(ir, request, tile_arena_format(ir->arena, "operand %u is NULL", index));
        return false;
    }
    if (!tile_ir_owns_value(ir, value)) {
        refuse(ir, request, tile_arena_format(ir->arena, "operand %u is a value of another TileIr", index));
        return false;
    }
    if (tile_block_inside(ir->at.block, tile_value_block(value))) return true;
    refuse(ir, request, tile_arena_format(ir->arena, "operand %u belongs to a region or kernel that has ended", index));
    return false;
}

static bool check_request(TileIr *ir, const Request *request, TileOpId id) {
    const TileOpInfo *info = tile_op_info(id);
    if (!check_place(ir, request)) return false;
    if ((info->regions > 0) != request->regions) {
        refuse(ir, request,
               info->regions ? "has regions: tile_ir_begin makes it" : "has no regions: tile_ir_op makes it");
        return false;
    }
    if (request->operand_count > MOST_OPERANDS || (request->operand_count && !request->operands)) {
        refuse(ir, request, "the operands are no list");
        return false;
    }
    for (unsigned i = 0; i < request->operand_count; i++)
        if (!check_operand(ir, request, i)) return false;
    for (unsigned i = 0; i < request->type_count; i++) {
        if (tile_ir_owns_type(ir, request->types[i])) continue;
        refuse(ir, request, tile_arena_format(ir->arena, "type %u is one of another TileIr", i));
        return false;
    }
    return true;
}

/* ---- making ---- */

/* Folds and scans: one for each tile operand; loops: one for each loop-carried value. */
static unsigned count_results(const TileOp *op, const Request *request) {
    const TileOpInfo *info = tile_op_info((TileOpId)op->id);
    unsigned count = op->operand_count;
    if (info->results != TILE_ANY_COUNT) return (unsigned)info->results;
    switch (op->id) {
    case TILE_OP_FOR: return count > 3 ? count - 3 : 0;
    case TILE_OP_WHILE: return count;
    case TILE_OP_FOLD:
    case TILE_OP_SCAN:
    case TILE_OP_SORT:
        count -= count && tile_op_has_part(op, TILE_PARTS_MASK);
        return tile_op_has_part(op, TILE_PARTS_INIT) ? count / 2 : count;
    default: return request->type_count;
    }
}

static void add_arguments(TileIr *ir, TileOp *op, unsigned region, unsigned from, unsigned count, bool scalars) {
    for (unsigned i = 0; i < count; i++) {
        const TileType *type = tile_op_operand(op, from + i)->type;
        if (scalars) type = tile_type_scalar(ir->context, type->scalar);
        tile_block_add_argument(ir->module, &op->regions[region], type, NULL);
    }
}

static void add_numbers(TileIr *ir, TileOp *op, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        tile_block_add_argument(ir->module, &op->regions[0], tile_type_scalar(ir->context, TILE_I64), NULL);
}

static void open_regions(TileIr *ir, TileOp *op) {
    unsigned results = op->result_count;
    if (op->id == TILE_OP_GRID) add_numbers(ir, op, op->operand_count);
    if (op->id == TILE_OP_FOR) add_numbers(ir, op, 1);
    if (op->id == TILE_OP_FOR) add_arguments(ir, op, 0, 3, results, false);
    for (unsigned region = 0; op->id == TILE_OP_WHILE && region < 2; region++)
        add_arguments(ir, op, region, 0, results, false);
    for (unsigned side = 0; tile_op_combiner(op) && side < 2; side++) add_arguments(ir, op, 0, 0, results, true);
    tile_list_push(ir->arena, &ir->open, (TileIrRegion){op, 0});
    ir->at.block = &op->regions[0];
    ir->at.before = NULL;
}

/* The requested op, detached, result types not yet inferred; NULL where the attributes are invalid. */
static TileOp *create_op(TileIr *ir, const Request *request, TileOpId id) {
    TileText errors = {.arena = ir->arena};
    const char *attributes = request->attributes ? request->attributes : "";
    const TileType *none[] = {NULL}, *const *known = request->type_count ? request->types : none;
    TileOp *op = tile_op_create(ir->module, id, ir->at.location, request->operands, request->operand_count, known,
                                tile_op_info(id)->results == 1);
    if (request->constant)
        tile_op_set(ir->module, op, (TileAttribute){.key = TILE_ATTRIBUTE_VALUE, .bits = request->bits});
    bool numbers = id == TILE_OP_CONST && !known[0] && *attributes;
    if (!numbers && tile_op_read_attributes(ir->module, op, attributes, &errors)) return op;
    refuse(ir, request,
           numbers ? "a constant needs a type"
                   : tile_arena_format(ir->arena, "attributes, at %s", tile_text_get(&errors)));
    return NULL;
}

static TileOp *build(TileIr *ir, const Request *request) {
    if (!request->name) {
        tile_ir_fail(ir, "op %u: an operation needs a name", ir->op_count + 1);
        return NULL;
    }
    TileOpId id = tile_op_find(request->name, strlen(request->name));
    if (id == TILE_OP_COUNT) {
        refuse_name(ir, request);
        return NULL;
    }
    if (!check_request(ir, request, id)) return NULL;
    TileOp *draft = create_op(ir, request, id);
    if (!draft) return NULL;
    unsigned count = count_results(draft, request);
    if (request->type_count > count) {
        refuse(ir, request, "more types are given than it has results");
        return NULL;
    }
    const TileType **types = TILE_NEW_ARRAY(ir->arena, const TileType *, count);
    for (unsigned i = 0; i < request->type_count; i++) types[i] = request->types[i];
    ir->at.error = NULL;
    TileOp *op = tile_build_op(&ir->at, id, request->operands, request->operand_count, draft->attributes,
                               draft->attribute_count, types, count);
    tile_op_erase(draft);
    if (ir->at.error) {
        refuse(ir, request, strstr(ir->at.error, ": ") + 2);
        return NULL;
    }
    ir->op_count++;
    if (op->region_count) open_regions(ir, op);
    return op;
}

static TileOp *run(TileIr *ir, const Request *request) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return NULL;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return NULL;
    }
    TileOp *op = build(ir, request);
    tile_ir_leave(ir);
    return op;
}

static TileValue *single(const TileOp *op) { return op && op->result_count ? tile_op_result(op, 0) : NULL; }

TileIrValue *tile_ir_op(TileIr *ir, const char *op, TileIrValue *const *operands, unsigned operand_count,
                        const char *attributes, const TileIrType *type) {
    Request request = {.name = op,
                       .operands = operands,
                       .operand_count = operand_count,
                       .attributes = attributes,
                       .types = &type,
                       .type_count = type != NULL};
    return single(run(ir, &request));
}

TileIrOp *tile_ir_begin(TileIr *ir, const char *op, TileIrValue *const *operands, unsigned operand_count,
                        const char *attributes, const TileIrType *const *types, unsigned type_count) {
    Request request = {.name = op,
                       .operands = operands,
                       .operand_count = operand_count,
                       .attributes = attributes,
                       .types = types,
                       .type_count = type_count,
                       .regions = true};
    bool listed = type_count <= MOST_OPERANDS && (types || !type_count);
    for (unsigned i = 0; listed && i < type_count; i++) listed = types[i] != NULL;
    if (!listed) tile_ir_mistake(ir, "the types of the results are no list"); /* one that was not made is one before */
    return listed ? run(ir, &request) : NULL;
}

/* ---- constants ---- */

static TileValue *build_constant(TileIr *ir, const TileType *type, uint64_t bits) {
    Request request = {.name = "const", .types = &type, .type_count = 1, .constant = true, .bits = bits};
    return type ? single(run(ir, &request)) : NULL;
}

TileIrValue *tile_ir_number(TileIr *ir, const char *text, double number) {
    const TileType *type = tile_ir_type(ir, text);
    return type ? build_constant(ir, type, tile_scalar_from_double(type->scalar, number)) : NULL;
}

TileIrValue *tile_ir_integer(TileIr *ir, const char *text, int64_t integer) {
    const TileType *type = tile_ir_type(ir, text);
    return type ? build_constant(ir, type, tile_scalar_from_integer(type->scalar, integer)) : NULL;
}

/* ---- regions ---- */

static TileIrRegion *innermost(TileIr *ir, const char *call) {
    if (ir->open.count) return &ir->open.items[ir->open.count - 1];
    tile_ir_fail(ir, "%s: no operation has begun", call);
    return NULL;
}

/* Terminates the region if it yields nothing. */
static void end_region(TileIr *ir, const TileIrRegion *region) {
    const TileOp *last = ir->at.block->last, *op = region->op;
    bool ended = last && (tile_op_info((TileOpId)last->id)->traits & TILE_TRAIT_TERMINATOR);
    if (ended) return;
    if (op->result_count || op->id == TILE_OP_WHILE) {
        tile_ir_fail(ir, "region %u of %s does not end in what it yields", region->number,
                     tile_op_info((TileOpId)op->id)->mnemonic);
        return;
    }
    tile_build_end(&ir->at, TILE_OP_YIELD, NULL, 0);
    ir->op_count++;
}

/* Continues in the next region, or after the operation if that was the last. */
static void leave_region(TileIr *ir, bool last) {
    TileIrRegion *region = innermost(ir, last ? "tile_ir_end" : "tile_ir_next");
    if (!region) return;
    end_region(ir, region);
    if ((region->number + 1 == region->op->region_count) != last) {
        tile_ir_fail(ir, "%s: %s has %u regions, and this is number %u", last ? "tile_ir_end" : "tile_ir_next",
                     tile_op_info((TileOpId)region->op->id)->mnemonic, region->op->region_count, region->number);
    } else if (last) {
        ir->at.block = region->op->block;
        ir->at.before = region->op->next;
        ir->open.count--;
    } else {
        ir->at.block = &region->op->regions[++region->number];
    }
}

static void leave(TileIr *ir, bool last) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return;
    }
    leave_region(ir, last);
    tile_ir_leave(ir);
}

void tile_ir_next(TileIr *ir) { leave(ir, false); }
void tile_ir_end(TileIr *ir) { leave(ir, true); }

void tile_ir_yield(TileIr *ir, TileIrValue *const *values, unsigned count) {
    tile_ir_op(ir, "yield", values, count, NULL, NULL);
}

static TileValue *find_argument(TileIr *ir, unsigned index) {
    const TileIrRegion *region = innermost(ir, "tile_ir_argument");
    const TileBlock *block = region ? &region->op->regions[region->number] : NULL;
    if (block && index < block->argument_count) return block->arguments[index];
    tile_ir_fail(ir, "tile_ir_argument: the region has no argument %u", index);
    return NULL;
}

TileIrValue *tile_ir_argument(TileIr *ir, unsigned index) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return NULL;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return NULL;
    }
    TileValue *argument = find_argument(ir, index);
    tile_ir_leave(ir);
    return argument;
}

static TileValue *find_result(TileIr *ir, const TileOp *op, unsigned index) {
    if (op && !tile_ir_owns_op(ir, op)) {
        tile_ir_fail(ir, "tile_ir_result: the operation is none of this TileIr");
        return NULL;
    }
    if (op && index < op->result_count) return tile_op_result(op, index);
    tile_ir_fail(ir, "tile_ir_result: the operation has no result %u", index);
    return NULL;
}

TileIrValue *tile_ir_result(TileIr *ir, const TileIrOp *op, unsigned index) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return NULL;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return NULL;
    }
    TileValue *result = find_result(ir, op, index);
    tile_ir_leave(ir);
    return result;
}

void tile_ir_name(TileIr *ir, TileIrValue *value, const char *name) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return;
    }
    if (!value || !tile_ir_owns_value(ir, value))
        tile_ir_fail(ir, "tile_ir_name: the value is %s", value ? "one of another TileIr" : "NULL");
    else
        value->name = name ? tile_intern_string(ir->context->strings, name) : NULL;
    tile_ir_leave(ir);
}
