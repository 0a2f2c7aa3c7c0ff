#!/bin/sh
# The examples in docs/*.md and docs/errors/*.md compile, fail and print as the pages say; see docs_examples.py.
set -eu
cd "${TILE_SOURCE_DIR:?names the source tree}"
[ -x "${TILEC:?names the compiler}" ] || { echo "there is no $TILEC"; exit 1; }
python3 tests/docs_examples.py "$TILEC" docs/*.md docs/errors/*.md
