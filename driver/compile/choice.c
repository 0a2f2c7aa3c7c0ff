#include "driver/compile/choice.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/backend.h"
#include "driver/compile/instance.h"
#include "driver/compile/outcome.h"
#include "driver/compile/point.h"
#include "driver/compile/question.h"
#include "lang/ir/text.h"
#include "launch/guard.h"
#include "launch/variants.h"

/* A kernel's answers, by a hash of the question: the upper bits are the hash's, the lower ones the answer. Questions that
 * share a place replace one another, and are asked again. */
enum {
    PLACES = 256,
    NUMBER_BITS = 8,
    MOST_ROWS = (1 << NUMBER_BITS) - 1,
    MOST_INSTANCES = 32
};

/* A candidate better than the text's own by less is not worth other code: the model is not more exact. */
static const double WORTH = 0.97;
/* Of a small launch, of whose time most is the launch: of the rest. Measured, rows of 256 elements as a tile of 1,024 took 1.16 times as long as in one of 256. */
static const double WORTH_OF_REST = 0.95;
/* Nor are clusters, whose blocks wait for one another; all the more where their programs take turns. */
static const double WORTH_CLUSTER = 0.96, WORTH_CLUSTER_IN_TURN = 0.93;
/* Nor are turns, where they do not shorten what takes longest. */
static const double WORTH_TURNS = 0.994;
/* Nor are small programs that are computed together: measured, code for more elements loses what the model does not see. */
static const double WORTH_JOINED = 0.95, WORTH_JOINED_LIGHT = 0.98; /* of programs that load at most two tiles, which take no more registers than the model says */
/* Rows that stay in registers, in place of those that are one tile: measured, norms of bf16 took 1.1 times as long where the model says 0.99. */
static const double WORTH_KEPT = 0.9;
/* Nor are grids that are split for more programs than usual, of which each begins and is combined: measured, what is predicted to gain less loses. */
static const double WORTH_MANY = 0.95;
/* Nor are others, with grids that combine their parts, where as much is predicted: gradients of parameters of 16384 x 4096 in f32 took 192 us by 528 programs and 134 by 128 that are not split. */
static const double WORTH_SPLIT = 0.985;
enum { ENOUGH_BLOCKS = 4 };
/* Of products by multiply-adds in two blocks of each multiprocessor, beside others that are not the text's own: measured, where less than a sixtieth was predicted they took 1.02 to 1.1 of the time. */
static const double WORTH_TWO = 0.985;
/* Nor are other numbers of warps. */
static const double WORTH_WARPS = 0.975, COMPUTES_LESS = 0.9, FAR_LESS = 0.67;
/* Nor is a grid that is not split, with more warps, in place of one that is. */
static const double WORTH_WHOLE = 0.91;

typedef struct Choice {
    bool possible;
    _Atomic uint64_t places[PLACES];
    _Atomic uint64_t deciding; /* the integers that are known to decide bounds, steps or strides of an instance */
    _Atomic uint64_t known;    /* of them, those whose value instances have */
    pthread_mutex_t mutex; /* of the rest */
    TileInstance *instances[MOST_INSTANCES];
    TileTunedRow *rows[MOST_ROWS]; /* each with its constants in one allocation; never changed once it is there */
    size_t row_count;
    uint64_t clock;
} Choice;

struct TileChoices {
    uint32_t count;
    Choice items[];
};

/* The place of the instance, or the one that makes room. */
static TileInstance **find_instance(Choice *choice, uint64_t key) {
    TileInstance **oldest = &choice->instances[0];
    for (size_t i = 0; i < MOST_INSTANCES; i++) {
        TileInstance **place = &choice->instances[i];
        if (*place && (*place)->key == key) return place;
        if (*oldest && (!*place || (*place)->used < (*oldest)->used)) oldest = place;
    }
    tile_instance_destroy(*oldest);
    *oldest = NULL;
    return oldest;
}

