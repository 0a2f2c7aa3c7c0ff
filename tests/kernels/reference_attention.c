#include <math.h>
#include <stdlib.h>

#include "reference.h"

/* A number and a bound on its error. */
typedef struct Bounded {
    double value, slack;
} Bounded;

/* What becomes of a score of head h, query s and key t, and what that adds to its error. */
typedef Bounded Change(const Problem *problem, double score, int64_t h, int64_t s, int64_t t);

/* One query, and the keys and values that it attends to, each a row of `depth` numbers. */
typedef struct Query {
    const double *q;
    const double **k, **v;
    int64_t seen, depth, width; /* `width`: of values */
    double scale;
    Type type;
    double *weight; /* with space for one number per key */
    double greatest; /* what the greatest weight is when weights are rounded */
    bool cuts_off;   /* tensor cores do, of sums of 8-bit floats */
    double sink;     /* a score without a key; -inf: none */
    Change *change;  /* of scores, of a query of this head; NULL: none */
    const Problem *problem;
    int64_t head, row;
} Query;

/* The result for a query: a row, and the log-sum-exp of its scores. */
typedef struct Answer {
    double *o, *slack;
    double lse, lse_slack;
} Answer;

/* Computes the scores into `weight`; returns a bound on the f32 error of any of them. */
static double score(const Query *query) {
    double worst = 0;
    for (int64_t t = 0; t < query->seen; t++) {
        double total = 0, magnitude = 0;
        for (int64_t d = 0; d < query->depth; d++) {
            double product = query->q[d] * query->k[t][d];
            total += product;
            magnitude += fabs(product);
        }
        query->weight[t] = total * query->scale;
        double slack =
            (reference_serial_slack(query->depth, magnitude) + 4 * F32_ROUNDOFF * fabs(total)) * fabs(query->scale);
        if (query->cuts_off) slack += reference_cut_off(magnitude) * fabs(query->scale);
        if (query->change) {
            Bounded changed = query->change(query->problem, query->weight[t], query->head, query->row, t);
            query->weight[t] = changed.value;
            slack += changed.slack;
        }
        if (slack > worst) worst = slack;
    }
    return worst;
}

/* `lonely` is the result if the query attends to no key. */
static void attend(const Query *query, Answer *answer, double lonely) {
    double top = query->sink, worst = score(query), *weight = query->weight;
    for (int64_t t = 0; t < query->seen; t++) top = isnan(weight[t]) || weight[t] > top ? weight[t] : top;
    double total = query->sink > -INFINITY ? exp(query->sink - top) : 0;
    for (int64_t t = 0; t < query->seen; t++) total += weight[t] = exp(weight[t] - top);
    /* The error of each weight: that of its score and of the maximum, a rounding to the type of v, and a rescaling for
     * every block of keys. Weights are at most 1 and may be subnormal: then a rounding costs up to half the smallest
     * subnormal, however small the weight is; later scaling is by at most 1 / total. */
    double rounding = query->type == TYPE_F32 ? 0 : type_roundoff(query->type);
    double computed = 2 * worst + F32_ROUNDOFF * (3 * (double)query->seen + 80);
    double absolute = (type_denormal(query->type) / 2 / query->greatest + F32_TINY) / total;
    for (int64_t d = 0; d < query->width; d++) {
        double value = 0, magnitude = 0, values = 0;
        for (int64_t t = 0; t < query->seen; t++) {
            double v = query->v[t][d], product = weight[t] / total * v;
            value += product;
            magnitude += fabs(product);
            values += fabs(v);
        }
        answer->o[d] = query->seen > 0 ? value : lonely;
        double cut = query->cuts_off ? reference_cut_off(magnitude) : 0;
        answer->slack[d] = query->seen > 0 ? (computed + rounding) * magnitude + cut + absolute * values + F32_TINY : 0;
    }
    answer->lse = top + log(total);
    answer->lse_slack = query->seen > 0 ? computed + 8 * F32_ROUNDOFF * (fabs(top) + log(total) + 1) : 0;
}

