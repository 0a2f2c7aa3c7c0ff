/* Shared by the printer's files. */
#ifndef TESTS_RANDOM_PRINT_H
#define TESTS_RANDOM_PRINT_H

#include "program.h"

enum { MAX_HELPERS = 1 << 15, MAX_FOLDS = 32 };

typedef struct Printer {
    char *text;
    size_t size, length;
    int indent;
    /* Prints the functions that expressions need, before the kernel. */
    char *helpers;
    int outlined;
    struct {
        FoldKind kind;
        Type type;
    } folds[MAX_FOLDS];
    int fold_count;
} Printer;

void put(Printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void print_expr(Printer *p, const Expr *expr);
/* Adds parentheses if the precedence is below the level. */
void print_above(Printer *p, const Expr *expr, int level);
void print_list(Printer *p, Expr *const *exprs, int count);
/* A number as an extent may be written: as a shift, a remainder, or a call of a function with a loop (program_print). */
void print_extent_written(Printer *p, const Extent *extent, int place);
void print_extent(Printer *p, const Extent *extent);
void print_extents(Printer *p, const Extent *const *extents, int count, const char *open, const char *close);
/* Of E_NORMAL .. E_UNPACK, and E_SCALED. */
void print_packed(Printer *p, const Expr *expr);
void print_fold_function(Printer *p, FoldKind kind, Type type);

#endif
