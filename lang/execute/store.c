/* Boxes that a thread stores by tensor maps. A store reads shared memory and writes the tensor when nobody can tell
 * otherwise: with a seed at any time, else when its thread waits for it, which is the latest possible time. Until then
 * its accesses are unordered with all others; after a wait they are the thread's own. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/races.h"

typedef struct Store {
    const ExecInstruction *in;
    ExecBox box;
    uint64_t from; /* object */
    int64_t from_offset;
    uint64_t group;
    bool stored, read; /* it has happened; the thread has waited for its reads */
} Store;

struct ExecStores {
    Store *items;
    size_t count, capacity;
    uint64_t group; /* number of groups committed */
};

void tile_exec_forget_stores(TileExecutor *e) {
    if (!e->stores) return;
    e->stores->count = 0;
    e->stores->group = 0;
}

void tile_exec_free_stores(TileExecutor *e) {
    if (e->stores) free(e->stores->items);
    free(e->stores);
    e->stores = NULL;
}

static ExecStores *stores_of(TileExecutor *e, const ExecInstruction *in) {
    if (!e->thread_count) {
        tile_exec_fault(e, in, "this function is not run by a block of threads");
        return NULL;
    }
    if (!e->stores) e->stores = calloc(1, sizeof *e->stores);
    if (!e->stores) tile_exec_out_of_memory(e);
    return e->stores;
}

/* Hardware stores only boxes that begin in the tensor, and writes whole chunks of 16 bytes: what is behind the end of a
 * row that is no multiple of that would be overwritten. */
static bool check_box(TileExecutor *e, const ExecInstruction *in, const ExecBox *box) {
    for (uint32_t d = 0; d < box->rank; d++)
        if (box->at[d] < 0 || box->at[d] >= box->extent[d])
            return tile_exec_fault(e, in, "the box begins outside of the tensor, at %lld of %lld along axis %u",
                                   (long long)box->at[d], (long long)box->extent[d], d);
    int64_t row = box->extent[box->rank - 1] * box->element_bytes;
    return row % TILE_MAP_GRAIN == 0 ||
           tile_exec_fault(e, in, "the tensor's rows of %lld bytes are no multiple of %d: the store may write beyond",
                           (long long)row, TILE_MAP_GRAIN);
}

bool tile_exec_store_tensor(TileExecutor *e, const ExecInstruction *in) {
    ExecStores *stores = stores_of(e, in);
    ExecValue from = tile_exec_operand(e, in, 1);
    if (!stores) return false;
    Store store = {.in = in, .from = from.lanes[0], .from_offset = (int64_t)from.lanes[1], .group = stores->group};
    if (tile_exec_poisoned(from, 0))
        return tile_exec_poison(e, in, from.poison[0], "has as an index", "the address of the box is poison");
    if (!tile_exec_box_read(e, in, 0, 2, &store.box) || !check_box(e, in, &store.box)) return false;
    int64_t bytes = tile_exec_box_bytes(&store.box);
    const ExecObject *object = tile_exec_reach(e, in, store.from, store.from_offset, bytes, false);
    if (!object || !tile_exec_box_place(e, in, &store.box, store.from, store.from_offset)) return false;
    if (object->shadow && !tile_exec_share(e, in, store.from, store.from_offset, bytes, false)) return false;
    if (!tile_exec_box_share(e, in, &store.box, true)) return false;
    Store *items = tile_exec_grow(stores->items, stores->count, &stores->capacity, sizeof *items);
    if (!items) return tile_exec_out_of_memory(e);
    stores->items = items;
    stores->items[stores->count++] = store;
    return true;
}

/* ---- completion ---- */

static bool happen(TileExecutor *e, Store *store) {
    if (store->stored) return true;
    store->stored = true;
    return tile_exec_box_store(e, store->in, &store->box, store->from, store->from_offset);
}

bool tile_exec_complete_stores(TileExecutor *host, TileExecutor *e) {
    if (!e->stores || !e->stores->count || tile_exec_random(host) % 4) return true;
    return happen(e, &e->stores->items[tile_exec_random(host) % e->stores->count]);
}

bool tile_exec_end_stores(TileExecutor *e) {
    for (size_t i = 0; e->stores && i < e->stores->count; i++)
        if (!e->stores->items[i].read)
            return tile_exec_fault(e, e->stores->items[i].in, "the thread ends while the store may read shared memory");
    return true;
}

/* ---- groups ---- */

bool tile_exec_store_commit(TileExecutor *e, const ExecInstruction *in) {
    ExecStores *stores = stores_of(e, in);
    if (stores) stores->group++;
    return stores != NULL;
}

/* From now on the store's accesses are ordered as those of its thread are. */
static void share_read(TileExecutor *e, Store *store) {
    uint32_t time = tile_exec_own_time(e->races, e->thread);
    if (!store->read)
        tile_exec_share_completed(e, store->in, store->from, store->from_offset, tile_exec_box_bytes(&store->box),
                                  e->thread, time);
    store->read = true;
}

static void share_written(TileExecutor *e, const Store *store) {
    ExecBoxPart part;
    uint32_t time = tile_exec_own_time(e->races, e->thread);
    for (uint32_t row = 0; row < store->box.rows; row++)
        if (tile_exec_box_part(&store->box, row, &part))
            tile_exec_share_completed(e, store->in, store->box.object, part.from, part.bytes, e->thread, time);
}

bool tile_exec_store_wait(TileExecutor *e, const ExecInstruction *in) {
    ExecStores *stores = stores_of(e, in);
    uint64_t pending = (uint64_t)tile_op_integer(in->op, TILE_ATTRIBUTE_PENDING, 0);
    bool only_read = tile_op_integer(in->op, TILE_ATTRIBUTE_READ, 0) != 0;
    if (!stores) return false;
    size_t kept = 0;
    for (size_t i = 0; i < stores->count; i++) {
        Store *store = &stores->items[i];
        bool waited = store->group + pending < stores->group;
        if (waited) {
            if (!happen(e, store)) return false;
            share_read(e, store);
            if (!only_read) share_written(e, store);
        }
        if (!waited || only_read) stores->items[kept++] = *store;
    }
    stores->count = kept;
    return true;
}
