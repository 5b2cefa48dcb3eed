/* SPDX-License-Identifier: Apache-2.0 */
#include "node/pci.h"

#include <ctype.h>
#include <dirent.h>
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

static bool is_active(const char *folder, const char *port)
{
    char *path AUTO_FREE = mem_printf("%s/ports/%s/state", folder, port);
    struct buf text AUTO_BUF = BUF_INIT(256);
    return fd_read_file(path, &text, NULL) == 0 && strstr(buf_text(&text), "ACTIVE") != NULL;
}

static void add_ports(const char *root, const char *name, struct device_list *out)
{
    char *folder AUTO_FREE = mem_printf("%s/sys/class/infiniband/%s", root, name);
    char *link AUTO_FREE = mem_printf("%s/device", folder);
    char *ports AUTO_FREE = mem_printf("%s/ports", folder);
    char *real AUTO_FREE = realpath(link, NULL); /* software adapters have none */
    const char *address = real == NULL ? NULL : strrchr(real, '/') + 1;
    DIR *dir = opendir(ports);
    if (dir == NULL)
        return;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (!isdigit((unsigned char)entry->d_name[0]) || !is_active(folder, entry->d_name))
            continue;
        struct device device = {.kind = DEVICE_NIC,
                                .name = mem_strdup(name),
                                .pci = mem_strdup(address),
                                .number = (int)strtol(entry->d_name, NULL, 10)};
        pci_locate(root, &device);
        device_list_add(out, &device);
    }
    closedir(dir);
}

void nics_read(const char *root, struct device_list *out)
{
    *out = (struct device_list){0};
    char *path AUTO_FREE = mem_printf("%s/sys/class/infiniband", root);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.')
            add_ports(root, entry->d_name, out);
    }
    closedir(dir);
    device_list_sort(out);
}
