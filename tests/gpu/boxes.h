/* Kernels in machine form that copy boxes of a tensor by a tensor map, for the emulator, the assembler and a GPU, and
 * what they have to compute. @boxes: program p copies the box at the coordinates at[p, ..] to shared memory, and stores
 * it to y[p, ..] byte for byte, as it lies there. */
#ifndef TILE_TESTS_GPU_BOXES_H
#define TILE_TESTS_GPU_BOXES_H

#include <stdio.h>
#include <string.h>

#include "base/string.h"
#include "base/tensor_map.h"
#include "lang/scalar/types.h"

typedef struct Boxes {
    TileScalar scalar;
    uint32_t rank, box[TILE_MAP_MOST_RANK], swizzle;
    int64_t extent[TILE_MAP_MOST_RANK], stride[TILE_MAP_MOST_RANK]; /* of the tensor; strides in bytes */
    uint32_t step[TILE_MAP_MOST_RANK];                              /* from one element of the box to the next; 0: 1 */
    uint32_t more; /* rows of the map's box beyond these, along the first axis, of which it is cut: the tensor has no more; 0: it is not */
    uint32_t positions; /* of a box in mode im2col, of which `box` has the channels; 0: mode tiled */
    int32_t corner[TILE_MAP_MOST_IMAGE_AXES];
    int64_t count[TILE_MAP_MOST_IMAGE_AXES]; /* positions along each axis of an image */
} Boxes;

enum { BOX_THREADS = 64, BOX_WORD = 4 };

/* Axes of an image; 0: the mode is tiled. */
static inline uint32_t boxes_axes(const Boxes *boxes) { return boxes->positions ? boxes->rank - 2 : 0; }
/* What a program reads: coordinates, and the offsets of positions. */
static inline uint32_t boxes_numbers(const Boxes *boxes) { return boxes->rank + boxes_axes(boxes); }

static inline uint32_t boxes_bytes(const Boxes *boxes) {
    uint32_t bytes = (uint32_t)tile_scalar_bytes(boxes->scalar) * (boxes->positions ? boxes->positions : 1);
    for (uint32_t d = 0; d < boxes->rank; d++) bytes *= boxes->box[d];
    return bytes;
}

/* ---- texts ---- */

static inline void add_tensor_parameters(TileText *text, const char *name, unsigned argument, unsigned rank) {
    tile_text_format(text, "%%%s: ptr<global> {role = data, argument = %u}, ", name, argument);
    for (unsigned d = 0; d < rank; d++)
        tile_text_format(text, "%%%s.dim%u: i64 {role = extent, argument = %u, axis = %u}, ", name, d, argument, d);
    for (unsigned d = 0; d < rank; d++)
        tile_text_format(text, "%%%s.stride%u: i64 {role = stride, argument = %u, axis = %u}, ", name, d, argument, d);
}

/* The map's: of the extents of the last argument, @boxes' %over. */
static inline void add_positions(TileText *text, const Boxes *boxes) {
    if (!boxes->positions) return;
    tile_text_format(text, ", positions = %u, corner = [", boxes->positions);
    for (uint32_t d = 0; d < boxes_axes(boxes); d++) tile_text_format(text, d ? ", %d" : "%d", boxes->corner[d]);
    tile_text_add(text, "], over = [");
    for (uint32_t d = 0; d < boxes_axes(boxes); d++) tile_text_format(text, d ? ", 3, %u" : "3, %u", d);
    tile_text_add(text, "]");
}

