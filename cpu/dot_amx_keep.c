/* Packed panels of b that later programs may use again: programs of one column of a grid multiply the same panels, and
 * packing one takes as long as AMX takes to multiply it with a hundred rows, or vectors with ten.
 *
 * Panels are kept in slots, each with a key: the offset of its first element in the tensor and its sizes. At first
 * nobody is known to come back to a panel, and one slot takes all, since it stays in the cache; the key of one of them
 * is remembered. If that is asked for again, often enough, each time within as many panels as there are slots, each panel goes
 * to the next slot, until as many in a row were in none. */
#include "cpu/dot.h"

enum {
    MOST_SLOTS = 8,
    MOST_BYTES_AMX = 2 << 20, /* of all slots */
    MOST_BYTES = 5 << 20,     /* by vectors: to read a panel from the cache behind L2 takes less than to pack it */
    KEY_WORDS = 3,
    WORD = 8,
    ALIGN = 64
};

/* A memory of i64s. */
static TileValue *word_at(Dot *dot, TileValue *words, int64_t index) {
    return dot_offset(dot, words, dot_i64(dot, index * WORD));
}

static TileValue *load_word(Dot *dot, TileValue *at) {
    const TileType *type = tile_type_scalar(dot->builder->module->context, TILE_I64);
    return tile_build_load(dot->builder, type, at, NULL, NULL, 0);
}

static bool is_invariant(const TileFunc *func, const TileValue *value) {
    int64_t known;
    return tile_value_integer(value, &known) || (!value->op && value->block == &func->body);
}

/* The offset of b in its tensor; NULL: b is in none, or in one that the function may write to, or its strides vary. */
static TileValue *offset_of(Dot *dot) {
    const TileFunc *func = dot->emitter->front.block->func;
    if (!is_invariant(func, dot->b.row) || !is_invariant(func, dot->b.column)) return NULL;
    TileValue *offset = dot_i64(dot, 0), *pointer = dot->b.pointer;
    for (TileOp *op; (op = tile_value_def(pointer, TILE_OP_PTR_ADD)); pointer = tile_op_operand(op, 0))
        offset = dot_add(dot, offset, tile_op_operand(op, 1));
    if (pointer->op || pointer->block != &func->body) return NULL;
    const TileParameter *parameter = &func->parameters[pointer->index];
    return parameter->readonly && parameter->noalias ? offset : NULL;
}

/* Behind the keys of the slots: the one that is remembered; the next slot; a count; and how often the remembered one was
 * asked for again. Below the number of slots the count is of panels in a row that were in no slot; from there on there is one
 * slot, and it is of panels since the remembered one. */
static int64_t remembered_word(const Dot *dot) { return dot->slots * KEY_WORDS; }
static int64_t next_word(const Dot *dot) { return remembered_word(dot) + KEY_WORDS; }
static int64_t count_word(const Dot *dot) { return next_word(dot) + 1; }
static int64_t again_word(const Dot *dot) { return count_word(dot) + 1; }
static int64_t found_word(const Dot *dot) { return again_word(dot) + 1; } /* by what is looked for */

/* How often the remembered panel has to be asked for again before panels take turns: from then on they may be in no cache of
 * the core's. AMX takes so long to pack one that any second use pays. */
static int64_t enough(const Dot *dot) { return dot->amx ? 1 : 2; }

void dot_amx_choose_slots(Dot *dot, int64_t panel_bytes) {
    dot->slots = 1;
    if (!offset_of(dot)) return;
    int64_t most = dot->amx ? MOST_BYTES_AMX : MOST_BYTES;
    while (dot->slots < MOST_SLOTS && 2 * dot->slots * panel_bytes <= most) dot->slots *= 2;
    if (dot->slots == 1) return;
    TileBuilder *front = &dot->emitter->front;
    int64_t words = found_word(dot) + 1;
    dot->keys = tile_build_buffer(front, words * WORD, ALIGN);
    for (int64_t i = 0; i < words; i++) { /* how often is not read before a key is remembered */
        TileValue *at = i ? tile_build_ptr_add(front, dot->keys, dot_i64(dot, i * WORD)) : dot->keys;
        int64_t first = i == count_word(dot) ? dot->slots : i == next_word(dot) ? 0 : -1 /* no size */;
        tile_build_store(front, dot_i64(dot, first), at, NULL, 0);
    }
}

/* Is this the key in memory? */
static TileValue *is_key(Dot *dot, TileValue *first, TileValue *const *key) {
    TileValue *equal = NULL;
    for (int64_t w = 0; w < KEY_WORDS; w++) {
        TileValue *same = dot_binary(dot, TILE_OP_EQ, load_word(dot, word_at(dot, first, w)), key[w]);
        equal = equal ? dot_binary(dot, TILE_OP_AND, equal, same) : same;
    }
    return equal;
}

