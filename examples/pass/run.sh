#!/bin/sh
# Builds the pass, and runs a kernel with it and without.
# usage: run.sh     TILEC names the compiler, CC the C compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tilec=${TILEC:-$here/../../build/release/bin/tilec}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
${CC:-cc} -std=c11 -Wall -Wextra -Werror -shared -fPIC -I"$here/../../include" "$here/small_powers.c" -o small_powers.so

count() { # count OP WORDS..: how often the operation stands in the tile form
    op=$1
    shift
    "$tilec" emit tile "$here/polynomial.tile" "$@" | grep -c " = $op " || true
}
pow_before=$(count pow)
pow_after=$(count pow --load-pass=small_powers.so)
echo "pow before: $pow_before, after: $pow_after; products after: $(count mul --load-pass=small_powers.so)"
[ "$pow_before" = 3 ] && [ "$pow_after" = 0 ]

"$tilec" run "$here/polynomial.tile" x=rand:f32[100003] y=plain.npy
"$tilec" run "$here/polynomial.tile" x=rand:f32[100003] y=own.npy --load-pass=small_powers.so
python3 - <<'TEXT'
import struct
def read(name):
    data = open(name, "rb").read()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])
plain, own = read("plain.npy"), read("own.npy")
worst = max(abs(a - b) for a, b in zip(plain, own))
print(f"{len(own)} elements, largest difference {worst:.1e}")
assert len(own) == 100003 and 0 < worst < 1e-6
TEXT
