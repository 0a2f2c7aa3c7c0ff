/* The part of XLA's FFI that the handler in xla.c needs: an own declaration of its C API, version 0.3
 * (xla/ffi/api/c_api.h, which JAX installs), with the same layouts. Structs begin with their size, by which either side
 * sees what the other knows. */
#ifndef TILE_PYTHON_XLA_H
#define TILE_PYTHON_XLA_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_API_MAJOR = 0, XLA_API_MINOR = 1 }; /* what is used here has been there since 0.1 */

typedef struct XlaExtension {
    size_t struct_size;
    int type; /* 1: metadata */
    struct XlaExtension *next;
} XlaExtension;

typedef struct XlaVersion {
    size_t struct_size;
    XlaExtension *extensions;
    int major, minor;
} XlaVersion;

typedef struct XlaMetadata {
    size_t struct_size;
    XlaVersion version;
    uint32_t traits;
    int64_t state_type;
} XlaMetadata;

typedef struct XlaMetadataExtension {
    XlaExtension base;
    XlaMetadata *metadata;
} XlaMetadataExtension;

typedef struct XlaErrorCreate {
    size_t struct_size;
    XlaExtension *extensions;
    const char *message;
    int code;
} XlaErrorCreate;

typedef struct XlaStreamGet {
    size_t struct_size;
    XlaExtension *extensions;
    void *context;
    void *stream; /* out */
} XlaStreamGet;

typedef struct XlaDeviceGet {
    size_t struct_size;
    XlaExtension *extensions;
    void *context;
    int32_t ordinal; /* out */
} XlaDeviceGet;

typedef struct XlaApi {
    size_t struct_size;
    XlaExtension *extensions;
    XlaVersion version;
    const void *internal;
    void *(*error_create)(XlaErrorCreate *args);
    void (*error_message)(void *);
    void (*error_destroy)(void *);
    void *(*handler_register)(void *);
    void *(*stream_get)(XlaStreamGet *args);
    void *(*type_register)(void *);
    void *(*context_get)(void *);
    void *(*state_set)(void *);
    void *(*state_get)(void *);
    void *(*memory_allocate)(void *);
    void *(*memory_free)(void *);
    void *(*pool_schedule)(void *);
    void *(*pool_size)(void *);
    void *(*future_create)(void *);
    void *(*future_set)(void *);
    void *(*future_fail)(void *);
    void *(*run_id)(void *);
    void *(*device_get)(XlaDeviceGet *args);
} XlaApi;

typedef struct XlaBuffer {
    size_t struct_size;
    XlaExtension *extensions;
    int type;
    void *data;
    int64_t rank;
    int64_t *extents;
} XlaBuffer;

typedef struct XlaList { /* of arguments, or results */
    size_t struct_size;
    XlaExtension *extensions;
    int64_t size;
    int *types; /* 1: a buffer */
    void **items;
} XlaList;

typedef struct XlaText {
    const char *text;
    size_t length;
} XlaText;

typedef struct XlaScalar {
    int type;
    void *value;
} XlaScalar;

typedef struct XlaArray {
    int type;
    size_t size;
    void *data;
} XlaArray;

typedef struct XlaAttributes {
    size_t struct_size;
    XlaExtension *extensions;
    int64_t size;
    int *types; /* 1: an array, 3: a scalar */
    XlaText **names;
    void **items;
} XlaAttributes;

typedef struct XlaCall {
    size_t struct_size;
    XlaExtension *extensions;
    const XlaApi *api;
    void *context;
    int stage; /* 3: execute */
    XlaList arguments, results;
    XlaAttributes attributes;
} XlaCall;

#endif
