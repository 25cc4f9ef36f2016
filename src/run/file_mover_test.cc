// Files that real rsync programs move, on one machine: what stands in the place of ssh runs here
// what it is to run there.
#include "run/file_mover.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"
#include "sys/test_wait.h"

namespace trainyard::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Mover : public testing::Test {
 public:
  Mover() {
    std::filesystem::create_directories(here());
    std::filesystem::create_directories(there());
    write(directory_ / "ssh",
          fmt::format("#!/bin/sh\nshift\necho run >> {0}/runs\n"
                      "if [ -e {0}/cut ]; then rm {0}/cut; echo cut >&2; exit 255; fi\n"
                      "exec \"$@\"\n",
                      directory_.path()));
    std::filesystem::permissions(directory_ / "ssh", std::filesystem::perms::owner_all);
  }

 protected:
  [[nodiscard]] std::string here() const { return directory_ / "here/run"; }
  [[nodiscard]] std::string there() const { return directory_ / "there/own run"; }
  static void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  static std::string read(const std::string& path) { return sys::content_of(path); }
  static std::filesystem::file_time_type in_an_hour() {
    return std::filesystem::file_time_type::clock::now() + std::chrono::hours(1);
  }
  [[nodiscard]] int count_runs() const {
    return static_cast<int>(std::ranges::count(read(directory_ / "runs"), '\n'));
  }
  FileMover::Options options() {
    return {.rsync = {"rsync", "--recursive", "--links", "--perms", "--times", "--protect-args",
                      "--rsh=" + (directory_ / "ssh")},
            .host = "lab1",
            .place = {.here = here(), .there = there()},
            .on_trouble = [this](const std::string& why) { troubles_.push_back(why); },
            .again_after = Duration(1)};
  }
  /// Some files of this directory cannot be read.
  FileMover::Options with_trouble_about(const std::string& directory) {
    write(directory_ / "rsync",
          fmt::format("#!/bin/sh\ncase \"$*\" in */./{0}*)\n"
                      "  echo >> {1}/troubles; echo no permission >&2; exit 23;; esac\n"
                      "exec rsync \"$@\"\n",
                      directory, directory_.path()));
    std::filesystem::permissions(directory_ / "rsync", std::filesystem::perms::owner_all);
    FileMover::Options troubled = options();
    troubled.rsync.front() = directory_ / "rsync";
    return troubled;
  }
  FileMover::Done note(const std::string& what) {
    return [this, what](const Result<void>& done) {
      done_.push_back(what + (done ? "" : ": " + done.error().message));
    };
  }
  void run_until(const std::function<bool()>& holds) {
    const Duration end = sys::EventLoop::now() + sys::kLongEnough;
    while (!holds() && sys::EventLoop::now() < end) loop_.run_once(Duration(20));
    ASSERT_TRUE(holds());
  }
  void wait_for(std::size_t count) {
    run_until([&] { return done_.size() >= count; });
  }

  sys::TemporaryDirectory directory_;
  sys::EventLoop loop_;
  std::vector<std::string> done_;
  std::vector<std::string> troubles_;
};

TEST_F(Mover, BringsDirectoriesThereAndBack) {
  FileMover mover(loop_, options());
  write(here() + "/train/lr=1/checkpoints/a b", "1");
  write(here() + "/other/x", "not asked for");
  mover.push(FileMover::Push::Over, {"train/lr=1"}, note("there"));
  wait_for(1);
  EXPECT_EQ(read(there() + "/train/lr=1/checkpoints/a b"), "1");
  EXPECT_FALSE(std::filesystem::exists(there() + "/other"));
  write(there() + "/train/lr=1/checkpoints/a b", "22");
  write(there() + "/train/lr=2/stdout.log", "said");
  mover.pull("train/lr=1", note("one"));
  mover.pull("train/lr=2", note("two"));
  mover.pull("train/never", note("never"));
  wait_for(4);
  EXPECT_EQ(read(here() + "/train/lr=1/checkpoints/a b"), "22");
  EXPECT_EQ(read(here() + "/train/lr=2/stdout.log"), "said");
  EXPECT_THAT(done_, ElementsAre("there", "one", "two", "never"));
}

