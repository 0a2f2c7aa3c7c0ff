/* Purpose: give a layout to every tile. Layouts are propagated from the anchors through elementwise ops, loops,
 * branches and changes of shape, forwards and backwards. Where two different layouts meet, the tile is converted whose
 * conversion costs less: bytes times estimated trip counts times a factor for the kind of conversion (registers,
 * shuffles, shared memory). All other conversions that gpu-anchor inserted are removed.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, inout>, %y: tensor<f32, 1, inout>, %begin: i64, %end: i64) threads = 32 {
 *       layout 0 = [2, 64] register 1 64 lane 2 4 8 16 32 warp block
 *       layout 1 = [2] register 1 lane 0 0 0 0 0 warp block
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 64} : i64
 *       %v = load_tile %x, %begin, %one, %zero, %two, %zero, %one, %zero, %n {access = [range, range]} : f32[2,
 *           64] layout 0
 *       %0 = convert_layout %v : f32[2, 64]
 *       %sum = reduce %0 {kind = sum, axis = 1} : f32[2]
 *       %1 = convert_layout %sum : f32[2] layout 1
 *       store_tile %y, %1, %begin, %one, %zero, %two {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, inout>, %y: tensor<f32, 1, inout>, %begin: i64, %end: i64) threads = 32 {
 *       layout 0 = [2, 64] register 1 64 lane 2 4 8 16 32 warp block
 *       layout 1 = [2] register 1 lane 0 0 0 0 0 warp block
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %n = const {value = 64} : i64
 *       %v = load_tile %x, %begin, %one, %zero, %two, %zero, %one, %zero, %n {access = [range, range]} : f32[2,
 *           64] layout 0
 *       %sum = reduce %v {kind = sum, axis = 1} : f32[2] layout 1
 *       store_tile %y, %sum, %begin, %one, %zero, %two {access = [range]}
 *       return
 *     }
 * Needs: gpu-anchor. Keeps: tile form. Cost: linear in the uses of tiles, times the number of sweeps to a fixpoint, at
 * most eight. */
#include "lang/ir/build.h"
#include "ptx/layouts/blocked.h"
#include "ptx/target/dot.h"
#include "ptx/passes.h"

enum { MOST_SWEEPS = 8, LOG_TRIP_COUNT = 3, MOST_DEPTH = 4 };
/* Cost of converting one byte. Values that are cheap to compute again cost nothing: they are hardly ever converted. */
enum { COST_REGISTERS = 1, COST_LANES = 8, COST_SHARED = 32, MOST_CHEAP_DEPTH = 6 };

/* The constraint between the layouts of a link's two ends. */
typedef enum LinkKind {
    LINK_SAME,   /* they are equal */
    LINK_RESULT, /* that of `to` follows from that of `from` (tile_layout_of_result) */
    LINK_OPERAND /* that of `from` follows from that of `to` (tile_layout_of_operand) */
} LinkKind;

/* A use of a tile: an edge of the graph in which layouts are propagated. */
typedef struct Link {
    LinkKind kind;
    TileOp *op;
    unsigned index; /* of the operand */
    TileValue *from, *to;
    uint64_t weight; /* bytes times estimated trip count; 0: cheap to compute again */
} Link;

/* A set of tiles that must have the same layout (union-find): a value, or a loop-carried value with its initial
 * value. Indexed by the number of a value. */
typedef struct Node {
    uint32_t leader;
    const TileLayout *layout; /* of the leader; NULL: not decided yet */
    TileValue *value;         /* NULL: no tile, or its layout is given */
    uint32_t first_end;       /* of the leader: its list in `ends`, index + 1 */
    uint32_t sweep;           /* of the leader: the last sweep that a visit was requested in; 0: none yet */
} Node;

/* A node that a sweep has to visit. */
typedef struct Visit {
    uint32_t sweep, node;
} Visit;

/* An entry of a node's list of links. */
typedef struct End {
    uint32_t link, next; /* next: index + 1 */
} End;

typedef struct Propagate {
    TilePassContext *context;
    TileTypeTable *types;
    TileFunc *func;
    Node *nodes;
    uint32_t count;
    TILE_LIST(Link) links;
    TILE_LIST(End) ends;
    TILE_LIST(Visit) visits; /* the worklist, a heap: the next visit first */
    bool exchanges; /* a network of exchanges between lanes (lowering/sort.c): no layout that halves would like costs its steps less */
    const char *error;
} Propagate;

