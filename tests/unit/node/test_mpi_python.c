/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files such as Python's and mpi4py's: which MPI a program is said to want. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "node/elf_fixture.h"
#include "node/mpi_python.h"
#include "node/python_files.h"

/* The environment of the program: "NAME=VALUE" words. */
struct world {
    struct fixture *files;
    struct strv env;
};

static const char *get(const void *context, const char *name)
{
    const struct world *world = context;
    return strv_env_get(&world->env, name);
}

static char *path_of(const struct world *world, const char *name)
{
    return mem_printf("%s/%s", world->files->folder, name);
}

static void make_folders(const struct world *world, const char *name)
{
    char *path AUTO_FREE = path_of(world, name);
    for (char *at = path + strlen(world->files->folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0755);
        *at = '/';
    }
}

static uint16_t own_machine(void)
{
    Elf64_Ehdr header;
    int fd AUTO_FD = fd_open("/proc/self/exe", O_RDONLY, 0);
    assert_int_equal(fd_pread(fd, &header, sizeof(header), 0), sizeof(header));
    return header.e_machine;
}

static void put_elf(const struct world *world, const char *name, const char *const *needed)
{
    make_folders(world, name);
    write_elf(world->files, name, own_machine(), NULL, needed);
}

static void put_text(const struct world *world, const char *name, const char *text)
{
    make_folders(world, name);
    write_file(world->files, name, text, strlen(text));
}

static int begin(void **state)
{
    static struct world world;
    world = (struct world){.env = STRV_INIT};
    set_up((void **)&world.files);
    put_elf(&world, "venv/bin/python3.11", NEEDS("libc.so.6"));
    put_text(&world, "venv/pyvenv.cfg", "home = /usr/bin\n");
    strv_printf(&world.env, "PATH=%s/venv/bin", world.files->folder);
    strv_printf(&world.env, "HOME=%s/home", world.files->folder);
    put_elf(&world, "system/libmpi.so.12", NEEDS("libc.so.6")); /* not that of this machine */
    strv_printf(&world.env, "LD_LIBRARY_PATH=%s/system", world.files->folder);
    *state = &world;
    return 0;
}

