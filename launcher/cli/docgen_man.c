/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page, with only those man macros that both groff and mandoc understand. */
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/status.h"
#include "cli/spelling.h"
#include "cli/texts.h"
#include "model/settings/option.h"

/* The sections of the manual page about a job: variables of the workers, signals, exit status. */

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
        {"WINCH", "The worker with \\fB\\-\\-pty\\fR RANK gets the new size of the terminal"},
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

static void docgen_man_job(struct buf *out)
{
    put_worker_variables(out);
    put_signals(out);
    put_status(out);
}

/* The page. */

/* Appends text for troff, so that no character of it is a command. */
static void put_text(const char *text, struct buf *out)
{
    if (*text == '.' || *text == '\'')
        buf_puts(out, "\\&");
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '\\': buf_puts(out, "\\e"); break;
        case '-': buf_puts(out, "\\-"); break;
        case '\'': buf_puts(out, "\\(aq"); break;
        case '^': buf_puts(out, "\\(ha"); break;
        case '~': buf_puts(out, "\\(ti"); break;
        case '`': buf_puts(out, "\\(ga"); break;
        default: buf_putc(out, *text);
        }
    }
}

static void put_line(const char *text, struct buf *out)
{
    put_text(text, out);
    buf_putc(out, '\n');
}

static void put_item(const char *head, struct buf *out)
{
    buf_puts(out, ".TP\n\\fB");
    put_text(head, out);
    buf_puts(out, "\\fR\n");
}

static void put_option(enum option_id id, struct buf *out)
{
    struct buf head AUTO_BUF = BUF_INIT(256), text AUTO_BUF = BUF_INIT(1024);
    describe_spellings(id, true, &head);
    describe_help(id, &text);
    put_item(buf_text(&head), out);
    buf_putc(&text, '.');
    put_line(buf_text(&text), out);
    const struct option_fixed *fixed = option_fixed(0);
    for (size_t i = 0; fixed != NULL; fixed = option_fixed(++i)) {
        if (fixed->id != id || fixed->help == NULL)
            continue;
        put_item(fixed->spelling, out);
        put_line(fixed->help, out);
    }
}

static void put_options(struct buf *out)
{
    buf_puts(out, ".SH OPTIONS\n");
    for (int group = 0; group < GROUP_TOTAL; group++) {
        buf_printf(out, ".SS \"%s\"\n", option_group_title((enum option_group)group));
        for (int i = 0; i < OPT_TOTAL; i++) {
            if (option_info((enum option_id)i)->group == (enum option_group)group)
                put_option((enum option_id)i, out);
        }
    }
}

static bool has_keys(enum option_group group)
{
    return option_group_section(group) != NULL && group != GROUP_FOREIGN;
}

static bool same_section(enum option_group a, enum option_group b)
{
    return has_keys(a) && has_keys(b) &&
           strcmp(option_group_section(a), option_group_section(b)) == 0;
}

/* Several groups of options can share a section. */
static bool is_first_of_section(enum option_group group)
{
    for (int i = 0; i < (int)group; i++) {
        if (same_section((enum option_group)i, group))
            return false;
    }
    return has_keys(group);
}

static void put_section(enum option_group first, struct buf *out)
{
    buf_printf(out, ".TP\n\\fB[%s]\\fR\n", option_group_section(first));
    for (int i = (int)first; i < GROUP_TOTAL; i++) {
        if (same_section((enum option_group)i, first))
            buf_printf(out, "%s.\n", option_group_title((enum option_group)i));
    }
}

static void put_configuration(struct buf *out)
{
    buf_puts(out, ".SH CONFIGURATION\n"
                  "INI files can also set options, under their long name, in these sections:\n");
    for (int i = 0; i < GROUP_TOTAL; i++) {
        if (is_first_of_section((enum option_group)i))
            put_section((enum option_group)i, out);
    }
    buf_puts(out, ".TP\n\\fB[env]\\fR\nVariables for the workers, NAME = VALUE.\n"
                  ".PP\n.RS 4\n.nf\n[launch]\ntimeout = 2h\n\n[output]\nlabel = %h:%r\n\n"
                  "[env]\nNCCL_DEBUG = WARN\n.fi\n.RE\n.PP\n"
                  "If quotes enclose a whole value, hvdrun removes them and keeps the blanks and "
                  "semicolons inside.\n"
                  "\\fB\\-\\-config\\-file\\fR also accepts a YAML file written for horovodrun.\n"
                  "An unknown key or a wrong value is an error that names the file and the line.\n"
                  ".PP\nPrecedence, lowest first: built\\-in defaults, "
                  "\\(ti/.config/hvdrun/config.ini,\n"
                  "\\fB\\-\\-config\\-file\\fR, HVDRUN_* variables, flags.\n"
                  "\\fB\\-\\-show\\-config\\fR prints the result.\n");
}

