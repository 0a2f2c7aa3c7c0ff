/* Kernels that consist of products: matmul, convolution, attention; and pooling, which iterates over windows like
 * convolution. */
#include "cases.h"

#define A_ROWS                                                                                                         \
    { "a", ROLE_IN, "MK", KIND_T, SPECIAL_ALL }
#define A_COLUMNS                                                                                                      \
    { "a", ROLE_IN, "KM", KIND_T, SPECIAL_ALL }
#define B_ROWS                                                                                                         \
    { "b", ROLE_IN, "KN", KIND_T, SPECIAL_ALL }
#define B_COLUMNS                                                                                                      \
    { "b", ROLE_IN, "NK", KIND_T, SPECIAL_ALL }
#define C_ROWS                                                                                                         \
    { "c", ROLE_OUT, "MN", KIND_U, SPECIAL_NONE }
#define STRIDE                                                                                                         \
    { "stride", ROLE_INTEGER, "X", KIND_I64, SPECIAL_NONE }
#define DILATION                                                                                                       \
    { "dilation", ROLE_INTEGER, "Y", KIND_I64, SPECIAL_NONE }
#define PAD                                                                                                            \
    { "pad", ROLE_INTEGER, "Z", KIND_I64, SPECIAL_NONE }
#define WINDOW                                                                                                         \
    { "window", ROLE_INTEGER, "R", KIND_I64, SPECIAL_NONE }
#define IMAGE                                                                                                          \
    { "x", ROLE_IN, "BHWC", KIND_T, SPECIAL_ALL }
#define POOLED                                                                                                         \
    { "y", ROLE_OUT, "BPQC", KIND_T, SPECIAL_NONE }
#define SCALE                                                                                                          \
    { "scale", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE }
#define CAUSAL                                                                                                         \
    { "causal", ROLE_TRUTH, NULL, KIND_F32, SPECIAL_NONE }
#define QUERIES(dimensions)                                                                                            \
    { "q", ROLE_IN, dimensions, KIND_T, SPECIAL_FINITE }
#define KEYS(dimensions)                                                                                               \
    {"k", ROLE_IN, dimensions, KIND_T, SPECIAL_FINITE}, { "v", ROLE_IN, dimensions, KIND_T, SPECIAL_FINITE }
#define ATTENDED(dimensions)                                                                                           \
    { "o", ROLE_OUT, dimensions, KIND_T, SPECIAL_NONE }
#define GRADIENTS                                                                                                      \
    {"o", ROLE_IN, "BHSD", KIND_T, SPECIAL_FINITE}, {"lse", ROLE_IN, "BHS", KIND_F32, SPECIAL_FINITE},                 \
        {"do", ROLE_IN, "BHSD", KIND_T, SPECIAL_FINITE}, {"dq", ROLE_OUT, "BHSD", KIND_T, SPECIAL_NONE},               \
        {"dk", ROLE_OUT, "BGLD", KIND_T, SPECIAL_NONE}, { "dv", ROLE_OUT, "BGLD", KIND_T, SPECIAL_NONE }
#define PACKED                                                                                                         \
    QUERIES("SHD"), KEYS("LGD"), {"cu_q", ROLE_IN, "E", KIND_I32, SPECIAL_NONE, 'U', true}, {                          \
        "cu_k", ROLE_IN, "E", KIND_I32, SPECIAL_NONE, 'V', true                                                        \
    }
#define VARLEN_PARAMETERS                                                                                              \
    {                                                                                                                  \
        PACKED, {"o", ROLE_INOUT, "SHD", KIND_T, SPECIAL_FINITE}, {"longest", ROLE_INTEGER, "Z", KIND_I64, SPECIAL_NONE},  \
            SCALE, CAUSAL                                                                                              \
    }
#define VARLEN_LSE_PARAMETERS                                                                                          \
    {                                                                                                                  \
        PACKED, {"o", ROLE_INOUT, "SHD", KIND_T, SPECIAL_FINITE}, {"lse", ROLE_INOUT, "HS", KIND_F32, SPECIAL_FINITE}, \
            {"longest", ROLE_INTEGER, "Z", KIND_I64, SPECIAL_NONE}, SCALE, CAUSAL                                      \
    }
#define VARLEN_GRADIENTS                                                                                               \
    {                                                                                                                  \
        PACKED, {"o", ROLE_IN, "SHD", KIND_T, SPECIAL_FINITE}, {"lse", ROLE_IN, "HS", KIND_F32, SPECIAL_FINITE},       \
            {"do", ROLE_IN, "SHD", KIND_T, SPECIAL_FINITE}, {"dq", ROLE_INOUT, "SHD", KIND_T, SPECIAL_FINITE},         \
            {"dk", ROLE_INOUT, "LGD", KIND_T, SPECIAL_FINITE}, {"dv", ROLE_INOUT, "LGD", KIND_T, SPECIAL_FINITE},      \
            {"longest_q", ROLE_INTEGER, "Z", KIND_I64, SPECIAL_NONE},                                                  \
            {"longest_k", ROLE_INTEGER, "Y", KIND_I64, SPECIAL_NONE}, SCALE, CAUSAL                                    \
    }
