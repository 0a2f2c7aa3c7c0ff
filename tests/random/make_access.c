/* Ranges, loads, gathers, and targets of stores. */
#include "make.h"

#include <string.h>

/* ---- sources ---- */

static uint32_t mix(uint32_t hash, uint64_t more) {
    return (uint32_t)((hash ^ more ^ more >> 29) * 0x9e3779b1u) ^ hash >> 13;
}

static uint32_t hash_extent(const Extent *extent) {
    if (extent->kind == EXTENT_LITERAL) return mix(1, (uint64_t)extent->literal);
    if (extent->kind == EXTENT_NAME) return mix(2, (uint64_t)(uintptr_t)extent->name);
    return mix(mix((uint32_t)extent->kind, hash_extent(extent->a)), hash_extent(extent->b));
}

/* Equal texts with equal meaning have the same id. */
static uint32_t hash_expr(Maker *m, const Expr *expr) {
    uint32_t hash = mix(mix((uint32_t)expr->kind, (uint64_t)expr->op), expr->bits + expr->reverse);
    if (expr->name)
        hash = mix(hash, expr->name->kind == NAME_VAR ? (uint64_t)m->serial++ : (uint64_t)(uintptr_t)expr->name);
    if (expr->extent) hash = mix(hash, hash_extent(expr->extent));
    if (expr->tensor) hash = mix(hash, (uint64_t)m->serial++);
    for (int i = 0; i < expr->count; i++) hash = mix(hash, hash_expr(m, expr->operand[i]));
    return hash;
}

static bool is_range(const Expr *entry) { return entry->kind >= E_RANGE && entry->kind <= E_COLON; }

/* Is the scalar certainly in bounds of the dimension? */
static bool is_inside(const Expr *entry, const Extent *dim) {
    if (entry->kind == E_NAME && entry->name->below) return extent_same(entry->name->below, dim);
    return entry->kind == E_LITERAL && dim->kind == EXTENT_LITERAL && (int64_t)entry->bits < dim->literal;
}

/* Sets shape, validity and exactness of tensor[entries]. */
Expr *finish_access(Maker *m, Expr *access) {
    const Tensor *tensor = access->tensor;
    Shape shape = {.scalar = tensor->type};
    int gathered = -1;
    access->tainted = tensor->tainted;
    access->valid.count = 0;
    for (int d = 0; d < tensor->rank; d++) {
        const Expr *entry = access->operand[d];
        access->tainted = access->tainted || entry->tainted;
        if (entry->shape.rank == 0) {
            if (is_inside(entry, tensor->dim[d])) continue;
            sources_add(&access->valid, (Source){mix(hash_expr(m, entry), hash_extent(tensor->dim[d])), 0, false});
            continue;
        }
        int axis = shape.rank;
        if (!is_range(entry)) {
            if (gathered >= 0) axis = gathered;
            gathered = axis;
        }
        if (axis == shape.rank) shape.extent[shape.rank++] = entry->shape.extent[0];
        int map[MAX_AXES] = {axis, -1, -1, -1, -1};
        Sources lanes = sources_map(&entry->valid, map);
        bool inside = entry->bounded && extent_same(entry->extent, tensor->dim[d]);
        if (is_range(entry) || inside) sources_join(&access->valid, &lanes);
        bool whole = inside || entry->kind == E_COLON ||
                     (entry->kind == E_RANGE && entry->name->limit && extent_same(entry->name->limit, tensor->dim[d]));
        uint32_t id = mix(hash_expr(m, entry), hash_extent(tensor->dim[d]));
        if (!whole) sources_add(&access->valid, (Source){id, (uint8_t)(1u << axis), false});
    }
    access->shape = shape;
    return access;
}

/* ---- ranges ---- */

static Name *find_range(Maker *m, const Extent *size) {
    Name *found = NULL;
    int count = 0;
    for (int i = 0; i < m->scope_count; i++)
        if (m->scope[i]->kind == NAME_RANGE && extent_same(m->scope[i]->size, size) && below(m, (unsigned)++count) == 0)
            found = m->scope[i];
    return found;
}

