/* Where tiles live, as attributes of their ops: written by cpu-place, read by cpu-fuse and cpu-nest. */
#include <string.h>

#include "cpu/nest.h"

typedef struct Numbers {
    Nest *n;
    int64_t buffers, blocks; /* the next ones */
    TileMap of_buffer, of_block; /* to its number + 1 */
} Numbers;

static int64_t number_of(TileMap *map, const void *key, int64_t *next) {
    void *known = tile_map_get(map, key);
    if (!known) tile_map_set(map, key, known = (void *)(uintptr_t)++*next);
    return (int64_t)(uintptr_t)known - 1;
}

/* ---- to attributes ---- */

void nest_say_list(Nest *n, TileOp *op, TileAttributeKey key, const int64_t *values, unsigned count) {
    const TileAttribute *old = tile_op_get(op, key);
    bool same = old && old->count == count && (!count || memcmp(old->integers, values, count * sizeof *values) == 0);
    if (!same) tile_op_set_integers(n->module, op, key, values, count);
    n->changed |= !same;
}

void nest_say(Nest *n, TileOp *op, TileAttributeKey key, int64_t value) {
    const TileAttribute *old = tile_op_get(op, key);
    bool same = old && old->integer == value;
    if (!same) tile_op_set_integer(n->module, op, key, value);
    n->changed |= !same;
}

static void write_buffers(Numbers *numbers, TileOp *op) {
    Nest *n = numbers->n;
    int64_t *buffers = TILE_NEW_ARRAY(n->arena, int64_t, op->result_count);
    bool any = false;
    for (unsigned i = 0; i < op->result_count; i++) {
        const NestInfo *info = nest_info(n, &op->results[i]);
        const NestBuffer *buffer = op->id == TILE_OP_DOT ? info->statement->buffer : info->slot;
        buffers[i] = buffer ? number_of(&numbers->of_buffer, buffer, &numbers->buffers) : -1;
        any |= buffer != NULL;
    }
    if (any) nest_say_list(n, op, TILE_ATTRIBUTE_BUFFERS, buffers, op->result_count);
}

static void write_block(Numbers *numbers, TileOp *op, const NestBlock *block) {
    Nest *n = numbers->n;
    int64_t points[NEST_BITS], runs[NEST_RUNS];
    unsigned count = 0;
    for (unsigned bit = 0; bit < NEST_BITS; bit++)
        if (block->fixed >> bit & 1u) points[count++] = bit;
    for (unsigned i = 0; i < block->run_count; i++) runs[i] = block->shift[i];
    nest_say(n, op, TILE_ATTRIBUTE_BLOCK, number_of(&numbers->of_block, block, &numbers->blocks));
    nest_say_list(n, op, TILE_ATTRIBUTE_POINTS, points, count);
    nest_say_list(n, op, TILE_ATTRIBUTE_RUNS, runs, block->run_count);
}

static TileName home_of(Nest *n, const TileOp *op) {
    if (nest_info(n, &op->results[0])->statement) return TILE_HOME_KEPT;
    return op->id == TILE_OP_LOAD_TILE ? TILE_HOME_VIEW : TILE_HOME_RECOMPUTED;
}

static void write_op(Numbers *numbers, TileOp *op) {
    Nest *n = numbers->n;
    const NestStatement *s = tile_map_get(&n->statements, op);
    if (nest_has_blocks(op) || op->id == TILE_OP_DOT)
        write_buffers(numbers, op);
    else if (op->result_count == 1 && (tile_type_is_tile(op->results[0].type) || (s && s->kind == NEST_KEEP)))
        nest_say(n, op, TILE_ATTRIBUTE_HOME, home_of(n, op));
    if (s && s->block) write_block(numbers, op, s->block);
}

static void write_homes(Numbers *numbers, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        write_op(numbers, op);
        for (unsigned r = 0; nest_has_blocks(op) && r < op->region_count; r++) write_homes(numbers, &op->regions[r]);
    }
}

static Numbers start(Nest *n) {
    Numbers numbers = {.n = n};
    tile_map_init(&numbers.of_buffer, n->arena);
    tile_map_init(&numbers.of_block, n->arena);
    return numbers;
}

void nest_write_homes(Nest *n) {
    Numbers numbers = start(n);
    write_homes(&numbers, n->body);
}

/* ---- from attributes ---- */

static const void *key_of(int64_t number) { return (const void *)(uintptr_t)(number + 1); }

static NestBuffer *read_buffer(Numbers *numbers, int64_t number, const TileType *type) {
    NestBuffer *buffer = tile_map_get(&numbers->of_buffer, key_of(number));
    if (buffer) return buffer;
    buffer = nest_buffer(numbers->n, type, 0);
    tile_map_set(&numbers->of_buffer, key_of(number), buffer);
    return buffer;
}

