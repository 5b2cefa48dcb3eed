/* SPDX-License-Identifier: Apache-2.0 */
/* What a discovery script prints, and a hostfile that is read again and again. */
#include "fuzz.h"
#include "model/hosts/discovered.h"

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    struct host_list list = {.count = 0}, again = {.count = 0}, file = {.count = 0};
    struct error err = ERROR_INIT, err_again = ERROR_INIT, err_file = ERROR_INIT;
    int result = discovered_parse(text, size, 2, &list, &err);
    FUZZ_CHECK(discovered_parse(text, size, 2, &again, &err_again) == result);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(discovered_same(&list, &again));
    FUZZ_CHECK(result == 0 || list.count == 0);
    result = discovered_parse_file(text, size, "hosts", 0, &file, &err_file);
    fuzz_check_error(result, &err_file);
    FUZZ_CHECK(discovered_same(&file, &file));
    hosts_destroy(&list);
    hosts_destroy(&again);
    hosts_destroy(&file);
    return 0;
}
