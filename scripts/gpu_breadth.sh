#!/bin/sh
# Every kernel of the standard library and the programs of tests/programs beside PyTorch on the NVIDIA GPU of this machine, at
# several shapes and types: ratios, shares of the rate at which the device copies, geometric means. With --device=cpu the same
# on the processors. bench/breadth.py says what is measured and how. Needs PyTorch and the driver; builds libtile unless
# --library names one.
# usage: gpu_breadth.sh [OPTION]...     (those of bench/breadth.py)
set -eu
cd "$(dirname "$0")/.."
case " $* " in
*" --library="* | *" --report="* | *" --list "* | *" --help "*) ;;
*)
    cmake --preset release >/dev/null
    cmake --build --preset release --target tile_shared >/dev/null
    ;;
esac
exec python3 bench/breadth.py "$@"
