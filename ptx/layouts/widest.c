/* Which tile decides the layout of a function, and how many neighbours a thread has of it. */
#include "ptx/layouts/widest.h"

#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/layouts/singles.h"

typedef struct Widest {
    int64_t lanes; /* of the largest tile */
    unsigned bytes;
    bool loads;
} Widest;

/* Does the update add to elements that follow one another along the tile's last axis, so that a thread's neighbours are one instruction? */
static bool updates_rows(const TileOp *op, const TileType *tile) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned last = tile_access_read(op, indices) - 1;
    return indices[last].kind == TILE_ACCESS_RANGE && indices[last].axis + 1 == tile->rank;
}

static void look_for_widest(TileOp *op, void *state) {
    Widest *widest = state;
    const TileValue *tile = tile_accessed_tile(op);
    bool updates = op->id == TILE_OP_ATOMIC_TILE && tile && updates_rows(op, tile->type);
    if (op->id != TILE_OP_STORE_TILE && !updates && !(widest->loads && op->id == TILE_OP_LOAD_TILE)) return;
    if (!tile || tile_type_lanes(tile->type) < widest->lanes || gpu_gathers_by_data(op)) return;
    unsigned bytes = tile_scalar_bytes(tile->type->scalar);
    if (bytes > widest->bytes) widest->bytes = bytes;
}

static void look_for_scan(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_SCAN; }

static void look_for_update(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_ATOMIC_TILE; }

/* The bytes of the widest element that is stored, or updated in rows, of tiles as large as the largest one: a thread that has more of them
 * than a vector would store several, each far from those of other lanes, and write a part of as many sectors. Of those that are loaded
 * too, where no order of sums follows: the first cache has the rest of their sectors, but is asked for each of them as often; but of those
 * that lie where data say, whose neighbours lie anywhere. Not beside updates, which wait for others (measured: sums of segments of bf16
 * took 1.1 times as long), nor of scans, whose threads have fewer steps between them the more neighbours each has (running sums of f32
 * beside a mask took 1.3 to 1.8 times as long). */
unsigned gpu_widest_bytes(TileFunc *func, const GpuSurvey *survey) {
    bool updates = false, scans = false;
    tile_block_walk(&func->body, look_for_scan, &scans);
    if (!survey->largest || scans) return survey->least_bytes;
    tile_block_walk(&func->body, look_for_update, &updates);
    Widest widest = {tile_type_lanes(survey->largest), survey->least_bytes, !survey->combines && !survey->draws && !updates};
    if (!survey->transposes) tile_block_walk(&func->body, look_for_widest, &widest);
    return widest.bytes;
}

static void look_for_access(TileOp *op, void *state) {
    Widest *widest = state;
    const TileValue *tile = tile_accessed_tile(op);
    widest->loads |= tile && tile_type_lanes(tile->type) >= widest->lanes;
}

/* A largest tile that is computed only, of smaller ones, has the layout that gpu-propagate gives such a tile, and smaller ones follow. */
unsigned gpu_log_vector_of_computed(TileFunc *func, const TileType *largest) {
    Widest widest = {.lanes = tile_type_lanes(largest)};
    tile_block_walk(&func->body, look_for_access, &widest);
    return gpu_floor_log2(GPU_ACCESS_BYTES / (widest.loads ? 1 : tile_scalar_bytes(largest->scalar)));
}

typedef struct Together {
    const TileType *tile;
    bool found;
} Together;

static void look_for_together(TileOp *op, void *state) {
    Together *together = state;
    bool cuts = op->id == TILE_OP_SLICE, joins = op->id == TILE_OP_CAT;
    if ((!cuts && !joins) || !tile_op_cuts_registers(op)) return;
    const TileType *longer = cuts ? tile_op_operand(op, 0)->type : op->results[0].type;
    bool last = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 == longer->rank;
    together->found |= last && tile_type_same_shape(longer, together->tile);
}

