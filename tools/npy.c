#include "tools/npy.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---- */

static tile_status fail_errno(TileText *error, const char *path, const char *what) {
    tile_text_format(error, "%s: %s: %s", path, what, strerror(errno));
    return errno == ENOENT ? TILE_NOT_FOUND : errno == ENOMEM ? TILE_OUT_OF_MEMORY : TILE_IO;
}

/* A damaged file is an error of the environment; a valid one that does not fit is the user's. */
static tile_status fail_damaged(TileText *error, const char *path, const char *what) {
    tile_text_format(error, "%s: %s", path, what);
    return TILE_IO;
}

static tile_status map_file(const char *path, TileArray *array, TileText *error) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return fail_errno(error, path, "cannot open");
    struct stat info;
    tile_status status = TILE_OK;
    if (fstat(file, &info) != 0) {
        status = fail_errno(error, path, "cannot read");
    } else if (!S_ISREG(info.st_mode)) {
        tile_text_format(error, "%s: is not a file", path);
        status = TILE_IO;
    } else if (info.st_size < 10) {
        status = fail_damaged(error, path, "is too short for a .npy file");
    } else {
        array->storage_size = (size_t)info.st_size;
        array->storage = mmap(NULL, array->storage_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
        if (array->storage == MAP_FAILED) {
            array->storage = NULL;
            status = fail_errno(error, path, "cannot map");
        } else {
            array->mapped = true;
        }
    }
    close(file);
    return status;
}

typedef struct Header {
    const char *text, *end; /* the dictionary */
    char type[16];
    bool fortran, has_type, has_order, has_shape;
    unsigned rank;
    int64_t extent[TILE_MAX_TENSOR_RANK];
} Header;

static void skip_spaces(Header *h) {
    while (h->text < h->end && isspace((unsigned char)*h->text)) h->text++;
}

static bool accept(Header *h, char character) {
    skip_spaces(h);
    if (h->text == h->end || *h->text != character) return false;
    h->text++;
    return true;
}

static bool accept_word(Header *h, const char *word) {
    size_t length = strlen(word);
    skip_spaces(h);
    if ((size_t)(h->end - h->text) < length || memcmp(h->text, word, length) != 0) return false;
    h->text += length;
    return true;
}

static bool read_quoted(Header *h, char *out, size_t size) {
    skip_spaces(h);
    if (h->text == h->end || (*h->text != '\'' && *h->text != '"')) return false;
    char quote = *h->text++;
    size_t length = 0;
    while (h->text < h->end && *h->text != quote) {
        if (length + 1 == size) return false;
        out[length++] = *h->text++;
    }
    out[length] = 0;
    return accept(h, quote);
}

static bool read_extent(Header *h, int64_t *extent) {
    skip_spaces(h);
    int64_t value = 0;
    const char *start = h->text;
    for (; h->text < h->end && isdigit((unsigned char)*h->text); h->text++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *h->text - '0', &value))
            return false;
    *extent = value;
    return h->text > start;
}

static bool read_shape(Header *h) {
    if (!accept(h, '(')) return false;
    while (!accept(h, ')')) {
        if (h->rank == TILE_MAX_TENSOR_RANK || !read_extent(h, &h->extent[h->rank++])) return false;
        if (!accept(h, ',')) return accept(h, ')');
    }
    return true;
}

static bool read_dictionary(Header *h) {
    if (!accept(h, '{')) return false;
    while (!accept(h, '}')) {
        char key[32];
        if (!read_quoted(h, key, sizeof key) || !accept(h, ':')) return false;
        if (strcmp(key, "descr") == 0) {
            h->has_type = read_quoted(h, h->type, sizeof h->type);
            if (!h->has_type) return false;
        } else if (strcmp(key, "fortran_order") == 0) {
            h->fortran = accept_word(h, "True");
            h->has_order = h->fortran || accept_word(h, "False");
        } else if (strcmp(key, "shape") == 0) {
            h->has_shape = read_shape(h);
            if (!h->has_shape) return false;
        } else {
            return false;
        }
        if (!accept(h, ',')) {
            if (!accept(h, '}')) return false;
            break;
        }
    }
    return h->has_type && h->has_order && h->has_shape;
}

