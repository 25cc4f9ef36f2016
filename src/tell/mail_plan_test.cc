#include "tell/mail_plan.h"

#include <cstdint>
#include <initializer_list>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::tell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Instant minute(int minutes) { return {Duration{60'000} * minutes}; }

std::vector<std::uint32_t> numbers(const std::vector<model::GroupIndex>& groups) {
  std::vector<std::uint32_t> values;
  for (const model::GroupIndex group : groups) values.push_back(group.value);
  return values;
}

TEST(MailPlan, SendsTheFirstReportAtOnceAndGathersThoseThatComeWithinTheInterval) {
  MailPlan plan({.min_interval = Duration{3'600'000}, .mails_max = 10});
  EXPECT_EQ(plan.due(), std::nullopt);
  plan.add({0});
  EXPECT_THAT(numbers(plan.take(minute(5))), ElementsAre(0));
  plan.add({1});
  plan.add({2});
  plan.add({1});
  EXPECT_EQ(plan.due(), minute(65));
  EXPECT_THAT(plan.take(minute(64)), IsEmpty());
  EXPECT_THAT(numbers(plan.take(minute(65))), ElementsAre(1, 2));
  EXPECT_THAT(plan.take(minute(200)), IsEmpty());
}

TEST(MailPlan, KeepsTheLastMailThatThereMayBeForTheEnd) {
  MailPlan plan({.min_interval = Duration{0}, .mails_max = 3});
  for (std::uint32_t group = 0; group < 5; ++group) {
    plan.add({group});
    const auto taken = plan.take(minute(static_cast<int>(group)));
    if (group < 2) {
      EXPECT_THAT(numbers(taken), ElementsAre(group));
    } else {
      EXPECT_THAT(taken, IsEmpty());
    }
  }
  EXPECT_EQ(plan.due(), std::nullopt);
  EXPECT_THAT(numbers(plan.take_rest()), ElementsAre(2, 3, 4));
  EXPECT_THAT(plan.take_rest(), IsEmpty());
}

TEST(MailPlan, HasNoLimitWhereThereIsNone) {
  MailPlan plan({.min_interval = Duration{0}, .mails_max = 0});
  for (std::uint32_t group = 0; group < 100; ++group) {
    plan.add({group});
    EXPECT_THAT(numbers(plan.take(minute(0))), ElementsAre(group));
  }
}

}  // namespace
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
