#include "driver/compile/ir_text.h"

#include <stdlib.h>
#include <string.h>

#include "lang/ir/program.h"
#include "lang/ir/text.h"

/* The input's file number, for diagnostics and in the context. */
enum { OWN_FILE = 1 };

/* ---- what is wrong ---- */

/* The token at a line and column of the input: a name, or one character. */
static TileSpan span_at(const TileUnit *unit, uint32_t line, uint32_t column) {
    const char *text = unit->input->text, *at = text, *end = text + unit->input->length;
    for (uint32_t k = 1; k < line && at; k++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at) at++;
    }
    if (!at || (size_t)(end - at) < column - 1) at = end - (column - 1);
    uint32_t begin = (uint32_t)(at + column - 1 - text);
    size_t length = strcspn(text + begin, " \t\r\n,(){}[]:=");
    return (TileSpan){OWN_FILE, begin, begin + (uint32_t)(length ? length : begin < unit->input->length)};
}

/* "line:column: reason" */
static void report_syntax(TileUnit *unit, const char *error) {
    char *end;
    uint32_t line = (uint32_t)strtoul(error, &end, 10), column = (uint32_t)strtoul(end + 1, &end, 10);
    size_t length = strcspn(end + 2, "\n");
    const char *reason = tile_arena_string(unit->arena, end + 2, length);
    tile_diagnose(unit->diagnostics, TILE_DIAGNOSTIC_IR_SYNTAX, span_at(unit, line, column), reason);
}

void tile_ir_text_report(TileUnit *unit, const TileComplaints *complaints) {
    for (size_t i = 0; i < complaints->count; i++) {
        const TileComplaint *complaint = &complaints->items[i];
        TileLocation at = complaint->op ? complaint->op->location : complaint->func->location;
        const char *words = tile_arena_format(unit->arena, "%s: %s", complaint->func->name, complaint->words);
        if (at.file == OWN_FILE) {
            tile_diagnose(unit->diagnostics, TILE_DIAGNOSTIC_IR_INVALID, span_at(unit, at.line, at.column), words);
        } else {
            if (unit->message.length) tile_text_add_char(&unit->message, '\n');
            tile_text_format(&unit->message, "%s:%u:%u: %s", unit->context->files.items[at.file], at.line, at.column,
                             words);
        }
    }
}

/* ---- reading ---- */

tile_status tile_ir_text_parse(TileUnit *unit) {
    const TileInput *input = unit->input;
    TileText errors = {.arena = unit->arena};
    tile_list_push(unit->context->arena, &unit->context->files, input->file);
    tile_diagnostics_add_file(unit->diagnostics, input->file, input->text, input->length);
    tile_status status =
        tile_module_read_file(unit->context, OWN_FILE, input->text, input->length, &unit->module, &errors);
    if (status == TILE_INVALID_SOURCE) report_syntax(unit, tile_text_get(&errors));
    if (status != TILE_OK) return status;
    TileComplaints complaints = tile_module_complaints(unit->module, unit->arena);
    if (!complaints.count) complaints = tile_program_complaints(unit->module, unit->arena);
    tile_ir_text_report(unit, &complaints);
    return complaints.count ? TILE_INVALID_SOURCE : TILE_OK;
}

/* ---- signatures of kernels ---- */

/* A dimension's name: the text of its check, or the name of its extent. */
static const char *dimension_name(TileUnit *unit, const TileValue *tensor, unsigned dimension) {
    const char *name = NULL;
    for (const TileUse *use = tensor->first_use; use; use = use->next) {
        const TileOp *op = use->user;
        if (use->index || tile_op_integer(op, TILE_ATTRIBUTE_AXIS, -1) != (int64_t)dimension) continue;
        if (op->id == TILE_OP_CHECK_DIM) return tile_op_get(op, TILE_ATTRIBUTE_TEXT)->text;
        if (op->id == TILE_OP_DIM && tile_op_result(op, 0)->name) name = tile_op_result(op, 0)->name;
    }
    return name ? name : tile_arena_format(unit->arena, "%s.%u", tensor->name, dimension);
}

