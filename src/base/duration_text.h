// Times as people write and read them: "90s", "2h30m", "1-12:30" in; "2h5m", "1m30s" out.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace trainyard {

/// Reads a length of time: "500ms", "90s", "15m" ("15min"), "2h", "1d", sums of these ("2h30m"),
/// and these forms of Slurm: "H:M:S", "D-H", "D-H:M" and "D-H:M:S". What follows the days is
/// hours: "1-12:30" is 36 h 30 min. A bare number is an error that names both readings, except 0,
/// and so are two numbers: users read "1:30" as 1 h 30 min, Slurm as 1 min 30 s.
/// Negative, longer than ten years, or shorter than a millisecond but not 0 is an error.
Result<Duration> parse_duration(std::string_view text);

/// Reads a time as Slurm prints it: the forms with ':' or '-' of parse_duration(), and "M:S".
Result<Duration> parse_slurm_time(std::string_view text);

/// parse_duration() for a value that users may also take for a moment, as "start-after: 22:00". A
/// text that is a time of day as well ("22:00", "22:00:00") is an error that names both readings.
Result<Duration> parse_delay(std::string_view text);

/// For people: "0.4 s", "12.3 s", "4m5s", "2h5m", "3d2h"; rounded down to the smaller unit.
/// parse_duration() reads it. Precondition: not negative.
std::string to_text(Duration duration);

/// To the millisecond: "0 s", "1.5 s", "1m30s", "1d12h30m". For values that users compare with what
/// they have written. parse_duration() reads it back. Precondition: not negative.
std::string exact_text(Duration duration);

}  // namespace trainyard
