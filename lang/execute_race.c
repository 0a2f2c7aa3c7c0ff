/* Races in memory that threads share: shadow memory holds, for each place, the last accesses that a later one can be in
 * conflict with.
 *
 * Threads of a block are ordered by its barriers alone, and threads of different blocks by nothing until the launch
 * ends. So time is one count of eras, a new one with each block and each barrier of it, and an access comes before
 * another of a different thread only where both are of one block and its era is an earlier one. That needs no order of
 * the scheduler's: a conflict is found whichever of the two came first. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute_state.h"

enum { PAGE_BYTES = 1024, LOG_GRAIN_MOST = 3 };

typedef struct Access {
    const TileOp *op; /* NULL: none */
    uint32_t era, thread;
} Access;

/* Of many accesses that are in no conflict with one another, those that stand for all: two threads' of the latest era,
 * since one of them is another's, whoever comes next, and one of a block before. */
typedef struct Accesses {
    Access latest[2], other;
} Accesses;

typedef struct Cell {
    Access write;
    Accesses reads;
} Cell;

/* Memory of PAGE_BYTES bytes, in grains that no access has divided so far. */
typedef struct Page {
    unsigned log_grain;
    Cell *cells;       /* NULL: no access yet */
    Accesses *updates; /* atomic ones, a set for each grain; NULL: none yet */
} Page;

struct ExecShadow {
    ExecRaces *races;
    uintptr_t begin, end;
    Page *pages;
};

typedef struct BlockBegin {
    uint32_t era;
    int64_t number;
} BlockBegin;

struct ExecRaces {
    uint32_t era, block_era; /* now, and when this block began */
    BlockBegin *blocks;
    size_t block_count, block_capacity;
    ExecShadow *shadows;
    size_t shadow_count;
};

typedef enum Kind { READ, WRITE, UPDATE } Kind;

/* ---- regions ---- */

static int compare_shadows(const void *a, const void *b) {
    uintptr_t x = ((const ExecShadow *)a)->begin, y = ((const ExecShadow *)b)->begin;
    return (x > y) - (x < y);
}

/* Objects may lie in one another: arguments that share memory. Each piece of memory has one shadow. */
static void merge_shadows(ExecRaces *races) {
    qsort(races->shadows, races->shadow_count, sizeof *races->shadows, compare_shadows);
    size_t kept = 0;
    for (size_t i = 0; i < races->shadow_count; i++) {
        const ExecShadow *next = &races->shadows[i];
        ExecShadow *last = kept ? &races->shadows[kept - 1] : NULL;
        if (last && next->begin < last->end)
            last->end = next->end > last->end ? next->end : last->end;
        else
            races->shadows[kept++] = *next;
    }
    races->shadow_count = kept;
}

static bool has_bytes(const ExecObject *object) { return !object->dead && object->base && object->size > 0; }

static size_t page_count(const ExecShadow *shadow) { return (shadow->end - shadow->begin) / PAGE_BYTES + 1; }

ExecRaces *tile_exec_watch(TileExecutor *e) {
    ExecRaces *races = calloc(1, sizeof *races);
    if (races) races->shadows = calloc(e->object_count + 1, sizeof *races->shadows);
    if (!races || !races->shadows) {
        free(races);
        tile_exec_out_of_memory(e);
        return NULL;
    }
    for (size_t i = 0; i < e->object_count; i++) {
        const ExecObject *object = &e->objects[i];
        uintptr_t begin = (uintptr_t)object->base;
        if (has_bytes(object))
            races->shadows[races->shadow_count++] =
                (ExecShadow){.races = races, .begin = begin, .end = begin + (uintptr_t)object->size};
    }
    merge_shadows(races);
    for (size_t i = 0; i < races->shadow_count; i++) {
        races->shadows[i].pages = calloc(page_count(&races->shadows[i]), sizeof(Page));
        if (races->shadows[i].pages) continue;
        tile_exec_unwatch(e, races);
        tile_exec_out_of_memory(e);
        return NULL;
    }
    for (size_t i = 0; i < e->object_count; i++)
        for (size_t s = 0; s < races->shadow_count && has_bytes(&e->objects[i]); s++)
            if ((uintptr_t)e->objects[i].base >= races->shadows[s].begin &&
                (uintptr_t)e->objects[i].base < races->shadows[s].end)
                e->objects[i].shadow = &races->shadows[s];
    return races;
}

static void clear_page(Page *page) {
    free(page->cells);
    free(page->updates);
    *page = (Page){0};
}

void tile_exec_unwatch(TileExecutor *e, ExecRaces *races) {
    if (!races) return;
    for (size_t i = 0; i < e->object_count; i++) e->objects[i].shadow = NULL;
    for (size_t i = 0; i < races->shadow_count; i++) {
        ExecShadow *shadow = &races->shadows[i];
        for (size_t p = 0; shadow->pages && p < page_count(shadow); p++) clear_page(&shadow->pages[p]);
        free(shadow->pages);
    }
    free(races->shadows);
    free(races->blocks);
    free(races);
}

