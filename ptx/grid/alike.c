/* Purpose: load once what neighbours gather alike. Where an index is a quotient by a power of two, as of scales that are one for 32 elements, `s[m, n.idx / 32]`, or of
 * weights that are eight in a word, neighbours along the last axis have the same one: a tile with an element for each such group is loaded, and its
 * elements are repeated. Threads then compute one index, one mask and one address where they had as many as they have neighbours.
 *
 * Before:
 *     func kernel tile @k(%s: tensor<f32, 1, in>, %y: tensor<f32, 1, out>) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %all = const {value = 256} : i64
 *       %most = const {value = 4} : i64[256]
 *       grid %one (%p: i64) {
 *         %n = iota {axis = 0} : i64[256]
 *         %q = shr %n, %most : i64[256]
 *         %v = load_tile %s, %q {access = [gather]} : f32[256]
 *         store_tile %y, %v, %zero, %one, %zero, %all {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%s: tensor<f32, 1, in>, %y: tensor<f32, 1, out>) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %all = const {value = 256} : i64
 *       %most = const {value = 4} : i64[256]
 *       grid %one (%p: i64) {
 *         %n = iota {axis = 0} : i64[256]
 *         %q = shr %n, %most : i64[256]
 *         %0 = iota {axis = 0} : i64[32]
 *         %1 = const {value = 8} : i64[32]
 *         %2 = mul %0, %1 : i64[32]
 *         %3 = const {value = 4} : i64[32]
 *         %4 = shr %2, %3 : i64[32]
 *         %5 = load_tile %s, %4 {access = [gather]} : f32[32]
 *         %6 = reshape %5 : f32[32, 1]
 *         %7 = broadcast %6 : f32[32, 8]
 *         %v = reshape %7 : f32[256]
 *         store_tile %y, %v, %zero, %one, %zero, %all {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: canonicalise; dce behind it drops the indices that nothing uses. Keeps: tile form, and all bits: a lane that is not loaded has any value. Cost: linear in the ops that
 * compute an index. */
#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"

/* Neighbours are those that a thread may have side by side; threads that load the same element do so at once. */
enum { MOST_DEPTH = 16, ANY = 1 << 20, LEAST_LANES = 32, MOST_WIDTH = 8 };

/* Of each `extent` lanes of the last axis, those within [lo, hi); no others are loaded. NULL: all may be. */
typedef struct Inside {
    const TileValue *lo, *hi;
    int64_t extent;
} Inside;

typedef struct Alike {
    TilePassContext *context;
    TileIndices *indices;
    TileBuilder b;
    TileMap sampled; /* TileValue to what it is for the first lane of each group */
    int64_t width;   /* of a group */
} Alike;

static int64_t last_extent(const TileType *type) { return type->rank ? type->extent[type->rank - 1] : 1; }

/* The greatest power of two that divides the number. */
static int64_t power_of(int64_t number) {
    int64_t power = number & -number;
    return number == 0 || power > ANY || power < 1 ? ANY : power;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Are the rows of the operand of a reshape or broadcast parts of the result's, one behind the other? */
static bool keeps_rows(const TileOp *op) {
    return last_extent(op->results[0].type) % last_extent(tile_op_operand(op, 0)->type) == 0 &&
           (op->id == TILE_OP_RESHAPE || last_extent(op->results[0].type) == last_extent(tile_op_operand(op, 0)->type));
}

/* ---- a fill along the last axis ---- */

/* Its bounds there; false: it leaves that axis as it is. */
static bool fills_last(const TileOp *fill, TileValue **lo, TileValue **hi) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++) {
        if (axes->integers[i] + 1 != fill->results[0].type->rank) continue;
        *lo = tile_op_named_at(fill, TILE_OPERAND_BOUNDS, 2 * i);
        *hi = tile_op_named_at(fill, TILE_OPERAND_BOUNDS, 2 * i + 1);
        return true;
    }
    return false;
}

