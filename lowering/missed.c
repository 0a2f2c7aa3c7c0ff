/* Remarks of what a pass left as it was, for `tilec explain` and `tile-opt --remarks`. */
#include <stdlib.h>
#include <string.h>

#include "lowering/pass.h"

const char *tile_missed_name(TileMissed missed) {
    static const char *const names[] = {
#define MISSED(id, name, help) name,
#include "lowering/missed.def"
#undef MISSED
    };
    return names[missed];
}

const char *tile_missed_help(TileMissed missed) {
    static const char *const help[] = {
#define MISSED(id, name, help) help,
#include "lowering/missed.def"
#undef MISSED
    };
    return help[missed];
}

/* Loops and choices that passes make have no place of their own; what stands in them has. */
static TileLocation place_of(const TileOp *op) {
    TileLocation place = op->location;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner && !place.line; inner = inner->next)
            place = place_of(inner);
    return place;
}

void tile_pass_missed(TilePassContext *context, const TileOp *at, TileMissed missed, const char *format, ...) {
    if (!context->remarks) return;
    va_list arguments;
    va_start(arguments, format);
    const char *words = tile_arena_format_list(context->scratch, format, arguments);
    va_end(arguments);
    TileRemark remark = {.kind = TILE_REMARK_MISSED,
                         .place = place_of(at),
                         .func = context->func->name,
                         .name = context->info->name,
                         .way = words,
                         .missed = missed};
    tile_list_push(context->scratch, context->remarks, remark);
}

static int order_numbers(uint32_t a, uint32_t b) { return (a > b) - (a < b); }

static int compare(const void *first, const void *second) {
    const TileRemark *a = first, *b = second;
    int order = order_numbers(a->place.file, b->place.file);
    if (!order) order = order_numbers(a->place.line, b->place.line);
    if (!order) order = order_numbers(a->place.column, b->place.column);
    if (!order) order = strcmp(a->name, b->name);
    if (!order) order = order_numbers(a->missed, b->missed);
    return order ? order : strcmp(a->way, b->way);
}

TileRemarks tile_remarks_missed(TileArena *arena, const TileRemarks *all) {
    TileRemarks sorted = {0}, once = {0};
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].kind == TILE_REMARK_MISSED) tile_list_push(arena, &sorted, all->items[i]);
    if (sorted.count) qsort(sorted.items, sorted.count, sizeof *sorted.items, compare);
    for (size_t i = 0; i < sorted.count; i++)
        if (!i || compare(&sorted.items[i - 1], &sorted.items[i]) != 0) tile_list_push(arena, &once, sorted.items[i]);
    return once;
}
