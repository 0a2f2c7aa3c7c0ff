#!/bin/sh
# tilec explain: its output as text, as JSON, and as a drawing.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"

softmax=$stdlib/softmax.tile:softmax
cpu() { "$tilec" explain "$softmax" x=zeros:f32[4,1000] y=@ "$@"; }
expect 0 'softmax for avx512' cpu --target=avx512
expect 0 'x: the arguments offer: aligned to 64 bytes, dimension 1 contiguous, dimension 0 a multiple of 4, dimension 1 a multiple of 8; the code relies on: dimension 1 contiguous' \
    cpu --target=avx512
expect 0 'bytes of scratch memory a thread' cpu --target=avx2
expect 0 "loop of $stdlib/softmax.tile:" cpu --target=avx512
expect 0 'vectors of 16 f32 (1 registers of 64 bytes)' cpu --target=avx512
expect 0 'a multiple of' cpu --target=sve
expect 0 'elements along dimension 1 do not lie side by side, so they cannot be moved as vectors' \
    "$tilec" explain "$softmax" 'x=zeros:f32[4,1000].T' y=@ --target=avx2
expect 1 'nothing is decided' cpu --target=interp

# An assembler with ptxas's output.
cat >"$work/ptxas" <<'END'
#!/bin/sh
for word; do case $word in *.cubin) : >"$word" ;; esac; done
cat <<NOTES
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'softmax\$0' for 'sm_90a'
ptxas info    : Function properties for softmax\$0
    32 bytes stack frame, 60 bytes spill stores, 48 bytes spill loads
ptxas info    : Used 77 registers, used 1 barriers
NOTES
END
chmod +x "$work/ptxas"
gpu() { TILE_PTXAS=$work/ptxas cpu --target=sm_90a "$@"; }
expect 0 '128 threads a block, 32 bytes of shared memory; ptxas: 77 registers a thread, 60 bytes spilled' gpu
expect 0 '2 barriers: lines 19, 21' gpu
expect 0 '[1, 1024] register 1 2 512 lane 4 8 16 32 64 warp 128 256 block' gpu
expect 0 '8 elements of a tile in each thread, 4 side by side along the last axis' gpu
expect 0 'f32 v (line 18)' gpu
expect 0 'registers and spills are not known: TILE_PTXAS names' env TILE_PTXAS="$work/none" "$tilec" explain "$softmax" \
    x=zeros:f32[4,1000] y=@ --target=sm_80
expect 0 'gpu-short-rows: x has rows of at most one tile: no loop goes over it' gpu
expect 0 'the code relies on: aligned to 16 bytes, offsets below 2**31, rows of 1 to 1024 elements, dimension 1 contiguous' gpu
long() { TILE_PTXAS=$work/none "$tilec" explain "$softmax" x=zeros:f32[4,9000] y=@ BM=1 BN=1024 --target=sm_90a "$@"; }
expect 0 'line 18: the load of x is the last to leave the L2 cache (evict_last)' long
expect 0 'line 24: the load of x is the first to leave the L2 cache (evict_first)' long
once() { TILE_PTXAS=$work/none "$tilec" explain "$work/once.tile" x=zeros:f32[5,100] y=@ --target=sm_80 "$@"; }
cat >"$work/once.tile" <<'END'
kernel once(x: in f32[M, N], y: out f32[M, N])
    tune BN in {64}, stream in {0, 1}
{
    grid (m, n) in (M, tiles(N, BN)) { y[m, n] = 2 * x[m, n] }
}
END
expect 0 'line 4: the load of x leaves the L2 cache in the usual order (evict_normal)' once
expect 0 'line 4: the load of x is the first to leave the L2 cache (evict_first)' once stream=1
expect 0 'line 4: the store of y leaves the L2 cache in the usual order (evict_normal)' once stream=1
expect 0 'gpu-flatten: the grid goes through all elements as they lie in memory, not row by row: 64 elements for each program' once
expect 0 'the code relies on: aligned to 8 bytes, offsets below 2**31, dimension 1 contiguous, no gaps' once
expect 0 'gpu-flatten: the grid goes through tensors row by row, not through all elements as they lie in memory: x: it may have gaps between its rows' \
    env TILE_PTXAS="$work/none" "$tilec" explain "$work/once.tile" 'x=zeros:f32[100,5].T' y=@ --target=sm_80
