// A task is kept to a part of its GPU by the variables that its framework understands, where it is
// one of which that is known.
#include "job/gpu_caps.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// A virtual environment with these releases; empty: not there.
class GpuCaps : public ::testing::Test {
 protected:
  void install(std::string_view torch, std::string_view jaxlib = {}) {
    namespace fs = std::filesystem;
    const fs::path root = directory_.path();
    const fs::path packages = root / "lib/python3.11/site-packages";
    fs::create_directories(root / "bin");
    fs::create_directories(packages);
    std::ofstream(root / "pyvenv.cfg") << "home = /usr/bin\n";
    std::ofstream(root / "bin/python").flush();
    fs::permissions(root / "bin/python", fs::perms::owner_all);
    if (!torch.empty()) {
      fs::create_directories(packages / "torch");
      std::ofstream(packages / "torch/version.py") << fmt::format("__version__ = '{}'\n", torch);
    }
    if (!jaxlib.empty()) {
      fs::create_directories(packages / "jaxlib");
      fs::create_directories(packages / fmt::format("jaxlib-{}.dist-info", jaxlib));
    }
  }
  [[nodiscard]] Cappers cappers(const Variables& said = {}, bool mps = false,
                                std::string program = "bin/python") const {
    return find_cappers({.program = std::move(program),
                         .working_directory = directory_.path(),
                         .environment = said,
                         .mps = mps});
  }
  [[nodiscard]] std::string directory() const { return directory_.path(); }

 private:
  sys::TemporaryDirectory directory_;
};

/// 4 GB of a GPU of 10 GB.
constexpr CapAmount kSome{.most = gb(4), .total = gb(10), .gpus_of_machine = 1};

TEST_F(GpuCaps, AreForTorchAnOptionOfItsAllocatorLessWhatItDoesNotCount) {
  install("2.10.0+cu128");
  EXPECT_EQ(to_text(cappers()), "torch 2.10.0+cu128");
  EXPECT_THAT(cap_variables(cappers(), kSome),
              ElementsAre(Pair("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.3500")));
}

TEST_F(GpuCaps, StandBehindWhatItsUserSaysOfTheAllocator) {
  install("2.11.0");
  EXPECT_THAT(
      cap_variables(cappers({{"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"}}), kSome),
      ElementsAre(Pair("PYTORCH_CUDA_ALLOC_CONF",
                       "expandable_segments:True,per_process_memory_fraction:0.3500")));
  EXPECT_THAT(cap_variables(cappers({{"PYTORCH_ALLOC_CONF", "max_split_size_mb:64"}}), kSome),
              ElementsAre(Pair("PYTORCH_ALLOC_CONF",
                               "max_split_size_mb:64,per_process_memory_fraction:0.3500")));
  for (const char* const end : {",", ", ", " , ,"}) {
    EXPECT_THAT(
        cap_variables(cappers({{"PYTORCH_ALLOC_CONF", fmt::format("max_split_size_mb:64{}", end)}}),
                      kSome),
        ElementsAre(
            Pair("PYTORCH_ALLOC_CONF", "max_split_size_mb:64,per_process_memory_fraction:0.3500")));
    EXPECT_THAT(cap_variables(cappers({{"PYTORCH_ALLOC_CONF", end}}), kSome),
                ElementsAre(Pair("PYTORCH_ALLOC_CONF", "per_process_memory_fraction:0.3500")));
  }
  const Cappers own = cappers({{"PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.9"}});
  EXPECT_THAT(own.found, IsEmpty());
  EXPECT_EQ(own.why_not, "PYTORCH_CUDA_ALLOC_CONF says it already");
}

TEST_F(GpuCaps, AreForNoTorchThatIsNotKnownToTakeOne) {
  for (const char* const release : {"2.9.1", "2.10.0a0+git7", "3.0.0", "1.13.1"}) {
    install(release);
    EXPECT_THAT(cappers().found, IsEmpty()) << release;
    EXPECT_EQ(cappers().why_not,
              fmt::format("torch {} is not known to take one (2.10 to 2.x are)", release));
  }
}

TEST_F(GpuCaps, AreForJaxAFractionByTheOneNameOfItsRelease) {
  install("", "0.5.3");
  EXPECT_EQ(to_text(cappers()), "JAX 0.5.3");
  EXPECT_THAT(cap_variables(cappers(), kSome),
              ElementsAre(Pair("XLA_CLIENT_MEM_FRACTION", "0.3500")));
  EXPECT_EQ(cappers({{"XLA_PYTHON_CLIENT_MEM_FRACTION", ".5"}}).why_not,
            "XLA_PYTHON_CLIENT_MEM_FRACTION says it already");
  EXPECT_EQ(cappers({{"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"}}).why_not,
            "JAX keeps to none with XLA_PYTHON_CLIENT_ALLOCATOR=platform");
}

