/* SPDX-License-Identifier: Apache-2.0 */
/* Failures as they happen: what the rank wrote and how it ended go in, its cause and what to do
 * come out. Each row names the line that says what happened, a line that must be quoted, and the
 * advice. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/evidence/evidence.h"

#define TRACEBACK                                                                                  \
    "Traceback (most recent call last):\n  File \"/home/me/train.py\", line 35, in <module>\n    " \
    "main()\n  File \"/home/me/train.py\", line 21, in main\n    step(batch)\n"
#define CUDA_NOTE                                                                         \
    "CUDA kernel errors might be asynchronously reported at some other API call, so the " \
    "stacktrace below might be incorrect.\nFor debugging consider passing "               \
    "CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side "    \
    "assertions.\n\n"
#define WATCHDOG(rank, number)                                                                    \
    "[rank" rank "]:[E1123 01:02:03.4 ProcessGroupNCCL.cpp:616] [Rank " rank                      \
    "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" number                     \
    ", OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds " \
    "before timing out.\n"
#define ABORTED                                                                                    \
    "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG ID 0 " \
    "PG GUID 0 Rank 1] Process group watchdog thread terminated with exception\n"
#define CORES_OFF "core_pattern: core\nthe soft limit is 0, so there are no core files\n"
#define TEN_WARNINGS                                                                               \
    "t.py:3: UserWarning: x\n  warnings.warn('x')\nt.py:3: UserWarning: x\n  warnings.warn('x')\n" \
    "t.py:3: UserWarning: x\n  warnings.warn('x')\nt.py:3: UserWarning: x\n  warnings.warn('x')\n" \
    "t.py:3: UserWarning: x\n  warnings.warn('x')\nt.py:3: UserWarning: x\n  warnings.warn('x')\n" \
    "t.py:3: UserWarning: x\n  warnings.warn('x')\nt.py:3: UserWarning: x\n  warnings.warn('x')\n" \
    "t.py:3: UserWarning: x\n  warnings.warn('x')\nt.py:3: UserWarning: x\n  warnings.warn('x')\n"

/* The story is about rank 1 on b, beside rank 0 on a. */
static const struct row {
    const char *name;
    int code, signal; /* one of them */
    const char *said, *printed, *what;
    const char *first;  /* the whole line about what happened first */
    const char *quoted; /* of its output; NULL: nothing is quoted */
    const char *advice; /* the first line of it */
    struct explain_host host;
    const char *kind, *cause; /* NULL: "failure" and "exit" */
    bool oom, consequence, request, alone;
    int status; /* of the job; 0: that of the rank */
} rows[] = {
    {.name = "SIGSEGV in a C call",
     .signal = SIGSEGV,
     .said = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call "
             "first):\n  File \"/home/me/train.py\", line 3 in read_batch\n",
     .what = "rank 1 on b was killed by SIGSEGV",
     .first = "rank 1 on b was killed by SIGSEGV: it used memory that it does not have",
     .quoted = "its stderr: File \"/home/me/train.py\", line 3 in read_batch",
     .advice = "for a core file of the next crash, run 'ulimit -c unlimited' before hvdrun",
     .host = {.cores = CORES_OFF}},
    {.name = "OOM kill by the cgroup",
     .signal = SIGKILL,
     .oom = true,
     .what = "rank 1 on b was killed by SIGKILL",
     .first = "rank 1 on b was killed by SIGKILL: most likely, the kernel killed it because memory "
              "ran out",
     .advice =
         "give rank 1 more memory, or start fewer ranks on b; 'hvdrun top' shows how much they "
         "use"},
    {.name = "OOM kill of a child",
     .code = 1,
     .said = TRACEBACK "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. \n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: the kernel killed a process that it had started, "
              "because memory ran out",
     .quoted =
         "its stderr: RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.",
     .advice = "give rank 1 more memory, or let it start fewer processes (num_workers of a "
               "DataLoader), or start fewer ranks on b",
     .host = {.memory = "cgroup oom_kill 1\n"}},
    {.name = "MemoryError",
     .code = 1,
     .said = TRACEBACK "MemoryError\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: it could not allocate memory",
     .quoted = "its stderr: MemoryError",
     .advice = "check its limit with 'ulimit -v' on b, and how much memory the ranks use with "
               "'hvdrun top'"},
    {.name = "an exception with a chain",
     .code = 1,
     .said =
         "Traceback (most recent call last):\n  File \"/home/me/data.py\", line 3, in load\n    "
         "x['lr']\nKeyError: 'lr'\n\nThe above exception was the direct cause of the following "
         "exception:\n\n" TRACEBACK "ValueError: the configuration is broken\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1",
     .quoted = "its stderr: KeyError: 'lr'",
     .advice = "train.py:21 (main) raised it; lines.txt has the whole traceback"},
    {.name = "CUDA out of memory",
     .code = 1,
     .said =
         TRACEBACK "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU "
                   "0 has a total capacity of 79.10 GiB of which 1.06 GiB is free.\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: its GPU had too little free memory",
     .quoted =
         "its stderr: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
         "GPU 0 has a total capacity of 79.10 GiB of which 1.06 GiB is free.",
     .advice =
         "use a smaller batch or model for each rank; 'nvidia-smi' on b shows what else holds "
         "memory of the GPU, such as another rank or a job that was left behind"},
    {.name = "CUDA assert",
     .code = 1,
     .said =
         "/x/Loss.cu:245: nll_loss: block: [0,0,0], thread: [0,0,0] Assertion `t >= 0` "
         "failed.\n" TRACEBACK "RuntimeError: CUDA error: device-side assert triggered\n" CUDA_NOTE,
     .what = "rank 1 on b exited with code 1",
     .first =
         "rank 1 on b exited with code 1: a check in a GPU kernel failed, most often of an index "
         "or a label that is out of range",
     .quoted = "its stderr: RuntimeError: CUDA error: device-side assert triggered",
     .advice = "check the labels and indices of the data; with -x CUDA_LAUNCH_BLOCKING=1, the "
               "traceback shows the operation"},
    {.name = "disk full",
     .code = 1,
     .said = TRACEBACK "OSError: [Errno 28] No space left on device: '/data/model.pt'\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: the file system that it wrote to was full",
     .quoted = "its stderr: OSError: [Errno 28] No space left on device: '/data/model.pt'",
     .advice =
         "free some space for '/data/model.pt' on b, or write to another file system; 'df -h' "
         "and 'df -i' there show what is full"},
    {.name = "SIGBUS, own tmpfs full",
     .signal = SIGBUS,
     .said =
         "Fatal Python error: Bus error\n\nCurrent thread 0x7f (most recent call first):\n  File "
         "\"/home/me/train.py\", line 7 in <module>\n",
     .what = "rank 1 on b was killed by SIGBUS",
     .first =
         "rank 1 on b was killed by SIGBUS: most likely, a file that it maps got shorter, or the "
         "file system of it is full",
     .quoted = "its stderr: Fatal Python error: Bus error",
     .advice = "check with 'df -h' on b whether a file system, such as a tmpfs, is full, and that "
               "nobody changes files that are in use",
     .host = {.folders = "/dev/shm: 60 of 64 MiB free\n"}},
    {.name = "SIGBUS, /dev/shm full",
     .signal = SIGBUS,
     .what = "rank 1 on b was killed by SIGBUS",
     .first = "rank 1 on b was killed by SIGBUS: most likely, because /dev/shm was full",
     .advice = "free some space in /dev/shm on b",
     .host = {.folders = "/dev/shm: 0 of 64 MiB free, it is full\n"}},
    {.name = "NCCL transport error",
     .code = 1,
     .said = TRACEBACK
     "torch.distributed.DistBackendError: NCCL error in: /x/NCCLUtils.cpp:77, remote process "
     "exited "
     "or there was a network error, NCCL version 2.26.2\nncclRemoteError: A call failed possibly "
     "due "
     "to a network error or a remote process exiting prematurely.\nLast error:\nNET/IB: Got "
     "completion from peer 10.0.0.2<36707> with status=12 opcode=0 len=0 vendor err 129 (Send)\n",
     .what = "rank 1 on b exited with code 1",
     .first =
         "rank 1 on b exited with code 1: an InfiniBand transfer to another host got no answer",
     .quoted =
         "its stderr: NET/IB: Got completion from peer 10.0.0.2<36707> with status=12 opcode=0 "
         "len=0 vendor err 129 (Send)",
     .advice =
         "check the InfiniBand port, cable and switch between b and 10.0.0.2, and that this host "
         "is up: 'ibstat' and 'perfquery' show errors of a port"},
    {.name = "NCCL watchdog",
     .signal = SIGABRT,
     .said = WATCHDOG("1", "119") ABORTED "Fatal Python error: Aborted\n",
     .what = "rank 1 on b was killed by SIGABRT",
     .first =
         "rank 1 on b was killed by SIGABRT: a collective operation took longer than its limit, "
         "because rank 1 is behind",
     .quoted =
         "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=119, OpType=ALLREDUCE, "
         "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing "
         "out.",
     .advice =
         "rank 1 is behind, in operation 119, while others wait in operation 120: look at the "
         "lines of that rank first, and at its stacks if it still ran",
     .host = {.cores = CORES_OFF}},
    {.name = "exit 1 without text",
     .code = 1,
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: it wrote nothing",
     .advice =
         "look for an exit without a message in the program, such as sys.exit(1), or 'exit 1' "
         "in a script; 'sh -x' in front of a script shows each of its commands"},
    {.name = "licence",
     .code = 1,
     .said = "Licensed number of users already reached.\nFeature:       Solver\nLicense path:  "
             "27000@licences:\nFlexNet Licensing error:-4,132\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: most likely, it got no licence",
     .quoted = "its stderr: Licensed number of users already reached.",
     .advice = "wait until licences are free, or start fewer ranks; the licence server shows their "
               "users, as with 'lmstat -a'"},
    {.name = "module missing on one host",
     .code = 1,
     .said = TRACEBACK "ModuleNotFoundError: No module named 'einops'\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: Python did not find 'einops' on its host",
     .quoted = "its stderr: ModuleNotFoundError: No module named 'einops'",
     .advice =
         "install it on b as on the other hosts, in the environment that runs there: 'python3 "
         "-c \"import sys; print(sys.executable, sys.path)\"' shows it"},
    {.name = "too many open files",
     .code = 1,
     .said = TRACEBACK "OSError: [Errno 24] Too many open files: '/data/shard-17'\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: it had more files and sockets open than it may",
     .quoted = "its stderr: OSError: [Errno 24] Too many open files: '/data/shard-17'",
     .advice = "raise the limit that 'ulimit -n' shows on b, or open fewer files; a DataLoader of "
               "PyTorch needs fewer with "
               "torch.multiprocessing.set_sharing_strategy('file_system')"},
    {.name = "address in use",
     .code = 1,
     .said = TRACEBACK "OSError: [Errno 98] Address already in use\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: another process had the port that it wanted",
     .quoted = "its stderr: OSError: [Errno 98] Address already in use",
     .advice = "'ss -ltnp' on b shows which process has the port; without MASTER_PORT in your "
               "environment, hvdrun chooses a free one"},
    {.name = "SIGKILL by a person",
     .signal = SIGKILL,
     .said = "warning: no such file cache.bin\n",
     .what = "rank 1 on b was killed by SIGKILL",
     .first = "rank 1 on b was killed by SIGKILL",
     .quoted = "its stderr: warning: no such file cache.bin",
     .advice =
         "hvdrun did not send that SIGKILL: look in the logs of b for a scheduler, a person or "
         "the OOM killer that did"},
    {.name = "SIGTERM by a person",
     .signal = SIGTERM,
     .what = "rank 1 on b was killed by SIGTERM",
     .first = "rank 1 on b was killed by SIGTERM",
     .advice =
         "hvdrun did not send that SIGTERM: look in the logs of b for a scheduler, a person or a "
         "program that did"},
    {.name = "SIGUSR1 by request",
     .signal = SIGUSR1,
     .request = true,
     .what = "rank 1 on b was killed by SIGUSR1",
     .first = "rank 1 on b was killed by SIGUSR1: 'hvdrun signal' (user me, 18:08:27) had sent it "
              "that signal",
     .advice =
         "nothing, if that was meant: a rank that is to survive SIGUSR1 needs a handler for it"},
    {.name = "SIGXCPU",
     .signal = SIGXCPU,
     .what = "rank 1 on b was killed by SIGXCPU",
     .first = "rank 1 on b was killed by SIGXCPU: it used more CPU time than its limit",
     .advice = "raise the limit: 'ulimit -t' on b shows it, in seconds"},
    {.name = "it exits with 0, and its peers fail",
     .status = 1,
     .what = "rank 1 on b is most likely the cause: it exited with code 0 before its peers",
     .first = "rank 1 on b is most likely the cause: it exited with code 0 before its peers",
     .advice = "rank 1 was done while others still needed it: check that all ranks have the same "
               "number of steps, and where it can return early"},
    {.name = "the consequence comes before the cause",
     .signal = SIGTERM,
     .consequence = true,
     .status = 1,
     .said = TRACEBACK "ValueError: row 7 is broken\n",
     .what =
         "rank 1 is most likely the cause: ValueError: row 7 is broken; rank 0 exited with code 1",
     .first =
         "rank 1 is most likely the cause: ValueError: row 7 is broken; rank 0 exited with code "
         "1",
     .quoted = "its stderr: ValueError: row 7 is broken",
     .advice = "train.py:21 (main) raised it; lines.txt has the whole traceback"},
    {.name = "permission denied",
     .code = 1,
     .said = TRACEBACK "PermissionError: [Errno 13] Permission denied: '/data/secret.bin'\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: it may not use a file or a device",
     .quoted = "its stderr: PermissionError: [Errno 13] Permission denied: '/data/secret.bin'",
     .advice = "check the owner and the mode of '/data/secret.bin' on b with 'ls -l'"},
    {.name = "failed assertion in C",
     .signal = SIGABRT,
     .said = "step 3\nsolve: solve.c:7: main: Assertion `x > 0' failed.\n",
     .what = "rank 1 on b was killed by SIGABRT",
     .first = "rank 1 on b was killed by SIGABRT",
     .quoted = "its stderr: solve: solve.c:7: main: Assertion `x > 0' failed.",
     .advice = "for a core file of the next crash, run 'ulimit -c unlimited' before hvdrun",
     .host = {.cores = CORES_OFF}},
    {.name = "loss is nan",
     .code = 3,
     .said = "epoch 4\nloss is nan, stopping training\n",
     .what = "rank 1 on b exited with code 3",
     .first =
         "rank 1 on b exited with code 3: most likely, the training diverged: the loss was not a "
         "number",
     .quoted = "its stderr: loss is nan, stopping training",
     .advice =
         "go back to a checkpoint, and try a lower learning rate, gradient clipping or another "
         "precision"},
    {.name = "error on stdout",
     .code = 2,
     .said = "t.py:3: UserWarning: no GPU\n",
     .printed = "step 1\nERROR: no such file: shard-17\n",
     .what = "rank 1 on b exited with code 2",
     .first = "rank 1 on b exited with code 2: most likely, a file was missing",
     .quoted = "its stdout: ERROR: no such file: shard-17",
     .advice = "check that the file exists on b, under the same path"},
    {.name = "error before 40 warnings",
     .code = 1,
     .said = TRACEBACK
     "ZeroDivisionError: division by zero\n" TEN_WARNINGS TEN_WARNINGS TEN_WARNINGS TEN_WARNINGS,
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1",
     .quoted = "its stderr: ZeroDivisionError: division by zero",
     .advice = "train.py:21 (main) raised it; lines.txt has the whole traceback"},
    {.name = "timeout",
     .signal = SIGTERM,
     .consequence = true,
     .alone = true,
     .status = 124,
     .kind = "timeout",
     .cause = "timeout",
     .what = "the job ran for longer than --timeout 5",
     .first = "the job ran for longer than --timeout 5",
     .advice =
         "give a longer --timeout, or find out what the ranks did: stacks.txt, or the report"},
    {.name = "host lost, its agent was killed",
     .alone = true,
     .status = 121,
     .cause = "node-lost",
     .what = "lost b: its agent was killed by SIGKILL",
     .first = "lost b: its agent was killed by SIGKILL",
     .advice =
         "hvdrun did not send that signal: look in the logs of b for the OOM killer, a scheduler "
         "or a person that killed hvdrun-agent",
     .host = {.lost = true}},
    {.name = "host lost",
     .alone = true,
     .status = 121,
     .cause = "node-lost",
     .what = "lost b: no heartbeat for 30.0 s",
     .first = "lost b: no heartbeat for 30.0 s",
     .advice =
         "check the power, the network and the kernel's log of b; an elastic job (--min-np) goes "
         "on without it",
     .host = {.lost = true}},
    {.name = "hang of a rank that is stopped",
     .signal = SIGTERM,
     .consequence = true,
     .status = 119,
     .kind = "hang",
     .what = "the job hangs; rank 1 on b is elsewhere: it is stopped (SIGSTOP)",
     .first = "the job hangs; rank 1 on b is elsewhere: it is stopped (SIGSTOP)",
     .advice =
         "rank 1 is stopped: find out what stopped it, or let it go on with 'kill -CONT 4242' on "
         "b"},
    {.name = "hang for want of a rank that has ended",
     .status = 119,
     .kind = "hang",
     .what = "the job hangs; rank 1 on b has ended with status 0, and the others have not",
     .first = "the job hangs; rank 1 on b has ended with status 0, and the others have not",
     .advice =
         "stacks.txt has two stacks of rank 1, one second apart, unless it had ended by then; the "
         "other ranks most likely wait for it"},
    {.name = "hang of a rank that is frozen",
     .signal = SIGKILL,
     .consequence = true,
     .status = 119,
     .kind = "hang",
     .what = "the job hangs; rank 1 on b is elsewhere: it is frozen by a cgroup",
     .first = "the job hangs; rank 1 on b is elsewhere: it is frozen by a cgroup",
     .advice =
         "a cgroup of rank 1 is frozen: whatever froze it on b can thaw it, such as a container "
         "engine or a scheduler"},
    {.name = "state_dict mismatch",
     .code = 1,
     .said =
         TRACEBACK "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for "
                   "fc.weight: copying a param with shape torch.Size([10]) from checkpoint, the "
                   "shape in current model is torch.Size([20]).\n",
     .what = "rank 1 on b exited with code 1",
     .first = "rank 1 on b exited with code 1: the checkpoint does not fit the model",
     .quoted =
         "its stderr: size mismatch for fc.weight: copying a param with shape torch.Size([10]) "
         "from checkpoint, the shape in current model is torch.Size([20]).",
     .advice =
         "load a checkpoint of the same model, with the same sizes; the lines after this error "
         "name each tensor that differs"},
    {.name = "the terminal closes",
     .alone = true,
     .status = 129,
     .cause = "interrupted",
     .what = "interrupted (SIGHUP)",
     .first = "interrupted (SIGHUP): most likely, its terminal or SSH session has ended",
     .advice =
         "to let a job survive its terminal, start it with --on-hangup detach or with --detach"},
    {.name = "the reader of the output ends",
     .alone = true,
     .status = 141,
     .cause = "interrupted",
     .what = "the reader of the output is gone (SIGPIPE)",
     .first = "the reader of the output is gone (SIGPIPE): the program that read the output of "
              "hvdrun has ended",
     .advice =
         "to let a job go on without a reader, start it with --detach; 'hvdrun logs' shows its "
         "output"},
    {.name = "Ctrl-C",
     .alone = true,
     .status = 130,
     .cause = "interrupted",
     .what = "interrupted (SIGINT)",
     .first = "interrupted (SIGINT): Ctrl-C, or a program that sent this signal to hvdrun",
     .advice = "nothing: the ranks did not fail"},
    {.name = "a scheduler",
     .alone = true,
     .status = 143,
     .cause = "interrupted",
     .what = "interrupted (SIGTERM)",
     .first = "interrupted (SIGTERM): a scheduler, a person or a shutdown sent it to hvdrun",
     .advice = "the ranks did not fail: look in the records of the scheduler for a time limit, a "
               "preemption or a request to end the job"},
    {.name = "hvdrun stop",
     .alone = true,
     .status = 130,
     .cause = "stopped",
     .what = "stopped by 'hvdrun stop' (user me, 18:08:27)",
     .first = "stopped by 'hvdrun stop' (user me, 18:08:27)",
     .advice = "nothing: the ranks did not fail"},
    {.name = "a word of a cause in lines that need not be its error",
     .code = 4,
     .said = "cache: No space left on device, goes on without it\nstep 1\nbad luck\n",
     .what = "rank 1 on b exited with code 4",
     .first =
         "rank 1 on b exited with code 4: most likely, the file system that it wrote to was full",
     .quoted = "its stderr: cache: No space left on device, goes on without it",
     .advice =
         "free some space for its files on b, or write to another file system; 'df -h' and 'df "
         "-i' there show what is full"},
    {.name = "an apostrophe is no quotation mark",
     .code = 2,
     .said = "python3: can't open file '/home/me/train.py': [Errno 2] No such file or directory\n",
     .what = "rank 1 on b exited with code 2",
     .first = "rank 1 on b exited with code 2: most likely, a file was missing",
     .quoted =
         "its stderr: python3: can't open file '/home/me/train.py': [Errno 2] No such file or "
         "directory",
     .advice = "check that '/home/me/train.py' exists on b, under the same path"},
};

