// Text that a person wrote, from a file: bounded, and surely text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/open_file.h"

namespace trainyard::text {

/// No job file, configuration file or list of values may be larger.
constexpr std::size_t kTextFileMax = std::size_t{16} << 20U;

/// Reads a whole file. It must be a plain one, so that reading it neither waits nor has an effect.
/// The error says why not, without the name: "file not found", "is
/// larger than 16 MiB", "is a pipe, not a regular file". `links` is for a file that a task may have
/// replaced.
Result<std::string> read_text_file(const std::string& path, sys::Links links = sys::Links::Follow);

struct BadByte {
  std::size_t offset = 0;
  std::string why;  ///< "is not UTF-8 text", "the control character 0x04 is not allowed".
};

/// The first byte that text cannot have: not UTF-8, or a control character except tab and line
/// ends. Nothing if it is all text.
std::optional<BadByte> find_bad_byte(std::string_view text);

/// The number of characters of a piece of UTF-8: editors call this the column.
std::size_t count_characters(std::string_view text);

}  // namespace trainyard::text
