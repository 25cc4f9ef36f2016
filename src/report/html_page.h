// What all pages have in common: their frame, and the facts of the execution that they tell of.
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "journal/reader.h"
#include "model/command.h"

namespace trainyard::report {

/// Up to the beginning of what the page shows. Nothing is loaded from anywhere. `title` is text.
std::string page_top(std::string_view title);
std::string page_bottom(const ExecutionRow& execution);

/// When, on which machine, from which commit, with which command.
std::string facts(const ExecutionRow& execution);

/// How the word for a phase looks: "ok", "bad" or nothing.
std::string_view chip_look(GroupPhase phase);

}  // namespace trainyard::report
