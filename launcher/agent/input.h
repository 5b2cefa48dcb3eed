/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard input of one worker. The driver sends it under credit, so at most INPUT_WINDOW bytes
 * wait here for a worker that does not read.
 */
#pragma once

#include "agent/post.h"
#include "io/loop.h"

#define INPUT_WINDOW (64u << 10)

struct input;

/* Takes `fd`, the writing end. `terminal`: it is a pty's master, where end of file is a ^D. */
struct input *input_create(struct loop *loop, const struct post *post, int fd, uint32_t seat,
                           bool terminal);
void input_destroy(struct input *input);
void input_bytes(struct input *input, const uint8_t *bytes, size_t length); /* 0: end of file */
