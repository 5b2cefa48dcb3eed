/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_test.h"
#include "cli/sources.h"

static int read_ini(const char *text, struct settings *settings, struct error *err)
{
    *err = (struct error)ERROR_INIT;
    settings_init(settings);
    return config_ini_read(text, "f.ini", SOURCE_FILE, settings, err);
}

static int read_yaml(const char *text, struct settings *settings, struct error *err)
{
    *err = (struct error)ERROR_INIT;
    settings_init(settings);
    return config_yaml_read(text, strlen(text), "f.yaml", settings, err);
}

static void ini_fails(const char *text, const char *expected)
{
    struct settings settings;
    struct error err;
    if (read_ini(text, &settings, &err) == 0)
        fail_msg("accepted: %s", text);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.status, STATUS_USAGE);
    settings_destroy(&settings);
}

static void yaml_fails(const char *text, const char *expected)
{
    struct settings settings;
    struct error err;
    if (read_yaml(text, &settings, &err) == 0)
        fail_msg("accepted: %s", text);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.status, STATUS_USAGE);
    settings_destroy(&settings);
}

static const char good_ini[] = "\xef\xbb\xbf; comment\n"
                               "# another = one\r\n"
                               "[launch]\r\n"
                               "np = 4\n"
                               "  hosts=a:2,[fe80::1]:2 ; two hosts\n"
                               "START_timeout: 1m\n"
                               "\n"
                               "[output]\n"
                               "label = \"%h:%r \" ; as in a terminal\n"
                               "no-label-at-all\n"
                               "[tune]\n"
                               "fusion_threshold_mb = 32\n"
                               "autotune = on\n"
                               "[elastic]\n"
                               "min-num-proc = 2\n"
                               "blacklist-cooldown-range = 10 20\n"
                               "[ssh]\n"
                               "ssh-port = 2222\n"
                               "[env]\n"
                               "A = 1\n"
                               "EMPTY =\n"
                               "URL = http://h:80/?a=b\n"
                               "QUOTED = 'a b'\n";

