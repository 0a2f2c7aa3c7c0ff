/* Purpose: compute operands of products once, before the products. What a product takes may be computed of what is loaded:
 * weights of 8 bits times their scales, silu of one tile times another, every second element of a row. Each program of the grid
 * that multiplies it computes it again, as often as there are tiles along the grid's other axes. A grid of its own computes each tile of
 * the operand once and stores it to a temporary, from which programs load it, by tensor maps; of products by multiply-adds of f32 it is stored
 * across k, as these take it (gpu-pack). Where `packs` of the kernel says
 * that this pays: the model has compared both.
 *
 * Before:
 *     func kernel tile @k(%a: tensor<f16, 2, in> {map}, %b: tensor<i8, 2, in> {map}, %c: tensor<f32, 2, out>
 *         {noalias}) packs = 1 {
 *       %M = dim %a {axis = 0} : i64
 *       %K = dim %a {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %64 = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       grid %M, %one (%m: i64, %n: i64) {
 *         %i = mul %m, %64 : i64
 *         %j = mul %n, %64 : i64
 *         %s = for %zero, %K, %64, %acc : f32[64, 64] (%k: i64, %t: f32[64, 64]) {
 *           %x = load_tile %a, %i, %one, %zero, %64, %k, %one, %zero, %64 {access = [range, range]} : f16[64, 64]
 *           %y = load_tile %b, %k, %one, %zero, %64, %j, %one, %zero, %64 {access = [range, range]} : i8[64, 64]
 *           %z = convert %y : f16[64, 64]
 *           %u = dot %x, %z, %t : f32[64, 64]
 *           yield %u
 *         }
 *         store_tile %c, %s, %i, %one, %zero, %64, %j, %one, %zero, %64 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%a: tensor<f16, 2, in> {map}, %b: tensor<i8, 2, in> {map}, %c:
 *         tensor<f32, 2, out> {noalias}) packs = 1 {
 *       %M = dim %a {axis = 0} : i64
 *       %K = dim %a {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %1 = dim %b {axis = 0} : i64
 *       %2 = max %1, %one : i64
 *       %3 = dim %b {axis = 1} : i64
 *       %4 = max %3, %one : i64
 *       %5 = temp %2, %4 {align = 128} : tensor<f16, 2, temp>
 *       %6 = max %K, %zero : i64
 *       %7 = const {value = 63} : i64
 *       %8 = add %6, %7 : i64
 *       %9 = div %8, %0 : i64
 *       grid %9, %one (%10: i64, %11: i64) {
 *         %12 = mul %10, %0 : i64
 *         %y = load_tile %b, %12, %one, %zero, %0, %zero, %one, %zero, %0 {access = [range, range]} : i8[64, 64]
 *         %z = convert %y : f16[64, 64]
 *         store_tile %5, %z, %12, %one, %zero, %0, %zero, %one, %zero, %0 {access = [range, range]}
 *         yield
 *       }
 *       grid %M, %one (%m: i64, %n: i64) {
 *         %i = mul %m, %0 : i64
 *         %s = for %zero, %K, %0, %acc : f32[64, 64] (%k: i64, %t: f32[64, 64]) {
 *           %x = load_tile %a, %i, %one, %zero, %0, %k, %one, %zero, %0 {access = [range, range]} : f16[64, 64]
 *           %z.1 = load_tile %5, %k, %one, %zero, %0, %zero, %one, %zero, %0 {access = [range, range]} : f16[64, 64]
 *           %u = dot %x, %z.1, %t : f32[64, 64]
 *           yield %u
 *         }
 *         store_tile %c, %s, %i, %one, %zero, %0, %zero, %one, %zero, %0 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Tiles of the operand have to be apart: along each of its axes they begin at a multiple of its extent, with a program or an iteration
 * of a loop, whose bounds the host knows. What a loop computes and what has a mask stays, and what has so few elements along k that
 * products do not go by wgmma.
 * Run: --passes=gpu-precompute,canonicalise,cse,dce --target=sm_90a
 * Needs: inline; bounds in the form that facts gives them. Keeps: tile form; each operand has the same elements. Cost:
 * linear in the ops of the operands. */
