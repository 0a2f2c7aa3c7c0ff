/* XLA's calls of kernels: one handler, which finds the kernel by its address among the attributes of the call, and
 * scalars in an array of words. It takes no lock of Python, so XLA may call it on any thread. python/tile/jax.py keeps
 * the kernels. */
#include "xla.h"

#include <string.h>

#include "extension.h"

enum { EXECUTE = 3, METADATA = 1, ARRAY = 1, SCALAR = 3, S64 = 5, INVALID = 3, INTERNAL = 13 };

static const struct {
    int xla;
    DLDataType type;
} types[] = {{1, {kDLBool, 8, 1}},     {2, {kDLInt, 8, 1}},          {3, {kDLInt, 16, 1}},
             {4, {kDLInt, 32, 1}},     {5, {kDLInt, 64, 1}},         {6, {kDLUInt, 8, 1}},
             {7, {kDLUInt, 16, 1}},    {8, {kDLUInt, 32, 1}},        {9, {kDLUInt, 64, 1}},
             {10, {kDLFloat, 16, 1}},  {11, {kDLFloat, 32, 1}},      {12, {kDLFloat, 64, 1}},
             {16, {kDLBfloat, 16, 1}}, {19, {kDLFloat8_e5m2, 8, 1}}, {20, {kDLFloat8_e4m3fn, 8, 1}}};

static void *fail(const XlaCall *call, int code, const char *message) {
    XlaErrorCreate error = {.struct_size = sizeof error, .message = message, .code = code};
    return call->api->error_create(&error);
}

static const void *find_attribute(const XlaCall *call, const char *name, int type) {
    const XlaAttributes *attributes = &call->attributes;
    for (int64_t i = 0; i < attributes->size; i++)
        if (attributes->types[i] == type && attributes->names[i]->length == strlen(name) &&
            memcmp(attributes->names[i]->text, name, strlen(name)) == 0)
            return attributes->items[i];
    return NULL;
}

static int64_t find_number(const XlaCall *call, const char *name) {
    const XlaScalar *scalar = find_attribute(call, name, SCALAR);
    int64_t number = 0;
    if (scalar && scalar->type == S64) memcpy(&number, scalar->value, sizeof number);
    return number;
}

static bool read_buffer(const XlaBuffer *buffer, DLDevice device, DLTensor *tensor, TileArg *arg) {
    *tensor =
        (DLTensor){.data = buffer->data, .device = device, .ndim = (int32_t)buffer->rank, .shape = buffer->extents};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].xla == buffer->type) tensor->dtype = types[i].type;
    *arg = TILE_TENSOR(tensor);
    return tensor->dtype.bits != 0;
}

/* Words are the bits of a double where the parameter is a float. */
static TileArg read_word(const TileParameterInfo *info, uint64_t word) {
    double number;
    memcpy(&number, &word, sizeof number);
    if (info->dtype.code == kDLBool) return TILE_TRUTH(word != 0);
    if (info->dtype.code == kDLInt) return TILE_INTEGER((int64_t)word);
    if (info->dtype.code == kDLUInt) return TILE_UNSIGNED(word);
    return TILE_NUMBER(number);
}

typedef struct Arguments {
    TileArg args[MOST_PARAMETERS];
    DLTensor tensors[MOST_PARAMETERS];
    size_t count;
} Arguments;

/* `in` parameters are the call's arguments, `out` and `inout` ones its results, which XLA has made the same memory. */
static const char *read_arguments(const XlaCall *call, const TileKernel *kernel, DLDevice device, Arguments *to) {
    const XlaArray *words = find_attribute(call, "scalars", ARRAY);
    int64_t next_argument = 0, next_result = 0;
    size_t next_word = 0;
    to->count = tile_kernel_parameter_count(kernel);
    for (size_t i = 0; i < to->count; i++) {
        TileParameterInfo info;
        tile_kernel_parameter(kernel, i, &info);
        if (info.kind == TILE_PARAMETER_SCALAR) {
            if (!words || words->type != S64 || next_word >= words->size) return "a scalar is missing";
            to->args[i] = read_word(&info, ((const uint64_t *)words->data)[next_word++]);
            continue;
        }
        bool reads = info.access != TILE_PARAMETER_OUT, writes = info.access != TILE_PARAMETER_IN;
        if ((reads && next_argument >= call->arguments.size) || (writes && next_result >= call->results.size))
            return "an array is missing";
        const XlaBuffer *buffer = reads ? call->arguments.items[next_argument++] : NULL;
        if (writes) buffer = call->results.items[next_result++];
        if (!read_buffer(buffer, device, &to->tensors[i], &to->args[i]))
            return "an array has a type that no kernel takes";
    }
    return NULL;
}

static void *run(const XlaCall *call, TileKernel *kernel, DLDevice device, void *stream) {
    Arguments arguments;
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .stream = stream, .error = &error};
    if (!kernel) return fail(call, INTERNAL, "tile: the call has no kernel for this device");
    const char *wrong = read_arguments(call, kernel, device, &arguments);
    if (wrong) return fail(call, INVALID, wrong);
    tile_status status = tile_launch(kernel, arguments.args, arguments.count, &options);
    return status == TILE_OK ? NULL : fail(call, status == TILE_INVALID_ARGUMENT ? INVALID : INTERNAL, error.message);
}

/* XLA asks once which version the handler is for. True if that was it. */
static bool answer_metadata(XlaCall *call) {
    if (!call->extensions || call->extensions->type != METADATA) return false;
    XlaMetadata *metadata = ((XlaMetadataExtension *)call->extensions)->metadata;
    metadata->version.major = XLA_API_MAJOR;
    metadata->version.minor = XLA_API_MINOR;
    metadata->traits = 0;
    return true;
}

static void *handle_cpu(XlaCall *call) {
    if (answer_metadata(call) || call->stage != EXECUTE) return NULL;
    return run(call, (TileKernel *)(uintptr_t)find_number(call, "cpu"), (DLDevice){kDLCPU, 0}, NULL);
}

static void *handle_cuda(XlaCall *call) {
    if (answer_metadata(call) || call->stage != EXECUTE) return NULL;
    XlaStreamGet stream = {.struct_size = sizeof stream, .context = call->context};
    XlaDeviceGet device = {.struct_size = sizeof device, .context = call->context};
    void *error = call->api->stream_get(&stream);
    if (!error && call->api->struct_size >= offsetof(XlaApi, device_get) + sizeof(void *))
        error = call->api->device_get(&device);
    if (error) return error;
    TileKernel *kernel = (TileKernel *)(uintptr_t)find_number(call, "cuda");
    return run(call, kernel, (DLDevice){kDLCUDA, device.ordinal}, stream.stream);
}

/* xla_handlers() -> (capsule for CPUs, capsule for CUDA) */
PyObject *xla_handlers(PyObject *module, PyObject *none) {
    void *(*cpu)(XlaCall *) = handle_cpu, *(*cuda)(XlaCall *) = handle_cuda;
    void *pointers[2];
    memcpy(&pointers[0], &cpu, sizeof cpu);
    memcpy(&pointers[1], &cuda, sizeof cuda);
    return Py_BuildValue("(NN)", PyCapsule_New(pointers[0], "xla._CUSTOM_CALL_TARGET", NULL),
                         PyCapsule_New(pointers[1], "xla._CUSTOM_CALL_TARGET", NULL));
}
