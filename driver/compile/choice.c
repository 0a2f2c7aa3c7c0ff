#include "driver/compile/choice.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/backend.h"
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
    MOST_CANDIDATES = 320,
    MOST_INSTANCES = 32
};

/* A candidate better than the text's own by less is not worth other code: the model is not more exact. */
static const double WORTH = 0.97;
/* Nor are clusters, whose blocks wait for one another; all the more where their programs take turns. */
static const double WORTH_CLUSTER = 0.96, WORTH_CLUSTER_IN_TURN = 0.93;
/* Nor are turns, where they do not shorten what takes longest. */
static const double WORTH_TURNS = 0.994;
/* Nor are small programs that are computed together: measured, code for more elements loses what the model does not see. */
static const double WORTH_JOINED = 0.95;
/* Nor are grids that are split for more programs than usual, of which each begins and is combined: measured, what is predicted to gain less loses. */
static const double WORTH_MANY = 0.95;

/* A kernel for certain types, static values, maps, tensors without gaps and short rows: each point's functions, in tile form. */
typedef struct Instance {
    uint64_t key, used; /* used: when, for those that make room */
    TileUnit *unit;     /* owns names and points; NULL: the model can say nothing */
    TILE_LIST(const char *) names;
    size_t count;
    const int64_t *points[MOST_CANDIDATES];
    TileSchedule schedules[MOST_CANDIDATES]; /* with the point; of zeros: as the text has it */
    TileModule *modules[MOST_CANDIDATES]; /* NULL: the point cannot be compiled, or a block has no room for it */
    uint64_t codes[MOST_CANDIDATES];      /* hashes, of those whose programs are computed together */
    bool has_room[MOST_CANDIDATES];       /* this was seen in machine form */
    TileImageRequest request;             /* by which points are lowered */
} Instance;

typedef struct Choice {
    bool possible;
    _Atomic uint64_t places[PLACES];
    _Atomic uint64_t deciding; /* the integers that are known to decide bounds, steps or strides of an instance */
    pthread_mutex_t mutex; /* of the rest */
    Instance *instances[MOST_INSTANCES];
    TileTunedRow *rows[MOST_ROWS]; /* each with its constants in one allocation; never changed once it is there */
    size_t row_count;
    uint64_t clock;
} Choice;

struct TileChoices {
    uint32_t count;
    Choice items[];
};

/* ---- instances ---- */

/* Facts that go with such a tensor: others would not change the choice. */
static uint64_t usual_facts(const TileImageParameter *parameter, bool map, bool no_gaps, uint64_t rows) {
    uint64_t facts = tile_guard_align(map ? 128 : TILE_MAP_GRAIN) | TILE_GUARD_NARROW | TILE_GUARD_DISJOINT;
    if (parameter->rank) facts |= tile_guard_dimension(parameter->rank - 1u, TILE_GUARD_STRIDE_UNIT);
    if (parameter->rank > 1) facts |= rows;
    for (unsigned k = 0; no_gaps && k + 1 < parameter->rank; k++) facts |= tile_guard_dimension(k, TILE_GUARD_DENSE);
    if (!map) return facts;
    for (unsigned k = 0; k < parameter->rank; k++)
        for (unsigned divisor = 2; divisor <= TILE_GUARD_MOST_MULTIPLE; divisor *= 2)
            facts |= tile_guard_multiple(parameter->rank, k, divisor);
    return facts | TILE_GUARD_MAP;
}

typedef struct Making {
    Instance *instance;
    const TileImageSignature *signature;
    TileImageRequest request;
    const TileInput *input;
} Making;

/* Where 0 is a candidate, it stands for what the compiler finds best, and that is asked for. */
static bool is_candidate(const TileTunePoints *found, const int64_t *point, const int64_t *first) {
    for (size_t i = 0; i < found->names.count; i++)
        if (first[i] == 0 && point[i] != 0) return false;
    return true;
}

