/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/program_here.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "io/child.h"

char *program_here_text(const char *problem, const char *program, const char *path,
                        const char *wdir)
{
    char *found AUTO_FREE = child_find(program, path, wdir, NULL);
    if (found == NULL)
        return mem_strdup(problem);
    return mem_printf(
        "%s; this machine has %s, but it must be at the same path on every host: copy it "
        "there, or use a shared folder",
        problem, found);
}

char *program_here_problem(const struct job *job, const struct node_link *node, int seat,
                           int status, const char *problem)
{
    const struct app *app = &job->request->apps->items[job->ranks.records[seat].app];
    if (status != STATUS_NOT_FOUND || node->stream.same_machine)
        return mem_strdup(problem);
    const char *wdir = app->wdir != NULL ? app->wdir : job->settings->wdir;
    return program_here_text(problem, app->argv.items[0], getenv("PATH"), wdir);
}
