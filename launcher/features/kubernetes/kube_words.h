/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `hvdrun kubernetes`. Pure. */
#pragma once

#include <stdbool.h>

#include "features/kubernetes/manifest.h"

struct kube_words {
    struct manifest manifest; /* its secret is NULL */
    bool with_secret, help;
};

/* `words` follow the command's own, and are NULL-ended; the text is borrowed. -1: STATUS_USAGE. */
int kube_words_read(char *const *words, struct kube_words *out, struct error *err);
void kube_words_help(struct buf *out);
