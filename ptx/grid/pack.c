/* Purpose: copy operands of products to where a tensor map can describe them, before the products. A tensor whose rows
 * do not begin at multiples of 16 bytes, or whose rows do not lie along an axis that a tile of the operand has, is
 * read element by element by each program that multiplies; the copy (`temp`) has rows that begin at multiples of 128
 * bytes and its axes in an order that fits, so that programs have it copied by tensor maps. Products by fused multiply-adds of f32 take
 * no maps, but operands whose rows lie across k: others they would turn word by word, each program again. Where `packs` of the
 * kernel says that this pays: the model has compared both.
 *
 * Before:
 *     func kernel tile @k(%a: tensor<f16, 2, in>, %b: tensor<f16, 2, in> {map}, %c: tensor<f32, 2, out>
 *         {noalias}) packs = 1 {
 *       %M = dim %a {axis = 0} : i64
 *       %K = dim %a {axis = 1} : i64
 *       check_dim %b, %K {axis = 0, text = "K"}
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %64 = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       grid %one (%i: i64) {
 *         %s = for %zero, %K, %64, %acc : f32[64, 64] (%k: i64, %t: f32[64, 64]) {
 *           %x = load_tile %a, %zero, %one, %zero, %M, %k, %one, %zero, %64 {access = [range, range]} : f16[64, 64]
 *           %y = load_tile %b, %k, %one, %zero, %64, %zero, %one, %zero, %64 {access = [range, range]} : f16[64, 64]
 *           %u = dot %x, %y, %t : f32[64, 64]
 *           yield %u
 *         }
 *         store_tile %c, %s, %zero, %one, %zero, %64, %zero, %one, %zero, %64 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%a: tensor<f16, 2, in> {asked_map}, %b: tensor<f16, 2, in> {map, asked_map}, %c:
 *         tensor<f32, 2, out> {noalias}) packs = 1 {
 *       %M = dim %a {axis = 0} : i64
 *       %K = dim %a {axis = 1} : i64
 *       check_dim %b, %K {axis = 0, text = "K"}
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %1 = max %M, %one : i64
 *       %2 = max %K, %one : i64
 *       %3 = const {value = 63} : i64
 *       %4 = add %1, %3 : i64
 *       %5 = div %4, %0 : i64
 *       %6 = add %2, %3 : i64
 *       %7 = div %6, %0 : i64
 *       %a.1 = temp %1, %2 {align = 128} : tensor<f16, 2, temp>
 *       grid %5, %7 (%8: i64, %9: i64) {
 *         %10 = mul %8, %0 : i64
 *         %11 = mul %9, %0 : i64
 *         %12 = sub %M, %10 : i64
 *         %13 = min %12, %0 : i64
 *         %14 = sub %K, %11 : i64
 *         %15 = min %14, %0 : i64
 *         %16 = load_tile %a, %10, %one, %zero, %13, %11, %one, %zero, %15 {access = [range, range]} : f16[64, 64]
 *         %17 = const {value = 0.0} : f16
 *         %18 = fill %16, %17, %zero, %13, %zero, %15 {axes = [0, 1]} : f16[64, 64]
 *         %19 = sub %1, %10 : i64
 *         %20 = min %19, %0 : i64
 *         %21 = sub %2, %11 : i64
 *         %22 = min %21, %0 : i64
 *         store_tile %a.1, %18, %10, %one, %zero, %20, %11, %one, %zero, %22 {access = [range, range]}
 *         yield
 *       }
 *       grid %one (%i: i64) {
 *         %s = for %zero, %K, %0, %acc : f32[64, 64] (%k: i64, %t: f32[64, 64]) {
 *           %x = load_tile %a.1, %zero, %one, %zero, %M, %k, %one, %zero, %0 {access = [range, range]} : f16[64, 64]
 *           %y = load_tile %b, %k, %one, %zero, %0, %zero, %one, %zero, %0 {access = [range, range]} : f16[64, 64]
 *           %u = dot %x, %y, %t : f32[64, 64]
 *           yield %u
 *         }
 *         store_tile %c, %s, %zero, %one, %zero, %0, %zero, %one, %zero, %0 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-pack,canonicalise,cse,dce --target=sm_90a
 * Needs: inline; bounds in the form that facts gives them. Keeps: tile form; each operand has the same elements. Cost:
 * linear. */
