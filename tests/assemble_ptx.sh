#!/bin/sh
# Every kernel of the standard library, with floats of each size, as PTX for every GPU target, through ptxas: it assembles,
# and all of it fits into registers. ptxas is looked for as tools/ptxas.c does; ends with 77, skipped, where there is none.
#
# usage: assemble_ptx.sh [--turns] TILEC STDLIB [TARGET..]     (sm_80 sm_86 sm_89 sm_90a)
#   --turns   of one type for each target, and every second kernel, the others for the next one
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

# All types; by turns, one for each target.
types_of() {
    case $every:$1 in
    1:*) echo f32 f16 bf16 ;;
    *:sm_86) echo f16 ;;
    *:sm_89) echo bf16 ;;
    *) echo f32 ;;
    esac
}

failed=0 assembled=0 turn=0

# assemble TARGET FILE KERNEL TYPE
assemble() {
    name=$(basename "$2" .tile):$3
    # shellcheck disable=SC2046 # a word for each setting
    if ! "$tilec" emit ptx "$2:$3" $(instance "$2" "$3" "$4") --target="$1" >"$work/ptx" 2>"$work/said" ||
        ! "$ptxas" -v -arch="$1" "$work/ptx" -o /dev/null 2>"$work/said"; then
        echo "FAIL $1 $name $4"
        sed 's/^/     /' "$work/said" | head -n 4
        failed=$((failed + 1))
        return
    fi
    assembled=$((assembled + 1))
    spilled=$(sed -n 's/.* \([0-9]*\) bytes spill stores.*/\1/p' "$work/said" | sort -n | tail -n 1)
    [ "${spilled:-0}" = 0 ] && return
    echo "FAIL $1 $name $4 spills $spilled bytes a thread"
    failed=$((failed + 1))
}

for target; do
    turn=$((turn + 1)) number=0
    for file in "$stdlib"/*.tile; do
        for kernel in $(kernels_of "$file"); do
            number=$((number + 1))
            [ $(((number + turn) % every)) = 0 ] || continue
            for type in $(types_of "$target"); do assemble "$target" "$file" "$kernel" "$type"; done
        done
    done
done
echo "$assembled kernels assemble; $failed failures"
[ $failed = 0 ]
