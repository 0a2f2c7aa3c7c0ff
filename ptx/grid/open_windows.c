/* Windows that are opened: a loop over a window that borders clip becomes one copy of its body for each position. What a position loads that a
 * clipped window does not have is masked, and what it computes is not taken. Then neighbours have the same ops, whatever their windows are. */
#include "ptx/grid/open_windows.h"

#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/iterations.h"

enum { MOST_LEVELS = 3, MOST_CARRIED = 8, VECTOR_BYTES = 16, ENOUGH_BYTES = 4 /* measured: a warp that loads 8 bytes a thread is as fast */, MOST_WORDS = 64 /* of a thread, which all positions load */ };

typedef struct Level {
    TileOp *loop;
    int64_t most;     /* positions */
    TileValue *spare; /* how many follow the first one; below 0: there is none */
} Level;

typedef struct Window {
    TileModule *module;
    TileIndices *indices;
    TileArena *scratch;
    Level levels[MOST_LEVELS]; /* outer ones first */
    unsigned count;
    int64_t positions;
    TileMap late; /* ops that wait for what is carried */
} Window;

/* The loop in the body through which goes all that the loop carries; NULL: there is none. False: the body has other ops than what may be computed in vain. */
static bool find_inner(const TileOp *loop, TileOp **inner) {
    const TileBlock *body = &loop->regions[0];
    *inner = NULL;
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        bool load = op->id == TILE_OP_LOAD_TILE && tile_type_is_tile(op->results[0].type) && !tile_op_get(op, TILE_ATTRIBUTE_PARTS);
        if (op->id == TILE_OP_FOR && !*inner && op->result_count == loop->result_count)
            *inner = op;
        else if (op->region_count || (!load && !tile_op_is_pure(op)))
            return false;
    }
    for (unsigned i = 0; *inner && i < loop->result_count; i++)
        if (tile_op_operand(body->last, i) != &(*inner)->results[i] || tile_loop_carried(*inner, i) != body->arguments[1 + i]) return false;
    return true;
}

static bool find_levels(Window *w, TileOp *outermost) {
    w->positions = 1;
    for (TileOp *loop = outermost; loop;) {
        if (w->count == MOST_LEVELS || !loop->result_count || loop->result_count > MOST_CARRIED || loop->attribute_count) return false;
        bool bounded = tile_value_outside(tile_op_named(loop, TILE_OPERAND_LO), outermost) && tile_value_outside(tile_op_named(loop, TILE_OPERAND_HI), outermost);
        int64_t most = bounded ? tile_most_iterations(w->indices, loop, GPU_MOST_POSITIONS) : 0;
        if (!most || w->positions * most > GPU_MOST_POSITIONS) return false;
        w->levels[w->count++] = (Level){.loop = loop, .most = most};
        w->positions *= most;
        if (!find_inner(loop, &loop)) return false;
    }
    return true;
}

/* ---- the copies ---- */

static TileValue *to_tile(TileBuilder *b, TileValue *condition, const TileType *like) {
    if (!tile_type_is_tile(like)) return condition;
    return tile_build_splat(b, condition, tile_type_with_scalar(b->module->context, like, TILE_BOOL));
}

static void copy_load(TileBuilder *b, const TileOp *op, TileMap *map, TileValue *there) {
    TileValue *operands[3 + 4 * TILE_MAX_TENSOR_RANK];
    const TileType *type = op->results[0].type;
    TileAttribute attributes[8];
    int64_t mask = TILE_PARTS_MASK;
    unsigned count = op->attribute_count;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *known = tile_map_get(map, tile_op_operand(op, i));
        operands[i] = known ? known : tile_op_operand(op, i);
    }
    for (unsigned i = 0; i < count; i++) attributes[i] = op->attributes[i];
    attributes[count] = (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &mask};
    operands[op->operand_count] = to_tile(b, there, type);
    TileOp *load = tile_build_op(b, TILE_OP_LOAD_TILE, operands, op->operand_count + 1u, attributes, count + 1u, &type, 1);
    tile_map_set(map, &op->results[0], &load->results[0]);
}

/* The position's indices, and whether the window has it. */
static TileValue *begin_position(Window *w, TileBuilder *b, int64_t position, TileMap *map) {
    TileValue *there = NULL;
    tile_map_init(map, w->scratch);
    for (unsigned l = w->count; l--; position /= w->levels[l].most) {
        const Level *level = &w->levels[l];
        TileValue *k = tile_build_i64(b, position % level->most), *is = tile_build_binary(b, TILE_OP_LE, k, level->spare);
        there = there ? tile_build_binary(b, TILE_OP_AND, is, there) : is;
        tile_map_set(map, level->loop->regions[0].arguments[0], tile_build_binary(b, TILE_OP_ADD, tile_op_named(level->loop, TILE_OPERAND_LO), k));
    }
    return there;
}

static bool is_late(const Window *w, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileValue *value = tile_op_operand(op, i);
        for (unsigned l = 0; l < w->count; l++)
            if (!value->op && value->block == &w->levels[l].loop->regions[0] && value->index > 0) return true;
        if (value->op && tile_map_get(&w->late, value->op)) return true;
    }
    return false;
}

/* Those ops of all levels that wait for what is carried, or those that do not. */
static void copy_ops(Window *w, TileBuilder *b, TileMap *map, TileValue *there, bool late) {
    for (unsigned l = 0; l < w->count; l++)
        for (const TileOp *op = w->levels[l].loop->regions[0].first; op->next; op = op->next) {
            b->location = op->location;
            if (op->region_count || late != (tile_map_get(&w->late, op) != NULL)) continue;
            if (op->id == TILE_OP_LOAD_TILE) copy_load(b, op, map, there);
            else tile_builder_insert(b, tile_op_clone(w->module, op, map));
        }
}

