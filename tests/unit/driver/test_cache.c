/* The disk cache never returns other bytes than were stored with the key, whatever happens to the files. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/cache/cache.h"
#include "tests/cache/entries.h"

typedef struct Fixture {
    char folder[64];
    TileCodeCache *cache;
} Fixture;

static Fixture begin(uint64_t limit) {
    Fixture fixture = {.folder = P_tmpdir "/tile-cache-XXXXXX"};
    cr_assert_not_null(mkdtemp(fixture.folder));
    fixture.cache = tile_code_cache_open(NULL, fixture.folder, limit);
    cr_assert_not_null(fixture.cache);
    return fixture;
}

static void end(Fixture *fixture) {
    char command[128];
    tile_code_cache_close(fixture->cache);
    snprintf(command, sizeof command, "rm -rf %s", fixture->folder);
    cr_assert_eq(system(command), 0);
}

static void put(TileCodeCache *cache, unsigned number) {
    static unsigned char data[MOST_BYTES];
    TileCodeKey key = key_of(number);
    tile_code_cache_put(cache, &key, "kernel", data, data_of(number, data));
}

typedef enum Found { FOUND_NOTHING, FOUND_RIGHT, FOUND_WRONG } Found;

static Found get(TileCodeCache *cache, unsigned number) {
    static unsigned char wanted[MOST_BYTES];
    TileCodeKey key = key_of(number);
    size_t size, length = data_of(number, wanted);
    void *data = tile_code_cache_get(cache, &key, &size);
    if (!data) return FOUND_NOTHING;
    bool right = size == length && memcmp(data, wanted, size) == 0;
    free(data);
    return right ? FOUND_RIGHT : FOUND_WRONG;
}

static void path_of(const Fixture *fixture, unsigned number, char *path, size_t size) {
    TileCodeKey key = key_of(number);
    size_t length = (size_t)snprintf(path, size, "%s/", fixture->folder);
    for (int i = 0; i < TILE_SHA256_BYTES; i++)
        length += (size_t)snprintf(path + length, size - length, "%02x", key.digest[i]);
    snprintf(path + length, size - length, ".tilecode");
}

Test(cache, what_was_put_is_got) {
    Fixture fixture = begin(0);
    for (unsigned i = 0; i < 40; i++) {
        cr_assert_eq(get(fixture.cache, i), FOUND_NOTHING);
        put(fixture.cache, i);
        cr_assert_eq(get(fixture.cache, i), FOUND_RIGHT, "%u", i);
    }
    cr_assert_eq(tile_code_cache_remove(fixture.cache, false), 0);
    cr_assert_eq(tile_code_cache_remove(fixture.cache, true), 40);
    cr_assert_eq(get(fixture.cache, 3), FOUND_NOTHING);
    end(&fixture);
}

static void write_file(const char *path, const unsigned char *data, size_t size) {
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

/* Every single changed byte, and every truncation. */
Test(cache, damage_is_noticed) {
    static unsigned char data[MOST_BYTES + 4096];
    Fixture fixture = begin(0);
    char path[160], other[160];
    put(fixture.cache, 3);
    path_of(&fixture, 3, path, sizeof path);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    size_t size = fread(data, 1, sizeof data, file);
    cr_assert(size > 260 && size < sizeof data && fclose(file) == 0);
    for (size_t at = 0; at < size; at += at < 260 ? 1 : 997) {
        for (int cut = 0; cut < 2; cut++) {
            unsigned char byte = data[at];
            data[at] ^= (unsigned char)(1u << at % 8);
            write_file(path, data, cut ? at : size);
            data[at] = byte;
            cr_assert_eq(get(fixture.cache, 3), FOUND_NOTHING, "byte %zu", at);
            cr_assert_neq(access(path, F_OK), 0, "what is damaged goes");
        }
    }
    write_file(path, data, size);
    cr_assert_eq(get(fixture.cache, 3), FOUND_RIGHT);
    put(fixture.cache, 3);
    path_of(&fixture, 4, other, sizeof other);
    cr_assert_eq(rename(path, other), 0);
    cr_assert_eq(get(fixture.cache, 4), FOUND_NOTHING, "under another's name");
    end(&fixture);
}

