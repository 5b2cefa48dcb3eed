/* SPDX-License-Identifier: Apache-2.0 */
#include "model/allocation/allocation.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/allocation/slurm.h"
#include "model/allocation/source.h"
#include "model/hosts/entry.h"
#include "model/hosts/hostfile.h"

/*
 * The schedulers but Slurm, which has a file of its own. Of each, NAME_has() says whether its
 * variables are set. `*file` becomes the file that they name, borrowed from `env`; it is not
 * changed when they name none. NAME_parse() fills hosts, np and what else the scheduler says; the
 * caller checks that there are hosts. Pure.
 */

static int add_slot(void *context, const char *line, size_t length, struct error *err)
{
    return allocation_add(context, line, length, 1, err);
}

/*
 * Kubernetes: mpi-operator and Kubeflow Trainer mount a hostfile into the launcher of an MPI job
 * and name it by the variable of the MPI that the job is for. Outside of Kubernetes these variables
 * are the user's, for an MPI of his own, and say nothing about an allocation.
 */

static bool kubernetes_has(char *const *env, const char **file)
{
    static const char *const names[] = {"OMPI_MCA_orte_default_hostfile",
                                        "PRTE_MCA_prte_default_hostfile", "I_MPI_HYDRA_HOST_FILE",
                                        "HYDRA_HOST_FILE"};
    bool inside = allocation_value(env, "KUBERNETES_SERVICE_HOST") != NULL ||
                  allocation_value(env, "K_MPI_JOB_ROLE") != NULL;
    *file = NULL;
    for (size_t i = 0; inside && *file == NULL && i < sizeof(names) / sizeof(names[0]); i++)
        *file = allocation_value(env, names[i]);
    return *file != NULL;
}

static int kubernetes_parse(const struct allocation_source *source, struct allocation *out,
                            struct error *err)
{
    const struct hostfile file = {
        .bytes = source->bytes, .length = source->length, .name = source->file};
    return hostfile_parse(&file, &out->hosts, err);
}

/*
 * LSF: a file with a host name for each slot, which LSF keeps up to date when a job is resized;
 * where there is none, "host slots host slots" in LSB_MCPU_HOSTS, or a name for each slot in
 * LSB_HOSTS, which LSF leaves out when it would be long.
 */

static bool lsf_has(char *const *env, const char **file)
{
    *file = allocation_value(env, "LSB_DJOB_HOSTFILE");
    return allocation_value(env, "LSB_JOBID") != NULL &&
           (*file != NULL || allocation_value(env, "LSB_MCPU_HOSTS") != NULL ||
            allocation_value(env, "LSB_HOSTS") != NULL);
}

/* "host 4 host 4" */
static int read_pairs(const char *text, struct allocation *out, struct error *err)
{
    const char *name = NULL, *count = NULL;
    struct text_rest rest = text_rest_of(text, strlen(text));
    while (rest.at < rest.end) {
        struct host_value slots;
        size_t length = text_take_word(&rest, ' ', &name),
               digits = text_take_word(&rest, ' ', &count);
        if (digits == 0)
            return error_usage(err,
                               "LSB_MCPU_HOSTS: no slot count after '%s'; expected 'host 4 host 4'",
                               plain_show(name, length).text);
        if (host_key_read(HOST_KEY_SLOTS, count, digits, &slots, err) < 0 ||
            allocation_add(out, name, length, slots.number, err) < 0)
            return error_wrap(err, "LSB_MCPU_HOSTS");
    }
    return 0;
}

static int read_names(const char *text, struct allocation *out, struct error *err)
{
    const char *name = NULL;
    struct text_rest rest = text_rest_of(text, strlen(text));
    while (rest.at < rest.end) {
        size_t length = text_take_word(&rest, ' ', &name);
        if (allocation_add(out, name, length, 1, err) < 0)
            return error_wrap(err, "LSB_HOSTS");
    }
    return 0;
}

static int lsf_parse(const struct allocation_source *source, struct allocation *out,
                     struct error *err)
{
    out->job_id = mem_strdup(allocation_value(source->env, "LSB_JOBID"));
    if (source->file != NULL)
        return allocation_lines(source, add_slot, out, err);
    const char *pairs = allocation_value(source->env, "LSB_MCPU_HOSTS");
    if (pairs != NULL)
        return read_pairs(pairs, out, err);
    return read_names(allocation_value(source->env, "LSB_HOSTS"), out, err);
}

/* PBS Pro, OpenPBS and Torque: a file with a host name for each slot (mpiprocs, or ppn). */

