#include "array.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 0xa5, ROW_GAP = 3, ELEMENT_STEP = 2 };

static const struct {
    const char *name;
    bool output;
} views[VIEW_COUNT] = {
#define VIEW_ROW(id, name, output) {name, output},
    VIEW_LIST(VIEW_ROW)
#undef VIEW_ROW
};

bool view_find(const char *name, View *view) {
    for (int i = 0; i < VIEW_COUNT; i++)
        if (strcmp(views[i].name, name) == 0) {
            *view = (View)i;
            return true;
        }
    return false;
}

bool view_may_be_output(View view) { return views[view].output; }

static void set_strides(Array *array, View view) {
    int order[ARRAY_MAX_RANK]; /* dimensions, innermost first */
    for (int i = 0; i < array->rank; i++) order[i] = array->rank - 1 - i;
    if (view == VIEW_TRANSPOSED && array->rank >= 2) {
        order[0] = array->rank - 2;
        order[1] = array->rank - 1;
    }
    int64_t step = view == VIEW_STRIDED ? ELEMENT_STEP : 1;
    for (int i = 0; i < array->rank; i++) {
        array->stride[order[i]] = step;
        step *= array->extent[order[i]];
        if (i == 0 && (view == VIEW_ROWS || view == VIEW_STRIDED)) step += ROW_GAP;
    }
    for (int i = 0; i < array->rank && view == VIEW_NEGATIVE; i++) array->stride[i] = -array->stride[i];
    if (view == VIEW_BROADCAST && array->rank > 0) array->stride[0] = 0;
    if (view == VIEW_REPEATED && array->rank > 0) array->stride[array->rank - 1] = 0;
}

/* The offsets of the lowest and the highest element from element 0, in elements. */
static void find_span(const Array *array, int64_t *low, int64_t *high) {
    *low = *high = 0;
    for (int i = 0; i < array->rank; i++) {
        int64_t reach = (array->extent[i] - 1) * array->stride[i];
        *(reach < 0 ? low : high) += reach;
    }
}

static bool map_pages(Array *array, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    array->pages_size = (bytes + page - 1) / page * page + page;
    array->map_size = array->pages_size + 2 * page;
    array->saved = malloc(array->pages_size);
    array->map = mmap(NULL, array->map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!array->saved || array->map == MAP_FAILED) {
        free(array->saved);
        if (array->map != MAP_FAILED) munmap(array->map, array->map_size);
        return false;
    }
    array->pages = array->map + page;
    if (mprotect(array->pages, array->pages_size, PROT_READ | PROT_WRITE) != 0) {
        array_destroy(array);
        return false;
    }
    memset(array->pages, CANARY, array->pages_size);
    return true;
}

static void set_extents(Array *array, Type type, int rank, const int64_t *extent) {
    *array = (Array){.type = type, .rank = rank, .count = 1};
    for (int i = 0; i < rank; i++) {
        array->extent[i] = extent[i];
        array->count *= extent[i];
    }
}

static bool make_memory(Array *array, Placement placement) {
    Type type = array->type;
    int64_t low = 0, high = -1;
    if (array->count > 0) find_span(array, &low, &high);
    size_t bytes = (size_t)(high - low + 1) * type_bytes(type);
    if (!map_pages(array, bytes)) return false;
    array->lowest = placement == PLACEMENT_BEGIN ? array->pages : array->pages + array->pages_size - bytes;
    array->origin = array->lowest - low * (int64_t)type_bytes(type);
    array->tensor = (DLTensor){
        .data = array->lowest,
        .device = {kDLCPU, 0},
        .ndim = array->rank,
        .dtype = type_dlpack(type),
        .shape = array->extent,
        .strides = array->stride,
        .byte_offset = (uint64_t)(array->origin - array->lowest),
    };
    return true;
}

bool array_create(Array *array, Type type, int rank, const int64_t *extent, View view, Placement placement) {
    set_extents(array, type, rank, extent);
    set_strides(array, view);
    return make_memory(array, placement);
}

bool array_create_strided(Array *array, Type type, int rank, const int64_t *extent, const int64_t *stride,
                          Placement placement) {
    set_extents(array, type, rank, extent);
    memcpy(array->stride, stride, (size_t)rank * sizeof *stride);
    return make_memory(array, placement);
}

void array_destroy(Array *array) {
    free(array->saved);
    munmap(array->map, array->map_size);
}

void *array_at(const Array *array, int64_t index) {
    int64_t offset = 0;
    for (int i = array->rank - 1; i >= 0; i--) {
        offset += index % array->extent[i] * array->stride[i];
        index /= array->extent[i];
    }
    return array->origin + offset * (int64_t)type_bytes(array->type);
}

void array_save(Array *array) { memcpy(array->saved, array->pages, array->pages_size); }

size_t array_check(const Array *array, bool output) {
    if (memcmp(array->pages, array->saved, array->pages_size) == 0) return 0;
    unsigned char *now = malloc(array->pages_size);
    if (!now) return array->pages_size;
    memcpy(now, array->pages, array->pages_size);
    for (int64_t i = 0; i < array->count && output; i++) {
        ptrdiff_t at = (unsigned char *)array_at(array, i) - array->pages;
        memcpy(now + at, array->saved + at, type_bytes(array->type));
    }
    size_t changed = 0;
    for (size_t i = 0; i < array->pages_size; i++) changed += now[i] != array->saved[i];
    free(now);
    return changed;
}
