#!/bin/sh
# Manual page, completions and installation: all from the command table.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2

"$tilec" man >tilec.1 2>&1
checks=$((checks + 1))
diff -u "$source_directory/docs/tilec.1" tilec.1 >"$work/output" || complain 'docs/tilec.1 is out of date: tilec man > docs/tilec.1'
if command -v groff >/dev/null; then
    expect 0 '' groff -man -Tutf8 -ww -z tilec.1
    [ ! -s "$work/output" ] || complain 'groff finds fault with the manual page'
fi

# Every command and option of the help is in all of them.
"$tilec" help | sed -n 's/^  \([a-z]*\) .*/\1/p' | grep -v tilec >commands
for shell in bash zsh fish; do
    "$tilec" completions $shell >completions.$shell 2>&1
    command -v $shell >/dev/null && expect 0 '' $shell -n completions.$shell
done
while read -r name; do
    "$tilec" help "$name" >help
    expect 0 '' grep -qx "## tilec $name" "$source_directory/docs/cli.md"
    for file in tilec.1 completions.bash completions.zsh completions.fish; do expect 0 '' grep -qw -e "$name" $file; done
    sed -n 's/^  \(-[-A-Za-z]*\).*/\1/p' help | while read -r option; do
        grep -qF -e "$option" completions.bash && grep -qF -e "$option" completions.zsh &&
            grep -qE -e "-[los] $(echo "$option" | sed 's/^-*//') " completions.fish &&
            grep -qF -e "$(echo "$option" | sed 's/-/\\-/g')" tilec.1 || echo "$name $option"
    done
done <commands >"$work/output"
checks=$((checks + 1))
[ ! -s "$work/output" ] || complain 'these options are missing somewhere'

# What bash completes. `complete` gives the words of a command line as bash cuts them, and prints the answers.
cat >try.bash <<'END'
source ./completions.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_tilec
printf '%s\n' "${COMPREPLY[@]}"
END
touch kernel.tile other.txt
mkdir folder
complete() {
    wanted=$1
    shift
    checks=$((checks + 1))
    bash try.bash tilec "$@" >"$work/output" 2>&1
    [ "$(sort "$work/output" | tr '\n' ' ')" = "$wanted " ] || complain "tilec $*: expected '$wanted'"
}
if command -v bash >/dev/null; then
    complete 'build' bu
    complete 'folder kernel.tile' check ''
    complete '--check' run --ch
    complete '--check' -q fmt --ch
    complete 'avx2 avx512 avx512bf16 avx512vnni' run --target = avx
    complete 'avx2,interp' test --target = avx2,int
    complete 'json text' run --error-format = ''
    complete 'asm ast' emit a
    complete 'kernel.tile' emit asm k
    complete 'split-loops' emit tile kernel.tile --after = spl
    complete 'other.txt' doc kernel.tile -o oth
    complete 'zsh' completions z
fi
expect 1 'bash, zsh or fish' "$tilec" completions
expect 1 'bash, zsh or fish' "$tilec" completions csh
expect 1 'takes no arguments' "$tilec" man run

# Installed, it runs from anywhere, with all that it needs.
expect 0 '' cmake --install "${TILE_BINARY_DIR:?}" --prefix "$work/prefix" --component programs
for file in bin/tilec share/man/man1/tilec.1 share/bash-completion/completions/tilec share/zsh/site-functions/_tilec \
    share/fish/vendor_completions.d/tilec.fish; do
    expect 0 '' test -s "prefix/$file"
done
expect 0 '' cmp prefix/share/bash-completion/completions/tilec completions.bash
expect 0 '' cmp prefix/share/zsh/site-functions/_tilec completions.zsh
expect 0 '' cmp prefix/share/fish/vendor_completions.d/tilec.fish completions.fish
expect 0 '' test -f prefix/share/tile/editors/neovim/lua/tile.lua
expect 0 '' test -f prefix/share/tile/editors/vscode/package.json
mkdir empty
cd empty || exit 2
echo 'import math
kernel k[T: f16 | f32](x: in T[N], y: out T[N]) { grid n in tiles(N, 64) { y[n] = math.square(x[n]) } }' >../k.tile
expect 0 'bit for bit' "$work/prefix/bin/tilec" run ../k.tile x=rand:f32[1000] y=@ --check
expect 0 'bit for bit' "$work/prefix/bin/tilec" run ../prefix/share/tile/stdlib/softmax.tile:softmax x=rand:f32[5,70] y=@ --check
expect 0 '' ls -A
[ ! -s "$work/output" ] || complain 'it leaves files behind'
finish
