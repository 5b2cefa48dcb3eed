/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/own_addresses.h"

#include "model/net/address.h"
#include "node/facts.h"

static void add_class(const struct node_address *all, size_t count, enum network_class fitness,
                      bool ipv6, struct strv *out)
{
    for (size_t i = 0; i < count && out->count < OWN_ADDRESSES_MAX; i++) {
        struct network_address parsed;
        if (all[i].up && all[i].ipv6 == ipv6 &&
            network_address_set(&parsed, all[i].iface, all[i].text, all[i].prefix) &&
            parsed.fitness == fitness)
            strv_add(out, all[i].text);
    }
}

void own_addresses_list(struct strv *out)
{
    static const enum network_class order[] = {NETWORK_ORDINARY, NETWORK_VIRTUAL,
                                               NETWORK_LINK_LOCAL, NETWORK_LOOPBACK};
    struct node_address *all = NULL;
    size_t count = node_addresses_read(&all);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        add_class(all, count, order[i], false, out);
        add_class(all, count, order[i], true, out);
    }
    node_addresses_destroy(all, count);
}
