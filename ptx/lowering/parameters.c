/* The parameters in machine form: what a tensor becomes, which facts the code uses. */
#include "ptx/lowering/machine.h"

static TileValue *add_parameter(Gpu *gpu, const char *name, const TileType *type) {
    tile_func_add_parameter(gpu->func, name, type);
    return gpu->func->body.arguments[gpu->func->body.argument_count - 1];
}

/* An extent or stride of the tensor. */
static TileValue *add_part(Gpu *gpu, const TileParameter *tensor, TileParameterRole role, unsigned axis) {
    const char *part = role == TILE_ROLE_EXTENT ? "dim" : "stride";
    const char *name = tile_arena_format(gpu->arena, "%s.%s%u", tensor->name, part, axis);
    TileValue *value = add_parameter(gpu, name, tile_type_scalar(gpu->module->context, TILE_I64));
    tile_func_set_role(gpu->func, value, role, tensor->argument, axis);
    if (role == TILE_ROLE_EXTENT) gpu->func->parameters[value->index].facts.multiple[0] = tensor->facts.multiple[axis];
    return value;
}

static TileValue *add_number(Gpu *gpu, const TileParameter *number, const TileType *type) {
    TileValue *value = add_parameter(gpu, number->name, type);
    tile_func_set_role(gpu->func, value, number->role, number->argument, 0);
    return value;
}

static void add_tensor(Gpu *gpu, TileValue *old, const TileParameter *parameter) {
    GpuTensor *tensor = TILE_NEW(gpu->arena, GpuTensor);
    tensor->pointer = add_parameter(gpu, parameter->name, tile_type_pointer(gpu->module->context, TILE_SPACE_GLOBAL));
    tile_func_set_role(gpu->func, tensor->pointer, parameter->role, parameter->argument, 0);
    TileParameter *added = &gpu->func->parameters[tensor->pointer->index];
    added->facts = parameter->facts;
    added->noalias = parameter->noalias;
    added->readonly = parameter->readonly;
    added->asked_map = parameter->asked_map;
    added->asked_narrow = parameter->asked_narrow;
    added->used_narrow = parameter->used_narrow;
    added->asked_multiple = parameter->asked_multiple;
    added->used_multiple = parameter->used_multiple;
    for (unsigned d = 0; d < old->type->rank; d++) tensor->extent[d] = add_part(gpu, parameter, TILE_ROLE_EXTENT, d);
    for (unsigned d = 0; d < old->type->rank; d++) tensor->stride[d] = add_part(gpu, parameter, TILE_ROLE_STRIDE, d);
    tile_map_set(&gpu->tensors, old, tensor);
}

void gpu_replace_signature(Gpu *gpu, TileBlock *old) {
    TileFunc *func = gpu->func;
    TileParameter *parameters = func->parameters;
    *old = (TileBlock){.func = func, .arguments = func->body.arguments, .argument_count = func->body.argument_count};
    tile_block_splice(old, &func->body);
    func->body.arguments = NULL;
    func->body.argument_count = func->body.argument_capacity = 0;
    func->parameters = NULL;
    for (uint32_t i = 0; i < old->argument_count; i++) {
        if (old->arguments[i]->type->kind == TILE_TYPE_TENSOR)
            add_tensor(gpu, old->arguments[i], &parameters[i]);
        else
            tile_map_set(&gpu->values, old->arguments[i],
                         add_number(gpu, &parameters[i], old->arguments[i]->type));
    }
    TileValue *shared = add_parameter(gpu, "shared", tile_type_pointer(gpu->module->context, TILE_SPACE_SHARED));
    tile_func_set_role(func, shared, TILE_ROLE_SCRATCH, 0, 0);
}

/* Truncated to 32 bits and extended: products of two such numbers take one instruction. */
TileValue *gpu_narrow(Gpu *gpu, TileValue *value) {
    return tile_build_convert(&gpu->b, tile_build_convert(&gpu->b, value, TILE_U32), TILE_I64);
}

bool gpu_is_narrow(const GpuTensor *tensor) {
    TileParameter *parameter = tensor->parameter;
    parameter->asked_narrow = true;
    parameter->used_narrow |= parameter->facts.narrow;
    return parameter->facts.narrow;
}

/* Known strides of a variant become constants. Where offsets are known to be narrow, strides are narrow too; the
 * stride of a dimension of one element may be any number, but is only multiplied by 0. */
void gpu_use_facts(Gpu *gpu, const TileBlock *old) {
    for (uint32_t i = 0; i < old->argument_count; i++) {
        GpuTensor *tensor = tile_map_get(&gpu->tensors, old->arguments[i]);
        if (!tensor) continue;
        tensor->parameter = &gpu->func->parameters[tensor->pointer->index];
        for (unsigned d = 0; d < old->arguments[i]->type->rank; d++) {
            int64_t stride = tensor->parameter->facts.stride[d];
            tensor->parameter->asked_stride |= 1u << d;
            if (stride == TILE_UNKNOWN) {
                if (gpu_is_narrow(tensor)) tensor->stride[d] = gpu_narrow(gpu, tensor->stride[d]);
                continue;
            }
            tensor->stride[d] = gpu_i64(gpu, stride);
            tensor->parameter->used_stride |= 1u << d;
        }
    }
}

void gpu_report_uses(const Gpu *gpu) {
    TileFunc *kernel = gpu->func->kernel;
    for (uint32_t i = 0; kernel && i < gpu->func->body.argument_count; i++) {
        const TileParameter *own = &gpu->func->parameters[i];
        if (own->role != TILE_ROLE_DATA || own->argument >= kernel->body.argument_count) continue; /* a temp */
        TileParameter *parameter = &kernel->parameters[own->argument];
        parameter->used_stride |= own->used_stride;
        parameter->asked_stride |= own->asked_stride;
        parameter->used_dense |= own->used_dense;
        parameter->asked_dense |= own->asked_dense;
        parameter->used_narrow |= own->used_narrow;
        parameter->asked_narrow |= own->asked_narrow;
        parameter->used_map |= own->used_map;
        parameter->asked_map |= own->asked_map;
        if (own->used_align > parameter->used_align) parameter->used_align = own->used_align;
        if (own->asked_align > parameter->asked_align) parameter->asked_align = own->asked_align;
    }
}
