/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sources.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/features.h"
#include "cli/spelling.h"

const char *launcher_line_name(const char *argv0)
{
    const char *name = text_base_name(argv0);
    return features_has_line(name) ? name : NULL;
}

/* The line says the ranks of each host itself, and what was said before it would be lost. */
static int check_ranks_of_hosts(const struct flag_list *before, const struct flag_list *line,
                                const char *launcher, struct error *err)
{
    for (size_t i = 0; i < before->count; i++) {
        for (size_t k = 0; k < line->count && before->items[i].id == OPT_map_by; k++) {
            if (line->items[k].id == OPT_map_by)
                return error_usage(err,
                                   "%s beside the line of %s, which has the ranks of each host: "
                                   "leave it out, and write it behind %s",
                                   before->items[i].typed, launcher, launcher);
        }
    }
    return 0;
}

/* The flags of the line follow those before it. Messages name them as "torchrun (--map-by)", since
 * the user did not type them. */
static int take_line(struct section *section, const char *launcher, struct line *line,
                     struct error *err)
{
    struct flags own;
    struct strv words AUTO_STRV = STRV_INIT;
    strv_add(&words, "hvdrun");
    strv_copy(&words, strv_items(&line->words));
    int rc = flags_scan((int)words.count, words.items, &own, err);
    if (rc == 0)
        rc = check_ranks_of_hosts(&section->flags, &own.sections[0].flags, launcher, err);
    if (rc == 0) {
        flag_list_append(&section->flags, &own.sections[0].flags, launcher);
        strv_destroy(&section->argv);
        section->argv = own.sections[0].argv;
        own.sections[0].argv = (struct strv)STRV_INIT;
    }
    strv_copy(&line->more, strv_items(&own.more));
    strv_copy(&line->warnings, strv_items(&own.warnings));
    flags_destroy(&own);
    return rc;
}

/* A launcher that hvdrun would start once for each rank. */
static void warn_of_launcher(const struct strv *argv, struct strv *warnings)
{
    static const char *const modules[] = {"torch.distributed.run", "torch.distributed.launch",
                                          "accelerate.commands.launch"};
    const char *program = argv->items[0], *name = launcher_line_name(program);
    bool python = argv->count > 2 && strcmp(argv->items[1], "-m") == 0;
    for (size_t i = 0; i < 3 && python && name == NULL; i++) {
        if (strcmp(argv->items[2], modules[i]) == 0)
            name = i < 2 ? "torchrun" : "accelerate launch";
    }
    if (name != NULL)
        strv_printf(
            warnings,
            "most likely, each rank starts ranks of its own: write 'hvdrun %s' in the place of "
            "'hvdrun %s%s%s'",
            name, program, python ? " -m " : "", python ? argv->items[2] : "");
}

/* After mistakes in the line of a launcher. If only options are wrong that hvdrun cannot honour,
 * the rewritten line is that without them. */
static void rewrite_line(struct rewrite *rewrite, size_t typed, const struct line *line)
{
    rewrite->unsure |= line->words.count == 0;
    rewrite->foreign = true;
    for (; typed > 0 && rewrite->words.count > 0; typed--)
        free(rewrite->words.items[--rewrite->words.count]);
    strv_copy(&rewrite->words, strv_items(&line->words));
}

/* Options of hvdrun behind the name of the launcher. */
static void explain_unknown(const char *launcher, struct line *line)
{
    struct spelling spelling;
    for (size_t i = 0; i < line->unknown.count; i++) {
        const char *word = line->unknown.items[i];
        size_t length = strcspn(word, "=");
        if (spelling_find(word, length, word[length] == '=', &spelling))
            strv_printf(&line->more,
                        "%.*s is an option of hvdrun: write it before the launcher, as in hvdrun "
                        "%.*s ... %s ...",
                        (int)length, word, (int)length, word, launcher);
    }
}

int launcher_line_take(struct flags *flags, char *const *envp, struct line *line, struct error *err)
{
    struct section *last = &flags->sections[flags->count - 1];
    char *program AUTO_FREE = last->argv.count == 0 ? NULL : mem_strdup(last->argv.items[0]);
    if (program == NULL || flags->dashes)
        return 0;
    if (!features_has_line(program)) {
        warn_of_launcher(&last->argv, &line->warnings);
        return 0;
    }
    int rc = -1;
    if (flags->count > 1)
        error_usage(err,
                    "a line of %s cannot be one of several programs ('-- %s' starts a program "
                    "named %s)",
                    program, program, program);
    else
        rc = features_line(last->argv.items, envp, line, err);
    if (rc == 0)
        return take_line(last, program, line, err);
    rewrite_line(&flags->rewrite, last->argv.count, line);
    explain_unknown(program, line);
    return -1;
}
