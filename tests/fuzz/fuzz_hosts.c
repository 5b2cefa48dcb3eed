/* SPDX-License-Identifier: Apache-2.0 */
/* -H. */
#include "base/buf.h"
#include "base/parse.h"
#include "fuzz.h"
#include "model/hosts/entry.h"
#include "model/hosts/hosts.h"

/* What the list says must be true of every list. */
static void check(const struct host_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct host *host = &list->items[i];
        FUZZ_CHECK(name_is_safe(host->name, strlen(host->name)));
        FUZZ_CHECK(host->slots >= 0 && host->max_slots >= 0);
        FUZZ_CHECK(host->traits.port >= 0 && host->traits.port <= 65535);
        FUZZ_CHECK(hosts_find(list, host->name) == host);
    }
    FUZZ_CHECK(list->count <= HOSTS_MAX + HOSTS_RANGE_MAX);
    FUZZ_CHECK(hosts_slots(list) >= 0);
}

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    struct host_list list = {.count = 0}, copy = {.count = 0};
    struct error err = ERROR_INIT;
    fuzz_check_error(hosts_parse(text, &list, &err), &err);
    hosts_settle_slots(&list);
    check(&list);
    hosts_copy(&copy, &list);
    FUZZ_CHECK(copy.count == list.count && hosts_slots(&copy) == hosts_slots(&list));
    hosts_destroy(&copy);
    hosts_destroy(&list);
    return 0;
}
