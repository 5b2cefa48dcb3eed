/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that options with a fixed choice accept: one list for each, and the enum that the rest
 * of the launcher uses for it. Pure.
 *
 * The second column is what users type and what messages print.
 */
#pragma once

#define COLOR_WORDS(X)            \
    X(SET_COLOR_AUTO, "auto")     \
    X(SET_COLOR_ALWAYS, "always") \
    X(SET_COLOR_NEVER, "never")
#define ON_HANG_WORDS(X)              \
    X(SET_ON_HANG_WARN, "warn")       \
    X(SET_ON_HANG_DUMP, "dump")       \
    X(SET_ON_HANG_RESTART, "restart") \
    X(SET_ON_HANG_KILL, "kill")
#define HANGUP_WORDS(X)      \
    X(SET_HANGUP_END, "end") \
    X(SET_HANGUP_DETACH, "detach")
#define DRY_RUN_WORDS(X)          \
    X(SET_DRY_RUN_NO, "no")       \
    X(SET_DRY_RUN_TABLE, "table") \
    X(SET_DRY_RUN_JSON, "json")
#define TRANSPORT_WORDS(X)              \
    X(SET_TRANSPORT_AUTO, "auto")       \
    X(SET_TRANSPORT_LOCAL, "local")     \
    X(SET_TRANSPORT_SSH, "ssh")         \
    X(SET_TRANSPORT_SSH_CLI, "ssh-cli") \
    X(SET_TRANSPORT_SRUN, "srun")       \
    X(SET_TRANSPORT_KUBECTL, "kubectl") \
    X(SET_TRANSPORT_DOCKER, "docker")   \
    X(SET_TRANSPORT_DIAL, "dial")
#define SCHEDULER_WORDS(X)                    \
    X(SET_SCHEDULER_AUTO, "auto")             \
    X(SET_SCHEDULER_SLURM, "slurm")           \
    X(SET_SCHEDULER_PBS, "pbs")               \
    X(SET_SCHEDULER_LSF, "lsf")               \
    X(SET_SCHEDULER_SGE, "sge")               \
    X(SET_SCHEDULER_KUBERNETES, "kubernetes") \
    X(SET_SCHEDULER_NONE, "none")
#define CONTROLLER_WORDS(X)        \
    X(SET_CONTROLLER_AUTO, "auto") \
    X(SET_CONTROLLER_GLOO, "gloo") \
    X(SET_CONTROLLER_MPI, "mpi")
#define TORCH_STORE_WORDS(X)          \
    X(SET_TORCH_STORE_RANK0, "rank0") \
    X(SET_TORCH_STORE_AGENT, "agent") \
    X(SET_TORCH_STORE_AUTO, "auto")
#define ON_FAILURE_WORDS(X)              \
    X(SET_ON_FAILURE_AUTO, "auto")       \
    X(SET_ON_FAILURE_REJOIN, "rejoin")   \
    X(SET_ON_FAILURE_RESTART, "restart") \
    X(SET_ON_FAILURE_STOP, "stop")
#define REJOIN_WORDS(X)          \
    X(SET_REJOIN_EARLY, "early") \
    X(SET_REJOIN_TOGETHER, "together")
#define HOROVOD_WORDS(X)              \
    X(SET_HOROVOD_AUTO, "auto")       \
    X(SET_HOROVOD_BUNDLED, "bundled") \
    X(SET_HOROVOD_NONE, "none")
#define LOG_LEVEL_WORDS(X)        \
    X(SET_LOG_TRACE, "TRACE")     \
    X(SET_LOG_DEBUG, "DEBUG")     \
    X(SET_LOG_INFO, "INFO")       \
    X(SET_LOG_WARNING, "WARNING") \
    X(SET_LOG_ERROR, "ERROR")     \
    X(SET_LOG_FATAL, "FATAL")

/* Which process-management interface the workers of an app are offered to find their MPI. */
#define MPI_KIND_WORDS(X) \
    X(MPI_AUTO, "auto")   \
    X(MPI_NONE, "none")   \
    X(MPI_PMIX, "pmix")   \
    X(MPI_PMI1, "pmi1")
#define BIND_UNIT_WORDS(X) \
    X(BIND_NONE, "none")   \
    X(BIND_CORE, "core")   \
    X(BIND_NUMA, "numa")   \
    X(BIND_L3, "l3")       \
    X(BIND_GPU, "gpu")
#define EXIT_RULE_WORDS(X) \
    X(EXIT_FIRST, "first") \
    X(EXIT_MAX, "max")     \
    X(EXIT_RANK0, "rank0")

#define WORD_ENUM(id, text) id,
enum set_color { COLOR_WORDS(WORD_ENUM) };
enum set_on_hang { ON_HANG_WORDS(WORD_ENUM) };
enum set_hangup { HANGUP_WORDS(WORD_ENUM) };
enum set_dry_run { DRY_RUN_WORDS(WORD_ENUM) };
enum set_transport { TRANSPORT_WORDS(WORD_ENUM) };
enum set_scheduler { SCHEDULER_WORDS(WORD_ENUM) };
enum set_controller { CONTROLLER_WORDS(WORD_ENUM) };
enum set_torch_store { TORCH_STORE_WORDS(WORD_ENUM) };
enum set_on_failure { ON_FAILURE_WORDS(WORD_ENUM) };
enum set_rejoin { REJOIN_WORDS(WORD_ENUM) };
enum set_horovod { HOROVOD_WORDS(WORD_ENUM) };
enum set_log_level { LOG_LEVEL_WORDS(WORD_ENUM) };
enum mpi_kind { MPI_KIND_WORDS(WORD_ENUM) };
enum bind_unit { BIND_UNIT_WORDS(WORD_ENUM) };
enum exit_rule { EXIT_RULE_WORDS(WORD_ENUM) };
#undef WORD_ENUM

#define WORD_NAME(id, text) [id] = (text),

static inline const char *mpi_kind_name(enum mpi_kind kind)
{
    static const char *const names[] = {MPI_KIND_WORDS(WORD_NAME)};
    return names[kind];
}

static inline const char *bind_unit_name(enum bind_unit unit)
{
    static const char *const names[] = {BIND_UNIT_WORDS(WORD_NAME)};
    return names[unit];
}
#undef WORD_NAME
