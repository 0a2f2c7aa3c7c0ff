/* Channels between partitions. A channel is a ring of slots in shared memory. The channels of a group share two
 * mbarriers for each slot: `full` completes a phase when the copies of all of them have come, `empty` when all warps
 * that read have released them. The count of slots taken, an operand of each take, is below twice the slots: in an
 * even round through the ring it is the slot, in an odd one the slot plus the slots. One thread of the copying warps
 * does all that is to be done there: it waits, and has tiles copied. */
#include "lang/ir/operands.h"
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/map.h"

/* The slot that is taken, and the mbarrier that is told of it: `full` of an acquire, `empty` of a wait. */
typedef struct Taken {
    TileValue *slot, *mbarrier;
    unsigned takes, ends; /* of the group's channels in this round */
    bool by_lanes;        /* lanes have read of the slot, and not products alone */
} Taken;

typedef struct Group {
    TileValue *full, *empty; /* those of slot 0 */
    int64_t slots, bytes;    /* bytes: of one slot of all channels */
    int64_t copied;          /* bytes that come to these: a slot of a short vector is longer */
    unsigned channels;
    int64_t blocks; /* that copy to one another's slots, and have to know of one another when they are empty; 1: each has its own */
    Taken filled, read;
    TileValue *missing; /* of those, bytes that do not come in this round, of rows that tensors do not have; NULL: none */
    const TileOp *pending; /* a release in the loop that has been lowered last, of whose last slot nobody has told yet */
} Group;

struct GpuChannels {
    TileMap buffers; /* the channel's value to its buffer's */
    Group *groups;
    unsigned count;
    bool ends; /* their slots are used no more when the blocks of a cluster combine what they have */
};

/* ---- mbarriers ---- */

static TileValue *mbarrier_of(Gpu *gpu, TileValue *first, TileValue *slot) {
    return tile_build_ptr_add(&gpu->b, first, gpu_binary(gpu, TILE_OP_MUL, slot, gpu_i64(gpu, GPU_MBARRIER_BYTES)));
}

static void build_init(Gpu *gpu, TileValue *place, int64_t arrivals) {
    TileAttribute count = {.key = TILE_ATTRIBUTE_ARRIVALS, .integer = arrivals};
    tile_build_op(&gpu->b, TILE_OP_MBARRIER_INIT, &place, 1, &count, 1, NULL, 0);
}

static void build_arrive(Gpu *gpu, TileValue *place, int64_t bytes) {
    TileAttribute expected = {.key = TILE_ATTRIBUTE_BYTES, .integer = bytes};
    tile_build_op(&gpu->b, TILE_OP_MBARRIER_ARRIVE, &place, 1, &expected, bytes != 0, NULL, 0);
}

/* The phase waits for so many bytes, less those that are missing. */
static void build_arrive_without(Gpu *gpu, TileValue *place, int64_t bytes, TileValue *missing) {
    TileValue *left = gpu_binary(gpu, TILE_OP_SUB, tile_build_integer(&gpu->b, missing->type, bytes), missing);
    tile_build_op(&gpu->b, TILE_OP_MBARRIER_EXPECT, (TileValue *[]){place, left}, 2, NULL, 0, NULL, 0);
    build_arrive(gpu, place, 0);
}

/* At the mbarriers in this place of so many blocks. */
static void build_arrive_in(Gpu *gpu, TileValue *place, int64_t blocks) {
    TileAttribute multicast = {.key = TILE_ATTRIBUTE_MULTICAST, .integer = blocks};
    tile_build_op(&gpu->b, TILE_OP_MBARRIER_ARRIVE, &place, 1, &multicast, blocks > 1, NULL, 0);
}

void gpu_build_phase_wait(Gpu *gpu, TileValue *place, TileValue *odd, bool before) {
    TileValue *zero = tile_build_integer(&gpu->b, tile_type_scalar(gpu->module->context, TILE_I32), 0),
              *one = tile_build_integer(&gpu->b, zero->type, 1);
    TileValue *operands[] = {
        place, tile_build_ternary(&gpu->b, TILE_OP_SELECT, odd, before ? zero : one, before ? one : zero)};
    tile_build_op(&gpu->b, TILE_OP_MBARRIER_WAIT, operands, 2, NULL, 0, NULL, 0);
}

/* ---- channels ---- */

