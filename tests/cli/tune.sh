# tilec tune: searches, what becomes of them when they end early, the files, and what launches take from them. Times are
# this machine's, but on the GPU that tests/gpu/fake stands for: there a thread takes a nanosecond.
. "$TILE_SOURCE_DIR/tests/cli_common.sh"

TILE_CACHE_DIR=$work/cache
export TILE_CACHE_DIR
file=$TILE_CACHE_DIR/tuning.txt
cd "$work" || exit 1

cat >k.tile <<'TEXT'
/// Says which tile it has.
kernel k(x: in f32[N], y: out f32[N])
    tune cpu B in {64, 256, 1024, 96}, U in {1, 2} where B % 64 == 0 && B * U < 2048
    tune gpu B in {1024, 4096, 256}, U in {1}
{
    grid n in tiles(N, B) {
        print("tile", B * U)
        y[n] = x[n] + 1
    }
}
TEXT
sed 's/tune cpu.*/tune B in {64, 256, 1024, 4096}/; /tune gpu/d; s/B \* U/B/; /print/d; s/kernel k(/kernel plain(/' k.tile >plain.tile
tune() { "$tilec" tune k.tile x=rand:f32[1000] y=@ "$@"; }
run() { "$tilec" run k.tile "x=rand:f32[$1]" y=@ -q; }
explain() { "$tilec" explain k.tile "x=rand:f32[$1]" y=@; }
# row FIELD: of the row of the file
row() { grep -v '^#' "$file" | sed -n 2p | cut -f "$1"; }
equal() { # WANTED GOT
    checks=$((checks + 1))
    echo "'$2' instead of '$1'" >"$work/output"
    [ "$1" = "$2" ] || complain "$3"
}
lacks() { # TEXT COMMAND..: succeeds and does not print the text
    checks=$((checks + 1))
    text=$1
    shift
    "$@" >"$work/output" 2>&1 || complain "status $? of $*"
    grep -qF -e "$text" "$work/output" && complain "'$text' in what this prints: $*"
    return 0
}

# ---- a search ----
lacks 'B=96' tune
cp output first
expect 0 '5/5  B=1024 U=1' cat first
expect 0 '5 of 5 measured; kept in' cat first
lacks 'B=1024 U=2' cat first
lacks 'tile 64' cat first
equal '5/5' "$(row 9)" 'all points that where admits are measured, and no other'
equal 'N<=1024' "$(row 4)" 'the sizes up to the next power of two'
equal '-' "$(row 3)" 'nothing else decides'
expect 0 'was found to be the best of 5 before' tune
expect 0 '1 row in' "$tilec" tune --list
expect 0 '(the default)' explain 3000
expect 0 "(measured: $file)" explain 700
expect 0 '"origin": "measured"' "$tilec" explain k.tile x=rand:f32[600] y=@ --format=json
expect 0 'B = 256 (set)' "$tilec" explain k.tile x=rand:f32[600] y=@ B=256
expect 1 '`B` is set; a search needs all names of the tune clause free' tune B=64
expect 1 'has no tune clause for the interpreter' tune --target=interp
expect 1 '--emulate tells nothing' tune --emulate
expect 1 'unknown option' tune --agian
expect 1 '--seconds needs a number above 0' tune --seconds=0

# ---- launches take what the file says ----
take() { sed -i "s/\tB=[0-9]* U=[0-9]*\t/\t$1\t/" "$file"; }
take 'B=256 U=2'
expect 0 'tile 512' run 1000
expect 0 'tile 512' run 513
expect 0 'tile 64' run 512
expect 0 'tile 64' run 1025
expect 0 'y: equal to the reference' "$tilec" run "$stdlib/softmax.tile:softmax" x=rand:f32[9,100] y=@ --check
sed -i 's/print.*/print("other", B)/' k.tile
expect 0 'other 256' run 1000
sed -i 's/{64, 256, 1024, 96}/{64, 128}/' k.tile
expect 0 'other 64' run 1000
sed -i 's/{64, 128}/{64, 256, 1024, 96}/; s/"other", B/"tile", B * U/' k.tile
expect 0 'tile 512' run 1000
take 'B=2048 U=1' # which `where` does not admit, so the row is for nothing
expect 0 'tile 64' run 1000
take 'B=256 U=2'
expect 0 'tile 64' env TILE_TUNING=off "$tilec" run k.tile x=rand:f32[1000] y=@ -q

# The row of the file for any machine.
sed "s/\(avx[0-9a-z]*\), [^\t]*/\1, */; s/B=256 U=2/B=1024 U=1/" "$file" >any.txt
expect 0 'tile 1024' env TILE_TUNING=any.txt "$tilec" run k.tile x=rand:f32[1000] y=@ -q
expect 2 'cannot read none.txt, which the setting `tuning` names' env TILE_TUNING=none.txt "$tilec" run k.tile x=rand:f32[9] y=@
echo rubbish >>any.txt
expect 1 'is no row of a tuning file' env TILE_TUNING=any.txt "$tilec" run k.tile x=rand:f32[9] y=@