static bool pbs_has(char *const *env, const char **file)
{
    *file = allocation_value(env, "PBS_NODEFILE");
    return *file != NULL && allocation_value(env, "PBS_JOBID") != NULL;
}

static int pbs_parse(const struct allocation_source *source, struct allocation *out,
                     struct error *err)
{
    out->job_id = mem_strdup(allocation_value(source->env, "PBS_JOBID"));
    return allocation_lines(source, add_slot, out, err);
}

/* Grid Engine and its descendants: "host slots queue range" a line, for each queue of a host. */

static bool sge_has(char *const *env, const char **file)
{
    *file = allocation_value(env, "PE_HOSTFILE");
    return *file != NULL && allocation_value(env, "JOB_ID") != NULL;
}

static int add_line(void *context, const char *line, size_t length, struct error *err)
{
    const char *name = NULL, *count = NULL;
    struct text_rest rest = text_rest_of(line, length);
    size_t name_length = text_take_word(&rest, ' ', &name);
    size_t digits = text_take_word(&rest, ' ', &count);
    struct host_value slots;
    if (digits == 0)
        return error_usage(err, "no slot count; expected HOST SLOTS QUEUE RANGE");
    if (host_key_read(HOST_KEY_SLOTS, count, digits, &slots, err) < 0)
        return -1;
    return allocation_add(context, name, name_length, slots.number, err);
}

static int sge_parse(const struct allocation_source *source, struct allocation *out,
                     struct error *err)
{
    int64_t restarted = 0;
    out->job_id = mem_strdup(allocation_value(source->env, "JOB_ID"));
    if (allocation_number(source->env, "RESTARTED", 0, INT_MAX, &restarted, err) < 0)
        return -1;
    out->restart_count = (int)restarted;
    return allocation_lines(source, add_line, out, err);
}

/* All of them. */

#define SHOWN_HOSTS 4
#define SHOWN_ROOM 512

/* In the order in which they are asked. Slurm comes first: its commands that imitate those of PBS
 * set PBS's variables too. Kubernetes comes last: a cluster may run in it. */
static const struct scheduler {
    const char *name, *needs;
    bool (*has)(char *const *env, const char **file);
    int (*parse)(const struct allocation_source *source, struct allocation *out, struct error *err);
} schedulers[] = {
    [ALLOCATION_NONE] = {"none", "nothing", NULL, NULL},
    [ALLOCATION_SLURM] = {"Slurm", "SLURM_JOB_ID and SLURM_JOB_NODELIST", allocation_slurm_has,
                          allocation_slurm_parse},
    [ALLOCATION_PBS] = {"PBS", "PBS_JOBID and PBS_NODEFILE", pbs_has, pbs_parse},
    [ALLOCATION_LSF] = {"LSF", "LSB_JOBID and LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS or LSB_HOSTS",
                        lsf_has, lsf_parse},
    [ALLOCATION_SGE] = {"SGE", "JOB_ID and PE_HOSTFILE (in a parallel environment)", sge_has,
                        sge_parse},
    [ALLOCATION_KUBERNETES] = {"Kubernetes",
                               "a hostfile in OMPI_MCA_orte_default_hostfile, "
                               "PRTE_MCA_prte_default_hostfile, I_MPI_HYDRA_HOST_FILE or "
                               "HYDRA_HOST_FILE",
                               kubernetes_has, kubernetes_parse},
};

const char *allocation_name(enum allocation_kind kind)
{
    return schedulers[kind].name;
}

const char *allocation_needs(enum allocation_kind kind)
{
    return schedulers[kind].needs;
}

bool allocation_has(enum allocation_kind kind, char *const *env, const char **file)
{
    *file = NULL;
    return schedulers[kind].has != NULL && schedulers[kind].has(env, file);
}

enum allocation_kind allocation_detect(char *const *env, const char **file)
{
    for (int kind = ALLOCATION_SLURM; kind <= ALLOCATION_KUBERNETES; kind++) {
        if (allocation_has((enum allocation_kind)kind, env, file))
            return (enum allocation_kind)kind;
    }
    *file = NULL;
    return ALLOCATION_NONE;
}

int allocation_parse(enum allocation_kind kind, char *const *env, const char *file,
                     const char *bytes, size_t length, struct allocation *out, struct error *err)
{
    out->kind = kind;
    if (kind == ALLOCATION_NONE)
        return 0;
    struct allocation_source source = {.env = env, .file = file, .bytes = bytes, .length = length};
    if (schedulers[kind].parse(&source, out, err) < 0)
        return -1;
    if (out->hosts.count == 0)
        return error_usage(err, "%s names no host", file != NULL ? file : schedulers[kind].needs);
    return 0;
}

