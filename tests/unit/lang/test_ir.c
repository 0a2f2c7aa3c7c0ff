/* The data structure: types, use lists, attributes, cloning, walking. */
#include <criterion/criterion.h>

#include "tests/unit/lang/executing.h"

TestSuite(ir, .init = executing_set_up, .fini = executing_tear_down);

static const char *text_of(const TileModule *module) {
    TileText text = {.arena = executing.arena};
    tile_module_print(&text, module, 0);
    return tile_text_get(&text);
}

static unsigned use_count(const TileValue *value) {
    unsigned count = 0;
    for (const TileUse *use = value->first_use; use; use = use->next) count++;
    return count;
}

Test(ir, equal_types_are_one) {
    TileContext *c = executing.context;
    int64_t extent[] = {4, 64}, other[] = {4, 65};
    cr_expect_eq(tile_type_tile(c, TILE_F32, 2, extent), tile_type_tile(c, TILE_F32, 2, extent));
    cr_expect_neq(tile_type_tile(c, TILE_F32, 2, extent), tile_type_tile(c, TILE_F32, 2, other));
    cr_expect_eq(tile_type_tile(c, TILE_F32, 0, NULL), tile_type_scalar(c, TILE_F32));
    cr_expect_eq(tile_type_vector(c, TILE_I8, 1, false), tile_type_scalar(c, TILE_I8));
    cr_expect_neq(tile_type_vector(c, TILE_I8, 4, true), tile_type_vector(c, TILE_I8, 4, false));
    for (int64_t i = 1; i < 1000; i++)
        cr_expect_eq(tile_type_tile(c, TILE_I8, 1, &i), tile_type_tile(c, TILE_I8, 1, &i));
    const TileType *tile = tile_type_tile(c, TILE_F32, 2, extent);
    cr_expect(tile_type_same_shape(tile, tile_type_with_scalar(c, tile, TILE_BOOL)));
    cr_expect_eq(tile_type_lanes(tile), 256);
}

static const char source[] = "func device tile @f(%a: i64) -> i64 {\n  %b = add %a, %a : i64\n  %c = mul %b, %a : i64\n"
                             "  %r = for %a, %b, %c, %c : i64 (%i: i64, %x: i64) {\n    %y = add %x, %b : i64\n"
                             "    yield %y\n  }\n  return %r\n}\n";

Test(ir, uses_follow_operands) {
    TileFunc *func = read_func(source, "f");
    TileValue *a = func->body.arguments[0];
    TileOp *add = func->body.first, *mul = add->next, *loop = mul->next;
    TileValue *b = tile_op_result(add, 0), *c = tile_op_result(mul, 0);
    cr_expect_eq(use_count(a), 4);
    cr_expect_eq(use_count(b), 3);
    tile_value_replace(b, a);
    cr_expect_eq(use_count(b), 0);
    cr_expect_eq(use_count(a), 7);
    tile_op_set_operand(mul, 0, b);
    cr_expect(tile_value_has_one_use(b));
    tile_op_remove_operand(loop, 2);
    cr_expect_eq(loop->operand_count, 3);
    cr_expect(tile_value_has_one_use(c));
    for (int i = 0; i < 20; i++) tile_op_add_operand(func->module, loop, b);
    cr_expect_eq(use_count(b), 21);
    cr_expect_eq(loop->operands[22].index, 22);
    tile_op_erase(loop);
    cr_expect_eq(use_count(b), 1);
    cr_expect_eq(use_count(c), 0);
}

