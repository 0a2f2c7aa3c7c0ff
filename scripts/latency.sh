#!/bin/sh
# The published experiment: microseconds a call of N elementwise statements and a sum, fixed and varying shapes, from C;
# beside PyTorch (eager, compiled static and dynamic) where python3 has it. Prints the table, writes the plot.
# usage: latency.sh [TARGET [CALLS [PROGRAM]]]     (cpu or cuda; 300; tile_bench_latency, else it is built)
set -eu
cd "$(dirname "$0")/.."
target=${1:-cpu}
calls=${2:-300}
program=${3:-build/release/bin/tile_bench_latency}
out=${OUT:-build/bench}
mkdir -p "$out"
if [ $# -lt 3 ]; then
    cmake --preset release >/dev/null
    cmake --build --preset release --target tile_bench_latency >/dev/null
fi
"$program" "$target" "$calls" >"$out/latency-$target.txt"
torch=-
if python3 -c 'import torch' 2>/dev/null; then
    torch=$out/latency-$target-torch.txt
    python3 bench/latency_torch.py "$target" "$calls" >"$torch"
    python3 -c 'import torch; print("PyTorch", torch.__version__)'
fi
echo "microseconds a call, $target, $calls calls"
python3 bench/latency_table.py "$out/latency-$target.txt" "$torch" "$out/latency-$target.svg"
echo "plot: $out/latency-$target.svg"
