/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SSH module, hvdrun-ssh.so: the only user of libssh2, and of key material. It has no loop, no
 * clock and no children. The owner of a session calls ssh->advance() whenever the socket is ready
 * for what the session wants; more calls do no harm. Nothing in it blocks, but for a key agent on a
 * local socket: SSH_AGENT_WAIT_MS at most.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strv.h"

#define SSH_MODULE_VERSION 4
/* for io/module_open.h */
#define SSH_MODULE_KIND                                                                    \
    (&(const struct module_kind){"hvdrun-ssh.so", "hvdrun_ssh_module", SSH_MODULE_VERSION, \
                                 "is libssh2 installed (libssh2-1)?"})
#define SSH_AGENT_WAIT_MS 2000

enum ssh_want { SSH_WANT_READ = 1, SSH_WANT_WRITE = 2 }; /* as LOOP_READ, LOOP_WRITE */

enum ssh_host_policy { SSH_HOST_ACCEPT_NEW, SSH_HOST_STRICT, SSH_HOST_ANY };

/* The state of a session. The last three are final. */
enum ssh_state {
    SSH_STATE_HANDSHAKE,
    SSH_STATE_HOST_KEY,
    SSH_STATE_AUTH,
    SSH_STATE_CHANNEL,  /* opening it and starting the command */
    SSH_STATE_OPEN,     /* read and write */
    SSH_STATE_FAILED,   /* `problem` says why: one line, cause and remedy */
    SSH_STATE_AGAIN,    /* the server cut us off before its banner (MaxStartups): worth a retry */
    SSH_STATE_FALLBACK, /* the `ssh` program must do this host; `problem` says why */
};

struct ssh_keys;        /* identities and a key agent, loaded once for all sessions that use them */
struct ssh_known_files; /* what known_hosts files say, read once for all sessions */

struct ssh_keys_config {
    char *const *files;       /* NULL-ended, in order; those that do not exist are skipped, and
                               * encrypted ones too (a note says so) */
    const char *agent_socket; /* NULL: no agent */
    bool identities_only;     /* of the agent's, only those that `files` name */
};

struct ssh_host_config {
    int fd;              /* connected, non-blocking; stays the caller's */
    const char *name;    /* what known_hosts lists: the name, or HostKeyAlias */
    const char *address; /* numeric; for messages; as OpenSSH (CheckHostIP no) it is not looked up;
                          * NULL: reached through a proxy */
    int port;            /* that known_hosts lists it with; 22 when `name` is a HostKeyAlias */
    const char *user;
    struct ssh_keys *keys; /* NULL: none */
    const char *no_keys;   /* why, with the remedy; NULL: there are keys */
    struct ssh_known_files *known_files;
    char *const *known_hosts; /* NULL-ended; new keys are appended to the first */
    enum ssh_host_policy policy;
    const char *strict_remedy; /* "do this" to accept an unknown key; for SSH_HOST_STRICT only */
    bool hash_names;           /* of hosts that are appended */
    const char *command;
};

struct ssh_session;

enum ssh_channel { SSH_CHANNEL_OUT, SSH_CHANNEL_ERR };

struct ssh_module {
    int version; /* SSH_MODULE_VERSION */

    /* Files are read now. NULL: there is no key that could be used, in files or agent; `err` says
     * why. Notes (a key that was skipped, and why) are appended to `notes`. */
    struct ssh_keys *(*keys_create)(const struct ssh_keys_config *config, struct strv *notes,
                                    struct error *err);
    void (*keys_destroy)(struct ssh_keys *keys); /* after the sessions; wipes them */

    struct ssh_known_files *(*known_files_create)(void);
    void (*known_files_destroy)(struct ssh_known_files *files); /* accepts NULL */

    /* Everything in `config` is borrowed until destroy. Never NULL. */
    struct ssh_session *(*create)(const struct ssh_host_config *config);
    void (*destroy)(struct ssh_session *session); /* without a word to the server: never blocks */

    /* Goes on as far as it can without blocking. In SSH_STATE_OPEN it sends what it could not send
     * before, and notices the end of the command. So call it there too when the socket is ready. */
    enum ssh_state (*advance)(struct ssh_session *session);
    int (*wants)(const struct ssh_session *session); /* enum ssh_want bits, for the socket */
    const char *(*problem)(const struct ssh_session *session); /* borrowed */
    /* How it was done, for -v: "ed25519 key ~/.ssh/id (file), host key ssh-ed25519 SHA256:...". */
    const char *(*summary)(const struct ssh_session *session);

    /* In SSH_STATE_OPEN. Bytes; -1 with EAGAIN; -1 with another errno: the connection is broken
     * (`problem` says how); read: 0 is the end of that channel.
     * Only reading SSH_CHANNEL_OUT takes bytes off the socket; it puts those of the other channel
     * into memory, and news of room to write. So when SSH_STATE_OPEN is reached, and whenever the
     * socket is readable: read OUT until EAGAIN or 0, then ERR likewise, then write, then wait.
     * Leave neither channel unread: 2 MiB in memory stop both.
     * What write() took need not be written again; bytes that it could not send yet go out with
     * the next call of any kind. */
    ssize_t (*read)(struct ssh_session *session, enum ssh_channel channel, void *bytes,
                    size_t room);
    ssize_t (*write)(struct ssh_session *session, const void *bytes, size_t length);
    int (*send_eof)(struct ssh_session *session); /* 0; -1 with EAGAIN */
    /* After the end of the output, once the server has sent it, which may take another advance() or
     * two: 0..255; 128 + N for signal N; -1: not known (yet). */
    int (*exit_status)(const struct ssh_session *session);

    /* The state that it was in before the present one, for the message of a final one. */
    enum ssh_state (*reached)(const struct ssh_session *session);
};
