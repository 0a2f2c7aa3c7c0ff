#include "lang/ir/text.h"

#include <ctype.h>
#include <string.h>

#include "lang/ir/tensor_map.h"
#include "lang/layout/layout.h"
#include "lang/scalar/scalar.h"

typedef struct Printer {
    TileText *text;
    TileArena *scratch;
    unsigned options;
    TileMap names; /* TileValue to its name as it is printed */
    TileMap taken; /* interned name to the number that the next value with this hint tries */
    TileInterner *strings;
    uint32_t unnamed;
    TILE_LIST(const TileLayout *) layouts;
} Printer;

/* ---- layouts: numbered in the order of first use ---- */

static size_t layout_number(Printer *p, const TileLayout *layout) {
    size_t number = 0;
    while (number < p->layouts.count && p->layouts.items[number] != layout) number++;
    if (number == p->layouts.count) tile_list_push(p->scratch, &p->layouts, layout);
    return number;
}

static void print_type(Printer *p, const TileType *type) {
    tile_type_print(p->text, type);
    if (type->layout) tile_text_format(p->text, " layout %zu", layout_number(p, type->layout));
}

static void print_layouts(Printer *p) {
    for (size_t i = 0; i < p->layouts.count; i++) {
        tile_text_format(p->text, "  layout %zu = ", i);
        tile_layout_print(p->text, p->layouts.items[i]);
        tile_text_add(p->text, "\n");
    }
}

/* ---- names ---- */

static bool is_plain_name(const char *name) {
    if (!isalpha((unsigned char)*name) && *name != '_') return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_' && *name != '.') return false;
    return true;
}

static void print_name(TileText *text, char sigil, const char *name);

static void take_name(Printer *p, const TileValue *value, const char *name) {
    size_t length = strlen(name);
    TileText printed = {.arena = p->scratch, .text = tile_arena_take(p->scratch, length + 2), .capacity = length + 2};
    print_name(&printed, '%', name);
    tile_map_set(&p->taken, name, (void *)(uintptr_t)1);
    tile_map_set(&p->names, value, printed.text);
}

/* "%7", which is entered in `names` and not in `taken`, so that it cannot collide with a parameter whose name is digits. */
static void take_number(Printer *p, const TileValue *value) {
    char digits[16], *at = digits + sizeof digits;
    uint32_t number = p->unnamed++;
    *--at = 0;
    do *--at = (char)('0' + number % 10);
    while (number /= 10);
    *--at = '%';
    tile_map_set(&p->names, value, tile_arena_string(p->scratch, at, (size_t)(digits + sizeof digits - 1 - at)));
}

static void name_value(Printer *p, const TileValue *value, const char *hint) {
    if (value->type->layout) layout_number(p, value->type->layout);
    if (!hint) {
        take_number(p, value);
        return;
    }
    const char *name = tile_intern_string(p->strings, hint);
    uintptr_t next = (uintptr_t)tile_map_get(&p->taken, name);
    if (!next) {
        take_name(p, value, name);
        return;
    }
    const char *numbered;
    do
        numbered =
            tile_intern_string(p->strings, tile_arena_format(p->scratch, "%s.%llu", name, (unsigned long long)next++));
    while (tile_map_get(&p->taken, numbered));
    tile_map_set(&p->taken, name, (void *)next);
    take_name(p, value, numbered);
}

static void name_block(Printer *p, const TileBlock *block) {
    for (uint32_t i = 0; i < block->argument_count; i++) {
        const TileValue *value = block->arguments[i];
        bool parameter = !block->op && block->func && block->func->parameters;
        const char *name = parameter ? block->func->parameters[i].name : value->name;
        name_value(p, value, name && (parameter || is_plain_name(name)) ? name : NULL);
    }
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++) {
            const char *name = op->results[i].name;
            name_value(p, &op->results[i], name && is_plain_name(name) ? name : NULL);
        }
        for (unsigned i = 0; i < op->region_count; i++) name_block(p, &op->regions[i]);
    }
}

