/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/scrub.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/env/rank_variables.h"
#include "model/env/table.h"
#include "model/settings/option.h"

static bool contains(const char *name, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++) {
        if (strncasecmp(name + i, word, size) == 0)
            return true;
    }
    return false;
}

bool secret_is_name(const char *name, size_t length)
{
    static const char *const words[] = {"TOKEN", "PASSWORD",   "PASSWD", "SECRET",
                                        "KEY",   "CREDENTIAL", "AUTH",   "COOKIE"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (contains(name, length, words[i]))
            return true;
    }
    return false;
}

void secret_mask(const char *pair, struct buf *out)
{
    size_t name = strcspn(pair, "=");
    if (pair[name] == '=' && secret_is_name(pair, name))
        buf_printf(out, "%.*s=(hidden, %zu bytes)", (int)name, pair, strlen(pair + name + 1));
    else
        buf_puts(out, pair);
}

#define VALUE_MAX (1 << 20)

/* In each list a `*` at the end or in front matches any text. The names are not pointers, because
 * every variable meets every name before the first agent is started. */
#define NAME_SIZE 36
typedef char name_list[][NAME_SIZE];

/* Rank variables of an outer job, and secrets: never passed on. */
static const name_list liars = {
    "PMI_*", "PMI2_*", "PMIX_*", "PRTE_LAUNCHED", "PRTE_MCA_prte_*", "PRTE_MCA_ess*",
    /* Open MPI, MPICH and kin */
    "OMPI_COMM_WORLD_*", "OMPI_MCA_orte_*", "OMPI_MCA_prte_*", "OMPI_MCA_ess*", "OMPI_MCA_pmix",
    "OMPI_MCA_schizo", "OMPI_MCA_plm*", "OMPI_MCA_shmem_RUNTIME_QUERY_hint", "MPI_LOCAL*", "HYDI_*",
    "MV2_COMM_WORLD_*", "MPIRUN_*", "PALS_*", "ALPS_APP_PE", "JSM_*", "FLUX_TASK_*",
    /* Horovod, torchrun, DeepSpeed, JAX, TensorFlow */
    "HOROVOD_GLOO_RENDEZVOUS_*", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_*", "NODE_RANK",
    "JAX_COORDINATOR_*", "JAX_LOCAL_DEVICE_IDS", "TF_CONFIG",
    /* srun's own connections */
    "SLURM_PMI*", "SLURM_SRUN_COMM_*", "SRUN_COMM_*", "SLURM_STEP_LAUNCHER_PORT",
    "SLURM_STEP_RESV_PORTS", "SLURM_STEPMGR", "SLURM_PTY_*",
    /* the one task that the launcher is to a scheduler */
    "SLURM_TASK_PID", "SLURM_CPU_BIND*", "SLURM_MEM_BIND*", "PBS_TASKNUM", "LSF_PM_TASKID",
    /* secrets and our own */
    "_HOROVOD_SECRET_KEY", "HVDRUN_AGENT_*", "HVDRUN_KEY", "HVDRUN_RUNTIME_DIR",
    "HVDRUN_HOROVOD_PATH"};

/* Exceptions from `liars`: settings of a library that share the prefix. */
static const name_list settings = {"PMIX_MCA_*", "OMPI_MCA_orte_base_help_aggregate"};

/* Of the shell or terminal that the launcher runs in. */
static const name_list session = {"BASH_FUNC_*", "OLDPWD", "SSH_*"};

/* Screens and sessions of the launcher's own host. */
static const name_list here = {"DISPLAY",
                               "WAYLAND_DISPLAY",
                               "XAUTHORITY",
                               "XDG_SESSION_*",
                               "XDG_SEAT*",
                               "XDG_VTNR",
                               "DBUS_SESSION_BUS_ADDRESS",
                               "SSH_AUTH_SOCK",
                               "SESSION_MANAGER",
                               "GPG_AGENT_INFO",
                               "GPG_TTY",
                               "WINDOWID",
                               "TMUX*",
                               "STY",
                               "INVOCATION_ID",
                               "JOURNAL_STREAM",
                               "NOTIFY_SOCKET",
                               "PWD",
                               "_"};