static int drop(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static int end(void **state)
{
    struct world *world = *state;
    strv_destroy(&world->files->files);
    strv_destroy(&world->env);
    int result = nftw(world->files->folder, drop, 8, FTW_DEPTH | FTW_PHYS);
    free(world->files);
    return result;
}

/* `program` is below the folder, or absolute. */
static void expect(const struct world *world, const char *const *argv, enum mpi_kind kind,
                   const char *what)
{
    struct mpi_finding found;
    char *path AUTO_FREE = argv[0][0] == '/' ? mem_strdup(argv[0]) : path_of(world, argv[0]);
    const struct mpi_program program = {.path = path,
                                        .argv = (char *const *)argv,
                                        .wdir = world->files->folder,
                                        .get = get,
                                        .context = world};
    assert_int_equal(mpi_detect_program(&program, &found, NULL), 0);
    if (found.kind != kind || found.linked || strstr(found.what, what) == NULL)
        fail_msg("%s, \"%s\"; expected %s, \"%s\"", mpi_kind_name(found.kind), found.what,
                 mpi_kind_name(kind), what);
}

#define PYTHON NEEDS("venv/bin/python3.11", "train.py")
#define PACKAGES "venv/lib/python3.11/site-packages/mpi4py/"
#define OPEN_MPI NEEDS("libopen-pal.so.40", "libc.so.6")

static void set(struct world *world, const char *pair)
{
    strv_env_put(&world->env, pair);
}

static void test_one_extension(void **state)
{
    struct world *world = *state;
    expect(world, PYTHON, MPI_PMIX, "is an interpreter");
    put_elf(world, PACKAGES "MPI.cpython-311-x86_64-linux-gnu.so", NEEDS("libmpi.so.12"));
    expect(world, PYTHON, MPI_PMI1,
           PACKAGES "MPI.cpython-311-x86_64-linux-gnu.so, which needs libmpi.so.12");
    put_text(world, "script", "#!/usr/bin/env python3.11\n");
    expect(world, NEEDS("script"), MPI_PMI1, "may import");
    expect(world, NEEDS("/usr/bin/env", "A=b", "python3.11", "-c", "import mpi4py"), MPI_PMI1,
           "may import");
    expect(world, NEEDS("/usr/bin/env", "A=b", "./train"), MPI_PMIX, "runs other programs");
    put_elf(world, PACKAGES "MPI.cpython-311-x86_64-linux-gnu.so", NEEDS("libmpi.so.40"));
    expect(world, PYTHON, MPI_PMIX, "which needs libmpi.so.40 (Open MPI)");
    set(world, "MPI4PY_LIBMPI=/does/not/exist"); /* the machine may have one */
    put_elf(world, PACKAGES "MPI.cpython-311-x86_64-linux-gnu.so", NEEDS("libc.so.6"));
    expect(world, PYTHON, MPI_PMIX, "is an interpreter"); /* nobody knows */
    put_text(world, PACKAGES "MPI.cpython-311-x86_64-linux-gnu.so", "rubbish");
    expect(world, PYTHON, MPI_PMIX, "is an interpreter");
}

/* PYTHONPATH comes before the environment; other versions of Python have their own folders. */
static void test_the_first_package(void **state)
{
    struct world *world = *state;
    put_elf(world, PACKAGES "MPI.abi3.so", NEEDS("libmpi.so.12"));
    put_elf(world, "venv/lib/python3.10/site-packages/mpi4py/MPI.abi3.so", NEEDS("libmpi.so.40"));
    expect(world, PYTHON, MPI_PMI1, "site-packages/mpi4py/MPI.abi3.so, which needs libmpi.so.12");
    put_elf(world, "own/mpi4py/MPI.so", NEEDS("libmpi.so.40"));
    char *path AUTO_FREE = mem_printf("PYTHONPATH=/does/not/exist::%s/own", world->files->folder);
    set(world, path);
    expect(world, PYTHON, MPI_PMIX, "own/mpi4py/MPI.so, which needs libmpi.so.40");
}

static void test_the_named_one(void **state)
{
    static const struct {
        const char *value;
        enum mpi_kind kind;
        const char *what;
    } cases[] = {
        {"mpich", MPI_PMI1, "MPI.mpich.cpython-311-x86_64-linux-gnu.so, which needs"},
        {" M-P_ICH", MPI_PMI1, "MPI.mpich."},
        {"impi", MPI_PMI1, "MPI.mpich."},
        {"openmpi", MPI_PMIX, "MPI.openmpi.cpython-311-x86_64-linux-gnu.so, which needs"},
        {"mpiabi", MPI_PMIX, "is an interpreter"},
        {"a very long name that no MPI has and that fills all there is", MPI_PMIX, "is an"}};
    struct world *world = *state;
    put_elf(world, PACKAGES "MPI.mpich.cpython-311-x86_64-linux-gnu.so", NEEDS("libmpi.so.12"));
    put_elf(world, PACKAGES "MPI.openmpi.cpython-311-x86_64-linux-gnu.so", NEEDS("libmpi.so.40"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *pair AUTO_FREE = mem_printf("MPI4PY_MPIABI=%s", cases[i].value);
        set(world, pair);
        expect(world, PYTHON, cases[i].kind, cases[i].what);
    }
}

/* The library that mpi4py would load decides. The extensions need none, as they load it. */
static void test_the_library(void **state)
{
    struct world *world = *state;
    put_elf(world, PACKAGES "MPI.mpich.cpython-311-x86_64-linux-gnu.so", NEEDS("libc.so.6"));
    put_elf(world, PACKAGES "MPI.openmpi.cpython-311-x86_64-linux-gnu.so", NEEDS("libc.so.6"));
    put_elf(world, "venv/lib/libmpi.so", NEEDS("libc.so.6")); /* without a version: MPICH */
    expect(world, PYTHON, MPI_PMI1, "MPI.mpich.cpython-311-x86_64-linux-gnu.so with mpich");
    put_elf(world, "venv/lib/libmpi.so", OPEN_MPI);
    expect(world, PYTHON, MPI_PMIX, "MPI.openmpi.cpython-311-x86_64-linux-gnu.so with openmpi");
    put_elf(world, "m/libmpi.so.12", NEEDS("libc.so.6"));
    put_elf(world, "o/libmpi.so.40", OPEN_MPI);
    put_elf(world, "m/libmpich.so.12.2", NEEDS("libpmix.so.2")); /* MPICHs for PMIx */
    put_elf(world, "p/libmpi.so.12", NEEDS("libpmix.so.2"));
    const struct {
        const char *list;
        enum mpi_kind kind;
    } cases[] = {{"%s/m", MPI_PMI1},
                 {"%s/none:%s/o:%s/m", MPI_PMIX},
                 {"%s/m/libmpi.so.12:%s/o", MPI_PMI1},
                 {"%s/o/libmpi.so.40", MPI_PMIX},
                 {"%s/m/libmpich.so.12.2", MPI_PMIX},
                 {"%s/p/libmpi.so.12", MPI_PMIX}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf pair AUTO_BUF = BUF_INIT(10000);
        buf_puts(&pair, "MPI4PY_LIBMPI=");
        for (const char *at = cases[i].list; *at != '\0'; at++) {
            if (*at == '%')
                buf_puts(&pair, world->files->folder), at++;
            else
                buf_putc(&pair, *at);
        }
        set(world, buf_text(&pair));
        expect(world, PYTHON, cases[i].kind,
               strstr(cases[i].list, "/o") != NULL && cases[i].kind == MPI_PMIX ? "with openmpi"
                                                                                : "with mpich");
    }
    char *path AUTO_FREE = mem_printf("LD_LIBRARY_PATH=%s/m", world->files->folder);
    set(world, "MPI4PY_LIBMPI=libmpi.so.12");
    set(world, path);
    expect(world, PYTHON, MPI_PMI1, "with mpich");
}

/* What cannot be read now ends no job: the program may never import it. */
static void test_trouble(void **state)
{
    struct world *world = *state;
    put_elf(world, PACKAGES "MPI.mpich.abi3.so", NEEDS("libc.so.6"));
    put_elf(world, PACKAGES "MPI.openmpi.abi3.so", NEEDS("libc.so.6"));
    put_text(world, "venv/lib/libmpi.so", "");
    char *path AUTO_FREE = path_of(world, "venv/lib/libmpi.so");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/proc/self/mem", path), 0); /* to read its beginning is EIO */
    char *library AUTO_FREE = mem_printf("MPI4PY_LIBMPI=%s", path);
    set(world, library);
    expect(world, PYTHON, MPI_PMIX, "is an interpreter");
}

/* A plain extension comes first, whatever is named. */
static void test_a_plain_one_beside_others(void **state)
{
    struct world *world = *state;
    put_elf(world, PACKAGES "MPI.abi3.so", NEEDS("libmpi.so.40"));
    put_elf(world, PACKAGES "MPI.mpich.abi3.so", NEEDS("libmpi.so.12"));
    set(world, "MPI4PY_MPIABI=mpich");
    expect(world, PYTHON, MPI_PMIX, "MPI.abi3.so, which needs libmpi.so.40");
}

static void test_other_environments(void **state)
{
    struct world *world = *state;
    put_elf(world, PACKAGES "MPI.abi3.so", NEEDS("libmpi.so.12"));
    put_elf(world, "bin/uv", NEEDS("libc.so.6"));
    put_elf(world, "bin/numactl", NEEDS("libc.so.6"));
    put_elf(world, "bin/program", NEEDS("libc.so.6"));
    put_text(world, "bin/nsys", "#!/bin/sh\n");
    put_text(world, "bin/conda", "#!/usr/bin/env python3.11\n");
    put_text(world, "bin/poetry", "#!/usr/bin/env python3.11\n");
    put_text(world, "bin/container.sh", "#!/bin/sh\n");
    put_text(world, "bin/train.py", "#!/usr/bin/env python3.11\n");
    put_text(world, "bin/python_train.py", "#!/usr/bin/env python3.11\n");
    expect(world, NEEDS("bin/uv", "run", "python3.11", "train.py"), MPI_PMIX,
           "runs other programs");
    expect(world, NEEDS("bin/numactl", "-N", "0", "python3.11", "train.py"), MPI_PMI1,
           "may import");
    expect(world, NEEDS("bin/numactl", "-N", "0", "bin/train.py"), MPI_PMI1, "may import");
    expect(world, NEEDS("bin/python_train.py"), MPI_PMI1, "may import");
    expect(world, NEEDS("bin/nsys", "profile", "-w", "true", "python3.11"), MPI_PMI1, "may import");
    expect(world, NEEDS("bin/program", "python3.11"), MPI_NONE, "needs no MPI library");
    const char *const *const lines[] = {
        NEEDS("bin/conda", "run", "-n", "e", "python3.11", "t.py"),
        NEEDS("bin/poetry", "run", "python3.11", "t.py"),
        NEEDS("bin/numactl", "-N", "0", "apptainer", "exec", "x.sif", "python3.11", "t.py"),
        NEEDS("bin/numactl", "timeout", "1h", "singularity", "exec", "x.sif", "python3.11"),
        NEEDS("/usr/bin/env", "A=b", "conda", "run", "-n", "e", "python3.11", "t.py"),
        NEEDS("bin/numactl", "sh", "run.sh", "python3.11", "t.py"),
        NEEDS("bin/numactl", "bin/container.sh", "python3.11", "t.py"),
        NEEDS("bin/container.sh", "python3.11", "t.py"),
        NEEDS("/bin/sh", "-c", "exec \"$@\"", "sh", "python3.11", "t.py")};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        expect(world, lines[i], MPI_PMIX, " "); /* the default: hvdrun does not know */
}

#define USERS "lib/python3.11/site-packages/mpi4py/MPI.abi3.so"

/* Those of the user, unless variables say otherwise. */
static void test_user_packages(void **state)
{
    struct world *world = *state;
    put_elf(world, "opt/bin/python3.11", NEEDS("libc.so.6"));
    put_elf(world, "home/.local/" USERS, NEEDS("libmpi.so.12"));
    put_elf(world, "base/" USERS, NEEDS("libmpi.so.20"));
    const char *const *const line = NEEDS("opt/bin/python3.11", "t.py");
    expect(world, line, MPI_PMI1, "home/.local/" USERS);
    char *base AUTO_FREE = mem_printf("PYTHONUSERBASE=%s/base", world->files->folder);
    set(world, base);
    expect(world, line, MPI_PMIX, "base/" USERS);
    set(world, "PYTHONNOUSERSITE=1");
    expect(world, line, MPI_PMIX, "is an interpreter");
}

/* A link without an environment leads to the packages of the real one; builds without the lock
 * have folders of their own; a relative PYTHONPATH begins where the ranks run. */
static void test_folders(void **state)
{
    struct world *world = *state;
    put_elf(world, "opt/bin/python3.13t", NEEDS("libc.so.6"));
    put_elf(world, "opt/lib/python3.13t/site-packages/mpi4py/MPI.abi3.so", NEEDS("libmpi.so.12"));
    put_elf(world, "opt/lib/python3.13/site-packages/mpi4py/MPI.abi3.so", NEEDS("libmpi.so.20"));
    put_elf(world, "link/lib/python3.13t/site-packages/mpi4py/MPI.abi3.so", NEEDS("libmpi.so.20"));
    put_text(world, "link/bin/none", "");
    char *target AUTO_FREE = path_of(world, "opt/bin/python3.13t");
    char *path AUTO_FREE = path_of(world, "link/bin/python3");
    assert_int_equal(symlink(target, path), 0);
    expect(world, NEEDS("link/bin/python3", "t.py"), MPI_PMI1,
           "opt/lib/python3.13t/site-packages/mpi4py/MPI.abi3.so");
    put_elf(world, "here/mpi4py/MPI.abi3.so", NEEDS("libmpi.so.20"));
    set(world, "PYTHONPATH=none:here");
    expect(world, NEEDS("link/bin/python3", "t.py"), MPI_PMIX, "here/mpi4py/MPI.abi3.so");
}

/* The image of a container: the root of a file system whose links lead to files in it. */

#define DEBIAN "image/usr/lib/python3/dist-packages/mpi4py/"

static void put_link(const struct world *world, const char *name, const char *target)
{
    make_folders(world, name);
    char *path AUTO_FREE = path_of(world, name);
    assert_int_equal(symlink(target, path), 0);
}

static void make_image(struct world *world)
{
    static const char *const programs[] = {"apptainer", "podman", "ch-run", "chroot", "enroot"};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        char *name AUTO_FREE = mem_printf("bin/%s", programs[i]);
        put_elf(world, name, NEEDS("libc.so.6"));
    }
    put_elf(world, "image/usr/bin/python3.11", NEEDS("libc.so.6"));
    put_link(world, "image/usr/bin/python3", "/etc/alternatives/python3");
    put_link(world, "image/etc/alternatives/python3", "../../../../../../usr/bin/python3.11");
    put_elf(world, DEBIAN "MPI.abi3.so", NEEDS("libmpi.so.12"));
}

/* `words`: the line, with IMAGE for the folder. */
static void expect_line(const struct world *world, const char *words, enum mpi_kind kind,
                        const char *what)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        const char *image = strstr(words, "IMAGE");
        if (image != NULL && image < words + length)
            strv_printf(&argv, "%.*s%s/image%.*s", (int)(image - words), words,
                        world->files->folder, (int)(words + length - image - 5), image + 5);
        else
            strv_add_n(&argv, words, length);
        words += length + (words[length] == ' ');
    }
    expect(world, (const char *const *)argv.items, kind, what);
}

