#!/bin/sh
# Takes each barrier out of kernels as GPUs run them, and expects the emulator to report it: all kernels of
# tests/gpu/barriers.tsv, or the first COUNT.
#
#     scripts/soak_barriers.sh BUILD [COUNT]
set -eu
cd "$(dirname "$0")/.."
build=${1:?a build directory}
count=${2:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -v '^#' tests/gpu/barriers.tsv >"$work/kernels"
[ "$count" = 0 ] || head -n "$count" "$work/kernels" >"$work/some"
[ "$count" = 0 ] || mv "$work/some" "$work/kernels"
tab=$(printf '\t')
failed=0
while IFS=$tab read -r kernel settings arguments; do
    # The settings are words.
    # shellcheck disable=SC2086
    "$build/bin/tilec" emit machine "$kernel" $settings --target=sm_80 >"$work/module.tir" || { failed=1; continue; }
    "$build/bin/tile_barrier_tests" "$work/module.tir" "${kernel#*:}:$arguments" "$kernel" \
        tests/gpu/unneeded_barriers.txt || failed=1
done <"$work/kernels"
exit $failed
