/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks wait in the store of torch.distributed, and for which others. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define TORCH_WAITS_MS 10000 /* shorter waits are usual */

struct torch_rank {
    int rank;
    const char *host;
    bool known;       /* its agent has looked */
    bool connected;   /* it has a connection to the store */
    const char *key;  /* for which it waits; NULL: it does not */
    size_t more_keys; /* that are missing, too */
    int64_t waited_ms;
};

/* Appends "ranks 0-2 wait for 12 s in PyTorch's store for '/key'; rank 3 on c is not connected to
 * it". `strangers`: clients that wait and are not known to be a rank. Nothing if nobody has waited
 * for TORCH_WAITS_MS; the key is the one for which most ranks wait. */
void torch_waits_text(const struct torch_rank *ranks, size_t count, size_t strangers,
                      struct buf *out);
