/* Mbarriers, and the bulk copies that they count. An mbarrier's state is kept here; its bytes in memory are poison and
 * contain its number, so that a store to them by other ops is detected.
 *
 * A bulk copy completes when no thread can continue, which is the latest possible time; with a seed, at any time
 * before. From then on its bytes may be read, and its mbarrier has counted them. But the copy's accesses are ordered
 * before a thread's only when that thread has waited for that phase. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/state.h"

enum { BULK_GRAIN = 16, MOST_BYTES = (1 << 20) - 1, MOST_PHASES = MOST_BYTES - 2 };

typedef struct Mbarrier {
    uint64_t object;
    int64_t offset;
    const TileOp *init;
    uint32_t number, count;
    uint32_t arrivals; /* that the phase still expects */
    int64_t bytes;     /* likewise; negative if more bytes were copied than expected so far */
    uint32_t phase;    /* number of completed phases */
    ExecClock gathering, completed;
} Mbarrier;

typedef struct Bulk {
    const ExecInstruction *in;
    TileExecutor *thread;
    uint64_t to, from; /* objects */
    int64_t to_offset, from_offset;
    uint32_t bytes, mbarrier;
    uint32_t phase; /* phases completed when it is waited for; 0: not completed */
    ExecBox box;    /* where it comes from instead of `from`, if it has rows */
} Bulk;

struct ExecMbarriers {
    ExecRaces *races;
    Mbarrier *items; /* with clocks up to `clocks` */
    uint32_t count, clocks, most;
    Bulk *copies; /* that no thread has waited for */
    size_t copy_count, copy_capacity, flying;
};

/* ---- life ---- */

/* Are threads ordered by more than barriers of the whole block, or do asynchronous ops access memory? */
static void find_mbarriers(TileOp *op, void *state) {
    bool *found = state;
    *found |= op->id == TILE_OP_WARP_BARRIER || op->id == TILE_OP_CLUSTER_BARRIER || op->id == TILE_OP_MBARRIER_INIT || op->id == TILE_OP_MBARRIER_ARRIVE || op->id == TILE_OP_MBARRIER_EXPECT || op->id == TILE_OP_MBARRIER_WAIT ||
              op->id == TILE_OP_COPY_BULK || op->id == TILE_OP_COPY_TENSOR ||
              op->id == TILE_OP_STORE_TENSOR || tile_op_is_of_warpgroup((TileOpId)op->id) ||
              (op->id == TILE_OP_BARRIER && tile_op_get(op, TILE_ATTRIBUTE_NUMBER));
}

static bool create(const TileFunc *func, uint32_t blocks, ExecRaces *races, ExecMbarriers **mbarriers) {
    uint64_t most = func->scratch_bytes / EXEC_MBARRIER_BYTES * blocks;
    ExecMbarriers *all = *mbarriers = calloc(1, sizeof *all);
    if (!all) return false;
    all->races = races;
    all->most = most < EXEC_MOST_MBARRIERS ? (uint32_t)most : EXEC_MOST_MBARRIERS;
    all->items = calloc(all->most + 1, sizeof *all->items);
    return all->items != NULL;
}

bool tile_exec_create_mbarriers(TileExecutor *host, const TileFunc *func, uint32_t blocks, ExecRaces *races,
                                ExecMbarriers **mbarriers) {
    bool found = false;
    for (TileFunc *each = func->module->first; each; each = each->next)
        if (each->form == TILE_FORM_MACHINE) tile_block_walk(&each->body, find_mbarriers, &found);
    if (!found) return true;
    if (!create(func, blocks, races, mbarriers)) return tile_exec_out_of_memory(host);
    return tile_exec_keep_clocks(host, races, func->threads * blocks, func->scratch_bytes * blocks);
}

void tile_exec_free_mbarriers(ExecMbarriers *mbarriers) {
    if (!mbarriers) return;
    for (uint32_t i = 0; mbarriers->items && i <= mbarriers->most; i++) {
        free(mbarriers->items[i].gathering.times);
        free(mbarriers->items[i].completed.times);
    }
    free(mbarriers->items);
    free(mbarriers->copies);
    free(mbarriers);
}

void tile_exec_forget_mbarriers(ExecMbarriers *mbarriers) {
    if (!mbarriers) return;
    mbarriers->count = 0;
    mbarriers->copy_count = mbarriers->flying = 0;
}

