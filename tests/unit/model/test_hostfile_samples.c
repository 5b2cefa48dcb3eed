/* SPDX-License-Identifier: Apache-2.0 */
/* Every file of hostfiles/ means what this table says, and none is left out of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

#include "base/fd.h"
#include "model/hostfile_fixture.h"

static const struct {
    const char *name, *group, *expected;
} samples[] = {
    {"horovodrun.hosts", NULL, "node1:4!, node2:2!, node3:1"},
    {"openmpi.hosts", NULL, "node1:2!/4, node2:2!/2, ann@node3:1!/1"},
    {"mpich.hosts", NULL, "node1:4!, ann@node2:2!, node3:1, 2001:db8::15:1!"},
    {"names.hosts", NULL, "node1:2, node2:2, node3:1"},
    {"slurm.hosts", NULL,
     "node01:2!, node02:2!, node03:2!, rack1n1:1!, rack1n2:1!, rack2n1:1!, rack2n2:1!, gpu7:1!, "
     "gpu9:1!"},
    {"sge.hosts", NULL, "node1.example.com:4!, node2.example.com:2!"},
    {"cluster.hosts", NULL,
     "node1:4!, node2:4!, node03:8!, node04:8!, node05:8!, node06:8!, ann@gpu1:2!, "
     "ann@gpu2:2!+2222, gpu3:2!>10.0.5.13, gpu4:2!+2222>2001:db8::14, 2001:db8::15:2!"},
    {"cluster.ini", NULL,
     "ann@node01:2! key=~/.ssh/cluster_key OMP_NUM_THREADS=2 NCCL_DEBUG=WARN, "
     "ann@node02:2! key=~/.ssh/cluster_key OMP_NUM_THREADS=2 NCCL_DEBUG=WARN, "
     "ann@node03:2! key=~/.ssh/cluster_key OMP_NUM_THREADS=2 NCCL_DEBUG=WARN, "
     "ann@spare:1!/3+2222>10.0.5.13 key=~/.ssh/cluster_key OMP_NUM_THREADS=2 NCCL_DEBUG=WARN, "
     "ann@gpu1:4! gpus=4 wdir=/tmp OMP_NUM_THREADS=2 NCCL_DEBUG=INFO, "
     "ann@gpu2:4! gpus=4 wdir=/tmp OMP_NUM_THREADS=2 NCCL_DEBUG=INFO, "
     "ann@head:1! transport=1 OMP_NUM_THREADS=2"},
    {"cluster.ini", "gpu",
     "ann@gpu1:4! gpus=4 wdir=/tmp OMP_NUM_THREADS=2 NCCL_DEBUG=INFO, "
     "ann@gpu2:4! gpus=4 wdir=/tmp OMP_NUM_THREADS=2 NCCL_DEBUG=INFO"},
};

#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

static char *folder(void)
{
    const char *source = getenv("HVDRUN_SOURCE");
    if (source == NULL)
        fail_msg("HVDRUN_SOURCE must name the source tree");
    return mem_printf("%s/hostfiles", source);
}

static void test_samples(void **state)
{
    (void)state;
    char *place AUTO_FREE = folder();
    for (size_t i = 0; i < SAMPLES; i++) {
        struct buf text AUTO_BUF = BUF_INIT(1 << 16);
        struct error err = ERROR_INIT;
        char *path AUTO_FREE = mem_printf("%s/%s", place, samples[i].name);
        if (fd_read_file(path, &text, &err) < 0)
            fail_msg("%s", err.text);
        expect_group(buf_text(&text), samples[i].group, samples[i].expected);
    }
}

static void test_none_is_left_out(void **state)
{
    (void)state;
    char *place AUTO_FREE = folder();
    DIR *entries = opendir(place);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "README.md") == 0)
            continue;
        size_t i = 0;
        while (i < SAMPLES && strcmp(samples[i].name, entry->d_name) != 0)
            i++;
        if (i == SAMPLES)
            fail_msg("hostfiles/%s is in no test", entry->d_name);
    }
    closedir(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_none_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
