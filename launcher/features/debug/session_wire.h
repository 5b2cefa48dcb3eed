/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session of `hvdrun debug` or `hvdrun shell`: what the command and the driver say to each other.
 * It goes in pieces in both directions, over the connection of the request. Pure.
 *
 *   0 kind (1)  1 zero (1)  2 length of the body (2, network byte order)  4 body...
 *
 *   DATA    both     what is typed, and what the program prints
 *   SIZE    command  rows (2) and columns (2) of the terminal
 *   STATUS  driver   the last piece: exit status (1), and a remark for the user, or nothing
 *   BROKEN  driver   the last piece: why the session is over before its program
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SESSION_HEADER 4
#define SESSION_BODY_MAX ((size_t)16 << 10)

enum session_kind { SESSION_DATA = 1, SESSION_SIZE, SESSION_STATUS, SESSION_BROKEN };

struct session_piece {
    enum session_kind kind;
    const uint8_t *body; /* borrowed from the bytes */
    size_t length;
    uint16_t rows, columns; /* SIZE */
    uint8_t status;         /* STATUS; the body is the remark */
};

/* Appends a piece; bytes beyond SESSION_BODY_MAX, less a status, are cut off. */
void session_put(struct buf *out, enum session_kind kind, const void *body, size_t length);
void session_put_size(struct buf *out, uint16_t rows, uint16_t columns);
void session_put_status(struct buf *out, uint8_t status, const char *remark);

/* 1: `*out` is the piece at the beginning of the bytes, and `*used` how many of them it takes. 0:
 * more bytes are needed. -1: this is not a piece, or not one that the other side may send. */
int session_take(const void *bytes, size_t length, bool from_driver, struct session_piece *out,
                 size_t *used);
