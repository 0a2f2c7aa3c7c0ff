#include "launch/argument.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "launch/guard.h"
#include "launch/host.h"
#include "launch/packed.h"

tile_status tile_error_set(TileError *error, tile_status status, const char *format, ...) {
    if (!error) return status;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    if (length < 0) error->message[0] = 0;
    if (length >= (int)sizeof error->message) memcpy(error->message + sizeof error->message - 4, "...", 4);
    error->status = status;
    tile_error_about(error, TILE_OK, -1, TILE_ERROR_OTHER);
    memset(error->reserved, 0, sizeof error->reserved);
    return status;
}

void tile_error_about(TileError *error, tile_status before, int argument, TileErrorCode code) {
    if (!error || before != TILE_OK) return;
    error->argument = argument;
    error->code = code;
}

tile_status tile_error_add(TileError *error, tile_status before, tile_status status, const char *format, ...) {
    if (!error) return status;
    if (before == TILE_OK) tile_error_set(error, status, "%s", "");
    size_t size = sizeof error->message, length = before == TILE_OK ? 0 : strlen(error->message);
    if (length + 2 < size && length) error->message[length++] = '\n';
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(error->message + length, size - length, format, arguments);
    va_end(arguments);
    if (added < 0) error->message[length] = 0;
    if (added >= (int)(size - length)) memcpy(error->message + size - 4, "...", 4);
    error->status = status;
    return status;
}

typedef struct Reader {
    const TileImageSignature *signature;
    const TileImageParameter *parameter;
    TileError *error;
    tile_status *found; /* status of the arguments before this one */
    bool partial;       /* nothing runs: only shapes and types are inferred */
    bool imagines;      /* tensors may have no memory */
} Reader;

