/* Purpose: keep in registers what the next iteration loads again. Neighbouring rows of a window's sums read neighbouring rows of an
 * image: what one of them loads at this position, the row before it loads at the next one. So of four rows three have their
 * elements from the iteration before, carried by the loop, and one is loaded. What is computed of an element alone, such as its
 * conversion, is carried in its place.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %w: ptr<global>, %y: ptr<global>, %n: i64, %row: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %none = const {value = 0.0} : f32
 *       %a, %b = loop %zero, %n, %none, %none {loop = sequential, extent = 64} : f32, f32 (%i: i64, %s: f32, %t: f32) {
 *         %o = mul %i, %row : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %q = ptr_add %p, %row : ptr<global>
 *         %j = mul %i, %four : i64
 *         %f = ptr_add %w, %j : ptr<global>
 *         %v = load %f : f32
 *         %c = load %p : f32
 *         %u = fma %c, %v, %s : f32
 *         %d = load %q : f32
 *         %z = fma %d, %v, %t : f32
 *         yield %u, %z
 *       }
 *       %m = add %a, %b : f32
 *       store %m, %y
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %w: ptr<global>, %y: ptr<global>, %n: i64, %row: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %none = const {value = 0.0} : f32
 *       %0 = lt %zero, %n : bool
 *       %o = mul %zero, %row : i64
 *       %p = ptr_add %x, %o : ptr<global>
 *       %1 = const {value = 0.0} : f32
 *       %2 = load %p, %0, %1 {parts = [mask, fill]} : f32
 *       %a, %b, %3 = loop %zero, %n, %none, %none, %2 {loop = sequential, extent = 64} : f32, f32, f32 (%i: i64, %none.1: f32, %none.2: f32, %c: f32) {
 *         %o.1 = mul %i, %row : i64
 *         %p.1 = ptr_add %x, %o.1 : ptr<global>
 *         %q = ptr_add %p.1, %row : ptr<global>
 *         %j = mul %i, %four : i64
 *         %f = ptr_add %w, %j : ptr<global>
 *         %v = load %f : f32
 *         %u = fma %c, %v, %none.1 : f32
 *         %d = load %q : f32
 *         %z = fma %d, %v, %none.2 : f32
 *         yield %u, %z, %d
 *       }
 *       %m = add %a, %b : f32
 *       store %m, %y
 *       return
 *     }
 * Run: --passes=cpu-slide,dce
 * Needs: loops without branches: cpu-inside and canonicalise before it; before cpu-vectorise, which makes a register of each element. Where
 * steps are not known to be equal, since a parameter's value is not, everything is loaded. Keeps: every value that is loaded.
 * Cost: quadratic in the loads of a loop, of which there are at most MOST_LOADS. */
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum { MOST_LOADS = 16, MOST_CARRIED = 16, MOST_OFFSETS = 16 };

/* A load of the loop; `next` loads in this iteration what it loads in the next one. */
typedef struct Sliding {
    TileOp *load;
    TileValue *value; /* the element, or what is computed of it alone */
    const TileSum *step;
    TileValue *base, *offsets[MOST_OFFSETS]; /* the address is their sum */
    unsigned offset_count;
    struct Sliding *next;
    bool follows; /* it is another one's next */
} Sliding;

typedef struct Slide {
    TilePassContext *context;
    TileModule *module;
    TileOp *loop;
    TileIndexView view;
    TileSlopes slopes;
    Sliding loads[MOST_LOADS];
    unsigned count;
    bool changed;
} Slide;

/* ---- what is loaded again ---- */

static bool is_pure(const TileOp *op) { return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !op->region_count; }

/* What the element becomes by functions of it alone. */
static TileValue *own_value(TileOp *load) {
    TileValue *value = &load->results[0];
    while (tile_value_has_one_use(value)) {
        TileOp *user = value->first_use->user;
        if (user->block != load->block || !is_pure(user) || user->operand_count != 1 || user->result_count != 1) break;
        value = &user->results[0];
    }
    return value;
}