#include <string.h>

#include "base/temp.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/passes.h"
#include "ptx/target/map.h"

enum { AXES = 2, MOST_OTHERS = TILE_MAP_MOST_RANK - AXES, MOST_OPS = 96, MOST_DEPTH = 16, LEAST_BYTES_ALONG_K = 32, FIRST_CARRIED = 3 };

/* Where the operand's tiles begin along one of its axes. */
typedef struct Place {
    TileValue *first, *lo, *hi; /* in the program: of the tile, and of its elements in the tile */
    TileValue *extent;          /* of all elements; the host knows it. NULL: that of the tensor along `dimension` */
    TileValue *tensor;
    unsigned dimension;
    TileValue *variable;        /* of the grid or of a loop, of which there is a tile for each value */
} Place;

typedef struct Precompute {
    TilePassContext *context;
    TileFunc *kernel;
    TileOp *grid; /* that is being looked at */
    const char *why;
    /* Of one operand. */
    TileMap needed; /* ops */
    TileOp *leaf;   /* a load that gives the operand's elements their places; NULL: the product does */
    Place places[AXES];
    TileValue *others[MOST_OTHERS]; /* of the grid, on which the operand depends as well */
    unsigned op_count, other_count;
    bool turned; /* the temporary has its axes in the other order */
    bool changed;
} Precompute;

static bool decline(Precompute *p, const char *why) {
    if (!p->why) p->why = why;
    return false;
}

/* ---- what the operand is computed of ---- */

/* The loop whose induction variable the value is. */
static TileOp *loop_of(const TileValue *value) {
    TileOp *op = value->op ? NULL : value->block->op;
    return op && op->id == TILE_OP_FOR && op->regions[0].arguments[0] == value ? op : NULL;
}

static bool is_of_grid(const Precompute *p, const TileValue *value) { return !value->op && value->block == &p->grid->regions[0]; }

static bool add_variable(Precompute *p, TileValue *value) {
    for (unsigned i = 0; i < AXES; i++)
        if (p->places[i].variable == value) return true;
    for (unsigned i = 0; i < p->other_count; i++)
        if (p->others[i] == value) return true;
    if (!is_of_grid(p, value)) return decline(p, "it depends on what a loop carries, or on another loop's iteration");
    if (p->other_count == MOST_OTHERS) return decline(p, "it depends on too many indices of the grid");
    p->others[p->other_count++] = value;
    return true;
}

static bool is_read_only(const Precompute *p, const TileOp *load) {
    const TileValue *tensor = tile_op_operand(load, 0);
    if (tile_value_def(tensor, TILE_OP_TEMP)) return !tile_memory_is_written(p->grid, tensor); /* of a grid before */
    if (tensor->op || tensor->type->access != TILE_ACCESS_IN) return false;
    for (const TileOp *op = p->kernel->body.first; op; op = op->next)
        if (tile_memory_is_written(op, tensor)) return false;
    return true;
}

/* Adds the ops that compute the value in the grid, and the variables that it depends on. */
static bool add_needed(Precompute *p, TileValue *value) {
    TileOp *op = value->op;
    if (tile_value_outside(value, p->grid)) return true;
    if (!op) return add_variable(p, value);
    if (tile_map_get(&p->needed, op)) return true;
    if (op->region_count) return decline(p, "a loop or a branch computes it");
    if (op->id == TILE_OP_DOT) return decline(p, "it is computed of a product");
    if (op->id == TILE_OP_LOAD_TILE) {
        if (!is_read_only(p, op)) return decline(p, "it is computed of what is no argument that is only read");
        if (op == p->leaf && tile_op_has_part(op, TILE_PARTS_MASK)) return decline(p, "it has a mask");
    } else if (!tile_op_is_pure(op)) {
        return decline(p, "it is computed by an operation with effects");
    }
    if (++p->op_count > MOST_OPS) return decline(p, "it is computed by too many operations");
    tile_map_set(&p->needed, op, op);
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!add_needed(p, tile_op_operand(op, i))) return false;
    return true;
}

