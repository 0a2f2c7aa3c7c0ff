#include "record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "contents.h"

void record_describe(const Program *program, const Target *target, char *words, size_t size) {
    static const char *const views[] = {
        "contiguous", "gaps between rows", "permuted", "backwards", "repeated", "spread", "offset"};
    size_t used = (size_t)snprintf(words, size, "// target %s\n", target->label);
    for (int i = 0; i < program->tensor_count; i++) {
        const Tensor *tensor = program->tensors[i];
        if (!tensor->used || used >= size) continue;
        used += (size_t)snprintf(words + used, size - used, "// %s: %s[", tensor->text, tensor_word(tensor));
        for (int d = 0; d < tensor->rank && used < size; d++)
            used +=
                (size_t)snprintf(words + used, size - used, "%s%" PRId64, d ? ", " : "", extent_value(tensor->dim[d]));
        if (used < size) used += (size_t)snprintf(words + used, size - used, "], %s\n", views[tensor->view]);
    }
    for (int i = 0; i < program->name_count && used < size; i++) {
        const Name *name = program->names[i];
        char value[80];
        number_say(value, sizeof value, name->shape.scalar, (uint64_t)name->value);
        if (name->used) used += (size_t)snprintf(words + used, size - used, "// %s = %s\n", name->text, value);
    }
}

/* 16-bit types that NumPy does not have, and 8-bit floats, are written as integers: tilec uses the parameter's type. */
static const char *npy_type(Type type) {
    static const char *const names[TYPE_COUNT] = {
        [TYPE_F32] = "<f4",    [TYPE_F16] = "<f2", [TYPE_F64] = "<f8", [TYPE_BF16] = "<u2", [TYPE_F8E4M3] = "|u1",
        [TYPE_F8E5M2] = "|u1", [TYPE_I8] = "|i1",  [TYPE_I16] = "<i2", [TYPE_I32] = "<i4",  [TYPE_I64] = "<i8",
        [TYPE_U8] = "|u1",     [TYPE_U16] = "<u2", [TYPE_U32] = "<u4", [TYPE_U64] = "<u8",  [TYPE_BOOL] = "|b1"};
    return names[type];
}

static void write_array(const Tensor *tensor, const char *path) {
    Contents *contents = contents_make(tensor);
    Array array;
    char shape[160] = "", header[400];
    if (!contents_place(contents, tensor, &array)) return;
    for (int d = 0; d < tensor->rank; d++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%" PRId64 ", ", array.extent[d]);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", npy_type(array.type),
             shape);
    FILE *file = fopen(path, "wb");
    if (!file) return array_destroy(&array);
    int length = (int)((strlen(header) + 11 + 63) / 64 * 64 - 10);
    fprintf(file, "\x93NUMPY\x01%c%c%c%-*s\n", 0, length & 255, length >> 8, length - 1, header);
    for (int64_t i = 0; i < array.count; i++) fwrite(array_at(&array, i), type_bytes(array.type), 1, file);
    fclose(file);
    array_destroy(&array);
}

static void write_command(FILE *file, const Program *program, const Target *target, const char *base) {
    bool emulated = strncmp(target->label, "sm_", 3) == 0;
    fprintf(file, "// tilec run %s.tile", base);
    for (int i = 0; i < program->tensor_count; i++) {
        const Tensor *tensor = program->tensors[i];
        char path[200];
        if (!tensor->used || tensor->role == TENSOR_TEMP) continue;
        snprintf(path, sizeof path, "%s.%s.npy", base, tensor->text);
        write_array(tensor, path);
        fprintf(file, " %s=%s", tensor->text, path);
        if (tensor->role != TENSOR_IN) fprintf(file, " --out %s=@", tensor->text);
    }
    for (int i = 0; i < program->name_count; i++) {
        const Name *name = program->names[i];
        Type type = name->shape.scalar;
        uint64_t bits = (uint64_t)name->value;
        if (name->kind != NAME_PARAMETER || !name->used) continue;
        if (type_is_float(type))
            fprintf(file, " %s=%.17g", name->text, number_value(type, bits));
        else if (type_is_signed(type))
            fprintf(file, " %s=%" PRId64, name->text, (int64_t)number_integer(type, bits));
        else
            fprintf(file, " %s=%" PRIu64, name->text, (uint64_t)number_integer(type, bits));
    }
    fprintf(file, " --target=%s%s\n", target->name, emulated ? " --emulate" : "");
}

void record_write(Program *program, const Target *target, const Verdict *verdict, const char *base) {
    static char text[MAX_TEXT], words[8192];
    char path[200];
    program_print(program, text, sizeof text);
    record_describe(program, target, words, sizeof words);
    snprintf(path, sizeof path, "%s.tile", base);
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "%s// %s: ", words, outcome_words(verdict->outcome));
        for (const char *at = verdict->words; *at; at++) fprintf(file, *at == '\n' ? "\n// " : "%c", *at);
        fprintf(file, "\n");
        write_command(file, program, target, base);
        fprintf(file, "%s", text);
        fclose(file);
    }
    printf("     cut down to %s\n%s%s", path, words, text);
}
