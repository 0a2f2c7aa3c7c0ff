/* Data races in memory that threads share. Shadow memory has, for each piece of memory (grain), the last accesses that
 * a later one can conflict with.
 *
 * A barrier orders all threads of a block; threads of different blocks are unordered until the launch ends. So time is
 * a global count of eras, which each block and each barrier of a block increments; an access happens before another one
 * of a different thread if both are in the same block and the former's era is lower. Within an era only mbarriers order
 * accesses: if a kernel has any, each thread also has a vector clock, which has for each other thread the latest of its
 * times that happened before this thread's next access. Neither depends on the schedule: a conflict is found whichever
 * access is executed first. See docs/adr/0020-eras-and-clocks.md. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/races.h"

enum { PAGE_BYTES = 1024, LOG_GRAIN_MOST = 3 };

/* A sufficient subset of a grain's accesses without conflicts among them: one of two different threads in the latest
 * era, since at least one of them is not the next accessor's own, and one of a previous block. With clocks it has all
 * accesses of this block that are not ordered before a later one: a List instead of `latest`. */
typedef struct Accesses {
    Access latest[2], other;
} Accesses;

typedef struct Cell {
    Access write;
    Accesses reads;
} Cell;

typedef struct List {
    Access *items;
    uint32_t count, capacity;
} List;

typedef struct Lists {
    List reads, updates;
} Lists;

/* PAGE_BYTES bytes of memory, divided into grains as small as the accesses so far. */
typedef struct Page {
    unsigned log_grain;
    Cell *cells;       /* NULL: no access yet */
    Accesses *updates; /* atomic updates, a set for each grain; NULL: none yet */
    Lists *lists;      /* with clocks, for each grain; NULL: no access yet, or no clocks */
} Page;

struct ExecShadow {
    ExecRaces *races;
    uintptr_t begin, end;
    Page *pages;
};

typedef enum Kind { READ, WRITE, UPDATE } Kind;

/* The state of a grain. */
typedef struct Place {
    Cell *cell;
    Accesses *updates; /* NULL: none */
    Lists *lists;      /* NULL: no clocks */
} Place;

/* ---- regions ---- */

static int compare_shadows(const void *a, const void *b) {
    uintptr_t x = ((const ExecShadow *)a)->begin, y = ((const ExecShadow *)b)->begin;
    return (x > y) - (x < y);
}

/* Objects may overlap: arguments may share memory. Each piece of memory has one shadow. */
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

static void free_lists(Lists *lists, size_t count) {
    for (size_t i = 0; lists && i < count; i++) {
        free(lists[i].reads.items);
        free(lists[i].updates.items);
    }
    free(lists);
}

static void clear_page(Page *page) {
    free(page->cells);
    free(page->updates);
    free_lists(page->lists, PAGE_BYTES >> page->log_grain);
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
    tile_exec_free_clocks(races);
    free(races->shadows);
    free(races->blocks);
    free(races);
}

/* ---- time ---- */

void tile_exec_next_era(ExecRaces *races) { races->era++; }

bool tile_exec_begin_block(TileExecutor *e, ExecRaces *races, int64_t number, const ExecObject *shared, uint32_t objects) {
    BlockBegin *blocks = tile_exec_grow(races->blocks, races->block_count, &races->block_capacity, sizeof *blocks);
    if (!blocks) return tile_exec_out_of_memory(e);
    races->blocks = blocks;
    races->block_era = ++races->era;
    races->blocks[races->block_count++] = (BlockBegin){races->era, number};
    for (uint32_t i = 0; i < objects; i++)
        for (size_t p = 0; shared[i].shadow && p < page_count(shared[i].shadow); p++) clear_page(&shared[i].shadow->pages[p]);
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

static inline bool is_unordered(const ExecRaces *races, const Access *access, uint32_t observer) {
    if (!access->op) return false;
    if (access->era < races->block_era || access->time == TIME_UNDER_WAY) return true;
    if (access->era != races->era || access->thread == observer) return false;
    return !races->clocks || !tile_exec_has_seen(races, observer, access);
}

/* An access that is unordered with one of the current thread; NULL: there is none. */
static const Access *find_unordered(const ExecRaces *races, const Accesses *accesses, const List *list,
                                    uint32_t observer, bool blocks) {
    const Access *const all[] = {&accesses->latest[0], &accesses->latest[1], &accesses->other};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is_unordered(races, all[i], observer) && (blocks || !is_foreign(races, all[i]))) return all[i];
    for (uint32_t i = 0; list && i < list->count; i++)
        if (is_unordered(races, &list->items[i], observer) && (blocks || !is_foreign(races, &list->items[i])))
            return &list->items[i];
    return NULL;
}

