#include "lang/ir/program.h"

#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum { MOST_COMPLAINTS = 50, MOST_FUNCS = 1000, MOST_OPS = 1 << 16, MOST_LANES = 1 << 24 };

typedef struct Checker {
    TileArena *arena;
    const TileFunc *func;
    TileComplaints complaints;
    size_t ops;
    TileMap states; /* of functions, for the search for recursion */
} Checker;

static void complain(Checker *c, const TileOp *op, const char *format, ...) TILE_PRINTF(3, 4);

static void complain(Checker *c, const TileOp *op, const char *format, ...) {
    if (c->complaints.count >= MOST_COMPLAINTS) return;
    va_list arguments;
    va_start(arguments, format);
    const char *words = tile_arena_format_list(c->arena, format, arguments);
    va_end(arguments);
    if (op) words = tile_arena_format(c->arena, "%s: %s", tile_op_info((TileOpId)op->id)->mnemonic, words);
    tile_list_push(c->arena, &c->complaints, (TileComplaint){c->func, op, words});
}

/* ---- types ---- */

static void check_type(Checker *c, const TileOp *op, const TileType *type, bool tensors) {
    if (type->kind == TILE_TYPE_TENSOR && !tensors) complain(c, op, "a tensor is a parameter or a temp, nothing else");
    if (type->kind == TILE_TYPE_TILE && tile_type_lanes(type) > MOST_LANES)
        complain(c, op, "a tile has at most %d elements", (int)MOST_LANES);
}

static void check_parameters(Checker *c) {
    const TileFunc *func = c->func;
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileType *type = func->body.arguments[i]->type;
        const char *name = func->parameters[i].name;
        bool tensor = type->kind == TILE_TYPE_TENSOR;
        check_type(c, NULL, type, true);
        if (func->kind == TILE_FUNC_KERNEL && type->kind != TILE_TYPE_SCALAR && !tensor)
            complain(c, NULL, "parameter %s is neither a tensor nor a scalar", name);
        if (tensor && type->access == TILE_ACCESS_TEMP) complain(c, NULL, "parameter %s is a temp", name);
        for (uint32_t k = 0; k < i; k++)
            if (func->parameters[k].name == name) complain(c, NULL, "two parameters are called %s", name);
    }
    if (func->kind == TILE_FUNC_KERNEL && func->result_count) complain(c, NULL, "a kernel has no results");
    for (uint32_t i = 0; i < func->result_count; i++) check_type(c, NULL, func->result_types[i], false);
}

/* ---- ops ---- */

static bool is_internal(const TileOp *op) {
    const TileOpInfo *info = tile_op_info((TileOpId)op->id);
    bool form = !(info->forms & TILE_FORM_TILE);
    return form || info->class == TILE_CLASS_BLOCK || op->id == TILE_OP_PTR_ADD || op->id == TILE_OP_BUFFER ||
           op->id == TILE_OP_PROGRAM_ID || op->id == TILE_OP_COPY_TILE || op->id == TILE_OP_PUT_TILE || op->id == TILE_OP_SHARED_TILE;
}

static const TileOp *outermost(const TileOp *op) {
    while (op->block->op) op = op->block->op;
    return op;
}

/* Is the tensor stored to in a grid that stands before that of the op? */
static bool is_stored_before(const TileOp *op, const TileValue *tensor) {
    const TileOp *reader = outermost(op);
    for (const TileUse *use = tensor->first_use; use; use = use->next) {
        if (use->user->id != TILE_OP_STORE_TILE || use->index != 0) continue;
        for (const TileOp *after = outermost(use->user)->next; after; after = after->next)
            if (after == reader) return true;
    }
    return false;
}

static void check_access(Checker *c, const TileOp *op) {
    const TileType *tensor = op->operand_count ? tile_op_operand(op, 0)->type : NULL;
    if (!tensor || tensor->kind != TILE_TYPE_TENSOR) return;
    bool updates = op->id == TILE_OP_ATOMIC_TILE;
    bool reads = op->id == TILE_OP_LOAD_TILE || updates;
    if (reads && tensor->access == TILE_ACCESS_OUT && !is_stored_before(op, tile_op_operand(op, 0)))
        complain(c, op, "reads a tensor that is `out`");
    if ((op->id == TILE_OP_STORE_TILE || updates) && tensor->access == TILE_ACCESS_IN)
        complain(c, op, "writes a tensor that is `in`");
}

