#!/bin/sh
# Kernels of the standard library, of tests/programs and of examples on the NVIDIA GPU of this machine: rows of
# tests/matrix.tsv with the target cuda. Needs a release build of tile_kernel_tests, which also compiles the kernels, and
# the driver; no toolkit.
#
# usage: gpu_suite.sh [--build=DIR] [--every=N] [--tool=memcheck|racecheck] [--jobs=N] [--out=FILE] [PATTERN]
#   --build=DIR   where bin/tile_kernel_tests is (build/release)
#   --every=N     every Nth row of each kernel (1)
#   --tool=NAME   under this tool of compute-sanitizer, which the CUDA toolkit has; a row in 20 unless --every is given
#   --jobs=N      N kernels at once (half as many as there are processors)
#   --out=FILE    where all that the tests said goes too
#   PATTERN       only rows that contain this text
set -eu
cd "$(dirname "$0")/.."

# The kernel's rows, of the folder's; prints its line of the table, and what was wrong.
try_kernel() {
    tests=$1 tool=$2 work=$3 kernel=$4
    name=$(echo "$kernel" | tr ':/.' '___') # not a hidden file's
    awk -F '\t' -v kernel="$kernel" '$1 == kernel' "$work/all" >"$work/$name.rows"
    begin=$(date +%s.%N)
    status=0
    if [ -n "$tool" ]; then
        compute-sanitizer --tool "$tool" --error-exitcode 9 --require-cuda-init=no \
            "$tests" --part --alone "$work/$name.rows" stdlib >"$work/$name.said" 2>&1 || status=$?
    else
        "$tests" --part --jobs=1 "$work/$name.rows" stdlib >"$work/$name.said" 2>&1 || status=$?
    fi
    seconds=$(echo "$begin $(date +%s.%N)" | awk '{ printf "%.1f", $2 - $1 }')
    counts=$(sed -n 's/^kernel matrix: \([0-9]*\) rows ran, \([0-9]*\) failed, \([0-9]*\) skipped.*/\1 \2 \3/p' "$work/$name.said")
    # shellcheck disable=SC2086 # three words
    line=$(printf '%-42s %6s %6s %6s %9s' "$kernel" ${counts:-? ? ?} "$seconds")
    [ "$status" = 0 ] || line="$line
$(grep -E -A 1 '^FAIL|^SKIP|Error|=========' "$work/$name.said" | head -n 12 | sed 's/^/    /')"
    printf '%s\n' "$line"
    return "$status"
}
if [ "${1:-}" = --kernel ]; then
    shift
    try_kernel "$@" || exit 1
    exit 0
fi

build=build/release every= tool= jobs=$((($(nproc) + 1) / 2)) out= pattern=
for argument; do
    case $argument in
    --build=*) build=${argument#*=} ;;
    --every=*) every=${argument#*=} ;;
    --tool=*) tool=${argument#*=} ;;
    --jobs=*) jobs=${argument#*=} ;;
    --out=*) out=${argument#*=} ;;
    -*) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2 ;;
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
# awk counts the rows of each kernel, so that the sample has some of all.
awk -F '\t' -v every="${every:-1}" -v pattern="$pattern" '
    $3 == "cuda" && (pattern == "" || index($0, pattern)) && seen[$1]++ % every == 0' tests/matrix.tsv >"$work/all"
[ -s "$work/all" ] || { echo "gpu_suite: no row has \`$pattern\`" >&2; exit 2; }

printf '%-42s %6s %6s %6s %9s\n' kernel rows failed skipped seconds
failed=0
cut -f 1 "$work/all" | uniq | xargs -n 1 -P "$jobs" sh scripts/gpu_suite.sh --kernel "$tests" "$tool" "$work" >"$work/table" ||
    failed=1
cat "$work/table"
[ -z "$out" ] || cat "$work"/*.said >"$out"
awk -v tool="${tool:+under $tool, }" -v status=$failed '/^[^ ]/ { kernels++; rows += $2; failed += $3; skipped += $4 }
    END { printf "gpu_suite: %s%d kernels, %d rows, %d failed, %d skipped%s\n", tool, kernels, rows, failed, skipped,
        status ? "; not all is well" : "" }' "$work/table"
exit $failed
