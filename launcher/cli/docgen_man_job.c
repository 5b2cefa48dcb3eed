/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docgen_man_job.h"

#include "base/status.h"

struct item {
    const char *head, *text; /* for troff */
};

static void put_items(const struct item *items, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(out, ".TP\n\\fB%s\\fR\n%s.\n", items[i].head, items[i].text);
}

#define PUT_ITEMS(items, out) put_items(items, sizeof(items) / sizeof((items)[0]), out)

/* docs/environment.md has all of them. */
static void put_worker_variables(struct buf *out)
{
    static const struct item items[] = {
        {"HVDRUN_RANK\\fR, \\fBRANK\\fR, \\fBHOROVOD_RANK\\fR, \\fBOMPI_COMM_WORLD_RANK",
         "The rank, from 0"},
        {"HVDRUN_SIZE\\fR, \\fBWORLD_SIZE\\fR, \\fBHOROVOD_SIZE\\fR, \\fBOMPI_COMM_WORLD_SIZE",
         "The number of ranks"},
        {"HVDRUN_LOCAL_RANK\\fR, \\fBLOCAL_RANK\\fR, \\fBHOROVOD_LOCAL_RANK\\fR, "
         "\\fBOMPI_COMM_WORLD_LOCAL_RANK",
         "The rank among the workers of the host"},
        {"HVDRUN_LOCAL_SIZE\\fR, \\fBLOCAL_WORLD_SIZE\\fR, \\fBHOROVOD_LOCAL_SIZE\\fR, "
         "\\fBOMPI_COMM_WORLD_LOCAL_SIZE",
         "The number of workers of the host"},
        {"HVDRUN_HOSTNAME", "The name of the host, as in the plan"},
        {"HVDRUN_JOB_ID", "The name of the job, for \\fBhvdrun status\\fR"},
        {"HVDRUN_EPOCH\\fR, \\fBHVDRUN_SLOT",
         "In an elastic job: the epoch in which the worker started, and its slot on the host"},
        {"HVDRUN_DEADLINE_FILE",
         "A file that appears when the worker's time is limited. It has one line: the time in "
         "seconds\nsince 1970, a blank, and the reason"},
        {"HVDRUN_PROGRESS_FILE",
         "A file for the worker's progress, in one line: percent, seconds that are left, text"},
        {"MASTER_ADDR\\fR, \\fBMASTER_PORT", "The host of rank 0, and a free port there"},
        {"OMP_NUM_THREADS", "The CPUs of the host, divided among its workers, unless it is set"},
    };
    buf_puts(out, ".SH \"VARIABLES OF THE WORKERS\"\n"
                  "Each worker gets the environment of hvdrun, what \\fB\\-x\\fR adds, and "
                  "variables such as these:\n");
    PUT_ITEMS(items, out);
}

/* docs/signals.md */
static void put_signals(struct buf *out)
{
    static const struct item items[] = {
        {"INT\\fR, \\fBTERM\\fR, \\fBHUP\\fR, \\fBQUIT",
         "The workers get the same signal and have 30 s (\\fB\\-\\-grace\\fR) to end; then hvdrun "
         "kills them.\nThe second of these signals sends them TERM, and the third kills them"},
        {"USR1\\fR, \\fBUSR2",
         "hvdrun passes the signal on to the workers, and the job continues. In a Slurm job, USR1 "
         "also warns of\nthe job's end (\\fB\\-\\-warn\\-signal\\fR)"},
        {"TSTP\\fR, \\fBCONT",
         "hvdrun stops the workers, then itself; CONT lets the workers continue, and the time "
         "limits too"},
        {"WINCH", "The worker with \\fB\\-\\-pty\\fR gets the new size of the terminal"},
    };
    buf_puts(out, ".SH SIGNALS\n"
                  "A signal to hvdrun goes to the whole process group of each worker. hvdrun "
                  "ignores signals that are ignored\nwhen it starts, as under \\fBnohup\\fR(1). "
                  "\\fB\\-\\-map\\-signal\\fR sends the workers another signal.\n");
    PUT_ITEMS(items, out);
}

static void put_status(struct buf *out)
{
    static const struct {
        int value;
        const char *text;
    } statuses[] = {
#define STATUS_ROW(name, number, meaning) {number, meaning},
        STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
    };
    static const struct item first[] = {
        {"0", "Every rank exited with 0"},
        {"1\\fR to \\fB255", "The exit code of the rank that failed first"},
    };
    static const struct item last[] = {
        {"128 + n", "Signal n ended the rank that failed first, or you ended the job with it: 130 "
                    "is Ctrl\\-C, "
                    "143 is TERM"},
        {"141", "The reader of the standard output has gone, as in \\fBhvdrun ... | head \\-1\\fR"},
    };
    buf_puts(out, ".SH \"EXIT STATUS\"\n"
                  "A program can itself exit with a status that has a meaning for hvdrun. The last "
                  "lines of the standard\nerror, or \\fBcause.kind\\fR in the report, then say "
                  "which of the two chose it.\n");
    PUT_ITEMS(first, out);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        buf_printf(out, ".TP\n\\fB%d\\fR\n", statuses[i].value);
        for (const char *at = statuses[i].text; *at != '\0'; at++) {
            if (*at == '\'')
                buf_puts(out, "\\(aq");
            else
                buf_printf(out, "%s%c", *at == '-' ? "\\" : "", *at);
        }
        buf_puts(out, ".\n");
    }
    PUT_ITEMS(last, out);
}

void docgen_man_job(struct buf *out)
{
    put_worker_variables(out);
    put_signals(out);
    put_status(out);
}
