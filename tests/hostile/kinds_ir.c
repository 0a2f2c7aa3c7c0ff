/* Arguments of tile/ir.h and tile/pass.h: kernels under construction. */
#include <math.h>
#include <string.h>

#include "hostile/define.h"

/* ---- how far the kernel is ---- */

static TileIr *create_ir(void) {
    TileIr *ir = NULL;
    tile_fixture_need(tile_ir_create(&ir) == TILE_OK, "TileIr");
    return ir;
}

/* Two tensors and the extent of their dimension. */
static TileIr *begin_kernel(TileIr *ir, TileIrValue **x, TileIrValue **y) {
    const char *names[] = {"N"};
    tile_ir_kernel(ir, "kernel");
    *x = tile_ir_tensor(ir, "x", TILE_PARAMETER_IN, "f32", names, 1);
    *y = tile_ir_tensor(ir, "y", TILE_PARAMETER_OUT, "f32", names, 1);
    return ir;
}

static TileIr *top(void) {
    Fixture *f = &tile_fixture;
    if (f->ir) return f->ir;
    f->other = begin_kernel(create_ir(), &f->x, &f->y);
    f->foreign = tile_ir_number(f->other, "f32", 1);
    f->ir = begin_kernel(create_ir(), &f->x, &f->y);
    f->extent = tile_ir_dimension(f->ir, "N");
    f->truth = tile_ir_binary(f->ir, "gt", f->extent, tile_ir_integer(f->ir, "i64", 0));
    f->scalar = tile_ir_number(f->ir, "f32", 3);
    tile_fixture_need(f->foreign && f->truth && f->scalar, tile_ir_message(f->ir));
    return f->ir;
}

static TileIr *grid(void) {
    Fixture *f = &tile_fixture;
    TileIr *ir = top();
    if (f->tile) return ir;
    TileIrValue *blocks = tile_ir_tiles(ir, f->extent, 16);
    tile_ir_begin(ir, "grid", &blocks, 1, NULL, NULL, 0);
    f->first = tile_ir_binary(ir, "mul", tile_ir_argument(ir, 0), tile_ir_integer(ir, "i64", 16));
    TileIrIndex at = {f->first, 16};
    f->tile = tile_ir_load(ir, f->x, &at, 1, f->scalar);
    tile_fixture_need(f->tile && tile_ir_status(ir) == TILE_OK, tile_ir_message(ir));
    return ir;
}

/* In the first region of an `if` with or without a result. */
static TileIr *in_if(bool result) {
    TileIr *ir = grid();
    const TileIrType *type = tile_ir_type(ir, "f32");
    tile_fixture.done = tile_ir_begin(ir, "if", &tile_fixture.truth, 1, NULL, result ? &type : NULL, result);
    tile_fixture_need(tile_fixture.done, tile_ir_message(ir));
    return ir;
}

static TileIr *after_if(void) {
    TileIr *ir = in_if(true);
    for (int i = 0; i < 2; i++) {
        tile_ir_yield(ir, &tile_fixture.scalar, 1);
        if (i == 0) tile_ir_next(ir);
    }
    tile_ir_end(ir);
    return ir;
}

static TileIr *done(void) {
    Fixture *f = &tile_fixture;
    TileIr *ir = grid();
    TileIrIndex at = {f->first, 16};
    tile_ir_store(ir, f->y, f->tile, &at, 1);
    tile_ir_end(ir);
    tile_ir_kernel_end(ir);
    return ir;
}

DEFINE_KIND(ir_out, v->pointer = &tile_fixture.ir_out, REFUSE_NULL)
DEFINE_KIND(own_ir, v->pointer = create_ir(), tile_ir_destroy(v->pointer); TAKE_NULL)
DEFINE_KIND(ir_empty, v->pointer = tile_fixture.ir = create_ir(), REFUSE_NULL)
DEFINE_KIND(ir_top, v->pointer = top(), REFUSE_NULL)
DEFINE_KIND(ir_grid, v->pointer = grid(), REFUSE_NULL)
DEFINE_KIND(ir_if, v->pointer = in_if(false), REFUSE_NULL)
DEFINE_KIND(ir_if_value, v->pointer = in_if(true), REFUSE_NULL)
DEFINE_KIND(ir_after_if, v->pointer = after_if(), REFUSE_NULL)
DEFINE_KIND(ir_done, v->pointer = done(), REFUSE_NULL)

