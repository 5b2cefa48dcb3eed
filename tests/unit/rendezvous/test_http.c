/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP parser: every way to cut a request into pieces, every limit, rubbish. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "rendezvous/http.h"

/* What the clients were seen to send. */
#define NATIVE_PUT                    \
    "PUT /global/rank_0 HTTP/1.1\r\n" \
    "Host: 127.0.0.1\r\n"             \
    "Content-Length: 2\r\n\r\n"       \
    "vm"
#define NATIVE_GET                \
    "GET /global/12 HTTP/1.1\r\n" \
    "Host: 127.0.0.1\r\n"         \
    "Content-Length: 0\r\n\r\n"
#define PYTHON_PUT                                        \
    "PUT /worker_addresses/a.b-c:3 HTTP/1.1\r\n"          \
    "Accept-Encoding: identity\r\n"                       \
    "Content-Type: application/x-www-form-urlencoded\r\n" \
    "Content-Length: 4\r\n"                               \
    "Host: 127.0.0.1:4567\r\n"                            \
    "User-Agent: Python-urllib/3.11\r\n"                  \
    "Connection: close\r\n\r\n"                           \
    "gAWV"

/* Feeds it whole; returns the parser's status, or 0 when it wants more. */
static int status_of(const char *bytes, size_t length, size_t body_limit)
{
    struct http_parser *parser = http_parser_create(body_limit);
    enum http_progress progress = http_parser_feed(parser, bytes, length);
    int status = progress == HTTP_MORE ? 0 : parser->status;
    assert_true((progress == HTTP_BAD) == (status >= 400));
    http_parser_destroy(parser);
    return status;
}

static int status_of_text(const char *text)
{
    return status_of(text, strlen(text), 1000);
}

static void assert_request(const struct http_parser *parser, enum rendezvous_method method,
                           const char *scope, const char *key, const char *body)
{
    const struct rendezvous_request *request = &parser->request;
    assert_int_equal(request->method, method);
    assert_string_equal(request->scope, scope);
    assert_string_equal(request->key, key);
    assert_int_equal(request->length, strlen(body));
    if (request->length > 0)
        assert_memory_equal(request->body, body, request->length);
}

static void split_everywhere(const char *text, enum rendezvous_method method, const char *scope,
                             const char *key, const char *body)
{
    size_t length = strlen(text);
    for (size_t first = 0; first <= length; first++) {
        for (size_t second = first; second <= length; second++) {
            struct http_parser *parser = http_parser_create(1000);
            enum http_progress one = http_parser_feed(parser, text, first);
            enum http_progress two = http_parser_feed(parser, text + first, second - first);
            assert_int_equal(one, first < length ? HTTP_MORE : HTTP_DONE);
            assert_int_equal(two, second < length ? HTTP_MORE : HTTP_DONE);
            assert_int_equal(http_parser_feed(parser, text + second, length - second), HTTP_DONE);
            assert_request(parser, method, scope, key, body);
            http_parser_destroy(parser);
        }
    }
}

static void test_every_split(void **state)
{
    (void)state;
    split_everywhere(NATIVE_PUT, RENDEZVOUS_PUT, "global", "rank_0", "vm");
    split_everywhere(NATIVE_GET, RENDEZVOUS_GET, "global", "12", "");
    split_everywhere(PYTHON_PUT, RENDEZVOUS_PUT, "worker_addresses", "a.b-c:3", "gAWV");
}

static void test_byte_by_byte(void **state)
{
    (void)state;
    struct http_parser *parser = http_parser_create(1000);
    const char *text = PYTHON_PUT;
    for (size_t i = 0; text[i] != '\0'; i++)
        assert_int_equal(http_parser_feed(parser, text + i, 1),
                         text[i + 1] == '\0' ? HTTP_DONE : HTTP_MORE);
    assert_request(parser, RENDEZVOUS_PUT, "worker_addresses", "a.b-c:3", "gAWV");
    http_parser_destroy(parser);
}

static void test_binary_body_and_what_follows(void **state)
{
    (void)state;
    char text[200];
    int head = snprintf(text, sizeof(text), "PUT /s/0 HTTP/1.1\r\ncontent-length:  8 \r\n\r\n");
    memcpy(text + head,
           "\0\n\r\n\xff\0ab"
           "GET /x/y",
           16);
    struct http_parser *parser = http_parser_create(8);
    assert_int_equal(http_parser_feed(parser, text, (size_t)head + 16), HTTP_DONE);
    assert_int_equal(parser->request.length, 8);
    assert_memory_equal(parser->request.body, "\0\n\r\n\xff\0ab", 8);
    assert_int_equal(http_parser_feed(parser, "more", 4), HTTP_DONE);
    http_parser_destroy(parser);
}

