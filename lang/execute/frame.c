/* Services for all instructions of the executor: stopping with a message, frames and activations, scratch memory,
 * lists, random numbers, integer operands. */
#include "lang/execute/execute.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"
#include "lang/ir/text.h"

/* ---- lists ---- */

void *tile_exec_grow(void *items, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return items;
    size_t wanted = *capacity ? *capacity * 2 : 32;
    void *larger = realloc(items, wanted * size);
    if (larger) *capacity = wanted;
    return larger;
}

/* ---- faults ---- */

static void print_place(const TileExecutor *e, const TileOp *op, TileText *text) {
    TileLocation at = op->location;
    const TileContext *context = e->func->module->context;
    if (at.line && at.file && at.file < context->files.count)
        tile_text_format(text, "%s:", context->files.items[at.file]);
    if (at.line) tile_text_format(text, "%u:%u: ", at.line, at.column);
}

void tile_exec_print_op(const TileExecutor *e, const TileOp *op, TileText *text) {
    print_place(e, op, text);
    tile_op_print(text, op, TILE_PRINT_NO_REGIONS);
}

static void say_where(TileExecutor *e, const TileOp *op) {
    print_place(e, op, &e->message);
    tile_text_add(&e->message, tile_op_func(op)->name);
    for (size_t i = 0; i < e->depth; i++) {
        const ExecFrame *frame = &e->frames[i];
        if (!frame->code || !frame->owner || frame->owner->op->id != TILE_OP_GRID) continue;
        for (uint32_t p = 0; p < frame->code->argument_count; p++) {
            ExecValue id = tile_exec_register(frame->activation, frame->code->first_argument + p);
            tile_text_format(&e->message, "%s%lld", p ? ", " : ": program (", (long long)id.lanes[0]);
        }
        tile_text_add(&e->message, ")");
    }
}

bool tile_exec_stop(TileExecutor *e, const ExecInstruction *in, TileExecution state, const char *format, ...) {
    e->state = state;
    e->message.length = 0;
    va_list arguments;
    va_start(arguments, format);
    const char *reason = tile_arena_format_list(e->arena, format, arguments);
    va_end(arguments);
    if (in) {
        say_where(e, in->op);
        tile_text_add(&e->message, ": ");
        tile_op_print(&e->message, in->op, TILE_PRINT_NO_REGIONS);
        tile_text_add(&e->message, ": ");
    }
    tile_text_add(&e->message, reason);
    if (e->thread_count && state == TILE_EXECUTION_FAULT)
        tile_text_format(&e->message, " (thread %u of block %lld)", tile_exec_own_thread(e), (long long)e->block);
    return false;
}

static void print_element(const TileType *type, const int64_t *extent, int64_t element, TileText *text) {
    int64_t index[TILE_MAX_TENSOR_RANK];
    for (unsigned d = type->rank; d-- > 0; element /= extent[d]) index[d] = element % extent[d];
    tile_text_add(text, "[");
    for (unsigned d = 0; d < type->rank; d++) tile_text_format(text, "%s%lld", d ? ", " : "", (long long)index[d]);
    tile_text_add(text, "]");
}

/* "k.tile:16:17: stores what comes of `t[0, 5]`, loaded at k.tile:13:28: nothing has stored .. before". */
static bool stop_undefined(TileExecutor *e, const TileOp *op, uint8_t poison, const char *what) {
    unsigned slot = 0;
    while (!(poison >> (slot + 1) & 1u)) slot++;
    const TileValue *temp = e->undefined->loads[slot].temp->results;
    TileText text = {.arena = e->arena};
    print_place(e, op, &text);
    tile_text_format(&text, "%s what comes of `%s", what, temp->name ? temp->name : "a temporary");
    print_element(temp->type, e->undefined->loads[slot].extent, e->undefined->loads[slot].element, &text);
    tile_text_add(&text, "`");
    if (e->undefined->loads[slot].load->location.line) {
        TileText place = {.arena = e->arena};
        print_place(e, e->undefined->loads[slot].load, &place);
        tile_text_format(&text, ", loaded at %.*s", (int)place.length - 2, tile_text_get(&place));
    }
    tile_text_add(&text, ": nothing has stored this element of the temporary before");
    e->state = TILE_EXECUTION_UNDEFINED;
    e->message = text;
    return false;
}

bool tile_exec_poison(TileExecutor *e, const ExecInstruction *in, uint8_t poison, const char *what, const char *format,
                      ...) {
    if (!(poison & EXEC_POISON) && poison) return stop_undefined(e, in->op, poison, what);
    va_list arguments;
    va_start(arguments, format);
    const char *reason = tile_arena_format_list(e->arena, format, arguments);
    va_end(arguments);
    return tile_exec_fault(e, in, "%s", reason);
}

/* Does not allocate: see tile_executor_message. */
bool tile_exec_out_of_memory(TileExecutor *e) {
    e->state = TILE_EXECUTION_OUT_OF_MEMORY;
    return false;
}

bool tile_exec_count_bytes(TileExecutor *e, uint64_t bytes) {
    if (e->options.most_bytes && bytes > e->options.most_bytes - e->bytes) return tile_exec_out_of_memory(e);
    e->bytes += bytes;
    return true;
}

/* ---- resources ---- */

void *tile_exec_scratch(TileExecutor *e, size_t size) {
    if (size <= e->scratch_size && e->scratch) return e->scratch;
    free(e->scratch);
    e->scratch_size = size + size / 2 + 256;
    e->scratch = malloc(e->scratch_size);
    if (!e->scratch) {
        e->scratch_size = 0;
        tile_exec_out_of_memory(e);
    }
    return e->scratch;
}

/* splitmix64 */
uint64_t tile_exec_random(TileExecutor *e) {
    uint64_t x = e->random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

ExecFrame *tile_exec_push(TileExecutor *e, const ExecFrame *frame) {
    ExecFrame copy = *frame;
    if (e->depth == e->frame_capacity) {
        size_t wanted = e->frame_capacity ? e->frame_capacity * 2 : 32;
        ExecFrame *larger = realloc(e->frames, wanted * sizeof *larger);
        if (!larger) {
            tile_exec_out_of_memory(e);
            return NULL;
        }
        e->frames = larger;
        e->frame_capacity = wanted;
    }
    e->frames[e->depth] = copy;
    return &e->frames[e->depth++];
}

bool tile_exec_integer(TileExecutor *e, const ExecInstruction *in, unsigned operand, const char *what, int64_t *value) {
    ExecValue x = tile_exec_operand(e, in, operand);
    *value = (int64_t)x.lanes[0];
    uint8_t poison = tile_exec_poisoned(x, 0);
    tile_exec_slack_unknown(e, x);
    return !poison || tile_exec_poison(e, in, poison, "depends on", "%s is poison", what);
}
