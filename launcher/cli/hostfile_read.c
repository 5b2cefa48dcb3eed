/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/hostfile_read.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/text_file.h"
#include "model/hosts/hostfile.h"

#define HOSTFILE_MAX ((size_t)128 << 20)

int hostfile_read(const char *place, const char *option, int64_t limit_ms, struct host_list *hosts,
                  struct error *err)
{
    struct buf bytes AUTO_BUF = BUF_INIT(HOSTFILE_MAX);
    char *path AUTO_FREE = mem_strdup(place);
    char *mark = strrchr(path, '#');
    const char *group = NULL;
    if (mark != NULL && access(path, F_OK) < 0) {
        *mark = '\0';
        group = mark + 1;
    }
    if (text_file_read(path, limit_ms, &bytes, err) < 0)
        return error_wrap(err, "%s", option);
    const struct hostfile file = {
        .bytes = buf_text(&bytes), .length = bytes.length, .name = path, .group = group};
    return hostfile_parse(&file, hosts, err);
}
