// The wrapper around SQLite: what goes in comes out, and errors say where.
#include "journal/sqlite.h"

#include <filesystem>
#include <fstream>

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/test_run.h"
#include "sys/test_directory.h"

namespace trainyard::journal {
namespace {

using ::testing::HasSubstr;

TEST(Database, GivesBackWhatWasBound) {
  const JournalDirectory directory;
  Database database = must(Database::open(directory.journal(), Database::Access::Create));
  must(database.run("CREATE TABLE t (a, b, c, d, e, f, g)"));
  const std::string with_nul("a\0b", 3);
  Statement insert = must(database.prepare("INSERT INTO t VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"));
  must(insert.run(std::int64_t{-5}, 0.25, with_nul, std::string(), std::nullopt, gb(3),
                  std::optional<Instant>(at(7))));
  EXPECT_EQ(database.rows_changed(), 1);

  Statement row = must(database.prepare("SELECT a, b, c, d, e, f, g FROM t"));
  ASSERT_TRUE(must(row.next()));
  EXPECT_EQ(row.integer(0), -5);
  EXPECT_EQ(row.real(1), 0.25);
  EXPECT_EQ(row.text(2), with_nul);
  EXPECT_EQ(row.text(3), "");
  EXPECT_FALSE(row.null(3));
  EXPECT_TRUE(row.null(4));
  EXPECT_EQ(row.integer(5), 3'000'000'000);
  EXPECT_EQ(row.integer(6), 7);
  EXPECT_FALSE(must(row.next()));
}

TEST(Database, OpensAPathThatAUriWouldMisread) {
  const JournalDirectory directory;
  const std::string path = (directory.path() / "a?mode=memory#1%41.sqlite").string();
  must(must(Database::open(path, Database::Access::Create)).run("CREATE TABLE t (a)"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(Database, OpensNoLinkInThePlaceOfAnyOfItsFiles) {
  using Access = Database::Access;
  for (const std::string_view end : Database::kFileEnds) {
    for (const bool is_symbolic : {false, true}) {
      const JournalDirectory directory;
      must(must(Database::open(directory.journal(), Access::Create))
               .run("PRAGMA journal_mode = WAL; CREATE TABLE t (a)"));
      const std::string other = directory.path() / "other";
      std::ofstream(other) << "untouched";
      const std::string file = directory.journal() + std::string(end);
      std::filesystem::remove(file);
      if (is_symbolic) {
        std::filesystem::create_symlink(other, file);
      } else {
        std::filesystem::create_hard_link(other, file);
      }
      const std::string wanted = fmt::format(
          "journal '{}' {}; {}", file,
          is_symbolic ? "is a symbolic link, not a regular file" : "has 2 names (hard links)",
          end == "-shm" ? "remove it when the run is not active, as it contains no rows of the run"
                        : "move it away or, if it is the run's own file, replace it with a copy "
                          "when the run is not active");
      for (const Access access :
           {Access::Read, Access::ReadUnchanging, Access::Write, Access::Create}) {
        const Result<Database> refused = Database::open(directory.journal(), access);
        ASSERT_FALSE(refused.has_value()) << file;
        EXPECT_EQ(refused.error().message, wanted);
      }
      EXPECT_EQ(sys::content_of(other), "untouched");
    }
  }
}

TEST(Database, IsFoundInADirectoryBehindALink) {
  const JournalDirectory directory;
  std::filesystem::create_directory(directory.path() / "scratch");
  std::filesystem::create_directory_symlink("scratch", directory.path() / "runs");
  const std::string path = directory.path() / "runs/journal.db";
  must(must(Database::open(path, Database::Access::Create)).run("CREATE TABLE t (a)"));
  EXPECT_TRUE(std::filesystem::exists(directory.path() / "scratch/journal.db"));
}

TEST(Database, NamesTheFileInEveryError) {
  const JournalDirectory directory;
  Result<Database> missing = Database::open(directory.journal(), Database::Access::Write);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message, "journal '" + directory.journal() +
                                         "': cannot be opened (unable to open database file)");

  Database database = must(Database::open(directory.journal(), Database::Access::Create));
  const Result<void> wrong = database.run("SELEKT 1");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().message,
            "journal '" + directory.journal() + "': near \"SELEKT\": syntax error");
  const Result<Statement> unprepared = database.prepare("SELECT a FROM nowhere");
  ASSERT_FALSE(unprepared.has_value());
  EXPECT_EQ(unprepared.error().message,
            "journal '" + directory.journal() + "': no such table: nowhere");
}

TEST(Database, NamesTheLimitOfOpenFiles) {
  const JournalDirectory directory;
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit none = old;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<Database> refused = Database::open(directory.journal(), Database::Access::Create);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "journal '" + directory.journal() +
                "': cannot be opened (unable to open database file: too many open files, see "
                "'ulimit -n')");
}

TEST(Database, SaysWhenTheDiskIsFull) {
  const JournalDirectory directory;
  Database database = must(Database::open(directory.journal(), Database::Access::Create));
  must(database.run("PRAGMA max_page_count = 3; CREATE TABLE t (a)"));
  const Result<void> full = database.run("INSERT INTO t VALUES (zeroblob(100000))");
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().message, "journal '" + directory.journal() +
                                      "': its disk is full (database or disk is "
                                      "full)");
  EXPECT_FALSE(database.in_transaction());
}

TEST(Database, SaysWhenAnotherProcessHoldsIt) {
  const JournalDirectory directory;
  Database one = must(Database::open(directory.journal(), Database::Access::Create));
  must(one.run("CREATE TABLE t (a); BEGIN IMMEDIATE"));
  Database other = must(Database::open(directory.journal(), Database::Access::Write));
  const Result<void> held = other.run("INSERT INTO t VALUES (1)");
  ASSERT_FALSE(held.has_value());
  EXPECT_THAT(held.error().message, HasSubstr("is held by another process (database is locked)"));
}

TEST(StatementDeathTest, StopsWhenThereAreMoreValuesThanPlaces) {
  const JournalDirectory directory;
  Database database = must(Database::open(directory.journal(), Database::Access::Create));
  Statement statement = must(database.prepare("SELECT ?1"));
  EXPECT_DEATH(must(statement.run(1, 2)), "a statement with a place for each value");
}

}  // namespace
}  // namespace trainyard::journal
