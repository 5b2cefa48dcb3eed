/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "cli/spelling.h"

struct scan {
    char *const *words;
    int count, at;
    bool dashes; /* there was a `--`, so a ':' is an argument from here on */
    struct flags *out;
};

static struct section *section_add(struct flags *flags)
{
    flags->sections = mem_resize_array(flags->sections, flags->count + 1, sizeof(*flags->sections));
    struct section *section = &flags->sections[flags->count++];
    *section = (struct section){.argv = STRV_INIT};
    return section;
}

static void flag_add(struct scan *scan, enum option_id id, const char *text, char *typed_take)
{
    struct flag_list *list = &scan->out->sections[scan->out->count - 1].flags;
    list->items = mem_resize_array(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] =
        (struct flag){.id = id, .text = mem_strdup(text), .typed = typed_take};
}

static void warn_once(struct scan *scan, char *line_take)
{
    struct strv *warnings = &scan->out->warnings;
    for (size_t i = 0; i < warnings->count; i++) {
        if (strcmp(warnings->items[i], line_take) == 0) {
            free(line_take);
            return;
        }
    }
    strv_add_take(warnings, line_take);
}

static void warn_about(struct scan *scan, const struct spelling *spelling, const char *typed)
{
    const struct option_info *info = option_info(spelling->id);
    if ((info->flags & FLAG_FOREIGN) != 0)
        warn_once(scan, mem_printf("%s is %s", typed, info->help));
    if (spelling->instead != NULL)
        warn_once(scan, mem_printf("%s is deprecated: use %s", typed, spelling->instead));
}

/* The next word as a value. NULL: there is none, or it is another option. */
static const char *next_value(struct scan *scan)
{
    struct spelling other;
    if (scan->at >= scan->count)
        return NULL;
    const char *word = scan->words[scan->at];
    bool option = strcmp(word, "--") == 0 ||
                  (word[0] == '-' && spelling_find(word, strcspn(word, "="), false, &other));
    if (option)
        return NULL;
    scan->at++;
    return word;
}

/* Takes the value from the words after the option. */
static int take_value(struct scan *scan, enum option_id id, char *typed_take, struct error *err)
{
    const struct option_info *info = option_info(id);
    char *typed AUTO_FREE = typed_take;
    const char *first = next_value(scan);
    const char *second = first != NULL && info->type == OPTION_RANGE ? next_value(scan) : NULL;
    if (first == NULL || (info->type == OPTION_RANGE && second == NULL))
        return error_status(err, STATUS_USAGE, "%s needs a value: %s %s", typed, typed, info->arg);
    char *both AUTO_FREE = second == NULL ? NULL : mem_printf("%s %s", first, second);
    flag_add(scan, id, both == NULL ? first : both, mem_strdup(typed));
    return 0;
}

static int unknown_option(const char *word, size_t length, struct error *err)
{
    struct buf hint AUTO_BUF = BUF_INIT(256);
    spelling_suggest(word, length, &hint);
    if (hint.length == 0)
        buf_puts(&hint, "; 'hvdrun --help' lists the options");
    return error_status(err, STATUS_USAGE, "unknown option '%.*s'%s", (int)length, word,
                        buf_text(&hint));
}

/* The number of letters in "-vvv". 0: it is another word. */
static size_t count_v(const char *word)
{
    size_t letters = word[0] == '-' ? strspn(word + 1, "v") : 0;
    return word[1 + letters] == '\0' ? letters : 0;
}

static int scan_option(struct scan *scan, struct error *err)
{
    const char *word = scan->words[scan->at++];
    size_t length = strcspn(word, "=");
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    struct spelling spelling;
    size_t letters = count_v(word);
    for (size_t i = 0; i < letters; i++)
        flag_add(scan, OPT_verbose, "yes", mem_strdup("-v"));
    if (letters > 0)
        return 0;
    if (!spelling_find(word, length, value != NULL, &spelling))
        return unknown_option(word, length, err);
    char *typed AUTO_FREE = mem_strndup(word, length);
    warn_about(scan, &spelling, typed);
    if (value != NULL && !spelling.takes_value)
        return error_status(err, STATUS_USAGE, "%s takes no value ('%s' was given)", typed, value);
    if (value == NULL && spelling.fixed == NULL)
        return take_value(scan, spelling.id, mem_strdup(typed), err);
    flag_add(scan, spelling.id, value != NULL ? value : spelling.fixed, mem_strdup(typed));
    return 0;
}

/* Reads flags up to the program. */
static int scan_flags(struct scan *scan, struct error *err)
{
    while (scan->at < scan->count) {
        const char *word = scan->words[scan->at];
        if (strcmp(word, "--") == 0) {
            scan->dashes = true;
            scan->at++;
            return 0;
        }
        if (word[0] != '-' || word[1] == '\0')
            return 0;
        if (scan_option(scan, err) < 0)
            return -1;
    }
    return 0;
}

/* Reads the program's words. Returns whether a ':' ended them. */
static bool scan_program(struct scan *scan)
{
    struct strv *argv = &scan->out->sections[scan->out->count - 1].argv;
    while (scan->at < scan->count) {
        const char *word = scan->words[scan->at++];
        if (!scan->dashes && strcmp(word, ":") == 0)
            return true;
        strv_add(argv, word);
    }
    return false;
}

int flags_scan(int argc, char *const *argv, struct flags *out, struct error *err)
{
    struct scan scan = {.words = argv, .count = argc, .at = 1, .out = out};
    bool more = true;
    *out = (struct flags){.count = 0};
    while (more) {
        struct strv *program = &section_add(out)->argv;
        if (scan_flags(&scan, err) < 0)
            return -1;
        more = scan_program(&scan);
        bool missing = program->count == 0 && (more || out->count > 1);
        if (missing)
            return error_status(err, STATUS_USAGE, "no program %s ':'",
                                more ? "before a" : "after the last");
        if (program->count > 0 && program->items[0][0] == '\0')
            return error_status(err, STATUS_USAGE, "the name of the program is empty");
    }
    return 0;
}

void flags_destroy(struct flags *flags)
{
    for (size_t i = 0; i < flags->count; i++) {
        struct section *section = &flags->sections[i];
        for (size_t k = 0; k < section->flags.count; k++) {
            free(section->flags.items[k].text);
            free(section->flags.items[k].typed);
        }
        free(section->flags.items);
        strv_destroy(&section->argv);
    }
    free(flags->sections);
    strv_destroy(&flags->warnings);
    *flags = (struct flags){.count = 0};
}
