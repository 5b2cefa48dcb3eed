/* SPDX-License-Identifier: Apache-2.0 */
/* gloo::allreduce beside libhvd with the engine gloo: hvd_gloo ROUNDS FOLDER [ROW]. The bare ranks
 * meet in the folder. */
#include <memory>
#include <string>

#include "gloo_bare.h"

extern "C" {
#include "hvd_rounds.h"
#include "job.h"
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4)
        worker_fail("usage: hvd_gloo ROUNDS FOLDER [ROW]");
    struct job job = job_begin();
    std::shared_ptr<gloo::Context> context = gloo_bare_context(job.rank, job.size, argv[2]);
    hvd_rounds(gloo_bare, &context, std::stoi(argv[1]), argv[3]);
    hvd_shutdown();
    return 0;
}
