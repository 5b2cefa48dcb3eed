/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self [ARGUMENT...]: what the launcher made of this process, as lines KEY=VALUE: cwd, umask, the
 * soft limits, the signal masks, session and group leadership, the CPUs allowed, its arguments in
 * hexadecimal.
 */
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "worker.h"

static void say_limit(const char *name, int resource)
{
    struct rlimit limit;
    getrlimit((__rlimit_resource_t)resource, &limit);
    printf("limit.%s=%lld\n", name, (long long)limit.rlim_cur);
}

static void say_status_lines(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[512];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "SigBlk:", 7) == 0 || strncmp(line, "SigIgn:", 7) == 0 ||
            strncmp(line, "Cpus_allowed_list:", 18) == 0) {
            char *value = strchr(line, ':');
            *value++ = '\0';
            value += strspn(value, " \t");
            printf("%s=%s", line, value);
        }
    }
    if (file != NULL)
        fclose(file);
}

int main(int argc, char **argv)
{
    char cwd[4096];
    printf("cwd=%s\n", getcwd(cwd, sizeof cwd) != NULL ? cwd : strerror(errno));
    const mode_t mask = umask(0);
    printf("umask=%o\n", (unsigned)mask);
    say_limit("nofile", RLIMIT_NOFILE);
    say_limit("core", RLIMIT_CORE);
    say_limit("stack", RLIMIT_STACK);
    printf("session=%d\n", getsid(0) == getpid());
    printf("group=%d\n", getpgrp() == getpid());
    say_status_lines();
    printf("argc=%d\n", argc);
    for (int i = 0; i < argc; i++) {
        printf("argv.%d=", i);
        for (const char *at = argv[i]; *at != '\0'; at++)
            printf("%02x", (unsigned char)*at);
        printf("\n");
    }
    return 0;
}
