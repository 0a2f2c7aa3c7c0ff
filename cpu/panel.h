/* What cpu-nest and cpu-dot both know of panels: an operand that is computed for a product is stored in rows that are as far
 * apart as a panel's, so that it need not be packed. */
#ifndef TILE_CPU_PANEL_H
#define TILE_CPU_PANEL_H

enum {
    CPU_PANEL_DEPTH_BYTES = 2048, /* of one row of a's panel: 14 rows take 28 KiB of L1 */
    CPU_PANEL_AMX_DEPTH_BYTES = 1024, /* of one that AMX reads: 32 rows take 32 KiB of L1 */
    CPU_PANEL_PAD_BYTES = 64,     /* rows of a's panel are in different cache sets */
    CPU_PANEL_ROWS = 16,          /* rows that a micro-kernel may read past the last one */
    CPU_PANEL_WIDTH_BYTES = 256,  /* of a row of b that is computed in its panel, at most: blocks of longer rows are far apart */
    CPU_PANEL_TAIL_BYTES = 2048   /* behind the last row of b's panel, which a block of columns may reach over */
};

#endif
