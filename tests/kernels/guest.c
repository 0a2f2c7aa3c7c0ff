#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../guest/job.h"

#ifndef TILE_GUEST_RUNNER
#define TILE_GUEST_RUNNER ""
#define TILE_GUEST_LINKER ""
#define TILE_GUEST_EMULATOR ""
#define TILE_GUEST_ROOT ""
#endif

extern char **environ;

enum { MAX_ENTRIES = 16, MAX_REGIONS = 32, MAX_SLOTS = 1024, MAX_TOOL = 256 };

/* What it runs with. */
typedef struct Tools {
    char linker[MAX_TOOL], emulator[MAX_TOOL], runner[MAX_TOOL];
    char root[MAX_TOOL]; /* of the guest's C library: contains lib/ */
} Tools;

/* A loaded phase. */
typedef struct Loaded {
    TilePhaseEntry stub;
    const TileImageCode *code;
    const TileImageSignature *signature;
    uint8_t bytes[TILE_MAX_PARAMETERS]; /* of an element, by parameter */
    uint32_t phase;
    unsigned object;
    char symbol[128];
} Loaded;

struct Guest {
    Tools tools;
    TileForeign foreign;
    TileThreadPool *threads;
    char folder[64];
    unsigned vector_bits, entry_count, object_count;
    Loaded entries[MAX_ENTRIES];
    char error[512];
};

static void call(unsigned number, const uint64_t *slots, int64_t begin, int64_t end, void *scratch);

/* The launcher calls a function without a context argument, so each phase needs its own function. */
static Guest *running;
#define STUB_LIST(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define STUB(n)                                                                                                        \
    static void stub_##n(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {                           \
        call(n, slots, begin, end, scratch);                                                                           \
    }
STUB_LIST(STUB)
#undef STUB
#define STUB_ENTRY(n) stub_##n,
static const TilePhaseEntry stubs[MAX_ENTRIES] = {STUB_LIST(STUB_ENTRY)};
#undef STUB_ENTRY

static void complain(Guest *guest, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void complain(Guest *guest, const char *format, ...) {
    if (*guest->error) return;
    va_list list;
    va_start(list, format);
    vsnprintf(guest->error, sizeof guest->error, format, list);
    va_end(list);
}

/* ---- processes and files ---- */

static void path_of(const Guest *guest, char *path, size_t size, const char *name, unsigned number) {
    snprintf(path, size, "%s/%s%u", guest->folder, name, number);
}

/* True if it exits with status 0. Its standard input and output are files (NULL: inherited). */
static bool run_process(Guest *guest, char *const *arguments, const char *input, const char *output) {
    posix_spawn_file_actions_t actions;
    pid_t process;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    if (input) posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0);
    if (output) posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int failed = posix_spawnp(&process, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) {
        complain(guest, "%s cannot be started: %s", arguments[0], strerror(failed));
        return false;
    }
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    if (WIFSIGNALED(status))
        complain(guest, "%s ended by signal %d", arguments[0], WTERMSIG(status));
    else
        complain(guest, "%s ended with status %d", arguments[0], WEXITSTATUS(status));
    return false;
}

static bool write_file(Guest *guest, const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    bool good = file && (size == 0 || fwrite(data, size, 1, file) == 1);
    if (file && fclose(file)) good = false;
    if (!good) complain(guest, "cannot write %s", path);
    return good;
}

/* ---- loading ---- */

static tile_status load(void *state, const TileForeignObject *object) {
    Guest *guest = state;
    char from[128], to[128];
    uint32_t count = object->code->phase_count;
    if (guest->entry_count + count > MAX_ENTRIES) return TILE_OUT_OF_MEMORY;
    path_of(guest, from, sizeof from, "object", guest->object_count);
    path_of(guest, to, sizeof to, "shared", guest->object_count);
    char *const linker[] = {guest->tools.linker, "-shared", "-o", to, from, NULL};
    if (!write_file(guest, from, object->data, object->size) || !run_process(guest, linker, NULL, NULL))
        return TILE_BACKEND;
    for (uint32_t i = 0; i < count; i++) {
        Loaded *entry = &guest->entries[guest->entry_count];
        *entry = (Loaded){.stub = stubs[guest->entry_count],
                          .code = object->code,
                          .signature = object->signature,
                          .phase = i,
                          .object = guest->object_count};
        for (uint32_t p = 0; p < object->signature->parameter_count; p++) {
            const TileImageParameter *parameter = &object->signature->parameters[p];
            unsigned type = parameter->generic >= 0 ? object->request->generics[parameter->generic] : parameter->type;
            entry->bytes[p] = (uint8_t)tile_host_type_bytes((TileHostType)type);
        }
        snprintf(entry->symbol, sizeof entry->symbol, "%s", object->symbols[i]);
        object->entries[i] = entry->stub;
        guest->entry_count++;
    }
    guest->object_count++;
    return TILE_OK;
}

