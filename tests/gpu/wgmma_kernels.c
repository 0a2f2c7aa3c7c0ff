#include "tests/gpu/wgmma_kernels.h"

#include <string.h>

enum { CHUNK = 16, LINES = 8, COPIED = CHUNK * WGMMA_THREADS };

const TileScalar wgmma_pairs[WGMMA_PAIRS][2] = {
    {TILE_F16, TILE_F16},       {TILE_BF16, TILE_BF16},     {TILE_F32, TILE_F32},       {TILE_F8E4M3, TILE_F8E4M3},
    {TILE_F8E4M3, TILE_F8E5M2}, {TILE_F8E5M2, TILE_F8E4M3}, {TILE_F8E5M2, TILE_F8E5M2}, {TILE_I8, TILE_I8},
    {TILE_I8, TILE_U8},         {TILE_U8, TILE_I8},         {TILE_U8, TILE_U8}};

WgmmaCase wgmma_single(unsigned pair, bool registers) {
    return (WgmmaCase){.types = {wgmma_pairs[pair][0], wgmma_pairs[pair][1]},
                       .columns = 8,
                       .places = {{128, false}, {128, false}},
                       .registers = registers,
                       .single = true};
}

/* ---- where elements lie ---- */

typedef struct Operand {
    unsigned rows, length, bytes; /* of a: rows; of b: columns. Elements along k, and the size of one */
    WgmmaPlace place;
} Operand;

static Operand operand_of(const WgmmaCase *item, unsigned number) {
    return (Operand){number ? item->columns : WGMMA_ROWS, wgmma_length(item), tile_scalar_bits(item->types[0]) / 8,
                     item->places[number]};
}

static unsigned row_bytes(const WgmmaPlace *place) { return place->swizzle ? place->swizzle : CHUNK; }

/* Lines are rows of the matrix or, transposed, what has the same k. Parts of lines, each as long as a row of the
 * layout, lie one behind the other for all lines. */
static unsigned part_bytes(const Operand *o) {
    return row_bytes(&o->place) * (o->place.transposed ? o->length : o->rows);
}

/* From 8 lines to the next 8; between parts. */
static unsigned stride_of(const Operand *o) {
    unsigned lines = LINES * row_bytes(&o->place);
    return !o->place.swizzle && o->place.transposed ? part_bytes(o) : lines;
}

static unsigned leading_of(const Operand *o) {
    unsigned lines = LINES * row_bytes(&o->place);
    return !o->place.swizzle && o->place.transposed ? lines : part_bytes(o);
}

static unsigned offset_of(const Operand *o, unsigned row, unsigned k) {
    unsigned line = o->place.transposed ? k : row, byte = (o->place.transposed ? row : k) * o->bytes;
    unsigned width = row_bytes(&o->place), at = byte / width * part_bytes(o) + line * width + byte % width;
    return at ^ (at >> 3 & (width - CHUNK));
}

static unsigned step_offset(const Operand *o, unsigned step) {
    unsigned width = row_bytes(&o->place), byte = step * WGMMA_STEP_BYTES;
    if (o->place.transposed) return byte / o->bytes * width;
    return byte / width * part_bytes(o) + byte % width;
}

static unsigned size_of(const Operand *o) {
    unsigned line = (o->place.transposed ? o->rows : o->length) * o->bytes, width = row_bytes(&o->place);
    return ((line + width - 1) / width * part_bytes(o) + 1023) / 1024 * 1024;
}

/* ---- data ---- */

static size_t shared_bytes(const WgmmaCase *item) {
    Operand a = operand_of(item, 0), b = operand_of(item, 1);
    return (size_of(&a) + size_of(&b) + COPIED - 1) / COPIED * COPIED;
}

enum { SINGLE_COLUMNS = 8 };

static size_t sums_offset(const WgmmaCase *item) { return shared_bytes(item) + (size_t)wgmma_steps(item) * COPIED; }

