/* Purpose: compute inside of branches that load what is made of their results, where that takes fewer registers than the results. An access asks
 * whether its tile is whole, and each answer has its loads; ptxas moves nothing over the branches' end, where all that they yield is in
 * registers together: the weights and shifts of a whole row, to make one result of two.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global> {role = data}, %y: ptr<global> {role = data}, %v: vec<32 x f32>, %whole: bool, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0.0} : vec<32 x f32>
 *       %a, %b = if %whole : vec<32 x f32>, vec<32 x f32> {
 *         %u = load %x {align = 16} : vec<32 x f32>
 *         %w = load %y {align = 16} : vec<32 x f32>
 *         yield %u, %w
 *       } {
 *         yield %zero, %zero
 *       }
 *       %s = fma %v, %a, %b : vec<32 x f32>
 *       %t = convert %s : vec<32 x bf16>
 *       store %t, %x
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global> {role = data, argument = 0}, %y: ptr<global> {role = data, argument = 0}, %v: vec<32 x f32>, %whole: bool, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0.0} : vec<32 x f32>
 *       %t = if %whole : vec<32 x bf16> {
 *         %u = load %x {align = 16} : vec<32 x f32>
 *         %w = load %y {align = 16} : vec<32 x f32>
 *         %s = fma %v, %u, %w : vec<32 x f32>
 *         %t.1 = convert %s : vec<32 x bf16>
 *         yield %t.1
 *       } {
 *         %s.1 = fma %v, %zero, %zero : vec<32 x f32>
 *         %t.2 = convert %s.1 : vec<32 x bf16>
 *         yield %t.2
 *       }
 *       store %t, %x
 *       return
 *     }
 * Of the ops behind a branch that compute with its results, as many of the first ones move as leave the least in registers: results that are
 * used further on, and operands that others use as well. Functions with products are left as they are: their sums are what takes
 * registers, and stages have decided where they are live.
 *
 * Needs: gpu-join-branches, so that loads of one condition have one branch. Keeps: machine form, and all values. Cost: linear: behind a
 * branch at most MOST_BEHIND ops are looked at, at most MOST_MOVED move, and are there twice. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"

enum {
    MOST_BEHIND = 512,
    MOST_MOVED = 24,
    MOST_OUTPUTS = 64,
    LEAST_WORDS = 16, /* of registers that a branch has to save: less is noise */
    WORD_BITS = 32
};

typedef struct Narrowing {
    TilePassContext *context;
    TileOp *branch;
    TileMap order;   /* ops behind the branch in its block: their number, from 1 */
    TileMap free;    /* those that could as well stand in front of it */
    TileOp *moved[MOST_MOVED]; /* ops that could move, in order */
    unsigned count;
    TileMap at; /* of these, their number in `moved`, from 1 */
} Narrowing;

/* ---- which ops can move ---- */

static void find_product(TileOp *op, void *found) {
    *(bool *)found |= op->id == TILE_OP_MMA || op->id == TILE_OP_WGMMA || op->id == TILE_OP_DOT_BLOCK || op->id == TILE_OP_DOT_WORDS;
}

/* Does the branch only load and compute? */
static bool only_loads(const TileOp *op) {
    if (!op->region_count) return op->id == TILE_OP_LOAD || op->id == TILE_OP_YIELD || op->id == TILE_OP_HERE || tile_op_is_pure(op);
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (!only_loads(inner)) return false;
    return op->id == TILE_OP_IF;
}

static size_t number_in(const TileMap *map, const TileOp *op) { return op ? (size_t)(uintptr_t)tile_map_get(map, op) : 0; }

static bool is_free(const Narrowing *narrowing, const TileOp *op) {
    if (op->region_count || !op->result_count || !tile_op_is_pure(op)) return false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileOp *def = tile_op_operand(op, i)->op;
        if (def == narrowing->branch || (number_in(&narrowing->order, def) && !number_in(&narrowing->free, def))) return false;
    }
    return true;
}

