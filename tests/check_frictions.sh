#!/bin/sh
# Each place that tests/frictions.tsv names is there, and a line that names none of those is refused.
set -eu
cd "$(dirname "$0")"
python3 check_frictions.py
wrong=$(mktemp)
trap 'rm -f "$wrong"' EXIT
printf 'values\ta clause\tmatrix values:nothing_of_the_kind\n' >"$wrong"
if python3 check_frictions.py "$wrong" >/dev/null; then
    echo 'a place that is not there passes'
    exit 1
fi
