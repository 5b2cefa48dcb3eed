/* SPDX-License-Identifier: Apache-2.0 */
#include "features/kubernetes/kubernetes.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define LABEL_MAX 63
#define JOBSET_PODS "pod" /* of its one job: JobSet calls its pods NAME-pod-0-INDEX */
#define AFTER_GRACE_S 15  /* for hvdrun to end after its workers */
#define RETRIES_OF_INDEX 10
#define RESTARTS_OF_JOBSET 10
#define TEXT_MAX ((size_t)1 << 30) /* more than any command line */

const char *const manifest_kinds[MANIFEST_KINDS] = {
#define MANIFEST_WORD(name, word) word,
    MANIFEST_KIND_LIST(MANIFEST_WORD)
#undef MANIFEST_WORD
};

/* Checks */

static bool is_label(const char *name, bool may_begin_with_digit)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t length = strlen(name);
    return length > 0 && length <= LABEL_MAX && name[strspn(name, letters)] == '\0' &&
           name[0] != '-' && name[length - 1] != '-' &&
           (may_begin_with_digit || name[0] < '0' || name[0] > '9');
}

/* The pod with the highest index has the longest name. It is the host name, to which JobSet (also
 * that of a TrainJob) adds a "-" and five letters before it compares the length. */
static char *last_pod(const struct manifest *manifest)
{
    static const char *const between[MANIFEST_KINDS] = {"", "-" JOBSET_PODS "-0", "-worker",
                                                        "-node-0"};
    bool is_jobset = manifest->kind == MANIFEST_JOBSET || manifest->kind == MANIFEST_TRAINJOB;
    return mem_printf("%s%s-%" PRId64 "%s", manifest->name, between[manifest->kind],
                      manifest->pods_max - 1, is_jobset ? "-xxxxx" : "");
}

static int check_names(const struct manifest *manifest, struct error *err)
{
    if (!is_label(manifest->name, false))
        return error_usage(err,
                           "--name: '%s' cannot be a name in Kubernetes; expected at most %d "
                           "lower-case letters, digits and '-', a letter first and no '-' last",
                           manifest->name, LABEL_MAX);
    if (manifest->namespace != NULL && !is_label(manifest->namespace, true))
        return error_usage(err,
                           "--namespace: '%s' cannot be a namespace; expected at most %d "
                           "lower-case letters, digits and '-', no '-' first or last",
                           manifest->namespace, LABEL_MAX);
    char *pod AUTO_FREE = last_pod(manifest);
    if (strlen(pod) <= LABEL_MAX)
        return 0;
    return error_usage(err,
                       "--name: '%s' is too long: a pod would have the name %s, and %d letters "
                       "are allowed",
                       manifest->name, pod, LABEL_MAX);
}

static int check_texts(const struct manifest *manifest, struct error *err)
{
    const char *image = manifest->image;
    if (!yaml_text_is_valid(image) || image[0] == '\0' || image[strcspn(image, " \t\r\n")] != '\0')
        return error_usage(err, "--image: '%s' is not the name of an image", image);
    for (size_t i = 0; manifest->line[i] != NULL; i++) {
        if (yaml_text_is_valid(manifest->line[i]))
            continue;
        return error_usage(err, "'%s' is not UTF-8, as all text in a manifest must be",
                           manifest->line[i]);
    }
    return 0;
}

static bool has_torchrun(char *const *words)
{
    while (*words != NULL && strcmp(*words, "torchrun") != 0)
        words++;
    return *words != NULL;
}

/* Without torchrun, each pod would be a job of its own. Where the options of hvdrun end is not
 * known here, so it is not put in. */
static int check_trainjob(const struct manifest *manifest, struct error *err)
{
    if (manifest->is_elastic)
        return error_usage(err,
                           "--pods: a TrainJob has a fixed number of pods; expected one number, "
                           "or --kind job or jobset");
    if (manifest->has_grace)
        return error_usage(err,
                           "--grace: the runtime of a TrainJob says how long its pods may take; "
                           "leave it out, or use --kind job or jobset");
    if (manifest->line[0][0] == '-' && !has_torchrun(manifest->line))
        return error_usage(err,
                           "--kind trainjob: torchrun is missing behind the options of hvdrun; "
                           "write -- OPTIONS torchrun --no-python PROGRAM");
    return 0;
}

