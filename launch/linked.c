/* Kernels of linked objects: the image becomes a library when it is first used, with all its variants ready. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "launch/cuda.h"
#include "launch/guard.h"
#include "launch/image_bytes.h"
#include "launch/replay.h"
#include "launch/report.h"
#include "launch/stay.h"
#include "tile/linked.h"

/* All other members are the image's. */
static void unload_code(TileImageCode *code) { tile_cuda_module_destroy(code->gpu); }
static void destroy_arena(void *arena) { tile_arena_destroy(arena); }

static bool make_module(TileImageVariant *given) {
    const TileImageBinary *binary = given->binary;
    if (!binary) return true;
    TileCudaPhase *phases = calloc(binary->entry_count + 1u, sizeof *phases);
    if (!phases) return false;
    for (uint32_t i = 0; i < binary->entry_count; i++) {
        const TileImageEntry *entry = &binary->entries[i];
        phases[i] = (TileCudaPhase){.symbol = entry->symbol,
                                    .threads = entry->threads,
                                    .shared_bytes = given->code.phases[i].scratch_bytes,
                                    .waits = entry->waits != 0,
                                    .resident = entry->resident != 0,
                                    .map_count = entry->map_count,
                                    .maps = entry->maps};
    }
    given->code.gpu = tile_cuda_module_borrow(binary, phases, binary->entry_count);
    free(phases);
    return given->code.gpu != NULL;
}

static bool add_variant(TileKernel *kernel, TileImageVariant *given) {
    TileVariant *variant = calloc(1, sizeof *variant);
    if (!variant) return false;
    variant->next = atomic_load(&kernel->variants);
    variant->code = &given->code;
    variant->code->destroy = unload_code;
    atomic_store(&variant->state, TILE_VARIANT_READY);
    atomic_store(&kernel->variants, variant);
    variant->costs = calloc(given->code.phase_count + 1u, sizeof *variant->costs);
    return variant->costs && make_module(given);
}

/* In the order of the image: the list of variants grows at its head. */
static bool add_variants(TileKernel *kernel, const TileImageKernel *image, uint32_t target) {
    for (uint32_t i = image->variant_count; i-- > 0;) {
        TileImageVariant *given = (TileImageVariant *)&image->variants[i];
        if (given->target == target && !add_variant(kernel, given)) return false;
    }
    return true;
}

/* Variants for GPUs are sorted by capability, better targets first; one is chosen when the tensors' device is known. */
static bool add_all_variants(TileKernel *kernel, const TileImage *image, const TileImageKernel *made) {
    bool good = true;
    for (uint32_t target = 0; target < image->target_count && good; target++) good = add_variants(kernel, made, target);
    return good;
}

/* A replayed launch must not use less specialised code than a new one would: each variant counts as having asked for
 * all facts that any of them relies on. */
static void note_questions(TileKernel *kernel) {
    uint64_t asked[TILE_MAX_PARAMETERS] = {0};
    uint32_t count = kernel->signature->parameter_count;
    for (TileVariant *v = atomic_load(&kernel->variants); v; v = v->next)
        for (uint32_t i = 0; i < count; i++) asked[i] |= v->code->need[i];
    for (uint32_t i = 0; i < count; i++)
        if (kernel->signature->gpu && (asked[i] & TILE_GUARD_MAP)) atomic_store(&kernel->maps, true);
    for (TileVariant *v = atomic_load(&kernel->variants); v; v = v->next) {
        memcpy(v->code->asked, asked, count * sizeof *asked);
        memcpy(v->request.facts, v->code->need, count * sizeof *asked);
    }
}

static void find_twin(TileLibrary *library, const TileImage *image, uint32_t number) {
    const char *symbol = image->kernels[number].symbol;
    for (uint32_t i = 0; i < number; i++)
        if (strcmp(image->kernels[i].symbol, symbol) == 0) library->kernels[i].twin = &library->kernels[number];
}

static bool has_gpu_code(const TileImage *image) {
    return image->kernel_count && image->kernels[image->kernel_count - 1].signature.gpu;
}

/* The best CPU target that runs here, unless there is code of one that is faster; image->target_count if none does. */
static uint32_t choose_target(const TileImage *image) {
    uint32_t best = image->target_count;
    while (best-- > 0 && tile_cpu_why_not(image->targets[best])) {
    }
    if (best == UINT32_MAX) return image->target_count;
    const char *faster = tile_cpu_surpassed_by(image->targets[best]);
    for (uint32_t i = 0; faster && i < best; i++)
        if (strcmp(image->targets[i], faster) == 0) return i;
    return best;
}

static tile_status refuse_cpu(const TileImage *image, TileError *error) {
    char targets[256] = "";
    for (uint32_t i = 0; i < image->target_count; i++) {
        size_t length = strlen(targets);
        snprintf(targets + length, sizeof targets - length, "%s%s (%s)", i ? ", " : "", image->targets[i],
                 tile_cpu_why_not(image->targets[i]));
    }
    return tile_error_set(error, TILE_UNAVAILABLE, "%s: the linked object has no code that can run here; it has: %s",
                          image->kernel_count ? image->kernels[0].signature.name : "", targets);
}

