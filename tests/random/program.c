#include "program.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

enum { CHUNK = 1 << 20 };

typedef struct Chunk {
    struct Chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
} Chunk;

static Chunk *chunks;

void *program_allocate(size_t size) {
    size = (size + 15) & ~(size_t)15;
    if (!chunks || chunks->used + size > chunks->size) {
        size_t room = size > CHUNK ? size : CHUNK;
        Chunk *chunk = malloc(sizeof *chunk + room);
        if (!chunk) abort();
        *chunk = (Chunk){.next = chunks, .size = room};
        chunks = chunk;
    }
    void *memory = chunks->bytes + chunks->used;
    chunks->used += size;
    return memset(memory, 0, size);
}

void program_release(void) {
    while (chunks) {
        Chunk *next = chunks->next;
        free(chunks);
        chunks = next;
    }
}

/* ---- extents and shapes ---- */

int64_t extent_value(const Extent *extent) {
    switch (extent->kind) {
    case EXTENT_LITERAL: return extent->literal;
    case EXTENT_NAME: return extent->name->value;
    case EXTENT_PRODUCT: return extent_value(extent->a) * extent_value(extent->b);
    case EXTENT_SUM: return extent_value(extent->a) + extent_value(extent->b);
    }
    return 0;
}

/* Is the extent a number in the text, such as `2 * 3`? Constants of the file count as numbers. */
static bool is_written(const Extent *extent) {
    if (extent->kind == EXTENT_PRODUCT || extent->kind == EXTENT_SUM)
        return is_written(extent->a) && is_written(extent->b);
    return extent->kind == EXTENT_LITERAL || extent->name->kind == NAME_CONSTANT;
}

/* The extent's value if each name is a certain large number, modulo 2^64. Equal sums of products give equal values,
 * different ones different values. */
static uint64_t symbolic_value(const Extent *extent) {
    if (is_written(extent)) return (uint64_t)extent_value(extent);
    if (extent->kind == EXTENT_PRODUCT) return symbolic_value(extent->a) * symbolic_value(extent->b);
    if (extent->kind == EXTENT_SUM) return symbolic_value(extent->a) + symbolic_value(extent->b);
    uint64_t number = 14695981039346656037u;
    for (const char *at = extent->name->text; *at; at++) number = (number ^ (uint8_t)*at) * 1099511628211u;
    return number | 1;
}

bool extent_same(const Extent *a, const Extent *b) {
    return a == b || (a && b && symbolic_value(a) == symbolic_value(b));
}

bool extent_is_one(const Extent *extent) { return is_written(extent) && extent_value(extent) == 1; }

static const Extent *make_extent(Extent extent) {
    Extent *made = NEW(Extent);
    *made = extent;
    return made;
}

const Extent *extent_literal(int64_t value) { return make_extent((Extent){EXTENT_LITERAL, value, NULL, NULL, NULL}); }
const Extent *extent_name(Name *name) { return make_extent((Extent){EXTENT_NAME, 0, name, NULL, NULL}); }
const Extent *extent_product(const Extent *a, const Extent *b) {
    return make_extent((Extent){EXTENT_PRODUCT, 0, NULL, a, b});
}
const Extent *extent_sum(const Extent *a, const Extent *b) { return make_extent((Extent){EXTENT_SUM, 0, NULL, a, b}); }

int64_t shape_lanes(const Shape *shape) {
    int64_t lanes = 1;
    for (int i = 0; i < shape->rank; i++) lanes *= extent_value(shape->extent[i]);
    return lanes;
}

bool shape_same(const Shape *a, const Shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (!extent_same(a->extent[i], b->extent[i])) return false;
    return true;
}

Shape shape_with(Shape shape, Type scalar) {
    shape.scalar = scalar;
    return shape;
}

Shape shape_scalar(Type scalar) { return (Shape){.scalar = scalar}; }

Shape shape_without(Shape shape, int axis) {
    for (int i = axis; i + 1 < shape.rank; i++) shape.extent[i] = shape.extent[i + 1];
    shape.rank--;
    return shape;
}

/* ---- sources ---- */

bool sources_have(const Sources *sources, Source source) {
    for (int i = 0; i < sources->count && i < MAX_SOURCES; i++)
        if (sources->items[i].id == source.id && sources->items[i].axes == source.axes) return true;
    return false;
}

void sources_add(Sources *sources, Source source) {
    if (sources_have(sources, source)) return;
    if (sources->count < MAX_SOURCES) sources->items[sources->count] = source;
    if (sources->count <= MAX_SOURCES) sources->count++;
}

void sources_join(Sources *sources, const Sources *more) {
    for (int i = 0; i < more->count && i < MAX_SOURCES; i++) sources_add(sources, more->items[i]);
    if (more->count > MAX_SOURCES) sources->count = MAX_SOURCES + 1;
}

