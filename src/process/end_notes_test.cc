#include "process/end_notes.h"

#include <csignal>
#include <filesystem>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/event.h"
#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

EndNote some_note(std::uint32_t number = 7) {
  return {
      .of = {.path = {},
             .execution = 3,
             .started_unix_ms = 1'700'000'000'000,
             .clock_offset = Duration(-60'000)},
      .attempt = {.journal_number = number, .two_phase = true, .ranks = 2, .shares_memory = true},
      .ended = {.key = {.task = {}, .attempt = 2},
                .end = model::KilledBy{.signal = SIGTERM},
                .usage = {.memory_peak = mib(5), .cpu_time = Duration(12)},
                .left = {.result = R"({"x": 1})",
                         .trouble = "no",
                         .errors = "Traceback\n",
                         .errors_are_output = true},
                .ranks = {.failed = 1, .finished = {0}},
                .at = Duration(86'400'900),
                .told_to_end = false}};
}

std::string record_of(const EndNote& note) {
  return end_note_record(end_note_head(note), note.ended.left);
}

void expect_same(const EndNote& one, const EndNote& other) {
  EXPECT_EQ(one.of, other.of);
  EXPECT_EQ(one.attempt, other.attempt);
  EXPECT_EQ(one.ended.key, other.ended.key);
  EXPECT_EQ(one.ended.end, other.ended.end);
  EXPECT_EQ(one.ended.usage.memory_peak, other.ended.usage.memory_peak);
  EXPECT_EQ(one.ended.usage.cpu_time, other.ended.usage.cpu_time);
  EXPECT_EQ(one.ended.left, other.ended.left);
  EXPECT_EQ(one.ended.ranks, other.ended.ranks);
  EXPECT_EQ(one.ended.at, other.ended.at);
  EXPECT_EQ(one.ended.told_to_end, other.ended.told_to_end);
}

TEST(EndNotes, ComeOutAsTheyWentInOneBehindTheOther) {
  EndNote plain = some_note(8);
  plain.ended.left = {};
  const std::vector<EndNote> read = read_end_notes(record_of(some_note()) + record_of(plain));
  ASSERT_EQ(read.size(), 2U);
  expect_same(read[0], some_note());
  expect_same(read[1], plain);
  EXPECT_TRUE(read_end_notes("").empty());
}

TEST(EndNotes, AreReadUpToWhereAKillHasCutThemOff) {
  const std::string one = record_of(some_note());
  const std::string both = one + record_of(some_note(8));
  for (std::size_t cut = 0; cut <= both.size(); ++cut) {
    const std::size_t whole = cut < one.size() ? 0 : cut < both.size() ? 1 : 2;
    EXPECT_EQ(read_end_notes(std::string_view(both).substr(0, cut)).size(), whole) << cut;
  }
}

TEST(EndNotes, AreReadButForOneThatWasChanged) {
  const std::string one = record_of(some_note());
  for (std::size_t at = 0; at < one.size(); ++at) {
    std::string changed = one + one + record_of(some_note(8));
    changed[one.size() + at] = static_cast<char>(changed[one.size() + at] ^ 0x20);
    EXPECT_EQ(read_end_notes(changed).size(), 2U) << at;
  }
  EXPECT_EQ(read_end_notes("what a task has written" + one).size(), 1U);
  // What looks like a record costs time, so that the search has a bound.
  std::string many;
  for (int i = 0; i < 20; ++i) many += one.substr(0, 8);
  EXPECT_EQ(read_end_notes(many + one).size(), 0U);
}

TEST(EndNotes, AreAddedToTheirFile) {
  const sys::TemporaryDirectory place;
  const std::string path = place / "trainyard.ends";
  EXPECT_TRUE(add_end_note(path, "one"));
  EXPECT_TRUE(add_end_note(path, "two"));
  EXPECT_EQ(sys::content_of(path), "onetwo");
  struct stat about{};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777U, 0600U);
}

TEST(EndNotes, AreAddedBehindTheLastWholeOneOnceTheRestIsCut) {
  const sys::TemporaryDirectory place;
  const std::string path = place / "trainyard.ends";
  const std::string one = record_of(some_note());
  ASSERT_TRUE(sys::replace_file(path, one + one.substr(0, one.size() - 1)));
  cut_incomplete_end_note(path);
  EXPECT_TRUE(add_end_note(path, record_of(some_note(8))));
  EXPECT_EQ(sys::content_of(path), one + record_of(some_note(8)));
  cut_incomplete_end_note(path);
  EXPECT_EQ(read_end_notes(sys::content_of(path)).size(), 2U) << "nothing is cut of whole ones";
}

TEST(EndNotes, TakeThePlaceOfWhatATaskHasPutThere) {
  const sys::TemporaryDirectory place;
  ASSERT_TRUE(sys::replace_file(place / "mine", "mine"));
  const std::string path = place / "trainyard.ends";
  const auto is_replaced = [&path] {
    const bool added = add_end_note(path, "one");
    const bool is_ours = std::filesystem::is_regular_file(std::filesystem::symlink_status(path));
    const std::string content = sys::content_of(path);
    std::filesystem::remove(path);
    return added && is_ours && content == "one";
  };
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(is_replaced());
  std::filesystem::create_symlink(place / "mine", path);
  EXPECT_TRUE(is_replaced());
  std::filesystem::create_hard_link(place / "mine", path);
  EXPECT_TRUE(is_replaced());
  EXPECT_EQ(sys::content_of(place / "mine"), "mine");
  place.make("trainyard.ends");
  ASSERT_TRUE(sys::replace_file(path + "/kept", "kept"));
  // The name that the directory got when it was always the same.
  place.make("trainyard.ends.other");
  ASSERT_TRUE(sys::replace_file(path + ".other/taken", "taken"));
  EXPECT_TRUE(is_replaced());
  int kept = 0;
  for (const std::string& name : sys::names_in(place.path())) {
    kept += sys::exists(place / (name + "/kept")) ? 1 : 0;
  }
  EXPECT_EQ(kept, 1);
  ASSERT_TRUE(sys::replace_file(path, ""));
  std::filesystem::resize_file(path, kEndNotesMax + 1);
  EXPECT_TRUE(is_replaced()) << "it is too large to be ours";
  EXPECT_FALSE(add_end_note(place / "no/such/place", "one"));
}

TEST(EndNotes, AreAddedThoughATaskHasTakenAwayTheAccess) {
  const sys::TemporaryDirectory place;
  const std::string path = place / "trainyard.ends";
  // Root has access to everything.
  const uid_t owner = ::geteuid() == 0 ? 23'001 : ::geteuid();
  ASSERT_EQ(::chown(place.path().c_str(), owner, static_cast<gid_t>(-1)), 0);
  const auto add_without_access = [&](const std::string& to, std::string_view record) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_owner = ::setuid(owner) == 0 && ::chmod(to.c_str(), 0) == 0;
      ::_exit(is_owner && add_end_note(path, record) ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0;
  };
  EXPECT_TRUE(add_without_access(place.path(), "one"));
  EXPECT_TRUE(add_without_access(place.path(), "two"));
  EXPECT_EQ(sys::content_of(path), "onetwo");
  EXPECT_TRUE(add_without_access(path, "three"));
  EXPECT_EQ(sys::content_of(path), "three");
}

TEST(EndNotes, HaveABoundBeyondWhichNothingIsNoted) {
  const sys::TemporaryDirectory place;
  const std::string path = place / "trainyard.ends";
  EXPECT_TRUE(add_end_note(path, "one"));
  // As large as it may be, and no larger on the disk for that.
  std::filesystem::resize_file(path, kEndNotesMax - 3);
  EXPECT_FALSE(add_end_note(path, "four"));
  EXPECT_EQ(std::filesystem::file_size(path), kEndNotesMax - 3);
  EXPECT_TRUE(add_end_note(path, "two"));
  EXPECT_EQ(std::filesystem::file_size(path), kEndNotesMax);
}

}  // namespace
}  // namespace trainyard::process
