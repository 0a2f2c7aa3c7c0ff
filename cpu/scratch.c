/* cpu-scratch
 *
 * Purpose: assign each buffer an offset in the scratch memory that a thread passes to the program. If the program has
 * assertions, its first cache line is reserved for the number of a failed one (lang/ir/assertion.h).
 *
 * Before:
 *     func phase machine @k.0(%begin: i64, %end: i64, %scratch: ptr<scratch>) {
 *       %b = buffer {bytes = 100, align = 64} : ptr<scratch>
 *       %c = buffer {bytes = 8, align = 64} : ptr<scratch>
 *       %0 = const {value = 0.0} : f32
 *       store %0, %b
 *       store %0, %c
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%begin: i64, %end: i64, %scratch: ptr<scratch>) scratch_bytes = 192 {
 *       %0 = const {value = 128} : i64
 *       %c = ptr_add %scratch, %0 : ptr<scratch>
 *       %1 = const {value = 0.0} : f32
 *       store %1, %scratch
 *       store %1, %c
 *       return
 *     }
 * Needs: `scratch` is the last parameter of a phase. Keeps: machine form; no `buffer` is left.
 * Cost: linear in the ops. */
#include "cpu/passes.h"
#include "lang/ir/assertion.h"
#include "lang/ir/build.h"

enum { LINE = 64 };

typedef struct Layout {
    TileModule *module;
    TileValue *scratch;
    uint64_t bytes;
    bool found;
} Layout;

static void assign_offset(TileOp *op, void *state) {
    Layout *layout = state;
    if (op->id != TILE_OP_BUFFER) return;
    uint64_t align = (uint64_t)tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, LINE);
    if (align < LINE) align = LINE;
    uint64_t offset = (layout->bytes + align - 1) / align * align;
    layout->bytes = offset + (uint64_t)tile_op_integer(op, TILE_ATTRIBUTE_BYTES, 0);
    layout->found = true;
    TileValue *address = layout->scratch;
    if (offset) {
        TileBuilder b = tile_builder_before(layout->module, op);
        address = tile_build_ptr_add(&b, address, tile_build_i64(&b, (int64_t)offset));
    }
    tile_value_replace(tile_op_result(op, 0), address);
    tile_op_erase(op);
}

TileResult tile_pass_cpu_scratch(TilePassContext *context, TileFunc *func) {
    uint32_t count = func->body.argument_count;
    if (func->kind != TILE_FUNC_PHASE || !count) return TILE_RESULT_UNCHANGED;
    Layout layout = {.module = context->module, .scratch = func->body.arguments[count - 1]};
    if (layout.scratch->type->kind != TILE_TYPE_POINTER || layout.scratch->type->space != TILE_SPACE_SCRATCH)
        return TILE_RESULT_UNCHANGED;
    if (tile_func_assertions(func, context->scratch).count || tile_func_prints(func, context->scratch).count)
        layout.bytes = LINE;
    uint64_t reserved = layout.bytes;
    tile_block_walk(&func->body, assign_offset, &layout);
    if (!layout.found && func->scratch_bytes >= reserved) return TILE_RESULT_UNCHANGED;
    func->scratch_bytes = (layout.bytes + LINE - 1) / LINE * LINE;
    return TILE_RESULT_CHANGED;
}
