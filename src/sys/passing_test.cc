#include "sys/passing.h"

#include <array>
#include <cstring>
#include <string>

#include <sys/socket.h>
#include <sys/uio.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::sys {
namespace {

using ::testing::SizeIs;

/// Whether close(2) of the last descriptor of the socket waits until its data is sent.
bool lingers(const Descriptor& socket) {
  linger how{};
  socklen_t size = sizeof how;
  EXPECT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &how, &size), 0);
  return how.l_onoff != 0;
}

TEST(Passing, ASocketThatWasPassedHoldsUpNobodyWhoClosesIt) {
  const auto ends = socket_pair().value();
  const Descriptor passed(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger minute{.l_onoff = 1, .l_linger = 60};
  ASSERT_EQ(::setsockopt(passed.get(), SOL_SOCKET, SO_LINGER, &minute, sizeof minute), 0);
  const std::array<int, 1> descriptors{passed.get()};
  ASSERT_EQ(send_with(ends.first.get(), "x", descriptors, 0), 1);
  ASSERT_TRUE(lingers(passed));
  std::array<char, 8> bytes{};
  std::vector<Descriptor> received;
  EXPECT_EQ(receive_with(ends.second.get(), bytes, received, 0), 1);
  ASSERT_THAT(received, SizeIs(1));
  EXPECT_FALSE(lingers(received[0]));
}

/// The kernel would close a socket without room here, and this one may linger.
TEST(Passing, AllComeThatASenderCanPassAtOnce) {
  const auto ends = socket_pair().value();
  std::array<int, kPassedMax> descriptors{};
  descriptors.fill(ends.first.get());
  std::string space(CMSG_SPACE(sizeof descriptors), '\0');
  std::string byte = "x";
  iovec data{.iov_base = byte.data(), .iov_len = 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  ASSERT_EQ(::sendmsg(ends.first.get(), &message, 0), 1);
  std::array<char, 8> bytes{};
  std::vector<Descriptor> received;
  EXPECT_EQ(receive_with(ends.second.get(), bytes, received, 0), 1);
  EXPECT_THAT(received, SizeIs(kPassedMax));
}

/// Linux reports that something was left unread before the packets that are still there.
TEST(Passing, WhatAnEndSaidBeforeItClosedIsHeardAlsoWhenItLeftSomethingUnread) {
  auto [here, there] = packet_pair().value();
  ASSERT_EQ(send_with(here.get(), "unread", {}, 0), 6);
  ASSERT_EQ(send_with(there.get(), "why", {}, 0), 3);
  there.close();
  std::array<char, 8> bytes{};
  EXPECT_EQ(receive(here.get(), bytes, MSG_DONTWAIT), 3);
  EXPECT_EQ(std::string(bytes.data(), 3), "why");
  EXPECT_EQ(receive(here.get(), bytes, MSG_DONTWAIT), 0);
}

TEST(Passing, IsOverForBothWhenOneOfThemShutsItDownByAnotherDescriptor) {
  const auto ends = socket_pair().value();
  const Descriptor other = Descriptor::duplicate(ends.first.get());
  ASSERT_TRUE(other.is_open());
  EXPECT_NE(other.get(), ends.first.get());
  shut_down(other);
  std::array<char, 8> bytes{};
  std::vector<Descriptor> received;
  EXPECT_EQ(receive_with(ends.first.get(), bytes, received, 0), 0);
  EXPECT_EQ(receive_with(ends.second.get(), bytes, received, 0), 0);
  EXPECT_FALSE(Descriptor::duplicate(-1).is_open());
}

}  // namespace
}  // namespace trainyard::sys
