/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvdrun-unwind.so: native frames from the tables that compilers leave for exceptions (.eh_frame),
 * through libdw of elfutils. The only file that includes elfutils.
 *
 * The files of the process are opened below its own root folder, because it can be in a container.
 * Separate debug files are used if they are on this machine. Nothing is asked of the network.
 */
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "stacks/module/unwind_module.h"

/* Line tables of larger files take too long to read. */
#define LINES_FILE_MAX ((size_t)64 << 20)
#define MANGLED_MAX 1024

typedef char *demangle(const char *name, char *out, size_t *length, int *status);

/* Whether a file has line tables: to scan its sections costs more than a frame. */
struct lines_known {
    const Dwfl_Module *module;
    bool has;
};

struct unwind_process {
    Dwfl *dwfl;
    struct lines_known *lines;
    size_t lines_count;
    pid_t pid;
    demangle *demangle; /* NULL: this machine has no C++ library */
    /* during a walk: */
    const struct unwind_registers *registers;
    const struct unwind_memory *memory;
    int (*frame)(void *context, const struct unwind_frame *frame);
    void *context;
};

static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
                    char **file_name, Elf **elf)
{
    const struct unwind_process *process = *userdata;
    if (name[0] != '/' || process == NULL)
        return dwfl_linux_proc_find_elf(module, userdata, name, base, file_name, elf);
    char *path AUTO_FREE = mem_printf("/proc/%d/root%s", (int)process->pid, name);
    int fd = fd_open_regular(path);
    if (fd < 0 && errno == ENOENT) /* after chroot(), the names are still as we see them */
        fd = fd_open_regular(name);
    if (fd < 0 && strstr(name, " (deleted)") != NULL) { /* a program that was replaced */
        char *exe AUTO_FREE = mem_printf("/proc/%d/exe", (int)process->pid), target[4096];
        ssize_t length = readlink(exe, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        fd = strcmp(target, name) == 0 ? fd_open_regular(exe) : -1;
    }
    *file_name = fd >= 0 ? mem_strdup(name) : NULL;
    return fd;
}

static const Dwfl_Callbacks callbacks = {.find_elf = find_elf,
                                         .find_debuginfo = dwfl_build_id_find_debuginfo};

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
    (void)dwfl;
    const struct unwind_process *process = context;
    bool first = *thread == NULL;
    *thread = context;
    return first ? process->pid : 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread)
{
    (void)dwfl, (void)tid;
    *thread = context;
    return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *out, void *context)
{
    (void)dwfl;
    const struct unwind_process *process = context;
    return process->memory->read(process->memory->context, address, out, sizeof(*out)) == 0;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
    const struct unwind_process *process = context;
    const struct unwind_registers *registers = process->registers;
    for (int i = 0; i < UNWIND_REGISTERS; i++) {
        Dwarf_Word value = registers->values[i];
        if ((registers->known >> i & 1) != 0 && !dwfl_thread_state_registers(thread, i, 1, &value))
            return false;
    }
    dwfl_thread_state_register_pc(thread, registers->pc);
    return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = next_thread,
                                                       .get_thread = get_thread,
                                                       .memory_read = read_memory,
                                                       .set_initial_registers = set_registers};

/* For find_elf(), which gets nothing else of ours. */
static int remember_process(Dwfl_Module *module, void **userdata, const char *name,
                            Dwarf_Addr start, void *process)
{
    (void)module, (void)name, (void)start;
    *userdata = process;
    return DWARF_CB_OK;
}

static struct unwind_process *open_process(pid_t pid, char *trouble, size_t size)
{
    struct unwind_process *process =
        MEM_NEW((struct unwind_process){.dwfl = dwfl_begin(&callbacks), .pid = pid});
    bool known = process->dwfl != NULL && dwfl_linux_proc_report(process->dwfl, pid) == 0 &&
                 dwfl_report_end(process->dwfl, NULL, NULL) == 0 &&
                 dwfl_getmodules(process->dwfl, remember_process, process, 0) == 0 &&
                 dwfl_attach_state(process->dwfl, NULL, pid, &thread_callbacks, process);
    if (!known) {
        const char *why = dwfl_errmsg(-1);
        snprintf(trouble, size, "%s", why != NULL ? why : "its files cannot be read");
        if (process->dwfl != NULL)
            dwfl_end(process->dwfl);
        free(process);
        return NULL;
    }
    /* It stays open: it is shared by all who open it. */
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&process->demangle, &symbol, sizeof(symbol));
    return process;
}

