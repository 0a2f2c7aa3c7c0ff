/* Kernels from other compilers: built in memory operation by operation, or written as text of the IR.
 *
 *     TileIr *ir;
 *     TILE_TRY(tile_ir_create(&ir));
 *     tile_ir_kernel(ir, "double");
 *     TileIrValue *x = tile_ir_tensor(ir, "x", TILE_PARAMETER_IN, "f32", (const char *[]){"N"}, 1);
 *     TileIrValue *y = tile_ir_tensor(ir, "y", TILE_PARAMETER_OUT, "f32", (const char *[]){"N"}, 1);
 *     TileIrValue *tiles = tile_ir_tiles(ir, tile_ir_dimension(ir, "N"), 1024);
 *     tile_ir_begin(ir, "grid", &tiles, 1, NULL, NULL, 0);
 *     TileIrValue *first = tile_ir_binary(ir, "mul", tile_ir_argument(ir, 0), tile_ir_integer(ir, "i64", 1024));
 *     TileIrIndex at = {first, 1024};
 *     TileIrValue *v = tile_ir_load(ir, x, &at, 1, NULL);
 *     tile_ir_store(ir, y, tile_ir_binary(ir, "add", v, v), &at, 1);
 *     tile_ir_end(ir);
 *     tile_ir_kernel_end(ir);
 *     tile_status status = tile_compile_ir(compiler, ir, NULL, &library, &report);
 *     tile_ir_destroy(ir);
 *
 * The text of the IR (docs/ir.md) says the same, and tile_compile takes it as it takes text of the language;
 * tile_ir_text gives it for what was built. Operations, with their operands, attributes and meaning, are those of
 * docs/ops.md, by name; docs/building-kernels.md is about all of this.
 *
 * Mistakes. No call has to be checked: the first mistake is kept, with the number and name of the operation and the
 * reason, and from then on every call does nothing and gives NULL, which is taken as an operand. tile_ir_status, and
 * whatever compiles or prints, then tell. What depends on the whole (that a block ends as it should, that a value is
 * defined before its use) is found there too. Pointers have to be values of this object, or NULL; those of another one
 * that still lives are refused.
 *
 * Ownership. Values, operations and types belong to the TileIr and live as long as it does. Texts are copied. A library
 * that was compiled keeps nothing of it.
 *
 * Threads. One thread at a time for each TileIr; any number of them at once, also with one compiler. */
#ifndef TILE_IR_H
#define TILE_IR_H

#include "tile/tile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels under construction. */
typedef struct TileIr TileIr;
/* What an operation computes, or a parameter: a scalar, a tile, or a tensor in memory. */
typedef struct TileValue TileIrValue;
typedef struct TileType TileIrType;
typedef struct TileOp TileIrOp;

/* TILE_OUT_OF_MEMORY. */
TILE_API tile_status tile_ir_create(TileIr **ir) TILE_MUST_CHECK;
/* NULL is allowed. */
TILE_API void tile_ir_destroy(TileIr *ir);

/* TILE_OK, TILE_INVALID_ARGUMENT after a mistake, TILE_OUT_OF_MEMORY. */
TILE_API tile_status tile_ir_status(const TileIr *ir);
/* The mistake: "sum_rows: op 7 (reduce): no such axis"; "" before the first. Borrowed. Never NULL, also for NULL. */
TILE_API const char *tile_ir_message(const TileIr *ir);

/* The location in the caller's source of the operations that the following calls build: for messages, debuggers and
 * profilers. file NULL: none, as at first. Lines and columns count from 1. */
TILE_API void tile_ir_place(TileIr *ir, const char *file, uint32_t line, uint32_t column);

/* ---- types ---- */

/* As in the text of the IR: "f32", "bool", "i64[64]", "bf16[4, 128]". */
TILE_API const TileIrType *tile_ir_type(TileIr *ir, const char *text);
/* A tile, of 1 to 5 axes; rank 0 is the scalar. */
TILE_API const TileIrType *tile_ir_tile_type(TileIr *ir, const char *element, const int64_t *extents, unsigned rank);
/* The same extents with another element type. */
TILE_API const TileIrType *tile_ir_with_element(TileIr *ir, const TileIrType *type, const char *element);

typedef struct TileIrTypeInfo {
    size_t struct_size; /* the caller's sizeof(TileIrTypeInfo) */
    const char *element;
    bool is_tensor;                 /* a tensor's extents are known only at a launch, and are 0 here */
    unsigned rank;                  /* scalars: 0 */
    int64_t extents[TILE_MAX_RANK]; /* of a tile */
} TileIrTypeInfo;
/* False for NULL, or an invalid struct_size. */
TILE_API bool tile_ir_type_info(const TileIrType *type, TileIrTypeInfo *info);
/* NULL for NULL. */
TILE_API const TileIrType *tile_ir_type_of(const TileIrValue *value);

/* ---- kernels ---- */

/* Begins a kernel. Its parameters follow, then its operations, then tile_ir_kernel_end. Any number of kernels. A name
 * is any text but the empty one. */
TILE_API void tile_ir_kernel(TileIr *ir, const char *name);
TILE_API void tile_ir_kernel_end(TileIr *ir);

/* A tensor parameter. Each dimension has a name ("N": all dimensions of this name have the same extent, which launches
 * check), a number ("3": that extent), or NULL: any extent. rank is at most TILE_MAX_RANK. */
TILE_API TileIrValue *tile_ir_tensor(TileIr *ir, const char *name, TileParameterAccess access, const char *element,
                                     const char *const *dimensions, unsigned rank);
