#include "sys/waker.h"

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::sys {
namespace {

TEST(Waker, ThatNoDescriptorIsLeftIsAnError) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<Waker> waker = Waker::make();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(waker.has_value());
  EXPECT_THAT(waker.error().message, ::testing::HasSubstr("cannot wake another thread: "));
}

}  // namespace
}  // namespace trainyard::sys
