#!/bin/sh
# The forms of messages: text, colour, JSON; locations, notes and edits in each; the pages of the codes.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2
cat >var.tile <<'TEXT'
kernel k(x: in f32[N], y: out f32[N]) {
    grid n in tiles(N, 4) {
        var total = 0.5
        total = i32(1)
        y[n] = x[n]
    }
}
TEXT
escape=$(printf '\033')

# Text: the location, the source line, the mark, the other location, the edit.
"$tilec" check var.tile >text 2>&1
cat >wanted <<'TEXT'
var.tile:4:17: error: `total` is f32, and this is i32 [var-type]
    4 |         total = i32(1)
      |                 ^~~~~~
var.tile:3:13: note: `total` is declared here
    3 |         var total = 0.5
      |             ^~~~~
var.tile:4:17: edit: write `f32(i32(1))`
TEXT
expect 0 '' diff wanted text

# Colour: not if the output is not a terminal, unless requested; without escape sequences the text is the same.
expect 1 "$escape[31merror: " "$tilec" check var.tile --color=always
expect 1 "note:$escape" "$tilec" check --color=always var.tile
"$tilec" check var.tile --color=always 2>&1 | sed "s/$escape\[[0-9;]*m//g" >plain
expect 0 '' diff text plain
for option in --color=auto --color=never --color=always; do
    NO_COLOR=1 "$tilec" check var.tile $option >shown 2>&1
    wanted=1
    [ $option = --color=always ] && wanted=0
    expect $wanted '' grep -q "$escape" shown
done
if command -v script >/dev/null; then # a terminal
    script -qec "'$tilec' check var.tile" /dev/null >shown 2>&1 </dev/null
    expect 0 '' grep -q "$escape" shown
    NO_COLOR=1 script -qec "'$tilec' check var.tile" /dev/null >shown 2>&1 </dev/null
    expect 1 '' grep -q "$escape" shown
fi
expect 1 "tilec: $escape" "$tilec" check --color=always --frobnicate
expect 1 '--color' "$tilec" check var.tile --color=blue

# JSON: one array with all of it, whatever the colour.
"$tilec" check var.tile --error-format=json --color=always >json 2>&1
cat >read.py <<'TEXT'
import json
[found] = json.load(open("json"))
assert found["severity"] == "error" and found["code"] == "var-type", found
assert found["message"] == "`total` is f32, and this is i32", found
places = ("file", "line", "column", "end_line", "end_column")
assert [found[p] for p in places] == ["var.tile", 4, 17, 4, 23], found
[note] = found["notes"]
assert [note[p] for p in places] == ["var.tile", 3, 13, 3, 18] and "declared here" in note["message"], note
edit = found["edit"]
text = open("var.tile").read()
open("edited.tile", "w").write(text[:edit["begin"]] + edit["replacement"] + text[edit["end"]:])
TEXT
expect 0 '' python3 read.py
expect 0 '' "$tilec" check edited.tile

