/* cpu-scratch
 *
 * Purpose: assign each buffer an offset in the scratch memory that a thread passes to the program. If the program has
 * assertions, its first cache line is reserved for the number of a failed one (lang/ir/assertion.h). Buffers that are
 * `passing` share memory where the ops that access one come before those that access the other: what a chain of steps
 * passes from one to the next then stays in the L1 cache.
 *
 * Before:
 *     func phase machine @k.0(%begin: i64, %end: i64, %scratch: ptr<scratch>) {
 *       %b = buffer {bytes = 100, align = 64} : ptr<scratch>
 *       %c = buffer {bytes = 8, align = 64} : ptr<scratch>
 *       %0 = const {value = 0.0} : f32
 *       store %0, %b
 *       store %0, %c
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%begin: i64, %end: i64, %scratch: ptr<scratch>) scratch_bytes = 192 {
 *       %0 = const {value = 128} : i64
 *       %c = ptr_add %scratch, %0 : ptr<scratch>
 *       %1 = const {value = 0.0} : f32
 *       store %1, %scratch
 *       store %1, %c
 *       return
 *     }
 * Needs: `scratch` is the last parameter of a phase. Keeps: machine form; no `buffer` is left.
 * Cost: linear in the ops, quadratic in the buffers. */
#include "base/list.h"
#include "base/map.h"
#include "cpu/passes.h"
#include "lang/ir/assertion.h"
#include "lang/ir/build.h"

enum { LINE = 64 };

/* Memory that passing buffers have one after the other. */
typedef struct Place {
    uint64_t offset, bytes;
    uint32_t end; /* the last op that accesses it so far */
} Place;

/* A passing buffer, and the ops from the first to the last one that accesses it: of the innermost block that has all of
 * them. */
typedef struct Passing {
    TileOp *buffer;
    TileBlock *block;
    uint32_t begin, end;
} Passing;

/* The ops in order; an op with regions ends behind what is in them. */
typedef struct Extent {
    uint32_t begin, end;
} Extent;

typedef struct Layout {
    TileModule *module;
    TileArena *arena;
    TileValue *scratch;
    uint64_t bytes;
    bool found;
    uint32_t position;
    TileMap extents;
    TILE_LIST(Passing) passing;
    TILE_LIST(Place) places;
} Layout;

/* ---- who accesses a buffer ---- */

static void number_block(Layout *layout, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        Extent *extent = TILE_NEW(layout->arena, Extent);
        extent->begin = ++layout->position;
        for (unsigned i = 0; i < op->region_count; i++) number_block(layout, &op->regions[i]);
        extent->end = layout->position;
        tile_map_set(&layout->extents, op, extent);
    }
}

/* Lets the block have the accesses at this address; false: the address goes where it cannot be followed. */
static bool find_block(const TileValue *address, TileBlock **block) {
    for (const TileUse *use = address->first_use; use; use = use->next) {
        TileOp *user = use->user;
        if (user->region_count || user->id == TILE_OP_YIELD) return false;
        if (user->id == TILE_OP_PTR_ADD) {
            if (!find_block(&user->results[0], block)) return false;
            continue;
        }
        if (!*block) *block = user->block;
        while (!tile_block_inside(user->block, *block)) *block = (*block)->op->block;
    }
    return true;
}

static void find_ops(const Layout *layout, const TileValue *address, Passing *passing) {
    for (const TileUse *use = address->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        if (user->id == TILE_OP_PTR_ADD) {
            find_ops(layout, &user->results[0], passing);
            continue;
        }
        while (user->block != passing->block) user = user->block->op;
        const Extent *extent = tile_map_get(&layout->extents, user);
        if (extent->begin < passing->begin) passing->begin = extent->begin;
        if (extent->end > passing->end) passing->end = extent->end;
    }
}

/* ---- offsets ---- */