#include "base/temp.h"
#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "lowering/memory.h"
#include "ptx/passes.h"
#include "ptx/target/map.h"

enum { MOST_AXES = TILE_MAP_MOST_RANK };

/* A tensor, and how its copy lies: `order` has the tensor's axis for each one of the copy. */
typedef struct Copy {
    TileValue *tensor, *temp;
    unsigned order[MOST_AXES];
    int64_t width; /* elements of a row that products take at a time */
    TileOp *grid;  /* the first that reads it */
    bool short_rows; /* of the tensor: products take one element of its last axis at a time, as of a window */
} Copy;

typedef struct Packing {
    TileOp *load;
    size_t copy;
} Packing;

typedef struct Pack {
    TilePassContext *context;
    TileFunc *kernel;
    TileOp *grid; /* that is being looked at */
    TileIndexView view;
    TILE_LIST(Copy) copies;
    TILE_LIST(Packing) loads;
    bool asked;
} Pack;

/* ---- which loads ---- */

/* The load whose tile the operand is, as it lies in memory or transposed; NULL: it is computed. `across`: its rows are
 * columns of the operand. */
static TileOp *load_of(const TileOp *dot, unsigned number, bool *across) {
    TileOp *op = tile_op_operand(dot, number)->op;
    *across = false;
    for (; op; op = tile_op_operand(op, 0)->op) {
        if (op->id == TILE_OP_PERMUTE && op->results[0].type->rank == 2)
            *across ^= tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[0] != 0;
        else if (op->id != TILE_OP_FILL && op->id != TILE_OP_RESHAPE)
            break;
    }
    return op && op->id == TILE_OP_LOAD_TILE ? op : NULL;
}

/* Does k lie along the last axis of the operand's tile as it is loaded? wgmma demands it of all but 16-bit elements. */
static bool is_along_k(unsigned number, bool across) { return across == (number == 1); }

/* Can a row of a tensor map's box be this axis of the tile? */
static bool may_be_row(Pack *pack, const TileOp *load, const TileAccessIndex *index) {
    enum { ROW_BYTES = 32 };
    const TileType *tile = load->results[0].type;
    if (index->kind != TILE_ACCESS_RANGE) return false;
    int64_t bytes = tile_scalar_bytes(tile->scalar), multiple = tile_index_range(pack->view.indices, index->first).multiple;
    return tile->extent[index->axis] * bytes % ROW_BYTES == 0 && multiple * bytes % TILE_CHUNK_BYTES == 0;
}

/* NULL: a copy of the tensor can take its place. */
static const char *why_not(const Pack *pack, const TileOp *load, const TileAccessIndex *indices, unsigned rank) {
    const TileValue *tensor = tile_op_operand(load, 0);
    if (tensor->op || tensor->type->access != TILE_ACCESS_IN) return "it is no argument that is only read";
    if (rank < 2 || rank > MOST_AXES) return "it has not two to five axes";
    if (tile_op_has_part(load, TILE_PARTS_MASK)) return "it has a mask";
    int axis = -1;
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind == TILE_ACCESS_GATHER) return "it gathers";
        if (indices[d].kind == TILE_ACCESS_INDEX) continue;
        if (!tile_value_is_integer(indices[d].step, 1)) return "its range has a step";
        if (indices[d].axis != ++axis) return "its axes are not in the order of the tensor's";
    }
    for (const TileOp *op = pack->kernel->body.first; op; op = op->next)
        if (tile_memory_is_written(op, tensor)) return "the kernel writes to its memory";
    return NULL;
}

/* The tile of two axes that a load of more becomes, whose first axis stays one and whose others are merged, as pixels of
 * channels; NULL: there is none. */
static TileOp *merged_behind_first(const TileOp *load) {
    const TileType *tile = load->results[0].type;
    for (const TileValue *value = &load->results[0]; value->first_use && !value->first_use->next;) {
        TileOp *user = value->first_use->user;
        if (user->id == TILE_OP_RESHAPE)
            return user->results[0].type->rank == 2 && user->results[0].type->extent[0] == tile->extent[0] ? user : NULL;
        if (user->id != TILE_OP_FILL || value->first_use->index) return NULL;
        value = &user->results[0];
    }
    return NULL;
}

