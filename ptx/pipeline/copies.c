#include "ptx/pipeline/copies.h"

#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lowering/memory.h"
#include "ptx/target/map.h"
#include "ptx/target/multiply_adds.h"

/* ---- which loads ---- */

bool gpu_is_zero(const TileValue *value) {
    uint64_t bits;
    const TileOp *splat = tile_value_def(value, TILE_OP_SPLAT);
    if (splat) value = tile_op_operand(splat, 0);
    const TileOp *constant = tile_value_def(value, TILE_OP_CONST);
    if (!constant) return false;
    bits = tile_op_get(constant, TILE_ATTRIBUTE_VALUE)->bits;
    uint64_t sign =
        tile_scalar_is_float(value->type->scalar) ? UINT64_C(1) << (tile_scalar_bits(value->type->scalar) - 1) : 0;
    return (bits & tile_scalar_mask(value->type->scalar) & ~sign) == 0;
}

/* The load's axis that is this one of a value made of it, of rows if the load has more axes (gpu_rows_type); -1: several
 * are. `transposed`: axes have been exchanged. */
static int loaded_axis(const TileOp *load, const TileType *type, unsigned axis, bool transposed) {
    unsigned rank = load->results[0].type->rank;
    if (type->rank != 2) return (int)axis;
    if (transposed) axis = 1 - axis;
    return axis ? (int)rank - 1 : rank == 2 ? 0 : -1;
}

/* Do lanes of index 0 and more that are below the first bound lie below the second one as well? */
static bool ends_before(const TileValue *hi, const TileValue *other) {
    enum { MOST_STEPS = 4 }; /* a choice, the tensor's end and the tile's, in either order */
    const TileValue *left[MOST_STEPS + 1] = {hi};
    unsigned count = 1;
    for (unsigned step = 0; count && step < MOST_STEPS; step++) {
        const TileValue *bound = left[--count];
        int64_t number;
        if (tile_value_is_same(bound, other) || (tile_value_integer(bound, &number) && number <= 0)) continue;
        const TileOp *choice = tile_value_def(bound, TILE_OP_SELECT), *least = tile_value_def(bound, TILE_OP_MIN);
        if (choice) {
            left[count++] = tile_op_named(choice, TILE_OPERAND_X);
            left[count++] = tile_op_named(choice, TILE_OPERAND_Y);
        } else if (least) {
            if (!tile_value_is_same(tile_op_operand(least, 0), other) && !tile_value_is_same(tile_op_operand(least, 1), other))
                return false;
        } else {
            return false;
        }
        if (count > MOST_STEPS - 1) return false;
    }
    return !count;
}

/* Do lanes of the load lie behind the fill's lower bound? */
static bool begins_behind(const TileValue *lo, const TileValue *other) {
    int64_t number;
    return tile_value_is_same(lo, other) || (tile_value_integer(other, &number) && number <= 0);
}

/* Does the fill write 0 only to lanes that the load does not reach? A load that reaches fewer of them leaves 0 in those
 * between, too: one that is empty where a condition fails, such as that of an image's row, beside the end along k. */
static bool repeats_load(const TileOp *fill, const TileOp *load, bool transposed) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    if (!gpu_is_zero(tile_op_operand(fill, 1))) return false;
    for (unsigned i = 0; i < axes->count; i++) {
        TileValue *lo, *hi;
        int axis = loaded_axis(load, fill->results[0].type, (unsigned)axes->integers[i], transposed);
        if (axis < 0 || !tile_access_bounds(load, (unsigned)axis, &lo, &hi)) return false;
        if (!begins_behind(lo, tile_fill_lo(fill, i)) || !ends_before(hi, tile_fill_hi(fill, i))) return false;
    }
    return true;
}

static bool is_transposed(const TileOp *permute) { return tile_op_get(permute, TILE_ATTRIBUTE_AXES)->integers[0] != 0; }

/* Products that read a load's tile: by mma; by fused multiply-adds, along k and across. */
typedef struct Readers {
    bool mma, along_k, across;
} Readers;

static void add_reader(Readers *readers, const TileUse *use, bool transposed) {
    bool mma = gpu_dot_is_mma(use->user), along_k = transposed != (use->index == 0);
    *(mma ? &readers->mma : along_k ? &readers->along_k : &readers->across) = true;
}

