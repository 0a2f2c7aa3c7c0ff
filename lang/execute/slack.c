/* Slack: a bound on how far a float may be from what the same kernel computes if sums are added in another order.
 *
 * Loaded values have slack 0. A sum, or a product of matrices, has the slack of its terms plus 2 * n * u * (sum of
 * their magnitudes): in any order, the sum of n terms is within n * u * (sum of magnitudes) of the exact sum, where u
 * is half a unit in the last place of 1. For a function of a value with slack, the function is also evaluated at both
 * ends of the value's interval, for one operand at a time (a first-order bound, for functions that are monotonic in the
 * interval). A loop that adds to what it carries is a sum of as many terms as it has iterations. If slack affects a choice, an index or control flow, no bound is known: the slack is infinite.
 *
 * For tile form only, and only if the options ask for it. */
#include <math.h>
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

static double roundoff(TileScalar scalar) {
    switch (scalar) {
    case TILE_F64: return 0x1p-53;
    case TILE_F32: return 0x1p-24;
    case TILE_F16: return 0x1p-11;
    case TILE_BF16: return 0x1p-8;
    case TILE_F8E4M3: return 0x1p-4;
    case TILE_F8E5M2: return 0x1p-3;
    default: return 0;
    }
}

static double number(TileScalar scalar, uint64_t bits) { return tile_scalar_to_double(scalar, bits); }

static double distance(TileScalar scalar, uint64_t a, uint64_t b) {
    double x = number(scalar, a), y = number(scalar, b);
    if (a == b || (isnan(x) && isnan(y))) return 0;
    double d = fabs(x - y);
    return isnan(d) ? (double)INFINITY : d;
}

static bool has_slack(ExecValue value) {
    for (uint32_t i = 0; i < value.count; i++)
        if (value.slack[i] > 0) return true;
    return false;
}

void tile_exec_slack_unknown(TileExecutor *e, ExecValue value) {
    if (value.slack && has_slack(value)) e->undecided = true;
}

/* ---- elementwise ---- */

/* May it have a pole in the interval? */
static bool divides(TileOpId id) {
    return id == TILE_OP_DIV || id == TILE_OP_REM || id == TILE_OP_RSQRT;
}

static double lane_slack(const ExecInstruction *in, const ExecValue *operands, const TileScalar *types, uint32_t lane,
                         uint64_t result) {
    uint64_t bits[3] = {0};
    double total = 0;
    for (unsigned i = 0; i < in->operand_count; i++) bits[i] = operands[i].lanes[lane];
    for (unsigned i = 0; i < in->operand_count; i++) {
        double slack = operands[i].slack[lane], x = number(types[i], bits[i]), most = 0;
        if (!(slack > 0)) continue;
        bool last = i + 1 == in->operand_count;
        if (isinf(slack) || (divides((TileOpId)in->op->id) && last && slack >= fabs(x))) return (double)INFINITY;
        for (int side = -1; side <= 1; side += 2) {
            uint64_t moved[3], end = 0;
            memcpy(moved, bits, sizeof moved);
            moved[i] = tile_scalar_from_double(types[i], x + side * slack);
            if (!tile_eval((TileOpId)in->op->id, in->from, in->to, moved, &end)) return (double)INFINITY;
            most = fmax(most, distance(in->to, end, result));
        }
        total += most;
    }
    double rounded = fabs(number(in->to, result)) * 2 * roundoff(in->to);
    if (total > 0) return total + rounded;
    return tile_op_integer(in->op, TILE_ATTRIBUTE_APPROX, 0) ? rounded * 4 * (1 + fabs(number(types[0], bits[0]))) : 0;
}

/* The operand of a sum that is what the loop around it carries, and gives the sum to the next iteration; -1: none. */
static int carried_operand(const TileOp *op) {
    const TileOp *loop = op->block->op;
    if (!loop || loop->id != TILE_OP_FOR || tile_op_integer(loop, TILE_ATTRIBUTE_ORDERED, 0)) return -1;
    if (op->id != TILE_OP_ADD && op->id != TILE_OP_FMA) return -1;
    for (unsigned k = op->id == TILE_OP_ADD ? 0 : 2; k < op->operand_count; k++)
        for (unsigned i = 0; i < loop->result_count; i++)
            if (tile_op_operand(op, k) == op->block->arguments[1 + i] &&
                tile_op_operand(op->block->last, i) == &op->results[0])
                return (int)k;
    return -1;
}

