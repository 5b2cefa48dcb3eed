/* SPDX-License-Identifier: Apache-2.0 */
/* --map-by over a host list: the rule, the hosts, how many ranks. */
#include "base/parse.h"
#include "fuzz.h"
#include "model/hosts/entry.h"
#include "model/plan/mapping.h"

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    char *rule AUTO_FREE = fuzz_line(&bytes), *names AUTO_FREE = fuzz_line(&bytes),
               *np AUTO_FREE = fuzz_line(&bytes);
    struct mapping mapping = {.rule = MAP_SLOT};
    struct host_list hosts = {.count = 0};
    struct error err = ERROR_INIT;
    int64_t count = 4;
    int result = mapping_parse(rule, &mapping, &err);
    fuzz_check_error(result, &err);
    if (result == 0 && hosts_parse(names, &hosts, &err) == 0 && hosts.count > 0) {
        parse_int(np, 1, 5000, &count, NULL);
        FUZZ_CHECK(mapping_size(&mapping, &hosts) >= 0);
        int *at AUTO_FREE =
            mapping_assign(&mapping, &hosts, (int)count, mapping.oversubscribe, &err);
        fuzz_check_error(at == NULL ? -1 : 0, &err);
        for (int64_t i = 0; at != NULL && i < count; i++)
            FUZZ_CHECK(at[i] >= 0 && (size_t)at[i] < hosts.count);
    }
    hosts_destroy(&hosts);
    mapping_destroy(&mapping);
    return 0;
}
