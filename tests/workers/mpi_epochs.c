/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PMIx client that makes epochs, for elastic jobs that restart.
 *
 * mpi_epochs FOLDER HELD LAST: all ranks exchange a value. In the epochs HELD and LAST each then
 * says "epoch E rank R in NAMESPACE under PID" (PID: its parent, the agent) and waits for the file
 * FOLDER/go.E. Then the epoch ends: rank 0 fails, having left PMIx in every other epoch only, while
 * the others wait to be ended. In LAST all succeed.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pmix_proc_t me;

static void check(pmix_status_t status, const char *what)
{
    if (status == PMIX_SUCCESS)
        return;
    printf("rank %u: %s: %s\n", me.rank, what, PMIx_Error_string(status));
    _exit(9); /* not what ends an epoch */
}

static void exchange(void)
{
    pmix_value_t value = {.type = PMIX_UINT32, .data = {.uint32 = me.rank + 7}};
    pmix_value_t *got = NULL;
    pmix_proc_t peer;
    pmix_info_t collect;
    bool yes = true;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    check(PMIx_Put(PMIX_GLOBAL, "card", &value), "put");
    check(PMIx_Commit(), "commit");
    PMIX_LOAD_PROCID(&peer, me.nspace, PMIX_RANK_WILDCARD);
    check(PMIx_Fence(&peer, 1, &collect, 1), "fence");
    PMIX_LOAD_PROCID(&peer, me.nspace, me.rank == 0);
    check(PMIx_Get(&peer, "card", NULL, 0, &got), "get");
    check(got->data.uint32 == peer.rank + 7 ? PMIX_SUCCESS : PMIX_ERROR, "the peer's value");
    PMIX_VALUE_RELEASE(got);
}

static void hold(const char *folder, long epoch)
{
    char path[4096];
    struct timespec moment = {.tv_nsec = 10000000};
    snprintf(path, sizeof(path), "%s/go.%ld", folder, epoch);
    printf("epoch %ld rank %u in %s under %d\n", epoch, me.rank, me.nspace, (int)getppid());
    fflush(stdout);
    while (access(path, F_OK) != 0)
        nanosleep(&moment, NULL);
}

int main(int argc, char **argv)
{
    const char *text = getenv("HVDRUN_EPOCH");
    if (argc < 4 || text == NULL)
        return 9;
    long epoch = strtol(text, NULL, 10), held = strtol(argv[2], NULL, 10);
    long last = strtol(argv[3], NULL, 10);
    check(PMIx_Init(&me, NULL, 0), "init");
    exchange();
    if (epoch == held || epoch == last)
        hold(argv[1], epoch);
    while (epoch < last && me.rank != 0)
        pause();
    if (epoch < last && epoch % 2 == 0)
        _exit(1);
    PMIx_Finalize(NULL, 0);
    return epoch < last;
}