/* NULL: out of memory. */
static TileInstance *get_instance(TileInput *input, Choice *choice, const TileImageSignature *signature,
                                  const TileImageRequest *request, const TileView *views) {
    uint64_t key = tile_instance_key(signature, request, views, atomic_load_explicit(&choice->known, memory_order_acquire));
    TileInstance **place = find_instance(choice, key);
    if (!*place) {
        *place = tile_instance_create(input, signature, request, views, key);
        if (*place && (*place)->known) { /* known from now on */
            uint64_t known = atomic_fetch_or_explicit(&choice->known, (*place)->known, memory_order_release) | (*place)->known;
            (*place)->key = tile_instance_key(signature, request, views, known);
        }
    }
    if (*place) (*place)->used = ++choice->clock;
    return *place;
}

/* ---- answers ---- */

typedef struct Candidates {
    TILE_LIST(const char *) names;
    TILE_LIST(TilePrediction) items; /* the text's own first */
    TILE_LIST(size_t) points;        /* the instance's, of each */
    size_t chosen;
} Candidates;

static bool estimate_point(const TileInput *input, const TileImageSignature *signature, const TileView *views,
                           const TileModule *module, TileArena *scratch, TileEstimate *estimate) {
    TileExtents extents;
    TileFunc *func = (TileFunc *)tile_instance_kernel(module);
    if (!func || func->body.argument_count > TILE_MOST_EXTENTS) return false;
    tile_question_extents(func, signature, views, &extents);
    return tile_backend_of(input->target)->family->estimate(input->target, func, &extents, scratch, estimate);
}

/* Has the split no more programs than the point as it is, which stands before it, and no grid with parts beside one that takes longer and has enough
 * programs? Then its grids and temporaries are for nothing, whatever the model says. */
static bool splits_nothing(const TilePrediction *plain, const TilePrediction *split) {
    if (!split->schedule.least_programs || !split->fits || !plain->fits || split->estimate.splits) return false;
    return split->estimate.programs <= plain->estimate.programs;
}

/* Do blocks of a cluster share loops, and load again what they go over again, though they are more than two for each multiprocessor? Measured, of 128, 512 and 1,024 programs, such
 * loops take 0.8 to 1.7 of the time, whatever the model says. Or do they load rows element by element? Sums of columns of 1021 x 1037 in bf16 took 1.6 times as long as in
 * parts, of which more programs have fewer elements each. */
static bool shares_in_vain(const TileInstancePoint *point, const TilePrediction *shared) {
    if (!shared->schedule.cluster || !point->module || tile_outcome_stays(point->module)) return false;
    return shared->estimate.singles || (!shared->estimate.few && !shared->estimate.kept);
}

/* For how many blocks of each multiprocessor is the grid split? 0: it is not. */
static uint32_t blocks_of_split(const TileInput *input, const TileInstancePoint *point) {
    const TileFamily *family = tile_backend_of(input->target)->family;
    uint32_t programs = point->module ? point->schedule.least_programs : 0;
    return programs ? programs / family->least_programs(input->target, point->module, 0) : 0;
}

/* By how much the point's predicted time is to be shorter, as a share. */
static double worth_of(const TileInput *input, const TileInstancePoint *point) {
    const TileSchedule *schedule = &point->schedule;
    if (schedule->cluster) return schedule->turns ? WORTH_CLUSTER_IN_TURN : WORTH_CLUSTER;
    if (schedule->turns) return WORTH_TURNS;
    if (schedule->joined_lanes) return tile_outcome_is_light(point->module) ? WORTH_JOINED_LIGHT : WORTH_JOINED;
    uint32_t blocks = blocks_of_split(input, point);
    return blocks > ENOUGH_BLOCKS ? WORTH_MANY : blocks ? WORTH_SPLIT : 1;
}

