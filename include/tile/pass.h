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
    const char *name;   /* for messages, `tilec emit --after=NAME`, and the position of others; must be new */
    const char *doc;    /* one line */
    const char *before; /* it runs before the first pass of this name (docs/passes.md) .. */
    const char *after;  /* .. or after the last one of this name; one of the two is NULL */
    /* Runs on each function of the module, in tile form and in machine form. Any thread that compiles calls it, several
     * concurrently; `ir` is the call's own. Errors are kept as tile/ir.h says, and fail the compilation. */
    void (*run)(TileIr *ir, void *host);
    void *host; /* its second argument */
};

/* A shared object with passes has a function `const TilePass *const *tile_passes(void)`, whose list ends in NULL and
 * lives as long as the object is loaded. TILE_DEFINE_PASSES(list) defines it. The object is compiled with this header
 * and linked with nothing: the program that loads it has the functions. */
#define TILE_DEFINE_PASSES(list)                                                                                       \
    TILE_API const TilePass *const *tile_passes(void);                                                                 \
    const TilePass *const *tile_passes(void) { return list; }

/* Adds a pass to those of the compiler's options. Not while another thread compiles with it. *report (report may be
 * NULL) as for tile_compile. TILE_INVALID_ARGUMENT: it is invalid, its name is taken, or the pass that it refers to
 * does not exist. */
TILE_API tile_status tile_compiler_add_pass(TileCompiler *compiler, const TilePass *pass,
                                            TileReport **report) TILE_MUST_CHECK;

/* Adds the passes of a shared object to those of the compiler's options. Not while another thread compiles with it. The
 * object stays loaded until the compiler and all its libraries are destroyed. *report (report may be NULL) as for
 * tile_compile. TILE_IO: it cannot be loaded, or has no such function. TILE_INVALID_ARGUMENT: one of its passes is
 * invalid. */
TILE_API tile_status tile_compiler_load_passes(TileCompiler *compiler, const char *path,
                                               TileReport **report) TILE_MUST_CHECK;

/* ---- the function ---- */

/* Borrowed; "" for NULL. */
TILE_API const char *tile_ir_function_name(const TileIr *ir);
/* Is it in machine form, of scalars, vectors and addresses, instead of tile form? */
TILE_API bool tile_ir_is_machine(const TileIr *ir);
/* Calls visit on each operation, parents first. It may erase the operation that it is given, but no other, and insert
 * new ones before it. visit NULL: nothing is called. */
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
/* The number of operands that use the value. */
TILE_API unsigned tile_ir_use_count(const TileIrValue *value);
/* False if the value is no constant; all lanes of a constant are equal. Integers and bools are converted. */
TILE_API bool tile_ir_constant(const TileIrValue *value, double *number);
/* An integer attribute, such as `axis`; false if there is none of this name. */
TILE_API bool tile_ir_attribute(const TileIrOp *op, const char *name, int64_t *integer);

/* ---- changing ---- */

/* Operations built from now on are inserted before this operation, and have its source location. */
TILE_API void tile_ir_before(TileIr *ir, TileIrOp *op);
/* Replaces all uses of the operation's first result by `value`, of the same type. */
TILE_API void tile_ir_replace(TileIr *ir, TileIrOp *op, TileIrValue *value);
/* Erases the operation. Its results must have no uses. */
TILE_API void tile_ir_erase(TileIr *ir, TileIrOp *op);
/* Fails the compilation: the pass does not support this operation (NULL: this function). why may be NULL. */
TILE_API void tile_ir_refuse(TileIr *ir, const TileIrOp *op, const char *why);

#ifdef __cplusplus
}
#endif
#endif