int manifest_check(const struct manifest *manifest, struct error *err)
{
    if (check_names(manifest, err) < 0 || check_texts(manifest, err) < 0 ||
        (manifest->kind == MANIFEST_TRAINJOB && check_trainjob(manifest, err) < 0))
        return -1;
    if (manifest->kind >= MANIFEST_MPIJOB && manifest->secret != NULL)
        return error_usage(err, "--with-secret: --kind %s does not use a secret of hvdrun",
                           manifest_kinds[manifest->kind]);
    return 0;
}

/* Parts of all manifests */

/* "key: text" in a line of its own. */
static void put_text(const char *key, const char *text, struct buf *out)
{
    buf_printf(out, "%s: ", key);
    yaml_text_put(text, out);
    buf_putc(out, '\n');
}

static void put_head(const struct manifest *manifest, const char *api, const char *kind,
                     const char *suffix, struct buf *out)
{
    char *name AUTO_FREE = mem_printf("%s%s", manifest->name, suffix);
    buf_printf(out, "apiVersion: %s\nkind: %s\nmetadata:\n", api, kind);
    put_text("  name", name, out);
    if (manifest->namespace != NULL)
        put_text("  namespace", manifest->namespace, out);
}

/* The label that finds the pods, as the controller of this kind sets it. */
static void put_label(const struct manifest *manifest, struct buf *out)
{
    buf_puts(out,
             manifest->kind == MANIFEST_JOB ? "job-name: " : "jobset.sigs.k8s.io/jobset-name: ");
    yaml_text_put(manifest->name, out);
}

/* Kubernetes replaces $(NAME) in the words of a container, and takes $$ for $. */
static void put_words(const char *indent, char *const *words, struct buf *out)
{
    for (; *words != NULL; words++) {
        struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
        for (const char *at = *words; *at != '\0'; at++) {
            buf_putc(&text, *at);
            if (*at == '$')
                buf_putc(&text, '$');
        }
        buf_printf(out, "%s- ", indent);
        yaml_text_put(buf_text(&text), out);
        buf_putc(out, '\n');
    }
}

static void put_limits(const struct manifest *manifest, const char *key, const char *indent,
                       struct buf *out)
{
    if (manifest->gpus > 0)
        buf_printf(out, "%s%s:\n%s  limits: {nvidia.com/gpu: %" PRId64 "}\n", indent, key, indent,
                   manifest->gpus);
    if (manifest->gpus > 0 && manifest->kind == MANIFEST_TRAINJOB) /* Trainer counts these */
        buf_printf(out, "%s  requests: {nvidia.com/gpu: %" PRId64 "}\n", indent, manifest->gpus);
}

/* What the pods of a Job or JobSet need beside them */

static void put_secret(const struct manifest *manifest, struct buf *out)
{
    if (manifest->secret == NULL)
        return;
    put_head(manifest, "v1", "Secret", "", out);
    buf_puts(out, "stringData:\n");
    put_text("  secret", manifest->secret, out);
    buf_puts(out, "---\n");
}

static void put_service(const struct manifest *manifest, struct buf *out)
{
    put_head(manifest, "v1", "Service", "", out);
    buf_puts(out, "spec:\n"
                  "  clusterIP: None # it makes names for the pods\n"
                  "  publishNotReadyAddresses: true\n"
                  "  selector: {");
    put_label(manifest, out);
    buf_puts(out, "}\n---\n");
}

static void put_network_policy(const struct manifest *manifest, struct buf *out)
{
    buf_puts(out,
             "# Only pods of the job reach its pods, on any port: workers connect to each other, "
             "too.\n");
    put_head(manifest, "networking.k8s.io/v1", "NetworkPolicy", "", out);
    buf_puts(out, "spec:\n  podSelector:\n    matchLabels: {");
    put_label(manifest, out);
    buf_puts(out, "}\n  policyTypes: [Ingress]\n  ingress:\n    - from:\n        - podSelector:\n"
                  "            matchLabels: {");
    put_label(manifest, out);
    buf_puts(out, "}\n---\n");
}