size_t wgmma_image_bytes(const WgmmaCase *item) {
    return sums_offset(item) + (item->single ? WGMMA_ROWS * SINGLE_COLUMNS * sizeof(uint32_t) : 0);
}

static void put(unsigned char *image, const uint32_t *value, unsigned bytes) { memcpy(image, value, bytes); }

static void place_matrix(const Operand *o, const uint32_t *values, unsigned char *image) {
    for (unsigned row = 0; row < o->rows; row++)
        for (unsigned k = 0; k < o->length; k++)
            put(image + offset_of(o, row, k), &values[row * o->length + k], o->bytes);
}

/* PTX ISA, the fragment of `a`: words of a lane are of rows g and g + 8, then the same with 16 bytes more of k. */
static void place_fragments(const Operand *o, const uint32_t *values, unsigned char *image) {
    unsigned packed = 4 / o->bytes, step_length = WGMMA_STEP_BYTES / o->bytes;
    for (unsigned step = 0; step < o->length / step_length; step++)
        for (unsigned thread = 0; thread < WGMMA_THREADS; thread++)
            for (unsigned i = 0; i < CHUNK / o->bytes; i++) {
                unsigned word = i / packed, lane = thread % 32;
                unsigned row = thread / 32 * 16 + lane / 4 + word % 2 * 8;
                unsigned k = step * step_length + word / 2 * 4 * packed + lane % 4 * packed + i % packed;
                put(image + (step * WGMMA_THREADS + thread) * CHUNK + i * o->bytes, &values[row * o->length + k],
                    o->bytes);
            }
}

void wgmma_make_image(const WgmmaCase *item, const uint32_t *a, const uint32_t *b, const uint32_t *sums,
                      unsigned char *image) {
    Operand first = operand_of(item, 0), second = operand_of(item, 1);
    memset(image, 0, wgmma_image_bytes(item));
    place_matrix(&first, a, image);
    place_matrix(&second, b, image + size_of(&first));
    place_fragments(&first, a, image + shared_bytes(item));
    if (item->single) memcpy(image + sums_offset(item), sums, WGMMA_ROWS * SINGLE_COLUMNS * sizeof *sums);
}

/* ---- the kernel ---- */

static const char *place_name(TileArena *arena, const WgmmaPlace *place) {
    return tile_arena_format(arena, "%s%u", place->transposed ? "transposed" : "", place->swizzle);
}

const char *wgmma_case_name(TileArena *arena, const WgmmaCase *item) {
    return tile_arena_format(
        arena, "%s.%s n%u a %s b %s%s%s", tile_scalar_name(item->types[0]), tile_scalar_name(item->types[1]),
        item->columns, item->registers ? "registers" : place_name(arena, &item->places[0]),
        place_name(arena, &item->places[1]), item->flights ? " flights" : "", item->single ? " single" : "");
}

static const char *sum_type(TileArena *arena, const WgmmaCase *item) {
    return tile_arena_format(arena, "vec<%u x %s>", item->columns / 2,
                             tile_scalar_is_float(item->types[0]) ? "f32" : "i32");
}

static void write_head(TileText *text, const WgmmaCase *item) {
    tile_text_format(
        text,
        "func kernel tile @k(%%x: tensor<i32, 1, in>, %%y: tensor<i32, 1, out>) {\n  %%n = const {value = 1} : i64\n"
        "  grid %%n (%%i: i64) {\n    yield\n  }\n  return\n}\n"
        "func phase machine @k.0(%%x: ptr<global>, %%x.dim0: i64, %%x.stride0: i64, %%y: ptr<global>, %%y.dim0: i64, "
        "%%y.stride0: i64, %%begin: i64, %%end: i64, %%shared: ptr<shared>) kernel = @k phase = 0 threads = %d "
        "scratch_bytes = %zu {\n"
        "  %%thread = thread : i32\n  %%t = convert %%thread : i64\n  %%zero = const {value = 0} : i64\n"
        "  %%chunk = const {value = %d} : i64\n  %%to = mul %%t, %%chunk : i64\n"
        "  %%copied = const {value = %d} : i64\n  %%bytes = const {value = %zu} : i64\n"
        "  for %%zero, %%bytes, %%copied (%%at: i64) {\n    %%o = add %%at, %%to : i64\n"
        "    %%from = ptr_add %%x, %%o : ptr<global>\n    %%into = ptr_add %%shared, %%o : ptr<shared>\n"
        "    %%v = load %%from : vec<4 x i32>\n    store %%v, %%into\n    yield\n  }\n  fence_async\n  barrier\n",
        WGMMA_THREADS, shared_bytes(item), CHUNK, COPIED, shared_bytes(item));
}