static void find_channel(TileOp *op, void *state) {
    Gpu *gpu = state;
    if (op->id != TILE_OP_CHANNEL) return;
    Group *group = &gpu->channels->groups[tile_op_integer(op, TILE_ATTRIBUTE_GROUP, 0)];
    group->slots = tile_op_integer(op, TILE_ATTRIBUTE_SLOTS, 1);
    const TileType *slot = tile_type_slot(gpu->module->context, op->results[0].type);
    GpuSharedTile tile = gpu_shared_tile(slot);
    group->bytes += gpu_shared_bytes(slot);
    group->copied += gpu_shared_tile_bytes(&tile);
    group->channels++;
    group->blocks = 1;
}

/* A copy to all blocks of a cluster fills slots of theirs. */
static void find_copy(TileOp *op, void *state) {
    Gpu *gpu = state;
    if (op->id != TILE_OP_COPY_TILE || !tile_op_get(op, TILE_ATTRIBUTE_MULTICAST)) return;
    const TileOp *channel = tile_op_operand(tile_op_named(op, TILE_OPERAND_PLACE)->op, 0)->op;
    gpu->channels->groups[tile_op_integer(channel, TILE_ATTRIBUTE_GROUP, 0)].blocks = gpu->func->cluster;
}

static void look_for_parts(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_CLUSTER_REDUCE && tile_op_get(op, TILE_ATTRIBUTE_AXIS); }

static void count_groups(TileOp *op, void *count) {
    int64_t end = op->id == TILE_OP_CHANNEL ? tile_op_integer(op, TILE_ATTRIBUTE_GROUP, 0) + 1 : 0;
    if (end > *(unsigned *)count) *(unsigned *)count = (unsigned)end;
}

void gpu_find_channels(Gpu *gpu, TileBlock *body) {
    gpu->channels = TILE_NEW(gpu->arena, GpuChannels);
    tile_map_init(&gpu->channels->buffers, gpu->arena);
    tile_block_walk(body, count_groups, &gpu->channels->count);
    gpu->channels->groups = TILE_NEW_ARRAY(gpu->arena, Group, gpu->channels->count);
    tile_block_walk(body, find_channel, gpu);
    tile_block_walk(body, find_copy, gpu);
    tile_block_walk(body, look_for_parts, &gpu->channels->ends);
}

int64_t gpu_channels_bytes(const Gpu *gpu) {
    int64_t bytes = 0;
    for (unsigned i = 0; i < gpu->channels->count; i++)
        bytes += gpu->channels->groups[i].slots * gpu->channels->groups[i].bytes;
    return bytes;
}

static Group *group_of(const Gpu *gpu, const TileOp *take) {
    const TileOp *channel = tile_op_operand(take, 0)->op;
    return &gpu->channels->groups[tile_op_integer(channel, TILE_ATTRIBUTE_GROUP, 0)];
}

void gpu_lower_channel(Gpu *gpu, TileOp *op) {
    const TileType *shared = tile_type_pointer(gpu->module->context, TILE_SPACE_SHARED);
    Group *group = &gpu->channels->groups[tile_op_integer(op, TILE_ATTRIBUTE_GROUP, 0)];
    int64_t bytes = gpu_shared_bytes(tile_type_slot(gpu->module->context, op->results[0].type));
    TileValue *buffer = gpu_build_buffer(&gpu->b, shared, bytes, GPU_PANEL_ALIGN, group->slots);
    tile_map_set(&gpu->channels->buffers, &op->results[0], buffer);
    if (gpu->channels->ends) tile_op_set_integer(gpu->module, buffer->op, TILE_ATTRIBUTE_ENDS, 1);
    if (group->full) return;
    group->full = gpu_build_buffer(&gpu->b, shared, 2 * group->slots * GPU_MBARRIER_BYTES, GPU_MBARRIER_BYTES, 1);
    group->empty = tile_build_ptr_add(&gpu->b, group->full, gpu_i64(gpu, group->slots * GPU_MBARRIER_BYTES));
}

TileValue *gpu_filled_mbarrier(const Gpu *gpu, const TileOp *acquire) {
    return group_of(gpu, acquire)->filled.mbarrier;
}

void gpu_miss_bytes(Gpu *gpu, const TileOp *acquire, TileValue *bytes) {
    Group *group = group_of(gpu, acquire);
    group->missing = group->missing ? gpu_binary(gpu, TILE_OP_ADD, group->missing, bytes) : bytes;
}

