/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 with an external pre-shared key over OpenSSL.
 *
 * Both ends pin the one suite, since OpenSSL 3 with its default list picks a suite whose digest the
 * key does not fit and fails ("no suitable signature algorithm"). The machine's openssl.cnf is not
 * read: nothing in it could make this better.
 */
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/tls_module.h"

#define SUITE "TLS_AES_128_GCM_SHA256"
/* AES-GCM is good for some 2^24 records under one key; they hold 16 KiB at most, and much less when
 * little is said at a time. */
#define REKEY_BYTES ((uint64_t)1 << 30)
#define REKEY_RECORDS ((uint64_t)1 << 22)

static const unsigned char suite_id[] = {0x13, 0x01};

struct tls_party {
    int users; /* its owner and its sessions */
    SSL_CTX *ctx;
    uint8_t key[TLS_KEY_SIZE];
    char identity[TLS_IDENTITY_MAX + 1];
    uint64_t rekey_bytes;
};

struct tls_session {
    struct tls_party *party;
    SSL *ssl;
    enum tls_state state;
    int wants[TLS_WRITING + 1];
    char identity[TLS_IDENTITY_MAX + 1]; /* of a server's client */
    bool wrong_key;
    uint64_t sent_bytes, sent_records; /* under the present traffic key */
    char problem[256];
};

/* The key as a session that TLS 1.3 can begin with. NULL: no memory. */
static SSL_SESSION *key_session(SSL *ssl, const struct tls_party *party)
{
    const SSL_CIPHER *suite = SSL_CIPHER_find(ssl, suite_id);
    SSL_SESSION *session = SSL_SESSION_new();
    if (session == NULL || suite == NULL ||
        SSL_SESSION_set1_master_key(session, party->key, sizeof(party->key)) != 1 ||
        SSL_SESSION_set_cipher(session, suite) != 1 ||
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
        SSL_SESSION_free(session);
        return NULL;
    }
    return session;
}

static int use_key(SSL *ssl, const EVP_MD *md, const unsigned char **identity, size_t *length,
                   SSL_SESSION **out)
{
    const struct tls_session *session = SSL_get_app_data(ssl);
    const SSL_CIPHER *suite = SSL_CIPHER_find(ssl, suite_id);
    *out = NULL;
    if (md != NULL && (suite == NULL || SSL_CIPHER_get_handshake_digest(suite) != md))
        return 1; /* the server wants another suite: without a key it has nothing to offer */
    *out = key_session(ssl, session->party);
    *identity = (const unsigned char *)session->party->identity;
    *length = strlen(session->party->identity);
    return *out != NULL;
}

/* A peer with the key may claim any name; the caller checks what the name stands for. */
static int find_key(SSL *ssl, const unsigned char *identity, size_t length, SSL_SESSION **out)
{
    struct tls_session *session = SSL_get_app_data(ssl);
    *out = NULL;
    if (length > TLS_IDENTITY_MAX)
        return 1;
    for (size_t i = 0; i < length; i++) {
        if (identity[i] <= 0x20 || identity[i] >= 0x7f)
            return 1;
    }
    memcpy(session->identity, identity, length);
    session->identity[length] = '\0';
    *out = key_session(ssl, session->party);
    return *out != NULL;
}

static int set_up(struct tls_party *party, bool is_server)
{
    SSL_CTX *ctx = party->ctx;
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(ctx, SUITE) != 1 || SSL_CTX_set_num_tickets(ctx, 0) != 1)
        return -1;
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_early_data(ctx, 0);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
    SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF); /* frames know where they end */
#endif
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1);
    if (is_server) {
        SSL_CTX_set_psk_find_session_callback(ctx, find_key);
    } else {
        SSL_CTX_set_psk_use_session_callback(ctx, use_key);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL); /* no key, no server: never a certificate */
    }
    return 0;
}

static const char *openssl_says(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason == NULL ? "no memory" : reason;
}

static void party_destroy(struct tls_party *party)
{
    if (party == NULL || --party->users > 0)
        return;
    SSL_CTX_free(party->ctx);
    explicit_bzero(party->key, sizeof(party->key));
    free(party);
}

static struct tls_party *party_create(const struct tls_party_config *config, struct error *err)
{
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
    struct tls_party *party = mem_alloc(sizeof(*party));
    party->users = 1;
    memcpy(party->key, config->key, sizeof(party->key));
    party->rekey_bytes = config->rekey_bytes != 0 ? config->rekey_bytes : REKEY_BYTES;
    if (config->identity != NULL)
        snprintf(party->identity, sizeof(party->identity), "%s", config->identity);
    ERR_clear_error();
    party->ctx = SSL_CTX_new(config->is_server ? TLS_server_method() : TLS_client_method());
    if (party->ctx == NULL || set_up(party, config->is_server) < 0) {
        error_set(err, "OpenSSL cannot do TLS 1.3 with " SUITE ": %s", openssl_says());
        party_destroy(party);
        return NULL;
    }
    return party;
}

static void destroy(struct tls_session *session)
{
    if (session == NULL)
        return;
    SSL_free(session->ssl);
    party_destroy(session->party);
    free(session);
}

