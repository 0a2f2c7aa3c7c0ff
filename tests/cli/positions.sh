#!/bin/sh
# Convolutions whose rows are positions of all images, one after the other: emulated as sm_90a has them copied by tensor maps in mode im2col, or one by one where a map has no
# corners for them, beside the same on this CPU. Numbers are small integers, whose sums are exact, so that all bits agree.
set -eu
tilec="$TILE_BINARY_DIR/bin/tilec"
library="$TILE_SOURCE_DIR/stdlib/conv.tile"
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
failed=0

cat >"$here/turns.tile" <<'TEXT'
/// Programs that take turns, and windows around each position.
kernel turned[T: bf16](x: in T[B, H, W, C], wt: in T[R, S, C, O], y: out T[B, H, W, O])
    tune BM in {128}, BO in {64}, warps in {4, 8}, turns in {2}
{
    grid (m, o) in (tiles(B * H * W, BM), tiles(O, BO)) {
        let at = m.idx
        let (b, h, w) = (at / (H * W), at / W % H, at % W)
        var acc = zeros[BM, BO](f32)
        for i in 0..R {
            for j in 0..S {
                for c in tiles(C, 64) { acc = dot((x[b, h + i - 1, w + j - 1, c] else 0), wt[i, j, c, o], acc) }
            }
        }
        y[b, h, w, o] = T(acc)
    }
}
TEXT

# numbers NAME SEED EXTENTS..: a file of bf16 with -2 .. 2
numbers() {
    python3 - "$here/$1.npy" "$2" "$3" <<'PY'
import random, struct, sys
path, seed, extents = sys.argv[1], int(sys.argv[2]), [int(n) for n in sys.argv[3].split(",")]
count, rng = 1, random.Random(seed)
for extent in extents: count *= extent
head = "{'descr': '<u2', 'fortran_order': False, 'shape': (%s,), }" % ", ".join(map(str, extents))
head += " " * (-(len(head) + 11) % 64) + "\n"
words = {-2: 0xc000, -1: 0xbf80, 0: 0, 1: 0x3f80, 2: 0x4000}
with open(path, "wb") as out:
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    out.write(struct.pack("<%dH" % count, *(words[rng.randint(-2, 2)] for _ in range(count))))
PY
}

# same WHAT KERNEL ARGUMENTS RESULT SETTINGS
same() {
    [ "$2" = turned ] && library="$here/turns.tile"
    for target in "--target=sm_90a --emulate" "--target=cpu"; do
        settings=$5
        [ "$target" = --target=cpu ] && settings=
        # shellcheck disable=SC2086
        "$tilec" run "$library:$2" $3 "${4%%=*}=$here/result.npy:bf16${4#*=}" $settings $target >"$here/said" 2>&1 || {
            echo "$1, $target: $(cat "$here/said")"
            failed=1
            return
        }
        mv "$here/result.npy" "$here/${target%% *}.npy"
    done
    cmp -s "$here/--target=sm_90a.npy" "$here/--target=cpu.npy" || {
        echo "$1: other results than on the CPU"
        failed=1
    }
}

# forward B H W C R S O P Q STRIDE DILATION PAD ROWS
forward() {
    numbers x 1 "$1,$2,$3,$4"
    numbers wt 2 "$5,$6,$4,$7"
    same "conv2d $*" conv2d "x=$here/x.npy:bf16 wt=$here/wt.npy:bf16 bias=zeros:f32[$7] stride=${10} dilation=${11} pad=${12}" "y=[$1,$8,$9,$7]" \
        "WINDOWS=1 BB=1 BP=0 BQ=${13} BO=64 BC=64"
}

# backward B H W C R S O DILATION PAD ROWS: as many positions as there are elements
backward() {
    numbers dy 3 "$1,$2,$3,$7"
    numbers wt 4 "$5,$6,$4,$7"
    same "conv2d_input_gradient $*" conv2d_input_gradient "dy=$here/dy.npy:bf16 wt=$here/wt.npy:bf16 stride=1 dilation=$8 pad=$9" "dx=[$1,$2,$3,$4]" \
        "BB=1 BH=0 BW=${10} BC=64 BO=64"
}

forward 3 7 7 16 3 3 16 7 7 1 1 1 64
forward 2 9 6 72 3 2 16 4 3 2 1 1 128 # steps of two
forward 2 5 7 16 2 3 8 3 9 1 2 3 64   # other numbers of positions than of elements
forward 1 3 300 16 1 2 8 3 300 1 1 0 256
forward 1 3 40 16 1 2 8 3 300 1 1 0 192 # more positions than corners can say
forward 1 3 300 16 1 2 8 3 40 1 1 0 64  # fewer
forward 2 3 12 16 1 3 8 3 12 1 100 90 64 # a window beyond what a map adds, on both sides
forward 1 2 260 16 1 2 8 2 260 1 1 -191 64 # the furthest offset, and the one behind it
backward 3 7 7 16 3 3 64 1 1 192
backward 5 3 5 8 2 3 72 1 1 128
backward 1 2 150 8 1 3 16 80 80 64 # offsets in front of the corner

numbers x 5 7,7,5,16
numbers wt 6 3,3,16,16
for warps in 4 8; do
    same "turned by $warps" turned "x=$here/x.npy:bf16 wt=$here/wt.npy:bf16" "y=[7,7,5,16]" "BM=128 BO=64 warps=$warps turns=2"
done

[ "$failed" = 0 ] && echo "positions: all bits are those of the CPU"
exit $failed
