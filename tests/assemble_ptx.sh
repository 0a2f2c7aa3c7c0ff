#!/bin/sh
# Compiles every kernel of the standard library, tests/programs and examples, with floats of each size, to PTX for every GPU
# target, and assembles it with ptxas: there must be no errors, no products of warpgroups that it makes wait for one another (its
# messages C7508 to C7519 and C7602), and no register spills but of one value of 64 bits, which
# ptxas by its own limit on registers keeps in memory across a loop that does not use it, and those of tests/spills.tsv. ptxas is searched as by
# tools/ptxas.c; exit status 77, skipped, if it is not installed.
#
# usage: assemble_ptx.sh [--alternate] TILEC [TARGET..]     (sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a)
#   --alternate   of one type for each target, and every third kernel, the others for the next ones
set -eu
every=1
if [ "$1" = --alternate ]; then
    every=3
    shift
fi
tilec=$1
shift
[ $# -gt 0 ] || set -- sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a
root=$(cd "$(dirname "$0")/.." && pwd)
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

. "$root/tests/instances.sh"

# chosen_types TARGET TYPE..: all of them; with --alternate one for each target, alternately.
chosen_types() {
    usual=f32
    case $1 in sm_86) usual=f16 ;; sm_89) usual=bf16 ;; esac
    shift
    if [ $every = 1 ]; then
        echo "$*"
    else
        case " $* " in *" $usual "*) echo $usual ;; *) echo "$1" ;; esac
    fi
}

failed=0 assembled=0 turn=0

# assemble TARGET FILE KERNEL TYPE VARIANT
assemble() {
    name=$(basename "$2" .tile):$3
    variant=${5#-}
    # shellcheck disable=SC2046,SC2086 # a word for each setting
    if ! "$tilec" emit ptx "$2:$3" $(instance "$2" "$3" "$4") $variant --target="$1" >"$work/ptx" 2>"$work/said" ||
        ! "$ptxas" -v -arch="$1" "$work/ptx" -o /dev/null 2>"$work/said"; then
        echo "FAIL $1 $name $4 $variant"
        sed 's/^/     /' "$work/said" | head -n 4
        failed=$((failed + 1))
        return
    fi
    assembled=$((assembled + 1))
    if grep -qE '\(C7(50[89]|51[0-9]|602)\)' "$work/said"; then
        echo "FAIL $1 $name $4 $variant: ptxas lets products wait for one another"
        grep -E '\(C7' "$work/said" | sed 's/^/     /' | head -n 2
        failed=$((failed + 1))
    fi
    spilled=$(sed -n 's/.* \([0-9]*\) bytes spill stores.*/\1/p' "$work/said" | sort -n | tail -n 1)
    known=$(awk -F '\t' -v row="$1 $name $4" '$1 " " $2 " " $3 == row { print $4 }' "$root/tests/spills.tsv")
    if [ "${spilled:-0}" -le 8 ] && [ -n "$known" ]; then
        echo "FAIL $1 $name $4 $variant spills nothing more: its line in tests/spills.tsv can go"
        failed=$((failed + 1))
    fi
    [ "${spilled:-0}" -le "${known:-8}" ] && return
    echo "FAIL $1 $name $4 $variant spills $spilled bytes a thread"
    failed=$((failed + 1))
}

# visit TARGET FILE KERNEL TYPE..: if the kernel is to be compiled for this target
visit() {
    target=$1 file=$2 kernel=$3
    number=$((number + 1))
    [ $(((number + turn) % every)) = 0 ] || return 0
    shift 3
    for type in $(chosen_types "$target" "$@"); do
        for word in $(variants_of "$file" "$kernel"); do assemble "$target" "$file" "$kernel" "$type" "$word"; done
    done
}

for target; do
    turn=$((turn + 1)) number=0
    for file in "$root"/stdlib/*.tile "$root"/tests/programs/*.tile "$root"/examples/*/*.tile; do
        for kernel in $(kernels_of "$file"); do
            # shellcheck disable=SC2046 # a word for each type
            visit "$target" "$file" "$kernel" $(types_of "$file" "$kernel")
        done
    done
done
echo "$assembled kernels assemble; $failed failures"
[ $failed = 0 ]
