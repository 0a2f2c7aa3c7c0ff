#!/bin/sh
# Neovim without a screen, set up as docs/editors.md says, on a file with a mistake: diagnostics, their edit, hover, definition in
# the standard library, renaming, formatting. TILEC names the compiler.
set -eu
cd "$(dirname "$0")"
command -v nvim >/dev/null || {
    echo "Neovim is not installed (Debian: neovim; scripts/install_packages.sh test)"
    [ -z "${TILE_REQUIRE_EDITOR:-}" ]
    exit
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/wrong.tile" <<'TEXT'
import math

kernel k(x: in f16[N], y: out f32[N]) {
    grid n in tiles(N, 64) {
        let twice   =  x[n]  * 2
        y[n] = f32(x[n]) + math.square(f32(twice)) * x[n]
    }
}
TEXT
XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work XDG_STATE_HOME=$work XDG_CACHE_HOME=$work EDITORS=$PWD/../../editors \
    timeout 120 nvim --headless -u neovim.lua "$work/wrong.tile" >"$work/output" 2>&1 || true
cat "$work/output"
grep -q 'neovim: all is well' "$work/output"
