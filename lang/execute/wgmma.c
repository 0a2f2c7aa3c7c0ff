/* Products of warpgroups. A wgmma begins when its 128 threads have arrived. Its operands in shared memory are read when
 * its group is waited for, which is the latest possible time; with a seed, at any time before. Until a wgmma_wait
 * returns them, the sums are poison whose bits name the product; whoever takes them (a wgmma that adds to them, a wait)
 * gives them another name, so that each is taken once: on a GPU they stay in their registers. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/matrix.h"

enum { MOST_WARPGROUPS = EXEC_MOST_THREADS / TILE_WARPGROUP_THREADS };

typedef struct Product {
    const ExecInstruction *in;
    TileExecutor *thread; /* the first of the warpgroup */
    uint64_t name, group;
    ExecMatrix matrices[2];
    ExecOperand *operands[2]; /* as far as they have been read */
    uint64_t *sums; /* of each thread, and behind them their poison; belong to the product that adds to them */
    bool taken;     /* by such a product */
    bool complete;
} Product;

typedef struct Warpgroup {
    Product *products; /* in order */
    size_t count, capacity;
    uint64_t names, committed;
    uint32_t waits;
    uint32_t registers; /* of a thread */
    bool fenced;        /* a wgmma_fence stands behind the last wait */
} Warpgroup;

struct ExecWarpgroups {
    Warpgroup items[MOST_WARPGROUPS];
    uint32_t count, each; /* of all blocks of a cluster, and of one */
    uint32_t registers;   /* all registers of a block, in those of a warpgroup's thread */
};

/* ---- life ---- */

static void free_product(Product *product) {
    for (unsigned i = 0; i < 2; i++) free(product->operands[i]);
    if (!product->taken) free(product->sums);
}

ExecWarpgroups *tile_exec_create_warpgroups(uint32_t threads, uint32_t blocks) {
    ExecWarpgroups *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    all->each = threads / TILE_WARPGROUP_THREADS;
    all->count = all->each * blocks;
    return all;
}

void tile_exec_forget_warpgroups(ExecWarpgroups *all, uint32_t registers) {
    all->registers = registers * all->each;
    for (uint32_t i = 0; i < all->count; i++) {
        Warpgroup *group = &all->items[i];
        for (size_t p = 0; p < group->count; p++) free_product(&group->products[p]);
        *group = (Warpgroup){.products = group->products, .capacity = group->capacity, .registers = registers};
    }
}

void tile_exec_free_warpgroups(ExecWarpgroups *all) {
    if (!all) return;
    tile_exec_forget_warpgroups(all, 0);
    for (uint32_t i = 0; i < all->count; i++) free(all->items[i].products);
    free(all);
}

TileExecutor *tile_exec_product_thread(const ExecWarpgroups *all, const ExecInstruction **in) {
    for (uint32_t i = 0; all && i < all->count; i++)
        for (size_t p = 0; p < all->items[i].count; p++) {
            const Product *product = &all->items[i].products[p];
            if (product->complete) continue;
            *in = product->in;
            return product->thread;
        }
    return NULL;
}

static Warpgroup *warpgroup_of(const TileExecutor *e) {
    return &e->warpgroups->items[e->thread / TILE_WARPGROUP_THREADS];
}

/* ---- names ---- */

enum { NAME_SHIFT = 48, LANE_BITS = 8 };

static const uint64_t mark = UINT64_C(0x7767) << NAME_SHIFT;

static uint64_t name_of(uint64_t name, uint32_t lane) { return mark | name << LANE_BITS | lane; }

static bool is_name(ExecValue value) {
    return tile_exec_poisoned(value, 0) == EXEC_POISON && value.lanes[0] >> NAME_SHIFT == mark >> NAME_SHIFT;
}

static bool has_name(ExecValue value, uint64_t name) {
    for (uint32_t i = 0; i < value.count; i++)
        if (tile_exec_poisoned(value, i) != EXEC_POISON || value.lanes[i] != name_of(name, i)) return false;
    return true;
}

static void set_name(TileExecutor *threads, uint32_t result, uint64_t name) {
    for (uint32_t thread = 0; thread < TILE_WARPGROUP_THREADS; thread++) {
        ExecValue value = tile_exec_value(&threads[thread], result);
        *value.any = 0;
        for (uint32_t i = 0; i < value.count; i++) {
            value.lanes[i] = name_of(name, i);
            tile_exec_set_poison(&threads[thread], value, i, EXEC_POISON);
        }
    }
}

