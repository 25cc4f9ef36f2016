// Copies of work trees: real repositories, made here.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/code_asker.h"
#include "process/test_repository.h"
#include "run/begun.h"
#include "run/code_copy.h"
#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

constexpr std::filesystem::perms kExecutable =
    std::filesystem::perms::owner_all | std::filesystem::perms::group_read |
    std::filesystem::perms::group_exec | std::filesystem::perms::others_read |
    std::filesystem::perms::others_exec;

using process::git;
using process::git_says;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace stdfs = std::filesystem;

/// A repository in which a run is to begin, in runs/one.
class CodeCopier : public ::testing::Test {
 protected:
  CodeCopier() { stdfs::create_directories(run()); }

  [[nodiscard]] std::string run(const std::string& name = "one") const {
    return tree_ / ("runs/" + name);
  }
  CodeCopy copy() { return copy_code({.directory = tree_.path(), .run_directory = run()}).value(); }
  [[nodiscard]] std::string in_copy(const std::string& name) const {
    return run() + "/trainyard.code/" + name;
  }
  /// The names in a directory of the copy, in order.
  [[nodiscard]] std::vector<std::string> names(const std::string& directory) const {
    std::vector<std::string> found = sys::names_in(in_copy(directory));
    std::ranges::sort(found);
    return found;
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    return sys::content_of(in_copy(name));
  }

  process::Repository tree_;
};

TEST_F(CodeCopier, CopiesTheCommitAndAllThatIsChangedSince) {
  tree_.write(".gitignore", "runs/\n");
  for (const std::string name : {"old.py", "staged.py", "gone.py", "was/a.py"}) {
    tree_.write(name, "1");
  }
  stdfs::permissions(tree_ / "old.py", kExecutable);
  git(tree_.path(), "add -A");
  tree_.commit();
  tree_.write("train.py", "lr = 2\n");
  tree_.write("staged.py", "2");
  git(tree_.path(), "add staged.py");
  stdfs::remove(tree_ / "gone.py");
  tree_.write("deep/two words\nand lines.py", "new");
  // A directory that has become a file, and one that has become a link.
  stdfs::remove_all(tree_ / "was");
  stdfs::create_directory_symlink("deep", tree_ / "was");

  const CodeCopy made = copy();
  EXPECT_EQ(made, (CodeCopy{.root = tree_.path(), .path = run() + "/trainyard.code"}));
  EXPECT_THAT(names(""), ElementsAre(".git", ".gitignore", "deep", "old.py", "runs", "staged.py",
                                     "train.py", "was"));
  EXPECT_THAT(names("runs"), IsEmpty());
  EXPECT_EQ(text("train.py"), "lr = 2\n");
  EXPECT_EQ(text("staged.py"), "2");
  EXPECT_EQ(text("deep/two words\nand lines.py"), "new");
  EXPECT_EQ(stdfs::status(in_copy("old.py")).permissions(), kExecutable);
  EXPECT_EQ(stdfs::read_symlink(in_copy("was")), "deep");
  EXPECT_EQ(code_copy_of(run()).value(), made);

  // The copy stays as it is.
  tree_.write("train.py", "lr = 3\n");
  tree_.write("deep/two words\nand lines.py", "newer");
  EXPECT_EQ(text("train.py"), "lr = 2\n");
  EXPECT_EQ(text("deep/two words\nand lines.py"), "new");
}

TEST_F(CodeCopier, IsTheSameCodeForGitUntilItIsChangedItself) {
  tree_.write("added.py", "x = 1\n");
  tree_.write("loose.py", "y = 1\n");
  git(tree_.path(), "add added.py");
  tree_.write("train.py", "lr = 2\n");
  const process::FoundCode before = process::find_code(tree_.path()).value();
  const CodeCopy made = copy();
  const process::FoundCode found = process::find_code(made.path).value();
  EXPECT_EQ(found.code.root, made.path);
  EXPECT_EQ(found.code.commit, before.code.commit);
  EXPECT_EQ(found.code.changes, before.code.changes);
  EXPECT_EQ(found.diff, before.diff);
  EXPECT_THAT(git_says(made.path, "log --format=%s"), HasSubstr("what there is"));
  EXPECT_EQ(git_says(made.path, "status --short"), "A  added.py\n M train.py\n?? loose.py\n");

  // Later changes of either do not affect the other.
  tree_.commit();
  EXPECT_EQ(process::find_code(made.path).value().code, found.code);
  tree_.write("train.py", "lr = 4\n");
  EXPECT_EQ(process::find_code(made.path).value().code, found.code);
  EXPECT_EQ(git_says(tree_.path(), "worktree list | wc -l"), "1\n");
  git(made.path, "add -A");
  EXPECT_EQ(git_says(tree_.path(), "status --short train.py"), " M train.py\n");
}

