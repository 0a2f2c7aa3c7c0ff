/* A vector loop: the number of lanes, full chunks and the remainder, and reductions in stripes. Part of
 * cpu-vectorise, which chooses the loops. */
#include "cpu/vectorise.h"
#include "lang/index/index.h"
#include "lang/ir/operands.h"

enum {
    VECTORS_AT_A_TIME = 4,
    LONG_BODY = 24,
    MOST_COSTLY = 4,     /* functions of a body that is emitted for four registers: compiling takes time */
    MANY_REGISTERS = 32, /* for four registers of a function's values at a time, beside its constants */
    MOST_CARRIED = 10,
    FEWEST_HALVED = 8, /* lanes of a vector of which half is worth code of its own; */
    MOST_HALVED = 2,   /* registers: of more the remainder is a loop over single ones */
    MOST_KNOWN_MULTIPLE = 16, /* the largest divisor of an extent that launches know */
};

/* ---- how many lanes ---- */

static void take_wider(const TileValue *value, unsigned *bytes) {
    unsigned own = tile_scalar_bytes(value->type->scalar);
    if (own > *bytes) *bytes = own;
}

/* Is the value a word that is extended for addresses alone? Accesses of 32 bits take it as the word. */
static bool is_word_of_address(const TileValue *value) {
    const TileOp *widens = tile_value_def(value, TILE_OP_CONVERT);
    bool word = widens && value->type->scalar == TILE_I64 && tile_op_operand(widens, 0)->type->scalar == TILE_I32;
    for (const TileUse *use = value->first_use; word && use; use = use->next) word = use->user->id == TILE_OP_PTR_ADD;
    return word;
}

/* The widest type of vectors in the block; stored values are vectors even if they are uniform. */
static void widest_in(TileStrides *strides, const TileBlock *block, unsigned *bytes) {
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) widest_in(strides, &op->regions[i], bytes);
        if (op->id == TILE_OP_RAND) *bytes = 8; /* it computes products of 64 bits */
        if (op->id == TILE_OP_STORE) take_wider(tile_op_operand(op, 0), bytes);
        for (unsigned i = 0; i < op->result_count; i++) {
            TileValue *value = &op->results[i];
            if (value->type->kind == TILE_TYPE_SCALAR && !is_word_of_address(value) && tile_stride_of(strides, value).kind == TILE_SLOPE_VARYING)
                take_wider(value, bytes);
        }
    }
}

static int64_t next_power(int64_t value) {
    int64_t power = 1;
    while (power < value) power *= 2;
    return power;
}

/* Is the body so long that code of a quarter of its size is worth a few more memory accesses? */
static bool is_long(const TileOp *loop) {
    unsigned ops = 0;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next, ops++)
        if (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY) return true;
    return ops > LONG_BODY;
}

static bool has_random(const TileBlock *block) {
    bool found = false;
    for (const TileOp *op = block->first; op; op = op->next) {
        found |= op->id == TILE_OP_RAND;
        for (unsigned i = 0; i < op->region_count; i++) found |= has_random(&op->regions[i]);
    }
    return found;
}

/* Is the function a chain of fma, each of which waits for the one before, without a division? */
static bool is_chain(const TileOp *op) {
    static const TileOpId chains[] = {TILE_OP_EXP, TILE_OP_EXP2, TILE_OP_EXPM1, TILE_OP_LOG, TILE_OP_LOG2,
                                      TILE_OP_LOG1P, TILE_OP_SIN, TILE_OP_COS, TILE_OP_ERF};
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
        if (op->id == chains[i]) return true;
    return false;
}

/* Is the body a few functions of which a processor overlaps too few, one vector after the other: it looks only so far ahead in a
 * chain, and a short row ends meanwhile? Divisions of four vectors would wait for one another; but two registers are
 * narrowed to one by one instruction, which outweighs that. */
static bool waits_for_chains(const TileOp *loop) {
    unsigned ops = 0, costly = 0, chains = 0;
    bool narrow = false;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next, ops++) {
        if (op->region_count) return false;
        costly += (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY) != 0;
        chains += is_chain(op);
        narrow |= op->id == TILE_OP_STORE && tile_scalar_bytes(tile_op_operand(op, 0)->type->scalar) == 2;
    }
    return ops <= 2 * LONG_BODY && costly > 0 && costly <= MOST_COSTLY && (narrow || chains == costly);
}

