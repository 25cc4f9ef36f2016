#include "job/telling_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"

namespace trainyard::job {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kOneTask = "groups: [{tasks: [{command: x}]}]\n";

std::vector<std::string> urls_of(const Job& job) {
  std::vector<std::string> urls;
  for (const text::WebAddress& address : job.notify()) urls.push_back(address.url);
  return urls;
}

TEST(TellingKeys, AreOneAddressOrSeveralAndACommand) {
  const Job one =
      job_of(std::string("notify: https://a.example/x\non-finish: |\n  echo {x}\n") + kOneTask);
  EXPECT_THAT(urls_of(one), ElementsAre("https://a.example/x"));
  EXPECT_EQ(one.on_finish(), "echo {x}\n");
  const Job two =
      job_of(std::string("notify: ['https://a.example/x', \"http://b.example/y\"]\n") + kOneTask);
  EXPECT_THAT(urls_of(two), ElementsAre("https://a.example/x", "http://b.example/y"));
  EXPECT_EQ(two.on_finish(), "");
  EXPECT_THAT(urls_of(job_of(kOneTask)), IsEmpty());
}

TEST(TellingKeys, AreMistakesWithTheirPlaceAndWithoutTheirSecret) {
  const auto wrong = [](const std::string& line) { return mistakes_of(line + "\n" + kOneTask); };
  EXPECT_THAT(wrong("notify: hooks.example/secret"),
              ElementsAre("sweep.yaml:1:9: notify: is not a valid address; it must start with "
                          "https://, as in https://hooks.example.com/..."));
  EXPECT_THAT(wrong("notify: {url: https://a.example/secret}"),
              ElementsAre(HasSubstr("sweep.yaml:1:9: 'notify' must be an address")));
  EXPECT_THAT(wrong("notify: [[https://a.example/secret]]"),
              ElementsAre(HasSubstr("sweep.yaml:1:10: 'notify' must be an address")));
  EXPECT_THAT(wrong("notify:"), ElementsAre(HasSubstr("'notify' must be an address")));
  EXPECT_THAT(
      wrong("notify: $1X"),
      ElementsAre("sweep.yaml:1:9: notify: a variable must be written as in $SLACK_WEBHOOK"));
  EXPECT_THAT(
      wrong("notify: \"https://a.example/\\x73ecret\""),
      ElementsAre("sweep.yaml:1:9: notify: the address must be plain text, without escapes"));
  EXPECT_THAT(
      wrong("on-finish: [echo, x]"),
      ElementsAre("sweep.yaml:1:12: 'on-finish' must be text for the shell, as in ./summarize.sh"));
  EXPECT_THAT(wrong("on-finish: ' '"), ElementsAre("sweep.yaml:1:12: 'on-finish' is empty"));
  EXPECT_THAT(wrong("on-finsh: x"),
              ElementsAre("sweep.yaml:1:1: unknown key 'on-finsh' (did you mean 'on-finish'?)"));
}

TEST(TellingKeys, AreFoundInAJobThatCannotRun) {
  const LoadOptions options{.job_file = "sweep.yaml",
                            .settings = {"nonsense=1"},
                            .current_directory = "/nowhere",
                            .environment = {"HOOK=https://a.example/x"}};
  const JobNotify found = Job::notify_of(
      "name: digits\nnotify: [$HOOK, $NONE]\ngroups: [{tasks: [{comand: x}]}]\n", options);
  EXPECT_EQ(found.job_name, "digits");
  ASSERT_EQ(found.addresses.size(), 1U);
  EXPECT_EQ(found.addresses[0].url, "https://a.example/x");
  EXPECT_THAT(found.notes, ElementsAre("notify: $NONE is not set, so nothing is sent to it"));
  EXPECT_THAT(Job::notify_of("groups: [", options).addresses, IsEmpty());
}

TEST(TellingKeys, HaveABound) {
  std::string list = "notify: [";
  for (std::size_t i = 0; i < kAddressesMax; ++i) list += "https://a.example/x, ";
  EXPECT_THAT(mistakes_of(list + "]\n" + kOneTask), IsEmpty());
  EXPECT_THAT(mistakes_of(list + "https://a.example/x]\n" + kOneTask),
              ElementsAre(HasSubstr("notify: more than 8 addresses")));
}

TEST(TellingKeys, TakeAnAddressFromTheVariableThatHoldsIt) {
  const TellingSpec spec{.notify = {"$HOOK", "$BAD", "$NONE"}};
  const Addresses found = addresses_of(
      spec, {"HOOKS=https://no.example/", "HOOK=https://a.example/secret", "BAD=secret"});
  ASSERT_EQ(found.addresses.size(), 1U);
  EXPECT_EQ(found.addresses[0].url, "https://a.example/secret");
  EXPECT_THAT(found.notes, ElementsAre("notify: $BAD: is not a valid address; it must start with "
                                       "https://, as in https://hooks.example.com/...",
                                       "notify: $NONE is not set, so nothing is sent to it"));
}

TEST(TellingKeys, SayWhichVariableOfAJobIsNotSet) {
  const std::string why = "notify: $NONE is not set, so nothing is sent to it";
  const Job job = job_of(std::string("notify: $NONE\n") + kOneTask);
  EXPECT_THAT(job.notify_notes(), ElementsAre(why));
  EXPECT_THAT(job.notes(), Contains(why)) << "for a run";
  EXPECT_THAT(job_of(kOneTask).notify_notes(), IsEmpty());
}

TEST(TellingKeys, LeaveNoSecretInTheTextThatIsKept) {
  const std::string text =
      std::string("x: &hook https://a.example/secret\n# https://a.example/secret\n") +
      "notify: [https://a.example/secret, https://a.example/secret2]\n";
  const std::vector<text::WebAddress> addresses{
      {.url = "https://a.example/secret", .host = "a.example"},
      {.url = "https://a.example/secret2", .host = "a.example"}};
  EXPECT_EQ(without_secrets(text, addresses),
            "x: &hook https://a.example/***\n# https://a.example/***\n"
            "notify: [https://a.example/***, https://a.example/***]\n");
  const Job job = job_of(std::string("notify: https://a.example/secret\n") + kOneTask);
  EXPECT_THAT(job.without_secrets(job.text()), Not(HasSubstr("secret")));
  // The stored copy can be read again.
  EXPECT_THAT(mistakes_of(job.without_secrets(job.text())), IsEmpty());
}

}  // namespace
}  // namespace trainyard::job
