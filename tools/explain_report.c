/* The output of tilec explain, as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/guard.h"
#include "lang/layout/layout.h"
#include "tools/explain.h"
#include "tools/session.h"

/* ---- facts about tensors ---- */

/* 0: none that matters. Alignment of arguments beyond what code asks for is accidental. */
static unsigned alignment(const TileExplainedTensor *tensor, uint64_t bits) {
    unsigned most = tensor->used & tile_guard_align(128) ? 128 : 64;
    for (unsigned bytes = most; bytes > 1; bytes /= 2)
        if (bits & tile_guard_align(bytes)) return bytes;
    return 0;
}

static const char *stride_text(uint64_t bits, unsigned axis) {
    if (bits & tile_guard_dimension(axis, TILE_GUARD_STRIDE_UNIT)) return "contiguous";
    return bits & tile_guard_dimension(axis, TILE_GUARD_STRIDE_ZERO) ? "repeated" : NULL;
}

/* The greatest divisor of an extent that the bits state, or 0. */
static unsigned multiple_of(const TileExplainedTensor *tensor, uint64_t bits, unsigned axis) {
    unsigned multiple = TILE_GUARD_MOST_MULTIPLE;
    while (multiple > 1 && !(bits & tile_guard_multiple(tensor->rank, axis, multiple))) multiple /= 2;
    return multiple > 1 ? multiple : 0;
}

/* The least bound of the last extent; 0: none. */
static unsigned most_of(uint64_t bits) {
    for (unsigned most = TILE_LEAST_SHORT_ROW; most <= TILE_GREATEST_SHORT_ROW; most *= 2)
        if (bits & tile_guard_row(most)) return most;
    return 0;
}

/* The first dimension from which on there are no gaps; the rank: there is none. */
static unsigned dense_from(const TileExplainedTensor *tensor, uint64_t bits) {
    unsigned axis = 0;
    while (axis < tensor->rank && !(bits & tile_guard_dimension(axis, TILE_GUARD_DENSE))) axis++;
    return axis;
}

static void print_facts(FILE *out, const TileExplainedTensor *tensor, uint64_t bits) {
    bool any = false;
    unsigned bytes = alignment(tensor, bits);
    if (bytes) any = fprintf(out, " aligned to %u bytes", bytes) > 0;
    if (bits & tensor->used & TILE_GUARD_NARROW) any = fprintf(out, "%s offsets below 2**31", any ? "," : "") > 0;
    if (bits & TILE_GUARD_DISJOINT) any = fprintf(out, "%s memory of its own", any ? "," : "") > 0;
    if (bits & tensor->used & TILE_GUARD_MAP) any = fprintf(out, "%s described by a tensor map", any ? "," : "") > 0;
    unsigned most = most_of(bits & tensor->used);
    if (most) any = fprintf(out, "%s rows of 1 to %u elements", any ? "," : "", most) > 0;
    for (unsigned axis = 0; axis < tensor->rank; axis++) {
        const char *text = stride_text(bits, axis);
        if (text) any = fprintf(out, "%s dimension %u %s", any ? "," : "", axis, text) > 0;
    }
    unsigned dense = dense_from(tensor, bits & tensor->used);
    if (dense < tensor->rank) any = fprintf(out, dense ? "%s no gaps from dimension %u on" : "%s no gaps", any ? "," : "", dense) > 0;
    for (unsigned axis = 0; axis < tensor->rank; axis++) {
        unsigned multiple = multiple_of(tensor, bits, axis);
        if (multiple) any = fprintf(out, "%s dimension %u a multiple of %u", any ? "," : "", axis, multiple) > 0;
    }
    if (!any) fprintf(out, " nothing");
}

static void print_tensor(FILE *out, const TileExplainedTensor *tensor) {
    fprintf(out, "  %s: the arguments offer:", tensor->name);
    print_facts(out, tensor, tensor->offered);
    fprintf(out, "; the code relies on:");
    print_facts(out, tensor, tensor->used);
    fprintf(out, "\n");
    unsigned last = tensor->rank - 1;
    if (tensor->rank && !(tensor->offered & tile_guard_dimension(last, TILE_GUARD_STRIDE_UNIT)))
        fprintf(out, "    elements along dimension %u do not lie side by side, so they cannot be moved as vectors\n", last);
}

/* ---- layouts ---- */

