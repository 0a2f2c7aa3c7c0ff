/* `run kernel(name = value, ..)` in a test: the instance, its tensors, and the shapes of its results. */
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/formats.h"
#include "parser/check/function.h"
#include "parser/check/item.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/plan.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/run.h"
#include "parser/check/scope.h"
#include "parser/check/type.h"
#include <string.h>

#include "lang/scalar/scalar.h"

typedef struct RunParam {
    const TileParam *param;
    const TileExpr *expr; /* the argument; NULL: none is given */
    uint32_t tensor;      /* its index, or TILE_TEST_NONE */
} RunParam;

typedef struct Run {
    const TileItem *kernel;
    const TileAst *ast;
    const TileExpr *call;
    TileTestRun plan;
    TILE_LIST(RunParam) params;
    bool *used; /* for each argument */
} Run;

/* ---- the kernel ---- */

/* `run k(..)`: a kernel of the file, else of its imports, or an export of one of them; `run module.k(..)`. */
static TileFoundKernel named_kernel(TileChecker *c, const Run *run) {
    const TileExpr *callee = run->call->a;
    TileNameRef name = {.name = callee->name, .span = callee->span};
    bool field = callee->kind == TILE_EXPR_FIELD && callee->a->kind == TILE_EXPR_NAME;
    if (!field && callee->kind != TILE_EXPR_NAME) return (TileFoundKernel){.ast = c->ast};
    return tile_find_kernel(c, c->ast, field ? callee->a->name : NULL, name, true);
}

static bool find_kernel(TileChecker *c, Run *run) {
    const TileExpr *callee = run->call->a;
    TileFoundKernel found = named_kernel(c, run);
    const TileExport *export = found.export;
    const TileItem *item = found.item;
    run->ast = found.ast;
    if (found.reported || (item && item->broken)) return false;
    if (!item) return tile_fail_no_kernel(c, run->ast, callee->span, tile_span_text(c, callee->span)), false;
    run->kernel = item;
    run->plan.kernel = item->name;
    run->plan.file = run->ast->file;
    for (size_t i = 0; export && i < export->arguments.count && i < item->generics.count; i++) {
        const char *text = tile_span_text(c, export->arguments.items[i]->span);
        TileBinding binding = tile_binding_read(item->generics.items[i].name, tile_intern_string(c->names, text));
        tile_list_push(c->test->arena, &run->plan.bindings, binding);
    }
    for (size_t i = 0; export && i < export->settings.count; i++) {
        const char *text = tile_span_text(c, export->settings.items[i].value->span);
        TileBinding binding = tile_binding_read(export->settings.items[i].name, tile_intern_string(c->names, text));
        tile_list_push(c->test->arena, &run->plan.bindings, binding);
    }
    return true;
}

/* ---- arguments ---- */

static const TileExpr *take_argument(Run *run, const char *name) {
    for (size_t i = 0; i < run->call->arguments.count; i++) {
        const TileArgumentExpr *argument = &run->call->arguments.items[i];
        if (!argument->name || strcmp(argument->name, name) != 0) continue;
        run->used[i] = true;
        return argument->value;
    }
    return NULL;
}

static const TileBinding *find_binding(const Run *run, const char *name) {
    for (size_t i = 0; i < run->plan.bindings.count; i++)
        if (strcmp(run->plan.bindings.items[i].name, name) == 0) return &run->plan.bindings.items[i];
    return NULL;
}

static const char *function_text(TileChecker *c, const TileMeaning *function) {
    TileText text = {.arena = c->test->arena};
    return tile_function_print(c, &text, function) ? tile_text_get(&text) : NULL;
}