moves() { TILE_PTXAS=$work/none "$tilec" explain "$stdlib/transpose.tile:transpose" x=zeros:f32[64,64] y=@ BM=64 BN=64 --target=sm_80 "$@"; }
expect 0 'through shared memory (16384 bytes; predicted bank conflicts:' moves

# What the model chooses for a GPU, and from what.
columns() {
    size=$1
    shift
    TILE_PTXAS=$work/none "$tilec" explain "$stdlib/reduce.tile:sum_columns" "x=zeros:f32[$size]" y=@ --target=sm_90a "$@"
}
expect 0 'points of the tune clauses, by predicted time:' columns 4096,256
grep -q 'split for [0-9]* programs, parts of [0-9]* or more: .*, chosen$' "$work/output" || complain "few columns of many rows are not split"
grep -q ', the text.s own$' "$work/output" || complain "the text's own constants are not among the candidates"
grep -q '(predicted)$' "$work/output" || complain "the constants are not said to be predicted"
expect 0 'gpu-split-grids: the loop is split into parts' columns 4096,256
columns 16,1048576 >"$work/output"
! grep -q 'split for [0-9]* programs: .*, chosen$' "$work/output" || complain "many columns of few rows are split"
rows() { TILE_PTXAS=$work/none "$tilec" explain "$stdlib/reduce.tile:sum_rows" "x=zeros:bf16[$1]" y=@ --target=sm_90a; }
expect 0 ' streaming: ' rows 16384,4096
grep -q 'evict_first' "$work/output" || complain "what is read once does not leave the cache first"
for size in 1024,4096 131072,4096; do # what fits into the cache, and much more than that
    rows $size >"$work/output"
    ! grep -q 'streaming\|evict_first' "$work/output" || complain "rows of $size leave the cache first"
done

