/* Purpose: go through tensors element by element as they lie in memory, not row by row. Where each program of a grid
 * computes a tile of elements from the elements at the same place in other tensors, and all of these tensors are known
 * to have no gaps (`dense`), the axes of the grid become one: a program takes so many neighbouring elements. Rows have
 * no edges then and may begin anywhere, and nothing depends on how long they are.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<bf16, 2, in> {dense = 3}, %y: tensor<bf16, 2, out> {dense = 3}) {
 *       %M = dim %x {axis = 0} : i64
 *       %N = dim %x {axis = 1} : i64
 *       check_dim %y, %M {axis = 0, text = "M"}
 *       check_dim %y, %N {axis = 1, text = "N"}
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %1023 = const {value = 1023} : i64
 *       %1024 = const {value = 1024} : i64
 *       %above = add %N, %1023 : i64
 *       %columns = div %above, %1024 : i64
 *       grid %M, %columns (%m: i64, %n: i64) {
 *         %first = mul %n, %1024 : i64
 *         %left = sub %N, %first : i64
 *         %hi = min %left, %1024 : i64
 *         %v = load_tile %x, %m, %one, %zero, %one, %first, %one, %zero, %hi {access = [range, range]} : bf16[1, 1024]
 *         %w = neg %v : bf16[1, 1024]
 *         store_tile %y, %w, %m, %one, %zero, %one, %first, %one, %zero, %hi {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<bf16, 2, in> {dense = 3, used_dense = 1, asked_dense = 1},
 *       %y: tensor<bf16, 2, out> {dense = 3, used_dense = 1, asked_dense = 1}) {
 *       %M = dim %x {axis = 0} : i64
 *       %N = dim %x {axis = 1} : i64
 *       check_dim %y, %M {axis = 0, text = "M"}
 *       check_dim %y, %N {axis = 1, text = "N"}
 *       %0 = mul %M, %N : i64
 *       %1 = const {value = 1023} : i64
 *       %2 = add %0, %1 : i64
 *       %3 = const {value = 1024} : i64
 *       %4 = div %2, %3 : i64
 *       grid %4 (%5: i64) {
 *         %6 = mul %5, %3 : i64
 *         %7 = sub %0, %6 : i64
 *         %8 = min %7, %3 : i64
 *         %9 = const {value = 1} : i64
 *         %10 = const {value = 0} : i64
 *         %v = load_tile %x, %10, %6, %9, %10, %8 {access = [index, range], flat = 0} : bf16[1024]
 *         %w = neg %v : bf16[1024]
 *         store_tile %y, %w, %10, %6, %9, %10, %8 {access = [index, range], flat = 0}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-flatten,dce
 * The same with more axes, of which the first may be single indices (`x[b, m, n]`): where tensors have gaps between
 * what these tell apart, only the axes behind become one. Where a fact is missing it is asked for: a gain is certain.
 *
 * Needs: inline; bounds in the form that facts gives them. Keeps: tile form; each element is computed by the same ops.
 * Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"
#include "ptx/grid/flat_places.h"
#include "ptx/passes.h"

enum { MOST_AXES = TILE_MAX_TENSOR_RANK };

typedef struct Flat {
    TilePassContext *context;
    TileFunc *kernel;
    TileOp *grid;
    GpuFlatAxis axes[MOST_AXES];
    unsigned count;
    TILE_LIST(TileOp *) accesses;  /* of elements at the program's place */
    TILE_LIST(TileValue *) values; /* tiles */
    TileMap places;                /* integers that tell where the program is */
    GpuFlatPlaces flat_places;     /* tiles of the elements' numbers, row by row */
    const char *subject, *why;     /* what stands in the way */
} Flat;

static bool decline(Flat *flat, const TileValue *subject, const char *why) {
    flat->subject = subject && subject->name ? subject->name : "a value";
    flat->why = why;
    return false;
}

/* ---- the axes ---- */