/* The number of bytes by which the address moves in each iteration; NULL: it is not known, or it does not move. */
static const TileSum *step_of(Slide *s, TileValue *address) {
    TileSlope slope = tile_index_slope(&s->slopes, address);
    TileSumTable *table = tile_index_table(s->view.indices);
    if (slope.kind != TILE_SLOPE_AFFINE) return NULL;
    const TileSum *step = tile_sum_integer(table, slope.step);
    return slope.factor ? tile_sum_multiply(table, step, tile_index_sum(&s->view, slope.factor)) : step;
}

static bool add_load(Slide *s, TileOp *load) {
    TileValue *address = tile_op_named(load, TILE_OPERAND_ADDRESS);
    if (tile_op_has_part(load, TILE_PARTS_MASK) || tile_value_outside(address, s->loop)) return true;
    if (s->count == MOST_LOADS) return false;
    Sliding x = {.load = load, .value = own_value(load), .step = step_of(s, address)};
    for (x.base = address; x.base->op && x.base->op->id == TILE_OP_PTR_ADD; x.base = tile_op_operand(x.base->op, 0)) {
        if (x.offset_count == MOST_OFFSETS) return true;
        x.offsets[x.offset_count++] = tile_op_operand(x.base->op, 1);
    }
    if (x.step) s->loads[s->count++] = x;
    return true;
}

/* The sum of the offsets of one address that the other one has not. */
static const TileSum *own_offsets(Slide *s, const Sliding *x, const Sliding *other) {
    TileSumTable *table = tile_index_table(s->view.indices);
    const TileSum *sum = tile_sum_integer(table, 0);
    for (unsigned i = 0; i < x->offset_count; i++) {
        bool shared = false;
        for (unsigned k = 0; k < other->offset_count; k++) shared |= other->offsets[k] == x->offsets[i];
        if (!shared) sum = tile_sum_add(table, sum, tile_index_sum(&s->view, x->offsets[i]));
    }
    return sum;
}

/* Are the values computed of their elements alike? */
static bool is_alike(const Sliding *x, const Sliding *y) {
    const TileValue *a = x->value, *b = y->value;
    for (; a->op != x->load && b->op != y->load; a = tile_op_operand(a->op, 0), b = tile_op_operand(b->op, 0)) {
        bool same = a->op->id == b->op->id && a->type == b->type && a->op->attribute_count == b->op->attribute_count;
        for (unsigned i = 0; same && i < a->op->attribute_count; i++)
            same = tile_attribute_is_same(&a->op->attributes[i], &b->op->attributes[i]);
        if (!same) return false;
    }
    return a->op == x->load && b->op == y->load && a->type == b->type;
}

static void find_next(Slide *s, Sliding *x) {
    TileSumTable *table = tile_index_table(s->view.indices);
    for (unsigned i = 0; i < s->count; i++) {
        Sliding *y = &s->loads[i];
        if (y == x || y->follows || y->step != x->step || y->base != x->base || !is_alike(x, y)) continue;
        if (tile_sum_subtract(table, own_offsets(s, y, x), own_offsets(s, x, y)) != x->step) continue;
        x->next = y;
        y->follows = true;
        return;
    }
}

/* Does nothing but to compute and load happen in the loop, and is something loaded again? */
static bool find(Slide *s, TileOp *loop) {
    bool found = false;
    if (loop->id != TILE_OP_LOOP || tile_op_integer(loop, TILE_ATTRIBUTE_LOOP_KIND, 0) != TILE_LOOP_KIND_SEQUENTIAL) return false;
    if (loop->region_count != 1) return false;
    s->loop = loop;
    s->count = 0;
    for (const TileOp *op = loop->regions[0].first; op != loop->regions[0].last; op = op->next)
        if (op->id != TILE_OP_LOAD && !is_pure(op)) return false;
    TileIndices *indices = tile_pass_indices(s->context, tile_op_func(loop));
    tile_index_view_init(&s->view, indices, NULL, false);
    tile_slopes_init(&s->slopes, indices, loop);
    for (TileOp *op = loop->regions[0].first; op; op = op->next)
        if (op->id == TILE_OP_LOAD && !add_load(s, op)) return false;
    unsigned carried = loop->result_count;
    for (unsigned i = 0; i < s->count; i++) {
        find_next(s, &s->loads[i]);
        found |= s->loads[i].next != NULL;
        carried += s->loads[i].next != NULL;
    }
    return found && carried <= MOST_CARRIED;
}

