#include "ptx/grid/position_form.h"

#include "base/tensor_map.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/target/dot.h"

typedef struct Form {
    TileIndexView *view;
    GpuPositions *found;
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
} Form;

static const TileType *tile_of(const TileOp *access) {
    return access->id == TILE_OP_STORE_TILE ? tile_op_named(access, TILE_OPERAND_VALUE)->type : access->results[0].type;
}

/* Is the value the extent of the access's tensor along the axis, or what the launch compares it with? */
static bool is_extent(const Form *form, const TileValue *value, unsigned axis) {
    const TileValue *tensor = tile_op_operand(form->found->access, 0);
    const TileOp *dim = tile_value_def(value, TILE_OP_DIM);
    if (dim && tile_op_operand(dim, 0) == tensor && tile_op_integer(dim, TILE_ATTRIBUTE_AXIS, 0) == axis) return true;
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *check = use->user;
        if (check->id == TILE_OP_CHECK_DIM && tile_op_operand(check, 0) == tensor && tile_op_integer(check, TILE_ATTRIBUTE_AXIS, 0) == axis) return true;
    }
    return false;
}

/* ---- numbers ---- */

static TileValue *splatted(const TileValue *tile) {
    const TileOp *splat = tile_value_def(tile, TILE_OP_SPLAT);
    return splat ? tile_op_operand(splat, 0) : NULL;
}

static const TileSum *sum_of(const Form *form, const TileValue *value) { return tile_index_sum(form->view, value); }

static const TileSum *product_of(const Form *form, const TileSum *a, const TileSum *b) {
    return tile_sum_multiply(tile_index_table(form->view->indices), a, b);
}

static bool are_equal(const Form *form, const TileSum *a, const TileSum *b) {
    return tile_sum_is_literal(tile_sum_subtract(tile_index_table(form->view->indices), a, b), 0);
}

/* Numbers that follow one another: those of lanes, from 0 or from a first one on. */
static bool takes_numbers(Form *form, TileValue *numbers) {
    GpuPositions *found = form->found;
    if (found->numbers) return found->numbers == numbers;
    const TileOp *sum = tile_value_def(numbers, TILE_OP_ADD);
    const TileOp *lanes = sum ? NULL : tile_value_def(numbers, TILE_OP_IOTA);
    for (unsigned i = 0; sum && i < 2; i++) {
        if (!splatted(tile_op_operand(sum, 1 - i))) continue;
        lanes = tile_value_def(tile_op_operand(sum, i), TILE_OP_IOTA);
        found->first = splatted(tile_op_operand(sum, 1 - i));
    }
    found->numbers = lanes ? numbers : NULL;
    return lanes && tile_index_range(form->view->indices, numbers).lo >= 0;
}

/* The numbers, divided by what all lanes share. */
static const TileSum *divisor_of(Form *form, TileValue *value) {
    TileSumTable *table = tile_index_table(form->view->indices);
    const TileSum *divisor = tile_sum_integer(table, 1);
    for (const TileOp *op = tile_value_def(value, TILE_OP_DIV); op; op = tile_value_def(value, TILE_OP_DIV)) {
        int64_t number;
        const TileValue *by = splatted(tile_op_operand(op, 1));
        bool constant = !by && tile_value_integer(tile_op_operand(op, 1), &number);
        if (!by && !constant) return NULL;
        divisor = product_of(form, divisor, by ? sum_of(form, by) : tile_sum_integer(table, number));
        value = tile_op_operand(op, 0);
    }
    return takes_numbers(form, value) ? divisor : NULL;
}

/* ---- a dimension ---- */

/* Takes what all lanes have added off the index, from the last on. NULL: it is not of this form. */
static TileValue *without_added(TileValue *index, GpuPositionAxis *axis) {
    for (;;) {
        const TileOp *op = index->op;
        if (!op || (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB)) return index;
        int64_t constant;
        bool minus = op->id == TILE_OP_SUB;
        if (tile_value_integer(tile_op_operand(op, 1), &constant) && constant > INT32_MIN && constant < INT32_MAX) {
            axis->constant += minus ? -constant : constant;
            index = tile_op_operand(op, 0);
            continue;
        }
        bool left = !minus && splatted(tile_op_operand(op, 0));
        TileValue *added = splatted(tile_op_operand(op, left ? 0 : 1));
        if (tile_value_def(tile_op_operand(op, left ? 1 : 0), TILE_OP_IOTA)) return index;
        if (!added || axis->added_count == GPU_MOST_ADDED) return NULL;
        axis->added[axis->added_count] = added;
        axis->minus[axis->added_count++] = minus;
        index = tile_op_operand(op, left ? 1 : 0);
    }
}

