// The last lines of what a rank has printed, for who tells that it died. No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace trainyard::ranks {

/// At most so many lines, and 16 KiB; empty when there is no such file.
std::string end_of_log(const std::string& path, std::size_t lines_max);

/// "<directory>/rank-1.log", and "<directory>/rank-1.2.log" of the second attempt.
std::string log_of_rank(const std::string& directory, int rank, std::uint32_t attempt = 1);

}  // namespace trainyard::ranks