/* Lanes outside of the bounds have this number, which is below `most`: no index, or a mask that is false. */
static bool fills_with_none(const TileOp *fill, int64_t most) {
    int64_t number;
    return tile_value_integer(tile_op_named(fill, TILE_OPERAND_FILLING), &number) && number < most;
}

/* Of a mask: where it is false along the last axis, in groups as a whole. */
static bool find_inside(const TileValue *mask, Inside *inside, unsigned depth) {
    const TileOp *op = mask->op;
    TileValue *lo, *hi;
    if (!op || !depth) return false;
    switch ((TileOpId)op->id) {
    case TILE_OP_AND: return find_inside(tile_op_operand(op, 0), inside, depth - 1) || find_inside(tile_op_operand(op, 1), inside, depth - 1);
    case TILE_OP_RESHAPE:
    case TILE_OP_BROADCAST: return keeps_rows(op) && find_inside(tile_op_operand(op, 0), inside, depth - 1);
    case TILE_OP_FILL:
        if (!fills_last(op, &lo, &hi)) return find_inside(tile_op_operand(op, 0), inside, depth - 1);
        if (!fills_with_none(op, 1)) return false;
        *inside = (Inside){lo, hi, last_extent(mask->type)};
        return true;
    default: return false;
    }
}

/* ---- how many neighbours are alike ---- */

static const Inside nowhere = {NULL, NULL, 0};

static int64_t width_of(const Alike *alike, const TileValue *value, const Inside *inside, unsigned depth);

/* The number of neighbours of which each has one more than the one before, the first a multiple of that number. */
static int64_t line_of(const Alike *alike, const TileValue *value, const Inside *inside, unsigned depth) {
    const TileOp *op = value->op;
    if (!op || !depth || !tile_type_is_tile(value->type)) return 1;
    switch ((TileOpId)op->id) {
    case TILE_OP_IOTA: return tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 == value->type->rank ? ANY : 1;
    case TILE_OP_BROADCAST: return last_extent(tile_op_operand(op, 0)->type) == last_extent(value->type) ? line_of(alike, tile_op_operand(op, 0), inside, depth - 1) : 1;
    case TILE_OP_RESHAPE: {
        const TileValue *x = tile_op_operand(op, 0);
        return least(line_of(alike, x, keeps_rows(op) ? inside : &nowhere, depth - 1), least(power_of(last_extent(x->type)), power_of(last_extent(value->type))));
    }
    case TILE_OP_ADD:
        for (unsigned i = 0; i < 2; i++) {
            const TileValue *x = tile_op_operand(op, i), *y = tile_op_operand(op, !i);
            int64_t line = line_of(alike, x, inside, depth - 1);
            if (line < 2) continue;
            return least(line, least(width_of(alike, y, inside, depth - 1), power_of(tile_index_range(alike->indices, y).multiple)));
        }
        return 1;
    default: return 1;
    }
}

/* Of neighbours of a line, so many have the same quotient. */
static int64_t width_of_quotient(const Alike *alike, const TileOp *op, const Inside *inside, unsigned depth) {
    int64_t number;
    if (!tile_value_integer(tile_op_operand(op, 1), &number) || number < 1 || (op->id == TILE_OP_SHR && number >= 20)) return 1;
    int64_t divisor = op->id == TILE_OP_SHR ? INT64_C(1) << number : power_of(number);
    return least(divisor, line_of(alike, tile_op_operand(op, 0), inside, depth - 1));
}

static int64_t width_of_fill(const Alike *alike, const TileOp *fill, const Inside *inside, unsigned depth) {
    TileValue *lo, *hi;
    int64_t width = width_of(alike, tile_op_operand(fill, 0), inside, depth - 1);
    if (!fills_last(fill, &lo, &hi)) return width;
    if (lo != inside->lo || hi != inside->hi || last_extent(fill->results[0].type) != inside->extent) return 1;
    return least(width, power_of(tile_index_range(alike->indices, lo).multiple));
}

