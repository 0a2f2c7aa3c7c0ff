#!/bin/sh
# Installs the Debian packages that building Tile needs, as far as they are missing.
# usage: install_packages.sh [test] [bench]     with "test", also what the tests need; with "bench", the peers
set -eu
build_packages="gcc g++ libc6-dev cmake ninja-build re2c llvm-22-dev libmlir-22-dev lld-22 zlib1g-dev libzstd-dev
    python3-dev python3-venv libjansson-dev"
test_packages="clang-22 libclang-rt-22-dev libcriterion-dev python3 qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    locales neovim chromium gdb"
bench_packages="clang-22 libopenblas-dev"

wanted=$build_packages
for set in "$@"; do
    case $set in
    test) wanted="$wanted $test_packages" ;;
    bench) wanted="$wanted $bench_packages" ;;
    *) echo "install_packages.sh: no set of packages is called $set" >&2; exit 1 ;;
    esac
done

command -v dpkg-query >/dev/null || {
    echo "install_packages.sh: this is not a Debian system. Install by other means: $wanted" >&2
    exit 2
}

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
missing=""
for package in $wanted; do installed "$package" || missing="$missing $package"; done
if [ -z "$missing" ]; then
    echo "All packages are installed."
    exit 0
fi

echo "Packages to install:$missing"
as_root=""
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "Run as root, or install sudo: apt-get install$missing" >&2; exit 2; }
    as_root=sudo
fi
$as_root apt-get update -q
for package in $missing; do
    apt-cache policy "$package" | grep -q 'Candidate: [^(]' && continue
    cat >&2 <<TEXT
The package $package is in none of the apt sources of this machine (apt-cache policy $package shows no candidate).
LLVM 22 for Debian 12 lies in Debian's security archive, suite bookworm-security, component main. Enable that suite in
/etc/apt/sources.list or /etc/apt/sources.list.d, then run this script again.
TEXT
    exit 2
done
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
