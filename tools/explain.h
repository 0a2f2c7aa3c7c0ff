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

/* What bounds a launch from below. 0: not known, as of CPUs that are not this machine's. */
typedef struct TileExplainedRoof {
    bool of_model; /* of a GPU; else measured here */
    double bytes_a_second, flops_a_second;
    double seconds; /* that the launch takes at least; of_model: that it is predicted to take */
} TileExplainedRoof;

/* What the arguments make of work. */
typedef struct TileExplainedWork {
    double bytes; /* of the tensors, each element once */
    bool has_flops;
    double flops; /* of dots */
    TileExplainedRoof roof;
} TileExplainedWork;

/* explain_roof.c: the roof of the other members; and the diagram, if there are products. */
TileExplainedRoof tile_explain_roof(const TileExplanation *explanation, const TileExplainedWork *work);
void tile_explain_draw_roof(const TileExplanation *explanation, const TileExplainedWork *work, TileText *svg);

/* explain_page.c: one page of HTML that needs nothing else: the source beside its forms, with lines that follow one
 * another, what is said above, and the layouts. */
tile_status tile_explain_page(const TileExplanation *explanation, const TileAssemblyFigures *figures,
                              const char *missing, const TileExplainedWork *work, TileText *page);

#endif
