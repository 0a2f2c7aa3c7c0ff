#!/bin/sh
# tilec bench: counts, comparisons, plots. Times are not checked.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2
export TILE_NUM_THREADS=2

# bench ARGUMENTS..: a short measurement; its JSON is in $work/made.json.
bench() {
    checks=$((checks + 1))
    "$tilec" bench "$@" --seconds=0.02 --format=json >made.json 2>"$work/output" || complain "tilec bench $*"
}
# holds 'PYTHON': the expression is true of the JSON, with `made` the whole and `first` the results of the first size.
holds() {
    checks=$((checks + 1))
    python3 -c "
import json, sys
made = json.load(open('made.json'))
first = made['sizes'][0]['results']
sys.exit(not ($1))" >"$work/output" 2>&1 || { cat made.json >>"$work/output"; complain "not so: $1"; }
}
numbers='all(r[k] > 0 for s in made["sizes"] for r in s["results"] for k in ("seconds", "bytes_per_second", "time_ratio"))'

# Traffic: every element once, twice where it is updated in place, once where a broadcast repeats it.
bench "$stdlib/softmax.tile:softmax" x=rand:f32[5,1000] y=@
holds 'len(first) == 1 and first[0]["bytes"] == 2 * 5 * 1000 * 4 and first[0]["flops"] == 0'
holds "$numbers and first[0]['limit'] == 'copy' and made['sizes'][0]['copy_bytes_per_second'] > 0"
holds 'made["threads"] == 2 and made["swept"] is None and first[0]["share_of_limit"] > 0'
bench "$stdlib/elementwise.tile:axpy" x=rand:f32[700] y=rand:f32[700] a=2
holds 'first[0]["bytes"] == 3 * 700 * 4'
python3 -c '
import struct
open("b.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) +
    b"{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: (32,), }".ljust(117) + b"\n" + bytes(128))'
bench "$stdlib/elementwise.tile:add" 'x=b.npy*[64,:]' y=rand:f32[64,32] z=@
holds 'first[0]["bytes"] == (32 + 2 * 64 * 32) * 4'

# Dots with lanes that exist only, for sizes that tiles do not divide; over all programs and loops, also triangular ones.
for sizes in '129 257 511' '1 1 1' '112 512 256' '113 513 257' '0 4 4'; do
    set -- $sizes
    bench "$stdlib/matmul.tile:matmul" "a=rand:f32[$1,$2]" "b=rand:f32[$2,$3]" c=@:f32
    holds "first[0]['flops'] == 2 * $1 * $2 * $3"
done
bench "$stdlib/matmul.tile:matmul_tn" a=rand:bf16[65,33] b=rand:bf16[65,70] c=@:bf16
holds "first[0]['flops'] == 2 * 65 * 33 * 70"
bench "$stdlib/attention.tile:attention" q=rand:f32[2,3,70,8] k=rand:f32[2,1,90,8] v=rand:f32[2,1,90,8] o=@ scale=0.3 \
    causal=false
holds "first[0]['flops'] == 2 * 2 * 3 * 2 * 70 * 90 * 8"
# Causal: blocks of 64 queries attend to the keys up to their last one; the last key belongs to the last query.
bench "$stdlib/attention.tile:attention" q=rand:f32[1,1,70,8] k=rand:f32[1,1,90,8] v=rand:f32[1,1,90,8] o=@ scale=0.3 \
    causal=true
holds "first[0]['flops'] == 2 * 2 * 8 * (64 * (64 + 20) + 6 * 90)"
# Counts that depend on data are not guessed.
bench "$stdlib/attention.tile:attention_varlen" q=rand:f32[8,1,8] k=rand:f32[8,1,8] v=rand:f32[8,1,8] o=@ \
    'cu_q=randint:i32[2](0,1)' 'cu_k=randint:i32[2](0,1)' longest=1 scale=1 causal=false
holds "first[0]['flops'] is None"

