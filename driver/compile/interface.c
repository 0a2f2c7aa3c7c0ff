/* What a kernel's text says beyond its parameters: doc, settings with their allowed values, whether it may print. */
#include <string.h>

#include "driver/compile/image.h"

typedef struct Lister {
    TileUnit *unit;
    TileArena *arena; /* of the input */
    const TileKernelInfo *kernel;
    TILE_LIST(TileImageSetting) settings;
} Lister;

static const char *keep(Lister *l, const char *text) {
    return text ? tile_arena_string(l->arena, text, strlen(text)) : NULL;
}

/* ---- settings ---- */

static const TileBinding *find_binding(const Lister *l, const char *name) {
    const TileInput *input = l->unit->input;
    for (size_t i = 0; i < l->kernel->chosen.count; i++)
        if (strcmp(l->kernel->chosen.items[i].name, name) == 0) return &l->kernel->chosen.items[i];
    for (size_t i = input->binding_count; i-- > 0;)
        if (strcmp(input->bindings[i].name, name) == 0) return &input->bindings[i];
    return NULL;
}

static TileImageSetting *add(Lister *l, const char *name, TileSettingKind kind, const char *allowed) {
    const TileBinding *binding = find_binding(l, name);
    TileText value = {.arena = l->unit->arena};
    TileImageSetting setting = {.name = keep(l, name), .kind = (uint8_t)kind, .allowed = keep(l, allowed)};
    if (binding) {
        tile_binding_print(&value, binding);
        setting.value = keep(l, tile_text_get(&value));
    }
    tile_list_push(l->arena, &l->settings, setting);
    return &l->settings.items[l->settings.count - 1];
}

static void add_generic(Lister *l, const TileKernelGeneric *generic) {
    static const TileSettingKind kinds[] = {[TILE_GENERIC_TYPE] = TILE_SETTING_TYPE,
                                            [TILE_GENERIC_CONST] = TILE_SETTING_CONSTANT,
                                            [TILE_GENERIC_FN] = TILE_SETTING_FUNCTION};
    TileImageSetting *setting = add(l, generic->name, kinds[generic->kind], generic->class);
    setting->types = generic->kind == TILE_GENERIC_TYPE ? generic->types : 0;
    setting->otherwise = keep(l, generic->function);
}

static void add_tune(Lister *l, const TileKernelTune *tune) {
    TileText allowed = {.arena = l->unit->arena}, usual = {.arena = l->unit->arena};
    for (size_t i = 0; i < tune->candidates.count; i++)
        tile_text_format(&allowed, "%s%lld", i ? ", " : "", (long long)tune->candidates.items[i]);
    tile_text_format(&usual, "%lld", (long long)tune->value);
    TileImageSetting *setting = add(l, tune->name, TILE_SETTING_TUNE, tile_text_get(&allowed));
    setting->otherwise = keep(l, tile_text_get(&usual));
    setting->family = keep(l, tune->target);
}

static void add_settings(Lister *l) {
    const TileKernelInfo *kernel = l->kernel;
    for (size_t i = 0; i < kernel->generics.count; i++) add_generic(l, &kernel->generics.items[i]);
    for (size_t i = 0; i < kernel->parameters.count; i++)
        if (kernel->parameters.items[i].is_const)
            add(l, kernel->parameters.items[i].name, TILE_SETTING_CONSTANT, kernel->parameters.items[i].type);
    for (size_t i = 0; i < kernel->statics.count; i++) add(l, kernel->statics.items[i], TILE_SETTING_STATIC, "");
    for (size_t i = 0; i < kernel->tunes.count; i++) add_tune(l, &kernel->tunes.items[i]);
}

/* ---- prints ---- */

typedef struct Reach {
    const TileUnit *unit;
    const TileAst *ast; /* of the kernel */
    TILE_LIST(const TileItem *) items;
} Reach;

static bool is_letter(char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' || (ch >= '0' && ch <= '9');
}

/* Adds the function of this name, in the text or an import, if there is one. */
static void reach(Reach *r, const char *name) {
    const TileItem *item = tile_find_function(r->ast, name);
    for (size_t i = 0; item && i < r->items.count; i++)
        if (r->items.items[i] == item) return;
    if (item) tile_list_push(r->unit->arena, &r->items, item);
}

/* Looks at every word of the item's text: one that is the name of a function reaches it, `print` prints. A word in a
 * comment counts, too: that is what "may" is for. */
static bool look_through(Reach *r, const TileItem *item) {
    const char *text = r->unit->diagnostics->files.items[item->span.file].text;
    for (uint32_t i = item->span.begin, end = item->span.end; i < end;) {
        uint32_t begin = i;
        while (i < end &&
               (is_letter(text[i]) || (i > begin && text[i] == '.' && i + 1 < end && is_letter(text[i + 1]))))
            i++;
        if (i++ == begin) continue; /* a word ends before what is no letter */
        const char *word = tile_arena_string(r->unit->arena, text + begin, i - 1 - begin);
        if (strcmp(word, "print") == 0) return true;
        reach(r, word);
    }
    return false;
}

static bool may_print(const Lister *l) {
    Reach r = {.unit = l->unit, .ast = l->kernel->ast};
    tile_list_push(l->unit->arena, &r.items, l->kernel->item);
    for (size_t i = 0; i < l->kernel->generics.count; i++) {
        const TileKernelGeneric *generic = &l->kernel->generics.items[i];
        const TileBinding *binding = find_binding(l, generic->name);
        if (generic->function) reach(&r, generic->function);
        if (binding && binding->kind == TILE_BINDING_FUNCTION) reach(&r, binding->function);
    }
    for (size_t i = 0; i < r.items.count; i++)
        if (look_through(&r, r.items.items[i])) return true;
    return false;
}

/* The same for text of the IR. */
static void note_print(TileOp *op, void *state) { *(bool *)state |= op->id == TILE_OP_PRINT; }

static TileFunc *find_func(const TileUnit *unit, const char *name) {
    return tile_func_find(unit->module, tile_intern_string(unit->context->strings, name));
}

static bool op_prints(TileFunc *func) {
    bool prints = false;
    if (func) tile_block_walk(&func->body, note_print, &prints);
    return prints;
}

void tile_interface_describe(TileUnit *unit, const TileKernelInfo *kernel, TileImageSignature *signature) {
    Lister lister = {.unit = unit, .arena = unit->input->arena, .kernel = kernel};
    add_settings(&lister);
    signature->doc = keep(&lister, kernel->doc);
    signature->settings = lister.settings.items;
    signature->setting_count = (uint32_t)lister.settings.count;
    signature->prints = kernel->item ? may_print(&lister) : op_prints(find_func(unit, kernel->name));
}
