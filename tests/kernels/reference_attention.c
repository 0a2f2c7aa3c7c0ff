#include <math.h>
#include <stdlib.h>

#include "reference.h"

typedef struct Head {
    const double *q, *k, *v; /* [S, D], [L, D], [L, D] */
    double *o, *slack;       /* [S, D] */
    int64_t queries, keys, depth;
    double scale;
    bool causal;
    Type type;
} Head;

/* Scores of query s, and how far f32 may be from any of them; false where no key is seen. */
static bool scores(const Head *head, int64_t s, int64_t seen, double *score, double *worst) {
    *worst = 0;
    for (int64_t t = 0; t < seen; t++) {
        double total = 0, magnitude = 0;
        for (int64_t d = 0; d < head->depth; d++) {
            double product = head->q[s * head->depth + d] * head->k[t * head->depth + d];
            total += product;
            magnitude += fabs(product);
        }
        score[t] = total * head->scale;
        double slack = (reference_serial_slack(head->depth, magnitude) + 4 * F32_ROUNDOFF * fabs(total)) * head->scale;
        if (slack > *worst) *worst = slack;
    }
    return seen > 0;
}

static void attend(const Head *head, int64_t s, double *weight) {
    int64_t seen = head->causal ? s + 1 + head->keys - head->queries : head->keys;
    double worst, top = -INFINITY, total = 0;
    bool any = scores(head, s, seen, weight, &worst);
    for (int64_t t = 0; t < seen; t++) top = isnan(weight[t]) || weight[t] > top ? weight[t] : top;
    for (int64_t t = 0; t < seen; t++) total += weight[t] = exp(weight[t] - top);
    /* Each weight carries the error of its score and of the maximum, is rounded to the type of v, and is scaled anew
     * for every block of keys. Weights are at most 1 and may be denormal, where rounding costs up to half the distance
     * of denormals however small the weight is; what scales it afterwards is at most 1 / total. */
    double rounding = head->type == TYPE_F32 ? 0 : type_roundoff(head->type);
    double relative = 2 * worst + rounding + F32_ROUNDOFF * (3 * (double)seen + 80);
    double absolute = (type_denormal(head->type) / 2 + F32_TINY) / total;
    for (int64_t d = 0; d < head->depth; d++) {
        double value = 0, magnitude = 0, values = 0;
        for (int64_t t = 0; t < seen; t++) {
            double v = head->v[t * head->depth + d], product = weight[t] / total * v;
            value += product;
            magnitude += fabs(product);
            values += fabs(v);
        }
        head->o[s * head->depth + d] = any ? value : NAN;
        head->slack[s * head->depth + d] = relative * magnitude + absolute * values + F32_TINY;
    }
}

static void attention(const Problem *problem, bool causal) {
    int64_t batches = problem_dimension(problem, 'B'), heads = problem_dimension(problem, 'H');
    int64_t groups = problem_dimension(problem, 'G'), queries = problem_dimension(problem, 'S');
    int64_t keys = problem_dimension(problem, 'L'), depth = problem_dimension(problem, 'D');
    double *weight = malloc(sizeof(double) * (size_t)(keys + 1));
    if (!weight) abort();
    for (int64_t i = 0; i < batches * heads; i++) {
        int64_t group = i / heads * groups + i % heads / (heads / groups);
        Head head = {
            .q = problem->input[0] + i * queries * depth,
            .k = problem->input[1] + group * keys * depth,
            .v = problem->input[2] + group * keys * depth,
            .o = problem->expected + i * queries * depth,
            .slack = problem->slack + i * queries * depth,
            .queries = queries,
            .keys = keys,
            .depth = depth,
            .scale = (float)problem->scalar[0],
            .causal = causal,
            .type = problem->type,
        };
        for (int64_t s = 0; s < queries; s++) attend(&head, s, weight);
    }
    free(weight);
}

void reference_attention(const Problem *problem) { attention(problem, false); }
void reference_attention_causal(const Problem *problem) { attention(problem, true); }