/* False if a setting cannot have this meaning. */
static bool read_setting(TileChecker *c, const TileMeaning *m, TileBinding *b) {
    int64_t known;
    switch ((TileMeaningKind)m->kind) {
    case TILE_MEANING_TYPE: b->kind = TILE_BINDING_TYPE, b->type = (TileScalar)m->scalar; return true;
    case TILE_MEANING_FUNCTION:
    case TILE_MEANING_BUILTIN:
        b->kind = TILE_BINDING_FUNCTION, b->function = function_text(c, m);
        return b->function != NULL;
    case TILE_MEANING_NUMBER: b->kind = TILE_BINDING_FLOAT, b->number = m->number; return true;
    case TILE_MEANING_VALUE: break;
    default: return false;
    }
    if (m->sum && tile_sum_known(&c->sums, m->sum, &known)) {
        b->kind = TILE_BINDING_INTEGER, b->integer = known;
        return true;
    }
    if (!m->constant) return false;
    if (m->scalar == TILE_BOOL)
        b->kind = TILE_BINDING_BOOL, b->truth = m->bits;
    else if (tile_scalar_is_float((TileScalar)m->scalar))
        b->kind = TILE_BINDING_FLOAT, b->number = tile_scalar_to_double((TileScalar)m->scalar, m->bits);
    else
        b->kind = TILE_BINDING_INTEGER, b->integer = tile_scalar_to_integer((TileScalar)m->scalar, m->bits);
    return true;
}

static const char *binding_text(TileChecker *c, const TileBinding *binding) {
    TileText text = {.arena = c->arena};
    tile_binding_print(&text, binding);
    return tile_text_get(&text);
}

/* A kernel is compiled from its own file: does that know the function by this text? */
static bool knows_function(const Run *run, const TileMeaning *m, const char *text) {
    return m->kind == TILE_MEANING_BUILTIN || tile_find_function(run->ast, text) == m->item;
}

static void fail_foreign(TileChecker *c, const Run *run, const TileExpr *expr) {
    const char *file = c->diagnostics->files.items[run->ast->file].name, *name = tile_span_text(c, expr->span);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNKNOWN_NAME, expr->span, name);
    tile_diagnostic_note(c->diagnostics, d, run->kernel->name_span,
                         "`%s` is compiled from its own file, and in %s nothing has this name", run->kernel->name, file);
    tile_report(c, d);
}

static bool add_binding(TileChecker *c, Run *run, const char *name, const TileExpr *expr) {
    TileMeaning m = tile_check_expr(c, expr);
    TileBinding b = {.name = name};
    if (tile_is_error(&m)) return false;
    if (m.kind == TILE_MEANING_INTEGER) m = tile_as_value(c, m, expr->span);
    if (!read_setting(c, &m, &b)) return tile_fail(c, NOT_CONSTANT, expr->span, "a setting of the kernel"), false;
    if (b.kind == TILE_BINDING_FUNCTION && run->ast != c->ast && !knows_function(run, &m, b.function)) return fail_foreign(c, run, expr), false;
    const TileBinding *chosen = find_binding(run, name); /* by the export */
    if (!chosen) {
        tile_list_push(c->test->arena, &run->plan.bindings, b);
        return true;
    }
    const char *ours = binding_text(c, chosen), *given = binding_text(c, &b);
    if (strcmp(ours, given) == 0) return true;
    return tile_fail(c, RUN_CHOSEN, expr->span, name, ours, tile_span_text(c, run->call->a->span), given), false;
}

/* Proposes the name of the parameter that stands there. */
static void fail_unnamed(TileChecker *c, const TileItem *kernel, const TileArgumentExpr *argument, size_t place) {
    TileSpan span = argument->value->span;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_RUN_NAMES, span);
    if (place < kernel->params.count)
        tile_diagnostic_edit(c->diagnostics, d, span, "%s = %s", kernel->params.items[place].name,
                             tile_span_text(c, span));
    tile_report(c, d);
}

