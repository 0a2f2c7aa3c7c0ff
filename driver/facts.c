/* Facts about tensors: what a request grants to the compiler, and what the compiled code made use of. */
#include <string.h>

#include "driver/image.h"
#include "launch/guard.h"

static uint64_t stride_bits(const TileType *type, int64_t stride) {
    if (stride == 0) return TILE_GUARD_STRIDE_ZERO;
    return stride == (int64_t)tile_scalar_bytes(type->scalar) ? TILE_GUARD_STRIDE_UNIT : 0;
}

bool tile_image_tells_nothing(uint64_t facts) { return !(facts & ~(uint64_t)TILE_GUARD_NARROW); }

void tile_image_assume(TileFunc *kernel, const TileImageSignature *signature, const TileImageRequest *request) {
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        const TileType *type = kernel->body.arguments[i]->type;
        int number = tile_image_parameter(signature, kernel->parameters[i].name);
        if (type->kind != TILE_TYPE_TENSOR || number < 0) continue;
        TileTensorFacts *facts = &kernel->parameters[i].facts;
        uint64_t granted = request->facts[number];
        kernel->parameters[i].noalias = !(signature->overlap >> number & 1) || (granted & TILE_GUARD_DISJOINT);
        facts->narrow = granted & TILE_GUARD_NARROW;
        if (tile_image_tells_nothing(granted) && type->rank)
            kernel->parameters[i].likely_stride = 1u << (type->rank - 1);
        for (unsigned align = 2; align <= 128; align *= 2)
            if (granted & tile_guard_align(align)) facts->align = align;
        for (unsigned k = 0; k < type->rank; k++) {
            if (granted & tile_guard_dimension(k, TILE_GUARD_STRIDE_UNIT))
                facts->stride[k] = tile_scalar_bytes(type->scalar);
            else if (type->access == TILE_ACCESS_IN && (granted & tile_guard_dimension(k, TILE_GUARD_STRIDE_ZERO)))
                facts->stride[k] = 0; /* only without elements, or by mistake, has what is written such a stride */
            for (unsigned divisor = 2; divisor <= TILE_GUARD_MOST_MULTIPLE; divisor *= 2)
                if (granted & tile_guard_multiple(type->rank, k, divisor)) facts->multiple[k] = divisor;
        }
    }
}

/* `granted` is the kernel's parameter, `used` it or the same one of a phase. */
static uint64_t used_bits(const TileType *type, const TileParameter *granted, const TileParameter *used) {
    uint64_t bits = tile_guard_align(used->used_align) | (used->used_narrow ? TILE_GUARD_NARROW : 0);
    for (unsigned k = 0; k < type->rank; k++)
        if (used->used_stride >> k & 1)
            bits |= tile_guard_dimension(k, (unsigned)stride_bits(type, granted->facts.stride[k]));
    return bits;
}

/* Every alignment up to the one asked for makes a difference: the widest that is known is used. */
static uint64_t asked_bits(const TileType *type, const TileParameter *asked) {
    uint64_t bits = asked->asked_narrow ? TILE_GUARD_NARROW : 0;
    for (unsigned align = 2; align <= asked->asked_align; align *= 2) bits |= tile_guard_align(align);
    for (unsigned k = 0; k < type->rank; k++)
        if (asked->asked_stride >> k & 1)
            bits |= tile_guard_dimension(k, TILE_GUARD_STRIDE_ZERO | TILE_GUARD_STRIDE_UNIT);
    return bits;
}

/* A set of divisors as bits of the tensor's word. */
static uint64_t multiple_bits(const TileType *type, unsigned axis, uint32_t divisors) {
    uint64_t bits = 0;
    for (unsigned divisor = 2; divisor <= TILE_GUARD_MOST_MULTIPLE; divisor *= 2)
        if (divisors & divisor) bits |= tile_guard_multiple(type->rank, axis, divisor);
    return bits;
}

static const TileParameter *find_in(const TileFunc *func, const char *name) {
    for (uint32_t i = 0; i < func->body.argument_count; i++)
        if (func->parameters[i].name == name) return &func->parameters[i];
    return NULL;
}

/* Of the extents, which machine form has as numbers of their own. */
static void collect_extents(const TileFunc *func, const TileType *type, const char *tensor, uint64_t *need,
                            uint64_t *asked) {
    size_t length = strlen(tensor);
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileParameter *extent = &func->parameters[i];
        if (!extent->asked_multiple || strncmp(extent->name, tensor, length) ||
            strncmp(extent->name + length, ".dim", 4))
            continue;
        unsigned axis = (unsigned)(extent->name[length + 4] - '0');
        *need |= multiple_bits(type, axis, extent->used_multiple);
        *asked |= multiple_bits(type, axis, extent->asked_multiple);
    }
}

void tile_image_collect(const TileModule *module, const TileFunc *kernel, const TileImageSignature *signature,
                        TileImageCode *code) {
    for (uint32_t i = 0; i < kernel->body.argument_count; i++) {
        const TileType *type = kernel->body.arguments[i]->type;
        int number = tile_image_parameter(signature, kernel->parameters[i].name);
        if (type->kind != TILE_TYPE_TENSOR || number < 0) continue;
        if (signature->overlap >> number & 1) { /* LLVM is always told */
            code->asked[number] |= TILE_GUARD_DISJOINT;
            if (kernel->parameters[i].noalias) code->need[number] |= TILE_GUARD_DISJOINT;
        }
        for (const TileFunc *func = module->first; func; func = func->next) {
            collect_extents(func, type, kernel->parameters[i].name, &code->need[number], &code->asked[number]);
            const TileParameter *used = find_in(func, kernel->parameters[i].name);
            if (!used) continue;
            code->need[number] |= used_bits(type, &kernel->parameters[i], used);
            code->asked[number] |= asked_bits(type, used);
        }
    }
}
