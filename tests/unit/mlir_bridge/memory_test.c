/* Loads, stores, masks, gathers: what is stored to memory and, checked by guard values, what is not. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

#define TARGETS(target)                                                                                                \
    const TileTarget *const *target = usable_targets();                                                                \
    *target;                                                                                                           \
    target++

Test(memory, masked_copy_touches_only_its_lanes) {
    static const char text[] = "func phase machine @copy(%x: ptr<global>, %y: ptr<global>, %n: i64, " PARAMETERS ") {\n"
                               "  %zero = const {value = 0} : i64\n"
                               "  %m = mask_lt %zero, %n : vec<8 x bool>\n"
                               "  %v = load %x, %m {parts = [mask]} : vec<8 x f32>\n"
                               "  store %v, %y, %m {parts = [mask]}\n"
                               "  return\n}\n";
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    cr_assert_eq(mprotect(pages + page, page, PROT_NONE), 0);
    for (TARGETS(target)) {
        Compiled compiled = compile_text(text, *target);
        Entry entry = find_entry(&compiled, "copy");
        for (int64_t n = -3; n <= 10; n++) {
            int64_t count = n < 0 ? 0 : (n > 8 ? 8 : n);
            float *x = (float *)(pages + page) - count, y[10];
            for (int i = 0; i < 10; i++) y[i] = -1;
            for (int i = 0; i < count; i++) x[i] = (float)i + 0.5f;
            entry((uint64_t[]){SLOT(x), SLOT(y), (uint64_t)n}, 0, 1, NULL);
            for (int i = 0; i < 10; i++)
                cr_expect_float_eq(y[i], i < count ? (float)i + 0.5f : -1, 0, "n = %ld, lane %d", n, i);
        }
        release_compiled(&compiled);
    }
    munmap(pages, 2 * page);
}

Test(memory, alignment_of_addresses) {
    static const char text[] = "func phase machine @aligned(%x: ptr<global>, %y: ptr<global>, " PARAMETERS ") {\n"
                               "  %r = is_aligned %x {align = 8} : bool\n  store %r, %y\n  return\n}\n";
    _Alignas(16) char x[32];
    for (TARGETS(target)) {
        Compiled compiled = compile_text(text, *target);
        Entry entry = find_entry(&compiled, "aligned");
        for (int i = 0; i < 32; i++) {
            uint8_t y[2] = {9, 9};
            entry((uint64_t[]){SLOT(x + i), SLOT(y)}, 0, 1, NULL);
            cr_expect(y[0] == (i % 8 == 0) && y[1] == 9, "%d bytes", i);
        }
        release_compiled(&compiled);
    }
}

/* Narrowed numbers of which LLVM can see that only one lane is stored. */
Test(memory, one_lane_of_a_narrowed_vector_is_stored_narrow) {
    static const char *const types[] = {"i8", "i16", "i32"};
    static const unsigned bytes[] = {1, 2, 4};
    for (unsigned t = 0; t < 3; t++)
        for (unsigned lanes = 4; lanes <= 64; lanes *= 2)
            for (unsigned lane = 0; lane < 2; lane++) {
                char text[1024];
                snprintf(text, sizeof text,
                         "func phase machine @narrow(%%x: ptr<global>, %%y: ptr<global>, %s) {\n"
                         "  %%v = load %%x : vec<%u x i64>\n  %%n = convert %%v : vec<%u x %s>\n"
                         "  %%base = const {value = %u} : i64\n  %%limit = const {value = %u} : i64\n"
                         "  %%m = mask_lt %%base, %%limit : vec<%u x bool>\n"
                         "  store %%n, %%y, %%m {parts = [mask]}\n  return\n}\n",
                         PARAMETERS, lanes, lanes, types[t], 10 - lane, 10, lanes);
                for (TARGETS(target)) {
                    Compiled compiled = compile_text(text, *target);
                    unsigned char x[64 * 8], y[64 * 8];
                    memset(x, 0x3f, sizeof x);
                    memset(y, 0x55, sizeof y);
                    find_entry(&compiled, "narrow")((uint64_t[]){SLOT(x), SLOT(y)}, 0, 1, NULL);
                    for (unsigned i = 0; i < sizeof y; i++)
                        cr_assert((y[i] == 0x3f) == (i < lane * bytes[t]), "%s, %s, %u lanes, byte %u is %#x",
                                  target[0]->name, types[t], lanes, i, y[i]);
                    release_compiled(&compiled);
                }
            }
}