/* An i64 for starts, shifts and bounds: usually small. */
static Expr *some_offset(Maker *m, int depth) {
    if (chance(m, 50)) return integer_expr((int64_t)below(m, 6));
    for (int tries = 0; tries < 4; tries++) {
        if (!m->scope_count) break;
        Name *name = m->scope[below(m, (unsigned)m->scope_count)];
        if (name->kind == NAME_RANGE && chance(m, 40))
            return unary_expr(E_START, shape_scalar(TYPE_I64), 0, range_expr(name));
        if (name->shape.rank == 0 && name->shape.scalar == TYPE_I64 && name->kind != NAME_RANGE && !name->tainted &&
            !name->valid.count)
            return name_expr(name);
    }
    if (chance(m, 30)) return extent_expr(m->dims[below(m, (unsigned)m->dim_count)]);
    return depth > 1 && chance(m, 50) ? make_decision(m, TYPE_I64, 1) : integer_expr((int64_t)below(m, 12) - 3);
}

static Expr *make_span(Maker *m, const Extent *size, int depth) {
    bool limited = chance(m, 45);
    Expr *span = new_expr(limited ? E_SPAN_TO : E_SPAN, (Shape){TYPE_I64, 1, {size}});
    span->extent = size;
    add_operand(span, some_offset(m, depth));
    if (!limited) return span;
    add_operand(span, chance(m, 70) ? extent_expr(m->dims[below(m, (unsigned)m->dim_count)]) : some_offset(m, depth));
    sources_add(&span->valid, (Source){mix(77, hash_expr(m, span)), 1, false});
    return span;
}

static Expr *shifted(Expr *range, Op op, Expr *by, bool behind) {
    Expr *shift = binary_expr(E_SHIFT, range->shape, op, range, by);
    shift->reverse = behind;
    shift->valid = range->valid;
    shift->tainted = false;
    return shift;
}

Expr *make_range(Maker *m, const Extent *size, int depth) {
    static const int64_t strides[] = {2, -1, 3, 0, 1, -2};
    Name *name = find_range(m, size);
    if (!name || chance(m, 12)) return make_span(m, size, depth);
    Expr *range = range_expr(name);
    if (chance(m, 55)) return range;
    switch (below(m, 5)) {
    case 0: return shifted(range, OP_ADD, some_offset(m, depth), chance(m, 20));
    case 1: return shifted(range, OP_SUB, some_offset(m, depth), false);
    case 2: return shifted(range, OP_SUB, some_offset(m, depth), true);
    case 3: {
        Expr *strided = shifted(range, OP_MUL, integer_expr(strides[below(m, 6)]), chance(m, 20));
        return chance(m, 50) ? shifted(strided, OP_ADD, some_offset(m, depth), false) : strided;
    }
    default: return shifted(shifted(range, OP_MUL, some_offset(m, depth), false), OP_ADD, some_offset(m, depth), false);
    }
}

/* ---- loads ---- */

bool may_read(const Maker *m, const Tensor *tensor) {
    if (m->clean && tensor->tainted) return false;
    if (tensor->own) return tensor->written == m->grid;
    if (tensor->role == TENSOR_OUT && !tensor->whole) return false;
    if (tensor->role == TENSOR_TEMP || tensor->role == TENSOR_OUT) return tensor->written && tensor->written < m->grid;
    return tensor->written < m->grid || tensor->written == 0;
}

/* where(i >= 0 && i < dim, i, last): what a condition says of each element proves, of a name alone. */
static Expr *chosen_inside(Name *name, Shape wide, const Extent *dim, Expr *last) {
    Shape truth = shape_with(wide, TYPE_BOOL);
    Expr *low = finished(binary_expr(E_BINARY, truth, OP_GE, name_expr(name), integer_expr(0)));
    Expr *high = finished(binary_expr(E_BINARY, truth, OP_LT, name_expr(name), extent_expr(dim)));
    Expr *chosen = new_expr(E_WHERE, wide);
    add_operand(chosen, finished(binary_expr(E_BINARY, truth, OP_BOTH, low, high)));
    add_operand(chosen, name_expr(name));
    add_operand(chosen, last);
    return chosen;
}