static void check(const struct row *row, const struct explain_story *story)
{
    const struct strv *first = &story->parts[EXPLAIN_FIRST], *what = &story->parts[EXPLAIN_DO];
    bool quoted = row->quoted == NULL && first->count == 1;
    for (size_t i = 1; i < first->count && row->quoted != NULL; i++)
        quoted = quoted || strstr(first->items[i], row->quoted) != NULL;
    if (strcmp(first->items[0], row->first) != 0)
        fail_msg("%s: '%s'", row->name, first->items[0]);
    if (!quoted)
        fail_msg("%s: %zu lines, the last one '%s'", row->name, first->count,
                 first->items[first->count - 1]);
    if (strcmp(what->items[0], row->advice) != 0)
        fail_msg("%s: '%s'", row->name, what->items[0]);
}

static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct explain_rank ranks[] = {{.rank = 0,
                                        .host = "a",
                                        .ended = true,
                                        .signaled = true,
                                        .code = SIGTERM,
                                        .consequence = true,
                                        .collective = 120},
                                       {.rank = 1,
                                        .host = "b",
                                        .ended = true,
                                        .signaled = row->signal != 0,
                                        .code = row->signal != 0 ? row->signal : row->code,
                                        .consequence = row->consequence,
                                        .oom = row->oom,
                                        .silent = row->said == NULL && row->printed == NULL,
                                        .pid = 4242,
                                        .collective = 119}};
        struct explain_host hosts[] = {{.host = "a"}, row->host};
        hosts[1].host = "b";
        if (row->request)
            ranks[1].request = "'hvdrun signal' (user me, 18:08:27)";
        int own = row->signal != 0 ? 128 + row->signal : row->code;
        struct explain_facts facts = {.job = "j",
                                      .kind = row->kind != NULL ? row->kind : "failure",
                                      .cause = row->cause != NULL ? row->cause : "exit",
                                      .what = row->what,
                                      .rank = row->alone ? -1 : 1,
                                      .ended = true,
                                      .status = row->status != 0 ? row->status : own,
                                      .started_s = 100,
                                      .ended_s = 110,
                                      .ranks = ranks,
                                      .rank_count = 2,
                                      .hosts = hosts,
                                      .host_count = 2,
                                      .said = row->said,
                                      .printed = row->printed,
                                      .has_folder = true};
        struct explain_story story;
        explain_tell(&facts, &story);
        check(row, &story);
        explain_story_destroy(&story);
    }
}

/* A fact of the table that has no name would be left out of a text without a word. */
static void test_no_braces_are_left(void **state)
{
    (void)state;
    struct explain_facts facts = {.rank = -1, .what = "x"};
    static const char *const said[] = {"", "x: Permission denied\n", "from peer \n with status=12"};
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct explain_rank rank = {.host = "a", .ended = true, .code = 1};
        struct explain_story story;
        facts.said = said[i];
        facts.ranks = &rank;
        facts.rank_count = 1;
        facts.rank = 0;
        explain_tell(&facts, &story);
        for (int part = 0; part < EXPLAIN_PARTS; part++) {
            for (size_t j = 0; j < story.parts[part].count; j++)
                assert_null(strpbrk(story.parts[part].items[j], "{}"));
        }
        explain_story_destroy(&story);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_no_braces_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
