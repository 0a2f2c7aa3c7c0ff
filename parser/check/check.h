/* Inside of the checker. It walks one instance of a kernel (generics bound) and emits tile form as it goes:
 * every name has a meaning, every value a type, a shape and the atoms of its validity. Functions are checked and
 * emitted where they are called, so that ranges, tensors and validity pass through them whole.
 *
 *   scope.c       names, variables, frames          check_call.c       functions and generics
 *   validity.c    atoms, sets of them, fills        check_builtin*.c   built-in functions
 *   emit.c        sums and values as ops            check_statement.c  statements; check_flow.c: branches, loops
 *   check_*.c     what the files' names say         check_kernel.c     parameters, clauses, the host part
 */
#ifndef TILE_PARSER_CHECK_CHECK_H
#define TILE_PARSER_CHECK_CHECK_H

#include "lang/ir/build.h"
#include "parser/check/program.h"
#include "lang/affine/sum.h"

typedef struct TileChecker TileChecker;
typedef struct TileRange TileRange;
typedef struct TileTensor TileTensor;
typedef struct TileBuiltin TileBuiltin;
typedef struct TileTestState TileTestState;

/* ---- validity ---- */

typedef enum TileAtomKind {
    TILE_ATOM_INTERVAL,  /* lanes lo .. hi of one axis */
    TILE_ATOM_CONDITION, /* the whole value, where 0 <= index < dim, or where `of` is not empty or true */
    TILE_ATOM_MASK,      /* lanes where a bool tile is true */
} TileAtomKind;

/* One source of invalidity, with a birth: a variable may only take on atoms older than itself. */
typedef struct TileAtom TileAtom;
struct TileAtom {
    TileAtomKind kind;
    uint32_t birth;
    const TileRange *root;             /* INTERVAL: the range as it was bound; with first, step and dim the identity */
    const TileSum *first, *step, *dim; /* dim NULL: the range's own limit */
    const TileSum *lo, *hi, *size;     /* INTERVAL; lo or hi NULL: no bound on that side */
    const TileSum *index;              /* CONDITION, with dim */
    const struct TileValidity *guard;  /* CONDITION, MASK: where the index itself is valid */
    TileAtom *of;                      /* CONDITION: an interval or mask over axes of extent 1 that were stretched */
    TileValue *mask;                   /* MASK */
    TileValue *key;                    /* MASK: the index tile that it guards, or the mask itself */
    bool holds_first;                  /* INTERVAL: lane 0 is inside, whatever the values are */
    TileSpan span;
    const TileSum *limit; /* INTERVAL without dim: of the range */
    const char *words;    /* MASK without dim: what is not valid */
    size_t cache;         /* the emitter's */
};

typedef struct TileValidEntry {
    TileAtom *atom;
    int8_t axes[TILE_MAX_TILE_RANK]; /* INTERVAL: axes[0]; MASK: one for each axis of the mask, -1 where it is 1 */
    TileSpan where;                  /* the access that brought it */
} TileValidEntry;

/* Valid where all atoms hold. Never changed once made; NULL is valid everywhere. */
typedef struct TileValidity {
    unsigned count;
    TileValidEntry entries[];
} TileValidity;

/* ---- meanings ---- */

typedef enum TileMeaningKind {
    TILE_MEANING_ERROR, /* reported already: whatever uses it stays silent */
    TILE_MEANING_NOTHING,
    TILE_MEANING_INTEGER, /* a literal without a type */
    TILE_MEANING_NUMBER,
    TILE_MEANING_CHOICE, /* between literals, which have no type yet: a condition and two */
    TILE_MEANING_VALUE,  /* a scalar or tile */
    TILE_MEANING_RANGE,
    TILE_MEANING_TENSOR,
    TILE_MEANING_TUPLE,
    TILE_MEANING_TYPE,
    TILE_MEANING_FUNCTION,
    TILE_MEANING_BUILTIN,
    TILE_MEANING_MODULE,
    TILE_MEANING_TEXT,
    TILE_MEANING_DOTS,   /* a..b */
    TILE_MEANING_SPREAD, /* the extra arguments of a function generic */
} TileMeaningKind;

typedef struct TileMeaning TileMeaning;
struct TileMeaning {
    uint8_t kind;
    uint8_t scalar; /* VALUE, TYPE: TileScalar */
    uint8_t rank;
    bool constant; /* VALUE of rank 0: `bits` is known at compile time */
    bool positive_literal;
    uint8_t open;   /* literals, VALUE of rank 0: TileOpen, of what it was made of */
    uint32_t count; /* TUPLE, SPREAD; FUNCTION: how many generics are given */
    const TileSum *extent[TILE_MAX_TILE_RANK];
    TileValue *value;          /* VALUE; NULL while only a sum or constant */
    const TileSum *sum;        /* VALUE: i64 scalars always have one */
    uint64_t bits;             /* VALUE: constant */
    const TileValidity *valid; /* VALUE */
    __int128 integer;          /* INTEGER */
    double number;             /* NUMBER */
    union {
        TileRange *range;
        TileTensor *tensor; /* TENSOR; VALUE in a test: the tensor that it is the whole of, or NULL */
        TileMeaning *items; /* TUPLE, CHOICE (three), DOTS (two), SPREAD */
        const TileBuiltin *builtin;
        const char *text;
        struct {
            const TileItem *item;     /* FUNCTION */
            const TileAst *ast;       /* FUNCTION, MODULE: the file that it stands in */
            const TileMeaning *given; /* FUNCTION: its first generics, as in `scaled[3]` */
        };
    };
};

