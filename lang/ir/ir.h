/* The intermediate representation: one data structure for tile form and machine form.
 *
 * A module holds functions; a function holds one block of ops; ops hold operands (with intrusive use lists),
 * results, attributes and structured regions of one block each. Everything lives in the module's arena and is
 * released with it. Not thread safe: one thread per context; any number of contexts in parallel. */
#ifndef TILE_LANG_IR_IR_H
#define TILE_LANG_IR_IR_H

#include "base/list.h"
#include "base/map.h"
#include "base/tensor_map.h"
#include "lang/ir/types.h"

typedef struct TileContext TileContext;
typedef struct TileModule TileModule;
typedef struct TileFunc TileFunc;
typedef struct TileBlock TileBlock;
typedef struct TileOp TileOp;
typedef struct TileValue TileValue;
typedef struct TileUse TileUse;

/* ---- the tables ---- */

typedef enum TileOpId {
#define OP(id, mnemonic, class, operands, results, regions, forms, traits, rule, attributes, doc) TILE_OP_##id,
#include "lang/ir/ops.def"
#undef OP
    TILE_OP_COUNT
} TileOpId;

typedef enum TileOpClass {
    TILE_CLASS_ELEMENTWISE,
    TILE_CLASS_SHAPE,
    TILE_CLASS_REDUCE,
    TILE_CLASS_MEMORY,
    TILE_CLASS_CONTROL,
    TILE_CLASS_HOST,
    TILE_CLASS_NEST,
    TILE_CLASS_VECTOR,
    TILE_CLASS_BLOCK
} TileOpClass;

enum { TILE_FORM_TILE = 1, TILE_FORM_MACHINE = 2 };
enum {
    TILE_TRAIT_PURE = 1,
    TILE_TRAIT_READS = 2,
    TILE_TRAIT_WRITES = 4,
    TILE_TRAIT_COMMUTATIVE = 8,
    TILE_TRAIT_TERMINATOR = 16,
    TILE_TRAIT_FLOAT_ONLY = 32,
    TILE_TRAIT_INT_ONLY = 64,
    TILE_TRAIT_COSTLY = 128,
    TILE_TRAIT_FUNCTION = 256
};
enum { TILE_ANY_COUNT = -1 };

typedef enum TileAttributeKey {
#define ATTRIBUTE(key, mnemonic, storage, doc) TILE_ATTRIBUTE_##key,
#include "lang/ir/attributes.def"
#undef ATTRIBUTE
    TILE_ATTRIBUTE_COUNT
} TileAttributeKey;

typedef enum TileAttributeStorage {
    TILE_STORAGE_BITS,
    TILE_STORAGE_INT,
    TILE_STORAGE_INTS,
    TILE_STORAGE_TEXT,
    TILE_STORAGE_TEXTS,
    TILE_STORAGE_NAME,
    TILE_STORAGE_NAMES,
    TILE_STORAGE_TYPES
} TileAttributeStorage;

/* Values of NAME attributes: TILE_<KEY>_<ID>, e.g. TILE_KIND_SUM. Each number belongs to one key only. */
typedef enum TileName {
#define ATTRIBUTE(key, mnemonic, storage, doc)
#define NAME_OF(key, id, mnemonic) TILE_##key##_##id,
#include "lang/ir/attributes.def"
#undef NAME_OF
#undef ATTRIBUTE
    TILE_NAME_COUNT
} TileName;

/* Grids of a kernel of which it is noted how many programs they have before their loops are split, and of a launch how many blocks of them a multiprocessor has. */
enum { TILE_MOST_SPLITS = 4, TILE_MOST_TOGETHER = 32 };
/* The greatest number of threads of a GPU's block, and of a warp; of iterations of a loop in flight at a time. */
enum { TILE_MAX_THREADS = 1024, TILE_WARP_THREADS = 32, TILE_MAX_STAGES = 16, TILE_MAX_TURNS = 4, TILE_MAX_CLUSTER = 8, TILE_MAX_CLUSTER_THREADS = 4096 };
/* Threads of a warpgroup; registers that a thread may have by set_registers; named barriers. */
enum { TILE_WARPGROUP_THREADS = 128, TILE_MIN_REGISTERS = 24, TILE_MAX_REGISTERS = 256, TILE_NAMED_BARRIERS = 16 };