static void test_accepted_forms(void **state)
{
    (void)state;
    assert_int_equal(status_of_text("GET /s/k HTTP/1.0\r\n\r\n"), 200);
    assert_int_equal(status_of_text("DELETE /s/k HTTP/1.1\r\n\r\n"), 200);
    assert_int_equal(status_of_text("GET /s/k HTTP/1.1\r\nX-Any: \xc3\xa9\tb\r\nEmpty:\r\n\r\n"),
                     200);
    assert_int_equal(status_of_text("PUT /s/k HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), 200);
    assert_int_equal(status_of_text("PUT /s/k HTTP/1.1\r\nContent-Length: 0001\r\n\r\nx"), 200);
}

static void test_bad_requests(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\r\n",
        "\n",
        " \r\n",
        "GET\r\n",
        "GET \r\n",
        "GET /s/k\r\n",
        "GET /s/k \r\n",
        "GET  /s/k HTTP/1.1\r\n",
        "GET /s/k  HTTP/1.1\r\n",
        "GET /s/k HTTP/1.1 \r\n",
        "GET /s/k HTTP/1\r\n",
        "GET /s/k HTTP/1.x\r\n",
        "GET /s/k http/1.1\r\n",
        "GET /s/k HTTP/11.1\r\n",
        "GET /s/k HTTP/:.1\r\n",
        "GET /s/k HTTP//.1\r\n",
        "GET /s/k HTTP/1.:\r\n",
        "GET /s/k HTTP/1./\r\n",
        "GET /s/k HTTP/1.1\n",
        "GET /s/k\rHTTP/1.1\r\n",
        "GET / HTTP/1.1\r\n",
        "GET // HTTP/1.1\r\n",
        "GET /s HTTP/1.1\r\n",
        "GET /s/ HTTP/1.1\r\n",
        "GET //k HTTP/1.1\r\n",
        "GET /s/k/x HTTP/1.1\r\n",
        "GET s/k HTTP/1.1\r\n",
        "GET http://127.0.0.1/s/k HTTP/1.1\r\n",
        "GET /s/k\xc3\xa9 HTTP/1.1\r\n",
        "G(T /s/k HTTP/1.1\r\n",
        "GET\t/s/k HTTP/1.1\r\n",
        "GET /s/k HTTP/1.1\r\nnocolon\r\n",
        "GET /s/k HTTP/1.1\r\n: x\r\n",
        "GET /s/k HTTP/1.1\r\na b: x\r\n",
        "GET /s/k HTTP/1.1\r\na : x\r\n",
        "GET /s/k HTTP/1.1\r\na: x\r\n folded\r\n",
        "GET /s/k HTTP/1.1\r\na: x\ry\r\n",
        "GET /s/k HTTP/1.1\r\na: x\n",
        "GET /s/k HTTP/1.1\r\n\n",
        "PUT /s/k HTTP/1.1\r\nContent-Length: \r\n",
        "PUT /s/k HTTP/1.1\r\nContent-Length: -1\r\n",
        "PUT /s/k HTTP/1.1\r\nContent-Length: +1\r\n",
        "PUT /s/k HTTP/1.1\r\nContent-Length: 1,1\r\n",
        "PUT /s/k HTTP/1.1\r\nContent-Length: 0x1\r\n",
        "PUT /s/k HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
        "\x16\x03\x01\x02",
        "GET \x01",
        "\x7f",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (status_of_text(bad[i]) != 400)
            fail_msg("not refused: %s", bad[i]);
    }
    assert_int_equal(status_of("GE\0T", 4, 10), 400);
}

static void test_other_refusals(void **state)
{
    (void)state;
    assert_int_equal(status_of_text("POST /s/k HTTP/1.1\r\n"), 405);
    assert_int_equal(status_of_text("POST /progress/1.0 HTTP/1.1\r\n"), 0);
    assert_int_equal(status_of_text("POST /progress/1.0 HTTP/1.1\r\n\r\n"), 411);
    assert_int_equal(status_of_text("GET /s/k HTTP/1.1\r\nAuthorization: a\r\n"), 0);
    assert_int_equal(
        status_of_text("GET /s/k HTTP/1.1\r\nAuthorization: a\r\nauthorization: b\r\n"), 400);
    assert_int_equal(status_of_text("get /s/k HTTP/1.1\r\n"), 405);
    assert_int_equal(status_of_text("GETT /s/k HTTP/1.1\r\n"), 405);
    assert_int_equal(status_of_text("GET /s/k HTTP/2.0\r\n"), 505);
    assert_int_equal(status_of_text("PUT /s/k HTTP/1.1\r\n\r\n"), 411);
    assert_int_equal(status_of_text("PUT /s/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"), 501);
    assert_int_equal(status_of_text("PUT /s/k HTTP/1.1\r\nContent-Length: 1001\r\n"), 413);
    assert_int_equal(status_of_text("PUT /s/k HTTP/1.1\r\nContent-Length: 1000\r\n"), 0);
    /* 2^64 + 1, and a number longer than any type */
    assert_int_equal(
        status_of_text("PUT /s/k HTTP/1.1\r\nContent-Length: 18446744073709551617\r\n"), 413);
    assert_int_equal(status_of_text("PUT /s/k HTTP/1.1\r\nContent-Length: "
                                    "99999999999999999999999999999999999999999999999999\r\n"),
                     413);
}

/* A prefix, `count` times 'a', a suffix. */
static int status_of_long(const char *prefix, size_t count, const char *suffix)
{
    size_t before = strlen(prefix), after = strlen(suffix);
    char *text = mem_alloc(before + count + after + 1);
    memcpy(text, prefix, before);
    memset(text + before, 'a', count);
    memcpy(text + before + count, suffix, after);
    int whole = status_of(text, before + count + after, 1000);
    struct http_parser *parser = http_parser_create(1000);
    enum http_progress progress = HTTP_MORE;
    for (size_t i = 0; i < before + count + after; i++)
        progress = http_parser_feed(parser, text + i, 1);
    assert_int_equal(progress == HTTP_MORE ? 0 : parser->status, whole);
    http_parser_destroy(parser);
    free(text);
    return whole;
}

static void test_limits(void **state)
{
    (void)state;
    assert_int_equal(status_of_long("GET /s/", RENDEZVOUS_NAME_MAX, " HTTP/1.1\r\n\r\n"), 200);
    assert_int_equal(status_of_long("GET /s/", RENDEZVOUS_NAME_MAX + 1, " HTTP/1.1\r\n\r\n"), 400);
    assert_int_equal(status_of_long("GET /", RENDEZVOUS_NAME_MAX + 1, "/k HTTP/1.1\r\n\r\n"), 400);
    assert_int_equal(status_of_long("", HTTP_REQUEST_LINE_MAX - 1, ""), 0);
    assert_int_equal(status_of_long("", HTTP_REQUEST_LINE_MAX, ""), 414);
    assert_int_equal(status_of_long("GET /s/k HTTP/1.1\r\nX: ", HTTP_HEADERS_MAX - 10, "\r\n\r\n"),
                     200);
    assert_int_equal(status_of_long("GET /s/k HTTP/1.1\r\nX: ", HTTP_HEADERS_MAX, ""), 431);

    /* many small headers count together */
    struct buf text = BUF_INIT(HTTP_HEADERS_MAX * 4);
    buf_puts(&text, "GET /s/k HTTP/1.1\r\n");
    for (int i = 0; i < HTTP_HEADERS_MAX / 8 + 1; i++)
        buf_puts(&text, "A: 345\r\n");
    assert_int_equal(status_of(buf_text(&text), text.length, 10), 431);
    buf_destroy(&text);
}

/* Whatever comes, in whatever pieces: an answer or the wish for more, and no more memory than the
 * limits allow (the sanitizers watch the rest). */
static void test_rubbish(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        char bytes[128];
        const char *sample = round % 3 == 0 ? NATIVE_PUT : NATIVE_GET;
        size_t length = round % 4 == 0 ? sizeof(bytes) : strlen(sample);
        memset(bytes, 'x', sizeof(bytes));
        memcpy(bytes, sample, strlen(sample));
        for (int change = 0; change < round % 5 + (round % 4 == 0 ? 60 : 0); change++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            bytes[(seed >> 8) % length] = (char)(seed >> 32);
        }
        struct http_parser *parser = http_parser_create(50);
        size_t piece = (size_t)round % 17 + 1;
        enum http_progress progress = HTTP_MORE;
        for (size_t at = 0; at < length; at += piece)
            progress =
                http_parser_feed(parser, bytes + at, at + piece < length ? piece : length - at);
        assert_true(progress == HTTP_BAD || parser->status == 200);
        if (progress == HTTP_DONE)
            assert_true(rendezvous_request_is_valid(&parser->request));
        http_parser_destroy(parser);
    }
}

