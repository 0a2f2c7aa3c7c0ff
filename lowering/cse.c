/* Purpose: common subexpression elimination. An op is replaced by an equal one that dominates it; so is a load, if no
 * op between the two may have written the memory that it reads.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, inout>, %n: i64) {
 *       grid %n (%i: i64) {
 *         %a = load_tile %x, %i {access = [index]} : f32
 *         %b = exp %a : f32
 *         %c = load_tile %x, %i {access = [index]} : f32
 *         %d = exp %c : f32
 *         %e = add %b, %d : f32
 *         store_tile %y, %e, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, inout>, %n: i64) {
 *       grid %n (%i: i64) {
 *         %a = load_tile %x, %i {access = [index]} : f32
 *         %b = exp %a : f32
 *         %e = add %b, %b : f32
 *         store_tile %y, %e, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: nothing. Keeps: the order of the other ops. Cost: linear, with a hash table scoped by regions; each op that
 * writes visits the tensors that were loaded. */
#include "base/map.h"
#include "lang/ir/build.h"
#include "lowering/memory.h"
#include "lowering/pass.h"

typedef struct Entry {
    TileOp *op;
    uint64_t hash;
    uint32_t next;   /* index + 1 of the next entry of the bucket */
    uint32_t tensor; /* of a load: which of `tensors` it reads */
    uint32_t before; /* of a load: index + 1 of the load of that tensor before it */
    bool is_load, killed;
} Entry;

/* The available loads of one tensor: no write has followed them. */
typedef struct Tensor {
    TileValue *value; /* NULL: any memory */
    uint32_t newest;  /* index + 1 of the newest */
} Tensor;

enum { FEW_BUCKETS = 256 };

typedef struct Cse {
    TilePassContext *context;
    TILE_LIST(Entry) entries; /* a stack: at the end of a region its entries are popped */
    uint32_t *buckets;        /* index + 1 of the newest entry */
    size_t bucket_count;      /* a power of two */
    TILE_LIST(Tensor) tensors;
    TileMap tensor_numbers; /* values to indices in `tensors` */
    bool changed;
} Cse;

static void init(Cse *cse, TilePassContext *context) {
    *cse = (Cse){.context = context, .bucket_count = FEW_BUCKETS};
    cse->buckets = TILE_NEW_ARRAY(context->scratch, uint32_t, cse->bucket_count);
    tile_map_init(&cse->tensor_numbers, context->scratch);
    tile_list_push(context->scratch, &cse->tensors, (Tensor){0});
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static bool commutes(const TileOp *op) {
    return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COMMUTATIVE) != 0;
}

static uint64_t hash_attribute(uint64_t hash, const TileAttribute *attribute) {
    hash = mix(hash, attribute->key);
    switch (tile_attribute_storage(attribute->key)) {
    case TILE_STORAGE_BITS: return mix(hash, attribute->bits);
    case TILE_STORAGE_INT:
    case TILE_STORAGE_NAME: return mix(hash, (uint64_t)attribute->integer);
    case TILE_STORAGE_TEXT: return mix(hash, (uintptr_t)attribute->text);
    case TILE_STORAGE_TEXTS:
        for (unsigned i = 0; i < attribute->count; i++) hash = mix(hash, (uintptr_t)attribute->texts[i]);
        return hash;
    case TILE_STORAGE_INTS:
    case TILE_STORAGE_NAMES:
        for (unsigned i = 0; i < attribute->count; i++) hash = mix(hash, (uint64_t)attribute->integers[i]);
        return hash;
    case TILE_STORAGE_TYPES:
        for (unsigned i = 0; i < attribute->count; i++) hash = mix(hash, (uintptr_t)attribute->types[i]);
        return hash;
    }
    return hash;
}

static uint64_t hash_op(const TileOp *op) {
    uint64_t hash = mix(op->id, (uintptr_t)op->results[0].type);
    for (unsigned i = 0; i < op->attribute_count; i++) hash = hash_attribute(hash, &op->attributes[i]);
    uint64_t unordered = 0;
    for (unsigned i = 0; i < op->operand_count; i++) {
        uintptr_t operand = (uintptr_t)tile_op_operand(op, i);
        if (i < 2 && commutes(op))
            unordered += mix(1, operand);
        else
            hash = mix(hash, operand);
    }
    return mix(hash, unordered);
}

static bool equal_ops(const Cse *cse, const TileOp *a, const TileOp *b) {
    if (a->id != b->id || a->operand_count != b->operand_count || a->attribute_count != b->attribute_count ||
        a->result_count != b->result_count || a->results[0].type != b->results[0].type)
        return false;
    bool swapped = commutes(a) && tile_op_operand(a, 0) != tile_op_operand(b, 0);
    for (unsigned i = 0; i < a->operand_count; i++)
        if (tile_op_operand(a, i) != tile_op_operand(b, swapped && i < 2 ? 1 - i : i)) return false;
    for (unsigned i = 0; i < a->attribute_count; i++)
        if (!tile_attribute_is_same(&a->attributes[i], &b->attributes[i])) return false;
    return tile_combiner_is_same(tile_op_combiner(a), tile_op_combiner(b), cse->context->scratch);
}