/* The number of registers of the widest type that are emitted together, so that latencies overlap (unrolling). One if
 * elements are gathered, which takes an access for each lane anyway, and if the body is long and carries no values:
 * then the processor overlaps iterations, and four copies would only take longer to compile; unless it waits for chains, and
 * there are registers for four. And lanes of four registers share the blocks of their random numbers (random), as far as their
 * length is known. */
static int64_t vectors_at_a_time(const TilePassContext *context, const TileOp *loop, bool far) {
    const TileTarget *target = context->target;
    bool shares = !target->scalable && has_random(&loop->regions[0]);
    bool waits = target->vector_registers >= MANY_REGISTERS && waits_for_chains(loop);
    return far || (loop->result_count == 0 && is_long(loop) && !shares && !waits) ? 1 : VECTORS_AT_A_TIME;
}

/* The most iterations. Of a reduction the extent, since the order of its sum depends on that alone. */
static int64_t most_iterations(const TileOp *loop) {
    int64_t extent = tile_loop_extent(loop), lo, hi;
    bool known = !tile_loop_in_stripes(loop) && tile_value_integer(tile_op_operand(loop, 0), &lo) &&
                 tile_value_integer(tile_op_operand(loop, 1), &hi) && hi > lo;
    return known && hi - lo < extent ? hi - lo : extent;
}

/* *scalable: the lanes are multiplied by vscale. If 128 bits hold all iterations, they are one fixed vector on any
 * machine, without a mask. */
static int64_t choose_width(const TilePassContext *context, TileStrides *strides, TileOp *loop, int64_t *register_lanes,
                            bool *scalable) {
    unsigned bytes = 1;
    bool far = false;
    widest_in(strides, &loop->regions[0], &bytes);
    tile_access_cost(strides, &loop->regions[0], &far);
    *register_lanes = (int64_t)context->target->vector_bytes / bytes;
    *scalable = context->target->scalable && most_iterations(loop) > *register_lanes &&
                !tile_has_groups(strides, &loop->regions[0]);
    int64_t width = tile_op_integer(loop, TILE_ATTRIBUTE_VECTOR, vectors_at_a_time(context, loop, far) * *register_lanes);
    if (width > TILE_STRIPES) width = TILE_STRIPES;
    if (*scalable) {
        while (width > *register_lanes && width > most_iterations(loop)) width /= 2;
        return width;
    }
    int64_t extent = next_power(most_iterations(loop));
    if (extent < 2) extent = 2;
    return extent < width ? extent : width;
}

/* ---- emission ---- */

/* A chunk: `groups` times `width` lanes side by side, each group with its own accumulators. */
typedef struct Chunk {
    TilePassContext *context;
    TileStrides *strides;
    TileOp *loop;
    int64_t width, groups;
    int64_t register_lanes;   /* of the widest type */
    TileValue *scale;         /* both are multiplied by this if vectors are scalable; otherwise NULL */
    TileValue **accumulators; /* groups x carried */
} Chunk;

static TileValue *binary(TileBuilder *b, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(b, id, x, y);
}

static const TileType *vector_type(const Chunk *c, TileScalar scalar) {
    return tile_type_vector(c->context->module->context, scalar, c->width, c->scale != NULL);
}

/* The number of lanes of so many groups. */
static TileValue *lanes_of(const Chunk *c, TileBuilder *b, int64_t groups) {
    TileValue *lanes = tile_build_i64(b, groups * c->width);
    return c->scale ? binary(b, TILE_OP_MUL, c->scale, lanes) : lanes;
}

static TileValue *mask_below(Chunk *c, TileBuilder *b, TileValue *base, TileValue *limit) {
    const TileType *type = vector_type(c, TILE_BOOL);
    TileValue *operands[] = {base, limit};
    return &tile_build_op(b, TILE_OP_MASK_LT, operands, 2, NULL, 0, &type, 1)->results[0];
}

/* Emits the body for the lanes base .. of one group; its contributions are combined into the accumulators. */
static void emit_group(Chunk *c, TileBuilder *b, int64_t group, TileValue *base, TileValue *mask, TileValue *count) {
    TileLanes lanes;
    TileBlock *body = &c->loop->regions[0];
    unsigned carried = c->loop->result_count;
    tile_lanes_init(&lanes, c->context, c->strides, *b, c->width, base, mask, count);
    lanes.scalable = c->scale != NULL;
    tile_lanes_block(&lanes, body);
    const TileAttribute *combine = tile_op_get(c->loop, TILE_ATTRIBUTE_COMBINE);
    TileValue **acc = c->accumulators + group * carried, *old[2];
    for (unsigned i = 0; combine && i < carried;) {
        TileValue *x[2] = {NULL, NULL};
        for (unsigned k = 0; k < 2 && i + k < carried; k++) {
            x[k] = tile_lanes_vector(&lanes, tile_op_operand(body->last, i + k));
            old[k] = acc[i + k];
        }
        unsigned used = tile_combine(&lanes.builder, (TileName)combine->integers[i], acc + i, x);
        for (unsigned k = 0; mask && k < used; k++)
            acc[i + k] = tile_build_ternary(&lanes.builder, TILE_OP_SELECT, mask, acc[i + k], old[k]);
        i += used;
    }
    *b = lanes.builder;
}

