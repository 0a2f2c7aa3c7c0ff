# The launcher without the compiler: built where there is no LLVM and no C++, installed, linked by pkg-config and run; built
# for AArch64 where its cross compiler is there.
. "$(dirname "$0")/../cli_common.sh"
cc=${CC:-cc}
cd "$work" || exit 1

# The flags are those of the presets: with -O3 gcc sees uninitialised variables where there are none.
configure() {
    folder=$1
    shift
    expect 0 '' cmake -S "$source_directory" -B "$folder" -G Ninja -DTILE_COMPILER=OFF -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_FLAGS_RELEASE=-O2 "$@"
}

for libdir in lib lib/some-machine; do
    # LLVM's programs are not looked for: a path that has none says so.
    configure own -DLLVM_CONFIG=/nowhere -DCMAKE_CXX_COMPILER=/nowhere -DCMAKE_INSTALL_LIBDIR=$libdir
    expect 0 '' cmake --build own
    expect 0 '' cmake --install own --prefix "$work/prefix"
    "$tilec" build "$source_directory/stdlib/softmax.tile" --export 'softmax[f32]' -o softmax.o --header softmax.h
    cat >main.c <<'TEXT'
#include <stdio.h>
#include "softmax.h"
int main(void) {
    float x[4] = {1, 1, 1, 1}, y[4];
    int64_t shape[2] = {1, 4};
    DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = tx;
    ty.data = y;
    if (softmax_f32(NULL, &tx, &ty) != TILE_OK) return 1;
    printf("%g\n", y[3]);
    return 0;
}
TEXT
    PKG_CONFIG_PATH=$work/prefix/$libdir/pkgconfig
    export PKG_CONFIG_PATH
    if command -v pkg-config >/dev/null; then
        # shellcheck disable=SC2046
        expect 0 '' "$cc" main.c softmax.o $(pkg-config --cflags --libs tile_launch) -o main
        expect 0 '0.25' env -u LD_LIBRARY_PATH ./main
    else
        echo "skipped: pkg-config is not installed"
    fi
    [ -e "$work/prefix/$libdir/pkgconfig/tile.pc" ] && complain "there is no libtile, but tile.pc is installed"
    rm -rf prefix
done

if command -v aarch64-linux-gnu-gcc >/dev/null; then
    configure cross -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc
    expect 0 '' cmake --build cross
    expect 0 'AArch64' aarch64-linux-gnu-readelf -h cross/lib/libtile_launch.so.0
else
    echo "skipped: there is no cross compiler for AArch64"
fi
finish