# Loads of an iteration are under way while the one before computes, but not where a launch has more programs than are there at a time.
norms() {
    TILE_PTXAS=$work/none "$tilec" explain "$stdlib/norm.tile:group_norm" T=bf16 "x=zeros:bf16[$1]" "gamma=zeros:f32[$2]" "beta=zeros:f32[$2]" \
        y=@ groups=32 eps=0.1 --target=sm_90a
}
expect 0 ' busy: ' norms 32,512,4096 512
expect 0 'gpu-fetch: x is loaded in the iteration that takes it: while a program waits, others compute' norms 32,512,4096 512
expect 0 'gpu-fetch: x is loaded while the iteration before computes' norms 1,320,4096 320
# A launch whose programs are all there at a time has registers for that: ptxas takes more as it likes. Not where there are more programs than are there at a time, nor where it hardly could.
sums() { TILE_PTXAS=$work/none "$tilec" explain "$stdlib/reduce.tile:sum_columns" "x=zeros:$1" y=@ --target=sm_90a | grep chosen; }
expect 0 ' blocks of grid 0 at a time: ' sums 'bf16[16384,4096]'
# Of rows of 256 elements a program has a line, not half of one.
expect 0 'BN=64 split' sums 'bf16[65536,256]'
if norms 32,512,4096 512 | grep -q 'blocks of grid'; then complain "registers of a launch with many programs are bounded"; fi
# Other numbers of warps: more, where the rows of all blocks at a time are more than the L2 cache keeps until they are read again; fewer, where programs are small.
squares() {
    cat >"$work/squares.tile" <<'EOF'
kernel squares(v: in f32[M, N], w: out f32[M, N])
    tune BM in {1}, BN in {1024}
{
    grid m in tiles(M, BM) {
        var s = zeros[BM](f32)
        for n in tiles(N, BN) { s += sum(v[m, n] * v[m, n], axis = 1) }
        for n in tiles(N, BN) { w[m, n] = v[m, n] * rsqrt(s)[:, _] }
    }
}

kernel scaled(x: in f32[B, C, H, W], m: in f32[C], v: in f32[C], a: in f32[C], b: in f32[C], y: out f32[B, C, H, W])
    tune BH in {8}, BW in {64}
{
    grid (n, c, h, w) in (B, C, tiles(H, BH), tiles(W, BW)) {
        let s = a[c] * rsqrt(v[c] + 1e-5)
        y[n, c, h, w] = max(x[n, c, h, w] * s + (b[c] - m[c] * s), 0)
    }
}
EOF
    kernel=$1
    shift
    TILE_PTXAS=$work/none "$tilec" explain "$work/squares.tile:$kernel" "$@" --target=sm_90a | grep -e chosen -e 'threads a block'
}
expect 0 'BN=1024 busy in 16 warps: ' squares squares 'v=zeros:f32[8192,10000]' w=@
expect 0 '512 threads a block' squares squares 'v=zeros:f32[8192,10000]' w=@
expect 0 'BN=1024 busy keeping rows: ' squares squares 'v=zeros:f32[8192,8192]' w=@
expect 0 'BN=1024: ' squares squares 'v=zeros:f32[8192,1024]' w=@
expect 0 'in 1 warp: ' squares scaled 'x=zeros:f32[32,256,56,56]' 'm=zeros:f32[256]' 'v=zeros:f32[256]' 'a=zeros:f32[256]' 'b=zeros:f32[256]' y=@
# Programs of which each takes one short row that data choose are computed together, and each thread loads vectors; those of few long rows are not.
taken() {
    TILE_PTXAS=$work/none "$tilec" explain "$stdlib/index.tile:take_rows" T=bf16 "x=zeros:bf16[$1]" "at=zeros:i64[${1%,*}]" "y=@:bf16[$1]" --target=sm_90a |
        grep -e chosen -e 'side by side'
}
expect 0 'BD=128 joined to ' taken 262144,128
expect 0 ' 8 side by side along the last axis' taken 262144,128
expect 0 'BD=1024: ' taken 64,4096
# Few programs with long rows are shared by the blocks of clusters; those that are many and load their rows again are not.
chosen_rows() { TILE_PTXAS=$work/none "$tilec" explain "$@" --target=sm_90a | grep chosen; }
expect 0 ' in clusters of ' chosen_rows "$stdlib/norm.tile:rmsnorm" 'x=zeros:f32[32,65536]' 'gamma=zeros:f32[65536]' y=@ eps=1e-05
expect 0 ' in clusters of ' chosen_rows "$stdlib/reduce.tile:mean_rows" 'x=zeros:bf16[32,65536]' y=@
apart() { chosen_rows "$@" | grep -v clusters; }
# Nor are those whose rows of 16 bits begin anywhere. Rows of 256 elements are one tile of as many, though most of so small a launch is not the program.
expect 0 'split for' apart "$stdlib/reduce.tile:sum_columns" 'x=zeros:bf16[1021,1037]' y=@
# Elements of rows that begin anywhere do not wait for one another, so that tiles need not be rows.
expect 0 'BM=4 BN=256' chosen_rows "$stdlib/norm.tile:rmsnorm" 'x=zeros:bf16[4093,1037]' 'gamma=zeros:f32[1037]' y=@ eps=1e-05
expect 0 'BM=1 BN=256' chosen_rows "$stdlib/softmax.tile:softmax" 'x=zeros:f32[64,256]' y=@
expect 0 'BM=1 BN=1024 warps=0' chosen_rows "$stdlib/reduce.tile:sum_rows" 'x=zeros:bf16[64,1024]' y=@
expect 0 chosen apart "$stdlib/reduce.tile:mean_rows" 'x=zeros:bf16[1024,65536]' y=@
# Columns, of which a program has a part of each line: as many as it can have.
expect 0 'BP=16 ' chosen_rows "$stdlib/fourier.tile:fft_long" inverse=false 're=zeros:f32[64,256,256]' 'im=zeros:f32[64,256,256]' re_out=@ im_out=@
# Of windows along one axis their bounds along that one are asked for; rows of channels are whole lines then.
expect 0 'BQ=32 BC=64' chosen_rows "$stdlib/conv.tile:conv1d_depthwise" 'x=zeros:bf16[8,8192,1024]' 'wt=zeros:bf16[4,1024]' 'bias=zeros:f32[1024]' "y=$work/y.npy:bf16[8,8189,1024]" stride=1 dilation=1 pad=0
# Small integers that decide bounds are known to the code that is looked at: it has the loads of a window together.
pooled() { chosen_rows "$stdlib/pool.tile:max_pool2d" 'x=zeros:f32[1,112,112,64]' 'y=@:f32[1,56,56,64]' "window=$1" stride=2 pad=1; }
expect 0 'BQ=4 BC=32' pooled 3
# Programs that combine parts are known to be so many, and a thread goes through all parts of its elements where that gives it work enough.
combined() {
    TILE_PTXAS=$work/none "$tilec" explain "$stdlib/matmul.tile:matmul" T=f32 U=f32 'a=zeros:f32[2000,3000]' 'b=zeros:f32[3000,1000]' 'c=@:f32[2000,1000]' \
        --target=sm_90a
}
expect 0 ', parts of 128 or more: ' combined
awk '/^grid /{ last = "" } { last = last $0 "\n" } END { printf "%s", last }' "$work/output" | grep -q '^  0 barriers' || complain "threads that combine few parts of many programs exchange something"
TILE_TUNING=off columns 4096,256 >"$work/output"
! grep -q 'predicted' "$work/output" || complain "TILE_TUNING=off leaves a choice to the model"

