/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_fixture.h"

#include <sys/stat.h>

#include "cli/sources.h"

/* Each spelling of horovodrun 0.28 with the option it sets and the value stored. */
static const struct {
    const char *words;
    enum option_id id;
    const char *value;
} horovod_flags[] = {
    {"-np 4", OPT_np, "4"},
    {"-np=4", OPT_np, "4"},
    {"--num-proc 4", OPT_np, "4"},
    {"--num-proc=4", OPT_np, "4"},
    {"--disable-cache", OPT_disable_cache, "yes"},
    {"--start-timeout 60", OPT_start_timeout, "60"},
    {"--start-timeout=60", OPT_start_timeout, "60"},
    {"--network-interfaces eth0,eth1", OPT_network_interfaces, "eth0,eth1"},
    {"--network-interface eth0 --network-interface eth1", OPT_network_interfaces, "eth0,eth1"},
    {"--output-filename out", OPT_output_filename, "out"},
    {"--verbose", OPT_verbose, "1"},
    {"-v", OPT_verbose, "1"},
    {"-p 2222", OPT_ssh_port, "2222"},
    {"--ssh-port 2222", OPT_ssh_port, "2222"},
    {"-i key", OPT_ssh_identity_file, "key"},
    {"--ssh-identity-file key", OPT_ssh_identity_file, "key"},
    {"--fusion-threshold-mb 32", OPT_fusion_threshold_mb, "32"},
    {"--fusion-threshold-mb=0", OPT_fusion_threshold_mb, "0"},
    {"--cycle-time-ms 1.5", OPT_cycle_time_ms, "1.5"},
    {"--cache-capacity 512", OPT_cache_capacity, "512"},
    {"--hierarchical-allreduce", OPT_hierarchical_allreduce, "yes"},
    {"--no-hierarchical-allreduce", OPT_hierarchical_allreduce, "no"},
    {"--hierarchical-allgather", OPT_hierarchical_allgather, "yes"},
    {"--no-hierarchical-allgather", OPT_hierarchical_allgather, "no"},
    {"--torus-allreduce", OPT_torus_allreduce, "yes"},
    {"--no-torus-allreduce", OPT_torus_allreduce, "no"},
    {"--autotune", OPT_autotune, "yes"},
    {"--no-autotune", OPT_autotune, "no"},
    {"--autotune-log-file log.csv", OPT_autotune_log_file, "log.csv"},
    {"--autotune-warmup-samples 5", OPT_autotune_warmup_samples, "5"},
    {"--autotune-steps-per-sample 20", OPT_autotune_steps_per_sample, "20"},
    {"--autotune-bayes-opt-max-samples 50", OPT_autotune_bayes_opt_max_samples, "50"},
    {"--autotune-gaussian-process-noise 0.9", OPT_autotune_gaussian_process_noise, "0.9"},
    {"--min-np 2", OPT_min_np, "2"},
    {"--min-num-proc 2", OPT_min_np, "2"},
    {"--max-np 8", OPT_max_np, "8"},
    {"--max-num-proc 8", OPT_max_np, "8"},
    {"--slots-per-host 4", OPT_slots_per_host, "4"},
    {"--elastic-timeout 300", OPT_elastic_timeout, "300"},
    {"--reset-limit 3", OPT_reset_limit, "3"},
    {"--blacklist-cooldown-range 60 300", OPT_blacklist_cooldown_range, "60 300"},
    {"--blacklist-cooldown-range=60,300", OPT_blacklist_cooldown_range, "60 300"},
    {"--timeline-filename t.json", OPT_timeline_filename, "t.json"},
    {"--timeline-mark-cycles", OPT_timeline_mark_cycles, "yes"},
    {"--no-timeline-mark-cycles", OPT_timeline_mark_cycles, "no"},
    {"--stall-check", OPT_stall_check, "yes"},
    {"--no-stall-check", OPT_stall_check, "no"},
    {"--stall-check-warning-time-seconds 10", OPT_stall_check_warning_time_seconds, "10"},
    {"--stall-check-shutdown-time-seconds 0", OPT_stall_check_shutdown_time_seconds, "0"},
    {"--mpi-threads-disable", OPT_mpi_threads_disable, "yes"},
    {"--no-mpi-threads-disable", OPT_mpi_threads_disable, "no"},
    {"|--mpi-args=--map-by ppr:6:node|", OPT_mpi_args, "--map-by ppr:6:node"},
    {"--tcp", OPT_tcp, "yes"},
    {"|--binding-args=--rankfile f|", OPT_binding_args, "--rankfile f"},
    {"--num-nccl-streams 2", OPT_num_nccl_streams, "2"},
    {"--thread-affinity 1", OPT_thread_affinity, "1"},
    {"--gloo-timeout-seconds 90", OPT_gloo_timeout_seconds, "90"},
    {"--log-level DEBUG", OPT_log_level, "DEBUG"},
    {"--log-with-timestamp", OPT_log_with_timestamp, "yes"},
    {"--log-without-timestamp", OPT_log_with_timestamp, "no"},
    {"--log-hide-timestamp", OPT_log_with_timestamp, "no"},
    {"--no-log-hide-timestamp", OPT_log_with_timestamp, "yes"},
    {"--log-no-hide-timestamp", OPT_log_with_timestamp, "yes"},
    {"-prefix-timestamp", OPT_prefix_output_with_timestamp, "yes"},
    {"--prefix-output-with-timestamp", OPT_prefix_output_with_timestamp, "yes"},
    {"-H a:2,b:2", OPT_hosts, "a:2,b:2"},
    {"--hosts a:2,b:2", OPT_hosts, "a:2,b:2"},
    {"-hostfile f", OPT_hostfile, "f"},
    {"--hostfile f", OPT_hostfile, "f"},
    {"--host-discovery-script d.sh", OPT_host_discovery_script, "d.sh"},
    {"--gloo", OPT_controller, "gloo"},
    {"--mpi", OPT_controller, "mpi"},
    {"--jsrun", OPT_jsrun, "yes"},
};

