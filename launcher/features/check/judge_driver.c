/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/check_steps_driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/strv.h"
#include "driver/start/start.h"
#include "features/check/check.h"

#define SECOND_NS INT64_C(1000000000)
#define MIB ((uint64_t)1 << 20)
#define CLOCK_OFF_NS SECOND_NS
#define CLOCK_MAX ((uint64_t)1 << 61) /* the year 2043: sums of such times do not overflow */
#define TMP_FREE_LOW (16 * MIB)
#define SHM_SMALL (64 * MIB) /* the default of containers */
#define SHM_FREE_LOW (16 * MIB)
#define NOFILE_LOW 1024
#define MEMLOCK_LOW (64 * MIB) /* RDMA locks all memory that it sends */
#define PAIRS_SHOWN 10
#define TEXT_MAX 1024

/* One host */

/* "is full", or "has only 3.0M left". Returns `out`. */
static const char *room_text(uint64_t free_bytes, char out[40])
{
    char size[16];
    check_size_text(free_bytes, size);
    if (free_bytes == 0)
        snprintf(out, 40, "is full");
    else
        snprintf(out, 40, "has only %s left", size);
    return out;
}

/* A library that cannot serve a job: mostly for lack of a temporary folder, so the text of the
 * agent is about that. Which jobs would fail depends on --mpi. */
static bool has_bad_pmix(const struct check_host *host)
{
    return host->facts->pmix[0] != '\0' && host->facts->pmix_problem[0] != '\0';
}

static void judge_pmix(const struct check_result *result, int number, struct check_findings *out)
{
    const struct check_host *host = &result->hosts[number];
    if (result->needs_pmix && host->facts->pmix_problem[0] != '\0')
        check_findings_add(out, number, true, "%s", host->facts->pmix_problem);
    else if (has_bad_pmix(host))
        check_findings_add(out, number, false,
                           "%s: programs that use PMIx, such as those of Open MPI, would not run",
                           host->facts->pmix_problem);
}

static void judge_tmp(const struct check_host *host, int number, struct check_findings *out)
{
    const Hvdrun__CheckFolder *tmp = check_host_folder(host, "tmp");
    char room[40];
    if (tmp == NULL)
        return;
    bool said = has_bad_pmix(host); /* by judge_pmix() */
    if (tmp->problem[0] != '\0' && !said)
        check_findings_add(out, number, false, "%s", tmp->problem);
    else if (tmp->free_bytes < TMP_FREE_LOW && !said)
        check_findings_add(out, number, false,
                           "%s %s: free some space, or set TMPDIR to another folder", tmp->path,
                           room_text(tmp->free_bytes, room));
    if (tmp->noexec)
        check_findings_add(out, number, false,
                           "%s is mounted noexec, so no program can run from it: set TMPDIR to a "
                           "folder that allows it",
                           tmp->path);
}

static void judge_shm(const struct check_host *host, int number, struct check_findings *out)
{
    const Hvdrun__CheckFolder *shm = check_host_folder(host, "shm");
    char text[16], room[40];
    if (shm == NULL)
        return;
    bool small = shm->total_bytes <= SHM_SMALL;
    check_size_text(shm->total_bytes, text);
    if (shm->problem[0] != '\0')
        check_findings_add(out, number, false,
                           "%s; MPI, NCCL and PyTorch's data loaders need it to share memory",
                           shm->problem);
    else if (small)
        check_findings_add(out, number, false,
                           "%s holds only %s: NCCL and PyTorch's data loaders need more (in a "
                           "container: --shm-size=8g)",
                           shm->path, text);
    else if (shm->free_bytes < SHM_FREE_LOW)
        check_findings_add(out, number, false, "%s %s: remove the files of programs that have died",
                           shm->path, room_text(shm->free_bytes, room));
}

