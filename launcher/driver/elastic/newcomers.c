/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/newcomers.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/run/job_rendezvous.h"

/* Bytes of a body: a host name, or the addresses for each peer, of which Gloo needs 136 bytes. */
enum { BODY_LEAST = 4096, BODY_OF_PEER = 256 };

struct kept_request {
    int seat; /* -1: free */
    bool told;
    struct rendezvous_source source;
    char *key;
    void *body;
    size_t length;
};

struct elastic_newcomers_part {
    struct job *job;
    struct elastic_hub *hub;
    struct kept_request *kept;
    size_t count;
    bool telling;
};

struct elastic_newcomers_part *elastic_newcomers_create(struct elastic_hub *hub)
{
    struct elastic_newcomers_part *part = mem_alloc(sizeof(*part));
    *part = (struct elastic_newcomers_part){.job = elastic_hub_job(hub), .hub = hub};
    return part;
}

static void clear(struct kept_request *kept)
{
    free(kept->key);
    free(kept->body);
    *kept = (struct kept_request){.seat = -1};
}

void elastic_newcomers_destroy(struct elastic_newcomers_part *part)
{
    if (part == NULL)
        return;
    for (size_t i = 0; i < part->count; i++)
        clear(&part->kept[i]);
    free(part->kept);
    free(part);
}

/* The rank that sends this first request: "rank_3", or "3" from an older Horovod. -1: it is
 * another request. */
static int rank_of(const struct rendezvous_request *request)
{
    static const char prefix[] = "rank_";
    const char *key = request->key;
    int64_t rank;
    if (strncmp(key, prefix, sizeof(prefix) - 1) == 0)
        key += sizeof(prefix) - 1;
    return rendezvous_key_is_index(key, &rank) ? (int)rank : -1;
}

/* The seat of the newcomer that has this rank on this host; -1: it comes from a member. Among the
 * ranks of one host, newcomers come after all members. */
static int seat_of(const struct elastic *core, int rank, int host)
{
    const struct elastic_plan *plan = elastic_newcomers(core);
    if (plan == NULL || rank < 0 || rank >= plan->size)
        return -1;
    const struct elastic_member *member = &plan->members[rank];
    if (!member->is_new || member->host != host)
        return -1;
    enum elastic_worker_state state = elastic_worker_facts(core, member->seat).state;
    bool waits = state == ELASTIC_WORKER_JOINING || state == ELASTIC_WORKER_READY;
    return waits ? member->seat : -1;
}

static struct kept_request *place_for(struct elastic_newcomers_part *part, int seat)
{
    struct kept_request *found = NULL;
    for (size_t i = 0; i < part->count; i++) {
        if (part->kept[i].seat == seat || (part->kept[i].seat < 0 && found == NULL))
            found = &part->kept[i];
        if (part->kept[i].seat == seat)
            break;
    }
    if (found == NULL) {
        part->kept = mem_resize_array(part->kept, part->count + 1, sizeof(*part->kept));
        found = &part->kept[part->count++];
        *found = (struct kept_request){.seat = -1};
    }
    return found;
}

static void tell(void *context)
{
    struct elastic_newcomers_part *part = context;
    part->telling = false;
    for (size_t i = 0; i < part->count; i++) {
        struct kept_request *kept = &part->kept[i];
        if (kept->seat < 0 || kept->told)
            continue;
        kept->told = true;
        elastic_hub_feed(part->hub,
                         &(struct elastic_event){.kind = ELASTIC_CAN_JOIN, .seat = kept->seat});
    }
}

bool elastic_newcomers_joins(void *context, struct rendezvous_source source,
                             const struct rendezvous_request *request)
{
    struct elastic_newcomers_part *part = context;
    const struct elastic *core = elastic_hub_core(part->hub);
    int seat = seat_of(core, rank_of(request), (int)source.node);
    if (seat < 0)
        return false;
    if (request->length > BODY_LEAST + BODY_OF_PEER * (size_t)elastic_newcomers(core)->size)
        return false;
    struct kept_request *kept = place_for(part, seat);
    bool told = kept->seat == seat && kept->told; /* its client has sent it again */
    clear(kept);
    *kept = (struct kept_request){.seat = seat,
                                  .told = told,
                                  .source = source,
                                  .key = mem_strdup(request->key),
                                  .body = mem_array(request->length + 1, 1),
                                  .length = request->length};
    if (request->length > 0)
        memcpy(kept->body, request->body, request->length);
    if (!part->telling) /* the core may begin an epoch, which the caller does not expect */
        loop_defer(part->job->loop, tell, part);
    part->telling = true;
    return true;
}

void elastic_newcomers_admit(struct elastic_newcomers_part *part)
{
    const struct elastic *core = elastic_hub_core(part->hub);
    for (size_t i = 0; i < part->count; i++) {
        struct kept_request *kept = &part->kept[i];
        if (kept->seat < 0 ||
            elastic_worker_facts(core, kept->seat).state != ELASTIC_WORKER_RUNNING)
            continue;
        struct rendezvous_request request = {.method = RENDEZVOUS_PUT,
                                             .scope = "global",
                                             .key = kept->key,
                                             .body = kept->length > 0 ? kept->body : NULL,
                                             .length = kept->length};
        job_rendezvous_again(job_part(part->job, job_rendezvous), kept->source, &request);
        clear(kept);
    }
}

void elastic_newcomers_drop(struct elastic_newcomers_part *part, int seat)
{
    for (size_t i = 0; i < part->count; i++)
        if (part->kept[i].seat == seat)
            clear(&part->kept[i]);
}

void elastic_newcomers_drop_node(struct elastic_newcomers_part *part, const struct node_link *node)
{
    for (size_t i = 0; i < part->count; i++)
        if (part->kept[i].seat >= 0 && part->kept[i].source.node == (uint32_t)node->index)
            clear(&part->kept[i]);
}
