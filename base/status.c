#include "tile/status.h"

const char *tile_status_text(tile_status status) {
    switch (status) {
#define TILE_STATUS_TEXT(name, exit_status, text)                                                                      \
    case TILE_##name: return text;
        TILE_STATUS_LIST(TILE_STATUS_TEXT)
#undef TILE_STATUS_TEXT
    }
    return "unknown status";
}

int tile_status_exit_code(tile_status status) {
    switch (status) {
#define TILE_STATUS_EXIT(name, exit_status, text)                                                                      \
    case TILE_##name: return exit_status;
        TILE_STATUS_LIST(TILE_STATUS_EXIT)
#undef TILE_STATUS_EXIT
    }
    return 3;
}
