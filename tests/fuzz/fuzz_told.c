/* SPDX-License-Identifier: Apache-2.0 */
/* What other programs print: srun, its help, ssh, kubectl; Open MPI's parameter files; the kernel's
 * log, /proc/PID/cgroup. */
#include "base/strv.h"
#include "fuzz.h"
#include "io/helpers.h"
#include "node/cgroup.h"
#include "node/room_test.h"
#include "node/route.h"
#include "transport/boot/inside_test.h"
#include "transport/exec/words.h"
#include "transport/srun/process.h"

static void tell(void *context, const char *line)
{
    (void)context;
    FUZZ_CHECK(strlen(line) <= STDERR_LINE_MAX);
    for (; *line != '\0'; line++)
        FUZZ_CHECK((unsigned char)*line >= ' ' && *line != 0x7f);
}

static void read_lines(const uint8_t *data, size_t size)
{
    struct stderr_lines lines = {.length = 0};
    char line[PRINTABLE_ROOM];
    size_t half = size / 2;
    stderr_lines_feed(&lines, (const char *)data, half, tell, NULL);
    stderr_lines_feed(&lines, (const char *)data + half, size - half, tell, NULL);
    stderr_lines_end(&lines, tell, NULL);
    printable_line((const char *)data, size, line);
    tell(NULL, line);
}

static void read_srun(const char *text)
{
    AUTO_STRV struct strv nodes = STRV_INIT;
    struct srun_options options;
    char line[64];
    srun_options_parse(text, &options);
    srun_complaint_find(text, line, sizeof(line));
    for (const char *at = text; *at != '\0'; at += *at == '\n') {
        size_t length = strcspn(at, "\n");
        char *one AUTO_FREE = mem_strndup(at, length);
        const char *said = srun_complaint_about(one, &nodes);
        FUZZ_CHECK(said == NULL || (said >= one && said <= one + length));
        if (said != NULL)
            srun_complaint_is_node_failure(said);
        srun_complaint_is_end(one);
        at += length;
    }
}

FUZZ_TARGET
{
    char *text AUTO_FREE = fuzz_text(data, size);
    struct exec_complaint complaint;
    if (size > 0)
        read_lines(data, size);
    read_srun(text);
    exec_complaint_find(text, true, &complaint);
    mpi_params_text_chooses_tcp(text);
    oom_victim_in(text);
    free(cgroup_path_in(text, ""));
    free(cgroup_path_in(text, "memory"));
    return 0;
}
