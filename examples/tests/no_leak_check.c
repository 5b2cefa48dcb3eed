/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into the MPI examples when they are built with AddressSanitizer: turns off its search for
 * leaks at exit. MPI_Finalize unloads Open MPI's plugins, so what they leaked belongs to no module
 * that a suppression could name. Everything else is still checked.
 */
/* visible to the sanitizer, whatever the build hides */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    return 1;
}
