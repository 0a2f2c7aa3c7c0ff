#!/bin/sh
# clang 22 compiles every C and C++ file with the flags of the build, without warnings. Rows of tables may omit fields that
# are zero. What only GCC knows is left out.
set -eu
commands=${TILE_BINARY_DIR:?}/compile_commands.json
clang=$(command -v clang-22) || { echo "clang-22 is not installed (scripts/install_packages.sh test)"; exit 1; }
list=$(mktemp)
trap 'rm -f "$list"' EXIT
sed -n 's/^ *"command": "\(.*\)",\{0,1\}$/\1/p' "$commands" |
    sed -e 's/\\\(["\\]\)/\1/g' -e "s#^[^ ]*#$clang#" -e 's# -mmem[a-z]*-strategy=[^ ]*##g' -e 's# -o [^ ]* -c # -fsyntax-only -Wno-missing-field-initializers #' |
    sed -e '/\.cc$/s#clang-22#clang++-22#' | sort -u >"$list"
[ -s "$list" ] || { echo "no commands found in $commands"; exit 1; }
cd "$TILE_BINARY_DIR"
tr '\n' '\0' <"$list" | xargs -0 -n 1 -P "$(nproc)" sh -c 'eval "$0"' || exit 1
echo "clang 22 accepts $(wc -l <"$list") files"
