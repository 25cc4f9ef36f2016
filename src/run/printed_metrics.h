// The metrics that an attempt prints: reads the new end of its logs now and then, and keeps the
// last value of each. The output goes to these files without us, so it is never held up, and still
// shows the progress.
//
//   the logs ──▶ pieces ──▶ lines ──▶ "::metric loss=0.31", or what the pattern of the task finds
//
// Bounded, whatever is printed: one look reads a limited amount, and only the end of a log that
// grows faster, as the last value counts; a line that is too long is skipped. A log that does not
// exist, or is not a plain file, has no metrics.
//
// Belongs to one thread, which waits for the disk: the logs lie in the directory of the run, as the
// journal does.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/tail.h"
#include "wire/metric_line.h"

namespace trainyard::run {

/// Returns the metrics in a line that a task printed, and the first one in it that is not a number,
/// as in "acc=0.9.". May be missing.
using LinePattern = std::move_only_function<wire::MetricLine(std::string_view line) const>;

class PrintedMetrics {
 public:
  /// Bytes of one log that are read at once: its last ones.
  static constexpr std::size_t kOfALogMax = std::size_t{1} << 20;
  /// Bytes of all logs of all attempts that are read in one turn.
  static constexpr std::size_t kOfATurnMax = 4 * kOfALogMax;

  /// For an attempt that has no logs: there is nothing to read.
  PrintedMetrics() = default;
  /// The logs need not be there yet.
  PrintedMetrics(const std::vector<std::string>& logs, LinePattern pattern);

  /// Reads new output in the logs, about `bytes_max` at most of each. Returns the number of bytes
  /// read.
  std::size_t look(std::size_t bytes_max = kOfALogMax);
  /// The attempt has ended: reads the rest, and takes an unfinished line for a line.
  void finish();

  [[nodiscard]] const wire::LastMetrics& last() const { return last_; }
  [[nodiscard]] bool has_pattern() const { return static_cast<bool>(pattern_); }
  /// For people: metrics in the output that were lost, "printed metric 'acc=87%' is not valid (and 9
  /// more): write NAME=NUMBER", the same of what the pattern found, and, if the attempt has
  /// succeeded, that the pattern found nothing. Empty: none was.
  [[nodiscard]] std::string warning(bool succeeded) const;
  /// Whether there was a new value since the last call.
  [[nodiscard]] bool take_news() { return last_.take_news(); }

 private:
  struct Log {
    sys::Tail tail;
    std::string half;       ///< A line that has not ended yet.
    bool too_long = false;  ///< The line is skipped until its end.
  };
  struct Mistakes {
    std::string first;
    std::size_t lines = 0;  ///< Number of lines with one.
  };
  std::size_t look(Log& log, std::size_t bytes_max);
  void take(Log& log, std::string_view piece);
  void end_line(Log& log);
  void read_line(std::string_view line);
  /// Returns whether the line has a metric.
  bool add(wire::MetricLine line, Mistakes& mistakes);

  std::vector<Log> logs_;
  LinePattern pattern_;
  bool found_ = false;    ///< The pattern has found a number.
  bool skipped_ = false;  ///< Output was not read: the pattern might have found one there.
  Mistakes printed_;      ///< In lines of metrics.
  Mistakes matched_;      ///< In lines that the pattern matches.
  wire::LastMetrics last_;
};

}  // namespace trainyard::run
