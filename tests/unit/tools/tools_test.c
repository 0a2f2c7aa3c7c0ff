#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/array.h"
#include "tools/npy.h"
#include "tools/source.h"

static TileText words(void) { return (TileText){.arena = tile_arena_create(NULL)}; }

static float at(const TileArray *array, int64_t i, int64_t j) {
    return *(const float *)(array->data + i * array->stride[0] + j * array->stride[1]);
}

static TileArray counting(int64_t rows, int64_t columns) {
    TileText error = words();
    TileArray array;
    cr_assert_eq(tile_array_create(&array, TILE_F32, 2, (int64_t[]){rows, columns}, &error), TILE_OK);
    for (int64_t i = 0; i < rows * columns; i++) ((float *)array.data)[i] = (float)i;
    return array;
}

Test(array, views_follow_python) {
    TileText error = words();
    TileArray array = counting(6, 10), view = array;
    cr_assert_eq(tile_array_view(&view, "[::2, ::-1]", &error), TILE_OK);
    cr_assert_eq(view.extent[0], 3);
    cr_assert_eq(view.extent[1], 10);
    cr_assert_eq(at(&view, 1, 0), 29);
    cr_assert_eq(at(&view, 2, 9), 40);
    view = array;
    cr_assert_eq(tile_array_view(&view, "[1:-1,-3:].T", &error), TILE_OK);
    cr_assert_eq(view.extent[0], 3);
    cr_assert_eq(view.extent[1], 4);
    cr_assert_eq(at(&view, 2, 3), 49);
    view = array;
    cr_assert_eq(tile_array_view(&view, "[-1]*[3,:]", &error), TILE_OK);
    cr_assert_eq(view.rank, 2);
    cr_assert_eq(view.stride[0], 0);
    cr_assert_eq(at(&view, 2, 4), 54);
    view = array;
    cr_assert_eq(tile_array_view(&view, "[8:2]", &error), TILE_OK);
    cr_assert_eq(view.extent[0], 0);
    tile_array_release(&array);
}

Test(array, wrong_views_are_told) {
    static const char *const wrong[] = {"[",
                                        "[1",
                                        "[a]",
                                        "[9]",
                                        "[-7]",
                                        "[::0]",
                                        "[0,0,0]",
                                        ".X",
                                        "*[3]",
                                        "*[:,:,:]",
                                        "*[-1,:,:]",
                                        "x",
                                        "[::99999999999999999999]",
                                        "[:]]",
                                        "*[4611686018427387904,:,:]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        TileText error = words();
        TileArray array = counting(6, 10), view = array;
        cr_assert_neq(tile_array_view(&view, wrong[i], &error), TILE_OK, "%s", wrong[i]);
        cr_assert_gt(error.length, 0);
        tile_array_release(&array);
    }
}

Test(array, counts_do_not_overflow) {
    cr_assert_eq(tile_array_count(TILE_F32, 2, (int64_t[]){INT64_MAX, 2}), -1);
    cr_assert_eq(tile_array_count(TILE_F64, 1, (int64_t[]){INT64_MAX / 4}), -1);
    cr_assert_eq(tile_array_count(TILE_F64, 2, (int64_t[]){INT64_MAX / 16, 0}), 0);
    cr_assert_eq(tile_array_count(TILE_F64, 0, NULL), 1);
}

/* ---- .npy ---- */

