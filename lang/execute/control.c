/* Regions, loops and calls, without recursion: an op with regions pushes a frame, and the terminator of the region
 * decides whether the region is executed again. */
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

/* ---- copying values ---- */

/* When registers were written is carried along with their values. */
static bool move_times(TileExecutor *e, const ExecInstruction *in, unsigned first, uint32_t count, uint32_t to) {
    uint64_t *written = tile_exec_frame(e)->activation->written, *times = tile_exec_scratch(e, count * sizeof *times);
    if (!times) return false;
    for (uint32_t i = 0; i < count; i++) times[i] = written[in->operands[first + i]];
    if (count) memcpy(written + to, times, count * sizeof *times);
    return true;
}

/* Copies operands first .. first + count of the terminator to consecutive registers. If one of these is also an
 * operand, all are copied to scratch first. */
static bool move_values(TileExecutor *e, const ExecInstruction *in, unsigned first, uint32_t count, uint32_t to) {
    const ExecActivation *activation = tile_exec_frame(e)->activation;
    if (activation->written && !move_times(e, in, first, count, to)) return false;
    if (!in->staged) {
        for (uint32_t i = 0; i < count; i++)
            tile_exec_copy(tile_exec_register(activation, in->operands[first + i]),
                           tile_exec_register(activation, to + i));
        return true;
    }
    size_t lanes = 0;
    for (uint32_t i = 0; i < count; i++) lanes += tile_exec_register(activation, to + i).count;
    size_t words = activation->slack ? 2 * lanes : lanes;
    uint64_t *values = tile_exec_scratch(e, words * sizeof *values + lanes + count);
    if (!values) return false;
    double *slack = activation->slack ? (double *)(values + lanes) : NULL;
    uint8_t *poison = (uint8_t *)(values + words), *any = poison + lanes;
    size_t at = 0;
    for (uint32_t i = 0; i < count; at += tile_exec_register(activation, to + i++).count) {
        ExecValue from = tile_exec_register(activation, in->operands[first + i]);
        tile_exec_copy(from, (ExecValue){values + at, poison + at, any + i, from.count, slack ? slack + at : NULL});
    }
    at = 0;
    for (uint32_t i = 0; i < count; i++) {
        ExecValue into = tile_exec_register(activation, to + i);
        tile_exec_copy((ExecValue){values + at, poison + at, any + i, into.count, slack ? slack + at : NULL}, into);
        at += into.count;
    }
    return true;
}

static void copy_operands(TileExecutor *e, const ExecInstruction *in, unsigned first, uint32_t to) {
    uint64_t *written = tile_exec_frame(e)->activation->written;
    for (uint32_t i = first; i < in->operand_count; i++) {
        tile_exec_copy(tile_exec_operand(e, in, i), tile_exec_value(e, to + i - first));
        if (written) written[to + i - first] = written[in->operands[i]];
    }
}

static ExecFrame *enter(TileExecutor *e, const ExecInstruction *in, unsigned region) {
    const ExecFrame *outer = tile_exec_frame(e);
    return tile_exec_push(
        e, &(ExecFrame){
               .activation = outer->activation, .code = &in->regions[region], .owner = in, .active = outer->active});
}

static void leave(TileExecutor *e) { e->depth--; }

/* ---- order ---- */

static int64_t greatest_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The iterations 0 .. end in order or, with a seed, in an order given by a random affine permutation. */
static void scramble(TileExecutor *e, ExecFrame *frame) {
    frame->factor = 1;
    frame->shift = 0;
    if (!e->options.seed || frame->end < 2) return;
    do frame->factor = tile_exec_random(e) % (uint64_t)frame->end;
    while (greatest_divisor(frame->end, (int64_t)frame->factor) != 1);
    frame->shift = tile_exec_random(e) % (uint64_t)frame->end;
}

static int64_t point(const ExecFrame *frame) {
    unsigned __int128 number = (unsigned __int128)frame->index * frame->factor + frame->shift;
    return frame->base + (int64_t)(number % (uint64_t)frame->end);
}

/* ---- grid ---- */

static void set_program(TileExecutor *e, const ExecInstruction *in) {
    const ExecFrame *frame = tile_exec_frame(e);
    int64_t rest = point(frame);
    for (uint32_t i = in->operand_count; i-- > 0;) {
        int64_t extent = (int64_t)tile_exec_operand(e, in, i).lanes[0];
        tile_exec_set_scalar(tile_exec_value(e, frame->code->first_argument + i), (uint64_t)(rest % extent));
        rest /= extent;
    }
}