static void judge_limits(const struct check_result *result, int number, struct check_findings *out)
{
    const struct check_host *host = &result->hosts[number];
    uint64_t nofile = check_host_limit(result, host, "nofile");
    uint64_t memlock = check_host_limit(result, host, "memlock");
    char text[16];
    if (nofile < NOFILE_LOW)
        check_findings_add(out, number, false,
                           "workers may open only %" PRIu64
                           " files: raise the limit (ulimit -n, /etc/security/limits.conf)",
                           nofile);
    if (host->facts->n_adapters > 0 && memlock < MEMLOCK_LOW) {
        check_size_text(memlock, text);
        check_findings_add(
            out, number, false,
            "workers may lock only %s of memory, but %.*s needs an unlimited amount: raise memlock "
            "(ulimit -l, /etc/security/limits.conf, LimitMEMLOCK= of sshd or slurmd)",
            text, (int)strcspn(host->facts->adapters[0], " "), host->facts->adapters[0]);
    }
}

/* Wall minus monotonic clock is constant, on both machines. */
void check_host_clock(struct check_host *host, int64_t here_ns, int64_t offset_ns)
{
    uint64_t wall = host->facts->wall_ns, mono = host->facts->mono_ns;
    int64_t there = (int64_t)(wall < CLOCK_MAX ? wall : CLOCK_MAX) -
                    (int64_t)(mono < CLOCK_MAX ? mono : CLOCK_MAX);
    host->clock_ns = there - here_ns + offset_ns;
}

static void judge_clock(const struct check_host *host, int number, struct check_findings *out)
{
    int64_t off = host->clock_ns < 0 ? -host->clock_ns : host->clock_ns;
    if (!host->clock_known || off - host->clock_error_ns <= CLOCK_OFF_NS)
        return;
    check_findings_add(
        out, number, false,
        "its clock is %.1f s %s the clock of this machine: times in logs cannot be compared, and "
        "certificates may look expired; run chrony or another NTP client there",
        (double)off / 1e9, host->clock_ns < 0 ? "behind" : "ahead of");
}

static void judge_host(const struct check_result *result, int number, struct check_findings *out)
{
    const struct check_host *host = &result->hosts[number];
    if (host->why != NULL)
        check_findings_add(out, number, true, "%s: %s", host->stage, host->why);
    if (host->facts == NULL)
        return;
    judge_pmix(result, number, out);
    judge_tmp(host, number, out);
    judge_shm(host, number, out);
    judge_limits(result, number, out);
    judge_clock(host, number, out);
    if (strcmp(check_host_key(host), "new") == 0)
        check_findings_add(out, number, false,
                           "its host key is new and could not be added to known_hosts: check the "
                           "permissions of that file and the free space on its disk");
    if (host->facts->own_address[0] != '\0' && result->count > 1 && !result->simulated)
        check_findings_add(
            out, number, false,
            "/etc/hosts gives its own name %s the address %s: programs that look up the name give "
            "other hosts an address that they cannot reach; remove that line",
            host->hello->hostname, host->facts->own_address);
}

/* All hosts together */

/* The most frequent value; "" counts as a value. NULL: no host has one. Of equally frequent values
 * the first one wins. */
static const char *usual(char *const *values, int count)
{
    const char *best = NULL;
    int most = 0;
    for (int i = 0; i < count; i++) {
        int same = 0;
        for (int j = 0; values[i] != NULL && j < count; j++)
            same += values[j] != NULL && strcmp(values[i], values[j]) == 0;
        if (values[i] != NULL && same > most) {
            best = values[i];
            most = same;
        }
    }
    return best;
}

/* Hosts with another value than most get a warning. */
static void judge_odd(const struct check_result *result, char *const *values, const char *what,
                      const char *remedy, struct check_findings *out)
{
    const char *most = usual(values, result->count);
    for (int i = 0; most != NULL && i < result->count; i++) {
        if (values[i] != NULL && strcmp(values[i], most) != 0)
            check_findings_add(out, i, false, "%s: %s here, %s on other hosts: %s", what,
                               values[i][0] == '\0' ? "none" : values[i],
                               most[0] == '\0' ? "none" : most, remedy);
    }
}

