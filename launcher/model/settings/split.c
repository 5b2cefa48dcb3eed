/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/split.h"

#include <string.h>

#include "base/buf.h"

#define COMMAND_MAX ((size_t)65536)
#define BLANKS " \t\n"

/* Appends the quoted part that begins at `at` and returns what follows it; NULL: it has no end. */
static const char *quoted(const char *at, struct buf *word)
{
    char quote = *at++;
    for (; *at != quote; at++) {
        if (*at == '\0')
            return NULL;
        if (quote == '"' && *at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        buf_putc(word, *at);
    }
    return at + 1;
}

/* One word from `at`, which is not a blank. Returns the text after it; NULL: an open quote or a
 * backslash at the end. */
static const char *take_word(const char *at, struct buf *word)
{
    while (at != NULL && *at != '\0' && strchr(BLANKS, *at) == NULL) {
        if (*at == '\'' || *at == '"') {
            at = quoted(at, word);
            continue;
        }
        if (*at == '\\' && *++at == '\0')
            return NULL;
        buf_putc(word, *at++);
    }
    return at;
}

int words_split(const char *text, struct strv *words, struct error *err)
{
    if (strlen(text) > COMMAND_MAX)
        return error_usage(err, "the command is too long");
    const char *at = text + strspn(text, BLANKS);
    while (*at != '\0') {
        struct buf word AUTO_BUF = BUF_INIT(COMMAND_MAX);
        at = take_word(at, &word);
        if (at == NULL)
            return error_usage(err, "the command '%s' ends within a quote or after a backslash",
                               text);
        strv_add(words, buf_text(&word));
        at += strspn(at, BLANKS);
    }
    if (words->count == 0 || words->items[0][0] == '\0')
        return error_usage(err, "the command is empty");
    return 0;
}
