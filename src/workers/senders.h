// The workers of a role that may still send to one worker, so that it does not wait for events that
// cannot come. Pure; one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wire/worker.h"

namespace trainyard::workers {

struct Senders {
  /// "worker 1 (collector)"
  std::vector<std::string> left;
  /// Why nothing can come any more; empty while something may.
  std::string why_none;
};

/// Workers with that role whose events `own` receives. `over` has the last message about those that
/// have finished.
Senders senders_of(const wire::RollWord& word, const std::map<int, wire::PeerWord>& over, int own,
                   std::string_view role);

/// The first names and the number of the others.
std::string listed(const std::vector<std::string>& names);

}  // namespace trainyard::workers
