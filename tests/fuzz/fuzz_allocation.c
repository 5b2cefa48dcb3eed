/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a scheduler, a line each; behind an empty line the file that they name. Each
 * scheduler reads them. */
#include "base/parse.h"
#include "base/strv.h"
#include "fuzz.h"
#include "model/allocation/allocation.h"
#include "model/allocation/slurm.h"
#include "model/hosts/entry.h"

static void parse(enum allocation_kind kind, char *const *env, const char *file, const char *bytes,
                  size_t length)
{
    struct allocation allocation = {.kind = ALLOCATION_NONE};
    struct error err = ERROR_INIT;
    int result = allocation_parse(kind, env, file, file == NULL ? NULL : bytes,
                                  file == NULL ? 0 : length, &allocation, &err);
    fuzz_check_error(result, &err);
    for (size_t i = 0; i < allocation.hosts.count && result == 0; i++) {
        const struct host *host = &allocation.hosts.items[i];
        FUZZ_CHECK(name_is_safe(host->name, strlen(host->name)) && host->slots >= 0);
    }
    struct host_list own = {.count = 0};
    hosts_parse("localhost:2,n1:1", &own, NULL);
    if (result == 0)
        fuzz_check_error(allocation_check(&allocation, &own, false, &err), &err);
    hosts_destroy(&own);
    allocation_destroy(&allocation);
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    AUTO_STRV struct strv env = STRV_INIT;
    for (int i = 0; bytes.left > 0 && i < 64; i++) {
        char *line = fuzz_line(&bytes);
        if (line[0] == '\0') {
            free(line);
            break;
        }
        strv_add_take(&env, line);
    }
    char *text AUTO_FREE = fuzz_text(bytes.at, bytes.left);
    const char *file = NULL;
    allocation_detect(strv_items(&env), &file);
    allocation_slurm_twin(strv_items(&env));
    for (int kind = ALLOCATION_SLURM; kind <= ALLOCATION_KUBERNETES; kind++) {
        file = NULL;
        if (allocation_has((enum allocation_kind)kind, strv_items(&env), &file))
            parse((enum allocation_kind)kind, strv_items(&env), file, text, bytes.left);
    }
    return 0;
}
