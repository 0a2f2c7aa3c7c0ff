#!/bin/sh
# tests/matrix.tsv is what its generator writes.
set -eu
cd "$(dirname "$0")"
python3 make_matrix.py | cmp - matrix.tsv
echo "matrix.tsv holds $(grep -c -v '^#' matrix.tsv) rows"
# The matrix covers stdlib/ by itself (matrix_covers); what it has of other folders is in interior.tsv as well.
missing=$(grep '^\.\./' matrix.tsv | cut -f1 | sed 's|\(:[a-z0-9_]*\)/.*|\1|' | sort -u | while IFS= read -r kernel; do
    grep -q "^$kernel	" interior.tsv || echo "$kernel"
done)
[ -z "$missing" ] || { echo "no row in interior.tsv: $missing"; exit 1; }
