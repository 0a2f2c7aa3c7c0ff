/* tilec explain --html: one page that needs nothing else. The source stands beside tile form, machine form and code; each
 * line of a form has the place in the source that it comes from as its `data-l`, FILE:LINE, and the script marks all lines
 * of a place. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/explain.h"

static const char style[] =
    "body{margin:0;font:13px/1.45 system-ui,sans-serif;color:#1b1f24;background:#fff}"
    "header{padding:8px 14px;border-bottom:1px solid #d0d7de;display:flex;gap:18px;align-items:baseline;flex-wrap:wrap}"
    "h1{font-size:15px;margin:0}nav button{font:inherit;margin-right:4px}nav button.on{font-weight:600}"
    "main{display:grid;grid-template-columns:1fr 1fr;height:calc(100vh - 44px)}"
    "section{overflow:auto;border-right:1px solid #d0d7de}section[hidden]{display:none}"
    "section h2{position:sticky;top:0;margin:0;padding:3px 10px;font-size:12px;background:#f6f8fa;border-bottom:1px solid #d0d7de}"
    "pre{margin:0;padding:4px 0;font:12px/1.45 ui-monospace,monospace;tab-size:8}"
    "pre div{padding:0 10px;white-space:pre;min-height:1.45em}pre [data-l]{cursor:pointer}pre [data-l]:hover{background:#eef4ff}"
    "pre .on{background:#ffe9a8}.n{display:inline-block;width:4ch;color:#8b949e;text-align:right;margin-right:2ch;user-select:none}"
    ".r{color:#57606a;white-space:pre-wrap;background:#f6f8fa}.hot .n{color:#0550ae;font-weight:600}svg{max-width:none}"
    "@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}section h2,.r{background:#161b22}"
    "pre [data-l]:hover{background:#1c2a44}pre .on{background:#5a4a12}section,header,section h2{border-color:#30363d}}";

/* A place is chosen by a click, or by the page's address: explain.html#1:12. */
static const char script[] =
    "const all=l=>document.querySelectorAll(`[data-l=\"${l}\"]`);"
    "function mark(l,from){document.querySelectorAll('.on[data-l]').forEach(e=>e.classList.remove('on'));"
    "const seen=new Set(from?[from.closest('section')]:[]);"
    "all(l).forEach(e=>{e.classList.add('on');const s=e.closest('section');"
    "if(!seen.has(s)&&!s.hidden){seen.add(s);s.scrollTop=e.offsetTop-s.offsetTop-s.clientHeight/3}})}"
    "function show(id){document.querySelectorAll('.side').forEach(s=>s.hidden=s.id!==id);"
    "document.querySelectorAll('nav button').forEach(b=>b.classList.toggle('on',b.value===id));"
    "const l=document.querySelector('.on[data-l]');if(l)mark(l.dataset.l,l)}"
    "document.querySelectorAll('nav button').forEach(b=>b.onclick=()=>show(b.value));"
    "document.addEventListener('click',e=>{const d=e.target.closest('[data-l]');"
    "if(d){mark(d.dataset.l,d);history.replaceState(null,'','#'+d.dataset.l)}});"
    "const used=new Set([...document.querySelectorAll('.side [data-l]')].map(e=>e.dataset.l));"
    "document.querySelectorAll('#source [data-l]').forEach(e=>e.classList.toggle('hot',used.has(e.dataset.l)));"
    "show(document.querySelector('nav button').value);"
    "addEventListener('hashchange',()=>mark(location.hash.slice(1)));if(location.hash)mark(location.hash.slice(1));";

typedef struct Page {
    const TileExplanation *explanation;
    TileText *text;
} Page;

/* A line of a form; file 0: it comes from no place of the source. */
static void add_line(Page *page, const char *line, size_t length, unsigned file, unsigned number, const char *class) {
    TileText *text = page->text;
    tile_text_format(text, "<div%s%s%s", class ? " class=\"" : "", class ? class : "", class ? "\"" : "");
    if (file && number) tile_text_format(text, " data-l=\"%u:%u\"", file, number);
    tile_text_add_char(text, '>');
    tile_text_add_xml(text, tile_arena_string(text->arena, line, length));
    tile_text_add(text, "</div>");
}

typedef void (*LineVisit)(Page *page, void *state, const char *line, size_t length);

static void for_lines(Page *page, const char *text, LineVisit visit, void *state) {
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        visit(page, state, text, length);
        text += length + (text[length] == '\n');
    }
}

