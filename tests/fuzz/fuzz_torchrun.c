/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of other launchers: a word a line; behind an empty line, variables of the environment. What
 * becomes of them is a line of hvdrun, with a program. */
#include "cli/flags.h"
#include "features/torchrun/translation.h"
#include "fuzz.h"

#define WORDS_MAX 64

static void take_words(struct fuzz_bytes *bytes, struct strv *words)
{
    while (bytes->left > 0 && words->count < WORDS_MAX) {
        char *line = fuzz_line(bytes);
        if (line[0] == '\0') {
            free(line);
            return;
        }
        strv_add_take(words, line);
    }
}

static void check_line(const struct line *line)
{
    struct flags flags;
    struct error err = ERROR_INIT;
    struct strv words AUTO_STRV = STRV_INIT;
    strv_add(&words, "hvdrun");
    strv_copy(&words, strv_items(&line->words));
    if (flags_scan((int)words.count, words.items, &flags, &err) == 0)
        FUZZ_CHECK(flags.count == 1 && flags.warnings.count == 0);
    flags_destroy(&flags);
    FUZZ_CHECK(line->nodes.min <= line->nodes.max && line->nodes.rank >= -1);
    if (line->nodes.max > 0)
        role_of(&line->nodes, 1, false);
}

static bool has_file(const char *path)
{
    return path[0] == '/';
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    AUTO_STRV struct strv words = STRV_INIT, env = STRV_INIT;
    struct line line = {.words = STRV_INIT};
    struct line_machine machine = {"now", has_file};
    struct error err = ERROR_INIT;
    take_words(&bytes, &words);
    take_words(&bytes, &env);
    if (words.count == 0)
        strv_add(&words, "torchrun");
    int result = translate_line(strv_items(&words), strv_items(&env), &machine, &line, &err);
    fuzz_check_error(result, &err);
    if (result == 0)
        check_line(&line);
    free(line.nodes.meeting_host);
    free(line.nodes.meeting_id);
    line_destroy(&line);
    return 0;
}