/* Does it make rows of the load's axes but the last? */
static bool makes_rows(const TileOp *reshape, const TileOp *load) {
    const TileType *from = tile_op_operand(reshape, 0)->type, *to = reshape->results[0].type;
    return from->rank > 2 && to->rank == 2 && to->extent[1] == load->results[0].type->extent[from->rank - 1];
}

static bool only_multiplied(const TileValue *value, const TileOp *load, bool transposed, Readers *readers) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        bool passes = false;
        if (user->id == TILE_OP_DOT) {
            passes = use->index < 2 && value->type->rank == 2 && gpu_dot_reads_shared(user);
            if (passes) add_reader(readers, use, transposed);
        } else if (user->id == TILE_OP_RESHAPE)
            passes = makes_rows(user, load) && only_multiplied(&user->results[0], load, false, readers);
        else if (user->id == TILE_OP_PERMUTE && value->type->rank == 2)
            passes = only_multiplied(&user->results[0], load, transposed != is_transposed(user), readers);
        else if (user->id == TILE_OP_FILL)
            passes = use->index == 0 && repeats_load(user, load, transposed) &&
                     only_multiplied(&user->results[0], load, transposed, readers);
        if (!passes) return false;
    }
    return true;
}

static bool can_be_copied(const TileOp *load) {
    if (load->id != TILE_OP_LOAD_TILE || !gpu_has_rows(load->results[0].type) || !load->results[0].first_use) return false;
    const TileAttribute *access = tile_op_get(load, TILE_ATTRIBUTE_ACCESS);
    for (unsigned i = 0; i < access->count; i++)
        if (access->integers[i] == TILE_ACCESS_GATHER) return false;
    if (tile_op_has_part(load, TILE_PARTS_MASK)) return false;
    if (tile_op_has_part(load, TILE_PARTS_FILL) && !gpu_is_zero(tile_op_named(load, TILE_OPERAND_FILLING)))
        return false;
    return true;
}

/* mma reads rows with a swizzle; fused multiply-adds read those with and without one across k, and with one along k. */
static bool is_copied_for(const TileOp *load, Readers *readers) {
    return can_be_copied(load) && only_multiplied(&load->results[0], load, false, readers) && !(readers->across && readers->mma);
}

bool gpu_load_is_copied(const TileOp *load) {
    Readers readers = {0};
    return is_copied_for(load, &readers);
}

/* Is the value, of the loop's body, made of the load's tile alone or with others? */
static bool is_made_of(const TileValue *value, const TileOp *load, unsigned *left) {
    const TileOp *op = value->op;
    if (op == load) return true;
    if (!op || op->block != load->block || !tile_op_is_pure(op) || !tile_type_is_tile(value->type) || !*left) return false;
    --*left;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (is_made_of(tile_op_operand(op, i), load, left)) return true;
    return false;
}

bool gpu_load_is_computed(const TileOp *load) {
    enum { MOST_STEPS = 256, OPERANDS = 2 };
    if (load->id != TILE_OP_LOAD_TILE || !tile_type_is_tile(load->results[0].type) || load->results[0].type->rank != 2) return false;
    if (!can_be_copied(load) || gpu_load_is_copied(load)) return false;
    for (const TileOp *dot = load->next; dot; dot = dot->next) {
        if (dot->id != TILE_OP_DOT || !gpu_dot_is_mma(dot)) continue;
        for (unsigned i = 0, left = MOST_STEPS; i < OPERANDS; i++, left = MOST_STEPS)
            if (is_made_of(tile_op_operand(dot, i), load, &left)) return true;
    }
    return false;
}

bool gpu_gives_sums(const TileOp *op, const TileType *type) {
    if (op->id == TILE_OP_DOT) return gpu_dot_is_mma(op) && tile_type_same_shape(op->results[0].type, type);
    bool gives = false;
    for (unsigned i = 0; i < op->region_count; i++)
        for (const TileOp *inner = op->regions[i].first; inner && !gives; inner = inner->next) gives = gpu_gives_sums(inner, type);
    return gives;
}