/* What each host sets itself: the user, the folder for temporary files, its devices. */
static const name_list own_names = {"HOME",
                                    "USER",
                                    "LOGNAME",
                                    "SHELL",
                                    "MAIL",
                                    "HOSTNAME",
                                    "HOST",
                                    "TMPDIR",
                                    "TMP",
                                    "TEMP",
                                    "XDG_RUNTIME_DIR",
                                    "KRB5CCNAME",
                                    "SLURMD_NODENAME",
                                    "SLURM_TOPOLOGY_ADDR*",
                                    "SLURM_CPUS_ON_NODE",
                                    "SLURM_GPUS_ON_NODE",
                                    "SLURM_SHARDS_ON_NODE",
                                    "SLURM_JOB_GPUS",
                                    "SLURM_STEP_GPUS",
                                    "*_VISIBLE_DEVICES",
                                    "GPU_DEVICE_ORDINAL",
                                    "ZE_AFFINITY_MASK",
                                    "JOB_COMPLETION_INDEX",
                                    "JOB_INDEX",
                                    "JOBSET_*",
                                    "POD_NAME",
                                    "POD_IP",
                                    "POD_IPS",
                                    "POD_UID",
                                    "NODE_NAME",
                                    "HOST_IP",
                                    "PET_*"};

/* What the launcher says, or the host where the launcher says nothing. */
static const name_list gap_names = {"PATH", "LD_LIBRARY_PATH"};

/* Everything that a scheduler says, for --keep-scheduler-env. */
static const name_list scheduler_names = {"SLURM_*", "SLURMD_*", "PBS_*", "LSB_*", "LSF_*"};

/* --no-env: enough to find and load a program and to print in the user's language. */
static const name_list few_names = {"PATH", "HOME", "USER",     "LOGNAME", "SHELL",          "TERM",
                                    "TZ",   "LANG", "LANGUAGE", "LC_*",    "LD_LIBRARY_PATH"};

static bool matches(const char *pattern, const char *name, size_t length)
{
    size_t same = 0;
    if (pattern[0] == '*') {
        size_t size = strlen(pattern + 1);
        return length >= size && memcmp(pattern + 1, name + length - size, size) == 0;
    }
    while (same < length && pattern[same] == name[same])
        same++;
    return pattern[same] == '*' || (pattern[same] == '\0' && same == length);
}

static bool listed(const char (*list)[NAME_SIZE], size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        bool may_match = list[i][0] == name[0] || list[i][0] == '*';
        if (may_match && matches(list[i], name, length))
            return true;
    }
    return false;
}

#define LISTED(list, name, length) \
    listed((list), sizeof(list) / sizeof((list)[0]), (name), (length))

bool env_scrub_keeps(const char *name, bool same_host, bool few)
{
    size_t length = env_name_length(name);
    bool bound = LISTED(here, name, length) || LISTED(own_names, name, length);
    if (bound && !same_host)
        return false;
    if (few)
        return LISTED(few_names, name, length);
    if (bound)
        return true;
    if (LISTED(settings, name, length))
        return true;
    if (LISTED(session, name, length) || LISTED(liars, name, length))
        return false;
    if (matches("HVDRUN_*", name, length) && option_of_variable(name, length) != OPT_TOTAL)
        return false;
    const struct rank_variable *own = rank_variable_find(name, length);
    return own == NULL || own->when == INHERITED;
}

void env_scrub(char *const *env, bool same_host, bool few, struct strv *out)
{
    for (; env != NULL && *env != NULL; env++) {
        size_t length = env_name_length(*env);
        if (length > 0 && (*env)[length] == '=' && env_scrub_keeps(*env, same_host, few))
            strv_add(out, *env);
    }
}

static bool has(char *const *env, const char *name, size_t length)
{
    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return true;
    }
    return false;
}

void env_scrub_for_host(char *const *passed, char *const *own, struct strv *out)
{
    for (char *const *pair = passed; pair != NULL && *pair != NULL; pair++) {
        size_t length = env_name_length(*pair);
        if (!LISTED(here, *pair, length) && !LISTED(own_names, *pair, length))
            strv_add(out, *pair);
    }
    for (; own != NULL && *own != NULL; own++) {
        size_t length = env_name_length(*own);
        bool gap = LISTED(gap_names, *own, length) && !has(passed, *own, length);
        if ((gap || LISTED(own_names, *own, length)) && length > 0 && (*own)[length] == '=')
            strv_add(out, *own);
    }
}

void env_scrub_scheduler(char *const *env, struct strv *out)
{
    for (; env != NULL && *env != NULL; env++) {
        size_t length = env_name_length(*env);
        if (length > 0 && (*env)[length] == '=' && LISTED(scheduler_names, *env, length))
            strv_env_put(out, *env);
    }
}

static bool is_of_slurm(const char *name)
{
    return matches("SLURM_*", name, env_name_length(name));
}

