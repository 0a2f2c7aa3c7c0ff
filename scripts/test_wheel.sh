#!/bin/sh
# Builds the wheel of the Python package, and tests it in a clean virtual environment of each Python from 3.11 on that is
# found: in PATH, those of pyenv, and whatever is named. What the tests see is installed, not the repository.
# usage: test_wheel.sh [PYTHON]...     (programs; a free-threaded one gets a wheel of its own)
set -eu
cd "$(dirname "$0")/.."
out=$PWD/build/wheels
most=$((25 * 1000 * 1000))
passed=0 failed=0

# One program for each version, the first that is found.
versions=
pythons=
consider() {
    command -v "$1" >/dev/null || return 0
    version=$("$1" -c 'import sys, sysconfig
if sys.version_info < (3, 11): sys.exit()
print("%d.%d%s" % (*sys.version_info[:2], "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))' 2>/dev/null) || return 0
    case " $versions " in *" $version "*) return 0 ;; esac
    [ -z "$version" ] || { versions="$versions $version" pythons="$pythons $1"; }
}
for python in "$@"; do consider "$python"; done
for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python; do consider "$python"; done
for minor in 11 12 13 14 15; do consider "python3.$minor"; consider "python3.${minor}t"; done

# The wheel for this Python: one for all that have the stable ABI.
wheel_of() {
    case $2 in *t) kind=cp$(echo "${2%t}" | tr -d .)t ;; *) kind=abi3 ;; esac
    find "$out" -name "tile-*-$kind-*.whl" | grep . && return 0
    "$1" -m venv "$out/build-$kind" >&2
    "$out/build-$kind/bin/python" -m pip install -q --disable-pip-version-check build >&2
    "$out/build-$kind/bin/python" -m build --wheel --outdir "$out" . >&2
    find "$out" -name "tile-*-$kind-*.whl" | grep .
}

check() {
    python=$1 version=$2
    wheel=$(wheel_of "$python" "$version") || return 1
    size=$(wc -c <"$wheel")
    echo "Python $version: $(basename "$wheel"), $size bytes"
    [ "$size" -le $most ] || { echo "more than $most bytes"; return 1; }
    rm -rf "$out/python-$version"
    "$python" -m venv "$out/python-$version" || return 1
    "$out/python-$version/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: numpy ml_dtypes "$wheel" ||
        return 1
    (cd "$out" && PYTHONPATH=../../tests/python "python-$version/bin/python" -P -m unittest -q test_numpy test_threads)
}

rm -rf "$out"
mkdir -p "$out"
for python in $pythons; do
    # shellcheck disable=SC2086
    set -- $versions
    if check "$python" "$1"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    versions=${versions#" $1"}
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
