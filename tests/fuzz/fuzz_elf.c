/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files: what a program links with, and what an image needs of a host. */
#include "base/elf.h"
#include "fuzz.h"
#include "model/settings/mpi_names.h"
#include "node/mpi_detect.h"
#include "transport/boot/agent_image.h"
#include "transport/boot/inside_test.h"

FUZZ_TARGET
{
    struct elf_info info;
    struct image_facts facts;
    struct error err = ERROR_INIT;
    if (elf_parse(data, size, &info) == 0) {
        for (size_t i = 0; i < info.needed.count; i++)
            mpi_names_kind(info.needed.items[i]);
    }
    elf_info_destroy(&info);
    fuzz_check_error(image_facts_read(data, size, &facts, &err), &err);
    return 0;
}