static void judge_values(const struct check_result *result, struct check_findings *out)
{
    size_t count = (size_t)result->count;
    char **pmix AUTO_FREE = mem_array(count, sizeof(*pmix));
    char **machine AUTO_FREE = mem_array(count, sizeof(*machine));
    char **driver AUTO_FREE = mem_array(count, sizeof(*driver));
    char **nccl AUTO_FREE = mem_array(count, sizeof(*nccl));
    struct strv gpu_texts AUTO_STRV = STRV_INIT;
    char **gpus AUTO_FREE = mem_array(count, sizeof(*gpus));
    for (size_t i = 0; i < count; i++) {
        const struct check_host *host = &result->hosts[i];
        strv_printf(&gpu_texts, "%u", host->hello == NULL ? 0 : host->hello->gpus);
        if (host->facts == NULL)
            continue;
        pmix[i] = host->facts->pmix;
        machine[i] = host->hello->machine;
        driver[i] = host->facts->gpu_driver;
        nccl[i] = host->gpu_test.nccl;
        gpus[i] = gpu_texts.items[i];
    }
    judge_odd(result, machine, "architecture", "provide your programs for each architecture", out);
    judge_odd(result, pmix, "PMIx library", "MPI programs need the same version on all hosts", out);
    judge_odd(result, gpus, "GPUs", "check for a GPU that is broken or hidden", out);
    judge_odd(result, driver, "GPU driver", "install the same version on all hosts", out);
    judge_odd(result, nccl, "NCCL", "use the same PyTorch on all hosts", out);
}

int *check_first_names(const struct check_result *result, bool failed)
{
    size_t count = (size_t)result->count;
    struct machine *machines AUTO_FREE = mem_array(count, sizeof(*machines));
    int *first = mem_array(count, sizeof(*first));
    for (size_t i = 0; i < count; i++) {
        const struct check_host *host = &result->hosts[i];
        machines[i] = machine_of(host->why == NULL || failed ? host->hello : NULL);
    }
    machine_find_first(machines, result->count, first);
    return first;
}

static void judge_together(const struct check_result *result, struct check_findings *out)
{
    int *first AUTO_FREE = check_first_names(result, true);
    if (result->network_problem != NULL)
        check_findings_add(out, -1, true, "%s", result->network_problem);
    judge_values(result, out);
    for (int i = 0; i < result->count && !result->simulated; i++) {
        if (first[i] != i)
            check_findings_add(out, i, false,
                               "it is the same machine as %s: a job would use its CPUs and GPUs "
                               "twice; name it once",
                               result->hosts[first[i]].name);
    }
}

/* Connections that failed: one finding for a host that is cut off completely, otherwise one for
 * each pair, up to PAIRS_SHOWN pairs. */

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
        bool no_in = tally->in >= 2 && tally->in_bad == tally->in;
        tally->told = no_in || (tally->out >= 2 && tally->out_bad == tally->out);
        if (!tally->told)
            continue;
        explain(result, example(result, i, no_in), &why);
        if (no_in)
            check_findings_add(out, i, true, "none of %d hosts can reach it at %s: %s", tally->in,
                               address_of(result, i), buf_text(&why));
        else
            check_findings_add(out, i, true, "it cannot reach any of %d hosts: %s", tally->out,
                               buf_text(&why));
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
    struct check_finding *finding =
        check_findings_add(out, link->from, true, "it cannot reach %s at %s%s: %s",
                           result->hosts[link->to].name, address_of(result, link->to),
                           one_way ? ", although the other direction works" : "", buf_text(&why));
    finding->pair = true;
}

static void judge_transfers(const struct check_result *result, struct check_findings *out)
{
    for (size_t i = 0; i < result->link_count; i++) {
        const struct check_link *link = &result->links[i];
        if (link->transfer_problem == NULL || !counts(result, link))
            continue;
        struct check_finding *finding = check_findings_add(
            out, link->from, true,
            "a transfer to %s failed: %s; large packets may get lost (check the MTU)",
            result->hosts[link->to].name, link->transfer_problem);
        finding->pair = true;
    }
}

static void judge_links(const struct check_result *result, struct check_findings *out)
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

void check_judge(const struct check_result *result, struct check_findings *out)
{
    for (int i = 0; i < result->count; i++)
        judge_host(result, i, out);
    judge_together(result, out);
    judge_links(result, out);
    if (result->gpu)
        check_judge_gpus(result, out);
    check_findings_sort(out);
}
