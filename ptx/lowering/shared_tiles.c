/* Tiles in shared memory: swizzled addresses, stores and loads, and lanes that become 0. */
#include "lang/ir/operands.h"
#include "ptx/lowering/access.h"
#include "ptx/pipeline/copies.h"

/* ---- addresses ---- */

static TileValue *shift_right(Gpu *gpu, TileValue *value, unsigned bits) {
    return bits ? gpu_binary(gpu, TILE_OP_SHR, value, gpu_i64(gpu, bits)) : value;
}

TileValue *gpu_swizzled_column(Gpu *gpu, const GpuSharedTile *tile, TileValue *row, TileValue *column) {
    TileValue *bytes = gpu_binary(gpu, TILE_OP_MUL, column, gpu_i64(gpu, tile_scalar_bytes(tile->scalar)));
    if (tile->swizzle == TILE_SWIZZLE_NONE) return bytes;
    if (tile->swizzle == TILE_SWIZZLE_BYTES) {
        TileValue *eights = gpu_binary(gpu, TILE_OP_AND, shift_right(gpu, row, 2), gpu_i64(gpu, 2));
        row = gpu_binary(gpu, TILE_OP_XOR, row, eights);
    }
    TileValue *swizzle = shift_right(gpu, row, TILE_MAX_LOG_CHUNKS - tile->log_chunks);
    TileValue *mask = gpu_i64(gpu, (INT64_C(1) << tile->log_chunks) - 1);
    swizzle = gpu_binary(gpu, TILE_OP_AND, swizzle, mask);
    if (tile->swizzle == TILE_SWIZZLE_WORDS) {
        TileValue *twice = gpu_binary(gpu, TILE_OP_MUL, swizzle, gpu_i64(gpu, 2));
        twice = gpu_binary(gpu, TILE_OP_OR, twice, shift_right(gpu, swizzle, tile->log_chunks - 1));
        swizzle = gpu_binary(gpu, TILE_OP_AND, twice, mask);
    }
    swizzle = gpu_binary(gpu, TILE_OP_MUL, swizzle, gpu_i64(gpu, TILE_CHUNK_BYTES));
    return gpu_binary(gpu, TILE_OP_XOR, bytes, swizzle);
}

static TileValue *row_address(Gpu *gpu, const GpuSharedTile *tile, TileValue *pointer, TileValue *row) {
    return tile_build_ptr_add(&gpu->b, pointer, gpu_binary(gpu, TILE_OP_MUL, row, gpu_i64(gpu, tile->row_bytes)));
}

TileValue *gpu_element_address(Gpu *gpu, const GpuSharedTile *tile, TileValue *pointer, TileValue *row,
                               TileValue *column) {
    if (tile->panels > 1) {
        TileValue *columns = gpu_i64(gpu, tile->columns),
                  *panel = gpu_binary(gpu, TILE_OP_DIV, column, columns);
        int64_t bytes = tile->row_bytes * tile->shape.extent[0];
        pointer = tile_build_ptr_add(&gpu->b, pointer, gpu_binary(gpu, TILE_OP_MUL, panel, gpu_i64(gpu, bytes)));
        column = gpu_binary(gpu, TILE_OP_REM, column, columns);
    }
    return tile_build_ptr_add(&gpu->b, row_address(gpu, tile, pointer, row), gpu_swizzled_column(gpu, tile, row, column));
}

/* Splits a pointer into its base and the bytes that were added. */
static TileValue *split_pointer(Gpu *gpu, TileValue *pointer, TileValue **bytes) {
    *bytes = NULL;
    for (const TileOp *add; (add = tile_value_def(pointer, TILE_OP_PTR_ADD)); pointer = tile_op_operand(add, 0)) {
        TileValue *more = tile_op_operand(add, 1);
        *bytes = *bytes ? gpu_binary(gpu, TILE_OP_ADD, *bytes, more) : more;
    }
    return pointer;
}

/* The bytes that were added to the base are a multiple of the chunks that the swizzle permutes, so the swizzle can be
 * an exclusive or with the whole sum. */