/* Neighbours along the last axis, from multiples of their number on, that have the same value if they are loaded; ANY: all have. */
static int64_t width_of(const Alike *alike, const TileValue *value, const Inside *inside, unsigned depth) {
    const TileOp *op = value->op;
    if (!tile_type_is_tile(value->type) || last_extent(value->type) == 1) return ANY;
    if (!op || !depth) return 1;
    switch ((TileOpId)op->id) {
    case TILE_OP_CONST:
    case TILE_OP_SPLAT: return ANY;
    case TILE_OP_IOTA: return tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) + 1 == value->type->rank ? 1 : ANY;
    case TILE_OP_BROADCAST: return width_of(alike, tile_op_operand(op, 0), inside, depth - 1);
    case TILE_OP_RESHAPE: {
        const TileValue *x = tile_op_operand(op, 0);
        return least(width_of(alike, x, keeps_rows(op) ? inside : &nowhere, depth - 1), least(power_of(last_extent(x->type)), power_of(last_extent(value->type))));
    }
    case TILE_OP_FILL: return width_of_fill(alike, op, inside, depth);
    default: break;
    }
    if (tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE || op->region_count || !tile_op_is_pure(op) || op->result_count != 1) return 1;
    int64_t width = ANY;
    for (unsigned i = 0; i < op->operand_count; i++) width = least(width, width_of(alike, tile_op_operand(op, i), inside, depth - 1));
    bool divides = op->id == TILE_OP_DIV || op->id == TILE_OP_SHR;
    int64_t of_quotient = divides ? width_of_quotient(alike, op, inside, depth) : 1;
    return of_quotient > width ? of_quotient : width;
}

/* Of a comparison of a line, which only rises, with what its neighbours have in common: is it no longer true from one lane of a group on? */
static int64_t width_of_comparison(const Alike *alike, const TileOp *op, const Inside *inside, unsigned depth) {
    bool rises = op->id == TILE_OP_LT || op->id == TILE_OP_LE;
    if (!rises && op->id != TILE_OP_GT && op->id != TILE_OP_GE) return 1;
    const TileValue *line = tile_op_operand(op, !rises), *other = tile_op_operand(op, rises);
    return least(line_of(alike, line, inside, depth - 1), width_of(alike, other, inside, depth - 1));
}

/* As many neighbours, of which the first is loaded if any of them is. */
static int64_t width_of_mask(const Alike *alike, const TileValue *mask, const Inside *inside, unsigned depth) {
    const TileOp *op = mask->op;
    int64_t width = width_of(alike, mask, inside, depth), other = 1;
    if (!op || !depth || width == ANY) return width;
    const TileValue *x = op->operand_count ? tile_op_operand(op, 0) : NULL;
    switch ((TileOpId)op->id) {
    case TILE_OP_AND: other = least(width_of_mask(alike, x, inside, depth - 1), width_of_mask(alike, tile_op_operand(op, 1), inside, depth - 1)); break;
    case TILE_OP_BROADCAST: other = width_of_mask(alike, x, inside, depth - 1); break;
    case TILE_OP_RESHAPE:
        other = least(width_of_mask(alike, x, keeps_rows(op) ? inside : &nowhere, depth - 1), least(power_of(last_extent(x->type)), power_of(last_extent(mask->type))));
        break;
    default: other = width_of_comparison(alike, op, inside, depth); break;
    }
    return other > width ? other : width;
}

/* ---- a value for the first lane of each group ---- */

static const TileType *type_of_groups(const Alike *alike, const TileType *type) {
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned a = 0; a < type->rank; a++) extent[a] = type->extent[a];
    extent[type->rank - 1] /= alike->width;
    return tile_type_tile(alike->context->module->context, type->scalar, type->rank, extent);
}

static TileValue *sample(Alike *alike, TileValue *value);

