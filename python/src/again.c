/* Launches that come again: of tensors of PyTorch with the classes, types, shapes and strides of an earlier launch.
 *
 * Reading such tensors as DLPack's structs and comparing these with the launches that the kernel remembers is most of
 * what Python's launch does, and its code is not in the first caches when a driver has run (ADR 106). So a kernel notes
 * a few launches as bound calls, each beside the words of the C++ tensors that make another launch the same: if they
 * are the same, only addresses are asked. What is noted is not changed, and lives as long as the kernel, so that no
 * lock is needed. */
#include "extension.h"

enum { CHANCES = 16, WAYS = 2, KIND_WORDS = 3 };

struct Again {
    Kernel *runs; /* the kernel, or the one for GPUs that it holds */
    TileBound *bound;
    int64_t elements;
    DLDevice device;
    _Atomic int chances; /* addresses that the code is not for, as unaligned ones, take them away; 0: it is not tried */
    uint64_t words[];    /* of each tensor: its kind, rank, and of each dimension extent and stride */
};

/* ---- words ---- */

/* Not 0 where the tensor differs from the words. */
static inline uint64_t differ(const TorchLayout *layout, const char *implementation, const uint64_t **words) {
    const uint64_t *word = *words;
    uint64_t rank = word[KIND_WORDS];
    const char *shape = implementation + layout->shape, *strides = implementation + layout->strides;
    uint64_t found = (torch_word(implementation, 0) ^ word[0]) | (torch_kind_word(layout, implementation) ^ word[1]) |
                     (torch_word(implementation, layout->kind + sizeof(uint64_t)) ^ word[2]) |
                     (torch_word(implementation, layout->rank) ^ rank);
    word += KIND_WORDS + 1;
    for (uint64_t i = 0; i < rank; i++, word += 2)
        found |= (torch_word(shape, i * sizeof(int64_t)) ^ word[0]) | (torch_word(strides, i * sizeof(int64_t)) ^ word[1]);
    *words = word;
    return found;
}

/* *gradients: whether any tensor has what gradients need; views have it, too. */
static inline bool is_like(const Again *again, const Kernel *kernel, const Known *known, PyObject *const *objects,
                           bool *gradients) {
    const TorchLayout *layout = known->torch.layout;
    const uint64_t *words = again->words;
    uint64_t found = 0;
    for (int i = 0; i < kernel->count; i++) {
        if (Py_TYPE(objects[i]) != known->type) return false;
        const char *implementation = torch_implementation(&known->torch, objects[i]);
        if (differ(layout, implementation, &words)) return false;
        found |= torch_word(implementation, layout->grad);
    }
    *gradients = found;
    return true;
}

static __attribute__((noinline)) bool needs_grad(const Kernel *kernel, const TorchCalls *calls, PyObject *const *objects) {
    bool needs = false;
    for (int i = 0; i < kernel->count && !kernel->ignores_grad && !needs; i++) {
        const char *implementation = torch_implementation(calls, objects[i]);
        needs = torch_word(implementation, calls->layout->grad) && calls->requires_grad(implementation);
    }
    return needs;
}

/* Where such launches are noted, one of WAYS places: by what the first tensor has as extents, whatever its rank. */
static unsigned slot_of(const TorchLayout *layout, const char *implementation) {
    uint64_t hash = torch_word(implementation, layout->shape) * UINT64_C(0x9e3779b97f4a7c15) +
                    torch_word(implementation, layout->strides);
    return (unsigned)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 60);
}
_Static_assert(AGAINS == 1 << (64 - 60), "as many as slots");

static inline Again *find(Kernel *kernel, const Known *known, PyObject *const *objects, bool *gradients) {
    unsigned slot = slot_of(known->torch.layout, torch_implementation(&known->torch, objects[0]));
    for (unsigned way = 0; way < WAYS; way++) {
        Again *again = atomic_load_explicit(&kernel->again[slot ^ way], memory_order_acquire);
        if (!again) return NULL;
        if (is_like(again, kernel, known, objects, gradients)) return again;
    }
    return NULL;
}

/* ---- launching ---- */

static bool read_addresses(const TorchCalls *calls, PyObject *const *objects, int count, void **addresses) {
    bool read = true;
    for (int i = 0; i < count && read; i++)
        read = calls->data((char *)objects[i] + calls->place, &addresses[i]) == 0;
    return read;
}

/* May it keep the GIL now? As kernel.c has it, which counts the launch where it may not. */
static inline bool is_short(Kernel *runs, int64_t elements) {
    uint32_t calls = atomic_load_explicit(&runs->calls, memory_order_relaxed);
    if (calls % TIMED_CALLS == 0 || elements > atomic_load_explicit(&runs->short_elements, memory_order_relaxed))
        return false;
    atomic_store_explicit(&runs->calls, calls + 1, memory_order_relaxed);
    return true;
}