static void replace_buffer(Layout *layout, TileOp *op, uint64_t offset) {
    TileValue *address = layout->scratch;
    if (offset) {
        TileBuilder b = tile_builder_before(layout->module, op);
        address = tile_build_ptr_add(&b, address, tile_build_i64(&b, (int64_t)offset));
    }
    layout->found = true;
    tile_value_replace(tile_op_result(op, 0), address);
    tile_op_erase(op);
}

static uint64_t new_memory(Layout *layout, const TileOp *op) {
    uint64_t align = (uint64_t)tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, LINE);
    if (align < LINE) align = LINE;
    uint64_t offset = (layout->bytes + align - 1) / align * align;
    layout->bytes = offset + (uint64_t)tile_op_integer(op, TILE_ATTRIBUTE_BYTES, 0);
    return offset;
}

static void assign_offset(TileOp *op, void *state) {
    Layout *layout = state;
    if (op->id != TILE_OP_BUFFER) return;
    Passing passing = {op, NULL, UINT32_MAX, 0};
    bool passes =
        tile_op_integer(op, TILE_ATTRIBUTE_PASSING, 0) && tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, 0) <= LINE;
    if (!passes || !find_block(&op->results[0], &passing.block) || !passing.block) {
        replace_buffer(layout, op, new_memory(layout, op));
        return;
    }
    find_ops(layout, &op->results[0], &passing);
    size_t at = layout->passing.count;
    tile_list_push(layout->arena, &layout->passing, passing);
    for (Passing *all = layout->passing.items; at && all[at - 1].begin > passing.begin;
         at--) { /* in the order of use */
        all[at] = all[at - 1];
        all[at - 1] = passing;
    }
}

/* The place that was used last of those that are free and have room for so much, and not for twice as much. */
static Place *find_place(Layout *layout, uint64_t bytes, uint32_t begin) {
    Place *found = NULL;
    for (size_t i = 0; i < layout->places.count; i++) {
        Place *place = &layout->places.items[i];
        bool fits = place->bytes >= bytes && place->bytes / 2 < bytes && place->end < begin;
        if (fits && (!found || place->end > found->end)) found = place;
    }
    return found;
}

static void share_memory(Layout *layout) {
    for (size_t i = 0; i < layout->passing.count; i++) {
        const Passing *passing = &layout->passing.items[i];
        uint64_t bytes = (uint64_t)tile_op_integer(passing->buffer, TILE_ATTRIBUTE_BYTES, 0);
        Place *place = find_place(layout, bytes, passing->begin);
        if (!place) {
            tile_list_push(layout->arena, &layout->places, (Place){new_memory(layout, passing->buffer), bytes, 0});
            place = &layout->places.items[layout->places.count - 1];
        }
        place->end = passing->end;
        replace_buffer(layout, passing->buffer, place->offset);
    }
}

TileResult tile_pass_cpu_scratch(TilePassContext *context, TileFunc *func) {
    uint32_t count = func->body.argument_count;
    if (func->kind != TILE_FUNC_PHASE || !count) return TILE_RESULT_UNCHANGED;
    Layout layout = {.module = context->module, .arena = context->scratch, .scratch = func->body.arguments[count - 1]};
    if (layout.scratch->type->kind != TILE_TYPE_POINTER || layout.scratch->type->space != TILE_SPACE_SCRATCH)
        return TILE_RESULT_UNCHANGED;
    if (tile_func_assertions(func, context->scratch).count || tile_func_prints(func, context->scratch).count)
        layout.bytes = LINE;
    uint64_t reserved = layout.bytes;
    tile_map_init(&layout.extents, layout.arena);
    number_block(&layout, &func->body);
    tile_block_walk(&func->body, assign_offset, &layout);
    share_memory(&layout);
    if (!layout.found && func->scratch_bytes >= reserved) return TILE_RESULT_UNCHANGED;
    func->scratch_bytes = (layout.bytes + LINE - 1) / LINE * LINE;
    return TILE_RESULT_CHANGED;
}
