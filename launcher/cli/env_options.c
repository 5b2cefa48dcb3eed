/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/env_options.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/settings/suggest.h"

#define PREFIX "HVDRUN_"

const char *env_value(char *const *envp, const char *name)
{
    size_t length = strlen(name);
    for (; *envp != NULL; envp++) {
        if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=')
            return *envp + length + 1;
    }
    return NULL;
}

static void warn_unknown(const char *name, struct strv *warnings)
{
    struct buf line AUTO_BUF = BUF_INIT(512);
    struct suggest suggest;
    suggest_init(&suggest, name, strlen(name));
    for (int i = 0; i < OPT_TOTAL; i++) {
        char known[OPTION_NAME_MAX];
        if ((option_info((enum option_id)i)->flags & FLAG_CLI) == 0)
            suggest_offer(&suggest, option_variable((enum option_id)i, known));
    }
    buf_printf(&line, "the variable %.100s is not an option of hvdrun", name);
    suggest_append(&suggest, &line);
    strv_add(warnings, buf_text(&line));
}

/* Names of lower precedence (HOROVOD_START_TIMEOUT) go first, so that HVDRUN_ names override them.
 */
static int apply_one(const char *pair, bool ours, struct settings *settings, struct strv *warnings,
                     struct error *err)
{
    size_t length = strcspn(pair, "=");
    bool prefixed = strncmp(pair, PREFIX, strlen(PREFIX)) == 0;
    enum option_id id = option_of_variable(pair, length);
    if (prefixed != ours || pair[length] == '\0' || (id == OPT_TOTAL && !ours))
        return 0;
    char *name AUTO_FREE = mem_strndup(pair, length);
    if (id == OPT_TOTAL) {
        if (!option_variable_is_reserved(pair, length))
            warn_unknown(name, warnings);
        return 0;
    }
    if (pair[length + 1] == '\0')
        return 0;
    if (settings_set(settings, id, pair + length + 1, SOURCE_ENVIRONMENT, name, err) == 0)
        return 0;
    if (err != NULL)
        err->status = STATUS_USAGE;
    return -1;
}

int env_options_apply(char *const *envp, struct settings *settings, struct strv *warnings,
                      struct error *err)
{
    for (int ours = 0; ours <= 1; ours++) {
        for (size_t i = 0; envp[i] != NULL; i++) {
            if (apply_one(envp[i], ours != 0, settings, warnings, err) < 0)
                return -1;
        }
    }
    return 0;
}
