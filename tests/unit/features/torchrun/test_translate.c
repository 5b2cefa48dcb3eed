/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of torchrun, deepspeed and accelerate launch, and what hvdrun makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "features/torchrun/translation.h"

#define ONE "--map-by ppr:1:node:OVERSUBSCRIBE"
#define TWO "--map-by ppr:2:node:OVERSUBSCRIBE"
#define PROGRAM " -- python3 t.py"

static void split(const char *text, struct strv *out)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        strv_add_n(out, text, length);
        text += length + (text[length] == ' ');
    }
}

static bool has_file(const char *path)
{
    return strncmp(path, "/there", 6) == 0;
}

/* The translated line and its warnings, or the mistakes with a '|' between them. The caller frees
 * it. */
static char *translated(const char *text, const char *variables, struct line_nodes *nodes)
{
    struct strv words AUTO_STRV = STRV_INIT, env AUTO_STRV = STRV_INIT;
    struct line line = {.words = STRV_INIT};
    struct line_machine machine = {"now", has_file};
    struct error err = ERROR_INIT;
    struct buf out = BUF_INIT(1 << 16);
    split(text, &words);
    split(variables, &env);
    int rc = translate_line(strv_items(&words), strv_items(&env), &machine, &line, &err);
    const struct strv *shown = rc == 0 ? &line.words : &line.more;
    if (rc < 0) {
        assert_int_equal(err.status, STATUS_USAGE);
        buf_puts(&out, err.text);
    }
    for (size_t i = 0; i < shown->count; i++)
        buf_printf(&out, "%s%s", out.length == 0 ? "" : rc == 0 ? " " : "|", shown->items[i]);
    for (size_t i = 0; i < line.warnings.count; i++)
        buf_printf(&out, "|%s", line.warnings.items[i]);
    for (size_t i = 0; i < line.words.count && rc < 0; i++)
        buf_printf(&out, "%s%s", i == 0 ? "|" : " ", line.words.items[i]);
    if (line.own_address != NULL)
        buf_printf(&out, "|own address %s", line.own_address);
    *nodes = line.nodes;
    line_destroy(&line);
    return buf_take(&out);
}

static void becomes_env(const char *text, const char *variables, const char *expected)
{
    struct line_nodes nodes;
    char *got AUTO_FREE = translated(text, variables, &nodes);
    free(nodes.meeting_host);
    free(nodes.meeting_id);
    if (strcmp(got, expected) != 0)
        fail_msg("'%s'\n  became:   %s\n  expected: %s", text, got, expected);
}

static void becomes(const char *text, const char *expected)
{
    becomes_env(text, "HOME=/x", expected);
}

static void test_ranks(void **state)
{
    (void)state;
    becomes("torchrun t.py", ONE PROGRAM);
    becomes("torchrun --nproc-per-node 2 t.py", TWO PROGRAM);
    becomes("torchrun --nproc_per_node=2 t.py --nproc_per_node 7 : -x",
            TWO PROGRAM " --nproc_per_node 7 : -x");
    becomes("torchrun --nproc-per_node gpu t.py", "--map-by ppr:gpu:node" PROGRAM);
    becomes("torchrun --nproc-per-node auto t.py", "--map-by ppr:auto:node" PROGRAM);
    becomes("torchrun --nproc-per-node cpu -- t.py", "--map-by ppr:cpu:node" PROGRAM);
    becomes("torchrun --standalone --nnodes=1 --nproc-per-node 2 --start-method fork "
            "--monitor_interval 0.1 t.py",
            TWO PROGRAM);
    becomes("torchrun --help t.py", "--help");
    becomes("accelerate --help", "--help");
}