/* Rows of programs that `longest_first` numbers together: with more, programs that run at the same time would share
 * fewer of their reads. */
enum { TILE_PROGRAM_ROWS = 8 };
/* Accumulators (stripes) of a reduction along the last axis: see REDUCE in ops.def. */
enum { TILE_STRIPES = 64 };
/* Block sizes of folds and scans; the greatest number of values that are folded together. */
enum { TILE_FOLD_BLOCK = 64, TILE_SCAN_BLOCK = 16, TILE_MAX_FOLD = 8 };
/* Bits of the position of an element in a tile of which `points` and `runs` speak, at most. */
enum { TILE_MAX_POINT_BITS = 24 };

/* A bit for each TileAttributeKey. */
__extension__ typedef unsigned __int128 TileAttributeSet;

typedef struct TileOpInfo {
    const char *mnemonic, *doc;
    uint8_t class, forms;
    int8_t operands, results, regions; /* TILE_ANY_COUNT: the type rule decides */
    uint16_t traits;
    TileAttributeSet required; /* see also tile_op_allows */
} TileOpInfo;

const TileOpInfo *tile_op_info(TileOpId id);
/* Is it an attribute that any op may have, as part of a schedule? */
bool tile_attribute_is_general(TileAttributeKey key);
/* May an op of this kind have the attribute? */
bool tile_op_allows(TileOpId id, TileAttributeKey key);
/* Is it a barrier of all threads of the block? One with a number is for those who come there. */
bool tile_op_is_block_barrier(const TileOp *op);
/* Do the threads of a warpgroup execute the op together? */
bool tile_op_is_of_warpgroup(TileOpId id);
/* TILE_OP_COUNT if no op has this mnemonic. */
TileOpId tile_op_find(const char *mnemonic, size_t length);
const char *tile_attribute_name(TileAttributeKey key);
TileAttributeStorage tile_attribute_storage(TileAttributeKey key);
/* TILE_ATTRIBUTE_COUNT if there is none. */
TileAttributeKey tile_attribute_find(const char *name, size_t length);
/* The element type in which a dot of this operand type accumulates: f64, f32 for other floats, i32 for integers. */
TileScalar tile_dot_accumulator(TileScalar operand);
/* The mnemonic of a value of a NAME attribute, NULL if it is not one of this key; and the inverse, -1 if there is
 * none. */
const char *tile_name_text(TileAttributeKey key, int64_t value);
int64_t tile_name_find(TileAttributeKey key, const char *text, size_t length);

/* ---- the structure ---- */

/* A place in the source. `file` indexes the context's list of files, 0: none; line and column count from 1. */
typedef struct TileLocation {
    uint32_t file, line, column;
} TileLocation;

struct TileUse {
    TileValue *value;
    TileOp *user;
    uint32_t index; /* operand number */
    TileUse *next, *previous;
};

struct TileValue {
    const TileType *type;
    TileOp *op;       /* the op whose result this is, or NULL */
    TileBlock *block; /* the block whose argument this is, or NULL */
    uint32_t index;   /* result or argument number */
    uint32_t number;  /* scratch of the printer and the executor: assigned by tile_func_number */
    TileUse *first_use;
    const char *name; /* a hint for the printer, may be NULL; interned */
};

typedef struct TileAttribute {
    TileAttributeKey key;
    uint32_t count; /* INTS, NAMES, TEXTS, TYPES */
    union {
        uint64_t bits;
        int64_t integer; /* INT, NAME */
        const char *text;
        const int64_t *integers; /* INTS, NAMES */
        const char *const *texts;
        const TileType *const *types;
    };
} TileAttribute;

struct TileOp {
    uint16_t id; /* TileOpId */
    uint16_t result_count, region_count, attribute_count;
    uint32_t operand_count, operand_capacity;
    TileUse *operands;
    TileValue *results;
    TileBlock *regions; /* array of region_count blocks */
    TileAttribute *attributes;
    TileBlock *block; /* NULL while detached */
    TileOp *next, *previous;
    TileLocation location;
};