bool sources_within(const Sources *sources, const Sources *within) {
    if (sources->count > MAX_SOURCES) return false;
    for (int i = 0; i < sources->count; i++)
        if (!sources_have(within, sources->items[i])) return false;
    return true;
}

bool sources_touch(const Sources *sources, unsigned axes) {
    if (sources->count > MAX_SOURCES) return true;
    for (int i = 0; i < sources->count; i++)
        if (sources->items[i].axes & axes) return true;
    return false;
}

Sources sources_stretch(const Sources *sources, unsigned axes) {
    Sources result = {.count = sources->count > MAX_SOURCES ? sources->count : 0};
    for (int i = 0; i < sources->count && i < MAX_SOURCES; i++) {
        Source source = sources->items[i];
        if (source.axes & axes) {
            source.axes &= (uint8_t)~axes;
            source.id = source.id * 31 + 7;
            source.plain = false;
        }
        sources_add(&result, source);
    }
    return result;
}

Sources sources_map(const Sources *sources, const int *map) {
    Sources result = {.count = sources->count > MAX_SOURCES ? sources->count : 0};
    for (int i = 0; i < sources->count && i < MAX_SOURCES; i++) {
        Source source = sources->items[i];
        unsigned axes = 0;
        bool gone = false;
        for (int k = 0; k < MAX_AXES; k++) {
            if (!(source.axes >> k & 1)) continue;
            if (map[k] < 0)
                gone = true;
            else
                axes |= 1u << map[k];
        }
        source.axes = (uint8_t)axes;
        if (!gone) sources_add(&result, source);
    }
    return result;
}

/* ---- others ---- */

int fold_parts(FoldKind kind) {
    switch (kind) {
    case FOLD_AFFINE:
    case FOLD_BEST: return 2;
    case FOLD_EDGES:
    case FOLD_MATRIX: return 3;
    default: return 1;
    }
}

void block_add(Block *block, Statement *statement) {
    if (block->count == block->capacity) {
        int capacity = block->capacity ? 2 * block->capacity : 4;
        Statement **items = program_allocate((size_t)capacity * sizeof *items);
        if (block->count) memcpy(items, block->items, (size_t)block->count * sizeof *items);
        block->items = items;
        block->capacity = capacity;
    }
    block->items[block->count++] = statement;
}

bool packing_has_halves(Packing packing) { return packing != PACKING_NONE && packing != PACKING_E8; }

static bool is_name(const Extent *extent, const Name *name) { return extent->kind == EXTENT_NAME && extent->name == name; }

static bool counts_bytes(const Program *program, const Name *name) {
    for (int i = 0; i < program->tensor_count; i++) {
        const Tensor *tensor = program->tensors[i];
        bool counts = packing_has_halves(tensor->packing) && tensor->role != TENSOR_TEMP;
        if (counts && is_name(tensor->dim[tensor->rank - 1], name)) return true;
    }
    return false;
}

/* The name, or the name and a number: then the compiler solves for it. */
static bool tells_name(const Extent *extent, const Name *name) {
    bool sum = extent->kind == EXTENT_SUM && extent->b->kind == EXTENT_LITERAL;
    return is_name(sum ? extent->a : extent, name);
}

bool program_binds(const Program *program, const Tensor *tensor, const Name *name) {
    if (tensor->role == TENSOR_TEMP || (tensor->role == TENSOR_OUT && counts_bytes(program, name))) return false;
    for (int d = 0; d < tensor->rank; d++)
        if (tells_name(tensor->dim[d], name) && !(tensor->packing && d + 1 == tensor->rank)) return true;
    return false;
}

static void visit_expr(const Visitor *visitor, Expr **place) {
    if (!*place) return;
    if (visitor->expr) visitor->expr(visitor->state, place);
    for (int i = 0; i < (*place)->count; i++) visit_expr(visitor, &(*place)->operand[i]);
}

static void visit_block(const Visitor *visitor, Block *block) {
    for (int i = 0; block && i < block->count; i++) {
        Statement *statement = block->items[i];
        if (visitor->statement) visitor->statement(visitor->state, block, i);
        if (i >= block->count || block->items[i] != statement) continue;
        visit_expr(visitor, &statement->target);
        visit_expr(visitor, &statement->value);
        visit_expr(visitor, &statement->second);
        visit_expr(visitor, &statement->step);
        for (int k = 0; k < statement->count; k++) {
            visit_expr(visitor, &statement->lo[k]);
            visit_expr(visitor, &statement->hi[k]);
        }
        visit_block(visitor, statement->body);
        visit_block(visitor, statement->otherwise);
    }
}

void program_visit(const Program *program, const Visitor *visitor) { visit_block(visitor, program->grids); }
