/* References: the expected result of each kernel, in double precision, computed from its definition; and the error
 * bound of a kernel that computes in f32. No code is shared with the compiler. */
#ifndef TESTS_KERNELS_REFERENCE_H
#define TESTS_KERNELS_REFERENCE_H

#include "values.h"

enum { MAX_INPUTS = 11, MAX_SCALARS = 5, MAX_OUTPUTS = 6 };

/* The expected values of one output. */
typedef struct Expectation {
    double *expected, *slack;
} Expectation;

/* All arrays are dense and row-major. A reference sets `expected` (before rounding to the type of the output) and
 * `slack` (a bound on the absolute error); if the kernel has several outputs, it sets those of `further` in order. A
 * negative slack means that any number is correct, and may differ from run to run. Elements that a kernel does not
 * write are expected to be unchanged: inout tensors are inputs, too. */
typedef struct Problem {
    int64_t dimension[26]; /* by letter */
    const double *input[MAX_INPUTS];
    double scalar[MAX_SCALARS];
    Type type;            /* of the inputs that have the kernel's type parameter */
    bool on_tensor_cores; /* which keep 14 bits of sums of 8-bit floats (docs/gpu.md, Sums) */
    double *expected, *slack;
    Expectation further[MAX_OUTPUTS - 1]; /* of the second and later outputs */
} Problem;

static inline int64_t problem_dimension(const Problem *problem, char letter) {
    return problem->dimension[letter - 'A'];
}

typedef void Reference(const Problem *problem);

Reference reference_add, reference_axpy, reference_copy, reference_relu, reference_gelu, reference_gelu_tanh,
    reference_silu, reference_chain;
Reference reference_softmax, reference_layernorm, reference_rmsnorm;
Reference reference_sum_rows, reference_sum_columns, reference_mean_rows, reference_mean_columns, reference_argmax_rows,
    reference_transpose;
Reference reference_matmul, reference_matmul_bias, reference_matmul_bias_relu, reference_matmul_bias_gelu,
    reference_matmul_bias_silu;
Reference reference_matmul_scaled, reference_matmul_residual, reference_matmul_tn, reference_matmul_nt,
    reference_matmul_tt, reference_matmul_swiglu, reference_matmul_split_k, reference_matmul_batched,
    reference_matmul_i8, reference_matmul_f8, reference_gemv, reference_gemv_t;
Reference reference_product_shared, reference_gram_shared;
Reference reference_conv1d, reference_conv1d_depthwise, reference_conv2d, reference_conv2d_depthwise,
    reference_conv2d_input_gradient, reference_conv2d_weight_gradient, reference_max_pool2d, reference_avg_pool2d;
Reference reference_attention, reference_attention_causal, reference_attention_backward, reference_attention_backward_causal,
    reference_attention_window, reference_attention_varlen,
    reference_attention_varlen_causal, reference_attention_varlen_backward, reference_attention_varlen_backward_causal,
    reference_attention_paged, reference_attention_f8, reference_attention_f8_causal, reference_attention_scored,
    reference_attention_scored_causal, reference_attention_soft_cap, reference_attention_alibi, reference_attention_biased;

Reference reference_function_exp, reference_function_exp2, reference_function_expm1, reference_function_log,
    reference_function_log2, reference_function_log1p, reference_function_sin, reference_function_cos,
    reference_function_tan, reference_function_tanh, reference_function_erf, reference_function_sigmoid,
    reference_function_rsqrt, reference_function_asin, reference_function_acos, reference_function_atan, reference_function_sinh, reference_function_cosh, reference_function_asinh, reference_function_acosh, reference_function_atanh, reference_function_cbrt, reference_function_erfc, reference_function_erfinv, reference_function_lgamma,
    reference_function_atan2, reference_function_hypot, reference_function_fmod;

/* reference_scan.c */
Reference reference_welford_rows, reference_linear_recurrence, reference_segmented_cumsum;

/* reference_nn.c */
Reference reference_relu6, reference_leaky_relu, reference_elu, reference_selu, reference_softplus,
    reference_logsigmoid, reference_mish, reference_hardsigmoid, reference_hardswish, reference_softsign,
    reference_square, reference_sign, reference_logaddexp;
Reference reference_logsumexp, reference_log_softmax, reference_cross_entropy, reference_cross_entropy_backward;

/* reference_norm.c */
Reference reference_layernorm_forward, reference_layernorm_backward, reference_layernorm_backward_params,
    reference_rmsnorm_forward, reference_rmsnorm_backward, reference_rmsnorm_backward_params, reference_group_norm;
Reference reference_variance_rows, reference_sum_all, reference_mean_all, reference_max_all, reference_norm_all;

/* reference_index.c */
Reference reference_cumsum_rows, reference_cumsum_columns;
Reference reference_take_rows, reference_embedding, reference_embedding_backward, reference_take_along_rows,
    reference_one_hot, reference_masked_fill;
Reference reference_rotary_halves, reference_rotary_pairs, reference_dropout;

/* reference_examples.c */
Reference reference_swiglu, reference_conv2d_3x3, reference_matmul_gate_residual, reference_varlen_attention,
    reference_bilinear, reference_mandelbrot, reference_blend, reference_window, reference_polynomial;

