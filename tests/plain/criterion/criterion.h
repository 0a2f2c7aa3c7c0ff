/* The subset of Criterion's interface that the launcher's tests use, in one process and without Criterion, which does
 * not run under ThreadSanitizer. See scripts/test_threads.sh. */
#ifndef TILE_TESTS_PLAIN_CRITERION_H
#define TILE_TESTS_PLAIN_CRITERION_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct PlainTest {
    const char *suite, *name;
    void (*run)(void);
    struct PlainTest *next;
} PlainTest;

void plain_register(PlainTest *test);

#define Test(suite_, name_, ...)                                                                                       \
    static void suite_##_##name_##_test(void);                                                                         \
    __attribute__((constructor)) static void suite_##_##name_##_register(void) {                                       \
        static PlainTest test = {#suite_, #name_, suite_##_##name_##_test, NULL};                                      \
        plain_register(&test);                                                                                         \
    }                                                                                                                  \
    static void suite_##_##name_##_test(void)

#define cr_assert(condition, ...)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define cr_assert_not(condition, ...) cr_assert(!(condition))
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b))
#define cr_assert_neq(a, b, ...) cr_assert((a) != (b))
#define cr_assert_geq(a, b, ...) cr_assert((a) >= (b))
#define cr_assert_gt(a, b, ...) cr_assert((a) > (b))
#define cr_assert_null(a, ...) cr_assert((a) == NULL)
#define cr_assert_not_null(a, ...) cr_assert((a) != NULL)
#define cr_assert_str_eq(a, b, ...) cr_assert(strcmp((a), (b)) == 0)

#endif
