/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/base64.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_value(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

ssize_t base64_decode(const char *text, size_t length, unsigned char *out)
{
    size_t digits = 0, padding = 0, written = 0;
    uint32_t bits = 0;

    for (size_t i = 0; i < length; i++) {
        int value;

        if (text[i] == '\n' || text[i] == '\r' || text[i] == ' ' || text[i] == '\t')
            continue;
        if (text[i] == '=') {
            padding++;
            continue;
        }
        value = digit_value(text[i]);
        if (value < 0 || padding > 0)
            return -1;
        bits = bits << 6 | (uint32_t)value;
        digits++;
        if (digits % 4 == 0) {
            out[written++] = (unsigned char)(bits >> 16);
            out[written++] = (unsigned char)(bits >> 8);
            out[written++] = (unsigned char)bits;
        }
    }
    if (padding > 2 || (digits + padding) % 4 != 0)
        return -1;
    if (digits % 4 == 3) {
        out[written++] = (unsigned char)(bits >> 10);
        out[written++] = (unsigned char)(bits >> 2);
    } else if (digits % 4 == 2) {
        out[written++] = (unsigned char)(bits >> 4);
    }
    return (ssize_t)written;
}

int base64_append(struct buf *out, const void *bytes, size_t length)
{
    unsigned char *room = buf_reserve(out, (length + 2) / 3 * 4 + 1); /* and a NUL */

    if (!room)
        return -1;
    buf_commit(out, (size_t)EVP_EncodeBlock(room, bytes, (int)length));
    return 0;
}

char *fingerprint_new(const void *blob, size_t length)
{
    AUTO_BUF struct buf text = BUF_INIT(128);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char *shown;

    SHA256(blob, length, digest);
    (void)buf_puts(&text, "SHA256:");
    (void)base64_append(&text, digest, sizeof digest);
    shown = buf_take(&text);
    shown[strcspn(shown, "=")] = '\0';
    return shown;
}