static bool is_load(const TileOp *op) {
    return op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_LOAD || op->id == TILE_OP_GATHER;
}

static uint32_t *bucket_of(const Cse *cse, uint64_t hash) { return &cse->buckets[hash & (cse->bucket_count - 1)]; }

static TileOp *find(const Cse *cse, const TileOp *op, uint64_t hash) {
    for (uint32_t at = *bucket_of(cse, hash); at; at = cse->entries.items[at - 1].next) {
        const Entry *entry = &cse->entries.items[at - 1];
        if (entry->hash == hash && !entry->killed && equal_ops(cse, entry->op, op)) return entry->op;
    }
    return NULL;
}

static void link_entry(Cse *cse, size_t number) {
    uint32_t *bucket = bucket_of(cse, cse->entries.items[number].hash);
    cse->entries.items[number].next = *bucket;
    *bucket = (uint32_t)number + 1;
}

static void grow_buckets(Cse *cse) {
    cse->bucket_count *= 4;
    cse->buckets = TILE_NEW_ARRAY(cse->context->scratch, uint32_t, cse->bucket_count);
    for (size_t i = 0; i < cse->entries.count; i++) link_entry(cse, i);
}

static uint32_t tensor_number(Cse *cse, TileValue *tensor) {
    if (!tensor) return 0;
    TileMapEntry *known = tile_map_find(&cse->tensor_numbers, tensor);
    if (known) return (uint32_t)(uintptr_t)known->value;
    tile_map_set(&cse->tensor_numbers, tensor, (void *)cse->tensors.count);
    tile_list_push(cse->context->scratch, &cse->tensors, (Tensor){.value = tensor});
    return (uint32_t)cse->tensors.count - 1;
}

static void add(Cse *cse, TileOp *op, uint64_t hash) {
    Entry entry = {.op = op, .hash = hash, .is_load = is_load(op)};
    if (entry.is_load) {
        entry.tensor = tensor_number(cse, tile_memory_tensor(op));
        entry.before = cse->tensors.items[entry.tensor].newest;
        cse->tensors.items[entry.tensor].newest = (uint32_t)cse->entries.count + 1;
    }
    tile_list_push(cse->context->scratch, &cse->entries, entry);
    if (cse->entries.count > 2 * cse->bucket_count)
        grow_buckets(cse);
    else
        link_entry(cse, cse->entries.count - 1);
}

static void pop_to(Cse *cse, size_t count) {
    while (cse->entries.count > count) {
        const Entry *entry = &cse->entries.items[--cse->entries.count];
        *bucket_of(cse, entry->hash) = entry->next;
        if (entry->is_load && !entry->killed) cse->tensors.items[entry->tensor].newest = entry->before;
    }
}

/* Makes loads unavailable whose memory the op may write. */
static void kill_loads(Cse *cse, const TileOp *op) {
    for (size_t i = 0; i < cse->tensors.count; i++) {
        Tensor *tensor = &cse->tensors.items[i];
        if (!tensor->newest || !tile_memory_is_written(op, tensor->value)) continue;
        for (uint32_t at = tensor->newest; at; at = cse->entries.items[at - 1].before)
            cse->entries.items[at - 1].killed = true;
        tensor->newest = 0;
    }
}

static void walk(Cse *cse, TileBlock *block);

/* A combiner is isolated from the ops around it. */
static void walk_combiner(Cse *cse, TileBlock *block) {
    Cse inner;
    init(&inner, cse->context);
    walk(&inner, block);
    cse->changed |= inner.changed;
}

/* Writes of a loop's body reach loads of the next iteration, so they kill loads ahead of the loop. */
static void walk_regions(Cse *cse, TileOp *op) {
    bool is_loop =
        op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE || op->id == TILE_OP_LOOP || op->id == TILE_OP_FOLD_LOOP;
    if (is_loop && tile_op_writes(op)) kill_loads(cse, op);
    size_t mark = cse->entries.count;
    for (unsigned r = 0; r < op->region_count; r++) {
        if (&op->regions[r] == tile_op_combiner(op)) {
            walk_combiner(cse, &op->regions[r]);
            continue;
        }
        walk(cse, &op->regions[r]);
        pop_to(cse, mark);
    }
}

static void walk(Cse *cse, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (op->region_count) walk_regions(cse, op);
        if (tile_op_writes(op) && op->id != TILE_OP_CLUSTER_REDUCE) kill_loads(cse, op); /* what blocks exchange no load reads */
        if (!(tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !is_load(op)) continue;
        uint64_t hash = hash_op(op);
        TileOp *earlier = find(cse, op, hash);
        if (!earlier) {
            add(cse, op, hash);
            continue;
        }
        for (unsigned i = 0; i < op->result_count; i++) tile_value_replace(&op->results[i], &earlier->results[i]);
        tile_op_erase(op);
        cse->changed = true;
    }
}

TileResult tile_pass_cse(TilePassContext *context, TileFunc *func) {
    Cse cse;
    init(&cse, context);
    walk(&cse, &func->body);
    return cse.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
