#include "driver/compile/instance.h"

#include <stdlib.h>
#include <string.h>

#include "driver/compile/backend.h"
#include "driver/compile/outcome.h"
#include "driver/compile/point.h"
#include "driver/compile/question.h"
#include "lang/ir/operands.h"
#include "lang/ir/text.h"
#include "launch/guard.h"
#include "launch/variants.h"
#include "lowering/memory.h"

enum { MOST_CANDIDATES = 320 };

const TileFunc *tile_instance_kernel(const TileModule *module) {
    const TileFunc *func = module ? module->first : NULL;
    while (func && func->kind != TILE_FUNC_KERNEL) func = func->next;
    return func;
}

uint64_t tile_instance_find_deciding(const TileImageSignature *signature, const TileInstance *instance) {
    uint64_t set = 0;
    for (size_t k = 0; k < instance->count; k++) {
        const TileFunc *func = tile_instance_kernel(instance->points[k].module);
        for (uint32_t i = 0; func && i < func->body.argument_count; i++) {
            int number = func->parameters[i].asked_value ? tile_image_parameter(signature, func->parameters[i].name) : -1;
            if (number >= 0) set |= UINT64_C(1) << number;
        }
    }
    return set;
}

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
    TileInstance *instance;
    const TileImageSignature *signature;
    const TileView *views;
    TileImageRequest request;
    const TileInput *input;
} Making;

/* Where 0 is a candidate, it stands for what the compiler finds best, and that is asked for. */
static bool is_candidate(const TileTunePoints *found, const int64_t *point, const int64_t *first) {
    for (size_t i = 0; i < found->names.count; i++)
        if (first[i] == 0 && point[i] != 0) return false;
    return true;
}

/* A point of zeros at the end, with room for another; NULL: out of memory. */
static TileInstancePoint *add(TileInstance *instance) {
    if (instance->count == instance->capacity) {
        size_t capacity = instance->capacity ? 2 * instance->capacity : 16;
        TileInstancePoint *points = realloc(instance->points, capacity * sizeof *points);
        if (!points) return NULL;
        instance->points = points;
        instance->capacity = capacity;
    }
    instance->points[instance->count] = (TileInstancePoint){.has_room = false};
    return &instance->points[instance->count++];
}

/* The module, or NULL. */
static const TileModule *add_point(TileUnit *unit, const TileKernelInfo *kernel, const Making *making,
                                   const TileTunePoints *found, const int64_t *point, TileSchedule schedule) {
    TileInstancePoint *added = making->instance->count < MOST_CANDIDATES ? add(making->instance) : NULL;
    if (!added) return NULL;
    TilePoint lowered = {making->signature, &making->request, found->names.items, point, found->names.count, schedule};
    lowered.schedule.keeps = true; /* whether a launch's rows are few enough tiles, the model says */
    added->values = point;
    added->schedule = schedule;
    if (tile_point_lower(unit, kernel, &lowered, tile_unit_backend(unit)->family->estimated_behind))
        added->module = unit->module;
    else
        tile_module_destroy(unit->module);
    unit->module = NULL;
    return added->module;
}

/* What of a schedule makes a difference to the kernel, as long as that is not known. */
typedef struct Tries {
    bool splits, packs, joins, clusters, sharing;
} Tries;

static void forget_point(TileInstance *instance) { tile_module_destroy(instance->points[--instance->count].module); }

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

/* The same with clusters whose blocks share the loops of a program, as long as one can. */
static void add_sharing(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                        const int64_t *point, TileSchedule schedule, const TileModule *plain, Tries *tries) {
    const TileFamily *family = tile_unit_backend(unit)->family;
    for (unsigned i = 0; tries->sharing && plain && family->sharing && !tile_outcome_stays(plain) && !tile_outcome_has_clusters(plain); i++) {
        schedule.cluster = family->sharing(i);
        if (!schedule.cluster) break;
        const TileModule *shared = add_point(unit, kernel, making, found, point, schedule);
        if (!shared) break;
        uint32_t threads = tile_outcome_cluster_threads(shared);
        tries->sharing = threads != 0;
        if (!threads || threads > TILE_MAX_CLUSTER_THREADS) forget_point(making->instance);
    }
}

