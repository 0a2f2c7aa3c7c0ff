#!/bin/sh
# Tile's kernels that memory bounds on the NVIDIA GPU of this machine beside Triton and PyTorch: time on the device, share
# of the memory's bandwidth, and what falls short of the best other one. bench/gpu_peers.py says how it is measured.
# Needs PyTorch, Triton and the driver; builds libtile unless --library names one.
# usage: gpu_peers.sh [OPTION]...     (those of bench/gpu_peers.py)
set -eu
cd "$(dirname "$0")/.."
case " $* " in
*" --library="*) ;;
*)
    cmake --preset release >/dev/null
    cmake --build --preset release --target tile_shared >/dev/null
    ;;
esac
exec python3 bench/gpu_peers.py "$@"
