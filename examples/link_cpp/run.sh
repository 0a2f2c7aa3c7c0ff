#!/bin/sh
# Builds kernels in several variants for two CPU targets, and a C++ program around them; runs it on every target that
# this machine has.
# usage: run.sh     TILEC names the compiler, TILE_LIBRARY the folder of libtile_launch.a, CXX the C++ compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tilec=${TILEC:-$here/../../build/release/bin/tilec}
library=${TILE_LIBRARY:-$here/../../build/release/lib}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$tilec" build "$here/blend.tile" --target=avx2,avx512 -o blend.o --header blend.h \
    --export 'blend[f32]' --export 'blend[f64]' \
    --variant 'contiguous, x: align 64, y: align 64' --variant 'contiguous, N % 16 == 0' --variant contiguous
"$tilec" build "$here/blend.tile" --target=avx2,avx512 -o window.o --header window.h \
    --export 'window[D = 3], window[D = 8]'
${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -I. -I"$here/../../include" "$here/main.cpp" blend.o window.o \
    "$library/libtile_launch.a" ${TILE_LINK_FLAGS:-} -lm -pthread -o program

for target in avx2 avx512; do
    "$tilec" backends | grep -q "^ *$target .*lacks" && { echo "$target: this CPU lacks it"; continue; }
    printf '%s: ' "$target"
    TILE_CPU_CAPABILITY=$target ./program
done
