#!/bin/sh
# Invalid input to tilec: a clear error with the documented exit status, and no partial output file.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2
softmax=$stdlib/softmax.tile:softmax
matmul=$stdlib/matmul.tile
"$tilec" run -q "$stdlib/elementwise.tile:map" x=randn:f32[4,100] y=good.npy || exit 1

# Files.
expect 2 'missing.tile' "$tilec" run missing.tile x=@
expect 2 'missing.npy' "$tilec" run "$softmax" x=missing.npy y=out.npy
absent out.npy
head -c 1000 good.npy >cut.npy
expect 2 'cut.npy' "$tilec" run "$softmax" x=cut.npy y=out.npy
absent out.npy
head -c 20 good.npy >header.npy
expect 2 'header.npy' "$tilec" run "$softmax" x=header.npy y=out.npy
: >empty.npy
expect 2 'empty.npy' "$tilec" run "$softmax" x=empty.npy y=out.npy
head -c 4096 /dev/urandom >noise.npy
expect 2 'noise.npy' "$tilec" run "$softmax" x=noise.npy y=out.npy
sed 's/(4, 100)/(9223372036854775807, 100)/' good.npy >huge.npy
expect 2 'huge.npy' "$tilec" run "$softmax" x=huge.npy y=out.npy
sed 's/(4, 100)/(4, 100000000000)/' good.npy >long.npy
expect 2 'long.npy' "$tilec" run "$softmax" x=long.npy y=out.npy
mkdir folder.npy
expect 2 'folder.npy' "$tilec" run "$softmax" x=folder.npy y=out.npy
absent out.npy

# Results that cannot be written.
expect 2 'nowhere/out.npy' "$tilec" run "$softmax" x=good.npy y=nowhere/out.npy
expect 2 'folder.npy' "$tilec" run "$softmax" x=good.npy y=folder.npy
mkdir full
expect 2 'full/out.npy' sh -c 'ulimit -f 1; exec "$@"' sh "$tilec" run "$softmax" x=good.npy y=full/out.npy
absent full/out.npy
printf 'old' >full/kept.npy
expect 2 'full/kept.npy' sh -c 'ulimit -f 1; exec "$@"' sh "$tilec" run "$softmax" x=good.npy y=full/kept.npy
expect 0 'old' cat full/kept.npy
printf 'old' >locked.npy
chmod 444 locked.npy
if [ ! -w locked.npy ]; then # root may write everything
    expect 2 'locked.npy' "$tilec" run "$softmax" x=good.npy y=locked.npy
    expect 0 'old' cat locked.npy
fi
if [ -w /dev/full ]; then
    expect 2 'o' sh -c 'exec "$@" >/dev/full' sh "$tilec" run "$softmax" x=good.npy y=@
fi

printf 'kernel k(x: in f32[N, M], y: out f32[N, M], z: out f32[N, M]) {\n' >two.tile
printf '    grid (n, m) in (tiles(N, 8), tiles(M, 8)) {\n        y[n, m] = x[n, m]\n        z[n, m] = -x[n, m]\n    }\n}\n' >>two.tile
expect 1 'y and z are both written to' "$tilec" run two.tile x=good.npy y=both.npy z=both.npy
absent both.npy

# Errors that exist only for the types and static values of a launch: complete, also as JSON.
cat >narrow.tile <<'TEXT'
kernel narrow[T: float](x: in T[M, D], y: out T[M, D])
    static D
    require M % D != 0, "odd"
{
    static_assert(D % 4 == 0, "rows of four")
    grid m in tiles(M, 4) { y[m, :] = x[m, :] / 2 }
}
TEXT
expect 0 '' "$tilec" check narrow.tile
expect 1 'narrow.tile:5:19: error: the assertion does not hold: rows of four [assertion-failed]' \
    "$tilec" run narrow.tile x=ones:f16[3,7] y=out.npy
expect 1 'in the instance `narrow[T = f16, D = 7]`' "$tilec" run narrow.tile x=ones:f16[3,7] y=@
expect 1 'static_assert(D % 4 == 0, "rows of four")' "$tilec" run narrow.tile x=ones:f16[3,7] y=@
expect 1 '"code":"assertion-failed","file":"narrow.tile",' \
    "$tilec" run narrow.tile x=ones:f16[3,7] y=@ --error-format=json
"$tilec" run narrow.tile x=ones:f16[3,7] y=@ --error-format=json 2>&1 | python3 -c '
import json, sys
(error,) = json.load(sys.stdin)
assert error["line"] == 5 and [n["message"] for n in error["notes"]][0] == "here D = 7", error' ||
    { failed=$((failed + 1)); echo "FAIL the JSON of an error at launch"; }
expect 1 'tilec: error: narrow: requires M % D != 0 where D = 4: odd, but M = 8' \
    "$tilec" run narrow.tile x=ones:f32[8,4] y=out.npy
expect 1 '[{"severity":"error","message":"narrow: requires M % D != 0 where D = 4: odd, but M = 8' \
    "$tilec" run narrow.tile x=ones:f32[8,4] y=@ --error-format=json
absent out.npy

