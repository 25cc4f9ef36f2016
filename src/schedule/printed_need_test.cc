// Verbatim messages of frameworks about the memory that they lacked.
#include "schedule/printed_need.h"

#include <string>

#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

TEST(PrintedNeed, IsWhatTorchHadAndWanted) {
  EXPECT_EQ(
      printed_need("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
                   "GPU 0 has a total capacity of 23.69 GiB of which 1.20 GiB is free. "
                   "Process 4242 has 15.99 GiB memory in use. Including non-PyTorch memory, "
                   "this process has 6.50 GiB memory in use. Of the allocated memory 5.10 GiB "
                   "is allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but "
                   "unallocated.",
                   gib(6)),
      Bytes{gib(8).count + gib(1).count / 2});
}

TEST(PrintedNeed, AddsWhatAnOlderTorchDoesNotCount) {
  EXPECT_EQ(printed_need("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; "
                         "7.92 GiB total capacity; 5.00 GiB already allocated; 11.56 MiB free; "
                         "6.00 GiB reserved in total by PyTorch)",
                         gib(1)),
            gib(6) + mib(20) + mib(512));
  EXPECT_EQ(printed_need("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 11.17 GiB total "
                         "capacity; 5.25 GiB already allocated; 1.03 GiB free)",
                         gib(1)),
            Bytes{gib(7).count + gib(1).count / 4} + mib(512));
}

TEST(PrintedNeed, IsTheSumWhereTorchDoesNotSayWhatTheProcessHas) {
  const std::string wish =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
      "capacity of 23.65 GiB of which 1.31 GiB is free. Of the allocated memory 5.00 GiB is "
      "allocated by PyTorch";
  EXPECT_EQ(printed_need(wish, gib(1)), gib(7) + mib(512));
  EXPECT_EQ(printed_need(wish + ", and 300.00 MiB is reserved by PyTorch but unallocated.", gib(1)),
            gib(7) + mib(300) + mib(512));
  EXPECT_EQ(printed_need(wish + ", with 24.00 MiB allocated in private pools (e.g., CUDA Graphs), "
                                "and 0 bytes is reserved by PyTorch but unallocated.",
                         gib(1)),
            gib(7) + mib(512));
}

TEST(PrintedNeed, IsReadOfEachWayInWhichAWishIsPrinted) {
  for (const std::string text :
       {"failed to allocate 3.00G (3221225472 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY",
        "RESOURCE_EXHAUSTED: Failed to allocate request for 3.00GiB (3221225472B) on device "
        "ordinal 0",
        "RESOURCE_EXHAUSTED: Out of memory allocating 3221225472 bytes.",
        "RuntimeError: Resource exhausted: Out of memory while trying to allocate 3221225472 "
        "bytes.",
        "INTERNAL: Failed to allocate 3221225472 bytes for new constant",
        "OOM when allocating tensor with shape[32768,24576] and type float on /job:localhost",
        "OOM when allocating tensor with shape[16384,24576] and type double on /job:localhost",
        "OOM when allocating tensor with shape[3,1024,1024,1024] and type bool on /job:x"}) {
    EXPECT_EQ(printed_need(text, gib(2)), gib(5)) << text;
  }
}

TEST(PrintedNeed, IsThePeakAndMoreWhereOnlyTheWishIsPrinted) {
  EXPECT_EQ(printed_need("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory "
                         "while trying to allocate 2147483648 bytes.",
                         gib(3)),
            gib(5));
  EXPECT_EQ(printed_need("Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB "
                         "(rounded to 2147483648)requested by op",
                         gib(3)),
            gib(5));
}

TEST(PrintedNeed, IsNothingWhereNoNumberIsPrinted) {
  for (const std::string text :
       {"", "CUDA error: out of memory", "Tried to allocate", "Tried to allocate much",
        "Tried to allocate 2.00", "Tried to allocate -2.00 GiB", "Tried to allocate nan GiB",
        "failed to allocate 3 Tensors", "failed to allocate memory [Op:MatMul]",
        "OOM when allocating tensor with shape[", "OOM when allocating tensor with shape[2,3]",
        "OOM when allocating tensor with shape[2,3] and type ",
        "OOM when allocating tensor with shape[2,3] and type variant on /job",
        "OOM when allocating tensor with shape[2,-3] and type float on /job",
        "OOM when allocating tensor with shape[2,?] and type float on /job",
        "OOM when allocating tensor with shape[2,99999999999999999999] and type float on /job"}) {
    EXPECT_EQ(printed_need(text, gib(3)), Bytes{}) << text;
  }
}

TEST(PrintedNeed, TakesNoNumberOfWhatWasAllocatedThatIsNone) {
  for (const std::string lie : {"-5.00", "nan", "-inf", "much", "", "0x5", "1e3"}) {
    EXPECT_EQ(printed_need("Tried to allocate 2.00 GiB (GPU 0; 7.79 GiB total capacity; " + lie +
                               " GiB already allocated; 1.00 GiB free; " + lie +
                               " GiB reserved in total by PyTorch)",
                           gib(3)),
              gib(5))
        << lie;
    EXPECT_EQ(printed_need("Tried to allocate 2.00 GiB. Including non-PyTorch memory, this process "
                           "has " +
                               lie + " GiB memory in use.",
                           gib(3)),
              gib(5))
        << lie;
  }
}

TEST(PrintedNeed, IsBoundedHoweverLargeALieIs) {
  const Bytes lie = printed_need("Tried to allocate 99999999999999999999999999 TiB", gib(1));
  EXPECT_GT(lie, gib(1000));
  EXPECT_LT(lie.count, 2'000'000'000'000'000);
  const Bytes tensor = printed_need(
      "OOM when allocating tensor with shape[4000000000,4000000000,4000000000] and type float",
      gib(1));
  EXPECT_GT(tensor, gib(1000));
  EXPECT_LT(tensor.count, 2'000'000'000'000'000);
  const std::string most = "99999999999999999999999999 TiB";
  for (const std::string& all :
       {" (GPU 0; 1 GiB total capacity; " + most + " already allocated)",
        std::string(". Including non-PyTorch memory, this process has inf GiB memory in use.")}) {
    const Bytes need = printed_need("Tried to allocate " + most + all, gib(1));
    EXPECT_GT(need, gib(1000)) << all;
    EXPECT_LT(need.count, 3'000'000'000'000'000) << all;
  }
}

}  // namespace
}  // namespace trainyard::schedule