/* What is asked, and by whom. */
typedef struct Question {
    TileInput *input;
    const TileImageSignature *signature;
    const TileView *views;
    TileInstance *instance;
} Question;

/* Of the instance's i-th point. */
static TilePrediction predict(const Question *question, size_t i, TileArena *arena) {
    const TileInstancePoint *point = &question->instance->points[i];
    TilePrediction candidate = {.schedule = point->schedule};
    candidate.values = tile_arena_copy(arena, point->values, question->instance->names.count * sizeof(int64_t));
    candidate.fits = estimate_point(question->input, question->signature, question->views, point->module, arena, &candidate.estimate);
    return candidate;
}

static void take(Candidates *out, const TilePrediction *candidate, size_t point, TileArena *arena) {
    tile_list_push(arena, &out->items, *candidate);
    tile_list_push(arena, &out->points, point);
}

/* Does the other compute and wait far less, while the memory is as busy? Where that bounds both, the model sees little of it, though the two together take as long: warps that exchange nothing
 * in a loop's iterations, as one alone does, take 0.82 of the time where it says 0.97. */
static bool is_quieter(const TileEstimate *base, const TileEstimate *other) {
    if (base->compute + base->waiting < base->memory) return false;
    return other->time < base->time && other->memory <= base->memory && other->compute < FAR_LESS * base->compute && other->waiting < FAR_LESS * base->waiting;
}

/* Is the other, of more or fewer warps, worth it? More warps are where a program that has a multiprocessor to itself waits less, or fewer rows are read again from the memory; that code of fewer
 * elements a thread computes less is seldom so, unless registers did not suffice. Measured, of 635 rows: of others as many lose as gain (decision 160); of 184 rows, 11 that are
 * predicted to gain 2 % are 1.06 times as fast, and of those predicted to gain less as many lose (decision 188). */
static bool is_worth_warps(const TileEstimate *base, const TileEstimate *other, bool fewer) {
    if (fewer) return is_quieter(base, other) || (!base->alone && other->time < WORTH_WARPS * base->time); /* nobody takes what a program leaves that is alone */
    bool less = !base->alone && other->compute < COMPUTES_LESS * base->compute, computes = (base->compute > base->memory && base->compute > base->waiting) || less, waits = base->waiting > base->memory && base->waiting > base->compute;
    return other->time < WORTH_WARPS * base->time && (base->spills || (!computes && (!waits || base->alone)));
}

/* Tries twice or half as many warps as the point has, again and again as long as that takes less time by the model. Others that the instance
 * has come from other launches, and are not looked at: what is chosen depends on this one alone. */
static void try_warps(const Question *question, bool fewer, TileArena *arena, Candidates *out) {
    TileInstance *instance = question->instance;
    size_t base = out->points.items[out->chosen];
    const TilePrediction chosen = out->items.items[out->chosen];
    uint32_t warps = tile_outcome_warps(instance->points[base].module);
    double best = chosen.estimate.time;
    for (bool better = true; better && (fewer ? warps > 1 : warps < tile_backend_of(question->input->target)->family->most_warps);) {
        warps = fewer ? warps / 2 : warps * 2;
        size_t point = tile_instance_with_warps(question->input, question->signature, instance, base, warps);
        if (point == SIZE_MAX) return;
        if (tile_outcome_cluster_threads(instance->points[point].module) > TILE_MAX_CLUSTER_THREADS) return;
        TilePrediction candidate = predict(question, point, arena);
        if (chosen.schedule.least_programs && candidate.estimate.programs < chosen.estimate.programs) return; /* it is not split */
        take(out, &candidate, point, arena);
        better = candidate.fits && candidate.estimate.time < best;
        if (!better) continue;
        best = candidate.estimate.time;
        if (is_worth_warps(&chosen.estimate, &candidate.estimate, fewer)) out->chosen = out->items.count - 1;
    }
}