static void test_python_in_an_image(void **state)
{
    static const char *const lines[] = {
        "bin/apptainer exec --nv --bind /a:/b IMAGE python3 train.py",
        "bin/apptainer run IMAGE /usr/bin/python3 train.py",
        "bin/podman run --rm --rootfs IMAGE:O python3 train.py",
        "bin/podman run --rootfs=IMAGE python3 train.py",
        "bin/ch-run -w IMAGE -- python3 train.py",
        "bin/ch-run IMAGE -- env A=b python3 train.py",
        "bin/ch-run IMAGE train",
        "bin/enroot start --rw image python3 train.py",
    };
    struct world *world = *state;
    make_image(world);
    put_elf(world, "image/usr/bin/env", NEEDS("libc.so.6"));
    put_text(world, "image/bin/train", "#!/usr/bin/env python3\n");
    char *data AUTO_FREE = mem_printf("ENROOT_DATA_PATH=%s", world->files->folder);
    set(world, data);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        expect_line(world, lines[i], MPI_PMI1, "/MPI.abi3.so, which needs libmpi.so.12");
    put_elf(world, "here/mpi4py/MPI.abi3.so", NEEDS("libmpi.so.40"));
    put_elf(world, "image/here/mpi4py/MPI.abi3.so", NEEDS("libmpi.so.40"));
    set(world, "PYTHONPATH=here"); /* of the container, or mounted there: nobody knows */
    expect_line(world, lines[0], MPI_PMI1, "/MPI.abi3.so, which needs libmpi.so.12");
    put_elf(world, DEBIAN "MPI.abi3.so", NEEDS("libmpi.so.40"));
    expect_line(world, lines[0], MPI_PMIX, "which needs libmpi.so.40 (Open MPI)");
}

