#define _GNU_SOURCE
#include "driver/cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launch/environment.h"

enum { LARGEST_FILE = 1 << 28, STALE_SECONDS = 3600, NAME_DIGITS = 2 * TILE_SHA256_BYTES, MAGIC_BYTES = 8 };
static const char magic[] = "TILECOD1";
static const char suffix[] = ".tilecode", temporary[] = ".writing-";
/* Do not wait where the path names a pipe. */
static const int reading = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
static const uint64_t usual_limit = UINT64_C(1) << 30;

struct TileCodeCache {
    char *folder;
    int descriptor; /* of the folder */
    uint64_t limit;
    void (*hold)(bool held); /* or NULL */
};

typedef struct Header {
    char magic[MAGIC_BYTES];
    uint8_t key[TILE_SHA256_BYTES];
    uint8_t sum[TILE_SHA256_BYTES]; /* of the label and the data */
    uint64_t size;                  /* of the data */
    char label[TILE_CODE_LABEL_BYTES];
} Header;

/* ---- the folder ---- */

static char *join(const char *folder, const char *rest) {
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, rest) < 0 ? NULL : path;
}

static char *choose_folder(const char *given) {
    const char *own = given ? given : getenv(tile_variable_name(TILE_VARIABLE_CACHE_DIR)),
               *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own) return *own ? strdup(own) : NULL;
    if (cache && *cache == '/') return join(cache, "tile");
    return home && *home == '/' ? join(home, ".cache/tile") : NULL;
}

/* Makes its parent folders, too. */
static void make_folders(char *path) {
    for (char *at = path + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    mkdir(path, 0700);
}

/* Code in it is executed: other users must not be able to write there. */
static bool is_private(int descriptor) {
    struct stat state;
    return fstat(descriptor, &state) == 0 && (state.st_uid == geteuid() || state.st_uid == 0) &&
           !(state.st_mode & (S_IWGRP | S_IWOTH));
}

TileCodeCache *tile_code_cache_open(const TileSettings *settings, const char *folder, uint64_t limit) {
    int saved = errno;
    TileCodeCache *cache = calloc(1, sizeof *cache);
    if (cache) cache->folder = choose_folder(folder);
    if (cache && cache->folder) make_folders(cache->folder);
    bool good = cache && cache->folder;
    if (good) cache->descriptor = open(cache->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    good = good && cache->descriptor >= 0;
    if (good && !is_private(cache->descriptor)) {
        close(cache->descriptor);
        good = false;
    }
    if (good) {
        if (!limit)
            limit = tile_variable_number(TILE_VARIABLE_CACHE_BYTES, settings, 1, UINT64_MAX, usual_limit, "1 GiB");
        cache->limit = limit;
    } else {
        if (cache && cache->folder && !folder)
            tile_variable_warn(TILE_VARIABLE_CACHE_DIR, settings, "a folder that is this user's alone to write",
                               "empty: nothing is kept");
        if (cache) free(cache->folder);
        free(cache);
        cache = NULL;
    }
    errno = saved;
    return cache;
}

void tile_code_cache_hold(TileCodeCache *cache, void (*hold)(bool held)) { cache->hold = hold; }

void tile_code_cache_close(TileCodeCache *cache) {
    if (!cache) return;
    close(cache->descriptor);
    free(cache->folder);
    free(cache);
}

const char *tile_code_cache_folder(const TileCodeCache *cache) { return cache->folder; }

/* ---- one file ---- */

static void name_of(const uint8_t *digest, char *name, const char *end) {
    for (int i = 0; i < TILE_SHA256_BYTES; i++) snprintf(name + 2 * i, 3, "%02x", digest[i]);
    strcpy(name + NAME_DIGITS, end);
}

static bool is_ours(const char *name) {
    return strspn(name, "0123456789abcdef") == NAME_DIGITS && strcmp(name + NAME_DIGITS, suffix) == 0;
}

static void sum_of(const Header *header, const void *data, uint8_t *sum) {
    TileSha256 hash;
    tile_sha256_begin(&hash);
    tile_sha256_add(&hash, header->key, sizeof header->key);
    tile_sha256_add(&hash, header->label, sizeof header->label);
    tile_sha256_add(&hash, data, header->size);
    tile_sha256_end(&hash, sum);
}

static bool read_whole(int file, void *data, size_t size) {
    for (size_t at = 0; at < size;) {
        ssize_t part = read(file, (char *)data + at, size - at);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) return false;
        at += (size_t)part;
    }
    return true;
}

static bool write_whole(int file, const void *data, size_t size) {
    for (size_t at = 0; at < size;) {
        ssize_t part = write(file, (const char *)data + at, size - at);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) return false;
        at += (size_t)part;
    }
    return true;
}

