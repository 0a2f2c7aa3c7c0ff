/* What the launcher knows of compiled kernels: plain data, made by the driver in memory, or ahead of time and then read
 * from a linked object (image_bytes.h).
 *
 * A kernel has a signature, which holds for all of its code, and variants. A variant is code for one choice of type
 * parameters and static values and for the facts about the tensors that it relies on, together with the host
 * program that computes grid extents, sizes of temporaries, expected dimensions and `require` clauses. */
#ifndef TILE_LAUNCH_IMAGE_H
#define TILE_LAUNCH_IMAGE_H

#include "base/limits.h"
#include "base/print_line.h"
#include "base/tensor_map.h"
#include "lang/scalar/eval.h"
#include "tile/launch.h"

enum {
    TILE_MAX_PARAMETERS = 64,
    TILE_MAX_GENERICS = 16,
    TILE_MAX_STATICS = 32,
};

/* ---- types ---- */

/* X(ID, name, DLPack code, bits, class) */
#define TILE_HOST_TYPE_LIST(X)                                                                                         \
    X(BOOL, "bool", kDLBool, 8, UNSIGNED)                                                                              \
    X(I8, "i8", kDLInt, 8, SIGNED)                                                                                     \
    X(I16, "i16", kDLInt, 16, SIGNED)                                                                                  \
    X(I32, "i32", kDLInt, 32, SIGNED)                                                                                  \
    X(I64, "i64", kDLInt, 64, SIGNED)                                                                                  \
    X(U8, "u8", kDLUInt, 8, UNSIGNED)                                                                                  \
    X(U16, "u16", kDLUInt, 16, UNSIGNED)                                                                               \
    X(U32, "u32", kDLUInt, 32, UNSIGNED)                                                                               \
    X(U64, "u64", kDLUInt, 64, UNSIGNED)                                                                               \
    X(F8E4M3, "f8e4m3", kDLFloat8_e4m3fn, 8, FLOAT)                                                                    \
    X(F8E5M2, "f8e5m2", kDLFloat8_e5m2, 8, FLOAT)                                                                      \
    X(F16, "f16", kDLFloat, 16, FLOAT)                                                                                 \
    X(BF16, "bf16", kDLBfloat, 16, FLOAT)                                                                              \
    X(F32, "f32", kDLFloat, 32, FLOAT)                                                                                 \
    X(F64, "f64", kDLFloat, 64, FLOAT)

typedef enum TileHostType {
#define TILE_HOST_TYPE_ENUM(id, name, code, bits, class) TILE_HOST_##id,
    TILE_HOST_TYPE_LIST(TILE_HOST_TYPE_ENUM)
#undef TILE_HOST_TYPE_ENUM
        TILE_HOST_TYPE_COUNT
} TileHostType;

typedef enum TileHostClass { TILE_HOST_CLASS_UNSIGNED, TILE_HOST_CLASS_SIGNED, TILE_HOST_CLASS_FLOAT } TileHostClass;

const char *tile_host_type_name(TileHostType type);
TileHostClass tile_host_type_class(TileHostType type);
static inline unsigned tile_host_type_log_bytes(TileHostType type) {
    enum { LOG_64 = 3, LOG_32 = 2, LOG_16 = 1, LOG_8 = 0 };
    static const uint64_t log_bytes = 0 /* two bits a type */
#define TILE_HOST_TYPE_LOG(id, name, code, bits, class) | (uint64_t)LOG_##bits << 2 * TILE_HOST_##id
        TILE_HOST_TYPE_LIST(TILE_HOST_TYPE_LOG)
#undef TILE_HOST_TYPE_LOG
        ;
    return (unsigned)(log_bytes >> 2 * type & 3);
}
static inline unsigned tile_host_type_bytes(TileHostType type) { return 1u << tile_host_type_log_bytes(type); }
DLDataType tile_host_type_dtype(TileHostType type);
/* TILE_HOST_TYPE_COUNT when the language has no such type. */
TileHostType tile_host_type_find(DLDataType dtype);

/* ---- the host program ---- */

/* Straight-line code in SSA form: instruction i computes value i from earlier values. Every operation is total, with
 * the meaning that the language gives it in lang/scalar/eval.h, whose operations are those of the host behind its own
 * three. A value is the bits of its type, as in lang/scalar/scalar.h. */