static Query make_query(const Problem *problem, int64_t keys) {
    size_t room = (size_t)keys + 1;
    Query query = {
        .k = malloc(sizeof *query.k * room),
        .v = malloc(sizeof *query.v * room),
        .weight = malloc(sizeof *query.weight * room),
        .depth = problem_dimension(problem, 'D'),
        .scale = (float)problem->scalar[0],
        .type = problem->type,
        .greatest = 1,
        .sink = -INFINITY,
        .problem = problem,
        .width = problem_dimension(problem, 'D'),
    };
    if (!query.k || !query.v || !query.weight) abort();
    return query;
}

static void release_query(Query *query) {
    free(query->k);
    free(query->v);
    free(query->weight);
}

static void see(Query *query, const Problem *problem, int64_t row) {
    query->k[query->seen] = problem->input[1] + row * query->depth;
    query->v[query->seen++] = problem->input[2] + row * query->width;
}

/* Query s of [B, H, S] attends to keys first .. last - 1 of L. */
typedef void Sight(const Problem *problem, int64_t s, int64_t *first, int64_t *last);

static void dense_by(const Problem *problem, Sight *sight, Query query) {
    int64_t batches = problem_dimension(problem, 'B'), heads = problem_dimension(problem, 'H');
    int64_t groups = problem_dimension(problem, 'G'), queries = problem_dimension(problem, 'S');
    int64_t keys = problem_dimension(problem, 'L'), depth = problem_dimension(problem, 'D');
    if (problem->type == TYPE_F8E4M3 || problem->type == TYPE_F8E5M2) {
        query.greatest = problem->type == TYPE_F8E4M3 ? 256 : 32768;
        query.cuts_off = problem->on_tensor_cores;
    }
    for (int64_t i = 0; i < batches * heads * queries; i++) {
        int64_t head = i / queries, group = head / heads * groups + head % heads / (heads / groups), first = 0,
                last = keys;
        if (sight) sight(problem, i % queries, &first, &last);
        query.q = problem->input[0] + i * depth;
        query.seen = 0;
        for (int64_t t = first; t < last; t++) see(&query, problem, group * keys + t);
        if (query.change) {
            query.sink = problem->input[3][head % heads];
            query.head = head % heads;
            query.row = i % queries;
        }
        Answer answer = {problem->expected + i * query.width, problem->slack + i * query.width, 0, 0};
        attend(&query, &answer, NAN);
        if (!problem->further[0].expected) continue;
        problem->further[0].expected[i] = answer.lse;
        problem->further[0].slack[i] = answer.lse_slack;
    }
    release_query(&query);
}

static void dense(const Problem *problem, Sight *sight) {
    dense_by(problem, sight, make_query(problem, problem_dimension(problem, 'L')));
}

static void see_causal(const Problem *problem, int64_t s, int64_t *first, int64_t *last) {
    *first = 0;
    *last = s + 1 + problem_dimension(problem, 'L') - problem_dimension(problem, 'S');
}

static void see_window(const Problem *problem, int64_t s, int64_t *first, int64_t *last) {
    int64_t window = problem_dimension(problem, 'W');
    see_causal(problem, s, first, last);
    if (*last > window) *first = *last - window;
}

void reference_attention(const Problem *problem) { dense(problem, NULL); }
void reference_attention_causal(const Problem *problem) { dense(problem, see_causal); }
void reference_attention_window(const Problem *problem) { dense(problem, see_window); }

/* A tensor of `count` numbers, each times the scale of its head. */
static double *scaled(const double *x, const double *scale, int64_t count, int64_t of_a_head) {
    double *made = malloc(sizeof *made * ((size_t)count + 1));
    if (!made) abort();
    for (int64_t i = 0; i < count; i++) made[i] = x[i] * scale[i / of_a_head];
    return made;
}

/* [.., depth, keys] as [.., keys, depth] */
static void turn(double *x, int64_t heads, int64_t depth, int64_t keys) {
    double *head = malloc(sizeof *head * ((size_t)(depth * keys) + 1));
    if (!head) abort();
    for (int64_t h = 0; h < heads; h++, x += depth * keys) {
        for (int64_t i = 0; i < depth * keys; i++) head[i % keys * depth + i / keys] = x[i];
        for (int64_t i = 0; i < depth * keys; i++) x[i] = head[i];
    }
    free(head);
}

