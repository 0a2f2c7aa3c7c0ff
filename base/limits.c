#include "base/limits.h"

#include <string.h>

static const struct {
    const char *name, *words;
} table[TILE_LIMIT_COUNT] = {
#define LIMIT(id, name, usual, counts) {name, counts},
#include "base/limits.def"
#undef LIMIT
};

const TileLimits tile_usual_limits = {{
#define LIMIT(id, name, usual, counts) usual,
#include "base/limits.def"
#undef LIMIT
}};

const char *tile_limit_name(TileLimitId id) { return table[id].name; }
const char *tile_limit_words(TileLimitId id) { return table[id].words; }

bool tile_limit_find(const char *name, size_t length, TileLimitId *id) {
    for (int i = 0; i < TILE_LIMIT_COUNT; i++) {
        if (strlen(table[i].name) != length || memcmp(table[i].name, name, length) != 0) continue;
        *id = (TileLimitId)i;
        return true;
    }
    return false;
}