bool tile_exec_grid(TileExecutor *e, const ExecInstruction *in) {
    int64_t programs = 1;
    for (uint32_t i = 0; i < in->operand_count; i++) {
        int64_t extent;
        if (!tile_exec_integer(e, in, i, "an extent", &extent)) return false;
        if (extent < 0) extent = 0;
        if (__builtin_mul_overflow(programs, extent, &programs)) return tile_exec_fault(e, in, "has too many programs");
    }
    if (!programs) return true;
    if (e->options.phases) return tile_exec_start_phases(e, in, programs);
    ExecFrame *frame = enter(e, in, 0);
    if (!frame) return false;
    frame->end = programs;
    scramble(e, frame);
    set_program(e, in);
    return true;
}

static bool next_program(TileExecutor *e, ExecFrame *frame) {
    frame->next = 0;
    if (++frame->index == frame->end)
        leave(e);
    else
        set_program(e, frame->owner);
    return true;
}

/* ---- for ---- */

bool tile_exec_for(TileExecutor *e, const ExecInstruction *in) {
    int64_t lo, hi, step;
    if (!tile_exec_integer(e, in, 0, "a bound", &lo) || !tile_exec_integer(e, in, 1, "a bound", &hi) ||
        !tile_exec_integer(e, in, 2, "the step", &step))
        return false;
    if (step <= 0) return tile_exec_fault(e, in, "the step is not positive");
    if (lo >= hi) {
        copy_operands(e, in, 3, in->result);
        return true;
    }
    copy_operands(e, in, 3, in->regions[0].first_argument + 1);
    ExecFrame *frame = enter(e, in, 0);
    if (!frame) return false;
    frame->index = lo;
    frame->end = hi;
    frame->step = step;
    tile_exec_set_scalar(tile_exec_value(e, frame->code->first_argument), (uint64_t)lo);
    return true;
}

static bool next_iteration(TileExecutor *e, ExecFrame *frame, const ExecInstruction *yield) {
    const ExecInstruction *in = frame->owner;
    bool ends = __builtin_add_overflow(frame->index, frame->step, &frame->index) || frame->index >= frame->end;
    uint32_t to = ends ? in->result : frame->code->first_argument + 1;
    if (!move_values(e, yield, 0, yield->operand_count, to)) return false;
    if (!ends && e->thread_count && tile_op_integer(in->op, TILE_ATTRIBUTE_ONE_PROGRAM, 0))
        return tile_exec_fault(e, in, "the block has a second program");
    if (ends) {
        leave(e);
        return true;
    }
    frame->next = 0;
    tile_exec_set_scalar(tile_exec_value(e, frame->code->first_argument), (uint64_t)frame->index);
    return true;
}

/* ---- while, if ---- */

bool tile_exec_while(TileExecutor *e, const ExecInstruction *in) {
    copy_operands(e, in, 0, in->regions[0].first_argument);
    return enter(e, in, 0) != NULL;
}

bool tile_exec_condition(TileExecutor *e, const ExecInstruction *in) {
    ExecFrame *frame = tile_exec_frame(e);
    const ExecInstruction *loop = frame->owner;
    int64_t holds;
    if (!tile_exec_integer(e, in, 0, "the condition", &holds)) return false;
    if (!move_values(e, in, 1, in->operand_count - 1, holds ? loop->regions[1].first_argument : loop->result))
        return false;
    if (holds) {
        frame->code = &loop->regions[1];
        frame->next = 0;
    } else {
        leave(e);
    }
    return true;
}

/* The active lanes diverge; with one lane, one of the sets is empty, and its branch is not entered. */
bool tile_exec_if(TileExecutor *e, const ExecInstruction *in) {
    int64_t holds;
    if (!tile_exec_integer(e, in, 0, "the condition", &holds)) return false;
    uint64_t all = tile_exec_frame(e)->active, taken = holds ? all : 0;
    ExecFrame *frame = enter(e, in, taken ? 0 : 1);
    if (frame) frame->active = taken ? taken : all & ~taken;
    return frame != NULL;
}

/* ---- loop ---- */

static uint32_t stripe_count(const ExecInstruction *in) { return in->stripes ? TILE_STRIPES : 1; }

static TileScalar carried_scalar(const ExecInstruction *in, uint32_t i) { return in->op->results[i].type->scalar; }

/* The accumulators of loop-carried value i, lane `lane`. */
static ExecValue accumulator(TileExecutor *e, const ExecInstruction *in, uint32_t i, uint32_t lane) {
    ExecValue all = tile_exec_value(e, in->hidden);
    uint32_t at = i * stripe_count(in) + lane;
    return (ExecValue){all.lanes + at, all.poison + at, all.any, 1, NULL};
}