/* A load of a tile like the value, without whose elements the value has none: so all of the value lies where that load's tile does. */
static TileOp *find_leaf(const TileValue *value, const TileType *type, unsigned depth) {
    TileOp *op = value->op;
    if (!op || !depth || !tile_type_is_tile(value->type) || !tile_type_same_shape(value->type, type)) return NULL;
    if (op->id == TILE_OP_LOAD_TILE) return op;
    if (tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_SELECT) return NULL;
    TileOp *leaf = NULL;
    for (unsigned i = 0; !leaf && i < op->operand_count; i++) leaf = find_leaf(tile_op_operand(op, i), type, depth - 1);
    return leaf;
}

/* ---- where its tiles begin ---- */

/* What of the operand is computed, less what a tensor map does: another order of axes, and zeros beyond a range. */
static TileValue *computed_operand(const TileOp *dot, unsigned number, bool *across) {
    TileValue *value = tile_op_operand(dot, number);
    *across = false;
    for (; value->op && (value->op->id == TILE_OP_PERMUTE || value->op->id == TILE_OP_FILL); value = tile_op_operand(value->op, 0))
        *across ^= value->op->id == TILE_OP_PERMUTE && tile_op_get(value->op, TILE_ATTRIBUTE_AXES)->integers[0] != 0;
    return value;
}

/* Do programs of the grid, or iterations of a loop whose bounds the host knows, begin `step` apart with the value? */
static bool begins_by(const Precompute *p, const TileValue *value, int64_t step) {
    const TileOp *loop = loop_of(value);
    if (is_of_grid(p, value)) return step == 1;
    return loop && tile_value_is_integer(tile_op_named(loop, TILE_OPERAND_STEP), step) &&
           tile_value_outside(tile_op_named(loop, TILE_OPERAND_LO), p->grid) && tile_value_outside(tile_op_named(loop, TILE_OPERAND_HI), p->grid);
}

/* Is it `first` a variable whose values are `extent` apart, or a multiple of one? */
static bool find_variable(const Precompute *p, Place *place, int64_t extent) {
    int64_t factor;
    TileOp *mul = tile_value_def(place->first, TILE_OP_MUL);
    for (unsigned i = 0; mul && i < 2; i++)
        if (tile_value_integer(tile_op_operand(mul, !i), &factor) && factor > 0 && extent % factor == 0 &&
            begins_by(p, tile_op_operand(mul, i), extent / factor))
            place->variable = tile_op_operand(mul, i);
    if (!mul && begins_by(p, place->first, extent)) place->variable = place->first;
    return place->variable != NULL;
}

/* By what is left of all elements, min(all - first, extent); whole tiles of the tensor itself have a constant there. */
static bool find_place(Precompute *p, Place *place, const TileOp *access, const TileAccessIndex *index, unsigned d, int64_t extent) {
    TileOp *min = tile_value_def(index->hi, TILE_OP_MIN), *left = min ? tile_value_def(tile_op_operand(min, 0), TILE_OP_SUB) : NULL;
    *place = (Place){.first = index->first, .lo = index->lo, .hi = index->hi, .tensor = tile_op_operand(access, 0), .dimension = d};
    if (left && tile_value_is_integer(tile_op_operand(min, 1), extent)) {
        place->extent = tile_op_operand(left, 0);
        place->first = tile_op_operand(left, 1);
    } else if (!tile_value_is_integer(index->hi, extent) || !tile_value_is_integer(index->step, 1)) {
        return false;
    }
    bool counted = !place->extent || tile_value_outside(place->extent, p->grid);
    return counted && tile_value_is_integer(index->lo, 0) && find_variable(p, place, extent);
}

/* Along an axis of the tile that is loaded or stored. */
static bool find_place_by(Precompute *p, Place *place, const TileOp *access, unsigned axis) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileType *tile = access->id == TILE_OP_LOAD_TILE ? access->results[0].type : tile_op_named(access, TILE_OPERAND_VALUE)->type;
    unsigned rank = tile_access_read(access, indices);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_RANGE && indices[d].axis == (int)axis)
            return find_place(p, place, access, &indices[d], d, tile->extent[axis]);
    return false;
}

