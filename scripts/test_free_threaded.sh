#!/bin/sh
# Loads the Python extension from eight threads of free-threaded Pythons (tests/python/load.py): once as it is built, and
# once under ThreadSanitizer, where a race is one of the extension's own code. The interpreter and libtile are not built with
# ThreadSanitizer, so that it does not know how they order memory: what it says of their code is left out
# (scripts/test_threads.sh has the launcher). Needs build/release.
# usage: test_free_threaded.sh PYTHON...     (free-threaded ones that have NumPy, and PyTorch or not)
set -eu
cd "$(dirname "$0")/.."
library=$PWD/build/release/lib
passed=0 failed=0

# build PYTHON FOLDER FLAG..: a package of its own beside the release's libtile.
build() {
    interpreter=$1 package=$2
    shift 2
    mkdir -p "$package/tile"
    cp python/tile/* "$package/tile"
    suffix=$("$interpreter" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
    include=$("$interpreter" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    cc -std=gnu17 "$@" -g -w -shared -fPIC -fvisibility=hidden -Iinclude "-I$include" python/src/*.c -o "$package/tile/_tile$suffix" \
        "$library/libtile.so" "-Wl,-rpath,$library"
}

load() { PYTHONPATH=$1 "$2" tests/python/load.py "$3"; }

# Without its randomised addresses, which ThreadSanitizer's runtime does not expect on newer kernels.
load_under_sanitizer() {
    LD_PRELOAD=$(cc -print-file-name=libtsan.so) TSAN_OPTIONS='exitcode=0 report_signal_unsafe=0' \
        PYTHONPATH=$1 setarch -R "$2" tests/python/load.py 4 >"$1/log" 2>&1 || { tail -n 5 "$1/log"; return 1; }
    grep 'calls on' "$1/log"
    # Either side of a race is at the head of its stack, or below the copying that it called.
    grep -A 40 '^WARNING: ThreadSanitizer: data race' "$1/log" | grep '#[01] .* python/src/' | sort | uniq -c >"$1/races" || true
    cat "$1/races"
    [ ! -s "$1/races" ]
}

check() {
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

[ $# -gt 0 ] || { echo "which free-threaded Python? usage: test_free_threaded.sh PYTHON..." >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for python in "$@"; do
    kind=$("$python" -c 'import sys, sysconfig; print(sys.version.split()[0], sysconfig.get_config_var("Py_GIL_DISABLED") or 0)')
    echo "Python $kind"
    case $kind in *\ 1) ;; *) echo "it is not free-threaded"; failed=$((failed + 1)); continue ;; esac
    build "$python" "$folder/plain" -O2
    build "$python" "$folder/sanitized" -O1 -fsanitize=thread
    check load "$folder/plain" "$python" 20
    check load_under_sanitizer "$folder/sanitized" "$python"
    rm -rf "$folder/plain" "$folder/sanitized"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