static void test_restarts(void **state)
{
    (void)state;
    becomes("torchrun --max-restarts 0 t.py", ONE PROGRAM);
    becomes("torchrun --max_restarts=3 t.py", ONE " --max-restarts 3 --slots-per-host 1" PROGRAM);
    becomes("torchrun --nnodes 2 --max_restarts=3 t.py",
            ONE " --max-restarts 3 --slots-per-host 1 -np 2" PROGRAM);
    becomes("torchrun --nnodes 1:3 --nproc-per-node 2 t.py",
            TWO " --max-restarts 0 --slots-per-host 2 --min-np 2 --max-np 6" PROGRAM);
    becomes("torchrun --nnodes 2:2 --nproc-per-node 2 t.py", TWO PROGRAM);
}

static void nodes_are(const char *text, const char *variables, int min, int max, int rank,
                      int first, const char *host, int port)
{
    struct line_nodes nodes;
    char *got AUTO_FREE = translated(text, variables, &nodes);
    char *meets AUTO_FREE = nodes.meeting_host, *id AUTO_FREE = nodes.meeting_id;
    (void)id;
    bool same = meets == NULL ? host == NULL : host != NULL && strcmp(meets, host) == 0;
    if (!same || nodes.min != min || nodes.max != max || nodes.rank != rank ||
        nodes.is_first != first || nodes.meeting_port != port)
        fail_msg("%s: %d:%d, rank %d, first %d, %s:%d (%s)", text, nodes.min, nodes.max, nodes.rank,
                 nodes.is_first, meets == NULL ? "-" : meets, nodes.meeting_port, got);
}

static void test_nodes(void **state)
{
    (void)state;
    nodes_are("torchrun t.py", "", 0, 0, -1, -1, NULL, 0);
    nodes_are("torchrun --standalone --nnodes 3 --rdzv-endpoint h:1 t.py", "", 1, 1, -1, -1, NULL,
              0);
    nodes_are("torchrun --nnodes 2:4 --node-rank 3 t.py", "", 2, 4, 3, -1, NULL, 0);
    nodes_are("torchrun --nnodes 2 --rdzv-backend c10d --rdzv_endpoint h t.py", "", 2, 2, -1, -1,
              "h", 29400);
    nodes_are("torchrun --nnodes 2 --rdzv-backend=c10d --rdzv-endpoint=[fe80::1]:7 t.py", "", 2, 2,
              -1, -1, "fe80::1", 7);
    nodes_are("torchrun --nnodes 2 --rdzv-endpoint fe80::1 t.py", "", 2, 2, -1, -1, "fe80::1",
              29500);
    nodes_are("torchrun --nnodes 2 --rdzv-endpoint localhost:7 t.py", "", 2, 2, -1, -1, "localhost",
              7);
    nodes_are("torchrun --nnodes 2 --master_addr h --node_rank 0 t.py", "", 2, 2, 0, -1, "h",
              29500);
    nodes_are("torchrun --nnodes 2 --master-addr h --master-port 9 t.py", "", 2, 2, -1, -1, "h", 9);
    nodes_are("torchrun --nnodes 2 --rdzv-endpoint h:1 --rdzv-conf timeout=3,is_host=1 t.py", "", 2,
              2, -1, 1, "h", 1);
    nodes_are("torchrun --rdzv-conf is_host=false t.py",
              "PET_NNODES=2 PET_RDZV_ENDPOINT=h:1 PET_NODE_RANK=1", 2, 2, 1, 0, "h", 1);
    nodes_are("deepspeed --num_nodes 2 t.py", "PET_NNODES=3", 2, 2, -1, -1, NULL, 0);
    nodes_are("accelerate launch --num_machines 2 --machine_rank 1 --main_process_ip h "
              "--main_process_port 5 t.py",
              "", 2, 2, 1, -1, "h", 5);
}

static void joins(const char *text, const char *id, int seconds)
{
    struct line_nodes nodes;
    char *got AUTO_FREE = translated(text, "", &nodes);
    char *meets AUTO_FREE = nodes.meeting_host, *own AUTO_FREE = nodes.meeting_id;
    (void)meets;
    if (nodes.join_seconds != seconds || strcmp(own == NULL ? "-" : own, id) != 0)
        fail_msg("%s: %s, %d s (%s)", text, own, nodes.join_seconds, got);
}

