/* tilec new: a kernel with its test, to begin from. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "parser/syntax/lex.h"
#include "tools/replace.h"
#include "tools/session.h"

/* `$` stands for the kernel's name. */
static const char text[] =
    "/// Rows of a matrix, scaled and shifted.\n"
    "\n"
    "/// y = x * scale + shift, a scale and a shift for each column.\n"
    "kernel $[T: f16 | bf16 | f32](x: in T[M, N], scale: in f32[N], shift: in f32[N], y: out T[M, N])\n"
    "    tune BM in {1, 4}, BN in {256, 1024}\n"
    "{\n"
    "    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {\n"
    "        let v = f32(x[m, n])\n"
    "        y[m, n] = T(v * scale[n][_, :] + shift[n][_, :])\n"
    "    }\n"
    "}\n"
    "\n"
    "test \"$: each column has its own scale and shift\" {\n"
    "    let x = randn(f32, 5, 300)\n"
    "    let scale = arange(f32, 300)\n"
    "    let y = run $(x = x, scale = scale, shift = ones(f32, 300))\n"
    "    assert(all(abs(y - (x * scale[_, :] + 1)) <= 1e-3))\n"
    "}\n"
    "\n"
    "test \"$: a single element, in another type\" {\n"
    "    let y = run $(x = ones(bf16, 1, 1), scale = ones(f32, 1), shift = ones(f32, 1))\n"
    "    assert(all(y == 2))\n"
    "}\n";

static bool is_keyword(const char *name) {
#define SAME(id, word)                                                                                                 \
    if (strcmp(name, word) == 0) return true;
    TILE_KEYWORD_LIST(SAME)
#undef SAME
    return false;
}

/* The kernel's name: that of the file without folder and ending, if a kernel can have it. NULL if it cannot. */
static const char *kernel_name(TileArena *arena, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = strlen(base);
    if (length > 5 && strcmp(base + length - 5, ".tile") == 0) length -= 5;
    char *name = tile_arena_string(arena, base, length);
    for (char *c = name; *c; c++)
        if (*c == '-' || *c == '.') *c = '_';
    bool good = isalpha((unsigned char)*name) && !is_keyword(name);
    for (const char *c = name; *c; c++) good = good && (isalnum((unsigned char)*c) || *c == '_');
    return good ? name : NULL;
}

static const char *with_ending(TileArena *arena, const char *path) {
    size_t length = strlen(path);
    bool ends = length > 5 && strcmp(path + length - 5, ".tile") == 0;
    return ends ? path : tile_arena_format(arena, "%s.tile", path);
}

int tile_command_new(TileSession *session, char **words, int count) {
    struct stat status;
    TileText out = {.arena = session->arena}, error = {.arena = session->arena};
    for (int i = 0; i < count; i++)
        if (*words[i] == '-') return tile_session_unknown(session, words[i]);
    if (count != 1) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "one name is needed; see `tilec help new`");
    const char *path = with_ending(session->arena, words[0]), *name = kernel_name(session->arena, path);
    if (!name) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no kernel can be named after '%s'", path);
    if (lstat(path, &status) == 0) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "%s is there already", path);
    for (const char *c = text; *c; c++)
        if (*c == '$')
            tile_text_add(&out, name);
        else
            tile_text_add_char(&out, *c);
    tile_status written = tile_file_write(path, tile_text_get(&out), out.length, &error);
    if (written != TILE_OK) return tile_session_fail(session, written, "%s", tile_text_get(&error));
    if (!session->quiet)
        printf("%s\n  tilec test %s\n  tilec run %s x=rand:f32[8,1000] scale=ones:f32[1000] shift=zeros:f32[1000] y=@\n", path,
               path, path);
    return tile_session_finish(session);
}
