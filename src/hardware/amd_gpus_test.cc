#include <cstdint>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "hardware/gpu_driver.h"
#include "model/resources.h"

namespace trainyard::hardware {
namespace {

namespace fs = std::filesystem;

/// A /sys with two cards of AMD's, the one that comes first on the bus listed last, and one of
/// somebody else's.
class AmdGpusTest : public testing::Test {
 public:
  AmdGpusTest(AmdGpusTest&&) = delete;
  AmdGpusTest& operator=(AmdGpusTest&&) = delete;
  ~AmdGpusTest() override { fs::remove_all(sys_); }

 protected:
  AmdGpusTest() : sys_(fs::temp_directory_path() / fmt::format("amd-{}", ::getpid())) {
    card("card0", "0000:c3:00.0", "0x1002");
    card("card1", "0000:03:00.0", "0x1002");
    card("card2", "0000:04:00.0", "0x8086");
    write("class/drm/card0-DP-1/status", "connected");
    write("class/drm/card1/device/product_name", "AMD Instinct MI210\n");
    write("class/drm/card1/device/unique_id", "b45c0ffee0\n");
    write("class/kfd/kfd/topology/nodes/0/properties", "location_id 0\n");
    write("class/kfd/kfd/topology/nodes/1/gpu_id", "4711\n");
    write("class/kfd/kfd/topology/nodes/1/properties",
          "simd_count 104\nlocation_id 768\ndomain 0\nmax_engine_clk_fcompute 1700\n");
    write("class/kfd/kfd/proc/77/vram_4711", "3000000000\n");
    write("class/kfd/kfd/proc/78/vram_4711", "0\n");
    write("class/kfd/kfd/proc/79/vram_9", "1000\n");
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((sys_ / path).parent_path());
    std::ofstream(sys_ / path) << text;
  }
  void card(const std::string& name, const std::string& pci, const std::string& vendor) const {
    const std::string device = "devices/" + pci;
    write(device + "/vendor", vendor + "\n");
    write(device + "/device", "0x740f\n");
    write(device + "/mem_info_vram_total", "64000000000\n");
    write(device + "/mem_info_vram_used", "5000000000\n");
    write(device + "/gpu_busy_percent", "30\n");
    fs::create_directories(sys_ / "class/drm" / name);
    fs::create_directory_symlink(sys_ / device, sys_ / "class/drm" / name / "device");
  }

  fs::path sys_;
};

TEST_F(AmdGpusTest, AreListedInTheOrderOfTheBus) {
  const auto driver = open_amd(sys_);
  ASSERT_EQ(driver->gpus().size(), 2U);
  const model::Gpu expected{.number = 0,
                            .uuid = "GPU-b45c0ffee0",
                            .name = "AMD Instinct MI210",
                            .pci = "0000:03:00.0",
                            .memory = gb(64),
                            .speed = std::int64_t{104} * 1700,
                            .maker = model::GpuMaker::Amd};
  EXPECT_EQ(driver->gpus()[0], expected);
  EXPECT_EQ(driver->gpus()[1].name, "AMD GPU 0x740f");
  EXPECT_EQ(driver->gpus()[1].number, 1);
}

TEST_F(AmdGpusTest, ShowWhoHasWhat) {
  const auto driver = open_amd(sys_);
  const GpuState state = driver->look(0);
  EXPECT_TRUE(state.present && state.processes_known);
  EXPECT_EQ(state.used, gb(5));
  EXPECT_EQ(state.utilization, 0.3);
  ASSERT_EQ(state.processes.size(), 1U);
  EXPECT_EQ(state.processes[0].pid, 77);
  EXPECT_EQ(state.processes[0].memory, gb(3));
  // Of the other there is no node: nobody knows who has what.
  EXPECT_FALSE(driver->look(1).processes_known);
}

TEST_F(AmdGpusTest, AreGoneWhenTheirFilesAre) {
  const auto driver = open_amd(sys_);
  fs::remove(sys_ / "devices/0000:03:00.0/mem_info_vram_used");
  EXPECT_FALSE(driver->look(0).present);
}

TEST_F(AmdGpusTest, MayBeMissing) { EXPECT_TRUE(open_amd("/there/is/nothing")->gpus().empty()); }

TEST_F(AmdGpusTest, AreLeftOutByTheirOwnVariables) {
  const GpuSources sources{.nvml = "libthere-is-no-such-library.so.1",
                           .sys = sys_,
                           .environment = {"HIP_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES="}};
  const Gpus gpus(sources);
  ASSERT_EQ(gpus.list().gpus.size(), 1U);
  EXPECT_EQ(gpus.list().gpus[0].pci, "0000:c3:00.0");
}

}  // namespace
}  // namespace trainyard::hardware
