/* Explanations: decisions, collected from the passes' remarks and from the final machine form. */
#include "driver/compile/explain.h"

#include <string.h>

#include "driver/compile/backend.h"
#include "driver/compile/choice.h"
#include "lang/ir/text.h"
#include "launch/guard.h"

void tile_compiler_explain(TileCompiler *compiler, TileExplanation *explanation) {
    pthread_mutex_lock(&compiler->mutex);
    compiler->explanation = explanation;
    pthread_mutex_unlock(&compiler->mutex);
}

static const char *keep(TileExplanation *explanation, const char *text) {
    return tile_arena_string(explanation->arena, text, strlen(text));
}

/* ---- arguments ---- */

static void explain_parameters(TileExplanation *explanation, const TileImageSignature *signature,
                            const TileImageRequest *request, const TileImageCode *code) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        const TileImageParameter *parameter = &signature->parameters[i];
        if (parameter->kind != TILE_PARAMETER_TENSOR) {
            if (code->asked[i] & TILE_GUARD_VALUE)
                tile_list_push(explanation->arena, &explanation->scalars, keep(explanation, parameter->name));
            continue;
        }
        TileHostType type =
            parameter->generic < 0 ? (TileHostType)parameter->type : request->generics[parameter->generic];
        TileExplainedTensor tensor = {.name = keep(explanation, parameter->name),
                                      .rank = parameter->rank,
                                      .scalar_bytes = tile_host_type_bytes(type),
                                      .offered = request->facts[i],
                                      .used = code->need[i]};
        tile_list_push(explanation->arena, &explanation->tensors, tensor);
    }
}

/* ---- tune clauses ---- */

const char *tile_tune_origin(const TileExplainedTune *tune) {
    static const char *const names[] = {[TILE_TUNE_DEFAULT] = "the default",
                                        [TILE_TUNE_SET] = "set",
                                        [TILE_TUNE_MEASURED] = "measured",
                                        [TILE_TUNE_PINNED] = "pinned",
                                        [TILE_TUNE_PREDICTED] = "predicted"};
    return names[tune->origin];
}

static bool is_set(const TileUnit *unit, const char *name) {
    for (size_t i = 0; i < unit->lowering.binding_count; i++)
        if (strcmp(unit->lowering.bindings[i].name, name) == 0) return true;
    return false;
}

static tile_status explain_tunes(TileExplanation *explanation, TileUnit *unit, const TileImageSignature *signature,
                                 const TileImageRequest *request) {
    TileTunePoints chosen;
    const TileTunedRow *row =
        tile_chosen_row(unit->input, (uint32_t)(signature - unit->input->signatures), request->tuned);
    if (!unit->kernel) return TILE_OK; /* in text of the IR, constants are fixed */
    TILE_TRY(tile_list_points(unit->diagnostics, unit->kernel->ast, unit->kernel->item, &unit->lowering, 1, &chosen));
    for (size_t i = 0; i < chosen.names.count && chosen.points.count; i++) {
        TileExplainedTune tune = {.name = keep(explanation, chosen.names.items[i]),
                                  .value = chosen.points.items[0][i],
                                  .origin = is_set(unit, chosen.names.items[i]) ? TILE_TUNE_SET : TILE_TUNE_DEFAULT};
        if (row) {
            tune.origin = row->predicted ? TILE_TUNE_PREDICTED : row->pinned ? TILE_TUNE_PINNED : TILE_TUNE_MEASURED;
            if (row->file) tune.file = keep(explanation, row->file);
        }
        tile_list_push(explanation->arena, &explanation->tunes, tune);
    }
    return TILE_OK;
}

/* ---- phases ---- */

static const TileType *wider(const TileType *best, const TileType *type) {
    if (type->kind != TILE_TYPE_VECTOR) return best;
    uint64_t bits = (uint64_t)tile_type_lanes(type) * tile_scalar_bits(type->scalar);
    return best && (uint64_t)tile_type_lanes(best) * tile_scalar_bits(best->scalar) >= bits ? best : type;
}

static void look_at_access(TileExplainedLoop *loop, const TileOp *op) {
    bool load = op->id == TILE_OP_LOAD, store = op->id == TILE_OP_STORE;
    if (!load && !store) return;
    const TileType *type = load ? op->results[0].type : tile_op_operand(op, 0)->type;
    if (type->kind == TILE_TYPE_VECTOR)
        loop->vectors++;
    else
        loop->scalars++;
    loop->widest = wider(loop->widest, type); /* a stored value may be defined outside of the loop */
    loop->masked += tile_op_has_part(op, TILE_PARTS_MASK);
}

