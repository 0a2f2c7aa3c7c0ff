#!/bin/sh
# docs/ops.md is what tile-write-docs prints from the op table.
set -eu
"$TILE_BINARY_DIR/bin/tile-write-docs" | diff -u "$TILE_SOURCE_DIR/docs/ops.md" - || {
    echo "docs/ops.md is out of date: run tile-write-docs > docs/ops.md"
    exit 1
}
