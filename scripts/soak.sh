#!/bin/sh
# Long campaigns, of which the tests hold a short slice. Ends at the first failure; otherwise runs HOURS hours.
# usage: soak.sh [HOURS]     (default 1)
set -eu
cd "$(dirname "$0")/.."
hours=${1:-1}
end=$(($(date +%s) + hours * 3600))
sh scripts/install_packages.sh test
cmake --preset dev >/dev/null
cmake --build --preset dev
cmake --preset release >/dev/null
cmake --build --preset release

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
round=0
while [ "$(date +%s)" -lt "$end" ]; do
    round=$((round + 1))
    echo "round $round: the kernel matrix with other pairs (seed $round)"
    python3 tests/make_matrix.py $round 3 >"$work/matrix.tsv"
    build/release/bin/tile_kernel_tests "$work/matrix.tsv" stdlib
    echo "round $round: the matrix on avx2 with code for other facts than its arguments have"
    build/release/bin/tile_kernel_tests --grant=all tests/matrix.tsv stdlib " avx2 "
    build/release/bin/tile_kernel_tests --grant=nothing tests/matrix.tsv stdlib " avx2 "
    echo "round $round: 5000 random kernels"
    (cd "$work" && "$OLDPWD/build/release/bin/tile_random_tests" --sve=1 5000 $round)
    echo "round $round: threads that compile at once, under ThreadSanitizer"
    sh scripts/test_compiler_threads.sh
    echo "round $round: a million inputs for lexer, parser and IR text"
    sh tests/fuzz/libfuzzer.sh build/dev 333334 $round
    echo "round $round: 1000 killed writers of the disk cache, 16 processes on one"
    TILE_SOAK_KILLS=1000 TILE_SOAK_ROUNDS=2000 build/dev/bin/test_driver --filter 'cache/*' --timeout 3600
    echo "round $round: 1000 sequences of launches, 10000 modules"
    build/release/bin/tile_guard_tests 1000 10000 $round
    echo "round $round: unit tests with sanitizers"
    TILE_SOAK_SECONDS=60 TILE_SOAK_SEED=$round ctest --test-dir build/dev --output-on-failure -j "$(nproc)" -R '^unit|^golden|^fuzz'
done
echo "no failure in $round rounds"
