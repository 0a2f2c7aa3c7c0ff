#!/bin/sh
# The launcher's tests of threads and variants under ThreadSanitizer (a minute at most). No LLVM is needed.
# usage: test_threads.sh [--program=FILE] [COMPILER]
#   --program=FILE   where the program is put; where COMPILER is not given and the file is there, it is run as it is
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program=$folder/test_threads
case ${1:-} in --program=*) program=${1#*=}; shift ;; esac
if [ $# -gt 0 ] || [ ! -x "$program" ]; then
    "${1:-cc}" -std=gnu17 -O1 -g -fsanitize=thread -ffp-contract=off -fno-math-errno -Wall -Wextra \
        -Wno-unused-parameter -I. -Iinclude -Itests/plain launch/*.c lang/scalar/*.c base/*.c tests/plain/main.c \
        tests/unit/launch/fixture.c tests/unit/launch/test_threads.c tests/unit/launch/test_variants.c \
        tests/unit/launch/test_linked.c tests/unit/launch/test_evict.c tests/unit/launch/test_miss.c \
        -o "$program" -lm -lpthread
fi
TSAN_OPTIONS="die_after_fork=0 halt_on_error=1${TSAN_OPTIONS:+ $TSAN_OPTIONS}" "$program"
