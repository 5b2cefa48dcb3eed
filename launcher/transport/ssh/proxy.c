/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "io/helpers.h"

#define COMMAND_MAX 8192

struct ssh_proxy {
    struct helpers *helpers;
    int fd;
    pid_t pid; /* 0: it has ended */
    struct stderr_pipe errors;
};

/* The last hop of "a,user@b:22,[c]:2222" is the one that ssh goes to; those before it are
 * its own jump hosts. */
static int jump_argv(const struct ssh_config *config, const char *config_file, struct strv *argv,
                     struct error *err)
{
    const char *jump = config->proxy_jump;
    const char *comma = strrchr(jump, ',');
    const char *last = comma == NULL ? jump : comma + 1;
    if (last[0] == '\0' || last[0] == '-' || jump[0] == '-')
        return error_set(err, "cannot use ProxyJump %s: it names no host", jump);
    strv_add(argv, "ssh");
    if (config_file != NULL) {
        strv_add(argv, "-F");
        strv_add(argv, config_file);
    }
    strv_add(argv, "-oBatchMode=yes");
    strv_add(argv, "-oClearAllForwardings=yes");
    if (comma != NULL) {
        strv_add(argv, "-J");
        strv_add_n(argv, jump, (size_t)(comma - jump));
    }
    strv_add(argv, "-W");
    strv_printf(argv, "[%s]:%d", config->host_name, config->port);
    strv_add(argv, "--");
    if (strncmp(last, "ssh://", 6) == 0 || strchr(last, ':') == NULL)
        strv_add(argv, last);
    else
        strv_printf(argv, "ssh://%s", last);
    return 0;
}

static int fill_token(struct buf *command, char token, const struct ssh_config *config,
                      const char *asked_name)
{
    switch (token) {
    case '%': return buf_putc(command, '%');
    case 'h': return buf_puts(command, config->host_name);
    case 'n': return buf_puts(command, asked_name);
    case 'p': return buf_printf(command, "%d", config->port);
    case 'r': return buf_puts(command, config->user);
    default: return -1;
    }
}

static int command_argv(const struct ssh_config *config, const char *asked_name, struct strv *argv,
                        struct error *err)
{
    struct buf command AUTO_BUF = BUF_INIT(COMMAND_MAX);
    buf_puts(&command, "exec ");
    for (const char *at = config->proxy_command; *at != '\0'; at++) {
        int rc = at[0] == '%' ? fill_token(&command, at[1], config, asked_name)
                              : buf_putc(&command, at[0]);
        if (rc < 0 && at[0] == '%')
            return error_set(err, "ProxyCommand '%s' has a %%-token other than %%h %%n %%p %%r",
                             config->proxy_command);
        if (rc < 0)
            return error_set(err, "ProxyCommand is longer than %d bytes", COMMAND_MAX);
        at += at[0] == '%';
    }
    strv_add(argv, "/bin/sh");
    strv_add(argv, "-c");
    strv_add(argv, buf_text(&command));
    return 0;
}

int ssh_proxy_argv(const struct ssh_config *config, const char *asked_name, const char *config_file,
                   struct strv *argv, struct error *err)
{
    /* They end in a command line (D14). */
    if (!name_is_safe(config->host_name, strlen(config->host_name)) ||
        !name_is_safe(config->user, strlen(config->user)) ||
        !name_is_safe(asked_name, strlen(asked_name)))
        return error_set(err, "a proxy cannot be used for a host or user with such a name");
    if (config->proxy_jump != NULL)
        return jump_argv(config, config_file, argv, err);
    return command_argv(config, asked_name, argv, err);
}

static void exited(void *context, int wait_status)
{
    (void)wait_status; /* the end of its stream is what counts */
    struct ssh_proxy *proxy = context;
    proxy->pid = 0;
}

struct ssh_proxy *ssh_proxy_start(struct loop *loop, struct helpers *helpers, char *const *argv,
                                  struct error *err)
{
    char *path AUTO_FREE = child_find(argv[0], getenv("PATH"), NULL, err);
    if (path == NULL)
        return NULL;
    int ends[2] AUTO_FD_PAIR = {-1, -1};
    struct ssh_proxy *proxy =
        MEM_NEW((struct ssh_proxy){.helpers = helpers, .fd = -1, .errors = STDERR_PIPE_INIT});
    int errors_fd AUTO_FD = stderr_pipe_open(&proxy->errors, loop, NULL, NULL, NULL);
    if (errors_fd < 0 || fd_socketpair(ends) < 0 || fd_nonblock(ends[0]) < 0) {
        error_errno(err, errno, "cannot create the link to the proxy command");
        ssh_proxy_destroy(proxy);
        return NULL;
    }
    const struct child_spec spec = {
        .path = path, .argv = argv, .fds = {ends[1], ends[1], errors_fd}, .keep_fd = -1};
    proxy->pid = helpers_start(helpers, &spec, exited, proxy, err);
    if (proxy->pid < 0) {
        ssh_proxy_destroy(proxy);
        return NULL;
    }
    proxy->fd = ends[0];
    ends[0] = -1;
    return proxy;
}

void ssh_proxy_destroy(struct ssh_proxy *proxy)
{
    if (proxy == NULL)
        return;
    if (proxy->pid > 0)
        helpers_let_go(proxy->helpers, proxy->pid);
    stderr_pipe_close(&proxy->errors);
    fd_close(&proxy->fd);
    free(proxy);
}

int ssh_proxy_fd(const struct ssh_proxy *proxy)
{
    return proxy->fd;
}

const char *ssh_proxy_last_line(struct ssh_proxy *proxy)
{
    stderr_pipe_read(&proxy->errors); /* what it said last may still lie in the pipe */
    stderr_lines_end(&proxy->errors.lines, NULL, NULL);
    return proxy->errors.lines.last;
}

bool ssh_proxy_was_cut(struct ssh_proxy *proxy)
{
    const char *last = ssh_proxy_last_line(proxy);
    return last[0] == '\0' || strstr(last, "kex_exchange_identification") != NULL ||
           strstr(last, "Connection closed by remote host") != NULL;
}