/* What is carried from the position to the next. */
static void carry(Window *w, TileBuilder *b, TileMap *map, TileValue *there, TileValue **carried) {
    const TileOp *inner = w->levels[w->count - 1].loop;
    for (unsigned l = 0; l < w->count; l++)
        for (unsigned v = 0; v < inner->result_count; v++) tile_map_set(map, w->levels[l].loop->regions[0].arguments[1 + v], carried[v]);
    copy_ops(w, b, map, there, true);
    for (unsigned v = 0; v < inner->result_count; v++) {
        TileValue *yielded = tile_op_operand(inner->regions[0].last, v), *next = tile_map_get(map, yielded);
        next = next ? next : yielded;
        carried[v] = tile_build_ternary(b, TILE_OP_SELECT, to_tile(b, there, next->type), next, carried[v]);
    }
}

/* All loads come first, so that they are in flight together. */
static void open(Window *w) {
    TileOp *loop = w->levels[0].loop;
    TileBuilder b = tile_builder_before(w->module, loop);
    TileValue *carried[MOST_CARRIED], *there[GPU_MOST_POSITIONS];
    TileMap maps[GPU_MOST_POSITIONS];
    tile_map_init(&w->late, w->scratch);
    for (unsigned v = 0; v < loop->result_count; v++) carried[v] = tile_loop_carried(loop, v);
    for (unsigned l = 0; l < w->count; l++) {
        TileValue *range = tile_build_binary(&b, TILE_OP_SUB, tile_op_named(w->levels[l].loop, TILE_OPERAND_HI), tile_op_named(w->levels[l].loop, TILE_OPERAND_LO));
        w->levels[l].spare = tile_build_binary(&b, TILE_OP_SUB, range, tile_build_i64(&b, 1));
    }
    for (unsigned l = 0; l < w->count; l++)
        for (TileOp *op = w->levels[l].loop->regions[0].first; op->next; op = op->next)
            if (!op->region_count && is_late(w, op)) tile_map_set(&w->late, op, op);
    for (int64_t n = 0; n < w->positions; n++) there[n] = begin_position(w, &b, n, &maps[n]);
    for (int64_t n = 0; n < w->positions; n++) copy_ops(w, &b, &maps[n], there[n], false);
    for (int64_t n = 0; n < w->positions; n++) carry(w, &b, &maps[n], there[n], carried);
    for (unsigned v = 0; v < loop->result_count; v++) tile_value_replace(&loop->results[v], carried[v]);
    tile_op_erase(loop);
}

/* ---- how many neighbours ---- */

typedef struct Tiles {
    int64_t lanes, bytes; /* the most of one tile, and of one element in memory */
} Tiles;

static void look_at_op(TileOp *op, void *state) {
    Tiles *tiles = state;
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileType *type = op->results[i].type;
        if (tile_type_is_tile(type) && tile_type_lanes(type) > tiles->lanes) tiles->lanes = tile_type_lanes(type);
    }
    bool loads = op->id == TILE_OP_LOAD_TILE, stores = op->id == TILE_OP_STORE_TILE;
    if (!loads && !stores) return;
    int64_t bytes = tile_scalar_bytes(loads ? op->results[0].type->scalar : tile_op_named(op, TILE_OPERAND_VALUE)->type->scalar);
    if (bytes > tiles->bytes) tiles->bytes = bytes;
}

int64_t gpu_windows_rows(TileBlock *block, int64_t positions) {
    Tiles tiles = {.lanes = 0};
    int64_t rows = 1;
    tile_block_walk(block, look_at_op, &tiles);
    if (!tiles.lanes || !tiles.bytes || positions * VECTOR_BYTES > 4 * MOST_WORDS) return 1;
    if (tiles.lanes * tiles.bytes > TILE_WARP_THREADS * ENOUGH_BYTES) return 1;
    while (2 * rows * tiles.lanes * tiles.bytes <= TILE_WARP_THREADS * VECTOR_BYTES) rows *= 2;
    return rows;
}

int64_t gpu_windows_positions(TilePassContext *context, TileFunc *func, TileBlock *block) {
    int64_t most = 0;
    for (TileOp *op = block->first; op; op = op->next) {
        Window w = {.module = context->module, .indices = tile_pass_indices(context, func), .scratch = context->scratch};
        if (op->id != TILE_OP_FOR && op->id != TILE_OP_WHILE) continue;
        if (op->id != TILE_OP_FOR || !find_levels(&w, op)) return -1;
        if (w.positions > most) most = w.positions;
    }
    return most;
}

TileOp *gpu_windows_open(TilePassContext *context, TileFunc *func, TileOp *around) {
    TileMap map;
    tile_map_init(&map, context->scratch);
    TileOp *copy = tile_op_clone(context->module, around, &map);
    TileBuilder b = tile_builder_before(context->module, around);
    tile_builder_insert(&b, copy);
    for (TileOp *op = copy->regions[0].first, *next; op; op = next) {
        Window w = {.module = context->module, .indices = tile_pass_indices(context, func), .scratch = context->scratch};
        next = op->next;
        if (op->id == TILE_OP_FOR && find_levels(&w, op)) open(&w);
    }
    return copy;
}
