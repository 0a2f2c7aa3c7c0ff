#include "lang/ir/ir.h"

#include <string.h>

#include "lang/layout/layout.h"

/* ---- contexts, types, functions ---- */

/* Out of memory is caught here: nobody can have set a guard on an arena that did not exist yet. */
TileContext *tile_ir_context_create(void) {
    TileArena *arena = tile_arena_create(NULL);
    jmp_buf guard;
    if (!arena || setjmp(guard)) {
        tile_arena_destroy(arena);
        return NULL;
    }
    tile_arena_set_guard(arena, &guard);
    TileContext *context = TILE_NEW(arena, TileContext);
    context->arena = arena;
    context->types = tile_type_table_create(arena);
    context->strings = tile_interner_create(arena);
    tile_list_push(arena, &context->files, "");
    tile_arena_set_guard(arena, NULL);
    return context;
}

void tile_ir_context_destroy(TileContext *context) {
    if (context) tile_arena_destroy(context->arena);
}

TileModule *tile_module_create(TileContext *context) {
    TileArena *arena = tile_arena_create(context->arena);
    return arena ? tile_module_create_in(context, arena) : NULL;
}

TileModule *tile_module_create_in(TileContext *context, TileArena *arena) {
    TileModule *module = TILE_NEW(arena, TileModule);
    *module = (TileModule){.context = context, .arena = arena};
    return module;
}

void tile_module_destroy(TileModule *module) {
    if (module) tile_arena_destroy(module->arena);
}

const TileType *tile_type_scalar(TileContext *context, TileScalar scalar) {
    return tile_type_intern_scalar(context->types, scalar);
}

const TileType *tile_type_tile(TileContext *context, TileScalar scalar, unsigned rank, const int64_t *extent) {
    if (rank == 0) return tile_type_scalar(context, scalar);
    TileType type = {.kind = TILE_TYPE_TILE, .scalar = scalar, .rank = (uint8_t)rank};
    memcpy(type.extent, extent, rank * sizeof *extent);
    return tile_type_intern(context->types, &type);
}

const TileType *tile_type_tensor(TileContext *context, TileScalar scalar, unsigned rank, TileAccess access) {
    return tile_type_intern(
        context->types,
        &(TileType){.kind = TILE_TYPE_TENSOR, .scalar = scalar, .rank = (uint8_t)rank, .access = (uint8_t)access});
}

const TileType *tile_type_pointer(TileContext *context, TileSpace space) {
    return tile_type_intern(context->types, &(TileType){.kind = TILE_TYPE_POINTER, .space = (uint8_t)space});
}

const TileType *tile_type_shared(TileContext *context, TileScalar scalar, const int64_t *extent, TileSwizzle swizzle,
                                 unsigned log_chunks) {
    return tile_type_intern(context->types, &(TileType){.kind = TILE_TYPE_POINTER,
                                                        .scalar = scalar,
                                                        .rank = 2,
                                                        .space = TILE_SPACE_SHARED,
                                                        .swizzle = (uint8_t)swizzle,
                                                        .log_chunks = (uint8_t)log_chunks,
                                                        .extent = {extent[0], extent[1]}});
}

const TileType *tile_type_channel(TileContext *context, const TileType *pointer) {
    TileType type = *pointer;
    type.kind = TILE_TYPE_CHANNEL;
    type.space = 0;
    return tile_type_intern(context->types, &type);
}

const TileType *tile_type_slot(TileContext *context, const TileType *channel) {
    return tile_type_shared(context, channel->scalar, channel->extent, (TileSwizzle)channel->swizzle,
                            channel->log_chunks);
}

const TileType *tile_type_vector(TileContext *context, TileScalar scalar, int64_t lanes, bool scalable) {
    if (lanes == 1 && !scalable) return tile_type_scalar(context, scalar);
    return tile_type_intern(
        context->types,
        &(TileType){.kind = TILE_TYPE_VECTOR, .scalar = scalar, .rank = 1, .scalable = scalable, .extent = {lanes}});
}

