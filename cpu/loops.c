/* The loops around statements, and the buffers of what these compute, as attributes: written by cpu-fuse, read by cpu-nest. */
#include "cpu/nest.h"

/* Has the statement loops? Others stand outside of all, or are emitted with their op. */
static bool is_listed(const NestStatement *s) {
    switch (s->kind) {
    case NEST_STORE:
    case NEST_ATOMIC:
    case NEST_REDUCE:
    case NEST_ARG_REDUCE:
    case NEST_FOLD:
    case NEST_SCAN:
    case NEST_KEEP: return true;
    case NEST_COPY: return s->copy_count > 0;
    case NEST_SCALAR:
    case NEST_READ:
    case NEST_PART:
    case NEST_DOT:
    case NEST_PRINT: break;
    }
    return false;
}

/* Loops, and the block of points in them. */
static unsigned length_of(const NestStatement *s) { return s->level_count + (s->block ? 1 : 0); }

/* ---- to attributes ---- */

static void write_nest(Nest *n, TileOp *op) {
    TILE_LIST(int64_t) numbers = {0};
    bool any = false;
    for (const NestStatement *s = tile_map_get(&n->statements, op); s; s = s->next) {
        if (!is_listed(s)) continue;
        if (any) tile_list_push(n->arena, &numbers, -1);
        for (unsigned l = 0; l < length_of(s); l++) tile_list_push(n->arena, &numbers, s->nodes[l]->number);
        any = true;
    }
    if (any) nest_say_list(n, op, TILE_ATTRIBUTE_NEST, numbers.items, (unsigned)numbers.count);
}

static void write_shared(Nest *n, TileOp *op) {
    int64_t shared[TILE_MAX_FOLD];
    bool any = false;
    for (unsigned i = 0; i < op->result_count; i++) {
        const NestStatement *s = nest_info(n, &op->results[i])->statement;
        shared[i] = s->home == TILE_HOME_BUFFER ? (int64_t)s->shared : -1;
        any |= shared[i] >= 0;
    }
    if (any) nest_say_list(n, op, TILE_ATTRIBUTE_SHARED, shared, op->result_count);
}

void nest_write_loops(Nest *n) {
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        if (tile_map_get(&n->statements, s->op) == s) write_nest(n, s->op);
        if (!s->value || s->kind == NEST_SCALAR || s->kind == NEST_PART || s->kind == NEST_DOT) continue;
        if (s->op->result_count == 1 && (tile_type_is_tile(s->value->type) || s->kind == NEST_KEEP))
            nest_say(n, s->op, TILE_ATTRIBUTE_HOME, s->home);
        write_shared(n, s->op);
    }
}

/* ---- from attributes ---- */

static void read_nest(Nest *n, NestStatement *s, const TileAttribute *nest) {
    unsigned next = 0;
    for (bool any = false; s; s = s->next) {
        if (!is_listed(s)) continue;
        unsigned length = length_of(s);
        bool parted = !any || (next < nest->count && nest->integers[next++] == -1);
        if (!parted || next + length > nest->count) break;
        s->path = length ? &nest->integers[next] : nest->integers;
        for (unsigned l = 0; l < length; l++) parted = parted && s->path[l] >= 0;
        if (!parted) break;
        next += length;
        any = true;
    }
    if (s || next != nest->count) n->failure = "an op names other loops than its statements have";
}

static void read_op(Nest *n, TileOp *op) {
    NestStatement *first = tile_map_get(&n->statements, op), *s = first;
    const TileAttribute *nest = tile_op_get(op, TILE_ATTRIBUTE_NEST);
    while (s && !is_listed(s)) s = s->next;
    if (s && nest)
        read_nest(n, first, nest);
    else if (s)
        n->failure = "a statement does not say in which loops it is: cpu-fuse has not run";
}

static void read_storage(Nest *n, NestStatement *s) {
    const TileAttribute *shared = tile_op_get(s->op, TILE_ATTRIBUTE_SHARED);
    int64_t home = tile_op_integer(s->op, TILE_ATTRIBUTE_HOME, TILE_HOME_REGISTERS);
    bool buffer = shared && shared->integers[s->value->index] >= 0;
    if (home == TILE_HOME_PANEL) {
        s->buffer = nest_dot_panel(n, s);
        if (!s->buffer) n->failure = "a tile is in a panel, but no product takes it from one";
    } else if (buffer) {
        s->home = TILE_HOME_BUFFER;
        s->shared = (unsigned)shared->integers[s->value->index];
        nest_give_buffer(n, s, s->shared);
    }
}

/* What is built of an op in machine form has its other attributes. */
static void erase(TileBlock *block) {
    static const TileAttributeKey keys[] = {TILE_ATTRIBUTE_HOME, TILE_ATTRIBUTE_BUFFERS, TILE_ATTRIBUTE_BLOCK, TILE_ATTRIBUTE_POINTS,
                                            TILE_ATTRIBUTE_RUNS, TILE_ATTRIBUTE_NEST,    TILE_ATTRIBUTE_SHARED};
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) tile_op_clear(op, keys[i]);
        for (unsigned r = 0; nest_has_blocks(op) && r < op->region_count; r++) erase(&op->regions[r]);
    }
}

static void read_block(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        read_op(n, op);
        for (unsigned r = 0; nest_has_blocks(op) && r < op->region_count; r++) read_block(n, &op->regions[r]);
    }
}

void nest_read_loops(Nest *n) {
    read_block(n, n->body);
    for (size_t i = 0; i < n->all.count && !n->failure; i++) {
        NestStatement *s = n->all.items[i];
        if (s->value && s->kind != NEST_SCALAR && s->kind != NEST_DOT) read_storage(n, s);
    }
    erase(n->body);
}
