/* SPDX-License-Identifier: Apache-2.0 */
/* The lines in which NVIDIA's driver reports an error of a GPU to the kernel's log. Pure:
 *
 *   NVRM: Xid (PCI:0000:3b:00): 31, pid=2091, name=python3, channel 0x0000000a, ...
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define XID_MARK "NVRM: Xid ("

enum xid_blame {
    XID_NOBODY,  /* not known, or a consequence of another one */
    XID_PROGRAM, /* most often what runs on the GPU */
    XID_GPU,     /* the GPU, its links or its driver */
};

struct xid {
    char pci[32]; /* without the function, as the line has it: "0000:3b:00" */
    int number;
    char pid[16];  /* as the line has it; "": not known */
    char name[32]; /* of the process; likewise */
};

/* `line`: up to its end or a newline. false: it is none. */
bool xid_read(const char *line, struct xid *out);

const char *xid_text(int number); /* NULL: it has no name here */
enum xid_blame xid_blame(int number);

/* Is it about the GPU with this address, "00000000:3B:00.0"? */
bool xid_is_of(const struct xid *xid, const char *pci);
