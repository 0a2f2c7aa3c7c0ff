/* Facts about tensors: those that a request grants, and those that compiled code relies on. */
#include <string.h>

#include "driver/compile/image.h"
#include "launch/guard.h"

static uint64_t stride_bits(const TileType *type, int64_t stride) {
    if (stride == 0) return TILE_GUARD_STRIDE_ZERO;
    return stride == (int64_t)tile_scalar_bytes(type->scalar) ? TILE_GUARD_STRIDE_UNIT : 0;
}

bool tile_image_tells_nothing(uint64_t facts) { return !(facts & ~(uint64_t)TILE_GUARD_NARROW); }

void tile_image_schedule(TileFunc *kernel, TileSchedule schedule) {
    if (schedule.least_programs) kernel->least_programs = schedule.least_programs;
    if (schedule.split_programs[0]) memcpy(kernel->split_programs, schedule.split_programs, sizeof schedule.split_programs);
    memcpy(kernel->blocks_together, schedule.blocks_together, sizeof schedule.blocks_together);
    kernel->packs |= schedule.packs;
    kernel->stream |= schedule.stream;
    kernel->once |= schedule.once;
    kernel->busy |= schedule.busy;
    kernel->reloads |= schedule.reloads;
    kernel->keeps |= schedule.keeps;
    if (schedule.joined_rows) {
        kernel->joined_rows = schedule.joined_rows;
        kernel->joined_columns = schedule.joined_columns;
    }
    if (schedule.joined_lanes) {
        kernel->joined_lanes = schedule.joined_lanes;
        kernel->joined_axis = schedule.joined_axis;
    }
    if (schedule.turns && !kernel->turns) kernel->turns = schedule.turns;
    if (schedule.cluster && !kernel->cluster) kernel->cluster = schedule.cluster;
    if (schedule.warps && !kernel->warps) kernel->warps = schedule.warps;
}

void tile_image_assume(TileFunc *kernel, const TileImageSignature *signature, const TileImageRequest *request) {
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        const TileType *type = kernel->body.arguments[i]->type;
        int number = tile_image_parameter(signature, kernel->parameters[i].name);
        if (number >= 0 && (request->facts[number] & TILE_GUARD_VALUE))
            kernel->parameters[i].facts.value = request->values[number];
        if (type->kind != TILE_TYPE_TENSOR || number < 0) continue;
        TileTensorFacts *facts = &kernel->parameters[i].facts;
        uint64_t granted = request->facts[number];
        kernel->parameters[i].noalias = !(signature->overlap >> number & 1) || (granted & TILE_GUARD_DISJOINT);
        facts->narrow = granted & TILE_GUARD_NARROW;
        if (tile_image_tells_nothing(granted) && type->rank)
            kernel->parameters[i].likely_stride = 1u << (type->rank - 1);
        for (unsigned align = 2; align <= 128; align *= 2)
            if (granted & tile_guard_align(align)) facts->align = align;
        for (unsigned most = TILE_GREATEST_SHORT_ROW; most >= TILE_LEAST_SHORT_ROW; most /= 2)
            if (granted & tile_guard_row(most)) facts->most = most;
        facts->map = (granted & TILE_GUARD_MAP) && facts->align >= TILE_MAP_GRAIN;
        for (unsigned k = 0; k < type->rank; k++) {
            if (granted & tile_guard_dimension(k, TILE_GUARD_STRIDE_UNIT))
                facts->stride[k] = tile_scalar_bytes(type->scalar);
            else if (type->access == TILE_ACCESS_IN && (granted & tile_guard_dimension(k, TILE_GUARD_STRIDE_ZERO)))
                facts->stride[k] = 0; /* a written tensor has such a stride only if it is empty, or by mistake */
            if (granted & tile_guard_dimension(k, TILE_GUARD_DENSE)) facts->dense |= 1u << k;
            for (unsigned divisor = 2; divisor <= TILE_GUARD_MOST_MULTIPLE; divisor *= 2)
                if (granted & tile_guard_multiple(type->rank, k, divisor)) facts->multiple[k] = divisor;
            bool contiguous = facts->stride[k] == (int64_t)tile_scalar_bytes(type->scalar);
            if (request->complete && contiguous && facts->multiple[k] == TILE_UNKNOWN) facts->multiple[k] = 1;
        }
    }
}

/* The words of scalars: one bit. */
static void collect_value(const TileParameter *scalar, uint64_t *need, uint64_t *asked) {
    if (scalar->used_value) *need |= TILE_GUARD_VALUE;
    if (scalar->asked_value) *asked |= TILE_GUARD_VALUE;
}

