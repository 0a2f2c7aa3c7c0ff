/* Runs the registered tests one after the other in this process. */
#include "criterion/criterion.h"

static PlainTest *first;

void plain_register(PlainTest *test) {
    test->next = first;
    first = test;
}

int main(void) {
    int count = 0;
    for (const PlainTest *test = first; test; test = test->next, count++) {
        printf("%s::%s\n", test->suite, test->name);
        fflush(stdout);
        test->run();
    }
    printf("%d tests passed\n", count);
    return 0;
}
