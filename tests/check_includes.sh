#!/bin/sh
# Rooms include only downward. The list below is in that order: the rooms that a room may include are above it in the list.
# Only mlir_bridge includes MLIR or LLVM headers. Kinds of targets are read in few places only.
set -eu
cd "$(dirname "$0")/.."
failed=0
known=" "

# allow ROOM OTHERS..: files of ROOM, except those of its subfolders, may include headers of it, of include/, and of OTHERS.
# Each of OTHERS is a room that is above it, so there is no cycle, or the folder of a foreign library.
allow() {
    room=$1
    shift
    for other in "$@"; do
        case "$known mlir-c mlir llvm-c llvm " in
        *" $other "*) ;;
        *) echo "$room: $other is not a room that stands above it in tests/check_includes.sh" ;;
        esac
    done
    known="$known$room "
    may="^($room|tile$(printf '|%s' "$@"))\$"
    foreign="^(mlir|llvm)(-c)?/"
    for file in $(find "$room" -maxdepth 1 -name '*.[ch]' -o -maxdepth 1 -name '*.cc' -o -maxdepth 1 -name '*.def' \
        -o -maxdepth 1 -name '*.re' | sort); do
        sed -n 's/^ *# *include *"\([^"]*\)\/[^"/]*".*/\1/p' "$file" | sort -u | while read -r used; do
            case " $* " in *" mlir "*) if echo "$used/" | grep -qE "$foreign"; then continue; fi ;; esac
            echo "$used" | grep -qE "$may" || echo "$file: $room must not include $used/"
        done
    done
}

# every room has a row
rooms() {
    for room in $(find include base lang launch parser lowering cpu ptx object mlir_bridge driver lsp tools -name '*.[ch]' |
        sed 's#/[^/]*$##' | sort -u); do
        case "$known" in *" $room "*) ;; *) echo "$room: no row in tests/check_includes.sh" ;; esac
    done
}

report=$(
    known="$known include include/tile "
    allow base
    allow lang/scalar base
    allow lang/affine base lang/scalar
    allow lang/layout base
    allow lang/ir base lang/scalar lang/layout
    allow lang/index base lang/scalar lang/affine lang/ir
    allow lang/execute base lang/scalar lang/layout lang/ir
    allow launch base lang/scalar
    allow parser/syntax base lang/scalar
    allow parser/check base lang/scalar lang/affine lang/ir parser/syntax
    allow lowering base lang/scalar lang/ir lang/index
    allow cpu base lang/scalar lang/ir lang/index lowering
    allow ptx/target base lang/layout lang/ir lowering
    allow ptx lowering ptx/target
    allow ptx/layouts base lang/layout lang/ir lang/index lowering ptx/target ptx
    allow ptx/grid base lang/scalar lang/ir lang/index lowering ptx/target ptx/layouts ptx
    allow ptx/pipeline base lang/scalar lang/ir lang/index lowering ptx/target ptx
    allow ptx/model base lang/scalar lang/layout lang/ir lowering ptx/target ptx/layouts ptx/pipeline ptx
    allow ptx/lowering base lang/scalar lang/layout lang/ir lowering ptx/target ptx/layouts ptx/grid ptx/pipeline ptx
    allow object base
    allow mlir_bridge base lang/scalar lang/ir object mlir-c mlir llvm-c llvm
    allow driver/cache base launch
    allow driver/compile base lang/scalar lang/ir lang/execute launch parser/syntax parser/check lowering cpu ptx \
        object mlir_bridge driver/cache
    allow driver/ahead base lang/scalar lang/ir launch parser/syntax object mlir_bridge driver/compile
    allow driver/api base lang/scalar lang/ir launch driver/compile
    allow lsp base lang/scalar parser/syntax parser/check driver/compile
    allow tools base lang/scalar lang/layout lang/ir lang/execute launch parser/syntax parser/check lowering cpu ptx \
        object mlir_bridge driver/cache driver/compile driver/ahead driver/api lsp
    rooms
    grep -rnE '# *include *[<"](mlir|llvm)(-c)?/' --include='*.[ch]' --include='*.cc' --include='*.re' \
        include base lang launch parser lowering cpu ptx object driver lsp tools |
        sed 's/$/   (only mlir_bridge may include MLIR and LLVM)/'
    # A target's kind is written in the tables of targets, and read where its family's struct of behaviour is selected.
    grep -rnE 'TILE_TARGET_(CPU|GPU)|(->|\.)kind [!=]= TILE_TARGET' --include='*.[ch]' \
        base lang launch parser lowering cpu ptx object mlir_bridge driver lsp tools |
        grep -vE '^(lang/ir/target\.h|cpu/(target|family)\.c|ptx/(family|target/target)\.c|mlir_bridge/export_(family|gpu)\.c):' |
        sed 's/$/   (a question about a target is a member of driver\/backend.h or a fact of lang\/target.h)/'
) || failed=$?
if [ -n "$report" ]; then
    echo "$report"
    exit 1
fi
echo "includes go downward only, and kinds of targets are asked for where structs of behaviour are"