/* reference_programs.c */
Reference reference_chosen, reference_guarded, reference_literals;
Reference reference_windows, reference_row_products, reference_by_letters;
Reference reference_heat5, reference_laplace7, reference_blur5, reference_half_size, reference_repeat8, reference_filter1d, reference_sobel, reference_sliding_max,
    reference_torus, reference_softmax_backward, reference_horner, reference_average_pool,
    reference_upsample, reference_pixel_shuffle, reference_im2col, reference_roll, reference_interleave, reference_luminance, reference_scaled_blocks, reference_turned_pairs, reference_below_greatest,
    reference_pad_edge, reference_pad_mirror, reference_geglu,
    reference_swiglu_pair, reference_relu_squared, reference_top2, reference_squared_distances, reference_cosines,
    reference_nearest, reference_adam, reference_sgd_momentum, reference_lion, reference_moving_average,
    reference_smoothed_cross_entropy, reference_kl_divergence, reference_huber, reference_cosine_loss,
    reference_confusion, reference_batch_statistics, reference_image_statistics, reference_above_mean, reference_logsumexp_middle, reference_group_norm_last,
    reference_count_nonzero, reference_running_max;

/* reference_programs_more.c */
Reference reference_histogram, reference_segment_sum, reference_quantise_rows, reference_dequantise_rows,
    reference_cast_float8, reference_matmul_int4, reference_mxfp4, reference_reversed_blocks, reference_rounded_to_float4, reference_hadamard, reference_fft_stage, reference_sort_rows,
    reference_dense_relu, reference_outer_batched, reference_head_products, reference_lora, reference_gated_down, reference_normed_product,
    reference_product_of_doubles, reference_turned_doubles, reference_weighted_doubles,
    reference_dequantised, reference_grouped_weights, reference_max_plus,
    reference_causal_conv, reference_resonator, reference_softmax_biased, reference_rmsnorm_residual, reference_conv2d_nchw,
    reference_conv2d_grouped, reference_conv2d_transposed;

/* reference_library.c */
Reference reference_sort_whole_rows, reference_argsort_rows, reference_topk_rows, reference_sample_rows, reference_route,
    reference_jsd, reference_focal, reference_selective_scan, reference_grid_sample, reference_fft_rows,
    reference_quantise_groups, reference_dequantise_groups, reference_sort_pairs, reference_sample_long, reference_multinomial,
    reference_quantise_blocks, reference_dequantise_blocks, reference_dequantise_gptq, reference_dequantise_awq, reference_resize;

/* reference_library_more.c */
Reference reference_unique, reference_search_long, reference_search_long_right, reference_muon_momentum,
    reference_newton_schulz_step, reference_muon_update, reference_gated_delta_rule,
    reference_fft_long, reference_matmul_gptq, reference_matmul_awq, reference_matmul_grouped;

/* reference_forms.c */
Reference reference_fibonacci, reference_last_max, reference_outer_sum, reference_neighbours, reference_between, reference_both_sides,
    reference_shared_right, reference_letters, reference_stages, reference_bits, reference_parts, reference_operators, reference_functions,
    reference_lines, reference_accumulate, reference_folded, reference_flat, reference_places, reference_constants, reference_scale,
    reference_convert, reference_truncated, reference_take_nearest, reference_halves, reference_total;

/* reference_few_bits.c */
Reference reference_wide_i4, reference_single_u4, reference_sums_u4, reference_column_i4, reference_gathered, reference_gathered_flat,
    reference_narrow_i4, reference_narrow_f4, reference_added, reference_through, reference_products_i4, reference_powers, reference_formats,
    reference_sorted_in_tile, reference_ranked_rows, reference_sorted_columns, reference_sorted_kept, reference_top_three, reference_counts, reference_row_counts,
    reference_table_places;

#define F32_ROUNDOFF 0x1p-24
#define F32_TINY 0x1p-148 /* a few times the smallest subnormal: the absolute error near zero */
#define F32_STEP                                                                                                       \
    0x1p-150 /* half the smallest subnormal: the rounding error of a product near zero, or of a step of a              \
              * chain of fmas */

/* The error of a sum of n numbers with total magnitude `magnitude`, accumulated in at least 16 parallel lanes (kernels
 * of this library use 64 and tiles of at least 16), or sequentially. */
static inline double reference_lanes_slack(int64_t n, double magnitude) {
    return F32_ROUNDOFF * magnitude * ((double)n / 16 + 16) + F32_STEP * (double)n;
}
static inline double reference_serial_slack(int64_t n, double magnitude) {
    return F32_ROUNDOFF * magnitude * ((double)n + 2) + F32_STEP * (double)n;
}

/* The error of a sum of products of 8-bit floats, with total magnitude `magnitude`, by tensor cores. */
double reference_cut_off(double magnitude);

/* Mean and variance of numbers, and the errors of a two-pass computation in f32; that of the variance is relative to
 * variance + eps. */
typedef struct Moments {
    double mean, variance, mean_slack, variance_relative;
} Moments;

Moments reference_moments(const double *x, int64_t count, double eps);

/* Functions of one number: the value, and the error bound of an f32 kernel for an exact argument. */
typedef struct Approximate {
    double value, slack;
} Approximate;

Approximate reference_gelu_tanh_of(double x);
Approximate reference_silu_of(double x);

#endif
