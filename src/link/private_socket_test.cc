#include "link/private_socket.h"

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::link {
namespace {

using testing::HasSubstr;

TEST(PrivateSocket, LeadsToWhoeverListensThere) {
  const sys::TemporaryDirectory directory;
  const std::string path = directory / "agent";
  EXPECT_THAT(connect_privately(path).error().message, HasSubstr("no such file"));
  const sys::Descriptor listener = listen_privately(path).value();
  const sys::Descriptor here = connect_privately(path).value();
  const sys::Descriptor there = accept_from(listener);
  ASSERT_TRUE(there.is_open());
  ASSERT_EQ(::send(here.get(), "a", 1, 0), 1);
  char got = 0;
  ASSERT_EQ(::recv(there.get(), &got, 1, 0), 1);
  EXPECT_EQ(got, 'a');
}

TEST(PrivateSocket, IsTakenFromADeadServerAndNotFromALivingOne) {
  const sys::TemporaryDirectory directory;
  const std::string path = directory / "agent";
  {
    const sys::Descriptor dead = listen_privately(path).value();
    EXPECT_THAT(listen_privately(path).error().message, HasSubstr("somebody listens at"));
  }
  const sys::Descriptor listener = listen_privately(path).value();
  EXPECT_TRUE(connect_privately(path).has_value());
}

TEST(PrivateSocket, SaysWhereAPathIsTooLong) {
  const std::string path = "/tmp/" + std::string(200, 'x');
  EXPECT_FALSE(listen_privately(path).has_value());
  EXPECT_FALSE(connect_privately(path).has_value());
}

}  // namespace
}  // namespace trainyard::link
