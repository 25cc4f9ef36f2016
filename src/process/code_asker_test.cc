// Answers of git about directories, asked in a process of its own: real repositories, made here.
#include "process/code_asker.h"

#include <csignal>
#include <filesystem>

#include <poll.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/test_repository.h"
#include "sys/event_loop.h"
#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

CodeAsker::Answer answer_of(CodeAsker& asker) {
  while (!asker.is_gone()) {
    if (auto answer = asker.hear()) return *std::move(answer);
    pollfd waiting{.fd = asker.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, -1);
  }
  return {};
}

TEST(GitCode, IsTheCommitAndWhatIsChangedSince) {
  const Repository repository;
  const std::optional<FoundCode> clean = find_code(repository.path());
  ASSERT_TRUE(clean.has_value());
  EXPECT_EQ(clean->code.root, std::filesystem::canonical(repository.path()).string());
  EXPECT_THAT(clean->code.commit, SizeIs(40));
  EXPECT_EQ(clean->code.changes, "");
  EXPECT_EQ(clean->diff, "");

  repository.write("train.py", "lr = 2\n");
  const std::optional<FoundCode> changed = find_code(repository.path());
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->code.commit, clean->code.commit);
  EXPECT_THAT(changed->code.changes, SizeIs(16));
  EXPECT_THAT(changed->diff, HasSubstr("\n-lr = 1\n+lr = 2\n"));

  repository.commit();
  const std::optional<FoundCode> next = find_code(repository.path());
  ASSERT_TRUE(next.has_value());
  EXPECT_NE(next->code.commit, clean->code.commit);
  EXPECT_EQ(next->code.changes, "");
}

TEST(GitCode, HasChangedWhereATrackedFileDiffersWhateverIsCommitted) {
  const Repository repository;
  const model::Code first = find_code(repository.path()).value().code;
  EXPECT_EQ(has_changed(first), false);
  repository.write("notes.txt", "not tracked\n");
  EXPECT_EQ(has_changed(first), false);
  repository.write("train.py", "lr = 2\n");
  const model::Code second = find_code(repository.path()).value().code;
  EXPECT_EQ(has_changed(first), true);
  EXPECT_EQ(has_changed(second), false);
  repository.commit();
  EXPECT_EQ(has_changed(first), true);
  EXPECT_EQ(has_changed(second), false) << "the commit has changed no file";
  repository.write("train.py", "lr = 1\n");
  repository.commit();
  EXPECT_EQ(has_changed(first), false);
  EXPECT_EQ(has_changed(second), true);
  model::Code unknown = first;
  unknown.commit = std::string(40, '0');
  EXPECT_EQ(has_changed(unknown), std::nullopt);
  unknown = first;
  unknown.root = "/nowhere";
  EXPECT_EQ(has_changed(unknown), std::nullopt);
}

TEST(GitCode, TellsApartWhatIsChangedBeyondWhatIsKeptOfIt) {
  const Repository repository;
  std::string text;
  for (int line = 0; text.size() < (std::size_t{2} << 20); ++line) {
    text += fmt::format("this is line {}\n", line);
  }
  // It stands before what is changed of the script.
  repository.write("large.txt", text);
  git(repository.path(), "add large.txt");
  repository.write("train.py", "lr = 2\n");
  const std::optional<FoundCode> one = find_code(repository.path());
  repository.write("train.py", "lr = 3\n");
  const std::optional<FoundCode> two = find_code(repository.path());
  ASSERT_TRUE(one.has_value());
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(one->diff.size(), std::size_t{1} << 20);
  EXPECT_TRUE(one->diff == two->diff) << "too long to be shown";
  EXPECT_NE(one->code.changes, two->code.changes);
}

TEST(GitCode, IsNotKnownWhereNothingIsCommittedNorWhereThereIsNoGit) {
  const sys::TemporaryDirectory empty;
  EXPECT_FALSE(find_code(empty.path()).has_value());
  EXPECT_FALSE(find_code(empty / "not there").has_value());
  git(empty.path(), "init -q");
  EXPECT_FALSE(find_code(empty.path()).has_value());
}

TEST(CodeAsker, AnswersForEachDirectoryAndTellsEachDiffOnce) {
  const Repository repository;
  repository.write("train.py", "lr = 3\n");
  std::filesystem::create_directory(repository.path() + "/runs");
  const sys::TemporaryDirectory elsewhere;
  CodeAsker asker = CodeAsker::start().value();
  asker.ask({repository.path(), elsewhere.path(), repository.path() + "/runs"});
  const CodeAsker::Answer answer = answer_of(asker);
  ASSERT_THAT(answer, SizeIs(3));
  ASSERT_TRUE(answer[0].has_value());
  ASSERT_TRUE(answer[2].has_value());
  EXPECT_FALSE(answer[1].has_value());
  EXPECT_EQ(answer[0]->code, answer[2]->code);
  EXPECT_THAT(answer[0]->diff, HasSubstr("+lr = 3"));
  EXPECT_EQ(answer[2]->diff, "");

  repository.write("train.py", "lr = 4\n");
  asker.ask({repository.path()});
  const CodeAsker::Answer later = answer_of(asker);
  ASSERT_THAT(later, SizeIs(1));
  ASSERT_TRUE(later[0].has_value());
  EXPECT_NE(later[0]->code, answer[0]->code);
  EXPECT_THAT(later[0]->diff, HasSubstr("+lr = 4"));
}

TEST(CodeAsker, SaysWhenItHasDied) {
  CodeAsker asker = CodeAsker::start().value();
  ::kill(static_cast<pid_t>(asker.pid()), SIGKILL);
  EXPECT_THAT(answer_of(asker), SizeIs(0));
  EXPECT_TRUE(asker.is_gone());
  asker.ask({"/"});  // Nobody hears it, and it harms nobody.
  EXPECT_FALSE(asker.hear().has_value());
}

}  // namespace
}  // namespace trainyard::process
