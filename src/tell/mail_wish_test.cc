#include "tell/mail_wish.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"

namespace trainyard::tell {
namespace {

using ::testing::ElementsAre;

MailWish wish_of(std::vector<std::string> settings) {
  const auto configuration = settings::load_configuration(
      {.config_file = {}, .settings = std::move(settings), .current_directory = "/nowhere"});
  return mail_wish(configuration.value());
}

std::vector<std::string> with(std::initializer_list<std::string> more) {
  std::vector<std::string> all{"smtp.enable=true", "smtp.server-host=h", "smtp.user=u@x",
                               "smtp.receiver= a@x ,, b@x"};
  all.insert(all.end(), more);
  return all;
}

TEST(MailWish, IsNoneUnlessItIsAskedFor) {
  EXPECT_FALSE(wish_of({"smtp.server-host=h", "smtp.user=u", "smtp.receiver=r"}).server);
  EXPECT_EQ(wish_of({}).why_not, "");
}

TEST(MailWish, NamesWhatIsMissing) {
  const MailWish wish = wish_of({"smtp.enable=true", "smtp.user=u", "smtp.receiver= ,"});
  EXPECT_FALSE(wish.server);
  EXPECT_EQ(wish.why_not, "mail: reports are not mailed; not set: smtp.server-host, smtp.receiver");
}

TEST(MailWish, SaysWhichReceiverIsNoAddressBeforeAnythingRuns) {
  for (const std::string wrong : {"not an address", "a@", "@x", "<a@x>", "nobody"}) {
    const MailWish wish = wish_of(with({"smtp.receiver=a@x, " + wrong}));
    EXPECT_FALSE(wish.server) << wrong;
    EXPECT_EQ(wish.why_not,
              "mail: reports are not mailed: smtp.receiver: '" + wrong + "' is not an address");
  }
}

TEST(MailWish, HasServerUserAndReceiversAndItsLimits) {
  const MailWish wish =
      wish_of(with({"smtp.server-port=587", "smtp.password=p", "smtp.ca-file=/ca.pem",
                    "smtp.min-interval=5m", "smtp.max-numbers=3"}));
  ASSERT_TRUE(wish.server);
  EXPECT_EQ(wish.server->shown(), "h:587");
  EXPECT_EQ(wish.server->user, "u@x");
  EXPECT_EQ(wish.server->password, "p");
  EXPECT_EQ(wish.server->ca_file, "/ca.pem");
  EXPECT_THAT(wish.server->receivers, ElementsAre("a@x", "b@x"));
  EXPECT_EQ(wish.limits.min_interval, Duration(300'000));
  EXPECT_EQ(wish.limits.mails_max, 3);
  EXPECT_EQ(wish_of(with({})).server->ca_file, "");
}

TEST(MailWish, SendsNoPasswordInClearUnlessSomebodySaysSo) {
  const auto security = [](std::initializer_list<std::string> more) {
    return wish_of(with(more)).server->security;
  };
  EXPECT_EQ(security({}), MailSecurity::IfOffered);
  EXPECT_EQ(security({"smtp.password=p"}), MailSecurity::StartTls);
  EXPECT_EQ(security({"smtp.server-port=465"}), MailSecurity::Tls);
  EXPECT_EQ(security({"smtp.server-port=465", "smtp.password=p"}), MailSecurity::Tls);
  EXPECT_EQ(security({"smtp.server-port=465", "smtp.security=starttls"}), MailSecurity::StartTls);
  EXPECT_EQ(security({"smtp.security=tls"}), MailSecurity::Tls);
  EXPECT_EQ(security({"smtp.security=none", "smtp.password=p"}), MailSecurity::None);
}

}  // namespace
}  // namespace trainyard::tell
