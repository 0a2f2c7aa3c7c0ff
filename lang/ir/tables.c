/* The tables of ops.def and attributes.def as data, and lookup by name. */
#include <string.h>

#include "lang/ir/ir.h"

enum { T = TILE_FORM_TILE, M = TILE_FORM_MACHINE, TM = TILE_FORM_TILE | TILE_FORM_MACHINE };
enum {
    PURE = TILE_TRAIT_PURE,
    READS = TILE_TRAIT_READS,
    WRITES = TILE_TRAIT_WRITES,
    COMMUTATIVE = TILE_TRAIT_COMMUTATIVE,
    TERMINATOR = TILE_TRAIT_TERMINATOR,
    FLOAT_ONLY = TILE_TRAIT_FLOAT_ONLY,
    INT_ONLY = TILE_TRAIT_INT_ONLY,
    COSTLY = TILE_TRAIT_COSTLY,
    FUNCTION = TILE_TRAIT_FUNCTION,
    ANY = TILE_ANY_COUNT
};

static const TileOpInfo ops[TILE_OP_COUNT] = {
#define A(key) | ((TileAttributeSet)1 << TILE_ATTRIBUTE_##key)
#define O(key)
#define OP(id, mnemonic_, class_, operands_, results_, regions_, forms_, traits_, rule, attributes, doc_)              \
    [TILE_OP_##id] = {.mnemonic = mnemonic_,                                                                           \
                      .doc = doc_,                                                                                     \
                      .class = TILE_CLASS_##class_,                                                                    \
                      .forms = forms_,                                                                                 \
                      .operands = operands_,                                                                           \
                      .results = results_,                                                                             \
                      .regions = regions_,                                                                             \
                      .traits = traits_,                                                                               \
                      .required = 0 attributes},
#include "lang/ir/ops.def"
#undef OP
#undef A
#undef O
};

/* The optional attributes: the same columns with A and O swapped. */
static const TileAttributeSet optional_attributes[TILE_OP_COUNT] = {
#define A(key)
#define O(key) | ((TileAttributeSet)1 << TILE_ATTRIBUTE_##key)
#define OP(id, mnemonic, class, operands, results, regions, forms, traits, rule, attributes, doc)                      \
    [TILE_OP_##id] = 0 attributes,
#include "lang/ir/ops.def"
#undef OP
#undef A
#undef O
};

_Static_assert(TILE_ATTRIBUTE_COUNT <= 128, "attribute sets are 128 bits wide");

const TileOpInfo *tile_op_info(TileOpId id) { return &ops[id]; }

bool tile_attribute_is_general(TileAttributeKey key) {
    return key == TILE_ATTRIBUTE_STAGE || key == TILE_ATTRIBUTE_CLUSTER || key == TILE_ATTRIBUTE_AHEAD ||
           key == TILE_ATTRIBUTE_PARTITION || key == TILE_ATTRIBUTE_HOME || key == TILE_ATTRIBUTE_BLOCK ||
           key == TILE_ATTRIBUTE_POINTS || key == TILE_ATTRIBUTE_RUNS || key == TILE_ATTRIBUTE_NEST || key == TILE_ATTRIBUTE_SHARED;
}

bool tile_op_allows(TileOpId id, TileAttributeKey key) {
    return tile_attribute_is_general(key) || ((ops[id].required | optional_attributes[id]) >> key & 1u) != 0;
}

bool tile_op_is_of_warpgroup(TileOpId id) {
    return id == TILE_OP_WGMMA || id == TILE_OP_WGMMA_FENCE || id == TILE_OP_WGMMA_COMMIT || id == TILE_OP_WGMMA_WAIT ||
           id == TILE_OP_SET_REGISTERS;
}

static bool same_text(const char *name, const char *text, size_t length) {
    return *name == *text && strncmp(name, text, length) == 0 && name[length] == 0;
}

TileOpId tile_op_find(const char *mnemonic, size_t length) {
    int id = 0;
    while (id < TILE_OP_COUNT && !same_text(ops[id].mnemonic, mnemonic, length)) id++;
    return (TileOpId)id;
}

static const struct {
    const char *name;
    TileAttributeStorage storage;
} attributes[TILE_ATTRIBUTE_COUNT] = {
#define ATTRIBUTE(key, mnemonic, storage, doc) {mnemonic, TILE_STORAGE_##storage},
#include "lang/ir/attributes.def"
#undef ATTRIBUTE
};

const char *tile_attribute_name(TileAttributeKey key) { return attributes[key].name; }
TileAttributeStorage tile_attribute_storage(TileAttributeKey key) { return attributes[key].storage; }

TileAttributeKey tile_attribute_find(const char *name, size_t length) {
    int key = 0;
    while (key < TILE_ATTRIBUTE_COUNT && !same_text(attributes[key].name, name, length)) key++;
    return (TileAttributeKey)key;
}

static const struct {
    TileAttributeKey key;
    const char *text;
} names[TILE_NAME_COUNT] = {
#define ATTRIBUTE(key, mnemonic, storage, doc)
#define NAME_OF(key, id, mnemonic) {TILE_ATTRIBUTE_##key, mnemonic},
#include "lang/ir/attributes.def"
#undef NAME_OF
#undef ATTRIBUTE
};

const char *tile_name_text(TileAttributeKey key, int64_t value) {
    return value >= 0 && value < TILE_NAME_COUNT && names[value].key == key ? names[value].text : NULL;
}

int64_t tile_name_find(TileAttributeKey key, const char *text, size_t length) {
    for (int i = 0; i < TILE_NAME_COUNT; i++)
        if (names[i].key == key && same_text(names[i].text, text, length)) return i;
    return -1;
}

/* ---- roles of parameters ---- */

static const struct {
    const char *word;
    bool of_argument, of_axis;
} roles[] = {
#define ROLE(id, word, of_argument, of_axis, doc) {word, of_argument, of_axis},
#include "lang/ir/roles.def"
#undef ROLE
};

const char *tile_role_word(TileParameterRole role) { return roles[role].word; }
bool tile_role_has_argument(TileParameterRole role) { return roles[role].of_argument; }
bool tile_role_has_axis(TileParameterRole role) { return roles[role].of_axis; }

TileParameterRole tile_role_find(const char *word, size_t length) {
    int role = 0;
    while (role < TILE_ROLE_COUNT && !same_text(roles[role].word, word, length)) role++;
    return (TileParameterRole)role;
}