/* Lanes that are loaded under a mask, narrowed and selected by the same mask: if the mask is all false, unmapped memory
 * is not accessed. */
Test(memory, loads_that_are_narrowed_touch_only_their_lanes) {
    static const char *const types[] = {"i32", "i16", "i8"};
    unsigned char *nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(nothing != MAP_FAILED);
    for (unsigned t = 0; t < 3; t++)
        for (unsigned lanes = 2; lanes <= 32; lanes *= 2) {
            char text[1024];
            snprintf(text, sizeof text,
                     "func phase machine @narrow(%%x: ptr<global>, %%y: ptr<global>, %%n: i64, %3$s) {\n"
                     "  %%lane = iota {axis = 0} : vec<%1$u x i64>\n  %%limit = splat %%n : vec<%1$u x i64>\n"
                     "  %%m = lt %%lane, %%limit : vec<%1$u x bool>\n"
                     "  %%v = load %%x, %%m {parts = [mask]} : vec<%1$u x i64>\n"
                     "  %%t = convert %%v : vec<%1$u x %2$s>\n  %%three = const {value = 3} : vec<%1$u x %2$s>\n"
                     "  %%s = select %%m, %%t, %%three : vec<%1$u x %2$s>\n  store %%s, %%y\n  return\n}\n",
                     lanes, types[t], PARAMETERS);
            for (TARGETS(target)) {
                Compiled compiled = compile_text(text, *target);
                unsigned char y[32 * 8] = {0};
                find_entry(&compiled, "narrow")((uint64_t[]){SLOT(nothing), SLOT(y), 0}, 0, 1, NULL);
                cr_assert(y[0] == 3, "%s, %s, %u lanes", target[0]->name, types[t], lanes);
                release_compiled(&compiled);
            }
        }
    munmap(nothing, 4096);
}

/* A mask of which LLVM knows some lanes, for a load with a fill, one without, and a store, of full registers and of
 * more. The accessed memory is followed by an inaccessible page. */
typedef struct PartlyKnown {
    const char *type;
    unsigned bytes, lanes;
} PartlyKnown;

static const char *partly_known_text(const PartlyKnown *shape, unsigned known) {
    static char text[2048];
    snprintf(text, sizeof text,
             "func phase machine @part(%%x: ptr<global>, %%y: ptr<global>, %%z: ptr<global>, %%n: i64, %4$s) {\n"
             "  %%zero = const {value = 0} : i64\n  %%known = const {value = %1$u} : i64\n"
             "  %%first = mask_lt %%zero, %%known : vec<%2$u x bool>\n"
             "  %%lane = iota {axis = 0} : vec<%2$u x i64>\n  %%limit = splat %%n : vec<%2$u x i64>\n"
             "  %%below = lt %%lane, %%limit : vec<%2$u x bool>\n"
             "  %%none = const {value = false} : vec<%2$u x bool>\n"
             "  %%m = select %%first, %%below, %%none : vec<%2$u x bool>\n"
             "  %%fill = splat %%zero : vec<%2$u x i64>\n  %%filled = convert %%fill : vec<%2$u x %3$s>\n"
             "  %%p = load %%x, %%m {parts = [mask]} : vec<%2$u x %3$s>\n"
             "  %%q = load %%x, %%m, %%filled {parts = [mask, fill]} : vec<%2$u x %3$s>\n"
             "  %%same = eq %%p, %%q : vec<%2$u x bool>\n"
             "  %%w = select %%same, %%p, %%q : vec<%2$u x %3$s>\n"
             "  store %%q, %%y\n  store %%w, %%z, %%m {parts = [mask]}\n  return\n}\n",
             known, shape->lanes, shape->type, PARAMETERS);
    return text;
}

