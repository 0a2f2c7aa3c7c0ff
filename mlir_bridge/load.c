/* Loads relocatable objects as callable code. Each object has its own ORC session: that takes 0.5 ms, beside 20 ms of
 * compilation, and releasing it releases everything, independently of other objects. */
#include "mlir_bridge/load.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "llvm-c/Core.h"
#include "llvm-c/Error.h"
#include "llvm-c/LLJIT.h"
#include "llvm-c/Orc.h"
#include "mlir_bridge/context.h"
#include "mlir_bridge/debugger.h"

/* The code is in its own library beside the session's main one, which would resolve names to any symbols of the
 * process. */
struct TileLoaded {
    LLVMOrcLLJITRef jit;
    LLVMOrcJITDylibRef code;
    BridgeShown *shown; /* to debuggers; or NULL */
};

static void complain(LLVMErrorRef error, TileText *message) {
    char *text = LLVMGetErrorMessage(error);
    tile_text_format(message, "%sthe object cannot be loaded: %s", message->length ? "; " : "", text);
    LLVMDisposeErrorMessage(text);
}

/* Errors are reported by the calls that fail; ORC would print them, too. */
static void be_silent(void *context, LLVMErrorRef error) { LLVMConsumeError(error); }

static LLVMOrcCSymbolMapPair function(LLVMOrcLLJITRef jit, const char *name, uintptr_t address) {
    LLVMJITSymbolFlags flags = {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0};
    return (LLVMOrcCSymbolMapPair){LLVMOrcLLJITMangleAndIntern(jit, name), {address, flags}};
}

/* The functions that LLVM may generate calls of. */
static LLVMErrorRef define_runtime(TileLoaded *loaded) {
    LLVMOrcCSymbolMapPair functions[] = {
        function(loaded->jit, "memcpy", (uintptr_t)memcpy),
        function(loaded->jit, "memmove", (uintptr_t)memmove),
        function(loaded->jit, "memset", (uintptr_t)memset),
    };
    LLVMOrcMaterializationUnitRef unit = LLVMOrcAbsoluteSymbols(functions, sizeof functions / sizeof functions[0]);
    LLVMErrorRef error = LLVMOrcJITDylibDefine(loaded->code, unit);
    if (error) LLVMOrcDisposeMaterializationUnit(unit);
    return error;
}

static LLVMErrorRef add_object(TileLoaded *loaded, const void *object, size_t size) {
    LLVMErrorRef error = LLVMOrcCreateLLJIT(&loaded->jit, NULL);
    if (error) return error;
    LLVMOrcExecutionSessionRef session = LLVMOrcLLJITGetExecutionSession(loaded->jit);
    LLVMOrcExecutionSessionSetErrorReporter(session, be_silent, NULL);
    loaded->code = LLVMOrcExecutionSessionCreateBareJITDylib(session, "code");
    error = define_runtime(loaded);
    if (error) return error;
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, size, "object");
    return LLVMOrcLLJITAddObjectFile(loaded->jit, loaded->code, buffer);
}

tile_status tile_object_load(const void *object, size_t size, TileLoaded **result, TileText *message) {
    *result = NULL;
    bridge_initialise_llvm();
    TileLoaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded) return TILE_OUT_OF_MEMORY;
    LLVMErrorRef error = add_object(loaded, object, size);
    if (error) {
        complain(error, message);
        tile_loaded_release(loaded);
        return TILE_BACKEND;
    }
    *result = loaded;
    return TILE_OK;
}

typedef struct Answer {
    sem_t ready;
    LLVMErrorRef error;
    void *address;
} Answer;

static void take_answer(LLVMErrorRef error, LLVMOrcCSymbolMapPairs found, size_t count, void *context) {
    Answer *answer = context;
    answer->error = error;
    if (!error && count) answer->address = (void *)(uintptr_t)found[0].Sym.Address;
    sem_post(&answer->ready);
}

tile_status tile_loaded_find(const TileLoaded *loaded, const char *name, void **address, TileText *message) {
    Answer answer = {0};
    sem_init(&answer.ready, 0, 0);
    LLVMOrcCJITDylibSearchOrderElement place = {loaded->code, LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly};
    LLVMOrcCLookupSetElement symbol = {LLVMOrcLLJITMangleAndIntern(loaded->jit, name),
                                       LLVMOrcSymbolLookupFlagsRequiredSymbol};
    LLVMOrcExecutionSessionLookup(LLVMOrcLLJITGetExecutionSession(loaded->jit), LLVMOrcLookupKindStatic, &place, 1,
                                  &symbol, 1, take_answer, &answer);
    while (sem_wait(&answer.ready) != 0) {
    }
    sem_destroy(&answer.ready);
    *address = answer.address;
    if (!answer.error) return TILE_OK;
    complain(answer.error, message);
    return TILE_BACKEND;
}

tile_status tile_loaded_show(TileLoaded *loaded, const void *object, size_t size, const TilePlace *places, size_t count,
                             TileText *message) {
    return bridge_show(object, size, places, count, &loaded->shown, message);
}

void tile_loaded_release(TileLoaded *loaded) {
    if (!loaded) return;
    bridge_hide(loaded->shown);
    if (loaded->jit) LLVMConsumeError(LLVMOrcDisposeLLJIT(loaded->jit));
    free(loaded);
}
