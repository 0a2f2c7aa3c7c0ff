#!/bin/sh
# 16 threads that build kernels, compile and run them at once, each with a compiler of its own and all with one, under
# ThreadSanitizer. Code runs on the executor: LLVM, which is not built with it, has no part. Some minutes the first time.
# usage: test_compiler_threads.sh [--program=FILE | BUILD_FOLDER]
#   --program=FILE   runs a program that was built before
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
--program=*) program=${1#*=} ;;
*)
    folder=${1:-build/threads}
    program=$folder/bin/tile_compiler_threads
    # By clang, whose runtime knows the address spaces of newer kernels; with all of LLVM inside, to be carried elsewhere.
    cmake -S . -B "$folder" -G Ninja -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 -DTILE_STATIC_LLVM=ON \
        -DCMAKE_C_FLAGS="-fsanitize=thread -O1 -g" -DCMAKE_CXX_FLAGS="-fsanitize=thread -O1 -g" \
        -DCMAKE_EXE_LINKER_FLAGS=-fsanitize=thread -DCMAKE_SHARED_LINKER_FLAGS=-fsanitize=thread >/dev/null
    cmake --build "$folder" --target tile_compiler_threads
    ;;
esac
TILE_CACHE_DIR='' TILE_SOAK_THREADS="${TILE_SOAK_THREADS:-16}" TSAN_OPTIONS="halt_on_error=1${TSAN_OPTIONS:+ $TSAN_OPTIONS}" "$program"
