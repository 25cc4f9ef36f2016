// The control group (version 2) that was given to us to make groups of our own in.
//
// A group can have processes or groups with limits, not both. So every process in ours, perhaps the
// shell that started us, is moved into a leaf below it, named "trainyard". A process that is
// started from there later finds everything in place.
//
// find_delegated_group() changes nothing. Any thread, but open_delegated_group() before the first
// task is started.
#pragma once

#include <string>

#include "base/result.h"
#include "hardware/cgroup.h"

namespace trainyard::process {

struct DelegatedGroup {
  std::string path;          ///< Its directory; empty where there is none.
  bool is_open = false;      ///< Groups with limits of memory can be made in it right now.
  bool has_regions = false;  ///< Opened, they can have limits of GPU memory, too.
  std::string why_not;       ///< For people, where there is none.
};

DelegatedGroup find_delegated_group(const hardware::Cgroups& groups);
/// The group of this process.
DelegatedGroup find_delegated_group();

/// Makes it so that groups with limits of memory can be made in it.
Result<void> open_delegated_group(DelegatedGroup& group);

}  // namespace trainyard::process
