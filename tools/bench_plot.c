/* tilec bench --plot: diagrams as SVG, without any library. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench.h"

enum { WIDTH = 640, HEIGHT = 400, LEFT = 80, RIGHT = 30, TOP = 50, BOTTOM = 60 };

static const char *const colours[TILE_BENCH_SUBJECTS] = {"#0072b2", "#d55e00"};
static const char limit_colour[] = "#777777";

/* A diagram with logarithmic axes in powers of two or ten; `top` is its upper edge on the page. */
typedef struct Diagram {
    TileText *svg;
    double top;
    double x_low, x_high, y_low, y_high;
} Diagram;

static double place_x(const Diagram *d, double x) {
    return LEFT + (log(x) - log(d->x_low)) / (log(d->x_high) - log(d->x_low)) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const Diagram *d, double y) {
    double share = (log(y) - log(d->y_low)) / (log(d->y_high) - log(d->y_low));
    return d->top + TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
}

static void add_label(TileText *svg, double x, double y, const char *anchor, const char *colour, const char *text) {
    tile_text_format(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor, colour);
    tile_text_add_xml(svg, text);
    tile_text_add(svg, "</text>\n");
}

static void add_line(const Diagram *d, double x0, double y0, double x1, double y1, const char *style) {
    tile_text_format(d->svg, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", place_x(d, x0),
                     place_y(d, y0), place_x(d, x1), place_y(d, y1), style);
}

static void add_point(const Diagram *d, double x, double y, const char *colour) {
    tile_text_format(d->svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", place_x(d, x), place_y(d, y),
                     colour);
}

/* Extends the axis to the value, rounded to a power. */
static void include(double value, double base, double *low, double *high) {
    if (!(value > 0)) return;
    double below = pow(base, floor(log(value) / log(base) + 1e-9)),
           above = pow(base, ceil(log(value) / log(base) - 1e-9));
    if (!*low || below < *low) *low = below;
    if (above > *high) *high = above;
    if (*high <= *low) *high = *low * base;
}

static void add_axes(const Diagram *d, double x_base, const char *title, const char *x_name, const char *y_name) {
    const char *grid = "stroke=\"#e0e0e0\"";
    double bottom = d->top + HEIGHT - BOTTOM;
    add_label(d->svg, LEFT, d->top + TOP - 28, "start", "#000000", title);
    for (double x = d->x_low; x <= d->x_high * 1.001; x *= x_base) {
        add_line(d, x, d->y_low, x, d->y_high, grid);
        TileText number = {.arena = d->svg->arena};
        tile_text_format(&number, "%.4g", x);
        add_label(d->svg, place_x(d, x), bottom + 18, "middle", "#000000", tile_text_get(&number));
    }
    for (double y = d->y_low; y <= d->y_high * 1.001; y *= 10) {
        add_line(d, d->x_low, y, d->x_high, y, grid);
        TileText number = {.arena = d->svg->arena};
        tile_text_format(&number, "%.4g", y);
        add_label(d->svg, LEFT - 8, place_y(d, y) + 4, "end", "#000000", tile_text_get(&number));
    }
    add_label(d->svg, (LEFT + WIDTH - RIGHT) / 2.0, bottom + 40, "middle", "#000000", x_name);
    add_label(d->svg, LEFT, d->top + TOP - 10, "start", "#000000", y_name);
}

static void add_legend(const TileBench *bench, const Diagram *d, const char *limit) {
    double x = LEFT + 130;
    for (unsigned i = 0; i < bench->subjects; i++) {
        tile_text_format(d->svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", x, d->top + TOP - 14,
                         colours[i]);
        add_label(d->svg, x + 8, d->top + TOP - 10, "start", colours[i], bench->names[i]);
        x += 30 + 8 * (double)strlen(bench->names[i]);
    }
    add_label(d->svg, WIDTH - RIGHT, d->top + TOP - 10, "end", limit_colour, limit);
}

/* ---- the roofline ---- */

static bool has_flops(const TileBenchResult *result) {
    return result->flops_known == TILE_FLOPS_COUNTED && result->flops > 0 && result->bytes > 0;
}

static bool any_flops(const TileBench *bench) {
    for (size_t s = 0; s < bench->sizes.count; s++)
        for (unsigned i = 0; i < bench->subjects; i++)
            if (has_flops(&bench->sizes.items[s].results[i])) return true;
    return false;
}

/* The roofline measured with one size. */
static void add_roof(const Diagram *d, const TileBenchSize *size) {
    const char *style = "stroke=\"#777777\" stroke-width=\"1.5\"";
    double peak = 1e-9 * size->flop_rate, rate = 1e-9 * size->copy_rate;
    if (peak <= 0 || rate <= 0) return;
    double ridge = fmin(fmax(peak / rate, d->x_low), d->x_high);
    double from = fmax(d->x_low, d->y_low / rate);
    if (from < ridge) add_line(d, from, from * rate, ridge, fmin(ridge * rate, peak), style);
    if (peak / rate < d->x_high) add_line(d, ridge, peak, d->x_high, peak, style);
}