/* A scalar parameter. */
TILE_API TileIrValue *tile_ir_scalar(TileIr *ir, const char *name, const char *element);
/* The extent of the dimensions of this name, an i64. */
TILE_API TileIrValue *tile_ir_dimension(TileIr *ir, const char *name);
/* Launches fail with the text, of which 490 bytes are kept, where the bool is false. Outside of grids. text may be
 * NULL. */
TILE_API void tile_ir_require(TileIr *ir, TileIrValue *condition, const char *text);

/* ---- operations ---- */

/* Any operation without regions, by its name in docs/ops.md: "add", "reduce", "load_tile". attributes as in the text of
 * the IR, without braces: "kind = sum, axis = 1"; NULL: none. type: the result's; NULL where it follows from the
 * operands, or there is no result. Gives the result; NULL where there is none. */
TILE_API TileIrValue *tile_ir_op(TileIr *ir, const char *op, TileIrValue *const *operands, unsigned operand_count,
                                 const char *attributes, const TileIrType *type);

/* An operation with regions: "grid", "for", "while", "if", "fold", "scan". The following operations are in its first
 * region, up to tile_ir_next, then in its second one, up to tile_ir_end. types: of the results, for "if"; else NULL and
 * 0. */
TILE_API TileIrOp *tile_ir_begin(TileIr *ir, const char *op, TileIrValue *const *operands, unsigned operand_count,
                                 const char *attributes, const TileIrType *const *types, unsigned type_count);
TILE_API void tile_ir_next(TileIr *ir);
/* A region that has to yield nothing needs no tile_ir_yield. */
TILE_API void tile_ir_end(TileIr *ir);
/* An argument of the innermost region: in a grid the indices of the program; in a loop the induction variable, then the
 * loop-carried values. */
TILE_API TileIrValue *tile_ir_argument(TileIr *ir, unsigned index);
/* Ends a region with its results: the loop-carried values of the next iteration, the results of an "if", the
 * combination of two values. */
TILE_API void tile_ir_yield(TileIr *ir, TileIrValue *const *values, unsigned count);
/* A result of an operation whose last region has ended. */
TILE_API TileIrValue *tile_ir_result(TileIr *ir, const TileIrOp *op, unsigned index);

/* The value's name in the text of the IR and in messages; NULL: none. */
TILE_API void tile_ir_name(TileIr *ir, TileIrValue *value, const char *name);

/* ---- short forms ---- */

TILE_API TileIrValue *tile_ir_unary(TileIr *ir, const char *op, TileIrValue *x);
TILE_API TileIrValue *tile_ir_binary(TileIr *ir, const char *op, TileIrValue *x, TileIrValue *y);
/* A constant of a type as tile_ir_type takes it, rounded to it. */
TILE_API TileIrValue *tile_ir_number(TileIr *ir, const char *type, double number);
TILE_API TileIrValue *tile_ir_integer(TileIr *ir, const char *type, int64_t integer);
/* Converts to another element type: "convert". */
TILE_API TileIrValue *tile_ir_convert(TileIr *ir, TileIrValue *x, const char *element);
/* Broadcasts to the type's extents by the rules of NumPy: axes are aligned at the end, and an axis of extent 1, or one
 * that x lacks, is repeated. The element type stays. */
TILE_API TileIrValue *tile_ir_broadcast(TileIr *ir, TileIrValue *x, const TileIrType *type);
/* Reduces along an axis, which is removed: "sum", "prod", "min", "max", "any" or "all". Lanes that a load did not fill
 * must not get here: give tile_ir_load the identity of the reduction. */
TILE_API TileIrValue *tile_ir_reduce(TileIr *ir, const char *kind, TileIrValue *x, int64_t axis);
/* The number of blocks of `block` elements, 1 to 2**47, that cover an extent: (extent + block - 1) / block. */
TILE_API TileIrValue *tile_ir_tiles(TileIr *ir, TileIrValue *extent, int64_t block);

/* The index of one dimension of a tensor. */
typedef struct TileIrIndex {
    TileIrValue *first; /* i64 */
    int64_t lanes;      /* an axis of so many elements from `first`; 0: element `first` alone, and no axis; not below */
} TileIrIndex;

/* Loads a tile of a tensor, with an axis for each index that has lanes. Elements past the end of a dimension, or before
 * its beginning, are not read: such lanes hold `fill`, a scalar of the element type, or, if it is NULL, unspecified
 * values, which may be computed with lane by lane and stored where lanes past the end are not stored either. An index
 * without lanes must lie in its dimension. */
TILE_API TileIrValue *tile_ir_load(TileIr *ir, TileIrValue *tensor, const TileIrIndex *indices, unsigned count,
                                   TileIrValue *fill);
/* Stores the lanes that lie inside of the tensor. The value has an axis for each index that has lanes, of the same
 * extent. */
TILE_API void tile_ir_store(TileIr *ir, TileIrValue *tensor, TileIrValue *value, const TileIrIndex *indices,
                            unsigned count);

/* ---- what was built ---- */

/* The text of the IR; destroy it with tile_string_destroy. *report (report may be NULL) as for tile_compile.
 * TILE_INVALID_SOURCE: what was built is wrong. TILE_INVALID_ARGUMENT: a call was. TILE_OUT_OF_MEMORY. */
TILE_API tile_status tile_ir_text(TileIr *ir, char **text, TileReport **report) TILE_MUST_CHECK;

/* tile_compile of the text of what was built; options->file names it in messages ("<ir>" where it is NULL). All that
 * holds for kernels in the language holds for these: variants for what arguments offer, guards, the disk cache,
 * tile_explain. There are no settings: kernels have no type parameters. */
TILE_API tile_status tile_compile_ir(TileCompiler *compiler, TileIr *ir, const TileCompileOptions *options,
                                     TileLibrary **library, TileReport **report) TILE_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
