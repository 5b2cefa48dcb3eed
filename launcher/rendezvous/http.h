/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request to the rendezvous key/value store, for the HTTP parser, the frames and the store,
 * with the rules about names that they share. Pure.
 *
 * A scope and a key are printable ASCII without a space and without '/', at most
 * RENDEZVOUS_NAME_MAX bytes. Requests are idempotent: the clients repeat them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* POST /progress/EPOCH.SEAT: the status endpoint of a worker (agent/progress.h). */
#define STATUS_SCOPE "progress"

#define RENDEZVOUS_METHOD_LIST(X)  \
    X(RENDEZVOUS_GET, "GET")       \
    X(RENDEZVOUS_PUT, "PUT")       \
    X(RENDEZVOUS_DELETE, "DELETE") \
    X(RENDEZVOUS_POST, "POST") /* only to STATUS_SCOPE, which is not in the store */

enum rendezvous_method {
#define RENDEZVOUS_METHOD_ENUM(name, text) name,
    RENDEZVOUS_METHOD_LIST(RENDEZVOUS_METHOD_ENUM)
#undef RENDEZVOUS_METHOD_ENUM
};

enum {
    RENDEZVOUS_NAME_MAX = 511, /* "local_" + a host name of 255 + "_process_set_hash_" + digits */

    RENDEZVOUS_PAIR_BYTES = 136, /* Gloo's address of one rank for another */

    /* One request fits one frame (1 MiB) with its names: the largest body there is, the addresses
     * of a rank for all others, stays below it up to 7,600 ranks. */
    RENDEZVOUS_BODY_MAX = 1024 * 1024 - 4096,
    STATUS_BODY_MAX = 64 * 1024, /* as Kubeflow's server */
};

struct rendezvous_request {
    enum rendezvous_method method;
    const char *scope, *key;
    const void *body; /* of a PUT or POST; NULL when length is 0 */
    size_t length;
    const char *authorization; /* the header of HTTP; NULL: none, or not from HTTP */
};

/* Bytes that so many ranks can need in the store, with a margin. In a full mesh each rank stores
 * an address for each other one, in one context after the other, and a few short keys. */
uint64_t rendezvous_memory_need(int64_t ranks);

/* For a request from a frame: method, both names and the length are within bounds. */
bool rendezvous_request_is_valid(const struct rendezvous_request *request);

/* A rank as a key: "0", "17", no leading zero, below 10^9. Clients poll for these keys, which hold
 * addresses. Any other key (such as rank_3) is a hint that they ask for once. */
bool rendezvous_key_is_index(const char *key, int64_t *index);

/* `rank_and_size` and `worker_addresses`: not storage but calls to the elastic part. */
bool rendezvous_scope_is_elastic(const char *scope);

/*
 * The part of HTTP that clients of the rendezvous and of the status endpoint use: an incremental
 * parser of one request, fed with bytes in any pieces, and the head of an answer. Pure.
 *
 * Policy: one request per connection, `METHOD /scope/key HTTP/1.x`, CRLF lines, a body only with
 * Content-Length, no URL decoding. A bare LF, a folded header, a second Content-Length and control
 * bytes are 400: no client needs them. The parser ignores headers that it does not need. Every part
 * has a limit, and memory grows with the bytes that came, never with the announced length.
 */

enum {
    HTTP_REQUEST_LINE_MAX = 2048,
    HTTP_HEADERS_MAX = 16 * 1024, /* all header lines together */
    HTTP_HEAD_MAX = 128,          /* room that http_response_head() needs at most */
};

#define HTTP_STATUS_LIST(X)                                \
    X(HTTP_OK, 200, "OK")                                  \
    X(HTTP_BAD_REQUEST, 400, "Bad Request")                \
    X(HTTP_FORBIDDEN, 403, "Forbidden")                    \
    X(HTTP_NOT_FOUND, 404, "Not Found")                    \
    X(HTTP_BAD_METHOD, 405, "Method Not Allowed")          \
    X(HTTP_NO_LENGTH, 411, "Length Required")              \
    X(HTTP_BODY_TOO_LONG, 413, "Content Too Large")        \
    X(HTTP_LINE_TOO_LONG, 414, "URI Too Long")             \
    X(HTTP_UNREADABLE, 422, "Unprocessable Content")       \
    X(HTTP_HEADERS_TOO_LONG, 431, "Headers Too Large")     \
    X(HTTP_NOT_IMPLEMENTED, 501, "Not Implemented")        \
    X(HTTP_UNAVAILABLE, 503, "Service Unavailable")        \
    X(HTTP_BAD_VERSION, 505, "HTTP Version Not Supported") \
    X(HTTP_FULL, 507, "Insufficient Storage")

enum http_status {
#define HTTP_STATUS_ENUM(name, value, text) name = (value),
    HTTP_STATUS_LIST(HTTP_STATUS_ENUM)
#undef HTTP_STATUS_ENUM
};

enum http_progress {
    HTTP_MORE, /* the request is not complete */
    HTTP_DONE, /* `request` has it; further bytes are ignored */
    HTTP_BAD,  /* answer `status` and close; further bytes are ignored */
};

struct http_parser {
    /* For its owner. */
    int status;                        /* HTTP_OK unless HTTP_BAD */
    struct rendezvous_request request; /* after HTTP_DONE; its texts are the parser's */
    struct buf line, body;             /* what it keeps of its input: a line without its end */

    enum { HTTP_REQUEST_LINE, HTTP_HEADERS, HTTP_BODY, HTTP_PARSED, HTTP_REFUSED } stage;
    size_t header_bytes; /* of all header lines so far */
    bool has_length;
    size_t length; /* Content-Length */
    size_t body_limit;
    char *scope, *key, *authorization;
};

struct http_parser *http_parser_create(size_t body_limit);
void http_parser_destroy(struct http_parser *parser);

enum http_progress http_parser_feed(struct http_parser *parser, const void *bytes, size_t length);

/* Writes the head of an answer whose body has `length` bytes: status line, headers and the final
 * empty line. `out` has HTTP_HEAD_MAX bytes of room. Returns how many bytes it wrote. The spelling
 * of "Content-Length" matters: the clients compare it byte by byte. */
size_t http_response_head(char *out, int status, size_t length);