#define F8_PARAMETERS                                                                                                  \
    {                                                                                                                  \
        QUERIES("BHSD"), {"k", ROLE_IN, "BGLD", KIND_T, SPECIAL_FINITE}, {"v", ROLE_IN, "BGDL", KIND_T, SPECIAL_FINITE},   \
            {"q_scale", ROLE_IN, "BH", KIND_F32, SPECIAL_NONE}, {"k_scale", ROLE_IN, "BG", KIND_F32, SPECIAL_NONE},    \
            {"v_scale", ROLE_IN, "BG", KIND_F32, SPECIAL_NONE}, {"o", ROLE_OUT, "BHSD", KIND_U, SPECIAL_NONE}, SCALE,  \
            CAUSAL                                                                                                     \
    }
#define SCORED                                                                                                         \
    QUERIES("BHSD"), {"k", ROLE_IN, "BGLD", KIND_T, SPECIAL_FINITE}, {"v", ROLE_IN, "BGLV", KIND_T, SPECIAL_FINITE},   \
        {"sink", ROLE_IN, "H", KIND_F32, SPECIAL_NONE}, {"o", ROLE_OUT, "BHSV", KIND_T, SPECIAL_NONE}, SCALE, CAUSAL

static const Case cases[] = {
    {.name = "matmul:matmul/scaled",
     .parameters = {A_ROWS, B_ROWS, C_ROWS, {"alpha", ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {-0.3},
     .reference = reference_matmul_scaled,
     .settings = {{"epi", "scaled"}}},
    {.name = "matmul:matmul/add_residual",
     .parameters = {A_ROWS, B_ROWS, C_ROWS, {"residual", ROLE_IN, "MN", KIND_F32, SPECIAL_ALL}},
     .reference = reference_matmul_residual,
     .settings = {{"epi", "add_residual"}}},
    {.name = "matmul:matmul_tn", .parameters = {A_COLUMNS, B_ROWS, C_ROWS}, .reference = reference_matmul_tn},
    {.name = "matmul:matmul_nt", .parameters = {A_ROWS, B_COLUMNS, C_ROWS}, .reference = reference_matmul_nt},
    {.name = "matmul:matmul_tt", .parameters = {A_COLUMNS, B_COLUMNS, C_ROWS}, .reference = reference_matmul_tt},
    {.name = "matmul:matmul_swiglu",
     .parameters =
         {A_ROWS, {"gate", ROLE_IN, "KN", KIND_T, SPECIAL_FINITE}, {"up", ROLE_IN, "KN", KIND_T, SPECIAL_ALL}, C_ROWS},
     .reference = reference_matmul_swiglu},
    {.name = "matmul:matmul_split_k", .parameters = {A_ROWS, B_ROWS, C_ROWS}, .reference = reference_matmul_split_k},
    {.name = "matmul:matmul_batched",
     .parameters = {{"a", ROLE_IN, "BMK", KIND_T, SPECIAL_ALL},
                    {"b", ROLE_IN, "BKN", KIND_T, SPECIAL_ALL},
                    {"c", ROLE_OUT, "BMN", KIND_U, SPECIAL_NONE}},
     .reference = reference_matmul_batched},
    {.name = "matmul:matmul_i8",
     .parameters = {{"a", ROLE_IN, "MK", KIND_I8, SPECIAL_NONE},
                    {"b", ROLE_IN, "KN", KIND_I8, SPECIAL_NONE},
                    {"row_scale", ROLE_IN, "M", KIND_F32, SPECIAL_ALL},
                    {"column_scale", ROLE_IN, "N", KIND_F32, SPECIAL_ALL},
                    C_ROWS},
     .reference = reference_matmul_i8},
    {.name = "matmul:matmul_f8",
     .parameters = {A_ROWS,
                    B_COLUMNS,
                    {"row_scale", ROLE_IN, "M", KIND_F32, SPECIAL_ALL},
                    {"column_scale", ROLE_IN, "N", KIND_F32, SPECIAL_ALL},
                    C_ROWS},
     .reference = reference_matmul_f8},
    {.name = "matmul:gemv",
     .parameters = {A_ROWS, {"x", ROLE_IN, "K", KIND_T, SPECIAL_ALL}, {"y", ROLE_OUT, "M", KIND_U, SPECIAL_NONE}},
     .reference = reference_gemv},
    {.name = "matmul:gemv_t",
     .parameters = {{"a", ROLE_IN, "KN", KIND_T, SPECIAL_ALL},
                    {"x", ROLE_IN, "K", KIND_T, SPECIAL_ALL},
                    {"y", ROLE_OUT, "N", KIND_U, SPECIAL_NONE}},
     .reference = reference_gemv_t},
    {.name = "conv:conv1d",
     .parameters = {{"x", ROLE_IN, "BWC", KIND_T, SPECIAL_ALL},
                    {"wt", ROLE_IN, "SCO", KIND_T, SPECIAL_ALL},
                    {"bias", ROLE_IN, "O", KIND_F32, SPECIAL_ALL},
                    {"y", ROLE_OUT, "BQO", KIND_T, SPECIAL_NONE},
                    STRIDE,
                    DILATION,
                    PAD},
     .reference = reference_conv1d},
    {.name = "conv:conv1d_depthwise",
     .parameters = {{"x", ROLE_IN, "BWC", KIND_T, SPECIAL_ALL},
                    {"wt", ROLE_IN, "SC", KIND_T, SPECIAL_ALL},
                    {"bias", ROLE_IN, "C", KIND_F32, SPECIAL_ALL},
                    {"y", ROLE_OUT, "BQC", KIND_T, SPECIAL_NONE},
                    STRIDE,
                    DILATION,
                    PAD},
     .reference = reference_conv1d_depthwise},
    {.name = "conv:conv2d",
     .parameters = {IMAGE,
                    {"wt", ROLE_IN, "RSCO", KIND_T, SPECIAL_ALL},
                    {"bias", ROLE_IN, "O", KIND_F32, SPECIAL_ALL},
                    {"y", ROLE_OUT, "BPQO", KIND_T, SPECIAL_NONE},
                    STRIDE,
                    DILATION,
                    PAD},
     .reference = reference_conv2d},
    {.name = "conv:conv2d_input_gradient",
     .parameters = {{"dy", ROLE_IN, "BPQO", KIND_T, SPECIAL_ALL},
                    {"wt", ROLE_IN, "RSCO", KIND_T, SPECIAL_ALL},
                    {"dx", ROLE_OUT, "BHWC", KIND_T, SPECIAL_NONE},
                    STRIDE,
                    DILATION,
                    PAD},
     .reference = reference_conv2d_input_gradient},
    {.name = "conv:conv2d_weight_gradient",
     .parameters = {IMAGE,
                    {"dy", ROLE_IN, "BPQO", KIND_T, SPECIAL_ALL},
                    {"dwt", ROLE_OUT, "RSCO", KIND_T, SPECIAL_NONE},
                    STRIDE,
                    DILATION,
                    PAD},
     .reference = reference_conv2d_weight_gradient},
    {.name = "conv:conv2d_depthwise",
     .parameters = {IMAGE,
                    {"wt", ROLE_IN, "RSC", KIND_T, SPECIAL_ALL},
                    {"bias", ROLE_IN, "C", KIND_F32, SPECIAL_ALL},
                    POOLED,
                    STRIDE,
                    DILATION,
                    PAD},
     .reference = reference_conv2d_depthwise},
    {.name = "pool:max_pool2d", .parameters = {IMAGE, POOLED, WINDOW, STRIDE, PAD}, .reference = reference_max_pool2d},
    {.name = "pool:avg_pool2d",
     .parameters = {IMAGE, POOLED, WINDOW, STRIDE, PAD, {"count_outside", ROLE_TRUTH, NULL, KIND_F32, SPECIAL_NONE}},
     .reference = reference_avg_pool2d},
    {.name = "pool:avg_pool2d/outside",
     .parameters = {IMAGE, POOLED, WINDOW, STRIDE, PAD, {"count_outside", ROLE_TRUTH, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {0, 0, 0, 1},
     .reference = reference_avg_pool2d},
    {.name = "attention:attention",
     .parameters = {QUERIES("BHSD"), KEYS("BGLD"), ATTENDED("BHSD"), SCALE, CAUSAL},
     .scalar = {0.25, 0},
     .reference = reference_attention},
    {.name = "attention:attention/causal",
     .parameters = {QUERIES("BHSD"), KEYS("BGLD"), ATTENDED("BHSD"), SCALE, CAUSAL},
     .scalar = {0.25, 1},
     .reference = reference_attention_causal},
    {.name = "attention:attention_lse",
     .parameters = {QUERIES("BHSD"),
                    KEYS("BGLD"),
                    ATTENDED("BHSD"),
                    {"lse", ROLE_OUT, "BHS", KIND_F32, SPECIAL_NONE},
                    SCALE,
                    CAUSAL},
     .scalar = {0.25, 0},
     .reference = reference_attention},
    {.name = "attention:attention_lse/causal",
     .parameters = {QUERIES("BHSD"),
                    KEYS("BGLD"),
                    ATTENDED("BHSD"),
                    {"lse", ROLE_OUT, "BHS", KIND_F32, SPECIAL_NONE},
                    SCALE,
                    CAUSAL},
     .scalar = {0.25, 1},
     .reference = reference_attention_causal},
    {.name = "attention:attention_f8",
     .parameters = F8_PARAMETERS,
     .scalar = {0.0625, 0},
     .reference = reference_attention_f8},
    {.name = "attention:attention_f8/causal",
     .parameters = F8_PARAMETERS,
     .scalar = {0.0625, 1},
     .reference = reference_attention_f8_causal},
    {.name = "attention:attention_backward",
     .parameters = {QUERIES("BHSD"), KEYS("BGLD"), GRADIENTS, SCALE, CAUSAL},
     .scalar = {0.0625, 0},
     .reference = reference_attention_backward},
    {.name = "attention:attention_backward/causal",
     .parameters = {QUERIES("BHSD"), KEYS("BGLD"), GRADIENTS, SCALE, CAUSAL},
     .scalar = {0.0625, 1},
     .reference = reference_attention_backward_causal},
    {.name = "attention:attention_scored",
     .parameters = {SCORED},
     .scalar = {0.25, 0},
     .reference = reference_attention_scored},
    {.name = "attention:attention_scored/causal",
     .parameters = {SCORED},
     .scalar = {0.25, 1},
     .reference = reference_attention_scored_causal},
    {.name = "attention:attention_scored/soft_cap",
     .parameters = {SCORED},
     .scalar = {0.25, 1},
     .reference = reference_attention_soft_cap,
     .settings = {{"f", "soft_cap"}}},
    {.name = "attention:attention_scored/alibi",
     .parameters = {SCORED, {"slope", ROLE_IN, "H", KIND_F32, SPECIAL_NONE}},
     .scalar = {0.25, 1},
     .reference = reference_attention_alibi,
     .settings = {{"f", "alibi"}}},
    {.name = "attention:attention_scored/biased",
     .parameters = {SCORED, {"bias", ROLE_IN, "HSL", KIND_F32, SPECIAL_NONE}},
     .scalar = {0.25, 0},
     .reference = reference_attention_biased,
     .settings = {{"f", "biased"}}},
    {.name = "attention:attention_window",
     .parameters = {QUERIES("BHSD"),
                    KEYS("BGLD"),
                    ATTENDED("BHSD"),
                    SCALE,
                    {"window", ROLE_INTEGER, "W", KIND_I64, SPECIAL_NONE}},
     .scalar = {0.25},
     .reference = reference_attention_window},
    {.name = "attention:attention_varlen",
     .parameters = VARLEN_PARAMETERS,
     .scalar = {0, 0.25, 0},
     .reference = reference_attention_varlen},
    {.name = "attention:attention_varlen/causal",
     .parameters = VARLEN_PARAMETERS,
     .scalar = {0, 0.25, 1},
     .reference = reference_attention_varlen_causal},
    {.name = "attention:attention_varlen_lse",
     .parameters = VARLEN_LSE_PARAMETERS,
     .scalar = {0, 0.25, 0},
     .reference = reference_attention_varlen},
    {.name = "attention:attention_varlen_lse/causal",
     .parameters = VARLEN_LSE_PARAMETERS,
     .scalar = {0, 0.25, 1},
     .reference = reference_attention_varlen_causal},
    {.name = "attention:attention_varlen_backward",
     .parameters = VARLEN_GRADIENTS,
     .scalar = {0, 0, 0.0625, 0},
     .reference = reference_attention_varlen_backward},
    {.name = "attention:attention_varlen_backward/causal",
     .parameters = VARLEN_GRADIENTS,
     .scalar = {0, 0, 0.0625, 1},
     .reference = reference_attention_varlen_backward_causal},
    {.name = "attention:attention_paged",
     .parameters = {QUERIES("BHD"),
                    KEYS("PCGD"),
                    {"table", ROLE_IN, "BN", KIND_I32, SPECIAL_NONE, 'P'},
                    {"lengths", ROLE_IN, "B", KIND_I32, SPECIAL_NONE, 'V'},
                    ATTENDED("BHD"),
                    SCALE},
     .scalar = {0.25},
     .reference = reference_attention_paged},
};

const CaseTable product_cases = {cases, sizeof cases / sizeof cases[0]};