/* Only a plain number may be in the budget of pods whose controller has no scale, such as a Job. */
static void put_budget(const struct manifest *manifest, const char *suffix, const char *indexes,
                       int64_t pods, struct buf *out)
{
    put_head(manifest, "policy/v1", "PodDisruptionBudget", suffix, out);
    buf_printf(out, "spec:\n  minAvailable: %" PRId64 "\n  selector:\n    matchLabels: {", pods);
    put_label(manifest, out);
    buf_puts(out, "}\n");
    if (indexes != NULL)
        buf_printf(out,
                   "    matchExpressions:\n"
                   "      - {key: batch.kubernetes.io/job-completion-index, operator: %s, values: "
                   "[\"0\"]}\n",
                   indexes);
    buf_puts(out, "---\n");
}

static void put_budgets(const struct manifest *manifest, struct buf *out)
{
    if (!manifest->is_elastic) {
        buf_puts(out, "# Nobody drains a node of the job without force: each pod is needed.\n");
        put_budget(manifest, "", NULL, manifest->pods_max, out);
        return;
    }
    buf_puts(out, "# The job can lose pods, but not the one of hvdrun.\n");
    put_budget(manifest, "-driver", "In", 1, out);
    if (manifest->pods_min > 1)
        put_budget(manifest, "", "NotIn", manifest->pods_min - 1, out);
}

/* The Job */

/* Pod 0 runs hvdrun, with the program in "$@". */
static void put_script(const struct manifest *manifest, struct buf *out)
{
    const char *name = manifest->name;
    const char *prefix = manifest->kind == MANIFEST_JOBSET ? "-" JOBSET_PODS "-0" : "";
    int64_t last = manifest->pods_max - 1;
    buf_printf(out,
               "          command:\n"
               "            - sh\n"
               "            - -c\n"
               "            - |\n"
               "              case $JOB_COMPLETION_INDEX in\n"
               "              0) exec hvdrun --transport dial -H '%s%s-",
               name, prefix);
    buf_printf(out, last > 0 ? "[0-%" PRId64 "]" : "%" PRId64, last);
    buf_printf(out, ":%" PRId64 "' ", manifest->slots);
    if (manifest->is_elastic)
        buf_printf(out, "--min-np %" PRId64, manifest->pods_min * manifest->slots);
    else
        buf_puts(out, "--start-timeout 10m");
    buf_printf(out,
               " \"$@\" ;;\n"
               "              *) exec hvdrun-agent --dial %s%s-0.%s:%d ;;\n"
               "              esac\n"
               "            - hvdrun\n"
               "          args:\n",
               name, prefix, name, MANIFEST_PORT);
    put_words("            ", manifest->line, out);
}

static void put_container(const struct manifest *manifest, struct buf *out)
{
    buf_puts(out, "      containers:\n        - name: hvdrun\n");
    put_text("          image", manifest->image, out);
    put_script(manifest, out);
    buf_printf(out,
               "          env:\n"
               "            - {name: HVDRUN_DIAL_PORT, value: \"%d\"}\n"
               "            - {name: HVDRUN_DIAL_SECRET, value: /run/hvdrun/secret}\n"
               "            - {name: HVDRUN_DIAL_GRACE, value: %" PRId64 "s} # from SIGTERM on\n",
               MANIFEST_PORT, manifest->grace_s);
    if (manifest->has_grace)
        buf_printf(out, "            - {name: HVDRUN_GRACE, value: %" PRId64 "s}\n",
                   manifest->grace_s);
    put_limits(manifest, "resources", "          ", out);
    buf_puts(out, "          securityContext:\n"
                  "            readOnlyRootFilesystem: true\n"
                  "            allowPrivilegeEscalation: false\n"
                  "            capabilities: {drop: [ALL]}\n"
                  "          volumeMounts:\n"
                  "            - {name: secret, mountPath: /run/hvdrun}\n"
                  "            - {name: tmp, mountPath: /tmp}\n"
                  "            - {name: shm, mountPath: /dev/shm}\n"
                  "      volumes:\n"
                  "        - name: secret\n");
    buf_puts(out, "          secret: {defaultMode: 288, secretName: ");
    yaml_text_put(manifest->name, out);
    buf_puts(out, "} # 0440\n"
                  "        - name: tmp\n"
                  "          emptyDir: {}\n"
                  "        - name: shm\n"
                  "          emptyDir: {medium: Memory}\n");
}

