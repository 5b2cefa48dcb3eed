/* SPDX-License-Identifier: Apache-2.0 */
#include "node/gpus.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/child.h"
#include "model/binding/gpu_visible.h"

#define INFORMATION_MAX ((size_t)64 << 10)
#define MINOR_MAX 128
#define CONTROL "/dev/nvidiactl" /* of the driver */

/* Calls `each` for the entries of root/folder that do not begin with a dot; false: no such folder.
 */
static bool each_entry(const char *root, const char *folder,
                       void (*each)(const char *root, const char *name, struct device_list *out),
                       struct device_list *out)
{
    char *path AUTO_FREE = mem_printf("%s%s", root, folder);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return false;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.')
            each(root, entry->d_name, out);
    }
    closedir(dir);
    return true;
}

static bool can(const char *root, const char *file, int how)
{
    char *path AUTO_FREE = mem_printf("%s%s", root, file);
    return access(path, how) == 0;
}

/* access() asks the devices cgroup too, so a device of another job is not counted. */
static bool may_open(const char *root, const char *prefix, int number)
{
    char *file AUTO_FREE = mem_printf("/dev/%s%d", prefix, number);
    return can(root, file, R_OK | W_OK);
}

/* The device files are made at the first use where this program is installed and nothing has used
 * a GPU since the boot; then all of them can be opened. */
static bool makes_files_later(const char *root)
{
    return !can(root, CONTROL, F_OK) && can(root, "/usr/bin/nvidia-modprobe", X_OK);
}

/* The text after "name:" in lines of "name: value"; NULL: no such line. The caller owns it. */
static char *value_of(const char *text, const char *name)
{
    const char *value = text_line_after(text, name);
    if (value == NULL)
        return NULL;
    value += strspn(value, ": \t");
    return mem_strndup(value, strcspn(value, "\r\n"));
}

static void add_nvidia(const char *root, const char *address, struct device_list *out)
{
    char *path AUTO_FREE = mem_printf("%s/proc/driver/nvidia/gpus/%s/information", root, address);
    struct buf text AUTO_BUF = BUF_INIT(INFORMATION_MAX);
    (void)fd_read_file(path, &text, NULL);
    char *minor AUTO_FREE = value_of(buf_text(&text), "Device Minor");
    char *excluded AUTO_FREE = value_of(buf_text(&text), "GPU Excluded");
    char *id AUTO_FREE = value_of(buf_text(&text), "GPU UUID");
    if (excluded != NULL && strcmp(excluded, "Yes") == 0)
        return;
    if (minor != NULL && !may_open(root, "nvidia", (int)strtol(minor, NULL, 10)) &&
        !makes_files_later(root))
        return;
    bool known = id != NULL && id[0] != '\0' && strchr(id, '?') == NULL;
    struct device device = {
        .kind = DEVICE_NVIDIA, .name = known ? id : NULL, .pci = mem_strdup(address), .numa = -1};
    if (known)
        id = NULL;
    device_list_add(out, &device);
}

/* One entry of /sys/bus/pci/drivers/nvidia: a device to which it is bound, or a file of its own. */
static void add_bound(const char *root, const char *address, struct device_list *out)
{
    if (strchr(address, ':') == NULL)
        return;
    char *path AUTO_FREE = mem_printf("%s/sys/bus/pci/devices/%s/class", root, address);
    struct buf text AUTO_BUF = BUF_INIT(64);
    if (fd_read_file(path, &text, NULL) < 0 || strncmp(buf_text(&text), "0x03", 4) != 0)
        return;
    struct device device = {.kind = DEVICE_NVIDIA, .pci = mem_strdup(address), .numa = -1};
    device_list_add(out, &device);
}

/* Which file belongs to which device is not known here: when there are fewer files, their number
 * counts, without places. */
static void match_files(const char *root, struct device_list *out)
{
    int files = 0;
    if (!can(root, CONTROL, F_OK)) {
        if (out->count > 0 && !makes_files_later(root))
            device_list_destroy(out);
        return;
    }
    for (int minor = 0; minor < MINOR_MAX; minor++)
        files += may_open(root, "nvidia", minor);
    if (files == (int)out->count)
        return;
    device_list_destroy(out);
    gpus_fill_unknown(out, files);
}