static void put_environment(struct buf *out)
{
    buf_puts(out, ".SH ENVIRONMENT\n"
                  "\\fBHVDRUN_\\fINAME\\fR sets the option \\fB\\-\\-\\fINAME\\fR, in capitals and "
                  "with _ for \\-:\n"
                  "\\fBHVDRUN_START_TIMEOUT=2m\\fR. An empty value counts as unset.\n"
                  "A variable overrides the configuration files, and a flag overrides the "
                  "variable.\n"
                  "Workers do not inherit these variables.\n");
    const struct option_other_name *other = option_other_variable(0);
    for (size_t i = 0; other != NULL; other = option_other_variable(++i)) {
        char name[OPTION_NAME_MAX], variable[OPTION_NAME_MAX];
        put_item(other->name, out);
        buf_printf(out, "Another name, which \\fB%s\\fR overrides",
                   option_variable(other->id, variable));
        buf_puts(out, " (option \\fB");
        buf_puts(out, "\\-\\-");
        put_text(option_name(other->id, name), out);
        buf_puts(out, "\\fR).\n");
    }
}

void docgen_man(struct buf *out)
{
    buf_printf(
        out,
        ".\\\" Generated from the list of options.\n"
        ".TH HVDRUN 1 \"\" \"hvdrun %s\" \"User Commands\"\n"
        ".SH NAME\nhvdrun \\- start, watch and end one distributed job\n"
        ".SH SYNOPSIS\n.B hvdrun\n[\\fIoptions\\fR] [\\fB\\-\\-\\fR]\n"
        "\\fIprogram\\fR [\\fIarguments\\fR]\n[\\fB:\\fR [\\fIoptions\\fR] "
        "\\fIprogram\\fR ...]\n"
        ".br\n.B hvdrun\n\\fIcommand\\fR [\\fIoperands\\fR]\n"
        ".SH DESCRIPTION\n"
        "hvdrun starts the workers of a distributed program, watches them, and exits with "
        "the job's true\nstatus. Any program can be a worker: one that uses MPI, Horovod, "
        "torch.distributed or JAX, or\nnone of these.\n.PP\n"
        "Options end at the program or at \\fB\\-\\-\\fR. A separate \\fB:\\fR begins "
        "another program of the same\njob, with its own \\fB\\-np\\fR, \\fB\\-x\\fR and "
        "\\fB\\-\\-wdir\\fR. After \\fB\\-\\-\\fR, \\fB:\\fR is an argument.\n.PP\n"
        "If the program is torchrun, deepspeed or accelerate launch, hvdrun does what the rest "
        "of the line says,\nwithout that program. After \\fB\\-\\-\\fR, it starts it.\n.PP\n"
        "Times are in seconds, or numbers with ms, s, m, h or d.\n",
        HVDRUN_VERSION);
    docgen_control_man(out);
    put_options(out);
    put_configuration(out);
    put_environment(out);
    docgen_man_job(out);
    buf_puts(out, ".SH FILES\n.TP\n.I \\(ti/.config/hvdrun/config.ini\n"
                  "Your options; below \\fB$XDG_CONFIG_HOME\\fR instead if that is set.\n"
                  ".SH EXAMPLES\n"
                  ".TP\n\\fBhvdrun \\-np 4 python train.py\\fR\nFour workers on this machine.\n"
                  ".TP\n\\fBhvdrun \\-np 8 \\-H a:4,b:4 \\-\\-dry\\-run ./train\\fR\n"
                  "Print where each rank would run.\n"
                  ".TP\n\\fBhvdrun \\-np 1 ./server : \\-np 3 ./client\\fR\n"
                  "Two programs in one job.\n"
                  ".TP\n\\fBhvdrun \\-H a:4,b:4 \\-\\-min\\-np 4 ./train\\fR\n"
                  "A job that continues when one of its hosts is lost.\n"
                  ".TP\n\\fBhvdrun drain b \\-\\-within 90s\\fR\n"
                  "Drain host b of this job.\n"
                  ".SH \"SEE ALSO\"\n.BR mpirun (1),\n.BR srun (1)\n");
}
