#include "ptx/model/products.h"

#include <math.h>

#include "lang/ir/operands.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"

enum { GROUP_ROWS = 64, SHARED_BYTES_CYCLE = 128, SCHEDULERS = 4, OPERATIONS_CYCLE = 128 /* lanes, of f32 */ };

double gpu_product_rate(const TilePtxTarget *target, const TileOp *dot) {
    double bytes = (double)tile_scalar_bytes(tile_op_operand(dot, 0)->type->scalar);
    double rate = gpu_dot_is_wgmma(dot) ? target->wgmma_rate : gpu_dot_is_mma(dot) ? target->mma_rate : 0;
    return rate ? rate * 2 / bytes : OPERATIONS_CYCLE * 0.6 * 4 / fmax(4, bytes * bytes / 2);
}

/* wgmma reads b once for each 64 rows, mma each operand for as many warps as share it. */
double gpu_product_shared_cycles(const TileOp *dot) {
    double bytes[2], blocks = (double)tile_op_operand(dot, 0)->type->extent[0] / GROUP_ROWS;
    for (unsigned i = 0; i < 2; i++) {
        const TileType *type = tile_op_operand(dot, i)->type;
        bytes[i] = (double)tile_type_lanes(type) * (double)tile_scalar_bytes(type->scalar);
    }
    double all = gpu_dot_is_wgmma(dot) ? bytes[0] + fmax(1, blocks) * bytes[1] : 2 * (bytes[0] + bytes[1]);
    return all / SHARED_BYTES_CYCLE;
}

/* Of fused multiply-adds, one for each of a thread's sums, which are nearly a square: elements of its rows and columns come
 * from shared memory, 16 bytes at a time, in two cycles of the multiprocessor for a warp; and the loop has a few more for
 * some steps together. */
double gpu_product_instructions(double sums) {
    double loads = 2 * sqrt(sums) / 4;
    return fmax(sums + loads + 2.5, SCHEDULERS * 2 * loads);
}

/* How much longer than its instructions a warp takes for them by itself: it waits for elements of shared memory and for banks of the
 * register file, but little for what is loaded a step ahead. Other warps of its scheduler issue theirs meanwhile. */
double gpu_product_wait(bool large, double sums) {
    enum { MANY_SUMS = 128 };
    const double AHEAD = 1.15, OTHERS = 2.4;
    return !large ? 1 : sums >= MANY_SUMS ? AHEAD : OTHERS;
}

/* The products of a loop's body, and what is loaded: tiles by maps, which have two slots at least in the loop, and elements by threads. */
typedef struct Pair {
    const TileOp *first, *second;
    int64_t count, copies, loaded;
    bool slots;
} Pair;

static void look_at_load(TileOp *op, void *state) {
    Pair *pair = state;
    if (op->id == TILE_OP_LOAD_TILE && op->results[0].type->rank > 1) pair->copies += gpu_by_map(op);
}

static void look_at_body(Pair *pair, const TileBlock *body) {
    for (const TileOp *op = body->first; op; op = op->next) {
        if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) pair->count = -1;
        if (op->id == TILE_OP_LOAD_TILE && gpu_by_map(op)) pair->slots &= tile_op_integer(op, TILE_ATTRIBUTE_LATENCY, 0) > 0;
        if (op->id == TILE_OP_LOAD_TILE && !gpu_by_map(op) && op->results[0].type->rank == 2)
            pair->loaded += tile_type_lanes(op->results[0].type);
        if (op->id != TILE_OP_DOT || pair->count < 0) continue;
        *(pair->count++ ? &pair->second : &pair->first) = op;
    }
}

bool gpu_products_are_ahead(const TilePtxTarget *target, const TileFunc *phase, const TileOp *loop) {
    enum { PRODUCTS = 2 };
    Pair pair = {.slots = true};
    look_at_body(&pair, &loop->regions[0]);
    if (pair.count != PRODUCTS || !pair.slots || !gpu_dot_is_wgmma(pair.first) || !gpu_dot_is_wgmma(pair.second)) return false;
    if (!gpu_loops_use_sums((TileBlock *)&loop->regions[0])) return false;
    tile_block_walk((TileBlock *)&phase->body, look_at_load, &pair);
    return gpu_dots_can_be_ahead(target, pair.first, pair.second, phase->threads / TILE_WARP_THREADS, pair.copies, pair.loaded);
}

typedef struct Ahead {
    const TilePtxTarget *target;
    const TileFunc *phase;
    int64_t sums;
} Ahead;

static void add_ahead(TileOp *op, void *state) {
    Ahead *ahead = state;
    if (op->id != TILE_OP_FOR || !gpu_products_are_ahead(ahead->target, ahead->phase, op)) return;
    const TileOp *dot = op->regions[0].first;
    while (dot->id != TILE_OP_DOT) dot = dot->next;
    ahead->sums += gpu_dot_sums(dot);
}

int64_t gpu_product_registers(const TilePtxTarget *target, TileFunc *phase) {
    Ahead ahead = {.target = target, .phase = phase};
    GpuDots dots = gpu_find_dots(phase, &phase->body);
    tile_block_walk(&phase->body, add_ahead, &ahead);
    return (dots.sums + ahead.sums) / phase->threads + dots.promoted;
}
