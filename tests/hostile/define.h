/* How kinds_*.c define kinds. */
#ifndef TILE_TESTS_HOSTILE_DEFINE_H
#define TILE_TESTS_HOSTILE_DEFINE_H

#include "hostile/kinds.h"

#define HOSTILE(what, text, statement)                                                                                 \
    if (number-- == 0) {                                                                                               \
        *label = text;                                                                                                 \
        *expected = what;                                                                                              \
        statement;                                                                                                     \
        return true;                                                                                                   \
    }
#define REFUSE(text, statement) HOSTILE(REFUSES, text, statement)
#define TAKE(text, statement) HOSTILE(TAKES, text, statement)
#define MAY(text, statement) HOSTILE(EITHER, text, statement)

#define REFUSE_NULL REFUSE("NULL", v->pointer = NULL)
#define TAKE_NULL TAKE("NULL", v->pointer = NULL)
/* Of a struct that begins with its own size, `s`. */
#define REFUSE_SIZES                                                                                                   \
    REFUSE("struct_size 0", s->struct_size = 0)                                                                        \
    REFUSE("struct_size 7", s->struct_size = 7) REFUSE("struct_size SIZE_MAX", s->struct_size = SIZE_MAX)

/* `sane` makes v the sane value; `hostile` is a list of REFUSE, TAKE and MAY. */
#define DEFINE_KIND(name, sane, hostile)                                                                               \
    static void sane_##name(Value *v) { sane; }                                                                        \
    static bool hostile_##name(Value *v, int number, const char **label, Expected *expected) {                         \
        (void)v, (void)number, (void)label, (void)expected;                                                            \
        hostile return false;                                                                                          \
    }                                                                                                                  \
    const Kind tile_kind_##name = {#name, sane_##name, hostile_##name};

/* The same with the value as a struct of `type`, a copy of `sane`, in `s`. */
#define DEFINE_STRUCT_KIND(name, type, sane, hostile)                                                                  \
    static type given_##name;                                                                                          \
    static void sane_##name(Value *v) {                                                                                \
        given_##name = sane;                                                                                           \
        v->pointer = &given_##name;                                                                                    \
    }                                                                                                                  \
    static bool hostile_##name(Value *v, int number, const char **label, Expected *expected) {                         \
        type *s = &given_##name;                                                                                       \
        (void)s;                                                                                                       \
        hostile return false;                                                                                          \
    }                                                                                                                  \
    const Kind tile_kind_##name = {#name, sane_##name, hostile_##name};

#endif
