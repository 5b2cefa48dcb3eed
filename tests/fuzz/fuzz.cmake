# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: see README.md.
