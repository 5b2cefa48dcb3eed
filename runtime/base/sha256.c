/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>

#include "base/sha256_test.h"
#include "base/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define BLOCK ((size_t)SHA256_BLOCK)
#define MUCH ((size_t)64 << 10) /* bytes at once, from which on the processor is asked */

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_keys[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, int by)
{
    return (word >> by) | (word << (32 - by));
}

static void expand(const uint8_t block[BLOCK], uint32_t words[64])
{
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t old = words[i - 15], recent = words[i - 2];
        uint32_t s0 = rotate(old, 7) ^ rotate(old, 18) ^ (old >> 3);
        uint32_t s1 = rotate(recent, 17) ^ rotate(recent, 19) ^ (recent >> 10);
        words[i] = words[i - 16] + s0 + words[i - 7] + s1;
    }
}

/* One round. It does not shift the eight variables: each round gets them in another order. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                        \
    do {                                                                                        \
        uint32_t first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +                   \
                         (g ^ (e & (f ^ g))) + round_keys[i] + words[i];                        \
        d += first;                                                                             \
        h = first + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b))); \
    } while (0)

static void add_block(uint32_t state[8], const uint8_t block[BLOCK])
{
    uint32_t words[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    expand(block, words);
    for (int i = 0; i < 64; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    const uint32_t after[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += after[i];
}

static void add_plain(uint32_t state[8], const uint8_t *at, size_t blocks)
{
    for (; blocks > 0; blocks--, at += BLOCK)
        add_block(state, at);
}

/* ---- with instructions of the processor ------------------------------------------------------ */

#if defined(__x86_64__)

static bool has_instructions(void)
{
    unsigned a, b, c, d;
    if (__get_cpuid_max(0, NULL) < 7)
        return false;
    __cpuid(1, a, b, c, d);
    if ((c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0)
        return false;
    __cpuid_count(7, 0, a, b, c, d);
    return (b & bit_SHA) != 0;
}

/* Four rounds with four words, and the words that take their place. */
#define ROUNDS(i, words0, words1, words2, words3)                                        \
    do {                                                                                 \
        sum = _mm_add_epi32(words0, _mm_loadu_si128((const __m128i *)round_keys + (i))); \
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);                                   \
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));          \
        words0 = _mm_add_epi32(_mm_sha256msg1_epu32(words0, words1),                     \
                               _mm_alignr_epi8(words3, words2, 4));                      \
        words0 = _mm_sha256msg2_epu32(words0, words3);                                   \
    } while (0)

#define BIG_ENDIAN_WORDS(at) _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(at)), swap)

/* The instructions want the state in this order of its words. */
__attribute__((target("sha,ssse3,sse4.1"))) static void
add_by_instructions(uint32_t state[8], const uint8_t *at, size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state + 1), 0x1b);
    __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xf0), sum;
    for (; blocks > 0; blocks--, at += BLOCK) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i words0 = BIG_ENDIAN_WORDS(at), words1 = BIG_ENDIAN_WORDS(at + 16);
        __m128i words2 = BIG_ENDIAN_WORDS(at + 32), words3 = BIG_ENDIAN_WORDS(at + 48);
        for (int i = 0; i < 16; i += 4) {
            ROUNDS(i, words0, words1, words2, words3);
            ROUNDS(i + 1, words1, words2, words3, words0);
            ROUNDS(i + 2, words2, words3, words0, words1);
            ROUNDS(i + 3, words3, words0, words1, words2);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)state + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#else

static bool has_instructions(void)
{
    return false;
}

#define add_by_instructions add_plain

#endif

bool sha256_use_instructions(struct sha256 *hash)
{
    hash->way = has_instructions() ? SHA256_INSTRUCTIONS : SHA256_PLAIN;
    return hash->way == SHA256_INSTRUCTIONS;
}

static void add_blocks(struct sha256 *hash, const uint8_t *at, size_t blocks)
{
    if (hash->way == SHA256_NOT_ASKED && blocks >= MUCH / BLOCK)
        (void)sha256_use_instructions(hash);
    if (hash->way == SHA256_INSTRUCTIONS)
        add_by_instructions(hash->state, at, blocks);
    else
        add_plain(hash->state, at, blocks);
}

/* ---- of any bytes ---------------------------------------------------------------------------- */

void sha256_begin(struct sha256 *hash)
{
    *hash = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                      0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    size_t kept = (size_t)(hash->length % BLOCK);
    hash->length += length;
    while (length > 0) {
        if (kept == 0 && length >= BLOCK) { /* without a copy */
            size_t whole = length - length % BLOCK;
            add_blocks(hash, at, whole / BLOCK);
            at += whole;
            length -= whole;
            continue;
        }
        size_t piece = length < BLOCK - kept ? length : BLOCK - kept;
        memcpy(hash->block + kept, at, piece);
        at += piece;
        length -= piece;
        kept = (kept + piece) % BLOCK;
        if (kept == 0)
            add_blocks(hash, hash->block, 1);
    }
}

/* The tail: a one bit, zeros, and the length of all before it in bits. */
void sha256_end(struct sha256 *hash, uint8_t out[SHA256_SIZE])
{
    uint8_t tail[2 * BLOCK] = {0x80};
    uint64_t bits = hash->length * 8;
    size_t kept = (size_t)(hash->length % BLOCK);
    size_t length = (kept + 9 <= BLOCK ? BLOCK : 2 * BLOCK) - kept;
    for (size_t i = 0; i < 8; i++)
        tail[length - 1 - i] = (uint8_t)(bits >> (8 * i));
    sha256_add(hash, tail, length);
    for (size_t i = 0; i < SHA256_SIZE; i++)
        out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_text(const void *bytes, size_t length, char out[SHA256_TEXT_ROOM])
{
    struct sha256 hash;
    uint8_t value[SHA256_SIZE];
    sha256_begin(&hash);
    sha256_add(&hash, bytes, length);
    sha256_end(&hash, value);
    text_hex(value, SHA256_SIZE, out);
}

/* ---- HMAC ------------------------------------------------------------------------------------ */

/* The hash of the padded key, with each byte XORed with `mask`, followed by the bytes. */
static void keyed_hash(const uint8_t key[SHA256_BLOCK], uint8_t mask, const void *bytes,
                       size_t length, uint8_t out[SHA256_SIZE])
{
    struct sha256 hash;
    uint8_t masked[SHA256_BLOCK];
    for (size_t i = 0; i < SHA256_BLOCK; i++)
        masked[i] = key[i] ^ mask;
    sha256_begin(&hash);
    sha256_add(&hash, masked, sizeof(masked));
    sha256_add(&hash, bytes, length);
    sha256_end(&hash, out);
}

void hmac_sha256(const void *key, size_t key_length, const void *bytes, size_t length,
                 uint8_t out[HMAC_SIZE])
{
    uint8_t padded[SHA256_BLOCK] = {0}, inner[SHA256_SIZE];
    if (key_length > SHA256_BLOCK) {
        struct sha256 hash;
        sha256_begin(&hash);
        sha256_add(&hash, key, key_length);
        sha256_end(&hash, padded);
    } else if (key_length > 0) {
        memcpy(padded, key, key_length);
    }
    keyed_hash(padded, 0x36, bytes, length, inner);
    keyed_hash(padded, 0x5c, inner, sizeof(inner), out);
}

bool hmac_equal(const uint8_t one[HMAC_SIZE], const uint8_t other[HMAC_SIZE])
{
    uint8_t difference = 0;
    for (size_t i = 0; i < HMAC_SIZE; i++)
        difference |= (uint8_t)(one[i] ^ other[i]);
    return difference == 0;
}
