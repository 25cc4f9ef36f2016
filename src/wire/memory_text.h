// Whether what a program printed at its end, as a rule on its standard error, says that it ran out
// of memory: the host's, a GPU's, or that of /dev/shm. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::wire {

/// So much of the end of a standard error is worth reading.
constexpr std::size_t kErrorTailBytes = std::size_t{64} << 10;
/// Lines of the end of a standard output that count where the standard error is empty.
constexpr std::size_t kOutputTailLines = 20;

/// The words of a script whose training printed nothing of it: of whichever memory.
constexpr std::string_view kOfSomeMemory = "the script ran out of memory";

/// The last line that says so, cut to 600 bytes (torch says how much it has behind 250 of them);
/// nothing when none does. Lines before a Python traceback that ends in a mistake of the program (a
/// KeyError, a FileNotFoundError) do not count, as it has survived them, but those of the
/// exceptions that it was raised from or while they were handled do. Where that is TensorFlow's
/// exception without a number, its allocator's line before it. Knows the words of CUDA, HIP, cuDNN,
/// cuBLAS, NCCL, JAX, TensorFlow, torch (its data loaders too), Python, C++ and the shell, as
/// python/trainyard/client.py does.
std::optional<std::string> out_of_memory_line(std::string_view text);

/// Whether such a line is about the memory of a GPU.
bool is_of_gpu(std::string_view line);

/// Whether it is NVIDIA's multi-process service (MPS) that has failed, and nothing that the command
/// did: its daemon has gone, or another client took it down.
bool is_of_mps(std::string_view text);

}  // namespace trainyard::wire
