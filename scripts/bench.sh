#!/bin/sh
# Measures kernels beside their peers in the same run, interleaved, and prints tables of medians.
# usage: bench.sh [PATTERN]     with a pattern, only kernels whose name contains it (or: matmul, compile)
#        bench.sh cpu [OPTION]..  beside PyTorch and NumPy, which have to be there, on one thread and on all: products,
#                                 attention, convolutions, rows; what threads cost (options: bench/cpu_peers.py)
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = cpu ]; then
    shift
    cmake --preset release >/dev/null
    cmake --build --preset release --target tile_shared tile_bench_threads
    build/release/bin/tile_bench_threads
    exec python3 bench/cpu_peers.py "$@"
fi
sh scripts/install_packages.sh bench
cmake --preset release >/dev/null
cmake --build --preset release --target tile_bench tile_bench_guards tilec
mkdir -p build/bench
export TILE_CACHE_DIR= # compile times are those of compiling
clang-22 -I. -O3 -march=native -ffast-math -fveclib=libmvec -fPIC -shared bench/peers.c bench/peers_products.c -o build/bench/peers.so -lmvec -lm

python3 bench/long_text.py many stdlib 10000 >build/bench/many.tile
python3 bench/long_text.py one 10000 >build/bench/one.tile

echo "Machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores; $(clang-22 --version | head -n 1)"
build/release/bin/tile_bench_guards
# OpenBLAS takes new processors for very old ones unless it is told.
OPENBLAS_CORETYPE=SkylakeX exec build/release/bin/tile_bench build/bench/peers.so stdlib build/release/bin/tilec \
    build/bench/many.tile build/bench/one.tile "$@"