static void calls(const char *text, int ms)
{
    struct line_nodes nodes;
    char *got AUTO_FREE = translated(text, "", &nodes), *meets AUTO_FREE = nodes.meeting_host;
    (void)got, (void)meets;
    assert_int_equal(nodes.last_call_ms, ms);
}

/* A key that torchrun does not know either may be mistyped. */
static void test_configuration(void **state)
{
    (void)state;
    becomes("torchrun --rdzv-conf read_timeout=3,is_hos=1,a\nb=2,timeout=900 t.py",
            ONE PROGRAM "|torchrun: --rdzv-conf is_hos: hvdrun does not know this key"
                        "|torchrun: --rdzv-conf a?b: hvdrun does not know this key");
    becomes("torchrun --rdzv-conf join_timeout=soon,last_call_timeout=-1,is_host=maybe t.py",
            "torchrun: --rdzv-conf join_timeout=soon: expected seconds|"
            "torchrun: --rdzv-conf last_call_timeout=-1: expected seconds|"
            "torchrun: --rdzv-conf is_host=maybe: expected true or false");
}

static void test_joining(void **state)
{
    (void)state;
    joins("torchrun --nnodes 2 --rdzv-endpoint h:1 t.py", "-", 0);
    joins("torchrun --rdzv-endpoint h:1 --rdzv-id=7 --rdzv-conf is_host=0,join_timeout=9 t.py", "7",
          9);
    calls("torchrun --rdzv-endpoint h:1 t.py", 0);
    calls("torchrun --rdzv-endpoint h:1 --rdzv-conf last_call_timeout=5 t.py", 5001);
    calls("torchrun --rdzv-endpoint h:1 --rdzv-conf=last_call_timeout=0 t.py", 1);
    nodes_are("torchrun --nnodes 2 --rdzv-endpoint h:0 t.py", "", 2, 2, -1, -1, NULL, 0);
}

/* The static backend tells the workers its address; c10d has one of its own. */
static void test_meeting(void **state)
{
    (void)state;
    becomes("torchrun --master-addr h --master_port 9 t.py",
            ONE " -x MASTER_ADDR=h --master-port 9" PROGRAM);
    becomes("torchrun --master-addr h t.py", ONE " -x MASTER_ADDR=h" PROGRAM);
    becomes("torchrun --master-addr 127.0.0.1 --master-port 9 t.py",
            ONE " --master-port 9" PROGRAM);
    becomes("torchrun --master-port 0 t.py", ONE PROGRAM);
    becomes("torchrun --rdzv-backend static --rdzv-endpoint h:9 t.py",
            ONE " -x MASTER_ADDR=h --master-port 9" PROGRAM);
    becomes("torchrun --rdzv-backend c10d --rdzv-endpoint h:9 --rdzv-id 7 t.py",
            ONE " -x TORCHELASTIC_RUN_ID=7" PROGRAM);
    becomes("torchrun --rdzv-backend c10d --rdzv-endpoint localhost:0 --local-addr n1 t.py",
            ONE PROGRAM "|own address n1");
    becomes("torchrun --master-addr h --local-addr n1 t.py", ONE " -x MASTER_ADDR=h" PROGRAM);
    becomes("torchrun --local-addr 127.0.0.1 t.py", ONE PROGRAM);
    becomes("torchrun --standalone --master-addr h --rdzv-id 7 t.py", ONE PROGRAM);
}

static void test_program(void **state)
{
    (void)state;
    becomes("torchrun -m pkg.t -m", ONE " -- python3 -m pkg.t -m");
    becomes("torchrun --module pkg.t", ONE " -- python3 -m pkg.t");
    becomes("torchrun --no-python ./a b", ONE " -- ./a b");
    becomes("torchrun --run_path --no_python /t.py a",
            ONE " -- python3 -c import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], "
                "run_name='__main__') /t.py a");
    becomes_env("torchrun t.py", "PYTHON_EXEC=/p/python", ONE " -- /p/python t.py");
    becomes("torchrun --role trainer --virtual-local-rank t.py",
            ONE " -x ROLE_NAME=trainer -x LOCAL_RANK=0 --gpus-per-proc 1" PROGRAM);
}