/* Binds generics, tune names and static dimensions: the arguments that are not parameters. */
static bool bind_settings(TileChecker *c, Run *run) {
    const TileItem *kernel = run->kernel;
    bool ok = true;
    for (size_t i = 0; i < run->call->arguments.count; i++) {
        const TileArgumentExpr *argument = &run->call->arguments.items[i];
        bool parameter = false;
        if (!argument->name) return fail_unnamed(c, kernel, argument, i), false;
        for (size_t k = 0; k < i; k++)
            if (strcmp(run->call->arguments.items[k].name, argument->name) == 0)
                return tile_fail(c, GIVEN_TWICE, argument->name_span, argument->name, kernel->name), false;
        for (size_t k = 0; k < kernel->params.count; k++)
            parameter = parameter || (kernel->params.items[k].type && !kernel->params.items[k].type->is_const &&
                                      strcmp(kernel->params.items[k].name, argument->name) == 0);
        if (parameter || !tile_names_setting(kernel, argument->name)) continue;
        run->used[i] = true;
        ok = add_binding(c, run, argument->name, argument->value) && ok;
    }
    return ok;
}

/* The kernel's parameters, including those of a function generic. */
static bool list_params(TileChecker *c, Run *run) {
    for (size_t i = 0; i < run->kernel->params.count; i++) {
        const TileParam *param = &run->kernel->params.items[i];
        if (!param->spread) {
            if (!param->type->is_const) tile_list_push(c->arena, &run->params, (RunParam){.param = param});
            continue;
        }
        const TileGeneric *generic = NULL;
        for (size_t k = 0; k < run->kernel->generics.count; k++)
            if (run->kernel->generics.items[k].name == param->name) generic = &run->kernel->generics.items[k];
        if (!generic || generic->kind != TILE_GENERIC_FN) continue; /* reported with the kernel */
        const TileBinding *binding = find_binding(run, generic->name);
        TileMeaning m = tile_nothing();
        c->frame->ast = run->ast; /* the function is one of the kernel's file */
        if (binding && binding->kind == TILE_BINDING_FUNCTION)
            m = tile_function_from_text(c, generic->name, binding->function, run->call->span);
        else if (generic->value)
            m = tile_check_expr(c, generic->value);
        c->frame->ast = c->ast;
        if (tile_is_error(&m)) return false;
        size_t named = generic->type->items.count;
        for (size_t k = named; m.kind == TILE_MEANING_FUNCTION && k < m.item->params.count; k++)
            tile_list_push(c->arena, &run->params, (RunParam){.param = &m.item->params.items[k]});
    }
    return true;
}

static bool fail_unused(TileChecker *c, const Run *run, const TileArgumentExpr *argument) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ARGUMENT_NAME, argument->name_span,
                                      run->kernel->name, argument->name);
    TileNearest nearest = tile_nearest(argument->name);
    for (size_t i = 0; i < run->params.count; i++) tile_nearest_try(&nearest, run->params.items[i].param->name);
    tile_propose_nearest(c, d, argument->name_span, &nearest);
    tile_report(c, d);
    return false;
}

static bool give_arguments(TileChecker *c, Run *run) {
    bool ok = true;
    for (size_t i = 0; i < run->params.count; i++) {
        RunParam *p = &run->params.items[i];
        p->expr = take_argument(run, p->param->name);
        p->tensor = TILE_TEST_NONE;
        if (p->expr || p->param->type->access == TILE_WORD_OUT) continue;
        ok = (tile_fail(c, RUN_MISSING, run->call->span, run->kernel->name, p->param->name), false);
    }
    for (size_t i = 0; i < run->call->arguments.count; i++)
        if (!run->used[i]) ok = fail_unused(c, run, &run->call->arguments.items[i]);
    return ok;
}

/* ---- types ---- */

static const TileGeneric *type_generic(const Run *run, const char *name) {
    for (size_t i = 0; i < run->kernel->generics.count; i++) {
        const TileGeneric *generic = &run->kernel->generics.items[i];
        if (generic->kind == TILE_GENERIC_TYPE && generic->name == name) return generic;
    }
    return NULL;
}

/* The element type of a parameter, if it is bound by now. */
static bool param_scalar(const Run *run, const TileParam *param, TileScalar *scalar) {
    const char *name = param->type->name;
    if (!name) return false;
    if (!type_generic(run, name) && tile_format_find(name)) return *scalar = TILE_U8, true;
    if (!type_generic(run, name)) return tile_scalar_find(name, strlen(name), scalar);
    const TileBinding *binding = find_binding(run, name);
    if (binding && binding->kind == TILE_BINDING_TYPE) *scalar = binding->type;
    return binding && binding->kind == TILE_BINDING_TYPE;
}