static void add_bytes(void *total, const TileCodeEntry *entry) {
    *(uint64_t *)total += entry->bytes;
    cr_assert(entry->good);
}

Test(cache, the_oldest_go_beyond_the_limit) {
    enum { LIMIT = 400000 };
    Fixture fixture = begin(LIMIT);
    for (unsigned i = 1; i < 200; i++) {
        uint64_t bytes = 0;
        put(fixture.cache, i);
        if (i % 5) continue;
        tile_code_cache_list(fixture.cache, true, add_bytes, &bytes);
        cr_assert(bytes <= LIMIT, "%llu bytes", (unsigned long long)bytes);
    }
    TileCodeKey key = key_of(1000);
    static unsigned char large[LIMIT + 1];
    tile_code_cache_put(fixture.cache, &key, "too large", large, sizeof large);
    size_t size;
    cr_assert_null(tile_code_cache_get(fixture.cache, &key, &size));
    end(&fixture);
}

static unsigned count_setting(const char *name, unsigned usual) {
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

/* TILE_SOAK_KILLS writers are killed at any moment. */
Test(cache, killed_writers) {
    Fixture fixture = begin(3000000);
    unsigned seed = 1, kills = count_setting("TILE_SOAK_KILLS", 40);
    for (unsigned round = 0; round < kills; round++) {
        pid_t child = fork();
        if (child == 0)
            for (unsigned i = 0;; i++) put(fixture.cache, (round + i) % 64);
        seed = seed * 1103515245u + 12345u;
        usleep(200 + (seed >> 16) % 8000);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        for (unsigned i = 0; i < 64; i++) cr_assert_neq(get(fixture.cache, i), FOUND_WRONG, "round %u", round);
        cr_assert_eq(tile_code_cache_remove(fixture.cache, false), 0, "nothing half-written under a key");
    }
    end(&fixture);
}

/* Low enough that the writers evict each other's files. */
Test(cache, sixteen_processes) {
    Fixture fixture = begin(600000);
    pid_t children[16];
    unsigned rounds = count_setting("TILE_SOAK_ROUNDS", 60);
    for (unsigned p = 0; p < 16; p++) {
        children[p] = fork();
        if (children[p]) continue;
        unsigned seed = p + 1, wrong = 0;
        TileCodeCache *own = tile_code_cache_open(NULL, fixture.folder, 600000);
        for (unsigned i = 0; i < rounds && own; i++) {
            seed = seed * 1103515245u + 12345u;
            unsigned number = (seed >> 16) % 32;
            Found found = get(own, number);
            wrong += found == FOUND_WRONG;
            if (found == FOUND_NOTHING) put(own, number);
        }
        tile_code_cache_close(own);
        _exit(!own || wrong);
    }
    for (int p = 0; p < 16; p++) {
        int status = -1;
        waitpid(children[p], &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d", p);
    }
    cr_assert_eq(tile_code_cache_remove(fixture.cache, false), 0);
    end(&fixture);
}

static unsigned count_files(const char *folder) {
    DIR *listing = opendir(folder);
    unsigned count = 0;
    for (struct dirent *item; listing && (item = readdir(listing));)
        count += item->d_name[0] != '.' || item->d_name[1] == 'w';
    if (listing) closedir(listing);
    return count;
}

/* The system writes only part of the data. */
Test(cache, full_disk) {
    Fixture fixture = begin(0);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit small = {1000, 1000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &small);
        for (unsigned i = 1; i < 20; i++) put(fixture.cache, i);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (unsigned i = 1; i < 20; i++) cr_assert_eq(get(fixture.cache, i), FOUND_NOTHING);
    cr_assert_eq(count_files(fixture.folder), 0, "nothing is left behind");
    put(fixture.cache, 3);
    cr_assert_eq(get(fixture.cache, 3), FOUND_RIGHT);
    end(&fixture);
}

Test(cache, folders_of_others_are_not_used) {
    Fixture fixture = begin(0);
    cr_assert_eq(chmod(fixture.folder, 0777), 0);
    cr_assert_null(tile_code_cache_open(NULL, fixture.folder, 0));
    cr_assert_null(tile_code_cache_open(NULL, "", 0));
    cr_assert_null(tile_code_cache_open(NULL, "/dev/null/nowhere", 0));
    end(&fixture);
}