/* The kernel and the head of its phase, up to `%in`, whether there is a program for this block. */
static inline void begin_boxes(TileText *text, const Boxes *boxes, const char *access) {
    const char *scalar = tile_scalar_name(boxes->scalar);
    uint32_t bytes = boxes_bytes(boxes);
    char over[40];
    snprintf(over, sizeof over, ", %%over: tensor<u8, %u, in>", boxes_axes(boxes));
    tile_text_format(text,
                     "func kernel tile @boxes(%%x: tensor<%s, %u, %s>, %%at: tensor<i32, 2, in>, %%y: tensor<i32, 2, "
                     "%s>%s) {\n  %%n = dim %%at {axis = 0} : i64\n  grid %%n (%%i: i64) {\n    yield\n  }\n  return\n}\n"
                     "func phase machine @boxes.0(",
                     scalar, boxes->rank, access, strcmp(access, "in") == 0 ? "out" : "in",
                     boxes->positions ? over : "");
    add_tensor_parameters(text, "x", 0, boxes->rank);
    add_tensor_parameters(text, "at", 1, 2);
    add_tensor_parameters(text, "y", 2, 2);
    if (boxes->positions) add_tensor_parameters(text, "over", 3, boxes_axes(boxes));
    tile_text_add(text, "%begin: i64 {role = begin}, %end: i64 {role = end}, "
                        "%x.map: ptr<map> {role = map, argument = 0, box = [");
    for (uint32_t d = 0; d < boxes->rank; d++) tile_text_format(text, d ? ", %u" : "%u", boxes->box[d] + (d ? 0 : boxes->more));
    tile_text_format(text,
                     "], swizzle = %u%s", boxes->swizzle, boxes->more ? ", cut = 1" : "");
    add_positions(text, boxes);
    for (uint32_t d = 0; boxes->step[0] && d < boxes->rank; d++) tile_text_format(text, d ? ", %u" : ", steps = [%u", boxes->step[d]);
    tile_text_format(text,
                     "%s}, %%shared: ptr<shared> {role = scratch}) kernel = @boxes phase = 0 threads = %d "
                     "scratch_bytes = %u {\n",
                     boxes->step[0] ? "]" : "", BOX_THREADS, bytes + 16);
    tile_text_format(text,
                     "  %%thread = thread : i32\n  %%t = convert %%thread : i64\n  %%block = block : i64\n"
                     "  %%zero = const {value = 0} : i64\n  %%four = const {value = 4} : i64\n  %%p0 = const {value = "
                     "0} : i32\n  %%p3 = const {value = 3} : i32\n"
                     "  %%bytes = const {value = %u} : i64\n  %%bar = ptr_add %%shared, %%bytes : ptr<shared>\n"
                     "  %%first = mul %%t, %%four : i64\n  %%step = const {value = %d} : i64\n"
                     "  %%ao = mul %%block, %%at.stride0 : i64\n  %%ap = ptr_add %%at, %%ao : ptr<global>\n"
                     "  %%yo = mul %%block, %%y.stride0 : i64\n  %%yp = ptr_add %%y, %%yo : ptr<global>\n"
                     "  %%in = lt %%block, %%at.dim0 : bool\n  %%is0 = eq %%t, %%zero : bool\n",
                     bytes, BOX_THREADS * BOX_WORD);
}

/* Loads the program's numbers; `%c0, %c1, ..`, as operands, follow. */
static inline void add_coordinates(TileText *text, const Boxes *boxes) {
    for (uint32_t d = 0; d < boxes_numbers(boxes); d++)
        tile_text_format(text,
                         "    %%d%u = const {value = %u} : i64\n    %%o%u = mul %%d%u, %%at.stride1 : i64\n"
                         "    %%q%u = ptr_add %%ap, %%o%u : ptr<global>\n    %%c%u = load %%q%u : i32\n",
                         d, d, d, d, d, d, d, d);
}

static inline void list_coordinates(TileText *text, uint32_t count) {
    for (uint32_t d = 0; d < count; d++) tile_text_format(text, ", %%c%u", d);
}

