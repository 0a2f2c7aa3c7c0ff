/* Passes of other projects, which run among the compiler's own: given with the options of a compiler, or loaded from a
 * shared object (`tilec run --load-pass=my_pass.so`). docs/passes-of-your-own.md.
 *
 * A pass looks at one function of the IR at a time and may change it, with what is declared here and in tile/ir.h. The
 * verifier looks at what it leaves: a function that is wrong then is the pass's fault, and whoever compiles is told its
 * name and what is wrong. */
#ifndef TILE_PASS_H
#define TILE_PASS_H

#include "tile/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

struct TilePass {
    size_t struct_size;
    const char *name;   /* for messages, `tilec emit --after=NAME`, and as the place of others; not one that exists */
    const char *doc;    /* one line */
    const char *before; /* it runs in front of the first pass of this name (docs/passes.md) .. */
    const char *after;  /* .. or behind the last one of this name; one of both is NULL */
    /* Runs on each function of the module, those of tile form and those of machine form. Any thread that compiles calls
     * it, several at once; `ir` is the call's own. Mistakes are kept as tile/ir.h says, and fail the compilation. */
    void (*run)(TileIr *ir, void *host);
    void *host; /* its second argument */
};

/* A shared object with passes has a function `const TilePass *const *tile_passes(void)`, whose list ends in NULL and
 * lives as long as the object is loaded. TILE_DEFINE_PASSES(list) writes it. It is compiled with this header, and
 * linked with nothing: the program that loads it has the functions. */
#define TILE_DEFINE_PASSES(list)                                                                                       \
    TILE_API const TilePass *const *tile_passes(void);                                                                 \
    const TilePass *const *tile_passes(void) { return list; }

/* Adds a pass to those of the compiler's options. Not while another thread compiles with it. *report (report may be
 * NULL) as for tile_compile. TILE_INVALID_ARGUMENT: it is no pass, has a name that there is already, or its place is
 * none. */
TILE_API tile_status tile_compiler_add_pass(TileCompiler *compiler, const TilePass *pass,
                                            TileReport **report) TILE_MUST_CHECK;

/* Adds the passes of a shared object to those of the compiler's options. Not while another thread compiles with it. It
 * stays loaded until the compiler and all its libraries are gone. *report (report may be NULL) as for tile_compile.
 * TILE_IO: it cannot be loaded, or has no such function. TILE_INVALID_ARGUMENT: a pass of it is none. */
TILE_API tile_status tile_compiler_load_passes(TileCompiler *compiler, const char *path,
                                               TileReport **report) TILE_MUST_CHECK;

/* ---- the function ---- */

/* Borrowed; "" for NULL. */
TILE_API const char *tile_ir_function_name(const TileIr *ir);
/* Is it in machine form, of scalars, vectors and addresses, instead of tile form? */
TILE_API bool tile_ir_is_machine(const TileIr *ir);
/* Calls visit on each operation, parents first. It may erase the operation that it is given, but no other, and put new
 * ones in front of it. visit NULL: nothing is called. */
TILE_API void tile_ir_walk(TileIr *ir, void (*visit)(TileIr *ir, TileIrOp *op, void *state), void *state);

/* ---- operations ---- */

/* "add", "" for NULL; static. */
TILE_API const char *tile_ir_op_name(const TileIrOp *op);
TILE_API unsigned tile_ir_operand_count(const TileIrOp *op);
/* NULL past the end. */
TILE_API TileIrValue *tile_ir_operand(const TileIrOp *op, unsigned index);
TILE_API unsigned tile_ir_result_count(const TileIrOp *op);
/* The operation that computes the value; NULL for parameters and arguments of regions. */
TILE_API TileIrOp *tile_ir_definition(const TileIrValue *value);
/* By how many operands the value is used. */
TILE_API unsigned tile_ir_use_count(const TileIrValue *value);
/* False where the value is no constant; all lanes of a constant are alike. Integers and bools are converted. */
TILE_API bool tile_ir_constant(const TileIrValue *value, double *number);
/* An attribute that is an integer, such as `axis`; false where there is none of this name. */
TILE_API bool tile_ir_attribute(const TileIrOp *op, const char *name, int64_t *integer);

/* ---- changing ---- */

/* What is built from now on stands in front of the operation, and at its place in the source. */
TILE_API void tile_ir_before(TileIr *ir, TileIrOp *op);
/* The first result of the operation is no longer used, `value`, of the same type, is instead. */
TILE_API void tile_ir_replace(TileIr *ir, TileIrOp *op, TileIrValue *value);
/* Takes the operation away. Its results must not be used any more. */
TILE_API void tile_ir_erase(TileIr *ir, TileIrOp *op);
/* The compilation fails: the pass cannot do with this operation (NULL: with the function). why may be NULL. */
TILE_API void tile_ir_refuse(TileIr *ir, const TileIrOp *op, const char *why);

#ifdef __cplusplus
}
#endif
#endif
