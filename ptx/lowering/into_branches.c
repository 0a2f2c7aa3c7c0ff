/* Purpose: compute in the branches of a load what is computed of its result. An access asks whether its tile is whole and its rows
 * are aligned, and has a branch; ptxas moves nothing out of one. Of a tile that many registers of a thread hold, all have to be loaded
 * where the branches meet, beside the sums that they are added to: registers that a thread does not have. In a branch each
 * element is computed with as it comes.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global> {role = data}, %y: ptr<shared>, %whole: bool, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0.0} : vec<32 x f32>
 *       %sum = load %y : vec<32 x f32>
 *       %v = if %whole : vec<32 x f32> {
 *         %a = load %x : vec<32 x f32>
 *         yield %a
 *       } {
 *         yield %zero
 *       }
 *       %w = add %sum, %v : vec<32 x f32>
 *       store %w, %y
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global> {role = data, argument = 0}, %y: ptr<shared>, %whole: bool, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0.0} : vec<32 x f32>
 *       %sum = load %y : vec<32 x f32>
 *       %w = if %whole : vec<32 x f32> {
 *         %a = load %x : vec<32 x f32>
 *         %w.1 = add %sum, %a : vec<32 x f32>
 *         yield %w.1
 *       } {
 *         %w.2 = add %sum, %zero : vec<32 x f32>
 *         yield %w.2
 *       }
 *       store %w, %y
 *       return
 *     }
 * Needs: gpu-join-branches. Keeps: machine form, and the order of all that accesses memory. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"

/* Registers of a thread that a branch yields: fewer can wait. */
enum { FEWEST_LANES = 32 };

static bool loads(const TileOp *op) {
    bool found = op->id == TILE_OP_LOAD;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner && !found; inner = inner->next) found = loads(inner);
    return found;
}

/* Is the value known in front of the branch, or yielded by it? */
static bool is_known(const TileValue *value, const TileOp *branch) {
    const TileOp *op = value->op;
    if (!op || op == branch || op->block != branch->block) return true;
    while (op && op != branch) op = op->next;
    return op == branch;
}

/* What alone takes the branch's result, and is cheap; NULL: there is none. */
static TileOp *find_user(const TileOp *branch) {
    const TileValue *result = &branch->results[0];
    if (branch->id != TILE_OP_IF || branch->result_count != 1 || result->type->kind != TILE_TYPE_VECTOR) return NULL;
    if (tile_type_lanes(result->type) < FEWEST_LANES || !tile_value_has_one_use(result) || !loads(branch)) return NULL;
    TileOp *user = result->first_use->user;
    const TileOpInfo *info = tile_op_info(user->id);
    if (info->class != TILE_CLASS_ELEMENTWISE || info->traits & TILE_TRAIT_COSTLY || !tile_op_is_pure(user)) return NULL;
    if (user->block != branch->block || user->result_count != 1) return NULL;
    for (unsigned i = 0; i < user->operand_count; i++)
        if (!is_known(tile_op_operand(user, i), branch)) return NULL;
    return user;
}

/* Ends a branch with what `user` computes of what it yields. */
static void compute_in(TileModule *module, TileBlock *block, const TileOp *user, const TileValue *result, TileArena *scratch) {
    TileOp *end = block->last;
    TileMap map;
    tile_map_init(&map, scratch);
    tile_map_set(&map, result, tile_op_operand(end, 0));
    TileOp *clone = tile_op_clone(module, user, &map);
    tile_op_insert_before(clone, end);
    tile_op_set_operand(end, 0, tile_op_result(clone, 0));
}

/* The branch with the user's result in place of its own. */
static TileOp *take_in(TilePassContext *context, TileOp *branch, TileOp *user) {
    TileModule *module = context->module;
    TileBuilder b = tile_builder_before(module, branch);
    b.location = branch->location;
    const TileType *type = user->results[0].type;
    TileOp *both = tile_build_if(&b, tile_op_operand(branch, 0), &type, 1);
    for (unsigned i = 0; i < branch->attribute_count; i++) tile_op_set(module, both, branch->attributes[i]);
    for (unsigned r = 0; r < 2; r++) {
        compute_in(module, &branch->regions[r], user, &branch->results[0], context->scratch);
        while (branch->regions[r].first) {
            TileOp *op = branch->regions[r].first;
            tile_op_detach(op);
            tile_op_append(op, &both->regions[r]);
        }
    }
    both->results[0].name = user->results[0].name;
    tile_value_replace(&user->results[0], &both->results[0]);
    tile_op_erase(user);
    tile_op_erase(branch);
    return both;
}

static bool walk(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first; op; op = op->next) {
        for (TileOp *user; (user = find_user(op)); changed = true) op = take_in(context, op, user);
        for (unsigned r = 0; r < op->region_count; r++) changed |= walk(context, &op->regions[r]);
    }
    return changed;
}

TileResult tile_pass_gpu_into_branches(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return walk(context, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