/* The axis of the tensor along which rows of the copy lie; `rank`: there is none. That of the tensor, if it will do. */
static unsigned choose_row(Pack *pack, const TileOp *load, const TileAccessIndex *indices, unsigned rank, int only) {
    bool reshaped = load->results[0].type->rank > 2; /* the last axis stays so */
    for (unsigned d = rank; d-- > 0;) {
        if (!may_be_row(pack, load, &indices[d])) continue;
        if (only >= 0 && indices[d].axis != only) continue;
        bool merged = indices[d].axis == 0 && merged_behind_first(load);
        if (reshaped && !merged && indices[d].axis + 1 != (int)load->results[0].type->rank) continue;
        return d;
    }
    return rank;
}

static bool is_order(const Copy *copy, unsigned rank, unsigned row) { return copy->order[rank - 1] == row; }

/* The copy of the tensor with such rows. */
static size_t find_copy(Pack *pack, TileValue *tensor, unsigned row, int64_t width) {
    unsigned rank = tensor->type->rank, next = 0;
    for (size_t i = 0; i < pack->copies.count; i++)
        if (pack->copies.items[i].tensor == tensor && is_order(&pack->copies.items[i], rank, row)) return i;
    Copy copy = {.tensor = tensor, .width = width, .grid = pack->grid};
    for (unsigned d = 0; d < rank; d++)
        if (d != row) copy.order[next++] = d;
    copy.order[next] = row;
    tile_list_push(pack->context->scratch, &pack->copies, copy);
    return pack->copies.count - 1;
}

/* Does a map describe the tensor, and do its rows lie as the product takes them? */
static bool fits_already(Pack *pack, const TileOp *load, const TileAccessIndex *indices, unsigned rank, int only, bool maps) {
    if (!maps) return indices[rank - 1].axis == only;
    TileParameter *parameter = &pack->kernel->parameters[tile_op_operand(load, 0)->index];
    pack->asked |= !parameter->asked_map;
    parameter->asked_map = true;
    const TileAccessIndex *last = &indices[rank - 1];
    return parameter->facts.map && may_be_row(pack, load, last) && (only < 0 || last->axis == only);
}

/* `maps`: tensor maps shall copy it; else it shall lie across k. */
static void look_at_operand(Pack *pack, const TileOp *dot, unsigned number, bool maps) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    bool across;
    TileOp *load = load_of(dot, number, &across);
    if (!load) return;
    const TileType *tile = load->results[0].type;
    unsigned rank = tile_access_read(load, indices);
    const char *why = why_not(pack, load, indices, rank);
    /* The axis of a tile of two that must be the row; -1: any. */
    int only = tile->rank == 2 && tile_scalar_bits(tile->scalar) != 16 ? is_along_k(number, across) : -1;
    if (!maps) only = !is_along_k(number, across);
    if (!why && fits_already(pack, load, indices, rank, only, maps)) return;
    unsigned row = why ? rank : choose_row(pack, load, indices, rank, only);
    if (!why && row == rank) why = "no axis of its tile begins at multiples of 16 bytes";
    if (why) {
        tile_pass_remark(pack->context, load, TILE_DECISION_NOT_PACKED, tile_op_operand(load, 0)->name, "%s", why);
        return;
    }
    for (size_t i = 0; i < pack->loads.count; i++)
        if (pack->loads.items[i].load == load) return;
    Packing packing = {load, find_copy(pack, tile_op_operand(load, 0), row, tile->extent[indices[row].axis])};
    pack->copies.items[packing.copy].short_rows = indices[rank - 1].kind == TILE_ACCESS_INDEX;
    tile_list_push(pack->context->scratch, &pack->loads, packing);
}

static void look_at_dot(TileOp *op, void *state) {
    Pack *pack = state;
    if (op->id != TILE_OP_DOT) return;
    bool maps = gpu_dot_takes_maps(tile_ptx_target_of(pack->context->target), op);
    for (unsigned number = 0; number < 2; number++) {
        const TileType *type = tile_op_operand(op, number)->type;
        if (maps || (type->scalar == TILE_F32 && type->rank == 2)) look_at_operand(pack, op, number, maps);
    }
}

/* ---- the copies ---- */

