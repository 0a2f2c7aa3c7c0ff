#include <math.h>
#include <stddef.h>

#include "reference.h"

typedef enum Activation { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_GELU, ACTIVATION_SILU } Activation;

/* `x` has an error of up to `slack`; the slope of every activation here is at most 1.13. */
static Approximate activate(Activation activation, double x, double slack) {
    Approximate result = {x, 0};
    switch (activation) {
    case ACTIVATION_NONE: break;
    case ACTIVATION_RELU: result.value = x < 0 ? 0 : x; break;
    case ACTIVATION_GELU: result = reference_gelu_tanh_of(x); break;
    case ACTIVATION_SILU: result = reference_silu_of(x); break;
    }
    result.slack += 1.2 * slack;
    return result;
}

static void matmul(const Problem *problem, const double *bias, Activation activation) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    int64_t depth = problem_dimension(problem, 'K');
    for (int64_t m = 0; m < rows; m++)
        for (int64_t n = 0; n < columns; n++) {
            double total = 0, magnitude = 0;
            for (int64_t k = 0; k < depth; k++) {
                double product = problem->input[0][m * depth + k] * problem->input[1][k * columns + n];
                total += product;
                magnitude += fabs(product);
            }
            double slack = reference_serial_slack(depth, magnitude);
            if (bias) {
                total += bias[n];
                slack += F32_ROUNDOFF * fabs(total);
            }
            Approximate result = activate(activation, total, slack);
            problem->expected[m * columns + n] = result.value;
            problem->slack[m * columns + n] = result.slack + F32_ROUNDOFF * fabs(result.value);
        }
}

void reference_matmul(const Problem *problem) { matmul(problem, NULL, ACTIVATION_NONE); }
void reference_matmul_bias(const Problem *problem) { matmul(problem, problem->input[2], ACTIVATION_NONE); }
void reference_matmul_bias_relu(const Problem *problem) { matmul(problem, problem->input[2], ACTIVATION_RELU); }
void reference_matmul_bias_gelu(const Problem *problem) { matmul(problem, problem->input[2], ACTIVATION_GELU); }
void reference_matmul_bias_silu(const Problem *problem) { matmul(problem, problem->input[2], ACTIVATION_SILU); }
