/* Which CPU targets run here: permission to use AMX. Each test is a process of its own. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "base/cpu.h"
#include "base/cpu_probe.h"

static char small_stack[2048]; /* less than a signal's frame with AMX's registers */

/* Linux refuses AMX to a process one of whose threads has a signal stack that is too small for it. */
Test(cpu, refused_amx_is_a_reason) {
    const char *why_not = tile_cpu_why_not("avx512bf16");
    if (why_not) cr_skip_test("avx512bf16: %s", why_not);
    stack_t stack = {.ss_sp = small_stack, .ss_size = sizeof small_stack};
    cr_assert_eq(sigaltstack(&stack, NULL), 0);
    why_not = tile_cpu_why_not("amx");
    cr_assert(why_not, "a signal stack of 2 KiB is enough");
    if (strstr(why_not, "lacks")) cr_skip_test("amx: %s", why_not);
    cr_assert_str_eq(why_not, "the operating system does not let this process use AMX");
    cr_assert_null(tile_cpu_why_not("avx512bf16"));
    stack.ss_flags = SS_DISABLE;
    cr_assert_eq(sigaltstack(&stack, NULL), 0);
    cr_assert_null(tile_cpu_why_not("amx"));
    cr_assert_null(tile_cpu_why_not("amx"), "asked a second time");
}

/* Which of two targets is faster is measured, but both run, and nothing surpasses the others. */
Test(cpu, surpassed) {
    const char *faster = tile_cpu_surpassed_by("avx512bf16"), *name;
    cr_assert(!faster || !tile_cpu_why_not(faster));
    for (size_t i = 0; (name = tile_cpu_name_at(i)); i++)
        cr_assert(strcmp(name, "avx512bf16") == 0 || !tile_cpu_surpassed_by(name), "%s", name);
    cr_assert(tile_cpu_is_word_fast(1000, 1000), "a word takes the time of one multiply-add");
    cr_assert(!tile_cpu_is_word_fast(2000, 1000), "that of two");
    if (!tile_cpu_why_not("avx512bf16")) cr_assert_eq(!faster, tile_cpu_multiplies_words());
}

/* A target that is forbidden asks for nothing, so that a limit keeps signal frames small. */
Test(cpu, limits) {
    setenv("TILE_CPU_CAPABILITY", "avx2", 1);
    const char *why_not = tile_cpu_why_not("amx");
    cr_assert(why_not && (strstr(why_not, "forbids") || strstr(why_not, "lacks")));
    cr_assert_not_null(tile_cpu_limit_why_not("amx", "avx512bf16"));
    cr_assert_null(tile_cpu_limit_why_not("avx512bf16", "amx"));
}