static void test_output(void **state)
{
    (void)state;
    becomes("torchrun --log-dir l t.py", ONE PROGRAM);
    becomes("torchrun --log_dir l -t 3 t.py",
            ONE " --output-filename l/none_now/%r/%s.log" PROGRAM);
    becomes("torchrun --log_dir l% --rdzv-id 7 --tee=1 t.py",
            ONE " -x TORCHELASTIC_RUN_ID=7 --output-filename l%%/7_now/%r/%s.log" PROGRAM);
    becomes("torchrun -r3 t.py",
            ONE " --ranks none --output-filename /tmp/torchelastic_none_now/%r/%s.log" PROGRAM);
    becomes_env("torchrun -r 1 t.py", "TMPDIR=/t",
                ONE
                " --ranks l0-:stderr --output-filename /t/torchelastic_none_now/%r/%s.log" PROGRAM);
    becomes("torchrun --log-dir l -r 0:1,1:2 t.py",
            ONE " --ranks l0:stderr,l1:stdout,l2- --output-filename l/none_now/%r/%s.log" PROGRAM);
    becomes("torchrun --log-dir l --redirects 3 --tee 0:3 t.py",
            ONE " --ranks l0 --output-filename l/none_now/%r/%s.log" PROGRAM);
    becomes("torchrun --local-ranks-filter 0,2 t.py", ONE " --ranks l0,l2" PROGRAM);
    becomes("torchrun --log-dir l --local_ranks_filter=1 -r 1 t.py",
            ONE " --ranks l1:stderr --output-filename l/none_now/%r/%s.log" PROGRAM);
    becomes("torchrun --redirects 0 --tee 0 t.py", ONE PROGRAM);
}

static void test_variables(void **state)
{
    (void)state;
    becomes_env("torchrun t.py", "PET_NPROC_PER_NODE=2 PET_NNODES= XPET_ROLE=x PET_ROLE=a",
                TWO " -x ROLE_NAME=a" PROGRAM);
    becomes_env("torchrun --nproc-per-node 1 t.py",
                "PET_NPROC_PER_NODE=2 PET_STANDALONE=1 PET_MODULE=0", ONE PROGRAM);
    becomes_env(
        "torchrun t.py", "PET_MODULE=1 PET_MAX_RESTARTS=2 PET_MASTER_ADDR=h PET_MASTER_PORT=5",
        ONE
        " --max-restarts 2 --slots-per-host 1 -x MASTER_ADDR=h --master-port 5 -- python3 -m t.py");
    becomes_env("torchrun t.py", "PET_NPROC_PER_NODE=x PET_EVENT_LOG_HANDLER=console",
                "torchrun: PET_EVENT_LOG_HANDLER: write --events FILE as an option of hvdrun|"
                "torchrun: PET_NPROC_PER_NODE x: expected a number, gpu, cpu or auto");
    becomes_env("torchrun t.py",
                "PET_LOGS_SPECS=y PET_NUMA_BINDING=node PET_STANDALONE=False PET_NNODES=1",
                ONE PROGRAM);
    becomes_env("torchrun t.py", "PET_EVENT_LOG_HANDLER=console",
                "torchrun: PET_EVENT_LOG_HANDLER: write --events FILE as an option of hvdrun");
    becomes_env("deepspeed --no_local_rank t.py", "PET_NPROC_PER_NODE=2", "-- python3 t.py");
}