/* One node of the compute driver; those without SIMD units are CPUs. */
static void add_amd(const char *root, const char *node, struct device_list *out)
{
    char *path AUTO_FREE =
        mem_printf("%s/sys/class/kfd/kfd/topology/nodes/%s/properties", root, node);
    static const char *const names[] = {"simd_count", "drm_render_minor", "domain", "location_id",
                                        "unique_id"};
    struct buf text AUTO_BUF = BUF_INIT(INFORMATION_MAX);
    unsigned long long values[5] = {0};
    /* of another job: the devices cgroup lets us not even read it */
    if (fd_read_file(path, &text, NULL) < 0)
        return;
    for (size_t i = 0; i < 5; i++) {
        char *value AUTO_FREE = value_of(buf_text(&text), names[i]);
        values[i] = value == NULL ? 0 : strtoull(value, NULL, 10);
    }
    if (values[0] == 0 || !may_open(root, "dri/renderD", (int)(values[1] & 0xffff)))
        return;
    unsigned location = (unsigned)values[3] & 0xffff;
    struct device device = {.kind = DEVICE_AMD, .number = (int)strtol(node, NULL, 10), .numa = -1};
    device.pci = mem_printf("%04x:%02x:%02x.%x", (unsigned)values[2] & 0xffff, location >> 8,
                            location >> 3 & 31, location & 7);
    device.name = values[4] == 0 ? NULL : mem_printf("GPU-%016llx", values[4]);
    device_list_add(out, &device);
}

void gpus_list(const char *root, struct device_list *out)
{
    *out = (struct device_list){0};
    if (!each_entry(root, "/proc/driver/nvidia/gpus", add_nvidia, out)) {
        (void)each_entry(root, "/sys/bus/pci/drivers/nvidia", add_bound, out);
        match_files(root, out);
    }
    if (out->count == 0)
        (void)each_entry(root, "/sys/class/kfd/kfd/topology/nodes", add_amd, out);
    device_list_sort(out);
}

int pci_read_number(const char *path, int missing)
{
    struct buf text AUTO_BUF = BUF_INIT(64);
    if (fd_read_file(path, &text, NULL) < 0 || !isdigit((unsigned char)*buf_text(&text)))
        return missing;
    long value = strtol(buf_text(&text), NULL, 10);
    return value < 1000000 ? (int)value : missing;
}

/* Fills path, numa and cpus of a device whose PCI address is known; what /sys does not have stays
 * unknown. */
static void locate(const char *root, struct device *device)
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

void gpus_read(const char *root, struct device_list *out)
{
    gpus_list(root, out);
    for (size_t i = 0; i < out->count; i++)
        locate(root, &out->items[i]);
}

void gpus_fill_unknown(struct device_list *out, int count)
{
    for (int i = 0; i < count; i++)
        device_list_add(out, &(struct device){.kind = DEVICE_NVIDIA, .numa = -1});
}

int gpus_seen(const struct device_list *gpus)
{
    struct gpu_visible visible;
    if (gpus->count == 0)
        return 0;
    gpu_visible_fill(&visible, gpus, getenv(gpu_visible_name(gpus->items[0].kind)));
    int count = (int)visible.words.count;
    gpu_visible_clear(&visible);
    return count;
}

int gpus_count(const char *root)
{
    struct device_list gpus;
    gpus_list(root, &gpus);
    int count = gpus_seen(&gpus);
    device_list_destroy(&gpus);
    return count;
}

bool gpus_have_control(const char *root)
{
    return can(root, CONTROL, F_OK) || can(root, "/dev/dxg", F_OK);
}

/* Adapters */

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
        locate(root, &device);
        device_list_add(out, &device);
    }
    closedir(dir);
}

void nics_read(const char *root, struct device_list *out)
{
    *out = (struct device_list){0};
    (void)each_entry(root, "/sys/class/infiniband", add_ports, out);
    device_list_sort(out);
}

/* The question to nvidia-smi. */

#define WSL_FOLDER "/usr/lib/wsl/lib"
#define ANSWER_MAX ((size_t)64 << 10)

char *gpus_ask_program(const char *root, const char *search)
{
    if (!gpus_have_control(root))
        return NULL;
    char *path AUTO_FREE =
        search == NULL ? mem_strdup(WSL_FOLDER) : mem_printf("%s:" WSL_FOLDER, search);
    return child_find("nvidia-smi", path, NULL, NULL);
}

/* Lines "GPU 0: NVIDIA H100 (UUID: GPU-...)"; MIG devices have lines of their own below. */
int gpus_answered(const struct program_result *result)
{
    static const char begin[] = "GPU ";
    const char *line = result->why == NULL ? text_line_after(result->text, begin) : NULL;
    int count = 0;
    for (; line != NULL; line = text_line_after(strchrnul(line, '\n'), begin))
        count++;
    return count;
}

struct program *gpus_ask(struct loop *loop, struct helpers *helpers, const char *program,
                         int64_t limit_ms,
                         void (*done)(void *context, const struct program_result *result),
                         void *context)
{
    char *const argv[] = {(char *)"nvidia-smi", (char *)"-L", NULL};
    const struct program_spec spec = {.loop = loop,
                                      .helpers = helpers,
                                      .path = program,
                                      .argv = argv,
                                      .output_max = ANSWER_MAX,
                                      .drops_excess = true,
                                      .time_max_ms = limit_ms};
    return program_start(&spec, done, context);
}