static void test_horovod_flags(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(horovod_flags) / sizeof(horovod_flags[0]); i++) {
        struct command_line line;
        char *text = mem_printf("%s ./train -np 9 --bad", horovod_flags[i].words);
        must_parse(text, NULL, &line);
        value_is(&line.settings, horovod_flags[i].id, horovod_flags[i].value);
        assert_true(settings_is_set(&line.settings, horovod_flags[i].id));
        assert_int_equal(line.apps.count, 1);
        assert_int_equal(line.apps.items[0].argv.count, 4);
        assert_string_equal(line.apps.items[0].argv.items[0], "./train");
        command_line_destroy(&line);
        free(text);
    }
}

/* Ours, and what users of mpirun and srun type. */
static const struct {
    const char *words;
    enum option_id id;
    const char *value;
} other_flags[] = {
    {"-n 3", OPT_np, "3"},
    {"--np 3", OPT_np, "3"},
    {"--host a", OPT_hosts, "a"},
    {"-host a", OPT_hosts, "a"},
    {"-f hosts", OPT_hostfile, "hosts"},
    {"-machinefile hosts", OPT_hostfile, "hosts"},
    {"-wdir /tmp", OPT_wdir, "/tmp"},
    {"--wdir=/tmp", OPT_wdir, "/tmp"},
    {"-x A=1 -x |B=two words|", OPT_env, "A=1,B=two words"},
    {"--no-env", OPT_no_env, "yes"},
    {"--dry-run", OPT_dry_run, "table"},
    {"--dry-run=json", OPT_dry_run, "json"},
    {"--timeout 1.5", OPT_timeout, "1500ms"},
    {"--grace 250ms", OPT_grace, "250ms"},
    {"--node-timeout 1m", OPT_node_timeout, "60"},
    {"--drain-timeout 0", OPT_drain_timeout, "0"},
    {"--stdin all", OPT_stdin_, "all"},
    {"--stdin none", OPT_stdin_, "none"},
    {"--stdin 3", OPT_stdin_, "3"},
    {"--pty 0", OPT_pty, "0"},
    {"--pty all", OPT_pty, "all"},
    {"--pty none", OPT_pty, "none"},
    {"--label %r@%h%%:", OPT_label, "%r@%h%%:"},
    {"--no-label", OPT_label, ""},
    {"--color", OPT_color, "always"},
    {"--color=never", OPT_color, "never"},
    {"--colour=AUTO", OPT_color, "auto"},
    {"--ranks 0,4-7", OPT_ranks, "0,4-7"},
    {"--collapse", OPT_collapse, "yes"},
    {"--collapse --no-collapse", OPT_collapse, "no"},
    {"--merge-stderr=no", OPT_merge_stderr, "no"},
    {"--report r.json", OPT_report, "r.json"},
    {"--events e", OPT_events, "e"},
    {"--launch-trace t", OPT_launch_trace, "t"},
    {"--metrics 9400", OPT_metrics, "9400"},
    {"--metrics-file m.prom", OPT_metrics_file, "m.prom"},
    {"--page-file page.html", OPT_page_file, "page.html"},
    {"--mpi=pmi1", OPT_mpi, "pmi1"},
    {"--mpi=none --mpi=pmix", OPT_mpi, "pmix"},
    {"--bind-to core", OPT_bind_to, "core"},
    {"-bind-to none", OPT_bind_to, "none"},
    {"--report-bindings", OPT_report_bindings, "yes"},
    {"--exit-policy rank0", OPT_exit_policy, "rank0"},
    {"-q", OPT_quiet, "yes"},
    {"-vv", OPT_verbose, "2"},
    {"-v --verbose -v", OPT_verbose, "3"},
    {"--verbose=2", OPT_verbose, "2"},
    {"--oversubscribe", OPT_oversubscribe, "yes"},
    {"--transport local", OPT_transport, "local"},
    {"--master-port 4321", OPT_master_port, "4321"},
    {"--no-port-hold", OPT_port_hold, "no"},
    {"--no-stack-traces", OPT_stack_traces, "no"},
    {"-np 2 -np 5", OPT_np, "5"},
    {"--blacklist-after 1", OPT_blacklist_after, "1"},
};

