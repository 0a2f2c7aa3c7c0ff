/* Reads the held-out digits through the C API: the same kernels and weights as run.sh.
 *
 * usage: digits [directory of this example] [target] */
#include <stdio.h>

#include "examples/example.h"

enum { TRAINED = 1200 };

int main(int count, char **words) {
    Example *e = example_open(count > 1 ? words[1] : "examples/digits", "digits.tile", count > 2 ? words[2] : NULL);
    DLTensor *image = example_load(e, "images", TRAINED), *label = example_load(e, "labels", TRAINED);
    DLTensor *x = example_call(e, "pixels", image);
    DLTensor *hidden = example_call(e, "hidden_layer", x, example_load(e, "w1", 0), example_load(e, "b1", 0));
    DLTensor *score = example_call(e, "dense", hidden, example_load(e, "w2", 0), example_load(e, "b2", 0));
    DLTensor *digit = example_call(e, "argmax_rows", example_call(e, "softmax", score));
    int n = (int)image->shape[0], right = (int)*(int64_t *)example_call(e, "count_equal", digit, label)->data;
    printf("accuracy: %d of %d held-out images right (%.2f %%), %.0f images/s\n", right, n, 100.0 * right / n,
           n / example_seconds(e));
    example_close(e);
    return 100 * right >= 96 * n ? 0 : 1;
}