# One array for all files, empty where all is well. Every wrong program: places that lie in their file and agree with the
# bytes, in the order of the text. (What the edits lead to is looked at by tests/unit/parser/test_errors.c.)
echo 'const RIGHT = 1' >right.tile
"$tilec" check --error-format=json right.tile >json 2>&1
printf '[]\n' >wanted
expect 0 '' diff wanted json
"$tilec" help codes | tr -d ' ' >codes
"$tilec" check "$TILE_SOURCE_DIR"/tests/errors/*.tile --error-format=json >json 2>&1
cat >read.py <<'TEXT'
import json
texts, pages, ends = {}, set(open("codes").read().split()), {}
found = json.load(open("json"))
for one in found:
    assert one["severity"] in ("error", "warning") and one["code"] in pages and one["message"], one
    for at in [one, *one["notes"], *([one["edit"]] if "edit" in one else [])]:
        if not at["file"]:
            assert at in one["notes"], one
        if at["file"][:1] in ("", "<"): # nowhere, or in the standard library
            continue
        text = texts.setdefault(at["file"], open(at["file"], "rb").read())
        assert 0 <= at["begin"] <= at["end"] <= len(text), one
        for offset, line, column in (("begin", "line", "column"), ("end", "end_line", "end_column")):
            before = text[:at[offset]]
            assert at[line] == before.count(b"\n") + 1, one
            assert at[column] == len(before[before.rfind(b"\n") + 1:].decode()) + 1, one
    assert all(note["message"] for note in one["notes"]), one
    assert ends.get(one["file"], 0) <= one["begin"], one
    ends[one["file"]] = one["begin"]
assert len(found) > 500 and sum("edit" in one for one in found) > 100, len(found)
TEXT
expect 0 '' python3 read.py

# A launch: every error in its arguments is reported separately.
cat >several.tile <<'TEXT'
kernel several(x: in f32[N, M], y: out f32[N, M], z: out f32[N, M], s: f32)
    require s > 2, M > 8
{
    grid (n, m) in (N, tiles(M, 4)) {
        y[n, m] = s * x[n, m]
        z[n, m] = -x[n, m]
    }
}
TEXT
"$tilec" run several.tile x=ones:f32[4,4] y=@:f32[5,4] z=@:f32[4,6] s=1 >shown 2>&1
cat >wanted <<'TEXT'
tilec: error: several: y: dimension 0 (N) is 5, but x has N = 4
tilec: error: several: z: dimension 1 (M) is 6, but x has M = 4; the kernel is
  several(x: in f32[N, M], y: out f32[N, M], z: out f32[N, M], s: f32)
TEXT
expect 0 '' diff wanted shown
expect 1 'several: requires s > 2, but s = 1' "$tilec" run several.tile x=ones:f32[4,4] y=@ z=@ s=1
expect 1 'several: requires M > 8, but M = 4' "$tilec" run several.tile x=ones:f32[4,4] y=@ z=@ s=1
expect 1 'several: x: type is f16, expected f32' "$tilec" run several.tile x=ones:f16[4,4] y=@:f32[4,4] z=@:f32[4] s=true
expect 1 'several: z: rank is 1, expected 2' "$tilec" run several.tile x=ones:f16[4,4] y=@:f32[4,4] z=@:f32[4] s=true
expect 1 'several: s: a bool is given' "$tilec" run several.tile x=ones:f16[4,4] y=@:f32[4,4] z=@:f32[4] s=true
"$tilec" run several.tile x=ones:f32[4,4] y=@:f32[5,4] z=@:f32[4,6] s=1 --error-format=json 2>&1 | python3 -c '
import json, sys
first, second = json.load(sys.stdin)
assert first["message"].startswith("several: y: ") and second["message"].startswith("several: z: ")' ||
    { failed=$((failed + 1)); echo "FAIL the JSON of several mistakes of a launch"; }

# In the order of the text, whichever pass found them.
printf 'kernel a(x: out f32[N]) { grid n in N { x[n] = v } }\nkernel b(x: out f32[N]) { grid n in N { x[n] = } }\n' >order.tile
printf 'kernel c(x: out f32[N]) { grid n in N { x[n] = w } }\n' >>order.tile
"$tilec" check order.tile 2>&1 | sed -n 's/^order.tile:\([0-9]*\):.*/\1/p' | tr -d '\n' >shown
printf 123 >wanted
expect 0 '' diff wanted shown

# Pages: each code has one, and it is shown without the marks of code.
expect 0 '' grep -qx invalid-store codes
while read -r code; do expect 0 "$code" "$tilec" help "$code"; done <codes
expect 0 '    example.tile:' "$tilec" help var-type
"$tilec" help var-type >page
expect 1 '' grep -q '```' page
expect 1 "no help for 'var-typo'" "$tilec" help var-typo

# Built-in functions too, each of them.
"$tilec" help words | sed -n 's/^built-in functions: //p' | tr ' ' '\n' >builtins
expect 0 '' grep -qx searchsorted builtins
while read -r name; do expect 0 "$name" "$tilec" help "$name"; done <builtins
expect 0 'The angle of the vector' "$tilec" help atan2

