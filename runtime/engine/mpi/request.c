/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/mpi/request.h"

#include <poll.h>
#include <sched.h>
#include <stdbool.h>

#include "base/clock.h"
#include "engine/elements.h"
#include "include/hvd.h"

#define HOT_NS 50000
#define DATA_SPIN_NS 1000000000
#define DATA_SLEEP_NS 20000
#define LIMITED_SPIN_NS 200000
#define LIMITED_SLEEP_NS 1000000

void request_lock(struct engine_world *world)
{
    if (world->one_at_a_time)
        pthread_mutex_lock(&world->lock);
}

void request_unlock(struct engine_world *world)
{
    if (world->one_at_a_time)
        pthread_mutex_unlock(&world->lock);
}

enum hvd_status request_may_start(const struct engine_comm *comm, struct error *err)
{
    if (atomic_load(&comm->world->aborted))
        error_set(err, "the engine was aborted");
    else if (comm->broken)
        error_set(err, "an earlier operation of this process set failed");
    else
        return HVD_OK;
    return HVD_ERR_PEER_LOST;
}

enum hvd_status request_failed(int code, const char *what, struct error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    error_set(err, "%s: %.*s", what, length, text);
    return HVD_ERR_ENGINE;
}

enum hvd_status request_result(struct engine_comm *comm, int code, const char *what,
                               struct error *err)
{
    if (code == MPI_SUCCESS)
        return HVD_OK;
    comm->broken = true;
    return request_failed(code, what, err);
}

static void sleep_ns(int64_t ns)
{
    ppoll(NULL, 0, &(struct timespec){.tv_nsec = ns}, NULL);
}

static void give_way(bool limited, int64_t waited_ns)
{
    if (waited_ns < HOT_NS)
        return;
    if (waited_ns < (limited ? LIMITED_SPIN_NS : DATA_SPIN_NS))
        sched_yield();
    else if (!limited)
        sleep_ns(DATA_SLEEP_NS);
    else
        sleep_ns(waited_ns / 8 < LIMITED_SLEEP_NS ? waited_ns / 8 : LIMITED_SLEEP_NS);
}

/* Not HVD_OK: give up. */
static enum hvd_status may_wait(struct engine_comm *comm, int64_t waited_ns, int64_t timeout_ms,
                                const char *what, struct error *err)
{
    if (atomic_load(&comm->world->aborted)) {
        error_set(err, "the engine was aborted");
    } else if (timeout_ms > 0 && waited_ns / 1000000 >= timeout_ms) {
        error_set(err, "%s: a rank did not answer within %lld ms", what, (long long)timeout_ms);
    } else {
        return HVD_OK;
    }
    return HVD_ERR_PEER_LOST;
}

enum hvd_status request_wait(struct engine_comm *comm, MPI_Request *requests, int count,
                             int64_t timeout_ms, const char *what, struct error *err)
{
    int64_t start = clock_mono_ns();
    for (;;) {
        int done = 0;
        request_lock(comm->world);
        int code = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        request_unlock(comm->world);
        enum hvd_status status = request_result(comm, code, what, err);
        if (done && status == HVD_OK)
            return HVD_OK;
        int64_t waited = clock_mono_ns() - start;
        if (status == HVD_OK)
            status = may_wait(comm, waited, timeout_ms, what, err);
        if (status != HVD_OK) {
            atomic_store(&comm->world->aborted, true);
            return status;
        }
        give_way(timeout_ms > 0, waited);
    }
}

/* ---- Types and operations -------------------------------------------------------------------- */

/* X(type, name, type of MPI of this size). */
/* clang-format off */
#define OWN_LIST(X)                              \
    X(HVD_UINT8, uint8, MPI_UINT8_T)             \
    X(HVD_INT8, int8, MPI_UINT8_T)               \
    X(HVD_UINT16, uint16, MPI_UINT16_T)          \
    X(HVD_INT16, int16, MPI_UINT16_T)            \
    X(HVD_UINT32, uint32, MPI_UINT32_T)          \
    X(HVD_INT32, int32, MPI_UINT32_T)            \
    X(HVD_UINT64, uint64, MPI_UINT64_T)          \
    X(HVD_INT64, int64, MPI_UINT64_T)            \
    X(HVD_FLOAT16, float16, MPI_UINT16_T)        \
    X(HVD_BFLOAT16, bfloat16, MPI_UINT16_T)      \
    X(HVD_BOOL, bool, MPI_UINT8_T)
