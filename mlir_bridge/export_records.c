/* Failed assertions and prints of programs on GPUs: stores to the records of a launch (base/records.h). */
#include "base/records.h"
#include "lang/ir/assertion.h"
#include "mlir_bridge/export.h"

/* ---- addresses ---- */

static MlirValue wide(Exporter *exporter, int64_t number) {
    return export_constant(exporter, scalar_of(exporter, TILE_I64), export_integer(exporter, TILE_I64, number));
}

static MlirValue word_at(Exporter *exporter, MlirValue offset) {
    return export_offset_pointer(exporter, exporter->bridge->gpu_pointers[BRIDGE_GLOBAL], exporter->records, offset);
}

static MlirNamedAttribute aligned(Exporter *exporter) {
    return named(exporter, NAME_ALIGNMENT, export_integer(exporter, TILE_I64, 8));
}

/* ---- atomic updates by threads of several blocks ---- */

static MlirValue add_to_word(Exporter *exporter, int64_t offset, MlirValue more) {
    return export_relaxed_add(exporter, word_at(exporter, wide(exporter, offset)), more);
}

static MlirValue swap_word(Exporter *exporter, int64_t offset, MlirValue expected, MlirValue word) {
    return export_relaxed_swap(exporter, word_at(exporter, wide(exporter, offset)), expected, word);
}

static MlirValue is_equal(Exporter *exporter, MlirValue x, MlirValue y) {
    return export_compare(exporter, false, ICMP_EQ, scalar_of(exporter, TILE_BOOL), x, y);
}

static MlirValue select_word(Exporter *exporter, MlirValue condition, MlirValue x, MlirValue y) {
    return export_build(exporter, "llvm.select", scalar_of(exporter, TILE_I64), VALUES(condition, x, y), NO_ATTRIBUTES);
}

static MlirValue binary(Exporter *exporter, const char *name, MlirValue x, MlirValue y) {
    return export_build(exporter, name, scalar_of(exporter, TILE_I64), VALUES(x, y), NO_ATTRIBUTES);
}

/* A block claims the records of assertions: only the first one to do so reports. Returns the old owner: 0, or the
 * block that was first. */
static MlirValue claim(Exporter *exporter, MlirValue *own) {
    *own = binary(exporter, "llvm.add", export_block_index(exporter), wide(exporter, 1));
    return swap_word(exporter, TILE_RECORDS_OWNER, wide(exporter, 0), *own);
}

/* ---- records ---- */

static void store_number(Exporter *exporter, MlirValue number, MlirValue offset) {
    export_build(exporter, "llvm.store", no_type(), VALUES(number, word_at(exporter, offset)),
                 ATTRIBUTES(aligned(exporter)));
}

static MlirValue allocate_values(Exporter *exporter, const TileRecords *layout, int64_t number) {
    MlirValue own, zero = wide(exporter, 0), first = is_equal(exporter, claim(exporter, &own), zero);
    MlirValue offset =
        select_word(exporter, first, wide(exporter, TILE_RECORDS_VALUES), wide(exporter, (int64_t)layout->spare));
    store_number(exporter, wide(exporter, number), offset);
    return offset;
}

static MlirValue allocate_line(Exporter *exporter, const TileRecords *layout, int64_t bytes, int64_t number) {
    MlirType truth = scalar_of(exporter, TILE_BOOL);
    MlirValue zero = wide(exporter, 0), limit = wide(exporter, (int64_t)layout->lines_bytes),
              spare = wide(exporter, (int64_t)layout->spare);
    MlirValue used = add_to_word(exporter, TILE_RECORDS_USED, wide(exporter, bytes));
    MlirValue end = binary(exporter, "llvm.add", used, wide(exporter, bytes));
    MlirValue there = binary(exporter, "llvm.add", used, wide(exporter, (int64_t)layout->lines));
    MlirValue fits = export_compare(exporter, false, ICMP_ULE, truth, end, limit);
    MlirValue begins = export_compare(exporter, false, ICMP_ULT, truth, used, limit);
    add_to_word(exporter, TILE_RECORDS_MISSING, select_word(exporter, fits, zero, wide(exporter, 1)));
    store_number(exporter, select_word(exporter, fits, wide(exporter, number), zero),
                 select_word(exporter, begins, there, spare));
    return select_word(exporter, fits, there, spare);
}

void export_new_record(Exporter *exporter, const TileOp *op) {
    const char *template = tile_op_get(op, TILE_ATTRIBUTE_TEXT)->text;
    int64_t number = (int64_t)(uintptr_t)tile_map_get(&exporter->assertions, op);
    const TileRecords *layout = &exporter->records_layout;
    MlirValue offset = tile_print_is_assertion(template, NULL, NULL)
                           ? allocate_values(exporter, layout, number)
                           : allocate_line(exporter, layout, (int64_t)tile_record_bytes(template), number);
    set_result(exporter, op, 0, binary(exporter, "llvm.add", offset, wide(exporter, sizeof(uint64_t))));
}

void export_records(Exporter *exporter, const TileOp *op) { set_result(exporter, op, 0, exporter->records); }

/* Records the first assertion that fails in the program that was the first to claim the records. */
static void note_assertion(Exporter *exporter, int64_t number) {
    MlirValue own, before = claim(exporter, &own), zero = wide(exporter, 0);
    MlirValue mine =
        export_build(exporter, "llvm.or", scalar_of(exporter, TILE_BOOL),
                     VALUES(is_equal(exporter, before, zero), is_equal(exporter, before, own)), NO_ATTRIBUTES);
    /* the word is never -1 */
    MlirValue expected = select_word(exporter, mine, zero, wide(exporter, -1));
    swap_word(exporter, TILE_RECORDS_ASSERTION, expected, wide(exporter, number));
}

/* The condition is uniform, so one thread records the failure. The program continues. */
void export_block_assert(Exporter *exporter, const TileOp *op) {
    MlirType truth = scalar_of(exporter, TILE_BOOL);
    MlirValue yes = export_constant(exporter, truth, export_integer(exporter, TILE_BOOL, 1));
    MlirValue fails =
        export_build(exporter, "llvm.xor", truth, VALUES(operand_of(exporter, op, 0), yes), NO_ATTRIBUTES);
    MlirValue notes =
        export_build(exporter, "llvm.and", truth, VALUES(fails, export_is_first_thread(exporter)), NO_ATTRIBUTES);
    MlirBlock then = mlirBlockCreate(0, NULL, NULL), outer = exporter->block;
    MlirValue none = {NULL};
    exporter->block = then;
    note_assertion(exporter, (int64_t)(uintptr_t)tile_map_get(&exporter->assertions, op));
    exporter->block = outer;
    MlirRegion noting = export_simple_region(exporter, then, none);
    export_scf_if(exporter, notes, no_type(), noting,
                  export_simple_region(exporter, mlirBlockCreate(0, NULL, NULL), none));
}

/* Has the function assertions or prints? Then it gets the records' address as its last parameter. */
bool export_begin_records(Exporter *exporter, TileFunc *func) {
    size_t count;
    const char **templates = tile_func_templates(func, exporter->bridge->arena, &count);
    exporter->records_layout = tile_records(templates, count);
    return count || tile_func_assertions(func, exporter->bridge->arena).count;
}
