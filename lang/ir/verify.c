#include "lang/ir/verify.h"

#include <string.h>

#include "lang/ir/build.h"
#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"
#include "lang/ir/tensor_map.h"

typedef struct Verifier {
    const TileFunc *func;
    TileArena *scratch;
    TileArena *arena;       /* for the complaints */
    TileComplaints *errors; /* NULL: only counted */
    TileMap seen;           /* values defined so far, in scope */
    TileMap buffers;        /* number of a buffer to the first value in it */
    TileMap blocks;         /* number of a block of points to its first op */
    unsigned complaints;
    unsigned depth;
} Verifier;

enum { DEEPEST_NESTING = 200, MOST_COMPLAINTS = 50 };

static void complain(Verifier *v, const TileOp *op, const char *format, ...) TILE_PRINTF(3, 4);

static void describe_op(TileText *text, const TileOp *op) {
    tile_text_add(text, tile_op_info(op->id)->mnemonic);
    for (unsigned i = 0; i < op->operand_count; i++) {
        tile_text_add(text, i ? ", " : " ");
        if (op->operands[i].value)
            tile_type_print(text, op->operands[i].value->type);
        else
            tile_text_add(text, "?");
    }
    for (unsigned i = 0; i < op->result_count; i++) {
        tile_text_add(text, i ? ", " : " : ");
        tile_type_print(text, op->results[i].type);
    }
    tile_text_add(text, ": ");
}

static void complain(Verifier *v, const TileOp *op, const char *format, ...) {
    if (v->complaints++ >= MOST_COMPLAINTS || !v->errors) return;
    TileText text = {.arena = v->arena};
    if (op) describe_op(&text, op);
    va_list arguments;
    va_start(arguments, format);
    tile_text_add(&text, tile_arena_format_list(v->scratch, format, arguments));
    va_end(arguments);
    tile_list_push(v->arena, v->errors, (TileComplaint){v->func, op, tile_text_get(&text)});
}

static bool uses_hold(const TileOp *op, unsigned index) {
    const TileUse *use = &op->operands[index];
    if (!use->value || use->user != op || use->index != index) return false;
    if (use->previous ? use->previous->next != use : use->value->first_use != use) return false;
    return !use->next || use->next->previous == use;
}

/* Values of an enclosing block are visible inside; values of a finished region are not: they are removed at its end. */
static void check_operands(Verifier *v, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        if (!uses_hold(op, i))
            complain(v, op, "the use list of operand %u is broken", i);
        else if (!tile_map_get(&v->seen, op->operands[i].value))
            complain(v, op, "operand %u is not defined before its use", i);
    }
}

static bool is_map(const TileType *type) { return type->kind == TILE_TYPE_POINTER && type->space == TILE_SPACE_MAP; }

static bool is_machine_value(const TileType *type) {
    return type->kind == TILE_TYPE_SCALAR || type->kind == TILE_TYPE_VECTOR ||
           (type->kind == TILE_TYPE_POINTER && !type->rank && !is_map(type));
}

/* Ops of a GPU's block have addresses in its shared memory. */
static bool is_tile_value(const TileType *type) {
    return type->kind == TILE_TYPE_SCALAR || type->kind == TILE_TYPE_TILE || type->kind == TILE_TYPE_TENSOR ||
           type->kind == TILE_TYPE_CHANNEL || (type->kind == TILE_TYPE_POINTER && type->space == TILE_SPACE_SHARED);
}

/* What stands in front of a wait runs while the grid before still stores. */
static void check_grid_order(Verifier *v, const TileOp *op) {
    const TileOp *outer = op->id == TILE_OP_GRID_WAIT ? op->block->op : NULL;
    while (outer && outer->id != TILE_OP_PARTITIONS) outer = outer->block->op;
    if ((op->block != &v->func->body && !outer) || v->func->kind != TILE_FUNC_PHASE)
        complain(v, op, "stands only at the top of a phase");
    if (outer) return;
    for (const TileOp *before = op->previous; before && op->id == TILE_OP_GRID_WAIT; before = before->previous)
        if (!tile_op_precedes_grid_wait(before)) {
            complain(v, op, "stands behind `%s`, which may access memory", tile_op_info(before->id)->mnemonic);
            return;
        }
}

static bool has_wait(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_GRID_WAIT) return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (has_wait(&op->regions[i])) return true;
    }
    return false;
}

