/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/srun/complaint.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "io/dial_back_names.h"
#include "model/hosts/hostlist_range.h"

#define NODES_MAX ((size_t)100000)
#define ERROR_MARK "error: "
#define NODE_FAILURE "Node failure on "

static int add_node(void *context, const char *name, struct error *err)
{
    struct strv *nodes = context;
    (void)err;
    strv_add(nodes, name);
    return 0;
}

static size_t is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* The list of nodes that `text` begins with, up to `end`; commas inside of brackets are the
 * range's.
 */
static bool add_nodes(const char *text, size_t length, struct strv *nodes)
{
    size_t budget = NODES_MAX, begin = 0;
    int depth = 0;
    for (size_t i = 0; i <= length; i++) {
        char byte = i < length ? text[i] : ',';
        if (is_blank(byte))
            return false;
        depth += (byte == '[') - (byte == ']');
        if (byte != ',' || (depth > 0 && i < length))
            continue;
        if (i == begin ||
            hostlist_expand(text + begin, i - begin, &budget, add_node, nodes, NULL) < 0)
            return false;
        begin = i + 1;
    }
    return true;
}

/* Up to the first colon; what is said follows it. */
static const char *before_colon(const char *text, struct strv *nodes)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL || !add_nodes(text, (size_t)(colon - text), nodes))
        return NULL;
    return colon + 1 + strspn(colon + 1, " ");
}

const char *srun_complaint_about(const char *line, struct strv *nodes)
{
    static const char launch[] = "failed on node ";
    const size_t cannot = strlen(DIAL_BACK_CANNOT);
    if (strncmp(line, DIAL_BACK_CANNOT, cannot) == 0)
        return before_colon(line + cannot, nodes);
    const char *said = strstr(line, ERROR_MARK);
    if (strncmp(line, "srun:", 5) != 0 || said == NULL)
        return NULL;
    said += strlen(ERROR_MARK);
    if (srun_complaint_is_node_failure(said)) {
        const char *list = said + strlen(NODE_FAILURE);
        return add_nodes(list, strcspn(list, " "), nodes) ? said : NULL;
    }
    const char *where = strstr(said, launch);
    if (where != NULL)
        return before_colon(where + strlen(launch), nodes) != NULL ? said : NULL;
    const char *task = strstr(said, ": task");
    return task != NULL && strchr(said, ':') == task ? before_colon(said, nodes) : NULL;
}

bool srun_complaint_is_node_failure(const char *said)
{
    return strncmp(said, NODE_FAILURE, strlen(NODE_FAILURE)) == 0;
}

bool srun_complaint_is_end(const char *line)
{
    return strstr(line, "forcing job termination") != NULL ||
           strstr(line, "Job step aborted") != NULL || strstr(line, "CANCELLED AT") != NULL ||
           strstr(line, "has been revoked") != NULL;
}

static const struct {
    const char *says; /* a part of a line, in any case of letters */
    const char *why;
} known[] = {
    /* The order counts: what explains more comes first. */
    {"execve(): permission denied",
     "the node may not execute hvdrun-agent: is its file system mounted noexec there?"},
    {"execve()", "the node does not have hvdrun-agent: put hvdrun on a file system that the nodes "
                 "share, or let Slurm copy it with --srun-args '--bcast=/tmp/hvdrun-agent'"},
    {"unable to resolve \"", "srun cannot find hvdrun-agent: reinstall hvdrun"},
    {"node configuration is not available",
     "Slurm does not give this node to the job: see NodeList in the output of scontrol show job"},
    {"invalid node name", "Slurm has no node of this name: use the names that sinfo prints"},
    {"requested nodes are busy",
     "another step of this job holds the nodes: this Slurm has no --overlap, or the other step "
     "was started with --exclusive"},
    {"step creation temporarily disabled",
     "Slurm does not start new steps in this job now; another one may hold its nodes (squeue -s)"},
    {"expired or invalid job id", "the Slurm job is over (squeue does not know it any more)"},
    {"invalid job id specified", "the Slurm job is over (squeue does not know it any more)"},
    {"job/step already completing or completed", "the Slurm job is ending"},
    {"job is pending execution", "the Slurm job has not started yet"},
    {"memory required by task is not available",
     "the job has no memory left for the agents: ask for more (--mem)"},
    {"unable to contact slurm controller", "slurmctld does not answer: ask the administrator"},
    {"unable to confirm allocation", "slurmctld does not answer: ask the administrator"},
    {"authentication", "Slurm's authentication fails here: is munge running?"},
    {"munge", "Slurm's authentication fails here: is munge running?"},
    {"communication connection failure", "slurmd does not answer on the node: is it up?"},
    {"node failure on", "Slurm reports that the node failed"},
    {"unrecognized option", "srun does not know an option of --srun-args"},
    {"invalid option", "srun does not know an option of --srun-args"},
    {"invalid argument", "srun does not accept an option of --srun-args"},
};

const char *srun_complaint_find(const char *text, char *line, size_t room)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *where = strcasestr(text, known[i].says);
        if (where == NULL)
            continue;
        while (where > text && where[-1] != '\n')
            where--;
        snprintf(line, room, "%.*s", (int)strcspn(where, "\n"), where);
        return known[i].why;
    }
    return NULL;
}
