/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/http.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"

static const char *const method_names[] = {
#define METHOD_NAME(name, text) [name] = (text),
    RENDEZVOUS_METHOD_LIST(METHOD_NAME)
#undef METHOD_NAME
};

enum { METHOD_COUNT = sizeof(method_names) / sizeof(method_names[0]), INDEX_DIGITS_MAX = 9 };

/* What hints, names and the keys' own cost come to for each rank; how much of all this, and of the
 * addresses, a job may have at once; what the smallest job has. */
enum { RANK_BYTES = 8 * 1024, RESERVE = 3, LEAST_BYTES = 32 * 1024 * 1024 };
enum { RANKS_MAX = 1 << 24 };

uint64_t rendezvous_memory_need(int64_t ranks)
{
    uint64_t n = ranks < 0 ? 0 : ranks < RANKS_MAX ? (uint64_t)ranks : RANKS_MAX;
    return LEAST_BYTES + RESERVE * n * (RENDEZVOUS_PAIR_BYTES * n + RANK_BYTES);
}

static int method_parse(const char *name, size_t length, enum rendezvous_method *out)
{
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        if (strlen(method_names[i]) == length && memcmp(method_names[i], name, length) == 0) {
            *out = (enum rendezvous_method)i;
            return 0;
        }
    }
    return -1;
}

static bool name_is_valid(const char *name, size_t length)
{
    if (length == 0 || length > RENDEZVOUS_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
            return false;
    }
    return true;
}

static bool text_is_valid(const char *name)
{
    return name != NULL && name_is_valid(name, strnlen(name, RENDEZVOUS_NAME_MAX + 1));
}

bool rendezvous_request_is_valid(const struct rendezvous_request *request)
{
    return (size_t)request->method < METHOD_COUNT && request->method != RENDEZVOUS_POST &&
           text_is_valid(request->scope) && text_is_valid(request->key) &&
           request->length <= RENDEZVOUS_BODY_MAX;
}

bool rendezvous_key_is_index(const char *key, int64_t *index)
{
    size_t length = strnlen(key, INDEX_DIGITS_MAX + 1);
    if (length == 0 || length > INDEX_DIGITS_MAX || (key[0] == '0' && length > 1))
        return false;
    int64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (key[i] < '0' || key[i] > '9')
            return false;
        value = value * 10 + (key[i] - '0');
    }
    *index = value;
    return true;
}

bool rendezvous_scope_is_elastic(const char *scope)
{
    return strcmp(scope, "rank_and_size") == 0 || strcmp(scope, "worker_addresses") == 0;
}

/* HTTP. */

struct http_parser *http_parser_create(size_t body_limit)
{
    struct http_parser *parser = mem_alloc(sizeof(*parser));
    parser->status = HTTP_OK;
    parser->body_limit = body_limit;
    buf_init(&parser->line, HTTP_HEADERS_MAX);
    buf_init(&parser->body, body_limit);
    return parser;
}

void http_parser_destroy(struct http_parser *parser)
{
    if (parser == NULL)
        return;
    buf_destroy(&parser->line);
    buf_destroy(&parser->body);
    free(parser->scope);
    free(parser->key);
    free(parser->authorization);
    free(parser);
}

static void refuse(struct http_parser *parser, int status)
{
    parser->stage = HTTP_REFUSED;
    parser->status = status;
}

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!is_token_char(text[i]))
            return false;
    }
    return length > 0;
}

/* "/scope/key", nothing else. */
static int parse_target(struct http_parser *parser, const char *target, size_t length)
{
    if (length < 2 || target[0] != '/')
        return -1;
    const char *scope = target + 1;
    const char *slash = memchr(scope, '/', length - 1);
    if (slash == NULL)
        return -1;
    size_t scope_length = (size_t)(slash - scope), key_length = length - scope_length - 2;
    if (!name_is_valid(scope, scope_length) || !name_is_valid(slash + 1, key_length))
        return -1;
    parser->scope = mem_strndup(scope, scope_length);
    parser->key = mem_strndup(slash + 1, key_length);
    return 0;
}

static void take_request_line(struct http_parser *parser, const char *line, size_t length)
{
    const char *first = memchr(line, ' ', length);
    size_t method_length = first == NULL ? 0 : (size_t)(first - line);
    if (first == NULL || !is_token(line, method_length)) {
        refuse(parser, HTTP_BAD_REQUEST);
        return;
    }
    const char *target = first + 1;
    size_t rest = length - method_length - 1;
    const char *second = memchr(target, ' ', rest);
    size_t target_length = second == NULL ? rest : (size_t)(second - target);
    const char *version = target + target_length;
    size_t version_length = rest - target_length;
    if (version_length != strlen(" HTTP/1.1") || memcmp(version, " HTTP/", 6) != 0 ||
        version[7] != '.' || version[6] < '0' || version[6] > '9' || version[8] < '0' ||
        version[8] > '9')
        refuse(parser, HTTP_BAD_REQUEST);
    else if (version[6] != '1')
        refuse(parser, HTTP_BAD_VERSION);
    else if (method_parse(line, method_length, &parser->request.method) < 0)
        refuse(parser, HTTP_BAD_METHOD);
    else if (parse_target(parser, target, target_length) < 0)
        refuse(parser, HTTP_BAD_REQUEST);
    else if (parser->request.method == RENDEZVOUS_POST && strcmp(parser->scope, STATUS_SCOPE) != 0)
        refuse(parser, HTTP_BAD_METHOD);
    else
        parser->stage = HTTP_HEADERS;
}

static size_t body_limit(const struct http_parser *parser)
{
    bool small = parser->request.method == RENDEZVOUS_POST && parser->body_limit > STATUS_BODY_MAX;
    return small ? STATUS_BODY_MAX : parser->body_limit;
}