/* ---- nodes ---- */

static uint32_t leader(const Propagate *p, const TileValue *value) {
    uint32_t at = value->number;
    while (p->nodes[at].leader != at) at = p->nodes[at].leader;
    return at;
}

static void unite(Propagate *p, TileValue *a, TileValue *b) {
    if (tile_type_is_tile(a->type)) p->nodes[leader(p, b)].leader = leader(p, a);
}

static void add_node(Propagate *p, TileValue *value) {
    p->nodes[value->number].leader = value->number;
    bool shared = value->op && gpu_stays_shared(value->op);
    if (tile_type_is_tile(value->type) && !value->type->layout && !shared) p->nodes[value->number].value = value;
}

static void add_nodes(Propagate *p, TileBlock *block) {
    for (unsigned i = 0; i < block->argument_count; i++) add_node(p, block->arguments[i]);
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++) add_node(p, &op->results[i]);
        for (unsigned i = 0; i < op->region_count; i++) add_nodes(p, &op->regions[i]);
        bool loop = op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE;
        for (unsigned r = 0; r < op->region_count && loop; r++)
            for (unsigned i = 0; i < op->result_count; i++)
                unite(p, &op->results[i], op->regions[r].arguments[i + (op->id == TILE_OP_FOR)]);
        for (unsigned i = 1; i < op->result_count && op->id == TILE_OP_SCAN; i++)
            unite(p, &op->results[0], &op->results[i]);
    }
}

static const TileLayout *layout_of(const Propagate *p, const TileValue *value) {
    return value->type->layout ? value->type->layout : p->nodes[leader(p, value)].layout;
}

/* ---- links ---- */

static unsigned depth_of(const TileBlock *block) {
    unsigned depth = 0;
    for (const TileOp *op = block->op; op; op = op->block->op)
        depth += op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE;
    return depth < MOST_DEPTH ? depth : MOST_DEPTH;
}

/* Can each thread compute the value by itself, from constants, indices and scalars? */
static bool is_cheap(const TileValue *value, unsigned depth) {
    const TileOp *op = value->op;
    if (!tile_type_is_tile(value->type)) return true;
    if (!op || !depth || !(tile_op_info(op->id)->traits & TILE_TRAIT_PURE)) return false;
    bool simple =
        op->id == TILE_OP_CONST || op->id == TILE_OP_SPLAT || op->id == TILE_OP_IOTA || op->id == TILE_OP_BROADCAST ||
        op->id == TILE_OP_RESHAPE ||
        (tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE && !(tile_op_info(op->id)->traits & TILE_TRAIT_COSTLY));
    for (unsigned i = 0; i < op->operand_count && simple; i++) simple = is_cheap(tile_op_operand(op, i), depth - 1);
    return simple;
}

static TileValue *carried(const TileOp *op, unsigned index) {
    TileOp *parent = op->block->op;
    unsigned skipped = op->id == TILE_OP_CONDITION;
    bool loop = parent && (parent->id == TILE_OP_FOR || parent->id == TILE_OP_WHILE || parent->id == TILE_OP_IF);
    return loop && index >= skipped ? &parent->results[index - skipped] : NULL;
}

