/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kubernetes: mpi-operator and Kubeflow Trainer mount a hostfile into the launcher of an MPI job
 * and name it by the variable of the MPI that the job is for. Outside of Kubernetes these variables
 * are the user's, for an MPI of his own, and say nothing about an allocation.
 */
#include "model/allocation/kubernetes.h"

#include <stddef.h>

#include "model/hosts/hostfile.h"

bool allocation_kubernetes_has(char *const *env, const char **file)
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

int allocation_kubernetes_parse(const struct allocation_source *source, struct allocation *out,
                                struct error *err)
{
    const struct hostfile file = {
        .bytes = source->bytes, .length = source->length, .name = source->file};
    return hostfile_parse(&file, &out->hosts, err);
}
