/* SPDX-License-Identifier: Apache-2.0 */
#include "node/nics.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "node/pci.h"

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
