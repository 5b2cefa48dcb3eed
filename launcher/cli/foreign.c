/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/foreign.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/strv.h"
#include "base/text.h"

#define TEXT_MAX 1024

const struct foreign foreign_table[] = {
#define FOREIGN_SET(who, spellings, values, field, template, without, note) \
    {.kind = FOREIGN_SETS,                                                  \
     .launchers = (who),                                                    \
     .words = (spellings),                                                  \
     .arg = (values),                                                       \
     .id = OPT_##field,                                                     \
     .value = (template),                                                   \
     .idle = (without),                                                     \
     .text = (note)},
#define FOREIGN_ROW(which, who, spellings, values, without, template, about) \
    {.kind = (which),                                                        \
     .launchers = (who),                                                     \
     .words = (spellings),                                                   \
     .arg = (values),                                                        \
     .id = OPT_TOTAL,                                                        \
     .idle = (without),                                                      \
     .instead = (template),                                                  \
     .text = (about)},
#define FOREIGN_DONE(who, spellings, values) \
    FOREIGN_ROW(FOREIGN_DONE, who, spellings, values, "", NULL, "")
#define FOREIGN_DROP(who, spellings, values, why) \
    FOREIGN_ROW(FOREIGN_DROP, who, spellings, values, "", NULL, why)
#define FOREIGN_HINT(who, spellings, values, without, template, advice) \
    FOREIGN_ROW(FOREIGN_HINT, who, spellings, values, without, template, advice)
#define FOREIGN_PROGRAM(who, spellings, values, template, advice) \
    FOREIGN_ROW(FOREIGN_PROGRAM, who, spellings, values, "", template, advice)
#define FOREIGN_LINE(who, spellings, values, without, launcher)          \
    FOREIGN_ROW(FOREIGN_LINE, who, spellings, values, without, launcher, \
                "write `hvdrun " launcher "` in front of its line")
#define FOREIGN_SAME(who, spellings) FOREIGN_ROW(FOREIGN_SAME, who, spellings, "", "", NULL, "")
#define FOREIGN_OTHER(who, spellings, values, meaning) \
    FOREIGN_ROW(FOREIGN_OTHER, who, spellings, values, "", NULL, meaning)
#include "cli/foreign.def"
    {.words = NULL},
};

const struct foreign *foreign_find(const char *word, size_t length)
{
    for (const struct foreign *foreign = foreign_table; foreign->words != NULL; foreign++) {
        bool ours = foreign->kind == FOREIGN_SAME || foreign->kind == FOREIGN_OTHER;
        if (!ours && text_lists(foreign->words, word, length))
            return foreign;
    }
    return NULL;
}

int foreign_values(const struct foreign *foreign)
{
    if (foreign->arg[0] == '\0' || foreign->arg[0] == '[')
        return 0;
    return strchr(foreign->arg, ' ') == NULL ? 1 : 2;
}

/* The name of value 1 or 2 in `arg`. */
static void put_name(const struct foreign *foreign, int number, struct buf *out)
{
    const char *name = foreign->arg + (number == 2 ? strcspn(foreign->arg, " ") + 1 : 0);
    (void)buf_append(out, name, strcspn(name, " "));
}

void foreign_fill(const struct foreign *foreign, const char *template, const char *const values[2],
                  struct buf *out)
{
    for (; *template != '\0'; template ++) {
        bool place = template[0] == '$' && (template[1] == '1' || template[1] == '2');
        if (!place) {
            (void)buf_putc(out, *template);
            continue;
        }
        template ++;
        int number = *template - '0';
        if (values[number - 1] != NULL)
            (void)buf_puts(out, values[number - 1]);
        else
            put_name(foreign, number, out);
    }
}

bool foreign_is_idle(const struct foreign *foreign, const char *const values[2])
{
    return values[0] != NULL && values[0][0] != '\0' &&
           text_lists(foreign->idle, values[0], strlen(values[0]));
}

/* The parts of Open MPI that start a job, which hvdrun does itself. */
static bool is_for_mpirun(const char *parameter)
{
    static const char parts[] = "plm oob ras rmaps orte odls ess routed grpcomm rml iof filem "
                                "state errmgr schizo rtc regx prte prrte";
    size_t length = strcspn(parameter, "_");
    return length > 0 && text_lists(parts, parameter, length);
}

bool foreign_is_dropped(const struct foreign *foreign, const char *const values[2])
{
    bool mca = foreign->kind == FOREIGN_SETS && strncmp(foreign->value, "OMPI_MCA_", 9) == 0;
    return foreign->kind == FOREIGN_DROP || (mca && is_for_mpirun(values[0]));
}

