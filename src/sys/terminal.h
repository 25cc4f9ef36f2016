// The terminal at the other end of a descriptor, if there is one.
//
// Not a user interface: it knows how wide it is and takes text. Any thread.
#pragma once

#include <string_view>
#include <system_error>

namespace trainyard::sys {

constexpr int kStandardInput = 0;
constexpr int kStandardOutput = 1;
constexpr int kStandardError = 2;

bool is_terminal(int descriptor);

/// A terminal that can go back over what it shows: none with TERM=dumb, as an editor's.
bool can_redraw(int descriptor);

/// Whether colour may be used on it as well: NO_COLOR (no-color.org) is not set, or empty.
bool takes_colour(int descriptor);

/// Columns; 80 if unknown.
int terminal_width(int descriptor);

/// Writes all of it as it is, waiting where it must; says what stood against it, where the rest is
/// dropped. A reader that has gone away is no error of ours.
std::error_code write_text(int descriptor, std::string_view text);

/// Writes text for people to standard error. Errors are ignored, as nobody is left to read about
/// them. Characters that act on a terminal are escaped, but for the ends of lines: names of files,
/// of tasks and of users may be in the text.
void write_standard_error(std::string_view text);

}  // namespace trainyard::sys