/* Emits all groups of a chunk that begins at `base`. Lanes from `limit` on and before `start` are inactive (NULL: no
 * such bound). */
static void emit_chunk(Chunk *c, TileBuilder *b, TileValue *base, TileValue *start, TileValue *limit) {
    for (int64_t g = 0; g < c->groups; g++) {
        TileValue *first = g ? binary(b, TILE_OP_ADD, base, lanes_of(c, b, g)) : base;
        TileValue *mask = limit ? mask_below(c, b, first, limit) : NULL, *count = NULL;
        if (start) {
            TileValue *before = tile_build_unary(b, TILE_OP_NOT, mask_below(c, b, first, start));
            mask = binary(b, TILE_OP_AND, mask, before);
        } else if (limit) {
            count = binary(b, TILE_OP_SUB, limit, first);
            count = binary(b, TILE_OP_MIN, count, lanes_of(c, b, 1));
        }
        emit_group(c, b, g, first, mask, count);
    }
}

/* A `for` over full chunks from lo to hi; the accumulators are loop-carried. */
static void emit_chunk_loop(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi, TileValue *start,
                            TileValue *limit) {
    unsigned count = (unsigned)c->groups * c->loop->result_count;
    TileOp *made = tile_build_for(b, lo, hi, lanes_of(c, b, c->groups), c->accumulators, count);
    TileBuilder inner = tile_builder_at_end(c->context->module, &made->regions[0]);
    inner.location = b->location;
    for (unsigned i = 0; i < count; i++) c->accumulators[i] = made->regions[0].arguments[1 + i];
    emit_chunk(c, &inner, made->regions[0].arguments[0], start, limit);
    tile_build_end(&inner, TILE_OP_YIELD, c->accumulators, count);
    for (unsigned i = 0; i < count; i++) c->accumulators[i] = &made->results[i];
}

/* One masked chunk inside of `if lo < hi`: uniform loads of the body must not run without an iteration. */
static void emit_tail(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi) {
    unsigned count = (unsigned)c->groups * c->loop->result_count;
    const TileType **types = TILE_NEW_ARRAY(c->context->scratch, const TileType *, count);
    for (unsigned i = 0; i < count; i++) types[i] = c->accumulators[i]->type;
    TileOp *made = tile_build_if(b, binary(b, TILE_OP_LT, lo, hi), types, count);
    TileBuilder inner = tile_builder_at_end(c->context->module, &made->regions[1]);
    inner.location = b->location;
    tile_build_end(&inner, TILE_OP_YIELD, c->accumulators, count);
    inner = tile_builder_at_end(c->context->module, &made->regions[0]);
    inner.location = b->location;
    emit_chunk(c, &inner, lo, NULL, hi);
    tile_build_end(&inner, TILE_OP_YIELD, c->accumulators, count);
    for (unsigned i = 0; i < count; i++) c->accumulators[i] = &made->results[i];
}

/* Does the loop carry bools? In memory a bool is a byte, but a vector of bools is not one of bytes. */
static bool carries_bools(const TileOp *loop) {
    for (unsigned i = 0; i < loop->result_count; i++)
        if (loop->results[i].type->scalar == TILE_BOOL) return true;
    return false;
}

static void move_accumulators(Chunk *c, TileBuilder *b, TileValue *const *buffers, bool to_memory) {
    unsigned carried = c->loop->result_count;
    for (int64_t g = 0; g < c->groups; g++) {
        for (unsigned i = 0; i < carried; i++) {
            TileValue **acc = &c->accumulators[g * carried + i];
            int64_t offset = g * c->width * (int64_t)tile_scalar_bytes((*acc)->type->scalar);
            TileValue *address = tile_build_ptr_add(b, buffers[i], tile_build_i64(b, offset));
            if (to_memory)
                tile_build_store(b, *acc, address, NULL, 0);
            else
                *acc = tile_build_load(b, (*acc)->type, address, NULL, NULL, 0);
        }
    }
}