/* Operands are results of the branch, of ops that move with this one, or could stand in front of the branch. */
static bool can_move(const Narrowing *narrowing, const TileOp *op) {
    bool computes = false;
    if (op->region_count || op->result_count != 1 || !tile_op_is_pure(op)) return false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileOp *def = tile_op_operand(op, i)->op;
        bool of_branch = def == narrowing->branch || number_in(&narrowing->at, def);
        if (!of_branch && number_in(&narrowing->order, def) && !number_in(&narrowing->free, def)) return false;
        computes |= of_branch;
    }
    return computes;
}

static void find_moved(Narrowing *narrowing) {
    size_t number = 0;
    for (TileOp *op = narrowing->branch->next; op && number < MOST_BEHIND; op = op->next) {
        tile_map_set(&narrowing->order, op, (void *)(uintptr_t)++number);
        if (is_free(narrowing, op)) {
            tile_map_set(&narrowing->free, op, (void *)(uintptr_t)number);
        } else if (narrowing->count < MOST_MOVED && can_move(narrowing, op)) {
            narrowing->moved[narrowing->count++] = op;
            tile_map_set(&narrowing->at, op, (void *)(uintptr_t)narrowing->count);
        }
    }
}

/* Moves what the op takes, and could stand in front of the branch, to there. */
static void free_operands(Narrowing *narrowing, TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileOp *def = tile_op_operand(op, i)->op;
        if (!number_in(&narrowing->free, def)) continue;
        tile_map_set(&narrowing->free, def, NULL);
        free_operands(narrowing, def);
        tile_op_detach(def);
        tile_op_insert_before(def, narrowing->branch);
    }
}

/* ---- registers ---- */

static int64_t words_of(const TileValue *value) {
    const TileType *type = value->type;
    int64_t lanes = tile_type_lanes(type), bits = type->scalar == TILE_BOOL ? 1 : (int64_t)tile_scalar_bits(type->scalar);
    return (lanes * bits + WORD_BITS - 1) / WORD_BITS;
}

/* Is there a use behind the branch, other than by the first `count` ops that move? */
static bool is_used_otherwise(const Narrowing *narrowing, const TileValue *value, unsigned count) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *op = use->user;
        size_t at = number_in(&narrowing->at, op);
        if (at && at <= count) continue;
        while (op && op->block != narrowing->branch->block) op = op->block->op;
        if (!op || op == narrowing->branch) continue;
        if (!op->next || number_in(&narrowing->order, op)) return true;
    }
    return false;
}

/* Words that are live where the branch ends, if the first `count` ops move: what it yields, and operands of ops that could move. */
static int64_t live_words(const Narrowing *narrowing, unsigned count) {
    int64_t words = 0;
    const TileOp *branch = narrowing->branch;
    TileMap seen;
    tile_map_init(&seen, narrowing->context->scratch);
    for (unsigned i = 0; i < branch->result_count; i++)
        if (is_used_otherwise(narrowing, &branch->results[i], count)) words += words_of(&branch->results[i]);
    for (unsigned k = 0; k < narrowing->count; k++) {
        const TileOp *op = narrowing->moved[k];
        if (k < count && is_used_otherwise(narrowing, &op->results[0], count)) words += words_of(&op->results[0]);
        for (unsigned i = 0; i < op->operand_count; i++) {
            const TileValue *operand = tile_op_operand(op, i);
            if (operand->op == branch || number_in(&narrowing->at, operand->op) || tile_map_get(&seen, operand)) continue;
            tile_map_set(&seen, operand, (void *)operand);
            if (is_used_otherwise(narrowing, operand, count)) words += words_of(operand);
        }
    }
    return words;
}

static unsigned choose_count(const Narrowing *narrowing) {
    int64_t least = live_words(narrowing, 0) - LEAST_WORDS + 1;
    unsigned best = 0;
    for (unsigned count = 1; count <= narrowing->count; count++) {
        int64_t words = live_words(narrowing, count);
        if (words >= least) continue;
        least = words;
        best = count;
    }
    return best;
}

/* ---- the branch ---- */