# Types, shapes, arguments.
expect 1 'x' "$tilec" run "$softmax" x=arange:i32[4,100] y=@
expect 1 '(x: in T[M, N], y: out T[M, N])' "$tilec" run "$softmax" x=arange:i32[4,100] y=@:f32[4,100]
expect 1 '(x: in T[M, N], y: out T[M, N])' "$tilec" run "$softmax" x=good.npy y=@ z=3
expect 1 'a type such as f32' "$tilec" run "$softmax" x=good.npy y=@ T=f33
expect 1 '"message":"no value for ' "$tilec" run "$softmax" x=good.npy --error-format=json
expect 1 'f64' "$tilec" run "$softmax" x=good.npy y=@ T=f64
expect 1 'x' "$tilec" run "$softmax" x=zeros:f32[4] y=@
expect 1 'K' "$tilec" run "$matmul" a=zeros:f32[4,5] b=zeros:f32[6,7] c=@
expect 1 'N' "$tilec" run "$softmax" x=good.npy y=@:f32[4,99]
expect 1 "y" "$tilec" run "$softmax" x=good.npy
expect 1 'z' "$tilec" run "$softmax" x=good.npy y=@ z=good.npy
expect 1 'good.npy' "$tilec" run "$softmax" x=good.npy:f64 y=@
expect 1 'kernel' "$tilec" run "$stdlib/softmax.tile" x=good.npy y=@
expect 1 'nonesuch' "$tilec" run "$stdlib/softmax.tile:nonesuch" x=good.npy y=@
expect 1 'BM' "$tilec" run "$softmax" x=good.npy y=@ BM=0
expect 1 'f' "$tilec" run "$stdlib/elementwise.tile:map" x=good.npy y=@ f=nonesuch
expect 1 'a row has elements' "$tilec" run "$stdlib/softmax.tile:softmax_row" x=zeros:f32[3,0] y=@
expect 1 'y' "$tilec" run "$stdlib/elementwise.tile:axpy" 'x=ones:f32[5]' 'y=ones:f32[1]*[5]' a=1
expect 1 'target' "$tilec" run "$softmax" x=good.npy y=@ --target=z80
expect 1 "tilec: error: no parameter and no setting is called 'q'; the kernel is" "$tilec" run "$softmax" x=good.npy y=@ q=3
expect 1 'softmax[' "$tilec" run "$softmax" x=good.npy y=@ q=3
expect 1 "no parameter and no setting is called 'q'" "$tilec" run "$softmax" x=good.npy y=@ const.q=3
expect 1 '--frobnicate' "$tilec" run "$softmax" x=good.npy y=@ --frobnicate
expect 1 '--target needs a value' "$tilec" run "$softmax" x=good.npy y=@ --target
expect 1 '--seed' "$tilec" run "$softmax" x=good.npy y=@ --seed=99999999999999999999
expect 1 'frobnicate' "$tilec" frobnicate
expect 1 '' "$tilec"

# Sources that are no kernels.
head -c 5000 /dev/urandom >noise.tile
expect 1 'error' "$tilec" check noise.tile
{ echo 'fn f(x: f32) -> f32 { return '; head -c 200000 /dev/zero | tr '\0' '('; } >nested.tile
expect 1 'error' "$tilec" check nested.tile
{ echo 'fn f(x: f32) -> f32 { return 0'; yes '-' | head -n 100000 | tr -d '\n'; echo 'x }'; } >minus.tile
expect 1 'error' "$tilec" check minus.tile
head -c 100000 /dev/zero | tr '\0' 'q' >name.tile
expect 1 'qqq...' "$tilec" check name.tile
printf 'kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 8) { y[n] = z[n] } }\n' >unknown.tile
expect 1 "unknown.tile:1:" "$tilec" check unknown.tile
expect 1 '"line"' "$tilec" check --error-format=json unknown.tile

# Long texts are checked by several threads; the messages do not depend on that.
# One thread and four say the same of a file, with the text in it.
expect_same_of_threads() {
    expect 1 "$1" env TILE_NUM_THREADS=1 "$tilec" check "$2"
    cp "$work/output" alone
    expect 1 "$1" env TILE_NUM_THREADS=4 "$tilec" check "$2"
    checks=$((checks + 1))
    cmp -s alone "$work/output" || complain "four threads say something else of $2 than one"
}

python3 "$source_directory/bench/long_text.py" many "$stdlib" 2500 >long.tile
expect 0 '' "$tilec" check long.tile
awk '{ print } /^ *let [a-z]+ = randn/ && ++n % 7 == 0 { print n % 2 ? "    let wrong = nothing + 1" : "    let spare = 3" }' \
    long.tile >wrong.tile
expect_same_of_threads 'nothing' wrong.tile
{ cat long.tile
  echo 'kernel whole[T: f16 | f32](x: in T[N], y: out T[N]) tune B in {8} {'
  echo '    static_assert(B % 8 == 0)'
  echo '    grid n in tiles(N, B) { y[n] = x[n] }'
  echo '}'
  echo 'export whole[f32], whole[f16] as whole_f16, whole[f32, B = 12] as odd'
} >exported.tile
expect_same_of_threads 'static_assert' exported.tile
# One kernel alone: its instances are shared. With a warning of each instance, and an error in the second alone.
{ python3 "$source_directory/bench/long_text.py" one 1500
  echo 'kernel narrow[T: f32 | i32](x: in T[N], y: out T[N]) { grid n in tiles(N, 8) { y[n] = exp(x[n]) } }'
} >kernels.tile
expect_same_of_threads 'exp' kernels.tile
finish
