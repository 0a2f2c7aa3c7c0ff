#!/bin/sh
# The disk cache of compiled code, and tilec cache.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2
export TILE_CACHE_DIR="$work/cache"
files() { ls "$work/cache" | grep -c 'tilecode$'; }

expect 0 '0 files' "$tilec" cache ls
expect 0 'equal to the reference' "$tilec" run "$stdlib/softmax.tile:softmax" x=rand:f32[4,132] y=@ --check
expect 0 '2 files,' "$tilec" cache ls
expect 0 ', what its code asks' "$tilec" cache
expect 0 'equal to the reference' "$tilec" run "$stdlib/softmax.tile:softmax" x=rand:f32[12,132] y=@ --check
expect 0 '2 files,' "$tilec" cache ls
expect 0 'equal to the reference' "$tilec" run "$stdlib/softmax.tile:softmax" x=rand:f16[12,132] y=@ --check
expect 0 '4 files,' "$tilec" cache ls

# Shapes and strides that do not differ in any fact that the code asked for share their code, also in another process.
printf 'kernel two(x: in f32[M, N], y: out f32[M, N]) { grid (m, n) in (tiles(M, 4), tiles(N, 64)) { y[m, n] = 2 * x[m, n] } }\n' >two.tile
expect 0 '6 files,' sh -c '"$1" run two.tile x=rand:f32[8,64] y=@ --check && "$1" cache ls' - "$tilec"
for shape in 8,128 4,192 48,640; do
    expect 0 'equal to the reference' "$tilec" run two.tile "x=rand:f32[$shape]" y=@ --check
done
expect 0 '6 files,' "$tilec" cache ls
expect 0 'equal to the reference' "$tilec" run "$stdlib/softmax.tile:softmax" x=rand:f16[7,33] y=@ --check --target=avx2 BM=1
expect 0 '0 damaged' "$tilec" cache verify

# Comments do not change the key, except in debug builds, where assertions have locations.
printf 'kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = x[n] + 1 } }\n' >k.tile
expect 0 'y: f32[2] = 1 2' "$tilec" run k.tile x=arange:f32[2] y=@
before=$(files)
printf '// a comment\n\nkernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = x[n] + 1 } }\n' >k.tile
expect 0 'y: f32[2] = 1 2' "$tilec" run k.tile x=arange:f32[2] y=@
expect 0 "$before files," "$tilec" cache ls
printf 'kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = x[n] + 2 } }\n' >k.tile
expect 0 'y: f32[2] = 2 3' "$tilec" run k.tile x=arange:f32[2] y=@
expect 0 "$((before + 2)) files," "$tilec" cache ls

# Entries that are damaged, truncated, or stored under another name: compiled again, with correct results.
for damage in flip cut swap empty; do
    for file in "$work"/cache/*.tilecode; do
        case $damage in
        flip) printf 'X' | dd of="$file" bs=1 seek=400 conv=notrunc 2>/dev/null ;;
        cut) head -c 300 "$file" >cut && cat cut >"$file" ;;
        swap) [ -z "${last:-}" ] || cp "$last" "$file"; last=$file ;;
        empty) : >"$file" ;;
        esac
    done
    expect 0 'y: f32[2] = 2 3' "$tilec" run k.tile x=arange:f32[2] y=@
    expect 0 'equal to the reference' "$tilec" run "$stdlib/softmax.tile:softmax" x=rand:f32[7,33] y=@ --check
    expect 0 'damaged' "$tilec" cache verify
    expect 0 ': 0 damaged' "$tilec" cache verify
done

# A folder that others can access, one that is not writable, none.
chmod 777 "$work/cache"
expect 0 'there is no cache' "$tilec" cache ls
chmod 700 "$work/cache"
expect 0 'y: f32[2] = 2 3' env TILE_CACHE_DIR=/dev/null/cache "$tilec" run k.tile x=arange:f32[2] y=@
expect 0 'y: f32[2] = 2 3' env TILE_CACHE_DIR= "$tilec" run k.tile x=arange:f32[2] y=@
expect 0 'there is no cache' env TILE_CACHE_DIR= "$tilec" cache ls
expect 0 'y: f32[2] = 2 3' env TILE_CACHE_BYTES=1000 "$tilec" run k.tile x=arange:f32[2] y=@ --target=avx2
expect 0 'files removed' "$tilec" cache clear
expect 0 '0 files' "$tilec" cache ls
expect 1 "'all' is not one of ls, clear, verify" "$tilec" cache all
finish
