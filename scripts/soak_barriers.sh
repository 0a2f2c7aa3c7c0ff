#!/bin/sh
# Takes each barrier, wait for copies or products, end of a group of these, fence, arrival and wait at an mbarrier, and
# change of the number of registers out of kernels as GPUs run them, and expects the emulator to report it, but where
# tests/gpu/unneeded_barriers.txt says why it need not; what is listed there has to be there: all kernels of
# tests/gpu/barriers.tsv and tests/gpu/removals.tsv (ten minutes on a core with a release build); no other kernel of the
# standard library, tests/programs and examples may have any, but those named below. With COUNT the first so many kernels
# of barriers.tsv, and those whose files were changed since the last commit but one.
#
# usage: soak_barriers.sh [--jobs=N] BUILD [COUNT]        BUILD/bin has tilec and tile_barrier_tests
set -eu
cd "$(dirname "$0")/.."

# A row of barriers.tsv. What is said comes in one piece.
try_row() {
    tab=$(printf '\t')
    kernel=${2%%"$tab"*} rest=${2#*"$tab"}
    settings=${rest%%"$tab"*} arguments=${rest#*"$tab"}
    module=$(mktemp)
    status=0
    # The settings are words.
    # shellcheck disable=SC2086
    said=$("$1/bin/tilec" emit machine "$kernel" --target=sm_80 $settings 2>&1 >"$module" &&
        "$1/bin/tile_barrier_tests" "$module" "${kernel#*:}:$arguments" "$kernel ${settings%% *}" \
            tests/gpu/unneeded_barriers.txt 2>&1) || status=1
    rm -f "$module"
    [ $status = 0 ] || said="$said
FAIL $kernel $settings"
    printf '%s\n' "$said"
    return $status
}

# Kernels without rows: made-up offsets give the first two no sequences, and their loops are those of attention; places that
# meet may be stored in any order; arguments cannot be made up for numbers of four bits; long sorts have hundreds of grids and
# would take an hour; groups of rows need whole tiles of other shapes than a row can ask for.
without_rows='stdlib/attention.tile:attention_varlen tests/programs/varlen_attention.tile:varlen_attention
    tests/programs/temporaries.tile:places
    tests/programs/packed_tensors.tile:wide_i4 tests/programs/packed_tensors.tile:narrow_i4 tests/programs/packed_tensors.tile:narrow_f4
    tests/programs/packed_tensors.tile:rows tests/programs/packed_tensors.tile:products
    stdlib/radix.tile:sort_long stdlib/radix.tile:argsort_long stdlib/radix.tile:sort_pairs
    stdlib/matmul.tile:matmul_grouped'

# A kernel that has no row.
try_other() {
    . tests/instances.sh
    file=${2%:*} kernel=${2#*:}
    variant=$(variants_of "$file" "$kernel")
    variant=${variant%% *}
    # shellcheck disable=SC2046,SC2086 # a word for each setting
    text=$("$1/bin/tilec" emit machine "$2" $(instance "$file" "$kernel" f32) ${variant#-} --target=sm_80 2>/dev/null) ||
        { echo "FAIL $2 does not compile"; return 1; }
    printf '%s\n' "$text" | grep -qE '^ *(barrier|copy_wait|copy_commit|mbarrier_arrive|mbarrier_wait|fence_async|store_commit|store_wait|wgmma_commit)\b' || return 0
    echo "FAIL $2 has barriers and no row in tests/gpu/barriers.tsv"
    return 1
}

case ${1:-} in
--row) try_row "$2" "$3"; exit ;;
--other) try_other "$2" "$3"; exit ;;
--jobs=*) jobs=${1#*=}; shift ;;
*) jobs=$(nproc) ;;
esac
build=${1:?a build directory}
count=${2:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -v '^#' tests/gpu/barriers.tsv >"$work/all"
: >"$work/others"
# The kernels of removals.tsv as files and names.
sed -n '/^#/d; s|^\.\./||; t named; s|^|stdlib/|; : named; s|^\([^:]*\):\([a-z0-9_]*\).*|\1.tile:\2|p' tests/gpu/removals.tsv >"$work/matrix"
if [ "$count" = 0 ]; then
    cp "$work/all" "$work/kernels"
    . tests/instances.sh
    for file in stdlib/*.tile tests/programs/*.tile examples/*/*.tile; do
        for kernel in $(kernels_of "$file"); do
            case " $(echo $without_rows) " in *" $file:$kernel "*) continue ;; esac
            grep -q "^$file:$kernel	" "$work/all" || grep -q "^$file:$kernel$" "$work/matrix" ||
                echo "$file:$kernel" >>"$work/others"
        done
    done
else
    head -n "$count" "$work/all" >"$work/kernels"
    git diff --name-only HEAD~1 -- stdlib tests/programs examples 2>/dev/null >"$work/changed" ||
        : >"$work/changed" # not in a released archive
    sed "1,${count}d" "$work/all" | while IFS= read -r row; do
        grep -qxF -e "${row%%:*}" "$work/changed" && printf '%s\n' "$row" >>"$work/kernels"
    done || :
fi
failed=0
run() { xargs -r -d '\n' -n 1 -P "$jobs" sh scripts/soak_barriers.sh "$1" "$build" <"$2" >>"$work/said" 2>&1 || failed=1; }
# What is listed for kernels that are not tried.
awk -F '\t' '
    FNR == 1 { file++ }
    file == 1 { split($2, words, " "); rows[$1 " " words[1]] = 1; next }
    /^(stdlib|tests|examples)\// { split($0, words, " "); name = words[1] " " words[2]
        if (!(name in rows)) { print "FAIL " name " " words[3] " is listed as not needed, but tests/gpu/barriers.tsv has no such row"; bad = 1 } }
    END { exit bad }' "$work/all" tests/gpu/unneeded_barriers.txt >"$work/said" || failed=1
run --row "$work/kernels"
run --other "$work/others"
if [ "$count" = 0 ]; then
    "$build/bin/tile_kernel_tests" --part --removals=tests/gpu/unneeded_barriers.txt --jobs="$jobs" tests/gpu/removals.tsv stdlib \
        >>"$work/said" 2>&1 || failed=1
fi
[ $failed = 0 ] || grep -v ' 0 failures$' "$work/said" || :
awk -v rows="$(wc -l <"$work/kernels")" -v others="$(wc -l <"$work/others")" '
    / barriers taken out, / { for (i = 1; i <= NF; i++) if ($i == "barriers") { out += $(i - 1); spared += $(i + 3); missed += $(i + 8) } }
    /^kernel matrix: / { rows += $3 }
    /^FAIL / { failed++ }
    END { printf "barriers: %d kernels, %d barriers taken out, %d of them not needed, %d not reached; %d kernels without any; %d failed\n",
        rows, out, spared, missed, others, failed }' "$work/said"
exit $failed
