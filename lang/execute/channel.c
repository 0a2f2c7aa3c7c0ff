/* Channels, in tile form: a single thread executes everything, so an op that would wait forever is a fault, unless
 * another partition ends its wait. Slots are used cyclically. */
#include <string.h>

#include "lang/execute/state.h"

static int64_t slot_bytes(const TileType *type) {
    return type->extent[0] * type->extent[1] * (int64_t)tile_scalar_bytes(type->scalar);
}

bool tile_exec_channel(TileExecutor *e, const ExecInstruction *in) {
    ExecValue result = tile_exec_result(e, in);
    int64_t slots = tile_op_integer(in->op, TILE_ATTRIBUTE_SLOTS, 1);
    enum { ALIGN = 16 };
    if (!tile_exec_own_object(e, in, slots * slot_bytes(in->op->results[0].type), ALIGN, &result.lanes[0]))
        return false;
    e->objects[result.lanes[0]].channel = (ExecChannel){.slots = (uint64_t)slots};
    *result.any = 0;
    return true;
}

/* Gives slot `number`, counted from the channel's first, and checks that the loop's own count agrees: the slot, or
 * between partitions, where the round through the ring has to be known as well, a number below twice the slots. */
static bool give_slot(TileExecutor *e, const ExecInstruction *in, uint64_t number) {
    ExecValue channel = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    uint64_t slots = e->objects[channel.lanes[0]].channel.slots, slot = number % slots;
    const TileOp *ring = tile_value_def(tile_op_operand(in->op, 0), TILE_OP_CHANNEL);
    bool rounds = ring && tile_op_get(ring, TILE_ATTRIBUTE_GROUP);
    int64_t expected = (int64_t)(number % (rounds ? 2 * slots : slots)), counted = expected;
    if (in->op->operand_count > 1 && !tile_exec_integer(e, in, 1, "the number of the slot", &counted)) return false;
    if (counted != expected)
        return tile_exec_fault(e, in, "slot %lld is not the next one, which is %lld", (long long)counted,
                               (long long)expected);
    result.lanes[0] = channel.lanes[0];
    result.lanes[1] = slot * (uint64_t)slot_bytes(in->op->results[0].type);
    *result.any = 0;
    return true;
}

static void forget_slot(TileExecutor *e, const ExecInstruction *in, ExecValue place) {
    ExecObject *object = &e->objects[place.lanes[0]];
    const TileValue *pointer = in->op->result_count ? &in->op->results[0] : tile_op_operand(in->op, 0);
    if (object->poison) memset(object->poison + place.lanes[1], 1, (size_t)slot_bytes(pointer->type));
}

bool tile_exec_channel_acquire(TileExecutor *e, const ExecInstruction *in) {
    ExecChannel *channel = &e->objects[tile_exec_operand(e, in, 0).lanes[0]].channel;
    if (channel->acquired != channel->committed) return tile_exec_fault(e, in, "the slot before it is not committed");
    if (channel->acquired - channel->released == channel->slots)
        return tile_exec_wait_for_partition(e, in, "no slot is released");
    if (!give_slot(e, in, channel->acquired)) return false;
    channel->acquired++;
    forget_slot(e, in, tile_exec_result(e, in));
    return true;
}

bool tile_exec_channel_commit(TileExecutor *e, const ExecInstruction *in) {
    e->objects[tile_exec_operand(e, in, 0).lanes[0]].channel.committed++;
    return tile_exec_wake_partition(e);
}

bool tile_exec_channel_wait(TileExecutor *e, const ExecInstruction *in) {
    ExecChannel *channel = &e->objects[tile_exec_operand(e, in, 0).lanes[0]].channel;
    uint64_t pending = (uint64_t)tile_op_integer(in->op, TILE_ATTRIBUTE_PENDING, 0);
    if (channel->waited == channel->committed) return tile_exec_wait_for_partition(e, in, "no slot is committed");
    if (channel->waited != channel->released) return tile_exec_fault(e, in, "the slot before it is not released");
    if (channel->committed - channel->waited - 1 < pending)
        return tile_exec_fault(e, in, "%llu slots were committed after it, not %llu",
                               (unsigned long long)(channel->committed - channel->waited - 1),
                               (unsigned long long)pending);
    if (!give_slot(e, in, channel->waited)) return false;
    channel->waited++;
    return true;
}

bool tile_exec_channel_release(TileExecutor *e, const ExecInstruction *in) {
    ExecValue place = tile_exec_operand(e, in, 0);
    e->objects[place.lanes[0]].channel.released++;
    forget_slot(e, in, place);
    return tile_exec_wake_partition(e);
}
