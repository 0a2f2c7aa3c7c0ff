#!/bin/sh
# Passes rely on the IR, not on properties of a particular predecessor: canonicalise, cse and dce between any two passes of a
# pipeline change neither results nor decisions.
#   between.sh [all]     without `all`, one instance of each kernel
# Results: the executor runs again what the golden tests run through a whole pipeline. Decisions: on GPUs threads, shared
# memory, and the number of instructions of each kind for products, copies and synchronisation; on CPUs the loops that
# cpu-nest made of the kernel.
set -u
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
. "$TILE_SOURCE_DIR/tests/instances.sh"
optimise="$TILE_BINARY_DIR/bin/tile-opt"
between=--between=canonicalise,cse,dce
gpu_decisions='mma|load_matrix|store_matrix|copy_async|copy_commit|copy_wait|barrier|exchange'
cpu_decisions='dot_block|buffer|loop|fold_loop'
compared=0 runs=0

# decisions PATTERN: of the IR in $work/output, one line each.
decisions() {
    grep -oE "scratch_bytes = [0-9]+|threads = [0-9]+|^ *(%[^=]*= )?($1)( |\$)" "$work/output" |
        sed -E 's/^ *(%[^=]*= )?//; s/ $//' | sort | uniq -c
}

# compare TARGET PIPELINE PATTERN OPTIONS..: compiles $work/tile.tir with and without the passes, and compares.
compare() {
    target=$1 pipeline=$2 pattern=$3
    shift 3
    expect 0 '' "$optimise" "$work/tile.tir" --pipeline="$pipeline" --target="$target" "$@"
    decisions "$pattern" >"$work/plain"
    expect 0 '' "$optimise" "$work/tile.tir" --pipeline="$pipeline" --target="$target" $between "$@"
    decisions "$pattern" >"$work/between"
    case $name in
    values:fibonacci\ * | packed_tensors:single_u4\ *) ;; # scalars alone: no loop over points is made
    *) [ -s "$work/plain" ] || complain "$name for $target: no decisions are seen" ;;
    esac
    diff "$work/plain" "$work/between" >"$work/output" || complain "$name for $target: other decisions"
    compared=$((compared + 1))
}

# compare_instance FILE KERNEL TYPE SETTINGS..
compare_instance() {
    name="$(basename "$1" .tile):$2 $3"
    file=$1 kernel=$2 type=$3
    shift 3
    settings=$(instance "$file" "$kernel" "$type")
    for target in avx2 avx512 sm_80 sm_90a; do
        # shellcheck disable=SC2086 # settings are words
        expect 0 '' "$tilec" emit tile "$file:$kernel" $settings --target=$target "$@"
        mv "$work/output" "$work/tile.tir"
        case $target in
        sm_*) compare $target gpu "$gpu_decisions" ;;
        *) compare $target cpu "$cpu_decisions" --stop-after=cpu-nest ;;
        esac
    done
}

for file in "$TILE_SOURCE_DIR"/stdlib/*.tile "$TILE_SOURCE_DIR"/tests/programs/*.tile "$TILE_SOURCE_DIR"/examples/*/*.tile; do
    for kernel in $(kernels_of "$file"); do
        for type in $(types_of "$file" "$kernel"); do
            for variant in $(variants_of "$file" "$kernel"); do
                [ "$variant" = - ] && variant=
                # shellcheck disable=SC2086 # it may be empty
                compare_instance "$file" "$kernel" "$type" $variant
                [ "${1-}" = all ] || break 2
            done
        done
    done
done

for file in "$TILE_SOURCE_DIR"/tests/golden/*/*.tir; do
    sed -n 's/^\/\/ RUN: tile-opt %s \(--pipeline=.*--run=[^ |]*\)$/\1/p' "$file" >"$work/runs"
    while read -r options; do
        # shellcheck disable=SC2086 # options are words
        expect 0 '' "$optimise" "$file" $options $between
        runs=$((runs + 1))
    done <"$work/runs"
done

[ "$compared" -gt 100 ] && [ "$runs" -gt 50 ] || complain "only $compared were compared, and $runs run"
echo "between: $compared pairs, $runs runs"
finish
