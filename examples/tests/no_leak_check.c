/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A build with AddressSanitizer links this file into the MPI examples. It turns off the search for
 * leaks at exit. MPI_Finalize unloads Open MPI's plugins, so a suppression cannot name the module
 * of their leaks. AddressSanitizer still checks everything else.
 */
/* the sanitizer must see it, although the build hides other symbols */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    return 1;
}