static bool leaves_warps(const Question *question, const Candidates *out, size_t i) {
    const TileInstancePoint *base = &question->instance->points[out->points.items[i]];
    return out->items.items[i].fits && !base->schedule.warps && tile_backend_of(question->input->target)->family->most_warps && tile_outcome_leaves_warps(base->module);
}

/* The fastest of the points without any schedule; SIZE_MAX: there is none. */
static size_t best_plain(const Question *question, const Candidates *out) {
    const TileSchedule none = {0};
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < out->items.count; i++) {
        const TilePrediction *candidate = &out->items.items[i];
        bool plain = candidate->fits && memcmp(&question->instance->points[out->points.items[i]].schedule, &none, sizeof none) == 0;
        if (plain && (best == SIZE_MAX || candidate->estimate.time < out->items.items[best].estimate.time)) best = i;
    }
    return best;
}

/* A grid is split so that its programs wait less; as one with more warps it needs no other to combine the parts. Those are tried of the fastest that is not split. */
static void try_whole(const Question *question, TileArena *arena, Candidates *out) {
    size_t split = out->chosen, plain = best_plain(question, out), first = out->items.count;
    if (!out->items.items[split].schedule.least_programs || plain == SIZE_MAX || !leaves_warps(question, out, plain)) return;
    double best = WORTH_WHOLE * out->items.items[split].estimate.time;
    out->chosen = plain;
    try_warps(question, false, arena, out);
    out->chosen = split;
    for (size_t i = first; i < out->items.count; i++) {
        if (!out->items.items[i].fits || out->items.items[i].estimate.time >= best) continue;
        best = out->items.items[i].estimate.time;
        out->chosen = i;
    }
}

static void choose_warps(const Question *question, TileArena *arena, Candidates *out) {
    size_t chosen = out->chosen;
    if (leaves_warps(question, out, chosen)) {
        try_warps(question, true, arena, out);
        if (out->chosen == chosen) try_warps(question, false, arena, out);
    }
    try_whole(question, arena, out);
}

/* The time below which another point than the text's own is taken, of which this is the time. */
static double worthwhile(double own, double launch) {
    double of_all = WORTH * own, of_rest = launch + WORTH_OF_REST * (own - launch);
    return of_all > of_rest ? of_all : of_rest;
}

/* Allocates in the arena, which may jump. */
static void list_candidates(const Question *question, TileArena *arena, Candidates *out) {
    const TileInstance *instance = question->instance;
    *out = (Candidates){.chosen = 0};
    double best = 0;
    TilePrediction plain = {.fits = false};
    for (size_t i = 0; i < instance->names.count; i++) {
        const char *name = instance->names.items[i];
        tile_list_push(arena, &out->names, tile_arena_string(arena, name, strlen(name)));
    }
    for (size_t i = 0; i < instance->count; i++) {
        if (instance->points[i].base) continue;
        TilePrediction candidate = predict(question, i, arena);
        if (!candidate.schedule.least_programs && !candidate.schedule.turns && !candidate.schedule.cluster) plain = candidate;
        if (splits_nothing(&plain, &candidate) || shares_in_vain(&instance->points[i], &candidate)) continue;
        take(out, &candidate, i, arena);
        if (!candidate.fits) continue;
        double time = candidate.estimate.time / (candidate.estimate.kept ? WORTH_KEPT : worth_of(question->input, &instance->points[i]));
        double beside = blocks_of_split(question->input, &instance->points[i]) == 2 ? time / WORTH_TWO : time;
        if (best == 0 || (out->chosen == 0 ? time < worthwhile(best, candidate.estimate.launch) : beside < best)) {
            best = beside;
            out->chosen = out->items.count - 1;
        }
    }
    if (!out->items.count) return;
    choose_warps(question, arena, out);
    TilePrediction *chosen = &out->items.items[out->chosen];
    memcpy(chosen->schedule.split_programs, chosen->estimate.split_programs, sizeof chosen->estimate.split_programs);
    memcpy(chosen->schedule.blocks_together, chosen->estimate.blocks_together, sizeof chosen->estimate.blocks_together);
    chosen->schedule.stream = chosen->estimate.streams;
    chosen->schedule.once = chosen->estimate.once;
    chosen->schedule.reloads = chosen->estimate.reloads && !chosen->estimate.kept;
    chosen->schedule.keeps = chosen->estimate.keeps;
    chosen->schedule.busy = chosen->estimate.busy && tile_outcome_has_loops(instance->points[out->points.items[out->chosen]].module);
}