# An integer that bounds a grid is among the sizes: what is predicted are the programs of that many tiles. One that bounds nothing is not.
packed() {
    TILE_PTXAS=$work/none "$tilec" explain "$stdlib/attention.tile:attention_varlen" T=bf16 'q=zeros:bf16[4096,32,128]' 'k=zeros:bf16[4096,8,128]' \
        'v=zeros:bf16[4096,8,128]' 'cu_q=zeros:i32[2]' 'cu_k=zeros:i32[2]' o=@ "longest=$1" scale=0.1 causal=false --target=sm_90a |
        sed -n 's/.*; \([0-9]* programs\),.*chosen$/\1/p'
}
[ "$(packed 4096)" = '1024 programs' ] || complain "4096 queries of 32 heads are $(packed 4096)"
[ "$(packed 128)" = '64 programs' ] || complain "128 queries of 32 heads are $(packed 128)"

# A block has 232,448 bytes of shared memory. What the model would take needs more, which only its machine form says.
wide() {
    "$tilec" explain "$stdlib/attention.tile:attention_scored" T=bf16 causal=false q=zeros:bf16[1,16,4096,576] \
        k=zeros:bf16[1,1,4096,576] v=zeros:bf16[1,1,4096,512] sink=zeros:f32[16] 'o=@:bf16[1,16,4096,512]' scale=0.04 \
        --target=sm_90a "$@"
}
expect 0 '"kernel": "attention_scored"' wide --format=json
bytes=$(sed -n 's/.*"shared_bytes": \([0-9]*\).*/\1/p' "$work/output" | head -1)
[ "${bytes:-999999}" -le 232448 ] || complain "the chosen point needs ${bytes:-unknown} bytes of shared memory"
# Extents of a result that only the launcher computes: the code is made while it infers them.
cat >"$work/twice.tile" <<'END'
kernel twice(x: in f32[N], y: out f32[2 * N]) {
    grid n in tiles(N, 64) {
        y[n * 2] = x[n]
        y[n * 2 + 1] = x[n]
    }
}
END
expect 0 'y is moved together with the elements between those of another access' \
    "$tilec" explain "$work/twice.tile" x=zeros:f32[100] y=@ --target=sm_80
expect 0 'BM = 4, BN = 8 (set)' "$tilec" explain "$stdlib/transpose.tile:transpose" x=zeros:f32[64,64] y=@ BM=4 BN=8 --target=sm_80

if command -v python3 >/dev/null; then
    columns 4096,256 --format=json >"$work/columns.json"
    gpu --format=json >"$work/gpu.json"
    moves --format=json >"$work/moves.json"
    cpu --target=avx2 --format=json >"$work/cpu.json"
    once stream=1 --format=json >"$work/once.json"
    gpu --svg="$work/layouts.svg" >/dev/null
    expect 0 '' python3 - "$work" <<'END'
import json, sys
import xml.etree.ElementTree as tree
folder = sys.argv[1]
gpu, moves, cpu, once, columns = (json.load(open(f'{folder}/{name}.json'))
                                  for name in ('gpu', 'moves', 'cpu', 'once', 'columns'))
fit = [candidate for candidate in columns['candidates'] if 'time' in candidate]
chosen, = (candidate for candidate in fit if candidate['chosen'])
assert chosen['least_programs'] and chosen['time'] == min(candidate['time'] for candidate in fit if candidate['least_programs'] <= chosen['least_programs'] and not candidate['cluster'] and not candidate['warps']), chosen
assert chosen['values'] == [constant['value'] for constant in columns['constants']]
grid, = gpu['grids']
assert grid['assembly'] == {'registers': 77, 'stack_bytes': 32, 'spilled_bytes': 60}
assert len(grid['barriers']) == 2 and grid['threads'] == 128 and not grid['moves']
assert gpu['tensors'][0]['used'] == {'alignment': 16, 'strides': ['any', 'contiguous'], 'multiples': [1, 4],
                                    'dense': 0, 'most': 1024, 'narrow': True, 'own_memory': False, 'map': False}
