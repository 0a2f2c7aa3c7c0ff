/* The examples of FIPS 180-4. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static void expect_digest(const char *data, size_t size, size_t step, const char *wanted) {
    TileSha256 hash;
    uint8_t digest[TILE_SHA256_BYTES];
    char text[2 * TILE_SHA256_BYTES + 1];
    tile_sha256_begin(&hash);
    for (size_t at = 0; at < size; at += step) tile_sha256_add(&hash, data + at, size - at < step ? size - at : step);
    tile_sha256_end(&hash, digest);
    for (int i = 0; i < TILE_SHA256_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    cr_expect_str_eq(text, wanted, "%zu bytes, %zu at a time: %s", size, step, text);
}

Test(sha256, examples) {
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static char many[1000000];
    memset(many, 'a', sizeof many);
    for (size_t step = 1; step < 70; step += 17) {
        expect_digest("", 0, step, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        expect_digest("abc", 3, step, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        expect_digest(two_blocks, 56, step, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    }
    expect_digest(many, sizeof many, 977, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