/* Every accumulator starts as the init operand; for a striped sum that is the identity element. */
static void start_accumulators(TileExecutor *e, const ExecInstruction *in) {
    ExecValue all = tile_exec_value(e, in->hidden);
    memset(all.poison, 0, all.count);
    *all.any = 1;
    for (uint32_t i = 0; i + 2 < in->operand_count; i++) {
        ExecValue init = tile_exec_operand(e, in, i + 2);
        for (uint32_t s = 0; s < stripe_count(in); s++) {
            ExecValue acc = accumulator(e, in, i, s);
            acc.lanes[0] = init.lanes[0];
            acc.poison[0] = tile_exec_poisoned(init, 0);
        }
    }
}

/* Combines x into accumulator `lane` of loop-carried value i. An arg_max also updates the `with` values; ties are
 * decided by the first of those, the index. */
static void combine_arg(TileExecutor *e, const ExecInstruction *in, uint32_t i, uint32_t lane, const ExecValue *x) {
    const TileAttribute *kinds = tile_op_get(in->op, TILE_ATTRIBUTE_COMBINE);
    bool with = i + 1 < kinds->count && kinds->integers[i + 1] == TILE_COMBINE_WITH;
    ExecValue best = accumulator(e, in, i, lane);
    int64_t index = with ? (int64_t)x[i + 1].lanes[0] : 0;
    int64_t best_index = with ? (int64_t)accumulator(e, in, i + 1, lane).lanes[0] : 0;
    uint8_t poison = best.poison[0] | tile_exec_poisoned(x[i], 0);
    bool better = tile_exec_is_better(kinds->integers[i] == TILE_COMBINE_ARG_MAX, carried_scalar(in, i), x[i].lanes[0],
                                      index, best.lanes[0], best_index);
    for (uint32_t j = i; j < kinds->count && (j == i || kinds->integers[j] == TILE_COMBINE_WITH); j++) {
        ExecValue acc = accumulator(e, in, j, lane);
        if (better) acc.lanes[0] = x[j].lanes[0];
        acc.poison[0] = poison | (better ? tile_exec_poisoned(x[j], 0) : acc.poison[0]);
    }
}

/* x has one value for each loop-carried one. */
static void combine(TileExecutor *e, const ExecInstruction *in, uint32_t lane, const ExecValue *x) {
    const TileAttribute *kinds = tile_op_get(in->op, TILE_ATTRIBUTE_COMBINE);
    for (uint32_t i = 0; i < kinds->count; i++) {
        int64_t kind = kinds->integers[i];
        if (kind == TILE_COMBINE_WITH) continue;
        if (kind == TILE_COMBINE_ARG_MAX || kind == TILE_COMBINE_ARG_MIN) {
            combine_arg(e, in, i, lane, x);
            continue;
        }
        ExecValue acc = accumulator(e, in, i, lane);
        TileScalar scalar = carried_scalar(in, i);
        uint64_t operands[] = {acc.lanes[0], x[i].lanes[0]};
        tile_eval(tile_eval_combiner(kind), scalar, scalar, operands, acc.lanes);
        acc.poison[0] |= tile_exec_poisoned(x[i], 0);
    }
}

static bool add_contribution(TileExecutor *e, const ExecInstruction *in, const ExecInstruction *yield, int64_t index) {
    ExecValue *x = tile_exec_scratch(e, in->op->result_count * sizeof *x);
    if (!x) return false;
    for (uint32_t i = 0; i < in->op->result_count; i++) x[i] = tile_exec_operand(e, yield, i);
    combine(e, in, in->stripes ? (uint32_t)((uint64_t)index % TILE_STRIPES) : 0, x);
    return true;
}

static bool finish_reduction(TileExecutor *e, const ExecInstruction *in) {
    uint32_t count = in->op->result_count;
    ExecValue *x = tile_exec_scratch(e, count * sizeof *x);
    if (!x) return false;
    for (uint32_t half = stripe_count(in) / 2; half; half /= 2)
        for (uint32_t lane = 0; lane < half; lane++) {
            for (uint32_t i = 0; i < count; i++) x[i] = accumulator(e, in, i, lane + half);
            combine(e, in, lane, x);
        }
    for (uint32_t i = 0; i < count; i++) {
        ExecValue acc = accumulator(e, in, i, 0), result = tile_exec_value(e, in->result + i);
        tile_exec_set_scalar(result, acc.lanes[0]);
        if (acc.poison[0]) tile_exec_set_poison(e, result, 0, acc.poison[0]);
    }
    return true;
}

static bool is_reduce(const ExecInstruction *in) {
    return tile_op_integer(in->op, TILE_ATTRIBUTE_LOOP_KIND, 0) == TILE_LOOP_KIND_REDUCE;
}

/* Sets the region's arguments for the frame's current iteration. Those for a reduction's accumulators have no meaning
 * in the region. */