/* Stores of sums, and of what is computed of them element by element, in all of which `axis` lies in the same place. */
typedef struct Stores {
    Precompute *p;
    TileMap seen; /* values */
    Place place;
} Stores;

static bool follow_sums(Stores *s, TileValue *value, unsigned axis);

static bool follow_carried(Stores *s, TileOp *loop, unsigned number, unsigned axis) {
    return follow_sums(s, &loop->results[number], axis) && follow_sums(s, loop->regions[0].arguments[1 + number], axis);
}

static bool follow_use(Stores *s, const TileUse *use, unsigned axis) {
    TileOp *user = use->user, *owner = user->block->op;
    Place place;
    if (user->id == TILE_OP_STORE_TILE) {
        if (tile_op_named(user, TILE_OPERAND_VALUE) != use->value || !find_place_by(s->p, &place, user, axis)) return false;
        bool same = place.first == s->place.first && place.lo == s->place.lo && place.hi == s->place.hi && place.extent == s->place.extent;
        if (s->place.variable && !same) return false;
        s->place = place;
        return true;
    }
    if (user->id == TILE_OP_YIELD && owner && owner->id == TILE_OP_FOR)
        return follow_carried(s, owner, use->index, axis);
    if (user->id == TILE_OP_FOR && use->index >= FIRST_CARRIED) return follow_carried(s, user, use->index - FIRST_CARRIED, axis);
    if (user->id == TILE_OP_PERMUTE) {
        const TileAttribute *axes = tile_op_get(user, TILE_ATTRIBUTE_AXES);
        for (unsigned i = 0; i < axes->count; i++)
            if (axes->integers[i] == axis) return follow_sums(s, &user->results[0], i);
    }
    bool sums = user->id == TILE_OP_DOT && tile_op_named(user, TILE_OPERAND_SUM) == use->value;
    bool alike = sums || tile_op_info((TileOpId)user->id)->class == TILE_CLASS_ELEMENTWISE;
    return alike && follow_sums(s, &user->results[0], axis);
}

static bool follow_sums(Stores *s, TileValue *value, unsigned axis) {
    if (tile_map_get(&s->seen, value)) return true;
    tile_map_set(&s->seen, value, value);
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (!follow_use(s, use, axis)) return false;
    return true;
}

/* Where no load of such a tile says it, as of packed numbers: along k its elements are those of the other operand, beyond whose end
 * both are 0; along the other axis those that are stored of the sums. */
static bool find_places_of_product(Precompute *p, TileOp *dot, unsigned number, bool across) {
    Stores stores = {.p = p};
    bool other_across;
    TileValue *other = computed_operand(dot, 1 - number, &other_across), *own = tile_op_operand(dot, number);
    const TileOp *load = find_leaf(other, other->type, MOST_DEPTH);
    unsigned along = (number == 0) != across, other_along = (number == 1) != other_across;
    Place *k = &p->places[along];
    if (!load || !find_place_by(p, k, load, other_along)) return false;
    bool ends = !k->extent;
    int64_t axis = number == 0;
    for (const TileOp *op = own->op; op && (op->id == TILE_OP_PERMUTE || op->id == TILE_OP_FILL); op = tile_op_operand(op, 0)->op) {
        const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
        for (unsigned i = 0; op->id == TILE_OP_FILL && i < axes->count; i++)
            ends |= axes->integers[i] == axis && tile_fill_hi(op, i) == k->hi;
        if (op->id == TILE_OP_PERMUTE) axis = axes->integers[axis];
    }
    tile_map_init(&stores.seen, p->context->scratch);
    if (!ends || !follow_sums(&stores, &dot->results[0], number) || !stores.place.variable) return false;
    p->places[1 - along] = stores.place;
    return k->variable != stores.place.variable;
}

static bool find_places_of_leaf(Precompute *p) {
    for (unsigned axis = 0; p->leaf && axis < AXES; axis++)
        if (!find_place_by(p, &p->places[axis], p->leaf, axis)) return false;
    return p->leaf && p->places[0].variable != p->places[1].variable;
}