/* All mistakes at once. */
static void test_mistakes(void **state)
{
    (void)state;
    becomes("torchrun", "torchrun: the script is missing");
    becomes("torchrun --nnodes", "torchrun: --nnodes needs a value");
    becomes("torchrun --standalone=1 t.py", "torchrun: --standalone takes no value");
    becomes("torchrun -H a t.py", "torchrun: -H: unknown option");
    becomes("torchrun --foo=1 --bar --nnodes x t.py",
            "torchrun: --foo=1: unknown option|torchrun: --bar: unknown option|"
            "torchrun: --nnodes x: expected a number of hosts, or MIN:MAX");
    becomes("torchrun --rdzv_id --rdzv_backend c10d --master-addr -x t.py",
            "torchrun: --rdzv_id needs a value|torchrun: --master-addr needs a value|"
            "torchrun: -x: unknown option");
    becomes("torchrun --nproc-per-node xpu t.py",
            "torchrun: --nproc-per-node xpu: hvdrun does not count these devices; write their "
            "number");
    becomes("torchrun --node-rank 1 t.py", "torchrun: --node-rank 1: expected 0, because the line "
                                           "does not say how many hosts there are");
    becomes(
        "torchrun --nnodes 2:1 --nproc-per-node 0 --max-restarts -1 --node-rank x --master-port "
        "70000 "
        "--rdzv-backend etcd --rdzv-conf a --rdzv-endpoint ;:1 -r 4 --start-method x "
        "--monitor-interval x "
        "--numa-binding node -m --no-python t.py",
        "torchrun: --numa-binding: write --bind-to gpu, numa, l3 or core as an option of hvdrun|"
        "torchrun: --node-rank x: expected a number from 0 to 1000000|"
        "torchrun: --nnodes 2:1: expected a number of hosts, or MIN:MAX|"
        "torchrun: --nproc-per-node 0: expected a number, gpu, cpu or auto|"
        "torchrun: --max-restarts -1: expected a number from 0 to 1000000|"
        "torchrun: --rdzv-backend etcd: hvdrun has c10d and static; it needs no other service, so "
        "leave it out|"
        "torchrun: --master-port 70000: expected a number from 0 to 65535|"
        "torchrun: --rdzv-conf a: expected KEY=VALUE,...|"
        "torchrun: --rdzv-endpoint ;:1: expected HOST:PORT|"
        "torchrun: -r 4: expected 0 to 3, or for local ranks 0:1,1:2|"
        "torchrun: --start-method x: expected spawn, fork or forkserver|"
        "torchrun: --monitor-interval x: expected seconds|"
        "torchrun: -m and --no-python contradict each other: give one");
    becomes("torchrun --nnodes 1:2 --nproc-per-node gpu -t 0: --local-ranks-filter , --master-addr "
            "; t.py",
            "torchrun: --nnodes 1:2: with MIN:MAX, --nproc-per-node must be a number|"
            "torchrun: --master-addr ;: expected an address|"
            "torchrun: -t 0:: expected 0 to 3, or for local ranks 0:1,1:2");
    becomes("torchrun --local-ranks-filter 1, --rdzv-endpoint [h t.py",
            "torchrun: --rdzv-endpoint [h: expected HOST:PORT");
    becomes("torchrun --local-ranks-filter 1-2 t.py",
            "torchrun: --local-ranks-filter 1-2: expected local ranks such as 0,2");
}

/* If options that hvdrun cannot honour are all that is wrong, the line without them follows. */
static void test_kept(void **state)
{
    (void)state;
    becomes(
        "torchrun --numa-binding node --nnodes 1 --logs_specs=x -r 1 t.py --numa-binding",
        "torchrun: --numa-binding: write --bind-to gpu, numa, l3 or core as an option of hvdrun|"
        "torchrun: --logs_specs: hvdrun writes the logs itself, and does not load a class for "
        "them|torchrun --nnodes 1 -r 1 t.py --numa-binding");
    becomes("accelerate launch --use_fsdp --fsdp_offload_params true -m t",
            "accelerate: --use_fsdp: give the plugin to Accelerator() in the script|"
            "accelerate: --fsdp_offload_params: give the plugin to Accelerator() in the script|"
            "accelerate launch -m t");
    becomes("torchrun --logs-specs x",
            "torchrun: --logs-specs: hvdrun writes the logs itself, and does not load a class for "
            "them");
}

