#define _GNU_SOURCE
#include "reviewed.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decisions.h"

enum { FIELDS = 4, MAX_LINES = 500 };

typedef struct Line {
    int number;
    char *text, *kernel, *target, *why;
    unsigned kind;
} Line;

struct Reviewed {
    Line lines[MAX_LINES];
    size_t count;
    /* Shared with child processes: was there a row that the line is about, and one in which the decision differed? */
    struct {
        _Atomic bool seen, applied;
    } * notes;
};

static bool read_line(Line *line, int number, const char *text) {
    char *fields[FIELDS], *rest = line->text = strdup(text);
    size_t count = 0;
    if (!rest) return false;
    rest[strcspn(rest, "\n")] = 0;
    for (char *field; (field = strsep(&rest, "\t")); count++)
        if (count < FIELDS) fields[count] = field;
    line->number = number;
    for (line->kind = 0; count == FIELDS && line->kind < DECISION_KINDS; line->kind++)
        if (strcmp(fields[2], decision_kind(line->kind)) == 0) break;
    if (count != FIELDS || line->kind == DECISION_KINDS || !*fields[3]) return false;
    line->kernel = fields[0], line->target = fields[1], line->why = fields[3];
    return true;
}

Reviewed *reviewed_read(const char *path) {
    FILE *file = fopen(path, "r");
    Reviewed *reviewed = calloc(1, sizeof *reviewed);
    char text[1024];
    bool good = file && reviewed;
    if (good) {
        void *shared =
            mmap(NULL, MAX_LINES * sizeof *reviewed->notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        good = shared != MAP_FAILED;
        if (good) reviewed->notes = shared;
    }
    for (int number = 1; good && fgets(text, sizeof text, file); number++) {
        if (*text == '#' || *text == '\n') continue;
        good = reviewed->count < MAX_LINES && read_line(&reviewed->lines[reviewed->count++], number, text);
        if (!good) fprintf(stderr, "%s:%d: not kernel, target, kind and reason\n", path, number);
    }
    if (!file) fprintf(stderr, "%s cannot be read\n", path);
    if (file) fclose(file);
    if (good) return reviewed;
    reviewed_destroy(reviewed);
    return NULL;
}

void reviewed_destroy(Reviewed *reviewed) {
    if (!reviewed) return;
    for (size_t i = 0; i < reviewed->count; i++) free(reviewed->lines[i].text);
    if (reviewed->notes) munmap(reviewed->notes, MAX_LINES * sizeof *reviewed->notes);
    free(reviewed);
}

static bool is_about(const Line *line, const Row *row, const char *target) {
    return strcmp(line->kernel, row->kernel) == 0 && strcmp(line->target, target) == 0;
}

unsigned reviewed_kinds(const Reviewed *reviewed, const Row *row, const char *target) {
    unsigned kinds = 0;
    for (size_t i = 0; i < reviewed->count; i++)
        if (is_about(&reviewed->lines[i], row, target)) kinds |= 1u << reviewed->lines[i].kind;
    return kinds;
}

void reviewed_note(const Reviewed *reviewed, const Row *row, const char *target, unsigned kinds) {
    for (size_t i = 0; i < reviewed->count; i++) {
        if (!is_about(&reviewed->lines[i], row, target)) continue;
        atomic_store(&reviewed->notes[i].seen, true);
        if (kinds >> reviewed->lines[i].kind & 1) atomic_store(&reviewed->notes[i].applied, true);
    }
}

static bool has_row(const Line *line, const Matrix *matrix) {
    for (size_t i = 0; i < matrix->count; i++) {
        const char *target = matrix->rows[i].target;
        if (is_about(line, &matrix->rows[i], strncmp(target, "machine.", 8) ? target : target + 8)) return true;
    }
    return false;
}

/* Without ptxas, spills are not known. */
static bool is_known(const Line *line) {
    return strcmp(decision_kind(line->kind), "spills") != 0 || decisions_know_spills();
}

bool reviewed_all_apply(const Reviewed *reviewed, const Matrix *matrix, bool few) {
    bool all = true;
    for (size_t i = 0; i < reviewed->count; i++) {
        const Line *line = &reviewed->lines[i];
        bool idle = !few && is_known(line) && atomic_load(&reviewed->notes[i].seen) &&
                    !atomic_load(&reviewed->notes[i].applied);
        if (!idle && has_row(line, matrix)) continue;
        printf("FAIL reviewed line %d: %s for %s: %s\n", line->number, line->kernel, line->target,
               idle ? "nothing differs any more" : "there is no such row");
        all = false;
    }
    return all;
}