/* The number of the slot with this key, or -1. */
static TileValue *find_slot(Dot *dot, TileValue *const *key) {
    TileValue *zero = dot_i64(dot, 0), *found = word_at(dot, dot->keys, found_word(dot));
    tile_build_store(dot->builder, dot_i64(dot, -1), found, NULL, 0);
    TileValue *slot = dot_for(dot, zero, dot_i64(dot, dot->slots), dot_i64(dot, 1));
    dot_if(dot, is_key(dot, dot_offset(dot, dot->keys, dot_scale(dot, slot, KEY_WORDS * WORD)), key));
    tile_build_store(dot->builder, slot, found, NULL, 0);
    dot_end(dot);
    dot_end(dot);
    return load_word(dot, found);
}

/* Remembers a key while there is one slot, and none is remembered. */
static void remember(Dot *dot, TileValue *count, TileValue *const *key) {
    dot_if(dot, dot_binary(dot, TILE_OP_EQ, count, dot_i64(dot, dot->slots)));
    for (int64_t w = 0; w < KEY_WORDS; w++)
        tile_build_store(dot->builder, key[w], word_at(dot, dot->keys, remembered_word(dot) + w), NULL, 0);
    tile_build_store(dot->builder, dot_i64(dot, 0), word_at(dot, dot->keys, again_word(dot)), NULL, 0);
    dot_end(dot);
}

/* The slot to take for a panel that was in slot `found`, and what is counted. */
static TileValue *take_slot(Dot *dot, TileValue *found, TileValue *missing, TileValue *const *key) {
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1), *slots = dot_i64(dot, dot->slots);
    TileValue *next_at = word_at(dot, dot->keys, next_word(dot)), *count_at = word_at(dot, dot->keys, count_word(dot));
    TileValue *next = load_word(dot, next_at), *count = load_word(dot, count_at);
    TileValue *many = dot_binary(dot, TILE_OP_LT, count, slots), *again = is_key(dot, word_at(dot, dot->keys, remembered_word(dot)), key);
    again = dot_binary(dot, TILE_OP_AND, again, dot_binary(dot, TILE_OP_LT, slots, count));
    TileValue *often = dot_add(dot, load_word(dot, word_at(dot, dot->keys, again_word(dot))), one);
    TileValue *known = dot_binary(dot, TILE_OP_AND, again, dot_binary(dot, TILE_OP_LE, dot_i64(dot, enough(dot)), often));
    TileValue *turns = dot_binary(dot, TILE_OP_OR, many, known);
    TileValue *after = dot_binary(dot, TILE_OP_AND, dot_add(dot, next, one), dot_i64(dot, dot->slots - 1));
    TileValue *more = dot_add(dot, count, one), *full = dot_i64(dot, 2 * dot->slots);
    more = dot_select(dot, dot_binary(dot, TILE_OP_LT, full, more), slots, more);
    more = dot_select(dot, again, dot_select(dot, known, one, dot_add(dot, slots, one)), more);
    dot_if(dot, missing);
    dot_if(dot, again);
    tile_build_store(dot->builder, often, word_at(dot, dot->keys, again_word(dot)), NULL, 0);
    dot_end(dot);
    remember(dot, count, key);
    dot_end(dot);
    tile_build_store(dot->builder, dot_select(dot, missing, more, dot_select(dot, many, zero, count)), count_at, NULL,
                     0);
    turns = dot_binary(dot, TILE_OP_AND, turns, missing);
    tile_build_store(dot->builder, dot_select(dot, turns, after, next), next_at, NULL, 0);
    return dot_select(dot, missing, dot_select(dot, turns, next, zero), found);
}

/* What says which panel it is. */
static void build_key(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc, TileValue **key) {
    TileValue *offset = dot_add(dot, offset_of(dot), dot_multiply(dot, k0, dot->b.row));
    key[0] = dot_add(dot, offset, dot_multiply(dot, j0, dot->b.column));
    key[1] = columns;
    key[2] = kc;
}

TileValue *dot_amx_has_panel(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    TileValue *key[KEY_WORDS];
    if (dot->slots == 1) return NULL;
    build_key(dot, j0, columns, k0, kc, key);
    return dot_binary(dot, TILE_OP_LE, dot_i64(dot, 0), find_slot(dot, key));
}

TileValue *dot_amx_find_panel(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc,
                              TileValue **missing) {
    *missing = NULL;
    if (dot->slots == 1) return dot_i64(dot, 0);
    TileValue *key[KEY_WORDS];
    build_key(dot, j0, columns, k0, kc, key);
    TileValue *found = find_slot(dot, key);
    *missing = dot_binary(dot, TILE_OP_LT, found, dot_i64(dot, 0));
    TileValue *slot = take_slot(dot, found, *missing, key);
    TileValue *keys = dot_offset(dot, dot->keys, dot_scale(dot, slot, KEY_WORDS * WORD));
    for (int64_t w = 0; w < KEY_WORDS; w++) tile_build_store(dot->builder, key[w], word_at(dot, keys, w), NULL, 0);
    return dot_scale(dot, slot, dot->slot_bytes);
}
