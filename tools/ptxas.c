#include "tools/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/environment.h"
#include "tools/file.h"
#include "tools/unfinished.h"

extern char **environ;

/* ---- finding it ---- */

static const char *in_folder(TileArena *arena, const char *folder, const char *below) {
    if (!folder || !*folder) return NULL;
    const char *path = tile_arena_format(arena, "%s%s/ptxas", folder, below);
    return access(path, X_OK) == 0 ? path : NULL;
}

static const char *in_path(TileArena *arena) {
    const char *path = getenv("PATH"), *found = NULL;
    while (path && *path && !found) {
        size_t length = strcspn(path, ":");
        found = in_folder(arena, tile_arena_string(arena, path, length), "");
        path += length + (path[length] == ':');
    }
    return found;
}

const char *tile_ptxas_find(TileArena *arena) {
    const char *named = tile_variable_text(TILE_VARIABLE_PTXAS);
    if (named) return access(named, X_OK) == 0 ? named : NULL;
    const char *found = in_path(arena);
    if (!found) found = in_folder(arena, getenv("CUDA_HOME"), "/bin");
    if (!found) found = in_folder(arena, getenv("CUDA_PATH"), "/bin");
    return found ? found : in_folder(arena, "/usr/local/cuda", "/bin");
}

/* ---- running it ---- */

typedef struct Job {
    TileArena *arena;
    const char *ptxas, *folder, *input, *output, *log;
    bool lines;
    TileText *error;
} Job;

static tile_status fail(const Job *job, const char *what) {
    tile_text_format(job->error, "%s: %s", what, strerror(errno));
    return TILE_IO;
}

static tile_status write_input(const Job *job, const char *ptx) {
    FILE *file = fopen(job->input, "w");
    if (!file) return fail(job, job->input);
    bool written = fputs(ptx, file) >= 0;
    if (fclose(file) != 0 || !written) return fail(job, job->input);
    return TILE_OK;
}

/* `sm_90a` of the line `.target sm_90a`. */
static const char *target_of(const Job *job, const char *ptx) {
    static const char directive[] = "\n.target ";
    const char *at = strstr(ptx, directive);
    if (!at) return "sm_80";
    at += strlen(directive);
    return tile_arena_string(job->arena, at, strcspn(at, ", \n"));
}

static tile_status run(const Job *job, const char *target, int *wait_status) {
    char *arch = tile_arena_format(job->arena, "-arch=%s", target);
    char *words[] = {(char *)job->ptxas,
                     arch,
                     "-v",
                     "-o",
                     (char *)job->output,
                     (char *)job->input,
                     job->lines ? "-lineinfo" : NULL,
                     NULL};
    posix_spawn_file_actions_t actions;
    pid_t process;
    if (posix_spawn_file_actions_init(&actions) != 0) return TILE_OUT_OF_MEMORY;
    posix_spawnattr_t attributes;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return TILE_OUT_OF_MEMORY;
    }
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none); /* signals are blocked here, not in the child */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, job->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    tile_unfinished_hold(true);
    int failed = posix_spawn(&process, job->ptxas, &actions, &attributes, words, environ);
    if (!failed) tile_unfinished_child(process);
    tile_unfinished_hold(false);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    errno = failed;
    if (failed) return fail(job, job->ptxas);
    siginfo_t ended;
    while ((failed = waitid(P_PID, (id_t)process, &ended, WEXITED | WNOWAIT)) != 0 && errno == EINTR) continue;
    tile_unfinished_hold(true); /* its number is free with the next line */
    failed |= waitpid(process, wait_status, 0) != process;
    tile_unfinished_child(0);
    tile_unfinished_hold(false);
    return failed ? fail(job, job->ptxas) : TILE_OK;
}

static tile_status assemble(const Job *job, const char *ptx, TileAssembly *assembly) {
    int wait_status = 0;
    size_t length;
    char *notes;
    TILE_TRY(write_input(job, ptx));
    TILE_TRY(run(job, target_of(job, ptx), &wait_status));
    TILE_TRY(tile_file_read(job->arena, job->log, &notes, &length, job->error));
    assembly->notes = notes;
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
        return tile_file_read(job->arena, job->output, &assembly->cubin, &assembly->size, job->error);
    tile_text_format(job->error, "%s refuses the code: %s", job->ptxas, notes);
    return TILE_BACKEND;
}

/* From now on, a signal that ends the program removes it. */
static bool make_folder(char *pattern) {
    tile_unfinished_hold(true);
    bool made = mkdtemp(pattern) && tile_unfinished_add(pattern);
    tile_unfinished_hold(false);
    return made;
}

tile_status tile_ptxas_run(TileArena *arena, const char *ptx, bool lines, TileAssembly *assembly, TileText *error) {
    const char *folder = getenv("TMPDIR"), *ptxas = tile_ptxas_find(arena),
               *named = tile_variable_text(TILE_VARIABLE_PTXAS);
    if (!ptxas) {
        if (named)
            tile_text_format(error, "TILE_PTXAS names %s, which is no program", named);
        else
            tile_text_add(error, "there is no ptxas, the assembler of the CUDA toolkit, in PATH, CUDA_HOME or "
                                 "/usr/local/cuda; TILE_PTXAS may name it");
        return TILE_NOT_FOUND;
    }
    char *made = tile_arena_format(arena, "%s/tilec-XXXXXX", folder && *folder ? folder : "/tmp");
    Job job = {.arena = arena, .ptxas = ptxas, .folder = made, .lines = lines, .error = error};
    if (!make_folder(made)) return fail(&job, made);
    job.input = tile_arena_format(arena, "%s/kernel.ptx", made);
    job.output = tile_arena_format(arena, "%s/kernel.cubin", made);
    job.log = tile_arena_format(arena, "%s/notes", made);
    const char *const files[] = {job.input, job.output, job.log};
    tile_status status = TILE_OK;
    for (int i = 0; i < 3; i++)
        if (!tile_unfinished_add(files[i])) status = TILE_OUT_OF_MEMORY;
    if (status == TILE_OK) status = assemble(&job, ptx, assembly);
    for (int i = 0; i < 3; i++) unlink(files[i]);
    rmdir(made);
    for (int i = 0; i < 3; i++) tile_unfinished_forget(files[i]);
    tile_unfinished_forget(made);
    return status;
}