const TileType *tile_type_with_scalar(TileContext *context, const TileType *type, TileScalar scalar) {
    if (type->scalar == scalar) return type;
    TileType other = *type;
    other.scalar = scalar;
    return tile_type_intern(context->types, &other);
}

const TileType *tile_type_with_layout(TileContext *context, const TileType *type, const struct TileLayout *layout) {
    if (type->layout == layout) return type;
    TileType other = *type;
    other.layout = layout ? tile_layout_intern(context->types, layout) : NULL;
    return tile_type_intern(context->types, &other);
}

/* Counts an op or a parameter of a function. Parameters count as well: many functions with many parameters need much
 * memory even without ops. */
static void count_work(TileModule *module) {
    if (++module->created > module->created_most && module->spent) longjmp(*module->spent, 1);
}

TileFunc *tile_func_create(TileModule *module, const char *name, TileFuncKind kind, unsigned form) {
    TileFunc *func = TILE_NEW(module->arena, TileFunc);
    func->module = module;
    func->name = tile_intern_string(module->context->strings, name);
    func->kind = kind;
    func->form = (uint8_t)form;
    func->body.func = func;
    func->previous = module->last;
    if (module->last)
        module->last->next = func;
    else
        module->first = func;
    module->last = func;
    return func;
}

TileValue *tile_func_add_parameter(TileFunc *func, const char *name, const TileType *type) {
    uint32_t count = func->body.argument_count;
    count_work(func->module);
    if (!(count & (count - 1))) /* the list is full: double its capacity */
        func->parameters = tile_arena_grow(func->module->arena, func->parameters, count * sizeof(TileParameter),
                                           (count ? 2 * count : 1) * sizeof(TileParameter));
    TileParameter *parameter = &func->parameters[count];
    parameter->name = tile_intern_string(func->module->context->strings, name);
    for (int i = 0; i < TILE_MAX_TENSOR_RANK; i++)
        parameter->facts.stride[i] = parameter->facts.extent[i] = parameter->facts.multiple[i] = TILE_UNKNOWN;
    parameter->facts.value = TILE_UNKNOWN;
    return tile_block_add_argument(func->module, &func->body, type, parameter->name);
}

TileFunc *tile_func_find(const TileModule *module, const char *name) {
    for (TileFunc *func = module->first; func; func = func->next)
        if (strcmp(func->name, name) == 0) return func;
    return NULL;
}

TileFunc *tile_func_phase(const TileFunc *kernel, uint32_t number) {
    for (TileFunc *func = kernel->module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE && func->kernel == kernel && func->phase == number) return func;
    return NULL;
}

void tile_func_set_role(TileFunc *func, const TileValue *parameter, TileParameterRole role, uint32_t argument,
                        uint32_t axis) {
    TileParameter *described = &func->parameters[parameter->index];
    described->role = role;
    described->argument = argument;
    described->axis = axis;
}

void tile_func_remove(TileFunc *func) {
    TileModule *module = func->module;
    *(func->previous ? &func->previous->next : &module->first) = func->next;
    *(func->next ? &func->next->previous : &module->last) = func->previous;
    func->next = func->previous = NULL;
    func->removed = true;
}

static void number_block(TileBlock *block, uint32_t *next) {
    for (uint32_t i = 0; i < block->argument_count; i++) block->arguments[i]->number = (*next)++;
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++) op->results[i].number = (*next)++;
        for (unsigned i = 0; i < op->region_count; i++) number_block(&op->regions[i], next);
    }
}

uint32_t tile_func_number(TileFunc *func) {
    uint32_t next = 0;
    number_block(&func->body, &next);
    return next;
}

/* ---- use lists ---- */

static void link_use(TileUse *use, TileValue *value) {
    use->value = value;
    use->previous = NULL;
    use->next = value->first_use;
    if (use->next) use->next->previous = use;
    value->first_use = use;
}

static void unlink_use(TileUse *use) {
    if (!use->value) return;
    if (use->previous)
        use->previous->next = use->next;
    else
        use->value->first_use = use->next;
    if (use->next) use->next->previous = use->previous;
    use->value = NULL;
}

