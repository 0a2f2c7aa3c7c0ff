/* A grid whose loop is split into parts: how many there are, the grid that computes them, and what combines them again. */
#include "ptx/grid/grid_parts.h"

#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lowering/nest.h"
#include "ptx/grid/part_values.h"

/* ---- the host program ---- */

static TileValue *at_least(TileBuilder *b, TileValue *value, int64_t least) {
    return tile_build_binary(b, TILE_OP_MAX, value, tile_build_i64(b, least));
}

static TileValue *round_up_quotient(TileBuilder *b, TileValue *x, TileValue *y) {
    TileValue *more = tile_build_binary(b, TILE_OP_SUB, y, tile_build_i64(b, 1));
    return tile_build_binary(b, TILE_OP_DIV, tile_build_binary(b, TILE_OP_ADD, x, more), y);
}

static TileValue *trip_count(TileBuilder *b, const TileOp *loop) {
    TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI);
    TileValue *range = at_least(b, tile_build_binary(b, TILE_OP_SUB, hi, lo), 0);
    return round_up_quotient(b, range, tile_op_named(loop, TILE_OPERAND_STEP));
}

/* ---- nests ---- */

static bool is_of_host(const GpuSplit *split, const TileValue *value) {
    return tile_value_block(value) == &split->kernel->body;
}

bool gpu_split_is_counted(const GpuSplit *split, const TileOp *loop) {
    for (TileOperand bound = TILE_OPERAND_LO; bound <= TILE_OPERAND_STEP; bound++)
        if (!is_of_host(split, tile_op_named(loop, bound))) return false;
    return true;
}

TileOp *gpu_split_inner_loop(const TileOp *loop) {
    const TileBlock *body = &loop->regions[0];
    TileOp *inner = loop->result_count ? tile_op_operand(body->last, 0)->op : NULL;
    if (!inner || inner->id != TILE_OP_FOR || inner->block != body || inner->result_count != loop->result_count) return NULL;
    for (unsigned i = 0; i < loop->result_count; i++) {
        if (tile_op_operand(body->last, i) != &inner->results[i]) return NULL;
        if (tile_loop_carried(inner, i) != body->arguments[1 + i]) return NULL;
    }
    return inner;
}

/* Iterations of the whole nest are shared out where each only combines, and the launcher can count them. */
void gpu_split_find_nest(GpuSplit *split) {
    split->nest[0] = split->loop;
    split->depth = 1;
    if (!split->merge.simple || split->merge.inductions || !gpu_split_is_counted(split, split->loop)) return;
    while (split->depth < GPU_MOST_NESTED) {
        TileOp *inner = gpu_split_inner_loop(split->nest[split->depth - 1]);
        if (!inner || !gpu_split_is_counted(split, inner)) return;
        split->nest[split->depth++] = inner;
    }
}

static void look_for_product(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_DOT; }

bool gpu_split_multiplies(const GpuSplit *split) {
    bool products = false;
    tile_block_walk(&split->loop->regions[0], look_for_product, &products);
    return products;
}

/* Parts of 16 images with 28 rows each, 7 of them, would have 3 images, the last part none: 6 are left, and of those one has 1. Joined, they have
 * 64 rows each. A row's number then takes a division, which is nothing beside its products; memory-bound sums have more programs than
 * what is there at a time, which evens them out. */
TileOp *gpu_split_join_nest(GpuSplit *split) {
    TileNest nest;
    gpu_split_find_nest(split);
    nest.count = split->depth - 1;
    if (!gpu_split_multiplies(split) || nest.count < 2) return NULL;
    for (unsigned i = 0; i + 1 < nest.count; i++)
        if (tile_nest_next(split->nest[i]) != split->nest[i + 1]) return NULL;
    TileBuilder host = tile_builder_before(split->context->module, split->grid);
    for (unsigned i = 0; i < nest.count; i++) {
        nest.loops[i] = split->nest[i];
        nest.trips[i] = trip_count(&host, split->nest[i]);
    }
    return tile_nest_join(&nest, split->context->module, split->context->scratch, &host);
}