bool gpu_load_is_added(const TileOp *load) {
    enum { MOST_STEPS = 256, MOST_BYTES = 2 };
    if (load->id != TILE_OP_LOAD_TILE || !tile_type_is_tile(load->results[0].type) || load->results[0].type->rank != 2) return false;
    if (tile_scalar_bytes(load->results[0].type->scalar) > MOST_BYTES || !can_be_copied(load) || gpu_load_is_copied(load) || gpu_load_is_computed(load)) return false;
    for (const TileOp *loop = load->previous; loop; loop = loop->previous) {
        if (loop->id != TILE_OP_FOR || !gpu_gives_sums(loop, load->results[0].type)) continue;
        for (const TileOp *store = load->next; store; store = store->next) {
            if (store->id != TILE_OP_STORE_TILE) continue;
            const TileValue *stored = tile_op_named(store, TILE_OPERAND_VALUE);
            unsigned left = MOST_STEPS, others = MOST_STEPS;
            if (is_made_of(stored, load, &left) && is_made_of(stored, loop, &others)) return true;
        }
    }
    return false;
}

/* ---- second operands that pass through registers ---- */

/* Is the value the load's tile as it is copied, transposed or not? */
static bool is_as_copied(const TileValue *value, const TileOp *load, bool *transposed) {
    const TileOp *op = value->op;
    if (op == load) return true;
    if (!op || (op->id != TILE_OP_FILL && op->id != TILE_OP_PERMUTE) || !is_as_copied(tile_op_operand(op, 0), load, transposed)) return false;
    if (op->id == TILE_OP_FILL) return repeats_load(op, load, *transposed);
    *transposed ^= is_transposed(op);
    return true;
}

bool gpu_operand_is_computed(const TileOp *dot, unsigned operand) {
    bool transposed;
    const TileOp *op = tile_op_operand(dot, operand)->op;
    if (gpu_find_shared(tile_op_operand(dot, operand), &transposed)) return false;
    while (op && (op->id == TILE_OP_FILL || op->id == TILE_OP_PERMUTE || op->id == TILE_OP_RESHAPE)) op = tile_op_operand(op, 0)->op;
    if (!op || op->id != TILE_OP_LOAD_TILE) return true;
    transposed = false;
    return !gpu_load_is_copied(op) && !(gpu_by_map(op) && is_as_copied(tile_op_operand(dot, operand), op, &transposed));
}

int64_t gpu_put_slots(const TileOp *dot) { return gpu_operand_is_computed(dot, 0) ? 2 : 3; }

TileValue *gpu_put_source(const TileOp *dot, bool *permuted) {
    TileValue *value = tile_op_operand(dot, 1), *under = value;
    while (tile_value_def(under, TILE_OP_FILL)) under = tile_op_operand(under->op, 0);
    const TileOp *permute = tile_value_def(under, TILE_OP_PERMUTE);
    *permuted = permute && is_transposed(permute);
    return *permuted ? tile_op_operand(permute, 0) : value;
}

int64_t gpu_put_bytes(TileContext *context, const TileOp *dot) {
    bool permuted;
    if (!gpu_dot_is_wgmma(dot) || !gpu_operand_is_computed(dot, 1)) return 0;
    return gpu_put_slots(dot) * gpu_shared_bytes(gpu_panel_type(context, gpu_put_source(dot, &permuted)->type));
}

bool gpu_load_has_whole_chunks(TileFunc *func, const TileOp *load) {
    const TileType *tile = load->results[0].type;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tensor = tile_op_operand(load, 0);
    unsigned last = tile_access_read(load, indices) - 1, bytes = tile_scalar_bytes(tile->scalar);
    int64_t step, row = tile->extent[1] * bytes;
    if (indices[last].axis != 1 || !tile_value_integer(indices[last].step, &step) || step != 1) return false;
    if (tensor->op || tensor->block != &func->body || row % TILE_CHUNK_BYTES) return false;
    TileParameter *parameter = &func->parameters[tensor->index];
    parameter->asked_multiple |= TILE_CHUNK_BYTES / bytes;
    int64_t multiple = parameter->facts.multiple[last];
    return multiple != TILE_UNKNOWN && multiple * bytes % TILE_CHUNK_BYTES == 0 &&
           parameter->facts.stride[last] == (int64_t)bytes;
}

static bool multiplies(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id == TILE_OP_DOT && gpu_dot_is_mma(op)) return true;
    return false;
}

bool gpu_load_is_vector(const TileOp *load) {
    const TileType *tile = load->id == TILE_OP_LOAD_TILE ? load->results[0].type : NULL;
    if (!tile || !tile_type_is_tile(tile) || tile->rank != 1 || !tile_value_has_uses(&load->results[0])) return false;
    const TileOp *loop = load->block->op;
    return tile_op_is(loop, TILE_OP_FOR) && !tile_loop_is_of_programs(loop) && multiplies(load->block) &&
           !tile_op_has_part(load, TILE_PARTS_MASK) && !tile_op_has_part(load, TILE_PARTS_FILL);
}