/* Adds an error: "kernel: parameter: " and the message. */
static tile_status TILE_PRINTF(3, 4) refuse(const Reader *reader, TileErrorCode code, const char *format, ...) {
    char text[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tile_status before = *reader->found;
    *reader->found = tile_error_add(reader->error, before, TILE_INVALID_ARGUMENT, "%s: %s: %s", reader->signature->name,
                                    reader->parameter->name, text);
    tile_error_about(reader->error, before, (int)(reader->parameter - reader->signature->parameters), code);
    return *reader->found;
}

/* ---- scalars ---- */

/* type: what the parameter's type stands for, where a tensor has bound it; else TILE_HOST_TYPE_COUNT. */
static tile_status refuse_scalar(const Reader *reader, const TileArg *argument, TileHostType type) {
    static const char *const given[] = {"nothing", "a tensor", "an integer", "an integer", "a floating-point number",
                                        "a bool"};
    const char *text = reader->parameter->type_text;
    if (reader->parameter->generic < 0 || type >= TILE_HOST_TYPE_COUNT)
        return refuse(reader, TILE_ERROR_KIND, "%s is given, expected %s", given[argument->kind], text);
    return refuse(reader, TILE_ERROR_KIND, "%s is given, expected %s, which is %s here", given[argument->kind], text, tile_host_type_name(type));
}

static tile_status read_integer(const Reader *reader, const TileArg *argument, TileHostType type, TileView *view) {
    bool is_signed = tile_host_type_class(type) == TILE_HOST_CLASS_SIGNED;
    unsigned bits = tile_host_type_bytes(type) * 8;
    uint64_t greatest = UINT64_MAX >> (64 - bits + is_signed);
    bool negative = argument->kind == TILE_ARG_INTEGER && argument->value.integer < 0;
    uint64_t magnitude = argument->value.unsigned_integer;
    if (negative && is_signed && argument->value.integer >= -(int64_t)greatest - 1) {
        view->scalar = magnitude;
        return TILE_OK;
    }
    if (negative)
        return refuse(reader, TILE_ERROR_VALUE, "%" PRId64 " does not fit %s", argument->value.integer,
                      tile_host_type_name(type));
    if (magnitude > greatest)
        return refuse(reader, TILE_ERROR_VALUE, "%" PRIu64 " does not fit %s", magnitude, tile_host_type_name(type));
    view->scalar = magnitude;
    return TILE_OK;
}

static tile_status read_scalar(const Reader *reader, const TileArg *argument, TileHostType type, TileView *view) {
    view->type = (uint8_t)type;
    bool integer = argument->kind == TILE_ARG_INTEGER || argument->kind == TILE_ARG_UNSIGNED;
    if (type == TILE_HOST_BOOL) {
        if (argument->kind != TILE_ARG_BOOL) return refuse_scalar(reader, argument, type);
        view->scalar = argument->value.integer != 0;
        return TILE_OK;
    }
    if (tile_host_type_class(type) != TILE_HOST_CLASS_FLOAT)
        return integer ? read_integer(reader, argument, type, view) : refuse_scalar(reader, argument, type);
    double number = argument->value.number;
    if (argument->kind == TILE_ARG_INTEGER)
        number = (double)argument->value.integer;
    else if (argument->kind == TILE_ARG_UNSIGNED)
        number = (double)argument->value.unsigned_integer;
    else if (argument->kind != TILE_ARG_NUMBER)
        return refuse_scalar(reader, argument, type);
    number = tile_host_round(type, number);
    memcpy(&view->scalar, &number, sizeof number);
    return TILE_OK;
}

uint64_t tile_scalar_slot(TileHostType type, uint64_t value) {
    return tile_host_type_class(type) == TILE_HOST_CLASS_FLOAT ? tile_host_bits(type, value) : value;
}

/* ---- tensors ---- */

static const char *device_name(DLDeviceType type) {
    switch ((int)type) {
    case kDLCUDA: return "cuda";
    case kDLOpenCL: return "opencl";
    case kDLVulkan: return "vulkan";
    case kDLMetal: return "metal";
    case kDLROCM: return "rocm";
    case kDLOneAPI: return "oneapi";
    case kDLCUDAHost: return "cuda's host memory";
    case kDLROCMHost: return "rocm's host memory";
    default: return NULL;
    }
}

static const char *expected_device(const Reader *reader) { return reader->signature->gpu ? "cuda" : "cpu"; }

/* Memory that host and device can access serves both. */
static tile_status check_device(const Reader *reader, const DLTensor *tensor) {
    bool gpu = reader->signature->gpu, partial = reader->partial; /* a tensor to be inferred may be elsewhere */
    switch ((int)tensor->device.device_type) {
    case kDLCUDAManaged: return TILE_OK;
    case kDLCPU:
        if (!gpu || partial) return TILE_OK;
        return refuse(reader, TILE_ERROR_DEVICE, "device is cpu, expected cuda");
    case kDLCUDAHost:
    case kDLROCMHost:
        if (!gpu || partial) return TILE_OK;
        break;
    case kDLCUDA:
        if (gpu || partial) return TILE_OK;
        break;
    default: break;
    }
    const char *name = device_name(tensor->device.device_type);
    if (!name)
        return refuse(reader, TILE_ERROR_DEVICE, "device is DLPack type %d, expected %s",
                      (int)tensor->device.device_type, expected_device(reader));
    return refuse(reader, TILE_ERROR_DEVICE, "device is %s:%d, expected %s", name, (int)tensor->device.device_id,
                  expected_device(reader));
}

/* Strides in elements of a row-major tensor without gaps. False where they leave 63 bits, which only a tensor
 * without elements may. */
static bool make_strides(const DLTensor *tensor, int64_t *strides) {
    int64_t next = 1;
    bool overflow = false;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        strides[i] = next;
        overflow |= __builtin_mul_overflow(next, tensor->shape[i] > 0 ? tensor->shape[i] : 1, &next);
    }
    return !overflow;
}

