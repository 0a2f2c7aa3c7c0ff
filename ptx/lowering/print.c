/* Prints, and the values in the message of an assertion: one thread allocates a record (base/records.h), and each
 * thread stores its own elements in it. */
#include "base/records.h"
#include "ptx/lowering/machine.h"

enum { WORD = 8 };

typedef struct Print {
    Gpu *gpu;
    const char *template;
    bool message;
    TileValue *first; /* is this the thread that stores scalars? */
    TileValue *at;    /* address of the next item */
} Print;

/* Advances the pointer by `bytes`. */
static void advance(Print *print, int64_t bytes) {
    print->at = tile_build_ptr_add(&print->gpu->b, print->at, gpu_i64(print->gpu, bytes));
}

static void begin_record(Print *print) {
    Gpu *gpu = print->gpu;
    const TileType *i64 = tile_type_scalar(gpu->module->context, TILE_I64);
    TileAttribute text = {.key = TILE_ATTRIBUTE_TEXT, .text = print->template};
    TileOp *choice = tile_build_if(&gpu->b, print->first, &i64, 1);
    tile_op_set_integer(gpu->module, choice, TILE_ATTRIBUTE_DIVERGENT, 1);
    TileBuilder outer = gpu->b;
    for (unsigned i = 0; i < 2; i++) {
        gpu->b.block = &choice->regions[i];
        gpu->b.before = NULL;
        TileValue *offset =
            i ? gpu_i64(gpu, 0)
              : tile_op_result(tile_build_op(&gpu->b, TILE_OP_NEW_RECORD, NULL, 0, &text, 1, NULL, 1), 0);
        tile_build_end(&gpu->b, TILE_OP_YIELD, &offset, 1);
    }
    gpu->b = outer;
    TileValue *offset = gpu_share_scalar(gpu, tile_op_result(choice, 0), print->first);
    TileValue *records = tile_op_result(tile_build_op(&gpu->b, TILE_OP_RECORDS, NULL, 0, NULL, 0, NULL, 1), 0);
    print->at = tile_build_ptr_add(&gpu->b, records, offset);
}

/* The byte offset of an index; `mask` gets the condition that the record keeps the element. */
static TileValue *axis_offset(Print *print, const TilePrintPlace *place, const TileLayout *layout, unsigned axis,
                              uint32_t reg, int64_t bytes, TileValue **mask) {
    Gpu *gpu = print->gpu;
    int64_t extent = place->extent[axis], kept = tile_print_packed_extent(place, print->message, axis);
    TileValue *index = gpu_binary(gpu, TILE_OP_ADD, gpu_thread_index(gpu, layout, axis),
                                  gpu_i64(gpu, gpu_register_index(layout, axis, reg)));
    if (tile_layout_extent(layout, axis) > extent)
        *mask = gpu_and(gpu, *mask, gpu_binary(gpu, TILE_OP_LT, index, gpu_i64(gpu, extent)));
    if (kept < extent) {
        TileValue *head = gpu_binary(gpu, TILE_OP_LT, index, gpu_i64(gpu, kept / 2));
        TileValue *tail = gpu_binary(gpu, TILE_OP_GE, index, gpu_i64(gpu, extent - kept / 2));
        TileValue *moved = gpu_binary(gpu, TILE_OP_SUB, index, gpu_i64(gpu, extent - kept));
        *mask = gpu_and(gpu, *mask, gpu_binary(gpu, TILE_OP_OR, head, tail));
        index = tile_build_ternary(&gpu->b, TILE_OP_SELECT, head, index, moved);
    }
    return gpu_binary(gpu, TILE_OP_MUL, index, gpu_i64(gpu, bytes));
}

static void store_tile(Print *print, const TilePrintPlace *place, TileValue *value, const TileLayout *layout) {
    Gpu *gpu = print->gpu;
    TileValue *own = gpu_holds_first_copy(gpu, layout);
    for (uint32_t r = 0; r < tile_layout_registers(layout); r++) {
        TileValue *mask = own, *address = print->at;
        int64_t bytes = WORD;
        for (unsigned axis = layout->rank; axis-- > 0;) {
            address = tile_build_ptr_add(&gpu->b, address, axis_offset(print, place, layout, axis, r, bytes, &mask));
            bytes *= tile_print_packed_extent(place, print->message, axis);
        }
        tile_build_store(&gpu->b, gpu_register(gpu, value, r), address, mask, 0);
    }
}

static void store_item(Print *print, const TilePrintPlace *place, const TileValue *old) {
    Gpu *gpu = print->gpu;
    int64_t bytes = WORD;
    if (tile_type_is_tile(old->type)) {
        store_tile(print, place, gpu_value(gpu, old), old->type->layout);
    } else {
        tile_build_store(&gpu->b, gpu_value(gpu, old), print->at, print->first, 0);
    }
    for (unsigned axis = 0; axis < place->rank; axis++) bytes *= tile_print_packed_extent(place, print->message, axis);
    advance(print, bytes);
}

void gpu_lower_print(Gpu *gpu, const TileOp *op) {
    const char *template = tile_op_get(op, TILE_ATTRIBUTE_TEXT)->text;
    Print print = {.gpu = gpu, .template = template, .message = tile_print_is_assertion(template, NULL, NULL)};
    print.first = gpu_binary(gpu, TILE_OP_EQ, gpu->thread, gpu_i64(gpu, 0));
    begin_record(&print);
    TilePrintPlace place;
    unsigned operand = 0;
    while (tile_print_next(&template, &place))
        for (unsigned i = 0; i < 1u + place.masked; i++) store_item(&print, &place, tile_op_operand(op, operand++));
}