bool gpu_load_is_moved(const TileOp *load) {
    return gpu_load_is_copied(load) || gpu_load_is_vector(load) || gpu_load_is_computed(load) || gpu_load_is_added(load);
}

static const TileOp *find_load(const TileValue *value, const TileBlock *block, unsigned *left) {
    const TileOp *op = value->op;
    if (!op || op->block != block || !*left) return NULL;
    if (op->id == TILE_OP_LOAD_TILE) return op;
    for (unsigned i = 0; i < op->operand_count && tile_op_is_pure(op) && --*left; i++) {
        const TileOp *found = find_load(tile_op_operand(op, i), block, left);
        if (found) return found;
    }
    return NULL;
}

const TileOp *gpu_operand_load(const TileOp *dot, unsigned operand, const TileOp **between) {
    enum { MOST_STEPS = 64 };
    unsigned left = MOST_STEPS;
    const TileOp *load = find_load(tile_op_operand(dot, operand), dot->block, &left);
    const TileOp *last = tile_op_operand(dot, operand)->op;
    while (load && (last->id == TILE_OP_FILL || last->id == TILE_OP_PERMUTE || last->id == TILE_OP_RESHAPE)) last = tile_op_operand(last, 0)->op;
    *between = last == load ? NULL : last;
    return load;
}

int64_t gpu_shared_bytes(const TileType *pointer) {
    GpuSharedTile tile = gpu_shared_tile(pointer);
    return (gpu_shared_tile_bytes(&tile) + GPU_TILE_ALIGN - 1) / GPU_TILE_ALIGN * GPU_TILE_ALIGN;
}

int64_t gpu_stored_bytes(const TileType *tile) {
    int64_t bytes = tile_type_lanes(tile) * tile_scalar_bytes(tile->scalar);
    return (bytes + GPU_TILE_ALIGN - 1) / GPU_TILE_ALIGN * GPU_TILE_ALIGN;
}

int64_t gpu_stored_parts(int64_t turns, const TileType *tile) {
    enum { PANEL_BYTES = 128 };
    int64_t row = tile->extent[tile->rank - 1] * tile_scalar_bytes(tile->scalar);
    return turns > 1 && tile->rank == 2 && row % PANEL_BYTES == 0 ? row / PANEL_BYTES : 1;
}

int64_t gpu_map_stored_bytes(int64_t turns, const TileType *tile) {
    return turns * gpu_stored_bytes(tile) / gpu_stored_parts(turns, tile);
}

int64_t gpu_slots_of_products(const TilePtxTarget *target, const TileBlock *loop) {
    enum { OF_COPY = 1500, LOG_BYTES_16 = 1 }; /* cycles, from the room for a tile to the tile */
    int64_t cycles = 0, rate = target->wgmma_rate;
    for (const TileOp *op = loop->first; op; op = op->next) {
        if (op->id != TILE_OP_DOT || !gpu_dot_is_mma(op)) continue;
        const TileType *a = tile_op_operand(op, 0)->type;
        cycles += tile_type_lanes(op->results[0].type) / gpu_dot_parts(op) * a->extent[1] * tile_scalar_bytes(a->scalar) / (rate << LOG_BYTES_16);
    }
    return cycles ? 1 + (OF_COPY + cycles - 1) / cycles : 0;
}

/* ---- building ---- */

void gpu_build_plain(TileBuilder *b, TileOpId id) { tile_build_op(b, id, NULL, 0, NULL, 0, NULL, 0); }

void gpu_build_wait(TileBuilder *b, int64_t pending) {
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_PENDING, .integer = pending};
    tile_build_op(b, TILE_OP_COPY_WAIT, NULL, 0, &attribute, 1, NULL, 0);
}

TileValue *gpu_build_buffer(TileBuilder *b, const TileType *type, int64_t bytes, int64_t align, int64_t slots) {
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_BYTES, .integer = bytes * slots},
                                  {.key = TILE_ATTRIBUTE_ALIGN, .integer = align},
                                  {.key = TILE_ATTRIBUTE_SLOTS, .integer = slots}};
    return tile_op_result(tile_build_op(b, TILE_OP_BUFFER, NULL, 0, attributes, slots > 1 ? 3 : 2, &type, 1), 0);
}