static bool is_start(const Flat *flat, unsigned axis, const TileValue *first, int64_t size) {
    const TileValue *program = flat->axes[axis].program;
    const TileOp *product = tile_value_def(first, TILE_OP_MUL);
    if (tile_value_is_integer(first, 0)) return tile_value_is_integer(tile_op_operand(flat->grid, axis), 1);
    if (size == 1) return first == program;
    return product &&
           ((tile_op_operand(product, 0) == program && tile_value_is_integer(tile_op_operand(product, 1), size)) ||
            (tile_op_operand(product, 1) == program && tile_value_is_integer(tile_op_operand(product, 0), size)));
}

/* E of the number of programs (E + size - 1) / size. */
static TileValue *extent_of_programs(TileValue *programs, int64_t size) {
    const TileOp *div = tile_value_def(programs, TILE_OP_DIV);
    if (size == 1) return programs;
    const TileOp *sum = div && tile_value_is_integer(tile_op_operand(div, 1), size)
                            ? tile_value_def(tile_op_operand(div, 0), TILE_OP_ADD)
                            : NULL;
    if (!sum) return NULL;
    if (tile_value_is_integer(tile_op_operand(sum, 1), size - 1)) return tile_op_operand(sum, 0);
    return tile_value_is_integer(tile_op_operand(sum, 0), size - 1) ? tile_op_operand(sum, 1) : NULL;
}

/* E where hi is min(E - first, size). */
static TileValue *extent_of_bound(const TileValue *hi, const TileValue *first, int64_t size) {
    const TileOp *least = tile_value_def(hi, TILE_OP_MIN);
    for (unsigned i = 0; least && i < 2; i++) {
        if (!tile_value_is_integer(tile_op_operand(least, i), size)) continue;
        TileValue *left = tile_op_operand(least, 1 - i);
        const TileOp *rest = tile_value_def(left, TILE_OP_SUB);
        if (tile_value_is_integer(first, 0)) return left;
        if (rest && tile_op_operand(rest, 1) == first) return tile_op_operand(rest, 0);
    }
    return NULL;
}

/* How far the tiles go along the axis, by the bound of a range. A bound that is a number is that of whole tiles, or of
 * the only one. */
static bool read_extent(const Flat *flat, unsigned axis, const TileAccessIndex *index, int64_t size, GpuFlatAxis *found) {
    TileValue *programs = tile_op_operand(flat->grid, axis);
    int64_t hi, count;
    found->extent = NULL;
    if (!tile_value_integer(index->hi, &hi)) {
        found->extent = extent_of_bound(index->hi, index->first, size);
        return found->extent && tile_value_outside(found->extent, flat->grid);
    }
    if (tile_value_integer(programs, &count)) {
        found->number = hi == size ? count * size : hi;
        return count > 0 && hi > 0 && (hi == size || count == 1);
    }
    found->extent = hi == size ? extent_of_programs(programs, size) : NULL;
    return found->extent != NULL;
}

static bool read_axis(const Flat *flat, unsigned axis, const TileAccessIndex *index, const TileType *type,
                      GpuFlatAxis *found) {
    *found = flat->axes[axis];
    found->known = true;
    found->tiled = index->kind == TILE_ACCESS_RANGE;
    found->size = found->tiled ? type->extent[index->axis] : 1;
    if (index->kind == TILE_ACCESS_GATHER) return false;
    if (!found->tiled) {
        found->extent = tile_op_operand(flat->grid, axis);
        return is_start(flat, axis, index->first, 1);
    }
    return tile_value_is_integer(index->step, 1) && tile_value_is_integer(index->lo, 0) &&
           is_start(flat, axis, index->first, found->size) && read_extent(flat, axis, index, found->size, found);
}

static bool is_same_extent(const GpuFlatAxis *a, const TileValue *extent) {
    int64_t number;
    if (a->extent) return tile_value_is_same(a->extent, extent);
    return tile_value_integer(extent, &number) && number == a->number;
}

static bool is_same_axis(const GpuFlatAxis *a, const GpuFlatAxis *b) {
    if (a->tiled != b->tiled || a->size != b->size) return false;
    if (b->extent) return is_same_extent(a, b->extent);
    int64_t number;
    return a->extent ? tile_value_integer(a->extent, &number) && number == b->number : a->number == b->number;
}

