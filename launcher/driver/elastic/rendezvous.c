/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/rendezvous.h"

#include "driver/run/job_rendezvous.h"

static void ask(void *context, struct rendezvous_source source,
                const struct rendezvous_request *request)
{
    const struct elastic_parts *parts = context;
    elastic_rejoin_request(parts->rejoin, source, request);
}

static void dropped(void *context, struct rendezvous_source source)
{
    const struct elastic_parts *parts = context;
    elastic_rejoin_dropped(parts->rejoin, source);
}

static bool joins(void *context, struct rendezvous_source source,
                  const struct rendezvous_request *request)
{
    const struct elastic_parts *parts = context;
    return elastic_newcomers_joins(parts->newcomers, source, request);
}

static void met(void *context)
{
    const struct elastic_parts *parts = context;
    elastic_story_met(parts->story, elastic_facts(elastic_hub_core(parts->hub)),
                      job_running_ms(parts->job));
}

static void stuck(void *context, int rank, bool at_gate)
{
    const struct elastic_parts *parts = context;
    const struct elastic_plan *plan = elastic_plan(elastic_hub_core(parts->hub));
    if (plan != NULL && rank < plan->size)
        elastic_hub_feed(parts->hub, &(struct elastic_event){.kind = ELASTIC_STUCK,
                                                             .seat = plan->members[rank].seat,
                                                             .first = at_gate});
}

void elastic_rendezvous_begin(struct elastic_parts *parts)
{
    struct rendezvous_elastic rendezvous = {.request = ask,
                                            .dropped = dropped,
                                            .joins = joins,
                                            .met = met,
                                            .stuck = stuck,
                                            .context = parts};
    job_rendezvous_take_elastic(job_part(parts->job, job_rendezvous), &rendezvous);
}

void elastic_rendezvous_rank_gone(const struct elastic_parts *parts, int seat)
{
    struct elastic_worker_facts facts = elastic_worker_facts(elastic_hub_core(parts->hub), seat);
    if (facts.member)
        job_rendezvous_rank_gone(job_part(parts->job, job_rendezvous), facts.rank);
}