static char *path_in(char *directory, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static char *make_directory(void) {
    static char directory[64];
    snprintf(directory, sizeof directory, "%s/tile-tools-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    cr_assert_not_null(mkdtemp(directory));
    return directory;
}

Test(npy, what_is_written_reads_back) {
    char *directory = make_directory();
    TileText error = words();
    TileArray array = counting(7, 5), view = array, back;
    cr_assert_eq(tile_array_view(&view, ".T[::-1]", &error), TILE_OK);
    TileReplacement writer;
    cr_assert_eq(tile_npy_write(&writer, path_in(directory, "a.npy"), &view, &error), TILE_OK);
    cr_assert_neq(access(path_in(directory, "a.npy"), F_OK), 0, "it has no name before it is committed");
    cr_assert_eq(tile_replacement_commit(&writer, &error), TILE_OK);
    cr_assert_eq(tile_npy_read(path_in(directory, "a.npy"), TILE_SCALAR_COUNT, &back, &error), TILE_OK, "%s",
                 tile_text_get(&error));
    cr_assert_eq(back.rank, 2);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 7; j++) cr_assert_eq(at(&back, i, j), at(&view, i, j));
    tile_array_release(&back);
    cr_assert_neq(tile_npy_read(path_in(directory, "a.npy"), TILE_F64, &back, &error), TILE_OK);
    tile_array_release(&array);
}

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* A file of the given version and dictionary, with `data` bytes after the header. */
static tile_status read_made(char version, const char *dictionary, size_t data, TileScalar named, TileArray *array,
                             TileText *error) {
    char *directory = make_directory(), bytes[4096] = "\x93NUMPY";
    size_t length = strlen(dictionary), prefix = version == 1 ? 10 : 12;
    bytes[6] = version;
    bytes[8] = (char)(length & 0xff);
    bytes[9] = (char)(length >> 8);
    memcpy(bytes + prefix, dictionary, length);
    char *path = path_in(directory, "made.npy");
    write_file(path, bytes, prefix + length + data);
    return tile_npy_read(path, named, array, error);
}

Test(npy, versions_orders_and_types) {
    TileText error = words();
    TileArray array;
    for (char version = 1; version <= 3; version++) {
        /* The data begin at a multiple of 4, so they are used in place, in Fortran order. */
        char dictionary[128];
        int padding = (4 - (int)((version == 1 ? 10 : 12) + 58) % 4) % 4;
        snprintf(dictionary, sizeof dictionary, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }%*s",
                 padding, "");
        cr_assert_eq(strlen(dictionary), 58 + (size_t)padding);
        cr_assert_eq(read_made(version, dictionary, 24, TILE_SCALAR_COUNT, &array, &error), TILE_OK, "%s",
                     tile_text_get(&error));
        cr_assert_eq(array.stride[0], 4);
        cr_assert_eq(array.stride[1], 8);
        tile_array_release(&array);
    }
    cr_assert_eq(
        read_made(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }", 10, TILE_BF16, &array, &error),
        TILE_OK);
    cr_assert_eq(array.scalar, TILE_BF16);
    tile_array_release(&array);
    cr_assert_eq(
        read_made(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 8, TILE_SCALAR_COUNT, &array, &error),
        TILE_OK);
    cr_assert_eq(array.rank, 0);
    tile_array_release(&array);
    cr_assert_eq(read_made(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4), }", 0, TILE_SCALAR_COUNT,
                           &array, &error),
                 TILE_OK);
    tile_array_release(&array);
}

Test(npy, hostile_files_are_refused) {
    static const struct {
        char version;
        const char *dictionary;
        size_t data;
        tile_status status;
    } files[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 23, TILE_IO},
        {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", 24, TILE_INVALID_ARGUMENT},
        {1, "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }", 48, TILE_INVALID_ARGUMENT},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 3), }", 24, TILE_IO},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 24, TILE_IO},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 24, TILE_IO},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 24, TILE_IO},
        {1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", 24, TILE_IO},
        {1, "{'descr': '<f4', 'shape': (2,), }", 24, TILE_IO},
        {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 24, TILE_IO},
        {1, "{'descr': '<f4", 24, TILE_IO},
        {1, "", 24, TILE_IO},
        {4, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 24, TILE_IO},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        TileText error = words();
        TileArray array;
        cr_assert_eq(read_made(files[i].version, files[i].dictionary, files[i].data, TILE_SCALAR_COUNT, &array, &error),
                     files[i].status, "file %zu", i);
        cr_assert_gt(error.length, 10);
    }
}

/* Every prefix and many mutations of a valid file are read without invalid accesses. */
Test(npy, cut_and_changed_files) {
    char *directory = make_directory();
    char good[256] = "\x93NUMPY\x01", path[256];
    const char *dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    good[8] = (char)strlen(dictionary);
    memcpy(good + 10, dictionary, strlen(dictionary));
    size_t size = 10 + strlen(dictionary) + 24;
    snprintf(path, sizeof path, "%s", path_in(directory, "cut.npy"));
    for (size_t cut = 0; cut <= size; cut++) {
        TileText error = words();
        TileArray array;
        write_file(path, good, cut);
        tile_status status = tile_npy_read(path, TILE_SCALAR_COUNT, &array, &error);
        cr_assert_eq(status == TILE_OK, cut == size, "cut at %zu", cut);
        if (status == TILE_OK) tile_array_release(&array);
        tile_arena_destroy(error.arena);
    }
    unsigned state = 1;
    for (int round = 0; round < 3000; round++) {
        char changed[256];
        memcpy(changed, good, sizeof changed);
        for (int i = 0; i < 2; i++) {
            state = state * 1664525u + 1013904223u;
            changed[(state >> 8) % size] = (char)(state >> 24);
        }
        TileText error = words();
        TileArray array;
        write_file(path, changed, size);
        if (tile_npy_read(path, TILE_SCALAR_COUNT, &array, &error) == TILE_OK) tile_array_release(&array);
        tile_arena_destroy(error.arena);
    }
}