static bool find_places(Precompute *p, TileOp *dot, unsigned number, bool across) {
    if (find_places_of_leaf(p)) return true;
    memset(p->places, 0, sizeof p->places);
    return find_places_of_product(p, dot, number, across);
}

/* ---- the grid that computes it ---- */

/* Is the value computed ahead of the op, in its block or around it? */
static bool is_there(const TileValue *value, const TileOp *op) {
    const TileBlock *block = tile_value_block(value);
    while (op && op->block != block) op = op->block->op;
    for (const TileOp *at = value->op; at && at != op; at = at->next)
        if (!at->next) return false;
    return op != NULL;
}

/* The value at the op, where what it is computed of is there; computed again if it comes later. */
static TileValue *value_at(const Precompute *p, TileBuilder *b, TileValue *value, const TileOp *op) {
    TileMap map;
    if (is_there(value, op)) return value;
    tile_map_init(&map, p->context->scratch);
    for (unsigned i = 0; i < value->op->operand_count; i++) {
        TileValue *operand = tile_op_operand(value->op, i);
        tile_map_set(&map, operand, value_at(p, b, operand, op));
    }
    TileOp *copy = tile_op_clone(p->context->module, value->op, &map);
    tile_builder_insert(b, copy);
    return &copy->results[value->index];
}

static TileValue *clone_of(const TileMap *map, TileValue *value) {
    TileValue *copy = tile_map_get(map, value);
    return copy ? copy : value;
}

static void clone_needed(Precompute *p, TileBuilder *b, const TileBlock *block, TileMap *map) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (tile_map_get(&p->needed, op)) tile_builder_insert(b, tile_op_clone(p->context->module, op, map));
        for (unsigned i = 0; i < op->region_count; i++) clone_needed(p, b, &op->regions[i], map);
    }
}

/* Of the grid's variable, its programs; of a loop's, its iterations. */
static TileValue *count_values(const Precompute *p, TileBuilder *host, TileValue *variable) {
    if (is_of_grid(p, variable)) return tile_op_operand(p->grid, variable->index);
    const TileOp *loop = loop_of(variable);
    TileValue *step = tile_op_named(loop, TILE_OPERAND_STEP), *lo = tile_op_named(loop, TILE_OPERAND_LO);
    TileValue *hi = tile_build_binary(host, TILE_OP_MAX, tile_op_named(loop, TILE_OPERAND_HI), lo);
    TileValue *span = tile_build_binary(host, TILE_OP_SUB, hi, lo);
    int64_t width = 1;
    tile_value_integer(step, &width);
    span = tile_build_binary(host, TILE_OP_ADD, span, tile_build_i64(host, width - 1));
    return tile_build_binary(host, TILE_OP_DIV, span, tile_build_i64(host, width));
}

static TileValue *value_of(TileBuilder *b, const TileValue *variable, TileValue *number) {
    const TileOp *loop = loop_of(variable);
    int64_t width = 1;
    if (!loop) return number;
    tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &width);
    TileValue *further = tile_build_binary(b, TILE_OP_MUL, number, tile_build_i64(b, width));
    return tile_build_binary(b, TILE_OP_ADD, tile_op_named(loop, TILE_OPERAND_LO), further);
}

/* Of the temporary's axis, behind those of `others`. */
static const Place *place_of_axis(const Precompute *p, unsigned axis) { return &p->places[p->turned ? AXES - 1 - axis : axis]; }

static TileValue *turn(TileBuilder *b, TileValue *tile) { return tile_build_permute(b, tile, (const int64_t[]){1, 0}); }

