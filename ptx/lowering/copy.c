/* Copies of tiles from global to shared memory (`copy_tile`): asynchronously in chunks of 16 bytes, or in words, where rows become
 * columns; element by element otherwise. */
#include "lang/ir/operands.h"
#include "ptx/lowering/access.h"

typedef struct Copy {
    Gpu *gpu;
    GpuAccess access;
    GpuSharedTile tile;
    TileValue *to;
    unsigned last; /* axis of the columns; all others make up the rows */
    bool rows_exist; /* what is copied now has no others */
    bool rare; /* elements are not copied one by one where rows begin as is known and strides are as usual */
    const GpuDimension *dimension[TILE_MAX_TILE_RANK]; /* of the tile's axes */
} Copy;

/* Can chunks of 16 bytes be copied asynchronously? Uniform over the block. NULL: never. */
static TileValue *lies_in_chunks(Copy *copy) {
    Gpu *gpu = copy->gpu;
    GpuAccess *access = &copy->access;
    const GpuDimension *unit = gpu_unit_dimension(access);
    unsigned size = tile_scalar_bytes(copy->tile.scalar);
    if (!unit || gpu_aligned_width(access, TILE_CHUNK_BYTES / size) * size != TILE_CHUNK_BYTES) return NULL;
    return gpu_and(gpu, gpu_is_in_vectors(gpu, access, TILE_CHUNK_BYTES / size),
                   gpu_binary(gpu, TILE_OP_LE, unit->lo, gpu_i64(gpu, 0)));
}

/* The extents of the tile's axes as they are stored: rows and columns may be rounded up. */
static TileLayoutShape stored_shape(const Copy *copy) {
    TileLayoutShape shape = tile_layout_shape(copy->access.type);
    shape.extent[0] = gpu_stored_extent(&copy->tile, 0);
    for (unsigned a = 1; a < copy->last; a++) shape.extent[0] /= shape.extent[a];
    shape.extent[copy->last] = gpu_stored_extent(&copy->tile, 1);
    return shape;
}

/* Is the integer of tile form certainly a multiple of that? */
static bool is_multiple(const TileValue *value, int64_t of, unsigned depth) {
    const TileOp *op = value->op;
    int64_t number;
    if (tile_value_integer(value, &number)) return number % of == 0;
    if (!depth) return false;
    if (!op) { /* a loop's number */
        const TileOp *loop = value->block->op;
        return loop && loop->id == TILE_OP_FOR && value->index == 0 && is_multiple(tile_op_operand(loop, 0), of, depth - 1) &&
               is_multiple(tile_op_named(loop, TILE_OPERAND_STEP), of, depth - 1);
    }
    bool product = op->id == TILE_OP_MUL, choice = op->id == TILE_OP_SELECT;
    if (!product && !choice && op->id != TILE_OP_ADD && op->id != TILE_OP_SUB) return false;
    bool first = is_multiple(tile_op_operand(op, choice ? 1 : 0), of, depth - 1),
         second = is_multiple(tile_op_operand(op, choice ? 2 : 1), of, depth - 1);
    return product ? first || second : first && second;
}

/* Do rows of the tile begin between chunks, if those of the tensor do and as far as is known of their length? Asks for that. */
static bool begins_in_chunks(const Copy *copy, const TileOp *op) {
    enum { MOST_DEPTH = 8 };
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned last = tile_access_read(op, indices) - 1, elements = TILE_CHUNK_BYTES / tile_scalar_bytes(copy->tile.scalar);
    TileParameter *parameter = copy->access.tensor->parameter;
    for (unsigned wanted = elements; wanted > 1; wanted /= 2) parameter->asked_multiple |= wanted;
    int64_t multiple = parameter->facts.multiple[last];
    return is_multiple(indices[last].first, elements, MOST_DEPTH) && (multiple == TILE_UNKNOWN || multiple >= elements);
}

/* Is every lane along the first `axes` axes valid? Uniform over the block. */
static TileValue *is_whole_along(Copy *copy, unsigned axes) {
    Gpu *gpu = copy->gpu;
    TileLayoutShape shape = stored_shape(copy);
    TileValue *whole = NULL;
    for (unsigned a = 0; a < axes; a++) {
        TileValue *extent = gpu_i64(gpu, shape.extent[a]), *zero = gpu_i64(gpu, 0);
        whole = gpu_and(gpu, whole, gpu_binary(gpu, TILE_OP_LE, copy->dimension[a]->lo, zero));
        whole = gpu_and(gpu, whole, gpu_binary(gpu, TILE_OP_GE, copy->dimension[a]->hi, extent));
    }
    return whole;
}

static TileValue *is_whole(Copy *copy) { return is_whole_along(copy, copy->last + 1); }

