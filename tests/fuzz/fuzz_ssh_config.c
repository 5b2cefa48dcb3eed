/* SPDX-License-Identifier: Apache-2.0 */
/* What `ssh -G` prints, and files that are only looked at. */
#include "fuzz.h"
#include "transport/ssh/config.h"
#include "transport/ssh/sections.h"

static const char *variable(const char *name)
{
    return strcmp(name, "SSH_AUTH_SOCK") == 0 ? "/tmp/agent" : NULL;
}

/* A file that includes two lines of its own. */
static void include(void *context, const char *value)
{
    ssh_sections_read(context, "Host a* !b\nPort 1\n", 18, include, context);
    FUZZ_CHECK(strchr(value, '\n') == NULL);
}

/* Equal names are alike if any are. */
static void check_sections(const char *text, size_t size)
{
    struct ssh_sections *sections = ssh_sections_create();
    ssh_sections_begin(sections);
    ssh_sections_read(sections, text, size, include, sections);
    char *first AUTO_FREE = ssh_sections_class(sections, "node1");
    char *second AUTO_FREE = ssh_sections_class(sections, "node1");
    FUZZ_CHECK((first == NULL) == (second == NULL));
    FUZZ_CHECK(first == NULL || strcmp(first, second) == 0);
    ssh_sections_destroy(sections);
}

FUZZ_TARGET
{
    static const struct ssh_config_place place = {"/home/ann", "ann", variable};
    char *text AUTO_FREE = fuzz_text(data, size);
    struct ssh_config config;
    struct error err = ERROR_INIT;
    bool includes, hash_names;
    ssh_config_init(&config);
    int result = ssh_config_parse(&config, text, size, &place, &err);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(result < 0 || (config.port > 0 && config.port <= 65535));
    ssh_config_destroy(&config);
    ssh_config_is_plain(text, size, &includes, &hash_names);
    check_sections(text, size);
    return 0;
}
