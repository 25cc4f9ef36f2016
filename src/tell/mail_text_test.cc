#include "tell/mail_text.h"

#include <algorithm>
#include <cstddef>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::tell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const MailServer kServer{.host = "smtp.example.com",
                         .user = "me@example.com",
                         .receivers = {"you@example.com", "all@example.com"}};

std::string subject_line(const std::string& subject) {
  return mail_head(kServer, subject, {.unix_ms = 0, .id = "1"}).at(3);
}

TEST(MailHead, SaysWhoFromWhenAndWhat) {
  EXPECT_THAT(
      mail_head(kServer, "trainyard train report", {.unix_ms = 1'795'659'000'123, .id = "1.2.3"}),
      ElementsAre("Date: Thu, 26 Nov 2026 02:10:00 +0000", "From: trainyard <me@example.com>",
                  "To: you@example.com,\r\n all@example.com", "Subject: trainyard train report",
                  "Message-ID: <1.2.3@trainyard>", "Auto-Submitted: auto-generated"));
}

TEST(MailHead, HasASenderAtTheServerWhereTheUserIsNoAddress) {
  MailServer server = kServer;
  server.user = "me";
  EXPECT_EQ(server.sender(), "me@smtp.example.com");
}

TEST(MailHead, WritesWhatIsNotPlainInWordsThatFitIntoALine) {
  EXPECT_EQ(subject_line("M\xc3\xb6"
                         "bius"),
            "Subject: =?UTF-8?B?TcO2Yml1cw==?=");
  EXPECT_EQ(subject_line("a=?b"), "Subject: =?UTF-8?B?YT0/Yg==?=");
  std::string longest;
  for (int i = 0; i < 60; ++i) longest += "\xc3\xb6";
  const std::string line = subject_line(longest);
  // No word ends within a character, and none is longer than RFC 2047 allows.
  EXPECT_THAT(line, HasSubstr("?=\r\n =?UTF-8?B?"));
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find("\r\n", at), line.size());
    EXPECT_LE(end - at, 85U);
    at = end + 2;
  }
}

TEST(MailHead, LetsNoNameBeginALineOfItsOwn) {
  EXPECT_EQ(subject_line("a\r\nBcc: all@example.com\x7f"), "Subject: a  Bcc: all@example.com ");
  MailServer server = kServer;
  server.user = "a\nb@c";
  server.receivers = {"d\r\ne@f"};
  const auto head = mail_head(server, "s", {.unix_ms = 0, .id = "1"});
  EXPECT_EQ(head.at(1), "From: trainyard <a b@c>");
  EXPECT_EQ(head.at(2), "To: d  e@f");
}

TEST(MailDate, IsThatOfTheCalendar) {
  EXPECT_EQ(mail_date(0), "Thu, 1 Jan 1970 00:00:00 +0000");
  EXPECT_EQ(mail_date(951'782'399'999), "Mon, 28 Feb 2000 23:59:59 +0000");
  EXPECT_EQ(mail_date(951'782'400'000), "Tue, 29 Feb 2000 00:00:00 +0000");
}

}  // namespace
}  // namespace trainyard::tell
