/* The extension module tile._tile: kernels as Python objects that are called with arrays.
 *
 * It uses the stable ABI of Python 3.11, so that one file serves all later versions; what 3.11 has but its stable ABI
 * does not name is declared here. Everything that need not be fast is written in Python (python/tile/), which hands its
 * functions over once, as hooks. The module's state is that of one interpreter. */
#ifndef TILE_PYTHON_EXTENSION_H
#define TILE_PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <pyconfig.h> /* says whether Python is free-threaded, where there is no stable ABI */
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tile/tile.h"

#ifndef Py_TPFLAGS_HAVE_VECTORCALL /* PEP 590: the stable ABI has it from 3.12, Python since 3.8 */
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif
typedef PyObject *(*Vectorcall)(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names);
#define ARGUMENT_COUNT(nargsf) ((Py_ssize_t)((nargsf) & ~((size_t)1 << (8 * sizeof(size_t) - 1))))

enum { MOST_PARAMETERS = 64, KNOWN_TYPES = 8, KNOWN_MAKERS = 16, SHORT_NS = 5000, SHORT_ON_GPU_NS = 20000 };
enum { TIMED_CALLS = 64 }; /* one of so many launches is timed, without the GIL (kernel.c) */

/* X(NAME): functions and classes of python/tile/_hooks.py. */
#define HOOK_LIST(X)                                                                                                   \
    X(compile_error)  /* (kernel or None, status, report as JSON and as text, message) -> exception */                 \
    X(argument_error) /* (kernel, message, index, code) -> exception */                                                \
    X(argument_class) /* ArgumentError */                                                                              \
    X(status_error)   /* (status, message) -> exception */                                                             \
    X(describe)       /* (array) -> (array with a buffer, DLPack code, bits), or None */                               \
    X(dlpack)         /* (array) -> (capsule, stream, whether its library shows one) */                                \
    X(before)         /* (arrays, device, stream) -> what `behind` takes, or None */                                   \
    X(behind)         /* (that, device, stream) */                                                                     \
    X(grad_enabled)   /* () -> bool */                                                                                 \
    X(torch_probes)   /* () -> [(kind, tensor, dispatch keys)], or None */                                             \
    X(empty)          /* (array like it, shape, DLPack code, bits) -> array */                                         \
    X(numpy_maker)    /* (DLPack code, bits) -> function of a shape that gives an array of NumPy */                    \
    X(specialise)     /* (kernel, settings) -> kernel */                                                               \
    X(for_gpu)        /* (kernel, device) -> kernel */                                                                 \
    X(print_line)     /* (text) */                                                                                     \
    X(log_line)       /* (text) */

typedef struct Hooks {
#define HOOK_MEMBER(name) PyObject *name;
    HOOK_LIST(HOOK_MEMBER)
#undef HOOK_MEMBER
} Hooks;

/* How arrays of a type are read. */
typedef enum Way { WAY_EXCHANGE, WAY_NUMPY, WAY_BUFFER, WAY_DLPACK, WAY_NONE } Way;

enum { TORCH_TYPE_COUNT = 15, TORCH_NUMBERS = 48, TORCH_KINDS = 64, TORCH_KIND_WAYS = 4 };

/* What a tensor of PyTorch is, whose class and two words are these. Set once. */
typedef enum TorchKindState { TORCH_KIND_EMPTY, TORCH_KIND_TAKEN, TORCH_KIND_READY } TorchKindState;
typedef struct TorchKind {
    _Alignas(64) uint64_t words[3];
    DLDataType dtype;
    DLDevice device;
    _Atomic int state; /* TorchKindState */
} TorchKind;

/* Where in the C++ tensor things lie (torch_layout.c), in bytes. */
typedef struct TorchLayout {
    uint16_t rank, shape, strides, most_rank; /* those of a higher rank have extents elsewhere */
    uint16_t kind;                            /* two words; type, device and whether it negates follow from them */
    uint16_t device;                          /* in these */
    uint16_t grad;                            /* a pointer; NULL: it needs no gradient */
    uint64_t kind_mask;                       /* of the first of these words: bits that PyTorch sets */
    TorchKind kinds[TORCH_KINDS];
} TorchLayout;

