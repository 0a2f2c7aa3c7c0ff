/* Where PyTorch keeps what a launch asks of a tensor: found in tensors of all kinds, and checked.
 *
 * Ten of PyTorch's functions say what a tensor is, and calling them is most of what a launch from Python costs: their
 * code is not in the caches behind a launch on a GPU (ADR 91). What they say lies in the C++ tensor, at places that no
 * header promises. So nothing is taken for granted: the places are those, and only those, at which all of some eighty
 * tensors (python/tile/_probes.py) have what the functions say of them. If there are none, or several, the functions
 * are asked each time.
 *
 * Only ranks, extents, strides and the pointer to what gradients need are read as such. Two words, whose latter is the
 * set of dispatch keys, differ wherever type, device, layout or negation do; together with the class they are the
 * tensor's kind. What a kind means the functions have said of a tensor of this kind. The address is asked each time,
 * since memory may be copied on the first write. */
#include "extension.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { ROLE_PLAIN, ROLE_GRAD, ROLE_OTHER }; /* of _probes.py */
enum { MOST_PROBES = 256, MOST_BYTES = 512, WORD = 8, CACHE_LINE = 64 };

/* What the functions say of a tensor. */
typedef struct Facts {
    int32_t type, device_type, device;
    bool strided, negative, grad;
    int64_t rank, *sizes, *strides;
} Facts;

typedef struct Probe {
    long role;
    const char *implementation;
    uint64_t keys;
    Facts facts;
} Probe;

/* What has a storage does, but for types of which there are no kernels. */
bool torch_is_strided(const TorchCalls *calls, void *handle) {
    int32_t layout;
    bool has_storage;
    if (calls->has_storage) return calls->has_storage(handle, &has_storage) == 0 && has_storage;
    return calls->layout_of(handle, &layout) == 0 && layout == calls->strided;
}

static bool ask(const TorchCalls *calls, const char *implementation, Facts *facts) {
    void *handle = &implementation;
    *facts = (Facts){.strided = torch_is_strided(calls, handle),
                     .negative = calls->is_negative(handle),
                     .grad = calls->requires_grad(implementation)};
    if (calls->type(handle, &facts->type) || calls->device_type(handle, &facts->device_type) ||
        calls->device_index(handle, &facts->device) || calls->rank(handle, &facts->rank))
        return false;
    return !facts->strided ||
           (calls->sizes(handle, &facts->sizes) == 0 && calls->strides(handle, &facts->strides) == 0);
}

/* ---- places ---- */

/* Plain ones have the class of the first. */
static bool is_of_class(const Probe *probes, const Probe *probe) {
    return torch_word(probe->implementation, 0) == torch_word(probes->implementation, 0);
}

static size_t find_limit(const Probe *probes, size_t count) {
    size_t limit = MOST_BYTES;
    for (size_t i = 0; i < count; i++) {
        if (!is_of_class(probes, &probes[i])) continue;
        size_t bytes = malloc_usable_size((void *)(uintptr_t)probes[i].implementation);
        if (bytes < limit) limit = bytes;
    }
    return limit / WORD * WORD;
}

typedef bool (*Holds)(const Probe *probe, uint64_t word);
static bool is_keys(const Probe *probe, uint64_t word) { return word == probe->keys; }
static bool is_rank(const Probe *probe, uint64_t word) {
    return !probe->facts.strided || word == (uint64_t)probe->facts.rank;
}
static bool is_gradient(const Probe *probe, uint64_t word) {
    return probe->role == ROLE_OTHER || (word != 0) == (probe->role == ROLE_GRAD);
}

/* The only place whose words are such in all tensors of the class; 0: none, or several. */
static uint16_t find_place(const Probe *probes, size_t count, size_t limit, Holds holds) {
    size_t found = 0;
    for (size_t at = WORD; at < limit; at += WORD) {
        bool all = true;
        for (size_t i = 0; i < count && all; i++)
            all = !is_of_class(probes, &probes[i]) || holds(&probes[i], torch_word(probes[i].implementation, at));
        if (all && found) return 0;
        if (all) found = at;
    }
    return (uint16_t)found;
}

/* Extents and strides lie in the tensor up to some rank, and then elsewhere. */
static bool is_inside(const TorchLayout *layout, const Probe *probe) {
    return (const char *)probe->facts.sizes == probe->implementation + layout->shape &&
           (const char *)probe->facts.strides == probe->implementation + layout->strides;
}

static bool find_extents(const Probe *probes, size_t count, size_t limit, TorchLayout *layout) {
    size_t shape = (size_t)((const char *)probes->facts.sizes - probes->implementation),
           strides = (size_t)((const char *)probes->facts.strides - probes->implementation);
    if (probes->facts.rank < 1 || shape >= limit || strides >= limit) return false;
    layout->shape = (uint16_t)shape;
    layout->strides = (uint16_t)strides;
    for (int64_t rank = 1; rank <= TILE_MAX_RANK; rank++) {
        size_t seen = 0, inside = 0;
        for (size_t i = 0; i < count; i++) {
            if (!is_of_class(probes, &probes[i]) || !probes[i].facts.strided || probes[i].facts.rank != rank) continue;
            seen++;
            inside += is_inside(layout, &probes[i]);
        }
        if (!seen || inside != seen) break;
        layout->most_rank = (uint16_t)rank;
    }
    size_t bytes = layout->most_rank * sizeof(int64_t);
    return layout->most_rank && shape + bytes <= limit && strides + bytes <= limit;
}

