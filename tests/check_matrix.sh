#!/bin/sh
# tests/matrix.tsv is what its generator writes.
set -eu
cd "$(dirname "$0")"
python3 make_matrix.py | cmp - matrix.tsv
echo "matrix.tsv holds $(grep -c -v '^#' matrix.tsv) rows"
