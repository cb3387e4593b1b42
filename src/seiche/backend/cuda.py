# SPDX-License-Identifier: BSD-3-Clause
"""NVIDIA GPUs: kernels by NVRTC; memory, streams, events and graphs by CuPy."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.backend.arrays import Array
from seiche.backend.base import COPIES, Backend, Graph, Kernel, Stream
from seiche.backend.cache import cached_kernel
from seiche.backend.cuda_transforms import CufftTransforms
from seiche.errors import BackendUnavailable
from seiche.kernels.registry import KernelSpec
from seiche.set_up import set_up_stage

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Fraction of free memory above which a GPU counts as free; a display uses a little memory.
_FREE_FRACTION = 0.8


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise BackendUnavailable("CuPy is not installed: pip install 'seiche[cuda13]' (or [cuda12])") from error
    return cupy


def first_free() -> int | None:
    """Return the number of the first GPU with mostly free memory, otherwise of the one with the most free memory.

    GPUs that cannot be opened, such as those reserved for another process, are skipped; None if none can be opened.
    """
    runtime = _cupy().cuda.runtime
    most_free, best_gpu = -1, None
    try:
        count = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError:
        return None
    for number in range(count):
        try:
            runtime.setDevice(number)
            free_bytes, total = runtime.memGetInfo()
        except runtime.CUDARuntimeError:
            continue
        if free_bytes >= _FREE_FRACTION * total:
            return number
        if free_bytes > most_free:
            most_free, best_gpu = free_bytes, number
    return best_gpu


def gpu_number(device: int | None, local_rank: int = 0) -> int:
    """Return the number of GPU `device`, by default the rank on this host modulo the number of GPUs.

    Raises:
        BackendUnavailable: CuPy or the driver is missing, or the GPU does not exist.
    """
    runtime = _cupy().cuda.runtime
    try:
        count = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        raise BackendUnavailable(f"no CUDA device is usable: {error}") from error
    number = local_rank % max(count, 1) if device is None else device
    if number >= count:
        raise BackendUnavailable(f"cuda:{number} does not exist: this machine has {count} CUDA device(s)")
    return number


def pci_address(number: int) -> str:
    """Return the PCI address of a GPU, such as "0000:9B:00.0", without opening it."""
    return str(_cupy().cuda.runtime.deviceGetPCIBusId(number))


def create_context(device: int | None, local_rank: int) -> None:
    """Import CuPy and create the context of a GPU, which all threads of the process then share.

    Raises:
        BackendUnavailable: CuPy or the driver is missing, or the GPU does not exist or cannot be used.
    """
    number, runtime = gpu_number(device, local_rank), _cupy().cuda.runtime
    try:
        with _cupy().cuda.Device(number):
            runtime.free(0)
    except runtime.CUDARuntimeError as error:
        raise BackendUnavailable(f"cuda:{number} cannot be used: {error}") from error


class CudaKernel(Kernel):
    """A function of a loaded cubin."""

    def __init__(self, spec: KernelSpec, architecture: str) -> None:
        """Load the cubin from the cache, compiling it first if necessary."""
        cubin, symbol, bytes_per_item, self._scratch = cached_kernel(spec, architecture)
        super().__init__(spec, bytes_per_item)
        self._function = _cupy().RawModule(path=str(cubin)).get_function(symbol)
        if self._scratch:
            self._function.max_dynamic_shared_size_bytes = self._scratch

    def bind(self, arguments: npt.NDArray[np.void], begin: int, end: int) -> Callable[[], None]:
        """Return the launch; the argument struct is passed by value."""
        packed = arguments.copy()[()]
        threads, scratch = self.spec.threads, self._scratch
        blocks = end - begin if self.spec.team else -(-(end - begin) // (threads * self.spec.items))
        function, first, last = self._function, np.int64(begin), np.int64(end)

        def run() -> None:
            if blocks > 0:
                function((blocks,), (threads,), (packed, first, last), shared_mem=scratch)

        return run


#: For pageable memory up to this size, the driver stages a copy before the call returns (CUDA, "API synchronization
#: behavior"), so the caller does not wait for the device.
STAGED_BYTES = 1 << 16


class CudaStream(Stream):
    """A stream that does not synchronise with the default stream."""

    def __init__(self, stream: Any = None) -> None:
        """Create it on the current device, or wrap an existing CuPy stream."""
        self.stream = _cupy().cuda.Stream(non_blocking=True) if stream is None else stream

    def synchronize(self) -> None:
        """Wait for all work of the stream."""
        self.stream.synchronize()

    def record(self) -> Any:
        """Return an event after all work launched so far."""
        event = _cupy().cuda.Event(disable_timing=True)
        event.record(self.stream)
        return event

    def wait(self, event: Any) -> None:
        """Make later work wait for `event`."""
        self.stream.wait_event(event)


class CudaGraph(Graph):
    """A captured CUDA graph whose kernels have the priorities of the streams in which they were captured."""

    def __init__(self, captured: int) -> None:
        """Instantiate the captured graph and free its handle.

        Raises:
            BackendUnavailable: the driver cannot instantiate it.
        """
        from cuda.bindings import driver

        self._runtime = _cupy().cuda.runtime
        # Without the flag all kernels have the priority of the stream in which the graph is launched.
        flag = driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
        status, executable = driver.cuGraphInstantiate(driver.CUgraph(captured), int(flag))
        self._runtime.graphDestroy(captured)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise BackendUnavailable(f"cannot instantiate a graph of steps: {status.name}")
        self._executable = int(executable)
        weakref.finalize(self, self._runtime.graphExecDestroy, self._executable)

    def launch(self) -> None:
        """Launch it in the current stream."""
        self._runtime.graphLaunch(self._executable, _cupy().cuda.get_current_stream().ptr)


class CudaClock:
    """Events in the current stream, timed by the device."""

    def record(self) -> Any:
        """Return an event after the work launched so far."""
        event = _cupy().cuda.Event()
        event.record()
        return event

    def elapsed(self, begin: Any, end: Any) -> float:
        """Wait for the second event and return the seconds between both."""
        end.synchronize()
        return float(_cupy().cuda.get_elapsed_time(begin, end)) * 1e-3


class CudaBackend(Backend):
    """One GPU."""

    is_gpu = True

    def __init__(self, device: int | None, local_rank: int = 0) -> None:
        """Use GPU `device`, by default the rank on this host modulo the number of GPUs.

        Raises:
            BackendUnavailable: CuPy or the driver is missing, or the GPU does not exist.
        """
        cupy, number = _cupy(), gpu_number(device, local_rank)
        self._cupy = cupy
        self._device = cupy.cuda.Device(number)
        self._device.use()
        self.name = f"cuda:{number}"
        self.pci_address = pci_address(number)
        self._architecture = f"sm_{self._device.compute_capability}"
        self.multiprocessors = int(self._device.attributes["MultiProcessorCount"])
        self._kernels: dict[KernelSpec, CudaKernel] = {}
        self._main = CudaStream()
        self._main.stream.use()

    def describe(self) -> str:
        """Return the GPU's name and number."""
        properties = self._cupy.cuda.runtime.getDeviceProperties(self._device.id)
        return f"{properties['name'].decode()} ({self.name})"

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return zeroed device memory.

        Raises:
            BackendUnavailable: the device has too little free memory.
        """
        try:
            return self._cupy.zeros(shape, dtype)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise BackendUnavailable(f"{self.name}: not enough memory: {error}") from error

    @set_up_stage("upload")
    def upload(self, host: npt.NDArray[Any]) -> Array:
        """Return a copy on the device."""
        array = self.zeros(host.shape, host.dtype)
        array.set(np.ascontiguousarray(host))
        return array

    def assign(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Overwrite in place; small arrays are staged by the driver, so the host does not wait."""
        host = np.ascontiguousarray(host)
        if host.nbytes <= STAGED_BYTES:
            self._copy(self.pointer(array), host.ctypes.data, host.nbytes)
        else:
            array.set(host)

    def download(self, array: Array) -> npt.NDArray[Any]:
        """Return a copy on the host."""
        return np.asarray(self._cupy.asnumpy(array))

    def pointer(self, array: Array) -> int:
        """Return the device address."""
        return int(array.data.ptr)

    def pinned(self, shape: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return page-locked host memory."""
        size = shape * np.dtype(dtype).itemsize
        memory = self._cupy.cuda.alloc_pinned_memory(max(size, 1))
        return np.frombuffer(memory, dtype, shape)

    def copy_to_host(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Start a copy to pinned memory."""
        self._copy(host.ctypes.data, self.pointer(array), host.nbytes)

    def copy_to_device(self, host: npt.NDArray[Any], array: Array) -> None:
        """Start a copy from pinned memory."""
        self._copy(self.pointer(array), host.ctypes.data, host.nbytes)

    def _copy(self, target: int, source: int, size: int) -> None:
        """Start a copy between any two addresses; the driver infers host or device (cudaMemcpyDefault)."""
        stream = self._cupy.cuda.get_current_stream()
        self._cupy.cuda.runtime.memcpyAsync(target, source, size, 4, stream.ptr)

    def load(self, spec: KernelSpec) -> Kernel:
        """Return the kernel for this GPU."""
        if spec not in self._kernels:
            with set_up_stage("compile"):
                self._kernels[spec] = CudaKernel(spec, self._architecture)
        return self._kernels[spec]

    def transforms(self, shape: tuple[int, int, int], real: str) -> CufftTransforms:
        """Return cuFFT transforms."""
        return CufftTransforms(shape, real, self._cupy)

    def stream(self, *, high_priority: bool = False) -> Stream:
        """Return a new stream, with a higher priority than the others if `high_priority`."""
        return CudaStream(_cupy().cuda.Stream(non_blocking=True, priority=-1) if high_priority else None)

    def current(self) -> Stream:
        """Return CuPy's current stream."""
        return CudaStream(self._cupy.cuda.get_current_stream())

    @contextmanager
    def use(self, stream: Stream) -> Iterator[Stream]:
        """Make `stream` current inside the context."""
        assert isinstance(stream, CudaStream)
        previous = self._cupy.cuda.get_current_stream()
        stream.stream.use()
        try:
            yield stream
        finally:
            previous.use()

    def await_event(self, event: Any) -> None:
        """Wait for the event; a new thread would otherwise initialise another GPU."""
        with self._device:
            event.synchronize()

    def capture(self, work: Callable[[], None]) -> Graph:
        """Capture the work that `work` launches."""
        stream = self._cupy.cuda.get_current_stream()
        stream.begin_capture()
        try:
            work()
        finally:
            captured = self._cupy.cuda.runtime.streamEndCapture(stream.ptr)
        return CudaGraph(captured)

    def synchronize(self) -> None:
        """Wait for the whole device."""
        self._device.synchronize()

    def clock(self) -> CudaClock:
        """Return a clock based on events."""
        return CudaClock()

    @contextmanager
    def annotate(self, name: str) -> Iterator[None]:
        """Label an NVTX range."""
        self._cupy.cuda.nvtx.RangePush(name)
        try:
            yield
        finally:
            self._cupy.cuda.nvtx.RangePop()

    def sum(self, array: Array) -> float:
        """Return the sum in double precision."""
        return float(array.sum(dtype=np.float64)) if array.size else 0.0

    def max(self, array: Array) -> float:
        """Return the largest element, or NaN if any element is NaN."""
        return float(array.max()) if array.size else 0.0

    def free_memory(self) -> int:
        """Return the device's free bytes."""
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(free)

    def used_memory(self) -> int:
        """Return the bytes of arrays and of the work areas of transforms."""
        return int(self._cupy.get_default_memory_pool().used_bytes())

    def copy_times(self, synchronise: Callable[[], None], sharers: int = 1) -> tuple[int, npt.NDArray[np.float64]]:
        """Time copies of 1 GiB, or less on a device with less than 32 GiB free."""
        count = int(min(1 << 28, self.free_memory() // 32))
        if not count:
            raise BackendUnavailable(f"{self.name} has no free memory for copies that measure the bandwidth")
        source, target = self.zeros(count, np.float32), self.zeros(count, np.float32)
        source.data.memset_async(1, source.nbytes)  # not zeros, and no kernel that CuPy would compile
        clock, seconds = self.clock(), np.empty(COPIES)
        for k in range(COPIES):
            self.synchronize()
            synchronise()
            begin = clock.record()
            self._cupy.copyto(target, source)
            seconds[k] = clock.elapsed(begin, clock.record())
        del source, target
        self._cupy.get_default_memory_pool().free_all_blocks()
        return 2 * 4 * count, seconds