/* c10::cuda::CUDAStream: a device, and the stream's number; 0 is the default stream, whose handle is NULL. */
typedef struct TorchStream {
    int8_t device, device_type;
    int64_t number;
} TorchStream;

/* What PyTorch is asked in C (torch.c). */
typedef struct TorchCalls {
    /* what a launch takes */
    bool is_torch, makes_results, reads;
    uint16_t place;      /* of the C++ tensor in a Python object; 0: no tensor can be asked */
    TorchLayout *layout; /* or NULL */
    int32_t (*data)(void *tensor, void **data);
    bool (*requires_grad)(const void *implementation);
    int32_t (*current_stream)(int32_t device, void **stream); /* of CUDA, or NULL */
    TorchStream (*stream_number)(int8_t device);              /* the same stream, without its handle; or NULL */
    /* what it takes where the layout is not known */
    bool (*is_negative)(const void *tensor);
    bool (*grad_enabled)(void); /* or NULL */
    int32_t (*sizes)(void *tensor, int64_t **sizes);
    int32_t (*strides)(void *tensor, int64_t **strides);
    int32_t (*rank)(void *tensor, int64_t *rank);
    int32_t (*type)(void *tensor, int32_t *type);
    int32_t (*device_type)(void *tensor, int32_t *type);
    int32_t (*device_index)(void *tensor, int32_t *index);
    int32_t (*layout_of)(void *tensor, int32_t *layout);
    int32_t (*has_storage)(void *tensor, bool *has); /* or NULL */
    int32_t cpu, cuda, strided, types[TORCH_TYPE_COUNT];
    DLDataType dtypes[TORCH_NUMBERS]; /* by its numbers; bits 0: no kernel takes it */
    /* results */
    int32_t (*empty)(int64_t rank, const int64_t *shape, const int64_t *strides, int32_t type, int32_t device_type,
                     int32_t device, void **tensor);
    int32_t (*to_python)(void *tensor, void *type, void **object); /* or NULL, and .. */
    void *(*wrap)(const void *tensor);                             /* .. this */
    int32_t (*drop)(void *tensor);
} TorchCalls;

typedef struct Known {
    PyTypeObject *type; /* held forever */
    Way way;
    TorchCalls torch;
    const DLPackExchangeAPI *api;
} Known;

/* What makes arrays of NumPy of a type. */
typedef struct Maker {
    DLDataType dtype;
    PyObject *function; /* held forever */
} Maker;

typedef struct State {
    Hooks hooks;
    PyTypeObject *library_type, *kernel_type, *bound_type, *dispatch_type;
    PyObject *exchange_name, *dlpack_name;
    _Atomic(PyObject *) before, after; /* of the observer, or NULL; changed and taken under `observing` */
    atomic_flag observing;
    TileObserver observer;
    _Atomic unsigned known_count, maker_count;
    Known known[KNOWN_TYPES];
    Maker makers[KNOWN_MAKERS];
    atomic_flag learning;                /* a thread adds to these */
    _Atomic(TorchLayout *) torch_layout; /* NULL: not looked for yet; held forever */
} State;

static inline bool is_observed(State *state) {
    return atomic_load_explicit(&state->before, memory_order_relaxed) ||
           atomic_load_explicit(&state->after, memory_order_relaxed);
}

/* ---- the module's types ---- */

typedef struct Library {
    PyObject_HEAD State *state;
    TileLibrary *library;
    PyObject *compiler; /* a capsule: its log may be called as long as the library lives */
} Library;

typedef struct Parameter {
    PyObject *name; /* interned */
    TileParameterInfo info;
    bool is_tensor, is_out, is_float, is_bool;
} Parameter;

enum { INFERRED_WORDS = 48 };

/* What was inferred of an `out` parameter last, and from what. */
typedef struct Inferred {
    int count; /* of words; 0: nothing yet */
    uint64_t words[INFERRED_WORDS];
    DLDataType dtype;
    int64_t shape[TILE_MAX_RANK];
} Inferred;

typedef struct Again Again;
enum { AGAINS = 16 }; /* a power of two */

