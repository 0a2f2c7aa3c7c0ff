#!/bin/sh
# Reads the held-out digits layer by layer through `tilec run`, and compares with NumPy's result.
# usage: run.sh [further options of tilec run, such as --target=avx2]     TILEC names the compiler to use.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tilec=${TILEC:-$here/../../build/release/bin/tilec}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs one kernel 100 times, shows its time and adds it up.
layer() {
    kernel=$1
    shift
    "$tilec" run "$here/digits.tile:$kernel" --repeat=100 "$@" >"$work/log" || { cat "$work/log"; exit 1; }
    sed -n "s/^median/  $kernel: median/p" "$work/log"
    sed -n 's/^median \([0-9.]*\) us.*/\1/p' "$work/log" >>"$work/times"
}

# The last $2 bytes of an .npy file: its numbers, without the header.
numbers() { tail -c "$2" "$1"; }

images=597
echo "Reading $images held-out images, layer by layer:"
layer pixels image="$here/images.npy[1200:]" x="$work/x.npy" "$@"
layer hidden_layer x="$work/x.npy" weight="$here/w1.npy" bias="$here/b1.npy" y="$work/hidden.npy" "$@"
layer dense x="$work/hidden.npy" weight="$here/w2.npy" bias="$here/b2.npy" y="$work/score.npy" "$@"
layer softmax x="$work/score.npy" y="$work/probability.npy" "$@"
layer argmax_rows x="$work/probability.npy" digit="$work/digit.npy" "$@"
"$tilec" run -q "$here/digits.tile:count_equal" digit="$work/digit.npy" label="$here/labels.npy[1200:]" count="$work/count.npy" "$@"

seconds_per_run=$(awk '{ sum += $1 } END { print sum * 1e-6 }' "$work/times")
correct=$(numbers "$work/count.npy" 8 | od -An -t d8 | tr -d ' ')
expected=$(cat "$here/expected.txt")
echo "accuracy: $correct of $images held-out images right ($(awk "BEGIN { printf \"%.2f\", 100 * $correct / $images }") %); NumPy: $expected"
echo "throughput: $(awk "BEGIN { printf \"%.0f\", $images / $seconds_per_run }") images/s"
[ "$correct of $images" = "$expected" ] || { echo "run.sh: the count differs from NumPy's" >&2; exit 1; }

numbers "$work/digit.npy" $((8 * images)) >"$work/digit"
numbers "$here/predicted.npy" $((8 * images)) | cmp - "$work/digit" ||
    { echo "run.sh: a digit differs from NumPy's" >&2; exit 1; }