/* Operands of an access, behind the tensor and a store's value. */
typedef struct Access {
    TileValue *operands[2 + 4 * MOST_AXES];
    int64_t kinds[MOST_AXES];
    unsigned count, axes;
} Access;

static void add_operand(Access *access, TileValue *operand) { access->operands[access->count++] = operand; }

static TileOp *build_access(TileBuilder *b, TileOpId id, const Access *access, const TileType *result) {
    TileAttribute kinds = {.key = TILE_ATTRIBUTE_ACCESS, .count = access->axes, .integers = access->kinds};
    return tile_build_op(b, id, access->operands, access->count, &kinds, 1, &result, result != NULL);
}

/* How a program of the copying grid sees the axes of the copy: single indices, but for two of which it has a tile. */
typedef struct Window {
    unsigned axes[2];   /* of the copy, ascending: the last is its row */
    int64_t extents[2];
    TileValue *index[MOST_AXES], *left[2], *one, *zero; /* index: along a tiled axis, of the first element */
} Window;

/* Extents of the tensor, and of the copy, which has an element, 0, even of a tensor without any: a map describes nothing
 * that is empty. `others`: the least of the tensor's extents along axes that are not tiled; NULL: all are. */
typedef struct Sizes {
    TileValue *tensor[MOST_AXES], *copy[MOST_AXES], *others;
} Sizes;

static int window_axis(const Window *window, unsigned axis) {
    return axis == window->axes[0] ? 0 : axis == window->axes[1] ? 1 : -1;
}

static void add_axis(Access *access, const Window *window, unsigned axis) {
    int tiled = window_axis(window, axis);
    access->kinds[access->axes++] = tiled < 0 ? TILE_ACCESS_INDEX : TILE_ACCESS_RANGE;
    add_operand(access, window->index[axis]);
    if (tiled < 0) return;
    add_operand(access, window->one);
    add_operand(access, window->zero);
    add_operand(access, window->left[tiled]);
}

/* Along the copy's rows, and along the tensor's, which are those of the copy but for an exchange of axes. */
static Window choose_window(const Copy *copy, unsigned rank) {
    enum { ELEMENTS = 4096, WIDEST = 128, SQUARE = 64, WINDOW = 4, LONG = 256 };
    Window window = {.axes = {rank - 2, rank - 1}};
    bool exchanged = copy->order[rank - 1] != rank - 1;
    for (unsigned i = 0; exchanged && i < rank; i++)
        if (copy->order[i] == rank - 1) window.axes[0] = i;
    if (exchanged && copy->short_rows) {
        window.extents[0] = WINDOW;
        window.extents[1] = LONG;
        return window;
    }
    int64_t widest = exchanged ? SQUARE : WIDEST;
    window.extents[1] = copy->width < widest ? copy->width : widest;
    window.extents[0] = ELEMENTS / window.extents[1] < SQUARE ? ELEMENTS / window.extents[1] : SQUARE;
    return window;
}

static void place_window(Window *window, TileBuilder *b, const TileOp *grid, unsigned rank) {
    window->one = tile_build_i64(b, 1);
    window->zero = tile_build_i64(b, 0);
    for (unsigned i = 0; i < rank; i++) {
        int tiled = window_axis(window, i);
        window->index[i] = grid->regions[0].arguments[i];
        if (tiled < 0) continue;
        TileValue *size = tile_build_i64(b, window->extents[tiled]);
        window->index[i] = tile_build_binary(b, TILE_OP_MUL, window->index[i], size);
    }
}

/* As much of the window as there is, of so many elements along each axis; nothing if `others` is 0. */
static void bound_window(Window *window, TileBuilder *b, TileValue *const *extents, TileValue *others) {
    for (unsigned tiled = 0; tiled < 2; tiled++) {
        unsigned axis = window->axes[tiled];
        TileValue *left = tile_build_binary(b, TILE_OP_SUB, extents[axis], window->index[axis]),
                  *size = tile_build_i64(b, window->extents[tiled]);
        left = tile_build_binary(b, TILE_OP_MIN, left, size);
        if (others) left = tile_build_binary(b, TILE_OP_MIN, left, tile_build_binary(b, TILE_OP_MUL, others, size));
        window->left[tiled] = left;
    }
}

