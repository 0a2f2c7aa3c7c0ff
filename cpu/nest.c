/* Purpose: lower tiles to `loop` nests, whose bodies compute one point, `buffer`s, `dot_block`s, and control flow over
 * scalars. A tensor parameter becomes a pointer, extents and strides in bytes; `scratch` is the last parameter. The
 * iteration space of a loop is the valid lanes, so its body needs no guards.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout> {role = data, argument = 0}, %begin: i64 {role = begin},
 *       %end: i64 {role = end}) {
 *       %n = dim %x {axis = 0} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %eight = const {value = 8} : i64
 *       for %begin, %end, %one (%program: i64) {
 *         %first = mul %program, %eight : i64
 *         %left = sub %n, %first : i64
 *         %hi = min %left, %eight : i64
 *         %v = load_tile %x, %first, %one, %zero, %hi {access = [range]} : f32[8]
 *         %w = mul %v, %v : f32[8]
 *         store_tile %x, %w, %first, %one, %zero, %hi {access = [range], nest = [0]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global> {role = data, argument = 0, asked_stride = 1},
 *       %x.dim0: i64 {role = extent, argument = 0, axis = 0}, %x.stride0: i64 {role = stride, argument = 0, axis = 0},
 *       %begin: i64 {role = begin}, %end: i64 {role = end}, %scratch: ptr<scratch> {role = scratch}) {
 *       %0 = const {value = 1} : i64
 *       %1 = const {value = 8} : i64
 *       %2 = const {value = 0} : i64
 *       for %begin, %end, %0 (%program: i64) {
 *         %first = mul %program, %1 : i64
 *         %left = sub %x.dim0, %first : i64
 *         %hi = min %left, %1 : i64
 *         %3 = mul %first, %x.stride0 : i64
 *         %4 = ptr_add %x, %3 : ptr<global>
 *         %5 = mul %first, %x.stride0 : i64
 *         %6 = ptr_add %x, %5 : ptr<global>
 *         loop %2, %hi {loop = parallel, extent = 8} (%7: i64) {
 *           %8 = mul %7, %x.stride0 : i64
 *           %9 = ptr_add %4, %8 : ptr<global>
 *           %10 = load %9 : f32
 *           %11 = mul %10, %10 : f32
 *           %12 = mul %7, %x.stride0 : i64
 *           %13 = ptr_add %6, %12 : ptr<global>
 *           store %11, %13
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Needs: programs; cpu-fuse, whose decisions it obeys.
 * Keeps: the order of memory accesses to each tensor; the order of reductions.
 * Cost: linear in the ops, quadratic in the statements of a block (64 at a time). */
#include "cpu/nest.h"

#include <string.h>

static TileValue *add_parameter(Nest *n, const char *name, const TileType *type) {
    tile_func_add_parameter(n->func, name, type);
    return n->func->body.arguments[n->func->body.argument_count - 1];
}

/* An extent or stride of the tensor. */
static TileValue *add_part(Nest *n, const TileParameter *tensor, TileParameterRole role, unsigned axis) {
    const char *part = role == TILE_ROLE_EXTENT ? "dim" : "stride";
    const char *name = tile_arena_format(n->arena, "%s.%s%u", tensor->name, part, axis);
    TileValue *value = add_parameter(n, name, tile_type_scalar(n->module->context, TILE_I64));
    tile_func_set_role(n->func, value, role, tensor->argument, axis);
    return value;
}

static TileValue *add_number(Nest *n, const TileParameter *number, const TileType *type) {
    TileValue *value = add_parameter(n, number->name, type);
    tile_func_set_role(n->func, value, number->role, number->argument, 0);
    return value;
}

/* A temporary of each program, whose extents are known, is in the scratch memory of the thread: its programs follow one
 * another, and find it in the cache. */
static void place_own(Nest *n, NestTensor *tensor, const TileValue *old) {
    const TileType *type = old->type;
    TileTensorFacts *facts = &tensor->facts.facts;
    int64_t bytes = tile_scalar_bytes(type->scalar);
    if (!tensor->facts.own || !old->first_use || n->func->bands) return;
    for (unsigned d = tensor->facts.own; d < type->rank; d++)
        if (facts->extent[d] <= 0) return;
    for (unsigned d = type->rank; d-- > 0;) {
        facts->stride[d] = d < tensor->facts.own ? 0 : bytes;
        if (d >= tensor->facts.own) bytes *= facts->extent[d];
    }
    TileBuilder b = tile_builder_at_end(n->module, &n->entry);
    tensor->pointer = tile_build_buffer(&b, bytes, 64);
}

