/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the options of --stage before anything starts. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/features.h"
#include "features/stage/stage.h"
#include "features/stage/store.h"

static int check_root(const struct settings *settings, size_t index, struct error *err)
{
    const char *place = settings_item_origin(settings, OPT_stage, index)->place;
    struct stage_root_words words = {.path = NULL};
    struct error why = ERROR_INIT;
    int result = stage_root_parse(settings->stage.items[index], &words, &why);
    if (result < 0)
        error_usage(err, "%s: %s", place, why.text);
    else if (access(words.path, F_OK) < 0) {
        result = error_errno(err, errno, "%s: cannot stage %s", place, words.path);
        err->status = STATUS_USAGE;
    }
    free(words.path);
    free(words.dest);
    return result;
}

int stage_check(const struct settings *settings, struct error *err)
{
    struct stage_keep keep;
    if (settings->stage.count == 0)
        return 0; /* a configuration file may have the others for all jobs */
    if (settings->stage_keep != NULL && stage_keep_parse(settings->stage_keep, &keep, err) < 0)
        return error_wrap(err, "%s", settings_place(settings, OPT_stage_keep));
    if (settings->stage_dir != NULL && settings->stage_dir[0] != '/')
        return error_usage(err, "%s: '%s' is not an absolute path",
                           settings_place(settings, OPT_stage_dir), settings->stage_dir);
    if (settings->stage.count > STAGE_ROOTS_MAX)
        return error_usage(err, "%s: more than %d times", settings_place(settings, OPT_stage),
                           STAGE_ROOTS_MAX);
    for (size_t i = 0; i < settings->stage.count; i++) {
        if (check_root(settings, i, err) < 0)
            return -1;
    }
    return 0;
}
