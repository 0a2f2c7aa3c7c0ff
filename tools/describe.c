/* tilec emit json: the kernels of a file and their parameters, for programs that call them. */
#include <stdio.h>
#include <string.h>

#include "tools/program.h"

static void print_member(const char *name, const char *text) {
    printf("\"%s\": ", name);
    tile_print_json_string(stdout, text);
}

static void print_parameter(const TileParameterInfo *info) {
    static const char *const access[] = {
        [TILE_PARAMETER_IN] = "in", [TILE_PARAMETER_OUT] = "out", [TILE_PARAMETER_INOUT] = "inout"};
    bool tensor = info->kind == TILE_PARAMETER_TENSOR;
    fputs("      {", stdout);
    print_member("name", info->name);
    fputs(", ", stdout);
    print_member("kind", tensor ? "tensor" : "scalar");
    fputs(", ", stdout);
    print_member("type", info->type);
    if (tensor) {
        fputs(", ", stdout);
        print_member("access", access[info->access]);
        fputs(", \"dimensions\": [", stdout);
        for (int d = 0; d < info->rank; d++) {
            if (d) fputs(", ", stdout);
            tile_print_json_string(stdout, info->dimensions[d]);
        }
        fputs("]", stdout);
    }
    fputs("}", stdout);
}

static void print_kernel(const TileKernel *kernel) {
    fputs("  {", stdout);
    print_member("name", tile_kernel_name(kernel));
    fputs(", ", stdout);
    print_member("signature", tile_kernel_signature(kernel));
    fputs(",\n    \"parameters\": [\n", stdout);
    TileParameterInfo info;
    for (size_t i = 0; tile_kernel_parameter(kernel, i, &info); i++) {
        if (i) fputs(",\n", stdout);
        print_parameter(&info);
    }
    fputs("\n    ]}", stdout);
}

int tile_program_describe(TileProgram *program) {
    TileReport *report = NULL;
    tile_status status = tile_session_create_compiler(program->session, &program->compiler);
    if (status == TILE_OK)
        status = tile_compile_file(program->compiler, program->path, &program->options, &program->library, &report);
    if (status != TILE_OK && !report)
        return tile_session_fail(program->session, status, "%s: %s", program->path, tile_status_text(status));
    int exit_status = tile_session_report(program->session, status, report);
    if (exit_status) return exit_status;
    if (program->kernel_name &&
        tile_library_kernel(program->library, program->kernel_name, &program->kernel) != TILE_OK)
        return tile_session_fail(program->session, TILE_INVALID_ARGUMENT, "%s has no kernel '%s'", program->path,
                                 program->kernel_name);
    printf("[\n");
    size_t count = tile_library_kernel_count(program->library);
    for (size_t i = 0, printed = 0; i < count; i++) {
        TileKernel *kernel = tile_library_kernel_at(program->library, i);
        if (program->kernel && kernel != program->kernel) continue;
        if (printed++) printf(",\n");
        print_kernel(kernel);
    }
    printf("\n]\n");
    return tile_session_finish(program->session);
}
