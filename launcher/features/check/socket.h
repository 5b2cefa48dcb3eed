/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of a probe of `hvdrun check` share: addresses, and the protocol over TCP.
 *
 * The caller sends the token of the node that it wants to reach. The answer is the same token with
 * all bits inverted. So both ends know that no third machine is between, and that no other machine
 * has the same address. Then the caller sends any bytes until it shuts its end down. The other end
 * answers with the number of bytes after the token: 8 bytes, the highest first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define CHECK_TOKEN 16
#define CHECK_COUNT 8

/* false: `text` is not a numeric address. */
bool check_socket_address(const char *text, uint32_t port, struct sockaddr_storage *address,
                          socklen_t *length);

/* Numeric, of the socket's own end, into 46 bytes; "" when it is not known. Its port, or 0. */
uint32_t check_socket_own(int fd, char *text);

void check_token_answer(const uint8_t token[CHECK_TOKEN], uint8_t answer[CHECK_TOKEN]);
void check_count_put(uint64_t count, uint8_t out[CHECK_COUNT]);
uint64_t check_count_get(const uint8_t in[CHECK_COUNT]);
