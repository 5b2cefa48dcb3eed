/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of a probe of `hvdrun check` have in common: addresses, and the few bytes that are
 * spoken over TCP. Who calls says the token of whom he wants to reach; the answer is the same token
 * with all its bits turned over, so that both know that no third one is between, and no other
 * machine with the same address. Then the caller sends whatever it likes until it shuts its end
 * down, and is told how many bytes came after the token: 8 bytes, the highest first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define CHECK_TOKEN 16
#define CHECK_COUNT 8

/* false: `text` is no numeric address. */
bool check_socket_address(const char *text, uint32_t port, struct sockaddr_storage *address,
                          socklen_t *length);

/* Numeric, of the socket's own end, into 46 bytes; "" when it is not known. Its port, or 0. */
uint32_t check_socket_own(int fd, char *text);

void check_token_answer(const uint8_t token[CHECK_TOKEN], uint8_t answer[CHECK_TOKEN]);
void check_count_put(uint64_t count, uint8_t out[CHECK_COUNT]);
uint64_t check_count_get(const uint8_t in[CHECK_COUNT]);