TEST_F(Mover, MakesWhatIsThereAsItIsHereWhateverTheClocksSay) {
  FileMover mover(loop_, options());
  write(here() + "/a/state", "second");
  write(there() + "/a/state", "first");
  write(there() + "/a/old", "deleted here");
  std::filesystem::last_write_time(there() + "/a/state", in_an_hour());
  mover.push(FileMover::Push::Mirror, {"a"}, note("there"));
  wait_for(1);
  EXPECT_EQ(read(there() + "/a/state"), "second");
  EXPECT_FALSE(std::filesystem::exists(there() + "/a/old"));
}

TEST_F(Mover, LeavesWhatIsNewerThereAndWhatEachMachineHasOfAnAttemptWhereItIsToldSo) {
  FileMover mover(loop_, options());
  const std::vector<std::string> kept{"state", "stdout.log", "stderr.2.log", "result.1.json"};
  for (const std::string& name : kept) {
    write(there() + "/a[1]/" + name, "there");
    write(here() + "/a[1]/" + name, "of here");
  }
  std::filesystem::last_write_time(there() + "/a[1]/state", in_an_hour());
  write(here() + "/a[1]/sub/stdout.log", "the task's own");
  mover.push(FileMover::Push::KeepNewer, {"a[1]"}, note("there"));
  wait_for(1);
  for (const std::string& name : kept) EXPECT_EQ(read(there() + "/a[1]/" + name), "there") << name;
  EXPECT_EQ(read(there() + "/a[1]/sub/stdout.log"), "the task's own");
}

TEST_F(Mover, MakesWhatIsHereAsItIsThereButForLogsOfAttemptsThatRanElsewhere) {
  FileMover mover(loop_, options());
  write(here() + "/a*/stdout.log", "the first attempt's");
  write(here() + "/a*/result.1.json", "the first attempt's");
  write(here() + "/a*/step-1", "deleted there");
  write(here() + "/a*/sub/stdout.log", "deleted there");
  write(there() + "/a*/stdout.2.log", "said");
  write(there() + "/a*/step-2", "x");
  mover.pull("a*", note("back"));
  wait_for(1);
  EXPECT_EQ(read(here() + "/a*/stdout.log"), "the first attempt's");
  EXPECT_EQ(read(here() + "/a*/result.1.json"), "the first attempt's");
  EXPECT_EQ(read(here() + "/a*/stdout.2.log"), "said");
  EXPECT_EQ(read(here() + "/a*/step-2"), "x");
  EXPECT_FALSE(std::filesystem::exists(here() + "/a*/step-1"));
  EXPECT_FALSE(std::filesystem::exists(here() + "/a*/sub/stdout.log"));
}