/* The same with q, k and v multiplied by their scales; of those of q and k the magnitudes count. */
static void attention_f8(const Problem *problem, Sight *sight) {
    int64_t batches = problem_dimension(problem, 'B'), heads = batches * problem_dimension(problem, 'H');
    int64_t groups = batches * problem_dimension(problem, 'G'), keys = problem_dimension(problem, 'L');
    int64_t depth = problem_dimension(problem, 'D'), queries = problem_dimension(problem, 'S');
    const double *const *in = problem->input;
    double *units = malloc(sizeof *units * ((size_t)(heads + groups) + 1));
    if (!units) abort();
    for (int64_t i = 0; i < heads + groups; i++) units[i] = fabs(i < heads ? in[3][i] : in[4][i - heads]);
    Problem plain = *problem;
    double *q = scaled(in[0], units, heads * queries * depth, queries * depth),
           *k = scaled(in[1], units + heads, groups * keys * depth, keys * depth),
           *v = scaled(in[2], in[5], groups * keys * depth, keys * depth);
    turn(v, groups, depth, keys);
    plain.input[0] = q;
    plain.input[1] = k;
    plain.input[2] = v;
    dense(&plain, sight);
    free(units);
    free(q);
    free(k);
    free(v);
}

void reference_attention_f8(const Problem *problem) { attention_f8(problem, NULL); }
void reference_attention_f8_causal(const Problem *problem) { attention_f8(problem, see_causal); }

/* ---- changed scores ---- */

static Bounded unchanged(const Problem *problem, double score, int64_t h, int64_t s, int64_t t) {
    (void)problem, (void)h, (void)s, (void)t;
    return (Bounded){score, 0};
}

static Bounded capped(const Problem *problem, double score, int64_t h, int64_t s, int64_t t) {
    (void)problem, (void)h, (void)s, (void)t;
    double value = 30 * tanh(score / 30);
    return (Bounded){value, 12 * F32_ROUNDOFF * fabs(value) + F32_TINY};
}

static Bounded sum_of(double score, double more) {
    return (Bounded){score + more, 2 * F32_ROUNDOFF * (fabs(score) + fabs(more)) + F32_TINY};
}

static Bounded inclined(const Problem *problem, double score, int64_t h, int64_t s, int64_t t) {
    return sum_of(score, (double)(t - s) * problem->input[4][h]);
}

static Bounded biased(const Problem *problem, double score, int64_t h, int64_t s, int64_t t) {
    int64_t queries = problem_dimension(problem, 'S'), keys = problem_dimension(problem, 'L');
    return sum_of(score, problem->input[4][(h * queries + s) * keys + t]);
}

static void scored(const Problem *problem, Sight *sight, Change *change) {
    Query query = make_query(problem, problem_dimension(problem, 'L'));
    query.width = problem_dimension(problem, 'V');
    query.change = change;
    dense_by(problem, sight, query);
}

void reference_attention_scored(const Problem *problem) { scored(problem, NULL, unchanged); }
void reference_attention_scored_causal(const Problem *problem) { scored(problem, see_causal, unchanged); }
void reference_attention_soft_cap(const Problem *problem) { scored(problem, see_causal, capped); }
void reference_attention_alibi(const Problem *problem) { scored(problem, see_causal, inclined); }
void reference_attention_biased(const Problem *problem) { scored(problem, NULL, biased); }

static int64_t clamp(double value, int64_t low, int64_t high) {
    int64_t number = (int64_t)value;
    return number < low ? low : number > high ? high : number;
}

/* The begin and end of sequence b in `count` rows, given a tensor of offsets. */
static void bounds(const double *offsets, int64_t b, int64_t count, int64_t *first, int64_t *last) {
    *first = clamp(offsets[b], 0, count);
    *last = clamp(offsets[b + 1], *first, count);
}

/* Hostile offsets may assign a row to several sequences: then any of their results is correct, and it is not
 * checked. */
