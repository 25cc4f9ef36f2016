// Made-up rows of a journal for the tests of report/. Not part of the program.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/status.h"

namespace trainyard::report {

inline TaskRow started_row(std::string_view id) {
  TaskRow row;
  row.group_name = "train";
  row.id = id;
  row.attempt = 1;
  row.started = Instant{};
  row.memory_requested = gb(1);
  row.memory_peak = mb(300);
  return row;
}

inline TaskRow finished_row(std::string_view id, Duration took, std::string_view result) {
  TaskRow row = started_row(id);
  row.standing = {.status = Status::Exited, .verdict = Verdict::Finished};
  row.ended = Instant{took};
  row.cpu_time = took / 2;
  row.result = result;
  return row;
}

inline TaskRow failed_row(std::string_view id, Failure failure, std::string_view message) {
  TaskRow row = started_row(id);
  row.standing = {.status = Status::Exception, .verdict = Verdict::Failed, .failure = failure};
  row.ended = Instant{Duration{2000}};
  row.message = message;
  return row;
}

inline TaskRow skipped_row(std::string_view id, std::string_view message) {
  TaskRow row;
  row.group_name = "train";
  row.id = id;
  row.standing = {.status = Status::Init, .verdict = Verdict::Skipped};
  row.message = message;
  return row;
}

}  // namespace trainyard::report
