// Results are read one after the other, each in its own time, and none for which there is no room.
#include "process/end_reader.h"

#include <csignal>
#include <cstddef>
#include <filesystem>

#include <poll.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "process/end_notes.h"
#include "sys/files.h"
#include "sys/test_directory.h"

namespace trainyard::process {
namespace {

using Clock = EndReader::Clock;
using std::chrono::seconds;

/// A reader of results, and what it has answered.
class Reading {
 public:
  Reading()
      : reader_({.watch =
                     [this](const sys::Descriptor& what) {
                       socket_ = what.get();
                       return watches;
                     },
                 .session =
                     [this](pid_t session, bool there) {
                       // Stopped, it is as one whose disk does not answer.
                       if (there && to_stop > 0) ::kill(session, SIGSTOP);
                       if (there && to_stop > 0) --to_stop;
                       if (there) sessions.push_back(session);
                     },
                 .has_room = [this] { return room; }}) {}

  void ask(const std::string& name, const std::string& text) {
    const std::string path = place_.path() + "/" + name;
    ASSERT_TRUE(sys::write_file_atomically(path, text));
    reader_.ask(
        {.result_path = path, .errors_path = {}, .output_path = {}},
        [this, name](const EndReader::Answer& answer) {
          const LeftBehind& left = answer.left;
          answers.push_back(name + ": " + (left.result ? *left.result : tail_of(left.trouble)));
        });
  }