/* ---- texts ---- */

static char long_text[5000];
static char *make_long(void) {
    memset(long_text, 'a', sizeof long_text - 1);
    return long_text;
}

#define REFUSE_TEXTS                                                                                                   \
    REFUSE_NULL                                                                                                        \
    REFUSE("empty", v->pointer = "")                                                                                   \
    REFUSE("a long one", v->pointer = make_long())                                                                     \
    REFUSE("no text of UTF-8", v->pointer = "\xff\xfe")                                                                \
        REFUSE("one with quotes and newlines", v->pointer = "a\"\n\\b")

DEFINE_KIND(file_name, v->pointer = "file.x",
            TAKE_NULL TAKE("empty", v->pointer = "") TAKE("a long one", v->pointer = make_long()))
DEFINE_KIND(line, v->integer = 3, TAKE("0", v->integer = 0) TAKE("UINT32_MAX", v->integer = UINT32_MAX))
DEFINE_KIND(type_text, v->pointer = "f32[16]",
            REFUSE_TEXTS REFUSE("f33", v->pointer = "f33") REFUSE("f32[", v->pointer = "f32[")
                REFUSE("f32[-1]", v->pointer = "f32[-1]") REFUSE("f32[0]", v->pointer = "f32[0]")
                    REFUSE("a huge tile", v->pointer = "f32[9223372036854775807]")
                        REFUSE("a number too large", v->pointer = "f32[99999999999999999999]")
                            REFUSE("a product too large", v->pointer = "f32[4294967296, 4294967296]")
                                REFUSE("six axes", v->pointer = "f32[1, 1, 1, 1, 1, 1]")
                                    REFUSE("a tensor", v->pointer = "tensor<f32, 2, in>"))
DEFINE_KIND(element, v->pointer = "f32",
            REFUSE_TEXTS REFUSE("f33", v->pointer = "f33") REFUSE("a tile", v->pointer = "f32[16]"))
DEFINE_KIND(new_name, v->pointer = "fresh",
            REFUSE_NULL REFUSE("empty", v->pointer = "") TAKE("a long one", v->pointer = make_long())
                TAKE("no text of UTF-8", v->pointer = "\xff\xfe")
                    TAKE("one with quotes and newlines", v->pointer = "a\"\n\\b")
                        TAKE("one with blanks", v->pointer = "a b"))
DEFINE_KIND(dimension_name, v->pointer = "N", REFUSE_TEXTS REFUSE("none", v->pointer = "K"))
DEFINE_KIND(sentence, v->pointer = "N is positive",
            TAKE_NULL TAKE("empty", v->pointer = "") TAKE("a long one", v->pointer = make_long())
                TAKE("one with quotes and newlines", v->pointer = "a\"\n\\b")
                    TAKE("no text of UTF-8", v->pointer = "\xff\xfe"))
DEFINE_KIND(op_name, v->pointer = "mul",
            REFUSE_TEXTS REFUSE("none", v->pointer = "mull") REFUSE("one with regions", v->pointer = "for"))
DEFINE_KIND(unary_name, v->pointer = "neg",
            REFUSE_TEXTS REFUSE("none", v->pointer = "negg") REFUSE("a binary one", v->pointer = "mul"))
DEFINE_KIND(region_op_name, v->pointer = "grid",
            REFUSE_TEXTS REFUSE("none", v->pointer = "grids") REFUSE("one without", v->pointer = "neg"))
