// The files of a run on a machine that shares no disk with its yard's: files that an attempt needs
// go there before it begins, its files come back when it has ended, before its end is reported, and
// its output is added here meanwhile.
//
//   start ──▶ its directory, and those that its command names, as far as they are here ──▶ there
//   ended ──▶ its directory ──▶ here
//
// The files here are the newest, as they came with the last end, unless an attempt was lost there
// and none has run since: then those there are left as they are. Nobody knows the age of the
// remains of a dead execution there: files that are newer by their time stay.
//
// There the run has a directory of its own, below that of the code: .trainyard/sweep-0a1b2c3d.
//
// Belongs to the thread of its loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "run/file_mover.h"
#include "sys/event_loop.h"
#include "wire/agent.h"

namespace trainyard::run {

class UnsharedFiles {
 public:
  struct Options {
    std::vector<std::string> rsync;  ///< See FileMover, like `host`.
    std::string host;
    std::string directory;      ///< Of the code there: absolute, or relative to its user's home.
    std::string here;           ///< The code's directory here; absolute.
    Duration again_after{500};  ///< See FileMover.
  };
  using Note = std::function<void(const std::string&)>;

  /// `note` receives notes for the user.
  UnsharedFiles(sys::EventLoop& loop, Options options, Note note)
      : loop_(loop), options_(std::move(options)), note_(std::move(note)) {}

  /// Its agent has answered, and knows its home.
  void know_home(const std::string& home);
  /// Tells it the run: after that. The message gets the paths of there.
  void begin(wire::AgentBegin& begin);
  /// Another execution had left files there when the run began.
  void found_something() { found_ = true; }
  /// The paths there of the directories: that of the code since know_home(), that of the run since
  /// begin().
  [[nodiscard]] const model::Elsewhere& elsewhere() const { return elsewhere_; }

  /// Call before an attempt is started there. `task_directory` is the path there, `needed` are
  /// paths here.
  void bring_for(model::AttemptKey key, const std::string& task_directory,
                 const std::vector<std::string>& needed, FileMover::Done done);
  /// Instead, for an attempt that an earlier execution has started there.
  void go_on_with(model::AttemptKey key, const std::string& task_directory);
  /// Call when it has ended.
  void bring_back(model::AttemptKey key, FileMover::Done done);
  /// The files are not waited for any more: `done` is called with an error.
  void give_up(model::AttemptKey key);
  /// When the run is over: fetches all that is not here yet.
  void bring_the_rest(FileMover::Done done);
  /// A piece of a log.
  void add(const wire::AgentLog& log);
  /// Replaces paths of there by paths of here in the results of an attempt.
  void make_own(model::AttemptEnded& ended) const;

  /// Files in flight are not waited for, nor those that have not come back: they are left there.
  void forget();

 private:
  [[nodiscard]] std::optional<std::string> place_here(std::string_view there) const;
  void push_own(model::AttemptKey key, const std::string& directory, FileMover::Done done);

  sys::EventLoop& loop_;
  Options options_;
  Note note_;
  model::Elsewhere elsewhere_;
  std::unique_ptr<FileMover> mover_;  ///< Since begin().
  bool found_ = false;
  /// Directories of attempts that run there, or whose files are being fetched; relative to the run
  /// directory.
  std::map<model::AttemptKey, std::string> directories_;
  std::map<model::AttemptKey, FileMover::Done> coming_;
  std::map<model::TaskIndex, std::uint32_t> lost_;  ///< The last attempt that was lost there.
  /// Directories there whose content in this execution is known, and has been fetched.
  std::map<model::TaskIndex, std::string> known_;
  bool cannot_add_ = false;  ///< That was reported.
};

}  // namespace trainyard::run
