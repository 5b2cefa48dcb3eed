/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What OpenSSH's configuration says about one host, as far as we do it ourselves. hvdrun asks
 * OpenSSH (`ssh -G`), and never interprets its files. A look at them shows only two things: whether
 * they say anything, and whether they can say different things about different hosts. Pure, but for
 * query.c: bytes in, a struct out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strv.h"
#include "transport/ssh_module/ssh_module.h"
#include "transport/transports.h"

#define SSH_CONFIG_OUTPUT_MAX ((size_t)256 << 10) /* of `ssh -G` */

struct ssh_config {
    char *host_name; /* to connect to */
    char *user;
    int port;
    int family;             /* AF_UNSPEC, AF_INET, AF_INET6 */
    int connect_timeout_s;  /* 0: not said */
    char *host_key_alias;   /* NULL */
    struct strv identities; /* files, "~" expanded; some may not exist */
    char *agent_socket;     /* NULL: no agent */
    bool identities_only;
    struct strv known_hosts; /* the user's first */
    enum ssh_host_policy policy;
    bool hash_names;
    char *proxy_jump;    /* NULL */
    char *proxy_command; /* NULL */
    char *not_ours;      /* why the ssh program must do this host; NULL: libssh2 can */
};

/* Where the values come from that a configuration only refers to. */
struct ssh_config_place {
    const char *home;                          /* of the user; replaces "~" */
    const char *user;                          /* the user who runs us */
    const char *(*variable)(const char *name); /* getenv */
};

void ssh_config_init(struct ssh_config *config);
void ssh_config_destroy(struct ssh_config *config); /* accepts an all-zero struct */

/* The same for another host, under whose name it is to be reached. `to` need not be initialized. */
void ssh_config_copy(struct ssh_config *to, const struct ssh_config *from, const char *host);

/* A path whose `~/` is the user's home. The caller owns it. */
char *ssh_config_expand(const char *path, const struct ssh_config_place *place);

/* What OpenSSH does without any configuration. */
void ssh_config_defaults(struct ssh_config *config, const char *host,
                         const struct ssh_config_place *place);

/* Parses what `ssh -G` printed. -1: that is not such an output. */
int ssh_config_parse(struct ssh_config *config, const char *text, size_t length,
                     const struct ssh_config_place *place, struct error *err);

/* What a look at files of OpenSSH's configuration shows. */
struct ssh_config_sight {
    bool matters;        /* they say more than what distributions ship, so `ssh -G` is asked */
    bool by_host;        /* that may differ from host to host, so it is asked about each */
    bool includes_parts; /* the files of SSH_CONFIG_PARTS belong to them */
    bool hash_names;     /* HashKnownHosts */
};

#define SSH_CONFIG_PARTS "/etc/ssh/ssh_config.d/*.conf"

/* Adds what this file shows. Only `Host *` and options without a token (%h) are the same for all
 * hosts. Anything else can differ: Match, other Host lines, other Includes, unknown words. */
void ssh_config_look(const char *text, size_t length, struct ssh_config_sight *sight);

/*
 * query.c: the configuration of a host: OpenSSH's defaults when there is no configuration at all,
 * otherwise what `ssh -G` says. `ssh -G` runs once for each host. If the files cannot say different
 * things about different hosts, it runs once for all hosts with the same user, port and key.
 */

/* A host and what has been said about it, by its entry in the host list or by an option. */
struct ssh_wanted {
    const char *host;
    const char *user;        /* NULL: not said */
    const char *identity;    /* file with the private key; NULL: not said */
    const char *identity_by; /* what named it, for messages */
    int port;                /* 0: not said */
};

struct ssh_queries;
struct ssh_question;

/* Of the settings: room, config_file. Borrows them. */
struct ssh_queries *ssh_queries_create(const struct ssh_settings *settings);
void ssh_queries_destroy(struct ssh_queries *queries); /* after the questions; accepts NULL */

/* `wanted` is needed during the call only. `done` comes once, from the loop, never from within this
 * call. The configuration is borrowed until the queries are destroyed; NULL: `why` says why. */
struct ssh_question *ssh_query_ask(struct ssh_queries *queries, const struct ssh_wanted *wanted,
                                   void (*done)(void *context, const struct ssh_config *config,
                                                const char *why),
                                   void *context);
/* Due for every question, once, also after its answer; accepts NULL. */
void ssh_question_destroy(struct ssh_question *question);
