// The GPU memory that control groups can limit, read from made-up files.
#include "hardware/cgroup.h"

#include <fstream>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::hardware {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DeviceRegions, AreThoseThatHaveASize) {
  EXPECT_THAT(named_regions("drm/0000:03:00.0/vram0 8514437120\ndrm/0000:41:00.0/vram0 1\n"),
              ElementsAre("drm/0000:03:00.0/vram0", "drm/0000:41:00.0/vram0"));
  EXPECT_THAT(named_regions("a 1\nb max\n c 1\nd 0\ne -1\nf 1 2\ng\n\nh 2"), ElementsAre("a", "h"));
}

TEST(DeviceRegions, AreNoMoreThanAreRead) {
  std::string text;
  for (std::size_t i = 0; i < 2 * kDeviceRegionsMax; ++i) text += "a 1\n";
  EXPECT_EQ(named_regions(text).size(), kDeviceRegionsMax);
}

TEST(DeviceRegions, AreReadFromTheMachinesOwnGroup) {
  const sys::TemporaryDirectory place;
  EXPECT_THAT(device_regions(place.path()), IsEmpty()) << "an older kernel";
  std::ofstream(place / "dmem.capacity") << "drm/0000:03:00.0/vram0 17163091968\n" << std::flush;
  EXPECT_THAT(device_regions(place.path()), ElementsAre("drm/0000:03:00.0/vram0"));
}

TEST(DeviceRegions, AreAGpusByItsPlaceOnTheBus) {
  const std::vector<std::string> all{"drm/0000:03:00.0/stolen", "drm/0000:03:00.0/vram0",
                                     "drm/0000:03:00.0/vram1", "drm/0000:41:00.0/vram0"};
  EXPECT_THAT(regions_of({.pci = "0000:03:00.0"}, all),
              ElementsAre("drm/0000:03:00.0/vram0", "drm/0000:03:00.0/vram1"));
  EXPECT_THAT(regions_of({.pci = "0000:99:00.0"}, all), IsEmpty());
  EXPECT_THAT(regions_of({}, all), IsEmpty());
}

}  // namespace
}  // namespace trainyard::hardware
