/* Merging of objects: names, references between inputs, and invalid inputs. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "object/merge.h"
#include "object/share.h"
#include "support.h"

static const char sevens[] = "func phase machine @k.0(%y: ptr<global>, " PARAMETERS ") {\n"
                             "  %v = const {value = 7} : i32\n  store %v, %y\n  return\n}\n";
static const char eights[] = "func phase machine @k.0(%y: ptr<global>, " PARAMETERS ") {\n"
                             "  %v = const {value = 8} : i32\n  store %v, %y\n  return\n}\n";

static tile_status merge(const TileMergeInput *inputs, size_t count, TileCode *merged, const char *word) {
    TileArena *arena = tile_arena_create(NULL);
    TileText message = {.arena = arena};
    tile_status status = tile_objects_merge(inputs, count, merged, &message);
    cr_expect(strstr(tile_text_get(&message), word), "'%s' is not in '%s'", word, tile_text_get(&message));
    tile_arena_destroy(arena);
    return status;
}

/* The value that the function stores. */
static int32_t result_of(const TileCode *object, const char *name) {
    TileArena *arena = tile_arena_create(NULL);
    TileText message = {.arena = arena};
    TileLoaded *loaded;
    void *address = NULL;
    int32_t result = 0;
    cr_assert_eq(tile_object_load(object->data, object->size, &loaded, &message), TILE_OK);
    if (tile_loaded_find(loaded, name, &address, &message) == TILE_OK) {
        uint64_t slots[] = {SLOT(&result)};
        Entry entry;
        memcpy(&entry, &address, sizeof entry);
        entry(slots, 0, 1, NULL);
    }
    tile_loaded_release(loaded);
    tile_arena_destroy(arena);
    return result;
}

Test(merge, names_tell_inputs_apart) {
    TileCode a = emit_text(sevens, &avx2, NULL, TILE_CODE_OBJECT), b = emit_text(eights, &avx2, NULL, TILE_CODE_OBJECT);
    const TileMergeName seven = {"k.0", "seven"}, eight = {"k.0", "eight"};
    TileMergeInput inputs[] = {{.object = a.data, .size = a.size, .names = &seven, .name_count = 1},
                               {.object = b.data, .size = b.size, .names = &eight, .name_count = 1}};
    TileCode merged, again;
    cr_assert_eq(merge(inputs, 2, &merged, ""), TILE_OK);
    cr_assert_eq(merge(inputs, 2, &again, ""), TILE_OK);
    cr_assert(merged.size == again.size && memcmp(merged.data, again.data, merged.size) == 0);
    if (*usable_targets()) {
        cr_expect_eq(result_of(&merged, "seven"), 7);
        cr_expect_eq(result_of(&merged, "eight"), 8);
        cr_expect_eq(result_of(&merged, "k.0"), 0, "the old name is gone");
    }
    tile_code_release(&again);
    inputs[1].hides = true;
    cr_assert_eq(merge(inputs, 2, &again, ""), TILE_OK);
    if (*usable_targets()) {
        cr_expect_eq(result_of(&again, "seven"), 7);
        cr_expect_eq(result_of(&again, "eight"), 0, "it is local now");
    }
    tile_code_release(&again);
    TileMergeInput whole = {.object = merged.data, .size = merged.size};
    cr_assert_eq(merge(&whole, 1, &again, ""), TILE_OK);
    if (*usable_targets()) cr_expect_eq(result_of(&again, "eight"), 8, "a result can be merged again");
    tile_code_release(&again);
    tile_code_release(&merged);
    inputs[1].names = &seven;
    cr_assert_eq(merge(inputs, 2, &merged, "two kernels would have the symbol `seven`"), TILE_INVALID_ARGUMENT);
    cr_assert_null(merged.data);
    tile_code_release(&a);
    tile_code_release(&b);
}

Test(merge, inputs_that_are_none) {
    TileCode code = emit_text(sevens, &avx2, NULL, TILE_CODE_OBJECT), merged;
    char *copy = malloc(code.size);
    for (size_t size = 0; size < code.size; size += size < 80 ? 1 : 37) {
        char *cut = malloc(size + 1);
        memcpy(cut, code.data, size);
        TileMergeInput input = {.object = cut, .size = size};
        cr_assert_eq(merge(&input, 1, &merged, "objects cannot be merged"), TILE_BACKEND, "cut to %zu", size);
        free(cut);
    }
    memcpy(copy, code.data, code.size);
    ((Elf64_Ehdr *)(void *)copy)->e_machine = EM_AARCH64;
    TileMergeInput inputs[] = {{.object = code.data, .size = code.size}, {.object = copy, .size = code.size}};
    cr_assert_eq(merge(inputs, 2, &merged, "different machines"), TILE_BACKEND);
    TileArena *arena = tile_arena_create(NULL);
    TileText message = {.arena = arena};
    TileCode other = {copy, code.size}, shared;
    TileShareOptions options = {.name = "k.so", .needed = "libtile_launch.so.0"};
    cr_assert_eq(tile_object_share(&other, &options, &shared, &message), TILE_UNSUPPORTED);
    cr_assert_not_null(strstr(message.text, "x86-64 only"));
    tile_arena_destroy(arena);
    free(copy);
    tile_code_release(&code);
}