typedef enum TileHostOp {
    TILE_HOST_CONST,  /* bits */
    TILE_HOST_DIM,    /* extent of dimension b of parameter a */
    TILE_HOST_SCALAR, /* scalar parameter a */
#define EVAL_OP(id, operands) TILE_HOST_##id,
#include "lang/scalar/eval_ops.def"
    TILE_HOST_OP_COUNT
} TileHostOp;

enum { TILE_HOST_FIRST_EVAL = TILE_HOST_OP_COUNT - TILE_EVAL_COUNT };

typedef struct TileHostInstruction {
    uint8_t op;       /* TileHostOp */
    uint8_t type;     /* TileHostType of the result */
    uint8_t from;     /* of the operands, but for the condition of SELECT */
    uint8_t approx;   /* transcendental operations: the short form */
    uint32_t a, b, c; /* operands; those that the operation does not take repeat a */
    uint64_t bits;    /* CONST */
} TileHostInstruction;

typedef struct TileHostNamed { /* a value that a message shows */
    const char *name;
    uint32_t value;
    uint8_t type; /* TileHostType */
} TileHostNamed;

/* ---- signature ---- */

/* How elements lie in bytes, where they are none of TileHostType. */
typedef enum TileImageFormat {
    TILE_IMAGE_PLAIN,
    TILE_IMAGE_I4, /* these three: two in a byte along the last axis, the lower half first */
    TILE_IMAGE_U4,
    TILE_IMAGE_F4E2M1,
    TILE_IMAGE_F8E8M0, /* powers of two, a byte each */
    TILE_IMAGE_FORMAT_COUNT,
} TileImageFormat;

typedef struct TileImageParameter {
    const char *name;
    const char *type_text;         /* as written */
    const char *const *dimensions; /* as written, one for each; NULL for scalars */
    uint8_t kind;                  /* TileParameterKind */
    uint8_t access;                /* TileParameterAccess */
    uint8_t rank;
    uint8_t type;   /* TileHostType, unless generic */
    int8_t generic; /* index of the type parameter, or -1 */
    uint8_t format; /* TileImageFormat; other than PLAIN: `type` is u8 */
} TileImageParameter;

typedef struct TileImageGeneric { /* a type parameter that the arguments decide */
    const char *name;
    const char *class_text; /* "float", "f16 | bf16 | f32" */
    uint32_t types;         /* bit set of TileHostType */
} TileImageGeneric;

typedef struct TileImageStatic { /* a dimension (or, axis -1, a scalar) whose value is compiled in */
    const char *name;
    uint16_t parameter;
    int16_t axis;
} TileImageStatic;

typedef struct TileImageSetting { /* what TileSettingInfo says */
    const char *name, *allowed, *value, *otherwise, *family;
    uint32_t types; /* bit set of TileHostType */
    uint8_t kind;   /* TileSettingKind */
} TileImageSetting;

/* What follows `gpu` is not there for linked kernels. */
typedef struct TileImageSignature {
    const char *name, *text;
    const char *refused; /* why this kernel cannot be launched at all; NULL when it can */
    const TileImageParameter *parameters;
    const TileImageGeneric *generics;
    const TileImageStatic *statics;
    uint32_t parameter_count, generic_count, static_count;
    uint64_t overlap; /* parameters (bit set) that may share memory with one another */
    bool exported;    /* an export item's instance of another kernel of the library */
    bool gpu;         /* its tensors lie on an NVIDIA GPU, and its code runs there */
    bool maps;        /* compilers only: code may have tensor maps, also where it is emulated */
    bool prints;      /* maybe */
    const char *doc;  /* NULL: none */
    const TileImageSetting *settings;
    uint32_t setting_count;
} TileImageSignature;

/* ---- code ---- */

/* Dimension `axis` of `parameter` must have the value `expected`. */
typedef struct TileImageDimension {
    uint16_t parameter, axis;
    uint32_t expected;          /* value of the host program */
    const char *text;           /* "N", "2 * N", "3" */
    int16_t origin;             /* the parameter whose dimension the expected value is, or -1 */
    const TileHostNamed *named; /* what the expectation was computed from */
    uint32_t named_count;
} TileImageDimension;

typedef struct TileImageRequire {
    uint32_t condition;
    const char *text;
    const TileHostNamed *named;
    uint32_t named_count;
    uint8_t chooses; /* no demand of the kernel: code made ahead of time is chosen where it is true */
} TileImageRequire;

