/* Loop fusion: statements to a tree of loops, which cpu-fuse chooses, and cpu-nest builds again by their numbers. A statement is
 * fused into the loops of an earlier one if their extents and bounds are equal, and if each value or buffer that both access is
 * accessed at the same index of the loop: so a row's maximum, its exponentials, their sum, and the division by it become one loop
 * over rows. */
#include <string.h>

#include "cpu/nest.h"
#include "lang/ir/operands.h"

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
    bool stores = other->kind == NEST_STORE && nest_tensors_overlap(n, tensor, tile_op_operand(other->op, 0));
    if (stores && (writer->kind == NEST_ATOMIC || !nest_stores_are_apart(writer->op, other->op))) return true;
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

/* Is it stored by places that are data? Where these meet the last one counts, so lanes go one by one. */
static bool scatters(const NestStatement *s) {
    TileAccessIndex index[TILE_MAX_TENSOR_RANK];
    unsigned rank = s->kind == NEST_STORE ? tile_access_read(s->op, index) : 0;
    for (unsigned d = 0; d < rank; d++)
        if (index[d].kind == TILE_ACCESS_GATHER) return true;
    return false;
}

static bool has_scatter(const NestNode *node) {
    for (size_t i = 0; i < node->children.count; i++)
        if (node->children.items[i]->statement && scatters(node->children.items[i]->statement)) return true;
    return false;
}

static bool is_compatible(const NestNode *node, const NestStatement *s, unsigned level) {
    const NestLevel *wanted = &s->levels[level];
    if (node->level.extent != wanted->extent || !nest_atoms_equal(&node->level.atoms, &wanted->atoms)) return false;
    if (wanted->kind == TILE_LOOP_KIND_SEQUENTIAL) return false;
    if (node->level.kind == TILE_LOOP_KIND_SEQUENTIAL) /* after each step of a scan, which has no loops of its own */
        return wanted->kind == TILE_LOOP_KIND_PARALLEL && level + 1 == s->level_count && !s->block &&
               nest_is_scan(node->children.items[0]->statement);
    if (wanted->kind == TILE_LOOP_KIND_REDUCE)
        return !has_loops(node) && !has_scatter(node) && (node->level.kind == TILE_LOOP_KIND_PARALLEL || node->level.order == wanted->order);
    /* A reduction takes nothing in that has a loop of its own, as blocks of points have, or an order: it could not be vectorised. */
    return node->level.kind == TILE_LOOP_KIND_PARALLEL || (level + 1 == s->level_count && !s->block && !scatters(s));
}

/* Is it a function of each point that takes long, such as that by which the sums of a row are scaled? Among loops over the
 * elements of rows it would be computed for one row at a time. */
static bool is_function(const NestStatement *s, unsigned level) {
    if (s->kind != NEST_KEEP || level || s->level_count != 1 || s->levels[0].kind != TILE_LOOP_KIND_PARALLEL) return false;
    return s->value->op && (tile_op_info((TileOpId)s->value->op->id)->traits & TILE_TRAIT_COSTLY);
}

/* The last loop that the statement can be fused into without being moved across a statement that it depends on; NULL:
 * there is none. */
static NestNode *find_fusable_loop(Nest *n, const NestNode *parent, const NestStatement *s, unsigned level) {
    for (size_t i = parent->children.count; i-- > 0;) {
        NestNode *child = parent->children.items[i];
        Conflict conflict = conflict_with(n, s, child, level);
        if (conflict == BLOCKED) return NULL;
        bool apart = (child->lanes && level + 1 < s->level_count) || (has_loops(child) && is_function(s, level));
        if (!child->statement && !child->block && !apart && is_compatible(child, s, level)) return child;
        if (conflict != FREE) return NULL;
    }
    return NULL;
}

/* The loop of this number, if it is the parent's; the statement may have to be elsewhere. */
static NestNode *find_numbered_loop(Nest *n, const NestNode *parent, const NestStatement *s, unsigned level) {
    NestNode *found = NULL;
    for (size_t i = parent->children.count; i-- > 0 && !found;)
        if (!parent->children.items[i]->statement && parent->children.items[i]->number == s->path[level])
            found = parent->children.items[i];
    for (size_t i = parent->children.count; found && i-- > 0;) {
        NestNode *child = parent->children.items[i];
        Conflict conflict = conflict_with(n, s, child, level);
        bool fits = child == found ? !child->block && conflict != BLOCKED && is_compatible(child, s, level) : conflict == FREE;
        if (!fits) n->failure = "a statement cannot be in a loop of which `nest` has the number";
        if (!fits || child == found) break;
    }
    return found;
}

static NestNode *add_node(Nest *n, NestNode *parent, int64_t number) {
    NestNode *node = TILE_NEW(n->arena, NestNode);
    node->parent = parent;
    node->number = number;
    tile_list_push(n->arena, &parent->children, node);
    return node;
}

/* The number of a new loop. */
static int64_t number_at(Nest *n, const NestStatement *s, unsigned level) { return s->path ? s->path[level] : n->loops++; }

