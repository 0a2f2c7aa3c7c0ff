#include "removal.h"

#include <stdlib.h>
#include <string.h>

#include "lang/ir/build.h"

static bool is_candidate(const TileOp *op) {
    return op->id == TILE_OP_BARRIER || op->id == TILE_OP_CLUSTER_BARRIER || op->id == TILE_OP_WARP_BARRIER || op->id == TILE_OP_COPY_WAIT || op->id == TILE_OP_COPY_COMMIT ||
           op->id == TILE_OP_MBARRIER_ARRIVE || op->id == TILE_OP_MBARRIER_EXPECT || op->id == TILE_OP_MBARRIER_WAIT || op->id == TILE_OP_FENCE_ASYNC ||
           op->id == TILE_OP_STORE_COMMIT || op->id == TILE_OP_STORE_WAIT ||
           (tile_op_is_of_warpgroup((TileOpId)op->id) && op->id != TILE_OP_WGMMA);
}

TileOp *removal_find(TileBlock *block, unsigned *left) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (is_candidate(op) && !--*left) return op;
        for (unsigned i = 0; i < op->region_count; i++) {
            TileOp *found = removal_find(&op->regions[i], left);
            if (found) return found;
        }
    }
    return NULL;
}

void removal_erase(TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++) tile_value_replace(&op->results[i], tile_op_operand(op, i));
    tile_op_erase(op);
}

void removal_probe(TileModule *module, TileOp *op) {
    TileBuilder b = tile_builder_before(module, op);
    TileValue *condition = tile_build_bool(&b, false);
    TileAttribute text = {.key = TILE_ATTRIBUTE_TEXT, .text = REMOVAL_PROBE};
    tile_build_op(&b, TILE_OP_ASSERT, &condition, 1, &text, 1, NULL, 0);
}

static unsigned listed_count(const char *list, const char *start) {
    const char *line = strstr(list, start);
    return line ? (unsigned)strtoul(line + strlen(start), NULL, 10) : 0;
}

unsigned removals_compare(const Removals *removals, const char *list, const char *name, TileText *report, bool *good) {
    unsigned total = 0;
    for (unsigned id = 0; id < TILE_OP_COUNT; id++) {
        const char *op = tile_op_info((TileOpId)id)->mnemonic;
        unsigned listed = listed_count(list, tile_arena_format(report->arena, "\n%s %s ", name, op));
        unsigned found = removals->unnoticed[id];
        total += listed;
        if (found == listed) continue;
        *good = false;
        tile_text_format(report, "%s: %u of %s taken out without a report, where %u are listed\n", name, found, op, listed);
    }
    return total;
}