typedef struct Kernel {
    PyObject_VAR_HEAD Vectorcall call;
    TileKernel *kernel;
    State *state;
    _Atomic int64_t short_elements;
    _Atomic uint32_t calls; /* for timing (kernel.c) */
    bool is_gpu, prints;
    bool ignores_grad;               /* its caller has dealt with gradients */
    _Atomic(PyObject *) on_gpu;      /* the same kernel for GPUs, once it was needed; or NULL */
    _Atomic(const Known *) like;     /* the type of the tensor that was read last, or NULL */
    _Atomic(const TorchKind *) kind; /* of a tensor of PyTorch that was read lately, or NULL */
    _Atomic(Again *) again[2][AGAINS]; /* launches that may come again (again.c), with results given and made; or NULL */
    int count, given_count;          /* parameters, and those that are not `out` */
    int leading;                     /* tensors before the first parameter that is none */
    Library *library;
    PyObject *module;      /* tile.Module, or None */
    PyObject *dict;        /* attributes that Python code sets */
    PyObject *references;  /* weak ones; CPython's */
    Inferred *inferred;    /* for each parameter */
    atomic_flag inferring; /* a thread reads or writes them */
    Parameter parameters[];
} Kernel;

/* One call: the arguments as the launcher takes them, and what has to be released after it. */
typedef struct Call {
    Kernel *kernel;
    const Known *like;     /* the first tensor's type, by which results are made; NULL: unknown */
    PyObject *like_object; /* the first tensor, borrowed */
    void *stream;          /* GPUs */
    DLDevice device;       /* of the first tensor; device_type 0: there is none */
    bool keeps;            /* arrays are to be kept as buffers, beyond a call */
    bool is_plain;         /* all are tensors of PyTorch of known kinds */
    bool is_mixed;         /* GPUs: they are of several libraries, or of one that shows no stream */
    int views, holds;
    TileArg args[MOST_PARAMETERS];
    DLTensor tensors[MOST_PARAMETERS];
    int64_t strides[MOST_PARAMETERS][TILE_MAX_RANK];
    Py_buffer view[MOST_PARAMETERS];
    PyObject *hold[MOST_PARAMETERS + 1];
    Known local; /* `like`, where the type is not among those known */
} Call;

/* ---- arrays.c ---- */

static inline void call_begin(Call *call, Kernel *kernel) {
    call->kernel = kernel;
    call->like = NULL;
    call->like_object = NULL;
    call->stream = NULL;
    call->device = (DLDevice){(DLDeviceType)0, 0};
    call->keeps = call->is_plain = call->is_mixed = false;
    call->views = call->holds = 0;
}
/* How arrays of the object's type are read; where it cannot be kept, in *local. */
const Known *array_type(State *state, PyObject *object, Known *local);
/* The current stream of the library, of the calling thread. -1: an exception is set. Most often it is the default one, which its
 * number says. */
int current_stream_handle(const Known *known, DLDevice device, void **stream);
static inline int current_stream(const Known *known, DLDevice device, void **stream) {
    const TorchCalls *torch = &known->torch;
    *stream = NULL;
    bool is_default = torch->stream_number && torch->stream_number((int8_t)device.device_id).number == 0;
    return is_default ? 0 : current_stream_handle(known, device, stream);
}
/* Reads the object as the argument of a parameter. -1: an exception is set. */
int call_read(Call *call, PyObject *object, int parameter);
/* Reads the arguments of all parameters. */
int call_read_all(Call *call, PyObject *const *objects);
void call_release(Call *call);
static inline void call_end(Call *call) {
    if (call->views | call->holds) call_release(call);
}

/* ---- order.c ---- */

/* Around a launch whose arrays, objects of which some may be NULL, are mixed: orders the streams of their libraries.
 * *found, a new reference or NULL, goes from one to the other. -1: an exception is set. */
int order_before(const Kernel *kernel, PyObject *const *objects, DLDevice device, void *stream, PyObject **found);
int order_behind(const Kernel *kernel, PyObject *found, DLDevice device, void *stream);

/* ---- numpy.c ---- */

