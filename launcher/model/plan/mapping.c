/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/mapping.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/status.h"

/*
 * The rules of mapping.h at work. Those that fill hosts up to their slots (slot, numa, node) count
 * first whether all ranks find room; those that say a host's ranks themselves (ppr, seq, a list)
 * are held against its slots afterwards.
 */

#define SHOWN_HOSTS_MAX 200 /* bytes of the host list in an error, about */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t limit_of(const struct host *host)
{
    return host->max_slots > 0 ? host->max_slots : INT_MAX;
}

/* How many ranks find a place when every host may be filled up to its slots so many times. */
static int64_t room(const struct host_list *hosts, int64_t rounds)
{
    int64_t total = 0;
    for (size_t i = 0; i < hosts->count; i++)
        total += smaller(rounds * hosts->items[i].slots, limit_of(&hosts->items[i]));
    return total;
}

static int no_slots(const struct host_list *hosts, int size, bool oversubscribe, struct error *err)
{
    struct buf list AUTO_BUF = BUF_INIT(SHOWN_HOSTS_MAX + 512);
    for (size_t i = 0; i < hosts->count; i++) {
        if (list.length > SHOWN_HOSTS_MAX) {
            buf_puts(&list, ", ...");
            break;
        }
        buf_printf(&list, "%s%s: %d", i > 0 ? ", " : "", hosts->items[i].name,
                   hosts->items[i].slots);
    }
    int64_t slots = room(hosts, oversubscribe ? size : 1);
    const char *plural = size == 1 ? "" : "s";
    if (oversubscribe && slots > 0)
        return error_status(err, STATUS_NO_SLOTS,
                            "not enough slots: %d rank%s wanted, but max_slots limits the hosts to "
                            "%lld even with --oversubscribe; give more hosts",
                            size, plural, (long long)slots);
    return error_status(err, STATUS_NO_SLOTS,
                        "not enough slots: %d rank%s wanted, %lld slot%s found (%s); give more "
                        "hosts or slots, or --oversubscribe",
                        size, plural, (long long)slots, slots == 1 ? "" : "s", buf_text(&list));
}

/* Host after host. With more ranks than slots, all hosts are filled up together: a host's ranks are
 * counted first, so they follow each other. */
static void fill_hosts(const struct host_list *hosts, int size, int *out)
{
    int64_t least = 0, most = size; /* rounds that are surely full, and surely too many */
    while (most - least > 1) {
        int64_t middle = least + (most - least) / 2;
        if (room(hosts, middle) <= size)
            least = middle;
        else
            most = middle;
    }
    int64_t left = size - room(hosts, least);
    int rank = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        int64_t slots = hosts->items[i].slots, limit = limit_of(&hosts->items[i]);
        int64_t count = smaller(least * slots, limit);
        int64_t more = smaller(smaller(slots, limit - count), left);
        left -= more;
        for (count += more; count > 0; count--)
            out[rank++] = (int)i;
    }
}

struct open_host {
    int host, slots;
};

/* One to each of the hosts that still have a slot, in turn, until one side is at its end. */
static int deal_round(struct open_host *open, size_t count, int *given, int rank, int size,
                      int *out)
{
    while (count > 0 && rank < size) {
        size_t kept = 0;
        for (size_t i = 0; i < count && rank < size; i++) {
            struct open_host at = open[i];
            out[rank++] = at.host;
            given[at.host]++;
            at.slots--;
            if (at.slots > 0)
                open[kept++] = at;
        }
        count = kept;
    }
    return rank;
}

/* Round the hosts. A round ends when all slots are taken; the next one begins with fresh ones, for
 * those that have not reached their limit. */
static void deal_hosts(const struct host_list *hosts, int size, int *out)
{
    int *given AUTO_FREE = mem_array(hosts->count, sizeof(*given));
    int *alive AUTO_FREE = mem_array(hosts->count, sizeof(*alive));
    struct open_host *open AUTO_FREE = mem_array(hosts->count, sizeof(*open));
    size_t alive_count = hosts->count;
    for (size_t i = 0; i < hosts->count; i++)
        alive[i] = (int)i;
    for (int rank = 0; rank < size;) {
        size_t count = 0;
        for (size_t i = 0; i < alive_count; i++) {
            const struct host *host = &hosts->items[alive[i]];
            int slots = (int)smaller(host->slots, limit_of(host) - given[alive[i]]);
            if (slots <= 0)
                continue;
            open[count] = (struct open_host){alive[i], slots};
            alive[count++] = alive[i];
        }
        alive_count = count;
        rank = deal_round(open, count, given, rank, size, out);
    }
}