/* Is that the tensor's extent, as far as a launch checks it? */
static bool is_extent_of(const TileValue *tensor, unsigned dimension, const GpuFlatAxis *axis) {
    const TileOp *temp = tile_value_def(tensor, TILE_OP_TEMP);
    if (temp) return is_same_extent(axis, tile_op_operand(temp, dimension));
    for (const TileUse *use = tensor->first_use; use; use = use->next) {
        const TileOp *op = use->user;
        if (use->index || tile_op_integer(op, TILE_ATTRIBUTE_AXIS, -1) != (int64_t)dimension) continue;
        if (op->id == TILE_OP_DIM && is_same_extent(axis, &op->results[0])) return true;
        if (op->id == TILE_OP_CHECK_DIM && is_same_extent(axis, tile_op_operand(op, 1))) return true;
    }
    return false;
}

/* ---- what the programs do ---- */

static bool is_place(Flat *flat, const TileValue *value) { return tile_map_get(&flat->places, value) != NULL; }

static bool takes_places(Flat *flat, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (is_place(flat, tile_op_operand(op, i))) return true;
    return false;
}

/* An access of the elements at the program's place, dimension by dimension. */
static bool look_at_access(Flat *flat, TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tensor = tile_op_operand(op, 0), *tile = tile_accessed_tile(op);
    unsigned rank = tile_access_read(op, indices);
    if (!tile) return decline(flat, tensor, "an element is not part of a tile");
    if (rank != flat->count) return decline(flat, tensor, "it has not the dimensions of the grid");
    for (unsigned d = 0; d < rank; d++) {
        GpuFlatAxis found;
        if (!read_axis(flat, d, &indices[d], tile->type, &found))
            return decline(flat, tensor, "its elements are not those at the place of the program");
        if (flat->axes[d].known && !is_same_axis(&flat->axes[d], &found))
            return decline(flat, tensor, "its tiles are not those of the other tensors");
        if (!is_extent_of(tensor, d, &found)) return decline(flat, tensor, "not all of its elements are accessed");
        flat->axes[d] = found;
    }
    tile_list_push(flat->context->scratch, &flat->accesses, op);
    return true;
}

/* Does each program load the same scalar? */
static bool is_for_all(Flat *flat, const TileOp *op) {
    return op->id == TILE_OP_LOAD_TILE && tile_type_is_scalar(op->results[0].type) && !takes_places(flat, op);
}

static bool is_elementwise(const TileOp *op) { return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE; }

/* Does the block compute elements, each by itself? Others need no remark. */
static bool is_by_element(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        switch ((int)op->id) {
        case TILE_OP_LOAD_TILE:
        case TILE_OP_STORE_TILE:
        case TILE_OP_CONST:
        case TILE_OP_SPLAT:
        case TILE_OP_IOTA:
        case TILE_OP_RESHAPE:
        case TILE_OP_BROADCAST:
        case TILE_OP_FOR:
        case TILE_OP_IF:
        case TILE_OP_YIELD: break;
        default:
            if (!is_elementwise(op)) return false;
        }
        for (unsigned i = 0; i < op->region_count; i++)
            if (!is_by_element(&op->regions[i])) return false;
    }
    return true;
}

static bool look_at_block(Flat *flat, TileBlock *block);

/* The axes, as the accesses have them. */
static bool look_at_accesses(Flat *flat, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        bool access = op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE;
        if (access && !is_for_all(flat, op) && !look_at_access(flat, op)) return false;
        for (unsigned i = 0; i < op->region_count; i++)
            if (!look_at_accesses(flat, &op->regions[i])) return false;
    }
    return true;
}

/* Is it a part of a tile of places, or that itself? */
static bool is_of_places(Flat *flat, const TileOp *op) {
    return op->result_count == 1 && tile_map_get(&flat->flat_places.parts, &op->results[0]) != NULL;
}