/* The model does not know all that lies in shared memory. A point that needs more than a block has is none. */
static bool chosen_has_room(const Question *question, const Candidates *candidates) {
    TileInstance *instance = question->instance;
    TileInstancePoint *number = &instance->points[candidates->points.items[candidates->chosen]];
    const TilePrediction *chosen = &candidates->items.items[candidates->chosen];
    if (!chosen->fits || !chosen->estimate.tight || number->has_room) return true;
    TilePoint point = {question->signature, &instance->request, instance->names.items, number->values, instance->names.count, chosen->schedule};
    number->has_room = tile_point_has_room(question->input, &point);
    if (number->has_room) return true;
    tile_module_destroy(number->module);
    number->module = NULL;
    return false;
}

static bool is_schedule(const TileSchedule *a, const TileSchedule *b) {
    return a->least_programs == b->least_programs && memcmp(a->split_programs, b->split_programs, sizeof a->split_programs) == 0 && memcmp(a->blocks_together, b->blocks_together, sizeof a->blocks_together) == 0 && a->packs == b->packs && a->stream == b->stream && a->once == b->once && a->busy == b->busy && a->reloads == b->reloads && a->keeps == b->keeps && a->joined_rows == b->joined_rows &&
           a->joined_columns == b->joined_columns && a->joined_lanes == b->joined_lanes && a->joined_axis == b->joined_axis && a->turns == b->turns && a->warps == b->warps &&
           a->cluster == b->cluster;
}

static bool is_row(const TileTunedRow *row, const Candidates *candidates, const int64_t *values) {
    if (!is_schedule(&row->schedule, &candidates->items.items[candidates->chosen].schedule)) return false;
    for (size_t k = 0; k < candidates->names.count; k++)
        if (row->constants[k].integer != values[k]) return false;
    return true;
}

/* A row with the values; NULL if out of memory. */
static TileTunedRow *create_row(const Candidates *candidates, const int64_t *values) {
    size_t count = candidates->names.count, bytes = sizeof(TileTunedRow) + count * sizeof(TileBinding);
    for (size_t k = 0; k < count; k++) bytes += strlen(candidates->names.items[k]) + 1;
    TileTunedRow *row = calloc(1, bytes);
    if (!row) return NULL;
    TileBinding *constants = (TileBinding *)(row + 1);
    char *name = (char *)(constants + count);
    for (size_t k = 0; k < count; k++) {
        size_t length = strlen(candidates->names.items[k]) + 1;
        memcpy(name, candidates->names.items[k], length);
        constants[k] = (TileBinding){.name = name, .kind = TILE_BINDING_INTEGER, .integer = values[k]};
        name += length;
    }
    row->constants = constants;
    row->constant_count = count;
    row->schedule = candidates->items.items[candidates->chosen].schedule;
    row->predicted = true;
    return row;
}

/* The number of the row with the chosen values; 0: there is no room. */
static uint32_t number_of_row(Choice *choice, const Candidates *candidates) {
    const int64_t *values = candidates->items.items[candidates->chosen].values;
    for (size_t i = 0; i < choice->row_count; i++)
        if (is_row(choice->rows[i], candidates, values)) return (uint32_t)i + 1;
    TileTunedRow *row = choice->row_count < MOST_ROWS ? create_row(candidates, values) : NULL;
    if (!row) return 0;
    choice->rows[choice->row_count++] = row;
    return (uint32_t)choice->row_count;
}

