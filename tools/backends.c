/* tilec backends: what can run here and why not. */
#include <stdio.h>

#include "tools/session.h"

int tile_command_backends(TileSession *session, char **words, int count) {
    TileTargetInfo info;
    if (count) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "backends takes no arguments: '%s'", words[0]);
    for (size_t i = 0; tile_target_at(i, &info); i++)
        printf("%-12s %-4s %s%s%s\n", info.name, info.usable ? "yes" : "no", info.description, info.usable ? "" : ": ",
               info.usable ? "" : info.why_not);
    return tile_session_finish(session);
}
