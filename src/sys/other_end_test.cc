// Detection of a process that still holds the other end.
#include "sys/other_end.h"

#include <array>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/descriptor.h"

namespace trainyard::sys {
namespace {

TEST(OtherEnd, IsClosedWhenItsLastHolderLetsGoAndWhatHasComeIsRead) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
  const Descriptor reads(ends[0]);
  Descriptor writes(ends[1]);
  Descriptor writes_too(::dup(ends[1]));
  EXPECT_TRUE(has_other_end(reads.get()));
  EXPECT_FALSE(is_other_end_closed(reads.get()));
  const std::string text(1000, 'x');
  ASSERT_EQ(::write(writes.get(), text.data(), text.size()), 1000);
  writes.close();
  EXPECT_FALSE(is_other_end_closed(reads.get())) << "there is something to read";
  EXPECT_FALSE(is_other_end_closed(reads.get())) << "somebody else has it, too";
  writes_too.close();
  EXPECT_TRUE(is_other_end_closed(reads.get()));
}

TEST(OtherEnd, IsNotOfADeviceOrAFile) {
  const Descriptor device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(has_other_end(device.get()));
  EXPECT_FALSE(has_other_end(file.get()));
  EXPECT_FALSE(has_other_end(-1));
}

}  // namespace
}  // namespace trainyard::sys