/* Parts of fewer iterations are not worth a grid of their own; what only stores needs none. */
int64_t gpu_split_least_trips(const GpuSplit *split) {
    enum { LEAST_TRIPS = 4 };
    return split->merge.least_trips > LEAST_TRIPS ? split->merge.least_trips : LEAST_TRIPS;
}

/* ---- parts ---- */

/* How many of the parts share the loop's iterations, the outer loops first. */
static TileValue *share_loop(GpuSplit *split, TileBuilder *b, unsigned k, TileValue *trips, TileValue *parts) {
    TileValue *shares = split->depth > 1 ? at_least(b, tile_build_binary(b, TILE_OP_MIN, parts, trips), 1) : parts;
    split->trips[k] = at_least(b, round_up_quotient(b, trips, shares), 1);
    split->shares[k] = at_least(b, round_up_quotient(b, trips, split->trips[k]), 1);
    return k + 1 < split->depth ? at_least(b, tile_build_binary(b, TILE_OP_DIV, parts, split->shares[k]), 1) : NULL;
}

void gpu_split_share_nest(GpuSplit *split, TileBuilder *b, int64_t number) {
    TileValue *parts = tile_build_i64(b, number);
    for (unsigned k = 0; k < split->depth; k++) parts = share_loop(split, b, k, trip_count(b, split->nest[k]), parts);
}

/* As many parts as the wanted programs allow, while each has enough iterations, if those are known on the host. */
void gpu_split_compute_parts(GpuSplit *split, TileBuilder *b, int64_t least_trips) {
    TileValue *programs = tile_build_i64(b, 1), *trips[GPU_MOST_NESTED], *most = NULL;
    for (unsigned i = 0; i < split->axes; i++)
        programs = tile_build_binary(b, TILE_OP_MUL, programs, at_least(b, tile_op_operand(split->grid, i), 0));
    split->programs = programs;
    TileValue *wanted = tile_build_binary(b, TILE_OP_DIV, tile_build_i64(b, split->wanted),
                                          at_least(b, programs, 1));
    split->uneven = !gpu_split_is_counted(split, split->loop);
    if (split->uneven) {
        split->parts = at_least(b, wanted, 1);
        return;
    }
    for (unsigned k = 0; k < split->depth; k++) {
        trips[k] = trip_count(b, split->nest[k]);
        most = most ? tile_build_binary(b, TILE_OP_MUL, most, trips[k]) : trips[k];
    }
    if (least_trips > 1) most = tile_build_binary(b, TILE_OP_DIV, most, tile_build_i64(b, least_trips));
    TileValue *parts = at_least(b, tile_build_binary(b, TILE_OP_MIN, wanted, most), 1);
    for (unsigned k = 0; k < split->depth; k++) {
        parts = share_loop(split, b, k, trips[k], parts);
        split->parts = k ? tile_build_binary(b, TILE_OP_MUL, split->parts, split->shares[k]) : split->shares[k];
    }
}

/* Induction variables follow from the bounds. */
static bool is_stored(const GpuSplit *split, unsigned i) {
    return i >= split->merge.count || split->merge.values[i].rule != GPU_MERGE_INDUCTION;
}

void gpu_split_build_temps(GpuSplit *split, TileBuilder *b) {
    TileContext *context = b->module->context;
    for (unsigned i = 0; i < gpu_merge_value_count(&split->merge); i++) {
        const TileType *type = gpu_merge_type(&split->merge, context, i);
        if (!is_stored(split, i)) continue;
        TileValue *extents[2 + TILE_MAX_TILE_RANK] = {split->programs, split->parts};
        unsigned rank = 2 + (tile_type_is_tile(type) ? type->rank : 0);
        for (unsigned a = 2; a < rank; a++) extents[a] = tile_build_i64(b, type->extent[a - 2]);
        const TileType *temp = tile_type_tensor(context, type->scalar, rank, TILE_ACCESS_TEMP);
        split->temps[i] = tile_op_result(tile_build_op(b, TILE_OP_TEMP, extents, rank, NULL, 0, &temp, 1), 0);
    }
}

