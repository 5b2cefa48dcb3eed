/* SPDX-License-Identifier: Apache-2.0 */
/* Rankfiles and lists of ranks: hosts in the first line, both read the rest. */
#include "base/parse.h"
#include "fuzz.h"
#include "model/hosts/entry.h"
#include "model/plan/rank_list.h"
#include "model/settings/shown.h"

static void resolve(int result, struct rank_list *list, const struct host_list *hosts)
{
    struct error err = ERROR_INIT;
    int *at AUTO_FREE = result < 0 ? NULL : rank_list_resolve(list, hosts, &err);
    for (size_t i = 0; at != NULL && i < list->count; i++)
        FUZZ_CHECK(at[i] >= 0 && (size_t)at[i] < hosts->count);
    rank_list_destroy(list);
}

static void each_rank(void *context, int64_t rank)
{
    FUZZ_CHECK(rank >= 0 && rank <= *(const int64_t *)context);
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    char *names AUTO_FREE = fuzz_line(&bytes);
    char *text AUTO_FREE = fuzz_text(bytes.at, bytes.left);
    struct host_list hosts = {.count = 0};
    struct rank_list list = {.count = 0};
    struct error err = ERROR_INIT;
    int64_t max = 4095;
    hosts_parse(names, &hosts, NULL);
    int result = rankfile_parse(text, bytes.left, "f", &list, &err);
    fuzz_check_error(result, &err);
    resolve(result, &list, &hosts);
    fuzz_check_error(parse_ranks(text, max, each_rank, &max, &err), &err);
    result = shown_check(text, max, &err);
    fuzz_check_error(result, &err);
    for (int stream = 0; stream < 2 && result == 0; stream++)
        FUZZ_CHECK(!shown_has(text, -1, -1, stream));
    hosts_destroy(&hosts);
    return 0;
}
