/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/evidence.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"

/* ---- Lines of NVIDIA's driver ---------------------------------------------------------------- */

#define XID_MARK "NVRM: Xid ("

/* NVIDIA's names, from its catalogue of XID errors. */
static const struct row {
    int number;
    enum xid_blame blame;
    const char *text;
} rows[] = {
    {13, XID_PROGRAM, "graphics engine exception"},
    {31, XID_PROGRAM, "memory page fault"},
    {43, XID_PROGRAM, "the GPU stopped processing"},
    {45, XID_NOBODY, "cleanup after an earlier error"},
    {48, XID_GPU, "double-bit ECC error"},
    {62, XID_GPU, "halt of the internal micro-controller"},
    {63, XID_GPU, "row remapping or page retirement"},
    {64, XID_GPU, "failed row remapping or page retirement"},
    {74, XID_GPU, "NVLink error"},
    {79, XID_GPU, "the GPU has fallen off the bus"},
    {92, XID_GPU, "many single-bit ECC errors"},
    {94, XID_GPU, "contained memory error"},
    {95, XID_GPU, "uncontained memory error"},
    {119, XID_GPU, "the GPU's system processor did not answer"},
    {120, XID_GPU, "error of the GPU's system processor"},
};

static const struct row *find(int number)
{
    static const struct row other = {0, XID_NOBODY, NULL};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].number == number)
            return &rows[i];
    }
    return &other;
}

const char *xid_text(int number)
{
    return find(number)->text;
}

enum xid_blame xid_blame(int number)
{
    return find(number)->blame;
}

/* What follows the key, up to a comma. */
static void take_word(const char *line, size_t length, const char *key, char *out, size_t size)
{
    size_t key_length = strlen(key);
    const char *found = memmem(line, length, key, key_length);
    out[0] = '\0';
    if (found == NULL)
        return;
    found += key_length;
    size_t word = strcspn(found, ", \n");
    word = word < size - 1 ? word : size - 1;
    if (memchr(found, '<', word) != NULL) /* <unknown> */
        return;
    memcpy(out, found, word);
    out[word] = '\0';
}

bool xid_read(const char *line, struct xid *out)
{
    size_t length = strcspn(line, "\n");
    const char *place = memmem(line, length, XID_MARK, strlen(XID_MARK));
    const char *end =
        place == NULL ? NULL : memmem(place, length - (size_t)(place - line), "): ", 3);
    if (end == NULL)
        return false;
    place += strlen(XID_MARK);
    place += strncmp(place, "PCI:", 4) == 0 ? 4 : 0; /* older drivers do not write it */
    *out = (struct xid){.number = (int)strtoul(end + 3, NULL, 10)};
    if (end <= place || (size_t)(end - place) >= sizeof(out->pci) || out->number <= 0)
        return false;
    memcpy(out->pci, place, (size_t)(end - place));
    size_t rest = length - (size_t)(end - line);
    take_word(end, rest, "pid=", out->pid, sizeof(out->pid));
    take_word(end, rest, "name=", out->name, sizeof(out->name));
    return true;
}

/* The driver writes the domain with four digits, its library with eight, and the letters of one are
 * small. */
bool xid_is_of(const struct xid *xid, const char *pci)
{
    char *after_domain, *after_other;
    unsigned long domain = strtoul(xid->pci, &after_domain, 16),
                  other = strtoul(pci, &after_other, 16);
    size_t length = strlen(after_domain);
    return domain == other && after_domain[0] == ':' && length == strlen(":3b:00") &&
           strncasecmp(after_domain, after_other, length) == 0 && after_other[length] == '.';
}

/* GPUs: errors, and clocks that are too low. */

#define TEXT_MAX ((size_t)400)
#define PRESSURE 10.0 /* percent of the last 10 s in which all tasks waited for memory */
#define XIDS_MAX 16

struct xids {
    struct xid list[XIDS_MAX];
    size_t count;
};

static bool is_old(const char *line, double since_s)
{
    return line[0] == '[' && strtod(line + 1, NULL) < since_s;
}