static void test_response_head(void **state)
{
    (void)state;
    char head[HTTP_HEAD_MAX];
    const char *want = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_int_equal(http_response_head(head, 200, 0), strlen(want));
    assert_memory_equal(head, want, strlen(want));
    want = "HTTP/1.1 404 Not Found\r\nContent-Length: 1044480\r\nConnection: close\r\n\r\n";
    assert_int_equal(http_response_head(head, 404, 1044480), strlen(want));
    assert_memory_equal(head, want, strlen(want));
    size_t length = http_response_head(head, 405, 0);
    head[length] = '\0';
    assert_non_null(strstr(head, "Allow: GET, PUT, DELETE\r\n"));
    length = http_response_head(head, 599, SIZE_MAX);
    assert_in_range(length, 1, HTTP_HEAD_MAX - 1);
    length = http_response_head(head, 405, SIZE_MAX);
    assert_in_range(length, 1, HTTP_HEAD_MAX - 1);
}

static void test_names(void **state)
{
    (void)state;
    int64_t index = -1;
    assert_true(rendezvous_key_is_index("0", &index) && index == 0);
    assert_true(rendezvous_key_is_index("4095", &index) && index == 4095);
    assert_true(rendezvous_key_is_index("999999999", &index) && index == 999999999);
    static const char *const not_index[] = {"",   "00",     "01", "-1",
                                            "1 ", "rank_1", "1a", "1000000000"};
    for (size_t i = 0; i < sizeof(not_index) / sizeof(not_index[0]); i++)
        assert_false(rendezvous_key_is_index(not_index[i], &index));
    assert_int_equal(index, 999999999);
    struct rendezvous_request request = {.scope = "s", .key = "k"};
    assert_true(rendezvous_request_is_valid(&request));
    request.length = RENDEZVOUS_BODY_MAX + 1;
    assert_false(rendezvous_request_is_valid(&request));
    request = (struct rendezvous_request){.scope = "s", .key = ""};
    assert_false(rendezvous_request_is_valid(&request));
    request = (struct rendezvous_request){.scope = "s/t", .key = "k"};
    assert_false(rendezvous_request_is_valid(&request));
    request =
        (struct rendezvous_request){.method = (enum rendezvous_method)7, .scope = "s", .key = "k"};
    assert_false(rendezvous_request_is_valid(&request));
}

