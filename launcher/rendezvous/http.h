/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of HTTP that clients of the rendezvous and of the status endpoint use: an incremental
 * parser of one request, fed with bytes in any pieces, and the head of an answer. Pure.
 *
 * Policy: one request per connection, `METHOD /scope/key HTTP/1.x`, CRLF lines, a body only with
 * Content-Length, no URL decoding. A bare LF, a folded header, a second Content-Length and control
 * bytes are 400: no client needs them. The parser ignores headers that it does not need. Every part
 * has a limit, and memory grows with the bytes that came, never with the announced length.
 */
#pragma once

#include <stddef.h>

#include "rendezvous/request.h"

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
    HTTP_DONE, /* http_parser_request() has it; further bytes are ignored */
    HTTP_BAD,  /* answer http_parser_status() and close; further bytes are ignored */
};

struct http_parser;

struct http_parser *http_parser_create(size_t body_limit);
void http_parser_destroy(struct http_parser *parser);

enum http_progress http_parser_feed(struct http_parser *parser, const void *bytes, size_t length);

/* Borrowed until the parser is destroyed. */
const struct rendezvous_request *http_parser_request(const struct http_parser *parser);
size_t http_parser_memory(const struct http_parser *parser); /* bytes that it keeps of its input */
int http_parser_status(const struct http_parser *parser);    /* HTTP_OK unless HTTP_BAD */

/* Writes the head of an answer whose body has `length` bytes: status line, headers and the final
 * empty line. `out` has HTTP_HEAD_MAX bytes of room. Returns how many bytes it wrote. The spelling
 * of "Content-Length" matters: the clients compare it byte by byte. */
size_t http_response_head(char *out, int status, size_t length);
