/* Building kernels for include/tile/ir.h: the object, types, kernels and their parameters. */
#include "driver/compile/ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "driver/compile/ir_text.h"
#include "lang/ir/text.h"
#include "launch/options.h"

/* ---- the object ---- */

tile_status tile_ir_create(TileIr **ir) {
    if (!ir) return TILE_INVALID_ARGUMENT;
    TileIr *created = calloc(1, sizeof *created);
    if (!created) return TILE_OUT_OF_MEMORY;
    created->arena = tile_arena_create(NULL);
    created->context = tile_ir_context_create();
    jmp_buf guard;
    if (!created->arena || !created->context || setjmp(guard)) {
        tile_ir_destroy(created);
        return TILE_OUT_OF_MEMORY;
    }
    tile_arena_set_guard(created->context->arena, &guard);
    created->module = tile_module_create(created->context);
    if (!created->module) longjmp(guard, 1);
    tile_arena_set_guard(created->context->arena, NULL);
    tile_arena_set_guard(created->module->arena, NULL);
    created->message = "";
    *ir = created;
    return TILE_OK;
}

void tile_ir_destroy(TileIr *ir) {
    if (!ir) return;
    tile_module_destroy(ir->module);
    tile_ir_context_destroy(ir->context);
    tile_arena_destroy(ir->arena);
    free(ir);
}

static TileArena *arena_at(TileIr *ir, unsigned index) {
    TileArena *const arenas[] = {ir->arena, ir->context->arena, ir->module->arena};
    return arenas[index];
}

bool tile_ir_enter(TileIr *ir, jmp_buf *guard) {
    if (!ir || ir->status != TILE_OK) return false;
    for (unsigned i = 0; i < 3; i++) {
        ir->guards[i] = arena_at(ir, i)->guard;
        tile_arena_set_guard(arena_at(ir, i), guard);
    }
    return true;
}

void tile_ir_leave(TileIr *ir) {
    for (unsigned i = 0; i < 3; i++) tile_arena_set_guard(arena_at(ir, i), ir->guards[i]);
}

void tile_ir_run_out(TileIr *ir) {
    tile_ir_leave(ir);
    ir->status = TILE_OUT_OF_MEMORY;
    ir->message = "memory has run out";
}

void tile_ir_fail(TileIr *ir, const char *format, ...) {
    if (ir->status != TILE_OK) return;
    ir->status = TILE_INVALID_ARGUMENT;
    va_list arguments;
    va_start(arguments, format);
    const char *words = tile_arena_format_list(ir->arena, format, arguments);
    va_end(arguments);
    ir->message = ir->func ? tile_arena_format(ir->arena, "%s: %s", ir->func->name, words) : words;
}

/* Types are interned: equal types of a context are one object. */
bool tile_ir_owns_type(TileIr *ir, const TileType *type) { return tile_type_intern(ir->context->types, type) == type; }

bool tile_ir_owns_value(const TileIr *ir, const TileValue *value) {
    const TileBlock *block = tile_value_block(value);
    return block && block->func->module == ir->module;
}

bool tile_ir_owns_op(const TileIr *ir, const TileOp *op) { return op->block && tile_op_func(op)->module == ir->module; }

void tile_ir_mistake(TileIr *ir, const char *words) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return;
    }
    tile_ir_fail(ir, "%s", words);
    tile_ir_leave(ir);
}

tile_status tile_ir_status(const TileIr *ir) { return ir ? ir->status : TILE_INVALID_ARGUMENT; }
const char *tile_ir_message(const TileIr *ir) { return ir ? ir->message : "no TileIr"; }

static uint32_t find_file(TileIr *ir, const char *file) {
    const char *name = tile_intern_string(ir->context->strings, file);
    for (size_t i = 1; i < ir->context->files.count; i++)
        if (ir->context->files.items[i] == name) return (uint32_t)i;
    tile_list_push(ir->context->arena, &ir->context->files, name);
    return (uint32_t)ir->context->files.count - 1;
}