/* Copies of the ops at the end of an arm, which then yields `outputs` of the branch as it was and of the ops. */
static void fill_arm(const Narrowing *narrowing, TileBlock *arm, TileValue *const *outputs, unsigned output_count, unsigned count) {
    TileModule *module = narrowing->context->module;
    TileValue *yielded[MOST_OUTPUTS];
    TileMap map;
    tile_map_init(&map, narrowing->context->scratch);
    TileOp *yield = arm->last;
    for (unsigned i = 0; i < narrowing->branch->result_count; i++)
        tile_map_set(&map, &narrowing->branch->results[i], tile_op_operand(yield, i));
    for (unsigned k = 0; k < count; k++) tile_op_insert_before(tile_op_clone(module, narrowing->moved[k], &map), yield);
    for (unsigned i = 0; i < output_count; i++) yielded[i] = tile_map_get(&map, outputs[i]);
    tile_op_erase(yield);
    TileBuilder end = tile_builder_at_end(module, arm);
    end.location = narrowing->branch->location;
    tile_build_end(&end, TILE_OP_YIELD, yielded, output_count);
}

static void move_block(TileBlock *from, TileBlock *to) {
    for (TileOp *op = from->first, *next; op; op = next) {
        next = op->next;
        tile_op_detach(op);
        tile_op_append(op, to);
    }
}

static TileOp *rebuild(Narrowing *narrowing, unsigned count) {
    TileModule *module = narrowing->context->module;
    TileOp *branch = narrowing->branch;
    TileValue *outputs[MOST_OUTPUTS];
    const TileType *types[MOST_OUTPUTS];
    unsigned output_count = 0;
    for (unsigned i = 0; i < branch->result_count + count; i++) {
        TileValue *value = i < branch->result_count ? &branch->results[i] : &narrowing->moved[i - branch->result_count]->results[0];
        if (!is_used_otherwise(narrowing, value, count)) continue;
        if (output_count == MOST_OUTPUTS) return NULL;
        types[output_count] = value->type;
        outputs[output_count++] = value;
    }
    for (unsigned k = 0; k < count; k++) free_operands(narrowing, narrowing->moved[k]);
    TileBuilder b = tile_builder_before(module, branch);
    b.location = branch->location;
    TileOp *made = tile_build_if(&b, tile_op_operand(branch, 0), types, output_count);
    for (unsigned i = 0; i < branch->attribute_count; i++) tile_op_set(module, made, branch->attributes[i]);
    for (unsigned r = 0; r < 2; r++) {
        move_block(&branch->regions[r], &made->regions[r]);
        fill_arm(narrowing, &made->regions[r], outputs, output_count, count);
    }
    for (unsigned i = 0; i < output_count; i++) {
        made->results[i].name = outputs[i]->name;
        tile_value_replace(outputs[i], &made->results[i]);
    }
    for (unsigned k = count; k-- > 0;) tile_op_erase(narrowing->moved[k]);
    tile_op_erase(branch);
    return made;
}

static TileOp *narrow(TilePassContext *context, TileOp *branch) {
    Narrowing narrowing = {.context = context, .branch = branch};
    tile_map_init(&narrowing.order, context->scratch);
    tile_map_init(&narrowing.free, context->scratch);
    tile_map_init(&narrowing.at, context->scratch);
    find_moved(&narrowing);
    unsigned count = narrowing.count ? choose_count(&narrowing) : 0;
    return count ? rebuild(&narrowing, count) : NULL;
}

/* ---- arms whose loads are branches ---- */

/* Does a predicate decide about a load, element by element or vector by vector? ptxas moves nothing over such a load, so the order here stays. */
static bool has_predicates(const TileBlock *arm) {
    for (const TileOp *op = arm->first; op; op = op->next)
        if (op->id == TILE_OP_IF || (op->id == TILE_OP_LOAD && tile_op_has_part(op, TILE_PARTS_MASK))) return true;
    return false;
}