TEST_F(CodeCopier, LinksWhatGitIgnoresAndNotWhatPythonCompiles) {
  tree_.write(".gitignore", "data/\n*.bin\n__pycache__/\n*.pyc\n");
  tree_.write("data/train.csv", "1,2");
  tree_.write("lib/weights.bin", "w");
  tree_.write("lib/a.py", "");
  tree_.write("lib/a.pyc", "");
  tree_.write("lib/__pycache__/a.pyc", "");
  copy();
  EXPECT_EQ(stdfs::read_symlink(in_copy("data")), tree_ / "data");
  EXPECT_EQ(text("data/train.csv"), "1,2");
  EXPECT_EQ(stdfs::read_symlink(in_copy("lib/weights.bin")), tree_ / "lib/weights.bin");
  EXPECT_THAT(names("lib"), ElementsAre("a.py", "weights.bin"));
}

/// For the paths of what is below, with links followed.
std::vector<std::string> walked(const std::string& directory) {
  std::vector<std::string> found;
  for (stdfs::recursive_directory_iterator
           at(directory, stdfs::directory_options::follow_directory_symlink),
       end;
       at != end; ++at) {
    if (at->path().filename() == ".git") {
      at.disable_recursion_pending();
      continue;
    }
    if (at->is_regular_file()) found.push_back(at->path().lexically_relative(directory).string());
    if (found.size() > 100) break;
  }
  std::ranges::sort(found);
  return found;
}

TEST_F(CodeCopier, LinksOtherRunsAndNeverACopyOfCode) {
  for (const bool ignored : {true, false}) {
    tree_.write(".gitignore", ignored ? "runs\n" : "");
    tree_.write("runs/zero/journal.db", "");
    tree_.write("runs/zero/a/model.pt", "m");
    const std::string second = run("two");
    stdfs::create_directories(second);
    // Two that are submitted at the same time are in each other's way neither.
    copy_code({.directory = tree_.path(), .run_directory = second}).value();
    tree_.write("runs/two/trainyard.submission", "");
    copy();
    EXPECT_THAT(
        walked(run() + "/trainyard.code"),
        ElementsAre(".gitignore", "runs/two/trainyard.code-of", "runs/two/trainyard.submission",
                    "runs/zero/a/model.pt", "runs/zero/journal.db", "train.py"))
        << ignored;
    EXPECT_TRUE(stdfs::is_symlink(in_copy("runs/zero")));
    stdfs::remove_all(tree_ / "runs");
    stdfs::create_directories(run());
  }
}

TEST_F(CodeCopier, NeverLinksItselfWhereRunsLieElsewhere) {
  const sys::TemporaryDirectory scratch;
  stdfs::remove_all(tree_ / "runs");
  stdfs::create_directory_symlink(scratch.path(), tree_ / "runs");
  stdfs::create_directory(run());
  copy();
  EXPECT_THAT(walked(run() + "/trainyard.code"), ElementsAre("train.py"));
  EXPECT_EQ(git_says(run() + "/trainyard.code", "rev-parse HEAD"),
            git_says(tree_.path(), "rev-parse HEAD"));
}

TEST_F(CodeCopier, LinksLeadWhereTheyLed) {
  const sys::TemporaryDirectory elsewhere;
  elsewhere.write("x", "far");
  stdfs::create_directory(tree_ / "sub");
  stdfs::create_symlink("../train.py", tree_ / "sub/near");
  stdfs::create_symlink(elsewhere / "x", tree_ / "far");
  stdfs::create_symlink("../" + stdfs::path(elsewhere.path()).filename().string() + "/x",
                        tree_ / "dots");
  git(tree_.path(), "add -A");
  tree_.commit();
  const CodeCopy made = copy();
  EXPECT_EQ(stdfs::read_symlink(in_copy("sub/near")), "../train.py");
  EXPECT_EQ(text("far"), "far");
  EXPECT_EQ(text("dots"), "far");
  // git is to take it for the same code.
  EXPECT_EQ(process::find_code(made.path).value().code.changes, "");
}