/* One register of stripes at a time: its accumulators are loaded from memory and stored back. */
static void emit_stripes_loop(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi, TileValue *const *buffers) {
    unsigned carried = c->loop->result_count;
    TileModule *module = c->context->module;
    TileValue *addresses[MOST_CARRIED];
    Chunk narrow = *c;
    narrow.width = c->register_lanes;
    narrow.groups = 1;
    narrow.accumulators = TILE_NEW_ARRAY(c->context->scratch, TileValue *, carried);
    TileOp *made = tile_build_for(b, lo, hi, tile_build_i64(b, narrow.width), NULL, 0);
    TileBuilder inner = tile_builder_at_end(module, &made->regions[0]);
    TileValue *base = made->regions[0].arguments[0], *stripe = binary(&inner, TILE_OP_SUB, base, lo);
    inner.location = b->location;
    for (unsigned i = 0; i < carried; i++) {
        TileScalar scalar = c->accumulators[i]->type->scalar;
        TileValue *bytes = binary(&inner, TILE_OP_MUL, stripe, tile_build_i64(&inner, tile_scalar_bytes(scalar)));
        const TileType *type = tile_type_vector(module->context, scalar, narrow.width, false);
        addresses[i] = tile_build_ptr_add(&inner, buffers[i], bytes);
        narrow.accumulators[i] = tile_build_load(&inner, type, addresses[i], NULL, NULL, 0);
    }
    emit_chunk(&narrow, &inner, base, NULL, hi);
    for (unsigned i = 0; i < carried; i++) tile_build_store(&inner, narrow.accumulators[i], addresses[i], NULL, 0);
    tile_build_end(&inner, TILE_OP_YIELD, NULL, 0);
}

/* The remainder of a reduction with a long body. It follows full chunks, so `lo` is stripe 0. */
static void emit_tail_in_memory(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi) {
    unsigned carried = c->loop->result_count, count = (unsigned)c->groups * carried;
    TileModule *module = c->context->module;
    TileValue *buffers[MOST_CARRIED];
    TileBuilder start = tile_builder_before(module, b->block->func->body.first);
    for (unsigned i = 0; i < carried; i++)
        buffers[i] =
            tile_build_buffer(&start, TILE_STRIPES * (int64_t)tile_scalar_bytes(c->accumulators[i]->type->scalar), 64);
    const TileType **types = TILE_NEW_ARRAY(c->context->scratch, const TileType *, count);
    for (unsigned i = 0; i < count; i++) types[i] = c->accumulators[i]->type;
    TileOp *made = tile_build_if(b, binary(b, TILE_OP_LT, lo, hi), types, count);
    TileBuilder inner = tile_builder_at_end(module, &made->regions[1]);
    inner.location = b->location;
    tile_build_end(&inner, TILE_OP_YIELD, c->accumulators, count);
    inner = tile_builder_at_end(module, &made->regions[0]);
    inner.location = b->location;
    move_accumulators(c, &inner, buffers, true);
    emit_stripes_loop(c, &inner, lo, hi, buffers);
    move_accumulators(c, &inner, buffers, false);
    tile_build_end(&inner, TILE_OP_YIELD, c->accumulators, count);
    for (unsigned i = 0; i < count; i++) c->accumulators[i] = &made->results[i];
}

/* The end of the full chunks: lo plus the greatest multiple of a chunk that is not past hi. */
static TileValue *full_end(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi) {
    TileValue *zero = tile_build_i64(b, 0), *length = binary(b, TILE_OP_MAX, binary(b, TILE_OP_SUB, hi, lo), zero);
    TileValue *whole = tile_build_unary(b, TILE_OP_NEG, lanes_of(c, b, c->groups));
    return binary(b, TILE_OP_ADD, lo, binary(b, TILE_OP_AND, length, whole));
}

/* Is the trip count a multiple of `lanes`, as far as extents are known? */
static bool is_multiple(Chunk *c, TileValue *lo, TileValue *hi, int64_t lanes) {
    if (c->scale) return false;
    int64_t known = lanes < MOST_KNOWN_MULTIPLE ? lanes : MOST_KNOWN_MULTIPLE;
    TileIndices *indices = tile_indices_suppose(c->context->scratch, c->loop->block->func, known);
    TileIndexRange first = tile_index_range(indices, lo), last = tile_index_range(indices, hi);
    return first.multiple % lanes == 0 && last.multiple % lanes == 0 &&
           tile_index_ask(indices, first.because | last.because);
}