/* Byte strides and the range of addresses, which must stay in 63 bits. */
static tile_status read_layout(const Reader *reader, const DLTensor *tensor, unsigned bytes, TileView *view) {
    int64_t made[TILE_MAX_RANK];
    const int64_t *strides = tensor->strides ? tensor->strides : made;
    bool overflow = !tensor->strides && !make_strides(tensor, made), empty = false;
    int64_t below = 0, above = (int64_t)bytes, base = (int64_t)(uintptr_t)view->data;
    for (int i = 0; i < view->rank; i++) {
        int64_t extent = tensor->shape[i], stride, reach;
        if ((uint64_t)extent > TILE_MAX_EXTENT)
            return refuse(reader, TILE_ERROR_EXTENT, "dimension %d is %" PRId64 ", expected 0 to %" PRId64, i, extent,
                          (int64_t)TILE_MAX_EXTENT);
        bool wide = __builtin_mul_overflow(strides[i], (int64_t)bytes, &stride);
        wide |= __builtin_mul_overflow(stride, extent - (extent > 0), &reach);
        int64_t down = reach & (reach >> 63);
        wide |= __builtin_add_overflow(below, down, &below);
        wide |= __builtin_add_overflow(above, reach - down, &above);
        view->extent[i] = extent;
        view->stride[i] = stride;
        overflow |= wide && extent > 1; /* the stride of a dimension with fewer than two elements is arbitrary */
        empty |= extent == 0;
    }
    view->low = view->high = (uint64_t)base;
    if (empty) return TILE_OK;
    if (!view->data) return refuse(reader, TILE_ERROR_ADDRESS, "data is NULL, expected the address of its elements");
    overflow |= base + below < 0 || __builtin_add_overflow(base, above, &above);
    if (overflow) return refuse(reader, TILE_ERROR_ADDRESS, "the tensor reaches past the address space");
    view->low = (uint64_t)(base + below);
    view->high = (uint64_t)above;
    return TILE_OK;
}

/* The view of a non-empty tensor whose extents and strides are so small that no sum or product of them overflows, as
 * nearly all are. False for others. With a constant rank, this is straight-line code. */
static inline __attribute__((always_inline)) bool read_usual_layout(const int64_t *shape, const int64_t *strides,
                                                                    unsigned rank, unsigned log_bytes, TileView *view) {
    int64_t low = (int64_t)(uintptr_t)view->data, high = low + (INT64_C(1) << log_bytes);
    uint64_t large = (uint64_t)low >> 62 << 32, word = 0, offer = 0;
    for (unsigned i = 0; i < rank; i++) {
        int64_t extent = shape[i], limit = (int64_t)((uint64_t)extent - 1), elements = strides[i];
        large |= (uint64_t)limit | (uint64_t)(elements ^ elements >> 63); /* empty: all bits */
        int64_t stride = (int64_t)((uint64_t)elements << log_bytes);
        int64_t reach = (int64_t)((uint64_t)stride * (uint64_t)limit), down = reach & reach >> 63;
        low = (int64_t)((uint64_t)low + (uint64_t)down);
        high = (int64_t)((uint64_t)high + (uint64_t)reach - (uint64_t)down);
        view->extent[i] = extent;
        view->stride[i] = stride;
        tile_guard_add(&word, &offer, rank, i, extent, elements);
    }
    view->low = (uint64_t)low;
    view->high = (uint64_t)high;
    tile_guard_finish(view, rank, UINT64_C(1) << log_bytes, word, offer);
    return !(large >> 28) && low >= 0;
}

static bool read_usual_rank(const int64_t *shape, const int64_t *strides, unsigned rank, unsigned log_bytes,
                            TileView *view) {
    switch (rank) {
    case 1: return read_usual_layout(shape, strides, 1, log_bytes, view);
    case 2: return read_usual_layout(shape, strides, 2, log_bytes, view);
    case 3: return read_usual_layout(shape, strides, 3, log_bytes, view);
    case 4: return read_usual_layout(shape, strides, 4, log_bytes, view);
    default: return read_usual_layout(shape, strides, rank, log_bytes, view);
    }
}

