/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/texts.h"

#include <ctype.h>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/cli_test.h"
#include "cli/control_words.h"
#include "cli/features.h"
#include "cli/first_word.h"
#include "cli/spelling.h"
#include "model/settings/option.h"

/* Parts of a help text. Lines have at most 79 columns, unless a word is longer. */

#define WIDTH 79
#define INDENT 28 /* where the explanations start */

/* Writes the words of `text` from the column `indent` on, and breaks lines at blanks. */
static void put_wrapped(const char *text, size_t indent, struct buf *out)
{
    size_t column = indent;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        bool fresh = column == indent;
        if (!fresh && column + 1 + length > WIDTH) {
            buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
            fresh = true;
        }
        buf_printf(out, "%s%.*s", fresh ? "" : " ", (int)length, text);
        column += length + (fresh ? 0 : 1);
        text += length;
        text += strspn(text, " ");
    }
    buf_putc(out, '\n');
}

/* An option or a command on the left, what it does on the right, or below if there is no room. */
static void put_item(const char *head, const char *text, struct buf *out)
{
    size_t length = strlen(head);
    if (length + 4 <= INDENT)
        buf_printf(out, "  %-*s", INDENT - 2, head);
    else
        buf_printf(out, "  %s\n%*s", head, INDENT, "");
    put_wrapped(text, INDENT, out);
}

/* `hvdrun logs --help`, `hvdrun help logs`. */

static void put_control_option(const struct control_option_form *option, struct buf *out)
{
    struct buf head AUTO_BUF = BUF_INIT(128);
    buf_printf(&head, "%s%s%s%s%s", option->letter, option->letter[0] != '\0' ? ", " : "",
               option->word, option->value[0] != '\0' ? " " : "", option->value);
    put_item(buf_text(&head), option->help, out);
}

static bool has_time(enum control_command command)
{
    bool has = false;
    for (int i = 0; i < CONTROL_OPTIONS; i++)
        has = has || (control_takes_option(command, (enum control_option)i) &&
                      strcmp(control_option_forms[i].value, "TIME") == 0);
    return has;
}

/* What the command is about if JOB is missing. */
static const char *default_job(enum control_command command)
{
    switch (command) {
    case CONTROL_EXPLAIN: return "the job that ended last";
    case CONTROL_LOGS: return "your only running job, or the job that ended last";
    default: return "your only running job";
    }
}

static void put_notes(enum control_command command, struct buf *out)
{
    bool awaits = command == CONTROL_WAIT || command == CONTROL_ATTACH;
    buf_putc(out, '\n');
    if (control_takes_option(command, CONTROL_OPTION_JOB)) {
        char *job AUTO_FREE =
            mem_printf("JOB is " CONTROL_JOB ". The default is %s.", default_job(command));
        put_wrapped(job, 0, out);
    }
    if (command == CONTROL_SIGNAL)
        put_wrapped("SIGNAL is a name such as USR1, or a number.", 0, out);
    if (has_time(command))
        put_wrapped("TIME is in seconds, or 250ms, 5m, 2h.", 0, out);
    put_wrapped(awaits ? "Exit status: that of the job; 125 if it does not exist or is lost; 2 "
                         "for an error in the command line."
                : command == CONTROL_WARM
                    ? "Exit status: 0; 1 if that is not possible; 2 for an "
                      "error in the command line."
                    : "Exit status: 0; 1 if the job does not exist or refuses; 2 for an "
                      "error in the command line.",
                0, out);
}

void control_help(enum control_command command, struct buf *out)
{
    const struct control_form *form = &control_forms[command];
    char *about AUTO_FREE = mem_printf("%s.", form->help);
    buf_printf(out, "Usage: hvdrun %s [OPTIONS]%s%s\n", form->word,
               form->operands[0] != '\0' ? " " : "", form->operands);
    put_wrapped(about, 0, out);
    buf_putc(out, '\n');
    for (int i = 0; i < CONTROL_OPTIONS; i++) {
        if (control_takes_option(command, (enum control_option)i))
            put_control_option(&control_option_forms[i], out);
    }
    put_notes(command, out);
}

/* `hvdrun --help`. */

