// Keeps the logs of running attempts within their maximum on disk (limits.log), and reports once
// for each that some of it was dropped.
//
// Belongs to the thread of the machine.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model/launch.h"

namespace trainyard::run {

/// The outputs of the first process of an attempt, each file once: the one to read first comes
/// first.
std::vector<std::string> streams_of(const model::Launch& launch);

/// The same of all of its processes.
std::vector<std::string> logs_of(const model::Launch& launch);

class LogBounds {
 public:
  /// Receives notes for the user, a line each. May be missing.
  using OnNote = std::move_only_function<void(const std::string&)>;

  /// 0: any size is allowed.
  explicit LogBounds(Bytes most) : most_(most) {}

  /// Costs a stat(2) of each.
  void look(const std::vector<std::string>& logs, OnNote& on_note);

 private:
  Bytes most_;
  std::set<std::string> told_;
  bool cannot_ = false;  ///< It was reported that a log cannot be bounded.
};

}  // namespace trainyard::run