/* Do rows along k become columns as they are copied, word by word? */
static bool turns_rows(const TileOp *load, const Readers *readers, const TileType *rows) {
    enum { MOST_WORDS = 128 }; /* that a thread copies */
    if (!readers->along_k || readers->mma || readers->across || !gpu_turns_rows(load, rows)) return false;
    TileLayoutShape shape = gpu_dot_shape(rows);
    int64_t words = shape.extent[0] * shape.extent[1], threads = tile_op_func(load)->threads;
    return threads && words % threads == 0 && words <= MOST_WORDS * threads;
}

const TileType *gpu_slot_type(TileContext *context, const TileOp *load) {
    const TileType *tile = load->results[0].type, *rows = gpu_rows_type(context, tile);
    Readers readers = {0};
    if (tile->rank == 1) return gpu_vector_type(context, tile);
    if (gpu_by_map(load)) return gpu_copied_panel_type(context, tile);
    bool copied = is_copied_for(load, &readers);
    if (copied && turns_rows(load, &readers, rows)) return gpu_columns_type(context, rows);
    return gpu_multiplied_type(context, rows, !(copied && readers.across && !readers.along_k));
}

bool gpu_load_is_turned(const TileOp *load) {
    const TileType *tile = load->results[0].type;
    Readers readers = {0};
    return tile->rank == 2 && !gpu_by_map(load) && is_copied_for(load, &readers) && turns_rows(load, &readers, tile);
}

TileValue *gpu_build_channel(TileBuilder *b, const TileOp *load, int64_t slots) {
    TileContext *context = b->module->context;
    const TileType *type = tile_type_channel(context, gpu_slot_type(context, load));
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_SLOTS, .integer = slots};
    return tile_op_result(tile_build_op(b, TILE_OP_CHANNEL, NULL, 0, &attribute, 1, &type, 1), 0);
}

/* Does the test ask no more than whether the index lies in the tensor along the dimension? */
static bool asks_for_tensor(const TileOp *load, const TileValue *test, unsigned d, const TileValue *index) {
    const TileOp *op = test->op;
    if (op && op->id == TILE_OP_AND)
        return asks_for_tensor(load, tile_op_operand(op, 0), d, index) && asks_for_tensor(load, tile_op_operand(op, 1), d, index);
    if (!op || (op->id != TILE_OP_GE && op->id != TILE_OP_LT) || tile_op_operand(op, 0) != index) return false;
    const TileValue *end = tile_op_operand(op, 1);
    if (op->id == TILE_OP_GE) return tile_value_is_integer(end, 0);
    const TileOp *dim = tile_value_def(end, TILE_OP_DIM);
    return dim && tile_op_operand(dim, 0) == tile_op_operand(load, 0) && tile_op_integer(dim, TILE_ATTRIBUTE_AXIS, 0) == d;
}

/* The bound without the test, where that fails for no lane or for all of them; NULL: it does not say that. */
static TileValue *untested(TileValue *bound, const TileValue *test) {
    int64_t none;
    const TileOp *choice = tile_value_def(bound, TILE_OP_SELECT);
    bool tested = choice && tile_value_is_same(tile_op_operand(choice, 0), test) &&
                  tile_value_integer(tile_op_named(choice, TILE_OPERAND_Y), &none) && none <= 0;
    return tested ? tile_op_named(choice, TILE_OPERAND_X) : NULL;
}

/* The test of an index behind which no lane is valid: `x[h, w] if 0 <= h < H`, another h being loaded of. */
static const TileValue *test_of_index(const TileOp *load, const TileAccessIndex *indices, unsigned rank, unsigned d) {
    const TileOp *choice = indices[d].kind == TILE_ACCESS_INDEX ? tile_value_def(indices[d].first, TILE_OP_SELECT) : NULL;
    if (!choice || !asks_for_tensor(load, tile_op_operand(choice, 0), d, tile_op_named(choice, TILE_OPERAND_X))) return NULL;
    for (unsigned i = 0; i < rank; i++)
        if (indices[i].kind == TILE_ACCESS_RANGE && untested(indices[i].hi, tile_op_operand(choice, 0))) return tile_op_operand(choice, 0);
    return NULL;
}

TileValue *gpu_index_of_map(const TileOp *load, unsigned d) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(load, indices);
    return test_of_index(load, indices, rank, d) ? tile_op_named(indices[d].first->op, TILE_OPERAND_X) : NULL;
}