/* The node of the statement's block of points: the last one, if the statement may be computed together with its others. */
static NestNode *block_node(Nest *n, NestNode *parent, const NestStatement *s) {
    NestNode *last = parent->children.count ? parent->children.items[parent->children.count - 1] : NULL;
    bool wanted = last && last->block == s->block && (!s->path || last->number == s->path[s->level_count]);
    if (wanted && conflict_with(n, s, last, s->level_count) == FREE) return last;
    if (wanted && s->path) n->failure = "a statement cannot be in the block of points that `nest` names";
    NestNode *node = add_node(n, parent, number_at(n, s, s->level_count));
    node->block = s->block;
    return node;
}

static NestNode *find_loop(Nest *n, const NestNode *parent, const NestStatement *s, unsigned level) {
    return s->path ? find_numbered_loop(n, parent, s, level) : find_fusable_loop(n, parent, s, level);
}

static void schedule(Nest *n, NestStatement *s) {
    if (s->kind == NEST_COPY && !s->copy_count) return;
    NestNode *parent = &n->root;
    bool fuses = true;
    if (s->kind == NEST_PART) {
        memcpy(s->nodes, s->whole->nodes, sizeof s->nodes);
        parent = s->nodes[s->level_count - 1];
    }
    for (unsigned l = 0; l < s->level_count && s->kind != NEST_PART; l++) {
        NestNode *node = fuses ? find_loop(n, parent, s, l) : NULL;
        if (!node) {
            fuses = false;
            node = add_node(n, parent, number_at(n, s, l));
            node->level = s->levels[l];
            node->lanes = is_function(s, l);
        } else if (s->levels[l].kind == TILE_LOOP_KIND_REDUCE) {
            node->level.kind = TILE_LOOP_KIND_REDUCE;
            node->level.order = s->levels[l].order;
        }
        s->nodes[l] = parent = node;
    }
    if (s->block) s->nodes[s->level_count] = parent = block_node(n, parent, s);
    add_node(n, parent, -1)->statement = s;
    s->pending = true;
    tile_list_push(n->arena, &n->batch, s);
}

/* ---- batches: statements that are scheduled together ---- */

enum { BATCH = 64 };

void nest_schedule_op(Nest *n, const TileOp *op) {
    for (NestStatement *s = tile_map_get(&n->statements, op); s; s = s->next) schedule(n, s);
}

void nest_schedule_copies(Nest *n, const TileOp *op) {
    for (NestStatement *s = tile_map_get(&n->statements, op); s; s = s->next)
        if (s->kind == NEST_COPY) schedule(n, s);
}

static bool is_on_scalars(const TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++)
        if (tile_type_is_tile(op->results[i].type)) return false;
    return true;
}

bool nest_is_scalar_op(const Nest *n, const TileOp *op) {
    return !tile_map_get(&n->statements, op) && op->id != TILE_OP_CONST && is_on_scalars(op);
}

static bool depends_on_batch(Nest *n, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        const NestStatement *s = nest_info(n, tile_op_operand(op, i))->statement;
        if (s && s->pending) return true;
    }
    return false;
}

/* A scalar that is loaded goes ahead of the batch, unless it depends on it or may be stored by it. */
static bool loads_ahead(Nest *n, const TileOp *op) {
    if (op->id != TILE_OP_LOAD_TILE || depends_on_batch(n, op)) return false;
    for (size_t i = 0; i < n->batch.count; i++) {
        const NestStatement *s = n->batch.items[i];
        bool writes = s->kind == NEST_STORE || s->kind == NEST_ATOMIC;
        if (writes && nest_tensors_overlap(n, tile_op_operand(s->op, 0), tile_op_operand(op, 0))) return false;
    }
    return true;
}

bool nest_ends_batch(Nest *n, const TileOp *op) {
    bool pure = (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && op->result_count == 1;
    return !pure && !loads_ahead(n, op);
}

bool nest_schedule_scalar(Nest *n, TileOp *op) {
    if (nest_ends_batch(n, op) || !depends_on_batch(n, op)) return false;
    NestStatement *s = nest_statement(n, NEST_SCALAR, op, tile_op_result(op, 0));
    nest_collect_leaves(n, s);
    schedule(n, s);
    return true;
}

bool nest_batch_is_full(const Nest *n) { return n->batch.count >= BATCH; }

void nest_end_batch(Nest *n) {
    for (size_t i = 0; i < n->batch.count; i++) n->batch.items[i]->pending = false;
    n->root.children.count = 0;
    n->batch.count = 0;
}

/* ---- where values are between loops ---- */

unsigned nest_loops_with_readers(const NestStatement *s, bool *registers) {
    unsigned levels = nest_is_scan(s) ? s->level_count : s->parallel_count, shared = levels;
    bool stored = false; /* a dot reads memory, even of one element */
    for (size_t c = 0; c < s->consumers.count; c++) {
        unsigned own = nest_shared_loops(s, s->consumers.items[c]);
        if (own < shared) shared = own;
        stored |= s->consumers.items[c]->kind == NEST_DOT;
    }
    *registers = shared == levels && !stored && !s->block;
    return shared;
}