/* `ends`: the addresses at which x and z have to end. */
static void check_partly_known(const PartlyKnown *shape, unsigned known, const TileTarget *target,
                               char *const ends[2]) {
    enum { MOST_LANES = 64, MOST_BYTES = MOST_LANES * 8 };
    static const unsigned char zeros[MOST_BYTES];
    Compiled compiled = compile_text(partly_known_text(shape, known), target);
    Entry entry = find_entry(&compiled, "part");
    for (unsigned n = 0; n <= shape->lanes; n++) {
        unsigned live = (n < known ? n : known) * shape->bytes, all = shape->lanes * shape->bytes;
        unsigned char y[MOST_BYTES];
        char *x = ends[0] - live, *z = ends[1] - live;
        memset(x, 0x3f, live);
        memset(z, 0x55, live);
        memset(y, 0x55, sizeof y);
        entry((uint64_t[]){SLOT(x), SLOT(y), SLOT(z), n}, 0, 1, NULL);
        bool right = memcmp(y, x, live) == 0 && memcmp(z, x, live) == 0 && memcmp(y + live, zeros, all - live) == 0;
        cr_assert(right, "%s, %u x %s, %u known, n = %u", target->name, shape->lanes, shape->type, known, n);
    }
    release_compiled(&compiled);
}

Test(memory, masks_known_in_part_touch_only_their_lanes) {
    static const PartlyKnown types[] = {{"i8", 1, 0}, {"f16", 2, 0}, {"i32", 4, 0}, {"f32", 4, 0}, {"f64", 8, 0}};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    cr_assert_eq(mprotect(pages + page, page, PROT_NONE), 0);
    cr_assert_eq(mprotect(pages + 3 * page, page, PROT_NONE), 0);
    for (TARGETS(target))
        for (unsigned t = 0; t < sizeof types / sizeof types[0]; t++)
            for (unsigned lanes = 2; lanes <= 32; lanes *= 4)
                for (unsigned known = 0; known <= lanes; known += lanes < 8 ? 1 : lanes / 4) {
                    PartlyKnown shape = {types[t].type, types[t].bytes, lanes};
                    check_partly_known(&shape, known, *target, (char *[]){pages + page, pages + 3 * page});
                }
    munmap(pages, 4 * page);
}

Test(memory, masks_of_every_width) {
    static const unsigned widths[] = {2, 4, 8, 16, 32, 64, 128};
    for (unsigned w = 0; w < sizeof widths / sizeof widths[0]; w++) {
        char text[512];
        unsigned lanes = widths[w];
        snprintf(text, sizeof text,
                 "func phase machine @mask(%%base: i64, %%limit: i64, %%y: ptr<global>, %s) {\n"
                 "  %%m = mask_lt %%base, %%limit : vec<%u x bool>\n  store %%m, %%y\n  return\n}\n",
                 PARAMETERS, lanes);
        for (TARGETS(target)) {
            Compiled compiled = compile_text(text, *target);
            Entry entry = find_entry(&compiled, "mask");
            for (int64_t base = -70; base <= 130; base += 5)
                for (int64_t limit = -3; limit <= 131; limit++) {
                    unsigned char y[128];
                    entry((uint64_t[]){(uint64_t)base, (uint64_t)limit, SLOT(y)}, 0, 1, NULL);
                    for (unsigned lane = 0; lane < lanes; lane++)
                        cr_assert_eq(y[lane], base + (int64_t)lane < limit, "%u lanes, %ld < %ld", lanes, base, limit);
                }
            release_compiled(&compiled);
        }
    }
}

Test(memory, fill_is_scalar_or_vector) {
    static const char text[] =
        "func phase machine @fill(%x: ptr<global>, %y: ptr<global>, %m: ptr<global>, " PARAMETERS ") {\n"
        "  %mask = load %m : vec<8 x bool>\n"
        "  %f = const {value = 7} : i16\n"
        "  %g = splat %f : vec<8 x i16>\n"
        "  %a = load %x, %mask, %f {parts = [mask, fill]} : vec<8 x i16>\n"
        "  %b = load %x, %mask, %g {parts = [mask, fill]} : vec<8 x i16>\n"
        "  %c = add %a, %b : vec<8 x i16>\n"
        "  store %c, %y\n"
        "  return\n}\n";
    for (TARGETS(target)) {
        Compiled compiled = compile_text(text, *target);
        int16_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8];
        unsigned char m[8] = {1, 0, 0, 1, 1, 0, 1, 0};
        find_entry(&compiled, "fill")((uint64_t[]){SLOT(x), SLOT(y), SLOT(m)}, 0, 1, NULL);
        for (int i = 0; i < 8; i++) cr_expect_eq(y[i], m[i] ? 2 * x[i] : 14);
        release_compiled(&compiled);
    }
}

