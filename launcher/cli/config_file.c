/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config_file.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "cli/config_ini.h"
#include "cli/config_yaml.h"
#include "cli/env_options.h"

#define FILE_LIMIT ((size_t)1 << 20)

static int read_config(const char *path, struct buf *bytes, struct error *err)
{
    if (fd_read_file(path, bytes, err) < 0) {
        if (err != NULL)
            err->status = STATUS_USAGE;
        return error_wrap(err, "configuration");
    }
    if (memchr(buf_text(bytes), '\0', bytes->length) != NULL)
        return error_status(err, STATUS_USAGE, "%s is not a text file: it contains a NUL byte",
                            path);
    return 0;
}

int config_file_user(char *const *envp, struct settings *settings, struct error *err)
{
    const char *base = env_value(envp, "XDG_CONFIG_HOME");
    const char *home = env_value(envp, "HOME");
    char *path AUTO_FREE = NULL;
    struct buf bytes AUTO_BUF = BUF_INIT(FILE_LIMIT);
    if (base != NULL && base[0] == '/')
        path = mem_printf("%s/hvdrun/config.ini", base);
    else if (home != NULL && home[0] == '/')
        path = mem_printf("%s/.config/hvdrun/config.ini", home);
    if (path == NULL)
        return 0;
    struct error why = ERROR_INIT;
    if (read_config(path, &bytes, &why) < 0) {
        struct stat info;
        bool is_there = why.errnum != ENOENT && why.errnum != ENOTDIR;
        /* after su or setpriv, HOME may still be the folder of another user */
        if (!is_there || (why.errnum == EACCES && stat(path, &info) < 0))
            return 0;
        if (err != NULL)
            *err = why;
        return -1;
    }
    return config_ini_read(buf_text(&bytes), path, SOURCE_USER_FILE, settings, err);
}

static bool ends_with(const char *path, const char *const *endings)
{
    const char *dot = strrchr(path, '.');
    for (; dot != NULL && *endings != NULL; endings++) {
        if (strcasecmp(dot, *endings) == 0)
            return true;
    }
    return false;
}

/* The first line that is not empty or a comment decides: in YAML it has a ':' before any '=' or
 * '['. */
static bool looks_like_yaml(const char *text)
{
    while (*text != '\0') {
        text += strspn(text, " \t\r\n");
        if (*text != '#' && *text != ';' && *text != '\0') {
            size_t sign = strcspn(text, "[=:\n");
            return text[sign] == ':' || strncmp(text, "---", 3) == 0;
        }
        text += strcspn(text, "\n");
    }
    return false;
}

int config_file_named(const char *path, struct settings *settings, struct error *err)
{
    static const char *const yaml[] = {".yaml", ".yml", NULL};
    static const char *const ini[] = {".ini", ".cfg", ".conf", NULL};
    struct buf bytes AUTO_BUF = BUF_INIT(FILE_LIMIT);
    if (read_config(path, &bytes, err) < 0)
        return -1;
    bool is_yaml = ends_with(path, yaml);
    if (!is_yaml && !ends_with(path, ini))
        is_yaml = looks_like_yaml(buf_text(&bytes));
    if (is_yaml)
        return config_yaml_read(buf_text(&bytes), bytes.length, path, settings, err);
    return config_ini_read(buf_text(&bytes), path, SOURCE_FILE, settings, err);
}