/* `options`: attributes of the copy, " {cache = l2}", or "". */
static inline const char *boxes_text(TileArena *arena, const Boxes *boxes, const char *options) {
    TileText text = {.arena = arena};
    begin_boxes(&text, boxes, "in");
    tile_text_add(&text, "  if %in {\n    if %is0 {\n      mbarrier_init %bar {count = 1}\n      fence_async\n      "
                         "yield\n    } {\n      yield\n    }\n"
                         "    barrier\n");
    add_coordinates(&text, boxes);
    tile_text_format(
        &text, "    if %%is0 {\n      mbarrier_arrive %%bar {bytes = %u}\n      copy_tensor %%shared, %%x.map, %%bar",
        boxes_bytes(boxes));
    list_coordinates(&text, boxes_numbers(boxes));
    tile_text_format(&text,
                     "%s\n      yield\n    } {\n      yield\n    }\n    mbarrier_wait %%bar, %%p0\n"
                     "    for %%first, %%bytes, %%step (%%w: i64) {\n"
                     "      %%from = ptr_add %%shared, %%w : ptr<shared>\n      %%v = load %%from : i32\n"
                     "      %%to = ptr_add %%yp, %%w : ptr<global>\n      store %%v, %%to\n      yield\n    }\n"
                     "    yield\n  } {\n    yield\n  }\n  return\n}\n",
                     options);
    return tile_text_get(&text);
}

/* The inverse: program p stores y[p, ..], as it lies, to the box of x at the coordinates at[p, ..]. `wait`: what its
 * first thread does behind the store, "store_commit\nstore_wait {pending = 0}". */
static inline const char *boxes_store_text(TileArena *arena, const Boxes *boxes, const char *options,
                                           const char *wait) {
    TileText text = {.arena = arena};
    begin_boxes(&text, boxes, "out");
    tile_text_add(&text, "  if %in {\n    for %first, %bytes, %step (%w: i64) {\n"
                         "      %from = ptr_add %yp, %w : ptr<global>\n      %v = load %from : i32\n"
                         "      %to = ptr_add %shared, %w : ptr<shared>\n      store %v, %to\n      yield\n    }\n"
                         "    fence_async\n    barrier\n");
    add_coordinates(&text, boxes);
    tile_text_add(&text, "    if %is0 {\n      store_tensor %x.map, %shared");
    list_coordinates(&text, boxes->rank);
    tile_text_format(
        &text, "%s\n%s\n      yield\n    } {\n      yield\n    }\n    yield\n  } {\n    yield\n  }\n  return\n}\n",
        options, wait);
    return tile_text_get(&text);
}

/* ---- what they compute ---- */

static inline uint32_t boxes_step(const Boxes *boxes, uint32_t d) { return boxes->step[d] ? boxes->step[d] : 1; }

/* The same of a box of positions, by the words of the PTX manual: from the first position through the bounding box, whose far corner lies so
 * many elements from the last one of an image. */
static inline int64_t boxes_position(const Boxes *boxes, const int32_t *at, uint32_t element) {
    int64_t base[TILE_MAP_MOST_RANK], offset = 0, channels = boxes->box[boxes->rank - 1];
    for (uint32_t d = 0; d < boxes->rank; d++) base[d] = at[d];
    for (int64_t left = element / channels; left > 0; left--)
        for (uint32_t d = boxes->rank - 1; d-- > 0;) {
            base[d] += boxes_step(boxes, d);
            if (!d || base[d] <= boxes->corner[d - 1] + (boxes->count[d - 1] - 1) * boxes_step(boxes, d)) break;
            base[d] = boxes->corner[d - 1];
        }
    base[boxes->rank - 1] += element % channels;
    for (uint32_t d = 0; d < boxes->rank; d++) {
        int64_t index = base[d] + (d && d + 1 < boxes->rank ? at[boxes->rank + d - 1] : 0);
        if (index < 0 || index >= boxes->extent[d]) return -1;
        offset += index * (boxes->extent[d] > 1 ? boxes->stride[d] : 0);
    }
    return offset;
}

/* The offset in the tensor of an element of the box at these coordinates; -1: it lies outside. */
static inline int64_t boxes_element(const Boxes *boxes, const int32_t *at, uint32_t element) {
    int64_t offset = 0;
    if (boxes->positions) return boxes_position(boxes, at, element);
    for (uint32_t d = boxes->rank; d-- > 0;) {
        int64_t index = (int64_t)at[d] + (int64_t)(element % boxes->box[d]) * boxes_step(boxes, d);
        element /= boxes->box[d];
        if (index < 0 || index >= boxes->extent[d]) return -1;
        offset += index * (boxes->extent[d] > 1 ? boxes->stride[d] : 0);
    }
    return offset;
}

