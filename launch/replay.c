/* A kernel remembers a few launches, each as a record of words: the variant, what is compared with the arguments, and
 * the results. A record is a seqlock: its sequence number is odd while it is written, and a reader that sees the number
 * change discards what it read. Words are atomic, so this is no data race. Any record may hold any launch: it is found
 * by its key, which is only a hint, so a kernel that is called with few shapes in turn remembers all of them. */
#include "launch/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "launch/guard.h"

enum { RECORDS = 16, RECORD_WORDS = 320 }; /* records: a power of two */

typedef struct Record {
    _Atomic uint64_t sequence; /* 0: nothing is written yet */
    _Atomic uint64_t words[RECORD_WORDS];
} Record;

struct TileReplay {
    _Atomic uint64_t keys[RECORDS]; /* 0: nothing is written yet */
    _Atomic uint32_t next;          /* the record that gives way, if all are written */
    Record records[RECORDS];
};

static inline uint64_t load(const _Atomic uint64_t *word) { return atomic_load_explicit(word, memory_order_relaxed); }

void tile_replay_prepare(TileKernel *kernel) {
    const TileImageSignature *signature = kernel->signature;
    size_t words = 3 + TILE_REPLAY_PHASES + TILE_REPLAY_SLOTS;
    for (uint32_t i = 0; i < signature->parameter_count; i++) words += 5 + 2u * signature->parameters[i].rank;
    if (words > RECORD_WORDS || atomic_load(&kernel->replays)) return;
    TileReplay *none = NULL, *made = calloc(1, sizeof *made);
    if (made && !atomic_compare_exchange_strong(&kernel->replays, &none, made)) free(made);
}

/* Of launches whose first tensor has such a shape; 0: they are not remembered. */
static uint64_t key_of(const TileKernel *kernel, const TileArg *arguments) {
    const TileImageSignature *signature = kernel->signature;
    if (!signature->parameter_count) return 0;
    if (signature->parameters[0].kind != TILE_PARAMETER_TENSOR) return 1;
    if (arguments[0].kind != TILE_ARG_TENSOR || !arguments[0].value.tensor) return 0;
    const DLTensor *tensor = arguments[0].value.tensor;
    int rank = signature->parameters[0].rank;
    if (!rank || tensor->ndim != rank || !tensor->shape) return 1;
    return ((uint64_t)tensor->shape[0] * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)tensor->shape[rank - 1]) << 1 | 1;
}

/* Rank and type, which are adjacent in a DLTensor. */
static inline uint64_t rank_and_type(const DLTensor *tensor) {
    uint64_t word;
    _Static_assert(offsetof(DLTensor, dtype) == offsetof(DLTensor, ndim) + 4 && sizeof tensor->dtype == 4, "adjacent");
    memcpy(&word, &tensor->ndim, sizeof word);
    return word;
}

static inline uint64_t place_and_strides(const DLTensor *tensor) {
    return (uint64_t)(uint32_t)tensor->device.device_id << 32 | (uint64_t)tensor->device.device_type << 1 |
           (tensor->strides != NULL);
}

/* ---- reading ---- */

typedef struct Range {
    uint64_t low, high, address;
} Range;

static inline uint64_t differ_in(const int64_t *numbers, unsigned count, const _Atomic uint64_t **word) {
    const _Atomic uint64_t *at = *word;
    uint64_t differ = 0;
    unsigned i = 0;
    for (; i + 2 <= count; i += 2)
        differ |= ((uint64_t)numbers[i] ^ load(at + i)) | ((uint64_t)numbers[i + 1] ^ load(at + i + 1));
    if (i < count) differ |= (uint64_t)numbers[i] ^ load(at + i);
    *word = at + count;
    return differ;
}

/* Not 0 if the argument differs, or is not aligned like the first. */
static inline uint64_t differ_tensor(const TileArg *argument, unsigned rank, const _Atomic uint64_t **word,
                                     Range *range) {
    if (argument->kind != TILE_ARG_TENSOR || argument->flags || !argument->value.tensor) return 1;
    const DLTensor *tensor = argument->value.tensor;
    uint64_t differ = rank_and_type(tensor) ^ load((*word)++);
    differ |= place_and_strides(tensor) ^ load((*word)++);
    if (differ || !tensor->data || (rank && !tensor->shape)) return 1;
    differ |= differ_in(tensor->shape, rank, word);
    if (tensor->strides) differ |= differ_in(tensor->strides, rank, word);
    differ |= tensor->byte_offset >> TILE_ADDRESS_BITS;
    uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
    uint64_t align = tile_guard_align_of(address), answers = load((*word)++);
    range->address = address;
    range->low = address + load((*word)++);
    range->high = address + load((*word)++);
    differ |= (range->low | range->high) >> TILE_ADDRESS_BITS;
    /* What the code relies on, and what it asked for and was not granted. */
    return differ | (answers & ~align & TILE_GUARD_ALIGN) | (answers >> 8 & align);
}