DEFINE_KIND(reduce_kind, v->pointer = "sum", REFUSE_TEXTS REFUSE("none", v->pointer = "mean"))
DEFINE_KIND(attributes, v->pointer = NULL,
            TAKE("empty", v->pointer = "") REFUSE("none that there are", v->pointer = "colour = 3")
                REFUSE("half of one", v->pointer = "axis =") REFUSE("no text of UTF-8", v->pointer = "\xff")
                    REFUSE("a long one", v->pointer = make_long()))
DEFINE_KIND(attribute_name, v->pointer = "axis", REFUSE_TEXTS REFUSE("none", v->pointer = "colour"))

/* ---- numbers ---- */

DEFINE_KIND(rank, v->integer = 2,
            REFUSE("6", v->integer = 6) REFUSE("UINT_MAX", v->integer = UINT32_MAX) TAKE("0", v->integer = 0))
DEFINE_KIND(tensor_rank, v->integer = 2,
            REFUSE("9", v->integer = 9) REFUSE("UINT_MAX", v->integer = UINT32_MAX) TAKE("0", v->integer = 0))
DEFINE_KIND(access, v->integer = TILE_PARAMETER_INOUT, REFUSE("-1", v->integer = -1) REFUSE("99", v->integer = 99))
DEFINE_KIND(two, v->integer = 2,
            REFUSE("0", v->integer = 0) REFUSE("4097", v->integer = 4097) REFUSE("UINT_MAX", v->integer = UINT32_MAX))
DEFINE_KIND(one, v->integer = 1,
            REFUSE("0", v->integer = 0) REFUSE("4097", v->integer = 4097) REFUSE("UINT_MAX", v->integer = UINT32_MAX))
DEFINE_KIND(one_or_none, v->integer = 1,
            MAY("0", v->integer = 0) REFUSE("4097", v->integer = 4097) REFUSE("UINT_MAX", v->integer = UINT32_MAX))
DEFINE_KIND(none, v->integer = 0,
            REFUSE("1", v->integer = 1) REFUSE("4097", v->integer = 4097) REFUSE("UINT_MAX", v->integer = UINT32_MAX))
DEFINE_KIND(small_number, v->integer = 0, REFUSE("9", v->integer = 9) REFUSE("UINT_MAX", v->integer = UINT32_MAX))
DEFINE_KIND(axis, v->integer = 0,
            REFUSE("-1", v->integer = -1) REFUSE("9", v->integer = 9) REFUSE("INT64_MIN", v->integer = INT64_MIN)
                REFUSE("INT64_MAX", v->integer = INT64_MAX) REFUSE("2**32", v->integer = INT64_C(1) << 32))
DEFINE_KIND(block, v->integer = 16,
            REFUSE("0", v->integer = 0) REFUSE("-1", v->integer = -1) REFUSE("INT64_MIN", v->integer = INT64_MIN)
                REFUSE("INT64_MAX", v->integer = INT64_MAX))
DEFINE_KIND(number, v->number = 3,
            TAKE("NaN", v->number = NAN) TAKE("infinity", v->number = INFINITY) TAKE("1e300", v->number = 1e300))
DEFINE_KIND(integer, v->integer = 3,
            TAKE("INT64_MIN", v->integer = INT64_MIN) TAKE("INT64_MAX", v->integer = INT64_MAX))

/* ---- types ---- */

static int64_t given_extents[2];
static void make_extents(Value *v) {
    given_extents[0] = 4;
    given_extents[1] = 16;
    v->pointer = given_extents;
}
static bool change_extents(Value *v, int number, const char **label, Expected *expected) {
    REFUSE_NULL
    REFUSE("-1", given_extents[1] = -1)
    REFUSE("0", given_extents[0] = 0)
    REFUSE("INT64_MIN", given_extents[0] = INT64_MIN)
    REFUSE("INT64_MAX", given_extents[0] = INT64_MAX)
    REFUSE("2**62", given_extents[0] = given_extents[1] = INT64_C(1) << 62)
    return false;
}
const Kind tile_kind_extents = {"extents", make_extents, change_extents};

static const TileIrType *other_type(void) { return tile_ir_type(tile_fixture.other, "f32[16]"); }

