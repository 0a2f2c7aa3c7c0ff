#define _GNU_SOURCE
#include "trial.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kernels/device.h"
#include "../kernels/guest.h"
#include "../kernels/observer.h"
#include "contents.h"
#include "driver/compile/compile.h"
#include "evaluate.h"

static const Target targets[] = {
    {"interp", "interp", 0, 0, 0, false, false},
    {"avx2", "avx2", 0, 0, 0, false, false},
    {"avx512", "avx512", 0, 0, 0, false, false},
    {"avx512vnni", "avx512vnni", 0, 0, 0, false, false},
    {"avx512bf16", "avx512bf16", 0, 0, 0, false, false},
    {"amx", "amx", 0, 0, 0, false, false},
    {"sm_80", "sm_80", TILE_COMPILE_EMULATE, 0, 0, false, true},
    {"sm_90a", "sm_90a", TILE_COMPILE_EMULATE, 0, 0, false, true},
    {"sm_89", "sm_89", TILE_COMPILE_EMULATE, 0, 0, false, true},
    {"sm_100a", "sm_100a", TILE_COMPILE_EMULATE, 0, 0, false, true},
    {"sm_120a", "sm_120a", TILE_COMPILE_EMULATE, 0, 0, false, true},
    {"sve.128", "sve", 0, 0, 128, false, false},
    {"sve.256", "sve", 0, 0, 256, false, false},
    {"sve.512", "sve", 0, 0, 512, false, false},
    {"sve.2048", "sve", 0, 0, 2048, false, false},
    {"machine.avx2", "avx2", TILE_COMPILE_EMULATE, 0, 0, false, true},
    {"machine.avx512", "avx512", TILE_COMPILE_EMULATE, 0, 0, false, true},
    {"machine.amx", "amx", TILE_COMPILE_EMULATE, 0, 0, false, true},
    {"machine.sve.256", "sve", TILE_COMPILE_EMULATE, 2, 0, false, true},
    {"machine.sve.2048", "sve", TILE_COMPILE_EMULATE, 16, 0, false, true},
    {"cuda", "cuda", 0, 0, 0, true, false},
};

enum { TARGET_COUNT = sizeof targets / sizeof *targets };

const Target *target_at(int index) { return index < TARGET_COUNT ? &targets[index] : NULL; }

const Target *target_find(const char *label) {
    for (int i = 0; i < TARGET_COUNT; i++)
        if (strcmp(targets[i].label, label) == 0) return &targets[i];
    return NULL;
}

static int ask_target(const char *name) {
    TileTargetInfo info;
    for (size_t i = 0; tile_target_at(i, &info); i++) {
        if (strcmp(info.name, name) != 0) continue;
        if (!info.usable) fprintf(stderr, "%s: %s\n", name, info.why_not);
        return !info.usable;
    }
    return 0;
}

