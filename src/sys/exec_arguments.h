// Preparation of a fork for becoming another program. Any thread.
#pragma once

#include <string>
#include <vector>

namespace trainyard::sys {

/// Arguments for execv(3): pointers to the texts, which must stay where they are, and a null
/// pointer.
std::vector<char*> pointers_to(const std::vector<std::string>& texts);

/// All signals do what they do by default, and none is blocked. In a fork.
void make_signals_default();

}  // namespace trainyard::sys