static void add_tensor(Nest *n, TileValue *old, const TileParameter *parameter) {
    NestTensor *tensor = TILE_NEW(n->arena, NestTensor);
    const TileType *type = tile_type_pointer(n->module->context, TILE_SPACE_GLOBAL);
    tensor->facts = *parameter;
    tensor->pointer = tensor->parameter = add_parameter(n, parameter->name, type);
    tile_func_set_role(n->func, tensor->pointer, parameter->role, parameter->argument, 0);
    TileParameter *added = &n->func->parameters[tensor->pointer->index];
    added->facts = parameter->facts;
    added->noalias = parameter->noalias;
    added->readonly = parameter->readonly;
    for (unsigned d = 0; d < old->type->rank; d++) {
        tensor->dim[d] = add_part(n, parameter, TILE_ROLE_EXTENT, d);
        n->func->parameters[tensor->dim[d]->index].facts.multiple[0] = parameter->facts.multiple[d];
    }
    for (unsigned d = 0; d < old->type->rank; d++) {
        tensor->stride[d] = add_part(n, parameter, TILE_ROLE_STRIDE, d);
        if (parameter->likely_stride >> d & 1u)
            n->func->parameters[tensor->stride[d]->index].likely = tile_scalar_bytes(old->type->scalar);
    }
    place_own(n, tensor, old);
    nest_info(n, old)->tensor = tensor;
}

/* Replaces the parameters by those of machine form; the old body is moved to n->old. */
static void replace_signature(Nest *n) {
    TileFunc *func = n->func;
    TileParameter *parameters = func->parameters;
    n->old = (TileBlock){.func = func, .arguments = func->body.arguments, .argument_count = func->body.argument_count};
    tile_block_splice(&n->old, &func->body);
    n->body = &n->old;
    func->body.arguments = NULL;
    func->body.argument_count = func->body.argument_capacity = 0;
    func->parameters = NULL;
    for (uint32_t i = 0; i < n->old.argument_count; i++) {
        TileValue *old = n->old.arguments[i];
        if (old->type->kind == TILE_TYPE_TENSOR)
            add_tensor(n, old, &parameters[i]);
        else
            nest_info(n, old)->mapped = add_number(n, &parameters[i], old->type);
    }
    TileValue *scratch = add_parameter(n, "scratch", tile_type_pointer(n->module->context, TILE_SPACE_SCRATCH));
    tile_func_set_role(func, scratch, TILE_ROLE_SCRATCH, 0, 0);
}

/* Records in the kernel's parameters which facts were used. */
static void report_uses(const Nest *n) {
    TileFunc *kernel = n->func->kernel;
    for (uint32_t i = 0; kernel && i < n->func->body.argument_count; i++) {
        const TileParameter *own = &n->func->parameters[i];
        if (own->role != TILE_ROLE_DATA || own->argument >= kernel->body.argument_count) continue; /* a temp */
        TileParameter *parameter = &kernel->parameters[own->argument];
        parameter->used_stride |= own->used_stride;
        parameter->used_extent |= own->used_extent;
        parameter->asked_stride |= own->asked_stride;
    }
}

TileResult tile_pass_cpu_nest(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Nest n = nest_create(context, func);
    n.lowers = true;
    replace_signature(&n);
    nest_find_needs(&n);
    nest_read_homes(&n);
    if (!n.failure) nest_read_loops(&n);
    if (n.failure) return tile_pass_fail(context, TILE_INTERNAL, NULL, "cpu-nest: %s", n.failure);
    TileBlock body = {.func = func};
    n.open_count = 1;
    nest_block(&n, &n.old, &body);
    tile_block_splice(&func->body, &n.entry);
    tile_block_splice(&func->body, &body);
    func->form = TILE_FORM_MACHINE;
    report_uses(&n);
    if (n.failure) return tile_pass_fail(context, TILE_INTERNAL, NULL, "cpu-nest: %s", n.failure);
    return TILE_RESULT_CHANGED;
}