/* Accepted options of other launchers: cli/foreign.def. */
static const struct {
    const char *words;
    enum option_id id;
    const char *value;
} foreign_flags[] = {
    {"-n2", OPT_np, "2"},
    {"-np2", OPT_np, "2"},
    {"-p2222", OPT_ssh_port, "2222"},
    {"--n 2", OPT_np, "2"},
    {"--ntasks 2", OPT_np, "2"},
    {"--ntasks=2", OPT_np, "2"},
    {"-npernode 3", OPT_map_by, "ppr:3:node"},
    {"--npernode=3", OPT_map_by, "ppr:3:node"},
    {"--pernode", OPT_map_by, "ppr:1:node"},
    {"-ppn 3", OPT_map_by, "ppr:3:node"},
    {"-ppn3", OPT_map_by, "ppr:3:node"},
    {"--ntasks-per-node 3", OPT_map_by, "ppr:3:node"},
    {"--nproc_per_node=3", OPT_map_by, "ppr:3:node"},
    {"--nproc-per-node 3", OPT_map_by, "ppr:3:node"},
    {"-hosts a,b", OPT_hosts, "a,b"},
    {"--tag-output", OPT_label, "[%r]<%s>:"},
    {"-l", OPT_label, "[%r]<%s>:"},
    {"--no-label -l", OPT_label, "[%r]<%s>:"},
    {"--timestamp-output", OPT_prefix_output_with_timestamp, "yes"},
    {"--chdir /tmp", OPT_wdir, "/tmp"},
    {"-D /tmp", OPT_wdir, "/tmp"},
    {"-genv A 1 -genv B |two words|", OPT_env, "A=1,B=two words"},
    {"-Q", OPT_quiet, "yes"},
    {"--max_restarts 2", OPT_max_restarts, "2"},
    {"--master_port 29500", OPT_master_port, "29500"},
    {"-mca pml ob1 --mca btl tcp,self", OPT_env, "OMPI_MCA_pml=ob1,OMPI_MCA_btl=tcp,self"},
    {"--standalone --nnodes=1 --nnodes 1:1 --node_rank 0 --master_addr localhost -np 2", OPT_np,
     "2"},
    {"--nproc_per_node=gpu -np 2", OPT_np, "2"},
    {"--num_processes 2 --num_machines 1 --machine_rank=0 --dynamo_backend no --multi_gpu", OPT_np,
     "2"},
    {"--mixed_precision bf16", OPT_env, "ACCELERATE_MIXED_PRECISION=bf16"},
    {"--num_gpus 3 --num_nodes 1", OPT_map_by, "ppr:3:node"},
    {"--log_dir /tmp/logs", OPT_output_filename, "/tmp/logs"},
    {"-np 2 --allow-run-as-root -u --kill-on-bad-exit=1 -K --no_python", OPT_np, "2"},
};

static void test_foreign_flags(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(foreign_flags) / sizeof(foreign_flags[0]); i++) {
        struct command_line line;
        char *text = mem_printf("%s prog -N 4", foreign_flags[i].words);
        must_parse(text, NULL, &line);
        value_is(&line.settings, foreign_flags[i].id, foreign_flags[i].value);
        assert_int_equal(line.warnings.count, 0);
        assert_int_equal(line.apps.items[0].argv.count, 3);
        command_line_destroy(&line);
        free(text);
    }
    struct command_line line; /* a message names the option as it was typed */
    must_parse("-ppn 2 prog", NULL, &line);
    assert_string_equal(settings_place(&line.settings, OPT_map_by), "-ppn");
    command_line_destroy(&line);
    must_parse("--srun-args --exclusive prog", NULL, &line); /* a value */
    assert_string_equal(line.settings.srun_args, "--exclusive");
    command_line_destroy(&line);
}

/* Those with another meaning, or none, here: what to write instead. */
static void test_foreign_hints(void **state)
{
    (void)state;
    must_fail_env("-mca pml", NULL, "-mca needs a value: -mca NAME VALUE");
    must_fail_env("-N 4 x", NULL,
                  "-N is an option of mpirun and srun: for mpirun, write --map-by ppr:4:node; for "
                  "srun, name the hosts with -H");
    must_fail_env("-N4 x", NULL,
                  "-N is an option of mpirun and srun: for mpirun, write --map-by ppr:4:node; for "
                  "srun, name the hosts with -H");
    must_fail_env("-c 2 x", NULL,
                  "-c is an option of mpirun and srun: for mpirun, write -np 2; for srun, write "
                  "--cpus-per-proc 2 --bind-to core");
    must_fail_env("--nodes=2 x", NULL,
                  "--nodes is an option of srun: name the hosts with -H; without it, hvdrun uses "
                  "all nodes of the allocation");
    must_fail_env("--nproc_per_node all x", NULL, "--nproc_per_node: 'all' is not a whole number");
    must_fail_env("-ppn", NULL, "-ppn needs a value: -ppn N");
    must_fail_env("-genv A", NULL, "-genv needs a value: -genv NAME VALUE");
    must_fail_env("-ppn --tcp x", NULL, "-ppn needs a value: -ppn N");
    must_fail_env("-l=2 x", NULL, "-l takes no value ('2' was given)");
    must_fail_env("--kill-on-bad-exit=0 x", NULL,
                  "--kill-on-bad-exit takes no value ('0' was given)");
    must_fail_env("-n4x prog", NULL,
                  "unknown option '-n4x'; 'hvdrun --help all' lists the options");
    must_fail_env("-np 1 a : -ppn 2 b", NULL,
                  "-ppn applies to the whole job: put it before the first program");
}

