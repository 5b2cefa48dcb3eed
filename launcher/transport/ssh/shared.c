/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/shared.h"

#include <stdlib.h>

#include "base/mem.h"
#include "io/module_open.h"

static void idle_fire(void *context)
{
    const struct ssh_shared *shared = context;
    agent_image_hash(shared->settings->room->image);
}

struct ssh_shared *ssh_shared_create(const struct ssh_settings *settings,
                                     void (*turn)(void *context), void *context)
{
    struct ssh_shared *shared = mem_alloc(sizeof(*shared));
    *shared = (struct ssh_shared){
        .settings = settings,
        .loop = settings->room->loop,
        .window = ssh_window_create(settings->window),
        .query_settings = {.room = settings->room, .config_file = settings->config_file},
    };
    shared->queries = ssh_queries_create(&shared->query_settings);
    shared->turn = loop_timer_create(shared->loop, turn, context);
    shared->idle = loop_timer_create(shared->loop, idle_fire, shared);
    return shared;
}

void ssh_shared_destroy(struct ssh_shared *shared)
{
    if (shared == NULL)
        return;
    loop_timer_destroy(shared->turn);
    loop_timer_destroy(shared->idle);
    ssh_window_destroy(shared->window);
    ssh_queries_destroy(shared->queries);
    resolver_destroy(shared->resolver);
    ssh_identities_destroy(shared->identities);
    if (shared->module != NULL)
        shared->module->known_files_destroy(shared->known_files);
    free(shared->why_not);
    free(shared);
}

void ssh_shared_schedule(struct ssh_shared *shared)
{
    loop_timer_set(shared->turn, 0);
}

void ssh_shared_open_resolver(struct ssh_shared *shared)
{
    struct error err = ERROR_INIT;
    if (shared->resolver != NULL || shared->why_not != NULL)
        return;
    shared->resolver = resolver_create(shared->loop, NULL, &err);
    if (shared->resolver == NULL)
        shared->why_not = mem_strdup(err.text);
}

const char *ssh_shared_open_module(struct ssh_shared *shared)
{
    struct error err = ERROR_INIT;
    if (shared->module != NULL || shared->why_not != NULL)
        return shared->why_not;
    shared->module = module_open(shared->settings->module_path, SSH_MODULE_KIND, &err);
    if (shared->module == NULL) {
        shared->why_not = mem_strdup(err.text);
        return shared->why_not;
    }
    shared->known_files = shared->module->known_files_create();
    shared->identities = ssh_identities_create(shared->module);
    return NULL;
}

void ssh_shared_idle(struct ssh_shared *shared)
{
    loop_timer_set(shared->idle, 0);
}