/* An access of the operand's tile in the temporary, in the program that computes it or, without a map, in those that multiply. */
static TileOp *build_access(const Precompute *p, TileBuilder *b, TileValue *temp, TileValue *stored, const TileType *result, const TileMap *map,
                            const TileOp *at) {
    TileValue *operands[2 + MOST_OTHERS + 4 * AXES], *one = tile_build_i64(b, 1);
    int64_t kinds[MOST_OTHERS + AXES];
    unsigned count = 0, axes = 0;
    operands[count++] = temp;
    if (stored) operands[count++] = stored;
    for (unsigned i = 0; i < p->other_count; i++) {
        kinds[axes++] = TILE_ACCESS_INDEX;
        operands[count++] = map ? clone_of(map, p->others[i]) : p->others[i];
    }
    for (unsigned i = 0; i < AXES; i++) {
        const Place *place = place_of_axis(p, i);
        kinds[axes++] = TILE_ACCESS_RANGE;
        TileValue *bounds[] = {place->first, one, place->lo, place->hi};
        for (unsigned k = 0; k < 4; k++)
            operands[count++] = bounds[k] == one ? one : map ? clone_of(map, bounds[k]) : value_at(p, b, bounds[k], at);
    }
    TileAttribute access = {.key = TILE_ATTRIBUTE_ACCESS, .count = axes, .integers = kinds};
    return tile_build_op(b, stored ? TILE_OP_STORE_TILE : TILE_OP_LOAD_TILE, operands, count, &access, 1, &result, result != NULL);
}

static TileValue *extent_of(TileBuilder *host, const Place *place) {
    return place->extent ? place->extent : tile_build_dim(host, place->tensor, place->dimension);
}

/* A map describes nothing that is empty. */
static TileValue *build_temp(Precompute *p, TileBuilder *host, const TileType *tile) {
    TileValue *extents[MOST_OTHERS + AXES], *one = tile_build_i64(host, 1);
    unsigned rank = p->other_count + AXES;
    for (unsigned i = 0; i < rank; i++) {
        TileValue *extent = i < p->other_count ? count_values(p, host, p->others[i]) : extent_of(host, place_of_axis(p, i - p->other_count));
        extents[i] = tile_build_binary(host, TILE_OP_MAX, extent, one);
    }
    TileAttribute align = {.key = TILE_ATTRIBUTE_ALIGN, .integer = TILE_MOST_TEMP_ALIGN};
    const TileType *type = tile_type_tensor(p->context->module->context, tile->scalar, rank, TILE_ACCESS_TEMP);
    return tile_op_result(tile_build_op(host, TILE_OP_TEMP, extents, rank, &align, 1, &type, 1), 0);
}

static void precompute(Precompute *p, TileValue *operand) {
    TileModule *module = p->context->module;
    TileBuilder host = tile_builder_before(module, p->grid);
    host.location = operand->op->location;
    TileValue *programs[MOST_OTHERS + AXES], *variables[MOST_OTHERS + AXES], *temp = build_temp(p, &host, operand->type);
    unsigned rank = p->other_count + AXES;
    for (unsigned i = 0; i < rank; i++) {
        variables[i] = i < p->other_count ? p->others[i] : p->places[i - p->other_count].variable;
        programs[i] = count_values(p, &host, variables[i]);
    }
    TileOp *grid = tile_build_grid(&host, programs, rank);
    TileBuilder b = tile_builder_at_end(module, &grid->regions[0]);
    TileMap map;
    tile_map_init(&map, p->context->scratch);
    b.location = operand->op->location;
    for (unsigned i = 0; i < rank; i++) tile_map_set(&map, variables[i], value_of(&b, variables[i], grid->regions[0].arguments[i]));
    clone_needed(p, &b, &p->grid->regions[0], &map);
    TileValue *computed = clone_of(&map, operand);
    if (p->turned) computed = turn(&b, computed);
    build_access(p, &b, temp, computed, NULL, &map, NULL);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    b = tile_builder_before(module, operand->op);
    b.location = operand->op->location;
    TileValue *loaded = tile_op_result(build_access(p, &b, temp, NULL, computed->type, NULL, operand->op), 0);
    if (p->turned) loaded = turn(&b, loaded);
    tile_value_replace(operand, loaded);
    p->changed = true;
}

/* ---- which operands ---- */