static void print_quoted(TileText *text, const char *string) {
    tile_text_add_char(text, '"');
    for (; *string; string++) {
        unsigned char c = (unsigned char)*string;
        if (c == '"' || c == '\\')
            tile_text_format(text, "\\%c", c);
        else if (c == '\n')
            tile_text_add(text, "\\n");
        else if (c < 0x20 || c == 0x7f)
            tile_text_format(text, "\\x%02x", c);
        else
            tile_text_add_char(text, (char)c);
    }
    tile_text_add_char(text, '"');
}

static void print_name(TileText *text, char sigil, const char *name) {
    tile_text_add_char(text, sigil);
    if (is_plain_name(name))
        tile_text_add(text, name);
    else
        print_quoted(text, name);
}

static void print_value(Printer *p, const TileValue *value) {
    const char *name = value ? tile_map_get(&p->names, value) : NULL;
    tile_text_add(p->text, name ? name : "%?");
}

/* ---- attributes ---- */

static void print_integers(Printer *p, const TileAttribute *attribute, bool names) {
    tile_text_add(p->text, "[");
    for (uint32_t i = 0; i < attribute->count; i++) {
        const char *word = names ? tile_name_text(attribute->key, attribute->integers[i]) : NULL;
        if (i) tile_text_add(p->text, ", ");
        if (word)
            tile_text_add(p->text, word);
        else
            tile_text_format(p->text, "%lld", (long long)attribute->integers[i]);
    }
    tile_text_add(p->text, "]");
}

static void print_texts(Printer *p, const TileAttribute *attribute) {
    tile_text_add(p->text, "[");
    for (uint32_t i = 0; i < attribute->count; i++) {
        if (i) tile_text_add(p->text, ", ");
        print_quoted(p->text, attribute->texts[i]);
    }
    tile_text_add(p->text, "]");
}

static void print_types(Printer *p, const TileAttribute *attribute) {
    tile_text_add(p->text, "[");
    for (uint32_t i = 0; i < attribute->count; i++) {
        if (i) tile_text_add(p->text, ", ");
        tile_type_print(p->text, attribute->types[i]);
    }
    tile_text_add(p->text, "]");
}

static void print_attribute(Printer *p, const TileOp *op, const TileAttribute *attribute) {
    const char *word;
    tile_text_add(p->text, tile_attribute_name(attribute->key));
    tile_text_add(p->text, " = ");
    switch (tile_attribute_storage(attribute->key)) {
    case TILE_STORAGE_BITS:
        tile_scalar_print(p->text, op->result_count ? op->results[0].type->scalar : TILE_U64, attribute->bits);
        return;
    case TILE_STORAGE_INT: tile_text_format(p->text, "%lld", (long long)attribute->integer); return;
    case TILE_STORAGE_NAME:
        word = tile_name_text(attribute->key, attribute->integer);
        if (word)
            tile_text_add(p->text, word);
        else
            tile_text_format(p->text, "%lld", (long long)attribute->integer);
        return;
    case TILE_STORAGE_TEXT: print_quoted(p->text, attribute->text); return;
    case TILE_STORAGE_TEXTS: print_texts(p, attribute); return;
    case TILE_STORAGE_INTS: print_integers(p, attribute, false); return;
    case TILE_STORAGE_NAMES: print_integers(p, attribute, true); return;
    case TILE_STORAGE_TYPES: print_types(p, attribute); return;
    }
}

static void print_attributes(Printer *p, const TileOp *op) {
    if (!op->attribute_count) return;
    for (unsigned i = 0; i < op->attribute_count; i++) {
        tile_text_add(p->text, i ? ", " : " {");
        print_attribute(p, op, &op->attributes[i]);
    }
    tile_text_add(p->text, "}");
}

/* ---- ops ---- */

static void print_location(Printer *p, TileLocation location) {
    if (!(p->options & TILE_PRINT_LOCATIONS) || !location.line) return;
    if (location.file == 1)
        tile_text_format(p->text, " @%u:%u", location.line, location.column);
    else
        tile_text_format(p->text, " @%u:%u:%u", location.file, location.line, location.column);
}

static void print_op(Printer *p, const TileOp *op, unsigned indent);

