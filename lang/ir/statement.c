#include "lang/ir/statement.h"

static bool is_range(const TileOp *statement, uint32_t index) {
    const TileAttribute *ranges = tile_op_get(statement, TILE_ATTRIBUTE_RANGES);
    for (uint32_t i = 0; ranges && i < ranges->count; i++)
        if (ranges->integers[i] == index) return true;
    return false;
}

TileStatementName tile_statement_next(const TileOp *statement, const TileStatementName *last) {
    const TileAttribute *names = tile_op_get(statement, TILE_ATTRIBUTE_NAMES);
    TileStatementName name = {.operand = last->operand + last->operands, .index = last->text ? last->index + 1 : 0};
    if (name.index >= names->count) return name;
    name.text = names->texts[name.index];
    name.is_range = is_range(statement, name.index);
    name.operands = name.is_range ? TILE_STATEMENT_RANGE_COUNT : 1;
    return name;
}
