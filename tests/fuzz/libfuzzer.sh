#!/bin/sh
# libFuzzer on lexer, parser with checker, and reader of IR text: RUNS inputs for each, made from the texts of the
# repository. Ends at the first crash, input that takes over a second, or use of over 256 MiB; the input is then kept in
# the build folder.
# usage: libfuzzer.sh BUILD_FOLDER RUNS [SEED]
set -eu
cd "$(dirname "$0")/../.."
build=$1 runs=$2 seed=${3:-1}
compiler=$(command -v clang-22) || { echo "clang-22 is not installed (scripts/install_packages.sh test)"; exit 1; }
launcher=$(command -v ccache || true)
[ -f "$build/parser/lex.c" ] || { echo "$build holds no build"; exit 1; }
work=$build/fuzz
mkdir -p "$work/objects" "$work/found"
flags="-std=gnu17 -g -O1 -I. -Iinclude -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer -ffp-contract=off -DTILE_LIBFUZZER"

# Objects that are newer than their source and all headers stay.
newest=$(ls -t base/*.h base/*.def lang/*.h lang/*.def parser/*.h include/tile/*.h | head -n 1)
for source in base/*.c lang/*.c parser/*.c "$build/parser/lex.c" tests/fuzz/fuzz_lexer.c tests/fuzz/fuzz_parser.c tests/fuzz/fuzz_ir.c; do
    object=$work/objects/$(echo "${source#"$build"/}" | tr '/' '_' | sed 's/\.c$/.o/')
    [ "$object" -nt "$source" ] && [ "$object" -nt "$newest" ] || echo "$source $object"
done >"$work/stale"
# shellcheck disable=SC2086
flags=$(echo $flags)
while read -r source object; do printf '%s\n' "$launcher $compiler $flags -c $source -o $object"; done <"$work/stale" |
    tr '\n' '\0' | xargs -r -0 -n 1 -P "$(nproc)" sh -c 'eval "$0"'

# Short texts teach a fuzzer most.
seeds=$work/seeds
rm -rf "$seeds"
mkdir -p "$seeds/text" "$seeds/ir" "$seeds/new"
for text in stdlib/*.tile examples/*/*.tile tests/errors/*.tile; do
    head -c 4096 "$text" >"$seeds/text/$(echo "$text" | tr '/' '_')"
done
for text in tests/golden/*/*.tir; do head -c 4096 "$text" >"$seeds/ir/$(echo "$text" | tr '/' '_')"; done

export ASAN_OPTIONS="${ASAN_OPTIONS:-}:quarantine_size_mb=8:detect_leaks=1"
for target in lexer parser ir; do
    others=""
    for object in "$work"/objects/*.o; do
        case $object in */tests_fuzz_*) ;; *) others="$others $object" ;; esac
    done
    # shellcheck disable=SC2086
    "$compiler" -fsanitize=fuzzer,address,undefined -o "$work/$target" "$work/objects/tests_fuzz_fuzz_$target.o" $others -lm
    rm -f "$seeds/new/"*
    kind=text
    [ $target = ir ] && kind=ir
    echo "$target: $runs inputs from $(ls "$seeds/$kind" | wc -l) texts"
    "$work/$target" -runs="$runs" -seed="$seed" -timeout=1 -rss_limit_mb=256 -max_len=4096 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="$work/found/$target-" "$seeds/new" "$seeds/$kind" >"$work/$target.log" 2>&1 || {
        tail -n 60 "$work/$target.log"
        exit 1
    }
    sed -n 's/^stat:://p' "$work/$target.log" | tr -s ' ' | tr '\n' ';'
    echo
done