/* Ops outside of grids are computed once, by the launcher. */
static bool is_for_launcher(const TileOp *op) {
    TileOpClass class = (TileOpClass)tile_op_info((TileOpId)op->id)->class;
    bool scalars = op->id == TILE_OP_CONST || class == TILE_CLASS_ELEMENTWISE;
    for (unsigned i = 0; i < op->result_count && scalars; i++) scalars = tile_type_is_scalar(op->results[i].type);
    return scalars || class == TILE_CLASS_HOST || op->id == TILE_OP_GRID || op->id == TILE_OP_IF ||
           (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_TERMINATOR);
}

static void check_block(Checker *c, const TileBlock *block, bool launcher);

static void check_step(Checker *c, const TileOp *op) {
    int64_t step;
    if (op->id != TILE_OP_FOR || op->operand_count < 3) return;
    if (tile_value_integer(tile_op_named(op, TILE_OPERAND_STEP), &step) && step <= 0) complain(c, op, "the step is not positive");
}

static void check_op(Checker *c, const TileOp *op, bool launcher) {
    if (++c->ops == MOST_OPS) complain(c, op, "the module has more than %d operations", (int)MOST_OPS);
    if (is_internal(op)) complain(c, op, "only the compiler's own passes make it");
    if (launcher && !is_for_launcher(op))
        complain(c, op, "stands outside of a grid, where there are only scalars that a launcher can compute");
    for (unsigned i = 0; i < op->result_count; i++) check_type(c, op, op->results[i].type, op->id == TILE_OP_TEMP);
    check_access(c, op);
    check_step(c, op);
    for (unsigned i = 0; i < op->region_count; i++) check_block(c, &op->regions[i], launcher && op->id != TILE_OP_GRID);
}

static void check_block(Checker *c, const TileBlock *block, bool launcher) {
    for (uint32_t i = 0; i < block->argument_count && block->op; i++)
        check_type(c, block->op, block->arguments[i]->type, false);
    for (const TileOp *op = block->first; op && c->ops < MOST_OPS; op = op->next) check_op(c, op, launcher);
}

/* ---- calls ---- */

enum { UNSEEN, OPEN, DONE };

static void follow_calls(Checker *c, const TileFunc *func);

static void follow_call(Checker *c, const TileOp *op) {
    const TileFunc *func = c->func;
    const TileFunc *callee = tile_func_find(func->module, tile_op_get(op, TILE_ATTRIBUTE_CALLEE)->text);
    if (callee->kind != TILE_FUNC_DEVICE) complain(c, op, "%s is no device function", callee->name);
    uintptr_t state = (uintptr_t)tile_map_get(&c->states, callee);
    if (state == OPEN) complain(c, op, "%s calls itself", callee->name);
    if (state == UNSEEN) follow_calls(c, callee);
    c->func = func;
}

static void follow_block(Checker *c, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_CALL) follow_call(c, op);
        for (unsigned i = 0; i < op->region_count; i++) follow_block(c, &op->regions[i]);
    }
}

static void follow_calls(Checker *c, const TileFunc *func) {
    c->func = func;
    tile_map_set(&c->states, func, (void *)(uintptr_t)OPEN);
    follow_block(c, &func->body);
    tile_map_set(&c->states, func, (void *)(uintptr_t)DONE);
}

TileComplaints tile_program_complaints(const TileModule *module, TileArena *arena) {
    Checker c = {.arena = arena};
    bool kernels = false, sound = true;
    size_t funcs = 0;
    tile_map_init(&c.states, arena);
    for (const TileFunc *func = module->first; func; func = func->next) {
        bool tile = func->form == TILE_FORM_TILE && func->kind != TILE_FUNC_PHASE;
        c.func = func;
        if (!tile) complain(&c, NULL, "a function is a kernel or a device function, in tile form");
        check_parameters(&c);
        check_block(&c, &func->body, func->kind == TILE_FUNC_KERNEL);
        kernels |= func->kind == TILE_FUNC_KERNEL;
        sound &= tile && ++funcs <= MOST_FUNCS;
        if (funcs == MOST_FUNCS + 1) complain(&c, NULL, "the module has more than %d functions", (int)MOST_FUNCS);
    }
    if (module->first && !kernels) complain(&c, NULL, "the module has no kernel");
    for (const TileFunc *func = module->first; func && sound; func = func->next)
        if (tile_map_get(&c.states, func) == (void *)(uintptr_t)UNSEEN) follow_calls(&c, func);
    return c.complaints;
}