GpuTileAddresses gpu_tile_addresses(Gpu *gpu, TileValue *pointer, const GpuSharedTile *tile, const TileLayout *layout,
                     bool transposed) {
    GpuTileAddresses places = {.gpu = gpu, .tile = *tile, .layout = *layout, .axis = {transposed, !transposed}};
    TileValue *row = gpu_thread_index(gpu, layout, places.axis[0]),
              *column = gpu_thread_index(gpu, layout, places.axis[1]), *bytes;
    TileValue *own = gpu_binary(gpu, TILE_OP_MUL, row, gpu_i64(gpu, tile->row_bytes));
    if (tile->panels > 1) { /* lanes of a row may lie in several */
        TileValue *columns = gpu_i64(gpu, tile->columns);
        TileValue *panel = gpu_binary(gpu, TILE_OP_DIV, column, columns);
        own = gpu_binary(gpu, TILE_OP_ADD, own, gpu_binary(gpu, TILE_OP_MUL, panel, gpu_i64(gpu, tile->row_bytes * tile->shape.extent[0])));
        column = gpu_binary(gpu, TILE_OP_REM, column, columns);
    }
    own = gpu_binary(gpu, TILE_OP_ADD, own, gpu_swizzled_column(gpu, tile, row, column));
    places.base = split_pointer(gpu, pointer, &bytes);
    places.offset = bytes ? gpu_binary(gpu, TILE_OP_ADD, bytes, own) : own;
    return places;
}

/* The thread's and the register's parts of an index have no bit in common, and a piece of the layout is a multiple of
 * the swizzle's period. */
TileValue *gpu_register_address(GpuTileAddresses *places, uint32_t reg) {
    Gpu *gpu = places->gpu;
    const GpuSharedTile *tile = &places->tile;
    int64_t row = gpu_register_index(&places->layout, places->axis[0], reg),
            bytes = gpu_register_index(&places->layout, places->axis[1], reg) * tile_scalar_bytes(tile->scalar),
            mask = (INT64_C(1) << tile->log_chunks) - 1;
    int64_t chunk = (bytes / TILE_CHUNK_BYTES & mask) ^ gpu_chunk_swizzle(tile, row);
    TileValue **at = &places->at[chunk];
    if (!*at) {
        TileValue *offset = places->offset;
        if (chunk) offset = gpu_binary(gpu, TILE_OP_XOR, offset, gpu_i64(gpu, chunk * TILE_CHUNK_BYTES));
        *at = tile_build_ptr_add(&gpu->b, places->base, offset);
    }
    int64_t in_chunk = bytes % TILE_CHUNK_BYTES, panel = bytes / tile->row_bytes;
    int64_t more = row * tile->row_bytes + (tile->panels > 1 ? panel * tile->row_bytes * tile->shape.extent[0] + in_chunk
                                                             : bytes & ~(mask * TILE_CHUNK_BYTES));
    return more ? tile_build_ptr_add(&gpu->b, *at, gpu_i64(gpu, more)) : *at;
}

/* ---- whole tiles ---- */

/* Neighbours of a row that a thread has, and that lie in one chunk: they move as one vector. */
static unsigned vector_width(const TileLayout *layout, const GpuSharedTile *tile) {
    if (tile->row_bytes % TILE_CHUNK_BYTES || tile->by_columns) return 1;
    return tile_layout_vector(layout, 1, TILE_CHUNK_BYTES / tile_scalar_bytes(tile->scalar));
}

/* The register of the element so many rows behind a register's; the number of registers: none. */
static uint32_t register_behind(const TileLayout *layout, uint32_t reg, int64_t rows) {
    uint32_t other = 0, count = tile_layout_registers(layout);
    int64_t row = gpu_register_index(layout, 0, reg) + rows, column = gpu_register_index(layout, 1, reg);
    while (other < count && (gpu_register_index(layout, 0, other) != row || gpu_register_index(layout, 1, other) != column)) other++;
    return other;
}