static void write_descriptors(TileText *text, const WgmmaCase *item, unsigned number) {
    Operand first = operand_of(item, 0), o = operand_of(item, number);
    char name = number ? 'b' : 'a';
    tile_text_format(text,
                     "  %%%c_at = const {value = %u} : i64\n  %%%c_place = ptr_add %%shared, %%%c_at : ptr<shared>\n"
                     "  %%%c0 = wgmma_descriptor %%%c_place {swizzle = %u, stride = %u, leading = %u} : i64\n",
                     name, number ? size_of(&first) : 0, name, name, name, name, o.place.swizzle, stride_of(&o),
                     leading_of(&o));
    for (unsigned step = 1; step < wgmma_steps(item); step++)
        tile_text_format(text, "  %%%c_to%u = const {value = %u} : i64\n  %%%c%u = add %%%c0, %%%c_to%u : i64\n", name,
                         step, step_offset(&o, step) / CHUNK, name, step, name, name, step);
}

static void write_registers(TileText *text, const WgmmaCase *item) {
    for (unsigned step = 0; step < wgmma_steps(item); step++)
        tile_text_format(text,
                         "  %%ao%u = const {value = %zu} : i64\n  %%aq%u = add %%ao%u, %%to : i64\n"
                         "  %%ap%u = ptr_add %%x, %%aq%u : ptr<global>\n  %%a%u = load %%ap%u : vec<%u x %s>\n",
                         step, shared_bytes(item) + (size_t)step * COPIED, step, step, step, step, step, step,
                         CHUNK / (tile_scalar_bits(item->types[0]) / 8), tile_scalar_name(item->types[0]));
}

/* s0 and s1 of steps 0 and 1, 2 and 3 in a group of their own, under way together; or one sum of all. */
static void write_products(TileText *text, const WgmmaCase *item) {
    const char *type = sum_type(text->arena, item);
    tile_text_add(text, "  wgmma_fence\n");
    for (unsigned step = 0; step < WGMMA_STEPS; step++) {
        bool begins = step == 0 || (item->flights && step == 2);
        tile_text_format(text, "  %%p%u = wgmma %%a%u, %%b%u", step, step, step);
        if (!begins) tile_text_format(text, ", %%p%u", step - 1);
        tile_text_format(text, " {types = [%s, %s]", tile_scalar_name(item->types[0]),
                         tile_scalar_name(item->types[1]));
        if (!begins) tile_text_add(text, ", parts = [init]");
        if (item->places[0].transposed || item->places[1].transposed)
            tile_text_format(text, ", transposed_ab = [%d, %d]", item->places[0].transposed && !item->registers,
                             item->places[1].transposed);
        tile_text_format(text, "} : %s\n", type);
        if (step % 2) tile_text_add(text, "  wgmma_commit\n");
    }
    if (item->flights)
        tile_text_format(text,
                         "  %%s0 = wgmma_wait %%p1 {pending = 1} : %s\n  %%s1 = wgmma_wait %%p3 {pending = 0} : %s\n"
                         "  %%sum = add %%s0, %%s1 : %s\n",
                         type, type, type);
    else
        tile_text_format(text, "  %%sum = wgmma_wait %%p3 {pending = 0} : %s\n", type);
}

