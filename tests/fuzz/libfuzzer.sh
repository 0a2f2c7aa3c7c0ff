#!/bin/sh
# libFuzzer on lexer, parser with checker, and reader of IR text: RUNS inputs for each, made from the texts of the
# repository. Ends with failure after a crash, an input that takes over a second, or use of over 256 MiB; the input is
# then kept in BUILD_FOLDER/fuzz/found.
# usage: libfuzzer.sh [--jobs=N] [--made] BUILD_FOLDER RUNS [SEED]
#   --jobs=N   N processes at once (as many as there are processors)
#   --made     the programs BUILD_FOLDER/fuzz/lexer, parser and ir are there; no compiler is needed
set -eu
cd "$(dirname "$0")/../.."
jobs=$(nproc) made=
while :; do
    case ${1:-} in
    --jobs=*) jobs=${1#*=} ;;
    --made) made=1 ;;
    *) break ;;
    esac
    shift
done
build=$1 runs=$2 seed=${3:-1}
work=$build/fuzz
mkdir -p "$work/objects" "$work/found"

make_programs() {
    compiler=$(command -v clang-22) || { echo "clang-22 is not installed (scripts/install_packages.sh test)"; exit 1; }
    launcher=$(command -v ccache || true)
    [ -f "$build/parser/syntax/lex.c" ] || { echo "$build holds no build"; exit 1; }
    flags="-std=gnu17 -g -O1 -I. -Iinclude -I$build/parser -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
        -fno-omit-frame-pointer -ffp-contract=off -DTILE_LIBFUZZER"
    # Objects that are newer than their source and all headers stay.
    newest=$(find base lang parser include/tile -name "*.h" -o -name "*.def" | xargs ls -t | head -n 1)
    for source in base/*.c lang/*/*.c parser/*/*.c "$build/parser/syntax/lex.c" tests/fuzz/fuzz_lexer.c tests/fuzz/fuzz_parser.c tests/fuzz/fuzz_ir.c; do
        object=$work/objects/$(echo "${source#"$build"/}" | tr '/' '_' | sed 's/\.c$/.o/')
        echo "$object" >&3
        [ "$object" -nt "$source" ] && [ "$object" -nt "$newest" ] || echo "$source $object"
    done >"$work/stale" 3>"$work/all"
    # shellcheck disable=SC2086
    flags=$(echo $flags)
    while read -r source object; do printf '%s\n' "$launcher $compiler $flags -c $source -o $object"; done <"$work/stale" |
        tr '\n' '\0' | xargs -r -0 -n 1 -P "$jobs" sh -c 'eval "$0"'
    others=""
    while read -r object; do
        case $object in */tests_fuzz_*) ;; *) others="$others $object" ;; esac
    done <"$work/all"
    for target in lexer parser ir; do
        # shellcheck disable=SC2086
        "$compiler" -fsanitize=fuzzer,address,undefined -o "$work/$target" "$work/objects/tests_fuzz_fuzz_$target.o" $others -lm
    done
}
[ -n "$made" ] || make_programs

# Short texts teach a fuzzer most.
seeds=$work/seeds
rm -rf "$seeds"
mkdir -p "$seeds/text" "$seeds/ir"
for text in stdlib/*.tile examples/*/*.tile tests/errors/*.tile; do
    head -c 4096 "$text" >"$seeds/text/$(echo "$text" | tr '/' '_')"
done
for text in tests/golden/*/*.tir; do head -c 4096 "$text" >"$seeds/ir/$(echo "$text" | tr '/' '_')"; done

# Each process makes inputs of its own, from numbers of its own.
parts=$((runs / 20000 + 1))
[ "$parts" -le "$jobs" ] || parts=$jobs
each=$(((runs + parts - 1) / parts))
rm -f "$work"/*.log
fuzz_one='
    target=$1 part=$2 kind=text
    [ "$target" = ir ] && kind=ir
    mkdir -p "$seeds/$target-$part"
    "$work/$target" -runs="$each" -seed="$((seed * 1000 + part))" -timeout=1 -rss_limit_mb=256 -max_len=4096 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="$work/found/$target-" "$seeds/$target-$part" "$seeds/$kind" \
        >"$work/$target-$part.log" 2>&1 && exit
    echo "FAIL $target, part $part:"
    tail -n 60 "$work/$target-$part.log"
    exit 1'
export work seeds each seed
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:quarantine_size_mb=8:detect_leaks=1"
status=0
part=0
while [ $part -lt "$parts" ]; do
    for target in parser ir lexer; do echo "$target $part"; done
    part=$((part + 1))
done | xargs -n 2 -P "$jobs" sh -c "$fuzz_one" fuzz || status=1

# What libFuzzer counts, of all processes.
for target in lexer parser ir; do
    cat "$work/$target"-*.log | awk -v target=$target '
        /^stat::number_of_executed_units:/ { inputs += $2 }
        /^stat::slowest_unit_time_sec:/ { if ($2 > slowest) slowest = $2 }
        /^stat::peak_rss_mb:/ { if ($2 > most) most = $2 }
        END { printf "%s: %d inputs, the slowest %d s, at most %d MiB\n", target, inputs, slowest, most }'
done
cat "$work"/*.log | awk -v status=$status '/^stat::number_of_executed_units:/ { inputs += $2 }
    END { printf "libFuzzer: %d inputs, %s\n", inputs, status ? "FAILED" : "0 failed" }'
exit $status
