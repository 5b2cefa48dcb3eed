/* SPDX-License-Identifier: Apache-2.0 */
#include "node/descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/proc.h"

#define FILE_MAX (1 << 20)
#define ASKED_MAX 65536 /* pids, on either end of those that can be ours */

struct pids {
    pid_t *items;
    size_t count, room;
    const struct descendants_spared *spared; /* NULL: none */
};

static void add(struct pids *pids, pid_t pid)
{
    const struct descendants_spared *spared = pids->spared;
    if (pids->count >= DESCENDANTS_MAX || (spared != NULL && spared->has(spared->context, pid)))
        return;
    MEM_ADD_ROOM(pids->items, pids->count, pids->room) = pid;
}

static bool is_number(const char *name)
{
    return isdigit((unsigned char)name[0]) != 0;
}

/* The children of all threads of a process. false: this kernel has no such files, or more than
 * `*threads` threads would have to be asked; those that were asked are taken off it. */
static bool add_children(pid_t pid, struct pids *pids, size_t *threads)
{
    char *folder AUTO_FREE = mem_printf("/proc/%d/task", (int)pid);
    DIR *tasks = opendir(folder);
    if (tasks == NULL)
        return true; /* it has ended: no children either */
    bool known = true;
    struct buf text AUTO_BUF = BUF_INIT(FILE_MAX);
    for (struct dirent *entry = readdir(tasks); known && entry != NULL; entry = readdir(tasks)) {
        if (!is_number(entry->d_name))
            continue;
        if (*threads == 0) {
            known = false;
            break;
        }
        --*threads;
        char *path AUTO_FREE = mem_printf("%s/%s/children", folder, entry->d_name);
        buf_clear(&text);
        if (fd_read_file(path, &text, NULL) < 0) {
            char *thread AUTO_FREE = mem_printf("%s/%s", folder, entry->d_name);
            known = known && access(thread, F_OK) < 0;
            continue;
        }
        char *end = NULL;
        for (const char *at = buf_text(&text); is_number(at); at = *end == ' ' ? end + 1 : end)
            add(pids, (pid_t)strtol(at, &end, 10));
    }
    closedir(tasks);
    return known;
}

/* The number that the kernel gave last; 0: it gives no more. */
static pid_t newest_pid(void)
{
    pid_t pid = vfork();
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void)!TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
    return pid > 0 ? pid : 0;
}

static void ask_for_children(pid_t first, pid_t last, struct pids *pids)
{
    for (pid_t pid = first; pid <= last; pid++) {
        siginfo_t info;
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
            add(pids, pid);
    }
}

/* Without /proc: the kernel tells of any number whether it is a child of ours. Numbers are given in
 * turn, so those of our children lie between ours and the newest. */
static void ask_for_our_children(struct pids *pids)
{
    pid_t own = getpid(), newest = newest_pid();
    bool in_turn = newest > own && newest - own <= 2 * ASKED_MAX;
    if (in_turn) {
        ask_for_children(own + 1, newest, pids);
    } else {
        ask_for_children(newest > ASKED_MAX ? newest - ASKED_MAX : 1, newest, pids);
        ask_for_children(own + 1, own + ASKED_MAX, pids);
    }
}

static size_t take(struct pids *pids, pid_t **out)
{
    *out = pids->items;
    return pids->count;
}

size_t descendants_list_except(pid_t pid, const struct descendants_spared *spared, pid_t **out)
{
    struct pids pids = {.spared = spared};
    if (pid == getpid() && access("/proc/self/task", F_OK) < 0) {
        ask_for_our_children(&pids);
        return take(&pids, out);
    }
    size_t threads = SIZE_MAX;
    bool known = add_children(pid, &pids, &threads);
    for (size_t i = 0; known && i < pids.count; i++)
        known = add_children(pids.items[i], &pids, &threads);
    if (known)
        return take(&pids, out);
    free(pids.items);
    return descendants_scan(pid, spared, out);
}