/* Consecutive elements of a thread along the last axis. */
static unsigned vector_of(const char *text) {
    enum { MOST = 32 };
    TileLayout layout;
    return tile_layout_read(text, &layout) ? tile_layout_vector(&layout, layout.rank - 1u, MOST) : 1;
}

static uint32_t registers_of(const char *text) {
    TileLayout layout;
    return tile_layout_read(text, &layout) ? tile_layout_registers(&layout) : 0;
}

static void print_layout(FILE *out, const TileExplainedLayout *layout, size_t number) {
    fprintf(out, "  layout %zu: %s\n", number + 1, layout->layout);
    fprintf(out, "    %u elements of a tile in each thread, %u side by side along the last axis\n",
           registers_of(layout->layout), vector_of(layout->layout));
    fprintf(out, "    tiles:");
    for (size_t i = 0; i < layout->tiles.count; i++) {
        const TileRemark *tile = &layout->tiles.items[i];
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = strcmp(layout->tiles.items[k].name, tile->name) == 0 &&
                    layout->tiles.items[k].place.line == tile->place.line;
        if (!again)
            fprintf(out, "%s %s %s (line %u)", i ? "," : "", tile_scalar_name(tile->scalar), tile->name, tile->place.line);
    }
    fprintf(out, "\n");
}

static void print_move(FILE *out, const TileRemark *move) {
    fprintf(out, "  line %u: %s goes from %s\n    to %s, through %s", move->place.line, tile_scalar_name(move->scalar),
           move->layout, move->to, move->way);
    if (move->shared_bytes)
        fprintf(out, " (%" PRIu64 " bytes; predicted bank conflicts: %u-way to store, %u-way to load)", move->shared_bytes,
               move->store_conflicts, move->load_conflicts);
    fprintf(out, "\n");
}

/* ---- the L2 cache ---- */

static void print_access(FILE *out, const TileRemark *access) {
    static const struct {
        TileName cache;
        const char *text;
    } words[] = {{TILE_CACHE_STREAM, "is the first to leave the L2 cache"},
                 {TILE_CACHE_L2, "is the last to leave the L2 cache"},
                 {TILE_CACHE_DEFAULT, "leaves the L2 cache in the usual order"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].cache == access->cache)
            fprintf(out, "  line %u: the %s of %s %s (%s)\n", access->place.line, access->way, access->name, words[i].text,
                   tile_cache_policy(access));
}

/* ---- grids ---- */

static void print_gpu_phase(FILE *out, const TileExplainedPhase *phase, TileAssemblyFigures figures, const char *missing) {
    fprintf(out, "  %u threads a block, %" PRIu64 " bytes of shared memory", phase->threads, phase->memory_bytes);
    if (figures.known)
        fprintf(out, "; ptxas: %u registers a thread, %u bytes spilled", figures.registers, figures.spilled_bytes);
    fprintf(out, "\n");
    if (!figures.known) fprintf(out, "  registers and spills are not known: %s\n", missing ? missing : "ptxas does not tell");
    fprintf(out, "  %zu barriers", phase->barriers.count);
    for (size_t i = 0; i < phase->barriers.count; i++)
        fprintf(out, "%s %u", i ? "," : phase->barriers.count > 1 ? ": lines" : ": line", phase->barriers.items[i].line);
    fprintf(out, "\n");
    for (size_t i = 0; i < phase->layouts.count; i++) print_layout(out, &phase->layouts.items[i], i);
    for (size_t i = 0; i < phase->moves.count; i++) print_move(out, &phase->moves.items[i]);
    for (size_t i = 0; i < phase->accesses.count; i++) print_access(out, &phase->accesses.items[i]);
}

static void print_loop(FILE *out, const TileExplanation *explanation, const TileExplainedLoop *loop) {
    fprintf(out, "  loop of %s:%u: ", explanation->files[loop->place.file], loop->place.line);
    if (loop->widest) {
        unsigned lanes = (unsigned)tile_type_lanes(loop->widest);
        unsigned bytes = lanes * tile_scalar_bytes(loop->widest->scalar);
        fprintf(out, "vectors of %s%u %s", loop->widest->scalable ? "a multiple of " : "", lanes,
               tile_scalar_name(loop->widest->scalar));
        if (explanation->vector_bytes && !loop->widest->scalable)
            fprintf(out, " (%u registers of %u bytes)", (bytes + explanation->vector_bytes - 1) / explanation->vector_bytes,
                   explanation->vector_bytes);
    } else {
        fprintf(out, "no vectors");
    }
    fprintf(out, "; loads and stores: %u of vectors, %u of single elements, %u through a mask", loop->vectors, loop->scalars,
           loop->masked);
    if (loop->unroll > 1) fprintf(out, "; unrolled %" PRId64 " times", loop->unroll);
    fprintf(out, "\n");
}