/* Includes the branches in it. */
static void look_at_loop(TileExplainedLoop *loop, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (!loop->place.file) loop->place = op->location; /* loops that passes create have no location of their own */
        for (unsigned i = 0; i < op->result_count; i++) loop->widest = wider(loop->widest, op->results[i].type);
        look_at_access(loop, op);
        for (unsigned i = 0; i < op->region_count; i++) look_at_loop(loop, &op->regions[i]);
    }
}

static bool has_loop(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (has_loop(&op->regions[i])) return true;
    }
    return false;
}

static void find_loops(TileExplanation *explanation, TileExplainedPhase *phase, const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_BARRIER) tile_list_push(explanation->arena, &phase->barriers, op->location);
        bool loop = op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE, inner = loop;
        for (unsigned i = 0; i < op->region_count; i++) {
            inner &= !has_loop(&op->regions[i]);
            find_loops(explanation, phase, &op->regions[i]);
        }
        if (!inner) continue;
        TileExplainedLoop found = {.place = op->location};
        for (unsigned i = 0; i < op->region_count; i++) look_at_loop(&found, &op->regions[i]);
        found.unroll = op->id == TILE_OP_FOR ? tile_op_integer(op, TILE_ATTRIBUTE_UNROLL, 1) : 1;
        tile_list_push(explanation->arena, &phase->loops, found);
    }
}

static void add_tile(TileExplanation *explanation, TileExplainedPhase *phase, const TileRemark *remark) {
    size_t i = 0;
    while (i < phase->layouts.count && strcmp(phase->layouts.items[i].layout, remark->layout) != 0) i++;
    if (i == phase->layouts.count)
        tile_list_push(explanation->arena, &phase->layouts, (TileExplainedLayout){.layout = remark->layout});
    tile_list_push(explanation->arena, &phase->layouts.items[i].tiles, *remark);
}

/* Loops that were split contain the same access twice. */
static void add_access(TileExplanation *explanation, TileExplainedPhase *phase, const TileRemark *remark) {
    for (size_t i = 0; i < phase->accesses.count; i++) {
        const TileRemark *other = &phase->accesses.items[i];
        if (other->place.line == remark->place.line && strcmp(other->name, remark->name) == 0 &&
            strcmp(other->way, remark->way) == 0 && other->cache == remark->cache)
            return;
    }
    tile_list_push(explanation->arena, &phase->accesses, *remark);
}

static void add_order(TileExplanation *explanation, TileExplainedPhase *phase, const TileRemark *remark) {
    for (size_t i = 0; i < phase->orders.count; i++) {
        const TileRemark *other = &phase->orders.items[i];
        if (other->place.line == remark->place.line && other->place.file == remark->place.file &&
            strcmp(other->name, remark->name) == 0 && strcmp(other->way, remark->way) == 0)
            return;
    }
    tile_list_push(explanation->arena, &phase->orders, *remark);
}

static bool is_behind(TileLocation a, TileLocation b) {
    if (a.file != b.file) return a.file > b.file;
    return a.line != b.line ? a.line > b.line : a.column > b.column;
}

/* Split loops and duplicated programs have the same decision twice. */
static void add_decision(TileExplanation *explanation, TileExplainedPhase *phase, const TileRemark *remark) {
    size_t count = phase->decisions.count;
    for (size_t i = 0; i < count; i++) {
        const TileRemark *other = &phase->decisions.items[i];
        if (other->place.line == remark->place.line && other->place.file == remark->place.file &&
            other->decision == remark->decision && strcmp(other->name, remark->name) == 0 &&
            strcmp(other->way, remark->way) == 0)
            return;
    }
    tile_list_push(explanation->arena, &phase->decisions, *remark);
    for (; count && is_behind(phase->decisions.items[count - 1].place, remark->place); count--)
        phase->decisions.items[count] = phase->decisions.items[count - 1];
    phase->decisions.items[count] = *remark;
}

const char *tile_cache_policy(const TileRemark *access) {
    return access->cache == TILE_CACHE_STREAM ? "evict_first"
           : access->cache == TILE_CACHE_L2   ? "evict_last"
                                              : "evict_normal";
}

static TileRemark copy(TileExplanation *explanation, const TileRemark *remark) {
    TileRemark own = *remark;
    own.func = NULL; /* it is destroyed with its module; the phase has it */
    own.name = keep(explanation, remark->name);
    own.way = remark->way ? keep(explanation, remark->way) : NULL;
    own.pass = remark->pass ? keep(explanation, remark->pass) : NULL;
    own.layout = remark->layout ? keep(explanation, remark->layout) : NULL;
    own.to = remark->to ? keep(explanation, remark->to) : NULL;
    return own;
}

/* Decisions about a kernel, from passes that ran before its grids became functions, are reported with its first
 * phase. */
