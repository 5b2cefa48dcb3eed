/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The field types of RFC 4251, of which keys, signatures and the agent's messages consist. There is
 * a bounded reader over bytes, and there are writers that append to a struct buf.
 *
 * After a read past the end the reader is `bad` and stays so: numbers are 0, strings empty. A
 * caller reads all it needs and looks at `bad` once. Views live as long as the bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base64.h"
#include "base/buf.h"

struct byte_view {
    const unsigned char *at;
    size_t length;
};

struct fields {
    const unsigned char *at;
    size_t left;
    bool bad;
};

struct fields fields_of(const void *bytes, size_t length);
uint8_t fields_u8(struct fields *fields);
uint32_t fields_u32(struct fields *fields);
struct byte_view fields_string(struct fields *fields);

bool view_is(struct byte_view view, const char *text);
bool view_equal(struct byte_view a, struct byte_view b);
struct byte_view buf_view(const struct buf *buf);

/* The type that a public key blob begins with; empty when it is not one. */
struct byte_view key_blob_type(struct byte_view blob);

/* -1: over the buffer's limit. */
int fields_put_u32(struct buf *out, uint32_t value);
int fields_put_string(struct buf *out, const void *bytes, size_t length);
int fields_put_text(struct buf *out, const char *text);
/* A non-negative number, big-endian, as mpint. */
int fields_put_mpint(struct buf *out, const unsigned char *bytes, size_t length);

int base64_append(struct buf *out, const void *bytes, size_t length); /* -1: over the limit */

/* "SHA256:..." of a public key blob, as ssh-keygen -l prints it; the caller owns it. */
char *fingerprint_new(const void *blob, size_t length);