/* ---- the grids ---- */

/* The program's number in the grid of these ids, rows one after the other. */
static TileValue *program_number(GpuSplit *split, TileBuilder *b, TileValue *const *ids) {
    TileValue *number = ids[0];
    for (unsigned i = 1; i < split->axes; i++) {
        number = tile_build_binary(b, TILE_OP_MUL, number, tile_op_operand(split->grid, i));
        number = tile_build_binary(b, TILE_OP_ADD, number, ids[i]);
    }
    return number;
}

/* Those parts, combined; what is beyond the last one counts as the identity. */
static TileValue *load_parts(GpuSplit *split, TileBuilder *b, unsigned i, TileValue *program, TileValue *part,
                             int64_t together, TileValue *count) {
    const TileType *type = gpu_merge_type(&split->merge, b->module->context, i);
    TileName kind = split->merge.values[i].kind;
    int64_t axis = 0;
    if (together == 1) return gpu_part_load(b, split->temps[i], type, program, part);
    TileValue *loaded = gpu_parts_load(b, split->temps[i], type, program, part, together, count),
              *bounds[2] = {tile_build_i64(b, 0), count};
    TileValue *none = tile_build_bits(b, tile_type_scalar(b->module->context, type->scalar),
                                      tile_eval_identity(kind, type->scalar));
    return tile_build_reduce(b, tile_build_fill(b, loaded, none, &axis, bounds, 1), kind, 0);
}

static void erase_after(TileOp *loop) {
    TileBlock *block = loop->block;
    while (block->last->previous != loop) tile_op_erase(block->last->previous);
}

/* The iterations of the part: so many, from the part's first on. */
void gpu_split_narrow(TileBuilder *b, TileOp *loop, TileValue *part, TileValue *trips) {
    unsigned count, lo_index = tile_op_operands(loop, TILE_OPERAND_LO, &count),
                    hi_index = tile_op_operands(loop, TILE_OPERAND_HI, &count);
    TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI),
              *step = tile_op_named(loop, TILE_OPERAND_STEP);
    TileValue *width = tile_build_binary(b, TILE_OP_MUL, trips, step);
    TileValue *first = tile_build_binary(b, TILE_OP_ADD, lo, tile_build_binary(b, TILE_OP_MUL, part, width));
    TileValue *end = tile_build_binary(b, TILE_OP_ADD, first, width);
    tile_op_set_operand(loop, lo_index, first);
    tile_op_set_operand(loop, hi_index, tile_build_binary(b, TILE_OP_MIN, hi, end));
}

/* How many iterations a part has. */
static TileValue *trips_of_part(GpuSplit *split, TileBuilder *b, const TileOp *loop) {
    if (!split->uneven) return split->trips[0];
    return at_least(b, round_up_quotient(b, trip_count(b, loop), split->parts), gpu_split_least_trips(split));
}

/* The i-th value that the loop carries, an induction variable, after so many iterations. */
static TileValue *value_after(TileBuilder *b, const TileOp *loop, unsigned i, TileValue *trips) {
    const TileOp *step = tile_op_operand(loop->regions[0].last, i)->op;
    bool first = tile_value_outside(tile_op_operand(step, 0), loop);
    TileValue *all = tile_build_binary(b, TILE_OP_MUL, trips, tile_op_operand(step, !first));
    return tile_build_binary(b, (TileOpId)step->id, tile_loop_carried(loop, i), all);
}

