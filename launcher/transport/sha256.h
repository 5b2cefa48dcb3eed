/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) of bytes in memory. Our own, since linking a cryptographic library for one
 * hash of one file would cost every start of hvdrun more than the hash itself.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_TEXT_ROOM 65

/* Hexadecimal digits and a NUL. */
void sha256_text(const void *bytes, size_t length, char out[SHA256_TEXT_ROOM]);
