# Shared kernel libraries in hosts that link nothing of Tile: opened, launched from and closed, many times, by any thread,
# beside fork and the end of the process.
. "$(dirname "$0")/../cli_common.sh"
cc=${CC:-cc}
flags=${TILE_LINK_FLAGS:-}
cd "$work" || exit 1
cp -P "$TILE_BINARY_DIR"/lib/libtile_launch.so* .
LD_LIBRARY_PATH=$work
TILE_NUM_THREADS=4
export LD_LIBRARY_PATH TILE_NUM_THREADS

cat >scale.tile <<'TEXT'
kernel scale(x: in f32[M, N], y: out f32[M, N], by: f32) {
    grid (m, n) in (tiles(M, 4), tiles(N, 64)) { y[m, n] = by * x[m, n] }
}
TEXT
cat >sums.tile <<'TEXT'
kernel sums(x: in f32[M, N], y: out f32[M, N], by: f32) {
    temp total: f32[M]
    grid m in tiles(M, 4) {
        var all = zeros[4](f32)
        for n in tiles(N, 64) { all = all + sum(x[m, n], axis = 1) }
        total[m] = all
    }
    grid (m, n) in (tiles(M, 4), tiles(N, 64)) { y[m, n] = x[m, n] + by * total[m][:, _] }
}
TEXT
expect 0 '' "$tilec" build scale.tile --export 'scale as apply' --target=avx2 -shared -o scale.so
expect 0 '' "$tilec" build sums.tile --export 'sums as apply' --target=avx2 -shared -o sums.so
"$tilec" backends | grep -q '^ *avx2 .*lacks' && { echo "skipped: this CPU has no AVX2"; exit 0; }

expect 0 '' $cc -std=gnu17 -O1 -Wall -Werror -I"$source_directory/include" "$source_directory/tests/closing/host.c" $flags -o host
# Sanitizers keep freed memory, report memory of the parent's threads in a forked child as a leak, and do not support being
# loaded when the process exits; they detect uses after free.
ways='cycles threads thread_ends_later fork exit_while_closing exit_while_launching'
[ -z "$flags" ] || ways='threads thread_ends_later exit_while_launching'
# At exit, memory that running threads hold is not a leak.
[ -z "$flags" ] || export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
for way in $ways; do
    for run in 1 2 3; do expect 0 'all is well' ./host "$way" ./scale.so ./sums.so; done
done
# A pool of one thread starts none, and is kept nevertheless.
[ -n "$flags" ] || TILE_NUM_THREADS=1 expect 0 'all is well' ./host cycles ./scale.so ./sums.so

# ---- a plugin with the launcher's archive in it ----
if [ -n "$flags" ]; then
    finish
    exit
fi
"$tilec" build scale.tile --export 'scale as apply' --target=avx2 -o scale.o
expect 0 '' $cc -shared -fPIC -o whole.so scale.o -Wl,-z,defs "$TILE_BINARY_DIR/lib/libtile_launch.a" -lm
LD_LIBRARY_PATH= expect 0 'all is well' ./host cycles ./whole.so
finish
