/* The newline that ends a statement. The parser asks for it only where a statement may end, so all that is left to see
 * is whether there is one before the next token, comments aside, and that this token is no `else`, before which
 * newlines do not count. */
#include <tree_sitter/parser.h>
#include <wctype.h>

enum { NEWLINE };

void *tree_sitter_tile_external_scanner_create(void) { return NULL; }
void tree_sitter_tile_external_scanner_destroy(void *state) { (void)state; }
unsigned tree_sitter_tile_external_scanner_serialize(void *state, char *buffer) {
    (void)state;
    (void)buffer;
    return 0;
}
void tree_sitter_tile_external_scanner_deserialize(void *state, const char *buffer, unsigned length) {
    (void)state;
    (void)buffer;
    (void)length;
}

static void skip_line(TSLexer *lexer) {
    while (lexer->lookahead != '\n' && !lexer->eof(lexer)) lexer->advance(lexer, false);
}

/* Behind `/ *`; true if there is a newline in the comment. */
static bool skip_block(TSLexer *lexer) {
    bool found = false;
    for (int32_t last = 0; !lexer->eof(lexer) && !(last == '*' && lexer->lookahead == '/');) {
        last = lexer->lookahead;
        found |= last == '\n';
        lexer->advance(lexer, false);
    }
    lexer->advance(lexer, false);
    return found;
}

static bool at_else(TSLexer *lexer) {
    for (const char *word = "else"; *word; word++) {
        if (lexer->lookahead != *word) return false;
        lexer->advance(lexer, false);
    }
    return !iswalnum((wint_t)lexer->lookahead) && lexer->lookahead != '_';
}

/* The token is the newline, or nothing in front of a comment: comments are tokens of their own. */
bool tree_sitter_tile_external_scanner_scan(void *state, TSLexer *lexer, const bool *valid) {
    (void)state;
    bool found = false, marked = false;
    if (!valid[NEWLINE]) return false;
    lexer->result_symbol = NEWLINE;
    lexer->mark_end(lexer);
    while (!lexer->eof(lexer)) {
        if (lexer->lookahead == '/') {
            marked = true;
            lexer->advance(lexer, false);
            if (lexer->lookahead == '/')
                skip_line(lexer);
            else if (lexer->lookahead == '*')
                found |= skip_block(lexer);
            else
                return found;
        } else if (iswspace((wint_t)lexer->lookahead)) {
            bool newline = lexer->lookahead == '\n';
            lexer->advance(lexer, !found && !marked);
            if (newline && !found && !marked) lexer->mark_end(lexer);
            found |= newline;
        } else {
            break;
        }
    }
    return found && !at_else(lexer);
}
