#include "wire/memory_text.h"

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
        "RuntimeError: Resource exhausted: Out of memory allocating 3221225472 bytes.",
        "XlaRuntimeError: INTERNAL: Failed to allocate request for 3.00GiB (3221225472B) on device",
        "XlaRuntimeError: INTERNAL: Failed to allocate 3221225472 bytes for new constant",
        "W bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory trying to allocate "
        "3.00GiB",
        "allocating 3072.00 MiB on device 0: cudaMalloc failed: out of memory",
        "DistBackendError: ncclUnhandledCudaError: Last error: Cuda failure 2 'out of memory'",
        "ncclUnhandledCudaError: Call to CUDA function failed. Cuda failure 'out of memory'",
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
  for (const std::string text :
       {"", "ValueError: memory", "hint: a MemoryError may follow", "loss is nan\n",
        "Killed\nout of memories",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.00GiB. The caller indicates "
        "that this is not a failure, but this may mean that there could be performance gains"}) {
    EXPECT_EQ(out_of_memory_line(text), std::nullopt) << text;
  }
}

TEST(MemoryText, IsTheLastLineThatSaysSoCutToALength) {
  const std::string text = "MemoryError: first\nMemoryError: " + std::string(1'000, 'x') + "\rend";
  EXPECT_EQ(out_of_memory_line(text), "MemoryError: " + std::string(587, 'x'));
}

TEST(MemoryText, IsTheLineWithTheNumberWhereTensorFlowHasTwo) {
  const std::string allocator =
      "W bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.00GiB "
      "(rounded to 3221225472)requested by op MatMul";
  const std::string without = "ResourceExhaustedError: failed to allocate memory [Op:MatMul]";
  const std::string with = "ResourceExhaustedError: OOM when allocating tensor with shape[2,3]";
  EXPECT_EQ(out_of_memory_line(allocator + "\nSum of chunks\n" + without + "\n"), allocator);
  EXPECT_EQ(out_of_memory_line(allocator + "\nSum of chunks\n" + with + "\n"), with);
  EXPECT_EQ(out_of_memory_line("CUDA out of memory. Tried to allocate 2 GiB\n" + without), without);
  EXPECT_EQ(out_of_memory_line(allocator + "\nMemoryError\n"), "MemoryError");
  EXPECT_EQ(out_of_memory_line(allocator + "\nTraceback (most recent call last):\n  File\n" +
                               without + "\n"),
            allocator);
}

TEST(MemoryText, IsNotWhatTheProgramSurvivedBeforeItFailedOfAMistake) {
  const std::string survived = "Detected CUDA out of memory, retry\nepoch 1\nepoch 2\n";
  const std::string head = "Traceback (most recent call last):\n  File \"t.py\", line 1\n";
  const std::string memory = "torch.OutOfMemoryError: CUDA out of memory. Tried";
  for (const std::string mistake :
       {"KeyError: 'val_loss'", "FileNotFoundError: [Errno 2] No such file: 'a.npz'",
        "AssertionError", "omegaconf.errors.ConfigAttributeError: lr",
        "ValueError: nan: RuntimeError", "json.decoder.JSONDecodeError: Expecting value"}) {
    EXPECT_EQ(out_of_memory_line(survived + head + mistake + "\nbye\n"), std::nullopt) << mistake;
    EXPECT_EQ(out_of_memory_line(head + memory + "\n" + survived + head + mistake), std::nullopt)
        << mistake;
    // It fails of memory all the same.
    EXPECT_EQ(out_of_memory_line(head + mistake + "\n" + memory), memory) << mistake;
    for (const std::string link :
         {"\nDuring handling of the above exception, another exception occurred:\n\n",
          "\nThe above exception was the direct cause of the following exception:\n\n"}) {
      EXPECT_EQ(out_of_memory_line("epoch 1\n" + head + memory + "\n" + link + head + mistake),
                memory)
          << link << mistake;
    }
  }
  EXPECT_EQ(out_of_memory_line(survived + head + "ValueError: MemoryError: no room\n"),
            std::nullopt);
}

TEST(MemoryText, IsWhatAnotherExceptionMayComeFrom) {
  const std::string before = "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried";
  for (const std::string exception :
       {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "subprocess.CalledProcessError: Command '['python3']' returned non-zero exit status 1.",
        "RuntimeError: [gloo] Connection closed by peer",
        "tensorflow.python.framework.errors_impl.InternalError: Dst tensor is not initialized."}) {
    EXPECT_EQ(out_of_memory_line(before + "\nTraceback (most recent call last):\n  File\n" +
                                 exception + "\n"),
              before)
        << exception;
  }
}

TEST(MemoryText, KnowsWhoseMemoryItIs) {
  for (const std::string line :
       {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "RuntimeError: Resource exhausted: Out of memory while trying to allocate 32 bytes.",
        "RuntimeError: Resource exhausted: Out of memory allocating 3221225472 bytes.",
        "Failed to allocate request for 3.00GiB (3221225472B) on device ordinal 0",
        "INTERNAL: Failed to allocate 3221225472 bytes for new constant",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.00GiB",
        "cudaMalloc failed: out of memory", "Cuda failure 2 'out of memory'",
        "ResourceExhaustedError: OOM when allocating tensor with shape[2] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"}) {
    EXPECT_TRUE(is_of_gpu(line)) << line;
  }
  for (const std::string line :
       {"MemoryError: Unable to allocate 7.45 GiB", "std::bad_alloc", "Cannot allocate memory",
        "Allocator (mklcpu) ran out of memory trying to allocate 3.00GiB",
        "ResourceExhaustedError: OOM when allocating tensor with shape[2] and type float on "
        "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu"}) {
    EXPECT_FALSE(is_of_gpu(line)) << line;
  }
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