static bool fit_scalar(TileChecker *c, Run *run, const RunParam *p, TileScalar given) {
    TileScalar wanted = given;
    const TileGeneric *generic = type_generic(run, p->param->type->name);
    if (param_scalar(run, p->param, &wanted)) {
        if (wanted == given) return true;
        tile_fail(c, TYPE_MISMATCH, p->expr->span, tile_scalar_name(wanted), tile_scalar_name(given));
        return false;
    }
    if (!generic) return true;
    uint32_t types = 0;
    for (size_t i = 0; i < generic->classes.count; i++) tile_class_types(generic->classes.items[i].name, &types);
    if (!(types >> given & 1u))
        return tile_fail(c, CLASS_MISMATCH, p->expr->span, tile_scalar_name(given), generic->name, run->kernel->name),
               false;
    TileBinding binding = {.name = generic->name, .kind = TILE_BINDING_TYPE, .type = given};
    tile_list_push(c->test->arena, &run->plan.bindings, binding);
    return true;
}

/* ---- values ---- */

static bool add_scalar(TileChecker *c, Run *run, const RunParam *p) {
    TileTestArgument argument = {.scalar = TILE_I64, .tensor = TILE_TEST_NONE, .result = TILE_TEST_NONE};
    TileMeaning m = tile_check_value(c, p->expr);
    bool known = param_scalar(run, p->param, &argument.scalar);
    if (known && tile_is_literal(&m)) m = tile_literal_as(c, &m, argument.scalar, p->expr->span);
    m = tile_as_value(c, m, p->expr->span);
    if (tile_is_error(&m) || !fit_scalar(c, run, p, (TileScalar)m.scalar)) return false;
    argument.scalar = (TileScalar)m.scalar;
    if (!tile_constant_bits(c, &m, argument.scalar, &argument.bits))
        return tile_fail(c, NOT_CONSTANT, p->expr->span, "a scalar argument of `run`"), false;
    tile_list_push(c->test->arena, &run->plan.arguments, argument);
    return true;
}

/* A tensor of the plan, or a value that the test computes. */
static bool add_tensor(TileChecker *c, Run *run, RunParam *p) {
    TileTestArgument argument = {.tensor = TILE_TEST_NONE, .result = TILE_TEST_NONE};
    if (p->expr) {
        TileMeaning m = tile_check_expr(c, p->expr);
        param_scalar(run, p->param, &argument.scalar);
        if (tile_is_literal(&m)) m = tile_literal_as(c, &m, argument.scalar, p->expr->span);
        if (tile_is_error(&m)) return false;
        bool tensor = m.kind == TILE_MEANING_TENSOR || (m.kind == TILE_MEANING_VALUE && m.tensor);
        if (!tensor && m.kind != TILE_MEANING_VALUE)
            return tile_fail(c, NOT_TENSOR, p->expr->span, tile_meaning_words(c, &m)), false;
        unsigned rank = tensor ? m.tensor->rank : m.rank, wanted = (unsigned)p->param->type->extents.count;
        if (rank != wanted) return tile_fail(c, ARGUMENT_RANK, p->expr->span, wanted, rank), false;
        if (!fit_scalar(c, run, p, tensor ? m.tensor->scalar : (TileScalar)m.scalar)) return false;
        p->tensor = tensor ? m.tensor->number : tile_test_store(c, m, TILE_TEST_COMPUTED, p->expr);
        argument.tensor = p->tensor;
        run->plan.computes = run->plan.computes || !tensor;
    }
    tile_list_push(c->test->arena, &run->plan.arguments, argument);
    return true;
}

/* ---- dimensions ---- */

