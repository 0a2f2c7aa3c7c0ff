/* Messages of the language server protocol on two file descriptors. */
#include "lsp/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { STEP = 1 << 16, LONGEST_HEADER = 1 << 13 };

void tile_wire_release(TileWire *wire) {
    free(wire->bytes);
    wire->bytes = NULL;
    wire->count = wire->capacity = 0;
}

static void take(TileWire *wire, size_t count) {
    memmove(wire->bytes, wire->bytes + count, wire->count - count);
    wire->count -= count;
}

/* Reads what is there; waits for the first byte if `wait`. False if there is nothing. */
static bool fill(TileWire *wire, bool wait) {
    struct pollfd poller = {.fd = wire->in, .events = POLLIN};
    if (wire->closed) return false;
    int ready;
    do
        ready = poll(&poller, 1, wait ? -1 : 0);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0) return false;
    if (wire->capacity - wire->count < STEP) {
        size_t capacity = wire->capacity ? wire->capacity * 2 : 4 * STEP;
        char *bytes = realloc(wire->bytes, capacity);
        if (!bytes) { /* what cannot be kept is dropped: the client learns that a message was lost */
            wire->skipped += wire->count;
            wire->count = 0;
            if (!wire->capacity) wire->closed = true;
            return !wire->closed;
        }
        wire->bytes = bytes;
        wire->capacity = capacity;
    }
    ssize_t got;
    do
        got = read(wire->in, wire->bytes + wire->count, wire->capacity - wire->count);
    while (got < 0 && errno == EINTR);
    if (got <= 0) wire->closed = true;
    if (got > 0) wire->count += (size_t)got;
    return got > 0;
}

/* The end of the header, behind its empty line; 0 if it is not there yet. */
static size_t header_end(const TileWire *wire) {
    for (size_t i = 0; i + 1 < wire->count; i++) {
        if (wire->bytes[i] != '\n') continue;
        if (wire->bytes[i + 1] == '\n') return i + 2;
        if (wire->bytes[i + 1] == '\r' && i + 2 < wire->count && wire->bytes[i + 2] == '\n') return i + 3;
    }
    return 0;
}

/* The digits up to the end of the line; false if there is anything else. */
static bool read_number(const char *digit, const char *stop, size_t *value) {
    unsigned digits = 0;
    *value = 0;
    while (digit < stop && (*digit == ' ' || *digit == '\t')) digit++;
    for (; digit < stop && *digit >= '0' && *digit <= '9' && digits < 18; digit++, digits++)
        *value = *value * 10 + (size_t)(*digit - '0');
    while (digit < stop && (*digit == ' ' || *digit == '\r')) digit++;
    return digits != 0 && digit == stop;
}

/* The value behind the last `Content-Length:` of a header; false if there is none. It may stand behind something else in
 * its line: behind the body of a message whose header was wrong, so that only that one is lost. */
static bool content_length(const char *header, size_t length, size_t *value) {
    static const char name[] = "Content-Length:";
    bool found = false;
    for (const char *at = header, *end = header + length; at + sizeof name - 1 < end; at++) {
        if (strncasecmp(at, name, sizeof name - 1) != 0) continue;
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        found = read_number(at + sizeof name - 1, stop ? stop : end, value);
    }
    return found;
}

/* Skips what is no header, up to the line that may begin one. */
static TileWireResult skip_noise(TileWire *wire, size_t count) {
    take(wire, count < wire->count ? count : wire->count);
    return TILE_WIRE_MALFORMED;
}

static TileWireResult next(TileWire *wire, char **body, size_t *length) {
    if (wire->skipped) {
        size_t skipped = wire->skipped < wire->count ? wire->skipped : wire->count;
        take(wire, skipped);
        wire->skipped -= skipped;
        if (wire->skipped) return TILE_WIRE_NOTHING;
    }
    size_t end = header_end(wire), size;
    if (!end) return wire->count > LONGEST_HEADER ? skip_noise(wire, wire->count) : TILE_WIRE_NOTHING;
    if (!content_length(wire->bytes, end, &size)) return skip_noise(wire, end);
    if (size > TILE_WIRE_LARGEST) {
        wire->skipped = size;
        return skip_noise(wire, end);
    }
    if (wire->count - end < size) return TILE_WIRE_NOTHING;
    *body = malloc(size + 1);
    if (!*body) return skip_noise(wire, end + size);
    memcpy(*body, wire->bytes + end, size);
    (*body)[size] = 0;
    *length = size;
    take(wire, end + size);
    return TILE_WIRE_MESSAGE;
}

TileWireResult tile_wire_read(TileWire *wire, bool wait, char **body, size_t *length) {
    for (;;) {
        TileWireResult result = next(wire, body, length);
        if (result != TILE_WIRE_NOTHING) return result;
        if (fill(wire, wait)) continue;
        return wire->closed ? TILE_WIRE_END : TILE_WIRE_NOTHING;
    }
}

/* A client that writes without reading must not wait for us while we wait for it: as long as nothing can be written,
 * what comes is read. */
static bool wait_to_write(TileWire *wire) {
    bool full = wire->closed || wire->count > TILE_WIRE_LARGEST;
    struct pollfd pollers[] = {{.fd = wire->out, .events = POLLOUT}, {.fd = full ? -1 : wire->in, .events = POLLIN}};
    if (poll(pollers, 2, -1) < 0) return errno == EINTR;
    if (pollers[1].revents && !pollers[0].revents) fill(wire, false);
    return true;
}

/* Pieces that a pipe takes without waiting, where it takes any. */
static void write_all(TileWire *wire, const char *bytes, size_t count) {
    enum { PIECE = 4096 };
    while (count && !wire->broken) {
        struct pollfd poller = {.fd = wire->out, .events = POLLOUT};
        if (poll(&poller, 1, 0) == 0) {
            wire->broken = !wait_to_write(wire);
            continue;
        }
        ssize_t done = write(wire->out, bytes, count < PIECE ? count : PIECE);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            wire->broken = true;
            return;
        }
        bytes += done;
        count -= (size_t)done;
    }
}

void tile_wire_write(TileWire *wire, const char *body, size_t length) {
    char header[64];
    int count = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", length);
    write_all(wire, header, (size_t)count);
    write_all(wire, body, length);
}
