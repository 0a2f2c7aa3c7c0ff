/* Records the results of this machine's GPU for the vectors of tests/gpu/vectors.c. Needs the driver, no toolkit.
 *
 *    tile_record_vectors >tests/gpu/vectors.txt
 *
 * A line for each vector: case, data, number, then the result words of lanes 0 to 31, in hexadecimal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/cuda.h"
#include "tests/gpu/vectors.h"

enum { PTX_BYTES = 1 << 14, WORDS = VECTOR_LANES * VECTOR_MOST_WORDS, SKIPPED = 77 };

typedef struct Recorder {
    void *in, *out; /* on the device */
    TileError error;
} Recorder;

/* A kernel that loads each lane's words, executes the instruction and stores its results. */
static void write_ptx(const VectorCase *item, char *ptx) {
    char *at = ptx, *end = ptx + PTX_BYTES;
    at += snprintf(at, (size_t)(end - at),
                   ".version 8.4\n.target sm_%u\n.address_size 64\n"
                   ".visible .entry vector(.param .u64 in, .param .u64 out) .reqntid 32\n{\n"
                   ".shared .align 16 .b8 shared[512];\n.reg .b32 %%i<12>, %%o<4>, %%s, %%a, %%l;\n.reg .b64 %%p<4>;\n"
                   "mov.u32 %%l, %%tid.x;\nmov.u32 %%s, shared;\nld.param.u64 %%p0, [in];\nld.param.u64 %%p1, [out];\n"
                   "mad.wide.u32 %%p0, %%l, %d, %%p0;\nmad.wide.u32 %%p1, %%l, %d, %%p1;\n",
                   item->capability, 4 * VECTOR_MOST_WORDS, 4 * VECTOR_MOST_WORDS);
    for (unsigned i = 0; i < item->in; i++)
        at += snprintf(at, (size_t)(end - at), "ld.global.b32 %%i%u, [%%p0+%u];\n", i, 4 * i);
    at += snprintf(at, (size_t)(end - at), "%s\n", item->ptx);
    for (unsigned i = 0; i < item->out; i++)
        at += snprintf(at, (size_t)(end - at), "st.global.b32 [%%p1+%u], %%o%u;\n", 4 * i, i);
    snprintf(at, (size_t)(end - at), "ret;\n}\n");
}

static bool record(Recorder *recorder, const VectorCase *item, void *kernel, VectorData data, unsigned number) {
    static const char *const names[] = {"bits", "integers", "numbers", "specials"};
    uint32_t in[VECTOR_LANES][VECTOR_MOST_WORDS], out[VECTOR_LANES][VECTOR_MOST_WORDS];
    void *parameters[] = {&recorder->in, &recorder->out};
    TileError *error = &recorder->error;
    vector_make(item, data, number, in);
    if (tile_device_write(0, recorder->in, in, sizeof in, error) != TILE_OK) return false;
    int result = tile_cuda_driver()->launch(kernel, 1, 1, 1, VECTOR_LANES, 1, 1, 0, NULL, parameters, NULL);
    if (tile_cuda_check(result, item->name, error) != TILE_OK ||
        tile_device_read(0, out, recorder->out, sizeof out, error) != TILE_OK)
        return false;
    printf("%s %s %u", item->name, names[data], number);
    for (unsigned lane = 0; lane < VECTOR_LANES; lane++)
        for (unsigned i = 0; i < item->out; i++) printf(" %x", out[lane][i]);
    printf("\n");
    return true;
}

/* Data movement gets arbitrary bits; products get numbers, and some vectors with NaN and infinity; arithmetic also gets
 * special values. */
static bool record_case(Recorder *recorder, const VectorCase *item) {
    enum { MOVES = 31, PERMUTATIONS = 3, PRODUCTS = 2, LANES = 6 };
    char *ptx = malloc(PTX_BYTES);
    void *library, *kernel;
    if (!ptx) return false;
    write_ptx(item, ptx);
    int result = tile_cuda_driver()->library_load(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    free(ptx);
    if (tile_cuda_check(result, item->name, &recorder->error) != TILE_OK) return false;
    result = tile_cuda_driver()->library_kernel(&kernel, library, "vector");
    bool good = tile_cuda_check(result, item->name, &recorder->error) == TILE_OK, moves = item->type == VECTOR_B32,
         lanes = item->type == VECTOR_F32;
    unsigned count = lanes ? LANES : !moves ? PRODUCTS : item->parameter == VECTOR_LANES ? PERMUTATIONS : MOVES;
    for (unsigned i = 0; i < count && good; i++) {
        if (moves) good = record(recorder, item, kernel, VECTOR_BITS, i);
        if (lanes) good = record(recorder, item, kernel, VECTOR_SPECIALS, i);
        if (!moves && good) good = record(recorder, item, kernel, VECTOR_INTEGERS, i);
        if (!moves && good) good = record(recorder, item, kernel, VECTOR_NUMBERS, i);
        if (!moves && good) good = record(recorder, item, kernel, VECTOR_BITS, i);
    }
    tile_cuda_driver()->library_unload(library);
    return good;
}

int main(void) {
    Recorder recorder = {0};
    TileCudaScope scope;
    const char *why_not = tile_cuda_why_not();
    if (why_not) {
        fprintf(stderr, "tile_record_vectors: %s\n", why_not);
        return SKIPPED;
    }
    bool good = tile_cuda_enter(0, NULL, &scope, &recorder.error) == TILE_OK &&
                tile_device_allocate(0, WORDS * sizeof(uint32_t), &recorder.in, &recorder.error) == TILE_OK &&
                tile_device_allocate(0, WORDS * sizeof(uint32_t), &recorder.out, &recorder.error) == TILE_OK;
    unsigned capability = (unsigned)tile_cuda_capability(0);
    for (unsigned i = 0; i < vector_case_count && good; i++)
        if (vector_cases[i].capability <= capability) good = record_case(&recorder, &vector_cases[i]);
    tile_device_release(0, recorder.in);
    tile_device_release(0, recorder.out);
    tile_cuda_leave(&scope);
    if (!good) fprintf(stderr, "tile_record_vectors: %s\n", recorder.error.message);
    return good ? 0 : 1;
}