/* An index tile of a name, of which a condition may be asked. */
static Expr *named_indices(Maker *m, const Extent *size) {
    for (int i = m->scope_count - 1; i >= 0; i--) {
        Name *name = m->scope[i];
        bool tile = (name->kind == NAME_LET || name->kind == NAME_VAR) && name->shape.rank == 1;
        if (tile && name->shape.scalar == TYPE_I64 && extent_same(name->shape.extent[0], size) && !name->tainted && chance(m, 80))
            return name_expr(name);
    }
    return NULL;
}

/* The index tile, forced into a dimension that is not empty: clamped, its remainder, the lesser of two numbers, or chosen. */
static Expr *bounded(Maker *m, Expr *indices, const Extent *dim) {
    Shape wide = shape_with(indices->shape, TYPE_I64), i64 = shape_scalar(TYPE_I64);
    if (extent_value(dim) < 1 || indices->shape.scalar == TYPE_U64) return indices;
    Expr *index = indices->shape.scalar == TYPE_I64 ? indices : finished(unary_expr(E_CONVERT, wide, 0, indices));
    Expr *last = finished(binary_expr(E_BINARY, i64, OP_SUB, extent_expr(dim), integer_expr(1))), *result;
    switch (index->kind == E_NAME && chance(m, 70) ? 3 : below(m, 3)) {
    case 0: result = binary_expr(E_BINARY, wide, OP_REM, index, extent_expr(dim)); break;
    case 1:
        result = binary_expr(E_CALL, wide, OP_MAX, integer_expr(0), index);
        result = binary_expr(E_CALL, wide, OP_MIN, finished(result), last);
        break;
    case 2: result = binary_expr(E_CLAMP, wide, 0, index, integer_expr(0)); add_operand(result, last); break;
    default: result = chosen_inside(index->name, wide, dim, last);
    }
    finished(result);
    result->bounded = true;
    result->extent = dim;
    return result;
}

/* An index tile of rank 1. */
static Expr *make_indices(Maker *m, const Extent *size, int depth) {
    Shape shape = {some_int(m), 1, {size}};
    bool clean = m->clean;
    m->clean = true;
    m->indexing++;
    Expr *indices = chance(m, 50) ? named_indices(m, size) : NULL;
    if (!indices) indices = chance(m, 60) ? make_load(m, &shape, depth - 1) : make_expr(m, &shape, depth - 1);
    m->indexing--;
    m->clean = clean;
    if (!indices) return NULL;
    for (int i = 0; i < indices->valid.count && i < MAX_SOURCES; i++)
        if (!indices->valid.items[i].axes) return covered(m, indices, NULL);
    return indices;
}

static Expr *scalar_index(Maker *m, const Extent *dim, int depth) {
    for (int i = m->scope_count - 1; i >= 0; i--)
        if (m->scope[i]->kind != NAME_RANGE && m->scope[i]->below && extent_same(m->scope[i]->below, dim) &&
            chance(m, 70))
            return name_expr(m->scope[i]);
    for (int i = m->scope_count - 1; i >= 0; i--)
        if (m->scope[i]->kind == NAME_INTEGER && chance(m, 50)) return name_expr(m->scope[i]);
    if (depth > 1 && chance(m, 40)) {
        Expr *index = make_decision(m, chance(m, 70) ? TYPE_I64 : some_int(m), depth - 1);
        if (index->kind != E_LITERAL && index->kind != E_EXTENT) return index;
    }
    int64_t most = extent_value(dim) < 3 ? extent_value(dim) : 3;
    int64_t at = most > 0 ? (int64_t)below(m, (unsigned)most) : 0;
    return dim->kind == EXTENT_LITERAL || at < 3 ? integer_expr(at) : integer_expr(0);
}

static bool is_known(const Extent *extent) {
    return extent->kind == EXTENT_LITERAL || (extent->kind == EXTENT_NAME && extent->name->kind == NAME_STATIC);
}