static void put_option(enum option_id id, struct buf *out)
{
    struct buf head AUTO_BUF = BUF_INIT(256), text AUTO_BUF = BUF_INIT(1024);
    describe_spellings(id, false, &head);
    describe_help(id, &text);
    put_item(buf_text(&head), buf_text(&text), out);
    const struct option_fixed *fixed = option_fixed(0);
    for (size_t i = 0; fixed != NULL; fixed = option_fixed(++i)) {
        if (fixed->id == id && fixed->help != NULL)
            put_item(fixed->spelling, fixed->help, out);
    }
}

static void put_group(enum option_group group, struct buf *out)
{
    const char *section = option_group_section(group);
    bool foreign = group == GROUP_FOREIGN;
    buf_printf(out, "\n%s", option_group_title(group));
    if (section != NULL && !foreign)
        buf_printf(out, "  [%s]", section);
    buf_putc(out, '\n');
    for (int i = 0; i < OPT_TOTAL; i++) {
        if (option_info((enum option_id)i)->group == group)
            put_option((enum option_id)i, out);
    }
}

static void put_commands(struct buf *out)
{
    buf_puts(out, "\nLines of other launchers, unchanged (options of hvdrun come before them)\n");
    put_item("torchrun, deepspeed, accelerate launch",
             "Start what the line says: hvdrun -H a,b torchrun --nproc-per-node 4 train.py", out);
    buf_puts(out, "\nCheck of the hosts, without a job (hvdrun check --help)\n");
    put_item(CHECK_WORD " " CHECK_OPERANDS, CHECK_HELP, out);
    buf_puts(out, "\nOther commands\n");
    for (const struct control_form *tool = tool_forms; tool->word != NULL; tool++) {
        char *head AUTO_FREE = mem_printf("%s %s", tool->word, tool->operands);
        put_item(head, tool->help, out);
    }
    buf_puts(out, "\nCommands for your jobs (hvdrun help status)\n");
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        struct buf head AUTO_BUF = BUF_INIT(256);
        control_put_usage((enum control_command)i, &head);
        put_item(buf_text(&head), control_forms[i].help, out);
    }
}

/* The options that most jobs need; a NULL text begins a group. */
static const struct {
    const char *head, *text;
} few[] = {
    {"Workers", NULL},
    {"-np N", "how many workers; default: all slots"},
    {"-H HOST:SLOTS,...", "hosts, and how many workers fit on each"},
    {"--hostfile FILE", "the same, one host on each line"},
    {"-x NAME[=VALUE]", "pass an environment variable to the workers"},
    {"--gpus-per-proc N", "give each worker N GPUs of its host"},
    {"--bind-to WHAT", "bind each worker: core, numa, l3 or gpu"},
    {"Elastic jobs", NULL},
    {"--min-np N, --max-np N", "go on with N workers or more, at most N"},
    {"--host-discovery-script FILE", "a program that prints the hosts of now"},
    {"Output and inspection", NULL},
    {"--detach", "return when the job runs; see hvdrun attach"},
    {"--output-filename DIR", "also write the output of each worker to a file"},
    {"--metrics PORT", "status page and Prometheus metrics; 0: any port"},
    {"--report FILE", "write a summary of the job as JSON"},
    {"--dry-run", "print where each worker would run, start nothing"},
    {"-v", "say more about what hvdrun does"},
    {"End and failure", NULL},
    {"--timeout TIME", "end the job after this time"},
    {"--hang-timeout TIME", "act when workers hang; see docs/hangs.md"},
    {"--grace TIME", "time between the signal to end and SIGKILL"},
};

