#!/bin/sh
# Takes each barrier out of kernels as GPUs run them, and expects the emulator to report it: all kernels of
# tests/gpu/barriers.tsv (two minutes with a release build); or the first COUNT, and those whose files were changed since
# the last commit but one.
#
#     scripts/soak_barriers.sh BUILD [COUNT]
set -eu
cd "$(dirname "$0")/.."
build=${1:?a build directory}
count=${2:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tab=$(printf '\t')
grep -v '^#' tests/gpu/barriers.tsv >"$work/all"
if [ "$count" = 0 ]; then
    mv "$work/all" "$work/kernels"
else
    head -n "$count" "$work/all" >"$work/kernels"
    git diff --name-only HEAD~1 -- stdlib 2>/dev/null >"$work/changed" || : >"$work/changed" # not in a released archive
    sed "1,${count}d" "$work/all" | while IFS= read -r row; do
        grep -qxF -e "${row%%:*}" "$work/changed" && printf '%s\n' "$row" >>"$work/kernels"
    done || :
fi
failed=0
while IFS=$tab read -r kernel settings arguments; do
    # The settings are words.
    # shellcheck disable=SC2086
    "$build/bin/tilec" emit machine "$kernel" $settings --target=sm_80 >"$work/module.tir" || { failed=1; continue; }
    "$build/bin/tile_barrier_tests" "$work/module.tir" "${kernel#*:}:$arguments" "$kernel ${settings%% *}" \
        tests/gpu/unneeded_barriers.txt || failed=1
done <"$work/kernels"
exit $failed