/* ---- calling ---- */

/* Memory of this process that the guest has to see. */
typedef struct Region {
    uint64_t low, high;
} Region;

typedef struct Call {
    JobHeader header;
    Region regions[MAX_REGIONS];
    JobPointer pointers[MAX_REGIONS];
    uint64_t slots[MAX_SLOTS];
} Call;

/* Merges adjacent regions. */
static void add_region(Call *job, Region region) {
    for (uint64_t i = 0; i < job->header.region_count;) {
        Region *other = &job->regions[i];
        if (other->low < region.high && region.low < other->high) {
            region.low = other->low < region.low ? other->low : region.low;
            region.high = other->high > region.high ? other->high : region.high;
            *other = job->regions[--job->header.region_count];
            i = 0;
        } else {
            i++;
        }
    }
    job->regions[job->header.region_count++] = region;
}

static void add_tensor(Call *job, const uint64_t **slot, const uint64_t *first, unsigned rank, unsigned bytes) {
    const uint64_t *words = *slot;
    Region region = {words[0], words[0] + bytes};
    bool empty = false;
    for (unsigned i = 0; i < rank; i++) {
        int64_t extent = (int64_t)words[1 + i], reach = (int64_t)words[1 + rank + i] * (extent - 1);
        empty |= extent <= 0;
        if (reach < 0)
            region.low += (uint64_t)reach;
        else
            region.high += (uint64_t)reach;
    }
    job->pointers[job->header.pointer_count++] =
        (JobPointer){(uint64_t)(words - first), empty ? JOB_NOWHERE : 0, words[0]};
    if (!empty) add_region(job, region);
    *slot += 1 + 2 * rank;
}

/* Slots have the layout of launch/image.h. */
static bool read_slots(Call *job, const Loaded *entry, const uint64_t *slots) {
    const TileImageCode *code = entry->code;
    const uint64_t *next = slots;
    if (code->order_count + code->temp_count > MAX_REGIONS) return false;
    for (uint32_t i = 0; i < code->order_count; i++) {
        const TileImageParameter *parameter = &entry->signature->parameters[code->order[i]];
        if (parameter->kind == TILE_PARAMETER_TENSOR)
            add_tensor(job, &next, slots, parameter->rank, entry->bytes[code->order[i]]);
        else
            next++;
    }
    for (uint32_t i = 0; i < code->temp_count; i++)
        add_tensor(job, &next, slots, code->temps[i].rank, tile_host_type_bytes((TileHostType)code->temps[i].type));
    job->header.slot_count = (uint64_t)(next - slots);
    if (job->header.slot_count > MAX_SLOTS) return false;
    memcpy(job->slots, slots, job->header.slot_count * sizeof *slots);
    return true;
}

/* Finds the region that a pointer points into, and replaces the address by an offset. */
static void resolve_pointers(Call *job) {
    for (uint64_t p = 0; p < job->header.pointer_count; p++) {
        JobPointer *pointer = &job->pointers[p];
        for (uint64_t i = 0; pointer->region != JOB_NOWHERE && i < job->header.region_count; i++) {
            if (pointer->offset < job->regions[i].low || pointer->offset >= job->regions[i].high) continue;
            pointer->region = i;
            pointer->offset -= job->regions[i].low;
            break;
        }
    }
}

static bool write_job(Guest *guest, const Call *job, const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) {
        complain(guest, "cannot write %s", path);
        return false;
    }
    fwrite(&job->header, sizeof job->header, 1, file);
    for (uint64_t i = 0; i < job->header.region_count; i++) {
        JobRegion region = {job->regions[i].high - job->regions[i].low, job->regions[i].low % JOB_PAGE};
        fwrite(&region, sizeof region, 1, file);
    }
    fwrite(job->slots, sizeof *job->slots, job->header.slot_count, file);
    fwrite(job->pointers, sizeof *job->pointers, job->header.pointer_count, file);
    for (uint64_t i = 0; i < job->header.region_count; i++) {
        const Region *region = &job->regions[i];
        fwrite((const void *)(uintptr_t)region->low, 1, region->high - region->low, file);
    }
    bool good = !ferror(file);
    if (fclose(file) || !good) complain(guest, "cannot write %s", path);
    return !*guest->error;
}

/* Copies the regions back. */
static bool read_result(Guest *guest, const Call *job, const char *path, void *scratch) {
    JobResult result;
    FILE *file = fopen(path, "rb");
    bool good = file && fread(&result, sizeof result, 1, file) == 1;
    for (uint64_t i = 0; good && i < job->header.region_count; i++) {
        const Region *region = &job->regions[i];
        good = fread((void *)(uintptr_t)region->low, region->high - region->low, 1, file) == 1;
    }
    if (file) fclose(file);
    if (!good)
        complain(guest, "the runner's answer is cut off");
    else if (result.vector_bits != guest->vector_bits)
        complain(guest, "the code ran with vectors of %llu bits", (unsigned long long)result.vector_bits);
    else if (scratch)
        memcpy(scratch, &result.assertion, sizeof result.assertion);
    return good;
}

