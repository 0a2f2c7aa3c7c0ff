/* Purpose: let the blocks of a cluster load together what programs of a column share: each block copies a part of it to the shared memory of
 * all (`multicast`), and so the L2 cache is asked for less. What limits products whose tiles are no larger than 128 x 128, or whose
 * rows do not begin at lines of the cache, are these requests.
 *
 * Before:
 *     func kernel tile @k(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}) {
 *       %two = const {value = 2} : i64
 *       grid %two, %two (%m: i64, %n: i64) {
 *         yield
 *       }
 *       return
 *     }
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias},
 *       %begin: i64 {role = begin}, %end: i64 {role = end}) kernel = @k phase = 0 cluster = 2 threads = 128 {
 *       %K = dim %a {axis = 1} : i64
 *       %64 = const {value = 64} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %none = const {value = 0.0} : f32[64, 64]
 *       %0 = block : i64
 *       %first = add %begin, %0 : i64
 *       %blocks = block_count : i64
 *       for %first, %end, %blocks {resident = 1} (%program: i64) {
 *         %m, %n = program_id %program, %two, %two, %begin, %end {programs = groups} : i64, i64
 *         %i = mul %m, %64 : i64
 *         %j = mul %n, %64 : i64
 *         %sum = for %zero, %K, %64, %none : f32[64, 64] (%k: i64, %acc: f32[64, 64]) {
 *           %x = load_tile %a, %i, %one, %zero, %64, %k, %one, %zero, %64 {access = [range, range], tensor_map = 1} : f16[64, 64]
 *           %y = load_tile %b, %k, %one, %zero, %64, %j, %one, %zero, %64 {access = [range, range], tensor_map = 1} : f16[64, 64]
 *           %1 = dot %x, %y, %acc {instruction = wgmma} : f32[64, 64]
 *           yield %1
 *         }
 *         store_tile %c, %sum, %i, %one, %zero, %64, %j, %one, %zero, %64 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}) {
 *       %two = const {value = 2} : i64
 *       grid %two, %two (%m: i64, %n: i64) {
 *         yield
 *       }
 *       return
 *     }
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias},
 *       %begin: i64 {role = begin}, %end: i64 {role = end}) kernel = @k phase = 0 cluster = 2 threads = 128 {
 *       %K = dim %a {axis = 1} : i64
 *       %64 = const {value = 64} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %none = const {value = 0.0} : f32[64, 64]
 *       %0 = block : i64
 *       %first = add %begin, %0 : i64
 *       %blocks = block_count : i64
 *       for %first, %end, %blocks {resident = 1} (%program: i64) {
 *         %m, %n = program_id %program, %two, %two, %begin, %end {programs = groups, multicast = 2} : i64, i64
 *         %i = mul %m, %64 : i64
 *         %j = mul %n, %64 : i64
 *         %sum = for %zero, %K, %64, %none : f32[64, 64] (%k: i64, %acc: f32[64, 64]) {
 *           %x = load_tile %a, %i, %one, %zero, %64, %k, %one, %zero, %64 {access = [range, range], tensor_map = 1} : f16[64, 64]
 *           %y = load_tile %b, %k, %one, %zero, %64, %j, %one, %zero, %64 {access = [range, range], tensor_map = 1, multicast = 2} : f16[64, 64]
 *           %1 = dot %x, %y, %acc {instruction = wgmma} : f32[64, 64]
 *           yield %1
 *         }
 *         store_tile %c, %sum, %i, %one, %zero, %64, %j, %one, %zero, %64 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-clusters, gpu-order, gpu-warpgroups. Keeps: tile form; each program of the whole grid runs once. Cost: linear. */
#include "lang/ir/operands.h"
#include "ptx/grid/clusters.h"
#include "ptx/passes.h"
#include "ptx/target/map.h"

typedef struct Multicast {
    TilePassContext *context;
    TileOp *program_id;
    GpuRow row;
    int64_t blocks;
    unsigned loads;
} Multicast;

/* Is the load one of a loop, whose tile can be copied in equal parts: in panels, or in rows at which the swizzle begins anew? */
static void mark_shared(TileOp *op, void *state) {
    Multicast *m = state;
    if (op->id != TILE_OP_LOAD_TILE || !gpu_by_map(op) || op->block == m->program_id->block || gpu_row_varies_in(&m->row, op)) return;
    GpuCopyParts parts = gpu_parts_of_copy(op->results[0].type, m->blocks);
    bool positions = tile_op_get(op, TILE_ATTRIBUTE_ACCESS)->integers[0] == TILE_ACCESS_POSITION; /* all of them are one box */
    if (parts == GPU_PARTS_NONE || (positions && parts == GPU_PARTS_ROWS)) return;
    tile_op_set_integer(m->context->module, op, TILE_ATTRIBUTE_MULTICAST, m->blocks);
    m->loads++;
}

static TileOp *find_program_id(const TileFunc *func) {
    for (TileOp *loop = func->body.first; loop; loop = loop->next)
        for (TileOp *op = loop->id == TILE_OP_FOR ? loop->regions[0].first : NULL; op; op = op->next)
            if (op->id == TILE_OP_PROGRAM_ID && tile_op_operand(op, 0) == loop->regions[0].arguments[0]) return op;
    return NULL;
}

TileResult tile_pass_gpu_multicast(TilePassContext *context, TileFunc *func) {
    Multicast m = {.context = context, .program_id = find_program_id(func), .blocks = func->cluster};
    if (func->kind != TILE_FUNC_PHASE || !func->cluster || gpu_combines_in_cluster(&func->body)) return TILE_RESULT_UNCHANGED;
    bool groups = m.program_id && tile_op_integer(m.program_id, TILE_ATTRIBUTE_PROGRAMS, 0) == TILE_PROGRAMS_GROUPS;
    if (groups) {
        m.row.number = tile_op_result(m.program_id, m.program_id->result_count - 2u);
        tile_map_init(&m.row.known, context->scratch);
        tile_block_walk(m.program_id->block, mark_shared, &m);
    }
    if (m.loads) {
        tile_op_set_integer(context->module, m.program_id, TILE_ATTRIBUTE_MULTICAST, m.blocks);
        tile_pass_remark(context, m.program_id, TILE_DECISION_CLUSTERS, "programs", "%d rows together, which share %u loads", (int)m.blocks, m.loads);
        return TILE_RESULT_CHANGED;
    }
    func->cluster = 0;
    tile_pass_remark(context, m.program_id ? m.program_id : func->body.first, TILE_DECISION_NO_CLUSTERS, "programs",
                     groups ? "no tensor map copies what rows share" : "they do not share operands by row and by column");
    return TILE_RESULT_CHANGED;
}
