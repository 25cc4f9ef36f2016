// The main function of the process that sends notices and mail (tell/teller.h).
#pragma once

#include "tell/teller.h"

namespace trainyard::tell {

/// In the fork; `socket` is its end of that to the yard. It has nothing else of its parent, and
/// ends soon after that has.
[[noreturn]] void become_teller(int socket, TellerOptions options);

}  // namespace trainyard::tell