/* read_tensor for such tensors. False, without a message, for others and for invalid ones. */
static inline bool read_usual(const Reader *reader, const TileArg *argument, TileHostType type, TileView *view) {
    static const DLDataType dtypes[] = {
#define USUAL_DTYPE(id, name, code, bits, class) {code, bits, 1},
        TILE_HOST_TYPE_LIST(USUAL_DTYPE)
#undef USUAL_DTYPE
    };
    const DLTensor *tensor = argument->value.tensor;
    int64_t made[TILE_MAX_RANK];
    if (argument->kind != TILE_ARG_TENSOR || argument->flags || !tensor) return false;
    if (tensor->ndim != view->rank || memcmp(&tensor->dtype, &dtypes[type], sizeof *dtypes) != 0 ||
        tensor->device.device_type != (reader->signature->gpu ? kDLCUDA : kDLCPU) || !tensor->data ||
        (view->rank && !tensor->shape) || tensor->byte_offset >> TILE_ADDRESS_BITS)
        return false;
    view->device = tensor->device.device_id;
    view->data = (char *)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
    if ((uintptr_t)view->data & (tile_host_type_bytes(type) - 1)) return false;
    const int64_t *strides = tensor->strides;
    if (!strides) {
        if (!make_strides(tensor, made)) return false;
        strides = made;
    }
    return read_usual_rank(tensor->shape, strides, view->rank, tile_host_type_log_bytes(type), view);
}

static tile_status check_type(const Reader *reader, const DLTensor *tensor, TileHostType expected) {
    TileHostType type = tile_host_type_find(tensor->dtype);
    if (type == expected && type < TILE_HOST_TYPE_COUNT) return TILE_OK;
    const char *packed = tile_packed_words(reader->parameter);
    const char *wanted = reader->parameter->generic >= 0 ? "one of the language"
                         : packed                        ? packed
                                                         : tile_host_type_name(expected);
    const char *name = type < TILE_HOST_TYPE_COUNT ? tile_host_type_name(type) : tile_packed_name(tensor->dtype);
    if (name) return refuse(reader, TILE_ERROR_TYPE, "type is %s, expected %s", name, wanted);
    return refuse(reader, TILE_ERROR_TYPE, "type is DLPack code %d with %d bits and %d lanes, expected %s",
                  tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes, wanted);
}

/* A place of its own for each parameter, far from the others, and in its middle for negative strides. */
static void imagine(const Reader *reader, TileView *view) {
    _Static_assert(TILE_MAX_PARAMETERS <= 64, "places have 2**56 bytes and end below 2**63");
    uint64_t index = (uint64_t)(reader->parameter - reader->signature->parameters);
    view->data = (char *)(uintptr_t)((index << 56) + (UINT64_C(1) << 55));
    view->imagined = true;
}

static tile_status read_tensor(const Reader *reader, const TileArg *argument, TileHostType type, TileView *view) {
    const DLTensor *tensor = argument->value.tensor;
    const TileImageParameter *parameter = reader->parameter;
    if (tensor->ndim != parameter->rank)
        return refuse(reader, TILE_ERROR_RANK, "rank is %d, expected %d", (int)tensor->ndim, parameter->rank);
    if (tensor->ndim && !tensor->shape)
        return refuse(reader, TILE_ERROR_ADDRESS, "shape is NULL, expected the extents");
    if (parameter->generic < 0) TILE_TRY(check_type(reader, tensor, type)); /* else decide_generic has checked it */
    TILE_TRY(check_device(reader, tensor));
    if (tensor->byte_offset >> TILE_ADDRESS_BITS)
        return refuse(reader, TILE_ERROR_ADDRESS, "byte_offset is %" PRIu64 ", which leaves the address space",
                      tensor->byte_offset);
    if (argument->flags & ~(uint32_t)TILE_ARG_READ_ONLY)
        return refuse(reader, TILE_ERROR_KIND, "the argument has flags that are none");
    view->type = (uint8_t)type;
    view->rank = parameter->rank;
    view->device = tensor->device.device_id;
    view->data = (char *)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
    unsigned bytes = tile_host_type_bytes(type);
    if (!tensor->data && reader->imagines) imagine(reader, view);
    TILE_TRY(read_layout(reader, tensor, bytes, view));
    if (view->low == view->high) return TILE_OK;
    if ((uintptr_t)view->data & (bytes - 1)) /* sizes are powers of two */
        return refuse(reader, TILE_ERROR_ADDRESS,
                      "address is a multiple of %u bytes, expected one of %u, the size of an element",
                      (unsigned)((uintptr_t)view->data & -(uintptr_t)view->data), bytes);
    if (parameter->access != TILE_PARAMETER_IN && (argument->flags & TILE_ARG_READ_ONLY))
        return refuse(reader, TILE_ERROR_READ_ONLY, "data is read-only, but the kernel writes it");
    return TILE_OK;
}

