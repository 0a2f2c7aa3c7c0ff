/* Purpose: go through a tile's lanes as its indices count them. Where a tile of 96 lanes is a `reshape` of [12, 8], or where an
 * index is divided by 32, each lane has a quotient and a remainder of its own: vectors of divisions, which machines have not, and
 * accesses that are gathered though they are neighbours but at every 32nd lane. So the loop over lanes becomes two, of which
 * the inner one goes through the remainder: quotients are the same for all of its lanes, and the remainder is its index.
 * A remainder of few numbers (pairs) has no vectors; its points are computed together, and the outer loop has the lanes.
 *
 * Run: --passes=cpu-digits,canonicalise,cse,dce --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %s: ptr<global>) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %row = const {value = 32} : i64
 *       %n = const {value = 96} : i64
 *       loop %zero, %n {loop = parallel, extent = 96} (%i: i64) {
 *         %a = mul %i, %four : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         %v = load %p : f32
 *         %b = div %i, %row : i64
 *         %c = mul %b, %four : i64
 *         %q = ptr_add %s, %c : ptr<global>
 *         %t = load %q : f32
 *         %r = mul %v, %t : f32
 *         store %r, %p
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %s: ptr<global>) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %0 = const {value = 3} : i64
 *       loop %zero, %0 {loop = parallel, extent = 3} (%b: i64) {
 *         %1 = const {value = 32} : i64
 *         %2 = mul %b, %1 : i64
 *         loop %zero, %1 {loop = parallel, extent = 32} (%3: i64) {
 *           %4 = add %2, %3 : i64
 *           %a = mul %4, %four : i64
 *           %p = ptr_add %x, %a : ptr<global>
 *           %v = load %p : f32
 *           %c = mul %b, %four : i64
 *           %q = ptr_add %s, %c : ptr<global>
 *           %t = load %q : f32
 *           %r = mul %v, %t : f32
 *           store %r, %p
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * It is done where an address follows from the quotient or the remainder, if accesses then cost less, by the model by which
 * loops are chosen; what is only computed with them is computed in vectors. Whether a number is a multiple of its divisor, and
 * not near the ends of i64, may be known at run time only: then the loop is there twice, behind a test. What does not rise to
 * a multiple of the divisor together with the loop (`(i + 1) / 32`) is left to cpu-vectorise.
 * Needs: loops from 0 on; canonicalise, cse and licm behind it. Keeps: the results, since the iterations may run in any order.
 * Cost: linear in the ops of a loop's body, which is there up to MOST_POINTS times, with at most MOST_OPS ops, and twice more where there is a test. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum { MOST_TERMS = 12, MOST_DEPTH = 16, MOST_POINTS = 8, MOST_OPS = 256, LARGEST = 1 << 24 /* divisor */ };

/* Numbers from 0 to FAR plus those of a loop's iterations do not wrap. */
#define FAR (INT64_C(1) << 50)

/* constant + the sum of scale * value; each of these values is another one. */
typedef struct Term {
    TileValue *value;
    int64_t scale;
} Term;

typedef struct Sum {
    Term terms[MOST_TERMS];
    unsigned count;
    int64_t constant;
    bool known; /* false: it has too many terms, or numbers that are too large */
} Sum;

typedef struct Digits {
    TilePassContext *context;
    TileModule *module;
    TileIndices *indices;
    TileOp *loop;
    const char *reason; /* why a division stays */
    const TileOp *culprit;
    bool changed;
} Digits;

/* ---- sums ---- */

static void add_term(Sum *sum, TileValue *value, int64_t scale) {
    for (unsigned i = 0; i < sum->count; i++)
        if (sum->terms[i].value == value) {
            sum->known &= !__builtin_add_overflow(sum->terms[i].scale, scale, &sum->terms[i].scale);
            return;
        }
    if (sum->count == MOST_TERMS)
        sum->known = false;
    else
        sum->terms[sum->count++] = (Term){value, scale};
}