static int place_ppr(const struct mapping *mapping, const struct host_list *hosts, int size,
                     int *out, struct error *err)
{
    int64_t most = mapping_size(mapping, hosts);
    if (size > most)
        return error_usage(err,
                           "--map-by ppr:%d:node has room for %lld rank%s on %zu host%s, but %d "
                           "are wanted; make -np and ppr agree, or give more hosts",
                           mapping->per_node, (long long)most, most == 1 ? "" : "s", hosts->count,
                           hosts->count == 1 ? "" : "s", size);
    for (int rank = 0; rank < size; rank++)
        out[rank] = rank / mapping->per_node;
    return 0;
}

static int place_seq(const struct host_list *hosts, int size, bool oversubscribe, int *out,
                     struct error *err)
{
    if ((size_t)size > hosts->said && !oversubscribe)
        return error_status(
            err, STATUS_NO_SLOTS,
            "not enough slots: %d ranks wanted, but --map-by seq starts one for each of the %zu "
            "entries of the host list; give more entries, or --oversubscribe",
            size, hosts->said);
    for (int rank = 0; rank < size; rank++)
        out[rank] = (int)hosts->sequence[(size_t)rank % hosts->said];
    return 0;
}

static int place_list(const struct mapping *mapping, const struct host_list *hosts, int size,
                      int *out, struct error *err)
{
    const struct rank_list *list = &mapping->list;
    if ((size_t)size != list->count)
        return error_usage(
            err, "%s has places for %zu rank%s, but %d %s wanted; make them agree or leave -np out",
            list->source, list->count, list->count == 1 ? "" : "s", size, size == 1 ? "is" : "are");
    int *found AUTO_FREE = rank_list_resolve(list, hosts, err);
    for (int rank = 0; rank < size && found != NULL; rank++)
        out[rank] = found[rank];
    return found == NULL ? -1 : 0;
}

/* What put the ranks there, for errors. */
static const char *source_of(const struct mapping *mapping)
{
    if (mapping->rule == MAP_LIST)
        return mapping->list.source;
    return mapping->rule == MAP_SEQ ? "--map-by seq" : "--map-by ppr";
}

/* No host may have more ranks than its rule and its slots allow. */
static int check_slots(const struct mapping *mapping, const struct host_list *hosts, int size,
                       bool oversubscribe, const int *host_of, struct error *err)
{
    int *ranks AUTO_FREE = mem_array(hosts->count, sizeof(*ranks));
    for (int rank = 0; rank < size; rank++)
        ranks[host_of[rank]]++;
    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *host = &hosts->items[i];
        int slots = mapping_slots(mapping, host, ranks[i]);
        bool limited = ranks[i] > limit_of(host);
        if (!limited && (oversubscribe || ranks[i] <= slots))
            continue;
        int allowed = limited ? host->max_slots : slots;
        return error_status(err, STATUS_NO_SLOTS,
                            "not enough slots: %s puts %d ranks on %s, which has %s%d slot%s; %s",
                            source_of(mapping), ranks[i], host->name, limited ? "at most " : "",
                            allowed, allowed == 1 ? "" : "s",
                            limited ? "use more hosts" : "give it more slots, or --oversubscribe");
    }
    return 0;
}

static int place(const struct mapping *mapping, const struct host_list *hosts, int size,
                 bool oversubscribe, int *out, struct error *err)
{
    switch (mapping->rule) {
    case MAP_PPR: return place_ppr(mapping, hosts, size, out, err);
    case MAP_SEQ: return place_seq(hosts, size, oversubscribe, out, err);
    case MAP_LIST: return place_list(mapping, hosts, size, out, err);
    case MAP_NODE:
    case MAP_SLOT:
    case MAP_NUMA: break;
    }
    if (room(hosts, oversubscribe ? size : 1) < size)
        return no_slots(hosts, size, oversubscribe, err);
    if (mapping->rule == MAP_NODE)
        deal_hosts(hosts, size, out);
    else
        fill_hosts(hosts, size, out);
    return 0;
}

int *mapping_assign(const struct mapping *mapping, const struct host_list *hosts, int size,
                    bool oversubscribe, struct error *err)
{
    oversubscribe = oversubscribe || mapping->oversubscribe;
    int *host_of = mem_array((size_t)size, sizeof(*host_of));
    if (place(mapping, hosts, size, oversubscribe, host_of, err) == 0 &&
        check_slots(mapping, hosts, size, oversubscribe, host_of, err) == 0)
        return host_of;
    free(host_of);
    return NULL;
}

/* What --map-by says. */

#define CPUS_PER_PROC_MAX 100000 /* as --cpus-per-proc */

static const struct rule_word {
    const char *word;
    enum map_rule rule;
} rule_words[] = {
    {"", MAP_SLOT},   {"slot", MAP_SLOT}, {"node", MAP_NODE},
    {"ppr", MAP_PPR}, {"numa", MAP_NUMA}, {"seq", MAP_SEQ},
};

