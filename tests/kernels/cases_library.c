/* Kernels of the standard library that are not of numbers alone: sorts, draws, routing, transforms. */
#include "cases.h"

#define TENSOR(name, role, dimensions, kind, special)                                                                  \
    { name, role, dimensions, kind, special }
#define NUMBER(name)                                                                                                   \
    { name, ROLE_NUMBER, NULL, KIND_F32, SPECIAL_NONE }
#define INTEGER(name)                                                                                                  \
    { name, ROLE_INTEGER, NULL, KIND_I64, SPECIAL_NONE }

static const Case cases[] = {
    {.name = "sort:sort_rows",
     .parameters = {TENSOR("x", ROLE_IN, "MN", KIND_T, SPECIAL_ALL), TENSOR("y", ROLE_OUT, "MN", KIND_T, SPECIAL_NONE)},
     .reference = reference_sort_whole_rows},
    {.name = "sort:argsort_rows",
     .parameters = {TENSOR("x", ROLE_IN, "MN", KIND_T, SPECIAL_ALL), TENSOR("at", ROLE_OUT, "MN", KIND_I64, SPECIAL_NONE)},
     .reference = reference_argsort_rows},
    {.name = "sort:topk_rows",
     .parameters = {TENSOR("x", ROLE_IN, "MN", KIND_T, SPECIAL_FINITE), TENSOR("y", ROLE_OUT, "MK", KIND_T, SPECIAL_NONE),
                    TENSOR("at", ROLE_OUT, "MK", KIND_I64, SPECIAL_NONE)},
     .reference = reference_topk_rows},
    {.name = "sampling:sample_rows",
     .parameters = {TENSOR("x", ROLE_IN, "MV", KIND_T, SPECIAL_NONE), TENSOR("token", ROLE_OUT, "M", KIND_I64, SPECIAL_NONE),
                    NUMBER("temperature"), NUMBER("top_p"), INTEGER("seed"), INTEGER("index")},
     .scalar = {0.7, 0.9, 0x123456789abcd, 11},
     .reference = reference_sample_rows,
     .settings = {{"K", "8"}}},
    {.name = "routing:route",
     .parameters = {TENSOR("x", ROLE_IN, "ME", KIND_T, SPECIAL_FINITE), TENSOR("weight", ROLE_OUT, "MK", KIND_F32, SPECIAL_NONE),
                    TENSOR("expert", ROLE_OUT, "MK", KIND_I32, SPECIAL_NONE), TENSOR("place", ROLE_OUT, "MK", KIND_I32, SPECIAL_NONE),
                    TENSOR("count", ROLE_OUT, "E", KIND_I32, SPECIAL_NONE)},
     .reference = reference_route},
    {.name = "loss:jsd",
     .parameters = {TENSOR("x", ROLE_IN, "MN", KIND_T, SPECIAL_NONE), TENSOR("t", ROLE_IN, "MN", KIND_T, SPECIAL_NONE),
                    TENSOR("loss", ROLE_OUT, "M", KIND_F32, SPECIAL_NONE)},
     .reference = reference_jsd},
    {.name = "loss:focal",
     .parameters = {TENSOR("x", ROLE_IN, "MV", KIND_T, SPECIAL_NONE), {"target", ROLE_IN, "M", KIND_U, SPECIAL_NONE, 'V'},
                    TENSOR("loss", ROLE_OUT, "M", KIND_F32, SPECIAL_NONE), NUMBER("gamma")},
     .scalar = {2},
     .reference = reference_focal},
    {.name = "scan:selective_scan",
     .parameters = {TENSOR("x", ROLE_IN, "BLD", KIND_T, SPECIAL_NONE), TENSOR("dt", ROLE_IN, "BLD", KIND_T, SPECIAL_NONE),
                    TENSOR("a", ROLE_IN, "DN", KIND_F32, SPECIAL_NONE), TENSOR("b", ROLE_IN, "BLN", KIND_T, SPECIAL_NONE),
                    TENSOR("c", ROLE_IN, "BLN", KIND_T, SPECIAL_NONE), TENSOR("own", ROLE_IN, "D", KIND_F32, SPECIAL_NONE),
                    TENSOR("y", ROLE_OUT, "BLD", KIND_T, SPECIAL_NONE)},
     .reference = reference_selective_scan},
    {.name = "resample:grid_sample",
     .parameters = {TENSOR("x", ROLE_IN, "BHWC", KIND_T, SPECIAL_FINITE), TENSOR("at", ROLE_IN, "BPX", KIND_F32, SPECIAL_NONE),
                    TENSOR("y", ROLE_OUT, "BPC", KIND_T, SPECIAL_NONE)},
     .reference = reference_grid_sample},
    {.name = "fourier:fft_rows",
     .parameters = {TENSOR("re", ROLE_IN, "MN", KIND_F32, SPECIAL_FINITE), TENSOR("im", ROLE_IN, "MN", KIND_F32, SPECIAL_FINITE),
                    TENSOR("re_out", ROLE_OUT, "MN", KIND_F32, SPECIAL_NONE),
                    TENSOR("im_out", ROLE_OUT, "MN", KIND_F32, SPECIAL_NONE),
                    {"inverse", ROLE_TRUTH, NULL, KIND_F32, SPECIAL_NONE}},
     .scalar = {0},
     .reference = reference_fft_rows},
    {.name = "quantise:quantise_groups",
     .parameters = {TENSOR("x", ROLE_IN, "MPG", KIND_T, SPECIAL_FINITE), TENSOR("q", ROLE_OUT, "MPG", KIND_I8, SPECIAL_NONE),
                    TENSOR("scale", ROLE_OUT, "MP", KIND_F32, SPECIAL_NONE)},
     .reference = reference_quantise_groups},
    {.name = "quantise:dequantise_groups",
     .parameters = {TENSOR("q", ROLE_IN, "MPG", KIND_I8, SPECIAL_NONE), TENSOR("scale", ROLE_IN, "MP", KIND_F32, SPECIAL_ALL),
                    TENSOR("y", ROLE_OUT, "MPG", KIND_T, SPECIAL_NONE)},
     .reference = reference_dequantise_groups,
     .elementwise = true},
};

const CaseTable library_cases = {cases, sizeof cases / sizeof cases[0]};
