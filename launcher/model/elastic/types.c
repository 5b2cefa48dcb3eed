/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/types.h"

#include <stdlib.h>

#define ELASTIC_NAME(name, text) [name] = (text),

const char *elastic_state_name(enum elastic_state state)
{
    static const char *const names[] = {ELASTIC_STATE_LIST(ELASTIC_NAME)};
    return names[state];
}

const char *elastic_host_state_name(enum elastic_host_state state)
{
    static const char *const names[] = {ELASTIC_HOST_LIST(ELASTIC_NAME)};
    return names[state];
}

const char *elastic_worker_state_name(enum elastic_worker_state state)
{
    static const char *const names[] = {ELASTIC_WORKER_LIST(ELASTIC_NAME)};
    return names[state];
}

const char *elastic_mode_name(enum elastic_mode mode)
{
    static const char *const names[] = {ELASTIC_MODE_LIST(ELASTIC_NAME)};
    return names[mode];
}

const char *elastic_event_name(enum elastic_event_kind kind)
{
    static const char *const names[] = {ELASTIC_EVENT_LIST(ELASTIC_NAME)};
    return names[kind];
}

const char *elastic_action_name(enum elastic_action_kind kind)
{
    static const char *const names[] = {ELASTIC_ACTION_LIST(ELASTIC_NAME)};
    return names[kind];
}

const char *elastic_end_name(enum elastic_end end)
{
    static const char *const names[] = {ELASTIC_END_LIST(ELASTIC_NAME)};
    return names[end];
}

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

void elastic_actions_clear(struct elastic_actions *actions)
{
    actions->count = 0;
}

void elastic_actions_destroy(struct elastic_actions *actions)
{
    free(actions->items);
    *actions = (struct elastic_actions){.items = NULL};
}