# ---- deterministic only uses pinned settings ----
deterministic() { TILE_DETERMINISTIC=1 "$@"; }
expect 1 'that are not pinned, which the setting' deterministic run 1000
expect 0 'tile 64' deterministic run 2000
expect 1 'the setting `deterministic` refuses a search' deterministic tune
expect 0 '1 rows from' "$tilec" tune --export out.txt
expect 0 '1 of 1 rows from out.txt are in' "$tilec" tune --pin out.txt
expect 0 'tile 512' deterministic run 1000
expect 0 "(pinned: $file)" explain 700
expect 1 'constants for such arguments are pinned' tune --again
sed 's/B=256/B=64/' out.txt >other.txt
expect 0 '0 of 1 rows from other.txt' "$tilec" tune --import other.txt
expect 0 'tile 512' run 1000
expect 1 'stand alone' "$tilec" tune --import other.txt --list
expect 2 'cannot read nowhere.txt' "$tilec" tune --import nowhere.txt
expect 2 "has no rows of 'j'" "$tilec" tune --forget j
expect 0 '1 rows of k removed' "$tilec" tune --forget k
expect 0 'tile 64' run 1000
expect 0 '1 of 1 rows' "$tilec" tune --import other.txt --file mine.txt
expect 0 'B=64' "$tilec" tune --list --file=mine.txt

# ---- searches that end early ----
expect 0 'the next run goes on' tune --seconds=0.000001
equal '1/5' "$(row 9)" 'only the default'
expect 0 '1 of 5 were measured before: going on' tune
equal '5/5' "$(row 9)" 'the rest'
rm "$file"
cat >long.tile <<'TEXT'
kernel long(x: in f32[N], y: out f32[N])
    tune A in {1, 2, 3, 4, 5, 6, 7, 8}, B in {64, 128, 192, 256, 320, 384, 448, 512}, C in {1, 2, 3, 4, 5, 6, 7, 8}
{
    grid n in tiles(N, B * A * C) { y[n] = exp(x[n]) }
}
TEXT
"$tilec" tune long.tile x=rand:f32[100000] y=@ >lines 2>&1 &
process=$!
until grep -q '4/512' lines; do
    kill -0 $process 2>/dev/null || break
    sleep 0.2
done
kill -TERM $process 2>/dev/null
wait $process
equal 143 $? 'ends as a process does that the signal ends'
measured=$(row 9)
checks=$((checks + 1))
echo "$measured" >"$work/output"
[ "${measured%/512}" -ge 4 ] 2>/dev/null && [ "${measured%/512}" -lt 512 ] || complain 'a part is kept'
expect 0 "${measured%/512} of 512 were measured before: going on" \
    "$tilec" tune long.tile x=rand:f32[100000] y=@ --seconds=1

# ---- files that are damaged, and of another version ----
rm "$file"
tune -q
cp "$file" good.txt
printf '# mine\nk\tno row' >>"$file"
expect 0 "line 5 is no row, and counts for nothing" "$tilec" tune --list
expect 0 '' "$tilec" tune plain.tile x=rand:f32[100] y=@ -q
expect 0 '2 rows in' "$tilec" tune --list
expect 0 'no row' cat "$file"
expect 0 '# mine' cat "$file"
sed 's/^tile-tuning 1/tile-tuning 9/' good.txt >"$file"
cp "$file" nine.txt
expect 0 'tile 64' run 1000
expect 0 'is a tuning file of version 9, and this program knows version 1' env TILE_LOG=compile "$tilec" run k.tile x=rand:f32[1000] y=@ -q
expect 1 'is a tuning file of version 9' tune
expect 1 'is a tuning file of version 9' "$tilec" tune --pin out.txt
expect 0 '' cmp "$file" nine.txt
rm "$file"

# ---- many at once, and an emptied cache ----
for i in 1 2 3 4 5 6 7 8; do
    sed "s/^k\t/k$i\t/" out.txt >"in$i.txt"
    "$tilec" tune --import "in$i.txt" -q &
done
wait
expect 0 '8 rows in' "$tilec" tune --list
expect 0 'removed from' "$tilec" cache clear
expect 0 '8 rows in' "$tilec" tune --list
absent "$TILE_CACHE_DIR/.tuning.txt"
TILE_CACHE_DIR=
expect 1 'there is nowhere to keep what is found' tune
expect 0 '5 of 5 measured; kept in own.txt' tune --file=own.txt
expect 2 'there is no tuning file' "$tilec" tune --list
TILE_CACHE_DIR=$work/cache

# ---- a GPU, by its own clock ----
gpu() { fake devices=1 "$tilec" "$@" --target=cuda; }
expect 0 'plain  -  N<=8192  sm_90a, Fake GPU' gpu tune plain.tile x=rand:f32[8192] y=@
best=$(sed -n 's/^plain.*Fake GPU\t\([^\t]*\)\t.*/\1/p' "$file")
expect 0 "constants: $(echo "$best" | sed 's/=/ = /') (measured" gpu explain plain.tile x=rand:f32[8192] y=@
sed -i '/Fake GPU/d' "$file"
cat >turn.tile <<'TEXT'
kernel turn(x: in f32[M, N], y: out f32[N, M])
    tune B in {32, 128, 64, 96}
{
    grid (m, n) in (tiles(M, B), tiles(N, B)) { y[n, m] = x[m, n].T }
}
TEXT
fake 'devices=1 shared=20000' "$tilec" tune turn.tile x=rand:f32[64,64] y=@ --target=cuda >lines 2>&1
equal 0 $? 'points that cannot run are left out'
expect 0 'left out: B=128: turn: a block needs' cat lines
expect 0 'of them cannot run; kept in' cat lines
sort lines | grep '^left out' | uniq -d >repeated
equal 0 "$(wc -l <repeated)" 'each is named once'
expect 2 'timer: the CUDA driver (12.8) says CUDA_ERROR_LAUNCH_FAILED' fake 'devices=1 fail=cuEventSynchronize:3:719' \
    "$tilec" tune plain.tile x=rand:f32[64] y=@ --target=cuda
finish
