// The page of a run: its groups, and how what their tasks came to changes from group to group, as
// the accuracy does over the rounds of a federation. Pure: rows in, HTML out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "journal/reader.h"
#include "report/curves.h"
#include "report/group_report.h"
#include "report/result_fields.h"
#include "report/sink.h"

namespace trainyard::report {

/// A field of the results of one group's tasks that is a number.
struct NumberOfGroup {
  std::string key;
  int count = 0;
  double sum = 0;
  double least = 0;
  double most = 0;

  friend bool operator==(const NumberOfGroup&, const NumberOfGroup&) = default;
};

/// Gathers them: at most FieldColumns::kKeysMax, the first ones that came up.
class NumbersOfGroup {
 public:
  void look_at(const Fields& fields);
  [[nodiscard]] const std::vector<NumberOfGroup>& all() const { return numbers_; }

 private:
  std::vector<NumberOfGroup> numbers_;
};

struct OverviewRow {
  journal::GroupRow group;
  std::string link;  ///< To its own report, from the page.
  std::optional<Duration> took;
  std::optional<Best> best;
  int edited = 0;  ///< The number of tasks that finished before the job file was edited.
  std::vector<NumberOfGroup> numbers;
};

/// The maximum to draw; if there are more groups the page shows the last ones, and says so.
constexpr std::size_t kOverviewGroupsMax = 1000;
constexpr std::size_t kOverviewCurvesMax = 4;

/// One chart for each score that at least two groups have, from the first to the last of them: the
/// mean over the group's tasks, with the least and the most if they differ. Without an obvious
/// score, the first numbers that came up.
std::vector<Curve> curves_over_groups(std::span<const OverviewRow> rows);

void write_overview(const ReportHead& head, std::span<const OverviewRow> rows, Sink& sink);

}  // namespace trainyard::report