Test(npy, a_failed_write_leaves_nothing) {
    TileText error = words();
    TileArray array = counting(2, 2);
    TileReplacement writer;
    cr_assert_eq(tile_npy_write(&writer, "/no/such/folder/a.npy", &array, &error), TILE_IO);
    cr_assert_eq(tile_npy_write(&writer, "/dev/full", &array, &error), TILE_IO);
    struct stat info;
    cr_assert_eq(stat("/dev/full", &info), 0);
    cr_assert(S_ISCHR(info.st_mode), "the device is still one");
    tile_array_release(&array);
}

/* ---- sources ---- */

Test(source, every_form) {
    TileText error = words();
    TileSource source;
    cr_assert_eq(tile_source_parse("dir.npy/a.npy:bf16[::2].T", &source, &error), TILE_OK);
    cr_assert_str_eq(source.path, "dir.npy/a.npy");
    cr_assert_eq(source.type, TILE_BF16);
    cr_assert_str_eq(source.suffix, "[::2].T");
    cr_assert_eq(tile_source_parse("a.npy*[3,:]", &source, &error), TILE_OK);
    cr_assert_str_eq(source.suffix, "*[3,:]");
    cr_assert_eq(tile_source_parse("@:f32[3]", &source, &error), TILE_OK);
    cr_assert_eq(source.kind, TILE_SOURCE_DISCARD);
    cr_assert_eq(tile_source_parse("randint:i32[9](-5,7)", &source, &error), TILE_OK);
    cr_assert_eq(source.lo, -5);
    cr_assert_eq(source.hi, 7);
    TileArray base, view;
    cr_assert_eq(tile_source_load(&source, 1, 2, &base, &view, &error), TILE_OK);
    for (int i = 0; i < 9; i++) {
        int32_t value = ((int32_t *)view.data)[i];
        cr_assert(value >= -5 && value < 7);
    }
    tile_array_release(&base);
}

Test(source, wrong_forms_are_told) {
    static const char *const wrong[] = {"",
                                        "a",
                                        "rand:",
                                        "rand:f32",
                                        "rand:f33[2]",
                                        "rand:f32[2",
                                        "rand:f32[-1]",
                                        "rand:f32[2][9]",
                                        "randint:i32[2]",
                                        "randint:i32[2](3,3)",
                                        "randint:i32[2](1,",
                                        "rand:f32[9999999999,9999999999]",
                                        "rand:f32[1,1,1,1,1,1,1,1,1]",
                                        "a.npy:q7"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        TileText error = words();
        TileSource source;
        TileArray base, view;
        tile_status status = tile_source_parse(wrong[i], &source, &error);
        if (status == TILE_OK) status = tile_source_load(&source, 0, 0, &base, &view, &error);
        cr_assert_neq(status, TILE_OK, "%s", wrong[i]);
        cr_assert_gt(error.length, 0, "%s", wrong[i]);
    }
}

Test(source, random_numbers_stay_below_one_and_repeat) {
    static const char *const sources[] = {"rand:f32[5000]", "rand:f16[5000]", "rand:bf16[5000]", "rand:f64[5000]"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        TileText error = words();
        TileSource source;
        TileArray base, view, again, again_view;
        cr_assert_eq(tile_source_parse(sources[i], &source, &error), TILE_OK);
        cr_assert_eq(tile_source_load(&source, 3, 0, &base, &view, &error), TILE_OK);
        cr_assert_eq(tile_source_load(&source, 3, 0, &again, &again_view, &error), TILE_OK);
        cr_assert_eq(memcmp(view.data, again_view.data, base.storage_size), 0);
        if (source.type == TILE_F32)
            for (int k = 0; k < 5000; k++) cr_assert(((float *)view.data)[k] >= 0 && ((float *)view.data)[k] < 1);
        tile_array_release(&base);
        tile_array_release(&again);
    }
}
