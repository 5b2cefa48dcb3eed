/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of this machine and tiny ELF files written here: which MPI they are said to want. The
 * written files hold no code; they only need libraries.
 */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "model/settings/mpi_names.h"
#include "node/elf_fixture.h"
#include "node/mpi_detect.h"

static void assert_finding(const char *path, const char *library_path, enum mpi_kind kind,
                           const char *what)
{
    struct mpi_finding found;
    assert_int_equal(mpi_detect_in(NULL, path, library_path, &found, NULL), 0);
    if (found.kind != kind || strstr(found.what, what) == NULL)
        fail_msg("%s: %s, \"%s\"; expected %s, \"%s\"", path, mpi_kind_name(found.kind), found.what,
                 mpi_kind_name(kind), what);
}

static void test_library_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum mpi_kind kind;
    } cases[] = {{"libmpi.so.40", MPI_PMIX},
                 {"libmpi.so.40.30.4", MPI_PMIX},
                 {"libmpi.so.20", MPI_PMIX},
                 {"libmpi.so", MPI_PMIX},
                 {"libmpi_cxx.so.40", MPI_PMIX},
                 {"libmpi_mpifh.so.40", MPI_PMIX},
                 {"libopen-rte.so.40", MPI_PMIX},
                 {"libpmix.so.2", MPI_PMIX},
                 {"liboshmem.so.40", MPI_PMIX},
                 {"libmpich.so.12", MPI_PMI1},
                 {"libmpi.so.12", MPI_PMI1},
                 {"libmpifort.so.12", MPI_PMI1},
                 {"libmpichcxx.so.12", MPI_PMI1},
                 {"libpmi.so.0", MPI_PMI1},
                 {"libpmi2.so.0", MPI_PMI1},
                 {"libmpi_cray.so.12", MPI_PMI1},
                 {"libmpir.so.23", MPI_NONE},
                 {"libmpfr.so.6", MPI_NONE},
                 {"libc.so.6", MPI_NONE},
                 {"libmpiP.so", MPI_NONE},
                 {"", MPI_NONE}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (mpi_names_kind(cases[i].name) != cases[i].kind)
            fail_msg("%s is taken for %s", cases[i].name,
                     mpi_kind_name(mpi_names_kind(cases[i].name)));
    }
}

static void test_direct(void **state)
{
    struct fixture *f = *state;
    assert_finding(write_elf(f, "a", EM_X86_64, NULL, NEEDS("libc.so.6", "libmpi.so.40")), NULL,
                   MPI_PMIX, "needs libmpi.so.40 (Open MPI)");
    write_elf(f, "libmpich.so.12", EM_X86_64, NULL, NEEDS("libc.so.6"));
    assert_finding(write_elf(f, "b", EM_X86_64, "$ORIGIN", NEEDS("libmpich.so.12")), NULL, MPI_PMI1,
                   "needs libmpich.so.12 (MPICH");
    assert_finding(write_elf(f, "c", EM_X86_64, NULL, NEEDS("libpmix.so.2")), NULL, MPI_PMIX,
                   "PMIx");
    assert_finding(write_elf(f, "d", EM_X86_64, NULL, NEEDS("libc.so.6", "libm.so.6")), NULL,
                   MPI_NONE, "needs no MPI");
}

static void test_through_other_libraries(void **state)
{
    struct fixture *f = *state;
    const char *program = write_elf(f, "program", EM_X86_64, "$ORIGIN", NEEDS("libsolver.so.1"));
    assert_finding(program, NULL, MPI_NONE, "needs no MPI"); /* the library is not there */
    write_elf(f, "libsolver.so.1", EM_X86_64, NULL, NEEDS("libcomm.so.2"));
    /* a library for another machine is passed over, as the linker does */
    write_elf(f, "libcomm.so.2", EM_AARCH64, NULL, NEEDS("libmpich.so.12"));
    assert_finding(program, NULL, MPI_NONE, "needs no MPI");
    write_elf(f, "libcomm.so.2", EM_X86_64, NULL, NEEDS("libsolver.so.1", "libmpi.so.40"));
    assert_finding(program, NULL, MPI_PMIX, "libmpi.so.40 (Open MPI) through libsolver.so.1");
    /* by LD_LIBRARY_PATH only */
    const char *other = write_elf(f, "other", EM_X86_64, NULL, NEEDS("libsolver.so.1"));
    assert_finding(other, NULL, MPI_NONE, "needs no MPI");
    char *list AUTO_FREE = mem_printf("/nowhere::%s", f->folder);
    assert_finding(other, list, MPI_PMIX, "libmpi.so.40");
    /* libraries that need each other come to an end */
    write_elf(f, "libcomm.so.2", EM_X86_64, NULL, NEEDS("libsolver.so.1"));
    assert_finding(program, NULL, MPI_NONE, "needs no MPI");
}