static void add_value(Sum *sum, TileValue *value, int64_t scale, unsigned depth) {
    int64_t number;
    const TileOp *op = value->op;
    if (tile_value_integer(value, &number)) {
        sum->known &= !__builtin_mul_overflow(number, scale, &number) && !__builtin_add_overflow(sum->constant, number, &sum->constant);
    } else if (op && depth < MOST_DEPTH && (op->id == TILE_OP_ADD || op->id == TILE_OP_SUB)) {
        add_value(sum, tile_op_operand(op, 0), scale, depth + 1);
        sum->known &= scale != INT64_MIN;
        add_value(sum, tile_op_operand(op, 1), op->id == TILE_OP_ADD ? scale : -scale, depth + 1);
    } else if (op && depth < MOST_DEPTH && op->id == TILE_OP_MUL && tile_value_integer(tile_op_operand(op, 1), &number) &&
               !__builtin_mul_overflow(number, scale, &number)) {
        add_value(sum, tile_op_operand(op, 0), number, depth + 1);
    } else {
        add_term(sum, value, scale);
    }
}

static Sum sum_of(TileValue *value) {
    Sum sum = {.known = true};
    if (value->type->scalar != TILE_I64) sum.known = false;
    if (sum.known) add_value(&sum, value, 1, 0);
    return sum;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* The greatest divisor of `of` by which all that the term may be can be divided. */
static int64_t common(Digits *x, const Term *term, int64_t of) {
    TileIndexRange range = tile_index_range(x->indices, term->value);
    int64_t own = range.multiple ? gcd(range.multiple, of) : of;
    return own == of || term->scale == 0 ? of : gcd(own * gcd(term->scale, of), of);
}

/* What the sum of some terms may be, as integers that do not wrap; false: more than 64 bits have. */
static bool bounds_of(Digits *x, const Sum *sum, const bool *taken, int64_t *lo, int64_t *hi) {
    __int128 low = 0, high = 0;
    for (unsigned i = 0; i < sum->count; i++) {
        if (taken && !taken[i]) continue;
        TileIndexRange range = tile_index_range(x->indices, sum->terms[i].value);
        __int128 a = (__int128)range.lo * sum->terms[i].scale, b = (__int128)range.hi * sum->terms[i].scale;
        low += a < b ? a : b;
        high += a < b ? b : a;
    }
    *lo = (int64_t)low;
    *hi = (int64_t)high;
    return low >= INT64_MIN && high <= INT64_MAX;
}

/* Powers of two divide what has wrapped around as well. */
static bool is_power(int64_t number) { return (number & (number - 1)) == 0; }

/* ---- divisions ---- */

static bool is_division(const TileOp *op, int64_t *divisor) {
    return (op->id == TILE_OP_DIV || op->id == TILE_OP_REM) && op->results[0].type->scalar == TILE_I64 &&
           tile_value_integer(tile_op_operand(op, 1), divisor) && *divisor > 1 && *divisor <= LARGEST;
}

/* Does an address follow from the division? */
static bool is_of_address(Digits *x, const TileOp *division) {
    TileMap follows;
    tile_map_init(&follows, x->context->scratch);
    tile_map_set(&follows, &division->results[0], (void *)division);
    for (const TileOp *op = division->next; op; op = op->next) {
        bool any = false;
        for (unsigned i = 0; i < op->operand_count; i++) any |= tile_map_get(&follows, tile_op_operand(op, i)) != NULL;
        if (any && op->id == TILE_OP_PTR_ADD) return true;
        if (any && op->result_count == 1 && op->id != TILE_OP_LOAD) tile_map_set(&follows, &op->results[0], (void *)op);
    }
    return false;
}

/* A division of what rises by `step` in each iteration, from a multiple of the divisor and less than a step on: how many iterations
 * have one quotient. 0: it is no such division. */
static int64_t period_of(Digits *x, const TileOp *op, int64_t divisor) {
    TileValue *index = x->loop->regions[0].arguments[0];
    Sum sum = sum_of(tile_op_operand(op, 0));
    bool rest[MOST_TERMS] = {false};
    int64_t step = 0, lo, hi, offset = ((sum.constant % divisor) + divisor) % divisor;
    for (unsigned i = 0; i < sum.count; i++) {
        if (sum.terms[i].value == index)
            step = sum.terms[i].scale;
        else
            rest[i] = common(x, &sum.terms[i], divisor) != divisor;
    }
    if (!sum.known || step < 1 || divisor % step || divisor == step) return 0;
    x->culprit = op;
    int64_t small = offset % step, all = divisor / step, period = all <= MOST_POINTS ? all : gcd(divisor, offset - small) / step; /* points have numbers of their own */
    if (!bounds_of(x, &sum, rest, &lo, &hi) || lo < -small || hi >= step - small)
        x->reason = "the first number that is divided may be no multiple of the divisor";
    else if (!bounds_of(x, &sum, NULL, &lo, &hi) && (!is_power(divisor) || period <= MOST_POINTS))
        x->reason = "the number that is divided may have more than 64 bits";
    else
        return period;
    return 0;
}

/* The ops of the loop's body without those whose results nothing needs, which dce removes: copies have none of these. */
static unsigned count_ops(Digits *x) {
    TileMap needed;
    unsigned count = 0;
    tile_map_init(&needed, x->context->scratch);
    for (const TileOp *op = x->loop->regions[0].last->previous; op; op = op->previous) {
        bool live = !tile_op_is_pure(op);
        for (unsigned i = 0; i < op->result_count && !live; i++)
            for (const TileUse *use = op->results[i].first_use; use && !live; use = use->next)
                live = use->user == x->loop->regions[0].last || tile_map_get(&needed, use->user);
        if (live) tile_map_set(&needed, op, (void *)op);
        count += live;
    }
    return count;
}

/* Of which number of lanes the loop's quotients and remainders are counted; 0: of none. */
static int64_t find_period(Digits *x) {
    int64_t found = 0, divisor;
    for (const TileOp *op = x->loop->regions[0].first; op != x->loop->regions[0].last; op = op->next) {
        if (op->region_count) return 0;
        if (!is_division(op, &divisor) || !is_of_address(x, op)) continue;
        int64_t period = period_of(x, op, divisor);
        if (period) found = gcd(found, period);
    }
    return found;
}

/* ---- what divisions become ---- */

static TileValue *plus(TileBuilder *b, TileValue *sum, TileValue *value, int64_t scale) {
    if (scale == 0) return sum;
    if (scale != 1) value = tile_build_binary(b, TILE_OP_MUL, value, tile_build_i64(b, scale));
    return sum ? tile_build_binary(b, TILE_OP_ADD, sum, value) : value;
}

static TileValue *plus_number(TileBuilder *b, TileValue *sum, int64_t number) {
    if (sum && !number) return sum;
    return plus(b, sum, tile_build_i64(b, number), 1);
}

/* The terms that are multiples of `unit`, divided by it. */
static TileValue *quotient_of(TileBuilder *b, const Sum *sum, const bool *taken, int64_t unit) {
    TileValue *value = NULL;
    for (unsigned i = 0; i < sum->count; i++) {
        if (!taken[i]) continue;
        TileValue *term = sum->terms[i].value;
        int64_t scale = sum->terms[i].scale, shared = gcd(scale, unit);
        if (unit / shared != 1) term = tile_build_binary(b, TILE_OP_DIV, term, tile_build_i64(b, unit / shared));
        value = plus(b, value, term, scale / shared);
    }
    return value;
}

/* What is divided: multiples of the divisor, multiples of `unit`, which divides it, and a rest below `unit`. */
typedef struct Parts {
    Sum sum;
    bool whole[MOST_TERMS], units[MOST_TERMS], rest[MOST_TERMS];
    int64_t divisor, unit, offset; /* offset: the constant's remainder */
    bool below;                    /* the units and the rest are together less than the divisor */
    bool exact;                    /* false: the sum may wrap, and the divisor is a power of two */
} Parts;

/* The unit is that of the outer loop's index; false: the rest may be larger. */
static bool take_apart(Digits *x, const TileOp *op, const TileValue *outer, Parts *parts) {
    Sum *sum = &parts->sum;
    int64_t divisor = parts->divisor, lo, hi;
    *sum = sum_of(tile_op_operand(op, 0));
    parts->unit = 0;
    parts->offset = ((sum->constant % divisor) + divisor) % divisor;
    for (unsigned i = 0; i < sum->count; i++)
        if (sum->terms[i].value == outer) parts->unit = gcd(sum->terms[i].scale, divisor);
    parts->exact = bounds_of(x, sum, NULL, &lo, &hi);
    if (!sum->known || !parts->unit || (!parts->exact && !is_power(divisor))) return false;
    for (unsigned i = 0; i < sum->count; i++) {
        parts->whole[i] = common(x, &sum->terms[i], divisor) == divisor;
        parts->units[i] = !parts->whole[i] && common(x, &sum->terms[i], parts->unit) == parts->unit;
        parts->rest[i] = !parts->whole[i] && !parts->units[i];
    }
    int64_t small = parts->offset % parts->unit, large = parts->offset - small;
    if (!bounds_of(x, sum, parts->rest, &lo, &hi) || lo < -small || hi >= parts->unit - small) return false;
    parts->below = bounds_of(x, sum, parts->units, &lo, &hi) && lo >= -large && hi < divisor - large;
    return true;
}

/* Replaces a quotient or remainder by sums, and by one of units, which are fewer, where they reach the divisor. */
static void divide(Digits *x, TileOp *op, const TileValue *outer, int64_t divisor) {
    Parts parts = {.divisor = divisor};
    if (!take_apart(x, op, outer, &parts)) return;
    TileBuilder b = tile_builder_before(x->module, op);
    const Sum *sum = &parts.sum;
    TileValue *count = tile_build_i64(&b, divisor / parts.unit), *value;
    TileValue *middle = plus_number(&b, quotient_of(&b, sum, parts.units, parts.unit), parts.offset / parts.unit);
    if (op->id == TILE_OP_REM) {
        if (!parts.below) middle = tile_build_binary(&b, TILE_OP_REM, middle, count);
        value = plus(&b, NULL, middle, parts.unit);
        for (unsigned i = 0; i < sum->count; i++)
            if (parts.rest[i]) value = plus(&b, value, sum->terms[i].value, sum->terms[i].scale);
        value = plus_number(&b, value, parts.offset % parts.unit);
    } else if (!parts.exact) {
        for (unsigned i = 0; i < sum->count; i++) parts.whole[i] |= parts.units[i];
        value = plus_number(&b, quotient_of(&b, sum, parts.whole, 1), sum->constant - parts.offset % parts.unit);
        value = tile_build_binary(&b, TILE_OP_DIV, value, tile_build_i64(&b, divisor));
    } else {
        value = quotient_of(&b, sum, parts.whole, divisor);
        if (!parts.below) value = plus(&b, value, tile_build_binary(&b, TILE_OP_DIV, middle, count), 1);
        value = plus_number(&b, value, (sum->constant - parts.offset) / divisor);
    }
    tile_value_replace(&op->results[0], value);
    tile_op_erase(op);
}

static void divide_all(Digits *x, TileBlock *body, const TileValue *outer) {
    int64_t divisor;
    for (TileOp *op = body->first, *next; op != body->last; op = next) {
        next = op->next;
        if (is_division(op, &divisor)) divide(x, op, outer, divisor);
    }
}

/* ---- two loops ---- */

/* Each op of the body for all points, one after the other, so that their accesses are a group. */
static void copy_points(Digits *x, TileBuilder *b, TileValue *const *indices, int64_t points) {
    TileMap maps[MOST_POINTS];
    const TileBlock *body = &x->loop->regions[0];
    for (int64_t i = 0; i < points; i++) {
        tile_map_init(&maps[i], x->context->scratch);
        tile_map_set(&maps[i], body->arguments[0], indices[i]);
    }
    for (const TileOp *op = body->first; op != body->last; op = op->next)
        for (int64_t i = 0; i < points; i++) tile_builder_insert(b, tile_op_clone(x->module, op, &maps[i]));
}

/* Is the loop's end a multiple of the period in each run? */
static bool is_whole(Digits *x, int64_t period) {
    TileIndexRange range = tile_index_range(x->indices, tile_op_operand(x->loop, 1));
    return range.multiple % period == 0 && !range.because;
}

/* The number of periods, the last of which may be a part of one; of whole ones, where points are computed together. */
static TileOp *build_outer(Digits *x, TileBuilder *b, int64_t period) {
    TileValue *zero = tile_op_operand(x->loop, 0), *count = tile_op_operand(x->loop, 1);
    int64_t number, more = period <= MOST_POINTS ? 0 : period - 1;
    if (tile_value_integer(count, &number)) {
        count = tile_build_i64(b, (number + more) / period);
    } else {
        count = tile_build_binary(b, TILE_OP_MAX, count, zero);
        if (more && !is_whole(x, period)) count = tile_build_binary(b, TILE_OP_ADD, count, tile_build_i64(b, more));
        count = tile_build_binary(b, TILE_OP_DIV, count, tile_build_i64(b, period));
    }
    return tile_build_loop(b, TILE_LOOP_KIND_PARALLEL, zero, count, (tile_loop_extent(x->loop) + more) / period, NULL, 0);
}

/* The lanes behind the last whole period stay in the loop as it was. */
static void keep_rest(Digits *x, const TileOp *outer, int64_t period) {
    TileBuilder b = tile_builder_before(x->module, x->loop);
    TileValue *done = tile_build_binary(&b, TILE_OP_MUL, tile_op_operand(outer, 1), tile_build_i64(&b, period));
    tile_op_set_operand(x->loop, 0, done);
    tile_op_set_integer(x->module, x->loop, TILE_ATTRIBUTE_EXTENT, period - 1);
}

/* The cost of a lane's accesses, for whole vectors, times `points`. */
static int64_t cost_of(Digits *x, TileOp *loop, int64_t points) {
    TileStrides strides;
    bool far = false;
    tile_strides_init(&strides, x->context, loop);
    strides.assumes = true;
    return tile_access_cost(&strides, &loop->regions[0], &far) * points;
}

/* false: accesses would cost as much as before, and nothing has changed. */
static bool split(Digits *x, int64_t period) {
    TileOp *loop = x->loop, *lanes;
    TileBuilder b = tile_builder_before(x->module, loop);
    b.location = loop->location;
    TileOp *outer = build_outer(x, &b, period);
    TileValue *number = outer->regions[0].arguments[0], *indices[MOST_POINTS], *hi = tile_op_operand(loop, 1);
    b = tile_builder_at_end(x->module, &outer->regions[0]);
    b.location = loop->location;
    TileValue *each = tile_build_i64(&b, period), *first = tile_build_binary(&b, TILE_OP_MUL, number, each);
    TileBlock *body = &outer->regions[0];
    lanes = outer;
    if (period <= MOST_POINTS) {
        for (int64_t i = 0; i < period; i++) indices[i] = plus_number(&b, first, i);
        copy_points(x, &b, indices, period);
    } else {
        TileValue *zero = tile_op_operand(loop, 0);
        TileValue *end = is_whole(x, period) ? each : tile_build_binary(&b, TILE_OP_MIN, each, tile_build_binary(&b, TILE_OP_SUB, hi, first));
        TileOp *inner = tile_build_loop(&b, TILE_LOOP_KIND_PARALLEL, zero, end, period, NULL, 0);
        body = &inner->regions[0];
        lanes = inner;
        TileBuilder in = tile_builder_at_end(x->module, body);
        in.location = loop->location;
        indices[0] = tile_build_binary(&in, TILE_OP_ADD, first, body->arguments[0]);
        copy_points(x, &in, indices, 1);
        tile_build_end(&in, TILE_OP_YIELD, NULL, 0);
    }
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    divide_all(x, body, number);
    if (cost_of(x, lanes, 1) >= cost_of(x, loop, period <= MOST_POINTS ? period : 1)) {
        tile_op_erase(outer); /* what was built in front of it is dead */
        x->reason = "accesses would cost as much without the divisions";
        return false;
    }
    if (period <= MOST_POINTS && !is_whole(x, period))
        keep_rest(x, outer, period);
    else
        tile_op_erase(loop);
    x->loop = outer;
    x->changed = true;
    return true;
}

/* ---- versions ---- */

/* A division of what rises by `step` from a number on that is known at run time only. */
typedef struct Unknown {
    Sum base; /* what is divided, without the index and the constant */
    int64_t step;
} Unknown;

static bool is_unknown(Digits *x, const TileOp *op, int64_t divisor, Unknown *unknown) {
    TileValue *index = x->loop->regions[0].arguments[0];
    Sum sum = sum_of(tile_op_operand(op, 0));
    *unknown = (Unknown){.base = {.known = true}};
    for (unsigned i = 0; i < sum.count; i++) {
        if (sum.terms[i].value == index)
            unknown->step = sum.terms[i].scale;
        else if (tile_value_outside(sum.terms[i].value, x->loop))
            add_term(&unknown->base, sum.terms[i].value, sum.terms[i].scale);
        else
            return false;
    }
    bool near = sum.constant > -LARGEST && sum.constant < LARGEST;
    return sum.known && near && unknown->base.count && unknown->step >= 1 && divisor % unknown->step == 0 && divisor > unknown->step;
}

/* How many lanes have one quotient where such numbers are multiples of their divisors; 0: there are none. */
static int64_t find_unknown(Digits *x) {
    int64_t found = 0, divisor;
    Unknown unknown;
    for (const TileOp *op = x->loop->regions[0].first; op != x->loop->regions[0].last; op = op->next) {
        if (op->region_count) return 0;
        if (!is_division(op, &divisor) || !is_of_address(x, op) || period_of(x, op, divisor)) continue;
        if (is_unknown(x, op, divisor, &unknown)) found = gcd(found, divisor / unknown.step);
    }
    return found;
}

/* The division in the copy, of a number that is a multiple of the divisor and what follows. */
static void divide_behind(Digits *x, TileOp *op, TileValue *index, TileValue *whole, const Unknown *unknown) {
    TileBuilder b = tile_builder_before(x->module, op);
    TileValue *rest = plus_number(&b, plus(&b, NULL, index, unknown->step), sum_of(tile_op_operand(op, 0)).constant);
    TileValue *value = tile_build_binary(&b, (TileOpId)op->id, rest, tile_op_operand(op, 1));
    if (op->id == TILE_OP_DIV) value = tile_build_binary(&b, TILE_OP_ADD, whole, value);
    tile_value_replace(&op->results[0], value);
    tile_op_erase(op);
}

/* A copy of the loop for where the numbers are multiples of their divisors, and not far from 0; returns it. */
static TileOp *build_version(Digits *x) {
    TileOp *loop = x->loop;
    TileMap map;
    tile_map_init(&map, x->context->scratch);
    TileOp *copy = tile_op_clone(x->module, loop, &map);
    TileBuilder b = tile_builder_before(x->module, loop);
    b.location = loop->location;
    TileValue *holds = tile_build_bool(&b, true), *none = tile_build_i64(&b, 0), *far = tile_build_i64(&b, FAR);
    for (TileOp *op = loop->regions[0].first; op != loop->regions[0].last; op = op->next) {
        int64_t divisor;
        bool all[MOST_TERMS];
        Unknown unknown;
        for (unsigned i = 0; i < MOST_TERMS; i++) all[i] = true;
        if (!is_division(op, &divisor) || period_of(x, op, divisor) || !is_unknown(x, op, divisor, &unknown)) continue;
        TileValue *base = quotient_of(&b, &unknown.base, all, 1), *by = tile_build_i64(&b, divisor);
        TileValue *whole = tile_build_binary(&b, TILE_OP_DIV, base, by), *rest = tile_build_binary(&b, TILE_OP_REM, base, by);
        TileValue *near = tile_build_binary(&b, TILE_OP_AND, tile_build_binary(&b, TILE_OP_GE, base, none), tile_build_binary(&b, TILE_OP_LT, base, far));
        holds = tile_build_binary(&b, TILE_OP_AND, holds, tile_build_binary(&b, TILE_OP_AND, near, tile_build_binary(&b, TILE_OP_EQ, rest, none)));
        TileOp *own = ((TileValue *)tile_map_get(&map, &op->results[0]))->op;
        divide_behind(x, own, copy->regions[0].arguments[0], whole, &unknown);
    }
    TileOp *branch = tile_build_if(&b, holds, NULL, 0);
    tile_op_append(copy, &branch->regions[0]);
    tile_op_detach(loop);
    tile_op_append(loop, &branch->regions[1]);
    for (unsigned r = 0; r < 2; r++) {
        b = tile_builder_at_end(x->module, &branch->regions[r]);
        tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    }
    x->changed = true;
    return copy;
}

/* Puts the loop back in the place of both versions. */
static void drop_version(TileOp *copy) {
    TileOp *branch = copy->block->op, *loop = branch->regions[1].first;
    tile_op_detach(loop);
    tile_op_insert_before(loop, branch);
    tile_op_erase(branch);
}

/* ---- the pass ---- */

static bool is_candidate(const TileOp *op) {
    return op->id == TILE_OP_LOOP && !op->result_count && tile_loop_kind(op) == TILE_LOOP_KIND_PARALLEL &&
           tile_op_get(op, TILE_ATTRIBUTE_EXTENT) && !tile_op_get(op, TILE_ATTRIBUTE_VECTOR) &&
           tile_value_is_integer(tile_op_operand(op, 0), 0);
}

static bool can_split(Digits *x, int64_t period) {
    if (period > MOST_POINTS || count_ops(x) * (unsigned)period <= MOST_OPS) return true;
    x->reason = "copies of the body for each remainder would be too long";
    return false;
}

/* Splits the loop; what is left of its own divisions may ask for the outer one to be split again. */
static bool split_again(Digits *x) {
    bool any = false;
    for (int64_t period = 1; period <= MOST_POINTS; any = true) {
        x->reason = NULL;
        x->culprit = x->loop;
        period = find_period(x);
        TileOp *whole = x->loop;
        bool splits = period > 1 && period < tile_loop_extent(whole) && can_split(x, period) && split(x, period);
        if (x->reason) tile_pass_remark(x->context, x->culprit, TILE_DECISION_LANES_DIVIDED, "each lane", "%s", x->reason);
        if (!splits) return any;
        tile_pass_remark(x->context, x->loop, TILE_DECISION_BY_QUOTIENT, "the loop", "%lld lanes each", (long long)period);
    }
    return true;
}

/* The mask of an index below its loop's end is true: it would be another one for each point. */
static void drop_masks(Digits *x) {
    TileOp *around = x->loop->block->op;
    if (around && is_candidate(around)) tile_loop_drop_masks(x->context, around);
    tile_loop_drop_masks(x->context, x->loop);
}

/* Returns what has taken the loop's place. */
static TileOp *visit_loop(Digits *x, TileOp *loop) {
    x->loop = loop;
    int64_t period = find_period(x), unknown = find_unknown(x), extent = tile_loop_extent(loop), both = gcd(unknown, period);
    if (both < 2 || both >= extent) return loop;
    if (!can_split(x, both)) {
        tile_pass_remark(x->context, loop, TILE_DECISION_LANES_DIVIDED, "each lane", "%s", x->reason);
        return loop;
    }
    drop_masks(x);
    x->changed = true;
    if (unknown < 2) {
        split_again(x);
        return x->loop;
    }
    TileOp *copy = x->loop = build_version(x), *branch = copy->block->op;
    if (split_again(x)) return branch;
    drop_version(copy);
    return loop;
}

static void visit_block(Digits *x, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (!is_candidate(op) || visit_loop(x, op) == op)
            for (unsigned i = 0; i < op->region_count; i++) visit_block(x, &op->regions[i]);
    }
}

TileResult tile_pass_cpu_digits(TilePassContext *context, TileFunc *func) {
    Digits x = {.context = context, .module = context->module, .indices = tile_pass_indices(context, func)};
    visit_block(&x, &func->body);
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
