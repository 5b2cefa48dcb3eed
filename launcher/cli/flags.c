/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/features.h"
#include "cli/foreign.h"
#include "cli/spelling.h"
#include "model/settings/suggest.h"

#define VALUE_MAX ((size_t)1 << 20)
#define DROPPED_MAX ((size_t)1024)

/* Options of other launchers with the same advice are one mistake. */
struct mistake {
    const struct foreign *foreign; /* NULL: it has a text */
    struct buf names;              /* of these options, as they were typed */
    int count;
    char *text;
};

struct scan {
    char *const *words;
    int count, at;
    bool dashes;        /* there was a `--`, so a ':' is an argument from here on */
    bool rewritten;     /* the option is in out->rewrite in another form */
    bool wrong;         /* the error is set */
    bool lost;          /* what follows may be a value or the program */
    struct buf dropped; /* options that have no meaning here */
    struct mistake *mistakes;
    size_t mistake_count;
    struct flags *out;
};

static struct section *section_add(struct flags *flags)
{
    struct section *section = &MEM_ADD(flags->sections, flags->count);
    *section = (struct section){.argv = STRV_INIT};
    return section;
}

static void flag_add(struct scan *scan, enum option_id id, const char *text, char *typed_take)
{
    struct flag_list *list = &scan->out->sections[scan->out->count - 1].flags;
    MEM_ADD(list->items, list->count) =
        (struct flag){.id = id, .text = mem_strdup(text), .typed = typed_take};
}

