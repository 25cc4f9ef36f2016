// Files in the place of a journal, and how they are opened there.
#include "journal/journal_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/test_run.h"

namespace trainyard::journal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of_reader(const std::string& path) {
  const Result<JournalReader> reader = JournalReader::open(path);
  return reader ? "none" : reader.error().message;
}

std::string error_of_resume(const std::string& path) {
  const TestJob job{numbered(2)};
  const Result<Journal::Resumed> resumed = Journal::resume(path, {job.batch()}, {});
  return resumed ? "none" : resumed.error().message;
}

void make_journal(const std::string& path) {
  const TestJob job{numbered(200)};
  must(Journal::create(path, "sweep", job.batch(), {}));
}

TEST(JournalFile, TrustsAWriteAheadLogOnlyToFileSystemsOfOneMachine) {
  EXPECT_TRUE(shares_memory(0xEF53));                                  // ext4
  EXPECT_TRUE(shares_memory(0x58465342));                              // XFS
  EXPECT_TRUE(shares_memory(0x9123683E));                              // btrfs
  EXPECT_TRUE(shares_memory(0x01021994));                              // tmpfs
  EXPECT_TRUE(shares_memory(0x794C7630));                              // overlayfs
  EXPECT_FALSE(shares_memory(0x6969));                                 // NFS
  EXPECT_FALSE(shares_memory(0x0BD00BD0));                             // Lustre
  EXPECT_FALSE(shares_memory(0x65735546));                             // FUSE
  EXPECT_FALSE(shares_memory(static_cast<std::int32_t>(0xFF534D42)));  // CIFS, as negative
}

TEST(JournalFile, UsesTheRollbackJournalWhereItCannotSay) {
  EXPECT_EQ(log_kind_for("/nowhere/at/all/journal.db"), LogKind::Rollback);
}

TEST(JournalFile, SaysThatThereIsNoRun) {
  const JournalDirectory directory;
  const std::string wanted =
      "no run found in '" + directory.path().string() + "': it has no journal";
  EXPECT_EQ(error_of_reader(directory.journal()), wanted);
  EXPECT_EQ(error_of_resume(directory.journal()), wanted);
  EXPECT_FALSE(must(Journal::has_begun(directory.journal())));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(JournalFile, SaysThatARunHadNotBegun) {
  const JournalDirectory directory;
  const std::string wanted =
      "no run found in '" + directory.path().string() + "': it was killed before it started";
  std::ofstream(directory.journal()).close();
  EXPECT_EQ(must(look_at(directory.journal())), Found::NotBegun);
  EXPECT_EQ(error_of_resume(directory.journal()), wanted);

  // Made, but with nothing in it.
  must(must(Database::open(directory.journal(), Database::Access::Create))
           .run("PRAGMA journal_mode = WAL"));
  EXPECT_EQ(must(look_at(directory.journal())), Found::NotBegun);
  EXPECT_EQ(error_of_reader(directory.journal()), wanted);
  EXPECT_EQ(error_of_resume(directory.journal()), wanted);
  make_journal(directory.journal());
  EXPECT_EQ(must(look_at(directory.journal())), Found::Journal);
}

TEST(JournalFile, LetsNobodyElseReadAJournal) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  const auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    EXPECT_EQ(entry.status().permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)
        << entry.path();
  }
}

TEST(JournalFile, IsNotMadeThroughALink) {
  const JournalDirectory directory;
  const std::filesystem::path elsewhere = directory.path() / "elsewhere";
  std::filesystem::create_symlink(elsewhere, directory.journal());
  const TestJob job{numbered(2)};
  const auto journal = Journal::create(directory.journal(), "sweep", job.batch(), {});
  ASSERT_FALSE(journal.has_value());
  EXPECT_THAT(journal.error().message, HasSubstr("is a symbolic link, not a regular file"));
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
}

TEST(JournalFile, IsNotThatOfAnotherRunBehindALink) {
  const JournalDirectory directory;
  const std::string other = directory.path() / "other.db";
  make_journal(other);
  std::filesystem::create_symlink(other, directory.journal());
  const std::string wanted = "is a symbolic link, not a regular file";
  EXPECT_THAT(error_of_reader(directory.journal()), HasSubstr(wanted));
  EXPECT_THAT(error_of_resume(directory.journal()), HasSubstr(wanted));
  const Result<bool> begun = Journal::has_begun(directory.journal());
  ASSERT_FALSE(begun.has_value());
  EXPECT_THAT(begun.error().message, HasSubstr(wanted));
  EXPECT_EQ(error_of_reader(other), "none");
}