TEST_F(GpuCaps, AreForAnOlderJaxAFractionByTheOlderName) {
  install("", "0.4.36.dev20241125");
  // It does not read the newer one.
  EXPECT_THAT(cap_variables(cappers({{"XLA_CLIENT_MEM_FRACTION", ".5"}}), kSome),
              ElementsAre(Pair("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.3500")));
  EXPECT_EQ(cappers({{"XLA_PYTHON_CLIENT_MEM_FRACTION", ".5"}}).why_not,
            "XLA_PYTHON_CLIENT_MEM_FRACTION says it already");
  EXPECT_THAT(cap_variables(cappers(), kSome),
              ElementsAre(Pair("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.3500")));
}

TEST_F(GpuCaps, AreForNoJaxThatIsNotKnownToTakeOne) {
  for (const char* const release : {"0.3.25", "0.4.0.dev1", "1.0.0"}) {
    // Each has its own directory; the first that exists counts.
    std::filesystem::remove_all(directory() + "/lib");
    install("", release);
    EXPECT_EQ(cappers().why_not,
              fmt::format("jaxlib {} is not known to take one (0.4 to 0.x are)", release));
  }
}

TEST_F(GpuCaps, StandForWhatIsChosenLaterInOneThatIsLookedAt) {
  install("2.10.0", "0.7.0");
  EXPECT_THAT(cap_variables(cappers({{"PYTORCH_ALLOC_CONF", "max_split_size_mb:64"}}, true), {}),
              ElementsAre(Pair("PYTORCH_ALLOC_CONF",
                               "max_split_size_mb:64,per_process_memory_fraction:<chosen when it "
                               "starts>"),
                          Pair("XLA_CLIENT_MEM_FRACTION", "<chosen when it starts>"),
                          Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "<chosen when it starts>")));
}

TEST_F(GpuCaps, AreForBothWhereBothAreThere) {
  install("2.10.0", "0.7.0");
  EXPECT_EQ(to_text(cappers({}, true)), "torch 2.10.0, JAX 0.7.0, MPS");
  EXPECT_THAT(cap_variables(cappers({}, true), kSome),
              ElementsAre(Pair("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.3500"),
                          Pair("XLA_CLIENT_MEM_FRACTION", "0.3500"),
                          Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=3814M")));
}

TEST_F(GpuCaps, AreForAnyProgramWhatMpsKeepsItTo) {
  EXPECT_EQ(to_text(cappers({}, true, "")), "MPS");
  CapAmount two_cards = kSome;
  two_cards.gpus_of_machine = 2;
  EXPECT_THAT(cap_variables(cappers({}, true, ""), two_cards),
              ElementsAre(Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=3814M,1=3814M")));
  EXPECT_THAT(cappers({{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G"}}, true, "").found, IsEmpty());
}

TEST_F(GpuCaps, SayWhyThereAreNone) {
  install("");
  EXPECT_EQ(cappers().why_not, fmt::format("{}/bin/python has neither torch nor JAX", directory()));
  EXPECT_EQ(cappers({}, false, "").why_not, "which Python runs is up to its shell");
  EXPECT_EQ(cappers({}, false, "uv").why_not, "'uv' is not a Python interpreter");
  const std::string shim = directory() + "/bin/python3";
  std::ofstream(shim) << "#!/usr/bin/env bash\nexec pyenv exec \"$program\" \"$@\"\n";
  std::filesystem::permissions(shim, std::filesystem::perms::owner_all);
  EXPECT_EQ(cappers({{"PATH", directory() + "/bin"}}, false, "python3").why_not,
            "'python3' is a script that starts another program, such as those of pyenv");
}

TEST_F(GpuCaps, OfRanksAreASharedPartOfTheGpuEach) {
  install("2.10.0");
  CapAmount ranks = kSome;
  ranks.sharing = 2;
  ranks.ranks = true;
  EXPECT_THAT(cap_variables(cappers(), ranks),
              ElementsAre(Pair("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.1200")));
}

TEST_F(GpuCaps, LeaveHalfOfASmallOneWhateverIsNotCounted) {
  install("2.10.0");
  const auto value = [&](Bytes most, Bytes total) {
    return cap_variables(cappers(), CapAmount{.most = most, .total = total}).front().second;
  };
  EXPECT_EQ(value(mb(600), gb(10)), "per_process_memory_fraction:0.0300");
  EXPECT_EQ(value(gb(20), gb(10)), "per_process_memory_fraction:1.0000");
  EXPECT_EQ(value(Bytes{1}, gb(10)), "per_process_memory_fraction:0.0001") << "0 would be no cap";
  EXPECT_EQ(value(Bytes{1}, Bytes{1}), "per_process_memory_fraction:0.0001");
}

}  // namespace
}  // namespace trainyard::job