# Against another target, and another kernel on the same arguments.
bench "$stdlib/reduce.tile:sum_rows" x=rand:f32[9,100] y=@ --against=interp
holds "$numbers"' and [r["name"] for r in first] == ["cpu", "interp"]'
bench "$stdlib/softmax.tile:softmax" x=rand:f32[9,100] y=@ "--against=$stdlib/softmax.tile:softmax_passes"
holds "$numbers and len(made['kernels']) == 2 and made['kernels'][1].startswith('softmax_passes')"

# Sizes and settings, one of them swept.
bench "$stdlib/matmul.tile:matmul" a=rand:f32[M,K] b=rand:f32[K,N] c=@:f32 M=3 K=5,70 N=4 --plot=sizes.svg
holds 'made["swept"] == "K" and [s["value"] for s in made["sizes"]] == ["5", "70"]'
holds '[s["results"][0]["flops"] for s in made["sizes"]] == [2 * 3 * 5 * 4, 2 * 3 * 70 * 4]'
bench "$stdlib/matmul.tile:matmul" a=rand:f32[64,64] b=rand:f32[64,64] c=@:f32 BK=256,512
holds 'made["swept"] == "BK" and all(s["results"][0]["flops"] == 2 * 64 ** 3 for s in made["sizes"])'
bench "$stdlib/softmax.tile:softmax" x=rand:f32[N,10] y=@ N=1,4096 --plot=rates.svg --against=avx2
cp rates.svg old.svg
bench "$stdlib/softmax.tile:softmax" x=rand:f32[0,10] y=@ --plot=empty.svg
for file in sizes.svg rates.svg empty.svg; do
    expect 0 '' python3 -c "
import sys, xml.dom.minidom as xml
text = open('$file').read()
page = xml.parseString(text).documentElement
assert 'nan' not in text and 'inf' not in text
height, width = float(page.getAttribute('height')), float(page.getAttribute('width'))
for circle in page.getElementsByTagName('circle'):
    assert 0 <= float(circle.getAttribute('cx')) <= width and 0 <= float(circle.getAttribute('cy')) <= height
words = [text.firstChild.data for text in page.getElementsByTagName('text')]
assert ('Roofline' in words) == ('$file' == 'sizes.svg'), words
assert ('Sizes' in words) == ('$file' != 'empty.svg'), words"
done

# Output for people.
expect 0 'of copying' "$tilec" bench "$stdlib/softmax.tile:softmax" x=rand:f32[9,100] y=@ --seconds=0.01
expect 0 'GFLOP/s' "$tilec" bench "$stdlib/matmul.tile:matmul" a=ones:f32[8,8] b=ones:f32[8,8] c=@:f32 --seconds=0.01

# Files of arguments stay as they are.
cp b.npy before.npy
expect 0 '' "$tilec" bench "$stdlib/elementwise.tile:axpy" x=b.npy y=b.npy a=1 --seconds=0.01
expect 0 '' cmp b.npy before.npy
expect 0 '' "$tilec" bench "$stdlib/softmax.tile:softmax" x=rand:f32[9,10] y=never.npy --seconds=0.01
absent "$work/never.npy"

# Errors.
softmax=$stdlib/softmax.tile:softmax
expect 1 'no file' "$tilec" bench
expect 1 'sweep one' "$tilec" bench "$softmax" x=rand:f32[N,M] y=@ N=1,2 M=3,4
expect 1 "no parameter and no setting is called 'M'" "$tilec" bench "$softmax" x=rand:f32[N,4] y=@ N=1 M=3
expect 1 'x: ' "$tilec" bench "$softmax" x=rand:f32[N,4] y=@
expect 1 '--seconds needs' "$tilec" bench "$softmax" x=rand:f32[4,4] y=@ --seconds=0
expect 1 '--format takes one of text|json' "$tilec" bench "$softmax" x=rand:f32[4,4] y=@ --format=xml
expect 1 'is it --against' "$tilec" bench "$softmax" x=rand:f32[4,4] y=@ --agains=avx2
expect 1 "no value for 'y'" "$tilec" bench "$softmax" x=rand:f32[4,4]
expect 2 'missing.tile' "$tilec" bench "$softmax" x=rand:f32[4,4] y=@ --against=missing.tile:k
expect 2 '' "$tilec" bench "$softmax" x=rand:f32[4,4] y=@ --seconds=0.01 --plot=none/x.svg
finish