static TileKernelParameter list_parameter(TileUnit *unit, const TileFunc *func, uint32_t index) {
    const TileValue *value = func->body.arguments[index];
    TileKernelParameter info = {.name = func->parameters[index].name, .scalar = value->type->scalar};
    info.type = tile_scalar_name(info.scalar);
    info.is_tensor = value->type->kind == TILE_TYPE_TENSOR;
    if (!info.is_tensor) return info;
    info.access = (TileAccess)value->type->access;
    info.rank = value->type->rank;
    for (unsigned d = 0; d < info.rank; d++) info.dims[d] = dimension_name(unit, value, d);
    return info;
}

static void print_parameter(TileText *text, const TileKernelParameter *parameter) {
    static const char *const access[] = {
        [TILE_ACCESS_IN] = "in", [TILE_ACCESS_OUT] = "out", [TILE_ACCESS_INOUT] = "inout"};
    tile_text_format(text, "%s: ", parameter->name);
    if (parameter->is_tensor) tile_text_format(text, "%s ", access[parameter->access]);
    tile_text_add(text, parameter->type);
    if (!parameter->is_tensor) return;
    for (unsigned d = 0; d < parameter->rank; d++) tile_text_format(text, "%s%s", d ? ", " : "[", parameter->dims[d]);
    tile_text_add(text, parameter->rank ? "]" : "[]");
}

static void list_kernel(TileUnit *unit, const TileFunc *func, TileProgramInfo *program) {
    TileKernelInfo info = {.name = func->name};
    TileText text = {.arena = unit->arena};
    tile_text_format(&text, "%s(", func->name);
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        TileKernelParameter parameter = list_parameter(unit, func, i);
        if (i) tile_text_add(&text, ", ");
        print_parameter(&text, &parameter);
        tile_list_push(unit->arena, &info.parameters, parameter);
    }
    tile_text_add_char(&text, ')');
    info.signature = tile_text_get(&text);
    tile_list_push(unit->arena, &program->kernels, info);
}

void tile_ir_text_list(TileUnit *unit, TileProgramInfo *program) {
    for (const TileFunc *func = unit->module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_KERNEL) list_kernel(unit, func, program);
}

/* ---- exports ---- */

static bool is_c_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return *name && strchr(letters, *name) && !name[length] && !tile_is_reserved_in_c(name);
}

static tile_status add_export(TileUnit *unit, const char *kernel, const char *symbol, TileProgramInfo *program) {
    TileExportInfo export = {.name = tile_intern_string(unit->context->strings, symbol), .kernel = kernel};
    if (!is_c_name(symbol)) {
        tile_text_format(&unit->message, "'%s' is no name of a C function; export it `as` one that is", symbol);
        return TILE_INVALID_ARGUMENT;
    }
    tile_list_push(unit->arena, &program->exports, export);
    return TILE_OK;
}

tile_status tile_ir_text_exports(TileUnit *unit, const char *const *words, size_t count, bool *taken,
                                 TileProgramInfo *program) {
    for (size_t k = 0; k < program->kernels.count && !count; k++)
        TILE_TRY(add_export(unit, program->kernels.items[k].name, program->kernels.items[k].name, program));
    for (size_t i = 0; i < count; i++) {
        const char *as = strstr(words[i], " as ");
        size_t length = as ? (size_t)(as - words[i]) : strlen(words[i]);
        const char *name = tile_intern(unit->context->strings, words[i], length);
        for (size_t k = 0; k < program->kernels.count; k++) {
            if (strcmp(program->kernels.items[k].name, name) != 0) continue;
            taken[i] = true;
            TILE_TRY(add_export(unit, name, as ? as + strlen(" as ") : name, program));
        }
    }
    return TILE_OK;
}

/* ---- lowering ---- */

/* Facts in the text are those of the compilation that printed it. This one's are granted later, and guarded. */
static void forget_facts(TileFunc *func) {
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        TileParameter *parameter = &func->parameters[i];
        *parameter = (TileParameter){.name = parameter->name, .facts = {.value = TILE_UNKNOWN}};
        for (int k = 0; k < TILE_MAX_TENSOR_RANK; k++)
            parameter->facts.stride[k] = parameter->facts.extent[k] = parameter->facts.multiple[k] = TILE_UNKNOWN;
    }
}

void tile_ir_text_lower(TileUnit *unit, const TileKernelInfo *kernel) {
    TileFunc *next;
    for (TileFunc *func = unit->module->first; func; func = next) {
        next = func->next;
        if (func->kind == TILE_FUNC_KERNEL && strcmp(func->name, kernel->name) != 0)
            tile_func_remove(func);
        else
            forget_facts(func);
    }
}
