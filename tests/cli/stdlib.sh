#!/bin/sh
# tilec test: the test blocks of every file of the standard library hold.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"

for file in "$stdlib"/*.tile; do
    expect 0 ' 0 failed' "$tilec" test "$file"
done
finish