void tile_op_set_operand(TileOp *op, unsigned index, TileValue *value) {
    unlink_use(&op->operands[index]);
    link_use(&op->operands[index], value);
}

void tile_op_add_operand(TileModule *module, TileOp *op, TileValue *value) {
    if (op->operand_count == op->operand_capacity) {
        uint32_t capacity = op->operand_capacity ? op->operand_capacity * 2 : 4;
        TileUse *moved = TILE_NEW_ARRAY(module->arena, TileUse, capacity);
        for (uint32_t i = 0; i < op->operand_count; i++) {
            TileValue *old = op->operands[i].value;
            unlink_use(&op->operands[i]);
            moved[i] = (TileUse){.user = op, .index = i};
            link_use(&moved[i], old);
        }
        op->operands = moved;
        op->operand_capacity = capacity;
    }
    TileUse *use = &op->operands[op->operand_count];
    *use = (TileUse){.user = op, .index = op->operand_count};
    op->operand_count++;
    link_use(use, value);
}

void tile_op_remove_operand(TileOp *op, unsigned index) {
    for (unsigned i = index; i + 1 < op->operand_count; i++) tile_op_set_operand(op, i, op->operands[i + 1].value);
    unlink_use(&op->operands[op->operand_count - 1]);
    op->operand_count--;
}

void tile_op_remove_result(TileOp *op, unsigned index) {
    for (unsigned i = index; i + 1 < op->result_count; i++) {
        op->results[i].type = op->results[i + 1].type;
        op->results[i].name = op->results[i + 1].name;
        tile_value_replace(&op->results[i + 1], &op->results[i]);
    }
    op->result_count--;
}

void tile_value_replace(TileValue *value, TileValue *with) {
    if (value == with) return;
    while (value->first_use) {
        TileUse *use = value->first_use;
        unlink_use(use);
        link_use(use, with);
    }
    if (!with->name) with->name = value->name;
}

bool tile_value_has_one_use(const TileValue *value) { return value->first_use && !value->first_use->next; }

/* ---- ops ---- */

TileOp *tile_op_create(TileModule *module, TileOpId id, TileLocation location, TileValue *const *operands,
                       unsigned operand_count, const TileType *const *result_types, unsigned result_count) {
    count_work(module);
    _Static_assert(_Alignof(TileUse) <= _Alignof(TileOp) && _Alignof(TileValue) <= _Alignof(TileUse) &&
                       sizeof(TileOp) % _Alignof(TileUse) == 0 && sizeof(TileUse) % _Alignof(TileValue) == 0,
                   "an op, its operands and its results lie behind one another");
    TileOp *op = tile_arena_take(module->arena,
                                 sizeof(TileOp) + operand_count * sizeof(TileUse) + result_count * sizeof(TileValue));
    *op = (TileOp){
        .id = (uint16_t)id, .location = location, .operand_count = operand_count, .operand_capacity = operand_count};
    op->operands = operand_count ? (TileUse *)(op + 1) : NULL;
    for (unsigned i = 0; i < operand_count; i++) {
        op->operands[i] = (TileUse){.user = op, .index = i};
        link_use(&op->operands[i], operands[i]);
    }
    op->result_count = (uint16_t)result_count;
    op->results = result_count ? (TileValue *)((TileUse *)(op + 1) + operand_count) : NULL;
    for (unsigned i = 0; i < result_count; i++)
        op->results[i] = (TileValue){.type = result_types[i], .op = op, .index = i};
    op->region_count = (uint16_t)tile_op_info(id)->regions;
    op->regions = op->region_count ? TILE_NEW_ARRAY(module->arena, TileBlock, op->region_count) : NULL;
    for (unsigned i = 0; i < op->region_count; i++) op->regions[i].op = op;
    return op;
}

static TileAttribute *find_attribute(const TileOp *op, TileAttributeKey key) {
    for (unsigned i = 0; i < op->attribute_count; i++)
        if (op->attributes[i].key == key) return &op->attributes[i];
    return NULL;
}

const TileAttribute *tile_op_get(const TileOp *op, TileAttributeKey key) { return find_attribute(op, key); }