static bool share_memory(const TileImageSignature *signature, const Range *ranges) {
    uint64_t shared = 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        const TileImageParameter *written = &signature->parameters[i];
        if (written->kind != TILE_PARAMETER_TENSOR || written->access == TILE_PARAMETER_IN) continue;
        for (uint32_t k = 0; k < signature->parameter_count; k++)
            shared |= (k != i) & (ranges[i].low < ranges[k].high) & (ranges[k].low < ranges[i].high);
    }
    return shared;
}

static bool same_arguments(const TileImageSignature *signature, const TileArg *arguments, const _Atomic uint64_t **word,
                           Range *ranges) {
    uint64_t differ = 0;
    for (uint32_t i = 0; i < signature->parameter_count && !differ; i++) {
        const TileImageParameter *parameter = &signature->parameters[i];
        if (parameter->kind == TILE_PARAMETER_TENSOR) {
            differ = differ_tensor(&arguments[i], parameter->rank, word, &ranges[i]);
            continue;
        }
        ranges[i].low = ranges[i].high = 0;
        differ = (uint64_t)arguments[i].kind ^ load((*word)++);
        differ |= arguments[i].value.unsigned_integer ^ load((*word)++);
    }
    return !differ;
}

static void fill_slots(const TileKernel *kernel, const TileImageCode *code, const Range *ranges, uint64_t *slots) {
    for (uint32_t i = 0; i < code->order_count; i++) {
        const TileImageParameter *parameter = &kernel->signature->parameters[code->order[i]];
        bool tensor = parameter->kind == TILE_PARAMETER_TENSOR;
        if (tensor) *slots = ranges[code->order[i]].address;
        slots += tensor ? 1 + 2u * parameter->rank : 1;
    }
}

/* A consistent copy of the record, and its variant if that is still the same. */
static bool read_record(const Record *record, const TileKernel *kernel, const TileArg *arguments, uint64_t *slots,
                        Range *ranges, TileReplayed *replayed) {
    uint64_t sequence = atomic_load_explicit(&record->sequence, memory_order_acquire);
    if (!sequence || (sequence & 1)) return false;
    const _Atomic uint64_t *word = record->words;
    TileVariant *variant = (TileVariant *)(uintptr_t)load(word++);
    uint64_t generation = load(word++), numbers = load(word++);
    uint32_t phases = (uint32_t)numbers & 0xff;
    replayed->slot_count = (uint32_t)numbers >> 8 & 0xff;
    replayed->shape_key = (uint32_t)(numbers >> 32);
    for (uint32_t i = 0; i < phases && i < TILE_REPLAY_PHASES; i++) replayed->programs[i] = (int64_t)load(word++);
    /* Since then code for values of scalars has become ready, which may serve better. */
    if ((uint16_t)(numbers >> 16) != (uint16_t)atomic_load_explicit(&kernel->specials, memory_order_relaxed))
        return false;
    if (!same_arguments(kernel->signature, arguments, &word, ranges)) return false;
    for (uint32_t i = 0; slots && i < replayed->slot_count && i < TILE_REPLAY_SLOTS; i++) slots[i] = load(word++);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&record->sequence, memory_order_relaxed) != sequence) return false;
    if (!tile_variant_take(variant)) return false;
    if (atomic_load_explicit(&variant->generation, memory_order_relaxed) != generation) {
        tile_variant_give(variant, false);
        return false;
    }
    replayed->variant = variant;
    return true;
}

/* What a GPU needs in addition to the slots. */
static void fill_places(const TileImageSignature *signature, const TileArg *arguments, const Range *ranges,
                        TileReplayed *replayed) {
    replayed->device = 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        replayed->lows[i] = ranges[i].low;
        if (signature->parameters[i].kind == TILE_PARAMETER_TENSOR)
            replayed->device = arguments[i].value.tensor->device.device_id;
    }
}

bool tile_replay_find(TileKernel *kernel, const TileArg *arguments, size_t count, uint64_t *slots,
                      TileReplayed *replayed) {
    Range ranges[TILE_MAX_PARAMETERS];
    if (count != kernel->signature->parameter_count || !arguments) return false;
    const TileReplay *replay = atomic_load_explicit(&kernel->replays, memory_order_acquire);
    uint64_t key = replay ? key_of(kernel, arguments) : 0;
    unsigned i = 0;
    if (!key) return false;
    while (i < RECORDS && (load(&replay->keys[i]) != key ||
                           !read_record(&replay->records[i], kernel, arguments, slots, ranges, replayed)))
        i++;
    if (i == RECORDS) return false;
    if (share_memory(kernel->signature, ranges)) {
        tile_variant_give(replayed->variant, false);
        return false;
    }
    tile_variant_touch(kernel, replayed->variant);
    if (slots) fill_slots(kernel, replayed->variant->code, ranges, slots);
    if (kernel->signature->gpu) fill_places(kernel->signature, arguments, ranges, replayed);
    return true;
}

