/* The loader on sound, damaged and hostile objects. */
#include <elf.h>
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

Test(load, finds_symbols) {
    TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_OBJECT);
    TileLoaded *loaded;
    cr_assert_eq(load_bytes(code.data, code.size, &loaded), TILE_OK);
    memset(code.data, 0xcc, code.size);
    tile_code_release(&code);
    Entry first = (Entry)tile_loaded_find(loaded, "first"), second = (Entry)tile_loaded_find(loaded, "second");
    cr_assert(first && second);
    cr_expect_null(tile_loaded_find(loaded, "third"));
    cr_expect_null(tile_loaded_find(loaded, "first.body"));
    int32_t numbers[16];
    first((uint64_t[]){SLOT(numbers)}, 0, 1, NULL);
    for (int i = 0; i < 16; i++) cr_expect_eq(numbers[i], i);
    float value = 0;
    second((uint64_t[]){SLOT(&value)}, 0, 1, NULL);
    cr_expect_eq(value, 2.5f);
    tile_loaded_release(loaded);
    tile_loaded_release(NULL);
}

Test(load, every_truncation_is_refused_or_sound) {
    TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_OBJECT);
    for (size_t size = 0; size < code.size; size++) {
        char *copy = malloc(size ? size : 1);
        memcpy(copy, code.data, size);
        TileLoaded *loaded;
        if (load_bytes(copy, size, &loaded) == TILE_OK) tile_loaded_release(loaded);
        free(copy);
    }
    tile_code_release(&code);
}

/* Random damage to the tables: the loader may refuse or load, but stays within the bytes that it was given. */
Test(load, damaged_objects) {
    TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_OBJECT);
    uint64_t state = 1;
    char *copy = malloc(code.size);
    for (int round = 0; round < 4000; round++) {
        memcpy(copy, code.data, code.size);
        for (int k = 0; k < 4; k++) copy[next_random(&state) % code.size] = (char)next_random(&state);
        TileLoaded *loaded;
        if (load_bytes(copy, code.size, &loaded) == TILE_OK) tile_loaded_release(loaded);
    }
    free(copy);
    tile_code_release(&code);
}

Test(load, other_files_are_refused) {
    TileLoaded *loaded;
    _Alignas(8) char bytes[256] = "This is no object at all.";
    cr_expect_eq(load_bytes(bytes, sizeof bytes, &loaded), TILE_BACKEND);
    cr_expect_null(loaded);
    TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_OBJECT);
    ((Elf64_Ehdr *)(void *)code.data)->e_machine = EM_AARCH64;
    cr_expect_eq(load_bytes(code.data, code.size, &loaded), TILE_BACKEND);
    tile_code_release(&code);
}