TileValue *gpu_bound_of_map(const TileOp *load, TileValue *hi) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(load, indices);
    for (unsigned d = 0; d < rank; d++) {
        const TileValue *test = test_of_index(load, indices, rank, d);
        TileValue *bound = test ? untested(hi, test) : NULL;
        if (bound) hi = bound;
    }
    return hi;
}

/* Indices as a map takes them. */
static unsigned take_indices(const TileOp *load, TileValue **operands, int64_t *outside) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(load, indices), count = 0;
    for (unsigned d = 0; d < rank; d++) {
        TileValue *index = gpu_index_of_map(load, d);
        if (!index) continue;
        operands[indices[d].operand + 1] = index;
        outside[count++] = d;
    }
    return count;
}

/* Is a lane outside of the load's range along the axis filled with 0 before it is multiplied? */
static bool is_filled(const TileValue *value, unsigned axis) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        if (user->id == TILE_OP_PERMUTE && is_filled(&user->results[0], is_transposed(user) ? 1 - axis : axis)) return true;
        if (user->id != TILE_OP_FILL) continue;
        const TileAttribute *axes = tile_op_get(user, TILE_ATTRIBUTE_AXES);
        for (unsigned i = 0; i < axes->count; i++)
            if (axes->integers[i] == axis) return true;
        if (is_filled(&user->results[0], axis)) return true;
    }
    return false;
}

static void look_for_temporary(TileOp *op, void *found) {
    *(bool *)found |= op->id == TILE_OP_STORE_TILE && tile_op_operand(op, 0)->type->access == TILE_ACCESS_TEMP;
}

/* Do tiles go to a temporary? Parts of sums do, with all their rows. */
static bool stores_temporaries(const TileOp *op) {
    bool found = false;
    tile_block_walk(&tile_op_func(op)->body, look_for_temporary, &found);
    return found;
}

/* The dimension along which a tile is copied as far as the tensor goes, so that a box of 64 rows takes no longer than one of the 16 that the tensor
 * has: the rows of a tile that has the same ones in each iteration, of which nobody takes those that are not there. */
static bool cut_dimension(const TileOp *load, int64_t *dimension) {
    enum { MOST_ROWS = 64 };
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileType *tile = load->results[0].type;
    const TileOp *loop = load->block->op;
    bool repeated = tile_op_is(loop, TILE_OP_FOR) && !tile_loop_is_of_programs(loop);
    if (!gpu_by_map(load) || !repeated || tile->rank != 2 || tile->extent[0] > MOST_ROWS) return false;
    if (tile_op_get(load, TILE_ATTRIBUTE_MULTICAST) || tile_op_get(load, TILE_ATTRIBUTE_PAIRS)) return false;
    if (tile_op_has_part(load, TILE_PARTS_FILL) || is_filled(&load->results[0], 0) || stores_temporaries(load)) return false;
    unsigned rank = tile_access_read(load, indices);
    for (unsigned d = 0; d < rank; d++) {
        const TileAccessIndex *rows = &indices[d];
        if (rows->kind != TILE_ACCESS_RANGE || rows->axis) continue;
        *dimension = d;
        return tile_value_is_integer(rows->step, 1) && tile_value_is_integer(rows->lo, 0) && tile_value_outside(rows->first, loop);
    }
    return false;
}

static void build_copy(TileBuilder *b, const TileOp *load, TileValue *place) {
    unsigned end = tile_access_end(load);
    TileValue **operands = TILE_NEW_ARRAY(b->module->arena, TileValue *, end + 1);
    int64_t outside[TILE_MAX_TENSOR_RANK];
    operands[0] = tile_op_operand(load, 0);
    operands[1] = place;
    for (unsigned i = 1; i < end; i++) operands[i + 1] = tile_op_operand(load, i);
    unsigned tested = gpu_by_map(load) ? take_indices(load, operands, outside) : 0;
    const TileType *type = load->results[0].type;
    TileAttribute attributes[8] = {*tile_op_get(load, TILE_ATTRIBUTE_ACCESS),
                                   {.key = TILE_ATTRIBUTE_TYPES, .count = 1, .types = &type}};
    unsigned count = 2;
    if (gpu_by_map(load)) attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_TENSOR_MAP, .integer = 1};
    if (tile_op_get(load, TILE_ATTRIBUTE_MULTICAST)) attributes[count++] = *tile_op_get(load, TILE_ATTRIBUTE_MULTICAST);
    if (tile_op_get(load, TILE_ATTRIBUTE_PAIRS)) attributes[count++] = *tile_op_get(load, TILE_ATTRIBUTE_PAIRS);
    const TileAttribute *clears = tile_op_get(load, TILE_ATTRIBUTE_CLEARS);
    if (clears) attributes[count++] = *clears;
    int64_t cut;
    if (cut_dimension(load, &cut)) attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_CUT, .count = 1, .integers = &cut};
    if (tested) attributes[count++] = (TileAttribute){.key = TILE_ATTRIBUTE_OUTSIDE, .count = tested, .integers = outside};
    tile_build_op(b, TILE_OP_COPY_TILE, operands, end + 1, attributes, count, NULL, 0);
}