static void print_region(Printer *p, const TileBlock *block, unsigned indent) {
    for (uint32_t i = 0; i < block->argument_count; i++) {
        tile_text_add(p->text, i ? ", " : " (");
        print_value(p, block->arguments[i]);
        tile_text_add(p->text, ": ");
        print_type(p, block->arguments[i]->type);
    }
    tile_text_add(p->text, block->argument_count ? ") {\n" : " {\n");
    for (const TileOp *op = block->first; op; op = op->next) print_op(p, op, indent + 1);
    for (unsigned i = 0; i < indent; i++) tile_text_add_bytes(p->text, "  ", 2);
    tile_text_add(p->text, "}");
}

static void print_op_line(Printer *p, const TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++) {
        if (i) tile_text_add(p->text, ", ");
        print_value(p, &op->results[i]);
    }
    if (op->result_count) tile_text_add(p->text, " = ");
    tile_text_add(p->text, tile_op_info(op->id)->mnemonic);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        tile_text_add(p->text, i ? ", " : " ");
        print_value(p, op->operands[i].value);
    }
    print_attributes(p, op);
    for (unsigned i = 0; i < op->result_count; i++) {
        tile_text_add(p->text, i ? ", " : " : ");
        print_type(p, op->results[i].type);
    }
    print_location(p, op->location);
}

static void print_op(Printer *p, const TileOp *op, unsigned indent) {
    for (unsigned i = 0; i < indent; i++) tile_text_add_bytes(p->text, "  ", 2);
    print_op_line(p, op);
    for (unsigned i = 0; i < op->region_count; i++) print_region(p, &op->regions[i], indent);
    tile_text_add(p->text, "\n");
}

/* ---- functions ---- */

static const char *const kind_words[] = {"kernel", "device", "phase"};

typedef struct List {
    TileText *text;
    bool started;
} List;

static void next_fact(List *list) {
    tile_text_add(list->text, list->started ? ", " : " {");
    list->started = true;
}

static void print_number_fact(List *list, const char *name, int64_t number) {
    next_fact(list);
    tile_text_format(list->text, "%s = %lld", name, (long long)number);
}

static void print_word_fact(List *list, const char *word, bool holds) {
    if (!holds) return;
    next_fact(list);
    tile_text_add(list->text, word);
}

static void print_dimension_facts(List *list, const char *name, const int64_t *values) {
    for (int i = 0; i < TILE_MAX_TENSOR_RANK; i++) {
        if (values[i] == TILE_UNKNOWN) continue;
        next_fact(list);
        tile_text_format(list->text, "%s%d = %lld", name, i, (long long)values[i]);
    }
}

static void print_positions(List *list, const TileTensorMap *map) {
    uint32_t axes = tile_map_image_axes(map);
    print_number_fact(list, "positions", map->positions);
    if (!axes) return;
    next_fact(list);
    for (uint32_t d = 0; d < axes; d++) tile_text_format(list->text, d ? ", %d" : "corner = [%d", map->corner[d]);
    tile_text_add(list->text, "]");
    next_fact(list);
    for (uint32_t d = 0; d < axes; d++)
        tile_text_format(list->text, d ? ", %u, %u" : "over = [%u, %u", map->over[d].argument, map->over[d].axis);
    tile_text_add(list->text, "]");
}

static void print_map(List *list, const TileTensorMap *map) {
    next_fact(list);
    tile_text_add(list->text, "box = [");
    for (uint32_t d = 0; d < map->rank; d++) tile_text_format(list->text, d ? ", %u" : "%u", map->box[d]);
    tile_text_add(list->text, "]");
    print_number_fact(list, "swizzle", map->swizzle);
    if (map->cut) print_number_fact(list, "cut", map->cut);
    if (map->positions) print_positions(list, map);
    bool steps = false;
    for (uint32_t d = 0; d < map->rank; d++) steps |= tile_map_step(map, d) > 1;
    if (!steps) return;
    next_fact(list);
    tile_text_add(list->text, "steps = [");
    for (uint32_t d = 0; d < map->rank; d++) tile_text_format(list->text, d ? ", %u" : "%u", tile_map_step(map, d));
    tile_text_add(list->text, "]");
}