static void varlen(const Problem *problem, bool causal) {
    Expectation lse = problem->further[0]; /* [head, row], if it is asked for */
    int64_t heads = problem_dimension(problem, 'H'), groups = problem_dimension(problem, 'G');
    int64_t rows = problem_dimension(problem, 'S'), keys = problem_dimension(problem, 'L'), q_lo, q_hi, k_lo, k_hi;
    Query query = make_query(problem, keys);
    query.scale = (float)problem->scalar[1]; /* the argument after `longest` */
    for (int64_t i = 0; lse.expected && i < rows * heads; i++) lse.expected[i] = problem->input[6][i];
    bool *taken = calloc((size_t)rows + 1, 1);
    if (!taken) abort();
    for (int64_t i = 0; i < rows * heads * query.depth; i++) problem->expected[i] = problem->input[5][i];
    for (int64_t b = 0; b + 1 < problem_dimension(problem, 'E'); b++) {
        bounds(problem->input[3], b, rows, &q_lo, &q_hi);
        bounds(problem->input[4], b, keys, &k_lo, &k_hi);
        if (q_hi - q_lo > problem_dimension(problem, 'Z')) q_hi = q_lo + problem_dimension(problem, 'Z');
        int64_t own_end = clamp(problem->input[3][b + 1], q_lo, rows);
        for (int64_t i = q_lo * heads; i < q_hi * heads; i++) {
            int64_t s = i / heads, group = i % heads / (heads / groups);
            query.q = problem->input[0] + i * query.depth;
            query.seen = 0;
            for (int64_t t = k_lo; t < k_hi; t++)
                if (!causal || t - k_hi <= s - own_end) see(&query, problem, t * groups + group);
            Answer answer = {problem->expected + i * query.depth, problem->slack + i * query.depth, 0, 0};
            attend(&query, &answer, 0);
            for (int64_t d = 0; d < query.depth && taken[s]; d++) answer.slack[d] = -1;
            if (!lse.expected) continue;
            lse.expected[i % heads * rows + s] = answer.lse;
            lse.slack[i % heads * rows + s] = taken[s] ? -1 : answer.lse_slack;
        }
        for (int64_t s = q_lo; s < q_hi; s++) taken[s] = true;
    }
    free(taken);
    release_query(&query);
}

void reference_attention_varlen(const Problem *problem) { varlen(problem, false); }
void reference_attention_varlen_causal(const Problem *problem) { varlen(problem, true); }

void reference_attention_paged(const Problem *problem) {
    int64_t heads = problem_dimension(problem, 'H'), groups = problem_dimension(problem, 'G');
    int64_t pages = problem_dimension(problem, 'P'), page_size = problem_dimension(problem, 'C');
    int64_t most = problem_dimension(problem, 'N') * page_size;
    Query query = make_query(problem, most);
    for (int64_t i = 0; i < problem_dimension(problem, 'B') * heads; i++) {
        int64_t b = i / heads, group = i % heads / (heads / groups);
        int64_t length = clamp(problem->input[4][b], 0, most);
        query.q = problem->input[0] + i * query.depth;
        query.seen = 0;
        for (int64_t t = 0; t < length; t++) {
            double page = problem->input[3][b * problem_dimension(problem, 'N') + t / page_size];
            if (page >= 0 && page < (double)pages)
                see(&query, problem, ((int64_t)page * page_size + t % page_size) * groups + group);
        }
        Answer answer = {problem->expected + i * query.depth, problem->slack + i * query.depth, 0, 0};
        attend(&query, &answer, 0);
    }
    release_query(&query);
}

/* ---- gradients ---- */

static Bounded product_of(const double *x, const double *y, int64_t count) {
    double total = 0, magnitude = 0;
    for (int64_t i = 0; i < count; i++) {
        total += x[i] * y[i];
        magnitude += fabs(x[i] * y[i]);
    }
    return (Bounded){total, reference_serial_slack(count, magnitude) + 4 * F32_ROUNDOFF * fabs(total)};
}

/* As it is multiplied: rounded to the type. */
static Bounded rounded_to(Bounded x, Type type) {
    if (type == TYPE_F32) return x;
    x.slack += type_roundoff(type) * (fabs(x.value) + x.slack) + type_denormal(type) / 2;
    return x;
}

/* The weight of a score, by approx.exp2, whose error grows with the argument. */
static Bounded weight_of(Bounded score, double scale, double lse) {
    double x = score.value * scale - lse, size = fabs(score.value * scale) + fabs(lse);
    double relative = score.slack * scale + F32_ROUNDOFF * (8 * size + 16), p = exp(x);
    return (Bounded){p, p * relative * (1 + relative) + F32_TINY};
}

