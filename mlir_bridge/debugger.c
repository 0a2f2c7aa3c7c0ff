/* The interface is two symbols of the process: a list of objects, and a function in which a debugger stops to read what
 * changed. They are LLVM's, which exports them for its own code, so that a process with several compilers has one list
 * (docs/adr/0082). */
#include "mlir_bridge/debugger.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct Entry Entry;
struct Entry {
    Entry *next, *previous;
    const char *object;
    uint64_t size;
};

typedef enum Action { ACTION_NONE, ACTION_REGISTER, ACTION_UNREGISTER } Action;

typedef struct Descriptor {
    uint32_t version, action;
    Entry *relevant, *first;
} Descriptor;

extern Descriptor descriptor __asm__("__jit_debug_descriptor");
extern void stop_debugger(void) __asm__("__jit_debug_register_code");

struct BridgeShown {
    Entry entry;
    _Alignas(8) char object[];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The linker may have merged the function with others that do nothing: a debugger that stops in one of those finds no
 * action. */
static void tell(Action action, Entry *entry) {
    descriptor.action = action;
    descriptor.relevant = entry;
    stop_debugger();
    descriptor.action = ACTION_NONE;
    descriptor.relevant = NULL;
}

tile_status bridge_show(const void *object, size_t size, const TilePlace *places, size_t count, BridgeShown **result,
                        TileText *message) {
    BridgeShown *shown = malloc(sizeof *shown + size);
    if (!shown) return TILE_OUT_OF_MEMORY;
    memcpy(shown->object, object, size);
    tile_status status = tile_object_place(shown->object, size, places, count, message);
    if (status != TILE_OK) return free(shown), status;
    shown->entry = (Entry){.object = shown->object, .size = size};
    pthread_mutex_lock(&mutex);
    shown->entry.next = descriptor.first;
    if (descriptor.first) descriptor.first->previous = &shown->entry;
    descriptor.first = &shown->entry;
    tell(ACTION_REGISTER, &shown->entry);
    pthread_mutex_unlock(&mutex);
    *result = shown;
    return TILE_OK;
}

void bridge_hide(BridgeShown *shown) {
    if (!shown) return;
    Entry *entry = &shown->entry;
    pthread_mutex_lock(&mutex);
    if (entry->next) entry->next->previous = entry->previous;
    *(entry->previous ? &entry->previous->next : &descriptor.first) = entry->next;
    tell(ACTION_UNREGISTER, entry);
    pthread_mutex_unlock(&mutex);
    free(shown);
}
