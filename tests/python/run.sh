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
if grep -q '^TILE_SANITIZE:BOOL=ON' "$build/CMakeCache.txt"; then
    # The interpreter is not built with sanitizers, and leaks on purpose: what is released is counted by the tests.
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" TILE_TEST_LAUNCHES=20000 \
        ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0 TILE_TEST_SANITIZED=1 \
        "$environment/bin/python" -m unittest -q test_numpy test_threads test_conditions test_rows
    exit 0
fi
"$environment/bin/python" -m unittest -q test_numpy test_numpy_stdlib test_threads test_conditions test_rows \
    test_from_triton
"$environment/bin/python" test_drawn.py --count=16
"$environment/bin/python" -m mypy --strict --no-error-summary typed.py
"$environment/bin/python" ../../scripts/write_python_docs.py | diff -u ../../docs/python-api.md - || {
    echo "docs/python-api.md is out of date: run scripts/write_python_docs.py"
    exit 1
}
echo "the Python package works"