static struct tls_session *create(struct tls_party *party, int fd, struct error *err)
{
    struct tls_session *session = MEM_NEW((struct tls_session){
        .party = party, .wants = {TLS_WANT_READ, TLS_WANT_READ, TLS_WANT_WRITE}});
    party->users++;
    ERR_clear_error();
    session->ssl = SSL_new(party->ctx);
    if (session->ssl == NULL || SSL_set_fd(session->ssl, fd) != 1) {
        error_set(err, "cannot create a TLS session: %s", openssl_says());
        destroy(session);
        return NULL;
    }
    SSL_set_app_data(session->ssl, session);
    if (SSL_is_server(session->ssl)) {
        SSL_set_accept_state(session->ssl);
    } else {
        SSL_set_connect_state(session->ssl);
        session->wants[TLS_SHAKING] = TLS_WANT_WRITE;
    }
    return session;
}

/* The wrong key fails at the binder, which the server finds; it tells the client by an alert. */
static bool is_wrong_key(int reason)
{
    return reason == SSL_R_BINDER_DOES_NOT_VERIFY || reason == SSL_R_BAD_PSK ||
           reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR ||
           reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER;
}

static void explain(struct tls_session *session, int errnum)
{
    unsigned long code = ERR_peek_last_error();
    char *text = session->problem;
    size_t room = sizeof(session->problem);
    session->wrong_key =
        session->state == TLS_HANDSHAKE && code != 0 && is_wrong_key(ERR_GET_REASON(code));
    if (session->wrong_key)
        snprintf(text, room, "it does not have the key of this job");
    else if (code != 0)
        snprintf(text, room, "%s (TLS: %s)",
                 session->state == TLS_HANDSHAKE ? "the TLS handshake failed"
                                                 : "the TLS connection failed",
                 openssl_says());
    else if (errnum != 0)
        snprintf(text, room, "%s", strerror(errnum));
    else
        snprintf(text, room, "it closed the connection");
}

/* Of an operation that did not succeed: true when it only has to wait. */
static bool must_wait(struct tls_session *session, int result, enum tls_operation operation)
{
    int errnum = errno;
    switch (SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_WANT_READ: session->wants[operation] = TLS_WANT_READ; return true;
    case SSL_ERROR_WANT_WRITE: session->wants[operation] = TLS_WANT_WRITE; return true;
    case SSL_ERROR_SYSCALL: explain(session, errnum); break;
    default: explain(session, 0); break;
    }
    session->state = TLS_FAILED;
    return false;
}

static enum tls_state advance(struct tls_session *session)
{
    if (session->state != TLS_HANDSHAKE)
        return session->state;
    ERR_clear_error();
    errno = 0;
    int result = SSL_do_handshake(session->ssl);
    if (result == 1)
        session->state = TLS_OPEN;
    else
        must_wait(session, result, TLS_SHAKING);
    return session->state;
}

static int wants(const struct tls_session *session, enum tls_operation operation)
{
    return session->wants[operation];
}

static const char *identity(const struct tls_session *session)
{
    return session->state == TLS_OPEN ? session->identity : "";
}

static const char *problem(const struct tls_session *session)
{
    return session->problem;
}

static bool has_wrong_key(const struct tls_session *session)
{
    return session->wrong_key;
}

static ssize_t failed(struct tls_session *session, int result, enum tls_operation operation)
{
    if (operation == TLS_READING && SSL_get_error(session->ssl, result) == SSL_ERROR_ZERO_RETURN)
        return 0;
    int errnum = errno;
    if (must_wait(session, result, operation))
        errno = EAGAIN;
    else
        errno = errnum != 0 && errnum != EAGAIN ? errnum : ECONNRESET;
    return -1;
}

static ssize_t session_read(struct tls_session *session, void *bytes, size_t room)
{
    if (session->state != TLS_OPEN) {
        errno = ECONNRESET;
        return -1;
    }
    ERR_clear_error();
    errno = 0;
    session->wants[TLS_READING] = TLS_WANT_READ;
    int got = SSL_read(session->ssl, bytes, room > INT_MAX ? INT_MAX : (int)room);
    return got > 0 ? got : failed(session, got, TLS_READING);
}

static ssize_t session_write(struct tls_session *session, const void *bytes, size_t length)
{
    if (session->state != TLS_OPEN) {
        errno = ECONNRESET;
        return -1;
    }
    ERR_clear_error();
    errno = 0;
    session->wants[TLS_WRITING] = TLS_WANT_WRITE;
    int put = SSL_write(session->ssl, bytes, length > INT_MAX ? INT_MAX : (int)length);
    if (put <= 0)
        return failed(session, put, TLS_WRITING);
    session->sent_bytes += (uint64_t)put;
    session->sent_records++;
    if (session->sent_bytes >= session->party->rekey_bytes ||
        session->sent_records >= REKEY_RECORDS) {
        session->sent_bytes = session->sent_records = 0;
        SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED); /* goes with the next write */
    }
    return put;
}

static void end(struct tls_session *session)
{
    ERR_clear_error();
    if (session->state == TLS_OPEN)
        SSL_shutdown(session->ssl);
}

__attribute__((visibility("default"))) extern const struct tls_module hvdrun_tls_module;

const struct tls_module hvdrun_tls_module = {.version = TLS_MODULE_VERSION,
                                             .party_create = party_create,
                                             .party_destroy = party_destroy,
                                             .create = create,
                                             .destroy = destroy,
                                             .advance = advance,
                                             .wants = wants,
                                             .identity = identity,
                                             .problem = problem,
                                             .has_wrong_key = has_wrong_key,
                                             .read = session_read,
                                             .write = session_write,
                                             .end = end};