Test(memory, scalar_masks_are_branches) {
    static const char text[] = "func phase machine @one(%x: ptr<global>, %y: ptr<global>, %m: bool, " PARAMETERS ") {\n"
                               "  %f = const {value = -5.0} : f64\n"
                               "  %a = load %x, %m, %f {parts = [mask, fill]} : f64\n"
                               "  store %a, %y\n"
                               "  %eight = const {value = 8} : i64\n"
                               "  %z = ptr_add %y, %eight : ptr<global>\n"
                               "  store %a, %z, %m {parts = [mask]}\n"
                               "  return\n}\n";
    for (TARGETS(target)) {
        Compiled compiled = compile_text(text, *target);
        Entry entry = find_entry(&compiled, "one");
        double x = 3, y[2] = {0, 0};
        entry((uint64_t[]){0, SLOT(y), 0}, 0, 1, NULL);
        cr_expect(y[0] == -5 && y[1] == 0, "masked off, NULL is not read");
        entry((uint64_t[]){SLOT(&x), SLOT(y), 1}, 0, 1, NULL);
        cr_expect(y[0] == 3 && y[1] == 3);
        release_compiled(&compiled);
    }
}

Test(memory, gather_and_scatter) {
    static const char text[] =
        "func phase machine @pick(%x: ptr<global>, %y: ptr<global>, %o: ptr<global>, %m: ptr<global>, " PARAMETERS
        ") {\n"
        "  %offsets = load %o : vec<8 x i64>\n"
        "  %mask = load %m : vec<8 x bool>\n"
        "  %f = const {value = 9.0} : f32\n"
        "  %a = gather %x, %offsets : vec<8 x f32>\n"
        "  %b = gather %x, %offsets, %mask, %f {parts = [mask, fill]} : vec<8 x f32>\n"
        "  %s = add %a, %b : vec<8 x f32>\n"
        "  scatter %s, %y, %offsets, %mask {parts = [mask]}\n"
        "  return\n}\n"
        "func phase machine @all(%v: ptr<global>, %y: ptr<global>, %o: ptr<global>, " PARAMETERS ") {\n"
        "  %offsets = load %o : vec<8 x i64>\n"
        "  %a = load %v : vec<8 x bool>\n"
        "  %n = not %a : vec<8 x bool>\n"
        "  scatter %n, %y, %offsets\n"
        "  return\n}\n";
    for (TARGETS(target)) {
        Compiled compiled = compile_text(text, *target);
        float x[8] = {0, 10, 20, 30, 40, 50, 60, 70}, y[8] = {0};
        int64_t offsets[8] = {28, 24, 20, 16, 12, 8, 4, 0};
        unsigned char m[8] = {1, 1, 0, 1, 0, 1, 1, 1};
        find_entry(&compiled, "pick")((uint64_t[]){SLOT(x), SLOT(y), SLOT(offsets), SLOT(m)}, 0, 1, NULL);
        for (int lane = 0; lane < 8; lane++) cr_expect_eq(y[7 - lane], m[lane] ? 2 * x[7 - lane] : 0);
        /* Lanes with equal addresses: the last one is stored. */
        unsigned char bools[8] = {1, 1, 1, 1, 1, 1, 1, 0}, out[3] = {7, 7, 7};
        int64_t same[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        find_entry(&compiled, "all")((uint64_t[]){SLOT(bools), SLOT(out), SLOT(same)}, 0, 1, NULL);
        cr_expect(out[0] == 7 && out[1] == 1 && out[2] == 7);
        release_compiled(&compiled);
    }
}

Test(memory, scratch_streams_and_prefetches) {
    static const char text[] =
        "func phase machine @turn(%x: ptr<global>, %y: ptr<global>, " PARAMETERS ") {\n"
        "  %c1 = const {value = 1} : i64\n"
        "  %c64 = const {value = 64} : i64\n"
        "  for %begin, %end, %c1 (%i: i64) {\n"
        "    %o = mul %i, %c64 : i64\n"
        "    %p = ptr_add %x, %o : ptr<global>\n"
        "    %q = ptr_add %y, %o : ptr<global>\n"
        "    prefetch %p {cache = l2}\n"
        "    %v = load %p : vec<16 x f32>\n"
        "    %w = shuffle %v, %v {axes = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]} : vec<16 x f32>\n"
        "    %at = ptr_add %scratch, %c64 : ptr<scratch>\n"
        "    store %w, %at {align = 64}\n"
        "    %u = load %at {align = 64} : vec<16 x f32>\n"
        "    store %u, %q {align = 64, cache = stream}\n"
        "    yield\n"
        "  }\n"
        "  return\n}\n";
    for (TARGETS(target)) {
        Compiled compiled = compile_text(text, *target);
        _Alignas(64) float x[64], y[64] = {0};
        for (int i = 0; i < 64; i++) x[i] = (float)i;
        _Alignas(64) char scratch[128];
        find_entry(&compiled, "turn")((uint64_t[]){SLOT(x), SLOT(y)}, 1, 3, scratch);
        for (int i = 0; i < 64; i++) cr_expect_eq(y[i], i / 16 == 1 || i / 16 == 2 ? x[i / 16 * 16 + 15 - i % 16] : 0);
        release_compiled(&compiled);
        TileCode assembly = emit_text(text, *target, NULL, TILE_CODE_ASSEMBLY);
        cr_expect(strstr(assembly.data, "vmovntps") && strstr(assembly.data, "sfence"), "%s", assembly.data);
        cr_expect(strstr(assembly.data, "prefetcht1"));
        tile_code_release(&assembly);
    }
}

/* Scalars of every type are passed in slots, and bf16 and f8 in registers without conversion. */
Test(memory, slots_carry_every_scalar) {
    static const struct {
        const char *type;
        uint64_t bits;
        size_t bytes;
    } rows[] = {{"bool", 1, 1},           {"i8", 0x80, 1},
                {"u16", 0xfffe, 2},       {"i32", 0x80000001, 4},
                {"i64", ~UINT64_C(0), 8}, {"f16", 0x7e01, 2},
                {"bf16", 0x7f81, 2},      {"f8e4m3", 0x7e, 1},
                {"f32", 0x7fa00001, 4},   {"f64", 0x8000000000000001, 8}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "func phase machine @s(%%v: %s, %%y: ptr<global>, %s) {\n  store %%v, %%y\n  return\n}\n",
                 rows[i].type, PARAMETERS);
        Compiled compiled = compile_text(text, &avx2);
        uint64_t y = 0;
        find_entry(&compiled, "s")((uint64_t[]){rows[i].bits, SLOT(&y)}, 0, 1, NULL);
        cr_expect_eq(y, rows[i].bits, "%s: %#lx", rows[i].type, y);
        release_compiled(&compiled);
    }
}

