/* tilec backends: which targets can run here, why others cannot, and the settings. */
#include <stdio.h>

#include "driver/cache/cache.h"
#include "tools/session.h"

int tile_command_backends(TileSession *session, char **words, int count) {
    TileTargetInfo info;
    if (count) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "backends takes no arguments: '%s'", words[0]);
    for (size_t i = 0; tile_target_at(i, &info); i++)
        printf("%-12s %-4s %s%s%s\n", info.name, info.usable ? "yes" : "no", info.description, info.usable ? "" : ": ",
               info.usable ? "" : info.why_not);
    TileSettings settings = {.struct_size = sizeof settings};
    if (tile_settings_read(&settings) != TILE_OK) return tile_session_fail(session, TILE_INTERNAL, "no settings");
    TileCodeCache *cache = tile_code_cache_open(NULL, NULL, 0);
    printf("\nsettings of the environment:\n"
           "TILE_CPU_CAPABILITY  %s\nTILE_NUM_THREADS     %d\nTILE_ON_MISS         %s\nTILE_VARIANT_LIMIT   %d\n"
           "TILE_DETERMINISTIC   %d\nTILE_ALLOW_TF32      %d\nTILE_LOG             %s%s%s\nTILE_CACHE_DIR       %s\n"
           "TILE_TUNING          %s\n",
           settings.cpu_capability ? settings.cpu_capability : "not limited", settings.threads,
           tile_on_miss_name(settings.on_miss), settings.variant_limit, settings.deterministic, settings.allow_tf32,
           settings.log & TILE_LOG_GUARDS ? "guards"
           : settings.log                 ? ""
                                          : "nothing",
           settings.log == (TILE_LOG_GUARDS | TILE_LOG_COMPILE) ? "," : "",
           settings.log & TILE_LOG_COMPILE ? "compile" : "", cache ? tile_code_cache_folder(cache) : "no cache",
           settings.tuning ? settings.tuning : "no file");
    tile_code_cache_close(cache);
    return tile_session_finish(session);
}
