/* The limits on a kernel's size: ops of machine form, where a parameter of a function counts as one, and ops that one
 * pass creates. */
#include "lowering/excess.h"

#include "base/map.h"

/* A pass may create ops that it removes again: copies that it only analyses, values that fold. */
enum { CREATED_PER_OP = 4 };

typedef struct Count {
    TileMap lines; /* file and line to the number of ops */
    uint64_t all, most;
    TileLocation place; /* of an op of the line with most ops */
} Count;

static void count_op(TileOp *op, void *state) {
    Count *count = state;
    count->all++;
    if (!op->location.line) return;
    void *key = (void *)(((uintptr_t)op->location.file << 32 | op->location.line) + 1);
    uintptr_t here = (uintptr_t)tile_map_get(&count->lines, key) + 1;
    tile_map_set(&count->lines, key, (void *)here);
    if (here <= count->most) return;
    count->most = here;
    count->place = op->location;
}

static Count count_ops(TilePassContext *context, unsigned form) {
    Count count = {.all = 0};
    tile_map_init(&count.lines, context->scratch);
    for (TileFunc *func = context->module->first; func; func = func->next)
        if (func->form & form) {
            count.all += func->body.argument_count;
            tile_block_walk(&func->body, count_op, &count);
        }
    return count;
}

static void plain_count(TileOp *op, void *state) { ++*(uint64_t *)state; }

uint64_t tile_excess_count(const TileModule *module) {
    uint64_t all = 0;
    for (TileFunc *func = module->first; func; func = func->next) {
        all += func->body.argument_count;
        tile_block_walk(&func->body, plain_count, &all);
    }
    return all;
}

/* `number` is the count; if it equals the limit, the count is greater. */
static TileResult exceed(TilePassContext *context, const Count *count, uint64_t number) {
    uint64_t limit = context->limits->most[TILE_LIMIT_MACHINE_OPERATIONS];
    const char *target = context->target ? context->target->name : "any target", *line = "";
    const char *more = number > limit ? "" : "more than ";
    if (count->most)
        line = tile_arena_format(context->scratch, ", %llu of them of line %u", (unsigned long long)count->most,
                                 count->place.line);
    return tile_pass_exceed(context, TILE_LIMIT_MACHINE_OPERATIONS, TILE_DIAGNOSTIC_TOO_MUCH_CODE, count->place,
                            "the kernel becomes %s%llu operations of machine code for %s%s; the limit is %llu", more,
                            (unsigned long long)number, target, line, (unsigned long long)limit);
}

/* The last count plus the ops created since is an upper bound: ops are counted again only if it exceeds the limit. */
TileResult tile_excess_check(TilePassContext *context, TileResult result) {
    uint64_t all = 0, made = context->module->created - context->counted_at;
    if (result != TILE_RESULT_CHANGED) return result;
    if (context->counted + made <= context->limits->most[TILE_LIMIT_MACHINE_OPERATIONS]) return result;
    for (TileFunc *func = context->module->first; func; func = func->next)
        if (func->form == TILE_FORM_MACHINE) {
            all += func->body.argument_count;
            tile_block_walk(&func->body, plain_count, &all);
        }
    context->counted = tile_excess_count(context->module);
    context->counted_at = context->module->created;
    if (all <= context->limits->most[TILE_LIMIT_MACHINE_OPERATIONS]) return result;
    Count count = count_ops(context, TILE_FORM_MACHINE);
    return exceed(context, &count, all);
}

TileResult tile_excess_run(TilePassContext *context, TileFunc *func, TilePassFunction run) {
    jmp_buf spent;
    TileModule *module = context->module;
    uint64_t most = context->limits->most[TILE_LIMIT_MACHINE_OPERATIONS];
    bool bounded = most < UINT64_MAX / CREATED_PER_OP - module->created;
    module->created_most = bounded ? module->created + CREATED_PER_OP * most : UINT64_MAX;
    if (setjmp(spent)) {
        module->spent = NULL;
        Count count = count_ops(context, TILE_FORM_TILE | TILE_FORM_MACHINE);
        return exceed(context, &count, most);
    }
    module->spent = &spent;
    TileResult result = run(context, func);
    module->spent = NULL;
    return result;
}
