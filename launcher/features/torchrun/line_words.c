/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torchrun/line_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define WORD_MAX ((size_t)1 << 20)
#define VARIABLE_MAX 64

enum what { IS_FIELD, IS_WORDS, IS_NOTHING, IS_WRONG };
enum kind { SWITCH, VALUE };

static const struct line_option {
    unsigned who; /* enum line_launcher */
    const char *names;
    enum kind kind;
    enum what what;
    enum line_field field;
    const char *text; /* IS_WORDS: the template; IS_WRONG: the advice */
} options[] = {
#define LINE_FIELD(who, names, kind, field) {who, names, kind, IS_FIELD, FIELD_##field, ""},
#define LINE_WORDS(who, names, kind, text) {who, names, kind, IS_WORDS, LINE_FIELDS, text},
#define LINE_NOTHING(who, names, kind) {who, names, kind, IS_NOTHING, LINE_FIELDS, ""},
#define LINE_WRONG(who, names, kind, text) {who, names, kind, IS_WRONG, LINE_FIELDS, text},
#include "features/torchrun/options.def"
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

static bool same_letter(char name, char typed)
{
    return name == typed || (name == '-' && typed == '_');
}

/* Is the name, at `at`, what was typed? Of a long one, `typed` begins after "--". */
static bool is_name(const char *at, size_t length, const char *typed, size_t typed_length)
{
    for (size_t i = 0; length == typed_length && i < length; i++) {
        if (!same_letter(at[i], typed[i]))
            return false;
    }
    return length == typed_length;
}

/* `word` has `length` bytes, dashes included. */
static const struct line_option *find(unsigned who, const char *word, size_t length)
{
    bool is_long = length > 2 && word[0] == '-' && word[1] == '-';
    for (size_t i = 0; i < OPTIONS; i++) {
        if ((options[i].who & who) == 0)
            continue;
        for (const char *at = options[i].names; *at != '\0';) {
            size_t size = strcspn(at, " ");
            bool fits = is_long ? *at != '-' && is_name(at, size, word + 2, length - 2)
                                : *at == '-' && is_name(at, size, word, length);
            if (fits)
                return &options[i];
            at += size + (at[size] == ' ');
        }
    }
    return NULL;
}

static void add_direct(struct line_words *line, const char *template, const char *value)
{
    while (*template != '\0') {
        struct buf word AUTO_BUF = BUF_INIT(WORD_MAX);
        size_t length = strcspn(template, " "), plain = strcspn(template, "$");
        plain = plain < length ? plain : length;
        buf_append(&word, template, plain);
        if (plain < length)
            buf_puts(&word, value);
        strv_add(&line->direct, buf_text(&word));
        template += length + (template[length] == ' ');
    }
}

static void take(struct line_words *line, const struct line_option *option, const char *place,
                 const char *value)
{
    switch (option->what) {
    case IS_FIELD:
        free(line->places[option->field]);
        line->places[option->field] = mem_strdup(place);
        line->values[option->field] = value;
        break;
    case IS_WORDS: add_direct(line, option->text, value); break;
    case IS_WRONG:
        strv_printf(&line->wrong, "%s: %s: %s", line->launcher, place, option->text);
        break;
    case IS_NOTHING: break;
    }
}

/* The variables of torchrun. That of a switch is a number. */
static void read_variables(struct line_words *line, char *const *envp)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        char name[VARIABLE_MAX] = "PET_";
        size_t length = 4;
        for (const char *at = options[i].names; *at != '\0' && *at != ' '; at++)
            name[length++] = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
        name[length] = '\0';
        for (char *const *pair = envp; *pair != NULL && (options[i].who & LINE_TORCHRUN) != 0;
             pair++) {
            const char *value = *pair + length + 1;
            if (strncmp(*pair, name, length) != 0 || (*pair)[length] != '=' || *value == '\0')
                continue;
            if (options[i].kind == VALUE || strcmp(value, "0") != 0)
                take(line, &options[i], name, value);
            break;
        }
    }
}

static void complain(struct line_words *line, const char *place, const char *text)
{
    strv_printf(&line->wrong, "%s: %s%s", line->launcher, place, text);
}

/* Returns the words behind the option. NULL: where it ends is not known. */
static char *const *read_option(struct line_words *line, char *const *at)
{
    const char *word = *at++;
    bool is_short = word[1] != '-';
    size_t length = is_short ? 2 : strcspn(word, "=");
    const struct line_option *option = find(line->who, word, length);
    const char *rest = word + length;
    char *place AUTO_FREE = mem_strndup(word, length);
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        line->help = true;
        return at;
    }
    if (option == NULL || (option->kind == SWITCH && is_short && *rest != '\0')) {
        complain(line, word, ": unknown option; options of hvdrun are written before the launcher");
        return NULL;
    }
    if (option->kind == SWITCH) {
        if (*rest != '\0')
            complain(line, place, " takes no value");
        take(line, option, place, "1");
        return at;
    }
    const char *value = *rest == '=' ? rest + 1 : *rest != '\0' ? rest : *at;
    if (value == NULL) {
        complain(line, place, " needs a value");
        return NULL;
    }
    take(line, option, place, value);
    return at + (*rest == '\0');
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
    *out = (struct line_words){.direct = STRV_INIT, .wrong = STRV_INIT, .program = none};
    read_launcher(out, words[0]);
    char *const *at = words + 1;
    if (out->who == LINE_ACCELERATE && (*at == NULL || strcmp(*at, "launch") != 0)) {
        strv_add(&out->wrong, "accelerate: of its commands, hvdrun has only launch");
        return;
    }
    at += out->who == LINE_ACCELERATE;
    if (out->who == LINE_TORCHRUN)
        read_variables(out, envp);
    while (at != NULL && *at != NULL && (*at)[0] == '-' && (*at)[1] != '\0' &&
           strcmp(*at, "--") != 0)
        at = read_option(out, at);
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
}

void line_words_expect(struct line_words *line, enum line_field field, const char *expected)
{
    strv_printf(&line->wrong, "%s: %s %s: %s", line->launcher, line->places[field],
                line->values[field], expected);
}
