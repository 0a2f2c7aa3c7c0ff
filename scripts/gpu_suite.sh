#!/bin/sh
# Kernels of the standard library on the NVIDIA GPU of this machine: rows of tests/matrix.tsv with the target cuda. Needs
# a release build of tile_kernel_tests, which also compiles the kernels, and the driver; no toolkit.
#
# usage: gpu_suite.sh [--build=DIR] [--every=N] [--tool=memcheck|racecheck] [--out=FILE] [PATTERN]
#   --build=DIR   where bin/tile_kernel_tests is (build/release)
#   --every=N     every Nth row of each kernel (1)
#   --tool=NAME   under this tool of compute-sanitizer, which the CUDA toolkit has; a row in 20 unless --every is given
#   --out=FILE    where all that the tests said goes too
#   PATTERN       only rows that contain this text
set -eu
cd "$(dirname "$0")/.."
build=build/release every= tool= out= pattern=
for argument; do
    case $argument in
    --build=*) build=${argument#*=} ;;
    --every=*) every=${argument#*=} ;;
    --tool=*) tool=${argument#*=} ;;
    --out=*) out=${argument#*=} ;;
    -*) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) pattern=$argument ;;
    esac
done
tests=$build/bin/tile_kernel_tests
[ -x "$tests" ] || { echo "gpu_suite: there is no $tests" >&2; exit 2; }
if [ -n "$tool" ]; then
    command -v compute-sanitizer >/dev/null || { echo "gpu_suite: there is no compute-sanitizer" >&2; exit 2; }
    every=${every:-20}
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=${out:-$work/log}
# awk counts the rows of each kernel, so that the sample has some of all.
awk -F '\t' -v every="${every:-1}" -v pattern="$pattern" '
    $3 == "cuda" && (pattern == "" || index($0, pattern)) && seen[$1]++ % every == 0' tests/matrix.tsv >"$work/all"
[ -s "$work/all" ] || { echo "gpu_suite: no row has \`$pattern\`" >&2; exit 2; }

failed=0
: >"$log"
printf '%-42s %6s %6s %6s %9s\n' kernel rows failed skipped seconds
for kernel in $(cut -f 1 "$work/all" | uniq); do
    awk -F '\t' -v kernel="$kernel" '$1 == kernel' "$work/all" >"$work/rows"
    begin=$(date +%s.%N)
    status=0
    if [ -n "$tool" ]; then
        compute-sanitizer --tool "$tool" --error-exitcode 9 --require-cuda-init=no \
            "$tests" --part --alone "$work/rows" stdlib >"$work/said" 2>&1 || status=$?
    else
        "$tests" --part "$work/rows" stdlib >"$work/said" 2>&1 || status=$?
    fi
    cat "$work/said" >>"$log"
    seconds=$(echo "$begin $(date +%s.%N)" | awk '{ printf "%.1f", $2 - $1 }')
    counts=$(sed -n 's/^kernel matrix: \([0-9]*\) rows ran, \([0-9]*\) failed, \([0-9]*\) skipped.*/\1 \2 \3/p' "$work/said")
    # shellcheck disable=SC2086 # three words
    printf '%-42s %6s %6s %6s %9s\n' "$kernel" ${counts:-? ? ?} "$seconds"
    if [ "$status" != 0 ]; then
        failed=$((failed + 1))
        grep -E -A 1 '^FAIL|^SKIP|Error|=========' "$work/said" | head -n 12 | sed 's/^/    /'
    fi
done
[ "$failed" = 0 ] || { echo "gpu_suite: $failed kernels failed${out:+; all of it is in $out}"; exit 1; }
echo "gpu_suite: all kernels passed"
