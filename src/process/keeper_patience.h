// The patience of the guard with a keeper that does not answer, counted in its own looks. A look
// that the machine did not let it have, because it slept, was paused or had too much to do, does
// not count.
//
// Decides, and touches nothing. Any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace trainyard::process {

class KeeperPatience {
 public:
  /// The number of looks in a row that may find it stopped though each has continued it.
  static constexpr int kStoppedMax = 5;
  /// The number of looks in a row at which it may be silent, whatever it does.
  static constexpr int kSilentMax = 60;

  /// The state of the keeper in /proc at a look.
  struct Seen {
    char state = 'S';
    std::int64_t major_faults = 0;
  };
  enum class Step : std::uint8_t {
    Wait,
    Wake,  ///< It is continued.
    Kill,  ///< Another one is to take its place.
  };

  /// The yard has waited for an answer without one.
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
