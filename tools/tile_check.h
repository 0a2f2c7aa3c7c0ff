/* tile-check: compares text with the CHECK lines of a test.
 *
 *   CHECK: text         the next line that contains it, after what matched before
 *   CHECK-NEXT: text    on the very next line
 *   CHECK-SAME: text    later on the same line
 *   CHECK-NOT: text     nowhere between the matches around it
 *   CHECK-LABEL: text   as CHECK, but found first: what stands between two labels is looked for only between them
 *
 * {{..}} holds a POSIX extended regular expression, [[NAME:..]] one whose match gets a name, [[NAME]] stands for
 * that match. Blanks match any blanks. */
#ifndef TILE_TOOLS_TILE_CHECK_H
#define TILE_TOOLS_TILE_CHECK_H

#include "base/string.h"

/* `prefix` replaces the word CHECK. False, with the reason in `errors`, if the input does not match, or `test` has no
 * such line or a malformed one. */
bool tile_check(const char *test, const char *input, const char *prefix, TileText *errors);

#endif
