/* Activations: the registers of a function's execution, with its constants in them. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

static void set_iota(const TileOp *op, ExecValue value) {
    const TileType *type = op->results[0].type;
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), stride = 1, extent = type->extent[axis];
    if (type->kind == TILE_TYPE_VECTOR) extent = value.count;
    for (unsigned i = (unsigned)axis + 1; i < type->rank; i++) stride *= type->extent[i];
    for (uint32_t i = 0; i < value.count; i++)
        value.lanes[i] = tile_scalar_from_signed(type->scalar, i / stride % extent);
}

static void set_constants(ExecActivation *activation) {
    const ExecProgram *program = activation->program;
    for (size_t c = 0; c < program->constants.count; c++) {
        const TileOp *op = program->constants.items[c];
        ExecValue value = tile_exec_register(activation, op->results[0].number);
        if (op->id == TILE_OP_IOTA) {
            set_iota(op, value);
            continue;
        }
        uint64_t bits = activation->program->vector_scale;
        if (op->id == TILE_OP_CONST)
            bits = tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits & tile_scalar_mask(op->results[0].type->scalar);
        for (uint32_t i = 0; i < value.count; i++) value.lanes[i] = bits;
    }
}

/* Parameters are poison until they are bound. */
static void set_up(ExecActivation *activation) {
    const ExecProgram *program = activation->program;
    set_constants(activation);
    for (uint32_t i = 0; i < program->body.argument_count; i++) {
        ExecValue value = tile_exec_register(activation, program->body.first_argument + i);
        memset(value.poison, 1, value.count);
        *value.any = 1;
    }
}

static size_t activation_bytes(const TileExecutor *e, const ExecProgram *program) {
    size_t lane = sizeof(uint64_t) + 1 + (e->options.slack ? sizeof(double) : 0);
    size_t times = program->times_registers ? program->register_count * sizeof(uint64_t) : 0;
    return sizeof(ExecActivation) + times + program->lane_count * lane + program->register_count;
}

/* The activation and its registers are one allocation. */
ExecActivation *tile_exec_activate(TileExecutor *e, ExecProgram *program) {
    size_t lanes = program->lane_count;
    size_t bytes = activation_bytes(e, program);
    if (!tile_exec_count_bytes(e, bytes)) return NULL;
    ExecActivation *activation = calloc(1, bytes);
    if (!activation) {
        tile_exec_out_of_memory(e);
        return NULL;
    }
    activation->program = program;
    activation->lanes = (uint64_t *)(activation + 1);
    if (program->times_registers) {
        activation->written = activation->lanes;
        activation->lanes += program->register_count;
    }
    activation->slack = e->options.slack ? (double *)(activation->lanes + lanes) : NULL;
    activation->poison = (uint8_t *)(activation->lanes + (e->options.slack ? 2 * lanes : lanes));
    activation->any = activation->poison + lanes;
    activation->first_object = e->object_count;
    set_up(activation);
    return activation;
}

void tile_exec_reset(ExecActivation *activation) {
    const ExecProgram *program = activation->program;
    memset(activation->lanes, 0, program->lane_count * 9 + program->register_count);
    if (activation->written) memset(activation->written, 0, program->register_count * sizeof *activation->written);
    set_up(activation);
}

void tile_exec_deactivate(TileExecutor *e, ExecActivation *activation) {
    tile_exec_release(e, activation->first_object);
    e->bytes -= activation_bytes(e, activation->program);
    free(activation);
}
