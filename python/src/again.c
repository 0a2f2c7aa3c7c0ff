/* Launches that come again: of tensors of PyTorch with the classes, types, shapes and strides of an earlier launch.
 *
 * Reading such tensors as DLPack's structs and comparing these with the launches that the kernel remembers is most of
 * what Python's launch does, and its code is not in the first caches when a driver has run (ADR 106). So a kernel notes
 * a few launches as bound calls, each beside the words of the C++ tensors that make another launch the same: if they
 * are the same, only addresses are asked. What is noted is not changed, and lives as long as the kernel, so that no
 * lock is needed. Calls that make results are noted apart, each with what its results are. */
#include "extension.h"

enum { CHANCES = 16, WAYS = 2, KIND_WORDS = 3 };
enum { GIVEN, MADE }; /* tables: with all results given, and made */

struct Again {
    Kernel *runs; /* the kernel, or the one for GPUs that it holds */
    TileBound *bound;
    int64_t elements;
    DLDevice device;
    _Atomic int chances; /* addresses that the code is not for, as unaligned ones, take them away; 0: it is not tried */
    TorchMade *made;     /* of each result that is made */
    uint64_t words[];    /* of each tensor that is given: its kind, rank, and of each dimension extent and stride */
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

/* The table is known where these stand: there is a loop for each. */
#define FOR_TABLE static inline __attribute__((always_inline))

/* *gradients: whether any tensor has what gradients need; views have it, too. */
FOR_TABLE bool is_like(int table, const Again *again, const Kernel *kernel, const Known *known,
                           PyObject *const *objects, bool *gradients) {
    const TorchLayout *layout = known->torch.layout;
    const uint64_t *words = again->words;
    uint64_t found = 0;
    PyObject *const *end = objects + kernel->count;
    for (; objects < end; objects++) {
        if (table == MADE && !*objects) continue;
        if (Py_TYPE(*objects) != known->type) return false;
        const char *implementation = torch_implementation(&known->torch, *objects);
        if (differ(layout, implementation, &words)) return false;
        found |= torch_word(implementation, layout->grad);
    }
    *gradients = found;
    return true;
}

static __attribute__((noinline)) bool needs_grad(const Kernel *kernel, const TorchCalls *calls, PyObject *const *objects) {
    bool needs = false;
    for (int i = 0; i < kernel->count && !kernel->ignores_grad && !needs; i++) {
        if (!objects[i]) continue;
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

FOR_TABLE Again *find(int table, Kernel *kernel, const Known *known, PyObject *const *objects, bool *gradients) {
    unsigned slot = slot_of(known->torch.layout, torch_implementation(&known->torch, objects[0]));
    for (unsigned way = 0; way < WAYS; way++) {
        Again *again = atomic_load_explicit(&kernel->again[table][slot ^ way], memory_order_acquire);
        if (!again) return NULL;
        if (is_like(table, again, kernel, known, objects, gradients)) return again;
    }
    return NULL;
}

/* ---- launching ---- */

FOR_TABLE bool read_addresses(int table, const TorchCalls *calls, PyObject *const *objects, int count,
                                  void **addresses) {
    int32_t (*data)(void *tensor, void **address) = calls->data, failed = 0;
    size_t place = calls->place;
    for (int i = 0; i < count; i++)
        if (table == GIVEN || objects[i]) failed |= data((char *)objects[i] + place, &addresses[i]);
    return !failed;
}

/* May it keep the GIL now? As kernel.c has it, which counts the launch where it may not. */
static inline bool is_short(Kernel *runs, int64_t elements) {
    uint32_t calls = atomic_load_explicit(&runs->calls, memory_order_relaxed);
    if (calls % TIMED_CALLS == 0 || elements > atomic_load_explicit(&runs->short_elements, memory_order_relaxed))
        return false;
    atomic_store_explicit(&runs->calls, calls + 1, memory_order_relaxed);
    return true;
}

static inline int launch(Again *again, void *const *addresses, void *stream) {
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

/* The types that tensors are looked at by: where `like` has changed since, they are of another. NULL: nothing is noted. */
static inline const Known *known_of(const Kernel *kernel, PyObject *first) {
    const Known *known = atomic_load_explicit(&kernel->like, memory_order_acquire);
    bool may = known && known->torch.layout && kernel->leading == kernel->count && kernel->count &&
               Py_TYPE(first) == known->type && !is_observed(kernel->state);
    return may ? known : NULL;
}

/* The launch that was noted of such tensors, if it may be tried, and their addresses. */
FOR_TABLE Again *find_now(int table, Kernel *kernel, const Known *known, PyObject *const *objects, void **addresses) {
    bool gradients;
    Again *again = find(table, kernel, known, objects, &gradients);
    if (!again || atomic_load_explicit(&again->chances, memory_order_relaxed) <= 0 ||
        (gradients && needs_grad(kernel, &known->torch, objects)) ||
        !read_addresses(table, &known->torch, objects, kernel->count, addresses) || !is_short(again->runs, again->elements))
        return NULL;
    return again;
}

int again_launch(Kernel *kernel, PyObject *const *objects) {
    void *addresses[MOST_PARAMETERS], *stream = NULL;
    const Known *known = kernel->count ? known_of(kernel, objects[0]) : NULL;
    Again *again = known ? find_now(GIVEN, kernel, known, objects, addresses) : NULL;
    if (!again) return 0;
    if (again->runs->is_gpu && current_stream(known, again->device, &stream)) return -1;
    return launch(again, addresses, stream);
}

static void drop_made(Result *made, int count) {
    for (int i = 0; i < count; i++) result_drop(&made[i]);
}

int again_make(Kernel *kernel, PyObject *const *given, Result *made) {
    void *addresses[MOST_PARAMETERS], *stream = NULL;
    PyObject *objects[MOST_PARAMETERS];
    const Known *known = kernel->given_count && !kernel->parameters[0].is_out ? known_of(kernel, given[0]) : NULL;
    if (!known) return 0;
    for (int i = 0; i < kernel->count; i++) objects[i] = kernel->parameters[i].is_out ? NULL : *given++;
    Again *again = find_now(MADE, kernel, known, objects, addresses);
    if (!again) return 0;
    if (again->runs->is_gpu && current_stream(known, again->device, &stream)) return -1;
    int count = 0, launched = 1;
    for (int i = 0; i < kernel->count && launched; i++) {
        if (objects[i]) continue;
        made[count] = (Result){.calls = &known->torch};
        launched = torch_make_known(&known->torch, &again->made[count], &made[count].torch, &addresses[i]);
        count += launched;
    }
    if (launched) launched = launch(again, addresses, stream);
    if (launched <= 0) drop_made(made, count);
    return launched;
}

/* ---- noting ---- */

static uint64_t *put_words(const TorchLayout *layout, const char *implementation, const DLTensor *tensor, uint64_t *word) {
    *word++ = torch_word(implementation, 0);
    *word++ = torch_kind_word(layout, implementation);
    *word++ = torch_word(implementation, layout->kind + sizeof(uint64_t));
    *word++ = (uint64_t)tensor->ndim;
    for (int d = 0; d < tensor->ndim; d++) {
        *word++ = (uint64_t)tensor->shape[d];
        *word++ = (uint64_t)tensor->strides[d];
    }
    return word;
}

static bool note_made(const TorchCalls *calls, const DLTensor *tensor, TorchMade *made) {
    *made = (TorchMade){.device = tensor->device, .type = torch_type(calls, tensor->dtype), .rank = tensor->ndim};
    for (int d = 0; d < tensor->ndim; d++) {
        made->shape[d] = tensor->shape[d];
        made->strides[d] = tensor->strides[d];
    }
    return made->type >= 0;
}

static void destroy(Again *again) {
    if (!again) return;
    tile_bound_destroy(again->bound);
    PyMem_Free(again->made);
    PyMem_Free(again);
}

static Again *create(const Kernel *kernel, const Known *known, PyObject *const *objects, const Call *call) {
    size_t words = 0, results = 0;
    for (int i = 0; i < kernel->count; i++) words += KIND_WORDS + 1 + 2 * (size_t)call->tensors[i].ndim;
    Again *again = PyMem_Calloc(1, sizeof *again + words * sizeof *again->words);
    if (again) again->made = PyMem_Calloc((size_t)kernel->count, sizeof *again->made);
    bool good = again && again->made;
    uint64_t *word = again ? again->words : NULL;
    for (int i = 0; i < kernel->count && good; i++) {
        if (objects[i])
            word = put_words(known->torch.layout, torch_implementation(&known->torch, objects[i]), &call->tensors[i], word);
        else
            good = note_made(&known->torch, &call->tensors[i], &again->made[results++]);
    }
    if (good) return again;
    destroy(again);
    return NULL;
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

/* Results are made where the first tensor's are: those are plain tensors of PyTorch. *table: of which the launch is. */
static bool may_be_noted(const Kernel *kernel, PyObject *const *objects, const Call *call, int *table) {
    const Known *known = call->like;
    *table = GIVEN;
    if (!known || known == &call->local || !known->torch.layout || kernel->leading != kernel->count) return false;
    for (int i = 0; i < kernel->count; i++) {
        if (!objects[i]) *table = MADE;
        if (objects[i] && (Py_TYPE(objects[i]) != known->type || !torch_is_known(&known->torch, objects[i]))) return false;
    }
    return *table == MADE ? objects[0] && known->torch.makes_results : call->is_plain;
}

void again_note(Kernel *kernel, Kernel *runs, PyObject *const *objects, const Call *call, int64_t elements) {
    const Known *known = call->like;
    bool gradients;
    int table;
    _Atomic(Again *) *place = NULL;
    if (runs->prints || !may_be_noted(kernel, objects, call, &table)) return;
    if (find(table, kernel, known, objects, &gradients)) return;
    unsigned slot = slot_of(known->torch.layout, torch_implementation(&known->torch, objects[0]));
    for (unsigned way = WAYS; way-- > 0;)
        if (!atomic_load_explicit(&kernel->again[table][slot ^ way], memory_order_relaxed)) place = &kernel->again[table][slot ^ way];
    Again *again = place ? create(kernel, known, objects, call) : NULL, *none = NULL;
    if (!again) return;
    again->runs = runs;
    again->elements = elements;
    again->device = call->device;
    atomic_init(&again->chances, CHANCES);
    if (!bind(again, call) || !atomic_compare_exchange_strong(place, &none, again)) destroy(again);
}

int again_count(const Kernel *kernel) {
    int count = 0;
    for (int i = 0; i < 2 * AGAINS; i++) count += atomic_load(&kernel->again[i / AGAINS][i % AGAINS]) != NULL;
    return count;
}

void again_drop(Kernel *kernel) {
    for (int i = 0; i < 2 * AGAINS; i++) destroy(atomic_exchange(&kernel->again[i / AGAINS][i % AGAINS], NULL));
}