static bool read_header(int file, const char *name, Header *header) {
    struct stat state;
    char own[NAME_DIGITS + sizeof suffix];
    if (fstat(file, &state) != 0 || !S_ISREG(state.st_mode) || !read_whole(file, header, sizeof *header)) return false;
    name_of(header->key, own, suffix);
    return memcmp(header->magic, magic, MAGIC_BYTES) == 0 && strcmp(own, name) == 0 && header->size < LARGEST_FILE &&
           (uint64_t)state.st_size == sizeof *header + header->size &&
           memchr(header->label, 0, sizeof header->label) != NULL;
}

/* The data in memory to be freed, or NULL. */
static void *read_data(int file, const Header *header) {
    uint8_t sum[TILE_SHA256_BYTES];
    void *data = malloc(header->size + 1);
    bool good = data && read_whole(file, data, header->size);
    if (good) sum_of(header, data, sum);
    if (good && memcmp(sum, header->sum, sizeof sum) == 0) return data;
    free(data);
    return NULL;
}

void *tile_code_cache_get(TileCodeCache *cache, const TileCodeKey *key, size_t *size) {
    int saved = errno;
    char name[NAME_DIGITS + sizeof suffix];
    Header header;
    name_of(key->digest, name, suffix);
    int file = openat(cache->descriptor, name, reading);
    void *data = NULL;
    if (file >= 0) {
        if (read_header(file, name, &header)) data = read_data(file, &header);
        if (data)
            futimens(file, NULL); /* used now */
        else
            unlinkat(cache->descriptor, name, 0);
        close(file);
    }
    if (data) *size = header.size;
    errno = saved;
    return data;
}

/* ---- the limit ---- */

typedef struct Listed {
    char name[NAME_DIGITS + sizeof suffix];
    uint64_t bytes;
    int64_t used;
} Listed;

typedef struct Listing {
    Listed *items;
    size_t count, capacity;
    uint64_t bytes;
} Listing;

static int oldest_first(const void *a, const void *b) {
    const Listed *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

static DIR *open_listing(const TileCodeCache *cache) {
    int descriptor = openat(cache->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!folder && descriptor >= 0) close(descriptor);
    return folder;
}

static bool add_listed(Listing *listing, const char *name, const struct stat *state) {
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
        Listed *larger = realloc(listing->items, capacity * sizeof *larger);
        if (!larger) return false;
        listing->items = larger;
        listing->capacity = capacity;
    }
    Listed *item = &listing->items[listing->count++];
    strcpy(item->name, name);
    item->bytes = (uint64_t)state->st_size;
    item->used = state->st_mtime;
    listing->bytes += item->bytes;
    return true;
}

