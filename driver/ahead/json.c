/* What an object made ahead of time holds, as JSON: the image for those that launch by themselves (docs/abi.md). */
#include <inttypes.h>
#include <math.h>

#include "driver/ahead/ahead.h"
#include "lang/ir/eval.h"
#include "lang/scalar/scalar.h"
#include "launch/guard.h"
#include "launch/image_bytes.h"

static const char *host_name(TileHostOp op) {
    switch ((int)op) {
    case TILE_HOST_CONST: return "const";
    case TILE_HOST_DIM: return "dim";
    case TILE_HOST_SCALAR: return "scalar";
    default: return tile_op_info(tile_eval_op_id((TileEvalOp)(op - TILE_HOST_FIRST_EVAL)))->mnemonic;
    }
}

static void add_number(TileText *text, double number) {
    if (isfinite(number))
        tile_text_format(text, "%.17g", number);
    else
        tile_text_add(text, isnan(number) ? "\"nan\"" : number > 0 ? "\"inf\"" : "\"-inf\"");
}

static void add_constant(TileText *text, const TileHostInstruction *at) {
    TileScalar scalar = (TileScalar)at->type;
    tile_text_add(text, ", \"value\": ");
    switch (tile_host_type_class((TileHostType)at->type)) {
    case TILE_HOST_CLASS_FLOAT: add_number(text, tile_scalar_to_double(scalar, at->bits)); break;
    case TILE_HOST_CLASS_SIGNED: tile_text_format(text, "%" PRId64, tile_scalar_to_integer(scalar, at->bits)); break;
    case TILE_HOST_CLASS_UNSIGNED: tile_text_format(text, "%" PRIu64, at->bits); break;
    }
}

static void add_instruction(TileText *text, const TileHostInstruction *at) {
    tile_text_format(text, "{\"op\": \"%s\", \"type\": \"%s\"", host_name((TileHostOp)at->op),
                     tile_host_type_name((TileHostType)at->type));
    switch ((int)at->op) {
    case TILE_HOST_CONST: add_constant(text, at); break;
    case TILE_HOST_DIM: tile_text_format(text, ", \"parameter\": %u, \"axis\": %u", at->a, at->b); break;
    case TILE_HOST_SCALAR: tile_text_format(text, ", \"parameter\": %u", at->a); break;
    default:
        if (at->from != at->type)
            tile_text_format(text, ", \"from\": \"%s\"", tile_host_type_name((TileHostType)at->from));
        if (at->approx) tile_text_add(text, ", \"approx\": true");
        tile_text_format(text, ", \"a\": %u, \"b\": %u, \"c\": %u", at->a, at->b, at->c);
    }
    tile_text_add_char(text, '}');
}

static void add_indices(TileText *text, const uint32_t *indices, uint32_t count) {
    tile_text_add_char(text, '[');
    for (uint32_t i = 0; i < count; i++) tile_text_format(text, "%s%u", i ? ", " : "", indices[i]);
    tile_text_add_char(text, ']');
}

static void add_strings(TileText *text, const char *const *strings, uint32_t count) {
    tile_text_add_char(text, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i) tile_text_add(text, ", ");
        tile_text_add_json(text, strings[i]);
    }
    tile_text_add_char(text, ']');
}

/* Begins the next entry of a list, on its own line. */
static void next_entry(TileText *text, bool first, const char *indent) {
    tile_text_format(text, "%s\n%s", first ? "" : ",", indent);
}

/* ---- signature ---- */

static void add_parameter(TileText *text, const TileImageParameter *parameter) {
    static const char *const access[] = {
        [TILE_PARAMETER_IN] = "in", [TILE_PARAMETER_OUT] = "out", [TILE_PARAMETER_INOUT] = "inout"};
    bool tensor = parameter->kind == TILE_PARAMETER_TENSOR;
    tile_text_format(text, "{\"name\": \"%s\", \"kind\": \"%s\", \"type\": \"%s\"", parameter->name,
                     tensor ? "tensor" : "scalar", tile_host_type_name((TileHostType)parameter->type));
    if (tensor) {
        tile_text_format(text, ", \"access\": \"%s\", \"dimensions\": ", access[parameter->access]);
        add_strings(text, parameter->dimensions, parameter->rank);
    }
    tile_text_add_char(text, '}');
}