/* Where shared memory has a byte of the box: written out, by the words of the PTX manual. */
static inline uint32_t boxes_place(const Boxes *boxes, uint32_t byte) {
    uint32_t chunk = byte / 16, row = byte / 128; /* of 128 bytes */
    switch (boxes->swizzle) {
    case 128: return (chunk / 8 * 8 + ((chunk % 8) ^ (row % 8))) * 16 + byte % 16;
    case 64: return (chunk / 4 * 4 + ((chunk % 4) ^ (row % 4))) * 16 + byte % 16;
    case 32: return (chunk / 2 * 2 + ((chunk % 2) ^ (row % 2))) * 16 + byte % 16;
    default: return byte;
    }
}

/* The bytes of one box. */
static inline void boxes_expect(const Boxes *boxes, const unsigned char *x, const int32_t *at, unsigned char *box) {
    uint32_t size = (uint32_t)tile_scalar_bytes(boxes->scalar), count = boxes_bytes(boxes) / size;
    for (uint32_t i = 0; i < count; i++) {
        int64_t from = boxes_element(boxes, at, i);
        for (uint32_t k = 0; k < size; k++) box[boxes_place(boxes, i * size + k)] = from < 0 ? 0 : x[from + (int64_t)k];
    }
}

/* What a program stores: the bytes of the box that lie in the tensor. */
static inline void boxes_expect_stored(const Boxes *boxes, const unsigned char *box, const int32_t *at,
                                       unsigned char *x) {
    uint32_t size = (uint32_t)tile_scalar_bytes(boxes->scalar), count = boxes_bytes(boxes) / size;
    for (uint32_t i = 0; i < count; i++) {
        int64_t to = boxes_element(boxes, at, i);
        for (uint32_t k = 0; k < size && to >= 0; k++) x[to + (int64_t)k] = box[boxes_place(boxes, i * size + k)];
    }
}

/* ---- cases ---- */