/* ---- kinds ---- */

static void read_kind(const TorchLayout *layout, const char *implementation, uint64_t *words) {
    words[0] = torch_word(implementation, 0);
    words[1] = torch_kind_word(layout, implementation);
    words[2] = torch_word(implementation, layout->kind + WORD);
}

static bool have_same_kind(const TorchLayout *layout, const Probe *a, const Probe *b) {
    uint64_t words[3], others[3];
    read_kind(layout, a->implementation, words);
    read_kind(layout, b->implementation, others);
    return memcmp(words, others, sizeof words) == 0;
}

static bool are_alike(const Facts *a, const Facts *b) {
    return a->type == b->type && a->device_type == b->device_type && a->device == b->device &&
           a->strided == b->strided && a->negative == b->negative;
}

/* The device is two bytes of the kind, of which CPUs can only show the first. */
static bool has_device(const TorchLayout *layout, const char *implementation, const Facts *facts) {
    const unsigned char *bytes = (const unsigned char *)implementation + layout->kind + layout->device;
    return bytes[0] == (unsigned char)facts->device_type && bytes[1] == (unsigned char)facts->device;
}

static bool find_device(const Probe *probes, size_t count, TorchLayout *layout) {
    size_t found = 0;
    for (uint16_t at = 0; at + 1 < WORD; at++) {
        bool all = true;
        layout->device = at;
        for (size_t i = 0; i < count && all; i++)
            all = !is_of_class(probes, &probes[i]) || has_device(layout, probes[i].implementation, &probes[i].facts);
        found = all ? found * 16 + at + 1 : found;
    }
    layout->device = (uint16_t)(found - 1);
    return found && found < 16;
}

/* Do kinds differ wherever what they stand for does? */
static bool tells_apart(const Probe *probes, size_t count, const TorchLayout *layout) {
    size_t types = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++)
            if (!are_alike(&probes[i].facts, &probes[k].facts) && have_same_kind(layout, &probes[i], &probes[k]))
                return false;
        types += probes[i].facts.negative || !probes[i].facts.strided ||
                 probes[i].facts.device_type != probes->facts.device_type;
    }
    return types >= 3; /* one of each was there */
}

/* Of the same two tensors, one in memory of zeros and one in memory of ones: what differs PyTorch does not set, so it says
 * nothing, and would make many kinds of one. Where the memory is not taken again, nothing differs. */
static uint64_t find_unset(const TorchCalls *calls, const TorchLayout *layout, size_t bytes) {
    enum { CHUNKS = 4 };
    const int64_t one = 1;
    uint64_t seen[2] = {0, 0};
    for (int ones = 0; ones < 2 && calls->makes_results; ones++) {
        char *chunks[CHUNKS];
        void *made;
        for (int i = 0; i < CHUNKS; i++) {
            chunks[i] = malloc(bytes);
            for (size_t k = 0; k < bytes && chunks[i]; k++) ((volatile char *)chunks[i])[k] = ones ? -1 : 0;
        }
        for (int i = 0; i < CHUNKS; i++) free(chunks[i]);
        if (calls->empty(1, &one, &one, calls->types[0], calls->cpu, 0, &made)) return 0;
        const char *implementation;
        memcpy(&implementation, made, sizeof implementation);
        seen[ones] = torch_word(implementation, layout->kind);
        calls->drop(made);
    }
    return seen[0] ^ seen[1];
}

/* Where all else is found in the same way as by functions, and nowhere else. */
static bool find_layout(const TorchCalls *calls, const Probe *probes, size_t count, TorchLayout *layout) {
    size_t limit = find_limit(probes, count), keys = find_place(probes, count, limit, is_keys);
    if (keys < 2 * WORD) return false;
    layout->kind = (uint16_t)(keys - WORD);
    layout->kind_mask = ~find_unset(calls, layout, malloc_usable_size((void *)(uintptr_t)probes->implementation));
    layout->rank = find_place(probes, count, limit, is_rank);
    layout->grad = find_place(probes, count, limit, is_gradient);
    return layout->rank && layout->grad && find_extents(probes, count, limit, layout) &&
           find_device(probes, count, layout) && tells_apart(probes, count, layout);
}

/* ---- probes ---- */

static bool read_probe(const TorchCalls *calls, PyObject *row, Probe *probe) {
    PyObject *tensor, *keys;
    if (!PyTuple_Check(row) || !PyArg_ParseTuple(row, "lOO", &probe->role, &tensor, &keys)) return false;
    PyObject *address = PyObject_GetAttrString(tensor, "_cdata");
    probe->implementation = address ? PyLong_AsVoidPtr(address) : NULL;
    probe->keys = PyLong_AsUnsignedLongLong(keys);
    Py_XDECREF(address);
    return !PyErr_Occurred() && probe->implementation && ask(calls, probe->implementation, &probe->facts) &&
           probe->facts.grad == (probe->role == ROLE_GRAD);
}