static void print_role(List *list, const TileParameter *parameter) {
    if (parameter->role == TILE_ROLE_NONE) return;
    next_fact(list);
    tile_text_format(list->text, "role = %s", tile_role_word(parameter->role));
    if (tile_role_has_argument(parameter->role)) print_number_fact(list, "argument", parameter->argument);
    if (tile_role_has_axis(parameter->role)) print_number_fact(list, "axis", parameter->axis);
    if (parameter->map.rank) print_map(list, &parameter->map);
}

static void print_facts(TileText *text, const TileParameter *parameter) {
    List list = {text, false};
    print_role(&list, parameter);
    if (parameter->facts.align) print_number_fact(&list, "align", parameter->facts.align);
    print_dimension_facts(&list, "stride", parameter->facts.stride);
    print_dimension_facts(&list, "extent", parameter->facts.extent);
    print_dimension_facts(&list, "multiple", parameter->facts.multiple);
    if (parameter->facts.value != TILE_UNKNOWN) print_number_fact(&list, "value", parameter->facts.value);
    if (parameter->used_align) print_number_fact(&list, "used_align", parameter->used_align);
    if (parameter->used_stride) print_number_fact(&list, "used_stride", parameter->used_stride);
    if (parameter->used_extent) print_number_fact(&list, "used_extent", parameter->used_extent);
    if (parameter->asked_align) print_number_fact(&list, "asked_align", parameter->asked_align);
    if (parameter->asked_stride) print_number_fact(&list, "asked_stride", parameter->asked_stride);
    if (parameter->used_multiple) print_number_fact(&list, "used_multiple", parameter->used_multiple);
    if (parameter->asked_multiple) print_number_fact(&list, "asked_multiple", parameter->asked_multiple);
    if (parameter->facts.dense) print_number_fact(&list, "dense", parameter->facts.dense);
    if (parameter->used_dense) print_number_fact(&list, "used_dense", parameter->used_dense);
    if (parameter->asked_dense) print_number_fact(&list, "asked_dense", parameter->asked_dense);
    if (parameter->facts.most) print_number_fact(&list, "most", parameter->facts.most);
    if (parameter->used_most) print_number_fact(&list, "used_most", parameter->used_most);
    if (parameter->asked_most) print_number_fact(&list, "asked_most", parameter->asked_most);
    if (parameter->likely_stride) print_number_fact(&list, "likely_stride", parameter->likely_stride);
    if (parameter->likely) print_number_fact(&list, "likely", parameter->likely);
    if (parameter->own) print_number_fact(&list, "own", parameter->own);
    print_word_fact(&list, "narrow", parameter->facts.narrow);
    print_word_fact(&list, "used_narrow", parameter->used_narrow);
    print_word_fact(&list, "asked_narrow", parameter->asked_narrow);
    print_word_fact(&list, "map", parameter->facts.map);
    print_word_fact(&list, "used_map", parameter->used_map);
    print_word_fact(&list, "asked_map", parameter->asked_map);
    print_word_fact(&list, "used_value", parameter->used_value);
    print_word_fact(&list, "asked_value", parameter->asked_value);
    print_word_fact(&list, "noalias", parameter->noalias);
    print_word_fact(&list, "readonly", parameter->readonly);
    if (list.started) tile_text_add(text, "}");
}

static void print_blocks_together(TileText *text, const TileFunc *func) {
    unsigned count = TILE_MOST_SPLITS;
    while (count && !func->blocks_together[count - 1]) count--;
    for (unsigned i = 0; i < count; i++) tile_text_format(text, "%s%u", i ? ", " : " blocks_together = ", func->blocks_together[i]);
}