static void test_ambiguous_number_12(void **state)
{
    struct fixture *f = *state;
    const char *program = write_elf(f, "program", EM_X86_64, "${ORIGIN}", NEEDS("libmpi.so.12"));
    write_elf(f, "libmpi.so.12", EM_X86_64, NULL, NEEDS("libc.so.6"));
    assert_finding(program, NULL, MPI_PMI1, "libmpi.so.12 (MPICH");
    write_elf(f, "libmpi.so.12", EM_X86_64, NULL, NEEDS("libc.so.6", "libopen-rte.so.12"));
    assert_finding(program, NULL, MPI_PMIX, "libopen-rte.so.12 (Open MPI)");
    write_elf(f, "libmpi.so.12", EM_X86_64, NULL, NEEDS("libfabric.so.1"));
    assert_finding(program, NULL, MPI_PMI1, "libmpi.so.12");
}

/* An MPICH that is built for PMIx, as Ubuntu's, does not understand PMI-1. */
static void test_mpich_with_pmix(void **state)
{
    struct fixture *f = *state;
    const char *program = write_elf(f, "program", EM_X86_64, "$ORIGIN", NEEDS("libmpich.so.12"));
    write_elf(f, "libmpich.so.12", EM_X86_64, NULL, NEEDS("libc.so.6", "libpmix.so.2"));
    assert_finding(program, NULL, MPI_PMIX, "libpmix.so.2 (PMIx) through libmpich.so.12");
    const char *other = write_elf(f, "other", EM_X86_64, "$ORIGIN", NEEDS("libsolver.so.1"));
    write_elf(f, "libsolver.so.1", EM_X86_64, NULL, NEEDS("libmpich.so.12"));
    assert_finding(other, NULL, MPI_PMIX, "libpmix.so.2 (PMIx) through libmpich.so.12");
    write_elf(f, "libmpich.so.12", EM_X86_64, NULL, NEEDS("libc.so.6", "libpmi.so.0"));
    assert_finding(program, NULL, MPI_PMI1, "libmpich.so.12");
}

