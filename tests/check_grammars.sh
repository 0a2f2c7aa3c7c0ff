#!/bin/sh
# The grammars of editors have the words of the language, as `tilec help words` prints them from the compiler's tables; and the
# words that the parser asks for by name are in that list, but for those of other languages (parse_foreign.c and
# tile_parse_at_foreign).
set -eu
cd "${TILE_SOURCE_DIR:?names the source tree}"
[ -x "${TILEC:?names the compiler}" ] || { echo "there is no $TILEC"; exit 1; }
words=$("$TILEC" help words | sed -n 's/^words with a meaning in some places://p')
failed=0
for word in $(grep -ohE '(at_word\(parser, |strcmp\((ref|word)\.name, )"[a-z]+"' $(ls parser/syntax/parse*.c | grep -v parse_foreign) | grep -oE '"[a-z]+"' | tr -d '"' |
    sort -u); do
    case "$words " in *" $word "*) ;; *) echo "the parser knows '$word', TILE_PLACE_WORD_LIST does not"; failed=1 ;; esac
done
python3 editors/write_grammars.py "$TILEC" --check || failed=1
exit $failed
