#include "launch/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "launch/overlap.h"

/* Adds "a = 1, b = 2" to the text. */
static void list_values(char *text, size_t size, const TileHostNamed *named, uint32_t count, const uint64_t *values) {
    for (uint32_t i = 0; i < count; i++) {
        char value[40];
        size_t length = strlen(text);
        tile_host_print(value, sizeof value, named[i].type, values[named[i].value]);
        snprintf(text + length, size - length, "%s%s = %s", i ? ", " : "", named[i].name, value);
    }
}

/* softmax: y: dimension 1 (N) is 512, but x has N = 1024
 * swiglu: x: dimension 1 is 7, expected 2 * N = 8 with N = 4
 * conv: wt: dimension 0 is 5, expected 3 */
static tile_status refuse_dimension(const TileImageSignature *signature, const TileImageDimension *check, int64_t given,
                                    const uint64_t *values, tile_status found, TileError *error) {
    const char *name = signature->parameters[check->parameter].name;
    int64_t expected = (int64_t)values[check->expected];
    if (check->origin >= 0)
        return tile_error_add(error, found, TILE_INVALID_ARGUMENT,
                              "%s: %s: dimension %d (%s) is %" PRId64 ", but %s has %s = %" PRId64, signature->name,
                              name, check->axis, check->text, given, signature->parameters[check->origin].name,
                              check->text, expected);
    char plain[24], with[512] = "";
    snprintf(plain, sizeof plain, "%" PRId64, expected);
    list_values(with, sizeof with, check->named, check->named_count, values);
    bool literal = strcmp(plain, check->text) == 0;
    return tile_error_add(error, found, TILE_INVALID_ARGUMENT,
                          "%s: %s: dimension %d is %" PRId64 ", expected %s%s%s%s%s", signature->name, name,
                          check->axis, given, literal ? "" : check->text, literal ? "" : " = ", plain,
                          with[0] ? " with " : "", with);
}

tile_status tile_check_dimensions(const TileImageSignature *signature, const TileImageCode *code, const TileView *views,
                                  const uint64_t *values, TileError *error) {
    tile_status found = TILE_OK;
    for (uint32_t i = 0; i < code->dimension_count; i++) {
        const TileImageDimension *check = &code->dimensions[i];
        int64_t given = views[check->parameter].extent[check->axis];
        if (given == (int64_t)values[check->expected]) continue;
        tile_status before = found;
        found = refuse_dimension(signature, check, given, values, found, error);
        tile_error_about(error, before, check->parameter, TILE_ERROR_EXTENT);
    }
    return found;
}

tile_status tile_check_requires(const TileImageSignature *signature, const TileImageCode *code, const uint64_t *values,
                                TileError *error) {
    tile_status found = TILE_OK;
    for (uint32_t i = 0; i < code->require_count; i++) {
        const TileImageRequire *require = &code->requires[i];
        if (values[require->condition]) continue;
        char with[512] = "";
        list_values(with, sizeof with, require->named, require->named_count, values);
        tile_status before = found;
        found = tile_error_add(error, found, TILE_INVALID_ARGUMENT, "%s: requires %s%s%s", signature->name,
                               require->text, with[0] ? ", but " : "", with);
        tile_error_about(error, before, -1, TILE_ERROR_REQUIRE);
    }
    return found;
}

static tile_status check_pair(const TileImageSignature *signature, const TileView *views, uint32_t written,
                              uint32_t other, tile_status found, TileError *error) {
    TileOverlap overlap = tile_views_overlap(&views[written], &views[other]);
    if (overlap == TILE_OVERLAP_NONE) return found;
    return tile_error_add(error, found, TILE_INVALID_ARGUMENT, "%s: %s: %s memory with %s, but the kernel writes it",
                          signature->name, signature->parameters[written].name,
                          overlap == TILE_OVERLAP_SHARED ? "shares" : "cannot be shown not to share",
                          signature->parameters[other].name);
}

static tile_status check_written(const TileImageSignature *signature, const TileView *views, uint32_t written,
                                 tile_status found, TileError *error) {
    TileOverlap self = tile_view_overlaps_itself(&views[written]);
    if (self != TILE_OVERLAP_NONE)
        found =
            tile_error_add(error, found, TILE_INVALID_ARGUMENT, "%s: %s: %s share memory, but the kernel writes them",
                           signature->name, signature->parameters[written].name,
                           self == TILE_OVERLAP_SHARED ? "some elements" : "elements cannot be shown not to");
    for (uint32_t k = 0; k < signature->parameter_count; k++) {
        /* checked from k */
        bool both_written = k < written && signature->parameters[k].access != TILE_PARAMETER_IN;
        bool allowed = (signature->overlap >> written & 1) && (signature->overlap >> k & 1);
        if (k == written || !views[k].tensor || both_written || allowed) continue;
        found = check_pair(signature, views, written, k, found, error);
    }
    return found;
}

tile_status tile_check_overlap(const TileImageSignature *signature, const TileView *views, TileError *error) {
    tile_status found = TILE_OK;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        tile_status before = found;
        if (!views[i].tensor || signature->parameters[i].access == TILE_PARAMETER_IN) continue;
        found = check_written(signature, views, i, found, error);
        if (found != TILE_OK) tile_error_about(error, before, (int)i, TILE_ERROR_OVERLAP);
    }
    return found;
}