/* The module, or NULL. */
static const TileModule *add_point(TileUnit *unit, const TileKernelInfo *kernel, const Making *making,
                                   const TileTunePoints *found, const int64_t *point, TileSchedule schedule) {
    Instance *instance = making->instance;
    if (instance->count == MOST_CANDIDATES) return NULL;
    TilePoint lowered = {making->signature, &making->request, found->names.items, point, found->names.count, schedule};
    bool good = tile_point_lower(unit, kernel, &lowered, tile_unit_backend(unit)->family->estimated_behind);
    instance->points[instance->count] = point;
    instance->schedules[instance->count] = schedule;
    if (good)
        instance->modules[instance->count] = unit->module;
    else
        tile_module_destroy(unit->module);
    unit->module = NULL;
    return instance->modules[instance->count++];
}

/* What of a schedule makes a difference to the kernel, as long as that is not known. */
typedef struct Tries {
    bool splits, packs, joins, clusters;
} Tries;

static void forget_point(Instance *instance) {
    tile_module_destroy(instance->modules[--instance->count]);
    instance->modules[instance->count] = NULL;
}

/* The module of the point with the schedule, if that gives it more grids than it has `without`; else NULL. */
static const TileModule *add_other(TileUnit *unit, const TileKernelInfo *kernel, const Making *making,
                                   const TileTunePoints *found, const int64_t *point, TileSchedule schedule,
                                   const TileModule *without) {
    const TileModule *with = add_point(unit, kernel, making, found, point, schedule);
    if (!with || tile_outcome_phases(with) > tile_outcome_phases(without)) return with;
    forget_point(making->instance);
    return NULL;
}

/* The same with grids that are split for more programs, as long as one can be. */
static void add_splits(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                       const int64_t *point, TileSchedule schedule, const TileModule *plain, Tries *tries) {
    const TileFamily *family = tile_unit_backend(unit)->family;
    for (unsigned i = 0; tries->splits && plain && family->least_programs; i++) {
        schedule.least_programs = family->least_programs(unit->input->target, plain, i);
        if (!schedule.least_programs) break;
        tries->splits = add_other(unit, kernel, making, found, point, schedule, plain) != NULL;
    }
}

/* The same with programs that take turns. */
static void add_turns(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                      const int64_t *point, TileSchedule schedule, const TileModule *plain) {
    const TileFamily *family = tile_unit_backend(unit)->family;
    schedule.turns = 2;
    for (unsigned i = 0; family->turning_warps && tile_outcome_stays(plain); i++) {
        schedule.warps = family->turning_warps(i);
        if (!schedule.warps) break;
        const TileModule *turning = add_point(unit, kernel, making, found, point, schedule);
        if (turning && !tile_outcome_takes_turns(turning, schedule.warps)) forget_point(making->instance);
    }
}

/* The same with blocks that load together what they share, whether programs take turns or not. */
static void add_clusters(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                         const int64_t *point, TileSchedule schedule, const TileModule *plain, Tries *tries) {
    schedule.cluster = tile_unit_backend(unit)->family->cluster;
    if (!tries->clusters || !schedule.cluster || !tile_outcome_stays(plain) || tile_outcome_has_clusters(plain)) return;
    const TileModule *clustered = add_point(unit, kernel, making, found, point, schedule);
    tries->clusters = clustered && tile_outcome_has_clusters(clustered);
    if (tries->clusters)
        add_turns(unit, kernel, making, found, point, schedule, clustered);
    else if (clustered)
        forget_point(making->instance);
}

/* What else there is of the point with a schedule, which has been added as `plain`. */
static void add_others(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                       const int64_t *point, TileSchedule schedule, const TileModule *plain, Tries *tries) {
    add_splits(unit, kernel, making, found, point, schedule, plain, tries);
    add_turns(unit, kernel, making, found, point, schedule, plain);
    add_clusters(unit, kernel, making, found, point, schedule, plain, tries);
    schedule.packs = true;
    if (!tries->packs || !plain || !tile_unit_backend(unit)->family->packs) return;
    const TileModule *packed = add_other(unit, kernel, making, found, point, schedule, plain);
    tries->packs = packed != NULL;
    add_splits(unit, kernel, making, found, point, schedule, packed, tries);
    add_turns(unit, kernel, making, found, point, schedule, packed);
    add_clusters(unit, kernel, making, found, point, schedule, packed, tries);
}

