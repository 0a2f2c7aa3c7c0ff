#!/bin/sh
# tilec debug: scripts of commands; what it stops at, prints and refuses; the values are those of a run.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2

cat >few.tile <<'END'
fn scaled(v: f32, k: f32) -> f32 {
    if v < 0 { return 0 }
    let w = v * k
    return w
}

fn total(v: f32[B]) -> f32 {
    var s = f32(0)
    s = sum(v)
    return s
}

kernel few(x: in f32[N], y: out f32[N], k: f32) {
    grid n in tiles(N, 4) {
        let v = x[n]
        let w = scaled(v, k)
        var i = 0
        var acc = f32(0)
        while i < 3 {
            if i == 1 { acc = acc + total(w) } else { acc = acc - 1 }
            i = i + 1
        }
        static for j in 0..2 { let i = f32(j); acc = acc + acc * i }
        assert(acc < 100)
        y[n] = w + acc
    }
}

kernel sums(x: in f32[M, N], y: inout f32[M, N], z: out f32[M, N]) {
    temp both: f32[M, N]
    grid (m, n) in (tiles(M, 2), tiles(N, 4)) {
        both[m, n] = x[m, n] + 1
    }
    grid (m, n) in (tiles(M, 2), N) {
        y[m, n] += both[m, n]
        z[m, n] = both[m, n]
    }
}
END

# says 'COMMAND..' 'lines' ARGUMENT..: the commands, one on each line, print just the lines.
says() {
    commands=$1
    wanted=$2
    shift 2
    checks=$((checks + 1))
    printf '%s\n' "$commands" | "$tilec" debug "$@" >"$work/output" 2>&1
    printf '%s\n' "$wanted" >"$work/wanted"
    diff "$work/wanted" "$work/output" >"$work/difference" && return
    cp "$work/difference" "$work/output"
    complain "other lines than expected: $commands"
}

arguments='few.tile:few x=arange:f32[6] y=@ k=2'

# Steps go into functions, `next` does not; loops come back; names are those of the function.
says 'next 2
step
where
print v
frame 1
print n
finish' 'few at few.tile:15, program 0 of 2
>   15          let v = x[n]
few at few.tile:17, program 0 of 2
>   17          var i = 0
few at few.tile:18, program 0 of 2
>   18          var acc = f32(0)
#0 few at few.tile:18, program 0 of 2
v: f32[4] = 0.0 1.0 2.0 3.0
there is no frame 1; `where` lists them
n: range = 0 .. 3, 4 of 4
this is the kernel itself: `continue` goes on to a breakpoint' $arguments
says 'step
step
where
print v
frame 1
print w
print n
frame 0
finish' 'few at few.tile:15, program 0 of 2
>   15          let v = x[n]
few at few.tile:16, program 0 of 2
>   16          let w = scaled(v, k)
scaled at few.tile:2, program 0 of 2
>    2      if v < 0 { return 0 }
#0 scaled at few.tile:2
#1 few at few.tile:16, program 0 of 2
v: f32[4] = 0.0 1.0 2.0 3.0
#1 few at few.tile:16, program 0 of 2
>   16          let w = scaled(v, k)
nothing is called '"'w'"' here; `locals` lists what is
n: range = 0 .. 3, 4 of 4
#0 scaled at few.tile:2
>    2      if v < 0 { return 0 }
few at few.tile:17, program 0 of 2
>   17          var i = 0' $arguments

# Breakpoints: a line without a statement stands for the next one; a function; another iteration, another program.
says 'break 22
break total
break few.tile:21
break
delete 3
continue
where
finish
delete
continue' 'few at few.tile:15, program 0 of 2
>   15          let v = x[n]
breakpoint 1 at few.tile:23
breakpoint 2 at few.tile:8
breakpoint 3 at few.tile:21
1: stops at few.tile:23
2: stops at few.tile:8
3: stops at few.tile:21
breakpoint 2, total at few.tile:8, program 0 of 2
>    8      var s = f32(0)
#0 total at few.tile:8
#1 few at few.tile:20, program 0 of 2
few at few.tile:21, program 0 of 2
>   21              i = i + 1
the kernel has ended' $arguments