static void print_cpu_phase(FILE *out, const TileExplanation *explanation, const TileExplainedPhase *phase) {
    fprintf(out, "  %" PRIu64 " bytes of scratch memory a thread\n", phase->memory_bytes);
    for (size_t i = 0; i < phase->loops.count; i++) print_loop(out, explanation, &phase->loops.items[i]);
}

static void print_orders(FILE *out, const TileExplanation *explanation, const TileExplainedPhase *phase) {
    for (size_t i = 0; i < phase->orders.count; i++) {
        const TileRemark *order = &phase->orders.items[i];
        fprintf(out, "  order of %s:%u: %s: %s\n", explanation->files[order->place.file], order->place.line, order->name,
               order->way);
    }
}

static void print_member(const char *before, const char *name, const char *text) {
    printf("%s\"%s\": ", before, name);
    tile_print_json_string(stdout, text);
}

/* Decisions that passes made and declined; ops that they created have no location. */
static void print_decisions(FILE *out, const TileExplanation *explanation, const TileExplainedPhase *phase) {
    for (size_t i = 0; i < phase->decisions.count; i++) {
        const TileRemark *remark = &phase->decisions.items[i];
        TileText text = {.arena = explanation->arena};
        tile_remark_print(&text, remark);
        if (remark->place.line)
            fprintf(out, "  %s:%u: %s\n", explanation->files[remark->place.file], remark->place.line, tile_text_get(&text));
        else
            fprintf(out, "  %s\n", tile_text_get(&text));
    }
}

static void print_json_decision(const TileExplanation *explanation, const TileRemark *remark) {
    const TileDecisionInfo *info = tile_decision_info(remark->decision);
    print_member("{", "file", explanation->files[remark->place.file]);
    printf(", \"line\": %u", remark->place.line);
    print_member(", ", "pass", remark->pass);
    print_member(", ", "decision", info->code);
    printf(", \"done\": %s", info->done ? "true" : "false");
    print_member(", ", "subject", remark->name);
    print_member(", ", "case", remark->way);
    printf("}");
}

/* Names with the same origin, on one line. */
static void print_tunes(FILE *out, const TileExplanation *explanation) {
    for (size_t i = 0; i < explanation->tunes.count; i++) {
        const TileExplainedTune *tune = &explanation->tunes.items[i];
        bool first = i == 0 || tune[-1].origin != tune->origin;
        bool last = i + 1 == explanation->tunes.count || tune[1].origin != tune->origin;
        fprintf(out, "%s%s = %" PRId64, first ? "  constants: " : ", ", tune->name, tune->value);
        if (last) fprintf(out, " (%s%s%s)\n", tile_tune_origin(tune), tune->file ? ": " : "", tune->file ? tune->file : "");
    }
}

/* ---- candidates of the model ---- */

enum { SHOWN_CANDIDATES = 8, MOST_CANDIDATES = 256 };

static int by_time(const void *x, const void *y) {
    const TilePrediction *a = *(const TilePrediction *const *)x, *b = *(const TilePrediction *const *)y;
    if (a->fits != b->fits) return a->fits ? -1 : 1;
    return a->estimate.time < b->estimate.time ? -1 : a->estimate.time > b->estimate.time;
}