/* The layout of the tile's rows, where several axes make them up. */
static TileLayout rows_layout(const Copy *copy, const TileLayout *layout) {
    TileLayoutShape shape = {.rank = 2, .extent = {gpu_stored_extent(&copy->tile, 0), gpu_stored_extent(&copy->tile, 1)}};
    TileLayout rows = *layout;
    if (copy->last > 1) tile_layout_reshape(layout, &shape, &rows);
    return rows;
}

/* The address of a register, from that of an earlier one. Their difference is uniform, so no thread keeps the address
 * of each chunk in registers. */
static TileValue *next_address(Copy *copy, TileValue *address, uint32_t reg, uint32_t before) {
    Gpu *gpu = copy->gpu;
    const TileLayout *layout = &copy->access.layout;
    for (unsigned a = 0; a <= copy->last; a++) {
        int64_t lanes = gpu_register_index(layout, a, reg) - gpu_register_index(layout, a, before);
        if (!lanes) continue;
        TileValue *bytes = gpu_binary(gpu, TILE_OP_MUL, copy->dimension[a]->per_lane, gpu_i64(gpu, lanes));
        address = tile_build_ptr_add(&gpu->b, address, bytes);
    }
    return address;
}

/* Copies so many bytes of `size`, and zeros behind them. */
static void build_copy(Gpu *gpu, TileValue *to, TileValue *from, TileValue *bytes, int64_t size) {
    const TileAttribute attribute = {.key = TILE_ATTRIBUTE_BYTES, .integer = size};
    TileValue *operands[] = {to, from, bytes};
    tile_build_op(&gpu->b, TILE_OP_COPY_ASYNC, operands, 3, &attribute, 1, NULL, 0);
}

/* Copies all chunks of a tile whose lanes are all valid. */
static void copy_chunks(Copy *copy) {
    Gpu *gpu = copy->gpu;
    const TileLayout *layout = &copy->access.layout;
    TileLayout rows = rows_layout(copy, layout);
    GpuTileAddresses places = gpu_tile_addresses(gpu, copy->to, &copy->tile, &rows, false);
    uint32_t elements = TILE_CHUNK_BYTES / tile_scalar_bytes(copy->tile.scalar);
    TileValue *all = tile_build_integer(&gpu->b, tile_type_scalar(gpu->module->context, TILE_I32), TILE_CHUNK_BYTES);
    TileValue *from = copy->access.base;
    for (uint32_t r = 0; r < tile_layout_registers(layout); r += elements) {
        if (r) from = next_address(copy, from, r, r - elements);
        build_copy(gpu, gpu_register_address(&places, r), from, all, TILE_CHUNK_BYTES);
    }
}

static TileValue *is_valid(Gpu *gpu, const GpuDimension *dimension, TileValue *lane) {
    return gpu_and(gpu, gpu_binary(gpu, TILE_OP_GE, lane, dimension->lo),
                   gpu_binary(gpu, TILE_OP_LT, lane, dimension->hi));
}

/* Indices along the tile's axes, and their addresses. */
typedef struct Position {
    TileValue *at[TILE_MAX_TILE_RANK], *from, *to;
} Position;

/* Is the position's row valid? */
static TileValue *has_row(Copy *copy, const Position *position) {
    TileValue *valid = NULL;
    for (unsigned a = 0; a < copy->last; a++)
        valid = gpu_and(copy->gpu, valid, is_valid(copy->gpu, copy->dimension[a], position->at[a]));
    return valid;
}

/* Copies a chunk of which only the first lanes of its row may be valid; the rest becomes 0. */
static void copy_partial_chunk(Copy *copy, const Position *position) {
    Gpu *gpu = copy->gpu;
    TileValue *row = has_row(copy, position);
    TileValue *rest = gpu_binary(gpu, TILE_OP_SUB, copy->dimension[copy->last]->hi, position->at[copy->last]);
    rest = gpu_binary(gpu, TILE_OP_MUL, rest, gpu_i64(gpu, tile_scalar_bytes(copy->tile.scalar)));
    rest = gpu_binary(gpu, TILE_OP_MAX, gpu_binary(gpu, TILE_OP_MIN, rest, gpu_i64(gpu, TILE_CHUNK_BYTES)),
                      gpu_i64(gpu, 0));
    rest = tile_build_ternary(&gpu->b, TILE_OP_SELECT, row, rest, gpu_i64(gpu, 0));
    build_copy(gpu, position->to, position->from, tile_build_convert(&gpu->b, rest, TILE_I32), TILE_CHUNK_BYTES);
}

