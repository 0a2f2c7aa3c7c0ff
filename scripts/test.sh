#!/bin/sh
# Builds Tile twice and runs every test: with sanitizers (build/dev) the unit, golden and source tests, in release
# (build/release) all of them, the kernels on every target and the examples included. 15 minutes at most on two cores.
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

status=0
step "4/5 Tests with sanitizers"
ctest --test-dir build/dev --output-on-failure -j "$jobs" || status=1

step "5/5 Tests of the release: kernels on every target, command line, examples"
ctest --test-dir build/release --output-on-failure -j "$jobs" || status=1
grep -h 'rows ran' build/release/Testing/Temporary/LastTest.log || true

step "$([ $status = 0 ] && echo 'All tests passed.' || echo 'Some tests failed; see above.')"
exit $status