DEFINE_KIND(type, v->pointer = (void *)tile_ir_type(tile_fixture.ir, "f32[16]"),
            REFUSE_NULL REFUSE("one of another TileIr", v->pointer = (void *)other_type())
                REFUSE("a tensor's", v->pointer = (void *)tile_ir_type_of(tile_fixture.x)))
DEFINE_KIND(known_type, v->pointer = (void *)tile_ir_type(top(), "f32[16]"), REFUSE_NULL)
DEFINE_KIND(any_type, v->pointer = NULL,
            REFUSE("one of another TileIr", v->pointer = (void *)other_type())
                REFUSE("another one", v->pointer = (void *)tile_ir_type(tile_fixture.ir, "i8[3]")))
DEFINE_STRUCT_KIND(type_info, TileIrTypeInfo, (TileIrTypeInfo){.struct_size = sizeof(TileIrTypeInfo)},
                   REFUSE_NULL REFUSE_SIZES)
DEFINE_KIND(no_types, v->pointer = NULL, )

static const char *given_dimensions[2];
static void make_dimensions(Value *v) {
    given_dimensions[0] = "N";
    given_dimensions[1] = "K";
    v->pointer = given_dimensions;
}
static bool change_dimensions(Value *v, int number, const char **label, Expected *expected) {
    REFUSE_NULL
    TAKE("one of them NULL", given_dimensions[1] = NULL)
    REFUSE("an empty one", given_dimensions[1] = "")
    REFUSE("-1", given_dimensions[1] = "-1")
    REFUSE("a number too large", given_dimensions[1] = "99999999999999999999")
    REFUSE("INT64_MAX", given_dimensions[1] = "9223372036854775807")
    TAKE("blanks", given_dimensions[1] = "a b")
    TAKE("no text of UTF-8", given_dimensions[1] = "\xff")
    return false;
}
const Kind tile_kind_dimensions = {"dimensions", make_dimensions, change_dimensions};

/* ---- values ---- */

#define REFUSE_VALUES REFUSE_NULL REFUSE("one of another TileIr", v->pointer = tile_fixture.foreign)

DEFINE_KIND(value, v->pointer = (top(), tile_fixture.extent), REFUSE_NULL)
DEFINE_KIND(condition, v->pointer = tile_fixture.truth,
            REFUSE_VALUES REFUSE("a number", v->pointer = tile_fixture.extent))
DEFINE_KIND(operand, v->pointer = tile_fixture.scalar, REFUSE_VALUES REFUSE("a tensor", v->pointer = tile_fixture.x))
DEFINE_KIND(tile_operand, v->pointer = tile_fixture.tile,
            REFUSE_VALUES REFUSE("a scalar", v->pointer = tile_fixture.scalar))
DEFINE_KIND(extent, v->pointer = tile_fixture.extent, REFUSE_VALUES REFUSE("a float", v->pointer = tile_fixture.scalar))
DEFINE_KIND(tensor, v->pointer = tile_fixture.x, REFUSE_VALUES REFUSE("a scalar", v->pointer = tile_fixture.scalar))
DEFINE_KIND(written_tensor, v->pointer = tile_fixture.y,
            REFUSE_VALUES REFUSE("a scalar", v->pointer = tile_fixture.scalar))
DEFINE_KIND(stored, v->pointer = tile_fixture.tile, REFUSE_VALUES REFUSE("a truth", v->pointer = tile_fixture.truth))
DEFINE_KIND(fill, v->pointer = tile_fixture.scalar,
            TAKE_NULL REFUSE("one of another TileIr", v->pointer = tile_fixture.foreign)
                REFUSE("a truth", v->pointer = tile_fixture.truth) REFUSE("a tensor", v->pointer = tile_fixture.x))

