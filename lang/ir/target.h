/* Facts about a machine that code is compiled for. The back ends' folders define them (cpu/target, ptx/target); passes
 * and the bridge read them. Nothing here is measured or detected. */
#ifndef TILE_LANG_IR_TARGET_H
#define TILE_LANG_IR_TARGET_H

#include <stdbool.h>
#include <stdint.h>

typedef enum TileTargetKind { TILE_TARGET_CPU, TILE_TARGET_GPU } TileTargetKind;

/* The instruction set architecture: an object file holds code of one. */
typedef enum TileArchitecture {
    TILE_ARCHITECTURE_X86_64,
    TILE_ARCHITECTURE_AARCH64,
    TILE_ARCHITECTURE_NVPTX
} TileArchitecture;

typedef struct TileTarget {
    const char *name;          /* as on the command line: "avx512" */
    const char *description;   /* for lists of targets */
    TileTargetKind kind;       /* its family: read only to find the family's struct of behaviour */
    TileArchitecture architecture;
    const char *triple;        /* of LLVM */
    const char *llvm_cpu;      /* of LLVM: "x86-64-v4" */
    const char *llvm_features; /* of LLVM: "+avx512bf16"; "" for none */
    uint32_t compute_capability; /* of an NVIDIA GPU, 80 for 8.0; 0 for others */
    bool exact_capability;       /* code for it runs on that capability alone, not on later ones */
    uint32_t vector_bytes;     /* of one vector register; the minimum if scalable */
    uint32_t vector_registers;
    bool scalable;               /* vectors of a length known only at run time */
    bool has_masks;              /* predicates for all vector operations and memory accesses */
    bool has_bf16_rounding;      /* f32 to bf16, to nearest even, subnormals like other numbers */
    bool has_f8;                 /* conversions from f8 to f16, and from f32 to f8 */
    bool has_vnni;               /* products of words of four 8-bit integers, in vectors */
    bool has_bf16_dot;           /* products of words of two bf16, in vectors, in the time of one fma */
    bool has_amx;                /* products of matrices in tile registers: bf16, 8-bit integers */
    bool own_order;              /* its code may add floats in another order than the interpreter */
    bool has_dependent_grids;    /* a grid may begin while the one before runs, and wait for its end */
    bool has_tma;                /* bulk copies, also by tensor maps, counted by mbarriers */
    bool has_tf32_even;          /* rounds f32 to tf32 with ties to even; else away from zero */
    bool has_tall_doubles;       /* mma of f64 of 16 rows; else it is two of 8 */
    bool has_wgmma;              /* products of warpgroups, and registers that they pass to one another */
    uint32_t atomic_adds;        /* floats that its memory adds to, a set of TileScalar; others take a loop */
    bool atomic_adds_flush;      /* of them, f32: subnormals that come in or out count as 0 of their sign */
    bool divides_words;          /* divides integers of 32 bits by some instructions, of 64 bits by a routine */
    bool divides_by_floats;      /* has no divisions of vectors of integers: those of floats have the same quotients up to 32 bits */
    bool word_registers;         /* registers of 32 bits, and products of two that have 64; no vectors */
    bool exchanges_lanes;        /* lanes of a tile are held by threads, which exchange them with one another */
    bool has_maximum;            /* minimum and maximum of f32 that keep NaN */
    bool slow_subnormals;        /* takes a hundred cycles and more for a product with a subnormal operand or result */
    bool has_rcp_approx;         /* 1 / x of f32 within a unit of the last place */
    bool has_stmatrix;           /* stores of 8 x 8 matrices to shared memory by a warp */
    uint64_t l1_bytes, l2_bytes; /* data caches of one core */
    uint64_t far_bytes;          /* of a tensor that is written past the caches; 0: none is */
} TileTarget;

#endif