static void close_process(struct unwind_process *process)
{
    if (process == NULL)
        return;
    dwfl_end(process->dwfl);
    free(process->lines);
    free(process);
}

static bool file_has_lines(Dwfl_Module *module)
{
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(module, &bias);
    size_t names = 0, size = 0;
    if (elf == NULL || elf_rawfile(elf, &size) == NULL || size > LINES_FILE_MAX ||
        elf_getshdrstrndx(elf, &names) < 0)
        return false;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section != NULL;
         section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) != NULL ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name != NULL && (strcmp(name, ".debug_line") == 0 || strcmp(name, ".zdebug_line") == 0))
            return true;
    }
    return false;
}

static bool has_lines(struct unwind_process *process, Dwfl_Module *module)
{
    for (size_t i = 0; i < process->lines_count; i++) {
        if (process->lines[i].module == module)
            return process->lines[i].has;
    }
    MEM_ADD(process->lines, process->lines_count) =
        (struct lines_known){module, file_has_lines(module)};
    return process->lines[process->lines_count - 1].has;
}

static void find_line(struct unwind_process *process, Dwfl_Module *module, Dwarf_Addr pc,
                      struct unwind_frame *out)
{
    int number = 0;
    Dwfl_Line *line = has_lines(process, module) ? dwfl_module_getsrc(module, pc) : NULL;
    const char *file = line != NULL ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
    if (file != NULL && number > 0) {
        out->source = file;
        out->line = number;
    }
}

/* NULL: it is not the name of a C++ function. The caller's. */
static char *demangled(const struct unwind_process *process, const char *name)
{
    int status = 0;
    bool mangled = name != NULL && strncmp(name, "_Z", 2) == 0 && strlen(name) < MANGLED_MAX;
    return mangled && process->demangle != NULL ? process->demangle(name, NULL, NULL, &status)
                                                : NULL;
}

static bool covers(Dwarf_CFI *table, Dwarf_Addr pc)
{
    Dwarf_Frame *frame = NULL;
    bool found = table != NULL && dwarf_cfi_addrframe(table, pc, &frame) == 0;
    free(frame);
    return found;
}

/* Else, libdw tries the frame pointer, which other code may use for something else. */
static bool has_table(Dwfl_Module *module, Dwarf_Addr pc)
{
    Dwarf_Addr bias = 0;
    Dwarf_CFI *table = dwfl_module_eh_cfi(module, &bias);
    if (covers(table, pc - bias))
        return true;
    table = dwfl_module_dwarf_cfi(module, &bias);
    return covers(table, pc - bias);
}

static int on_frame(Dwfl_Frame *state, void *context)
{
    struct unwind_process *process = context;
    struct unwind_frame frame = {.object = ""};
    bool exact = false;
    Dwarf_Addr start = 0, end = 0;
    GElf_Off offset = 0;
    GElf_Sym symbol;
    if (!dwfl_frame_pc(state, &frame.pc, &exact))
        return DWARF_CB_ABORT;
    Dwarf_Addr pc = frame.pc - (exact ? 0 : 1); /* the call, not what comes after it */
    Dwfl_Module *module = dwfl_addrmodule(process->dwfl, pc);
    char *plain AUTO_FREE = NULL;
    const char *object = module != NULL
                             ? dwfl_module_info(module, NULL, &start, &end, NULL, NULL, NULL, NULL)
                             : NULL;
    /* libdw counts what lies between two files to the first of them */
    if (object != NULL && pc < end) {
        frame.object = object;
        frame.offset = pc - start;
        frame.function = dwfl_module_addrinfo(module, pc, &offset, &symbol, NULL, NULL, NULL);
        plain = demangled(process, frame.function);
        frame.function = plain != NULL ? plain : frame.function;
        frame.certain = has_table(module, pc);
        find_line(process, module, pc, &frame);
    }
    return process->frame(process->context, &frame) == 0 ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static int walk(struct unwind_process *process, const struct unwind_registers *registers,
                const struct unwind_memory *memory,
                int (*frame)(void *context, const struct unwind_frame *frame), void *context)
{
    process->registers = registers;
    process->memory = memory;
    process->frame = frame;
    process->context = context;
    return dwfl_getthread_frames(process->dwfl, process->pid, on_frame, process) == 0 ? 0 : -1;
}

__attribute__((visibility("default"))) extern const struct unwind_module hvdrun_unwind;
const struct unwind_module hvdrun_unwind = {UNWIND_MODULE_VERSION, open_process, walk,
                                            close_process};
