/* Kernels with folds and scans by user functions: sequentially, in double precision. */
#include <math.h>

#include "reference.h"

/* The number of roundings of an element on its way to a result: within a block, across blocks, at the end. */
static double steps(int64_t count) { return (double)count / 8 + 32; }

/* The error of the means of parts, and of their differences, is a few roundings of the largest element. */
void reference_welford_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double sum = 0, squares = 0, largest = 0, low = INFINITY, high = -INFINITY;
        for (int64_t n = 0; n < columns; n++) {
            sum += x[n];
            largest = fmax(largest, fabs(x[n]));
            low = fmin(low, x[n]);
            high = fmax(high, x[n]);
        }
        for (int64_t n = 0; n < columns; n++) squares += pow(x[n] - sum / (double)columns, 2);
        double error = 16 * F32_ROUNDOFF * largest, variance = squares / (double)columns;
        problem->expected[m] = variance;
        problem->slack[m] = F32_ROUNDOFF * variance * steps(columns) + error * (high - low + error) + F32_TINY;
    }
}

/* A term is multiplied several times, and every product may underflow. */
void reference_linear_recurrence(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *a = problem->input[0] + m * columns, *x = problem->input[1] + m * columns;
        double h = 0, magnitude = 0, tiny = 0;
        for (int64_t n = 0; n < columns; n++) {
            h = a[n] * h + x[n];
            magnitude = fabs(a[n]) * magnitude + fabs(x[n]);
            tiny = fabs(a[n]) * tiny + F32_TINY * (1 + fabs(x[n]));
            problem->expected[m * columns + n] = h;
            problem->slack[m * columns + n] = F32_ROUNDOFF * magnitude * steps(columns) + tiny * steps(columns);
        }
    }
}

void reference_segmented_cumsum(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *begins = problem->input[0] + m * columns, *x = problem->input[1] + m * columns;
        double total = 0, magnitude = 0;
        for (int64_t n = 0; n < columns; n++) {
            total = begins[n] != 0 ? x[n] : total + x[n];
            magnitude = begins[n] != 0 ? fabs(x[n]) : magnitude + fabs(x[n]);
            problem->expected[m * columns + n] = total;
            problem->slack[m * columns + n] = F32_ROUNDOFF * magnitude * steps(columns);
        }
    }
}