/* Neighbours of a column that a thread has: where columns lie as rows they move as one vector. */
static unsigned column_width(const TileLayout *layout, const GpuSharedTile *tile) {
    unsigned width = 1, most = TILE_CHUNK_BYTES / tile_scalar_bytes(tile->scalar);
    while (2 * width <= most && register_behind(layout, 0, width) < tile_layout_registers(layout)) width *= 2;
    return width;
}

/* A layout may be of more elements than the tile in shared memory has, where an extent was rounded up further than there. Does the register
 * have an element of that tile? `inside` is of which threads, or NULL: of all. */
static bool lies_in_tile(Gpu *gpu, const TileLayout *layout, const GpuSharedTile *tile, uint32_t reg, TileValue **inside) {
    *inside = NULL;
    for (unsigned a = 0; a < layout->rank; a++) {
        int64_t extent = gpu_stored_extent(tile, a), index = gpu_register_index(layout, a, reg);
        if (tile_layout_extent(layout, a) <= extent) continue;
        if (index >= extent) return false;
        TileValue *at = gpu_binary(gpu, TILE_OP_ADD, gpu_thread_index(gpu, layout, a), gpu_i64(gpu, index));
        *inside = gpu_and(gpu, *inside, gpu_binary(gpu, TILE_OP_LT, at, gpu_i64(gpu, extent)));
    }
    return true;
}

static void put_elements(Gpu *gpu, TileValue *elements, TileValue *address, TileValue *mask, int64_t align) {
    TileBuilder outer;
    TileOp *branch = mask && align ? gpu_begin_branch(gpu, mask, &outer) : NULL;
    tile_build_store(&gpu->b, elements, address, branch ? NULL : mask, align);
    if (branch) gpu_end_branch(gpu, branch, &outer);
}

void gpu_put_tile(Gpu *gpu, TileValue *value, const TileType *type, const TileType *stored, TileValue *pointer) {
    TileLayout layout = *type->layout;
    GpuSharedTile tile = gpu_shared_tile(stored);
    GpuTileAddresses places = gpu_tile_addresses(gpu, pointer, &tile, &layout, tile.by_columns);
    TileValue *first = gpu_holds_first_copy(gpu, &layout), *registers[TILE_CHUNK_BYTES], *inside;
    unsigned width = tile.by_columns ? column_width(&layout, &tile) : vector_width(&layout, &tile);
    TileBuilder outer;
    TileOp *branch = width > 1 && first ? gpu_begin_branch(gpu, first, &outer) : NULL;
    for (uint32_t r = 0; r < tile_layout_registers(&layout); r += tile.by_columns ? 1 : width) {
        if (tile.by_columns && gpu_register_index(&layout, 0, r) % width) continue;
        if (!lies_in_tile(gpu, &layout, &tile, r, &inside)) continue;
        for (unsigned i = 0; i < width; i++)
            registers[i] = gpu_register(gpu, value, tile.by_columns ? register_behind(&layout, r, i) : r + i);
        put_elements(gpu, gpu_join(gpu, registers, width), gpu_register_address(&places, r), gpu_and(gpu, branch ? NULL : first, inside),
                     width > 1 ? (int64_t)width * tile_scalar_bytes(tile.scalar) : 0);
    }
    if (branch) gpu_end_branch(gpu, branch, &outer);
}

/* ---- by matrices of 8 x 8 ---- */

enum { SIDE = 8, BLOCK = 2 * SIDE, PACKED = 2, WORDS = 4 };

/* Lanes give the addresses of rows of matrices: 16 rows, then the same ones 8 columns further. */
TileLayout gpu_lanes_of_rows(const TileLayout *fragments) {
    enum { ROW_BITS = 4 };
    TileLayout layout = *fragments;
    unsigned lane = tile_layout_first_bit(&layout, TILE_LAYOUT_LANE), row = tile_layout_axis_bit(&layout, 0);
    for (unsigned i = 0; i < ROW_BITS; i++) layout.map.column[lane + i] = UINT32_C(1) << (row + i);
    layout.map.column[lane + ROW_BITS] = SIDE;
    return layout;
}