static tile_status read_image(TileArena *arena, const TileLinked *object, TileImage *image,
                              TileImageSignature **signatures) {
    jmp_buf guard;
    if (setjmp(guard)) return TILE_OUT_OF_MEMORY;
    tile_arena_set_guard(arena, &guard);
    TILE_TRY(tile_image_read(arena, object->image, object->image_bytes, (const TilePhaseEntry *)object->entries,
                             object->entry_count, image));
    *signatures = TILE_NEW_ARRAY(arena, TileImageSignature, image->kernel_count);
    for (uint32_t i = 0; i < image->kernel_count; i++) (*signatures)[i] = image->kernels[i].signature;
    tile_arena_set_guard(arena, NULL);
    return TILE_OK;
}

/* Takes ownership of the arena on success: *arena is then NULL. */
static tile_status fill_library(TileArena **arena, const TileLinked *object, TileLibrary **library, TileError *error) {
    TileImage image;
    TileImageSignature *signatures;
    TILE_TRY(read_image(*arena, object, &image, &signatures));
    uint32_t target = choose_target(&image);
    if (target == image.target_count && !has_gpu_code(&image)) return refuse_cpu(&image, error);
    TileImageSource source = {.destroy = destroy_arena, .state = *arena};
    *arena = NULL;
    TILE_TRY(tile_library_create(signatures, image.kernel_count, source, library));
    for (uint32_t i = 0; i < image.kernel_count; i++) {
        TileKernel *kernel = &(*library)->kernels[i];
        bool gpu = image.kernels[i].signature.gpu;
        if (!(gpu ? add_all_variants(kernel, &image, &image.kernels[i])
                  : add_variants(kernel, &image.kernels[i], target)))
            return TILE_OUT_OF_MEMORY;
        note_questions(kernel);
        tile_replay_prepare(kernel);
        if (gpu) find_twin(*library, &image, i);
    }
    return TILE_OK;
}

static tile_status create_library(const TileLinked *object, TileLibrary **library, TileError *error) {
    *library = NULL;
    if (object->version != TILE_IMAGE_VERSION)
        return tile_error_set(error, TILE_UNSUPPORTED,
                              "the linked object was made for version %u of the image format, and this library knows "
                              "version %d: build it again with this library's tilec",
                              object->version, TILE_IMAGE_VERSION);
    TileError own = {.status = TILE_OK};
    TileArena *arena = tile_arena_create(NULL);
    tile_status status = arena ? fill_library(&arena, object, library, &own) : TILE_OUT_OF_MEMORY;
    tile_arena_destroy(status == TILE_OK ? NULL : arena);
    if (status == TILE_OK) return TILE_OK;
    tile_library_destroy(*library);
    *library = NULL;
    return tile_error_set(error, status, "%s", own.status ? own.message : tile_status_text(status));
}

/* The first thread to finish publishes its library; others drop theirs. */
static tile_status open_library(const TileLinked *object, TileLibrary **library, TileError *error) {
    _Atomic(void *) *state = (_Atomic(void *) *)object->state;
    *library = atomic_load_explicit(state, memory_order_acquire);
    if (*library) return TILE_OK;
    TILE_TRY(create_library(object, library, error));
    void *published = NULL;
    if (atomic_compare_exchange_strong(state, &published, *library)) return TILE_OK;
    tile_library_destroy(*library);
    *library = published;
    return TILE_OK;
}

/* The glue may have been written by another program than tilec, so it is checked. */
static bool is_object(const TileLinked *object) {
    return object && object->state && object->image && (object->entries || !object->entry_count);
}

tile_status tile_linked_kernel(const TileLinked *object, uint32_t kernel, TileKernel **result, TileError *error) {
    TileLibrary *library;
    if (!result || !is_object(object))
        return tile_error_set(error, TILE_INVALID_ARGUMENT, "what is linked is not what tilec build makes");
    int saved = errno;
    tile_status status = open_library(object, &library, error);
    errno = saved;
    if (status != TILE_OK) return status;
    TileKernel *found = tile_library_kernel_at(library, kernel);
    if (!found) return tile_error_set(error, TILE_NOT_FOUND, "the linked object has no kernel %u", kernel);
    *result = found;
    return TILE_OK;
}

static bool lie_on_gpu(const TileImageSignature *signature, const TileArg *arguments) {
    for (uint32_t i = 0; i < signature->parameter_count && arguments; i++)
        if (arguments[i].kind == TILE_ARG_TENSOR && arguments[i].value.tensor)
            return arguments[i].value.tensor->device.device_type == kDLCUDA;
    return false;
}

tile_status tile_linked_launch(const TileLinked *object, uint32_t kernel, const TileArg *arguments,
                               const TileLaunchOptions *given) {
    TileCall call;
    TileKernel *found = NULL;
    if (!tile_call_begin(&call, given)) return TILE_INVALID_ARGUMENT;
    TILE_TRY(tile_call_end(&call, tile_linked_kernel(object, kernel, &found, call.options.error)));
    if (found->twin && lie_on_gpu(found->signature, arguments)) found = found->twin;
    return tile_launch(found, arguments, found->signature->parameter_count, given);
}

void tile_linked_release(const TileLinked *object) {
    if (!object || !object->state || tile_process_ends()) return;
    _Atomic(void *) *state = (_Atomic(void *) *)object->state;
    tile_library_destroy(atomic_exchange(state, NULL));
}