static void print_candidate(FILE *out, const TileExplanation *explanation, const TilePrediction *candidate) {
    const TileEstimate *estimate = &candidate->estimate;
    fprintf(out, "   ");
    for (size_t k = 0; k < explanation->tunes.count; k++)
        fprintf(out, " %s=%" PRId64, explanation->tunes.items[k].name, candidate->values[k]);
    if (candidate->schedule.joined_rows)
        fprintf(out, " joined to %" PRIu32 "x%" PRIu32, candidate->schedule.joined_rows, candidate->schedule.joined_columns);
    if (candidate->schedule.joined_lanes)
        fprintf(out, " joined to %" PRIu32 " elements", candidate->schedule.joined_lanes);
    if (candidate->schedule.packs) fprintf(out, " packed");
    if (candidate->schedule.stream) fprintf(out, " streaming");
    if (candidate->schedule.once) fprintf(out, " reading once");
    if (candidate->schedule.busy) fprintf(out, " busy");
    if (candidate->estimate.kept) fprintf(out, " keeping rows");
    if (candidate->schedule.least_programs)
        fprintf(out, " split for %" PRIu32 " programs", candidate->schedule.least_programs);
    for (unsigned i = 0; i < TILE_MOST_SPLITS && candidate->schedule.split_programs[i]; i++)
        fprintf(out, i ? ", %" PRIu32 : ", parts of %" PRIu32, candidate->schedule.split_programs[i]);
    if (candidate->schedule.split_programs[0]) fprintf(out, " or more");
    for (unsigned i = 0; i < TILE_MOST_SPLITS; i++)
        if (candidate->schedule.blocks_together[i]) fprintf(out, ", %" PRIu32 " blocks of grid %u at a time", candidate->schedule.blocks_together[i], i);
    if (candidate->schedule.turns)
        fprintf(out, " in turn, %" PRIu32 " warps a program", candidate->schedule.warps);
    else if (candidate->schedule.warps)
        fprintf(out, candidate->schedule.warps > 1 ? " in %" PRIu32 " warps" : " in %" PRIu32 " warp", candidate->schedule.warps);
    const TileSchedule *schedule = &candidate->schedule;
    if (schedule->cluster) fprintf(out, " in clusters of %" PRIu32 " blocks", schedule->cluster);
    if (!explanation->tunes.count && !schedule->joined_rows && !schedule->packs && !schedule->stream && !schedule->once && !schedule->busy && !schedule->least_programs && !schedule->turns && !schedule->warps && !schedule->cluster)
        fprintf(out, " as written");
    if (candidate->fits)
        fprintf(out, ": %.1f µs (memory %.1f, computing %.1f, waiting %.1f; %.0f programs, %.0f at a time)",
               estimate->time, estimate->memory, estimate->compute, estimate->waiting, estimate->programs,
               estimate->together);
    else
        fprintf(out, ": does not fit");
    const TilePrediction *all = explanation->candidates.items;
    fprintf(out, "%s%s\n", candidate == all ? ", the text's own" : "",
           candidate == all + explanation->chosen ? ", chosen" : "");
}

/* The fastest, and the text's own. */
static void print_candidates(FILE *out, const TileExplanation *explanation) {
    size_t count = explanation->candidates.count;
    const TilePrediction *sorted[MOST_CANDIDATES];
    if (count > MOST_CANDIDATES) count = MOST_CANDIDATES;
    bool tuned = explanation->tunes.count > 0;
    if (!count || (count == 1 && !tuned)) return;
    for (size_t i = 0; i < count; i++) sorted[i] = &explanation->candidates.items[i];
    qsort(sorted, count, sizeof(sorted[0]), by_time);
    fprintf(out, "  %zu %s, by predicted time:\n", count, tuned ? "points of the tune clauses" : "ways to compute it");
    for (size_t i = 0; i < count; i++)
        if (i < SHOWN_CANDIDATES || sorted[i] == explanation->candidates.items ||
            sorted[i] == explanation->candidates.items + explanation->chosen)
            print_candidate(out, explanation, sorted[i]);
}

void tile_explain_print(FILE *out, const TileExplanation *explanation, const TileAssemblyFigures *figures, const char *missing) {
    fprintf(out, "%s for %s\n", explanation->kernel, explanation->target);
    print_tunes(out, explanation);
    print_candidates(out, explanation);
    for (size_t i = 0; i < explanation->tensors.count; i++) print_tensor(out, &explanation->tensors.items[i]);
    for (size_t i = 0; i < explanation->scalars.count; i++)
        fprintf(out, "  %s: decides strides, bounds or steps; a second launch with the same value has code compiled for it\n",
                explanation->scalars.items[i]);
    for (size_t i = 0; i < explanation->phases.count; i++) {
        const TileExplainedPhase *phase = &explanation->phases.items[i];
        fprintf(out, "grid %zu\n", i);
        if (phase->threads)
            print_gpu_phase(out, phase, figures[i], missing);
        else
            print_cpu_phase(out, explanation, phase);
        print_decisions(out, explanation, phase);
        print_orders(out, explanation, phase);
    }
}

/* ---- JSON ---- */