static bool has_register(const TileLayout *layout, uint32_t column) {
    for (unsigned i = 0; i < layout->bits[TILE_LAYOUT_REGISTER]; i++)
        if (layout->map.column[i] == column) return true;
    return false;
}

/* Have lanes and registers pairs of 16 bits of each block of 16 rows and 16 columns as such an access gives them? */
static bool is_fragments(const TileLayout *layout, const GpuSharedTile *tile) {
    unsigned lane = tile_layout_first_bit(layout, TILE_LAYOUT_LANE), row = tile_layout_axis_bit(layout, 0);
    if (tile->by_columns || tile_scalar_bytes(tile->scalar) != PACKED || tile->row_bytes % TILE_CHUNK_BYTES) return false;
    if ((INT64_C(1) << layout->log_extent[0]) < BLOCK || (INT64_C(1) << layout->log_extent[1]) < BLOCK) return false;
    for (unsigned i = 0; i < TILE_LANE_BITS; i++) {
        uint32_t wanted = i < 2 ? (uint32_t)PACKED << i : UINT32_C(1) << (row + i - 2);
        if (layout->map.column[lane + i] != wanted) return false;
    }
    return layout->map.column[0] == 1 && has_register(layout, SIDE) && has_register(layout, (uint32_t)SIDE << row);
}

/* Loads 16 rows and 16 columns. */
static void load_block(Gpu *gpu, TileScalar scalar, const uint32_t *at, TileValue *address, TileValue **registers) {
    const TileType *type = tile_type_vector(gpu->module->context, scalar, WORDS * PACKED, false);
    TileValue *loaded = tile_op_result(tile_build_op(&gpu->b, TILE_OP_LOAD_MATRIX, &address, 1, NULL, 0, &type, 1), 0);
    for (unsigned i = 0; i < WORDS * PACKED; i++) registers[at[i]] = gpu_register(gpu, loaded, i);
}

static void load_matrices(GpuTileAddresses *places, const TileLayout *layout, TileValue **registers) {
    Gpu *gpu = places->gpu;
    const uint32_t *found = gpu_index_registers(gpu, layout);
    int64_t columns = tile_layout_extent(layout, 1);
    for (uint32_t r = 0; r < tile_layout_registers(layout); r++) {
        int64_t row = gpu_register_index(layout, 0, r), column = gpu_register_index(layout, 1, r);
        uint32_t at[WORDS * PACKED];
        if (row % BLOCK || column % BLOCK) continue;
        for (unsigned i = 0; i < WORDS * PACKED; i++)
            at[i] = found[(row + (i >> 1 & 1) * SIDE) * columns + column + (i >> 2) * SIDE + (i & 1)];
        load_block(gpu, places->tile.scalar, at, gpu_register_address(places, r), registers);
    }
}

static void load_vectors(GpuTileAddresses *places, const TileLayout *layout, TileValue **registers) {
    Gpu *gpu = places->gpu;
    unsigned width = vector_width(layout, &places->tile);
    TileScalar scalar = places->tile.scalar;
    const TileType *vector = tile_type_vector(gpu->module->context, scalar, width, false);
    for (uint32_t r = 0; r < tile_layout_registers(layout); r += width) {
        TileValue *loaded = tile_build_load(&gpu->b, vector, gpu_register_address(places, r), NULL, NULL,
                                            width > 1 ? (int64_t)width * tile_scalar_bytes(scalar) : 0);
        for (unsigned i = 0; i < width; i++) registers[r + i] = width > 1 ? gpu_register(gpu, loaded, i) : loaded;
    }
}

void gpu_lower_shared_tile(Gpu *gpu, TileOp *op) {
    TileLayout layout = *op->results[0].type->layout;
    GpuSharedTile tile = gpu_shared_tile(tile_op_operand(op, 0)->type);
    bool matrices = is_fragments(&layout, &tile);
    TileLayout given = matrices ? gpu_lanes_of_rows(&layout) : layout;
    GpuTileAddresses places = gpu_tile_addresses(gpu, gpu_value(gpu, tile_op_operand(op, 0)), &tile, &given, tile.by_columns);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, tile_layout_registers(&layout));
    if (matrices)
        load_matrices(&places, &layout, registers);
    else
        load_vectors(&places, &layout, registers);
    tile_map_set(&gpu->values, &op->results[0], gpu_join(gpu, registers, tile_layout_registers(&layout)));
}

