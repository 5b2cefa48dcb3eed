/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_words.h"

#include <string.h>

#include "base/status.h"

int check_words_take(int argc, char *const *argv, char **rest, struct check_words *out)
{
    int count = 0;
    bool own = true;
    *out = (struct check_words){.wanted = argc > 1 && strcmp(argv[1], CHECK_WORD) == 0};
    for (int i = 0; i < argc; i++) {
        bool is_net = strcmp(argv[i], "--net") == 0, is_json = strcmp(argv[i], "--json") == 0;
        own = own && strcmp(argv[i], "--") != 0;
        if (!out->wanted || i == 0 || !own || (i > 1 && !is_net && !is_json)) {
            rest[count++] = argv[i];
            continue;
        }
        out->net = out->net || is_net;
        out->json = out->json || is_json;
    }
    rest[count] = NULL;
    return count;
}

int check_words_refuse(const char *word, struct error *err)
{
    return error_status(err, STATUS_USAGE,
                        "hvdrun check takes options, but no program: unexpected '%s' ('hvdrun -- "
                        "check' starts a program named check)",
                        word);
}

void check_words_help(struct buf *out)
{
    buf_puts(
        out,
        "Usage: hvdrun check [--net] [--json] [OPTIONS]\n"
        "Checks the hosts before a job does: whether you can reach them, what they have, and\n"
        "whether they reach each other. Starts no program.\n\n"
        "  hvdrun check                        this machine, or all nodes of the allocation\n"
        "  hvdrun check -H a,b --net           two hosts, and the speed of their connection\n\n"
        "  --net                     " CHECK_NET_HELP "\n"
        "  --json                    " CHECK_JSON_HELP "\n"
        "  -q, --quiet               Print only problems and warnings\n\n"
        "OPTIONS are those of a job (hvdrun --help all). The check uses those about hosts and\n"
        "the way to them: -H, --hostfile, --transport, --launch-agent, --ssh-port and the\n"
        "like, --network-interfaces, --start-timeout, --scheduler.\n"
        "Exit status: 0 if a job would run (there may be warnings); 125 if it would not; 2 for\n"
        "an error in the command line.\n"
        "'hvdrun --check-build' prints the features that this hvdrun was built with.\n");
}