static void bind_name(TileChecker *c, const char *name, TileSpan span, int64_t value) {
    TileMeaning m = tile_sum_meaning(tile_sum_integer(&c->sums, value));
    tile_scope_push(c, (TileBound){.name = name, .meaning = m, .span = span});
}

static bool is_free(TileChecker *c, const char *name) {
    return !tile_scope_find(c, name) && !tile_is_constant(c, c->frame->ast, name);
}

/* The only unbound name of the expression; NULL if there is none, and *more if there are several. */
static const char *free_name(TileChecker *c, const TileExpr *expr, const char *found, bool *more) {
    if (!expr || expr->kind == TILE_EXPR_INTEGER) return found;
    if (expr->kind == TILE_EXPR_NAME && is_free(c, expr->name)) {
        *more = *more || (found && found != expr->name);
        return expr->name;
    }
    if (expr->kind == TILE_EXPR_BINARY || expr->kind == TILE_EXPR_UNARY)
        return free_name(c, expr->b, free_name(c, expr->a, found, more), more);
    return found;
}

static bool value_with(TileChecker *c, const TileExpr *expr, const char *name, int64_t value, int64_t *result) {
    bind_name(c, name, expr->span, value);
    bool ok = tile_check_constant(c, expr, "a dimension", result);
    tile_scope_cut(c, c->bounds.count - 1);
    return ok;
}

/* Solves a linear expression for an integer, given its value. */
static bool solve(TileChecker *c, const TileExpr *expr, const char *name, int64_t value, int64_t *solution) {
    int64_t at[3], check;
    for (int i = 0; i < 3; i++)
        if (!value_with(c, expr, name, i, &at[i])) return false;
    int64_t slope = at[1] - at[0];
    if (slope == 0 || at[2] - at[1] != slope || (value - at[0]) % slope) return false;
    *solution = (value - at[0]) / slope;
    return *solution >= 0 && value_with(c, expr, name, *solution, &check) && check == value;
}

/* A dimension of an argument; `halved`: its extent is that of bytes, each of which holds two elements. */
typedef struct RunDimension {
    const RunParam *p;
    const TileExpr *expr;
    int64_t extent;
    bool halved;
} RunDimension;
typedef bool (*VisitDimension)(TileChecker *c, Run *run, const RunDimension *at);

static bool is_halved(const Run *run, const TileParam *param, unsigned d) {
    const TileTypeExpr *type = param->type;
    bool format = type->name && !type_generic(run, type->name) && tile_format_is_packed(tile_format_find(type->name));
    return format && d + 1 == type->extents.count;
}

static bool for_dimensions(TileChecker *c, Run *run, VisitDimension visit) {
    bool ok = true;
    for (size_t i = 0; i < run->params.count; i++) {
        const RunParam *p = &run->params.items[i];
        const TileTestTensor *made = p->tensor == TILE_TEST_NONE ? NULL : &c->test->plan->tensors.items[p->tensor];
        for (unsigned d = 0; made && d < made->rank; d++)
            ok = visit(c, run, &(RunDimension){p, p->param->type->extents.items[d], made->extent[d],
                                               is_halved(run, p->param, d)}) && ok;
    }
    return ok;
}

static bool bind_plain(TileChecker *c, Run *run, const RunDimension *at) {
    const TileExpr *expr = at->expr;
    bool binds = expr->kind == TILE_EXPR_NAME && !at->halved && is_free(c, expr->name);
    if (binds) bind_name(c, expr->name, at->p->expr->span, at->extent);
    return true;
}

/* Of packed elements there may be one less; a tensor that has as many tells. */
static bool bind_packed(TileChecker *c, Run *run, const RunDimension *at) {
    const TileExpr *expr = at->expr;
    bool binds = expr->kind == TILE_EXPR_NAME && at->halved && is_free(c, expr->name);
    if (binds) bind_name(c, expr->name, at->p->expr->span, 2 * at->extent);
    return true;
}

static bool bind_solved(TileChecker *c, Run *run, const RunDimension *at) {
    bool more = false;
    const char *name = free_name(c, at->expr, NULL, &more);
    int64_t value;
    if (name && !more && solve(c, at->expr, name, at->halved ? 2 * at->extent : at->extent, &value))
        bind_name(c, name, at->p->expr->span, value);
    return true;
}

