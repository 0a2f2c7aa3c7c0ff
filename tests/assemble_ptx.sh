#!/bin/sh
# Every kernel of the standard library as PTX for every GPU target, through ptxas: it assembles, and all of it fits into
# registers. ptxas is looked for as tools/ptxas.c does; ends with 77, skipped, where there is none.
#
# usage: assemble_ptx.sh [--turns] TILEC STDLIB [TARGET..]     (sm_80 sm_86 sm_89 sm_90a)
#   --turns   every second kernel for each target, the others for the next one
set -eu
every=1
if [ "$1" = --turns ]; then
    every=2
    shift
fi
tilec=$1 stdlib=$2
shift 2
[ $# -gt 0 ] || set -- sm_80 sm_86 sm_89 sm_90a
find_ptxas() {
    if [ -n "${TILE_PTXAS:-}" ]; then echo "$TILE_PTXAS"; return; fi
    command -v ptxas && return
    for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
        if [ -n "$folder" ] && [ -x "$folder/bin/ptxas" ]; then echo "$folder/bin/ptxas"; return; fi
    done
}
ptxas=$(find_ptxas)
[ -x "$ptxas" ] || { echo "skipped: there is no ptxas"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

. "$(dirname "$0")/instances.sh"

# The types take turns over the targets.
type_of() {
    case $1 in
    sm_86) echo f16 ;;
    sm_89) echo bf16 ;;
    *) echo f32 ;;
    esac
}

failed=0 assembled=0 turn=0
for target; do
    type=$(type_of "$target")
    turn=$((turn + 1)) number=0
    for file in "$stdlib"/*.tile; do
        for kernel in $(kernels_of "$file"); do
            number=$((number + 1))
            [ $(((number + turn) % every)) = 0 ] || continue
            name=$(basename "$file" .tile):$kernel
            # shellcheck disable=SC2046 # a word for each setting
            if ! "$tilec" emit ptx "$file:$kernel" $(instance "$file" "$kernel" "$type") --target="$target" \
                >"$work/ptx" 2>"$work/said" || ! "$ptxas" -v -arch="$target" "$work/ptx" -o /dev/null 2>"$work/said"; then
                echo "FAIL $target $name $type"
                sed 's/^/     /' "$work/said" | head -n 4
                failed=$((failed + 1))
                continue
            fi
            assembled=$((assembled + 1))
            spilled=$(sed -n 's/.* \([0-9]*\) bytes spill stores.*/\1/p' "$work/said" | sort -n | tail -n 1)
            [ "${spilled:-0}" = 0 ] && continue
            echo "FAIL $target $name $type spills $spilled bytes a thread"
            failed=$((failed + 1))
        done
    done
done
echo "$assembled kernels assemble; $failed failures"
[ $failed = 0 ]