/* The remainder: a loop over single registers, a quarter of the code, if the code is long or no values are carried.
 * The number of scalable registers is unknown, so full ones come first. `whole`: it consists of full registers. */
static void emit_rest(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi, bool whole) {
    unsigned carried = c->loop->result_count;
    bool several = c->width * c->groups > c->register_lanes;
    if (!carried && several) {
        Chunk narrow = *c;
        narrow.width = c->register_lanes;
        if (c->scale) {
            TileValue *end = full_end(&narrow, b, lo, hi);
            emit_chunk_loop(&narrow, b, lo, end, NULL, NULL);
            lo = end;
        }
        emit_chunk_loop(&narrow, b, lo, hi, NULL, whole ? NULL : hi);
    } else if (several && carried <= MOST_CARRIED && is_long(c->loop) && !carries_bools(c->loop)) {
        emit_tail_in_memory(c, b, lo, hi);
    } else {
        emit_tail(c, b, lo, hi);
    }
}

/* Stripes are counted from lane 0 of the tile, so chunks are, too, also if a reduction begins at another lane. A
 * chunk that contains `lo` but does not begin there has a mask, full chunks follow, and the remainder has a mask: two
 * phases, each of masked and full chunks, any of which may be none. */
typedef struct Phases {
    TileOp *loop;
    TileBuilder inner;
    TileValue *masked_lo, *masked_hi, *whole_lo, *whole_hi;
} Phases;

static TileValue *round_down(TileBuilder *b, TileValue *x, int64_t step) {
    return binary(b, TILE_OP_AND, x, tile_build_i64(b, -step));
}

/* Until end_phases, the accumulators are those of the loop over phases. */
static Phases start_phases(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi, int64_t step) {
    unsigned count = (unsigned)c->groups * c->loop->result_count;
    TileValue *begin = round_down(b, lo, step), *some = binary(b, TILE_OP_LT, lo, hi);
    /* An empty range may begin anywhere, even where rounding up to a chunk would overflow. */
    TileValue *from = tile_build_ternary(b, TILE_OP_SELECT, some, lo, begin);
    TileValue *first = round_down(b, binary(b, TILE_OP_ADD, from, tile_build_i64(b, step - 1)), step);
    TileValue *end = tile_build_ternary(b, TILE_OP_SELECT, some, hi, begin);
    TileValue *last = binary(b, TILE_OP_MAX, first, round_down(b, end, step));
    TileValue *head = binary(b, TILE_OP_MIN, first, end), *zero = tile_build_i64(b, 0);
    Phases phases = {.loop =
                         tile_build_for(b, zero, tile_build_i64(b, 2), tile_build_i64(b, 1), c->accumulators, count)};
    TileBlock *body = &phases.loop->regions[0];
    phases.inner = tile_builder_at_end(c->context->module, body);
    phases.inner.location = b->location;
    for (unsigned i = 0; i < count; i++) c->accumulators[i] = body->arguments[1 + i];
    TileValue *is_first = binary(&phases.inner, TILE_OP_EQ, body->arguments[0], zero);
    phases.masked_lo = tile_build_ternary(&phases.inner, TILE_OP_SELECT, is_first, begin, last);
    phases.masked_hi = tile_build_ternary(&phases.inner, TILE_OP_SELECT, is_first, head, end);
    phases.whole_lo = first;
    phases.whole_hi = tile_build_ternary(&phases.inner, TILE_OP_SELECT, is_first, last, first);
    return phases;
}

static void end_phases(Chunk *c, Phases *phases) {
    unsigned count = (unsigned)c->groups * c->loop->result_count;
    tile_build_end(&phases->inner, TILE_OP_YIELD, c->accumulators, count);
    for (unsigned i = 0; i < count; i++) c->accumulators[i] = &phases->loop->results[i];
}

/* A branch: *b builds its first block, and what is returned its other one. */
static TileBuilder open_either(Chunk *c, TileBuilder *b, TileValue *condition) {
    TileOp *made = tile_build_if(b, condition, NULL, 0);
    TileBuilder other = tile_builder_at_end(c->context->module, &made->regions[1]);
    *b = tile_builder_at_end(c->context->module, &made->regions[0]);
    other.location = b->location = c->loop->location;
    return other;
}

/* There is one full chunk at most: a chunk, or else the remainder. Both begin at lo, which is known where loops around this one are. Half a
 * register does where there are no more lanes: its accesses cross no line of the cache for the sake of lanes that there are not. */
