/* SPDX-License-Identifier: Apache-2.0 */
#include "node/mpi_params.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#define FILE_MAX ((size_t)1 << 20)
#define FILE_NAME "openmpi-mca-params.conf"

static bool line_chooses(const char *at, const char *end)
{
    static const char *const names[] = {"btl_tcp_if_include", "btl_tcp_if_exclude"};
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);
        if ((size_t)(end - at) <= length || memcmp(at, names[i], length) != 0)
            continue;
        const char *after = at + length;
        while (after < end && (*after == ' ' || *after == '\t'))
            after++;
        if (after < end && *after == '=')
            return true;
    }
    return false;
}

bool mpi_params_text_chooses_tcp(const char *bytes, size_t length)
{
    const char *end = bytes + length;
    bool chooses = false;
    for (const char *at = bytes; !chooses && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = stop == NULL ? end : stop;
        chooses = line_chooses(at, line_end);
        at = line_end + 1;
    }
    return chooses;
}

static bool file_chooses(const char *path)
{
    struct buf text AUTO_BUF = BUF_INIT(FILE_MAX);
    if (fd_read_file(path, &text, NULL) < 0)
        return false;
    return mpi_params_text_chooses_tcp(buf_text(&text), text.length);
}

/* PREFIX/bin in PATH: an installation that belongs to PREFIX has its files in PREFIX/etc. */
static bool beside_path_chooses(const char *path)
{
    bool chooses = false;
    while (!chooses && path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        if (length > 4 && memcmp(path + length - 4, "/bin", 4) == 0) {
            char *file AUTO_FREE = mem_printf("%.*s/etc/" FILE_NAME, (int)(length - 4), path);
            chooses = file_chooses(file);
        }
        path += length + (path[length] == ':' ? 1 : 0);
    }
    return chooses;
}

bool mpi_params_choose_tcp(const char *home, const char *path)
{
    if (home != NULL) {
        char *file AUTO_FREE = mem_printf("%s/.openmpi/mca-params.conf", home);
        if (file_chooses(file))
            return true;
    }
    if (beside_path_chooses(path))
        return true;
    glob_t found;
    bool chooses = false;
    if (glob("/etc/openmpi*/" FILE_NAME, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc && !chooses; i++)
            chooses = file_chooses(found.gl_pathv[i]);
        globfree(&found);
    }
    return chooses || file_chooses("/etc/" FILE_NAME);
}