/* The value of an element that may be invalid: 0 then. */
static TileValue *load_element(Copy *copy, const Position *position, TileValue *exists) {
    Gpu *gpu = copy->gpu;
    TileValue *mask = gpu_and(gpu, exists, has_row(copy, position));
    mask = gpu_and(gpu, mask, is_valid(gpu, copy->dimension[copy->last], position->at[copy->last]));
    const TileType *type = tile_type_scalar(gpu->module->context, copy->tile.scalar);
    return tile_build_load(&gpu->b, type, position->from, mask, tile_build_bits(&gpu->b, type, 0), 0);
}

/* The position of the lanes from `width` times `number` on, rows one after the other. */
static Position position_of(Copy *copy, TileValue *index, int64_t width) {
    Gpu *gpu = copy->gpu;
    TileBuilder *b = &gpu->b;
    int64_t columns = gpu_stored_extent(&copy->tile, 1) / width;
    TileValue *number = tile_build_bitcast(b, index, TILE_U64);
    TileValue *row = gpu_binary(gpu, TILE_OP_DIV, number, tile_build_integer(b, number->type, columns));
    row = tile_build_bitcast(b, row, TILE_I64);
    TileValue *column =
        gpu_binary(gpu, TILE_OP_SUB, index, gpu_binary(gpu, TILE_OP_MUL, row, gpu_i64(gpu, columns)));
    if (width > 1) column = gpu_binary(gpu, TILE_OP_MUL, column, gpu_i64(gpu, width));
    Position position = {.from = copy->access.origin};
    position.at[copy->last] = column;
    position.at[0] = row;
    for (unsigned a = copy->last; a-- > 1;) {
        int64_t extent = copy->access.type->extent[a];
        position.at[a] = gpu_binary(gpu, TILE_OP_AND, position.at[0], gpu_i64(gpu, extent - 1));
        position.at[0] = gpu_binary(gpu, TILE_OP_SHR, position.at[0], gpu_i64(gpu, gpu_floor_log2(extent)));
    }
    for (unsigned a = 0; a <= copy->last; a++) {
        TileValue *bytes = gpu_binary(gpu, TILE_OP_MUL, position.at[a], copy->dimension[a]->per_lane);
        position.from = tile_build_ptr_add(b, position.from, bytes);
    }
    bool turned = copy->tile.by_columns;
    position.to = gpu_element_address(gpu, &copy->tile, copy->to, turned ? column : row, turned ? row : column);
    return position;
}

/* A loop over a tile; neighbouring threads copy neighbours of a row, `width` lanes each, and a thread does so `times` in
 * an iteration. This path is rare: it keeps nothing live in registers outside of itself. */
static void copy_in_loop(Copy *copy, int64_t width, int64_t times,
                         void (*body)(Copy *copy, TileValue *index, int64_t count)) {
    Gpu *gpu = copy->gpu;
    int64_t count = gpu_stored_extent(&copy->tile, 1) / width * gpu_stored_extent(&copy->tile, 0),
            threads = TILE_WARP_THREADS << gpu->log_warps;
    TileBuilder outer = gpu->b;
    TileValue *thread = tile_op_result(tile_build_op(&outer, TILE_OP_HERE, &gpu->thread, 1, NULL, 0, NULL, 1), 0);
    TileOp *loop =
        tile_build_for(&outer, thread, gpu_i64(gpu, count), gpu_i64(gpu, threads * times), NULL, 0);
    tile_op_set_integer(gpu->module, loop, TILE_ATTRIBUTE_DIVERGENT, 1);
    outer.before = gpu->b.before;
    gpu->b.block = &loop->regions[0];
    gpu->b.before = NULL;
    body(copy, loop->regions[0].arguments[0], count);
    tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    gpu->b = outer;
}

static void copy_partial_chunk_at(Copy *copy, TileValue *index, int64_t count) {
    Position position = position_of(copy, index, TILE_CHUNK_BYTES / tile_scalar_bytes(copy->tile.scalar));
    copy_partial_chunk(copy, &position);
}

/* Bytes of the register's chunk that are in the tensor, as far as its column says: all of some, or the first of it. */
static TileValue *bytes_inside(Copy *copy, const TileLayout *layout, uint32_t reg) {
    Gpu *gpu = copy->gpu;
    const TileType *i32 = tile_type_scalar(gpu->module->context, TILE_I32);
    TileValue *column = gpu_binary(gpu, TILE_OP_ADD, gpu_thread_index(gpu, layout, copy->last), gpu_i64(gpu, gpu_register_index(layout, copy->last, reg)));
    TileValue *left = gpu_binary(gpu, TILE_OP_SUB, copy->dimension[copy->last]->hi, column);
    int64_t size = tile_scalar_bytes(copy->tile.scalar);
    left = gpu_binary(gpu, TILE_OP_MAX, gpu_binary(gpu, TILE_OP_MIN, left, gpu_i64(gpu, TILE_CHUNK_BYTES / size)), gpu_i64(gpu, 0));
    return gpu_binary(gpu, TILE_OP_MUL, tile_build_convert(&gpu->b, left, TILE_I32), tile_build_integer(&gpu->b, i32, size));
}

