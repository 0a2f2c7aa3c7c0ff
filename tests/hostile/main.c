/* Calls each function of the API with each hostile value for each argument, the others valid: it has to reject what its
 * header does not allow, not crash, and afterwards work with valid values. It is an error if functions.def lacks a
 * function that tests/abi.txt lists.
 *
 * Each function is tested in its own process, so that a crash affects only one, and is reported with the value that
 * caused it.
 * usage: tile_hostile_tests ABI.TXT [FUNCTION] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile/kinds.h"

enum { MOST_ARGUMENTS = 8, SECONDS = 120 };

/* ---- results ---- */

typedef enum Outcome { GAVE, REFUSED, UNTOLD } Outcome;

#define STATUS(call) ((call) == TILE_OK ? GAVE : REFUSED)
#define POINTER(call) ((call) ? GAVE : REFUSED)
#define NUMBER(call) ((call) != 0 ? GAVE : REFUSED)
#define NONE(call) ((call), UNTOLD)
#define ANY(call) ((void)(call), UNTOLD)
#define TEXT(call) of_text(call)
#define EVER(call) ((call) ? UNTOLD : REFUSED) /* returns a text for any value, so REFUSED is wrong */
#define INTO_IR(call) ((call), tile_ir_status(v[0].pointer) == TILE_OK ? GAVE : REFUSED)

/* Reads the text to its end: it has to be valid memory. */
static Outcome of_text(const char *text) { return text && strlen(text) && strcmp(text, "[]\n") != 0 ? GAVE : REFUSED; }

/* ---- arguments ---- */

#define KIND(name, type, member)                                                                                       \
    static inline type get_##name(const Value *value) {                                                                \
        type result;                                                                                                   \
        if (sizeof value->member == sizeof result)                                                                     \
            memcpy(&result, &value->member, sizeof result);                                                            \
        else                                                                                                           \
            result = (type)(intptr_t)value->integer;                                                                   \
        return result;                                                                                                 \
    }
#include "hostile/kinds.def"
#undef KIND

/* ---- calls ---- */

#define GET(number, kind) get_##kind(&v[number])
#define CALL(result, name, ...)                                                                                        \
    static Outcome call_##name(const Value *v) { return result(name(__VA_ARGS__)); }
#define CALL1(r, f, a) CALL(r, f, GET(0, a))
#define CALL2(r, f, a, b) CALL(r, f, GET(0, a), GET(1, b))
#define CALL3(r, f, a, b, c) CALL(r, f, GET(0, a), GET(1, b), GET(2, c))
#define CALL4(r, f, a, b, c, d) CALL(r, f, GET(0, a), GET(1, b), GET(2, c), GET(3, d))
#define CALL5(r, f, a, b, c, d, e) CALL(r, f, GET(0, a), GET(1, b), GET(2, c), GET(3, d), GET(4, e))
#define CALL6(r, f, a, b, c, d, e, g) CALL(r, f, GET(0, a), GET(1, b), GET(2, c), GET(3, d), GET(4, e), GET(5, g))
#define CALL7(r, f, a, b, c, d, e, g, h)                                                                               \
    CALL(r, f, GET(0, a), GET(1, b), GET(2, c), GET(3, d), GET(4, e), GET(5, g), GET(6, h))
#define CALL8(r, f, a, b, c, d, e, g, h, i)                                                                            \
    CALL(r, f, GET(0, a), GET(1, b), GET(2, c), GET(3, d), GET(4, e), GET(5, g), GET(6, h), GET(7, i))
#include "hostile/functions.def"
#undef CALL
#undef CALL1
#undef CALL2
#undef CALL3
#undef CALL4
#undef CALL5
#undef CALL6
#undef CALL7
#undef CALL8

typedef struct Function {
    const char *name;
    Outcome (*call)(const Value *values);
    const Kind *kinds[MOST_ARGUMENTS]; /* NULL after the last */
} Function;