/* The other end of a use; NULL where the op takes the tile in any layout. */
static TileValue *other_end(const TileOp *op, unsigned index, LinkKind *kind) {
    *kind = LINK_SAME;
    switch (op->id) {
    case TILE_OP_CONVERT_LAYOUT: return &op->results[0];
    case TILE_OP_FLIP: return &op->results[0];
    case TILE_OP_CLUSTER_REDUCE: return tile_op_get(op, TILE_ATTRIBUTE_AXIS) ? NULL : &op->results[0];
    case TILE_OP_FILL: return index == 0 ? &op->results[0] : NULL;
    case TILE_OP_FOR: return index >= 3 ? &op->results[index - 3] : NULL;
    case TILE_OP_WHILE: return &op->results[index];
    case TILE_OP_YIELD:
    case TILE_OP_CONDITION: return carried(op, index);
    case TILE_OP_SCAN:
        return index < (unsigned)op->result_count + tile_op_has_part(op, TILE_PARTS_MASK) ? &op->results[0] : NULL;
    case TILE_OP_FOLD:
        if (index >= (unsigned)op->result_count + tile_op_has_part(op, TILE_PARTS_MASK)) return NULL;
        break;
    case TILE_OP_BROADCAST:
    case TILE_OP_LOAD_TILE:
    case TILE_OP_STORE_TILE:
    case TILE_OP_ATOMIC_TILE:
        *kind = LINK_OPERAND;
        return op->id == TILE_OP_BROADCAST ? &op->results[0] : (TileValue *)(uintptr_t)tile_accessed_tile(op);
    case TILE_OP_SLICE:
    case TILE_OP_CAT:
        if (!tile_op_cuts_registers(op) || (index && tile_op_cuts_padding(op))) return NULL;
        break;
    case TILE_OP_REDUCE:
    case TILE_OP_ARG_REDUCE:
    case TILE_OP_PERMUTE:
    case TILE_OP_RESHAPE: break;
    default: return tile_op_info(op->id)->class == TILE_CLASS_ELEMENTWISE ? &op->results[0] : NULL;
    }
    if (index) return tile_op_operand(op, 0); /* of a fold or arg_reduce: all operands have one layout */
    *kind = LINK_RESULT;
    return &op->results[0];
}

static const TileValue *moved_tile(const Link *link) { return link->kind == LINK_RESULT ? link->to : link->from; }

static void add_end(Propagate *p, const TileValue *value, uint32_t link) {
    Node *node = &p->nodes[leader(p, value)];
    if (value->type->layout) return;
    tile_list_push(p->context->scratch, &p->ends, ((End){link, node->first_end}));
    node->first_end = (uint32_t)p->ends.count;
}

static void add_link(Propagate *p, TileOp *op, unsigned index) {
    Link link = {.op = op, .index = index, .from = tile_op_operand(op, index)};
    if (!tile_type_is_tile(link.from->type)) return;
    link.to = other_end(op, index, &link.kind);
    if (!link.to || !tile_type_is_tile(link.to->type)) return;
    const TileValue *moved = moved_tile(&link);
    TileBlock *block = link.kind == LINK_RESULT ? op->block : tile_value_block(moved);
    if (!is_cheap(link.from, MOST_CHEAP_DEPTH))
        link.weight = (uint64_t)tile_type_lanes(moved->type) * tile_scalar_bytes(moved->type->scalar)
                      << (LOG_TRIP_COUNT * depth_of(block));
    add_end(p, link.from, (uint32_t)p->links.count);
    add_end(p, link.to, (uint32_t)p->links.count);
    tile_list_push(p->context->scratch, &p->links, link);
}

static void add_links(Propagate *p, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        bool shared = gpu_stays_shared(op);
        for (unsigned i = 0; i < op->operand_count && !shared; i++) add_link(p, op, i);
        bool combiner = op->id == TILE_OP_FOLD || op->id == TILE_OP_SCAN;
        for (unsigned i = 0; i < op->region_count && !combiner; i++) add_links(p, &op->regions[i]);
    }
}

/* ---- choosing ---- */

/* Applies the link's rule to the layout of one end; the result is for the other end. NULL: any layout will do. */
static const TileLayout *apply_rule(const Propagate *p, const Link *link) {
    TileLayout ruled;
    const TileLayout *from = layout_of(p, link->from), *to = layout_of(p, link->to);
    switch (link->kind) {
    case LINK_SAME: return to;
    case LINK_RESULT:
        return tile_layout_of_result(link->op, from, &ruled) ? tile_layout_intern(p->types, &ruled) : NULL;
    case LINK_OPERAND:
        return tile_layout_of_operand(link->op, link->index, to, &ruled) ? tile_layout_intern(p->types, &ruled) : NULL;
    }
    return NULL;
}

static uint64_t cost_of_conversion(const TileLayout *from, const TileLayout *to) {
    TileLinear source;
    switch (tile_layout_conversion(from, to, &source)) {
    case TILE_CONVERSION_NONE: return 0;
    case TILE_CONVERSION_REGISTERS: return COST_REGISTERS;
    case TILE_CONVERSION_SHUFFLES: return COST_LANES;
    case TILE_CONVERSION_SHARED: break;
    }
    return COST_SHARED;
}

