/* SPDX-License-Identifier: Apache-2.0 */
/* Hostfiles of every dialect, whole and by a group. */
#include "base/parse.h"
#include "fuzz.h"
#include "model/hosts/hostfile.h"

static void parse(const char *bytes, size_t size, const char *group)
{
    struct hostfile file = {.bytes = bytes, .length = size, .name = "hosts", .group = group};
    struct host_list list = {.count = 0};
    struct error err = ERROR_INIT;
    int result = hostfile_parse(&file, &list, &err);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(result < 0 || list.count > 0);
    for (size_t i = 0; i < list.count && result == 0; i++) {
        FUZZ_CHECK(name_is_safe(list.items[i].name, strlen(list.items[i].name)));
        FUZZ_CHECK(list.items[i].slots >= 0);
    }
    hosts_destroy(&list);
}

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    parse(text, size, NULL);
    parse(text, size, "a");
    return 0;
}