static const Function functions[] = {
#define OF(kind) &tile_kind_##kind
#define CALL(f, ...) {#f, call_##f, {__VA_ARGS__}},
#define CALL1(r, f, a) CALL(f, OF(a))
#define CALL2(r, f, a, b) CALL(f, OF(a), OF(b))
#define CALL3(r, f, a, b, c) CALL(f, OF(a), OF(b), OF(c))
#define CALL4(r, f, a, b, c, d) CALL(f, OF(a), OF(b), OF(c), OF(d))
#define CALL5(r, f, a, b, c, d, e) CALL(f, OF(a), OF(b), OF(c), OF(d), OF(e))
#define CALL6(r, f, a, b, c, d, e, g) CALL(f, OF(a), OF(b), OF(c), OF(d), OF(e), OF(g))
#define CALL7(r, f, a, b, c, d, e, g, h) CALL(f, OF(a), OF(b), OF(c), OF(d), OF(e), OF(g), OF(h))
#define CALL8(r, f, a, b, c, d, e, g, h, i) CALL(f, OF(a), OF(b), OF(c), OF(d), OF(e), OF(g), OF(h), OF(i))
#include "hostile/functions.def"
};
enum { COUNT = sizeof functions / sizeof *functions };

/* ---- one function ---- */

/* In memory shared with the calling process, which reports it after a crash. */
typedef struct State {
    char at[256]; /* the argument and its value */
    unsigned calls, wrong;
} State;
static State *state;

static void complain(const Function *function, const char *what) {
    fprintf(stderr, "%s: %s: %s\n", function->name, state->at, what);
    state->wrong++;
}

/* Calls with valid values; then with one argument replaced by its hostile value of this number. False after the
 * last. */
static bool make_values(const Function *function, Value *values, int changed, int number, Expected *expected) {
    const char *label = "sane";
    for (int i = 0; i < MOST_ARGUMENTS && function->kinds[i]; i++) {
        values[i] = (Value){0};
        function->kinds[i]->make(&values[i]);
    }
    if (changed >= 0 && !function->kinds[changed]->change(&values[changed], number, &label, expected)) return false;
    snprintf(state->at, sizeof state->at, "argument %d (%s): %s", changed + 1,
             changed < 0 ? "none" : function->kinds[changed]->name, label);
    return true;
}

/* False after the last value. */
static bool call_with(const Function *function, int changed, int number) {
    Value values[MOST_ARGUMENTS];
    Expected expected = TAKES;
    bool made = make_values(function, values, changed, number, &expected);
    if (made) {
        Outcome outcome = function->call(values);
        state->calls++;
        if (outcome == REFUSED && expected == TAKES) complain(function, "is refused");
        if (outcome == GAVE && expected == REFUSES) complain(function, "is taken");
    }
    tile_fixture_clean(false);
    return made;
}

static void call_with_all(const Function *function) {
    call_with(function, -1, 0);
    for (int i = 0; i < MOST_ARGUMENTS && function->kinds[i]; i++)
        for (int number = 0; call_with(function, i, number);) number++;
    call_with(function, -1, 0); /* nothing may have been broken */
    tile_fixture_clean(true);
}

/* ---- all functions ---- */

static bool try_function(const Function *function) {
    unsigned wrong = state->wrong;
    snprintf(state->at, sizeof state->at, "no call yet");
    pid_t process = fork();
    if (process == 0) {
        alarm(SECONDS);
        call_with_all(function);
        exit(0);
    }
    int status = 0;
    waitpid(process, &status, 0);
    if (WIFSIGNALED(status) || WEXITSTATUS(status))
        complain(function, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ends the process");
    return state->wrong == wrong;
}

/* Is each function of the list tested, and each tested one in the list? */
static int compare_names(const char *path) {
    FILE *file = fopen(path, "r");
    bool listed[COUNT] = {false};
    char line[256], name[200];
    int wrong = 0;
    tile_fixture_need(file, path);
    while (fgets(line, sizeof line, file)) {
        size_t i = 0;
        if (sscanf(line, "libtile%*[_launch] %199s", name) != 1 && sscanf(line, "libtile %199s", name) != 1) continue;
        while (i < COUNT && strcmp(functions[i].name, name) != 0) i++;
        if (i < COUNT) {
            listed[i] = true;
            continue;
        }
        fprintf(stderr, "%s: tests/hostile/functions.def does not call it\n", name);
        wrong++;
    }
    fclose(file);
    for (size_t i = 0; i < COUNT; i++) {
        if (listed[i]) continue;
        fprintf(stderr, "%s: %s does not list it\n", functions[i].name, path);
        wrong++;
    }
    return wrong;
}

int main(int count, char **words) {
    if (count < 2) return 2;
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tile_fixture_need(state != MAP_FAILED, "shared memory");
    int wrong = compare_names(words[1]);
    for (size_t i = 0; i < COUNT; i++)
        if (count < 3 || strcmp(words[2], functions[i].name) == 0) wrong += !try_function(&functions[i]);
    printf("%u calls of %d functions, %d functions wrong\n", state->calls, (int)COUNT, wrong);
    return wrong != 0;
}
