/* What the files of tilec explain share. */
#ifndef TILE_TOOLS_EXPLAIN_H
#define TILE_TOOLS_EXPLAIN_H

#include <stdio.h>

#include "driver/compile/explain.h"

/* The figures of ptxas for a kernel. */
typedef struct TileAssemblyFigures {
    bool known;
    unsigned registers, stack_bytes, spilled_bytes;
} TileAssemblyFigures;

/* `notes`: of `ptxas -v`; `phase`: the function's name in the IR. */
TileAssemblyFigures tile_assembly_figures(const char *notes, const char *phase);

/* explain_report.c. `figures`: of each phase; `missing`: why there are none, or NULL. */
void tile_explain_print(FILE *out, const TileExplanation *explanation, const TileAssemblyFigures *figures, const char *missing);
void tile_explain_print_json(const TileExplanation *explanation, const TileAssemblyFigures *figures,
                             const char *missing);

/* explain_svg.c: every layout of the kernel, and where its elements lie in shared memory. */
void tile_explain_draw(const TileExplanation *explanation, TileText *svg);

/* What the arguments make of work. */
typedef struct TileExplainedWork {
    double bytes; /* of the tensors, each element once */
    bool has_flops;
    double flops; /* of dots */
} TileExplainedWork;

/* explain_page.c: one page of HTML that needs nothing else: the source beside its forms, with lines that follow one
 * another, what is said above, and the layouts. */
tile_status tile_explain_page(const TileExplanation *explanation, const TileAssemblyFigures *figures,
                              const char *missing, const TileExplainedWork *work, TileText *page);

#endif
