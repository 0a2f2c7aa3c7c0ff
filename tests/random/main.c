/* Random kernels, each on the interpreter, on the executor in every CPU target's machine form, and as machine code: all
 * must give the same bits (any NaN counting as one). A kernel that fails is cut down and written out.
 *
 * usage: tile_random_tests [--sve=N] [--turns] [--jobs=N] COUNT [SEED] [FIRST]     kernels FIRST .. FIRST + COUNT of
 * the seed
 *   --sve    machine code for SVE, under QEMU, of every Nth kernel (25; 0: of none), for each length of vectors by
 *            turns; it takes ten times as long as all else
 *   --turns  machine code for AVX2 and AVX-512 by turns, where both can run, instead of both
 *   --jobs   N kernels at once, else as many as there are processors
 *
 * Every run is a child process, so that a crash is a failure like any other. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kernels/array.h"
#include "../kernels/guest.h"
#include "driver/compile.h"
#include "generate.h"

enum {
    TENSORS = 12,
    ARGUMENTS = TENSORS + 2,
    OUTPUTS = 3,
    SECONDS = 60,
    MOST_TRIALS = 600,
    SVE_EVERY = 25,
    MAX_JOBS = 256
};

typedef enum Outcome { OUTCOME_SAME, OUTCOME_REFUSED, OUTCOME_DIFFERENT } Outcome;

/* What the child has to tell. */
typedef struct Verdict {
    Outcome outcome;
    int target; /* that differs */
    char reason[2000];
} Verdict;

typedef struct Target {
    const char *label, *name;
    uint32_t flags;
    unsigned scale;
    unsigned guest_bits; /* run under QEMU, with vectors of so many bits */
} Target;

static const Target targets[] = {
    {"interp", "interp", 0, 0, 0},
    {"machine.avx2", "avx2", TILE_COMPILE_EMULATE, 0, 0},
    {"machine.avx512", "avx512", TILE_COMPILE_EMULATE, 0, 0},
    {"machine.sve.256", "sve", TILE_COMPILE_EMULATE, 2, 0},
    {"machine.sve.2048", "sve", TILE_COMPILE_EMULATE, 16, 0},
    {"avx2", "avx2", 0, 0, 0},
    {"avx512", "avx512", 0, 0, 0},
    {"sve.128", "sve", 0, 0, 128},
    {"sve.256", "sve", 0, 0, 256},
    {"sve.512", "sve", 0, 0, 512},
    {"sve.2048", "sve", 0, 0, 2048},
};

enum {
    TARGET_COUNT = sizeof targets / sizeof *targets,
    GUEST_COUNT = 4,
    FIRST_GUEST = TARGET_COUNT - GUEST_COUNT,
    NATIVE_COUNT = 2,
    FIRST_NATIVE = FIRST_GUEST - NATIVE_COUNT
};

/* ---- one kernel on one target ---- */

typedef struct Memory {
    Array arrays[TENSORS];
    TileArg arguments[ARGUMENTS];
} Memory;

static void fill(Array *array, Random *random, bool index, int64_t limit) {
    static const int64_t hostile[] = {INT64_MIN, INT64_MAX, -1, ((int64_t)1 << 62) + 1, (int64_t)1 << 32};
    for (int64_t i = 0; i < array->count; i++) {
        double value = 1.5 * random_normal(random);
        if (index && random_unit(random) < 0.1) {
            memcpy(array_at(array, i), &hostile[random_next(random) % 5], sizeof hostile[0]);
            continue;
        }
        if (index)
            value = (double)(int64_t)(random_next(random) % (uint64_t)(limit + 4)) - 2;
        else if (array->type == TYPE_I32)
            value = (double)(int64_t)(random_next(random) % 200) - 100;
        else if (random_unit(random) < 0.05)
            value = random_special(random, array->type, SPECIAL_ALL);
        value_store(array->type, array_at(array, i), value);
    }
}

