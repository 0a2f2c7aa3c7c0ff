/* The parts of a program: names, tensors, types and sizes. */
#include "make.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ELEMENTS = 40000, MOST_INPUTS = 9, MOST_TENSORS = 16 };

unsigned below(Maker *m, unsigned count) { return (unsigned)(random_next(&m->random) >> 20) % count; }
bool chance(Maker *m, unsigned percent) { return below(m, 100) < percent; }

static Type any_type(Maker *m) {
    static const Type types[] = {TYPE_F32, TYPE_F32, TYPE_F32, TYPE_F16, TYPE_F16,  TYPE_BF16,   TYPE_BF16,
                                 TYPE_F64, TYPE_I8,  TYPE_I16, TYPE_I32, TYPE_I32,  TYPE_I64,    TYPE_I64,
                                 TYPE_U8,  TYPE_U16, TYPE_U32, TYPE_U64, TYPE_BOOL, TYPE_F8E4M3, TYPE_F8E5M2};
    return types[below(m, sizeof types / sizeof *types)];
}

Type some_type(Maker *m) { return chance(m, 60) ? m->favourites[below(m, 3)] : any_type(m); }

Type some_number(Maker *m) {
    for (;;) {
        Type type = some_type(m);
        if (type != TYPE_BOOL && !type_is_f8(type)) return type;
        type = any_type(m);
        if (type != TYPE_BOOL && !type_is_f8(type)) return type;
    }
}

Type some_int(Maker *m) {
    for (int i = 0; i < 3; i++) {
        Type type = m->favourites[below(m, 3)];
        if (type_is_int(type)) return type;
    }
    return (Type)(TYPE_I8 + below(m, 8));
}

Type some_float(Maker *m) {
    static const Type types[] = {TYPE_F32, TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_F64};
    for (int i = 0; i < 3; i++) {
        Type type = m->favourites[below(m, 3)];
        if (type_is_float(type) && !type_is_f8(type)) return type;
    }
    return types[below(m, 5)];
}

uint64_t some_literal(Maker *m, Type type) {
    static const double numbers[] = {1, 0, -1, 0.5, 2, 3, -0.25, 1.5, -2, 4, 0.125, 7, 100, -3.5, 12, 0.75};
    static const double odd[] = {-0.0, 1e-3, 0.1, 448, 60000, 1e30, -1e-30, 3.3};
    if (type == TYPE_BOOL) return below(m, 2);
    if (type_is_float(type)) {
        if (chance(m, 4)) return number_from(type, chance(m, 50) ? 1.0 / 0.0 : chance(m, 50) ? -1.0 / 0.0 : 0.0 / 0.0);
        return number_from(type, chance(m, 12) ? odd[below(m, 8)] : numbers[below(m, 16)]);
    }
    int width = (int)type_bytes(type) * 8;
    Wide most = ((Wide)1 << (type_is_signed(type) ? width - 1 : width)) - 1;
    if (chance(m, 5))
        return number_from_integer(type, chance(m, 50) ? most : type_is_signed(type) ? -most - 1 : most - 1);
    int small = (int)below(m, 10) - (type_is_signed(type) ? 3 : 0);
    return number_from_integer(type, small);
}

/* ---- names ---- */

Name *new_name(Maker *m, NameKind kind, const char *letter) {
    Name *name = NEW(Name);
    name->kind = kind;
    snprintf(name->text, sizeof name->text, "%s%d", letter, m->serial++);
    return name;
}

Name *signature_name(Maker *m, NameKind kind, const char *letter, int64_t value) {
    Name *name = new_name(m, kind, letter);
    name->value = value;
    name->shape = shape_scalar(TYPE_I64);
    m->program->names[m->program->name_count++] = name;
    return name;
}

void enter(Maker *m, Name *name) {
    if (m->scope_count < MAX_SCOPE) m->scope[m->scope_count++] = name;
}

/* ---- tensors ---- */

static void choose_data(Maker *m, Tensor *tensor) {
    bool is_int = type_is_int(tensor->type);
    tensor->data = chance(m, 60) ? DATA_SMALL : chance(m, 50) ? DATA_SPECIAL : chance(m, 50) ? DATA_WIDE : DATA_BITS;
    if (is_int && chance(m, 45)) tensor->data = DATA_INDEX;
    tensor->limit = 1 + below(m, 40);
}

