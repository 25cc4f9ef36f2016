// A growing file, as a process sees it that reads along.
#include "sys/tail.h"

#include <fstream>
#include <ios>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::sys {
namespace {

void append(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

TEST(LastLines, AreAtMostSoManyAndWhole) {
  EXPECT_EQ(last_lines("one\ntwo\nthree\n", 2), "two\nthree\n");
  EXPECT_EQ(last_lines("one\ntwo", 1), "two");
  EXPECT_EQ(last_lines("one\ntwo\n", 5), "one\ntwo\n");
  EXPECT_EQ(last_lines("", 3), "");
}

TEST(Tail, GivesWhatIsNewPieceByPiece) {
  const TemporaryDirectory place;
  Tail tail(place / "log");
  EXPECT_EQ(tail.read_more().value(), "");
  append(place / "log", "one\n");
  EXPECT_EQ(tail.read_more().value(), "one\n");
  EXPECT_EQ(tail.read_more().value(), "");
  append(place / "log", std::string(100'000, 'x'));
  EXPECT_EQ(tail.read_more().value().size(), std::size_t{64} << 10);
  EXPECT_EQ(tail.read_more().value().size(), 100'000 - (std::size_t{64} << 10));
}

TEST(Tail, ReadsAFileThatBecameShorterFromItsBeginning) {
  const TemporaryDirectory place;
  append(place / "log", "a long line\n");
  Tail tail(place / "log");
  EXPECT_EQ(tail.read_more().value(), "a long line\n");
  std::ofstream(place / "log") << "short\n";
  tail.stop_at_present();
  EXPECT_EQ(tail.read_more().value(), "short\n");
}

TEST(Tail, ComesToAnEndInAFileThatGrowsAsFastAsItIsRead) {
  const TemporaryDirectory place;
  append(place / "log", "one\n");
  Tail tail(place / "log");
  tail.stop_at_present();
  append(place / "log", "two\n");
  EXPECT_EQ(tail.read_more().value(), "one\n");
  EXPECT_EQ(tail.read_more().value(), "");
  tail.stop_at_present();
  EXPECT_EQ(tail.read_more().value(), "two\n");
}

TEST(Tail, SaysHowMuchItHasNotReadAndPassesOverSomeOfIt) {
  const TemporaryDirectory place;
  Tail tail(place / "log");
  EXPECT_EQ(tail.unread().bytes, 0) << "it is not there yet";
  append(place / "log", "one\ntwo\n");
  EXPECT_EQ(tail.unread().bytes, 8);
  EXPECT_FALSE(tail.unread().anew);
  tail.skip(4);
  EXPECT_EQ(tail.read_more().value(), "two\n");
  EXPECT_EQ(tail.unread().bytes, 0);
  std::ofstream(place / "log") << "short";
  const Tail::Unread after = tail.unread();
  EXPECT_TRUE(after.anew);
  EXPECT_EQ(after.bytes, 5);
  EXPECT_EQ(tail.read_more().value(), "short");
  EXPECT_FALSE(tail.unread().anew) << "told once";
}

TEST(Tail, ReadsNothingButAPlainFile) {
  const TemporaryDirectory place;
  ASSERT_EQ(::mkfifo((place / "log").c_str(), 0600), 0);
  EXPECT_EQ(Tail(place / "log").read_more().error().message,
            "'" + place.path() + "/log' is a pipe, not a regular file");
  EXPECT_EQ(Tail(place.path()).read_more().error().message,
            "'" + place.path() + "' is a directory, not a regular file");
  append(place / "secret", "not of this task\n");
  ASSERT_EQ(::symlink((place / "secret").c_str(), (place / "link").c_str()), 0);
  Tail link(place / "link");
  link.stop_at_present();
  EXPECT_EQ(link.read_more().error().message,
            "'" + place.path() + "/link' is a symbolic link, not a regular file");
}

}  // namespace
}  // namespace trainyard::sys
