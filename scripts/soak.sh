#!/bin/sh
# Long campaigns, of which the tests hold a short slice. Each prints one line: how it went, how long it took, what it
# did; what else it said is in a file. Ends with failure if one has failed.
#
# usage: soak.sh [--hours=N] [--jobs=N] [--programs=DIR] [--out=DIR] [CAMPAIGN ..]
#   --hours=N       all of them over and over with other random numbers, for so long (once)
#   --jobs=N        N processes at once (as many as there are processors)
#   --programs=DIR  runs the programs in DIR/bin, which were built elsewhere, and builds nothing
#   --out=DIR       where what they say goes (build/soak)
# The campaigns, all of them but the last if none is named:
#   matrix            the kernel matrix with other pairs of values
#   sve               the configurations of the kernel matrix as machine code for SVE, each of them
#   grants            the kernel matrix on AVX2 with code for other facts than its arguments have, every row
#   between           the kernel matrix with canonicalise, cse and dce between all passes, every row; every instance of
#                     every kernel with other names after each pass
#   random            20,000 random programs on AVX2, AVX-512 and the emulated sm_80 and sm_90a, 3,000 for SVE
#   random-gpu        3,000 random programs on the GPU, 300 under compute-sanitizer's memcheck; skipped without one
#   fuzz              a million inputs for lexer, parser with checker, and IR text
#   cache             1,000 killed processes that compile, launch, damage the cache and tune; a full disk
#   launches          1,000 sequences of launches at random; 10,000 modules loaded and unloaded
#   threads           the launcher's threads under ThreadSanitizer
#   compiler-threads  16 threads that build kernels, compile and launch, under ThreadSanitizer
#   ptx               every kernel for every GPU target through ptxas; skipped without one
#   barriers          every barrier taken out of every kernel for GPUs
#   memcheck          kernels on the GPU under compute-sanitizer; skipped without one
#   racecheck         the same for races
#   units             unit and golden tests and fuzzers with sanitizers, with other random numbers
#   mutants           40 faults in passes, lowerings and launcher: do the tests find them? An hour or two; only if named
# `soak_math.sh` is a campaign of its own: every f32 argument of every function.
set -eu
cd "$(dirname "$0")/.."
usage() { sed -n '2,29s/^# \{0,1\}//p' scripts/soak.sh; exit 2; }
all="matrix sve grants between random random-gpu fuzz cache launches threads compiler-threads ptx barriers memcheck racecheck units"
hours=0 jobs=$(nproc) programs= out=build/soak chosen=
for argument; do
    case $argument in
    --hours=*) hours=${argument#*=} ;;
    --jobs=*) jobs=${argument#*=} ;;
    --programs=*) programs=${argument#*=} ;;
    --out=*) out=${argument#*=} ;;
    -*) usage ;;
    *) case " $all mutants " in *" $argument "*) chosen="$chosen $argument" ;; *) usage ;; esac ;;
    esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
chosen=${chosen:-$all}
# `units` are made of shared libraries, here; `mutants` builds its own.
[ -z "$programs" ] || chosen=$(echo " $chosen " | sed -e 's/ units / /' -e 's/ mutants / /')
release=${programs:-build/release}
export TILE_CACHE_DIR=

if [ -z "$programs" ]; then
    sh scripts/install_packages.sh test
    for preset in dev release; do
        cmake --preset $preset >/dev/null
        cmake --build --preset $preset
    done
fi

has_gpu() { [ -e /dev/nvidiactl ] && command -v compute-sanitizer >/dev/null; }

run_matrix() {
    python3 tests/make_matrix.py "$round" 8 | grep -v '	sve\.' >"$out/matrix.tsv"
    "$release/bin/tile_kernel_tests" --jobs="$jobs" "$out/matrix.tsv" stdlib
}

run_sve() {
    python3 tests/make_matrix.py "$round" 1 | grep '	sve\.' >"$out/sve.tsv"
    "$release/bin/tile_kernel_tests" --part --jobs="$jobs" "$out/sve.tsv" stdlib
}