/* The same chunks as where all are valid, each with as many bytes as exist of it. Indices are computed here, so that no registers are
 * live for them elsewhere. */
static void copy_each_chunk(Copy *copy) {
    Gpu *gpu = copy->gpu;
    TileValue *thread = gpu->thread, *inside = NULL, *from = NULL;
    gpu->thread = tile_op_result(tile_build_op(&gpu->b, TILE_OP_HERE, &thread, 1, NULL, 0, NULL, 1), 0);
    const TileLayout layout = copy->access.layout;
    GpuAccess chunks;
    gpu_read_access(gpu, copy->access.op, copy->access.type, &layout, &chunks);
    TileLayout rows = rows_layout(copy, &layout);
    GpuTileAddresses places = gpu_tile_addresses(gpu, copy->to, &copy->tile, &rows, false);
    uint32_t elements = TILE_CHUNK_BYTES / tile_scalar_bytes(copy->tile.scalar);
    int64_t before = -1;
    TileValue *none = tile_build_integer(&gpu->b, tile_type_scalar(gpu->module->context, TILE_I32), 0);
    for (uint32_t r = 0; r < tile_layout_registers(&layout); r += elements) {
        int64_t column = gpu_register_index(&layout, copy->last, r);
        TileValue *row = NULL;
        if (column != before) inside = bytes_inside(copy, &layout, r);
        before = column;
        for (unsigned a = 0; a < copy->last; a++)
            row = gpu_and(gpu, row, gpu_lies_between(gpu, &layout, a, r, copy->dimension[a]->lo, copy->dimension[a]->hi));
        TileValue *bytes = row ? tile_build_ternary(&gpu->b, TILE_OP_SELECT, row, inside, none) : inside;
        from = r ? next_address(copy, from, r, r - elements) : chunks.base;
        build_copy(gpu, gpu_register_address(&places, r), from, bytes, TILE_CHUNK_BYTES);
    }
    gpu->thread = thread;
}

/* May a tile that is copied beside this one begin in front of its tensor, as those of images do? Then tiles that are not whole are usual. */
static bool has_borders(const TileOp *copy) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    for (const TileOp *op = copy->block->first; op; op = op->next) {
        unsigned rank = op->id == TILE_OP_COPY_TILE ? tile_access_read(op, indices) : 0;
        for (unsigned d = 0; d < rank; d++)
            if (indices[d].kind == TILE_ACCESS_RANGE && !tile_value_integer(indices[d].lo, &(int64_t){0})) return true;
    }
    return false;
}

/* Words and halves of them, of which programs at a tensor's end copy as many as others, chunk by chunk: a launch ends with its slowest programs. A loop for what
 * is smaller, or much, of which products whose registers are limited leave room for less where tiles that are not whole are rare; and where
 * each chunk has bounds at both ends beside 128 registers or fewer, which would spill. So would halves of words beside sums that a loop
 * computes with, as those of attention. */
static void copy_partial_chunks(Copy *copy) {
    enum { MOST_CHUNKS = 16, FEW_CHUNKS = 8, WORD = 4, TIGHT_REGISTERS = 128 };
    unsigned size = tile_scalar_bytes(copy->tile.scalar);
    uint32_t count = tile_layout_registers(&copy->access.layout) * size / TILE_CHUNK_BYTES, registers = copy->gpu->func->registers;
    bool once = !gpu_holds_first_copy(copy->gpu, &copy->access.layout), borders = registers && has_borders(copy->access.op);
    bool tight = borders && registers <= TIGHT_REGISTERS;
    bool simple = size == WORD || (size < WORD && !copy->gpu->uses_sums);
    if (simple && once && !tight && count && count <= (registers && !borders ? FEW_CHUNKS : MOST_CHUNKS)) {
        copy_each_chunk(copy);
        return;
    }
    copy_in_loop(copy, TILE_CHUNK_BYTES / tile_scalar_bytes(copy->tile.scalar), 1, copy_partial_chunk_at);
}

/* Elements that a thread loads before it stores the first one: their latencies overlap. */
enum { ELEMENTS_TOGETHER = 4 };

