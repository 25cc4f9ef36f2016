#include "sys/pump.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <thread>

#include <sys/socket.h>
#include <sys/types.h>

#include <gtest/gtest.h>

#include "sys/descriptor.h"
#include "sys/passing.h"

namespace trainyard::sys {
namespace {

std::string receive(const Descriptor& socket, std::size_t size) {
  std::string got(size, '\0');
  const ssize_t count = ::recv(socket.get(), got.data(), got.size(), MSG_WAITALL);
  got.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return got;
}

TEST(Pump, CarriesBothWaysUntilOneSideHasNothingMore) {
  auto left = socket_pair().value();
  auto right = socket_pair().value();
  std::jthread pumping([&left, &right] {
    pump({.from = left.second.get(), .to = right.second.get()},
         {.from = right.second.get(), .to = left.second.get()});
  });
  const std::string_view there = "over there";
  const std::string_view back = "and back";
  ASSERT_EQ(::send(left.first.get(), there.data(), there.size(), 0), std::ssize(there));
  EXPECT_EQ(receive(right.first, there.size()), there);
  ASSERT_EQ(::send(right.first.get(), back.data(), back.size(), 0), std::ssize(back));
  EXPECT_EQ(receive(left.first, back.size()), back);
  left.first.close();
  pumping.join();
}

}  // namespace
}  // namespace trainyard::sys