/* What a user reads: each mistake on a line, and then the line as hvdrun wants it. */
static void expect_mistakes(const char *text, const char *wanted)
{
    struct command_line line;
    struct error err;
    struct buf got AUTO_BUF = BUF_INIT(1 << 16);
    assert_int_equal(parse_env(text, NULL, &line, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    buf_printf(&got, "%s\n", err.text);
    for (size_t i = 0; i < line.more.count; i++)
        buf_printf(&got, "%s\n", line.more.items[i]);
    if (strcmp(buf_text(&got), wanted) != 0)
        fail_msg("'%s' gives:\n%s", text, buf_text(&got));
    command_line_destroy(&line);
}

static void test_all_mistakes(void **state)
{
    (void)state;
    expect_mistakes("--nnodes=2 --rdzv_id=1 --rdzv_backend c10d --nproc_per_node=4 train.py --lr 1",
                    "--nnodes, --rdzv_id, --rdzv_backend are options of torchrun: write hvdrun "
                    "torchrun in front of its line\n"
                    "write: hvdrun torchrun --nnodes=2 --rdzv_id=1 --rdzv_backend c10d "
                    "--nproc_per_node=4 train.py --lr 1\n");
    expect_mistakes(
        "-H a,b --nproc_per_node=4 --nnodes=2 |t t.py|",
        "--nnodes is an option of torchrun: write hvdrun torchrun in front of its line\n"
        "write: hvdrun -H a,b torchrun --nproc_per_node=4 --nnodes=2 't t.py'\n");
    expect_mistakes(
        "--nnodes=2 -H a,b t.py", /* which are of torchrun? */
        "--nnodes is an option of torchrun: write hvdrun torchrun in front of its line\n");
    expect_mistakes(
        "--nnodes=2 --gpu_ids 0 t.py",
        "--nnodes is an option of torchrun: write hvdrun torchrun in front of its line\n"
        "--gpu_ids is an option of accelerate: write hvdrun accelerate launch in front "
        "of its line\n");
    expect_mistakes(
        "--nnodes=2 -m t",
        "--nnodes is an option of torchrun: write hvdrun torchrun in front of its line\n"
        "-m is an option of srun, torchrun, deepspeed and accelerate: for a Python "
        "module, write python3 -m t; for srun, write --map-by\n");
    expect_mistakes("-np 2 -w a,b --gres gpu:2 --display-map ./a |two words| : --np 1 ./b",
                    "-w is an option of srun: write -H a,b\n"
                    "--gres is an option of srun: give it to sbatch or salloc; hvdrun runs inside "
                    "the allocation\n"
                    "write: hvdrun -np 2 -H a,b ./a 'two words' : --np 1 ./b\n");
    expect_mistakes("-m torch.run --lr 1",
                    "-m is an option of srun, torchrun, deepspeed and accelerate: for a Python "
                    "module, write python3 -m torch.run; for srun, write --map-by\n"
                    "write: hvdrun python3 -m torch.run --lr 1\n");
    expect_mistakes("-np x --rankz 3 --timeout y ./a",
                    "unknown option '--rankz': did you mean '--ranks'?\n"
                    "-np: 'x' is not a whole number\n"
                    "--timeout: 'y' is not a duration (examples: 30, 1.5s, 250ms, 5m, 2h)\n");
    expect_mistakes("-np x --timeout y ./a",
                    "-np: 'x' is not a whole number\n"
                    "--timeout: 'y' is not a duration (examples: 30, 1.5s, 250ms, 5m, 2h)\n");
    expect_mistakes("-w a,b --tranport=local --nodes 2 ./a",
                    "-w is an option of srun: write -H a,b\n"
                    "unknown option '--tranport': did you mean '--transport'?\n"
                    "--nodes is an option of srun: name the hosts with -H; without it, hvdrun uses "
                    "all nodes of the allocation\n"
                    "write: hvdrun -H a,b --transport=local ./a\n");
    expect_mistakes("--frob x --gres y ./a", /* x may be the program */
                    "unknown option '--frob'; 'hvdrun --help all' lists the options\n");
    expect_mistakes("--frob=x -w a,b ./a",
                    "unknown option '--frob'; 'hvdrun --help all' lists the options\n"
                    "-w is an option of srun: write -H a,b\n");
    expect_mistakes(
        "--nnodes=2:4 --use_fsdp ./a",
        "--nnodes is an option of torchrun: write hvdrun torchrun in front of its line\n"
        "--use_fsdp is an option of accelerate: give the plugin to Accelerator() in "
        "the script, or write -x for each variable that accelerate launch sets\n");
}

/* What has no meaning here is left out, with one notice. */
static void test_dropped(void **state)
{
    (void)state;
    struct command_line line;
    must_parse("-np 8 --allow-run-as-root --display-map --tag-output -mca btl_tcp_if_include eth0 "
               "-mca oob_tcp_if_include eth0 -mca plm_rsh_no_tree_spawn 1 -bind-to none "
               "-map-by slot -mca pml ob1 -mca btl ^openib -mca orte_abort_on_non_zero_status 1 "
               "-mca plm_rsh_num_concurrent 2 -x NCCL_DEBUG=WARN python3 train.py",
               NULL, &line);
    assert_int_equal(line.warnings.count, 1);
    assert_string_equal(line.warnings.items[0],
                        "left out, because it has no meaning in hvdrun: --display-map "
                        "(--dry-run prints the plan and starts nothing), -mca "
                        "oob_tcp_if_include, -mca plm_rsh_no_tree_spawn, -mca "
                        "orte_abort_on_non_zero_status, -mca plm_rsh_num_concurrent");
    value_is(&line.settings, OPT_env,
             "OMPI_MCA_btl_tcp_if_include=eth0,OMPI_MCA_pml=ob1,OMPI_MCA_btl=^openib,"
             "NCCL_DEBUG=WARN");
    command_line_destroy(&line);
}

static void test_other_flags(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(other_flags) / sizeof(other_flags[0]); i++) {
        struct command_line line;
        char *text = mem_printf("%s prog", other_flags[i].words);
        must_parse(text, NULL, &line);
        value_is(&line.settings, other_flags[i].id, other_flags[i].value);
        command_line_destroy(&line);
        free(text);
    }
}

/* Every bare word of an option with FLAG_EQUALS means something, and every field has a name. */
static void test_list_is_sound(void **state)
{
    (void)state;
    for (int i = 0; i < OPT_TOTAL; i++) {
        char name[OPTION_NAME_MAX], text[OPTION_NAME_MAX + 16];
        struct command_line line;
        if ((option_info((enum option_id)i)->flags & FLAG_EQUALS) == 0)
            continue;
        snprintf(text, sizeof(text), "--%s prog", option_name((enum option_id)i, name));
        must_parse(text, NULL, &line);
        assert_int_equal(line.apps.items[0].argv.count, 1);
        command_line_destroy(&line);
    }
}

static void test_defaults(void **state)
{
    (void)state;
    struct command_line line;
    must_parse("prog a b", NULL, &line);
    const struct settings *s = &line.settings;
    assert_int_equal(s->np, 0);
    assert_int_equal(line.apps.items[0].np, 0);
    assert_null(s->hosts);
    assert_int_equal(s->timeout, -1);
    assert_int_equal(s->start_timeout, 30000);
    assert_int_equal(s->grace, -1);
    assert_int_equal(s->drain_timeout, 2000);
    assert_int_equal(s->stdin_, 0);
    assert_int_equal(s->pty, SET_RANK_AUTO);
    assert_int_equal(s->autotune, -1);
    assert_int_equal(s->log_level, -1);
    assert_int_equal(s->mpi, MPI_AUTO);
    assert_true(s->port_hold);
    assert_string_equal(s->label, "[%r]<%s>:");
    assert_int_equal(line.warnings.count, 0);
    for (int i = 0; i < OPT_TOTAL; i++)
        assert_false(settings_is_set(s, (enum option_id)i));
    command_line_destroy(&line);
}

static void test_errors(void **state)
{
    (void)state;
    static const char usage[] = "no program given; usage: hvdrun [options] program [arguments]; "
                                "'hvdrun --help' lists the options";
    must_fail_env("", NULL, usage);
    must_fail_env("-np 4", NULL, usage);
    must_fail_env("-np 4 -v", NULL, usage);
    must_fail_env("-np 4 --", NULL, usage);
    must_fail_env("--num-procs 4 x", NULL,
                  "unknown option '--num-procs': did you mean '--num-proc'?");
    must_fail_env("--num-procs=4 x", NULL,
                  "unknown option '--num-procs': did you mean '--num-proc'?");
    must_fail_env("--qqqqqq x", NULL,
                  "unknown option '--qqqqqq'; 'hvdrun --help all' lists the options");
    must_fail_env("-np", NULL, "-np needs a value: -np N");
    must_fail_env("-np --tcp x", NULL, "-np needs a value: -np N");
    must_fail_env("-H -- x", NULL, "-H needs a value: -H HOST[:N],...");
    must_fail_env("--blacklist-cooldown-range 10", NULL,
                  "--blacklist-cooldown-range needs a value: --blacklist-cooldown-range MIN MAX");
    must_fail_env("--blacklist-cooldown-range 10 5 x", NULL,
                  "--blacklist-cooldown-range: '10 5': the first time is longer than the second");
    must_fail_env(
        "--blacklist-cooldown-range=10 x", NULL,
        "--blacklist-cooldown-range: '10' is a single time: expected two, the minimum and the "
        "maximum");
    must_fail_env("--blacklist-after 0 x", NULL,
                  "--blacklist-after: 0 is out of range: expected 1 to 1000000");
    must_fail_env("-np four x", NULL, "-np: 'four' is not a whole number");
    must_fail_env("--num-proc=0 x", NULL, "--num-proc: 0 is out of range: expected 1 to 1000000");
    must_fail_env("-np -1 x", NULL, "-np: -1 is out of range: expected 1 to 1000000");
    must_fail_env("|--bind-to=a\n\033[1m| x", NULL,
                  "--bind-to: 'a??[1m' is not known: expected none, core, numa, l3 or gpu");
    must_fail_env("--timeout soon x", NULL,
                  "--timeout: 'soon' is not a duration (examples: 30, 1.5s, 250ms, 5m, 2h)");
    must_fail_env("--bind-to socket x", NULL,
                  "--bind-to: 'socket' is not known: expected none, core, numa, l3 or gpu");
    must_fail_env("--stdin some x", NULL,
                  "--stdin: 'some' is not a rank: expected a number from 0, all or none");
    must_fail_env("--pty some x", NULL,
                  "--pty: 'some' is not a rank: expected a number from 0, all, none or auto");
    must_fail_env("--ranks 4-x x", NULL, "--ranks: '4-x' is not a list of ranks (example: 0,4-7)");
    must_fail_env("--label %q x", NULL,
                  "--label: '%q' has %q: expected % and one of the letters rhlst, or %%");
    must_fail_env("--tcp=maybe x", NULL, "--tcp: 'maybe' is neither yes nor no");
    must_fail_env("--no-autotune=yes x", NULL, "--no-autotune takes no value ('yes' was given)");
    must_fail_env("--gloo=x x", NULL, "--gloo takes no value ('x' was given)");
    must_fail_env("--hosts= x", NULL, "--hosts: the value is empty");
    must_fail_env("-x =1 x", NULL,
                  "-x: '=1' is not a variable (examples: NAME, NAME=value, 'PREFIX*')");
    must_fail_env("-H a --hostfile f x", NULL, "-H and --hostfile contradict each other: give one");
    must_fail_env("--min-np 4 -np 2 x", NULL, "--min-np 4 is more than -np 2");
    must_fail_env("--max-np 4 -np 8 x", NULL, "-np 8 is more than --max-np 4");
    must_fail_env("--min-np 4 --max-np 2 x", NULL, "--min-np 4 is more than --max-np 2");
    must_fail_env("--config-file /nowhere/f.ini x", NULL,
                  "configuration: cannot open /nowhere/f.ini: No such file or directory");
    must_fail_env("--env-file /nowhere/f x", NULL,
                  "--env-file: cannot open /nowhere/f: No such file or directory");
}

static void test_programs(void **state)
{
    (void)state;
    struct command_line line;
    static char *env[] = {"SHELL_VALUE=from shell", "MY_A=1", "MY_B=2", NULL};
    must_parse("-np 1 -x ALL=1 ./a x : -np 3 --wdir /w -x SHELL_VALUE -x MY_* ./b y z", env, &line);
    assert_int_equal(line.settings.np, 4);
    assert_int_equal(line.apps.count, 2);
    const struct app *a = &line.apps.items[0], *b = &line.apps.items[1];
    assert_int_equal(a->np, 1);
    assert_int_equal(b->np, 3);
    assert_int_equal(a->argv.count, 2);
    assert_int_equal(b->argv.count, 3);
    assert_null(a->wdir);
    assert_string_equal(b->wdir, "/w");
    assert_int_equal(a->env.count, 0);
    assert_string_equal(strv_env_get(&b->env, "SHELL_VALUE"), "from shell");
    assert_string_equal(strv_env_get(&b->env, "MY_B"), "2");
    assert_string_equal(strv_env_get(&line.settings.env, "ALL"), "1");
    command_line_destroy(&line);

    must_fail_env("-np 1 a : --timeout 5 b", NULL,
                  "--timeout applies to the whole job: put it before the first program");
    must_fail_env("-np 1 a : b", NULL,
                  "with several programs each needs its own -np; 'b' has none");
    must_fail_env("a : -np 1 b", NULL,
                  "with several programs each needs its own -np; 'a' has none");
    must_fail_env("-np 1 a :", NULL, "no program after the last ':'");
    must_fail_env("-np 1 : b", NULL, "no program before a ':'");
    must_fail_env("-np 1 a : -np 1 : c", NULL, "no program before a ':'");
    must_fail_env("-np 1 a : -np 0 b", NULL, "-np: 0 is out of range: expected 1 to 1000000");
    must_fail_env("-np 600000 a : -np 600000 b", NULL,
                  "1200000 workers are too many: at most 1000000");
    static char *np[] = {"HVDRUN_NP=4", NULL};
    must_fail_env("a : -np 1 b", np, "with several programs each needs its own -np; 'a' has none");
}

static void test_dashes(void **state)
{
    (void)state;
    struct command_line line;
    must_parse("-np 2 -- prog : -np 3 b", NULL, &line);
    assert_int_equal(line.apps.count, 1);
    assert_int_equal(line.apps.items[0].argv.count, 5);
    assert_string_equal(line.apps.items[0].argv.items[1], ":");
    command_line_destroy(&line);

    must_parse("-- --odd-name", NULL, &line);
    assert_string_equal(line.apps.items[0].argv.items[0], "--odd-name");
    command_line_destroy(&line);

    /* behind the program a `--` changes nothing, so a section without a program follows here */
    must_fail_env("prog -- :", NULL, "no program after the last ':'");
}

/* A `--` after the program is the program's; the ':' behind it still separates. */
static void test_dashes_of_program(void **state)
{
    (void)state;
    struct command_line line;
    must_parse("-np 1 a -- x : -np 1 -- b : c", NULL, &line);
    assert_int_equal(line.apps.count, 2);
    assert_int_equal(line.apps.items[0].argv.count, 3);
    assert_string_equal(line.apps.items[0].argv.items[1], "--");
    assert_int_equal(line.apps.items[1].argv.count, 3);
    command_line_destroy(&line);
    must_parse("prog a:b ::", NULL, &line);
    assert_int_equal(line.apps.items[0].argv.count, 3);
    command_line_destroy(&line);
}

static void test_questions(void **state)
{
    (void)state;
    struct command_line line;
    static char *broken[] = {"HVDRUN_NP=broken", NULL};
    must_parse("--help", broken, &line);
    assert_true(line.settings.help);
    command_line_destroy(&line);
    must_parse("-np 2 -h prog", NULL, &line);
    assert_true(line.settings.help);
    assert_false(line.help_all);
    command_line_destroy(&line);
    must_parse("--help all", broken, &line);
    assert_true(line.settings.help && line.help_all);
    command_line_destroy(&line);
    must_parse("--version", NULL, &line);
    assert_true(line.settings.version);
    command_line_destroy(&line);
    must_parse("-v", broken, &line);
    assert_true(line.settings.version);
    assert_int_equal(line.apps.count, 0);
    command_line_destroy(&line);
    must_parse("-v prog", NULL, &line);
    assert_false(line.settings.version);
    assert_int_equal(line.settings.verbose, 1);
    command_line_destroy(&line);
    must_parse("-cb", NULL, &line);
    assert_true(line.settings.check_build);
    command_line_destroy(&line);
    must_parse("--check-build", NULL, &line);
    assert_true(line.settings.check_build);
    command_line_destroy(&line);
}

/* Who gives --spares believes to be safe. */
/* This program has no feature that translates such a line. */
static void test_lines_of_other_launchers(void **state)
{
    (void)state;
    struct command_line line;
    must_fail_env("-np 2 torchrun --nproc-per-node 2 t.py", NULL,
                  "torchrun: this hvdrun was built without 'torchrun' (HVDRUN_FEATURES of CMake)");
    must_fail_env("-np 1 ./a : -np 1 deepspeed b", NULL,
                  "a line of deepspeed cannot be one of several programs ('-- deepspeed' starts a "
                  "program named deepspeed)");
    must_parse("-- torchrun t.py", NULL, &line);
    assert_string_equal(line.apps.items[0].argv.items[0], "torchrun");
    command_line_destroy(&line);
    must_parse("/usr/bin/torchrun t.py", NULL, &line);
    assert_string_equal(line.apps.items[0].argv.items[0], "/usr/bin/torchrun");
    command_line_destroy(&line);
    assert_string_equal(launcher_line_name("/usr/local/bin/torchrun"), "torchrun");
    assert_string_equal(launcher_line_name("accelerate"), "accelerate");
    assert_null(launcher_line_name("/usr/local/bin/hvdrun"));
}

static void test_elastic_options(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"-np 2 --spares 1 ./a", "--spares has no effect, because the job is not elastic; with "
                                 "--min-np N it continues with N ranks or more"},
        {"--rejoin together --max-preemptions 2 ./a",
         "--max-preemptions, --rejoin have no effect,"},
        {"--blacklist-after 1 ./a", "--blacklist-after has no effect"},
        {"--elastic-timeout 4 ./a", "--elastic-timeout has no effect"},
        {"--on-failure stop ./a", NULL},
        {"-np 2 --min-np 1 --spares 1 ./a", NULL},
        {"--max-restarts 1 --rejoin together ./a", NULL},
        {"-np 2 ./a --spares 1", NULL},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct command_line line;
        must_parse(table[i][0], NULL, &line);
        assert_int_equal(line.warnings.count, table[i][1] == NULL ? 0 : 1);
        if (table[i][1] != NULL &&
            strncmp(line.warnings.items[0], table[i][1], strlen(table[i][1])) != 0)
            fail_msg("'%s': %s", table[i][0], line.warnings.items[0]);
        command_line_destroy(&line);
    }
    char *env[] = {"HVDRUN_SPARES=1", NULL}; /* for many jobs */
    struct command_line line;
    must_parse("-np 2 ./a", env, &line);
    assert_int_equal(line.warnings.count, 0);
    command_line_destroy(&line);
}

