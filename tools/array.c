#include "tools/array.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int64_t tile_array_count(TileScalar scalar, unsigned rank, const int64_t *extent) {
    int64_t count = 1, bytes;
    bool empty = false;
    for (unsigned i = 0; i < rank; i++) {
        if (extent[i] < 0) return -1;
        if (extent[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(count, extent[i], &count))
            return -1;
    }
    if (__builtin_mul_overflow(count, (int64_t)tile_scalar_bytes(scalar), &bytes)) return -1;
    return empty ? 0 : count;
}

static void set_row_major(TileArray *array) {
    int64_t stride = tile_scalar_bytes(array->scalar);
    for (unsigned i = array->rank; i-- > 0;) {
        array->stride[i] = stride;
        stride *= array->extent[i] ? array->extent[i] : 1;
    }
}

tile_status tile_array_create(TileArray *array, TileScalar scalar, unsigned rank, const int64_t *extent,
                              TileText *error) {
    *array = (TileArray){.scalar = scalar, .rank = rank};
    int64_t count = tile_array_count(scalar, rank, extent);
    for (unsigned i = 0; i < rank; i++) array->extent[i] = extent[i];
    if (count >= 0) {
        array->storage_size = (size_t)count * tile_scalar_bytes(scalar);
        size_t rounded = (array->storage_size + 127) & ~(size_t)63;
        array->storage = aligned_alloc(64, rounded);
        if (array->storage) memset(array->storage, 0, rounded);
    }
    if (!array->storage) {
        tile_text_add(error, "not enough memory for ");
        tile_array_describe(error, array);
        return TILE_OUT_OF_MEMORY;
    }
    array->data = array->storage;
    set_row_major(array);
    return TILE_OK;
}

void tile_array_release(TileArray *array) {
    if (array->mapped)
        munmap(array->storage, array->storage_size);
    else
        free(array->storage);
    *array = (TileArray){0};
}

/* ---- views ---- */

typedef struct Reader {
    const char *at;
    TileText *error;
} Reader;

static void skip_spaces(Reader *r) {
    while (*r->at == ' ') r->at++;
}

static bool accept(Reader *r, char character) {
    skip_spaces(r);
    if (*r->at != character) return false;
    r->at++;
    return true;
}

static tile_status fail(Reader *r, const char *what) {
    tile_text_format(r->error, "%s at '%s'", what, *r->at ? r->at : "the end");
    return TILE_INVALID_ARGUMENT;
}

static bool read_integer(Reader *r, int64_t *value) {
    skip_spaces(r);
    char *end;
    if (!isdigit((unsigned char)*r->at) && *r->at != '-') return false;
    errno = 0;
    long long found = strtoll(r->at, &end, 10);
    if (end == r->at || errno) return false;
    r->at = end;
    *value = found;
    return true;
}

/* Python's clamping of slice bounds. */
static int64_t clamp_bound(int64_t bound, int64_t extent, bool backward) {
    if (bound < 0) bound += extent;
    int64_t lowest = backward ? -1 : 0, highest = backward ? extent - 1 : extent;
    return bound < lowest ? lowest : bound > highest ? highest : bound;
}

/* One entry of a slice, `3` or `lo:hi:step`; `*kept` says whether the axis stays. */
static tile_status read_slice(Reader *r, TileArray *array, unsigned axis, bool *kept) {
    int64_t extent = array->extent[axis], stride = array->stride[axis], lo = 0, hi = 0, step = 1;
    bool has_lo = read_integer(r, &lo);
    if (!accept(r, ':')) {
        if (!has_lo) return fail(r, "expected an index or a slice");
        if (lo < 0) lo += extent;
        if (lo < 0 || lo >= extent) return fail(r, "index out of range");
        array->data += lo * stride;
        *kept = false;
        return TILE_OK;
    }
    bool has_hi = read_integer(r, &hi);
    if (accept(r, ':') && read_integer(r, &step) && step == 0) return fail(r, "a slice's step is 0");
    if (step == INT64_MIN) return fail(r, "a slice's step is out of range");
    bool backward = step < 0;
    lo = has_lo ? clamp_bound(lo, extent, backward) : backward ? extent - 1 : 0;
    hi = has_hi ? clamp_bound(hi, extent, backward) : backward ? -1 : extent;
    int64_t distance = backward ? lo - hi : hi - lo, length = backward ? -step : step;
    int64_t count = distance <= 0 ? 0 : (distance - 1) / length + 1;
    if (count) array->data += lo * stride;
    array->extent[axis] = count;
    array->stride[axis] = count > 1 ? stride * step : stride;
    *kept = true;
    return TILE_OK;
}

