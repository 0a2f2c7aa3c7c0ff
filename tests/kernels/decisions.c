/* After merging of equal values, values have other names and sums are in other places: so for tiles it counts the
 * layouts, whichever values have them. */
#include "decisions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ptxas.h"

enum { SHAKING = 3 };

enum { LOOPS, THREADS, LAYOUTS, MOVES, ACCESSES, ORDERS, INSTRUCTIONS, SPILLS };

const char *decision_kind(unsigned kind) {
    static const char *const words[DECISION_KINDS] = {"loops",    "threads", "layouts",      "moves",
                                                      "accesses", "orders",  "instructions", "spills"};
    return words[kind];
}

static const TilePassInfo *const *shaking_passes(void) {
    static const TilePassInfo *passes[SHAKING];
    passes[0] = tile_lowering_pass(TILE_PASS_canonicalise);
    passes[1] = tile_lowering_pass(TILE_PASS_cse);
    passes[2] = tile_lowering_pass(TILE_PASS_dce);
    return passes;
}

void decisions_shake(TileCompiler *compiler, bool shake) {
    tile_compiler_between(compiler, shaking_passes(), shake ? SHAKING : 0);
}

void decisions_tidy(TileCompiler *compiler, bool tidy) {
    tile_compiler_behind(compiler, shaking_passes(), tidy ? SHAKING : 0);
}

static void add(Decisions *decisions, TileArena *arena, unsigned kind, const char *line) {
    tile_list_push(arena, &decisions->lines[kind], line);
}

/* Each once: the number of uses of a layout is not a decision. */
static void add_once(Decisions *decisions, TileArena *arena, unsigned kind, const char *line) {
    for (size_t i = 0; i < decisions->lines[kind].count; i++)
        if (strcmp(decisions->lines[kind].items[i], line) == 0) return;
    add(decisions, arena, kind, line);
}

static void add_loops(Decisions *decisions, TileArena *arena, const TileExplainedPhase *phase) {
    for (size_t i = 0; i < phase->loops.count; i++) {
        const TileExplainedLoop *loop = &phase->loops.items[i];
        add(decisions, arena, LOOPS,
            tile_arena_format(arena,
                              "%s: loop of line %u: %u lanes, %u vectors, %u scalars, %u masked, unrolled %" PRId64,
                              phase->name, loop->place.line, loop->widest ? (unsigned)tile_type_lanes(loop->widest) : 0,
                              loop->vectors, loop->scalars, loop->masked, loop->unroll));
    }
}

static void add_remarks(Decisions *decisions, TileArena *arena, const TileExplainedPhase *phase) {
    for (size_t i = 0; i < phase->layouts.count; i++)
        add_once(decisions, arena, LAYOUTS,
                 tile_arena_format(arena, "%s: %s", phase->name, phase->layouts.items[i].layout));
    for (size_t i = 0; i < phase->moves.count; i++) {
        const TileRemark *move = &phase->moves.items[i];
        add(decisions, arena, MOVES,
            tile_arena_format(arena, "%s: line %u: from %s to %s, %s, %" PRIu64 " bytes, conflicts %u and %u",
                              phase->name, move->place.line, move->layout, move->to, move->way, move->shared_bytes,
                              move->store_conflicts, move->load_conflicts));
    }
    for (size_t i = 0; i < phase->accesses.count; i++) {
        const TileRemark *access = &phase->accesses.items[i];
        add(decisions, arena, ACCESSES,
            tile_arena_format(arena, "%s: line %u: %s of %s: %s", phase->name, access->place.line, access->way,
                              access->name, tile_cache_policy(access)));
    }
    for (size_t i = 0; i < phase->orders.count; i++) {
        const TileRemark *order = &phase->orders.items[i];
        add_once(
            decisions, arena, ORDERS,
            tile_arena_format(arena, "%s: line %u: %s: %s", phase->name, order->place.line, order->name, order->way));
    }
}