/* Partitions wait each by itself: in front of each access of theirs. */
static void check_waits(Verifier *v, const TileBlock *block, bool waited) {
    for (const TileOp *op = block->first; op; op = op->next) {
        waited |= op->id == TILE_OP_GRID_WAIT;
        if (!waited && !op->region_count && tile_op_reaches_memory(op)) complain(v, op, "may access memory, and no `grid_wait` stands in front of it");
        for (unsigned i = 0; i < op->region_count; i++) check_waits(v, &op->regions[i], waited);
    }
}

static void check_partitions_wait(Verifier *v, const TileOp *op) {
    bool waits = false;
    for (unsigned i = 0; i < op->region_count; i++) waits |= has_wait(&op->regions[i]);
    for (unsigned i = 0; i < op->region_count && waits; i++) check_waits(v, &op->regions[i], false);
}

static void check_form(Verifier *v, const TileOp *op) {
    if (!(tile_op_info(op->id)->forms & v->func->form))
        complain(v, op, "is not legal in %s form", v->func->form == TILE_FORM_TILE ? "tile" : "machine");
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileType *type = op->results[i].type;
        if (v->func->form == TILE_FORM_TILE ? !is_tile_value(type) : !is_machine_value(type))
            complain(v, op, "result %u has a type of the other form", i);
    }
    bool top = op->block == &v->func->body;
    if ((op->id == TILE_OP_GRID || op->id == TILE_OP_TEMP || op->id == TILE_OP_CHECK_DIM ||
         op->id == TILE_OP_REQUIRE) &&
        (!top || v->func->kind != TILE_FUNC_KERNEL))
        complain(v, op, "stands only at the top of a kernel");
    if (op->id == TILE_OP_GRID_LAUNCH || op->id == TILE_OP_GRID_WAIT) check_grid_order(v, op);
    if (op->id == TILE_OP_PARTITIONS) check_partitions_wait(v, op);
    if (tile_op_is_of_warpgroup((TileOpId)op->id) && v->func->threads % TILE_WARPGROUP_THREADS)
        complain(v, op, "stands in a block of %u threads, which are no warpgroups of 128", v->func->threads);
    if (op->id == TILE_OP_SET_REGISTERS && v->func->kind == TILE_FUNC_PHASE && !v->func->registers)
        complain(v, op, "stands in a function that does not say with how many registers its threads begin");
    for (const TileOp *outer = tile_op_is_block_barrier(op) ? op->block->op : NULL; outer; outer = outer->block->op)
        if (tile_op_integer(outer, TILE_ATTRIBUTE_DIVERGENT, 0))
            complain(v, op, "stands where threads of a block go different ways");
}

static void check_types(Verifier *v, const TileOp *op) {
    const TileType *single[1],
        **types = op->result_count <= 1 ? single : TILE_NEW_ARRAY(v->scratch, const TileType *, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++) types[i] = op->results[i].type;
    const char *error = tile_op_check(v->func->module, op, types);
    if (!error && !tile_operands_fit(op)) error = "the number of operands does not fit their names";
    if (!error && v->func->form == TILE_FORM_TILE) error = tile_op_check_layouts(op, v->func->threads);
    if (error) complain(v, op, "%s", error);
}

/* The required terminator of a region, and the types of its operands (NULL: not compared). */
static TileOpId terminator_of(const TileOp *parent, unsigned region) {
    if (!parent) return TILE_OP_RETURN;
    return parent->id == TILE_OP_WHILE && region == 0 ? TILE_OP_CONDITION : TILE_OP_YIELD;
}

/* The type that operand `index` of the region's terminator has to have, NULL beyond the last. */
static const TileType *carried_type(const Verifier *v, const TileOp *parent, unsigned region, unsigned index) {
    const TileBlock *combiner = parent ? tile_op_combiner(parent) : NULL;
    if (!parent) return index < v->func->result_count ? v->func->result_types[index] : NULL;
    if (!combiner) return index < parent->result_count ? parent->results[index].type : NULL;
    unsigned count = combiner->argument_count / 2;
    bool after = parent->id == TILE_OP_FOLD_LOOP && region == 2;
    bool mask = parent->id == TILE_OP_FOLD_LOOP && region == 0 && tile_op_has_part(parent, TILE_PARTS_MASK);
    if (index < count && !after) return combiner->arguments[index]->type;
    return index == count && mask ? tile_type_scalar(v->func->module->context, TILE_BOOL) : NULL;
}