/* Every swizzle, rank and size of an element; ragged edges; strides that are not sorted, or have gaps. */
static const Boxes box_cases[] = {
    {TILE_F32, 1, {64}, 0, {100}, {4}, {0}, 0, 0, {0}, {0}},
    {TILE_F16, 2, {16, 64}, 128, {50, 100}, {208, 2}, {0}, 0, 0, {0}, {0}},
    {TILE_BF16, 2, {64, 64}, 128, {64, 64}, {128, 2}, {0}, 0, 0, {0}, {0}},
    {TILE_F32, 2, {16, 32}, 128, {20, 36}, {144, 4}, {0}, 0, 0, {0}, {0}},
    {TILE_F32, 2, {24, 16}, 64, {20, 36}, {160, 4}, {0}, 0, 0, {0}, {0}},
    {TILE_F16, 2, {32, 16}, 32, {33, 40}, {80, 2}, {0}, 0, 0, {0}, {0}},
    {TILE_U8, 2, {8, 128}, 128, {21, 144}, {144, 1}, {0}, 0, 0, {0}, {0}},
    {TILE_F8E4M3, 2, {16, 64}, 64, {21, 160}, {160, 1}, {0}, 0, 0, {0}, {0}},
    {TILE_I8, 2, {5, 48}, 0, {21, 80}, {96, 1}, {0}, 0, 0, {0}, {0}},
    {TILE_F64, 2, {8, 16}, 128, {9, 18}, {144, 8}, {0}, 0, 0, {0}, {0}},
    {TILE_I64, 2, {3, 10}, 0, {9, 18}, {160, 8}, {0}, 0, 0, {0}, {0}},
    {TILE_U16, 2, {256, 8}, 0, {300, 8}, {16, 2}, {0}, 0, 0, {0}, {0}},
    {TILE_F16, 3, {3, 8, 64}, 128, {4, 10, 72}, {1440, 144, 2}, {0}, 0, 0, {0}, {0}},
    {TILE_F16, 3, {3, 8, 64}, 128, {10, 4, 72}, {144, 1440, 2}, {0}, 0, 0, {0}, {0}}, /* the first two axes exchanged */
    {TILE_F32, 4, {2, 3, 4, 8}, 32, {3, 4, 5, 12}, {1056, 240, 48, 4}, {0}, 0, 0, {0}, {0}},
    {TILE_F16, 5, {2, 1, 2, 3, 32}, 64, {3, 2, 2, 4, 40}, {1280, 640, 320, 80, 2}, {0}, 0, 0, {0}, {0}},
    {TILE_I32, 3, {2, 4, 4}, 0, {5, 1, 8}, {32, 7, 4}, {0}, 0, 0, {0}, {0}}, /* the stride of an axis of one element is any */
    {TILE_F16, 3, {3, 8, 64}, 128, {10, 20, 72}, {2880, 144, 2}, {2, 3, 1}, 0, 0, {0}, {0}},
    {TILE_BF16, 4, {2, 3, 4, 32}, 64, {5, 9, 11, 40}, {7920, 880, 80, 2}, {1, 2, 2, 1}, 0, 0, {0}, {0}},
    {TILE_F32, 2, {16, 8}, 0, {50, 12}, {48, 4}, {8, 1}, 0, 0, {0}, {0}},
    {TILE_BF16, 2, {16, 64}, 128, {16, 200}, {400, 2}, {0}, 48, 0, {0}, {0}},
    {TILE_F16, 2, {7, 32}, 64, {7, 80}, {160, 2}, {0}, 57, 0, {0}, {0}},
    {TILE_I8, 3, {1, 8, 32}, 32, {1, 21, 48}, {1008, 48, 1}, {0}, 15, 0, {0}, {0}},
    /* Positions: as many as an image has elements, fewer and more; corners in front of and behind the first element; steps; strides with gaps. */
    {TILE_BF16, 4, {1, 1, 1, 64}, 128, {5, 7, 7, 128}, {12544, 1792, 256, 2}, {0}, 0, 192, {-1, -1}, {7, 7}},
    {TILE_F16, 4, {1, 1, 1, 32}, 64, {3, 9, 6, 40}, {4400, 480, 80, 2}, {0}, 0, 100, {-64, -64}, {7, 8}},
    {TILE_F32, 4, {1, 1, 1, 8}, 32, {4, 5, 11, 12}, {2640, 528, 48, 4}, {1, 2, 3, 1}, 0, 33, {-2, 1}, {3, 4}},
    {TILE_U8, 3, {1, 1, 128}, 128, {6, 21, 144}, {3024, 144, 1}, {0}, 0, 64, {-300}, {23}},
    {TILE_F64, 3, {1, 1, 10}, 0, {2, 13, 20}, {2080, 160, 8}, {1, 2, 1}, 0, 17, {3}, {1}},
    {TILE_F16, 5, {1, 1, 1, 1, 64}, 128, {3, 4, 5, 6, 72}, {17280, 4320, 864, 144, 2}, {0}, 0, 256, {-1, -3, 2}, {3, 5, 4}},
    {TILE_BF16, 4, {1, 1, 1, 64}, 128, {5, 7, 6, 72}, {6048, 864, 144, 2}, {0}, 0, 128, {0, 0}, {7, 6}},
    {TILE_F32, 3, {1, 1, 16}, 64, {3, 9, 32}, {1440, 160, 4}, {0}, 0, 100, {0}, {9}},
    {TILE_U8, 5, {1, 1, 1, 1, 32}, 32, {2, 3, 2, 4, 32}, {768, 256, 128, 32, 1}, {0}, 0, 30, {0, 0, 0}, {3, 2, 4}},
    {TILE_I32, 5, {1, 1, 1, 1, 4}, 0, {2, 3, 1, 4, 8}, {384, 128, 99, 32, 4}, {1, 1, 2, 3, 1}, 0, 50, {-16, -2, -9}, {4, 2, 4}},
};

enum { BOX_CASES = sizeof box_cases / sizeof *box_cases, BOX_PROGRAMS = 12 };

/* The same of positions, which begin at one of the map's, with channels from each edge on; behind the coordinates the offsets, as far as they
 * go. */
