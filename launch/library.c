/* Libraries, and what their kernels look like from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/host.h"
#include "launch/options.h"
#include "launch/settings.h"
#include "launch/variants.h"

tile_status tile_library_create(const TileImageSignature *signatures, uint32_t count, TileImageSource source,
                                TileLibrary **library) {
    TileLibrary *created = calloc(1, sizeof *created + count * sizeof *created->kernels);
    if (!created) {
        source.destroy(source.state);
        return TILE_OUT_OF_MEMORY;
    }
    created->source = source;
    if (!tile_settings_merge(&created->settings, source.settings)) {
        free(created);
        source.destroy(source.state);
        return TILE_INVALID_ARGUMENT;
    }
    created->kernel_count = count;
    for (uint32_t i = 0; i < count; i++) {
        TileKernel *kernel = &created->kernels[i];
        kernel->library = created;
        kernel->index = i;
        kernel->signature = &signatures[i];
        pthread_mutex_init(&kernel->mutex, NULL);
        pthread_cond_init(&kernel->changed, NULL);
    }
    *library = created;
    return TILE_OK;
}

/* Threads of the library may still be compiling. */
static void wait_for_compilers(TileKernel *kernel) {
    pthread_mutex_lock(&kernel->mutex);
    while (kernel->background) pthread_cond_wait(&kernel->changed, &kernel->mutex);
    pthread_mutex_unlock(&kernel->mutex);
}

static void release_kernel(TileKernel *kernel) {
    wait_for_compilers(kernel);
    TileVariant *variant = atomic_load(&kernel->variants);
    while (variant) {
        TileVariant *next = variant->next;
        if (variant->code) variant->code->destroy(variant->code);
        tile_report_destroy(variant->report);
        free(variant->costs);
        free(variant);
        variant = next;
    }
    free(atomic_load(&kernel->replays));
    pthread_cond_destroy(&kernel->changed);
    pthread_mutex_destroy(&kernel->mutex);
}

void tile_library_destroy(TileLibrary *library) {
    if (!library) return;
    for (uint32_t i = 0; i < library->kernel_count; i++) release_kernel(&library->kernels[i]);
    library->source.destroy(library->source.state);
    free(library);
}

void *tile_library_source(const TileLibrary *library) { return library->source.state; }
size_t tile_library_kernel_count(const TileLibrary *library) { return library ? library->kernel_count : 0; }

TileKernel *tile_library_kernel_at(const TileLibrary *library, size_t index) {
    return library && index < library->kernel_count ? (TileKernel *)&library->kernels[index] : NULL;
}

tile_status tile_library_kernel(const TileLibrary *library, const char *name, TileKernel **kernel) {
    if (!library || !kernel) return TILE_INVALID_ARGUMENT;
    uint32_t count = library->kernel_count;
    while (!name && count && library->kernels[count - 1].signature->exported) count--;
    if (!name && count != 1) return TILE_NOT_FOUND;
    for (uint32_t i = 0; i < count; i++) {
        if (name && strcmp(name, library->kernels[i].signature->name)) continue;
        *kernel = (TileKernel *)&library->kernels[i];
        return TILE_OK;
    }
    return TILE_NOT_FOUND;
}

const char *tile_kernel_name(const TileKernel *kernel) { return kernel ? kernel->signature->name : NULL; }
const char *tile_kernel_signature(const TileKernel *kernel) { return kernel ? kernel->signature->text : NULL; }

size_t tile_kernel_parameter_count(const TileKernel *kernel) { return kernel ? kernel->signature->parameter_count : 0; }

bool tile_kernel_parameter(const TileKernel *kernel, size_t index, TileParameterInfo *info) {
    if (!kernel || !info || index >= kernel->signature->parameter_count) return false;
    const TileImageParameter *parameter = &kernel->signature->parameters[index];
    *info = (TileParameterInfo){.name = parameter->name,
                                .kind = (TileParameterKind)parameter->kind,
                                .access = (TileParameterAccess)parameter->access,
                                .type = parameter->type_text,
                                .rank = parameter->rank};
    if (parameter->generic < 0) info->dtype = tile_host_type_dtype((TileHostType)parameter->type);
    for (int i = 0; i < parameter->rank; i++) info->dimensions[i] = parameter->dimensions[i];
    return true;
}

const char *tile_kernel_doc(const TileKernel *kernel) {
    return kernel && kernel->signature->doc ? kernel->signature->doc : "";
}

bool tile_kernel_prints(const TileKernel *kernel) { return kernel && kernel->signature->prints; }

bool tile_kernel_setting(const TileKernel *kernel, size_t index, TileSettingInfo *info) {
    _Static_assert((int)TILE_HOST_TYPE_COUNT <= (int)TILE_MAX_SETTING_TYPES, "a type parameter may allow all types");
    if (!kernel || !info || index >= kernel->signature->setting_count) return false;
    const TileImageSetting *setting = &kernel->signature->settings[index];
    TileSettingInfo own = {.struct_size = sizeof own,
                           .name = setting->name,
                           .kind = (TileSettingKind)setting->kind,
                           .allowed = setting->allowed,
                           .value = setting->value,
                           .otherwise = setting->otherwise,
                           .family = setting->family};
    for (int type = 0; type < TILE_HOST_TYPE_COUNT; type++)
        if (setting->types >> type & 1) own.types[own.type_count++] = tile_host_type_dtype((TileHostType)type);
    return tile_options_write(info, &own, sizeof own);
}

void tile_kernel_stats(const TileKernel *kernel, TileKernelStats *stats) {
    if (stats) *stats = (TileKernelStats){0};
    if (!kernel || !stats) return;
    uint64_t launches = atomic_load(&kernel->past_launches), cold = atomic_load(&kernel->cold);
    uint64_t timed = atomic_load(&kernel->timed_launches), timed_ns = atomic_load(&kernel->timed_guard_ns);
    for (TileVariant *v = atomic_load_explicit(&kernel->variants, memory_order_acquire); v; v = v->next)
        launches += atomic_load(&v->uses) / TILE_VARIANT_LAUNCH;
    *stats = (TileKernelStats){.launches = launches,
                               .misses = atomic_load(&kernel->misses),
                               .variants = atomic_load(&kernel->compiled),
                               .compile_ns = atomic_load(&kernel->compile_ns),
                               .evictions = atomic_load(&kernel->evicted)};
    stats->hits = launches > cold ? launches - cold : 0;
    stats->guard_ns = timed ? (uint64_t)((double)timed_ns / (double)timed * (double)stats->hits) : 0;
}

bool tile_kernel_is_gpu(const TileKernel *kernel) { return kernel && kernel->signature->gpu; }

tile_status tile_library_settings(const TileLibrary *library, TileSettings *settings) {
    if (!library) return TILE_INVALID_ARGUMENT;
    TileSettings own = library->settings;
    own.threads = tile_thread_pool_size(NULL);
    return tile_options_write(settings, &own, sizeof own) ? TILE_OK : TILE_INVALID_ARGUMENT;
}