static void add_signature(TileText *text, const TileAheadExport *export) {
    const TileImageSignature *signature = &export->signature;
    tile_text_format(text, "\"symbol\": \"%s\", \"kernel\": \"%s\",\n   \"signature\": ", export->symbol,
                     export->kernel);
    tile_text_add_json(text, signature->text);
    tile_text_add(text, ",\n   \"doc\": ");
    tile_text_add_json(text, export->doc ? export->doc : "");
    tile_text_add(text, ",\n   \"parameters\": [");
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        next_entry(text, i == 0, "    ");
        add_parameter(text, &signature->parameters[i]);
    }
    tile_text_add(text, "],\n   \"may_overlap\": [");
    bool any = false;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        if (!(signature->overlap >> i & 1)) continue;
        tile_text_format(text, "%s%u", any ? ", " : "", i);
        any = true;
    }
    tile_text_add(text, "]");
}

/* ---- code ---- */

static void add_need(TileText *text, const TileImageParameter *parameter, uint32_t number, uint64_t need) {
    unsigned align = 1;
    for (unsigned bytes = 2; bytes <= 128; bytes *= 2)
        if (need & tile_guard_align(bytes)) align = bytes;
    tile_text_format(text, "{\"parameter\": %u, \"align\": %u, \"map\": %s, \"strides\": [", number, align,
                     need & TILE_GUARD_MAP ? "true" : "false");
    for (unsigned i = 0; i < parameter->rank; i++) {
        bool unit = need & tile_guard_dimension(i, TILE_GUARD_STRIDE_UNIT);
        bool zero = need & tile_guard_dimension(i, TILE_GUARD_STRIDE_ZERO);
        tile_text_format(text, "%s\"%s\"", i ? ", " : "", unit ? "unit" : zero ? "zero" : "any");
    }
    tile_text_add(text, "]}");
}

/* The conditions under which the variant is chosen. */
static void add_guards(TileText *text, const TileImageVariant *variant, const TileImageSignature *signature) {
    bool any = false;
    tile_text_add(text, "\"need\": [");
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        if (!variant->code.need[i]) continue;
        if (any) tile_text_add(text, ", ");
        add_need(text, &signature->parameters[i], i, variant->code.need[i]);
        any = true;
    }
    tile_text_add(text, "],\n     \"statics\": {");
    for (uint32_t i = 0; i < signature->static_count; i++)
        tile_text_format(text, "%s\"%s\": %" PRId64, i ? ", " : "", signature->statics[i].name, variant->statics[i]);
    tile_text_add(text, "},\n     ");
}

static void add_checks(TileText *text, const TileImageCode *code) {
    tile_text_add(text, "\"dimensions\": [");
    for (uint32_t i = 0; i < code->dimension_count; i++) {
        const TileImageDimension *check = &code->dimensions[i];
        tile_text_format(text, "%s{\"parameter\": %u, \"axis\": %u, \"value\": %u, \"text\": ", i ? ", " : "",
                         check->parameter, check->axis, check->expected);
        tile_text_add_json(text, check->text);
        tile_text_add_char(text, '}');
    }
    tile_text_add(text, "],\n     \"requires\": [");
    for (uint32_t i = 0; i < code->require_count; i++) {
        const TileImageRequire *require = &code->requires[i];
        tile_text_format(text, "%s{\"value\": %u, \"chooses\": %s, \"text\": ", i ? ", " : "", require->condition,
                         require->chooses ? "true" : "false");
        tile_text_add_json(text, require->text);
        tile_text_add_char(text, '}');
    }
    tile_text_add_char(text, ']');
}

static void add_temps(TileText *text, const TileImageCode *code) {
    tile_text_add(text, "\"temps\": [");
    for (uint32_t i = 0; i < code->temp_count; i++) {
        const TileImageTemp *temp = &code->temps[i];
        tile_text_format(text, "%s{\"name\": \"%s\", \"type\": \"%s\", \"align\": %u, \"extents\": ", i ? ", " : "",
                         temp->name, tile_host_type_name((TileHostType)temp->type), temp->align);
        add_indices(text, temp->extents, temp->rank);
        tile_text_add_char(text, '}');
    }
    tile_text_add_char(text, ']');
}

/* What a map in mode im2col has beyond one in mode tiled. */
static void add_positions(TileText *text, const TileImageMap *map) {
    tile_text_format(text, ", \"positions\": %u, \"corner\": [", map->positions);
    for (unsigned d = 0; d < tile_image_map_axes(map); d++) tile_text_format(text, d ? ", %d" : "%d", map->corner[d]);
    tile_text_add(text, "], \"over\": [");
    for (unsigned d = 0; d < tile_image_map_axes(map); d++) tile_text_format(text, d ? ", %u" : "%u", map->over[d]);
    tile_text_add(text, "]");
}

