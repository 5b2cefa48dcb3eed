/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_words.h"

#include <string.h>

#include "base/status.h"

static bool set_python(const char *name, struct check_words *out)
{
    size_t length = strlen(name);
    if (length > 0 && length < sizeof(out->python))
        memcpy(out->python, name, length + 1);
    return length > 0 && length < sizeof(out->python);
}

/* Is argv[*i] an option of the check? Moves *i to the last word of it. */
static bool take_own(char *const *argv, int *i, struct check_words *out)
{
    const char *word = argv[*i];
    if (strcmp(word, "--net") == 0)
        out->net = true;
    else if (strcmp(word, "--gpu") == 0)
        out->gpu = true;
    else if (strcmp(word, "--json") == 0)
        out->json = true;
    else if (strncmp(word, "--python=", 9) == 0)
        return set_python(word + 9, out);
    else if (strcmp(word, "--python") == 0 && argv[*i + 1] != NULL)
        return set_python(argv[*i + 1], out) && ++*i > 0;
    else
        return false;
    return true;
}

int check_words_take(int argc, char *const *argv, char **rest, struct check_words *out)
{
    int count = 0;
    bool own = true;
    *out = (struct check_words){.wanted = argc > 1 && strcmp(argv[1], CHECK_WORD) == 0,
                                .python = "python3"};
    for (int i = 0; i < argc; i++) {
        own = own && strcmp(argv[i], "--") != 0;
        if (!out->wanted || i == 0 || !own || (i > 1 && !take_own(argv, &i, out)))
            rest[count++] = argv[i];
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
        "Usage: hvdrun check " CHECK_OPERANDS "\n"
        "Checks the hosts before a job does: whether you can reach them, what they have, and\n"
        "whether they reach each other. Starts no program of yours.\n\n"
        "  hvdrun check                        this machine, or all nodes of the allocation\n"
        "  hvdrun check -H a,b --net           two hosts, and the speed of their connection\n"
        "  hvdrun check -H a,b --gpu           two hosts, and all of their GPUs\n\n"
        "  --net                     " CHECK_NET_HELP "\n"
        "  --gpu                     " CHECK_GPU_HELP "\n"
        "  --python PROGRAM          " CHECK_PYTHON_HELP "\n"
        "  --json                    " CHECK_JSON_HELP "\n"
        "  -q, --quiet               Print only problems and warnings\n\n"
        "OPTIONS are those of a job (hvdrun --help all). The check uses those about hosts and\n"
        "the way to them: -H, --hostfile, --transport, --launch-agent, --ssh-port and the\n"
        "like, --network-interfaces, --start-timeout, --scheduler.\n"
        "Exit status: 0 if a job would run (there may be warnings); 125 if it would not; 2 for\n"
        "an error in the command line.\n"
        "'hvdrun --check-build' prints the features that this hvdrun was built with.\n");
}
