/* Reporting: every message passes through here and gets notes with the calls that lead to its location. Descriptions of
 * meanings. */
#include "parser/check/builtin.h"
#include "parser/check/formats.h"
#include "parser/check/listing.h"
#include "parser/check/report.h"
#include "parser/check/stand_in.h"

static bool is_inside(TileSpan span, TileSpan outer) {
    return span.file == outer.file && span.begin >= outer.begin && span.end <= outer.end;
}

/* A note with the function's declaration, unless the message shows it already. */
static void note_declaration(TileChecker *c, TileDiagnostic *diagnostic, const TileItem *item) {
    if (!diagnostic || is_inside(diagnostic->span, item->span)) return;
    for (size_t i = 0; i < diagnostic->notes.count; i++)
        if (is_inside(diagnostic->notes.items[i].span, item->span)) return;
    tile_diagnostic_note(c->diagnostics, diagnostic, item->name_span, "`%s` is declared here", item->name);
}

TileDiagnostic *tile_report(TileChecker *c, TileDiagnostic *diagnostic) {
    enum { MOST_NOTES = 6 };
    if (tile_leave_open(c, diagnostic)) return NULL;
    unsigned depth = 0;
    TileFrame *frame = c->frame;
    for (; frame && frame->parent && frame->parent->item->name; frame = frame->parent) {
        if (frame->binding)
            note_declaration(c, diagnostic, frame->item);
        else if (depth++ < MOST_NOTES)
            tile_diagnostic_note(c->diagnostics, diagnostic, frame->call, "in `%s`, used here", frame->item->name);
    }
    if (frame) tile_note_instance(c, diagnostic, frame->item);
    return diagnostic;
}

TileDiagnostic *tile_reported_last(TileChecker *c, TileDiagnosticCode code, TileSpan span) {
    size_t count = c->diagnostics->list.count;
    TileDiagnostic *last = count ? c->diagnostics->list.items[count - 1] : NULL;
    bool same = last && last->code == code && last->span.file == span.file && last->span.begin == span.begin &&
                last->span.end == span.end;
    return same && !last->has_edit ? last : NULL;
}

static const char *count_words(TileChecker *c, unsigned least, unsigned most) {
    if (least != most) return tile_arena_format(c->arena, "%u to %u arguments", least, most);
    return most == 0 ? "no arguments" : most == 1 ? "one argument" : tile_arena_format(c->arena, "%u arguments", most);
}

TileDiagnostic *tile_report_count(TileChecker *c, TileSpan span, const char *name, unsigned least, unsigned most,
                                  unsigned given) {
    return tile_report(c, tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NUMBER_OF_ARGUMENTS, span, name,
                                        count_words(c, least, most), given, given == 1 ? "is" : "are"));
}

bool tile_may_act(TileChecker *c, TileSpan span, const char *what) {
    if (c->masked && !c->untaken) tile_fail(c, MASKED_EFFECT, span, what);
    return !c->masked && !c->untaken;
}

const char *tile_span_text(TileChecker *c, TileSpan span) {
    const TileSourceFile *file = &c->diagnostics->files.items[span.file];
    return tile_arena_string(c->arena, file->text + span.begin, span.end - span.begin);
}

const char *tile_count_words(TileChecker *c, size_t count, const char *one, const char *more) {
    return tile_arena_format(c->arena, "%zu %s", count, count == 1 ? one : more);
}

const char *tile_sum_words(TileChecker *c, const TileSum *sum) {
    TileText text = {.arena = c->arena};
    tile_sum_print(&text, sum);
    return tile_text_get(&text);
}

static const char *value_words(TileChecker *c, const TileMeaning *m) {
    TileText text = {.arena = c->arena};
    tile_text_add(&text, tile_scalar_name((TileScalar)m->scalar));
    for (unsigned i = 0; i < m->rank; i++) {
        tile_text_add(&text, i ? ", " : "[");
        tile_sum_print(&text, m->extent[i]);
    }
    if (m->rank) tile_text_add(&text, "]");
    return tile_text_get(&text);
}

const char *tile_meaning_words(TileChecker *c, const TileMeaning *m) {
    switch ((TileMeaningKind)m->kind) {
    case TILE_MEANING_ERROR: return "an error";
    case TILE_MEANING_NOTHING: return "nothing";
    case TILE_MEANING_INTEGER: return "an integer";
    case TILE_MEANING_NUMBER:
    case TILE_MEANING_CHOICE: return "a number";
    case TILE_MEANING_VALUE: return value_words(c, m);
    case TILE_MEANING_RANGE: return tile_arena_format(c->arena, "a range of %s", tile_sum_words(c, m->range->size));
    case TILE_MEANING_TENSOR:
        return tile_arena_format(c->arena, "a tensor of %s, rank %u", tile_tensor_type_name(m->tensor),
                                 m->tensor->rank - m->tensor->own);
    case TILE_MEANING_TUPLE: return tile_arena_format(c->arena, "a tuple of %u", m->count);
    case TILE_MEANING_TYPE: return tile_arena_format(c->arena, "the type %s", tile_scalar_name((TileScalar)m->scalar));
    case TILE_MEANING_FUNCTION:
        return tile_arena_format(c->arena, m->item->kind == TILE_ITEM_KERNEL ? "the kernel `%s`" : "the function `%s`",
                                 m->item->name);
    case TILE_MEANING_BUILTIN: return tile_arena_format(c->arena, "the function `%s`", m->builtin->name);
    case TILE_MEANING_MODULE: return "a module";
    case TILE_MEANING_TEXT: return "a text";
    case TILE_MEANING_DOTS: return "bounds a..b";
    case TILE_MEANING_SPREAD: return "the parameters of a function";
    }
    return "something";
}
