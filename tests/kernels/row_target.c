#include "row_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char machine_prefix[] = "machine.";

bool row_is_emulated(const Row *row) { return strncmp(row->target, machine_prefix, sizeof machine_prefix - 1) == 0; }

void row_target_name(const Row *row, char *name, size_t size) {
    const char *begin = row->target + (row_is_emulated(row) ? sizeof machine_prefix - 1 : 0);
    snprintf(name, size, "%.*s", (int)strcspn(begin, "."), begin);
}

unsigned row_vector_length(const Row *row) {
    const char *begin = row->target + (row_is_emulated(row) ? sizeof machine_prefix - 1 : 0), *dot = strchr(begin, '.');
    return dot ? (unsigned)strtoul(dot + 1, NULL, 10) : 0;
}

bool row_is_on_device(const Row *row) { return strcmp(row->target, "cuda") == 0; }

bool row_has_own_order(const Row *row) { return row_is_on_device(row) || strncmp(row->target, "machine.sm_", 11) == 0; }

bool row_is_foreign(const Row *row) { return !row_is_emulated(row) && row_vector_length(row); }

const char *row_own_words(const Row *row) {
    const char *name = row->target + (row_is_emulated(row) ? sizeof machine_prefix - 1 : 0);
    return strcmp(name, "amx") == 0 || strcmp(name, "avx512bf16") == 0 ? name : NULL;
}