  /// Waits for an answer.
  void listen() const {
    pollfd about{.fd = socket_, .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&about, 1, 30'000), 1) << "nothing is heard";
  }
  /// Reads until this number of answers has come.
  void hear(std::size_t count) {
    while (answers.size() < count) {
      ASSERT_NO_FATAL_FAILURE(listen());
      reader_.about();
    }
  }
  void after(seconds time) { reader_.look_at_the_clock(Clock::now() + time); }
  EndReader& reader() { return reader_; }

  bool room = true;
  bool watches = true;
  int to_stop = 0;  ///< The number of the next processes to be stopped.
  std::vector<pid_t> sessions;
  std::vector<std::string> answers;

 private:
  static std::string tail_of(const std::string& trouble) {
    return trouble.substr(trouble.rfind(": ") + 2);
  }

  sys::TemporaryDirectory place_;
  int socket_ = -1;
  EndReader reader_;
};

TEST(EndReader, GivesEachItsOwnTime) {
  Reading reading;
  reading.to_stop = 1;
  reading.ask("a", "1");
  reading.ask("b", "2");
  reading.ask("c", "3");
  reading.after(seconds(4));
  EXPECT_TRUE(reading.answers.empty());
  reading.after(seconds(6));
  EXPECT_EQ(reading.answers, std::vector<std::string>{"a: its disk has not answered for 5.0 s"});
  reading.hear(3);
  EXPECT_EQ(reading.answers[1], "b: 2");
  EXPECT_EQ(reading.answers[2], "c: 3");
  EXPECT_FALSE(reading.reader().wake_at());
}

TEST(EndReader, WaitsLessForTheNextOneOnADiskThatDoesNotAnswer) {
  Reading reading;
  reading.to_stop = 2;
  reading.ask("a", "1");
  reading.ask("b", "2");
  reading.ask("c", "3");
  reading.after(seconds(6));
  reading.after(seconds(2));
  reading.hear(3);
  EXPECT_EQ(reading.answers,
            (std::vector<std::string>{"a: its disk has not answered for 5.0 s",
                                      "b: its disk has not answered for 1.0 s", "c: 3"}));
  // A process that answers has all its time again.
  ::kill(reading.sessions.back(), SIGSTOP);
  reading.ask("d", "4");
  reading.after(seconds(4));
  EXPECT_EQ(reading.answers.size(), 3U);
  reading.after(seconds(6));
  EXPECT_EQ(reading.answers.back(), "d: its disk has not answered for 5.0 s");
}

TEST(EndReader, TakesAnAnswerThatHasComeThoughNobodyHasListenedInTime) {
  Reading reading;
  reading.ask("a", "1");
  reading.listen();
  reading.after(seconds(6));
  EXPECT_EQ(reading.answers, std::vector<std::string>{"a: 1"});
}

TEST(EndReader, WaitsLongerByTheTimeInWhichNobodyListened) {
  Reading reading;
  reading.to_stop = 1;
  reading.ask("a", "1");
  reading.reader().wait_longer(seconds(10));
  reading.after(seconds(14));
  EXPECT_TRUE(reading.answers.empty());
  reading.after(seconds(16));
  EXPECT_EQ(reading.answers, std::vector<std::string>{"a: its disk has not answered for 5.0 s"});
  EXPECT_FALSE(reading.reader().wake_at());
}

TEST(EndReader, ReadsNothingThatNobodyHasRoomFor) {
  Reading reading;
  reading.room = false;
  reading.ask("a", "1");
  EXPECT_FALSE(reading.reader().wake_at());
  EXPECT_TRUE(reading.sessions.empty());
  reading.after(seconds(60));
  EXPECT_TRUE(reading.answers.empty()) << "it has all the time in the world";
  reading.room = true;
  reading.reader().go_on();
  reading.hear(1);
  EXPECT_EQ(reading.answers, std::vector<std::string>{"a: 1"});
}

TEST(EndReader, AsksNobodyWhoCannotBeHeard) {
  Reading reading;
  reading.watches = false;
  reading.ask("a", "1");
  EXPECT_EQ(reading.answers, std::vector<std::string>{"a: no process can be started to read it"});
  reading.watches = true;
  reading.ask("b", "2");
  reading.hear(2);
  EXPECT_EQ(reading.answers[1], "b: 2");
}

TEST(EndReader, NotesAnEndWithWhatItLeftAndRemovesTheNotesWhenItIsAskedTo) {
  Reading reading;
  const sys::TemporaryDirectory place;
  place.write("result", "1");
  place.write("notes", "half a note");
  int answers = 0;
  const auto answered = [&answers](const EndReader::Answer&) { ++answers; };
  reading.reader().ask({.result_path = place / "result", .note = "a", .note_path = place / "notes"},
                       answered);
  reading.reader().ask({.note = "b", .note_path = place / "notes"}, answered);
  while (answers < 2) {
    ASSERT_NO_FATAL_FAILURE(reading.listen());
    reading.reader().about();
  }
  EXPECT_EQ(sys::content_of(place / "notes"),
            end_note_record("a", {.result = "1"}) + end_note_record("b", {}))
      << "what was no whole note is gone";
  reading.reader().ask({.note_path = place / "notes"}, answered);
  while (answers < 3) {
    ASSERT_NO_FATAL_FAILURE(reading.listen());
    reading.reader().about();
  }
  EXPECT_FALSE(std::filesystem::exists(place / "notes"));
}

TEST(EndReader, OpensDirectoriesAgainThatTheTaskHasClosed) {
  namespace stdfs = std::filesystem;
  const sys::TemporaryDirectory place;
  stdfs::create_directories(place / "run/task");
  place.write("run/task/result.json", "1");
  stdfs::permissions(place / "run/task", stdfs::perms::none);
  stdfs::permissions(place / "run", stdfs::perms::owner_read | stdfs::perms::owner_exec);
  const LeftBehind left = EndReader::read({.result_path = place / "run/task/result.json",
                                           .result_copy_path = place / "run/task/result.1.json",
                                           .followed_directory = place / "run"})
                              .left;
  EXPECT_EQ(left.result, "1");
  EXPECT_EQ(left.trouble, "");
  EXPECT_EQ(sys::content_of(place / "run/task/result.1.json"), "1");
  // Root reads the result of a closed directory as well.
  for (const std::string name : {"run", "run/task"}) {
    EXPECT_EQ(stdfs::status(place / name).permissions(), stdfs::perms::owner_all) << name;
  }
}

TEST(EndReader, FollowsNoLinkOnTheWayToTheTask) {
  const sys::TemporaryDirectory place;
  std::filesystem::create_directories(place / "run/other/task/checkpoints");
  place.write("run/other/task/checkpoints/1.pt", "");
  place.write("run/other/task/result.json", "1");
  place.write("run/other/task/stderr.log", "ValueError\n");
  std::filesystem::create_directory_symlink(place / "run/other", place / "run/group");
  EndReader::Question question{.result_path = place / "run/group/task/result.json",
                               .result_copy_path = place / "run/group/task/result.1.json",
                               .errors_path = place / "run/group/task/stderr.log",
                               .checkpoint_directory = place / "run/group/task/checkpoints",
                               .started = Duration::max(),
                               .told = "rank 1 failed",
                               .told_path = place / "run/group/task/stderr.log",
                               .followed_directory = place / "run"};
  const LeftBehind left = EndReader::read(question).left;
  EXPECT_EQ(left.result, std::nullopt);
  EXPECT_EQ(left.trouble,
            "'" + place.path() + "/run/group' is a symbolic link, not a directory; remove it");
  EXPECT_EQ(left.errors, "");
  EXPECT_FALSE(left.has_checkpoint);
  EXPECT_EQ(sys::content_of(place / "run/other/task/stderr.log"), "ValueError\n");
  EXPECT_FALSE(std::filesystem::exists(place / "run/other/task/result.1.json"));
  question.followed_directory = place / "run/group";
  const LeftBehind followed = EndReader::read(question).left;
  EXPECT_EQ(followed.result, "1") << "that link may be right";
  EXPECT_TRUE(followed.has_checkpoint);
}

}  // namespace
}  // namespace trainyard::process
