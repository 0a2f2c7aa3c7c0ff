#include "granted.h"

#include <stdlib.h>
#include <string.h>

#include "launch/guard.h"
#include "launch/variants.h"

typedef struct Granted {
    TileLibrary *library;
    TileImageSource inner;
    Grant grant;
} Granted;

static void make_facts(const Granted *granted, const TileImageSignature *signature, TileImageRequest *request) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        const TileImageParameter *parameter = &signature->parameters[i];
        request->facts[i] = 0;
        if (granted->grant == GRANT_NOTHING || parameter->kind != TILE_PARAMETER_TENSOR) continue;
        request->facts[i] =
            TILE_GUARD_ALIGN | TILE_GUARD_NARROW | TILE_GUARD_DISJOINT | UINT64_MAX << TILE_GUARD_EXTENTS;
        if (parameter->rank) request->facts[i] |= tile_guard_dimension(parameter->rank - 1u, TILE_GUARD_STRIDE_UNIT);
    }
}

/* Alignments and divisors of extents are withdrawn together with the lower ones: each bit implies those below it. */
static uint64_t with_group(uint64_t wrong, uint64_t truth) {
    uint64_t groups[] = {TILE_GUARD_ALIGN, UINT64_MAX << TILE_GUARD_EXTENTS};
    for (int i = 0; i < 2; i++)
        if (wrong & groups[i]) wrong |= groups[i] & ~truth;
    return wrong;
}

static tile_status compile(void *state, uint32_t kernel, const TileImageRequest *request, TileImageCode **code,
                           TileReport **report) {
    const Granted *granted = state;
    const TileImageSignature *signature = granted->library->kernels[kernel].signature;
    TileImageRequest other = *request;
    make_facts(granted, signature, &other);
    for (;;) {
        uint64_t untrue = 0;
        TILE_TRY(granted->inner.compile(granted->inner.state, kernel, &other, code, report));
        for (uint32_t i = 0; i < signature->parameter_count; i++) {
            uint64_t wrong = (*code)->need[i] & ~request->facts[i];
            other.facts[i] &= ~with_group(wrong, request->facts[i]);
            untrue |= wrong;
        }
        if (!untrue) break;
        (*code)->destroy(*code);
    }
    memset((*code)->asked, 0, sizeof(*code)->asked);
    return TILE_OK;
}

static void destroy(void *state) {
    Granted *granted = state;
    granted->inner.destroy(granted->inner.state);
    free(granted);
}

bool grant_to_library(TileLibrary *library, Grant grant) {
    if (grant == GRANT_TRUTH) return true;
    Granted *granted = malloc(sizeof *granted);
    if (!granted) return false;
    *granted = (Granted){library, library->source, grant};
    library->source.compile = compile;
    library->source.destroy = destroy;
    library->source.choose = NULL;
    library->source.state = granted;
    return true;
}