/* The part's iterations of each loop of the nest; the innermost ones change fastest from part to part. */
void gpu_split_narrow_nest(const GpuSplit *split, TileBuilder *b, TileOp *loop, TileValue *part, TileValue *trips) {
    TileOp *nest[GPU_MOST_NESTED] = {loop};
    for (unsigned k = 1; k < split->depth; k++) nest[k] = gpu_split_inner_loop(nest[k - 1]);
    for (unsigned k = split->depth; --k;) {
        gpu_split_narrow(b, nest[k], tile_build_binary(b, TILE_OP_REM, part, split->shares[k]), split->trips[k]);
        part = tile_build_binary(b, TILE_OP_DIV, part, split->shares[k]);
    }
    gpu_split_narrow(b, loop, part, trips);
}

/* What a part begins with: what changes nothing. A fold has no such value, and begins with none. */
void gpu_split_begin(GpuSplit *split, TileBuilder *b, TileOp *loop, TileValue *before) {
    unsigned count, carried = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
    for (unsigned i = 0; i < count; i++) {
        const GpuMerged *value = &split->merge.values[i];
        const TileType *type = loop->results[i].type;
        if (value->rule == GPU_MERGE_INDUCTION)
            tile_op_set_operand(loop, carried + i, value_after(b, loop, i, before));
        if (value->rule != GPU_MERGE_OP && value->rule != GPU_MERGE_RESCALED) continue;
        uint64_t none = value->rule == GPU_MERGE_OP ? tile_eval_identity(value->kind, type->scalar) : 0;
        tile_op_set_operand(loop, carried + i, tile_build_bits(b, type, none));
    }
}

TileValue *gpu_split_widen_grid(GpuSplit *split, TileOp *grid) {
    TileModule *module = split->context->module;
    tile_op_add_operand(module, grid, split->parts);
    return tile_block_add_argument(module, &grid->regions[0], tile_type_scalar(module->context, TILE_I64), NULL);
}

/* ---- the order of the parts ---- */

/* Loads of products: whether several programs load the same of a large tensor, on the host; NULL: certainly not. */
typedef struct Sharing {
    GpuSplit *split;
    TileIndices *indices;
    TileBuilder *host;
    TileValue *found;
} Sharing;

static void look_for_sharing(TileOp *op, void *data) {
    enum { LARGE = 8 << 20 }; /* of a tensor, in bytes: L2 caches have 4 to 12 times as many, for several tensors */
    Sharing *sharing = data;
    GpuSplit *split = sharing->split;
    TileBuilder *b = sharing->host;
    TileValue *tensor = op->id == TILE_OP_LOAD_TILE ? tile_op_operand(op, 0) : NULL, *times = NULL;
    if (!tensor || !tile_type_is_tile(op->results[0].type) || op->results[0].type->rank < 2 || tensor->block != &split->kernel->body) return;
    for (unsigned a = 0; a < split->axes; a++) {
        bool depends = false;
        for (unsigned i = 1; i < op->operand_count; i++)
            depends |= tile_index_depends(sharing->indices, tile_op_operand(op, i), split->grid->regions[0].arguments[a]);
        if (!depends) times = times ? tile_build_binary(b, TILE_OP_MUL, times, tile_op_operand(split->grid, a)) : tile_op_operand(split->grid, a);
    }
    if (!times) return;
    TileValue *bytes = tile_build_i64(b, tile_scalar_bytes(tensor->type->scalar));
    for (unsigned d = 0; d < tensor->type->rank; d++) bytes = tile_build_binary(b, TILE_OP_MUL, bytes, tile_build_dim(b, tensor, d));
    TileValue *several = tile_build_binary(b, TILE_OP_GT, times, tile_build_i64(b, 1)),
              *large = tile_build_binary(b, TILE_OP_GE, bytes, tile_build_i64(b, LARGE)),
              *both = tile_build_binary(b, TILE_OP_AND, several, large);
    sharing->found = sharing->found ? tile_build_binary(b, TILE_OP_OR, sharing->found, both) : both;
}