static void begin_side(Page *page, const char *id, const char *title) {
    tile_text_format(page->text, "<section class=\"side\" id=\"%s\" hidden><h2>%s</h2><pre>", id, title);
}

static void end_side(Page *page) { tile_text_add(page->text, "</pre></section>\n"); }

/* ---- the source ---- */

typedef struct Source {
    unsigned file, line;
} Source;

/* What passes decided about the line, below it. */
static void add_decisions(Page *page, unsigned file, unsigned line) {
    const TileExplanation *explanation = page->explanation;
    for (size_t i = 0; i < explanation->phases.count; i++)
        for (size_t k = 0; k < explanation->phases.items[i].decisions.count; k++) {
            const TileRemark *remark = &explanation->phases.items[i].decisions.items[k];
            TileText words = {.arena = page->text->arena};
            if (remark->place.file != file || remark->place.line != line) continue;
            tile_remark_print(&words, remark);
            add_line(page, tile_text_get(&words), words.length, 0, 0, "r");
        }
}

static void add_source_line(Page *page, void *state, const char *line, size_t length) {
    Source *source = state;
    TileText *text = page->text;
    source->line++;
    tile_text_format(text, "<div data-l=\"%u:%u\"><span class=\"n\">%u</span>", source->file, source->line, source->line);
    tile_text_add_xml(text, tile_arena_string(text->arena, line, length));
    tile_text_add(text, "</div>");
    add_decisions(page, source->file, source->line);
}

static void add_sources(Page *page) {
    const TileExplanation *explanation = page->explanation;
    tile_text_add(page->text, "<section id=\"source\">");
    for (unsigned i = 1; i < explanation->file_count; i++) {
        Source source = {.file = i};
        if (!explanation->sources[i]) continue;
        tile_text_add(page->text, "<h2>");
        tile_text_add_xml(page->text, explanation->files[i]);
        tile_text_add(page->text, "</h2><pre>");
        for_lines(page, explanation->sources[i], add_source_line, &source);
        tile_text_add(page->text, "</pre>");
    }
    tile_text_add(page->text, "</section>\n");
}

/* ---- forms of the IR ---- */

/* " @12:5", or " @2:12:5" for a line of another file than the first, at the end or in front of a brace. */
static void add_ir_line(Page *page, void *state, const char *line, size_t length) {
    TileText *text = page->text;
    const char *whole = tile_arena_string(text->arena, line, length), *at = NULL;
    unsigned a, b, c, file = 0, number = 0;
    int used = 0;
    for (const char *next = whole; (next = strstr(next, " @")); next++)
        if (isdigit((unsigned char)next[2])) at = next;
    if (at && sscanf(at, " @%u:%u:%u%n", &a, &b, &c, &used) == 3)
        file = a, number = b;
    else if (at && sscanf(at, " @%u:%u%n", &a, &b, &used) == 2)
        file = 1, number = a;
    if (!file) return add_line(page, whole, length, 0, 0, NULL);
    const char *shown = tile_arena_format(text->arena, "%.*s%s", (int)(at - whole), whole, at + used);
    add_line(page, shown, strlen(shown), file, number, NULL);
}

/* ---- code ---- */

typedef struct Code {
    TileMap files; /* number in the assembly to the explanation's */
    unsigned file, line;
    bool debug; /* in a section for debuggers, which is left out */
} Code;

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* .file 1 "folder" "name.tile" */
static void note_file(Page *page, Code *code, const char *line) {
    const TileExplanation *explanation = page->explanation;
    unsigned number;
    const char *last = strrchr(line, '"');
    if (sscanf(line, " .file %u", &number) != 1 || !last) return;
    const char *first = last;
    while (first > line && first[-1] != '"') first--;
    const char *name = tile_arena_string(page->text->arena, first, (size_t)(last - first));
    for (unsigned i = 1; i < explanation->file_count; i++)
        if (ends_with(explanation->files[i], name) || ends_with(name, explanation->files[i]))
            tile_map_set(&code->files, (void *)(uintptr_t)(number + 1), (void *)(uintptr_t)i);
}

static void add_code_line(Page *page, void *state, const char *line, size_t length) {
    Code *code = state;
    const char *whole = tile_arena_string(page->text->arena, line, length);
    const char *word = whole + strspn(whole, " \t");
    unsigned file, number;
    if (strncmp(word, ".file", 5) == 0) return note_file(page, code, whole);
    if (sscanf(word, ".loc %u %u", &file, &number) == 2) {
        code->file = (unsigned)(uintptr_t)tile_map_get(&code->files, (void *)(uintptr_t)(file + 1));
        code->line = number;
        return;
    }
    if (strncmp(word, ".section", 8) == 0) code->debug = strstr(word, ".debug") != NULL;
    if (strncmp(word, ".text", 5) == 0) code->debug = false;
    if (!code->debug && strncmp(word, ".cfi", 4) != 0) add_line(page, whole, length, code->file, code->line, NULL);
}

