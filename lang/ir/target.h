/* Plain facts about a machine that code is made for. The back ends' folders fill it in (cpu/target, ptx/target);
 * passes and the bridge read it. Nothing here is measured or looked up. */
#ifndef TILE_LANG_IR_TARGET_H
#define TILE_LANG_IR_TARGET_H

#include <stdbool.h>
#include <stdint.h>

typedef enum TileTargetKind { TILE_TARGET_CPU, TILE_TARGET_GPU } TileTargetKind;

/* Whose instructions its code has: an object file holds code of one architecture. */
typedef enum TileArchitecture {
    TILE_ARCHITECTURE_X86_64,
    TILE_ARCHITECTURE_AARCH64,
    TILE_ARCHITECTURE_NVPTX
} TileArchitecture;

typedef struct TileTarget {
    const char *name;          /* as on the command line: "avx512" */
    const char *description;   /* in lists of targets */
    TileTargetKind kind;       /* whose it is: asked by what finds the family's struct of behaviour, and nowhere else */
    TileArchitecture architecture;
    const char *triple;        /* of LLVM */
    const char *llvm_cpu;      /* of LLVM: "x86-64-v4" */
    const char *llvm_features; /* of LLVM: "+avx512bf16"; "" for none */
    uint32_t compute_capability; /* of an NVIDIA GPU, 80 for 8.0; 0 on others */
    bool exact_capability;       /* its code runs on that capability alone, not on later ones */
    uint32_t vector_bytes;     /* of one vector register; the least there is where scalable */
    uint32_t vector_registers;
    bool scalable;               /* vectors of a length known only when the program runs */
    bool has_masks;              /* predicates for every vector operation and memory access */
    bool has_bf16_rounding;      /* f32 to bf16, to nearest even, denormals as any others */
    bool has_f8;                 /* conversion from f8 to f16 */
    bool has_vnni;               /* dot products of 8-bit integers; no pass makes any so far */
    bool has_tma;                /* bulk copies, by tensor maps too, counted by mbarriers */
    bool has_tf32_even;          /* rounds f32 to tf32 with halves to even; else away from zero */
    bool has_stmatrix;           /* matrices that a warp stores to shared memory */
    uint64_t l1_bytes, l2_bytes; /* data caches of one core */
} TileTarget;

#endif
