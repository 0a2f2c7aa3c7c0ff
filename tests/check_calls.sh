#!/bin/sh
# A folder with a file `order.txt` has its files in an order: each calls only those that stand above it. Files of one line
# call one another in circles, since what they are about is recursive. The calls are those of the object files.
set -eu
exec python3 "$TILE_SOURCE_DIR/tests/check_calls.py" "$TILE_SOURCE_DIR" "$TILE_BINARY_DIR"