static void test_shortened(void **state)
{
    (void)state;
    becomes("torchrun --nproc_per 2 --nnode 1 --stand t.py", TWO PROGRAM);
    becomes("torchrun --no 1 t.py", "torchrun: --no: the name is that of several options");
    becomes("deepspeed --num_g=2 --no_local t.py", TWO PROGRAM);
    becomes("deepspeed --launcher pdsh --no_local_rank t.py", "-- python3 t.py");
    becomes("accelerate launch --num_proc=2 t.py", "accelerate: --num_proc=2: unknown option");
}

/* The values that mean the same as no option. */
static void test_defaults(void **state)
{
    (void)state;
    becomes("deepspeed --num_gpus -1 --num_nodes -1 --enable_each_rank_log None --no_local_rank "
            "--include= --exclude= --launcher_args= --min_elastic_nodes -1 t.py",
            "-- python3 t.py");
    becomes("deepspeed --hostfile /job/hostfile --no_local_rank t.py",
            "-- python3 t.py|deepspeed: /job/hostfile is missing: the job runs on this machine");
    becomes("torchrun --local-ranks-filter= --rdzv_endpoint= --event-log-handler null "
            "--signals-to-handle SIGTERM,SIGINT,SIGHUP,SIGQUIT t.py",
            ONE PROGRAM);
    becomes("torchrun --rdzv-endpoint h:1 --rdzv-endpoint= t.py", ONE PROGRAM);
    becomes("torchrun --shutdown-timeout 9 t.py", ONE " --grace 9" PROGRAM);
}

/* DeepSpeed tells each script its local rank. */
static void test_local_rank(void **state)
{
    (void)state;
    becomes("deepspeed t.py -a",
            "-- sh -c p=$1 s=$2; shift 2; exec \"$p\" \"$s\" --local_rank=$LOCAL_RANK \"$@\" sh "
            "python3 t.py -a");
    becomes("deepspeed --module t",
            "-- sh -c p=$1 s=$2; shift 2; exec \"$p\" -m \"$s\" --local_rank=$LOCAL_RANK "
            "\"$@\" sh python3 t");
    becomes("deepspeed --no_python ./t",
            "-- sh -c s=$1; shift; exec \"$s\" --local_rank=$LOCAL_RANK \"$@\" sh ./t");
    becomes("deepspeed --no_python --no_local_rank ./t", "-- ./t");
}

static void test_deepspeed(void **state)
{
    (void)state;
    becomes("deepspeed --no_local_rank t.py --deepspeed x", "-- python3 t.py --deepspeed x");
    becomes("deepspeed --num_gpus gpu t.py", "deepspeed: --num_gpus gpu: expected a number");
    becomes("deepspeed --num_nodes 1:2 t.py",
            "deepspeed: --num_nodes 1:2: expected a number of hosts");
    becomes("deepspeed -H h -i a@b t.py", "deepspeed: -i a@b: with a hostfile, name the devices of "
                                          "each host, as in HOST:0,1");
    becomes(
        "deepspeed --hostfile h --num_gpus 2 --launcher pdsh --no_local_rank --master_port 7 t.py",
        TWO " --master-port 7 --hostfile h" PROGRAM);
    becomes("deepspeed -H h -i a:0,2@b:0,2 --no_local_rank --bind_cores_to_rank t.py",
            "-H a:2,b:2 -x CUDA_VISIBLE_DEVICES=0,2 --bind-to core" PROGRAM);
    becomes("deepspeed --no_local_rank --include a@b --ssh_port 23 t.py",
            "-H a,b --ssh-port 23" PROGRAM);
    static const char *const others[] = {"a:0@b:1", "worker-0@worker-1:0,2", "a:0@b"};
    for (size_t i = 0; i < 3; i++) {
        char *line AUTO_FREE = mem_printf("deepspeed --include %s --exclude c t.py", others[i]);
        char *wrong AUTO_FREE = mem_printf(
            "deepspeed: --exclude: name the hosts that the job uses, with --include or with -H of "
            "hvdrun|deepspeed: --include %s: all hosts need the same devices; for others, write a "
            "program for each host: hvdrun -H a:4,b:2 -np 4 PROGRAM : -np 2 -x "
            "CUDA_VISIBLE_DEVICES=0,2 PROGRAM",
            others[i]);
        becomes(line, wrong);
    }
    static const char *const bad[] = {"a:x", "a:", "a:,", "a:0,", "a:0,,1", "a:0,0", "a:1,0,1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *line AUTO_FREE = mem_printf("deepspeed --include %s t.py", bad[i]);
        char *wrong AUTO_FREE =
            mem_printf("deepspeed: --include %s: expected HOST@HOST, or HOST:0,1@HOST:0,1", bad[i]);
        becomes(line, wrong);
    }
}

