#!/bin/sh
# Names do not matter: a pipeline in which values are renamed after each pass gives the same machine form, for each instance
# of each kernel of the standard library, tests/programs and examples, on each given target. So do whole compilations, whose
# symbols get their own names back at the end: the same assembly and PTX, for one target per kernel alternately (with `all`
# for each), and the same objects byte for byte, with their images.
#   names.sh [all]       without `all`, one instance of each kernel
set -u
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
. "$TILE_SOURCE_DIR/tests/instances.sh"
optimise="$TILE_BINARY_DIR/bin/tile-opt"
compared=0 codes=0 objects=0 turn=0

# compare PIPELINE TARGET: compiles $work/tile.tir.
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

# compare_code TARGET SETTINGS..: of the current kernel, from text to code.
compare_code() {
    target=$1
    shift
    case $target in sm_*) stage=ptx ;; *) stage=asm ;; esac
    for rename in '' --rename=$((codes + 1)); do
        # shellcheck disable=SC2086 # settings are words, and the option may be empty
        expect 0 '' "$tilec" emit $stage "$file:$kernel" $settings --target="$target" "$@" $rename
        mv "$work/output" "$work/code${rename:+.renamed}"
    done
    cmp "$work/code" "$work/code.renamed" >"$work/output" || complain "$name for $target: other names make other $stage"
    codes=$((codes + 1))
}

# compare_objects FILE: of its exports, if all of them can be built without settings.
compare_objects() {
    grep -q '^export' "$1" || return 0
    "$tilec" build "$1" --target=avx2 -o "$work/object" 2>&1 | grep -q 'export-open' && return 0
    for rename in '' --rename=$((objects + 1)); do
        # shellcheck disable=SC2086 # it may be empty
        expect 0 '' "$tilec" build "$1" --target=avx2,avx512,sm_80 --no-cubin -o "$work/object${rename:+.renamed}" $rename
    done
    cmp "$work/object" "$work/object.renamed" >"$work/output" || complain "$(basename "$1"): other names make another object"
    objects=$((objects + 1))
}

# compare_instance FILE KERNEL TYPE SETTINGS..
compare_instance() {
    name="$(basename "$1" .tile):$2 $3"
    file=$1 kernel=$2 type=$3
    shift 3
    settings=$(instance "$file" "$kernel" "$type")
    for target in avx2 sve sm_80 sm_90a; do
        # shellcheck disable=SC2086 # settings are words
        expect 0 '' "$tilec" emit tile "$file:$kernel" $settings --target=$target "$@"
        mv "$work/output" "$work/tile.tir"
        case $target in
        sm_*) compare gpu $target ;;
        *) compare cpu $target ;;
        esac
    done
    turn=$((turn % 5 + 1))
    for target in ${everything:-$(echo avx2 sm_90a avx512 sm_80 sve | cut -d ' ' -f $turn)}; do compare_code "$target" "$@"; done
}

everything=
[ "${1-}" = all ] && everything='avx2 avx512 sve sm_80 sm_90a'

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
for file in "$TILE_SOURCE_DIR"/stdlib/*.tile; do
    case $everything:$file in :*/attention.tile | :*/matmul*.tile | :*/conv*.tile | :*/norm.tile | :*/reduce.tile) continue ;; esac
    compare_objects "$file"
done
[ "$codes" -gt 50 ] && [ "$objects" -gt 5 ] || complain "only $codes codes and $objects objects were compared"
[ "$compared" -gt 100 ] || complain "only $compared were compared"
echo "names: $compared pairs of machine forms, $codes of codes, $objects of objects"
finish