/* Calls `use` with the candidates, which live until it returns. False where memory runs out, or nothing chooses. The
 * choice's mutex is held. */
static bool with_candidates(TileInput *input, Choice *choice, const TileImageSignature *signature,
                            const TileImageRequest *request, const TileView *views,
                            void (*use)(const Candidates *candidates, void *state), void *state) {
    TileInstance *instance = get_instance(input, choice, signature, request, views);
    const Question question = {input, signature, views, instance};
    TileArena *scratch = instance && instance->unit ? tile_arena_create(NULL) : NULL;
    Candidates candidates;
    jmp_buf guard;
    if (!scratch) return false;
    if (setjmp(guard)) {
        tile_arena_destroy(scratch);
        return false;
    }
    tile_arena_set_guard(scratch, &guard);
    atomic_fetch_or_explicit(&choice->deciding, tile_instance_find_deciding(signature, instance), memory_order_release);
    do list_candidates(&question, scratch, &candidates);
    while (candidates.items.count && !chosen_has_room(&question, &candidates));
    tile_arena_set_guard(scratch, NULL);
    use(&candidates, state);
    tile_arena_destroy(scratch);
    return true;
}

typedef struct Answer {
    Choice *choice;
    TileExplanation *explanation; /* or NULL */
    uint32_t number;
} Answer;

/* For the explanation that is being made. */
static void explain(TileExplanation *explanation, const Candidates *candidates) {
    size_t bytes = candidates->names.count * sizeof(int64_t);
    explanation->candidates.count = 0;
    explanation->chosen = candidates->chosen;
    for (size_t i = 0; i < candidates->items.count; i++) {
        TilePrediction candidate = candidates->items.items[i];
        candidate.values = tile_arena_copy(explanation->arena, candidate.values, bytes);
        tile_list_push(explanation->arena, &explanation->candidates, candidate);
    }
}

/* Are registers of some grid so few that a multiprocessor has room for its blocks? */
static bool has_blocks_together(const TileSchedule *schedule) {
    static const uint32_t none[TILE_MOST_SPLITS];
    return memcmp(schedule->blocks_together, none, sizeof none) != 0;
}

static void take_number(const Candidates *candidates, void *state) {
    Answer *answer = state;
    if (answer->explanation) explain(answer->explanation, candidates);
    const TileSchedule *first = &candidates->items.items[0].schedule; /* of the text's own point */
    if (candidates->chosen || first->stream || first->once || first->busy || first->reloads || first->keeps || first->split_programs[0] || has_blocks_together(first)) answer->number = number_of_row(answer->choice, candidates);
}

static uint32_t choose(TileInput *input, uint32_t kernel, const TileImageRequest *request, const TileView *views) {
    Choice *choice = &input->choices->items[kernel];
    const TileImageSignature *signature = &input->signatures[kernel];
    if (!choice->possible) return 0;
    uint64_t instance = tile_instance_key(signature, request, views, atomic_load_explicit(&choice->known, memory_order_acquire)),
             key = tile_question_key(signature, views, atomic_load_explicit(&choice->deciding, memory_order_acquire), instance);
    _Atomic uint64_t *place = &choice->places[key % PLACES];
    uint64_t known = atomic_load_explicit(place, memory_order_acquire);
    TileExplanation *explanation = input->compiler->explanation;
    if (known && !explanation && known >> NUMBER_BITS == key >> NUMBER_BITS) return known & ((1u << NUMBER_BITS) - 1);
    Answer found = {choice, explanation, 0};
    pthread_mutex_lock(&choice->mutex);
    with_candidates(input, choice, signature, request, views, take_number, &found);
    pthread_mutex_unlock(&choice->mutex);
    /* What the integers decide is known only now, where this was the kernel's first question. */
    instance = tile_instance_key(signature, request, views, atomic_load_explicit(&choice->known, memory_order_acquire));
    key = tile_question_key(signature, views, atomic_load_explicit(&choice->deciding, memory_order_acquire), instance);
    place = &choice->places[key % PLACES];
    atomic_store_explicit(place, key >> NUMBER_BITS << NUMBER_BITS | found.number, memory_order_release);
    return found.number;
}

