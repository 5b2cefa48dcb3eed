/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rewrite.h"

#include <string.h>

#define WORD_MAX ((size_t)1 << 16)
#define SCRIPT_LAUNCHERS (TORCHRUN | DEEPSPEED | ACCELERATE)

void rewrite_destroy(struct rewrite *rewrite)
{
    strv_destroy(&rewrite->words);
}

void rewrite_keep(struct rewrite *rewrite, char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        strv_add(&rewrite->words, words[i]);
}

void rewrite_foreign(struct rewrite *rewrite, const struct foreign *foreign,
                     const char *const values[2])
{
    bool number = strcmp(foreign->arg, "N") == 0;
    bool known = foreign->instead != NULL && (foreign_values(foreign) == 0 || values[0] != NULL);
    known = known && !(number && values[0][strspn(values[0], "0123456789")] != '\0');
    rewrite->foreign = true;
    rewrite->scripts = rewrite->scripts || (foreign->launchers & SCRIPT_LAUNCHERS) != 0;
    rewrite->unsure = rewrite->unsure || !known;
    for (const char *at = known ? foreign->instead : ""; *at != '\0';) {
        struct buf word AUTO_BUF = BUF_INIT(WORD_MAX);
        struct strv one AUTO_STRV = STRV_INIT;
        size_t length = strcspn(at, " ");
        strv_add_n(&one, at, length);
        foreign_fill(foreign, one.items[0], values, &word);
        strv_add(&rewrite->words, buf_text(&word));
        at += length + (at[length] == ' ');
    }
}

void rewrite_program(struct rewrite *rewrite, const char *word)
{
    size_t length = strlen(word);
    if (rewrite->scripts && length > 3 && strcmp(word + length - 3, ".py") == 0)
        strv_add(&rewrite->words, "python3");
    strv_add(&rewrite->words, word);
}

static void put_word(const char *word, struct buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./_-";
    bool quote = word[0] == '\0' || word[strspn(word, plain)] != '\0';
    if (quote)
        buf_putc(out, '\'');
    for (const char *at = word; *at != '\0'; at++)
        buf_printf(out, quote && *at == '\'' ? "'\\%c'" : "%c", *at);
    if (quote)
        buf_putc(out, '\'');
}

bool rewrite_text(const struct rewrite *rewrite, struct buf *out)
{
    if (rewrite->unsure || !rewrite->foreign)
        return false;
    buf_puts(out, "hvdrun");
    for (size_t i = 0; i < rewrite->words.count; i++) {
        const char *word = rewrite->words.items[i];
        for (const char *at = word; *at != '\0'; at++) {
            if ((unsigned char)*at < ' ' || *at == '\x7f')
                return false; /* a message must not have these */
        }
        buf_putc(out, ' ');
        put_word(word, out);
    }
    return true;
}
