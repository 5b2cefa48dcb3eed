/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the small test workers share: their own rank, options as `--name value`, writes that finish,
 * waits. Workers know their rank from the environment, and know nothing else of the launcher.
 */
#pragma once

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((unused)) static long to_number(const char *text)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 0);
    if (errno != 0 || end == text) {
        dprintf(2, "worker: not a number: %s\n", text);
        _exit(99);
    }
    return value;
}

__attribute__((unused)) static int env_int(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? (int)to_number(text) : otherwise;
}

__attribute__((unused)) static int my_rank(void)
{
    return env_int("HOROVOD_RANK", env_int("RANK", 0));
}

__attribute__((unused)) static int world_size(void)
{
    return env_int("HOROVOD_SIZE", env_int("WORLD_SIZE", 1));
}

/* The word after `--name`, or `otherwise`. */
__attribute__((unused)) static const char *option(int argc, char **argv, const char *name,
                                                  const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    }
    return otherwise;
}

__attribute__((unused)) static bool flag(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return false;
}

/* `--rank R` or `--rank all` (the default): does it mean this worker? */
__attribute__((unused)) static bool is_me(int argc, char **argv)
{
    const char *who = option(argc, argv, "--rank", "all");
    return strcmp(who, "all") == 0 || to_number(who) == my_rank();
}

__attribute__((unused)) static void write_all(int fd, const void *bytes, size_t length)
{
    const char *from = bytes;
    while (length > 0) {
        const ssize_t n = write(fd, from, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit(98);
        from += n;
        length -= (size_t)n;
    }
}

__attribute__((unused)) static void pause_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Returns when the file exists: how a test tells a worker to go on. */
__attribute__((unused)) static void wait_for_file(const char *path)
{
    while (access(path, F_OK) != 0)
        pause_ms(20);
}

__attribute__((unused)) static void wait_for_ever(void)
{
    for (;;)
        pause();
}

/* CRC-32 as zlib has it, so that a test can compute it too. */
__attribute__((unused)) static uint32_t crc32_add(uint32_t crc, const void *bytes, size_t length)
{
    static uint32_t table[256];
    if (table[1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++)
                value = (value & 1) != 0 ? (value >> 1) ^ 0xedb88320u : value >> 1;
            table[i] = value;
        }
    }
    const unsigned char *at = bytes;
    crc = ~crc;
    while (length-- > 0)
        crc = (crc >> 8) ^ table[(crc ^ *at++) & 0xff];
    return ~crc;
}