static void call(unsigned number, const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    Guest *guest = running;
    const Loaded *entry = &guest->entries[number];
    const TileImagePhase *phase = &entry->code->phases[entry->phase];
    Call job = {.header = {.begin = begin, .end = end, .scratch_bytes = phase->scratch_bytes}};
    char cpu[64], shared[128], input[128], output[128];
    memcpy(job.header.symbol, entry->symbol, sizeof job.header.symbol);
    if (!read_slots(&job, entry, slots)) {
        complain(guest, "too many parameters");
        return;
    }
    resolve_pointers(&job);
    path_of(guest, shared, sizeof shared, "shared", entry->object);
    path_of(guest, input, sizeof input, "job", 0);
    path_of(guest, output, sizeof output, "result", 0);
    snprintf(cpu, sizeof cpu, "max,sve%u=on,sve-default-vector-length=%u", guest->vector_bits, guest->vector_bits / 8);
    Tools *tools = &guest->tools;
    char *const emulator[] = {tools->emulator, "-L", tools->root, "-cpu", cpu, tools->runner, shared, NULL};
    if (write_job(guest, &job, input) && run_process(guest, emulator, input, output))
        read_result(guest, &job, output, phase->assertion_count ? scratch : NULL);
}

/* ---- the public part ---- */

/* The tools that the build found; or those in the folder TILE_GUEST, for machines where they are not installed. */
static bool find_tools(Tools *tools, const char **why) {
    const char *folder = getenv("TILE_GUEST");
    if (folder) {
        snprintf(tools->linker, MAX_TOOL, "%s/aarch64-linux-gnu-ld", folder);
        snprintf(tools->emulator, MAX_TOOL, "%s/qemu-aarch64", folder);
        snprintf(tools->runner, MAX_TOOL, "%s/guest_runner", folder);
        snprintf(tools->root, MAX_TOOL, "%s", folder);
    } else {
        snprintf(tools->linker, MAX_TOOL, "%s", TILE_GUEST_LINKER);
        snprintf(tools->emulator, MAX_TOOL, "%s", TILE_GUEST_EMULATOR);
        snprintf(tools->runner, MAX_TOOL, "%s", TILE_GUEST_RUNNER);
        snprintf(tools->root, MAX_TOOL, "%s", TILE_GUEST_ROOT);
    }
    *why = access(tools->emulator, X_OK) != 0 ? "qemu-aarch64 is missing"
           : access(tools->linker, X_OK) != 0 ? "aarch64-linux-gnu-ld is missing"
           : access(tools->runner, X_OK) != 0 ? "guest_runner, which aarch64-linux-gnu-gcc makes, is missing"
                                              : NULL;
    return !*why;
}

bool guest_is_required(void) {
    const char *required = getenv("TILE_REQUIRE_GUEST");
    return required && *required && strcmp(required, "0") != 0;
}

Guest *guest_create(const char **why) {
    Tools tools;
    if (!find_tools(&tools, why)) return NULL;
    Guest *guest = calloc(1, sizeof *guest);
    const char *temporary = getenv("TMPDIR");
    *why = "no memory, or no temporary folder";
    if (!guest) return NULL;
    TileThreadPoolOptions options = {.struct_size = sizeof options, .threads = 1};
    snprintf(guest->folder, sizeof guest->folder, "%.40s/tile-guest-XXXXXX", temporary ? temporary : "/tmp");
    guest->tools = tools;
    guest->foreign = (TileForeign){load, guest};
    if (mkdtemp(guest->folder) && tile_thread_pool_create(&options, &guest->threads) == TILE_OK) return guest;
    free(guest);
    return NULL;
}

static void remove_files(Guest *guest) {
    char path[128];
    for (unsigned i = 0; i < guest->object_count; i++) {
        path_of(guest, path, sizeof path, "object", i);
        unlink(path);
        path_of(guest, path, sizeof path, "shared", i);
        unlink(path);
    }
    guest->object_count = guest->entry_count = 0;
}

void guest_destroy(Guest *guest) {
    char path[128];
    if (!guest) return;
    remove_files(guest);
    path_of(guest, path, sizeof path, "job", 0);
    unlink(path);
    path_of(guest, path, sizeof path, "result", 0);
    unlink(path);
    rmdir(guest->folder);
    tile_thread_pool_destroy(guest->threads);
    free(guest);
}

const TileForeign *guest_start(Guest *guest, unsigned vector_bits) {
    remove_files(guest);
    guest->vector_bits = vector_bits;
    *guest->error = 0;
    running = guest;
    return &guest->foreign;
}

TileThreadPool *guest_prepare(Guest *guest) {
    *guest->error = 0;
    return guest->threads;
}

const char *guest_error(const Guest *guest) { return *guest->error ? guest->error : NULL; }
