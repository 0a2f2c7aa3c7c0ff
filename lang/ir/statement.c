#include "lang/ir/statement.h"

#include <string.h>

const char *tile_statement_names(const char *text) {
    const char *open = strchr(text, '(');
    return open ? open + 1 : text;
}

bool tile_statement_next(const char **rest, TileStatementName *name) {
    const char *at = *rest;
    size_t length = strcspn(at, ".,)");
    if (!length || !at[length]) {
        if (!length && strcmp(at, ")") == 0) *rest = "";
        return false;
    }
    *name = (TileStatementName){.text = at, .length = length, .operands = 1};
    at += length;
    if (at[0] == '.' && at[1] == '.') {
        name->is_range = true;
        name->operands = TILE_STATEMENT_RANGE_COUNT;
        at += 2;
    }
    if (at[0] == ',' && at[1] == ' ')
        at += 2;
    else if (at[0] != ')')
        return false;
    *rest = at;
    return true;
}
