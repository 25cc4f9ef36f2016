#include "text/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <fstream>
#include <ios>
#include <system_error>

#include <fmt/format.h>

#include "base/utf8.h"

namespace trainyard::text {
namespace {

Error unreadable(int error) {
  if (error == ENOENT) return Error{"file not found"};
  return Error{fmt::format("cannot be read: {}", std::generic_category().message(error))};
}

std::optional<std::string_view> why_not_plain(std::filesystem::file_status status) {
  switch (status.type()) {
    case std::filesystem::file_type::regular:
      return std::nullopt;
    case std::filesystem::file_type::directory:
      return "is a directory";
    case std::filesystem::file_type::fifo:
      return "is a pipe, not a regular file";
    default:
      return "is not a regular file";
  }
}

bool allowed(char byte) {
  const auto value = static_cast<std::uint8_t>(byte);
  return (value >= 0x20 && value != 0x7F) || byte == '\t' || byte == '\n' || byte == '\r';
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, sys::Links links) {
  if (links != sys::Links::Follow) {
    auto reason = sys::reason_to_refuse_at(path, {.links = links});
    if (reason) return std::unexpected(Error{*std::move(reason)});
  }
  std::error_code failed;
  const std::filesystem::file_status status = std::filesystem::status(path, failed);
  if (failed) return std::unexpected(unreadable(failed.value()));
  // status() does not say that there is no such file in `failed`.
  if (!std::filesystem::exists(status)) return std::unexpected(unreadable(ENOENT));
  // Checked before it is opened: opening a pipe waits for a writer.
  if (const auto what = why_not_plain(status)) return std::unexpected(Error{std::string(*what)});
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::unexpected(unreadable(errno));
  std::string text;
  constexpr std::size_t kBlock = std::size_t{64} << 10U;
  while (file && text.size() <= kTextFileMax) {
    const std::size_t had = text.size();
    text.resize(had + kBlock);
    file.read(text.data() + had, static_cast<std::streamsize>(kBlock));
    text.resize(had + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return std::unexpected(unreadable(errno));
  if (text.size() > kTextFileMax) return std::unexpected(Error{"is larger than 16 MiB"});
  return text;
}

std::optional<BadByte> find_bad_byte(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<std::uint8_t>(text[at]) < 0x80) {
      if (!allowed(text[at])) {
        return BadByte{.offset = at,
                       .why = fmt::format("the control character 0x{:02x} is not allowed",
                                          static_cast<unsigned>(text[at]))};
      }
      ++at;
      continue;
    }
    const Utf8Character character = utf8_character(text.substr(at));
    if (!character.valid) return BadByte{.offset = at, .why = "is not UTF-8 text"};
    at += character.bytes;
  }
  return std::nullopt;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<std::uint8_t>(byte) & 0xC0U) != 0x80U; }));
}

}  // namespace trainyard::text
