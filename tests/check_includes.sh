#!/bin/sh
# Folders include only downward: base, lang/scalar, lang/affine, lang and launch, parser and lowering and mlir_bridge,
# cpu and ptx, driver, tools. Only mlir_bridge includes MLIR or LLVM headers. And kinds of targets are read in few places
# only.
set -eu
cd "$(dirname "$0")/.."
failed=0

# allow FOLDER OTHERS..: FOLDER may include headers of itself, of include/, and of OTHERS, with the rooms in them.
allow() {
    folder=$1
    shift
    may="^($folder|tile$(printf '|%s' "$@"))(/|\$)"
    for file in $(find "$folder" -name '*.[ch]' -o -name '*.cc' -o -name '*.def' -o -name '*.re' | sort); do
        sed -n 's/^ *# *include *"\([^"]*\)\/[^"/]*".*/\1/p' "$file" | sort -u | while read -r used; do
            echo "$used" | grep -qE "$may" || echo "$file: $folder must not include $used/"
        done
    done
}

report=$(
    allow include
    allow base
    allow lang/scalar base
    allow lang/affine lang/scalar base
    allow lang base
    allow launch lang/scalar base
    allow parser lang base
    allow lowering lang base
    allow mlir_bridge lang base mlir-c llvm-c mlir llvm
    allow cpu lowering lang base
    allow ptx lowering lang base
    allow driver ptx cpu mlir_bridge lowering parser launch lang base
    allow tools driver ptx cpu mlir_bridge lowering parser launch lang base
    grep -rnE '# *include *[<"](mlir|llvm)(-c)?/' --include='*.[ch]' --include='*.cc' --include='*.re' \
        include base lang launch parser lowering cpu ptx driver tools |
        sed 's/$/   (only mlir_bridge may include MLIR and LLVM)/'
    # A target's kind is written down in its table and read by what finds its family's struct of behaviour.
    grep -rnE 'TILE_TARGET_(CPU|GPU)|(->|\.)kind [!=]= TILE_TARGET' --include='*.[ch]' \
        base lang launch parser lowering cpu ptx mlir_bridge driver tools |
        grep -vE '^(lang/target\.h|(cpu|ptx)/(target|pipeline)\.c|mlir_bridge/export_(family|gpu)\.c):' |
        sed 's/$/   (a question about a target is a member of driver\/backend.h or a fact of lang\/target.h)/'
) || failed=$?
if [ -n "$report" ]; then
    echo "$report"
    exit 1
fi
echo "includes go downward only, and kinds of targets are asked for where structs of behaviour are"
