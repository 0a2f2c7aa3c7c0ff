#include "generate.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

enum { MAX_NAMES = 12 };

typedef struct Generator {
    const Choices *choices;
    size_t next;
    char *text;
    size_t size, length;
    int depth;     /* of expressions that may still nest */
    int names;     /* tiles t0 .. of f32[BM, BN] that are in scope */
    bool has_temp; /* the tensor z, written by an earlier grid, may be read */
} Generator;

static unsigned choose(Generator *g, unsigned count) {
    unsigned byte = g->next < g->choices->count ? g->choices->items[g->next] : 0;
    g->next++;
    return byte % count;
}

static void put(Generator *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(Generator *g, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int written = vsnprintf(g->text + g->length, g->size - g->length, format, list);
    va_end(list);
    if (written > 0) g->length += (size_t)written;
    if (g->length >= g->size) g->length = g->size - 1;
}

static void float_tile(Generator *g);
static void integer_tile(Generator *g);

static const char *literal(Generator *g) {
    static const char *const literals[] = {"1.0", "0.0", "-0.5", "3.0", "1e-3", "-2.25", "100.0", "1e30"};
    return literals[choose(g, 8)];
}

static void between(Generator *g, void (*part)(Generator *), const char *operation) {
    put(g, "(");
    part(g);
    put(g, " %s ", operation);
    part(g);
    put(g, ")");
}

static void call(Generator *g, const char *name, void (*part)(Generator *), unsigned operands) {
    put(g, "%s(", name);
    for (unsigned i = 0; i < operands; i++) {
        if (i) put(g, ", ");
        part(g);
    }
    put(g, ")");
}

static void bool_tile(Generator *g) {
    static const char *const comparisons[] = {"<", "<=", "==", "!=", ">", ">="};
    if (g->depth <= 0) {
        put(g, "(x[m, n] > 0)");
        return;
    }
    g->depth--;
    switch (choose(g, 6)) {
    case 0: between(g, float_tile, comparisons[choose(g, 6)]); break;
    case 1: between(g, integer_tile, comparisons[choose(g, 6)]); break;
    case 2: between(g, bool_tile, "&&"); break;
    case 3: between(g, bool_tile, "||"); break;
    case 4: call(g, "isnan", float_tile, 1); break;
    default:
        put(g, "(!");
        bool_tile(g);
        put(g, ")");
    }
    g->depth++;
}

static void choice_of(Generator *g, void (*part)(Generator *)) {
    put(g, "where(");
    bool_tile(g);
    put(g, ", ");
    part(g);
    put(g, ", ");
    part(g);
    put(g, ")");
}

static void integer_leaf(Generator *g) {
    switch (choose(g, 4)) {
    case 0: put(g, "v[m, n]"); break;
    case 1: put(g, "full[BM, BN](i32(%u))", choose(g, 40)); break;
    case 2: put(g, "(v[m, n + %u] else %u)", choose(g, 5), choose(g, 3)); break;
    default: put(g, "(v[m, n] + i32(n.idx)[_, :])");
    }
}

static void integer_tile(Generator *g) {
    static const char *const operations[] = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
    if (g->depth <= 0) {
        integer_leaf(g);
        return;
    }
    g->depth--;
    switch (choose(g, 6)) {
    case 0: integer_leaf(g); break;
    case 1: between(g, integer_tile, operations[choose(g, 10)]); break;
    case 2: call(g, "i32", float_tile, 1); break;
    case 3: choice_of(g, integer_tile); break;
    case 4: call(g, choose(g, 2) ? "min" : "max", integer_tile, 2); break;
    default: {
        static const char *const narrow[] = {"i8", "u8", "i16", "u16", "i64", "u32"};
        put(g, "i32(%s(", narrow[choose(g, 6)]);
        integer_tile(g);
        put(g, "))");
    }
    }
    g->depth++;
}

static void float_leaf(Generator *g) {
    switch (choose(g, 18)) {
    case 0: put(g, "x[m, n]"); break;
    case 1: put(g, "full[BM, BN](%s)", literal(g)); break;
    case 2: put(g, "f32(h[m, n])"); break;
    case 3: put(g, "(b[n][_, :] + zeros[BM, BN](f32))"); break;
    case 4: put(g, "f32(v[m, n])"); break;
    case 5: put(g, "(x[m, n %s %u] else %s)", choose(g, 2) ? "-" : "+", choose(g, 9), literal(g)); break;
    case 6: put(g, "(x[m, n * %u] else %s)", 2 + choose(g, 2), literal(g)); break;
    case 7: put(g, "(x[m + %u, n] else 0)", choose(g, 3)); break;
    case 8: put(g, "(gather(x, m.idx[:, _], (ix[n] else 0)[_, :]) else %s)", literal(g)); break;
    case 9: put(g, "(c[%u, m, n] else %s)", choose(g, 5), literal(g)); break;
    case 10: put(g, "(c[m.start %% 5, m, n + %u] else %s)", choose(g, 3), literal(g)); break;
    case 11: put(g, "sum(c[span(0, 4), m, n], axis = 0)"); break;
    case 12: put(g, "(gather(c, v[m, n], m.idx[:, _], (ix[n] else 0)[_, :]) else %s)", literal(g)); break;
    case 13: put(g, "(x[m, n] * alpha + o[])"); break;
    case 14: put(g, "(x[m, n * step + %u] else %s)", choose(g, 9), literal(g)); break;
    case 15: put(g, "(x[%u - step * m, n] else %s)", choose(g, 9), literal(g)); break;
    case 16:
        if (g->has_temp)
            put(g, "z[m, n]");
        else
            put(g, "rand(7, m.idx[:, _] * 1000 + n.idx[_, :])");
        break;
    default:
        if (g->names)
            put(g, "t%u", choose(g, (unsigned)g->names));
        else
            put(g, "x[m, n]");
    }
}

/* By a function of the kernel's, which does not commute. */
static void fold(Generator *g) {
    bool columns = choose(g, 2), scan = choose(g, 2);
    put(g, scan ? "scan(" : "(reduce(");
    float_tile(g);
    put(g, ", %d, join_sums, init = %s)", columns ? 0 : 1, literal(g));
    if (!scan) put(g, columns ? "[_, :] + zeros[BM, BN](f32))" : "[:, _] + zeros[BM, BN](f32))");
}

static void reduction(Generator *g) {
    static const char *const reductions[] = {"sum", "max", "min"};
    bool columns = choose(g, 2), keep = choose(g, 3) == 1;
    put(g, "(%s(", reductions[choose(g, 3)]);
    if (keep) put(g, "keep(");
    float_tile(g);
    if (keep) {
        put(g, ", ");
        bool_tile(g);
        put(g, ")");
    }
    put(g, columns ? ", axis = 0)[_, :]" : ", axis = 1)[:, _]");
    put(g, " + zeros[BM, BN](f32))");
}

static void float_tile(Generator *g) {
    static const char *const operations[] = {"+", "-", "*", "/"};
    static const char *const functions[] = {"abs", "exp", "sqrt",  "tanh", "floor", "sigmoid", "log",  "round",
                                            "sin", "erf", "trunc", "ceil", "expm1", "square",  "rsqrt"};
    static const char *const narrow[] = {"f16", "bf16", "f8e4m3", "f8e5m2", "f64"};
    if (g->depth <= 0) {
        float_leaf(g);
        return;
    }
    g->depth--;
    switch (choose(g, 14)) {
    case 0: float_leaf(g); break;
    case 1:
    case 2: between(g, float_tile, operations[choose(g, 4)]); break;
    case 3: call(g, functions[choose(g, 15)], float_tile, 1); break;
    case 4: call(g, choose(g, 2) ? "min" : "max", float_tile, 2); break;
    case 5: choice_of(g, float_tile); break;
    case 6: reduction(g); break;
    case 7:
        put(g, "f32(%s(", narrow[choose(g, 5)]);
        float_tile(g);
        put(g, "))");
        break;
    case 8: call(g, "fma", float_tile, 3); break;
    case 9: fold(g); break;
    case 10: call(g, "halve", float_tile, 1); break;
    case 11: call(g, "square", float_tile, 1); break;
    case 12:
        put(g, "blend(");
        float_tile(g);
        put(g, ", %s(", narrow[choose(g, 5)]);
        float_tile(g);
        put(g, "))");
        break;
    default: call(g, "f32", integer_tile, 1);
    }
    g->depth++;
}

/* ---- statements ---- */

static void expression(Generator *g, int depth) {
    g->depth = depth;
    float_tile(g);
}

static void product(Generator *g) {
    put(g, "        var t%d = zeros[BM, BN](f32)\n", g->names);
    put(g, "        for k in tiles(K, BK) { t%d = dot(a[m, k], %s, t%d) }\n", g->names,
        choose(g, 2) ? "w[k, n]" : "w[k, n] * 0.7", g->names);
    g->names++;
}

static void loop(Generator *g) {
    int name = g->names;
    put(g, "        var t%d = x[m, n]\n", name);
    put(g, "        for i in 0..%u {\n            t%d = t%d * 0.7 + ", choose(g, 4), name, name);
    expression(g, 2);
    put(g, "\n        }\n");
    g->names++;
}

static void branch(Generator *g) {
    int name = g->names;
    put(g, "        var t%d = x[m, n]\n        if %s {\n            t%d = ", name,
        choose(g, 2) ? "N > 40" : "m.start % 2 == 0", name);
    expression(g, 2);
    put(g, "\n        }\n");
    g->names++;
}

static void turns(Generator *g) {
    int name = g->names;
    put(g,
        "        var t%d = x[m, n]\n        var j%d = 0\n        while j%d < N %% 4 {\n            t%d = t%d * 0.7 + ",
        name, name, name, name, name);
    expression(g, 2);
    put(g, "\n            j%d = j%d + 1\n        }\n", name, name);
    g->names++;
}

static void pair(Generator *g) {
    int name = g->names;
    put(g, "        let (t%d, t%d) = split(join(", name, name + 1);
    expression(g, 2);
    put(g, ", ");
    expression(g, 2);
    put(g, "))\n");
    g->names += 2;
}

static void row(Generator *g) {
    put(g, "        let t%d = x[m, n] + sum(cat((x[m, n] + ", g->names);
    expression(g, 2);
    put(g, " else %s), (b[n][_, :] + ", literal(g));
    expression(g, 2);
    put(g, " else 0), axis = 1), axis = 1)[:, _]\n");
    g->names++;
}

static void statements(Generator *g) {
    for (unsigned count = choose(g, 4); count && g->names + 1 < MAX_NAMES; count--) {
        switch (choose(g, 7)) {
        case 0:
            put(g, "        let t%d = ", g->names);
            expression(g, 3);
            put(g, "\n");
            g->names++;
            break;
        case 1: product(g); break;
        case 2: loop(g); break;
        case 3: turns(g); break;
        case 4: pair(g); break;
        case 5: row(g); break;
        default: branch(g);
        }
    }
}

/* A grid over rows, which goes through each row tile by tile. */
static void sum_grid(Generator *g) {
    static const char *const merge[] = {"t = t + sum(", "t = max(t, max(", "t = min(t, min("};
    unsigned how = choose(g, 3);
    put(g, "    grid m in tiles(M, BM) {\n        var t = zeros[BM](f32)\n        for n in tiles(N, BN) { %s",
        merge[how]);
    g->names = 0;
    expression(g, 3);
    put(g, ", axis = 1)%s }\n        s[m] = t\n    }\n", how ? ")" : "");
}

static void tile_grid(Generator *g, const char *output) {
    put(g, "    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {\n");
    g->names = 0;
    statements(g);
    put(g, "        %s[m, n] = ", output);
    expression(g, 4);
    put(g, "\n    }\n");
}

static const char functions[] = "fn square[T: float](x: T) -> T { return x * x }\n"
                                "fn blend[A: float, B: float](x: A, y: B) -> A { return x * 0.5 + A(y) }\n"
                                "fn join_sums(a: f32, b: f32) -> f32 { return a + b * 0.5 }\n"
                                "fn halve(v: f32) -> f32 {\n    var (r, i) = (v, 0)\n"
                                "    while abs(r) > 1 && i < 20 {\n        r = r * 0.5\n        i = i + 1\n    }\n"
                                "    return r\n}\n\n";

size_t generate_kernel(const Choices *choices, char *text, size_t size, Sizes *sizes) {
    static const int64_t rows[] = {1, 3, 4, 8}, columns[] = {16, 5, 64, 100, 33}, depths[] = {8, 5, 33},
                         warps[] = {0, 4, 2};
    Generator g = {.choices = choices, .text = text, .size = size};
    int64_t bm = rows[choose(&g, 4)], bn = columns[choose(&g, 5)], bk = depths[choose(&g, 3)];
    *sizes = (Sizes){1 + choose(&g, 10), 1 + choose(&g, 140), choose(&g, 40), 2 + choose(&g, 3)};
    const char *narrow = choose(&g, 2) ? "bf16" : "f16";
    bool staged = choose(&g, 2) == 1;
    put(&g, "%s", functions);
    put(&g,
        "kernel k(x: in f32[M, N], h: in %s[M, N], v: in i32[M, N], b: in f32[N], a: in f32[M, K], w: in f32[K, N],\n"
        "         ix: in i64[N], c: in f32[L, M, N], o: in f32[], y: out f32[M, N], q: out i32[M, N], s: out f32[M],\n"
        "         alpha: f32, step: i64)\n"
        "    tune BM in {%lld}, BN in {%lld}, BK in {%lld}, warps in {%lld}\n{\n",
        narrow, (long long)bm, (long long)bn, (long long)bk, (long long)warps[choose(&g, 3)]);
    if (staged) {
        put(&g, "    temp z: f32[M, N]\n");
        tile_grid(&g, "z");
        g.has_temp = true;
    }
    tile_grid(&g, "y");
    put(&g, "    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {\n        q[m, n] = ");
    g.names = 0;
    g.depth = 3;
    integer_tile(&g);
    put(&g, "\n    }\n");
    sum_grid(&g);
    put(&g, "}\n");
    return g.next;
}
