#include "cases.h"

#include <string.h>

#define X_ROWS                                                                                                         \
    { "x", ROLE_IN, "MN", KIND_T, SPECIAL_ALL }
#define Y_SAME                                                                                                         \
    { "y", ROLE_OUT, "MN", KIND_T, SPECIAL_NONE }
#define DY_ROWS                                                                                                        \
    { "dy", ROLE_IN, "MN", KIND_T, SPECIAL_ALL }
#define NORM_ROW(name)                                                                                                 \
    { name, ROLE_IN, "N", KIND_F32, SPECIAL_FINITE }
#define NORM_COLUMN(name)                                                                                              \
    { name, ROLE_IN, "M", KIND_F32, SPECIAL_FINITE }
#define NORM_RESULT(name, dimensions)                                                                                  \
    { name, ROLE_OUT, dimensions, KIND_F32, SPECIAL_NONE }
#define VARIANCE(which, correction)                                                                                    \
    {                                                                                                                  \
        .name = "reduce:" which, .scalar = {correction}, .reference = reference_variance_rows, .parameters = {         \
            X_ROWS,                                                                                                    \
            NORM_RESULT("y", "M"),                                                                                     \
            NORM_RESULT("mean", "M"),                                                                                  \
            {"correction", ROLE_INTEGER, NULL, KIND_I64, SPECIAL_NONE}                                                 \
        }                                                                                                              \
    }
#define INDICES(name, dimensions, limit)                                                                               \
    { name, ROLE_IN, dimensions, KIND_U, SPECIAL_NONE, limit }
/* A head is 2 * D wide: the tests give that width as E. */
#define ROTARY(which, reference_of)                                                                                    \
    {                                                                                                                  \
        .name = "rotary:" which, .reference = reference_of, .parameters = {                                            \
            {"x", ROLE_IN, "BSHE", KIND_T, SPECIAL_ALL},                                                               \
            {"cosine", ROLE_IN, "SD", KIND_F32, SPECIAL_FINITE},                                                       \
            {"sine", ROLE_IN, "SD", KIND_F32, SPECIAL_FINITE},                                                         \
            {"y", ROLE_OUT, "BSHE", KIND_T, SPECIAL_NONE}                                                              \
        }                                                                                                              \
    }