static bool look_at_op(Flat *flat, TileOp *op) {
    if (is_of_places(flat, op)) return true;
    if (op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE)
        return is_for_all(flat, op) || look_at_access(flat, op);
    if (op->id == TILE_OP_IOTA) return decline(flat, &op->results[0], "it depends on the place in the tile");
    if (op->id == TILE_OP_RESHAPE || op->id == TILE_OP_BROADCAST)
        return decline(flat, &op->results[0], "it is the same in a row or column");
    if (takes_places(flat, op)) {
        bool integer = is_elementwise(op) && tile_type_is_scalar(op->results[0].type);
        if (!integer)
            return decline(flat, op->result_count ? &op->results[0] : NULL, "it depends on the place of the program");
        tile_map_set(&flat->places, &op->results[0], op);
    }
    for (unsigned i = 0; i < op->region_count; i++)
        if (!look_at_block(flat, &op->regions[i])) return false;
    return true;
}

static void note_tile(Flat *flat, TileValue *value) {
    if (tile_type_is_tile(value->type)) tile_list_push(flat->context->scratch, &flat->values, value);
}

static bool look_at_block(Flat *flat, TileBlock *block) {
    for (unsigned i = 0; i < block->argument_count; i++) note_tile(flat, block->arguments[i]);
    for (TileOp *op = block->first; op; op = op->next) {
        if (!look_at_op(flat, op)) return false;
        for (unsigned i = 0; i < op->result_count && !is_of_places(flat, op); i++) note_tile(flat, &op->results[i]);
    }
    return true;
}

/* Are all tiles of the extents that the accesses have? */
static bool are_tiles_alike(Flat *flat) {
    for (size_t i = 0; i < flat->values.count; i++) {
        const TileType *type = flat->values.items[i]->type;
        unsigned axis = 0;
        bool alike = true;
        for (unsigned a = 0; a < flat->count && alike; a++)
            if (flat->axes[a].tiled) alike = axis < type->rank && type->extent[axis++] == flat->axes[a].size;
        if (!alike || axis != type->rank) return decline(flat, flat->values.items[i], "it is a tile of another shape");
    }
    return true;
}

/* Has a tensor other accesses in the grid? They would be compared with the flat ones dimension by dimension. */
static bool are_tensors_flat(Flat *flat) {
    size_t uses = 0;
    for (size_t i = 0; i < flat->accesses.count; i++) {
        const TileValue *tensor = tile_op_operand(flat->accesses.items[i], 0);
        for (const TileUse *use = tensor->first_use; use; use = use->next) {
            if (!tile_block_inside(use->user->block, &flat->grid->regions[0])) continue;
            bool listed = false;
            for (size_t k = 0; k < flat->accesses.count; k++) listed |= flat->accesses.items[k] == use->user;
            if (!listed) return decline(flat, tensor, "single elements of it are accessed too");
            uses++;
        }
    }
    return uses > 0;
}

/* ---- facts ---- */

/* Have all tensors no gaps from the dimension on? Asks for the facts, up to one that does not hold. */
static bool ask_for_dense(Flat *flat, unsigned from) {
    TileParameter *parameters = flat->kernel->parameters;
    for (size_t i = 0; i < flat->accesses.count; i++) {
        const TileValue *tensor = tile_op_operand(flat->accesses.items[i], 0);
        if (tensor->op) continue; /* a temporary */
        TileParameter *parameter = &parameters[tensor->index];
        parameter->asked_dense |= 1u << from;
        if (!(parameter->facts.dense >> from & 1)) return decline(flat, tensor, "it may have gaps between its rows");
    }
    for (size_t i = 0; i < flat->accesses.count; i++) {
        const TileValue *tensor = tile_op_operand(flat->accesses.items[i], 0);
        if (!tensor->op) parameters[tensor->index].used_dense |= 1u << from;
    }
    return true;
}

/* The first of the axes that become one. */
static bool choose_first(Flat *flat, unsigned *first) {
    for (*first = 0; *first + 1 < flat->count; ++*first) {
        if (ask_for_dense(flat, *first)) return true;
        if (flat->axes[*first].tiled) return false;
    }
    return false;
}

