#include "sys/tail.h"

#include <filesystem>
#include <fstream>
#include <ios>

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
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

constexpr Bytes kMost = mib(1);
constexpr std::size_t kLine = 64;

class LogBound : public ::testing::Test {
 protected:
  /// Lines that say which they are, of so many bytes in all.
  void append(Bytes bytes) {
    std::ofstream file(path_, std::ios::app);
    for (std::int64_t i = 0; i < bytes.count / static_cast<std::int64_t>(kLine); ++i) {
      std::string line = std::to_string(lines_++);
      line.resize(kLine - 1, '.');
      file << line << '\n';
    }
  }
  [[nodiscard]] Bytes on_disk() const {
    struct stat facts{};
    return stat(path_.c_str(), &facts) == 0 ? Bytes{facts.st_blocks * 512} : Bytes{};
  }
  std::string read_all() {
    std::string text;
    Tail tail(path_);
    tail.stop_at_present();
    while (true) {
      const Result<std::string> piece = tail.read_more();
      EXPECT_TRUE(piece.has_value());
      if (!piece || piece->empty()) return text;
      text += *piece;
    }
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "stdout.log";
  std::int64_t lines_ = 0;
};

TEST_F(LogBound, LeavesALogAloneThatIsNotBeyondIt) {
  append(kib(900));
  const std::string before = read_all();
  EXPECT_EQ(bound_log(path_, kMost), Bytes{});
  EXPECT_EQ(read_all(), before);
  EXPECT_EQ(before.size(), static_cast<std::size_t>(kib(900).count));
}

TEST_F(LogBound, KeepsTheBeginningAndTheEndOfOneThatGrowsForEver) {
  for (int round = 0; round < 6; ++round) {
    append(mib(2));
    ASSERT_TRUE(bound_log(path_, kMost).has_value());
    EXPECT_LE(on_disk(), kMost) << round;
  }
  EXPECT_EQ(std::filesystem::file_size(path_), static_cast<std::uintmax_t>(mib(12).count));
  const std::string text = read_all();
  EXPECT_LE(Bytes{static_cast<std::int64_t>(text.size())}, kMost);
  EXPECT_THAT(text, ::testing::StartsWith("0....."));
  std::string last = std::to_string(lines_ - 1);
  last.resize(kLine - 1, '.');
  EXPECT_THAT(text, ::testing::EndsWith(last + "\n"));
  // The eighth and the half are whole blocks of 64 KiB.
  EXPECT_THAT(text, ::testing::HasSubstr("\n[11.9 MB of this log were not kept]\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(std::string(1, '\0'))));
}

TEST_F(LogBound, WhoWritesGoesOnBehindTheHole) {
  append(mib(4));
  ASSERT_GT(bound_log(path_, kMost).value_or(Bytes{}), Bytes{});
  EXPECT_EQ(bound_log(path_, kMost), Bytes{}) << "it takes no more than it may";
  std::ofstream(path_, std::ios::app) << "the end\n";
  EXPECT_THAT(read_all(), ::testing::EndsWith("\nthe end\n"));
}

TEST_F(LogBound, TouchesNothingButAPlainFile) {
  EXPECT_EQ(bound_log(path_, kMost), Bytes{}) << "it is not there";
  append(mib(4));
  const std::string link = directory_ / "link";
  std::filesystem::create_symlink(path_, link);
  EXPECT_EQ(bound_log(link, kMost), Bytes{});
  EXPECT_EQ(bound_log(directory_.path(), kMost), Bytes{});
  std::filesystem::create_hard_link(path_, directory_ / "second");
  EXPECT_EQ(bound_log(directory_ / "second", kMost), Bytes{}) << "it may be another file as well";
  EXPECT_EQ(read_all().size(), static_cast<std::size_t>(mib(4).count));
}

}  // namespace

}  // namespace trainyard::sys