/* The same number (of 32 bits), of which the back end knows that all lanes have it: what is computed of it, as
 * descriptors and addresses of mbarriers are, takes no registers of the lanes. */
TileValue *gpu_uniform(Gpu *gpu, TileValue *value) {
    TileValue *word = tile_build_convert(&gpu->b, value, TILE_I32);
    return tile_op_result(tile_build_op(&gpu->b, TILE_OP_UNIFORM, &word, 1, NULL, 0, NULL, 1), 0);
}

/* The first take of a round waits for the slot: an acquire until it is empty, which it is at first, a wait until it is
 * full. */
void gpu_lower_take(Gpu *gpu, const TileOp *op) {
    Group *group = group_of(gpu, op);
    bool fills = op->id == TILE_OP_CHANNEL_ACQUIRE;
    Taken *taken = fills ? &group->filled : &group->read;
    if (!taken->takes) {
        TileValue *count = tile_build_convert(&gpu->b, gpu_value(gpu, tile_op_operand(op, 1)), TILE_U32);
        TileValue *slots = tile_build_integer(&gpu->b, count->type, group->slots);
        TileValue *odd = gpu_binary(gpu, TILE_OP_GE, count, slots);
        TileValue *slot =
            tile_build_ternary(&gpu->b, TILE_OP_SELECT, odd, gpu_binary(gpu, TILE_OP_SUB, count, slots), count);
        /* Who reads waits at its own lane's number, which is there sooner than that of all lanes. */
        TileValue *own = tile_build_convert(&gpu->b, slot, TILE_I64);
        taken->slot = fills ? own : tile_build_convert(&gpu->b, gpu_uniform(gpu, slot), TILE_I64);
        taken->mbarrier = mbarrier_of(gpu, fills ? group->full : group->empty, taken->slot);
        gpu_build_phase_wait(gpu, mbarrier_of(gpu, fills ? group->empty : group->full, own), odd, fills);
    }
    taken->takes = (taken->takes + 1) % group->channels;
    TileValue *buffer = tile_map_get(&gpu->channels->buffers, tile_op_operand(op, 0));
    TileValue *offset = gpu_binary(gpu, TILE_OP_MUL, taken->slot, gpu_i64(gpu, gpu_shared_bytes(op->results[0].type)));
    tile_map_set(&gpu->values, &op->results[0], tile_build_ptr_add(&gpu->b, buffer, offset));
}

/* `where`: NULL, or a condition. */
static void arrive_by_warp(Gpu *gpu, TileValue *mbarrier, int64_t blocks, TileValue *where) {
    TileBuilder outer;
    TileValue *lane = gpu_binary(gpu, TILE_OP_AND, gpu->thread, gpu_i64(gpu, TILE_WARP_THREADS - 1));
    TileValue *first = gpu_binary(gpu, TILE_OP_EQ, lane, gpu_i64(gpu, 0));
    TileOp *branch = gpu_begin_branch(gpu, gpu_and(gpu, first, where), &outer);
    build_arrive_in(gpu, mbarrier, blocks);
    gpu_end_branch(gpu, branch, &outer);
}

void gpu_arrive_by_warp(Gpu *gpu, TileValue *mbarrier) { arrive_by_warp(gpu, mbarrier, 1, NULL); }

static void release_before(Gpu *gpu, Group *group, const TileOp *release);

static bool is_read_by_lanes(const TileValue *slot) {
    for (const TileUse *use = slot->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_SHARED_TILE && !gpu_stays_shared(use->user)) return true;
    return false;
}

/* The last end of a round tells the others: a commit how many bytes come, a release, for each warp, that it has read.
 */
void gpu_lower_take_end(Gpu *gpu, const TileOp *op) {
    Group *group = group_of(gpu, tile_op_operand(op, 0)->op);
    bool fills = op->id == TILE_OP_CHANNEL_COMMIT;
    Taken *taken = fills ? &group->filled : &group->read;
    taken->ends = (taken->ends + 1) % group->channels;
    taken->by_lanes |= !fills && is_read_by_lanes(tile_op_operand(op, 0));
    if (taken->ends) return;
    if (taken->by_lanes) gpu_build_plain(&gpu->b, TILE_OP_WARP_BARRIER);
    taken->by_lanes = false;
    if (fills && group->missing)
        build_arrive_without(gpu, taken->mbarrier, group->copied, group->missing);
    else if (fills)
        build_arrive(gpu, taken->mbarrier, group->copied);
    else if (tile_op_integer(op, TILE_ATTRIBUTE_PENDING, 0))
        release_before(gpu, group, op);
    else
        arrive_by_warp(gpu, taken->mbarrier, group->blocks, NULL);
    if (fills) group->missing = NULL;
}

