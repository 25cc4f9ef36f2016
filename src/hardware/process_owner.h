// Whose a process is. Reads /proc; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainyard::hardware {

/// The number of the user that a process belongs to, where it is another one than ours; nothing
/// when there is no such process here, as for one outside of our container.
std::optional<std::uint32_t> other_user_of(std::int64_t pid);

/// The program's name, at most 15 bytes of it; empty when there is no such process here.
std::string name_of_process(std::int64_t pid);

}  // namespace trainyard::hardware
