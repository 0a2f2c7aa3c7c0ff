# Values of the environment that are none: one warning each, which names variable, value, what is expected and what it is
# taken as; and none for values that are good.
. "$(dirname "$0")/../cli_common.sh"
cd "$work" || exit 1
TILE_CACHE_DIR=$work/cache
export TILE_CACHE_DIR
cat >k.tile <<'TEXT'
kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 16) { y[n] = x[n] + 1 } }
TEXT

# warns STATUS VARIABLE VALUE EXPECTED TAKEN: two instances are compiled and launched.
warns() {
    checks=$((checks + 2))
    env "$2=$3" "$tilec" run k.tile x=arange:f32[2] y=@ --check >"$work/output" 2>&1
    got=$?
    [ $got = "$1" ] || complain "status $got instead of $1: $2=$3"
    [ "$(grep -c 'warning' "$work/output")" = 1 ] || complain "not one warning: $2=$3"
    grep -qxF "tile: warning: $2 is '$3': expected $4; it is taken as $5" "$work/output" || complain "not as it should be: $2=$3"
}
# is_quiet VARIABLE VALUE..
is_quiet() {
    variable=$1
    shift
    for value; do
        checks=$((checks + 1))
        env "$variable=$value" "$tilec" run k.tile x=arange:f32[2] y=@ --check >"$work/output" 2>&1 || complain "it fails: $variable=$value"
        grep -q 'warning' "$work/output" && complain "a warning: $variable=$value"
    done
}

cores=$(nproc)
warns 0 TILE_NUM_THREADS many 'a number from 1 to 1024' "$cores, the cores that this process may use"
warns 0 TILE_NUM_THREADS 0 'a number from 1 to 1024' "$cores, the cores that this process may use"
warns 0 TILE_NUM_THREADS -3 'a number from 1 to 1024' "$cores, the cores that this process may use"
warns 0 TILE_NUM_THREADS 4x 'a number from 1 to 1024' "$cores, the cores that this process may use"
warns 0 TILE_NUM_THREADS 1025 'a number from 1 to 1024' 1024
warns 0 TILE_NUM_THREADS 99999999999999999999999 'a number from 1 to 1024' 1024
is_quiet TILE_NUM_THREADS '' 1 3 1024
warns 0 TILE_ON_MISS never 'wait, general or background' wait
is_quiet TILE_ON_MISS '' wait general background
warns 0 TILE_VARIANT_LIMIT 0 'a number from 1 to 32' 8
warns 0 TILE_VARIANT_LIMIT none 'a number from 1 to 32' 8
warns 0 TILE_VARIANT_LIMIT 33 'a number from 1 to 32' 32
is_quiet TILE_VARIANT_LIMIT '' 1 32
warns 0 TILE_LOG misses 'guards, compile or all, with commas between' nothing
warns 0 TILE_LOG guards,misses 'guards, compile or all, with commas between' guards
is_quiet TILE_LOG '' guards guards,compile all ,compile,
warns 0 TILE_DETERMINISTIC yes '0 or 1' 0
warns 0 TILE_ALLOW_TF32 on '0 or 1' 0
is_quiet TILE_DETERMINISTIC '' 0 1
is_quiet TILE_ALLOW_TF32 '' 0 1
is_quiet TILE_OWN_THREADS '' 0 1
warns 0 TILE_DEBUGGER gdb '0 or 1' 0
is_quiet TILE_DEBUGGER '' 0 1
warns 0 TILE_CACHE_BYTES 1G 'a number from 1 to 18446744073709551615' '1 GiB'
warns 0 TILE_CACHE_BYTES 0 'a number from 1 to 18446744073709551615' '1 GiB'
is_quiet TILE_CACHE_BYTES '' 1 1000000
warns 0 TILE_CACHE_DIR /dev/null/cache "a folder that is this user's alone to write" 'empty: nothing is kept'
is_quiet TILE_CACHE_DIR '' "$work/other"
warns 2 TILE_CPU_CAPABILITY best 'the name of a CPU target: avx2, avx512, avx512vnni, avx512bf16, amx, sve' 'one that forbids all of them'
is_quiet TILE_CPU_CAPABILITY ''

# A tuning file that is not there is an error, and so is a ptxas where it is needed.
expect 2 'cannot read /no/such/file' env TILE_TUNING=/no/such/file "$tilec" run k.tile x=arange:f32[2] y=@
expect 2 'TILE_PTXAS names /no/such/ptxas' env TILE_PTXAS=/no/such/ptxas "$tilec" emit cubin k.tile --target=sm_80
if [ -z "${TILE_LINK_FLAGS:-}" ]; then
    expect 0 "TILE_PTXAS is '/no/such/ptxas': expected the path of a program; it is taken as none: GPU targets have PTX alone" \
        env TILE_PTXAS=/no/such/ptxas "$tilec" build k.tile --export k --target=avx2 -o k.o
fi
finish