void allocation_destroy(struct allocation *allocation)
{
    free(allocation->job_id);
    free(allocation->here);
    hosts_destroy(&allocation->hosts);
    *allocation = (struct allocation){.kind = ALLOCATION_NONE};
}

/* ---- the hosts of the user against those of the allocation ---- */

/* Equal up to the first dot, where one of the two has no dot: node1 and node1.cluster. Never two
 * numeric addresses. */
static bool same_but_domain(const char *one, const char *other)
{
    size_t left = strcspn(one, "."), right = strcspn(other, ".");
    bool short_name = one[left] == '\0' || other[right] == '\0';
    return short_name && left == right && strncasecmp(one, other, left) == 0;
}

static const struct host *find_host(const struct allocation *allocation, const char *name)
{
    if (strcmp(name, "localhost") == 0 && allocation->here != NULL)
        name = allocation->here;
    const struct host *host = hosts_find(&allocation->hosts, name);
    bool exact = allocation->kind == ALLOCATION_SLURM; /* srun takes no other names */
    for (size_t i = 0; !exact && host == NULL && i < allocation->hosts.count; i++) {
        if (same_but_domain(allocation->hosts.items[i].name, name))
            host = &allocation->hosts.items[i];
    }
    return host;
}

/* "Slurm job 812 (node1, node2 and 14 more)" */
static char *describe(const struct allocation *allocation)
{
    struct buf text = BUF_INIT(SHOWN_ROOM * (SHOWN_HOSTS + 1));
    const struct host_list *hosts = &allocation->hosts;
    buf_printf(&text, "%s job", allocation_name(allocation->kind));
    if (allocation->job_id != NULL)
        buf_printf(&text, " %s", plain_show(allocation->job_id, strlen(allocation->job_id)).text);
    for (size_t i = 0; i < hosts->count && i < SHOWN_HOSTS; i++)
        buf_printf(&text, "%s%s", i == 0 ? " (" : ", ", hosts->items[i].name);
    if (hosts->count > SHOWN_HOSTS)
        buf_printf(&text, " and %zu more", hosts->count - SHOWN_HOSTS);
    buf_puts(&text, hosts->count > 0 ? ")" : "");
    return buf_take(&text);
}

static int refuse_strangers(const struct allocation *allocation, const struct host_list *hosts,
                            struct error *err)
{
    struct buf names AUTO_BUF = BUF_INIT(SHOWN_ROOM * (SHOWN_HOSTS + 1));
    size_t count = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        if (find_host(allocation, hosts->items[i].name) != NULL)
            continue;
        if (count < SHOWN_HOSTS)
            buf_printf(&names, "%s%s", count > 0 ? ", " : "", hosts->items[i].name);
        count++;
    }
    if (count == 0)
        return 0;
    if (count > SHOWN_HOSTS)
        buf_printf(&names, " and %zu more", count - SHOWN_HOSTS);
    char *job AUTO_FREE = describe(allocation);
    return error_usage(err,
                       "not in %s: %s; name only hosts of the job, or leave out -H to use all of "
                       "them; --scheduler none ignores the job",
                       job, buf_text(&names));
}

int allocation_check(const struct allocation *allocation, struct host_list *hosts,
                     bool oversubscribe, struct error *err)
{
    if (refuse_strangers(allocation, hosts, err) < 0)
        return -1;
    /* of each host of the allocation: it may be named as localhost too */
    int64_t *wanted AUTO_FREE = mem_array(allocation->hosts.count, sizeof(*wanted));
    for (size_t i = 0; i < hosts->count; i++) {
        struct host *host = &hosts->items[i];
        const struct host *given = find_host(allocation, host->name);
        if (!host->slots_given && host->slots == 1) {
            host->slots = given->slots;
            host->slots_given = true;
        }
        int64_t *sum = &wanted[given - allocation->hosts.items];
        *sum += host->slots;
        if (*sum <= given->slots || oversubscribe)
            continue;
        char *job AUTO_FREE = describe(allocation);
        return error_usage(err,
                           "%s: %lld slots wanted, but %s has only %d there; ask for fewer, or add "
                           "--oversubscribe; --scheduler none ignores the job",
                           host->name, (long long)*sum, job, given->slots);
    }
    return 0;
}