/* Bytes from the first sum to the thread's. */
static void write_place(TileText *text, const WgmmaCase *item) {
    tile_text_format(text,
                     "  %%c4 = const {value = 4} : i64\n  %%c3 = const {value = 3} : i64\n"
                     "  %%c5 = const {value = 5} : i64\n  %%c2 = const {value = 2} : i64\n"
                     "  %%c31 = const {value = 31} : i64\n  %%warp = shr %%t, %%c5 : i64\n"
                     "  %%w16 = shl %%warp, %%c4 : i64\n  %%lane = and %%t, %%c31 : i64\n"
                     "  %%g = shr %%lane, %%c2 : i64\n  %%row = add %%w16, %%g : i64\n  %%pair = and %%t, %%c3 : i64\n"
                     "  %%row_bytes = const {value = %u} : i64\n  %%ro = mul %%row, %%row_bytes : i64\n"
                     "  %%po = shl %%pair, %%c3 : i64\n  %%yo = add %%ro, %%po : i64\n",
                     4 * item->columns);
}

static void write_single(TileText *text, const WgmmaCase *item) {
    const char *scalar = tile_scalar_is_float(item->types[0]) ? "f32" : "i32", *type = sum_type(text->arena, item),
               *a = tile_scalar_name(item->types[0]), *b = tile_scalar_name(item->types[1]);
    tile_text_format(text,
                     "  %%so = const {value = %zu} : i64\n  %%sb = ptr_add %%x, %%so : ptr<global>\n"
                     "  %%low_at = ptr_add %%sb, %%yo : ptr<global>\n  %%down = const {value = %d} : i64\n"
                     "  %%high_at = ptr_add %%low_at, %%down : ptr<global>\n  %%low = load %%low_at : vec<2 x %s>\n"
                     "  %%high = load %%high_at : vec<2 x %s>\n"
                     "  %%given = shuffle %%low, %%high {axes = [0, 1, 2, 3]} : vec<4 x %s>\n  wgmma_fence\n"
                     "  %%p = wgmma %%a0, %%b0, %%given {types = [%s, %s], parts = [init]} : %s\n  wgmma_commit\n"
                     "  %%sum = wgmma_wait %%p {pending = 0} : %s\n",
                     sums_offset(item), 8 * 4 * SINGLE_COLUMNS, scalar, scalar, scalar, a, b, type, type);
}

/* Two columns at a time; the emulator may launch a block more than there are programs. */
static void write_results(TileText *text, const WgmmaCase *item) {
    const char *scalar = tile_scalar_is_float(item->types[0]) ? "f32" : "i32";
    tile_text_add(text, "  %mine = ptr_add %y, %yo : ptr<global>\n  %block = block : i64\n"
                        "  %first = eq %block, %zero : bool\n  if %first {\n");
    for (unsigned i = 0; i < item->columns / 2; i += 2)
        tile_text_format(text,
                         "  %%v%u = shuffle %%sum, %%sum {axes = [%u, %u]} : vec<2 x %s>\n"
                         "  %%e%u = const {value = %u} : i64\n  %%y%u = ptr_add %%mine, %%e%u : ptr<global>\n"
                         "  store %%v%u, %%y%u {align = 8}\n",
                         i, i, i + 1, scalar, i, (i / 2 % 2 * 8 * item->columns + i / 4 * 8) * 4, i, i, i, i);
    tile_text_add(text, "    yield\n  } {\n    yield\n  }\n  return\n}\n");
}

const char *wgmma_kernel_text(TileArena *arena, const WgmmaCase *item) {
    TileText text = {.arena = arena};
    write_head(&text, item);
    if (item->registers)
        write_registers(&text, item);
    else
        write_descriptors(&text, item, 0);
    write_descriptors(&text, item, 1);
    write_place(&text, item);
    if (item->single)
        write_single(&text, item);
    else
        write_products(&text, item);
    write_results(&text, item);
    return tile_text_get(&text);
}