/* ---- time ---- */

void tile_exec_next_era(ExecRaces *races) { races->era++; }

bool tile_exec_begin_block(TileExecutor *e, ExecRaces *races, int64_t number, const ExecObject *shared) {
    if (races->block_count == races->block_capacity) {
        size_t wanted = races->block_capacity ? races->block_capacity * 2 : 32;
        BlockBegin *larger = realloc(races->blocks, wanted * sizeof *larger);
        if (!larger) return tile_exec_out_of_memory(e);
        races->blocks = larger;
        races->block_capacity = wanted;
    }
    races->block_era = ++races->era;
    races->blocks[races->block_count++] = (BlockBegin){races->era, number};
    for (size_t p = 0; shared->shadow && p < page_count(shared->shadow); p++) clear_page(&shared->shadow->pages[p]);
    return true;
}

static int64_t block_of(const ExecRaces *races, uint32_t era) {
    size_t last = races->block_count - 1;
    while (races->blocks[last].era > era) last--;
    return races->blocks[last].number;
}

/* ---- conflicts ---- */

static bool is_foreign(const ExecRaces *races, const Access *access) {
    return access->op && access->era < races->block_era;
}

static bool is_unordered(const ExecRaces *races, const Access *access, uint32_t thread) {
    return is_foreign(races, access) || (access->op && access->era == races->era && access->thread != thread);
}

/* One of them that nothing orders with an access of the thread now; NULL: there is none. */
static const Access *find_unordered(const ExecRaces *races, const Accesses *accesses, uint32_t thread, bool blocks) {
    const Access *const all[] = {&accesses->latest[0], &accesses->latest[1], &accesses->other};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is_unordered(races, all[i], thread) && (blocks || !is_foreign(races, all[i]))) return all[i];
    return NULL;
}

/* The language lets a program read what others update meanwhile: it sees the old value or the new one. */
static const Access *find_conflict(const ExecRaces *races, const Cell *cell, const Accesses *updates, Kind kind,
                                   uint32_t thread) {
    const Access *found = NULL;
    if (is_unordered(races, &cell->write, thread)) return &cell->write;
    if (kind != READ) found = find_unordered(races, &cell->reads, thread, kind == WRITE);
    if (!found && kind != UPDATE && updates) found = find_unordered(races, updates, thread, kind == WRITE);
    return found;
}

static void add_access(const ExecRaces *races, Accesses *accesses, Access access) {
    Access *latest = accesses->latest;
    if (is_foreign(races, &latest[0])) {
        accesses->other = latest[0];
        latest[0].op = NULL;
    }
    if (!latest[0].op || latest[0].era != races->era) {
        latest[0] = access;
        latest[1].op = NULL;
    } else if (latest[0].thread != access.thread && !latest[1].op) {
        latest[1] = access;
    }
}

/* ---- pages ---- */

/* The page, in grains of at most 1 << log_grain bytes. */
static bool divide_page(Page *page, unsigned log_grain) {
    if (page->cells && page->log_grain <= log_grain) return true;
    size_t count = PAGE_BYTES >> log_grain;
    Cell *cells = calloc(count, sizeof *cells);
    Accesses *updates = page->updates ? calloc(count, sizeof *updates) : NULL;
    if (!cells || (page->updates && !updates)) {
        free(cells);
        free(updates);
        return false;
    }
    for (size_t i = 0; page->cells && i < count; i++) {
        cells[i] = page->cells[i >> (page->log_grain - log_grain)];
        if (updates) updates[i] = page->updates[i >> (page->log_grain - log_grain)];
    }
    clear_page(page);
    *page = (Page){.log_grain = log_grain, .cells = cells, .updates = updates};
    return true;
}

static bool prepare_page(Page *page, unsigned log_grain, Kind kind) {
    if (!divide_page(page, log_grain)) return false;
    if (kind != UPDATE || page->updates) return true;
    page->updates = calloc(PAGE_BYTES >> page->log_grain, sizeof *page->updates);
    return page->updates != NULL;
}

/* ---- accesses ---- */

static Kind kind_of(const TileOp *op, bool write) {
    if (op->id == TILE_OP_ATOMIC || op->id == TILE_OP_ATOMIC_TILE) return UPDATE;
    return write ? WRITE : READ;
}

/* The phase's parameter that points into the object. */
static const char *name_of(const TileExecutor *e, uint64_t object) {
    const TileFunc *func = e->root->program->func;
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        if (func->body.arguments[i]->type->kind != TILE_TYPE_POINTER) continue;
        if (tile_exec_register(e->root, e->root->program->body.first_argument + i).lanes[0] == object)
            return func->parameters[i].name;
    }
    return "?";
}

static bool is_store(const TileOp *op) {
    return op->id == TILE_OP_STORE || op->id == TILE_OP_SCATTER || op->id == TILE_OP_COPY_ASYNC;
}