size_t descendants_list(pid_t pid, pid_t **out)
{
    return descendants_list_except(pid, NULL, out);
}

struct descendants_table {
    struct pids all, parents;
};

static void clear(struct descendants_table *table)
{
    free(table->all.items);
    free(table->parents.items);
    *table = (struct descendants_table){.all = {.items = NULL}};
}

/* Only what is below us. false: it cannot be known, or not for so little. */
static bool read_below(struct descendants_table *table, size_t threads)
{
    pid_t parent = getpid();
    bool known = add_children(parent, &table->all, &threads);
    for (size_t next = 0; known; next++) {
        while (table->parents.count < table->all.count)
            add(&table->parents, parent);
        if (next == table->all.count)
            break;
        parent = table->all.items[next];
        known = add_children(parent, &table->all, &threads);
    }
    return known;
}

static void read_all(struct descendants_table *table)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry = folder != NULL ? readdir(folder) : NULL;
    for (; entry != NULL; entry = readdir(folder)) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct proc_stat stat;
        if (pid <= 0 || proc_read_stat(pid, 0, &stat) < 0)
            continue;
        add(&table->all, pid);
        add(&table->parents, (pid_t)stat.parent);
    }
    if (folder != NULL)
        closedir(folder);
}

struct descendants_table *descendants_table_read(size_t threads)
{
    struct descendants_table *table = mem_alloc(sizeof(*table));
    if (!read_below(table, threads)) {
        clear(table);
        read_all(table);
    }
    return table;
}

void descendants_table_destroy(struct descendants_table *table)
{
    clear(table);
    free(table);
}

static size_t below(const struct descendants_table *table, pid_t pid,
                    const struct descendants_spared *spared, pid_t **out)
{
    struct pids found = {.spared = spared};
    pid_t parent = pid;
    for (size_t next = 0;; next++) {
        for (size_t i = 0; i < table->all.count; i++) {
            if (table->parents.items[i] == parent)
                add(&found, table->all.items[i]);
        }
        if (next >= found.count)
            break;
        parent = found.items[next];
    }
    return take(&found, out);
}

size_t descendants_in(const struct descendants_table *table, pid_t pid, pid_t **out)
{
    return below(table, pid, NULL, out);
}

size_t descendants_scan(pid_t pid, const struct descendants_spared *spared, pid_t **out)
{
    struct descendants_table table = {.all = {.items = NULL}};
    read_all(&table);
    size_t count = below(&table, pid, spared, out);
    clear(&table);
    return count;
}

/* Children that the kernel holds. */

#define ENOUGH_MS 1000

/* Zombies are reapable at once, unless another thread of the process is still there. */
static bool is_reapable(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

int held_child_status(pid_t pid)
{
    struct proc_stat stat;
    if (proc_read_stat(pid, 0, &stat) < 0 || stat.state != 'Z' || is_reapable(pid))
        return -1;
    return (int)stat.code;
}

bool held_child_waits(pid_t pid)
{
    pid_t *threads AUTO_FREE = NULL;
    size_t count = proc_threads(pid, SIZE_MAX, &threads);
    for (size_t i = 0; i < count; i++) {
        struct proc_stat stat;
        if (threads[i] != pid && proc_read_stat(pid, threads[i], &stat) == 0 &&
            (stat.state == 'S' || stat.state == 'D'))
            return true;
    }
    return false;
}

bool held_children_only(struct held_children *children)
{
    pid_t *all AUTO_FREE = NULL;
    size_t count = descendants_list(getpid(), &all), held = 0;
    int64_t now = clock_mono_ms();
    while (held < count && held_child_status(all[held]) >= 0)
        held++;
    if (count == 0 || held < count)
        children->since_ms = 0;
    else if (children->since_ms == 0)
        children->since_ms = now;
    return children->since_ms != 0 && now - children->since_ms > ENOUGH_MS;
}
