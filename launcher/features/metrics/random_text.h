/* SPDX-License-Identifier: Apache-2.0 */
/* 128 random bits as hexadecimal digits, for tokens. */
#pragma once

#define RANDOM_TEXT_ROOM 33

int random_text(char out[RANDOM_TEXT_ROOM]); /* -1: the kernel has no randomness yet */
