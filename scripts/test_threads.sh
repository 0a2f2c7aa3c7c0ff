#!/bin/sh
# The launcher's tests of threads and variants under ThreadSanitizer (a minute at most). No LLVM is needed.
#   sh scripts/test_threads.sh [COMPILER]
set -eu
cd "$(dirname "$0")/.."
compiler=${1:-cc}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "building the launcher with ThreadSanitizer"
"$compiler" -std=gnu17 -O1 -g -fsanitize=thread -ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-unused-parameter \
    -I. -Iinclude -Itests/plain launch/*.c base/*.c tests/plain/main.c \
    tests/unit/launch/fixture.c tests/unit/launch/test_threads.c tests/unit/launch/test_variants.c \
    tests/unit/launch/test_linked.c tests/unit/launch/test_evict.c tests/unit/launch/test_miss.c \
    -o "$folder/test_threads" -lm -lpthread
echo "running"
TSAN_OPTIONS="die_after_fork=0 halt_on_error=1${TSAN_OPTIONS:+ $TSAN_OPTIONS}" "$folder/test_threads"