/* The product whose pending sums these are in all threads; NULL, and one of them stops, if there is none. */
static Product *find_pending(TileExecutor *threads, const ExecInstruction *in, unsigned operand, uint32_t *failed) {
    Warpgroup *group = warpgroup_of(threads);
    uint64_t bits = tile_exec_operand(threads, in, operand).lanes[0] & ~mark, name = bits >> LANE_BITS;
    Product *found = NULL;
    for (size_t i = 0; i < group->count && !found; i++)
        if (group->products[i].name == name && !group->products[i].taken) found = &group->products[i];
    if (!found) {
        tile_exec_fault(
            threads, in,
            "pending sums that another wgmma or wgmma_wait of this warpgroup has taken, or that are not its own");
        return NULL;
    }
    for (uint32_t i = 0; i < TILE_WARPGROUP_THREADS; i++) {
        *failed = i;
        if (has_name(tile_exec_operand(&threads[i], in, operand), name)) continue;
        tile_exec_fault(&threads[i], in, "the threads of the warpgroup have different sums, or only some of the lanes");
        return NULL;
    }
    *failed = 0;
    return found;
}

/* ---- sums ---- */

static size_t sum_count(const Product *product) { return (size_t)product->in->lanes * TILE_WARPGROUP_THREADS; }

static uint8_t *poison_of(const Product *product) { return (uint8_t *)(product->sums + sum_count(product)); }

/* Copies the sums to a register of each thread. */
static void give_sums(TileExecutor *threads, const Product *product, uint32_t result) {
    const uint8_t *poison = poison_of(product);
    for (uint32_t thread = 0, at = 0; thread < TILE_WARPGROUP_THREADS; thread++) {
        ExecValue value = tile_exec_value(&threads[thread], result);
        *value.any = 0;
        for (uint32_t i = 0; i < value.count; i++, at++) {
            value.lanes[i] = product->sums[at];
            if (poison[at] || *value.any) tile_exec_set_poison(&threads[thread], value, i, poison[at]);
        }
    }
}

static bool take_ordinary(TileExecutor *threads, Product *product) {
    bool adds = product->in->operand_count > 2;
    product->sums = calloc(sum_count(product), sizeof *product->sums + 1);
    if (!product->sums) return tile_exec_out_of_memory(threads);
    uint8_t *poison = poison_of(product);
    for (uint32_t thread = 0, at = 0; adds && thread < TILE_WARPGROUP_THREADS; thread++) {
        ExecValue value = tile_exec_operand(&threads[thread], product->in, 2);
        for (uint32_t i = 0; i < value.count; i++, at++) {
            product->sums[at] = value.lanes[i];
            poison[at] = tile_exec_poisoned(value, i);
        }
    }
    return true;
}

/* ---- fences ---- */

/* Has an ordinary op written the operand's registers since the last fence? */
static bool check_written(TileExecutor *threads, const ExecInstruction *in, unsigned operand, const char *what,
                          uint32_t *failed) {
    for (uint32_t i = 0; i < TILE_WARPGROUP_THREADS; i++) {
        const ExecActivation *activation = tile_exec_frame(&threads[i])->activation;
        *failed = i;
        if (activation->written[in->operands[operand]] > threads[i].fenced)
            return tile_exec_fault(&threads[i], in, "an ordinary op has written %s since the last wgmma_fence", what);
    }
    *failed = 0;
    return true;
}

static bool check_fences(TileExecutor *threads, const ExecInstruction *in, uint32_t *failed) {
    if (!warpgroup_of(threads)->fenced)
        return tile_exec_fault(threads, in,
                               "no wgmma_fence stands in front of the first wgmma, or behind a wgmma_wait");
    if (tile_op_operand(in->op, 0)->type->kind == TILE_TYPE_VECTOR &&
        !check_written(threads, in, 0, "the registers of `a`", failed))
        return false;
    bool ordinary = !threads->options.no_poison && in->operand_count > 2 && !is_name(tile_exec_operand(threads, in, 2));
    return !ordinary || check_written(threads, in, 2, "the sums", failed);
}

/* ---- products ---- */