/* Lane j of the groups is lane j times the width of the tile. */
static TileValue *sample_fill(Alike *alike, const TileOp *fill) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    TileValue *bounds[2 * TILE_MAX_TILE_RANK], *more = tile_build_i64(&alike->b, alike->width - 1), *width = tile_build_i64(&alike->b, alike->width);
    for (unsigned i = 0; i < 2 * axes->count; i++) {
        TileValue *bound = tile_op_named_at(fill, TILE_OPERAND_BOUNDS, i);
        bool last = axes->integers[i / 2] + 1 == fill->results[0].type->rank;
        bounds[i] = last ? tile_build_binary(&alike->b, TILE_OP_DIV, tile_build_binary(&alike->b, TILE_OP_ADD, bound, more), width) : bound;
    }
    return tile_build_fill(&alike->b, sample(alike, tile_op_operand(fill, 0)), tile_op_named(fill, TILE_OPERAND_FILLING), axes->integers, bounds, axes->count);
}

static TileValue *sample_elementwise(Alike *alike, TileOp *op, const TileType *type) {
    TileMap map;
    tile_map_init(&map, alike->context->scratch);
    for (unsigned i = 0; i < op->operand_count; i++) tile_map_set(&map, tile_op_operand(op, i), sample(alike, tile_op_operand(op, i)));
    TileValue *operands[4];
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = tile_map_get(&map, tile_op_operand(op, i));
    return &tile_build_op(&alike->b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count, &type, 1)->results[0];
}

static TileValue *build_sampled(Alike *alike, TileValue *value) {
    TileOp *op = value->op;
    const TileType *type = type_of_groups(alike, value->type);
    uint64_t bits;
    switch ((TileOpId)op->id) {
    case TILE_OP_CONST: return tile_value_bits(value, &bits) ? tile_build_bits(&alike->b, type, bits) : NULL;
    case TILE_OP_SPLAT: return tile_build_splat(&alike->b, tile_op_operand(op, 0), type);
    case TILE_OP_IOTA: {
        int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
        TileValue *lanes = tile_build_iota(&alike->b, type, axis);
        return axis + 1 == type->rank ? tile_build_binary(&alike->b, TILE_OP_MUL, lanes, tile_build_integer(&alike->b, type, alike->width)) : lanes;
    }
    case TILE_OP_BROADCAST: return tile_build_broadcast(&alike->b, sample(alike, tile_op_operand(op, 0)), type->extent);
    case TILE_OP_RESHAPE: return tile_build_reshape(&alike->b, sample(alike, tile_op_operand(op, 0)), type->rank, type->extent);
    case TILE_OP_FILL: return sample_fill(alike, op);
    default: return sample_elementwise(alike, op, type);
    }
}

static TileValue *sample(Alike *alike, TileValue *value) {
    if (!tile_type_is_tile(value->type) || last_extent(value->type) == 1) return value;
    TileValue *done = tile_map_get(&alike->sampled, value);
    if (done) return done;
    done = build_sampled(alike, value);
    tile_map_set(&alike->sampled, value, done);
    return done;
}

/* ---- loads ---- */

/* Is the load of nothing but what is gathered along the last axis, of ranges along others, and of places that all lanes share? */
static bool gathers_along_last(const TileOp *load, const TileAccessIndex *indices, unsigned rank) {
    unsigned last = load->results[0].type->rank - 1u, gathers = 0;
    if (load->attribute_count != 1u + (tile_op_get(load, TILE_ATTRIBUTE_PARTS) != NULL) || tile_op_has_part(load, TILE_PARTS_FILL)) return false;
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].axis == (int)last && indices[d].kind != TILE_ACCESS_GATHER) return false;
        gathers += indices[d].kind == TILE_ACCESS_GATHER && indices[d].axis == (int)last;
        if (indices[d].kind == TILE_ACCESS_GATHER && indices[d].axis != (int)last) return false;
    }
    return gathers > 0;
}

/* What the load's lanes are known to be inside of: its mask says so, or they would have no index. */
static Inside inside_of(const TileOp *load, const TileAccessIndex *indices, unsigned rank) {
    Inside inside = {NULL, NULL, 0};
    TileValue *mask = tile_op_named(load, TILE_OPERAND_MASK), *lo, *hi;
    if (mask && find_inside(mask, &inside, MOST_DEPTH)) return inside;
    for (unsigned d = 0; d < rank; d++) {
        const TileOp *fill = indices[d].kind == TILE_ACCESS_GATHER ? tile_value_def(indices[d].first, TILE_OP_FILL) : NULL;
        if (fill && fills_last(fill, &lo, &hi) && fills_with_none(fill, 0)) return (Inside){lo, hi, last_extent(fill->results[0].type)};
    }
    return inside;
}

