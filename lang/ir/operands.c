#include "lang/ir/operands.h"

#include "lang/ir/tensor_map.h"

enum { MOST_NAMES = 14 };

static const uint8_t names[TILE_OP_COUNT][MOST_NAMES + 1] = {
#define NAME(id) TILE_OPERAND_##id,
#define OPERANDS(op, names) [TILE_OP_##op] = {names TILE_OPERAND_NONE},
#include "lang/ir/operands.def"
};

static const char *const words[] = {
    "",
#define OPERAND(id, word) word,
#include "lang/ir/operands.def"
};

const uint8_t *tile_operand_names(TileOpId id) { return names[id][0] ? names[id] : NULL; }
const char *tile_operand_word(TileOperand name) { return words[name]; }

/* ---- counts ---- */

static unsigned index_count(const TileOp *op) {
    const TileAttribute *kinds = tile_op_get(op, TILE_ATTRIBUTE_ACCESS);
    unsigned count = 0;
    for (unsigned d = 0; kinds && d < kinds->count; d++) count += tile_access_operands(kinds->integers[d]);
    return count;
}

static unsigned bound_count(const TileOp *op) {
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    return axes ? 2 * axes->count : 0;
}

static bool updates_by(const TileOp *op, TileName update) {
    return tile_op_integer(op, TILE_ATTRIBUTE_UPDATE, 0) == update;
}

/* One for each axis of the map's tensor; what stands behind them are offsets. */
static unsigned coordinate_count(const TileOp *op, unsigned rest) {
    const TileTensorMap *map = NULL;
    for (unsigned i = 0; i < op->operand_count && !map; i++) map = tile_value_map(tile_op_operand(op, i));
    return map && map->rank < rest ? map->rank : rest;
}

/* The number of operands of this name, if it is preceded by `before` operands. */
static unsigned count_of(const TileOp *op, TileOperand name, unsigned before) {
    unsigned rest = op->operand_count > before ? op->operand_count - before : 0;
    switch (name) {
    case TILE_OPERAND_CARRIED:
    case TILE_OPERAND_VALUES:
    case TILE_OPERAND_WINDOW:
    case TILE_OPERAND_SLOT: return rest;
    case TILE_OPERAND_COORDINATES: return coordinate_count(op, rest);
    case TILE_OPERAND_EXTENTS: return op->id == TILE_OP_PROGRAM_ID ? op->result_count : rest;
    case TILE_OPERAND_FIRST:
    case TILE_OPERAND_LAST: return tile_op_get(op, TILE_ATTRIBUTE_PROGRAMS) != NULL;
    case TILE_OPERAND_BLOCKS: return tile_op_get(op, TILE_ATTRIBUTE_PROGRAMS) && op->operand_count > 3u + op->result_count;
    case TILE_OPERAND_BOUNDS: return bound_count(op);
    case TILE_OPERAND_INDICES: return index_count(op);
    case TILE_OPERAND_ELEMENTS: return op->result_count;
    case TILE_OPERAND_INIT: return tile_op_has_part(op, TILE_PARTS_INIT) ? op->result_count : 0;
    case TILE_OPERAND_MASK: return tile_op_has_part(op, TILE_PARTS_MASK);
    case TILE_OPERAND_FILLING: return op->id == TILE_OP_FILL || tile_op_has_part(op, TILE_PARTS_FILL);
    case TILE_OPERAND_EXPECTED: return updates_by(op, TILE_UPDATE_CAS);
    case TILE_OPERAND_VALUE: return op->id != TILE_OP_ATOMIC || !updates_by(op, TILE_UPDATE_READ);
    default: return 1;
    }
}

/* ---- the decoder ---- */

unsigned tile_op_operands(const TileOp *op, TileOperand name, unsigned *count) {
    unsigned before = 0;
    const uint8_t *row = names[op->id];
    for (unsigned i = 0; row[i]; i++) {
        *count = count_of(op, (TileOperand)row[i], before);
        if (row[i] == name) return before;
        before += *count;
    }
    *count = 0;
    return before;
}

TileValue *tile_op_named(const TileOp *op, TileOperand name) {
    unsigned count, first = tile_op_operands(op, name, &count);
    return count ? tile_op_operand(op, first) : NULL;
}

TileValue *tile_op_named_at(const TileOp *op, TileOperand name, unsigned i) {
    unsigned count, first = tile_op_operands(op, name, &count);
    return tile_op_operand(op, first + i);
}

bool tile_operands_fit(const TileOp *op) {
    const uint8_t *row = tile_operand_names((TileOpId)op->id);
    unsigned before = 0;
    for (unsigned i = 0; row && row[i]; i++) before += count_of(op, (TileOperand)row[i], before);
    return !row || before == op->operand_count;
}

/* ---- accesses ---- */

unsigned tile_access_read(const TileOp *op, TileAccessIndex indices[TILE_MAX_TENSOR_RANK]) {
    const TileAttribute *kinds = tile_op_get(op, TILE_ATTRIBUTE_ACCESS);
    unsigned count, operand = tile_op_operands(op, TILE_OPERAND_INDICES, &count);
    int next = 0, gathered = -1;
    for (unsigned d = 0; d < kinds->count; d++) {
        TileAccessIndex *index = &indices[d];
        *index = (TileAccessIndex){(TileName)kinds->integers[d], operand, -1, tile_op_operand(op, operand), NULL, NULL, NULL};
        if (index->kind == TILE_ACCESS_GATHER || index->kind == TILE_ACCESS_POSITION) {
            if (gathered < 0) gathered = next++;
            index->axis = gathered;
        }
        if (index->kind == TILE_ACCESS_RANGE) index->axis = next++;
        if (index->kind == TILE_ACCESS_RANGE || index->kind == TILE_ACCESS_POSITION) {
            index->step = tile_op_operand(op, operand + 1);
            index->lo = tile_op_operand(op, operand + 2);
            index->hi = tile_op_operand(op, operand + 3);
        }
        operand += tile_access_operands(index->kind);
    }
    return kinds->count;
}

bool tile_access_bounds(const TileOp *op, unsigned axis, TileValue **lo, TileValue **hi) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].axis != (int)axis || indices[d].kind != TILE_ACCESS_RANGE) continue;
        *lo = indices[d].lo;
        *hi = indices[d].hi;
        return true;
    }
    return false;
}

bool tile_loop_is_of_programs(const TileOp *op) {
    return op->id == TILE_OP_FOR && (tile_op_integer(op, TILE_ATTRIBUTE_ONE_PROGRAM, 0) != 0 ||
                                     tile_op_integer(op, TILE_ATTRIBUTE_RESIDENT, 0) != 0);
}

bool tile_op_is_repeated(const TileOp *op) {
    for (const TileOp *loop = op->block->op; loop; loop = loop->block->op)
        if (loop->id == TILE_OP_WHILE || (loop->id == TILE_OP_FOR && !tile_loop_is_of_programs(loop))) return true;
    return false;
}