/* The next reader is wgmma, for which the stores have to be fenced. */
void gpu_lower_put(Gpu *gpu, TileOp *op) {
    const TileValue *place = tile_op_named(op, TILE_OPERAND_PLACE), *tile = tile_op_named(op, TILE_OPERAND_VALUE);
    gpu_put_tile(gpu, gpu_value(gpu, tile), tile->type, place->type, gpu_value(gpu, place));
    gpu_build_plain(&gpu->b, TILE_OP_FENCE_ASYNC);
    gpu_build_plain(&gpu->b, TILE_OP_BARRIER);
}

/* ---- lanes that become 0 ---- */

enum { GROUP_ROWS = 64 }; /* that a warpgroup multiplies at once */

/* The tile that was copied there, whose rows may be those of several axes. */
static const TileType *cleared_type(const TileOp *clear) {
    const TileAttribute *types = tile_op_get(clear, TILE_ATTRIBUTE_TYPES);
    return types ? types->types[0] : tile_op_operand(clear, 0)->type;
}

/* The index along the tile's axis of the lane in this row and column. */
static TileValue *index_along(Gpu *gpu, const TileType *type, int64_t axis, TileValue *const *at) {
    int64_t last = type->rank - 1, inner = 1;
    if (axis == last) return at[1];
    for (int64_t a = axis + 1; a < last; a++) inner *= type->extent[a];
    TileValue *index = inner > 1 ? gpu_binary(gpu, TILE_OP_DIV, at[0], gpu_i64(gpu, inner)) : at[0];
    return axis ? gpu_binary(gpu, TILE_OP_REM, index, gpu_i64(gpu, type->extent[axis])) : index;
}

/* Is a lane outside of its range along some axis? `at`: the indices of one lane; NULL: of the first and of the last. */
static TileValue *is_outside(Gpu *gpu, const TileOp *clear, TileValue *const *at) {
    const TileAttribute *axes = tile_op_get(clear, TILE_ATTRIBUTE_AXES);
    const TileType *type = cleared_type(clear);
    TileValue *outside = NULL;
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t axis = axes->integers[i], last = type->extent[axis] - 1;
        TileValue *index = at ? index_along(gpu, type, axis, at) : NULL;
        TileValue *lo = gpu_value(gpu, tile_fill_lo(clear, i)), *hi = gpu_value(gpu, tile_fill_hi(clear, i));
        TileValue *before = gpu_binary(gpu, TILE_OP_LT, at ? index : gpu_i64(gpu, 0), lo),
                  *behind = gpu_binary(gpu, TILE_OP_GE, at ? index : gpu_i64(gpu, last), hi);
        TileValue *either = gpu_binary(gpu, TILE_OP_OR, before, behind);
        outside = outside ? gpu_binary(gpu, TILE_OP_OR, outside, either) : either;
    }
    return outside;
}

/* Lanes of a row that are cleared together: of whole rows a chunk's. */
static int64_t cleared_together(const TileOp *clear, const GpuSharedTile *tile) {
    const TileAttribute *axes = tile_op_get(clear, TILE_ATTRIBUTE_AXES);
    bool rows = true;
    for (unsigned i = 0; i < axes->count; i++) rows &= axes->integers[i] + 1 < cleared_type(clear)->rank;
    return rows && tile->row_bytes % TILE_CHUNK_BYTES == 0 ? TILE_CHUNK_BYTES / tile_scalar_bytes(tile->scalar) : 1;
}