/* Tiles of places number all elements, from the first axis on. */
static bool is_from_first(Flat *flat, unsigned from) {
    return !from || !flat->flat_places.found.count || decline(flat, NULL, "it depends on the place of the program");
}

/* ---- the new grid ---- */

static TileValue *build_extent(TileBuilder *host, const GpuFlatAxis *axis) {
    return axis->extent ? axis->extent : tile_build_i64(host, axis->number);
}

/* What the accesses of a program have in common: its first element, and how many there are. */
typedef struct Range {
    unsigned from; /* the dimension */
    TileValue *first, *one, *zero, *hi;
    int64_t size;
} Range;

/* The op's operands and attributes with other indices. */
static void rebuild_access(Flat *flat, TileOp *op, const Range *range) {
    TileModule *module = flat->context->module;
    TileBuilder b = tile_builder_before(module, op);
    TileValue *operands[8 + TILE_MAX_TENSOR_RANK];
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    unsigned count = 0, first = tile_access_first(op), end = tile_access_end(op), rank = flat->count;
    for (unsigned i = 0; i < first; i++) operands[count++] = tile_op_operand(op, i);
    for (unsigned d = 0; d + 1 < rank; d++) {
        kinds[d] = TILE_ACCESS_INDEX;
        operands[count++] = d < range->from ? tile_op_named_at(op, TILE_OPERAND_INDICES, d) : range->zero;
    }
    kinds[rank - 1] = TILE_ACCESS_RANGE;
    operands[count++] = range->first;
    operands[count++] = range->one;
    operands[count++] = range->zero;
    operands[count++] = range->hi;
    for (unsigned i = end; i < op->operand_count; i++) operands[count++] = tile_op_operand(op, i);
    TileAttribute attributes[TILE_ATTRIBUTE_COUNT];
    unsigned attribute_count = 0;
    for (unsigned i = 0; i < op->attribute_count; i++) {
        attributes[attribute_count] = op->attributes[i];
        if (op->attributes[i].key == TILE_ATTRIBUTE_ACCESS) attributes[attribute_count].integers = kinds;
        attribute_count++;
    }
    attributes[attribute_count++] = (TileAttribute){.key = TILE_ATTRIBUTE_FLAT, .integer = range->from};
    const TileType *type = op->result_count ? op->results[0].type : NULL;
    TileOp *made =
        tile_build_op(&b, (TileOpId)op->id, operands, count, attributes, attribute_count, &type, op->result_count);
    if (op->result_count) {
        made->results[0].name = op->results[0].name;
        tile_value_replace(&op->results[0], &made->results[0]);
    }
    tile_op_erase(op);
}

static TileOp *build_grid(Flat *flat, TileBuilder *host, Range *range) {
    TileValue *extents[MOST_AXES], *total = build_extent(host, &flat->axes[range->from]);
    for (unsigned a = range->from + 1; a < flat->count; a++)
        total = tile_build_binary(host, TILE_OP_MUL, total, build_extent(host, &flat->axes[a]));
    for (unsigned a = 0; a < range->from; a++) extents[a] = tile_op_operand(flat->grid, a);
    TileValue *rounded = tile_build_binary(host, TILE_OP_ADD, total, tile_build_i64(host, range->size - 1));
    TileValue *size = tile_build_i64(host, range->size);
    extents[range->from] = tile_build_binary(host, TILE_OP_DIV, rounded, size);
    TileOp *grid = tile_build_grid(host, extents, range->from + 1);
    TileBuilder b = tile_builder_at_end(flat->context->module, &grid->regions[0]);
    b.location = flat->grid->location;
    range->first = tile_build_binary(&b, TILE_OP_MUL, grid->regions[0].arguments[range->from], size);
    range->hi = tile_build_binary(&b, TILE_OP_MIN, tile_build_binary(&b, TILE_OP_SUB, total, range->first), size);
    range->one = tile_build_i64(&b, 1);
    range->zero = tile_build_i64(&b, 0);
    return grid;
}

