/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/name_hash.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/mem.h"
#include "transport/ssh_module/fields.h"

#define BLOCK 64  /* bytes that SHA-1 takes at a time */
#define DIGITS 28 /* of 20 bytes in base64 */

struct name_hasher {
    EVP_MD *sha1; /* NULL: there is none */
    EVP_MD_CTX *context;
};

struct name_hasher *name_hasher_create(void)
{
    struct name_hasher *hasher = mem_alloc(sizeof *hasher);

    hasher->sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    hasher->context = EVP_MD_CTX_new();
    return hasher;
}

void name_hasher_destroy(struct name_hasher *hasher)
{
    if (!hasher)
        return;
    EVP_MD_CTX_free(hasher->context);
    EVP_MD_free(hasher->sha1);
    mem_free_at(&hasher);
}

bool name_hash_parse(struct name_hash *out, struct byte_view field)
{
    const char *text = (const char *)field.at;
    unsigned char salt[DIGITS], hash[DIGITS];

    if (field.length != 3 + DIGITS + 1 + DIGITS || memcmp(text, "|1|", 3) != 0 ||
        text[3 + DIGITS] != '|' || base64_decode(text + 3, DIGITS, salt) != NAME_HASH_SIZE ||
        base64_decode(text + 3 + DIGITS + 1, DIGITS, hash) != NAME_HASH_SIZE)
        return false;
    memcpy(out->salt, salt, NAME_HASH_SIZE);
    memcpy(out->hash, hash, NAME_HASH_SIZE);
    return true;
}

/* Half an HMAC (RFC 2104): the digest of the salt, padded and veiled, and of the bytes. */
static bool digest(struct name_hasher *hasher, const unsigned char *salt, unsigned char veil,
                   const void *bytes, size_t length, unsigned char *out)
{
    unsigned char key[BLOCK] = {0};

    memcpy(key, salt, NAME_HASH_SIZE);
    for (size_t i = 0; i < sizeof key; i++)
        key[i] ^= veil;
    return EVP_DigestInit_ex2(hasher->context, hasher->sha1, NULL) == 1 &&
           EVP_DigestUpdate(hasher->context, key, sizeof key) == 1 &&
           EVP_DigestUpdate(hasher->context, bytes, length) == 1 &&
           EVP_DigestFinal_ex(hasher->context, out, NULL) == 1;
}

/* By hand, since OpenSSL's own HMAC sets up its machinery again for each key, which takes four
 * times as long as the hashing. */
int name_hash_fill(struct name_hasher *hasher, struct name_hash *out, const char *name)
{
    unsigned char inner[NAME_HASH_SIZE];

    if (!hasher->sha1 || !hasher->context ||
        !digest(hasher, out->salt, 0x36, name, strlen(name), inner) ||
        !digest(hasher, out->salt, 0x5c, inner, sizeof inner, out->hash))
        return -1;
    return 0;
}

bool name_hash_matches(struct name_hasher *hasher, const struct name_hash *hash, const char *name)
{
    struct name_hash own;

    memcpy(own.salt, hash->salt, NAME_HASH_SIZE);
    return name_hash_fill(hasher, &own, name) == 0 &&
           memcmp(own.hash, hash->hash, NAME_HASH_SIZE) == 0;
}

int name_hash_put(const struct name_hash *hash, struct buf *out)
{
    if (buf_puts(out, "|1|") < 0 || base64_append(out, hash->salt, NAME_HASH_SIZE) < 0 ||
        buf_putc(out, '|') < 0)
        return -1;
    return base64_append(out, hash->hash, NAME_HASH_SIZE);
}