/* Clears so many lanes from the first one of a chunk on, whose place in the tile is given, if they are outside or all are. */
static void clear_lanes(Gpu *gpu, const TileOp *clear, const GpuSharedTile *tile, TileValue *const *at, int64_t lanes, bool all) {
    TileValue *to = gpu_element_address(gpu, tile, gpu_value(gpu, tile_op_operand(clear, 0)), at[0], at[1]);
    const TileType *type = tile_type_vector(gpu->module->context, tile->scalar, (uint32_t)lanes, false);
    TileBuilder outer;
    TileOp *branch = all ? NULL : gpu_begin_branch(gpu, is_outside(gpu, clear, at), &outer);
    tile_build_store(&gpu->b, tile_build_bits(&gpu->b, type, 0), to, NULL, lanes * tile_scalar_bytes(tile->scalar));
    if (branch) gpu_end_branch(gpu, branch, &outer);
}

/* Is the tile read by instructions alone that take it from there as their first operand, of which each warpgroup reads rows of
 * its own? `*transposed`: these are the tile's columns. */
static bool is_first_operand(const TileOp *clear, bool *transposed) {
    const TileValue *place = tile_op_operand(clear, 0);
    unsigned readers = 0;
    for (const TileUse *use = place->first_use; use; use = use->next) {
        if (use->user->id != TILE_OP_SHARED_TILE) continue;
        for (const TileUse *read = use->user->results[0].first_use; read; read = read->next) {
            const TileOp *reader = read->user;
            bool turns = reader->id == TILE_OP_PERMUTE;
            if (turns && !tile_value_has_one_use(&reader->results[0])) return false;
            const TileUse *taken = turns ? reader->results[0].first_use : read;
            if (!gpu_dot_is_wgmma(taken->user) || taken->index || (readers && turns != *transposed)) return false;
            *transposed = turns;
            readers++;
        }
    }
    return readers > 0;
}

/* So many warpgroups clear a part of their own; 1: all threads of the program clear the tile together. */
static int64_t count_clearing(const Gpu *gpu, const TileOp *clear, const GpuSharedTile *tile, bool *columns) {
    int64_t groups = gpu->func->threads / TILE_WARPGROUP_THREADS;
    if (groups < 2 || !is_first_operand(clear, columns)) return 1;
    return tile->shape.extent[*columns] % (groups * GROUP_ROWS) ? 1 : groups;
}

/* The row and the column of a lane, of the tile or of the warpgroup's part of it. */
static void find_place(Gpu *gpu, const GpuSharedTile *tile, TileValue *number, int64_t lanes, int64_t groups, bool columns,
                       TileValue **at) {
    int64_t extent[2] = {tile->shape.extent[0], tile->shape.extent[1]};
    extent[columns] /= groups;
    TileValue *by = gpu_i64(gpu, extent[1] / lanes);
    at[0] = gpu_binary(gpu, TILE_OP_DIV, number, by);
    at[1] = gpu_binary(gpu, TILE_OP_MUL, gpu_binary(gpu, TILE_OP_REM, number, by), gpu_i64(gpu, lanes));
    if (groups == 1) return;
    TileValue *rows = gpu_i64(gpu, GROUP_ROWS), *own = at[columns], *block = gpu_binary(gpu, TILE_OP_DIV, own, rows);
    block = gpu_binary(gpu, TILE_OP_ADD, gpu_binary(gpu, TILE_OP_MUL, block, gpu_i64(gpu, groups)), gpu->warpgroup);
    at[columns] = gpu_binary(gpu, TILE_OP_ADD, gpu_binary(gpu, TILE_OP_MUL, block, rows), gpu_binary(gpu, TILE_OP_REM, own, rows));
}

/* What is cleared by one op: how its threads share it out. */
typedef struct Clearing {
    TileOp *op;
    GpuSharedTile tile;
    int64_t groups; /* warpgroups that clear a part of their own each */
    bool columns;   /* these are columns */
    bool rows;      /* whole rows are cleared, which lie one after the other in a part, in front and behind */
} Clearing;