/* ---- lookup ---- */

/* The memory that the operand points to: 8 bytes, aligned to 8. */
static ExecObject *reach(TileExecutor *e, const ExecInstruction *in, unsigned operand, uint64_t *number,
                         int64_t *offset) {
    ExecValue pointer = tile_exec_operand(e, in, operand);
    *number = pointer.lanes[0];
    *offset = (int64_t)pointer.lanes[1];
    if (!e->mbarriers)
        tile_exec_fault(e, in, "this function is not run by a block of threads");
    else if (tile_exec_poisoned(pointer, 0))
        tile_exec_fault(e, in, "the address of the mbarrier is poison");
    else if (*offset % EXEC_MBARRIER_BYTES)
        tile_exec_fault(e, in, "the mbarrier is not aligned to %d bytes", EXEC_MBARRIER_BYTES);
    else
        return tile_exec_reach(e, in, *number, *offset, EXEC_MBARRIER_BYTES, true);
    return NULL;
}

static Mbarrier *find(const ExecMbarriers *all, uint64_t object, int64_t offset) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->items[i].object == object && all->items[i].offset == offset) return &all->items[i];
    return NULL;
}

static uint64_t mark_of(const Mbarrier *mbarrier) { return UINT64_C(0x6d62617200000000) | mbarrier->number; }

static bool is_intact(const TileExecutor *e, const Mbarrier *mbarrier) {
    const ExecObject *object = &e->objects[mbarrier->object];
    uint64_t mark = mark_of(mbarrier);
    bool defined = object->poison && !object->poison[mbarrier->offset];
    return !defined && memcmp(object->base + mbarrier->offset, &mark, sizeof mark) == 0;
}

static bool check_intact(TileExecutor *e, const ExecInstruction *in, const Mbarrier *mbarrier) {
    if (is_intact(e, mbarrier)) return true;
    TileText init = {.arena = e->arena};
    tile_exec_print_op(e, mbarrier->init, &init);
    return tile_exec_fault(e, in, "something else has been written to the mbarrier of `%s`", tile_text_get(&init));
}

/* Shared memory goes when all threads of its block have ended. The threads of a cluster are neighbours. */
static bool is_there(TileExecutor *e, const ExecInstruction *in, int64_t ranks) {
    const TileExecutor *threads = e - e->thread + ((int64_t)e->rank + ranks) * e->thread_count;
    uint32_t ended = 0;
    while (ended < e->thread_count && threads[ended].state == TILE_EXECUTION_DONE) ended++;
    return ended < e->thread_count ||
           tile_exec_fault(e, in, "block %lld, which it reaches into, has ended", (long long)(e->block + ranks));
}

/* The mbarrier at the pointer, or in its place in the block of the cluster that is so many ranks on, with an access by this
 * thread; NULL, and the thread stops, if there is none. */
static Mbarrier *use_in(TileExecutor *e, const ExecInstruction *in, unsigned operand, int64_t ranks) {
    uint64_t number;
    int64_t offset;
    const ExecObject *object = reach(e, in, operand, &number, &offset);
    if (!object || !is_there(e, in, ranks)) return NULL;
    number += (uint64_t)ranks;
    object = &e->objects[number];
    Mbarrier *mbarrier = find(e->mbarriers, number, offset);
    if (object->shadow && !tile_exec_share_mbarrier(e, in, number, offset)) return NULL;
    if (!mbarrier) tile_exec_fault(e, in, "there is no mbarrier at byte %lld", (long long)offset);
    return mbarrier && check_intact(e, in, mbarrier) ? mbarrier : NULL;
}

static Mbarrier *use(TileExecutor *e, const ExecInstruction *in, unsigned operand) { return use_in(e, in, operand, 0); }

/* The blocks that an op speaks to: those of the cluster, or this one; their ranks from this block's on. */
typedef struct Ranks {
    int64_t begin, end;
} Ranks;

static Ranks ranks_of(const TileExecutor *e, const ExecInstruction *in) {
    if (!tile_op_get(in->op, TILE_ATTRIBUTE_MULTICAST)) return (Ranks){0, 1};
    return (Ranks){-(int64_t)e->rank, (int64_t)e->ranks - (int64_t)e->rank};
}

