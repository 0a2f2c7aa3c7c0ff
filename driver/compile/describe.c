/* The host program of a kernel, from the ops outside of its grids. */
#include <string.h>

#include "driver/compile/image.h"
#include "lang/ir/build.h"
#include "lang/ir/eval.h"
#include "lang/scalar/scalar.h"

typedef struct Describer {
    TileUnit *unit;
    TileArena *arena; /* of the code */
    const TileFunc *kernel;
    const TileImageSignature *signature;
    uint8_t order[TILE_MAX_PARAMETERS]; /* maps parameters of the kernel to those of the signature */
    TileMap numbers;                    /* value to its number + 1 */
    TILE_LIST(TileHostInstruction) host;
    TILE_LIST(TileImageDimension) dimensions;
    TILE_LIST(TileImageRequire) requires;
    TILE_LIST(TileImageTemp) temps;
    TILE_LIST(TileImagePhase) phases;
    tile_status status;
} Describer;

static void fail(Describer *d, tile_status status, const TileOp *op, const char *why) {
    if (d->status != TILE_OK) return;
    d->status = status;
    tile_text_format(&d->unit->message, "%s: '%s' outside of the grids: %s", d->kernel->name,
                     op ? tile_op_info((TileOpId)op->id)->mnemonic : "parameter", why);
}

static const char *keep_text(Describer *d, const char *text) { return tile_arena_string(d->arena, text, strlen(text)); }

/* ---- the host program ---- */

static uint32_t number_of(Describer *d, const TileValue *value);

static uint32_t emit(Describer *d, TileHostInstruction instruction, const TileValue *value) {
    uint32_t number = (uint32_t)d->host.count;
    tile_list_push(d->arena, &d->host, instruction);
    tile_map_set(&d->numbers, value, (void *)(uintptr_t)(number + 1));
    return number;
}

/* Hand-written IR may have an op on types for which it is not defined. */
static uint32_t emit_elementwise(Describer *d, const TileOp *op) {
    const TileValue *result = tile_op_result(op, 0);
    TileEvalOp eval = tile_eval_op_of((TileOpId)op->id);
    TileScalar from = tile_eval_operand_type(op), to = result->type->scalar;
    if (!tile_eval_op_allows(eval, from, to)) {
        fail(d, TILE_INTERNAL, op, "it has no meaning on these types");
        return 0;
    }
    TileHostInstruction at = {.op = (uint8_t)(TILE_HOST_FIRST_EVAL + (int)eval), .type = (uint8_t)to, .from = (uint8_t)from};
    at.approx = tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0) != 0;
    at.a = at.b = at.c = number_of(d, tile_op_operand(op, 0));
    if (op->operand_count > 1) at.b = number_of(d, tile_op_operand(op, 1));
    if (op->operand_count > 2) at.c = number_of(d, tile_op_operand(op, 2));
    return emit(d, at, result);
}

static uint32_t emit_dim(Describer *d, const TileOp *op) {
    const TileValue *tensor = tile_op_operand(op, 0);
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    TileOp *temp = tile_value_def(tensor, TILE_OP_TEMP);
    if (temp) {
        uint32_t number = number_of(d, tile_op_operand(temp, (unsigned)axis));
        tile_map_set(&d->numbers, tile_op_result(op, 0), (void *)(uintptr_t)(number + 1));
        return number;
    }
    uint32_t parameter = d->order[tensor->index];
    return emit(d,
                (TileHostInstruction){.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = parameter, .b = (uint32_t)axis},
                tile_op_result(op, 0));
}

/* Both branches are computed: host operations are total and cheap. */
static uint32_t emit_if(Describer *d, const TileOp *op, const TileValue *wanted) {
    uint32_t condition = number_of(d, tile_op_operand(op, 0));
    for (uint32_t i = 0; i < op->result_count; i++) {
        const TileValue *result = tile_op_result(op, i);
        uint32_t yes = number_of(d, tile_op_operand(op->regions[0].last, i));
        uint32_t no = number_of(d, tile_op_operand(op->regions[1].last, i));
        uint8_t type = (uint8_t)result->type->scalar;
        TileHostInstruction at = {
            .op = TILE_HOST_SELECT, .type = type, .from = type, .a = condition, .b = yes, .c = no};
        emit(d, at, result);
    }
    return (uint32_t)(uintptr_t)tile_map_get(&d->numbers, wanted) - 1;
}

