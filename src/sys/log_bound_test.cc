#include "sys/log_bound.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/tail.h"
#include "sys/test_directory.h"

namespace trainyard::sys {
namespace {

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
