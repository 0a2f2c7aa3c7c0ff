# Passes of other projects, loaded from shared objects: where they run, and who is to blame for what.
. "$(dirname "$0")/../cli_common.sh"
cc=${CC:-cc}

# `tilec help passes` has each row of each folder's passes.def, and no other.
cat "$source_directory"/*/passes.def | sed -n 's/^PASS([a-z_0-9]*, "\([^"]*\)", [A-Z]*, [A-Z]*, [A-Z]*, [A-Z]*, [A-Z]*, "\(.*\)")$/\1 \2/p' |
    sort >"$work/rows"
expect 0 'Passes of GPU targets:' "$tilec" help passes
"$tilec" help passes | sed -n 's/^  \([^ ]*\)  *\(.*\)$/\1 \2/p' | sort >"$work/listed"
[ "$(grep -c '^PASS(' "$source_directory"/*/passes.def | awk -F: '{ n += $2 } END { print n }')" = "$(wc -l <"$work/rows")" ] ||
    complain "a row of a passes.def is not read here"
cmp -s "$work/rows" "$work/listed" || complain "tilec help passes differs from the tables: $(diff "$work/rows" "$work/listed")"

cd "$work" || exit 1
cat >double.tile <<'TEXT'
kernel twice(x: in f32[N], y: out f32[N]) {
    grid n in tiles(N, 64) { y[n] = x[n] * 2 }
}
TEXT

# plugin NAME 'PLACE' 'BODY': a pass NAME, whose body looks at each operation `op`.
plugin() {
    cat >"$1.c" <<TEXT
#include <string.h>
#include <tile/pass.h>
static void visit(TileIr *ir, TileIrOp *op, void *state) {
    (void)state;
    $3
}
static void run(TileIr *ir, void *host) {
    (void)host;
    tile_ir_walk(ir, visit, NULL);
}
static const TilePass pass = {.struct_size = sizeof pass, .name = "$1", $2, .run = run};
static const TilePass *const passes[] = {&pass, NULL};
TILE_DEFINE_PASSES(passes)
TEXT
    expect 0 '' "$cc" -std=c11 -Wall -Wextra -Werror -shared -fPIC -I"$source_directory/include" "$1.c" -o "$1.so"
}
is='strcmp(tile_ir_op_name(op),'