/* docs/exit-status.md has the statuses. */
static void put_job_spec(const struct manifest *manifest, struct buf *out)
{
    buf_printf(out,
               "  completionMode: Indexed\n"
               "  completions: %" PRId64 "\n"
               "  parallelism: %" PRId64 "\n"
               "  successPolicy: # pod 0 runs hvdrun: its success is that of the job\n"
               "    rules:\n"
               "      - {succeededIndexes: \"0\"}\n"
               "  backoffLimitPerIndex: %d\n",
               manifest->pods_max, manifest->pods_max, RETRIES_OF_INDEX);
    buf_puts(out,
             "  podFailurePolicy:\n"
             "    rules:\n"
             "      - action: Ignore # evicted: not the fault of the job\n"
             "        onPodConditions:\n"
             "          - {type: DisruptionTarget, status: \"True\"}\n"
             "      - action: Ignore # \"start me again\", or SIGTERM: without a limit, unless "
             "you set activeDeadlineSeconds\n"
             "        onExitCodes: {containerName: hvdrun, operator: In, values: [75, 143]}\n"
             "      - action: FailJob # \"never again\", the program fails, or a command line is "
             "wrong\n"
             "        onExitCodes: {containerName: hvdrun, operator: In, values: [1, 2, 78, 126, "
             "127]}\n"
             "  template:\n"
             "    spec:\n");
    put_text("      subdomain", manifest->name, out);
    buf_printf(out,
               "      restartPolicy: Never\n"
               "      terminationGracePeriodSeconds: %" PRId64 "\n"
               "      automountServiceAccountToken: false\n"
               "      securityContext:\n"
               "        seccompProfile: {type: RuntimeDefault}\n"
               "        runAsNonRoot: true\n"
               "        runAsUser: 1000\n"
               "        fsGroup: 1000\n",
               manifest->grace_s + AFTER_GRACE_S);
    put_container(manifest, out);
}

static void put_indented(const char *text, const char *indent, struct buf *out)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n") + 1;
        buf_printf(out, "%s%.*s", indent, (int)length, text);
        text += length;
    }
}

static void put_job(const struct manifest *manifest, struct buf *out)
{
    put_head(manifest, "batch/v1", "Job", "", out);
    buf_puts(out, "spec:\n");
    put_job_spec(manifest, out);
}

/* JobSet makes the Service. What podFailurePolicy calls hopeless, it must not start again. */
static void put_jobset(const struct manifest *manifest, struct buf *out)
{
    struct buf job AUTO_BUF = BUF_INIT(TEXT_MAX);
    put_head(manifest, "jobset.x-k8s.io/v1alpha2", "JobSet", "", out);
    buf_printf(out,
               "spec:\n"
               "  failurePolicy:\n"
               "    maxRestarts: %d\n"
               "    rules:\n"
               "      - {name: never, action: FailJobSet, onJobFailureReasons: "
               "[PodFailurePolicy]}\n"
               "  replicatedJobs:\n"
               "    - name: " JOBSET_PODS "\n"
               "      template:\n"
               "        spec:\n",
               RESTARTS_OF_JOBSET);
    put_job_spec(manifest, &job);
    put_indented(buf_text(&job), "        ", out);
}

/* Kinds whose operators bring the network, and what goes with it */

static void put_replicas(const struct manifest *manifest, const char *role, int64_t count,
                         struct buf *out)
{
    buf_printf(out,
               "    %s:\n"
               "      replicas: %" PRId64 "\n"
               "      template:\n"
               "        spec:\n"
               "          terminationGracePeriodSeconds: %" PRId64 "\n"
               "          containers:\n"
               "            - name: hvdrun\n",
               role, count, manifest->grace_s + AFTER_GRACE_S);
    put_text("              image", manifest->image, out);
}

