/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/hello.h"

#include <unistd.h>

#include "base/strv.h"
#include "wire/control.pb-c.h"

void hello_send(const struct post *post, const struct node_facts *facts)
{
    AUTO_STRV struct strv addresses = STRV_INIT;
    Hvdrun__AgentHello message = HVDRUN__AGENT_HELLO__INIT;
    message.protocol = FRAME_VERSION;
    message.version = (char *)HVDRUN_VERSION;
    message.hostname = (char *)facts->hostname;
    message.boot_id = (char *)facts->boot_id;
    message.machine = (char *)facts->machine;
    message.pid = (uint32_t)getpid();
    message.cpus_allowed = (uint32_t)node_facts_cpus(facts);
    message.cpus_online = (uint32_t)facts->cpus_online;
    message.memory_bytes = facts->memory_bytes;
    for (size_t i = 0; i < facts->address_count; i++) {
        const struct node_address *address = &facts->addresses[i];
        int whole = address->ipv6 ? 128 : 32;
        if (address->up)
            strv_printf(&addresses, "%s %s/%d", address->iface, address->text,
                        address->prefix < 0 ? whole : address->prefix);
    }
    message.interfaces = addresses.items;
    message.n_interfaces = addresses.count;
    post_message(post, FRAME_HELLO, &message.base);
}
