/* Purpose: join branches on one condition that only load, so that their loads are in flight together. Each access asks
 * whether its tile is whole and its rows are aligned, and has a branch; ptxas moves no load out of one. Accesses that
 * ask the same are carried out by one branch.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global> {role = data}, %y: ptr<global> {role = data}, %whole: bool, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0.0} : f32
 *       %v = if %whole : f32 {
 *         %a = load %x : f32
 *         yield %a
 *       } {
 *         yield %zero
 *       }
 *       %w = neg %v : f32
 *       %four = const {value = 4} : i64
 *       %next = ptr_add %x, %four : ptr<global>
 *       %u = if %whole : f32 {
 *         %b = load %next : f32
 *         yield %b
 *       } {
 *         yield %zero
 *       }
 *       %s = add %w, %u : f32
 *       store %s, %y
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global> {role = data, argument = 0}, %y: ptr<global> {role = data, argument = 0}, %whole: bool, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0.0} : f32
 *       %four = const {value = 4} : i64
 *       %next = ptr_add %x, %four : ptr<global>
 *       %v, %u = if %whole : f32, f32 {
 *         %a = load %x : f32
 *         %b = load %next : f32
 *         yield %a, %b
 *       } {
 *         yield %zero, %zero
 *       }
 *       %w = neg %v : f32
 *       %s = add %w, %u : f32
 *       store %s, %y
 *       return
 *     }
 * Needs: cse, so that equal conditions are one value. Keeps: machine form, and the order of all that writes. Cost: linear:
 * between two branches that are joined there are at most MOST_BETWEEN ops. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"

enum { MOST_BETWEEN = 256, MOST_RESULTS = 64 };

typedef struct Join {
    TilePassContext *context;
    TileOp *first, *second;
    TileMap after; /* ops between that use what the first branch yields */
} Join;

/* Does the op nothing but compute and load? `*loads`: it loads. */
static bool only_loads(const TileOp *op, bool *loads) {
    *loads |= op->id == TILE_OP_LOAD;
    bool stays_inside = op->id == TILE_OP_YIELD || op->id == TILE_OP_HERE;
    if (!op->region_count) return op->id == TILE_OP_LOAD || stays_inside || tile_op_is_pure(op);
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (!only_loads(inner, loads)) return false;
    return op->id == TILE_OP_IF;
}

static unsigned is_divergent(const TileOp *branch) {
    return tile_op_integer(branch, TILE_ATTRIBUTE_DIVERGENT, 0) != 0;
}

static bool is_load_branch(const TileOp *op) {
    bool loads = false;
    return op->id == TILE_OP_IF && op->attribute_count == is_divergent(op) && only_loads(op, &loads) && loads;
}

static bool uses_any(const TileOp *op, const Join *join) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileOp *def = tile_op_operand(op, i)->op;
        if (def && (def == join->first || tile_map_get(&join->after, def))) return true;
    }
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (uses_any(inner, join)) return true;
    return false;
}

/* The branch on the same condition before this one, with nothing between that writes; NULL: none. */
static TileOp *find_first(TileOp *second) {
    unsigned left = MOST_BETWEEN;
    bool loads = false;
    for (TileOp *op = second->previous; op && left--; op = op->previous) {
        if (op->id == TILE_OP_IF && tile_op_operand(op, 0) == tile_op_operand(second, 0))
            return is_load_branch(op) && is_divergent(op) == is_divergent(second) &&
                           op->result_count + second->result_count <= MOST_RESULTS
                       ? op
                       : NULL;
        if (!only_loads(op, &loads)) return NULL;
    }
    return NULL;
}

/* What the second branch needs can be computed before the first. */
static bool can_join(Join *join) {
    for (TileOp *op = join->first->next; op != join->second; op = op->next)
        if (uses_any(op, join)) tile_map_set(&join->after, op, op);
    return !uses_any(join->second, join);
}

static void move_body(TileBlock *from, TileBlock *to, TileValue **yielded, unsigned *count) {
    while (from->first != from->last) {
        TileOp *op = from->first;
        tile_op_detach(op);
        tile_op_append(op, to);
    }
    for (unsigned i = 0; i < from->last->operand_count; i++) yielded[(*count)++] = tile_op_operand(from->last, i);
}

static TileOp *join_branches(Join *join) {
    TileModule *module = join->context->module;
    TileOp *parts[] = {join->first, join->second};
    const TileType *types[MOST_RESULTS];
    unsigned count = 0;
    for (TileOp *op = join->first->next, *next; op != join->second; op = next) {
        next = op->next;
        if (tile_map_get(&join->after, op)) continue;
        tile_op_detach(op);
        tile_op_insert_before(op, join->first);
    }
    for (unsigned p = 0; p < 2; p++)
        for (unsigned i = 0; i < parts[p]->result_count; i++) types[count++] = parts[p]->results[i].type;
    TileBuilder b = tile_builder_before(module, join->first);
    b.location = join->first->location;
    TileOp *joined = tile_build_if(&b, tile_op_operand(join->first, 0), types, count);
    for (unsigned i = 0; i < join->first->attribute_count; i++) tile_op_set(module, joined, join->first->attributes[i]);
    for (unsigned r = 0; r < 2; r++) {
        TileValue *yielded[MOST_RESULTS];
        unsigned values = 0;
        for (unsigned p = 0; p < 2; p++) move_body(&parts[p]->regions[r], &joined->regions[r], yielded, &values);
        TileBuilder end = tile_builder_at_end(module, &joined->regions[r]);
        tile_build_end(&end, TILE_OP_YIELD, yielded, values);
    }
    count = 0;
    for (unsigned p = 0; p < 2; p++) {
        for (unsigned i = 0; i < parts[p]->result_count; i++)
            tile_value_replace(&parts[p]->results[i], &joined->results[count++]);
        tile_op_erase(parts[p]);
    }
    return joined;
}

static bool walk(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) changed |= walk(context, &op->regions[r]);
        if (!is_load_branch(op)) continue;
        Join join = {.context = context, .first = find_first(op), .second = op};
        if (!join.first) continue;
        tile_map_init(&join.after, context->scratch);
        if (!can_join(&join)) continue;
        join_branches(&join);
        changed = true;
    }
    return changed;
}

TileResult tile_pass_gpu_join_branches(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return walk(context, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