/* Gives the grid one id more, the first. */
static void lead_grid(GpuSplit *split, TileOp *grid, TileValue *extent) {
    TileModule *module = split->context->module;
    TileBlock *body = &grid->regions[0];
    unsigned count = body->argument_count;
    tile_op_add_operand(module, grid, extent);
    tile_block_add_argument(module, body, tile_type_scalar(module->context, TILE_I64), NULL);
    for (unsigned a = count; a-- > 0;) {
        tile_value_replace(body->arguments[a], body->arguments[a + 1]);
        body->arguments[a + 1]->name = body->arguments[a]->name;
        tile_op_set_operand(grid, a + 1, tile_op_operand(grid, a));
    }
    body->arguments[0]->name = NULL;
    tile_op_set_operand(grid, 0, extent);
}

/* Programs of one part share lines and columns of products. Where they follow one another, the L2 cache has these for all of them, also if not all programs are there at a
 * time; else the parts of a program do, which go through rows of memory together. So parts are numbered by a first and a last id, of which one has the extent 1:
 * the launch knows tensors and programs. */
static TileOp *copy_grid(GpuSplit *split, TileBuilder *host, TileMap *map) {
    TileModule *module = split->context->module;
    Sharing sharing = {.split = split, .host = host};
    if (split->axes + 2 <= TILE_MAX_GRID_RANK && gpu_split_multiplies(split)) {
        sharing.indices = tile_pass_indices(split->context, split->kernel);
        tile_block_walk(&split->loop->regions[0], look_for_sharing, &sharing);
    }
    TileValue *leads = sharing.found, *one = leads ? tile_build_i64(host, 1) : NULL,
              *first = leads ? tile_build_ternary(host, TILE_OP_SELECT, leads, split->parts, one) : NULL,
              *last = leads ? tile_build_ternary(host, TILE_OP_SELECT, leads, one, split->parts) : NULL;
    tile_map_init(map, split->context->scratch);
    TileOp *grid = tile_op_clone(module, split->grid, map);
    tile_builder_insert(host, grid);
    gpu_split_widen_grid(split, grid);
    if (!leads) return grid;
    tile_op_set_operand(grid, split->axes, last);
    lead_grid(split, grid, first);
    return grid;
}

/* The loop's copy in a copy of its grid: as many ops are in front of it. */
static TileOp *copied_loop(const GpuSplit *split, const TileOp *grid) {
    TileOp *copy = grid->regions[0].first;
    for (const TileOp *op = split->grid->regions[0].first; op != split->loop; op = op->next) copy = copy->next;
    return copy;
}

/* The grid of the parts, before the other one. */
void gpu_split_build_parts(GpuSplit *split, TileBuilder *host) {
    TileModule *module = split->context->module;
    TileMap map;
    TileOp *grid = copy_grid(split, host, &map), *loop = copied_loop(split, grid);
    TileBlock *body = &grid->regions[0];
    bool leads = body->argument_count > split->axes + 1;
    erase_after(loop);
    for (TileOp *op = body->first, *next; op != loop; op = next) {
        next = op->next;
        if (op->id == TILE_OP_STORE_TILE) tile_op_erase(op);
    }
    TileBuilder before = tile_builder_before(module, loop);
    TileValue *part = body->arguments[body->argument_count - 1], *trips = trips_of_part(split, &before, loop);
    if (leads) part = tile_build_binary(&before, TILE_OP_ADD, body->arguments[0], part);
    gpu_split_begin(split, &before, loop, tile_build_binary(&before, TILE_OP_MUL, part, trips));
    gpu_split_narrow_nest(split, &before, loop, part, trips);
    gpu_merge_guard(&split->merge, module, &map, tile_build_binary(&before, TILE_OP_EQ, part, tile_build_i64(&before, 0)));
    if (split->merge.fold_count) loop = gpu_merge_carry_presence(&split->merge, &before, loop);
    TileBuilder b = tile_builder_before(module, body->last);
    b.location = split->loop->location;
    TileValue *program = program_number(split, &b, body->arguments + leads);
    for (unsigned i = 0; i < gpu_merge_value_count(&split->merge); i++)
        if (is_stored(split, i)) gpu_part_store(&b, split->temps[i], &loop->results[i], program, part);
}