static bool is_asynchronous(const TileOp *op) {
    return op->id == TILE_OP_COPY_BULK || op->id == TILE_OP_COPY_TENSOR || op->id == TILE_OP_STORE_TENSOR ||
           op->id == TILE_OP_WGMMA;
}

/* Is the op of machine form an atomic update? */
static bool updates(const TileOp *op) {
    return op->id == TILE_OP_ATOMIC || op->id == TILE_OP_ATOMIC_UPDATE || tile_op_get(op, TILE_ATTRIBUTE_ALONE);
}

/* Are both parts of one store of this block, of which the language lets any lane remain? */
static bool may_meet(const ExecRaces *races, const Access *a, const TileOp *b) {
    int64_t number = tile_op_integer(a->op, TILE_ATTRIBUTE_MEETS, 0);
    return number && number == tile_op_integer(b, TILE_ATTRIBUTE_MEETS, 0) && !is_foreign(races, a);
}

/* The language allows a read of what other programs update atomically: it gives the old value or the new one. `then` is
 * the kind of the earlier access. */
static const Access *find_conflict(const ExecRaces *races, const Place *place, Kind kind, const TileOp *op,
                                   uint32_t observer, Kind *then) {
    const Access *found = NULL, *write = &place->cell->write;
    const Lists *lists = place->lists;
    *then = WRITE;
    if (is_unordered(races, write, observer) && !(kind == WRITE && may_meet(races, write, op))) return write;
    *then = READ;
    if (kind != READ)
        found = find_unordered(races, &place->cell->reads, lists ? &lists->reads : NULL, observer, kind == WRITE);
    if (found) return found;
    *then = UPDATE;
    if (kind != UPDATE && place->updates)
        found = find_unordered(races, place->updates, lists ? &lists->updates : NULL, observer, kind == WRITE);
    return found;
}

/* Does the asynchronous op access what an ordinary one wrote, without a fence in between? The accesses are ordered. Fences
 * are of shared memory. */
static const Access *find_unfenced(const ExecRaces *races, const Place *place, uint32_t observer, bool shared) {
    const Access *write = &place->cell->write;
    if (write->op && !is_asynchronous(write->op) && !(shared && tile_exec_is_fenced(races, observer, write))) return write;
    for (uint32_t i = 0; place->lists && i < place->lists->updates.count; i++) {
        const Access *update = &place->lists->updates.items[i];
        if (updates(update->op) && !(shared && tile_exec_is_fenced(races, observer, update))) return update;
    }
    return NULL;
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

/* Drops accesses of the list that are ordered before this one: what is ordered after this one is ordered after them. */
static bool list_access(const ExecRaces *races, Accesses *accesses, List *list, Access access, uint32_t observer) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (is_foreign(races, &list->items[i]))
            accesses->other = list->items[i];
        else if (is_unordered(races, &list->items[i], observer))
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
    if (kept == list->capacity) {
        uint32_t wanted = kept ? 2 * kept : 4;
        Access *larger = realloc(list->items, wanted * sizeof *larger);
        if (!larger) return false;
        list->items = larger;
        list->capacity = wanted;
    }
    list->items[list->count++] = access;
    return true;
}

static bool keep_access(const ExecRaces *races, const Place *place, Kind kind, Access access, uint32_t observer) {
    Accesses *accesses = kind == UPDATE ? place->updates : &place->cell->reads;
    if (kind == WRITE)
        place->cell->write = access;
    else if (place->lists)
        return list_access(races, accesses, kind == UPDATE ? &place->lists->updates : &place->lists->reads, access,
                           observer);
    else
        add_access(races, accesses, access);
    return true;
}