static void compare_types(Verifier *v, const TileOp *op, unsigned skip, const TileOp *parent, unsigned region) {
    unsigned expected = 0;
    while (carried_type(v, parent, region, expected)) expected++;
    if (op->operand_count != expected + skip) {
        complain(v, op, "carries %u values where %u are expected", op->operand_count - skip, expected);
        return;
    }
    for (unsigned i = 0; i < expected; i++)
        if (op->operands[skip + i].value->type != carried_type(v, parent, region, i))
            complain(v, op, "value %u differs in type from the result", i);
}

/* A target may apply a combiner to many elements at once, in any position. */
static void check_combiner(Verifier *v, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        bool straight = tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_CONST;
        if (!straight && op->id != TILE_OP_YIELD) complain(v, op, "stands in a combiner, which is elementwise");
        for (unsigned i = 0; i < op->operand_count; i++)
            if (op->operands[i].value && tile_value_outside(op->operands[i].value, block->op))
                complain(v, op, "uses a value from outside of its combiner");
    }
}

static void check_terminator(Verifier *v, const TileBlock *block, unsigned region) {
    const TileOp *last = block->last;
    if (!last || last->id != terminator_of(block->op, region)) {
        complain(v, last ? last : block->op, "a block has to end in %s",
                 tile_op_info(terminator_of(block->op, region))->mnemonic);
        return;
    }
    compare_types(v, last, last->id == TILE_OP_CONDITION ? 1 : 0, block->op, region);
}

static void check_links(Verifier *v, const TileBlock *block, const TileOp *op) {
    if (op->block != block) complain(v, op, "is in another block than its list");
    if (op->previous ? op->previous->next != op : block->first != op)
        complain(v, op, "the list of its block is broken");
    if (!op->next && block->last != op) complain(v, op, "the end of its block's list is broken");
    bool terminator = (tile_op_info(op->id)->traits & TILE_TRAIT_TERMINATOR) != 0;
    if (terminator && op->next) complain(v, op, "stands before the end of its block");
}

static const void *number_key(int64_t number) { return (const void *)(uintptr_t)(number + 1); }

static bool same_integers(const TileOp *a, const TileOp *b, TileAttributeKey key) {
    const TileAttribute *x = tile_op_get(a, key), *y = tile_op_get(b, key);
    return x->count == y->count && memcmp(x->integers, y->integers, x->count * sizeof *x->integers) == 0;
}

static const TileType *type_in_block(const TileOp *op) {
    return op->id == TILE_OP_STORE_TILE ? tile_op_operand(op, 1)->type : op->results[0].type;
}

/* One number of a buffer is one type, and one of a block of points the same points of tiles of one shape. */
static void check_numbers(Verifier *v, const TileOp *op) {
    const TileAttribute *buffers = tile_op_get(op, TILE_ATTRIBUTE_BUFFERS), *block = tile_op_get(op, TILE_ATTRIBUTE_BLOCK);
    for (unsigned i = 0; buffers && i < buffers->count; i++) {
        if (buffers->integers[i] < 0) continue;
        const void *key = number_key(buffers->integers[i]);
        const TileValue *first = tile_map_get(&v->buffers, key);
        if (!first)
            tile_map_set(&v->buffers, key, &op->results[i]);
        else if (first->type != op->results[i].type)
            complain(v, op, "values of different types are in buffer %lld", (long long)buffers->integers[i]);
    }
    const TileOp *first = block ? tile_map_get(&v->blocks, number_key(block->integer)) : NULL;
    if (block && !first) tile_map_set(&v->blocks, number_key(block->integer), (void *)op);
    if (!first) return;
    const TileType *own = type_in_block(op), *other = type_in_block(first);
    bool same = own->rank == other->rank && memcmp(own->extent, other->extent, own->rank * sizeof *own->extent) == 0;
    if (!same || !same_integers(op, first, TILE_ATTRIBUTE_POINTS) || !same_integers(op, first, TILE_ATTRIBUTE_RUNS))
        complain(v, op, "another op of block %lld has other points", (long long)block->integer);
}