/* The iterations may be split into parts that are added up by themselves. */
static void add_slack_of_loop(TileExecutor *e, const ExecInstruction *in, const ExecValue *operands, ExecValue result) {
    const ExecFrame *frame = tile_exec_frame(e);
    int carried = tile_scalar_is_float(in->to) ? carried_operand(in->op) : -1;
    if (carried < 0 || frame->owner->op != in->op->block->op) return;
    int64_t lo = (int64_t)tile_exec_operand(e, frame->owner, 0).lanes[0];
    double trips = ((double)frame->end - (double)lo) / (double)frame->step + 1, unit = 2 * trips * roundoff(in->to);
    for (uint32_t i = 0; i < result.count; i++) {
        double x[3] = {0}, before = frame->index == lo ? fabs(number(in->to, operands[carried].lanes[i])) : 0;
        for (unsigned k = 0; k < in->operand_count; k++)
            x[k] = fabs(number(in->to, operands[k].lanes[i])) + operands[k].slack[i];
        result.slack[i] += unit * (before + (in->op->id == TILE_OP_FMA ? x[0] * x[1] : x[!carried]));
    }
}

void tile_exec_slack_elementwise(TileExecutor *e, const ExecInstruction *in) {
    ExecValue operands[3] = {0}, result = tile_exec_result(e, in);
    TileScalar types[3] = {in->from, in->from, in->from};
    bool any = tile_op_integer(in->op, TILE_ATTRIBUTE_APPROX, 0);
    for (unsigned i = 0; i < in->operand_count && i < 3; i++) {
        operands[i] = tile_exec_operand(e, in, i);
        types[i] = in->op->operands[i].value->type->scalar;
        any = any || has_slack(operands[i]);
    }
    for (uint32_t i = 0; i < result.count; i++)
        result.slack[i] = any ? lane_slack(in, operands, types, i, result.lanes[i]) : 0;
    add_slack_of_loop(e, in, operands, result);
}

void tile_exec_slack_select(ExecValue c, ExecValue x, ExecValue y, ExecValue result, TileScalar scalar) {
    uint32_t step = c.count == result.count ? 1 : 0;
    for (uint32_t i = 0; i < result.count; i++) {
        result.slack[i] = c.lanes[i * step] ? x.slack[i] : y.slack[i];
        if (c.slack[i * step] > 0)
            result.slack[i] = distance(scalar, x.lanes[i], y.lanes[i]) + fmax(x.slack[i], y.slack[i]);
    }
}

/* ---- reductions ---- */

typedef struct Terms {
    double magnitudes, slack, relative, greatest;
    size_t count; /* terms that are not 0 */
} Terms;

static void take_term(Terms *terms, TileScalar scalar, uint64_t bits, double slack) {
    double x = fabs(number(scalar, bits));
    if (isnan(x)) x = (double)INFINITY; /* what follows from it is NaN in any order, or is not affected */
    terms->slack += slack;
    terms->greatest = fmax(terms->greatest, slack);
    if (slack > 0) terms->relative += x > slack ? slack / (x - slack) : (double)INFINITY;
    if (x != 0 || slack > 0) terms->count++;
    terms->magnitudes += x;
}

/* A bound on the effect of another order: 0 for a single term. */
static double reordered(const Terms *terms, TileScalar scalar) {
    return terms->count > 1 ? 2 * (double)terms->count * roundoff(scalar) * (terms->magnitudes + terms->slack) : 0;
}

static double reduced(const Terms *terms, int64_t kind, TileScalar scalar, uint64_t result) {
    if (kind == TILE_KIND_SUM) return terms->slack + reordered(terms, scalar);
    if (kind != TILE_KIND_PROD) return terms->greatest;
    double rounding = terms->count > 1 ? 2 * (double)terms->count * roundoff(scalar) : 0;
    double z = fabs(number(scalar, result)), relative = expm1(terms->relative + rounding);
    return terms->relative + rounding > 0 ? z * relative : 0;
}

