#include "wire/commands.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "model/command.h"
#include "wire/command_fields.h"  // IWYU pragma: keep
#include "wire/value_reader.h"
#include "wire/value_writer.h"

namespace trainyard::wire {

std::string to_text(const model::Command& command) {
  std::string text;
  append_value(text, command);
  return text;
}

Result<model::Command> command_from_text(std::string_view text) {
  ValueReader from(text);
  model::Command command;
  from.read_alternative(from.whole(), command);
  return std::move(from).give(std::move(command), "command");
}

}  // namespace trainyard::wire
