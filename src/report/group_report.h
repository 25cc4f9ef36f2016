// Everything that the report of one group is made of, as values and one way to go through its
// tasks. Filled by report/write_reports.h, or by hand in a test.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "report/curves.h"
#include "report/digest.h"
#include "wire/parallel_record.h"

namespace trainyard::report {

/// What the reports of all groups have in common.
struct ReportHead {
  std::string job;
  journal::ExecutionRow execution;  ///< The last one.
  Instant now;                      ///< The end of the run, or its last sign of life.
  bool machines = false;            ///< The last one had several: tasks are shown with theirs.
};

enum class Which : std::uint8_t {
  All,
  Failed,
  Warned,  ///< Those whose result was lost or changed.
};
using TaskVisitor = std::move_only_function<bool(journal::TaskRow)>;

/// Goes through the tasks of the group in the order of the job file, as often as it is asked; the
/// visitor returns false to stop.
using TaskSource = std::move_only_function<Result<void>(Which, TaskVisitor)>;

struct GroupReport {
  const ReportHead& head;
  const GroupDigest& digest;
  std::span<const journal::AttemptRow> attempts;
  std::span<const journal::SampleRow> samples;
  std::function<std::string(model::TaskIndex)> id_of;
  std::function<bool(model::AttemptKey)>
      was_stopped;  ///< Ended with the whole run, by an interrupt.
  TaskSource& tasks;
  std::span<const Curve> curves;
  /// What a task that is a parallel run left of its workers; costs a look at the disk. None: that
  /// is not shown.
  std::function<Result<std::optional<wire::ParallelRecord>>(const journal::TaskRow&)> record_of =
      {};
};

}  // namespace trainyard::report