struct TileRange {
    const char *name;
    const TileSum *first, *size, *step; /* lane l has the index first + l * step */
    const TileSum *lowest, *highest;    /* bounds of the valid lanes' indices, inclusive; NULL where unknown */
    const TileSum *end;                 /* NULL for strided ranges */
    const TileRange *root;
    TileAtom *lanes; /* NULL: all valid */
    uint32_t birth;
    TileSpan span;
};

struct TileTensor {
    const char *name;
    TileValue *value;
    TileScalar scalar;
    TileAccess access;
    unsigned rank;
    const TileSum *dims[TILE_MAX_TENSOR_RANK];
    TileSpan span;
    uint32_t number; /* in the plan of a test */
};

typedef struct TileVar {
    const char *name;
    TileMeaning now; /* `valid` holds what the variable may lack at any time */
    uint32_t birth;
    bool undecided;   /* a side of a branch that is not taken leaves it otherwise: what it then says is checked too */
    uint32_t carried; /* of the loop that was looked at last, where it carries the variable */
    TileSpan span;
} TileVar;

/* ---- scopes ---- */

typedef struct TileBound {
    const char *name;
    TileMeaning meaning;
    TileVar *var; /* or NULL */
    TileSpan span;
    bool fixed;      /* a parameter, dimension or tune name: may not be bound again further in */
    uint32_t hidden; /* the place, plus 1, of the binding of the same name further out */
} TileBound;

typedef struct TileLoopFrame {
    struct TileLoopFrame *parent;
    TileVar *skip;  /* the rest of this turn; NULL where nothing leaves the body */
    TileVar *broke; /* the rest of the loop; NULL without `break` */
    const TileStatement *statement;
    uint32_t birth; /* variables that are older are carried from turn to turn */
} TileLoopFrame;

/* A kernel or a call of a function. */
typedef struct TileFrame {
    struct TileFrame *parent;
    const TileItem *item;
    const TileAst *ast;
    size_t scope_base;
    TileSpan call;
    bool binding;      /* arguments are being bound: what is wrong with them is wrong in the caller */
    bool lifted;       /* scalar parameters stand for tiles */
    TileMeaning shape; /* lifted: the arguments' common shape */
    bool has_flags;    /* some `return` does not stand last */
    TileVar *returned; /* with has_flags */
    TileVar **results; /* with has_flags: one, or one for each part of a tuple */
    unsigned result_count;
    TileMeaning value; /* without: what `return` gave */
    bool has_value;
    uint8_t left; /* TileOpen of the conditions under which the rest of the body is not reached */
    TileTypeExpr *result_type;
    TileLoopFrame *loop;
} TileFrame;

typedef struct TileScopeMark {
    size_t bounds, vars, atoms, cache, facts, scope_start;
} TileScopeMark;

typedef struct TileCacheEntry {
    const void *key;
    TileValue *value;
} TileCacheEntry;
typedef TILE_LIST(TileCacheEntry) TileCache;

typedef struct TileConstant {
    const TileItem *item;
    TileMeaning value;
} TileConstant;

struct TileChecker {
    TileContext *context;
    TileDiagnostics *diagnostics;
    TileArena *arena;
    TileInterner *names;
    const TileAst *ast; /* of the kernel */
    TileModule *module;
    TileFunc *func;
    TileBuilder builder;
    TileSpan where; /* of what is being emitted */
    uint32_t where_begin, where_file;
    TileSumTable sums;
    TILE_LIST(TileBound) bounds;
    TileMap innermost; /* by name: the place, plus 1, of the innermost binding */
    TILE_LIST(TileVar *) vars;
    TILE_LIST(TileAtom *) atoms;
    TileCache cache;
    TILE_LIST(TileConstant) constants; /* evaluated so far */
    TileFrame *frame;
    size_t scope_start;     /* first binding of the innermost scope */
    const char *fill_word;  /* what `else` would be proposed with */
    uint32_t clock;         /* births */
    uint32_t carried_stamp; /* loops looked at */
    size_t grid_facts;      /* of the facts known: those that hold in the whole grid */

    unsigned depth;   /* of calls */
    unsigned regions; /* branches and loops that are open */
    unsigned masked;  /* branches around that a tile decides, so that both sides run */
    unsigned untaken; /* sides of branches around that a constant decides, and that are not taken */
    size_t op_count;
    uint64_t points;     /* of tune clauses, that were tried */
    unsigned rests;      /* statements around that may have left the sequence: what follows runs where they did not */
    bool has_large_tile; /* and that was said */
    bool in_grid;
    bool in_combiner;                  /* ops go to the combiner of a fold or scan, which has no control flow */
    TileOp *grid;                      /* that is being checked */
    bool representative;               /* a generic check: types and values that are not bound have stand-ins */
    bool second;                       /* the other stand-ins: another type, the opposite of each bool */
    TILE_LIST(const char *) stand_ins; /* the names that have one */
    unsigned type_stand_ins;           /* of them, types */
    bool stands_alone;                 /* a function is checked by itself */
    bool unreal;                       /* what stands in does not satisfy what the kernel requires */
    bool incomplete;                   /* something was left out until more is known */
    uint8_t met;                       /* TileOpen of the names read in the expression at hand */
    uint8_t doubt;                     /* TileOpen of the conditions of the branches around */
    uint8_t about;                     /* TileOpen of what the next message is about */
    unsigned open_turns;               /* loops around that are unrolled by a number that may be another one */
    bool unrolled;                     /* there was such a loop */
    unsigned grid_count;
    TileTestState *test; /* NULL outside of tests */
    TileSumNeeds needs;  /* of the grid being checked */
    const TileLowerOptions *options;
    uint32_t *file_numbers; /* file of the diagnostics to file of the context */
};