/* Can arrays of this object's type be read as NumPy's C ABI has them? */
bool numpy_is_known(const State *state, PyObject *object);
/* As call_read, for arrays of such a type. 1: the array is none that is read so; a buffer of it may say more. */
int numpy_read(Call *call, PyObject *object, int parameter);

/* ---- torch.c ---- */

/* Learns from the first object of a type how its tensors are asked. */
void torch_learn(State *state, PyObject *object, const DLPackExchangeAPI *api, TorchCalls *calls);
/* As the exchange API reads it, without a reference to the C++ tensor, which costs more than all else. False: the
 * tensor is to be read by that, or is of a kind that is refused. */
typedef enum TorchRefusal { TORCH_REFUSE_GRAD = 1, TORCH_REFUSE_NEGATIVE = 2 } TorchRefusal; /* a set */
bool torch_read(const TorchCalls *calls, PyObject *object, TorchRefusal refusal, DLTensor *tensor);
/* Is it one of those that cannot be read, a sparse one for instance? */
bool torch_lacks_strides(const TorchCalls *calls, PyObject *object);
/* The same for tensors at the beginning of `objects` that are of the type and of kinds that are known; their number. */
int torch_read_known(const Known *known, PyObject *const *objects, int count, TorchRefusal refusal,
                     _Atomic(const TorchKind *) *last, DLTensor *tensors);
/* 1, 0, or -1: an exception is set. Negative: a view that negates what it shows, as x.conj().imag is one. */
int torch_requires_grad(const TorchCalls *calls, PyObject *object);
int torch_is_negative(const TorchCalls *calls, PyObject *object);
int torch_grad_enabled(State *state, const TorchCalls *calls);
/* Allocates a tensor of the type, shape and device that `tensor` has, which then is it. False: it has to be allocated
 * in another way. *made goes to torch_finish, or is released by calls->drop. */
bool torch_make(const TorchCalls *calls, DLTensor *tensor, void **made);
/* The same for a tensor without gaps of which all is known, and its address. */
typedef struct TorchMade {
    DLDevice device;
    int32_t type; /* PyTorch's number; -1: it makes none */
    int32_t rank;
    int64_t shape[TILE_MAX_RANK], strides[TILE_MAX_RANK];
} TorchMade;
int32_t torch_type(const TorchCalls *calls, DLDataType dtype);
bool torch_make_known(const TorchCalls *calls, const TorchMade *like, void **made, void **address);
PyObject *torch_finish(const TorchCalls *calls, void *made);
/* Is the tensor, of the type that `calls` is for, of a kind that is known, with extents where the layout has them? */
bool torch_is_known(const TorchCalls *calls, PyObject *object);
/* Does it have strides, in memory of its own? */
bool torch_is_strided(const TorchCalls *calls, void *handle);

/* The C++ tensor in a Python object. */
static inline const char *torch_implementation(const TorchCalls *calls, PyObject *object) {
    const char *implementation;
    memcpy(&implementation, (const char *)object + calls->place, sizeof implementation);
    return implementation;
}

/* ---- torch_layout.c ---- */

