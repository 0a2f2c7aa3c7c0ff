#!/bin/sh
# Every kernel has rows in the breadth table of bench/breadth.py, or a reason why not; the rows of bench/gpu_goals.py are of kernels that there
# are.
set -eu
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1
python3 check_breadth.py
python3 ../bench/gpu_goals.py --list >/dev/null