/* Also removes temporary files of writers that were killed. */
static Listing list(const TileCodeCache *cache) {
    Listing listing = {NULL, 0, 0, 0};
    DIR *folder = open_listing(cache);
    time_t now = time(NULL);
    for (struct dirent *item; folder && (item = readdir(folder));) {
        struct stat state;
        bool left = strncmp(item->d_name, temporary, sizeof temporary - 1) == 0;
        if (!left && !is_ours(item->d_name)) continue;
        if (fstatat(cache->descriptor, item->d_name, &state, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (left && now - state.st_mtime > STALE_SECONDS) unlinkat(cache->descriptor, item->d_name, 0);
        if (!left && !add_listed(&listing, item->d_name, &state)) break;
    }
    if (folder) closedir(folder);
    return listing;
}

static void keep_limit(const TileCodeCache *cache) {
    Listing listing = list(cache);
    if (listing.bytes > cache->limit) {
        uint64_t wanted = cache->limit - cache->limit / 8;
        qsort(listing.items, listing.count, sizeof *listing.items, oldest_first);
        for (size_t i = 0; i < listing.count && listing.bytes > wanted; i++)
            if (unlinkat(cache->descriptor, listing.items[i].name, 0) == 0) listing.bytes -= listing.items[i].bytes;
    }
    free(listing.items);
}

/* ---- writing ---- */

/* A name that no other writer has, on any host. */
static int create_temporary(const TileCodeCache *cache, char *name, size_t size) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (unsigned i = 0; i < 16; i++) {
        snprintf(name, size, "%s%ld-%ld-%u-%p", temporary, (long)getpid(), now.tv_nsec, i, (void *)name);
        int file = openat(cache->descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

void tile_code_cache_put(TileCodeCache *cache, const TileCodeKey *key, const char *label, const void *data,
                         size_t size) {
    int saved = errno;
    char name[NAME_DIGITS + sizeof suffix], other[128];
    Header header = {.size = size};
    memcpy(header.magic, magic, MAGIC_BYTES);
    memcpy(header.key, key->digest, sizeof header.key);
    snprintf(header.label, sizeof header.label, "%s", label);
    sum_of(&header, data, header.sum);
    name_of(key->digest, name, suffix);
    if (cache->hold) cache->hold(true);
    int file = size < LARGEST_FILE && size <= cache->limit ? create_temporary(cache, other, sizeof other) : -1;
    if (file >= 0) {
        bool good = write_whole(file, &header, sizeof header) && write_whole(file, data, size) && fsync(file) == 0;
        good &= close(file) == 0;
        good = good && renameat(cache->descriptor, other, cache->descriptor, name) == 0;
        if (good)
            keep_limit(cache);
        else
            unlinkat(cache->descriptor, other, 0);
    }
    if (cache->hold) cache->hold(false);
    errno = saved;
}

/* ---- looking at all ---- */

static TileCodeEntry look_at(const TileCodeCache *cache, const Listed *listed, bool verify) {
    TileCodeEntry entry = {.bytes = listed->bytes, .used = listed->used};
    Header header;
    memcpy(entry.name, listed->name, NAME_DIGITS);
    int file = openat(cache->descriptor, listed->name, reading);
    if (file < 0) return entry;
    entry.good = read_header(file, listed->name, &header);
    if (entry.good) snprintf(entry.label, sizeof entry.label, "%s", header.label);
    void *data = entry.good && verify ? read_data(file, &header) : NULL;
    entry.good &= !verify || data;
    free(data);
    close(file);
    return entry;
}

void tile_code_cache_list(TileCodeCache *cache, bool verify, void (*visit)(void *state, const TileCodeEntry *entry),
                          void *state) {
    Listing listing = list(cache);
    if (listing.count) qsort(listing.items, listing.count, sizeof *listing.items, oldest_first);
    for (size_t i = 0; i < listing.count; i++) {
        TileCodeEntry entry = look_at(cache, &listing.items[i], verify);
        visit(state, &entry);
    }
    free(listing.items);
}

unsigned tile_code_cache_remove(TileCodeCache *cache, bool all) {
    Listing listing = list(cache);
    unsigned removed = 0;
    for (size_t i = 0; i < listing.count; i++)
        if (all || !look_at(cache, &listing.items[i], true).good)
            removed += unlinkat(cache->descriptor, listing.items[i].name, 0) == 0;
    free(listing.items);
    return removed;
}