/* The point, as it is and with each schedule that makes a difference; the module of the first. */
static const TileModule *add_points(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                       const int64_t *point, Tries *tries) {
    TileSchedule schedule = {0};
    const TileModule *plain = add_point(unit, kernel, making, found, point, schedule);
    add_others(unit, kernel, making, found, point, schedule, plain, tries);
    return plain;
}

static void look_for_large(TileOp *op, void *state) {
    enum { ROWS = 64, SUMS = 4096, K_BYTES = 128 };
    const TileType *sum = op->id == TILE_OP_DOT ? op->results[0].type : NULL;
    if (!sum || sum->rank < 2) return;
    const TileType *a = tile_op_operand(op, 0)->type;
    int64_t rows = sum->extent[sum->rank - 2], columns = sum->extent[sum->rank - 1];
    int64_t k_bytes = a->extent[a->rank - 1] * tile_scalar_bytes(a->scalar);
    *(bool *)state |= rows >= ROWS && rows * columns > SUMS && k_bytes >= K_BYTES;
}

/* Does the text decide how large products are: has a point some of as many rows as wgmma takes, of more than one instruction's columns and of
 * as much of k as a row of shared memory has; or warps or stages, which go with a size? */
static bool decides_sizes(const Instance *instance) {
    bool decides = false;
    for (size_t i = 0; i < instance->count; i++)
        for (TileFunc *func = instance->modules[i] ? instance->modules[i]->first : NULL; func; func = func->next) {
            if (func->kind == TILE_FUNC_KERNEL) decides |= !instance->schedules[i].turns && (func->warps || func->stages);
            if (func->kind == TILE_FUNC_PHASE) tile_block_walk(&func->body, look_for_large, &decides);
        }
    return decides;
}

/* Is the newest point, with its schedule, the same code as an earlier one? Small tiles become those of others. */
static bool is_repeated(Instance *instance) {
    size_t newest = instance->count - 1;
    TileText text = {.arena = tile_arena_create(NULL)};
    if (!text.arena) return false;
    tile_module_print(&text, instance->modules[newest], 0);
    instance->codes[newest] = tile_hash_bytes(tile_text_get(&text), text.length, 0);
    tile_arena_destroy(text.arena);
    for (size_t i = 0; i < newest; i++)
        if (instance->codes[i] == instance->codes[newest]) return true;
    return false;
}

/* The point with programs that are computed together. */
static void add_joined(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                       const int64_t *point, Tries *tries) {
    const TileFamily *family = tile_unit_backend(unit)->family;
    TileSchedule schedule = {0};
    tries->joins = false;
    for (unsigned i = 0; family->joined && family->joined(i, &schedule.joined_rows, &schedule.joined_columns); i++) {
        const TileModule *joined = add_point(unit, kernel, making, found, point, schedule);
        if (!joined) continue;
        bool any = tile_outcome_is_joined(joined);
        tries->joins |= any;
        if (!any || is_repeated(making->instance)) {
            forget_point(making->instance);
            continue;
        }
        add_others(unit, kernel, making, found, point, schedule, joined, tries);
    }
}

static void find_loop_or_product(TileOp *op, void *found) {
    *(bool *)found |= op->id == TILE_OP_DOT || op->id == TILE_OP_WHILE || (op->id == TILE_OP_FOR && !tile_op_get(op, TILE_ATTRIBUTE_ONE_PROGRAM));
}

/* Is there a phase of small programs, which begin, move a few vectors and end: of fewer than four warps that the text does not ask for? */
static bool has_small_programs(const TileModule *module) {
    enum { SMALL_THREADS = 2 * TILE_WARP_THREADS };
    bool small = false;
    for (TileFunc *func = module ? module->first : NULL; func; func = func->next) {
        bool other = func->kind != TILE_FUNC_PHASE || func->threads > SMALL_THREADS || func->resident;
        if (func->kind == TILE_FUNC_KERNEL && func->warps) return false;
        if (!other) tile_block_walk(&func->body, find_loop_or_product, &other);
        small |= !other;
    }
    return small;
}