/* Those of the job, in order. */
static void read_xids(const struct explain_host *host, double since_s, struct xids *out)
{
    *out = (struct xids){.count = 0};
    for (const char *line = host->xid; line != NULL && *line != '\0' && out->count < XIDS_MAX;) {
        if (!is_old(line, since_s) && xid_read(line, &out->list[out->count]))
            out->count++;
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
}

__attribute__((format(printf, 2, 3))) static void add(struct buf *out, const char *format, ...)
{
    va_list args;
    if (out->length > 0)
        buf_puts(out, "; ");
    va_start(args, format);
    buf_vprintf(out, format, args);
    va_end(args);
}

static bool has_errors(const struct explain_gpu *gpu)
{
    return gpu->trouble != NULL || gpu->uncorrected > 0 || gpu->remapping_failed ||
           gpu->remapping_pending;
}

static void put_errors(const struct explain_gpu *gpu, struct buf *out)
{
    if (gpu->trouble != NULL)
        add(out, "it %s", gpu->trouble);
    if (gpu->remapping_failed)
        add(out, "it could not replace a bad row of its memory");
    else if (gpu->remapping_pending)
        add(out, "it replaces a bad row of its memory at the next reset");
    if (gpu->uncorrected > 0)
        add(out, "%lld uncorrected ECC error%s since its driver was loaded",
            (long long)gpu->uncorrected, gpu->uncorrected == 1 ? "" : "s");
}

static void put_xid(const struct xid *xid, struct buf *out)
{
    const char *text = xid_text(xid->number);
    add(out, "XID %d", xid->number);
    if (text != NULL)
        buf_printf(out, ", %s", text);
    if (xid->name[0] != '\0')
        buf_printf(out, ", in %s (pid %s)", xid->name, xid->pid);
    else if (xid->pid[0] != '\0')
        buf_printf(out, ", in pid %s", xid->pid);
}

/* The first one of a GPU is the cause of those that follow. Returns how many there are. */
static size_t put_xids(const struct xids *xids, const char *pci, struct buf *out)
{
    size_t count = 0;
    for (size_t i = 0; i < xids->count; i++) {
        if (!xid_is_of(&xids->list[i], pci))
            continue;
        if (count++ == 0)
            put_xid(&xids->list[i], out);
    }
    if (count > 1)
        buf_printf(out, ", and %zu more", count - 1);
    return count;
}

static void tell_errors(const struct explain_host *host, const struct xids *xids, struct strv *out)
{
    for (size_t i = 0; i < host->gpu_count; i++) {
        const struct explain_gpu *gpu = &host->gpus[i];
        struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
        put_xids(xids, gpu->pci == NULL ? "" : gpu->pci, &text);
        put_errors(gpu, &text);
        if (text.length > 0)
            strv_printf(out, "GPU %d: %s", gpu->index, buf_text(&text));
    }
}

static bool is_listed(const struct explain_host *host, const struct xid *xid)
{
    for (size_t i = 0; i < host->gpu_count; i++) {
        if (host->gpus[i].pci != NULL && xid_is_of(xid, host->gpus[i].pci))
            return true;
    }
    return false;
}

/* A GPU that has fallen off the bus may be unknown to the library. One line for each address. */
static void tell_unlisted(const struct explain_host *host, const struct xids *xids,
                          struct strv *out)
{
    for (size_t i = 0; i < xids->count; i++) {
        const struct xid *xid = &xids->list[i];
        bool told = is_listed(host, xid);
        for (size_t j = 0; j < i && !told; j++)
            told = strcmp(xids->list[j].pci, xid->pci) == 0;
        if (told)
            continue;
        struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
        put_xid(xid, &text);
        strv_printf(out, "the GPU at %s: %s", xid->pci, buf_text(&text));
    }
}

static void tell_slow(const struct explain_host *host, struct strv *out)
{
    for (size_t i = 0; i < host->gpu_count; i++) {
        const struct explain_gpu *gpu = &host->gpus[i];
        struct buf heat AUTO_BUF = BUF_INIT(TEXT_MAX);
        if (gpu->slowed_by == NULL || has_errors(gpu))
            continue;
        if (gpu->celsius > 0)
            buf_printf(&heat, ", at %d degrees Celsius", gpu->celsius);
        strv_printf(out, "GPU %d has lower clocks: %s%s", gpu->index, gpu->slowed_by,
                    buf_text(&heat));
    }
}

/* One text for each GPU, those with errors first. */
static void gpu_signs(const struct explain_host *host, double since_s, struct strv *out)
{
    struct xids xids;
    read_xids(host, since_s, &xids);
    tell_errors(host, &xids, out);
    tell_unlisted(host, &xids, out);
    if (host->gpus_missing != NULL)
        strv_add(out, host->gpus_missing);
    tell_slow(host, out);
}

enum gpu_fault gpu_signs_fault(const struct explain_host *host, double since_s)
{
    enum gpu_fault worst = GPU_FAULT_NONE;
    struct xids xids;
    read_xids(host, since_s, &xids);
    for (size_t i = 0; i < xids.count; i++) {
        enum xid_blame blame = xid_blame(xids.list[i].number);
        if (blame == XID_GPU)
            return GPU_FAULT_GPU;
        if (blame == XID_PROGRAM)
            worst = GPU_FAULT_PROGRAM;
    }
    for (size_t i = 0; i < host->gpu_count; i++) {
        if (host->gpus[i].trouble != NULL || host->gpus[i].remapping_failed)
            return GPU_FAULT_GPU;
    }
    return worst;
}

/* The host. */

/* Lines of the kernel that are about a process or the hardware. */
static const char *const kernel_words[] = {
    "Out of memory", "out of memory",  "oom-kill",  "segfault at",           "Hardware Error",
    "soft lockup",   "not responding", "I/O error", "blocked for more than",
};

/* The end of a line that begins with these words. NULL: there is none. */
static const char *after(const char *text, const char *words)
{
    size_t length = strlen(words);
    while (text != NULL && *text != '\0') {
        if (strncmp(text, words, length) == 0)
            return text + length;
        text = strchr(text, '\n');
        text = text == NULL ? NULL : text + 1;
    }
    return NULL;
}

long host_signs_memory_kills(const struct explain_host *host)
{
    const char *count = after(host->memory, "cgroup oom_kill ");
    return count == NULL ? 0 : strtol(count, NULL, 10);
}

char *host_signs_full_folder(const struct explain_host *host)
{
    for (const char *line = host->folders; line != NULL && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char *copy AUTO_FREE = mem_strndup(line, length);
        const char *colon = strstr(copy, ": ");
        if (colon != NULL && strstr(copy, "it is full") != NULL)
            return mem_strndup(copy, (size_t)(colon - copy));
        line += length + (line[length] == '\n');
    }
    return NULL;
}

static double memory_pressure(const struct explain_host *host)
{
    const char *value = after(host->pressure, "memory full avg10=");
    return value == NULL ? 0 : strtod(value, NULL);
}

static bool has_number(const char *text, const char *number)
{
    size_t length = strlen(number);
    for (const char *at = text; (at = strstr(at, number)) != NULL; at += length) {
        bool begins = at == text || !isdigit((unsigned char)at[-1]);
        if (begins && !isdigit((unsigned char)at[length]))
            return true;
    }
    return false;
}

/* "[101.5] python3[2091]: segfault at ...": is it a rank, or a process that the rank names in its
 * output? Other programs of the host crash, too. */
static bool may_be_ours(const char *line, const struct explain_facts *facts,
                        const struct explain_host *host)
{
    char *copy AUTO_FREE = mem_strdup(line);
    char *end = strstr(copy, "]: segfault at");
    if (end == NULL)
        return true;
    *end = '\0';
    const char *begin = strrchr(copy, '['), *pid = begin == NULL ? "" : begin + 1;
    for (size_t i = 0; i < facts->rank_count; i++) {
        const struct explain_rank *rank = &facts->ranks[i];
        if (rank->pid == strtol(pid, NULL, 10) && strcmp(rank->host, host->host) == 0)
            return true;
    }
    return pid[0] != '\0' && facts->said != NULL && has_number(facts->said, pid);
}

static bool has_word(const char *line)
{
    for (size_t i = 0; i < sizeof(kernel_words) / sizeof(kernel_words[0]); i++) {
        if (strstr(line, kernel_words[i]) != NULL)
            return true;
    }
    return false;
}

/* The last line with one of the words. The caller frees it. NULL: none. */
static char *kernel_line(const struct explain_facts *facts, const struct explain_host *host)
{
    char *last = NULL;
    for (const char *line = host->kernel; line != NULL && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char *copy = mem_strndup(line, length);
        if (has_word(copy) && !is_old(copy, facts->started_s) && may_be_ours(copy, facts, host)) {
            free(last);
            last = copy;
        } else {
            free(copy);
        }
        line += length + (line[length] == '\n');
    }
    return last;
}

void host_signs(const struct explain_facts *facts, const struct explain_host *host,
                struct strv *out)
{
    long kills = host_signs_memory_kills(host);
    double pressure = memory_pressure(host);
    char *full AUTO_FREE = host_signs_full_folder(host), *line AUTO_FREE = kernel_line(facts, host);
    if (host->lost)
        strv_add(out, "the host was lost");
    else if (host->lost_later)
        strv_add(out, "its agent was lost, too");
    else if (host->silent)
        strv_add(out, "its agent did not answer");
    if (kills > 0)
        strv_printf(out, "the kernel has killed %ld process%s of its cgroup for lack of memory",
                    kills, kills == 1 ? "" : "es");
    gpu_signs(host, facts->started_s, out);
    if (pressure > PRESSURE)
        strv_printf(out, "all tasks waited for memory during %.0f %% of 10 s", pressure);
    if (full != NULL)
        strv_printf(out, "%s is full", full);
    if (line != NULL)
        strv_printf(out, "its kernel: %s", line);
}