/* For a tensor that does not exist yet: an entry for an axis (NULL: a scalar index), and a dimension for it. */
static Expr *new_entry(Maker *m, const Extent *axis, const Extent **dim, int depth) {
    *dim = m->dims[below(m, (unsigned)m->dim_count)];
    if (!axis) return scalar_index(m, *dim, depth);
    if (is_known(axis) && chance(m, 50)) {
        Expr *colon = new_expr(E_COLON, (Shape){TYPE_I64, 1, {axis}});
        colon->extent = *dim = axis;
        return colon;
    }
    if (depth > 0 && m->indexing < 3 && chance(m, 14)) {
        Expr *indices = make_indices(m, axis, depth);
        if (indices) return chance(m, 45) ? bounded(m, indices, *dim) : indices;
    }
    Expr *range = make_range(m, axis, depth);
    const Expr *root = range;
    while (root->kind == E_SHIFT) root = root->operand[0];
    if (root->kind == E_RANGE && root->name->limit && chance(m, 75)) *dim = root->name->limit;
    return range;
}

static Expr *entry_for(Maker *m, const Extent *axis, const Extent *dim, int depth) {
    if (!axis) return scalar_index(m, dim, depth);
    if (is_known(dim) && extent_same(axis, dim) && chance(m, 60)) {
        Expr *colon = new_expr(E_COLON, (Shape){TYPE_I64, 1, {axis}});
        colon->extent = axis;
        return colon;
    }
    if (depth > 0 && m->indexing < 3 && chance(m, 14)) {
        Expr *indices = make_indices(m, axis, depth);
        if (indices) return chance(m, 45) ? bounded(m, indices, dim) : indices;
    }
    return make_range(m, axis, depth);
}

static Tensor *find_tensor(Maker *m, Type type, int rank) {
    Tensor *found = NULL;
    int count = 0;
    for (int i = 0; i < m->program->tensor_count; i++) {
        Tensor *tensor = m->program->tensors[i];
        if (tensor->packing && !chance(m, 30)) continue;
        if (tensor->type != type || tensor->rank < rank || tensor->rank > rank + 2 || !may_read(m, tensor)) continue;
        if (below(m, (unsigned)++count) == 0) found = tensor;
    }
    return found;
}

/* The index tiles of one access share an axis, so a second one would leave an axis without an entry. */
static bool one_gather(const Expr *access) {
    int count = 0;
    for (int i = 0; i < access->count; i++)
        count += !is_range(access->operand[i]) && access->operand[i]->shape.rank == 1;
    return count <= 1;
}

/* Elements that only this program stores to may be loaded by it, before and after. */
static Expr *own_load(Maker *m, const Shape *shape) {
    for (int i = 0; i < m->own_count; i++) {
        const Expr *own = m->own[i];
        if (own->shape.scalar != shape->scalar || !shape_same(&own->shape, shape) || chance(m, 40)) continue;
        if (m->clean && own->tensor->tainted) continue;
        Expr *access = NEW(Expr);
        *access = *own;
        access->tainted = own->tensor->tainted;
        return access;
    }
    return NULL;
}

static const Packing packings[TYPE_COUNT] = {
    [TYPE_I8] = PACKING_I4, [TYPE_U8] = PACKING_U4, [TYPE_F8E4M3] = PACKING_F4, [TYPE_F32] = PACKING_E8};

static void set_packing(Tensor *tensor, Packing packing) {
    tensor->packing = packing;
    if (packing == PACKING_NONE || (packing == PACKING_E8 && tensor->view != LIE_REPEATED)) return;
    tensor->view = tensor->seed % 2 ? LIE_CONTIGUOUS : LIE_ROWS; /* two numbers of a byte are neighbours */
}

/* Ranges of packed numbers have to be even; others are tried now and then, and refused. By the tensor's own seed, so
 * that programs without such tensors stay as they are. */