/* The point `plain` of small programs with so many of them computed together that they move as much as four warps do. */
static void add_joined_lanes(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                             const int64_t *point, const TileModule *plain) {
    const TileFamily *family = tile_unit_backend(unit)->family;
    TileSchedule schedule = {0};
    if (!family->joined_lanes || !has_small_programs(plain)) return;
    for (unsigned i = 0; family->joined_lanes(i, &schedule.joined_lanes, &schedule.joined_axis); i++) {
        const TileModule *joined = add_point(unit, kernel, making, found, point, schedule);
        if (joined && (!tile_outcome_is_joined(joined) || is_repeated(making->instance))) forget_point(making->instance);
    }
}

static tile_status make_instance(TileUnit *unit, void *state) {
    Making *making = state;
    Instance *instance = making->instance;
    TileProgramInfo program = {0};
    TileTunePoints found;
    TILE_TRY(tile_unit_list(unit, &program));
    const TileKernelInfo *kernel = &program.kernels.items[making->signature - making->input->signatures];
    TILE_TRY(tile_tuned_points(unit, kernel, making->signature, making->request.generics, &found));
    Tries tries = {true, true, true, true};
    for (size_t i = 0; i < found.names.count; i++) tile_list_push(unit->arena, &instance->names, found.names.items[i]);
    for (size_t i = 0; i < found.points.count && instance->count < MOST_CANDIDATES; i++)
        if (is_candidate(&found, found.points.items[i], found.points.items[0]))
            add_joined_lanes(unit, kernel, making, &found, found.points.items[i],
                             add_points(unit, kernel, making, &found, found.points.items[i], &tries));
    tries.joins = !decides_sizes(instance);
    for (size_t i = 0; i < found.points.count && tries.joins; i++)
        if (is_candidate(&found, found.points.items[i], found.points.items[0]))
            add_joined(unit, kernel, making, &found, found.points.items[i], &tries);
    instance->unit = unit;
    return TILE_OK;
}

/* The unit stays, with all modules; what ran out of memory has none. */
static tile_status keep_instance(TileUnit *unit, void *state) {
    Making *making = state;
    Instance *instance = making->instance;
    TILE_TRY(make_instance(unit, state));
    if (!instance->unit) return TILE_OK;
    for (size_t i = 0; i < instance->count; i++)
        if (instance->modules[i]) tile_arena_set_guard(instance->modules[i]->arena, NULL);
    unit->module = tile_module_create(unit->context);
    unit->keep = unit->module != NULL;
    if (!unit->keep) instance->unit = NULL;
    return TILE_OK;
}

static void destroy_instance(Instance *instance) {
    if (!instance) return;
    for (size_t i = 0; i < instance->count; i++) tile_module_destroy(instance->modules[i]);
    if (instance->unit) tile_unit_destroy(instance->unit);
    free(instance);
}

/* The place of the instance, or the one that makes room. */
static Instance **find_instance(Choice *choice, uint64_t key) {
    Instance **oldest = &choice->instances[0];
    for (size_t i = 0; i < MOST_INSTANCES; i++) {
        Instance **place = &choice->instances[i];
        if (*place && (*place)->key == key) return place;
        if (*oldest && (!*place || (*place)->used < (*oldest)->used)) oldest = place;
    }
    destroy_instance(*oldest);
    *oldest = NULL;
    return oldest;
}

