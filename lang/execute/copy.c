/* Asynchronous copies from global to shared memory. The destination is poison from the start of a copy to its
 * completion, which is at the latest when its thread waits for it. Without a seed it is exactly then; with a seed, at
 * any time before. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/state.h"

typedef struct Copy {
    const ExecInstruction *in;
    uint64_t to, from; /* objects */
    int64_t to_offset, from_offset;
    uint32_t bytes, count; /* written; copied, the rest is zero-filled */
    uint32_t begun;        /* the era in which it started */
    uint64_t group;
    bool completed;
} Copy;

struct ExecCopies {
    Copy *items;
    size_t count, capacity;
    uint64_t group; /* number of groups committed */
};

void tile_exec_forget_copies(TileExecutor *e) {
    if (!e->copies) return;
    e->copies->count = 0;
    e->copies->group = 0;
}

void tile_exec_free_copies(TileExecutor *e) {
    if (e->copies) free(e->copies->items);
    free(e->copies);
    e->copies = NULL;
}

static ExecCopies *copies_of(TileExecutor *e, const ExecInstruction *in) {
    if (!e->thread_count) {
        tile_exec_fault(e, in, "this function is not run by a block of threads");
        return NULL;
    }
    if (!e->copies) e->copies = calloc(1, sizeof *e->copies);
    if (!e->copies) tile_exec_out_of_memory(e);
    return e->copies;
}

static bool add_copy(TileExecutor *e, ExecCopies *copies, const Copy *copy) {
    Copy *items = tile_exec_grow(copies->items, copies->count, &copies->capacity, sizeof *items);
    if (!items) return tile_exec_out_of_memory(e);
    copies->items = items;
    copies->items[copies->count++] = *copy;
    return true;
}

/* The memory was checked when the copy started, and lives as long as the launch. */
static void complete(TileExecutor *e, Copy *copy) {
    ExecObject *to = &e->objects[copy->to];
    const ExecObject *from = &e->objects[copy->from];
    copy->completed = true;
    memset(to->base + copy->to_offset, 0, copy->bytes);
    if (to->poison) memset(to->poison + copy->to_offset, 0, copy->bytes);
    if (!copy->count) return;
    memcpy(to->base + copy->to_offset, from->base + copy->from_offset, copy->count);
    for (uint32_t i = 0; to->poison && i < copy->count; i++)
        to->poison[copy->to_offset + i] = tile_exec_read_poison(e, copy->in, from, copy->from_offset + i, 1);
}

void tile_exec_complete_copies(TileExecutor *host, TileExecutor *e) {
    if (!e->copies || !e->copies->count || tile_exec_random(host) % 4) return;
    size_t number = tile_exec_random(host) % e->copies->count;
    if (!e->copies->items[number].completed) complete(e, &e->copies->items[number]);
}

static bool is_aligned(const TileExecutor *e, uint64_t object, int64_t offset, int64_t bytes) {
    return ((uintptr_t)e->objects[object].base + (uintptr_t)offset) % (uintptr_t)bytes == 0;
}

static bool begin_copy(TileExecutor *e, const ExecInstruction *in) {
    ExecCopies *copies = copies_of(e, in);
    ExecValue to = tile_exec_operand(e, in, 0), from = tile_exec_operand(e, in, 1);
    int64_t bytes = tile_op_integer(in->op, TILE_ATTRIBUTE_BYTES, 0), count;
    if (!copies || !tile_exec_integer(e, in, 2, "the number of bytes", &count)) return false;
    if (count < 0 || count > bytes) return tile_exec_fault(e, in, "copies %lld bytes", (long long)count);
    uint8_t poison = tile_exec_poisoned(to, 0) | (count ? tile_exec_poisoned(from, 0) : 0);
    if (poison) return tile_exec_poison(e, in, poison, "has as an index", "an address is poison");
    Copy copy = {.in = in,
                 .to = to.lanes[0],
                 .from = from.lanes[0],
                 .to_offset = (int64_t)to.lanes[1],
                 .from_offset = (int64_t)from.lanes[1],
                 .bytes = (uint32_t)bytes,
                 .count = (uint32_t)count,
                 .group = copies->group};
    ExecObject *object = tile_exec_reach(e, in, copy.to, copy.to_offset, bytes, true);
    if (!object || (count && !tile_exec_reach(e, in, copy.from, copy.from_offset, count, false))) return false;
    if (!is_aligned(e, copy.to, copy.to_offset, bytes) || (count && !is_aligned(e, copy.from, copy.from_offset, bytes)))
        return tile_exec_fault(e, in, "an address is not aligned to %lld bytes", (long long)bytes);
    if (object->shadow && !tile_exec_share(e, in, copy.to, copy.to_offset, bytes, true)) return false;
    if (count && e->objects[copy.from].shadow && !tile_exec_share(e, in, copy.from, copy.from_offset, count, false))
        return false;
    copy.begun = tile_exec_era(e, copy.to);
    if (object->poison) memset(object->poison + copy.to_offset, 1, (size_t)bytes);
    return add_copy(e, copies, &copy);
}

bool tile_exec_copy_async(TileExecutor *e, const ExecInstruction *in) {
    if (in->mask < 0) return begin_copy(e, in);
    ExecValue mask = tile_exec_operand(e, in, (unsigned)in->mask);
    if (tile_exec_poisoned(mask, 0))
        return tile_exec_poison(e, in, mask.poison[0], "depends on", "the mask is poison");
    return !mask.lanes[0] || begin_copy(e, in);
}

bool tile_exec_copy_commit(TileExecutor *e, const ExecInstruction *in) {
    if (tile_op_func(in->op)->form == TILE_FORM_TILE) return true;
    ExecCopies *copies = copies_of(e, in);
    if (copies) copies->group++;
    return copies != NULL;
}

bool tile_exec_copy_wait(TileExecutor *e, const ExecInstruction *in) {
    if (tile_op_func(in->op)->form == TILE_FORM_TILE) return true;
    ExecCopies *copies = copies_of(e, in);
    uint64_t pending = (uint64_t)tile_op_integer(in->op, TILE_ATTRIBUTE_PENDING, 0);
    if (!copies) return false;
    size_t kept = 0;
    for (size_t i = 0; i < copies->count; i++) {
        Copy *copy = &copies->items[i];
        if (copy->group + pending >= copies->group) {
            copies->items[kept++] = *copy;
            continue;
        }
        if (!copy->completed) complete(e, copy);
        if (!tile_exec_share_arrival(e, copy->in, copy->to, copy->to_offset, copy->bytes, copy->begun)) return false;
    }
    copies->count = kept;
    return true;
}
