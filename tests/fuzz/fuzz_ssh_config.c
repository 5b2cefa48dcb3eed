/* SPDX-License-Identifier: Apache-2.0 */
/* What `ssh -G` prints, and files that are only looked at. */
#include "fuzz.h"
#include "transport/ssh/config.h"

static const char *variable(const char *name)
{
    return strcmp(name, "SSH_AUTH_SOCK") == 0 ? "/tmp/agent" : NULL;
}

FUZZ_TARGET
{
    static const struct ssh_config_place place = {"/home/ann", "ann", variable};
    char *text AUTO_FREE = fuzz_text(data, size);
    struct ssh_config config;
    struct error err = ERROR_INIT;
    struct ssh_config_sight sight = {.matters = false};
    ssh_config_init(&config);
    int result = ssh_config_parse(&config, text, size, &place, &err);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(result < 0 || (config.port > 0 && config.port <= 65535));
    ssh_config_destroy(&config);
    ssh_config_look(text, size, &sight);
    FUZZ_CHECK(sight.matters || !sight.by_host);
    return 0;
}