typedef struct TileImageTemp {
    const char *name;
    uint8_t type; /* TileHostType */
    uint8_t rank;
    uint8_t align; /* bytes, a power of two: rows begin at multiples (base/temp.h); 0: there are no gaps behind them */
    uint32_t extents[TILE_MAX_RANK]; /* values of the host program */
} TileImageTemp;

/* slots: one 8-byte word for each of: the code's tensors (address, extents, strides in bytes) and scalars (in the
 * low bytes) in order, then its temporaries (as tensors). Runs programs begin .. end-1, numbered row-major over the
 * grid. scratch: 64-byte aligned, of the phase's scratch_bytes, this thread's alone. A phase with assertions takes its
 * first 8 bytes as an int64_t that is 0, and leaves there the number (1, 2, ..) of the first that failed. One that
 * prints finds a TilePhasePrint in the next 8 bytes, and its first argument in the 8 behind. */
typedef void (*TilePhasePrint)(void *context, int64_t number, const uint64_t *const *items);
typedef void (*TilePhaseEntry)(const uint64_t *slots, int64_t begin, int64_t end, void *scratch);

typedef struct TileImagePhase {
    TilePhaseEntry entry;
    uint64_t scratch_bytes;
    uint32_t bands; /* the range counts these parts of each program, which are cheapest in one range; 0: it counts programs */
    uint8_t rank;
    uint32_t extents[TILE_MAX_GRID_RANK];
    const char *const *assertions; /* "file:line:column: assertion failed: text", by number less 1 */
    uint32_t assertion_count;
    const char *const *prints; /* templates of base/print_line.h, by number less 1 */
    uint32_t print_count;
} TileImagePhase;

typedef struct TileImageCode TileImageCode;
typedef struct TileCudaModule TileCudaModule; /* launch/cuda.h */
struct TileImageCode {
    const TileHostInstruction *host;
    const TileImageDimension *dimensions;
    const TileImageRequire *requires;
    const TileImageTemp *temps;
    const TileImagePhase *phases;
    const uint8_t *order; /* parameters of the signature, in the order in which the code takes them */
    uint32_t host_count, dimension_count, require_count, temp_count, phase_count, order_count;
    uint64_t need[TILE_MAX_PARAMETERS];  /* bits of the tensors' words (guard.h) that the code relies on */
    uint64_t asked[TILE_MAX_PARAMETERS]; /* those that the compiler asked for: with others it makes the same code */
    /* For code that is not native, else NULL: runs the whole kernel, instead of the phases' entries. Thread safe. */
    tile_status (*interpret)(const TileImageCode *code, const uint64_t *slots, TilePrintLine print, void *print_host,
                             TileError *error);
    /* Code for GPUs, instead of the phases' entries; else NULL. */
    TileCudaModule *gpu;
    void (*destroy)(TileImageCode *code);
};

/* ---- code that was compiled ahead of time ---- */

/* A tensor map among a phase's parameters: of which tensor, and how large its boxes are (base/tensor_map.h). */
typedef struct TileImageMap {
    uint32_t slot; /* the word with the tensor's address; its extents and strides are behind it */
    uint16_t box[TILE_MAP_MOST_RANK];
    uint8_t rank, element_bytes;
    uint8_t swizzle; /* bytes */
    uint8_t step[TILE_MAP_MOST_RANK]; /* from one element of a box to the next; 0 is 1 */
    uint8_t cut; /* a bit for each axis along which a box has at most as many elements as the tensor */
    /* Mode im2col: so many positions of a batch of images, each axis of which has as many as the word in the slot says, from the corner on.
     * 0: mode tiled. */
    uint16_t positions;
    int16_t corner[TILE_MAP_MOST_IMAGE_AXES];
    uint32_t over[TILE_MAP_MOST_IMAGE_AXES];
} TileImageMap;

/* The axes of an image: all but the first and the last. 0: the mode is tiled. */
static inline unsigned tile_image_map_axes(const TileImageMap *map) { return map->positions && map->rank > 2 ? map->rank - 2u : 0; }

/* A phase as a GPU has it; its shared memory is the phase's scratch_bytes. */
typedef struct TileImageEntry {
    const char *symbol;
    uint32_t threads; /* of a block */
    uint8_t waits;    /* for the end of the grid before it */
    uint8_t resident; /* as many blocks as run at a time, each of which takes programs in turn */
    uint32_t map_count;
    const TileImageMap *maps; /* parameters behind the end of the range of programs */
} TileImageEntry;

