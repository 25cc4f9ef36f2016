// A token that identifies a process that we have started: a text that nobody can guess.
//
// No state; any thread.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::sys {

/// 32 digits, hexadecimal, of the kernel's randomness.
std::string random_token();

/// Takes as long when they differ in the first digit as in the last.
bool same_token(std::string_view one, std::string_view other);

}  // namespace trainyard::sys