/* PTX names its files at the end. */
static void find_files(Page *page, void *state, const char *line, size_t length) {
    const char *whole = tile_arena_string(page->text->arena, line, length), *word = whole + strspn(whole, " \t");
    if (strncmp(word, ".file", 5) == 0) note_file(page, state, whole);
}

static void add_code(Page *page) {
    Code code = {0};
    tile_map_init(&code.files, page->text->arena);
    for_lines(page, page->explanation->code, find_files, &code);
    begin_side(page, "code", page->explanation->ptx ? "PTX" : "assembly");
    for_lines(page, page->explanation->code, add_code_line, &code);
    end_side(page);
}

/* ---- the report ---- */

/* "line 12: .." and "FILE:12: .." lead to the source. */
static void add_report_line(Page *page, void *state, const char *line, size_t length) {
    const TileExplanation *explanation = page->explanation;
    const char *whole = tile_arena_string(page->text->arena, line, length), *at = strstr(whole, "line ");
    unsigned file = 0, number = 0;
    if (at && sscanf(at, "line %u", &number) == 1) file = 1;
    for (unsigned i = 1; i < explanation->file_count && !file; i++) {
        const char *name = strstr(whole, explanation->files[i]);
        if (name && sscanf(name + strlen(explanation->files[i]), ":%u", &number) == 1) file = i;
    }
    add_line(page, whole, length, file, number, "w");
}

static tile_status add_report(Page *page, const TileAssemblyFigures *figures, const char *missing) {
    char *report = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&report, &size);
    if (!out) return TILE_OUT_OF_MEMORY;
    tile_explain_print(out, page->explanation, figures, missing);
    if (fclose(out) != 0) return free(report), TILE_OUT_OF_MEMORY;
    const char *kept = tile_arena_string(page->text->arena, report, size);
    free(report);
    begin_side(page, "decisions", "decisions");
    for_lines(page, kept, add_report_line, NULL);
    end_side(page);
    return TILE_OK;
}

static void add_layouts(Page *page) {
    TileText svg = {.arena = page->text->arena};
    if (!page->explanation->ptx) return;
    tile_explain_draw(page->explanation, &svg);
    const char *picture = strstr(tile_text_get(&svg), "<svg"); /* without the head of a file of its own */
    if (!picture) return;
    tile_text_add(page->text, "<section class=\"side\" id=\"layouts\" hidden><h2>layouts</h2>");
    tile_text_add(page->text, picture);
    tile_text_add(page->text, "</section>\n");
}

/* ---- work ---- */

/* A bar of the predicted time, as long as its part of the longest. */
static void add_bar(Page *page, const char *name, double time, double longest, unsigned row) {
    enum { LEFT = 130, WIDTH = 420, HEIGHT = 26 };
    unsigned y = 8 + row * HEIGHT, width = longest > 0 ? (unsigned)(time / longest * WIDTH) : 0;
    tile_text_format(page->text,
                     "<text x=\"10\" y=\"%u\" fill=\"currentColor\">%s</text><rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"16\" "
                     "fill=\"#4c8dd6\"/><text x=\"%u\" y=\"%u\" fill=\"currentColor\">%.1f \302\265s</text>",
                     y + 13, name, (unsigned)LEFT, y, width + 1, LEFT + width + 8, y + 13, time);
}

/* What the launch would take if memory, or arithmetic, were all there is: the model of the GPU, for what it chose. */
static void add_prediction(Page *page) {
    const TileExplanation *explanation = page->explanation;
    if (explanation->chosen >= explanation->candidates.count) return;
    const TileEstimate *estimate = &explanation->candidates.items[explanation->chosen].estimate;
    const double times[] = {estimate->memory, estimate->compute, estimate->waiting, estimate->time};
    static const char *const names[] = {"memory alone", "arithmetic alone", "waiting", "predicted time"};
    double longest = 0;
    for (size_t i = 0; i < 4; i++) longest = times[i] > longest ? times[i] : longest;
    tile_text_add(page->text, "<svg width=\"660\" height=\"120\" font-size=\"12\" font-family=\"system-ui, sans-serif\">");
    for (unsigned i = 0; i < 4; i++) add_bar(page, names[i], times[i], longest, i);
    tile_text_add(page->text, "</svg>");
}

