/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the root of a process set tells the members through the engine: the points where it listens,
 * and a secret. On a connection, each side sends a nonce. Then it proves that it knows the secret
 * with an HMAC-SHA-256 of both nonces, of the point and of the member's rank. So the secret is on
 * no connection, and what somebody heard on one is worth nothing on another, nor at another point.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

enum {
    SECRET_SIZE = 32,
    NONCE_SIZE = 32,
    HELLO_SIZE = 4 + NONCE_SIZE + HMAC_SIZE,
    POINTS_MAX = 16
};

/* LOCAL: a socket of the root's host, whose name is made of the address. */
enum point_kind { POINT_LOCAL = 1, POINT_IPV4 = 4, POINT_IPV6 = 6 };

struct meeting_point {
    uint8_t kind;        /* enum point_kind */
    uint8_t address[16]; /* 4 of them for IPv4; in network order, as is the port */
    uint16_t port;
};

/* It travels as it is. */
struct invitation {
    uint8_t secret[SECRET_SIZE];
    struct meeting_point points[POINTS_MAX];
    uint32_t count; /* 0: the root could not listen */
};

/* What one connection is about. */
struct introduction {
    size_t point;
    uint32_t rank; /* of the member, in the set */
    uint8_t root_nonce[NONCE_SIZE], member_nonce[NONCE_SIZE];
};

/* The member's answer to the root's nonce: rank, own nonce and proof. */
void hello_write(const struct invitation *invitation, const struct introduction *introduction,
                 uint8_t out[HELLO_SIZE]);
/* At the root: fills in rank and nonce of the member. False: the proof is wrong. */
bool hello_read(const struct invitation *invitation, const uint8_t hello[HELLO_SIZE],
                struct introduction *introduction);

/* The root's answer to the member's hello. */
void welcome_write(const struct invitation *invitation, const struct introduction *introduction,
                   uint8_t out[HMAC_SIZE]);
bool welcome_is_right(const struct invitation *invitation, const struct introduction *introduction,
                      const uint8_t welcome[HMAC_SIZE]);
