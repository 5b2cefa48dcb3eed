/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/hello.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strv.h"
#include "node/gpus.h"
#include "node/gpus_ask.h"
#include "wire/control.pb-c.h"

struct hello {
    const struct post *post;
    struct node_facts *facts;
    struct gpus_ask *ask; /* NULL: no program was asked */
};

static void send_hello(const struct post *post, const struct node_facts *facts)
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
    message.gpus = (uint32_t)facts->gpus;
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

static void answered(void *context, int gpus)
{
    struct hello *hello = context;
    struct device_list unknown = {.count = 0};
    gpus_fill_unknown(&unknown, gpus);
    hello->facts->gpus_told = gpus;
    hello->facts->gpus = gpus_seen(&unknown);
    device_list_destroy(&unknown);
    send_hello(hello->post, hello->facts);
}

static struct gpus_ask *ask(struct hello *hello, struct loop *loop, struct helpers *helpers)
{
    if (hello->facts->gpus_listed > 0 || !hello->facts->gpu_driver)
        return NULL;
    char *program AUTO_FREE = gpus_ask_program("", getenv("PATH"));
    if (program == NULL)
        return NULL;
    return gpus_ask_create(loop, helpers, program, GPUS_ASK_LIMIT_MS, answered, hello);
}

struct hello *hello_create(struct loop *loop, struct helpers *helpers, const struct post *post,
                           struct node_facts *facts)
{
    struct hello *hello = mem_alloc(sizeof(*hello));
    *hello = (struct hello){.post = post, .facts = facts};
    hello->ask = ask(hello, loop, helpers);
    if (hello->ask == NULL)
        send_hello(post, facts);
    return hello;
}

void hello_destroy(struct hello *hello)
{
    if (hello == NULL)
        return;
    gpus_ask_destroy(hello->ask);
    free(hello);
}