static TileValue *place_of_lane(TileBuilder *b, TileValue *first, TileValue *lane, int64_t step) {
    if (step > 1) lane = tile_build_binary(b, TILE_OP_MUL, lane, tile_build_i64(b, step));
    return tile_build_binary(b, TILE_OP_ADD, first, lane);
}

/* The bounds of what has to be cleared along an axis: lanes outside of the tensor the map has copied as 0. */
static void build_cleared_bounds(TileBuilder *b, const TileOp *load, unsigned axis, TileValue **lo, TileValue **hi) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned d = 0, rank = tile_access_read(load, indices);
    while (d < rank && (indices[d].axis != (int)axis || !indices[d].lo)) d++;
    TileValue *first = indices[d].first, *zero = tile_build_i64(b, 0), *end = tile_build_i64(b, load->results[0].type->extent[axis]),
              *extent = tile_build_dim(b, tile_op_operand(load, 0), d), *bound = gpu_bound_of_map(load, indices[d].hi);
    int64_t step = gpu_step_of_index(&indices[d]);
    TileValue *ends = tile_build_binary(b, TILE_OP_GE, place_of_lane(b, first, bound, step), extent);
    *lo = zero;
    *hi = tile_build_ternary(b, TILE_OP_SELECT, ends, end, bound);
    const TileAttribute *behind = tile_op_get(load, TILE_ATTRIBUTE_CLEARS_BEHIND);
    for (unsigned i = 0; behind && i < behind->count; i++)
        if (behind->integers[i] == axis) return;
    TileValue *last = tile_build_i64(b, step - 1), *begins = tile_build_binary(b, TILE_OP_LE, place_of_lane(b, first, indices[d].lo, step), last);
    *lo = tile_build_ternary(b, TILE_OP_SELECT, begins, zero, indices[d].lo);
}

/* A map copies what lies beyond a range that ends before the tensor, where 0 may be wanted. */
static void build_clear(TileBuilder *b, const TileOp *load, TileValue *place) {
    const TileAttribute *clears = tile_op_get(load, TILE_ATTRIBUTE_CLEARS);
    TileValue *operands[1 + 2 * TILE_MAX_TILE_RANK] = {place};
    const TileType *type = load->results[0].type;
    int64_t axes[TILE_MAX_TILE_RANK];
    unsigned count = 0;
    for (unsigned i = 0; clears && i < clears->count; i++) {
        unsigned axis = (unsigned)clears->integers[i];
        if (!tile_op_has_part(load, TILE_PARTS_FILL) && !is_filled(&load->results[0], axis)) continue;
        build_cleared_bounds(b, load, axis, &operands[1 + 2 * count], &operands[2 + 2 * count]);
        axes[count++] = axis;
    }
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_AXES, .count = count, .integers = axes},
                                  {.key = TILE_ATTRIBUTE_TYPES, .count = 1, .types = &type}};
    if (count) tile_build_op(b, TILE_OP_CLEAR_TILE, operands, 1 + 2 * count, attributes, type->rank > 2 ? 2 : 1, NULL, 0);
}

static void drop_fills(TileValue *value) {
    for (TileUse *use = value->first_use, *next; use; use = next) {
        next = use->next;
        TileOp *user = use->user;
        if (user->id == TILE_OP_PERMUTE) drop_fills(&user->results[0]);
        if (user->id != TILE_OP_FILL) continue;
        drop_fills(&user->results[0]);
        tile_value_replace(&user->results[0], value);
        tile_op_erase(user);
        next = value->first_use; /* the list has changed; uses before this one have no fills left */
    }
}

/* Is what the fill writes the 0 of a map's, no bit of which is set? */
static bool writes_no_bit(const TileOp *fill) {
    uint64_t bits;
    return tile_value_bits(tile_op_operand(fill, 1), &bits) && !bits;
}