void tile_ir_place(TileIr *ir, const char *file, uint32_t line, uint32_t column) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return;
    }
    ir->at.location = (TileLocation){0};
    if (file && line) ir->at.location = (TileLocation){find_file(ir, file), line, column ? column : 1};
    tile_ir_leave(ir);
}

/* ---- types ---- */

static const TileType *read_type(TileIr *ir, const char *text) {
    TileText errors = {.arena = ir->arena};
    const TileType *type = text ? tile_type_read(ir->context, text, &errors) : NULL;
    bool known = type && (type->kind == TILE_TYPE_SCALAR || type->kind == TILE_TYPE_TILE);
    if (!known)
        tile_ir_fail(ir, "'%s' is no type of a scalar or tile, such as f32 or i64[4, 64]", text ? text : "NULL");
    return known ? type : NULL;
}

const TileIrType *tile_ir_type(TileIr *ir, const char *text) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return NULL;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return NULL;
    }
    const TileType *type = read_type(ir, text);
    tile_ir_leave(ir);
    return type;
}

const TileIrType *tile_ir_tile_type(TileIr *ir, const char *element, const int64_t *extents, unsigned rank) {
    char text[160];
    int length = snprintf(text, sizeof text, "%.20s", element ? element : "NULL");
    if (rank > TILE_MAX_TILE_RANK || (rank && !extents))
        rank = 0, length = snprintf(text, sizeof text, "a tile of too many axes");
    for (unsigned i = 0; i < rank; i++)
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "%s%lld", i ? ", " : "[", (long long)extents[i]);
    if (rank) snprintf(text + length, sizeof text - (size_t)length, "]");
    return tile_ir_type(ir, text);
}

static bool is_own_type(TileIr *ir, const TileType *type) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return true; /* a mistake was made before */
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return true;
    }
    bool own = tile_ir_owns_type(ir, type);
    tile_ir_leave(ir);
    return own;
}

const TileIrType *tile_ir_with_element(TileIr *ir, const TileIrType *type, const char *element) {
    if (type && !is_own_type(ir, type)) tile_ir_mistake(ir, "the type is one of another TileIr");
    return type ? tile_ir_tile_type(ir, element, type->extent, type->rank) : NULL;
}

bool tile_ir_type_info(const TileIrType *type, TileIrTypeInfo *info) {
    TileIrTypeInfo known = {.struct_size = info ? info->struct_size : 0};
    if (!type || known.struct_size < sizeof(size_t) || known.struct_size > TILE_MOST_OPTION_BYTES) return false;
    known.element = tile_scalar_name(type->scalar);
    known.is_tensor = type->kind == TILE_TYPE_TENSOR;
    known.rank = type->rank;
    for (unsigned i = 0; i < type->rank && !known.is_tensor; i++) known.extents[i] = type->extent[i];
    memcpy(info, &known, known.struct_size < sizeof known ? known.struct_size : sizeof known);
    return true;
}

const TileIrType *tile_ir_type_of(const TileIrValue *value) { return value ? value->type : NULL; }

/* ---- kernels ---- */

static void begin_kernel(TileIr *ir, const char *name) {
    if (ir->func) {
        tile_ir_fail(ir, "another kernel begins before its tile_ir_kernel_end");
    } else if (!name || !*name || tile_func_find(ir->module, name)) {
        tile_ir_fail(ir, "a kernel needs a name of its own, not '%s'", name ? name : "");
    } else {
        ir->func = tile_func_create(ir->module, name, TILE_FUNC_KERNEL, TILE_FORM_TILE);
        ir->func->location = ir->at.location;
        ir->at.module = ir->module;
        ir->at.block = &ir->func->body;
        ir->dimensions.count = ir->op_count = 0;
    }
}

void tile_ir_kernel(TileIr *ir, const char *name) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return;
    }
    begin_kernel(ir, name);
    tile_ir_leave(ir);
}

