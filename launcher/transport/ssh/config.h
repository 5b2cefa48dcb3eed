/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What OpenSSH's configuration says about one host, as far as we do it ourselves. OpenSSH is asked
 * (`ssh -G`); its files are never interpreted here, only looked at for whether they say anything,
 * and for which hosts they say the same (transport/ssh/sections.h).
 * Pure: bytes in, a struct out.
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
    char *not_ours;      /* why the ssh program must do this host; NULL: we can */
};

/* Where the values come from that a configuration only refers to. */
struct ssh_config_place {
    const char *home;                          /* of the user; replaces "~" */
    const char *user;                          /* who we are here */
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

/* True when a system-wide file says nothing that matters to us beyond what distributions ship, so
 * that `ssh -G` need not be run for every host. `*includes` is set when it includes the folder
 * ssh_config.d, whose files are to be looked at in the same way; `*hash_names` when it says so. */
bool ssh_config_is_plain(const char *text, size_t length, bool *includes, bool *hash_names);