static void warn_once(struct scan *scan, char *line_take)
{
    struct strv *warnings = &scan->out->warnings;
    if (strv_has(warnings, line_take))
        free(line_take);
    else
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

/* The next word as a value. NULL: there is none, or it is another option. An option of another
 * launcher can be a value: --srun-args --exclusive. */
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

static int missing_value(const char *typed, const char *arg, struct error *err)
{
    return error_usage(err, "%s needs a value: %s %s", typed, typed, arg);
}

static int unwanted_value(const char *typed, const char *value, struct error *err)
{
    return error_usage(err, "%s takes no value ('%s' was given)", typed, value);
}

/* Takes the value from the words after the option. */
static int take_value(struct scan *scan, enum option_id id, char *typed_take, struct error *err)
{
    const struct option_info *info = option_info(id);
    char *typed AUTO_FREE = typed_take;
    const char *first = next_value(scan);
    const char *second = first != NULL && info->type == OPTION_RANGE ? next_value(scan) : NULL;
    if (first == NULL || (info->type == OPTION_RANGE && second == NULL))
        return missing_value(typed, info->arg, err);
    char *both AUTO_FREE = second == NULL ? NULL : mem_printf("%s %s", first, second);
    flag_add(scan, id, both == NULL ? first : both, mem_strdup(typed));
    return 0;
}

/* Goes on behind an option that is near to a known one. Behind another one, the next word may be
 * its value, or the program. */
static void skip_unknown(struct scan *scan, const char *near, const char *value)
{
    struct spelling spelling;
    bool known = near != NULL && spelling_find(near, strlen(near), value != NULL, &spelling);
    char *word AUTO_FREE =
        known && value != NULL ? mem_printf("%s=%s", near, value) : mem_strdup(near);
    bool takes_next = known && value == NULL && spelling.fixed == NULL;
    if (known) {
        scan->rewritten = true;
        strv_add(&scan->out->rewrite.words, word);
    }
    const char *next = takes_next ? next_value(scan) : NULL;
    if (next != NULL)
        strv_add(&scan->out->rewrite.words, next);
    scan->lost =
        !known && value == NULL && scan->at < scan->count && scan->words[scan->at][0] != '-';
}

static int unknown_option(struct scan *scan, const char *word, size_t length, const char *value,
                          struct error *err)
{
    struct suggest suggest;
    struct buf hint AUTO_BUF = BUF_INIT(256);
    skip_unknown(scan, spelling_near(word, length, &suggest), value);
    suggest_append(&suggest, &hint);
    if (hint.length == 0)
        buf_puts(&hint, "; 'hvdrun --help all' lists the options");
    return error_usage(err, "unknown option '%.*s'%s", (int)length, word, buf_text(&hint));
}

/* Options of other launchers */

static int set_foreign(struct scan *scan, const struct foreign *foreign, const char *typed,
                       const char *const values[2], struct error *err)
{
    struct buf text AUTO_BUF = BUF_INIT(VALUE_MAX);
    if (foreign_value(foreign, values, &text, err) < 0)
        return error_wrap_usage(err, "%s", typed);
    flag_add(scan, foreign->id, buf_text(&text), mem_strdup(typed));
    return 0;
}

/* One notice names all of them. */
static int drop_foreign(struct scan *scan, const struct foreign *foreign, const char *typed,
                        const char *first)
{
    buf_printf(&scan->dropped, "%s%s%s%s", scan->dropped.length > 0 ? ", " : "", typed,
               first == NULL ? "" : " ", first == NULL ? "" : first);
    if (foreign->kind == FOREIGN_DROP) {
        buf_puts(&scan->dropped, " (");
        foreign_text(foreign, &scan->dropped);
        buf_puts(&scan->dropped, ")");
    }
    scan->rewritten = true;
    return 0;
}

static struct mistake *mistake_add(struct scan *scan)
{
    struct mistake *mistake = &MEM_ADD(scan->mistakes, scan->mistake_count);
    *mistake = (struct mistake){.names = BUF_INIT(VALUE_MAX)};
    return mistake;
}

/* The mistake with the advice of this option, if the advice does not depend on the value. */
static struct mistake *same_advice(struct scan *scan, const struct foreign *foreign)
{
    struct mistake *found = NULL;
    for (size_t i = 0; i < scan->mistake_count && strchr(foreign->text, '$') == NULL; i++) {
        const struct foreign *other = scan->mistakes[i].foreign;
        if (other != NULL && other->launchers == foreign->launchers &&
            strcmp(other->text, foreign->text) == 0)
            found = &scan->mistakes[i];
    }
    return found;
}

static int refuse_foreign(struct scan *scan, const struct foreign *foreign, const char *typed,
                          const char *const values[2])
{
    static const char *const none[2] = {NULL, NULL};
    struct buf text AUTO_BUF = BUF_INIT(VALUE_MAX);
    struct mistake *mistake = same_advice(scan, foreign);
    scan->rewritten = foreign->kind != FOREIGN_LINE;
    rewrite_foreign(&scan->out->rewrite, foreign, values);
    scan->lost = foreign->kind == FOREIGN_PROGRAM;
    if (mistake == NULL)
        mistake = mistake_add(scan);
    mistake->foreign = foreign;
    buf_printf(&mistake->names, "%s%s", mistake->count++ > 0 ? ", " : "", typed);
    bool several = mistake->count > 1;
    foreign_refuse(foreign, buf_text(&mistake->names), several, several ? none : values, &text);
    mem_replace(&mistake->text, buf_text(&text));
    return 0;
}

/* `value`: that of WORD=VALUE or of -n4; NULL: the values are the next words. */
static int take_foreign(struct scan *scan, const struct foreign *foreign, const char *typed,
                        const char *value, struct error *err)
{
    int wanted = foreign_values(foreign), got = value != NULL;
    const char *values[2] = {value, NULL};
    bool fixed = foreign->arg[0] == '[';
    while (got < wanted && (value == NULL || got > 0)) {
        values[got] = next_value(scan);
        if (values[got] == NULL)
            break;
        got++;
    }
    if (foreign_is_idle(foreign, values)) {
        scan->rewritten = true; /* by nothing */
        return 0;
    }
    if (foreign->kind == FOREIGN_HINT || foreign->kind == FOREIGN_PROGRAM ||
        foreign->kind == FOREIGN_LINE)
        return refuse_foreign(scan, foreign, typed, values);
    if (got < wanted)
        return missing_value(typed, foreign->arg, err);
    if (got > wanted && !(fixed && strncmp(foreign->arg + 2, value, strlen(value)) == 0))
        return unwanted_value(typed, value, err);
    if (foreign_is_dropped(foreign, values))
        return drop_foreign(scan, foreign, typed, values[0]);
    return foreign->kind == FOREIGN_SETS ? set_foreign(scan, foreign, typed, values, err) : 0;
}

/* The length of the option in "-n4": one dash, letters, and a number, which is its value. 0: it is
 * another word. */
static size_t attached_number(const char *word)
{
    struct spelling spelling;
    size_t length = strcspn(word, "0123456789");
    size_t digits = strspn(word + length, "0123456789");
    if (word[0] != '-' || word[1] == '-' || length < 2 || digits == 0 ||
        word[length + digits] != '\0')
        return 0;
    const struct foreign *foreign = foreign_find(word, length);
    if (foreign != NULL)
        return strcmp(foreign->arg, "N") == 0 ? length : 0;
    bool known = spelling_find(word, length, false, &spelling);
    return known && option_info(spelling.id)->type == OPTION_INT ? length : 0;
}

/* The number of letters in "-vvv". 0: it is another word. */
static size_t count_v(const char *word)
{
    size_t letters = word[0] == '-' ? strspn(word + 1, "v") : 0;
    return word[1 + letters] == '\0' ? letters : 0;
}

/* The option that is the first `length` bytes of `word`, with what follows a '=' or is attached. */
static int scan_named(struct scan *scan, const char *word, size_t length, const char *value,
                      struct error *err)
{
    struct spelling spelling;
    char *typed AUTO_FREE = mem_strndup(word, length);
    const struct foreign *foreign = NULL;
    bool ours = spelling_find(word, length, value != NULL, &spelling);
    if (!ours)
        foreign = foreign_find(word, length);
    rewrite_begin(&scan->out->rewrite, foreign);
    if (!ours)
        return foreign != NULL ? take_foreign(scan, foreign, typed, value, err)
                               : unknown_option(scan, word, length, value, err);
    warn_about(scan, &spelling, typed);
    if (value != NULL && !spelling.takes_value)
        return unwanted_value(typed, value, err);
    if (value == NULL && spelling.fixed == NULL)
        return take_value(scan, spelling.id, mem_strdup(typed), err);
    flag_add(scan, spelling.id, value != NULL ? value : spelling.fixed, mem_strdup(typed));
    return 0;
}

static int scan_option(struct scan *scan, struct error *err)
{
    const char *word = scan->words[scan->at++];
    size_t length = strcspn(word, "="), attached = attached_number(word), letters = count_v(word);
    for (size_t i = 0; i < letters; i++)
        flag_add(scan, OPT_verbose, "yes", mem_strdup("-v"));
    if (letters > 0)
        return 0;
    if (attached > 0)
        return scan_named(scan, word, attached, word + attached, err);
    return scan_named(scan, word, length, word[length] == '=' ? word + length + 1 : NULL, err);
}

static void complain(struct scan *scan, const struct error *wrong, bool rewritten)
{
    mistake_add(scan)->text = mem_strdup(wrong->text);
    scan->out->rewrite.unsure |= !rewritten;
}

/* The first mistake is the error; the others are in out->more. */
static int report_mistakes(struct scan *scan, struct error *err)
{
    for (size_t i = 0; i < scan->mistake_count; i++) {
        struct mistake *mistake = &scan->mistakes[i];
        if (i == 0)
            error_usage(err, "%s", mistake->text);
        else
            strv_add(&scan->out->more, mistake->text);
        buf_destroy(&mistake->names);
        free(mistake->text);
    }
    free(scan->mistakes);
    return scan->mistake_count > 0 ? -1 : 0;
}

/* Reads flags up to the program. */
static void scan_flags(struct scan *scan)
{
    while (scan->at < scan->count && !scan->lost) {
        int begin = scan->at;
        const char *word = scan->words[begin];
        struct error wrong = ERROR_INIT;
        bool dashes = strcmp(word, "--") == 0;
        if (!dashes && (word[0] != '-' || word[1] == '\0'))
            return;
        scan->rewritten = false;
        scan->at += dashes;
        if (!dashes && scan_option(scan, &wrong) < 0)
            complain(scan, &wrong, scan->rewritten);
        for (int i = begin; i < scan->at && !scan->rewritten; i++)
            strv_add(&scan->out->rewrite.words, scan->words[i]);
        scan->dashes = dashes;
        if (dashes)
            return;
    }
}

/* Reads the program's words. Returns whether a ':' ended them. The line of another launcher has
 * all.
 */
static bool scan_program(struct scan *scan)
{
    struct strv *argv = &scan->out->sections[scan->out->count - 1].argv;
    struct rewrite *rewrite = &scan->out->rewrite;
    bool whole =
        scan->dashes || (scan->at < scan->count && features_has_line(scan->words[scan->at]));
    while (scan->at < scan->count) {
        const char *word = scan->words[scan->at++];
        bool ends = !whole && strcmp(word, ":") == 0;
        if (argv->count == 0 && !ends && !scan->lost)
            rewrite_program(rewrite, word);
        else
            strv_add(&rewrite->words, word);
        if (ends)
            return true;
        strv_add(argv, word);
    }
    return false;
}

static void warn_of_dropped(struct scan *scan)
{
    if (scan->dropped.length > 0)
        strv_printf(&scan->out->warnings, "left out, because it has no meaning in hvdrun: %s",
                    buf_text(&scan->dropped));
    buf_destroy(&scan->dropped);
}

static void check_program(struct scan *scan, bool more)
{
    const struct strv *program = &scan->out->sections[scan->out->count - 1].argv;
    struct error wrong = ERROR_INIT;
    bool missing = program->count == 0 && (more || scan->out->count > 1);
    if (missing)
        error_usage(&wrong, "no program %s ':'", more ? "before a" : "after the last");
    else if (program->count > 0 && program->items[0][0] == '\0')
        error_usage(&wrong, "the name of the program is empty");
    if (wrong.text[0] != '\0' && !scan->lost)
        complain(scan, &wrong, false);
}

int flags_scan(int argc, char *const *argv, struct flags *out, struct error *err)
{
    struct scan scan = {
        .words = argv, .count = argc, .at = 1, .out = out, .dropped = BUF_INIT(DROPPED_MAX)};
    bool more = true;
    *out = (struct flags){.count = 0};
    while (more) {
        section_add(out);
        scan_flags(&scan);
        more = scan_program(&scan);
        check_program(&scan, more);
    }
    out->dashes = scan.dashes;
    warn_of_dropped(&scan);
    return report_mistakes(&scan, err);
}

void flag_list_append(struct flag_list *to, struct flag_list *from_take, const char *owner)
{
    size_t count = to->count + from_take->count;
    to->items = mem_resize_array(to->items, count + 1, sizeof(*to->items));
    for (size_t i = 0; i < from_take->count; i++) {
        struct flag *flag = &to->items[to->count++];
        *flag = from_take->items[i];
        char *typed AUTO_FREE = flag->typed;
        flag->typed = mem_printf("%s (%s)", owner, typed);
    }
    from_take->count = 0;
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
    strv_destroy(&flags->more);
    strv_destroy(&flags->rewrite.words);
    *flags = (struct flags){.count = 0};
}
