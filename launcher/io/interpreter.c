/* SPDX-License-Identifier: Apache-2.0 */
#include "io/interpreter.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"

#define FIRST_BYTES 256        /* Linux reads no more to find the kind of a program */
#define FIRST_BYTES_OF_ALL 128 /* before 5.1 */

static size_t read_file(void *context, uint64_t offset, void *out, size_t length)
{
    const int *fd = context;
    ssize_t got = fd_pread(*fd, out, length, (off_t)offset);
    return got > 0 ? (size_t)got : 0;
}

/* The name between "#!" and the next blank, or NULL. */
static char *name_in_script(const char *line, size_t length)
{
    const char *end = memchr(line, '\n', length);
    length = end != NULL ? (size_t)(end - line) : length;
    size_t at = 2;
    while (at < length && (line[at] == ' ' || line[at] == '\t'))
        at++;
    size_t begin = at;
    while (at < length && line[at] != ' ' && line[at] != '\t' && line[at] != '\0')
        at++;
    return at > begin ? mem_strndup(line + begin, at - begin) : NULL;
}

/* Returns the name, which the caller frees, or NULL: it names none. */
static char *interpreter_name(int fd, bool *script)
{
    char line[FIRST_BYTES];
    ssize_t got = fd_pread(fd, line, sizeof(line), 0);
    *script = got > 2 && line[0] == '#' && line[1] == '!';
    if (*script)
        return name_in_script(line, (size_t)got);
    struct elf_info info;
    const struct elf_source source = {.read = read_file, .context = &fd};
    if (elf_read(&source, &info) < 0)
        return NULL;
    char *name = mem_strdup(info.interpreter);
    elf_info_destroy(&info);
    return name;
}

static bool is_usable(const char *name, const char *wdir)
{
    bool relative = name[0] != '/' && wdir != NULL;
    char *path AUTO_FREE = relative ? mem_printf("%s/%s", wdir, name) : mem_strdup(name);
    return access(path, X_OK) == 0;
}

static int say_return(const char *path, const char *name, struct error *err)
{
    return error_set(err,
                     "cannot execute %s: its first line ends with a carriage return, as text files "
                     "of Windows do, so the system looks for '%s\\r' instead of %s; remove the "
                     "carriage returns with sed -i 's/\\r$//' '%s'",
                     path, name, name, path);
}

static int say(const char *path, char *name, bool script, int errnum, struct error *err)
{
    size_t length = strlen(name);
    if (script && name[length - 1] == '\r') {
        name[length - 1] = '\0';
        say_return(path, name, err);
    } else if (script) {
        error_errno(err, errnum, "cannot execute %s: its first line names the interpreter %s", path,
                    name);
    } else {
        error_errno(err, errnum,
                    "cannot execute %s: it was built for another system and needs the loader %s",
                    path, name);
    }
    if (err != NULL)
        err->errnum = errnum;
    return -1;
}

int interpreter_explain(const char *path, const char *wdir, int errnum, struct error *err)
{
    bool script = false;
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    char *name AUTO_FREE = fd < 0 ? NULL : interpreter_name(fd, &script);
    if (name == NULL || is_usable(name, wdir))
        return 0;
    return say(path, name, script, errnum, err);
}

char *interpreter_line(const char *path)
{
    char line[FIRST_BYTES_OF_ALL];
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    ssize_t got = fd < 0 ? -1 : fd_pread(fd, line, sizeof(line), 0);
    const char *end = got > 2 ? memchr(line, '\n', (size_t)got) : NULL;
    if (end == NULL || strncmp(line, "#!", 2) != 0)
        return NULL;
    const char *begin = line + 2;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return mem_strndup(begin, (size_t)(end - begin));
}

int interpreter_check_env(const char *path, struct error *err)
{
    static const char env[] = "/env ";
    char line[FIRST_BYTES + 1];
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    ssize_t got = fd < 0 ? -1 : fd_pread(fd, line, FIRST_BYTES, 0);
    line[got > 0 ? got : 0] = '\0';
    char *end = strchr(line, '\n');
    const char *name = strstr(line, env);
    if (strncmp(line, "#!", 2) != 0 || end == NULL || end[-1] != '\r' || name == NULL || name > end)
        return 0;
    end[-1] = '\0';
    name = strrchr(name, ' ') + 1;
    say_return(path, name, err);
    if (err != NULL)
        err->status = STATUS_NOT_FOUND;
    return -1;
}