# A lane beyond the range has no value; an inner name hides an outer one, and no longer behind its scope.
says 'break 24
program 1
continue
print v
print n
print w[1:]
print w[0]
print i
step 2
print y' 'few at few.tile:15, program 0 of 2
>   15          let v = x[n]
breakpoint 1 at few.tile:24
few at few.tile:15, program 1 of 2
>   15          let v = x[n]
breakpoint 1, few at few.tile:24, program 1 of 2
>   24          assert(acc < 100)
v: f32[4] = 4.0 5.0 - -
n: range = 4 .. 5, 2 of 4
w[1:]: f32[3] = 10.0 - -
w[0]: f32 = 8.0
i: i64 = 3
few at few.tile:26, program 1 of 2
>   26      }
y: f32[6] = 20.0 22.0 24.0 26.0 40.0 42.0' $arguments
says 'break 23
continue
step
print i
step
print i' 'few at few.tile:15, program 0 of 2
>   15          let v = x[n]
breakpoint 1 at few.tile:23
breakpoint 1, few at few.tile:23, program 0 of 2
>   23          static for j in 0..2 { let i = f32(j); acc = acc + acc * i }
few at few.tile:23, program 0 of 2
>   23          static for j in 0..2 { let i = f32(j); acc = acc + acc * i }
i: i64 = 3
few at few.tile:23, program 0 of 2
>   23          static for j in 0..2 { let i = f32(j); acc = acc + acc * i }
i: f32 = 0.0' $arguments
checks=$((checks + 1))
"$tilec" run $arguments >"$work/output" 2>&1
grep -qF 'y: f32[6] = 20 22 24 26 40 42' "$work/output" || complain "a run has other results than the debugger"

# Watches: a variable of the kernel, not of a function; elements of a result.
says 'next 4
watch acc
continue
continue
delete
watch y[4:]
continue' 'few at few.tile:15, program 0 of 2
>   15          let v = x[n]
few at few.tile:19, program 0 of 2
>   19          while i < 3 {
watch 1 of acc
watch 1: acc: f32 = 0.0
is now
acc: f32 = -1.0
few at few.tile:21, program 0 of 2
>   21              i = i + 1
watch 1: acc: f32 = -1.0
is now
acc: f32 = 11.0
few at few.tile:21, program 0 of 2
>   21              i = i + 1
watch 2 of y[4:]
watch 2: y[4:]: f32[2] = 0.0 0.0
is now
y[4:]: f32[2] = 40.0 42.0
few at few.tile:26, program 1 of 2
>   26      }' $arguments

# Programs of several axes and of several grids; a temporary that is not stored whole yet; shapes.
says 'print both
program 1, 1
print m
program
next
print both[:, 3:]
program all
break 35
continue
program
print n
print both[1:3, 4]
print both[1, 4]' 'sums at few.tile:32, program (0, 0) of (2, 2)
>   32          both[m, n] = x[m, n] + 1
both: f32[3, 5] =
  [0] - - - - -
  [1] - - - - -
  [2] - - - - -
sums at few.tile:32, program (1, 1) of (2, 2)
>   32          both[m, n] = x[m, n] + 1
m: range = 2 .. 2, 1 of 2
program (1, 1) of (2, 2), and stops in no other one
sums at few.tile:33, program (1, 1) of (2, 2)
>   33      }
both[:, 3:]: f32[3, 2] =
  [0] 4.0 5.0
  [1] 9.0 10.0
  [2] 14.0 15.0
program (1, 1) of (2, 2)
breakpoint 1 at few.tile:35
breakpoint 1, sums at few.tile:35, program (0, 0) of (2, 5)
>   35          y[m, n] += both[m, n]
program (0, 0) of (2, 5)
n: i64 = 0
both[1:3, 4]: f32[2] = 10.0 15.0
both[1, 4]: f32 = 10.0' few.tile:sums x=arange:f32[3,5] y=ones:f32[3,5] z=@

