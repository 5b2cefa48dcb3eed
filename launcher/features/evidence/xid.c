/* SPDX-License-Identifier: Apache-2.0 */
#include "features/evidence/xid.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].number == number)
            return &rows[i];
    }
    return NULL;
}

const char *xid_text(int number)
{
    const struct row *row = find(number);
    return row == NULL ? NULL : row->text;
}

enum xid_blame xid_blame(int number)
{
    const struct row *row = find(number);
    return row == NULL ? XID_NOBODY : row->blame;
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
