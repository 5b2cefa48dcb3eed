/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS module, hvdrun-tls.so: the only user of OpenSSL in launcher/io (D2). It speaks TLS 1.3
 * with TLS_AES_128_GCM_SHA256 and one pre-shared key. It has no certificates, tickets, resumption
 * or early data. The key exchange is ephemeral: a key that becomes known later does not open what
 * was recorded before.
 *
 * It has no loop, no clock and no threads. Nothing in it blocks as long as the socket does not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define TLS_MODULE_VERSION 1
/* for io/module_open.h */
#define TLS_MODULE_KIND                                                                    \
    (&(const struct module_kind){"hvdrun-tls.so", "hvdrun_tls_module", TLS_MODULE_VERSION, \
                                 "is OpenSSL 3 installed (libssl3)?"})
#define TLS_KEY_SIZE 32
#define TLS_IDENTITY_MAX 512

enum tls_want { TLS_WANT_READ = 1, TLS_WANT_WRITE = 2 }; /* as LOOP_READ, LOOP_WRITE */

enum tls_state { TLS_HANDSHAKE, TLS_OPEN, TLS_FAILED /* final: `problem` says why */ };

/* What a session waits for differs between its operations. */
enum tls_operation { TLS_SHAKING, TLS_READING, TLS_WRITING };

struct tls_party_config {
    bool is_server;
    uint8_t key[TLS_KEY_SIZE];
    const char *identity; /* that a client claims: printable ASCII; NULL for a server */
    uint64_t rekey_bytes; /* sent under one traffic key; 0: what AES-GCM is good for */
};

struct tls_party;   /* one end of many sessions with the same key */
struct tls_session; /* one connection */

struct tls_module {
    int version; /* TLS_MODULE_VERSION */

    /* Everything in `config` is copied. NULL: `err` says why. */
    struct tls_party *(*party_create)(const struct tls_party_config *config, struct error *err);
    void (*party_destroy)(struct tls_party *party); /* its sessions live on; accepts NULL */

    /* `fd` is connected and non-blocking, and stays the caller's. */
    struct tls_session *(*create)(struct tls_party *party, int fd, struct error *err);
    void (*destroy)(struct tls_session *session); /* without a word to the peer; accepts NULL */

    enum tls_state (*advance)(struct tls_session *session); /* the handshake, as far as it goes */
    int (*wants)(const struct tls_session *session, enum tls_operation operation);
    /* What the client claims to be, once a server's session is open; else "". Borrowed. */
    const char *(*identity)(const struct tls_session *session);
    /* One line about the peer: "it does not have the key". */
    const char *(*problem)(const struct tls_session *session);
    /* The peer spoke TLS and named an identity, but the key that it has is another one. */
    bool (*has_wrong_key)(const struct tls_session *session);

    /* Of an open session. Bytes; 0: the peer has ended it; -1 with EAGAIN; -1 with another errno:
     * it is broken (`problem`). What write() could not take must be given to it again, with at
     * least as many bytes. */
    ssize_t (*read)(struct tls_session *session, void *bytes, size_t room);
    ssize_t (*write)(struct tls_session *session, const void *bytes, size_t length);
    void (*end)(struct tls_session *session); /* tells the peer, if that goes without waiting */
};

/* One end of an open connection. */
struct tls_end {
    const struct tls_module *module;
    struct tls_session *session;
    int fd;
};