/* What remains, divided by its step: that of a constant factor. */
static TileValue *without_step(TileValue *index, int64_t *step) {
    const TileOp *product = tile_value_def(index, TILE_OP_MUL);
    *step = 1;
    for (unsigned i = 0; product && i < 2; i++) {
        const TileValue *factor = splatted(tile_op_operand(product, i));
        if (tile_value_integer(factor ? factor : tile_op_operand(product, i), step)) return tile_op_operand(product, 1 - i);
    }
    return product ? NULL : index;
}

static const char *read_axis(Form *form, unsigned dimension, TileValue *index) {
    GpuPositionAxis *axis = &form->found->axes[dimension];
    index = without_added(index, axis);
    if (index && dimension) index = without_step(index, &axis->step);
    if (!index || (!dimension && (axis->added_count || axis->constant))) return "its rows are not those of quotients and remainders of one number";
    if (!dimension) axis->step = 1;
    if (axis->step < 1 || axis->step > TILE_MAP_MOST_STEP) return "its positions have a step of more than 8";
    const TileOp *rest = dimension ? tile_value_def(index, TILE_OP_REM) : NULL;
    if (dimension && !rest) return "its rows are not those of quotients and remainders of one number";
    axis->count = rest ? splatted(tile_op_operand(rest, 1)) : NULL;
    if (rest && !(axis->count && tile_value_def(axis->count, TILE_OP_DIM))) return "the number of its positions along an axis is not the extent of a tensor";
    axis->divisor = divisor_of(form, rest ? tile_op_operand(rest, 0) : index);
    return axis->divisor ? NULL : "its rows are not those of quotients and remainders of one number";
}

/* Each dimension goes on where the one behind it begins anew. */
static bool follow_one_another(const Form *form) {
    const GpuPositionAxis *axes = form->found->axes;
    unsigned last = form->found->dimensions - 2;
    bool follow = tile_sum_is_literal(axes[last].divisor, 1);
    for (unsigned d = last; d > 0 && follow; d--)
        follow = are_equal(form, axes[d - 1].divisor, product_of(form, axes[d].divisor, sum_of(form, axes[d].count)));
    return follow;
}

/* ---- what is valid ---- */

/* An index as it was before lanes beyond the last position got one that is outside. */
static TileValue *without_fill(Form *form, TileValue *index) {
    const TileOp *fill = tile_value_def(index, TILE_OP_FILL);
    int64_t outside;
    if (!fill) return index;
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    bool plain = axes->count == 1 && tile_value_integer(tile_op_operand(fill, 1), &outside) && outside < 0 && tile_value_is_integer(tile_fill_lo(fill, 0), 0);
    if (!plain || (form->found->valid && form->found->valid != tile_fill_hi(fill, 0))) return NULL;
    form->found->valid = tile_fill_hi(fill, 0);
    return tile_op_operand(fill, 0);
}

/* The dimension whose index this is, as it is loaded or before that; -1: none's. */
static int dimension_of(const Form *form, const TileValue *index) {
    for (unsigned d = 0; d + 1 < form->found->dimensions; d++)
        if (form->indices[d].first == index) return (int)d;
    return -1;
}

/* Does a lane have a position? Those from `valid` on have none. */
static bool asks_for_position(const Form *form, const TileOp *op, const TileValue *end) {
    const TileOp *lanes = tile_value_def(tile_op_operand(op, 0), TILE_OP_IOTA);
    return op->id == TILE_OP_LT && lanes && tile_op_integer(lanes, TILE_ATTRIBUTE_AXIS, 0) == 0 && end && end == form->found->valid;
}