static void test_no_image(void **state)
{
    struct world *world = *state;
    make_image(world);
    put_text(world, "image.sif", "");
    expect_line(world, "bin/apptainer exec image.sif python3 train.py", MPI_PMIX, "runs other");
    expect_line(world, "bin/apptainer exec / python3 train.py", MPI_PMIX, "runs other");
    expect_line(world, "bin/apptainer exec IMAGE", MPI_PMIX, "runs other");
    expect_line(world, "bin/apptainer exec IMAGE ./train", MPI_PMIX, "runs other");
    expect_line(world, "bin/apptainer exec IMAGE nothing", MPI_PMIX, "runs other");
    expect_line(world, "bin/apptainer", MPI_PMIX, "runs other");
    expect_line(world, "bin/chroot IMAGE train", MPI_PMIX, "runs other");
}

/* Its libraries are those of the image. A program that only we have is mounted there. */
static void test_other_programs_in_an_image(void **state)
{
    struct world *world = *state;
    struct mpi_finding found;
    make_image(world);
    put_elf(world, "image/opt/app", NEEDS("libsolver.so.1"));
    put_elf(world, "image/opt/solver/libsolver.so.1.0", NEEDS("libmpich.so.12"));
    put_link(world, "image/opt/solver/libsolver.so.1", "/opt/solver/libsolver.so.1.0");
    put_text(world, "image/etc/ld.so.conf", "include ld.so.conf.d/*.conf\n");
    put_text(world, "image/etc/ld.so.conf.d/solver.conf", "/opt/solver\n");
    char *root AUTO_FREE = path_of(world, "image");
    assert_int_equal(mpi_detect_in(root, "/opt/app", NULL, &found, NULL), 0);
    assert_int_equal(found.kind, MPI_PMI1);
    assert_true(found.linked);
    put_elf(world, "image/usr/bin/mpirun", NEEDS("libopen-rte.so.40"));
    put_elf(world, "mounted/app", NEEDS("libmpi.so.12"));
    char *mounted AUTO_FREE = path_of(world, "mounted/app");
    char *path AUTO_FREE = path_of(world, "bin/apptainer");
    struct mpi_program own = {.path = path, .get = get, .context = world};
    own.argv = (char *const[]){"apptainer", "exec", root, "mpirun", "app", NULL};
    assert_int_equal(mpi_detect_program(&own, &found, NULL), 0);
    assert_true(found.launcher);
    own.argv = (char *const[]){"apptainer", "exec", root, mounted, NULL};
    assert_int_equal(mpi_detect_program(&own, &found, NULL), 0);
    assert_int_equal(found.kind, MPI_PMI1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_extension, begin, end),
        cmocka_unit_test_setup_teardown(test_the_first_package, begin, end),
        cmocka_unit_test_setup_teardown(test_the_named_one, begin, end),
        cmocka_unit_test_setup_teardown(test_the_library, begin, end),
        cmocka_unit_test_setup_teardown(test_a_plain_one_beside_others, begin, end),
        cmocka_unit_test_setup_teardown(test_other_environments, begin, end),
        cmocka_unit_test_setup_teardown(test_user_packages, begin, end),
        cmocka_unit_test_setup_teardown(test_folders, begin, end),
        cmocka_unit_test_setup_teardown(test_trouble, begin, end),
        cmocka_unit_test_setup_teardown(test_python_in_an_image, begin, end),
        cmocka_unit_test_setup_teardown(test_no_image, begin, end),
        cmocka_unit_test_setup_teardown(test_other_programs_in_an_image, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