static void print_json_facts(const char *name, const TileExplainedTensor *tensor, uint64_t bits) {
    unsigned bytes = alignment(tensor, bits);
    printf(", \"%s\": {\"alignment\": %u, \"strides\": [", name, bytes ? bytes : 1);
    for (unsigned axis = 0; axis < tensor->rank; axis++) {
        const char *text = stride_text(bits, axis);
        printf("%s", axis ? ", " : "");
        tile_print_json_string(stdout, text ? text : "any");
    }
    printf("], \"multiples\": [");
    for (unsigned axis = 0; axis < tensor->rank; axis++) {
        unsigned multiple = multiple_of(tensor, bits, axis);
        printf("%s%u", axis ? ", " : "", multiple ? multiple : 1);
    }
    printf("], \"dense\": %u, \"most\": %u, \"narrow\": %s, \"own_memory\": %s, \"map\": %s}", dense_from(tensor, bits), most_of(bits), bits & TILE_GUARD_NARROW ? "true" : "false",
           bits & TILE_GUARD_DISJOINT ? "true" : "false", bits & TILE_GUARD_MAP ? "true" : "false");
}

static void print_json_layout(const TileExplainedLayout *layout) {
    print_member("{", "layout", layout->layout);
    printf(", \"elements\": %u, \"vector\": %u, \"tiles\": [", registers_of(layout->layout), vector_of(layout->layout));
    for (size_t i = 0; i < layout->tiles.count; i++) {
        const TileRemark *tile = &layout->tiles.items[i];
        print_member(i ? ", {" : "{", "name", tile->name);
        print_member(", ", "type", tile_scalar_name(tile->scalar));
        printf(", \"line\": %u}", tile->place.line);
    }
    printf("]}");
}

static void print_json_move(const TileRemark *move) {
    printf("{\"line\": %u", move->place.line);
    print_member(", ", "type", tile_scalar_name(move->scalar));
    print_member(", ", "from", move->layout);
    print_member(", ", "to", move->to);
    print_member(", ", "way", move->way);
    printf(", \"shared_bytes\": %" PRIu64 ", \"store_conflicts\": %u, \"load_conflicts\": %u}", move->shared_bytes,
           move->store_conflicts, move->load_conflicts);
}

static void print_json_access(const TileRemark *access) {
    printf("{\"line\": %u", access->place.line);
    print_member(", ", "access", access->way);
    print_member(", ", "tensor", access->name);
    print_member(", ", "l2", tile_cache_policy(access));
    printf("}");
}

static void print_json_loop(const TileExplanation *explanation, const TileExplainedLoop *loop) {
    print_member("{", "file", explanation->files[loop->place.file]);
    print_member(", ", "vectors_of", loop->widest ? tile_scalar_name(loop->widest->scalar) : "");
    printf(", \"line\": %u, \"lanes\": %u, \"scalable\": %s, \"unroll\": %" PRId64
           ", \"vector_accesses\": %u, \"single_accesses\": %u, \"masked_accesses\": %u}",
           loop->place.line, loop->widest ? (unsigned)tile_type_lanes(loop->widest) : 1,
           loop->widest && loop->widest->scalable ? "true" : "false", loop->unroll, loop->vectors, loop->scalars,
           loop->masked);
}

static void print_json_phase(const TileExplanation *explanation, const TileExplainedPhase *phase,
                             TileAssemblyFigures figures) {
    print_member("    {", "name", phase->name);
    printf(", \"threads\": %u, \"%s\": %" PRIu64 ", \"barriers\": [", phase->threads,
           phase->threads ? "shared_bytes" : "scratch_bytes", phase->memory_bytes);
    for (size_t i = 0; i < phase->barriers.count; i++) printf("%s%u", i ? ", " : "", phase->barriers.items[i].line);
    printf("], \"assembly\": ");
    if (figures.known)
        printf("{\"registers\": %u, \"stack_bytes\": %u, \"spilled_bytes\": %u}", figures.registers,
               figures.stack_bytes, figures.spilled_bytes);
    else
        printf("null");
    printf(",\n     \"layouts\": [");
    for (size_t i = 0; i < phase->layouts.count; i++) {
        if (i) printf(",\n       ");
        print_json_layout(&phase->layouts.items[i]);
    }
    printf("],\n     \"moves\": [");
    for (size_t i = 0; i < phase->moves.count; i++) {
        if (i) printf(",\n       ");
        print_json_move(&phase->moves.items[i]);
    }
    printf("],\n     \"accesses\": [");
    for (size_t i = 0; i < phase->accesses.count; i++) {
        if (i) printf(",\n       ");
        print_json_access(&phase->accesses.items[i]);
    }
    printf("],\n     \"orders\": [");
    for (size_t i = 0; i < phase->orders.count; i++) {
        const TileRemark *order = &phase->orders.items[i];
        print_member(i ? ",\n       {" : "{", "file", explanation->files[order->place.file]);
        printf(", \"line\": %u", order->place.line);
        print_member(", ", "sum", order->name);
        print_member(", ", "order", order->way);
        printf("}");
    }
    printf("],\n     \"decisions\": [");
    for (size_t i = 0; i < phase->decisions.count; i++) {
        if (i) printf(",\n       ");
        print_json_decision(explanation, &phase->decisions.items[i]);
    }
    printf("],\n     \"loops\": [");
    for (size_t i = 0; i < phase->loops.count; i++) {
        if (i) printf(",\n       ");
        print_json_loop(explanation, &phase->loops.items[i]);
    }
    printf("]}");
}