static void pack(Tensor *tensor, const Expr *last) {
    Packing packing = packings[tensor->type];
    bool even = !is_range(last) || packing == PACKING_E8 ||
                (last->kind == E_RANGE && extent_value(last->shape.extent[0]) % 2 == 0);
    unsigned lot = (unsigned)(tensor->seed >> 8) % 100;
    if (lot < (packing == PACKING_E8 ? 8 : even ? 50 : 4)) set_packing(tensor, packing);
}

/* The same of what is stored, which are whole bytes, and never powers of two. Few tensors would have such a type by chance. */
static void pack_target(Tensor *tensor, const Expr *last) {
    static const Type types[] = {TYPE_I8, TYPE_U8, TYPE_F8E4M3};
    bool even = (last->kind == E_RANGE || last->kind == E_COLON) && extent_value(last->shape.extent[0]) % 2 == 0;
    unsigned lot = (unsigned)(tensor->seed >> 8) % 100;
    if (lot >= (even ? 30 : 1)) return;
    tensor->type = types[tensor->seed % 3];
    set_packing(tensor, packings[tensor->type]);
}

Expr *make_load(Maker *m, const Shape *shape, int depth) {
    Expr *mine = m->own_count && chance(m, 30) ? own_load(m, shape) : NULL;
    if (mine) return mine;
    Tensor *tensor = chance(m, 65) ? find_tensor(m, shape->scalar, shape->rank) : NULL;
    Expr *access = new_expr(E_LOAD, *shape), *entries[MAX_DIMENSIONS];
    const Extent *dims[MAX_DIMENSIONS];
    int rank = tensor ? tensor->rank : shape->rank + (chance(m, 80) ? 0 : 1 + (int)below(m, 2));
    if (rank > MAX_DIMENSIONS) rank = MAX_DIMENSIONS;
    int extra = rank - shape->rank, axis = 0;
    for (int d = 0; d < rank; d++) {
        bool scalar = extra > 0 && ((int)below(m, (unsigned)(rank - d)) < extra || axis == shape->rank);
        if (scalar) extra--;
        const Extent *extent = scalar ? NULL : shape->extent[axis++];
        if (tensor)
            entries[d] = entry_for(m, extent, tensor->dim[d], depth);
        else
            entries[d] = new_entry(m, extent, &dims[d], depth);
        add_operand(access, entries[d]);
    }
    if (!one_gather(access)) return NULL;
    bool made = !tensor;
    if (!tensor) tensor = new_tensor(m, shape->scalar, rank, dims, TENSOR_IN);
    if (!tensor) return NULL;
    if (made && rank && tensor != m->program->tensors[0]) pack(tensor, entries[rank - 1]);
    access->tensor = tensor;
    finish_access(m, access);
    return shape_same(&access->shape, shape) && !(m->clean && access->tainted) ? access : NULL;
}

Expr *make_indexed(Maker *m, const Shape *shape, Name *name, const Extent *dim) {
    const Extent *dims[MAX_DIMENSIONS] = {dim};
    Expr *access = new_expr(E_LOAD, *shape);
    if (shape->rank + 1 > MAX_DIMENSIONS) return NULL;
    add_operand(access, name_expr(name));
    for (int i = 0; i < shape->rank; i++) add_operand(access, new_entry(m, shape->extent[i], &dims[i + 1], 1));
    access->tensor = one_gather(access) ? new_tensor(m, shape->scalar, shape->rank + 1, dims, TENSOR_IN) : NULL;
    if (!access->tensor) return NULL;
    finish_access(m, access);
    return shape_same(&access->shape, shape) && !(m->clean && access->tainted) ? access : NULL;
}