TEST(JournalFile, DoesNotTouchAFileThatIsNoneOfOurs) {
  const JournalDirectory directory;
  {
    std::ofstream file(directory.journal());
    for (int i = 0; i < 1000; ++i) file << "these are my notes\n";
  }
  const std::string wanted = "is not a journal of trainyard (file is not a database)";
  EXPECT_THAT(error_of_reader(directory.journal()), HasSubstr(wanted));
  EXPECT_THAT(error_of_resume(directory.journal()), HasSubstr(wanted));
  EXPECT_FALSE(Journal::has_begun(directory.journal()).has_value());
  const TestJob job{numbered(2)};
  EXPECT_FALSE(Journal::create(directory.journal(), "sweep", job.batch(), {}).has_value());
  EXPECT_EQ(std::filesystem::file_size(directory.journal()), 19'000U);
}

TEST(JournalFile, DoesNotTouchADatabaseThatIsNoneOfOurs) {
  const JournalDirectory directory;
  must(must(Database::open(directory.journal(), Database::Access::Create))
           .run("CREATE TABLE addresses (name)"));
  const std::string wanted = "'" + directory.journal() + "' is not a journal of trainyard";
  EXPECT_EQ(error_of_reader(directory.journal()), wanted);
  EXPECT_EQ(error_of_resume(directory.journal()), wanted);
  const TestJob job{numbered(2)};
  EXPECT_FALSE(Journal::create(directory.journal(), "sweep", job.batch(), {}).has_value());
}

TEST(JournalFile, SaysWhenTheTablesAreOfAnotherVersion) {
  const JournalDirectory directory;
  make_journal(directory.journal());
  for (const int version : {4, 22, 24}) {
    must(must(Database::open(directory.journal(), Database::Access::Write))
             .run(fmt::format("PRAGMA user_version = {}", version)));
    const std::string wanted = fmt::format(
        "journal '{}' was made by another version of trainyard (its tables are version {}, this "
        "one reads version 23): use that version, or run the job file with --new, or the command "
        "again",
        directory.journal(), version);
    EXPECT_EQ(error_of_reader(directory.journal()), wanted);
    EXPECT_EQ(error_of_resume(directory.journal()), wanted);
    const Result<bool> begun = Journal::has_begun(directory.journal());
    ASSERT_FALSE(begun.has_value());
    EXPECT_EQ(begun.error().message, wanted);
  }
}

TEST(JournalFile, DoesNotResumeAFileThatWasCutOff) {
  const JournalDirectory directory;
  make_journal(directory.journal());
  const std::uintmax_t size = std::filesystem::file_size(directory.journal());
  for (const std::uintmax_t left : {size - 1024, size / 2, std::uintmax_t{2048}}) {
    SCOPED_TRACE(left);
    std::filesystem::resize_file(directory.journal(), left);
    EXPECT_THAT(
        error_of_resume(directory.journal()),
        AllOf(HasSubstr(fmt::format("journal '{}': is damaged (", directory.journal())),
              HasSubstr("); put a copy of the file back, or run the job file with --new, or the "
                        "command again: all tasks run again in another directory; the results and "
                        "logs of this run stay in its own")));
  }
}

TEST(JournalFile, DoesNotResumeAFileInWhichTheDefinitionOfATableHasChanged) {
  const JournalDirectory directory;
  make_journal(directory.journal());
  must(must(Database::open(directory.journal(), Database::Access::Write))
           .run("CREATE VIEW of_a_user AS SELECT id FROM tasks"));
  EXPECT_EQ(error_of_resume(directory.journal()), "none") << "others may be added";
  must(must(Database::open(directory.journal(), Database::Access::Write))
           .run("PRAGMA writable_schema = ON; UPDATE sqlite_schema "
                "SET sql = replace(sql, 'ended_ms', 'endec_ms') WHERE name = 'attempts'"));
  EXPECT_THAT(error_of_resume(directory.journal()),
              HasSubstr("is damaged (the definition of a table has changed); put a copy"));
}

TEST(JournalFile, RefusesToBeginARunTwice) {
  const JournalDirectory directory;
  make_journal(directory.journal());
  const TestJob job{numbered(2)};
  const auto again = Journal::create(directory.journal(), "sweep", job.batch(), {});
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().message, "there is a run in '" + directory.path().string() + "' already");
}

/// A directory that only root may write, until the end of the test.
class ReadOnly {
 public:
  explicit ReadOnly(const JournalDirectory& directory) : path_(directory.path()) {
    using enum std::filesystem::perms;
    for (const auto& file : std::filesystem::directory_iterator(path_)) {
      std::filesystem::permissions(file.path(), owner_read | group_read | others_read);
    }
    std::filesystem::permissions(
        path_, owner_read | owner_exec | group_read | group_exec | others_read | others_exec);
  }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;
  ~ReadOnly() {
    std::error_code error;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, error);
  }

 private:
  std::filesystem::path path_;
};

/// Runs `work` in a child that is not root, even if the tests run as root.
template <class Work>
int as_somebody_else(Work work) {
  return in_child([&work] {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 99;
    return work();
  });
}

TEST(JournalFile, ReadsInADirectoryThatMustNotBeWritten) {
  const JournalDirectory directory;
  make_journal(directory.journal());
  const ReadOnly read_only(directory);
  EXPECT_EQ(as_somebody_else([&] {
              Result<JournalReader> reader = JournalReader::open(directory.journal());
              if (!reader) return 1;
              const auto groups = reader->groups();
              return groups && groups->at(0).tasks == 200 && reader->refresh() ? 0 : 2;
            }),
            0);
}

