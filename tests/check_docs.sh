#!/bin/sh
# docs/ops.md and docs/passes.md are what tile-write-docs prints from the tables.
set -eu
for page in ops passes; do
    "$TILE_BINARY_DIR/bin/tile-write-docs" $page | diff -u "$TILE_SOURCE_DIR/docs/$page.md" - || {
        echo "docs/$page.md is out of date: run tile-write-docs $page > docs/$page.md"
        exit 1
    }
done