/* Combines what came before with the parts' values, each value for itself. */
static void combine_each(GpuSplit *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part,
                         int64_t together, TileValue *count) {
    for (unsigned i = 0; i < split->merge.count; i++) {
        if (!is_stored(split, i)) continue;
        TileValue *value = load_parts(split, b, i, program, part, together, count);
        values[i] = tile_build_binary(b, tile_eval_combiner(split->merge.values[i].kind), values[i], value);
    }
}

/* The value of the part, or what changes nothing where there is none: the last one is loaded then, whose bytes have come already. */
static TileValue *load_or_none(GpuSplit *split, TileBuilder *b, unsigned i, TileValue *program, TileValue *part, TileValue *end) {
    const TileType *type = gpu_merge_type(&split->merge, b->module->context, i);
    TileValue *there = tile_build_binary(b, TILE_OP_LT, part, end), *last = tile_build_binary(b, TILE_OP_SUB, end, tile_build_i64(b, 1));
    TileValue *value = gpu_part_load(b, split->temps[i], type, program, tile_build_binary(b, TILE_OP_MIN, part, last)),
              *none = tile_build_bits(b, type, tile_eval_identity(split->merge.values[i].kind, type->scalar));
    if (tile_type_is_tile(type)) there = tile_build_splat(b, there, tile_type_with_scalar(b->module->context, type, TILE_BOOL));
    return tile_build_ternary(b, TILE_OP_SELECT, there, value, none);
}

/* The same, part after part: all loads first. */
static void combine_beside(GpuSplit *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part, TileValue *end) {
    for (unsigned i = 0; i < split->merge.count; i++) {
        TileValue *loaded[GPU_MOST_BESIDE];
        if (!is_stored(split, i)) continue;
        for (int64_t k = 0; k < split->together; k++) {
            TileValue *other = k ? tile_build_binary(b, TILE_OP_ADD, part, tile_build_i64(b, k)) : part;
            loaded[k] = k ? load_or_none(split, b, i, program, other, end) : load_parts(split, b, i, program, part, 1, NULL);
        }
        for (int64_t k = 0; k < split->together; k++)
            values[i] = tile_build_binary(b, tile_eval_combiner(split->merge.values[i].kind), values[i], loaded[k]);
    }
}

/* The same for values that depend on each other and differ in shape: those of one part. */
static void combine_tiles(GpuSplit *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part) {
    TileValue *right[TILE_MAX_FOLD], *merged[TILE_MAX_FOLD];
    for (unsigned i = 0; i < split->merge.count; i++) {
        merged[i] = values[i];
        if (is_stored(split, i)) right[i] = load_parts(split, b, i, program, part, 1, NULL);
    }
    gpu_merge_build(&split->merge, b, split->context->scratch, values, right, merged);
    for (unsigned i = 0; i < split->merge.count; i++) values[i] = merged[i];
}

/* The same for values of one shape: by a fold. */
static void combine_all(GpuSplit *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part,
                        int64_t together, TileValue *count) {
    TileModule *module = split->context->module;
    TileValue *several[TILE_MAX_FOLD], *merged[TILE_MAX_FOLD], *bounds[2] = {tile_build_i64(b, 0), count};
    int64_t axis = 0;
    unsigned values_count = gpu_merge_value_count(&split->merge);
    for (unsigned i = 0; i < values_count; i++)
        several[i] = gpu_parts_load(b, split->temps[i], gpu_merge_type(&split->merge, module->context, i), program, part,
                                    together, count);
    TileValue *all = tile_build_bits(b, tile_type_with_scalar(module->context, several[0]->type, TILE_BOOL), 1);
    TileValue *none = tile_build_bool(b, false);
    TileFoldParts parts = {.values = several, .init = values, .count = values_count,
                           .mask = tile_build_fill(b, all, none, &axis, bounds, 1)};
    TileOp *fold = tile_build_fold(b, TILE_OP_FOLD, &parts);
    TileBlock *body = &fold->regions[0];
    TileBuilder inner = tile_builder_at_end(module, body);
    inner.location = b->location;
    gpu_merge_build(&split->merge, &inner, split->context->scratch, body->arguments, body->arguments + values_count,
                    merged);
    tile_build_end(&inner, TILE_OP_YIELD, merged, values_count);
    for (unsigned i = 0; i < values_count; i++) values[i] = &fold->results[i];
}

