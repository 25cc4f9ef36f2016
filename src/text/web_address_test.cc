#include "text/web_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::text {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string host_of(std::string_view text) {
  const auto address = read_web_address(text);
  return address ? address->host : "error: " + address.error().message;
}

TEST(WebAddresses, ShowTheHostAloneAndKeepTheRest) {
  const auto address = read_web_address("https://me:pass@hooks.example.com:8443/T0/B0/secret?k=v");
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->url, "https://me:pass@hooks.example.com:8443/T0/B0/secret?k=v");
  EXPECT_EQ(address->host, "hooks.example.com:8443");
  EXPECT_EQ(address->shown(), "https://hooks.example.com:8443/***");
  EXPECT_EQ(read_web_address("http://[::1]:80/x")->shown(), "http://[::1]:80/***");
  EXPECT_EQ(host_of("https://ntfy.sh/a?tpl=yes&t={{.title}}&m={{.text}}"), "ntfy.sh");
  EXPECT_EQ(host_of("http://127.0.0.1"), "127.0.0.1");
}

TEST(WebAddresses, ThatAreShownCanBeReadAgain) {
  const auto address = read_web_address("https://u:p@h.example/secret");
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(host_of(address->shown()), "h.example");
}

TEST(WebAddresses, AreRefusedWithoutTheirSecret) {
  EXPECT_EQ(host_of("hooks.example.com/secret"),
            "error: is not a valid address; it must start with https://, as in "
            "https://hooks.example.com/...");
  EXPECT_THAT(host_of("ftp://hooks.example.com/secret"), HasSubstr("is not a valid address"));
  for (const std::string_view bad :
       {"https://", "https:///secret", "https://@/secret", "https://a b/secret",
        "https://h/se cret", "https://h/\xc3\xa9/secret", "https://h:port/secret",
        "https://h:/secret", "https://[::1/secret", "https://[]/secret", "https://[::1]x/secret",
        "https://h:123456/secret", "https://h\n/secret"}) {
    EXPECT_THAT(host_of(bad), HasSubstr("error: ")) << bad;
    EXPECT_THAT(host_of(bad), Not(HasSubstr("secret"))) << bad;
  }
}

TEST(WebAddresses, HaveABound) {
  const std::string longest = "https://h/" + std::string(WebAddress::kBytesMax - 10, 'x');
  EXPECT_EQ(host_of(longest), "h");
  EXPECT_EQ(host_of(longest + "x"), "error: the address is longer than 2048 bytes");
}

}  // namespace
}  // namespace trainyard::text
