// From a real journal.
#include "tell/teller_process.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/test_run.h"
#include "model/turn.h"

namespace trainyard::tell {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// A run of 'train', of which one task has finished and one failed, and 'eval'.
class ReportMails : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::unique_ptr<journal::Journal> writer = journal::must(
        journal::Journal::create(directory_.journal(), "digits", job_.batch(), {.host = "gpu1"}));
    for (const model::Turn& turn :
         {journal::granted(journal::at(0), {journal::key(0), journal::key(1)}),
          journal::started(journal::at(1), journal::key(0), 11),
          journal::started(journal::at(1), journal::key(1), 12),
          journal::finished(journal::at(5), journal::key(0), R"({"acc": 0.5})"),
          journal::failed(journal::at(6), journal::key(1), 3)}) {
      journal::must(writer->commit(turn));
    }
    journal::must(writer->close(journal::at(7), "ended"));
  }

  Mail mail_of(const std::vector<model::GroupIndex>& groups,
               std::size_t pages_max = kPagesBytesMax) {
    journal::JournalReader reader =
        journal::must(journal::JournalReader::open(directory_.journal()));
    return journal::must(report_mail(
        reader, {.job = "digits", .number = 46, .directory = "/r/digits", .host = "gpu1"},
        {.groups = groups, .pages_bytes_max = pages_max}));
  }

  journal::TestJob job_{{.name = "train", .ids = {"a", "b"}},
                        {.name = "eval", .ids = {"c"}},
                        {.name = "gr\u00fc\u00df", .ids = {"d"}}};
  journal::JournalDirectory directory_;
};

TEST_F(ReportMails, HaveThePageOfAGroupAndALineOfIt) {
  const Mail mail = mail_of({{0}});
  EXPECT_EQ(mail.subject, "trainyard train report");
  EXPECT_THAT(mail.text, StartsWith("digits on gpu1\nrun 46: /r/digits\n\n"
                                    "train: 1 of 2 tasks finished, 1 failed, in "));
  ASSERT_THAT(mail.pages, SizeIs(1));
  EXPECT_EQ(mail.pages[0].name, "train.html");
  EXPECT_THAT(mail.pages[0].html, StartsWith("<!doctype html>"));
  EXPECT_THAT(mail.pages[0].html, HasSubstr("EXIT 3"));
  EXPECT_THAT(mail.pages[0].html, HasSubstr("</html>"));
}

TEST_F(ReportMails, HaveThePagesOfSeveralGroups) {
  const Mail mail = mail_of({{1}, {0}, {7}});
  EXPECT_EQ(mail.subject, "trainyard digits report: 2 groups");
  ASSERT_THAT(mail.pages, SizeIs(2));
  EXPECT_EQ(mail.pages[0].name, "train.html");
  EXPECT_EQ(mail.pages[1].name, "eval.html");
}

TEST_F(ReportMails, NameTheirPagesInLettersThatEveryServerTakes) {
  EXPECT_EQ(mail_of({{2}}).pages.at(0).name, "gr____.html");
}

TEST_F(ReportMails, LeaveOutAPageForWhichThereIsNoRoomAndSayWhereItLies) {
  const std::size_t first = mail_of({{0}}).pages.at(0).html.size();
  const Mail mail = mail_of({{0}, {1}}, first);
  ASSERT_THAT(mail.pages, SizeIs(1));
  EXPECT_EQ(mail.pages[0].name, "train.html");
  EXPECT_THAT(mail.text, HasSubstr("eval: 0 of 1 task finished\n"
                                   "The report of eval is too long for a mail; when the run has "
                                   "ended it is /r/digits/reports/eval.html\n"));
  EXPECT_THAT(mail_of({{0}}, first - 1).pages, SizeIs(0));
}

}  // namespace
}  // namespace trainyard::tell
