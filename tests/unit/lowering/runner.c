/* The pass runner: its options, checks and reports. The passes of this test are correct or wrong on purpose. */
#include <string.h>

#include <criterion/criterion.h>

#include "lang/ir/build.h"
#include "lowering/pass.h"

/* Negates the function's first value. */
static TileResult negate(TilePassContext *context, TileFunc *func) {
    TileBuilder builder = tile_builder_before(context->module, func->body.last);
    tile_build_unary(&builder, TILE_OP_NEG, func->body.arguments[0]);
    return TILE_RESULT_CHANGED;
}

static TileResult rest(TilePassContext *context, TileFunc *func) { return TILE_RESULT_UNCHANGED; }

static TileResult boast(TilePassContext *context, TileFunc *func) { return TILE_RESULT_CHANGED; }

static TileResult hide(TilePassContext *context, TileFunc *func) {
    negate(context, func);
    return TILE_RESULT_UNCHANGED;
}

/* True of the first function alone. */
static TileResult boast_later(TilePassContext *context, TileFunc *func) {
    return context->module->first == func ? negate(context, func) : boast(context, func);
}

static TileResult hide_later(TilePassContext *context, TileFunc *func) {
    return context->module->first == func ? negate(context, func) : hide(context, func);
}

/* Changes the first function and writes a fact into the last one. */
static TileResult write_fact(TilePassContext *context, TileFunc *func) {
    if (context->module->first != func) return rest(context, func);
    context->module->last->parameters[0].used_stride = 1;
    return negate(context, func);
}

/* A value whose type differs from the op rule's. */
static TileResult break_rule(TilePassContext *context, TileFunc *func) {
    negate(context, func);
    func->body.first->results[0].type = tile_type_scalar(context->module->context, TILE_I8);
    return TILE_RESULT_CHANGED;
}

static TileResult give_up(TilePassContext *context, TileFunc *func) {
    return tile_pass_fail(context, TILE_UNSUPPORTED, func->body.last, "no way round %d", 7);
}

static TileResult add_function(TilePassContext *context, TileFunc *func) {
    if (context->module->first != func) return rest(context, func);
    TileFunc *added = tile_func_create(context->module, "added", TILE_FUNC_DEVICE, TILE_FORM_TILE);
    TileBuilder builder = tile_builder_at_end(context->module, &added->body);
    tile_build_end(&builder, TILE_OP_RETURN, NULL, 0);
    return TILE_RESULT_CHANGED;
}

static TileResult remove_others(TilePassContext *context, TileFunc *func) {
    if (context->module->first != func) return rest(context, func);
    while (func->next) tile_func_remove(func->next);
    return TILE_RESULT_CHANGED;
}

enum { BOTH = TILE_FORM_TILE | TILE_FORM_MACHINE, NONE = TILE_ANALYSIS_NONE, INDICES = TILE_ANALYSIS_INDICES };
static const TilePassInfo negate_pass = {"negate", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, negate};
static const TilePassInfo rest_pass = {"rest", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, rest};
static const TilePassInfo boast_pass = {"boast", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, boast};
static const TilePassInfo hide_pass = {"hide", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, hide};
static const TilePassInfo boast_later_pass = {"boast-later", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, boast_later};
static const TilePassInfo hide_later_pass = {"hide-later", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, hide_later};
static const TilePassInfo fact_pass = {"fact", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, write_fact};
static const TilePassInfo break_pass = {"break-rule", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, break_rule};
static const TilePassInfo give_up_pass = {"give-up", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, give_up};
static const TilePassInfo add_pass = {"add", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, add_function};
static const TilePassInfo remove_pass = {"remove", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, remove_others};
static const TilePassInfo machine_pass = {"machine", "", TILE_STAGE_SHARED, TILE_FORM_MACHINE, BOTH, NONE, NONE, negate};

/* Queries the range and the sum of each integer of the function, and adds an integer. */
static TileResult ask(TilePassContext *context, TileFunc *func) {
    TileIndices *indices = tile_pass_indices(context, func);
    for (TileOp *op = func->body.first; op; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++) tile_index_range(indices, &op->results[i]);
    TileBuilder builder = tile_builder_before(context->module, func->body.last);
    tile_build_unary(&builder, TILE_OP_NEG, tile_build_i64(&builder, 3));
    return TILE_RESULT_CHANGED;
}

/* Replaces -3 by -4. */
static TileResult alter(TilePassContext *context, TileFunc *func) {
    for (TileOp *op = func->body.first; op; op = op->next) {
        if (op->id != TILE_OP_NEG) continue;
        TileBuilder builder = tile_builder_before(context->module, op);
        tile_op_set_operand(op, 0, tile_build_i64(&builder, 4));
    }
    return TILE_RESULT_CHANGED;
}

