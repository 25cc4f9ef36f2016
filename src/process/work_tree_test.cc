// Answers of git about a work tree: real repositories, made here.
#include "process/work_tree.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/test_repository.h"
#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(WorkTree, IsFoundFromADirectoryWithinIt) {
  const Repository repository;
  repository.write("deep/er/a.py", "");
  const Result<WorkTree> tree = find_work_tree(repository / "deep/er");
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->root, repository.path());
  EXPECT_THAT(tree->commit, SizeIs(40));
  EXPECT_EQ(tree->git_directory, repository / ".git");
  EXPECT_EQ(tree->common_directory, repository / ".git");
  EXPECT_EQ(tree->index, repository / ".git/index");
}

TEST(WorkTree, OfSeveralHasAnIndexOfItsOwn) {
  const Repository repository;
  git(repository.path(), "worktree add -q --detach 'se cond\nline'");
  const Result<WorkTree> tree = find_work_tree(repository / "se cond\nline");
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->root, repository / "se cond\nline");
  EXPECT_THAT(tree->git_directory, HasSubstr("/.git/worktrees/"));
  EXPECT_EQ(tree->common_directory, repository / ".git");
  EXPECT_EQ(tree->index, tree->git_directory + "/index");
}

TEST(WorkTree, IsNoneWithoutARepositoryNorBeforeItsFirstCommit) {
  const sys::TemporaryDirectory empty;
  const Result<WorkTree> none = find_work_tree(empty.path());
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message,
              HasSubstr("'" + empty.path() + "' is not in a work tree of git: fatal: "));
  git(empty.path(), "init -q");
  const Result<WorkTree> bare = find_work_tree(empty.path());
  ASSERT_FALSE(bare.has_value());
  EXPECT_THAT(bare.error().message, HasSubstr("has no commit yet: 'git commit' makes its first"));
  EXPECT_FALSE(find_work_tree(empty / "not there").has_value());
}

TEST(WorkTree, HasWhatGitKnowsWhatItDoesNotAndWhatItIgnores) {
  const Repository repository;
  repository.write(".gitignore", "data/\n*.log\n");
  repository.write("data/a/b.bin", "");
  repository.write("data/c.bin", "");
  repository.write("out.log", "");
  repository.write("new\nline/two words.py", "");
  repository.write("gone.py", "");
  git(repository.path(), "add .gitignore gone.py");
  std::filesystem::remove(repository / "gone.py");
  git(repository.path(), "init -q nested");
  const Result<TreeFiles> files = files_of(find_work_tree(repository.path()).value());
  ASSERT_TRUE(files.has_value());
  EXPECT_THAT(files->known, ElementsAre(".gitignore", "gone.py", "train.py"));
  EXPECT_THAT(files->unknown, ElementsAre("new\nline/two words.py"));
  EXPECT_THAT(files->nested, ElementsAre("nested"));
  EXPECT_THAT(files->ignored, ElementsAre("data", "out.log"));
}

TEST(WorkTree, HasEachFileOfAConflictOnce) {
  const Repository repository;
  git(repository.path(), "checkout -qb other");
  repository.write("train.py", "lr = 2\n");
  repository.commit();
  git(repository.path(), "checkout -q -");
  repository.write("train.py", "lr = 3\n");
  repository.commit();
  git_says(repository.path(), "merge other");
  ASSERT_THAT(git_says(repository.path(), "status --short"), HasSubstr("UU train.py"));
  const Result<TreeFiles> files = files_of(find_work_tree(repository.path()).value());
  ASSERT_TRUE(files.has_value());
  EXPECT_THAT(files->known, ElementsAre("train.py"));
  EXPECT_THAT(files->unknown, IsEmpty());
}

}  // namespace
}  // namespace trainyard::process
