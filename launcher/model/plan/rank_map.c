/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/rank_map.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/hosts/entry.h"
#include "model/hosts/hostlist_range.h"
#include "model/plan/plan.h"
#include "model/settings/show.h"

struct adding {
    struct rank_list *list;
    int64_t times;
};

static int add(void *context, const char *name, struct error *err)
{
    const struct adding *adding = context;
    if ((int64_t)adding->list->count + adding->times > PLAN_SIZE_MAX)
        return error_status(err, STATUS_USAGE, "more than the %d ranks of one job", PLAN_SIZE_MAX);
    for (int64_t i = 0; i < adding->times; i++) {
        int host = 0;
        if (rank_list_host(adding->list, name, strlen(name), &host, err) < 0)
            return -1;
        rank_list_at(adding->list, adding->list->count)->host = host;
    }
    return 0;
}

static int add_entry(struct rank_list *list, const char *text, size_t length, size_t *budget,
                     struct error *err)
{
    struct adding adding = {list, 1};
    const char *star = memchr(text, '*', length);
    size_t name_length = star == NULL ? length : (size_t)(star - text);
    char digits[16] = "";
    if (star != NULL && length - name_length - 1 < sizeof(digits))
        memcpy(digits, star + 1, length - name_length - 1);
    bool counts = star == NULL || (digits[0] >= '1' && digits[0] <= '9' &&
                                   parse_int(digits, 1, PLAN_SIZE_MAX, &adding.times, NULL) == 0);
    if (name_length == 0 || !counts)
        return error_status(err, STATUS_USAGE, "expected HOST, or HOST*N for N ranks in a row");
    bool ipv6 = text[0] == '[' && memchr(text, ':', name_length) != NULL;
    if (!ipv6)
        return hostlist_expand(text, name_length, budget, add, &adding, err);
    char *name AUTO_FREE = mem_strndup(text, name_length);
    return add(&adding, name, err);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int rank_map_parse(const char *text, struct rank_list *out, struct error *err)
{
    size_t budget = HOSTS_RANGE_MAX;
    out->source = mem_strdup("--rank-map");
    size_t left = strlen(text);
    for (const char *at = text;; at++) {
        size_t whole = host_entry_length(at, left), length = whole;
        const char *start = at;
        for (; length > 0 && is_blank(*start); length--)
            start++;
        while (length > 0 && is_blank(start[length - 1]))
            length--;
        if (length == 0)
            return error_status(err, STATUS_USAGE,
                                "--rank-map '%s': an entry is empty; expected the host of each "
                                "rank, as in a,b,a*2",
                                text_show(text, strlen(text)).text);
        if (add_entry(out, start, length, &budget, err) < 0)
            return error_wrap(err, "--rank-map: '%s'", text_show(start, length).text);
        at += whole;
        if (*at == '\0')
            return 0;
        left -= whole + 1;
    }
}