/* A word of the text; returns the text after the `:` or `,` that ends it (NULL: none). */
static const char *next_word(const char *at, char word[32])
{
    size_t length = strcspn(at, ":,");
    size_t kept = length < 31 ? length : 31;
    memcpy(word, at, kept);
    word[kept] = '\0';
    return at[length] == '\0' ? NULL : at + length + 1;
}

static bool is_number(const char *text, int64_t max, int *out)
{
    int64_t value = 0;
    if (text[0] < '0' || text[0] > '9' || parse_int(text, 1, max, &value, NULL) < 0)
        return false;
    *out = (int)value;
    return true;
}

static const struct {
    const char *word;
    enum map_each each;
} each_words[] = {{"gpu", MAP_EACH_GPU}, {"cpu", MAP_EACH_CPU}, {"auto", MAP_EACH_AUTO}};

/* The `N:node` of ppr. */
static int parse_ppr(const char **at, struct mapping *out, struct error *err)
{
    char number[32] = "", unit[32] = "";
    if (*at != NULL)
        *at = next_word(*at, number);
    if (*at != NULL)
        *at = next_word(*at, unit);
    for (size_t i = 0; i < sizeof(each_words) / sizeof(each_words[0]); i++) {
        if (strcasecmp(number, each_words[i].word) == 0)
            out->each = each_words[i].each;
    }
    if (out->each != MAP_EACH_NUMBER && strcasecmp(unit, "node") == 0)
        return 0;
    if (is_number(number, PLAN_SIZE_MAX, &out->per_node) && strcasecmp(unit, "node") == 0)
        return 0;
    return error_usage(
        err, "expected ppr:N:node, with N ranks on each host; --bind-to places them within a host");
}

static int parse_modifier(const char *word, struct mapping *out, struct error *err)
{
    if (strncasecmp(word, "PE=", 3) == 0 &&
        is_number(word + 3, CPUS_PER_PROC_MAX, &out->cpus_per_proc))
        return 0;
    out->oversubscribe = out->oversubscribe || strcasecmp(word, "OVERSUBSCRIBE") == 0;
    if (strcasecmp(word, "OVERSUBSCRIBE") == 0 || strcasecmp(word, "NOOVERSUBSCRIBE") == 0)
        return 0;
    return error_usage(err, "'%s' is unknown here; expected PE=N or OVERSUBSCRIBE",
                       plain_show(word, strlen(word)).text);
}

static int parse(const char *text, struct mapping *out, struct error *err)
{
    char word[32];
    const char *at = next_word(text, word);
    size_t count = sizeof(rule_words) / sizeof(rule_words[0]), i = 0;
    while (i < count && strcasecmp(rule_words[i].word, word) != 0)
        i++;
    if (i == count || text[0] == '\0')
        return error_usage(err, "expected slot, node, ppr:N:node, numa or seq (--bind-to core, "
                                "numa, l3 or gpu places ranks within a host)");
    out->rule = rule_words[i].rule;
    if (out->rule == MAP_PPR && parse_ppr(&at, out, err) < 0)
        return -1;
    while (at != NULL) {
        at = next_word(at, word);
        if (parse_modifier(word, out, err) < 0)
            return -1;
    }
    return 0;
}

int mapping_parse(const char *text, struct mapping *out, struct error *err)
{
    if (parse(text, out, err) == 0)
        return 0;
    return error_wrap(err, "'%s'", plain_show(text, strlen(text)).text);
}

void mapping_destroy(struct mapping *mapping)
{
    rank_list_destroy(&mapping->list);
    *mapping = (struct mapping){.rule = MAP_SLOT};
}

/* Does the rule itself say how many ranks a host without a slot count gets? */
static bool counts(const struct mapping *mapping)
{
    return mapping->rule == MAP_PPR || mapping->rule == MAP_LIST;
}

bool mapping_has_size(const struct mapping *mapping)
{
    return counts(mapping) || mapping->rule == MAP_SEQ;
}

int64_t mapping_size(const struct mapping *mapping, const struct host_list *hosts)
{
    switch (mapping->rule) {
    case MAP_PPR: return (int64_t)hosts->count * mapping->per_node;
    case MAP_SEQ: return (int64_t)hosts->said;
    case MAP_LIST: return (int64_t)mapping->list.count;
    case MAP_SLOT:
    case MAP_NODE:
    case MAP_NUMA: break;
    }
    return hosts_slots(hosts);
}

int mapping_slots(const struct mapping *mapping, const struct host *host, int ranks)
{
    bool open = counts(mapping) && !host->slots_given;
    return open && ranks > host->slots ? ranks : host->slots;
}