/* A picture without the head of a file of its own. */
static void add_picture(Page *page, void (*draw)(const TileExplanation *, const TileExplainedWork *, TileText *),
                        const TileExplainedWork *work) {
    TileText svg = {.arena = page->text->arena};
    draw(page->explanation, work, &svg);
    const char *picture = strstr(tile_text_get(&svg), "<svg");
    if (picture) tile_text_add(page->text, picture);
}

static void add_roof(Page *page, const TileExplainedWork *work) {
    const TileExplainedRoof *roof = &work->roof;
    const char *whose = roof->of_model ? "of the model" : "measured here";
    TileText *text = page->text;
    if (roof->bytes_a_second <= 0) {
        tile_text_format(text, "<div>no limits of %s are known here</div>", page->explanation->target);
        return;
    }
    tile_text_format(text, "<div>memory: %.4g GB/s, %s</div>", 1e-9 * roof->bytes_a_second, whose);
    if (roof->flops_a_second > 0)
        tile_text_format(text, "<div>products: %.4g GFLOP/s%s, %s</div>", 1e-9 * roof->flops_a_second,
                         roof->of_model ? "" : ", of f32", whose);
    bool arithmetic = roof->flops_a_second > 0 && work->flops / roof->flops_a_second > work->bytes / roof->bytes_a_second;
    tile_text_format(text, "<div>%s %.4g \302\265s: bound by %s</div>", roof->of_model ? "predicted to take" : "takes at least",
                     1e6 * roof->seconds, arithmetic ? "products" : "memory");
}

static void add_work(Page *page, const TileExplainedWork *work) {
    TileText *text = page->text;
    begin_side(page, "work", "work");
    tile_text_format(text, "<div>%.0f bytes at least: each element of the tensors once, what is updated in place twice</div>",
                     work->bytes);
    if (work->has_flops)
        tile_text_format(text, "<div>%.0f FLOP of products, %.2f for each of these bytes</div>", work->flops,
                         work->bytes > 0 ? work->flops / work->bytes : 0);
    add_roof(page, work);
    tile_text_add(text, "<div>`tilec bench` measures a launch beside the limits of the machine</div></pre>");
    add_picture(page, tile_explain_draw_roof, work);
    add_prediction(page);
    tile_text_add(text, "</section>\n");
}

/* ---- the page ---- */

static void add_head(Page *page) {
    static const char *const sides[][2] = {{"decisions", "decisions"}, {"tile", "tile form"}, {"decided", "schedule"},
                                           {"machine", "machine form"}, {"code", "code"}, {"work", "work"},
                                           {"layouts", "layouts"}};
    TileText *text = page->text;
    tile_text_format(text, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s for %s</title><style>",
                     page->explanation->kernel, page->explanation->target);
    tile_text_add(text, style);
    tile_text_format(text, "</style></head>\n<body><header><h1>%s for %s</h1><nav>", page->explanation->kernel,
                     page->explanation->target);
    for (size_t i = 0; i < sizeof sides / sizeof *sides - !page->explanation->ptx; i++)
        tile_text_format(text, "<button value=\"%s\">%s</button>", sides[i][0], sides[i][1]);
    tile_text_add(text, "</nav><span>a click on a line marks what belongs to it</span></header>\n<main>\n");
}

tile_status tile_explain_page(const TileExplanation *explanation, const TileAssemblyFigures *figures,
                              const char *missing, const TileExplainedWork *work, TileText *page_text) {
    Page page = {explanation, page_text};
    add_head(&page);
    add_sources(&page);
    TILE_TRY(add_report(&page, figures, missing));
    begin_side(&page, "tile", "tile form, before the passes of the target");
    for_lines(&page, explanation->tile_form, add_ir_line, NULL);
    end_side(&page);
    begin_side(&page, "decided", "tile form, with what the passes of the target decided");
    for_lines(&page, explanation->decided_form, add_ir_line, NULL);
    end_side(&page);
    begin_side(&page, "machine", "machine form");
    for_lines(&page, explanation->machine_form, add_ir_line, NULL);
    end_side(&page);
    add_code(&page);
    add_work(&page, work);
    add_layouts(&page);
    tile_text_add(page_text, "</main><script>");
    tile_text_add(page_text, script);
    tile_text_add(page_text, "</script></body></html>\n");
    return TILE_OK;
}