/* Of a scan, lanes exchange what each segment of the tile's lines comes to, in steps that double; a tile that is not in order is converted, and back. */
static uint64_t cost_of_scan(const Propagate *p, const Link *link) {
    const TileLayout *layout = layout_of(p, link->to);
    unsigned axis = (unsigned)tile_op_integer(link->op, TILE_ATTRIBUTE_AXIS, 0), log_segments = 0;
    bool ordered = layout && gpu_is_in_order(layout, axis, &log_segments);
    if (!layout) return 0;
    const TileType *tile = link->to->type;
    uint64_t steps = (uint64_t)TILE_LANE_BITS << log_segments,
             bytes = (uint64_t)tile_type_lanes(tile) * tile_scalar_bytes(tile->scalar) << (LOG_TRIP_COUNT * depth_of(link->op->block));
    return bytes * (ordered ? steps * COST_LANES / tile_layout_registers(layout) : 2 * COST_SHARED);
}

static uint64_t cost_of_link(const Propagate *p, const Link *link) {
    const TileLayout *from = layout_of(p, link->from), *to = layout_of(p, link->to);
    const TileLayout *ruled = from && to ? apply_rule(p, link) : NULL;
    if (!ruled) return from && to && link->op->id == TILE_OP_SLICE && !p->exchanges ? 1 + 2 * link->weight * COST_SHARED : 0;
    const TileLayout *has = link->kind == LINK_RESULT ? ruled : from, *wants = link->kind == LINK_RESULT ? to : ruled;
    return has == wants ? 0 : 1 + link->weight * cost_of_conversion(has, wants);
}

static uint64_t cost_of_end(const Propagate *p, const Link *link) {
    bool scans = link->op->id == TILE_OP_SCAN && link->index == 0;
    return cost_of_link(p, link) + (scans ? cost_of_scan(p, link) : 0);
}

static uint64_t cost_of_node(const Propagate *p, const Node *node) {
    uint64_t cost = 0;
    for (uint32_t at = node->first_end; at; at = p->ends.items[at - 1].next)
        cost += cost_of_end(p, &p->links.items[p->ends.items[at - 1].link]);
    return cost;
}

/* A layout of the node with which the link costs nothing; NULL: there is none, or the other end is undecided. */
static const TileLayout *candidate(const Propagate *p, const Link *link, uint32_t node) {
    bool is_from = !link->from->type->layout && leader(p, link->from) == node;
    const TileValue *other = is_from ? link->to : link->from;
    const TileLayout *known = layout_of(p, other);
    TileLayout found;
    if (!known) return NULL;
    if (link->kind == LINK_SAME) return known;
    if (is_from && link->op->id == TILE_OP_SLICE && p->exchanges) return NULL;
    bool good = is_from ? tile_layout_of_operand(link->op, link->index, known, &found)
                        : link->kind == LINK_RESULT && tile_layout_of_result(link->op, known, &found);
    return good ? tile_layout_intern(p->types, &found) : NULL;
}

static bool was_tried(const TileLayout *const *tried, size_t count, const TileLayout *layout) {
    for (size_t i = 0; i < count; i++)
        if (tried[i] == layout) return true;
    return false;
}

/* Gives the node the cheapest of its current layout and all candidates; the current one wins ties, then the first
 * candidate. */
static bool improve(Propagate *p, uint32_t number) {
    Node *node = &p->nodes[number];
    const TileLayout *best = node->layout, *had = best;
    uint64_t least = best ? cost_of_node(p, node) : UINT64_MAX;
    TILE_LIST(const TileLayout *) tried = {0};
    for (uint32_t at = node->first_end; at && least; at = p->ends.items[at - 1].next) {
        const TileLayout *layout = candidate(p, &p->links.items[p->ends.items[at - 1].link], number);
        if (!layout || layout == had || was_tried(tried.items, tried.count, layout)) continue;
        tile_list_push(p->context->scratch, &tried, layout);
        node->layout = layout;
        uint64_t cost = cost_of_node(p, node);
        if (cost < least) {
            best = layout;
            least = cost;
        }
    }
    node->layout = best;
    return best != had;
}

static bool is_free(const Propagate *p, uint32_t number) {
    return p->nodes[number].value && p->nodes[number].leader == number;
}

/* The layout of a tile that no anchor reaches: each thread has a vector along the last axis, as long as there are
 * enough elements for all threads. */