/* ---- slots that products still read ---- */

static TileValue *slot_before(Gpu *gpu, const Group *group, TileValue *slot) {
    TileValue *first = gpu_binary(gpu, TILE_OP_EQ, slot, gpu_i64(gpu, 0));
    return tile_build_ternary(&gpu->b, TILE_OP_SELECT, first, gpu_i64(gpu, group->slots - 1),
                              gpu_binary(gpu, TILE_OP_SUB, slot, gpu_i64(gpu, 1)));
}

/* The slot of the iteration before is free; the first one has none before it. */
static void release_before(Gpu *gpu, Group *group, const TileOp *release) {
    const TileOp *loop = release->block->op;
    TileValue *place = mbarrier_of(gpu, group->empty, slot_before(gpu, group, group->read.slot));
    TileValue *index = gpu_value(gpu, loop->regions[0].arguments[0]);
    arrive_by_warp(gpu, place, group->blocks, gpu_binary(gpu, TILE_OP_GT, index, gpu_value(gpu, tile_op_operand(loop, 0))));
    group->pending = release;
}

/* Of a loop's last iteration, behind the wait for its products. */
void gpu_release_pending(Gpu *gpu, const TileOp *loop) {
    TileValue *ran = NULL;
    for (unsigned i = 0; i < gpu->channels->count; i++) {
        Group *group = &gpu->channels->groups[i];
        if (!group->pending || group->pending->block->op != loop) continue;
        const TileOp *take = tile_op_operand(group->pending, 0)->op;
        TileValue *end = gpu_value(gpu, &loop->results[tile_op_operand(take, 1)->index - 1]);
        TileValue *slots = gpu_i64(gpu, group->slots), *odd = gpu_binary(gpu, TILE_OP_GE, end, slots);
        TileValue *next = tile_build_ternary(&gpu->b, TILE_OP_SELECT, odd, gpu_binary(gpu, TILE_OP_SUB, end, slots), end);
        if (!ran) ran = gpu_binary(gpu, TILE_OP_LT, gpu_value(gpu, tile_op_operand(loop, 0)), gpu_value(gpu, tile_op_operand(loop, 1)));
        arrive_by_warp(gpu, mbarrier_of(gpu, group->empty, slot_before(gpu, group, next)), group->blocks, ran);
        group->pending = NULL;
    }
}

/* Copies have to see the mbarriers as well. */
void gpu_build_mbarriers(Gpu *gpu, int64_t readers) {
    TileBuilder outer;
    TileOp *branch = gpu_begin_branch(gpu, gpu_binary(gpu, TILE_OP_EQ, gpu->thread, gpu_i64(gpu, 0)), &outer);
    for (unsigned i = 0; i < gpu->channels->count; i++) {
        const Group *group = &gpu->channels->groups[i];
        for (int64_t slot = 0; slot < group->slots; slot++) {
            build_init(gpu, tile_build_ptr_add(&gpu->b, group->full, gpu_i64(gpu, slot * GPU_MBARRIER_BYTES)), 1);
            build_init(gpu, tile_build_ptr_add(&gpu->b, group->empty, gpu_i64(gpu, slot * GPU_MBARRIER_BYTES)), readers * group->blocks);
        }
    }
    for (int64_t turn = 0; turn < gpu_count_orders(gpu); turn++)
        build_init(gpu, tile_build_ptr_add(&gpu->b, gpu->order, gpu_i64(gpu, turn * GPU_MBARRIER_BYTES)),
                   gpu->groups_in_turn ? readers / gpu->groups_in_turn : readers);
    gpu_build_plain(&gpu->b, TILE_OP_FENCE_ASYNC);
    gpu_end_branch(gpu, branch, &outer);
    bool meets = false; /* with blocks that copy to its slots */
    for (unsigned i = 0; i < gpu->channels->count; i++) meets |= gpu->channels->groups[i].blocks > 1;
    gpu_build_plain(&gpu->b, meets ? TILE_OP_CLUSTER_BARRIER : TILE_OP_BARRIER);
}