static bool check_same(TileExecutor *threads, const ExecInstruction *in, unsigned operand, uint32_t *failed) {
    ExecValue first = tile_exec_operand(threads, in, operand);
    for (uint32_t i = 1; i < TILE_WARPGROUP_THREADS; i++) {
        ExecValue value = tile_exec_operand(&threads[i], in, operand);
        *failed = i;
        if (value.lanes[0] != first.lanes[0] && !tile_exec_poisoned(value, 0) && !tile_exec_poisoned(first, 0))
            return tile_exec_fault(&threads[i], in, "the threads of the warpgroup have different descriptors");
    }
    *failed = 0;
    return true;
}

static bool has_matrix(const Product *product, unsigned number) {
    return tile_op_operand(product->in->op, number)->type->kind != TILE_TYPE_VECTOR;
}

static bool take_operands(TileExecutor *threads, Product *product, uint32_t *failed) {
    tile_exec_find_common(threads->races, threads->thread);
    for (unsigned i = 0; i < 2; i++) {
        ExecMatrix *matrix = &product->matrices[i];
        if (!has_matrix(product, i)) {
            product->operands[i] = malloc(sizeof *product->operands[i]);
            if (!product->operands[i]) return tile_exec_out_of_memory(threads);
            tile_exec_take_fragment(threads, product->in, product->operands[i]);
        } else if (!check_same(threads, product->in, i, failed) ||
                   !tile_exec_find_matrix(threads, product->in, i, matrix) ||
                   !tile_exec_begin_matrix(threads, product->in, matrix)) {
            return false;
        }
    }
    return true;
}

static bool take_sums(TileExecutor *threads, Product *product, uint32_t *failed) {
    bool adds = product->in->operand_count > 2;
    if (!adds || !is_name(tile_exec_operand(threads, product->in, 2))) return take_ordinary(threads, product);
    Product *before = find_pending(threads, product->in, 2, failed);
    if (!before) return false;
    product->sums = before->sums;
    before->taken = true;
    return true;
}

static bool read_operands(Product *product) {
    for (unsigned i = 0; i < 2; i++) {
        if (product->operands[i]) continue;
        product->operands[i] = malloc(sizeof *product->operands[i]);
        if (!product->operands[i]) return tile_exec_out_of_memory(product->thread);
        tile_exec_read_matrix(product->thread, product->in, &product->matrices[i], product->operands[i]);
    }
    return true;
}

static bool complete(Product *product, uint32_t waits) {
    TileExecutor *e = product->thread;
    if (!read_operands(product)) return false;
    tile_exec_multiply(product->in, product->operands[0], product->operands[1], product->sums, poison_of(product));
    uint32_t entry = tile_exec_warpgroup_entry(e->races, e->thread);
    for (unsigned i = 0; i < 2; i++)
        if (has_matrix(product, i)) tile_exec_end_matrix(e, product->in, &product->matrices[i], entry, waits);
    product->complete = true;
    return true;
}

/* Without poison nothing can be pending. */
static bool finish_at_once(TileExecutor *threads, Warpgroup *group, Product *product) {
    if (!tile_exec_finish_products(threads, product->in, ++group->waits) || !complete(product, group->waits))
        return false;
    give_sums(threads, product, product->in->result);
    free_product(product);
    group->count--;
    return true;
}

static bool begin(TileExecutor *threads, const ExecInstruction *in, uint32_t *failed) {
    Warpgroup *group = warpgroup_of(threads);
    Product *products = tile_exec_grow(group->products, group->count, &group->capacity, sizeof *products);
    if (!products) return tile_exec_out_of_memory(threads);
    group->products = products;
    Product *product = &group->products[group->count];
    *product = (Product){.in = in, .thread = threads, .name = ++group->names, .group = group->committed};
    if (!check_fences(threads, in, failed)) return false;
    group->count++; /* is freed with the others from here on */
    if (!take_operands(threads, product, failed) || !take_sums(threads, product, failed)) return false;
    if (threads->options.no_poison) return finish_at_once(threads, group, product);
    set_name(threads, in->result, product->name);
    return true;
}

bool tile_exec_read_early(TileExecutor *host, ExecWarpgroups *all) {
    Warpgroup *group = &all->items[tile_exec_random(host) % all->count];
    if (!group->count) return true;
    Product *product = &group->products[tile_exec_random(host) % group->count];
    return product->complete || read_operands(product) || tile_exec_out_of_memory(host);
}

