/* SPDX-License-Identifier: Apache-2.0 */
#include "features/debug/session_wire.h"

#include <string.h>

static uint16_t get_short(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static void put_short(uint8_t *at, size_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put_header(struct buf *out, enum session_kind kind, size_t length)
{
    uint8_t header[SESSION_HEADER] = {(uint8_t)kind};
    put_short(header + 2, length);
    buf_append(out, header, sizeof(header));
}

void session_put(struct buf *out, enum session_kind kind, const void *body, size_t length)
{
    if (length > SESSION_BODY_MAX)
        length = SESSION_BODY_MAX;
    put_header(out, kind, length);
    buf_append(out, body, length);
}

void session_put_size(struct buf *out, uint16_t rows, uint16_t columns)
{
    uint8_t body[4];
    put_short(body, rows);
    put_short(body + 2, columns);
    session_put(out, SESSION_SIZE, body, sizeof(body));
}

void session_put_status(struct buf *out, uint8_t status, const char *remark)
{
    size_t length = strlen(remark);
    if (length > SESSION_BODY_MAX - 1)
        length = SESSION_BODY_MAX - 1;
    put_header(out, SESSION_STATUS, 1 + length);
    buf_append(out, &status, 1);
    buf_append(out, remark, length);
}

static bool is_right(const struct session_piece *piece, bool from_driver)
{
    switch (piece->kind) {
    case SESSION_DATA: return true;
    case SESSION_SIZE: return !from_driver && piece->length == 4;
    case SESSION_STATUS: return from_driver && piece->length >= 1;
    case SESSION_BROKEN: return from_driver;
    }
    return false;
}

int session_take(const void *bytes, size_t length, bool from_driver, struct session_piece *out,
                 size_t *used)
{
    const uint8_t *at = bytes;
    if (length < SESSION_HEADER)
        return 0;
    *out = (struct session_piece){
        .kind = (enum session_kind)at[0], .body = at + SESSION_HEADER, .length = get_short(at + 2)};
    if (at[1] != 0 || out->length > SESSION_BODY_MAX || !is_right(out, from_driver))
        return -1;
    if (length - SESSION_HEADER < out->length)
        return 0;
    *used = SESSION_HEADER + out->length;
    if (out->kind == SESSION_SIZE) {
        out->rows = get_short(out->body);
        out->columns = get_short(out->body + 2);
    }
    if (out->kind == SESSION_STATUS) {
        out->status = out->body[0];
        out->body++;
        out->length--;
    }
    return 1;
}
