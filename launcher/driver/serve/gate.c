/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/serve/gate.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "driver/serve/random_text.h"
#include "model/net/http_words.h"
#include "rendezvous/peer.h"

struct gate {
    bool is_path;
    struct rendezvous_peer *peer; /* on loopback; NULL: elsewhere */
    char token[RANDOM_TEXT_ROOM]; /* elsewhere */
};

static bool is_loopback(const struct listen_address *address)
{
    return address->at.any.sa_family == AF_INET &&
           ntohl(address->at.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

struct gate *gate_create(const struct listen_address *address, struct error *err)
{
    struct gate *gate = mem_alloc(sizeof(*gate));
    *gate = (struct gate){.is_path = address->is_path};
    if (gate->is_path)
        return gate;
    if (is_loopback(address)) {
        gate->peer = rendezvous_peer_create();
        return gate;
    }
    if (random_text(gate->token) == 0)
        return gate;
    error_set(err, "the kernel has no randomness yet for the token of the status page");
    gate_destroy(gate);
    return NULL;
}

void gate_destroy(struct gate *gate)
{
    if (gate == NULL)
        return;
    rendezvous_peer_destroy(gate->peer);
    free(gate);
}

static bool is_own(const struct gate *gate, const struct http_request *request)
{
    uid_t uid = 0;
    return rendezvous_peer_uid(gate->peer, http_request_socket(request), &uid) == 0 &&
           (uid == getuid() || uid == 0);
}

const char *gate_refusal(const struct gate *gate, const struct http_request *request,
                         const struct http_question *question)
{
    struct http_word given;
    if (gate->is_path)
        return NULL;
    if (gate->peer == NULL) {
        if (http_query_find(question->query, "token", &given) &&
            http_word_is_secret(&given, gate->token))
            return NULL;
        return "the token is wrong or missing; 'hvdrun status' shows the address of the page with "
               "its token\n";
    }
    if (question->host != NULL && !http_host_is_address(question->host))
        return "this page is only served under an address, such as 127.0.0.1, or as localhost\n";
    if (!is_own(gate, request))
        return "this page is only for the user of the job and root\n";
    return NULL;
}

const char *gate_token(const struct gate *gate)
{
    return gate->token[0] == '\0' ? NULL : gate->token;
}
