/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/login.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct ssh_login {
    const struct ssh_module *module;
    struct ssh_session *session;
    struct loop_fd *watch;
    struct loop_timer *timer; /* the state's deadline */
    struct loop_timer *first; /* sets off from the loop */
    enum ssh_state state;
    int64_t limit_ms;
    struct ssh_login_events events;
    void *context;
};

static void finish(struct ssh_login *login, enum ssh_state state, const char *why)
{
    loop_fd_destroy(login->watch);
    login->watch = NULL;
    loop_timer_clear(login->timer);
    login->events.done(login->context, state, why);
}

static void login_run(struct ssh_login *login)
{
    enum ssh_state state = login->module->advance(login->session);
    if (state >= SSH_STATE_OPEN) {
        finish(login, state,
               state == SSH_STATE_OPEN ? NULL : login->module->problem(login->session));
        return;
    }
    if (state != login->state) {
        login->state = state;
        loop_timer_set(login->timer, login->limit_ms);
        login->events.state(login->context, state);
    }
    loop_fd_watch(login->watch, login->module->wants(login->session));
}

static void login_ready(void *context, int what)
{
    (void)what;
    login_run(context);
}

static void login_first(void *context)
{
    login_run(context);
}

static void login_late(void *context)
{
    static const char *const waiting[] = {
        [SSH_STATE_HANDSHAKE] = "the ssh handshake did not end (is it an ssh server? is it "
                                "overloaded?)",
        [SSH_STATE_HOST_KEY] = "the host key could not be checked",
        [SSH_STATE_AUTH] = "the login did not end (is the server overloaded, or its account "
                           "service down?)",
        [SSH_STATE_CHANNEL] = "no shell was started after the login",
    };
    struct ssh_login *login = context;
    char why[256];
    snprintf(why, sizeof(why), "%s within %.3g s", waiting[login->state],
             (double)login->limit_ms / 1000);
    finish(login, SSH_STATE_FAILED, why);
}

struct ssh_login *ssh_login_start(struct loop *loop, const struct ssh_module *module,
                                  const struct ssh_host_config *config, int64_t limit_ms,
                                  const struct ssh_login_events *events, void *context)
{
    struct ssh_login *login = mem_alloc(sizeof(*login));
    *login = (struct ssh_login){.module = module,
                                .session = module->create(config),
                                .state = SSH_STATE_HANDSHAKE,
                                .limit_ms = limit_ms,
                                .events = *events,
                                .context = context};
    login->watch = loop_fd_create(loop, config->fd, login_ready, login);
    login->timer = loop_timer_create(loop, login_late, login);
    login->first = loop_timer_create(loop, login_first, login);
    loop_timer_set(login->timer, limit_ms);
    loop_timer_set(login->first, 0);
    return login;
}

void ssh_login_destroy(struct ssh_login *login)
{
    if (login == NULL)
        return;
    loop_fd_destroy(login->watch);
    loop_timer_destroy(login->timer);
    loop_timer_destroy(login->first);
    login->module->destroy(login->session);
    free(login);
}

struct ssh_session *ssh_login_session(const struct ssh_login *login)
{
    return login->session;
}

enum transport_stage ssh_login_stage(enum ssh_state state)
{
    switch (state) {
    case SSH_STATE_HOST_KEY: return STAGE_HOST_KEY;
    case SSH_STATE_AUTH: return STAGE_AUTH;
    case SSH_STATE_CHANNEL: return STAGE_START;
    default: return STAGE_HANDSHAKE;
    }
}