void help_short(struct buf *out)
{
    buf_puts(out, "Usage: hvdrun [OPTIONS] PROGRAM [ARGUMENTS]\n"
                  "       hvdrun COMMAND [OPERANDS]\n"
                  "Starts, watches and ends the workers of one distributed job.\n\n"
                  "  hvdrun -np 4 python train.py                     on this machine\n"
                  "  hvdrun -np 8 -H node1:4,node2:4 python train.py  on two hosts\n"
                  "  hvdrun torchrun OPTIONS train.py                 a line of torchrun\n");
    for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
        if (few[i].text == NULL)
            buf_printf(out, "\n%s\n", few[i].head);
        else
            buf_printf(out, "  %-30s%s\n", few[i].head, few[i].text);
    }
    buf_puts(out,
             "\nCommands\n"
             "  check                         examine hosts before a job\n"
             "  ps, status, top, explain      find a job; see its state, use, failure\n"
             "  logs, attach, wait            read its output, follow it, await its end\n"
             "  stacks                        where each worker is now\n"
             "  debug, shell                  a debugger, a shell on a worker's host\n"
             "  pmix                          the process table, for PMIx tools\n"
             "  stop, signal                  end it, or send a signal: hvdrun stop JOB\n"
             "  drain, undrain, add           change the hosts of an elastic job\n"
             "  kubernetes                    print manifests that run a job there\n"
             "  warm                          keep Python interpreters for --warm\n"
             "\n'hvdrun --help all' lists all options; 'hvdrun help logs' explains a command.\n");
}

void help_text(struct buf *out)
{
    buf_puts(out, "Usage: hvdrun [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM ...]\n"
                  "       hvdrun COMMAND [OPERANDS]\n"
                  "Starts, watches and ends the workers of one distributed job.\n\n"
                  "  hvdrun -np 4 python train.py        four workers on this machine\n"
                  "  hvdrun -np 1 ./a : -np 3 ./b        two programs, one job\n"
                  "  hvdrun -np 8 -H a:4,b:4 --dry-run ./train\n"
                  "                                      print where each rank would run\n");
    for (int i = 0; i < GROUP_TOTAL; i++)
        put_group((enum option_group)i, out);
    put_commands(out);
    buf_puts(out,
             "\nOptions end at the program, or at '--'. TIME is in seconds, or 250ms, 5m, 2h.\n"
             "You can also set --NAME with NAME = VALUE in a configuration file, in the\n"
             "[section] next to the title above, or with the variable HVDRUN_NAME ('_' for\n"
             "'-'). [env] in a file holds variables for the workers.\n"
             "Precedence, lowest first: defaults, ~/.config/hvdrun/config.ini, --config-file,\n"
             "HVDRUN_* variables, flags.\n"
             "Exit status: that of the job; 128 + N if signal N ended it; see hvdrun(1).\n");
}

/* The facts about the build come from cmake/versions.cmake. */

/*
 * The versions of the libraries that hvdrun's modules link with: those at build time, and those on
 * this machine, which may differ after an upgrade. Loads all of these libraries.
 *
 * The libraries' headers belong to other rooms, so this file finds their functions by name. The
 * versions at build time come from cmake/versions.cmake.
 */

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number
#define GLIBC_BUILT TEXT(__GLIBC__) "." TEXT(__GLIBC_MINOR__)

#ifndef HVDRUN_PMIX_BUILT
#define HVDRUN_PMIX_BUILT "?"
#define HVDRUN_HWLOC_BUILT "?"
#define HVDRUN_SSH2_BUILT "?"
#define HVDRUN_OPENSSL_BUILT "?"
#define HVDRUN_DW_BUILT "?"
#endif

#define ROW "  %-8s  %-18s  "

/* A function of a library that returns its version. */
union teller {
    void *object;
    const char *(*text)(void);
    const char *(*text_of)(int which); /* 0: the version, whatever the library */
    unsigned (*api)(void);             /* 0x00020800 is 2.8 */
};

static void tell_text(union teller teller, struct buf *out)
{
    library_versions_number(teller.text(), out);
}

static void tell_text_of(union teller teller, struct buf *out)
{
    library_versions_number(teller.text_of(0), out);
}

static void tell_api(union teller teller, struct buf *out)
{
    unsigned number = teller.api();
    buf_printf(out, "API %u.%u", number >> 16, number >> 8 & 0xffu);
}

static const struct library {
    const char *name, *built, *module, *symbol;
    void (*tell)(union teller teller, struct buf *out);
} libraries[] = {
    {"PMIx", HVDRUN_PMIX_BUILT, "hvdrun-pmix.so", "PMIx_Get_version", tell_text},
    {"hwloc", HVDRUN_HWLOC_BUILT, "hvdrun-topology.so", "hwloc_get_api_version", tell_api},
    {"libssh2", HVDRUN_SSH2_BUILT, "hvdrun-ssh.so", "libssh2_version", tell_text_of},
    {"OpenSSL", HVDRUN_OPENSSL_BUILT, "hvdrun-tls.so", "OpenSSL_version", tell_text_of},
    {"libdw", HVDRUN_DW_BUILT, "hvdrun-unwind.so", "dwfl_version", tell_text_of},
};

