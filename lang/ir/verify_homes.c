/* Where tiles live, as passes for CPUs decide it: `home`, `buffers`, `in_place`, `trimmed`, `block`
 * with `points` and `runs`, `nest` and `shared`. */
#include "lang/ir/verify.h"

#include "lang/ir/operands.h"

static bool is_many(const TileType *type) { return tile_type_is_tile(type) && tile_type_lanes(type) > 1; }

static const char *check_home(const TileOp *op, int64_t home) {
    bool control = op->region_count && !tile_op_combiner(op);
    if (op->result_count != 1 || control || (!tile_type_is_tile(op->results[0].type) && op->id != TILE_OP_LOAD_TILE))
        return "has a home, but not one tile or loaded element as its result";
    if (home == TILE_HOME_VIEW && op->id != TILE_OP_LOAD_TILE) return "is a view, which only a load is";
    bool always = op->id == TILE_OP_ATOMIC_TILE || tile_op_info((TileOpId)op->id)->class == TILE_CLASS_REDUCE;
    if (always && (home == TILE_HOME_RECOMPUTED || home == TILE_HOME_VIEW)) return "cannot be computed at each of its readers";
    return NULL;
}

/* A number for each result; a tile whose home is a buffer has one of its own. */
static const char *check_shared(const TileOp *op, const TileAttribute *home, const TileAttribute *shared) {
    if (home && (home->integer == TILE_HOME_BUFFER) != (shared != NULL)) return "shared stands beside home = buffer, and only there";
    if (!shared) return NULL;
    if (shared->count != op->result_count || (!home && !tile_op_combiner(op))) return "shared has a number for each result";
    for (unsigned i = 0; i < shared->count; i++)
        if (shared->integers[i] < (home ? 0 : -1) || shared->integers[i] > TILE_MAX_TILE_RANK)
            return "shared is no number of loops";
    return NULL;
}

/* Loops are numbered; -1 stands between two statements. */
static const char *check_nest(const TileAttribute *nest) {
    for (unsigned i = 0; i < nest->count; i++)
        if (nest->integers[i] < -1) return "nest has numbers of loops, and -1 between statements";
    return NULL;
}

static const char *check_buffers(const TileOp *op, const TileAttribute *buffers) {
    if (buffers->count != op->result_count) return "buffers has a number for each result";
    for (unsigned i = 0; i < buffers->count; i++) {
        bool needed = is_many(op->results[i].type) || op->id == TILE_OP_DOT;
        if ((buffers->integers[i] >= 0) != needed || buffers->integers[i] < -1)
            return needed ? "a tile of several elements has no buffer" : "what has one element is carried in a register";
    }
    return NULL;
}

static bool fills_axis(const TileOp *fill, unsigned axis) {
    const TileAttribute *axes = fill ? tile_op_get(fill, TILE_ATTRIBUTE_AXES) : NULL;
    for (unsigned i = 0; axes && i < axes->count; i++)
        if (axes->integers[i] == axis) return true;
    return false;
}

static const char *check_product(const TileOp *op) {
    const TileAttribute *in_place = tile_op_get(op, TILE_ATTRIBUTE_IN_PLACE);
    bool trimmed = tile_op_integer(op, TILE_ATTRIBUTE_TRIMMED, 0) != 0;
    unsigned rank = op->results[0].type->rank;
    if (in_place && in_place->count != 2) return "in_place has a number for a and one for b";
    for (unsigned i = 0; i < 2; i++) {
        const TileValue *value = tile_op_operand(op, i);
        const TileOp *fill = tile_value_def(value, TILE_OP_FILL);
        if (trimmed && !fills_axis(fill, i ? rank - 2 : rank - 1)) return "is trimmed, but does not fill both operands along k";
        if (!in_place || in_place->integers[i] == 0) continue;
        if (in_place->integers[i] != 1) return "in_place is neither 0 nor 1";
        if (trimmed && tile_op_get(fill, TILE_ATTRIBUTE_AXES)->count == 1) value = tile_op_operand(fill, 0);
        while (tile_value_def(value, TILE_OP_PERMUTE)) value = tile_op_operand(value->op, 0);
        if (!tile_value_def(value, TILE_OP_LOAD_TILE)) return "an operand that is read in place is no load";
    }
    return NULL;
}