int foreign_value(const struct foreign *foreign, const char *const values[2], struct buf *out,
                  struct error *err)
{
    int64_t number;
    bool inside = strcmp(foreign->arg, "N") == 0 && strcmp(foreign->value, "$1") != 0;
    if (inside && parse_int(values[0], 1, INT32_MAX, &number, err) < 0)
        return -1;
    foreign_fill(foreign, foreign->value, values, out);
    return 0;
}

/* "mpirun and srun" */
static void put_launchers(unsigned launchers, struct buf *out)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{MPIRUN, "mpirun"},     {MPIEXEC, "mpiexec"},     {SRUN, "srun"},
                 {TORCHRUN, "torchrun"}, {DEEPSPEED, "deepspeed"}, {ACCELERATE, "accelerate"}};
    size_t count = sizeof(names) / sizeof(names[0]), shown = 0, total = 0;
    for (size_t i = 0; i < count; i++)
        total += (launchers & names[i].bit) != 0;
    for (size_t i = 0; i < count; i++) {
        if ((launchers & names[i].bit) == 0)
            continue;
        shown++;
        (void)buf_printf(out, "%s%s",
                         shown == 1       ? ""
                         : shown == total ? " and "
                                          : ", ",
                         names[i].name);
    }
}

void foreign_text(const struct foreign *foreign, struct buf *out)
{
    for (const char *at = foreign->text; *at != '\0'; at++) {
        if (*at != '`')
            (void)buf_putc(out, *at);
    }
}

void foreign_refuse(const struct foreign *foreign, const char *typed, bool several,
                    const char *const values[2], struct buf *out)
{
    struct buf plain AUTO_BUF = BUF_INIT(TEXT_MAX);
    (void)buf_printf(out, several ? "%s are options of " : "%s is an option of ", typed);
    put_launchers(foreign->launchers, out);
    (void)buf_puts(out, ": ");
    foreign_text(foreign, &plain);
    foreign_fill(foreign, buf_text(&plain), values, out);
}

/* The command line as hvdrun wants it. */

#define WORD_MAX ((size_t)1 << 16)
#define SCRIPT_LAUNCHERS (TORCHRUN | DEEPSPEED | ACCELERATE)

void rewrite_begin(struct rewrite *rewrite, const struct foreign *foreign)
{
    bool of_line = foreign != NULL && (foreign->launchers & SCRIPT_LAUNCHERS) != 0;
    if (of_line && !rewrite->has_line) {
        rewrite->has_line = true;
        rewrite->line_at = rewrite->words.count;
    }
    rewrite->mixed |= rewrite->has_line && !of_line;
}

void rewrite_foreign(struct rewrite *rewrite, const struct foreign *foreign,
                     const char *const values[2])
{
    if (foreign->kind == FOREIGN_LINE) {
        rewrite->unsure |= rewrite->line != NULL && strcmp(rewrite->line, foreign->instead) != 0;
        rewrite->line = foreign->instead;
        rewrite->foreign = true;
        return;
    }
    bool number = strcmp(foreign->arg, "N") == 0;
    rewrite->mixed |= foreign->kind == FOREIGN_PROGRAM;
    bool known = foreign->instead != NULL && (foreign_values(foreign) == 0 || values[0] != NULL);
    known = known && !(number && values[0][strspn(values[0], "0123456789")] != '\0');
    rewrite->foreign = true;
    rewrite->scripts = rewrite->scripts || (foreign->launchers & SCRIPT_LAUNCHERS) != 0;
    rewrite->unsure = rewrite->unsure || !known;
    for (const char *at = known ? foreign->instead : ""; *at != '\0'; at = text_behind(at, ' ')) {
        struct buf word AUTO_BUF = BUF_INIT(WORD_MAX);
        char *template AUTO_FREE = mem_strndup(at, strcspn(at, " "));
        foreign_fill(foreign, template, values, &word);
        strv_add(&rewrite->words, buf_text(&word));
    }
}

void rewrite_program(struct rewrite *rewrite, const char *word)
{
    size_t length = strlen(word);
    if (rewrite->scripts && rewrite->line == NULL && length > 3 &&
        strcmp(word + length - 3, ".py") == 0)
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
    if (rewrite->unsure || !rewrite->foreign || (rewrite->line != NULL && rewrite->mixed))
        return false;
    buf_puts(out, "hvdrun");
    for (size_t i = 0; i < rewrite->words.count; i++) {
        if (rewrite->line != NULL && i == rewrite->line_at)
            buf_printf(out, " %s", rewrite->line);
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
