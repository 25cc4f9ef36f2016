// The parts that all pages share: their frame, their look, their behavior on a click, and the facts
// of the execution that they report. Every page contains its style sheet and its script, and the
// program contains them all: page.css, page.js and plan.css. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "journal/reader.h"

namespace trainyard::report {

/// In one line, with everything escaped that could end an element or an attribute.
std::string html(std::string_view text);

/// The meaning of a color of a picture, which is a class of page.css.
struct LegendEntry {
  std::string_view look;
  std::string_view word;
};
std::string legend_of(std::span<const LegendEntry> entries);

/// Opens a section, with `more` in HTML next to its title.
std::string section_top(std::string_view title, std::string_view more = {});

/// A line in small print.
std::string page_note(std::string_view text);

/// A relative path as a link, percent-encoded; slashes stay.
std::string link_to(std::string_view path);

extern const std::string_view kPageStyle;   ///< For the report of a run or a group.
extern const std::string_view kPageScript;  ///< Sorts and filters its tables.
extern const std::string_view kPlanStyle;   ///< For the page that `plan --html` writes.

/// Up to the beginning of what the page shows. Nothing is loaded from anywhere. `title` is text.
std::string page_top(std::string_view title);
std::string page_bottom(const journal::ExecutionRow& execution);

/// When, on which machine, from which commit, with which command.
std::string facts(const journal::ExecutionRow& execution);

/// The look of the word that shown_phase() returns: "ok", "bad" or nothing.
std::string_view chip_look(std::string_view phase);

}  // namespace trainyard::report