/* ---- blocks of points ---- */

static bool is_power(int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

/* The set of bits that the list names; `bits`: how many there are. */
static bool read_set(const TileAttribute *list, unsigned bits, uint32_t *set) {
    *set = 0;
    for (unsigned i = 0; i < list->count; i++) {
        int64_t bit = list->integers[i];
        if (bit < 0 || bit >= bits || (*set >> bit & 1u)) return false;
        *set |= 1u << bit;
    }
    return true;
}

/* Every bit of the axes from the first one on that has a fixed bit is fixed, or belongs to the run that begins at the next
 * lower place where one has to begin. */
static const char *check_runs(const TileType *type, const TileAttribute *points, const TileAttribute *runs) {
    unsigned bits = 0;
    for (unsigned i = 0; i < type->rank; i++) {
        if (!is_power(type->extent[i])) return "computes points together, but an extent is no power of two";
        bits += (unsigned)__builtin_ctzll((uint64_t)type->extent[i]);
    }
    uint32_t fixed, begun, low = 0, own = 0;
    if (bits > TILE_MAX_POINT_BITS || !read_set(points, bits, &fixed) || !read_set(runs, bits, &begun) || (fixed & begun))
        return "points and runs name different bits of a position";
    if (!fixed) return "computes no points together";
    for (unsigned axis = type->rank; axis-- > 0 && fixed >> low;) {
        unsigned end = low + (unsigned)__builtin_ctzll((uint64_t)type->extent[axis]);
        bool open = false;
        for (; low < end; low++) {
            open = !(fixed >> low & 1u) && (open || (begun >> low & 1u));
            own |= (begun >> low & 1u) << low;
            if (!open && !(fixed >> low & 1u)) return "a bit of a position is neither fixed nor in a run";
        }
    }
    return own == begun ? NULL : "a run is outside of the axes with fixed bits";
}

static const char *check_block(const TileOp *op, const TileAttribute *block) {
    const TileAttribute *points = tile_op_get(op, TILE_ATTRIBUTE_POINTS), *runs = tile_op_get(op, TILE_ATTRIBUTE_RUNS);
    int64_t home = tile_op_integer(op, TILE_ATTRIBUTE_HOME, TILE_HOME_RECOMPUTED);
    bool kept = home != TILE_HOME_RECOMPUTED && home != TILE_HOME_VIEW;
    if (!block && !points && !runs) return NULL;
    if (!block || !points || !runs || block->integer < 0) return "a number as its block, points and runs come together";
    if (op->id != TILE_OP_STORE_TILE && !kept) return "is in a block of points, but neither a store nor kept";
    return check_runs(op->id == TILE_OP_STORE_TILE ? tile_op_operand(op, 1)->type : op->results[0].type, points, runs);
}

const char *tile_home_misuse(const TileOp *op) {
    const TileAttribute *home = tile_op_get(op, TILE_ATTRIBUTE_HOME), *buffers = tile_op_get(op, TILE_ATTRIBUTE_BUFFERS);
    const char *error = home ? check_home(op, home->integer) : NULL;
    const TileAttribute *nest = tile_op_get(op, TILE_ATTRIBUTE_NEST);
    if (!error) error = check_shared(op, home, tile_op_get(op, TILE_ATTRIBUTE_SHARED));
    if (!error && nest) error = check_nest(nest);
    if (!error && buffers) error = check_buffers(op, buffers);
    if (!error && op->id == TILE_OP_DOT) error = check_product(op);
    return error ? error : check_block(op, tile_op_get(op, TILE_ATTRIBUTE_BLOCK));
}
