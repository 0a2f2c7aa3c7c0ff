/* Accesses to the temporaries in which parts of a loop leave their values. */
#include "ptx/grid/part_values.h"

#include "lang/ir/operands.h"

enum { MOST_OPERANDS = 3 + 4 * TILE_MAX_TILE_RANK };

/* An access to whole tiles of the program's parts: its indices, behind those operands that are there, and their kinds. */
typedef struct Access {
    TileValue *operands[MOST_OPERANDS];
    int64_t kinds[2 + TILE_MAX_TILE_RANK];
    unsigned count, axes;
} Access;

static void add_index(Access *access, TileValue *index) {
    access->kinds[access->axes++] = TILE_ACCESS_INDEX;
    access->operands[access->count++] = index;
}

static void add_range(TileBuilder *b, Access *access, TileValue *first, TileValue *hi) {
    access->kinds[access->axes++] = TILE_ACCESS_RANGE;
    access->operands[access->count++] = first;
    access->operands[access->count++] = tile_build_i64(b, 1);
    access->operands[access->count++] = tile_build_i64(b, 0);
    access->operands[access->count++] = hi;
}

static unsigned rank_of(const TileType *type) { return tile_type_is_tile(type) ? type->rank : 0; }

static void add_tile(TileBuilder *b, Access *access, const TileType *type) {
    for (unsigned a = 0; a < rank_of(type); a++)
        add_range(b, access, tile_build_i64(b, 0), tile_build_i64(b, type->extent[a]));
}

static TileOp *build_access(TileBuilder *b, TileOpId id, const Access *access, const TileType *result) {
    TileAttribute kinds = {.key = TILE_ATTRIBUTE_ACCESS, .count = access->axes, .integers = access->kinds};
    return tile_build_op(b, id, access->operands, access->count, &kinds, 1, &result, result != NULL);
}

void gpu_part_store(TileBuilder *b, TileValue *temp, TileValue *value, TileValue *program, TileValue *part) {
    Access access = {.operands = {temp, value}, .count = 2};
    add_index(&access, program);
    add_index(&access, part);
    add_tile(b, &access, value->type);
    build_access(b, TILE_OP_STORE_TILE, &access, NULL);
}

int64_t gpu_parts_together(const TileType *type, int64_t slices, int64_t wanted) {
    enum { MOST_LANES = 1 << 12 };
    int64_t together = wanted;
    while (together > 1 && together * tile_type_lanes(type) / slices > MOST_LANES) together /= 2;
    return rank_of(type) < TILE_MAX_TILE_RANK ? together : 1;
}

TileValue *gpu_part_load(TileBuilder *b, TileValue *temp, const TileType *type, TileValue *program, TileValue *part) {
    Access access = {.operands = {temp}, .count = 1};
    add_index(&access, program);
    add_index(&access, part);
    add_tile(b, &access, type);
    return tile_op_result(build_access(b, TILE_OP_LOAD_TILE, &access, type), 0);
}

TileValue *gpu_parts_load(TileBuilder *b, TileValue *temp, const TileType *type, TileValue *program, TileValue *part,
                          int64_t together, TileValue *count) {
    int64_t extent[TILE_MAX_TILE_RANK] = {together};
    Access access = {.operands = {temp}, .count = 1};
    for (unsigned a = 0; a < rank_of(type); a++) extent[1 + a] = type->extent[a];
    add_index(&access, program);
    add_range(b, &access, part, count);
    add_tile(b, &access, type);
    const TileType *several = tile_type_tile(b->module->context, type->scalar, 1 + rank_of(type), extent);
    return tile_op_result(build_access(b, TILE_OP_LOAD_TILE, &access, several), 0);
}
