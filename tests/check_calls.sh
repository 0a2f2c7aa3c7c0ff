#!/bin/sh
# The files of a folder with a file `order.txt` are ordered: each calls only functions of files above it. Files on one line
# may call one another, since they are mutually recursive. The calls are those in the object files.
set -eu
exec python3 "$TILE_SOURCE_DIR/tests/check_calls.py" "$TILE_SOURCE_DIR" "$TILE_BINARY_DIR"
