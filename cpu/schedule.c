/* Loop fusion: statements to a tree of loops. A statement is fused into the loops of an earlier one if their extents
 * and bounds are equal, and if each value or buffer that both access is accessed at the same index of the loop: so a
 * row's maximum, its exponentials, their sum, and the division by it become one loop over rows. */
#include <string.h>

#include "cpu/nest.h"

typedef enum Conflict { FREE, POINTWISE, BLOCKED } Conflict;

static Conflict worse(Conflict a, Conflict b) { return a > b ? a : b; }

static const NestBuffer *buffer_of(Nest *n, const TileValue *value) {
    const NestInfo *info = nest_info(n, value);
    if (info->slot) return info->slot;
    return info->statement && info->statement->kind == NEST_DOT ? info->statement->buffer : NULL;
}

static bool writes_buffer(const NestStatement *s, const NestBuffer *buffer) {
    if (s->kind == NEST_DOT) return s->buffer == buffer;
    for (unsigned i = 0; s->kind == NEST_COPY && i < s->copy_count; i++)
        if (s->copies[i].to == buffer) return true;
    return false;
}

/* Is the reader's index, along the axis of the writer's loop, that of the reader's own loop? */
static Conflict at_level(const NestStatement *writer, const NestLeaf *read, unsigned level) {
    unsigned levels = nest_is_scan(writer) ? writer->level_count : writer->parallel_count;
    if (level >= levels || writer->axis[level] < 0) return BLOCKED;
    return read->map.level[writer->axis[level]] == (int)level ? POINTWISE : BLOCKED;
}

static Conflict read_after_write(Nest *n, const NestStatement *s, const NestStatement *before, unsigned level) {
    Conflict conflict = FREE;
    for (size_t i = 0; i < s->leaves.count; i++) {
        const NestLeaf *leaf = &s->leaves.items[i];
        const NestBuffer *buffer = buffer_of(n, leaf->value);
        if (buffer && writes_buffer(before, buffer)) return BLOCKED;
        if (nest_info(n, leaf->value)->statement != before) continue;
        conflict = worse(conflict, before->kind == NEST_DOT ? BLOCKED : at_level(before, leaf, level));
    }
    return conflict;
}

static Conflict write_after_read(Nest *n, const NestStatement *s, const NestStatement *before, unsigned level) {
    Conflict conflict = FREE;
    for (size_t i = 0; i < before->leaves.count; i++) {
        const NestBuffer *buffer = buffer_of(n, before->leaves.items[i].value);
        if (!buffer || !writes_buffer(s, buffer)) continue;
        conflict = worse(conflict, s->kind == NEST_DOT ? BLOCKED : at_level(s, &before->leaves.items[i], level));
    }
    return conflict;
}

static bool same_buffer(const NestStatement *s, const NestStatement *before) {
    if (s->kind == NEST_DOT) return writes_buffer(before, s->buffer);
    for (unsigned i = 0; s->kind == NEST_COPY && i < s->copy_count; i++)
        if (writes_buffer(before, s->copies[i].to)) return true;
    return false;
}

/* Does `writer` store to a tensor that `other` loads or stores? */
static bool tensor_conflict(Nest *n, const NestStatement *writer, const NestStatement *other) {
    if (writer->kind != NEST_STORE && writer->kind != NEST_ATOMIC) return false;
    const TileValue *tensor = tile_op_operand(writer->op, 0);
    if (other->kind == NEST_STORE && nest_tensors_overlap(n, tensor, tile_op_operand(other->op, 0))) return true;
    for (size_t i = 0; i < other->leaves.count; i++) {
        const TileOp *load = tile_value_def(other->leaves.items[i].value, TILE_OP_LOAD_TILE);
        if (load && nest_tensors_overlap(n, tensor, tile_op_operand(load, 0))) return true;
    }
    return false;
}

static Conflict conflict_with(Nest *n, const NestStatement *s, const NestNode *node, unsigned level) {
    if (!node->statement) {
        Conflict conflict = FREE;
        for (size_t i = 0; i < node->children.count && conflict != BLOCKED; i++)
            conflict = worse(conflict, conflict_with(n, s, node->children.items[i], level));
        return conflict;
    }
    const NestStatement *before = node->statement;
    if (s->kind == NEST_PRINT || before->kind == NEST_PRINT) return BLOCKED;
    if (s->kind == NEST_ATOMIC || before->kind == NEST_ATOMIC)
        return BLOCKED; /* it would prevent vectorisation of the others */
    if (same_buffer(s, before) || tensor_conflict(n, s, before) || tensor_conflict(n, before, s)) return BLOCKED;
    return worse(read_after_write(n, s, before, level), write_after_read(n, s, before, level));
}