/* Finds the dictionary after magic and version; *data is the offset of the elements. */
static bool find_header(const TileArray *array, Header *h, size_t *data) {
    const unsigned char *bytes = array->storage;
    if (memcmp(bytes, "\x93NUMPY", 6) != 0 || bytes[6] < 1 || bytes[6] > 3) return false;
    size_t prefix = bytes[6] == 1 ? 10 : 12, length = bytes[8] | (size_t)bytes[9] << 8;
    if (array->storage_size < prefix) return false;
    if (bytes[6] > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > array->storage_size - prefix) return false;
    h->text = (const char *)bytes + prefix;
    h->end = h->text + length;
    *data = prefix + length;
    return true;
}

static const struct {
    const char *type;
    TileScalar scalar;
} types[] = {
    {"b1", TILE_BOOL}, {"i1", TILE_I8},  {"i2", TILE_I16}, {"i4", TILE_I32}, {"i8", TILE_I64}, {"u1", TILE_U8},
    {"u2", TILE_U16},  {"u4", TILE_U32}, {"u8", TILE_U64}, {"f2", TILE_F16}, {"f4", TILE_F32}, {"f8", TILE_F64},
};

static bool carries(const char *type, TileScalar named) {
    if (named == TILE_BF16) return strcmp(type, "u2") == 0 || strcmp(type, "V2") == 0;
    if (named == TILE_F8E4M3 || named == TILE_F8E5M2) return strcmp(type, "u1") == 0 || strcmp(type, "V1") == 0;
    return false;
}

static tile_status find_type(const char *path, const Header *h, TileScalar named, TileScalar *scalar, TileText *error) {
    const char *type = h->type;
    if (*type == '>') {
        tile_text_format(error, "%s: holds big-endian numbers; save it as little-endian", path);
        return TILE_INVALID_ARGUMENT;
    }
    if (*type == '<' || *type == '|' || *type == '=') type++;
    if (named != TILE_SCALAR_COUNT && carries(type, named)) {
        *scalar = named;
        return TILE_OK;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].type, type) != 0) continue;
        *scalar = types[i].scalar;
        if (named == TILE_SCALAR_COUNT || named == *scalar) return TILE_OK;
        tile_text_format(error, "%s: holds %s, not %s", path, tile_scalar_name(*scalar), tile_scalar_name(named));
        return TILE_INVALID_ARGUMENT;
    }
    tile_text_format(error, "%s: element type '%s' is not supported", path, h->type);
    return TILE_INVALID_ARGUMENT;
}

static void set_strides(TileArray *array, bool fortran) {
    int64_t stride = tile_scalar_bytes(array->scalar);
    for (unsigned i = 0; i < array->rank; i++) {
        unsigned axis = fortran ? i : array->rank - 1 - i;
        array->stride[axis] = stride;
        stride *= array->extent[axis] ? array->extent[axis] : 1;
    }
}

static tile_status describe_file(const char *path, TileScalar named, TileArray *array, TileText *error) {
    Header header = {0};
    size_t data;
    if (!find_header(array, &header, &data))
        return fail_damaged(error, path, "is not a .npy file of version 1 to 3, or is cut short");
    if (!read_dictionary(&header)) return fail_damaged(error, path, "has a header that cannot be read");
    TILE_TRY(find_type(path, &header, named, &array->scalar, error));
    array->rank = header.rank;
    memcpy(array->extent, header.extent, sizeof array->extent);
    int64_t count = tile_array_count(array->scalar, array->rank, array->extent);
    if (count < 0) return fail_damaged(error, path, "states a shape that is too large");
    size_t needed = (size_t)count * tile_scalar_bytes(array->scalar);
    if (needed > array->storage_size - data) {
        tile_text_format(error, "%s: is cut short: ", path);
        tile_array_describe(error, array);
        tile_text_format(error, " needs %zu bytes, the file has %zu", needed, array->storage_size - data);
        return TILE_IO;
    }
    array->data = (char *)array->storage + data;
    set_strides(array, header.fortran);
    return TILE_OK;
}