static bool make_memory(Memory *memory, const Sizes *sizes, Type narrow, uint64_t seed) {
    const int64_t m = sizes->m, n = sizes->n, k = sizes->k, l = sizes->l;
    const struct {
        Type type;
        int rank;
        int64_t extent[3];
    } shapes[TENSORS] = {{TYPE_F32, 2, {m, n}}, {narrow, 2, {m, n}},   {TYPE_I32, 2, {m, n}}, {TYPE_F32, 1, {n}},
                         {TYPE_F32, 2, {m, k}}, {TYPE_F32, 2, {k, n}}, {TYPE_I64, 1, {n}},    {TYPE_F32, 3, {l, m, n}},
                         {TYPE_F32, 0, {0}},    {TYPE_F32, 2, {m, n}}, {TYPE_I32, 2, {m, n}}, {TYPE_F32, 1, {m}}};
    Random random = random_create(seed);
    for (int i = 0; i < TENSORS; i++) {
        Array *array = &memory->arrays[i];
        View view = i < TENSORS - OUTPUTS && random_next(&random) % 3 == 0 ? VIEW_ROWS : VIEW_CONTIGUOUS;
        Placement placement = random_next(&random) % 2 ? PLACEMENT_BEGIN : PLACEMENT_END;
        if (!array_create(array, shapes[i].type, shapes[i].rank, shapes[i].extent, view, placement)) return false;
        if (i < TENSORS - OUTPUTS) fill(array, &random, shapes[i].type == TYPE_I64, n);
        array_save(array);
        memory->arguments[i] = TILE_TENSOR(&array->tensor);
    }
    static const int64_t steps[] = {-3, -1, 0, 1, 2, INT64_C(1) << 62, INT64_MIN};
    memory->arguments[TENSORS] = TILE_NUMBER(1.5 * random_normal(&random));
    memory->arguments[TENSORS + 1] = TILE_INTEGER(steps[random_next(&random) % (sizeof steps / sizeof *steps)]);
    return true;
}

static Outcome different(Verdict *verdict, const Target *target, const char *what) {
    snprintf(verdict->reason, sizeof verdict->reason, "%s: %s", target->label, what);
    verdict->target = (int)(target - targets);
    return verdict->outcome = OUTCOME_DIFFERENT;
}

/* The guest is NULL but for code that runs in it. */
static Outcome run(TileCompiler *compiler, Guest *guest, const char *text, const Target *target, Memory *memory,
                   Verdict *verdict) {
    TileLibrary *library = NULL;
    TileKernel *kernel;
    TileReport *report = NULL;
    TileError error = {.message = ""};
    TileCompileOptions options = {.struct_size = sizeof options, .target = target->name, .flags = target->flags};
    TileLaunchOptions launch = {.struct_size = sizeof launch, .error = &error};
    tile_compiler_emulate(compiler, guest ? guest_start(guest, target->guest_bits) : NULL, target->scale);
    tile_status status = tile_compile(compiler, text, strlen(text), &options, &library, &report);
    if (status == TILE_OK) status = tile_library_kernel(library, "k", &kernel);
    const char *words = report ? tile_report_text(report, false) : "";
    bool first = target == targets;
    if (status == TILE_OK) {
        if (guest) launch.threads = guest_prepare(guest);
        status = tile_launch(kernel, memory->arguments, ARGUMENTS, &launch);
        words = error.message;
    }
    if (guest && guest_error(guest)) {
        status = TILE_INTERNAL;
        words = guest_error(guest);
    }
    Outcome outcome = OUTCOME_SAME;
    if (status == TILE_INVALID_SOURCE && first) {
        snprintf(verdict->reason, sizeof verdict->reason, "%s", words);
        outcome = verdict->outcome = OUTCOME_REFUSED;
    } else if (status == TILE_INVALID_ARGUMENT && first) {
        snprintf(verdict->reason, sizeof verdict->reason, "%s", words);
        outcome = verdict->outcome = OUTCOME_REFUSED;
    } else if (status != TILE_OK) {
        outcome = different(verdict, target, *words ? words : tile_status_text(status));
    }
    tile_report_destroy(report);
    tile_library_destroy(library);
    return outcome;
}