void tile_exec_slack_reduce(const ExecInstruction *in, ExecValue x, ExecValue result, size_t extent, size_t inner) {
    int64_t kind = tile_op_integer(in->op, TILE_ATTRIBUTE_KIND, 0);
    for (uint32_t r = 0; r < result.count; r++) {
        Terms terms = {0};
        for (size_t k = 0; k < extent; k++) {
            size_t at = (r / inner * extent + k) * inner + r % inner;
            take_term(&terms, in->from, x.lanes[at], x.slack[at]);
        }
        result.slack[r] = reduced(&terms, kind, in->from, result.lanes[r]);
    }
}

/* Another element may be the greatest one: the slack of the index is the distance to the farthest such element. */
void tile_exec_slack_arg(const ExecInstruction *in, ExecValue x, ExecValue index, ExecValue result, size_t extent,
                         size_t inner) {
    for (uint32_t r = 0; r < result.count; r++) {
        size_t first = r / inner * extent * inner + r % inner, best = first;
        for (size_t k = 0; k < extent; k++)
            if (index.lanes[first + k * inner] == result.lanes[r]) best = first + k * inner;
        result.slack[r] = 0;
        for (size_t k = 0; k < extent; k++) {
            size_t at = first + k * inner;
            double both = x.slack[at] + x.slack[best];
            if (at == best || !(both > 0) || distance(in->from, x.lanes[at], x.lanes[best]) > both) continue;
            double away = fabs((double)(int64_t)index.lanes[at] - (double)(int64_t)result.lanes[r]);
            result.slack[r] = fmax(result.slack[r], away);
        }
    }
}

/* A row of a and a column of b, element by element along k. */
typedef struct Line {
    const ExecValue *a, *b;
    TileScalar types[2];
    size_t a_first, b_first, b_step, k;
} Line;

static bool is_f8(TileScalar scalar) { return tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) == 8; }

/* A product of the line, and its slack. */
static double product_at(const Line *line, size_t l, double *slack) {
    size_t p = line->a_first + l, q = line->b_first + l * line->b_step;
    double x = number(line->types[0], line->a->lanes[p]), y = number(line->types[1], line->b->lanes[q]);
    double a = line->a->slack[p], b = line->b->slack[q];
    *slack = a > 0 || b > 0 ? fabs(x) * b + fabs(y) * a + a * b : 0;
    return x * y;
}

/* What is cut off a number below 13 bits under the place of `greatest`. */
static double cut_below(double number, double slack, double greatest) {
    enum { BELOW = 13 };
    if (!(greatest > 0) || !isfinite(greatest) || !isfinite(number)) return 0; /* nothing, or the sum is not finite */
    double place = ldexp(1, ilogb(greatest) - BELOW);
    return slack > 0 ? place : fmod(fabs(number), place);
}

/* Tensor cores align 32 products of 8-bit floats, and the sum so far, with the greatest of them and keep 13 bits below
 * its place; of the new sum they keep 14 bits in all. */
static double cut_off(const Line *line) {
    enum { STEP = 32 };
    double sum = 0, lost = 0;
    for (size_t first = 0; first < line->k; first += STEP) {
        size_t end = first + STEP < line->k ? first + STEP : line->k;
        double before = lost, greatest = fabs(sum) + lost, next = sum, slack;
        for (size_t l = first; l < end; l++) greatest = fmax(greatest, fabs(product_at(line, l, &slack)) + slack);
        lost += cut_below(sum, before, greatest);
        for (size_t l = first; l < end; l++) {
            double product = product_at(line, l, &slack);
            lost += cut_below(product, slack, greatest) + slack;
            next += product;
        }
        sum = next;
        lost += cut_below(sum, lost, fabs(sum) + lost);
    }
    return lost;
}

/* AMX takes 0 for subnormal elements, and for subnormal sums. */
static double flushed(const Line *line, size_t l) {
    size_t p = line->a_first + l, q = line->b_first + l * line->b_step;
    double x = number(line->types[0], line->a->lanes[p]), y = number(line->types[1], line->b->lanes[q]);
    bool subnormal = (x != 0 && fabs(x) < 0x1p-126) || (y != 0 && fabs(y) < 0x1p-126);
    return (subnormal && isfinite(x * y) ? fabs(x * y) : 0) + 0x1p-126;
}