void library_versions_number(const char *text, struct buf *out)
{
    size_t skip = text == NULL ? 0 : strcspn(text, "0123456789");
    size_t length = text == NULL ? 0 : strcspn(text + skip, " ,)");
    buf_printf(out, "%.*s", length == 0 ? 1 : (int)length, length == 0 ? "?" : text + skip);
}

/* Opens the module as a job does. It stays open, because not every library survives dlclose(). */
static void tell_library(const struct library *library, const char *module_dir, struct buf *out)
{
    char *path AUTO_FREE = mem_printf("%s/%s", module_dir, library->module);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = handle == NULL ? dlerror() : NULL;
    union teller teller = {.object = handle == NULL ? NULL : dlsym(handle, library->symbol)};
    buf_printf(out, ROW, library->name, library->built);
    if (handle == NULL)
        buf_printf(out, "cannot be loaded: %s", why == NULL ? path : why);
    else if (teller.object == NULL)
        buf_puts(out, "in the module"); /* a portable build */
    else
        library->tell(teller, out);
    buf_putc(out, '\n');
}

/* Appends a table with a line for each library. `module_dir` is the folder of the modules. If a
 * library cannot be loaded, its line has the loader's reason. */
static void library_versions_text(const char *module_dir, struct buf *out)
{
    buf_printf(out, ROW "here\n", "library", "built with");
    buf_printf(out, ROW "%s\n", "glibc", GLIBC_BUILT, gnu_get_libc_version());
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        tell_library(&libraries[i], module_dir, out);
}

#ifndef HVDRUN_COMPILER
#define HVDRUN_COMPILER "?"
#define HVDRUN_MACHINE "?"
#define HVDRUN_CONTAINED "?"
#endif

void version_contained(const char *list, struct buf *out)
{
    while (*list != '\0') {
        size_t length = strcspn(list, ","), name = strcspn(list, " ,");
        bool known = name < length && isdigit((unsigned char)list[name + 1]);
        buf_append(out, list, known ? length : name);
        list += length;
        size_t between = strspn(list, ", ");
        buf_append(out, list, between);
        list += between;
    }
}

void version_text(const char *module_dir, struct buf *out)
{
    buf_printf(out, "hvdrun %s\n", HVDRUN_VERSION);
    buf_printf(out, "built by %s for %s\n", HVDRUN_COMPILER, HVDRUN_MACHINE);
    buf_puts(out, "contains ");
    version_contained(HVDRUN_CONTAINED, out);
    buf_putc(out, '\n');
    buf_puts(out, "loads these libraries when a job needs them:\n");
    library_versions_text(module_dir, out);
}

void check_build_text(struct buf *out)
{
    buf_printf(out, "hvdrun %s\n", HVDRUN_VERSION);
    buf_puts(out, "\nTransports:\n"
                  "    [X] local (agents on this machine)\n"
                  "    [X] ssh (libssh2, or the ssh program)\n"
                  "    [X] commands (kubectl, docker, --launch-agent)\n"
                  "    [X] Slurm (srun)\n"
                  "\nStart-up of MPI programs:\n"
                  "    [X] PMIx (Open MPI)\n"
                  "    [X] PMI-1 (MPICH, Intel MPI, MVAPICH)\n"
                  "\nHorovod controllers:\n"
                  "    [X] Gloo\n"
                  "    [X] MPI\n"
                  "\nFeatures:\n"
                  "    [X] several programs in one job\n"
                  "    [X] MPI over several hosts\n"
                  "    [X] binding to cores, memory nodes, caches and GPUs\n"
                  "    [X] JSON report and events\n"
                  "    [X] INI and YAML configuration\n"
                  "    [X] elastic jobs\n"
                  "\nFeatures that a build may leave out:\n");
    features_text(out);
    buf_puts(out, "\n'hvdrun check' checks the hosts of a job.\n");
}