# Instances that `tilec check FILE NAME=value` asks for.
cat >instances.tile <<'TEXT'
kernel halves[T: f16 | f32](x: in T[M, N], y: out T[M, 2]) static N require N % 2 == 0 tune B in {1, 2} {
    grid m in tiles(M, B) { y[m, :] = sum(reshape(x[m, :], (B, 2, N / 2)), axis = 2) }
}
kernel other(x: in f32[K], y: out f32[K]) { grid k in tiles(K, 4) { y[k] = x[k] } }
TEXT
expect 0 '' "$tilec" check instances.tile
expect 0 '' "$tilec" check instances.tile N=8
expect 0 '' "$tilec" check N=8 T=f16 B=2 instances.tile
expect 1 'this requirement does not hold: N % 2 == 0' "$tilec" check instances.tile N=7
expect 1 'in the instance `halves[' "$tilec" check instances.tile N=7
expect 1 '"code":"require-failed"' "$tilec" check instances.tile N=7 --error-format=json
expect 1 'cannot be i8' "$tilec" check instances.tile T=i8
expect 1 "there is nothing called 'Q'" "$tilec" check instances.tile Q=4
# A dimension that is not static: the requirements, and what they prove.
cat >sizes.tile <<'TEXT'
kernel fours[T: f16 | f32](x: in T[M, N], y: out T[M, N]) require N % 4 == 0, "whole vectors" require M <= 100 {
    grid (m, n) in (M, N / 4) { y[m, span(n * 4, 4)] = x[m, span(n * 4, 4)] }
}
kernel pairs(x: in f32[N, 2], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = sum(x[n, :], axis = 1) } }
TEXT
expect 0 '' "$tilec" check sizes.tile N=8
expect 0 '' "$tilec" check sizes.tile N=0 M=100 T=f16
expect 1 'this requirement does not hold: N % 4 == 0: whole vectors' "$tilec" check sizes.tile N=6
expect 1 'note: here N = 6' "$tilec" check sizes.tile N=6
expect 1 'in the instance `fours[T = f32, M = 101]`' "$tilec" check sizes.tile M=101
expect 1 '`N` has to be given an extent, at least 0' "$tilec" check sizes.tile N=-1
expect 1 '`N` has to be given an integer' "$tilec" check sizes.tile N=f32

# Warnings of a file are shown once, however often a command compiles it.
printf 'kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { let spare = 1; y[n] = x[n] } }\n' >spare.tile
# once COMMAND..: it shows the warning once.
once() {
    checks=$((checks + 1))
    "$@" >"$work/output" 2>&1 && [ "$(grep -c 'warning: nothing uses' "$work/output")" = 1 ] || complain "not once: $*"
}
once "$tilec" check spare.tile spare.tile
once "$tilec" check spare.tile N=8
once "$tilec" bench spare.tile x=rand:f32[L] y=@ L=64,128 --against=avx2 --seconds=0.01
once "$tilec" run spare.tile x=rand:f32[9] y=@ --check --target=cpu
expect 0 '"code":"unused-name"' "$tilec" check spare.tile spare.tile --error-format=json
checks=$((checks + 1))
[ "$(grep -c unused-name "$work/output")" = 1 ] || complain 'a file that is named twice is checked twice'
expect 1 'no file' "$tilec" check N=8
expect 2 'missing.tile' "$tilec" check missing.tile N=8

# A command on one kernel is silent about warnings within others; `check` shows all.
cat >warnings.tile <<'TEXT'
kernel a(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { let unused_a = 1; y[n] = x[n] } }
kernel b(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { let unused_b = 1; y[n] = x[n] } }
export a as by_a
TEXT
expect 0 'unused_a' "$tilec" check warnings.tile
expect 0 'unused_b' "$tilec" check warnings.tile
expect 0 'unused_a' "$tilec" run warnings.tile:a x=ones:f32[4] y=@
expect 0 'unused_a' "$tilec" run warnings.tile:by_a x=ones:f32[4] y=@
expect 0 'unused_b' "$tilec" run warnings.tile:b x=ones:f32[4] y=@
for command in 'run warnings.tile:a x=ones:f32[4] y=@' 'run warnings.tile:by_a x=ones:f32[4] y=@' 'explain warnings.tile:a x=ones:f32[4] y=@'; do
    checks=$((checks + 1))
    # shellcheck disable=SC2086
    "$tilec" $command >output 2>&1
    grep -q unused_b output && complain "tilec $command warns of another kernel"
done
finish
