// How long the guard bears a keeper that does not answer, counted in its own looks: a look that the
// machine did not let it have, because it slept, was paused or had too much to do, does not count
// against anybody.
//
// Decides, and touches nothing. Any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace trainyard::process {

class KeeperPatience {
 public:
  /// So many looks in a row may find it stopped though each has told it to go on.
  static constexpr int kStoppedMax = 5;
  /// And so many it may be silent, whatever it does.
  static constexpr int kSilentMax = 60;

  /// What a look sees of it in /proc.
  struct Seen {
    char state = 'S';
    std::int64_t major_faults = 0;
  };
  enum class Step : std::uint8_t {
    Wait,
    Wake,  ///< It is told to go on.
    Kill,  ///< Another one is to take its place.
  };

  /// The yard has waited for an answer in vain.
  void falls_silent();
  void has_answered() { *this = {}; }
  [[nodiscard]] bool is_silent() const { return silent_; }

  /// One look; nothing: it could not be seen.
  Step look(const std::optional<Seen>& keeper);

 private:
  bool silent_ = false;
  int looks_ = 0;
  int found_stopped_ = 0;  ///< In a row.
  std::int64_t major_faults_ = 0;
};

}  // namespace trainyard::process