/* What a map does not reach is 0 in its slot: products, for which the sign of 0 makes no difference, and whoever else reads it there have no need
 * of a fill. */
static void drop_repeated_fills(TileValue *value, const TileOp *load, bool transposed) {
    for (TileUse *use = value->first_use, *next; use; use = next) {
        TileOp *user = use->user;
        Readers readers = {0};
        next = use->next;
        if (user->id == TILE_OP_PERMUTE && value->type->rank == 2)
            drop_repeated_fills(&user->results[0], load, transposed != is_transposed(user));
        if (user->id != TILE_OP_FILL || use->index || !repeats_load(user, load, transposed)) continue;
        if (!writes_no_bit(user) && !only_multiplied(&user->results[0], load, transposed, &readers)) continue;
        tile_value_replace(&user->results[0], value);
        tile_op_erase(user);
        next = value->first_use; /* the list has changed */
    }
}

/* What makes rows of the loaded tile gets them as they lie in the slot. */
static void replace_load(TileOp *load, TileValue *rows) {
    TileValue *loaded = &load->results[0];
    if (loaded->type->rank == 1) {
        TileBuilder b = tile_builder_before(tile_op_func(load)->module, load);
        b.location = load->location;
        rows = tile_build_reshape(&b, rows, 1, loaded->type->extent);
    }
    if (loaded->type->rank <= 2) {
        tile_value_replace(loaded, rows);
        return;
    }
    drop_fills(loaded);
    while (loaded->first_use) {
        TileOp *reshape = loaded->first_use->user;
        tile_value_replace(&reshape->results[0], rows);
        tile_op_erase(reshape);
    }
}

/* Do threads alone read the tile from the slot, where they begin to compute with it? */
static bool is_read_once(const TileValue *tile) {
    for (const TileUse *use = tile->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_DOT || use->user->id == TILE_OP_PERMUTE) return false;
    return true;
}

static bool takes(const TileOp *op, const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        while (user && user->block != op->block) user = user->block->op;
        if (user == op) return true;
    }
    return false;
}

/* The op behind all in the block that take the value. */
static TileOp *op_behind(const TileValue *value, const TileBlock *block) {
    TileOp *behind = value->op->next;
    for (const TileOp *op = value->op->next; op != block->last; op = op->next)
        if (takes(op, value)) behind = op->next;
    return behind;
}

/* The slot is released where the block ends, behind all who read the tile; one that a map fills for what is computed on its way to
 * a product, as soon as it has been read. */
void gpu_load_through_channel(TileBuilder *at, TileOp *load, TileValue *channel) {
    TileBuilder b = tile_builder_before(at->module, load), last = tile_builder_before(at->module, load->block->last);
    bool multiplied = gpu_load_is_copied(load), computed = gpu_by_map(load) && (gpu_load_is_computed(load) || gpu_load_is_added(load));
    const TileType *type = gpu_copied_type(at->module->context, load->results[0].type);
    last.location = load->location;
    const TileAttribute *latency = tile_op_get(load, TILE_ATTRIBUTE_LATENCY);
    TileValue *place =
        tile_op_result(tile_build_op(&b, TILE_OP_CHANNEL_ACQUIRE, &channel, 1, latency, latency != NULL, NULL, 1), 0);
    build_copy(&b, load, place);
    tile_build_op(&b, TILE_OP_CHANNEL_COMMIT, &place, 1, NULL, 0, NULL, 0);
    place = tile_op_result(tile_build_op(&b, TILE_OP_CHANNEL_WAIT, &channel, 1, NULL, 0, NULL, 1), 0);
    build_clear(&b, load, place);
    TileValue *tile = tile_op_result(tile_build_op(&b, TILE_OP_SHARED_TILE, &place, 1, NULL, 0, &type, 1), 0);
    tile->name = load->results[0].name;
    if (computed) drop_repeated_fills(&load->results[0], load, false);
    bool once = computed && is_read_once(&load->results[0]);
    replace_load(load, tile);
    if (once) last.before = op_behind(tile, load->block);
    tile_build_op(&last, TILE_OP_CHANNEL_RELEASE, &place, 1, NULL, 0, NULL, 0);
    tile_op_erase(load);
    if (multiplied) drop_fills(tile);
    if (b.error || last.error) at->error = b.error ? b.error : last.error;
}