/* ---- counting ---- */

static bool add_mbarrier(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset) {
    ExecMbarriers *all = e->mbarriers;
    if (all->count == all->most)
        return tile_exec_fault(e, in, "a block of this function has %u mbarriers at most", all->most);
    Mbarrier *mbarrier = &all->items[all->count];
    if (all->count == all->clocks) {
        all->clocks++;
        if (!tile_exec_clock_create(all->races, &mbarrier->gathering) ||
            !tile_exec_clock_create(all->races, &mbarrier->completed))
            return tile_exec_out_of_memory(e);
    }
    uint32_t count = (uint32_t)tile_op_integer(in->op, TILE_ATTRIBUTE_ARRIVALS, 1);
    *mbarrier = (Mbarrier){.object = object,
                           .offset = offset,
                           .init = in->op,
                           .number = all->count++,
                           .count = count,
                           .arrivals = count,
                           .gathering = {.times = mbarrier->gathering.times},
                           .completed = {.times = mbarrier->completed.times}};
    return true;
}

bool tile_exec_mbarrier_init(TileExecutor *e, const ExecInstruction *in) {
    uint64_t number;
    int64_t offset;
    ExecObject *object = reach(e, in, 0, &number, &offset);
    if (!object) return false;
    const Mbarrier *there = find(e->mbarriers, number, offset);
    if (object->shadow && !tile_exec_share(e, in, number, offset, EXEC_MBARRIER_BYTES, true)) return false;
    if (there) {
        TileText init = {.arena = e->arena};
        tile_exec_print_op(e, there->init, &init);
        return tile_exec_fault(e, in, "there is an mbarrier already, of `%s`", tile_text_get(&init));
    }
    if (!add_mbarrier(e, in, number, offset)) return false;
    uint64_t mark = mark_of(find(e->mbarriers, number, offset));
    memcpy(object->base + offset, &mark, sizeof mark);
    if (object->poison) memset(object->poison + offset, 1, EXEC_MBARRIER_BYTES);
    return true;
}

static bool add_bytes(TileExecutor *e, const ExecInstruction *in, Mbarrier *mbarrier, int64_t bytes) {
    mbarrier->bytes += bytes;
    if (mbarrier->bytes >= -MOST_BYTES && mbarrier->bytes <= MOST_BYTES) return true;
    return tile_exec_fault(e, in, "the mbarrier counts to %d bytes either way, and would have to count to %lld",
                           MOST_BYTES, (long long)mbarrier->bytes);
}

/* Starts the next phase if nothing is missing. */
static bool complete(TileExecutor *e, const ExecInstruction *in, Mbarrier *mbarrier) {
    if (mbarrier->arrivals || mbarrier->bytes) return true;
    if (mbarrier->phase == MOST_PHASES)
        return tile_exec_fault(e, in, "more than %d phases of an mbarrier are not followed", MOST_PHASES);
    ExecClock done = mbarrier->gathering;
    mbarrier->phase++;
    tile_exec_tick(e->mbarriers->races, &done, tile_exec_mbarrier_entry(e->mbarriers->races, mbarrier->number),
                   mbarrier->phase);
    mbarrier->gathering = (ExecClock){.times = mbarrier->completed.times};
    mbarrier->completed = done;
    mbarrier->arrivals = mbarrier->count;
    return true;
}

static bool arrive_in(TileExecutor *e, const ExecInstruction *in, int64_t ranks) {
    Mbarrier *mbarrier = use_in(e, in, 0, ranks);
    if (!mbarrier || !add_bytes(e, in, mbarrier, tile_op_integer(in->op, TILE_ATTRIBUTE_BYTES, 0))) return false;
    if (!mbarrier->arrivals)
        return tile_exec_fault(e, in, "all %u arrivals of the phase have come, and it still lacks %lld bytes",
                               mbarrier->count, (long long)mbarrier->bytes);
    if (!tile_exec_publish(e, in, e->mbarriers->races, &mbarrier->gathering)) return false;
    mbarrier->arrivals--;
    return complete(e, in, mbarrier);
}

bool tile_exec_mbarrier_arrive(TileExecutor *e, const ExecInstruction *in) {
    Ranks ranks = ranks_of(e, in);
    bool good = true;
    for (int64_t i = ranks.begin; i < ranks.end && good; i++) good = arrive_in(e, in, i);
    return good;
}

