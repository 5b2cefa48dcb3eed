/* SPDX-License-Identifier: Apache-2.0 */
#include "model/explain/gpu_signs.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/explain/xid.h"

#define TEXT_MAX ((size_t)400)
#define XIDS_MAX 16

struct xids {
    struct xid list[XIDS_MAX];
    size_t count;
};

/* Those of the job, in order. */
static void read_xids(const struct explain_host *host, double since_s, struct xids *out)
{
    *out = (struct xids){.count = 0};
    for (const char *line = host->xid; line != NULL && *line != '\0' && out->count < XIDS_MAX;) {
        bool old = line[0] == '[' && strtod(line + 1, NULL) < since_s;
        if (!old && xid_read(line, &out->list[out->count]))
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

static void tell_errors(const struct explain_host *host, const struct xids *xids,
                        void (*each)(void *context, const char *text), void *context)
{
    for (size_t i = 0; i < host->gpu_count; i++) {
        const struct explain_gpu *gpu = &host->gpus[i];
        struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX), line AUTO_BUF = BUF_INIT(TEXT_MAX);
        put_xids(xids, gpu->pci == NULL ? "" : gpu->pci, &text);
        put_errors(gpu, &text);
        if (text.length == 0)
            continue;
        buf_printf(&line, "GPU %d: %s", gpu->index, buf_text(&text));
        each(context, buf_text(&line));
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
                          void (*each)(void *context, const char *text), void *context)
{
    for (size_t i = 0; i < xids->count; i++) {
        const struct xid *xid = &xids->list[i];
        bool told = is_listed(host, xid);
        for (size_t j = 0; j < i && !told; j++)
            told = strcmp(xids->list[j].pci, xid->pci) == 0;
        if (told)
            continue;
        struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX), line AUTO_BUF = BUF_INIT(TEXT_MAX);
        put_xid(xid, &text);
        buf_printf(&line, "the GPU at %s: %s", xid->pci, buf_text(&text));
        each(context, buf_text(&line));
    }
}

static void tell_slow(const struct explain_host *host,
                      void (*each)(void *context, const char *text), void *context)
{
    for (size_t i = 0; i < host->gpu_count; i++) {
        const struct explain_gpu *gpu = &host->gpus[i];
        struct buf line AUTO_BUF = BUF_INIT(TEXT_MAX);
        if (gpu->slowed_by == NULL || has_errors(gpu))
            continue;
        buf_printf(&line, "GPU %d has lower clocks: %s", gpu->index, gpu->slowed_by);
        if (gpu->celsius > 0)
            buf_printf(&line, ", at %d degrees Celsius", gpu->celsius);
        each(context, buf_text(&line));
    }
}

void gpu_signs(const struct explain_host *host, double since_s,
               void (*each)(void *context, const char *text), void *context)
{
    struct xids xids;
    read_xids(host, since_s, &xids);
    tell_errors(host, &xids, each, context);
    tell_unlisted(host, &xids, each, context);
    if (host->gpus_missing != NULL)
        each(context, host->gpus_missing);
    tell_slow(host, each, context);
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