#define DEFAULTS "-x ACCELERATE_MIXED_PRECISION=no -x ACCELERATE_DYNAMO_BACKEND=NO"

static void test_accelerate(void **state)
{
    (void)state;
    becomes("accelerate launch t.py", DEFAULTS PROGRAM);
    becomes("accelerate launch -q --gradient_accumulation_steps 4 --downcast_bf16 "
            "--main_training_function main t.py",
            DEFAULTS PROGRAM);
    becomes("accelerate launch --multi_gpu --num_processes 8 --mixed_precision BF16 "
            "--dynamo_backend inductor --dynamo_use_dynamic --debug "
            "--num_cpu_threads_per_process 3 --gpu_ids 0,1 t.py",
            "-np 8 -x CUDA_VISIBLE_DEVICES=0,1 -x ACCELERATE_MIXED_PRECISION=bf16 "
            "-x ACCELERATE_DYNAMO_BACKEND=INDUCTOR -x ACCELERATE_DYNAMO_USE_DYNAMIC=True "
            "-x ACCELERATE_DEBUG_MODE=true -x OMP_NUM_THREADS=3" PROGRAM);
    becomes("accelerate launch --num-machines 4 --num-processes 8 --cpu --gpu-ids all "
            "--dynamo-backend no -m t.py",
            TWO " " DEFAULTS " -x ACCELERATE_USE_CPU=true -- python3 -m t.py");
    becomes("accelerate launch --mixed_precision fp32 t.py",
            "accelerate: --mixed_precision fp32: expected no, fp16, bf16 or fp8");
    becomes_env("accelerate launch t.py", "HOME=/there",
                DEFAULTS PROGRAM "|accelerate: hvdrun does not read "
                                 "/there/.cache/huggingface/accelerate/default_config.yaml; give "
                                 "its values as options");
    becomes_env("accelerate launch t.py", "HOME=/there HF_HOME=/x", DEFAULTS PROGRAM);
    becomes_env("accelerate launch t.py", "HOME=/x XDG_CACHE_HOME=/there",
                DEFAULTS PROGRAM "|accelerate: hvdrun does not read "
                                 "/there/huggingface/accelerate/default_config.yaml; give its "
                                 "values as options");
    becomes("accelerate launch --num_machines 3 --num_processes 8 t.py",
            "accelerate: --num_processes 8: expected a multiple of the number of hosts");
    becomes("accelerate launch --use_fsdp --config_file f t.py",
            "accelerate: --use_fsdp: give the plugin to Accelerator() in the script|"
            "accelerate: --config_file: hvdrun does not read it; give its values as options|"
            "accelerate launch t.py");
    becomes("accelerate config", "accelerate: of its commands, hvdrun has only launch");
    becomes("accelerate", "accelerate: of its commands, hvdrun has only launch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),     cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_nodes),     cmocka_unit_test(test_meeting),
        cmocka_unit_test(test_program),   cmocka_unit_test(test_output),
        cmocka_unit_test(test_variables), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_kept),      cmocka_unit_test(test_shortened),
        cmocka_unit_test(test_defaults),  cmocka_unit_test(test_local_rank),
        cmocka_unit_test(test_deepspeed), cmocka_unit_test(test_accelerate),
        cmocka_unit_test(test_joining),   cmocka_unit_test(test_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