static void copy_elements_at(Copy *copy, TileValue *index, int64_t count) {
    Gpu *gpu = copy->gpu;
    TileValue *values[ELEMENTS_TOGETHER], *exists[ELEMENTS_TOGETHER];
    Position positions[ELEMENTS_TOGETHER];
    int64_t threads = TILE_WARP_THREADS << gpu->log_warps;
    for (int64_t i = 0; i < ELEMENTS_TOGETHER; i++) {
        TileValue *number = i ? gpu_binary(gpu, TILE_OP_ADD, index, gpu_i64(gpu, i * threads)) : index;
        bool certain = i == 0 || count % (threads * ELEMENTS_TOGETHER) == 0;
        exists[i] = certain ? NULL : gpu_binary(gpu, TILE_OP_LT, number, gpu_i64(gpu, count));
        positions[i] = position_of(copy, number, 1);
        values[i] = load_element(copy, &positions[i], exists[i]);
    }
    for (int64_t i = 0; i < ELEMENTS_TOGETHER; i++)
        tile_build_store(&gpu->b, values[i], positions[i].to, exists[i], 0);
}

static TileValue *lane_index(Gpu *gpu, const TileLayout *layout, unsigned axis, int64_t of_register) {
    return gpu_binary(gpu, TILE_OP_ADD, gpu_thread_index(gpu, layout, axis), gpu_i64(gpu, of_register));
}

/* The same access from another row of the tile on. */
static void move_rows(Gpu *gpu, GpuAccess *access, TileValue **to, const GpuSharedTile *tile, TileValue *row) {
    for (unsigned d = 0; d < access->rank; d++) {
        GpuDimension *dimension = &access->dimensions[d];
        if (dimension->axis != 0) continue;
        dimension->lo = gpu_binary(gpu, TILE_OP_SUB, dimension->lo, row);
        dimension->hi = gpu_binary(gpu, TILE_OP_SUB, dimension->hi, row);
        access->base = tile_build_ptr_add(&gpu->b, access->base, gpu_binary(gpu, TILE_OP_MUL, row, dimension->per_lane));
    }
    *to = tile_build_ptr_add(&gpu->b, *to, gpu_binary(gpu, TILE_OP_MUL, row, gpu_i64(gpu, tile->row_bytes)));
}

/* Copies elements of whole words asynchronously, each under the predicates of its row, where some rows do not exist, and its column. Neighbouring threads
 * have neighbours of a row. The layout may be that of a part of the tile, which begins at `row`; NULL: at the first. Indices are computed
 * here, so that no registers are live for them elsewhere. */
static void copy_words(Copy *copy, const TileLayout *layout, TileValue *row) {
    Gpu *gpu = copy->gpu;
    TileValue *thread = gpu->thread, *valid[TILE_MAX_TILE_RANK], *to = copy->to;
    gpu->thread = tile_op_result(tile_build_op(&gpu->b, TILE_OP_HERE, &thread, 1, NULL, 0, NULL, 1), 0);
    const TileType *i32 = tile_type_scalar(gpu->module->context, TILE_I32);
    TileValue *size = tile_build_integer(&gpu->b, i32, tile_scalar_bytes(copy->tile.scalar)),
              *none = tile_build_integer(&gpu->b, i32, 0);
    GpuAccess words;
    gpu_read_access(gpu, copy->access.op, copy->access.type, layout, &words);
    if (row) move_rows(gpu, &words, &to, &copy->tile, row);
    const GpuDimension *dimension[TILE_MAX_TILE_RANK];
    for (unsigned d = 0; d < words.rank; d++)
        if (words.dimensions[d].axis >= 0) dimension[words.dimensions[d].axis] = &words.dimensions[d];
    TileLayout rows = row ? *layout : rows_layout(copy, layout);
    GpuTileAddresses places = gpu_tile_addresses(gpu, to, &copy->tile, &rows, copy->tile.by_columns);
    int64_t before[TILE_MAX_TILE_RANK] = {-1, -1, -1, -1, -1};
    for (uint32_t r = 0; r < tile_layout_registers(layout); r++) {
        TileValue *both = NULL;
        for (unsigned a = copy->rows_exist ? copy->last : 0; a <= copy->last; a++) {
            int64_t index = gpu_register_index(layout, a, r);
            if (index != before[a]) valid[a] = is_valid(gpu, dimension[a], lane_index(gpu, layout, a, index));
            before[a] = index;
            both = gpu_and(gpu, both, valid[a]);
        }
        build_copy(gpu, gpu_register_address(&places, r), gpu_access_address(gpu, &words, r),
                   tile_build_ternary(&gpu->b, TILE_OP_SELECT, both, size, none), tile_scalar_bytes(copy->tile.scalar));
    }
    gpu->thread = thread;
}

/* Words of a thread that are copied one after the other; of more, a loop copies so many at a time, and code stays small. */
enum { MOST_WORDS = 32 };

