/* Accesses that are moved element by element though the tile's neighbours are neighbours in memory, or nearly so: gathers whose
 * index is computed from places, as in x[(n.idx + 1) % N] and x[clamp(n.idx - 1, 0, N - 1)], and ranges that are shifted by
 * less than a vector. A thread that has several neighbours then moves each of them far from those of the other lanes, so that
 * each instruction touches as many lines of memory as a vector of them would, and there are as many instructions as elements.
 * Where the lanes have neighbouring elements, an instruction touches one line. */
#include "ptx/layouts/singles.h"

#include "lang/ir/build.h"
#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"
#include "ptx/layouts/beside.h"
#include "ptx/layouts/blocked.h"

typedef struct Count {
    TileIndices *indices;
    int64_t singles, vectors; /* elements that are moved so */
} Count;

/* How an index changes along the last axis of its tile. */
typedef enum Along {
    SAME,  /* it does not */
    PLACES, /* with the place, by arithmetic alone */
    DATA,  /* with what was loaded, so that nothing is known of neighbours */
} Along;

static Along along_last(const TileValue *value, unsigned *left) {
    const TileOp *op = value->op;
    const TileType *type = value->type;
    if (!tile_type_is_tile(type) || type->extent[type->rank - 1] == 1) return SAME;
    if (!op || !*left) return DATA;
    --*left;
    if (op->id == TILE_OP_CONST || op->id == TILE_OP_SPLAT) return SAME;
    if (op->id == TILE_OP_IOTA)
        return (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 == type->rank ? PLACES : SAME;
    if (op->id == TILE_OP_RESHAPE) {
        const TileType *from = tile_op_operand(op, 0)->type;
        /* the last axis is kept, or goes on with the axes in front of it */
        bool kept = tile_type_is_tile(from) && from->extent[from->rank - 1] > 1 && type->extent[type->rank - 1] % from->extent[from->rank - 1] == 0;
        return kept ? along_last(tile_op_operand(op, 0), left) : DATA;
    }
    bool maps = tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_BROADCAST ||
                op->id == TILE_OP_FILL || op->id == TILE_OP_CONVERT_LAYOUT;
    Along along = maps ? SAME : DATA;
    for (unsigned i = 0; maps && i < op->operand_count && along != DATA; i++) {
        Along other = along_last(tile_op_operand(op, i), left);
        if (other > along) along = other;
    }
    return along;
}

bool gpu_gathers_by_data(const TileOp *op) {
    enum { MOST_VALUES = 64 };
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned left = MOST_VALUES;
    if (!tile_accessed_tile(op)) return false;
    const TileAccessIndex *last = &indices[tile_access_read(op, indices) - 1];
    return last->kind == TILE_ACCESS_GATHER && along_last(last->first, &left) == DATA;
}

/* A power of two that divides the number, at most `most`. */
static int64_t divisor(const TileValue *value, int64_t most, unsigned *left) {
    const TileOp *op = value->op;
    int64_t number;
    if (tile_value_integer(value, &number)) return number & (most - 1) ? number & -number : most;
    const TileOp *loop = value->block ? value->block->op : NULL;
    if (!*left) return 1;
    --*left;
    if (loop && loop->id == TILE_OP_FOR && value->index == 0) {
        int64_t lo = divisor(tile_op_named(loop, TILE_OPERAND_LO), most, left),
                step = divisor(tile_op_named(loop, TILE_OPERAND_STEP), most, left);
        return lo < step ? lo : step;
    }
    if (!op || op->operand_count < 2) return 1;
    if (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB && op->id != TILE_OP_MUL) return 1;
    int64_t a = divisor(tile_op_operand(op, 0), most, left), b = divisor(tile_op_operand(op, 1), most, left);
    if (op->id == TILE_OP_MUL) return a * b < most ? a * b : most;
    return a < b ? a : b;
}

/* Does it begin a constant behind vectors, and another one of its row beside it? Then both are parts of the same vectors. */
static bool shares_vectors(const Count *count, const TileOp *load, const TileValue *first, int64_t vector) {
    enum { MOST_DISTANCE = 16 };
    int64_t behind;
    return load->id == TILE_OP_LOAD_TILE && gpu_begins_behind(count->indices, first, vector, &behind) && gpu_has_beside(count->indices, load, MOST_DISTANCE);
}

static void count_access(Count *count, const TileOp *op, unsigned times) {
    enum { MOST_VALUES = 64 };
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tile = tile_accessed_tile(op);
    if (!tile || op->id == TILE_OP_ATOMIC_TILE || tile_op_get(op, TILE_ATTRIBUTE_FLAT)) return;
    const TileType *type = tile->type;
    unsigned rank = tile_access_read(op, indices), left = MOST_VALUES;
    const TileAccessIndex *last = &indices[rank - 1];
    int64_t vector = GPU_ACCESS_BYTES / tile_scalar_bytes(type->scalar), step, weight = times * tile_type_lanes(type);
    if (last->axis + 1 != (int)type->rank || type->extent[type->rank - 1] == 1) return;
    if (last->kind == TILE_ACCESS_GATHER) {
        if (along_last(last->first, &left) == PLACES) count->singles += weight;
    } else if (last->kind == TILE_ACCESS_RANGE && tile_value_integer(last->step, &step) && step == 1) {
        bool aligned = divisor(last->first, vector, &left) >= vector;
        *(aligned || shares_vectors(count, op, last->first, vector) ? &count->vectors : &count->singles) += weight;
    }
}

/* An access in a loop of the program counts as several. */
static void count_block(Count *count, const TileBlock *block, unsigned weight) {
    enum { ITERATIONS = 4 };
    for (const TileOp *op = block->first; op; op = op->next) {
        bool repeats = op->id == TILE_OP_WHILE || (op->id == TILE_OP_FOR && !tile_loop_is_of_programs(op));
        if (op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE) count_access(count, op, weight);
        for (unsigned i = 0; i < op->region_count; i++)
            count_block(count, &op->regions[i], repeats && weight == 1 ? ITERATIONS : weight);
    }
}

bool gpu_moves_singles(TileIndices *indices, const TileBlock *body) {
    Count count = {.indices = indices};
    count_block(&count, body, 1);
    return count.singles > count.vectors;
}

/* What the value becomes in its only use, behind the branches that yield it. */
static const TileOp *only_user(const TileValue *value) {
    while (tile_value_has_one_use(value)) {
        const TileUse *use = value->first_use;
        const TileOp *around = use->user->id == TILE_OP_YIELD ? use->user->block->op : NULL;
        if (!around) return use->user;
        if (around->id != TILE_OP_IF) return NULL;
        value = &around->results[use->index];
    }
    return NULL;
}

const TileType *gpu_gathered_shape(const TileOp *access) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tile = tile_accessed_tile(access);
    bool gathers = false, loads = access->id == TILE_OP_LOAD_TILE;
    if (!tile || tile->type->rank != 1) return NULL;
    for (unsigned d = tile_access_read(access, indices); d-- > 0;) gathers |= indices[d].kind == TILE_ACCESS_GATHER;
    if (!gathers) return NULL;
    const TileOp *reshape = loads ? only_user(tile) : tile_value_def(tile, TILE_OP_RESHAPE);
    if (!reshape || reshape->id != TILE_OP_RESHAPE) return NULL;
    const TileType *type = loads ? reshape->results[0].type : tile_op_operand(reshape, 0)->type;
    return tile_type_is_tile(type) ? type : NULL;
}

/* Is a tile stored along another dimension than the last, as one colour of each pixel, or in steps? Neighbours of a thread then lie
 * apart, and a store that moves one of them in each lane writes fewer sectors the nearer the lanes' are. */
static void look_for_strided_store(TileOp *op, void *strided) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    int64_t step;
    if (op->id != TILE_OP_STORE_TILE || !tile_accessed_tile(op)) return;
    unsigned rank = tile_access_read(op, indices);
    const TileAccessIndex *last = &indices[rank - 1];
    bool across = rank > 1 && last->kind == TILE_ACCESS_INDEX && indices[rank - 2].kind == TILE_ACCESS_RANGE;
    bool in_steps = last->kind == TILE_ACCESS_RANGE && tile_value_integer(last->step, &step) && step != 1;
    *(bool *)strided |= across || in_steps;
}

bool gpu_stores_in_steps(const TileBlock *body) {
    bool strided = false;
    tile_block_walk((TileBlock *)body, look_for_strided_store, &strided);
    return strided;
}