TEST_F(Mover, MovesTogetherWhatWaits) {
  FileMover mover(loop_, options());
  for (int i = 0; i < 9; ++i) write(fmt::format("{}/{}/x", there(), i), "x");
  for (int i = 0; i < 9; ++i) mover.pull(fmt::to_string(i), note(fmt::to_string(i)));
  wait_for(9);
  EXPECT_THAT(done_, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8"));
  EXPECT_EQ(count_runs(), 2) << "the first one, and all that waited for it";
  for (int i = 0; i < 9; ++i) EXPECT_EQ(read(fmt::format("{}/{}/x", here(), i)), "x");
}

TEST_F(Mover, MovesTogetherNoMoreThanABoundedNumber) {
  FileMover mover(loop_, options());
  constexpr std::size_t kMany = FileMover::kTogetherMax + 2;
  for (std::size_t i = 0; i < kMany; ++i) mover.pull(fmt::to_string(i), note("x"));
  wait_for(kMany);
  EXPECT_EQ(count_runs(), 3);
}

TEST_F(Mover, TellsThoseAloneThatAreToBlame) {
  FileMover mover(loop_, with_trouble_about("b"));
  for (const char* const name : {"a", "b", "c"}) write(there() + "/" + name + "/x", "x");
  mover.pull("first", note("first"));
  for (const char* const name : {"a", "b", "c"}) mover.pull(name, note(name));
  wait_for(4);
  EXPECT_THAT(done_, ElementsAre("first", "a", HasSubstr("b: "), "c"));
  EXPECT_EQ(read(here() + "/c/x"), "x");
}

TEST_F(Mover, BringsTheRestWithoutWhatIsHereOrHasCome) {
  FileMover mover(loop_, options());
  write(there() + "/a", "there");
  write(there() + "/b/c", "there");
  write(there() + "/d/e[1]/x", "it was here, and was deleted");
  write(here() + "/a", "of here");
  mover.pull_the_rest({"d/e[1]"}, note("rest"));
  wait_for(1);
  EXPECT_EQ(read(here() + "/a"), "of here");
  EXPECT_EQ(read(here() + "/b/c"), "there");
  EXPECT_FALSE(std::filesystem::exists(here() + "/d/e[1]/x"));
}

TEST_F(Mover, TriesAgainWhereNothingLeadsThere) {
  FileMover mover(loop_, options());
  write(there() + "/a/x", "x");
  write(directory_ / "cut", "");
  mover.pull("a", note("back"));
  wait_for(1);
  EXPECT_THAT(done_, ElementsAre("back"));
  EXPECT_EQ(count_runs(), 2);
  EXPECT_EQ(read(here() + "/a/x"), "x");
}

TEST_F(Mover, SaysWhyItCannot) {
  FileMover mover(loop_, with_trouble_about("a"));
  mover.pull("a", note("back"));
  wait_for(1);
  EXPECT_THAT(done_, ElementsAre("back: no permission"));
  EXPECT_EQ(std::ranges::count(read(directory_ / "troubles"), '\n'), FileMover::kTriesMax);
  EXPECT_THAT(troubles_, IsEmpty()) << "it is told to whoever asked";
}

TEST_F(Mover, SaysWhatKeepsItWaitingOnce) {
  FileMover::Options waits = options();
  waits.rsync.back() = "--rsh=/bin/sh -c 'echo no way there >&2; exit 255'";
  FileMover mover(loop_, waits);
  mover.pull("a", note("back"));
  run_until([&] { return !troubles_.empty(); });
  for (int i = 0; i < 20; ++i) loop_.run_once(Duration(5));
  EXPECT_THAT(troubles_, ElementsAre("no way there"));
  EXPECT_THAT(done_, IsEmpty());
  mover.forget();
}

TEST_F(Mover, BringsNothingThereWithoutAnRsync) {
  FileMover::Options none = options();
  none.rsync.front() = directory_ / "rsync";
  FileMover mover(loop_, none);
  mover.push(FileMover::Push::Over, {"a"}, note("there"));
  wait_for(1);
  EXPECT_THAT(done_, ElementsAre(HasSubstr("cannot run")));
}

TEST(WhyNothingWasMoved, IsTheFirstThatWasSaidOfIt) {
  EXPECT_EQ(why_it_moved_nothing("Warning: Permanently added 'lab1'\nlab1: no route\n"
                                 "rsync: connection unexpectedly closed\nrsync error: (255)\n",
                                 255),
            "lab1: no route");
  EXPECT_EQ(why_it_moved_nothing("rsync error: timeout\n", 30), "rsync exited with code 30");
  EXPECT_EQ(why_it_moved_nothing("", 1), "rsync exited with code 1");
}

TEST_F(Mover, TellsNothingOfWhatIsForgotten) {
  FileMover mover(loop_, options());
  write(there() + "/a/x", "x");
  mover.pull("a", note("a"));
  mover.pull("b", note("b"));
  mover.forget();
  mover.pull("a", note("again"));
  wait_for(1);
  EXPECT_THAT(done_, ElementsAre("again"));
}

}  // namespace
}  // namespace trainyard::run