unsigned gpu_log_together(TileFunc *func, const TileType *tile) {
    enum { MOST_TOGETHER = 16 };
    Together together = {.tile = tile};
    int64_t extent = tile->extent[tile->rank - 1];
    if (tile->rank > 1 && extent <= MOST_TOGETHER && !(extent & (extent - 1))) tile_block_walk(&func->body, look_for_together, &together);
    return together.found ? gpu_floor_log2(extent) : 0;
}

/* The tile whose rows are what the reshape puts together of the last two axes. */
static const TileType *joined_rows(const TileOp *cat) {
    const TileType *pairs = cat->results[0].type;
    const TileOp *user = tile_value_has_one_use(&cat->results[0]) ? cat->results[0].first_use->user : NULL;
    if (!user || user->id != TILE_OP_RESHAPE || (unsigned)tile_op_integer(cat, TILE_ATTRIBUTE_AXIS, 0) + 1 != pairs->rank) return NULL;
    const TileType *rows = user->results[0].type;
    bool joined = tile_type_is_tile(rows) && rows->rank + 1 == pairs->rank;
    for (unsigned a = 0; joined && a + 1 < rows->rank; a++) joined = rows->extent[a] == pairs->extent[a];
    return joined ? rows : NULL;
}

static const TileType *joined_shape(const TileValue *value, const TileType **pairs, unsigned steps) {
    const TileType *found = NULL;
    for (const TileUse *use = value->first_use; steps && !found && use; use = use->next) {
        const TileOp *user = use->user;
        bool shape = user->id == TILE_OP_RESHAPE || user->id == TILE_OP_CONVERT_LAYOUT;
        bool passes = shape || tile_op_info((TileOpId)user->id)->class == TILE_CLASS_ELEMENTWISE;
        if (user->id == TILE_OP_CAT) *pairs = user->results[0].type, found = joined_rows(user);
        if (passes && user->result_count == 1) found = joined_shape(&user->results[0], pairs, steps - 1);
    }
    return found;
}

const TileType *gpu_joined_shape(const TileValue *value, const TileType **pairs) {
    enum { MOST_STEPS = 6 };
    const TileType *type = value->type, *found = NULL;
    if (tile_type_is_tile(type) && tile_scalar_bytes(type->scalar) == 1) found = joined_shape(value, pairs, MOST_STEPS);
    bool same = found && type->rank == found->rank && type->extent[type->rank - 1] == (*pairs)->extent[type->rank - 1];
    for (unsigned a = 0; same && a + 1 < type->rank; a++) same = type->extent[a] == found->extent[a];
    return same ? found : NULL;
}

typedef struct Moved {
    int64_t lanes;
    const TileType *joined, *stored;
} Moved;

static void look_for_moved(TileOp *op, void *state) {
    Moved *moved = state;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tile = tile_accessed_tile(op);
    const TileType *pairs;
    if (!tile) return;
    const TileType *joined = op->id == TILE_OP_LOAD_TILE ? gpu_joined_shape(&op->results[0], &pairs) : NULL;
    if (joined) moved->joined = joined;
    unsigned last = tile_access_read(op, indices) - 1;
    bool in_rows = indices[last].kind == TILE_ACCESS_RANGE && indices[last].axis + 1 == tile->type->rank;
    if (op->id == TILE_OP_STORE_TILE && in_rows && tile_type_lanes(tile->type) >= moved->lanes) moved->stored = tile->type;
}

const TileType *gpu_moved_shape(TileFunc *func, const GpuSurvey *survey) {
    Moved moved = {tile_type_lanes(survey->largest), NULL, NULL};
    if (survey->combines || survey->draws || survey->transposes) return survey->largest;
    tile_block_walk(&func->body, look_for_moved, &moved);
    bool joins = moved.joined && moved.stored && tile_type_same_shape(moved.joined, moved.stored);
    return joins ? moved.stored : survey->largest;
}