static void draw_roofline(const TileBench *bench, Diagram *d) {
    for (size_t s = 0; s < bench->sizes.count; s++) {
        const TileBenchSize *size = &bench->sizes.items[s];
        if (size->flop_rate > 0) include(1e-9 * size->flop_rate, 10, &d->y_low, &d->y_high);
        if (size->flop_rate > 0 && size->copy_rate > 0)
            include(size->flop_rate / size->copy_rate, 2, &d->x_low, &d->x_high);
        for (unsigned i = 0; i < bench->subjects; i++) {
            const TileBenchResult *result = &size->results[i];
            if (!has_flops(result)) continue;
            include(result->flops / result->bytes, 2, &d->x_low, &d->x_high);
            include(1e-9 * result->flops / result->seconds, 10, &d->y_low, &d->y_high);
        }
    }
    d->x_high *= 2;
    add_axes(d, d->x_high / d->x_low > 4096 ? 16 : 2, "Roofline", "FLOP per byte read and written", "GFLOP/s");
    add_legend(bench, d, "grey: copying and FMA peak");
    for (size_t s = 0; s < bench->sizes.count; s++) {
        const TileBenchSize *size = &bench->sizes.items[s];
        add_roof(d, size);
        for (unsigned i = 0; i < bench->subjects; i++) {
            const TileBenchResult *result = &size->results[i];
            if (!has_flops(result)) continue;
            double x = result->flops / result->bytes, y = 1e-9 * result->flops / result->seconds;
            add_point(d, x, y, colours[i]);
            if (*size->value && i == 0)
                add_label(d->svg, place_x(d, x) + 6, place_y(d, y) - 6, "start", colours[i], size->value);
        }
    }
}

/* ---- sizes ---- */

static double rate_of(const TileBenchResult *result, bool flops) {
    return 1e-9 * (flops ? result->flops : result->bytes) / result->seconds;
}

static double size_of(const TileBenchSize *size) {
    double value = atof(size->value);
    return value > 0 ? value : 1;
}

static double limit_of(const TileBenchSize *size, bool flops) {
    return 1e-9 * (flops ? size->flop_rate : size->copy_rate);
}

static void draw_sizes(const TileBench *bench, Diagram *d) {
    bool flops = any_flops(bench);
    for (size_t s = 0; s < bench->sizes.count; s++) {
        const TileBenchSize *size = &bench->sizes.items[s];
        include(size_of(size), 2, &d->x_low, &d->x_high);
        if (limit_of(size, flops) > 0) include(limit_of(size, flops), 10, &d->y_low, &d->y_high);
        for (unsigned i = 0; i < bench->subjects; i++)
            if (rate_of(&size->results[i], flops) > 0)
                include(rate_of(&size->results[i], flops), 10, &d->y_low, &d->y_high);
    }
    if (d->y_high <= 0) d->y_low = 1, d->y_high = 10;
    add_axes(d, d->x_high / d->x_low > 4096 ? 16 : 2, bench->swept ? "Sizes" : "Traffic",
             bench->swept ? bench->swept : "one size", flops ? "GFLOP/s" : "GB/s");
    add_legend(bench, d, flops ? "grey: FMA peak" : "grey: copying");
    for (size_t s = 0; s < bench->sizes.count; s++) {
        const TileBenchSize *size = &bench->sizes.items[s], *next = s + 1 < bench->sizes.count ? size + 1 : NULL;
        double limit = limit_of(size, flops);
        if (limit > 0) add_point(d, size_of(size), limit, limit_colour);
        if (limit > 0 && next && limit_of(next, flops) > 0)
            add_line(d, size_of(size), limit, size_of(next), limit_of(next, flops),
                     "stroke=\"#777777\" stroke-width=\"1.5\"");
        for (unsigned i = 0; i < bench->subjects; i++) {
            double rate = rate_of(&size->results[i], flops), then = next ? rate_of(&next->results[i], flops) : 0;
            TileText style = {.arena = d->svg->arena};
            tile_text_format(&style, "stroke=\"%s\" stroke-width=\"2\"", colours[i]);
            if (rate > 0) add_point(d, size_of(size), rate, colours[i]);
            if (rate > 0 && then > 0) add_line(d, size_of(size), rate, size_of(next), then, tile_text_get(&style));
        }
    }
}

void tile_bench_draw(const TileBench *bench, TileText *svg) {
    bool roofline = any_flops(bench), sizes = bench->sizes.count > 1 || !roofline;
    int height = HEIGHT * (roofline + sizes);
    tile_text_format(svg,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                     "font-family=\"sans-serif\" font-size=\"12\">\n<title>",
                     WIDTH, height, WIDTH, height);
    tile_text_add_xml(svg, bench->kernels[0]);
    tile_text_format(svg, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH, height);
    Diagram first = {.svg = svg}, second = {.svg = svg, .top = roofline ? HEIGHT : 0};
    if (roofline) draw_roofline(bench, &first);
    if (sizes) draw_sizes(bench, &second);
    tile_text_add(svg, "</svg>\n");
}
