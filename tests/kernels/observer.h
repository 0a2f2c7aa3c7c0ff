/* An observer for the interpreter, for tests that compile the same with and without: results must not change. */
#ifndef TILE_TESTS_OBSERVER_H
#define TILE_TESTS_OBSERVER_H

#include "driver/compile/compile.h"
#include "lang/execute/execute.h"

typedef struct Observing {
    TileExecutionObserver observer;
    uint64_t seen;
} Observing;

/* Looks at all that an observer may read. */
static bool observer_look(void *host, const TileExecutor *executor, const TileOp *statement) {
    uint64_t *seen = host;
    for (uint32_t i = 0; i < statement->operand_count; i++) {
        const TileValue *value = tile_op_operand(statement, i);
        const uint8_t *poison;
        int64_t extent[TILE_MAX_TENSOR_RANK] = {0};
        if (value->type->kind == TILE_TYPE_TENSOR)
            tile_executor_extents(executor, value, extent);
        else
            *seen += *tile_executor_lanes(executor, value, &poison);
    }
    return true;
}

static void observer_fail(void *host, const TileExecutor *executor, TileExecution state) { *(uint64_t *)host += state; }

/* Of what is compiled and run from now on; `observing` lives as long. */
static inline void observe(Observing *observing, TileCompiler *compiler, bool on) {
    *observing = (Observing){.observer = {observer_look, observer_fail, &observing->seen}};
    tile_compiler_observe(compiler, on ? &observing->observer : NULL);
}

#endif
