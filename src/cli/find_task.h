// A task by the name that a person gives it.
#pragma once

#include <string>

#include "base/result.h"
#include "journal/reader.h"

namespace trainyard::cli {

/// The one task that `name` ("lr=0.1", or "train/lr=0.1") stands for. An error when it is none,
/// with names that come near, or several, with all of them.
Result<journal::TaskRow> find_task(journal::JournalReader& reader, const std::string& name);

}  // namespace trainyard::cli
