/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_main/dial_out.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "io/dial_ends.h"

enum word {
    WORD_DIAL,
    WORD_SECRET,
    WORD_ID,
    WORD_NAME,
    WORD_LIMIT,
    WORD_GRACE,
    WORD_OPEN,
    WORD_SLOTS,
    WORD_LINE,
    WORDS
};

static const struct {
    const char *option, *variable;
} names[WORDS] = {
    [WORD_DIAL] = {"--dial", "HVDRUN_DIAL"},
    [WORD_SECRET] = {"--dial-secret", "HVDRUN_DIAL_SECRET"},
    [WORD_ID] = {"--dial-id", "HVDRUN_DIAL_ID"},
    [WORD_NAME] = {"--name", "HVDRUN_DIAL_NAME"},
    [WORD_LIMIT] = {"--start-timeout", "HVDRUN_START_TIMEOUT"},
    [WORD_GRACE] = {"--grace", "HVDRUN_DIAL_GRACE"},
    [WORD_OPEN] = {"--no-secret", NULL}, /* the one without a value */
    [WORD_SLOTS] = {"--slots", NULL},
    [WORD_LINE] = {"--line", NULL},
};

/* The option that the word is or begins with: "--name", "--name=NAME". */
static enum word find(const char *word)
{
    size_t length = strcspn(word, "=");
    for (int i = 0; i < WORDS; i++) {
        if (strlen(names[i].option) == length && strncmp(names[i].option, word, length) == 0)
            return (enum word)i;
    }
    return WORDS;
}

bool dial_words_are_ours(int argc, char *const *argv)
{
    bool is_srun =
        argc == 2 && strcmp(argv[1], "--dial") == 0 && getenv(DIAL_BACK_ENV_DIAL) != NULL;
    const char *server = getenv(names[WORD_DIAL].variable);
    if (argc == 1)
        return server != NULL && server[0] != '\0';
    return !is_srun && find(argv[1]) != WORDS;
}

static int read_words(char *const *words, const char **values, struct error *err)
{
    for (int i = 0; i < WORDS; i++) {
        values[i] = names[i].variable == NULL ? NULL : getenv(names[i].variable);
        if (values[i] != NULL && values[i][0] == '\0')
            values[i] = NULL;
    }
    for (; *words != NULL; words++) {
        enum word word = find(*words);
        const char *equals = strchr(*words, '=');
        if (word == WORDS)
            return error_set(err, "unknown option '%s'", *words);
        if (word == WORD_OPEN && equals == NULL)
            values[word] = *words;
        else if (equals != NULL)
            values[word] = equals + 1;
        else if (words[1] != NULL && find(words[1]) == WORDS)
            values[word] = *++words;
        else if (word != WORD_DIAL || values[word] == NULL)
            return error_set(err, "%s needs a value", *words);
    }
    return 0;
}

/* The number of this pod among those of its job; NULL: it is not one of many. Kubernetes sets the
 * first variable in an indexed Job, and so in a JobSet, and Trainer the second. */
static const char *pod_index(void)
{
    static const char *const variables[] = {"JOB_COMPLETION_INDEX", "PET_NODE_RANK"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *index = getenv(variables[i]);
        if (index != NULL && index[0] != '\0' && index[strspn(index, "0123456789")] == '\0')
            return index;
    }
    return NULL;
}

static size_t without_number(const char *name, size_t length)
{
    while (length > 0 && strchr("0123456789", name[length - 1]) != NULL)
        length--;
    return length;
}

char *dial_words_pod_name(const char *own, const char *index, const char *server)
{
    size_t length = strlen(own), first = strcspn(server, ".:");
    size_t number = index == NULL ? 0 : strlen(index);
    size_t stem = without_number(server, first);
    bool says_it = without_number(own, length) + number == length &&
                   strcmp(own + length - number, index == NULL ? "" : index) == 0;
    if (index == NULL || says_it || stem == 0 || stem == first || server[stem - 1] != '-')
        return mem_strdup(own);
    return mem_printf("%.*s%s", (int)stem, server, index);
}

static int read_name(const char *name, const char *server, char **out, struct error *err)
{
    char own[HOST_NAME_MAX + 1] = "";
    char *made AUTO_FREE = NULL;
    if (name == NULL && gethostname(own, sizeof(own) - 1) == 0)
        name = made = dial_words_pod_name(own, pod_index(), server == NULL ? "" : server);
    if (name == NULL || !name_is_safe(name, strlen(name)))
        return error_set(err, "'%s' is not the name of a host; give another one with --name",
                         name == NULL ? "" : name);
    *out = mem_strdup(name);
    return 0;
}

int dial_words_read(char *const *words, struct dial_out *dial, struct error *err)
{
    const char *values[WORDS];
    *dial = (struct dial_out){.limit_ms = DIAL_WORDS_LIMIT_MS};
    if (read_words(words, values, err) < 0 ||
        read_name(values[WORD_NAME], values[WORD_DIAL], &dial->node, err) < 0)
        return -1;
    const char *id = values[WORD_ID] != NULL ? values[WORD_ID] : DIAL_ID_USUAL;
    const char *server = values[WORD_DIAL];
    int64_t slots = 0;
    bool is_any = strcmp(dial->node, DIAL_WORDS_ANY) == 0;
    if (values[WORD_LIMIT] != NULL &&
        parse_duration_ms(values[WORD_LIMIT], &dial->limit_ms, err) < 0)
        return error_wrap(err, "--start-timeout");
    if (dial->limit_ms <= 0)
        return error_set(err, "--start-timeout must be longer than 0");
    if (values[WORD_GRACE] != NULL &&
        parse_duration_ms(values[WORD_GRACE], &dial->term_grace_ms, err) < 0)
        return error_wrap(err, "--grace");
    if (values[WORD_SLOTS] != NULL && parse_int(values[WORD_SLOTS], 1, INT_MAX, &slots, err) < 0)
        return error_wrap(err, "--slots");
    dial->slots = (int)slots;
    dial->line = values[WORD_LINE] == NULL ? NULL : mem_strdup(values[WORD_LINE]);
    if (server == NULL || !dial_lookup_is_server(server))
        return error_set(err,
                         "'%s' is not HOST:PORT; --dial needs the host where hvdrun runs, and "
                         "its --dial-port",
                         server == NULL ? "" : server);
    if (values[WORD_OPEN] != NULL)
        values[WORD_SECRET] = NULL;
    else if (values[WORD_SECRET] == NULL)
        return error_set(err, "--dial-secret FILE is missing; hvdrun needs the same secret");
    if (dial_secret_key(values[WORD_SECRET], id, dial->key, err) < 0)
        return -1;
    if (dial_secret_is_open(values[WORD_SECRET]))
        fprintf(stderr, "hvdrun-agent: " DIAL_SECRET_OPEN "\n", values[WORD_SECRET]);
    dial->server = mem_strdup(server);
    dial->identity =
        mem_printf(DIAL_BACK_IDENTITY ":%s:%s", id, is_any ? DIAL_BACK_ANY : dial->node);
    return 0;
}
