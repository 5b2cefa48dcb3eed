# SPDX-License-Identifier: Apache-2.0
# The Debian package: cmake --build build --target package.
