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

/// The part that the reports of all groups share.
struct ReportHead {
  std::string job;
  journal::ExecutionRow execution;  ///< The last one.
  Instant now;                      ///< The end of the run, or its last sign of life.
  bool machines = false;            ///< The last one had several: tasks are shown with theirs.
};

enum class Which : std::uint8_t {
  All,
  Failed,
  Warned,  ///< Tasks whose result is missing or changed.
};
using TaskVisitor = std::move_only_function<bool(journal::TaskRow)>;

/// Visits the tasks of the group in the order of the job file, at each call; the visitor returns
/// false to stop.
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
  /// The record of its workers that a task left, if the task is a parallel run; costs a read from
  /// the disk. None: workers are not shown.
  std::function<Result<std::optional<wire::ParallelRecord>>(const journal::TaskRow&)> record_of =
      {};
};

}  // namespace trainyard::report
