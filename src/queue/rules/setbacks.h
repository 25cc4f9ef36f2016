// The setbacks of the runs of a queue, for which no task is to blame: a process was killed, a run
// ended incomplete (exit code 75), or could not start as the machine is short of something. Pure:
// the server (queue/queue_server.h) has the files and the timers.
//
//   Setbacks setbacks;
//   setbacks.note_end(7, {.why = "no machine is left"}, finished, now);
//   setbacks.pause_left(7, now);  // a minute
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <variant>

#include "base/time.h"
#include "queue/rules/next_step.h"
#include "queue/rules/submission.h"

namespace trainyard::queue {

/// After this number of ends in a row a run that began is not resumed any more.
constexpr int kIncompleteEndsMax = 6;

/// Counts deaths in a row until the next end. A run is incomplete from such an end until the
/// submission ends, also while it is active again.
class Setbacks {
 public:
  /// Takes over a run that an earlier server found incomplete.
  void take_up(std::uint32_t number, const IncompleteRun& run);

  void note_death(std::uint32_t number);
  [[nodiscard]] int deaths_of(std::uint32_t number) const;

  /// Counts an end at this time, after which the pause is 1 minute, 2, 4, ... at most 30. Returns
  /// the run to note in its file, or the end of a run that began and is not resumed any more.
  [[nodiscard]] std::variant<IncompleteRun, EndedSubmission> note_end(std::uint32_t number,
                                                                      const SetAside& step,
                                                                      int finished,
                                                                      std::int64_t unix_ms);
  /// Notes that a run which could not start before has started: others may start, too.
  void note_start(std::uint32_t number);
  /// Forgets the setbacks of a submission that has ended.
  void forget(std::uint32_t number);
  /// Forgets the incomplete runs of these submissions.
  void forget_if(const std::function<bool(std::uint32_t number)>& is_gone);

  [[nodiscard]] bool is_incomplete(std::uint32_t number) const;
  /// The rest of the pause of an incomplete run.
  [[nodiscard]] Duration pause_left(std::uint32_t number, std::int64_t unix_ms) const;
  /// Whether a run could not start, as the machine is short of something: no other could either.
  [[nodiscard]] bool is_machine_short() const;

 private:
  std::map<std::uint32_t, int> deaths_;
  std::map<std::uint32_t, IncompleteRun> incomplete_;
};

}  // namespace trainyard::queue
