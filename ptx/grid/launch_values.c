/* Purpose: let the launch compute, once, what each program of a grid would divide for. What is known outside of the grids (how many parts a loop
 * has, how many iterations a part) is computed by the host, for the extents of grids and temporaries; a program that uses it computes it again, and a
 * division by a number that is known at the launch alone takes some 40 instructions that wait for one another. An extent of a temporary is among
 * what a program is given. So such a number is read from a temporary that has it as an extent, or from an empty one that is made for it. Kernels without
 * temporaries keep the shorter way to the driver that these have, and compute it.
 *
 * Run: --passes=gpu-launch-values
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) {
 *       %n = dim %x {axis = 0} : i64
 *       %m = dim %y {axis = 0} : i64
 *       %one = const {value = 1} : i64
 *       %most = max %m, %one : i64
 *       %parts = div %n, %most : i64
 *       %more = add %parts, %one : i64
 *       %last = div %n, %more : i64
 *       %zero = const {value = 0} : i64
 *       %left = max %last, %zero : i64
 *       %t = temp %more : tensor<f32, 1, temp>
 *       grid %more (%i: i64) {
 *         %k = mul %i, %left : i64
 *         %v = load_tile %x, %k {access = [index]} : f32
 *         store_tile %t, %v, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 1, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) {
 *       %n = dim %x {axis = 0} : i64
 *       %m = dim %y {axis = 0} : i64
 *       %one = const {value = 1} : i64
 *       %most = max %m, %one : i64
 *       %parts = div %n, %most : i64
 *       %more = add %parts, %one : i64
 *       %last = div %n, %more : i64
 *       %zero = const {value = 0} : i64
 *       %left = max %last, %zero : i64
 *       %t = temp %more : tensor<f32, 1, temp>
 *       %0 = dim %t {axis = 0} : i64
 *       %1 = const {value = 0} : i64
 *       %2 = temp %left, %1 : tensor<u8, 2, temp>
 *       %3 = dim %2 {axis = 0} : i64
 *       grid %0 (%i: i64) {
 *         %k = mul %i, %3 : i64
 *         %v = load_tile %x, %k {access = [index]} : f32
 *         store_tile %t, %v, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: inline; ranges of integers. Keeps: tile form. Cost: linear in the uses of what is known outside of the grids. */
#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"

typedef struct Values {
    TilePassContext *context;
    TileFunc *kernel;
    TileIndices *indices;
    TileMap costly; /* of the kernel's ops: what they are computed of divides */
    bool changed;
} Values;

/* Is the op, or one that it is computed of, a division by what is not known before the launch? */
static bool is_costly(Values *v, const TileOp *op) {
    if (!op || op->block != &v->kernel->body || tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE) return false;
    void *known = tile_map_get(&v->costly, op);
    if (known) return known == v;
    bool costly = (op->id == TILE_OP_DIV || op->id == TILE_OP_REM) && !tile_value_def(tile_op_operand(op, 1), TILE_OP_CONST);
    for (unsigned i = 0; i < op->operand_count && !costly; i++) costly = is_costly(v, tile_op_operand(op, i)->op);
    tile_map_set(&v->costly, op, costly ? (void *)v : (void *)v->kernel);
    return costly;
}

/* An extent of a temporary is an i64, and not negative. */
static bool is_carried(Values *v, const TileValue *value) {
    bool integer = tile_type_is_scalar(value->type) && value->type->scalar == TILE_I64;
    return integer && is_costly(v, value->op) && tile_index_range(v->indices, value).lo >= 0;
}

typedef struct Replaced {
    TileValue *value, *with;
} Replaced;

static void replace_operands(TileOp *op, void *data) {
    const Replaced *replaced = data;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_op_operand(op, i) == replaced->value) tile_op_set_operand(op, i, replaced->with);
}

/* The temporary in front of the grid that has the value as an extent, and which one; NULL: there is none. */
static TileOp *find_temp(const TileValue *value, const TileOp *grid, unsigned *axis) {
    for (TileOp *op = grid->block->first; op != grid; op = op->next)
        for (*axis = 0; op->id == TILE_OP_TEMP && *axis < op->operand_count; ++*axis)
            if (tile_op_operand(op, *axis) == value && !tile_op_get(op, TILE_ATTRIBUTE_OWN)) return op;
    return NULL;
}

static TileValue *build_empty(TileBuilder *b, TileValue *value) {
    TileValue *extents[2] = {value, tile_build_i64(b, 0)};
    const TileType *type = tile_type_tensor(b->module->context, TILE_U8, 2, TILE_ACCESS_TEMP);
    return tile_op_result(tile_build_op(b, TILE_OP_TEMP, extents, 2, NULL, 0, &type, 1), 0);
}

static void carry(Values *v, TileValue *value, TileOp *grid) {
    unsigned axis;
    TileBuilder b = tile_builder_before(v->context->module, grid);
    TileOp *temp = find_temp(value, grid, &axis);
    TileValue *tensor = temp ? tile_op_result(temp, 0) : build_empty(&b, value);
    Replaced replaced = {value, tile_build_dim(&b, tensor, temp ? axis : 0)};
    replace_operands(grid, &replaced);
    tile_block_walk(&grid->regions[0], replace_operands, &replaced);
    v->changed = true;
}

typedef struct Found {
    Values *values;
    TILE_LIST(TileValue *) list;
} Found;

static void look_at_operands(TileOp *op, void *data) {
    Found *found = data;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        bool known = false;
        for (size_t k = 0; k < found->list.count; k++) known |= found->list.items[k] == value;
        if (!known && is_carried(found->values, value)) tile_list_push(found->values->context->scratch, &found->list, value);
    }
}

static void look_at_grid(Values *v, TileOp *grid) {
    Found found = {.values = v};
    look_at_operands(grid, &found);
    tile_block_walk(&grid->regions[0], look_at_operands, &found);
    for (size_t i = 0; i < found.list.count; i++) carry(v, found.list.items[i], grid);
}

TileResult tile_pass_gpu_launch_values(TilePassContext *context, TileFunc *func) {
    Values v = {.context = context, .kernel = func};
    bool temps = false;
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (const TileOp *op = func->body.first; op; op = op->next) temps |= op->id == TILE_OP_TEMP;
    if (!temps) return TILE_RESULT_UNCHANGED;
    v.indices = tile_pass_indices(context, func);
    tile_map_init(&v.costly, context->scratch);
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_GRID) look_at_grid(&v, op);
    return v.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