/* ---- waiting ---- */

/* Drops what nobody can ask for. */
static void drop_products(Warpgroup *group) {
    size_t kept = 0;
    for (size_t i = 0; i < group->count; i++) {
        Product *product = &group->products[i];
        if (product->complete && (product->taken || !product->sums))
            free_product(product);
        else
            group->products[kept++] = *product;
    }
    group->count = kept;
}

/* The sums as they are, under another name, or their values. */
static bool give_results(TileExecutor *threads, const ExecInstruction *in, unsigned operand, uint32_t *failed) {
    Warpgroup *group = warpgroup_of(threads);
    uint32_t result = in->result + operand;
    if (!is_name(tile_exec_operand(threads, in, operand))) {
        for (uint32_t i = 0; i < TILE_WARPGROUP_THREADS; i++)
            tile_exec_copy(tile_exec_operand(&threads[i], in, operand), tile_exec_value(&threads[i], result));
        return true;
    }
    Product *product = find_pending(threads, in, operand, failed);
    if (!product) return false;
    if (!product->complete) {
        product->name = ++group->names;
        set_name(threads, result, product->name);
        return true;
    }
    give_sums(threads, product, result);
    free(product->sums);
    product->sums = NULL;
    return true;
}

static bool wait_for(TileExecutor *threads, const ExecInstruction *in, uint32_t *failed) {
    Warpgroup *group = warpgroup_of(threads);
    uint64_t pending = (uint64_t)tile_op_integer(in->op, TILE_ATTRIBUTE_PENDING, 0);
    group->fenced = false;
    if (!tile_exec_finish_products(threads, in, ++group->waits)) return false;
    for (size_t i = 0; i < group->count; i++) {
        Product *product = &group->products[i];
        bool over = product->group + pending < group->committed;
        if (over && !product->complete && !complete(product, group->waits)) return false;
    }
    for (unsigned i = 0; i < in->operand_count; i++)
        if (!give_results(threads, in, i, failed)) return false;
    drop_products(group);
    return true;
}

/* ---- registers ---- */

/* False without a fault: there are too few until another warpgroup releases some. */
static bool set_registers(TileExecutor *threads, const ExecInstruction *in) {
    ExecWarpgroups *all = threads->warpgroups;
    Warpgroup *group = warpgroup_of(threads);
    uint32_t count = (uint32_t)tile_op_integer(in->op, TILE_ATTRIBUTE_REGISTERS, 0), others = 0;
    bool release = tile_op_integer(in->op, TILE_ATTRIBUTE_RELEASE, 0);
    if (release ? count > group->registers : count < group->registers)
        return tile_exec_fault(threads, in, "the threads have %u registers before", group->registers);
    uint32_t first = threads->rank * all->each;
    for (uint32_t i = first; i < first + all->each; i++) others += &all->items[i] == group ? 0 : all->items[i].registers;
    if (others + count > all->registers) return false;
    group->registers = count;
    return true;
}

/* ---- all ops ---- */

static bool execute(TileExecutor *threads, const ExecInstruction *in, uint32_t *failed) {
    Warpgroup *group = warpgroup_of(threads);
    if (in->op->id == TILE_OP_WGMMA) return begin(threads, in, failed);
    if (in->op->id == TILE_OP_WGMMA_WAIT) return wait_for(threads, in, failed);
    if (in->op->id == TILE_OP_SET_REGISTERS) return set_registers(threads, in);
    if (in->op->id == TILE_OP_WGMMA_COMMIT) group->committed++;
    if (in->op->id != TILE_OP_WGMMA_FENCE) return true;
    group->fenced = true;
    for (uint32_t i = 0; i < TILE_WARPGROUP_THREADS; i++) threads[i].fenced = threads[i].steps;
    return true;
}

bool tile_exec_warpgroup(TileExecutor *threads, uint32_t *failed) {
    const ExecInstruction *in = threads->meeting;
    *failed = 0;
    if (execute(threads, in, failed)) {
        for (uint32_t i = 0; i < TILE_WARPGROUP_THREADS; i++) threads[i].meeting = NULL;
        return true;
    }
    TileExecution state = threads[*failed].state;
    return state == TILE_EXECUTION_PAUSED || state == TILE_EXECUTION_DONE;
}
