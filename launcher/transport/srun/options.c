/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/srun/options.h"

#include <ctype.h>
#include <string.h>

static bool is_name(char byte)
{
    return isalnum((unsigned char)byte) || byte == '-' || byte == '_';
}

static bool has(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(text, "--"); at != NULL; at = strstr(at + 1, "--")) {
        bool begins = at == text || !is_name(at[-1]);
        if (begins && strncmp(at + 2, name, length) == 0 && !is_name(at[2 + length]))
            return true;
    }
    return false;
}

bool srun_options_parse(const char *text, struct srun_options *options)
{
    static const char *const names[] = {
#define SRUN_OPTION_NAME(id, name) [id] = (name),
        SRUN_OPTION_LIST(SRUN_OPTION_NAME)
#undef SRUN_OPTION_NAME
    };
    *options = (struct srun_options){.has = {false}};
    if (!has(text, "nodelist"))
        return false;
    for (size_t i = 0; i < SRUN_OPTIONS; i++)
        options->has[i] = has(text, names[i]);
    return true;
}