/* `list` keeps the tensors. The first probe is plain, and has extents. */
static bool find_in(const TorchCalls *calls, PyObject *list, TorchLayout *layout) {
    Py_ssize_t count = list && PyList_Check(list) ? PyList_Size(list) : 0;
    if (!count || count > MOST_PROBES) return false;
    Probe *probes = PyMem_Calloc((size_t)count, sizeof *probes);
    bool found = probes;
    for (Py_ssize_t i = 0; i < count && found; i++) found = read_probe(calls, PyList_GetItem(list, i), &probes[i]);
    if (found) found = probes->role == ROLE_PLAIN && find_layout(calls, probes, (size_t)count, layout);
    PyMem_Free(probes);
    return found;
}

/* Published once; most_rank 0: nothing was found. */
TorchLayout *torch_layout(State *state, const TorchCalls *calls) {
    TorchLayout *known = atomic_load_explicit(&state->torch_layout, memory_order_acquire);
    TorchLayout *made = known ? NULL : aligned_alloc(CACHE_LINE, sizeof *made);
    if (made) {
        memset(made, 0, sizeof *made);
        PyObject *list = PyObject_CallNoArgs(state->hooks.torch_probes);
        if (!find_in(calls, list, made)) memset(made, 0, sizeof *made);
        Py_XDECREF(list);
        PyErr_Clear();
        if (atomic_compare_exchange_strong(&state->torch_layout, &known, made))
            known = made;
        else
            free(made); /* another thread was first */
    }
    return known && known->most_rank ? known : NULL;
}

/* ---- of tensors in use ---- */

static TorchKind *take_slot(TorchLayout *layout, const uint64_t *words) {
    for (unsigned way = 0; way < TORCH_KIND_WAYS; way++) {
        TorchKind *kind = &layout->kinds[torch_kind_slot(words) ^ way];
        int empty = TORCH_KIND_EMPTY;
        if (atomic_load_explicit(&kind->state, memory_order_relaxed) == TORCH_KIND_EMPTY &&
            atomic_compare_exchange_strong(&kind->state, &empty, TORCH_KIND_TAKEN))
            return kind;
    }
    return NULL;
}

static bool is_as_expected(const TorchCalls *calls, const char *implementation) {
    const TorchLayout *layout = calls->layout;
    Facts facts;
    if (!ask(calls, implementation, &facts) || !facts.strided || facts.negative) return false;
    bool inside = !facts.rank || is_inside(layout, &(Probe){.implementation = implementation, .facts = facts});
    return inside && has_device(layout, implementation, &facts) &&
           torch_word(implementation, layout->rank) == (uint64_t)facts.rank &&
           (!facts.grad || torch_word(implementation, layout->grad));
}

void torch_learn_kind(const TorchCalls *calls, const char *implementation, const DLTensor *tensor) {
    uint64_t words[3];
    if (tensor->ndim > calls->layout->most_rank || !is_as_expected(calls, implementation)) return;
    read_kind(calls->layout, implementation, words);
    TorchKind *kind = take_slot(calls->layout, words);
    if (!kind) return;
    memcpy(kind->words, words, sizeof words);
    kind->dtype = tensor->dtype;
    kind->device = tensor->device;
    atomic_store_explicit(&kind->state, TORCH_KIND_READY, memory_order_release);
}

/* ---- for tests ---- */

static PyObject *show(const TorchLayout *layout) {
    int kinds = 0;
    for (int i = 0; i < TORCH_KINDS; i++) kinds += atomic_load(&layout->kinds[i].state) == TORCH_KIND_READY;
    return Py_BuildValue("{sisisisisisisisisK}", "rank", (int)layout->rank, "shape", (int)layout->shape, "strides",
                         (int)layout->strides, "kind", (int)layout->kind, "device", (int)layout->device, "grad",
                         (int)layout->grad, "most_rank", (int)layout->most_rank, "kinds", kinds, "kind_mask",
                         (unsigned long long)layout->kind_mask);
}

static const TorchCalls *known_calls(const State *state) {
    unsigned count = atomic_load_explicit(&state->known_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (state->known[i].torch.reads) return &state->known[i].torch;
    return NULL;
}

/* torch_layout() -> the places that are in use, by name; torch_layout(probes) -> those that would be found in these
 * tensors. None: there are none, or no tensor was seen yet. */
PyObject *torch_show_layout(PyObject *module, PyObject *args) {
    State *state = PyModule_GetState(module);
    const TorchCalls *calls = known_calls(state);
    const TorchLayout *layout = calls ? calls->layout : NULL;
    TorchLayout other = {.rank = 0};
    PyObject *probes = NULL;
    if (!PyArg_ParseTuple(args, "|O", &probes)) return NULL;
    if (probes) layout = calls && find_in(calls, probes, &other) ? &other : NULL;
    PyErr_Clear();
    if (layout) return show(layout);
    Py_INCREF(Py_None);
    return Py_None;
}
