#!/bin/sh
# Tests of the Python package that a build has made, with NumPy, in a virtual environment of its own.
# usage: run.sh BUILD-FOLDER
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")"
environment=$build/python-environment
python=$(sed -n 's/^_\{0,1\}Python3_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt" | head -n 1)
[ -n "$python" ] || python=python3
if [ ! -x "$environment/bin/python" ]; then
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install -q --disable-pip-version-check numpy ml_dtypes mypy
fi
export PYTHONPATH="$build/python"
"$environment/bin/python" -m unittest -q test_numpy
"$environment/bin/python" -m mypy --strict --no-error-summary typed.py
echo "the Python package works"
