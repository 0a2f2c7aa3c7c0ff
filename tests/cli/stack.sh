# Programs whose stack is small: `ulimit -s` of 64 KiB.
. "$(dirname "$0")/../cli_common.sh"
cd "$work" || exit 1
cat >k.tile <<'TEXT'
kernel k(x: in f32[M, N], y: out f32[M, N]) {
    grid (m, n) in (tiles(M, 4), tiles(N, 64)) { y[m, n] = x[m, n] + 1 }
}
test "adds" { assert(all(run k(x = zeros(f32, 5, 7)) == 1)) }
TEXT
small() { (ulimit -s 64 && exec "$@"); }
expect 0 'bit for bit' small "$tilec" run k.tile x=rand:f32[4,8] y=@ --check
expect 0 'y: f32[2000, 2000]' small env TILE_NUM_THREADS=4 "$tilec" run k.tile x=rand:f32[2000,2000] y=@ --repeat=3
expect 0 'y: f32[40, 80]' small env TILE_ON_MISS=background "$tilec" run k.tile x=rand:f32[40,80] y=@ --repeat=9
expect 0 'y: f32[4, 8]' small "$tilec" run k.tile x=rand:f32[4,8] y=@ --target=sm_80 --emulate
expect 0 '0 failed' small "$tilec" test k.tile
expect 0 'k for sm_80' small "$tilec" explain k.tile x=zeros:f32[4,8] y=@ --target=sm_80
expect 0 '' small "$tilec" check "$stdlib/attention.tile"
expect 1 'error' small "$tilec" check "$source_directory/tests/errors/recovery.tile"
expect 0 '' small "$tilec" build k.tile --export k --target=avx2 -o k.o
expect 0 'measured' small "$tilec" tune "$stdlib/softmax.tile:softmax" x=rand:f32[8,100] y=@ --file=t.txt --seconds=1
# A stack that no memory is left for.
if [ -z "${TILE_LINK_FLAGS:-}" ]; then
    limited() { (ulimit -s 64 && ulimit -v "$1" && shift && exec "$@"); }
    for kilobytes in 300000 200000 150000 100000 90000 80000 75000 70000 65000; do
        # Where it does not even start, the loader or the constructors of a library found no memory.
        limited $kilobytes "$tilec" --version >"$work/output" 2>&1 || continue
        checks=$((checks + 1))
        limited $kilobytes "$tilec" check k.tile >"$work/output" 2>&1
        got=$?
        case $got in 0 | 2 | 126 | 127) ;; *) complain "status $got with $kilobytes kB" ;; esac
        [ $got != 2 ] || grep -q 'out of memory' "$work/output" || complain "no words with $kilobytes kB"
        [ $got != 2 ] || said=yes
    done
    [ "${said:-}" = yes ] || echo "no limit left room for the program but not for its stack"
fi
finish