/* A lane of a vector that was made of scalars is the scalar. */
static TileValue *lane_of(TileBuilder *b, TileValue *vector, uint32_t lane) {
    while (tile_value_def(vector, TILE_OP_INSERT)) {
        const TileOp *insert = vector->op;
        if (tile_op_integer(insert, TILE_ATTRIBUTE_AXIS, -1) == lane) return tile_op_operand(insert, 1);
        vector = tile_op_operand(insert, 0);
    }
    const TileOp *splat = tile_value_def(vector, TILE_OP_SPLAT);
    return splat ? tile_op_operand(splat, 0) : tile_build_extract(b, vector, lane);
}

static bool is_by_lane(const TileOp *op) {
    const TileType *type = op->result_count == 1 ? op->results[0].type : NULL;
    if (!type || type->kind != TILE_TYPE_VECTOR || tile_op_info(op->id)->class != TILE_CLASS_ELEMENTWISE) return false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileType *operand = tile_op_operand(op, i)->type;
        if (operand->kind != TILE_TYPE_VECTOR || tile_type_lanes(operand) != tile_type_lanes(type)) return false;
    }
    return tile_op_is_pure(op);
}

static void split_op(TileModule *module, TileOp *op) {
    TileBuilder b = tile_builder_before(module, op);
    b.location = op->location;
    const TileType *type = op->results[0].type, *scalar = tile_type_scalar(module->context, type->scalar);
    TileValue *vector = NULL, *operands[TILE_MAX_FOLD];
    for (uint32_t lane = 0; lane < (uint32_t)tile_type_lanes(type); lane++) {
        for (unsigned i = 0; i < op->operand_count; i++) operands[i] = lane_of(&b, tile_op_operand(op, i), lane);
        TileOp *made = tile_build_op(&b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count, &scalar, 1);
        vector = vector ? tile_build_insert(&b, vector, &made->results[0], lane) : tile_build_splat(&b, &made->results[0], type);
    }
    tile_value_replace(&op->results[0], vector);
    tile_op_erase(op);
}

/* Puts what the op takes of the arm, and then the op, in front of `end`. */
static void place(const TileBlock *arm, TileOp *op, TileMap *placed, TileOp *end);

static void place_operands(const TileBlock *arm, TileOp *op, TileMap *placed, TileOp *end) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileOp *def = tile_op_operand(op, i)->op;
        if (def && def->block == arm) place(arm, def, placed, end);
    }
    for (unsigned r = 0; r < op->region_count; r++)
        for (TileOp *inner = op->regions[r].first; inner; inner = inner->next) place_operands(arm, inner, placed, end);
}

static void place(const TileBlock *arm, TileOp *op, TileMap *placed, TileOp *end) {
    if (tile_map_get(placed, op)) return;
    tile_map_set(placed, op, op);
    place_operands(arm, op, placed, end);
    tile_op_detach(op);
    tile_op_insert_before(op, end);
}

/* Lane by lane: what is computed of a lane follows its loads. What is not placed is what nothing needs any more: vectors of elements. */
static void order_arm(TilePassContext *context, TileBlock *arm) {
    TileMap placed;
    tile_map_init(&placed, context->scratch);
    for (TileOp *op = arm->first, *next; op; op = next) {
        next = op->next;
        if (is_by_lane(op)) split_op(context->module, op);
    }
    place_operands(arm, arm->last, &placed, arm->last);
    for (TileOp *op = arm->last->previous, *previous; op; op = previous) {
        previous = op->previous;
        if (!tile_map_get(&placed, op)) tile_op_erase(op);
    }
}

/* The outer branch first: what moves into its arms stands behind inner branches, and moves into those. */
static bool walk(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first; op; op = op->next) {
        bool narrowed = false;
        if (op->id == TILE_OP_IF && op->result_count && only_loads(op)) {
            TileOp *made = narrow(context, op);
            changed |= made != NULL;
            if (made) op = made;
            narrowed = made != NULL;
        }
        for (unsigned r = 0; r < op->region_count; r++) {
            changed |= walk(context, &op->regions[r]);
            if (narrowed && has_predicates(&op->regions[r])) order_arm(context, &op->regions[r]);
        }
    }
    return changed;
}

TileResult tile_pass_gpu_narrow_branches(TilePassContext *context, TileFunc *func) {
    bool multiplies = false;
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, find_product, &multiplies);
    return !multiplies && walk(context, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