struct TileBlock {
    TileOp *first, *last;
    TileValue **arguments;
    uint32_t argument_count, argument_capacity;
    TileOp *op; /* the op that owns this region, or NULL for a function's body */
    TileFunc *func;
};

/* What the compiled code may assume of a parameter; set for specialised variants. `used` records what a pass relied on:
 * only that is guarded. `asked` records which facts would have changed the code, had they been known. */
typedef struct TileTensorFacts {
    uint32_t align;                       /* of the base address, in bytes; 0: the element's own alignment */
    int64_t stride[TILE_MAX_TENSOR_RANK]; /* in bytes; TILE_UNKNOWN if not known */
    int64_t extent[TILE_MAX_TENSOR_RANK]; /* TILE_UNKNOWN if not known */
    /* A power of two that divides the extent, TILE_UNKNOWN if none is known. In machine form an extent is a parameter
     * of its own, which has this fact as element 0. */
    int64_t multiple[TILE_MAX_TENSOR_RANK];
    uint32_t dense; /* a bit for each dimension: from there on no gaps are between the elements, in row-major order */
    uint32_t most; /* a power of two: the last extent is at least 1 and at most this; 0: not known */
    int64_t value; /* of an integer scalar; TILE_UNKNOWN if not known */
    bool map;    /* a tensor map can describe the tensor (tile_map_fits) */
    bool narrow; /* every element begins less than 2**31 bytes after the first one, and none before it */
} TileTensorFacts;
#define TILE_UNKNOWN INT64_MIN

typedef enum TileParameterRole {
#define ROLE(id, word, of_argument, of_axis, doc) TILE_ROLE_##id,
#include "lang/ir/roles.def"
#undef ROLE
    TILE_ROLE_COUNT
} TileParameterRole;

/* The role's mnemonic in the text form; TILE_ROLE_COUNT if no role has this name. */
const char *tile_role_word(TileParameterRole role);
TileParameterRole tile_role_find(const char *word, size_t length);
bool tile_role_has_argument(TileParameterRole role);
bool tile_role_has_axis(TileParameterRole role);

/* A tensor map: boxes of these extents, in elements and in the order of the tensor's axes, whose last one is contiguous.
 * `step`: from one element of a box to the next along an axis, in the tensor; 0 is 1. In shared memory a box is dense, in that order. `swizzle`: how the bytes of its rows are permuted there, see
 * tile_map_swizzle; rows then have just so many bytes. */
typedef struct TileTensorMap {
    uint32_t rank; /* 0: none */
    uint32_t box[TILE_MAP_MOST_RANK];
    uint32_t swizzle; /* 0, 32, 64 or 128 bytes */
    uint32_t step[TILE_MAP_MOST_RANK];
    uint32_t cut; /* a bit for each axis along which a box has at most as many elements as the tensor */
    /* Mode im2col: a box is so many positions of a batch of images, one after the other, with the channels that `box` says; its other
     * extents are 1. Each axis of the images has as many positions as `over` says, from the corner on, `step` elements apart; positions
     * go through the last of these axes first, and behind the last of an image those of the next one come. An element of the box
     * is that of the tensor at the position and the copy's offset. 0: mode tiled. */
    uint32_t positions;
    int32_t corner[TILE_MAP_MOST_IMAGE_AXES];
    struct {
        uint32_t argument, axis; /* an extent of the kernel's tensor */
    } over[TILE_MAP_MOST_IMAGE_AXES];
} TileTensorMap;

