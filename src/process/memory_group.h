// Control groups (version 2): the one that was given to us, and in it one for each attempt. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/bytes.h"
#include "base/result.h"
#include "hardware/cgroup.h"
#include "model/launch.h"

namespace trainyard::process {

/// The control group of one attempt: the kernel keeps the memory of all its processes together below
/// a limit, and kills them all when they need more. GPU memory beyond a limit is refused. Made in a
/// directory that find_delegated_group() has found.
class MemoryGroup {
 public:
  /// No group: it holds no process, and has no limit.
  MemoryGroup() = default;
  MemoryGroup(MemoryGroup&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  MemoryGroup& operator=(MemoryGroup&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  /// Removes the group, if it has no process any more.
  ~MemoryGroup();

  /// The maximum for its processes together.
  struct Limits {
    Bytes memory;  ///< No swap beside it; 0: any amount.
    std::vector<model::RegionLimit> regions;
  };
  /// Makes the group at `path`.
  static Result<MemoryGroup> make(std::string path, const Limits& limits);

  [[nodiscard]] bool is_there() const { return !path_.empty(); }

  /// The file to which a process writes "0" to enter it.
  [[nodiscard]] std::string door() const { return path_ + "/cgroup.procs"; }

  /// Takes in a process, but not the children that it has already, nor what it holds by now.
  [[nodiscard]] Result<void> take_in(pid_t pid) const;

  /// How many of its processes the kernel has killed as memory ran out: below the limit, or on the
  /// machine as a whole. Nothing without a group.
  [[nodiscard]] std::optional<std::int64_t> oom_kills() const;

  /// Whether they were killed because they needed more than the limit. False if the machine as a
  /// whole has run out of memory.
  [[nodiscard]] bool is_over_limit() const;

  /// The most that its processes have had together, pages of files among it. Nothing where the
  /// kernel does not say, and where the limit was in the way: that says what they may have, and not
  /// what they would.
  [[nodiscard]] Bytes peak() const;

  /// Whether a process is in it that has not ended.
  [[nodiscard]] bool has_processes() const;

  /// Ends all that are in it.
  void kill() const;

 private:
  explicit MemoryGroup(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Changes the limit of the group at `path`, which another process may have made. If that is not
/// possible, as its processes have ended, it stays.
void change_memory_limit(const std::string& path, Bytes most);

/// Removes the group at `path`, whose maker has died. If a process is in it, it stays.
void remove_group(const std::string& path);

/// Writes into a file of a control group, which takes all of it or nothing. Returns an errno, or 0.
int write_control(const std::string& path, std::string_view text);
/// The same, told as an error for people.
Result<void> set_control(const std::string& path, std::string_view text);

/// The control group (version 2) that was given to us to make groups of our own in.
///
/// A group can have processes or groups with limits, not both. So every process in ours, perhaps the
/// shell that started us, is moved into a leaf below it, named "trainyard". A process that is
/// started from there later finds everything in place.
///
/// find_delegated_group() changes nothing. Any thread, but open_delegated_group() before the first
/// task is started.
struct DelegatedGroup {
  std::string path;          ///< Its directory; empty where there is none.
  bool is_open = false;      ///< Groups with limits of memory can be made in it right now.
  bool has_regions = false;  ///< Opened, they can have limits of GPU memory, too.
  std::string why_not;       ///< For people, where there is none.
};

DelegatedGroup find_delegated_group(const hardware::Cgroups& groups);
/// The group of this process.
DelegatedGroup find_delegated_group();

/// Makes it so that groups with limits of memory can be made in it.
Result<void> open_delegated_group(DelegatedGroup& group);

}  // namespace trainyard::process
