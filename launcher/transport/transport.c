/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport.h"

#include <stddef.h>

const char *transport_stage_name(enum transport_stage stage)
{
    static const char *const names[] = {
#define TRANSPORT_STAGE_NAME(name, text) [name] = (text),
        TRANSPORT_STAGE_LIST(TRANSPORT_STAGE_NAME)
#undef TRANSPORT_STAGE_NAME
    };
    return names[stage];
}

struct transport_call *transport_call(const struct transport *transport,
                                      const struct transport_target *target,
                                      const struct transport_events *events, void *events_context)
{
    return transport->ops->call(transport->context, target, events, events_context);
}

void transport_hang_up(struct transport_call *call)
{
    if (call != NULL)
        ((struct transport_call_head *)call)->ops->hang_up(call);
}