static tile_status apply_slices(Reader *r, TileArray *array) {
    unsigned axis = 0, rank = 0;
    do {
        if (axis == array->rank) return fail(r, "more slices than dimensions");
        bool kept = true;
        TILE_TRY(read_slice(r, array, axis, &kept));
        if (kept) {
            array->extent[rank] = array->extent[axis];
            array->stride[rank++] = array->stride[axis];
        }
        axis++;
    } while (accept(r, ','));
    if (!accept(r, ']')) return fail(r, "expected ']'");
    for (; axis < array->rank; axis++) {
        array->extent[rank] = array->extent[axis];
        array->stride[rank++] = array->stride[axis];
    }
    array->rank = rank;
    return TILE_OK;
}

static void transpose(TileArray *array) {
    for (unsigned i = 0, j = array->rank; i + 1 < j; i++) {
        j--;
        int64_t extent = array->extent[i], stride = array->stride[i];
        array->extent[i] = array->extent[j];
        array->stride[i] = array->stride[j];
        array->extent[j] = extent;
        array->stride[j] = stride;
    }
}

/* `*[64, :]`: numbers are new axes of stride 0 (or stretch an axis of extent 1), `:` keeps the next axis. */
static tile_status apply_broadcast(Reader *r, TileArray *array) {
    TileArray old = *array;
    unsigned next = 0, rank = 0;
    do {
        if (rank == TILE_MAX_TENSOR_RANK) return fail(r, "more than 8 dimensions");
        int64_t extent;
        if (accept(r, ':')) {
            if (next == old.rank) return fail(r, "more ':' than dimensions");
            array->extent[rank] = old.extent[next];
            array->stride[rank++] = old.stride[next++];
        } else if (read_integer(r, &extent) && extent >= 0) {
            array->extent[rank] = extent;
            array->stride[rank++] = 0;
        } else {
            return fail(r, "expected an extent or ':'");
        }
    } while (accept(r, ','));
    if (!accept(r, ']')) return fail(r, "expected ']'");
    if (next != old.rank) return fail(r, "each dimension needs a ':'");
    array->rank = rank;
    array->readonly = true;
    return TILE_OK;
}

tile_status tile_array_view(TileArray *array, const char *suffix, TileText *error) {
    Reader r = {suffix, error};
    while (*r.at) {
        if (accept(&r, '[')) {
            TILE_TRY(apply_slices(&r, array));
        } else if (strncmp(r.at, ".T", 2) == 0) {
            r.at += 2;
            transpose(array);
        } else if (accept(&r, '*') && accept(&r, '[')) {
            TILE_TRY(apply_broadcast(&r, array));
        } else {
            return fail(&r, "expected a view: [slices], .T or *[extents]");
        }
    }
    if (tile_array_count(array->scalar, array->rank, array->extent) < 0) {
        tile_text_add(error, "the view has too many elements");
        return TILE_INVALID_ARGUMENT;
    }
    return TILE_OK;
}

void tile_array_visit(const TileArray *array, TileElementVisitor visit, void *state) {
    int64_t index[TILE_MAX_TENSOR_RANK] = {0}, number = 0;
    char *element = array->data;
    if (tile_array_count(array->scalar, array->rank, array->extent) <= 0) return;
    for (;;) {
        visit(state, element, number++);
        unsigned axis = array->rank;
        for (;;) {
            if (axis-- == 0) return;
            element += array->stride[axis];
            if (++index[axis] < array->extent[axis]) break;
            element -= array->stride[axis] * array->extent[axis];
            index[axis] = 0;
        }
    }
}

void tile_array_describe(TileText *text, const TileArray *array) {
    tile_text_format(text, "%s[", tile_scalar_name(array->scalar));
    for (unsigned i = 0; i < array->rank; i++)
        tile_text_format(text, "%s%lld", i ? ", " : "", (long long)array->extent[i]);
    tile_text_add(text, "]");
}