static bool compare_dimension(TileChecker *c, Run *run, const RunDimension *at) {
    bool more = false;
    int64_t wanted;
    if (free_name(c, at->expr, NULL, &more)) return true; /* its value is not determined */
    if (!tile_check_constant(c, at->expr, "a dimension", &wanted)) return false;
    const char *text = tile_span_text(c, at->expr->span);
    if (at->halved) text = tile_halved_text(c->arena, at->expr, text);
    if (at->halved) wanted = wanted / 2 + wanted % 2;
    if (wanted == at->extent) return true;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_RUN_SHAPE, at->p->expr->span, at->p->param->name,
                                      text, (long long)wanted, (long long)at->extent);
    tile_diagnostic_note(c->diagnostics, d, at->expr->span, "the dimension is declared here");
    return false;
}

static void bind_constants(TileChecker *c, Run *run) {
    for (size_t i = 0; i < run->plan.bindings.count; i++) {
        const TileBinding *b = &run->plan.bindings.items[i];
        if (b->kind == TILE_BINDING_INTEGER)
            bind_name(c, tile_intern_string(c->names, b->name), run->call->span, b->integer);
    }
    for (size_t i = 0; i < run->params.count; i++) {
        const RunParam *p = &run->params.items[i];
        const TileTestArgument *argument = &run->plan.arguments.items[i];
        bool integer = p->param->type->access == TILE_WORD_NONE && argument->scalar == TILE_I64;
        if (integer && !tile_scope_find(c, p->param->name))
            bind_name(c, p->param->name, p->expr->span, (int64_t)argument->bits);
    }
}

/* ---- results ---- */

/* Proposes the type of another tensor of the call, if the generic may have it. */
static bool fail_type_unknown(TileChecker *c, const Run *run, const TileParam *param) {
    const TileGeneric *generic = type_generic(run, param->type->name);
    uint32_t types = 0;
    TileScalar given, chosen = TILE_F32;
    for (size_t i = 0; generic && i < generic->classes.count; i++) tile_class_types(generic->classes.items[i].name, &types);
    if (types && !(types >> chosen & 1u)) chosen = (TileScalar)__builtin_ctz(types);
    for (size_t i = run->params.count; i-- > 0;)
        if (param_scalar(run, run->params.items[i].param, &given) && types >> given & 1u) chosen = given;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_RUN_UNKNOWN, run->call->span, "type", param->name, param->type->name);
    TileSpan end = {run->call->span.file, run->call->span.end - 1, run->call->span.end - 1};
    if (generic)
        tile_diagnostic_edit(c->diagnostics, d, end, "%s%s = %s", run->call->arguments.count ? ", " : "", generic->name,
                             tile_scalar_name(chosen));
    tile_report(c, d);
    return false;
}

static bool fail_shape_unknown(TileChecker *c, const Run *run, const TileParam *param, TileScalar scalar, const char *name) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_RUN_UNKNOWN, run->call->span, "shape", param->name, name);
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`run %s(.., %s = zeros(%s, ..))` gives the tensor, and so its shape",
                         run->kernel->name, param->name, tile_scalar_name(scalar));
    tile_report(c, d);
    return false;
}

static bool shape_result(TileChecker *c, Run *run, const RunParam *p, TileTestTensor *made) {
    const TileTypeExpr *type = p->param->type;
    made->rank = (unsigned)type->extents.count;
    if (made->rank > TILE_MAX_TENSOR_RANK) return false; /* reported with the kernel */
    if (!param_scalar(run, p->param, &made->scalar))
        return fail_type_unknown(c, run, p->param);
    for (unsigned d = 0; d < made->rank; d++) {
        bool more = false;
        const TileExpr *expr = type->extents.items[d];
        const char *name = free_name(c, expr, NULL, &more);
        if (name) return fail_shape_unknown(c, run, p->param, made->scalar, name);
        if (!tile_check_constant(c, expr, "a dimension", &made->extent[d])) return false;
        if (made->extent[d] < 0) return tile_fail(c, RUN_UNKNOWN, expr->span, "shape", p->param->name, "it"), false;
        if (is_halved(run, p->param, d)) made->extent[d] = made->extent[d] / 2 + made->extent[d] % 2;
    }
    return true;
}