Tensor *new_tensor(Maker *m, Type type, int rank, const Extent *const *dims, TensorRole role) {
    static const char *const letters[] = {"x", "y", "z", "w"};
    int most = m->grid == 0 ? MAX_TENSORS : role == TENSOR_IN ? MOST_INPUTS : MOST_TENSORS;
    double size = 1;
    for (int i = 0; i < rank; i++) size *= (double)extent_value(dims[i]);
    if (m->program->tensor_count >= most || size > MOST_ELEMENTS) return NULL;
    Tensor *tensor = NEW(Tensor);
    snprintf(tensor->text, sizeof tensor->text, "%s%d", letters[role], m->program->tensor_count);
    tensor->type = type;
    tensor->rank = rank;
    for (int i = 0; i < rank; i++) tensor->dim[i] = dims[i];
    tensor->role = role;
    tensor->seed = random_next(&m->random);
    choose_data(m, tensor);
    tensor->view = chance(m, 45) ? LIE_CONTIGUOUS : (TensorView)below(m, LIE_COUNT);
    if (role != TENSOR_IN && tensor->view == LIE_REPEATED) tensor->view = LIE_ROWS;
    tensor->placement = chance(m, 50) ? PLACEMENT_BEGIN : PLACEMENT_END;
    tensor->tainted = role == TENSOR_TEMP;
    m->program->tensors[m->program->tensor_count++] = tensor;
    return tensor;
}

/* ---- sizes ---- */

static int64_t some_lanes(Maker *m, int64_t most) {
    static const int64_t sizes[] = {1,  2,   3,   4,   5,   6,   7,   8,   9,   12,   13,   16,
                                    17, 20,  24,  31,  32,  33,  40,  48,  63,  64,   65,   80,
                                    96, 100, 127, 128, 129, 200, 256, 500, 512, 1000, 1024, 4096};
    int count = sizeof sizes / sizeof *sizes;
    while (count > 1 && sizes[count - 1] > most) count--;
    return sizes[chance(m, 50) ? below(m, (unsigned)count) : below(m, (unsigned)(count < 17 ? count : 17))];
}

/* 0, 1, one less or more than a tile, several tiles. */
static int64_t some_dimension(Maker *m, int64_t tile) {
    switch (below(m, 9)) {
    case 0: return chance(m, 40) ? 0 : 1;
    case 1: return tile > 1 ? tile - 1 : 2;
    case 2: return tile;
    case 3: return tile + 1;
    case 4: return 2 * tile + (int64_t)below(m, 3);
    case 5: return tile / 2 + 1;
    default: return 1 + (int64_t)below(m, (unsigned)(tile < 60 ? 3 * tile : tile + 60));
    }
}

static void make_sizes(Maker *m) {
    static const int64_t lanes[] = {64, 64, 128, 128, 256, 256, 600, 1024, 2048, 4096};
    m->most_lanes = lanes[below(m, 10)];
    int tunes = 2 + (int)below(m, 3);
    int64_t tile[8];
    int tiles = 0;
    for (int i = 0; i < tunes; i++) {
        NameKind kind = chance(m, 85) ? NAME_TUNE : chance(m, 50) ? NAME_GENERIC : NAME_CONSTANT;
        int64_t value = some_lanes(m, i == 0 ? m->most_lanes : m->most_lanes / 4);
        if (kind == NAME_CONSTANT && value == 1) value = 2;
        Name *name = signature_name(m, kind, kind == NAME_TUNE ? "B" : kind == NAME_GENERIC ? "G" : "C", value);
        m->pool[m->pool_count++] = extent_name(name);
        tile[tiles++] = value;
    }
    if (chance(m, 50)) m->pool[m->pool_count++] = extent_literal(some_lanes(m, 40));
    if (chance(m, 30)) m->pool[m->pool_count++] = extent_literal(1 + below(m, 3));
    int dims = 2 + (int)below(m, 3);
    for (int i = 0; i < dims; i++) {
        bool is_static = chance(m, 15);
        int64_t value = is_static ? some_lanes(m, 64) : some_dimension(m, tile[below(m, (unsigned)tiles)]);
        Name *name = signature_name(m, is_static ? NAME_STATIC : NAME_DIMENSION, is_static ? "S" : "N", value);
        m->dims[m->dim_count++] = extent_name(name);
        if (is_static) m->pool[m->pool_count++] = extent_name(name);
    }
    if (chance(m, 30)) m->dims[m->dim_count++] = extent_literal(1 + below(m, 20));
    if (chance(m, 15)) m->dims[m->dim_count++] = extent_product(extent_literal(2), m->dims[0]);
    if (chance(m, 15)) m->dims[m->dim_count++] = extent_sum(m->dims[0], extent_literal(1 + below(m, 3)));
}

