/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/holder.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "io/proc.h"
#include "node/runtime_dir.h"

static char *folder_name(void)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    return mem_printf(".warm-%s", name_is_safe(host, strlen(host)) ? host : "this");
}

int warm_folder_open(struct error *err)
{
    char *name AUTO_FREE = folder_name();
    return runtime_dir_open_kept(name, err);
}

char *warm_folder_path(void)
{
    char *base AUTO_FREE = runtime_dir_base(), *name AUTO_FREE = folder_name();
    return mem_printf("%s/%s", base, name);
}

bool warm_is_locked(int folder, const char *name)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd AUTO_FD = fd_openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool warm_is_ours(int socket, pid_t *pid)
{
    struct ucred peer = {.pid = 0};
    socklen_t length = sizeof(peer);
    bool known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0;
    *pid = peer.pid;
    return known && peer.uid == geteuid();
}

int warm_file(const void *bytes, size_t length)
{
    int fd = memfd_create("hvdrun-warm", MFD_CLOEXEC);
    if (fd >= 0 && (fd_write_all(fd, bytes, length) < 0 || lseek(fd, 0, SEEK_SET) < 0))
        fd_close(&fd);
    return fd;
}

int warm_send(int socket, const struct buf *text, const int *fds, size_t count)
{
    union {
        char bytes[CMSG_SPACE(WARM_FILES_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {(char *)buf_text(text), text->length};
    memset(&control, 0, sizeof(control));
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

int64_t warm_bytes(pid_t pid)
{
    AUTO_BUF struct buf text = BUF_INIT(65536);
    static const char name[] = "\nPss:";
    int64_t kilobytes = 0;
    const char *line =
        proc_read(pid, 0, "smaps_rollup", &text) ? strstr(buf_text(&text), name) : NULL;
    if (line == NULL)
        return 0;
    line += strlen(name);
    line += strspn(line, " ");
    char *number AUTO_FREE = mem_strndup(line, strspn(line, "0123456789"));
    parse_int(number, 0, INT64_MAX / 1024, &kilobytes, NULL);
    return kilobytes * 1024;
}

void fields_put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text) + 1);
}

void fields_put_number(struct buf *out, uint64_t number)
{
    buf_printf(out, "%" PRIu64, number);
    buf_putc(out, '\0');
}

void fields_put_all(struct buf *out, const struct strv *list)
{
    for (size_t i = 0; i < list->count; i++)
        fields_put(out, list->items[i]);
}

void fields_put_list(struct buf *out, const struct strv *list)
{
    fields_put_number(out, list->count);
    fields_put_all(out, list);
}

const char *fields_next(struct field_reader *fields)
{
    const char *field = fields->at;
    size_t left = (size_t)(fields->end - field);
    const char *nul = left == 0 ? NULL : memchr(field, '\0', left);
    fields->at = nul == NULL ? fields->end : nul + 1;
    return nul == NULL ? "" : field;
}

int64_t fields_next_number(struct field_reader *fields)
{
    int64_t number = -1;
    parse_int(fields_next(fields), 0, INT64_MAX, &number, NULL);
    return number;
}

void fields_next_list(struct field_reader *fields, struct strv *out)
{
    for (int64_t count = fields_next_number(fields); count > 0 && fields->at < fields->end; count--)
        strv_add(out, fields_next(fields));
}