/* NULL: out of memory. */
static Instance *get_instance(TileInput *input, Choice *choice, const TileImageSignature *signature,
                              const TileImageRequest *request, const TileView *views) {
    uint64_t key = tile_instance_key(signature, request, views), maps = tile_question_maps(signature, views),
             no_gaps = tile_question_dense(signature, views), rows = tile_question_rows(signature, views);
    Instance **place = find_instance(choice, key);
    if (!*place) {
        Making making = {.signature = signature, .request = *request, .input = input};
        making.request.complete = false;
        for (uint32_t i = 0; i < signature->parameter_count; i++)
            making.request.facts[i] = usual_facts(&signature->parameters[i], maps >> i & 1, no_gaps >> i & 1, rows);
        making.instance = calloc(1, sizeof *making.instance);
        if (!making.instance) return NULL;
        making.instance->key = key;
        making.instance->request = making.request;
        *place = making.instance;
        /* The launch itself reports what is wrong with the kernel. */
        if (tile_unit_run(input, keep_instance, &making, NULL) != TILE_OK && making.instance->unit)
            making.instance->unit = NULL;
    }
    (*place)->used = ++choice->clock;
    return *place;
}

static const TileFunc *kernel_of(const TileModule *module) {
    const TileFunc *func = module ? module->first : NULL;
    while (func && func->kind != TILE_FUNC_KERNEL) func = func->next;
    return func;
}

/* The set of integers that decide bounds, steps or strides of some point. */
static uint64_t find_deciding(const TileImageSignature *signature, const Instance *instance) {
    uint64_t set = 0;
    for (size_t k = 0; k < instance->count; k++) {
        const TileFunc *func = kernel_of(instance->modules[k]);
        for (uint32_t i = 0; func && i < func->body.argument_count; i++) {
            int number = func->parameters[i].asked_value ? tile_image_parameter(signature, func->parameters[i].name) : -1;
            if (number >= 0) set |= UINT64_C(1) << number;
        }
    }
    return set;
}

/* ---- answers ---- */

typedef struct Candidates {
    TILE_LIST(const char *) names;
    TILE_LIST(TilePrediction) items; /* the text's own first */
    TILE_LIST(size_t) points;        /* the instance's, of each */
    size_t chosen;
} Candidates;

static bool estimate_point(const TileInput *input, const TileImageSignature *signature, const TileView *views,
                           const Instance *instance, size_t point, TileArena *scratch, TileEstimate *estimate) {
    const TileModule *module = instance->modules[point];
    TileExtents extents;
    TileFunc *func = (TileFunc *)kernel_of(module);
    if (!func || func->body.argument_count > TILE_MOST_EXTENTS) return false;
    tile_question_extents(func, signature, views, &extents);
    return tile_backend_of(input->target)->family->estimate(input->target, func, &extents, scratch, estimate);
}

/* Has the split no more programs than the point as it is, which stands before it? Then its grids and temporaries are for
 * nothing, whatever the model says. */
static bool splits_nothing(const TilePrediction *plain, const TilePrediction *split) {
    return split->schedule.least_programs && split->fits && plain->fits && split->estimate.programs <= plain->estimate.programs;
}

/* Is the grid split for more programs than the second of the family's numbers, which fill the machine in most cases? */
static bool is_split_for_many(const TileInput *input, const Instance *instance, size_t point) {
    const TileFamily *family = tile_backend_of(input->target)->family;
    uint32_t programs = instance->schedules[point].least_programs;
    return programs && instance->modules[point] && programs > family->least_programs(input->target, instance->modules[point], 1);
}

