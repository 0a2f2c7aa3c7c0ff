/* Purpose: copy operands of products from global to shared memory where no loop copies them ahead: the
 * load becomes a copy through a channel of one slot, with a wait directly after it.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %begin: i64,
 *                          %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %x = load_tile %a, %begin, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *       %y = permute %x {axes = [1, 0]} : f16[16, 16]
 *       %z = dot %x, %y, %acc {instruction = mma} : f32[16, 16]
 *       store_tile %c, %z, %begin, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %begin: i64,
 *                          %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %0 = channel {slots = 1} : channel<f16[16, 16], swizzle 32 rows>
 *       %1 = channel_acquire %0 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *       copy_tile %a, %1, %begin, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], types = [f16[16,
 *           16]]}
 *       channel_commit %1
 *       %2 = channel_wait %0 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *       %x = shared_tile %2 : f16[16, 16]
 *       %y = permute %x {axes = [1, 0]} : f16[16, 16]
 *       %z = dot %x, %y, %acc {instruction = mma} : f32[16, 16]
 *       store_tile %c, %z, %begin, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       channel_release %2
 *       return
 *     }
 * Needs: gpu-channels, which transforms loads of loops. Keeps: tile form. Cost: linear. */
#include "lang/ir/operands.h"
#include "ptx/pipeline/copies.h"
#include "ptx/passes.h"

typedef TILE_LIST(TileOp *) Loads;

static void find_loads(TilePassContext *context, const TileBlock *block, Loads *loads) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (gpu_load_is_copied(op)) tile_list_push(context->scratch, loads, op);
        for (unsigned i = 0; i < op->region_count; i++) find_loads(context, &op->regions[i], loads);
    }
}

/* An earlier fill of the convert's operand, with 0 outside of the same bounds; NULL: there is none. */
static TileOp *find_equal_fill(const TileOp *fill, const TileOp *convert) {
    for (TileUse *use = tile_op_operand(convert, 0)->first_use; use; use = use->next) {
        TileOp *other = use->user;
        const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
        if (other->id != TILE_OP_FILL || use->index != 0 || other->block != fill->block) continue;
        const TileAttribute *others = tile_op_get(other, TILE_ATTRIBUTE_AXES);
        bool same = others->count == axes->count && gpu_is_zero(tile_op_operand(other, 1));
        for (unsigned i = 0; i < axes->count && same; i++)
            same = axes->integers[i] == others->integers[i] &&
                   tile_fill_lo(fill, i) == tile_fill_lo(other, i) &&
                   tile_fill_hi(fill, i) == tile_fill_hi(other, i);
        for (const TileOp *next = other; same && next; next = next->next)
            if (next == fill) return other;
    }
    return NULL;
}

/* A row's weights are filled once to be summed and once, rounded, to be multiplied; rounding the filled tile gives
 * the same. */
static bool share_fills(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= share_fills(context, &op->regions[i]);
        const TileOp *convert = op->id == TILE_OP_FILL ? tile_value_def(tile_op_operand(op, 0), TILE_OP_CONVERT) : NULL;
        if (!convert || !gpu_is_zero(tile_op_operand(op, 1))) continue;
        TileOp *other = find_equal_fill(op, convert);
        if (!other) continue;
        TileBuilder b = tile_builder_before(context->module, op);
        tile_value_replace(&op->results[0], tile_build_convert(&b, &other->results[0], op->results[0].type->scalar));
        tile_op_erase(op);
        changed = true;
    }
    return changed;
}

/* For products outside of loops; gpu-channels has remarks on those in loops. */
static void remark_operands(TilePassContext *context, const TileOp *dot) {
    for (unsigned i = 0; i < 2; i++) {
        const TileOp *between, *load = gpu_operand_load(dot, i, &between);
        if (load && between)
            tile_pass_remark(context, load, TILE_DECISION_OPERAND_IN_REGISTERS,
                             tile_op_operand(load, 0)->name ? tile_op_operand(load, 0)->name : "an operand",
                             "`%s` is between the load and the product", tile_op_info((TileOpId)between->id)->mnemonic);
    }
}

static void remark_block(TilePassContext *context, const TileBlock *block) {
    for (const TileOp *op = block->first; op && context->remarks; op = op->next) {
        if (op->id == TILE_OP_DOT) remark_operands(context, op);
        for (unsigned i = 0; i < op->region_count && op->id != TILE_OP_FOR; i++) remark_block(context, &op->regions[i]);
    }
}

TileResult tile_pass_gpu_dot_operands(TilePassContext *context, TileFunc *func) {
    const char *error = NULL;
    if (func->kind != TILE_FUNC_PHASE || !gpu_find_dots(func, &func->body).count) return TILE_RESULT_UNCHANGED;
    bool shared = share_fills(context, &func->body);
    Loads loads = {0};
    remark_block(context, &func->body);
    find_loads(context, &func->body, &loads);
    for (size_t i = 0; i < loads.count; i++) {
        TileBuilder b = tile_builder_before(context->module, loads.items[i]);
        gpu_load_through_channel(&b, loads.items[i], gpu_build_channel(&b, loads.items[i], 1));
        if (b.error) error = b.error;
    }
    if (error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-dot-operands: %s", error);
    return loads.count || shared ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
