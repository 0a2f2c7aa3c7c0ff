#!/bin/sh
# Builds the kernels and the program around them, and runs it on every CPU target that this machine has.
# usage: run.sh     TILEC names the compiler, TILE_LIBRARY the folder of libtile_launch.a, CC the C compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tilec=${TILEC:-$here/../../build/release/bin/tilec}
library=${TILE_LIBRARY:-$here/../../build/release/lib}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$tilec" build "$here/network.tile" --target=avx2,avx512 -o network.o --header network.h
${CC:-cc} -std=c11 -Wall -Wextra -Werror -I. -I"$here/../../include" "$here/main.c" network.o \
    "$library/libtile_launch.a" ${TILE_LINK_FLAGS:-} -lm -pthread -o program

for target in avx2 avx512; do
    "$tilec" backends | grep -q "^ *$target .*lacks" && { echo "$target: this CPU lacks it"; continue; }
    echo "$target:"
    TILE_CPU_CAPABILITY=$target ./program | tee output
    [ "$(grep -c right output)" = 2 ] || { echo "run.sh: a result is wrong" >&2; exit 1; }
done