/* One program copies a window. */
static void build_program(TileBuilder *b, const Copy *copy, Window *window, const Sizes *sizes, unsigned rank) {
    Access from = {.operands = {copy->tensor}, .count = 1}, to = {.operands = {copy->temp}, .count = 2};
    unsigned place[MOST_AXES]; /* of the tensor's axis in the copy */
    for (unsigned i = 0; i < rank; i++) place[copy->order[i]] = i;
    bool exchanged = copy->order[window->axes[0]] > copy->order[window->axes[1]];
    int64_t extents[2] = {window->extents[exchanged], window->extents[!exchanged]};
    bound_window(window, b, sizes->tensor, sizes->others);
    for (unsigned d = 0; d < rank; d++) add_axis(&from, window, place[d]);
    TileValue *bounds[] = {window->zero, window->left[exchanged], window->zero, window->left[!exchanged]};
    const TileType *type = tile_type_tile(b->module->context, copy->tensor->type->scalar, 2, extents);
    TileValue *tile = tile_op_result(build_access(b, TILE_OP_LOAD_TILE, &from, type), 0);
    TileValue *nothing = tile_build_bits(b, tile_type_scalar(b->module->context, type->scalar), 0);
    tile = tile_build_fill(b, tile, nothing, (const int64_t[]){0, 1}, bounds, 2);
    if (exchanged) tile = tile_build_permute(b, tile, (const int64_t[]){1, 0});
    to.operands[1] = tile;
    bound_window(window, b, sizes->copy, NULL);
    for (unsigned i = 0; i < rank; i++) add_axis(&to, window, i);
    build_access(b, TILE_OP_STORE_TILE, &to, NULL);
    tile_build_end(b, TILE_OP_YIELD, NULL, 0);
}

static Sizes build_sizes(TileBuilder *host, const Copy *copy, const Window *window, unsigned rank) {
    Sizes sizes = {.others = NULL};
    for (unsigned i = 0; i < rank; i++) {
        TileValue *extent = sizes.tensor[i] = tile_build_dim(host, copy->tensor, copy->order[i]);
        sizes.copy[i] = tile_build_binary(host, TILE_OP_MAX, extent, tile_build_i64(host, 1));
        if (window_axis(window, i) >= 0) continue;
        sizes.others = sizes.others ? tile_build_binary(host, TILE_OP_MIN, sizes.others, extent) : extent;
    }
    return sizes;
}

static void build_copy(Pack *pack, Copy *copy) {
    TileModule *module = pack->context->module;
    unsigned rank = copy->tensor->type->rank;
    TileBuilder host = tile_builder_before(module, copy->grid);
    TileValue *programs[MOST_AXES];
    Window window = choose_window(copy, rank);
    Sizes sizes = build_sizes(&host, copy, &window, rank);
    for (unsigned i = 0; i < rank; i++) {
        int tiled = window_axis(&window, i);
        programs[i] = sizes.copy[i];
        if (tiled < 0) continue;
        TileValue *size = tile_build_i64(&host, window.extents[tiled]), *more = tile_build_i64(&host, window.extents[tiled] - 1);
        programs[i] = tile_build_binary(&host, TILE_OP_DIV, tile_build_binary(&host, TILE_OP_ADD, programs[i], more), size);
    }
    TileAttribute align = {.key = TILE_ATTRIBUTE_ALIGN, .integer = TILE_MOST_TEMP_ALIGN};
    const TileType *type = tile_type_tensor(module->context, copy->tensor->type->scalar, rank, TILE_ACCESS_TEMP);
    copy->temp = tile_op_result(tile_build_op(&host, TILE_OP_TEMP, sizes.copy, rank, &align, 1, &type, 1), 0);
    copy->temp->name = copy->tensor->name;
    TileOp *grid = tile_build_grid(&host, programs, rank);
    TileBuilder b = tile_builder_at_end(module, &grid->regions[0]);
    b.location = copy->grid->location;
    place_window(&window, &b, grid, rank);
    build_program(&b, copy, &window, &sizes, rank);
}

/* ---- loads of the copies ---- */

static void add_index(Access *access, const TileOp *load, const TileAccessIndex *index) {
    unsigned operands = tile_access_operands(index->kind);
    access->kinds[access->axes++] = index->kind;
    for (unsigned i = 0; i < operands; i++) add_operand(access, tile_op_operand(load, index->operand + i));
}