static void emit_one(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi) {
    TileValue *count = binary(b, TILE_OP_SUB, hi, lo);
    Chunk half = *c;
    half.width /= 2;
    TileBuilder chunk = *b, rest = open_either(c, &chunk, binary(b, TILE_OP_LT, tile_build_i64(b, c->width - 1), count));
    emit_chunk(c, &chunk, lo, NULL, NULL);
    tile_build_end(&chunk, TILE_OP_YIELD, NULL, 0);
    TileBuilder few = rest, most = open_either(c, &few, binary(&rest, TILE_OP_LT, count, tile_build_i64(&rest, half.width + 1)));
    emit_tail(&half, &few, lo, hi);
    emit_tail(c, &most, lo, hi);
    tile_build_end(&few, TILE_OP_YIELD, NULL, 0);
    tile_build_end(&most, TILE_OP_YIELD, NULL, 0);
    tile_build_end(&rest, TILE_OP_YIELD, NULL, 0);
}

/* The main loop and the remainder. A scalable vector has a power of two of lanes. */
static void emit_parts(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi) {
    int64_t step = c->groups * c->width, first, last;
    bool constant = tile_value_integer(lo, &first) && tile_value_integer(hi, &last);
    if (tile_loop_in_stripes(c->loop) && !tile_value_is_integer(lo, 0)) {
        Phases phases = start_phases(c, b, lo, hi, step);
        emit_chunk_loop(c, &phases.inner, phases.masked_lo, phases.masked_hi, lo, hi);
        emit_chunk_loop(c, &phases.inner, phases.whole_lo, phases.whole_hi, NULL, NULL);
        end_phases(c, &phases);
        return;
    }
    if (constant && last > first && last - first == step && !c->scale) {
        emit_chunk(c, b, lo, NULL, NULL);
        return;
    }
    if (tile_loop_extent(c->loop) < step || (constant && last - first < step)) {
        emit_tail(c, b, lo, hi);
        return;
    }
    TileValue *end = hi;
    bool even = !constant && !c->loop->result_count && is_multiple(c, lo, hi, step);
    bool one = tile_loop_extent(c->loop) == step && step >= FEWEST_HALVED && step <= MOST_HALVED * c->register_lanes;
    if (one && !constant && !c->loop->result_count && !c->scale && !is_long(c->loop)) {
        emit_one(c, b, lo, hi);
        return;
    }
    if ((!constant || (last - first) % step || c->scale) && !even) end = full_end(c, b, lo, hi);
    emit_chunk_loop(c, b, lo, end, NULL, NULL);
    bool several = !constant && !c->loop->result_count && step > c->register_lanes;
    if (end != hi) emit_rest(c, b, end, hi, several && is_multiple(c, lo, hi, c->register_lanes));
}

/* ---- the end of a reduction ---- */

static void halve(Chunk *c, TileBuilder *b, unsigned first, unsigned used, TileName how) {
    unsigned carried = c->loop->result_count;
    TileValue *parts[2 * TILE_STRIPES];
    for (int64_t g = 0; g < c->groups; g++)
        for (unsigned k = 0; k < used; k++) parts[g * used + k] = c->accumulators[g * carried + first + k];
    tile_halve(b, how, &(TileHalving){.parts = parts, .used = used, .groups = c->groups, .width = c->width});
    for (unsigned k = 0; k < used; k++) c->accumulators[first + k] = parts[k];
}

/* ---- reductions in stripes, scalable vectors ---- */

/* The number of registers of the 64 stripes is known only at run time. So the loop over the elements is inside of one
 * over the stripes, as many at a time as a few registers hold; results are stored in memory, and halved by vectors of
 * 128 bits. */
typedef struct Stripes {
    int64_t count;
    TileValue **buffers; /* by carried value */
    TileValue *lo, *hi;  /* of the elements */
} Stripes;

/* Rows of stripes from `from` to `to`, of which the chunk takes those from `stripe` on. `clip`: the last group may
 * exceed the last stripe. */
