/* SPDX-License-Identifier: Apache-2.0 */
/* The modules as parts of hvdrun-agent. The build defines the names of their files. */

#include "agent/modules.h"

#define INSIDE(symbol, file)                           \
    __asm__(".pushsection .rodata\n"                   \
            ".balign 64\n" #symbol "_begin:\n"         \
            ".incbin \"" file "\"\n" #symbol "_end:\n" \
            ".byte 0\n"                                \
            ".popsection\n");                          \
    extern const unsigned char symbol##_begin[], symbol##_end[]

INSIDE(hvdrun_pmix_module, HVDRUN_PMIX_FILE);
INSIDE(hvdrun_topology_module, HVDRUN_TOPOLOGY_FILE);
INSIDE(hvdrun_tls_module, HVDRUN_TLS_FILE);
INSIDE(hvdrun_unwind_module, HVDRUN_UNWIND_FILE);

const struct module_image modules_inside[] = {
    {"hvdrun-pmix.so", hvdrun_pmix_module_begin, hvdrun_pmix_module_end},
    {"hvdrun-topology.so", hvdrun_topology_module_begin, hvdrun_topology_module_end},
    {"hvdrun-tls.so", hvdrun_tls_module_begin, hvdrun_tls_module_end},
    {"hvdrun-unwind.so", hvdrun_unwind_module_begin, hvdrun_unwind_module_end},
    {NULL, NULL, NULL},
};