bool tile_op_is_block_barrier(const TileOp *op) {
    return op->id == TILE_OP_CLUSTER_BARRIER || (op->id == TILE_OP_BARRIER && !tile_op_get(op, TILE_ATTRIBUTE_NUMBER));
}

int64_t tile_op_integer(const TileOp *op, TileAttributeKey key, int64_t otherwise) {
    const TileAttribute *attribute = find_attribute(op, key);
    return attribute ? attribute->integer : otherwise;
}

bool tile_op_has_part(const TileOp *op, TileName part) {
    const TileAttribute *parts = find_attribute(op, TILE_ATTRIBUTE_PARTS);
    for (unsigned i = 0; parts && i < parts->count; i++)
        if (parts->integers[i] == part) return true;
    return false;
}

TileBlock *tile_op_combiner(const TileOp *op) {
    if (op->id == TILE_OP_FOLD_LOOP) return &op->regions[1];
    return op->id == TILE_OP_FOLD || op->id == TILE_OP_SCAN ? &op->regions[0] : NULL;
}

static void copy_payload(TileModule *module, TileAttribute *attribute) {
    switch (tile_attribute_storage(attribute->key)) {
    case TILE_STORAGE_BITS:
    case TILE_STORAGE_INT:
    case TILE_STORAGE_NAME: break;
    case TILE_STORAGE_TEXT: attribute->text = tile_intern_string(module->context->strings, attribute->text); break;
    case TILE_STORAGE_TEXTS: {
        const char **texts = tile_arena_copy(module->arena, attribute->texts, attribute->count * sizeof *texts);
        for (uint32_t i = 0; i < attribute->count; i++)
            texts[i] = tile_intern_string(module->context->strings, texts[i]);
        attribute->texts = texts;
        break;
    }
    case TILE_STORAGE_INTS:
    case TILE_STORAGE_NAMES:
        attribute->integers =
            tile_arena_copy(module->arena, attribute->integers, attribute->count * sizeof *attribute->integers);
        break;
    case TILE_STORAGE_TYPES:
        attribute->types =
            tile_arena_copy(module->arena, attribute->types, attribute->count * sizeof *attribute->types);
        break;
    }
}

/* Attributes are sorted by key, so that the text does not depend on the order in which they are set. */
void tile_op_set(TileModule *module, TileOp *op, TileAttribute attribute) {
    copy_payload(module, &attribute);
    TileAttribute *old = find_attribute(op, attribute.key);
    if (old) {
        *old = attribute;
        return;
    }
    op->attributes = tile_arena_grow(module->arena, op->attributes, op->attribute_count * sizeof attribute,
                                     (op->attribute_count + 1u) * sizeof attribute);
    unsigned index = op->attribute_count++;
    for (; index && op->attributes[index - 1].key > attribute.key; index--)
        op->attributes[index] = op->attributes[index - 1];
    op->attributes[index] = attribute;
}

void tile_op_set_integer(TileModule *module, TileOp *op, TileAttributeKey key, int64_t value) {
    tile_op_set(module, op, (TileAttribute){.key = key, .integer = value});
}

void tile_op_set_integers(TileModule *module, TileOp *op, TileAttributeKey key, const int64_t *values, unsigned count) {
    tile_op_set(module, op, (TileAttribute){.key = key, .count = count, .integers = values});
}

void tile_op_set_text(TileModule *module, TileOp *op, TileAttributeKey key, const char *text) {
    tile_op_set(module, op, (TileAttribute){.key = key, .text = text});
}

void tile_op_clear(TileOp *op, TileAttributeKey key) {
    TileAttribute *attribute = find_attribute(op, key);
    if (!attribute) return;
    unsigned index = (unsigned)(attribute - op->attributes);
    memmove(attribute, attribute + 1, (op->attribute_count - index - 1u) * sizeof *attribute);
    op->attribute_count--;
}

static void set_block(TileOp *op, TileBlock *block) {
    op->block = block;
    for (unsigned i = 0; i < op->region_count; i++) op->regions[i].func = block->func;
}

