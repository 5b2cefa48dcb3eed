/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/elastic.h"

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
