/* Type rules of ops.def: each infers result types (those that are NULL) and checks the others. Private to lang/. */
#ifndef TILE_LANG_IR_RULES_H
#define TILE_LANG_IR_RULES_H

#include "lang/ir/ir.h"

typedef struct TileRule {
    TileModule *module;
    const TileOp *op;
    const TileType **result; /* result_count entries; NULL: to be inferred */
} TileRule;

/* NULL, or what is wrong. */
typedef const char *(*TileRuleFunction)(const TileRule *rule);

#define OP(id, mnemonic, class, operands, results, regions, forms, traits, rule, attributes, doc)                      \
    const char *tile_rule_##rule(const TileRule *r);
#include "lang/ir/ops.def"
#undef OP

static inline const TileType *tile_rule_operand(const TileRule *r, unsigned index) {
    return r->op->operands[index].value->type;
}
/* Infers or compares result `index`. */
const char *tile_rule_result(const TileRule *r, unsigned index, const TileType *type);
/* A formatted complaint, in the module's arena. */
const char *tile_rule_complain(const TileRule *r, const char *format, ...) TILE_PRINTF(2, 3);
bool tile_rule_is_i64(const TileType *type);
bool tile_rule_is_bool(const TileType *type);

#endif
