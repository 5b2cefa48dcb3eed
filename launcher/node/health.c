/* SPDX-License-Identifier: Apache-2.0 */
#include "node/health.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "node/gpus.h"
#include "node/runtime_dir.h"

#define FILE_MAX ((size_t)4 << 20)
#define PORTS_MAX 256 /* of adapters: more than any machine has */

/* A whole small file; "" when it cannot be read. The caller's. */
static char *read_text(const char *root, const char *path)
{
    struct buf text AUTO_BUF = BUF_INIT(FILE_MAX);
    char *whole AUTO_FREE = mem_printf("%s%s", root, path);
    if (fd_read_file(whole, &text, NULL) < 0)
        return mem_strdup("");
    return mem_strdup(buf_text(&text));
}

/* Folders */

static void ask_space(struct health_folder *folder)
{
    struct statvfs info;
    if (statvfs(folder->path, &info) < 0)
        return;
    folder->free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    folder->total_bytes = (uint64_t)info.f_blocks * info.f_frsize;
    folder->noexec = (info.f_flag & ST_NOEXEC) != 0;
}

/* As agents do it: they make a folder of their own there. */
static void read_folder(const char *what, const char *place, struct health_folder *folder)
{
    struct error err = ERROR_INIT;
    struct runtime_dir *dir = runtime_dir_create_in(place, &err);
    *folder = (struct health_folder){.what = what, .path = mem_strdup(place)};
    ask_space(folder);
    if (dir == NULL)
        folder->problem = mem_strdup(err.text);
    runtime_dir_destroy(dir);
}

/* The system */

static char *read_system(const char *root)
{
    char *text AUTO_FREE = read_text(root, "/etc/os-release");
    const char *name = text_line_after(text, "PRETTY_NAME=");
    if (name == NULL)
        return mem_strdup("");
    name += strspn(name, "\"'");
    return mem_strndup(name, strcspn(name, "\"'\n"));
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  ...": the first word that begins
 * with a digit and has a point. */
static char *nvidia_version(const char *text)
{
    AUTO_STRV struct strv words = STRV_INIT;
    char *line AUTO_FREE = mem_strndup(text, strcspn(text, "\n"));
    strv_split(&words, line, " \t");
    for (size_t i = 0; i < words.count; i++) {
        if (isdigit((unsigned char)words.items[i][0]) && strchr(words.items[i], '.') != NULL)
            return mem_printf("NVIDIA %s", words.items[i]);
    }
    return NULL;
}

static char *read_gpu_driver(const char *root)
{
    char *nvidia AUTO_FREE = read_text(root, "/proc/driver/nvidia/version");
    char *version = nvidia_version(nvidia);
    if (version != NULL)
        return version;
    char *amd AUTO_FREE = read_text(root, "/sys/module/amdgpu/version");
    size_t length = strcspn(amd, "\n");
    return length > 0 ? mem_printf("AMD %.*s", (int)length, amd) : mem_strdup("");
}

/* As NVIDIA's driver calls it; the caller's. */
static char *read_model(const char *root, const char *pci)
{
    char *path AUTO_FREE = mem_printf("/proc/driver/nvidia/gpus/%s/information", pci);
    char *text AUTO_FREE = read_text(root, path);
    const char *model = text_line_after(text, "Model:");
    if (model == NULL)
        return mem_strdup("NVIDIA");
    model += strspn(model, " \t");
    return mem_strndup(model, strcspn(model, "\n"));
}

static void read_gpus(const char *root, struct strv *out)
{
    struct device_list gpus = {.count = 0};
    gpus_list(root, &gpus);
    for (size_t i = 0; i < gpus.count; i++) {
        const struct device *gpu = &gpus.items[i];
        bool nvidia = gpu->kind == DEVICE_NVIDIA && gpu->pci != NULL;
        char *model AUTO_FREE = nvidia                       ? read_model(root, gpu->pci)
                                : gpu->kind == DEVICE_NVIDIA ? mem_strdup("NVIDIA")
                                                             : mem_strdup("AMD");
        if (gpu->pci != NULL)
            strv_printf(out, "%s (%s)", model, gpu->pci);
        else
            strv_add(out, model);
    }
    device_list_destroy(&gpus);
}

/* Adapters */

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in a folder, sorted. */
static void list_names(const char *root, const char *path, struct strv *out)
{
    char *whole AUTO_FREE = mem_printf("%s%s", root, path);
    DIR *dir = opendir(whole);
    if (dir == NULL)
        return;
    for (struct dirent *entry = readdir(dir); entry != NULL && out->count < PORTS_MAX;
         entry = readdir(dir)) {
        if (entry->d_name[0] != '.')
            strv_add(out, entry->d_name);
    }
    closedir(dir);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof(*out->items), compare_text);
}