Expr *make_gather(Maker *m, const Shape *shape, int depth) {
    if (shape->rank == 0) return NULL;
    Tensor *tensor = chance(m, 65) ? find_tensor(m, shape->scalar, 1) : NULL;
    const Extent *dims[MAX_DIMENSIONS];
    int rank = tensor ? tensor->rank : 1 + (int)below(m, 3);
    Expr *access = new_expr(E_GATHER, *shape);
    bool clean = m->clean;
    m->clean = true;
    m->indexing++;
    for (int d = 0; d < rank; d++) {
        Shape index = shape_with(*shape, some_int(m));
        dims[d] = m->dims[below(m, (unsigned)m->dim_count)];
        add_operand(access,
                    d == 0 || chance(m, 40) ? make_expr(m, &index, depth - 1) : make_loose(m, &index, depth - 1));
    }
    m->indexing--;
    m->clean = clean;
    if (!tensor) tensor = new_tensor(m, shape->scalar, rank, dims, TENSOR_IN);
    if (!tensor) return NULL;
    access->tensor = tensor;
    access->tainted = tensor->tainted;
    access->valid.count = 0;
    sources_add(&access->valid, (Source){mix(78, (uint64_t)m->serial++), (uint8_t)((1u << shape->rank) - 1), false});
    return m->clean && access->tainted ? NULL : access;
}

/* ---- targets of stores ---- */

/* An entry with different elements for each program, and the dimension that they cover. */
static Expr *own_entry(Maker *m, Name *name, const Extent **dim, bool *whole) {
    bool is_range_name = name->kind == NAME_RANGE;
    const Extent *limit = is_range_name ? name->limit : name->below;
    Expr *entry = is_range_name ? range_expr(name) : name_expr(name);
    *dim = limit ? limit : m->dims[below(m, (unsigned)m->dim_count)];
    if (chance(m, 70) || !limit) return entry;
    *whole = false;
    int64_t by = 1 + (int64_t)below(m, 3);
    Shape i64 = shape_scalar(TYPE_I64);
    bool shift = is_range_name;
    switch (below(m, 4)) {
    case 0:
        if (chance(m, 50)) *dim = extent_sum(limit, extent_literal(by));
        return shift ? shifted(entry, OP_ADD, integer_expr(by), false)
                     : finished(binary_expr(E_BINARY, i64, OP_ADD, entry, integer_expr(by)));
    case 1:
        return shift ? shifted(entry, OP_SUB, integer_expr(by), false)
                     : finished(binary_expr(E_BINARY, i64, OP_SUB, entry, integer_expr(by)));
    case 2:
        if (chance(m, 50)) *dim = extent_product(extent_literal(2), limit);
        return shift ? shifted(entry, OP_MUL, integer_expr(2), false)
                     : finished(binary_expr(E_BINARY, i64, OP_MUL, entry, integer_expr(2)));
    default: {
        Expr *last = finished(binary_expr(E_BINARY, i64, OP_SUB, extent_expr(limit), integer_expr(1)));
        return shift ? shifted(entry, OP_SUB, last, true) : finished(binary_expr(E_BINARY, i64, OP_SUB, last, entry));
    }
    }
}

/* An entry that does not depend on the program ids. */
static Expr *further_entry(Maker *m, const Extent **dim, int64_t lanes) {
    const Extent *axis = some_extent(m, lanes);
    *dim = m->dims[below(m, (unsigned)m->dim_count)];
    if (is_known(axis) && chance(m, 50)) {
        Expr *colon = new_expr(E_COLON, (Shape){TYPE_I64, 1, {axis}});
        colon->extent = *dim = axis;
        return colon;
    }
    return chance(m, 25) ? scalar_index(m, *dim, 1) : make_span(m, axis, 1);
}

static Expr *scattered(Maker *m, Statement *grid, Expr *target) {
    Shape shape = some_shape(m, TYPE_I64, 3);
    if (shape.rank == 0) return NULL;
    const Extent *dims[MAX_DIMENSIONS];
    int rank = 0;
    for (int i = 0; i < grid->count; i++) {
        if (grid->names[i]->kind == NAME_RANGE || rank > 2) return NULL;
        dims[rank] = grid->names[i]->below ? grid->names[i]->below : m->dims[0];
        add_operand(target, name_expr(grid->names[i]));
        rank++;
    }
    int more = 1 + (int)below(m, 2);
    m->clean = true;
    m->indexing++;
    for (int i = 0; i < more; i++) {
        shape.scalar = some_int(m);
        dims[rank] = m->dims[below(m, (unsigned)m->dim_count)];
        add_operand(target, make_expr(m, &shape, 2));
        rank++;
    }
    m->clean = false;
    m->indexing--;
    target->kind = E_GATHER;
    target->tensor = new_tensor(m, some_type(m), rank, dims, chance(m, 70) ? TENSOR_OUT : TENSOR_INOUT);
    target->shape = shape_with(shape, target->tensor ? target->tensor->type : TYPE_F32);
    target->valid.count = 0;
    sources_add(&target->valid, (Source){mix(79, (uint64_t)m->serial++), (uint8_t)((1u << shape.rank) - 1), false});
    if (!target->tensor) return NULL;
    target->tensor->written = m->grid;
    return target;
}

