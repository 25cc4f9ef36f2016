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

/// The first of ten ports that tests in another process do not use.
int own_ports() { return 20'000 + (10 * static_cast<int>(::getpid() % 1'000)); }

/// The first `count` of them, and a directory below `place`.
PortLease::Range range(const sys::TemporaryDirectory& place, int count) {
  return {.first = own_ports(), .last = own_ports() + count - 1, .directory = place / "ports"};
}

TEST(PortLease, IsGivenToOneAtATime) {
  const sys::TemporaryDirectory place;
  const PortLease::Range two = range(place, 2);
  const auto first = PortLease::take(two).value();
  {
    const auto second = PortLease::take(two).value();
    EXPECT_NE(first.port(), second.port());
    EXPECT_EQ(PortLease::take(two).error().message,
              fmt::format("no port from {} to {} is free", two.first, two.last));
  }
  EXPECT_NE(PortLease::take(two).value().port(), first.port());
}

TEST(PortLease, PassesOverWhatAnotherProgramListensOn) {
  const sys::TemporaryDirectory place;
  const sys::Descriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(other.is_open());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(own_ports()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  EXPECT_EQ(PortLease::take(range(place, 2)).value().port(), own_ports() + 1);
}

TEST(PortLease, PassesOverAPortInThePlaceOfWhoseFileAnyUserHasPutSomethingElse) {
  const sys::TemporaryDirectory place;
  const int first = own_ports();
  const auto file_of = [&](int port) { return place / std::to_string(first + port); };
  ASSERT_EQ(::mkfifo(file_of(0).c_str(), 0666), 0);
  std::filesystem::create_symlink(place / "elsewhere", file_of(1));
  place.make(std::to_string(first + 2));
  EXPECT_TRUE(sys::holds_in_time([&] {
    const auto lease =
        PortLease::take({.first = first, .last = first + 3, .directory = place.path()});
    return lease && lease->port() == first + 3;
  }));
  EXPECT_FALSE(std::filesystem::exists(place / "elsewhere"));
}

TEST(PortLease, FollowsNoLinkInThePlaceOfTheDirectoryButUsesAPrivateOneNextToIt) {
  const sys::TemporaryDirectory place;
  const PortLease::Range two = range(place, 2);
  const std::string own = fmt::format("{}-{}", two.directory, ::geteuid());
  place.make("mine");
  std::filesystem::create_symlink(place / "mine", two.directory);
  std::filesystem::create_symlink(place / "mine", own);
  EXPECT_EQ(PortLease::take(two).error().message,
            fmt::format("'{}' is a symbolic link, not a directory", own));
  std::filesystem::remove(own);
  const auto lease = PortLease::take(two);
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  EXPECT_TRUE(std::filesystem::exists(fmt::format("{}/{}", own, lease->port())));
  EXPECT_EQ(std::filesystem::status(own).permissions(), std::filesystem::perms::owner_all);
  EXPECT_TRUE(std::filesystem::is_empty(place / "mine"));
}

TEST(PortLease, IsOneOfTheRangeWhereTheKernelGivesOutAllOfIt) {
  const sys::TemporaryDirectory place;
  const auto lease =
      PortLease::take({.first = 65'000, .last = 65'010, .directory = place / "ports"});
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  EXPECT_GE(lease->port(), 65'000);
  EXPECT_LE(lease->port(), 65'010);
}

}  // namespace
}  // namespace trainyard::process