static bool is_about(const TileRemark *remark, const TileFunc *phase) {
    return remark->func == phase || (phase->phase == 0 && phase->kernel && remark->func == phase->kernel);
}

static void explain_phase(TileExplanation *explanation, const TileFunc *func, const TileRemarks *remarks) {
    TileExplainedPhase phase = {
        .name = keep(explanation, func->name), .threads = func->threads, .memory_bytes = func->scratch_bytes};
    find_loops(explanation, &phase, &func->body);
    for (size_t i = 0; i < remarks->count; i++) {
        if (!is_about(&remarks->items[i], func)) continue;
        TileRemark remark = copy(explanation, &remarks->items[i]);
        switch (remark.kind) {
        case TILE_REMARK_LAYOUT: add_tile(explanation, &phase, &remark); break;
        case TILE_REMARK_MOVE: tile_list_push(explanation->arena, &phase.moves, remark); break;
        case TILE_REMARK_ACCESS: add_access(explanation, &phase, &remark); break;
        case TILE_REMARK_ORDER: add_order(explanation, &phase, &remark); break;
        case TILE_REMARK_DECISION: add_decision(explanation, &phase, &remark); break;
        }
    }
    tile_list_push(explanation->arena, &explanation->phases, phase);
}

/* ---- the whole ---- */

static void copy_files(TileExplanation *explanation, const TileContext *context) {
    const char **files = TILE_NEW_ARRAY(explanation->arena, const char *, context->files.count + 1);
    files[0] = "";
    for (size_t i = 1; i < context->files.count; i++) files[i] = keep(explanation, context->files.items[i]);
    explanation->files = files;
}

static void copy_sources(TileExplanation *explanation, const TileUnit *unit) {
    unsigned count = (unsigned)unit->context->files.count;
    const char **sources = TILE_NEW_ARRAY(explanation->arena, const char *, count + 1);
    for (unsigned i = 1; i < count; i++)
        for (size_t k = 1; k < unit->diagnostics->files.count; k++) {
            const TileSourceFile *file = &unit->diagnostics->files.items[k];
            if (strcmp(file->name, unit->context->files.items[i]) == 0)
                sources[i] = tile_arena_string(explanation->arena, file->text, file->length);
        }
    explanation->sources = sources;
    explanation->file_count = count;
}

/* The forms behind the passes of the target, and the code. */
static tile_status explain_texts(TileUnit *unit, TileExplanation *explanation) {
    TileText text = {.arena = explanation->arena};
    tile_module_print(&text, unit->module, TILE_PRINT_LOCATIONS);
    explanation->machine_form = tile_text_get(&text);
    copy_sources(explanation, unit);
    TILE_TRY(tile_unit_emit(unit, TILE_CODE_ASSEMBLY));
    explanation->code = tile_arena_string(explanation->arena, unit->code.data, unit->code.size);
    return TILE_OK;
}

/* What only the emitted code shows. */
static tile_status explain_code(TileUnit *unit, TileExplanation *explanation) {
    TILE_TRY(tile_unit_emit(unit, tile_unit_backend(unit)->code));
    explanation->ptx = tile_arena_string(explanation->arena, unit->code.data, unit->code.size);
    return TILE_OK;
}

tile_status tile_unit_explain(TileUnit *unit, const TileFunc *kernel, const TileImageSignature *signature,
                              const TileImageRequest *request, const TileImageCode *code,
                              TileExplanation *explanation) {
    const TileTarget *target = unit->input->target;
    TileArena *arena = explanation->arena;
    if (!target) return TILE_OK; /* the interpreter decides nothing */
    TileExplanation chosen = *explanation; /* before the code was made */
    *explanation = (TileExplanation){
        .arena = arena, .kernel = keep(explanation, kernel->name), .target = keep(explanation, target->name)};
    explanation->candidates.items = chosen.candidates.items;
    explanation->candidates.count = explanation->candidates.capacity = chosen.candidates.count;
    explanation->chosen = chosen.chosen;
    explanation->texts = chosen.texts;
    explanation->tile_form = chosen.tile_form;
    explanation->decided_form = chosen.decided_form;
    explanation->vector_bytes = target->vector_bytes;
    copy_files(explanation, unit->context);
    explain_parameters(explanation, signature, request, code);
    TILE_TRY(explain_tunes(explanation, unit, signature, request));
    for (const TileFunc *func = unit->module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE) explain_phase(explanation, func, &unit->remarks);
    if (tile_unit_backend(unit)->explained) TILE_TRY(explain_code(unit, explanation));
    if (explanation->texts) TILE_TRY(explain_texts(unit, explanation));
    explanation->done = true;
    return TILE_OK;
}
