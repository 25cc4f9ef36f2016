// Moves files of a run to a machine that has no disk in common with ours, and back, by rsync: one
// program at a time, which moves all that waits to go the same way.
//
// A move that fails as nothing leads there at present is retried until it is forgotten. A failure
// of rsync itself is retried a few times, or as long as needed if the whole move must succeed: a
// full disk may be cleared.
//
// Belongs to the thread of its loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/launch.h"
#include "sys/event_loop.h"
#include "sys/line_stream.h"
#include "sys/stream_program.h"

namespace trainyard::run {

class FileMover {
 public:
  /// Number of tries after failures of rsync itself.
  static constexpr int kTriesMax = 3;
  /// Number of directories that one program moves at most.
  static constexpr std::size_t kTogetherMax = 100;

  struct Options {
    /// rsync, and how it reaches the machine: {"rsync", "-e", "ssh -T"}.
    std::vector<std::string> rsync;
    std::string host;               ///< The machine's name for rsync: "me@lab1".
    model::Elsewhere::Place place;  ///< The run's directory.
    /// Receives messages for users about the cause that delays a move, once each. May be missing.
    std::function<void(const std::string&)> on_trouble = nullptr;
    /// Delay between two tries, at first; twice as long each time, up to 10 s.
    Duration again_after{500};
  };
  /// Called once the move is done, or given up. Not called for a forgotten move.
  using Done = std::move_only_function<void(const Result<void>&)>;

  FileMover(sys::EventLoop& loop, Options options) : loop_(loop), options_(std::move(options)) {}
  FileMover(FileMover&&) = delete;
  FileMover& operator=(FileMover&&) = delete;
  ~FileMover();

  /// The treatment of files that are there already.
  enum class Push : std::uint8_t {
    Over,       ///< Files are as here afterwards; others stay.
    Mirror,     ///< Files that are not here are deleted there.
    KeepNewer,  ///< Newer files there stay, as do logs and results of attempts.
  };
  /// These directories, seen from the run's, go there.
  void push(Push how, std::vector<std::string> directories, Done done);
  /// Fetches this directory, which is as there afterwards, but for logs and results of attempts
  /// that ran elsewhere. A directory that does not exist there is left as it is.
  void pull(std::string directory, Done done);
  /// Fetches all that is not here, but for the content of these directories.
  void pull_the_rest(const std::vector<std::string>& but_for, Done done);

  /// Stops all transfers, and calls no callback of them any more.
  void forget();
  /// Stops the transfers to this machine, and calls no callback of them any more.
  void forget_pulls();

 private:
  enum class Way : std::uint8_t { Over, Mirror, KeepNewer, Here, TheRest };
  struct Move {
    Way way = Way::Over;
    std::vector<std::string> directories;
    Done done;
    bool alone = false;  ///< It has failed with others, and the culprit is not known.
  };

  void add(Move move);
  void begin();
  void go();
  void watch();
  void end();
  void stop_program();
  void stop_timer();
  void wait_for_another_try(const std::string& why);
  void tell(const Result<void>& done);
  void move_each_alone();
  [[nodiscard]] std::vector<std::string> command() const;
  void add_rules(std::vector<std::string>& words) const;
  [[nodiscard]] bool is_worth_another_try(int exit_code) const;

  sys::EventLoop& loop_;
  Options options_;
  std::deque<Move> waiting_;
  std::vector<Move> moving_;  ///< All the same way.
  std::string rules_;         ///< A file with the paths that are left out of the rest.
  int tries_ = 0;
  Duration pause_{0};
  std::optional<sys::StreamProgram> program_;
  std::unique_ptr<sys::LineStream> stream_;
  std::optional<sys::EventLoop::TimerId> timer_;
};

/// The cause, from the standard error of such a program.
std::string why_it_moved_nothing(std::string_view errors, int exit_code);
/// A pattern of rsync for this path alone, relative to the start of the move.
std::string pattern_of(std::string_view path);

}  // namespace trainyard::run