static TileLayout plain_layout(const TileFunc *func, const TileType *tile) {
    TileLayoutShape shape = tile_layout_shape(tile);
    unsigned log = gpu_floor_log2(tile_type_lanes(tile)), threads = TILE_LANE_BITS + gpu_log_shared_warps(func->threads);
    unsigned widest = gpu_floor_log2(GPU_ACCESS_BYTES / tile_scalar_bytes(tile->scalar));
    return gpu_spread(&shape, log > threads ? gpu_least(log - threads, widest) : 0, 0, func->threads);
}

/* ---- the order of decisions ---- */

static bool is_before(Visit a, Visit b) { return a.sweep != b.sweep ? a.sweep < b.sweep : a.node < b.node; }

static void add_visit(Propagate *p, Visit visit) {
    tile_list_push(p->context->scratch, &p->visits, visit);
    size_t at = p->visits.count - 1;
    for (; at && is_before(visit, p->visits.items[(at - 1) / 2]); at = (at - 1) / 2)
        p->visits.items[at] = p->visits.items[(at - 1) / 2];
    p->visits.items[at] = visit;
}

static Visit next_visit(Propagate *p) {
    Visit first = p->visits.items[0], last = p->visits.items[--p->visits.count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < p->visits.count; at = child) {
        if (child + 1 < p->visits.count && is_before(p->visits.items[child + 1], p->visits.items[child])) child++;
        if (!is_before(p->visits.items[child], last)) break;
        p->visits.items[at] = p->visits.items[child];
    }
    p->visits.items[at] = last;
    return first;
}

static void request_visit(Propagate *p, const TileValue *value, Visit from) {
    if (value->type->layout) return;
    uint32_t number = leader(p, value);
    Node *node = &p->nodes[number];
    uint32_t sweep = number > from.node ? from.sweep : from.sweep + 1;
    if (!node->value || node->layout || node->sweep >= sweep) return;
    node->sweep = sweep;
    add_visit(p, (Visit){sweep, number});
}

/* The node got a layout in the visit `from`: requests visits of its neighbours that have none. */
static void request_neighbours(Propagate *p, uint32_t number, Visit from) {
    for (uint32_t at = p->nodes[number].first_end; at; at = p->ends.items[at - 1].next) {
        const Link *link = &p->links.items[p->ends.items[at - 1].link];
        request_visit(p, link->from, from);
        request_visit(p, link->to, from);
    }
}

/* Runs the worklist until it is empty: nodes without a layout get one where a neighbour has one. The order is that of
 * repeated sweeps over all nodes, of which only nodes with a newly decided neighbour are visited. Returns the number
 * of the sweep after the last. */
static uint32_t run_worklist(Propagate *p, uint32_t sweep) {
    while (p->visits.count) {
        Visit visit = next_visit(p);
        sweep = visit.sweep + 1;
        if (!p->nodes[visit.node].layout && improve(p, visit.node)) request_neighbours(p, visit.node, visit);
    }
    return sweep;
}

static bool sweep_decided(Propagate *p) {
    bool changed = false;
    for (uint32_t i = 0; i < p->count; i++)
        if (is_free(p, i) && p->nodes[i].layout) changed |= improve(p, i);
    return changed;
}

/* ---- what loops carry ---- */

/* The tiles of one layout that a loop carries a value through: the value, and what the body makes of it element by element. */
typedef struct Carried {
    const TileOp *loop;
    const TileLayout *layout;
    TILE_LIST(uint32_t) members;
} Carried;

static bool is_member(const Carried *carried, uint32_t number) {
    for (size_t i = 0; i < carried->members.count; i++)
        if (carried->members.items[i] == number) return true;
    return false;
}

static void add_member(Propagate *p, Carried *carried, const TileValue *value) {
    uint32_t number = leader(p, value);
    bool decided = !value->type->layout && p->nodes[number].value && p->nodes[number].layout == carried->layout;
    if (!decided || is_member(carried, number) || tile_value_outside(p->nodes[number].value, carried->loop)) return;
    tile_list_push(p->context->scratch, &carried->members, number);
}

static void collect_members(Propagate *p, uint32_t first, Carried *carried) {
    tile_list_push(p->context->scratch, &carried->members, first);
    for (size_t i = 0; i < carried->members.count; i++)
        for (uint32_t at = p->nodes[carried->members.items[i]].first_end; at; at = p->ends.items[at - 1].next) {
            const Link *link = &p->links.items[p->ends.items[at - 1].link];
            if (link->kind != LINK_SAME) continue;
            add_member(p, carried, link->from);
            add_member(p, carried, link->to);
        }
}