/* The first axis of the load is the last one of the copy's: what fills its lanes and merges the others does so there, and the
 * tile of two axes is transposed. */
static void replace_merged(TileModule *module, TileOp *load, TileOp *merge, TileValue *made) {
    TileValue *value = &load->results[0];
    unsigned rank = value->type->rank;
    for (TileOp *op = value->first_use->user; op != merge; op = op->results[0].first_use->user) {
        TileBuilder b = tile_builder_before(module, op);
        const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
        int64_t moved[TILE_MAX_TILE_RANK];
        TileValue *bounds[2 * TILE_MAX_TILE_RANK];
        for (unsigned i = 0; i < axes->count; i++) { /* ascending: the first axis becomes the last */
            unsigned from = axes->integers[0] == 0 ? (i + 1) % axes->count : i;
            moved[i] = (axes->integers[from] + rank - 1) % rank;
            bounds[2 * i] = tile_fill_lo(op, from);
            bounds[2 * i + 1] = tile_fill_hi(op, from);
        }
        made = tile_build_fill(&b, made, tile_op_named(op, TILE_OPERAND_FILLING), moved, bounds, axes->count);
    }
    TileBuilder b = tile_builder_before(module, merge);
    const TileType *type = merge->results[0].type;
    made = tile_build_reshape(&b, made, 2, (const int64_t[]){type->extent[1], type->extent[0]});
    tile_value_replace(&merge->results[0], tile_build_permute(&b, made, (const int64_t[]){1, 0}));
}

/* The load of the same tile from the copy, whose axes go back to their places. */
static void replace_load(Pack *pack, TileOp *load, const Copy *copy) {
    TileModule *module = pack->context->module;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileType *tile = load->results[0].type;
    unsigned rank = tile_access_read(load, indices), next = 0;
    int64_t extents[TILE_MAX_TILE_RANK], back[TILE_MAX_TILE_RANK];
    Access access = {.operands = {copy->temp}, .count = 1};
    bool moved = false;
    for (unsigned i = 0; i < rank; i++) {
        const TileAccessIndex *index = &indices[copy->order[i]];
        add_index(&access, load, index);
        if (index->kind != TILE_ACCESS_RANGE) continue;
        extents[next] = tile->extent[index->axis];
        back[index->axis] = next;
        moved |= index->axis != (int)next++;
    }
    TileBuilder b = tile_builder_before(module, load);
    const TileType *type = tile_type_tile(module->context, tile->scalar, tile->rank, extents);
    TileValue *made = tile_op_result(build_access(&b, TILE_OP_LOAD_TILE, &access, type), 0);
    made->name = load->results[0].name;
    TileOp *merge = moved && tile->rank > 2 && back[0] == tile->rank - 1 ? merged_behind_first(load) : NULL;
    if (merge) {
        replace_merged(module, load, merge, made);
        return;
    }
    if (moved) made = tile_build_permute(&b, made, back);
    tile_value_replace(&load->results[0], made);
    tile_op_erase(load);
}

TileResult tile_pass_gpu_pack(TilePassContext *context, TileFunc *func) {
    bool kernel = func->kind == TILE_FUNC_KERNEL && func->packs;
    if (!kernel || !gpu_copies_by_maps(context->target)) return TILE_RESULT_UNCHANGED;
    Pack pack = {.context = context, .kernel = func};
    tile_index_view_init(&pack.view, tile_pass_indices(context, func), NULL, false);
    for (TileOp *op = func->body.first; op; op = op->next) {
        pack.grid = op;
        if (op->id == TILE_OP_GRID) tile_block_walk(&op->regions[0], look_at_dot, &pack);
    }
    for (size_t i = 0; i < pack.copies.count; i++) {
        build_copy(&pack, &pack.copies.items[i]);
        tile_pass_remark(context, pack.copies.items[i].grid, TILE_DECISION_PACKED, pack.copies.items[i].tensor->name, "%s",
                         "its rows begin at multiples of 128 bytes there");
    }
    for (size_t i = 0; i < pack.loads.count; i++)
        replace_load(&pack, pack.loads.items[i].load, &pack.copies.items[pack.loads.items[i].copy]);
    return pack.asked || pack.copies.count ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