TEST(JournalFile, SaysWhoseItIsToAUserWhoMayNotWriteIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const JournalDirectory directory;
  make_journal(directory.journal());
  const auto says = [&directory](std::string_view only_they_can) {
    return as_somebody_else([&] {
      const auto opened = open_for_writing(directory.journal(), LogKind::Rollback);
      return !opened && opened.error().message ==
                            fmt::format(
                                "the run in '{}' belongs to another user (uid 0), and only "
                                "they can {}",
                                directory.path().string(), only_they_can)
                 ? 0
                 : 1;
    });
  };
  EXPECT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  EXPECT_EQ(says("look into it or change it"), 0);
  EXPECT_EQ(::chmod(directory.journal().c_str(), 0644), 0);
  EXPECT_EQ(says("change it"), 0);
}

TEST(JournalFile, SaysHowItsUserGetsAccessToIt) {
  const JournalDirectory directory;
  make_journal(directory.journal());
  EXPECT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const auto wanted = [&directory](std::string_view verb) {
    return fmt::format("cannot {} '{}': permission denied; try \"chmod u+rw '{}'\"", verb,
                       directory.journal(), directory.journal());
  };
  if (geteuid() == 0) {
    ASSERT_EQ(chown(directory.journal().c_str(), 65534, 65534), 0);
  }
  EXPECT_EQ(as_somebody_else([&] {
              std::filesystem::permissions(directory.journal(), std::filesystem::perms::none);
              if (error_of_reader(directory.journal()) != wanted("read")) return 1;
              if (error_of_resume(directory.journal()) != wanted("read")) return 2;
              const auto begun = Journal::has_begun(directory.journal());
              if (begun || begun.error().message != wanted("read")) return 3;
              std::filesystem::permissions(directory.journal(), std::filesystem::perms::owner_read);
              return error_of_resume(directory.journal()) == wanted("write") ? 0 : 4;
            }),
            0);
}

TEST(JournalFile, SaysThatItsDirectoryCannotBeSearched) {
  const JournalDirectory directory;
  make_journal(directory.journal());
  std::filesystem::permissions(directory.path(), std::filesystem::perms::none);
  std::string wanted = "cannot look into '" + directory.path().string() + "': permission denied";
  const auto says = [&](const std::string& journal) {
    return as_somebody_else([&] {
      if (error_of_reader(journal) != wanted) return 1;
      const auto begun = Journal::has_begun(journal);
      return !begun && begun.error().message == wanted ? 0 : 2;
    });
  };
  if (geteuid() == 0) {
    EXPECT_EQ(says(directory.journal()), 0) << "only its user can give access to it";
    ASSERT_EQ(chown(directory.path().c_str(), 65534, 65534), 0);
  }
  const std::string cure = fmt::format("; try \"chmod u+rwx '{}'\"", directory.path().string());
  wanted += cure;
  EXPECT_EQ(says(directory.journal()), 0);
  const std::string below = directory.path() / "run";
  wanted = "cannot look into '" + below + "': permission denied" + cure;
  EXPECT_EQ(says(below + "/journal.db"), 0) << "the closed directory is above";
  std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_all);
}

TEST(JournalFile, LeavesOneFileOfARunThatHasEnded) {
  const JournalDirectory directory;
  make_journal(directory.journal());
  {
    JournalReader reader = must(JournalReader::open(directory.journal()));
    EXPECT_EQ(must(reader.groups()).at(0).tasks, 200);
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    EXPECT_EQ(entry.path().string(), directory.journal());
  }
}

TEST(JournalFile, SaysWhyTheLastTurnsCannotBeReadThere) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  in_child([&]() -> int {
    const auto journal = must(Journal::create(directory.journal(), "sweep", job.batch(), {}));
    _exit(journal == nullptr ? 1 : 0);  // Without its end: the log stays.
  });
  std::filesystem::remove(directory.journal() + "-shm");
  const ReadOnly read_only(directory);
  EXPECT_EQ(as_somebody_else([&] {
              const std::string error = error_of_reader(directory.journal());
              return error.starts_with("its newest rows are in the -wal file next to it") ? 0 : 1;
            }),
            0);
}

TEST(JournalFile, WritesEveryTurnToARollbackJournalWhereItMust) {
  const JournalDirectory directory;
  const TestJob job{numbered(2)};
  auto journal = must(
      Journal::create(directory.journal(), "sweep", job.batch(), {}, {.log = LogKind::Rollback}));
  must(journal->commit(granted(at(1), {key(0)})));
  JournalReader reader = must(JournalReader::open(directory.journal()));
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 RUNNING", "1 WAITING"));
  // The reader holds nothing that the writer would have to wait for.
  must(journal->commit(started(at(2), key(0), 77)));
  must(journal->commit(finished(at(3), key(0), "{}")));
  EXPECT_THAT(words(all_tasks(reader)), ElementsAre("0 FINISHED", "1 WAITING"));
  EXPECT_FALSE(std::filesystem::exists(directory.journal() + "-wal"));
}

}  // namespace
}  // namespace trainyard::journal
