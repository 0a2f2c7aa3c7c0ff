#!/bin/sh
# The libraries export exactly the functions that their headers declare, and tests/abi.txt lists them with the sizes of the
# public structs: any change must be intended. usage: check_abi.sh [--update]
set -eu
cd "$(dirname "$0")/.."
library=${TILE_BINARY_DIR:-build/release}/lib
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The names that headers declare as part of the API.
declared() {
    for header in "$@"; do ${CC:-cc} -Iinclude -E -P "$header"; done | tr '\n' ' ' | tr ';{}' '\n\n\n' |
        sed -n 's/.*visibility("default").*[ *]\(tile_[a-z_0-9]*\)(.*/\1/p' | LC_ALL=C sort -u
}
exported() { nm -D --defined-only "$1" | awk '{ print $3 }' | grep -vE '^(__|_init|_fini)' | LC_ALL=C sort -u; }

declared include/tile/launch.h include/tile/linked.h >"$work/launch.declared"
declared include/tile/*.h >"$work/tile.declared"
for name in launch tile; do
    file=libtile_launch.so
    [ $name = launch ] || file=libtile.so
    exported "$library/$file" >"$work/$name.exported"
    diff "$work/$name.declared" "$work/$name.exported" || { echo "$file does not export what its headers declare"; exit 1; }
done

cat >"$work/sizes.c" <<'TEXT'
#include <stdio.h>
#include <tile/build.h>
#include <tile/pass.h>
#include <tile/linked.h>
#define SIZE(type) printf("sizeof %s %zu\n", #type, sizeof(type));
int main(void) {
    SIZE(TileArg) SIZE(TileBuildOptions) SIZE(TileBuildSource) SIZE(TileCompileOptions) SIZE(TileCompilerOptions)
    SIZE(TileEmitOptions) SIZE(TileError) SIZE(TileIrIndex) SIZE(TileIrTypeInfo) SIZE(TileKernelStats) SIZE(TileLaunchEvent) SIZE(TileLaunchOptions) SIZE(TileLimit) SIZE(TileLimitInfo) SIZE(TileLaunchStep) SIZE(TileLinked) SIZE(TileObserver)
    SIZE(TileParameterInfo) SIZE(TilePass) SIZE(TileSetting) SIZE(TileSettingInfo) SIZE(TileStandardText) SIZE(TileSettings) SIZE(TileTargetInfo) SIZE(TileThreadPoolOptions)
    return 0;
}
TEXT
${CC:-cc} -Iinclude "$work/sizes.c" -o "$work/sizes"
{ sed 's/^/libtile_launch /' "$work/launch.exported"; comm -13 "$work/launch.exported" "$work/tile.exported" | sed 's/^/libtile /'; "$work/sizes"; } >"$work/abi.txt"
if [ "${1:-}" = --update ]; then
    cp "$work/abi.txt" tests/abi.txt
    exit 0
fi
diff tests/abi.txt "$work/abi.txt" || { echo "the ABI is not that of tests/abi.txt; if it is to change: sh tests/check_abi.sh --update"; exit 1; }
echo "the libraries export what tests/abi.txt lists"
