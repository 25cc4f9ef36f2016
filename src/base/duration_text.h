// Times as people write and read them: "90s", "2h30m", "1-12:00:00" in; "2:05:09", "0.4 s" out.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace trainyard {

/// Reads a length of time: "500ms", "90s", "15m" ("15min"), "2h", "1d", sums of these ("2h30m"),
/// and the clock forms "MM:SS", "HH:MM:SS" and Slurm's "D-HH:MM:SS". A bare number is an error that
/// says what was probably meant, except 0. Negative or longer than ten years is an error.
Result<Duration> parse_duration(std::string_view text);

/// For people: "0.4 s", "12.3 s", "4:05", "2:05:09", "3d 2:05:09".
std::string to_text(Duration duration);

}  // namespace trainyard