/* Clears chunks of the tile, or of the warpgroup's part of it, from one number to another. */
static void clear_in_loop(Gpu *gpu, const Clearing *clearing, TileValue *from, TileValue *to) {
    int64_t lanes = cleared_together(clearing->op, &clearing->tile), threads = gpu->func->threads / clearing->groups;
    TileBuilder outer = gpu->b, *b = &gpu->b;
    TileValue *thread = tile_op_result(tile_build_op(&outer, TILE_OP_HERE, &gpu->thread, 1, NULL, 0, NULL, 1), 0), *at[2];
    if (clearing->groups > 1) thread = tile_build_binary(&outer, TILE_OP_AND, thread, tile_build_i64(&outer, threads - 1));
    if (from) thread = tile_build_binary(&outer, TILE_OP_ADD, from, thread);
    TileOp *loop = tile_build_for(&outer, thread, to, tile_build_i64(&outer, threads), NULL, 0);
    tile_op_set_integer(gpu->module, loop, TILE_ATTRIBUTE_DIVERGENT, 1);
    b->block = &loop->regions[0];
    b->before = NULL;
    find_place(gpu, &clearing->tile, loop->regions[0].arguments[0], lanes, clearing->groups, clearing->columns, at);
    clear_lanes(gpu, clearing->op, &clearing->tile, at, lanes, clearing->rows);
    tile_build_end(b, TILE_OP_YIELD, NULL, 0);
    gpu->b = outer;
}

/* Neighbouring threads have neighbours of a row. The block asks once whether there is a lane outside: in most kernels there
 * seldom is, but where rows of an image are shorter than a tile each iteration has some: a few whole rows, in front and behind. */
static void clear_outside(Gpu *gpu, const Clearing *clearing) {
    const TileLayoutShape *shape = &clearing->tile.shape;
    int64_t of_row = shape->extent[1] / cleared_together(clearing->op, &clearing->tile);
    if (!clearing->rows) {
        clear_in_loop(gpu, clearing, NULL, gpu_i64(gpu, of_row * shape->extent[0] / clearing->groups));
        return;
    }
    of_row /= clearing->columns ? clearing->groups : 1;
    TileValue *zero = gpu_i64(gpu, 0), *rows = gpu_i64(gpu, shape->extent[0]), *chunks = gpu_i64(gpu, of_row);
    TileValue *lo = gpu_binary(gpu, TILE_OP_MIN, gpu_binary(gpu, TILE_OP_MAX, gpu_value(gpu, tile_fill_lo(clearing->op, 0)), zero), rows),
              *hi = gpu_binary(gpu, TILE_OP_MAX, gpu_value(gpu, tile_fill_hi(clearing->op, 0)), lo);
    clear_in_loop(gpu, clearing, NULL, gpu_binary(gpu, TILE_OP_MUL, lo, chunks));
    clear_in_loop(gpu, clearing, gpu_binary(gpu, TILE_OP_MUL, hi, chunks), gpu_i64(gpu, of_row * shape->extent[0]));
}

/* The next reader is wgmma, for which the stores have to be fenced. A warpgroup that clears what it alone reads waits for no other:
 * while one clears, the others multiply. */
void gpu_lower_clear(Gpu *gpu, TileOp *op) {
    Clearing clearing = {.op = op, .tile = gpu_shared_tile(tile_op_operand(op, 0)->type)};
    clearing.groups = count_clearing(gpu, op, &clearing.tile, &clearing.columns);
    clearing.rows = cleared_type(op)->rank == 2 && cleared_together(op, &clearing.tile) > 1 && (clearing.groups == 1 || clearing.columns);
    TileOp *branch = tile_build_if(&gpu->b, is_outside(gpu, op, NULL), NULL, 0);
    TileBuilder outer = gpu->b;
    gpu->b.block = &branch->regions[0];
    gpu->b.before = NULL;
    clear_outside(gpu, &clearing);
    gpu_build_plain(&gpu->b, TILE_OP_FENCE_ASYNC);
    if (clearing.groups > 1)
        gpu_build_warpgroup_barrier(gpu, clearing.groups);
    else
        gpu_build_plain(&gpu->b, TILE_OP_BARRIER);
    tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    gpu->b.block = &branch->regions[1];
    gpu->b.before = NULL;
    tile_build_end(&gpu->b, TILE_OP_YIELD, NULL, 0);
    outer.error = gpu->b.error ? gpu->b.error : outer.error;
    gpu->b = outer;
}
