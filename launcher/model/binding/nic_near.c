/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding/nic_near.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* Smaller is nearer; INT_MAX: not known. Whatever has a bridge in common is nearer than what is
 * only on the same memory node. */
static int far(const struct device *gpu, const struct device *nic)
{
    int distance = device_distance(gpu, nic);
    if (distance >= 0)
        return distance;
    return gpu->numa >= 0 && gpu->numa == nic->numa ? INT_MAX - 1 : INT_MAX;
}

static int nearest(const struct device_list *nics, const struct device *gpu)
{
    int best = INT_MAX;
    for (size_t i = 0; i < nics->count; i++) {
        int distance = far(gpu, &nics->items[i]);
        best = distance < best ? distance : best;
    }
    return best;
}

/* Are the adapters that are nearest to one GPU those of the other, too? */
static bool same_choice(const struct device_list *nics, const struct device *one,
                        const struct device *other)
{
    int left = nearest(nics, one), right = nearest(nics, other);
    bool same = true;
    for (size_t i = 0; i < nics->count && same; i++)
        same = (far(one, &nics->items[i]) == left) == (far(other, &nics->items[i]) == right);
    return same;
}

const struct device *nic_near(const struct device_list *nics, const struct device_list *gpus,
                              size_t gpu)
{
    int best = nearest(nics, &gpus->items[gpu]);
    if (best == INT_MAX)
        return NULL;
    size_t choices = 0, turn = 0;
    for (size_t i = 0; i < nics->count; i++)
        choices += far(&gpus->items[gpu], &nics->items[i]) == best;
    for (size_t i = 0; i < gpu; i++)
        turn += same_choice(nics, &gpus->items[i], &gpus->items[gpu]);
    turn %= choices;
    for (size_t i = 0; i < nics->count; i++) {
        if (far(&gpus->items[gpu], &nics->items[i]) != best)
            continue;
        if (turn == 0)
            return &nics->items[i];
        turn--;
    }
    return NULL;
}

void nic_near_values(const struct device_list *nics, const struct device_list *gpus, size_t first,
                     size_t count, struct buf *nccl, struct buf *ucx)
{
    for (size_t i = first; i < first + count && i < gpus->count; i++) {
        const struct device *nic = nic_near(nics, gpus, i);
        bool known = nic == NULL;
        for (size_t j = first; j < i && !known; j++)
            known = nic_near(nics, gpus, j) == nic;
        if (known)
            continue;
        /* without the '=' NCCL takes mlx5_1 for the beginning of a name, and mlx5_10 too */
        buf_printf(nccl, "%s%s:%d", nccl->length > 0 ? "," : "=", nic->name, nic->number);
        buf_printf(ucx, "%s%s:%d", ucx->length > 0 ? "," : "", nic->name, nic->number);
    }
}
