#!/bin/sh
# Programs that were once compiled wrongly: each file of tests/regressions has commands in its comments, with the expected
# output.
#
#     // $ run :kernel x=ones:f32[5] y=@        the file stands behind the command; `:kernel` may be left out
#     // $ emit ptx FILE --target=sm_80         or where FILE is
#     //> y: f32[5] = 1 1 1 1 1                 each such line has to be in what is printed
#     // $ fails check                          status 1, a mistake of the user's, instead of 0
#
# A run without a target is done by the interpreter, by each target of this machine, including its GPU, and by the emulated
# GPUs.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2

targets="interp avx2"
grep -q avx512f /proc/cpuinfo 2>/dev/null && targets="$targets avx512"
"$tilec" backends | grep -q '^cuda *yes' && targets="$targets cuda"

# run_case FILE STATUS COMMAND ARGUMENTS..: each line of the file `lines` is in the command's output.
run_case() {
    program=$1 wanted_status=$2 command=$3
    shift 3
    case ${1-} in
    :*)
        program=$program$1
        shift
        ;;
    esac
    case " $* " in
    *' FILE '*)
        for argument; do
            shift
            [ "$argument" != FILE ] || argument=$program
            set -- "$@" "$argument"
        done
        ;;
    *) set -- "$program" "$@" ;;
    esac
    expect "$wanted_status" '' timeout 60 "$tilec" "$command" "$@"
    while IFS= read -r line; do
        grep -qF -e "$line" "$work/output" || complain "no '$line' in what this prints: $command $*"
    done <lines
}

# on_each_target FILE STATUS COMMAND ARGUMENTS..
on_each_target() {
    case "$3 $*" in
    *--target=*) run_case "$@" ;;
    run\ *)
        for target in $targets; do run_case "$@" --target="$target"; done
        for target in sm_80 sm_90a; do
            run_case "$@" --target=$target --emulate
            run_case "$@" --target=$target --emulate --mark-padding
        done
        ;;
    *) run_case "$@" ;;
    esac
}

# finish_case FILE: runs the command that was read last, if there is one.
finish_case() {
    [ -n "$case" ] || return 0
    status=0
    case $case in fails\ *) status=1 case=${case#fails } ;; esac
    eval "on_each_target \"\$1\" $status $case"
    case=
}

for file in "$source_directory"/tests/regressions/*.tile; do
    case=
    cases=0
    : >lines
    while IFS= read -r comment; do
        case $comment in
        '// $ '*)
            finish_case "$file"
            case=${comment#'// $ '}
            cases=$((cases + 1))
            : >lines
            ;;
        '//> '*) printf '%s\n' "${comment#'//> '}" >>lines ;;
        esac
    done <"$file"
    finish_case "$file"
    [ $cases != 0 ] || { : >"$work/output"; complain "$file runs nothing"; }
done
finish