# The program that was chosen on the command line; commands there; what fails can be looked at.
expect 0 'few at few.tile:15, program 1 of 2' "$tilec" debug $arguments --program=1 --command=quit
expect 0 'x[5]: f32 = 5.0' "$tilec" debug $arguments --command='print x[5]' --command=continue
expect 0 'the kernel has ended, and stopped nowhere' "$tilec" debug $arguments --program=7
expect 1 'few at few.tile:24, program 0 of 2' "$tilec" debug few.tile:few x=arange:f32[6] y=@ k=99 --command=continue
expect 1 'acc: f32 = 1184.0' "$tilec" debug few.tile:few x=arange:f32[6] y=@ k=99 --command=c --command='p acc' --command=c
expect 1 'it goes no further' "$tilec" debug few.tile:few x=arange:f32[6] y=@ k=99 --command=c --command=c
expect 1 'assertion failed: acc < 100, where acc = 1184' "$tilec" debug few.tile:few x=arange:f32[6] y=@ k=99 --command=c

# Mistakes.
expect 1 "there is no command 'bogus'" "$tilec" debug $arguments --command=bogus
expect 1 "nothing is called 'nonesuch' here" "$tilec" debug $arguments --command='print nonesuch'
expect 1 'x has 1 axis, of 6 elements' "$tilec" debug $arguments --command='print x[6]'
expect 1 'x has 1 axis, of 6 elements' "$tilec" debug $arguments --command='print x[0, 0]'
expect 1 'k has 0 axes' "$tilec" debug $arguments --command='print k[0]'
expect 1 'no statement of a grid stands at or behind line 90 of few.tile' "$tilec" debug $arguments --command='break 90'
expect 1 "no function that this kernel calls is 'nonesuch'" "$tilec" debug $arguments --command='break nonesuch'
expect 1 'there is no breakpoint or watch 3' "$tilec" debug $arguments --command='delete 3'
expect 1 "'x' is no program" "$tilec" debug $arguments --command='program x'
expect 1 'the debugger runs the reference interpreter' "$tilec" debug $arguments --target=cpu
expect 1 "no value for 'x'" "$tilec" debug few.tile:few
expect 1 'few.tile has 2 kernels' "$tilec" debug few.tile
expect 0 'finish, f' "$tilec" debug $arguments --command=help
expect 0 '>   15          let v = x[n]' "$tilec" debug $arguments --command='list 18'

# An extent that a function with a loop gives is as constant here as anywhere: its statements are not stopped at.
cat >power.tile <<'END'
fn power(n: i64) -> i64 {
    var p = 1
    while p < n { p *= 2 }
    return p
}
kernel padded(x: in f32[N], y: out f32[N]) static N {
    grid one in 1 { y[span(0..N, power(N))] = x[span(0..N, power(N))] }
}
END
expect 0 'padded at power.tile:7' "$tilec" debug power.tile:padded x=arange:f32[5] y=@ --command='step'
expect 0 'the kernel has ended' "$tilec" debug power.tile:padded x=arange:f32[5] y=@ --command=continue

# Other targets erase the statements.
cat >seen.tir <<'END'
func kernel tile @seen(%y: tensor<f32, 1, out>) {
  %N = dim %y {axis = 0} : i64
  grid %N (%n: i64) {
    %one = const {value = 1.0} : f32
    statement %N, %n, %one, %y {text = "seen", names = ["N", "n", "one", "y"], depth = 0}
    store_tile %y, %one, %n {access = [index]}
    yield
  }
  return
}
END
expect 0 'equal to the reference' "$tilec" run seen.tir y=@:f32[5] --check
expect 1 'one: f32 = 1.0' "$tilec" debug seen.tir y=@:f32[5] --command='p one' --command=nonesuch
finish
