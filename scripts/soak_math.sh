#!/bin/sh
# Every f32 argument of every transcendental function against the C library in double, one function at a time: about
# two minutes each on one core. Prints the table of docs/math.md. A step other than 1 takes a sample.
# Then the functions of two arguments on ten million pairs. usage: soak_math.sh [STEP]
set -eu
cd "$(dirname "$0")/.."
step=${1:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -std=gnu17 -O2 -march=native -ffp-contract=off -fno-math-errno -I. -Iinclude tests/soak_math.c lang/scalar/math.c \
    -o "$work/soak_math" -lm
status=0
for name in rsqrt exp exp2 expm1 log log2 log1p sin cos tan tanh erf sigmoid \
    asin acos atan sinh cosh asinh acosh atanh cbrt erfc erfinv lgamma; do
    "$work/soak_math" "$name" "$step" || status=1
done
for name in exp exp2 log log2 sin cos tanh erf sigmoid; do
    "$work/soak_math" "$name" approx "$step" || status=1
done
for name in pow atan2 hypot fmod; do "$work/soak_math" "$name" 10000000 || status=1; done
exit $status
