/* Values that have to be kept, for the result to be right or the recursion shallow: cpu-place keeps them, and cpu-nest takes no
 * decision by which one is computed too late. */
#include <string.h>

#include "cpu/nest.h"
#include "lang/ir/operands.h"

/* The depth of a virtual value is that of the recursion here and of live values in the code, so it is limited. */
static void find_deep(Nest *n, TileBlock *block, NestFound found) {
    for (TileOp *op = block->first; op; op = op->next) {
        uint32_t depth = 0;
        for (unsigned i = 0; i < op->operand_count; i++) {
            const NestInfo *info = nest_info(n, tile_op_operand(op, i));
            if (!info->statement && info->depth > depth) depth = info->depth;
        }
        if (op->result_count == 1 && tile_type_is_tile(op->results[0].type)) {
            NestInfo *info = nest_info(n, &op->results[0]);
            info->depth = depth + 1;
            if (depth + 1 >= NEST_DEPTH && !info->statement && !info->slot) found(n, &op->results[0], NULL);
        }
        for (unsigned i = 0; nest_has_blocks(op) && i < op->region_count; i++) find_deep(n, &op->regions[i], found);
    }
}

void nest_find_deep(Nest *n, NestFound found) { find_deep(n, n->body, found); }

/* Does the load read, at each point, only the element that the store writes there? */
static bool same_access(const TileOp *load, const TileOp *store) {
    const TileAttribute *a = tile_op_get(load, TILE_ATTRIBUTE_ACCESS), *b = tile_op_get(store, TILE_ATTRIBUTE_ACCESS);
    if (a->count != b->count || memcmp(a->integers, b->integers, a->count * sizeof *a->integers) != 0) return false;
    TileAccessIndex dimensions[TILE_MAX_TENSOR_RANK], stored[TILE_MAX_TENSOR_RANK];
    unsigned count = tile_access_read(load, dimensions);
    tile_access_read(store, stored);
    for (unsigned d = 0; d < count; d++)
        if (dimensions[d].kind == TILE_ACCESS_GATHER || dimensions[d].first != stored[d].first ||
            dimensions[d].step != stored[d].step)
            return false;
    return true;
}

/* A store may read the element that it overwrites at the same point, unless points alias: gathered indices may be
 * equal, and all loads must precede the first store. */
static bool reads_what_it_writes(Nest *n, const NestStatement *s, const NestLeaf *leaf) {
    if (s->kind != NEST_STORE && s->kind != NEST_ATOMIC) return false;
    const TileOp *load = leaf->value->op;
    const TileValue *tensor = tile_op_operand(load, 0), *target = tile_op_operand(s->op, 0);
    if (!nest_tensors_overlap(n, tensor, target)) return false;
    return s->kind == NEST_ATOMIC || tensor != target || !same_access(load, s->op) ||
           !nest_map_is_identity(s, &leaf->map, leaf->value->type->rank);
}

static void find_clobbered_loads(Nest *n, NestFound found) {
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        for (size_t l = 0; l < s->leaves.count; l++) {
            TileValue *value = s->leaves.items[l].value;
            if (!tile_value_def(value, TILE_OP_LOAD_TILE) || nest_info(n, value)->statement) continue;
            if (s->value == value) continue;
            if (!nest_is_clobbered(n, value, s->op) && !reads_what_it_writes(n, s, &s->leaves.items[l])) continue;
            found(n, value, "a store in between may change what it reads");
        }
    }
}

/* Loop-carried tiles are overwritten at the end of a loop's body, shape by shape: a value that reads one of them at
 * another point or in another nest than the overwriting one is computed before. */
static void find_crossing_copies(Nest *n, NestFound found) {
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        if (s->kind != NEST_COPY || nest_has_blocks(s->op)) continue;
        for (unsigned c = 0; c < s->copy_count; c++) {
            TileValue *value = s->copies[c].value;
            if (!nest_copy_crosses(n, s, c) || nest_info(n, value)->statement || !value->op) continue;
            found(n, value, "it reads elements of a loop-carried tile that may be overwritten before");
        }
    }
}

void nest_find_overwritten(Nest *n, NestFound found) {
    find_clobbered_loads(n, found);
    find_crossing_copies(n, found);
}