/* A load by steps of 1 is no computing, nor is another shape of it. */
static bool is_computed(const TileValue *value) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    if (!value->op) return false;
    if (value->op->id == TILE_OP_RESHAPE) return is_computed(tile_op_operand(value->op, 0));
    if (value->op->id != TILE_OP_LOAD_TILE) return tile_op_info((TileOpId)value->op->id)->class == TILE_CLASS_ELEMENTWISE;
    unsigned rank = tile_access_read(value->op, indices);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_RANGE && !tile_value_is_integer(indices[d].step, 1)) return true;
    return false;
}

/* Do programs that differ in an index of the grid compute the same? */
static bool is_shared(const Precompute *p) {
    unsigned used = p->other_count;
    for (unsigned i = 0; i < AXES; i++) used += is_of_grid(p, p->places[i].variable);
    return used < p->grid->regions[0].argument_count;
}

/* `maps`: tensor maps copy it, as wgmma takes it; else it shall lie across k, as multiply-adds of f32 do best (gpu-pack). */
static bool look_at_operand(Precompute *p, TileOp *dot, unsigned number, bool maps) {
    bool across;
    TileValue *operand = computed_operand(dot, number, &across);
    bool along_k = across == (number == 1);
    p->leaf = find_leaf(operand, operand->type, MOST_DEPTH);
    p->op_count = p->other_count = 0;
    p->turned = !maps && along_k;
    memset(p->places, 0, sizeof p->places);
    tile_map_init(&p->needed, p->context->scratch);
    if (maps && tile_scalar_bits(operand->type->scalar) != 16 && !along_k) return decline(p, "its rows do not lie along k");
    if (!find_places(p, dot, number, across))
        return decline(p, p->leaf ? "its tiles do not follow one another, with programs or iterations that the host counts"
                                  : "neither a load of such a tile nor the product decides where its elements are");
    if (!add_needed(p, operand)) return false;
    for (unsigned i = 0; i < AXES; i++)
        if (!add_needed(p, p->places[i].first) || !add_needed(p, p->places[i].hi) || !add_needed(p, p->places[i].lo)) return false;
    for (unsigned i = 0; i < AXES; i++)
        if (!is_there(p->places[i].variable, operand->op)) return decline(p, "it is the same for all iterations of the loop");
    return is_shared(p) || decline(p, "each program computes others");
}

static void look_at_dot(TileOp *op, void *state) {
    Precompute *p = state;
    if (op->id != TILE_OP_DOT) return;
    bool maps = gpu_dot_takes_maps(tile_ptx_target_of(p->context->target), op);
    if (!maps && (tile_op_operand(op, 0)->type->scalar != TILE_F32 || op->results[0].type->rank != AXES)) return;
    for (unsigned number = 0; number < 2; number++) {
        bool across;
        TileValue *operand = computed_operand(op, number, &across);
        if (operand->type->rank != AXES || !is_computed(operand)) continue;
        p->why = NULL;
        TileOp *computed = operand->op;
        bool long_enough = tile_op_operand(op, 0)->type->extent[1] * tile_scalar_bytes(operand->type->scalar) >= LEAST_BYTES_ALONG_K;
        if (!long_enough) decline(p, "its tiles have fewer elements along k than an instruction of warpgroups takes");
        bool good = long_enough && look_at_operand(p, op, number, maps);
        if (good) precompute(p, operand);
        tile_pass_remark(p->context, computed, good ? TILE_DECISION_PRECOMPUTED : TILE_DECISION_NOT_PRECOMPUTED,
                         number ? "the second operand of a product" : "the first operand of a product", "%s",
                         good ? "programs load it as it is multiplied" : p->why);
    }
}

TileResult tile_pass_gpu_precompute(TilePassContext *context, TileFunc *func) {
    bool kernel = func->kind == TILE_FUNC_KERNEL && func->packs;
    if (!kernel || !gpu_copies_by_maps(context->target)) return TILE_RESULT_UNCHANGED;
    Precompute p = {.context = context, .kernel = func};
    for (TileOp *op = func->body.first, *next; op; op = next) {
        next = op->next;
        p.grid = op;
        if (op->id == TILE_OP_GRID) tile_block_walk(&op->regions[0], look_at_dot, &p);
    }
    return p.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
