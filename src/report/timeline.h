// The positions of a group's attempts in a picture, and the picture itself. Attempts are in lanes,
// so that those that ran at the same time are below each other, and are few enough to draw. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "report/html_page.h"

namespace trainyard::report {

/// The axis of a picture whose time goes to the right.
struct TimeAxis {
  Duration span{0};
  double height = 0;  ///< The height of the picture that its lines cross.
  double right = 0;   ///< A mark that is nearer to it ends there.
};
/// Lines with their times below them, as SVG, in steps that people count in. `x_of`: the position
/// of a time.
std::string time_axis_svg(const TimeAxis& axis, const std::function<double(Duration)>& x_of);

enum class Outcome : std::uint8_t { Finished, Running, Stopped, OutOfMemory, Failed };
/// The color and the word of an outcome.
LegendEntry legend_of(Outcome outcome);

/// One attempt, or several that are too short to be seen one by one.
struct Bar {
  int lane = 0;
  Duration from{0};  ///< Since the timeline's start.
  Duration to{0};
  model::AttemptKey key;                ///< The first one.
  Outcome outcome = Outcome::Finished;  ///< The worst one.
  int attempts = 1;
  int failed = 0;       ///< The number that failed, out of memory included.
  std::string machine;  ///< The machine; empty if lanes are not by machine.
};

struct Timeline {
  static constexpr std::size_t kBarsMax = 2000;
  static constexpr int kLanesMax = 200;

  Instant start;
  Duration span{0};
  std::vector<Bar> bars;  ///< Lane by lane, in order of time.
  int lanes = 0;
  int left_out = 0;     ///< Attempts that lie in lanes over the limit.
  bool merged = false;  ///< A bar may be several attempts.
};

struct LayOut {
  Instant now;  ///< The end of what still runs.
  /// The attempt was ended with the whole run.
  std::function<bool(model::AttemptKey)> was_stopped;
  bool by_machine = false;  ///< The lanes of each machine are its own, and lie together.
};
Timeline lay_out(std::span<const journal::AttemptRow> attempts, const LayOut& how);

/// Draws it, and the memory of all tasks below it, as SVG. `id_of` names the task of a bar.
/// `samples` may be of the whole run: those outside are not drawn. Its size is bounded by the
/// timeline's limits.
std::string timeline_svg(const Timeline& timeline, std::span<const journal::SampleRow> samples,
                         const std::function<std::string(model::TaskIndex)>& id_of);

}  // namespace trainyard::report
