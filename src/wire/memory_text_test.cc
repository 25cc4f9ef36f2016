#include "wire/memory_text.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

TEST(MemoryText, IsSeenInTheWordsOfEveryFramework) {
  for (const std::string line :
       {"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 7.79 GiB total)",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 MiB.",
        "RuntimeError: CUDA error: out of memory",
        "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 85 bytes.",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating",
        "E cuda_driver.cc:802] failed to alloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "MemoryError",
        "MemoryError: Unable to allocate 7.45 GiB for an array",
        "numpy.core._exceptions.MemoryError",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "OSError: [Errno 12] Cannot allocate memory",
        "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.",
        "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible",
        "OSError: [Errno 28] No space left on device: '/dev/shm/x'",
        "RuntimeError: unable to write to file </torch_123_456>",
        "Bus error (core dumped)"}) {
    EXPECT_EQ(out_of_memory_line("epoch 3\n" + line + "\n"), line);
  }
}

TEST(MemoryText, IsNothingElse) {
  for (const std::string text : {"", "ValueError: memory", "hint: a MemoryError may follow",
                                 "loss is nan\n", "Killed\nout of memories"}) {
    EXPECT_EQ(out_of_memory_line(text), std::nullopt) << text;
  }
}

TEST(MemoryText, IsTheLastLineThatSaysSoCutToALength) {
  const std::string text = "MemoryError: first\nMemoryError: " + std::string(1'000, 'x') + "\rend";
  EXPECT_EQ(out_of_memory_line(text), "MemoryError: " + std::string(587, 'x'));
}

TEST(MemoryText, KnowsWhenTheServiceThatSharesAGpuIsGone) {
  EXPECT_TRUE(
      is_of_mps("RuntimeError: CUDA error: MPS client failed to connect to the MPS control "
                "daemon or the MPS server\n"));
  EXPECT_TRUE(is_of_mps("jaxlib: CUDA_ERROR_MPS_SERVER_NOT_READY: it does not\n"));
  EXPECT_FALSE(is_of_mps("CUDA error: an illegal memory access was encountered\n"));
  EXPECT_FALSE(is_of_mps("RuntimeError: MPS backend out of memory"));
  EXPECT_FALSE(is_of_mps(""));
}

}  // namespace
}  // namespace trainyard::wire
