// Journals of an older trainyard, made into ones of this, so that their runs go on.
#pragma once

#include <string>

#include "base/result.h"

namespace trainyard::journal {

/// Brings the journal at `path` up to date, all of it or nothing; nothing is done where it is, and
/// where there is none. Takes the lock of its run directory meanwhile: an error when a yard is at
/// work there, when the journal is too old, or cannot be written. Costs a copy of the file.
Result<void> bring_up_to_date(const std::string& path);

}  // namespace trainyard::journal