static void test_not_elf(void **state)
{
    struct fixture *f = *state;
    assert_finding(write_file(f, "s", "#!/bin/sh\n", 10), NULL, MPI_PMIX, "script");
    assert_finding(write_file(f, "t", "text\n", 5), NULL, MPI_NONE, "neither");
    assert_finding(write_file(f, "u", "\177ELFgarbage", 11), NULL, MPI_NONE, "neither");
    assert_finding(write_file(f, "v", "", 0), NULL, MPI_NONE, "cannot be read");
    assert_finding("/nowhere/at/all", NULL, MPI_NONE, "cannot be read");
    assert_finding("/tmp", NULL, MPI_NONE, "cannot be read");
    char *fifo AUTO_FREE = mem_printf("%s/fifo", f->folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    strv_add(&f->files, fifo);
    assert_finding(fifo, NULL, MPI_NONE, "cannot be read"); /* and does not hang */
    assert_finding(write_elf(f, "python3.11", EM_X86_64, NULL, NEEDS("libc.so.6")), NULL, MPI_PMIX,
                   "interpreter");
    assert_finding(write_elf(f, "pythonic-solver", EM_X86_64, NULL, NEEDS("libc.so.6")), NULL,
                   MPI_PMIX, "interpreter");
    assert_finding(write_elf(f, "shell", EM_X86_64, NULL, NEEDS("libc.so.6")), NULL, MPI_NONE,
                   "needs no MPI");
}

/* It brings a server of its own, whatever it is made of. */
static void test_launchers(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"mpirun", "mpiexec.openmpi", "orterun", "prterun",
                                        "hvdrun"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_finding(
            write_elf(f, names[i], EM_X86_64, NULL, NEEDS("libopen-rte.so.40", "libpmix.so.2")),
            NULL, MPI_NONE, "launcher");
    assert_finding(write_file(f, "mpirun", "#!/bin/sh\n", 10), NULL, MPI_NONE, "launcher");
    assert_finding(write_elf(f, "mpirunner", EM_X86_64, NULL, NEEDS("libmpi.so.40")), NULL,
                   MPI_PMIX, "libmpi.so.40");
}

static void test_programs_of_this_machine(void **state)
{
    (void)state;
    assert_finding("/bin/sh", NULL, MPI_PMIX, "interpreter");
    assert_finding("/bin/cat", NULL, MPI_NONE, "needs no MPI");
    struct mpi_finding found;
    mpi_detect_process(getpid(), &found);
    assert_int_equal(found.kind, MPI_NONE);
    mpi_detect_process(0, &found);
    assert_int_equal(found.kind, MPI_NONE);
}

/* What a running process has mapped: this one maps a file of that name. */
static void test_mapped_library(void **state)
{
    struct fixture *f = *state;
    struct mpi_finding found;
    static const struct {
        const char *name;
        enum mpi_kind kind;
    } cases[] = {{"libpmi.so.0", MPI_NONE}, /* alone it is no MPI program yet */
                 {"libpmix.so.2", MPI_NONE},
                 {"libopen-rte.so.40", MPI_NONE}, /* alone: Open MPI's mpirun */
                 {"libopen-pal.so.40", MPI_NONE},
                 {"libmpi.so.40.30.4", MPI_PMIX},
                 {"libmpich.so.12.2.1", MPI_PMI1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = write_elf(f, cases[i].name, EM_X86_64, NULL, NEEDS("libc.so.6"));
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
        assert_ptr_not_equal(map, MAP_FAILED);
        close(fd);
        mpi_detect_process(getpid(), &found);
        assert_int_equal(found.kind, cases[i].kind);
        if (found.kind != MPI_NONE)
            assert_non_null(strstr(found.what, cases[i].name));
        munmap(map, 4096);
    }
}

/* So many descriptors more can be opened. */
static void allow_descriptors(int count, struct rlimit *before)
{
    int next = dup(0);
    assert_true(next > 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
    struct rlimit now = {.rlim_cur = (rlim_t)(next + count), .rlim_max = before->rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

/* "No MPI" would start as many worlds of one rank as there are ranks. */
static void test_no_descriptors_is_not_no_mpi(void **state)
{
    struct fixture *fixture = *state;
    write_elf(fixture, "libmy.so", EM_X86_64, NULL, NEEDS("libmpi.so.40"));
    const char *program = write_elf(fixture, "program", EM_X86_64, "$ORIGIN", NEEDS("libmy.so"));
    for (int count = 0; count < 2; count++) { /* not even the program; not its library */
        struct mpi_finding found;
        struct error err = {0};
        struct rlimit before;
        allow_descriptors(count, &before);
        int result = mpi_detect_in(NULL, program, NULL, &found, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(result, -1);
        assert_non_null(strstr(err.text, "Too many open files"));
        assert_non_null(strstr(err.text, "--mpi="));
    }
    assert_finding(program, NULL, MPI_PMIX, "needs libmpi.so.40 (Open MPI) through libmy.so");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_names),
        cmocka_unit_test_setup_teardown(test_direct, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_through_other_libraries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ambiguous_number_12, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mpich_with_pmix, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_not_elf, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_descriptors_is_not_no_mpi, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_launchers, set_up, tear_down),
        cmocka_unit_test(test_programs_of_this_machine),
        cmocka_unit_test_setup_teardown(test_mapped_library, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