assert once['tensors'][0]['used']['dense'] == 0 and once['tensors'][0]['used']['most'] == 0
assert {'name': 'v', 'type': 'f32', 'line': 18} in sum((layout['tiles'] for layout in grid['layouts']), [])
grid, = moves['grids']
assert grid['assembly'] is None and 'TILE_PTXAS' in moves['assembly_unknown']
move, = grid['moves']
assert move['shared_bytes'] == 64 * 64 * 4 and move['store_conflicts'] >= 1 and move['load_conflicts'] >= 1
grid, = cpu['grids']
assert grid['loops'] and all(loop['lanes'] % 8 == 0 for loop in grid['loops']) and grid['threads'] == 0
assert once['grids'][0]['accesses'] == [{'line': 4, 'access': 'load', 'tensor': 'x', 'l2': 'evict_first'},
                                        {'line': 4, 'access': 'store', 'tensor': 'y', 'l2': 'evict_normal'}]

# In the drawing each thread has its four neighbours: element e of [1, 1024] is thread e / 4 % 128's register e % 4.
svg = tree.parse(f'{folder}/layouts.svg').getroot()
cells = [text.text for text in svg.iter('{http://www.w3.org/2000/svg}text') if (text.text or '').startswith('t')]
wanted = [f't{e // 4 % 128} r{e % 4}' for e in range(64)]
assert any(cells[i:i + 64] == wanted for i in range(len(cells))), cells[:70]
banks = [int(text.text) for text in svg.iter('{http://www.w3.org/2000/svg}text') if text.get('class') == 'bank']
assert all(0 <= bank < 32 for bank in banks) and len(banks) == len(cells)
END
fi
# Orders of sums: as chosen by the pass that lowers them, not by the text.
cat >"$work/orders.tile" <<'TEXT'
kernel orders(a: in f16[M, K], b: in f16[K, N], c: out f32[M, N], row: out f32[M], down: out f32[M, N]) tune B in {16} {
    grid (m, n) in (tiles(M, B), tiles(N, B)) {
        var acc = zeros[B, B](f32)
        for k in tiles(K, B) { acc = dot(a[m, k], b[k, n], acc) }
        ordered for k in tiles(K, B) { acc = dot[ordered](a[m, k], b[k, n], acc) }
        c[m, n] = acc
        row[m] = sum(acc, axis = 1)
        down[m, n] = cumsum(acc, axis = 0)
    }
}
TEXT
orders() { "$tilec" explain "$work/orders.tile" a=ones:f16[32,32] b=ones:f16[32,32] c=@ row=@ down=@ "$@"; }
expect 0 'orders.tile:4: dot over the loop'"'"'s iterations: one after the other' orders --target=avx2
for line in '4: dot: one fma after the other' '5: dot: one fma after the other, as `ordered` says' \
    '5: dot over the loop'"'"'s iterations: one after the other, as `ordered` says' '7: sum along axis 1: 64 stripes, then halved' \
    '8: scan along axis 0: one after the other'; do
    grep -qF -e "orders.tile:$line" "$work/output" || complain "no '$line' among the orders of sums for CPUs"
done
expect 0 'orders.tile:4: dot: mma.m16n8k16 after the other, the 16 products of each at once' orders --target=sm_80
for line in '5: dot: one fma after the other, as `ordered` says' '7: sum along axis 1: 4 elements of a thread halved, 4 lanes'; do
    grep -qF -e "orders.tile:$line" "$work/output" || complain "no '$line' among the orders of sums for GPUs"
done
expect 0 '"sum": "sum along axis 1"' orders --target=avx2 --format=json
# What passes did, and what they declined, with reasons.
cat >"$work/declined.tile" <<'TEXT'
kernel declined(a: in f16[M, K], w: in i8[K, N], c: out f32[M, N]) tune B in {16} {
    grid (m, n) in (tiles(M, B), tiles(N, B)) {
        var acc = zeros[B, B](f32)
        for k in tiles(K, B) { acc = dot(a[m, k], f16(w[k, n]), acc) }
        c[m, n] = acc
    }
}
TEXT
declined() { "$tilec" explain "$work/declined.tile" a=ones:f16[32,32] w=ones:i8[32,24] c=@ --target=sm_80 "$@"; }
expect 0 'declined.tile:4: gpu-latencies: a is copied to shared memory while products of earlier iterations run: 3 iterations ahead' declined
expect 0 'gpu-latencies: w is not copied to shared memory ahead of the iteration that multiplies it: `convert` on its way' declined
expect 0 'declined.tile:4: gpu-schedule: the loop waits for its copies at the start of each iteration: ' declined
expect 0 '"decision": "not-copied-ahead", "done": false, "subject": "w"' declined --format=json
expect 1 '--svg draws the layouts of tiles on GPUs' cpu --target=avx2 --svg="$work/none.svg"
absent "$work/none.svg"
expect 1 '--format takes one of text|json' cpu --format=xml
expect 1 "no value for 'y'" "$tilec" explain "$softmax" x=zeros:f32[4,1000]
expect 1 'no file' "$tilec" explain