typedef struct TileParameter {
    const char *name;                  /* interned */
    TileParameterRole role;            /* in a phase */
    uint32_t argument;                 /* the kernel's parameter that it stands for; temps are numbered after the
                                        * parameters */
    uint32_t axis;                     /* of a tensor */
    TileTensorMap map;                 /* of a parameter with this role */
    TileTensorFacts facts;             /* assumed */
    uint32_t used_align;               /* relied on by passes */
    uint32_t used_stride, used_extent; /* a bit for each dimension */
    uint32_t asked_align, asked_stride;
    uint32_t used_dense, asked_dense;  /* a bit for each dimension */
    uint32_t used_most, asked_most;    /* sets of powers of two */
    uint32_t used_multiple, asked_multiple; /* sets of divisors, each a power of two: in machine form, of an extent; of
                                             * a tensor, or its address, of its last extent */
    /* Of a tensor without facts: the dimensions that are likely contiguous. Machine form has, at a scalar, its likely
     * value: code for that value is worth a version of its own, besides the general one. 0: none. */
    uint32_t likely_stride, likely;
    bool used_narrow, asked_narrow, used_map, asked_map;
    bool used_value, asked_value; /* a scalar's: asked where it decides strides, bounds or steps */
    uint32_t own; /* of a temporary: so many of its axes number the program that alone accesses what is there */
    bool noalias;  /* machine form: no other parameter points into this memory */
    bool readonly; /* machine form: never stored to */
} TileParameter;

typedef enum TileFuncKind {
    TILE_FUNC_KERNEL, /* tile form: tensors and scalars, host ops, grids */
    TILE_FUNC_DEVICE, /* tile form: an instance of a fn, to be inlined */
    TILE_FUNC_PHASE,  /* machine form: one grid of a kernel, for a range of its programs */
} TileFuncKind;

struct TileFunc {
    TileModule *module;
    TileFunc *next, *previous;
    bool removed;     /* from the module */
    const char *name; /* interned */
    TileFunc *kernel; /* phases: the kernel that the grid belongs to; NULL if it is not in the module */
    uint32_t phase;   /* phases: the grid's number, from 0 */
    TileFuncKind kind;
    uint8_t form; /* TILE_FORM_TILE or TILE_FORM_MACHINE */
    TileBlock body;
    TileParameter *parameters; /* one per body argument */
    const TileType **result_types;
    uint32_t result_count;
    uint64_t scratch_bytes; /* phases: scratch of one thread; on a GPU, shared memory of one block */
    uint32_t threads;       /* phases of a GPU: threads of a block; 0 on a CPU */
    uint32_t registers;     /* phases of a GPU: of a thread when it begins; 0: as many as the assembler likes */
    uint32_t bands; /* phases of a CPU: each program has so many parts that do not depend on one another, and the range
                     * counts these; 0: it counts programs */
    uint32_t least_programs; /* kernels, of GPUs: grids with fewer are split where that is possible; 0: none are */
    uint32_t split_programs[TILE_MOST_SPLITS]; /* likewise: so many programs, rounded down to a power of two, have the first grids whose last loop is split; 0: that is not known */
    uint32_t blocks_together[TILE_MOST_SPLITS]; /* of GPUs: a thread of the first grids, of a phase of its own, has at most so many registers that a multiprocessor has room for so many
                                          * blocks; 0: as many registers as the assembler likes */
    bool packs; /* kernels, of GPUs: operands of products that no tensor map describes are copied to where one does */
    uint32_t joined_rows, joined_columns; /* kernels, of GPUs: programs are computed together so that their products have so many
                                           * rows and columns; 0: none are */
    uint32_t joined_lanes, joined_axis; /* kernels, of GPUs: programs without products are computed together along an axis of the grid, counted
                                         * from the last one as 1, so that their largest tile has so many elements; 0: none are */
    uint32_t warps, stages; /* of GPUs, as the kernel's author chose; 0: the compiler decides */
    uint32_t turns; /* of GPUs: so many programs of a block shall multiply in turn; of phases, from gpu-warpgroups on: do, and
                     * `threads` are those of one of them. 0 or 1: programs do not */
    uint32_t cluster; /* kernels, of GPUs: so many blocks, neighbours in number, shall be a cluster; of phases: they are, from gpu-multicast
                       * on, and a launch has a multiple of them; until then there are rows for them. 0 or 1: each block is alone */
    bool resident;          /* phases of a GPU: a launch has as many blocks as run at a time, not one for each program */
    bool stream;            /* of GPUs, chosen by the author: data that is read once is evicted from the L2 cache
                             * first */
    uint32_t once;          /* of GPUs: a bit for each of the first arguments of which all programs together read each element once, for
                             * products: it is evicted from the L2 cache first */
    bool busy;              /* of GPUs: while a program waits, others compute or the memory is busy; false where a launch's programs leave the
                             * machine waiting, or that is not known */
    bool reloads;           /* of GPUs: rows that several loops go over are loaded again by each */
    bool keeps;             /* of GPUs: such rows stay in registers though they have no class (TileTensorFacts.most) */
    TileLocation location;
};