/* The tensor maps of a grid, which those who launch by themselves have to make. */
static void add_maps(TileText *text, const TileImageEntry *entry) {
    tile_text_add(text, ", \"maps\": [");
    for (uint32_t i = 0; i < entry->map_count; i++) {
        const TileImageMap *map = &entry->maps[i];
        tile_text_format(text, "%s{\"slot\": %u, \"element_bytes\": %u, \"swizzle\": %u, \"box\": [", i ? ", " : "",
                         map->slot, map->element_bytes, map->swizzle);
        for (unsigned d = 0; d < map->rank; d++) tile_text_format(text, d ? ", %u" : "%u", map->box[d]);
        tile_text_add(text, "], \"steps\": [");
        for (unsigned d = 0; d < map->rank; d++) tile_text_format(text, d ? ", %u" : "%u", map->step[d] ? map->step[d] : 1);
        tile_text_add(text, "], \"cut\": [");
        for (unsigned d = 0; d < map->rank; d++) tile_text_format(text, d ? ", %d" : "%d", map->cut >> d & 1);
        tile_text_add(text, "]");
        if (map->positions) add_positions(text, map);
        tile_text_add(text, "}");
    }
    tile_text_add_char(text, ']');
}

static void add_grids(TileText *text, const TileAheadCode *made) {
    const TileImageCode *code = &made->variant.code;
    const TileImageBinary *binary = made->variant.binary;
    tile_text_add(text, "\"grids\": [");
    for (uint32_t i = 0; i < code->phase_count; i++) {
        const TileImagePhase *phase = &code->phases[i];
        next_entry(text, i == 0, "      ");
        tile_text_format(text, "{\"symbol\": \"%s\", \"%s\": %" PRIu64, made->symbols[i],
                         binary ? "shared_bytes" : "scratch_bytes", phase->scratch_bytes);
        if (binary) tile_text_format(text, ", \"threads\": %u", binary->entries[i].threads);
        if (binary) add_maps(text, &binary->entries[i]);
        tile_text_add(text, ", \"extents\": ");
        add_indices(text, phase->extents, phase->rank);
        if (phase->bands) tile_text_format(text, ", \"bands\": %u", phase->bands);
        tile_text_add(text, ", \"assertions\": ");
        add_strings(text, phase->assertions, phase->assertion_count);
        tile_text_add(text, ", \"prints\": ");
        add_strings(text, phase->prints, phase->print_count);
        tile_text_add_char(text, '}');
    }
    tile_text_add_char(text, ']');
}

static void add_binary(TileText *text, const TileImageBinary *binary) {
    tile_text_format(text,
                     ",\n     \"capability\": %u, \"alone\": %s, \"cubin_bytes\": %u, \"ptx\": ", binary->capability,
                     binary->alone ? "true" : "false", binary->cubin_bytes);
    tile_text_add_json(text, binary->ptx);
}

static void add_code(TileText *text, const TileBuild *build, const TileAheadExport *export, const TileAheadCode *made) {
    const TileImageCode *code = &made->variant.code;
    tile_text_format(text, "{\"target\": \"%s\", \"variant\": ", build->targets.items[made->variant.target]->name);
    tile_text_add_json(text, made->variant.label);
    tile_text_add(text, ",\n     ");
    add_guards(text, &made->variant, &export->signature);
    tile_text_add(text, "\"host\": [");
    for (uint32_t i = 0; i < code->host_count; i++) {
        next_entry(text, i == 0, "      ");
        add_instruction(text, &code->host[i]);
    }
    tile_text_add(text, "],\n     ");
    add_checks(text, code);
    tile_text_add(text, ",\n     \"slots\": [");
    for (uint32_t i = 0; i < code->order_count; i++) tile_text_format(text, "%s%u", i ? ", " : "", code->order[i]);
    tile_text_add(text, "],\n     ");
    add_temps(text, code);
    tile_text_add(text, ",\n     ");
    add_grids(text, made);
    if (made->variant.binary) add_binary(text, made->variant.binary);
    tile_text_add_char(text, '}');
}

void tile_ahead_write_json(TileBuild *build) {
    TileText text = {.arena = build->arena};
    tile_text_format(&text, "{\"version\": %d, \"targets\": [", TILE_IMAGE_VERSION);
    for (size_t i = 0; i < build->targets.count; i++)
        tile_text_format(&text, "%s\"%s\"", i ? ", " : "", build->targets.items[i]->name);
    tile_text_add(&text, "],\n \"kernels\": [");
    for (size_t i = 0; i < build->exports.count; i++) {
        const TileAheadExport *export = build->exports.items[i];
        next_entry(&text, i == 0, "  {");
        add_signature(&text, export);
        tile_text_add(&text, ",\n   \"variants\": [");
        for (size_t k = 0; k < export->made.count; k++) {
            next_entry(&text, k == 0, "    ");
            add_code(&text, build, export, &export->made.items[k]);
        }
        tile_text_add(&text, "]}");
    }
    tile_text_add(&text, "]}\n");
    build->json = tile_text_get(&text);
}