static void set_point(TileExecutor *e, ExecFrame *frame, const ExecInstruction *in) {
    uint32_t first = frame->code->first_argument;
    tile_exec_set_scalar(tile_exec_value(e, first), (uint64_t)point(frame));
    if (is_reduce(in))
        for (uint32_t i = 1; i < frame->code->argument_count; i++)
            tile_exec_set_poison(e, tile_exec_value(e, first + i), 0, EXEC_POISON);
}

bool tile_exec_loop(TileExecutor *e, const ExecInstruction *in) {
    int64_t lo, hi, points, extent = tile_op_integer(in->op, TILE_ATTRIBUTE_EXTENT, 0);
    if (!tile_exec_integer(e, in, 0, "a bound", &lo) || !tile_exec_integer(e, in, 1, "a bound", &hi)) return false;
    if (lo >= hi) {
        copy_operands(e, in, 2, in->result);
        return true;
    }
    if (__builtin_sub_overflow(hi, lo, &points) || (extent && points > extent))
        return tile_exec_fault(e, in, "runs from %lld to %lld, beyond its extent of %lld", (long long)lo, (long long)hi,
                               (long long)extent);
    if (is_reduce(in))
        start_accumulators(e, in);
    else
        copy_operands(e, in, 2, in->regions[0].first_argument + 1);
    ExecFrame *frame = enter(e, in, 0);
    if (!frame) return false;
    frame->base = lo;
    frame->end = points;
    frame->factor = 1;
    if (tile_op_integer(in->op, TILE_ATTRIBUTE_LOOP_KIND, 0) == TILE_LOOP_KIND_PARALLEL) scramble(e, frame);
    set_point(e, frame, in);
    return true;
}

static bool next_point(TileExecutor *e, ExecFrame *frame, const ExecInstruction *yield) {
    const ExecInstruction *in = frame->owner;
    if (is_reduce(in) && !add_contribution(e, in, yield, point(frame))) return false;
    bool ends = ++frame->index == frame->end;
    if (is_reduce(in)) {
        if (ends && !finish_reduction(e, in)) return false;
    } else if (!move_values(e, yield, 0, yield->operand_count, ends ? in->result : frame->code->first_argument + 1)) {
        return false;
    }
    frame->next = 0;
    if (ends)
        leave(e);
    else
        set_point(e, frame, in);
    return true;
}

/* ---- terminators ---- */

bool tile_exec_yield(TileExecutor *e, const ExecInstruction *in) {
    ExecFrame *frame = tile_exec_frame(e);
    const ExecInstruction *owner = frame->owner;
    switch (owner->op->id) {
    case TILE_OP_FOR: return next_iteration(e, frame, in);
    case TILE_OP_LOOP: return next_point(e, frame, in);
    case TILE_OP_FOLD_LOOP: return tile_exec_next_fold_point(e, frame, in);
    case TILE_OP_GRID: return next_program(e, frame);
    case TILE_OP_PARTITIONS: return tile_exec_end_partition(e);
    case TILE_OP_WHILE:
        frame->code = &owner->regions[0];
        frame->next = 0;
        return move_values(e, in, 0, in->operand_count, owner->regions[0].first_argument);
    default: /* if */
        if (!move_values(e, in, 0, in->operand_count, owner->result)) return false;
        leave(e);
        return true;
    }
}

/* Results are copied to the call's registers in the caller's activation; of the outermost function they are kept for
 * tile_executor_result. */
bool tile_exec_return(TileExecutor *e, const ExecInstruction *in) {
    ExecActivation *activation = tile_exec_frame(e)->activation;
    const ExecInstruction *call = tile_exec_frame(e)->owner;
    if (activation == e->root) {
        e->results = in->operands;
        leave(e);
        return true;
    }
    leave(e);
    for (uint32_t i = 0; call && i < in->operand_count; i++)
        tile_exec_copy(tile_exec_register(activation, in->operands[i]), tile_exec_value(e, call->result + i));
    tile_exec_deactivate(e, activation);
    return true;
}

bool tile_exec_call(TileExecutor *e, const ExecInstruction *in) {
    const char *name = tile_op_get(in->op, TILE_ATTRIBUTE_CALLEE)->text;
    TileFunc *func = tile_func_find(tile_exec_frame(e)->activation->program->func->module, name);
    if (!func) return tile_exec_fault(e, in, "there is no function %s", name);
    ExecActivation *activation = tile_exec_activate(e, tile_exec_decode(e, func));
    if (!activation) return false;
    uint32_t first = activation->program->body.first_argument;
    for (uint32_t i = 0; i < in->operand_count; i++)
        tile_exec_copy(tile_exec_operand(e, in, i), tile_exec_register(activation, first + i));
    return tile_exec_push(e, &(ExecFrame){.activation = activation,
                                          .code = &activation->program->body,
                                          .owner = in,
                                          .active = tile_exec_frame(e)->active}) != NULL;
}
