// A run has begun where its journal says so; where results lie without one, none begins over them.
#include "run/begun.h"

#include <filesystem>
#include <fstream>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/run_directory.h"
#include "sys/files.h"

namespace trainyard::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A run directory, until the end of the test.
class RunPlace {
 public:
  RunPlace() : path_(sys::make_private_directory("trainyard-test-").value()) {}
  RunPlace(const RunPlace&) = delete;
  RunPlace& operator=(const RunPlace&) = delete;
  ~RunPlace() { std::filesystem::remove_all(path_); }

  void file(const std::string& name, const std::string& text = {}) const {
    const std::filesystem::path path = path_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string told(const RunPlace& place) {
  const Result<bool> begun = has_begun(place.path());
  if (!begun) return begun.error().message;
  return *begun ? "begun" : "not begun";
}

TEST(Begun, IsNoRunThatWasEndedBeforeIt) {
  const RunPlace place;
  EXPECT_EQ(told(place), "not begun");
  place.file("journal.db");
  place.file("lock");
  place.file("socket");
  EXPECT_EQ(told(place), "not begun");
}

TEST(NotForRuns, AreAFileAndADirectoryThatHasFilesOfNoRun) {
  const RunPlace place;
  EXPECT_EQ(why_not_for_runs(place.path() + "/none"), "");
  EXPECT_EQ(why_not_for_runs(place.path()), "") << "it is empty";
  place.file("notes.txt");
  EXPECT_EQ(why_not_for_runs(place.path()), "is not empty and contains no run");
  EXPECT_EQ(why_not_for_runs(place.path() + "/notes.txt"), "is not a directory");
  for (const std::string_view mark : {"journal.db", "lock", "reports/index.html"}) {
    const RunPlace run;
    run.file(std::string(mark));
    EXPECT_EQ(why_not_for_runs(run.path()), "") << mark;
  }
}

TEST(Begun, IsNoRunInADirectoryThatSomebodyHasForOtherThings) {
  const RunPlace place;
  place.file("data/train.csv", "1,2");
  place.file("reports/mine.txt");
  place.file("stdout.log");
  EXPECT_EQ(told(place), "not begun");
  place.file("runs/other/journal.db");
  place.file("runs/other/g/a/stdout.log");
  EXPECT_EQ(told(place), "not begun") << "that is a run of its own";
  place.file("job/train/stdout.log");
  EXPECT_EQ(told(place), "not begun") << "any program may write such a file";
}

TEST(Begun, IsRefusedWhereResultsLieWithoutAJournal) {
  const RunPlace place;
  place.file("g/sub/n=1/stdout.log");
  EXPECT_EQ(told(place), "not begun");
  place.file("lock");
  const std::string next =
      "Start another run, with --new for a job file, or move the directory away";
  EXPECT_THAT(told(place),
              AllOf(HasSubstr(journal_path(place.path()) + "' is gone. The run cannot be resumed"),
                    HasSubstr(next)));
  place.file("journal.db");
  EXPECT_THAT(told(place), AllOf(HasSubstr("' is empty or damaged. The run cannot be resumed"),
                                 HasSubstr(next)));
}

TEST(Begun, IsRefusedWhereTheReportsOfARunLie) {
  const RunPlace place;
  place.file("reports/index.html");
  place.file("journal.db");
  EXPECT_THAT(told(place), HasSubstr("contains files of a run"));
}

}  // namespace
}  // namespace trainyard::run