bool tile_exec_mbarrier_expect(TileExecutor *e, const ExecInstruction *in) {
    int64_t bytes;
    Mbarrier *mbarrier = use(e, in, 0);
    if (!mbarrier || !tile_exec_integer(e, in, 1, "the number of bytes", &bytes)) return false;
    if ((int32_t)bytes < 0) return tile_exec_fault(e, in, "the number of bytes is %d", (int32_t)bytes);
    return add_bytes(e, in, mbarrier, (int32_t)bytes) && complete(e, in, mbarrier);
}

/* ---- waiting ---- */

static bool has_completed(const Mbarrier *mbarrier, uint32_t parity) { return (mbarrier->phase & 1) != parity; }

/* The wait for the copy orders its accesses. */
static void share_completed(const ExecMbarriers *all, const Bulk *copy) {
    ExecBoxPart part;
    uint32_t entry = tile_exec_mbarrier_entry(all->races, copy->mbarrier);
    tile_exec_share_completed(copy->thread, copy->in, copy->to, copy->to_offset, copy->bytes, entry, copy->phase);
    if (!copy->box.rows)
        tile_exec_share_completed(copy->thread, copy->in, copy->from, copy->from_offset, copy->bytes, entry,
                                  copy->phase);
    for (uint32_t row = 0; row < copy->box.rows; row++)
        if (tile_exec_box_part(&copy->box, row, &part))
            tile_exec_share_completed(copy->thread, copy->in, copy->box.object, part.from, part.bytes, entry,
                                      copy->phase);
}

/* Orders the thread after everything before the arrivals of the last completed phase, and after its copies. */
static void learn(TileExecutor *e, const Mbarrier *mbarrier) {
    ExecMbarriers *all = e->mbarriers;
    size_t kept = 0;
    for (size_t i = 0; i < all->copy_count; i++) {
        const Bulk *copy = &all->copies[i];
        if (copy->mbarrier != mbarrier->number || !copy->phase || copy->phase > mbarrier->phase) {
            all->copies[kept++] = *copy;
            continue;
        }
        share_completed(all, copy);
    }
    all->copy_count = kept;
    tile_exec_learn(all->races, e->thread, &mbarrier->completed);
}

bool tile_exec_mbarrier_wait(TileExecutor *e, const ExecInstruction *in) {
    int64_t parity;
    const Mbarrier *mbarrier = use(e, in, 0);
    if (!mbarrier || !tile_exec_integer(e, in, 1, "the parity", &parity)) return false;
    if (parity != 0 && parity != 1) return tile_exec_fault(e, in, "the parity is %lld", (long long)parity);
    if (has_completed(mbarrier, (uint32_t)parity)) {
        learn(e, mbarrier);
        return true;
    }
    e->meeting = in;
    e->awaited = mbarrier->number + 1;
    e->parity = (uint32_t)parity;
    return false;
}

static const Mbarrier *awaited_by(const TileExecutor *e) { return &e->mbarriers->items[e->awaited - 1]; }

bool tile_exec_may_go_on(const TileExecutor *e) { return has_completed(awaited_by(e), e->parity); }

void tile_exec_go_on(TileExecutor *e) {
    learn(e, awaited_by(e));
    e->meeting = NULL;
    e->awaited = 0;
}

void tile_exec_print_lacking(const TileExecutor *e, TileText *text) {
    const Mbarrier *mbarrier = awaited_by(e);
    TileText init = {.arena = e->arena};
    tile_exec_print_op(e, mbarrier->init, &init);
    tile_text_format(text, ", where phase %u of `%s` lacks", mbarrier->phase, tile_text_get(&init));
    if (mbarrier->arrivals) tile_text_format(text, " %u of %u arrivals", mbarrier->arrivals, mbarrier->count);
    if (mbarrier->arrivals && mbarrier->bytes > 0) tile_text_add(text, " and");
    if (mbarrier->bytes > 0) tile_text_format(text, " %lld bytes", (long long)mbarrier->bytes);
    if (mbarrier->bytes < 0)
        tile_text_format(text, "%s an arrival that speaks of %lld bytes, which have come",
                         mbarrier->arrivals ? " and" : "", -(long long)mbarrier->bytes);
}