/* RFC 9110, "tchar". */
static void test_names_of_headers(void **state)
{
    (void)state;
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (int byte = 1; byte < 256; byte++) {
        char text[64];
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool good = letter || (byte >= '0' && byte <= '9') || strchr(others, byte) != NULL;
        snprintf(text, sizeof(text), "GET /s/k HTTP/1.1\r\nX%c: y\r\n\r\n", byte);
        if (byte != ':' && byte != '\n') /* those end a name and a line */
            assert_int_equal(status_of_text(text), good ? 200 : 400);
    }
}

static void test_short_bodies(void **state)
{
    (void)state;
    static const char *const bodies[] = {"", "x", "xy", "xyz"};
    for (size_t i = 0; i < 4; i++) {
        char text[100];
        snprintf(text, sizeof(text), "PUT /s/k HTTP/1.1\r\nContent-Length: %zu\r\n\r\n%s", i,
                 bodies[i]);
        struct http_parser *parser = http_parser_create(10);
        assert_int_equal(http_parser_feed(parser, text, strlen(text)), HTTP_DONE);
        assert_request(parser, RENDEZVOUS_PUT, "s", "k", bodies[i]);
        http_parser_destroy(parser);
    }
}

/* What follows a request is nobody's: it changes nothing, whatever it is. */
static void test_nothing_after_the_end(void **state)
{
    (void)state;
    struct http_parser *parser = http_parser_create(10);
    assert_int_equal(http_parser_feed(parser, NATIVE_PUT, strlen(NATIVE_PUT)), HTTP_DONE);
    assert_int_equal(http_parser_feed(parser, "\x01\x7f\r\n\n", 5), HTTP_DONE);
    assert_int_equal(http_parser_feed(parser, NATIVE_GET, strlen(NATIVE_GET)), HTTP_DONE);
    assert_int_equal(parser->status, 200);
    assert_request(parser, RENDEZVOUS_PUT, "global", "rank_0", "vm");
    http_parser_destroy(parser);
}

static void test_the_longest_body_is_valid(void **state)
{
    (void)state;
    const struct rendezvous_request request = {
        .scope = "s", .key = "k", .length = RENDEZVOUS_BODY_MAX};
    assert_true(rendezvous_request_is_valid(&request));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_split),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_binary_body_and_what_follows),
        cmocka_unit_test(test_accepted_forms),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_other_refusals),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_response_head),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_of_headers),
        cmocka_unit_test(test_short_bodies),
        cmocka_unit_test(test_nothing_after_the_end),
        cmocka_unit_test(test_the_longest_body_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