static Outcome compare(const Memory *memory, const Memory *with, const Target *target, Verdict *verdict) {
    static const char *const names[TENSORS] = {"x", "h", "v", "b", "a", "w", "ix", "c", "o", "y", "q", "s"};
    char words[200];
    for (int i = 0; i < TENSORS; i++) {
        const Array *array = &memory->arrays[i];
        bool output = i >= TENSORS - OUTPUTS;
        if (array_check((Array *)array, output)) {
            snprintf(words, sizeof words, "bytes of %s that are not its to write have changed", names[i]);
            return different(verdict, target, words);
        }
        for (int64_t e = 0; output && with && e < array->count; e++) {
            uint64_t bits = value_bits(array->type, array_at(array, e));
            uint64_t wanted = value_bits(array->type, array_at(&with->arrays[i], e));
            if (bits == wanted) continue;
            snprintf(words, sizeof words, "%s[%lld] has bits %#llx, on the interpreter %#llx", names[i], (long long)e,
                     (unsigned long long)bits, (unsigned long long)wanted);
            return different(verdict, target, words);
        }
    }
    return OUTCOME_SAME;
}

static bool is_usable(const Target *target) {
    TileTargetInfo info;
    if (target->flags & TILE_COMPILE_EMULATE) return true;
    for (size_t i = 0; tile_target_at(i, &info); i++)
        if (strcmp(info.name, target->name) == 0) return info.usable;
    return false;
}

/* Which targets a kernel is tried on beside the interpreter: number `only`; or (0) all of this machine but number
 * `without` (0: no such), and in the guest number `guest` (0: none). */
typedef struct Tried {
    int only, without, guest;
} Tried;

static bool is_tried(const Tried *tried, int number) {
    if (number == 0) return true;
    if (tried->only) return number == tried->only;
    if (number == tried->without) return false;
    return targets[number].guest_bits ? number == tried->guest : is_usable(&targets[number]);
}

/* In the child. */
static void judge(const Choices *choices, uint64_t seed, const Tried *tried, Verdict *verdict) {
    static char text[MAX_TEXT];
    static Memory first, other;
    Sizes sizes;
    TileCompiler *compiler;
    Guest *guest = NULL;
    const char *why;
    generate_kernel(choices, text, sizeof text, &sizes);
    Type narrow = strstr(text, "h: in bf16") ? TYPE_BF16 : TYPE_F16;
    if (tile_compiler_create(NULL, &compiler) != TILE_OK) _exit(2);
    for (int i = 0; i < TARGET_COUNT; i++) {
        Memory *memory = i ? &other : &first;
        if (!is_tried(tried, i)) continue;
        verdict->target = i;
        if (!make_memory(memory, &sizes, narrow, seed)) _exit(2);
        alarm(SECONDS);
        if (targets[i].guest_bits && !(guest = guest_create(&why))) _exit(2);
        if (run(compiler, guest, text, &targets[i], memory, verdict) != OUTCOME_SAME) break;
        if (compare(memory, i ? &first : NULL, &targets[i], verdict) != OUTCOME_SAME) break;
        for (int k = 0; i && k < TENSORS; k++) array_destroy(&other.arrays[k]);
    }
    guest_destroy(guest);
    _exit(0);
}

static Outcome try_kernel(const Choices *choices, uint64_t seed, const Tried *tried, Verdict *shared,
                          Verdict *verdict) {
    int status = 0;
    *shared = (Verdict){OUTCOME_SAME, 0, ""};
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) judge(choices, seed, tried, shared);
    waitpid(child, &status, 0);
    *verdict = *shared;
    if (WIFSIGNALED(status)) {
        verdict->outcome = OUTCOME_DIFFERENT;
        snprintf(verdict->reason, sizeof verdict->reason, "%s: ended by signal %d", targets[shared->target].label,
                 WTERMSIG(status));
    }
    return verdict->outcome;
}

