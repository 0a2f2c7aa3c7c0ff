/* Result of every fallible call of the public API and between the compiler's folders. A status is the kind of an error;
 * the message is in the context or diagnostic list that the call was given. The kinds are never mixed: a user's error,
 * the environment, or a bug of ours. */
#ifndef TILE_STATUS_H
#define TILE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TILE_API __attribute__((visibility("default")))
#define TILE_MUST_CHECK __attribute__((warn_unused_result))
#define TILE_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define TILE_API
#define TILE_MUST_CHECK
#define TILE_PRINTF(format_index, first)
#endif

/* X(name, exit status of a command, text) */
#define TILE_STATUS_LIST(X)                                                                                            \
    X(OK, 0, "success")                                                                                                \
    X(INVALID_ARGUMENT, 1, "invalid argument")                                                                         \
    X(INVALID_SOURCE, 1, "the source has errors")                                                                      \
    X(UNSUPPORTED, 1, "not supported")                                                                                 \
    X(NOT_FOUND, 2, "not found")                                                                                       \
    X(IO, 2, "input or output failed")                                                                                 \
    X(OUT_OF_MEMORY, 2, "out of memory")                                                                               \
    X(UNAVAILABLE, 2, "not available on this machine")                                                                 \
    X(DRIVER, 2, "the device driver reported an error")                                                                \
    X(BACKEND, 2, "the code generator failed")                                                                         \
    X(INTERNAL, 3, "internal error")

typedef enum tile_status {
#define TILE_STATUS_ENUM(name, exit_status, text) TILE_##name,
    TILE_STATUS_LIST(TILE_STATUS_ENUM)
#undef TILE_STATUS_ENUM
} tile_status;

/* A short English phrase; never NULL, even for an invalid status; static storage. */
TILE_API const char *tile_status_text(tile_status status);
/* The exit status of a command that ends with `status`: 0, 1 (user), 2 (environment) or 3 (our bug, or an invalid
 * status). */
TILE_API int tile_status_exit_code(tile_status status);

/* Returns from the calling function unless `call` succeeds. */
#define TILE_TRY(call)                                                                                                 \
    do {                                                                                                               \
        tile_status tile_try_status_ = (call);                                                                         \
        if (tile_try_status_ != TILE_OK) return tile_try_status_;                                                      \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
