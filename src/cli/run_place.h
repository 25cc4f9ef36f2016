// The directory of a run: is it free, who is in it, what did the last one leave.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "io/files.h"

namespace trainyard::cli {

/// What is right where nobody said which run is meant, and several are at work.
enum class WhenSeveralLive : std::uint8_t { TakeLatest, Refuse };

/// The run directory that a command means: the one that was named, or else, of those under ./runs,
/// the one that was started or resumed last, one at work before all others. Absolute. Reads the
/// journal of each.
Result<std::string> find_run(const std::string& named,
                             WhenSeveralLive when_several_live = WhenSeveralLive::TakeLatest);

/// Makes the directory of a new run and locks it. An error when a run is or has been in it, with
/// the ways out.
Result<io::RunLock> take_new_place(const std::string& run_directory);

/// Locks the directory of an old run, and leaves all that is there as it is.
Result<io::RunLock> look_into_old_place(const std::string& run_directory);

/// Locks the directory of an old run and ends what it left running.
Result<io::RunLock> take_old_place(const std::string& run_directory);

}  // namespace trainyard::cli