/* What else there is of the point with a schedule, which has been added as `plain`. */
static void add_others(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                       const int64_t *point, TileSchedule schedule, const TileModule *plain, Tries *tries) {
    add_splits(unit, kernel, making, found, point, schedule, plain, tries);
    add_turns(unit, kernel, making, found, point, schedule, plain);
    add_clusters(unit, kernel, making, found, point, schedule, plain, tries);
    add_sharing(unit, kernel, making, found, point, schedule, plain, tries);
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

static TileFunc *first_of(const TileModule *module) { return module ? module->first : NULL; }

/* Does the text decide how large products are: has a point some of as many rows as wgmma takes, of more than one instruction's columns and of
 * as much of k as a row of shared memory has; or warps or stages, which go with a size? */
static bool decides_sizes(const TileInstance *instance) {
    bool decides = false;
    for (size_t i = 0; i < instance->count; i++)
        for (TileFunc *func = first_of(instance->points[i].module); func; func = func->next) {
            if (func->kind == TILE_FUNC_KERNEL) decides |= !instance->points[i].schedule.turns && (func->warps || func->stages);
            if (func->kind == TILE_FUNC_PHASE) tile_block_walk(&func->body, look_for_large, &decides);
        }
    return decides;
}

/* Is the newest point, with its schedule, the same code as an earlier one? Small tiles become those of others. */
static bool is_repeated(TileInstance *instance) {
    TileInstancePoint *newest = &instance->points[instance->count - 1];
    TileText text = {.arena = tile_arena_create(NULL)};
    if (!text.arena) return false;
    tile_module_print(&text, newest->module, 0);
    newest->code = tile_hash_bytes(tile_text_get(&text), text.length, 0);
    tile_arena_destroy(text.arena);
    for (const TileInstancePoint *point = instance->points; point < newest; point++)
        if (point->code == newest->code) return true;
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

typedef struct Loops {
    bool lists, others; /* loops that go through lists; other ones, and products */
} Loops;

static void find_loop_or_product(TileOp *op, void *found) {
    Loops *loops = found;
    bool of_list = tile_goes_through_list(op), other = op->id == TILE_OP_FOR && !tile_loop_is_of_programs(op);
    loops->lists |= of_list;
    loops->others |= op->id == TILE_OP_DOT || op->id == TILE_OP_WHILE || (other && !of_list);
}

/* Is there a phase of small programs, which begin, move a few vectors and end, or go through a list: of fewer than four warps that the text does not
 * ask for? */
static bool has_small_programs(const TileModule *module, bool *lists) {
    enum { SMALL_THREADS = 2 * TILE_WARP_THREADS };
    bool small = false;
    for (TileFunc *func = module ? module->first : NULL; func; func = func->next) {
        bool other = func->kind != TILE_FUNC_PHASE || func->threads > SMALL_THREADS;
        Loops loops = {false, other};
        if (func->kind == TILE_FUNC_KERNEL && func->warps) return false;
        if (!other) tile_block_walk(&func->body, find_loop_or_product, &loops);
        small |= !loops.others;
        *lists |= loops.lists && !loops.others;
    }
    return small;
}

/* The point `plain` of small programs with so many of them computed together that they move as much as four warps do. */
static void add_joined_lanes(TileUnit *unit, const TileKernelInfo *kernel, const Making *making, const TileTunePoints *found,
                             const int64_t *point, const TileModule *plain) {
    const TileFamily *family = tile_unit_backend(unit)->family;
    TileSchedule schedule = {0};
    bool lists = false;
    if (!family->joined_lanes || !has_small_programs(plain, &lists)) return;
    for (unsigned i = 0; family->joined_lanes(i, lists, &schedule.joined_lanes, &schedule.joined_axis); i++) {
        const TileModule *joined = add_point(unit, kernel, making, found, point, schedule);
        if (joined && (!tile_outcome_is_joined(joined) || is_repeated(making->instance))) forget_point(making->instance);
    }
}

static void find_product(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_DOT; }

static bool has_products(const TileModule *module) {
    bool found = false;
    for (TileFunc *func = first_of(module); func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE) tile_block_walk(&func->body, find_product, &found);
    return found;
}

/* Has a launch integers that are small enough for a question to have them exactly? */
static bool has_exact(const Making *making) {
    uint64_t exact = tile_question_exact(making->signature, making->views, UINT64_MAX);
    for (uint32_t i = 0; i < making->signature->parameter_count; i++) {
        const TileImageParameter *parameter = &making->signature->parameters[i];
        bool integer = parameter->kind == TILE_PARAMETER_SCALAR && tile_host_type_class(parameter->type) != TILE_HOST_CLASS_FLOAT;
        if (integer && exact >> i & 1) return true;
    }
    return false;
}

/* A launch that comes again has code for the integers that decide its bounds, strides and steps (launch/values.h): loops over a window whose extent is known have their loads
 * together there. That is the code to look at. Of integers that are not small a question knows about where they are, which is no value. Grids with products are measured without. */
static void tell_values(TileUnit *unit, const TileKernelInfo *kernel, Making *making, const TileTunePoints *found) {
    TileInstance *instance = making->instance;
    if (!has_exact(making)) return;
    for (size_t i = 0; i < found->points.count && !instance->count; i++) add_point(unit, kernel, making, found, found->points.items[i], (TileSchedule){0});
    if (!instance->count) return;
    if (!has_products(instance->points[0].module))
        instance->known = tile_question_exact(making->signature, making->views, tile_instance_find_deciding(making->signature, instance));
    for (uint32_t i = 0; i < making->signature->parameter_count; i++) {
        if (!(instance->known >> i & 1)) continue;
        making->request.facts[i] |= TILE_GUARD_VALUE;
        making->request.values[i] = (int64_t)making->views[i].scalar;
    }
    instance->request = making->request;
    while (instance->count) forget_point(instance);
}

static tile_status make_instance(TileUnit *unit, void *state) {
    Making *making = state;
    TileInstance *instance = making->instance;
    TileProgramInfo program = {0};
    TileTunePoints found;
    TILE_TRY(tile_unit_list(unit, &program));
    const TileKernelInfo *kernel = &program.kernels.items[making->signature - making->input->signatures];
    TILE_TRY(tile_tuned_points(unit, kernel, making->signature, making->request.generics, &found));
    Tries tries = {true, true, true, true, true};
    tell_values(unit, kernel, making, &found);
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

/* The unit stays, without the module that is now the instance's. */
static bool keep(TileUnit *unit) {
    unit->module = tile_module_create(unit->context);
    unit->keep = unit->module != NULL;
    return unit->keep;
}

/* The unit stays, with all modules; what ran out of memory has none. */
static tile_status keep_instance(TileUnit *unit, void *state) {
    Making *making = state;
    TileInstance *instance = making->instance;
    TILE_TRY(make_instance(unit, state));
    if (!instance->unit) return TILE_OK;
    for (size_t i = 0; i < instance->count; i++)
        if (instance->points[i].module) tile_arena_set_guard(instance->points[i].module->arena, NULL);
    if (!keep(unit)) instance->unit = NULL;
    return TILE_OK;
}

void tile_instance_destroy(TileInstance *instance) {
    if (!instance) return;
    for (size_t i = 0; i < instance->count; i++) tile_module_destroy(instance->points[i].module);
    for (size_t i = 0; i < instance->other_count; i++) tile_unit_destroy(instance->others[i]);
    if (instance->unit) tile_unit_destroy(instance->unit);
    free(instance->others);
    free(instance->points);
    free(instance);
}

TileInstance *tile_instance_create(TileInput *input, const TileImageSignature *signature, const TileImageRequest *request,
                                   const TileView *views, uint64_t key) {
    uint64_t maps = tile_question_maps(signature, views), no_gaps = tile_question_dense(signature, views),
             rows = tile_question_rows(signature, views);
    Making making = {.signature = signature, .views = views, .request = *request, .input = input};
    making.request.complete = false;
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        making.request.facts[i] = usual_facts(&signature->parameters[i], maps >> i & 1, no_gaps >> i & 1, rows);
    making.instance = calloc(1, sizeof *making.instance);
    if (!making.instance) return NULL;
    making.instance->key = key;
    making.instance->request = making.request;
    /* The launch itself reports what is wrong with the kernel. */
    if (tile_unit_run(input, keep_instance, &making, NULL) != TILE_OK && making.instance->unit)
        making.instance->unit = NULL;
    return making.instance;
}

/* ---- other numbers of warps ---- */

typedef struct Other {
    TileInstance *instance;
    const TileImageSignature *signature;
    size_t base;
    uint32_t warps;
    bool kept;
} Other;

static bool has_room_for_other(TileInstance *instance) {
    TileUnit **others = realloc(instance->others, (instance->other_count + 1) * sizeof *others);
    if (others) instance->others = others;
    return others;
}

/* The unit stays if its module has a phase with other blocks than the base's. */
static tile_status make_other(TileUnit *unit, void *state) {
    Other *other = state;
    TileInstance *instance = other->instance;
    const TileInstancePoint *base = &instance->points[other->base];
    TileProgramInfo program = {0};
    TILE_TRY(tile_unit_list(unit, &program));
    const TileKernelInfo *kernel = &program.kernels.items[other->signature - unit->input->signatures];
    TilePoint lowered = {other->signature, &instance->request, instance->names.items, base->values, instance->names.count, base->schedule};
    lowered.schedule.warps = other->warps;
    bool good = tile_point_lower(unit, kernel, &lowered, tile_unit_backend(unit)->family->estimated_behind);
    TileModule *module = unit->module;
    if (!good || !tile_outcome_threads_differ(base->module, module) || !has_room_for_other(instance)) return TILE_OK;
    if (!keep(unit)) {
        tile_module_destroy(module);
        return TILE_OK;
    }
    tile_arena_set_guard(module->arena, NULL);
    instance->others[instance->other_count++] = unit;
    instance->points[instance->count - 1].module = module;
    other->kept = true;
    return TILE_OK;
}

size_t tile_instance_with_warps(TileInput *input, const TileImageSignature *signature, TileInstance *instance, size_t base,
                                uint32_t warps) {
    for (size_t i = base; i < instance->count; i++) {
        const TileInstancePoint *point = &instance->points[i];
        if (point->base == base + 1 && point->schedule.warps == warps) return point->module ? i : SIZE_MAX;
    }
    TileInstancePoint *point = add(instance);
    if (!point) return SIZE_MAX;
    point->base = base + 1;
    point->values = instance->points[base].values;
    point->schedule = instance->points[base].schedule;
    point->schedule.warps = warps;
    Other other = {.instance = instance, .signature = signature, .base = base, .warps = warps};
    tile_unit_run(input, make_other, &other, NULL);
    return other.kept ? instance->count - 1 : SIZE_MAX;
}