Test(ir, attributes_are_sorted_and_own_their_payload) {
    TileFunc *func = read_func(source, "f");
    TileOp *op = func->body.first;
    int64_t axes[] = {1, 0};
    char text[] = "abc";
    tile_op_set_text(func->module, op, TILE_ATTRIBUTE_TEXT, text);
    tile_op_set_integers(func->module, op, TILE_ATTRIBUTE_AXES, axes, 2);
    tile_op_set_integer(func->module, op, TILE_ATTRIBUTE_AXIS, 3);
    axes[0] = 9;
    text[0] = 'x';
    cr_expect_eq(op->attributes[0].key, TILE_ATTRIBUTE_AXIS);
    cr_expect_eq(op->attributes[1].integers[0], 1);
    cr_expect_str_eq(op->attributes[2].text, "abc");
    tile_op_set_integer(func->module, op, TILE_ATTRIBUTE_AXIS, 4);
    cr_expect_eq(op->attribute_count, 3);
    tile_op_clear(op, TILE_ATTRIBUTE_AXIS);
    cr_expect_eq(tile_op_integer(op, TILE_ATTRIBUTE_AXIS, -1), -1);
    cr_expect_null(tile_op_get(op, TILE_ATTRIBUTE_AXIS));
    cr_expect_eq(op->attributes[0].key, TILE_ATTRIBUTE_AXES);
}

Test(ir, clones_are_whole) {
    TileFunc *func = read_func(source, "f");
    const char *before = text_of(func->module);
    TileModule *other = tile_module_create(executing.context);
    tile_list_push(executing.arena, &executing.modules, other);
    TileFunc *copy = tile_func_create(other, "f", func->kind, func->form);
    copy->result_types = func->result_types;
    copy->result_count = func->result_count;
    TileMap map;
    tile_map_init(&map, executing.arena);
    tile_map_set(&map, func->body.arguments[0], tile_func_add_parameter(copy, "a", func->body.arguments[0]->type));
    for (TileOp *op = func->body.first; op; op = op->next) tile_op_append(tile_op_clone(other, op, &map), &copy->body);
    cr_expect_str_eq(text_of(other), before);
    cr_expect_str_eq(text_of(func->module), before);
    cr_expect(tile_module_verify(other, NULL));
    cr_expect_eq(copy->body.first->next->next->regions[0].func, copy);
}

static void erase_unused(TileOp *op, void *state) {
    unsigned *visited = state;
    ++*visited;
    if (op->id == TILE_OP_MUL) {
        tile_value_replace(tile_op_result(op, 0), tile_op_operand(op, 0));
        tile_op_erase(op);
    }
}

Test(ir, walking_and_moving) {
    TileFunc *func = read_func(source, "f");
    unsigned visited = 0;
    tile_block_walk(&func->body, erase_unused, &visited);
    cr_expect_eq(visited, 6);
    cr_expect(tile_module_verify(func->module, NULL));
    TileOp *loop = func->body.first->next, *inner = loop->regions[0].first;
    cr_expect(tile_block_inside(inner->block, &func->body));
    cr_expect(tile_value_outside(tile_op_result(func->body.first, 0), loop));
    cr_expect_not(tile_value_outside(tile_op_result(inner, 0), loop));
    cr_expect_eq(tile_op_func(inner), func);
    cr_expect(tile_op_is_pure(loop));
    TileBlock aside = {.func = func};
    tile_block_splice(&aside, &loop->regions[0]);
    cr_expect_null(loop->regions[0].first);
    cr_expect_eq(aside.first, inner);
    cr_expect_eq(aside.last->block, &aside);
    tile_block_splice(&loop->regions[0], &aside);
    cr_expect(tile_module_verify(func->module, NULL));
}

Test(ir, tables_find_what_they_name) {
    for (int id = 0; id < TILE_OP_COUNT; id++) {
        const char *mnemonic = tile_op_info((TileOpId)id)->mnemonic;
        cr_expect_eq((int)tile_op_find(mnemonic, strlen(mnemonic)), id);
    }
    for (int key = 0; key < TILE_ATTRIBUTE_COUNT; key++) {
        const char *name = tile_attribute_name((TileAttributeKey)key);
        cr_expect_eq((int)tile_attribute_find(name, strlen(name)), key);
    }
    cr_expect_eq(tile_op_find("ad", 2), TILE_OP_COUNT);
    cr_expect_eq(tile_name_find(TILE_ATTRIBUTE_KIND, "sum", 3), TILE_KIND_SUM);
    cr_expect_eq(tile_name_find(TILE_ATTRIBUTE_ORDER, "sum", 3), -1);
    cr_expect_null(tile_name_text(TILE_ATTRIBUTE_KIND, TILE_ORDER_SERIAL));
}
