/* Prints and failed assertions of blocks of threads, in memory, in the format of compiled code (base/records.h). */
#include <string.h>

#include "base/records.h"
#include "lang/ir/assertion.h"
#include "lang/execute/state.h"

struct ExecRecords {
    TileRecords layout;
    TileAssertions prints;
    const char **templates;
    uint32_t object;
    unsigned char *memory;
    const ExecInstruction *failed; /* the assertion to report; NULL: none failed */
};

bool tile_exec_open_records(TileExecutor *e, TileFunc *func) {
    size_t count;
    TileAssertions prints = tile_func_prints(func, e->arena);
    if (!prints.count && !tile_func_assertions(func, e->arena).count) return true;
    ExecRecords *records = TILE_NEW(e->arena, ExecRecords);
    records->prints = prints;
    records->templates = tile_func_templates(func, e->arena, &count);
    records->layout = tile_records(records->templates, count);
    if (!tile_exec_allocate(e, records->layout.bytes, 64, false, &records->object)) return false;
    ExecObject *object = &e->objects[records->object];
    records->memory = object->base;
    memset(object->base, 0, TILE_RECORDS_CLEARED);
    object->poison = NULL;
    e->records = records;
    return true;
}

static void keep_values(void *host, const char *line, size_t length) {
    tile_text_add_bytes(host, line, length - 1); /* without the newline */
}

bool tile_exec_close_records(TileExecutor *e, bool going) {
    ExecRecords *records = e->records;
    e->records = NULL;
    if (!records || !going) return going;
    const TileExecutorOptions *options = &e->options;
    size_t count = records->prints.count;
    if (options->print)
        tile_records_lines(&records->layout, records->memory, records->templates, count, e->func->name, options->print,
                           options->print_host);
    if (!records->failed) return true;
    const TileOp *assertion = records->failed->op;
    if (options->assertion) *options->assertion = assertion;
    if (options->values) {
        options->values->length = 0;
        tile_records_values(&records->layout, records->memory, records->templates, count, keep_values, options->values);
    }
    return tile_exec_stop(e, records->failed, TILE_EXECUTION_ASSERT, "%s",
                          tile_op_get(assertion, TILE_ATTRIBUTE_TEXT)->text);
}

/* ---- words ---- */

static uint64_t get(const ExecRecords *records, uint64_t offset) {
    uint64_t word;
    memcpy(&word, records->memory + offset, sizeof word);
    return word;
}

static void put(ExecRecords *records, uint64_t offset, uint64_t word) {
    memcpy(records->memory + offset, &word, sizeof word);
}

/* Does the thread's block own the reported assertion, or could it become the owner? */
static bool claim(TileExecutor *e, bool *was_free) {
    uint64_t owner = get(e->records, TILE_RECORDS_OWNER), own = (uint64_t)e->block + 1;
    *was_free = owner == 0;
    if (owner == 0) put(e->records, TILE_RECORDS_OWNER, own);
    return owner == 0 || owner == own;
}

void tile_exec_note_assertion(TileExecutor *e, const ExecInstruction *in) {
    bool was_free;
    if (claim(e, &was_free) && !e->records->failed) e->records->failed = in;
}

/* ---- ops ---- */

bool tile_exec_records(TileExecutor *e, const ExecInstruction *in) {
    if (!e->records) return tile_exec_fault(e, in, "this function is not run by blocks of threads");
    ExecValue result = tile_exec_result(e, in);
    result.lanes[0] = e->records->object;
    result.lanes[1] = 0;
    *result.any = 0;
    return true;
}

/* Allocates a record, writes its number, and gives its offset. */
static uint64_t allocate_line(ExecRecords *records, uint64_t bytes, uint64_t number) {
    const TileRecords *layout = &records->layout;
    uint64_t used = get(records, TILE_RECORDS_USED);
    bool fits = used + bytes <= layout->lines_bytes;
    put(records, TILE_RECORDS_USED, used + bytes);
    put(records, TILE_RECORDS_MISSING, get(records, TILE_RECORDS_MISSING) + !fits);
    put(records, used < layout->lines_bytes ? layout->lines + used : layout->spare, fits ? number : 0);
    return fits ? layout->lines + used : layout->spare;
}

static uint64_t allocate_values(TileExecutor *e, uint64_t number) {
    bool first;
    claim(e, &first);
    uint64_t place = first ? TILE_RECORDS_VALUES : e->records->layout.spare;
    put(e->records, place, number);
    return place;
}

bool tile_exec_new_record(TileExecutor *e, const ExecInstruction *in) {
    ExecRecords *records = e->records;
    if (!records) return tile_exec_fault(e, in, "this function is not run by blocks of threads");
    uint64_t number = 1;
    while (records->prints.items[number - 1] != in->op) number++;
    const char *template = records->templates[number - 1];
    bool values = tile_print_is_assertion(template, NULL, NULL);
    uint64_t place = values ? allocate_values(e, number) : allocate_line(records, tile_record_bytes(template), number);
    tile_exec_set_scalar(tile_exec_result(e, in), place + sizeof(uint64_t));
    return true;
}