static inline void box_positions(const Boxes *boxes, unsigned program, int32_t *at) {
    uint32_t last = boxes->rank - 1;
    int32_t images = (int32_t)boxes->extent[0], channels = (int32_t)boxes->extent[last], box = (int32_t)boxes->box[last];
    const int32_t firsts[] = {0, images - 1, images, 0, images - 2, 1, -1, images + 5}, of[] = {0, channels - box, box, -box, 0, channels, 0, 0};
    at[0] = firsts[program % 8];
    at[last] = of[(program + program / 8) % 8];
    at[last] -= at[last] % (TILE_MAP_GRAIN / (int32_t)tile_scalar_bytes(boxes->scalar));
    for (uint32_t d = 0; d < boxes_axes(boxes); d++) {
        int32_t number = (int32_t)(program * (3 + d) % boxes->count[d]), most = (1 << tile_map_corner_bits(boxes->rank)) - 1;
        at[1 + d] = boxes->corner[d] + number * (int32_t)boxes_step(boxes, 1 + d);
        at[boxes->rank + d] = program == 9 ? most : program % 3 ? -boxes->corner[d] + (int32_t)((program + d) % 4) : (int32_t)program + (int32_t)d;
        if (at[boxes->rank + d] < 0 || at[boxes->rank + d] > most) at[boxes->rank + d] = 0;
    }
}

/* Coordinates of program p: inside, at every edge, across it, outside, negative. */
static inline void box_coordinates(const Boxes *boxes, unsigned program, int32_t *at) {
    if (boxes->positions) {
        box_positions(boxes, program, at);
        return;
    }
    for (uint32_t d = 0; d < boxes->rank; d++) {
        int32_t extent = (int32_t)boxes->extent[d], box = (int32_t)boxes->box[d];
        int32_t choices[] = {0, extent - box, -1, 1 - box, extent - 1, 3, -box, extent};
        at[d] = choices[program < 8 ? (program + d * (program & 1)) % 8 : (program * 5 + d * 3) % 6];
        if (program == 0) at[d] = 0;
    }
    int32_t grain = TILE_MAP_GRAIN / (int32_t)tile_scalar_bytes(boxes->scalar), *last = &at[boxes->rank - 1];
    *last -= *last % grain; /* hardware demands it: anything else is an illegal instruction to it */
}

/* The same for stores, which begin in the tensor. */
static inline void box_coordinates_inside(const Boxes *boxes, unsigned program, int32_t *at) {
    box_coordinates(boxes, program, at);
    for (uint32_t d = 0; d < boxes->rank; d++) {
        int32_t grain = d + 1 == boxes->rank ? TILE_MAP_GRAIN / (int32_t)tile_scalar_bytes(boxes->scalar) : 1;
        if (at[d] < 0) at[d] = 0;
        if (at[d] >= boxes->extent[d]) at[d] = ((int32_t)boxes->extent[d] - 1) / grain * grain;
    }
    for (uint32_t d = 0; d < boxes_axes(boxes); d++) at[boxes->rank + d] = 0;
}

/* Are the tensor's rows multiples of 16 bytes, as stores need them, and do positions go through all elements of images? */
static inline bool boxes_are_stored(const Boxes *boxes) {
    bool all = true; /* elements of an image are positions */
    for (uint32_t d = 0; d < boxes_axes(boxes); d++)
        all &= boxes->corner[d] == 0 && boxes->count[d] == boxes->extent[1 + d] && boxes_step(boxes, 1 + d) == 1;
    return all && boxes->extent[boxes->rank - 1] * (int64_t)tile_scalar_bytes(boxes->scalar) % TILE_MAP_GRAIN == 0;
}

/* Bytes from the tensor's first element to behind its last one. */
static inline int64_t boxes_tensor_bytes(const Boxes *boxes) {
    int64_t last = (int64_t)tile_scalar_bytes(boxes->scalar);
    for (uint32_t d = 0; d < boxes->rank; d++)
        if (boxes->extent[d] > 1) last += (boxes->extent[d] - 1) * boxes->stride[d];
    return last;
}

#endif
