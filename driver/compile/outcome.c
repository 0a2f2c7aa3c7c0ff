/* What a module's phases have become, as far as the choice of a schedule asks. */
#include "driver/compile/outcome.h"

#include "lang/ir/operands.h"

unsigned tile_outcome_phases(const TileModule *module) {
    unsigned count = 0;
    for (const TileFunc *func = module ? module->first : NULL; func; func = func->next)
        count += func->kind == TILE_FUNC_PHASE;
    return count;
}

bool tile_outcome_stays(const TileModule *module) {
    for (const TileFunc *func = module ? module->first : NULL; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE && func->resident) return true;
    return false;
}

bool tile_outcome_takes_turns(const TileModule *module, uint32_t warps) {
    for (const TileFunc *func = module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE && func->turns > 1 && func->threads == warps * TILE_WARP_THREADS) return true;
    return false;
}

bool tile_outcome_has_clusters(const TileModule *module) {
    for (const TileFunc *func = module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE && func->cluster > 1) return true;
    return false;
}

uint32_t tile_outcome_cluster_threads(const TileModule *module) {
    uint32_t most = 0;
    for (const TileFunc *func = module ? module->first : NULL; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE && func->cluster > 1 && func->cluster * func->threads > most) most = func->cluster * func->threads;
    return most;
}

bool tile_outcome_is_joined(const TileModule *module) {
    for (const TileFunc *func = module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_KERNEL && (func->joined_rows || func->joined_lanes)) return true;
    return false;
}

typedef struct Loops {
    bool any, multiplies;
} Loops;

static void find_loop(TileOp *op, void *state) {
    Loops *found = state;
    found->multiplies |= op->id == TILE_OP_DOT;
    found->any |= op->id == TILE_OP_FOR && !tile_loop_is_of_programs(op);
}

bool tile_outcome_has_loops(const TileModule *module) {
    bool has = false;
    for (TileFunc *func = module ? module->first : NULL; func; func = func->next) {
        Loops found = {false, false};
        if (func->kind == TILE_FUNC_PHASE) tile_block_walk(&func->body, find_loop, &found);
        has |= found.any && !found.multiplies;
    }
    return has;
}

static void count_tile(TileOp *op, void *count) { *(unsigned *)count += op->id == TILE_OP_LOAD_TILE && tile_type_is_tile(op->results[0].type); }

bool tile_outcome_is_light(const TileModule *module) {
    enum { FEW = 2 };
    bool light = true;
    for (TileFunc *func = module ? module->first : NULL; func; func = func->next) {
        unsigned count = 0;
        if (func->kind == TILE_FUNC_PHASE) tile_block_walk(&func->body, count_tile, &count);
        light &= count <= FEW;
    }
    return light;
}

static void find_product(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_DOT; }

bool tile_outcome_leaves_warps(const TileModule *module) {
    bool given = false;
    for (TileFunc *func = module ? module->first : NULL; func; func = func->next) {
        if (func->kind == TILE_FUNC_KERNEL) given |= func->warps != 0;
        if (func->kind == TILE_FUNC_PHASE) tile_block_walk(&func->body, find_product, &given);
    }
    return module && !given;
}

uint32_t tile_outcome_warps(const TileModule *module) {
    uint32_t threads = TILE_WARP_THREADS;
    for (const TileFunc *func = module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE && func->threads > threads) threads = func->threads;
    return threads / TILE_WARP_THREADS;
}

/* The next phase from here on, or NULL. */
static const TileFunc *phase_from(const TileFunc *func) {
    while (func && func->kind != TILE_FUNC_PHASE) func = func->next;
    return func;
}

bool tile_outcome_threads_differ(const TileModule *a, const TileModule *b) {
    const TileFunc *x = phase_from(a->first), *y = phase_from(b->first);
    for (; x && y; x = phase_from(x->next), y = phase_from(y->next))
        if (x->threads != y->threads) return true;
    return x || y;
}