struct TileModule {
    TileContext *context;
    TileArena *arena;
    TileFunc *first, *last;
    uint64_t created, created_most; /* ops and functions' parameters so far; beyond created_most, creation jumps to
                                     * `spent` */
    jmp_buf *spent;                 /* NULL: no limit */
};

struct TileContext {
    TileArena *arena;
    TileTypeTable *types;
    TileInterner *strings;
    TILE_LIST(const char *) files; /* files.items[0] is unused */
};

/* ---- creation and destruction ---- */

/* NULL if out of memory. */
TileContext *tile_ir_context_create(void);
void tile_ir_context_destroy(TileContext *context);
TileModule *tile_module_create(TileContext *context);
/* In an arena of the caller's: must not be destroyed separately. */
TileModule *tile_module_create_in(TileContext *context, TileArena *arena);
void tile_module_destroy(TileModule *module);

const TileType *tile_type_scalar(TileContext *context, TileScalar scalar);
/* A scalar type if rank is 0. */
const TileType *tile_type_tile(TileContext *context, TileScalar scalar, unsigned rank, const int64_t *extent);
const TileType *tile_type_tensor(TileContext *context, TileScalar scalar, unsigned rank, TileAccess access);
const TileType *tile_type_pointer(TileContext *context, TileSpace space);
/* A pointer to a tile of so many rows and columns in shared memory. */
const TileType *tile_type_shared(TileContext *context, TileScalar scalar, const int64_t *extent, TileSwizzle swizzle,
                                 unsigned log_chunks);
/* A channel whose slots have the type that the pointer points to; and the type of a pointer to one of its slots. */
const TileType *tile_type_channel(TileContext *context, const TileType *pointer);
const TileType *tile_type_slot(TileContext *context, const TileType *channel);
/* A scalar type if lanes == 1. */
const TileType *tile_type_vector(TileContext *context, TileScalar scalar, int64_t lanes, bool scalable);
/* The same shape, and layout, with another element type. */
const TileType *tile_type_with_scalar(TileContext *context, const TileType *type, TileScalar scalar);
/* The same tile in another layout (lang/layout/layout.h); NULL: in no layout. */
const TileType *tile_type_with_layout(TileContext *context, const TileType *type, const struct TileLayout *layout);

TileFunc *tile_func_create(TileModule *module, const char *name, TileFuncKind kind, unsigned form);
TileValue *tile_func_add_parameter(TileFunc *func, const char *name, const TileType *type);
TileFunc *tile_func_find(const TileModule *module, const char *name);
/* The phase for the kernel's grid of this number; NULL if there is none. */
TileFunc *tile_func_phase(const TileFunc *kernel, uint32_t number);
/* `argument` and `axis` are 0 if the role has none. */
void tile_func_set_role(TileFunc *func, const TileValue *parameter, TileParameterRole role, uint32_t argument,
                        uint32_t axis);
void tile_func_remove(TileFunc *func);
/* Numbers all values in order of definition; returns how many there are. */
uint32_t tile_func_number(TileFunc *func);

/* A detached op with these result types and empty regions. Not checked: see build.h for checked construction. */
TileOp *tile_op_create(TileModule *module, TileOpId id, TileLocation location, TileValue *const *operands,
                       unsigned operand_count, const TileType *const *result_types, unsigned result_count);
