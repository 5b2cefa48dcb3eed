/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's part of the store for torch.distributed. The node that the driver has chosen serves
 * it: for each set of workers that starts anew, on a port of its own. With "auto", each node looks
 * whether its PyTorch can use it.
 */
#include <stdlib.h>

#include "agent/agent_state.h"
#include "agent/crew_apps.h"
#include "agent/crew_config.h"
#include "base/fd.h"
#include "base/mem.h"
#include "features/torch_store/torch_look.h"
#include "features/torch_store/torch_server.h"
#include "features/torch_store/torch_waits_agent.h"
#include "model/settings/words.h"
#include "node/ports.h"

struct torch_desk {
    struct torch_server *server; /* NULL: another node serves it */
    int held;                    /* keeps others off the port */
    int port;
    char *doubt, *problem; /* NULL: none */
};

static void forget(struct torch_desk *desk)
{
    torch_server_destroy(desk->server);
    desk->server = NULL;
    desk->port = 0;
    fd_close(&desk->held);
    mem_free_at(&desk->doubt);
    mem_free_at(&desk->problem);
}

static int serve(struct torch_desk *desk, struct agent *agent, int wanted, struct error *err)
{
    desk->held = port_hold(port_range_read(), wanted, &desk->port, err);
    if (desk->held < 0)
        return -1;
    desk->server = torch_server_create(agent->loop, desk->port, &agent->post.log, err);
    return desk->server == NULL ? -1 : 0;
}

static int look(const Hvdrun__Prepare *prepare, const struct log *log, struct error *err)
{
    struct crew_apps apps;
    int result = crew_apps_fill(&apps, prepare, false, log, err);
    for (size_t i = 0; i < prepare->n_apps && result == 0; i++) {
        struct python_place place = {.path = apps.items[i].path,
                                     .wdir = apps.items[i].wdir,
                                     .search = crew_apps_getenv(&apps, i, "PATH"),
                                     .home = crew_apps_getenv(&apps, i, "HOME"),
                                     .python_path = crew_apps_getenv(&apps, i, "PYTHONPATH"),
                                     .user_base = crew_apps_getenv(&apps, i, "PYTHONUSERBASE"),
                                     .no_user_site =
                                         crew_apps_getenv(&apps, i, "PYTHONNOUSERSITE")};
        result = torch_look(&place, err);
    }
    crew_apps_destroy(&apps);
    return result;
}

static struct torch_desk *desk_of(struct agent *agent)
{
    struct torch_desk *desk = agent_own(agent, torch_desk);
    if (desk == NULL) {
        desk = mem_alloc(sizeof(*desk));
        *desk = (struct torch_desk){.held = -1};
        agent->own[AGENT_PART_torch_desk] = desk;
    }
    return desk;
}

/* Workers that join others have the store of these. */
static void crew(struct agent *agent, struct crew_config *config, const Hvdrun__Prepare *prepare,
                 bool joins)
{
    struct error err = ERROR_INIT;
    (void)joins;
    if (prepare->torch_store == SET_TORCH_STORE_RANK0)
        return;
    bool may_fail = prepare->torch_store == SET_TORCH_STORE_AUTO;
    struct torch_desk *desk = desk_of(agent);
    forget(desk);
    int result = may_fail ? look(prepare, &agent->post.log, &err) : 0;
    if (result == 0 && prepare->torch_store_node == prepare->node_index)
        result = serve(desk, agent, (int)prepare->torch_store_port, &err);
    if (result < 0)
        *(may_fail ? &desk->doubt : &desk->problem) = mem_strdup(err.text);
    config->ready.torch_store_port = desk->server == NULL ? 0 : (uint32_t)desk->port;
    if (desk->doubt != NULL)
        config->ready.torch_store_doubt = desk->doubt;
    config->problem = desk->problem;
}

static void answer(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    const struct torch_desk *desk = agent_own(agent, torch_desk);
    torch_waits_answer(agent->crews, desk == NULL ? NULL : desk->server, asked,
                       (const Hvdrun__TorchWaitsRequest *)request);
}

static void close_part(struct agent *agent)
{
    forget(agent_own(agent, torch_desk));
    free(agent_own(agent, torch_desk));
}

static const struct ask_rule topics[] = {{&topic_torch_waits, answer}, {.topic = NULL}};
const struct agent_part torch_desk_agent_part = {
    .name = "torch_desk", .topics = topics, .crew = crew, .close = close_part};
