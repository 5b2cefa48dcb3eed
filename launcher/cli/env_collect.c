/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/env_collect.h"

#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/status.h"
#include "model/env/rank_variables.h"
#include "model/env/scrub.h"

#define FILE_LIMIT ((size_t)1 << 20)

/* A variable that chose the controller. */
static bool is_in_force(const struct settings *settings, const char *text, size_t length)
{
    const char *place = settings_place(settings, OPT_controller);
    return strlen(place) == length && memcmp(place, text, length) == 0;
}

int env_collect(const struct settings *settings, char *const *envp, struct strv *env,
                struct strv *warnings, struct error *err)
{
    for (size_t i = 0; i < settings->env.count; i++) {
        const char *text = settings->env.items[i];
        int found = env_spec_apply(text, envp, env, err);
        if (found < 0)
            return error_wrap(err, "-x");
        size_t length = strcspn(text, "=");
        if (rank_variable_is(text, length, NULL) && !is_in_force(settings, text, length))
            strv_printf(warnings, "-x %.*s has no effect: hvdrun sets it for each worker",
                        (int)length, text);
        else if (found == 0)
            strv_printf(warnings, "-x %s has no effect: the variable is not set", text);
    }
    return 0;
}

static int read_file(const char *path, struct strv *env, struct error *err)
{
    struct buf bytes AUTO_BUF = BUF_INIT(FILE_LIMIT);
    if (fd_read_file(path, &bytes, err) == 0)
        return env_file_parse(buf_text(&bytes), bytes.length, path, env, err);
    error_wrap(err, "--env-file");
    if (err != NULL)
        err->status = STATUS_USAGE;
    return -1;
}

int env_collect_job(struct settings *settings, char *const *envp, struct strv *warnings,
                    struct error *err)
{
    struct strv env AUTO_STRV = STRV_INIT;
    for (size_t i = 0; i < settings->env_file.count; i++) {
        if (read_file(settings->env_file.items[i], &env, err) < 0)
            return -1;
    }
    if (env_collect(settings, envp, &env, warnings, err) < 0)
        return -1;
    strv_destroy(&settings->env);
    settings->env = env;
    env = (struct strv)STRV_INIT;
    return 0;
}