static void put_mpijob(const struct manifest *manifest, struct buf *out)
{
    put_head(manifest, "kubeflow.org/v2beta1", "MPIJob", "", out);
    buf_printf(out,
               "spec:\n"
               "  slotsPerWorker: %" PRId64 "\n"
               "  runPolicy: {cleanPodPolicy: Running}\n",
               manifest->slots);
    if (!manifest->is_elastic) /* or else hvdrun itself waits for hosts */
        buf_puts(out, "  launcherCreationPolicy: WaitForWorkersReady\n");
    buf_puts(out, "  mpiReplicaSpecs:\n");
    put_replicas(manifest, "Launcher", 1, out);
    buf_puts(out, "              command:\n                - hvdrun\n");
    if (manifest->is_elastic)
        buf_printf(out,
                   "                - --host-discovery-script=/etc/mpi/discover_hosts.sh\n"
                   "                - --slots-per-host=%" PRId64 "\n"
                   "                - --min-np=%" PRId64 "\n",
                   manifest->slots, manifest->pods_min * manifest->slots);
    else
        buf_puts(out, "                - --hostfile=/etc/mpi/hostfile\n");
    if (manifest->has_grace)
        buf_printf(out, "                - --grace=%" PRId64 "s\n", manifest->grace_s);
    buf_puts(out, "              args:\n");
    put_words("                ", manifest->line, out);
    /* They run sshd, and the keys are those of the operator. */
    put_replicas(manifest, "Worker", manifest->pods_max, out);
    put_limits(manifest, "resources", "              ", out);
}

/* Trainer's variables say the rest of a line of torchrun. */
static void put_trainjob(const struct manifest *manifest, struct buf *out)
{
    const char *first = manifest->line[0];
    bool is_line = strcmp(first, "torchrun") == 0 || first[0] == '-';
    put_head(manifest, "trainer.kubeflow.org/v1alpha1", "TrainJob", "", out);
    buf_printf(out,
               "spec:\n"
               "  runtimeRef: {name: torch-distributed}\n"
               "  trainer:\n"
               "    numNodes: %" PRId64 "\n"
               "    numProcPerNode: %" PRId64 "\n",
               manifest->pods_max, manifest->slots);
    put_text("    image", manifest->image, out);
    buf_printf(out, "    command: [hvdrun%s]\n    args:\n",
               is_line ? "" : ", torchrun, --no-python");
    put_words("      ", manifest->line, out);
    put_limits(manifest, "resourcesPerNode", "    ", out);
}

static void put_note(const struct manifest *manifest, struct buf *out)
{
    buf_puts(out,
             "# Printed by hvdrun kubernetes; docs/kubernetes.md says what each object is for.\n");
    if (manifest->kind < MANIFEST_MPIJOB && manifest->secret == NULL)
        buf_printf(out,
                   "# It needs a secret, which hvdrun does not print:\n"
                   "#   openssl rand -hex 32 | kubectl%s%s create secret generic %s "
                   "--from-file=secret=/dev/stdin\n",
                   manifest->namespace == NULL ? "" : " -n ",
                   manifest->namespace == NULL ? "" : manifest->namespace, manifest->name);
}

void manifest_put(const struct manifest *manifest, struct buf *out)
{
    put_note(manifest, out);
    if (manifest->kind < MANIFEST_MPIJOB) {
        put_secret(manifest, out);
        if (manifest->kind == MANIFEST_JOB)
            put_service(manifest, out);
        put_budgets(manifest, out);
    }
    if (manifest->kind != MANIFEST_MPIJOB)
        put_network_policy(manifest, out);
    switch (manifest->kind) {
    case MANIFEST_JOB: put_job(manifest, out); break;
    case MANIFEST_JOBSET: put_jobset(manifest, out); break;
    case MANIFEST_MPIJOB: put_mpijob(manifest, out); break;
    case MANIFEST_TRAINJOB: put_trainjob(manifest, out); break;
    case MANIFEST_KINDS: break;
    }
}