/* ---- writing ---- */

typedef struct Writer {
    uint64_t words[RECORD_WORDS];
    uint32_t count;
} Writer;

static void put(Writer *writer, uint64_t word) { writer->words[writer->count++] = word; }

static void put_tensor(Writer *writer, const DLTensor *tensor, const TileView *view, const TileVariant *variant,
                       uint32_t parameter) {
    const TileImageCode *code = variant->code;
    uint64_t address = (uint64_t)(uintptr_t)view->data;
    put(writer, rank_and_type(tensor));
    put(writer, place_and_strides(tensor));
    for (unsigned i = 0; i < view->rank; i++) put(writer, (uint64_t)tensor->shape[i]);
    for (unsigned i = 0; tensor->strides && i < view->rank; i++) put(writer, (uint64_t)tensor->strides[i]);
    uint64_t missed = code->asked[parameter] & ~variant->request.facts[parameter] & TILE_GUARD_ALIGN;
    uint64_t own = tile_guard_align(tile_host_type_bytes(view->type));
    put(writer, (code->need[parameter] & TILE_GUARD_ALIGN) | own | missed << 8);
    put(writer, view->low - address);
    put(writer, view->high - address);
}

/* Does the record hold such arguments? What another thread writes meanwhile makes this wrong at worst, and then a
 * launch is remembered twice. */
static bool holds(const Record *record, const Writer *writer, uint32_t begin, uint32_t end) {
    uint64_t differ = (load(&record->words[2]) ^ writer->words[2]) & 0xff; /* phases, which come before arguments */
    for (uint32_t i = begin; i < end && !differ; i++) differ = load(&record->words[i]) ^ writer->words[i];
    return !differ;
}

/* Where to write: the record of such arguments, whose code is another now; else an empty one, else the oldest.
 * begin .. end: the words of arguments. */
static uint32_t find_place(TileReplay *replay, uint64_t key, const Writer *writer, uint32_t begin, uint32_t end) {
    uint32_t empty = RECORDS;
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint64_t there = load(&replay->keys[i]);
        if (there == key && holds(&replay->records[i], writer, begin, end)) return i;
        if (!there && empty == RECORDS) empty = i;
    }
    return empty < RECORDS ? empty : atomic_fetch_add_explicit(&replay->next, 1, memory_order_relaxed) & (RECORDS - 1);
}

static void write_record(Record *record, const Writer *writer) {
    uint64_t sequence = atomic_load_explicit(&record->sequence, memory_order_relaxed);
    if ((sequence & 1) || !atomic_compare_exchange_strong_explicit(&record->sequence, &sequence, sequence + 1,
                                                                   memory_order_acquire, memory_order_relaxed))
        return; /* another thread is writing */
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < writer->count; i++)
        atomic_store_explicit(&record->words[i], writer->words[i], memory_order_relaxed);
    atomic_store_explicit(&record->sequence, sequence + 2, memory_order_release);
}

void tile_replay_record(TileKernel *kernel, const TileArg *arguments, const TileView *views, const uint64_t *slots,
                        const TileReplayed *replayed) {
    const TileImageSignature *signature = kernel->signature;
    const TileVariant *variant = replayed->variant;
    const TileImageCode *code = variant->code;
    Writer writer = {.count = 0};
    TileReplay *replay = atomic_load_explicit(&kernel->replays, memory_order_acquire);
    uint64_t key = replay ? key_of(kernel, arguments) : 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++) /* launches with overlapping memory are not remembered */
        if (code->asked[i] & ~variant->request.facts[i] & TILE_GUARD_DISJOINT) return;
    if (!key || code->temp_count || code->interpret || code->phase_count > TILE_REPLAY_PHASES ||
        replayed->slot_count > TILE_REPLAY_SLOTS)
        return;
    put(&writer, (uint64_t)(uintptr_t)variant);
    put(&writer, atomic_load(&variant->generation));
    put(&writer, (uint64_t)replayed->shape_key << 32 | (uint32_t)replayed->specials << 16 | replayed->slot_count << 8 |
                     code->phase_count);
    for (uint32_t i = 0; i < code->phase_count; i++) put(&writer, (uint64_t)replayed->programs[i]);
    uint32_t begin = writer.count;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        if (views[i].tensor) {
            if (views[i].low == views[i].high || arguments[i].flags) return;
            put_tensor(&writer, arguments[i].value.tensor, &views[i], variant, i);
        } else {
            put(&writer, arguments[i].kind);
            put(&writer, arguments[i].value.unsigned_integer);
        }
    }
    uint32_t end = writer.count, place = find_place(replay, key, &writer, begin, end);
    for (uint32_t i = 0; i < replayed->slot_count; i++) put(&writer, slots[i]);
    write_record(&replay->records[place], &writer);
    atomic_store_explicit(&replay->keys[place], key, memory_order_relaxed);
}
