#!/bin/sh
# Tests of `tilec lsp` with real clients: pytest-lsp, which checks messages against the protocol, in a virtual environment that
# is made here; Neovim without a screen; and a client that sends what no editor would.
# usage: run.sh BUILD-FOLDER
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")"
environment=$build/lsp-environment
python=$(sed -n 's/^_\{0,1\}Python3_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt" | head -n 1)
[ -n "$python" ] || python=python3
if [ ! -x "$environment/bin/pytest" ]; then
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install -q --disable-pip-version-check 'pytest-lsp==1.0.1'
fi
TILEC=$build/bin/tilec
TILE_CACHE_DIR=
export TILEC TILE_CACHE_DIR
PYTHONDONTWRITEBYTECODE=1 "$environment/bin/python" -m pytest -q -p no:cacheprovider -x .
exec sh ./neovim.sh
