/* Tests. A test becomes a plan (program.h): tensors, runs of kernels, assertions. Other statements are checked and
 * emitted as usual, with whole tensors as tiles, into a function with one program that reads tensors and writes others;
 * shapes are known, so all of this is checked without running anything. */
#include "parser/check/annotation.h"
#include "parser/check/emit.h"
#include "parser/check/module.h"
#include "parser/check/plan.h"
#include "parser/check/sequence.h"

static void emit_test(TileChecker *c, const TileItem *item) {
    static const TileItem nowhere = {.kind = TILE_ITEM_FN};
    TileFrame frame = {.item = &nowhere, .ast = c->ast};
    c->frame = &frame;
    c->in_grid = true;
    c->where = item->name_span;
    c->func = tile_func_create(c->module, "test", TILE_FUNC_KERNEL, TILE_FORM_TILE);
    c->builder = tile_builder_at_end(c->module, &c->func->body);
    TileValue *one = tile_build_i64(tile_emitter(c), 1);
    TileOp *grid = tile_build_grid(tile_emitter(c), &one, 1);
    c->builder.block = c->test->block = &grid->regions[0];
    c->scope_start = c->bounds.count;
    tile_check_sequence(c, item->body);
    c->builder.block = c->test->block;
    tile_build_end(tile_emitter(c), TILE_OP_YIELD, NULL, 0);
    c->builder.block = &c->func->body;
    tile_build_end(tile_emitter(c), TILE_OP_RETURN, NULL, 0);
    c->test->stage->func = c->func;
}

static tile_status lower_test(TileContext *context, TileDiagnostics *diagnostics, TileArena *arena, const TileAst *ast,
                              const TileItem *item, uint32_t number, TileAnnotations *annotations, TileTest *test,
                              TileTestStage *stage) {
    static const TileLowerOptions none = {0};
    uint32_t errors = diagnostics->error_count;
    *test = (TileTest){0};
    *stage = (TileTestStage){.module = tile_module_create(context)};
    TileArena *scratch = tile_arena_create(context->arena);
    if (!stage->module || !scratch) {
        tile_arena_destroy(scratch);
        tile_module_destroy(stage->module);
        stage->module = NULL;
        return TILE_OUT_OF_MEMORY;
    }
    TileTestState state = {.plan = test, .stage = stage, .arena = arena, .number = number};
    TileChecker c;
    tile_checker_init(&c, context, diagnostics, scratch, ast, &none);
    c.module = stage->module;
    c.test = &state;
    c.annotations = annotations;
    emit_test(&c, item);
    tile_annotate_item(&c);
    tile_status status = diagnostics->error_count == errors ? TILE_OK : TILE_INVALID_SOURCE;
    if (status == TILE_OK) status = tile_checker_verify(&c, item, true);
    tile_arena_destroy(scratch);
    if (status == TILE_OK) return TILE_OK;
    tile_module_destroy(stage->module);
    stage->module = NULL;
    return status;
}

tile_status tile_lower_test(TileContext *context, TileDiagnostics *diagnostics, TileArena *arena, const TileAst *ast,
                            const TileItem *item, uint32_t number, TileTest *test, TileTestStage *stage) {
    return lower_test(context, diagnostics, arena, ast, item, number, NULL, test, stage);
}

tile_status tile_check_test(TileContext *context, TileDiagnostics *diagnostics, TileArena *arena, const TileAst *ast,
                            const TileItem *item, TileAnnotations *annotations, TileTest *test, TileTestStage *stage) {
    return lower_test(context, diagnostics, arena, ast, item, TILE_TEST_ASSERTIONS, annotations, test, stage);
}