static bool has_loops(const NestNode *node) {
    for (size_t i = 0; i < node->children.count; i++)
        if (!node->children.items[i]->statement) return true;
    return false;
}

static bool is_compatible(const NestNode *node, const NestStatement *s, unsigned level) {
    const NestLevel *wanted = &s->levels[level];
    if (node->level.extent != wanted->extent || !nest_atoms_equal(&node->level.atoms, &wanted->atoms)) return false;
    if (wanted->kind == TILE_LOOP_KIND_SEQUENTIAL) return false;
    if (node->level.kind == TILE_LOOP_KIND_SEQUENTIAL) /* after each step of a scan */
        return wanted->kind == TILE_LOOP_KIND_PARALLEL && level + 1 == s->level_count &&
               nest_is_scan(node->children.items[0]->statement);
    if (wanted->kind == TILE_LOOP_KIND_REDUCE)
        return !has_loops(node) && (node->level.kind == TILE_LOOP_KIND_PARALLEL || node->level.order == wanted->order);
    /* A reduction takes nothing in that has a loop of its own, as blocks of points have: it could not be vectorised. */
    return node->level.kind == TILE_LOOP_KIND_PARALLEL || (level + 1 == s->level_count && !s->block);
}

/* The last loop that the statement can be fused into without being moved across a statement that it depends on; NULL:
 * there is none. */
static NestNode *find_fusable_loop(Nest *n, const NestNode *parent, const NestStatement *s, unsigned level) {
    for (size_t i = parent->children.count; i-- > 0;) {
        NestNode *child = parent->children.items[i];
        Conflict conflict = conflict_with(n, s, child, level);
        if (conflict == BLOCKED) return NULL;
        if (!child->statement && !child->block && is_compatible(child, s, level)) return child;
        if (conflict != FREE) return NULL;
    }
    return NULL;
}

static NestNode *add_node(Nest *n, NestNode *parent) {
    NestNode *node = TILE_NEW(n->arena, NestNode);
    node->parent = parent;
    tile_list_push(n->arena, &parent->children, node);
    return node;
}

/* The node of the statement's block of points: the last one, if the statement may be computed together with its others. */
static NestNode *block_node(Nest *n, NestNode *parent, const NestStatement *s) {
    NestNode *last = parent->children.count ? parent->children.items[parent->children.count - 1] : NULL;
    if (last && last->block == s->block && conflict_with(n, s, last, s->level_count) == FREE) return last;
    NestNode *node = add_node(n, parent);
    node->block = s->block;
    return node;
}

void nest_schedule(Nest *n, NestStatement *s) {
    if (s->kind == NEST_COPY && !s->copy_count) return;
    NestNode *parent = &n->root;
    bool fuses = true;
    if (s->kind == NEST_PART) {
        memcpy(s->nodes, s->whole->nodes, sizeof s->nodes);
        parent = s->nodes[s->level_count - 1];
    }
    for (unsigned l = 0; l < s->level_count && s->kind != NEST_PART; l++) {
        NestNode *node = fuses ? find_fusable_loop(n, parent, s, l) : NULL;
        if (!node) {
            fuses = false;
            node = add_node(n, parent);
            node->level = s->levels[l];
        } else if (s->levels[l].kind == TILE_LOOP_KIND_REDUCE) {
            node->level.kind = TILE_LOOP_KIND_REDUCE;
            node->level.order = s->levels[l].order;
        }
        s->nodes[l] = parent = node;
    }
    if (s->block) parent = block_node(n, parent, s);
    add_node(n, parent)->statement = s;
    s->pending = true;
    tile_list_push(n->arena, &n->batch, s);
}

/* ---- memory ---- */

void nest_store_batch(Nest *n) {
    for (size_t i = 0; i < n->batch.count; i++) {
        NestStatement *s = n->batch.items[i];
        unsigned levels = nest_is_scan(s) ? s->level_count : s->parallel_count;
        if (!s->value || s->kind == NEST_SCALAR || s->kind == NEST_DOT) continue;
        unsigned kept = levels;
        bool stored = false; /* a dot reads memory, even of one element */
        for (size_t c = 0; c < s->consumers.count; c++) {
            unsigned shared = nest_shared_loops(s, s->consumers.items[c]);
            if (shared < kept) kept = shared;
            stored |= s->consumers.items[c]->kind == NEST_DOT;
        }
        if (kept == levels && !stored && !s->block) continue;
        unsigned collapsed = 0;
        for (unsigned l = 0; l < kept && l < s->parallel_count; l++) collapsed |= 1u << s->axis[l];
        s->buffer = nest_dot_panel(n, s);
        if (s->buffer) continue;
        s->buffer = nest_buffer(n, s->value->type, collapsed);
        s->buffer->passing = s->kind == NEST_KEEP;
    }
}