/* The rows of a part of the tile of which each thread copies MOST_WORDS or fewer; 0: it has no such parts. A part begins where a pattern of
 * the swizzle does. */
static int64_t rows_of_part(const Copy *copy, TileLayout *layout) {
    enum { SWIZZLED_ROWS = 16 };
    if (copy->last != 1) return 0;
    TileLayoutShape shape = stored_shape(copy);
    for (int64_t parts = 2; shape.extent[0] % (SWIZZLED_ROWS * parts) == 0; parts *= 2) {
        TileLayoutShape part = shape;
        part.extent[0] /= parts;
        *layout = gpu_spread(&part, 0, 0, copy->gpu->func->threads);
        if (gpu_holds_first_copy(copy->gpu, layout)) return 0;
        if (tile_layout_registers(layout) <= MOST_WORDS) return part.extent[0];
    }
    return 0;
}

static void copy_words_in_parts(Copy *copy, const TileLayout *layout, int64_t rows) {
    Gpu *gpu = copy->gpu;
    TileBuilder outer = gpu->b;
    TileOp *loop = tile_build_for(&outer, gpu_i64(gpu, 0), gpu_i64(gpu, stored_shape(copy).extent[0]), gpu_i64(gpu, rows), NULL, 0);
    outer.before = gpu->b.before;
    gpu->b.block = &loop->regions[0];
    gpu->b.before = NULL;
    copy_words(copy, layout, loop->regions[0].arguments[0]);
    tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    outer.error = gpu->b.error ? gpu->b.error : outer.error;
    gpu->b = outer;
}

/* ---- rows that become columns ---- */

/* Sixteen neighbours of a row, and two rows, for each warp: sectors are read whole. They are written one by one, whatever rows they
 * are of, and requests to the L2 cache are fewer than with eight. */
static TileLayout turned_layout(const Copy *copy) {
    enum { LOG_NEIGHBOURS = 4 };
    TileLayoutShape shape = stored_shape(copy);
    TileLayoutBlocked blocked = {0};
    unsigned left[TILE_MAX_TILE_RANK], lanes = TILE_LANE_BITS, warps = copy->gpu->log_warps;
    for (unsigned a = 0; a <= copy->last; a++) {
        left[a] = gpu_log_divided(shape.extent[a]);
        blocked.order[a] = (uint8_t)(copy->last - a);
    }
    for (unsigned n = 0; n <= copy->last + 1; n++) { /* what rows leave, the columns have in the end */
        unsigned a = n > copy->last ? copy->last : copy->last - n, most = n ? lanes : LOG_NEIGHBOURS;
        unsigned here = gpu_least(most, left[a]), more = n ? gpu_least(warps, left[a] - here) : 0;
        blocked.lanes[a] = (uint8_t)(blocked.lanes[a] + here);
        blocked.warps[a] = (uint8_t)(blocked.warps[a] + more);
        left[a] -= here + more;
        lanes -= here;
        warps -= more;
    }
    return tile_layout_blocked(&shape, &blocked);
}

/* All words are valid. Those of a row are constants apart. */
static void copy_all_words(Copy *copy) {
    Gpu *gpu = copy->gpu;
    const TileLayout *layout = &copy->access.layout;
    TileLayout rows = rows_layout(copy, layout);
    GpuTileAddresses places = gpu_tile_addresses(gpu, copy->to, &copy->tile, &rows, true);
    int64_t bytes = tile_scalar_bytes(copy->tile.scalar);
    TileValue *all = tile_build_integer(&gpu->b, tile_type_scalar(gpu->module->context, TILE_I32), bytes);
    TileValue *row = copy->access.base;
    for (uint32_t r = 0, first = 0; r < tile_layout_registers(layout); r++) {
        TileValue *from = next_address(copy, row, r, first);
        bool other = false;
        for (unsigned a = 0; a < copy->last; a++)
            other |= gpu_register_index(layout, a, r) != gpu_register_index(layout, a, first);
        if (other) {
            row = from;
            first = r;
        }
        build_copy(gpu, gpu_register_address(&places, r), from, all, bytes);
    }
}

static void copy_valid_words(Copy *copy) { copy_words(copy, &copy->access.layout, NULL); }

/* Elements that a thread loads together, of a column and of rows that all exist: one predicate for all. Of so many, each
 * address is made from the one before: behind longer chains LLVM does not see that nobody writes to the tensor. */
enum { ROWS_TOGETHER = 16, ROWS_IN_CHAIN = 8 };

