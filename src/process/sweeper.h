// Deletes what is in directories, in a process of its own: a large file takes its time, and a disk
// that does not answer holds up that process alone.
//
//   sweep ──▶ waits ──▶ is deleted ──▶ heard of
//                           │ the process died: heard of as not deleted, the next has another
//
// Nothing here waits but wait(). Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "sys/descriptor.h"
#include "sys/open_file.h"

namespace trainyard::process {

class Sweeper {
 public:
  /// The maximum number of directories that are asked for and not reported yet.
  static constexpr std::size_t kAskedMax = 64;

  struct Options {
    /// Absolute: the directories are below it. A task may move it, and put another in its place:
    /// what counts is the directory that it is when the sweeper is made.
    std::string root;
    /// Whether an entry of a directory stays, by its name; called in the other process.
    std::function<bool(std::string_view)> kept;
  };
  /// The process is started when there is something to do.
  explicit Sweeper(Options options)
      : options_(std::move(options)),
        root_(sys::open_directory(options_.root, {}).value_or(sys::Descriptor())) {}
  Sweeper(Sweeper&&) = delete;
  Sweeper& operator=(Sweeper&&) = delete;
  /// Directories that have not been deleted stay.
  ~Sweeper();

  /// Whether sweep() may be called.
  [[nodiscard]] bool has_room() const { return asked_.size() < kAskedMax; }
  [[nodiscard]] bool is_idle() const { return asked_.empty(); }
  /// `directory` as in sys/remove_below.h; `number` is for the caller.
  void sweep(std::uint32_t number, const std::string& directory);

  struct Swept {
    std::uint32_t number = 0;
    Bytes bytes;
    std::vector<std::string> failed;  ///< Some entries that could not be deleted, and why.
  };
  /// The directories deleted since the last call, in the order in which they were asked for.
  std::vector<Swept> hear();
  /// The same, and waits for some of it, but no longer than this.
  std::vector<Swept> wait(Duration most);

 private:
  struct Asked {
    std::uint32_t number = 0;
    std::string directory;
  };
  bool start();
  void hand_over();
  void leave();
  void give_up(std::vector<Swept>& heard, std::string_view why);

  Options options_;
  sys::Descriptor root_;
  std::int64_t pid_ = 0;  ///< 0: there is none.
  sys::Descriptor socket_;
  std::deque<Asked> asked_;  ///< Those already sent come first.
  std::size_t handed_over_ = 0;
};

}  // namespace trainyard::process