/* Allocates in the arena, which may jump. */
static void list_candidates(const TileInput *input, const TileImageSignature *signature, const TileView *views,
                            const Instance *instance, TileArena *arena, Candidates *out) {
    *out = (Candidates){.chosen = 0};
    double best = 0;
    TilePrediction plain = {.fits = false};
    for (size_t i = 0; i < instance->names.count; i++) {
        const char *name = instance->names.items[i];
        tile_list_push(arena, &out->names, tile_arena_string(arena, name, strlen(name)));
    }
    for (size_t i = 0; i < instance->count; i++) {
        TilePrediction candidate = {.values = tile_arena_copy(arena, instance->points[i],
                                                             instance->names.count * sizeof(int64_t))};
        candidate.schedule = instance->schedules[i];
        candidate.fits = estimate_point(input, signature, views, instance, i, arena, &candidate.estimate);
        if (!candidate.schedule.least_programs && !candidate.schedule.turns && !candidate.schedule.cluster) plain = candidate;
        if (splits_nothing(&plain, &candidate)) continue;
        tile_list_push(arena, &out->items, candidate);
        tile_list_push(arena, &out->points, i);
        if (!candidate.fits) continue;
        double worth = candidate.schedule.cluster ? candidate.schedule.turns ? WORTH_CLUSTER_IN_TURN : WORTH_CLUSTER : candidate.schedule.turns ? WORTH_TURNS : candidate.schedule.joined_lanes ? WORTH_JOINED : is_split_for_many(input, instance, i) ? WORTH_MANY : 1,
               time = candidate.estimate.time / worth;
        if (best == 0 || time < best * (out->chosen == 0 ? WORTH : 1)) {
            best = time;
            out->chosen = out->items.count - 1;
        }
    }
    if (!out->items.count) return;
    TilePrediction *chosen = &out->items.items[out->chosen];
    memcpy(chosen->schedule.split_programs, chosen->estimate.split_programs, sizeof chosen->estimate.split_programs);
    chosen->schedule.stream = chosen->estimate.streams;
    chosen->schedule.once = chosen->estimate.once;
    chosen->schedule.busy = chosen->estimate.busy && tile_outcome_has_loops(instance->modules[out->points.items[out->chosen]]);
}

/* The model does not know all that lies in shared memory. A point that needs more than a block has is none. */
static bool chosen_has_room(TileInput *input, const TileImageSignature *signature, Instance *instance,
                            const Candidates *candidates) {
    size_t number = candidates->points.items[candidates->chosen];
    const TilePrediction *chosen = &candidates->items.items[candidates->chosen];
    if (!chosen->fits || !chosen->estimate.tight || instance->has_room[number]) return true;
    TilePoint point = {signature,       &instance->request,    instance->names.items, instance->points[number],
                       instance->names.count, chosen->schedule};
    instance->has_room[number] = tile_point_has_room(input, &point);
    if (instance->has_room[number]) return true;
    tile_module_destroy(instance->modules[number]);
    instance->modules[number] = NULL;
    return false;
}

static bool is_schedule(const TileSchedule *a, const TileSchedule *b) {
    return a->least_programs == b->least_programs && memcmp(a->split_programs, b->split_programs, sizeof a->split_programs) == 0 && a->packs == b->packs && a->stream == b->stream && a->once == b->once && a->busy == b->busy && a->joined_rows == b->joined_rows &&
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
    Instance *instance = get_instance(input, choice, signature, request, views);
    TileArena *scratch = instance && instance->unit ? tile_arena_create(NULL) : NULL;
    Candidates candidates;
    jmp_buf guard;
    if (!scratch) return false;
    if (setjmp(guard)) {
        tile_arena_destroy(scratch);
        return false;
    }
    tile_arena_set_guard(scratch, &guard);
    atomic_fetch_or_explicit(&choice->deciding, find_deciding(signature, instance), memory_order_release);
    do list_candidates(input, signature, views, instance, scratch, &candidates);
    while (candidates.items.count && !chosen_has_room(input, signature, instance, &candidates));
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

static void take_number(const Candidates *candidates, void *state) {
    Answer *answer = state;
    if (answer->explanation) explain(answer->explanation, candidates);
    const TileSchedule *first = &candidates->items.items[0].schedule; /* of the text's own point */
    if (candidates->chosen || first->stream || first->once || first->busy || first->split_programs[0]) answer->number = number_of_row(answer->choice, candidates);
}

static uint32_t choose(TileInput *input, uint32_t kernel, const TileImageRequest *request, const TileView *views) {
    Choice *choice = &input->choices->items[kernel];
    const TileImageSignature *signature = &input->signatures[kernel];
    if (!choice->possible) return 0;
    uint64_t instance = tile_instance_key(signature, request, views),
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
        for (size_t k = 0; k < MOST_INSTANCES; k++) destroy_instance(choice->instances[k]);
        for (size_t k = 0; k < choice->row_count; k++) free(choice->rows[k]);
        pthread_mutex_destroy(&choice->mutex);
    }
    free(choices);
}
