/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/first_word.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "cli/check_words.h"
#include "cli/control_forms.h"
#include "cli/suggest.h"
#include "io/child.h"

/* Words that people try, and what is near. */
static const struct {
    const char *word, *advice;
} tried[] = {
    {"help", "'hvdrun --help' lists the options and commands"},
    {"version", "'hvdrun --version' prints the version"},
    {"cancel", "'hvdrun stop' ends a job"},
    {"list", "'hvdrun ps' lists your jobs"},
    {"stats", "'hvdrun status' shows a job"},
    {"start", "leave it out: hvdrun [options] program [arguments]"},
};

static const char *advice_for(const char *word)
{
    for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
        if (strcmp(tried[i].word, word) == 0)
            return tried[i].advice;
    }
    return NULL;
}

/* The command that is near a mistyped word. NULL: none is. */
static const char *near_command(const char *word, struct suggest *suggest)
{
    suggest_init(suggest, word, strlen(word));
    for (int i = 0; i < CONTROL_COMMANDS; i++)
        suggest_offer(suggest, control_forms[i].word);
    suggest_offer(suggest, CHECK_WORD);
    return suggest_best(suggest);
}

static char *advice_text(const char *word)
{
    struct suggest suggest;
    const char *known = advice_for(word);
    if (known != NULL)
        return mem_strdup(known);
    const char *near = near_command(word, &suggest);
    return near == NULL ? NULL : mem_printf("did you mean 'hvdrun %s'?", near);
}

int first_word_check(int argc, char *const *argv, const char *path, struct error *err)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (word[0] == '-' || strchr(word, '/') != NULL || strcmp(word, CHECK_WORD) == 0)
        return 0;
    char *advice AUTO_FREE = advice_text(word);
    char *program AUTO_FREE = advice == NULL ? NULL : child_find(word, path, NULL, NULL);
    if (advice == NULL || program != NULL)
        return 0;
    char *file AUTO_FREE = mem_printf("./%s", word);
    bool lies_here = access(file, X_OK) == 0;
    return error_status(err, STATUS_USAGE,
                        "'%s' is neither a command of hvdrun nor a program in PATH: %s ('hvdrun "
                        "%s%s' starts a program named %s)",
                        word, advice, lies_here ? "./" : "-- ", word, word);
}