static void end_kernel(TileIr *ir) {
    if (!ir->func)
        tile_ir_fail(ir, "tile_ir_kernel_end without tile_ir_kernel");
    else if (ir->open.count)
        tile_ir_fail(ir, "the kernel ends before its %s", tile_op_info(ir->open.items[0].op->id)->mnemonic);
    else
        tile_build_end(&ir->at, TILE_OP_RETURN, NULL, 0);
    ir->func = NULL;
}

void tile_ir_kernel_end(TileIr *ir) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return;
    }
    end_kernel(ir);
    tile_ir_leave(ir);
}

/* ---- parameters ---- */

/* NULL where no parameter can be added. */
static TileValue *add_parameter(TileIr *ir, const char *name, const TileType *type) {
    if (!ir->func || ir->open.count) {
        tile_ir_fail(ir, "a parameter stands at the top of a kernel");
        return NULL;
    }
    if (!name || !*name) {
        tile_ir_fail(ir, "a parameter needs a name");
        return NULL;
    }
    for (uint32_t i = 0; i < ir->func->body.argument_count; i++)
        if (strcmp(ir->func->parameters[i].name, name) == 0) {
            tile_ir_fail(ir, "two parameters are called '%s'", name);
            return NULL;
        }
    return tile_func_add_parameter(ir->func, name, type);
}

static void check_extent(TileIr *ir, TileValue *tensor, unsigned dimension, TileValue *extent, const char *text) {
    TileValue *operands[] = {tensor, extent};
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_AXIS, .integer = dimension},
                                  {.key = TILE_ATTRIBUTE_TEXT, .text = tile_intern_string(ir->context->strings, text)}};
    tile_build_op(&ir->at, TILE_OP_CHECK_DIM, operands, 2, attributes, 2, NULL, 0);
    ir->op_count++;
}

/* A new name names this extent; a known name, or a number, is the value that the extent must have. */
static void bind_dimension(TileIr *ir, TileValue *tensor, unsigned dimension, const char *text) {
    const char *name = tile_intern_string(ir->context->strings, text);
    char *end;
    long long number = strtoll(text, &end, 10); /* clamped to its range */
    bool is_number = end != text && !*end;
    if (!*text || (is_number && (number < 0 || number > TILE_MAX_EXTENT))) {
        tile_ir_fail(ir, "'%s' is no dimension: a name, or a number from 0 to 2**47", text);
        return;
    }
    if (is_number) {
        ir->op_count++;
        check_extent(ir, tensor, dimension, tile_build_i64(&ir->at, number), text);
        return;
    }
    for (size_t i = 0; i < ir->dimensions.count; i++)
        if (ir->dimensions.items[i].name == name) {
            check_extent(ir, tensor, dimension, ir->dimensions.items[i].extent, text);
            return;
        }
    TileValue *extent = tile_build_dim(&ir->at, tensor, dimension);
    extent->name = name;
    ir->op_count++;
    tile_list_push(ir->arena, &ir->dimensions, (TileIrDimension){name, extent});
}

static TileValue *add_tensor(TileIr *ir, const char *name, TileParameterAccess access, const char *element,
                             const char *const *dimensions, unsigned rank) {
    static const TileAccess accesses[] = {[TILE_PARAMETER_IN] = TILE_ACCESS_IN,
                                          [TILE_PARAMETER_OUT] = TILE_ACCESS_OUT,
                                          [TILE_PARAMETER_INOUT] = TILE_ACCESS_INOUT};
    TileScalar scalar;
    if ((unsigned)access > TILE_PARAMETER_INOUT || !element || !tile_scalar_find(element, strlen(element), &scalar) ||
        rank > TILE_MAX_TENSOR_RANK || (rank && !dimensions)) {
        tile_ir_fail(ir, "tensor '%s': no such access or element type, or more than %d dimensions", name ? name : "",
                     TILE_MAX_TENSOR_RANK);
        return NULL;
    }
    TileValue *tensor = add_parameter(ir, name, tile_type_tensor(ir->context, scalar, rank, accesses[access]));
    for (unsigned i = 0; tensor && i < rank; i++)
        if (dimensions[i]) bind_dimension(ir, tensor, i, dimensions[i]);
    return ir->status == TILE_OK ? tensor : NULL;
}