/* The numbers of the program's elements, one after the other. What they were computed of is used no more. */
static void replace_places(Flat *flat, const GpuFlatPlaces *places, const Range *range) {
    TileContext *context = flat->context->module->context;
    for (size_t i = 0; i < places->found.count; i++) {
        TileValue *place = places->found.items[i];
        TileBuilder b = tile_builder_before(flat->context->module, place->op);
        const TileType *type = tile_type_tile(context, TILE_I64, 1, &range->size);
        TileValue *first = tile_build_splat(&b, range->first, type), *lanes = tile_build_iota(&b, type, 0);
        tile_value_replace(place, tile_build_binary(&b, TILE_OP_ADD, first, lanes));
    }
}

/* The indices of the axes that are one now have no more uses but by ops without any. */
static void flatten(Flat *flat, unsigned from) {
    TileModule *module = flat->context->module;
    TileBuilder host = tile_builder_before(module, flat->grid);
    Range range = {.from = from, .size = 1};
    for (unsigned a = 0; a < flat->count; a++) range.size *= flat->axes[a].size;
    TileOp *grid = build_grid(flat, &host, &range);
    for (size_t i = 0; i < flat->values.count; i++) {
        TileValue *value = flat->values.items[i];
        value->type = tile_type_tile(module->context, value->type->scalar, 1, &range.size);
    }
    for (size_t i = 0; i < flat->accesses.count; i++) rebuild_access(flat, flat->accesses.items[i], &range);
    replace_places(flat, &flat->flat_places, &range);
    TileBlock *body = &flat->grid->regions[0];
    for (unsigned a = 0; a < flat->count; a++) {
        TileValue *with = a < from ? grid->regions[0].arguments[a] : range.zero;
        if (a < from) with->name = body->arguments[a]->name;
        tile_value_replace(body->arguments[a], with);
        if (a >= from) with->name = NULL;
    }
    tile_block_splice(&grid->regions[0], body);
    tile_op_erase(flat->grid);
    tile_pass_remark(flat->context, grid, TILE_DECISION_FLATTENED, "the grid", "%lld elements for each program",
                     (long long)range.size);
}

static bool try_grid(TilePassContext *context, TileFunc *kernel, TileOp *grid) {
    Flat flat = {.context = context, .kernel = kernel, .grid = grid, .count = grid->operand_count};
    unsigned from;
    if (flat.count < 2 || flat.count > MOST_AXES || !is_by_element(&grid->regions[0])) return false;
    tile_map_init(&flat.places, context->scratch);
    for (unsigned a = 0; a < flat.count; a++) {
        flat.axes[a].program = grid->regions[0].arguments[a];
        tile_map_set(&flat.places, flat.axes[a].program, grid);
    }
    if (look_at_accesses(&flat, &grid->regions[0])) {
        flat.accesses.count = 0;
        flat.flat_places = (GpuFlatPlaces){.axes = flat.axes, .count = flat.count, .grid = grid};
        gpu_find_flat_places(&flat.flat_places, context->scratch);
    }
    if (!flat.why && look_at_block(&flat, &grid->regions[0]) && flat.accesses.count && are_tiles_alike(&flat) &&
        are_tensors_flat(&flat) && choose_first(&flat, &from) && is_from_first(&flat, from)) {
        flatten(&flat, from);
        return true;
    }
    if (flat.why)
        tile_pass_remark(context, grid, TILE_DECISION_NOT_FLATTENED, "the grid", "%s: %s", flat.subject, flat.why);
    return false;
}

TileResult tile_pass_gpu_flatten(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    uint32_t asked = 0, after = 0;
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (uint32_t i = 0; i < func->body.argument_count; i++)
        asked += (uint32_t)__builtin_popcount(func->parameters[i].asked_dense);
    for (TileOp *op = func->body.first, *next; op; op = next) {
        next = op->next;
        if (op->id == TILE_OP_GRID) changed |= try_grid(context, func, op);
    }
    for (uint32_t i = 0; i < func->body.argument_count; i++)
        after += (uint32_t)__builtin_popcount(func->parameters[i].asked_dense);
    return changed || asked != after ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