Test(memory, constants_keep_their_bits) {
    static const char text[] = "func phase machine @c(%y: ptr<global>, " PARAMETERS ") {\n"
                               "  %a = const {value = bits(0x7fc12345)} : f32\n"
                               "  %b = const {value = bits(0xffa00001)} : vec<8 x f32>\n"
                               "  %c = iota : vec<8 x i16>\n"
                               "  %d = const {value = true} : vec<8 x bool>\n"
                               "  %o4 = const {value = 4} : i64\n"
                               "  %o36 = const {value = 36} : i64\n"
                               "  %o52 = const {value = 52} : i64\n"
                               "  store %a, %y\n"
                               "  %p = ptr_add %y, %o4 : ptr<global>\n  store %b, %p\n"
                               "  %q = ptr_add %y, %o36 : ptr<global>\n  store %c, %q\n"
                               "  %r = ptr_add %y, %o52 : ptr<global>\n  store %d, %r\n"
                               "  return\n}\n";
    Compiled compiled = compile_text(text, &avx2);
    unsigned char y[64];
    memset(y, 0xee, sizeof y);
    find_entry(&compiled, "c")((uint64_t[]){SLOT(y)}, 0, 1, NULL);
    uint32_t words[9];
    uint16_t numbers[8];
    memcpy(words, y, sizeof words);
    memcpy(numbers, y + 36, sizeof numbers);
    cr_expect_eq(words[0], 0x7fc12345u);
    for (int i = 0; i < 8; i++) {
        cr_expect_eq(words[1 + i], 0xffa00001u);
        cr_expect_eq(numbers[i], i);
        cr_expect_eq(y[52 + i], 1);
    }
    cr_expect_eq(y[60], 0xee);
    release_compiled(&compiled);
}