/* ---- bulk copies ---- */

static bool is_aligned(const TileExecutor *e, uint64_t object, int64_t offset) {
    return ((uintptr_t)e->objects[object].base + (uintptr_t)offset) % BULK_GRAIN == 0;
}

static bool begin_bulk(TileExecutor *e, const Bulk *copy) {
    ExecMbarriers *all = e->mbarriers;
    Bulk *copies = tile_exec_grow(all->copies, all->copy_count, &all->copy_capacity, sizeof *copies);
    if (!copies) return tile_exec_out_of_memory(e);
    all->copies = copies;
    all->copies[all->copy_count++] = *copy;
    all->flying++;
    return true;
}

bool tile_exec_copy_bulk(TileExecutor *e, const ExecInstruction *in) {
    ExecValue to = tile_exec_operand(e, in, 0), from = tile_exec_operand(e, in, 1);
    int64_t bytes;
    const Mbarrier *mbarrier = use(e, in, 3);
    if (!mbarrier || !tile_exec_integer(e, in, 2, "the number of bytes", &bytes)) return false;
    if (bytes <= 0 || bytes % BULK_GRAIN || bytes > MOST_BYTES)
        return tile_exec_fault(e, in, "copies %lld bytes, not a multiple of %d up to %d", (long long)bytes, BULK_GRAIN,
                               MOST_BYTES);
    uint8_t poison = tile_exec_poisoned(to, 0) | tile_exec_poisoned(from, 0);
    if (poison) return tile_exec_poison(e, in, poison, "has as an index", "an address is poison");
    Bulk copy = {.in = in,
                 .thread = e,
                 .to = to.lanes[0],
                 .from = from.lanes[0],
                 .to_offset = (int64_t)to.lanes[1],
                 .from_offset = (int64_t)from.lanes[1],
                 .bytes = (uint32_t)bytes,
                 .mbarrier = mbarrier->number};
    ExecObject *object = tile_exec_reach(e, in, copy.to, copy.to_offset, bytes, true);
    if (!object || !tile_exec_reach(e, in, copy.from, copy.from_offset, bytes, false)) return false;
    if (!is_aligned(e, copy.to, copy.to_offset) || !is_aligned(e, copy.from, copy.from_offset))
        return tile_exec_fault(e, in, "an address is not aligned to %d bytes", BULK_GRAIN);
    if (object->shadow && !tile_exec_share(e, in, copy.to, copy.to_offset, bytes, true)) return false;
    if (e->objects[copy.from].shadow && !tile_exec_share(e, in, copy.from, copy.from_offset, bytes, false))
        return false;
    if (object->poison) memset(object->poison + copy.to_offset, 1, (size_t)bytes);
    return begin_bulk(e, &copy);
}

bool tile_exec_load_peer(TileExecutor *e, const ExecInstruction *in) {
    ExecValue from = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    int64_t ranks = tile_op_integer(in->op, TILE_ATTRIBUTE_RANK, 0) - (int64_t)e->rank;
    uint8_t poison = 0;
    if (!e->ranks) return tile_exec_fault(e, in, "this function is not run by a block of threads");
    if (tile_exec_poisoned(from, 0)) return tile_exec_poison(e, in, from.poison[0], "has as an address", "the address is poison");
    if (!is_there(e, in, ranks)) return false;
    const TileType *type = in->op->results[0].type;
    int64_t bytes = tile_scalar_bytes(type->scalar), count = tile_type_lanes(type);
    if ((int64_t)from.lanes[1] % (count * bytes)) return tile_exec_fault(e, in, "the address is no multiple of %lld bytes", (long long)(count * bytes));
    *result.any = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits;
        if (!tile_exec_load_element(e, in, from.lanes[0] + (uint64_t)ranks, (int64_t)from.lanes[1] + i * bytes, type->scalar, &bits, &poison)) return false;
        result.lanes[i] = bits;
        if (poison) tile_exec_set_poison(e, result, (uint32_t)i, poison);
    }
    return true;
}

