/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/types.h"

#include <stdlib.h>

#define ELASTIC_NAME(name, text) [name] = (text),
#define ELASTIC_NAMES(function, kind, list)                      \
    const char *function(enum kind value)                        \
    {                                                            \
        static const char *const names[] = {list(ELASTIC_NAME)}; \
        return names[value];                                     \
    }

ELASTIC_NAMES(elastic_state_name, elastic_state, ELASTIC_STATE_LIST)
ELASTIC_NAMES(elastic_host_state_name, elastic_host_state, ELASTIC_HOST_LIST)
ELASTIC_NAMES(elastic_worker_state_name, elastic_worker_state, ELASTIC_WORKER_LIST)
ELASTIC_NAMES(elastic_mode_name, elastic_mode, ELASTIC_MODE_LIST)
ELASTIC_NAMES(elastic_event_name, elastic_event_kind, ELASTIC_EVENT_LIST)
ELASTIC_NAMES(elastic_action_name, elastic_action_kind, ELASTIC_ACTION_LIST)
ELASTIC_NAMES(elastic_end_name, elastic_end, ELASTIC_END_LIST)

void elastic_config_init(struct elastic_config *config)
{
    *config = (struct elastic_config){
        .mode = ELASTIC_AUTO,
        .np = 1,
        .min_np = 1,
        .reset_limit = -1,
        .max_restarts = 3,
        .max_preemptions = -1,
        .idle_restarts = -1,
        .elastic_timeout_ms = 600000,
        .rejoin_timeout_ms = 60000,
        .prepare_timeout_ms = 60000,
        .grow_delay_ms = 1000,
        .gather_ms = 1000,
        .grace_ms = 30000,
        .orderly_grace_ms = 30000,
        .reconnect_min_ms = 1000,
        .reconnect_max_ms = 60000,
        .failure_decay_ms = 600000,
        .suspect_ms = 5000,
        .patience_ms = 10000,
        .renotify_ms = 500,
        .failure_limit = 3,
    };
}

void elastic_actions_destroy(struct elastic_actions *actions)
{
    free(actions->items);
    *actions = (struct elastic_actions){.items = NULL};
}
