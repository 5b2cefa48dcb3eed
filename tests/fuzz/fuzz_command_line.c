/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: a word a line; behind an empty line, variables of the environment. No word can
 * name a file outside the folder that this runs in. */
#include "cli/command_line.h"
#include "cli/control_words.h"
#include "fuzz.h"

#define WORDS_MAX 64

static void take_words(struct fuzz_bytes *bytes, struct strv *words)
{
    while (bytes->left > 0 && words->count < WORDS_MAX) {
        char *line = fuzz_line(bytes);
        for (char *at = line; *at != '\0'; at++)
            *at = *at == '/' ? '_' : *at;
        if (line[0] == '\0') {
            free(line);
            return;
        }
        strv_add_take(words, line);
    }
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    AUTO_STRV struct strv words = STRV_INIT, env = STRV_INIT;
    struct command_line line;
    struct control_words control;
    struct error err = ERROR_INIT, refused = ERROR_INIT;
    strv_add(&words, "hvdrun");
    take_words(&bytes, &words);
    take_words(&bytes, &env);
    strv_env_unset(&env, "HOME");
    strv_env_unset(&env, "XDG_CONFIG_HOME");
    int result = command_line_parse((int)words.count, words.items, strv_items(&env), &line, &err);
    fuzz_check_error(result, &err);
    for (size_t i = 0; i < line.apps.count && result == 0; i++)
        FUZZ_CHECK(line.apps.items[i].argv.count > 0 && line.apps.items[i].np >= 0);
    command_line_destroy(&line);
    fuzz_check_error(control_words_parse((int)words.count, words.items, &control, &refused),
                     &refused);
    return 0;
}
