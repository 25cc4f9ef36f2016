// The files of a run on a machine that has no disk in common with its yard's: what an attempt needs
// goes there before it begins, what it has written comes back when it has ended, before its end is
// told, and what it prints meanwhile is added here as it is heard of.
//
//   start ──▶ its directory, and those that its command names, as far as they are here ──▶ there
//   ended ──▶ its directory ──▶ here
//
// What is here is the newest, as it came with the last end, but where an attempt was lost there and
// none has run since: then that is left as it is. Of what a dead execution has left there nobody
// knows: what is newer by its time stays.
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
#include "model/elsewhere.h"
#include "model/event.h"
#include "model/ids.h"
#include "run/file_mover.h"
#include "sys/event_loop.h"
#include "wire/agent.h"

namespace trainyard::run {

class UnsharedFiles {
 public:
  struct Options {
    std::vector<std::string> rsync;  ///< As FileMover's, and the next.
    std::string host;
    std::string directory;      ///< Of the code there: absolute, or seen from its user's home.
    std::string here;           ///< Where the code is here; absolute.
    Duration again_after{500};  ///< As FileMover's.
  };
  using Note = std::function<void(const std::string&)>;

  /// `note` is told what people should know.
  UnsharedFiles(sys::EventLoop& loop, Options options, Note note)
      : loop_(loop), options_(std::move(options)), note_(std::move(note)) {}

  /// Its agent has answered, which knows its home.
  void know_home(const std::string& home);
  /// Which run it is: after that. It is told by the names of there.
  void begin(wire::AgentBegin& begin);
  /// Something was there already when the run began there, which was another execution's.
  void found_something() { found_ = true; }
  /// By which names the directories are known there: that of the code since know_home(), that of
  /// the run since begin().
  [[nodiscard]] const model::Elsewhere& elsewhere() const { return elsewhere_; }

  /// Before an attempt is started there, whose directory is known by its name of there, and what it
  /// needs by those of here.
  void bring_for(model::AttemptKey key, const std::string& task_directory,
                 const std::vector<std::string>& needed, FileMover::Done done);
  /// Instead, of one that an earlier execution has started there.
  void go_on_with(model::AttemptKey key, const std::string& task_directory);
  /// When it has ended.
  void bring_back(model::AttemptKey key, FileMover::Done done);
  /// Nobody waits for that any more: it is told so.
  void give_up(model::AttemptKey key);
  /// When the run is over: all that is not here yet.
  void bring_the_rest(FileMover::Done done);
  /// A piece of a log.
  void add(const wire::AgentLog& log);
  /// In what an attempt has left, paths of there are paths of here.
  void make_own(model::AttemptEnded& ended) const;

  /// Nobody waits for what is on its way, nor for what has not come back: that is left there.
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
  /// What is there of these in this execution is known, and has come as it was last.
  std::map<model::TaskIndex, std::string> known_;
  bool cannot_add_ = false;  ///< That was told.
};

}  // namespace trainyard::run