static bool add_results(TileChecker *c, Run *run) {
    for (size_t i = 0; i < run->params.count; i++) {
        const RunParam *p = &run->params.items[i];
        bool written = p->param->type->access == TILE_WORD_OUT || p->param->type->access == TILE_WORD_INOUT;
        if (!written) continue;
        TileTestTensor made = {0};
        if (p->tensor != TILE_TEST_NONE)
            made = c->test->plan->tensors.items[p->tensor];
        else if (!shape_result(c, run, p, &made))
            return false;
        made.source = TILE_TEST_RESULT;
        made.run = (uint32_t)c->test->plan->runs.count;
        run->plan.arguments.items[i].result = tile_test_add(c, &made);
    }
    return true;
}

/* The names of the kernel's dimensions are looked up in a frame of their own. */
static bool find_shapes(TileChecker *c, Run *run) {
    TileFrame frame = {.parent = c->frame,
                       .item = run->kernel,
                       .ast = run->ast,
                       .scope_base = c->bounds.count,
                       .call = run->call->span};
    TileFrame *caller = c->frame;
    c->frame = &frame;
    bind_constants(c, run);
    bool ok = for_dimensions(c, run, bind_plain) && for_dimensions(c, run, bind_packed) &&
              for_dimensions(c, run, bind_solved) &&
              for_dimensions(c, run, compare_dimension) && add_results(c, run);
    tile_scope_cut(c, frame.scope_base);
    c->frame = caller;
    return ok;
}

static TileMeaning results_of(TileChecker *c, const Run *run) {
    TileMeaning tuple = {.kind = TILE_MEANING_TUPLE, .items = TILE_NEW_ARRAY(c->arena, TileMeaning, run->params.count)};
    for (size_t i = 0; i < run->plan.arguments.count; i++) {
        uint32_t result = run->plan.arguments.items[i].result;
        if (result != TILE_TEST_NONE) tuple.items[tuple.count++] = tile_test_meaning(c, result, run->call->span);
    }
    return tuple.count == 0 ? tile_nothing() : tuple.count == 1 ? tuple.items[0] : tuple;
}

/* The cost of a run, in ops: a kernel is compiled for it, and the test's own function has its results as parameters. */
enum { RUN_WORK = 256 };

TileMeaning tile_check_run(TileChecker *c, const TileExpr *expr) {
    if (!c->test || c->frame->parent) return tile_fail(c, RUN_PLACE, expr->span);
    if (!tile_at_top_of_test(c, expr->span, "`run`")) return tile_error_meaning();
    tile_spend(c, RUN_WORK);
    if (expr->a->kind != TILE_EXPR_CALL) return tile_fail(c, RUN_NAMES, expr->span);
    Run run = {.call = expr->a, .plan = {.span = expr->span}};
    run.used = TILE_NEW_ARRAY(c->arena, bool, run.call->arguments.count);
    if (!find_kernel(c, &run) || !bind_settings(c, &run) || !list_params(c, &run) || !give_arguments(c, &run))
        return tile_error_meaning();
    for (size_t i = 0; i < run.params.count; i++) {
        RunParam *p = &run.params.items[i];
        bool scalar = p->param->type->access == TILE_WORD_NONE;
        if (scalar ? !add_scalar(c, &run, p) : !add_tensor(c, &run, p)) return tile_error_meaning();
    }
    if (c->test->number == c->test->plan->runs.count) {
        c->test->done = true;
        return tile_error_meaning();
    }
    if (!find_shapes(c, &run)) return tile_error_meaning();
    tile_list_push(c->test->arena, &c->test->plan->runs, run.plan);
    return results_of(c, &run);
}