/* Of products, pipelined copies and barriers: the pipeline and the instruction of each dot. */
static void add_instructions(Decisions *decisions, TileArena *arena, const char *ptx) {
    static const char *const heads[] = {"mma.", "wgmma.", "cp.async", "ldmatrix.", "stmatrix.", "bar."};
    for (const char *line = ptx; line; line = strchr(line, '\n')) {
        line += strspn(line, " \t\n");
        if (*line == '@') line += strcspn(line, " \n"), line += strspn(line, " \t");
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
            if (strncmp(line, heads[i], strlen(heads[i])) == 0)
                add(decisions, arena, INSTRUCTIONS, tile_arena_string(arena, line, strcspn(line, " \t;\n")));
    }
}

/* The sum of all entries; without ptxas, spills are not known. */
static void add_spills(Decisions *decisions, TileArena *arena) {
    TileText error = {.arena = arena};
    TileAssembly assembly;
    unsigned long sum = 0;
    if (tile_ptxas_run(arena, decisions->ptx, false, &assembly, &error) != TILE_OK) return;
    for (const char *at = assembly.notes; (at = strstr(at, " bytes spill stores")); at++) {
        const char *digits = at;
        while (digits > assembly.notes && digits[-1] >= '0' && digits[-1] <= '9') digits--;
        sum += strtoul(digits, NULL, 10);
    }
    add(decisions, arena, SPILLS, tile_arena_format(arena, "%lu bytes spilled", sum));
}

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

Decisions decisions_of(TileExplanation *explanation) {
    Decisions decisions = {0};
    TileArena *arena = explanation->arena;
    for (size_t i = 0; i < explanation->phases.count; i++) {
        const TileExplainedPhase *phase = &explanation->phases.items[i];
        add(&decisions, arena, THREADS,
            tile_arena_format(arena, "%s: %u threads, %" PRIu64 " bytes, %zu barriers", phase->name, phase->threads,
                              phase->memory_bytes, phase->barriers.count));
        if (!explanation->ptx) add_loops(&decisions, arena, phase);
        add_remarks(&decisions, arena, phase);
    }
    if (explanation->ptx) add_instructions(&decisions, arena, explanation->ptx);
    decisions.ptx = explanation->ptx;
    for (unsigned kind = 0; kind < DECISION_KINDS; kind++)
        if (decisions.lines[kind].count)
            qsort(decisions.lines[kind].items, decisions.lines[kind].count, sizeof(char *), compare_lines);
    return decisions;
}

bool decisions_know_spills(void) {
    TileArena *arena = tile_arena_create(NULL);
    bool known = arena && tile_ptxas_find(arena);
    tile_arena_destroy(arena);
    return known;
}

void decisions_add_spills(Decisions *plain, Decisions *shaken, TileArena *arena) {
    if (!plain->ptx || !shaken->ptx || strcmp(plain->ptx, shaken->ptx) == 0) return;
    add_spills(plain, arena);
    add_spills(shaken, arena);
}

/* The first line in one sorted list that the other does not have, or has less often. */
static const char *find_missing(const Decisions *own, const Decisions *other, unsigned kind) {
    size_t k = 0, count = other->lines[kind].count;
    for (size_t i = 0; i < own->lines[kind].count; i++) {
        const char *line = own->lines[kind].items[i];
        while (k < count && strcmp(other->lines[kind].items[k], line) < 0) k++;
        if (k == count || strcmp(other->lines[kind].items[k], line) != 0) return line;
        k++;
    }
    return "nothing";
}

unsigned decisions_compare(const Decisions *plain, const Decisions *shaken) {
    unsigned kinds = 0;
    for (unsigned kind = 0; kind < DECISION_KINDS; kind++) {
        size_t i = 0, plains = plain->lines[kind].count, others = shaken->lines[kind].count;
        const char *const *a = plain->lines[kind].items, *const *b = shaken->lines[kind].items;
        while (i < plains && i < others && strcmp(a[i], b[i]) == 0) i++;
        if (i < plains || i < others) kinds |= 1u << kind;
    }
    return kinds;
}

void decisions_describe(const Decisions *plain, const Decisions *shaken, unsigned kind, char *text, size_t size) {
    snprintf(
        text, size,
        "with canonicalise, cse and dce between all passes other %s, %zu instead of %zu: %.700s, instead of %.700s",
        decision_kind(kind), shaken->lines[kind].count, plain->lines[kind].count, find_missing(shaken, plain, kind),
        find_missing(plain, shaken, kind));
}
