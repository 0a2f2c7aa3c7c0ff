/* The table of CPU targets. */
#include "cpu/target.h"

#include <stddef.h>
#include <string.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

#define X86_COMMON                                                                                                     \
    .kind = TILE_TARGET_CPU, .architecture = TILE_ARCHITECTURE_X86_64, .triple = "x86_64-unknown-linux-gnu",           \
    .slow_subnormals = true, .divides_by_floats = true, .l1_bytes = 32 * KIB, .far_bytes = 16 * MIB

static const TileTarget targets[] = {
    {X86_COMMON, .name = "avx2", .description = "x86-64 with AVX2 and FMA (x86-64-v3)", .llvm_cpu = "x86-64-v3",
     .llvm_features = "", .vector_bytes = 32, .vector_registers = 16, .l2_bytes = 512 * KIB},
    {X86_COMMON, .name = "avx512", .description = "x86-64 with AVX-512 (x86-64-v4)", .llvm_cpu = "x86-64-v4",
     .llvm_features = "-prefer-256-bit", .vector_bytes = 64, .vector_registers = 32, .has_masks = true,
     .l2_bytes = 1 * MIB},
    {X86_COMMON, .name = "avx512vnni", .description = "x86-64 with AVX-512 and VNNI", .llvm_cpu = "x86-64-v4",
     .llvm_features = "-prefer-256-bit,+avx512vnni", .vector_bytes = 64, .vector_registers = 32, .has_masks = true,
     .has_vnni = true, .l2_bytes = 1 * MIB},
    {X86_COMMON, .name = "avx512bf16", .description = "x86-64 with AVX-512, bf16 and VNNI", .llvm_cpu = "x86-64-v4",
     .llvm_features = "-prefer-256-bit,+avx512bf16,+avx512vnni", .vector_bytes = 64, .vector_registers = 32,
     .has_masks = true, .has_vnni = true, .has_bf16_dot = true, .own_order = true, .l2_bytes = 1 * MIB},
    {X86_COMMON, .name = "amx", .description = "x86-64 with AVX-512 and AMX for bf16 and 8-bit integers",
     .llvm_cpu = "x86-64-v4",
     .llvm_features = "-prefer-256-bit,+avx512bf16,+avx512vnni,+avx512vbmi,+amx-tile,+amx-bf16,+amx-int8",
     .vector_bytes = 64, .vector_registers = 32, .has_masks = true, .has_vnni = true, .has_amx = true,
     .own_order = true, .l2_bytes = 2 * MIB},
    {.name = "sve",
     .description = "AArch64 with SVE, vectors of any length",
     .kind = TILE_TARGET_CPU,
     .architecture = TILE_ARCHITECTURE_AARCH64,
     .triple = "aarch64-unknown-linux-gnu",
     .llvm_cpu = "generic",
     .llvm_features = "+v8.2a,+sve",
     .vector_bytes = 16,
     .vector_registers = 32,
     .scalable = true,
     .has_masks = true,
     .l1_bytes = 64 * KIB,
     .l2_bytes = 1 * MIB},
};

const TileTarget *tile_cpu_targets(unsigned *count) {
    *count = sizeof targets / sizeof *targets;
    return targets;
}

const TileTarget *tile_cpu_target_find(const char *name) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].name, name) == 0) return &targets[i];
    return NULL;
}

bool tile_cpu_vnni_multiplies(const TileTarget *target, TileScalar a, TileScalar b, TileScalar sum) {
    if (a == TILE_BF16 && b == TILE_BF16) return target->has_bf16_dot && sum == TILE_F32;
    return target->has_vnni && tile_cpu_amx_multiplies(a, b, sum) && (a == TILE_I8 || b == TILE_I8);
}

bool tile_cpu_amx_multiplies(TileScalar a, TileScalar b, TileScalar sum) {
    if (a == TILE_BF16 && b == TILE_BF16) return sum == TILE_F32;
    return tile_scalar_is_int(a) && tile_scalar_is_int(b) && tile_scalar_bits(a) == 8 && tile_scalar_bits(b) == 8 &&
           sum == TILE_I32;
}