/* The elements of so many registers, or 0 where the column does not exist. */
static void load_rows(Copy *copy, const uint32_t *registers, uint32_t count, TileValue **values) {
    Gpu *gpu = copy->gpu;
    const GpuDimension *column = copy->dimension[copy->last];
    const TileType *type = tile_type_scalar(gpu->module->context, copy->tile.scalar), *types[ROWS_TOGETHER];
    TileValue *exists = gpu_lies_between(gpu, &copy->access.layout, copy->last, registers[0], column->lo, column->hi);
    TileValue *from = NULL, *zeros[ROWS_TOGETHER];
    TileOp *branch = NULL;
    TileBuilder outer = gpu->b;
    for (uint32_t i = 0; i < count; i++) types[i] = type;
    if (exists) {
        branch = tile_build_if(&outer, exists, types, count);
        tile_op_set_integer(gpu->module, branch, TILE_ATTRIBUTE_DIVERGENT, 1);
        gpu_enter(gpu, &branch->regions[0]);
    }
    for (uint32_t i = 0; i < count; i++) {
        from = i % ROWS_IN_CHAIN ? next_address(copy, from, registers[i], registers[i - 1])
                                 : gpu_access_address(gpu, &copy->access, registers[i]);
        values[i] = tile_build_load(&gpu->b, type, from, NULL, NULL, 0);
    }
    if (!branch) return;
    tile_build_end(&gpu->b, TILE_OP_YIELD, values, count);
    gpu_enter(gpu, &branch->regions[1]);
    for (uint32_t i = 0; i < count; i++) zeros[i] = tile_build_bits(&gpu->b, type, 0);
    tile_build_end(&gpu->b, TILE_OP_YIELD, zeros, count);
    outer.error = gpu->b.error ? gpu->b.error : outer.error;
    gpu->b = outer;
    for (uint32_t i = 0; i < count; i++) values[i] = &branch->results[i];
}

static TileLayout elements_layout(const Copy *copy) {
    TileLayoutShape shape = stored_shape(copy);
    return gpu_spread(&shape, 0, 0, copy->gpu->func->threads);
}

/* Copies elements smaller than words, where all rows exist. Neighbouring threads have neighbours of a row, a thread has few
 * columns, and asks once for each whether it exists. */
static void copy_all_rows(Copy *copy) {
    Gpu *gpu = copy->gpu;
    TileValue *thread = gpu->thread, *values[ROWS_TOGETHER];
    gpu->thread = tile_op_result(tile_build_op(&gpu->b, TILE_OP_HERE, &thread, 1, NULL, 0, NULL, 1), 0);
    TileLayout layout = elements_layout(copy), rows = rows_layout(copy, &layout);
    Copy elements = *copy;
    gpu_read_access(gpu, copy->access.op, copy->access.type, &layout, &elements.access);
    GpuTileAddresses places = gpu_tile_addresses(gpu, copy->to, &copy->tile, &rows, false);
    uint32_t all = tile_layout_registers(&layout), batch[ROWS_TOGETHER];
    for (uint32_t first = 0; first < all; first++) { /* of each column, the one that tells it */
        int64_t column = gpu_register_index(&layout, copy->last, first);
        bool told = false;
        for (uint32_t r = 0; r < first; r++) told |= gpu_register_index(&layout, copy->last, r) == column;
        for (uint32_t r = first; r < all && !told;) {
            uint32_t count = 0;
            for (; r < all && count < ROWS_TOGETHER; r++)
                if (gpu_register_index(&layout, copy->last, r) == column) batch[count++] = r;
            if (count) load_rows(&elements, batch, count, values);
            for (uint32_t i = 0; i < count; i++)
                tile_build_store(&gpu->b, values[i], gpu_register_address(&places, batch[i]), NULL, 0);
        }
    }
    gpu->thread = thread;
}

static void copy_some_rows(Copy *copy) { copy_in_loop(copy, 1, ELEMENTS_TOGETHER, copy_elements_at); }

static TileOp *build_branch(Copy *copy, TileValue *condition, void (*then)(Copy *copy), void (*otherwise)(Copy *copy));

/* Words of any rows, in parts where a thread has many. */
static void copy_any_words(Copy *copy) {
    TileLayout layout = elements_layout(copy), part;
    int64_t rows = tile_layout_registers(&layout) > MOST_WORDS ? rows_of_part(copy, &part) : 0;
    if (rows) copy_words_in_parts(copy, &part, rows);
    else copy_words(copy, &layout, NULL);
}

static void copy_words_of_rows(Copy *copy) {
    copy->rows_exist = true;
    copy_any_words(copy);
    copy->rows_exist = false;
}