/* Does the mask ask no more than whether indices lie in the tensor? Only then is what it leaves out outside. */
static bool asks_for_tensor(const Form *form, const TileValue *mask, unsigned depth) {
    enum { MOST_DEPTH = 12 };
    const TileOp *op = mask->op;
    if (!op || depth == MOST_DEPTH) return false;
    if (op->id == TILE_OP_RESHAPE || op->id == TILE_OP_BROADCAST) return asks_for_tensor(form, tile_op_operand(op, 0), depth + 1);
    if (op->id == TILE_OP_AND)
        return asks_for_tensor(form, tile_op_operand(op, 0), depth + 1) && asks_for_tensor(form, tile_op_operand(op, 1), depth + 1);
    if (op->id != TILE_OP_GE && op->id != TILE_OP_LT) return false;
    int d = dimension_of(form, tile_op_operand(op, 0));
    const TileValue *end = splatted(tile_op_operand(op, 1));
    if (d < 0) return asks_for_position(form, op, end);
    if (op->id == TILE_OP_GE) return tile_value_is_integer(end ? end : tile_op_operand(op, 1), 0);
    return end && is_extent(form, end, (unsigned)d);
}

/* Is the sum that of all positions of all images? */
static bool is_end(const Form *form, const TileSum *sum) {
    const TileFunc *func = tile_op_func(form->found->access);
    for (const TileOp *dim = func->body.first; dim; dim = dim->next)
        if (dim->id == TILE_OP_DIM && is_extent(form, &dim->results[0], 0) &&
            are_equal(form, sum, product_of(form, form->found->axes[0].divisor, sum_of(form, &dim->results[0]))))
            return true;
    return false;
}

/* Is each lane from `valid` on one of an image that the tensor does not have? `valid` is the number of lanes, or the lesser of that and of what is
 * left of all positions of all images. */
static bool ends_with_images(const Form *form) {
    const GpuPositions *found = form->found;
    int64_t number, lanes = tile_of(found->access)->extent[0];
    if (!found->valid || (tile_value_integer(found->valid, &number) && number >= lanes)) return true;
    const TileOp *least = tile_value_def(found->valid, TILE_OP_MIN);
    for (unsigned i = 0; least && i < 2; i++) {
        if (!tile_value_integer(tile_op_operand(least, i), &number) || number < lanes) continue;
        const TileSum *end = sum_of(form, tile_op_operand(least, 1 - i));
        if (found->first) end = tile_sum_add(tile_index_table(form->view->indices), end, sum_of(form, found->first));
        if (is_end(form, end)) return true;
    }
    return false;
}

const char *gpu_position_form(TileIndexView *view, TileOp *access, GpuPositions *positions) {
    Form form = {.view = view, .found = positions};
    *positions = (GpuPositions){.access = access};
    unsigned dimensions = positions->dimensions = tile_access_read(access, form.indices);
    const TileType *tile = tile_of(access);
    if (dimensions < TILE_MAP_LEAST_IMAGE_RANK || dimensions > TILE_MAP_MOST_RANK) return "a batch of images has three to five axes";
    const TileAccessIndex *last = &form.indices[dimensions - 1];
    if (!tile_type_is_tile(tile) || tile->rank != 2 || last->kind != TILE_ACCESS_RANGE || last->axis != 1) return "its rows do not lie along the tensor's last axis";
    for (unsigned d = 0; d + 1 < dimensions; d++) {
        if (form.indices[d].kind != TILE_ACCESS_GATHER) return "it does not gather along all axes of images";
        TileValue *index = without_fill(&form, form.indices[d].first);
        const char *why = index ? read_axis(&form, d, index) : "its rows end at several places";
        if (why) return why;
    }
    if (!follow_one_another(&form)) return "its rows are not those of quotients and remainders of one number";
    bool masked = tile_op_has_part(access, TILE_PARTS_MASK);
    if (masked && !asks_for_tensor(&form, tile_op_named(access, TILE_OPERAND_MASK), 0)) return "its mask asks for more than whether positions lie in the tensor";
    if (tile_op_has_part(access, TILE_PARTS_FILL)) return "it has a fill";
    return ends_with_images(&form) ? NULL : "its rows may end before the last position of the last image";
}