/* Regions that were created while their op was detached get their function when the op is inserted. */
static void adopt(TileOp *op, TileBlock *block) {
    set_block(op, block);
    for (unsigned i = 0; i < op->region_count; i++)
        for (TileOp *inner = op->regions[i].first; inner; inner = inner->next)
            if (inner->region_count && inner->regions[0].func != block->func) adopt(inner, &op->regions[i]);
}

void tile_op_insert_before(TileOp *op, TileOp *position) {
    op->next = position;
    op->previous = position->previous;
    if (op->previous)
        op->previous->next = op;
    else
        position->block->first = op;
    position->previous = op;
    adopt(op, position->block);
}

void tile_op_insert_after(TileOp *op, TileOp *position) {
    if (position->next)
        tile_op_insert_before(op, position->next);
    else
        tile_op_append(op, position->block);
}

void tile_op_append(TileOp *op, TileBlock *block) {
    op->previous = block->last;
    op->next = NULL;
    if (block->last)
        block->last->next = op;
    else
        block->first = op;
    block->last = op;
    adopt(op, block);
}

void tile_op_detach(TileOp *op) {
    if (op->previous)
        op->previous->next = op->next;
    else
        op->block->first = op->next;
    if (op->next)
        op->next->previous = op->previous;
    else
        op->block->last = op->previous;
    op->block = NULL;
    op->next = op->previous = NULL;
}

static void drop_operands(TileOp *op) {
    for (uint32_t i = 0; i < op->operand_count; i++) unlink_use(&op->operands[i]);
    for (unsigned i = 0; i < op->region_count; i++)
        for (TileOp *inner = op->regions[i].first; inner; inner = inner->next) drop_operands(inner);
}

void tile_op_erase(TileOp *op) {
    drop_operands(op);
    op->operand_count = 0;
    if (op->block) tile_op_detach(op);
}

void tile_block_splice(TileBlock *to, TileBlock *from) {
    while (from->first) {
        TileOp *op = from->first;
        tile_op_detach(op);
        tile_op_append(op, to);
    }
}

TileValue *tile_block_add_argument(TileModule *module, TileBlock *block, const TileType *type, const char *name) {
    if (block->argument_count == block->argument_capacity) {
        uint32_t capacity = block->argument_capacity ? block->argument_capacity * 2 : 4;
        block->arguments =
            tile_arena_grow(module->arena, block->arguments, block->argument_count * sizeof *block->arguments,
                            capacity * sizeof *block->arguments);
        block->argument_capacity = capacity;
    }
    TileValue *value = TILE_NEW(module->arena, TileValue);
    *value = (TileValue){.type = type, .block = block, .index = block->argument_count, .name = name};
    block->arguments[block->argument_count++] = value;
    return value;
}

void tile_block_remove_argument(TileBlock *block, unsigned index) {
    for (unsigned i = index; i + 1 < block->argument_count; i++) {
        block->arguments[i] = block->arguments[i + 1];
        block->arguments[i]->index = i;
    }
    block->argument_count--;
}

/* ---- queries ---- */

TileBlock *tile_value_block(const TileValue *value) { return value->op ? value->op->block : value->block; }

TileFunc *tile_op_func(const TileOp *op) { return op->block ? op->block->func : NULL; }

bool tile_block_inside(const TileBlock *block, const TileBlock *outer) {
    while (block && block != outer) block = block->op ? block->op->block : NULL;
    return block == outer;
}

bool tile_value_outside(const TileValue *value, const TileOp *op) {
    for (const TileBlock *block = tile_value_block(value); block; block = block->op ? block->op->block : NULL)
        if (block->op == op) return false;
    return true;
}

void tile_block_walk(TileBlock *block, TileOpVisitor visit, void *state) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        unsigned regions = op->region_count;
        visit(op, state);
        if (op->block != block) continue; /* erased or moved */
        for (unsigned i = 0; i < regions; i++) tile_block_walk(&op->regions[i], visit, state);
    }
}

static bool any_op(const TileOp *op, bool (*is)(const TileOp *op)) {
    for (unsigned i = 0; i < op->region_count; i++)
        for (const TileOp *inner = op->regions[i].first; inner; inner = inner->next)
            if (is(inner)) return true;
    return false;
}

