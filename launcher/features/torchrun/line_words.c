/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torchrun/line_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/text.h"

#define WORD_MAX ((size_t)1 << 20)
#define VARIABLE_MAX 64

enum what { IS_FIELD, IS_WORDS, IS_NOTHING, IS_WRONG, IS_DEFAULT };
enum kind { SWITCH, VALUE, BARE_VALUE };

static const struct line_option {
    unsigned who; /* enum line_launcher */
    const char *names;
    enum kind kind;
    enum what what;
    enum line_field field;
    const char *text; /* IS_WORDS: the template; IS_WRONG: the advice; IS_DEFAULT: the value */
} options[] = {
#define LINE_FIELD(who, names, kind, field) {who, names, kind, IS_FIELD, FIELD_##field, ""},
#define LINE_WORDS(who, names, kind, text) {who, names, kind, IS_WORDS, LINE_FIELDS, text},
#define LINE_NOTHING(who, names, kind) {who, names, kind, IS_NOTHING, LINE_FIELDS, ""},
#define LINE_WRONG(who, names, kind, text) {who, names, kind, IS_WRONG, LINE_FIELDS, text},
#define LINE_DEFAULT(who, name, value) {who, name, VALUE, IS_DEFAULT, LINE_FIELDS, value},
#include "features/torchrun/options.def"
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

/* Is `word`, of `length` bytes with its dashes, a name of the option, or the beginning of a long
 * one if `shortened`? */
static bool has_name(const struct line_option *option, const char *word, size_t length,
                     bool shortened)
{
    bool is_long = length > 2 && word[1] == '-';
    word += is_long ? 2 : 0;
    length -= is_long ? 2 : 0;
    for (const char *at = option->names; *at != '\0'; at = text_behind(at, ' ')) {
        size_t size = strcspn(at, " "), same = 0;
        bool open = at[size - 1] == '*';
        size_t needed = open ? size - 1 : length;
        while (same < needed && same < length && same < size &&
               (at[same] == word[same] || (at[same] == '-' && word[same] == '_')))
            same++;
        if ((*at == '-') != is_long && same == needed && (open || shortened || size == length))
            return true;
    }
    return false;
}

/* As argparse: the beginning of a long name is enough if it is that of one option. Accelerate's own
 * parser wants whole names. */
static const struct line_option *find(unsigned who, const char *word, size_t length, bool *several)
{
    const struct line_option *found = NULL;
    bool may_shorten = length > 2 && word[1] == '-' && who != LINE_ACCELERATE;
    for (size_t i = 0; i < OPTIONS * (may_shorten ? 2 : 1); i++) {
        const struct line_option *option = &options[i % OPTIONS];
        if ((option->who & who) == 0 || option->what == IS_DEFAULT ||
            !has_name(option, word, length, i >= OPTIONS))
            continue;
        if (i < OPTIONS)
            return option;
        *several = *several || found != NULL;
        found = option;
    }
    return *several ? NULL : found;
}

static bool is_default(const struct line_words *line, const struct line_option *option,
                       const char *value)
{
    size_t length = strcspn(option->names, " ");
    for (size_t i = 0; i < OPTIONS; i++) {
        if (options[i].what == IS_DEFAULT && (options[i].who & line->who) != 0 &&
            strncmp(options[i].names, option->names, length) == 0 &&
            options[i].names[length] == '\0' && strcmp(options[i].text, value) == 0)
            return true;
    }
    return false;
}

static void add_direct(struct line_words *line, const char *template, const char *value)
{
    for (; *template != '\0'; template = text_behind(template, ' ')) {
        struct buf word AUTO_BUF = BUF_INIT(WORD_MAX);
        size_t length = strcspn(template, " "), plain = strcspn(template, "$");
        plain = plain < length ? plain : length;
        buf_append(&word, template, plain);
        if (plain < length)
            buf_puts(&word, value);
        strv_add(&line->direct, buf_text(&word));
    }
}

static void take(struct line_words *line, const struct line_option *option, const char *place,
                 const char *value)
{
    bool missing = option->kind != SWITCH && is_default(line, option, value);
    if (missing && option->what != IS_FIELD)
        return;
    switch (option->what) {
    case IS_FIELD:
        mem_replace(&line->places[option->field], place);
        line->values[option->field] = missing ? NULL : value;
        break;
    case IS_WORDS: add_direct(line, option->text, value); break;
    case IS_WRONG:
        strv_printf(&line->wrong, "%s: %s: %s", line->launcher, place, option->text);
        line->refused += place[0] == '-'; /* and not a variable */
        break;
    case IS_NOTHING:
    case IS_DEFAULT: break;
    }
}

/* The variables of torchrun. That of a switch is a number. */
static void read_variables(struct line_words *line, char *const *envp)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        char name[VARIABLE_MAX] = "PET_";
        size_t length = 4;
        bool has_variable = (options[i].who & LINE_TORCHRUN) != 0 &&
                            options[i].kind != BARE_VALUE && options[i].what != IS_DEFAULT;
        for (const char *at = options[i].names; *at != '\0' && *at != ' '; at++)
            name[length++] = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
        name[length] = '\0';
        for (char *const *pair = envp; *pair != NULL && has_variable; pair++) {
            bool on = true;
            if (strncmp(*pair, name, length) != 0 || (*pair)[length] != '=' ||
                (*pair)[length + 1] == '\0')
                continue;
            const char *value = *pair + length + 1;
            if (options[i].kind == VALUE || parse_bool(value, &on, NULL) < 0 || on)
                take(line, &options[i], name, value);
            break;
        }
    }
}

static void complain(struct line_words *line, const char *place, const char *text)
{
    strv_printf(&line->wrong, "%s: %s%s", line->launcher, place, text);
}