static void emit_rows(Chunk *c, TileBuilder *b, const Stripes *stripes, TileValue *stripe, TileValue *from,
                      TileValue *to, bool whole, bool clip) {
    unsigned count = (unsigned)c->groups * c->loop->result_count;
    TileValue *row = tile_build_i64(b, stripes->count);
    TileOp *made = tile_build_for(b, from, to, row, c->accumulators, count);
    TileBuilder inner = tile_builder_at_end(c->context->module, &made->regions[0]);
    inner.location = b->location;
    for (unsigned i = 0; i < count; i++) c->accumulators[i] = made->regions[0].arguments[1 + i];
    TileValue *base = made->regions[0].arguments[0], *limit = whole ? NULL : stripes->hi;
    TileValue *start = whole || tile_value_is_integer(stripes->lo, 0) ? NULL : stripes->lo;
    if (clip) {
        TileValue *end = binary(&inner, TILE_OP_ADD, base, row);
        limit = limit ? binary(&inner, TILE_OP_MIN, limit, end) : end;
    }
    emit_chunk(c, &inner, binary(&inner, TILE_OP_ADD, base, stripe), start, limit);
    tile_build_end(&inner, TILE_OP_YIELD, c->accumulators, count);
    for (unsigned i = 0; i < count; i++) c->accumulators[i] = &made->results[i];
}

static void keep_stripes(Chunk *c, TileBuilder *b, const Stripes *stripes, TileValue *stripe, bool clip) {
    unsigned carried = c->loop->result_count;
    for (int64_t g = 0; g < c->groups; g++) {
        TileValue *first = g ? binary(b, TILE_OP_ADD, stripe, lanes_of(c, b, g)) : stripe;
        TileValue *mask = clip ? mask_below(c, b, first, tile_build_i64(b, stripes->count)) : NULL;
        for (unsigned i = 0; i < carried; i++) {
            TileValue *acc = c->accumulators[g * carried + i];
            TileValue *bytes = binary(b, TILE_OP_MUL, first, tile_build_i64(b, tile_scalar_bytes(acc->type->scalar)));
            tile_build_store(b, acc, tile_build_ptr_add(b, stripes->buffers[i], bytes), mask, 0);
        }
    }
}

static void start_accumulators(Chunk *c, TileBuilder *b) {
    unsigned carried = c->loop->result_count;
    for (unsigned i = 0; i < carried; i++) {
        TileValue *init = tile_loop_carried(c->loop, i);
        TileValue *start = tile_build_splat(b, init, vector_type(c, init->type->scalar));
        for (int64_t g = 0; g < c->groups; g++) c->accumulators[g * carried + i] = start;
    }
}

/* The stripes from `from` to `to`, a chunk at a time. */
static void emit_stripe_chunks(Chunk *c, TileBuilder *b, const Stripes *stripes, TileValue *from, TileValue *to,
                               bool clip) {
    TileOp *made = tile_build_for(b, from, to, lanes_of(c, b, c->groups), NULL, 0);
    TileBuilder inner = tile_builder_at_end(c->context->module, &made->regions[0]);
    inner.location = b->location;
    TileValue *stripe = made->regions[0].arguments[0], *row = tile_build_i64(&inner, -stripes->count);
    start_accumulators(c, &inner);
    if (tile_value_is_integer(stripes->lo, 0) && !clip) {
        TileValue *zero = tile_build_i64(&inner, 0), *length = binary(&inner, TILE_OP_MAX, stripes->hi, zero);
        TileValue *end = binary(&inner, TILE_OP_AND, length, row);
        emit_rows(c, &inner, stripes, stripe, zero, end, true, false);
        emit_rows(c, &inner, stripes, stripe, end, stripes->hi, false, false);
    } else if (!clip) {
        Phases phases = start_phases(c, &inner, stripes->lo, stripes->hi, stripes->count);
        emit_rows(c, &phases.inner, stripes, stripe, phases.masked_lo, phases.masked_hi, false, false);
        emit_rows(c, &phases.inner, stripes, stripe, phases.whole_lo, phases.whole_hi, true, false);
        end_phases(c, &phases);
    } else {
        TileValue *aligned = binary(&inner, TILE_OP_AND, stripes->lo, row);
        TileValue *some = binary(&inner, TILE_OP_LT, stripes->lo, stripes->hi);
        TileValue *end = tile_build_ternary(&inner, TILE_OP_SELECT, some, stripes->hi, aligned);
        emit_rows(c, &inner, stripes, stripe, aligned, end, false, clip);
    }
    keep_stripes(c, &inner, stripes, stripe, clip);
    tile_build_end(&inner, TILE_OP_YIELD, NULL, 0);
}