static void test_ini_good(void **state)
{
    (void)state;
    struct settings settings;
    struct error err;
    char *text = mem_strdup(good_ini);
    char *bad = strstr(text, "no-label-at-all\n"), *upper = strstr(text, "START");
    memmove(bad, bad + 16, strlen(bad + 16) + 1);
    memcpy(upper, "start", 5);
    if (read_ini(text, &settings, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(settings.np, 4);
    assert_string_equal(settings.hosts, "a:2,[fe80::1]:2");
    assert_string_equal(settings_place(&settings, OPT_hosts), "f.ini:5: hosts");
    assert_int_equal(settings.start_timeout, 60000);
    assert_string_equal(settings.label, "%h:%r ");
    assert_int_equal(settings.fusion_threshold_mb, 32);
    assert_int_equal(settings.autotune, 1);
    assert_int_equal(settings.min_np, 2);
    assert_int_equal(settings.blacklist_cooldown_range.max_ms, 20000);
    assert_int_equal(settings.ssh_port, 2222);
    assert_string_equal(strv_env_get(&settings.env, "A"), "1");
    assert_string_equal(strv_env_get(&settings.env, "EMPTY"), "");
    assert_string_equal(strv_env_get(&settings.env, "URL"), "http://h:80/?a=b");
    assert_string_equal(strv_env_get(&settings.env, "QUOTED"), "a b");
    settings_destroy(&settings);
    free(text);
}

/* A value longer than what inih reads of a line arrives whole. */
static void test_ini_long_line(void **state)
{
    (void)state;
    struct settings settings;
    struct error err;
    char value[5001];
    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    char *text =
        mem_printf("[env]\nLONG = %s ; comment\nNEXT = 1\n[launch]\nwdir=%s\n", value, value);
    if (read_ini(text, &settings, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(strv_env_get(&settings.env, "LONG"), value);
    assert_string_equal(strv_env_get(&settings.env, "NEXT"), "1");
    assert_string_equal(settings.wdir, value);
    settings_destroy(&settings);
    free(text);
    text = mem_printf("[env]\n%s = 1\n", value);
    ini_fails(text, "f.ini:2: the line is too long");
    free(text);
    text = mem_printf("[launch]\n\n%s\n", value);
    ini_fails(text, "f.ini:3: the line is too long");
    free(text);
}

static void test_ini_bad(void **state)
{
    (void)state;
    ini_fails("[launch]\nnp = 2\n\nhots = a\n",
              "f.ini:4: unknown key 'hots' in section [launch]: did you mean 'hosts'?");
    ini_fails("[launch]\nzzz = a\n", "f.ini:2: unknown key 'zzz' in section [launch]");
    ini_fails("[lunch]\nnp = 2\n", "f.ini:2: unknown section [lunch]: did you mean 'launch'?");
    ini_fails("[output]\nnp = 2\n", "f.ini:2: 'np' belongs in section [launch]");
    ini_fails("np = 2\n", "f.ini:1: 'np' is not below a section: put it below [launch]");
    ini_fails("num_porc = 2\n[launch]\n",
              "f.ini:1: 'num_porc' is not below a section: put it below one such as [launch]");
    ini_fails("[launch]\nnp = two\n", "f.ini:2: np: 'two' is not a whole number");
    ini_fails("[launch]\nnp =\n", "f.ini:2: np: '' is not a whole number");
    ini_fails("[launch]\nhelp = yes\n", "f.ini:2: unknown key 'help' in section [launch]");
    ini_fails("[launch]\nconfig-file = x\n",
              "f.ini:2: a configuration file cannot name another one");
    ini_fails("[launch]\n# fine\nnonsense\n",
              "f.ini:3: 'nonsense': expected [section] or key = value");
    ini_fails("[launch\n", "f.ini:1: '[launch': expected [section] or key = value");
    ini_fails("[env]\n1A = 2\n", "f.ini:2: this is not the name of a variable");
    ini_fails("[tune]\nno-autotune = yes\n",
              "f.ini:2: unknown key 'no-autotune' in section [tune]: did you mean 'autotune'?");
    ini_fails("[launch]\nnp = 1\nbroken\nhots = 2\n",
              "f.ini:3: 'broken': expected [section] or key = value");
}

static const char good_yaml[] = "# of a horovodrun user\n"
                                "controller: gloo\n"
                                "verbose: true\n"
                                "params:\n"
                                "  fusion_threshold_mb: 32\n"
                                "  cycle_time_ms: 10\n"
                                "  cache_capacity: 2048\n"
                                "  hierarchical_allreduce: true\n"
                                "  hierarchical_allgather: no\n"
                                "  torus_allreduce: false\n"
                                "autotune:\n"
                                "  enabled: true\n"
                                "  log_file: 'log.txt'\n"
                                "  warmup_samples: 5\n"
                                "  steps_per_sample: 20\n"
                                "  bayes_opt_max_samples: 50\n"
                                "  gaussian_process_noise: 0.9\n"
                                "timeline:\n"
                                "  filename: \"t.json\"\n"
                                "  mark_cycles: true\n"
                                "stall_check: {enabled: false, warning_time_seconds: 120,\n"
                                "  shutdown_time_seconds: 240}\n"
                                "library_options:\n"
                                "  mpi_threads_disable: true\n"
                                "  num_nccl_streams: 2\n"
                                "  ccl_bgt_affinity: 1\n"
                                "  gloo_timeout_seconds: ~\n"
                                "logging:\n"
                                "  level: INFO\n"
                                "  hide_timestamp: true\n";

static void test_yaml_good(void **state)
{
    (void)state;
    static const struct {
        enum option_id id;
        const char *value;
    } expected[] = {
        {OPT_controller, "gloo"},
        {OPT_verbose, "1"},
        {OPT_fusion_threshold_mb, "32"},
        {OPT_cycle_time_ms, "10"},
        {OPT_cache_capacity, "2048"},
        {OPT_hierarchical_allreduce, "yes"},
        {OPT_hierarchical_allgather, "no"},
        {OPT_torus_allreduce, "no"},
        {OPT_autotune, "yes"},
        {OPT_autotune_log_file, "log.txt"},
        {OPT_autotune_warmup_samples, "5"},
        {OPT_autotune_steps_per_sample, "20"},
        {OPT_autotune_bayes_opt_max_samples, "50"},
        {OPT_autotune_gaussian_process_noise, "0.9"},
        {OPT_timeline_filename, "t.json"},
        {OPT_timeline_mark_cycles, "yes"},
        {OPT_stall_check, "no"},
        {OPT_stall_check_warning_time_seconds, "120"},
        {OPT_stall_check_shutdown_time_seconds, "240"},
        {OPT_mpi_threads_disable, "yes"},
        {OPT_num_nccl_streams, "2"},
        {OPT_thread_affinity, "1"},
        {OPT_gloo_timeout_seconds, ""},
        {OPT_log_level, "INFO"},
        {OPT_log_with_timestamp, "no"},
    };
    struct settings settings;
    struct error err;
    if (read_yaml(good_yaml, &settings, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        value_is(&settings, expected[i].id, expected[i].value);
    assert_string_equal(settings_place(&settings, OPT_cycle_time_ms),
                        "f.yaml:6: params.cycle_time_ms");
    settings_destroy(&settings);
    /* every key of the list is accepted */
    for (int i = 0; i < OPT_TOTAL; i++) {
        const char *key = option_info((enum option_id)i)->yaml;
        const char *dot = key == NULL ? NULL : strchr(key, '.');
        if (dot == NULL)
            continue;
        char *text = mem_printf("%.*s:\n  %s: 1\n", (int)(dot - key), key, dot + 1);
        int rc = read_yaml(text, &settings, &err);
        bool words = option_info((enum option_id)i)->type == OPTION_ENUM;
        assert_int_equal(rc, words ? -1 : 0);
        settings_destroy(&settings);
        free(text);
    }
}

static void test_yaml_empty(void **state)
{
    (void)state;
    static const char *const empty[] = {"", "\n# only a comment\n", "---\n", "params:\n", "~\n"};
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        struct settings settings;
        struct error err;
        if (read_yaml(empty[i], &settings, &err) < 0)
            fail_msg("'%s': %s", empty[i], err.text);
        settings_destroy(&settings);
    }
}

static void test_yaml_bad(void **state)
{
    (void)state;
    yaml_fails("params:\n  fusion_treshold_mb: 1\n",
               "f.yaml:2: unknown key 'params.fusion_treshold_mb': did you mean "
               "'params.fusion_threshold_mb'?");
    yaml_fails("parms:\n  x: 1\n", "f.yaml:2: unknown key 'parms': did you mean 'params'?");
    yaml_fails("zzzz: 1\n", "f.yaml:1: unknown key 'zzzz'");
    yaml_fails("\nparams:\n  cycle_time_ms: fast\n",
               "f.yaml:3: params.cycle_time_ms: 'fast' is not a number");
    yaml_fails("params:\n  cycle_time_ms: -1\n",
               "f.yaml:2: params.cycle_time_ms: -1 is out of range: expected 0 to 3.6e+06");
    yaml_fails("autotune:\n  gaussian_process_noise: 2\n",
               "f.yaml:2: autotune.gaussian_process_noise: 2 is out of range: expected 0 to 1");
    yaml_fails("controller: mpich\n",
               "f.yaml:1: controller: 'mpich' is not known: expected auto, gloo or mpi");
    yaml_fails("params: 3\n", "f.yaml:1: 'params': expected 'key: value' pairs below it");
    yaml_fails("params:\n  cycle_time_ms: [1, 2]\n",
               "f.yaml:2: 'params.cycle_time_ms': expected one plain value");
    yaml_fails("controller: {a: b}\n", "f.yaml:1: 'controller': expected one plain value");
    yaml_fails("- a\n- b\n", "f.yaml:1: expected sections such as 'params:'");
    yaml_fails("? [a]\n: b\n", "f.yaml:1: expected 'key: value'");
    yaml_fails("verbose: 1\n---\nverbose: 2\n", "f.yaml:2: a second document is not supported");
    yaml_fails("params: &a\n  cycle_time_ms: 1\nautotune: *a\n",
               "f.yaml:3: 'autotune': expected 'key: value' pairs below it");
    yaml_fails("params:\n  cycle_time_ms: *none\n",
               "f.yaml:2: 'params.cycle_time_ms': expected one plain value");
    yaml_fails("verbose: \"a\\0b\"\n", "f.yaml:1: the value contains a NUL byte");
    struct settings settings;
    struct error err;
    assert_int_equal(read_yaml("params:\n\tx: [\n", &settings, &err), -1);
    assert_non_null(strstr(err.text, "f.yaml:2: this is not YAML: "));
    settings_destroy(&settings);
    assert_int_equal(read_yaml("parms:\n  x: 1\n  y: \"\n", &settings, &err), -1);
    assert_non_null(strstr(err.text, ": this is not YAML: "));
    settings_destroy(&settings);
}

/* Deep nesting is refused at the depth where it starts, however long it is. */
static void test_yaml_deep(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    struct settings settings;
    struct error err;
    buf_puts(&text, "params:\n  cycle_time_ms: ");
    for (int i = 0; i < 100000; i++)
        buf_putc(&text, '[');
    assert_int_equal(read_yaml(buf_text(&text), &settings, &err), -1);
    settings_destroy(&settings);
}

/* Whatever is cut off or changed: an answer, never a crash. */
static void test_damaged(void **state)
{
    (void)state;
    static const char *const texts[] = {good_ini, good_yaml};
    static const char bytes[] = "[]{}:=;#&*!|>'\"%@`\\\n\t -?,\xff";
    uint32_t seed = 1;
    for (size_t t = 0; t < 2; t++) {
        size_t length = strlen(texts[t]);
        for (size_t i = 0; i < 3 * length; i++) {
            struct settings settings;
            struct error err;
            char *text = mem_strndup(texts[t], i < length ? i : length);
            for (int k = 0; k < 4 && i >= length; k++) {
                seed = seed * 1664525u + 1013904223u;
                text[(seed >> 8) % length] = bytes[(seed >> 3) % (sizeof(bytes) - 1)];
            }
            int rc = t == 0 ? read_ini(text, &settings, &err) : read_yaml(text, &settings, &err);
            if (rc < 0)
                assert_true(err.text[0] != '\0' && err.status == STATUS_USAGE);
            settings_destroy(&settings);
            free(text);
        }
    }
}

static void check_named(const char *name, const char *text, enum option_id id, const char *value)
{
    struct settings settings;
    struct error err = ERROR_INIT;
    char *path = new_file(name, text);
    settings_init(&settings);
    if (config_file_named(path, &settings, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    value_is(&settings, id, value);
    settings_destroy(&settings);
    remove_file(path);
}

static void test_format(void **state)
{
    (void)state;
    check_named("a.yaml", "verbose: 2\n", OPT_verbose, "2");
    check_named("a.YML", "verbose: 2\n", OPT_verbose, "2");
    check_named("a.ini", "[launch]\nnp: 2\n", OPT_np, "2");
    check_named("a", "# x\n; y\n\n[launch]\nnp: 2\n", OPT_np, "2");
    check_named("a", "# x = y\nparams:\n  cycle_time_ms: 2\n", OPT_cycle_time_ms, "2");
    check_named("a.conf", "[launch]\nnp: 2\n", OPT_np, "2");
    check_named("a", "", OPT_np, "");
}

/* Status of config_file_user() for a user who may not search that home. */
static int read_as_another_user(char *const *env)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct settings settings;
        struct error err = ERROR_INIT;
        settings_init(&settings);
        /* who is not root is kept out by the mode of the folder */
        bool other = setgid(65534) == 0 && setuid(65534) == 0;
        (void)other;
        _exit(config_file_user(env, &settings, &err) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void test_the_home_of_another_user(void **state)
{
    (void)state;
    char *path = new_file("x", "");
    char *folder = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
    char *home = mem_printf("HOME=%s", folder), *env[] = {home, NULL};
    chmod(folder, 0);
    int status = read_as_another_user(env);
    chmod(folder, 0700);
    free(folder), free(home);
    remove_file(path);
    assert_int_equal(status, 0);
}

static void test_file_problems(void **state)
{
    (void)state;
    struct settings settings;
    struct error err = ERROR_INIT;
    settings_init(&settings);
    char *nowhere[] = {(char *)"XDG_CONFIG_HOME=/nowhere", NULL}, *none[] = {NULL};
    assert_int_equal(config_file_user(nowhere, &settings, &err), 0);
    assert_int_equal(config_file_user(none, &settings, &err), 0);

    /* in the way of the file stands a folder */
    char *path = new_file("x", "");
    char *folder = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
    char *config = mem_printf("%s/.config", folder), *sub = mem_printf("%s/hvdrun", config);
    char *file = mem_printf("%s/config.ini", sub), *home = mem_printf("HOME=%s", folder);
    mkdir(config, 0700), mkdir(sub, 0700), mkdir(file, 0700);
    char *env[] = {home, NULL};
    assert_int_equal(config_file_user(env, &settings, &err), -1);
    char *expected = mem_printf("configuration: cannot read %s: Is a directory", file);
    assert_string_equal(err.text, expected);
    assert_int_equal(err.status, STATUS_USAGE);
    rmdir(file), rmdir(sub), rmdir(config);
    free(expected), free(file), free(sub), free(config), free(home), free(folder);
    remove_file(path);

    struct buf large AUTO_BUF = BUF_INIT(2 << 20);
    for (int i = 0; i < 300000; i++)
        buf_puts(&large, "# xx\n");
    path = new_file("large.ini", buf_text(&large));
    assert_int_equal(config_file_named(path, &settings, &err), -1);
    assert_non_null(strstr(err.text, "is larger than 1048576 bytes"));
    remove_file(path);
    settings_destroy(&settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ini_good),
        cmocka_unit_test(test_ini_long_line),
        cmocka_unit_test(test_ini_bad),
        cmocka_unit_test(test_yaml_good),
        cmocka_unit_test(test_yaml_empty),
        cmocka_unit_test(test_yaml_bad),
        cmocka_unit_test(test_yaml_deep),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_file_problems),
        cmocka_unit_test(test_the_home_of_another_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