static const TilePassInfo ask_pass = {"ask", "", TILE_STAGE_SHARED, BOTH, BOTH, INDICES, INDICES, ask};
static const TilePassInfo undeclared_pass = {"undeclared", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, ask};
static const TilePassInfo alter_pass = {"alter", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, NONE, alter};
static const TilePassInfo keep_pass = {"keep", "", TILE_STAGE_SHARED, BOTH, BOTH, NONE, INDICES, alter};

typedef struct World {
    TileContext *context;
    TileModule *module;
    TileArena *scratch;
    TilePassContext pass;
    TilePassReport report;
    TilePassOptions options;
} World;

/* Two functions of one f32. */
static World start(void) {
    World world = {.context = tile_ir_context_create(), .scratch = tile_arena_create(NULL)};
    world.module = tile_module_create(world.context);
    static const char *const names[] = {"f", "g"};
    for (unsigned i = 0; i < 2; i++) {
        TileFunc *func = tile_func_create(world.module, names[i], TILE_FUNC_DEVICE, TILE_FORM_TILE);
        tile_func_add_parameter(func, "x", tile_type_scalar(world.context, TILE_F32));
        TileBuilder builder = tile_builder_at_end(world.module, &func->body);
        builder.location = (TileLocation){0, 3, 4};
        tile_build_end(&builder, TILE_OP_RETURN, NULL, 0);
    }
    world.pass = tile_pass_context(world.module, world.scratch, NULL);
    world.report = tile_pass_report(world.scratch);
    world.options.verify = true;
    return world;
}

static void stop(World *world) {
    tile_module_destroy(world->module);
    tile_arena_destroy(world->scratch);
    tile_ir_context_destroy(world->context);
}

static tile_status run(World *world, const TilePassInfo *const *passes, size_t count) {
    return tile_passes_run(&world->pass, passes, count, &world->options, &world->report);
}

static bool contains(const TileText *text, const char *words) { return strstr(tile_text_get(text), words) != NULL; }

static unsigned count_ops(const World *world) {
    unsigned count = 0;
    for (TileFunc *func = world->module->first; func; func = func->next)
        for (TileOp *op = func->body.first; op; op = op->next) count++;
    return count;
}

Test(runner, runs_each_pass_on_each_function_and_times_it) {
    World world = start();
    const TilePassInfo *passes[] = {&negate_pass, &rest_pass};
    cr_assert_eq(run(&world, passes, 2), TILE_OK);
    cr_expect_eq(count_ops(&world), 4);
    cr_assert_eq(world.report.times.count, 4);
    cr_expect_eq(world.report.times.items[1].pass, &negate_pass);
    cr_expect_str_eq(world.report.times.items[1].func, "g");
    cr_expect_eq(world.report.times.items[1].result, TILE_RESULT_CHANGED);
    cr_expect_geq(world.report.times.items[1].seconds, 0);
    cr_expect_eq(world.report.times.items[3].result, TILE_RESULT_UNCHANGED);
    stop(&world);
}

Test(runner, leaves_functions_of_another_form_alone) {
    World world = start();
    world.module->last->form = TILE_FORM_MACHINE;
    const TilePassInfo *passes[] = {&machine_pass};
    cr_assert_eq(run(&world, passes, 1), TILE_OK);
    cr_assert_eq(world.report.times.count, 1);
    cr_expect_str_eq(world.report.times.items[0].func, "g");
    stop(&world);
}

Test(runner, skips_stops_and_limits) {
    World world = start();
    const TilePassInfo *passes[] = {&negate_pass, &rest_pass, &negate_pass};
    static const char *const skipped[] = {"rest"};
    world.options.skip = skipped;
    world.options.skip_count = 1;
    world.options.stop_after = "rest";
    cr_assert_eq(run(&world, passes, 3), TILE_OK);
    cr_expect_eq(world.report.times.count, 2, "the pass to stop after was skipped, and still ends the run");
    world.options = (TilePassOptions){.verify = true, .limited = true, .limit = 3};
    cr_assert_eq(run(&world, passes, 3), TILE_OK);
    cr_expect_eq(world.report.times.count, 5);
    world.options.limit = 0;
    cr_assert_eq(run(&world, passes, 3), TILE_OK);
    cr_expect_eq(world.report.times.count, 5);
    stop(&world);
}

Test(runner, dumps_after_a_pass_or_all) {
    World world = start();
    const TilePassInfo *passes[] = {&negate_pass, &rest_pass};
    world.options.dump_after = "rest";
    cr_assert_eq(run(&world, passes, 2), TILE_OK);
    cr_expect(contains(&world.report.dump, "// after rest\nfunc device tile @f"));
    cr_expect_not(contains(&world.report.dump, "// after negate"));
    world.options.dump_after = "all";
    cr_assert_eq(run(&world, passes, 2), TILE_OK);
    cr_expect(contains(&world.report.dump, "// after negate"));
    stop(&world);
}