/* What is behind it is an option, its value, or the script. Returns NULL: that is not known. */
static char *const *skip_unknown(struct line_words *line, const char *word, bool several,
                                 char *const *next)
{
    bool known = strchr(word, '=') != NULL || *next == NULL || (*next)[0] == '-';
    complain(line, word, several ? ": the name is that of several options" : ": unknown option");
    if (!several)
        strv_add(&line->unknown, word);
    return known ? next : NULL;
}

/* As argparse: with a dash, only "-", a number, and a word with a blank are values. */
static bool is_value(const char *word)
{
    return word != NULL && (word[0] != '-' || word[1] == '\0' || strchr(word, ' ') != NULL ||
                            word[1 + strspn(word + 1, "0123456789.")] == '\0');
}

/* Returns the words behind the option. NULL: where it ends is not known. */
static char *const *read_option(struct line_words *line, char *const *at)
{
    const char *word = *at++;
    bool is_short = word[1] != '-', several = false;
    size_t length = is_short ? 2 : strcspn(word, "=");
    const struct line_option *option = find(line->who, word, length, &several);
    const char *rest = word + length;
    char *place AUTO_FREE = mem_strndup(word, length);
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        line->help = true;
        return at;
    }
    if (option == NULL || (option->kind == SWITCH && is_short && *rest != '\0'))
        return skip_unknown(line, word, several, at);
    if (option->kind == SWITCH) {
        if (*rest != '\0')
            complain(line, place, " takes no value");
        take(line, option, place, "1");
        return at;
    }
    bool inside = *rest != '\0';
    if (!inside && !is_value(*at))
        complain(line, place, " needs a value");
    else
        take(line, option, place, !inside ? *at : rest + (*rest == '='));
    return at + (!inside && is_value(*at));
}

static void read_launcher(struct line_words *line, const char *name)
{
    static const struct {
        const char *name;
        enum line_launcher who;
    } launchers[] = {{"deepspeed", LINE_DEEPSPEED},
                     {"accelerate", LINE_ACCELERATE},
                     {"torchrun", LINE_TORCHRUN}};
    size_t i = 0;
    while (launchers[i].who != LINE_TORCHRUN && strcmp(launchers[i].name, name) != 0)
        i++;
    line->launcher = launchers[i].name;
    line->who = launchers[i].who;
}

void line_words_read(char *const *words, char *const *envp, struct line_words *out)
{
    static char *const none[] = {NULL};
    *out = (struct line_words){.program = none};
    read_launcher(out, words[0]);
    char *const *at = words + 1;
    if (out->who == LINE_ACCELERATE && (*at == NULL || strcmp(*at, "launch") != 0)) {
        out->help = *at != NULL && (strcmp(*at, "-h") == 0 || strcmp(*at, "--help") == 0);
        strv_add(&out->wrong, "accelerate: of its commands, hvdrun has only launch");
        return;
    }
    at += out->who == LINE_ACCELERATE;
    if (out->who == LINE_TORCHRUN)
        read_variables(out, envp);
    for (char *const *word = words; word < at; word++)
        strv_add(&out->kept, *word);
    while (at != NULL && *at != NULL && (*at)[0] == '-' && (*at)[1] != '\0' &&
           strcmp(*at, "--") != 0) {
        size_t refused = out->refused;
        char *const *word = at;
        at = read_option(out, at);
        for (; at != NULL && word < at && refused == out->refused; word++)
            strv_add(&out->kept, *word);
    }
    if (at != NULL)
        strv_copy(&out->kept, at);
    if (at != NULL && *at != NULL && strcmp(*at, "--") == 0)
        at++;
    if (at != NULL)
        out->program = at;
}

void line_words_destroy(struct line_words *line)
{
    for (size_t i = 0; i < LINE_FIELDS; i++)
        free(line->places[i]);
    strv_destroy(&line->direct);
    strv_destroy(&line->wrong);
    strv_destroy(&line->kept);
    strv_destroy(&line->unknown);
}

/* "--log-dir, -r" */
static void put_names(const struct line_option *option, struct buf *out)
{
    const char *between = "";
    for (const char *at = option->names; *at != '\0'; at = text_behind(at, ' ')) {
        buf_printf(out, "%s%s%.*s", between, *at == '-' ? "" : "--", (int)strcspn(at, " "), at);
        between = ", ";
    }
}

void line_words_help(const struct line_words *line, struct buf *out)
{
    static const char *const becomes[] = {[IS_FIELD] = "the same",
                                          [IS_WORDS] = "as an option of hvdrun: ",
                                          [IS_NOTHING] = "accepted, has no effect",
                                          [IS_WRONG] = "refused: "};
    buf_printf(out,
               "Usage: hvdrun [OPTIONS] %s%s [OPTIONS OF %s] SCRIPT [ARGUMENTS]\n"
               "What becomes of the options of %s ($1: the value):\n\n",
               line->launcher, line->who == LINE_ACCELERATE ? " launch" : "", line->launcher,
               line->launcher);
    for (size_t i = 0; i < OPTIONS; i++) {
        struct buf names AUTO_BUF = BUF_INIT(WORD_MAX);
        if ((options[i].who & line->who) == 0 || options[i].what == IS_DEFAULT)
            continue;
        put_names(&options[i], &names);
        buf_printf(out, "  %-34s  %s%s\n", buf_text(&names), becomes[options[i].what],
                   options[i].text);
    }
    buf_puts(out, "\nhvdrun's own options come before them: see 'hvdrun --help'.\n");
}

void line_words_expect(struct line_words *line, enum line_field field, const char *expected)
{
    strv_printf(&line->wrong, "%s: %s %s: %s", line->launcher, line->places[field],
                line->values[field], expected);
}