static void print_header(Printer *p, const TileFunc *func) {
    tile_text_format(p->text, "func %s %s ", kind_words[func->kind], func->form == TILE_FORM_TILE ? "tile" : "machine");
    print_name(p->text, '@', func->name);
    tile_text_add(p->text, "(");
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        if (i) tile_text_add(p->text, ", ");
        print_value(p, func->body.arguments[i]);
        tile_text_add(p->text, ": ");
        tile_type_print(p->text, func->body.arguments[i]->type);
        print_facts(p->text, &func->parameters[i]);
    }
    tile_text_add(p->text, ")");
    for (uint32_t i = 0; i < func->result_count; i++) {
        tile_text_add(p->text, i ? ", " : " -> ");
        tile_type_print(p->text, func->result_types[i]);
    }
    if (func->kernel) {
        tile_text_add(p->text, " kernel = ");
        print_name(p->text, '@', func->kernel->name);
        tile_text_format(p->text, " phase = %u", func->phase);
    }
    if (func->bands) tile_text_format(p->text, " bands = %u", func->bands);
    if (func->least_programs) tile_text_format(p->text, " least_programs = %u", func->least_programs);
    for (unsigned i = 0; i < TILE_MOST_SPLITS && func->split_programs[i]; i++)
        tile_text_format(p->text, "%s%u", i ? ", " : " split_programs = ", func->split_programs[i]);
    if (func->packs) tile_text_add(p->text, " packs = 1");
    if (func->joined_rows) tile_text_format(p->text, " joined_rows = %u", func->joined_rows);
    if (func->joined_columns) tile_text_format(p->text, " joined_columns = %u", func->joined_columns);
    if (func->joined_lanes) tile_text_format(p->text, " joined_lanes = %u", func->joined_lanes);
    if (func->joined_axis) tile_text_format(p->text, " joined_axis = %u", func->joined_axis);
    if (func->warps) tile_text_format(p->text, " warps = %u", func->warps);
    if (func->stages) tile_text_format(p->text, " stages = %u", func->stages);
    if (func->turns) tile_text_format(p->text, " turns = %u", func->turns);
    if (func->cluster) tile_text_format(p->text, " cluster = %u", func->cluster);
    print_blocks_together(p->text, func);
    if (func->stream) tile_text_add(p->text, " stream = 1");
    if (func->once) tile_text_format(p->text, " once = %u", func->once);
    if (func->busy) tile_text_add(p->text, " busy = 1");
    if (func->reloads) tile_text_add(p->text, " reloads = 1");
    if (func->keeps) tile_text_add(p->text, " keeps = 1");
    if (func->threads) tile_text_format(p->text, " threads = %u", func->threads);
    if (func->resident) tile_text_add(p->text, " resident = 1");
    if (func->registers) tile_text_format(p->text, " registers = %u", func->registers);
    if (func->scratch_bytes)
        tile_text_format(p->text, " scratch_bytes = %llu", (unsigned long long)func->scratch_bytes);
    print_location(p, func->location);
}

static bool start(Printer *p, TileText *text, unsigned options) {
    *p = (Printer){.text = text, .options = options, .scratch = tile_arena_create(text->arena)};
    if (!p->scratch) return false;
    p->strings = tile_interner_create(p->scratch);
    tile_map_init(&p->names, p->scratch);
    tile_map_init(&p->taken, p->scratch);
    return true;
}

void tile_func_print(TileText *text, const TileFunc *func, unsigned options) {
    Printer p;
    if (!start(&p, text, options)) return;
    name_block(&p, &func->body);
    print_header(&p, func);
    tile_text_add(text, " {\n");
    print_layouts(&p);
    for (const TileOp *op = func->body.first; op; op = op->next) print_op(&p, op, 1);
    tile_text_add(text, "}\n");
    tile_arena_destroy(p.scratch);
}

void tile_module_print(TileText *text, const TileModule *module, unsigned options) {
    const TileContext *context = module->context;
    for (size_t i = 1; i < context->files.count && (options & TILE_PRINT_FILES); i++) {
        tile_text_add(text, "file ");
        print_quoted(text, context->files.items[i]);
        tile_text_add(text, "\n");
    }
    for (const TileFunc *func = module->first; func; func = func->next) {
        if (func != module->first) tile_text_add(text, "\n");
        tile_func_print(text, func, options);
    }
}

void tile_op_print(TileText *text, const TileOp *op, unsigned options) {
    Printer p;
    if (!start(&p, text, options)) return;
    const TileFunc *func = tile_op_func(op);
    if (func) name_block(&p, &func->body);
    if (options & TILE_PRINT_NO_REGIONS)
        print_op_line(&p, op);
    else
        print_op(&p, op, 0);
    tile_arena_destroy(p.scratch);
}