# A pass that changes results: y = x * 3. The interpreter defines what the text means, and runs no passes.
plugin thrice '.before = "cse"' "double two;
    if ($is \"mul\") || !tile_ir_constant(tile_ir_operand(op, 1), &two) || two != 2) return;
    if (!tile_ir_type_of(tile_ir_operand(op, 1)) || tile_ir_is_machine(ir)) return;
    TileIrTypeInfo info = {.struct_size = sizeof info};
    if (!tile_ir_type_info(tile_ir_type_of(tile_ir_operand(op, 1)), &info) || strcmp(info.element, \"f32\") != 0) return;
    tile_ir_before(ir, op);
    TileIrValue *three = tile_ir_broadcast(ir, tile_ir_number(ir, \"f32\", 3), tile_ir_type_of(tile_ir_operand(op, 0)));
    tile_ir_replace(ir, op, tile_ir_binary(ir, \"mul\", tile_ir_operand(op, 0), three));
    tile_ir_erase(ir, op);"
expect 0 'value = 3.0' "$tilec" emit tile double.tile --load-pass=thrice.so
expect 0 'value = 2.0' "$tilec" emit tile double.tile --target=interp --load-pass=thrice.so
expect 3 'differ from the reference' "$tilec" run double.tile x=ones:f32[100] y=@ --check --load-pass=thrice.so
expect 0 '' "$tilec" run double.tile x=ones:f32[100] y=@ --check
expect 3 'by more than another order of sums can explain: by 1 where that is at most 0' \
    "$tilec" run double.tile x=ones:f32[100] y=@ --check --target=sm_80 --emulate --load-pass=thrice.so
cat >total.tile <<'TEXT'
kernel total(x: in f32[M, N], y: out f32[M]) {
    grid m in M {
        var t = f32(0)
        for n in tiles(N, 64) { t += sum(x[m, n] * 2) }
        y[m] = t
    }
}
TEXT
expect 3 'by more than another order of sums can explain' \
    "$tilec" run total.tile x=randn:f32[3,1000] y=@ --check --target=sm_80 --emulate --load-pass=thrice.so
expect 0 'each by no more than its sums in another order can' \
    "$tilec" run total.tile x=randn:f32[3,1000] y=@ --check --target=sm_80 --emulate
expect 0 'bit for bit' "$tilec" run total.tile x=arange:f32[3,100] y=@ --check --target=sm_90a --emulate
expect 0 'no bound is known' "$tilec" run "$source_directory/stdlib/scan.tile:linear_recurrence" \
    a=rand:f32[2,100] x=randn:f32[2,100] h=@ --check --target=sm_80 --emulate

# A pass that produces invalid IR is named, with the errors. It is a user's error, not ours.
plugin careless '.after = "licm"' "if ($is \"yield\") == 0) tile_ir_erase(ir, op);"
expect 1 "the pass 'careless', which is not the compiler's own, leaves what is no IR" \
    "$tilec" emit machine double.tile --load-pass=careless.so
expect 1 "a block has to end in yield" "$tilec" run double.tile x=ones:f32[100] y=@ --load-pass=careless.so
plugin wrong '.after = "expand-programs"' "TileIrValue *v = tile_ir_operand(op, 0);
    if ($is \"store_tile\") != 0) return;
    tile_ir_before(ir, op);
    tile_ir_binary(ir, \"add\", v, tile_ir_operand(op, 2));"
expect 1 "the pass 'wrong': twice.0: op 1 (add): " "$tilec" emit machine double.tile --load-pass=wrong.so
plugin used '.after = "expand-programs"' "if ($is \"load_tile\") == 0) tile_ir_erase(ir, op);"
expect 1 "tile_ir_erase of load_tile: its results are used" "$tilec" emit machine double.tile --load-pass=used.so
plugin picky '.after = "expand-programs"' "if ($is \"grid\") == 0) tile_ir_refuse(ir, op, \"no grids today\");"
expect 1 "the pass 'picky': twice: grid: no grids today" "$tilec" emit machine double.tile --load-pass=picky.so

# Invalid passes.
plugin lost '.after = "nowhere"' '(void)ir; (void)op;'
expect 1 "the pass 'lost': there is no pass 'nowhere', in lost.so" "$tilec" emit tile double.tile --load-pass=lost.so
plugin cse '.after = "dce"' '(void)ir; (void)op;'
expect 1 "there is a pass 'cse' already" "$tilec" emit tile double.tile --load-pass=cse.so
plugin both '.after = "dce", .before = "dce"' '(void)ir; (void)op;'
expect 1 "either before or after" "$tilec" emit tile double.tile --load-pass=both.so
echo 'int nothing;' >empty.c
expect 0 '' "$cc" -shared -fPIC empty.c -o empty.so
expect 2 'it has no list of passes' "$tilec" emit tile double.tile --load-pass=empty.so
expect 2 'none.so' "$tilec" emit tile double.tile --load-pass=none.so

# In a GPU's pipeline, and several of them, in the order in which they are given.
plugin first '.after = "gpu-machine"' 'if (tile_ir_is_machine(ir) && !tile_ir_function_name(ir)[0]) tile_ir_refuse(ir, op, "no name");'
plugin second '.after = "first"' '(void)ir; (void)op;'
expect 0 'thread' "$tilec" emit machine double.tile --target=sm_80 --load-pass=first.so --load-pass=second.so
expect 1 "there is no pass 'first'" "$tilec" emit machine double.tile --target=sm_80 --load-pass=second.so
expect 0 '' "$tilec" emit machine double.tile --load-pass=first.so
finish
