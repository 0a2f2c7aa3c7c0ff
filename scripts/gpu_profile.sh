#!/bin/sh
# What bounds rows of bench/gpu_goals.py: one call of each, and one of its peer, under ncu of the CUDA toolkit.
#
# usage: gpu_profile.sh [OPTIONS OF gpu_goals.py]     such as --only=attention_f8,"weight_gradient bf16 32x7"
#
# A line for each grid: its time in µs; the share of their peak that tensor cores, exponentials (xu), multiply-adds, integers, the issue of instructions, shared memory,
# the L2 cache and the memory have; the multiprocessors' cycles with work as a share of all; registers; blocks. Caches are cold, clocks those of ncu's base.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
command -v ncu >/dev/null || { echo "ncu of the CUDA toolkit is not installed" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
metrics='gpu__time_duration.sum sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active
sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active
sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active smsp__issue_active.avg.pct_of_peak_sustained_active
l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed lts__throughput.avg.pct_of_peak_sustained_elapsed
dram__throughput.avg.pct_of_peak_sustained_elapsed sm__cycles_active.avg sm__cycles_elapsed.max launch__registers_per_thread launch__grid_size'
# A metric that this GPU does not have would stop ncu; where it does not list any, all are asked for.
ncu --query-metrics >"$work/known" 2>/dev/null || true
list=
for metric in $metrics; do
    name=${metric%%.*}
    case $name in launch__*) ;; *) grep -q "^$name " "$work/known" || ! grep -q '^sm__' "$work/known" || continue ;; esac
    list=${list:+$list,}$metric
done
ncu --profile-from-start off --nvtx --print-nvtx-rename kernel --csv --page raw --metrics "$list" --log-file "$work/report" \
    python3 "$root/bench/gpu_goals.py" --profile "$@" >"$work/run" 2>&1 || { cat "$work/run" "$work/report"; exit 1; }
python3 "$root/bench/profile_table.py" "$work/report"