static uint32_t emit_op(Describer *d, const TileOp *op, const TileValue *value) {
    if (value->type->kind != TILE_TYPE_SCALAR) {
        fail(d, TILE_UNSUPPORTED, op, "only scalars are computed there");
        return 0;
    }
    if (op->id == TILE_OP_CONST) {
        TileHostInstruction at = {.op = TILE_HOST_CONST, .type = (uint8_t)value->type->scalar};
        tile_value_bits(value, &at.bits);
        at.bits &= tile_scalar_mask(value->type->scalar);
        return emit(d, at, value);
    }
    if (op->id == TILE_OP_DIM) return emit_dim(d, op);
    if (op->id == TILE_OP_IF) return emit_if(d, op, value);
    if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE) return emit_elementwise(d, op);
    fail(d, TILE_UNSUPPORTED, op, "the launcher cannot compute it; compute it inside of the grid");
    return 0;
}

static uint32_t number_of(Describer *d, const TileValue *value) {
    void *known = tile_map_get(&d->numbers, value);
    if (known) return (uint32_t)(uintptr_t)known - 1;
    if (d->status != TILE_OK) return 0;
    if (value->op) return emit_op(d, value->op, value);
    TileHostInstruction at = {
        .op = TILE_HOST_SCALAR, .type = (uint8_t)value->type->scalar, .a = d->order[value->index]};
    return emit(d, at, value);
}

/* ---- what messages show ---- */

typedef struct Leaves {
    TILE_LIST(TileHostNamed) list;
    TileMap seen;
} Leaves;

enum { MAX_LEAVES = 8 };

static void add_named(Describer *d, Leaves *leaves, const char *name, uint32_t number) {
    for (size_t i = 0; i < leaves->list.count; i++)
        if (leaves->list.items[i].value == number) return;
    if (leaves->list.count < MAX_LEAVES)
        tile_list_push(d->arena, &leaves->list, (TileHostNamed){name, number, d->host.items[number].type});
}

static void add_leaf(Describer *d, Leaves *leaves, uint32_t number) {
    const TileHostInstruction *at = &d->host.items[number];
    const TileImageParameter *parameter = &d->signature->parameters[at->a];
    add_named(d, leaves, at->op == TILE_HOST_DIM ? parameter->dimensions[at->b] : parameter->name, number);
}

static void collect_from(Describer *d, const TileValue *value, Leaves *leaves) {
    if (d->status != TILE_OK || tile_map_get(&leaves->seen, value)) return;
    tile_map_set(&leaves->seen, value, leaves);
    uint32_t number = number_of(d, value);
    if (d->status != TILE_OK) return;
    uint8_t op = d->host.items[number].op;
    if (op == TILE_HOST_DIM || op == TILE_HOST_SCALAR) return add_leaf(d, leaves, number);
    if (value->name && d->host.items[number].op != TILE_HOST_CONST)
        return add_named(d, leaves, keep_text(d, value->name), number); /* a dimension given by an expression */
    for (uint32_t i = 0; value->op && i < value->op->operand_count; i++)
        collect_from(d, tile_op_operand(value->op, i), leaves);
}

/* The dimensions and scalars that a value was computed from. */
static const TileHostNamed *collect_leaves(Describer *d, const TileValue *value, uint32_t *count) {
    Leaves leaves = {.list = {0}};
    tile_map_init(&leaves.seen, d->unit->arena);
    collect_from(d, value, &leaves);
    *count = (uint32_t)leaves.list.count;
    return leaves.list.items;
}

/* The parameter of which `expected` is a dimension with the same name, or -1. */
static int16_t find_origin(Describer *d, const TileValue *expected, const char *text) {
    const TileHostInstruction *at = &d->host.items[number_of(d, expected)];
    if (at->op == TILE_HOST_DIM && strcmp(d->signature->parameters[at->a].dimensions[at->b], text) == 0)
        return (int16_t)at->a;
    for (uint32_t i = 0; i < d->signature->static_count; i++) {
        const TileImageStatic *fixed = &d->signature->statics[i];
        if (fixed->axis >= 0 && strcmp(fixed->name, text) == 0) return (int16_t)fixed->parameter;
    }
    return -1;
}

/* ---- ops of the kernel ---- */

