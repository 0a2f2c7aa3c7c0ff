#!/bin/sh
# Every kernel has rows in the breadth table of bench/breadth.py, or a reason why not; the rows of bench/gpu_goals.py are of kernels that there
# are. What gpu_profile.sh prints of ncu's table has times in microseconds and the multiprocessors' cycles as a share.
set -eu
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1
python3 check_breadth.py
python3 ../bench/gpu_goals.py --list >/dev/null
report=$(mktemp)
trap 'rm -f "$report"' EXIT
printf '%s\n' '==PROF== Connected' '"ID","Kernel Name","gpu__time_duration.sum","lts__throughput.avg.pct","sm__cycles_active.avg","sm__cycles_elapsed.max"' '"","","ns","%","cycle","cycle"' \
    '"0","one/k$0","1,500","25.5","300","1,200"' >"$report"
python3 ../bench/profile_table.py "$report" | tail -n 1 | grep -q '^ *1\.5 *25\.5 *25\.0  *one/k\$0$' || { echo "profile_table.py prints another line"; exit 1; }