/* Does each lane access a different element? */
static bool one_place(const Expr *access) {
    for (int i = 0; i < access->count; i++)
        if (!is_range(access->operand[i]) && access->operand[i]->shape.rank) return false;
    return true;
}

/* A new tensor, and an access of it with different elements for each program of the grid. */
Expr *make_target(Maker *m, Statement *grid, bool *scatter) {
    Expr *target = new_expr(E_LOAD, (Shape){.rank = 0});
    *scatter = chance(m, 5);
    if (*scatter) return scattered(m, grid, target);
    Expr *entries[MAX_DIMENSIONS];
    const Extent *dims[MAX_DIMENSIONS];
    int rank = 0;
    bool whole = !m->leaves;
    int64_t lanes = m->most_lanes;
    for (int i = 0; i < grid->count; i++) {
        entries[rank] = own_entry(m, grid->names[i], &dims[rank], &whole);
        whole = whole && !grid->lo[i];
        if (grid->names[i]->kind == NAME_RANGE) lanes /= extent_value(grid->names[i]->size);
        rank++;
    }
    int further = (int)below(m, grid->count == 0 ? 4 : 2);
    for (int i = 0; i < further && rank < MAX_AXES; i++) {
        bool gathered = chance(m, 8);
        for (int k = 0; k < rank && gathered; k++) gathered = is_range(entries[k]) || entries[k]->shape.rank == 0;
        entries[rank] = NULL;
        if (gathered) {
            const Extent *axis = some_extent(m, lanes > 0 ? lanes : 1);
            dims[rank] = m->dims[below(m, (unsigned)m->dim_count)];
            entries[rank] = make_indices(m, axis, 2);
        }
        if (!entries[rank]) entries[rank] = further_entry(m, &dims[rank], lanes > 0 ? lanes : 1);
        whole = whole && entries[rank]->kind == E_COLON;
        if (entries[rank]->shape.rank) lanes /= extent_value(entries[rank]->shape.extent[0]);
        rank++;
    }
    int order[MAX_DIMENSIONS];
    const Extent *turned[MAX_DIMENSIONS];
    for (int i = 0; i < rank; i++) order[i] = i;
    for (int i = rank - 1; i > 0 && chance(m, 40); i--) {
        int k = (int)below(m, (unsigned)(i + 1)), other = order[i];
        order[i] = order[k];
        order[k] = other;
    }
    for (int i = 0; i < rank; i++) {
        add_operand(target, entries[order[i]]);
        turned[i] = dims[order[i]];
    }
    bool kept = !m->last && whole && chance(m, 60);
    for (int i = 0; i < rank; i++) kept = kept && turned[i]->kind != EXTENT_SUM;
    bool shown = kept && chance(m, 40);
    TensorRole role = shown ? TENSOR_OUT : kept ? TENSOR_TEMP : chance(m, 65) ? TENSOR_OUT : TENSOR_INOUT;
    target->tensor = new_tensor(m, some_type(m), rank, turned, role);
    if (!target->tensor) return NULL;
    target->tensor->whole = shown;
    target->tensor->written = m->grid;
    if (rank && target->tensor != m->program->tensors[0]) pack_target(target->tensor, target->operand[rank - 1]);
    finish_access(m, target);
    if (role == TENSOR_INOUT && one_place(target) && m->own_count < 8) m->own[m->own_count++] = target;
    return target;
}