static void describe_check(Describer *d, const TileOp *op) {
    const TileValue *tensor = tile_op_operand(op, 0), *expected = tile_op_operand(op, 1);
    if (tensor->op) return; /* a temporary has the extents that it was created with */
    const char *text = keep_text(d, tile_op_get(op, TILE_ATTRIBUTE_TEXT)->text);
    TileImageDimension check = {.parameter = d->order[tensor->index],
                                .axis = (uint16_t)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0),
                                .expected = number_of(d, expected),
                                .text = text,
                                .origin = find_origin(d, expected, text)};
    if (check.origin < 0) check.named = collect_leaves(d, expected, &check.named_count);
    tile_list_push(d->arena, &d->dimensions, check);
}

static void describe_require(Describer *d, const TileOp *op) {
    const TileValue *condition = tile_op_operand(op, 0);
    TileImageRequire require = {.condition = number_of(d, condition),
                                .text = keep_text(d, tile_op_get(op, TILE_ATTRIBUTE_TEXT)->text)};
    const char *place = op->location.file ? d->unit->context->files.items[op->location.file] : "";
    require.chooses = strcmp(place, TILE_VARIANT_PLACE) == 0;
    require.named = collect_leaves(d, condition, &require.named_count);
    tile_list_push(d->arena, &d->requires, require);
}

static void describe_temp(Describer *d, const TileOp *op) {
    const TileValue *result = tile_op_result(op, 0);
    TileImageTemp temp = {.name = keep_text(d, result->name ? result->name : "temp"),
                          .type = (uint8_t)result->type->scalar,
                          .rank = result->type->rank,
                          .align = (uint8_t)tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, 0)};
    for (unsigned i = 0; i < temp.rank; i++) temp.extents[i] = number_of(d, tile_op_operand(op, i));
    tile_list_push(d->arena, &d->temps, temp);
}

static void describe_grid(Describer *d, const TileOp *op) {
    TileImagePhase phase = {.rank = (uint8_t)op->operand_count};
    if (op->operand_count > TILE_MAX_GRID_RANK) return fail(d, TILE_UNSUPPORTED, op, "a grid has at most 8 dimensions");
    for (unsigned i = 0; i < op->operand_count; i++) phase.extents[i] = number_of(d, tile_op_operand(op, i));
    tile_list_push(d->arena, &d->phases, phase);
}

static void describe_op(Describer *d, const TileOp *op) {
    switch (op->id) {
    case TILE_OP_CHECK_DIM: describe_check(d, op); break;
    case TILE_OP_REQUIRE: describe_require(d, op); break;
    case TILE_OP_TEMP: describe_temp(d, op); break;
    case TILE_OP_GRID: describe_grid(d, op); break;
    case TILE_OP_CALL: fail(d, TILE_INTERNAL, op, "it had to be inlined"); break;
    default: break; /* values are computed where they are needed */
    }
}

/* ---- parameters ---- */

int tile_image_parameter(const TileImageSignature *signature, const char *name) {
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        if (strcmp(signature->parameters[i].name, name) == 0) return (int)i;
    return -1;
}

static void match_parameters(Describer *d) {
    uint32_t count = d->kernel->body.argument_count;
    if (count > TILE_MAX_PARAMETERS) return fail(d, TILE_UNSUPPORTED, NULL, "a kernel has at most 64 parameters");
    for (uint32_t i = 0; i < count; i++) {
        int found = tile_image_parameter(d->signature, d->kernel->parameters[i].name);
        if (found < 0) return fail(d, TILE_INTERNAL, NULL, "the signature does not have it");
        d->order[i] = (uint8_t)found;
    }
}

tile_status tile_image_describe(TileUnit *unit, TileFunc *kernel, const TileImageSignature *signature, TileArena *arena,
                                TileImageCode *code) {
    Describer d = {.unit = unit, .arena = arena, .kernel = kernel, .signature = signature};
    tile_map_init(&d.numbers, unit->arena);
    match_parameters(&d);
    for (const TileOp *op = kernel->body.first; op && d.status == TILE_OK; op = op->next) describe_op(&d, op);
    code->host = d.host.items;
    code->host_count = (uint32_t)d.host.count;
    code->dimensions = d.dimensions.items;
    code->dimension_count = (uint32_t)d.dimensions.count;
    code->requires = d.requires.items;
    code->require_count = (uint32_t)d.requires.count;
    code->temps = d.temps.items;
    code->temp_count = (uint32_t)d.temps.count;
    code->phases = d.phases.items;
    code->phase_count = (uint32_t)d.phases.count;
    code->order = tile_arena_copy(arena, d.order, kernel->body.argument_count);
    code->order_count = kernel->body.argument_count;
    return d.status;
}