/* ---- pages ---- */

static bool copy_list(List *to, const List *from) {
    *to = (List){NULL, from->count, from->count};
    if (!from->count) return true;
    to->items = malloc(from->count * sizeof *to->items);
    if (to->items) memcpy(to->items, from->items, from->count * sizeof *to->items);
    return to->items != NULL;
}

/* The page's entries, split for `count` smaller grains; NULL if out of memory. */
static Lists *divide_lists(const Page *page, size_t count) {
    Lists *lists = calloc(count, sizeof *lists);
    size_t parts = count / (PAGE_BYTES >> page->log_grain);
    bool good = lists != NULL;
    for (size_t i = 0; page->lists && i < count && good; i++)
        good = copy_list(&lists[i].reads, &page->lists[i / parts].reads) &&
               copy_list(&lists[i].updates, &page->lists[i / parts].updates);
    if (good) return lists;
    free_lists(lists, count);
    return NULL;
}

/* The page, with grains of at most 1 << log_grain bytes. */
static bool divide_page(Page *page, unsigned log_grain, bool lists) {
    if (page->cells && page->log_grain <= log_grain) return true;
    size_t count = PAGE_BYTES >> log_grain;
    Cell *cells = calloc(count, sizeof *cells);
    Accesses *updates = page->updates ? calloc(count, sizeof *updates) : NULL;
    Lists *divided = lists ? divide_lists(page, count) : NULL;
    if (!cells || (page->updates && !updates) || (lists && !divided)) {
        free(cells);
        free(updates);
        free_lists(divided, count);
        return false;
    }
    for (size_t i = 0; page->cells && i < count; i++) {
        cells[i] = page->cells[i >> (page->log_grain - log_grain)];
        if (updates) updates[i] = page->updates[i >> (page->log_grain - log_grain)];
    }
    clear_page(page);
    *page = (Page){.log_grain = log_grain, .cells = cells, .updates = updates, .lists = divided};
    return true;
}

static bool prepare_page(Page *page, unsigned log_grain, Kind kind, bool lists) {
    if (!divide_page(page, log_grain, lists)) return false;
    if (kind != UPDATE || page->updates) return true;
    page->updates = calloc(PAGE_BYTES >> page->log_grain, sizeof *page->updates);
    return page->updates != NULL;
}

/* The grain at an offset of the shadow, `bytes` long; the page must have been split. */
static inline Place place_at(const ExecShadow *shadow, uint64_t at, uint64_t *bytes) {
    Page *page = &shadow->pages[at / PAGE_BYTES];
    size_t number = at % PAGE_BYTES >> page->log_grain;
    *bytes = UINT64_C(1) << page->log_grain;
    return (Place){&page->cells[number], page->updates ? &page->updates[number] : NULL,
                   page->lists ? &page->lists[number] : NULL};
}

/* ---- accesses ---- */