TEST_F(CodeCopier, LinksWithinTheWorkTreeLeadIntoTheCopy) {
  stdfs::create_directory(tree_ / "sub");
  stdfs::create_symlink(".", tree_ / "here");
  stdfs::create_symlink("..", tree_ / "sub/up");
  stdfs::create_symlink(tree_ / "train.py", tree_ / "sub/whole");
  stdfs::create_symlink("../../" + stdfs::path(tree_.path()).filename().string() + "/train.py",
                        tree_ / "sub/out");
  git(tree_.path(), "add -A");
  tree_.commit();
  // The copy lies in what these lead to.
  const CodeCopy made = copy();
  tree_.write("train.py", "lr = 3\n");
  for (const char* const path : {"here/train.py", "sub/up/train.py", "sub/whole", "sub/out"}) {
    EXPECT_EQ(text(path), "lr = 1\n") << path;
  }
  EXPECT_EQ(stdfs::read_symlink(in_copy("here")), ".");
  EXPECT_EQ(stdfs::read_symlink(in_copy("sub/up")), "..");
  EXPECT_EQ(stdfs::read_symlink(in_copy("sub/whole")), "../train.py");
  EXPECT_EQ(process::find_code(made.path).value().code.changes, "");
}

TEST_F(CodeCopier, CopiesRepositoriesWithin) {
  const process::Repository library;
  git(tree_.path(),
      "-c protocol.file.allow=always submodule --quiet add " + library.path() + " lib");
  git(tree_.path(), "commit -qm lib");
  tree_.write("lib/train.py", "changed\n");
  git(tree_.path(), "clone -q " + library.path() + " vendor");
  const process::FoundCode before = process::find_code(tree_.path()).value();
  const process::FoundCode library_before = process::find_code(tree_ / "lib").value();
  const CodeCopy made = copy();
  EXPECT_EQ(text("lib/train.py"), "changed\n");
  EXPECT_EQ(text("vendor/train.py"), "lr = 1\n");
  EXPECT_EQ(process::find_code(made.path).value().code.changes, before.code.changes);
  EXPECT_EQ(process::find_code(in_copy("lib")).value().code.changes, library_before.code.changes);
  EXPECT_EQ(git_says(in_copy("vendor"), "rev-parse HEAD"),
            git_says(library.path(), "rev-parse HEAD"));
}

TEST_F(CodeCopier, SaysWhichRepositoryWithinHasNoCommit) {
  git(tree_.path(), "init -q empty");
  const Result<CodeCopy> made = copy_code({.directory = tree_.path(), .run_directory = run()});
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message, HasSubstr("'" + (tree_ / "empty") + "' has no commit yet"));
  EXPECT_THAT(sys::names_in(run()), IsEmpty());
}

TEST_F(CodeCopier, LeavesNothingWhenItIsGivenUpOrCannotWrite) {
  for (int i = 0; i < 10; ++i) tree_.write("file" + std::to_string(i), "x");
  std::size_t copied = 0;
  const Result<CodeCopy> given_up = copy_code({.directory = tree_.path(),
                                               .run_directory = run(),
                                               .is_given_up = [&copied] { return copied == 3; },
                                               .tell = [&copied](std::size_t n) { copied = n; }});
  EXPECT_FALSE(given_up.has_value());
  EXPECT_EQ(copied, 3U);
  EXPECT_THAT(sys::names_in(run()), IsEmpty());
  EXPECT_FALSE(copy_code({.directory = tree_.path(), .run_directory = "/proc/none"}).has_value());
}