run_grants() {
    "$release/bin/tile_kernel_tests" --grant=all --jobs="$jobs" tests/matrix.tsv stdlib " avx2 " &&
        "$release/bin/tile_kernel_tests" --grant=nothing --jobs="$jobs" tests/matrix.tsv stdlib " avx2 "
}

run_between() {
    "$release/bin/tile_kernel_tests" --between=tests/between.tsv --jobs="$jobs" tests/matrix.tsv stdlib &&
        TILEC=$PWD/$release/bin/tilec TILE_SOURCE_DIR=$PWD TILE_BINARY_DIR=$PWD/$release sh tests/between.sh all &&
        TILEC=$PWD/$release/bin/tilec TILE_SOURCE_DIR=$PWD TILE_BINARY_DIR=$PWD/$release sh tests/names.sh all
}

# Programs that fail are written where it runs.
run_random() {
    program=$(realpath "$release/bin/tile_random_tests")
    (cd "$out" && "$program" --jobs="$jobs" 20000 "$round" &&
        "$program" --alternate --targets=sve.128,sve.256,sve.512,sve.2048 --jobs="$jobs" 3000 "$round")
}

run_random_gpu() {
    program=$(realpath "$release/bin/tile_random_tests")
    (cd "$out" && "$program" --targets=cuda --jobs="$jobs" 3000 "$round" &&
        compute-sanitizer --tool memcheck --error-exitcode 9 "$program" --alone --targets=cuda 300 "$round")
}

run_fuzz() {
    if [ -n "$programs" ]; then
        sh tests/fuzz/libfuzzer.sh --made --jobs="$jobs" "$programs" 333334 "$round"
    else
        sh tests/fuzz/libfuzzer.sh --jobs="$jobs" build/dev 333334 "$round"
    fi
}

run_cache() { "$release/bin/tile_cache_tests" 1000 "$round"; }
run_launches() { "$release/bin/tile_guard_tests" --jobs="$jobs" 1000 10000 "$round"; }
run_threads() { sh scripts/test_threads.sh ${programs:+"--program=$programs/bin/test_threads"}; }
run_compiler_threads() { sh scripts/test_compiler_threads.sh ${programs:+"--program=$programs/bin/tile_compiler_threads"}; }
run_ptx() { sh tests/assemble_ptx.sh "$release/bin/tilec"; }
run_barriers() { sh scripts/soak_barriers.sh --jobs="$jobs" "$release"; }
run_memcheck() { sh scripts/gpu_suite.sh --build="$release" --tool=memcheck --jobs="$jobs" --every=20; }
run_racecheck() { sh scripts/gpu_suite.sh --build="$release" --tool=racecheck --jobs="$jobs" --every=20; }
run_units() {
    TILE_SOAK_SECONDS=60 TILE_SOAK_SEED=$round ctest --test-dir build/dev --output-on-failure -j "$jobs" -R '^unit|^golden|^fuzz' &&
        echo "unit and golden tests passed"
}
run_mutants() {
    if [ "$round" = 1 ]; then
        python3 scripts/mutate.py
    else
        python3 scripts/mutate.py --seed="$(git rev-parse HEAD) $round"
    fi
}

failed=0
run() {
    begin=$(date +%s)
    log=$out/$1.log
    case $1 in
    random-gpu | memcheck | racecheck) has_gpu || { echo "skipped $1: there is no GPU or no compute-sanitizer"; return; } ;;
    esac
    word=ok status=0
    "run_$(echo "$1" | tr '-' '_')" >"$log" 2>&1 || status=$?
    case $status in
    0) ;;
    77) word=skipped ;;
    *) word=FAILED failed=$((failed + 1)) ;;
    esac
    echo "$word $1, $(($(date +%s) - begin)) s: $(tail -n 1 "$log")$([ $word != FAILED ] || echo " (all of it: $log)")"
}

end=$(($(date +%s) + hours * 3600))
round=0
while :; do
    round=$((round + 1))
    for campaign in $chosen; do run "$campaign"; done
    [ "$failed" = 0 ] && [ "$(date +%s)" -lt "$end" ] || break
done
[ "$failed" = 0 ] || { echo "soak: $failed campaigns failed in round $round"; exit 1; }
echo "soak: no failure in $round rounds"