static Kind kind_of(const TileOp *op, bool write) {
    if (updates(op) || op->id == TILE_OP_ATOMIC_TILE) return UPDATE;
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

/* Describes the thread of an access, for messages. */
static const char *who_of(const TileExecutor *e, const ExecRaces *races, const Access *access) {
    if (access->op->id == TILE_OP_WGMMA) {
        uint32_t first = tile_exec_warpgroup_entry(races, 0);
        return tile_arena_format(e->arena, "a product of warpgroup %u", access->thread - first);
    }
    if (races->clocks && access->thread >= races->thread_count) return "a copy";
    return tile_arena_format(e->arena, access->time == TIME_UNDER_WAY ? "a copy of thread %u" : "thread %u",
                             access->thread);
}

static const char *why_unordered(const ExecRaces *races, const Access *access) {
    if (access->era < races->block_era) return "nothing orders the blocks of a launch";
    bool under_way = access->time == TIME_UNDER_WAY;
    if (under_way && access->op->id == TILE_OP_WGMMA) return "no wgmma_wait has waited for the product";
    if (under_way && access->op->id == TILE_OP_STORE_TENSOR) return "no store_wait has waited for the store";
    if (under_way) return "nobody has waited for the copy's mbarrier";
    return races->clocks ? "no barrier stands between, nor does this thread know of it by an mbarrier"
                         : "no barrier stands between";
}

static bool report(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, unsigned bytes,
                   const Access *access, Kind kind, Kind then, const char *why) {
    static const char *const now[] = {"reads", "writes", "updates"}, *const past[] = {"read", "wrote", "updated"};
    const ExecRaces *races = e->objects[object].shadow->races;
    TileText other = {.arena = e->arena};
    tile_exec_print_op(e, access->op, &other);
    bool same = access->era >= races->block_era;
    return tile_exec_stop(e, in, same ? TILE_EXECUTION_FAULT : TILE_EXECUTION_RACE,
                          "a race: thread %u of block %lld %s bytes %lld .. %lld of %%%s, which %s of %s%lld %s at "
                          "`%s`; %s",
                          tile_exec_own_thread(e), (long long)e->block, now[kind], (long long)offset, (long long)offset + bytes,
                          name_of(e, object), who_of(e, races, access), same ? "the same block " : "block ",
                          (long long)block_of(races, access->era), past[then], tile_text_get(&other), why);
}

static uint32_t time_of(const TileExecutor *e, const ExecRaces *races, const TileOp *op, Kind kind) {
    if (!races->clocks) return 0;
    if (is_asynchronous(op) && kind != UPDATE) return TIME_UNDER_WAY;
    return op->id == TILE_OP_COPY_ASYNC && kind == WRITE ? TIME_COPY : tile_exec_own_time(races, e->thread);
}

/* Whose accesses those of the op are. */
static uint32_t entry_of(const TileExecutor *e, const ExecRaces *races, const TileOp *op) {
    return op->id == TILE_OP_WGMMA ? tile_exec_warpgroup_entry(races, e->thread) : e->thread;
}

static uint64_t begin_of(const TileExecutor *e, uint64_t object, int64_t offset) {
    return (uint64_t)((uintptr_t)e->objects[object].base - e->objects[object].shadow->begin) + (uint64_t)offset;
}

static bool share_grain(TileExecutor *e, const ExecInstruction *in, uint64_t object, const Place *place, Kind kind,
                        int64_t offset, unsigned bytes) {
    ExecRaces *races = e->objects[object].shadow->races;
    uint32_t observer = in->op->id == TILE_OP_WGMMA ? EXEC_COMMON : e->thread;
    Access access = {in->op, races->era, entry_of(e, races, in->op), time_of(e, races, in->op, kind)};
    Kind then;
    const Access *found = find_conflict(races, place, kind, in->op, observer, &then);
    if (found) return report(e, in, object, offset, bytes, found, kind, then, why_unordered(races, found));
    bool shared = e->objects[object].keeps_poison;
    if (is_asynchronous(in->op)) found = find_unfenced(races, place, observer, shared);
    if (found)
        return report(e, in, object, offset, bytes, found, kind, updates(found->op) ? UPDATE : WRITE,
                      shared ? "this op is asynchronous, and no fence_async stands behind the other"
                             : "this op is asynchronous, and fence_async is for shared memory");
    return keep_access(races, place, kind, access, observer) || tile_exec_out_of_memory(e);
}

static bool share(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, int64_t bytes,
                  Kind kind) {
    const ExecShadow *shadow = e->objects[object].shadow;
    uint64_t begin = begin_of(e, object, offset);
    unsigned log_grain = (unsigned)__builtin_ctzll(begin | (uint64_t)bytes | UINT64_C(1) << LOG_GRAIN_MOST);
    for (uint64_t at = begin, grain; at < begin + (uint64_t)bytes; at += grain) {
        Page *page = &shadow->pages[at / PAGE_BYTES];
        if (!prepare_page(page, log_grain, kind, shadow->races->clocks != NULL)) return tile_exec_out_of_memory(e);
        Place place = place_at(shadow, at, &grain);
        if (!share_grain(e, in, object, &place, kind, offset + (int64_t)(at - begin), (unsigned)grain)) return false;
    }
    return true;
}

bool tile_exec_share(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, int64_t bytes,
                     bool write) {
    return share(e, in, object, offset, bytes, kind_of(in->op, write));
}

bool tile_exec_share_mbarrier(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset) {
    return share(e, in, object, offset, EXEC_MBARRIER_BYTES, UPDATE);
}

/* ---- copies ---- */

uint32_t tile_exec_era(const TileExecutor *e, uint64_t object) {
    const ExecShadow *shadow = e->objects[object].shadow;
    return shadow ? shadow->races->era : 0;
}

/* Another access since the copy started; NULL: none. `then` is its kind. */
static const Access *find_intruder(const Place *place, const TileExecutor *e, const ExecInstruction *copy,
                                   uint32_t begun, Kind *then) {
    const Access *write = &place->cell->write, *latest = place->cell->reads.latest;
    *then = WRITE;
    if (write->op != copy->op || write->thread != e->thread || write->era != begun) return write->op ? write : NULL;
    *then = READ;
    for (unsigned i = 0; i < 2; i++)
        if (latest[i].op && latest[i].era > begun) return &latest[i];
    for (uint32_t i = 0; place->lists && i < place->lists->reads.count; i++)
        if (place->lists->reads.items[i].era > begun) return &place->lists->reads.items[i];
    return NULL;
}

static bool report_intruder(TileExecutor *e, const ExecInstruction *copy, uint64_t object, int64_t offset,
                            const Access *access, Kind then) {
    TileText other = {.arena = e->arena};
    tile_exec_print_op(e, access->op, &other);
    return tile_exec_fault(e, copy,
                           "a race: thread %u of block %lld copied to byte %lld of %%%s and those behind it, and while "
                           "that was under way %s %s there at `%s`",
                           tile_exec_own_thread(e), (long long)e->block, (long long)offset, name_of(e, object),
                           who_of(e, e->objects[object].shadow->races, access), then == WRITE ? "wrote" : "read",
                           tile_text_get(&other));
}

bool tile_exec_share_arrival(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, int64_t bytes,
                             uint32_t begun) {
    const ExecShadow *shadow = e->objects[object].shadow;
    if (!shadow) return true;
    uint64_t begin = begin_of(e, object, offset);
    const ExecRaces *races = shadow->races;
    Access access = {in->op, races->era, e->thread, tile_exec_own_time(races, e->thread)};
    for (uint64_t at = begin, grain; at < begin + (uint64_t)bytes; at += grain) {
        Kind then;
        Place place = place_at(shadow, at, &grain); /* the start of the copy has split the page */
        const Access *other = find_intruder(&place, e, in, begun, &then);
        if (other) return report_intruder(e, in, object, offset + (int64_t)(at - begin), other, then);
        place.cell->write = access;
    }
    return true;
}

static bool is_under_way(const Access *access, uint32_t entry, const TileOp *op) {
    return access->time == TIME_UNDER_WAY && access->op == op && access->thread == entry;
}

/* The oldest one comes first. */
static void complete_read(List *reads, uint32_t entry, Access access) {
    for (uint32_t i = 0; i < reads->count; i++)
        if (is_under_way(&reads->items[i], entry, access.op)) {
            reads->items[i] = access;
            return;
        }
}

void tile_exec_share_completed(const TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset,
                               int64_t bytes, uint32_t entry, uint32_t time) {
    const ExecShadow *shadow = e->objects[object].shadow;
    if (!shadow) return;
    const ExecRaces *races = shadow->races;
    uint32_t begun = entry_of(e, races, in->op);
    Access access = {in->op, races->era, entry, time};
    uint64_t begin = begin_of(e, object, offset);
    for (uint64_t at = begin, grain; at < begin + (uint64_t)bytes; at += grain) {
        Place place = place_at(shadow, at, &grain);
        if (is_under_way(&place.cell->write, begun, in->op)) place.cell->write = access;
        complete_read(&place.lists->reads, begun, access);
    }
}