/* ---- shrinking ---- */

typedef struct Shrinker {
    Choices best;
    uint64_t seed;
    unsigned trials;
    Verdict *shared, verdict;
} Shrinker;

static bool still_fails(Shrinker *s, const Choices *choices) {
    Verdict verdict;
    Tried tried = {.only = s->verdict.target};
    if (s->trials++ >= MOST_TRIALS || try_kernel(choices, s->seed, &tried, s->shared, &verdict) != OUTCOME_DIFFERENT)
        return false;
    s->best = *choices;
    s->verdict = verdict;
    return true;
}

static bool remove_block(Shrinker *s, size_t begin, size_t length) {
    Choices shorter = s->best;
    if (begin + length > shorter.count) return false;
    memmove(shorter.items + begin, shorter.items + begin + length, shorter.count - begin - length);
    shorter.count -= length;
    return still_fails(s, &shorter);
}

static bool clear_block(Shrinker *s, size_t begin, size_t length) {
    Choices simpler = s->best;
    if (begin + length > simpler.count) return false;
    memset(simpler.items + begin, 0, length);
    return memcmp(simpler.items, s->best.items, simpler.count) != 0 && still_fails(s, &simpler);
}

/* Leaves out choices, then makes them simple, in blocks of halving length, until nothing more goes. */
static void shrink(Shrinker *s) {
    static char text[MAX_TEXT];
    Sizes sizes;
    bool changed = true;
    size_t used = generate_kernel(&s->best, text, sizeof text, &sizes);
    if (used < s->best.count) s->best.count = used;
    while (changed && s->trials < MOST_TRIALS) {
        changed = false;
        for (size_t length = 64; length >= 1; length /= 2) {
            for (size_t begin = 0; begin < s->best.count;) {
                bool removed = remove_block(s, begin, length);
                changed |= removed;
                if (removed) continue;
                changed |= clear_block(s, begin, length);
                begin += length;
            }
        }
    }
}

static void write_out(const Shrinker *s, uint64_t number) {
    static char text[MAX_TEXT];
    Sizes sizes;
    char path[64];
    generate_kernel(&s->best, text, sizeof text, &sizes);
    snprintf(path, sizeof path, "random-%llu.tile", (unsigned long long)number);
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "// M=%lld N=%lld K=%lld L=%lld: %s\n%s", (long long)sizes.m, (long long)sizes.n,
                (long long)sizes.k, (long long)sizes.l, s->verdict.reason, text);
        fclose(file);
    }
    printf("FAIL kernel %llu, M=%lld N=%lld K=%lld, cut down to %zu choices and written to %s\n     %s\n%s",
           (unsigned long long)number, (long long)sizes.m, (long long)sizes.n, (long long)sizes.k, s->best.count, path,
           s->verdict.reason, text);
}

static Choices make_choices(uint64_t seed, uint64_t number) {
    Random random = random_create(seed * 1000003 + number);
    Choices choices = {.count = 40 + random_next(&random) % (MAX_CHOICES - 40)};
    for (size_t i = 0; i < choices.count; i++) choices.items[i] = (uint8_t)(random_next(&random) >> 24);
    return choices;
}

/* ---- all of them ---- */

/* What the processes that try kernels share. */
typedef struct Campaign {
    uint64_t seed, first, end;
    uint64_t every;        /* code for SVE is run of every so many kernels; 0: of none */
    bool turns;            /* of AVX2 and AVX-512 each kernel gets one */
    _Atomic uint64_t next; /* kernel that nobody has taken */
    _Atomic uint64_t refused, failed, foreign;
} Campaign;