static void take_content_length(struct http_parser *parser, const char *value, size_t length)
{
    size_t total = 0;
    if (length == 0 || parser->has_length) {
        refuse(parser, HTTP_BAD_REQUEST);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9') {
            refuse(parser, HTTP_BAD_REQUEST);
            return;
        }
        if (total <= body_limit(parser)) /* beyond it the exact value does not matter */
            total = total * 10 + (size_t)(value[i] - '0');
    }
    if (total > body_limit(parser)) {
        refuse(parser, HTTP_BODY_TOO_LONG);
        return;
    }
    parser->has_length = true;
    parser->length = total;
}

static bool name_is(const char *name, size_t length, const char *wanted)
{
    return strlen(wanted) == length && strncasecmp(name, wanted, length) == 0;
}

static void take_header(struct http_parser *parser, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length);
    size_t name_length = colon == NULL ? 0 : (size_t)(colon - line);
    if (colon == NULL || !is_token(line, name_length)) {
        refuse(parser, HTTP_BAD_REQUEST);
        return;
    }
    const char *value = colon + 1;
    size_t value_length = length - name_length - 1;
    text_trim(&value, &value_length); /* no end of a line is in it */
    if (name_is(line, name_length, "Content-Length"))
        take_content_length(parser, value, value_length);
    else if (name_is(line, name_length, "Transfer-Encoding"))
        refuse(parser, HTTP_NOT_IMPLEMENTED);
    else if (!name_is(line, name_length, "Authorization"))
        return;
    else if (parser->authorization != NULL)
        refuse(parser, HTTP_BAD_REQUEST);
    else
        parser->authorization = mem_strndup(value, value_length);
}

static void finish(struct http_parser *parser)
{
    parser->stage = HTTP_PARSED;
    parser->request.scope = parser->scope;
    parser->request.key = parser->key;
    parser->request.body = parser->length > 0 ? buf_text(&parser->body) : NULL;
    parser->request.length = parser->length;
    parser->request.authorization = parser->authorization;
}

static void take_headers_end(struct http_parser *parser)
{
    bool has_body =
        parser->request.method == RENDEZVOUS_PUT || parser->request.method == RENDEZVOUS_POST;
    if (has_body && !parser->has_length)
        refuse(parser, HTTP_NO_LENGTH);
    else if (parser->length == 0)
        finish(parser);
    else
        parser->stage = HTTP_BODY;
}

/* A line without its LF is in parser->line. */
static void take_line(struct http_parser *parser)
{
    const char *line = buf_text(&parser->line);
    size_t length = parser->line.length;
    if (length == 0 || line[length - 1] != '\r' || memchr(line, '\r', length - 1) != NULL) {
        refuse(parser, HTTP_BAD_REQUEST);
        return;
    }
    length--;
    if (parser->stage == HTTP_REQUEST_LINE)
        take_request_line(parser, line, length);
    else if (length > 0)
        take_header(parser, line, length);
    else
        take_headers_end(parser);
    buf_clear(&parser->line);
}

/* Rubbish is noticed at its first control byte, not at a line end that may never come. */
static bool has_control_byte(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if ((c < ' ' && c != '\t' && c != '\r') || c == 0x7f)
            return true;
    }
    return false;
}

/* Takes the bytes up to the end of a line at most; returns how many. */
static size_t feed_line(struct http_parser *parser, const char *bytes, size_t length)
{
    const char *end = memchr(bytes, '\n', length);
    size_t piece = end == NULL ? length : (size_t)(end - bytes);
    bool first = parser->stage == HTTP_REQUEST_LINE;
    size_t limit = first ? HTTP_REQUEST_LINE_MAX : HTTP_HEADERS_MAX;
    size_t used = first ? parser->line.length : parser->header_bytes;
    if (has_control_byte(bytes, piece)) {
        refuse(parser, HTTP_BAD_REQUEST);
        return length;
    }
    if (piece >= limit - used) {
        refuse(parser, first ? HTTP_LINE_TOO_LONG : HTTP_HEADERS_TOO_LONG);
        return length;
    }
    if (!first)
        parser->header_bytes += piece + (end != NULL ? 1 : 0);
    buf_append(&parser->line, bytes, piece); /* cannot fail: checked against a smaller limit */
    if (end == NULL)
        return length;
    take_line(parser);
    return piece + 1;
}

enum http_progress http_parser_feed(struct http_parser *parser, const void *bytes, size_t length)
{
    const char *rest = bytes;
    while (length > 0 && parser->stage < HTTP_PARSED) {
        size_t taken;
        if (parser->stage == HTTP_BODY) {
            size_t missing = parser->length - parser->body.length;
            taken = length < missing ? length : missing;
            buf_append(&parser->body, rest, taken);
            if (taken == missing)
                finish(parser);
        } else {
            taken = feed_line(parser, rest, length);
        }
        rest += taken;
        length -= taken;
    }
    if (parser->stage == HTTP_REFUSED)
        return HTTP_BAD;
    return parser->stage == HTTP_PARSED ? HTTP_DONE : HTTP_MORE;
}

static const char *reason(int status)
{
    switch (status) {
#define HTTP_REASON(name, value, text) \
    case name: return text;
        HTTP_STATUS_LIST(HTTP_REASON)
#undef HTTP_REASON
    default: return "Status";
    }
}

size_t http_response_head(char *out, int status, size_t length)
{
    int written = snprintf(out, HTTP_HEAD_MAX,
                           "HTTP/1.1 %d %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n",
                           status, reason(status),
                           status == HTTP_BAD_METHOD ? "Allow: GET, PUT, DELETE\r\n" : "", length);
    return written < 0 || written >= HTTP_HEAD_MAX ? 0 : (size_t)written;
}