static bool report(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, unsigned bytes,
                   const Access *access, bool wrote) {
    static const char *const now[] = {"reads", "writes", "updates"}, *const then[] = {"read", "wrote", "updated"};
    const ExecRaces *races = e->objects[object].shadow->races;
    TileText other = {.arena = e->arena};
    tile_exec_print_op(e, access->op, &other);
    bool same = access->era >= races->block_era;
    return tile_exec_stop(
        e, in, same ? TILE_EXECUTION_FAULT : TILE_EXECUTION_RACE,
        "a race: thread %u of block %lld %s bytes %lld .. %lld of %%%s, which thread %u of %s%lld %s at `%s`; %s",
        e->thread, (long long)e->block, now[kind_of(in->op, wrote)], (long long)offset, (long long)offset + bytes,
        name_of(e, object), access->thread, same ? "the same block " : "block ",
        (long long)block_of(races, access->era), then[kind_of(access->op, is_store(access->op))], tile_text_get(&other),
        same ? "no barrier stands between" : "nothing orders the blocks of a launch");
}

bool tile_exec_share(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, int64_t bytes,
                     bool write) {
    const ExecShadow *shadow = e->objects[object].shadow;
    ExecRaces *races = shadow->races;
    Kind kind = kind_of(in->op, write);
    Access access = {in->op, races->era, e->thread};
    uint64_t begin = (uint64_t)((uintptr_t)e->objects[object].base - shadow->begin) + (uint64_t)offset;
    uint64_t alignment = begin | (uint64_t)bytes;
    unsigned log_grain = LOG_GRAIN_MOST;
    while (log_grain && alignment & ((UINT64_C(1) << log_grain) - 1)) log_grain--;
    for (uint64_t at = begin, grain; at < begin + (uint64_t)bytes; at += grain) {
        Page *page = &shadow->pages[at / PAGE_BYTES];
        if (!prepare_page(page, log_grain, kind)) return tile_exec_out_of_memory(e);
        size_t number = at % PAGE_BYTES >> page->log_grain;
        Cell *cell = &page->cells[number];
        Accesses *updates = page->updates ? &page->updates[number] : NULL;
        grain = UINT64_C(1) << page->log_grain;
        const Access *conflict = find_conflict(races, cell, updates, kind, e->thread);
        if (conflict) return report(e, in, object, offset + (int64_t)(at - begin), (unsigned)grain, conflict, write);
        switch (kind) {
        case READ: add_access(races, &cell->reads, access); break;
        case WRITE: cell->write = access; break;
        case UPDATE: add_access(races, updates, access); break;
        }
    }
    return true;
}

/* ---- copies ---- */

uint32_t tile_exec_era(const TileExecutor *e, uint64_t object) {
    const ExecShadow *shadow = e->objects[object].shadow;
    return shadow ? shadow->races->era : 0;
}

/* Somebody's access since the copy began; NULL: none. */
static const Access *find_intruder(const Cell *cell, const TileExecutor *e, const ExecInstruction *copy,
                                   uint32_t begun) {
    const Access *write = &cell->write;
    if (write->op != copy->op || write->thread != e->thread || write->era != begun) return write->op ? write : NULL;
    for (unsigned i = 0; i < 2; i++)
        if (cell->reads.latest[i].op && cell->reads.latest[i].era > begun) return &cell->reads.latest[i];
    return NULL;
}

static bool report_intruder(TileExecutor *e, const ExecInstruction *copy, uint64_t object, int64_t offset,
                            const Access *access) {
    TileText other = {.arena = e->arena};
    tile_exec_print_op(e, access->op, &other);
    return tile_exec_fault(e, copy,
                           "a race: thread %u of block %lld copied to byte %lld of %%%s and those behind it, and while "
                           "that was under way thread %u %s there at `%s`",
                           e->thread, (long long)e->block, (long long)offset, name_of(e, object), access->thread,
                           is_store(access->op) ? "wrote" : "read", tile_text_get(&other));
}

bool tile_exec_share_arrival(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, int64_t bytes,
                             uint32_t begun) {
    const ExecShadow *shadow = e->objects[object].shadow;
    if (!shadow) return true;
    uint64_t begin = (uint64_t)((uintptr_t)e->objects[object].base - shadow->begin) + (uint64_t)offset;
    for (uint64_t at = begin, grain; at < begin + (uint64_t)bytes; at += grain) {
        Page *page = &shadow->pages[at / PAGE_BYTES]; /* the copy's begin has divided it */
        Cell *cell = &page->cells[at % PAGE_BYTES >> page->log_grain];
        grain = UINT64_C(1) << page->log_grain;
        const Access *other = find_intruder(cell, e, in, begun);
        if (other) return report_intruder(e, in, object, offset + (int64_t)(at - begin), other);
        cell->write = (Access){in->op, shadow->races->era, e->thread};
    }
    return true;
}
