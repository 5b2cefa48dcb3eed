/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/boot/host.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMEDY                       \
    "install hvdrun " HVDRUN_VERSION \
    " there, in the PATH of a plain `sh`, to use the agent of that installation"

/* Copies a word and returns what follows it. */
static const char *word(const char *text, char *out, size_t room)
{
    text += strspn(text, " ");
    size_t length = strcspn(text, " ");
    snprintf(out, room, "%.*s", (int)length, text);
    return text + length;
}

void boot_host_parse(const char *text, struct boot_host *out)
{
    text = word(text, out->kernel, sizeof(out->kernel));
    text = word(text, out->machine, sizeof(out->machine));
    snprintf(out->libc, sizeof(out->libc), "%s", text + strspn(text, " "));
}

static bool is_x86_32(const char *machine)
{
    return machine[0] == 'i' && isdigit((unsigned char)machine[1]) &&
           strcmp(machine + 2, "86") == 0;
}

static bool same_machine(const char *host, const char *image)
{
    return strcmp(host, image) == 0 || (is_x86_32(host) && is_x86_32(image)) ||
           (strncmp(host, "armv", 4) == 0 && strncmp(image, "armv", 4) == 0);
}

/* The version at the end of "glibc 2.36" or "ldd (Debian GLIBC 2.36-9) 2.36". */
static bool glibc_version(const char *libc, long *major, long *minor)
{
    if (strncmp(libc, "glibc ", 6) != 0 && strncmp(libc, "ldd (", 5) != 0)
        return false;
    const char *last = strrchr(libc, ' ');
    char *end = NULL;
    if (last == NULL || !isdigit((unsigned char)last[1]))
        return false;
    *major = strtol(last + 1, &end, 10);
    if (*end != '.' || !isdigit((unsigned char)end[1]))
        return false;
    *minor = strtol(end + 1, NULL, 10);
    return true;
}

int boot_host_check(const struct boot_host *host, const struct agent_image *image,
                    struct error *err)
{
    long major, minor;
    if (strcmp(host->kernel, "Linux") != 0)
        return error_set(err, "hvdrun runs on Linux only, and this host runs %s",
                         host->kernel[0] != '\0' ? host->kernel : "an unknown system");
    if (!same_machine(host->machine, image->machine))
        return error_set(err, "the %s agent cannot run on this %s host: " REMEDY, image->machine,
                         host->machine);
    if (image->glibc_major == 0)
        return 0;
    if (strstr(host->libc, "musl") != NULL)
        return error_set(err,
                         "the agent needs glibc %d.%d, and this host has musl libc: use an image "
                         "with glibc (Debian, Ubuntu, Fedora...), or " REMEDY,
                         image->glibc_major, image->glibc_minor);
    if (glibc_version(host->libc, &major, &minor) &&
        (major < image->glibc_major || (major == image->glibc_major && minor < image->glibc_minor)))
        return error_set(err, "the agent needs glibc %d.%d, and this host has %ld.%ld: " REMEDY,
                         image->glibc_major, image->glibc_minor, major, minor);
    return 0;
}