Test(runner, finds_passes_that_lie) {
    static const TilePassInfo *const liars[] = {&boast_pass, &hide_pass, &boast_later_pass, &hide_later_pass, &fact_pass};
    static const char *const words[] = {"pass boast says that it changed something, but it did not (@g)",
                                        "pass hide says that it changed nothing, but it did (@g)",
                                        "pass boast-later says that it changed something, but it did not (@g)",
                                        "pass hide-later says that it changed nothing, but it did (@g)",
                                        "pass fact says that it changed nothing, but it did (@g)"};
    for (unsigned i = 0; i < sizeof liars / sizeof *liars; i++) {
        World world = start();
        cr_expect_eq(run(&world, &liars[i], 1), TILE_INTERNAL);
        cr_expect(contains(&world.pass.message, words[i]), "%s", tile_text_get(&world.pass.message));
        stop(&world);
    }
}

Test(runner, lets_a_phase_write_into_its_kernel) {
    World world = start();
    TileFunc *phase = world.module->first, *kernel = world.module->last;
    kernel->kind = TILE_FUNC_KERNEL;
    phase->kind = TILE_FUNC_PHASE;
    phase->kernel = kernel;
    const TilePassInfo *passes[] = {&fact_pass, &rest_pass};
    cr_expect_eq(run(&world, passes, 2), TILE_OK, "%s", tile_text_get(&world.pass.message));
    stop(&world);
}

Test(runner, writes_a_reproducer_of_what_the_verifier_refuses) {
    World world = start();
    const TilePassInfo *passes[] = {&negate_pass, &break_pass};
    cr_expect_eq(run(&world, passes, 2), TILE_INTERNAL);
    cr_expect(contains(&world.pass.message, "neg"), "%s", tile_text_get(&world.pass.message));
    cr_expect(contains(&world.report.reproducer, "--passes=break-rule"));
    cr_expect(contains(&world.report.reproducer, "func device tile @f(%x: f32) {\n  %0 = neg %x : f32\n"));
    stop(&world);
}

Test(runner, hands_on_why_a_pass_failed) {
    World world = start();
    const TilePassInfo *passes[] = {&give_up_pass, &negate_pass};
    cr_expect_eq(run(&world, passes, 2), TILE_UNSUPPORTED);
    cr_expect_str_eq(tile_text_get(&world.pass.message), ":3:4: no way round 7");
    cr_expect_eq(world.report.times.count, 1);
    cr_expect(contains(&world.report.reproducer, "--passes=give-up"));
    stop(&world);
}

Test(runner, does_not_visit_functions_that_come_or_go) {
    World world = start();
    const TilePassInfo *add[] = {&add_pass}, *remove[] = {&remove_pass};
    cr_assert_eq(run(&world, add, 1), TILE_OK);
    cr_expect_eq(world.report.times.count, 2);
    cr_assert_eq(run(&world, remove, 1), TILE_OK);
    cr_expect_eq(world.report.times.count, 3);
    stop(&world);
}

Test(runner, reads_lists_of_passes) {
    World world = start();
    const TilePassTable own = {&negate_pass, 1};
    const TilePassTable *tables[] = {tile_lowering_passes(), &own};
    TilePipeline pipeline = {0};
    TileText message = {.arena = world.scratch};
    cr_assert_eq(tile_pipeline_read(&pipeline, world.scratch, tables, 2, "dce,negate,cse", &message), TILE_OK);
    cr_assert_eq(pipeline.count, 3);
    cr_expect_eq(pipeline.items[0], tile_lowering_pass(TILE_PASS_dce));
    cr_expect_eq(pipeline.items[1], &negate_pass);
    cr_expect_eq(tile_pipeline_read(&pipeline, world.scratch, tables, 2, "dc", &message), TILE_NOT_FOUND);
    cr_expect_str_eq(tile_text_get(&message), "there is no pass `dc`");
    stop(&world);
}

/* ---- analyses ---- */

Test(runner, holds_a_pass_to_the_analyses_of_its_row) {
    World world = start();
    const TilePassInfo *right[] = {&ask_pass, &ask_pass, &alter_pass, &ask_pass};
    cr_expect_eq(run(&world, right, 4), TILE_OK, "%s", tile_text_get(&world.pass.message));
    stop(&world);
    world = start();
    const TilePassInfo *undeclared[] = {&undeclared_pass};
    cr_expect_eq(run(&world, undeclared, 1), TILE_INTERNAL);
    cr_expect(contains(&world.pass.message, "asks for an analysis"));
    stop(&world);
    world = start();
    const TilePassInfo *kept[] = {&ask_pass, &ask_pass, &keep_pass};
    cr_expect_eq(run(&world, kept, 3), TILE_INTERNAL);
    cr_expect(contains(&world.pass.message, "keeps the index analysis"));
    stop(&world);
}
