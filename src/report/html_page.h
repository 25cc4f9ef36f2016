// What all pages have in common: their frame, their look, what they do when they are clicked, and
// the facts of the execution that they tell of. Every page carries its style sheet and its script
// in itself, and the program carries them all: they are page.css, page.js and plan.css. Pure.
#pragma once

#include <string>
#include <string_view>

#include "journal/reader.h"
#include "model/command.h"

namespace trainyard::report {

extern const std::string_view kPageStyle;   ///< Of the report of a run or a group.
extern const std::string_view kPageScript;  ///< Sorts and filters its tables.
extern const std::string_view kPlanStyle;   ///< Of the page that `plan --html` writes.

/// Up to the beginning of what the page shows. Nothing is loaded from anywhere. `title` is text.
std::string page_top(std::string_view title);
std::string page_bottom(const journal::ExecutionRow& execution);

/// When, on which machine, from which commit, with which command.
std::string facts(const journal::ExecutionRow& execution);

/// How the word for a phase looks: "ok", "bad" or nothing.
std::string_view chip_look(model::GroupPhase phase);

}  // namespace trainyard::report