/* clang-format on */

/* MPI gives an operation neither a context nor, for a predefined type, a way to know which of our
 * types it is. So there is a function for each pair. */
#define FUNCTION(function, type, op)                                              \
    static void function(void *in, void *inout, int *count, MPI_Datatype *unused) \
    {                                                                             \
        (void)unused;                                                             \
        reduce_find(type, op)(inout, in, inout, (size_t)*count);                  \
    }
#define FUNCTIONS(type, name, mpi_type) \
    FUNCTION(name##_sum, type, HVD_SUM) \
    FUNCTION(name##_min, type, HVD_MIN) \
    FUNCTION(name##_max, type, HVD_MAX) \
    FUNCTION(name##_product, type, HVD_PRODUCT)
OWN_LIST(FUNCTIONS)

static const enum hvd_op own_ops[MPI_OWN_OPS] = {HVD_SUM, HVD_MIN, HVD_MAX, HVD_PRODUCT};

static const struct {
    enum hvd_type type;
    MPI_User_function *functions[MPI_OWN_OPS]; /* in the order of own_ops */
} own_types[MPI_OWN_TYPES] = {
#define ROW(type, name, mpi_type) {type, {name##_sum, name##_min, name##_max, name##_product}},
    OWN_LIST(ROW)
#undef ROW
};

void mpi_types_init(struct mpi_types *types)
{
    for (int i = 0; i < MPI_OWN_TYPES; i++)
        for (int k = 0; k < MPI_OWN_OPS; k++)
            types->ops[i][k] = MPI_OP_NULL;
}

int mpi_types_create(struct mpi_types *types)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < MPI_OWN_TYPES; i++)
        for (int k = 0; k < MPI_OWN_OPS && code == MPI_SUCCESS; k++)
            code = MPI_Op_create(own_types[i].functions[k], 1, &types->ops[i][k]);
    return code;
}

void mpi_types_destroy(struct mpi_types *types)
{
    for (int i = 0; i < MPI_OWN_TYPES; i++)
        for (int k = 0; k < MPI_OWN_OPS; k++)
            if (types->ops[i][k] != MPI_OP_NULL)
                MPI_Op_free(&types->ops[i][k]);
}

static MPI_Datatype mpi_type_of(enum hvd_type type)
{
    switch (type) {
    case HVD_FLOAT32: return MPI_FLOAT;
    case HVD_FLOAT64: return MPI_DOUBLE;
#define CASE(type, name, mpi_type) \
    case type: return mpi_type;
        OWN_LIST(CASE)
#undef CASE
    }
    return MPI_DATATYPE_NULL;
}

static MPI_Op mpi_op_of(enum hvd_op op)
{
    switch (op) {
    case HVD_SUM: return MPI_SUM;
    case HVD_MIN: return MPI_MIN;
    case HVD_MAX: return MPI_MAX;
    case HVD_PRODUCT: return MPI_PROD;
    default: return MPI_OP_NULL;
    }
}

static MPI_Op own_op_of(const struct mpi_types *types, enum hvd_type type, enum hvd_op op)
{
    for (int i = 0; i < MPI_OWN_TYPES; i++)
        for (int k = 0; k < MPI_OWN_OPS; k++)
            if (own_types[i].type == type && own_ops[k] == op)
                return types->ops[i][k];
    return MPI_OP_NULL;
}

bool mpi_types_find(const struct mpi_types *types, enum hvd_type type, enum hvd_op op,
                    MPI_Datatype *mpi_type, MPI_Op *mpi_op)
{
    *mpi_type = mpi_type_of(type);
    *mpi_op =
        type == HVD_FLOAT32 || type == HVD_FLOAT64 ? mpi_op_of(op) : own_op_of(types, type, op);
    return *mpi_type != MPI_DATATYPE_NULL && *mpi_op != MPI_OP_NULL;
}
