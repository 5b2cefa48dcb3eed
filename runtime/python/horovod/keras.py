# SPDX-License-Identifier: Apache-2.0
from horovod.common.missing import refuse

refuse(__name__)
