/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/boot/agent_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "transport/boot/image_facts.h"

int agent_image_open(const char *path, struct agent_image *image, struct error *err)
{
    *image = (struct agent_image){.bytes = NULL};
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC, 0);
    struct stat info = {.st_size = 0};
    if (fd < 0 || fstat(fd, &info) < 0)
        return error_errno(
            err, errno,
            "cannot open %s, the part of hvdrun that runs on other hosts: reinstall hvdrun", path);
    size_t length = (size_t)info.st_size;
    void *bytes = length > 0 ? mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED)
        return error_set(err, "cannot read %s: reinstall hvdrun", path);
    image->bytes = bytes;
    image->length = length;
    struct image_facts facts;
    if (image_facts_read(bytes, length, &facts, err) < 0) {
        agent_image_close(image);
        return error_wrap(err, "cannot send %s to hosts", path);
    }
    snprintf(image->machine, sizeof(image->machine), "%s", facts.machine);
    image->glibc_major = facts.glibc_major;
    image->glibc_minor = facts.glibc_minor;
    return 0;
}

void agent_image_hash(struct agent_image *image)
{
    if (image->hash[0] != '\0')
        return;
    sha256_text(image->bytes, image->length, image->hash);
}

void agent_image_close(struct agent_image *image)
{
    if (image->bytes != NULL)
        munmap((void *)(uintptr_t)image->bytes, image->length);
    *image = (struct agent_image){.bytes = NULL};
}