static tile_status read_any_tensor(const Reader *reader, const TileArg *argument, TileHostType type, TileView *view) {
    TilePackedTensor packed;
    TileArg bytes = *argument;
    bytes.flags &= ~(uint32_t)TILE_ARG_PADDED;
    if (tile_packed_read(reader->parameter, argument->value.tensor, &packed)) {
        if (argument->flags & TILE_ARG_PADDED)
            packed.obstacle = "have a byte each, expected two in each byte along the last axis";
        if (packed.obstacle)
            return refuse(reader, TILE_ERROR_TYPE, "its elements of %s %s", reader->parameter->type_text, packed.obstacle);
        bytes.value.tensor = &packed.bytes;
    }
    TILE_TRY(read_tensor(reader, &bytes, type, view));
    tile_guard_read(view);
    return TILE_OK;
}

/* ---- all arguments ---- */

static tile_status decide_generic(const Reader *reader, const DLTensor *tensor, TileImageRequest *request,
                                  const TileImageParameter **decided_by) {
    unsigned index = (unsigned)reader->parameter->generic;
    const TileImageGeneric *generic = &reader->signature->generics[index];
    TileHostType type = tile_host_type_find(tensor->dtype);
    if (type >= TILE_HOST_TYPE_COUNT) return check_type(reader, tensor, TILE_HOST_TYPE_COUNT);
    if (!(generic->types >> type & 1))
        return refuse(reader, TILE_ERROR_TYPE, "type is %s, expected %s: %s", tile_host_type_name(type), generic->name,
                      generic->class_text);
    if (!decided_by[index]) {
        decided_by[index] = reader->parameter;
        request->generics[index] = (uint8_t)type;
    } else if (request->generics[index] != type) {
        return refuse(reader, TILE_ERROR_TYPE, "type is %s, but %s has %s = %s", tile_host_type_name(type),
                      decided_by[index]->name, generic->name, tile_host_type_name(request->generics[index]));
    }
    return TILE_OK;
}

static tile_status decide_generics(Reader *reader, const TileArg *arguments, bool partial, TileImageRequest *request) {
    const TileImageSignature *signature = reader->signature;
    const TileImageParameter *decided_by[TILE_MAX_GENERICS] = {NULL};
    for (uint32_t i = 0; i < signature->generic_count; i++) request->generics[i] = TILE_HOST_TYPE_COUNT;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        reader->parameter = &signature->parameters[i];
        if (reader->parameter->generic < 0 || arguments[i].kind != TILE_ARG_TENSOR || !arguments[i].value.tensor)
            continue;
        decide_generic(reader, arguments[i].value.tensor, request, decided_by);
    }
    TILE_TRY(*reader->found);
    for (uint32_t i = 0; i < signature->generic_count && !partial; i++)
        if (!decided_by[i])
            return tile_error_set(reader->error, TILE_INVALID_ARGUMENT,
                                  "%s: no argument decides the type parameter %s; set it when compiling",
                                  signature->name, signature->generics[i].name);
    return TILE_OK;
}