static bool is_impure(const TileOp *op) { return !tile_op_is_pure(op); }

/* A while loop may not terminate, so it is never removed, moved or merged. */
bool tile_op_is_pure(const TileOp *op) {
    const TileOpInfo *info = tile_op_info(op->id);
    if (info->traits & (TILE_TRAIT_PURE | TILE_TRAIT_TERMINATOR)) return true;
    bool structured =
        op->id == TILE_OP_FOR || op->id == TILE_OP_IF || op->id == TILE_OP_LOOP || op->id == TILE_OP_FOLD_LOOP;
    return structured && !any_op(op, is_impure);
}

bool tile_op_reads(const TileOp *op) {
    return (tile_op_info(op->id)->traits & TILE_TRAIT_READS) != 0 || any_op(op, tile_op_reads);
}

bool tile_op_writes(const TileOp *op) {
    return (tile_op_info(op->id)->traits & TILE_TRAIT_WRITES) != 0 || any_op(op, tile_op_writes);
}

static bool is_bound_to_wait(const TileOp *op) { return !tile_op_precedes_grid_wait(op); }

bool tile_op_precedes_grid_wait(const TileOp *op) {
    bool of_barriers = op->id == TILE_OP_MBARRIER_INIT || op->id == TILE_OP_FENCE_ASYNC || op->id == TILE_OP_BARRIER ||
                       op->id == TILE_OP_GRID_LAUNCH, of_map = op->id == TILE_OP_PREFETCH_TENSOR && op->operand_count == 1;
    return of_barriers || of_map || tile_op_is_pure(op) || (op->id == TILE_OP_IF && !any_op(op, is_bound_to_wait));
}

bool tile_op_reaches_memory(const TileOp *op) {
    if (op->region_count) return any_op(op, tile_op_reaches_memory);
    if (!(tile_op_info(op->id)->traits & (TILE_TRAIT_READS | TILE_TRAIT_WRITES))) return false;
    bool of_map = op->id == TILE_OP_PREFETCH_TENSOR && op->operand_count == 1, reaches = op->id == TILE_OP_NEW_RECORD;
    for (unsigned i = 0; i < op->operand_count && !of_map; i++) {
        const TileType *type = op->operands[i].value->type;
        reaches |= type->kind == TILE_TYPE_POINTER && (type->space == TILE_SPACE_GLOBAL || type->space == TILE_SPACE_MAP);
    }
    return reaches;
}

/* ---- cloning ---- */

static TileValue *mapped(const TileMap *map, TileValue *value) {
    TileValue *found = tile_map_get(map, value);
    return found ? found : value;
}

static void clone_block(TileModule *module, TileBlock *to, const TileBlock *from, TileMap *map) {
    for (uint32_t i = 0; i < from->argument_count; i++) {
        TileValue *old = from->arguments[i];
        tile_map_set(map, old, tile_block_add_argument(module, to, old->type, old->name));
    }
    for (const TileOp *op = from->first; op; op = op->next) tile_op_append(tile_op_clone(module, op, map), to);
}

TileOp *tile_op_clone(TileModule *module, const TileOp *op, TileMap *map) {
    TileOp *copy = tile_op_create(module, op->id, op->location, NULL, 0, NULL, 0);
    for (uint32_t i = 0; i < op->operand_count; i++)
        tile_op_add_operand(module, copy, mapped(map, op->operands[i].value));
    copy->result_count = op->result_count;
    copy->results = op->result_count ? TILE_NEW_ARRAY(module->arena, TileValue, op->result_count) : NULL;
    for (unsigned i = 0; i < op->result_count; i++) {
        TileValue *old = &op->results[i];
        copy->results[i] = (TileValue){.type = old->type, .op = copy, .index = i, .name = old->name};
        tile_map_set(map, old, &copy->results[i]);
    }
    for (unsigned i = 0; i < op->attribute_count; i++) tile_op_set(module, copy, op->attributes[i]);
    for (unsigned i = 0; i < op->region_count; i++) clone_block(module, &copy->regions[i], &op->regions[i], map);
    return copy;
}