/* The map of a function of one number. */
#define MAP(function)                                                                                                  \
    {                                                                                                                  \
        .name = "elementwise:map/" #function, .parameters = {X_ROWS, Y_SAME}, .reference = reference_##function,       \
        .settings = {{"f", #function}}, .elementwise = true                                                            \
    }
#define FUNCTION(function)                                                                                             \
    {                                                                                                                  \
        .name = "elementwise:map/" #function, .parameters = {X_ROWS, Y_SAME},                                          \
        .reference = reference_function_##function, .settings = {{"f", #function}}, .elementwise = true                \
    }
#define FUNCTION_OF_TWO(function)                                                                                      \
    {                                                                                                                  \
        .name = "elementwise:zip/" #function,                                                                          \
        .parameters = {X_ROWS, {"y", ROLE_IN, "MN", KIND_T, SPECIAL_ALL}, {"z", ROLE_OUT, "MN", KIND_T, SPECIAL_NONE}}, \
        .reference = reference_function_##function, .settings = {{"f", #function}}, .elementwise = true                \
    }
#define MATMUL_A                                                                                                       \
    { "a", ROLE_IN, "MK", KIND_T, SPECIAL_ALL }
#define MATMUL_B                                                                                                       \
    { "b", ROLE_IN, "KN", KIND_T, SPECIAL_ALL }
#define MATMUL_C                                                                                                       \
    { "c", ROLE_OUT, "MN", KIND_U, SPECIAL_NONE }
#define MATMUL_BIAS                                                                                                    \
    { "bias", ROLE_IN, "N", KIND_F32, SPECIAL_ALL }
static const Case cases[] = {
    {.name = "elementwise:add",
     .parameters = {X_ROWS, {"y", ROLE_IN, "MN", KIND_T, SPECIAL_ALL}, {"z", ROLE_OUT, "MN", KIND_T, SPECIAL_NONE}},
     .reference = reference_add,
     .elementwise = true},
    {.name = "elementwise:axpy",
     .parameters = {{"x", ROLE_IN, "N", KIND_T, SPECIAL_ALL},
                    {"y", ROLE_INOUT, "N", KIND_T, SPECIAL_ALL},
                    {"a", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {-1.7},
     .reference = reference_axpy,
     .elementwise = true},
    {.name = "elementwise:map", .parameters = {X_ROWS, Y_SAME}, .reference = reference_copy, .elementwise = true},
    {.name = "elementwise:map/relu",
     .parameters = {X_ROWS, Y_SAME},
     .reference = reference_relu,
     .settings = {{"f", "relu"}},
     .elementwise = true},
    {.name = "elementwise:map/gelu",
     .parameters = {X_ROWS, Y_SAME},
     .reference = reference_gelu,
     .settings = {{"f", "gelu"}},
     .elementwise = true},
    FUNCTION(exp),
    FUNCTION(exp2),
    FUNCTION(expm1),
    FUNCTION(log),
    FUNCTION(log2),
    FUNCTION(log1p),
    FUNCTION(sin),
    FUNCTION(cos),
    FUNCTION(tan),
    FUNCTION(tanh),
    FUNCTION(erf),
    FUNCTION(sigmoid),
    FUNCTION(rsqrt),
    FUNCTION(asin),
    FUNCTION(acos),
    FUNCTION(atan),
    FUNCTION(sinh),
    FUNCTION(cosh),
    FUNCTION(asinh),
    FUNCTION(acosh),
    FUNCTION(atanh),
    FUNCTION(cbrt),
    FUNCTION(erfc),
    FUNCTION(erfinv),
    FUNCTION(lgamma),
    {.name = "elementwise:map/gelu_tanh",
     .parameters = {X_ROWS, Y_SAME},
     .reference = reference_gelu_tanh,
     .settings = {{"f", "gelu_tanh"}},
     .elementwise = true},
    {.name = "elementwise:map/silu",
     .parameters = {X_ROWS, Y_SAME},
     .reference = reference_silu,
     .settings = {{"f", "silu"}},
     .elementwise = true},
    MAP(relu6),
    MAP(leaky_relu),
    MAP(elu),
    MAP(selu),
    MAP(softplus),
    MAP(logsigmoid),
    MAP(mish),
    MAP(hardsigmoid),
    MAP(hardswish),
    MAP(softsign),
    MAP(square),
    MAP(sign),
    {.name = "elementwise:map/swish",
     .parameters = {X_ROWS, Y_SAME},
     .reference = reference_silu,
     .settings = {{"f", "swish"}},
     .elementwise = true},
    {.name = "elementwise:zip",
     .parameters = {X_ROWS, {"y", ROLE_IN, "MN", KIND_T, SPECIAL_ALL}, {"z", ROLE_OUT, "MN", KIND_T, SPECIAL_NONE}},
     .reference = reference_logaddexp,
     .elementwise = true},
    FUNCTION_OF_TWO(atan2),
    FUNCTION_OF_TWO(hypot),
    FUNCTION_OF_TWO(fmod),
    {.name = "elementwise:chain",
     .parameters = {X_ROWS, {"y", ROLE_OUT, "M", KIND_T, SPECIAL_NONE}},
     .reference = reference_chain},
    {.name = "softmax:softmax", .parameters = {X_ROWS, Y_SAME}, .reference = reference_softmax},
    {.name = "softmax:softmax_passes", .parameters = {X_ROWS, Y_SAME}, .reference = reference_softmax},
    {.name = "softmax:softmax_row", .parameters = {X_ROWS, Y_SAME}, .reference = reference_softmax},
    {.name = "softmax:softmax_wide", .parameters = {X_ROWS, Y_SAME}, .reference = reference_softmax},
    {.name = "softmax:softmax_groups", .parameters = {X_ROWS, Y_SAME}, .reference = reference_softmax},
    {.name = "softmax:log_softmax_row", .parameters = {X_ROWS, Y_SAME}, .reference = reference_log_softmax},
    {.name = "softmax:logsumexp",
     .parameters = {X_ROWS, {"y", ROLE_OUT, "M", KIND_T, SPECIAL_NONE}},
     .reference = reference_logsumexp},
    {.name = "softmax:logsumexp_row",
     .parameters = {X_ROWS, {"y", ROLE_OUT, "M", KIND_T, SPECIAL_NONE}},
     .reference = reference_logsumexp},
    {.name = "loss:cross_entropy",
     .parameters = {{"x", ROLE_IN, "MV", KIND_T, SPECIAL_ALL},
                    {"target", ROLE_IN, "M", KIND_U, SPECIAL_NONE, 'V'},
                    {"loss", ROLE_OUT, "M", KIND_F32, SPECIAL_NONE},
                    {"lse", ROLE_OUT, "M", KIND_F32, SPECIAL_NONE}},
     .reference = reference_cross_entropy},
    {.name = "loss:cross_entropy_backward",
     .parameters = {{"x", ROLE_IN, "MV", KIND_T, SPECIAL_ALL},
                    {"target", ROLE_IN, "M", KIND_U, SPECIAL_NONE, 'V'},
                    {"lse", ROLE_IN, "M", KIND_F32, SPECIAL_FINITE},
                    {"dloss", ROLE_IN, "M", KIND_F32, SPECIAL_FINITE},
                    {"dx", ROLE_OUT, "MV", KIND_T, SPECIAL_NONE}},
     .reference = reference_cross_entropy_backward},
    {.name = "norm:layernorm",
     .parameters = {X_ROWS,
                    {"gamma", ROLE_IN, "N", KIND_F32, SPECIAL_FINITE},
                    {"beta", ROLE_IN, "N", KIND_F32, SPECIAL_FINITE},
                    Y_SAME,
                    {"eps", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {1e-5},
     .reference = reference_layernorm},
    {.name = "norm:rmsnorm",
     .parameters = {X_ROWS,
                    {"gamma", ROLE_IN, "N", KIND_F32, SPECIAL_FINITE},
                    Y_SAME,
                    {"eps", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {1e-5},
     .reference = reference_rmsnorm},
    {.name = "norm:layernorm_row",
     .parameters = {X_ROWS,
                    {"gamma", ROLE_IN, "N", KIND_U, SPECIAL_FINITE},
                    {"beta", ROLE_IN, "N", KIND_U, SPECIAL_FINITE},
                    Y_SAME,
                    {"eps", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {1e-5},
     .reference = reference_layernorm},
    {.name = "norm:rmsnorm_row",
     .parameters = {X_ROWS,
                    {"gamma", ROLE_IN, "N", KIND_U, SPECIAL_FINITE},
                    Y_SAME,
                    {"eps", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {1e-5},
     .reference = reference_rmsnorm},
    {.name = "norm:layernorm_forward",
     .parameters = {X_ROWS,
                    NORM_ROW("gamma"),
                    NORM_ROW("beta"),
                    Y_SAME,
                    NORM_RESULT("mean", "M"),
                    NORM_RESULT("rstd", "M"),
                    {"eps", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {1e-5},
     .reference = reference_layernorm_forward},
    {.name = "norm:layernorm_backward",
     .parameters = {DY_ROWS,
                    X_ROWS,
                    NORM_ROW("gamma"),
                    NORM_COLUMN("mean"),
                    NORM_COLUMN("rstd"),
                    {"dx", ROLE_OUT, "MN", KIND_T, SPECIAL_NONE}},
     .reference = reference_layernorm_backward},
    {.name = "norm:layernorm_backward_params",
     .parameters = {DY_ROWS, X_ROWS, NORM_COLUMN("mean"), NORM_COLUMN("rstd"), NORM_RESULT("dgamma", "N"),
                    NORM_RESULT("dbeta", "N")},
     .reference = reference_layernorm_backward_params},
    {.name = "norm:rmsnorm_forward",
     .parameters = {X_ROWS,
                    NORM_ROW("gamma"),
                    Y_SAME,
                    NORM_RESULT("rstd", "M"),
                    {"eps", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {1e-5},
     .reference = reference_rmsnorm_forward},
    {.name = "norm:rmsnorm_backward",
     .parameters =
         {DY_ROWS, X_ROWS, NORM_ROW("gamma"), NORM_COLUMN("rstd"), {"dx", ROLE_OUT, "MN", KIND_T, SPECIAL_NONE}},
     .reference = reference_rmsnorm_backward},
    {.name = "norm:rmsnorm_backward_params",
     .parameters = {DY_ROWS, X_ROWS, NORM_COLUMN("rstd"), NORM_RESULT("dgamma", "N")},
     .reference = reference_rmsnorm_backward_params},
    {.name = "norm:group_norm",
     .parameters = {{"x", ROLE_IN, "BCP", KIND_T, SPECIAL_ALL},
                    {"gamma", ROLE_IN, "C", KIND_F32, SPECIAL_FINITE},
                    {"beta", ROLE_IN, "C", KIND_F32, SPECIAL_FINITE},
                    {"y", ROLE_OUT, "BCP", KIND_T, SPECIAL_NONE},
                    {"groups", ROLE_INTEGER, NULL, KIND_I64, SPECIAL_NONE},
                    {"eps", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {2, 1e-5},
     .reference = reference_group_norm},
    VARIANCE("variance_rows", 1),
    VARIANCE("variance_rows_merged", 1),
    VARIANCE("variance_rows_merged/biased", 0),
    {.name = "reduce:sum_all", .parameters = {X_ROWS, NORM_RESULT("s", "")}, .reference = reference_sum_all},
    {.name = "reduce:mean_all", .parameters = {X_ROWS, NORM_RESULT("s", "")}, .reference = reference_mean_all},
    {.name = "reduce:max_all", .parameters = {X_ROWS, NORM_RESULT("s", "")}, .reference = reference_max_all},
    {.name = "reduce:norm_all", .parameters = {X_ROWS, NORM_RESULT("s", "")}, .reference = reference_norm_all},
    {.name = "cumsum:cumsum_rows", .parameters = {X_ROWS, Y_SAME}, .reference = reference_cumsum_rows},
    {.name = "cumsum:cumsum_columns", .parameters = {X_ROWS, Y_SAME}, .reference = reference_cumsum_columns},
    {.name = "index:take_rows",
     .parameters = {{"x", ROLE_IN, "ND", KIND_T, SPECIAL_ALL},
                    INDICES("at", "K", 'N'),
                    {"y", ROLE_OUT, "KD", KIND_T, SPECIAL_NONE}},
     .reference = reference_take_rows,
     .elementwise = true},
    {.name = "index:embedding",
     .parameters = {{"table", ROLE_IN, "VD", KIND_T, SPECIAL_ALL},
                    INDICES("token", "BS", 'V'),
                    {"y", ROLE_OUT, "BSD", KIND_T, SPECIAL_NONE}},
     .reference = reference_embedding,
     .elementwise = true},
    {.name = "index:embedding_backward",
     .parameters = {{"dy", ROLE_IN, "KD", KIND_T, SPECIAL_ALL},
                    INDICES("token", "K", 'V'),
                    {"dtable", ROLE_INOUT, "VD", KIND_F32, SPECIAL_ALL}},
     .reference = reference_embedding_backward},
    {.name = "index:take_along_rows",
     .parameters = {X_ROWS, INDICES("at", "MK", 'N'), {"y", ROLE_OUT, "MK", KIND_T, SPECIAL_NONE}},
     .reference = reference_take_along_rows,
     .elementwise = true},
    {.name = "index:one_hot",
     .parameters = {INDICES("at", "K", 'N'), {"y", ROLE_OUT, "KN", KIND_T, SPECIAL_NONE}},
     .reference = reference_one_hot},
    {.name = "index:masked_fill",
     .parameters = {X_ROWS,
                    {"mask", ROLE_IN, "MN", KIND_BOOL, SPECIAL_NONE},
                    Y_SAME,
                    {"value", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {-10000},
     .reference = reference_masked_fill,
     .elementwise = true},
    ROTARY("rotary_halves", reference_rotary_halves),
    ROTARY("rotary_pairs", reference_rotary_pairs),
    {.name = "dropout:dropout",
     .parameters = {X_ROWS,
                    Y_SAME,
                    {"p", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE},
                    {"seed", ROLE_INTEGER, NULL, KIND_I64, SPECIAL_NONE}},
     .scalar = {0.3, 0x123456789abcd},
     .reference = reference_dropout,
     .elementwise = true},
    {.name = "reduce:sum_rows",
     .parameters = {X_ROWS, {"y", ROLE_OUT, "M", KIND_T, SPECIAL_NONE}},
     .reference = reference_sum_rows},
    {.name = "reduce:sum_columns",
     .parameters = {X_ROWS, {"y", ROLE_OUT, "N", KIND_T, SPECIAL_NONE}},
     .reference = reference_sum_columns},
    {.name = "reduce:mean_rows",
     .parameters = {X_ROWS, {"y", ROLE_OUT, "M", KIND_T, SPECIAL_NONE}},
     .reference = reference_mean_rows},
    {.name = "reduce:mean_columns",
     .parameters = {X_ROWS, {"y", ROLE_OUT, "N", KIND_T, SPECIAL_NONE}},
     .reference = reference_mean_columns},
    {.name = "reduce:argmax_rows",
     .parameters = {X_ROWS, {"y", ROLE_OUT, "M", KIND_I64, SPECIAL_NONE}},
     .reference = reference_argmax_rows},
    {.name = "scan:welford_rows",
     .parameters = {{"x", ROLE_IN, "MN", KIND_T, SPECIAL_FINITE}, {"v", ROLE_OUT, "M", KIND_T, SPECIAL_NONE}},
     .reference = reference_welford_rows},
    {.name = "scan:linear_recurrence",
     .parameters = {{"a", ROLE_IN, "MN", KIND_T, SPECIAL_FINITE},
                    {"x", ROLE_IN, "MN", KIND_T, SPECIAL_FINITE},
                    {"h", ROLE_OUT, "MN", KIND_T, SPECIAL_NONE}},
     .reference = reference_linear_recurrence},
    {.name = "scan:segmented_cumsum",
     .parameters = {{"begins", ROLE_IN, "MN", KIND_BOOL, SPECIAL_NONE},
                    {"x", ROLE_IN, "MN", KIND_T, SPECIAL_FINITE},
                    {"y", ROLE_OUT, "MN", KIND_T, SPECIAL_NONE}},
     .reference = reference_segmented_cumsum},
    {.name = "transpose:transpose",
     .parameters = {X_ROWS, {"y", ROLE_OUT, "NM", KIND_T, SPECIAL_NONE}},
     .reference = reference_transpose,
     .elementwise = true},
    {.name = "matmul:matmul", .parameters = {MATMUL_A, MATMUL_B, MATMUL_C}, .reference = reference_matmul},
    {.name = "matmul:matmul/add_bias",
     .parameters = {MATMUL_A, MATMUL_B, MATMUL_C, MATMUL_BIAS},
     .reference = reference_matmul_bias,
     .settings = {{"epi", "add_bias"}}},
    {.name = "matmul:matmul/bias_relu",
     .parameters = {MATMUL_A, MATMUL_B, MATMUL_C, MATMUL_BIAS},
     .reference = reference_matmul_bias_relu,
     .settings = {{"epi", "bias_relu"}}},
    {.name = "matmul:matmul/bias_gelu",
     .parameters = {MATMUL_A, MATMUL_B, MATMUL_C, MATMUL_BIAS},
     .reference = reference_matmul_bias_gelu,
     .settings = {{"epi", "bias_gelu"}}},
    {.name = "matmul:matmul/bias_silu",
     .parameters = {MATMUL_A, MATMUL_B, MATMUL_C, MATMUL_BIAS},
     .reference = reference_matmul_bias_silu,
     .settings = {{"epi", "bias_silu"}}},
};

const Case *case_find(const char *name) {
    const CaseTable tables[] = {{cases, sizeof cases / sizeof cases[0]}, product_cases, library_cases, example_cases, program_cases, form_cases};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (size_t i = 0; i < tables[t].count; i++)
            if (strcmp(tables[t].items[i].name, name) == 0) return &tables[t].items[i];
    return NULL;
}