static int64_t width_of_load(const Alike *alike, const TileOp *load) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileType *type = load->results[0].type;
    if (!tile_type_is_tile(type) || type->rank >= TILE_MAX_TILE_RANK || tile_type_lanes(type) < LEAST_LANES) return 1;
    unsigned rank = tile_access_read(load, indices);
    if (!gathers_along_last(load, indices, rank) || power_of(last_extent(type)) != last_extent(type)) return 1;
    Inside inside = inside_of(load, indices, rank);
    TileValue *mask = tile_op_named(load, TILE_OPERAND_MASK);
    int64_t width = least(MOST_WIDTH, power_of(last_extent(type)));
    if (mask) width = least(width, width_of_mask(alike, mask, &inside, MOST_DEPTH));
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_GATHER) width = least(width, width_of(alike, indices[d].first, &inside, MOST_DEPTH));
    return width;
}

static void load_groups(Alike *alike, TileOp *load) {
    TileModule *module = alike->context->module;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileType *type = load->results[0].type, *groups = type_of_groups(alike, type);
    unsigned rank = tile_access_read(load, indices), count = load->operand_count, last = type->rank - 1u;
    TileValue **operands = TILE_NEW_ARRAY(alike->context->scratch, TileValue *, count);
    int64_t extent[TILE_MAX_TILE_RANK];
    alike->b = tile_builder_before(module, load);
    tile_map_init(&alike->sampled, alike->context->scratch);
    for (unsigned i = 0; i < count; i++) operands[i] = tile_op_operand(load, i);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_GATHER) operands[indices[d].operand] = sample(alike, indices[d].first);
    if (tile_op_has_part(load, TILE_PARTS_MASK)) operands[count - 1] = sample(alike, operands[count - 1]);
    TileOp *few = tile_build_op(&alike->b, TILE_OP_LOAD_TILE, operands, count, load->attributes, load->attribute_count, &groups, 1);
    for (unsigned a = 0; a < type->rank; a++) extent[a] = groups->extent[a];
    extent[last + 1] = 1;
    TileValue *value = tile_build_reshape(&alike->b, &few->results[0], last + 2, extent);
    extent[last + 1] = alike->width;
    value = tile_build_reshape(&alike->b, tile_build_broadcast(&alike->b, value, extent), type->rank, type->extent);
    value->name = load->results[0].name;
    tile_value_replace(&load->results[0], value);
    tile_op_erase(load);
}

static void find_product(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_DOT; }

/* Operands of products are loaded by the threads that multiply them. */
static bool multiplies(TileOp *op) {
    bool found = false;
    for (unsigned i = 0; op->id == TILE_OP_GRID && i < op->region_count; i++) tile_block_walk(&op->regions[i], find_product, &found);
    return found;
}

static bool visit(Alike *alike, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (multiplies(op)) continue;
        for (unsigned i = 0; i < op->region_count; i++) changed |= visit(alike, &op->regions[i]);
        if (op->id != TILE_OP_LOAD_TILE || (alike->width = width_of_load(alike, op)) < 2) continue;
        tile_pass_remark(alike->context, op, TILE_DECISION_ALIKE, tile_op_operand(op, 0)->name, "%lld neighbours have one index", (long long)alike->width);
        load_groups(alike, op);
        changed = true;
    }
    return changed;
}

TileResult tile_pass_gpu_alike(TilePassContext *context, TileFunc *func) {
    Alike alike = {.context = context, .indices = tile_pass_indices(context, func)};
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    if (!visit(&alike, &func->body)) return TILE_RESULT_UNCHANGED;
    if (alike.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-alike: %s", alike.b.error);
    return TILE_RESULT_CHANGED;
}
