/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fusion.h"

#include <stdlib.h>

#include "base/mem.h"

/* A group that others may still come into. There is one for each way in which tensors fuse. */
struct open_group {
    const struct request *first;
    size_t number, bytes;
};

static struct open_group *find(struct open_group *open, size_t count, const struct request *request)
{
    for (size_t i = 0; i < count; i++)
        if (request_fuses(open[i].first, request))
            return &open[i];
    return NULL;
}

size_t fusion_groups(const struct request *const *requests, size_t count, int ranks,
                     size_t threshold, size_t *groups)
{
    struct open_group *open AUTO_FREE = mem_array(count, sizeof *open);
    size_t open_count = 0, number = 0, limit = threshold < FUSION_ALONE ? threshold : FUSION_ALONE;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = request_fused_bytes(requests[i], ranks);
        struct open_group *group = find(open, open_count, requests[i]);
        if (group != NULL && bytes <= limit && group->bytes <= threshold - bytes) {
            groups[i] = group->number;
            group->bytes += bytes;
            continue;
        }
        groups[i] = number++;
        if (bytes > limit || !request_fuses(requests[i], requests[i]))
            continue;
        if (group == NULL)
            group = &open[open_count++];
        *group = (struct open_group){requests[i], groups[i], bytes};
    }
    return number;
}
