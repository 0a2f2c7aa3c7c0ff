/* The loader: symbols, several objects, invalid files. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

static const char text[] = "func phase machine @first(%y: ptr<global>, " PARAMETERS ") {\n"
                           "  %v = iota : vec<16 x i32>\n  store %v, %y\n  return\n}\n"
                           "func phase machine @second(%y: ptr<global>, " PARAMETERS ") {\n"
                           "  %v = const {value = 2.5} : f32\n  store %v, %y\n  return\n}\n";

static tile_status load_bytes(const char *bytes, size_t size, TileLoaded **loaded) {
    TileArena *arena = tile_arena_create(NULL);
    TileText message = {.arena = arena};
    tile_status status = tile_object_load(bytes, size, loaded, &message);
    cr_expect_eq(status == TILE_OK, message.length == 0);
    tile_arena_destroy(arena);
    return status;
}

/* NULL, and a message, if it is not found. */
static void *find(const TileLoaded *loaded, const char *name) {
    TileArena *arena = tile_arena_create(NULL);
    TileText message = {.arena = arena};
    void *address;
    tile_status status = tile_loaded_find(loaded, name, &address, &message);
    cr_expect_eq(status == TILE_OK, address != NULL);
    cr_expect_eq(status == TILE_OK, message.length == 0);
    tile_arena_destroy(arena);
    return address;
}

Test(load, finds_symbols) {
    TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_OBJECT);
    TileLoaded *loaded;
    cr_assert_eq(load_bytes(code.data, code.size, &loaded), TILE_OK);
    memset(code.data, 0xcc, code.size);
    tile_code_release(&code);
    cr_expect_null(find(loaded, "third"));
    Entry first = (Entry)find(loaded, "first"), second = (Entry)find(loaded, "second");
    cr_assert(first && second);
    cr_expect_null(find(loaded, "first.body"));
    cr_expect_null(find(loaded, "printf"));
    int32_t numbers[16];
    first((uint64_t[]){SLOT(numbers)}, 0, 1, NULL);
    for (int i = 0; i < 16; i++) cr_expect_eq(numbers[i], i);
    float value = 0;
    second((uint64_t[]){SLOT(&value)}, 0, 1, NULL);
    cr_expect_eq(value, 2.5f);
    tile_loaded_release(loaded);
    tile_loaded_release(NULL);
}

/* Two objects with the same symbols are independent, and can be unloaded in any order. */
Test(load, objects_are_apart) {
    TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_OBJECT);
    TileLoaded *loaded[3];
    for (int i = 0; i < 3; i++) cr_assert_eq(load_bytes(code.data, code.size, &loaded[i]), TILE_OK);
    tile_code_release(&code);
    void *address[3];
    for (int i = 0; i < 3; i++) address[i] = find(loaded[i], "second");
    cr_expect(address[0] != address[1] && address[1] != address[2] && address[0] != address[2]);
    tile_loaded_release(loaded[1]);
    float value = 0;
    ((Entry)address[0])((uint64_t[]){SLOT(&value)}, 0, 1, NULL);
    tile_loaded_release(loaded[0]);
    ((Entry)address[2])((uint64_t[]){SLOT(&value)}, 0, 1, NULL);
    cr_expect_eq(value, 2.5f);
    tile_loaded_release(loaded[2]);
}

Test(load, other_files_are_refused) {
    TileLoaded *loaded;
    _Alignas(8) char bytes[256] = "This is no object at all.";
    cr_expect_eq(load_bytes(bytes, sizeof bytes, &loaded), TILE_BACKEND);
    cr_expect_null(loaded);
    TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_OBJECT);
    cr_expect_eq(load_bytes(code.data, code.size / 2, &loaded), TILE_BACKEND);
    tile_code_release(&code);
}