/* A sum of products of such numbers with exact ones, and how many there are. */
typedef struct Gradient {
    double *value, *slack, *magnitude;
    int64_t *terms, count;
} Gradient;

static void add_row(Gradient *sum, int64_t row, Bounded factor, const double *with, int64_t depth) {
    for (int64_t d = 0; d < depth; d++) {
        int64_t i = row * depth + d;
        sum->value[i] += factor.value * with[d];
        sum->slack[i] += factor.slack * fabs(with[d]);
        sum->magnitude[i] += (fabs(factor.value) + factor.slack) * fabs(with[d]);
        sum->terms[i]++;
    }
}

static Gradient make_gradient(double *expected, double *slack, int64_t count) {
    Gradient made = {expected, slack, calloc((size_t)count + 1, sizeof(double)), calloc((size_t)count + 1, sizeof(int64_t)),
                     count};
    if (!made.magnitude || !made.terms) abort();
    for (int64_t i = 0; i < count; i++) expected[i] = slack[i] = 0;
    return made;
}

static void finish_gradient(Gradient *sum, double scale) {
    for (int64_t i = 0; i < sum->count; i++) {
        sum->slack[i] += reference_serial_slack(sum->terms[i], sum->magnitude[i]);
        sum->value[i] *= scale;
        sum->slack[i] = (sum->slack[i] + 4 * F32_ROUNDOFF * fabs(sum->value[i])) * scale + F32_TINY;
    }
    free(sum->magnitude);
    free(sum->terms);
}

typedef struct Gradients {
    Gradient dq, dk, dv;
} Gradients;

/* What the score of query i and key `row` adds, given the row of `do`. */
static void add_score(const Problem *problem, double scale, int64_t i, int64_t row, const double *given, double lse,
                      Bounded delta, Gradients *sums) {
    int64_t depth = problem_dimension(problem, 'D');
    const double *q = problem->input[0] + i * depth, *k = problem->input[1] + row * depth,
                 *v = problem->input[2] + row * depth;
    Bounded p = weight_of(product_of(q, k, depth), scale, lse), dp = product_of(given, v, depth);
    double change = dp.value - delta.value, unsure = dp.slack + delta.slack + 2 * F32_ROUNDOFF * fabs(change);
    Bounded ds = {p.value * change, p.slack * fabs(change) + (p.value + p.slack) * unsure +
                                        2 * F32_ROUNDOFF * fabs(p.value * change) + F32_TINY};
    add_row(&sums->dv, row, rounded_to(p, problem->type), given, depth);
    add_row(&sums->dk, row, rounded_to(ds, problem->type), q, depth);
    add_row(&sums->dq, i, rounded_to(ds, problem->type), k, depth);
}

static void finish_gradients(Gradients *sums, double scale) {
    finish_gradient(&sums->dq, scale);
    finish_gradient(&sums->dk, scale);
    finish_gradient(&sums->dv, 1);
}

static void attention_backward(const Problem *problem, Sight *sight) {
    int64_t batches = problem_dimension(problem, 'B'), heads = problem_dimension(problem, 'H');
    int64_t groups = problem_dimension(problem, 'G'), queries = problem_dimension(problem, 'S');
    int64_t keys = problem_dimension(problem, 'L'), depth = problem_dimension(problem, 'D');
    const double *const *in = problem->input;
    double scale = (float)problem->scalar[0];
    const Expectation *further = problem->further;
    Gradients sums = {make_gradient(problem->expected, problem->slack, batches * heads * queries * depth),
                      make_gradient(further[0].expected, further[0].slack, batches * groups * keys * depth),
                      make_gradient(further[1].expected, further[1].slack, batches * groups * keys * depth)};
    for (int64_t i = 0; i < batches * heads * queries; i++) {
        int64_t head = i / queries, group = head / heads * groups + head % heads / (heads / groups), first = 0,
                last = keys;
        if (sight) sight(problem, i % queries, &first, &last);
        const double *given = in[5] + i * depth;
        Bounded delta = product_of(in[3] + i * depth, given, depth);
        for (int64_t t = first; t < last; t++)
            add_score(problem, scale, i, group * keys + t, given, in[4][i], delta, &sums);
    }
    finish_gradients(&sums, scale);
}

void reference_attention_backward(const Problem *problem) { attention_backward(problem, NULL); }
void reference_attention_backward_causal(const Problem *problem) { attention_backward(problem, see_causal); }