static tile_status read_argument(const Reader *reader, const TileArg *argument, bool partial,
                                 const TileImageRequest *request, TileView *view) {
    const TileImageParameter *parameter = reader->parameter;
    view->tensor = parameter->kind == TILE_PARAMETER_TENSOR;
    view->known = argument->kind != TILE_ARG_NONE;
    view->rank = parameter->rank;
    view->scalar = view->offer = 0;
    view->word = view->tensor ? 0 : TILE_GUARD_VALUE;
    view->imagined = false;
    view->type = parameter->generic >= 0 ? request->generics[parameter->generic] : parameter->type;
    if (view->tensor && view->type < TILE_HOST_TYPE_COUNT && read_usual(reader, argument, view->type, view))
        return TILE_OK;
    if (!view->known && partial) return TILE_OK;
    if ((unsigned)argument->kind > TILE_ARG_BOOL)
        return refuse(reader, TILE_ERROR_KIND, "the argument's kind is unknown");
    if (!view->tensor) {
        if (view->type >= TILE_HOST_TYPE_COUNT) return partial ? TILE_OK : refuse_scalar(reader, argument, TILE_HOST_TYPE_COUNT);
        return read_scalar(reader, argument, view->type, view);
    }
    if (argument->kind != TILE_ARG_TENSOR || !argument->value.tensor)
        return refuse(reader, TILE_ERROR_KIND, "%s is given, expected a tensor of rank %d",
                      argument->kind == TILE_ARG_TENSOR || !view->known ? "nothing" : "a scalar", parameter->rank);
    return read_any_tensor(reader, argument, view->type, view);
}

/* A launch runs on one GPU. */
static tile_status check_one_device(Reader *reader, const TileView *views) {
    int device = -1;
    for (uint32_t i = 0; i < reader->signature->parameter_count; i++) {
        if (!views[i].tensor || !views[i].known) continue;
        reader->parameter = &reader->signature->parameters[i];
        if (device >= 0 && views[i].device != device)
            return refuse(reader, TILE_ERROR_DEVICE, "device is cuda:%d, but an earlier argument lies on cuda:%d",
                          views[i].device, device);
        device = views[i].device;
    }
    return TILE_OK;
}

static tile_status refuse_count(const TileImageSignature *signature, size_t count, TileError *error) {
    tile_error_set(error, TILE_INVALID_ARGUMENT, "%s: %zu arguments given, expected %u: %s", signature->name, count,
                   signature->parameter_count, signature->text);
    tile_error_about(error, TILE_OK, -1, TILE_ERROR_COUNT);
    return TILE_INVALID_ARGUMENT;
}

tile_status tile_arguments_read(const TileImageSignature *signature, const TileArg *arguments, size_t count,
                                unsigned mode, TileView *views, TileImageRequest *request, TileError *error) {
    tile_status found = TILE_OK;
    bool partial = mode & TILE_READ_PARTIAL;
    Reader reader = {signature, NULL, error, &found, partial, mode & TILE_READ_SHAPES};
    request->waits = false;
    if (signature->refused) return tile_error_set(error, TILE_INVALID_ARGUMENT, "%s", signature->refused);
    if (count != signature->parameter_count || (count && !arguments))
        return refuse_count(signature, arguments ? count : 0, error);
    TILE_TRY(decide_generics(&reader, arguments, partial, request));
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        reader.parameter = &signature->parameters[i];
        read_argument(&reader, &arguments[i], partial, request, &views[i]);
    }
    TILE_TRY(found);
    return signature->gpu && !partial ? check_one_device(&reader, views) : TILE_OK;
}

int tile_views_device(const TileImageSignature *signature, const TileView *views) {
    for (uint32_t i = 0; signature->gpu && i < signature->parameter_count; i++)
        if (views[i].tensor) return views[i].device;
    return 0;
}
