/* The mapping table has every op of machine form once, and no op that is of tile form only. */
#include "support.h"

Test(mapping, covers_machine_form) {
    unsigned rows[TILE_OP_COUNT] = {0};
#define DIRECT(id, float_name, signed_name, unsigned_name, bool_name) rows[TILE_OP_##id]++;
#define COMPARE(id, float_predicate, signed_predicate, unsigned_predicate) rows[TILE_OP_##id]++;
#define CUSTOM(id, function) rows[TILE_OP_##id]++;
#define GONE(id, pass) rows[TILE_OP_##id]++;
#include "mlir_bridge/mapping.def"
#undef DIRECT
#undef COMPARE
#undef CUSTOM
#undef GONE
    for (int id = 0; id < TILE_OP_COUNT; id++) {
        unsigned expected = tile_op_info((TileOpId)id)->forms & TILE_FORM_MACHINE ? 1 : 0;
        cr_expect_eq(rows[id], expected, "%s has %u rows in mapping.def, expected %u",
                     tile_op_info((TileOpId)id)->mnemonic, rows[id], expected);
    }
}