static TileIrValue *listed[2];
static bool change_operands(Value *v, int number, const char **label, Expected *expected) {
    REFUSE_NULL
    REFUSE("one of them NULL", listed[0] = NULL)
    REFUSE("one of another TileIr", listed[0] = tile_fixture.foreign)
    REFUSE("a tensor", listed[0] = tile_fixture.x)
    return false;
}
static void make_two_operands(Value *v) {
    listed[0] = listed[1] = tile_fixture.scalar;
    v->pointer = listed;
}
static void make_one_operand(Value *v) {
    listed[0] = tile_fixture.extent;
    v->pointer = listed;
}
const Kind tile_kind_two_operands = {"operands", make_two_operands, change_operands};
const Kind tile_kind_one_operand = {"operands", make_one_operand, change_operands};
/* Whether a region yields the required values is checked when it is complete. */
static bool change_yielded(Value *v, int number, const char **label, Expected *expected) {
    REFUSE_NULL
    REFUSE("one of them NULL", listed[0] = NULL)
    REFUSE("one of another TileIr", listed[0] = tile_fixture.foreign)
    MAY("a tensor", listed[0] = tile_fixture.x)
    return false;
}
const Kind tile_kind_one_value = {"values", make_two_operands, change_yielded};

static TileIrIndex given_indices[1];
static void make_indices(Value *v) {
    given_indices[0] = (TileIrIndex){tile_fixture.first, 16};
    v->pointer = given_indices;
}
static bool change_indices(Value *v, int number, const char **label, Expected *expected) {
    REFUSE_NULL
    REFUSE("first NULL", given_indices[0].first = NULL)
    REFUSE("a first of another TileIr", given_indices[0].first = tile_fixture.foreign)
    REFUSE("a float", given_indices[0].first = tile_fixture.scalar)
    REFUSE("lanes -1", given_indices[0].lanes = -1)
    REFUSE("lanes INT64_MIN", given_indices[0].lanes = INT64_MIN)
    REFUSE("lanes INT64_MAX", given_indices[0].lanes = INT64_MAX)
    return false;
}
const Kind tile_kind_indices = {"indices", make_indices, change_indices};

/* ---- operations ---- */

static void look(TileIr *ir, TileIrOp *op, void *state) { (void)ir, (void)op, (void)state; }
static void *pointer_of(TileVisit visit) {
    void *pointer;
    memcpy(&pointer, &visit, sizeof pointer);
    return pointer;
}

static TileIrOp *product(void) { return tile_ir_definition((grid(), tile_fixture.first)); }
static TileIrOp *other_op(void) { return tile_ir_definition(tile_fixture.foreign); }
static TileIrOp *unused(void) {
    return tile_ir_definition(tile_ir_binary(tile_fixture.ir, "add", tile_fixture.extent, tile_fixture.extent));
}

#define REFUSE_OPS REFUSE_NULL REFUSE("one of another TileIr", v->pointer = other_op())

DEFINE_KIND(op, v->pointer = tile_fixture.done, REFUSE_OPS)
DEFINE_KIND(visit, v->pointer = pointer_of(look), TAKE_NULL)
DEFINE_KIND(plain_op, v->pointer = product(), REFUSE_NULL)
DEFINE_KIND(op_of_ir, v->pointer = product(), REFUSE_OPS)
DEFINE_KIND(unused_op, v->pointer = unused(), REFUSE_OPS REFUSE("one that is used", v->pointer = product()))
DEFINE_KIND(dim_op, v->pointer = (top(), tile_ir_definition(tile_fixture.extent)), REFUSE_NULL)
DEFINE_KIND(computed, v->pointer = (grid(), tile_fixture.first), REFUSE_NULL)
DEFINE_KIND(constant, v->pointer = (top(), tile_fixture.scalar),
            REFUSE_NULL REFUSE("no constant", v->pointer = tile_fixture.extent))
DEFINE_KIND(same_type, v->pointer = tile_fixture.extent,
            REFUSE_NULL REFUSE("another type", v->pointer = tile_fixture.scalar)
                REFUSE("one of another TileIr", v->pointer = tile_ir_integer(tile_fixture.other, "i64", 1)))

static double found_number;
static int64_t found_integer;
DEFINE_KIND(number_out, v->pointer = &found_number, REFUSE_NULL)
DEFINE_KIND(integer_out, v->pointer = &found_integer, REFUSE_NULL)
