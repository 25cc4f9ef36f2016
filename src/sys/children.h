// The children that this thread has, as the kernel lists them.
//
// Neither waits for them nor signals them. For processes of one thread.
#pragma once

#include <vector>

#include <sys/types.h>

#include "sys/descriptor.h"
#include "sys/process_scan.h"

namespace trainyard::sys {

class ChildList {
 public:
  ChildList();

  /// The present children, including ended ones that have not been waited for. Costs a few
  /// microseconds; on a kernel without CONFIG_PROC_CHILDREN a look at all processes.
  std::vector<pid_t> read();

 private:
  Descriptor file_;  ///< /proc/self/task/<tid>/children.
  ProcessScan scan_;
};

}  // namespace trainyard::sys
