#!/bin/sh
# Names carry nothing: a pipeline that meets other names after each of its passes makes the same machine form, for each
# instance of each kernel of the standard library, tests/programs and examples, on each target given.
#   names.sh [all]       without `all`, one instance of each kernel
set -u
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
. "$TILE_SOURCE_DIR/tests/instances.sh"
optimise="$TILE_BINARY_DIR/bin/tile-opt"
compared=0

# compare PIPELINE TARGET: what becomes of $work/tile.tir.
compare() {
    expect 0 '' "$optimise" "$work/tile.tir" --pipeline="$1" --target="$2" --rename=0
    mv "$work/output" "$work/plain"
    expect 0 '' "$optimise" "$work/tile.tir" --pipeline="$1" --target="$2" --rename=$((compared + 1))
    cmp -s "$work/plain" "$work/output" || {
        diff "$work/plain" "$work/output" | head -n 4 >"$work/difference"
        mv "$work/difference" "$work/output"
        complain "$name for $2: other names make other code"
    }
    compared=$((compared + 1))
}

# compare_instance FILE KERNEL TYPE SETTINGS..
compare_instance() {
    name="$(basename "$1" .tile):$2 $3"
    file=$1 kernel=$2 type=$3
    shift 3
    for target in avx2 sve sm_80 sm_90a; do
        # shellcheck disable=SC2046 # settings are words
        expect 0 '' "$tilec" emit tile "$file:$kernel" $(instance "$file" "$kernel" "$type") --target=$target "$@"
        mv "$work/output" "$work/tile.tir"
        case $target in
        sm_*) compare gpu $target ;;
        *) compare cpu $target ;;
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
[ "$compared" -gt 100 ] || complain "only $compared were compared"
echo "names: $compared pairs"
finish