/* ---- gradients of packed sequences ---- */

/* Rows of a result, [row, head, depth], that come from one sequence, which may have been those of one before. */
static void take_rows(Expectation result, const Gradient *sum, int64_t first, int64_t last, int64_t width, bool *taken) {
    for (int64_t i = first * width; i < last * width; i++) {
        result.expected[i] = sum->value[i];
        result.slack[i] = taken[i / width] ? -1 : sum->slack[i];
    }
    for (int64_t row = first; row < last; row++) taken[row] = true;
}

static Gradient make_own_gradient(int64_t count) {
    double *numbers = malloc(sizeof *numbers * (2 * (size_t)count + 1));
    if (!numbers) abort();
    return make_gradient(numbers, numbers + count, count);
}

static Expectation begin_with(const double *given, double *expected, double *slack, int64_t count) {
    for (int64_t i = 0; i < count; i++) expected[i] = given[i];
    return (Expectation){expected, slack};
}

static int64_t nearer(int64_t end, int64_t begin, int64_t longest) {
    if (longest < 0) longest = 0;
    return end - begin > longest ? begin + longest : end;
}

static void add_sequence(const Problem *problem, bool causal, int64_t b, Gradients *sums, int64_t q[2], int64_t k[3]) {
    int64_t heads = problem_dimension(problem, 'H'), groups = problem_dimension(problem, 'G');
    int64_t rows = problem_dimension(problem, 'S'), depth = problem_dimension(problem, 'D'), q_end;
    double scale = (float)problem->scalar[2]; /* the argument after the greatest lengths */
    bounds(problem->input[3], b, rows, &q[0], &q_end);
    bounds(problem->input[4], b, problem_dimension(problem, 'L'), &k[0], &k[1]);
    q[1] = nearer(q_end, q[0], problem_dimension(problem, 'Z'));
    k[2] = nearer(k[1], k[0], problem_dimension(problem, 'Y'));
    for (int64_t i = q[0] * heads; i < q[1] * heads; i++) {
        int64_t s = i / heads, h = i % heads;
        const double *given = problem->input[7] + i * depth;
        Bounded delta = product_of(problem->input[5] + i * depth, given, depth);
        for (int64_t t = k[0]; t < k[1]; t++)
            if (!causal || t - k[1] <= s - q_end)
                add_score(problem, scale, i, t * groups + h / (heads / groups), given, problem->input[6][h * rows + s], delta,
                          sums);
    }
    finish_gradients(sums, scale);
}

static void varlen_backward(const Problem *problem, bool causal) {
    int64_t heads = problem_dimension(problem, 'H'), groups = problem_dimension(problem, 'G');
    int64_t rows = problem_dimension(problem, 'S'), keys = problem_dimension(problem, 'L');
    int64_t depth = problem_dimension(problem, 'D'), width = heads * depth, key_width = groups * depth;
    const Expectation *further = problem->further;
    Expectation dq = begin_with(problem->input[8], problem->expected, problem->slack, rows * width),
                dk = begin_with(problem->input[9], further[0].expected, further[0].slack, keys * key_width),
                dv = begin_with(problem->input[10], further[1].expected, further[1].slack, keys * key_width);
    bool *taken = calloc((size_t)(rows + 2 * keys) + 1, 1);
    if (!taken) abort();
    for (int64_t b = 0; b + 1 < problem_dimension(problem, 'E'); b++) {
        Gradients sums = {make_own_gradient(rows * width), make_own_gradient(keys * key_width),
                          make_own_gradient(keys * key_width)};
        int64_t q[2], k[3];
        add_sequence(problem, causal, b, &sums, q, k);
        take_rows(dq, &sums.dq, q[0], q[1], width, taken);
        take_rows(dk, &sums.dk, k[0], k[2], key_width, taken + rows);
        take_rows(dv, &sums.dv, k[0], k[2], key_width, taken + rows + keys);
        free(sums.dq.value);
        free(sums.dk.value);
        free(sums.dv.value);
    }
    free(taken);
}

void reference_attention_varlen_backward(const Problem *problem) { varlen_backward(problem, false); }
void reference_attention_varlen_backward_causal(const Problem *problem) { varlen_backward(problem, true); }
