/* Reports: the diagnostics of a call, rendered once. They are immutable, so one may have several owners, each of which
 * destroys it. */
#ifndef TILE_LAUNCH_REPORT_H
#define TILE_LAUNCH_REPORT_H

#include "tile/launch.h"

/* Texts are copied. NULL if memory runs out. */
TileReport *tile_report_create(size_t error_count, const char *plain, const char *coloured, const char *json);
/* One error without a location. */
TileReport *tile_report_from_text(const char *message);
/* The message of a launch that failed: an assertion's with its location, each of several errors separately. */
TileReport *tile_report_from_launch(const char *message);
/* The start of the next error, on a line that names the same kernel; NULL after the last. */
const char *tile_next_mistake(const char *message);
/* Another reference to the report; NULL for NULL. */
TileReport *tile_report_hold(TileReport *report);
/* Joins both, in this order, and takes ownership. Either may be NULL. */
TileReport *tile_report_join(TileReport *first, TileReport *second);

/* A call of the API that takes launch options. It fills an error of its own, which becomes the caller's error and
 * report when the call fails. */
typedef struct TileCall {
    TileLaunchOptions options;
    TileError error, *given;
} TileCall;
/* False where the options are of no version. */
bool tile_call_begin(TileCall *call, const TileLaunchOptions *given);
/* Returns the status. */
tile_status tile_call_end(TileCall *call, tile_status status);

#endif