/* How many parts are loaded at once. */
static int64_t together_in_combination(const GpuSplit *split) {
    int64_t least = split->merge.tiles ? 1 : INT64_MAX;
    for (unsigned i = 0; i < split->merge.count; i++) {
        int64_t together = gpu_parts_together(split->loop->results[i].type, split->slices, split->together);
        if (together < least) least = together;
    }
    return least;
}

/* Combines the values with those of so many parts from this one on, but for those from `end` on. */
static void combine_some(GpuSplit *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part,
                         TileValue *end, int64_t together) {
    const GpuMerge *merge = &split->merge;
    TileValue *count = NULL;
    if (split->beside) return combine_beside(split, b, values, program, part, end);
    if (together > 1 || !(merge->simple || merge->tiles))
        count = tile_build_binary(b, TILE_OP_MIN, tile_build_binary(b, TILE_OP_SUB, end, part),
                                  tile_build_i64(b, together));
    if (merge->simple)
        combine_each(split, b, values, program, part, together, count);
    else if (merge->tiles)
        combine_tiles(split, b, values, program, part);
    else
        combine_all(split, b, values, program, part, together, count);
}

/* How many iterations of the loop are combined: all, or in a scan those before the part's first. */
static TileValue *trips_combined(GpuSplit *split, TileBuilder *b, TileValue *part) {
    return part ? tile_build_binary(b, TILE_OP_MUL, part, trips_of_part(split, b, split->loop)) : trip_count(b, split->loop);
}

/* Parts of an iteration are loaded together. */
TileOp *gpu_split_combine(GpuSplit *split, TileValue *part) {
    TileOp *loop = split->loop;
    const GpuMerge *merge = &split->merge;
    TileModule *module = split->context->module;
    TileBuilder b = tile_builder_before(module, loop);
    TileValue *values[TILE_MAX_FOLD], *program = program_number(split, &b, loop->block->arguments);
    unsigned all = gpu_merge_value_count(merge);
    int64_t together = split->beside ? split->together : together_in_combination(split);
    for (unsigned i = 0; i < all; i++)
        values[i] = i < merge->count ? tile_loop_carried(loop, i)
                                     : tile_build_bits(&b, gpu_merge_type(merge, module->context, i), 1);
    TileValue *end = part ? part : split->parts;
    TileOp *parts = tile_build_for(&b, tile_build_i64(&b, 0), end, tile_build_i64(&b, together), values, all);
    TileBuilder inner = tile_builder_at_end(module, &parts->regions[0]);
    inner.location = loop->location;
    for (unsigned i = 0; i < all; i++) values[i] = parts->regions[0].arguments[1 + i];
    combine_some(split, &inner, values, program, parts->regions[0].arguments[0], end, together);
    tile_build_end(&inner, TILE_OP_YIELD, values, all);
    for (unsigned i = 0; i < merge->count; i++) {
        bool induction = merge->values[i].rule == GPU_MERGE_INDUCTION && tile_value_has_uses(&loop->results[i]);
        TileValue *result = induction ? value_after(&b, loop, i, trips_combined(split, &b, part)) : &parts->results[i];
        tile_value_replace(&loop->results[i], result);
    }
    tile_op_erase(loop);
    return parts;
}
