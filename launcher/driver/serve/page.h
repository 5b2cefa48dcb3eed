/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document of the status page: HTML with its style and script inside, from page/. The build
 * embeds these files.
 */
#pragma once

#include "base/buf.h"

#define PAGE_TEXT_MAX ((size_t)1 << 20)
#define PAGE_POLICY_MAX ((size_t)1024)

/* The document, and the policy (Content-Security-Policy) under which a browser runs its script, and
 * no other one. -1: there is no randomness. */
int page_text(struct buf *document, struct buf *policy);
