/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document of the status page: HTML with its style and script inside, from page/. The build
 * embeds these files. A browser runs this script under a policy (Content-Security-Policy), and no
 * other one.
 */
#pragma once

#include "base/buf.h"

#define PAGE_TEXT_MAX ((size_t)1 << 20)
#define PAGE_POLICY_MAX ((size_t)1024)

/* The document that a server sends, and its policy. -1: there is no randomness. */
int page_text(struct buf *document, struct buf *policy);

/* The document for a file, with its policy and what it shows inside: JSON (page_file.h). -1:
 * likewise, or the limit of `document`. */
int page_kept_text(const struct buf *json, struct buf *document);

/* 128 random bits as hexadecimal digits, for tokens. */
#define RANDOM_TEXT_ROOM 33
int random_text(char out[RANDOM_TEXT_ROOM]); /* -1: the kernel has no randomness yet */
