/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/fields.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <string.h>

struct fields fields_of(const void *bytes, size_t length)
{
    struct fields fields = {.at = bytes, .left = length};

    return fields;
}

static const unsigned char *take(struct fields *fields, size_t length)
{
    const unsigned char *at = fields->at;

    if (fields->bad || length > fields->left) {
        fields->bad = true;
        return NULL;
    }
    fields->at += length;
    fields->left -= length;
    return at;
}

uint8_t fields_u8(struct fields *fields)
{
    const unsigned char *at = take(fields, 1);

    return at ? *at : 0;
}

uint32_t fields_u32(struct fields *fields)
{
    const unsigned char *at = take(fields, 4);

    if (!at)
        return 0;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

struct byte_view fields_string(struct fields *fields)
{
    static const unsigned char nothing[1] = {0};
    struct byte_view view = {.at = nothing, .length = 0};
    uint32_t length = fields_u32(fields);
    const unsigned char *at = take(fields, length);

    if (at && length > 0) {
        view.at = at;
        view.length = length;
    }
    return view;
}

bool view_is(struct byte_view view, const char *text)
{
    return view.length == strlen(text) && memcmp(view.at, text, view.length) == 0;
}

bool view_equal(struct byte_view a, struct byte_view b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

struct byte_view buf_view(const struct buf *buf)
{
    struct byte_view view = {.at = (const unsigned char *)buf_text(buf), .length = buf->length};

    return view;
}

struct byte_view key_blob_type(struct byte_view blob)
{
    struct fields fields = fields_of(blob.at, blob.length);

    return fields_string(&fields);
}

int fields_put_u32(struct buf *out, uint32_t value)
{
    unsigned char bytes[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16),
                              (unsigned char)(value >> 8), (unsigned char)value};

    return buf_append(out, bytes, sizeof bytes);
}

int fields_put_string(struct buf *out, const void *bytes, size_t length)
{
    if (length > UINT32_MAX || fields_put_u32(out, (uint32_t)length) < 0)
        return -1;
    return length > 0 ? buf_append(out, bytes, length) : 0;
}

int fields_put_text(struct buf *out, const char *text)
{
    return fields_put_string(out, text, strlen(text));
}

int fields_put_mpint(struct buf *out, const unsigned char *bytes, size_t length)
{
    bool sign_byte;

    while (length > 0 && bytes[0] == 0) {
        bytes++;
        length--;
    }
    sign_byte = length > 0 && (bytes[0] & 0x80) != 0;
    if (length >= UINT32_MAX || fields_put_u32(out, (uint32_t)(length + sign_byte)) < 0)
        return -1;
    if (sign_byte && buf_putc(out, 0) < 0)
        return -1;
    return length > 0 ? buf_append(out, bytes, length) : 0;
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