const Extent *some_extent(Maker *m, int64_t most) {
    for (int tries = 0; tries < 6; tries++) {
        const Extent *extent = m->pool[below(m, (unsigned)m->pool_count)];
        for (int i = m->scope_count - 1; i >= 0 && chance(m, 60); i--)
            if (m->scope[i]->kind == NAME_RANGE && chance(m, 50)) {
                extent = m->scope[i]->size;
                break;
            }
        if (extent_value(extent) <= most) return extent;
    }
    return extent_literal(1 + below(m, most < 1 ? 1 : most < 4 ? (unsigned)most : 4));
}

Shape some_shape(Maker *m, Type scalar, int most_rank) {
    static const int ranks[] = {0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5};
    Shape shape = {.scalar = scalar, .rank = ranks[below(m, 12)]};
    if (shape.rank > most_rank) shape.rank = most_rank;
    int64_t left = m->most_lanes;
    for (int i = 0; i < shape.rank; i++) {
        shape.extent[i] = some_extent(m, left);
        left /= extent_value(shape.extent[i]) > left ? left : extent_value(shape.extent[i]);
        if (left < 1) left = 1;
    }
    return shape;
}

/* ---- parameters ---- */

static void make_scalars(Maker *m) {
    static const int64_t hostile[] = {INT64_MIN, INT64_MAX, (INT64_C(1) << 62) + 1, -1, 0, INT64_C(1) << 32};
    int count = (int)below(m, 4);
    for (int i = 0; i < count; i++) {
        Type type = chance(m, 40) ? TYPE_I64 : some_number(m);
        Name *name = signature_name(m, NAME_PARAMETER, "s", 0);
        name->shape = shape_scalar(type);
        name->value = (int64_t)some_literal(m, type);
        if (type == TYPE_I64 && chance(m, 20)) name->value = hostile[below(m, 6)];
        if (type_is_float(type) && number_is_nan(type, (uint64_t)name->value)) name->value = 0;
        name->constant = type_is_int(type) && chance(m, 15);
        const Extent *dim = m->dims[below(m, (unsigned)m->dim_count)];
        if (type == TYPE_I64 && extent_value(dim) > 0 && chance(m, 35)) {
            name->below = dim;
            name->value = (int64_t)below(m, (unsigned)extent_value(dim));
        }
        enter(m, name);
    }
}

/* A dimension has to be bound by a tensor that has the name as extent, or the name and a number. */
static void bind_dimensions(Maker *m) {
    for (int n = 0; n < m->program->name_count; n++) {
        Name *name = m->program->names[n];
        bool bound = name->kind != NAME_DIMENSION && name->kind != NAME_STATIC;
        for (int i = 0; i < m->program->tensor_count && !bound; i++)
            bound = program_binds(m->program, m->program->tensors[i], name);
        const Extent *dim = extent_name(name);
        if (!bound) new_tensor(m, TYPE_F32, 1, &dim, TENSOR_IN);
    }
}

Program *make_program(uint64_t seed, uint64_t number) {
    Maker maker = {.random = random_create(seed * 1000003 + number)}, *m = &maker;
    /* The streams of neighbouring seeds are the same sequence, shifted by one. */
    maker.random = random_create(random_next(&m->random) ^ random_next(&m->random) << 7);
    m->program = NEW(Program);
    m->program->grids = NEW(Block);
    m->program->warps = chance(m, 12) ? (int64_t)1 << below(m, 4) : -1;
    m->program->stages = chance(m, 8) ? (int64_t)below(m, 4) : -1;
    m->program->packs = chance(m, 30) ? 1 : -1;
    for (int i = 0; i < 3; i++) m->favourites[i] = any_type(m);
    make_sizes(m);
    make_scalars(m);
    int grids = chance(m, 60) ? 1 : 1 + (int)below(m, 3);
    for (int i = 0; i < grids; i++) {
        m->grid = i + 1;
        m->last = i + 1 == grids;
        make_grid(m);
    }
    m->grid = 0;
    bind_dimensions(m);
    return m->program;
}
