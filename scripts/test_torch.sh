#!/bin/sh
# Tests the Python package with PyTorch and JAX, which it installs from PyPI into virtual environments of their own: kernels on
# their arrays and as their operators, the examples, and the host time of calls. On a machine with an NVIDIA GPU the examples run
# there too. usage: test_torch.sh [--measure]     with --measure, times above the limits are failures
set -eu
cd "$(dirname "$0")/.."
build=$PWD/build/release
environment=$PWD/build/torch-environment

sh scripts/install_packages.sh
cmake --preset release
cmake --build --preset release --target tile_python fake_cuda
# make_environment FOLDER PACKAGE..: one that an interrupted installation left is made again.
make_environment() {
    folder=$1
    shift
    if [ -f "$folder/installed" ]; then return; fi
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/python" -m pip install -q --disable-pip-version-check "$@"
    touch "$folder/installed"
}
make_environment "$environment" torch numpy ml_dtypes 'pyright[nodejs]'
make_environment "$environment-jax" jax numpy
export PYTHONPATH="$build/python"
python=$environment/bin/python
passed=0 failed=0
check() {
    echo
    echo "--- $*"
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

check "$python" tests/python/test_torch.py
check "$python" tests/python/test_torch_layout.py
check "$python" tests/python/test_stdlib.py
check "$python" tests/python/test_arguments.py
check "$python" tests/python/test_gradients.py
check "$python" tests/python/test_pages.py python-torch.md
check "$python" tests/python/test_cuda.py
check "$python" tests/python/test_fake_gpu.py "$build"
check "$environment-jax/bin/python" tests/python/test_jax.py
check "$environment-jax/bin/python" tests/python/test_pages.py python-jax.md
devices=$("$python" -c "import torch, tile; print('cpu', *['cuda'] * (torch.cuda.is_available() and tile.backends.cuda.is_available()))")
for device in $devices; do
    for example in examples/python/[0-9]*.py; do check "$python" "$example" "$device"; done
done
check "$environment/bin/pyright" --pythonpath "$python" tests/python/typed.py
check "$python" tests/python/measure_curve.py ${1:+--check}
check "$python" tests/python/measure_calls.py ${1:+--check}
echo "$passed passed, $failed failed"
[ $failed = 0 ]