/* The copy to the block of the cluster that is so many ranks on. */
static bool copy_box(TileExecutor *e, const ExecInstruction *in, const ExecBox *box, int64_t ranks) {
    ExecValue to = tile_exec_operand(e, in, 0);
    int64_t bytes = tile_exec_box_bytes(box);
    const Mbarrier *mbarrier = use_in(e, in, 2, ranks);
    if (!mbarrier) return false;
    Bulk copy = {.in = in,
                 .thread = e,
                 .to = to.lanes[0] + (uint64_t)ranks,
                 .to_offset = (int64_t)to.lanes[1],
                 .bytes = (uint32_t)bytes,
                 .mbarrier = mbarrier->number,
                 .box = *box};
    ExecObject *object = tile_exec_reach(e, in, copy.to, copy.to_offset, bytes, true);
    if (!object || !tile_exec_box_place(e, in, &copy.box, copy.to, copy.to_offset)) return false;
    if (object->shadow && !tile_exec_share(e, in, copy.to, copy.to_offset, bytes, true)) return false;
    if (!tile_exec_box_share(e, in, &copy.box, false)) return false;
    if (object->poison) memset(object->poison + copy.to_offset, 1, (size_t)bytes);
    return begin_bulk(e, &copy);
}

bool tile_exec_copy_tensor(TileExecutor *e, const ExecInstruction *in) {
    ExecBox box;
    ExecValue to = tile_exec_operand(e, in, 0);
    Ranks ranks = ranks_of(e, in);
    if (!use(e, in, 2)) return false;
    if (tile_exec_poisoned(to, 0))
        return tile_exec_poison(e, in, to.poison[0], "has as an index", "the address of the place is poison");
    if (!tile_exec_box_read(e, in, 1, 3, &box)) return false;
    int64_t bytes = tile_exec_box_bytes(&box);
    if (bytes > MOST_BYTES)
        return tile_exec_fault(e, in, "copies %lld bytes, more than %d", (long long)bytes, MOST_BYTES);
    bool good = true;
    for (int64_t i = ranks.begin; i < ranks.end && good; i++) good = copy_box(e, in, &box, i);
    return good;
}

/* Caches are not executed: what hardware does not take is found. */
bool tile_exec_prefetch_tensor(TileExecutor *e, const ExecInstruction *in) {
    return in->op->operand_count == 1 || tile_exec_box_read(e, in, 0, 1, &(ExecBox){0});
}

static void move_bytes(TileExecutor *e, const Bulk *copy) {
    ExecObject *to = &e->objects[copy->to];
    const ExecObject *from = &e->objects[copy->from];
    memcpy(to->base + copy->to_offset, from->base + copy->from_offset, copy->bytes);
    if (to->poison) memset(to->poison + copy->to_offset, 0, copy->bytes);
    for (uint32_t i = 0; to->poison && i < copy->bytes; i++)
        to->poison[copy->to_offset + i] = tile_exec_read_poison(e, copy->in, from, copy->from_offset + i, 1);
}

/* The copy's thread may have ended. */
static bool complete_copy(ExecMbarriers *all, Bulk *copy) {
    TileExecutor *e = copy->thread;
    Mbarrier *mbarrier = &all->items[copy->mbarrier];
    if (copy->box.rows)
        tile_exec_box_load(e, copy->in, &copy->box, copy->to, copy->to_offset);
    else
        move_bytes(e, copy);
    all->flying--;
    copy->phase = mbarrier->phase + 1;
    return check_intact(e, copy->in, mbarrier) && add_bytes(e, copy->in, mbarrier, -(int64_t)copy->bytes) &&
           complete(e, copy->in, mbarrier);
}

TileExecutor *tile_exec_bulk_thread(const ExecMbarriers *mbarriers, const ExecInstruction **in) {
    for (size_t i = 0; mbarriers && mbarriers->flying && i < mbarriers->copy_count; i++) {
        if (mbarriers->copies[i].phase) continue;
        *in = mbarriers->copies[i].in;
        return mbarriers->copies[i].thread;
    }
    return NULL;
}

bool tile_exec_complete_bulk_copy(TileExecutor *host, ExecMbarriers *mbarriers, TileExecutor **failed) {
    if (!mbarriers->flying) return true;
    size_t skip = host->options.seed ? tile_exec_random(host) % mbarriers->flying : 0, i = 0;
    while (mbarriers->copies[i].phase || skip--) i++;
    *failed = mbarriers->copies[i].thread;
    return complete_copy(mbarriers, &mbarriers->copies[i]);
}
