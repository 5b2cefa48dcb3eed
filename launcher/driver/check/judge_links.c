/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings about connections that failed: one for a host that is cut off completely, otherwise one
 * for each pair, up to PAIRS_SHOWN pairs.
 */
#include "driver/check/judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define PAIRS_SHOWN 10
#define TEXT_MAX 1024

/* Counts of a host's connections. */
struct tally {
    int in, in_bad, out, out_bad;
    bool told; /* a finding is about all of them */
};

/* A failed host has a finding of its own, so its connections say nothing more. */
static bool counts(const struct check_result *result, const struct check_link *link)
{
    return link->tried && result->hosts[link->from].why == NULL &&
           result->hosts[link->to].why == NULL;
}

static bool is_bad(const struct check_result *result, const struct check_link *link)
{
    return counts(result, link) && link->outcome != HVDRUN__PROBE_OUTCOME__PROBE_REACHED;
}

static void count(const struct check_result *result, struct tally *tallies)
{
    for (size_t i = 0; i < result->link_count; i++) {
        const struct check_link *link = &result->links[i];
        if (!counts(result, link))
            continue;
        tallies[link->from].out++;
        tallies[link->to].in++;
        tallies[link->from].out_bad += is_bad(result, link);
        tallies[link->to].in_bad += is_bad(result, link);
    }
}

/* Cause and remedy, without the port, which differs in each run. */
static void explain(const struct check_result *result, const struct check_link *link,
                    struct buf *out)
{
    switch (link->outcome) {
    case HVDRUN__PROBE_OUTCOME__PROBE_SILENCE:
        buf_printf(out,
                   "no answer within %d s: most likely a firewall drops the packets, or the "
                   "network does not lead there; open all TCP ports between the hosts, or choose "
                   "an open network with --network-interfaces",
                   result->silence_s);
        break;
    case HVDRUN__PROBE_OUTCOME__PROBE_REFUSED:
        buf_puts(out, "refused: most likely a firewall rejects the connection; open all TCP ports "
                      "between the hosts, or choose an open network with --network-interfaces");
        break;
    case HVDRUN__PROBE_OUTCOME__PROBE_NO_ROUTE:
        buf_puts(out, "no route: correct the routes, or choose a network that all hosts have with "
                      "--network-interfaces");
        break;
    case HVDRUN__PROBE_OUTCOME__PROBE_STRANGER:
        buf_puts(
            out,
            "another program or machine answers there: most likely the address is used twice, or "
            "translated on the way (NAT); choose another network with --network-interfaces");
        break;
    default: buf_puts(out, link->text == NULL ? "the connection broke" : link->text); break;
    }
}

/* A link of this host that failed; incoming or outgoing. */
static const struct check_link *example(const struct check_result *result, int host, bool incoming)
{
    for (size_t i = 0; i < result->link_count; i++) {
        const struct check_link *link = &result->links[i];
        if (is_bad(result, link) && (incoming ? link->to : link->from) == host)
            return link;
    }
    return NULL;
}

static const char *address_of(const struct check_result *result, int host)
{
    const char *address = result->hosts[host].address;
    return address == NULL ? "?" : address;
}

/* With two hosts nobody can tell which one is at fault, so each link gets its own finding. */
static void judge_whole_hosts(const struct check_result *result, struct tally *tallies,
                              struct check_findings *out)
{
    for (int i = 0; i < result->count; i++) {
        struct tally *tally = &tallies[i];
        struct buf why AUTO_BUF = BUF_INIT(TEXT_MAX);
        if (tally->in >= 2 && tally->in_bad == tally->in) {
            tally->told = true;
            explain(result, example(result, i, true), &why);
            check_findings_add(out, i, true, "none of %d hosts can reach it at %s: %s", tally->in,
                               address_of(result, i), buf_text(&why));
        } else if (tally->out >= 2 && tally->out_bad == tally->out) {
            tally->told = true;
            explain(result, example(result, i, false), &why);
            check_findings_add(out, i, true, "it cannot reach any of %d hosts: %s", tally->out,
                               buf_text(&why));
        }
    }
}

/* A finding about one of its ends covers this link. */
static bool is_told(const struct tally *tallies, const struct check_link *link)
{
    const struct tally *from = &tallies[link->from], *to = &tallies[link->to];
    return (to->told && to->in_bad == to->in) || (from->told && from->out_bad == from->out);
}

static void judge_pair(const struct check_result *result, const struct check_link *link,
                       struct check_findings *out)
{
    struct buf why AUTO_BUF = BUF_INIT(TEXT_MAX);
    const struct check_link *back = check_result_link(result, link->to, link->from);
    bool one_way = back != NULL && !is_bad(result, back);
    explain(result, link, &why);
    check_findings_add(out, link->from, true, "it cannot reach %s at %s%s: %s",
                       result->hosts[link->to].name, address_of(result, link->to),
                       one_way ? ", although the other direction works" : "", buf_text(&why));
}

static void judge_transfers(const struct check_result *result, struct check_findings *out)
{
    for (size_t i = 0; i < result->link_count; i++) {
        const struct check_link *link = &result->links[i];
        if (link->transfer_problem != NULL && counts(result, link))
            check_findings_add(
                out, link->from, true,
                "a transfer to %s failed: %s; large packets may get lost (check the MTU)",
                result->hosts[link->to].name, link->transfer_problem);
    }
}

void check_judge_links(const struct check_result *result, struct check_findings *out)
{
    struct tally *tallies AUTO_FREE = mem_array((size_t)result->count, sizeof(*tallies));
    int shown = 0, more = 0;
    for (int i = 0; i < result->count; i++) {
        if (result->hosts[i].door_problem != NULL)
            check_findings_add(out, i, true, "%s", result->hosts[i].door_problem);
    }
    count(result, tallies);
    judge_whole_hosts(result, tallies, out);
    for (size_t i = 0; i < result->link_count; i++) {
        const struct check_link *link = &result->links[i];
        if (!is_bad(result, link) || is_told(tallies, link))
            continue;
        if (shown++ < PAIRS_SHOWN)
            judge_pair(result, link, out);
        else
            more++;
    }
    if (more > 0)
        check_findings_add(out, -1, true, "%d more connections failed (--json lists all)", more);
    judge_transfers(result, out);
}