static void take_products(const Line *line, Terms *terms) {
    bool flushes = line->types[0] == TILE_BF16 && line->types[1] == TILE_BF16;
    for (size_t l = 0; l < line->k; l++) {
        double slack, product = fabs(product_at(line, l, &slack));
        if (flushes && product > 0) slack += flushed(line, l);
        terms->magnitudes += product;
        terms->count += product != 0;
        terms->slack += slack;
    }
}

/* Element (i, j) of a product of m x k and k x n. Tensor cores add up to 2**-20 of the magnitudes, and may round f32 to
 * tf32 in any way, also by cutting. */
void tile_exec_slack_dot(const ExecInstruction *in, ExecValue a, ExecValue b, ExecValue acc, ExecValue result, size_t m,
                         size_t k, size_t n, double precision) {
    size_t parts = (size_t)tile_op_integer(in->op, TILE_ATTRIBUTE_K_PARTS, 1), depth = k / parts, rows = parts * m;
    Line line = {.a = &a, .b = &b, .k = depth, .b_step = n};
    for (unsigned i = 0; i < 2; i++) line.types[i] = in->op->operands[i].value->type->scalar;
    bool exact = !tile_scalar_is_float(in->to);
    for (size_t at = 0; at < result.count; at++) {
        size_t batch = at / (rows * n), i = at / n % m, j = at % n, first = at / n % rows / m * depth;
        Terms terms = {0};
        line.a_first = (batch * m + i) * k + first;
        line.b_first = (batch * k + first) * n + j;
        take_term(&terms, in->to, acc.lanes[at], acc.slack[at]);
        take_products(&line, &terms);
        result.slack[at] = terms.slack;
        if (exact || terms.count < 2) continue;
        result.slack[at] += reordered(&terms, in->to) + precision * terms.magnitudes;
        if (is_f8(line.types[0])) result.slack[at] += cut_off(&line);
    }
}

/* ---- folds ---- */

/* The combiner's operation, if it is a single one on one value; else TILE_OP_COUNT. */
static TileOpId only_op(const ExecInstruction *in) {
    const TileOp *op = in->op->regions[0].first;
    return op && op->next && op->next == in->op->regions[0].last && in->op->result_count == 1 ? (TileOpId)op->id
                                                                                              : TILE_OP_COUNT;
}

static bool computes(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        bool chooses = op->id == TILE_OP_SELECT || op->id == TILE_OP_MIN || op->id == TILE_OP_MAX || op == block->last;
        if (!chooses && op->result_count && tile_scalar_is_float(op->results[0].type->scalar)) return true;
    }
    return false;
}

/* For each line, the slack of the fold of all terms is used for every result of the line. */
void tile_exec_slack_fold(const ExecInstruction *in, unsigned value, const ExecFolded *folded) {
    ExecValue x = folded->x, result = folded->result;
    size_t extent = folded->extent, inner = folded->inner;
    const ExecValue *init = folded->init, *mask = folded->mask;
    bool scan = folded->scan;
    TileOpId id = only_op(in);
    TileScalar scalar = in->op->operands[value].value->type->scalar;
    bool alike = !computes(&in->op->regions[0]);
    for (size_t line = 0; line < x.count / extent; line++) {
        Terms terms = {0};
        if (init) take_term(&terms, scalar, init->lanes[line], init->slack[line]);
        for (size_t k = 0; k < extent; k++) {
            size_t at = (line / inner * extent + k) * inner + line % inner;
            if (!mask || mask->lanes[at]) take_term(&terms, scalar, x.lanes[at], x.slack[at]);
        }
        for (size_t k = 0; k < (scan ? extent : 1); k++) {
            size_t at = scan ? (line / inner * extent + k) * inner + line % inner : line;
            bool known = id == TILE_OP_ADD || id == TILE_OP_MUL;
            int64_t kind = id == TILE_OP_ADD ? TILE_KIND_SUM : TILE_KIND_PROD;
            result.slack[at] = known ? reduced(&terms, kind, scalar, result.lanes[at])
                               : alike && !(terms.greatest > 0) ? 0
                                                                : (double)INFINITY;
        }
    }
}