void nest_set_slot(Nest *n, TileOp *op, unsigned result, NestBuffer *slot) {
    unsigned leading = op->id == TILE_OP_FOR ? 1 : 0;
    nest_info(n, &op->results[result])->slot = slot;
    for (unsigned r = 0; op->id != TILE_OP_IF && r < op->region_count; r++)
        nest_info(n, op->regions[r].arguments[leading + result])->slot = slot;
}

static void read_slots(Numbers *numbers, TileOp *op) {
    const TileAttribute *buffers = tile_op_get(op, TILE_ATTRIBUTE_BUFFERS);
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileType *type = op->results[i].type;
        if (buffers && buffers->integers[i] >= 0)
            nest_set_slot(numbers->n, op, i, read_buffer(numbers, buffers->integers[i], type));
        else if (tile_type_is_tile(type) && !nest_is_single(type))
            numbers->n->failure = "a tile that is carried has no buffer: cpu-place has not run";
    }
}

static void read_all_slots(Numbers *numbers, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (!nest_has_blocks(op)) continue;
        read_slots(numbers, op);
        for (unsigned r = 0; r < op->region_count; r++) read_all_slots(numbers, &op->regions[r]);
    }
}

/* Of the statement of a dot. */
static void read_accumulator(Numbers *numbers, NestStatement *s) {
    const TileAttribute *buffers = tile_op_get(s->op, TILE_ATTRIBUTE_BUFFERS);
    if (!buffers) {
        numbers->n->failure = "a product has no buffer: cpu-place has not run";
        return;
    }
    s->buffer = read_buffer(numbers, buffers->integers[0], s->value->type);
    NestStatement *copy = tile_map_get(&numbers->n->statements, s->op);
    while (!copy->accumulator) copy = copy->next;
    copy->copies->to = s->buffer;
}

static void read_block(Numbers *numbers, NestStatement *s) {
    const TileAttribute *number = tile_op_get(s->op, TILE_ATTRIBUTE_BLOCK);
    if (!number) return;
    s->block = tile_map_get(&numbers->of_block, key_of(number->integer));
    if (s->block) return;
    const TileAttribute *points = tile_op_get(s->op, TILE_ATTRIBUTE_POINTS), *runs = tile_op_get(s->op, TILE_ATTRIBUTE_RUNS);
    uint32_t fixed = 0;
    for (unsigned i = 0; i < points->count; i++) fixed |= 1u << points->integers[i];
    s->block = nest_block_with(numbers->n, s, fixed, runs->integers, runs->count);
    tile_map_set(&numbers->of_block, key_of(number->integer), s->block);
}

static void read_homes(Numbers *numbers, TileBlock *block) {
    Nest *n = numbers->n;
    for (TileOp *op = block->first; op; op = op->next) {
        int64_t home = tile_op_integer(op, TILE_ATTRIBUTE_HOME, TILE_HOME_RECOMPUTED);
        if (home != TILE_HOME_RECOMPUTED && home != TILE_HOME_VIEW) nest_keep(n, &op->results[0]);
        NestStatement *s = tile_map_get(&n->statements, op);
        if (s) read_block(numbers, s);
        for (unsigned r = 0; nest_has_blocks(op) && r < op->region_count; r++) read_homes(numbers, &op->regions[r]);
    }
}

static void plan(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        nest_plan_op(n, op);
        for (unsigned r = 0; nest_has_blocks(op) && r < op->region_count; r++) plan(n, &op->regions[r]);
        for (unsigned i = 0; i < op->result_count; i++) nest_atoms(n, &op->results[i]);
    }
}

/* What is said of homes may be slow, but not wrong. */
static void refuse_deep(Nest *n, TileValue *value, const char *why) {
    n->failure = "a value of too many ops is recomputed: cpu-place has not run";
}

static void refuse_overwritten(Nest *n, TileValue *value, const char *why) {
    n->failure = tile_arena_format(n->arena, "%s has to be kept: %s", value->name ? value->name : "a value", why);
}

void nest_read_homes(Nest *n) {
    Numbers numbers = start(n);
    read_all_slots(&numbers, n->body);
    plan(n, n->body);
    for (size_t i = 0; i < n->all.count && !n->failure; i++)
        if (n->all.items[i]->kind == NEST_DOT) read_accumulator(&numbers, n->all.items[i]);
    if (n->failure) return;
    nest_drop_copies(n);
    read_homes(&numbers, n->body);
    nest_find_deep(n, refuse_deep);
    if (n->failure) return;
    nest_analyse(n);
    nest_find_overwritten(n, refuse_overwritten);
    nest_collect_consumers(n);
}
