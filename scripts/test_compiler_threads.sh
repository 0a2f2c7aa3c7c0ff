#!/bin/sh
# Threads that build kernels, compile and run them at once, each with a compiler of its own and all with one, under
# ThreadSanitizer. Code runs on the executor: LLVM, which is not built with it, has no part. Some minutes the first time.
#   sh scripts/test_compiler_threads.sh [BUILD_FOLDER]
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/threads}
cmake -S . -B "$folder" -G Ninja -DCMAKE_C_FLAGS="-fsanitize=thread -O1 -g -Wno-error=tsan" -DCMAKE_CXX_FLAGS="-fsanitize=thread -O1 -g" \
    -DCMAKE_EXE_LINKER_FLAGS=-fsanitize=thread -DCMAKE_SHARED_LINKER_FLAGS=-fsanitize=thread >/dev/null
cmake --build "$folder" --target tile_compiler_threads
TILE_CACHE_DIR='' TSAN_OPTIONS="halt_on_error=1${TSAN_OPTIONS:+ $TSAN_OPTIONS}" "$folder/bin/tile_compiler_threads"