TileIrValue *tile_ir_tensor(TileIr *ir, const char *name, TileParameterAccess access, const char *element,
                            const char *const *dimensions, unsigned rank) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return NULL;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return NULL;
    }
    TileValue *tensor = add_tensor(ir, name, access, element, dimensions, rank);
    tile_ir_leave(ir);
    return tensor;
}

static TileValue *add_scalar(TileIr *ir, const char *name, const char *element) {
    TileScalar scalar;
    if (element && tile_scalar_find(element, strlen(element), &scalar))
        return add_parameter(ir, name, tile_type_scalar(ir->context, scalar));
    tile_ir_fail(ir, "scalar '%s': no such type", name ? name : "");
    return NULL;
}

TileIrValue *tile_ir_scalar(TileIr *ir, const char *name, const char *element) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return NULL;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return NULL;
    }
    TileValue *scalar = add_scalar(ir, name, element);
    tile_ir_leave(ir);
    return scalar;
}

static TileValue *find_dimension(TileIr *ir, const char *name) {
    for (size_t i = 0; name && i < ir->dimensions.count; i++)
        if (strcmp(ir->dimensions.items[i].name, name) == 0) return ir->dimensions.items[i].extent;
    tile_ir_fail(ir, "no tensor has a dimension '%s'", name ? name : "");
    return NULL;
}

TileIrValue *tile_ir_dimension(TileIr *ir, const char *name) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return NULL;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return NULL;
    }
    TileValue *extent = find_dimension(ir, name);
    tile_ir_leave(ir);
    return extent;
}

/* ---- the result ---- */

static const char *print_module(TileIr *ir) {
    if (ir->func) {
        tile_ir_fail(ir, "the kernel has no tile_ir_kernel_end");
        return NULL;
    }
    TileText text = {.arena = ir->arena};
    bool places = ir->context->files.count > 1;
    tile_module_print(&text, ir->module, places ? TILE_PRINT_LOCATIONS | TILE_PRINT_FILES : 0);
    return tile_text_get(&text);
}

/* In the builder's arena; NULL after an error. */
static const char *text_of(TileIr *ir) {
    jmp_buf guard;
    if (!tile_ir_enter(ir, &guard)) return NULL;
    if (setjmp(guard)) {
        tile_ir_run_out(ir);
        return NULL;
    }
    const char *text = print_module(ir);
    tile_ir_leave(ir);
    return text;
}

static tile_status say(TileIr *ir, TileReport **report) {
    if (report && *tile_ir_message(ir)) *report = tile_report_from_text(tile_ir_message(ir));
    return tile_ir_status(ir);
}

tile_status tile_ir_text(TileIr *ir, char **text, TileReport **report) {
    if (report) *report = NULL;
    if (!text) return TILE_INVALID_ARGUMENT;
    const char *printed = text_of(ir);
    if (!printed) return say(ir, report);
    *text = strdup(printed);
    return *text ? TILE_OK : TILE_OUT_OF_MEMORY;
}

tile_status tile_compile_ir(TileCompiler *compiler, TileIr *ir, const TileCompileOptions *given, TileLibrary **library,
                            TileReport **report) {
    TileCompileOptions options;
    if (report) *report = NULL;
    if (!compiler || !library || !tile_options_read(&options, sizeof options, given)) return TILE_INVALID_ARGUMENT;
    const char *text = text_of(ir);
    if (!text) return say(ir, report);
    options.struct_size = sizeof options;
    if (!options.file) options.file = "<ir>";
    return tile_compile(compiler, text, strlen(text), &options, library, report);
}
