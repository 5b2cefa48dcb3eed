# SPDX-License-Identifier: Apache-2.0
# Failing allocations and system calls: see README.md.