void env_scrub_own_scheduler(char *const *own, struct strv *out)
{
    bool inside = false;
    for (char *const *pair = own; pair != NULL && *pair != NULL; pair++)
        inside = inside || strncmp(*pair, "SLURM_JOB_ID=", 13) == 0;
    if (!inside)
        return;
    struct strv kept = STRV_INIT;
    for (size_t i = 0; i < out->count; i++) {
        if (!is_of_slurm(out->items[i]))
            strv_add(&kept, out->items[i]);
    }
    for (; *own != NULL; own++) {
        if (is_of_slurm(*own))
            strv_add(&kept, *own);
    }
    strv_destroy(out);
    *out = kept;
}

int env_spec_apply(const char *spec, char *const *env, struct strv *out, struct error *err)
{
    size_t length = env_name_length(spec);
    if (length == 0)
        return error_usage(err, "'%s' is not a variable (examples: NAME, NAME=value, 'PREFIX*')",
                           spec);
    if (spec[length] == '=') {
        strv_env_put(out, spec);
        return 1;
    }
    int found = 0;
    bool prefix = spec[length - 1] == '*';
    for (; env != NULL && *env != NULL; env++) {
        size_t size = env_name_length(*env);
        bool same = prefix ? strncmp(*env, spec, length - 1) == 0
                           : size == length && memcmp(*env, spec, length) == 0;
        if (size == 0 || (*env)[size] != '=' || !same)
            continue;
        strv_env_put(out, *env);
        found++;
        if (!prefix)
            break;
    }
    return found;
}

/* A value that begins with a quote; `*at` ends up behind the closing one. -1: it never closes. */
static int quoted_value(const char **at, const char *end, struct buf *value)
{
    char quote = *(*at)++;
    for (; *at < end && **at != quote; (*at)++) {
        char byte = **at;
        if (quote == '"' && byte == '\\' && *at + 1 < end && strchr("nt\"\\$", (*at)[1]) != NULL) {
            (*at)++;
            byte = **at == 'n' ? '\n' : **at == 't' ? '\t' : **at;
        }
        buf_putc(value, byte);
    }
    if (*at == end)
        return -1;
    (*at)++;
    return 0;
}

static void plain_value(const char **at, const char *end, struct buf *value)
{
    const char *begin = *at;
    while (*at < end && !(**at == '#' && (*at == begin || isblank((unsigned char)(*at)[-1]))))
        (*at)++;
    const char *last = *at;
    while (last > begin && isspace((unsigned char)last[-1]))
        last--;
    buf_append(value, begin, (size_t)(last - begin));
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    return at;
}

/* One line without its newline; `wrong` becomes what is wrong with it. */
static int parse_line(const char *at, const char *end, struct strv *out, const char **wrong)
{
    at = skip_blanks(at, end);
    if (at == end || *at == '#')
        return 0;
    if (end - at > 7 && memcmp(at, "export", 6) == 0 && isblank((unsigned char)at[6]))
        at = skip_blanks(at + 6, end);
    const char *name = at;
    while (at < end && (isalnum((unsigned char)*at) || strchr("_.-%()", *at) != NULL) &&
           *at != '\0')
        at++;
    size_t length = (size_t)(at - name);
    *wrong = "expected NAME=value";
    if (length == 0 || at == end || *at != '=' || isdigit((unsigned char)*name))
        return -1;
    at = skip_blanks(at + 1, end);
    struct buf value AUTO_BUF = BUF_INIT(VALUE_MAX);
    if (at < end && (*at == '"' || *at == '\'')) {
        *wrong = "the quote is never closed";
        if (quoted_value(&at, end, &value) < 0)
            return -1;
    } else {
        plain_value(&at, end, &value);
    }
    at = skip_blanks(at, end);
    *wrong = "there is text after the value (put the whole value in quotes)";
    if (at < end && *at != '#')
        return -1;
    char *pair AUTO_FREE = mem_printf("%.*s=%s", (int)length, name, buf_text(&value));
    strv_env_put(out, pair);
    return 0;
}

int env_file_parse(const char *bytes, size_t length, const char *file, struct strv *out,
                   struct error *err)
{
    const char *at = bytes, *end = bytes + length, *line = NULL;
    size_t left = 0;
    for (size_t number = 1; text_next_line(&at, end, &line, &left); number++) {
        const char *wrong = NULL;
        if (memchr(line, '\0', left) != NULL)
            return error_usage(err, "%s:%zu: the line holds a NUL byte", file, number);
        if (left > VALUE_MAX)
            return error_usage(err, "%s:%zu: the line is longer than 1 MiB", file, number);
        if (parse_line(line, line + left, out, &wrong) < 0)
            return error_usage(err, "%s:%zu: %s", file, number, wrong);
    }
    return 0;
}