static void test_warnings(void **state)
{
    (void)state;
    struct command_line line;
    must_parse("--jsrun --jsrun --mpi-args=x --binding-args=x --disable-cache "
               "--log-hide-timestamp prog",
               NULL, &line);
    assert_int_equal(line.warnings.count, 5);
    assert_string_equal(line.warnings.items[0],
                        "--jsrun is ignored: hvdrun starts the workers itself; name the hosts with "
                        "-H or --hostfile");
    assert_string_equal(line.warnings.items[4],
                        "--log-hide-timestamp is deprecated: use --log-without-timestamp");
    command_line_destroy(&line);
    must_parse("-x NOT_SET_ANYWHERE -x HOROVOD_RANK=3 prog", NULL, &line);
    assert_int_equal(line.warnings.count, 2);
    assert_string_equal(line.warnings.items[0],
                        "-x NOT_SET_ANYWHERE has no effect: the variable is not set");
    assert_string_equal(line.warnings.items[1],
                        "-x HOROVOD_RANK has no effect: hvdrun sets it for each worker");
    command_line_destroy(&line);
}

static void test_controller(void **state)
{
    (void)state;
    static char mpi[] = "HOROVOD_CONTROLLER=mpi", large[] = "HOROVOD_CONTROLLER=MPI",
                gloo[] = "HOROVOD_CONTROLLER=gloo", data[] = "HOROVOD_CPU_OPERATIONS=mpi",
                ccl[] = "HOROVOD_CPU_OPERATIONS=ccl", rank[] = "HVDRUN_RANK=0",
                option[] = "HVDRUN_CONTROLLER=gloo";
    const struct {
        const char *words;
        char *variables[3];
        const char *value;
        size_t warnings;
    } cases[] = {
        {"prog", {NULL}, "auto", 0},
        {"prog", {mpi}, "mpi", 0},
        {"prog", {large}, "mpi", 0},
        {"prog", {data}, "mpi", 0},
        {"prog", {ccl}, "auto", 0},
        {"prog", {gloo, data}, "gloo", 0},
        {"prog", {mpi, rank}, "auto", 0},
        {"prog", {option, mpi}, "gloo", 0},
        {"--gloo prog", {mpi}, "gloo", 0},
        {"-x HOROVOD_CONTROLLER=mpi prog", {gloo, rank}, "mpi", 0},
        {"-x HOROVOD_CONTROLLER=gloo prog", {mpi}, "gloo", 0},
        {"-x HOROVOD_CPU_OPERATIONS=mpi prog", {NULL}, "mpi", 0},
        {"--gloo -x HOROVOD_CONTROLLER=mpi prog", {NULL}, "gloo", 1},
        {"-x HOROVOD_CONTROLLER=ccl prog", {mpi}, "auto", 1},
        {"-np 1 a : -np 1 -x HOROVOD_CONTROLLER=mpi b", {NULL}, "auto", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct command_line line;
        must_parse(cases[i].words, cases[i].variables, &line);
        value_is(&line.settings, OPT_controller, cases[i].value);
        assert_int_equal(line.warnings.count, cases[i].warnings);
        command_line_destroy(&line);
    }
}

static void test_precedence(void **state)
{
    (void)state;
    struct command_line line;
    char *user = new_file("user.ini", "");
    char *folder = mem_strndup(user, (size_t)(strrchr(user, '/') - user));
    char *named = new_file("job.ini", "[launch]\ngrace = 2\nnode-timeout = 2\ntimeout = 2\n"
                                      "[elastic]\nreset_limit=2\n[env]\nWHO = job\nJOB = 1\n"
                                      "[output]\nverbose = 2\n");
    char *config = mem_printf("%s/hvdrun", folder);
    char *home = mem_printf("%s/hvdrun/config.ini", folder);
    char *xdg = mem_printf("XDG_CONFIG_HOME=%s", folder);
    assert_int_equal(mkdir(config, 0700), 0);
    FILE *file = fopen(home, "w");
    fputs("[launch]\nstart-timeout = 1\ngrace = 1\nnode-timeout = 1\ntimeout = 1\nhostfile = h\n"
          "[env]\nWHO = user\nUSER_FILE = 1\n",
          file);
    fclose(file);
    char *env[] = {
        xdg, "HVDRUN_NODE_TIMEOUT=3", "HVDRUN_TIMEOUT=3", "HVDRUN_GRACE=", "HVDRUN_VERBOSE=yes",
        NULL};
    char *text = mem_printf("--config-file %s --timeout 4 -x WHO=flag -H a -v prog", named);
    must_parse(text, env, &line);
    const struct settings *s = &line.settings;
    assert_int_equal(s->drain_timeout, 2000);
    assert_int_equal(s->start_timeout, 1000);
    assert_int_equal(settings_source(s, OPT_start_timeout), SOURCE_USER_FILE);
    assert_int_equal(s->grace, 2000);
    assert_int_equal(settings_source(s, OPT_grace), SOURCE_FILE);
    assert_int_equal(s->node_timeout, 3000);
    assert_string_equal(settings_place(s, OPT_node_timeout), "HVDRUN_NODE_TIMEOUT");
    assert_int_equal(s->timeout, 4000);
    assert_string_equal(settings_place(s, OPT_timeout), "--timeout");
    assert_int_equal(s->reset_limit, 2);
    assert_int_equal(s->verbose, 1);
    assert_string_equal(s->hosts, "a"); /* the flag wins over the file's hostfile */
    assert_null(s->hostfile);
    assert_string_equal(strv_env_get(&s->env, "WHO"), "flag");
    assert_string_equal(strv_env_get(&s->env, "JOB"), "1");
    assert_string_equal(strv_env_get(&s->env, "USER_FILE"), "1");
    char *place = mem_printf("%s:2: grace", named);
    assert_string_equal(settings_place(s, OPT_grace), place);
    command_line_destroy(&line);

    char *variable = mem_printf("HVDRUN_CONFIG_FILE=%s", named);
    char *by_variable[] = {variable, NULL};
    must_parse("prog", by_variable, &line);
    assert_int_equal(line.settings.grace, 2000);
    command_line_destroy(&line);

    unlink(home);
    rmdir(config);
    free(place), free(variable), free(text), free(xdg), free(home), free(config), free(folder);
    remove_file(named);
    remove_file(user);
}

static void test_env_file(void **state)
{
    (void)state;
    struct command_line line;
    char *path = new_file("vars", "# a comment\nA=1\nexport B='two words'\nC=3\n");
    char *text = mem_printf("--env-file %s -x C=flag prog", path);
    must_parse(text, NULL, &line);
    assert_string_equal(strv_env_get(&line.settings.env, "A"), "1");
    assert_string_equal(strv_env_get(&line.settings.env, "B"), "two words");
    assert_string_equal(strv_env_get(&line.settings.env, "C"), "flag");
    command_line_destroy(&line);
    free(text);
    remove_file(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_horovod_flags),   cmocka_unit_test(test_other_flags),
        cmocka_unit_test(test_list_is_sound),   cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_errors),          cmocka_unit_test(test_programs),
        cmocka_unit_test(test_dashes),          cmocka_unit_test(test_dashes_of_program),
        cmocka_unit_test(test_questions),       cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_elastic_options), cmocka_unit_test(test_lines_of_other_launchers),
        cmocka_unit_test(test_all_mistakes),    cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_precedence),      cmocka_unit_test(test_env_file),
        cmocka_unit_test(test_foreign_flags),   cmocka_unit_test(test_foreign_hints),
        cmocka_unit_test(test_controller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