static void check_block(Verifier *v, const TileBlock *block, unsigned region) {
    if (block->func != v->func) complain(v, block->op, "a region belongs to another function");
    if (++v->depth > DEEPEST_NESTING) {
        complain(v, block->op, "regions are nested too deeply");
        return;
    }
    for (unsigned i = 0; i < block->argument_count; i++) {
        if (block->arguments[i]->type->kind == TILE_TYPE_CHANNEL)
            complain(v, block->op, "a channel is carried or taken");
        if (block->op && is_map(block->arguments[i]->type)) complain(v, block->op, "a tensor map is carried or taken");
        tile_map_set(&v->seen, block->arguments[i], v);
    }
    for (const TileOp *op = block->first; op; op = op->next) {
        unsigned before = v->complaints;
        check_links(v, block, op);
        check_operands(v, op);
        check_form(v, op);
        check_types(v, op);
        const char *misuse = v->complaints == before ? tile_channel_misuse(op) : NULL;
        if (!misuse && v->complaints == before) misuse = tile_home_misuse(op);
        if (!misuse && v->complaints == before) misuse = tile_turn_misuse(op);
        if (!misuse && v->complaints == before) misuse = tile_cluster_misuse(op);
        if (misuse) complain(v, op, "%s", misuse);
        if (v->complaints == before) check_numbers(v, op);
        for (unsigned i = 0; i < op->region_count; i++) check_block(v, &op->regions[i], i);
        if (tile_op_combiner(op)) check_combiner(v, tile_op_combiner(op));
        for (unsigned i = 0; i < op->result_count; i++) {
            if (op->results[i].op != op || op->results[i].index != i) complain(v, op, "result %u is not its own", i);
            tile_map_set(&v->seen, &op->results[i], v);
        }
    }
    check_terminator(v, block, region);
    for (unsigned i = 0; i < block->argument_count; i++) tile_map_set(&v->seen, block->arguments[i], NULL);
    for (const TileOp *op = block->first; op; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++) tile_map_set(&v->seen, &op->results[i], NULL);
    v->depth--;
}

/* ---- phases' parameters ---- */

static bool has_role_type(const TileFunc *func, uint32_t index) {
    const TileType *type = func->body.arguments[index]->type;
    bool tile = func->form == TILE_FORM_TILE, map = func->parameters[index].role == TILE_ROLE_MAP;
    if (is_map(type) != map || (func->parameters[index].map.rank != 0) != map) return false;
    switch (func->parameters[index].role) {
    case TILE_ROLE_NONE: return true;
    case TILE_ROLE_MAP: return !tile;
    case TILE_ROLE_DATA: return type->kind == (tile ? TILE_TYPE_TENSOR : TILE_TYPE_POINTER);
    case TILE_ROLE_EXTENT:
    case TILE_ROLE_STRIDE: return !tile && tile_type_is_scalar(type) && type->scalar == TILE_I64;
    case TILE_ROLE_BEGIN:
    case TILE_ROLE_END: return tile_type_is_scalar(type) && type->scalar == TILE_I64;
    case TILE_ROLE_SCALAR: return tile_type_is_scalar(type);
    case TILE_ROLE_SCRATCH: return !tile && type->kind == TILE_TYPE_POINTER;
    case TILE_ROLE_COUNT: break;
    }
    return false;
}

/* A scalar of the kernel keeps its type in the phase; so does a tensor that stays a tensor. */
static bool fits_kernel(const TileFunc *phase, uint32_t index) {
    const TileParameter *parameter = &phase->parameters[index];
    const TileBlock *kernel = &phase->kernel->body;
    if (!tile_role_has_argument(parameter->role) || parameter->argument >= kernel->argument_count) return true;
    const TileType *type = kernel->arguments[parameter->argument]->type;
    if (parameter->role == TILE_ROLE_SCALAR) return type == phase->body.arguments[index]->type;
    return type->kind == TILE_TYPE_TENSOR && (!tile_role_has_axis(parameter->role) || parameter->axis < type->rank);
}