/* ---- code ---- */

/* What the first iteration would load, if there is one. */
static TileValue *first_value(Slide *s, TileBuilder *b, TileMap *map, const Sliding *x, TileValue *some) {
    TileValue *address = tile_build_again(b, map, tile_op_named(x->load, TILE_OPERAND_ADDRESS), s->loop);
    const TileType *type = x->load->results[0].type;
    TileValue *made = tile_build_load(b, type, address, some, tile_build_bits(b, type, 0), tile_op_integer(x->load, TILE_ATTRIBUTE_ALIGN, 0));
    tile_map_set(map, &x->load->results[0], made);
    return tile_build_again(b, map, x->value, s->loop);
}

/* The loop once more, which also carries these values. */
static void carry(Slide *s) {
    TileOp *old = s->loop;
    TileBuilder b = tile_builder_before(s->module, old);
    TileValue *starts[MOST_CARRIED], *lo = tile_op_operand(old, 0), *hi = tile_op_operand(old, 1);
    TileValue *some = tile_build_binary(&b, TILE_OP_LT, lo, hi);
    TileMap map;
    tile_map_init(&map, s->context->scratch);
    tile_map_set(&map, old->regions[0].arguments[0], lo);
    unsigned count = old->result_count;
    for (unsigned i = 0; i < count; i++) starts[i] = tile_loop_carried(old, i);
    for (unsigned i = 0; i < s->count; i++)
        if (s->loads[i].next) starts[count++] = first_value(s, &b, &map, &s->loads[i], some);
    TileOp *made = tile_build_loop(&b, TILE_LOOP_KIND_SEQUENTIAL, lo, hi, tile_op_integer(old, TILE_ATTRIBUTE_EXTENT, 0), starts, count);
    TileBlock *from = &old->regions[0], *to = &made->regions[0];
    for (unsigned i = 0; i <= old->result_count; i++) tile_value_replace(from->arguments[i], to->arguments[i]);
    for (unsigned i = 0; i < old->result_count; i++) tile_value_replace(tile_op_result(old, i), tile_op_result(made, i));
    TileValue *yields[MOST_CARRIED];
    for (unsigned i = 0; i < old->result_count; i++) yields[i] = tile_op_operand(from->last, i);
    while (from->first != from->last) {
        TileOp *op = from->first;
        tile_op_detach(op);
        tile_op_append(op, to);
    }
    unsigned at = old->result_count;
    TileValue *argument[MOST_LOADS];
    for (unsigned i = 0; i < s->count; i++)
        if (s->loads[i].next) argument[i] = to->arguments[1 + at++];
    at = old->result_count;
    for (unsigned i = 0; i < s->count; i++) {
        const Sliding *next = s->loads[i].next;
        if (next) yields[at++] = next->next ? argument[next - s->loads] : next->value;
    }
    for (unsigned i = 0; i < s->count; i++) {
        if (!s->loads[i].next) continue;
        for (unsigned k = 0; k < at; k++)
            if (yields[k] == s->loads[i].value) yields[k] = argument[i];
        tile_value_replace(s->loads[i].value, argument[i]);
    }
    TileBuilder end = tile_builder_at_end(s->module, to);
    end.location = old->location;
    tile_build_end(&end, TILE_OP_YIELD, yields, at);
    tile_op_erase(old);
    s->changed = true;
}

/* ---- the pass ---- */

static void visit(Slide *s, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) visit(s, &op->regions[r]);
        if (find(s, op)) carry(s);
    }
}

TileResult tile_pass_cpu_slide(TilePassContext *context, TileFunc *func) {
    Slide s = {.context = context, .module = context->module};
    visit(&s, &func->body);
    return s.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
