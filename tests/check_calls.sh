#!/bin/sh
# The files of a folder with a file `order.txt` are ordered: each calls only functions of files above it. What is recursive, as
# expressions and statements are, goes back up by functions that a line `recursion: FUNCTION..` names, which any file may
# call. The calls are those in the object files.
set -eu
exec python3 "$TILE_SOURCE_DIR/tests/check_calls.py" "$TILE_SOURCE_DIR" "$TILE_BINARY_DIR"
