/* Renames all functions, parameters and values of a module: names are for people, and no pass may depend on one.
 * Random names look like names that once had a meaning. */
#include <string.h>

#include "lowering/rename.h"

typedef struct Names {
    TileModule *module;
    TileArena *scratch;
    uint64_t state; /* 0: plain names */
    unsigned functions;
    TileMap renamed; /* from a function's old name to the new one */
    TileKeptNames *kept; /* the original names; NULL: they are not restored */
    bool restore;        /* restore them */
} Names;

/* The names of a function and its parameters. */
typedef struct KeptFunc {
    const char *name, **parameters;
    uint32_t count;
} KeptFunc;

struct TileKeptNames {
    TileMap funcs;  /* KeptFunc */
    TileMap values; /* a value's random name to its original one, or "": passes copy names to new values */
};

static uint64_t draw(Names *names) {
    names->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = names->state;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static const char *random_name(Names *names) {
    static const char *const ends[] = {"", ".dim0", ".stride1", ".0", ".1", "begin", "end", "scratch", "shared"};
    uint64_t number = draw(names);
    const char *end = ends[number % (sizeof ends / sizeof *ends)];
    const char *name = tile_arena_format(names->scratch, "n%llx%s", (unsigned long long)(number >> 24), end);
    return tile_intern_string(names->module->context->strings, name);
}

static const char *plain_name(Names *names, char kind, unsigned number) {
    return tile_intern_string(names->module->context->strings, tile_arena_format(names->scratch, "%c%u", kind, number));
}

static void rename_value(Names *names, TileValue *value) {
    const char *own = names->kept && value->name ? tile_map_get(&names->kept->values, value->name) : NULL;
    if (!own) own = value->name ? value->name : "";
    if (names->restore)
        value->name = *own ? own : NULL;
    else
        value->name = names->state ? random_name(names) : NULL;
    if (names->kept && !names->restore && value->name) tile_map_set(&names->kept->values, value->name, (void *)(uintptr_t)own);
}

static void rename_op(TileOp *op, void *state) {
    Names *names = state;
    const TileAttribute *callee = tile_op_get(op, TILE_ATTRIBUTE_CALLEE);
    for (unsigned i = 0; i < op->result_count; i++) rename_value(names, &op->results[i]);
    for (unsigned r = 0; r < op->region_count; r++)
        for (uint32_t i = 0; i < op->regions[r].argument_count; i++)
            rename_value(names, op->regions[r].arguments[i]);
    if (callee) tile_op_set_text(names->module, op, TILE_ATTRIBUTE_CALLEE, tile_map_get(&names->renamed, callee->text));
}

static const char *parameter_name(Names *names, const TileFunc *func, uint32_t i) {
    const TileParameter *parameter = &func->parameters[i];
    bool is_of_kernel = func->kind == TILE_FUNC_PHASE && func->kernel &&
                        (parameter->role == TILE_ROLE_DATA || parameter->role == TILE_ROLE_SCALAR);
    const KeptFunc *own = names->restore ? tile_map_get(&names->kept->funcs, func) : NULL;
    const KeptFunc *kernels = names->restore && is_of_kernel ? tile_map_get(&names->kept->funcs, func->kernel) : NULL;
    if (own && i < own->count) return own->parameters[i];
    if (kernels && parameter->argument < kernels->count) return kernels->parameters[parameter->argument];
    return names->state ? random_name(names) : plain_name(names, 'p', i);
}

static const char *func_name(Names *names, const TileFunc *func) {
    const KeptFunc *own = names->restore ? tile_map_get(&names->kept->funcs, func) : NULL;
    const KeptFunc *kernels = names->restore && func->kernel ? tile_map_get(&names->kept->funcs, func->kernel) : NULL;
    if (own) return own->name;
    if (!kernels) return names->state ? random_name(names) : plain_name(names, 'f', names->functions++);
    const char *name = tile_arena_format(names->scratch, "%s.%u", kernels->name, func->phase);
    return tile_intern_string(names->module->context->strings, name);
}

static void rename_func(Names *names, TileFunc *func) {
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        TileParameter *parameter = &func->parameters[i];
        parameter->name = parameter_name(names, func, i);
        func->body.arguments[i]->name = parameter->name;
    }
    tile_block_walk(&func->body, rename_op, names);
}

static void rename_module(Names *names) {
    TileModule *module = names->module;
    tile_map_init(&names->renamed, names->scratch);
    for (TileFunc *func = module->first; func; func = func->next) {
        const char *name = func_name(names, func);
        tile_map_set(&names->renamed, func->name, (void *)(uintptr_t)name);
        func->name = name;
    }
    for (TileFunc *func = module->first; func; func = func->next) rename_func(names, func);
}

void tile_module_rename(TileModule *module, TileArena *scratch, uint64_t seed, TileKeptNames *kept) {
    rename_module(&(Names){.module = module, .scratch = scratch, .state = seed, .kept = kept});
}

TileKeptNames *tile_module_keep_names(TileModule *module, TileArena *scratch) {
    TileKeptNames *kept = TILE_NEW(scratch, TileKeptNames);
    tile_map_init(&kept->funcs, scratch);
    tile_map_init(&kept->values, scratch);
    for (TileFunc *func = module->first; func; func = func->next) {
        KeptFunc *own = TILE_NEW(scratch, KeptFunc);
        own->name = func->name;
        own->count = func->body.argument_count;
        own->parameters = TILE_NEW_ARRAY(scratch, const char *, own->count);
        for (uint32_t i = 0; i < own->count; i++) own->parameters[i] = func->parameters[i].name;
        tile_map_set(&kept->funcs, func, own);
    }
    return kept;
}

void tile_module_restore_names(TileModule *module, TileArena *scratch, TileKeptNames *kept) {
    rename_module(&(Names){.module = module, .scratch = scratch, .kept = kept, .restore = true});
}