static uint64_t cost_with(Propagate *p, const Carried *carried, const TileLayout *layout) {
    uint64_t cost = 0;
    for (size_t i = 0; i < carried->members.count; i++) p->nodes[carried->members.items[i]].layout = layout;
    for (size_t i = 0; i < carried->members.count; i++) cost += cost_of_node(p, &p->nodes[carried->members.items[i]]);
    return cost;
}

/* Gives all members the layout that costs least, of those that their neighbours would like and that take no more registers. Of one
 * alone that would cost a conversion in each iteration. */
static bool improve_carried(Propagate *p, uint32_t first) {
    Carried carried = {.loop = p->nodes[first].value->op, .layout = p->nodes[first].layout};
    collect_members(p, first, &carried);
    const TileLayout *best = carried.layout;
    uint64_t least = cost_with(p, &carried, best);
    for (size_t i = 0; i < carried.members.count; i++) {
        uint32_t number = carried.members.items[i];
        for (uint32_t at = p->nodes[number].first_end; at && least; at = p->ends.items[at - 1].next) {
            const TileLayout *layout = candidate(p, &p->links.items[p->ends.items[at - 1].link], number);
            if (!layout || layout == best || tile_layout_registers(layout) > tile_layout_registers(carried.layout)) continue;
            uint64_t cost = cost_with(p, &carried, layout);
            if (cost < least) {
                best = layout;
                least = cost;
            }
        }
    }
    cost_with(p, &carried, best);
    return best != carried.layout;
}

static bool sweep_carried(Propagate *p) {
    bool changed = false;
    for (uint32_t i = 0; i < p->count; i++)
        if (is_free(p, i) && p->nodes[i].layout && tile_op_is(p->nodes[i].value->op, TILE_OP_FOR)) changed |= improve_carried(p, i);
    return changed;
}

/* Propagates from the anchors; nodes that no anchor reaches get a layout of their own. Then decided nodes are
 * improved, one by one, up to a fixpoint, and so is what loops carry. */
static void choose(Propagate *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        if (!is_free(p, i)) continue;
        p->nodes[i].sweep = 1;
        add_visit(p, (Visit){1, i});
    }
    uint32_t sweep = run_worklist(p, 1);
    for (uint32_t i = 0; i < p->count; i++) {
        if (!is_free(p, i) || p->nodes[i].layout) continue;
        TileLayout plain = plain_layout(p->func, p->nodes[i].value->type);
        p->nodes[i].layout = tile_layout_intern(p->types, &plain);
        request_neighbours(p, i, (Visit){sweep, UINT32_MAX}); /* after all other visits of that sweep */
        sweep = run_worklist(p, sweep + 1);
    }
    for (unsigned i = 0; i < MOST_SWEEPS && sweep_decided(p); i++) continue;
    if (!sweep_carried(p)) return;
    for (unsigned i = 0; i < MOST_SWEEPS && sweep_decided(p); i++) continue;
}

/* ---- rewriting the function ---- */

static const TileType *laid_out(Propagate *p, const TileType *type, const TileLayout *layout) {
    return tile_type_with_layout(p->context->module->context, type, layout);
}

static TileValue *build_conversion(Propagate *p, TileValue *value, const TileType *type, TileBlock *block,
                                   TileOp *before) {
    TileBuilder b = {.module = p->context->module, .block = block, .before = before};
    b.location = before->location;
    TileValue *made = tile_op_result(tile_build_op(&b, TILE_OP_CONVERT_LAYOUT, &value, 1, NULL, 0, &type, 1), 0);
    if (b.error) p->error = b.error;
    return made;
}

/* The value converted to another layout, directly after its definition; later requests reuse the conversion. */
static TileValue *converted(Propagate *p, TileValue *value, const TileLayout *layout) {
    const TileType *type = laid_out(p, value->type, layout);
    TileBlock *block = tile_value_block(value);
    TileOp *after = value->op ? value->op->next : block->first;
    for (; after && after->id == TILE_OP_CONVERT_LAYOUT; after = after->next)
        if (tile_op_operand(after, 0) == value && after->results[0].type == type) return &after->results[0];
    return build_conversion(p, value, type, block, after);
}