/* The stripes as vectors of 128 bits, for halving. */
static void load_stripes(Chunk *c, TileBuilder *b, const Stripes *stripes) {
    unsigned carried = c->loop->result_count;
    c->scale = NULL;
    c->width = c->register_lanes < stripes->count ? c->register_lanes : stripes->count;
    c->groups = stripes->count / c->width;
    c->accumulators = TILE_NEW_ARRAY(c->context->scratch, TileValue *, c->groups * carried);
    for (int64_t g = 0; g < c->groups; g++) {
        for (unsigned i = 0; i < carried; i++) {
            TileScalar scalar = tile_loop_carried(c->loop, i)->type->scalar;
            TileValue *bytes = tile_build_i64(b, g * c->width * (int64_t)tile_scalar_bytes(scalar));
            TileValue *address = tile_build_ptr_add(b, stripes->buffers[i], bytes);
            c->accumulators[g * carried + i] = tile_build_load(b, vector_type(c, scalar), address, NULL, NULL, 0);
        }
    }
}

/* First as many stripes as full chunks hold; the remainder, which may be all stripes if vectors are long, is masked. */
static void emit_scalable_stripes(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi) {
    Stripes stripes = {.count = next_power(tile_loop_extent(c->loop)), .lo = lo, .hi = hi};
    if (stripes.count > TILE_STRIPES) stripes.count = TILE_STRIPES;
    TileBuilder start = tile_builder_before(c->context->module, b->block->func->body.first);
    stripes.buffers = TILE_NEW_ARRAY(c->context->scratch, TileValue *, c->loop->result_count);
    for (unsigned i = 0; i < c->loop->result_count; i++) {
        TileScalar scalar = tile_loop_carried(c->loop, i)->type->scalar;
        stripes.buffers[i] = tile_build_buffer(&start, TILE_STRIPES * (int64_t)tile_scalar_bytes(scalar), 64);
    }
    TileValue *done = tile_build_i64(b, 0), *count = tile_build_i64(b, stripes.count);
    Chunk narrow = *c;
    narrow.groups = c->width / c->register_lanes;
    narrow.width = c->register_lanes;
    while (narrow.groups > 1 && narrow.groups * narrow.width > stripes.count) narrow.groups /= 2;
    narrow.accumulators =
        TILE_NEW_ARRAY(c->context->scratch, TileValue *, narrow.groups * (int64_t)c->loop->result_count);
    if (narrow.groups * narrow.width <= stripes.count) {
        TileValue *whole = tile_build_unary(b, TILE_OP_NEG, lanes_of(&narrow, b, narrow.groups)), *zero = done;
        done = binary(b, TILE_OP_AND, count, whole);
        emit_stripe_chunks(&narrow, b, &stripes, zero, done, false);
    }
    narrow.groups = 1;
    emit_stripe_chunks(&narrow, b, &stripes, done, count, true);
    load_stripes(c, b, &stripes);
}

static void emit_reduction(Chunk *c, TileBuilder *b, TileValue *lo, TileValue *hi) {
    unsigned carried = c->loop->result_count;
    if (c->scale) {
        emit_scalable_stripes(c, b, lo, hi);
    } else {
        start_accumulators(c, b);
        emit_parts(c, b, lo, hi);
    }
    const TileAttribute *combine = tile_op_get(c->loop, TILE_ATTRIBUTE_COMBINE);
    for (unsigned i = 0; i < carried;) {
        TileName how = (TileName)combine->integers[i];
        unsigned used = how == TILE_COMBINE_ARG_MAX || how == TILE_COMBINE_ARG_MIN ? 2 : 1;
        halve(c, b, i, used, how);
        i += used;
    }
}

void tile_vectorise_emit(void *state, TileStrides *strides, TileBuilder *b, TileValue **results) {
    TilePassContext *context = state;
    TileOp *loop = strides->loop;
    Chunk chunk = {.context = context, .strides = strides, .loop = loop, .groups = 1};
    bool scalable;
    chunk.width = choose_width(context, strides, loop, &chunk.register_lanes, &scalable);
    if (scalable) chunk.scale = &tile_build_op(b, TILE_OP_VSCALE, NULL, 0, NULL, 0, NULL, 1)->results[0];
    TileValue *lo = tile_op_operand(loop, 0), *hi = tile_op_operand(loop, 1);
    if (tile_loop_in_stripes(loop) && !chunk.scale) {
        int64_t stripes = next_power(tile_loop_extent(loop));
        if (stripes > TILE_STRIPES) stripes = TILE_STRIPES;
        if (stripes > chunk.width) chunk.groups = stripes / chunk.width;
    }
    chunk.accumulators = TILE_NEW_ARRAY(context->scratch, TileValue *, chunk.groups * (loop->result_count + 1));
    if (tile_loop_in_stripes(loop))
        emit_reduction(&chunk, b, lo, hi);
    else
        emit_parts(&chunk, b, lo, hi);
    for (unsigned i = 0; i < loop->result_count; i++) results[i] = chunk.accumulators[i];
}
