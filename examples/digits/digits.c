/* Reads the held-out digits through the C API: the same kernels and weights as run.sh.
 *
 * usage: digits [directory of this example] [target] */
#include <stdio.h>

#include "examples/example.h"

enum { TRAINED = 1200, REPEATS = 200 };

int main(int count, char **words) {
    Example *e = example_open(count > 1 ? words[1] : "examples/digits", "digits.tile", count > 2 ? words[2] : NULL);
    DLTensor *image = example_load(e, "images", TRAINED), *label = example_load(e, "labels", TRAINED);
    DLTensor *w1 = example_load(e, "w1", 0), *b1 = example_load(e, "b1", 0);
    DLTensor *w2 = example_load(e, "w2", 0), *b2 = example_load(e, "b2", 0);
    int64_t n = image->shape[0], correct;
    DLTensor *x = example_tensor(e, example_f32, n, 64), *hidden = example_tensor(e, example_f32, n, 64);
    DLTensor *score = example_tensor(e, example_f32, n, 10), *probability = example_tensor(e, example_f32, n, 10);
    DLTensor *digit = example_tensor(e, example_i64, n), *equal = example_tensor(e, example_i64, 1);
    double start = 0;
    for (int i = 0; i <= REPEATS; i++) {
        if (i == 1) start = example_seconds(); /* the first round compiles */
        example_launch(e, "pixels", image, x);
        example_launch(e, "hidden_layer", x, w1, b1, hidden);
        example_launch(e, "dense", hidden, w2, b2, score);
        example_launch(e, "softmax", score, probability);
        example_launch(e, "argmax_rows", probability, digit);
    }
    double rate = (double)n * REPEATS / (example_seconds() - start);
    example_launch(e, "count_equal", digit, label, equal);
    correct = *(int64_t *)equal->data;
    printf("accuracy: %lld of %lld held-out images right (%.2f %%), %.0f images/s\n", (long long)correct, (long long)n,
           100.0 * (double)correct / (double)n, rate);
    example_close(e);
    return 100 * correct >= 96 * n ? 0 : 1;
}
