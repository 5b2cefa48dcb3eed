/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What OpenSSH's configuration says about one host, as far as we do it ourselves. hvdrun asks
 * OpenSSH (`ssh -G`), and never interprets its files. A look at them shows only two things: whether
 * they say anything, and whether they can say different things about different hosts. Pure: bytes
 * in, a struct out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strv.h"
#include "transport/ssh_module/ssh_module.h"

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