/* Has a thread words of several rows, and of fewer columns? Where all rows exist it asks for these alone. Code for that beside doubles spills. */
static bool has_few_columns(const TileLayout *layout, unsigned last) {
    enum { ROWS_OF_COLUMN = 4 };
    uint32_t columns = 0, all = tile_layout_registers(layout);
    for (uint32_t r = 0; r < all; r++) columns += !r || gpu_register_index(layout, last, r) != gpu_register_index(layout, last, r - 1);
    return columns * ROWS_OF_COLUMN <= all;
}

/* Elements that do not lie in chunks. */
static void copy_elements(Copy *copy) {
    enum { MOST_ELEMENTS = 64, WORD = 4 };
    TileLayout layout = elements_layout(copy), part;
    unsigned bytes = tile_scalar_bytes(copy->tile.scalar);
    uint32_t count = tile_layout_registers(&layout);
    bool once = !gpu_holds_first_copy(copy->gpu, &layout), words = bytes >= 4 && once && (count <= MOST_WORDS || rows_of_part(copy, &part));
    if (words && bytes == WORD && has_few_columns(&layout, copy->last))
        build_branch(copy, is_whole_along(copy, copy->last), copy_words_of_rows, copy_any_words);
    else if (words)
        copy_any_words(copy);
    else if (bytes < 4 && count <= MOST_ELEMENTS && once && !copy->rare)
        build_branch(copy, is_whole_along(copy, copy->last), copy_all_rows, copy_some_rows);
    else
        copy_some_rows(copy);
}

static void in_region(Copy *copy, TileBlock *block, void (*body)(Copy *copy)) {
    Gpu *gpu = copy->gpu;
    TileBuilder outer = gpu->b;
    gpu->b.block = block;
    gpu->b.before = NULL;
    if (body) body(copy);
    tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    outer.error = gpu->b.error ? gpu->b.error : outer.error;
    gpu->b = outer;
}

static TileOp *build_branch(Copy *copy, TileValue *condition, void (*then)(Copy *copy), void (*otherwise)(Copy *copy)) {
    TileOp *branch = tile_build_if(&copy->gpu->b, condition, NULL, 0);
    in_region(copy, &branch->regions[0], then);
    in_region(copy, &branch->regions[1], otherwise);
    return branch;
}

/* By threads that copy what no other does. */
static void copy_once(Copy *copy, void (*body)(Copy *copy)) {
    TileValue *first = gpu_holds_first_copy(copy->gpu, &copy->access.layout);
    if (!first) {
        body(copy);
        return;
    }
    TileOp *branch = build_branch(copy, first, body, NULL);
    tile_op_set_integer(copy->gpu->module, branch, TILE_ATTRIBUTE_DIVERGENT, 1);
}

static void copy_chunks_once(Copy *copy) { copy_once(copy, copy_chunks); }

static void copy_turned(Copy *copy) { build_branch(copy, is_whole(copy), copy_all_words, copy_valid_words); }

/* Chunks are contiguous, so the stride is a constant. */
static void copy_full_or_partial_chunks(Copy *copy) {
    TileValue **per_lane = &copy->access.dimensions[copy->access.rank - 1].per_lane, *any = *per_lane;
    *per_lane = gpu_i64(copy->gpu, tile_scalar_bytes(copy->tile.scalar));
    build_branch(copy, is_whole(copy), copy_chunks_once, copy_partial_chunks);
    *per_lane = any;
}

void gpu_lower_copy(Gpu *gpu, TileOp *op) {
    const TileType *type = tile_op_get(op, TILE_ATTRIBUTE_TYPES)->types[0];
    const TileValue *stored = tile_op_operand(op, 1);
    Copy copy = {.gpu = gpu, .tile = gpu_shared_tile(stored->type), .to = gpu_value(gpu, stored)};
    copy.last = type->rank - 1u;
    copy.access.type = type;
    TileLayoutShape shape = stored_shape(&copy);
    unsigned log_vector = gpu_floor_log2(GPU_ACCESS_BYTES / tile_scalar_bytes(type->scalar));
    TileLayout layout = copy.tile.by_columns ? turned_layout(&copy) : gpu_spread(&shape, log_vector, 0, gpu->func->threads);
    gpu_read_access(gpu, op, type, &layout, &copy.access);
    for (unsigned d = 0; d < copy.access.rank; d++)
        if (copy.access.dimensions[d].axis >= 0)
            copy.dimension[copy.access.dimensions[d].axis] = &copy.access.dimensions[d];
    if (copy.tile.by_columns) {
        copy_once(&copy, copy_turned);
        return;
    }
    TileValue *chunks = lies_in_chunks(&copy);
    copy.rare = chunks && tile_scalar_bytes(type->scalar) < 4 && begins_in_chunks(&copy, op);
    if (!chunks) {
        copy_elements(&copy);
        return;
    }
    build_branch(&copy, chunks, copy_full_or_partial_chunks, copy_elements);
}
