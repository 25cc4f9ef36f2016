// Made-up rows of a journal for the tests of report/. Not part of the program.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/status.h"

namespace trainyard::report {

inline journal::TaskRow started_row(std::string_view id) {
  journal::TaskRow row;
  row.group_name = "train";
  row.id = id;
  row.directory = "train/" + row.id;
  row.attempt = 1;
  row.started = Instant{};
  row.first_started = row.started;
  row.memory_requested = gb(1);
  row.memory_planned = gb(1);
  row.memory_peak = mb(300);
  return row;
}

inline journal::TaskRow finished_row(std::string_view id, Duration took, std::string_view result) {
  journal::TaskRow row = started_row(id);
  row.standing = {.status = Status::Exited, .verdict = model::Verdict::Finished};
  row.ended = Instant{took};
  row.cpu_time = took / 2;
  row.result = result;
  return row;
}

inline journal::TaskRow failed_row(std::string_view id, model::Failure failure,
                                   std::string_view message) {
  journal::TaskRow row = started_row(id);
  row.standing = {
      .status = Status::Exception, .verdict = model::Verdict::Failed, .failure = failure};
  row.ended = Instant{Duration{2000}};
  row.message = message;
  return row;
}

inline journal::TaskRow skipped_row(std::string_view id, std::string_view message) {
  journal::TaskRow row;
  row.group_name = "train";
  row.id = id;
  row.directory = "train/" + row.id;
  row.standing = {.status = Status::Init, .verdict = model::Verdict::Skipped};
  row.message = message;
  return row;
}

}  // namespace trainyard::report
