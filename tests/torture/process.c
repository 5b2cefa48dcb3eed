/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads. vfork() returns twice into its caller's frame, so it is jumped to. */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/types.h>
#include <unistd.h>

#include "fault.h"

pid_t fork(void)
{
    pid_t (*real)(void) = fault_real("fork");
    if (fault_now("fork", FAULT_NPROC | FAULT_NOMEM))
        return -1;
    pid_t pid = real();
    if (pid == 0)
        fault_forked();
    return pid;
}

static pid_t vfork_fails(void)
{
    return -1; /* errno is set */
}

/* What vfork() below jumps to. */
__attribute__((used)) void *fault_vfork(void);
void *fault_vfork(void)
{
    void *real = fault_real("vfork");
    return fault_now("vfork", FAULT_NPROC | FAULT_NOMEM) ? (void *)vfork_fails : real;
}

#if defined(__x86_64__)
__asm__(".text\n.globl vfork\n.type vfork, @function\nvfork:\n"
        "  .cfi_startproc\n  subq $8, %rsp\n  .cfi_adjust_cfa_offset 8\n  call fault_vfork@PLT\n"
        "  addq $8, %rsp\n  .cfi_adjust_cfa_offset -8\n  jmp *%rax\n  .cfi_endproc\n"
        ".size vfork, .-vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl vfork\n.type vfork, %function\nvfork:\n"
        "  .cfi_startproc\n  stp x29, x30, [sp, #-16]!\n  .cfi_def_cfa_offset 16\n"
        "  .cfi_offset 29, -16\n  .cfi_offset 30, -8\n  bl fault_vfork\n"
        "  ldp x29, x30, [sp], #16\n  .cfi_restore 29\n  .cfi_restore 30\n"
        "  .cfi_def_cfa_offset 0\n  mov x16, x0\n  br x16\n  .cfi_endproc\n"
        ".size vfork, .-vfork\n");
#endif

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    __typeof__(&pthread_create) real = fault_real("pthread_create");
    int saved = errno;
    int result = fault_now("pthread_create", FAULT_NPROC) ? EAGAIN : 0;
    errno = saved;
    return result != 0 ? result : real(thread, attributes, run, argument);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    __typeof__(&getaddrinfo) real = fault_real("getaddrinfo");
    if (fault_now("getaddrinfo", FAULT_NOMEM))
        return EAI_MEMORY;
    if (fault_now("getaddrinfo", FAULT_AGAIN))
        return EAI_AGAIN;
    if (fault_now("getaddrinfo", FAULT_MFILE | FAULT_IO))
        return EAI_SYSTEM;
    return real(node, service, hints, result);
}