/* Sets the result's layout: if the op's own rule gives another one than the node has, a conversion follows the op. */
static void set_result(Propagate *p, TileOp *op, TileValue *value, const TileLayout *layout) {
    TileLayout ruled;
    const TileLayout *operand = op->operand_count ? tile_op_operand(op, 0)->type->layout : NULL;
    const TileType *wanted = laid_out(p, value->type, layout);
    value->type = wanted;
    if (!operand || !tile_layout_of_result(op, operand, &ruled)) return;
    value->type = laid_out(p, value->type, &ruled);
    if (value->type == wanted) return;
    TileValue *moved = build_conversion(p, value, wanted, op->block, op->next);
    tile_value_replace(value, moved);
    tile_op_set_operand(moved->op, 0, value);
    moved->name = NULL;
}

static void set_types(Propagate *p, TileBlock *block) {
    for (unsigned i = 0; i < block->argument_count; i++) {
        TileValue *value = block->arguments[i];
        if (p->nodes[value->number].value) value->type = laid_out(p, value->type, layout_of(p, value));
    }
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->result_count; i++) {
            TileValue *value = &op->results[i];
            if (p->nodes[value->number].value) set_result(p, op, value, layout_of(p, value));
        }
        for (unsigned i = 0; i < op->region_count; i++) set_types(p, &op->regions[i]);
    }
}

/* Where the operand's layout gives the result none, as that of a product that is padded along an axis which a reshape drops, the
 * result's decides. */
static void convert_operand(Propagate *p, TileOp *op, unsigned index) {
    LinkKind kind;
    TileValue *value = tile_op_operand(op, index);
    if (op->id == TILE_OP_CONVERT_LAYOUT || !tile_type_is_tile(value->type) || !value->type->layout) return;
    if (op->id == TILE_OP_SLICE && p->exchanges) return;
    const TileValue *end = other_end(op, index, &kind);
    if (!end || !tile_type_is_tile(end->type)) return;
    TileLayout wanted = *end->type->layout;
    if (kind == LINK_RESULT && (!end->type->layout || tile_layout_of_result(op, value->type->layout, &wanted))) return;
    if (kind != LINK_SAME && !tile_layout_of_operand(op, index, end->type->layout, &wanted)) return;
    if (!tile_layout_equal(&wanted, value->type->layout)) tile_op_set_operand(op, index, converted(p, value, &wanted));
}

static void convert_operands(Propagate *p, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->operand_count && !gpu_stays_shared(op); i++) convert_operand(p, op, i);
        for (unsigned i = 0; i < op->region_count; i++) convert_operands(p, &op->regions[i]);
    }
}

/* Removes conversions to the layout that a tile already has, and composes chains of conversions; backwards through
 * the block. */
static void drop_conversions(TileBlock *block) {
    for (TileOp *op = block->last, *previous; op; op = previous) {
        previous = op->previous;
        for (unsigned i = 0; i < op->region_count; i++) drop_conversions(&op->regions[i]);
        if (op->id != TILE_OP_CONVERT_LAYOUT) continue;
        TileValue *source = tile_op_operand(op, 0);
        while (tile_value_def(source, TILE_OP_CONVERT_LAYOUT)) source = tile_op_operand(source->op, 0);
        tile_op_set_operand(op, 0, source);
        if (source->type == op->results[0].type) tile_value_replace(&op->results[0], source);
        if (!tile_value_has_uses(&op->results[0])) tile_op_erase(op);
    }
}

static void find_exchange(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_FLIP; }

TileResult tile_pass_gpu_propagate(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    if (!func->threads) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-propagate: gpu-threads comes before");
    Propagate p = {.context = context, .types = context->module->context->types, .func = func};
    p.count = tile_func_number(func);
    p.nodes = TILE_NEW_ARRAY(context->scratch, Node, p.count);
    add_nodes(&p, &func->body);
    bool any = false;
    for (uint32_t i = 0; i < p.count; i++) any |= p.nodes[i].value != NULL;
    if (!any) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, find_exchange, &p.exchanges);
    add_links(&p, &func->body);
    choose(&p);
    set_types(&p, &func->body);
    convert_operands(&p, &func->body);
    drop_conversions(&func->body);
    if (p.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-propagate: %s", p.error);
    return TILE_RESULT_CHANGED;
}