/* Code for NVIDIA GPUs, in the place of entries. */
typedef struct TileImageBinary {
    const char *ptx;    /* text, and a zero byte */
    const void *cubin;  /* the same, assembled; NULL: is not there */
    uint32_t ptx_bytes; /* without the zero byte */
    uint32_t cubin_bytes;
    uint32_t capability;           /* 10 * major + minor that it is made for; later ones run the PTX too */
    uint8_t alone;                 /* they do not: it has instructions of that one alone */
    const TileImageEntry *entries; /* one for each phase */
    uint32_t entry_count;
} TileImageBinary;

typedef struct TileImageVariant {
    TileImageCode code;            /* the first member: its address is the variant's */
    const char *label;             /* as asked for: "x: align 16, N % 16 == 0", "general" */
    uint32_t target;               /* index of the image's targets */
    const int64_t *statics;        /* one value for each static of the signature, as in TileImageRequest */
    const TileImageBinary *binary; /* GPUs; NULL: the phases have entries */
} TileImageVariant;

typedef struct TileImageKernel {
    const char *symbol; /* the typed function's name: "softmax_f32" */
    TileImageSignature signature;
    const TileImageVariant *variants; /* for each target the most specialised first */
    uint32_t variant_count;
} TileImageKernel;

/* Kernels for GPUs stand behind all others, under the symbols of those that they are for where there are such. */
typedef struct TileImage {
    const char *const *targets; /* names; of those that can run, the last is used */
    const TileImageKernel *kernels;
    uint32_t target_count, kernel_count;
} TileImage;

/* ---- where code comes from ---- */

/* What a variant is compiled for: one value for each type parameter and static of the signature, and the bits of
 * each tensor's word that may be taken for granted. */
typedef struct TileImageRequest {
    uint8_t generics[TILE_MAX_GENERICS]; /* TileHostType */
    int64_t statics[TILE_MAX_STATICS];   /* integers; the bits of a double for float scalars */
    uint64_t facts[TILE_MAX_PARAMETERS];
    int64_t values[TILE_MAX_PARAMETERS]; /* of the integer scalars whose facts have TILE_GUARD_VALUE */
    uint32_t tuned;   /* which of the source's sets of constants, counted from 1; 0: the text's own */
    bool complete;    /* `facts` has all that hold of the arguments */
    bool provisional; /* served by general code for the time being */
    bool missed;      /* there was no code for it */
    bool waits;       /* general code does not do, not even for the time being */
} TileImageRequest;

/* Compiles; called from any thread, several at once for different requests. A failure may set *report, which is NULL
 * before. `compile` is NULL where the kernels have all the code that they will ever have (linked.c). */
typedef struct TileView TileView; /* launch/argument.h */
typedef struct TileImageSource {
    tile_status (*compile)(void *state, uint32_t kernel, const TileImageRequest *request, TileImageCode **code,
                           TileReport **report);
    void (*destroy)(void *state);
    void *state;
    const TileSettings *settings; /* NULL: those of the environment */
    /* The request's `tuned` for these arguments, the rest of it but for the facts being given; NULL: always 0. */
    uint32_t (*choose)(void *state, uint32_t kernel, const TileImageRequest *request, const TileView *views);
} TileImageSource;

/* Takes the source, also on failure. Signatures are borrowed from it. */
tile_status tile_library_create(const TileImageSignature *signatures, uint32_t count, TileImageSource source,
                                TileLibrary **library);
/* The state of the library's source. */
void *tile_library_source(const TileLibrary *library);

/* Fills the error, which may be NULL, and returns the status. */
tile_status tile_error_set(TileError *error, tile_status status, const char *format, ...) TILE_PRINTF(3, 4);
/* Behind what is wrong already, on a line of its own; where nothing was (`before` is TILE_OK) the error is set anew. */
tile_status tile_error_add(TileError *error, tile_status before, tile_status status, const char *format, ...)
    TILE_PRINTF(4, 5);
/* Says which argument the error that was just set or added is about, and what is wrong with it. It is the first one's
 * that counts: `before` as for tile_error_add. */
void tile_error_about(TileError *error, tile_status before, int argument, TileErrorCode code);

#endif
