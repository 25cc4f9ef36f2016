#include "text/bash_command.h"

#include <utility>

namespace trainyard::text {
namespace {

/// On the line of the text's first command, so that its line numbers in bash are right. The
/// trap reads everything in one expression, as each command changes PIPESTATUS. The redirection
/// hides it from `set -x`.
constexpr const char* kForgiveSigpipe =
    "trap '{ [[ \"$-:$?:${PIPESTATUS[@]}\" =~ ^[^e]*:141:((0|141)\\ )+0$ ]] && exit 0; } "
    "2>/dev/null' EXIT; ";

}  // namespace

std::vector<std::string> bash_command(std::string text, const ShellTraits& traits) {
  if (!traits.has_pipe) return {kBash, "-c", std::move(text)};
  return {kBash, "-o", "pipefail", "-c", kForgiveSigpipe + text};
}

std::vector<std::string> bash_command(std::string text) {
  ShellReader reader;
  reader.read(text);
  // Only a value can be refused, and the text has none.
  static_cast<void>(reader.at_end());
  return bash_command(std::move(text), reader.traits());
}

}  // namespace trainyard::text