static void *share(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void try_number(Campaign *campaign, uint64_t number, Verdict *shared) {
    Verdict verdict;
    Choices choices = make_choices(campaign->seed, number);
    bool foreign = campaign->every && number % campaign->every == 0;
    Tried tried = {.without = campaign->turns ? FIRST_NATIVE + (int)(number % NATIVE_COUNT) : 0,
                   .guest = foreign ? FIRST_GUEST + (int)(number / campaign->every % GUEST_COUNT) : 0};
    Outcome outcome = try_kernel(&choices, number, &tried, shared, &verdict);
    if (outcome == OUTCOME_REFUSED && getenv("TILE_RANDOM_VERBOSE")) printf("refused %s\n", verdict.reason);
    campaign->refused += outcome == OUTCOME_REFUSED;
    campaign->foreign += foreign && outcome != OUTCOME_REFUSED;
    if (outcome != OUTCOME_DIFFERENT) return;
    Shrinker shrinker = {.best = choices, .seed = number, .shared = shared, .verdict = verdict};
    shrink(&shrinker);
    write_out(&shrinker, number);
    campaign->failed++;
}

static bool start_worker(Campaign *campaign) {
    fflush(stdout);
    pid_t worker = fork();
    if (worker) return worker > 0;
    Verdict *shared = share(sizeof *shared);
    for (uint64_t i; shared && (i = campaign->next++) < campaign->end;) try_number(campaign, i, shared);
    fflush(stdout);
    _exit(shared ? 0 : 2);
}

/* True where each of them ends in peace. */
static bool run_workers(Campaign *campaign, long jobs) {
    bool good = true;
    int status;
    for (long i = 0; i < jobs; i++) good &= start_worker(campaign);
    while (wait(&status) > 0) good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return good;
}

/* Of every how many kernels code for SVE is run; 0 where it cannot be. */
static uint64_t guests_every(uint64_t every) {
    const char *why;
    Guest *guest = every ? guest_create(&why) : NULL;
    if (every && !guest) printf("SKIP machine code for SVE: %s\n", why);
    every = guest ? every : 0;
    guest_destroy(guest);
    return every;
}

static bool take_option(const char *name, int *count, char ***arguments) {
    if (*count < 2 || strcmp((*arguments)[1], name) != 0) return false;
    (*count)--;
    (*arguments)++;
    return true;
}

/* The number behind the option's name; else `usual`. */
static uint64_t take_number(const char *name, uint64_t usual, int *count, char ***arguments) {
    if (*count < 2 || strncmp((*arguments)[1], name, strlen(name)) != 0) return usual;
    (*count)--;
    (*arguments)++;
    return strtoull((*arguments)[0] + strlen(name), NULL, 10);
}

int main(int count, char **arguments) {
    uint64_t every = take_number("--sve=", SVE_EVERY, &count, &arguments);
    bool turns = take_option("--turns", &count, &arguments);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t jobs = take_number("--jobs=", processors > 0 ? (uint64_t)processors : 1, &count, &arguments);
    Campaign *campaign = share(sizeof *campaign);
    if (count < 2 || !jobs || jobs > MAX_JOBS || !campaign) {
        fprintf(stderr, "usage: tile_random_tests [--sve=N] [--turns] [--jobs=N] COUNT [SEED] [FIRST]\n");
        return 2;
    }
    uint64_t kernels = strtoull(arguments[1], NULL, 10);
    campaign->seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    campaign->first = campaign->next = count > 3 ? strtoull(arguments[3], NULL, 10) : 0;
    campaign->end = campaign->first + kernels;
    campaign->every = guests_every(every);
    campaign->turns = turns && is_usable(&targets[FIRST_NATIVE]) && is_usable(&targets[FIRST_NATIVE + 1]);
    if (every && !campaign->every && guest_is_required()) return 1;
    bool good = run_workers(campaign, (long)jobs);
    uint64_t refused = campaign->refused, failed = campaign->failed;
    printf(
        "random kernels: %llu ran, %llu of them as machine code for SVE, %llu failed, %llu refused by the checker%s\n",
        (unsigned long long)(kernels - refused), (unsigned long long)campaign->foreign, (unsigned long long)failed,
        (unsigned long long)refused, good ? "" : "; a process that tries them has died");
    /* Well typed is what the generator promises. */
    return good && failed == 0 && refused * 10 <= kernels ? 0 : 1;
}
