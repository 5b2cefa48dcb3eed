/* SPDX-License-Identifier: Apache-2.0 */
#include "node/pci.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"

int pci_read_number(const char *path, int missing)
{
    struct buf text AUTO_BUF = BUF_INIT(64);
    if (fd_read_file(path, &text, NULL) < 0 || !isdigit((unsigned char)*buf_text(&text)))
        return missing;
    long value = strtol(buf_text(&text), NULL, 10);
    return value < 1000000 ? (int)value : missing;
}

void pci_locate(const char *root, struct device *device)
{
    device->numa = -1;
    if (device->pci == NULL)
        return;
    char *folder AUTO_FREE = mem_printf("%s/sys/bus/pci/devices/%s", root, device->pci);
    char *real AUTO_FREE = realpath(folder, NULL);
    const char *below = real == NULL ? NULL : strstr(real + strlen(root), "/sys/devices/");
    if (below == NULL)
        return;
    device->path = mem_strdup(below + strlen("/sys/devices/"));
    char *numa AUTO_FREE = mem_printf("%s/numa_node", real);
    char *cpus AUTO_FREE = mem_printf("%s/local_cpulist", real);
    struct buf text AUTO_BUF = BUF_INIT(4096);
    device->numa = pci_read_number(numa, -1);
    if (fd_read_file(cpus, &text, NULL) == 0)
        cpu_mask_set_list(&device->cpus, buf_text(&text));
}
