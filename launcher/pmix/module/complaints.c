/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/module/complaints.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define TEXT_MAX ((size_t)64 << 10)

void complaints_begin(struct complaints *complaints)
{
    complaints->file = memfd_create("pmix-stderr", MFD_CLOEXEC);
    complaints->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (complaints->file >= 0 && complaints->stderr_fd >= 0 &&
        fd_dup2(complaints->file, STDERR_FILENO) >= 0)
        return;
    fd_close(&complaints->file);
    fd_close(&complaints->stderr_fd);
}

void complaints_end(struct complaints *complaints,
                    void (*tell)(const struct server *server, const char *line, size_t length),
                    const struct server *server)
{
    if (complaints->file < 0)
        return;
    fd_dup2(complaints->stderr_fd, STDERR_FILENO);
    fd_close(&complaints->stderr_fd);
    char *text AUTO_FREE = mem_alloc(TEXT_MAX + 1);
    ssize_t got = fd_pread(complaints->file, text, TEXT_MAX, 0);
    fd_close(&complaints->file);
    text[got > 0 ? got : 0] = '\0';
    for (const char *at = text; *at != '\0'; at += *at == '\n') {
        size_t length = strcspn(at, "\n");
        tell(server, at, length);
        at += length;
    }
}