/* Attributes are copied; an attribute of the same key is replaced. */
void tile_op_set(TileModule *module, TileOp *op, TileAttribute attribute);
void tile_op_set_integer(TileModule *module, TileOp *op, TileAttributeKey key, int64_t value);
void tile_op_set_integers(TileModule *module, TileOp *op, TileAttributeKey key, const int64_t *values, unsigned count);
void tile_op_set_text(TileModule *module, TileOp *op, TileAttributeKey key, const char *text);
void tile_op_clear(TileOp *op, TileAttributeKey key);
/* NULL if absent. */
const TileAttribute *tile_op_get(const TileOp *op, TileAttributeKey key);
int64_t tile_op_integer(const TileOp *op, TileAttributeKey key, int64_t otherwise);
/* Is the optional operand one of those that `parts` lists? */
bool tile_op_has_part(const TileOp *op, TileName part);
/* The combiner of a fold or scan, NULL for other ops. It is straight-line code and uses no value from outside. */
TileBlock *tile_op_combiner(const TileOp *op);

void tile_op_insert_before(TileOp *op, TileOp *position);
void tile_op_insert_after(TileOp *op, TileOp *position);
void tile_op_append(TileOp *op, TileBlock *block);
/* Detaches the op from its block; the op stays valid. */
void tile_op_detach(TileOp *op);
/* Detaches and drops the op, with its operands and regions. Its results must have no uses. */
void tile_op_erase(TileOp *op);
/* Moves all ops of `from` to the end of `to`. */
void tile_block_splice(TileBlock *to, TileBlock *from);

TileValue *tile_block_add_argument(TileModule *module, TileBlock *block, const TileType *type, const char *name);
void tile_block_remove_argument(TileBlock *block, unsigned index);

static inline TileValue *tile_op_operand(const TileOp *op, unsigned index) { return op->operands[index].value; }
static inline TileValue *tile_op_result(const TileOp *op, unsigned index) { return &op->results[index]; }
static inline bool tile_op_is(const TileOp *op, TileOpId id) { return op && op->id == id; }
/* The defining op of the value, if it is of this kind; else NULL. */
static inline TileOp *tile_value_def(const TileValue *value, TileOpId id) {
    return value->op && value->op->id == id ? value->op : NULL;
}
void tile_op_set_operand(TileOp *op, unsigned index, TileValue *value);
void tile_op_add_operand(TileModule *module, TileOp *op, TileValue *value);
void tile_op_remove_operand(TileOp *op, unsigned index);
/* Removes a result without uses. Those after it move down by one and become other TileValues. */
void tile_op_remove_result(TileOp *op, unsigned index);
void tile_value_replace(TileValue *value, TileValue *with);
static inline bool tile_value_has_uses(const TileValue *value) { return value->first_use != NULL; }
bool tile_value_has_one_use(const TileValue *value);

/* The function that contains the op or value. */
TileFunc *tile_op_func(const TileOp *op);
TileBlock *tile_value_block(const TileValue *value); /* that defines it */
/* Is `block` nested in `outer`, or equal to it? */
bool tile_block_inside(const TileBlock *block, const TileBlock *outer);
/* Is the value defined outside of the op's regions? */
bool tile_value_outside(const TileValue *value, const TileOp *op);

/* A deep copy of `op`, detached. Operands are mapped by `map` (old TileValue* to new) or, if not in it, kept; the
 * results and region arguments are added to it. `module` may be another module of the same context. */
TileOp *tile_op_clone(TileModule *module, const TileOp *op, TileMap *map);

/* Calls `visit` for each op of the block and of nested regions, in pre-order. The visitor may erase the op that it is
 * given, but no other. */
typedef void (*TileOpVisitor)(TileOp *op, void *state);
void tile_block_walk(TileBlock *block, TileOpVisitor visit, void *state);

/* May the op be removed if its results are unused (looks into regions)? May it be moved or merged? */
bool tile_op_is_pure(const TileOp *op);
bool tile_op_reads(const TileOp *op);
bool tile_op_writes(const TileOp *op);
/* May it run while the grid before still stores: is it pure, or about barriers of the block alone (looks into regions)? */
bool tile_op_precedes_grid_wait(const TileOp *op);
/* May it access memory that other launches access, too (looks into regions)? In machine form. */
bool tile_op_reaches_memory(const TileOp *op);

#endif
