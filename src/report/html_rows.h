// The tables of a report: tasks, failures, and warnings about results. Row by row, so that not all
// are in memory. Pure.
#pragma once

#include <string>
#include <vector>

#include "journal/reader.h"
#include "report/digest.h"
#include "report/group_report.h"
#include "report/result_fields.h"

namespace trainyard::report {

class HtmlTaskTable {
 public:
  HtmlTaskTable(const GroupDigest& digest, const ReportHead& head);

  [[nodiscard]] std::string head() const;
  [[nodiscard]] std::string row(const journal::TaskRow& row) const;

 private:
  [[nodiscard]] std::string names(const journal::TaskRow& row) const;
  [[nodiscard]] std::string results(const journal::TaskRow& row) const;

  std::vector<std::string> matrix_keys_;
  std::vector<FieldColumn> columns_;
  bool more_;
  bool gpus_ = false;  ///< Whether any task had a GPU,
  bool caps_ = false;  ///< and was kept to a part of it.
  bool stages_;        ///< Whether its tasks load before they train.
  std::string best_id_;
  const ReportHead& head_;
};

/// Heading, and a row for each failure: task, stage, what, message, log.
std::string html_failure_head();
std::string html_failure_row(const journal::TaskRow& row);

/// Heading, and a row for each result that was lost or changed: task, status, message, log.
std::string html_warning_head();
std::string html_warning_row(const journal::TaskRow& row);

}  // namespace trainyard::report