enum { TILE_MAX_TILE_EXTENT = 1 << 24 };
enum { TILE_MAX_CALL_DEPTH = 64, TILE_MAX_TUNE_NAMES = 16 };

/* ---- scope.c ---- */

TileScopeMark tile_scope_open(TileChecker *c);
void tile_scope_close(TileChecker *c, TileScopeMark mark);
/* Of a scope whose ops stand in the block around it: what was emitted stays known. */
void tile_scope_close_names(TileChecker *c, TileScopeMark mark);
/* Binds a name, unasked. */
void tile_scope_push(TileChecker *c, TileBound bound);
/* Forgets all bindings but the first `count`. */
void tile_scope_cut(TileChecker *c, size_t count);
/* Binds a name in the innermost scope, or reports why not. */
void tile_scope_bind(TileChecker *c, TileNameRef name, TileMeaning meaning, bool fixed);
TileVar *tile_scope_declare(TileChecker *c, TileNameRef name, TileMeaning value);
/* A variable of the compiler's own, without a name in the text. */
TileVar *tile_scope_flag(TileChecker *c, const char *name, TileMeaning value);
TileBound *tile_scope_find(TileChecker *c, const char *name);
TileMeaning tile_scope_meaning(TileChecker *c, const char *name, TileSpan span);
const TileItem *tile_find_item(const TileAst *ast, const char *name, bool imports, const TileAst **where);
/* Hides what holds in loops only: ranges loaded in them may be loaded before them. The result goes to the other. */
size_t tile_facts_hide(TileChecker *c);
void tile_facts_restore(TileChecker *c, size_t hidden);
/* A `const` of the file, or one of its imports that can be an extent: other names may be those of dimensions. */
bool tile_is_constant(TileChecker *c, const TileAst *ast, const char *name);
/* Assigns, checking that the variable may take on the value's atoms. */
void tile_var_assign(TileChecker *c, TileVar *var, TileMeaning value, TileSpan span);
uint32_t tile_now(TileChecker *c);

/* ---- reporting ---- */

