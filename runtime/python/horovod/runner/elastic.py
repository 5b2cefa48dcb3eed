# SPDX-License-Identifier: Apache-2.0
from horovod.common.missing import refuse

refuse(__name__, "hvdrun itself finds hosts and notifies workers; use hvdrun --host-discovery-script")