static inline uint64_t torch_word(const char *implementation, size_t at) {
    uint64_t word;
    memcpy(&word, implementation + at, sizeof word);
    return word;
}
/* The first word of its kind; the second one stands behind it. */
static inline uint64_t torch_kind_word(const TorchLayout *layout, const char *implementation) {
    return torch_word(implementation, layout->kind) & layout->kind_mask;
}
static inline unsigned torch_kind_slot(const uint64_t *words) {
    return (unsigned)((words[1] ^ words[2] * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}
_Static_assert(TORCH_KINDS == 1 << (64 - 58), "as many as slots");
/* The places; NULL: they are not known. */
TorchLayout *torch_layout(State *state, const TorchCalls *calls);
/* Notes of what kind a tensor is that the functions have read. */
void torch_learn_kind(const TorchCalls *calls, const char *implementation, const DLTensor *tensor);
PyObject *torch_show_layout(PyObject *module, PyObject *args);

/* ---- arguments.c ---- */

/* Assigns the arguments of a call to parameters: objects[i] is borrowed, NULL where none was given, which only `out`
 * parameters may be. *other: settings, a new dict, or NULL. */
int kernel_arguments(Kernel *kernel, PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **objects,
                     PyObject **other);
/* Sets the exception for a call with another number of arguments. Returns -1. */
int kernel_refuse_count(const Kernel *kernel, Py_ssize_t given);
/* Calls an object by a function of vectorcall's kind with a tuple and a dict, as tp_call has them. */
PyObject *call_by_tuple(Vectorcall function, PyObject *self, PyObject *args, PyObject *keywords);
/* The options of a launch, which fill `error` and `report`. */
TileLaunchOptions launch_options(Kernel *kernel, void *stream, TileError *error, TileReport **report);
/* The kernel that such arguments are for: itself, or the same for GPUs, borrowed. NULL: an exception is set. */
Kernel *kernel_make_for_gpu(Kernel *kernel, int device);
static inline Kernel *kernel_for(Kernel *kernel, const Call *call) {
    if (call->device.device_type != kDLCUDA || kernel->is_gpu) return kernel;
    PyObject *found = atomic_load_explicit(&kernel->on_gpu, memory_order_acquire);
    return found ? (Kernel *)found : kernel_make_for_gpu(kernel, call->device.device_id);
}

/* ---- results.c ---- */

/* An `out` argument that a call allocates. */
typedef struct Result {
    PyObject *object;                  /* or, before result_finish, .. */
    DLManagedTensorVersioned *managed; /* .. this, or .. */
    void *torch;                       /* .. this */
    const DLPackExchangeAPI *api;
    const TorchCalls *calls;
} Result;

/* Allocates the argument of a parameter from the others, as the library of the first tensor does. */
int result_make(Call *call, int parameter, Result *result);
/* The array, once the call is through with it; a new reference. */
PyObject *result_finish(Result *result);
/* Releases it instead. */
void result_drop(Result *result);

/* ---- again.c ---- */

/* Launches all arguments if they are tensors of PyTorch like those of a launch that was noted, all of whose checks then
 * hold. 1: it has run; 0: it has to be launched in another way, and nothing has run; -1: an exception is set. */
int again_launch(Kernel *kernel, PyObject *const *objects);
/* The same for a call with those that are not `out`; the others are made, in order. */
int again_make(Kernel *kernel, PyObject *const *given, Result *made);
/* Notes a launch of such tensors that the kernel `runs` remembers and keeps the GIL for. objects: NULL for results that
 * were made. */
void again_note(Kernel *kernel, Kernel *runs, PyObject *const *objects, const Call *call, int64_t elements);
void again_drop(Kernel *kernel);
int again_count(const Kernel *kernel);

/* ---- errors.c ---- */

/* Sets the exception for a failed call of the API; takes the report. Returns -1. */
int raise_status(Kernel *kernel, tile_status status, const TileError *error, TileReport *report);
/* An ArgumentError: "kernel: parameter: " and the text. Returns -1. */
int raise_argument(Kernel *kernel, int parameter, TileErrorCode code, const char *format, ...);
void print_from_kernel(void *host, const char *line, size_t length);
void print_log(void *host, const char *line, size_t length);
void observe_before(void *host, const TileLaunchEvent *event);
void observe_after(void *host, const TileLaunchEvent *event);

/* ---- kernel.c, bound.c, library.c, dispatch.c: types ---- */

extern PyType_Spec kernel_spec, bound_spec, library_spec, dispatch_spec;

PyObject *kernel_create(State *state, Library *library, TileKernel *kernel, PyObject *module);
/* kernel.bind(..) */
PyObject *bound_create(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *bound_join(PyObject *module, PyObject *parts);
PyObject *dispatch_create(PyObject *module, PyObject *args);
/* Functions of the module. */
PyObject *library_compiler(PyObject *module, PyObject *args);
PyObject *library_compile(PyObject *module, PyObject *args);
PyObject *library_emit(PyObject *module, PyObject *args);
PyObject *library_targets(PyObject *module, PyObject *none);
PyObject *library_standard(PyObject *module, PyObject *none);
PyObject *xla_handlers(PyObject *module, PyObject *none);

#endif
