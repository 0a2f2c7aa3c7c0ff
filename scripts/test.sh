#!/bin/sh
# Builds Tile twice and runs every test: with sanitizers (build/dev) the unit, golden and source tests, in release
# (build/release) all of them, the kernels on every target and the examples included. Where its time goes: docs/adr/0184-*.md.
set -eu
cd "$(dirname "$0")/.."
started=$(date +%s)
jobs=$(nproc)
step() { echo; echo "[$(($(date +%s) - started)) s] $1"; }

step "1/5 Packages (apt)"
sh scripts/install_packages.sh test

step "2/5 Building with AddressSanitizer and UndefinedBehaviorSanitizer (build/dev)"
cmake --preset dev -DTILE_REQUIRE_TESTS=ON
cmake --build --preset dev

step "3/5 Building the release (build/release)"
cmake --preset release -DTILE_REQUIRE_TESTS=ON
cmake --build --preset release

# Runs the tests of a build and adds its numbers to the totals.
passed=0 failed=0
run_tests() {
    log=$(mktemp)
    ctest --test-dir "$1" --output-on-failure -j "$jobs" | tee "$log"
    total=$(sed -n 's/.* tests failed out of \([0-9]*\)$/\1/p' "$log")
    bad=$(sed -n 's/.* \([0-9]*\) tests failed out of [0-9]*$/\1/p' "$log")
    rm -f "$log"
    # Without a summary ctest itself has failed.
    failed=$((failed + ${bad:-1}))
    passed=$((passed + ${total:-0} - ${bad:-0}))
}

step "4/5 Tests with sanitizers"
run_tests build/dev

step "5/5 Tests of the release: kernels on every target, command line, examples"
run_tests build/release
grep -h 'rows ran' build/release/Testing/Temporary/LastTest.log || true

step "$([ $failed = 0 ] && echo 'All tests passed.' || echo 'Some tests failed; see above.')"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