TEST_F(CodeCopier, ReplacesWhatAnEarlierOneHasLeft) {
  stdfs::create_directories(in_copy(".git"));
  tree_.write("runs/one/trainyard.code/left", "");
  const Result<std::optional<CodeCopy>> half = code_copy_of(run());
  ASSERT_FALSE(half.has_value());
  EXPECT_THAT(half.error().message, AllOf(HasSubstr("is incomplete: start a new run"),
                                          HasSubstr("or remove it to run the tasks in")));
  copy();
  EXPECT_THAT(names(""), ElementsAre(".git", "train.py"));
  stdfs::remove_all(run() + "/trainyard.code");
  const Result<std::optional<CodeCopy>> gone = code_copy_of(run());
  ASSERT_FALSE(gone.has_value());
  EXPECT_THAT(gone.error().message,
              HasSubstr("trainyard.code', is gone; to run the tasks in the work tree itself, "
                        "remove '" +
                        run() + "/trainyard.code-of'"));
  stdfs::create_directory_symlink(tree_.path(), run() + "/trainyard.code");
  const Result<std::optional<CodeCopy>> linked = code_copy_of(run());
  ASSERT_FALSE(linked.has_value());
  EXPECT_THAT(linked.error().message,
              HasSubstr("trainyard.code', was replaced by a symbolic link; to run the tasks"));
  drop_code_copy(run());
  EXPECT_EQ(code_copy_of(run()).value(), std::nullopt);
}

TEST_F(CodeCopier, TakesNoRecordFromBehindALink) {
  copy();
  const std::string record = run() + "/trainyard.code-of";
  stdfs::rename(record, run() + "/elsewhere");
  stdfs::create_symlink(run() + "/elsewhere", record);
  const Result<std::optional<CodeCopy>> found = code_copy_of(run());
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message,
              AllOf(HasSubstr("is a symbolic link, not a regular file"),
                    HasSubstr("; to run the tasks in the work tree itself, remove '" + record)));
}

TEST_F(CodeCopier, TakesNothingThatATaskPutsAtItsPathForAnIncompleteCopy) {
  const std::string path = run() + "/trainyard.code";
  const auto is_none = [this] {
    const Result<std::optional<CodeCopy>> found = code_copy_of(run());
    return found && !*found;
  };
  stdfs::create_directories(path + "/left");
  EXPECT_TRUE(is_none());
  stdfs::remove_all(path);
  tree_.write("runs/one/trainyard.code", "");
  EXPECT_TRUE(is_none());
  stdfs::remove(path);
  // Its target has a '.git'.
  stdfs::create_directory_symlink(tree_.path(), path);
  EXPECT_TRUE(is_none());
}

TEST_F(CodeCopier, IsMovedWithItsWorkTree) {
  const sys::TemporaryDirectory elsewhere;
  copy();
  const std::string moved = stdfs::canonical(elsewhere.path()).string() + "/moved";
  stdfs::copy(tree_.path(), moved,
              stdfs::copy_options::recursive | stdfs::copy_options::copy_symlinks);
  const auto found = code_copy_of(moved + "/runs/one").value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->root, moved);
  stdfs::rename(tree_ / ".git", tree_ / "not-git");
  EXPECT_EQ(git_says(found->path, "log --format=%s"), "what there is\n");
}

TEST_F(CodeCopier, NothingInACopyIsTakenForWhatATaskLeft) {
  tree_.write("sample/stdout.log", "");
  copy();
  tree_.write("runs/one/lock", "");
  const Result<bool> begun = has_begun(run());
  ASSERT_TRUE(begun.has_value());
  EXPECT_FALSE(*begun);
}

TEST(CodeCopy, HasAPlaceForEachDirectoryOfTheOriginalButThoseOfTheRun) {
  const CodeCopy copy{.root = "/w", .path = "/w/runs/one/trainyard.code"};
  EXPECT_EQ(copy.place_of("/w"), "/w/runs/one/trainyard.code");
  EXPECT_EQ(copy.place_of("/w/a/b"), "/w/runs/one/trainyard.code/a/b");
  EXPECT_EQ(copy.place_of("/w/a/../b/"), "/w/runs/one/trainyard.code/b/");
  for (const std::string elsewhere :
       {"/", "/wide", "/w/runs/one", "/w/runs/one/train/a", "/w/runs/one/trainyard.code/a"}) {
    EXPECT_EQ(copy.place_of(elsewhere), elsewhere);
  }
}

}  // namespace
}  // namespace trainyard::run
