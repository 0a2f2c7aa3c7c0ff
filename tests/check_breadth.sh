#!/bin/sh
# Every kernel has rows in the breadth table of bench/breadth.py, or a reason why not.
set -eu
cd "$(dirname "$0")"
PYTHONDONTWRITEBYTECODE=1 exec python3 check_breadth.py