# A decision made before grids are outlined is reported with the first grid.
cat >"$work/rows.tile" <<'TEXT'
kernel rows(x: in f32[M, N], y: out f32[M, N], z: out f32[M], many: i64) require many > 0 {
    grid m in M {
        for n in tiles(N, 8) {
            let v = reshape(x[m, n] else 0, (4, 2))
            var total = v
            for j in 0..many { total = total + v }
            y[m, n] = reshape(total, 8)
        }
    }
    grid m in M { z[m] = 0 }
}
TEXT
rows() { "$tilec" explain "$work/rows.tile" x=zeros:f32[4,100] y=@ z=@ many=3 --target=avx2; }
expect 0 'many: decides strides, bounds or steps; a second launch with the same value has code compiled for it' rows
expect 0 'rows.tile:3: split-loops: the loop is not split into a loop over full blocks, without masks, and a rest: its body contains a loop' rows
sed -n '/^grid 0$/,/^grid 1$/p' "$work/output" | grep -q 'split-loops' || complain "split-loops' decision is not told with grid 0"
[ "$(grep -c 'split-loops' "$work/output")" = 1 ] || complain "split-loops' decision is told with other grids, too"

# Words of sums are exchanged where they are stored, not in each iteration of a loop around that of the products.
gradient() {
    "$tilec" explain "$stdlib/conv.tile:conv2d_weight_gradient" "x=zeros:bf16[256,28,28,128]" "dy=zeros:bf16[256,28,28,128]" "dwt=@:bf16[3,3,128,128]" \
        stride=1 dilation=1 pad=1 --target=sm_90a
}
expect 0 'products are computed by wgmma' gradient
grep -q 'exchanges of words' "$work/output" && complain "sums of a nest of loops are exchanged"
expect 0 'through exchanges of words between lanes' \
    "$tilec" explain "$stdlib/matmul.tile:matmul" "a=zeros:bf16[4096,4096]" "b=zeros:bf16[4096,4096]" "c=@:f32[4096,4096]" --target=sm_90a

# What was measured to be faster by a tenth: three warpgroups for 64 columns of attention (155 and 174 us). And tiles of positions, which stand far behind in the clause: of the
# gradient of the input 95 and 105 us with the first squares.
heads=zeros:bf16[1,16,4096,64]
expect 0 'constants: BS = 192, BL = 128' \
    "$tilec" explain "$stdlib/attention.tile:attention" "q=$heads" "k=$heads" "v=$heads" o=@ scale=0.125 causal=false --target=sm_90a
expect 0 'BP = 0, BQ = 256, BO = 128' \
    "$tilec" explain "$stdlib/conv.tile:conv2d" "x=zeros:bf16[256,28,28,128]" "wt=zeros:bf16[3,3,128,128]" "bias=zeros:f32[128]" "y=@:bf16[256,28,28,128]" \
    stride=1 dilation=1 pad=1 --target=sm_90a

# Places of no segment, of a launch that is refused: the model divides by no number of segments.
rows=f32[20,4,16]
expect 1 'cu_k: dimension 0 (E) is 0, but cu_q has E = 3' \
    "$tilec" explain "$stdlib/attention.tile:attention_varlen_backward" "q=zeros:$rows" "k=zeros:$rows" "v=zeros:$rows" 'cu_q=zeros:i32[3]' 'cu_k=zeros:i32[0]' \
    "o=zeros:$rows" 'lse=zeros:f32[4,20]' "do=zeros:$rows" "dq=@:$rows" "dk=@:$rows" "dv=@:$rows" longest_q=20 longest_k=20 scale=0.2 causal=false --target=sm_90a
finish