static void copy_element(void *state, char *element, int64_t index) {
    const TileArray *to = state;
    memcpy(to->data + index * (int64_t)tile_scalar_bytes(to->scalar), element, tile_scalar_bytes(to->scalar));
}

/* With a version 1 header the data may be misaligned; then it is copied. */
static tile_status align_data(TileArray *array, TileText *error) {
    if ((uintptr_t)array->data % tile_scalar_bytes(array->scalar) == 0) return TILE_OK;
    TileArray copy;
    TILE_TRY(tile_array_create(&copy, array->scalar, array->rank, array->extent, error));
    tile_array_visit(array, copy_element, &copy);
    tile_array_release(array);
    *array = copy;
    return TILE_OK;
}

tile_status tile_npy_read(const char *path, TileScalar named, TileArray *array, TileText *error) {
    *array = (TileArray){0};
    tile_status status = map_file(path, array, error);
    if (status == TILE_OK) status = describe_file(path, named, array, error);
    if (status == TILE_OK) status = align_data(array, error);
    if (status != TILE_OK && array->storage) tile_array_release(array);
    return status;
}

/* ---- writing ---- */

static const char *type_text(TileScalar scalar) {
    if (scalar == TILE_BF16) return "<u2";
    if (scalar == TILE_F8E4M3 || scalar == TILE_F8E5M2) return "|u1";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].scalar == scalar) return types[i].type;
    return "";
}

static void write_header(FILE *file, const TileArray *array, TileArena *arena) {
    TileText header = {.arena = arena};
    const char *type = type_text(array->scalar);
    const char *order = *type == '<' || *type == '|' ? "" : tile_scalar_bytes(array->scalar) == 1 ? "|" : "<";
    tile_text_format(&header, "{'descr': '%s%s', 'fortran_order': False, 'shape': (", order, type);
    for (unsigned i = 0; i < array->rank; i++)
        tile_text_format(&header, "%s%lld", i ? ", " : "", (long long)array->extent[i]);
    if (array->rank == 1) tile_text_add_char(&header, ',');
    tile_text_add(&header, "), }");
    while ((10 + header.length + 1) % 64) tile_text_add_char(&header, ' ');
    tile_text_add_char(&header, '\n');
    unsigned char prefix[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, header.length & 0xff, header.length >> 8 & 0xff};
    fwrite(prefix, 1, sizeof prefix, file);
    fwrite(header.text, 1, header.length, file);
}

typedef struct Sink {
    FILE *file;
    size_t size;
} Sink;

static void write_element(void *state, char *element, int64_t index) {
    Sink *sink = state;
    (void)index;
    fwrite(element, 1, sink->size, sink->file);
}

static bool is_row_major(const TileArray *array) {
    int64_t stride = tile_scalar_bytes(array->scalar);
    for (unsigned i = array->rank; i-- > 0;) {
        if (array->extent[i] > 1 && array->stride[i] != stride) return false;
        stride *= array->extent[i];
    }
    return true;
}

static bool write_contents(FILE *file, const TileArray *array, TileArena *arena) {
    Sink sink = {file, tile_scalar_bytes(array->scalar)};
    write_header(file, array, arena);
    if (is_row_major(array))
        fwrite(array->data, sink.size, (size_t)tile_array_count(array->scalar, array->rank, array->extent), file);
    else
        tile_array_visit(array, write_element, &sink);
    return !ferror(file) && fflush(file) == 0 && (fsync(fileno(file)) == 0 || errno == EINVAL);
}

tile_status tile_npy_write(TileReplacement *writer, const char *path, const TileArray *array, TileText *error) {
    errno = 0;
    int descriptor = tile_replacement_open(writer, path, error->arena);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    bool good = file && write_contents(file, array, error->arena);
    int reason = errno;
    if (file && fclose(file) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (good) return TILE_OK;
    errno = reason;
    fail_errno(error, path, "cannot write");
    tile_replacement_abandon(writer);
    return TILE_IO;
}