static inline TileMeaning tile_error_meaning(void) { return (TileMeaning){.kind = TILE_MEANING_ERROR}; }
static inline TileMeaning tile_nothing(void) { return (TileMeaning){.kind = TILE_MEANING_NOTHING}; }
static inline bool tile_is_error(const TileMeaning *m) { return m->kind == TILE_MEANING_ERROR; }
/* Reports and gives the error meaning. */
#define tile_fail(c, code, span, ...)                                                                                  \
    (tile_report((c), tile_diagnose((c)->diagnostics, TILE_DIAGNOSTIC_##code, (span), ##__VA_ARGS__)),                 \
     tile_error_meaning())
/* Adds the notes that say by which calls the place was reached. */
TileDiagnostic *tile_report(TileChecker *c, TileDiagnostic *diagnostic);
/* check_values.c: the names in a condition whose values are known, "D = 7, G = 4", or ""; and a note that says so. */
const char *tile_known_values(TileChecker *c, const TileExpr *expr);
/* Does the condition say something about the text, and not about the stand-ins of a generic check? */
bool tile_is_chosen(TileChecker *c, const TileExpr *expr);

/* ---- stand_in.c ---- */

/* The value comes from what is open so. A number is then one that has no literal's rights: extents made of it agree
 * with no other. */
void tile_open_meaning(TileChecker *c, TileMeaning *m, unsigned open);
unsigned tile_meaning_open(const TileMeaning *m);
/* What the next message is about. */
void tile_about_sum(TileChecker *c, const TileSum *sum);
/* That it is no constant. */
void tile_about_unknown(TileChecker *c, const TileSum *sum);
void tile_about_constant(TileChecker *c, const TileMeaning *m);
void tile_about_atom(TileChecker *c, const TileAtom *atom);
bool tile_is_open_atom(const TileAtom *atom);
void tile_about_shapes(TileChecker *c, const TileMeaning *a, const TileMeaning *b);
/* The entry that a message about this set is best about: one that holds whatever is chosen. NULL for an empty set. */
const TileValidEntry *tile_settled_entry(const TileValidity *valid);
/* TileOpen of the conditions that decided that this place is reached. */
unsigned tile_doubt(const TileChecker *c);
/* Takes an error back that might not be there for what will be chosen. */
bool tile_leave_open(TileChecker *c, const TileDiagnostic *d);

void tile_note_values(TileChecker *c, TileDiagnostic *d, const TileExpr *expr);
/* A note that says which instance of the kernel this is, where it is one of several. */
void tile_note_instance(TileChecker *c, TileDiagnostic *d, const TileItem *kernel);
/* Reports that a call of `name` has `given` arguments, where `least` to `most` are taken. */
TileDiagnostic *tile_report_count(TileChecker *c, TileSpan span, const char *name, unsigned least, unsigned most,
                                  unsigned given);
/* "f32[BM, BN]", "a range of BM", .. for messages. */
const char *tile_meaning_words(TileChecker *c, const TileMeaning *meaning);
const char *tile_sum_words(TileChecker *c, const TileSum *sum);
const char *tile_span_text(TileChecker *c, TileSpan span);
/* "1 entry", "2 entries". */
const char *tile_count_words(TileChecker *c, size_t count, const char *one, const char *more);

/* Is a name assigned to that nothing declares? Reports it once: what uses it later stays silent. */
bool tile_check_undeclared(TileChecker *c, const TileExpr *target);
/* The name in scope, or of the file, that is written most like this one. */
void tile_propose_visible(TileChecker *c, TileDiagnostic *d, const char *name, TileSpan span);

/* ---- propose.c: edits ---- */

/* The candidate that is written most like `name`. */
typedef struct TileNearest {
    const char *name, *best; /* best: NULL while none is near */
    unsigned distance;
} TileNearest;
TileNearest tile_nearest(const char *name);
void tile_nearest_try(TileNearest *nearest, const char *candidate); /* which may be NULL */
void tile_nearest_builtin(TileNearest *nearest); /* tries the built-in functions with the same first letter */
void tile_propose_nearest(TileChecker *c, TileDiagnostic *d, TileSpan span, const TileNearest *nearest);
/* The clause `static NAME`, where the kernel's dimension or parameter of this name is not constant yet. */
void tile_propose_static(TileChecker *c, TileDiagnostic *d, const char *name);
/* What would make an integer known at compile time: `static for` of the loop that counts it, or `static NAME`. */
void tile_propose_constant(TileChecker *c, TileDiagnostic *d, const TileExpr *expr);
/* `inout` instead of the word, `in` or `out`, that stands behind the parameter's name. */
void tile_propose_inout(TileChecker *c, TileDiagnostic *d, TileSpan name, const char *word);
/* `var` instead of the `let` before the name. */
void tile_propose_var(TileChecker *c, TileDiagnostic *d, TileSpan name);
/* `v[_, :]` or `v[:, _]`, where only one of them gives a vector the shape of the matrix. */
void tile_propose_axis(TileChecker *c, TileDiagnostic *d, const TileMeaning *vector, const TileExpr *expr,
                       const TileMeaning *matrix);
/* The text of an expression, without parentheses around the whole. */
const char *tile_bare_text(TileChecker *c, TileSpan span);
/* The text of an operand, in parentheses where an operator behind it would take only a part of it. */
const char *tile_operand_text(TileChecker *c, const TileExpr *expr);
TileMeaning tile_fail_no_kernel(TileChecker *c, const TileAst *ast, TileSpan span, const char *name);
TileMeaning tile_fail_not_bool(TileChecker *c, const TileExpr *expr, const TileMeaning *m);

/* ---- candidates.c: what a call could have meant ---- */

/* Notes with the forms of a built-in function and, where there are several, why each does not fit. */
void tile_note_forms(TileChecker *c, TileDiagnostic *d, const TileExpr *call, const char *name);
/* Tries the names of their arguments. */
void tile_nearest_form(TileChecker *c, TileNearest *nearest, const char *name);

enum { TILE_MAX_CANDIDATES = 8 };
typedef struct TileCandidate {
    const TileItem *item;
    const TileAst *ast;
    const char *module; /* NULL: imported by a path */
} TileCandidate;
/* The items of this name that imports of the frame's file bring, TILE_MAX_CANDIDATES at most. */
unsigned tile_find_candidates(const TileChecker *c, const char *name, TileCandidate *found);
static inline bool tile_is_ambiguous(const TileChecker *c, const char *name) {
    TileCandidate found[TILE_MAX_CANDIDATES];
    return tile_find_candidates(c, name, found) > 1;
}
/* Reports a name that several imports bring. `call`, which may be NULL, is tried with each of them; `index` are the
 * brackets before its arguments, or NULL. */
void tile_fail_ambiguous(TileChecker *c, const char *name, TileSpan span, const TileExpr *call, const TileExpr *index);

/* ---- check_warn.c ---- */

/* May the kernel that is being checked be warned of this? */
bool tile_warns(const TileChecker *c, TileWarning warning);

/* Of arithmetic in 16 bits, once for an expression and its parts; `before` is the mark from before the parts. */
void tile_warn_rounding(TileChecker *c, const TileExpr *expr, const TileMeaning *m, TileDiagnosticsMark before);
/* Of a variable in 16 bits that a loop adds to. */
void tile_warn_accumulation(TileChecker *c, const TileVar *var, const TileStatement *statement,
                            TileDiagnosticsMark before);
/* Of names that a function or kernel binds and never reads. */
void tile_warn_unused(TileDiagnostics *diagnostics, TileArena *arena, const TileItem *item);

/* ---- check_print.c, check_assert.c ---- */

enum { TILE_MAX_PRINTED = 16 };
/* A line that is put together: a template of base/print_line.h and its items. */
typedef struct TilePrinted {
    TileText text;
    TileValue *items[2 * TILE_MAX_PRINTED + TILE_MAX_TENSOR_RANK];
    unsigned count;
} TilePrinted;
void tile_print_words(TilePrinted *printed, const char *words);
void tile_print_value(TileChecker *c, TilePrinted *printed, const TileMeaning *m);
/* Of a tile that is valid everywhere: the first element for which `chosen` is true, and its place. */
void tile_print_first(TileChecker *c, TilePrinted *printed, const TileMeaning *m, TileValue *chosen);
void tile_print_emit(TileChecker *c, TilePrinted *printed);

void tile_check_assert(TileChecker *c, const TileStatement *statement);
/* The comparison that a condition is, or is `all` of; else NULL. */
const TileExpr *tile_compared(const TileExpr *expr);

/* ---- emit.c ---- */

void tile_emit_at(TileChecker *c, TileSpan span);
/* What has an effect, `what`, cannot stand where both sides of a branch run. False when reported. */
bool tile_may_act(TileChecker *c, TileSpan span, const char *what);
/* Counts what a kernel becomes; past the limit statements are skipped, and the text is wrong. */
void tile_spend(TileChecker *c, size_t ops);
static inline bool tile_is_spent(const TileChecker *c) {
    return c->op_count >= c->diagnostics->limits->most[TILE_LIMIT_OPERATIONS];
}
/* A symbol for an i64 that the IR computes; one that was widened has the numbers of its old type. */
TileSymbol *tile_value_symbol(TileChecker *c, const char *name, TileValue *value);
TileValue *tile_emit_sum(TileChecker *c, const TileSum *sum);
/* An f64 no less than what the sum's parts add up to, whatever their signs. */
TileValue *tile_emit_magnitude(TileChecker *c, const TileSum *sum);
/* The value of a VALUE meaning as IR. */
TileValue *tile_emit_value(TileChecker *c, const TileMeaning *meaning);
const TileType *tile_meaning_type(TileChecker *c, const TileMeaning *meaning);
int64_t tile_extent_value(TileChecker *c, const TileSum *extent);
TileValue *tile_emit_unary(TileChecker *c, TileOpId id, TileValue *x);
TileValue *tile_emit_binary(TileChecker *c, TileOpId id, TileValue *x, TileValue *y);
TileValue *tile_emit_select(TileChecker *c, TileValue *condition, TileValue *x, TileValue *y);
TileBuilder *tile_emitter(TileChecker *c); /* the builder, at the right place */
/* A value cached for the open blocks, or NULL; and setting it. `slot` is kept with the key. */
TileValue *tile_cache_get(TileChecker *c, const void *key, size_t slot);
void tile_cache_set(TileChecker *c, const void *key, size_t *slot, TileValue *value);
/* Erases the ops of a block that was tried. */
void tile_discard_block(TileBlock *block);

/* Meanings of values. */
TileMeaning tile_value_meaning(TileChecker *c, TileValue *value, const TileSum *const *extent,
                               const TileValidity *valid);
TileMeaning tile_scalar_meaning(TileChecker *c, TileValue *value, const TileValidity *valid);
TileMeaning tile_sum_meaning(const TileSum *sum);
TileMeaning tile_bits_meaning(TileScalar scalar, uint64_t bits);
TileMeaning tile_bool_meaning(bool truth);
TileMeaning tile_integer_meaning(__int128 integer);

/* ---- check_literal.c ---- */

/* A literal becomes a value of the scalar type; others pass. */
TileMeaning tile_as_value(TileChecker *c, TileMeaning m, TileSpan span);
TileMeaning tile_literal_as(TileChecker *c, const TileMeaning *m, TileScalar scalar, TileSpan span);
static inline bool tile_is_literal(const TileMeaning *m) {
    return m->kind == TILE_MEANING_INTEGER || m->kind == TILE_MEANING_NUMBER || m->kind == TILE_MEANING_CHOICE;
}
/* Is it whole, whatever is chosen? */
bool tile_literal_is_integer(const TileMeaning *m);
/* How many numbers may come out. */
unsigned tile_literal_count(const TileMeaning *m);
TileMeaning tile_choice_meaning(TileChecker *c, TileMeaning condition, TileMeaning a, TileMeaning b);
/* Rounds and saturates as a conversion does: nothing has to fit. */
TileMeaning tile_convert_literal(TileChecker *c, const TileMeaning *m, TileScalar to, TileSpan span);

/* ---- check_constant.c ---- */

/* A scalar that is computed from constants alone becomes one. False where it is none. */
bool tile_make_constant(TileChecker *c, TileMeaning *m);

/* ---- check_type.c ---- */

static inline bool tile_is_scalar_value(const TileMeaning *m) { return m->kind == TILE_MEANING_VALUE && m->rank == 0; }
/* Literals take the type of the typed operands; all must have one element type. False when reported. */
bool tile_unify_scalars(TileChecker *c, TileMeaning *operands, const TileExpr *const *exprs, unsigned count,
                        TileSpan span);
/* Stretches all to their common shape. False when reported. */
bool tile_unify_shapes(TileChecker *c, TileMeaning *operands, unsigned count, TileSpan span);
/* The same, with the expressions, to propose how they become of one rank. */
bool tile_unify_shapes_of(TileChecker *c, TileMeaning *operands, const TileExpr *const *exprs, unsigned count,
                          TileSpan span);
/* In a lifted function: a scalar as a tile of the shape that the arguments have. */
TileMeaning tile_lift(TileChecker *c, TileMeaning m);
TileMeaning tile_stretch(TileChecker *c, TileMeaning m, unsigned rank, const TileSum *const *extent);
bool tile_extents_agree(const TileSum *a, const TileSum *b);
TileMeaning tile_convert(TileChecker *c, TileMeaning m, TileScalar to, TileSpan span);
/* An i64 scalar expression as a sum, NULL when reported. `what` names it in messages. */
const TileSum *tile_check_integer(TileChecker *c, const TileExpr *expr, const char *what);
const TileSum *tile_integer_of(TileChecker *c, TileMeaning m, TileSpan span, const char *what, bool must_be_valid);
/* The same, and known at compile time. */
const TileSum *tile_check_constant(TileChecker *c, const TileExpr *expr, const char *what, int64_t *value);
/* A positive compile-time extent. */
const TileSum *tile_check_extent(TileChecker *c, const TileExpr *expr);
bool tile_find_type(TileChecker *c, const char *name, TileScalar *scalar);
/* Types that the language has in mind, and that are refused. */
bool tile_is_future_type(const char *name);
TileMeaning tile_fail_type(TileChecker *c, TileSpan span, const char *name);
bool tile_class_types(const char *class, uint32_t *types);
/* A scalar condition: bool, proven valid. */
TileMeaning tile_check_condition(TileChecker *c, const TileExpr *expr);
TileMeaning tile_fail_tile_condition(TileChecker *c, const TileMeaning *m, TileSpan span);

/* ---- validity.c ---- */

TileAtom *tile_atom_interval(TileChecker *c, TileAtom atom);
/* The same source in scope, or NULL. */
TileAtom *tile_atom_same(const TileChecker *c, const TileAtom *atom);
/* `guard`: where the index itself is valid. */
TileAtom *tile_atom_condition(TileChecker *c, const TileSum *index, const TileSum *dim, const TileValidity *guard,
                              TileSpan span);
/* `guard`: where the index tile `key` itself is valid, which `mask` takes into account. */
TileAtom *tile_atom_mask(TileChecker *c, TileValue *mask, TileValue *key, const TileSum *dim, const TileValidity *guard,
                         TileSpan span, const char *words);
/* What is not valid, for messages: "the lanes of `n` past N". */
const char *tile_atom_words(TileChecker *c, const TileAtom *atom);
bool tile_valid_has(const TileValidity *valid, const TileValidEntry *entry);
const TileValidity *tile_valid_add(TileChecker *c, const TileValidity *valid, TileAtom *atom, const int8_t *axes,
                                   TileSpan where);
const TileValidity *tile_valid_union(TileChecker *c, const TileValidity *a, const TileValidity *b);
/* Axis i becomes map[i]; what touches an axis mapped to -1 is dropped. */
const TileValidity *tile_valid_map(TileChecker *c, const TileValidity *valid, const int8_t *map);
/* Axes of extent 1 that are stretched: bit set. */
const TileValidity *tile_valid_stretch(TileChecker *c, const TileValidity *valid, unsigned axes);
/* Only the entries that touch one of the axes; all conditions too when `conditions`. */
const TileValidity *tile_valid_select(TileChecker *c, const TileValidity *valid, unsigned axes, bool conditions);
const TileValidity *tile_valid_masks(TileChecker *c, const TileValidity *valid);
bool tile_valid_touches(const TileValidity *valid, unsigned axes);
/* An entry of `valid` that `within` lacks, NULL where there is none; one that holds whatever is chosen before others.
 */
const TileValidEntry *tile_valid_missing(const TileValidity *valid, const TileValidity *within);
/* The bounds of an axis by all intervals, NULL where there is none. */
void tile_valid_bounds(TileChecker *c, const TileValidity *valid, int axis, const TileSum **lo, const TileSum **hi);
/* All conditions joined, NULL when there is none. */
TileValue *tile_emit_conditions(TileChecker *c, const TileValidity *valid);
/* All masks joined, as a bool tile of the shape; NULL when there is none. */
TileValue *tile_emit_masks(TileChecker *c, const TileValidity *valid, const TileMeaning *shape);
/* Everything as one bool of the shape; NULL when all is valid. */
TileValue *tile_emit_valid(TileChecker *c, const TileValidity *valid, const TileMeaning *shape);
/* The value with `fill` (a scalar) where `valid` does not hold. */
TileValue *tile_emit_filled(TileChecker *c, const TileMeaning *m, const TileValidity *valid, TileValue *fill);
/* Reports that a value that may be invalid stands where it must not; proposes `else`. */
TileMeaning tile_fail_invalid(TileChecker *c, const TileMeaning *m, const TileExpr *expr, const char *why);
const char *tile_fill_word(const TileExpr *expr);

/* ---- check_expression.c and its kin ---- */

TileMeaning tile_check_expr(TileChecker *c, const TileExpr *expr);
/* A scalar or tile; literals keep no type. */
TileMeaning tile_check_value(TileChecker *c, const TileExpr *expr);
/* The same, or a tuple of such: what a branch has as its value. */
TileMeaning tile_check_part(TileChecker *c, const TileExpr *expr);
TileMeaning tile_apply_binary(TileChecker *c, TileTokenKind op, TileMeaning a, TileMeaning b, const TileExpr *expr);
TileMeaning tile_check_binary(TileChecker *c, const TileExpr *expr);
TileMeaning tile_check_unary(TileChecker *c, const TileExpr *expr);
TileMeaning tile_check_else(TileChecker *c, const TileExpr *expr);
TileMeaning tile_apply_else(TileChecker *c, TileMeaning v, TileMeaning fill, const TileExpr *expr);

/* check_index.c */
TileMeaning tile_check_index(TileChecker *c, const TileExpr *expr);
/* `loaded` is how far the target was valid where `+=` has just loaded it: the store is valid just so, though its index
 * tiles are values of their own. */
void tile_check_store(TileChecker *c, const TileExpr *target, TileMeaning value, const TileExpr *value_expr,
                      const TileValidity *loaded, bool skip);
TileMeaning tile_check_gather(TileChecker *c, const TileExpr *call);
void tile_check_scatter(TileChecker *c, const TileExpr *call);
TileMeaning tile_check_load(TileChecker *c, const TileExpr *expr, const TileMeaning *tensor);
/* A tensor of known dimensions as a tile, and the other way. */
TileMeaning tile_load_whole(TileChecker *c, const TileMeaning *tensor, TileSpan span);
void tile_store_whole(TileChecker *c, TileTensor *tensor, TileMeaning value, const TileExpr *expr);

/* check_range.c */
TileMeaning tile_shift_range(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b,
                             const TileExpr *expr);
TileMeaning tile_range_field(TileChecker *c, const TileRange *range, const TileExpr *expr);
/* tiles(..) in grid and for: start, limit, size. False when reported. */
typedef struct TileTiles {
    const TileSum *lo, *hi, *size;
    TileSpan span;
} TileTiles;
bool tile_check_tiles(TileChecker *c, const TileExpr *expr, TileTiles *tiles);
bool tile_is_call_of(const TileExpr *expr, const char *name);
TileMeaning tile_check_span(TileChecker *c, const TileExpr *call);
/* The range that begins at `first` in the tiles. */
TileMeaning tile_range_of(TileChecker *c, const TileTiles *tiles, const TileSum *first, TileNameRef name);
TileMeaning tile_whole_range(TileChecker *c, const TileSum *extent, TileSpan span);

/* check_builtin.c */
struct TileBuiltin {
    const char *name;
    TileMeaning (*check)(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
    TileOpId op;
    uint8_t arity;
    uint8_t types; /* what it takes: TILE_TAKES_.. */
    uint8_t kind;  /* reductions: TileName */
};
const TileBuiltin *tile_find_builtin(const char *name);
TileMeaning tile_check_approximate(TileChecker *c, const TileExpr *call);
TileMeaning tile_check_call(TileChecker *c, const TileExpr *expr);
/* The value of the named argument, NULL when absent. */
const TileExpr *tile_named_argument(const TileExpr *call, const char *name);
/* Exactly `count` positional arguments (or between), names only from the list. False when reported. */
bool tile_check_arguments(TileChecker *c, const TileExpr *call, unsigned least, unsigned most,
                          const char *const *names);
TileMeaning tile_check_reduction(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_mean(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_arg_reduction(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* The set of axes named by `axis =`, all of them where none is. False when reported. */
bool tile_check_axes(TileChecker *c, const TileExpr *call, unsigned rank, unsigned *axes);
bool tile_check_axes_of(TileChecker *c, const TileExpr *expr, unsigned rank, unsigned *axes);
/* The operand of a reduction: a tile. */
TileMeaning tile_check_reduced(TileChecker *c, const TileExpr *call, const char *const *names);
/* The type that sums and products of the scalar are computed in. */
TileScalar tile_accumulator(TileName kind, TileScalar scalar);
/* check_fold.c */
TileMeaning tile_check_cumulative(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_fold(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_dot(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* `exprs`: what the operands are in the text. */
TileMeaning tile_apply_dot(TileChecker *c, TileMeaning a, TileMeaning b, const TileMeaning *acc, TileName precision,
                           const TileExpr *const *exprs, TileSpan span);
/* check_index.c */
TileMeaning tile_check_atomic(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* check_print.c */
TileMeaning tile_check_print(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* check_join.c */
TileMeaning tile_check_join(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_split(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_cat(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* check_meet.c: are all lanes along the axis certainly equal? */
bool tile_lanes_agree(const TileMeaning *m, unsigned axis);
/* check_debug.c: `x op y` is about to be emitted. */
void tile_check_traps(TileChecker *c, TileTokenKind op, const TileMeaning *x, const TileMeaning *y,
                      const TileExpr *expr);
/* f8 is stored, moved, chosen and converted; nothing is computed in it. False when reported. */
bool tile_check_computes(TileChecker *c, const TileMeaning *m, const TileExpr *expr);
TileMeaning tile_transpose(TileChecker *c, TileMeaning m, const int64_t *axes);
/* Another shape with the same elements; map says where each old axis goes. */
TileMeaning tile_reshape_to(TileChecker *c, TileMeaning m, unsigned rank, const TileSum *const *extent,
                            const int8_t *map);

/* check_call.c */
/* May the parameter be one of a function? False when reported. */
bool tile_check_parameter(TileChecker *c, const TileParam *param);
/* The name under which the extra parameters of a function generic are bound. */
const char *tile_spread_name(TileChecker *c, const char *name);
/* `exprs` may be NULL, for a call that stands nowhere in the text. */
TileMeaning tile_call_function(TileChecker *c, const TileMeaning *function, TileMeaning *arguments,
                               const TileExpr *const *exprs, unsigned count, TileSpan span);
TileMeaning tile_check_function_call(TileChecker *c, const TileExpr *call, const TileMeaning *function,
                                     const TileExpr *index);

/* check_function.c: functions as values */
/* `f[3, g]`: the function with these generics, behind those that it was given before. */
TileMeaning tile_check_filled(TileChecker *c, const TileExpr *expr, const TileMeaning *function);
/* "gelu", "nn.leaky_relu[0.3]": what a setting of this name means; `span` is for what is wrong with a plain name. */
TileMeaning tile_function_from_text(TileChecker *c, const char *setting, const char *text, TileSpan span);
/* The other way. False where something in it is not known at compile time. */
bool tile_function_print(TileChecker *c, TileText *text, const TileMeaning *function);
/* Is the meaning a function of the type that the generic declares? False when reported. */
bool tile_check_function_type(TileChecker *c, const TileGeneric *generic, const TileMeaning *m, TileSpan span);

/* check_statement.c, check_flow.c */
void tile_check_sequence(TileChecker *c, const TileSequence *sequence);
TileMeaning tile_check_sequence_value(TileChecker *c, const TileSequence *sequence);
void tile_check_statement(TileChecker *c, const TileStatement *statement);
void tile_check_for(TileChecker *c, const TileStatement *statement);
void tile_check_while(TileChecker *c, const TileStatement *statement);
TileMeaning tile_check_if(TileChecker *c, const TileExpr *expr, bool want_value);
/* Runs one of two branches, joining variables and values. */
typedef struct TileBranch {
    TileMeaning (*run)(TileChecker *c, const void *state);
    const void *state;
    const TileExpr *value; /* what the text says that its value is; may be NULL */
} TileBranch;
/* Of a bool or a bool tile: TILE_KIND_ANY, or _ALL, of its valid elements. */
TileValue *tile_emit_one_bool(TileChecker *c, const TileMeaning *m, TileName kind);
/* v[0] ? v[1] : v[2], for each element; the values have one type. */
TileMeaning tile_select_meaning(TileChecker *c, TileMeaning *v, TileSpan span);
/* check_untaken.c: the value, checked for its validity alone, since a constant decides that nothing computes it. */
TileMeaning tile_check_untaken(TileChecker *c, const TileExpr *expr);
/* Runs the branch that a constant chose; its values are valid where those of the other side are, too. */
TileMeaning tile_join_untaken(TileChecker *c, TileBranch taken, TileBranch other, TileSpan span);
/* A branch that does nothing. */
TileMeaning tile_run_nothing(TileChecker *c, const void *state);
TileMeaning tile_join_branches(TileChecker *c, TileMeaning condition, TileBranch then, TileBranch otherwise,
                               bool want_value, TileSpan span);
/* Does control leave by `return`; by that, break or continue of the loop around; by break? */
bool tile_statement_returns(const TileStatement *statement);
bool tile_expr_returns(const TileExpr *expr);
/* Or a `break` or `continue`? */
bool tile_expr_leaves(const TileExpr *expr);
bool tile_sequence_returns(const TileSequence *sequence);
bool tile_sequence_leaves(const TileSequence *sequence);
bool tile_sequence_breaks(const TileSequence *sequence);
/* Is none of the flags (some may be NULL) set? A bool, a tile where functions are lifted. */
TileMeaning tile_none_set(TileChecker *c, TileVar *const *flags, unsigned count, TileSpan span);
/* Would a side that is not taken have set one? What is behind then counts as if a tile decided. */
bool tile_any_undecided(TileVar *const *flags, unsigned count);
/* The declared type of the result, or of this part of it; NULL where there is none. */
const TileTypeExpr *tile_result_type(const TileTypeExpr *type, unsigned part);

/* check_grid.c */
void tile_check_grid(TileChecker *c, const TileStatement *statement);
void tile_check_temp(TileChecker *c, const TileStatement *statement);

/* check_kernel.c */
/* Emits the kernel as a function of a new module; the caller looks at the diagnostics. */
void tile_check_kernel(TileChecker *c, const TileItem *kernel);
/* Is the extent, where it is known, one that a tensor may have? False when reported. */
bool tile_check_dimension(TileChecker *c, const TileSum *extent, const TileExpr *expr);
/* The launch checks that the extent, which a tensor has, does not wrap. */
void tile_require_exact(TileChecker *c, const TileSum *extent, TileSpan span);

/* check_bindings.c: generics, static values and tune names of a kernel, from the options. False when reported. */
bool tile_bind_generics(TileChecker *c, const TileItem *kernel);
bool tile_bind_tunes(TileChecker *c, const TileItem *kernel);
/* See tile_list_points; generics are bound. */
bool tile_search_points(TileChecker *c, const TileItem *kernel, size_t most, TileTunePoints *found);
TileScalar tile_stand_in_type(uint32_t types, bool second);
const TileBinding *tile_find_binding(const TileChecker *c, const char *name);
/* A static dimension or scalar of this name. */
bool tile_is_static(const TileItem *kernel, const char *name);
/* The value of a const or static scalar as one of the type; error when none is bound. */
TileMeaning tile_bound_constant(TileChecker *c, const char *name, TileScalar scalar, TileSpan span);
bool tile_check_all_used(TileChecker *c, const TileItem *kernel);

/* Does the name stand for something that is chosen per instance: a generic, static, const or tune name? */
bool tile_names_setting(const TileItem *kernel, const char *name);

/* check_test.c, check_run.c */
bool tile_is_maker(const TileChecker *c, const TileExpr *call);
TileMeaning tile_check_maker(TileChecker *c, const TileExpr *call);
TileMeaning tile_check_run(TileChecker *c, const TileExpr *expr);
void tile_test_assert(TileChecker *c, const TileStatement *statement, const char *text);
bool tile_test_allows(const TileStatement *statement);
bool tile_test_is_done(const TileChecker *c);
/* An `if` of a test, whether or not its condition is known. */
void tile_test_enter_branch(TileChecker *c);
void tile_test_leave_branch(TileChecker *c);
/* The bits of a scalar of the type that is known at compile time. */
bool tile_constant_bits(TileChecker *c, const TileMeaning *m, TileScalar scalar, uint64_t *bits);

/* check_module.c */
/* Verifies the module that was made; what is wrong then is ours. */
tile_status tile_checker_verify(TileChecker *c, const TileItem *item, bool whole);
void tile_checker_init(TileChecker *c, TileContext *context, TileDiagnostics *diagnostics, TileArena *arena,
                       const TileAst *ast, const TileLowerOptions *options);

#endif
