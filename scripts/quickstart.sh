#!/bin/sh
# From a fresh clone to running kernels: installs packages, builds the release compiler, reads handwritten digits with it.
# May be repeated; what is done already is not done again.
set -eu
cd "$(dirname "$0")/.."
started=$(date +%s)
step() { echo; echo "[$(($(date +%s) - started)) s] $1"; }

step "1/3 Packages (apt)"
sh scripts/install_packages.sh

step "2/3 Building tilec (build/release, about two minutes on two cores)"
cmake --preset release
cmake --build --preset release --target tilec digits

step "3/3 Reading handwritten digits: every layer is a kernel of examples/digits/digits.tile"
sh examples/digits/run.sh
echo
echo "The same through the C API (examples/digits/digits.c):"
build/release/bin/digits examples/digits

step "Done. The compiler is build/release/bin/tilec; try: build/release/bin/tilec help"