/* "4: ACTIVE\n" without the number. */
static char *read_word(const char *root, const char *adapter, const char *port, const char *file)
{
    char *path AUTO_FREE = mem_printf("/sys/class/infiniband/%s/ports/%s/%s", adapter, port, file);
    char *text AUTO_FREE = read_text(root, path);
    const char *colon = strstr(text, ": ");
    const char *word = colon == NULL ? text : colon + 2;
    return mem_strndup(word, strcspn(word, "\n"));
}

static void read_adapters(const char *root, struct strv *out)
{
    struct strv adapters AUTO_STRV = STRV_INIT;
    list_names(root, "/sys/class/infiniband", &adapters);
    for (size_t i = 0; i < adapters.count; i++) {
        struct strv ports AUTO_STRV = STRV_INIT;
        char *path AUTO_FREE = mem_printf("/sys/class/infiniband/%s/ports", adapters.items[i]);
        list_names(root, path, &ports);
        for (size_t j = 0; j < ports.count && out->count < PORTS_MAX; j++) {
            char *state AUTO_FREE = read_word(root, adapters.items[i], ports.items[j], "state");
            char *rate AUTO_FREE = read_word(root, adapters.items[i], ports.items[j], "rate");
            strv_printf(out, "%s:%s %s %s", adapters.items[i], ports.items[j],
                        state[0] == '\0' ? "?" : state, rate);
        }
    }
}

/* /etc/hosts */

/* Is `name` among the words behind the address? */
static bool names_it(const struct strv *words, const char *name)
{
    size_t i = 1;
    while (i < words->count && strcasecmp(words->items[i], name) != 0)
        i++;
    return i < words->count;
}

/* The resolver takes the first line, so that one counts. */
static char *read_own_address(const char *root, const char *hostname)
{
    char *text AUTO_FREE = read_text(root, "/etc/hosts");
    for (const char *line = text; *line != '\0';) {
        AUTO_STRV struct strv words = STRV_INIT;
        char *before AUTO_FREE = mem_strndup(line, strcspn(line, "#\n")); /* a comment */
        strv_split(&words, before, " \t\r");
        bool found = names_it(&words, hostname) && strchr(words.items[0], ':') == NULL;
        if (found)
            return mem_strdup(text_begins(words.items[0], "127.") ? words.items[0] : "");
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return mem_strdup("");
}

void health_read(const char *root, const char *hostname, struct health *out)
{
    *out = (struct health){.adapters = STRV_INIT, .gpus = STRV_INIT};
    read_folder("tmp", runtime_dir_tmpdir(), &out->folders[0]);
    read_folder("shm", RUNTIME_DIR_SHARED_MEMORY, &out->folders[1]);
    out->system = read_system(root);
    out->gpu_driver = read_gpu_driver(root);
    read_gpus(root, &out->gpus);
    read_adapters(root, &out->adapters);
    bool local = hostname[0] == '\0' || strcasecmp(hostname, "localhost") == 0;
    out->own_address = local ? mem_strdup("") : read_own_address(root, hostname);
}

void health_clear(struct health *health)
{
    for (int i = 0; i < HEALTH_FOLDERS; i++) {
        free(health->folders[i].path);
        free(health->folders[i].problem);
    }
    free(health->system);
    free(health->gpu_driver);
    free(health->own_address);
    strv_destroy(&health->adapters);
    strv_destroy(&health->gpus);
    *health = (struct health){.system = NULL};
}

char *health_hwloc(const char *module, struct error *err)
{
    union {
        void *object;
        unsigned (*version)(void);
    } symbol;
    void *handle = dlopen(module, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror();
        error_set(err, "%s", why == NULL ? "unknown reason" : why);
        return NULL;
    }
    symbol.object = dlsym(handle, "hwloc_get_api_version");
    unsigned number = symbol.object == NULL ? 0 : symbol.version();
    /* 0x00020900 */
    char *text =
        number == 0 ? mem_strdup("?") : mem_printf("%u.%u", number >> 16, number >> 8 & 0xffu);
    return text; /* it stays open: libraries below it need not bear to be closed */
}
