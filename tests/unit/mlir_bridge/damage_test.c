/* Damaged objects: whatever the bytes are, merging and sharing return a status, and there is no access out of bounds of
 * the object (which the sanitizers' build detects). */
#include <stdlib.h>
#include <string.h>

#include "object/merge.h"
#include "object/share.h"
#include "support.h"

enum { MUTANTS = 20000, MOST_CHANGES = 3 };

static const char kernel[] = "func phase machine @seven(%y: ptr<global>, " PARAMETERS ") {\n"
                             "  %v = const {value = 7.5} : f32\n  %x = load %y : f32\n  %z = mul %x, %v : f32\n"
                             "  store %z, %y\n  return\n}\n";

/* A kernel and a function that calls the launcher for it: relocations of every emitted type. */
static TileCode make_object(void) {
    TileCode code = emit_text(kernel, &avx2, NULL, TILE_CODE_OBJECT), glue, merged;
    const char *entries[] = {"seven"};
    const TileGlueParameter parameters[] = {{.is_tensor = true}};
    const TileGlueFunction functions[] = {{"run_seven", parameters, 1}};
    const TileGlue description = {.version = 1,
                                  .image = "image",
                                  .image_bytes = 5,
                                  .entries = entries,
                                  .entry_count = 1,
                                  .functions = functions,
                                  .function_count = 1,
                                  .plugin = true};
    TileBridge *bridge;
    cr_assert_eq(tile_bridge_create(&bridge), TILE_OK);
    cr_assert_eq(tile_bridge_emit_glue(bridge, &avx2, &description, &glue), TILE_OK, "%s", tile_bridge_message(bridge));
    TileArena *arena = tile_arena_create(NULL);
    TileText message = {.arena = arena};
    TileMergeInput inputs[] = {{.object = code.data, .size = code.size}, {.object = glue.data, .size = glue.size}};
    cr_assert_eq(tile_objects_merge(inputs, 2, &merged, &message), TILE_OK, "%s", tile_text_get(&message));
    tile_arena_destroy(arena);
    tile_code_release(&code);
    tile_code_release(&glue);
    tile_bridge_destroy(bridge);
    return merged;
}

/* Merges and shares; true if both succeed. `bytes` is a separate allocation, so that reads beyond its end are
 * detected. */
static bool accepts(const char *bytes, size_t size) {
    TileArena *arena = tile_arena_create(NULL);
    TileText message = {.arena = arena};
    TileCode copy = {malloc(size ? size : 1), size}, result;
    if (size) memcpy(copy.data, bytes, size);
    TileMergeInput input = {.object = copy.data, .size = copy.size};
    const TileShareOptions options = {"libdamage.so", "libtile_launch.so"};
    bool merged = tile_objects_merge(&input, 1, &result, &message) == TILE_OK;
    tile_code_release(&result);
    bool shared = tile_object_share(&copy, &options, &result, &message) == TILE_OK;
    tile_code_release(&result);
    cr_expect((merged && shared) || message.length, "an object is refused without a word");
    tile_code_release(&copy);
    tile_arena_destroy(arena);
    return merged && shared;
}

Test(damage, objects_that_end_early) {
    TileCode object = make_object();
    cr_expect(accepts(object.data, object.size));
    for (size_t size = 0; size < object.size; size++)
        cr_expect(!accepts(object.data, size), "%zu of %zu bytes are no object", size, object.size);
    tile_code_release(&object);
}

/* Changes a byte, or a word of a table to a number that is meaningful in tables. */
static void change(char *bytes, size_t size, uint64_t *state) {
    static const uint64_t numbers[] = {0, 1, 2, 7, 0xfff1, 0xffff, INT32_MAX, UINT64_MAX, UINT64_C(1) << 63};
    uint64_t random = next_random(state), at = random >> 8;
    unsigned width = 1u << (random >> 4 & 3);
    if (random & 1) {
        bytes[at % size] = (char)next_random(state);
    } else {
        memcpy(bytes + at % (size / 8) * 8 + (random >> 6 & (8 - width)), &numbers[(at >> 20) % 9], width);
    }
}

Test(damage, objects_with_other_bytes) {
    TileCode object = make_object();
    char *bytes = malloc(object.size);
    uint64_t state = 2026;
    unsigned refused = 0;
    for (unsigned i = 0; i < MUTANTS; i++) {
        memcpy(bytes, object.data, object.size);
        unsigned changes = 1 + i % MOST_CHANGES;
        for (unsigned k = 0; k < changes; k++) change(bytes, object.size, &state);
        refused += !accepts(bytes, object.size);
    }
    cr_expect(refused > MUTANTS / 20, "%u of %u are refused", refused, (unsigned)MUTANTS);
    free(bytes);
    tile_code_release(&object);
}
