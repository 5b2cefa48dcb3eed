# SPDX-License-Identifier: Apache-2.0
"""The names of Horovod 0.28 for PyTorch, with their parameters. A default is Python; GPS is the global process set, and
NONE is Compression.none. A line without parentheses is a class, a module or a value. An indented line goes on with the
one before."""

TORCH = """
init(comm=None, process_sets=None)
shutdown()
is_initialized()
rank()
size()
local_rank()
local_size()
cross_rank()
cross_size()
is_homogeneous()
mpi_threads_supported()
mpi_enabled()
gloo_enabled()
mpi_built()
gloo_built()
nccl_built()
cuda_built()
ddl_built()
ccl_built()
rocm_built()
start_timeline(file_path, mark_cycles=False)
stop_timeline()
Average
Sum
Adasum
Min
Max
Product
allreduce(tensor, average=None, name=None, compression=NONE, op=None, prescale_factor=1.0, postscale_factor=1.0,
    process_set=GPS)
allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=GPS)
allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=GPS)
allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=GPS)
grouped_allreduce(tensors, average=None, name=None, compression=NONE, op=None, prescale_factor=1.0,
    postscale_factor=1.0, process_set=GPS)
grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
    process_set=GPS)
grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
    process_set=GPS)
grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
    process_set=GPS)
sparse_allreduce_async(tensor, name, op, process_set=GPS)
allgather(tensor, name=None, process_set=GPS)
allgather_async(tensor, name=None, process_set=GPS)
grouped_allgather(tensors, name=None, process_set=GPS)
grouped_allgather_async(tensors, name=None, process_set=GPS)
broadcast(tensor, root_rank, name=None, process_set=GPS)
broadcast_async(tensor, root_rank, name=None, process_set=GPS)
broadcast_(tensor, root_rank, name=None, process_set=GPS)
broadcast_async_(tensor, root_rank, name=None, process_set=GPS)
alltoall(tensor, splits=None, name=None, process_set=GPS)
alltoall_async(tensor, splits=None, name=None, process_set=GPS)
reducescatter(tensor, name=None, compression=NONE, op=0, process_set=GPS, prescale_factor=1.0, postscale_factor=1.0)
reducescatter_async(tensor, name=None, op=0, process_set=GPS, prescale_factor=1.0, postscale_factor=1.0)
grouped_reducescatter(tensors, name=None, compression=NONE, op=0, process_set=GPS, prescale_factor=1.0,
    postscale_factor=1.0)
grouped_reducescatter_async(tensors, name=None, op=0, process_set=GPS, prescale_factor=1.0, postscale_factor=1.0)
join(device=-1)
barrier(process_set=GPS)
poll(handle)
synchronize(handle)
broadcast_parameters(params, root_rank)
broadcast_optimizer_state(optimizer, root_rank, model=None)
broadcast_object(obj, root_rank=0, name=None, process_set=GPS)
allgather_object(obj, name=None)
Compression
DistributedOptimizer(optimizer, named_parameters=None, compression=NONE, backward_passes_per_step=1, op=0,
    gradient_predivide_factor=1.0, num_groups=0, groups=None, sparse_as_dense=False, process_set=GPS)
SyncBatchNorm(num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True)
ProcessSet(ranks_or_comm)
global_process_set
add_process_set(process_set)
remove_process_set(process_set)
HorovodInternalError
elastic
"""

# The modules that scripts and other packages import names from.
ELSEWHERE = {
    "horovod": """
run(func, args=(), kwargs=None, num_proc=1, min_num_proc=None, max_num_proc=None, slots=None, reset_limit=None,
    cooldown_range=None, hosts=None, hostfile=None, host_discovery_script=None, start_timeout=None, ssh_port=None,
    ssh_identity_file=None, disable_cache=None, output_filename=None, verbose=None, use_gloo=None, use_mpi=None,
    mpi_args=None, network_interface=None, network_interfaces=None, executable=None, np=None, min_np=None,
    max_np=None)
__version__
""",
    "horovod.runner": "run",
    "horovod.runner.common.util.env": "get_env_rank_and_size()",
    "horovod.runner.util.threads": "in_thread(target, args=(), name=None, daemon=True, silent=False)",
    "horovod.torch.elastic": """
run(func)
State
ObjectState
TorchState(model=None, optimizer=None)
ElasticSampler(dataset, shuffle=True, seed=0)
""",
    "horovod.torch.elastic.sampler": "ElasticSampler",
    "horovod.torch.elastic.state": """
TorchState
StateHandler
ModelStateHandler
OptimizerStateHandler
SamplerStateHandler
get_handler_registry()
set_handler_registry(registry)
""",
    "horovod.torch.compression": """
Compression
Compressor
NoneCompressor
FP16Compressor
""",
    "horovod.torch.functions": """
broadcast_parameters
broadcast_optimizer_state
broadcast_object
allgather_object
""",
    "horovod.torch.optimizer": """
DistributedOptimizer
_DistributedOptimizer(params, named_parameters, compression, backward_passes_per_step=1, op=0,
    gradient_predivide_factor=1.0, groups=None, sparse_as_dense=False, process_set=GPS)
_DistributedAdasumOptimizer(params, named_parameters, compression, backward_passes_per_step=1)
""",
    "horovod.torch.sync_batch_norm": "SyncBatchNorm",
    "horovod.torch.mpi_ops": """
_basics
ProcessSet
global_process_set
add_process_set(process_set)
remove_process_set(process_set)
""",
    "horovod.common.basics": "HorovodBasics",
    "horovod.common.elastic": """
notification_manager
HostUpdateResult
State
ObjectState
run_fn(func, reset)
""",
    "horovod.common.exceptions": """
HorovodInternalError
HostsUpdatedInterrupt(skip_sync=False)
HorovodVersionMismatchError(name, version, installed_version)
""",
    "horovod.common.process_sets": """
ProcessSet
global_process_set
add_process_set
remove_process_set
is_process_set_included(process_set)
get_process_set_ids_and_ranks()
_basics
""",
    "horovod.common.util": """
env
split_list
extension_available(ext_base_name, verbose=False)
gpu_available(ext_base_name, verbose=False)
mpi_built(verbose=False)
gloo_built(verbose=False)
nccl_built(verbose=False)
ddl_built(verbose=False)
ccl_built(verbose=False)
cuda_built(verbose=False)
rocm_built(verbose=False)
check_extension
num_rank_is_power_2(num_rank)
is_iterable
""",
    "horovod.data": """
BaseDataLoader
AsyncDataLoaderMixin
""",
}

# docs/horovod.md names them as not supported.
MISSING = """
horovod.runner.elastic
horovod.runner.launch
horovod.tensorflow
horovod.keras
horovod.mxnet
horovod.spark
horovod.ray
""".split()


def lines_of(text):
    return [line for line in text.replace("\n    ", " ").split("\n") if line]