/* In a separate process: after the CUDA driver is initialised, child processes cannot use it. */
bool target_is_usable(const Target *target, const char **why) {
    if (target->flags & TILE_COMPILE_EMULATE) return true;
    if (target->guest_bits) {
        Guest *guest = guest_create(why);
        guest_destroy(guest);
        return guest != NULL;
    }
    *why = "this machine cannot run it";
    int status = -1;
    pid_t child = fork();
    if (child == 0) _exit(ask_target(target->name));
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

const char *outcome_words(Outcome outcome) {
    static const char *const words[OUTCOME_COUNT] = {
#define OUTCOME_WORDS(id, words) words,
        OUTCOME_LIST(OUTCOME_WORDS)
#undef OUTCOME_WORDS
    };
    return words[outcome];
}

bool outcome_is_bad(Outcome outcome) { return outcome > OUTCOME_UNDECIDED; }

bool verdict_is_of_target(const Verdict *verdict) {
    return verdict->unavailable || strcmp(verdict->code, "too-much-code") == 0;
}

/* ---- a run ---- */

typedef struct Run {
    const Trial *trial;
    const Target *target;
    Verdict *verdict;
    Array arrays[MAX_TENSORS];
    bool made[MAX_TENSORS];
    TileArg arguments[MAX_TENSORS + MAX_NAMES];
    int count;
    Guest *guest;
} Run;

static void conclude(Run *run, Outcome outcome, const char *words) {
    run->verdict->outcome = outcome;
    snprintf(run->verdict->words, MAX_WORDS, "%s", words);
}

static TileArg scalar_argument(const Name *name) {
    Type type = name->shape.scalar;
    uint64_t bits = (uint64_t)name->value;
    if (type_is_float(type)) return TILE_NUMBER(number_value(type, bits));
    return type_is_signed(type) ? TILE_INTEGER((int64_t)number_integer(type, bits))
                                : TILE_UNSIGNED((uint64_t)number_integer(type, bits));
}

static bool make_arguments(Run *run) {
    Program *program = run->trial->program;
    for (int i = 0; i < program->tensor_count; i++) {
        Tensor *tensor = program->tensors[i];
        Contents *contents = contents_make(tensor);
        tensor->now = contents;
        if (tensor->role == TENSOR_TEMP || !tensor->used) continue;
        run->made[i] = contents_place(contents, tensor, &run->arrays[i]);
        if (!run->made[i]) return false;
        run->arguments[run->count++] = TILE_TENSOR(&run->arrays[i].tensor);
    }
    for (int i = 0; i < program->name_count; i++)
        if (program->names[i]->kind == NAME_PARAMETER && program->names[i]->used)
            run->arguments[run->count++] = scalar_argument(program->names[i]);
    return true;
}

/* The code in a message: "[invalid-store]". */
static void find_code(const char *words, char *code, size_t size) {
    const char *error = strstr(words, "error:"), *open = error ? strchr(error, '\n') : NULL;
    *code = 0;
    const char *end = open ? open : words + strlen(words);
    for (const char *at = end; at > words && at > end - 60; at--)
        if (at[-1] == '[') {
            snprintf(code, size, "%.*s", (int)strcspn(at, "]"), at);
            return;
        }
}

static Outcome failure(tile_status status) {
    switch (status) {
    case TILE_INVALID_SOURCE:
    case TILE_INVALID_ARGUMENT:
    case TILE_UNSUPPORTED:
    case TILE_UNAVAILABLE: /* a block needs more shared memory than the GPU has */ return OUTCOME_REFUSED;
    case TILE_INTERNAL: return OUTCOME_INTERNAL;
    default: return OUTCOME_FAILED;
    }
}

static tile_status launch_on_device(TileKernel *kernel, Run *run, const TileLaunchOptions *options) {
    DeviceCopy copies[MAX_TENSORS] = {0};
    TileArg arguments[MAX_TENSORS + MAX_NAMES];
    memcpy(arguments, run->arguments, sizeof arguments);
    tile_status status = TILE_OK;
    int argument = 0;
    for (int i = 0; i < MAX_TENSORS && status == TILE_OK; i++) {
        if (!run->made[i]) continue;
        status = device_send(&copies[i], &run->arrays[i], options->error);
        arguments[argument++] = TILE_TENSOR(&copies[i].tensor);
    }
    if (status == TILE_OK) status = tile_launch(kernel, arguments, (size_t)run->count, options);
    size_t outside = 0;
    for (int i = 0; i < MAX_TENSORS && status == TILE_OK; i++)
        if (run->made[i]) status = device_fetch(&copies[i], &run->arrays[i], &outside, options->error);
    for (int i = 0; i < MAX_TENSORS; i++) device_release(&copies[i]);
    if (outside) conclude(run, OUTCOME_OUTSIDE, "bytes around the arrays have changed");
    return status;
}

static bool launch(Run *run, TileCompiler *compiler, const char *text) {
    TileLibrary *library = NULL;
    TileKernel *kernel = NULL;
    TileReport *report = NULL;
    TileError error = {.message = ""};
    TileCompileOptions options = {
        .struct_size = sizeof options, .target = run->target->name, .flags = run->target->flags};
    TileLaunchOptions how = {.struct_size = sizeof how, .error = &error};
    tile_compiler_emulate(compiler, run->guest ? guest_start(run->guest, run->target->guest_bits) : NULL,
                          run->target->scale);
    tile_compiler_divide(compiler, run->trial->ranges);
    Observing observing;
    observe(&observing, compiler, !run->trial->ranges);
    if (run->target->threads) tile_compiler_schedule(compiler, run->trial->schedule);
    tile_status status = tile_compile(compiler, text, strlen(text), &options, &library, &report);
    const char *words = report ? tile_report_text(report, false) : "";
    if (status == TILE_OK) status = tile_library_kernel(library, "k", &kernel);
    if (status == TILE_OK) {
        tile_report_destroy(report);
        report = NULL;
        how.report = &report; /* the error's message is cut, and warnings stand in front */
        if (run->guest) how.threads = guest_prepare(run->guest);
        status = run->target->device ? launch_on_device(kernel, run, &how)
                                     : tile_launch(kernel, run->arguments, (size_t)run->count, &how);
        words = report ? tile_report_text(report, false) : error.message;
    }
    if (run->guest && guest_error(run->guest)) {
        status = TILE_INTERNAL;
        words = guest_error(run->guest);
    }
    if (status != TILE_OK) {
        char *said = strdup(*words ? words : tile_status_text(status));
        conclude(run, failure(status), said);
        find_code(said, run->verdict->code, sizeof run->verdict->code);
        run->verdict->unavailable = status == TILE_UNAVAILABLE;
        free(said);
    }
    tile_report_destroy(report);
    return status == TILE_OK && run->verdict->outcome == OUTCOME_SAME;
}

static bool compare(Run *run, int number) {
    const Tensor *tensor = run->trial->program->tensors[number];
    const Contents *contents = tensor->now;
    const Array *array = &run->arrays[number];
    char words[400], got[80], want[80];
    if (array_check(array, tensor->role != TENSOR_IN)) {
        snprintf(words, sizeof words, "bytes of %s that are not its to write have changed", tensor->text);
        conclude(run, OUTCOME_OUTSIDE, words);
        return false;
    }
    if (tensor->role == TENSOR_IN) return true;
    int64_t wrong = 0, first = 0;
    for (int64_t i = 0; i < contents->count; i++) {
        uint64_t bits = contents_bits(contents, tensor, array, i);
        run->verdict->elements++;
        run->verdict->unknown += isinf(contents->at[i].off) != 0;
        if (!number_agrees(tensor->type, contents->at[i], bits) && wrong++ == 0) first = i;
    }
    if (!wrong && contents_padded(contents, tensor, array)) return true;
    if (!wrong) {
        snprintf(words, sizeof words, "the half of a byte behind the last element of %s is wrong", tensor->text);
        conclude(run, OUTCOME_WRONG, words);
        return false;
    }
    uint64_t bits = contents_bits(contents, tensor, array, first);
    number_say(got, sizeof got, tensor->type, bits);
    number_say(want, sizeof want, tensor->type, contents->at[first].bits);
    snprintf(words, sizeof words,
             "%" PRId64 " of %" PRId64 " elements of %s are wrong: number %" PRId64
             " is %s instead of %s (off by at most %g)",
             wrong, contents->count, tensor->text, first, got, want, contents->at[first].off);
    conclude(run, OUTCOME_WRONG, words);
    return false;
}

static void judge(const Trial *trial, const Target *target, Verdict *verdict) {
    static char text[MAX_TEXT];
    static Run run;
    memset(&run, 0, sizeof run);
    run.trial = trial;
    run.target = target;
    run.verdict = verdict;
    const char *why = "";
    TileCompiler *compiler;
    if (!program_print(trial->program, text, sizeof text)) {
        conclude(&run, OUTCOME_UNDECIDED, "the text is too long");
        return;
    }
    if (!make_arguments(&run) || tile_compiler_create(NULL, &compiler) != TILE_OK) {
        conclude(&run, OUTCOME_FAILED, "out of memory");
        return;
    }
    if (target->guest_bits && !(run.guest = guest_create(&why))) {
        conclude(&run, OUTCOME_FAILED, why);
        return;
    }
    bool ran = launch(&run, compiler, text);
    guest_destroy(run.guest);
    Evaluator evaluator = {0};
    if (!ran && !strstr(verdict->words, "a race:")) return;
    evaluate_program(&evaluator, trial->program);
    /* If two lanes of one store have the same element, the emulated GPU reports a race, correctly. */
    if (!ran && (evaluator.meets || evaluator.undecided)) conclude(&run, OUTCOME_UNDECIDED, "lanes of a store meet");
    if (!ran) return;
    if (evaluator.undecided)
        conclude(&run, OUTCOME_UNDECIDED, "an index or a decision is not known");
    else if (evaluator.uncovered)
        conclude(&run, OUTCOME_UNCOVERED, "an invalid element is stored or decides, and it was not refused");
    else
        for (int i = 0; i < trial->program->tensor_count; i++)
            if (run.made[i] && !compare(&run, i)) return;
}

void trial_run(const Trial *trial, const Target *target, Verdict *shared) {
    int status = 0;
    *shared = (Verdict){.outcome = OUTCOME_SAME};
    fflush(stdout);
    if (trial->alone) {
        judge(trial, target, shared);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(trial->seconds);
        judge(trial, target, shared);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        shared->outcome = WTERMSIG(status) == SIGALRM ? OUTCOME_HUNG : OUTCOME_CRASHED;
        snprintf(shared->words, MAX_WORDS, "ended by signal %d", WTERMSIG(status));
    } else if (WEXITSTATUS(status)) {
        shared->outcome = OUTCOME_CRASHED;
        snprintf(shared->words, MAX_WORDS, "ended with status %d", WEXITSTATUS(status));
    }
}