static int launch(Again *again, void *const *addresses, void *stream) {
    TileError error;
    TileLaunchOptions options = {
        .struct_size = sizeof options, .stream = stream, .error = &error, .flags = TILE_LAUNCH_REMEMBERED};
    error.message[0] = 0;
    tile_status status = tile_launch_bound(again->bound, addresses, &options);
    int chances = atomic_load_explicit(&again->chances, memory_order_relaxed);
    int left = status == TILE_NOT_FOUND ? chances - 1 : CHANCES;
    if (left != chances) atomic_store_explicit(&again->chances, left, memory_order_relaxed);
    if (status == TILE_OK) return 1;
    return status == TILE_NOT_FOUND ? 0 : raise_status(again->runs, status, &error, NULL);
}

/* The types that this relies on are those of `like`: where it has changed since, tensors are of another type. */
int again_launch(Kernel *kernel, PyObject *const *objects) {
    void *addresses[MOST_PARAMETERS], *stream = NULL;
    const Known *known = atomic_load_explicit(&kernel->like, memory_order_acquire);
    if (!known || !known->torch.layout || kernel->leading != kernel->count || !kernel->count ||
        Py_TYPE(objects[0]) != known->type || is_observed(kernel->state))
        return 0;
    bool gradients;
    Again *again = find(kernel, known, objects, &gradients);
    if (!again || atomic_load_explicit(&again->chances, memory_order_relaxed) <= 0 ||
        (gradients && needs_grad(kernel, &known->torch, objects)) ||
        !read_addresses(&known->torch, objects, kernel->count, addresses) || !is_short(again->runs, again->elements))
        return 0;
    if (again->runs->is_gpu && current_stream(known, again->device, &stream)) return -1;
    return launch(again, addresses, stream);
}

/* ---- noting ---- */

static Again *create(const Kernel *kernel, const Known *known, PyObject *const *objects, const Call *call) {
    size_t words = 0;
    for (int i = 0; i < kernel->count; i++) words += KIND_WORDS + 1 + 2 * (size_t)call->tensors[i].ndim;
    Again *again = PyMem_Calloc(1, sizeof *again + words * sizeof *again->words);
    const TorchLayout *layout = known->torch.layout;
    uint64_t *word = again ? again->words : NULL;
    for (int i = 0; i < kernel->count && again; i++) {
        const char *implementation = torch_implementation(&known->torch, objects[i]);
        const DLTensor *tensor = &call->tensors[i];
        *word++ = torch_word(implementation, 0);
        *word++ = torch_kind_word(layout, implementation);
        *word++ = torch_word(implementation, layout->kind + sizeof(uint64_t));
        *word++ = (uint64_t)tensor->ndim;
        for (int d = 0; d < tensor->ndim; d++) {
            *word++ = (uint64_t)tensor->shape[d];
            *word++ = (uint64_t)tensor->strides[d];
        }
    }
    return again;
}

static void destroy(Again *again) {
    if (!again) return;
    tile_bound_destroy(again->bound);
    PyMem_Free(again);
}

static bool bind(Again *again, const Call *call) {
    TileError error;
    TileReport *report = NULL;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error, .report = &report};
    tile_status status =
        tile_bind(again->runs->kernel, call->args, (size_t)call->kernel->count, &options, &again->bound);
    tile_report_destroy(report);
    return status == TILE_OK;
}

void again_note(Kernel *kernel, Kernel *runs, PyObject *const *objects, const Call *call, int64_t elements) {
    const Known *known = call->like;
    bool gradients;
    if (!call->is_plain || runs->prints || !known->torch.layout || find(kernel, known, objects, &gradients)) return;
    unsigned slot = slot_of(known->torch.layout, torch_implementation(&known->torch, objects[0])), way = 0;
    while (way < WAYS && atomic_load_explicit(&kernel->again[slot ^ way], memory_order_relaxed)) way++;
    Again *again = way < WAYS ? create(kernel, known, objects, call) : NULL, *none = NULL;
    if (!again) return;
    again->runs = runs;
    again->elements = elements;
    again->device = call->device;
    atomic_init(&again->chances, CHANCES);
    if (!bind(again, call) || !atomic_compare_exchange_strong(&kernel->again[slot ^ way], &none, again)) destroy(again);
}

int again_count(const Kernel *kernel) {
    int count = 0;
    for (int i = 0; i < AGAINS; i++) count += atomic_load(&kernel->again[i]) != NULL;
    return count;
}

void again_drop(Kernel *kernel) {
    for (int i = 0; i < AGAINS; i++) destroy(atomic_exchange(&kernel->again[i], NULL));
}
