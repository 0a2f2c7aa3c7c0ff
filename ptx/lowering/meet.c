/* Purpose: let exchanges through shared memory that do not depend on each other meet at one barrier: what the second one writes
 * comes in front of what the first one reads, together with what it is computed of. Real and imaginary parts of a transform, keys and
 * values of a sort, two sums of a row then wait once.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %here: i64, %there: i64, %shared: ptr<shared>) threads = 64 {
 *       %one = const {value = 1.0} : f32
 *       %a = buffer {bytes = 256, align = 16} : ptr<shared>
 *       %0 = ptr_add %a, %here : ptr<shared>
 *       store %one, %0
 *       %1 = ptr_add %a, %there : ptr<shared>
 *       %v = load %1 : f32
 *       %two = const {value = 2.0} : f32
 *       %b = buffer {bytes = 256, align = 16} : ptr<shared>
 *       %2 = ptr_add %b, %here : ptr<shared>
 *       store %two, %2
 *       %3 = ptr_add %b, %there : ptr<shared>
 *       %w = load %3 : f32
 *       %sum = add %v, %w : f32
 *       store %sum, %x
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %here: i64, %there: i64, %shared: ptr<shared>) threads = 64 {
 *       %one = const {value = 1.0} : f32
 *       %a = buffer {bytes = 256, align = 16} : ptr<shared>
 *       %0 = ptr_add %a, %here : ptr<shared>
 *       store %one, %0
 *       %1 = ptr_add %a, %there : ptr<shared>
 *       %two = const {value = 2.0} : f32
 *       %b = buffer {bytes = 256, align = 16} : ptr<shared>
 *       %2 = ptr_add %b, %here : ptr<shared>
 *       store %two, %2
 *       %v = load %1 : f32
 *       %3 = ptr_add %b, %there : ptr<shared>
 *       %w = load %3 : f32
 *       %sum = add %v, %w : f32
 *       store %sum, %x
 *       return
 *     }
 * Run: --passes=gpu-meet --target=sm_80
 * Needs: gpu-machine; comes before gpu-shared, so that each exchange has a buffer of its own, whose live range the move extends, and before
 * gpu-barriers, which inserts the barriers. Buffers meet that have room together beside those of other blocks. Keeps: machine form, and the order of accesses of each buffer and of global memory. Cost: for each
 * exchange linear in the MOST_BETWEEN ops behind it. */
#include "lang/ir/build.h"
#include "ptx/lowering/buffers.h"
#include "ptx/passes.h"
#include "ptx/target/target.h"

enum { MOST_BETWEEN = 1024 };

typedef struct Meet {
    TilePassContext *context;
    GpuBuffers buffers;
    TileMap seen;   /* buffers that have been written */
    TileMap late;   /* ops behind the first read that stay behind it */
    TileMap needed; /* ops that what is written in front of it takes */
    int64_t room;   /* bytes that buffers may have at one time */
    bool changed;
} Meet;

/* ---- accesses ---- */

/* What an op does with shared memory, as far as it may be moved. */
typedef enum Role {
    ROLE_COMPUTES, /* is pure, or exchanges values between lanes */
    ROLE_STAYS,    /* reads shared memory or accesses other memory: others may pass it */
    ROLE_WRITES,   /* writes one buffer and nothing else */
    ROLE_WALL      /* nothing passes it */
} Role;

static Role role_of_region(const Meet *m, const TileOp *op, int64_t *buffer);

/* `buffer`: the one that it reads or writes, -1 as long as there is none. */
static Role role_of(const Meet *m, const TileOp *op, int64_t *buffer) {
    size_t number;
    if (op->region_count) return role_of_region(m, op, buffer);
    switch (gpu_buffer_access(&m->buffers, op, &number)) {
    case GPU_ACCESS_COPY: return ROLE_WALL;
    case GPU_ACCESS_READ:
        *buffer = (int64_t)number;
        return op->id == TILE_OP_LOAD || op->id == TILE_OP_LOAD_MATRIX ? ROLE_STAYS : ROLE_WALL;
    case GPU_ACCESS_WRITE:
        *buffer = (int64_t)number;
        return op->id == TILE_OP_STORE || op->id == TILE_OP_STORE_MATRIX ? ROLE_WRITES : ROLE_WALL;
    case GPU_ACCESS_NONE: break;
    }
    if (tile_op_is_pure(op) || op->id == TILE_OP_EXCHANGE || op->id == TILE_OP_EXCHANGE_HALVES || op->id == TILE_OP_BUFFER) return ROLE_COMPUTES;
    return op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE ? ROLE_STAYS : ROLE_WALL;
}

/* A branch of some threads that writes their part of an exchange. */
static Role role_of_region(const Meet *m, const TileOp *op, int64_t *buffer) {
    Role role = ROLE_COMPUTES;
    if (op->id != TILE_OP_IF) return ROLE_WALL;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next) {
            int64_t own = -1;
            if (inner->id == TILE_OP_YIELD || inner->id == TILE_OP_HERE) continue;
            Role of_inner = role_of(m, inner, &own);
            if (of_inner == ROLE_WALL || (own >= 0 && *buffer >= 0 && own != *buffer)) return ROLE_WALL;
            if (own >= 0) *buffer = own;
            if (of_inner == ROLE_COMPUTES) continue;
            if (role != ROLE_COMPUTES && of_inner != role) return ROLE_WALL;
            role = of_inner;
        }
    /* Values that a branch gives may be those of either: it is left where it is. */
    return role == ROLE_COMPUTES ? ROLE_STAYS : role == ROLE_WRITES && op->result_count ? ROLE_WALL : role;
}

