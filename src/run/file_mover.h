// Moves files of a run to a machine that has no disk in common with ours, and back, by rsync: one
// program at a time, which moves all that waits to go the same way.
//
// What fails as nothing leads there at present is tried again until it is forgotten; what rsync
// itself cannot do, a few times, or as long where the whole of it must come: a full disk may be
// cleared.
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
#include "model/elsewhere.h"
#include "sys/event_loop.h"
#include "sys/line_stream.h"
#include "sys/stream_program.h"

namespace trainyard::run {

class FileMover {
 public:
  /// How often what rsync cannot do is tried.
  static constexpr int kTriesMax = 3;
  /// So many directories one program moves at most.
  static constexpr std::size_t kTogetherMax = 100;

  struct Options {
    /// rsync, and how it reaches the machine: {"rsync", "-e", "ssh -T"}.
    std::vector<std::string> rsync;
    std::string host;               ///< What rsync calls the machine: "me@lab1".
    model::Elsewhere::Place place;  ///< The run's directory.
    /// Told in words for people what keeps a move waiting, once of each. May be missing.
    std::function<void(const std::string&)> on_trouble = nullptr;
    /// Between two tries, at first; twice as long each time, up to 10 s.
    Duration again_after{500};
  };
  /// Told once it is done, or given up. Not for what is forgotten.
  using Done = std::move_only_function<void(const Result<void>&)>;

  FileMover(sys::EventLoop& loop, Options options) : loop_(loop), options_(std::move(options)) {}
  FileMover(FileMover&&) = delete;
  FileMover& operator=(FileMover&&) = delete;
  ~FileMover();

  /// What becomes of what is there already.
  enum class Push : std::uint8_t {
    Over,       ///< It is as here afterwards, and what is not here stays.
    Mirror,     ///< What is not here is deleted there.
    KeepNewer,  ///< What is newer there stays, as do logs and results of attempts.
  };
  /// These directories, seen from the run's, go there.
  void push(Push how, std::vector<std::string> directories, Done done);
  /// This directory comes here and is as there afterwards, but for logs and results of attempts
  /// that ran elsewhere. One that is not there is left as it is.
  void pull(std::string directory, Done done);
  /// All comes that is not here, but for what is in these directories.
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
    bool alone = false;  ///< With others it has failed, and whose fault that was is not known.
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
  std::string rules_;         ///< A file that says what is left out of the rest.
  int tries_ = 0;
  Duration pause_{0};
  std::optional<sys::StreamProgram> program_;
  std::unique_ptr<sys::LineStream> stream_;
  std::optional<sys::EventLoop::TimerId> timer_;
};

/// The cause, of what such a program has said on standard error.
std::string why_it_moved_nothing(std::string_view errors, int exit_code);
/// A pattern of rsync's for this path alone, seen from where the move begins.
std::string pattern_of(std::string_view path);

}  // namespace trainyard::run
