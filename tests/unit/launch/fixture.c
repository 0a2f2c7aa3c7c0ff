#define _GNU_SOURCE
#include "fixture.h"

#include "launch/guard.h"
#include "launch/report.h"

#include <stdlib.h>
#include <time.h>

const DLDataType f32_type = {kDLFloat, 32, 1}, f16_type = {kDLFloat, 16, 1}, f64_type = {kDLFloat, 64, 1},
                 i32_type = {kDLInt, 32, 1};

static const char *const matrix[] = {"M", "N"};
static const TileImageParameter row_copy_parameters[] = {
    {.name = "x",
     .type_text = "T",
     .dimensions = matrix,
     .kind = TILE_PARAMETER_TENSOR,
     .access = TILE_PARAMETER_IN,
     .rank = 2,
     .generic = 0},
    {.name = "y",
     .type_text = "T",
     .dimensions = matrix,
     .kind = TILE_PARAMETER_TENSOR,
     .access = TILE_PARAMETER_OUT,
     .rank = 2,
     .generic = 0},
};
static const TileImageGeneric row_copy_generics[] = {{"T", "f16 | f32", 1u << TILE_HOST_F16 | 1u << TILE_HOST_F32}};

const TileImageSignature row_copy = {.name = "row_copy",
                                     .text = "row_copy[T: f16 | f32](x: in T[M, N], y: out T[M, N])",
                                     .parameters = row_copy_parameters,
                                     .generics = row_copy_generics,
                                     .parameter_count = 2,
                                     .generic_count = 1};

/* slots: x, M, N, two strides; y, M, N, two strides. */
static void copy_rows(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    memset(scratch, 1, 256);
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < (int64_t)slots[2]; i++)
            memcpy((char *)slots[5] + row * (int64_t)slots[8] + i * (int64_t)slots[9],
                   (char *)slots[0] + row * (int64_t)slots[3] + i * (int64_t)slots[4], 4);
}

const TileImageCode *row_copy_code(void) {
    static const TileHostInstruction host[] = {
        {.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = 0},
        {.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = 1},
    };
    static const TileImageDimension dimensions[] = {
        {.parameter = 1, .axis = 0, .expected = 0, .text = "M", .origin = 0},
        {.parameter = 1, .axis = 1, .expected = 1, .text = "N", .origin = 0},
    };
    static const TileImagePhase phases[] = {{.entry = copy_rows, .scratch_bytes = 256, .rank = 1, .extents = {0}}};
    static const uint8_t order[] = {0, 1};
    static const TileImageCode code = {.host = host,
                                       .dimensions = dimensions,
                                       .phases = phases,
                                       .order = order,
                                       .host_count = 2,
                                       .dimension_count = 2,
                                       .phase_count = 1,
                                       .order_count = 2};
    return &code;
}

static void destroy_code(TileImageCode *code) { free(code); }

static tile_status compile(void *state, uint32_t kernel, const TileImageRequest *request, TileImageCode **code,
                           TileReport **report) {
    Compiler *compiler = state;
    (void)kernel;
    struct timespec delay = {0, compiler->delay_ms * 1000000L};
    atomic_store(&compiler->begun, true);
    if (compiler->delay_ms) nanosleep(&delay, NULL);
    atomic_fetch_add(&compiler->compiled, 1);
    pthread_mutex_lock(&compiler->mutex);
    compiler->last = *request;
    pthread_mutex_unlock(&compiler->mutex);
    if (compiler->status != TILE_OK) {
        if (compiler->message) *report = tile_report_from_text(compiler->message);
        return compiler->status;
    }
    TileImageCode *made = malloc(sizeof *made);
    if (!made) return TILE_OUT_OF_MEMORY;
    *made = *compiler->code;
    made->destroy = destroy_code;
    if (compiler->relies) memcpy(made->need, request->facts, sizeof made->need);
    if (compiler->relies) memset(made->asked, 0xff, sizeof made->asked);
    for (int i = 0; i < TILE_MAX_PARAMETERS && compiler->aligned; i++) {
        made->need[i] = request->facts[i] & TILE_GUARD_ALIGN;
        made->asked[i] = TILE_GUARD_ALIGN;
    }
    *code = made;
    return TILE_OK;
}

static void keep_state(void *state) { (void)state; }

TileLibrary *make_library(const TileImageSignature *signature, Compiler *compiler) {
    TileLibrary *library = NULL;
    TileImageSource source = {
        .compile = compile, .destroy = keep_state, .state = compiler, .settings = compiler->settings};
    return tile_library_create(signature, 1, source, &library) == TILE_OK ? library : NULL;
}

void make_tensor(Tensor *tensor, void *data, DLDataType type, int rank, const int64_t *shape, const int64_t *strides) {
    memset(tensor, 0, sizeof *tensor);
    for (int i = 0; i < rank; i++) tensor->shape[i] = shape[i];
    for (int i = 0; strides && i < rank; i++) tensor->strides[i] = strides[i];
    tensor->dl = (DLTensor){.data = data,
                            .device = {kDLCPU, 0},
                            .ndim = rank,
                            .dtype = type,
                            .shape = tensor->shape,
                            .strides = strides ? tensor->strides : NULL};
}
