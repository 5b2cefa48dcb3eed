/* SPDX-License-Identifier: Apache-2.0 */
/* A request to the rendezvous; whole and in two pieces it means the same. */
#include "fuzz.h"
#include "rendezvous/http.h"

#define BODY_LIMIT 4096

static void check(const struct rendezvous_request *request)
{
    if (request->method == RENDEZVOUS_POST)
        FUZZ_CHECK(strcmp(request->scope, STATUS_SCOPE) == 0);
    else
        FUZZ_CHECK(rendezvous_request_is_valid(request));
    FUZZ_CHECK(request->length <= BODY_LIMIT);
    int64_t index;
    rendezvous_key_is_index(request->key, &index);
}

FUZZ_TARGET
{
    struct http_parser *whole = http_parser_create(BODY_LIMIT);
    struct http_parser *parts = http_parser_create(BODY_LIMIT);
    enum http_progress progress = http_parser_feed(whole, data, size);
    size_t cut = size == 0 ? 0 : data[0] % size;
    enum http_progress other = http_parser_feed(parts, data, cut);
    if (other == HTTP_MORE)
        other = http_parser_feed(parts, data + cut, size - cut);
    FUZZ_CHECK(progress == other);
    FUZZ_CHECK(whole->status == parts->status);
    if (progress == HTTP_DONE)
        check(&whole->request);
    char head[HTTP_HEAD_MAX];
    FUZZ_CHECK(http_response_head(head, whole->status, size) <= sizeof(head));
    http_parser_destroy(whole);
    http_parser_destroy(parts);
    return 0;
}
