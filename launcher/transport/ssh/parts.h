/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the ssh transport, but for the configuration of hosts (transport/ssh/config.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "transport/resolve.h"
#include "transport/ssh/config.h"
#include "transport/ssh_module/ssh_module.h"
#include "transport/transports.h"

/*
 * shared.c: what the calls of the ssh transport share: the settings, and what is opened once for
 * all of them. The SSH module and the keys are opened with the first connection.
 */

struct ssh_program {
    const char *config_file; /* -F; NULL */
    const char *identity;    /* -i; NULL */
    const char *user;        /* -l; NULL: as configured */
    int port;                /* -p; 0: as configured */
    const char *check;       /* StrictHostKeyChecking; NULL: that of the template */
    int64_t silence_ms;      /* after which the connection is given up; 0: that of the template */
};
int ssh_program_words(const struct ssh_program *program, struct strv *words, struct error *err);

enum ssh_host_policy ssh_settings_policy(const struct ssh_settings *settings,
                                         const struct ssh_config *config);

/* After how many ms of silence a connection is given up. */
int64_t ssh_settings_silence_ms(const struct ssh_settings *settings);

struct ssh_key_set {
    struct ssh_key_set *next;
    char *name;            /* of this set among the others */
    struct ssh_keys *keys; /* NULL: `why` says why */
    char *why;
    struct strv notes; /* for the first call that asks for this set */
};

struct ssh_transport {
    const struct ssh_settings *settings;
    struct loop *loop;
    struct ssh_window *window;
    struct ssh_queries *queries;
    struct resolver *resolver;       /* from the first call on */
    char *why_not;                   /* no resolver or no module: the ssh program does all hosts */
    const struct ssh_module *module; /* from the first connection on */
    struct ssh_known_files *known_files; /* with the module */
    struct ssh_key_set *key_sets;
    struct loop_timer *turn; /* lets calls in that may go, from the loop */
    struct loop_timer *idle; /* a server was just sent something: does what can be done before it
                              * answers */
};

/* Opens the resolver, once. Where that fails, `why_not` says why. */
void ssh_shared_open_resolver(struct ssh_transport *ssh);

/* Opens the module, once. NULL: it is there; else why not. */
const char *ssh_shared_open_module(struct ssh_transport *ssh);

/* The keys for a host with this configuration. They live as long as the transport. Reads the files
 * and asks the agent when the set is new. */
struct ssh_key_set *ssh_shared_keys(struct ssh_transport *ssh, const struct ssh_config *config);
void ssh_shared_forget_keys(struct ssh_transport *ssh);

/*
 * window.c: how many calls go on at the same time: a number in all, and a smaller one for each
 * server or jump host. That is because sshd drops connections at random when too many are not yet
 * logged in (MaxStartups 10:30:100). Calls are served in order; a call whose server is busy lets
 * others pass.
 *
 * If a server drops connections all the same, its number is halved. Each login then adds one. No
 * clock, no loop: the owner asks which ticket is next whenever something has changed.
 */

#define SSH_RETRIES_MAX 5

struct ssh_window;
struct ssh_ticket;

struct ssh_window *ssh_window_create(int total);
void ssh_window_destroy(struct ssh_window *window); /* after its tickets; accepts NULL */
int ssh_window_per_server(int total);               /* max(8, total / 10), at most `total` */

/* A ticket waits from the beginning; `context` is given back by ssh_window_next(). */
struct ssh_ticket *ssh_ticket_create(struct ssh_window *window, void *context);
void ssh_ticket_destroy(struct ssh_ticket *ticket); /* gives back all it has; accepts NULL */

/* Gives back its place in the window and waits again, now for a place at `server` too (NULL: for
 * none). It keeps its place in the order. */
void ssh_ticket_wait(struct ssh_ticket *ticket, const char *server);
/* Neither waits nor has anything: a retry is due later. */
void ssh_ticket_rest(struct ssh_ticket *ticket);
/* The login is over: the place at the server is given back, the one in the window is not. */
void ssh_ticket_logged_in(struct ssh_ticket *ticket);
/* The server has dropped us: fewer at once. */
void ssh_ticket_dropped(struct ssh_ticket *ticket);

/* Lets the first ticket in that may go and returns its context; NULL: none. */
void *ssh_window_next(struct ssh_window *window);

/* How long to rest before retry 1, 2, ... It begins with 250 ms and doubles, times 0.5 to 1.5 by
 * `random`. So calls that were dropped together do not come back together. */
int64_t ssh_retry_delay_ms(int retry, uint32_t random);

/*
 * connection.c: the connection of a call to its server: TCP or a proxy, and the login over it. The
 * keys that the user has for the host are found with the first connection.
 */

struct ssh_connection_events {
    void (*stage)(void *context, enum transport_stage stage);
    void (*note)(void *context, const char *line);
    void (*logged_in)(void *context); /* the server is done with the login */

    /* One of these, once after each ssh_connection_open(), perhaps before it returns. All but the
     * first may close the connection; `why` is valid until then. */
    void (*open)(void *context); /* its session has started BOOT_COMMAND */
    void (*failed)(void *context, enum transport_stage stage, const char *why);
    void (*dropped)(void *context, const char *why);  /* the server has too many: try again */
    void (*not_ours)(void *context, const char *why); /* only the ssh program can do it */
};

struct ssh_connection {
    /* Borrowed, and set by the owner; the rest is zero before ssh_connection_open(). */
    struct ssh_transport *ssh;
    const char *asked_name; /* the host as the user has written it */
    const struct ssh_connection_events *events;
    void *context;

    const struct ssh_config *config;
    struct ssh_key_set *keys; /* NULL: not looked for */
    char *strict_remedy;      /* NULL: unknown host keys are accepted */
    struct dial *dial;
    bool has_socket; /* a TCP connection of its own */
    char peer[64];   /* ""; a proxy is used */
    struct ssh_proxy *proxy;
    struct ssh_host_config host; /* `fd`: the socket, or the proxy's */
    struct ssh_session *session;
    enum ssh_state state; /* as far as the owner knows */
    struct loop_fd *watch;
    struct loop_timer *deadline; /* of the state */
    struct loop_timer *first;    /* sets off from the loop */
};

/* `addresses`: NULL, if the configuration has a proxy. Both are borrowed until it is closed. */
void ssh_connection_open(struct ssh_connection *connection, const struct ssh_config *config,
                         const struct resolve_result *addresses);
void ssh_connection_close(struct ssh_connection *connection); /* it can be opened again */

/*
 * proxy.c: ways to a server other than TCP: a ProxyCommand, or the ssh program through jump hosts.
 * A helper process carries the connection over a socketpair; its stderr explains its failures.
 */

/* The argv for the host of `config`, which has a proxy_jump or a proxy_command; the caller destroys
 * it. `config_file`: ssh -F; NULL. Pure. -1: it cannot be used. */
int ssh_proxy_argv(const struct ssh_config *config, const char *asked_name, const char *config_file,
                   struct strv *argv, struct error *err);

struct ssh_proxy;

struct ssh_proxy *ssh_proxy_start(struct loop *loop, struct helpers *helpers, char *const *argv,
                                  struct error *err);
void ssh_proxy_destroy(struct ssh_proxy *proxy); /* closes the descriptor; accepts NULL */

int ssh_proxy_fd(const struct ssh_proxy *proxy);          /* non-blocking; stays the proxy's */
const char *ssh_proxy_last_line(struct ssh_proxy *proxy); /* of its stderr; ""; borrowed */
/* Its stderr is that of an ssh that a server has cut off, or empty. */
bool ssh_proxy_was_cut(struct ssh_proxy *proxy);

/*
 * stream.c: from a session whose shell runs to an agent's stream: the pump, and on its far end the
 * boot dialogue first, then the caller.
 */

struct ssh_stream_events {
    void (*stage)(void *context, enum transport_stage stage);
    void (*up)(void *context, int fd); /* the receiver's now */
    /* Before `up`. The stream may be destroyed in here. */
    void (*failed)(void *context, enum transport_stage stage, const char *why);
    /* After `up`; then the end of file is seen. The stream may be destroyed in here. */
    void (*lost)(void *context, const char *why);
    void (*line)(void *context, const char *line); /* of the host's stderr */
};

struct ssh_stream;

/* Borrows everything, until destroy. NULL: `err` says why. */
struct ssh_stream *ssh_stream_create(const struct transport_room *room,
                                     const struct ssh_module *module, struct ssh_session *session,
                                     int ssh_fd, int node, const struct ssh_stream_events *events,
                                     void *context, struct error *err);
/* Before the session and its descriptor; accepts NULL. */
void ssh_stream_destroy(struct ssh_stream *stream);
