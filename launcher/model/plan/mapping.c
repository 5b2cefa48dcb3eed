/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/mapping.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/settings/show.h"

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

/* The `N:node` of ppr. */
static int parse_ppr(const char **at, struct mapping *out, struct error *err)
{
    char number[32] = "", unit[32] = "";
    if (*at != NULL)
        *at = next_word(*at, number);
    if (*at != NULL)
        *at = next_word(*at, unit);
    if (is_number(number, PLAN_SIZE_MAX, &out->per_node) && strcasecmp(unit, "node") == 0)
        return 0;
    return error_status(
        err, STATUS_USAGE,
        "expected ppr:N:node, with N ranks on each host; --bind-to places them within a host");
}

static int parse_modifier(const char *word, struct mapping *out, struct error *err)
{
    if (strncasecmp(word, "PE=", 3) == 0 &&
        is_number(word + 3, CPUS_PER_PROC_MAX, &out->cpus_per_proc))
        return 0;
    out->oversubscribe = out->oversubscribe || strcasecmp(word, "OVERSUBSCRIBE") == 0;
    if (strcasecmp(word, "OVERSUBSCRIBE") == 0 || strcasecmp(word, "NOOVERSUBSCRIBE") == 0)
        return 0;
    return error_status(err, STATUS_USAGE, "'%s' is unknown here; expected PE=N or OVERSUBSCRIBE",
                        text_show(word, strlen(word)).text);
}

static int parse(const char *text, struct mapping *out, struct error *err)
{
    char word[32];
    const char *at = next_word(text, word);
    size_t count = sizeof(rule_words) / sizeof(rule_words[0]), i = 0;
    while (i < count && strcasecmp(rule_words[i].word, word) != 0)
        i++;
    if (i == count || text[0] == '\0')
        return error_status(err, STATUS_USAGE,
                            "expected slot, node, ppr:N:node, numa or seq (--bind-to core, numa, "
                            "l3 or gpu places ranks within a host)");
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
    return error_wrap(err, "'%s'", text_show(text, strlen(text)).text);
}

void mapping_destroy(struct mapping *mapping)
{
    rank_list_destroy(&mapping->list);
    *mapping = (struct mapping){.rule = MAP_SLOT};
}

bool mapping_counts(const struct mapping *mapping)
{
    return mapping->rule == MAP_PPR || mapping->rule == MAP_LIST;
}

bool mapping_has_size(const struct mapping *mapping)
{
    return mapping_counts(mapping) || mapping->rule == MAP_SEQ;
}

int64_t mapping_size(const struct mapping *mapping, const struct host_list *hosts)
{
    int64_t slots = 0;
    switch (mapping->rule) {
    case MAP_PPR: return (int64_t)hosts->count * mapping->per_node;
    case MAP_SEQ: return (int64_t)hosts->said;
    case MAP_LIST: return (int64_t)mapping->list.count;
    case MAP_SLOT:
    case MAP_NODE:
    case MAP_NUMA: break;
    }
    for (size_t i = 0; i < hosts->count; i++)
        slots += hosts->items[i].slots;
    return slots;
}

int mapping_slots(const struct mapping *mapping, const struct host *host, int ranks)
{
    bool open = mapping_counts(mapping) && !host->slots_given;
    return open && ranks > host->slots ? ranks : host->slots;
}