/* The launcher hands maps over behind everything but the records, which have the place of the shared memory. */
static void check_map(Verifier *v, uint32_t index) {
    const TileFunc *func = v->func;
    const TileParameter *parameter = &func->parameters[index];
    const TileType *tensor = tile_func_argument_type(func, parameter->argument);
    const char *misfit = tensor ? tile_map_misfit(&parameter->map, tensor) : NULL;
    uint32_t data, counts[TILE_MAP_MOST_IMAGE_AXES], next = index + 1;
    if (next == func->body.argument_count ||
        (func->parameters[next].role != TILE_ROLE_MAP && func->parameters[next].role != TILE_ROLE_SCRATCH))
        complain(v, NULL, "parameter %u, a tensor map, stands before other parameters than `scratch`", index);
    else if (misfit)
        complain(v, NULL, "parameter %u, a tensor map: %s", index, misfit);
    else if (!tile_func_map_tensor(func, index, &data))
        complain(v, NULL, "parameter %u is a map of a tensor whose address, extents and strides are not there", index);
    else if (!tile_func_map_counts(func, index, counts))
        complain(v, NULL, "parameter %u is a map of positions, of which nothing says how many there are", index);
}

static void check_signature(Verifier *v) {
    const TileFunc *func = v->func;
    if (func->kernel && (func->kind != TILE_FUNC_PHASE || func->kernel->kind != TILE_FUNC_KERNEL))
        complain(v, NULL, "only a phase is of a kernel");
    if (func->kernel && func->kernel->removed) complain(v, NULL, "is of a kernel that the module has no more");
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileParameter *parameter = &func->parameters[i];
        if (parameter->role != TILE_ROLE_NONE && func->kind != TILE_FUNC_PHASE)
            complain(v, NULL, "parameter %u has a role, which only phases' have", i);
        if (!has_role_type(func, i) || (func->kernel && !fits_kernel(func, i)))
            complain(v, NULL, "parameter %u is no %s", i, tile_role_word(parameter->role));
        else if (parameter->role == TILE_ROLE_MAP)
            check_map(v, i);
    }
}

/* `errors` is in `arena`; both may be NULL. */
static bool verify(const TileFunc *func, TileArena *arena, TileComplaints *errors) {
    TileArena *scratch = tile_arena_create(func->module->arena);
    if (!scratch) return false;
    Verifier v = {.func = func, .scratch = scratch, .arena = arena, .errors = errors};
    tile_map_init(&v.seen, scratch);
    tile_map_init(&v.buffers, scratch);
    tile_map_init(&v.blocks, scratch);
    if (func->form != TILE_FORM_TILE && func->form != TILE_FORM_MACHINE) complain(&v, NULL, "has no form");
    check_signature(&v);
    check_block(&v, &func->body, 0);
    tile_arena_destroy(scratch);
    return v.complaints == 0;
}

static void find_twins(const TileFunc *func, TileArena *arena, TileComplaints *errors) {
    for (const TileFunc *other = func->next; other; other = other->next)
        if (other->name == func->name)
            tile_list_push(arena, errors, (TileComplaint){func, NULL, "two functions of this name"});
}

TileComplaints tile_module_complaints(const TileModule *module, TileArena *arena) {
    TileComplaints errors = {0};
    for (const TileFunc *func = module->first; func; func = func->next) {
        if (!verify(func, arena, &errors) && !errors.count)
            tile_list_push(arena, &errors, (TileComplaint){func, NULL, "memory does not suffice to verify it"});
        find_twins(func, arena, &errors);
    }
    return errors;
}

/* One line for each: name:line:column: words. */
static void print_complaints(TileText *text, const TileComplaints *errors) {
    for (size_t i = 0; i < errors->count; i++) {
        const TileComplaint *complaint = &errors->items[i];
        const TileOp *op = complaint->op;
        tile_text_add(text, complaint->func->name);
        if (op && op->location.line) tile_text_format(text, ":%u:%u", op->location.line, op->location.column);
        tile_text_format(text, ": %s\n", complaint->words);
    }
}

bool tile_func_verify(const TileFunc *func, TileText *errors) {
    TileComplaints found = {0};
    bool good = verify(func, errors ? errors->arena : NULL, errors ? &found : NULL);
    if (errors) print_complaints(errors, &found);
    return good;
}

bool tile_module_verify(const TileModule *module, TileText *errors) {
    TileArena *scratch = tile_arena_create(module->arena);
    if (!scratch) return false;
    TileComplaints found = tile_module_complaints(module, scratch);
    if (errors) print_complaints(errors, &found);
    tile_arena_destroy(scratch);
    return found.count == 0;
}
