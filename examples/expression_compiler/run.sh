#!/bin/sh
# Runs the example's programs at several sizes, and shows what mistakes give.
# usage: run.sh [PROGRAM]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../../build/release/bin/expression_compiler}
said=${TMPDIR:-/tmp}/expression.$$
trap 'rm -f "$said"' EXIT
for file in layer softmax_parts normalise; do
    for size in 'M=0 N=257' 'M=7 N=0' 'M=7 N=1' 'M=7 N=255' 'M=7 N=256' 'M=7 N=257' 'M=1 N=1000'; do
        # shellcheck disable=SC2086
        "$program" "$here/$file.expr" $size >"$said" || { cat "$said"; echo "$file with $size"; exit 1; }
    done
    cat "$said"
done
"$program" "$here/layer.expr" --print | grep -c store_tile
mistake() { # mistake TEXT MESSAGE
    printf '%b' "$1" >"$said"
    message=$("$program" "$said" 2>&1 || true)
    case $message in *"$2"*) ;; *) echo "'$2' is not in: $message"; exit 1 ;; esac
}
mistake 'in x[N]\ny = x + z\n' '2:10: nothing is called z'
mistake 'in x[N], y[M]\nz = x + y\n' 'y does not fit: M is not N'
mistake 'in x[N]\ny = exp(x\n' "2:10: expected ')'"
mistake 'in x[N]\ny = sum(x) + 1\n' 'expected the end of the line'
mistake 'in x[N]\ns = sum(x)\ny = x + s\n' 's is reduced, and a result only'
mistake 'in x[N]\n' 'the program computes nothing'
echo "all agree"
