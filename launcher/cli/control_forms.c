/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_forms.h"

#include <string.h>

#define IN(command) (1u << CONTROL_##command)
#define CONTROL_EVERY ((1u << CONTROL_COMMANDS) - 1)

const struct control_form control_forms[CONTROL_COMMANDS] = {
#define CONTROL_ROW(name, word, operands, help) [name] = {word, operands, help},
    CONTROL_COMMAND_LIST(CONTROL_ROW)
#undef CONTROL_ROW
};

const struct control_option_form control_option_forms[CONTROL_OPTIONS] = {
#define CONTROL_ROW(name, word, letter, value, commands, help) \
    [CONTROL_OPTION_##name] = {word, letter, value, commands, help},
    CONTROL_OPTION_LIST(CONTROL_ROW)
#undef CONTROL_ROW
};

const struct control_form tool_forms[] = {
#define TOOL(feature, word, run, operands, help) {word, operands, help},
#include "cli/tools.def"
    {NULL, NULL, NULL},
};

const struct control_form *tool_find(const char *word)
{
    const struct control_form *tool = tool_forms;
    while (tool->word != NULL && strcmp(tool->word, word) != 0)
        tool++;
    return tool->word == NULL ? NULL : tool;
}

bool control_takes_option(enum control_command command, enum control_option option)
{
    return (control_option_forms[option].commands & 1u << command) != 0;
}

bool control_takes_job(enum control_command command)
{
    return strncmp(control_forms[command].operands, "[JOB]", 5) == 0;
}

enum control_option control_find_option(enum control_command command, const char *word,
                                        size_t length)
{
    int option = 0;
    for (; option < CONTROL_OPTIONS; option++) {
        const char *const spellings[] = {control_option_forms[option].word,
                                         control_option_forms[option].letter};
        for (size_t i = 0; i < 2; i++) {
            if (length > 0 && strlen(spellings[i]) == length &&
                memcmp(spellings[i], word, length) == 0 &&
                control_takes_option(command, (enum control_option)option))
                return (enum control_option)option;
        }
    }
    return CONTROL_OPTIONS;
}

void control_put_usage(enum control_command command, struct buf *out)
{
    const struct control_form *form = &control_forms[command];
    buf_printf(out, "%s%s%s", form->word, form->operands[0] != '\0' ? " " : "", form->operands);
    for (int i = 0; i < CONTROL_OPTION_SLURM_JOB; i++) {
        const struct control_option_form *option = &control_option_forms[i];
        bool same = i == CONTROL_OPTION_JOB && control_takes_job(command);
        if (!same && control_takes_option(command, (enum control_option)i))
            buf_printf(out, " [%s%s%s]", option->word, option->value[0] != '\0' ? " " : "",
                       option->value);
    }
    if (command == CONTROL_SHELL)
        buf_puts(out, " [-- COMMAND...]");
}