static bool uses_any(const TileOp *op, const TileMap *ops) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_op_operand(op, i)->op && tile_map_get(ops, tile_op_operand(op, i)->op)) return true;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (uses_any(inner, ops)) return true;
    return false;
}

/* ---- one meeting ---- */

static void need_operands(Meet *m, const TileOp *op, const TileBlock *block) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileOp *given = tile_op_operand(op, i)->op;
        if (!given || given->block != block || tile_map_get(&m->needed, given)) continue;
        tile_map_set(&m->needed, given, given);
        need_operands(m, given, block);
    }
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next) need_operands(m, inner, block);
}

/* Behind `first`, does the buffer have its writes, all of them before it is read, and none of them late? They become needed. */
static bool can_come_first(Meet *m, const TileOp *first, TileOp *write, int64_t buffer) {
    unsigned left = MOST_BETWEEN;
    tile_map_init(&m->needed, m->context->scratch);
    for (TileOp *op = write; op && left--; op = op->next) {
        int64_t own = -1;
        Role role = role_of(m, op, &own);
        if (role == ROLE_WALL) return false;
        bool late = tile_map_get(&m->late, op) || uses_any(op, &m->late) || (role == ROLE_STAYS);
        if (own == buffer && role == ROLE_STAYS) {
            for (size_t i = 0; i < m->needed.count; i++)
                if (tile_map_get(&m->late, m->needed.entries[i].key)) return false;
            return true;
        }
        if (late) tile_map_set(&m->late, op, op);
        if (own != buffer) continue;
        if (late) return false;
        tile_map_set(&m->needed, op, op);
        need_operands(m, op, first->block);
    }
    return false;
}

static void move_needed(Meet *m, TileOp *first) {
    for (TileOp *op = first->next, *next; op; op = next) {
        next = op->next;
        if (!tile_map_get(&m->needed, op)) continue;
        tile_op_detach(op);
        tile_op_insert_before(op, first);
    }
    m->changed = true;
}

static int64_t bytes_of(const TileOp *buffer) {
    return tile_op_integer(buffer, TILE_ATTRIBUTE_BYTES, 0) * tile_op_integer(buffer, TILE_ATTRIBUTE_SLOTS, 1);
}

/* Brings in front of `first`, which reads what others have written to a buffer of so many bytes, the writes of exchanges that do not
 * depend on it. */
static void meet_at(Meet *m, TileOp *first, int64_t bytes) {
    unsigned left = MOST_BETWEEN;
    tile_map_init(&m->late, m->context->scratch);
    tile_map_set(&m->late, first, first);
    for (TileOp *op = first->next, *next; op && left--; op = next) {
        int64_t buffer = -1;
        Role role = role_of(m, op, &buffer);
        next = op->next;
        if (role == ROLE_WALL) return;
        if (role == ROLE_STAYS || uses_any(op, &m->late)) {
            tile_map_set(&m->late, op, op);
            continue;
        }
        const TileOp *made = buffer >= 0 ? m->buffers.ops.items[buffer] : NULL;
        if (role != ROLE_WRITES || tile_map_get(&m->seen, made)) continue;
        if (tile_op_integer(made, TILE_ATTRIBUTE_SLOTS, 1) > 1 || made->block != op->block) return;
        bytes += bytes_of(made);
        if (bytes > m->room || !can_come_first(m, first, op, buffer)) return;
        move_needed(m, first);
        tile_map_set(&m->seen, made, m->buffers.ops.items[buffer]);
        next = first->next;
        tile_map_init(&m->late, m->context->scratch);
        tile_map_set(&m->late, first, first);
    }
}

/* ---- blocks ---- */

static void visit_block(Meet *m, TileBlock *block) {
    TileMap met; /* buffers that have been read */
    tile_map_init(&met, m->context->scratch);
    for (TileOp *op = block->first; op; op = op->next) {
        int64_t buffer = -1;
        Role role = role_of(m, op, &buffer);
        if (role == ROLE_WALL || buffer < 0)
            for (unsigned r = 0; r < op->region_count; r++) visit_block(m, &op->regions[r]);
        if (role == ROLE_WALL || buffer < 0) continue;
        TileOp *made = m->buffers.ops.items[buffer];
        if (role == ROLE_WRITES) tile_map_set(&m->seen, made, made);
        if (role != ROLE_STAYS || made->block != block || tile_map_get(&met, made) || !tile_map_get(&m->seen, made)) continue;
        tile_map_set(&met, made, made);
        meet_at(m, op, bytes_of(made));
    }
}

/* What the blocks of a multiprocessor have each, if its threads are all in use, less what is spoken for. */
static int64_t find_room(const Meet *m, const TileFunc *func) {
    const TilePtxTarget *target = tile_ptx_target_of(m->context->target);
    int64_t blocks = target->threads_core / func->threads, room;
    if (blocks > (int64_t)target->blocks_core) blocks = target->blocks_core;
    room = (int64_t)target->shared_core_bytes / (blocks ? blocks : 1) - target->shared_reserved_bytes - (int64_t)func->scratch_bytes;
    for (size_t i = 0; i < m->buffers.ops.count; i++)
        if (tile_op_get(m->buffers.ops.items[i], TILE_ATTRIBUTE_SLOTS)) room -= bytes_of(m->buffers.ops.items[i]);
    return room;
}

TileResult tile_pass_gpu_meet(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    Meet m = {.context = context, .buffers = gpu_find_buffers(func, context->scratch)};
    if (m.buffers.ops.count < 2 || m.buffers.carried) return TILE_RESULT_UNCHANGED;
    tile_map_init(&m.seen, context->scratch);
    m.room = find_room(&m, func);
    visit_block(&m, &func->body);
    return m.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
