#include "process/port_lease.h"

#include <cstdint>
#include <filesystem>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::process {
namespace {

PortLease::Range range(int first, int last) {
  return {.first = first, .last = last, .directory = testing::TempDir() + "ports-of-a-test"};
}

TEST(PortLease, IsGivenToOneAtATime) {
  const auto first = PortLease::take(range(20'500, 20'501)).value();
  {
    const auto second = PortLease::take(range(20'500, 20'501)).value();
    EXPECT_NE(first.port(), second.port());
    EXPECT_EQ(PortLease::take(range(20'500, 20'501)).error().message,
              "no port from 20500 to 20501 is free");
  }
  EXPECT_NE(PortLease::take(range(20'500, 20'501)).value().port(), first.port());
}

TEST(PortLease, PassesOverWhatAnotherProgramListensOn) {
  const sys::Descriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(other.is_open());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(std::uint16_t{20'510});
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  EXPECT_EQ(PortLease::take(range(20'510, 20'511)).value().port(), 20'511);
}

TEST(PortLease, PassesOverAPortInThePlaceOfWhoseFileAnyUserHasPutSomethingElse) {
  const sys::TemporaryDirectory place;
  ASSERT_EQ(::mkfifo((place / "20520").c_str(), 0666), 0);
  std::filesystem::create_symlink(place / "elsewhere", place / "20521");
  place.make("20522");
  EXPECT_TRUE(sys::holds_in_time([&] {
    const auto lease =
        PortLease::take({.first = 20'520, .last = 20'523, .directory = place.path()});
    return lease && lease->port() == 20'523;
  }));
  EXPECT_FALSE(std::filesystem::exists(place / "elsewhere"));
}

TEST(PortLease, FollowsNoLinkInThePlaceOfTheDirectoryButUsesAPrivateOneNextToIt) {
  const sys::TemporaryDirectory place;
  const PortLease::Range range{.first = 20'530, .last = 20'531, .directory = place / "ports"};
  const std::string own = fmt::format("{}-{}", range.directory, ::geteuid());
  place.make("mine");
  std::filesystem::create_symlink(place / "mine", range.directory);
  std::filesystem::create_symlink(place / "mine", own);
  EXPECT_EQ(PortLease::take(range).error().message,
            fmt::format("'{}' is a symbolic link, not a directory", own));
  std::filesystem::remove(own);
  const auto lease = PortLease::take(range);
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  EXPECT_TRUE(std::filesystem::exists(fmt::format("{}/{}", own, lease->port())));
  EXPECT_EQ(std::filesystem::status(own).permissions(), std::filesystem::perms::owner_all);
  EXPECT_TRUE(std::filesystem::is_empty(place / "mine"));
}

TEST(PortLease, IsOneOfTheRangeWhereTheKernelGivesOutAllOfIt) {
  const auto lease = PortLease::take(range(65'000, 65'010));
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  EXPECT_GE(lease->port(), 65'000);
  EXPECT_LE(lease->port(), 65'010);
}

}  // namespace
}  // namespace trainyard::process
