// Keeps the logs of attempts that run to what they may take of the disk (limits.log), and says once
// of each that some of it was dropped.
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

/// Where the first process of an attempt prints, each file once: what people read first is first.
std::vector<std::string> streams_of(const model::Launch& launch);

/// The same of all of its processes.
std::vector<std::string> logs_of(const model::Launch& launch);

class LogBounds {
 public:
  /// Told what people should know, in a line. May be missing.
  using OnNote = std::move_only_function<void(const std::string&)>;

  /// 0: they may take any amount.
  explicit LogBounds(Bytes most) : most_(most) {}

  /// Costs a stat(2) of each.
  void look(const std::vector<std::string>& logs, OnNote& on_note);

 private:
  Bytes most_;
  std::set<std::string> told_;
  bool cannot_ = false;  ///< That was said.
};

}  // namespace trainyard::run
