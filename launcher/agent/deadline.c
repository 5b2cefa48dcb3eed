/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/deadline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/plain.h"

void deadline_set(struct deadline *deadline, int64_t now_ms, int64_t within_ms, const char *why)
{
    deadline_clear(deadline);
    *deadline = (struct deadline){true, now_ms + within_ms, mem_strdup(why)};
    plain_line(deadline->why, ' ');
}

void deadline_clear(struct deadline *deadline)
{
    free(deadline->why);
    *deadline = (struct deadline){.is_set = false};
}

static int write_file(const char *path, const char *text)
{
    int fd = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    int result = fd_write_all(fd, text, strlen(text));
    fd_close(&fd);
    return result;
}

void deadline_write(const struct deadline *deadline, const char *folder, const struct log *log)
{
    if (folder == NULL)
        return;
    char *path AUTO_FREE = mem_printf("%s/" DEADLINE_FILE_NAME, folder);
    if (!deadline->is_set) {
        unlink(path);
        return;
    }
    char *draft AUTO_FREE = mem_printf("%s/." DEADLINE_FILE_NAME, folder);
    char *text AUTO_FREE = mem_printf("%" PRId64 ".%03d %s\n", deadline->at_ms / 1000,
                                      (int)(deadline->at_ms % 1000), deadline->why);
    if (write_file(draft, text) == 0 && rename(draft, path) == 0)
        return;
    log_warning(log, "cannot write the deadline of this host for the workers: %s: %s", path,
                strerror(errno));
    unlink(draft);
}