/* `granted` is the kernel's parameter; `used` is the same, or the phase's. */
static uint64_t used_bits(const TileType *type, const TileParameter *granted, const TileParameter *used) {
    uint64_t bits = tile_guard_align(used->used_align) | (used->used_narrow ? TILE_GUARD_NARROW : 0);
    for (unsigned most = TILE_LEAST_SHORT_ROW; most <= TILE_GREATEST_SHORT_ROW; most *= 2)
        if (used->used_most & most) bits |= tile_guard_row(most);
    if (used->used_map) bits |= TILE_GUARD_MAP | tile_guard_align(TILE_MAP_GRAIN);
    for (unsigned k = 0; k < type->rank; k++) {
        if (used->used_stride >> k & 1)
            bits |= tile_guard_dimension(k, (unsigned)stride_bits(type, granted->facts.stride[k]));
        if (used->used_dense >> k & 1) bits |= tile_guard_dimension(k, TILE_GUARD_DENSE);
    }
    return bits;
}

/* Code uses the widest alignment that is known, so each up to the one asked for makes a difference. */
static uint64_t asked_bits(const TileType *type, const TileParameter *asked) {
    uint64_t bits = asked->asked_narrow ? TILE_GUARD_NARROW : 0;
    unsigned widest = asked->asked_map && asked->asked_align < TILE_MAP_GRAIN ? TILE_MAP_GRAIN : asked->asked_align;
    for (unsigned most = TILE_LEAST_SHORT_ROW; most <= TILE_GREATEST_SHORT_ROW; most *= 2)
        if (asked->asked_most & most) bits |= tile_guard_row(most);
    if (asked->asked_map) bits |= TILE_GUARD_MAP;
    for (unsigned align = 2; align <= widest; align *= 2) bits |= tile_guard_align(align);
    for (unsigned k = 0; k < type->rank; k++) {
        if (asked->asked_stride >> k & 1)
            bits |= tile_guard_dimension(k, TILE_GUARD_STRIDE_ZERO | TILE_GUARD_STRIDE_UNIT);
        if (asked->asked_dense >> k & 1) bits |= tile_guard_dimension(k, TILE_GUARD_DENSE);
    }
    return bits;
}

/* A set of divisors as bits of the tensor's word. */
static uint64_t multiple_bits(const TileType *type, unsigned axis, uint32_t divisors) {
    uint64_t bits = 0;
    for (unsigned divisor = 2; divisor <= TILE_GUARD_MOST_MULTIPLE; divisor *= 2)
        if (divisors & divisor) bits |= tile_guard_multiple(type->rank, axis, divisor);
    return bits;
}

/* Adds what a function, the kernel or one of its phases, used and asked of the kernel's tensor: of its address, or of
 * an extent, which is a parameter of its own in machine form. */
static void collect_uses(const TileFunc *kernel, uint32_t argument, const TileParameter *own, uint64_t *need,
                         uint64_t *asked) {
    const TileType *type = kernel->body.arguments[argument]->type;
    if (own->role == TILE_ROLE_EXTENT) {
        *need |= multiple_bits(type, own->axis, own->used_multiple);
        *asked |= multiple_bits(type, own->axis, own->asked_multiple);
    } else if (own->role != TILE_ROLE_STRIDE) {
        *need |= used_bits(type, &kernel->parameters[argument], own);
        *asked |= asked_bits(type, own);
        if (type->rank) *need |= multiple_bits(type, type->rank - 1u, own->used_multiple);
        if (type->rank) *asked |= multiple_bits(type, type->rank - 1u, own->asked_multiple);
    }
}

static void collect_phase(const TileFunc *phase, uint32_t argument, uint64_t *need, uint64_t *asked) {
    for (uint32_t i = 0; i < phase->body.argument_count; i++) {
        const TileParameter *own = &phase->parameters[i];
        if (tile_role_has_argument(own->role) && own->argument == argument)
            collect_uses(phase->kernel, argument, own, need, asked);
    }
}

void tile_image_collect(const TileModule *module, const TileFunc *kernel, const TileImageSignature *signature,
                        TileImageCode *code) {
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        const TileType *type = kernel->body.arguments[i]->type;
        int number = tile_image_parameter(signature, kernel->parameters[i].name);
        if (number >= 0) collect_value(&kernel->parameters[i], &code->need[number], &code->asked[number]);
        if (type->kind != TILE_TYPE_TENSOR || number < 0) continue;
        if (signature->overlap >> number & 1) { /* LLVM is always told */
            code->asked[number] |= TILE_GUARD_DISJOINT;
            if (kernel->parameters[i].noalias) code->need[number] |= TILE_GUARD_DISJOINT;
        }
        collect_uses(kernel, i, &kernel->parameters[i], &code->need[number], &code->asked[number]);
        for (const TileFunc *func = module->first; func; func = func->next)
            if (func->kernel == kernel) collect_phase(func, i, &code->need[number], &code->asked[number]);
    }
}
