/* Which `out` tensors a grid certainly stores whole: later grids may read them. A store covers its tensor where each dimension
 * has an index of its own that runs over it, an integer or range of the grid or of a loop, and nothing around it is a condition,
 * or may run for no iteration at all. */
#include "parser/check/covered.h"
#include "parser/check/scope.h"

void tile_cover_add(TileChecker *c, const TileOp *op, const char *name, const TileSum *extent) {
    const TileMeaning *m = &tile_scope_find(c, name)->meaning;
    TileCover cover = {.op = op, .at = m->sum, .range = m->kind == TILE_MEANING_RANGE ? m->range : NULL, .extent = extent};
    tile_list_push(c->arena, &c->covers, cover);
}

static bool is_one(const TileSum *sum) { return tile_sum_is_literal(sum, 1); }

/* A range from the first index to the last: `:`. */
static bool is_all(TileChecker *c, const TileRange *range, const TileSum *dim) {
    int64_t first;
    return !range->lanes && range->size == dim && is_one(range->step) && tile_sum_known(&c->sums, range->first, &first) &&
           first == 0;
}

static bool runs_over(const TileCover *cover, const TileAccessed *access, unsigned d) {
    if (cover->extent != access->tensor->dims[d]) return false;
    if (access->kinds[d] == TILE_ACCESS_INDEX) return cover->at && cover->at == access->indices[d];
    const TileRange *range = access->ranges[d];
    return cover->range && range->root == cover->range->root && range->first == cover->range->first && is_one(range->step);
}

/* Finds an index for each dimension, and marks it; false if a dimension has none. */
static bool mark_indices(TileChecker *c, const TileAccessed *access, bool *used) {
    for (unsigned d = 0; d < access->tensor->rank; d++) {
        const TileSum *dim = access->tensor->dims[d];
        size_t i = 0;
        if (access->kinds[d] == TILE_ACCESS_GATHER) return false;
        if (access->kinds[d] == TILE_ACCESS_RANGE && is_all(c, access->ranges[d], dim)) continue;
        if (access->kinds[d] == TILE_ACCESS_INDEX && is_one(dim)) continue;
        while (i < c->covers.count && (used[i] || !runs_over(&c->covers.items[i], access, d))) i++;
        if (i == c->covers.count) return false;
        used[i] = true;
    }
    return true;
}

/* Does the op run its region for each value of the marked names, and at least once? */
static bool runs(TileChecker *c, const TileOp *op, const bool *used) {
    bool found = false;
    for (size_t i = 0; i < c->covers.count; i++) {
        const TileCover *cover = &c->covers.items[i];
        int64_t extent;
        if (cover->op != op) continue;
        found = true;
        if (used[i]) continue;
        if (!cover->extent || !tile_sum_known(&c->sums, cover->extent, &extent) || extent < 1) return false;
    }
    return found;
}

void tile_cover_store(TileChecker *c, const TileAccessed *access) {
    if (access->tensor->access != TILE_ACCESS_OUT || c->untaken) return;
    bool *used = TILE_NEW_ARRAY(c->arena, bool, c->covers.count + 1);
    if (!mark_indices(c, access, used)) return;
    size_t around = 0, marked = 0;
    for (const TileOp *op = c->builder.block->op; op; op = op->block->op) {
        if (!runs(c, op, used)) return;
        for (size_t i = 0; i < c->covers.count; i++) around += c->covers.items[i].op == op && used[i];
        if (op == c->grid) break;
    }
    for (size_t i = 0; i < c->covers.count; i++) marked += used[i];
    if (around != marked) return; /* one of them is of a loop that has ended */
    TileWhole whole = {access->tensor, c->grid_count};
    tile_list_push(c->arena, &c->wholes, whole);
}

bool tile_cover_is_whole(const TileChecker *c, const TileTensor *tensor) {
    for (size_t i = 0; i < c->wholes.count; i++)
        if (c->wholes.items[i].tensor == tensor && c->wholes.items[i].grid < c->grid_count) return true;
    return false;
}
