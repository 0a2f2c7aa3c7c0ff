#include "matrix.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool split_row(Row *row) {
    char **fields[] = {&row->kernel, &row->types, &row->target,    &row->sizes,
                       &row->views,  &row->data,  &row->placement, &row->tune};
    char *rest = row->text;
    size_t count = sizeof fields / sizeof fields[0];
    for (size_t i = 0; i < count; i++) *fields[i] = strsep(&rest, "\t");
    return row->tune && !rest;
}

static bool add_row(Matrix *matrix, const char *line, int number) {
    Row *rows = realloc(matrix->rows, sizeof(Row) * (matrix->count + 1));
    if (!rows) return false;
    matrix->rows = rows;
    Row *row = &rows[matrix->count];
    *row = (Row){.line = number, .text = strdup(line)};
    if (!row->text) return false;
    matrix->count++;
    if (split_row(row)) return true;
    fprintf(stderr, "line %d of the matrix has not eight fields\n", number);
    return false;
}

bool matrix_read(Matrix *matrix, const char *path) {
    *matrix = (Matrix){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    char line[1024];
    bool good = true;
    for (int number = 1; good && fgets(line, sizeof line, file); number++) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] && line[0] != '#') good = add_row(matrix, line, number);
    }
    fclose(file);
    return good && matrix->count > 0;
}

void matrix_destroy(Matrix *matrix) {
    for (size_t i = 0; i < matrix->count; i++) free(matrix->rows[i].text);
    free(matrix->rows);
}

bool matrix_value(const char *settings, const char *name, char *value, size_t size) {
    size_t length = strlen(name);
    for (const char *at = settings; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, length) != 0 || at[length] != '=') continue;
        size_t end = strcspn(at + length + 1, " ");
        snprintf(value, size, "%.*s", (int)end, at + length + 1);
        return true;
    }
    return false;
}

/* A row for any variant of file:kernel. */
static bool has_row(const Matrix *matrix, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < matrix->count; i++) {
        const char *kernel = matrix->rows[i].kernel;
        if (strncmp(kernel, name, length) == 0 && (kernel[length] == 0 || kernel[length] == '/')) return true;
    }
    return false;
}

static bool file_is_covered(const Matrix *matrix, const char *directory, const char *file) {
    char path[4096], line[1024], kernel[256], name[512];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    FILE *stream = fopen(path, "r");
    if (!stream) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    bool covered = true;
    while (fgets(line, sizeof line, stream)) {
        if (sscanf(line, "kernel %255[A-Za-z0-9_]", kernel) != 1) continue;
        snprintf(name, sizeof name, "%.*s:%s", (int)strcspn(file, "."), file, kernel);
        if (has_row(matrix, name)) continue;
        printf("FAIL %s has no row\n", name);
        covered = false;
    }
    fclose(stream);
    return covered;
}

bool matrix_covers(const Matrix *matrix, const char *directory) {
    DIR *folder = opendir(directory);
    if (!folder) {
        fprintf(stderr, "%s: %s\n", directory, strerror(errno));
        return false;
    }
    bool covered = true;
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *suffix = strrchr(entry->d_name, '.');
        if (suffix && strcmp(suffix, ".tile") == 0) covered &= file_is_covered(matrix, directory, entry->d_name);
    }
    closedir(folder);
    return covered;
}