static void print_json_candidates(const TileExplanation *explanation) {
    if (!explanation->candidates.count) return;
    printf(",\n  \"candidates\": [");
    for (size_t i = 0; i < explanation->candidates.count; i++) {
        const TilePrediction *candidate = &explanation->candidates.items[i];
        printf("%s{\"values\": [", i ? ",\n    " : "\n    ");
        for (size_t k = 0; k < explanation->tunes.count; k++) printf("%s%" PRId64, k ? ", " : "", candidate->values[k]);
        printf("], \"least_programs\": %" PRIu32 ", \"split_programs\": %" PRIu32 ", \"packs\": %s, \"stream\": %s, \"once\": %" PRIu32 ", \"busy\": %s, \"joined_lanes\": %" PRIu32 ", \"turns\": %" PRIu32
               ", \"cluster\": %" PRIu32 ", \"warps\": %" PRIu32,
               candidate->schedule.least_programs, candidate->schedule.split_programs[0], candidate->schedule.packs ? "true" : "false", candidate->schedule.stream ? "true" : "false", candidate->schedule.once, candidate->schedule.busy ? "true" : "false", candidate->schedule.joined_lanes,
               candidate->schedule.turns, candidate->schedule.cluster, candidate->schedule.warps);
        if (candidate->fits)
            printf(", \"time\": %.2f, \"memory\": %.2f, \"compute\": %.2f, \"waiting\": %.2f, \"programs\": %.0f, "
                   "\"together\": %.0f",
                   candidate->estimate.time, candidate->estimate.memory, candidate->estimate.compute,
                   candidate->estimate.waiting, candidate->estimate.programs, candidate->estimate.together);
        printf(", \"chosen\": %s}", i == explanation->chosen ? "true" : "false");
    }
    printf("]");
}

void tile_explain_print_json(const TileExplanation *explanation, const TileAssemblyFigures *figures,
                             const char *missing) {
    print_member("{", "kernel", explanation->kernel);
    print_member(", ", "target", explanation->target);
    if (missing) print_member(", ", "assembly_unknown", missing);
    printf(",\n  \"constants\": [");
    for (size_t i = 0; i < explanation->tunes.count; i++) {
        const TileExplainedTune *tune = &explanation->tunes.items[i];
        print_member(i ? ", {" : "{", "name", tune->name);
        printf(", \"value\": %" PRId64, tune->value);
        print_member(", ", "origin", tile_tune_origin(tune));
        if (tune->file) print_member(", ", "file", tune->file);
        printf("}");
    }
    printf("]");
    print_json_candidates(explanation);
    printf(",\n  \"tensors\": [\n");
    for (size_t i = 0; i < explanation->tensors.count; i++) {
        const TileExplainedTensor *tensor = &explanation->tensors.items[i];
        print_member(i ? ",\n    {" : "    {", "name", tensor->name);
        print_json_facts("offered", tensor, tensor->offered);
        print_json_facts("used", tensor, tensor->used);
        printf("}");
    }
    printf("\n  ],\n  \"scalars\": [");
    for (size_t i = 0; i < explanation->scalars.count; i++)
        printf("%s\"%s\"", i ? ", " : "", explanation->scalars.items[i]);
    printf("],\n  \"grids\": [\n");
    for (size_t i = 0; i < explanation->phases.count; i++) {
        if (i) printf(",\n");
        print_json_phase(explanation, &explanation->phases.items[i], figures[i]);
    }
    printf("\n  ]}\n");
}