static uint32_t measured_count(const TileInput *input, uint32_t kernel) {
    return input->tuned ? (uint32_t)input->tuned[kernel].rows.count : 0;
}

/* Rows of the model are numbered behind those of files. */
uint32_t tile_choose(void *state, uint32_t kernel, const TileImageRequest *request, const TileView *views) {
    TileInput *input = state;
    uint32_t measured = tile_tuned_find(input, kernel, request, views);
    if (measured || !input->choices) return measured;
    uint32_t chosen = choose(input, kernel, request, views);
    return chosen ? measured_count(input, kernel) + chosen : 0;
}

const TileTunedRow *tile_chosen_row(const TileInput *input, uint32_t kernel, uint32_t number) {
    uint32_t measured = measured_count(input, kernel);
    if (!number) return NULL;
    return number <= measured ? &input->tuned[kernel].rows.items[number - 1]
                              : input->choices->items[kernel].rows[number - measured - 1];
}

/* Where no model looked at the launch's rows, its code keeps those that are few tiles. */
TileSchedule tile_chosen_schedule(const TileInput *input, uint32_t kernel, uint32_t number) {
    const TileBackend *backend = tile_backend_of(input->target);
    const TileTunedRow *row = tile_chosen_row(input, kernel, number);
    bool predicted = row ? row->predicted : input->choices && input->choices->items[kernel].possible;
    TileSchedule schedule = row ? row->schedule : (TileSchedule){0};
    schedule.keeps |= !predicted && backend && backend->family->estimate;
    return schedule;
}

const TileTunedRow *tile_chosen_for(const TileLibrary *library, const TileKernel *kernel, const TileArg *arguments,
                                    size_t count) {
    const TileInput *input = tile_library_source(library);
    TileView views[TILE_MAX_PARAMETERS];
    TileImageRequest request;
    TileError error;
    if ((!input->tuned && !input->choices) ||
        tile_arguments_read(kernel->signature, arguments, count, false, views, &request, &error) != TILE_OK)
        return NULL;
    tile_variant_request(kernel, views, &request);
    return tile_chosen_row(input, kernel->index, request.tuned);
}

/* ---- a library's choices ---- */

tile_status tile_choices_create(TileUnit *unit, const TileProgramInfo *program) {
    TileInput *input = unit->input;
    const TileBackend *backend = tile_backend_of(input->target);
    const char *named = input->compiler->settings.tuning;
    if (!backend || !backend->family->estimate || input->is_ir || (named && strcmp(named, "off") == 0)) return TILE_OK;
    uint32_t count = (uint32_t)program->kernels.count;
    TileChoices *choices = calloc(1, sizeof *choices + count * sizeof(Choice));
    if (!choices) return TILE_OUT_OF_MEMORY;
    choices->count = count;
    for (uint32_t i = 0; i < count; i++) {
        pthread_mutex_init(&choices->items[i].mutex, NULL);
        choices->items[i].possible = tile_tuned_is_free(input, &program->kernels.items[i], &input->signatures[i]);
    }
    input->choices = choices;
    return TILE_OK;
}

void tile_choices_destroy(TileChoices *choices) {
    for (uint32_t i = 0; choices && i < choices->count; i++) {
        Choice *choice = &choices->items[i];
        for (size_t k = 0; k < MOST_INSTANCES; k++) tile_instance_destroy(choice->instances[k]);
        for (size_t k = 0; k < choice->row_count; k++) free(choice->rows[k]);
        pthread_mutex_destroy(&choice->mutex);
    }
    free(choices);
}
